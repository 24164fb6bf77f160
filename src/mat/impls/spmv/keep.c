/*
  What is made from a matrix has its format and its parameters: transposes, permuted matrices, submatrices and the like.
*/
#include "matspmv.h"

/*
  A sequential AIJ matrix is born as what -mat_seqaij_type says, one of our types or, say, AIJPERM. That is not what its maker works on: MatDuplicate() fills it without
  what AIJPERM does at assembly, MatTranspose() empties it in giving it the type of the original (PETSc 3.18 to 3.26), and we cannot take it over. So the option is hidden
  while the parent makes matrices.
*/
PetscErrorCode SpMVHideSeqAIJType(SpMVHidden *hidden)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_seqaij_type", hidden->type, sizeof(hidden->type), &hidden->set));
  if (hidden->set) PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVShowSeqAIJType(const SpMVHidden *hidden)
{
  PetscFunctionBegin;
  if (hidden->set) PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", hidden->type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVKeepBegin(const Mat_SpMV *spmv, SpMVKeep *keep)
{
  PetscFunctionBegin;
  keep->format = spmv->format;
  PetscCall(PetscMemcpy(keep->params, spmv->params, sizeof(keep->params)));
  PetscCall(SpMVHideSeqAIJType(&keep->hidden));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B, which A's parent has made of A, is of the same type, by its name or, on a device, by ours: it gets the format, and has the parameters */
PetscErrorCode SpMVKeepSet(SpMVKeep *keep, Mat B)
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

PetscErrorCode SpMVKeepEnd(SpMVKeep *keep)
{
  PetscFunctionBegin;
  PetscCall(SpMVShowSeqAIJType(&keep->hidden));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operation of A's parent; then the format and the parameters for the `count` matrices it has made */
#define SpMVKeepFormat(A, count, result, op, ...)                                                  \
  do {                                                                                             \
    Mat_SpMV      *spmv_;                                                                          \
    SpMVKeep       keep_;                                                                          \
    PetscErrorCode ierr_;                                                                          \
    PetscCall(MatSpMVGet(A, &spmv_));                                                              \
    PetscCall(SpMVKeepBegin(spmv_, &keep_));                                                       \
    ierr_ = (*spmv_->parent.op)(__VA_ARGS__);                                                      \
    for (PetscInt k_ = 0; !ierr_ && k_ < (count); k_++) ierr_ = SpMVKeepSet(&keep_, (result)[k_]); \
    PetscCall(SpMVKeepEnd(&keep_)); /* after an error, too */                                      \
    PetscCall(ierr_);                                                                              \
  } while (0)

static PetscErrorCode MatTranspose_SpMV(Mat A, MatReuse reuse, Mat *B)
{
  PetscFunctionBegin;
  SpMVKeepFormat(A, 1, B, transpose, A, reuse, B);
  if (reuse == MAT_REUSE_MATRIX) PetscCall(SpMVHostIsNewer(*B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTransposeSymbolic_SpMV(Mat A, Mat *B)
{
  PetscFunctionBegin;
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

static PetscErrorCode MatCreateSubMatrices_SpMV(Mat A, PetscInt n, const IS row[], const IS col[], MatReuse reuse, Mat *B[])
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
#define SpMVSet(op, f) \
  if (A->ops->op) A->ops->op = f
  SpMVSet(transpose, MatTranspose_SpMV);
  SpMVSet(transposesymbolic, MatTransposeSymbolic_SpMV);
  SpMVSet(permute, MatPermute_SpMV);
  SpMVSet(createsubmatrix, MatCreateSubMatrix_SpMV);
  SpMVSet(createsubmatrices, MatCreateSubMatrices_SpMV);
  SpMVSet(creatempimatconcatenateseqmat, MatCreateMPIMatConcatenateSeqMat_SpMV);
  SpMVSet(productsetfromoptions, MatProductSetFromOptions_SpMVHost);
#undef SpMVSet
}
