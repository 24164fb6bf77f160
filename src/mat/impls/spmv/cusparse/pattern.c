/*
  The pattern of a sequential AIJCUSPARSE matrix, set from arrays on the device. The matrix is left in the same state as
  by AIJCUSPARSE's own functions: AIJ's pattern is on the host, and the arrays on the device hold the values. AIJ's
  arrays are filled through MatSeqAIJSetPreallocation() and MatSeqAIJSetColumnIndices(), which do not process the
  entries one by one.
*/
#include "mat/impls/spmv/cuda/matspmvcuda.h"

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

PetscErrorCode MatSpMVSetColumns_SeqCUDA(Mat A, PetscInt64 nonzeros, const PetscInt *j)
{
  const PetscInt *hi, *hj;
  PetscInt        count;
  PetscBool       done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &count, &hi, &hj, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatGetRowIJ() failed for a matrix of type %s",
             ((PetscObject)A)->type_name);
  PetscCall(SpMVDownloadIndices(nonzeros, j, (PetscInt *)hj));
  /* the columns are already in place: this call only counts the entries of each row */
  if (nonzeros) PetscCall(MatSeqAIJSetColumnIndices(A, (PetscInt *)hj));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &count, &hi, &hj, &done));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJCUSPARSE creates its arrays from the host's uninitialized values; after that the device's values are valid */
PetscErrorCode MatSpMVSetZeros_SeqCUDA(Mat A, PetscInt64 nonzeros)
{
  const PetscInt *i, *j;
  PetscScalar    *a;
  cudaStream_t    stream;

  PetscFunctionBegin;
  if (!nonzeros) PetscFunctionReturn(PETSC_SUCCESS);
  A->offloadmask = PETSC_OFFLOAD_CPU;
  PetscCall(MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, &i, &j));
  PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, &i, &j));
  PetscCall(MatSeqAIJCUSPARSEGetArrayWrite(A, &a));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(cudaMemsetAsync(a, 0, (size_t)nonzeros * sizeof(PetscScalar), stream));
  PetscCall(MatSeqAIJCUSPARSERestoreArrayWrite(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}
