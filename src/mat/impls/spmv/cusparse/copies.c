/*
  Copies and transposes of sequential matrices whose newest values are on the device, to matrices that have arrays
  there:
  the values stay on the device (see values.c). The values of new matrices go through the host, because it takes longer
  to make AIJCUSPARSE's arrays: with those, MatDuplicate() of 140,000 nonzeros and a product took 1.4 ms instead of 0.9
  on an H200, and with 14 million as long as through the host.
*/
#include "mat/impls/spmv/cuda/matspmvcuda.h"
#include "core/cuda/csr/csr.h"

/* ---------------------------------------------------------------- copies */

/* Copies the values that the device has of A to B, which has the same pattern; B's host values become old */
static PetscErrorCode MatSpMVCopyValues_SeqCUDA(Mat A, Mat B)
{
  SpMVValues from, to;

  PetscFunctionBegin;
  PetscCall(SpMVValuesGet(A, PETSC_FALSE, &from));
  PetscCall(SpMVValuesGet(B, PETSC_TRUE, &to));
  PetscCallCUDA(cudaMemcpyAsync(to.a, from.csr.a, (size_t)from.csr.nnz * sizeof(PetscScalar), cudaMemcpyDeviceToDevice,
                                from.stream));
  PetscCall(SpMVValuesRestore(B, &to));
  PetscCall(SpMVValuesRestore(A, &from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether A's values, which are newest on the device, can be copied to B there */
static PetscErrorCode MatSpMVCanCopy_Seq(Mat A, Mat B, MatStructure str, PetscBool *device)
{
  MatInfo   info[2];
  PetscBool cusparse;

  PetscFunctionBegin;
  *device = PETSC_FALSE;
  if (str != SAME_NONZERO_PATTERN || A->offloadmask != PETSC_OFFLOAD_GPU) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVOnDevice_Seq(A, device));
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQAIJCUSPARSE, &cusparse));
  if (!cusparse || B->boundtocpu || B->structure_only || !B->assembled || B->offloadmask == PETSC_OFFLOAD_UNALLOCATED)
    *device = PETSC_FALSE;
  if (!*device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info[0]));
  PetscCall(MatGetInfo(B, MAT_LOCAL, &info[1]));
  if (info[0].nz_used != info[1].nz_used) *device = PETSC_FALSE; /* an error, which the parent reports */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCopy_SeqSpMVCUDA(Mat A, Mat B, MatStructure str)
{
  const Mat mat[2]                                 = {A, B};
  PetscErrorCode (*own[2])(Mat, Mat, MatStructure) = {A->ops->copy, B->ops->copy};
  PetscBool      device;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVCanCopy_Seq(A, B, str, &device));
  if (device) {
    PetscCall(MatSpMVCopyValues_SeqCUDA(A, B));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 0; k < 2; k++) { /* see below */
    if (own[k] == MatCopy_SeqSpMVCUDA) mat[k]->ops->copy = SpMVParents[1][0].copy;
  }
  ierr = (*A->ops->copy)(A, B, str);
  for (int k = 0; k < 2; k++) mat[k]->ops->copy = own[k]; /* even after an error */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  AIJ's MatCopy() copies arrays if both matrices have the same operation; otherwise it inserts the entries row by row,
  which takes 35 times as long. So a matrix has ours only while its newest values are on the device, and programs may
  copy AIJ matrices to it at other times. With `ours` false it gets AIJ's back
*/
PetscErrorCode MatSpMVSetCopy_SeqCUDA(Mat A, PetscBool ours)
{
  Mat_SpMV *spmv = NULL;

  PetscFunctionBegin;
  if (ours && A->offloadmask == PETSC_OFFLOAD_GPU && !A->boundtocpu) PetscCall(MatSpMVGet(A, &spmv));
  if (spmv)
    A->ops->copy = MatCopy_SeqSpMVCUDA;
  else if (A->ops->copy == MatCopy_SeqSpMVCUDA)
    A->ops->copy = SpMVParents[1][0].copy;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- transposes */

/* Whether A's newest values are on the device, and T, which has A's transpose, can get them there */
static PetscErrorCode MatSpMVCanTranspose_Seq(Mat A, Mat T, PetscBool *device)
{
  PetscContainer container = NULL;
  MatState      *made;
  SpMVValues     v;
  PetscBool      ascends = PETSC_FALSE, cusparse;

  PetscFunctionBegin;
  *device = PETSC_FALSE;
  if (A->offloadmask == PETSC_OFFLOAD_GPU) PetscCall(MatSpMVOnDevice_Seq(A, device));
  if (!*device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompare((PetscObject)T, MATSEQAIJCUSPARSE, &cusparse));
  PetscCall(PetscObjectQuery((PetscObject)T, "MatTransposeParent", (PetscObject *)&container));
  *device = (PetscBool)(cusparse && container && T->assembled && !T->boundtocpu && !T->structure_only &&
                        T->offloadmask != PETSC_OFFLOAD_UNALLOCATED);
  if (*device) PetscCall(PetscContainerGetPointer(container, (void **)&made));
  if (*device && made->nonzerostate != A->nonzerostate) *device = PETSC_FALSE;
  if (!*device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVValuesGet(A, PETSC_FALSE, &v));
  PetscCall(SpMVValuesTried(SpMVCudaCSRAscends(&v.csr, v.stream, &ascends), device));
  PetscCall(SpMVValuesRestore(A, &v));
  if (!ascends) *device = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets the values of T, a transpose of A that is reused, on the device; *done is false if the parent has to do it */
PetscErrorCode MatSpMVTranspose_SeqCUDA(Mat A, Mat T, PetscBool *done)
{
  SpMVValues v, t;
  PetscInt64 absent = 0;

  PetscFunctionBegin;
  PetscCall(MatSpMVCanTranspose_Seq(A, T, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVValuesGet(A, PETSC_FALSE, &v));
  PetscCall(SpMVValuesGet(T, PETSC_TRUE, &t));
  if (t.csr.m != v.csr.n || t.csr.n != v.csr.m || t.csr.nnz != v.csr.nnz)
    *done = PETSC_FALSE;
  else
    PetscCall(SpMVValuesTried(SpMVCudaCSRTranspose(&v.csr, &t.csr, t.a, v.stream, &absent), done));
  if (absent) *done = PETSC_FALSE;
  PetscCall(SpMVValuesRestore(T, &t));
  PetscCall(SpMVValuesRestore(A, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}
