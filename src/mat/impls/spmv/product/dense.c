/*
  Products with dense matrices, A B and A^T B, in the formats: one pass over A for several columns of B. PETSc's
  symbolic phases are used unchanged; in the numeric phase only the computation of the product is replaced. On the host,
  products of parallel matrices use the products of their blocks; on a device, see cuda/dense.c.
*/
#include "mat/impls/spmv/matspmv.h"

/* AIJ's function for the product with a dense matrix; it is the same for all AIJ matrices */
static PetscErrorCode (*SpMVDenseAIJ)(Mat, Mat, Mat);

/* C = A B on the host. Each column is counted as a product when deciding whether to set the format up. PETSc also calls
   this function for other matrices */
static PetscErrorCode MatMatMultNumeric_SeqSpMV_SeqDense(Mat A, Mat B, Mat C)
{
  const PetscInt     n = B->cmap->n;
  Mat_SpMV          *spmv;
  const PetscScalar *x;
  PetscScalar       *y;
  /* rows: the number of columns that are multiplied by SpMVCSRMultColumns(), which stores X by rows first */
  PetscInt  ldx, ldy, rows = 0;
  PetscBool current = PETSC_FALSE, bound;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatBoundToCPU(A, &bound));
  if (spmv && (!spmv->device || bound)) {
    PetscCall(MatSpMVUpdateHostOrUseParent_Seq(A));
    current = (PetscBool)(SpMVKeyIsCurrent(&spmv->host.key, A) && !spmv->host.use_parent);
    if (current) rows = SpMVStoreColumnsByRows(spmv->host.store, n);
    SpMVAskedCount(&spmv->host.asked, n);
  }
  if (!current || rows == SPMV_COLUMNS_PARENT) {
    PetscCall((*SpMVDenseAIJ)(A, B, C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatDenseGetLDA(B, &ldx));
  PetscCall(MatDenseGetLDA(C, &ldy));
  PetscCall(MatDenseGetArrayRead(B, &x));
  PetscCall(MatDenseGetArrayWrite(C, &y));
  if (rows) {
    SpMVCSR        csr;
    PetscErrorCode ierr;

    PetscCall(MatSpMVGetPattern_Seq(A, &csr));
    PetscCall(MatSeqAIJGetArrayRead(A, &csr.a));
    ierr = SpMVCSRMultColumns(&csr, rows, x, ldx, y, ldy);
    PetscCall(MatSeqAIJRestoreArrayRead(A, &csr.a));
    PetscCall(MatSpMVRestorePattern_Seq(A, &csr));
    if (ierr) rows = 0; /* out of memory */
  }
  if (rows < n)
    SpMVStoreMultColumns(spmv->host.store, n - rows, x + (size_t)rows * (size_t)ldx, ldx, NULL, 0,
                         y + (size_t)rows * (size_t)ldy, ldy);
  PetscCall(MatDenseRestoreArrayWrite(C, &y));
  PetscCall(MatDenseRestoreArrayRead(B, &x));
  PetscCall(PetscLogFlops((PetscLogDouble)n * (2.0 * spmv->host.key.nz - spmv->host.nonzerorows)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Called after PETSc's symbolic phase: replaces AIJ's numeric function for A B by ours, which calls it */
PetscErrorCode SpMVDenseTakeNumeric(Mat C)
{
  Mat_SpMV *spmv;
  PetscBool dense;

  PetscFunctionBegin;
  if (C->product->type != MATPRODUCT_AB || !C->ops->matmultnumeric ||
      C->ops->matmultnumeric == MatMatMultNumeric_SeqSpMV_SeqDense)
    PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVGet(C->product->A, &spmv));
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)C->product->B, MATSEQDENSE, &dense));
  if (!spmv || SpMVIsMPI(C->product->A) || !dense) PetscFunctionReturn(PETSC_SUCCESS);
  SpMVDenseAIJ           = C->ops->matmultnumeric;
  C->ops->matmultnumeric = MatMatMultNumeric_SeqSpMV_SeqDense;
  PetscFunctionReturn(PETSC_SUCCESS);
}
