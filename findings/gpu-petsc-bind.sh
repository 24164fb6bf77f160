#!/usr/bin/env bash
# PETSc 3.26.1, AIJCUSPARSE: values changed while the matrix is bound to the CPU.
# Guess: after MatBindToCPU(A, PETSC_FALSE) the next product copies the changed values to the GPU.
# Seen: it uses those from before, whatever changed them, even MatSetValue() with an assembly.
. "$(dirname "$0")/lib.sh"
needs_gpu
petsc 3.26.1 --with-cuda=1 --with-debugging=0
compile <<'END'
int main(int argc, char **argv)
{
  Mat A;
  Vec x, y;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int how = 0; how < 5; how++) {
    const char *names[] = {"MatScale()", "MatDiagonalScale()", "MatShift()", "MatSetValue()", "MatZeroEntries()"};
    PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJCUSPARSE, 20, 0, 1, 0, &A));
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(VecSet(x, 1));
    PetscCall(VecSet(y, 5));
    PetscCall(MatScale(A, 2));
    PetscCall(MatMult(A, x, y));
    PetscCall(MatBindToCPU(A, PETSC_TRUE));
    PetscCall(VecSet(y, 5));
    if (how == 0) PetscCall(MatScale(A, 5));
    if (how == 1) PetscCall(MatDiagonalScale(A, y, NULL));
    if (how == 2) PetscCall(MatShift(A, 8));
    if (how == 3) {
      PetscCall(MatSetValue(A, 1, 1, 10, INSERT_VALUES));
      PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    }
    if (how == 4) PetscCall(MatZeroEntries(A));
    PetscCall(MatMult(A, x, y));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %s while bound to the CPU: the product is %g", names[how], Entry(y, 1)));
    PetscCall(MatBindToCPU(A, PETSC_FALSE));
    PetscCall(MatMult(A, x, y));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, ", after unbinding %g\n", Entry(y, 1)));
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
* MatScale() while bound to the CPU: the product is 10., after unbinding 2.
* MatDiagonalScale() while bound to the CPU: the product is 10., after unbinding 2.
* MatShift() while bound to the CPU: the product is 10., after unbinding 2.
* MatSetValue() while bound to the CPU: the product is 10., after unbinding 2.
* MatZeroEntries() while bound to the CPU: the product is 0., after unbinding 2.
END
