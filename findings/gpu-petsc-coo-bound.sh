#!/usr/bin/env bash
# PETSc 3.26.1, AIJCUSPARSE with a block size: COO assembly of a matrix that is bound to the CPU.
# Guess: the same entries as on the GPU, or as AIJ has.
# Seen: whole blocks, 27 entries in place of 3.
. "$(dirname "$0")/lib.sh"
needs_gpu
petsc 3.26.1 --with-cuda=1 --with-debugging=0
compile <<'END'
int main(int argc, char **argv)
{
  Mat         A;
  MatInfo     info;
  PetscInt    i[] = {0, 4, 8}, j[] = {0, 4, 1};
  PetscScalar v[] = {1, 2, 3};

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int gpu = 0; gpu < 2; gpu++)
    for (int bound = 0; bound < 2; bound++)
      for (PetscInt bs = 1; bs < 4; bs += 2) {
        PetscCall(MatCreate(PETSC_COMM_SELF, &A));
        PetscCall(MatSetSizes(A, 9, 9, 9, 9));
        PetscCall(MatSetBlockSize(A, bs));
        PetscCall(MatSetType(A, gpu ? MATSEQAIJCUSPARSE : MATSEQAIJ));
        PetscCall(MatBindToCPU(A, bound ? PETSC_TRUE : PETSC_FALSE));
        PetscCall(MatSetPreallocationCOO(A, 3, i, j));
        PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
        PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
        PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %s, block size %d, %s: %g entries from 3\n",
                              gpu ? "aijcusparse" : "aij", (int)bs, bound ? "bound to the CPU" : "not bound",
                              info.nz_used));
        PetscCall(MatDestroy(&A));
      }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* aij, block size 1, not bound: 3. entries from 3
* aij, block size 3, not bound: 3. entries from 3
* aij, block size 1, bound to the CPU: 3. entries from 3
* aij, block size 3, bound to the CPU: 3. entries from 3
* aijcusparse, block size 1, not bound: 3. entries from 3
* aijcusparse, block size 3, not bound: 3. entries from 3
* aijcusparse, block size 1, bound to the CPU: 3. entries from 3
* aijcusparse, block size 3, bound to the CPU: 27. entries from 3
END
