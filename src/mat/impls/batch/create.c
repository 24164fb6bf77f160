/*
  Batches from the arrays of all problems, and from other matrices.
*/
#include "batch.h"

/* The CSR arrays of a matrix, which AIJ uses in place */
typedef struct {
  PetscInt    *i, *j, *none; /* none: row offsets of a parallel matrix's off-diagonal block, which has no entries */
  PetscScalar *a;
  PetscBool    borrowed; /* a belongs to the caller of MatCreateBatch() */
} MatBatchArrays;

static PetscErrorCode MatBatchArraysDestroy(MatBatchArrays *s)
{
  PetscFunctionBegin;
  if (!s) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscFree(s->i));
  PetscCall(PetscFree(s->j));
  PetscCall(PetscFree(s->none));
  if (!s->borrowed) PetscCall(PetscFree(s->a));
  PetscCall(PetscFree(s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchArraysDestroyCtx(SpMVCtx ctx)
{
  return MatBatchArraysDestroy((MatBatchArrays *)SpMVCtxGet(ctx));
}

/* PCVPBJACOBI inverts blocks of these sizes */
static PetscErrorCode MatBatchSetSizes(Mat A, const MatBatch *b)
{
  PetscInt *sizes, n = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(b->problems, &sizes));
  for (PetscInt p = 0; p < b->problems; p++) {
    if (b->first[p + 1] > b->first[p]) sizes[n++] = b->first[p + 1] - b->first[p];
  }
  PetscCall(MatSetVariableBlockSizes(A, n, sizes));
  PetscCall(PetscFree(sizes));
  /* MatView() expects bsizes on all ranks or on none (PETSc 3.21 to 3.26) */
  if (!A->bsizes) PetscCall(PetscMalloc1(1, &A->bsizes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: creates the AIJ matrix, whose blocks hold the container of the arrays */
static PetscErrorCode MatBatchCreateAIJ(MPI_Comm comm, PetscInt m, MatBatchArrays *s, PetscContainer container, Mat *A)
{
  Mat block[2] = {NULL, NULL};

  PetscFunctionBegin;
  if (!s->none) {
    PetscCall(MatCreateSeqAIJWithArrays(comm, m, m, s->i, s->j, s->a, A));
    block[0] = *A;
  } else {
    PetscCall(MatCreateMPIAIJWithSplitArrays(comm, m, m, PETSC_DETERMINE, PETSC_DETERMINE, s->i, s->j, s->a, s->none,
                                             s->none, s->a, A));
    PetscCall(MatMPIAIJGetSeqAIJ(*A, &block[0], &block[1], NULL));
  }
  for (int k = 0; k < 2 && block[k]; k++)
    PetscCall(PetscObjectCompose((PetscObject)block[k], "PetscSpMVBatchArrays", (PetscObject)container));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Collective: creates a matrix that owns the problems and the arrays; they are freed after an error. If ierr is an error
  on any rank, no matrix is created
*/
static PetscErrorCode MatBatchCreate(MPI_Comm comm, PetscErrorCode ierr, MatBatch *b, MatBatchArrays *s, Mat *A)
{
  Mat            B         = NULL;
  PetscContainer container = NULL;
  PetscMPIInt    size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  if (!ierr && size > 1) ierr = PetscCalloc1((size_t)b->first[b->problems] + 1, &s->none);
  if (!ierr) ierr = PetscContainerCreate(PETSC_COMM_SELF, &container);
  ierr = SpMVAgree(comm, ierr);
  if (ierr)
    PetscCall(MatBatchArraysDestroy(s));
  else {
    PetscCall(PetscContainerSetPointer(container, s));
    PetscCall(PetscContainerSetCtxDestroy(container, MatBatchArraysDestroyCtx));
    ierr = MatBatchCreateAIJ(comm, b->first[b->problems], s, container, &B);
    if (!ierr) ierr = MatBatchSetSizes(B, b);
    ierr = SpMVAgree(comm, ierr);
  }
  PetscCall(PetscContainerDestroy(&container));
  if (ierr)
    PetscCall(MatBatchFree(&b));
  else
    ierr = SpMVAgree(comm, MatBatchSet(B, b));
  if (!ierr) ierr = MatConvertFrom_SpMV(B, MATBATCH, MAT_INPLACE_MATRIX, &B);
  if (ierr) PetscCall(MatDestroy(&B));
  PetscCall(ierr);
  *A = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchCheckRows(PetscInt64 n, const char *what)
{
  PetscFunctionBegin;
  PetscCheck(n <= SPMV_MAX_SIZE, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "%" PetscInt64_FMT " %s on this process: at most %d fit into a " MATBATCH " matrix, use more processes", n,
             what, SPMV_MAX_SIZE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchCheckEntries(PetscInt64 entries)
{
  PetscFunctionBegin;
  PetscCheck(entries <= PETSC_MAX_INT, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "%" PetscInt64_FMT
             " nonzeros on this process do not fit in a PetscInt: use more processes, or a PETSc with 64-bit indices",
             entries);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks that i and j are a valid pattern of problem p, which has n rows */
static PetscErrorCode MatBatchCheckProblem(PetscInt p, PetscInt n, const PetscInt i[], const PetscInt j[])
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

static PetscErrorCode MatBatchCheckCount(PetscInt problems)
{
  PetscFunctionBegin;
  PetscCheck(problems >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "Number of problems %" PetscInt_FMT " is negative", problems);
  PetscCall(MatBatchCheckRows(problems, "problems"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks the sizes, of which there are `given`, and computes the first row of each problem. The caller frees *b, even
   after an error */
static PetscErrorCode MatBatchCheckSizes(PetscInt problems, PetscInt given, const PetscInt sizes[], MatBatch **b)
{
  PetscInt64 rows = 0;

  PetscFunctionBegin;
  PetscCheck(sizes || !problems, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL,
             "There are problems, but the array of sizes is NULL");
  for (PetscInt p = 0; p < given; p++) {
    PetscCheck(sizes[p] >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
               "Problem %" PetscInt_FMT ": its size %" PetscInt_FMT " is negative", p, sizes[p]);
    PetscCall(MatBatchCheckRows(sizes[p], "rows of all problems")); /* the product below does not overflow */
    rows += given < problems ? (PetscInt64)sizes[p] * problems : (PetscInt64)sizes[p];
    PetscCall(MatBatchCheckRows(rows, "rows of all problems"));
  }
  PetscCall(MatBatchNew(problems, b));
  for (PetscInt p = 0; p < problems; p++) (*b)->first[p + 1] = (*b)->first[p] + sizes[given < problems ? 0 : p];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks the arguments of MatCreateBatch(). The caller frees *b, even after an error */
static PetscErrorCode MatBatchCheckArguments(PetscInt problems, const PetscInt sizes[], const PetscInt i[],
                                             const PetscInt j[], const PetscScalar a[], MatBatchSharing sharing,
                                             PetscCopyMode mode, MatBatch **b)
{
  const PetscInt patterns = sharing ? PetscMin(1, problems) : problems;
  PetscInt64     entries;

  PetscFunctionBegin;
  PetscCheck(mode == PETSC_COPY_VALUES || mode == PETSC_OWN_POINTER || mode == PETSC_USE_POINTER, PETSC_COMM_SELF,
             PETSC_ERR_ARG_OUTOFRANGE, "%d is not a PetscCopyMode", (int)mode);
  PetscCheck(sharing == MATBATCH_SHARE_NONE || sharing == MATBATCH_SHARE_PATTERN, PETSC_COMM_SELF,
             PETSC_ERR_ARG_OUTOFRANGE, "%d is not a MatBatchSharing", (int)sharing);
  PetscCall(MatBatchCheckCount(problems));
  PetscCall(MatBatchCheckSizes(problems, patterns, sizes, b));
  if (!problems) PetscFunctionReturn(PETSC_SUCCESS); /* the arrays may be NULL */
  PetscCheck(i, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "There are problems, but the array of row offsets is NULL");
  PetscCheck(i[0] == 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row offsets must begin with 0, not %" PetscInt_FMT,
             i[0]);
  for (PetscInt p = 0; p < patterns; p++)
    PetscCall(MatBatchCheckProblem(p, (*b)->first[p + 1] - (*b)->first[p], i + (*b)->first[p], j));
  entries = i[(*b)->first[patterns]];
  PetscCheck(a || !entries, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL,
             "The problems have entries, but the array of values is NULL");
  PetscCall(MatBatchCheckEntries(sharing ? entries * problems : entries));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The row offsets and columns of the matrix, and its values unless the caller's are used in place. *s owns what it
   gets, even after an error */
static PetscErrorCode MatBatchCopyArrays(const MatBatch *b, PetscBool shared, const PetscInt i[], const PetscInt j[],
                                         const PetscScalar a[], MatBatchArrays *s)
{
  const PetscInt m   = b->first[b->problems],
                 one = shared && b->problems ? i[b->first[1]] : 0; /* entries of each problem */
  const PetscInt nz  = shared ? one * b->problems : m ? i[m] : 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)m + 1, &s->i));
  PetscCall(PetscMalloc1((size_t)nz + 1, &s->j));
  s->i[0] = 0;
  for (PetscInt p = 0; p < b->problems; p++) {
    const PetscInt first = b->first[p], rows = b->first[p + 1] - first, shift = p * one,
                   *from = i + (shared ? 0 : first);

    for (PetscInt r = 0; r < rows; r++) s->i[first + r + 1] = from[r + 1] + shift;
    for (PetscInt k = from[0]; k < from[rows]; k++) s->j[k + shift] = j[k] + first;
  }
  if (s->borrowed) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1((size_t)nz + 1, &s->a));
  PetscCall(PetscArraycpy(s->a, a, nz));
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
.  values     - the values of all problems, one problem after the other
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

   Row offsets and columns are copied in any case. The matrix stores a pattern that is shared for each problem, as
   `MATAIJ` does.

   Use `MatBatchSetValues()` to change values. With `PETSC_USE_POINTER` the caller may also change the array of values
   and then call `MatAssemblyBegin()` and `MatAssemblyEnd()`. Operations such as `MatScale()` write to that array, but
   on a GPU they may change only the GPU's copy.

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
  /* the values are used in place */
  const PetscBool place = (PetscBool)(mode != PETSC_COPY_VALUES && nproblems > 0);
  MatBatchArrays *s     = NULL;
  MatBatch       *b     = NULL;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscAssertPointer(A, 9);
  ierr = MatBatchCheckArguments(nproblems, sizes, rowoffsets, columns, values, sharing, mode, &b);
  if (!ierr) ierr = PetscNew(&s);
  if (!ierr && place) {
    s->a        = values;
    s->borrowed = PETSC_TRUE;
  }
  if (!ierr)
    ierr = MatBatchCopyArrays(b, (PetscBool)(sharing == MATBATCH_SHARE_PATTERN), rowoffsets, columns, values, s);
  PetscCall(MatBatchCreate(comm, ierr, b, s, A));
  if (mode == PETSC_OWN_POINTER) {
    PetscCall(PetscFree(rowoffsets));
    PetscCall(PetscFree(columns));
    if (place)
      s->borrowed = PETSC_FALSE;
    else
      PetscCall(PetscFree(values));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gets A itself if it is AIJ, otherwise a conversion to AIJ, whose arrays are copied. The caller destroys *B */
static PetscErrorCode MatBatchAsAIJ(Mat A, Mat *B)
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

static PetscErrorCode MatBatchCheckMat(PetscInt p, Mat A)
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

/* Appends the entries of an AIJ matrix to the arrays, which have `at` entries and room for `room`, and its rows to i,
   which points to the latest row offset */
static PetscErrorCode MatBatchAppend(Mat B, PetscInt64 *at, PetscInt64 *room, PetscInt *i, PetscInt **j,
                                     PetscScalar **a)
{
  PetscErrorCode ierr;
  PetscInt64     end;
  SpMVCSR        csr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetPattern_Seq(B, &csr));
  end = *at + csr.i[csr.m];
  SpMVCall(MatBatchCheckEntries(end));
  if (end > *room) {
    *room = PetscMax(2 * *room, end);
    SpMVCall(PetscRealloc((size_t)*room * sizeof(**j), j));
    SpMVCall(PetscRealloc((size_t)*room * sizeof(**a), a));
  }
  SpMVCall(PetscArraycpy(*j + *at, csr.j, csr.i[csr.m]));
  SpMVCall(MatSeqAIJGetArrayRead(B, &csr.a));
  ierr = PetscArraycpy(*a + *at, csr.a, csr.i[csr.m]);
  PetscCall(MatSeqAIJRestoreArrayRead(B, &csr.a));
  for (PetscInt r = 0; r < csr.m && !ierr; r++) { /* sorting returns at once if the columns are ascending */
    ierr     = PetscSortIntWithScalarArray(csr.i[r + 1] - csr.i[r], *j + *at + csr.i[r], *a + *at + csr.i[r]);
    i[r + 1] = (PetscInt)*at + csr.i[r + 1];
  }
  *at = end;
done:
  PetscCall(MatSpMVRestorePattern_Seq(B, &csr));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arrays for MatCreateBatch(). The caller frees them, even after an error */
static PetscErrorCode MatBatchGather(PetscInt n, const Mat mats[], PetscInt **sizes, PetscInt **i, PetscInt **j,
                                     PetscScalar **a)
{
  PetscInt64 rows = 0, at = 0, room = 0;

  PetscFunctionBegin;
  PetscCall(MatBatchCheckCount(n));
  PetscCheck(mats || !n, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "There are problems, but the array of matrices is NULL");
  PetscCall(PetscMalloc1(n, sizes));
  for (PetscInt p = 0; p < n; p++) {
    PetscCall(MatBatchCheckMat(p, mats[p]));
    rows += (*sizes)[p] = mats[p]->rmap->N;
    PetscCall(MatBatchCheckRows(rows, "rows of all problems"));
  }
  PetscCall(PetscCalloc1((size_t)rows + 1, i));
  for (PetscInt p = 0, row = 0; p < n; row += (*sizes)[p++]) {
    Mat            B;
    PetscErrorCode ierr;

    PetscCall(MatBatchAsAIJ(mats[p], &B));
    ierr = MatBatchAppend(B, &at, &room, *i + row, j, a);
    PetscCall(MatDestroy(&B));
    PetscCall(ierr);
  }
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

   Note:
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
  PetscInt      *sizes = NULL, *i = NULL, *j = NULL;
  PetscScalar   *a = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscAssertPointer(A, 4);
  ierr = SpMVAgree(comm, MatBatchGather(n, mats, &sizes, &i, &j, &a));
  if (!ierr) ierr = MatCreateBatch(comm, n, sizes, i, j, a, MATBATCH_SHARE_NONE, PETSC_OWN_POINTER, A);
  if (ierr) {
    PetscCall(PetscFree(i));
    PetscCall(PetscFree(j));
    PetscCall(PetscFree(a));
  }
  PetscCall(PetscFree(sizes));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
