/*
  The matrix type batch: the block-diagonal matrix of many small problems. Each process owns whole problems, so that a product needs no
  communication, and one type serves any communicator.

  The problems' CSR arrays on the host are the matrix; what products need beside them is laid out by the first product that needs it, and refreshed
  when values have changed: those of the problems that did, where that is known. What is no product (factors, submatrices, block inverses) is left to AIJ,
  in a copy of the local part that exists once it is asked for.
*/
#include "../spmv/matspmv.h"
#include "kernels.h"

typedef struct {
  PetscInt first, last;
} Range;

typedef struct {
  BatchPattern     p; /* its arrays are these: */
  PetscInt        *first, *i, *j;
  PetscScalar     *a;
  PetscBool        own_pattern, own_values; /* to free */
  BatchKernel      kernel;                  /* as asked for */
  PetscObjectState state;                   /* the latest that `stale` knows of */
  BatchHost        host;
  Range            host_stale; /* problems whose values have not been moved in */
  PetscBool        device;     /* products of vectors on the GPU run there */
#if defined(PETSCSPMV_HAVE_CUDA)
  struct { /* A, and, once it is needed, its transpose */
    BatchCuda batch;
    PetscBool plain; /* it cannot be had there: the host multiplies */
    Range     stale;
  } cuda[2];
#endif
  Mat              aij; /* the local part */
  PetscObjectState aij_state;
  PetscInt        *columns; /* MatGetRow() */
} Mat_Batch;

static const char *const BatchKernelTypes[] = {"auto",      "slices", "sellp", "coo",         "csr-scalar", "csr-vector",
                                               "csr-smart", "csr-i",  "ell",   "BatchKernel", "BATCH_",     NULL};

static PetscErrorCode MatBatchGet(Mat A, Mat_Batch **b)
{
  PetscBool is;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATBATCH, &is));
  PetscCheck(is, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "Matrix of type %s, not " MATBATCH,
             ((PetscObject)A)->type_name ? ((PetscObject)A)->type_name : "(not set)");
  *b = (Mat_Batch *)A->data;
  PetscCheck((*b)->first, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE,
             "The matrix has no problems yet: a matrix of type " MATBATCH " is made by MatCreateBatch(), MatCreateBatchFromMats(), MatConvert() or MatLoad()");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector of a batch has the layout of its rows. PETSc checks that for products only, and not where they are called through the table of operations */
