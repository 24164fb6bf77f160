# Sourced by the findings of this folder: a temporary folder, the pinned packages, PETSc, and the comparison of what is seen
# with what was seen when the finding was written.
#
#   EXPLORE=1            print what is seen, with any versions, and exit 0 whatever it is
#   FINDINGS_CACHE       folder for the PETSc that is built once (default ~/.cache/findings)
#   FINDINGS_PETSC       an installed PETSc of the right version, used instead
#   FINDINGS_KEEP        folder to which the compiled programs are copied
#   FINDINGS_PREBUILT    such a folder, for a machine without MPI's compiler
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=$(basename "${FINDINGS_NAME:-$0}" .sh)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/finding.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
python=python3

fail() { echo "$name: $*" >&2; exit 1; }

needs_gpu() {
  nvidia-smi -L 2>/dev/null | grep GPU || { echo "$name: needs an NVIDIA GPU"; exit 77; }
  export PETSC_OPTIONS="-use_gpu_aware_mpi 0" XLA_PYTHON_CLIENT_PREALLOCATE=false
}

# packages PACKAGE==VERSION...: $python is an interpreter with these versions: the one in PATH if it has them, or a new
# environment
packages() {
  if python3 - ${EXPLORE:+explore} "$@" <<'END' 2>/dev/null; then python=python3; else
import sys
from importlib.metadata import version

words = sys.argv[1:]
for word in words:
    name, _, wanted = word.partition("==")
    if word != "explore" and version(name) != wanted and "explore" not in words:
        sys.exit(1)
END
    python3 -m venv "$tmp/env"
    python=$tmp/env/bin/python
    "$python" -m pip install -q --only-binary=:all: "$@"
  fi
  "$python" - "$@" <<'END'
import sys
from importlib.metadata import version

names = [word.split("==")[0] for word in sys.argv[1:]]
print("packages:", ", ".join(name + " " + version(name) for name in names))
END
}

# debian PACKAGE=VERSION...: packages of Debian 12
debian() {
  local want have
  for want in "$@"; do
    have=$(dpkg-query -W -f '${Version}' "${want%%=*}" 2>/dev/null) || have=
    [ "$have" = "${want#*=}" ] && continue
    apt-get install -y -q --no-install-recommends "$@" >"$tmp/apt.log" 2>&1 && break
    tail "$tmp/apt.log"
    fail "apt-get cannot install $*"
  done
  echo "packages: $*"
}

# debian_petsc: PETSC_DIR is Debian 12's PETSc 3.18.5, real numbers, optimized
debian_petsc() {
  debian libpetsc-real3.18-dev=3.18.5+dfsg1-1
  PETSC_DIR=/usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real petsc_lib=petsc_real
}

prebuilt() { [ -n "${FINDINGS_PREBUILT:-}" ] && [ -x "$FINDINGS_PREBUILT/$name" ]; }

# petsc VERSION [CONFIGURE-OPTION...]: PETSC_DIR is this PETSc, with debugging unless an option says otherwise
petsc() {
  local version=$1 cache source log have
  shift
  echo "packages: PETSc $version"
  if prebuilt; then return; fi
  PETSC_DIR=${FINDINGS_PETSC:-}
  if [ -z "$PETSC_DIR" ]; then
    cache=${FINDINGS_CACHE:-${HOME:-/tmp}/.cache/findings}
    PETSC_DIR=$cache/petsc-$version${*:+-$(cksum <<<"$*" | cut -d' ' -f1)}
    if [ ! -f "$PETSC_DIR/lib/libpetsc.so" ]; then
      echo "building PETSc $version (minutes, once)"
      mkdir -p "$cache"
      python3 -m pip download -q --no-deps --no-binary petsc -d "$tmp" "petsc==$version"
      tar -C "$tmp" -xzf "$tmp/petsc-$version.tar.gz"
      source=$tmp/petsc-$version log=$cache/petsc-$version.log
      (
        cd "$source" && ./configure PETSC_ARCH=arch --prefix="$PETSC_DIR" --with-fc=0 --with-x=0 "$@" &&
          make PETSC_DIR="$source" PETSC_ARCH=arch all && make PETSC_DIR="$source" PETSC_ARCH=arch install
      ) >"$log" 2>&1 || fail "PETSc: see $log"
    fi
  fi
  have=$(awk '/define PETSC_VERSION_(MAJOR|MINOR|SUBMINOR) / { printf "%s.", $3 }' "$PETSC_DIR/include/petscversion.h")
  [ "$have" = "$version." ] || fail "$PETSC_DIR is not PETSc $version"
}

