#!/usr/bin/env bash
# PETSc 3.26.1: MatMultTranspose() of a SELL matrix.
# Guess: SELL is only another layout of the same entries, so both products agree with AIJ's.
# Seen: A x does, A^T x is wrong, without an error, whenever the number of rows is not a multiple of the slices'
# height (8).
. "$(dirname "$0")/lib.sh"
petsc 3.26.1
compile <<'END'
int main(int argc, char **argv)
{
  Mat       A, S;
  Vec       x, y, z;
  PetscReal norm;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (PetscInt n = 8; n <= 24; n += 4) {
    PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJ, n, -1, 4, -2, &A));
    PetscCall(MatConvert(A, MATSEQSELL, MAT_INITIAL_MATRIX, &S));
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecDuplicate(y, &z));
    for (PetscInt i = 0; i < n; i++) PetscCall(VecSetValue(x, i, i + 1, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(x));
    PetscCall(VecAssemblyEnd(x));
    PetscCall(MatMult(A, x, y));
    PetscCall(MatMult(S, x, z));
    PetscCall(VecAXPY(z, -1, y));
    PetscCall(VecNorm(z, NORM_INFINITY, &norm));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %d rows: largest error of SELL's A x: %g", (int)n, (double)norm));
    PetscCall(MatMultTranspose(A, x, y));
    PetscCall(MatMultTranspose(S, x, z));
    PetscCall(VecAXPY(z, -1, y));
    PetscCall(VecNorm(z, NORM_INFINITY, &norm));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, ", of A^T x: %g\n", (double)norm));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&S));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* 8 rows: largest error of SELL's A x: 0., of A^T x: 0.
* 12 rows: largest error of SELL's A x: 0., of A^T x: 26.
* 16 rows: largest error of SELL's A x: 0., of A^T x: 0.
* 20 rows: largest error of SELL's A x: 0., of A^T x: 50.
* 24 rows: largest error of SELL's A x: 0., of A^T x: 0.
END
