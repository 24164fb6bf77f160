/*
   A matrix of paper.c, with x and the reference product; also on the GPU.
*/
#pragma once

#include "matrices.h"
#include "../products/baseline.h"
#include "../products/oracle.h"

typedef struct {
  char        name[64];
  const char *origin;
  Mat         A;
  SpMVCSR     csr; /* its arrays */
  Oracle      o;
#if defined(PETSCSPMV_HAVE_CUDA)
  void       *on[3];
  SpMVCudaCSR cuda;
#endif
} Problem;

static PetscErrorCode ProblemCreate(const char *name, Problem *P)
{
  PetscInt  m;
  PetscBool done;
  char     *base;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(P, sizeof(*P)));
  PetscCall(MatrixCreate(PETSC_COMM_SELF, name, &P->A, &P->origin));
  PetscCall(PetscStrrchr(name, '/', &base));
  PetscCall(PetscStrncpy(P->name, base, sizeof(P->name)));
  PetscCall(OracleCreate(P->A, &P->o));
  PetscCall(MatGetSize(P->A, &P->csr.m, &P->csr.n));
  PetscCall(MatGetRowIJ(P->A, 0, PETSC_FALSE, PETSC_FALSE, &m, &P->csr.i, &P->csr.j, &done));
  PetscCall(MatSeqAIJGetArrayRead(P->A, &P->csr.a));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (DeviceOn) PetscCall(CSRToDevice(&P->csr, P->on, &P->cuda));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProblemDestroy(Problem *P)
{
  PetscInt  m;
  PetscBool done;

  PetscFunctionBeginUser;
#if defined(PETSCSPMV_HAVE_CUDA)
  for (int k = 0; k < 3 && DeviceOn; k++) PetscCallCUDA(cudaFree(P->on[k]));
#endif
  PetscCall(MatSeqAIJRestoreArrayRead(P->A, &P->csr.a));
  PetscCall(MatRestoreRowIJ(P->A, 0, PETSC_FALSE, PETSC_FALSE, &m, &P->csr.i, &P->csr.j, &done));
  PetscCall(OracleDestroy(&P->o));
  PetscCall(MatDestroy(&P->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
