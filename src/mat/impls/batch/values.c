/*
  Access to the values of a batch, and operations on them.
*/
#include "batch.h"

static PetscErrorCode MatBatchCheckProblem(const Mat_Batch *b, PetscInt problem)
{
  PetscFunctionBegin;
  PetscCheck(problem >= 0 && problem < b->p.problems, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "Problem %" PetscInt_FMT ": this process has %" PetscInt_FMT " problems, numbered from 0", problem,
             b->p.problems);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
   MatBatchSetValues - Replaces the values of all problems of a `MATBATCH` matrix, or of one; the pattern stays the same

   Logically Collective if `problem` is `MATBATCH_ALL`, otherwise Not Collective

   Input Parameters:
+  A       - the matrix, of type `MATBATCH`
.  problem - number of the problem on this process, from 0, or `MATBATCH_ALL`
-  values  - the values of the problem, row by row; with `MATBATCH_ALL` those of all problems, one after the other (of one problem if the values are shared)

   Level: beginner

   Notes: No new set-up is needed: the next product updates its layout with the new values. If problems were changed one
   by one, it updates only those. If the values are shared, setting the values of one problem ends the sharing.

   Preconditioners are set up again after values have changed. If only some processes change problems one by one and the
   set-up of the preconditioner is collective (for example `PCASM`), all processes must call `MatAssemblyBegin()` and
   `MatAssemblyEnd()` afterwards, so that all of them set it up again.

   Errors:
+  PETSC_ERR_ARG_WRONG      - the matrix is not of type `MATBATCH`
.  PETSC_ERR_ARG_WRONGSTATE - it has no problems yet
.  PETSC_ERR_ARG_OUTOFRANGE - this process has no problem with that number
-  PETSC_ERR_ARG_NULL       - the problem has entries, but `values` is `NULL`

.seealso: `MATBATCH`, `MATBATCH_ALL`, `MatCreateBatch()`, `MatBatchGetProblem()`
@*/
PetscErrorCode MatBatchSetValues(Mat A, PetscInt problem, const PetscScalar values[])
{
  Mat_Batch *b = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGet(A, &b));
  if (problem == MATBATCH_ALL) {
    PetscCheck(values || !BatchValues(&b->p), PETSC_COMM_SELF, PETSC_ERR_ARG_NULL,
               "The problems have entries, but the array of values is NULL");
    if (BatchValues(&b->p)) PetscCall(PetscArraymove(b->a, values, (size_t)BatchValues(&b->p)));
    PetscCall(MatBatchChanged(A, 0, b->p.problems));
  } else {
    PetscScalar *old = NULL;
    PetscInt     n, entries;

    PetscCall(MatBatchCheckProblem(b, problem));
    n       = b->first[problem + 1] - b->first[problem];
    entries = BatchOffsets(&b->p, problem)[n] - BatchOffsets(&b->p, problem)[0];
    PetscCheck(values || !entries, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL,
               "Problem %" PetscInt_FMT " has entries, but the array of values is NULL", problem);
    PetscCall(MatBatchUnshare(A, &old)); /* frees nothing yet: `values` may point into the old array */
    if (entries)
      PetscCall(PetscArraymove(b->a + BatchValueShift(&b->p, problem) + BatchOffsets(&b->p, problem)[0], values,
                               (size_t)entries));
    PetscCall(PetscFree(old));
    PetscCall(MatBatchChanged(A, problem, problem + 1));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
   MatBatchGetProblem - Gets the pattern and the values of one problem of a `MATBATCH` matrix

   Not Collective

   Input Parameters:
+  A       - the matrix, of type `MATBATCH`
-  problem - number of the problem on this process, from 0

   Output Parameters:
+  n          - number of rows and columns
.  rowoffsets - n + 1 offsets of its rows in `columns` and `values`; the first need not be 0
.  columns    - column indices, which start from 0 in the problem
-  values     - the values of the problem

   Level: intermediate

   Note:
   The arrays belong to the matrix: do not write to them or free them. Any of the output arguments may be `NULL`.

   Errors:
+  PETSC_ERR_ARG_WRONG      - the matrix is not of type `MATBATCH`
.  PETSC_ERR_ARG_WRONGSTATE - it has no problems yet
-  PETSC_ERR_ARG_OUTOFRANGE - this process has no problem with that number

.seealso: `MATBATCH`, `MatBatchSetValues()`, `MatBatchGetInfo()`
@*/
PetscErrorCode MatBatchGetProblem(Mat A, PetscInt problem, PetscInt *n, const PetscInt *rowoffsets[],
                                  const PetscInt *columns[], const PetscScalar *values[])
{
  Mat_Batch *b = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGet(A, &b));
  PetscCall(MatBatchCheckProblem(b, problem));
  if (n) *n = b->first[problem + 1] - b->first[problem];
  if (rowoffsets) *rowoffsets = BatchOffsets(&b->p, problem);
  if (columns) *columns = b->j;
  if (values) *values = b->a + BatchValueShift(&b->p, problem);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- access by row */

/* The problem of a local row */
static PetscInt BatchProblemOf(const Mat_Batch *b, PetscInt row)
{
  PetscInt lo = 0, hi = b->p.problems;

  while (hi - lo > 1) {
    const PetscInt mid = lo + (hi - lo) / 2;

    if (b->first[mid] <= row)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

static PetscErrorCode MatGetRow_Batch(Mat A, PetscInt row, PetscInt *n, PetscInt *cols[], PetscScalar *vals[])
{
  Mat_Batch      *b = (Mat_Batch *)A->data;
  PetscInt        r = row - A->rmap->rstart, p, q, len;
  const PetscInt *i;

  PetscFunctionBegin;
  PetscCheck(r >= 0 && r < A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "Row %" PetscInt_FMT " is not local: [%" PetscInt_FMT ", %" PetscInt_FMT ")", row, A->rmap->rstart,
             A->rmap->rend);
  p   = BatchProblemOf(b, r);
  i   = BatchOffsets(&b->p, p);
  q   = r - b->first[p];
  len = i[q + 1] - i[q];
  if (n) *n = len;
  if (vals) *vals = b->a + BatchValueShift(&b->p, p) + i[q];
  if (cols) {
    if (!b->columns) {
      PetscInt longest = 0;

      for (PetscInt s = 0; s < BatchPatternRows(&b->p); s++) longest = PetscMax(longest, b->i[s + 1] - b->i[s]);
      PetscCall(PetscMalloc1(longest, &b->columns));
    }
    for (PetscInt k = 0; k < len; k++) b->columns[k] = A->cmap->rstart + b->first[p] + b->j[i[q] + k];
    *cols = b->columns;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatRestoreRow_Batch(Mat A, PetscInt row, PetscInt *n, PetscInt *cols[], PetscScalar *vals[])
{
  PetscFunctionBegin;
  if (cols) *cols = NULL;
  if (vals) *vals = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The value at a row and column of a problem, or NULL if there is no entry */
static PetscScalar *BatchEntry(Mat_Batch *b, PetscInt p, PetscInt row, PetscInt col)
{
  const PetscInt *i  = BatchOffsets(&b->p, p);
  PetscInt        lo = i[row], hi = i[row + 1];

  while (lo < hi) {
    const PetscInt mid = lo + (hi - lo) / 2;

    if (b->j[mid] < col)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < i[row + 1] && b->j[lo] == col ? b->a + BatchValueShift(&b->p, p) + lo : NULL;
}

static PetscErrorCode MatGetValues_Batch(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[],
                                         PetscScalar v[])
{
  Mat_Batch *b = (Mat_Batch *)A->data;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < m; r++) {
    PetscInt p;

    if (rows[r] < 0) continue;
    PetscCheck(rows[r] >= A->rmap->rstart && rows[r] < A->rmap->rend, PETSC_COMM_SELF, PETSC_ERR_SUP,
               "Only local values currently supported, not row %" PetscInt_FMT, rows[r]);
    p = BatchProblemOf(b, rows[r] - A->rmap->rstart);
    for (PetscInt c = 0; c < n; c++) {
      const PetscScalar *entry;

      if (cols[c] < 0) continue;
      PetscCheck(cols[c] < A->cmap->N, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
                 "Column %" PetscInt_FMT " of %" PetscInt_FMT, cols[c], A->cmap->N);
      entry        = BatchEntry(b, p, rows[r] - A->rmap->rstart - b->first[p], cols[c] - A->cmap->rstart - b->first[p]);
      v[r * n + c] = entry ? *entry : 0.0;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc marks the matrix as unassembled before it calls these operations: mark it as assembled again */
static PetscErrorCode MatBatchRefuseValues(Mat A)
{
  Mat_Batch *b = NULL;

  PetscFunctionBegin;
  A->insertmode = NOT_SET_VALUES;
  PetscCall(MatBatchGet(A, &b));
  A->assembled = PETSC_TRUE;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP,
          "Entries of a " MATBATCH
          " matrix cannot be set one by one: use MatBatchSetValues(), or convert the matrix to aij");
}

static PetscErrorCode MatSetValues_Batch(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[],
                                         const PetscScalar v[], InsertMode mode)
{
  return MatBatchRefuseValues(A);
}

static PetscErrorCode MatSetValuesRow_Batch(Mat A, PetscInt row, const PetscScalar v[])
{
  return MatBatchRefuseValues(A);
}

/* ---------------------------------------------------------------- operations on one matrix */

/* Executes `body` for each entry, with its local row and column and a pointer to its value. For a shared value `body`
   is executed once for each problem */
#define BatchForEntries(b, row, column, value, body)                                                        \
  do {                                                                                                      \
    for (PetscInt p_ = 0; p_ < (b)->p.problems; p_++) {                                                     \
      const PetscInt    *i_ = BatchOffsets(&(b)->p, p_), f_ = (b)->first[p_], n_ = (b)->first[p_ + 1] - f_; \
      PetscScalar *const a_ = (b)->a + BatchValueShift(&(b)->p, p_);                                        \
      for (PetscInt r_ = 0; r_ < n_; r_++)                                                                  \
        for (PetscInt k_ = i_[r_]; k_ < i_[r_ + 1]; k_++) {                                                 \
          const PetscInt     row = f_ + r_, column = f_ + (b)->j[k_];                                       \
          PetscScalar *const value = a_ + k_;                                                               \
          body                                                                                              \
        }                                                                                                   \
    }                                                                                                       \
  } while (0)

static PetscErrorCode MatGetDiagonal_Batch(Mat A, Vec v)
{
  Mat_Batch   *b = (Mat_Batch *)A->data;
  PetscScalar *d;

  PetscFunctionBegin;
  PetscCall(MatBatchCheckVec(A, v));
  PetscCall(VecGetArrayWrite(v, &d));
  for (PetscInt p = 0; p < b->p.problems; p++) {
    for (PetscInt r = b->first[p]; r < b->first[p + 1]; r++) {
      const PetscScalar *entry = BatchEntry(b, p, r - b->first[p], r - b->first[p]);

      d[r] = entry ? *entry : 0.0;
    }
  }
  PetscCall(VecRestoreArrayWrite(v, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatScale_Batch(Mat A, PetscScalar alpha)
{
  Mat_Batch *b = (Mat_Batch *)A->data;

  PetscFunctionBegin;
  for (PetscInt64 k = 0; k < BatchValues(&b->p); k++) b->a[k] *= alpha;
  PetscCall(MatBatchChanged(A, 0, b->p.problems));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroEntries_Batch(Mat A)
{
  Mat_Batch *b = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGet(A, &b)); /* an optimized build of PETSc does not check that the matrix has been set up */
  PetscCall(PetscArrayzero(b->a, (size_t)BatchValues(&b->p)));
  PetscCall(MatBatchChanged(A, 0, b->p.problems));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatConjugate_Batch(Mat A)
{
  Mat_Batch *b = (Mat_Batch *)A->data;

  PetscFunctionBegin;
  for (PetscInt64 k = 0; k < BatchValues(&b->p); k++) b->a[k] = PetscConj(b->a[k]);
  PetscCall(MatBatchChanged(A, 0, b->p.problems));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDiagonalScale_Batch(Mat A, Vec ll, Vec rr)
{
  Mat_Batch         *b = (Mat_Batch *)A->data;
  const PetscScalar *l = NULL, *r = NULL;
  PetscScalar       *old = NULL;

  PetscFunctionBegin;
  if (ll) PetscCall(MatBatchCheckVec(A, ll));
  if (rr) PetscCall(MatBatchCheckVec(A, rr));
  PetscCall(MatBatchUnshare(A, &old));
  PetscCall(PetscFree(old));
  if (ll) PetscCall(VecGetArrayRead(ll, &l));
  if (rr) PetscCall(VecGetArrayRead(rr, &r));
  BatchForEntries(b, row, column, value, {
    if (l) *value *= l[row];
    if (r) *value *= r[column];
  });
  if (ll) PetscCall(VecRestoreArrayRead(ll, &l));
  if (rr) PetscCall(VecRestoreArrayRead(rr, &r));
  PetscCall(MatBatchChanged(A, 0, b->p.problems));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern does not change, so a diagonal can be set only if all its entries exist */
static PetscErrorCode BatchCheckDiagonal(Mat_Batch *b)
{
  PetscFunctionBegin;
  for (PetscInt p = 0; p < BatchPatterns(&b->p); p++) {
    for (PetscInt r = 0; r < b->first[p + 1] - b->first[p]; r++)
      PetscCheck(BatchEntry(b, p, r, r), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE,
                 "Problem %" PetscInt_FMT " has no diagonal entry in row %" PetscInt_FMT
                 ", and the pattern of a " MATBATCH " matrix does not change",
                 p, r);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchSetDiagonal(Mat A, const PetscScalar d[], PetscScalar alpha, InsertMode mode)
{
  Mat_Batch   *b   = (Mat_Batch *)A->data;
  PetscScalar *old = NULL;

  PetscFunctionBegin;
  PetscCall(SpMVAgree(PetscObjectComm((PetscObject)A), BatchCheckDiagonal(b)));
  if (d) PetscCall(MatBatchUnshare(A, &old));
  PetscCall(PetscFree(old));
  for (PetscInt p = 0; p < (b->p.sharing == BATCH_SHARE_VALUES ? PetscMin(1, b->p.problems) : b->p.problems); p++) {
    for (PetscInt r = 0; r < b->first[p + 1] - b->first[p]; r++) {
      PetscScalar *entry = BatchEntry(b, p, r, r);

      *entry = (mode == ADD_VALUES ? *entry : 0.0) + (d ? d[b->first[p] + r] : alpha);
    }
  }
  PetscCall(MatBatchChanged(A, 0, b->p.problems));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatShift_Batch(Mat A, PetscScalar alpha)
{
  return MatBatchSetDiagonal(A, NULL, alpha, ADD_VALUES);
}

static PetscErrorCode MatDiagonalSet_Batch(Mat A, Vec dd, InsertMode mode)
{
  const PetscScalar *d;
  Mat_Batch         *b = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGet(A, &b));
  PetscCall(MatBatchCheckVec(A, dd));
  PetscCall(VecGetArrayRead(dd, &d));
  PetscCall(MatBatchSetDiagonal(A, d, 0.0, mode));
  PetscCall(VecRestoreArrayRead(dd, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatNorm_Batch(Mat A, NormType type, PetscReal *norm)
{
  Mat_Batch     *b   = (Mat_Batch *)A->data;
  PetscReal      sum = 0.0, *sums = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCheck(type == NORM_FROBENIUS || type == NORM_1 || type == NORM_INFINITY, PetscObjectComm((PetscObject)A),
             PETSC_ERR_SUP, "No support for this norm");
  ierr = PetscCalloc1(A->rmap->n, &sums);
  ierr = SpMVAgree(PetscObjectComm((PetscObject)A), ierr);
  if (ierr) PetscCall(PetscFree(sums));
  PetscCall(ierr);
  BatchForEntries(b, row, column, value, {
    if (type == NORM_FROBENIUS)
      sum += PetscRealPart(PetscConj(*value) * *value);
    else
      sums[type == NORM_1 ? column : row] += PetscAbsScalar(*value);
  });
  for (PetscInt r = 0; r < A->rmap->n; r++) sum = PetscMax(sum, sums[r]);
  PetscCallMPI(MPI_Allreduce(&sum, norm, 1, MPIU_REAL, type == NORM_FROBENIUS ? MPIU_SUM : MPIU_MAX,
                             PetscObjectComm((PetscObject)A)));
  if (type == NORM_FROBENIUS) *norm = PetscSqrtReal(*norm);
  PetscCall(PetscFree(sums));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- operations on two matrices */

/* Whether A and B have the same problems with the same patterns on this process. The patterns may be shared in one
   matrix and not in the other */
static PetscErrorCode MatBatchSamePattern(Mat A, Mat B, PetscBool *same)
{
  Mat_Batch *a = (Mat_Batch *)A->data, *b = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGet(B, &b));
  *same = (PetscBool)(a->p.problems == b->p.problems);
  if (*same) PetscCall(PetscArraycmp(a->first, b->first, a->p.problems + 1, same));
  for (PetscInt p = 0; p < PetscMax(BatchPatterns(&a->p), BatchPatterns(&b->p)) && *same; p++) {
    const PetscInt *i = BatchOffsets(&a->p, p), *k = BatchOffsets(&b->p, p), n = a->first[p + 1] - a->first[p];

    for (PetscInt r = 0; r < n && *same; r++) *same = (PetscBool)(i[r + 1] - i[r] == k[r + 1] - k[r]);
    if (*same) PetscCall(PetscArraycmp(a->j + i[0], b->j + k[0], (size_t)(i[n] - i[0]), same));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchCheckPattern(Mat A, Mat B)
{
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(MatBatchSamePattern(A, B, &same));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The problems of the two matrices must have the same pattern");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Prepares B for values of A: checks that the patterns are the same, and makes B share its values only if A does.
  *copies is the number of times that A's values must be repeated in B. Values that are not shared are stored in the
  same order whether or not the pattern is shared.
*/
static PetscErrorCode MatBatchMatchSharing(Mat A, Mat B, PetscInt *copies)
{
  Mat_Batch   *a   = (Mat_Batch *)A->data, *b;
  PetscScalar *old = NULL;

  PetscFunctionBegin;
  PetscCall(SpMVAgree(PetscObjectComm((PetscObject)A), MatBatchCheckPattern(A, B)));
  if (a->p.sharing != BATCH_SHARE_VALUES) PetscCall(MatBatchUnshare(B, &old));
  PetscCall(PetscFree(old));
  b       = (Mat_Batch *)B->data;
  *copies = a->p.sharing == BATCH_SHARE_VALUES && b->p.sharing != BATCH_SHARE_VALUES ? b->p.problems : 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCopy_Batch(Mat A, Mat B, MatStructure str)
{
  Mat_Batch *a = (Mat_Batch *)A->data, *b;
  PetscInt   copies;
  PetscBool  is;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATBATCH, &is));
  if (!is) {
    Mat W;

    PetscCall(MatBatchConvertToAIJ(A, &W));
    PetscCall(MatCopy(W, B, str));
    PetscCall(MatDestroy(&W));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatBatchMatchSharing(A, B, &copies));
  b = (Mat_Batch *)B->data;
  for (PetscInt p = 0; p < copies; p++)
    PetscCall(PetscArraycpy(b->a + p * BatchValues(&a->p), a->a, (size_t)BatchValues(&a->p)));
  PetscCall(MatBatchChanged(B, 0, b->p.problems));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAXPY_Batch(Mat Y, PetscScalar alpha, Mat X, MatStructure str)
{
  Mat_Batch *x, *y = (Mat_Batch *)Y->data;
  PetscInt   copies;

  PetscFunctionBegin;
  PetscCall(MatBatchMatchSharing(X, Y, &copies));
  x = (Mat_Batch *)X->data;
  for (PetscInt p = 0; p < copies; p++) {
    for (PetscInt64 k = 0, values = BatchValues(&x->p); k < values; k++) y->a[p * values + k] += alpha * x->a[k];
  }
  PetscCall(MatBatchChanged(Y, 0, y->p.problems));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDuplicate_Batch(Mat A, MatDuplicateOption op, Mat *B)
{
  Mat_Batch   *a    = (Mat_Batch *)A->data;
  const size_t rows = (size_t)BatchPatternRows(&a->p), entries = (size_t)BatchPatternEntries(&a->p),
               values = (size_t)BatchValues(&a->p);
  PetscInt      *i = NULL, *j = NULL;
  PetscScalar   *v    = NULL;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(PetscMalloc1(rows + 1, &i));
  SpMVCall(PetscMalloc1(entries, &j));
  SpMVCall(PetscMalloc1(values, &v));
  PetscCall(PetscArraycpy(i, a->i, rows + 1));
  PetscCall(PetscArraycpy(j, a->j, entries));
  if (op == MAT_COPY_VALUES)
    PetscCall(PetscArraycpy(v, a->a, values));
  else
    PetscCall(PetscArrayzero(v, values));
done:
  PetscCall(MatBatchCreateLike(A, ierr, i, j, v, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTranspose_Batch(Mat A, MatReuse reuse, Mat *B)
{
  Mat_Batch     *a       = (Mat_Batch *)A->data;
  const PetscInt entries = BatchPatternEntries(&a->p);
  PetscInt      *i = NULL, *j = NULL, *value_index = NULL;
  PetscScalar   *v = NULL;
  Mat            C;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(BatchTranspose(&a->p, &i, &j, &value_index));
  SpMVCall(PetscMalloc1((size_t)BatchValues(&a->p), &v));
  for (PetscInt p = 0; p < (a->p.sharing == BATCH_SHARE_PATTERN ? a->p.problems : 1); p++) {
    for (PetscInt k = 0; k < entries; k++)
      v[(PetscInt64)p * entries + k] = a->a[(PetscInt64)p * entries + value_index[k]];
  }
done:
  PetscCall(PetscFree(value_index));
  PetscCall(MatBatchCreateLike(A, ierr, i, j, v, &C));
  PetscCall(MatBatchReturn(A, C, reuse, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatEqual_Batch(Mat A, Mat B, PetscBool *equal)
{
  Mat_Batch *a = (Mat_Batch *)A->data, *b = (Mat_Batch *)B->data;
  int        mine, all;

  PetscFunctionBegin;
  PetscCall(MatBatchSamePattern(A, B, equal));
  for (PetscInt p = 0; p < a->p.problems && *equal; p++) {
    const PetscInt *i = BatchOffsets(&a->p, p), *k = BatchOffsets(&b->p, p), n = a->first[p + 1] - a->first[p];

    PetscCall(PetscArraycmp(a->a + BatchValueShift(&a->p, p) + i[0], b->a + BatchValueShift(&b->p, p) + k[0],
                            (size_t)(i[n] - i[0]), equal));
  }
  mine = *equal;
  PetscCallMPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  *equal = (PetscBool)all;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatBatchSetOps_Values(Mat A)
{
  PetscFunctionBegin;
  A->ops->getrow        = MatGetRow_Batch;
  A->ops->restorerow    = MatRestoreRow_Batch;
  A->ops->getvalues     = MatGetValues_Batch;
  A->ops->setvalues     = MatSetValues_Batch;
  A->ops->setvaluesrow  = MatSetValuesRow_Batch;
  A->ops->getdiagonal   = MatGetDiagonal_Batch;
  A->ops->scale         = MatScale_Batch;
  A->ops->diagonalscale = MatDiagonalScale_Batch;
  A->ops->shift         = MatShift_Batch;
  A->ops->diagonalset   = MatDiagonalSet_Batch;
  A->ops->zeroentries   = MatZeroEntries_Batch;
  A->ops->conjugate     = MatConjugate_Batch;
  A->ops->norm          = MatNorm_Batch;
  A->ops->copy          = MatCopy_Batch;
  A->ops->axpy          = MatAXPY_Batch;
  A->ops->duplicate     = MatDuplicate_Batch;
  A->ops->transpose     = MatTranspose_Batch;
  A->ops->equal         = MatEqual_Batch;
  PetscFunctionReturn(PETSC_SUCCESS);
}
