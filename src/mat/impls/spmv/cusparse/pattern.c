/*
  The pattern of a sequential AIJCUSPARSE matrix, set from arrays on the device. The matrix is left in the same state as
  by AIJCUSPARSE's own functions: AIJ's pattern is on the host, and the arrays on the device hold the values. AIJ's
  arrays are filled through MatSeqAIJSetPreallocation() and MatSeqAIJSetColumnIndices(), which do not process the
  entries one by one.
*/
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* madvise() */
#endif
#include "mat/impls/spmv/cuda/matspmvcuda.h"
#include <sys/mman.h>
#include <unistd.h>

/* The pages of a new array. A fault for each page takes longer than the copy of a large array. Large pages take half
   the time or less; the threads of a large copy make them. The others are made by the kernel in one call, which an
   older kernel does not know */
static void SpMVPopulate(const void *array, size_t bytes, PetscBool write)
{
#if defined(MADV_POPULATE_READ)
  const size_t page  = (size_t)sysconf(_SC_PAGESIZE);
  const size_t begin = ((size_t)array + page - 1) / page * page, end = ((size_t)array + bytes) / page * page;

  if (!array || begin >= end) return;
  if (bytes >= ((size_t)1 << 20)) (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
  if (bytes < ((size_t)8 << 20) || !write)
    (void)madvise((void *)begin, end - begin, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
#else
  (void)array;
  (void)bytes;
  (void)write;
#endif
}

PetscErrorCode SpMVDownloadIndices(PetscInt64 count, const PetscInt *from, PetscInt *to)
{
  size_t      bytes  = (size_t)count * sizeof(PetscInt);
  void       *host   = to;
  const void *device = from;

  PetscFunctionBegin;
  PetscCallCUDA(SpMVCudaDownload(1, &host, &device, &bytes));
  PetscCall(PetscLogGpuToCpu((PetscLogDouble)bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVGetLengths(PetscInt m, const PetscInt *i, PetscInt **length)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc1(m + 1, length));
  PetscCall(SpMVDownloadIndices(m + 1, i, *length));
  for (PetscInt r = 0; r < m; r++) (*length)[r] = (*length)[r + 1] - (*length)[r];
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if !SPMV_KNOWS_SEQAIJ
  #define PetscShmgetAllocateArray(count, size, array) PetscMalloc((count) * (size), array) /* not called */
#endif

PetscErrorCode MatSpMVSetColumns_SeqCUDA(Mat A, PetscInt64 nonzeros, const PetscInt *j)
{
  const PetscInt *hi, *hj;
  PetscInt        count;
  PetscBool       done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &count, &hi, &hj, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatGetRowIJ() failed for a matrix of type %s",
             ((PetscObject)A)->type_name);
  SpMVPopulate(hj, (size_t)nonzeros * sizeof(PetscInt), PETSC_TRUE);
  PetscCall(SpMVDownloadIndices(nonzeros, j, (PetscInt *)hj));
  /* the columns are already in place: this call only counts the entries of each row */
  if (nonzeros) PetscCall(MatSeqAIJSetColumnIndices(A, (PetscInt *)hj));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &count, &hi, &hj, &done));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void  *SpMVPinned; /* kept until PetscFinalize() */
static size_t SpMVPinnedBytes;

PetscErrorCode SpMVPinnedFree(void)
{
  PetscFunctionBegin;
  if (SpMVPinned) PetscCallCUDA(cudaFreeHost(SpMVPinned));
  SpMVPinned      = NULL;
  SpMVPinnedBytes = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same pattern in pinned memory; NULL if this is not worth it. On an H200 the driver copies new pageable memory to
   the device in up to 0.45 ms per MB. Pinning takes 0.35 ms per MB, once */
static PetscErrorCode SpMVPinnedPattern(PetscInt m, PetscInt64 nonzeros, const PetscInt *i, const PetscInt *j,
                                        PetscInt *pinned[2])
{
  const size_t rows = (size_t)(m + 1) * sizeof(PetscInt), bytes = rows + (size_t)nonzeros * sizeof(PetscInt);

  PetscFunctionBegin;
  pinned[0] = pinned[1] = NULL;
  if (bytes < ((size_t)1 << 20) || bytes > ((size_t)64 << 20)) PetscFunctionReturn(PETSC_SUCCESS);
  if (SpMVPinnedBytes < bytes) {
    PetscCall(SpMVPinnedFree());
    if (cudaHostAlloc(&SpMVPinned, bytes, cudaHostAllocPortable) != cudaSuccess) {
      (void)cudaGetLastError();
      SpMVPinned = NULL;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    SpMVPinnedBytes = bytes;
  }
  pinned[0] = (PetscInt *)SpMVPinned;
  pinned[1] = pinned[0] + m + 1;
  PetscCallCUDA(cudaMemcpy(pinned[0], i, rows, cudaMemcpyDeviceToHost));
  PetscCallCUDA(cudaMemcpy(pinned[1], j, bytes - rows, cudaMemcpyDeviceToHost));
  PetscCall(PetscLogGpuToCpu((PetscLogDouble)bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJCUSPARSE creates its arrays from AIJ's. It copies the values, too, unless AIJ has none, as in the symbolic phase of
   PETSc's products. *zero: the values on the device are zeros, and not copies of the host's. i, j: on the device, or
   NULL */
static PetscErrorCode MatSpMVCreateArrays_SeqCUDA(Mat A, PetscInt64 nonzeros, const PetscInt *i, const PetscInt *j,
                                                  PetscBool *zero)
{
  SpMVSeqAIJ *const aij       = SpMVSeqAIJGet(A);
  PetscInt         *pinned[2] = {NULL, NULL}, *own[2] = {NULL, NULL};
  PetscScalar      *a;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  A->offloadmask = PETSC_OFFLOAD_CPU;
  PetscCall(MatSeqAIJGetArrayWrite(A, &a));
  *zero = (PetscBool)(aij && aij->a == a && aij->nz == nonzeros);
  if (*zero && j) PetscCall(SpMVPinnedPattern(A->rmap->n, nonzeros, i, j, pinned));
  if (*zero) {
    own[0] = aij->i;
    own[1] = aij->j;
    if (pinned[0]) {
      aij->i = pinned[0];
      aij->j = pinned[1];
    }
    aij->a = NULL;
  } else
    SpMVPopulate(a, (size_t)nonzeros * sizeof(PetscScalar), PETSC_FALSE);
  ierr = MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, &i, &j);
  if (*zero) { /* even after an error */
    aij->i = own[0];
    aij->j = own[1];
    aij->a = a;
  }
  PetscCall(ierr);
  PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, &i, &j));
  PetscCall(MatSeqAIJRestoreArrayWrite(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values on the device are valid, those on the host are old and were never written. i, j: AIJ's pattern, on the
   device, or NULL */
PetscErrorCode MatSpMVSetZeros_SeqCUDA(Mat A, PetscInt64 nonzeros, const PetscInt *i, const PetscInt *j)
{
  PetscScalar *a;
  PetscBool    zero = PETSC_FALSE;
  cudaStream_t stream;

  PetscFunctionBegin;
  if (!nonzeros) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVCreateArrays_SeqCUDA(A, nonzeros, i, j, &zero));
  PetscCall(MatSeqAIJCUSPARSEGetArrayWrite(A, &a));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (!zero) PetscCallCUDA(cudaMemsetAsync(a, 0, (size_t)nonzeros * sizeof(PetscScalar), stream));
  PetscCall(MatSeqAIJCUSPARSERestoreArrayWrite(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What MatSeqAIJSetPreallocation(), MatSeqAIJSetColumnIndices() and MatAssemblyEnd() do to a new matrix, in one pass over
  the rows, and without a page fault for each page of the new arrays: with PETSc's functions, these take longer than all
  work on the device
*/
static PetscErrorCode MatSpMVFillNew_SeqAIJ(Mat A, SpMVSeqAIJ *aij, PetscInt64 nonzeros, const PetscInt *i,
                                            const PetscInt *j)
{
  const void *from[2] = {i, j};
  PetscInt    m;
  size_t      rows, bytes[2];

  PetscFunctionBegin;
  PetscCall(MatSeqAIJSetPreallocation(A, MAT_SKIP_ALLOCATION, NULL));
  m            = A->rmap->n;
  rows         = (size_t)m * sizeof(PetscInt);
  bytes[0]     = rows + sizeof(PetscInt);
  bytes[1]     = (size_t)nonzeros * sizeof(PetscInt);
  aij->free_ij = aij->free_a = PETSC_TRUE; /* even if an allocation fails */
  PetscCall(PetscMalloc1(m, &aij->imax));
  PetscCall(PetscMalloc1(m, &aij->ilen));
  PetscCall(PetscShmgetAllocateArray(bytes[0], 1, (void **)&aij->i));
  PetscCall(PetscShmgetAllocateArray(bytes[1], 1, (void **)&aij->j));
  PetscCall(PetscShmgetAllocateArray((size_t)nonzeros, sizeof(PetscScalar), (void **)&aij->a));
  SpMVPopulate(aij->imax, rows, PETSC_TRUE);
  SpMVPopulate(aij->ilen, rows, PETSC_TRUE);
  SpMVPopulate(aij->i, bytes[0], PETSC_TRUE);
  SpMVPopulate(aij->j, bytes[1], PETSC_TRUE);
  void *const to[2] = {aij->i, aij->j};

  PetscCallCUDA(SpMVCudaDownload(2, to, from, bytes));
  PetscCall(PetscLogGpuToCpu((PetscLogDouble)(bytes[0] + bytes[1])));
  aij->nz = aij->maxnz = (PetscInt)nonzeros;
  aij->rmax = aij->nonzerorowcnt = 0;
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt length = aij->i[r + 1] - aij->i[r];

    aij->imax[r] = aij->ilen[r] = length;
    aij->rmax                   = PetscMax(aij->rmax, length);
    aij->nonzerorowcnt += length > 0;
  }
  PetscCall(MatCheckCompressedRow(A, aij->nonzerorowcnt, &aij->compressedrow, aij->i, m, 0.6));
  A->was_assembled    = PETSC_TRUE; /* then MatAssemblyEnd_SeqAIJ() leaves it as it is */
  A->ass_nonzerostate = A->nonzerostate;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVSetPattern_SeqCUDA(Mat A, PetscInt64 nonzeros, const PetscInt *i, const PetscInt *j)
{
  SpMVSeqAIJ *const aij = SpMVSeqAIJGet(A);
  PetscInt         *length;

  PetscFunctionBegin;
  if (aij && nonzeros && !aij->imax && !aij->i && !aij->a && !A->hash_active)
    PetscCall(MatSpMVFillNew_SeqAIJ(A, aij, nonzeros, i, j));
  else {
    if (nonzeros)
      PetscCall(SpMVGetLengths(A->rmap->n, i, &length));
    else
      PetscCall(PetscCalloc1(A->rmap->n, &length));
    PetscCall(MatSeqAIJSetPreallocation(A, 0, length));
    PetscCall(PetscFree(length));
    PetscCall(MatSpMVSetColumns_SeqCUDA(A, nonzeros, j));
  }
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscUseTypeMethod(A, assemblyend, MAT_FINAL_ASSEMBLY); /* MatAssemblyEnd() would be counted as an assembly */
  PetscCall(MatSpMVSetZeros_SeqCUDA(A, nonzeros, i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSpMVSetFrom_SeqCUDA(Mat A, const SpMVCudaCSR *csr)
{
  SpMVValues v;

  PetscFunctionBegin;
  PetscCall(MatSetOption(A, MAT_USE_INODES, PETSC_FALSE)); /* for products on the host; to look for them takes time */
  PetscCall(MatSpMVSetPattern_SeqCUDA(A, csr->nnz, (const PetscInt *)csr->i, (const PetscInt *)csr->j));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  if (!csr->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVValuesGet(A, PETSC_TRUE, &v));
  PetscCallCUDA(
      cudaMemcpyAsync(v.a, csr->a, (size_t)csr->nnz * sizeof(PetscScalar), cudaMemcpyDeviceToDevice, v.stream));
  PetscCall(SpMVValuesRestore(A, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVCreateFrom_SeqCUDA(const SpMVCudaCSR *csr, PetscInt rbs, PetscInt cbs, Mat *A)
{
  const PetscInt m = (PetscInt)csr->m, n = (PetscInt)csr->n;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, m, n, m, n));
  PetscCall(MatSetBlockSizes(*A, rbs, cbs));
  PetscCall(MatSetType(*A, MATSEQAIJCUSPARSE));
  ierr = MatSpMVSetFrom_SeqCUDA(*A, csr);
  if (ierr) PetscCall(MatDestroy(A));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
