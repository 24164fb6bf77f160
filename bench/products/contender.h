/*
   A contender of bench.c: one way to multiply a matrix, with its measurements.
*/
#pragma once

#include <petscspmv.h>
#include "device.h"
#include "mkl.h"
#include "timing.h"
#include "cusparsespmv.h"
#include "kernels.h"

typedef struct {
  char         name[128], viewed[64], note[160];
  PetscBool    ours, variant, library; /* variant: a format of ours with its own options; library: cuSPARSE */
  PetscBool    transpose;              /* all products are transposed */
  PetscInt     type;                   /* its place in the list of types */
  Mat          A;                      /* NULL: a baseline outside PETSc */
  PetscOptions options;
  MKLMatrix    mkl;
#if defined(PETSCSPMV_HAVE_CUDA)
  CuSparseMatrix  cusparse;
  BaselineMat     baseline;
  SpMVCudaStore   kernel;
  cudaGraphExec_t graph; /* of the products of a repetition, with -graph */
#endif
  PetscInt its;                                                                         /* products of one repetition */
  double   convert, first, refresh, refresh_device, warm, cold, warm_least, cold_least; /* seconds */
  double  *warm_t, *cold_t;
  double   error;         /* maximum over all checks; 1 is the bound on rounding errors */
  double   bytes, memory; /* bytes: of the format and the vectors, if known; memory: on the GPU */
} Contender;

