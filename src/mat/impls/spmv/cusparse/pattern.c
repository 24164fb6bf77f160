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

/* The kernel makes the pages of a new array in one call. A fault for each page takes longer than the copy of a large
   array */
static void SpMVPopulate(const void *array, size_t bytes, PetscBool write)
{
#if defined(MADV_POPULATE_READ)
  const size_t page  = (size_t)sysconf(_SC_PAGESIZE);
  const size_t begin = ((size_t)array + page - 1) / page * page, end = ((size_t)array + bytes) / page * page;

  /* an older kernel does not know it */
  if (array && begin < end) (void)madvise((void *)begin, end - begin, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
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

/* PETSc 3.26's Mat_SeqAIJ up to its values; PETSc installs no header with it */
typedef struct {
  PetscBool         roworiented;
  PetscInt          nonew, nounused, maxnz, *imax, *ilen, *ipre;
  PetscBool         free_imax_ilen;
  PetscInt          reallocs, rmax;
  PetscBool         keepnonzeropattern, ignorezeroentries, free_ij, free_a;
  Mat_CompressedRow compressedrow;
  PetscInt          nz, *i, *j, *diag;
  PetscObjectState  diagNonzeroState;
  PetscBool         diagDense;
  PetscInt          nonzerorowcnt;
  PetscScalar      *a;
} SpMVSeqAIJ;

/* NULL with another PETSc */
static SpMVSeqAIJ *SpMVSeqAIJGet(Mat A)
{
#if PETSC_VERSION_GE(3, 26, 0) && PETSC_VERSION_LT(3, 27, 0)
  return (SpMVSeqAIJ *)A->data;
#else
  (void)A;
  return NULL;
#endif
}

PetscErrorCode MatSpMVSetColumns_SeqCUDA(Mat A, PetscInt64 nonzeros, const PetscInt *j)
{
  SpMVSeqAIJ *const aij = SpMVSeqAIJGet(A);
  const PetscInt   *hi, *hj;
  PetscInt          count;
  PetscBool         done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &count, &hi, &hj, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatGetRowIJ() failed for a matrix of type %s",
             ((PetscObject)A)->type_name);
  SpMVPopulate(hj, (size_t)nonzeros * sizeof(PetscInt), PETSC_TRUE);
  PetscCall(SpMVDownloadIndices(nonzeros, j, (PetscInt *)hj));
  /* the columns are already in place: only the entries of each row are counted */
  if (aij && aij->j == hj && aij->maxnz == nonzeros) {
    aij->nz = aij->maxnz;
    PetscCall(PetscArraycpy(aij->ilen, aij->imax, A->rmap->n));
  } else if (nonzeros)
    PetscCall(MatSeqAIJSetColumnIndices(A, (PetscInt *)hj));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &count, &hi, &hj, &done));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJCUSPARSE creates its arrays from AIJ's. It copies the values, too, unless AIJ has none, as in the symbolic phase of
   PETSc's products. *zero: the values on the device are zeros, and not copies of the host's */
static PetscErrorCode MatSpMVCreateArrays_SeqCUDA(Mat A, PetscInt64 nonzeros, PetscBool *zero)
{
  SpMVSeqAIJ *const aij = SpMVSeqAIJGet(A);
  const PetscInt   *i, *j;
  PetscScalar      *a;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  A->offloadmask = PETSC_OFFLOAD_CPU;
  PetscCall(MatSeqAIJGetArrayWrite(A, &a));
  *zero = (PetscBool)(aij && aij->a == a && aij->nz == nonzeros);
  if (*zero)
    aij->a = NULL;
  else
    SpMVPopulate(a, (size_t)nonzeros * sizeof(PetscScalar), PETSC_FALSE);
  ierr = MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, &i, &j);
  if (*zero) aij->a = a; /* even after an error */
  PetscCall(ierr);
  PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, &i, &j));
  PetscCall(MatSeqAIJRestoreArrayWrite(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values on the device are valid, those on the host are old and were never written */
PetscErrorCode MatSpMVSetZeros_SeqCUDA(Mat A, PetscInt64 nonzeros)
{
  PetscScalar *a;
  PetscBool    zero = PETSC_FALSE;
  cudaStream_t stream;

  PetscFunctionBegin;
  if (!nonzeros) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVCreateArrays_SeqCUDA(A, nonzeros, &zero));
  PetscCall(MatSeqAIJCUSPARSEGetArrayWrite(A, &a));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (!zero) PetscCallCUDA(cudaMemsetAsync(a, 0, (size_t)nonzeros * sizeof(PetscScalar), stream));
  PetscCall(MatSeqAIJCUSPARSERestoreArrayWrite(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSpMVSetFrom_SeqCUDA(Mat A, const SpMVCudaCSR *csr)
{
  PetscInt  *length;
  SpMVValues v;

  PetscFunctionBegin;
  if (csr->nnz)
    PetscCall(SpMVGetLengths((PetscInt)csr->m, (const PetscInt *)csr->i, &length));
  else
    PetscCall(PetscCalloc1((PetscInt)csr->m, &length));
  PetscCall(MatSeqAIJSetPreallocation(A, 0, length));
  PetscCall(PetscFree(length));
  PetscCall(MatSpMVSetColumns_SeqCUDA(A, csr->nnz, (const PetscInt *)csr->j));
  PetscCall(MatSetOption(A, MAT_USE_INODES, PETSC_FALSE)); /* for products on the host; to look for them takes time */
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  if (!csr->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVSetZeros_SeqCUDA(A, csr->nnz));
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
