#!/usr/bin/env bash
# PETSc 3.26.1, AIJCUSPARSE with vectors on the host, as programs have them that choose -mat_type but not -vec_type.
# Guess: the product is computed on the GPU and copied, or it is an error.
# Seen: neither: y = A x stays zero, without an error in an optimized build, so a solver with b = A u ends at once.
. "$(dirname "$0")/lib.sh"
needs_gpu
petsc 3.26.1 --with-cuda=1 --with-debugging=0
compile <<'END'
int main(int argc, char **argv)
{
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int gpu = 0; gpu < 2; gpu++) {
    for (int cuda = 0; cuda <= gpu; cuda++) {
      Mat A;
      Vec x, y;

      PetscCall(Tridiagonal(PETSC_COMM_SELF, gpu ? MATSEQAIJCUSPARSE : MATSEQAIJ, 20, -1, 4, -1, &A));
      PetscCall(VecCreate(PETSC_COMM_SELF, &x));
      PetscCall(VecSetSizes(x, 20, 20));
      PetscCall(VecSetType(x, cuda ? VECSEQCUDA : VECSEQ));
      PetscCall(VecDuplicate(x, &y));
      PetscCall(VecSet(x, 1));
      PetscCall(MatMult(A, x, y));
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %s, vectors %s: entry 1 of A x is %g, should be 2\n",
                            gpu ? "aijcusparse" : "aij", cuda ? "cuda" : "seq", Entry(y, 1)));
      PetscCall(VecDestroy(&x));
      PetscCall(VecDestroy(&y));
      PetscCall(MatDestroy(&A));
    }
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* aij, vectors seq: entry 1 of A x is 2., should be 2
* aijcusparse, vectors seq: entry 1 of A x is 0., should be 2
* aijcusparse, vectors cuda: entry 1 of A x is 2., should be 2
END
