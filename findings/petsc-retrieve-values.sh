#!/usr/bin/env bash
# PETSc 3.18.5: MatRetrieveValues() between two solves.
# Guess: the values change, so the matrix's state does, and the solver factors again.
# Seen: the state stays, and KSPSolve() goes on with the factors of the values before.
. "$(dirname "$0")/lib.sh"
debian_petsc
compile <<'END'
#include <petsc/private/petscimpl.h>
int main(int argc, char **argv)
{
  Mat              A;
  Vec              x, b;
  KSP              ksp;
  PC               pc;
  PetscObjectState before, after;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(Tridiagonal(PETSC_COMM_SELF, MATSEQAIJ, 20, 0, 1, 0, &A));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 12));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetType(ksp, KSPPREONLY));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCLU));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(MatStoreValues(A));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "* 1 on the diagonal: the solution is %g\n", Entry(x, 0)));
  PetscCall(MatScale(A, 3));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "* times 3: %g\n", Entry(x, 0)));
  PetscCall(PetscObjectStateGet((PetscObject)A, &before));
  PetscCall(MatRetrieveValues(A));
  PetscCall(PetscObjectStateGet((PetscObject)A, &after));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "* after MatRetrieveValues(): %g, state %s\n", Entry(x, 0),
                        before == after ? "the same" : "increased"));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* 1 on the diagonal: the solution is 12.
* times 3: 4.
* after MatRetrieveValues(): 4., state the same
END
