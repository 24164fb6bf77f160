# Debian 12's PETSc, petsc4py and the library, which every program in the image loads:
#   docker build -f packaging/docker/host.Dockerfile -t petscspmv .
#   docker run --rm -v $PWD:/home -w /home petscspmv python3 your_program.py -mat_type sellp
FROM debian:bookworm
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc make gfortran pkg-config mpi-default-dev libpetsc-real-dev python3-petsc4py python3-petsc4py-real && \
    rm -rf /var/lib/apt/lists/*
ENV PETSC_DIR=/usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
COPY . /src
RUN make -C /src install prefix=/usr/local && ldconfig && rm -rf /src
ENV PETSC_OPTIONS="-dll_append /usr/local/lib/libpetscspmv.so"
