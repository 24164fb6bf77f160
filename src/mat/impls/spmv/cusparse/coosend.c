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

/* Sorts the entries that other ranks own by owner: count[] is the number of entries of each owner, to[] the position of
   each entry in this order */
static PetscErrorCode SpMVCOOCountOwners(PetscLayout rmap, PetscInt n, const PetscInt row[], PetscInt count[],
                                         PetscInt to[])
{
  PetscMPIInt size, owner = 0;
  PetscInt   *next;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(rmap->comm, &size));
  PetscCall(PetscArrayzero(count, size));
  for (PetscInt q = 0; q < n; q++) {
    if (row[q] < rmap->range[owner] || row[q] >= rmap->range[owner + 1])
      PetscCall(PetscLayoutFindOwner(rmap, row[q], &owner));
    to[q] = owner;
    count[owner]++;
  }
  PetscCall(PetscCalloc1(size + 1, &next));
  for (PetscMPIInt r = 0; r < size; r++) next[r + 1] = next[r] + count[r];
  for (PetscInt q = 0; q < n; q++) to[q] = next[to[q]]++;
  PetscCall(PetscFree(next));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. Creates the PetscSF that sends entries, sorted by owner, to their owners. An owner stores what it
   receives in the order of the senders' ranks */
static PetscErrorCode SpMVCOOExchangeCreate(MPI_Comm comm, const PetscInt count[], SpMVCOOExchange *e)
{
  PetscInt    *from, *offset, *theirs, total = 0, q = 0;
  PetscSFNode *root;
  PetscMPIInt  size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(PetscMalloc3(size, &from, size, &offset, size, &theirs));
  PetscCallMPI(MPI_Alltoall(count, 1, MPIU_INT, from, 1, MPIU_INT, comm));
  for (PetscMPIInt r = 0; r < size; r++) {
    offset[r] = total;
    total += from[r];
  }
  PetscCallMPI(MPI_Alltoall(offset, 1, MPIU_INT, theirs, 1, MPIU_INT, comm));
  e->nreceive = total;
  PetscCall(PetscMalloc1(e->nsend, &root));
  for (PetscMPIInt r = 0; r < size; r++) {
    for (PetscInt k = 0; k < count[r]; k++, q++) {
      root[q].rank  = r;
      root[q].index = theirs[r] + k;
    }
  }
  PetscCall(PetscFree3(from, offset, theirs));
  PetscCall(PetscSFCreate(comm, &e->sf));
  PetscCall(PetscSFSetGraph(e->sf, total, (PetscInt)e->nsend, NULL, PETSC_OWN_POINTER, root, PETSC_OWN_POINTER));
  PetscCall(PetscSFSetUp(e->sf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Gets from the device the entries that other ranks own: the number for each rank, and their row and column indices
  sorted by owner, in arrays that the caller frees. `place` on the device is put into the same order
*/
static PetscErrorCode SpMVCOOGetRemote(PetscLayout rmap, PetscInt64 n, PetscInt64 *place, PetscInt *i, PetscInt **count,
                                       PetscInt **indices)
{
  PetscInt   *row, *to, *col;
  PetscInt64 *at, *ordered;
  PetscMPIInt size;
  size_t      bytes[2];
  void       *host[2];
  const void *device[2] = {place, i};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(rmap->comm, &size));
  PetscCall(PetscCalloc1(size, count));
  PetscCall(PetscMalloc1(2 * n, indices));
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc4(2 * n, &row, n, &to, n, &at, n, &ordered));
  col      = row + n;
  host[0]  = at;
  host[1]  = row;
  bytes[0] = (size_t)n * sizeof(*at);
  bytes[1] = 2 * (size_t)n * sizeof(*row);
  PetscCallCUDA(SpMVCudaDownload(2, host, device, bytes));
  PetscCall(SpMVCOOCountOwners(rmap, (PetscInt)n, row, *count, to));
  for (PetscInt64 q = 0; q < n; q++) {
    (*indices)[to[q]]     = row[q];
    (*indices)[n + to[q]] = col[q];
    ordered[to[q]]        = at[q];
  }
  PetscCallCUDA(cudaMemcpy(place, ordered, bytes[0], cudaMemcpyHostToDevice));
  PetscCall(PetscFree4(row, to, at, ordered));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVExchangeCOO_MPICUDA(Mat A, Mat_SpMV *spmv, SpMVCudaIndices *indices, cudaStream_t stream,
                                          SpMVCOOExchange *e, SpMVCOOFailure *failure)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  PetscInt      *i = NULL, *j = NULL, *count, *sent, *received;
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

  PetscCall(SpMVAgree(comm, SpMVCOOGetRemote(A->rmap, e->nsend, e->place, i, &count, &sent)));
  PetscCall(SpMVCOOExchangeCreate(comm, count, e));
  PetscCall(PetscFree(count));
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
