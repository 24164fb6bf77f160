/*
  Matrices created from a matrix keep its format and its parameters: transposes, permuted matrices, submatrices and the
  like.
*/
#include "matspmv.h"

void SpMVKeepBegin(const Mat_SpMV *spmv, SpMVKeep *keep)
{
  keep->format = spmv->format;
  memcpy(keep->params, spmv->params, sizeof(keep->params));
  SpMVHiddenDepth++;
}

void SpMVKeepEnd(void)
{
  SpMVHiddenDepth--;
}

/*
  B has been created from A by the parent's function and has A's type name. On the host, this name has already given it
  the format. On the device, B is AIJCUSPARSE and gets the format here
*/
PetscErrorCode SpMVKeepSet(const SpMVKeep *keep, Mat B)
{
  Mat_SpMV *spmv = NULL;
  PetscBool same = PETSC_FALSE;

  PetscFunctionBegin;
  if (B) {
    PetscCall(MatSpMVGet(B, &spmv));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)B, &same, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  }
  if (spmv && spmv->format == keep->format) PetscCall(MatSpMVSetParams(B, spmv, keep->params));
  if (same && !spmv) PetscCall(MatSpMVHook(B, keep->format, keep->params));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Calls the operation of A's parent, then sets format and parameters of the `count` matrices that it has created */
#define SpMVKeepFormat(A, count, result, op, ...)                                                  \
  do {                                                                                             \
    Mat_SpMV      *spmv_;                                                                          \
    SpMVKeep       keep_;                                                                          \
    PetscErrorCode ierr_;                                                                          \
    PetscCall(MatSpMVGet(A, &spmv_));                                                              \
    SpMVKeepBegin(spmv_, &keep_);                                                                  \
    ierr_ = (*spmv_->parent.op)(__VA_ARGS__);                                                      \
    for (PetscInt k_ = 0; !ierr_ && k_ < (count); k_++) ierr_ = SpMVKeepSet(&keep_, (result)[k_]); \
    SpMVKeepEnd(); /* even after an error */                                                       \
    PetscCall(ierr_);                                                                              \
  } while (0)

/*
  In place, or if a matrix is reused that has the transpose of an older pattern (PETSc 3.26), MatHeaderMerge() gives the
  matrix the data of the transpose and its nonzero state, which the matrix may have had before (see
  SpMVNonzeroStateRenew()). It keeps its operations, those for inodes or those without, even if the transpose is of the
  other kind: factorizations fail or are wrong (PETSc 3.18 to 3.26). With a new nonzero state, the end of an assembly
  looks for inodes again
*/
static PetscErrorCode MatTranspose_SpMV(Mat A, MatReuse reuse, Mat *B)
{
  const Mat              C            = reuse == MAT_INITIAL_MATRIX ? NULL : *B;
  const PetscObjectState nonzerostate = C ? C->nonzerostate : 0;
  const void            *data         = C ? C->data : NULL;
  Mat_SpMV              *spmv;
  SpMVKeep               keep;
  PetscErrorCode         ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  SpMVKeepBegin(spmv, &keep);
  ierr = (*spmv->parent.transpose)(A, reuse, B);
  if (!ierr) ierr = SpMVKeepSet(&keep, *B);
  SpMVKeepEnd(); /* even after an error */
  PetscCall(ierr);
  if (reuse == MAT_REUSE_MATRIX) PetscCall(SpMVHostIsNewer(*B));
  if (C && C->data != data) {
    C->nonzerostate = PetscMax(C->nonzerostate, nonzerostate) + 1;
    PetscCall(MatSpMVGet(C, &spmv));
    /* MatAssemblyEnd() would be counted as an assembly */
    if (spmv && !SpMVIsMPI(C)) PetscCall((*spmv->parent.assemblyend)(C, MAT_FINAL_ASSEMBLY));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  On the device the result is AIJ. AIJ's functions for A B^T and R A R^T call MatSetType() to give the symbolic
  transpose of B the type of A. This empties the transpose unless the name of A's type begins with the name of its own
  type. If plain AIJ is multiplied with one of our matrices on the device, PETSc calls these functions without calling
  ours.
*/
static PetscErrorCode MatTransposeSymbolic_SpMV(Mat A, Mat *B)
{
  Mat_SpMV      *spmv;
  char          *name = ((PetscObject)A)->type_name;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (spmv->device) {
    ((PetscObject)A)->type_name = (char *)MATSEQAIJ; /* PETSc has no symbolic transpose of MPI matrices */
    ierr                        = (*spmv->parent.transposesymbolic)(A, B);
    ((PetscObject)A)->type_name = name; /* even after an error */
    PetscCall(ierr);
  } else
    SpMVKeepFormat(A, 1, B, transposesymbolic, A, B);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatPermute_SpMV(Mat A, IS row, IS col, Mat *B)
{
  PetscFunctionBegin;
  SpMVKeepFormat(A, 1, B, permute, A, row, col, B);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreateSubMatrix_SpMV(Mat A, IS row, IS col, MatReuse reuse, Mat *B)
{
  PetscFunctionBegin;
  SpMVKeepFormat(A, 1, B, createsubmatrix, A, row, col, reuse, B);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreateSubMatrices_SpMV(Mat A, PetscInt n, const IS row[], const IS col[], MatReuse reuse,
                                                Mat *B[])
{
  PetscFunctionBegin;
  SpMVKeepFormat(A, n, *B, createsubmatrices, A, n, row, col, reuse, B);
  for (PetscInt k = 0; k < n && reuse == MAT_REUSE_MATRIX; k++) PetscCall(SpMVHostIsNewer((*B)[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreateMPIMatConcatenateSeqMat_SpMV(MPI_Comm comm, Mat A, PetscInt n, MatReuse reuse, Mat *B)
{
  PetscFunctionBegin;
  SpMVKeepFormat(A, 1, B, creatempimatconcatenateseqmat, comm, A, n, reuse, B);
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatSpMVSetOps_Keep(Mat A)
{
  SpMVReplaceOp(A, transpose, MatTranspose_SpMV);
  SpMVReplaceOp(A, transposesymbolic, MatTransposeSymbolic_SpMV);
  SpMVReplaceOp(A, permute, MatPermute_SpMV);
  SpMVReplaceOp(A, createsubmatrix, MatCreateSubMatrix_SpMV);
  SpMVReplaceOp(A, createsubmatrices, MatCreateSubMatrices_SpMV);
  SpMVReplaceOp(A, creatempimatconcatenateseqmat, MatCreateMPIMatConcatenateSeqMat_SpMV);
}
