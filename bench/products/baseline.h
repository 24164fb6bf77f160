/*
   The formats of formats/formats.h as contenders of a benchmark on the GPU: made of a sequential AIJ matrix.
*/
#pragma once

#include "csr.h"
#include "device.h"
#include "formats/formats.h"

#if defined(PETSCSPMV_HAVE_CUDA)
typedef struct {
  Baseline form; /* name NULL: none */
  Stored   S;    /* on the device */
} BaselineMat;

/* The arrays of the matrix that is measured, on the GPU, of which formats are made */
static struct {
  void       *at[3]; /* NULL: not there */
  SpMVCudaCSR device;
} BaselineCSR;

/* Copies the arrays of a matrix to the GPU, unless they are there */
static inline PetscErrorCode BaselineCSRCreate(Mat A)
{
  SpMVCSR csr;

  PetscFunctionBeginUser;
  if (BaselineCSR.at[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetCSR(A, &csr));
  {
    const size_t      nz       = (size_t)csr.i[csr.m];
    const void *const host[3]  = {csr.i, csr.j, csr.a};
    const size_t      bytes[3] = {((size_t)csr.m + 1) * sizeof(*csr.i), nz * sizeof(*csr.j), nz * sizeof(*csr.a)};

    for (int k = 0; k < 3; k++) PetscCallCUDA(cudaMalloc(&BaselineCSR.at[k], bytes[k] + 16));
    PetscCallCUDA(SpMVCudaUpload(3, BaselineCSR.at, host, bytes));
  }
  BaselineCSR.device = (SpMVCudaCSR){.m           = csr.m,
                                     .n           = csr.n,
                                     .nnz         = csr.i[csr.m],
                                     .i           = BaselineCSR.at[0],
                                     .j           = BaselineCSR.at[1],
                                     .a           = (const PetscScalar *)BaselineCSR.at[2],
                                     .index_bytes = (int)sizeof(PetscInt)};
  PetscCall(MatRestoreCSR(A, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After the formats that were made of them */
static inline PetscErrorCode BaselineCSRDestroy(void)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 3; k++) {
    PetscCallCUDA(cudaFree(BaselineCSR.at[k]));
    BaselineCSR.at[k] = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The format of this name, if there is one; csr5:N is CSR5 with sigma = N */
static inline PetscErrorCode BaselineFind(const char *name, Baseline *form, PetscBool *found)
{
  PetscFunctionBeginUser;
  *found = PETSC_FALSE;
  for (int k = 0; k < BaselineCount && DeviceOn && !*found; k++) {
    int sigma = 0, end = 0;

    *form  = Baselines[k];
    *found = (PetscBool)!strcmp(name, form->name);
    if (!*found && !strcmp(form->name, "csr5") && sscanf(name, "csr5:%d%n", &sigma, &end) == 1) {
      PetscCheck(!name[end] && sigma >= 1 && sigma <= 32, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
                 "-types: %s: sigma must be 1 to 32, as in csr5:16", name);
      form->parameter = (PetscInt)sigma;
      *found          = PETSC_TRUE;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A must exist as long as the format; its arrays are on the GPU: BaselineCSRCreate(). No format if there would be too
   much padding */
static inline PetscErrorCode BaselineMatCreate(Mat A, const Baseline *form, BaselineMat *B)
{
  SpMVCSR csr;
  Stored  structure;
  double  room;

  PetscFunctionBeginUser;
  PetscCall(DeviceFreeMemory(&room));
  PetscCall(MatGetCSR(A, &csr));
  PetscCall(StoredCreate(form, &csr, &structure));
  if (structure.stored >= 0 && StoredBytes(&structure) < 0.9 * room) {
    B->form = *form;
    PetscCallCUDA(StoredUpload(&structure, &BaselineCSR.device, &B->S, Device.stream));
  }
  PetscCall(StoredDestroy(&structure));
  PetscCall(MatRestoreCSR(A, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode BaselineMatDestroy(BaselineMat *B)
{
  PetscFunctionBeginUser;
  if (!B->form.name) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscCallCUDA(StoredRelease(&B->S));
  B->form.name = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
