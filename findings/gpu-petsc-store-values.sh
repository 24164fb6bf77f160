#!/usr/bin/env bash
# PETSc 3.26.1, AIJCUSPARSE: MatStoreValues(), MatScale(), MatRetrieveValues().
# Guess: the matrix gets back the values that it had when they were stored.
# Seen: nothing changes: MatRetrieveValues() leaves the GPU's values as they are, and without an error.
. "$(dirname "$0")/lib.sh"
needs_gpu
petsc 3.26.1 --with-cuda=1 --with-debugging=0
compile <<'END'
int main(int argc, char **argv)
{
  Mat A;
  Vec x, y;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int gpu = 0; gpu < 2; gpu++) {
    PetscCall(Tridiagonal(PETSC_COMM_SELF, gpu ? MATSEQAIJCUSPARSE : MATSEQAIJ, 20, 0, 1, 0, &A));
    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecSet(x, 1));
    PetscCall(MatMult(A, x, y));
    PetscCall(MatScale(A, 3));
    PetscCall(MatStoreValues(A));
    PetscCall(MatScale(A, 100));
    PetscCall(MatMult(A, x, y));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %s: 3 stored, then times 100: the product has %g",
                          gpu ? "aijcusparse" : "aij", Entry(y, 1)));
    PetscCall(MatRetrieveValues(A));
    PetscCall(MatMult(A, x, y));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, ", after MatRetrieveValues() %g\n", Entry(y, 1)));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* aij: 3 stored, then times 100: the product has 300., after MatRetrieveValues() 3.
* aijcusparse: 3 stored, then times 100: the product has 300., after MatRetrieveValues() 300.
END
