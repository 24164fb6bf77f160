/*
  MatSetPreallocationCOO() and MatSetValuesCOO() on the device. The device sorts and merges the indices and sums the
  values, no matter whether the program's arrays are on the host or on the device. AIJ's own functions sort on one core
  of the host and copy their map.

  The matrix is left in the same state as by AIJCUSPARSE's functions: AIJ's pattern is on the host, and the CSR arrays
  on the device hold the values, which are newer than those on the host. AIJ's arrays are filled through
  MatSeqAIJSetPreallocation() and MatSeqAIJSetColumnIndices(), which do not process the entries one by one.

  In parallel, each rank sends the indices of entries in other ranks' rows to their owners, once. The entries that it
  receives are appended to its own. The diagonal block and the off-diagonal block have separate maps.

  The maps are in a container that is composed with the matrix. Duplicates of the matrix share the container. It remains
  if the matrix is converted back to its parent type. A matrix without this container was preallocated by AIJCUSPARSE's
  functions.
*/
#include "mat/impls/spmv/cuda/matspmvcuda.h"
#include "core/cuda/csr/coo.h"
#include <petscsf.h>

/* Entries in other ranks' rows */
typedef struct {
  PetscSF     sf; /* leaves: the entries sent; roots: the entries received. NULL if no rank sends any */
  PetscInt64  nsend, nreceive;
  PetscInt64 *place; /* on the device: the positions in the program's arrays of the entries sent */
  /* on the device, until the maps are made: row and column indices of the entries received */
  PetscInt    *received;
  PetscScalar *send, *receive; /* on the device */
} SpMVCOOExchange;

typedef struct {
  SpMVCudaCOO      map[2]; /* of a sequential matrix, or of the two blocks */
  PetscCount       n;      /* entries of the program's arrays */
  PetscObjectId    id;
  PetscObjectState nonzerostate; /* of the matrix with this id when it has the map's pattern */
  SpMVCOOExchange  exchange;
} SpMVCOO;

