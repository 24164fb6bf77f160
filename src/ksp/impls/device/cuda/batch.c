/*
  Solves of devicebatch on the device.
*/
#include "krylov.h"
#include "ksp/impls/device/devicebatch.h"
#include "core/cuda/krylov/batch.h"

/* The plan of the launches, and what it was made for */
struct _n_KSPDeviceBatchRun {
  SpMVCudaBatch    batch;
  PetscObjectId    block;
  PetscObjectState nonzerostate;
  PetscInt         problems, *first;
  SpMVBatchOptions options;
};
typedef struct _n_KSPDeviceBatchRun KSPDeviceBatchRun;

PetscErrorCode KSPDeviceBatchReset_CUDA(KSP_DeviceBatch *k)
{
  cudaError_t error = cudaSuccess;

  PetscFunctionBegin;
  if (k->run->batch) error = SpMVCudaBatchDestroy(&k->run->batch);
  PetscCall(PetscFree(k->run->first));
  PetscCall(PetscFree(k->run));
  PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceBatchFetch_CUDA(KSP_DeviceBatch *k)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(SpMVCudaBatchGetResults(k->run->batch, k->results, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the plan is that of these problems */
static PetscErrorCode KSPDeviceBatchIsCurrent(KSP_DeviceBatch *k, Mat D, const PetscInt first[], PetscBool *is)
{
  const KSPDeviceBatchRun *run = k->run;
  const SpMVBatchOptions  *o   = &k->options;

  PetscFunctionBegin;
  *is = (PetscBool)(run && run->block == ((PetscObject)D)->id && run->nonzerostate == D->nonzerostate &&
                    run->problems == k->problems && run->options.method == o->method && run->options.left == o->left &&
                    run->options.restart == o->restart && !run->options.pc == !o->pc);
  if (*is) PetscCall(PetscArraycmp(run->first, first, k->problems + 1, is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *done: there is a plan; otherwise the device lacks memory or code */
static PetscErrorCode KSPDeviceBatchPlan(KSP_DeviceBatch *k, Mat D, const PetscInt first[], cudaStream_t stream,
                                         PetscBool *done)
{
  SpMVCSR            csr;
  cudaError_t        error;
  KSPDeviceBatchRun *run;

  PetscFunctionBegin;
  PetscCall(KSPDeviceBatchIsCurrent(k, D, first, done));
  if (*done) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->run) PetscCall(KSPDeviceBatchReset_CUDA(k));
  PetscCall(MatSpMVGetPattern_Seq(D, &csr));
  PetscCall(PetscNew(&k->run));
  run   = k->run;
  error = SpMVCudaBatchCreate(&k->options, (int)k->problems, first, csr.i, stream, &run->batch);
  PetscCall(MatSpMVRestorePattern_Seq(D, &csr));
  PetscCall(SpMVValuesTried(error, done));
  if (!*done) PetscFunctionReturn(KSPDeviceBatchReset_CUDA(k));
  PetscCall(PetscMalloc1(k->problems + 1, &run->first));
  PetscCall(PetscArraycpy(run->first, first, k->problems + 1));
  run->block        = ((PetscObject)D)->id;
  run->nonzerostate = D->nonzerostate;
  run->problems     = k->problems;
  run->options      = k->options;
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
  PetscCallCUDA(SpMVCudaBatchGetSummary(k->run->batch, &k->summary, v.stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceBatchSolve_CUDA(KSP ksp, KSP_DeviceBatch *k, Mat D, const PetscInt first[], PetscBool *done)
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
  PetscCall(KSPDeviceBatchPlan(k, D, first, stream, done));
  if (*done) PetscCall(KSPDeviceBatchRun_CUDA(ksp, k, D));
  PetscFunctionReturn(PETSC_SUCCESS);
}
