/*
  Sums over ranks in a solve on the device.
*/
#include "krylov.h"

/* Sums through the host */
static cudaError_t KSPDeviceAllReduce_MPI(void *ctx, PetscReal *sums, int count, cudaStream_t stream)
{
  KSPDeviceRun *run   = (KSPDeviceRun *)ctx;
  const size_t  bytes = (size_t)count * sizeof(PetscReal);
  cudaError_t   error = cudaMemcpyAsync(run->staged, sums, bytes, cudaMemcpyDeviceToHost, stream);

  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess) return error;
  if (MPI_Allreduce(MPI_IN_PLACE, run->staged, count, MPIU_REAL, MPIU_SUM, run->comm)) return cudaErrorUnknown;
  return cudaMemcpyAsync(sums, run->staged, bytes, cudaMemcpyHostToDevice, stream);
}

static cudaError_t KSPDeviceAllReduce_NCCL(void *ctx, PetscReal *sums, int count, cudaStream_t stream)
{
  return SpMVCudaCommSum(((KSPDeviceRun *)ctx)->nccl, sums, count, stream);
}

/* Collective. Gives the ranks access to each other's memory; if that fails on one rank, all ranks get the reason */
static PetscErrorCode KSPDeviceOpenPeers(KSPDeviceRun *run, PetscMPIInt rank, PetscMPIInt size,
                                         char reason[SPMV_HALO_TEXT])
{
  cudaIpcMemHandle_t mine, *theirs = NULL;
  cudaError_t        error;

  PetscFunctionBegin;
  PetscCall(SpMVAgreeOnMemory(run->comm, (size_t)size * sizeof(*theirs), &theirs));
  PetscCall(PetscMemzero(&mine, sizeof(mine)));
  error = SpMVCudaKrylovGetOffer(run->krylov, size, &mine);
  PetscCall(SpMVHaloAgree(run->comm, error, reason));
  if (!reason[0]) {
    PetscCallMPI(MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, theirs, sizeof(mine), MPI_BYTE, run->comm));
    error      = SpMVCudaKrylovOpen(run->krylov, rank, theirs);
    run->peers = PETSC_TRUE;
    PetscCall(SpMVHaloAgree(run->comm, error, reason));
  }
  PetscCall(PetscFree(theirs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceStage(KSPDeviceRun *run)
{
  PetscFunctionBegin;
  if (!run->staged)
    PetscCallCUDA(cudaHostAlloc((void **)&run->staged, SPMV_KRYLOV_SUMS * sizeof(PetscReal), cudaHostAllocDefault));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. Sets up the fastest way to sum over ranks that -mat_spmv_halo allows */
PetscErrorCode KSPDeviceSetUpSums(Mat A, KSPDeviceRun *run)
{
  SpMVHaloOptions options;
  Mat_SpMV       *spmv;
  SpMVCudaComm    comm;
  PetscMPIInt     rank, size;
  char            reason[SPMV_HALO_TEXT] = "";

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(run->comm, &rank));
  PetscCallMPI(MPI_Comm_size(run->comm, &size));
  if (size == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatSpMVGetHaloOptions_MPI(A, spmv, &options));
  if (options.type == SPMV_HALO_AUTO || options.type == SPMV_HALO_PEER) {
    PetscCall(SpMVHaloGetComm(run->comm, SPMV_TRANSPORT_PEER, &comm, reason));
    if (!reason[0]) PetscCall(KSPDeviceOpenPeers(run, rank, size, reason));
    if (!reason[0]) {
      run->transport = SPMV_TRANSPORT_PEER;
      run->sums      = ", sums over ranks from GPU to GPU";
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  reason[0] = 0;
  if (options.type == SPMV_HALO_AUTO || options.type == SPMV_HALO_NCCL) {
    PetscCall(SpMVHaloGetComm(run->comm, SPMV_TRANSPORT_NCCL, &run->nccl, reason));
    if (!reason[0]) {
      run->transport = SPMV_TRANSPORT_NCCL;
      run->sums      = ", sums over ranks by NCCL";
      SpMVCudaKrylovSetAllReduce(run->krylov, KSPDeviceAllReduce_NCCL, run);
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  run->transport = SPMV_TRANSPORT_HOST;
  run->sums      = ", sums over ranks by MPI";
  PetscCall(SpMVAgree(run->comm, KSPDeviceStage(run)));
  SpMVCudaKrylovSetAllReduce(run->krylov, KSPDeviceAllReduce_MPI, run);
  PetscFunctionReturn(PETSC_SUCCESS);
}
