/*
  The products of a sequential matrix on the device, and what else differs there.

  The parent is AIJCUSPARSE, and the matrix keeps its name: CUSPARSE's code, and more of PETSc, compares it for equality. What PETSc makes "of
  the same type" by that name has lost the format, so the operations that do are taken over, and give the format back. The format's arrays
  are laid out from the CSR arrays on the device where AIJCUSPARSE has them up to date, else from the host's, which are copied there and
  not kept: a loop of products holds one copy of the matrix, not two.
*/
#include "matspmv.h"
#if defined(PETSCSPMV_HAVE_CUDA)
  #include <petsc/private/vecimpl.h> /* offloadmask */
#endif

/*
  Do new matrices live on a device? As the types' names hang on it, it is settled once, when the package is registered; ranks that
  disagree use the host.
*/
PetscErrorCode SpMVUseDevice(MPI_Comm comm, PetscBool *use)
{
#if defined(PETSCSPMV_HAVE_CUDA)
  static int  settled = -1;
  PetscMPIInt size;

  PetscFunctionBegin;
  if (settled < 0) {
    const char *const option[] = {"-device_enable", "-device_enable_cuda"};
    int               devices  = 0;

    if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
    (void)cudaGetLastError(); /* that there is none is no error */
    for (int k = 0; k < 2; k++) {
      char      value[16];
      PetscBool set, none;

      PetscCall(PetscOptionsGetString(NULL, NULL, option[k], value, sizeof(value), &set));
      PetscCall(PetscStrcasecmp(set ? value : "", "none", &none));
      if (none) devices = 0;
    }
    settled = devices > 0;
  }
  *use = (PetscBool)settled;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  if (size > 1) {
    int all;

    PetscCallMPI(MPI_Allreduce(&settled, &all, 1, MPI_INT, MPI_MIN, comm));
    *use = (PetscBool)all;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  PetscFunctionBegin;
  (void)comm;
  *use = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
#endif
}

/* AIJ has refilled the host's values without a word to AIJCUSPARSE */
PetscErrorCode SpMVHostIsNewer(Mat A)
{
  PetscFunctionBegin;
#if defined(PETSCSPMV_HAVE_CUDA)
  PetscBool same;

  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJCUSPARSE, &same)); /* MPIAIJ looks at its blocks */
  if (same && A->offloadmask != PETSC_OFFLOAD_UNALLOCATED) A->offloadmask = PETSC_OFFLOAD_CPU;
#else
  (void)A;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSCSPMV_HAVE_CUDA)

