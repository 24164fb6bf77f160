/*
  Solves of devicebatch on the device.
*/
#include "krylov.h"
#include "ksp/impls/device/devicebatch.h"
#include "core/cuda/krylov/batch.h"

/* The plan of the launches, and the options that it was made for */
struct _n_KSPDeviceBatchRun {
  SpMVCudaBatch    batch;
  SpMVBatchOptions options;
};

PetscErrorCode KSPDeviceBatchReset_CUDA(KSP_DeviceBatch *k)
{
  cudaError_t error = cudaSuccess;

  PetscFunctionBegin;
  if (k->run->batch) error = SpMVCudaBatchDestroy(&k->run->batch);
  PetscCall(PetscFree(k->run));
  PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *done: there is a plan; otherwise the device lacks memory or code */
static PetscErrorCode KSPDeviceBatchPlan(KSP_DeviceBatch *k, Mat D, cudaStream_t stream, PetscBool *done)
{
  const SpMVBatchOptions *o = &k->options, *last = k->run && k->run->batch ? &k->run->options : NULL;
  SpMVCSR                 csr;
  cudaError_t             error;

  PetscFunctionBegin;
  *done = (PetscBool)(last && last->method == o->method && last->left == o->left && last->restart == o->restart &&
                      !last->pc == !o->pc);
  if (*done) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->run) PetscCall(KSPDeviceBatchReset_CUDA(k));
  PetscCall(MatSpMVGetPattern_Seq(D, &csr));
  PetscCall(PetscNew(&k->run));
  k->run->options = *o;
  error           = SpMVCudaBatchCreate(o, (int)k->problems, k->first, csr.i, stream, &k->run->batch);
  PetscCall(MatSpMVRestorePattern_Seq(D, &csr));
  PetscCall(SpMVValuesTried(error, done));
  if (!*done) PetscCall(KSPDeviceBatchReset_CUDA(k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceBatchRun_CUDA(KSP ksp, KSP_DeviceBatch *k, Mat D)
{
  const PetscScalar *b, *d = NULL;
  PetscScalar       *x;
  SpMVValues         v;

  PetscFunctionBegin;
  PetscCall(SpMVValuesGet(D, PETSC_FALSE, &v));
  PetscCall(VecCUDAGetArrayRead(ksp->vec_rhs, &b));
  PetscCall(VecCUDAGetArray(ksp->vec_sol, &x));
  if (k->options.pc == SPMV_BATCH_GIVEN) PetscCall(VecCUDAGetArrayRead(k->diagonal, &d));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCallCUDA(SpMVCudaBatchSolve(k->run->batch, &v.csr, &k->options, d, b, x, v.stream));
  PetscCall(PetscLogGpuTimeEnd());
  if (d) PetscCall(VecCUDARestoreArrayRead(k->diagonal, &d));
  PetscCall(VecCUDARestoreArray(ksp->vec_sol, &x));
  PetscCall(VecCUDARestoreArrayRead(ksp->vec_rhs, &b));
  PetscCall(SpMVValuesRestore(D, &v));
  PetscCallCUDA(SpMVCudaBatchGetResults(k->run->batch, &k->results, v.stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceBatchSolve_CUDA(KSP ksp, KSP_DeviceBatch *k, Mat D, PetscBool *done)
{
  cudaStream_t stream;
  char         why[256] = "";
  PetscBool    cusparse;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(PetscStrbeginswith(((PetscObject)D)->type_name, MATSEQAIJCUSPARSE, &cusparse));
  if (!cusparse || D->boundtocpu || D->structure_only) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPDeviceWhyNotVec(ksp->vec_sol, why, sizeof(why)));
  PetscCall(KSPDeviceWhyNotVec(ksp->vec_rhs, why, sizeof(why)));
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(KSPDeviceBatchPlan(k, D, stream, done));
  if (*done) PetscCall(KSPDeviceBatchRun_CUDA(ksp, k, D));
  PetscFunctionReturn(PETSC_SUCCESS);
}