static PetscErrorCode MatBatchCheckVec(Mat A, Vec v)
{
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCheck(n == A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
             "Nonconforming matrix and vector: the matrix has %" PetscInt_FMT " local rows and columns, the vector %" PetscInt_FMT " local entries", A->rmap->n,
             n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For programs that do not call MatSetFromOptions() on what they convert */
static PetscErrorCode MatBatchGetKernel(Mat A)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsGetEnum(((PetscObject)A)->options, ((PetscObject)A)->prefix, "-mat_batch_kernel", BatchKernelTypes,
                                (PetscEnum *)&((Mat_Batch *)A->data)->kernel, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- what is stale */

static void RangeAdd(Range *r, PetscInt first, PetscInt last)
{
  if (r->first >= r->last) {
    r->first = first;
    r->last  = last;
  } else {
    r->first = PetscMin(r->first, first);
    r->last  = PetscMax(r->last, last);
  }
}

static void MatBatchTouch(Mat_Batch *b, PetscInt first, PetscInt last)
{
  RangeAdd(&b->host_stale, first, last);
#if defined(PETSCSPMV_HAVE_CUDA)
  for (int k = 0; k < 2; k++) RangeAdd(&b->cuda[k].stale, first, last);
#endif
}

/* Has someone changed values without a word to us? Arrays that are used in place belong to others */
static PetscErrorCode MatBatchSync(Mat A)
{
  Mat_Batch       *b = (Mat_Batch *)A->data;
  PetscObjectState state;

  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (state != b->state) MatBatchTouch(b, 0, b->p.problems);
  b->state = state;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* We have changed the values of some problems */
static PetscErrorCode MatBatchChanged(Mat A, PetscInt first, PetscInt last)
{
  Mat_Batch *b = (Mat_Batch *)A->data;

  PetscFunctionBegin;
  PetscCall(MatBatchSync(A));
  MatBatchTouch(b, first, last);
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscCall(PetscObjectStateGet((PetscObject)A, &b->state));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchForget(Mat_Batch *b)
{
  PetscFunctionBegin;
  PetscCall(BatchHostDestroy(&b->host));
#if defined(PETSCSPMV_HAVE_CUDA)
  for (int k = 0; k < 2; k++) {
    if (b->cuda[k].batch) PetscCallCUDA(BatchCudaDestroy(&b->cuda[k].batch));
    b->cuda[k].plain = PETSC_FALSE;
  }
#endif
  MatBatchTouch(b, 0, b->p.problems);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values that differ by problem are about to be written where all share them. The array of the shared ones, if it is ours to free, goes to `old` */
static PetscErrorCode MatBatchUnshare(Mat A, PetscScalar **old)
{
  Mat_Batch     *b       = (Mat_Batch *)A->data;
  const PetscInt entries = BatchPatternEntries(&b->p);
  PetscScalar   *a;

  PetscFunctionBegin;
  if (b->p.sharing != BATCH_SHARE_VALUES) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1((size_t)entries * b->p.problems, &a));
  for (PetscInt p = 0; p < b->p.problems; p++) PetscCall(PetscArraycpy(a + (size_t)p * entries, b->a, entries));
  if (b->own_values) *old = b->a;
  b->a          = a;
  b->own_values = PETSC_TRUE;
  b->p.sharing  = BATCH_SHARE_PATTERN;
  PetscCall(MatBatchForget(b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- making */

static PetscErrorCode MatBatchSetArrays(Mat A, PetscInt problems, PetscInt *first, PetscInt *i, PetscInt *j, PetscScalar *a, MatBatchSharing sharing,
                                        PetscBool own)
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
  /* for PCVPBJACOBI, and for the way back from AIJ */
  PetscCall(PetscMalloc1(problems, &sizes));
  for (PetscInt p = 0; p < problems; p++) {
    const PetscInt n = first[p + 1] - first[p];

    if (n) sizes[nsizes++] = n;
  }
  PetscCall(MatSetVariableBlockSizes(A, nsizes, sizes));
  PetscCall(PetscFree(sizes));
  PetscCall(MatBatchForget(b));
  PetscCall(PetscObjectStateGet((PetscObject)A, &b->state));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchCheckRows(PetscInt64 rows)
{
  PetscFunctionBegin;
  PetscCheck(rows <= SPMV_MAX_SIZE, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "%" PetscInt64_FMT " rows of all problems on this process: at most %d fit into a " MATBATCH " matrix, use more processes", rows, SPMV_MAX_SIZE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An empty matrix of the given local rows, its layouts set up */
static PetscErrorCode MatBatchCreate(MPI_Comm comm, PetscInt rows, Mat *A)
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
  Collective: the arrays become a matrix, which owns `first`, and with `own` the others. With an error so far on any rank, or here, there is no matrix, and the
  arrays are the caller's as before.
*/
static PetscErrorCode MatBatchMake(MPI_Comm comm, PetscErrorCode ierr, PetscInt problems, PetscInt *first, PetscInt *i, PetscInt *j, PetscScalar *a,
                                   MatBatchSharing sharing, PetscBool own, Mat *A)
{
  Mat B = NULL;

  PetscFunctionBegin;
  PetscCall(SpMVAgree(comm, ierr));
  ierr = MatBatchCreate(comm, first[problems], &B);
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

/* The pattern of one problem */
static PetscErrorCode BatchCheckProblem(PetscInt p, PetscInt n, const PetscInt i[], const PetscInt j[])
{
  PetscFunctionBegin;
  for (PetscInt r = 0; r < n; r++) {
    PetscCheck(i[r + 1] >= i[r], PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
               "Problem %" PetscInt_FMT ", row %" PetscInt_FMT ": row offsets decrease from %" PetscInt_FMT " to %" PetscInt_FMT, p, r, i[r], i[r + 1]);
    PetscCheck(j || i[r + 1] == i[r], PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "Problem %" PetscInt_FMT " has entries, but the array of columns is NULL", p);
    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      PetscCheck(j[k] >= 0 && j[k] < n, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
                 "Problem %" PetscInt_FMT ", row %" PetscInt_FMT ": column %" PetscInt_FMT " is not within the problem, which has %" PetscInt_FMT
                 " columns (columns count from 0 in each problem)",
                 p, r, j[k], n);
      PetscCheck(k == i[r] || j[k] > j[k - 1], PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG,
                 "Problem %" PetscInt_FMT ", row %" PetscInt_FMT ": columns must ascend, but %" PetscInt_FMT " follows %" PetscInt_FMT, p, r, j[k], j[k - 1]);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BatchCheckCount(PetscInt problems)
{
  PetscFunctionBegin;
  PetscCheck(problems >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Number of problems %" PetscInt_FMT " is negative", problems);
  PetscCheck(problems <= SPMV_MAX_SIZE, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "%" PetscInt_FMT " problems on this process: at most %d fit into a " MATBATCH " matrix, use more processes", problems, SPMV_MAX_SIZE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where each problem begins, from sizes that are checked first; to free, after an error, too */
static PetscErrorCode BatchGetFirst(PetscInt problems, const PetscInt sizes[], MatBatchSharing sharing, PetscInt **first)
{
  PetscInt64 rows = 0;

  PetscFunctionBegin;
  PetscCheck(sizes || !problems, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "There are problems, but the array of sizes is NULL");
  for (PetscInt p = 0; p < (sharing ? PetscMin(1, problems) : problems); p++) {
    PetscCheck(sizes[p] >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Problem %" PetscInt_FMT ": its size %" PetscInt_FMT " is negative", p, sizes[p]);
    PetscCall(MatBatchCheckRows(sizes[p]));
    rows += sharing ? (PetscInt64)sizes[p] * problems : (PetscInt64)sizes[p];
    PetscCall(MatBatchCheckRows(rows));
  }
  PetscCall(PetscMalloc1(problems + 1, first));
  (*first)[0] = 0;
  for (PetscInt p = 0; p < problems; p++) (*first)[p + 1] = (*first)[p] + sizes[sharing ? 0 : p];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arguments of MatCreateBatch(), checked. `first` is to free, and with `copy` so are i, j and a, which become copies; after an error, too */
static PetscErrorCode BatchTake(PetscInt problems, const PetscInt sizes[], MatBatchSharing sharing, PetscCopyMode mode, PetscBool copy, PetscInt **first,
                                PetscInt **i, PetscInt **j, PetscScalar **a)
{
  const PetscInt    *rowoffsets = *i, *columns = *j, patterns = sharing ? PetscMin(1, problems) : problems;
  const PetscScalar *values = *a;
  size_t             rows, entries, count;

  PetscFunctionBegin;
  if (copy) {
    *i = *j = NULL;
    *a      = NULL;
  }
  PetscCheck(mode == PETSC_COPY_VALUES || mode == PETSC_OWN_POINTER || mode == PETSC_USE_POINTER, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "%d is no PetscCopyMode", (int)mode);
  PetscCheck(sharing >= MATBATCH_SHARE_NONE && sharing <= MATBATCH_SHARE_VALUES, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%d is no MatBatchSharing",
             (int)sharing);
  PetscCall(BatchCheckCount(problems));
  PetscCall(BatchGetFirst(problems, sizes, sharing, first));
  PetscCheck(rowoffsets, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "There are problems, but the array of row offsets is NULL");
  PetscCheck(rowoffsets[0] == 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row offsets must begin with 0, not %" PetscInt_FMT, rowoffsets[0]);
  for (PetscInt p = 0; p < patterns; p++) PetscCall(BatchCheckProblem(p, (*first)[p + 1] - (*first)[p], rowoffsets + (*first)[p], columns));
  rows    = (size_t)(*first)[patterns];
  entries = (size_t)rowoffsets[rows];
  count   = entries * (size_t)(sharing == MATBATCH_SHARE_PATTERN ? problems : 1);
  PetscCheck(values || !count, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "The problems have entries, but the array of values is NULL");
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
   MatCreateBatch - makes the block-diagonal matrix of many small square problems from their CSR arrays, one problem after the other

   Collective

   Input Parameters:
+  comm       - the communicator; each process gives its own problems, and owns their rows
.  nproblems  - number of problems on this process; may be 0, and the arrays `NULL` then
.  sizes      - rows (and columns) of each; 0 is allowed. Where the pattern is shared only `sizes[0]` is read
.  rowoffsets - where each row begins in `columns` and `values`, from 0 on, through all problems, so that there is one more than rows; of one problem where the pattern is shared
.  columns    - columns, which count from 0 in each problem and ascend in each row
.  values     - the values; with `MATBATCH_SHARE_PATTERN` those of each problem in turn, with `MATBATCH_SHARE_VALUES` those of one
.  sharing    - what the problems have in common
-  mode       - `PETSC_COPY_VALUES`, `PETSC_OWN_POINTER` (the arrays are from `PetscMalloc()`, and freed with the matrix) or `PETSC_USE_POINTER` (used in place)

   Output Parameter:
.  A - the matrix, assembled, of type `MATBATCH`

   Level: beginner

   Notes:
   It acts on vectors that hold the problems' vectors one after the other.

   If one process refuses its arguments, the call ends with an error on all, and the arrays remain the caller's, with `PETSC_OWN_POINTER`, too.

   Values change by `MatBatchSetValues()`. Arrays that are used in place may also be changed by their owner, who then calls `MatAssemblyBegin()`
   and `MatAssemblyEnd()` (or `PetscObjectStateIncrease()`). Operations such as `MatScale()` write into them.

.seealso: `MATBATCH`, `MatCreateBatchFromMats()`, `MatBatchSetValues()`, `MatBatchSharing`, `PetscCopyMode`
@*/
PetscErrorCode MatCreateBatch(MPI_Comm comm, PetscInt nproblems, const PetscInt sizes[], const PetscInt rowoffsets[], const PetscInt columns[],
                              PetscScalar values[], MatBatchSharing sharing, PetscCopyMode mode, Mat *A)
{
  const PetscBool none = (PetscBool)!nproblems, copy = (PetscBool)(none || mode == PETSC_COPY_VALUES); /* without problems there need not be arrays */
  PetscInt        zero = 0, *first = NULL, *i = none ? &zero : (PetscInt *)rowoffsets, *j = (PetscInt *)columns;
  PetscScalar    *a = values;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscAssertPointer(A, 9);
  ierr = BatchTake(nproblems, sizes, sharing, mode, copy, &first, &i, &j, &a);
  ierr = MatBatchMake(comm, ierr, nproblems, first, i, j, a, none ? MATBATCH_SHARE_NONE : sharing, (PetscBool)(copy || mode == PETSC_OWN_POINTER), A);
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

/* Where the rows of one matrix go */
typedef struct {
  PetscInt     row, rows, entries, room; /* rows and entries so far, and room for entries */
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
             "%" PetscInt64_FMT " nonzeros on this process, more than a PetscInt counts: use more processes, or a PETSc with 64-bit indices", entries);
  if (entries > R->room) {
    const PetscInt room = (PetscInt)PetscMin((PetscInt64)PETSC_MAX_INT, PetscMax(entries, (PetscInt64)R->room + R->room / 2));

    PetscCall(PetscRealloc((size_t)room * sizeof(*R->j), &R->j));
    PetscCall(PetscRealloc((size_t)room * sizeof(*R->a), &R->a));
    R->room = room;
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

/* Collective: rows become a matrix, or after an error are freed, and so is `first`; a pattern that all problems have is kept once */
static PetscErrorCode MatBatchCreateOwn(MPI_Comm comm, PetscErrorCode ierr, PetscInt problems, PetscInt *first, Rows *R, Mat *A)
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
  ierr = MatBatchMake(comm, ierr, problems, first, R->i, R->j, R->a, shared ? MATBATCH_SHARE_PATTERN : MATBATCH_SHARE_NONE, PETSC_TRUE, A);
  if (ierr) {
    PetscCall(RowsFree(R));
    PetscCall(PetscFree(first));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds the local rows of a matrix, columns less the first local one; `outside` is a row with columns of other processes, -1 if there is none */
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
    if (!ierr) PetscCall(PetscSortIntWithScalarArray(n, R->j + R->entries, R->a + R->entries)); /* does nothing where they ascend */
    R->entries += n;
    R->i[++R->row] = R->entries;
    PetscCall(MatRestoreRow(A, r, &n, &cols, &vals));
    PetscCall(ierr);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As AIJ, which shows its rows: the matrix itself, or a conversion to destroy */
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
  PetscCheck(size == 1, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "Problem %" PetscInt_FMT " is a matrix of %d processes: each process owns whole problems", p,
             size);
  PetscCheck(A->assembled && !A->factortype, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Problem %" PetscInt_FMT ": not for %s matrix", p,
             A->factortype ? "factored" : "unassembled");
  PetscCall(MatGetSize(A, &M, &N));
  PetscCheck(M == N, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Problem %" PetscInt_FMT " is %" PetscInt_FMT " x %" PetscInt_FMT ": problems must be square", p, M,
             N);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arguments of MatCreateBatchFromMats(), checked, and copies of the matrices; R and `first` are to free after an error, too */
static PetscErrorCode RowsOfMats(PetscInt n, const Mat mats[], Rows *R, PetscInt **first)
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
  PetscCall(RowsReserve(R, 1)); /* so that there are arrays */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
   MatCreateBatchFromMats - makes the block-diagonal matrix of many small square matrices

   Collective

   Input Parameters:
+  comm - the communicator; each process gives its own problems, and owns their rows
.  n    - number of problems on this process
-  mats - the problems: sequential, assembled, square matrices of any type that converts to `MATAIJ`. They are copied

   Output Parameter:
.  A - the matrix, assembled, of type `MATBATCH`

   Level: beginner

   Note:
   A pattern that all of them have is stored once.

.seealso: `MATBATCH`, `MatCreateBatch()`
@*/
PetscErrorCode MatCreateBatchFromMats(MPI_Comm comm, PetscInt n, const Mat mats[], Mat *A)
{
  PetscInt      *first = NULL;
  Rows           R;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscAssertPointer(A, 4);
  PetscCall(PetscMemzero(&R, sizeof(R)));
  ierr = RowsOfMats(n, mats, &R, &first);
  PetscCall(MatBatchCreateOwn(comm, ierr, n, first, &R, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchCheckProblem(const Mat_Batch *b, PetscInt problem)
{
  PetscFunctionBegin;
  PetscCheck(problem >= 0 && problem < b->p.problems, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "Problem %" PetscInt_FMT ": this process has %" PetscInt_FMT " problems, which count from 0", problem, b->p.problems);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
   MatBatchSetValues - replaces the values of all problems, or of one, in the pattern that they have

   Logically Collective if `problem` is `MATBATCH_ALL`, else Not Collective

   Input Parameters:
+  A       - the matrix, of type `MATBATCH`
.  problem - which of this process's problems, from 0 on, or `MATBATCH_ALL`
-  values  - its values, row by row, or those of all problems, one after the other (of one problem, if values are shared)

   Level: beginner

   Notes:
   Needs no new set-up: the next product moves the new values in, and only those where problems were changed one by one. Where values are shared,
   values for one problem end the sharing.

   A preconditioner is set up again where the values have changed. Where only some processes change problems one by one, and that set-up is collective (`PCASM`, say),
   all processes must call `MatAssemblyBegin()` and `MatAssemblyEnd()` afterwards, so that all take part.

.seealso: `MATBATCH`, `MatCreateBatch()`, `MatBatchGetProblem()`
@*/
PetscErrorCode MatBatchSetValues(Mat A, PetscInt problem, const PetscScalar values[])
{
  Mat_Batch *b = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGet(A, &b));
  if (problem == MATBATCH_ALL) {
    PetscCheck(values || !BatchValues(&b->p), PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "The problems have entries, but the array of values is NULL");
    if (BatchValues(&b->p)) PetscCall(PetscArraymove(b->a, values, (size_t)BatchValues(&b->p)));
    PetscCall(MatBatchChanged(A, 0, b->p.problems));
  } else {
    PetscScalar *shared = NULL;
    PetscInt     n, entries;

    PetscCall(MatBatchCheckProblem(b, problem));
    n       = b->first[problem + 1] - b->first[problem];
    entries = BatchOffsets(&b->p, problem)[n] - BatchOffsets(&b->p, problem)[0];
    PetscCheck(values || !entries, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "Problem %" PetscInt_FMT " has entries, but the array of values is NULL", problem);
    PetscCall(MatBatchUnshare(A, &shared)); /* `values` may be the shared ones */
    if (entries) PetscCall(PetscArraymove(b->a + BatchValueShift(&b->p, problem) + BatchOffsets(&b->p, problem)[0], values, (size_t)entries));
    PetscCall(PetscFree(shared));
    PetscCall(MatBatchChanged(A, problem, problem + 1));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
   MatBatchGetProblem - looks at one problem of a batch

   Not Collective

   Input Parameters:
+  A       - the matrix, of type `MATBATCH`
-  problem - which of this process's problems, from 0 on

   Output Parameters:
+  n          - its rows and columns
.  rowoffsets - where its rows begin in `columns` and `values`: n + 1 offsets, of which the first need not be 0
.  columns    - columns, which count from 0 in the problem
-  values     - its values

   Level: intermediate

   Note:
   The arrays are the matrix' own: do not write or free them. Any of the outputs may be `NULL`.

.seealso: `MATBATCH`, `MatBatchSetValues()`, `MatBatchGetInfo()`
@*/
PetscErrorCode MatBatchGetProblem(Mat A, PetscInt problem, PetscInt *n, const PetscInt *rowoffsets[], const PetscInt *columns[], const PetscScalar *values[])
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

/* ---------------------------------------------------------------- products */

static PetscErrorCode MatBatchUpdate_Host(Mat A)
{
  Mat_Batch     *b = (Mat_Batch *)A->data;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatBatchSync(A));
  if (!b->host) {
    PetscCall(PetscLogEventBegin(MAT_SpMVSetUp, A, 0, 0, 0));
    ierr = BatchHostCreate(&b->p, b->kernel, &b->host);
    PetscCall(PetscLogEventEnd(MAT_SpMVSetUp, A, 0, 0, 0));
    PetscCall(ierr);
    RangeAdd(&b->host_stale, 0, b->p.problems);
  }
  if (b->host_stale.first < b->host_stale.last) {
    PetscCall(PetscLogEventBegin(MAT_SpMVFill, A, 0, 0, 0));
    ierr = BatchHostFill(b->host, &b->p, b->a, b->host_stale.first, b->host_stale.last);
    PetscCall(PetscLogEventEnd(MAT_SpMVFill, A, 0, 0, 0));
    PetscCall(ierr);
    b->host_stale.first = b->host_stale.last = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSCSPMV_HAVE_CUDA)
static PetscErrorCode MatBatchCheckCUDA(Mat A, cudaError_t error)
{
  PetscFunctionBegin;
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_GPU_RESOURCE,
            "Out of memory for the layout of a " MATBATCH " matrix of %" PetscInt64_FMT " nonzeros on the GPU. Use more processes, or MatBindToCPU()",
            BatchNonzeros(&((Mat_Batch *)A->data)->p));
  }
  PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchUpdate_CUDA(Mat A, int k, cudaStream_t stream)
{
  Mat_Batch  *b = (Mat_Batch *)A->data;
  cudaError_t error;

  PetscFunctionBegin;
  PetscCall(MatBatchSync(A));
  if (!A->rmap->n) b->cuda[k].plain = PETSC_TRUE; /* nothing to launch */
  if (!b->cuda[k].batch && !b->cuda[k].plain) {
    PetscCall(PetscLogEventBegin(MAT_SpMVSetUp, A, 0, 0, 0));
    error = BatchCudaCreate(&b->p, (PetscBool)k, b->kernel, stream, &b->cuda[k].batch);
    PetscCall(PetscLogEventEnd(MAT_SpMVSetUp, A, 0, 0, 0));
    if (error == cudaErrorNotSupported)
      b->cuda[k].plain = PETSC_TRUE;
    else
      PetscCall(MatBatchCheckCUDA(A, error));
    RangeAdd(&b->cuda[k].stale, 0, b->p.problems);
  }
  if (!b->cuda[k].plain && b->cuda[k].stale.first < b->cuda[k].stale.last) {
    PetscCall(PetscLogEventBegin(MAT_SpMVFill, A, 0, 0, 0));
    error = BatchCudaFill(b->cuda[k].batch, &b->p, b->a, b->cuda[k].stale.first, b->cuda[k].stale.last, stream);
    PetscCall(PetscLogEventEnd(MAT_SpMVFill, A, 0, 0, 0));
    PetscCall(MatBatchCheckCUDA(A, error));
    b->cuda[k].stale.first = b->cuda[k].stale.last = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecOnDevice(Vec v, PetscBool *device)
{
  PetscBool is, bound;

  PetscFunctionBegin;
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, &is, VECSEQCUDA, VECMPICUDA, ""));
  PetscCall(VecBoundToCPU(v, &bound));
  if (is && !bound) *device = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `done`: it ran on the device, as it does if one of the vectors is there; host vectors among them are copied for its length */
static PetscErrorCode MatBatchApply_CUDA(Mat A, SpMVOp op, Vec xx, Vec zz, Vec yy, PetscBool *done)
{
  Mat_Batch         *b      = (Mat_Batch *)A->data;
  const int          k      = op != SPMV_NORMAL;
  PetscBool          device = PETSC_FALSE;
  Vec                x, y, z = NULL;
  const PetscScalar *xa, *za = NULL;
  PetscScalar       *ya;
  cudaStream_t       stream;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (!b->device || A->boundtocpu) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecOnDevice(xx, &device));
  PetscCall(VecOnDevice(yy, &device));
  PetscCall(VecOnDevice(zz, &device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVGetStream(&stream));
  PetscCall(MatBatchUpdate_CUDA(A, k, stream));
  if (b->cuda[k].plain) PetscFunctionReturn(PETSC_SUCCESS);
  *done = PETSC_TRUE;
  PetscCall(SpMVVecOnDevice(xx, PETSC_TRUE, &x));
  PetscCall(SpMVVecOnDevice(yy, (PetscBool)(zz == yy), &y));
  if (zz && zz != yy) PetscCall(SpMVVecOnDevice(zz, PETSC_TRUE, &z));
  PetscCall(VecGetArrayReadAndMemType(x, &xa, NULL));
  if (z) PetscCall(VecGetArrayReadAndMemType(z, &za, NULL));
  if (zz == yy) {
    PetscCall(VecGetArrayAndMemType(y, &ya, NULL));
    za = ya;
  } else
    PetscCall(VecGetArrayWriteAndMemType(y, &ya, NULL));
  PetscCall(PetscLogGpuTimeBegin());
  PetscCallCUDA(BatchCudaMult(b->cuda[k].batch, (PetscBool)(op == SPMV_HERMITIAN), xa, zz ? za : NULL, ya, stream));
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(PetscLogGpuFlops(2.0 * BatchNonzeros(&b->p)));
  if (zz == yy)
    PetscCall(VecRestoreArrayAndMemType(y, &ya));
  else
    PetscCall(VecRestoreArrayWriteAndMemType(y, &ya));
  if (z) PetscCall(VecRestoreArrayReadAndMemType(z, &za));
  PetscCall(VecRestoreArrayReadAndMemType(x, &xa));
  if (z) PetscCall(SpMVVecRestore(zz, PETSC_FALSE, &z));
  PetscCall(SpMVVecRestore(yy, PETSC_TRUE, &y));
  PetscCall(SpMVVecRestore(xx, PETSC_FALSE, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* yy = zz + op(A) xx, where zz may be yy, and NULL for zero */
static PetscErrorCode MatBatchApply(Mat A, SpMVOp op, Vec xx, Vec zz, Vec yy)
{
  Mat_Batch         *b = (Mat_Batch *)A->data;
  const PetscScalar *x, *z = NULL;
  PetscScalar       *y;

  PetscFunctionBegin;
  PetscCall(MatBatchCheckVec(A, xx));
  PetscCall(MatBatchCheckVec(A, yy));
  if (zz && zz != yy) PetscCall(MatBatchCheckVec(A, zz));
#if defined(PETSCSPMV_HAVE_CUDA)
  PetscBool done;

  PetscCall(MatBatchApply_CUDA(A, op, xx, zz, yy, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
#endif
  if (op == SPMV_NORMAL) PetscCall(MatBatchUpdate_Host(A));
  PetscCall(VecGetArrayRead(xx, &x));
  if (zz && zz != yy) PetscCall(VecGetArrayRead(zz, &z));
  if (zz == yy) {
    PetscCall(VecGetArray(yy, &y));
    z = y;
  } else
    PetscCall(VecGetArrayWrite(yy, &y));
  if (op == SPMV_NORMAL)
    BatchHostMult(b->host, &b->p, b->a, x, z, y);
  else
    BatchMultTranspose(&b->p, (PetscBool)(op == SPMV_HERMITIAN), b->a, x, z, y);
  if (zz == yy)
    PetscCall(VecRestoreArray(yy, &y));
  else
    PetscCall(VecRestoreArrayWrite(yy, &y));
  if (zz && zz != yy) PetscCall(VecRestoreArrayRead(zz, &z));
  PetscCall(VecRestoreArrayRead(xx, &x));
  PetscCall(PetscLogFlops(2.0 * (PetscLogDouble)BatchNonzeros(&b->p)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define BatchProduct(Name, op)                                      \
  static PetscErrorCode Name##_Batch(Mat A, Vec x, Vec y)           \
  {                                                                 \
    return MatBatchApply(A, op, x, NULL, y);                        \
  }                                                                 \
  static PetscErrorCode Name##Add_Batch(Mat A, Vec x, Vec z, Vec y) \
  {                                                                 \
    return MatBatchApply(A, op, x, z, y);                           \
  }
/* Up to the end of the function after these macros, which clang-format takes for a part of them */
/* clang-format off */
BatchProduct(MatMult, SPMV_NORMAL)
BatchProduct(MatMultTranspose, SPMV_TRANSPOSE)
BatchProduct(MatMultHermitianTranspose, SPMV_HERMITIAN)

/* ---------------------------------------------------------------- rows and values */

/* `body` for each entry: r and c its local row and column, v where its value is (shared ones come once for each problem) */
#define BatchForEntries(b, r, c, v, body)                                                                   \
  do {                                                                                                      \
    for (PetscInt p_ = 0; p_ < (b)->p.problems; p_++) {                                                     \
      const PetscInt    *i_ = BatchOffsets(&(b)->p, p_), f_ = (b)->first[p_], n_ = (b)->first[p_ + 1] - f_; \
      PetscScalar *const a_ = (b)->a + BatchValueShift(&(b)->p, p_);                                          \
      for (PetscInt q_ = 0; q_ < n_; q_++)                                                                  \
        for (PetscInt k_ = i_[q_]; k_ < i_[q_ + 1]; k_++) {                                                 \
          const PetscInt     r = f_ + q_, c = f_ + (b)->j[k_];                                              \
          PetscScalar *const v = a_ + k_;                                                                   \
          body                                                                                              \
        }                                                                                                   \
    }                                                                                                       \
  } while (0)

/* The problem that a local row belongs to */
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
/* clang-format on */

static PetscErrorCode MatGetRow_Batch(Mat A, PetscInt row, PetscInt *n, PetscInt *cols[], PetscScalar *vals[])
{
  Mat_Batch      *b = (Mat_Batch *)A->data;
  PetscInt        r = row - A->rmap->rstart, p, q, len;
  const PetscInt *i;

  PetscFunctionBegin;
  PetscCheck(r >= 0 && r < A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row %" PetscInt_FMT " is not local: [%" PetscInt_FMT ", %" PetscInt_FMT ")",
             row, A->rmap->rstart, A->rmap->rend);
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

/* The value at a row and column of a problem, NULL where there is none */
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

static PetscErrorCode MatGetValues_Batch(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[], PetscScalar v[])
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
      PetscCheck(cols[c] < A->cmap->N, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Column %" PetscInt_FMT " of %" PetscInt_FMT, cols[c], A->cmap->N);
      entry        = BatchEntry(b, p, rows[r] - A->rmap->rstart - b->first[p], cols[c] - A->cmap->rstart - b->first[p]);
      v[r * n + c] = entry ? *entry : 0.0;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc has marked the matrix as unassembled before it asks for the values, which would leave it so */
static PetscErrorCode MatBatchRefuseValues(Mat A)
{
  Mat_Batch *b = NULL;

  PetscFunctionBegin;
  A->insertmode = NOT_SET_VALUES;
  PetscCall(MatBatchGet(A, &b));
  A->assembled = PETSC_TRUE;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP, "Values of a " MATBATCH " matrix are not set one by one: use MatBatchSetValues(), or convert it to aij");
}

static PetscErrorCode MatSetValues_Batch(Mat A, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[], const PetscScalar v[], InsertMode mode)
{
  return MatBatchRefuseValues(A);
}

static PetscErrorCode MatSetValuesRow_Batch(Mat A, PetscInt row, const PetscScalar v[])
{
  return MatBatchRefuseValues(A);
}

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
  PetscCall(MatBatchGet(A, &b)); /* an optimized PETSc does not ask whether the matrix has been made */
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
  BatchForEntries(b, row, col, v, {
    if (l) *v *= l[row];
    if (r) *v *= r[col];
  });
  if (ll) PetscCall(VecRestoreArrayRead(ll, &l));
  if (rr) PetscCall(VecRestoreArrayRead(rr, &r));
  PetscCall(MatBatchChanged(A, 0, b->p.problems));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern stays: a diagonal can be written only where it is complete */
static PetscErrorCode BatchCheckDiagonal(Mat_Batch *b)
{
  PetscFunctionBegin;
  for (PetscInt p = 0; p < BatchPatterns(&b->p); p++) {
    for (PetscInt r = 0; r < b->first[p + 1] - b->first[p]; r++)
      PetscCheck(BatchEntry(b, p, r, r), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE,
                 "Problem %" PetscInt_FMT " has no diagonal entry in row %" PetscInt_FMT ", and the pattern of a " MATBATCH " matrix does not change", p, r);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchDiagonal(Mat A, const PetscScalar d[], PetscScalar alpha, InsertMode mode)
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
  return MatBatchDiagonal(A, NULL, alpha, ADD_VALUES);
}

static PetscErrorCode MatDiagonalSet_Batch(Mat A, Vec dd, InsertMode mode)
{
  const PetscScalar *d;
  Mat_Batch         *b = NULL;

  PetscFunctionBegin;
  PetscCall(MatBatchGet(A, &b));
  PetscCall(MatBatchCheckVec(A, dd));
  PetscCall(VecGetArrayRead(dd, &d));
  PetscCall(MatBatchDiagonal(A, d, 0.0, mode));
  PetscCall(VecRestoreArrayRead(dd, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatNorm_Batch(Mat A, NormType type, PetscReal *norm)
{
  Mat_Batch     *b   = (Mat_Batch *)A->data;
  PetscReal      sum = 0.0, *all = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCheck(type == NORM_FROBENIUS || type == NORM_1 || type == NORM_INFINITY, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP, "No support for this norm");
  ierr = PetscCalloc1(A->rmap->n, &all);
  ierr = SpMVAgree(PetscObjectComm((PetscObject)A), ierr);
  if (ierr) PetscCall(PetscFree(all));
  PetscCall(ierr);
  BatchForEntries(b, row, col, v, {
    if (type == NORM_FROBENIUS)
      sum += PetscRealPart(PetscConj(*v) * *v);
    else
      all[type == NORM_1 ? col : row] += PetscAbsScalar(*v);
  });
  for (PetscInt r = 0; r < A->rmap->n; r++) sum = PetscMax(sum, all[r]);
  PetscCallMPI(MPI_Allreduce(&sum, norm, 1, MPIU_REAL, type == NORM_FROBENIUS ? MPIU_SUM : MPIU_MAX, PetscObjectComm((PetscObject)A)));
  if (type == NORM_FROBENIUS) *norm = PetscSqrtReal(*norm);
  PetscCall(PetscFree(all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same problems with the same pattern, on this process, whether it is stored once or for each */
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

/* A's values are to go to B, which is to share no more of them. Values lie alike where each problem has its own, whatever is shared of the pattern */
static PetscErrorCode MatBatchAlike(Mat A, Mat B, PetscInt *copies)
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

/* MatHeaderReplace() forgets the name and the prefix of the matrix, and to free the block sizes that it had */
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

/* What has been made of A, B, becomes *M as `reuse` says */
static PetscErrorCode MatBatchGive(Mat A, Mat B, MatReuse reuse, Mat *M)
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

static PetscErrorCode MatBatchWhole(Mat, Mat *);

static PetscErrorCode MatCopy_Batch(Mat A, Mat B, MatStructure str)
{
  Mat_Batch *a = (Mat_Batch *)A->data, *b;
  PetscInt   copies;
  PetscBool  is;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATBATCH, &is));
  if (!is) {
    Mat W;

    PetscCall(MatBatchWhole(A, &W));
    PetscCall(MatCopy(W, B, str));
    PetscCall(MatDestroy(&W));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatBatchAlike(A, B, &copies));
  b = (Mat_Batch *)B->data;
  for (PetscInt p = 0; p < copies; p++) PetscCall(PetscArraycpy(b->a + p * BatchValues(&a->p), a->a, (size_t)BatchValues(&a->p)));
  PetscCall(MatBatchChanged(B, 0, b->p.problems));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAXPY_Batch(Mat Y, PetscScalar alpha, Mat X, MatStructure str)
{
  Mat_Batch *x, *y = (Mat_Batch *)Y->data;
  PetscInt   copies;

  PetscFunctionBegin;
  PetscCall(MatBatchAlike(X, Y, &copies));
  x = (Mat_Batch *)X->data;
  for (PetscInt p = 0; p < copies; p++) {
    for (PetscInt64 k = 0, values = BatchValues(&x->p); k < values; k++) y->a[p * values + k] += alpha * x->a[k];
  }
  PetscCall(MatBatchChanged(Y, 0, y->p.problems));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: a matrix with A's problems and options, and the arrays given, which are freed after an error, here or (ierr) while they were made */
static PetscErrorCode MatBatchLike(Mat A, PetscErrorCode ierr, PetscInt *i, PetscInt *j, PetscScalar *v, Mat *B)
{
  Mat_Batch *a     = (Mat_Batch *)A->data;
  PetscInt  *first = NULL;

  PetscFunctionBegin;
  if (!ierr) ierr = PetscMalloc1(a->p.problems + 1, &first);
  if (!ierr) PetscCall(PetscArraycpy(first, a->first, a->p.problems + 1));
  ierr = MatBatchMake(PetscObjectComm((PetscObject)A), ierr, a->p.problems, first, i, j, v, (MatBatchSharing)a->p.sharing, PETSC_TRUE, B);
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

static PetscErrorCode MatDuplicate_Batch(Mat A, MatDuplicateOption op, Mat *B)
{
  Mat_Batch     *a    = (Mat_Batch *)A->data;
  const size_t   rows = (size_t)BatchPatternRows(&a->p), entries = (size_t)BatchPatternEntries(&a->p), values = (size_t)BatchValues(&a->p);
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
  PetscCall(MatBatchLike(A, ierr, i, j, v, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatTranspose_Batch(Mat A, MatReuse reuse, Mat *B)
{
  Mat_Batch     *a       = (Mat_Batch *)A->data;
  const PetscInt entries = BatchPatternEntries(&a->p);
  PetscInt      *i = NULL, *j = NULL, *from = NULL;
  PetscScalar   *v = NULL;
  Mat            C;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(BatchTranspose(&a->p, &i, &j, &from));
  SpMVCall(PetscMalloc1((size_t)BatchValues(&a->p), &v));
  for (PetscInt p = 0; p < (a->p.sharing == BATCH_SHARE_PATTERN ? a->p.problems : 1); p++) {
    for (PetscInt k = 0; k < entries; k++) v[(PetscInt64)p * entries + k] = a->a[(PetscInt64)p * entries + from[k]];
  }
done:
  PetscCall(PetscFree(from));
  PetscCall(MatBatchLike(A, ierr, i, j, v, &C));
  PetscCall(MatBatchGive(A, C, reuse, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetInfo_Batch(Mat A, MatInfoType type, MatInfo *info)
{
  Mat_Batch     *b = NULL;
  PetscLogDouble sum[2]; /* nonzeros, bytes */

  PetscFunctionBegin;
  PetscCall(MatBatchGet(A, &b));
  sum[0] = (PetscLogDouble)BatchNonzeros(&b->p);
  sum[1] = ((PetscLogDouble)BatchPatternEntries(&b->p) + (PetscLogDouble)BatchPatternRows(&b->p) + (PetscLogDouble)b->p.problems) *
               (PetscLogDouble)sizeof(PetscInt) +
           (PetscLogDouble)BatchValues(&b->p) * (PetscLogDouble)sizeof(PetscScalar);
  PetscCall(PetscMemzero(info, sizeof(*info)));
  info->block_size = 1.0;
  if (type != MAT_LOCAL)
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_DOUBLE, type == MAT_GLOBAL_MAX ? MPI_MAX : MPI_SUM, PetscObjectComm((PetscObject)A)));
  info->nz_allocated = info->nz_used = sum[0];
  info->memory                       = sum[1];
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

    PetscCall(PetscArraycmp(a->a + BatchValueShift(&a->p, p) + i[0], b->a + BatchValueShift(&b->p, p) + k[0], (size_t)(i[n] - i[0]), equal));
  }
  mine = *equal;
  PetscCallMPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  *equal = (PetscBool)all;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- AIJ, for what it does better */

/* The CSR arrays of this process, columns from `shift` on; to free, after an error, too */
static PetscErrorCode MatBatchExpand(Mat A, PetscInt shift, PetscInt **i, PetscInt **j, PetscScalar **v)
{
  Mat_Batch *b = NULL;
  PetscInt64 nz;
  PetscInt   at = 0;

  PetscFunctionBegin;
  PetscCall(MatBatchGet(A, &b));
  nz = BatchNonzeros(&b->p);
  PetscCheck(nz <= PETSC_MAX_INT, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "%" PetscInt64_FMT " nonzeros on this process are more than AIJ counts with a PetscInt: use more processes, or a PETSc with 64-bit indices", nz);
  PetscCall(PetscMalloc1((size_t)A->rmap->n + 1, i));
  PetscCall(PetscMalloc1((size_t)nz, j));
  PetscCall(PetscMalloc1((size_t)nz, v));
  (*i)[0] = 0;
  for (PetscInt p = 0; p < b->p.problems; p++) {
    const PetscInt    *o = BatchOffsets(&b->p, p), f = b->first[p], n = b->first[p + 1] - f;
    const PetscScalar *a = b->a + BatchValueShift(&b->p, p);

    for (PetscInt r = 0; r < n; r++) {
      for (PetscInt k = o[r]; k < o[r + 1]; k++, at++) {
        (*j)[at] = shift + f + b->j[k];
        (*v)[at] = a[k];
      }
      (*i)[f + r + 1] = at;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchToAIJ(Mat A, MPI_Comm comm, PetscInt shift, Mat *B)
{
  PetscInt      *i = NULL, *j = NULL, bs;
  PetscScalar   *v = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = SpMVAgree(comm, MatBatchExpand(A, shift, &i, &j, &v));
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
  PetscCall(MatSeqAIJSetPreallocationCSR(*B, i, j, v)); /* the one that does not apply does nothing */
  PetscCall(MatMPIAIJSetPreallocationCSR(*B, i, j, v));
  PetscCall(PetscFree(i));
  PetscCall(PetscFree(j));
  PetscCall(PetscFree(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The local part, in line with the matrix, whose own it is */
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
    PetscInt     at = 0;

    PetscCall(MatSeqAIJGetArray(b->aij, &v));
    BatchForEntries(b, row, col, from, {
      (void)row;
      (void)col;
      v[at++] = *from;
    });
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

#if defined(PETSCSPMV_HAVE_CUDA)
/* For PCVPBJACOBI on a GPU, which wants AIJCUSPARSE */
static PetscErrorCode MatGetVBlockDiagonal_Batch(Mat A, Mat *B)
{
  PetscFunctionBegin;
  if (!A->rmap->n) { /* one of the device would make PCVPBJACOBI leave this rank's vectors alone: they keep norms that the other ranks compute anew */
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
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  PetscCall(MatSetBlockSizesFromMats(B, A, A));
  PetscCall(MatInvertBlockDiagonal(B, values));
  A->factorerrortype = B->factorerrortype;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatInvertVariableBlockDiagonal_Batch(Mat A, PetscInt nblocks, const PetscInt *sizes, PetscScalar *values)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  B->erroriffailure = A->erroriffailure;
  PetscCall(MatInvertVariableBlockDiagonal(B, nblocks, sizes, values));
  A->factorerrortype = B->factorerrortype;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows or columns of the pattern, on one process */
#define BatchIJ(What)                                                                                                                             \
  static PetscErrorCode MatGet##What##IJ_Batch(Mat A, PetscInt shift, PetscBool symmetric, PetscBool inode, PetscInt *n, const PetscInt *i[],     \
                                               const PetscInt *j[], PetscBool *done)                                                              \
  {                                                                                                                                               \
    Mat         B;                                                                                                                                \
    PetscMPIInt size;                                                                                                                             \
                                                                                                                                                  \
    PetscFunctionBegin;                                                                                                                           \
    *done = PETSC_FALSE;                                                                                                                          \
    PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));                                                                          \
    if (size > 1) PetscFunctionReturn(PETSC_SUCCESS);                                                                                             \
    PetscCall(MatBatchGetAIJ(A, &B));                                                                                                             \
    PetscCall(MatGet##What##IJ(B, shift, symmetric, inode, n, i, j, done));                                                                       \
    PetscFunctionReturn(PETSC_SUCCESS);                                                                                                           \
  }                                                                                                                                               \
  static PetscErrorCode MatRestore##What##IJ_Batch(Mat A, PetscInt shift, PetscBool symmetric, PetscBool inode, PetscInt *n, const PetscInt *i[], \
                                                   const PetscInt *j[], PetscBool *done)                                                          \
  {                                                                                                                                               \
    Mat_Batch *b = (Mat_Batch *)A->data;                                                                                                          \
                                                                                                                                                  \
    PetscFunctionBegin;                                                                                                                           \
    if (b->aij) PetscCall(MatRestore##What##IJ(b->aij, shift, symmetric, inode, n, i, j, done));                                                  \
    PetscFunctionReturn(PETSC_SUCCESS);                                                                                                           \
  }
/* clang-format off */
BatchIJ(Row)
BatchIJ(Column)
    /* clang-format on */

    /* Rows that follow each other and have the same columns, inodes, come as one row from MatGetRowIJ(), as they do from AIJ: orderings and colorings by these rows
   are made into those of single rows by the two functions that AIJ has for this */
    static PetscErrorCode MatInodeAdjustForInodes_Batch(Mat A, IS *row, IS *col)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  PetscCall(MatInodeAdjustForInodes(B, row, col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatColoringPatch_Batch(Mat A, PetscInt colors, PetscInt n, ISColoringValue color[], ISColoring *coloring)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  PetscCall(MatColoringPatch(B, colors, n, color, coloring));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PCEISENSTAT multiplies with the blocks that relaxation inverts: AIJ has this where it has inodes, and only there */
static PetscErrorCode MatMultDiagonalBlock_Batch(Mat A, Vec x, Vec y)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatBatchCheckVec(A, x));
  PetscCall(MatBatchCheckVec(A, y));
  PetscCall(MatBatchGetAIJ(A, &B));
  PetscCall(MatMultDiagonalBlock(B, x, y)); /* of the local arrays, also of parallel vectors */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatHasOperation_Batch(Mat A, MatOperation op, PetscBool *has)
{
  Mat B;

  PetscFunctionBegin;
  *has = (PetscBool)(((void **)A->ops)[op] != NULL);
  if (op == MATOP_MULT_DIAGONAL_BLOCK) {
    PetscCall(MatBatchGetAIJ(A, &B));
    PetscCall(MatHasOperation(B, op, has));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Relaxation never leaves a problem, so that the local part's is that of the matrix. All its * lits sweeps are local; SeqAIJ does only `its` where it has inodes */
static PetscErrorCode MatSOR_Batch(Mat A, Vec bb, PetscReal omega, MatSORType flag, PetscReal shift, PetscInt its, PetscInt lits, Vec xx)
{
  Mat B;
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

static PetscErrorCode MatBatchWhole(Mat A, Mat *B)
{
  return MatBatchToAIJ(A, PetscObjectComm((PetscObject)A), A->cmap->rstart, B);
}

/* AIJ reads what is beyond the matrix where an index set does not fit */
static PetscErrorCode MatBatchCheckIS(Mat A, PetscInt n, const IS is[])
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) {
    PetscInt len, min, max;

    PetscCall(ISGetLocalSize(is[k], &len));
    PetscCall(ISGetMinMax(is[k], &min, &max));
    PetscCheck(!len || (min >= 0 && max < A->rmap->N), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
               "Index set with numbers from %" PetscInt_FMT " to %" PetscInt_FMT ", for a matrix of %" PetscInt_FMT " rows and columns", min, max, A->rmap->N);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What only looks at the matrix, with a copy of all of it in AIJ, B; n index sets of rows, and of columns, are checked first */
#define BatchByAIJ(Name, parameters, n, rows, cols, call) \
  static PetscErrorCode Name##_Batch parameters           \
  {                                                       \
    Mat            B;                                     \
    PetscErrorCode ierr;                                  \
                                                          \
    PetscFunctionBegin;                                   \
    PetscCall(MatBatchCheckIS(A, n, rows));               \
    PetscCall(MatBatchCheckIS(A, n, cols));               \
    PetscCall(MatBatchWhole(A, &B));                      \
    ierr = call;                                          \
    PetscCall(MatDestroy(&B));                            \
    PetscCall(ierr);                                      \
    PetscFunctionReturn(PETSC_SUCCESS);                   \
  }
/* clang-format off */
BatchByAIJ(MatCreateSubMatrices, (Mat A, PetscInt n, const IS rows[], const IS cols[], MatReuse reuse, Mat *sub[]), n, rows, cols, MatCreateSubMatrices(B, n, rows, cols, reuse, sub))
BatchByAIJ(MatCreateSubMatricesMPI, (Mat A, PetscInt n, const IS rows[], const IS cols[], MatReuse reuse, Mat *sub[]), n, rows, cols, MatCreateSubMatricesMPI(B, n, rows, cols, reuse, sub))
BatchByAIJ(MatCreateSubMatrix, (Mat A, IS rows, IS cols, MatReuse reuse, Mat *sub), 1, &rows, &cols, MatCreateSubMatrix(B, rows, cols, reuse, sub))
BatchByAIJ(MatIncreaseOverlap, (Mat A, PetscInt n, IS is[], PetscInt overlap), n, is, is, MatIncreaseOverlap(B, n, is, overlap))
BatchByAIJ(MatPermute, (Mat A, IS rows, IS cols, Mat *M), 1, &rows, &cols, MatPermute(B, rows, cols, M))
BatchByAIJ(MatGetRowMax, (Mat A, Vec v, PetscInt where[]), 0, NULL, NULL, MatGetRowMax(B, v, where))
BatchByAIJ(MatGetRowMin, (Mat A, Vec v, PetscInt where[]), 0, NULL, NULL, MatGetRowMin(B, v, where))
BatchByAIJ(MatGetRowMaxAbs, (Mat A, Vec v, PetscInt where[]), 0, NULL, NULL, MatGetRowMaxAbs(B, v, where))
BatchByAIJ(MatGetRowMinAbs, (Mat A, Vec v, PetscInt where[]), 0, NULL, NULL, MatGetRowMinAbs(B, v, where))
BatchByAIJ(MatGetColumnReductions, (Mat A, PetscInt type, PetscReal *r), 0, NULL, NULL, MatGetColumnReductions(B, type, r))
BatchByAIJ(MatFindZeroDiagonals, (Mat A, IS *rows), 0, NULL, NULL, (*B->ops->findzerodiagonals)(B, rows))
BatchByAIJ(MatFindNonzeroRows, (Mat A, IS *rows), 0, NULL, NULL, (*B->ops->findnonzerorows)(B, rows))
BatchByAIJ(MatIsSymmetric, (Mat A, PetscReal tol, PetscBool *is), 0, NULL, NULL, MatIsSymmetric(B, tol, is))
BatchByAIJ(MatIsHermitian, (Mat A, PetscReal tol, PetscBool *is), 0, NULL, NULL, MatIsHermitian(B, tol, is))
/* clang-format on */

/* Only PCGAMG asks for it, which then makes interpolations of the same type */
#if PETSC_VERSION_LT(3, 19, 0)
                                                        static PetscErrorCode
    MatCreateGraph_Batch(Mat A, PetscBool symmetric, PetscBool scale, PetscReal filter, Mat *G)
#else
                                                        static PetscErrorCode
    MatCreateGraph_Batch(Mat A, PetscBool symmetric, PetscBool scale, PetscReal filter, PetscInt n, PetscInt index[], Mat *G)
#endif
{
  PetscFunctionBegin;
  SETERRQ(PetscObjectComm((PetscObject)A), PETSC_ERR_SUP, "PCGAMG makes interpolations of the matrix' type, which cannot be " MATBATCH ": convert it to aij");
}

/*
  Products of matrices are AIJ's: while its functions run, copies in AIJ take the place of the factors that are batches. The copies and what the functions were are
  composed with the product, whose later numeric phases bring the copies up to date. A batch by a dense matrix is left to PETSc, which multiplies column by column.
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
    PetscCall(MatBatchWhole(batch[k], &W));
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
  PetscCall(PetscObjectQueryFunction((PetscObject)C, "MatBatchProductNumeric_C", &numeric));
  PetscCheck(numeric, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The product has lost its numeric function");
  PetscCall(MatBatchProductCall(C, numeric));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_Batch(Mat C)
{
  PetscErrorCode (*symbolic)(Mat);

  PetscFunctionBegin;
  PetscCall(PetscObjectQueryFunction((PetscObject)C, "MatBatchProductSymbolic_C", &symbolic));
  PetscCheck(symbolic, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The product has lost its symbolic function");
  PetscCall(MatBatchProductCall(C, symbolic));
  PetscCall(PetscObjectComposeFunction((PetscObject)C, "MatBatchProductNumeric_C", C->ops->productnumeric));
  C->ops->productnumeric = MatProductNumeric_Batch;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSetFromOptions_Batch(Mat C)
{
  PetscBool dense = PETSC_FALSE;

  PetscFunctionBegin;
  if (C->product->type == MATPRODUCT_AB || C->product->type == MATPRODUCT_AtB)
    PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)C->product->B, &dense, MATSEQDENSE, MATMPIDENSE, ""));
  if (dense) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatBatchProductCall(C, MatProductSetFromOptions));
  PetscCall(PetscObjectComposeFunction((PetscObject)C, "MatBatchProductSymbolic_C", C->ops->productsymbolic));
  C->ops->productsymbolic = MatProductSymbolic_Batch;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Factors are AIJ's: its symbolic and numeric functions are called with the local part in place of the matrix. What they were is composed with the factor.
*/
#define BatchFactorCall(F, name, args)                                                        \
  do {                                                                                        \
    PetscCall(PetscObjectQueryFunction((PetscObject)(F), name, &f));                          \
    PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The factor has lost the function " name); \
    PetscCall((*f)args);                                                                      \
  } while (0)

static PetscErrorCode MatLUFactorNumeric_Batch(Mat F, Mat A, const MatFactorInfo *info)
{
  PetscErrorCode (*f)(Mat, Mat, const MatFactorInfo *);
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  BatchFactorCall(F, "MatBatchNumeric_C", (F, B, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After a symbolic function has set the numeric one */
static PetscErrorCode MatBatchHookNumeric(Mat F)
{
  PetscErrorCode (**op)(Mat, Mat, const MatFactorInfo *) =
      F->factortype == MAT_FACTOR_CHOLESKY || F->factortype == MAT_FACTOR_ICC ? &F->ops->choleskyfactornumeric : &F->ops->lufactornumeric;

  PetscFunctionBegin;
  if (*op != MatLUFactorNumeric_Batch) PetscCall(PetscObjectComposeFunction((PetscObject)F, "MatBatchNumeric_C", *op));
  *op = MatLUFactorNumeric_Batch;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatLUFactorSymbolic_Batch(Mat F, Mat A, IS row, IS col, const MatFactorInfo *info)
{
  PetscErrorCode (*f)(Mat, Mat, IS, IS, const MatFactorInfo *);
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  BatchFactorCall(F, "MatBatchSymbolic_C", (F, B, row, col, info));
  PetscCall(MatBatchHookNumeric(F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCholeskyFactorSymbolic_Batch(Mat F, Mat A, IS perm, const MatFactorInfo *info)
{
  PetscErrorCode (*f)(Mat, Mat, IS, const MatFactorInfo *);
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatBatchGetAIJ(A, &B));
  BatchFactorCall(F, "MatBatchSymbolic_C", (F, B, perm, info));
  PetscCall(MatBatchHookNumeric(F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchGetFactor(Mat A, MatSolverType solver, MatFactorType type, Mat *F)
{
  Mat         B;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCheck(size == 1, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP,
             "Factors of a " MATBATCH " matrix on several processes: use -pc_type bjacobi, which is exact with -sub_pc_type lu");
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
  return MatBatchGetFactor(A, MATSOLVERPETSC, type, F);
}

#if defined(PETSCSPMV_HAVE_CUDA)
static PetscErrorCode MatGetFactor_batch_cusparse(Mat A, MatFactorType type, Mat *F)
{
  PetscBool device;

  PetscFunctionBegin;
  PetscCall(SpMVUseDevice(PETSC_COMM_SELF, &device));
  PetscCall(MatBatchGetFactor(A, device && !A->boundtocpu ? MATSOLVERCUSPARSE : MATSOLVERPETSC, type, F));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* ---------------------------------------------------------------- conversion */

static PetscErrorCode MatConvert_Batch(Mat A, MatType type, MatReuse reuse, Mat *M)
{
  PetscBool aij;
  Mat       B;

  PetscFunctionBegin;
  PetscCall(MatBatchWhole(A, &B));
  PetscCall(PetscStrcmp(type, MATAIJ, &aij));
  if (!aij) PetscCall(PetscStrcmp(type, ((PetscObject)B)->type_name, &aij));
  if (!aij) PetscCall(MatConvert(B, type, MAT_INPLACE_MATRIX, &B));
  PetscCall(MatSetVariableBlockSizes(B, A->nblocks, A->bsizes)); /* for the way back */
  PetscCall(MatBatchGive(A, B, reuse, M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sizes of the smallest diagonal blocks of consecutive rows that hold all entries */
static PetscErrorCode RowsFindBlocks(const Rows *R, PetscInt *problems, PetscInt **first)
{
  const PetscInt m    = R->rows;
  PetscInt      *open = NULL, count = 0, depth = 0;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(PetscCalloc1((size_t)m + 1, &open)); /* intervals from a row's least to its largest index that begin, less those that end, here */
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

/* The local rows of A, which B shows, cut into problems: A's variable blocks or else the smallest; R and `first` are to free after an error, too */
static PetscErrorCode RowsOfBlocks(Mat A, Mat B, Rows *R, PetscInt *problems, PetscInt **first)
{
  const PetscInt rs = A->rmap->rstart;
  PetscInt       outside;

  PetscFunctionBegin;
  PetscCheck(A->rmap->n == A->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
             "%" PetscInt_FMT " local rows and %" PetscInt_FMT " local columns: the problems of a batch are square", A->rmap->n, A->cmap->n);
  PetscCall(RowsCreate(A->rmap->n, R));
  PetscCall(RowsReserve(R, 1));
  PetscCall(RowsAdd(R, B, &outside));
  PetscCheck(outside < 0, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG,
             "Row %" PetscInt_FMT " has columns that another process owns: each process must own whole diagonal blocks, see MatSetSizes()", outside);
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
                   "The entry in row %" PetscInt_FMT ", column %" PetscInt_FMT " is outside of the diagonal blocks of MatSetVariableBlockSizes()", rs + r,
                   rs + R->j[k]);
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
  ierr = RowsOfBlocks(A, B, &R, &problems, &first);
  PetscCall(MatDestroy(&B));
  PetscCall(MatBatchCreateOwn(PetscObjectComm((PetscObject)A), ierr, problems, first, &R, &C));
  PetscCall(MatSetBlockSizesFromMats(C, A, A));
  PetscCall(MatBatchGive(A, C, reuse, M));
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

/* ---------------------------------------------------------------- options, views, life */

static PetscErrorCode MatBatchStats(Mat A, BatchStats *stats)
{
  Mat_Batch *b = (Mat_Batch *)A->data;

  PetscFunctionBegin;
#if defined(PETSCSPMV_HAVE_CUDA)
  if (b->device && !A->boundtocpu) {
    cudaStream_t stream;

    PetscCall(SpMVGetStream(&stream));
    PetscCall(MatBatchUpdate_CUDA(A, 0, stream));
    if (!b->cuda[0].plain) {
      BatchCudaStats(b->cuda[0].batch, stats);
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
#endif
  PetscCall(MatBatchUpdate_Host(A));
  BatchHostStats(b->host, stats);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
   MatBatchGetInfo - asks what the calling process holds of a `MATBATCH` matrix

   Not Collective

   Input Parameter:
.  A - the matrix

   Output Parameter:
.  info - see `MatBatchInfo`

   Level: intermediate

   Note:
   Lays out what the kernel needs if no product has done so yet. `-mat_view ::ascii_info` prints the same.

.seealso: `MATBATCH`, `MatBatchInfo`
@*/
PetscErrorCode MatBatchGetInfo(Mat A, MatBatchInfo *info)
{
  Mat_Batch *b = NULL;
  BatchStats stats;

  PetscFunctionBegin;
  PetscAssertPointer(info, 2);
  PetscCall(MatBatchGet(A, &b));
  PetscCall(MatBatchStats(A, &stats));
  PetscCall(PetscMemzero(info, sizeof(*info)));
  info->problems = b->p.problems;
  for (PetscInt p = 0; p < b->p.problems; p++) {
    const PetscInt n = b->first[p + 1] - b->first[p];

    info->smallest = p ? PetscMin(info->smallest, n) : n;
    info->largest  = PetscMax(info->largest, n);
  }
  info->nonzeros = BatchNonzeros(&b->p);
  info->sharing  = (MatBatchSharing)b->p.sharing;
  info->stored   = stats.stored;
  info->bytes    = stats.bytes;
  info->kernel   = stats.kernel;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatView_Batch(Mat A, PetscViewer viewer)
{
  PetscBool         ascii;
  PetscViewerFormat format;
  MatBatchInfo      info;
  Mat               B;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (ascii && format == PETSC_VIEWER_ASCII_FACTOR_INFO) PetscFunctionReturn(PETSC_SUCCESS);
  if (ascii && (format == PETSC_VIEWER_ASCII_INFO || format == PETSC_VIEWER_ASCII_INFO_DETAIL)) {
    static const char *const shared[] = {"", ", pattern shared", ", pattern and values shared"};
    const MPI_Comm           comm     = PetscObjectComm((PetscObject)A);
    PetscInt64               sum[4], most[2];
    PetscInt                 M;

    PetscCall(SpMVAgree(comm, MatBatchGetInfo(A, &info)));
    PetscCall(MatGetSize(A, &M, NULL));
    sum[0]  = info.problems;
    sum[1]  = info.nonzeros;
    sum[2]  = info.stored;
    sum[3]  = info.bytes;
    most[0] = info.problems ? -(PetscInt64)info.smallest : -(PetscInt64)PETSC_MAX_INT;
    most[1] = info.largest;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 4, MPIU_INT64, MPI_SUM, comm));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, most, 2, MPIU_INT64, MPI_MAX, comm));
    PetscCall(PetscViewerASCIIPrintf(viewer,
                                     "  batch of %" PetscInt64_FMT " problems of %" PetscInt64_FMT " to %" PetscInt64_FMT " rows, %.1f entries a row%s\n",
                                     sum[0], sum[0] ? -most[0] : 0, most[1], (double)sum[1] / (double)PetscMax(1, M), shared[info.sharing]));
    PetscCall(PetscViewerASCIIPrintf(viewer, "  kernel: %s, %" PetscInt64_FMT " values stored, %.2f bytes an entry\n", info.kernel, sum[2],
                                     (double)sum[3] / (double)PetscMax(1, sum[1])));
  } else { /* the entries, as AIJ shows them */
    PetscCall(MatBatchWhole(A, &B));
    PetscCall(PetscObjectSetName((PetscObject)B, ((PetscObject)A)->name));
    PetscCall((*B->ops->view)(B, viewer));
    PetscCall(MatDestroy(&B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetFromOptions_Batch(Mat A, SpMVOptionItems PetscOptionsObject)
{
  Mat_Batch  *b      = (Mat_Batch *)A->data;
  BatchKernel kernel = b->kernel;

  PetscFunctionBegin;
  (void)PetscOptionsObject;
  { /* under a title of its own */
    SpMVOptionsBegin(A, "Batch matrix options", "MATBATCH");
    PetscCall(PetscOptionsEnum("-mat_batch_kernel", "Product", "MATBATCH", BatchKernelTypes, (PetscEnum)kernel, (PetscEnum *)&kernel, NULL));
    PetscOptionsEnd();
  }
  if (kernel != b->kernel) {
    b->kernel = kernel;
    if (b->first) PetscCall(MatBatchForget(b));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetUp_Batch(Mat A)
{
  Mat_Batch *b = NULL;

  return MatBatchGet(A, &b); /* says how such a matrix is made */
}

/* The owner of arrays used in place has changed them: MatAssemblyEnd() increases the state */
static PetscErrorCode MatAssemblyEnd_Batch(Mat A, MatAssemblyType type)
{
  return MatSetUp_Batch(A);
}

#if defined(PETSCSPMV_HAVE_CUDA)
static PetscErrorCode MatBindToCPU_Batch(Mat A, PetscBool bind)
{
  Mat_Batch *b = (Mat_Batch *)A->data;

  PetscFunctionBegin;
  A->boundtocpu = bind;
  PetscCall(PetscFree(A->defaultvectype));
  PetscCall(PetscStrallocpy(b->device && !bind ? VECCUDA : VECSTANDARD, &A->defaultvectype));
  PetscCall(MatDestroy(&b->aij)); /* the other kind from now on */
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode MatDestroy_Batch(Mat A)
{
  Mat_Batch *b = (Mat_Batch *)A->data;

  PetscFunctionBegin;
  PetscCall(MatBatchForget(b));
  PetscCall(MatDestroy(&b->aij));
  PetscCall(PetscFree(b->first));
  if (b->own_pattern) {
    PetscCall(PetscFree(b->i));
    PetscCall(PetscFree(b->j));
  }
  if (b->own_values) PetscCall(PetscFree(b->a));
  PetscCall(PetscFree(b->columns));
  PetscCall(PetscFree(A->data));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatInodeAdjustForInodes_C", NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatProductSetFromOptions_anytype_C", NULL));
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATBATCH - "batch" - the block-diagonal matrix of many small square problems, each with its own size, pattern and values: one product multiplies all

   Options Database Keys:
+  -mat_type batch - sets the type in `MatSetFromOptions()`, before `MatLoad()`
-  -mat_batch_kernel <auto,slices,sellp,coo,csr-scalar,csr-vector,csr-smart,csr-i,ell> - what multiplies; auto (the default) decides by the problems

   Level: beginner

   Notes:
   Made by `MatCreateBatch()` from the CSR arrays of all problems, by `MatCreateBatchFromMats()`, or by `MatConvert()` from a block-diagonal matrix: its blocks are
   those of `MatSetVariableBlockSizes()`, or else the smallest that hold all entries. `MatConvert()` to `MATAIJ` leads back.

   Each process owns whole problems, so that a product needs no communication. Where PETSc has CUDA and the machine a GPU, products of vectors on the GPU run there, and
   `MatCreateVecs()` makes such vectors.

   The problems' patterns do not change. Values do, by `MatBatchSetValues()`, and by `MatScale()`, `MatDiagonalScale()`, `MatShift()`, `MatAXPY()`, ...

   `PCVPBJACOBI` inverts the problems; factorizations, `PCBJACOBI`, `PCASM`, `PCSOR` and products of matrices work on a copy in AIJ. `PCGAMG` needs type aij itself: see
   `MatConvert()`.

   The kernels coo to ell are the paper's; slices and sellp, between which auto chooses, are described in docs/batch.md.

   References:
.  * - H. Anzt, G. Collins, J. Dongarra, G. Flegar and E. S. Quintana-Orti, Flexible Batched Sparse Matrix-Vector Product on GPUs, 2017

.seealso: `MatCreateBatch()`, `MatCreateBatchFromMats()`, `MatBatchSetValues()`, `MatBatchGetProblem()`, `MatBatchGetInfo()`
M*/
static PetscErrorCode MatCreate_Batch(Mat A)
{
  Mat_Batch     *b = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = PetscNew(&b);
  ierr = SpMVAgree(PetscObjectComm((PetscObject)A), ierr);
  if (ierr) PetscCall(PetscFree(b)); /* another rank has none */
  PetscCall(ierr);
  A->data = b;
  PetscCall(SpMVUseDevice(PetscObjectComm((PetscObject)A), &b->device));
  A->ops->setup                       = MatSetUp_Batch;
  A->ops->assemblyend                 = MatAssemblyEnd_Batch;
  A->ops->getrow                      = MatGetRow_Batch;
  A->ops->restorerow                  = MatRestoreRow_Batch;
  A->ops->getvalues                   = MatGetValues_Batch;
  A->ops->setvalues                   = MatSetValues_Batch;
  A->ops->setvaluesrow                = MatSetValuesRow_Batch;
  A->ops->mult                        = MatMult_Batch;
  A->ops->multadd                     = MatMultAdd_Batch;
  A->ops->multtranspose               = MatMultTranspose_Batch;
  A->ops->multtransposeadd            = MatMultTransposeAdd_Batch;
  A->ops->multhermitiantranspose      = MatMultHermitianTranspose_Batch;
  A->ops->multhermitiantransposeadd   = MatMultHermitianTransposeAdd_Batch;
  A->ops->getdiagonal                 = MatGetDiagonal_Batch;
  A->ops->scale                       = MatScale_Batch;
  A->ops->diagonalscale               = MatDiagonalScale_Batch;
  A->ops->shift                       = MatShift_Batch;
  A->ops->diagonalset                 = MatDiagonalSet_Batch;
  A->ops->zeroentries                 = MatZeroEntries_Batch;
  A->ops->conjugate                   = MatConjugate_Batch;
  A->ops->norm                        = MatNorm_Batch;
  A->ops->copy                        = MatCopy_Batch;
  A->ops->axpy                        = MatAXPY_Batch;
  A->ops->duplicate                   = MatDuplicate_Batch;
  A->ops->transpose                   = MatTranspose_Batch;
  A->ops->equal                       = MatEqual_Batch;
  A->ops->getinfo                     = MatGetInfo_Batch;
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
  A->ops->convert                     = MatConvert_Batch;
  A->ops->convertfrom                 = MatConvertFrom_Batch;
  A->ops->load                        = MatLoad_Batch;
  A->ops->view                        = MatView_Batch;
  A->ops->setfromoptions              = MatSetFromOptions_Batch;
  A->ops->destroy                     = MatDestroy_Batch;
#if defined(PETSCSPMV_HAVE_CUDA)
  A->ops->bindtocpu = MatBindToCPU_Batch;
  #if PETSC_VERSION_GE(3, 26, 0)
  if (b->device) A->ops->getvblockdiagonal = MatGetVBlockDiagonal_Batch;
  #endif
  PetscCall(MatBindToCPU_Batch(A, (PetscBool)!b->device)); /* MatCreate() has said that it is bound */
#endif
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatInodeAdjustForInodes_C", MatInodeAdjustForInodes_Batch));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatProductSetFromOptions_anytype_C", MatProductSetFromOptions_Batch));
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, MATBATCH));
  PetscCall(MatBatchGetKernel(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatBatchRegister(void)
{
  const MatFactorType types[] = {MAT_FACTOR_LU, MAT_FACTOR_ILU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ICC};

  PetscFunctionBegin;
  PetscCall(MatRegister(MATBATCH, MatCreate_Batch));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
#if defined(PETSCSPMV_HAVE_CUDA)
    PetscBool device;

    PetscCall(SpMVUseDevice(PETSC_COMM_SELF, &device));
    if (device) PetscCall(MatSolverTypeRegister(MATSOLVERCUSPARSE, MATBATCH, types[k], MatGetFactor_batch_cusparse)); /* first: the default */
#endif
    PetscCall(MatSolverTypeRegister(MATSOLVERPETSC, MATBATCH, types[k], MatGetFactor_batch_petsc));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