static PetscErrorCode SpMVCOODestroy(SpMVCOO **coo)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCallCUDA(SpMVCudaCOODestroy(&(*coo)->map[k]));
  PetscCall(PetscSFDestroy(&(*coo)->exchange.sf));
  PetscCallCUDA(cudaFree((*coo)->exchange.place));
  PetscCallCUDA(cudaFree((*coo)->exchange.received));
  PetscCallCUDA(cudaFree((*coo)->exchange.send));
  PetscCall(PetscFree(*coo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVCOODestroyCtx(SpMVCtx ctx)
{
  SpMVCOO *coo = (SpMVCOO *)SpMVCtxGet(ctx);

  PetscFunctionBegin;
  PetscCall(SpMVCOODestroy(&coo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- entries in other ranks' rows */

/* *failure: what prevents the device from sorting: memory, too many entries, or a wrong index, which AIJ reports */
static PetscErrorCode SpMVCOOCheck(cudaError_t error, int *failure)
{
  PetscFunctionBegin;
  if (error == cudaErrorMemoryAllocation || error == cudaErrorNotSupported || error == cudaErrorInvalidValue)
    *failure = error;
  else
    PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: either all ranks sort on the device or none does */
static PetscErrorCode MatSpMVAgreeCOO(Mat A, int *failure)
{
  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, failure, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
  if (*failure)
    PetscCall(PetscInfo(A, "Entries are sorted on the host: %s\n", cudaGetErrorString((cudaError_t)*failure)));
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

/* Collective. Sends the indices of entries in other ranks' rows to the owners; the indices received are appended to
   `indices` */
static PetscErrorCode MatSpMVExchangeCOO_MPICUDA(Mat A, Mat_SpMV *spmv, SpMVCudaIndices *indices, cudaStream_t stream,
                                                 SpMVCOOExchange *e, int *failure)
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
  if (e->nsend && A->nooffprocentries) *failure = cudaErrorInvalidValue;
  if (e->nsend > PETSC_INT_MAX) *failure = cudaErrorNotSupported;
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

/* Collective. fails: this rank has no values because of an error; it sends NaNs, because the other ranks count on it */
static PetscErrorCode SpMVCOOSend(const SpMVCOOExchange *e, const PetscScalar *v, PetscBool fails)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (!fails)
    PetscCallCUDA(SpMVCudaCOOPack(e->nsend, e->place, v, e->send, stream));
  else if (e->nsend)
    PetscCallCUDA(cudaMemsetAsync(e->send, 0xff, (size_t)e->nsend * sizeof(PetscScalar), stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscCall(PetscSFReduceWithMemTypeBegin(e->sf, MPIU_SCALAR, PETSC_MEMTYPE_CUDA, e->send, PETSC_MEMTYPE_CUDA,
                                          e->receive, MPI_REPLACE));
  PetscCall(PetscSFReduceEnd(e->sf, MPIU_SCALAR, e->send, e->receive, MPI_REPLACE));
  if (stream != PetscDefaultCudaStream) PetscCallCUDA(cudaStreamSynchronize(PetscDefaultCudaStream)); /* PetscSF's */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- indices and values on the device */

/* Replaces arrays on the host by copies on the device; *error is cudaErrorMemoryAllocation if there is no room */
static PetscErrorCode SpMVCOOStage(int count, const void *array[], size_t bytes, cudaStream_t stream,
                                   SpMVCudaTemporary *copy, cudaError_t *error)
{
  const void  *host[2];
  void        *device[2];
  const size_t size[2] = {bytes, bytes};
  int          which[2], hosts = 0;
  PetscMemType memtype;

  PetscFunctionBegin;
  *copy  = (SpMVCudaTemporary){NULL, PETSC_FALSE};
  *error = cudaSuccess;
  for (int k = 0; k < count && bytes; k++) {
    PetscCall(PetscGetMemType(array[k], &memtype));
    if (PetscMemTypeDevice(memtype)) continue;
    which[hosts]  = k;
    host[hosts++] = array[k];
  }
  if (hosts) *error = SpMVCudaUploadTemporary(hosts, device, host, size, stream, copy);
  if (*error) (void)cudaGetLastError();
  if (!hosts || *error) PetscFunctionReturn(PETSC_SUCCESS);
  for (int h = 0; h < hosts; h++) array[which[h]] = device[h];
  PetscCall(PetscLogCpuToGpu((PetscLogDouble)((size_t)hosts * bytes)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- AIJ's arrays */

static PetscErrorCode MatSpMVSetPattern_CUDA(Mat A, Mat_SpMV *spmv, PetscBool mpi, const SpMVCOO *coo)
{
  const PetscBool nooffproc = A->nooffprocentries;
  const int       blocks    = mpi ? 2 : 1;
  const PetscInt *i[2], *j[2];
  PetscInt       *length[2] = {NULL, NULL};
  Mat             block[2]  = {A, NULL};
  PetscErrorCode  ierr      = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int k = 0; k < blocks && !ierr; k++) {
    SpMVCudaCOOPattern(coo->map[k], &i[k], &j[k]);
    ierr = SpMVGetLengths(A->rmap->n, i[k], &length[k]);
  }
  ierr = SpMVAgree(PetscObjectComm((PetscObject)A), ierr);
  for (int k = 0; k < blocks && ierr; k++) PetscCall(PetscFree(length[k]));
  PetscCall(ierr);
  if (mpi)
    PetscCall(MatMPIAIJSetPreallocation(A, 0, length[0], 0, length[1]));
  else
    PetscCall(MatSeqAIJSetPreallocation(A, 0, length[0]));
  for (int k = 0; k < blocks; k++) PetscCall(PetscFree(length[k]));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < blocks; k++)
    PetscCall(MatSpMVSetColumns_SeqCUDA(block[k], SpMVCudaCOONonzeros(coo->map[k]), j[k]));
  A->nooffprocentries = PETSC_TRUE;                          /* no values are on their way to other ranks */
  ierr = (*spmv->parent.assemblyend)(A, MAT_FINAL_ASSEMBLY); /* MatAssemblyEnd() would be counted as an assembly */
  A->nooffprocentries = nooffproc;
  PetscCall(ierr);
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < blocks; k++) { /* an off-diagonal block has other columns by now */
    PetscCall(MatSpMVSetZeros_SeqCUDA(block[k], SpMVCudaCOONonzeros(coo->map[k]), k ? NULL : i[k], k ? NULL : j[k]));
    SpMVCudaCOOReleasePattern(coo->map[k]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- preallocation */

/* Collective. Creates the maps. *coo is NULL if AIJ has to sort: for lack of memory, or because an index is wrong,
   which AIJ reports */
static PetscErrorCode MatSpMVSortCOO_CUDA(Mat A, Mat_SpMV *spmv, PetscBool mpi, PetscCount n, const PetscInt i[],
                                          const PetscInt j[], SpMVCOO **coo)
{
  SpMVCudaIndices   indices  = {.M     = A->rmap->N,
                                .N     = A->cmap->N,
                                .count = {n, 0},
                                .row   = {A->rmap->rstart, A->rmap->rend},
                                .col   = {A->cmap->rstart, A->cmap->rend}};
  const void       *array[2] = {i, j};
  int               failure  = cudaSuccess;
  SpMVCudaTemporary copy;
  cudaStream_t      stream;
  cudaError_t       error;

  PetscFunctionBegin;
  PetscCall(PetscNew(coo));
  (*coo)->n = n;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(SpMVCOOStage(2, array, (size_t)n * sizeof(PetscInt), stream, &copy, &error));
  PetscCall(SpMVCOOCheck(error, &failure));
  indices.i[0] = (const PetscInt *)array[0];
  indices.j[0] = (const PetscInt *)array[1];
  if (mpi) PetscCall(MatSpMVExchangeCOO_MPICUDA(A, spmv, &indices, stream, &(*coo)->exchange, &failure));
  for (int k = 0; k < (mpi ? 2 : 1) && !failure; k++) {
    indices.outside = (PetscBool)k;
    PetscCall(SpMVCOOCheck(SpMVCudaCOOCreate(&indices, stream, &(*coo)->map[k]), &failure));
  }
  PetscCall(MatSpMVAgreeCOO(A, &failure));
  PetscCallCUDA(SpMVCudaFreeTemporary(&copy, stream));
  PetscCallCUDA(cudaFree((*coo)->exchange.received));
  (*coo)->exchange.received = NULL;
  if (failure) PetscCall(SpMVCOODestroy(coo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. Whether the device sorts. It does not if AIJ is faster, orders the columns in another way, or stores no
   values */
static PetscErrorCode MatSpMVSortsCOO(Mat A, SpMVCOOPlace place, PetscCount n, PetscBool *sorts)
{
  /* entries of a rank: with 7000, AIJ takes as long as an H200; with 28000, twice as long */
  const PetscInt64 least = 20000;
  /* whether some rank cannot sort on the device, and the maximum number of entries of a rank */
  PetscInt64 most[2];
  PetscBool  hypre;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp("_internal_COO_mat_for_hypre", ((PetscObject)A)->name, &hypre)); /* PETSc's name for it */
  most[0] = A->structure_only || A->boundtocpu || hypre;
  most[1] = n;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, most, 2, MPIU_INT64, MPI_MAX, PetscObjectComm((PetscObject)A)));
  *sorts = (PetscBool)(!most[0] && (place == SPMV_COO_DEVICE || (place == SPMV_COO_AUTO && most[1] >= least)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Composes the maps with A, which then owns them, and removes those of earlier preallocations. With coo = NULL it only
   removes ours */
static PetscErrorCode MatSpMVSetCOO(Mat A, SpMVCOO *coo)
{
  const char *const theirs[] = {"__PETSc_MatCOOStruct_Host", "__PETSc_MatCOOStruct_Device"};

  PetscFunctionBegin;
  for (int k = 0; k < 2 && coo; k++) PetscCall(PetscObjectCompose((PetscObject)A, theirs[k], NULL));
  PetscCall(SpMVDataSet((PetscObject)A, SpMVCOOContainer, coo, SpMVCOODestroyCtx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  While a sequential matrix is bound to the CPU, AIJCUSPARSE composes no functions, so that PETSc uses its fallback.
  This fallback works only if MatSetValuesCOO_C is not composed either
*/
static PetscErrorCode MatSpMVPreallocateAsParent(Mat A, PetscBool mpi, PetscCount n, PetscInt i[], PetscInt j[])
{
  PetscFunctionBegin;
  if (A->boundtocpu && !mpi) {
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOO_C", NULL));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", NULL));
    PetscCall(MatSetPreallocationCOO(A, n, i, j));
  } else
    PetscCall((*SpMVParents[1][mpi].preallocatecoo)(A, n, i, j));
  PetscCall(MatSpMVSetCOO(A, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetPreallocationCOO_SpMVCUDA(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  Mat_SpMV    *spmv;
  SpMVCOO     *coo = NULL;
  SpMVCOOPlace place;
  PetscBool    sorts = PETSC_FALSE, mpi = SpMVIsMPI(A);

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatSpMVGetCOOPlace(A, spmv, &place));
  PetscCall(MatSpMVSortsCOO(A, place, n, &sorts));
  if (sorts) PetscCall(MatSpMVSortCOO_CUDA(A, spmv, mpi, n, i, j, &coo));
  if (!coo) {
    PetscCall(MatSpMVPreallocateAsParent(A, mpi, n, i, j));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSpMVSetCOO(A, coo));
  PetscCall(MatSpMVSetPattern_CUDA(A, spmv, mpi, coo));
  PetscCall(PetscObjectGetId((PetscObject)A, &coo->id));
  coo->nonzerostate = A->nonzerostate + 1; /* MatSetPreallocationCOO() increases it */
  /* the pattern has been assembled already */
  A->assembled        = PETSC_FALSE;
  A->was_assembled    = PETSC_TRUE;
  A->ass_nonzerostate = coo->nonzerostate;
  PetscCall(PetscInfo(A, "Sorted %" PetscCount_FMT " entries on the device, and %" PetscInt64_FMT " of other ranks\n",
                      n, coo->exchange.nreceive));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- values */

/* v: on the device, where the values of a matrix that is bound to the CPU go and come back from */
static PetscErrorCode MatSpMVAddCOO_Seq(Mat A, SpMVCudaCOO map, const PetscScalar *const v[2], InsertMode mode)
{
  const PetscBool insert = (PetscBool)(mode == INSERT_VALUES), bound = A->boundtocpu;
  PetscScalar    *a;
  cudaStream_t    stream;

  PetscFunctionBegin;
  if (!SpMVCudaCOONonzeros(map)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (bound) {
    PetscCall(MatBindToCPU(A, PETSC_FALSE));
    if (A->offloadmask == PETSC_OFFLOAD_BOTH) A->offloadmask = PETSC_OFFLOAD_CPU; /* AIJCUSPARSE does not do that */
  }
  /* otherwise AIJCUSPARSE may have no array, or an array for another pattern */
  if (insert && PetscOffloadDevice(A->offloadmask))
    PetscCall(MatSeqAIJCUSPARSEGetArrayWrite(A, &a));
  else
    PetscCall(MatSeqAIJCUSPARSEGetArray(A, &a));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCallCUDA(SpMVCudaCOOAdd(map, v, insert, a, stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(MatSeqAIJCUSPARSERestoreArray(A, &a));
  if (bound) {
    PetscCallCUDA(cudaStreamSynchronize(stream)); /* AIJCUSPARSE copies in another stream */
    PetscCall(MatBindToCPU(A, PETSC_TRUE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks that the maps match the pattern: new entries or another preallocation may have changed it */
static PetscErrorCode MatSpMVCheckCOO(Mat A, PetscBool mpi, const Mat block[2], const SpMVCOO *coo)
{
  PetscObjectId id;
  PetscBool     same = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(PetscObjectGetId((PetscObject)A, &id));
  for (int k = 0; k < (mpi ? 2 : 1); k++) {
    MatInfo info;

    PetscCall(MatGetInfo(block[k], MAT_LOCAL, &info));
    if (info.nz_used != (PetscLogDouble)SpMVCudaCOONonzeros(coo->map[k])) same = PETSC_FALSE;
  }
  if (!mpi && id == coo->id && A->nonzerostate != coo->nonzerostate) same = PETSC_FALSE;
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE,
             "The nonzero pattern has changed since MatSetPreallocationCOO(): call it again before MatSetValuesCOO()");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For a matrix of one of our types, or one that was converted back to its parent type and still has our map */
static PetscErrorCode MatSetValuesCOO_SpMVCUDA(Mat A, const PetscScalar v[], InsertMode mode)
{
  const PetscScalar *array[2] = {v, NULL};
  Mat                block[2] = {A, NULL};
  SpMVCOO           *coo;
  const PetscBool    mpi = SpMVIsMPI(A);
  PetscObject        theirs;
  SpMVCudaTemporary  copy;
  cudaStream_t       stream;
  cudaError_t        error = cudaSuccess;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(SpMVDataGet((PetscObject)A, SpMVCOOContainer, &coo));
  PetscCall(PetscObjectQuery((PetscObject)A, "__PETSc_MatCOOStruct_Device", &theirs));
  PetscCheck(coo || theirs, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE,
             "Call MatSetPreallocationCOO() before MatSetValuesCOO()");
  if (theirs) {
    PetscCall((*SpMVParents[1][mpi].setvaluescoo)(A, v, mode));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  ierr = MatSpMVCheckCOO(A, mpi, block, coo);
  if (!ierr) ierr = SpMVCOOStage(1, (const void **)array, (size_t)coo->n * sizeof(PetscScalar), stream, &copy, &error);
  if (coo->exchange.sf) PetscCall(SpMVCOOSend(&coo->exchange, array[0], (PetscBool)(ierr || error)));
  PetscCall(ierr);
  PetscCheck(error != cudaErrorMemoryAllocation, PETSC_COMM_SELF, PETSC_ERR_GPU_RESOURCE,
             "Out of GPU memory for a copy of %" PetscCount_FMT
             " values of MatSetValuesCOO(). Pass an array on the device",
             coo->n);
  PetscCallCUDA(error);
  array[1] = coo->exchange.receive;
  for (int k = 0; k < (mpi ? 2 : 1); k++) PetscCall(MatSpMVAddCOO_Seq(block[k], coo->map[k], array, mode));
  if (mpi) A->offloadmask = PETSC_OFFLOAD_GPU;
  PetscCallCUDA(SpMVCudaFreeTemporary(&copy, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MPIAIJ has no query for whether it ignores entries in other ranks' rows, so the option is recorded here */
static PetscErrorCode MatSetOption_MPISpMVCUDA(Mat A, MatOption option, PetscBool on)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall((*spmv->parent.setoption)(A, option, on));
  if (option == MAT_IGNORE_OFF_PROC_ENTRIES) spmv->ignores_offproc = on;
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatSpMVSetOps_MPICOO(Mat A)
{
  A->ops->setoption = MatSetOption_MPISpMVCUDA;
}

/* ---------------------------------------------------------------- composed functions */

PetscErrorCode MatSpMVCompose_COO(Mat A, PetscBool device, PetscBool mpi, PetscBool ours)
{
  const SpMVParent *parent = &SpMVParents[1][mpi];
  const PetscBool   absent = (PetscBool)(A->boundtocpu && !mpi); /* in this case AIJCUSPARSE composes no functions */
  SpMVCOO          *coo;

  PetscFunctionBegin;
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVDataGet((PetscObject)A, SpMVCOOContainer, &coo));
  if (absent && !coo) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOO_C",
                                       ours     ? MatSetPreallocationCOO_SpMVCUDA
                                       : absent ? NULL
                                                : parent->preallocatecoo));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C",
                                       ours || coo ? MatSetValuesCOO_SpMVCUDA : parent->setvaluescoo));
  PetscFunctionReturn(PETSC_SUCCESS);
}
