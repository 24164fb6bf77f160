/* -mat_<type>_setup_after: AIJ multiplies until enough products have been computed */
#include "options.h"

PetscErrorCode ViewContains(Mat A, const char text[], PetscBool *found)
{
  FILE       *file = tmpfile();
  char       *view, *at;
  long        n;
  PetscViewer v;

  PetscFunctionBegin;
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "no temporary file");
  PetscCall(PetscViewerASCIIOpenWithFILE(PETSC_COMM_SELF, file, &v));
  PetscCall(PetscViewerPushFormat(v, PETSC_VIEWER_ASCII_INFO));
  PetscCall(MatView(A, v));
  PetscCall(PetscViewerPopFormat(v));
  PetscCall(PetscViewerFlush(v));
  n = ftell(file);
  PetscCall(PetscCalloc1(n + 1, &view));
  rewind(file);
  PetscCheck(fread(view, 1, (size_t)n, file) == (size_t)n, PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "cannot read the view back");
  PetscCall(PetscStrstr(view, text, &at));
  *found = (PetscBool) !!at;
  PetscCall(PetscFree(view));
  PetscCall(PetscViewerDestroy(&v));
  fclose(file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of the type with this option; its products are counted from here on */
static PetscErrorCode MakeWaiting(Test *t, const char after[], Mat *A)
{
  char option[64];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(option, sizeof(option), "-wait_mat_%s_setup_after", now.under));
  PetscCall(PetscOptionsSetValue(NULL, option, after));
  PetscCall(Make(t, A));
  PetscCall(MatSetOptionsPrefix(*A, "wait_"));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(PetscOptionsClearValue(NULL, option));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tests whether the set-up of A's format is pending, where that can be observed: on one rank, on the host, for the type under test */
static PetscErrorCode ExpectWaiting(Test *t, Mat A, PetscBool waits, const char when[])
{
  PetscBool aij, found;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(t->type, MATAIJ, &aij));
  if (aij || now.device || t->size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ViewContains(A, "not yet set up", &found));
  PetscCheck(found == waits, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s the format is %s", when, found ? "not yet set up" : "set up");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(Test *t, Record *r, Mat A, PetscInt n)
{
  Vec x, y, z;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(x, &z));
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(VecFill(x, 3 + k));
    PetscCall(MatMult(A, x, y));
    PetscCall(RecordVec(r, "product", y, NULL, 100));
    PetscCall(MatMultTranspose(A, y, z));
    PetscCall(RecordVec(r, "transposed product", z, NULL, 400));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The products are right before the format is set up, when it is set up, and when values change after few or many products. Calls that need the format set it
   up */
PetscErrorCode SetUpAfter(Test *t, Record *r)
{
  Mat           A;
  PetscBool     aij;
  PetscSpMVInfo info;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(t->type, MATAIJ, &aij));
  PetscCall(MakeWaiting(t, "6", &A));
  PetscCall(ExpectWaiting(t, A, PETSC_TRUE, "before the first product"));
  PetscCall(Products(t, r, A, 2));
  PetscCall(MatScale(A, 2.));
  PetscCall(ExpectWaiting(t, A, PETSC_TRUE, "after four products"));
  PetscCall(Products(t, r, A, 2));
  PetscCall(ExpectWaiting(t, A, PETSC_FALSE, "after eight products"));
  for (PetscInt n = 0; n < 3; n++) {
    PetscCall(MatScale(A, 3.));
    PetscCall(Products(t, r, A, n));
  }
  PetscCall(MatScale(A, .25));
  PetscCall(Products(t, r, A, 1));
  PetscCall(MatDestroy(&A));
  PetscCall(MakeWaiting(t, "1000000", &A));
  PetscCall(Products(t, r, A, 1));
  PetscCall(ExpectWaiting(t, A, PETSC_TRUE, "after few products"));
  if (!aij) PetscCall(PetscSpMVGetInfo(A, &info));
  PetscCall(ExpectWaiting(t, A, PETSC_FALSE, "after PetscSpMVGetInfo()"));
  PetscCall(Products(t, r, A, 1));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
