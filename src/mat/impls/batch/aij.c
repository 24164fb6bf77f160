/*
  The copy of a batch in AIJ, and the operations that use it: products of matrices, factorizations, orderings,
  relaxation, submatrices.
*/
#include "batch.h"

/* Gets the values of all problems, one problem after the other. Shared values are repeated for each problem */
static PetscErrorCode BatchGetValues(const Mat_Batch *b, PetscScalar v[])
{
  PetscFunctionBegin;
  for (PetscInt p = 0; p < b->p.problems; p++) {
    const PetscInt *i = BatchOffsets(&b->p, p), entries = i[b->first[p + 1] - b->first[p]] - i[0];

    PetscCall(PetscArraycpy(v, b->a + BatchValueShift(&b->p, p) + i[0], entries));
    v += entries;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The CSR arrays of the local part, with `shift` added to the columns. The caller frees them, even after an error */
static PetscErrorCode MatBatchGetCSR(Mat A, PetscInt shift, PetscInt **i, PetscInt **j, PetscScalar **v)
{
  Mat_Batch *b = NULL;
  PetscInt64 nz;
  PetscInt   at = 0;

  PetscFunctionBegin;
  PetscCall(MatBatchGet(A, &b));
  nz = BatchNonzeros(&b->p);
  PetscCheck(nz <= PETSC_MAX_INT, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "%" PetscInt64_FMT " nonzeros on this process do not fit in a PetscInt, as AIJ needs: use more processes, "
             "or a PETSc with 64-bit indices",
             nz);
  PetscCall(PetscMalloc1((size_t)A->rmap->n + 1, i));
  PetscCall(PetscMalloc1((size_t)nz, j));
  PetscCall(PetscMalloc1((size_t)nz, v));
  (*i)[0] = 0;
  for (PetscInt p = 0; p < b->p.problems; p++) {
    const PetscInt *o = BatchOffsets(&b->p, p), first = b->first[p];

    for (PetscInt r = 0; r < b->first[p + 1] - first; r++) {
      for (PetscInt k = o[r]; k < o[r + 1]; k++) (*j)[at++] = shift + first + b->j[k];
      (*i)[first + r + 1] = at;
    }
  }
  PetscCall(BatchGetValues(b, *v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchToAIJ(Mat A, MPI_Comm comm, PetscInt shift, Mat *B)
{
  PetscInt      *i = NULL, *j = NULL, bs;
  PetscScalar   *v = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = SpMVAgree(comm, MatBatchGetCSR(A, shift, &i, &j, &v));
  if (ierr) {
    PetscCall(PetscFree(i));
    PetscCall(PetscFree(j));
    PetscCall(PetscFree(v));
  }
  PetscCall(ierr);
  PetscCall(MatGetBlockSize(A, &bs));
  PetscCall(MatCreate(comm, B));
  PetscCall(MatSetSizes(*B, A->rmap->n, A->cmap->n, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetBlockSize(*B, bs));
  PetscCall(MatSetType(*B, MATAIJ));
  /* this call does nothing for a parallel matrix, and the next call does nothing for a sequential one */
  PetscCall(MatSeqAIJSetPreallocationCSR(*B, i, j, v));
  PetscCall(MatMPIAIJSetPreallocationCSR(*B, i, j, v));
  PetscCall(PetscFree(i));
  PetscCall(PetscFree(j));
  PetscCall(PetscFree(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatBatchConvertToAIJ(Mat A, Mat *B)
{
  return MatBatchToAIJ(A, PetscObjectComm((PetscObject)A), A->cmap->rstart, B);
}

/* Gets the local part as AIJ with the current values. It belongs to the matrix */
static PetscErrorCode MatBatchGetAIJ(Mat A, Mat *aij)
{
  Mat_Batch       *b = (Mat_Batch *)A->data;
  PetscObjectState state;

  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (!b->aij) {
    PetscCall(MatBatchToAIJ(A, PETSC_COMM_SELF, 0, &b->aij));
#if defined(PETSCSPMV_HAVE_CUDA)
    if (b->device && !A->boundtocpu) PetscCall(MatConvert(b->aij, MATSEQAIJCUSPARSE, MAT_INPLACE_MATRIX, &b->aij));
#endif
    PetscCall(MatSetVariableBlockSizes(b->aij, A->nblocks, A->bsizes));
  } else if (state != b->aij_state) {
    PetscScalar *v;

    PetscCall(MatSeqAIJGetArray(b->aij, &v));
    PetscCall(BatchGetValues(b, v));
    PetscCall(MatSeqAIJRestoreArray(b->aij, &v));
    PetscCall(MatAssemblyBegin(b->aij, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(b->aij, MAT_FINAL_ASSEMBLY));
  }
  b->aij_state = state;
  *aij         = b->aij;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetDiagonalBlock_Batch(Mat A, Mat *B)
{
  return MatBatchGetAIJ(A, B);
}

#if defined(PETSCSPMV_HAVE_CUDA) && PETSC_VERSION_GE(3, 26, 0)
/*
  For PCVPBJACOBI on a GPU, which needs AIJCUSPARSE. A rank without rows returns a matrix on the host. With a matrix on
  the device PCVPBJACOBI would not touch this rank's vectors, so they would keep their cached norms while the other
  ranks compute norms collectively.
*/
static PetscErrorCode MatGetVBlockDiagonal_Batch(Mat A, Mat *B)
{
  PetscFunctionBegin;
  if (!A->rmap->n) {
    PetscCall(MatBatchToAIJ(A, PETSC_COMM_SELF, 0, B));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatBatchGetAIJ(A, B));
  PetscCall(PetscObjectReference((PetscObject)*B));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode MatInvertBlockDiagonal_Batch(Mat A, const PetscScalar **values)
{
  Mat B = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  PetscCall(MatSetBlockSizesFromMats(B, A, A));
  PetscCall(MatInvertBlockDiagonal(B, values));
  A->factorerrortype = B->factorerrortype;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatInvertVariableBlockDiagonal_Batch(Mat A, PetscInt nblocks, const PetscInt *sizes,
                                                           PetscScalar *values)
{
  Mat B = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  B->erroriffailure = A->erroriffailure;
  PetscCall(MatInvertVariableBlockDiagonal(B, nblocks, sizes, values));
  A->factorerrortype = B->factorerrortype;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- patterns, orderings, relaxation */

typedef PetscErrorCode IJFunction(Mat, PetscInt, PetscBool, PetscBool, PetscInt *, const PetscInt *[],
                                  const PetscInt *[], PetscBool *);

static PetscErrorCode MatBatchGetIJ(IJFunction *get, Mat A, PetscInt shift, PetscBool symmetric, PetscBool inode,
                                    PetscInt *n, const PetscInt *i[], const PetscInt *j[], PetscBool *done)
{
  Mat         B;
  PetscMPIInt size;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatBatchGetAIJ(A, &B));
  PetscCall((*get)(B, shift, symmetric, inode, n, i, j, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchRestoreIJ(IJFunction *restore, Mat A, PetscInt shift, PetscBool symmetric,
                                        PetscBool inode, PetscInt *n, const PetscInt *i[], const PetscInt *j[],
                                        PetscBool *done)
{
  Mat_Batch *b = (Mat_Batch *)A->data;

  PetscFunctionBegin;
  if (b->aij) PetscCall((*restore)(b->aij, shift, symmetric, inode, n, i, j, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetRowIJ_Batch(Mat A, PetscInt shift, PetscBool symmetric, PetscBool inode, PetscInt *n,
                                        const PetscInt *i[], const PetscInt *j[], PetscBool *done)
{
  return MatBatchGetIJ(MatGetRowIJ, A, shift, symmetric, inode, n, i, j, done);
}

static PetscErrorCode MatRestoreRowIJ_Batch(Mat A, PetscInt shift, PetscBool symmetric, PetscBool inode, PetscInt *n,
                                            const PetscInt *i[], const PetscInt *j[], PetscBool *done)
{
  return MatBatchRestoreIJ(MatRestoreRowIJ, A, shift, symmetric, inode, n, i, j, done);
}

static PetscErrorCode MatGetColumnIJ_Batch(Mat A, PetscInt shift, PetscBool symmetric, PetscBool inode, PetscInt *n,
                                           const PetscInt *i[], const PetscInt *j[], PetscBool *done)
{
  return MatBatchGetIJ(MatGetColumnIJ, A, shift, symmetric, inode, n, i, j, done);
}

static PetscErrorCode MatRestoreColumnIJ_Batch(Mat A, PetscInt shift, PetscBool symmetric, PetscBool inode, PetscInt *n,
                                               const PetscInt *i[], const PetscInt *j[], PetscBool *done)
{
  return MatBatchRestoreIJ(MatRestoreColumnIJ, A, shift, symmetric, inode, n, i, j, done);
}

/*
  MatGetRowIJ() of AIJ returns consecutive rows with the same columns (inodes) as one row. AIJ has two functions that
  expand orderings and colorings of inodes into orderings and colorings of rows
*/
static PetscErrorCode MatInodeAdjustForInodes_Batch(Mat A, IS *row, IS *col)
{
  Mat B = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  PetscCall(MatInodeAdjustForInodes(B, row, col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatColoringPatch_Batch(Mat A, PetscInt colors, PetscInt n, ISColoringValue color[],
                                             ISColoring *coloring)
{
  Mat B = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  PetscCall(MatColoringPatch(B, colors, n, color, coloring));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PCEISENSTAT multiplies with the blocks that relaxation inverts. An AIJ matrix has this operation only if it has
   inodes */
static PetscErrorCode MatMultDiagonalBlock_Batch(Mat A, Vec x, Vec y)
{
  Mat B = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchCheckVec(A, x));
  PetscCall(MatBatchCheckVec(A, y));
  PetscCall(MatBatchGetAIJ(A, &B));
  PetscCall(MatMultDiagonalBlock(B, x, y)); /* uses the local arrays, even of parallel vectors */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatHasOperation_Batch(Mat A, MatOperation op, PetscBool *has)
{
  Mat B = NULL;

  PetscFunctionBegin;
  *has = (PetscBool)(((void **)A->ops)[op] != NULL);
  if (op == MATOP_MULT_DIAGONAL_BLOCK) {
    PetscCall(MatBatchGetAIJ(A, &B));
    PetscCall(MatHasOperation(B, op, has));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No problem is coupled to another process, so all its * lits sweeps are local. Their number is passed as `its`,
   because SeqAIJ with inodes ignores `lits` */
static PetscErrorCode MatSOR_Batch(Mat A, Vec bb, PetscReal omega, MatSORType flag, PetscReal shift, PetscInt its,
                                   PetscInt lits, Vec xx)
{
  Mat B = NULL;
  Vec rhs, x;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  PetscCall(VecCreateLocalVector(bb, &rhs));
  PetscCall(VecCreateLocalVector(xx, &x));
  PetscCall(VecGetLocalVectorRead(bb, rhs));
  PetscCall(VecGetLocalVector(xx, x));
  PetscCall(MatSOR(B, rhs, omega, flag, shift, its * lits, 1, x));
  PetscCall(VecRestoreLocalVector(xx, x));
  PetscCall(VecRestoreLocalVectorRead(bb, rhs));
  PetscCall(VecDestroy(&rhs));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- operations on a temporary copy in AIJ */

/* AIJ does not check index sets, and would read beyond its arrays */
static PetscErrorCode MatBatchCheckIS(Mat A, PetscInt n, const IS is[])
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) {
    PetscInt len, min, max;

    PetscCall(ISGetLocalSize(is[k], &len));
    PetscCall(ISGetMinMax(is[k], &min, &max));
    PetscCheck(!len || (min >= 0 && max < A->rmap->N), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
               "Index set with numbers from %" PetscInt_FMT " to %" PetscInt_FMT ", for a matrix of %" PetscInt_FMT
               " rows and columns",
               min, max, A->rmap->N);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Executes `call`, in which B is a copy of A in AIJ */
#define MatBatchCallWithAIJ(A, B, call)     \
  do {                                      \
    Mat            B;                       \
    PetscErrorCode ierr_;                   \
                                            \
    PetscCall(MatBatchConvertToAIJ(A, &B)); \
    ierr_ = call;                           \
    PetscCall(MatDestroy(&B));              \
    PetscCall(ierr_);                       \
  } while (0)

static PetscErrorCode MatCreateSubMatrices_Batch(Mat A, PetscInt n, const IS rows[], const IS cols[], MatReuse reuse,
                                                 Mat *sub[])
{
  PetscFunctionBegin;
  PetscCall(MatBatchCheckIS(A, n, rows));
  PetscCall(MatBatchCheckIS(A, n, cols));
  MatBatchCallWithAIJ(A, B, MatCreateSubMatrices(B, n, rows, cols, reuse, sub));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreateSubMatricesMPI_Batch(Mat A, PetscInt n, const IS rows[], const IS cols[], MatReuse reuse,
                                                    Mat *sub[])
{
  PetscFunctionBegin;
  PetscCall(MatBatchCheckIS(A, n, rows));
  PetscCall(MatBatchCheckIS(A, n, cols));
  MatBatchCallWithAIJ(A, B, MatCreateSubMatricesMPI(B, n, rows, cols, reuse, sub));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreateSubMatrix_Batch(Mat A, IS rows, IS cols, MatReuse reuse, Mat *sub)
{
  PetscFunctionBegin;
  PetscCall(MatBatchCheckIS(A, 1, &rows));
  PetscCall(MatBatchCheckIS(A, 1, &cols));
  MatBatchCallWithAIJ(A, B, MatCreateSubMatrix(B, rows, cols, reuse, sub));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatIncreaseOverlap_Batch(Mat A, PetscInt n, IS is[], PetscInt overlap)
{
  PetscFunctionBegin;
  PetscCall(MatBatchCheckIS(A, n, is));
  MatBatchCallWithAIJ(A, B, MatIncreaseOverlap(B, n, is, overlap));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatPermute_Batch(Mat A, IS rows, IS cols, Mat *M)
{
  PetscFunctionBegin;
  PetscCall(MatBatchCheckIS(A, 1, &rows));
  PetscCall(MatBatchCheckIS(A, 1, &cols));
  MatBatchCallWithAIJ(A, B, MatPermute(B, rows, cols, M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetRowMax_Batch(Mat A, Vec v, PetscInt where[])
{
  PetscFunctionBegin;
  MatBatchCallWithAIJ(A, B, MatGetRowMax(B, v, where));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetRowMin_Batch(Mat A, Vec v, PetscInt where[])
{
  PetscFunctionBegin;
  MatBatchCallWithAIJ(A, B, MatGetRowMin(B, v, where));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetRowMaxAbs_Batch(Mat A, Vec v, PetscInt where[])
{
  PetscFunctionBegin;
  MatBatchCallWithAIJ(A, B, MatGetRowMaxAbs(B, v, where));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetRowMinAbs_Batch(Mat A, Vec v, PetscInt where[])
{
  PetscFunctionBegin;
  MatBatchCallWithAIJ(A, B, MatGetRowMinAbs(B, v, where));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetColumnReductions_Batch(Mat A, PetscInt type, PetscReal *r)
{
  PetscFunctionBegin;
  MatBatchCallWithAIJ(A, B, MatGetColumnReductions(B, type, r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatFindZeroDiagonals_Batch(Mat A, IS *rows)
{
  PetscFunctionBegin;
  MatBatchCallWithAIJ(A, B, (*B->ops->findzerodiagonals)(B, rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatFindNonzeroRows_Batch(Mat A, IS *rows)
{
  PetscFunctionBegin;
  MatBatchCallWithAIJ(A, B, (*B->ops->findnonzerorows)(B, rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatIsSymmetric_Batch(Mat A, PetscReal tol, PetscBool *is)
{
  PetscFunctionBegin;
  MatBatchCallWithAIJ(A, B, MatIsSymmetric(B, tol, is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatIsHermitian_Batch(Mat A, PetscReal tol, PetscBool *is)
{
  PetscFunctionBegin;
  MatBatchCallWithAIJ(A, B, MatIsHermitian(B, tol, is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Only PCGAMG calls this operation. It would then create interpolations of the same type, so the operation returns an
   error */
#if PETSC_VERSION_LT(3, 19, 0)
static PetscErrorCode MatCreateGraph_Batch(Mat A, PetscBool symmetric, PetscBool scale, PetscReal filter, Mat *G)
#else
static PetscErrorCode MatCreateGraph_Batch(Mat A, PetscBool symmetric, PetscBool scale, PetscReal filter, PetscInt n,
                                           PetscInt index[], Mat *G)
#endif
{
  PetscFunctionBegin;
  SETERRQ(PetscObjectComm((PetscObject)A), PETSC_ERR_SUP,
          "PCGAMG creates interpolations of the type of the matrix, which cannot be " MATBATCH ": convert it to aij");
}

/* ---------------------------------------------------------------- products of matrices, factorizations */

/* Gets a function that an earlier phase has composed with obj */
#define MatBatchQueryFunction(obj, name, f)                                                                       \
  do {                                                                                                            \
    PetscCall(PetscObjectQueryFunction((PetscObject)(obj), name, f));                                             \
    PetscCheck(*(f), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Function %s is no longer composed with the matrix", name); \
  } while (0)

/*
  Products of matrices use AIJ's functions: while they run, copies in AIJ replace the factors that are batches. The
  copies and AIJ's functions are composed with the product, and its later numeric phases update the copies. A batch and
  a dense matrix are multiplied by PETSc itself, column by column, except for A B on the host.
*/
static PetscErrorCode MatBatchProductCall(Mat C, PetscErrorCode (*call)(Mat))
{
  static const char *const keys[] = {"MatBatchFactorA", "MatBatchFactorB", "MatBatchFactorC"};
  Mat batch[3], *const factor[] = {&C->product->A, &C->product->B, &C->product->C};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    PetscBool is = PETSC_FALSE;
    Mat       W, copy;

    batch[k] = *factor[k];
    if (batch[k]) PetscCall(PetscObjectTypeCompare((PetscObject)batch[k], MATBATCH, &is));
    if (!is) continue;
    PetscCall(MatBatchConvertToAIJ(batch[k], &W));
    PetscCall(PetscObjectQuery((PetscObject)C, keys[k], (PetscObject *)&copy));
    if (copy)
      PetscCall(MatCopy(W, copy, SAME_NONZERO_PATTERN));
    else
      PetscCall(PetscObjectCompose((PetscObject)C, keys[k], (PetscObject)W));
    *factor[k] = copy ? copy : W;
    PetscCall(MatDestroy(&W));
  }
  ierr = (*call)(C);
  for (int k = 0; k < 3; k++) *factor[k] = batch[k];
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_Batch(Mat C)
{
  PetscErrorCode (*numeric)(Mat);

  PetscFunctionBegin;
  MatBatchQueryFunction(C, "MatBatchProductNumeric_C", &numeric);
  PetscCall(MatBatchProductCall(C, numeric));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_Batch(Mat C)
{
  PetscErrorCode (*symbolic)(Mat);

  PetscFunctionBegin;
  MatBatchQueryFunction(C, "MatBatchProductSymbolic_C", &symbolic);
  PetscCall(MatBatchProductCall(C, symbolic));
  PetscCall(PetscObjectComposeFunction((PetscObject)C, "MatBatchProductNumeric_C", C->ops->productnumeric));
  C->ops->productnumeric = MatProductNumeric_Batch;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSetFromOptions_Batch(Mat C)
{
  const Mat            A     = C->product->A;
  const MatProductType type  = C->product->type;
  PetscBool            dense = PETSC_FALSE, bound;

  PetscFunctionBegin;
  if (type == MATPRODUCT_AB || type == MATPRODUCT_AtB)
    PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)C->product->B, &dense, MATSEQDENSE, MATMPIDENSE, ""));
  if (dense) { /* PETSc has found this function through A, which is a batch */
    PetscCall(MatBoundToCPU(A, &bound));
    if (type == MATPRODUCT_AB && (bound || !((Mat_Batch *)A->data)->device))
      C->ops->productsymbolic = MatProductSymbolic_BatchDense;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatBatchProductCall(C, MatProductSetFromOptions));
  PetscCall(PetscObjectComposeFunction((PetscObject)C, "MatBatchProductSymbolic_C", C->ops->productsymbolic));
  C->ops->productsymbolic = MatProductSymbolic_Batch;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factorizations use AIJ's symbolic and numeric functions. They are composed with the factor and called with the local
   part in place of the matrix */
static PetscErrorCode MatLUFactorNumeric_Batch(Mat F, Mat A, const MatFactorInfo *info)
{
  PetscErrorCode (*f)(Mat, Mat, const MatFactorInfo *);
  Mat B = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  MatBatchQueryFunction(F, "MatBatchNumeric_C", &f);
  PetscCall((*f)(F, B, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Called after AIJ's symbolic function, which sets the numeric function */
static PetscErrorCode MatBatchHookNumeric(Mat F)
{
  PetscErrorCode (**op)(Mat, Mat, const MatFactorInfo *) =
      F->factortype == MAT_FACTOR_CHOLESKY || F->factortype == MAT_FACTOR_ICC ? &F->ops->choleskyfactornumeric
                                                                              : &F->ops->lufactornumeric;

  PetscFunctionBegin;
  if (*op != MatLUFactorNumeric_Batch) PetscCall(PetscObjectComposeFunction((PetscObject)F, "MatBatchNumeric_C", *op));
  *op = MatLUFactorNumeric_Batch;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatLUFactorSymbolic_Batch(Mat F, Mat A, IS row, IS col, const MatFactorInfo *info)
{
  PetscErrorCode (*f)(Mat, Mat, IS, IS, const MatFactorInfo *);
  Mat B = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  MatBatchQueryFunction(F, "MatBatchSymbolic_C", &f);
  PetscCall((*f)(F, B, row, col, info));
  PetscCall(MatBatchHookNumeric(F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCholeskyFactorSymbolic_Batch(Mat F, Mat A, IS perm, const MatFactorInfo *info)
{
  PetscErrorCode (*f)(Mat, Mat, IS, const MatFactorInfo *);
  Mat B = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  MatBatchQueryFunction(F, "MatBatchSymbolic_C", &f);
  PetscCall((*f)(F, B, perm, info));
  PetscCall(MatBatchHookNumeric(F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchCreateFactor(Mat A, MatSolverType solver, MatFactorType type, Mat *F)
{
  Mat         B;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCheck(size == 1, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP,
             "Factors of a " MATBATCH
             " matrix on several processes: use -pc_type bjacobi, which is exact with -sub_pc_type lu");
  PetscCall(MatBatchGetAIJ(A, &B));
  PetscCall(MatGetFactor(B, solver, type, F));
  switch (type) {
  case MAT_FACTOR_LU:
    PetscCall(PetscObjectComposeFunction((PetscObject)*F, "MatBatchSymbolic_C", (*F)->ops->lufactorsymbolic));
    (*F)->ops->lufactorsymbolic = MatLUFactorSymbolic_Batch;
    break;
  case MAT_FACTOR_ILU:
    PetscCall(PetscObjectComposeFunction((PetscObject)*F, "MatBatchSymbolic_C", (*F)->ops->ilufactorsymbolic));
    (*F)->ops->ilufactorsymbolic = MatLUFactorSymbolic_Batch;
    break;
  case MAT_FACTOR_CHOLESKY:
    PetscCall(PetscObjectComposeFunction((PetscObject)*F, "MatBatchSymbolic_C", (*F)->ops->choleskyfactorsymbolic));
    (*F)->ops->choleskyfactorsymbolic = MatCholeskyFactorSymbolic_Batch;
    break;
  default:
    PetscCall(PetscObjectComposeFunction((PetscObject)*F, "MatBatchSymbolic_C", (*F)->ops->iccfactorsymbolic));
    (*F)->ops->iccfactorsymbolic = MatCholeskyFactorSymbolic_Batch;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetFactor_batch_petsc(Mat A, MatFactorType type, Mat *F)
{
  return MatBatchCreateFactor(A, MATSOLVERPETSC, type, F);
}

#if defined(PETSCSPMV_HAVE_CUDA)
static PetscErrorCode MatGetFactor_batch_cusparse(Mat A, MatFactorType type, Mat *F)
{
  PetscBool device;

  PetscFunctionBegin;
  PetscCall(SpMVUseDevice(PETSC_COMM_SELF, &device));
  PetscCall(MatBatchCreateFactor(A, device && !A->boundtocpu ? MATSOLVERCUSPARSE : MATSOLVERPETSC, type, F));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

PetscErrorCode MatBatchRegisterFactors(void)
{
  const MatFactorType types[] = {MAT_FACTOR_LU, MAT_FACTOR_ILU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ICC};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
#if defined(PETSCSPMV_HAVE_CUDA)
    PetscBool device;

    PetscCall(SpMVUseDevice(PETSC_COMM_SELF, &device));
    if (device) /* the first one registered is the default */
      PetscCall(MatSolverTypeRegister(MATSOLVERCUSPARSE, MATBATCH, types[k], MatGetFactor_batch_cusparse));
#endif
    PetscCall(MatSolverTypeRegister(MATSOLVERPETSC, MATBATCH, types[k], MatGetFactor_batch_petsc));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatBatchSetOps_AIJ(Mat A)
{
  PetscFunctionBegin;
  A->ops->getdiagonalblock            = MatGetDiagonalBlock_Batch;
  A->ops->invertblockdiagonal         = MatInvertBlockDiagonal_Batch;
  A->ops->invertvariableblockdiagonal = MatInvertVariableBlockDiagonal_Batch;
  A->ops->getrowij                    = MatGetRowIJ_Batch;
  A->ops->restorerowij                = MatRestoreRowIJ_Batch;
  A->ops->getcolumnij                 = MatGetColumnIJ_Batch;
  A->ops->restorecolumnij             = MatRestoreColumnIJ_Batch;
  A->ops->coloringpatch               = MatColoringPatch_Batch;
  A->ops->sor                         = MatSOR_Batch;
  A->ops->multdiagonalblock           = MatMultDiagonalBlock_Batch;
  A->ops->hasoperation                = MatHasOperation_Batch;
  A->ops->createsubmatrices           = MatCreateSubMatrices_Batch;
  A->ops->createsubmatricesmpi        = MatCreateSubMatricesMPI_Batch;
  A->ops->createsubmatrix             = MatCreateSubMatrix_Batch;
  A->ops->increaseoverlap             = MatIncreaseOverlap_Batch;
  A->ops->permute                     = MatPermute_Batch;
  A->ops->getrowmax                   = MatGetRowMax_Batch;
  A->ops->getrowmin                   = MatGetRowMin_Batch;
  A->ops->getrowmaxabs                = MatGetRowMaxAbs_Batch;
  A->ops->getrowminabs                = MatGetRowMinAbs_Batch;
  A->ops->getcolumnreductions         = MatGetColumnReductions_Batch;
  A->ops->findzerodiagonals           = MatFindZeroDiagonals_Batch;
  A->ops->findnonzerorows             = MatFindNonzeroRows_Batch;
  A->ops->issymmetric                 = MatIsSymmetric_Batch;
  A->ops->ishermitian                 = MatIsHermitian_Batch;
  A->ops->creategraph                 = MatCreateGraph_Batch;
#if defined(PETSCSPMV_HAVE_CUDA) && PETSC_VERSION_GE(3, 26, 0)
  if (((Mat_Batch *)A->data)->device) A->ops->getvblockdiagonal = MatGetVBlockDiagonal_Batch;
#endif
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatInodeAdjustForInodes_C", MatInodeAdjustForInodes_Batch));
  PetscCall(
      PetscObjectComposeFunction((PetscObject)A, "MatProductSetFromOptions_anytype_C", MatProductSetFromOptions_Batch));
  PetscFunctionReturn(PETSC_SUCCESS);
}
