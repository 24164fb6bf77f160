/*
  Batches from arrays, from other matrices, and from files.
*/
#include "batch.h"

static PetscErrorCode MatBatchSetArrays(Mat A, PetscInt problems, PetscInt *first, PetscInt *i, PetscInt *j,
                                        PetscScalar *a, MatBatchSharing sharing, PetscBool own)
{
  Mat_Batch *b = (Mat_Batch *)A->data;
  PetscInt  *sizes, nsizes = 0;

  PetscFunctionBegin;
  b->first       = first;
  b->i           = i;
  b->j           = j;
  b->a           = a;
  b->own_pattern = b->own_values = own;
  b->p.problems                  = problems;
  b->p.first                     = first;
  b->p.i                         = i;
  b->p.j                         = j;
  b->p.sharing                   = (BatchSharing)sharing;
  A->preallocated                = PETSC_TRUE;
  A->assembled                   = PETSC_TRUE;
  /* The block sizes are used by PCVPBJACOBI, and for converting back from AIJ */
  PetscCall(PetscMalloc1(problems, &sizes));
  for (PetscInt p = 0; p < problems; p++) {
    const PetscInt n = first[p + 1] - first[p];

    if (n) sizes[nsizes++] = n;
  }
  PetscCall(MatSetVariableBlockSizes(A, nsizes, sizes));
  PetscCall(PetscFree(sizes));
  /* MatView() expects bsizes on all ranks or on none (PETSc 3.21 to 3.26) */
  if (!A->bsizes) PetscCall(PetscMalloc1(1, &A->bsizes));
  PetscCall(MatBatchForget(b));
  PetscCall(PetscObjectStateGet((PetscObject)A, &b->state));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchCheckRows(PetscInt64 rows)
{
  PetscFunctionBegin;
  PetscCheck(rows <= SPMV_MAX_SIZE, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "%" PetscInt64_FMT " rows of all problems on this process: at most %d fit into a " MATBATCH
             " matrix, use more processes",
             rows, SPMV_MAX_SIZE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Creates a matrix of type batch with its PetscLayouts set up, but without problems */
static PetscErrorCode MatBatchCreateEmpty(MPI_Comm comm, PetscInt rows, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, rows, rows, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(*A, MATBATCH));
  PetscCall(PetscLayoutSetUp((*A)->rmap));
  PetscCall(PetscLayoutSetUp((*A)->cmap));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Collective: creates a matrix from the arrays. The matrix owns `first` and, if `own`, also i, j and a. If ierr is an
  error on any rank, or an error occurs here, no matrix is created, and the caller still owns all arrays.
*/
static PetscErrorCode MatBatchCreateWithArrays(MPI_Comm comm, PetscErrorCode ierr, PetscInt problems, PetscInt *first,
                                               PetscInt *i, PetscInt *j, PetscScalar *a, MatBatchSharing sharing,
                                               PetscBool own, Mat *A)
{
  Mat B = NULL;

  PetscFunctionBegin;
  PetscCall(SpMVAgree(comm, ierr));
  ierr = MatBatchCreateEmpty(comm, first[problems], &B);
  if (!ierr) ierr = SpMVAgree(comm, MatBatchSetArrays(B, problems, first, i, j, a, sharing, own));
  if (ierr) {
    if (B && B->data) {
      Mat_Batch *b = (Mat_Batch *)B->data;

      b->first       = NULL;
      b->own_pattern = b->own_values = PETSC_FALSE;
      b->p.problems                  = 0;
    }
    PetscCall(MatDestroy(&B));
  }
  PetscCall(ierr);
  *A = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks that i and j are a valid pattern of problem p, which has n rows */
static PetscErrorCode BatchCheckProblem(PetscInt p, PetscInt n, const PetscInt i[], const PetscInt j[])
{
  PetscFunctionBegin;
  for (PetscInt r = 0; r < n; r++) {
    PetscCheck(i[r + 1] >= i[r], PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
               "Problem %" PetscInt_FMT ", row %" PetscInt_FMT ": row offsets decrease from %" PetscInt_FMT
               " to %" PetscInt_FMT,
               p, r, i[r], i[r + 1]);
    PetscCheck(j || i[r + 1] == i[r], PETSC_COMM_SELF, PETSC_ERR_ARG_NULL,
               "Problem %" PetscInt_FMT " has entries, but the array of columns is NULL", p);
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      PetscCheck(j[k] >= 0 && j[k] < n, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
                 "Problem %" PetscInt_FMT ", row %" PetscInt_FMT ": column %" PetscInt_FMT
                 " is not within the problem, which has %" PetscInt_FMT
                 " columns (column indices start from 0 in each problem)",
                 p, r, j[k], n);
      PetscCheck(k == i[r] || j[k] > j[k - 1], PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG,
                 "Problem %" PetscInt_FMT ", row %" PetscInt_FMT ": columns must ascend, but %" PetscInt_FMT
                 " follows %" PetscInt_FMT,
                 p, r, j[k], j[k - 1]);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BatchCheckCount(PetscInt problems)
{
  PetscFunctionBegin;
  PetscCheck(problems >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "Number of problems %" PetscInt_FMT " is negative", problems);
  PetscCheck(problems <= SPMV_MAX_SIZE, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "%" PetscInt_FMT " problems on this process: at most %d fit into a " MATBATCH
             " matrix, use more processes",
             problems, SPMV_MAX_SIZE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks the sizes and computes the first row of each problem. The caller frees the array, even after an error */
static PetscErrorCode BatchGetFirst(PetscInt problems, const PetscInt sizes[], MatBatchSharing sharing,
                                    PetscInt **first)
{
  PetscInt64 rows = 0;

  PetscFunctionBegin;
  PetscCheck(sizes || !problems, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL,
             "There are problems, but the array of sizes is NULL");
  for (PetscInt p = 0; p < (sharing ? PetscMin(1, problems) : problems); p++) {
    PetscCheck(sizes[p] >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
               "Problem %" PetscInt_FMT ": its size %" PetscInt_FMT " is negative", p, sizes[p]);
    PetscCall(MatBatchCheckRows(sizes[p]));
    rows += sharing ? (PetscInt64)sizes[p] * problems : (PetscInt64)sizes[p];
    PetscCall(MatBatchCheckRows(rows));
  }
  PetscCall(PetscMalloc1(problems + 1, first));
  (*first)[0] = 0;
  for (PetscInt p = 0; p < problems; p++) (*first)[p + 1] = (*first)[p] + sizes[sharing ? 0 : p];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks the arguments of MatCreateBatch(); if `copy`, i, j and a become copies. The caller frees `first` and the
   copies, even after an error */
static PetscErrorCode BatchCheckArguments(PetscInt problems, const PetscInt sizes[], MatBatchSharing sharing,
                                          PetscCopyMode mode, PetscBool copy, PetscInt **first, PetscInt **i,
                                          PetscInt **j, PetscScalar **a)
{
  const PetscInt    *rowoffsets = *i, *columns = *j, patterns = sharing ? PetscMin(1, problems) : problems;
  const PetscScalar *values = *a;
  size_t             rows, entries, count;

  PetscFunctionBegin;
  if (copy) {
    *i = *j = NULL;
    *a      = NULL;
  }
  PetscCheck(mode == PETSC_COPY_VALUES || mode == PETSC_OWN_POINTER || mode == PETSC_USE_POINTER, PETSC_COMM_SELF,
             PETSC_ERR_ARG_OUTOFRANGE, "%d is not a PetscCopyMode", (int)mode);
  PetscCheck(sharing >= MATBATCH_SHARE_NONE && sharing <= MATBATCH_SHARE_VALUES, PETSC_COMM_SELF,
             PETSC_ERR_ARG_OUTOFRANGE, "%d is not a MatBatchSharing", (int)sharing);
  PetscCall(BatchCheckCount(problems));
  PetscCall(BatchGetFirst(problems, sizes, sharing, first));
  PetscCheck(rowoffsets, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL,
             "There are problems, but the array of row offsets is NULL");
  PetscCheck(rowoffsets[0] == 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "Row offsets must begin with 0, not %" PetscInt_FMT, rowoffsets[0]);
  for (PetscInt p = 0; p < patterns; p++)
    PetscCall(BatchCheckProblem(p, (*first)[p + 1] - (*first)[p], rowoffsets + (*first)[p], columns));
  rows    = (size_t)(*first)[patterns];
  entries = (size_t)rowoffsets[rows];
  count   = entries * (size_t)(sharing == MATBATCH_SHARE_PATTERN ? problems : 1);
  PetscCheck(values || !count, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL,
             "The problems have entries, but the array of values is NULL");
  if (copy) {
    PetscCall(PetscMalloc1(rows + 1, i));
    PetscCall(PetscMalloc1(entries, j));
    PetscCall(PetscMalloc1(count, a));
    PetscCall(PetscArraycpy(*i, rowoffsets, rows + 1));
    PetscCall(PetscArraycpy(*j, columns, entries));
    PetscCall(PetscArraycpy(*a, values, count));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
   MatCreateBatch - Creates a `MATBATCH` matrix, the block-diagonal matrix of many small square problems, from the CSR
   arrays of the problems

   Collective

   Input Parameters:
+  comm       - the communicator; each process provides its own problems and owns their rows
.  nproblems  - number of problems on this process; if it is 0, the arrays may be `NULL`
.  sizes      - number of rows (and columns) of each problem, may be 0. If the pattern is shared, only `sizes[0]` is read
.  rowoffsets - offset of each row in `columns` and `values`, ending with the number of entries; offsets continue from problem to problem. If the
                pattern is shared, the offsets of one problem
.  columns    - column indices, which start from 0 in each problem and ascend in each row
.  values     - the values of all problems, one problem after the other; with `MATBATCH_SHARE_VALUES` the values of one problem
.  sharing    - what the problems have in common
-  mode       - `PETSC_COPY_VALUES`, `PETSC_OWN_POINTER` (the arrays were obtained with `PetscMalloc()`; the matrix frees them) or `PETSC_USE_POINTER` (used in
                place)

   Output Parameter:
.  A - the matrix, assembled, of type `MATBATCH`

   Level: beginner

   Notes:
   A vector of the matrix holds the vectors of the problems, one after the other.

   If the arguments of one process are invalid, the call returns an error on all processes. The caller then still owns
   the arrays, even with `PETSC_OWN_POINTER`.

   Use `MatBatchSetValues()` to change values. With `PETSC_USE_POINTER` the caller may also change the array of values
   and then call `MatAssemblyBegin()` and `MatAssemblyEnd()` (or `PetscObjectStateIncrease()`). Operations such as
   `MatScale()` write to that array.

   Errors:
   The message names the problem and the row.
+  PETSC_ERR_ARG_NULL       - an array that is needed is `NULL`
.  PETSC_ERR_ARG_OUTOFRANGE - a negative number or size, row offsets that do not begin with 0 or that decrease, a column outside of its problem, more rows on a
                              process than a matrix of this type can have, or an unknown `sharing` or `mode`
-  PETSC_ERR_ARG_WRONG      - the columns of a row do not ascend

.seealso: `MATBATCH`, `MatCreateBatchFromMats()`, `MatBatchSetValues()`, `MatBatchSharing`, `PetscCopyMode`
@*/
PetscErrorCode MatCreateBatch(MPI_Comm comm, PetscInt nproblems, const PetscInt sizes[], const PetscInt rowoffsets[],
                              const PetscInt columns[], PetscScalar values[], MatBatchSharing sharing,
                              PetscCopyMode mode, Mat *A)
{
  /* without problems the arrays may be NULL */
  const PetscBool none = (PetscBool)!nproblems, copy = (PetscBool)(none || mode == PETSC_COPY_VALUES);
  PetscInt        zero = 0, *first = NULL, *i = none ? &zero : (PetscInt *)rowoffsets, *j = (PetscInt *)columns;
  PetscScalar    *a = values;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscAssertPointer(A, 9);
  ierr = BatchCheckArguments(nproblems, sizes, sharing, mode, copy, &first, &i, &j, &a);
  ierr = MatBatchCreateWithArrays(comm, ierr, nproblems, first, i, j, a, none ? MATBATCH_SHARE_NONE : sharing,
                                  (PetscBool)(copy || mode == PETSC_OWN_POINTER), A);
  if (ierr) {
    PetscCall(PetscFree(first));
    if (copy) {
      PetscCall(PetscFree(i));
      PetscCall(PetscFree(j));
      PetscCall(PetscFree(a));
    }
  }
  PetscCall(ierr);
  if (none && mode == PETSC_OWN_POINTER) {
    PetscCall(PetscFree(rowoffsets));
    PetscCall(PetscFree(columns));
    PetscCall(PetscFree(values));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CSR arrays that grow as rows are added */
typedef struct {
  /* rows added so far, rows in all, entries so far, and the allocated length of j and a */
  PetscInt     row, rows, entries, capacity;
  PetscInt    *i, *j;
  PetscScalar *a;
} Rows;

static PetscErrorCode RowsCreate(PetscInt64 m, Rows *R)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(R, sizeof(*R)));
  PetscCall(MatBatchCheckRows(m));
  R->rows = (PetscInt)m;
  PetscCall(PetscMalloc1((size_t)m + 1, &R->i));
  R->i[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RowsReserve(Rows *R, PetscInt64 entries)
{
  PetscFunctionBegin;
  PetscCheck(entries <= PETSC_MAX_INT, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "%" PetscInt64_FMT
             " nonzeros on this process do not fit in a PetscInt: use more processes, or a PETSc with 64-bit indices",
             entries);
  if (entries > R->capacity) {
    const PetscInt capacity =
        (PetscInt)PetscMin((PetscInt64)PETSC_MAX_INT, PetscMax(entries, (PetscInt64)R->capacity + R->capacity / 2));

    PetscCall(PetscRealloc((size_t)capacity * sizeof(*R->j), &R->j));
    PetscCall(PetscRealloc((size_t)capacity * sizeof(*R->a), &R->a));
    R->capacity = capacity;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RowsFree(Rows *R)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(R->i));
  PetscCall(PetscFree(R->j));
  PetscCall(PetscFree(R->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: creates a matrix, which owns R and `first`; after an error they are freed. If all problems have the same
   pattern, it is stored once */
static PetscErrorCode MatBatchCreateFromRows(MPI_Comm comm, PetscErrorCode ierr, PetscInt problems, PetscInt *first,
                                             Rows *R, Mat *A)
{
  PetscBool shared = PETSC_FALSE;

  PetscFunctionBegin;
  if (!ierr) {
    const PetscInt n = problems ? first[1] : 0, entries = problems ? R->i[n] : 0;

    shared = (PetscBool)(problems > 1 && entries);
    for (PetscInt p = 1; p < problems && shared; p++) {
      shared = (PetscBool)(first[p + 1] - first[p] == n && R->i[first[p + 1]] - R->i[first[p]] == entries);
      for (PetscInt r = 0; r < n && shared; r++) shared = (PetscBool)(R->i[first[p] + r] - R->i[first[p]] == R->i[r]);
      if (shared) PetscCall(PetscArraycmp(R->j, R->j + R->i[first[p]], entries, &shared));
    }
    if (shared) ierr = PetscRealloc(((size_t)n + 1) * sizeof(*R->i), &R->i);
    if (shared && !ierr) ierr = PetscRealloc((size_t)entries * sizeof(*R->j), &R->j);
  }
  ierr = MatBatchCreateWithArrays(comm, ierr, problems, first, R->i, R->j, R->a,
                                  shared ? MATBATCH_SHARE_PATTERN : MATBATCH_SHARE_NONE, PETSC_TRUE, A);
  if (ierr) {
    PetscCall(RowsFree(R));
    PetscCall(PetscFree(first));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds the local rows of A, with local column indices. outside: a row with a column that another process owns, or -1 */
static PetscErrorCode RowsAdd(Rows *R, Mat A, PetscInt *outside)
{
  PetscInt rs, re, cs, ce;

  PetscFunctionBegin;
  *outside = -1;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetOwnershipRangeColumn(A, &cs, &ce));
  for (PetscInt r = rs; r < re && *outside < 0; r++) {
    const PetscInt    *cols;
    const PetscScalar *vals;
    PetscInt           n;
    PetscErrorCode     ierr;

    PetscCall(MatGetRow(A, r, &n, &cols, &vals));
    ierr = RowsReserve(R, (PetscInt64)R->entries + n);
    for (PetscInt k = 0; !ierr && k < n; k++) {
      if (cols[k] < cs || cols[k] >= ce) *outside = r;
      R->j[R->entries + k] = cols[k] - cs;
      R->a[R->entries + k] = vals[k];
    }
    /* returns at once if the columns are ascending */
    if (!ierr) PetscCall(PetscSortIntWithScalarArray(n, R->j + R->entries, R->a + R->entries));
    R->entries += n;
    R->i[++R->row] = R->entries;
    PetscCall(MatRestoreRow(A, r, &n, &cols, &vals));
    PetscCall(ierr);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gets A itself if it is AIJ, otherwise a conversion to AIJ, because not every type has MatGetRow(). The caller
   destroys *B */
static PetscErrorCode BatchAsAIJ(Mat A, Mat *B)
{
  PetscBool seq, mpi;

  PetscFunctionBegin;
  PetscCall(PetscStrbeginswith(((PetscObject)A)->type_name, MATSEQAIJ, &seq));
  PetscCall(PetscStrbeginswith(((PetscObject)A)->type_name, MATMPIAIJ, &mpi));
  if (seq || mpi) {
    PetscCall(PetscObjectReference((PetscObject)A));
    *B = A;
  } else
    PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BatchCheckMat(PetscInt p, Mat A)
{
  PetscMPIInt size;
  PetscInt    M, N;

  PetscFunctionBegin;
  PetscCheck(A, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "Problem %" PetscInt_FMT " is NULL", p);
  PetscValidHeaderSpecific(A, MAT_CLASSID, 3);
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCheck(size == 1, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG,
             "Problem %" PetscInt_FMT " is a matrix of %d processes: each process owns whole problems", p, size);
  PetscCheck(A->assembled && !A->factortype, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE,
             "Problem %" PetscInt_FMT ": not for %s matrix", p, A->factortype ? "factored" : "unassembled");
  PetscCall(MatGetSize(A, &M, &N));
  PetscCheck(M == N, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
             "Problem %" PetscInt_FMT " is %" PetscInt_FMT " x %" PetscInt_FMT ": problems must be square", p, M, N);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks the arguments of MatCreateBatchFromMats() and copies the matrices. The caller frees R and `first`, even after
   an error */
static PetscErrorCode RowsAddMats(PetscInt n, const Mat mats[], Rows *R, PetscInt **first)
{
  PetscInt64 rows = 0;

  PetscFunctionBegin;
  PetscCall(BatchCheckCount(n));
  PetscCheck(mats || !n, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "There are problems, but the array of matrices is NULL");
  for (PetscInt p = 0; p < n; p++) {
    PetscCall(BatchCheckMat(p, mats[p]));
    rows += mats[p]->rmap->N;
    PetscCall(MatBatchCheckRows(rows));
  }
  PetscCall(RowsCreate(rows, R));
  PetscCall(PetscMalloc1(n + 1, first));
  (*first)[0] = 0;
  for (PetscInt p = 0; p < n; p++) {
    PetscInt       outside;
    Mat            B;
    PetscErrorCode ierr;

    PetscCall(BatchAsAIJ(mats[p], &B));
    ierr = RowsAdd(R, B, &outside);
    PetscCall(MatDestroy(&B));
    PetscCall(ierr);
    (*first)[p + 1] = R->row;
  }
  PetscCall(RowsReserve(R, 1)); /* so that the arrays are not NULL */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
   MatCreateBatchFromMats - Creates a `MATBATCH` matrix, the block-diagonal matrix of many small square problems, from
   one matrix for each problem

   Collective

   Input Parameters:
+  comm - the communicator; each process provides its own problems and owns their rows
.  n    - number of problems on this process
-  mats - the problems: sequential, assembled, square matrices of any type that can be converted to `MATAIJ`; they are copied

   Output Parameter:
.  A - the matrix, assembled, of type `MATBATCH`

   Level: beginner

   Notes:
   If all problems have the same pattern, it is stored once.

   If the arguments of one process are invalid, the call returns an error on all processes.

   Errors:
+  PETSC_ERR_ARG_NULL       - `mats`, or one of its matrices, is `NULL`
.  PETSC_ERR_ARG_OUTOFRANGE - `n` is negative, or there are more rows on a process than a matrix of this type can have
.  PETSC_ERR_ARG_WRONG      - a matrix has several processes
.  PETSC_ERR_ARG_WRONGSTATE - a matrix is not assembled, or is factored
-  PETSC_ERR_ARG_SIZ        - a matrix is not square

.seealso: `MATBATCH`, `MatCreateBatch()`, `MatBatchGetProblem()`
@*/
PetscErrorCode MatCreateBatchFromMats(MPI_Comm comm, PetscInt n, const Mat mats[], Mat *A)
{
  PetscInt      *first = NULL;
  Rows           R;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscAssertPointer(A, 4);
  PetscCall(PetscMemzero(&R, sizeof(R)));
  ierr = RowsAddMats(n, mats, &R, &first);
  PetscCall(MatBatchCreateFromRows(comm, ierr, n, first, &R, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: creates a matrix with the problems and options of A. It owns the arrays. They are freed if ierr is an
   error or an error occurs here */
PetscErrorCode MatBatchCreateLike(Mat A, PetscErrorCode ierr, PetscInt *i, PetscInt *j, PetscScalar *v, Mat *B)
{
  Mat_Batch *a     = (Mat_Batch *)A->data;
  PetscInt  *first = NULL;

  PetscFunctionBegin;
  if (!ierr) ierr = PetscMalloc1(a->p.problems + 1, &first);
  if (!ierr) PetscCall(PetscArraycpy(first, a->first, a->p.problems + 1));
  ierr = MatBatchCreateWithArrays(PetscObjectComm((PetscObject)A), ierr, a->p.problems, first, i, j, v,
                                  (MatBatchSharing)a->p.sharing, PETSC_TRUE, B);
  if (ierr) {
    PetscCall(PetscFree(first));
    PetscCall(PetscFree(i));
    PetscCall(PetscFree(j));
    PetscCall(PetscFree(v));
  }
  PetscCall(ierr);
  PetscCall(MatSetBlockSizesFromMats(*B, A, A));
  ((Mat_Batch *)(*B)->data)->kernel = a->kernel;
#if defined(PETSCSPMV_HAVE_CUDA)
  PetscCall(MatBindToCPU(*B, A->boundtocpu));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- conversion and MatLoad() */

/* MatHeaderReplace() drops A's name and prefix and leaks A->bsizes, so copy the name and the prefix and free bsizes */
static PetscErrorCode MatBatchReplace(Mat A, Mat *B)
{
  PetscFunctionBegin;
  if (((PetscObject)A)->name) PetscCall(PetscObjectSetName((PetscObject)*B, ((PetscObject)A)->name));
  PetscCall(PetscObjectSetOptions((PetscObject)*B, ((PetscObject)A)->options));
  PetscCall(PetscObjectSetOptionsPrefix((PetscObject)*B, ((PetscObject)A)->prefix));
  PetscCall(PetscFree(A->bsizes));
  A->nblocks = 0;
  PetscCall(MatHeaderReplace(A, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Returns B, which was created from A, in *M according to `reuse` */
PetscErrorCode MatBatchReturn(Mat A, Mat B, MatReuse reuse, Mat *M)
{
  PetscFunctionBegin;
  if (reuse == MAT_INITIAL_MATRIX)
    *M = B;
  else if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(B, *M, SAME_NONZERO_PATTERN));
    PetscCall(MatDestroy(&B));
  } else
    PetscCall(MatBatchReplace(A, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatConvert_Batch(Mat A, MatType type, MatReuse reuse, Mat *M)
{
  PetscBool aij;
  Mat       B;

  PetscFunctionBegin;
  PetscCall(MatBatchConvertToAIJ(A, &B));
  PetscCall(PetscStrcmp(type, MATAIJ, &aij));
  if (!aij) PetscCall(PetscStrcmp(type, ((PetscObject)B)->type_name, &aij));
  if (!aij) PetscCall(MatConvert(B, type, MAT_INPLACE_MATRIX, &B));
  PetscCall(MatSetVariableBlockSizes(B, A->nblocks, A->bsizes)); /* for converting back */
  if (!B->bsizes) PetscCall(PetscMalloc1(1, &B->bsizes));        /* as in A, see above */
  PetscCall(MatBatchReturn(A, B, reuse, M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Finds the smallest diagonal blocks of consecutive rows that contain all entries */
static PetscErrorCode RowsFindBlocks(const Rows *R, PetscInt *problems, PetscInt **first)
{
  const PetscInt m    = R->rows;
  PetscInt      *open = NULL, count = 0, depth = 0;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  /* row intervals, from the smallest to the largest index, that begin at r minus those that end at r */
  SpMVCall(PetscCalloc1((size_t)m + 1, &open));
  for (PetscInt r = 0; r < m; r++) {
    PetscInt lo = r, hi = r;

    if (R->i[r + 1] > R->i[r]) {
      lo = PetscMin(r, R->j[R->i[r]]);
      hi = PetscMax(r, R->j[R->i[r + 1] - 1]);
    }
    open[lo]++;
    open[hi]--;
  }
  SpMVCall(PetscMalloc1((size_t)m + 1, first));
  (*first)[0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    depth += open[r];
    if (!depth) (*first)[++count] = r + 1;
  }
  *problems = count;
done:
  PetscCall(PetscFree(open));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Divides the local rows of A into problems: the blocks set by MatSetVariableBlockSizes(), or the smallest possible
  blocks if none were set. B is A as AIJ. The caller frees R and `first`, even after an error.
*/
static PetscErrorCode RowsAddBlocks(Mat A, Mat B, Rows *R, PetscInt *problems, PetscInt **first)
{
  const PetscInt rs = A->rmap->rstart;
  PetscInt       outside;

  PetscFunctionBegin;
  PetscCheck(A->rmap->n == A->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
             "%" PetscInt_FMT " local rows and %" PetscInt_FMT " local columns: the problems of a batch are square",
             A->rmap->n, A->cmap->n);
  PetscCall(RowsCreate(A->rmap->n, R));
  PetscCall(RowsReserve(R, 1));
  PetscCall(RowsAdd(R, B, &outside));
  PetscCheck(outside < 0, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG,
             "Row %" PetscInt_FMT
             " has columns that another process owns: each process must own whole diagonal blocks, see MatSetSizes()",
             outside);
  if (A->nblocks > 0) {
    *problems = A->nblocks;
    PetscCall(PetscMalloc1(A->nblocks + 1, first));
    (*first)[0] = 0;
    for (PetscInt p = 0; p < A->nblocks; p++) (*first)[p + 1] = (*first)[p] + A->bsizes[p];
  } else
    PetscCall(RowsFindBlocks(R, problems, first));
  for (PetscInt p = 0; p < *problems; p++) {
    const PetscInt begin = (*first)[p], end = (*first)[p + 1];

    for (PetscInt r = begin; r < end; r++) {
      for (PetscInt k = R->i[r]; k < R->i[r + 1]; k++) {
        PetscCheck(R->j[k] >= begin && R->j[k] < end, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG,
                   "The entry in row %" PetscInt_FMT ", column %" PetscInt_FMT
                   " is outside of the diagonal blocks of MatSetVariableBlockSizes()",
                   rs + r, rs + R->j[k]);
        R->j[k] -= begin;
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatConvertFrom_Batch(Mat A, MatType type, MatReuse reuse, Mat *M)
{
  Mat            B, C;
  Rows           R;
  PetscInt      *first = NULL, problems = 0;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&R, sizeof(R)));
  PetscCall(BatchAsAIJ(A, &B));
  ierr = RowsAddBlocks(A, B, &R, &problems, &first);
  PetscCall(MatDestroy(&B));
  PetscCall(MatBatchCreateFromRows(PetscObjectComm((PetscObject)A), ierr, problems, first, &R, &C));
  PetscCall(MatSetBlockSizesFromMats(C, A, A));
  PetscCall(MatBatchReturn(A, C, reuse, M));
  if (reuse == MAT_INPLACE_MATRIX) PetscCall(MatBatchGetKernel(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatLoad_Batch(Mat A, PetscViewer viewer)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), &B));
  PetscCall(MatSetSizes(B, A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N));
  PetscCall(MatSetType(B, MATAIJ));
  PetscCall(MatLoad(B, viewer));
  PetscCall(MatConvert(B, MATBATCH, MAT_INPLACE_MATRIX, &B));
  ((Mat_Batch *)B->data)->kernel = ((Mat_Batch *)A->data)->kernel;
#if defined(PETSCSPMV_HAVE_CUDA)
  PetscCall(MatBindToCPU(B, A->boundtocpu));
#endif
  PetscCall(MatBatchReplace(A, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatBatchSetOps_Create(Mat A)
{
  PetscFunctionBegin;
  A->ops->convert     = MatConvert_Batch;
  A->ops->convertfrom = MatConvertFrom_Batch;
  A->ops->load        = MatLoad_Batch;
  PetscFunctionReturn(PETSC_SUCCESS);
}
