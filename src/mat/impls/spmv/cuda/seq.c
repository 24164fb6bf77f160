/*
  The copies of a sequential matrix and of its transpose on the device, in its format, and the products with them.

  The format is laid out from AIJCUSPARSE's CSR arrays on the device if these are up to date. Otherwise it is laid out
  from a temporary copy of the host's arrays, so that a loop of products keeps one copy of the matrix on the device, not
  two.
*/
#include "matspmvcuda.h"

/* ---------------------------------------------------------------- the CSR arrays on the device */

typedef struct {
  SpMVCudaCSR       csr;
  SpMVCudaTemporary copy; /* our own copy of i, a, j, if AIJCUSPARSE's arrays are not up to date */
} SpMVDeviceCSR;

/* The columns are copied only if `columns`: a refresh of the values does not need them. *error: of CUDA */
static PetscErrorCode SpMVDeviceCSRGet(Mat A, const SpMVCSR *host, PetscBool columns, cudaStream_t stream,
                                       SpMVDeviceCSR *d, cudaError_t *error)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  *error = cudaSuccess;
  PetscCall(PetscMemzero(d, sizeof(*d)));
  if (PetscOffloadDevice(A->offloadmask)) {
    SpMVValues v;

    PetscCall(SpMVValuesGet(A, PETSC_FALSE, &v));
    d->csr = v.csr;
    PetscCall(SpMVValuesRestore(A, &v)); /* the arrays stay valid and unchanged while we use them */
  } else {
    const int    arrays   = columns ? 3 : 2;
    const size_t nz       = (size_t)host->i[host->m];
    const size_t bytes[3] = {(size_t)(host->m + 1) * sizeof(PetscInt), nz * sizeof(PetscScalar), nz * sizeof(PetscInt)};
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
    d->csr   = (SpMVCudaCSR){.m = host->m, .n = host->n, .nnz = host->i[host->m], .index_bytes = sizeof(PetscInt)};
    d->csr.i = dest[0];
    d->csr.a = (PetscScalar *)dest[1];
    d->csr.j = columns ? dest[2] : NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Begins to prepare the process's first product, if the program already uses the device: it often continues with its own
  work before it multiplies, and pinned memory and the memory pool then take it 10 to 17 ms less. An error is not
  one of this matrix
*/
PetscErrorCode MatSpMVWarmUp_SeqCUDA(Mat A)
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

/* Frees the copy of A (k = 0) or of its transpose (k = 1); the next product sets it up again */
static PetscErrorCode MatSpMVForget_SeqCUDA(Mat_SpMV *spmv, int k)
{
  PetscFunctionBegin;
  SpMVMultPlanEpoch++;
  spmv->cuda->copy[k].key.mat    = NULL;
  spmv->cuda->copy[k].use_parent = PETSC_FALSE;
  if (k == 0) spmv->cuda->fused.key.mat = NULL; /* the fused block is destroyed together with the store */
  if (spmv->cuda->copy[k].store) PetscCallCUDA(SpMVCudaDestroy(&spmv->cuda->copy[k].store));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVForget_CUDA(Mat_SpMV *spmv)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(MatSpMVForget_SeqCUDA(spmv, k));
  PetscCall(PetscMemzero(&spmv->cuda->columns, sizeof(spmv->cuda->columns)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lays out a new pattern of A (k = 0) or of its transpose (k = 1). *error is the error of CUDA or of the format */
static PetscErrorCode MatSpMVSetUpStore_SeqCUDA(Mat A, Mat_SpMV *spmv, int k, const SpMVCudaCSR *csr,
                                                cudaStream_t stream, cudaError_t *error)
{
  const SpMVCommonParams *params = (const SpMVCommonParams *)spmv->params;

  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MAT_SpMVSetUp, A, 0, 0, 0));
  *error = cudaErrorNotSupported;
  if (spmv->format->setupcuda && params->kernel != SPMV_KERNEL_PARENT)
    *error = (*spmv->format->setupcuda)(csr, spmv->params, (PetscBool)k, stream, &spmv->cuda->copy[k].store);
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
    error = SpMVCudaFill(spmv->cuda->copy[k].store, &device.csr, stream);
    PetscCall(PetscLogEventEnd(MAT_SpMVFill, A, 0, 0, 0));
  }
  PetscCallCUDA(SpMVCudaFreeTemporary(&device.copy, stream));
  if (error == cudaErrorNotSupported) {
    spmv->cuda->copy[k].use_parent = PETSC_TRUE;
    PetscCall(PetscInfo(
        A, "Using the product of AIJCUSPARSE: %s\n",
        SpMVCudaIsSupported()
            ? "selected by -mat_spmv_kernel, or the matrix is too large for 32-bit indices"
            : "the library was not compiled for this GPU (make CUDA_ARCHS=..., compute capability 8.0 or later)"));
  } else if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    PetscCheck(spmv->cuda->may_lack, PETSC_COMM_SELF, PETSC_ERR_GPU_RESOURCE,
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
  if (SpMVKeyIsCurrent(&spmv->cuda->copy[k].key, A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVGetPattern_Seq(A, &host));
  pattern = (PetscBool)((!spmv->cuda->copy[k].store && !spmv->cuda->copy[k].use_parent) ||
                        !SpMVKeyHasPattern(&spmv->cuda->copy[k].key, A, &host));
  if (pattern) {
    PetscCall(MatSpMVForget_SeqCUDA(spmv, k));
    spmv->cuda->copy[k].use_parent = A->structure_only;
  }
  if (!spmv->cuda->copy[k].use_parent) ierr = MatSpMVStore_SeqCUDA(A, spmv, k, pattern, &host, stream, &lacks);
  if (ierr || lacks) PetscCall(MatSpMVForget_SeqCUDA(spmv, k));
  if (!ierr) SpMVKeySetPattern(&spmv->cuda->copy[k].key, A, &host);
  if (lacks) {
    spmv->cuda->copy[k].use_parent = PETSC_TRUE;
    spmv->cuda->copy[k].key.i      = NULL; /* matches no pattern: the next change sets the format up */
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
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(MatSpMVUpdate_SeqCUDA(A, *spmv, transpose, stream));
  if ((*spmv)->cuda->copy[transpose].use_parent) *spmv = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGetStats_SeqCUDA(Mat A, Mat_SpMV *spmv, SpMVStats *stats)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(MatSpMVUpdate_SeqCUDA(A, spmv, 0, stream));
  if (spmv->cuda->copy[0].store) SpMVCudaGetStats(spmv->cuda->copy[0].store, stats);
  if (spmv->cuda->copy[0].use_parent) stats->kernel = "AIJCUSPARSE's own";
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
  SpMVCudaCopy      *copy      = &spmv->cuda->copy[transpose];
  PetscBool          launch, residual = PETSC_FALSE;
  SpMVOperands       o;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(SpMVOperandsBegin(xx, yy, zz, &o));
  if (o.device) PetscCall(MatSpMVUpdate_SeqCUDA(A, spmv, transpose, stream));
  launch = (PetscBool)(o.device && !copy->use_parent);
  if (launch && o.host) {
    PetscCall(SpMVOperandsStage(&o, stream, &launch));
    if (!launch) PetscCall(PetscInfo(A, "Multiplying on the host: out of GPU memory for copies of the host vectors\n"));
  }
  if (launch) {
    PetscCall(PetscLogGpuTimeBegin());
    PetscCallCUDA(SpMVCudaMult(copy->store, (SpMVCudaProduct){.form = form, .x = o.x, .z = o.y, .y = o.z}, stream));
    PetscCall(PetscLogGpuTimeEnd());
    PetscCall(PetscLogGpuFlops(2.0 * copy->key.nz - (yy || transpose ? 0 : PetscMin(copy->key.m, copy->key.nz))));
  }
  PetscCall(SpMVOperandsEnd(&o));
  if (launch) PetscFunctionReturn(PETSC_SUCCESS);
  if (op == SPMV_RESIDUAL) {
    residual = PETSC_TRUE;
    op       = SPMV_NORMAL;
  }
  if (o.host) {
    PetscCall(MatSpMVUpdateHostOrUseParent_Seq(A)); /* lack of memory for the host's copy must not be an error either */
    PetscCall(MatSpMVApplyHost_Seq(A, spmv, SpMVKeyIsCurrent(&spmv->host.key, A), op, xx, residual ? NULL : yy, zz));
  } else
    PetscCall(MatSpMVApplyParent_Seq(A, spmv, op, xx, residual ? NULL : yy, zz));
  if (residual) PetscCall(VecAYPX(zz, -1.0, yy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultHermitianTransposeAdd_SeqSpMVCUDA(Mat A, Vec xx, Vec yy, Vec zz)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatSpMVApply_Seq(A, spmv, SPMV_HERMITIAN, xx, yy, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultHermitianTranspose_SeqSpMVCUDA(Mat A, Vec xx, Vec yy)
{
  return MatMultHermitianTransposeAdd_SeqSpMVCUDA(A, xx, NULL, yy);
}

/* rr = bb - A xx in one kernel. On the host MatResidual() calls MatMult() and VecAYPX() */
static PetscErrorCode MatResidual_SeqSpMVCUDA(Mat A, Vec bb, Vec xx, Vec rr)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (!A->boundtocpu) {
    PetscCall(MatSpMVApply_SeqCUDA(A, spmv, SPMV_RESIDUAL, xx, bb, rr));
  } else {
    PetscCall(MatSpMVApply_Seq(A, spmv, SPMV_NORMAL, xx, NULL, rr));
    PetscCall(VecAYPX(rr, -1.0, bb));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatSpMVSetOps_SeqCUDA(Mat A)
{
  A->ops->residual                  = MatResidual_SeqSpMVCUDA;
  A->ops->multhermitiantranspose    = MatMultHermitianTranspose_SeqSpMVCUDA;
  A->ops->multhermitiantransposeadd = MatMultHermitianTransposeAdd_SeqSpMVCUDA;
}

/* ---------------------------------------------------------------- for parallel products */

/*
  Fuses the off-diagonal block B into the diagonal block's store: creates the layout if the pattern is new, and copies
  the values. Sets fused.refused if B cannot be fused or the device is out of memory
*/
static PetscErrorCode MatSpMVStoreFused_SeqCUDA(Mat_SpMV *spmv, Mat B, PetscReal fraction, PetscBool pattern,
                                                const SpMVCSR *host)
{
  const SpMVCudaStore store = spmv->cuda->copy[0].store;
  SpMVDeviceCSR       device;
  cudaStream_t        stream;
  cudaError_t         error;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(SpMVDeviceCSRGet(B, host, pattern, stream, &device, &error));
  if (error == cudaSuccess && pattern)
    error = SpMVCudaFuseOffdiagonal(store, &device.csr, (PetscInt64)(fraction * (PetscReal)host->m), stream);
  if (error == cudaErrorMemoryAllocation) (void)cudaGetLastError();
  if (error == cudaErrorNotSupported || error == cudaErrorMemoryAllocation) {
    spmv->cuda->fused.refused = PETSC_TRUE; /* B is then multiplied by a separate kernel */
    error                     = cudaSuccess;
  } else if (error == cudaSuccess)
    error = SpMVCudaFillOffdiagonal(store, &device.csr, stream);
  PetscCallCUDA(SpMVCudaFreeTemporary(&device.copy, stream));
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
  if (!SpMVKeyIsCurrent(&spmv->cuda->fused.key, B)) {
    PetscBool pattern;

    PetscCall(MatSpMVGetPattern_Seq(B, &host));
    pattern                   = (PetscBool)!SpMVKeyHasPattern(&spmv->cuda->fused.key, B, &host);
    spmv->cuda->fused.key.mat = NULL; /* after an error the next product tries again */
    if (pattern) spmv->cuda->fused.refused = B->structure_only;
    if (!spmv->cuda->fused.refused) ierr = MatSpMVStoreFused_SeqCUDA(spmv, B, fraction, pattern, &host);
    if (!ierr) SpMVKeySetPattern(&spmv->cuda->fused.key, B, &host);
    PetscCall(MatSpMVRestorePattern_Seq(B, &host));
    PetscCall(ierr);
  }
  *fused = (PetscBool)!spmv->cuda->fused.refused;
  PetscFunctionReturn(PETSC_SUCCESS);
}
