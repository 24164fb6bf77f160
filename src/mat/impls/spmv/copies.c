/*
  Copies and transposes of sequential matrices whose newest values are on the device, where they stay (see values.c).
*/
#include "matspmv.h"

#if defined(PETSCSPMV_HAVE_CUDA)
  #include "../../../core/cuda/csr.h"

/* ---------------------------------------------------------------- arrays for the result */

/*
  Gives a new matrix, of which AIJCUSPARSE has no arrays, arrays on the device with its pattern but without copying
  its values. AIJCUSPARSE always copies both. So the arrays are those of another matrix, which has the same pattern
  and no values
*/
static PetscErrorCode MatSpMVCreateArrays_Seq(Mat B)
{
  void           *own = B->spptr;
  Mat             T   = NULL;
  SpMVCSR         csr;
  SpMVHidden      hidden;
  const PetscInt *i, *j;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetPattern_Seq(B, &csr));
  PetscCall(SpMVHideSeqAIJType(B, &hidden));
  ierr = MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, csr.m, csr.n, (PetscInt *)csr.i, (PetscInt *)csr.j, NULL, &T);
  if (!ierr) ierr = MatConvert(T, MATSEQAIJCUSPARSE, MAT_INPLACE_MATRIX, &T);
  PetscCall(SpMVShowSeqAIJType(&hidden)); /* even after an error */
  PetscCall(ierr);
  T->nonzerostate = B->nonzerostate; /* AIJCUSPARSE stores it with the arrays */
  PetscCall(MatSeqAIJCUSPARSEGetIJ(T, PETSC_FALSE, &i, &j));
  PetscCall(MatSeqAIJCUSPARSERestoreIJ(T, PETSC_FALSE, &i, &j));
  PetscCall(PetscLogCpuToGpu(-(PetscLogDouble)csr.i[csr.m] * (PetscLogDouble)sizeof(PetscScalar))); /* it counts the values that it has not copied */
  B->spptr = T->spptr;
  T->spptr = own;
  PetscCall(MatDestroy(&T));
  PetscCall(MatSpMVRestorePattern_Seq(B, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Whether a new matrix like A gets its values on the device: there must be room for its arrays, which then stay there, and
  for its copy in the format. With few nonzeros it takes longer to make AIJCUSPARSE's arrays than to copy values through
  the host: on an H200, MatDuplicate() of 7000 nonzeros took 0.69 ms instead of 0.49
*/
static PetscErrorCode MatSpMVNewOnDevice_Seq(Mat A, PetscBool *device)
{
  const PetscLogDouble reserve = 64 << 20, least = 100000;
  MatInfo              info;
  PetscLogDouble       entries;
  size_t               free, total;

  PetscFunctionBegin;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  entries = info.nz_used + PetscMax(A->rmap->n, A->cmap->n);
  PetscCallCUDA(cudaMemGetInfo(&free, &total));
  *device = (PetscBool)(info.nz_used >= least && (PetscLogDouble)free > reserve + 2 * entries * (sizeof(PetscScalar) + sizeof(PetscInt)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gets B's arrays on the device; their values will be replaced. `ascends`: the columns of its rows ascend.
   SpMVValuesRestore() follows */
static PetscErrorCode SpMVValuesGetWrite(Mat B, PetscBool ascends, SpMVValues *v)
{
  Mat_SpMV *spmv;
  PetscBool compressed = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(B, &spmv));
  if (B->offloadmask == PETSC_OFFLOAD_UNALLOCATED && ascends && !(spmv && spmv->options)) PetscCall(MatSpMVMayCompress_Seq(B, &compressed));
  if (!compressed) {
    PetscCall(MatSpMVCreateArrays_Seq(B));
    B->offloadmask = PETSC_OFFLOAD_GPU;
  }
  PetscCall(SpMVValuesGet(B, PETSC_TRUE, v)); /* if the device has no valid values, AIJCUSPARSE copies the host's */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- copies */

/* Copies the values that the device has of A to B, which has the same pattern; B's host values become old */
static PetscErrorCode MatSpMVCopyValues_SeqCUDA(Mat A, Mat B)
{
  SpMVValues  from, to;
  PetscBool   ascends = PETSC_FALSE;
  cudaError_t error;

  PetscFunctionBegin;
  PetscCall(SpMVValuesGet(A, PETSC_FALSE, &from));
  if (B->offloadmask == PETSC_OFFLOAD_UNALLOCATED) {
    error = SpMVCudaCSRAscends(&from.csr, from.stream, &ascends);
    if (error == cudaErrorMemoryAllocation) (void)cudaGetLastError();
  }
  PetscCall(SpMVValuesGetWrite(B, ascends, &to));
  PetscCallCUDA(cudaMemcpyAsync(to.a, from.csr.a, (size_t)from.csr.nnz * sizeof(PetscScalar), cudaMemcpyDeviceToDevice, from.stream));
  PetscCall(SpMVValuesRestore(B, &to));
  PetscCall(SpMVValuesRestore(A, &from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Duplicates A with the parent's function; values that are newest on the device are copied there */
PetscErrorCode MatSpMVDuplicate(Mat A, PetscErrorCode (*duplicate)(Mat, MatDuplicateOption, Mat *), MatDuplicateOption op, Mat *B)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBegin;
  if (op == MAT_COPY_VALUES && A->offloadmask == PETSC_OFFLOAD_GPU) PetscCall(MatSpMVOnDevice_Seq(A, &device));
  if (device) PetscCall(MatSpMVNewOnDevice_Seq(A, &device));
  PetscCall((*duplicate)(A, device ? MAT_DO_NOT_COPY_VALUES : op, B));
  if (device) PetscCall(MatSpMVCopyValues_SeqCUDA(A, *B));
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
  if (!cusparse || B->boundtocpu || B->structure_only || !B->assembled) *device = PETSC_FALSE;
  if (!*device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info[0]));
  PetscCall(MatGetInfo(B, MAT_LOCAL, &info[1]));
  if (info[0].nz_used != info[1].nz_used) *device = PETSC_FALSE; /* an error, which the parent reports */
  if (*device && B->offloadmask == PETSC_OFFLOAD_UNALLOCATED) PetscCall(MatSpMVNewOnDevice_Seq(B, device));
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

/* Sets the values of T, which has the pattern of A^T, on the device; *done is false if it does not have that pattern */
static PetscErrorCode MatSpMVFillTranspose_SeqCUDA(Mat A, Mat T, PetscBool *done)
{
  SpMVValues v, t;
  PetscInt64 absent = 0;

  PetscFunctionBegin;
  PetscCall(SpMVValuesGet(A, PETSC_FALSE, &v));
  PetscCall(SpMVValuesGetWrite(T, PETSC_TRUE, &t));
  if (t.csr.m != v.csr.n || t.csr.n != v.csr.m || t.csr.nnz != v.csr.nnz)
    *done = PETSC_FALSE;
  else
    PetscCall(SpMVValuesTried(SpMVCudaCSRTranspose(&v.csr, &t.csr, t.a, v.stream, &absent), done));
  if (absent) *done = PETSC_FALSE;
  PetscCall(SpMVValuesRestore(T, &t));
  PetscCall(SpMVValuesRestore(A, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether A's newest values are on the device, and T, if it is reused, can get their transpose there */
static PetscErrorCode MatSpMVCanTranspose_Seq(Mat A, MatReuse reuse, Mat T, PetscBool *device)
{
  PetscContainer container = NULL;
  MatState      *made;
  SpMVValues     v;
  PetscBool      ascends = PETSC_FALSE, cusparse;

  PetscFunctionBegin;
  *device = PETSC_FALSE;
  if (A->offloadmask == PETSC_OFFLOAD_GPU) PetscCall(MatSpMVOnDevice_Seq(A, device));
  if (*device && reuse == MAT_REUSE_MATRIX) {
    PetscCall(PetscObjectTypeCompare((PetscObject)T, MATSEQAIJCUSPARSE, &cusparse));
    PetscCall(PetscObjectQuery((PetscObject)T, "MatTransposeParent", (PetscObject *)&container));
    *device = (PetscBool)(cusparse && container && T->assembled && !T->boundtocpu && !T->structure_only);
    if (*device) PetscCall(PetscContainerGetPointer(container, (void **)&made));
    if (*device && made->nonzerostate != A->nonzerostate) *device = PETSC_FALSE;
  }
  if (*device && (reuse != MAT_REUSE_MATRIX || T->offloadmask == PETSC_OFFLOAD_UNALLOCATED)) PetscCall(MatSpMVNewOnDevice_Seq(A, device));
  if (!*device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVValuesGet(A, PETSC_FALSE, &v));
  PetscCall(SpMVValuesTried(SpMVCudaCSRAscends(&v.csr, v.stream, &ascends), device));
  PetscCall(SpMVValuesRestore(A, &v));
  if (!ascends) *device = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatTranspose() of a matrix whose newest values are on the device. AIJ's function makes a new pattern on the host;
  the host's values, which it transposes, too, are old, and so are those of the result. *done is false if the parent
  has to do it all
*/
PetscErrorCode MatSpMVTranspose_SeqCUDA(Mat A, MatReuse reuse, Mat *B, PetscBool *done)
{
  const PetscOffloadMask mask = A->offloadmask;
  Mat_SpMV              *spmv;
  Mat                    T = reuse == MAT_REUSE_MATRIX ? *B : NULL;
  PetscErrorCode         ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVCanTranspose_Seq(A, reuse, T, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  if (!T) {
    PetscCall(MatSpMVGet(A, &spmv));
    A->offloadmask = PETSC_OFFLOAD_BOTH; /* do not copy the values */
    ierr           = (*spmv->parent.transpose)(A, MAT_INITIAL_MATRIX, &T);
    A->offloadmask = mask; /* even after an error */
    PetscCall(ierr);
  }
  PetscCall(MatSpMVFillTranspose_SeqCUDA(A, T, done));
  if (!*done && reuse != MAT_REUSE_MATRIX) PetscCall(MatDestroy(&T));
  if (*done && reuse == MAT_INITIAL_MATRIX) *B = T;
  if (*done && reuse == MAT_INPLACE_MATRIX) PetscCall(MatHeaderMerge(A, &T));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
