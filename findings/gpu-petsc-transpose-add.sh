#!/usr/bin/env bash
# PETSc 3.26.1, AIJCUSPARSE: z = y + A^T x by MatMultTransposeAdd(A, x, y, z) with z different from y.
# Guess: what z held before does not matter, as for MatMultAdd().
# Seen: the sum is with z's old values, not with y.
. "$(dirname "$0")/lib.sh"
needs_gpu
petsc 3.26.1 --with-cuda=1 --with-debugging=0
compile <<'END'
int main(int argc, char **argv)
{
  Mat A;
  Vec x, y, z;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int gpu = 0; gpu < 2; gpu++) {
    PetscCall(Tridiagonal(PETSC_COMM_SELF, gpu ? MATSEQAIJCUSPARSE : MATSEQAIJ, 20, -1, 4, 0, &A));
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecDuplicate(y, &z));
    PetscCall(VecSet(x, 1));
    PetscCall(VecSet(y, 10));
    for (int transposed = 0; transposed < 2; transposed++)
      for (int before = 0; before <= 500; before += 500) {
        PetscCall(VecSet(z, before));
        PetscCall((transposed ? MatMultTransposeAdd : MatMultAdd)(A, x, y, z));
        PetscCall(PetscPrintf(PETSC_COMM_SELF,
                              "* %s: y + %s x with y = 10, z = %d before: entry 1 is %g, should be 13\n",
                              gpu ? "aijcusparse" : "aij", transposed ? "A^T" : "A", before, Entry(z, 1)));
      }
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* aij: y + A x with y = 10, z = 0 before: entry 1 is 13., should be 13
* aij: y + A x with y = 10, z = 500 before: entry 1 is 13., should be 13
* aij: y + A^T x with y = 10, z = 0 before: entry 1 is 13., should be 13
* aij: y + A^T x with y = 10, z = 500 before: entry 1 is 13., should be 13
* aijcusparse: y + A x with y = 10, z = 0 before: entry 1 is 13., should be 13
* aijcusparse: y + A x with y = 10, z = 500 before: entry 1 is 13., should be 13
* aijcusparse: y + A^T x with y = 10, z = 0 before: entry 1 is 13., should be 13
* aijcusparse: y + A^T x with y = 10, z = 500 before: entry 1 is 513., should be 13
END
