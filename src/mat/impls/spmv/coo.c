/*
  MatSetPreallocationCOO() and MatSetValuesCOO() on the device: indices are sorted and merged there, and values are summed
  there, wherever the program's arrays are. AIJ's own functions sort on one core of the host, and copy their map.

  The result is what AIJCUSPARSE's functions leave: AIJ's pattern on the host, CSR arrays on the device with the values,
  which are newer than the host's. AIJ's arrays are filled by way of MatSeqAIJSetPreallocation() and
  MatSeqAIJSetColumnIndices(), which do not look at each entry.

  The map is in a container composed with the matrix, which duplicates share, and which stays if the matrix is given back
  to its parent. Where there is none, AIJCUSPARSE's functions have been used.
*/
#include "matspmv.h"

const char *const SpMVCOOPlaces[] = {"auto", "host", "device", "SpMVCOOPlace", "SPMV_COO_", NULL};

#if defined(PETSCSPMV_HAVE_CUDA)
  #include "../../../core/cuda/coo.h"

static const char SpMVCOOContainer[] = "PetscSpMV_COO";

typedef struct {
  SpMVCudaCOO      map;
  PetscCount       n; /* entries of the program's arrays */
  PetscObjectId    id;
  PetscObjectState nonzerostate; /* of that matrix with the map's pattern */
} SpMVCOO;

