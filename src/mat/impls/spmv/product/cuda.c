/*
  The copies of a sequential matrix and of its transpose on the device, in its format, and the products with them.

  The format is laid out from AIJCUSPARSE's CSR arrays on the device if these are up to date. Otherwise it is laid out
  from a temporary copy of the host's arrays, so that a loop of products keeps one copy of the matrix on the device, not
  two.
*/
#include "mat/impls/spmv/matspmv.h"

#if defined(PETSCSPMV_HAVE_CUDA)

/* ---------------------------------------------------------------- the CSR arrays on the device */

typedef struct {
  SpMVCudaCSR       csr;
  SpMVCudaTemporary copy; /* our own copy of i, a, j, if AIJCUSPARSE's arrays are not up to date */
} SpMVDeviceCSR;

static PetscErrorCode SpMVDeviceCSRRestore(SpMVDeviceCSR *d, cudaStream_t stream)
{
  PetscFunctionBegin;
  PetscCallCUDA(SpMVCudaFreeTemporary(&d->copy, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The columns are copied only if `columns`: a refresh of the values does not need them. *error: of CUDA */
static PetscErrorCode SpMVDeviceCSRGet(Mat A, const SpMVCSR *host, PetscBool columns, cudaStream_t stream,
                                       SpMVDeviceCSR *d, cudaError_t *error)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  *error = cudaSuccess;
  PetscCall(PetscMemzero(d, sizeof(*d)));
  d->csr.m           = host->m;
  d->csr.n           = host->n;
  d->csr.nnz         = host->i[host->m];
  d->csr.index_bytes = sizeof(PetscInt);
  if (PetscOffloadDevice(A->offloadmask)) {
    const PetscInt *i, *j;

    PetscCall(MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, &i, &j));
    PetscCall(MatSeqAIJCUSPARSEGetArrayRead(A, &a));
    d->csr.i = i;
    d->csr.j = j;
    d->csr.a = a;
    PetscCall(MatSeqAIJCUSPARSERestoreArrayRead(A, &a)); /* the arrays stay valid and unchanged while we use them */
    PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, &i, &j));
  } else {
    const int    arrays    = columns ? 3 : 2;
    const size_t bytes[3]  = {(size_t)(host->m + 1) * sizeof(PetscInt), (size_t)d->csr.nnz * sizeof(PetscScalar),
                              (size_t)d->csr.nnz * sizeof(PetscInt)};
    const void  *source[3] = {host->i, NULL, host->j};
    void        *dest[3];
    size_t       total = 0;

    for (int k = 0; k < arrays; k++) total += bytes[k];
    PetscCall(MatSeqAIJGetArrayRead(A, &a));
    source[1] = a;
    *error    = SpMVCudaUploadTemporary(arrays, dest, source, bytes, stream, &d->copy);
    PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
    if (*error != cudaSuccess) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(PetscLogCpuToGpu((PetscLogDouble)total));
    d->csr.i = dest[0];
    d->csr.a = (PetscScalar *)dest[1];
    d->csr.j = columns ? dest[2] : NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Begins to prepare the process's first product, if the program already uses the device: it often continues with its own
  work before it multiplies, and code, pinned memory and the memory pool then take it 7 to 25 ms less. An error is not
  one of this matrix
*/
PetscErrorCode MatSpMVPrepare_SeqCUDA(Mat A)
{
  MatInfo info;

  PetscFunctionBegin;
  if (A->boundtocpu || !PetscDeviceInitialized(PETSC_DEVICE_CUDA)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  if (PetscOffloadDevice(A->offloadmask)) info.nz_used = 0; /* nothing will be copied from the host */
  if (SpMVCudaPrepare((size_t)info.nz_used * (sizeof(PetscScalar) + sizeof(PetscInt))) != cudaSuccess)
    (void)cudaGetLastError();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the stored copies */

/* Lays out a new pattern of A (k = 0) or of its transpose (k = 1). *error is the error of CUDA or of the format */
static PetscErrorCode MatSpMVSetUpStore_SeqCUDA(Mat A, Mat_SpMV *spmv, int k, const SpMVCudaCSR *csr,
                                                cudaStream_t stream, cudaError_t *error)
{
  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MAT_SpMVSetUp, A, 0, 0, 0));
  *error = (*spmv->format->setupcuda)(csr, spmv->params, (PetscBool)k, stream, &spmv->cuda[k].store);
  PetscCall(PetscLogEventEnd(MAT_SpMVSetUp, A, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Creates the layout if the pattern is new, and copies the values. *lacks: there is no memory, and this is not an error,
  because the calling rank may have changed a block of a parallel matrix without the other ranks' knowledge. AIJCUSPARSE
  then multiplies, and the exchange continues
*/
static PetscErrorCode MatSpMVStore_SeqCUDA(Mat A, Mat_SpMV *spmv, int k, PetscBool pattern, const SpMVCSR *host,
                                           cudaStream_t stream, PetscBool *lacks)
{
  SpMVDeviceCSR device;
  cudaError_t   error;

  PetscFunctionBegin;
  PetscCall(SpMVDeviceCSRGet(A, host, pattern, stream, &device, &error));
  if (error == cudaSuccess && pattern) PetscCall(MatSpMVSetUpStore_SeqCUDA(A, spmv, k, &device.csr, stream, &error));
  if (error == cudaSuccess) {
    PetscCall(PetscLogEventBegin(MAT_SpMVFill, A, 0, 0, 0));
    error = SpMVCudaFill(spmv->cuda[k].store, &device.csr, stream);
    PetscCall(PetscLogEventEnd(MAT_SpMVFill, A, 0, 0, 0));
  }
  PetscCall(SpMVDeviceCSRRestore(&device, stream));
  if (error == cudaErrorNotSupported) {
    spmv->cuda[k].use_parent = PETSC_TRUE;
    PetscCall(PetscInfo(
        A, "Using the product of AIJCUSPARSE: %s\n",
        SpMVCudaIsSupported()
            ? "selected by -mat_spmv_kernel, or the matrix is too large for 32-bit indices"
            : "the library was not compiled for this GPU (make CUDA_ARCHS=..., compute capability 8.0 or later)"));
  } else if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    PetscCheck(spmv->may_lack, PETSC_COMM_SELF, PETSC_ERR_GPU_RESOURCE,
               "Out of GPU memory for the %s format%s of a matrix of %" PetscInt64_FMT
               " nonzeros. Use more processes or -mat_type aijcusparse",
               spmv->format->name, k ? " of the transpose" : "", (PetscInt64)device.csr.nnz);
    PetscCall(PetscInfo(A,
                        "Out of GPU memory for the %s format; using AIJCUSPARSE's product until the matrix changes\n",
                        spmv->format->name));
    *lacks = PETSC_TRUE;
  } else
    PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Brings the copy of A (k = 0) or of its transpose (k = 1) up to date. After an error there is no copy, as before the
  first product, and the next product tries again
*/
static PetscErrorCode MatSpMVUpdate_SeqCUDA(Mat A, Mat_SpMV *spmv, int k, cudaStream_t stream)
{
  SpMVCSR        host;
  PetscBool      pattern, lacks = PETSC_FALSE;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (SpMVKeyIsCurrent(&spmv->cuda[k].key, A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVSetCopy_SeqCUDA(A, PETSC_TRUE));
  PetscCall(MatSpMVGetPattern_Seq(A, &host));
  pattern = (PetscBool)((!spmv->cuda[k].store && !spmv->cuda[k].use_parent) ||
                        !SpMVKeyHasPattern(&spmv->cuda[k].key, A, &host));
  if (pattern) {
    PetscCall(MatSpMVForget_SeqCUDA(spmv, k));
    spmv->cuda[k].use_parent = A->structure_only;
  }
  if (!spmv->cuda[k].use_parent) ierr = MatSpMVStore_SeqCUDA(A, spmv, k, pattern, &host, stream, &lacks);
  if (ierr || lacks) PetscCall(MatSpMVForget_SeqCUDA(spmv, k));
  if (!ierr) SpMVKeySetPattern(&spmv->cuda[k].key, A, &host);
  if (lacks) {
    spmv->cuda[k].use_parent = PETSC_TRUE;
    spmv->cuda[k].key.i      = NULL; /* matches no pattern: the next change sets the format up */
  }
  PetscCall(MatSpMVRestorePattern_Seq(A, &host));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Brings a copy up to date; *spmv is NULL if AIJCUSPARSE multiplies */
PetscErrorCode MatSpMVGetReady_SeqCUDA(Mat A, PetscBool transpose, Mat_SpMV **spmv)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, spmv));
  PetscCall(SpMVGetStream(&stream));
  PetscCall(MatSpMVUpdate_SeqCUDA(A, *spmv, transpose, stream));
  if ((*spmv)->cuda[transpose].use_parent) *spmv = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGetStats_SeqCUDA(Mat A, Mat_SpMV *spmv, SpMVStats *stats)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(SpMVGetStream(&stream));
  PetscCall(MatSpMVUpdate_SeqCUDA(A, spmv, 0, stream));
  PetscCall(PetscMemzero(stats, sizeof(*stats)));
  stats->node = 1;
  if (spmv->cuda[0].store) SpMVCudaGetStats(spmv->cuda[0].store, stats);
  if (spmv->cuda[0].use_parent) stats->kernel = "AIJCUSPARSE's own";
  stats->nonzeros = spmv->cuda[0].key.nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- products */

/*
  zz = yy + op(A) xx, where yy may be zz, or NULL for zero; or zz = yy - A xx. The device multiplies if at least one
  vector is on the device. If all are on the host, the host multiplies, because that is faster than copying them to the
  device and back. The host also multiplies if the device has no memory for copies of the vectors: an error on this rank
  alone, in the middle of a parallel product, would leave the other ranks waiting.
*/
PetscErrorCode MatSpMVApply_SeqCUDA(Mat A, Mat_SpMV *spmv, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  const SpMVCudaForm form      = op == SPMV_HERMITIAN  ? SPMVCUDA_CONJUGATE
                                 : op == SPMV_RESIDUAL ? SPMVCUDA_RESIDUAL
                                                       : SPMVCUDA_MULT;
  const PetscBool    transpose = (PetscBool)(op == SPMV_TRANSPOSE || op == SPMV_HERMITIAN);
  SpMVCudaCopy      *copy      = &spmv->cuda[transpose];
  PetscBool          staged    = PETSC_TRUE;
  Vec                bb        = NULL; /* the right-hand side if the residual is computed in two operations */
  SpMVOperands       o;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(SpMVGetStream(&stream));
  PetscCall(SpMVOperandsBegin(SPMV_IN_PLACE, xx, yy, zz, &o));
  if (o.device) PetscCall(MatSpMVUpdate_SeqCUDA(A, spmv, transpose, stream));
  if (o.device && o.host && !copy->use_parent) {
    PetscCall(SpMVOperandsStage(&o, stream, &staged));
    if (!staged) PetscCall(PetscInfo(A, "Multiplying on the host: out of GPU memory for copies of the host vectors\n"));
  }
  if (o.device && staged && !copy->use_parent) {
    PetscCall(PetscLogGpuTimeBegin());
    PetscCallCUDA(SpMVCudaMult(copy->store, form, o.x, o.y, o.z, stream));
    PetscCall(PetscLogGpuTimeEnd());
    PetscCall(PetscLogGpuFlops(2.0 * copy->key.nz - (yy || transpose ? 0 : PetscMin(copy->key.m, copy->key.nz))));
  }
  PetscCall(SpMVOperandsEnd(&o));
  if (o.device && staged && !copy->use_parent) PetscFunctionReturn(PETSC_SUCCESS);
  if (op == SPMV_RESIDUAL) {
    bb = yy;
    yy = NULL;
    op = SPMV_NORMAL;
  }
  if (!o.device || !staged || o.host) {
    PetscCall(MatSpMVUpdateHostOrUseParent_Seq(A)); /* lack of memory for the host's copy must not be an error either */
    PetscCall(MatSpMVApplyHost_Seq(A, spmv, op, xx, yy, zz));
  } else
    PetscCall(MatSpMVApplyParent_Seq(A, spmv, op, xx, yy, zz));
  if (bb) PetscCall(VecAYPX(zz, -1.0, bb));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- for parallel products */

/*
  Fuses the off-diagonal block B into the diagonal block's store: creates the layout if the pattern is new, and copies
  the values. Sets fused.refused if B cannot be fused or the device is out of memory
*/
static PetscErrorCode MatSpMVStoreFused_SeqCUDA(Mat_SpMV *spmv, Mat B, PetscReal fraction, PetscBool pattern,
                                                const SpMVCSR *host)
{
  const SpMVCudaStore store = spmv->cuda[0].store;
  SpMVDeviceCSR       device;
  cudaStream_t        stream;
  cudaError_t         error;

  PetscFunctionBegin;
  PetscCall(SpMVGetStream(&stream));
  PetscCall(SpMVDeviceCSRGet(B, host, pattern, stream, &device, &error));
  if (error == cudaSuccess && pattern)
    error = SpMVCudaFuseOffdiagonal(store, &device.csr, (PetscInt64)(fraction * (PetscReal)host->m), stream);
  if (error == cudaErrorMemoryAllocation) (void)cudaGetLastError();
  if (error == cudaErrorNotSupported || error == cudaErrorMemoryAllocation) {
    spmv->fused.refused = PETSC_TRUE; /* B is then multiplied by a separate kernel */
    error               = cudaSuccess;
  } else if (error == cudaSuccess)
    error = SpMVCudaFillOffdiagonal(store, &device.csr, stream);
  PetscCall(SpMVDeviceCSRRestore(&device, stream));
  PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Brings the fused off-diagonal block B up to date; the diagonal block is up to date already. *fused is false if B
   cannot be fused */
PetscErrorCode MatSpMVUpdateFused_SeqCUDA(Mat_SpMV *spmv, Mat B, PetscReal fraction, PetscBool *fused)
{
  SpMVCSR        host;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (!SpMVKeyIsCurrent(&spmv->fused.key, B)) {
    PetscBool pattern;

    PetscCall(MatSpMVGetPattern_Seq(B, &host));
    pattern             = (PetscBool)!SpMVKeyHasPattern(&spmv->fused.key, B, &host);
    spmv->fused.key.mat = NULL; /* after an error the next product tries again */
    if (pattern) spmv->fused.refused = B->structure_only;
    if (!spmv->fused.refused) ierr = MatSpMVStoreFused_SeqCUDA(spmv, B, fraction, pattern, &host);
    if (!ierr) SpMVKeySetPattern(&spmv->fused.key, B, &host);
    PetscCall(MatSpMVRestorePattern_Seq(B, &host));
    PetscCall(ierr);
  }
  *fused = (PetscBool)!spmv->fused.refused;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
