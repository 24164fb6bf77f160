#include "dense.h"

PetscErrorCode DenseGetColumn(Mat D, PetscInt q, Vec v)
{
  const PetscScalar *a;
  PetscScalar       *to;
  PetscInt           n, lda;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(MatDenseGetLDA(D, &lda));
  PetscCall(MatDenseGetArrayRead(D, &a));
  PetscCall(VecGetArrayWrite(v, &to));
  PetscCall(PetscArraycpy(to, a + (size_t)q * (size_t)lda, n));
  PetscCall(VecRestoreArrayWrite(v, &to));
  PetscCall(MatDenseRestoreArrayRead(D, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}