PetscErrorCode SpMVGetStream(cudaStream_t *stream)
{
  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device's name for what the options ask for; a format looks itself at what it leaves to AIJCUSPARSE */
SpMVCudaKernel SpMVKernelCUDA(SpMVKernel kernel, PetscInt tune)
{
  switch (kernel) {
  case SPMV_KERNEL_SLICES: return SPMVCUDA_KERNEL_SLICES;
  case SPMV_KERNEL_VECTOR: return SPMVCUDA_KERNEL_ADAPTIVE;
  case SPMV_KERNEL_PAPER: return SPMVCUDA_KERNEL_PAPER;
  default: return tune ? SPMVCUDA_KERNEL_TUNE : SPMVCUDA_KERNEL_AUTO;
  }
}

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

/* ---------------------------------------------------------------- the stored blocks */

/* A block for a new pattern, k = 1 of the transpose. Where CUDA refuses it, *error says why */
static PetscErrorCode MatSpMVSetUpStore_CUDA(Mat A, Mat_SpMV *spmv, int k, const SpMVCudaCSR *csr, cudaStream_t stream, cudaError_t *error)
{
  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MAT_SpMVSetUp, A, 0, 0, 0));
  *error = (*spmv->format->setupcuda)(csr, spmv->params, (PetscBool)k, stream, &spmv->cuda[k].block);
  if (*error == cudaSuccess && k == 0 && spmv->nboundary) {
    *error = SpMVCudaSetBoundary(spmv->cuda[0].block, csr, spmv->nboundary, spmv->boundary, spmv->boundary_limit, stream);
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
    error = SpMVCudaFill(spmv->cuda[k].block, &device.csr, stream);
    PetscCall(PetscLogEventEnd(MAT_SpMVFill, A, 0, 0, 0));
  }
  PetscCall(SpMVDeviceCSRRestore(&device));
  if (error == cudaErrorNotSupported) {
    spmv->cuda[k].plain = PETSC_TRUE;
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

/* Frees block k; the next product sets it up */
PetscErrorCode MatSpMVForget_CUDA(Mat_SpMV *spmv, int k)
{
  PetscFunctionBegin;
  spmv->cuda[k].source.mat = NULL;
  spmv->cuda[k].plain      = PETSC_FALSE;
  if (k == 0) spmv->fused.mat = NULL; /* they go with the block */
  if (spmv->cuda[k].block) PetscCallCUDA(SpMVCudaDestroy(&spmv->cuda[k].block));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A block of A, or (k = 1) of its transpose, in line with the matrix. After an error the matrix is as before its first product: the next one tries again */
static PetscErrorCode MatSpMVUpdate_CUDA(Mat A, Mat_SpMV *spmv, int k, cudaStream_t stream)
{
  SpMVCSR        host;
  PetscBool      pattern;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (SpMVSourceIsCurrent(&spmv->cuda[k].source, A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVGetPattern(A, &host));
  pattern = (PetscBool)((!spmv->cuda[k].block && !spmv->cuda[k].plain) || !SpMVSourceHasPattern(&spmv->cuda[k].source, A, &host));
  if (pattern) {
    PetscCall(MatSpMVForget_CUDA(spmv, k));
    spmv->cuda[k].plain = A->structure_only;
  }
  if (!spmv->cuda[k].plain) ierr = MatSpMVStore_CUDA(A, spmv, k, pattern, &host, stream);
  if (ierr)
    PetscCall(MatSpMVForget_CUDA(spmv, k));
  else
    SpMVSourceSet(&spmv->cuda[k].source, A, &host);
  PetscCall(MatSpMVRestorePattern(A, &host));
  PetscCall(ierr);
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
  if (spmv->cuda[0].block) SpMVCudaGetStats(spmv->cuda[0].block, stats);
  if (spmv->cuda[0].plain) stats->kernel = "AIJCUSPARSE's own";
  stats->nonzeros = spmv->cuda[0].source.nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- products */

/*
  An operand's array on the device; a host vector's is copied there for the length of one product. Not by SpMVVecOnDevice(): to find out where a vector is
  it asks for the values, also those that a product overwrites, and it copies through a second array on the host
*/
typedef struct {
  Vec          v;
  PetscScalar *array, *copy;
  PetscMemType memtype;
  PetscInt     n;
  enum { SPMV_READ, SPMV_WRITE, SPMV_UPDATE } access;
} SpMVOperand;

static PetscErrorCode SpMVOperandGet(SpMVOperand *o)
{
  PetscFunctionBegin;
  o->copy = NULL;
  if (o->access == SPMV_READ)
    PetscCall(VecGetArrayReadAndMemType(o->v, (const PetscScalar **)&o->array, &o->memtype));
  else if (o->access == SPMV_WRITE)
    PetscCall(VecGetArrayWriteAndMemType(o->v, &o->array, &o->memtype));
  else
    PetscCall(VecGetArrayAndMemType(o->v, &o->array, &o->memtype));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *staged becomes false where the device has no memory for the copy */
static PetscErrorCode SpMVOperandStage(SpMVOperand *o, cudaStream_t stream, PetscBool *staged)
{
  const size_t bytes = (size_t)o->n * sizeof(PetscScalar);
  cudaError_t  error;

  PetscFunctionBegin;
  if (PetscMemTypeDevice(o->memtype) || !*staged) PetscFunctionReturn(PETSC_SUCCESS);
  error = cudaMalloc((void **)&o->copy, PetscMax(bytes, 1));
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    o->copy = NULL;
    *staged = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(error);
  if (o->access != SPMV_WRITE && bytes) {
    PetscCallCUDA(cudaMemcpyAsync(o->copy, o->array, bytes, cudaMemcpyHostToDevice, stream));
    PetscCall(PetscLogCpuToGpu((PetscLogDouble)bytes));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operands that are on the host, copied to the device: all of them or none */
static PetscErrorCode SpMVOperandsStage(Mat A, int count, SpMVOperand o[], cudaStream_t stream, PetscBool *staged)
{
  PetscFunctionBegin;
  *staged = PETSC_TRUE;
  for (int v = 0; v < count; v++) PetscCall(SpMVOperandStage(&o[v], stream, staged));
  for (int v = 0; v < count && !*staged; v++) {
    PetscCallCUDA(cudaFree(o[v].copy));
    o[v].copy = NULL;
  }
  if (!*staged) PetscCall(PetscInfo(A, "The host multiplies: the GPU has no memory for copies of the vectors that are on the host\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVOperandRestore(SpMVOperand *o, cudaStream_t stream)
{
  const size_t bytes = (size_t)o->n * sizeof(PetscScalar);

  PetscFunctionBegin;
  if (o->copy) {
    if (o->access != SPMV_READ && bytes) {
      PetscCallCUDA(cudaMemcpyAsync(o->array, o->copy, bytes, cudaMemcpyDeviceToHost, stream));
      PetscCallCUDA(cudaStreamSynchronize(stream));
      PetscCall(PetscLogGpuToCpu((PetscLogDouble)bytes));
    }
    PetscCallCUDA(cudaFree(o->copy));
  }
  if (o->access == SPMV_READ)
    PetscCall(VecRestoreArrayReadAndMemType(o->v, (const PetscScalar **)&o->array));
  else if (o->access == SPMV_WRITE)
    PetscCall(VecRestoreArrayWriteAndMemType(o->v, &o->array));
  else
    PetscCall(VecRestoreArrayAndMemType(o->v, &o->array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  zz = yy + op(A) xx, where yy may be zz, and NULL for zero. On the device as soon as one of the vectors is there: between host vectors
  alone, the host's format is faster than sending them to and fro. Where the device has no memory for the copies the host multiplies: in the middle of a
  parallel product, an error on this rank alone would reach the others too late.
*/
PetscErrorCode MatSpMVApply_SeqCUDA(Mat A, Mat_SpMV *spmv, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  const int    k     = op != SPMV_NORMAL;
  const int    count = yy && yy != zz ? 3 : 2;
  SpMVOperand  o[3];
  PetscBool    device = PETSC_FALSE, host = PETSC_FALSE, staged = PETSC_TRUE;
  cudaStream_t stream;

  PetscFunctionBegin;
  o[0].v      = zz;
  o[0].access = yy == zz ? SPMV_UPDATE : SPMV_WRITE;
  o[0].n      = k ? A->cmap->n : A->rmap->n;
  o[1].v      = xx;
  o[1].access = SPMV_READ;
  o[1].n      = k ? A->rmap->n : A->cmap->n;
  o[2].v      = yy;
  o[2].access = SPMV_READ;
  o[2].n      = o[0].n;
  PetscCall(SpMVGetStream(&stream));
  for (int v = 0; v < count; v++) {
    PetscCall(SpMVOperandGet(&o[v]));
    if (PetscMemTypeDevice(o[v].memtype))
      device = PETSC_TRUE;
    else
      host = PETSC_TRUE;
  }
  if (device) PetscCall(MatSpMVUpdate_CUDA(A, spmv, k, stream));
  if (device && host && !spmv->cuda[k].plain) PetscCall(SpMVOperandsStage(A, count, o, stream, &staged));
  #define SpMVArray(v) (o[v].copy ? o[v].copy : o[v].array)
  if (device && staged && !spmv->cuda[k].plain) {
    const PetscScalar *y = yy ? (yy == zz ? SpMVArray(0) : SpMVArray(2)) : NULL;

    PetscCall(PetscLogGpuTimeBegin());
    PetscCallCUDA(SpMVCudaMult(spmv->cuda[k].block, (PetscBool)(op == SPMV_HERMITIAN), SpMVArray(1), y, SpMVArray(0), stream));
    PetscCall(PetscLogGpuTimeEnd());
    PetscCall(PetscLogGpuFlops(2.0 * spmv->cuda[k].source.nz - (yy || k ? 0 : PetscMin(spmv->cuda[k].source.m, spmv->cuda[k].source.nz))));
  }
  #undef SpMVArray
  for (int v = count - 1; v >= 0; v--) PetscCall(SpMVOperandRestore(&o[v], stream));
  if (!device || !staged || (spmv->cuda[k].plain && host))
    PetscCall(MatSpMVApplyHostVecs(A, spmv, op, xx, yy, zz));
  else if (spmv->cuda[k].plain)
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
  PetscObjectId  id;
  SpMVCSR        csr;
  PetscInt       count = 0;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(PetscObjectGetId((PetscObject)B, &id));
  if (spmv->boundary_id == id && spmv->boundary_state == B->nonzerostate) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVGetPattern(A, &csr));
  always = (PetscBool)(always || csr.i[csr.m] >= least);
  PetscCall(MatSpMVRestorePattern(A, &csr));
  PetscCall(MatSpMVGetPattern(B, &csr));
  for (PetscInt r = 0; r < csr.m; r++) count += csr.i[r + 1] > csr.i[r];
  if (!always || (PetscReal)count > share * (PetscReal)csr.m || csr.m >= INT_MAX) count = 0;
  if (count || spmv->nboundary) {
    if (spmv->cuda[0].block) PetscCallCUDA(SpMVCudaDestroy(&spmv->cuda[0].block));
    spmv->cuda[0].source.mat = NULL;
  }
  PetscCall(PetscFree(spmv->boundary));
  spmv->nboundary   = 0;
  spmv->boundary_id = 0; /* should this fail, the next product tries again */
  ierr              = PetscMalloc1(count, &spmv->boundary);
  for (PetscInt r = 0; !ierr && r < csr.m && count; r++) {
    if (csr.i[r + 1] > csr.i[r]) spmv->boundary[spmv->nboundary++] = (int)r;
  }
  PetscCall(MatSpMVRestorePattern(B, &csr));
  PetscCall(ierr);
  spmv->boundary_limit = (PetscInt64)(share * (PetscReal)csr.m);
  spmv->boundary_id    = id;
  spmv->boundary_state = B->nonzerostate;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the diagonal block's product adds of the off-diagonal block B: its layout (of a new pattern) and values, unless the device refuses them */
static PetscErrorCode MatSpMVStoreFused_CUDA(Mat_SpMV *spmv, Mat B, PetscReal share, PetscBool pattern, const SpMVCSR *host)
{
  const SpMVCudaStore block = spmv->cuda[0].block;
  SpMVDeviceCSR       device;
  cudaStream_t        stream;
  cudaError_t         error = cudaSuccess;

  PetscFunctionBegin;
  PetscCall(SpMVGetStream(&stream));
  PetscCall(SpMVDeviceCSRGet(B, spmv, host, pattern, &device));
  if (pattern) error = SpMVCudaFuseOffdiagonal(block, &device.csr, (PetscInt64)(share * (PetscReal)host->m), stream);
  if (error == cudaErrorMemoryAllocation) (void)cudaGetLastError();
  if (error == cudaErrorNotSupported || error == cudaErrorMemoryAllocation) {
    spmv->fused_refused = PETSC_TRUE; /* a product of its own, then */
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
  PetscObjectId  id;
  SpMVCSR        host;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(PetscObjectGetId((PetscObject)B, &id));
  if (id != spmv->fused_id) spmv->fused.mat = NULL;
  if (!SpMVSourceIsCurrent(&spmv->fused, B)) {
    PetscBool pattern;

    PetscCall(MatSpMVGetPattern(B, &host));
    pattern         = (PetscBool)!SpMVSourceHasPattern(&spmv->fused, B, &host);
    spmv->fused.mat = NULL; /* should this fail, the next product tries again */
    if (pattern) spmv->fused_refused = B->structure_only;
    if (!spmv->fused_refused) ierr = MatSpMVStoreFused_CUDA(spmv, B, share, pattern, &host);
    if (!ierr) SpMVSourceSet(&spmv->fused, B, &host);
    spmv->fused_id = id;
    PetscCall(MatSpMVRestorePattern(B, &host));
    PetscCall(ierr);
  }
  *has = (PetscBool)!spmv->fused_refused;
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
  if ((*spmv)->cuda[transpose].plain) *spmv = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultHermitianTranspose_SeqSpMVCUDA(Mat A, Vec xx, Vec yy)
{
  return MatSpMVApply_Seq(A, SPMV_HERMITIAN, xx, NULL, yy);
}

static PetscErrorCode MatMultHermitianTransposeAdd_SeqSpMVCUDA(Mat A, Vec xx, Vec yy, Vec zz)
{
  return MatSpMVApply_Seq(A, SPMV_HERMITIAN, xx, yy, zz);
}

/* ---------------------------------------------------------------- operations of AIJCUSPARSE that take device vectors only */

/* A device vector that stands in for a host vector, or the vector itself */
PetscErrorCode SpMVVecOnDevice(Vec v, PetscBool copy, Vec *d)
{
  const PetscScalar *a;
  PetscMemType       memtype;
  PetscInt           n;

  PetscFunctionBegin;
  *d = v;
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetArrayReadAndMemType(v, &a, &memtype));
  if (PetscMemTypeHost(memtype)) {
    PetscScalar *b;

    PetscCall(VecGetLocalSize(v, &n));
    PetscCall(VecCreate(PETSC_COMM_SELF, d));
    PetscCall(VecSetSizes(*d, n, n));
    PetscCall(VecSetType(*d, VECSEQCUDA));
    if (copy) {
      PetscCall(VecGetArrayWrite(*d, &b));
      PetscCall(PetscArraycpy(b, a, n));
      PetscCall(VecRestoreArrayWrite(*d, &b));
    }
  }
  PetscCall(VecRestoreArrayReadAndMemType(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVVecRestore(Vec v, PetscBool copy, Vec *d)
{
  PetscFunctionBegin;
  if (*d == v) {
    *d = NULL;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (copy) {
    const PetscScalar *a;
    PetscScalar       *b;
    PetscInt           n;

    PetscCall(VecGetLocalSize(v, &n));
    PetscCall(VecGetArrayRead(*d, &a));
    PetscCall(VecGetArrayWrite(v, &b));
    PetscCall(PetscArraycpy(b, a, n));
    PetscCall(VecRestoreArrayWrite(v, &b));
    PetscCall(VecRestoreArrayRead(*d, &a));
    /*
      VecMDot() of a device vector with v copies v to the device, and takes the copy for up to date ever after, as nobody else tells (PETSc 3.26). Bases of
      GMRES may be such a mixture: KSPCreateVecs() makes the first vectors by the DM, those of a field of a DMDA on the host, and later ones like the solution
    */
    v->offloadmask = PETSC_OFFLOAD_CPU;
  }
  PetscCall(VecDestroy(d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVVecCopyLocal(Vec from, Vec to)
{
  const PetscScalar *a;
  PetscScalar       *b;
  PetscInt           n;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(SpMVGetStream(&stream));
  PetscCall(VecGetLocalSize(from, &n));
  PetscCall(VecCUDAGetArrayRead(from, &a));
  PetscCall(VecCUDAGetArrayWrite(to, &b));
  if (n) PetscCallCUDA(cudaMemcpyAsync(b, a, n * sizeof(PetscScalar), cudaMemcpyDeviceToDevice, stream));
  PetscCall(VecCUDARestoreArrayWrite(to, &b));
  PetscCall(VecCUDARestoreArrayRead(from, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetDiagonal_SeqSpMVCUDA(Mat A, Vec v)
{
  Mat_SpMV *spmv;
  Vec       d;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVVecOnDevice(v, PETSC_FALSE, &d));
  PetscCall((*spmv->parent.getdiagonal)(A, d));
  PetscCall(SpMVVecRestore(v, PETSC_TRUE, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDiagonalScale_SeqSpMVCUDA(Mat A, Vec left, Vec right)
{
  Mat_SpMV *spmv;
  Vec       l, r;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVVecOnDevice(left, PETSC_TRUE, &l));
  PetscCall(SpMVVecOnDevice(right, PETSC_TRUE, &r));
  PetscCall((*spmv->parent.diagonalscale)(A, l, r));
  PetscCall(SpMVVecRestore(left, PETSC_FALSE, &l));
  PetscCall(SpMVVecRestore(right, PETSC_FALSE, &r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  AIJCUSPARSE zeros its copy on the device and declares the host's values old, even where that copy still has the pattern from before new entries were inserted:
  reading the values back then fails or writes past their end. Where the host's values are newer, they are zeroed there.
*/
static PetscErrorCode MatZeroEntries_SeqSpMVCUDA(Mat A)
{
  Mat_SpMV    *spmv;
  SpMVCSR      csr;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (A->offloadmask != PETSC_OFFLOAD_CPU || A->structure_only) {
    PetscCall((*spmv->parent.zeroentries)(A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSpMVGetPattern(A, &csr));
  PetscCall(MatSeqAIJGetArrayWrite(A, &a));
  PetscCall(PetscArrayzero(a, csr.i[csr.m]));
  PetscCall(MatSeqAIJRestoreArrayWrite(A, &a));
  PetscCall(MatSpMVRestorePattern(A, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- sums */

static PetscErrorCode SpMVHasEmptyRows(Mat A, PetscBool *has)
{
  SpMVCSR csr;

  PetscFunctionBegin;
  *has = PETSC_FALSE;
  PetscCall(MatSpMVGetPattern(A, &csr));
  for (PetscInt r = 0; r < csr.m && !*has; r++) *has = (PetscBool)(csr.i[r] == csr.i[r + 1]);
  PetscCall(MatSpMVRestorePattern(A, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  CUSPARSE adds on the device if both matrices have its operation. A subset it adds by reading row offsets of all rows where it may keep those of
  the nonempty ones only, beyond their end: the host adds such matrices.
*/
static PetscErrorCode MatAXPY_SeqSpMVCUDA(Mat A, PetscScalar a, Mat X, MatStructure str)
{
  const Mat mat[2]                                               = {A, X};
  PetscErrorCode (*ours[2])(Mat, PetscScalar, Mat, MatStructure) = {A->ops->axpy, X->ops->axpy};
  Mat_SpMV      *spmv;
  PetscBool      empty[2] = {PETSC_FALSE, PETSC_FALSE};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (str == SUBSET_NONZERO_PATTERN && !A->boundtocpu) {
    for (int k = 0; k < 2; k++) PetscCall(SpMVHasEmptyRows(mat[k], &empty[k]));
  }
  if (empty[0] || empty[1]) PetscCall(MatBindToCPU(A, PETSC_TRUE));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSpMVGet(mat[k], &spmv));
    if (spmv) mat[k]->ops->axpy = spmv->parent.axpy;
  }
  ierr = (*A->ops->axpy)(A, a, X, str);                    /* with a new pattern it replaces A's data, but not its operations */
  for (int k = 0; k < 2; k++) mat[k]->ops->axpy = ours[k]; /* after an error, too */
  if (!ierr && (empty[0] || empty[1])) ierr = MatBindToCPU(A, PETSC_FALSE);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- bound to the host and back */

/* AIJCUSPARSE sets the operations of the place that the matrix goes to; ours go in front again */
static PetscErrorCode MatBindToCPU_SeqSpMVCUDA(Mat A, PetscBool bind)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall((*spmv->parent.bindtocpu)(A, bind));
  /* while bound, AIJ's operations change the host's values and say nothing of it */
  if (!bind && A->offloadmask == PETSC_OFFLOAD_BOTH) A->offloadmask = PETSC_OFFLOAD_CPU;
  #define SpMVTakeOver(op)             \
    if (A->ops->op != spmv->ours.op) { \
      spmv->parent.op = A->ops->op;    \
      A->ops->op      = spmv->ours.op; \
    }
  SpMVHooks(SpMVTakeOver)
  #undef SpMVTakeOver
      PetscCall(MatSpMVComposeFunctions(A, PETSC_TRUE));
  PetscCall(MatSpMVForget(A, spmv)); /* the copy on the other side */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In front of those of MatSpMVSetOps_Seq() or MatSpMVSetOps_MPI() */
void MatSpMVSetOps_CUDA(Mat A, PetscBool mpi)
{
  #define SpMVSet(op, f) \
    if (A->ops->op) A->ops->op = f
  if (!mpi) {
    A->ops->multhermitiantranspose    = MatMultHermitianTranspose_SeqSpMVCUDA;
    A->ops->multhermitiantransposeadd = MatMultHermitianTransposeAdd_SeqSpMVCUDA;
    SpMVSet(bindtocpu, MatBindToCPU_SeqSpMVCUDA);
    SpMVSet(getdiagonal, MatGetDiagonal_SeqSpMVCUDA);
    SpMVSet(diagonalscale, MatDiagonalScale_SeqSpMVCUDA);
    SpMVSet(zeroentries, MatZeroEntries_SeqSpMVCUDA);
    SpMVSet(axpy, MatAXPY_SeqSpMVCUDA);
  }
  SpMVSet(productsetfromoptions, MatProductSetFromOptions_SpMVCUDA);
  #undef SpMVSet
}
#endif
