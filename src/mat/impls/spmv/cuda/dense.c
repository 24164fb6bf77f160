/*
  Products with dense matrices on a device: one pass over A for several columns of B. A B of parallel matrices exchanges
  the halo of several columns at once; A^T B is one product per column.
*/
#include "matspmvcuda.h"

/* ---------------------------------------------------------------- this rank's part of the dense matrices */

/* Gets this rank's part of a dense matrix, or a device matrix to use instead if it is bound to the CPU, with its values
   if `copy`. Not collective. Values are copied while both matrices are bound: PETSc then copies whole arrays */
static PetscErrorCode SpMVDenseOnDevice(Mat M, PetscBool copy, Mat *D)
{
  Mat local;

  PetscFunctionBegin;
  PetscCall(MatDenseGetLocalMatrix(M, &local));
  *D = local;
  if (!local->boundtocpu) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreateSeqDenseCUDA(PETSC_COMM_SELF, local->rmap->n, local->cmap->n, NULL, D));
  if (!copy) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatBindToCPU(*D, PETSC_TRUE));
  PetscCall(MatCopy(local, *D, SAME_NONZERO_PATTERN));
  PetscCall(MatBindToCPU(*D, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVDenseRestore(Mat M, PetscBool copy, Mat *D)
{
  Mat local;

  PetscFunctionBegin;
  PetscCall(MatDenseGetLocalMatrix(M, &local));
  if (*D == local) PetscFunctionReturn(PETSC_SUCCESS);
  if (copy) {
    PetscCall(MatBindToCPU(*D, PETSC_TRUE));
    PetscCall(MatCopy(*D, local, SAME_NONZERO_PATTERN));
  }
  PetscCall(MatDestroy(D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVDenseGetArrays(Mat B, Mat C, Mat local[2], SpMVCudaColumns *c, const PetscScalar **x,
                                         PetscScalar **y)
{
  PetscInt ld[2];

  PetscFunctionBegin;
  PetscCall(SpMVDenseOnDevice(B, PETSC_TRUE, &local[0]));
  PetscCall(SpMVDenseOnDevice(C, PETSC_FALSE, &local[1]));
  for (int k = 0; k < 2; k++) PetscCall(MatDenseGetLDA(local[k], &ld[k]));
  c->ldx = ld[0];
  c->ldy = c->ldz = ld[1];
  PetscCall(MatDenseCUDAGetArrayRead(local[0], x));
  PetscCall(MatDenseCUDAGetArrayWrite(local[1], y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C = A B, or A^T B of a sequential matrix, with one pass over A for several columns */
static PetscErrorCode SpMVDenseLaunch(const SpMVMultPlan *plan, Mat B, Mat C)
{
  SpMVCudaColumns    c        = {.count = B->cmap->N};
  Mat                local[2] = {NULL, NULL};
  const PetscScalar *x;
  PetscScalar       *y;
  cudaStream_t       stream;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  ierr = SpMVDenseGetArrays(B, C, local, &c, &x, &y);
  if (ierr) PetscCall(SpMVMultPlanForgo(plan, c.count, stream));
  for (int k = 0; k < 2 && ierr; k++) {
    if (local[k]) PetscCall(SpMVDenseRestore(k ? C : B, PETSC_FALSE, &local[k]));
  }
  PetscCall(ierr);
  if (SpMVMultPlanIsWhole(plan)) PetscCall(PetscLogGpuTimeBegin());
  PetscCall(SpMVMultPlanLaunch(plan, (SpMVCudaProduct){.x = x, .y = y, .columns = &c}, stream));
  if (SpMVMultPlanIsWhole(plan)) PetscCall(PetscLogGpuTimeEnd());
  PetscCall(MatDenseCUDARestoreArrayWrite(local[1], &y));
  PetscCall(MatDenseCUDARestoreArrayRead(local[0], &x));
  PetscCall(SpMVDenseRestore(C, PETSC_TRUE, &local[1]));
  PetscCall(SpMVDenseRestore(B, PETSC_FALSE, &local[0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- sequential matrices */

/* AIJCUSPARSE's functions for products with a dense matrix; they are the same for all AIJCUSPARSE matrices and kinds of
   products */
static struct {
  PetscErrorCode (*symbolic)(Mat), (*numeric)(Mat);
} SpMVDenseCUSPARSE;

/* PETSc also calls this function for other matrices: A may be of type AIJCUSPARSE */
static PetscErrorCode MatProductNumeric_SeqSpMVCUDADense(Mat C)
{
  const SpMVMultPlanKind kind = C->product->type == MATPRODUCT_AtB ? SPMV_PLAN_COLUMNS_TRANSPOSE : SPMV_PLAN_COLUMNS;
  const Mat              A    = C->product->A;
  Mat                    B    = C->product->B;
  SpMVMultPlan           plan = {{NULL}};
  Mat_SpMV              *spmv;
  PetscBool              device, host = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATSEQDENSECUDA, &device));
  if (!device || C->boundtocpu || B->boundtocpu || A->boundtocpu) spmv = NULL;
  if (spmv) PetscCall(MatSpMVGetPlan_CUDA(A, kind, NULL, NULL, &plan));
  if (!plan.block[0]) {
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

/* ---------------------------------------------------------------- parallel matrices */

/* C = A B or A^T B, column by column */
static PetscErrorCode SpMVDenseLoop(Mat A, Mat B, Mat C, PetscErrorCode (*mult)(Mat, Vec, Vec))
{
  PetscFunctionBegin;
  for (PetscInt q = 0; q < B->cmap->N; q++) {
    Vec x, y;

    PetscCall(MatDenseGetColumnVecRead(B, q, &x));
    PetscCall(MatDenseGetColumnVecWrite(C, q, &y));
    PetscCall((*mult)(A, x, y));
    PetscCall(MatDenseRestoreColumnVecWrite(C, q, &y));
    PetscCall(MatDenseRestoreColumnVecRead(B, q, &x));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether B is on the device, and C too unless it has no type yet. The result is the same on all ranks */
static PetscErrorCode SpMVDenseAreDevice(Mat B, Mat C, PetscBool *are)
{
  PetscBool dense;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATMPIDENSECUDA, are));
  PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)C, &dense, MATSEQDENSE, MATMPIDENSE, ""));
  if (*are && dense) PetscCall(PetscObjectTypeCompare((PetscObject)C, MATMPIDENSECUDA, are));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A single column is a product with a vector, which has shorter ways. So are the columns of A^T B: on a device, MPIAIJ's
  product multiplies with a copy of A (MAIJ) that the symbolic phase has made, so it does not use later changes of A's
  values. The factors may have been replaced since the symbolic phase: A may be of type AIJCUSPARSE
*/
static PetscErrorCode MatMatMultNumeric_MPISpMVCUDADense(Mat A, Mat B, Mat C)
{
  const PetscBool transpose = (PetscBool)(C->product->type == MATPRODUCT_AtB);
  SpMVMultPlan    plan      = {{NULL}};
  Mat_SpMV       *spmv;
  PetscBool       device;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVDenseAreDevice(B, C, &device));
  if (device && spmv && !transpose && B->cmap->N > 1)
    PetscCall(MatSpMVGetPlan_CUDA(A, SPMV_PLAN_COLUMNS, NULL, NULL, &plan));
  if (plan.block[0])
    PetscCall(SpMVDenseLaunch(&plan, B, C));
  else
    PetscCall(SpMVDenseLoop(A, B, C, transpose ? MatMultTranspose : MatMult));
  if (C->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE));
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_MPISpMVCUDADense(Mat C)
{
  PetscFunctionBegin;
  PetscCall(MatMatMultNumeric_MPISpMVCUDADense(C->product->A, C->product->B, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the symbolic phase */

/* Gives C the type of B unless C is dense already */
static PetscErrorCode SpMVDenseSymbolic(Mat C)
{
  const Mat         A = C->product->A, B = C->product->B;
  const PetscLayout rows                = C->product->type == MATPRODUCT_AtB ? A->cmap : A->rmap;
  PetscErrorCode (*const symbolic)(Mat) = C->ops->productsymbolic;
  PetscBool dense;

  PetscFunctionBegin;
  PetscCall(MatSetSizes(C, rows->n, B->cmap->n, rows->N, B->cmap->N));
  PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)C, &dense, MATSEQDENSE, MATMPIDENSE, ""));
  if (!dense) {
    PetscCall(MatSetType(C, ((PetscObject)B)->type_name)); /* sets C's operations, too */
    PetscCall(MatSetVecType(C, B->defaultvectype));
    C->ops->productsymbolic = symbolic;
  }
  PetscCall(MatSetUp(C));
  C->ops->productnumeric = MatProductNumeric_MPISpMVCUDADense;
  /* PETSc's products of three matrices call these with one factor and the product of the others */
  C->ops->matmultnumeric          = MatMatMultNumeric_MPISpMVCUDADense;
  C->ops->transposematmultnumeric = MatMatMultNumeric_MPISpMVCUDADense;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's function for A B */
static PetscErrorCode MatProductSetFromOptions_MPIAIJCUSPARSEDense(Mat C)
{
  const PetscObject A = (PetscObject)C->product->A, B = (PetscObject)C->product->B;
  PetscErrorCode (*f)(Mat);
  char name[128];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(name, sizeof(name), "MatProductSetFromOptions_%s_%s_C", A->type_name, B->type_name));
  PetscCall(PetscObjectQueryFunction(B, name, &f));
  if (f) PetscCall((*f)(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's product A B is used if A does not have our exchange (a matrix may be bound to the CPU, or the option may
   select PETSc's), or if B or C is on the host */
static PetscErrorCode MatProductSymbolic_MPISpMVCUDADense(Mat C)
{
  const Mat A = C->product->A, B = C->product->B;
  Mat_SpMV *spmv;
  PetscBool ours = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (C->product->type == MATPRODUCT_AB) {
    PetscCall(SpMVDenseAreDevice(B, C, &ours));
    if (!spmv) ours = PETSC_FALSE;
    if (ours) PetscCall(MatSpMVUpdateHalo_MPICUDA(A, spmv, PETSC_FALSE, &ours));
  }
  if (ours)
    PetscCall(SpMVDenseSymbolic(C));
  else {
    PetscCall(MatProductSetFromOptions_MPIAIJCUSPARSEDense(C));
    PetscCheck(C->ops->productsymbolic && C->ops->productsymbolic != MatProductSymbolic_MPISpMVCUDADense,
               PetscObjectComm((PetscObject)C), PETSC_ERR_SUP,
               "The product is no longer supported: a factor has been changed");
    PetscCall((*C->ops->productsymbolic)(C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc copies composed functions to other matrices: A may be of type AIJCUSPARSE */
static PetscErrorCode MatProductSetFromOptions_MPISpMVCUDADense(Mat C)
{
  const Mat A = C->product->A, B = C->product->B;
  Mat_SpMV *spmv;
  PetscBool device;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (spmv && C->product->type == MATPRODUCT_AtB) {
    PetscCheck(A->rmap->rstart == B->rmap->rstart && A->rmap->rend == B->rmap->rend, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
               "Matrix local dimensions are incompatible, (%" PetscInt_FMT ", %" PetscInt_FMT ") != (%" PetscInt_FMT
               ", %" PetscInt_FMT ")",
               A->rmap->rstart, A->rmap->rend, B->rmap->rstart, B->rmap->rend);
    C->ops->productsymbolic = MatProductSymbolic_MPISpMVCUDADense;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatProductSetFromOptions_MPIAIJCUSPARSEDense(C));
  PetscCall(SpMVDenseAreDevice(B, C, &device));
  if (spmv && device && C->product->type == MATPRODUCT_AB && C->ops->productsymbolic)
    C->ops->productsymbolic = MatProductSymbolic_MPISpMVCUDADense;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- composed functions */

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
