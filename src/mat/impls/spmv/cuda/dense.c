/*
  Products of sequential matrices with dense matrices on a device: one pass over A for several columns of B.
*/
#include "matspmvcuda.h"

/* AIJCUSPARSE's functions for products with a dense matrix; they are the same for all AIJCUSPARSE matrices and kinds of
   products */
static struct {
  PetscErrorCode (*symbolic)(Mat), (*numeric)(Mat);
} SpMVDenseCUSPARSE;

/*
  Brings the copy of A or its transpose up to date. *ours is NULL if AIJCUSPARSE is to multiply. That includes lack of
  memory for the copy: an error on this rank alone, in the middle of a parallel product, would leave the other ranks
  waiting
*/
PetscErrorCode SpMVDenseGetReady_SeqCUDA(Mat A, PetscBool transpose, Mat_SpMV **ours)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatSpMVGetReady_SeqCUDA(A, transpose, ours);
  PetscCall(PetscPopErrorHandler());
  if (ierr == PETSC_ERR_GPU_RESOURCE || ierr == PETSC_ERR_MEM) {
    PetscCall(PetscInfo(A, "Out of memory for the format; using the product of AIJCUSPARSE\n"));
    *ours = NULL;
    ierr  = PETSC_SUCCESS;
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc also calls this function for other matrices: A may be of type AIJCUSPARSE */
static PetscErrorCode MatProductNumeric_SeqSpMVCUDADense(Mat C)
{
  const Mat       A         = C->product->A;
  Mat             B         = C->product->B;
  const PetscBool transpose = (PetscBool)(C->product->type == MATPRODUCT_AtB);
  SpMVPlan        plan      = {{NULL}};
  Mat_SpMV       *spmv;
  PetscBool       device, host = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATSEQDENSECUDA, &device));
  if (!device || C->boundtocpu || B->boundtocpu || A->boundtocpu) spmv = NULL;
  if (spmv) PetscCall(MatSpMVGetPlanOfColumns_CUDA(A, transpose, &plan));
  if (!plan.store[0]) {
    PetscCall(SpMVDenseApplyParent_SeqCUDA(C, SpMVDenseCUSPARSE.numeric));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQDENSE, &host));
  if (host) PetscCall(MatConvert(B, MATSEQDENSECUDA, MAT_INPLACE_MATRIX, &B)); /* as AIJCUSPARSE does */
  PetscCall(SpMVDenseLaunch(&plan, B, C));
  if (host) PetscCall(MatConvert(B, MATSEQDENSE, MAT_INPLACE_MATRIX, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_SeqSpMVCUDADense(Mat C)
{
  PetscFunctionBegin;
  PetscCall((*SpMVDenseCUSPARSE.symbolic)(C));
  if (C->ops->productnumeric && C->ops->productnumeric != MatProductNumeric_SeqSpMVCUDADense) {
    SpMVDenseCUSPARSE.numeric = C->ops->productnumeric;
    C->ops->productnumeric    = MatProductNumeric_SeqSpMVCUDADense;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSetFromOptions_SeqSpMVCUDADense(Mat C)
{
  const MatProductType type = C->product->type;

  PetscFunctionBegin;
  PetscCall((*SpMVParents[1][0].productdense)(C));
  if ((type == MATPRODUCT_AB || type == MATPRODUCT_AtB) && !C->product->A->boundtocpu && C->ops->productsymbolic &&
      C->ops->productsymbolic != MatProductSymbolic_SeqSpMVCUDADense) {
    SpMVDenseCUSPARSE.symbolic = C->ops->productsymbolic;
    C->ops->productsymbolic    = MatProductSymbolic_SeqSpMVCUDADense;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVCompose_DenseCUDA(Mat A, PetscBool device, PetscBool mpi, PetscBool ours)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    if (mpi)
      PetscCall(PetscObjectComposeFunction((PetscObject)A,
                                           k ? "MatProductSetFromOptions_mpiaijcusparse_mpidensecuda_C"
                                             : "MatProductSetFromOptions_mpiaijcusparse_mpidense_C",
                                           ours ? MatProductSetFromOptions_MPISpMVCUDADense : NULL));
    else
      PetscCall(SpMVReplaceFunction(A,
                                    k ? "MatProductSetFromOptions_seqaijcusparse_seqdensecuda_C"
                                      : "MatProductSetFromOptions_seqaijcusparse_seqdense_C",
                                    ours ? MatProductSetFromOptions_SeqSpMVCUDADense
                                         : SpMVParents[device][mpi].productdense));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
