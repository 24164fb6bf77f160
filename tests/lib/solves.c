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

PetscErrorCode MakeSolver(MPI_Comm comm, Mat A, PetscInt most, KSP *ksp)
{
  PetscFunctionBegin;
  PetscCall(KSPCreate(comm, ksp));
  PetscCall(KSPSetOptionsPrefix(*ksp, prefix));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetTolerances(*ksp, RTOL, PETSC_DEFAULT, PETSC_DEFAULT, most));
  PetscCall(KSPSetResidualHistory(*ksp, NULL, 400, PETSC_TRUE));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SolveTwice(Record *r, Mat A, PetscInt most, PetscScalar shift, PetscBool random, KSP *solver)
{
  KSP ksp;
  Vec x, b;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecFill(b, 1));
  PetscCall(MakeSolver(PetscObjectComm((PetscObject)A), A, most, &ksp));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(RecordHistory(r, ksp, random));
    if (shift != 0.) PetscCall(MatShift(A, shift));
    PetscCall(MatScale(A, 1.5));
  }
  PetscCall(Destroy(&x, &b));
  if (solver)
    *solver = ksp;
  else
    PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}
