#!/usr/bin/env bash
# Finds a PETSc for this machine, or builds or installs one, and writes its location to a file that the makefile includes.
# The makefile runs this script if PETSC_DIR is not set.
#
#   tools/setup.sh build/petsc.mk
#
# In this order: on a machine with an NVIDIA GPU and nvcc, a PETSc with CUDA built in build/petsc-cuda (not with
# PETSCSPMV_NO_CUDA=1); the machine's own PETSc; the distribution's package, installed as root or through sudo.
set -euo pipefail
out=$1
root=$(cd "$(dirname "$0")/.." && pwd)

say()  { echo "PetscSpMV: $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# as_root COMMAND...: fails without root or a sudo that needs no password
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif have sudo && sudo -n true 2>/dev/null; then sudo -n "$@"; else return 1; fi
}

# packages WHY NAME...: installs Debian's or Ubuntu's packages
packages() {
  local why=$1 log=$root/build/packages.log
  shift
  have apt-get && as_root true || return 1
  say "installing $* with apt-get, for $why (log: $log)"
  { as_root apt-get update && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null ||
    { tail -n 20 "$log" >&2; return 1; }
}

# usable DIR: the folder has a PETSc with its headers, its compiler and an mpiexec
usable() {
  local conf=$1/lib/petsc/conf/petscvariables
  [ -f "$conf" ] && [ -f "$1/include/petsc.h" ] && have "$(sed -n 's/^CC = \([^ ]*\).*/\1/p' "$conf")" &&
    { have mpiexec || have "$(sed -n 's/^MPIEXEC = \([^ ]*\).*/\1/p' "$conf")"; }
}

# The machine's own PETSc: the default of Debian and Ubuntu, else pkg-config's
installed() {
  local dir
  for dir in /usr/lib/petsc "$(pkg-config --variable=prefix PETSc 2>/dev/null || true)" "$(pkg-config --variable=prefix petsc 2>/dev/null || true)"; do
    if [ -n "$dir" ] && usable "$dir"; then echo "$dir"; return; fi
  done
  return 1
}

has_gpu() { [ -z "${PETSCSPMV_NO_CUDA:-}" ] && nvidia-smi -L >/dev/null 2>&1 && { have nvcc || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; }; }

with_cuda() {
  local dir=$root/build/petsc-cuda
  if ! usable "$dir"; then
    say "building a PETSc with CUDA in build/petsc-cuda, once, in about 10 minutes; PETSCSPMV_NO_CUDA=1 uses the machine's PETSc instead, without the GPU"
    if ! have mpicc || ! python3 -m pip --version >/dev/null 2>&1 || ! echo 'int main(void) { return 0; }' | cc -xc - -o /dev/null -llapack -lblas 2>/dev/null; then
      packages "building PETSc" libopenmpi-dev openmpi-bin liblapack-dev libblas-dev python3-pip || return 1
    fi
    "$root/tools/build-petsc.sh" "$dir" opt cuda >&2 || return 1
  fi
  echo "$dir"
}

found=
if has_gpu; then
  found=$(with_cuda) || { found=; say "no PETSc with CUDA could be built; going on with the machine's PETSc, without the GPU ('make clean' to try again)"; }
fi
[ -n "$found" ] || found=$(installed) || true
if [ -z "$found" ]; then
  packages "PETSc and MPI" libpetsc-real-dev openmpi-bin && found=$(installed) || true
fi
if [ -z "$found" ]; then
  say "no PETSc was found, and none could be installed. Do one of these, then run make again:
  - Debian, Ubuntu:      apt-get install libpetsc-real-dev        (as root)
  - any PETSc >= 3.18:   export PETSC_DIR=/where/it/is            (and PETSC_ARCH, unless it was installed)
  - from source:         tools/build-petsc.sh \$HOME/petsc opt && export PETSC_DIR=\$HOME/petsc      (needs an MPI with mpicc, BLAS, LAPACK)"
  exit 1
fi

# The search is repeated if that PETSc changes or is removed
cat >"$out" <<END
PETSC_DIR := $found
$out: $found/lib/petsc/conf/petscvariables
$found/lib/petsc/conf/petscvariables:
END
