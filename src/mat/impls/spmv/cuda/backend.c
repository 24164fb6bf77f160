/*
  The table of what is done on a device.
*/
#include "matspmvcuda.h"

static int SpMVDevices(void)
{
  int devices = 0;

  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  (void)cudaGetLastError(); /* no device is not an error */
  return devices;
}

static PetscErrorCode SpMVBegin_CUDA(void)
{
  PetscFunctionBegin;
  PetscCall(SpMVDeviceCheckMPI(PETSC_COMM_WORLD));
  PetscCall(SpMVRegisterFactors());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVEnd_CUDA(void)
{
  PetscFunctionBegin;
  PetscCallCUDA(SpMVCudaFinalize());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSpMVAssembled_CUDA(Mat A, PetscBool mpi)
{
  PetscFunctionBegin;
  if (mpi)
    PetscCall(MatSpMVSetBlockSizes_MPICUDA(A));
  else {
    PetscCall(MatSpMVMarkEmpty_SeqCUDA(A));
    PetscCall(MatSpMVSetCopy_SeqCUDA(A, PETSC_TRUE));
    PetscCall(MatSpMVPrepare_SeqCUDA(A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVHostIsNewer_CUDA(Mat A)
{
  PetscBool same;

  PetscFunctionBegin;
  /* an MPI matrix has no values of its own */
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJCUSPARSE, &same));
  if (same && A->offloadmask != PETSC_OFFLOAD_UNALLOCATED) A->offloadmask = PETSC_OFFLOAD_CPU;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSpMVDestroy_CUDA(Mat_SpMV *spmv)
{
  PetscFunctionBegin;
  PetscCall(MatSpMVForget_CUDA(spmv));
  PetscCall(SpMVHaloDestroy(&spmv->cuda->exchange.halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The memory for assembly from coordinates: either all ranks have a map or none does */
static PetscErrorCode MatSpMVView_CUDA(Mat A, Mat_SpMV *spmv, PetscViewer viewer)
{
  PetscBool  has;
  PetscInt64 bytes[2];

  PetscFunctionBegin;
  if (spmv->cuda->exchange.halo)
    PetscCall(PetscViewerASCIIPrintf(viewer, "%s format, halo: %s\n", spmv->format->name,
                                     SpMVHaloDescribe(spmv->cuda->exchange.halo)));
  PetscCall(MatSpMVGetCOOBytes(A, &has, bytes));
  if (!has) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, bytes, 2, MPIU_INT64, MPI_SUM, PetscObjectComm((PetscObject)A)));
  PetscCall(PetscViewerASCIIPrintf(viewer,
                                   "%s format, map of MatSetPreallocationCOO(): %" PetscInt64_FMT
                                   " bytes, AIJCUSPARSE's arrays: %" PetscInt64_FMT " bytes\n",
                                   spmv->format->name, bytes[0], bytes[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const SpMVBackend SpMVCUDA = {
    .bytes   = sizeof(Mat_SpMVCUDA),
    .devices = SpMVDevices,
    .begin   = SpMVBegin_CUDA,
    .end     = SpMVEnd_CUDA,
    .setops  = {{MatSpMVSetOps_SeqCUDA, MatSpMVSetOps_ProductCUDA, MatSpMVSetOps_SeqCUSPARSE, MatSpMVSetOps_SeqValues},
                {MatSpMVSetOps_MPICUDA, MatSpMVSetOps_ProductCUDA, MatSpMVSetOps_MPICUSPARSE, MatSpMVSetOps_MPICOO,
                 MatSpMVSetOps_MPIValues}},
    .compose = {MatSpMVCompose_DenseCUDA, MatSpMVCompose_CUSPARSE, MatSpMVCompose_COO, MatSpMVCompose_Values},
    .assembled   = MatSpMVAssembled_CUDA,
    .forget      = MatSpMVForget_CUDA,
    .destroy     = MatSpMVDestroy_CUDA,
    .view        = MatSpMVView_CUDA,
    .transpose   = MatSpMVTranspose_SeqCUDA,
    .hostisnewer = SpMVHostIsNewer_CUDA,
    .takenumeric = SpMVProductTakeNumeric,
    .applyseq    = MatSpMVApply_SeqCUDA,
    .applympi    = MatSpMVApply_MPICUDA,
    .getready    = MatSpMVGetReady_SeqCUDA,
    .getstats    = MatSpMVGetStats_SeqCUDA,
};
