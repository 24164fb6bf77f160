/*
   The formats of formats/formats.h as contenders of a benchmark: made of a sequential AIJ matrix, multiplied on the host
   or on the GPU.
*/
#pragma once

#include "device.h"
#include "formats/formats.h"

typedef struct {
  const Baseline *form; /* NULL: none */
  Stored          S;    /* on the device or on the host */
#if defined(PETSCSPMV_HAVE_CUDA)
  void *csr[3]; /* the arrays that CSR borrows */
#endif
} BaselineMat;

#if defined(PETSCSPMV_HAVE_CUDA)
/* Copies the arrays of a matrix to the GPU, into memory that the caller frees */
static inline PetscErrorCode CSRToDevice(const SpMVCSR *csr, void *on[3], SpMVCudaCSR *device)
{
  const size_t      nz       = (size_t)csr->i[csr->m];
  const void *const host[3]  = {csr->i, csr->j, csr->a};
  const size_t      bytes[3] = {((size_t)csr->m + 1) * sizeof(*csr->i), nz * sizeof(*csr->j), nz * sizeof(*csr->a)};

  PetscFunctionBeginUser;
  for (int k = 0; k < 3; k++) PetscCallCUDA(cudaMalloc(&on[k], bytes[k] + 16));
  PetscCallCUDA(SpMVCudaUpload(3, on, host, bytes));
  PetscCall(PetscMemzero(device, sizeof(*device)));
  device->m           = csr->m;
  device->n           = csr->n;
  device->nnz         = csr->i[csr->m];
  device->i           = on[0];
  device->j           = on[1];
  device->a           = (const PetscScalar *)on[2];
  device->index_bytes = (int)sizeof(PetscInt);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The format of this name, if it has a product here */
static inline const Baseline *BaselineFind(const char *name)
{
  for (int k = 0; k < BaselineCount; k++) {
    PetscBool here = (PetscBool)(Baselines[k].mult != NULL);

#if defined(PETSCSPMV_HAVE_CUDA)
    if (DeviceOn) here = (PetscBool)(Baselines[k].cuda != NULL);
#endif
    if (here && !strcmp(name, Baselines[k].name)) return &Baselines[k];
  }
  return NULL;
}

/* A must exist as long as the format. No format if there would be too much padding */
static inline PetscErrorCode BaselineMatCreate(Mat A, const Baseline *form, BaselineMat *B)
{
  SpMVCSR   csr;
  PetscInt  m;
  PetscBool done;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &csr.m, &csr.n));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &csr.i, &csr.j, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_SUP, "The matrix does not show its rows");
  PetscCall(MatSeqAIJGetArrayRead(A, &csr.a));
  PetscCall(StoredCreate(form, &csr, &B->S));
  if (B->S.stored < 0)
    PetscCall(StoredDestroy(&B->S));
  else {
    B->form = form;
#if defined(PETSCSPMV_HAVE_CUDA)
    if (DeviceOn) {
      SpMVCudaCSR on;
      Stored      structure = B->S;

      PetscCall(CSRToDevice(&csr, B->csr, &on));
      PetscCallCUDA(StoredUpload(&structure, &on, &B->S, Device.stream));
      for (int k = 0; k < 3 && !B->S.borrowed; k++) {
        PetscCallCUDA(cudaFree(B->csr[k]));
        B->csr[k] = NULL;
      }
      PetscCall(StoredDestroy(&structure));
    } else
#endif
      PetscCall(StoredFill(&B->S, &csr));
  }
  PetscCall(MatSeqAIJRestoreArrayRead(A, &csr.a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &csr.i, &csr.j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode BaselineMatMult(const BaselineMat *B, Vec xx, Vec yy)
{
  const PetscScalar *x;
  PetscScalar       *y;

  PetscFunctionBeginUser;
#if defined(PETSCSPMV_HAVE_CUDA)
  if (DeviceOn) {
    PetscCall(VecCUDAGetArrayRead(xx, &x));
    PetscCall(VecCUDAGetArrayWrite(yy, &y));
    PetscCallCUDA((*B->form->cuda)(&B->S, x, y, Device.stream));
    PetscCall(VecCUDARestoreArrayWrite(yy, &y));
    PetscCall(VecCUDARestoreArrayRead(xx, &x));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(VecGetArrayRead(xx, &x));
  PetscCall(VecGetArrayWrite(yy, &y));
  (*B->form->mult)(&B->S, x, y);
  PetscCall(VecRestoreArrayWrite(yy, &y));
  PetscCall(VecRestoreArrayRead(xx, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode BaselineMatDestroy(BaselineMat *B)
{
  PetscFunctionBeginUser;
  if (!B->form) PetscFunctionReturn(PETSC_SUCCESS);
#if defined(PETSCSPMV_HAVE_CUDA)
  if (DeviceOn) {
    PetscCallCUDA(cudaDeviceSynchronize());
    PetscCallCUDA(StoredRelease(&B->S));
    for (int k = 0; k < 3; k++) PetscCallCUDA(cudaFree(B->csr[k]));
  } else
#endif
    PetscCall(StoredDestroy(&B->S));
  B->form = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
