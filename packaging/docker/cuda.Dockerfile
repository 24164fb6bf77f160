# PETSc 3.26.1 with CUDA, built from PyPI's sources, and the library, which every program in the image loads. No GPU is needed to build it:
#   docker build -f packaging/docker/cuda.Dockerfile --build-arg CUDA_ARCH=90 -t petscspmv:cuda .
#   docker run --rm --gpus all -v "$PWD":/home -w /home petscspmv:cuda ./your_program -mat_type sellp -vec_type cuda
ARG BASE=nvidia/cuda:13.0.1-devel-ubuntu24.04
FROM $BASE
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc g++ gfortran make pkg-config mpi-default-dev liblapack-dev python3 python3-pip && \
    rm -rf /var/lib/apt/lists/*
ENV PETSC_DIR=/opt/petsc OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ARG CUDA_ARCH=90
COPY tools /src/tools
RUN /src/tools/build-petsc.sh /opt/petsc opt cuda fortran
COPY . /src
RUN make -C /src CUDA_ARCHS=$CUDA_ARCH install prefix=/usr/local && ldconfig && rm -rf /src
# Ubuntu's Open MPI does not read the memory of a GPU
ENV PETSC_OPTIONS="-dll_append /usr/local/lib/libpetscspmv.so -use_gpu_aware_mpi 0"
