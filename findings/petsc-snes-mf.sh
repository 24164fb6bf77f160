#!/usr/bin/env bash
# PETSc 3.26.1: -mat_type aij together with -snes_mf_operator.
# Guess: -mat_type concerns the matrix of the preconditioner; the matrix-free operator has a type of its own.
# Seen: SNES reads the option for the matrix-free operator, too, which becomes an AIJ matrix without entries, and
# the solve stops at once; -dm_mat_type does not.
. "$(dirname "$0")/lib.sh"
petsc 3.26.1
compile <<'END'
#include <petscsnes.h>
#include <petscdmda.h>
static PetscErrorCode Function(DMDALocalInfo *info, PetscScalar *x, PetscScalar *f, void *ctx)
{
  PetscFunctionBeginUser;
  for (PetscInt i = info->xs; i < info->xs + info->xm; i++)
    f[i] = 2 * x[i] - (i ? x[i - 1] : 0) - (i < info->mx - 1 ? x[i + 1] : 0) + 0.01 * x[i] * x[i] - 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}
int main(int argc, char **argv)
{
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int run = 0; run < 4; run++) {
    const char         *options[] = {"-snes_mf_operator", "-snes_mf_operator -dm_mat_type aij",
                                     "-snes_mf_operator -mat_type aij", "-snes_mf -mat_type aij"};
    DM                  dm;
    SNES                snes;
    Mat                 J, P;
    MatType             type;
    Vec                 x;
    SNESConvergedReason reason;

    PetscCall(PetscOptionsClear(NULL));
    PetscCall(PetscOptionsInsertString(NULL, options[run]));
    PetscCall(DMDACreate1d(PETSC_COMM_SELF, DM_BOUNDARY_NONE, 20, 1, 1, NULL, &dm));
    PetscCall(DMSetFromOptions(dm));
    PetscCall(DMSetUp(dm));
    PetscCall(DMDASNESSetFunctionLocal(dm, INSERT_VALUES, (DMDASNESFunctionFn *)Function, NULL));
    PetscCall(SNESCreate(PETSC_COMM_SELF, &snes));
    PetscCall(SNESSetDM(snes, dm));
    PetscCall(SNESSetFromOptions(snes));
    PetscCall(DMCreateGlobalVector(dm, &x));
    PetscCall(SNESSolve(snes, NULL, x));
    PetscCall(SNESGetConvergedReason(snes, &reason));
    PetscCall(SNESGetJacobian(snes, &J, &P, NULL, NULL));
    PetscCall(MatGetType(J, &type));
    PetscCall(
        PetscPrintf(PETSC_COMM_SELF, "* %s: operator %s, %s\n", options[run], type, SNESConvergedReasons[reason]));
    PetscCall(SNESDestroy(&snes));
    PetscCall(DMDestroy(&dm));
    PetscCall(VecDestroy(&x));
  }
  PetscCall(PetscFinalize());
  return 0;
}
END
see ./program
behaves <<'END'
* -snes_mf_operator: operator mffd, CONVERGED_FNORM_RELATIVE
* -snes_mf_operator -dm_mat_type aij: operator mffd, CONVERGED_FNORM_RELATIVE
* -snes_mf_operator -mat_type aij: operator seqaij, DIVERGED_LINEAR_SOLVE
* -snes_mf -mat_type aij: operator seqaij, DIVERGED_LINEAR_SOLVE
END
