/*
  Solves in tests.
*/
#include "solves.h"

char prefix[16];

PetscErrorCode Options(const char *options, PetscBool set)
{
  static int serial = 0;

  char **word;
  int    n;

  PetscFunctionBegin;
  if (set) PetscCall(PetscSNPrintf(prefix, sizeof(prefix), "s%d_", serial++));
  PetscCall(PetscStrToArray(options, ' ', &n, &word));
  for (int k = 0; k < n; k++) {
    char      name[128];
    PetscBool value =
        (PetscBool)(k + 1 < n && (word[k + 1][0] != '-' || (word[k + 1][1] >= '0' && word[k + 1][1] <= '9')));

    PetscCall(PetscSNPrintf(name, sizeof(name), "-%s%s", prefix, word[k] + 1));
    if (set)
      PetscCall(PetscOptionsSetValue(NULL, name, value ? word[k + 1] : NULL));
    else
      PetscCall(PetscOptionsClearValue(NULL, name));
    if (value) k++;
  }
  PetscCall(PetscStrToArrayDestroy(n, word));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RecordHistory(Record *r, KSP ksp, PetscBool random)
{
  const PetscReal   *history;
  PetscInt           n, its;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(RecordInt(r, "converged reason", (PetscInt64)reason));
  PetscCall(KSPGetIterationNumber(ksp, &its));
  if (SINGLE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(RecordAdd(r, "iterations", 0, its, random ? 2 : 0, NULL));
  if (random) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGetResidualHistory(ksp, &history, &n));
  for (PetscInt k = 0; k < n; k++)
    PetscCall(RecordAdd(r, "residual of step", k, history[k], 1e-3 * history[k] + RTOL * history[0], NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}
