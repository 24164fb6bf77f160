#!/usr/bin/env bash
# PETSc 3.26.1: MatAIJGetLocalMat() of a parallel matrix of type aijperm or aijsell, which are derived from aij.
# Guess: a sequential matrix of the local rows, as its manual page says and as for aij.
# Seen: it compares the type's name with mpiaij only; for derived types it returns the parallel matrix itself, without
# an error.
. "$(dirname "$0")/lib.sh"
petsc 3.26.1
compile <<'END'
int main(int argc, char **argv)
{
  const char *types[] = {MATAIJ, MATAIJPERM, MATAIJSELL};

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int t = 0; t < 3; t++) {
    Mat         A, L;
    PetscMPIInt size;
    PetscInt    rows;

    PetscCall(Tridiagonal(PETSC_COMM_WORLD, MATAIJ, 10, -1, 2, -1, &A));
    PetscCall(MatConvert(A, types[t], MAT_INPLACE_MATRIX, &A));
    PetscCall(MatAIJGetLocalMat(A, &L));
    PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)L), &size));
    PetscCall(MatGetSize(L, &rows, NULL));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "* %s: a matrix of %d process%s with %d rows%s\n", types[t], size,
                          size > 1 ? "es" : "", (int)rows, L == A ? ", A itself" : ""));
    PetscCall(MatDestroy(&L));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see mpiexec --oversubscribe -n 2 ./program
behaves <<'END'
* aij: a matrix of 1 process with 5 rows
* aijperm: a matrix of 2 processes with 10 rows, A itself
* aijsell: a matrix of 2 processes with 10 rows, A itself
END
