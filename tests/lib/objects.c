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
