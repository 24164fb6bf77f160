#!/usr/bin/env bash
# PETSc 3.18.5, two processes: MatGetOrdering() of a matrix of type mpiaijperm.
# Guess: as for mpiaij, from which the type differs in its product only.
# Seen: on each process a permutation of its local rows, which is not one of the matrix, and which MatPermute()
# accepts.
. "$(dirname "$0")/lib.sh"
debian_petsc
compile <<'END'
int main(int argc, char **argv)
{
  const char *types[] = {MATMPIAIJ, MATMPIAIJPERM};

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int t = 0; t < 2; t++) {
    Mat         A;
    IS          row, col;
    PetscInt    size;
    PetscMPIInt ranks;

    PetscCall(Tridiagonal(PETSC_COMM_WORLD, types[t], 12, -1, 4, -1, &A));
    PetscCall(MatGetOrdering(A, MATORDERINGNATURAL, &row, &col));
    PetscCall(ISGetSize(row, &size));
    PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)row), &ranks));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "* %s: the natural ordering of 12 rows has %d, on %d process(es)\n",
                          types[t], (int)size, ranks));
    PetscCall(MatDestroy(&A));
    PetscCall(ISDestroy(&row));
    PetscCall(ISDestroy(&col));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see mpiexec --oversubscribe -n 2 ./program
behaves <<'END'
* mpiaij: the natural ordering of 12 rows has 12, on 2 process(es)
* mpiaijperm: the natural ordering of 12 rows has 6, on 1 process(es)
END
