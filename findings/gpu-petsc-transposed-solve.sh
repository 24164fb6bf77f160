#!/usr/bin/env bash
# PETSc 3.26.1, AIJCUSPARSE: MatSolveTranspose() after the second numeric factorization.
# Guess: each MatLUFactorNumeric() replaces the factors for both kinds of solves.
# Seen: the transposed solve goes on with the values of the first factorization, without an error; MatSolve() uses
# the new ones.
. "$(dirname "$0")/lib.sh"
needs_gpu
petsc 3.26.1 --with-cuda=1 --with-debugging=0
compile <<'END'
int main(int argc, char **argv)
{
  Mat           A, F;
  Vec           b, x;
  IS            row, col;
  MatFactorInfo info;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int gpu = 0; gpu < 2; gpu++) {
    PetscCall(Tridiagonal(PETSC_COMM_SELF, gpu ? MATSEQAIJCUSPARSE : MATSEQAIJ, 20, -1, 4, 0, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecSet(b, 3));
    PetscCall(MatGetOrdering(A, MATORDERINGNATURAL, &row, &col));
    PetscCall(MatFactorInfoInitialize(&info));
    PetscCall(MatGetFactor(A, gpu ? MATSOLVERCUSPARSE : MATSOLVERPETSC, MAT_FACTOR_LU, &F));
    PetscCall(MatLUFactorSymbolic(F, A, row, col, &info));
    for (int scale = 1; scale <= 4; scale *= 2) {
      PetscCall(MatLUFactorNumeric(F, A, &info));
      PetscCall(MatSolve(F, b, x));
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %s, %d A: first entry of MatSolve() %.6f", gpu ? "aijcusparse" : "aij",
                            scale, Entry(x, 0)));
      PetscCall(MatSolveTranspose(F, b, x));
      PetscCall(PetscPrintf(PETSC_COMM_SELF, ", last entry of MatSolveTranspose() %.6f\n", Entry(x, 19)));
      PetscCall(MatScale(A, 2));
    }
    PetscCall(ISDestroy(&row));
    PetscCall(ISDestroy(&col));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&F));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* aij, 1 A: first entry of MatSolve() 0.750000, last entry of MatSolveTranspose() 0.750000
* aij, 2 A: first entry of MatSolve() 0.375000, last entry of MatSolveTranspose() 0.375000
* aij, 4 A: first entry of MatSolve() 0.187500, last entry of MatSolveTranspose() 0.187500
* aijcusparse, 1 A: first entry of MatSolve() 0.750000, last entry of MatSolveTranspose() 0.750000
* aijcusparse, 2 A: first entry of MatSolve() 0.375000, last entry of MatSolveTranspose() 0.750000
* aijcusparse, 4 A: first entry of MatSolve() 0.187500, last entry of MatSolveTranspose() 0.750000
END
