#!/usr/bin/env bash
# Builds PETSc from PyPI's source package in a separate folder, with only the
# features that PetscSpMV is tested with.
#
#   tools/build-petsc.sh PREFIX [debug|opt] [cuda] [complex] [int64] [single] [fortran] [--option]...
#
# fortran: with PETSc's Fortran modules. --option: for PETSc's configure.
# Takes about 6 minutes on two cores, 9 with cuda. Does nothing if PREFIX
# already has a finished build. PETSC_VERSION selects the release (default
# 3.26.1), CUDA_ARCH the GPU architecture (default: the machine's GPU, else 90).
# The unpacked sources stay in PREFIX/share/petsc-src: they include PETSc's own
# tests and tutorials, which tests/petsc.py runs.
set -euo pipefail

usage() { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 1 ] || usage
prefix=$1; shift
version=${PETSC_VERSION:-3.26.1}
debug=0 cuda=0 scalar=real ints=32 precision=double fc=0 options=()
for word in "$@"; do
  case $word in
    debug) debug=1 ;; opt) debug=0 ;; cuda) cuda=1 ;; complex) scalar=complex ;;
    int64) ints=64 ;; single) precision=single ;; fortran) fc=${MPIFC:-mpif90} ;; --*) options+=("$word") ;; *) usage ;;
  esac
done
# The library is among the last things installed, so it distinguishes a finished build from an interrupted one
if [ -f "$prefix/lib/libpetsc.so" ] && [ -f "$prefix/lib/petsc/conf/petscvariables" ]; then echo "PETSc is in $prefix already"; exit 0; fi

mkdir -p "$prefix"; prefix=$(cd "$prefix" && pwd)
src=$prefix/share/petsc-src
if [ ! -f "$src/configure" ]; then
  # The sources are unpacked next to their final place and then moved, so that an interrupted run leaves nothing that looks complete
  rm -rf "$src" "$src.new"
  mkdir -p "$src.new"
  python3 -m pip download -q --no-deps --no-binary petsc -d "$src.new" "petsc==$version"
  tar xzf "$src.new"/petsc-*.tar.gz -C "$src.new" --strip-components=1
  rm -f "$src.new"/petsc-*.tar.gz
  mv "$src.new" "$src"
fi

flags=(--prefix="$prefix" --with-fc="$fc" --with-cc="${MPICC:-mpicc}" --with-cxx="${MPICXX:-mpicxx}" --with-x=0 --with-debugging=$debug
       --with-scalar-type=$scalar --with-64-bit-indices=$((ints == 64)) --with-precision=$precision)
[ $debug = 1 ] || flags+=(COPTFLAGS=-O3 CXXOPTFLAGS=-O3)
if [ $cuda = 1 ]; then
  arch=${CUDA_ARCH:-$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d . || true)}
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  flags+=(--with-cuda=1 --with-cuda-dir="${CUDA_HOME:-$(dirname "$(dirname "$nvcc")")}" --with-cuda-arch="${arch:-90}")
  [ $debug = 1 ] || flags+=(CUDAOPTFLAGS=-O3)
fi
[ "$fc" = 0 ] || [ $debug = 1 ] || flags+=(FOPTFLAGS=-O3)
flags+=("${options[@]}")
cd "$src"
unset PETSC_DIR PETSC_ARCH MAKEFLAGS MFLAGS MAKELEVEL
export PETSC_ARCH=arch-build
log=$prefix/build.log
echo "building PETSc $version in $prefix (log: $log)"
{ python3 ./configure "${flags[@]}" && make PETSC_DIR="$src" PETSC_ARCH=arch-build -j"$(nproc)" all && make PETSC_DIR="$src" PETSC_ARCH=arch-build install; } >"$log" 2>&1 ||
  { tail -n 40 "$log" >&2; echo "building PETSc failed; the whole log is $log" >&2; exit 1; }
rm -rf "$src/arch-build"
