/*
  The table of what is done on a device, and the check whether MPI supports device arrays.
*/
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "matspmvcuda.h"
#include <petsc/private/petscimpl.h> /* use_gpu_aware_mpi */
#include <dlfcn.h>

static int SpMVDevices(void)
{
  int devices = 0;

  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  (void)cudaGetLastError(); /* no device is not an error */
  return devices;
}

/*
  When PETSc first uses a device, each process, even a single one, sends a device array to itself. PETSc aborts if that
  fails, unless -use_gpu_aware_mpi 0 was given. The option sets the variable use_gpu_aware_mpi, which PETSc reads at
  that point, when it creates a PetscSF, for hypre, and for -log_view. So if MPI reports that it does not support device
  arrays, set the variable to false as the option would.

  Nothing is done if MPI has no function that reports this, or if the device shares the host's page tables: any MPI may
  be able to read the memory of such a device.
*/
static PetscErrorCode SpMVDeviceCheckMPI(MPI_Comm comm)
{
  int (*openmpi)(void)       = (int (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
  int (*mpich)(int, int *)   = (int (*)(int, int *))dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support");
  const char *const option[] = {"-use_gpu_aware_mpi", "-sf_use_gpu_aware_mpi"};
  int               devices = 0, aware = 1, shared = 0;
  PetscMPIInt       size;

  PetscFunctionBegin;
  if (!use_gpu_aware_mpi || PetscDeviceInitialized(PETSC_DEVICE_CUDA)) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) {
    PetscBool set;

    PetscCall(PetscOptionsHasName(NULL, NULL, option[k], &set));
    if (set) PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (openmpi)
    aware = openmpi();
  else if (mpich)
    PetscCallMPI(mpich(0 /* MPIX_GPU_SUPPORT_CUDA */, &aware));
  if (aware) PetscFunctionReturn(PETSC_SUCCESS);
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  if (!devices || cudaDeviceGetAttribute(&shared, cudaDevAttrPageableMemoryAccessUsesHostPageTables, 0) != cudaSuccess)
    shared = 1;
  (void)cudaGetLastError(); /* no device is not an error */
  if (shared) PetscFunctionReturn(PETSC_SUCCESS);

  use_gpu_aware_mpi = PETSC_FALSE;
  PetscCall(PetscInfo(NULL, "MPI reports no support for device arrays; continuing as with -use_gpu_aware_mpi 0\n"));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  if (size > 1)
    PetscCall(PetscFPrintf(comm, PETSC_STDERR,
                           "PetscSpMV: this MPI does not support device arrays, so PETSc communicates through host "
                           "memory (-use_gpu_aware_mpi 0 "
                           "silences this)\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
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
  PetscCall(SpMVPinnedFree());
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
    PetscCall(MatSpMVWarmUp_SeqCUDA(A));
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

static PetscErrorCode MatSpMVView_CUDA(Mat A, Mat_SpMV *spmv, PetscViewer viewer)
{
  PetscFunctionBegin;
  if (spmv->cuda->exchange.halo)
    PetscCall(PetscViewerASCIIPrintf(viewer, "%s format, halo: %s\n", spmv->format->name,
                                     SpMVHaloDescribe(spmv->cuda->exchange.halo)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVWhyNot_CUDA(Mat A, const char off[], char why[], size_t len)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  why[0] = 0;
  PetscCall(MatSpMVGet(A, &spmv));
  if (off)
    PetscCall(PetscStrncpy(why, off, len));
  else if (!spmv)
    PetscCall(PetscSNPrintf(why, len, "the matrix is of type %s", ((PetscObject)A)->type_name));
  else if (!spmv->device)
    PetscCall(PetscStrncpy(why, "the matrix is on the host", len));
  else if (A->boundtocpu)
    PetscCall(PetscStrncpy(why, "the matrix is bound to the CPU", len));
  else if (!SpMVCudaIsSupported())
    PetscCall(PetscStrncpy(why, "the library was not compiled for this GPU", len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const SpMVBackend SpMVCUDA = {
    .bytes       = sizeof(Mat_SpMVCUDA),
    .devices     = SpMVDevices,
    .begin       = SpMVBegin_CUDA,
    .end         = SpMVEnd_CUDA,
    .setops      = {{MatSpMVSetOps_SeqCUDA, MatSpMVSetOps_ProductCUDA, MatSpMVSetOps_SeqCUSPARSE, MatSpMVSetOps_Values},
                    {MatSpMVSetOps_MPICUDA, MatSpMVSetOps_ProductCUDA, MatSpMVSetOps_MPICUSPARSE, MatSpMVSetOps_MPICOO,
                     MatSpMVSetOps_Values}},
    .compose     = {MatSpMVCompose_DenseCUDA, MatSpMVCompose_CUSPARSE, MatSpMVCompose_COO},
    .assembled   = MatSpMVAssembled_CUDA,
    .forget      = MatSpMVForget_CUDA,
    .destroy     = MatSpMVDestroy_CUDA,
    .view        = MatSpMVView_CUDA,
    .hostisnewer = SpMVHostIsNewer_CUDA,
    .takenumeric = SpMVProductTakeNumeric,
    .symbolic    = MatProductSymbolic_SpMVCUDA,
    .applyseq    = MatSpMVApply_SeqCUDA,
    .applympi    = MatSpMVApply_MPICUDA,
    .getready    = MatSpMVGetReady_SeqCUDA,
    .getstats    = MatSpMVGetStats_SeqCUDA,
    .writevalues = MatSpMVWriteValues_SeqCUDA,
    .isdevicearray = SpMVIsDeviceArray,
};
