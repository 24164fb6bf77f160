/*
  AIJCUSPARSE's own products, and the products of matrices that AIJ computes on the host from factors on the device.
*/
#include "mat/impls/spmv/cuda/matspmvcuda.h"

/*
  The parent's own product. That of AIJCUSPARSE accepts device vectors only. Two faults (PETSc 3.26): if yy is another
  vector than zz, its transposed product adds the previous values of zz; and it passes the Hermitian product of real
  numbers on to cuSPARSE, which rejects it.
*/
PetscErrorCode MatSpMVApplyParent_Seq(Mat A, Mat_SpMV *spmv, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  PetscFunctionBegin;
  if (op == SPMV_HERMITIAN && !PetscDefined(USE_COMPLEX)) op = SPMV_TRANSPOSE;
  if (op != SPMV_NORMAL && yy && yy != zz) {
    PetscCall(SpMVVecCopyLocal(yy, 1.0, zz));
    yy = zz;
  }
  PetscCall(SpMVParentApply(A, &spmv->parent, op, xx, yy, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  AIJCUSPARSE's product. A^T B of a matrix without entries, which it does not support (CUDA 13, PETSc 3.26.1), is set to
  zero
*/
PetscErrorCode SpMVDenseApplyParent_SeqCUDA(Mat C, PetscErrorCode (*numeric)(Mat))
{
  MatInfo info;

  PetscFunctionBegin;
  PetscCall(MatGetInfo(C->product->A, MAT_LOCAL, &info));
  if (C->product->type == MATPRODUCT_AtB && info.nz_used == 0)
    PetscCall(MatZeroEntries(C));
  else
    PetscCall((*numeric)(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- products of matrices */

/*
  The numeric phase of a product that AIJ computes on the host from factors on the device. The factors' values are
  copied to the host first, because AIJ's functions do not always do that.
*/
static PetscErrorCode SpMVProductNumericHost(Mat C, PetscErrorCode (*f)(Mat))
{
  Mat       factor[3] = {SpMVProductFactor(C, 0), SpMVProductFactor(C, 1), SpMVProductFactor(C, 2)};
  Mat_SpMV *spmv;
  PetscBool aij, maij;

  PetscFunctionBegin;
  PetscCall(SpMVProductGet(C, &spmv));
  for (int k = 0; k < 3; k++) {
    Mat       block[2] = {factor[k], NULL};
    PetscBool seq, mpi;

    if (!factor[k]) continue;
    PetscCall(PetscObjectTypeCompare((PetscObject)factor[k], MATSEQAIJCUSPARSE, &seq)); /* ours or not */
    PetscCall(PetscObjectTypeCompare((PetscObject)factor[k], MATMPIAIJCUSPARSE, &mpi));
    if (!seq && !mpi) continue;
    if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(factor[k], &block[0], &block[1], NULL));
    for (int l = 0; l < 2 && block[l]; l++) {
      const PetscScalar *a;

      PetscCall(MatSeqAIJGetArrayRead(block[l], &a));
      PetscCall(MatSeqAIJRestoreArrayRead(block[l], &a));
    }
  }
  PetscCall((*f)(C));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATSEQAIJ, &aij));
  PetscCall(PetscObjectTypeCompare((PetscObject)C->product->B, MATSEQMAIJ, &maij));
  /* for any type of A, PETSc creates a plain AIJ matrix, and later writes to its arrays */
  if (aij && maij && spmv && C->product->type == MATPRODUCT_PtAP) {
    PetscCall(MatConvert(C, MATSEQAIJCUSPARSE, MAT_INPLACE_MATRIX, &C));
    PetscCall(MatSpMVHook(C, spmv->format, spmv->params));
  }
  PetscCall(SpMVHostIsNewer(C)); /* AIJ's functions write to the host's arrays only */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A separate function of ours wraps each numeric function of PETSc. PETSc's function cannot be stored with the matrix,
  with the product, or in the product's data: PETSc moves functions and products from matrix to matrix
  (MatProductSymbolic_ABC_Basic()), creates another Mat_Product for the same function (MATSHELL), and calls AIJ's
  functions, which read the product's data, directly (MatProductNumeric_PtAP_Unsafe()). Only a function pointer is
  passed reliably from the symbolic to the numeric phase.

  PETSc 3.26 sets 56 numeric functions in all, most of them for types that are not multiplied with ours.
*/
#define SPMV_NUMERICS 64
static PetscErrorCode (*SpMVNumericBehind[SPMV_NUMERICS])(Mat);

/* clang-format off */
#define SpMVEight(X, k) X(k##0) X(k##1) X(k##2) X(k##3) X(k##4) X(k##5) X(k##6) X(k##7) /* k is octal */
#define SpMVAll(X) SpMVEight(X, 0) SpMVEight(X, 1) SpMVEight(X, 2) SpMVEight(X, 3) \
                   SpMVEight(X, 4) SpMVEight(X, 5) SpMVEight(X, 6) SpMVEight(X, 7)
#define SpMVNumeric(k) \
  static PetscErrorCode MatProductNumeric_SpMVHost_##k(Mat C) \
  { \
    return SpMVProductNumericHost(C, SpMVNumericBehind[0##k]); \
  }
#define SpMVNumericName(k) MatProductNumeric_SpMVHost_##k,
SpMVAll(SpMVNumeric)
static PetscErrorCode (*const SpMVNumericOurs[SPMV_NUMERICS])(Mat) = {SpMVAll(SpMVNumericName)};
/* clang-format on */

/* Replaces the numeric function that the symbolic phase has set by our function that calls it */
PetscErrorCode SpMVProductTakeNumeric(Mat C)
{
  PetscErrorCode (*const f)(Mat) = C->ops->productnumeric;

  PetscFunctionBegin;
  if (!f) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < SPMV_NUMERICS; k++) {
    if (f == SpMVNumericOurs[k]) PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 0; k < SPMV_NUMERICS; k++) {
    if (!SpMVNumericBehind[k]) SpMVNumericBehind[k] = f;
    if (SpMVNumericBehind[k] != f) continue;
    C->ops->productnumeric = SpMVNumericOurs[k];
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB,
          "PETSc has more than %d numeric functions for products of matrices: increase SPMV_NUMERICS", SPMV_NUMERICS);
}
