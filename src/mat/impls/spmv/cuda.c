/*
  A sequential matrix' copy in the format on the device, and its products.

  The format's arrays are laid out from the CSR arrays on the device where AIJCUSPARSE has them up to date, else from the host's, which are copied there and
  not kept: a loop of products holds one copy of the matrix, not two.
*/
#include "matspmv.h"

#if defined(PETSCSPMV_HAVE_CUDA)

/* ---------------------------------------------------------------- the CSR arrays on the device */

typedef struct {
  SpMVCudaCSR csr;
  void       *copy; /* i, a, j, one after the other: ours, where AIJCUSPARSE has none */
} SpMVDeviceCSR;

static PetscErrorCode SpMVDeviceCSRRestore(SpMVDeviceCSR *d)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaFree(d->copy)); /* waits for whatever reads it */
  d->copy = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns only if asked for: a refresh does without */
static PetscErrorCode SpMVDeviceCSRGet(Mat A, Mat_SpMV *spmv, const SpMVCSR *host, PetscBool columns, SpMVDeviceCSR *d)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(d, sizeof(*d)));
  d->csr.m           = host->m;
  d->csr.n           = host->n;
  d->csr.nnz         = host->i[host->m];
  d->csr.index_bytes = sizeof(PetscInt);
  if (A->offloadmask == PETSC_OFFLOAD_GPU || A->offloadmask == PETSC_OFFLOAD_BOTH) {
    const PetscInt *i, *j;

    PetscCall(MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, &i, &j));
    PetscCall(MatSeqAIJCUSPARSEGetArrayRead(A, &a));
    d->csr.i = i;
    d->csr.j = j;
    d->csr.a = a;
    PetscCall(MatSeqAIJCUSPARSERestoreArrayRead(A, &a)); /* the arrays stay, and nothing changes them before we are done */
    PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, &i, &j));
  } else {
    const int    arrays   = columns ? 3 : 2;
    const size_t bytes[3] = {(size_t)(host->m + 1) * sizeof(PetscInt), (size_t)d->csr.nnz * sizeof(PetscScalar), (size_t)d->csr.nnz * sizeof(PetscInt)};
    const void  *from[3]  = {host->i, NULL, host->j};
    void        *to[3];
    size_t       at[4] = {0};

    PetscCall(MatSeqAIJGetArrayRead(A, &a));
    from[1] = a;
    for (int k = 0; k < arrays; k++) at[k + 1] = at[k] + (bytes[k] + 255) / 256 * 256;
    if (cudaMalloc(&d->copy, at[arrays]) != cudaSuccess) {
      (void)cudaGetLastError();
      d->copy = NULL;
      SETERRQ(PETSC_COMM_SELF, PETSC_ERR_GPU_RESOURCE,
              "Out of GPU memory: %zu bytes for a copy of the matrix, from which its %s format is made. Use more processes, or -mat_type aijcusparse",
              at[arrays], spmv->format->name);
    }
    for (int k = 0; k < arrays; k++) to[k] = (char *)d->copy + at[k];
    PetscCallCUDA(SpMVCudaUpload(arrays, to, from, bytes));
    PetscCall(PetscLogCpuToGpu((PetscLogDouble)at[arrays]));
    PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
    d->csr.i = to[0];
    d->csr.a = (PetscScalar *)to[1];
    d->csr.j = columns ? to[2] : NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the stored copies */

/* A block for a new pattern, k = 1 of the transpose. Where CUDA refuses it, *error says why */
static PetscErrorCode MatSpMVSetUpStore_CUDA(Mat A, Mat_SpMV *spmv, int k, const SpMVCudaCSR *csr, cudaStream_t stream, cudaError_t *error)
{
  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MAT_SpMVSetUp, A, 0, 0, 0));
  *error = (*spmv->format->setupcuda)(csr, spmv->params, (PetscBool)k, stream, &spmv->cuda[k].store);
  if (*error == cudaSuccess && k == 0 && spmv->boundary.count) {
    *error = SpMVCudaSetBoundary(spmv->cuda[0].store, csr, spmv->boundary.count, spmv->boundary.rows, spmv->boundary.limit, stream);
    if (*error == cudaErrorMemoryAllocation) (void)cudaGetLastError();
    if (*error == cudaErrorNotSupported || *error == cudaErrorMemoryAllocation) *error = cudaSuccess; /* all rows are multiplied together, then */
  }
  PetscCall(PetscLogEventEnd(MAT_SpMVSetUp, A, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Layout (of a new pattern) and values */
static PetscErrorCode MatSpMVStore_CUDA(Mat A, Mat_SpMV *spmv, int k, PetscBool pattern, const SpMVCSR *host, cudaStream_t stream)
{
  SpMVDeviceCSR device;
  cudaError_t   error = cudaSuccess;

  PetscFunctionBegin;
  PetscCall(SpMVDeviceCSRGet(A, spmv, host, pattern, &device));
  if (pattern) PetscCall(MatSpMVSetUpStore_CUDA(A, spmv, k, &device.csr, stream, &error));
  if (error == cudaSuccess) {
    PetscCall(PetscLogEventBegin(MAT_SpMVFill, A, 0, 0, 0));
    error = SpMVCudaFill(spmv->cuda[k].store, &device.csr, stream);
    PetscCall(PetscLogEventEnd(MAT_SpMVFill, A, 0, 0, 0));
  }
  PetscCall(SpMVDeviceCSRRestore(&device));
  if (error == cudaErrorNotSupported) {
    spmv->cuda[k].use_parent = PETSC_TRUE;
    PetscCall(PetscInfo(A, "AIJCUSPARSE multiplies: %s\n",
                        SpMVCudaIsSupported() ? "this block is left to it by -mat_<type>_kernel, or too large for 32-bit numbers"
                                              : "this GPU is none of compute capability 8.0 or later that the library was compiled for (make CUDA_ARCHS=...)"));
  } else if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_GPU_RESOURCE,
            "Out of GPU memory for the %s format%s of a matrix of %" PetscInt64_FMT " nonzeros. Use more processes, or -mat_type aijcusparse",
            spmv->format->name, k ? " of the transpose" : "", (PetscInt64)device.csr.nnz);
  } else
    PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A block of A, or (k = 1) of its transpose, in line with the matrix. After an error the matrix is as before its first product: the next one tries again */
static PetscErrorCode MatSpMVUpdate_CUDA(Mat A, Mat_SpMV *spmv, int k, cudaStream_t stream)
{
  SpMVCSR        host;
  PetscBool      pattern;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (SpMVKeyIsCurrent(&spmv->cuda[k].key, A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVGetPattern(A, &host));
  pattern = (PetscBool)((!spmv->cuda[k].store && !spmv->cuda[k].use_parent) || !SpMVKeyHasPattern(&spmv->cuda[k].key, A, &host));
  if (pattern) {
    PetscCall(MatSpMVForget_CUDA(spmv, k));
    spmv->cuda[k].use_parent = A->structure_only;
  }
  if (!spmv->cuda[k].use_parent) ierr = MatSpMVStore_CUDA(A, spmv, k, pattern, &host, stream);
  if (ierr)
    PetscCall(MatSpMVForget_CUDA(spmv, k));
  else
    SpMVKeySetPattern(&spmv->cuda[k].key, A, &host);
  PetscCall(MatSpMVRestorePattern(A, &host));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A's own data, its block on the device up to date; NULL where AIJCUSPARSE multiplies */
PetscErrorCode MatSpMVGetReady_SeqCUDA(Mat A, PetscBool transpose, Mat_SpMV **spmv)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, spmv));
  PetscCall(SpMVGetStream(&stream));
  PetscCall(MatSpMVUpdate_CUDA(A, *spmv, transpose, stream));
  if ((*spmv)->cuda[transpose].use_parent) *spmv = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGetStats_CUDA(Mat A, Mat_SpMV *spmv, SpMVStats *stats)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(SpMVGetStream(&stream));
  PetscCall(MatSpMVUpdate_CUDA(A, spmv, 0, stream));
  PetscCall(PetscMemzero(stats, sizeof(*stats)));
  stats->node = 1;
  if (spmv->cuda[0].store) SpMVCudaGetStats(spmv->cuda[0].store, stats);
  if (spmv->cuda[0].use_parent) stats->kernel = "AIJCUSPARSE's own";
  stats->nonzeros = spmv->cuda[0].key.nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- products */

/*
  zz = yy + op(A) xx, where yy may be zz, and NULL for zero. On the device as soon as one of the vectors is there: between host vectors
  alone, the host's format is faster than sending them to and fro. Where the device has no memory for the copies the host multiplies: in the middle of a
  parallel product, an error on this rank alone would reach the others too late.
*/
PetscErrorCode MatSpMVApply_SeqCUDA(Mat A, Mat_SpMV *spmv, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  SpMVCudaCopy *copy   = &spmv->cuda[op != SPMV_NORMAL];
  PetscBool     staged = PETSC_TRUE;
  SpMVOperands  o;
  cudaStream_t  stream;

  PetscFunctionBegin;
  PetscCall(SpMVGetStream(&stream));
  PetscCall(SpMVOperandsBegin(SPMV_IN_PLACE, xx, yy, zz, &o));
  if (o.device) PetscCall(MatSpMVUpdate_CUDA(A, spmv, op != SPMV_NORMAL, stream));
  if (o.device && o.host && !copy->use_parent) {
    PetscCall(SpMVOperandsStage(&o, stream, &staged));
    if (!staged) PetscCall(PetscInfo(A, "The host multiplies: the GPU has no memory for copies of the vectors that are on the host\n"));
  }
  if (o.device && staged && !copy->use_parent) {
    PetscCall(PetscLogGpuTimeBegin());
    PetscCallCUDA(SpMVCudaMult(copy->store, (PetscBool)(op == SPMV_HERMITIAN), o.x, o.y, o.z, stream));
    PetscCall(PetscLogGpuTimeEnd());
    PetscCall(PetscLogGpuFlops(2.0 * copy->key.nz - (yy || op != SPMV_NORMAL ? 0 : PetscMin(copy->key.m, copy->key.nz))));
  }
  PetscCall(SpMVOperandsEnd(&o));
  if (!o.device || !staged || (copy->use_parent && o.host))
    PetscCall(MatSpMVApplyHostVecs(A, spmv, op, xx, yy, zz));
  else if (copy->use_parent)
    PetscCall(MatSpMVApplyParent(A, spmv, op, xx, yy, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- for parallel products */

/*
  The rows of the diagonal block A to multiply apart from the others: those in which the off-diagonal block B has entries, unless they are
  more than `share` of all, or A is so small that there is no time in its product for an exchange and two more kernels. If they have changed,
  A's block is made anew.
*/
PetscErrorCode MatSpMVSetBoundary_SeqCUDA(Mat A, Mat B, PetscReal share, PetscBool always)
{
  const PetscInt least = 8000000; /* nonzeros: 20 us of an H200 */
  Mat_SpMV      *spmv;
  SpMVCSR        csr;
  PetscInt       count = 0;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (SpMVKeyHasNonzeroState(&spmv->boundary.key, B)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVGetPattern(A, &csr));
  always = (PetscBool)(always || csr.i[csr.m] >= least);
  PetscCall(MatSpMVRestorePattern(A, &csr));
  PetscCall(MatSpMVGetPattern(B, &csr));
  for (PetscInt r = 0; r < csr.m; r++) count += csr.i[r + 1] > csr.i[r];
  if (!always || (PetscReal)count > share * (PetscReal)csr.m || csr.m >= INT_MAX) count = 0;
  if (count || spmv->boundary.count) {
    if (spmv->cuda[0].store) PetscCallCUDA(SpMVCudaDestroy(&spmv->cuda[0].store));
    spmv->cuda[0].key.mat = NULL;
  }
  PetscCall(PetscFree(spmv->boundary.rows));
  spmv->boundary.count   = 0;
  spmv->boundary.key.mat = NULL; /* should this fail, the next product tries again */
  ierr                   = PetscMalloc1(count, &spmv->boundary.rows);
  for (PetscInt r = 0; !ierr && r < csr.m && count; r++) {
    if (csr.i[r + 1] > csr.i[r]) spmv->boundary.rows[spmv->boundary.count++] = (int)r;
  }
  PetscCall(MatSpMVRestorePattern(B, &csr));
  PetscCall(ierr);
  spmv->boundary.limit = (PetscInt64)(share * (PetscReal)csr.m);
  SpMVKeySet(&spmv->boundary.key, B);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the diagonal block's product adds of the off-diagonal block B: its layout (of a new pattern) and values, unless the device refuses them */
static PetscErrorCode MatSpMVStoreFused_CUDA(Mat_SpMV *spmv, Mat B, PetscReal share, PetscBool pattern, const SpMVCSR *host)
{
  const SpMVCudaStore block = spmv->cuda[0].store;
  SpMVDeviceCSR       device;
  cudaStream_t        stream;
  cudaError_t         error = cudaSuccess;

  PetscFunctionBegin;
  PetscCall(SpMVGetStream(&stream));
  PetscCall(SpMVDeviceCSRGet(B, spmv, host, pattern, &device));
  if (pattern) error = SpMVCudaFuseOffdiagonal(block, &device.csr, (PetscInt64)(share * (PetscReal)host->m), stream);
  if (error == cudaErrorMemoryAllocation) (void)cudaGetLastError();
  if (error == cudaErrorNotSupported || error == cudaErrorMemoryAllocation) {
    spmv->fused.refused = PETSC_TRUE; /* a product of its own, then */
    error               = cudaSuccess;
  } else if (error == cudaSuccess)
    error = SpMVCudaFillOffdiagonal(block, &device.csr, stream);
  PetscCall(SpMVDeviceCSRRestore(&device));
  PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The off-diagonal block B as the product of the diagonal block, which is up to date, adds it; has is false where it cannot */
PetscErrorCode MatSpMVUpdateFused_SeqCUDA(Mat_SpMV *spmv, Mat B, PetscReal share, PetscBool *has)
{
  SpMVCSR        host;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (!SpMVKeyIsCurrent(&spmv->fused.key, B)) {
    PetscBool pattern;

    PetscCall(MatSpMVGetPattern(B, &host));
    pattern             = (PetscBool)!SpMVKeyHasPattern(&spmv->fused.key, B, &host);
    spmv->fused.key.mat = NULL; /* should this fail, the next product tries again */
    if (pattern) spmv->fused.refused = B->structure_only;
    if (!spmv->fused.refused) ierr = MatSpMVStoreFused_CUDA(spmv, B, share, pattern, &host);
    if (!ierr) SpMVKeySetPattern(&spmv->fused.key, B, &host);
    PetscCall(MatSpMVRestorePattern(B, &host));
    PetscCall(ierr);
  }
  *has = (PetscBool)!spmv->fused.refused;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