static PetscErrorCode Multiply(Contender *c, Vec x, Vec y)
{
  PetscFunctionBeginUser;
#if defined(PETSCSPMV_HAVE_CUDA)
  if (c->cusparse) {
    PetscCall(CuSparseMatMult(c->cusparse, x, y));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (c->kernel || c->baseline.form.name) {
    const PetscScalar *xx;
    PetscScalar       *yy;

    PetscCall(VecCUDAGetArrayRead(x, &xx));
    PetscCall(VecCUDAGetArrayWrite(y, &yy));
    if (c->kernel)
      PetscCallCUDA(SpMVCudaMult(c->kernel, (SpMVCudaProduct){.x = xx, .y = yy}, Device.stream));
    else
      PetscCallCUDA((*c->baseline.form.cuda)(&c->baseline.S, xx, yy, Device.stream));
    PetscCall(VecCUDARestoreArrayWrite(y, &yy));
    PetscCall(VecCUDARestoreArrayRead(x, &xx));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  if (c->A)
    PetscCall(c->transpose ? MatMultTranspose(c->A, x, y) : MatMult(c->A, x, y));
  else
    PetscCall(MKLMatMult(c->mkl, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds the memory that was allocated on the GPU since the previous call; without a GPU it does nothing */
static PetscErrorCode CountMemory(double *used, double *available)
{
  PetscFunctionBeginUser;
#if defined(PETSCSPMV_HAVE_CUDA)
  if (DeviceOn) {
    double now;

    PetscCall(DeviceFreeMemory(&now));
    if (used) *used += *available - now;
    *available = now;
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A type with its own options, "sellp:-mat_sellp_sigma 1". A format (NULL: none) is set up by the first product, which
   is measured */
static PetscErrorCode ContenderSetOptions(Contender *c, const char *format, const char *options)
{
  PetscInt unused;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsCreate(&c->options));
  if (format) PetscCall(PetscOptionsInsertString(c->options, "-mat_spmv_setup_after 0"));
  if (options) PetscCall(PetscOptionsInsertString(c->options, options));
  PetscCall(PetscObjectSetOptions((PetscObject)c->A, c->options));
  PetscCall(MatSetFromOptions(c->A));
  PetscCall(PetscOptionsAllUsed(c->options, &unused));
  PetscCheck(!unused, PetscObjectComm((PetscObject)c->A), PETSC_ERR_ARG_WRONG, "%s: the type knows no such option",
             c->name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* exists: PETSC_FALSE if the matrix cannot be converted to the type */
static PetscErrorCode ContenderCreate(Mat A, const char *name, Contender *c, PetscBool *exists)
{
  MPI_Comm       comm      = PetscObjectComm((PetscObject)A);
  PetscLogDouble t         = 0.0;
  double         available = 0.0;
  const char    *options   = strchr(name, ':'), *format;
  char           type[64];
  MatType        got;
  PetscBool      is;
#if defined(PETSCSPMV_HAVE_CUDA)
  Baseline  form;
  PetscBool baseline, kernel;
#endif

  PetscFunctionBeginUser;
  *exists = PETSC_TRUE;
  PetscCall(PetscMemzero(c, sizeof(*c)));
  PetscCall(PetscStrncpy(c->name, name, sizeof(c->name)));
  PetscCall(PetscStrncpy(type, name, options ? PetscMin(sizeof(type), (size_t)(options - name) + 1) : sizeof(type)));
  c->ours = (PetscBool)(!strcmp(name, MATSELLP) || !strcmp(name, MATEVCHYB));
#if defined(PETSCSPMV_HAVE_CUDA)
  PetscCall(BaselineFind(name, &form, &baseline));
  kernel = (PetscBool)(KernelFind(name) >= 0);
  if (baseline || kernel) PetscCall(BaselineCSRCreate(A));
#endif
  PetscCall(CountMemory(NULL, &available));
  PetscCall(TimeBegin(comm, &t));
  PetscCall(PetscStrcmp(type, "cusparse", &c->library));
  PetscCall(PetscStrcmp(name, "mkl", &is));
  if (c->library) {
#if defined(PETSCSPMV_HAVE_CUDA)
    PetscCheck(DeviceOn, comm, PETSC_ERR_SUP, "%s needs a GPU", name);
    PetscCall(CuSparseMatCreate(A, name, &c->cusparse));
    *exists = (PetscBool)(c->cusparse != NULL);
    if (*exists) PetscCall(PetscStrncpy(c->viewed, CuSparseProducts[c->cusparse->product].viewed, sizeof(c->viewed)));
#else
    SETERRQ(comm, PETSC_ERR_SUP, "%s needs a library with GPU code", name);
#endif
#if defined(PETSCSPMV_HAVE_CUDA)
  } else if (kernel) {
    PetscCall(KernelCreate(name, &c->kernel, &c->bytes, c->note, sizeof(c->note)));
  } else if (baseline) {
    PetscCall(BaselineMatCreate(A, &form, &c->baseline));
    *exists  = (PetscBool)(c->baseline.form.name != NULL);
    c->bytes = StoredBytes(&c->baseline.S);
#endif
  } else if (is) {
    PetscCall(MKLMatCreate(A, &c->mkl));
    PetscCall(PetscStrncpy(c->viewed, "mkl_sparse_mv", sizeof(c->viewed)));
  } else {
    PetscCall(PetscStrcmp(name, MATAIJ, &is));
    if (is) {
      PetscCall(PetscObjectReference((PetscObject)A));
      c->A = A;
    } else {
      PetscCall(PetscStrcmp(type, "sellcuda", &is)); /* AIJ converts to this type only through sell */
      PetscCall(MatConvert(A, is ? MATSELL : type, MAT_INITIAL_MATRIX, &c->A));
      if (is) PetscCall(MatConvert(c->A, type, MAT_INPLACE_MATRIX, &c->A));
      PetscCall(PetscSpMVGetFormat(c->A, &format));
      if (options || format) PetscCall(ContenderSetOptions(c, format, options ? options + 1 : NULL));
    }
    PetscCall(MatGetType(c->A, &got));
    PetscCall(PetscStrncpy(c->viewed, got, sizeof(c->viewed)));
    PetscCall(PetscSpMVGetFormat(c->A, &format));
    c->variant = (PetscBool)(options && format && !c->ours);
  }
  PetscCall(TimeEnd(comm, t, &c->convert));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (kernel && !strcmp(name, "evchyb-paper")) PetscCall(KernelPartition(A, c->note, sizeof(c->note)));
#endif
  PetscCall(CountMemory(&c->memory, &available));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ContenderDestroy(Contender *c)
{
  PetscFunctionBeginUser;
  PetscCall(MKLMatDestroy(&c->mkl));
#if defined(PETSCSPMV_HAVE_CUDA)
  PetscCall(CuSparseMatDestroy(&c->cusparse));
  if (c->graph) PetscCallCUDA(cudaGraphExecDestroy(c->graph));
  PetscCallCUDA(SpMVCudaDestroy(&c->kernel));
  PetscCall(BaselineMatDestroy(&c->baseline));
#endif
  PetscCall(MatDestroy(&c->A));
  PetscCall(PetscOptionsDestroy(&c->options));
  PetscCall(PetscFree(c->warm_t));
  PetscCall(PetscFree(c->cold_t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Multiplies all values by factor, through the arrays if there are any, so that it is not enough for a format to scale
   only its own copy */
static PetscErrorCode ChangeValues(Mat A, PetscScalar factor)
{
  MatType   type;
  PetscBool seq, mpi;

  PetscFunctionBeginUser;
  PetscCall(MatGetType(A, &type));
  PetscCall(PetscStrbeginswith(type, MATSEQAIJ, &seq));
  PetscCall(PetscStrbeginswith(type, MATMPIAIJ, &mpi));
  if (seq || mpi) {
    Mat      block[2] = {A, NULL};
    PetscInt blocks   = 1;

    if (mpi) {
      PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
      blocks = 2;
    }
    for (PetscInt b = 0; b < blocks; b++) {
      PetscScalar *a;
      MatInfo      info;

      PetscCall(MatGetInfo(block[b], MAT_LOCAL, &info));
      PetscCall(MatSeqAIJGetArray(block[b], &a));
      for (PetscCount k = 0; k < (PetscCount)info.nz_used; k++) a[k] *= factor;
      PetscCall(MatSeqAIJRestoreArray(block[b], &a));
    }
  } else
    PetscCall(MatScale(A, factor));
  PetscFunctionReturn(PETSC_SUCCESS);
}
