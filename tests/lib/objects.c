#include "objects.h"

PetscErrorCode MatAssemble(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSizes(Mat A, PetscInt *m, PetscInt *n, PetscInt *M, PetscInt *N)
{
  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, m, n));
  PetscCall(MatGetSize(A, M, N));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode DestroyObjects(void *objects[])
{
  PetscFunctionBegin;
  for (int k = 0; objects[k]; k++) PetscCall(PetscObjectDestroy((PetscObject *)objects[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode OnDevice(const char *type, PetscBool *device)
{
  char      expect[16] = "";
  Mat       A;
  MatType   name;
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, 1, 1, 1, 1));
  PetscCall(MatSetType(A, type));
  PetscCall(MatGetType(A, &name));
  PetscCall(PetscStrbeginswith(name, MATSEQAIJCUSPARSE, device));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-expect", expect, sizeof(expect), NULL));
  PetscCall(PetscStrcmp(expect, *device ? "device" : "host", &same));
  PetscCheck(same || !expect[0], PETSC_COMM_WORLD, PETSC_ERR_USER, "-expect %s, but %s computes on the %s here", expect,
             type, *device ? "device" : "host");
  PetscFunctionReturn(PETSC_SUCCESS);
}
