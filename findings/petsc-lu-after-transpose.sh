#!/usr/bin/env bash
# PETSc 3.26.1: KSPSolve() with LU before and after MatTranspose() of the matrix in place.
# Guess: the solver sees that the matrix is another and factors it.
# Seen: it takes the new pattern for the old one and computes a wrong solution without an error.
. "$(dirname "$0")/lib.sh"
petsc 3.26.1
compile <<'END'
int main(int argc, char **argv)
{
  Mat                A;
  Vec                x, b, r;
  KSP                ksp;
  PC                 pc;
  PetscReal          norm;
  KSPConvergedReason reason;
  PetscErrorCode     ierr;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int fresh = 0; fresh < 2; fresh++) {
    PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, 20, 20, 4, NULL, &A));
    for (PetscInt i = 0; i < 20; i++) {
      PetscCall(MatSetValue(A, i, i, 4, INSERT_VALUES));
      PetscCall(MatSetValue(A, i, (i * 7) % 20, 1 + i % 3, INSERT_VALUES));
      if (i) PetscCall(MatSetValue(A, i, i - 1, -1, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecDuplicate(b, &r));
    PetscCall(VecSet(b, 1));
    PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
    PetscCall(KSPSetType(ksp, KSPPREONLY));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCLU));
    for (int step = 0; step < 2; step++) {
      if (step) PetscCall(MatTranspose(A, MAT_INPLACE_MATRIX, &A));
      if (step && fresh) {
        PetscCall(KSPReset(ksp));
      }
      PetscCall(KSPSetOperators(ksp, A, A));
      PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      ierr = KSPSolve(ksp, b, x);
      PetscCall(PetscPopErrorHandler());
      PetscCall(KSPGetConvergedReason(ksp, &reason));
      PetscCall(MatMult(A, x, r));
      PetscCall(VecAXPY(r, -1, b));
      PetscCall(VecNorm(r, NORM_INFINITY, &norm));
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "* %s%s: error code %d, reason %d, residual %s\n",
                            step ? "after the transpose" : "before", step && fresh ? ", solver reset" : "", (int)ierr,
                            (int)reason,
                            norm < 1e-10  ? "below 1e-10"
                            : norm > 1e-3 ? "larger than 1e-3"
                                          : "between"));
    }
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(VecDestroy(&r));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* before: error code 0, reason 4, residual below 1e-10
* after the transpose: error code 0, reason 4, residual larger than 1e-3
* before: error code 0, reason 4, residual below 1e-10
* after the transpose, solver reset: error code 0, reason 4, residual below 1e-10
END
