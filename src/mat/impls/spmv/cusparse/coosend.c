/*
  Assembly from coordinates on the device: entries in other ranks' rows are sent to the owners of the rows.
*/
#include "coo.h"

PetscErrorCode SpMVCOOCheck(cudaError_t error, SpMVCOOFailure *failure)
{
  PetscFunctionBegin;
  if (error == cudaErrorMemoryAllocation)
    *failure = SPMV_COO_NO_MEMORY;
  else if (error == cudaErrorNotSupported)
    *failure = SPMV_COO_NOT_SUPPORTED;
  else if (error == cudaErrorInvalidValue)
    *failure = SPMV_COO_WRONG_INDEX;
  else
    PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVAgreeCOO(Mat A, SpMVCOOFailure *failure)
{
  int         mine  = *failure, all;
  const char *why[] = {NULL, "out of GPU memory", "too many entries for the device, or the device is not supported",
                       "an index is too large"};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
  *failure = (SpMVCOOFailure)all;
  if (all) PetscCall(PetscInfo(A, "Entries are sorted on the host: %s\n", why[all]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. Creates the PetscSF by which each entry that this rank sends gets a place of its own at the row's owner.
   The entries of a row have places in the order of the senders' ranks, and then in the senders' order */
static PetscErrorCode SpMVCOOExchangeCreate(PetscLayout rmap, const PetscInt row[], SpMVCOOExchange *e)
{
  PetscSF  rows;
  PetscInt places;

  PetscFunctionBegin;
  PetscCall(PetscSFCreate(rmap->comm, &rows));
  PetscCall(PetscSFSetRankOrder(rows, PETSC_FALSE)); /* PETSc's sort by rank may change the order of a rank's entries */
  PetscCall(PetscSFSetGraphLayout(rows, rmap, (PetscInt)e->nsend, NULL, PETSC_OWN_POINTER, row));
  PetscCall(PetscSFGetMultiSF(rows, &e->sf));
  PetscCall(PetscObjectReference((PetscObject)e->sf));
  PetscCall(PetscSFDestroy(&rows));
  PetscCall(PetscSFGetGraph(e->sf, &places, NULL, NULL, NULL));
  e->nreceive = places;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVExchangeCOO_MPICUDA(Mat A, Mat_SpMV *spmv, SpMVCudaIndices *indices, cudaStream_t stream,
                                          SpMVCOOExchange *e, SpMVCOOFailure *failure)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  PetscInt      *i = NULL, *j = NULL, *sent, *received; /* j follows i */
  PetscErrorCode ierr;
  int            any, mine;
  size_t         values, bytes;
  cudaError_t    error = cudaSuccess;

  PetscFunctionBegin;
  if (!*failure) error = SpMVCudaCOORemote(indices, stream, &e->nsend, &e->place, &i, &j);
  PetscCall(SpMVCOOCheck(error, failure));
  if (e->nsend && A->nooffprocentries) *failure = SPMV_COO_WRONG_INDEX;
  if (e->nsend > PETSC_INT_MAX) *failure = SPMV_COO_NOT_SUPPORTED;
  if (spmv->ignores_offproc) e->nsend = 0;
  PetscCall(MatSpMVAgreeCOO(A, failure));
  if (*failure) PetscFunctionReturn(PETSC_SUCCESS);
  mine = e->nsend > 0;
  PetscCallMPI(MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, comm));
  if (!any) PetscFunctionReturn(PETSC_SUCCESS);

  ierr = PetscMalloc1(2 * e->nsend, &sent);
  if (!ierr) ierr = SpMVDownloadIndices(2 * e->nsend, i, sent);
  PetscCall(SpMVAgree(comm, ierr));
  PetscCall(SpMVCOOExchangeCreate(A->rmap, sent, e));
  PetscCall(PetscMalloc1(2 * e->nreceive, &received));
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscSFReduceBegin(e->sf, MPIU_INT, sent + k * e->nsend, received + k * e->nreceive, MPI_REPLACE));
    PetscCall(PetscSFReduceEnd(e->sf, MPIU_INT, sent + k * e->nsend, received + k * e->nreceive, MPI_REPLACE));
  }
  bytes  = 2 * (size_t)e->nreceive * sizeof(PetscInt);
  values = (size_t)(e->nsend + e->nreceive) * sizeof(PetscScalar);
  if (bytes) error = cudaMalloc((void **)&e->received, bytes);
  if (error == cudaSuccess && bytes) error = cudaMemcpy(e->received, received, bytes, cudaMemcpyHostToDevice);
  if (error == cudaSuccess && values) error = cudaMalloc((void **)&e->send, values);
  if (error) (void)cudaGetLastError();
  if (e->send) e->receive = e->send + e->nsend;
  PetscCall(SpMVCOOCheck(error, failure));
  PetscCall(PetscFree(sent));
  PetscCall(PetscFree(received));
  indices->count[1] = e->nreceive;
  indices->i[1]     = e->received;
  indices->j[1]     = e->received ? e->received + e->nreceive : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVCOOSend(const SpMVCOOExchange *e, const PetscScalar *v)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(SpMVCudaCOOPack(e->nsend, e->place, v, e->send, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscCall(PetscSFReduceWithMemTypeBegin(e->sf, MPIU_SCALAR, PETSC_MEMTYPE_CUDA, e->send, PETSC_MEMTYPE_CUDA,
                                          e->receive, MPI_REPLACE));
  PetscCall(PetscSFReduceEnd(e->sf, MPIU_SCALAR, e->send, e->receive, MPI_REPLACE));
  if (stream != PetscDefaultCudaStream) PetscCallCUDA(cudaStreamSynchronize(PetscDefaultCudaStream)); /* PetscSF's */
  PetscFunctionReturn(PETSC_SUCCESS);
}
