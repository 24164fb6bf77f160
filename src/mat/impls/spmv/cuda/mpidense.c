/*
  Products of parallel matrices with dense matrices on a device. A B exchanges the halo of several columns at once and
  multiplies with the two blocks; A^T B is one product per column.
*/
#include "matspmvcuda.h"

/* C = A B or A^T B, column by column */
static PetscErrorCode SpMVDenseLoop(Mat C, PetscErrorCode (*mult)(Mat, Vec, Vec))
{
  const Mat A = C->product->A, B = C->product->B;

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

static PetscErrorCode SpMVDenseAssemble(Mat C)
{
  PetscFunctionBegin;
  if (C->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE));
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- A^T B */

/*
  On a device, MPIAIJ's product multiplies with a copy of A (MAIJ) that the symbolic phase has made, so it does not use
  later changes of A's values. Therefore each column is computed as a product with a vector
*/
static PetscErrorCode MatProductNumeric_MPISpMVCUDADense_AtB(Mat C)
{
  PetscFunctionBegin;
  PetscCall(SpMVDenseLoop(C, MatMultTranspose));
  PetscCall(SpMVDenseAssemble(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_MPISpMVCUDADense_AtB(Mat C)
{
  PetscFunctionBegin;
  PetscCall(SpMVDenseSymbolic(C, MatProductSymbolic_MPISpMVCUDADense_AtB, MatProductNumeric_MPISpMVCUDADense_AtB));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- A B: this rank's part of the dense matrices */

/* Copies between local dense matrices of the same size, on the host */
static PetscErrorCode SpMVDenseCopyLocal(Mat from, Mat to)
{
  const PetscScalar *a;
  PetscScalar       *b;
  PetscInt           lda, ldb;

  PetscFunctionBegin;
  PetscCall(MatDenseGetLDA(from, &lda));
  PetscCall(MatDenseGetLDA(to, &ldb));
  PetscCall(MatDenseGetArrayRead(from, &a));
  PetscCall(MatDenseGetArrayWrite(to, &b));
  for (PetscInt q = 0; q < from->cmap->n && from->rmap->n; q++)
    PetscCall(PetscArraycpy(b + (size_t)q * (size_t)ldb, a + (size_t)q * (size_t)lda, from->rmap->n));
  PetscCall(MatDenseRestoreArrayWrite(to, &b));
  PetscCall(MatDenseRestoreArrayRead(from, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gets this rank's part of a dense matrix, or a device matrix to use instead if it is bound to the CPU, with its values
   if `copy`. Not collective */
static PetscErrorCode SpMVDenseOnDevice(Mat M, PetscBool copy, Mat *D)
{
  Mat local;

  PetscFunctionBegin;
  PetscCall(MatDenseGetLocalMatrix(M, &local));
  *D = local;
  if (!local->boundtocpu) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreateSeqDenseCUDA(PETSC_COMM_SELF, local->rmap->n, local->cmap->n, NULL, D));
  if (copy) PetscCall(SpMVDenseCopyLocal(local, *D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVDenseRestore(Mat M, PetscBool copy, Mat *D)
{
  Mat local;

  PetscFunctionBegin;
  PetscCall(MatDenseGetLocalMatrix(M, &local));
  if (*D == local) PetscFunctionReturn(PETSC_SUCCESS);
  if (copy) PetscCall(SpMVDenseCopyLocal(*D, local));
  PetscCall(MatDestroy(D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- A B: the numeric phase */

/* Arrays on the device: n columns with leading dimension ld */
typedef struct {
  PetscScalar *array;
  PetscInt     n, ld;
} SpMVColumns;

/*
  y = block x or, if `add`, y + block x. A block that has no copy in its format on the device, or is bound to the CPU,
  is multiplied with one column after the other: this rank must not return before the other ranks do
*/
static PetscErrorCode MatSpMVMultColumns_SeqCUDA(Mat block, const SpMVColumns *x, PetscBool add, const SpMVColumns *y,
                                                 cudaStream_t stream)
{
  Mat_SpMV *own = NULL, *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(block, &spmv));
  if (!block->boundtocpu) PetscCall(SpMVDenseGetReady_SeqCUDA(block, PETSC_FALSE, &own));
  if (own) {
    PetscCall(PetscLogGpuTimeBegin());
    PetscCallCUDA(SpMVCudaMult(own->cuda->copy[0].store,
                               (SpMVCudaProduct){.form    = SPMVCUDA_MULT,
                                                 .x       = x->array,
                                                 .z       = add ? y->array : NULL,
                                                 .y       = y->array,
                                                 .columns = &(SpMVCudaColumns){x->ld, y->ld, y->ld, x->n}},
                               stream));
    PetscCall(PetscLogGpuTimeEnd());
    PetscCall(PetscLogGpuFlops(2.0 * own->cuda->copy[0].key.nz * (PetscLogDouble)x->n));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt q = 0; q < x->n; q++) {
    const PetscScalar *result;
    Vec                xx, yy;

    PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, block->cmap->n, x->array + (size_t)q * (size_t)x->ld, &xx));
    PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, block->rmap->n, y->array + (size_t)q * (size_t)y->ld, &yy));
    if (block->boundtocpu)
      PetscCall(MatSpMVApply_Seq(block, SPMV_NORMAL, xx, add ? yy : NULL, yy));
    else
      PetscCall(MatSpMVApplyParent_Seq(block, spmv, SPMV_NORMAL, xx, add ? yy : NULL, yy));
    PetscCall(VecCUDAGetArrayRead(yy, &result)); /* copies the result to the device if the host has computed it */
    PetscCall(VecCUDARestoreArrayRead(yy, &result));
    PetscCall(VecDestroy(&xx));
    PetscCall(VecDestroy(&yy));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  C = A B: one pass over the diagonal block for all columns, while the halo of the first columns arrives; then the
  off-diagonal block with the halo of up to SPMV_HALO_COLUMNS columns at a time. An exchange at the same time as the
  product needs a second stream, which costs more than a short product hides
*/
static PetscErrorCode MatSpMVMultColumns_MPICUDA(Mat A, Mat_SpMV *spmv, Mat B, Mat C)
{
  const SpMVHalo     halo  = spmv->cuda->exchange.halo;
  const PetscReal    least = 8000000; /* entries times columns: their product takes 20 us on an H200 */
  Mat                block[2], local[2];
  Mat_SpMV          *diagonal;
  PetscBool          overlap;
  SpMVColumns        x = {NULL, B->cmap->N, 0}, y = {NULL, B->cmap->N, 0}, received;
  const PetscScalar *array;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(MatSpMVGet(block[0], &diagonal));
  overlap = (PetscBool)((PetscReal)diagonal->cuda->copy[0].key.nz * (PetscReal)x.n >= least);
  PetscCall(SpMVGetStream(&stream));
  PetscCall(SpMVDenseOnDevice(B, PETSC_TRUE, &local[0]));
  PetscCall(SpMVDenseOnDevice(C, PETSC_FALSE, &local[1]));
  PetscCall(MatDenseGetLDA(local[0], &x.ld));
  PetscCall(MatDenseGetLDA(local[1], &y.ld));
  PetscCall(MatDenseCUDAGetArrayRead(local[0], &array));
  PetscCall(MatDenseCUDAGetArrayWrite(local[1], &y.array));
  x.array = (PetscScalar *)array;
  PetscCall(SpMVHaloEnterColumns(halo, stream));
  PetscCall(SpMVHaloGetColumns(halo, &received.array, &received.ld));
  for (PetscInt first = 0; first < x.n; first += SPMV_HALO_COLUMNS) {
    SpMVColumns part = {y.array + (size_t)first * (size_t)y.ld, PetscMin(SPMV_HALO_COLUMNS, x.n - first), y.ld};

    received.n = part.n;
    PetscCall(SpMVHaloBeginColumns(halo, part.n, x.array + (size_t)first * (size_t)x.ld, x.ld,
                                   (PetscBool)(overlap && !first), stream));
    if (!first) PetscCall(MatSpMVMultColumns_SeqCUDA(block[0], &x, PETSC_FALSE, &y, stream));
    PetscCall(SpMVHaloEndColumns(halo, stream));
    if (received.array) PetscCall(MatSpMVMultColumns_SeqCUDA(block[1], &received, PETSC_TRUE, &part, stream));
  }
  PetscCall(SpMVHaloLeaveColumns(halo, stream));
  PetscCall(MatDenseCUDARestoreArrayWrite(local[1], &y.array));
  PetscCall(MatDenseCUDARestoreArrayRead(local[0], &array));
  PetscCall(SpMVDenseRestore(C, PETSC_TRUE, &local[1]));
  PetscCall(SpMVDenseRestore(B, PETSC_FALSE, &local[0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Brings the copies of the two blocks up to date. The off-diagonal block has a copy of its own even if MatMult() uses
  one that is fused into the diagonal block's. *lacks: this rank has no memory for a copy
*/
static PetscErrorCode MatSpMVPrepareColumns_MPICUDA(Mat A, Mat_SpMV *spmv, int *lacks)
{
  const PetscBool has_halo = (PetscBool) !!SpMVHaloGetArray(spmv->cuda->exchange.halo);
  Mat             block[2];

  PetscFunctionBegin;
  *lacks = 0;
  PetscCall(MatSpMVHookBlocks_MPI(A, spmv));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < (has_halo ? 2 : 1); k++) {
    Mat_SpMV *own, *ready;

    if (block[k]->boundtocpu) continue;
    PetscCall(MatSpMVGet(block[k], &own));
    PetscCall(SpMVDenseGetReady_SeqCUDA(block[k], PETSC_FALSE, &ready));
    if (!ready && !own->cuda->copy[0].use_parent) *lacks = 1;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Prepares the product with several columns. *ours is false on all ranks if columns are to be multiplied one by one:
  there is no exchange of our own, or a rank has no memory for the copies of its blocks or for the halo. The ranks
  communicate only if the state of A has changed
*/
static PetscErrorCode MatSpMVBeginColumns_MPICUDA(Mat A, Mat_SpMV *spmv, PetscBool *ours)
{
  SpMVAgreedColumns *agreed = &spmv->cuda->columns, now = {0};

  PetscFunctionBegin;
  PetscCall(MatSpMVUpdateHalo_MPICUDA(A, spmv, NULL, NULL, NULL, ours));
  if (!*ours) PetscFunctionReturn(PETSC_SUCCESS);
  SpMVKeySet(&now.agreed.key, A);
  PetscCall(MatBoundToCPU(A, &now.agreed.bound));
  if (!SpMVKeyIsCurrent(&agreed->agreed.key, A) || agreed->agreed.bound != now.agreed.bound) {
    const MPI_Comm comm  = PetscObjectComm((PetscObject)A);
    int            lacks = 0;

    PetscCall(SpMVAgree(comm, MatSpMVPrepareColumns_MPICUDA(A, spmv, &lacks)));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &lacks, 1, MPI_INT, MPI_MAX, comm));
    now.lacks = (PetscBool)lacks;
    *agreed   = now;
  }
  *ours = (PetscBool)!agreed->lacks;
  /* a halo may be new although A has not changed */
  if (*ours) PetscCall(SpMVHaloSetUpColumns(spmv->cuda->exchange.halo, ours));
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
  A single column is a product with a vector, which has shorter ways. The factors may have been replaced since the
  symbolic phase: A may be of type AIJCUSPARSE
*/
static PetscErrorCode MatProductNumeric_MPISpMVCUDADense_AB(Mat C)
{
  const Mat A = C->product->A, B = C->product->B;
  Mat_SpMV *spmv;
  PetscBool ours = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVDenseAreDevice(B, C, &ours));
  ours = (PetscBool)(ours && spmv && B->cmap->N > 1);
  if (ours) PetscCall(MatSpMVBeginColumns_MPICUDA(A, spmv, &ours));
  if (ours)
    PetscCall(MatSpMVMultColumns_MPICUDA(A, spmv, B, C));
  else
    PetscCall(SpMVDenseLoop(C, MatMult));
  PetscCall(SpMVDenseAssemble(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- A B: the symbolic phase */

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

/* PETSc's product is used if A does not have our exchange (a matrix may be bound to the CPU, or the option may select
   PETSc's), or if B or C is on the host */
static PetscErrorCode MatProductSymbolic_MPISpMVCUDADense_AB(Mat C)
{
  const Mat A = C->product->A, B = C->product->B;
  Mat_SpMV *spmv;
  PetscBool ours;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVDenseAreDevice(B, C, &ours));
  if (ours && spmv) PetscCall(MatSpMVUpdateHalo_MPICUDA(A, spmv, NULL, NULL, NULL, &ours));
  if (ours && spmv)
    PetscCall(SpMVDenseSymbolic(C, MatProductSymbolic_MPISpMVCUDADense_AB, MatProductNumeric_MPISpMVCUDADense_AB));
  else {
    PetscCall(MatProductSetFromOptions_MPIAIJCUSPARSEDense(C));
    PetscCheck(C->ops->productsymbolic && C->ops->productsymbolic != MatProductSymbolic_MPISpMVCUDADense_AB,
               PetscObjectComm((PetscObject)C), PETSC_ERR_SUP,
               "The product is no longer supported: a factor has been changed");
    PetscCall((*C->ops->productsymbolic)(C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc copies composed functions to other matrices: A may be of type AIJCUSPARSE */
PetscErrorCode MatProductSetFromOptions_MPISpMVCUDADense(Mat C)
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
    C->ops->productsymbolic = MatProductSymbolic_MPISpMVCUDADense_AtB;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatProductSetFromOptions_MPIAIJCUSPARSEDense(C));
  PetscCall(SpMVDenseAreDevice(B, C, &device));
  if (spmv && device && C->product->type == MATPRODUCT_AB && C->ops->productsymbolic)
    C->ops->productsymbolic = MatProductSymbolic_MPISpMVCUDADense_AB;
  PetscFunctionReturn(PETSC_SUCCESS);
}
