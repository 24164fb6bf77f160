/*
   The arrays of a sequential AIJ matrix, for products outside of PETSc.
*/
#pragma once

#include <petscmat.h>
#include "core/spmvcore.h"

static inline PetscErrorCode MatGetCSR(Mat A, SpMVCSR *csr)
{
  PetscInt  m;
  PetscBool done;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &csr->m, &csr->n));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &csr->i, &csr->j, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_SUP, "The matrix does not show its rows");
  PetscCall(MatSeqAIJGetArrayRead(A, &csr->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode MatRestoreCSR(Mat A, SpMVCSR *csr)
{
  PetscInt  m;
  PetscBool done;

  PetscFunctionBeginUser;
  PetscCall(MatSeqAIJRestoreArrayRead(A, &csr->a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &csr->i, &csr->j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}
