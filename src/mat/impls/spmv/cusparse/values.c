/*
  Operations on the values of matrices whose newest values are on the device, where they stay. AIJCUSPARSE (PETSc
  3.26.1) has them on the host only: it copies the values there, and the next product copies them back.

  AIJCUSPARSE's CSR arrays are used, and its rules are kept: the offload mask says which values are the newest, and
  every change increases the state. What the device cannot do (a new pattern, columns that do not ascend, too little
  memory) is done by the parent.
*/
#include "mat/impls/spmv/cuda/matspmvcuda.h"
#include "core/cuda/csr/csr.h"

/* ---------------------------------------------------------------- the arrays */

/* Whether the values on the device are the newest, and the library can use them there */
PetscErrorCode MatSpMVOnDevice_Seq(Mat A, PetscBool *device)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJCUSPARSE, device));
  if (A->boundtocpu || A->structure_only || !A->assembled || !PetscOffloadDevice(A->offloadmask) ||
      !SpMVCudaIsSupported())
    *device = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVValuesGet(Mat A, PetscBool write, SpMVValues *v)
{
  const PetscInt *i, *j;
  MatInfo         info;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&v->stream));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, &i, &j));
  v->csr.m           = A->rmap->n;
  v->csr.n           = A->cmap->n;
  v->csr.nnz         = (PetscInt64)info.nz_used;
  v->csr.i           = i;
  v->csr.j           = j;
  v->csr.index_bytes = sizeof(PetscInt);
  v->a               = NULL;
  if (write) {
    PetscCall(MatSeqAIJCUSPARSEGetArray(A, &v->a));
    v->csr.a = v->a;
  } else
    PetscCall(MatSeqAIJCUSPARSEGetArrayRead(A, &v->csr.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVValuesRestore(Mat A, SpMVValues *v)
{
  PetscFunctionBegin;
  if (v->a)
    PetscCall(MatSeqAIJCUSPARSERestoreArray(A, &v->a));
  else
    PetscCall(MatSeqAIJCUSPARSERestoreArrayRead(A, &v->csr.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *done is false if the device has no memory or no code for the operation: the parent is used */
PetscErrorCode SpMVValuesTried(cudaError_t error, PetscBool *done)
{
  PetscFunctionBegin;
  *done = (PetscBool)(error == cudaSuccess);
  if (error == cudaErrorMemoryAllocation)
    (void)cudaGetLastError();
  else if (error != cudaErrorNotSupported)
    PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVIsDeviceArray(const void *array, PetscBool *device)
{
  PetscMemType type;

  PetscFunctionBegin;
  PetscCall(PetscGetMemType(array, &type));
  *device = (PetscBool)PetscMemTypeDevice(type);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host does not wait for the copy, as it does not for MatSetValuesCOO() */
static PetscErrorCode MatSpMVWriteDeviceValues_SeqCUDA(Mat A, PetscInt first, PetscInt entries,
                                                       const PetscScalar values[])
{
  cudaStream_t stream;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(MatSeqAIJCUSPARSEGetArray(A, &a)); /* copies all values if the device does not have the newest */
  PetscCallCUDA(
      cudaMemcpyAsync(a + first, values, (size_t)entries * sizeof(*values), cudaMemcpyDeviceToDevice, stream));
  PetscCall(MatSeqAIJCUSPARSERestoreArray(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVWriteValues_SeqCUDA(Mat A, PetscInt first, PetscInt entries, const PetscScalar values[],
                                          PetscBool *done)
{
  const PetscOffloadMask before = A->offloadmask; /* GPU: the values on the host are old and stay so */
  const size_t           bytes  = (size_t)entries * sizeof(*values);
  const void            *from   = values;
  Mat_SpMV              *spmv;
  PetscScalar           *device, *host;
  void                  *to;

  PetscFunctionBegin;
  PetscCall(SpMVIsDeviceArray(values, done));
  if (*done) {
    PetscCall(MatSpMVWriteDeviceValues_SeqCUDA(A, first, entries, values));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSpMVGet(A, &spmv));
  *done = (PetscBool)(spmv && spmv->backend && !A->boundtocpu && spmv->cuda->copy[0].store);
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  if (before != PETSC_OFFLOAD_GPU) {
    PetscCall(MatSeqAIJGetArrayRead(A, (const PetscScalar **)&host));
    PetscCall(PetscArraymove(host + first, values, entries));
    from = host + first; /* `values` may have been in this array */
    PetscCall(MatSeqAIJRestoreArrayRead(A, (const PetscScalar **)&host));
  }
  PetscCall(MatSeqAIJCUSPARSEGetArray(A, &device)); /* copies all values if the device does not have the newest */
  to = device + first;
  PetscCallCUDA(cudaDeviceSynchronize()); /* work in any stream that reads the values */
  if (bytes) PetscCallCUDA(SpMVCudaUpload(1, &to, &from, &bytes));
  PetscCall(PetscLogCpuToGpu((PetscLogDouble)bytes));
  PetscCall(MatSeqAIJCUSPARSERestoreArray(A, &device));
  if (before != PETSC_OFFLOAD_GPU) A->offloadmask = PETSC_OFFLOAD_BOTH;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the diagonal */

/* Whether the device can change the diagonal entries of A: all are there, and A's newest values are on the device */
static PetscErrorCode MatSpMVHasDiagonal_SeqCUDA(Mat A, PetscBool *has)
{
  SpMVValues v;
  PetscInt64 missing = 0;

  PetscFunctionBegin;
  PetscCall(MatSpMVOnDevice_Seq(A, has));
  if (!*has) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVValuesGet(A, PETSC_FALSE, &v));
  PetscCall(SpMVValuesTried(SpMVCudaCSRMissing(&v.csr, v.stream, &missing), has));
  PetscCall(SpMVValuesRestore(A, &v));
  if (missing) *has = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MPIAIJ sets all entries of the diagonal one by one on the host */
static PetscErrorCode MatShift_SpMVCUDA(Mat A, PetscScalar shift)
{
  const MPI_Comm comm     = PetscObjectComm((PetscObject)A);
  Mat            diagonal = A; /* the matrix or its diagonal block */
  PetscBool      device   = A->assembled;
  PetscErrorCode ierr     = PETSC_SUCCESS;
  Mat_SpMV      *spmv;
  SpMVValues     v;
  int            all;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (device && SpMVIsMPI(A)) {
    PetscCall(MatHasCongruentLayouts(A, &device));
    PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, NULL, NULL));
  }
  if (device && diagonal->rmap->n) ierr = MatSpMVHasDiagonal_SeqCUDA(diagonal, &device);
  PetscCall(SpMVAgree(comm, ierr));
  all = device;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, comm));
  if (!all)
    PetscCall((*spmv->parent.shift)(A, shift));
  else if (diagonal->rmap->n) {
    PetscCall(SpMVValuesGet(diagonal, PETSC_TRUE, &v));
    PetscCallCUDA(SpMVCudaCSRShift(&v.csr, &shift, v.a, v.stream));
    PetscCall(SpMVValuesRestore(diagonal, &v));
    PetscCall(PetscLogGpuFlops(v.csr.m));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatSpMVSetOps_Values(Mat A)
{
  SpMVReplaceOp(A, shift, MatShift_SpMVCUDA);
}