static PetscErrorCode SpMVCOODestroyCtx(SpMVCtx ctx)
{
  SpMVCOO *coo = (SpMVCOO *)SpMVCtxGet(ctx);

  PetscFunctionBegin;
  PetscCallCUDA(SpMVCudaCOODestroy(&coo->map));
  PetscCall(PetscFree(coo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVCOOGet(Mat A, SpMVCOO **coo)
{
  PetscContainer container;

  PetscFunctionBegin;
  *coo = NULL;
  PetscCall(PetscObjectQuery((PetscObject)A, SpMVCOOContainer, (PetscObject *)&container));
  if (container) PetscCall(PetscContainerGetPointer(container, (void **)coo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- indices and values on the device */

/* Arrays on the device in place of those of the host, in one allocation; *error is cudaErrorMemoryAllocation if there is no room */
static PetscErrorCode SpMVCOOStage(int count, const void *array[], size_t bytes, void **copy, cudaError_t *error)
{
  const void  *host[2];
  void        *device[2];
  size_t       size[2] = {bytes, bytes};
  int          which[2], hosts = 0;
  PetscMemType memtype;

  PetscFunctionBegin;
  *copy  = NULL;
  *error = cudaSuccess;
  for (int k = 0; k < count && bytes; k++) {
    PetscCall(PetscGetMemType(array[k], &memtype));
    if (PetscMemTypeDevice(memtype)) continue;
    which[hosts]  = k;
    host[hosts++] = array[k];
  }
  if (!hosts) PetscFunctionReturn(PETSC_SUCCESS);
  *error = cudaMalloc(copy, (size_t)hosts * bytes);
  if (*error) {
    (void)cudaGetLastError();
    *copy = NULL;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int h = 0; h < hosts; h++) array[which[h]] = device[h] = (char *)*copy + (size_t)h * bytes;
  *error = SpMVCudaUpload(hosts, device, host, size);
  PetscCall(PetscLogCpuToGpu((PetscLogDouble)((size_t)hosts * bytes)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- preallocation */

/* Gives a sequential matrix the map's pattern, on the host and on the device, and zeros on the device */
static PetscErrorCode MatSpMVSetPattern_SeqCUDA(Mat A, Mat_SpMV *spmv, SpMVCudaCOO map)
{
  const PetscInt *i, *j, *hi, *hj;
  const PetscInt  m = A->rmap->n;
  PetscInt       *length, count;
  PetscScalar    *a;
  PetscBool       done;
  void           *host;
  const void     *device;
  size_t          bytes = (size_t)(m + 1) * sizeof(PetscInt);
  cudaStream_t    stream;

  PetscFunctionBegin;
  SpMVCudaCOOPattern(map, &i, &j);
  PetscCall(PetscMalloc1(m + 1, &length));
  host   = length;
  device = i;
  PetscCallCUDA(SpMVCudaDownload(1, &host, &device, &bytes));
  for (PetscInt r = 0; r < m; r++) length[r] = length[r + 1] - length[r];
  PetscCall(MatSeqAIJSetPreallocation(A, 0, length));
  PetscCall(PetscFree(length));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &count, &hi, &hj, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatGetRowIJ() failed for a matrix of type %s", ((PetscObject)A)->type_name);
  host   = (void *)hj;
  device = j;
  bytes  = (size_t)SpMVCudaCOONonzeros(map) * sizeof(PetscInt);
  PetscCallCUDA(SpMVCudaDownload(1, &host, &device, &bytes));
  PetscCall(PetscLogGpuToCpu((PetscLogDouble)bytes));
  SpMVCudaCOOReleasePattern(map);
  if (bytes) PetscCall(MatSeqAIJSetColumnIndices(A, (PetscInt *)hj)); /* counts the entries of each row */
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &count, &hi, &hj, &done));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscCall((*spmv->parent.assemblyend)(A, MAT_FINAL_ASSEMBLY)); /* MatAssemblyEnd() would count as an assembly */
  if (!bytes) PetscFunctionReturn(PETSC_SUCCESS);

  /* AIJCUSPARSE copies the host's values, which nobody has set; those of the device count from then on */
  A->offloadmask = PETSC_OFFLOAD_CPU;
  PetscCall(MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, &i, &j));
  PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, &i, &j));
  PetscCall(MatSeqAIJCUSPARSEGetArrayWrite(A, &a));
  PetscCall(SpMVGetStream(&stream));
  PetscCallCUDA(cudaMemsetAsync(a, 0, bytes / sizeof(PetscInt) * sizeof(PetscScalar), stream));
  PetscCall(MatSeqAIJCUSPARSERestoreArrayWrite(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sorts the entries. *map is NULL if AIJ has to: for want of memory, or for the error that it has for an index */
static PetscErrorCode MatSpMVSortCOO_SeqCUDA(Mat A, PetscCount n, const PetscInt i[], const PetscInt j[], SpMVCudaCOO *map)
{
  SpMVCudaIndices indices  = {.M = A->rmap->N, .N = A->cmap->N, .count = {n, 0}, .row = {0, A->rmap->n}, .col = {0, A->cmap->n}};
  const void     *array[2] = {i, j};
  void           *copy;
  cudaStream_t    stream;
  cudaError_t     error;

  PetscFunctionBegin;
  *map = NULL;
  PetscCall(SpMVGetStream(&stream));
  PetscCall(SpMVCOOStage(2, array, (size_t)n * sizeof(PetscInt), &copy, &error));
  indices.i[0] = (const PetscInt *)array[0];
  indices.j[0] = (const PetscInt *)array[1];
  if (error == cudaSuccess) error = SpMVCudaCOOCreate(&indices, stream, map);
  PetscCallCUDA(cudaFree(copy));
  if (error == cudaErrorMemoryAllocation)
    PetscCall(PetscInfo(A, "Sorting %" PetscCount_FMT " entries on the host: out of GPU memory\n", n));
  else if (error == cudaErrorNotSupported)
    PetscCall(PetscInfo(A, "Sorting %" PetscCount_FMT " entries on the host: too many for the device, or it is not supported\n", n));
  else if (error != cudaErrorInvalidValue)
    PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the device sorts: not where AIJ is faster, orders the columns in another way, or stores no values */
static PetscErrorCode MatSpMVSortsCOO(Mat A, const Mat_SpMV *spmv, PetscCount n, PetscBool *sorts)
{
  const PetscCount least = 100000; /* entries: AIJ sorts them in the time that the device needs for its first allocation */
  SpMVCOOPlace     place;
  PetscBool        hypre;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetCOOPlace(A, spmv, &place));
  PetscCall(PetscStrcmp("_internal_COO_mat_for_hypre", ((PetscObject)A)->name, &hypre)); /* PETSc's name for it */
  *sorts = (PetscBool)(place == SPMV_COO_DEVICE || (place == SPMV_COO_AUTO && n >= least));
  if (A->structure_only || A->boundtocpu || hypre) *sorts = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Composes the map with A, which then owns it, in place of whatever an earlier preallocation has left; NULL for none */
static PetscErrorCode MatSpMVSetCOO(Mat A, SpMVCOO *coo)
{
  const char *const theirs[]  = {"__PETSc_MatCOOStruct_Host", "__PETSc_MatCOOStruct_Device"};
  PetscContainer    container = NULL;

  PetscFunctionBegin;
  if (coo) {
    for (int k = 0; k < 2; k++) PetscCall(PetscObjectCompose((PetscObject)A, theirs[k], NULL));
    PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &container));
    PetscCall(PetscContainerSetPointer(container, coo));
    PetscCall(PetscContainerSetCtxDestroy(container, SpMVCOODestroyCtx));
  }
  PetscCall(PetscObjectCompose((PetscObject)A, SpMVCOOContainer, (PetscObject)container));
  PetscCall(PetscContainerDestroy(&container));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetPreallocationCOO_SeqSpMVCUDA(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  Mat_SpMV   *spmv;
  SpMVCudaCOO map = NULL;
  SpMVCOO    *coo;
  PetscBool   sorts = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatSpMVSortsCOO(A, spmv, n, &sorts));
  if (sorts) PetscCall(MatSpMVSortCOO_SeqCUDA(A, n, i, j, &map));
  if (!map) {
    if (A->boundtocpu) { /* AIJCUSPARSE has no function then, and leaves it to PETSc's fallback, which needs the other one to be absent, too */
      PetscCall(MatSpMVSetCOO(A, NULL));
      PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOO_C", NULL));
      PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", NULL));
      PetscCall(MatSetPreallocationCOO(A, n, i, j));
    } else {
      PetscCall((*SpMVParents[1][0].preallocatecoo)(A, n, i, j));
      PetscCall(MatSpMVSetCOO(A, NULL));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscNew(&coo));
  coo->map = map;
  coo->n   = n;
  PetscCall(MatSpMVSetCOO(A, coo));
  PetscCall(MatSpMVSetPattern_SeqCUDA(A, spmv, map));
  PetscCall(PetscObjectGetId((PetscObject)A, &coo->id));
  coo->nonzerostate = A->nonzerostate + 1; /* MatSetPreallocationCOO() increases it */
  /* the pattern has been assembled already */
  A->was_assembled    = PETSC_TRUE;
  A->ass_nonzerostate = coo->nonzerostate;
  PetscCall(PetscInfo(A, "Sorted %" PetscCount_FMT " entries on the device: %" PetscInt64_FMT " nonzeros, %" PetscInt64_FMT " bytes for the map\n", n,
                      SpMVCudaCOONonzeros(map), SpMVCudaCOOBytes(map)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- values */

/* The sums on the device, then on the host, where a matrix that is bound to the CPU is */
static PetscErrorCode MatSpMVAddCOO_SeqBound(Mat A, SpMVCudaCOO map, const PetscScalar *const v[2], InsertMode mode, cudaStream_t stream)
{
  const PetscInt64 nz    = SpMVCudaCOONonzeros(map);
  size_t           bytes = (size_t)nz * sizeof(PetscScalar);
  PetscScalar     *sum, *host, *a;
  void            *to;
  const void      *from;

  PetscFunctionBegin;
  PetscCallCUDA(cudaMalloc((void **)&sum, bytes));
  PetscCallCUDA(SpMVCudaCOOAdd(map, v, PETSC_TRUE, sum, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscCall(PetscMalloc1(nz, &host));
  to   = host;
  from = sum;
  PetscCallCUDA(SpMVCudaDownload(1, &to, &from, &bytes));
  PetscCall(PetscLogGpuToCpu((PetscLogDouble)bytes));
  PetscCallCUDA(cudaFree(sum));
  PetscCall(MatSeqAIJGetArray(A, &a));
  for (PetscInt64 k = 0; k < nz; k++) a[k] = mode == INSERT_VALUES ? host[k] : a[k] + host[k];
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(PetscFree(host));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* v: on the device */
static PetscErrorCode MatSpMVAddCOO_Seq(Mat A, SpMVCudaCOO map, const PetscScalar *const v[2], InsertMode mode)
{
  const PetscBool insert = (PetscBool)(mode == INSERT_VALUES);
  PetscScalar    *a;
  cudaStream_t    stream;

  PetscFunctionBegin;
  if (!SpMVCudaCOONonzeros(map)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVGetStream(&stream));
  if (A->boundtocpu) {
    PetscCall(MatSpMVAddCOO_SeqBound(A, map, v, mode, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (insert && PetscOffloadDevice(A->offloadmask)) /* else AIJCUSPARSE may have no array, or one for another pattern */
    PetscCall(MatSeqAIJCUSPARSEGetArrayWrite(A, &a));
  else
    PetscCall(MatSeqAIJCUSPARSEGetArray(A, &a));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCallCUDA(SpMVCudaCOOAdd(map, v, insert, a, stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(MatSeqAIJCUSPARSERestoreArray(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the map is that of the matrix: new entries since then, or another preallocation, make it another one */
static PetscErrorCode MatSpMVCheckCOO_Seq(Mat A, const SpMVCOO *coo)
{
  PetscObjectId id;
  MatInfo       info;

  PetscFunctionBegin;
  PetscCall(PetscObjectGetId((PetscObject)A, &id));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCheck(info.nz_used == (PetscLogDouble)SpMVCudaCOONonzeros(coo->map) && (id != coo->id || A->nonzerostate == coo->nonzerostate), PETSC_COMM_SELF,
             PETSC_ERR_ARG_WRONGSTATE, "The nonzero pattern has changed since MatSetPreallocationCOO(): call it again before MatSetValuesCOO()");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of one of our matrices, or of one that was, with a map */
static PetscErrorCode MatSetValuesCOO_SeqSpMVCUDA(Mat A, const PetscScalar v[], InsertMode mode)
{
  const PetscScalar *array[2] = {v, NULL};
  SpMVCOO           *coo;
  PetscObject        theirs;
  void              *copy;
  cudaError_t        error;

  PetscFunctionBegin;
  PetscCall(SpMVCOOGet(A, &coo));
  PetscCall(PetscObjectQuery((PetscObject)A, "__PETSc_MatCOOStruct_Device", &theirs));
  if (!coo || theirs) {
    PetscCall((*SpMVParents[1][0].setvaluescoo)(A, v, mode));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSpMVCheckCOO_Seq(A, coo));
  PetscCall(SpMVCOOStage(1, (const void **)array, (size_t)coo->n * sizeof(PetscScalar), &copy, &error));
  PetscCheck(error != cudaErrorMemoryAllocation, PETSC_COMM_SELF, PETSC_ERR_GPU_RESOURCE,
             "Out of GPU memory for a copy of %" PetscCount_FMT " values of MatSetValuesCOO(). Pass an array on the device", coo->n);
  PetscCallCUDA(error);
  PetscCall(MatSpMVAddCOO_Seq(A, coo->map, array, mode));
  PetscCallCUDA(cudaFree(copy)); /* waits for the kernel */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- composed functions */

PetscErrorCode MatSpMVCompose_COO(Mat A, PetscBool device, PetscBool mpi, PetscBool ours)
{
  SpMVCOO *coo;

  PetscFunctionBegin;
  if (!device || mpi) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVCOOGet(A, &coo));
  if (A->boundtocpu && !coo) PetscFunctionReturn(PETSC_SUCCESS); /* AIJCUSPARSE has no function then */
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOO_C",
                                       ours            ? MatSetPreallocationCOO_SeqSpMVCUDA
                                       : A->boundtocpu ? NULL
                                                       : SpMVParents[1][0].preallocatecoo));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", ours || coo ? MatSetValuesCOO_SeqSpMVCUDA : SpMVParents[1][0].setvaluescoo));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* B, a duplicate of A, has its pattern */
PetscErrorCode MatSpMVShareCOO(Mat A, Mat B)
{
  PetscFunctionBegin;
#if defined(PETSCSPMV_HAVE_CUDA)
  PetscContainer container;

  PetscCall(PetscObjectQuery((PetscObject)A, SpMVCOOContainer, (PetscObject *)&container));
  if (container) PetscCall(PetscObjectCompose((PetscObject)B, SpMVCOOContainer, (PetscObject)container));
#else
  (void)A;
  (void)B;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