# compile [LINKER-OPTION...]: the C program of the standard input, which uses PETSc, becomes $tmp/program
compile() {
  local cuda=${CUDA_HOME:-/usr/local/cuda} include=()
  {
    cat <<'END'
#include <petscksp.h>
#if PETSC_VERSION_LT(3, 19, 0)
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif
/* a tridiagonal matrix of n rows: a, b, c in each row */
static inline PetscErrorCode Tridiagonal(MPI_Comm comm, const char *type, PetscInt n, PetscScalar a, PetscScalar b,
                                         PetscScalar c, Mat *A)
{
  PetscInt begin, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSeqAIJSetPreallocation(*A, 3, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 3, NULL, 1, NULL));
  PetscCall(MatGetOwnershipRange(*A, &begin, &end));
  for (PetscInt i = begin; i < end; i++) {
    if (i) PetscCall(MatSetValue(*A, i, i - 1, a, INSERT_VALUES));
    PetscCall(MatSetValue(*A, i, i, b, INSERT_VALUES));
    if (i < n - 1) PetscCall(MatSetValue(*A, i, i + 1, c, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}
/* entry i of a vector of this process */
static inline double Entry(Vec x, PetscInt i)
{
  const PetscScalar *a;
  double             value;

  PetscCallAbort(PETSC_COMM_SELF, VecGetArrayRead(x, &a));
  value = PetscRealPart(a[i]);
  PetscCallAbort(PETSC_COMM_SELF, VecRestoreArrayRead(x, &a));
  return value;
}
END
    cat
  } >"$tmp/$name.c"
  if prebuilt; then
    cp "$FINDINGS_PREBUILT/$name" "$tmp/program"
    return
  fi
  if [ -d "$cuda/lib64" ]; then
    include=(-I"$cuda/include")
    set -- "$@" -L"$cuda/lib64" -Wl,--allow-shlib-undefined
  fi
  mpicc -g -O1 -Wall -Werror -o "$tmp/program" "$tmp/$name.c" -I"$PETSC_DIR/include" "${include[@]}" \
    -L"$PETSC_DIR/lib" -Wl,-rpath,"$PETSC_DIR/lib" -l"${petsc_lib:-petsc}" "$@" -lm
  [ -z "${FINDINGS_KEEP:-}" ] || cp "$tmp/program" "$FINDINGS_KEEP/$name"
}

# see COMMAND...: runs it in the temporary folder and keeps its lines that begin with "* "
see() {
  local code=0
  (cd "$tmp" && "$@") >"$tmp/out" 2>&1 || code=$?
  cat "$tmp/out"
  grep '^\* ' "$tmp/out" >>"$tmp/seen" || true
  [ $code = 0 ] || [ -n "${EXPLORE:-}" ] || fail "exit code $code"
}

# behaves: the standard input has these lines as they were when the finding was written
behaves() {
  touch "$tmp/seen"
  cat >"$tmp/expected"
  [ -z "${EXPLORE:-}" ] || exit 0
  if ! diff "$tmp/expected" "$tmp/seen" >"$tmp/diff"; then
    cat "$tmp/diff"
    fail "the behavior has changed (< then, > now)"
  fi
  echo "$name: as written"
}
