/*
   A matrix of paper.c, with x and the reference product; also on the GPU.
*/
#pragma once

#include "matrices.h"
#include "../products/formats/formats.h"
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
  if (DeviceOn) {
    const size_t      nz       = (size_t)P->csr.i[P->csr.m];
    const void *const host[3]  = {P->csr.i, P->csr.j, P->csr.a};
    const size_t      bytes[3] = {((size_t)P->csr.m + 1) * sizeof(PetscInt), nz * sizeof(PetscInt),
                                  nz * sizeof(PetscScalar)};

    for (int k = 0; k < 3; k++) PetscCallCUDA(cudaMalloc(&P->on[k], bytes[k] + 16));
    PetscCallCUDA(SpMVCudaUpload(3, P->on, host, bytes));
    P->cuda.m           = P->csr.m;
    P->cuda.n           = P->csr.n;
    P->cuda.nnz         = P->csr.i[P->csr.m];
    P->cuda.i           = P->on[0];
    P->cuda.j           = P->on[1];
    P->cuda.a           = (const PetscScalar *)P->on[2];
    P->cuda.index_bytes = (int)sizeof(PetscInt);
  }
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
