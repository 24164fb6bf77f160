/*
  The data of a batch, its products, and queries.
*/
#include "batch.h"

const char *const BatchKernelTypes[] = {"auto",        "slices",    "sellp", "coo", "csr-scalar",
                                        "csr-vector",  "csr-smart", "csr-i", "ell", "coo-atomic",
                                        "BatchKernel", "BATCH_",    NULL};

PetscErrorCode MatBatchGet(Mat A, Mat_Batch **b)
{
  PetscBool is;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATBATCH, &is));
  PetscCheck(is, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "Matrix of type %s, not " MATBATCH,
             ((PetscObject)A)->type_name ? ((PetscObject)A)->type_name : "(not set)");
  *b = (Mat_Batch *)A->data;
  PetscCheck((*b)->first, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE,
             "The matrix has no problems yet: a matrix of type " MATBATCH
             " is created by MatCreateBatch(), MatCreateBatchFromMats(), MatConvert() or MatLoad()");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks that v has the layout of the rows. PETSc checks this for products only, and not if they are called through the
   table of operations */
PetscErrorCode MatBatchCheckVec(Mat A, Vec v)
{
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCheck(n == A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
             "Nonconforming matrix and vector: the matrix has %" PetscInt_FMT
             " local rows and columns, the vector %" PetscInt_FMT " local entries",
             A->rmap->n, n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reads the kernel here because programs may not call MatSetFromOptions() after MatConvert() */
PetscErrorCode MatBatchGetKernel(Mat A)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsGetEnum(((PetscObject)A)->options, ((PetscObject)A)->prefix, "-mat_batch_kernel",
                                BatchKernelTypes, (PetscEnum *)&((Mat_Batch *)A->data)->kernel, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- stale problems */

static void RangeAdd(BatchRange *r, PetscInt first, PetscInt last)
{
  if (r->first >= r->last) {
    r->first = first;
    r->last  = last;
  } else {
    r->first = PetscMin(r->first, first);
    r->last  = PetscMax(r->last, last);
  }
}

static void MatBatchSetStale(Mat_Batch *b, PetscInt first, PetscInt last)
{
  RangeAdd(&b->host_stale, first, last);
#if defined(PETSCSPMV_HAVE_CUDA)
  for (int k = 0; k < 2; k++) RangeAdd(&b->cuda[k].stale, first, last);
#endif
}

/* Marks all problems as stale if the state was changed by anything but MatBatchChanged(): with PETSC_USE_POINTER the
   caller may write to the array */
static PetscErrorCode MatBatchSync(Mat A)
{
  Mat_Batch       *b = (Mat_Batch *)A->data;
  PetscObjectState state;

  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (state != b->state) MatBatchSetStale(b, 0, b->p.problems);
  b->state = state;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatBatchChanged(Mat A, PetscInt first, PetscInt last)
{
  Mat_Batch *b = (Mat_Batch *)A->data;

  PetscFunctionBegin;
  PetscCall(MatBatchSync(A));
  MatBatchSetStale(b, first, last);
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscCall(PetscObjectStateGet((PetscObject)A, &b->state));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatBatchForget(Mat_Batch *b)
{
  PetscFunctionBegin;
  PetscCall(BatchHostDestroy(&b->host));
#if defined(PETSCSPMV_HAVE_CUDA)
  for (int k = 0; k < 2; k++) {
    if (b->cuda[k].batch) PetscCallCUDA(BatchCudaDestroy(&b->cuda[k].batch));
    b->cuda[k].use_host = PETSC_FALSE;
  }
#endif
  MatBatchSetStale(b, 0, b->p.problems);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gives each problem its own copy of shared values. *old is the array of the shared values if the caller must free it;
   otherwise it is unchanged */
PetscErrorCode MatBatchUnshare(Mat A, PetscScalar **old)
{
  Mat_Batch     *b       = (Mat_Batch *)A->data;
  const PetscInt entries = BatchPatternEntries(&b->p);
  PetscScalar   *a;

  PetscFunctionBegin;
  if (b->p.sharing != BATCH_SHARE_VALUES) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1((size_t)entries * b->p.problems, &a));
  for (PetscInt p = 0; p < b->p.problems; p++) PetscCall(PetscArraycpy(a + (size_t)p * entries, b->a, entries));
  if (b->own_values) *old = b->a;
  b->a          = a;
  b->own_values = PETSC_TRUE;
  b->p.sharing  = BATCH_SHARE_PATTERN;
  PetscCall(MatBatchForget(b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- products */

static PetscErrorCode MatBatchUpdateHost(Mat A)
{
  Mat_Batch     *b = (Mat_Batch *)A->data;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatBatchSync(A));
  if (!b->host) {
    PetscCall(PetscLogEventBegin(MAT_SpMVSetUp, A, 0, 0, 0));
    ierr = BatchHostCreate(&b->p, b->kernel, &b->host);
    PetscCall(PetscLogEventEnd(MAT_SpMVSetUp, A, 0, 0, 0));
    PetscCall(ierr);
    RangeAdd(&b->host_stale, 0, b->p.problems);
  }
  if (b->host_stale.first < b->host_stale.last) {
    PetscCall(PetscLogEventBegin(MAT_SpMVFill, A, 0, 0, 0));
    ierr = BatchHostFill(b->host, &b->p, b->a, b->host_stale.first, b->host_stale.last);
    PetscCall(PetscLogEventEnd(MAT_SpMVFill, A, 0, 0, 0));
    PetscCall(ierr);
    b->host_stale.first = b->host_stale.last = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSCSPMV_HAVE_CUDA)
static PetscErrorCode MatBatchCheckCUDA(Mat A, cudaError_t error)
{
  PetscFunctionBegin;
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_GPU_RESOURCE,
            "Out of memory for the layout of a " MATBATCH " matrix of %" PetscInt64_FMT
            " nonzeros on the GPU. Use more processes, or MatBindToCPU()",
            BatchNonzeros(&((Mat_Batch *)A->data)->p));
  }
  PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* k: 0 for the matrix, 1 for its transpose */
static PetscErrorCode MatBatchUpdateCUDA(Mat A, int k, cudaStream_t stream)
{
  Mat_Batch  *b = (Mat_Batch *)A->data;
  cudaError_t error;

  PetscFunctionBegin;
  PetscCall(MatBatchSync(A));
  if (!A->rmap->n) b->cuda[k].use_host = PETSC_TRUE; /* nothing to launch */
  if (!b->cuda[k].batch && !b->cuda[k].use_host) {
    PetscCall(PetscLogEventBegin(MAT_SpMVSetUp, A, 0, 0, 0));
    error = BatchCudaCreate(&b->p, (PetscBool)k, b->kernel, stream, &b->cuda[k].batch);
    PetscCall(PetscLogEventEnd(MAT_SpMVSetUp, A, 0, 0, 0));
    if (error == cudaErrorNotSupported)
      b->cuda[k].use_host = PETSC_TRUE;
    else
      PetscCall(MatBatchCheckCUDA(A, error));
    RangeAdd(&b->cuda[k].stale, 0, b->p.problems);
  }
  if (!b->cuda[k].use_host && b->cuda[k].stale.first < b->cuda[k].stale.last) {
    PetscCall(PetscLogEventBegin(MAT_SpMVFill, A, 0, 0, 0));
    error = BatchCudaFill(b->cuda[k].batch, &b->p, b->a, b->cuda[k].stale.first, b->cuda[k].stale.last, stream);
    PetscCall(PetscLogEventEnd(MAT_SpMVFill, A, 0, 0, 0));
    PetscCall(MatBatchCheckCUDA(A, error));
    b->cuda[k].stale.first = b->cuda[k].stale.last = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets *device if v is on the device */
static PetscErrorCode VecOnDevice(Vec v, PetscBool *device)
{
  PetscBool is, bound;

  PetscFunctionBegin;
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, &is, VECSEQCUDA, VECMPICUDA, ""));
  PetscCall(VecBoundToCPU(v, &bound));
  if (is && !bound) *device = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif

/* A vector of a product, and its array on the host or on the device */
typedef enum { BATCH_READ, BATCH_WRITE, BATCH_UPDATE } BatchAccess;

typedef struct {
  Vec          v, used; /* used: v, or a copy on the device */
  BatchAccess  access;
  PetscBool    device;
  PetscScalar *array;
} BatchOperand;

static PetscErrorCode BatchOperandGet(Vec v, BatchAccess access, PetscBool device, BatchOperand *o)
{
  PetscFunctionBegin;
  o->v = o->used = v;
  o->access      = access;
  o->device      = device;
#if defined(PETSCSPMV_HAVE_CUDA)
  if (device) {
    PetscCall(SpMVVecOnDevice(v, (PetscBool)(access != BATCH_WRITE), &o->used));
    switch (access) {
    case BATCH_READ: PetscCall(VecGetArrayReadAndMemType(o->used, (const PetscScalar **)&o->array, NULL)); break;
    case BATCH_WRITE: PetscCall(VecGetArrayWriteAndMemType(o->used, &o->array, NULL)); break;
    case BATCH_UPDATE: PetscCall(VecGetArrayAndMemType(o->used, &o->array, NULL));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  switch (access) {
  case BATCH_READ: PetscCall(VecGetArrayRead(v, (const PetscScalar **)&o->array)); break;
  case BATCH_WRITE: PetscCall(VecGetArrayWrite(v, &o->array)); break;
  case BATCH_UPDATE: PetscCall(VecGetArray(v, &o->array));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BatchOperandRestore(BatchOperand *o)
{
  PetscFunctionBegin;
#if defined(PETSCSPMV_HAVE_CUDA)
  if (o->device) {
    switch (o->access) {
    case BATCH_READ: PetscCall(VecRestoreArrayReadAndMemType(o->used, (const PetscScalar **)&o->array)); break;
    case BATCH_WRITE: PetscCall(VecRestoreArrayWriteAndMemType(o->used, &o->array)); break;
    case BATCH_UPDATE: PetscCall(VecRestoreArrayAndMemType(o->used, &o->array));
    }
    PetscCall(SpMVVecRestore(o->v, (PetscBool)(o->access != BATCH_READ), &o->used));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  switch (o->access) {
  case BATCH_READ: PetscCall(VecRestoreArrayRead(o->v, (const PetscScalar **)&o->array)); break;
  case BATCH_WRITE: PetscCall(VecRestoreArrayWrite(o->v, &o->array)); break;
  case BATCH_UPDATE: PetscCall(VecRestoreArray(o->v, &o->array));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Brings the layout of the product up to date. The product runs on the device if one of the vectors is on the device;
   host vectors are then copied for it */
static PetscErrorCode MatBatchUpdate(Mat A, SpMVOp op, Vec x, Vec z, Vec y, PetscBool *device)
{
  PetscFunctionBegin;
  *device = PETSC_FALSE;
#if defined(PETSCSPMV_HAVE_CUDA)
  Mat_Batch *b = (Mat_Batch *)A->data;

  if (b->device && !A->boundtocpu) {
    PetscCall(VecOnDevice(x, device));
    PetscCall(VecOnDevice(y, device));
    PetscCall(VecOnDevice(z, device));
    if (*device) {
      const int    k = op != SPMV_NORMAL;
      cudaStream_t stream;

      PetscCall(SpMVGetStream(&stream));
      PetscCall(MatBatchUpdateCUDA(A, k, stream));
      *device = (PetscBool)!b->cuda[k].use_host;
    }
  }
#endif
  /* transposed products on the host read the arrays of the matrix instead */
  if (!*device && op == SPMV_NORMAL) PetscCall(MatBatchUpdateHost(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* yy = zz + op(A) xx; zz may be yy, or NULL for zero */
static PetscErrorCode MatBatchApply(Mat A, SpMVOp op, Vec xx, Vec zz, Vec yy)
{
  Mat_Batch         *b         = (Mat_Batch *)A->data;
  const PetscBool    conjugate = (PetscBool)(op == SPMV_HERMITIAN);
  const PetscScalar *zarray;
  BatchOperand       x, y, z;
  PetscBool          device;

  PetscFunctionBegin;
  PetscCall(MatBatchCheckVec(A, xx));
  PetscCall(MatBatchCheckVec(A, yy));
  if (zz && zz != yy) PetscCall(MatBatchCheckVec(A, zz));
  PetscCall(MatBatchUpdate(A, op, xx, zz, yy, &device));
  PetscCall(BatchOperandGet(xx, BATCH_READ, device, &x));
  if (zz && zz != yy) PetscCall(BatchOperandGet(zz, BATCH_READ, device, &z));
  PetscCall(BatchOperandGet(yy, zz == yy ? BATCH_UPDATE : BATCH_WRITE, device, &y));
  zarray = !zz ? NULL : (zz == yy ? y.array : z.array);
  if (!device) {
    if (op == SPMV_NORMAL)
      BatchHostMult(b->host, &b->p, b->a, x.array, zarray, y.array);
    else
      BatchMultTranspose(&b->p, conjugate, b->a, x.array, zarray, y.array);
    PetscCall(PetscLogFlops(2.0 * (PetscLogDouble)BatchNonzeros(&b->p)));
  }
#if defined(PETSCSPMV_HAVE_CUDA)
  else {
    cudaStream_t stream;

    PetscCall(SpMVGetStream(&stream));
    PetscCall(PetscLogGpuTimeBegin());
    PetscCallCUDA(BatchCudaMult(b->cuda[op != SPMV_NORMAL].batch, conjugate, x.array, zarray, y.array, stream));
    PetscCall(PetscLogGpuTimeEnd());
    PetscCall(PetscLogGpuFlops(2.0 * BatchNonzeros(&b->p)));
  }
#endif
  PetscCall(BatchOperandRestore(&y));
  if (zz && zz != yy) PetscCall(BatchOperandRestore(&z));
  PetscCall(BatchOperandRestore(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMult_Batch(Mat A, Vec x, Vec y)
{
  return MatBatchApply(A, SPMV_NORMAL, x, NULL, y);
}

static PetscErrorCode MatMultAdd_Batch(Mat A, Vec x, Vec z, Vec y)
{
  return MatBatchApply(A, SPMV_NORMAL, x, z, y);
}

static PetscErrorCode MatMultTranspose_Batch(Mat A, Vec x, Vec y)
{
  return MatBatchApply(A, SPMV_TRANSPOSE, x, NULL, y);
}

static PetscErrorCode MatMultTransposeAdd_Batch(Mat A, Vec x, Vec z, Vec y)
{
  return MatBatchApply(A, SPMV_TRANSPOSE, x, z, y);
}

static PetscErrorCode MatMultHermitianTranspose_Batch(Mat A, Vec x, Vec y)
{
  return MatBatchApply(A, SPMV_HERMITIAN, x, NULL, y);
}

static PetscErrorCode MatMultHermitianTransposeAdd_Batch(Mat A, Vec x, Vec z, Vec y)
{
  return MatBatchApply(A, SPMV_HERMITIAN, x, z, y);
}

/* C = A B on the host, with a dense B */
static PetscErrorCode MatProductNumeric_BatchDense(Mat C)
{
  const Mat          A = C->product->A, B = C->product->B;
  Mat_Batch         *b = NULL;
  const PetscScalar *x;
  PetscScalar       *y;
  PetscInt           ldx, ldy;

  PetscFunctionBegin;
  PetscCall(MatBatchGet(A, &b));
  PetscCall(MatBatchUpdateHost(A));
  PetscCall(MatDenseGetLDA(B, &ldx));
  PetscCall(MatDenseGetLDA(C, &ldy));
  PetscCall(MatDenseGetArrayRead(B, &x));
  PetscCall(MatDenseGetArrayWrite(C, &y));
  BatchHostMultColumns(b->host, &b->p, b->a, B->cmap->N, x, ldx, y, ldy);
  PetscCall(MatDenseRestoreArrayWrite(C, &y));
  PetscCall(MatDenseRestoreArrayRead(B, &x));
  PetscCall(PetscLogFlops(2.0 * (PetscLogDouble)B->cmap->N * (PetscLogDouble)BatchNonzeros(&b->p)));
  PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE));
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatProductSymbolic_BatchDense(Mat C)
{
  PetscFunctionBegin;
  PetscCall(SpMVDenseSymbolic(C, MatProductSymbolic_BatchDense, MatProductNumeric_BatchDense));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- queries */

static PetscErrorCode MatGetInfo_Batch(Mat A, MatInfoType type, MatInfo *info)
{
  Mat_Batch     *b = NULL;
  PetscLogDouble sum[2]; /* nonzeros, bytes */

  PetscFunctionBegin;
  PetscCall(MatBatchGet(A, &b));
  sum[0] = (PetscLogDouble)BatchNonzeros(&b->p);
  sum[1] = ((PetscLogDouble)BatchPatternEntries(&b->p) + (PetscLogDouble)BatchPatternRows(&b->p) +
            (PetscLogDouble)b->p.problems) *
               (PetscLogDouble)sizeof(PetscInt) +
           (PetscLogDouble)BatchValues(&b->p) * (PetscLogDouble)sizeof(PetscScalar);
  PetscCall(PetscMemzero(info, sizeof(*info)));
  info->block_size = 1.0;
  if (type != MAT_LOCAL)
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_DOUBLE, type == MAT_GLOBAL_MAX ? MPI_MAX : MPI_SUM,
                               PetscObjectComm((PetscObject)A)));
  info->nz_allocated = info->nz_used = sum[0];
  info->memory                       = sum[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchGetStats(Mat A, BatchStats *stats)
{
  Mat_Batch *b = (Mat_Batch *)A->data;

  PetscFunctionBegin;
#if defined(PETSCSPMV_HAVE_CUDA)
  if (b->device && !A->boundtocpu) {
    cudaStream_t stream;

    PetscCall(SpMVGetStream(&stream));
    PetscCall(MatBatchUpdateCUDA(A, 0, stream));
    if (!b->cuda[0].use_host) {
      BatchCudaStats(b->cuda[0].batch, stats);
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
#endif
  PetscCall(MatBatchUpdateHost(A));
  BatchHostStats(b->host, stats);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
   MatBatchGetInfo - Gets information about the calling process's part of a `MATBATCH` matrix as it is stored

   Not Collective

   Input Parameter:
.  A - the matrix, of type `MATBATCH`

   Output Parameter:
.  info - sizes, padding and the kernel chosen, see `MatBatchInfo`

   Level: intermediate

   Note:
   Creates the layout of the kernel if no product has done so yet. `-mat_view ::ascii_info` prints the same information,
   summed over the processes.

   Errors:
+  PETSC_ERR_ARG_WRONG      - the matrix is not of type `MATBATCH`
-  PETSC_ERR_ARG_WRONGSTATE - the matrix has no problems yet

.seealso: `MATBATCH`, `MatBatchInfo`, `MatBatchGetProblem()`
@*/
PetscErrorCode MatBatchGetInfo(Mat A, MatBatchInfo *info)
{
  Mat_Batch *b = NULL;
  BatchStats stats;

  PetscFunctionBegin;
  PetscAssertPointer(info, 2);
  PetscCall(MatBatchGet(A, &b));
  PetscCall(MatBatchGetStats(A, &stats));
  PetscCall(PetscMemzero(info, sizeof(*info)));
  info->problems = b->p.problems;
  for (PetscInt p = 0; p < b->p.problems; p++) {
    const PetscInt n = b->first[p + 1] - b->first[p];

    info->smallest = p ? PetscMin(info->smallest, n) : n;
    info->largest  = PetscMax(info->largest, n);
  }
  info->nonzeros = BatchNonzeros(&b->p);
  info->sharing  = (MatBatchSharing)b->p.sharing;
  info->stored   = stats.stored;
  info->bytes    = stats.bytes;
  info->kernel   = stats.kernel;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatBatchSetOps_Products(Mat A)
{
  PetscFunctionBegin;
  A->ops->mult                      = MatMult_Batch;
  A->ops->multadd                   = MatMultAdd_Batch;
  A->ops->multtranspose             = MatMultTranspose_Batch;
  A->ops->multtransposeadd          = MatMultTransposeAdd_Batch;
  A->ops->multhermitiantranspose    = MatMultHermitianTranspose_Batch;
  A->ops->multhermitiantransposeadd = MatMultHermitianTransposeAdd_Batch;
  A->ops->getinfo                   = MatGetInfo_Batch;
  PetscFunctionReturn(PETSC_SUCCESS);
}
