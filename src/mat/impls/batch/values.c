/*
  The problems of a batch, and their values.
*/
#include "batch.h"

/* ---------------------------------------------------------------- the problems of a matrix */

static const char MatBatchContainer[] = "PetscSpMVBatch";

PetscErrorCode MatBatchFree(MatBatch **b)
{
  PetscFunctionBegin;
  if (*b) PetscCall(PetscFree((*b)->columns));
  PetscCall(PetscFree(*b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchDestroyCtx(SpMVCtx ctx)
{
  MatBatch *b = (MatBatch *)SpMVCtxGet(ctx);

  return MatBatchFree(&b);
}

PetscErrorCode MatBatchNew(PetscInt problems, MatBatch **b)
{
  const size_t bytes = sizeof(**b) + ((size_t)problems + 1) * sizeof(PetscInt);

  PetscFunctionBegin;
  PetscCall(PetscMalloc(bytes, b));
  PetscCall(PetscMemzero(*b, bytes));
  (*b)->problems = problems;
  (*b)->first    = (PetscInt *)(*b + 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatBatchSet(Mat A, MatBatch *b)
{
  return SpMVDataSet((PetscObject)A, MatBatchContainer, b, MatBatchDestroyCtx);
}

/* Gives B, which was created from A, the problems of A */
PetscErrorCode MatBatchKeep(Mat A, Mat B)
{
  MatBatch *a, *b;

  PetscFunctionBegin;
  if (A->bsizes && !B->bsizes) { /* PETSc's MatDuplicate() drops them */
    B->nblocks = A->nblocks;
    PetscCall(
        PetscMalloc1(PetscMax(1, A->nblocks), &B->bsizes)); /* on all processes or on none: MatView() needs that */
    PetscCall(PetscArraycpy(B->bsizes, A->bsizes, A->nblocks));
  }
  PetscCall(SpMVDataGet((PetscObject)A, MatBatchContainer, &a));
  if (!a || a->found) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatBatchNew(a->problems, &b));
  PetscCall(PetscArraycpy(b->first, a->first, a->problems + 1));
  PetscCall(MatBatchSet(B, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The blocks set by MatSetVariableBlockSizes(), or the smallest diagonal blocks of consecutive rows that contain all
   entries */
static PetscErrorCode MatBatchFindProblems(Mat A, const SpMVCSR *csr, MatBatch **b)
{
  PetscInt n = 0, most = -1, *first; /* most: the largest index in the rows before */

  PetscFunctionBegin;
  PetscCall(MatBatchNew(A->nblocks > 0 ? A->nblocks : csr->m, b));
  (*b)->found = PETSC_TRUE;
  first       = (*b)->first;
  if (A->nblocks > 0) {
    for (PetscInt p = 0; p < A->nblocks; p++) first[p + 1] = first[p] + A->bsizes[p];
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt r = 0; r < csr->m; r++) {
    if (r > most) first[n++] = r;
    most = PetscMax(most, r);
    for (PetscInt k = csr->i[r]; k < csr->i[r + 1]; k++) {
      while (csr->j[k] < first[n - 1]) n--; /* joins the blocks */
      most = PetscMax(most, csr->j[k]);
    }
  }
  first[n]       = csr->m;
  (*b)->problems = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks that problems contain all entries */
static PetscErrorCode MatBatchCheckBlocks(Mat A, const SpMVCSR *csr, const MatBatch *b)
{
  PetscFunctionBegin;
  for (PetscInt p = 0; p < b->problems; p++) {
    const PetscInt first = b->first[p], end = b->first[p + 1];

    for (PetscInt r = first; r < end; r++) {
      for (PetscInt k = csr->i[r]; k < csr->i[r + 1]; k++)
        PetscCheck(csr->j[k] >= first && csr->j[k] < end, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG,
                   "The entry in row %" PetscInt_FMT ", column %" PetscInt_FMT
                   " is outside of the problems, which are the blocks of MatSetVariableBlockSizes()",
                   A->rmap->rstart + r, A->rmap->rstart + csr->j[k]);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal block on this process. Entries outside of it belong to no problem */
static PetscErrorCode MatBatchGetBlock(Mat A, Mat *D)
{
  Mat     B;
  SpMVCSR csr;

  PetscFunctionBegin;
  *D = A;
  PetscCheck(A->rmap->n == A->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
             "%" PetscInt_FMT " local rows and %" PetscInt_FMT " local columns: the problems of a batch are square",
             A->rmap->n, A->cmap->n);
  if (!SpMVIsMPI(A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(A, D, &B, NULL));
  PetscCall(MatSpMVGetPattern_Seq(B, &csr));
  for (PetscInt r = 0; csr.i[csr.m] && r < csr.m; r++)
    PetscCheck(csr.i[r] == csr.i[r + 1], PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG,
               "Row %" PetscInt_FMT
               " has columns that another process owns: each process must own whole diagonal blocks, see MatSetSizes()",
               A->rmap->rstart + r);
  PetscCall(MatSpMVRestorePattern_Seq(B, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern is new: finds the problems if they were not given, and checks them */
static PetscErrorCode MatBatchUpdate(Mat A, Mat D, MatBatch **b)
{
  SpMVCSR        csr;
  MatBatch      *found = NULL;
  PetscErrorCode ierr  = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetPattern_Seq(D, &csr));
  if (!*b || (*b)->found) {
    SpMVCall(MatBatchFindProblems(A, &csr, &found));
    SpMVCall(MatBatchSet(A, found)); /* frees the old ones */
    *b    = found;
    found = NULL;
  }
  SpMVCall(MatBatchCheckBlocks(A, &csr, *b));
  (*b)->block        = ((PetscObject)D)->id;
  (*b)->nonzerostate = D->nonzerostate;
  PetscCall(PetscFree((*b)->columns));
done:
  PetscCall(MatBatchFree(&found));
  PetscCall(MatSpMVRestorePattern_Seq(D, &csr));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether problems that were found are still the blocks of MatSetVariableBlockSizes() */
static PetscBool MatBatchHasBlocks(Mat A, const MatBatch *b)
{
  if (!b->found || A->nblocks <= 0) return PETSC_TRUE;
  if (b->problems != A->nblocks) return PETSC_FALSE;
  for (PetscInt p = 0; p < b->problems; p++) {
    if (b->first[p + 1] - b->first[p] != A->bsizes[p]) return PETSC_FALSE;
  }
  return PETSC_TRUE;
}

/* The problems of an AIJ matrix, and the diagonal block with their entries */
static PetscErrorCode MatBatchGetAIJ(Mat A, MatBatch **b, Mat *D)
{
  PetscFunctionBegin;
  PetscCheck(A->assembled, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE,
             "The matrix is not assembled: it has no problems yet");
  PetscCall(SpMVDataGet((PetscObject)A, MatBatchContainer, b));
  PetscCall(MatBatchGetBlock(A, D));
  if (!*b || (*b)->block != ((PetscObject)*D)->id || (*b)->nonzerostate != (*D)->nonzerostate ||
      !MatBatchHasBlocks(A, *b))
    PetscCall(MatBatchUpdate(A, *D, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same, and an error if A has another type than batch */
static PetscErrorCode MatBatchGet(Mat A, MatBatch **b, Mat *D)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCheck(spmv && spmv->format == &SpMVFormatBATCH, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG,
             "Matrix of type %s, not " MATBATCH,
             ((PetscObject)A)->type_name ? ((PetscObject)A)->type_name : "(not set)");
  PetscCall(MatBatchGetAIJ(A, b, D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatBatchGetProblems(Mat A, PetscInt *problems, const PetscInt *first[], Mat *D)
{
  PetscBool seq, mpi;
  MatBatch *b;

  PetscFunctionBegin;
  PetscCall(PetscStrbeginswith(((PetscObject)A)->type_name, MATSEQAIJ, &seq));
  PetscCall(PetscStrbeginswith(((PetscObject)A)->type_name, MATMPIAIJ, &mpi));
  PetscCheck(seq || mpi, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP,
             "Matrix of type %s: the problems of a batch are diagonal blocks of a matrix of type " MATBATCH
             " or of another type derived from AIJ",
             ((PetscObject)A)->type_name);
  PetscCall(MatBatchGetAIJ(A, &b, D));
  *problems = b->problems;
  *first    = b->first;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatBatchCheckNumber(const MatBatch *b, PetscInt problem)
{
  PetscFunctionBegin;
  PetscCheck(problem >= 0 && problem < b->problems, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "Problem %" PetscInt_FMT ": this process has %" PetscInt_FMT " problems, numbered from 0", problem,
             b->problems);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- values */

/* Sets the values from entry `first` on */
static PetscErrorCode MatBatchWrite(Mat D, PetscInt first, PetscInt entries, const PetscScalar values[])
{
  PetscBool    done = PETSC_FALSE;
  PetscScalar *a;
  Mat_SpMV    *spmv;

  PetscFunctionBegin;
  if (!entries) PetscFunctionReturn(PETSC_SUCCESS); /* the array may be NULL */
  PetscCall(MatSpMVGet(D, &spmv));
  if (spmv && spmv->backend && !SpMVBoundToCPU(D))
    PetscCall(spmv->backend->writevalues(D, first, entries, values, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetArray(D, &a));
  PetscCall(PetscArraymove(a + first, values, entries));
  PetscCall(MatSeqAIJRestoreArray(D, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After new values of the diagonal block. `alone`: other processes do not know. A product must then not ask them
   whether they have brought their copies up to date */
static PetscErrorCode MatBatchChanged(Mat A, Mat D, PetscBool alone)
{
  SpMVAgreed *agreed;
  Mat_SpMV   *spmv;
  PetscBool   current[4];

  PetscFunctionBegin;
  if (A == D) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVGet(A, &spmv));
  for (int k = 0; k < 4; k++) {
    agreed     = &spmv->parallel.agreed[k / 2][k % 2];
    current[k] = (PetscBool)(alone && SpMVKeyIsCurrent(&agreed->key, A));
  }
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  for (int k = 0; k < 4; k++) {
    agreed = &spmv->parallel.agreed[k / 2][k % 2];
    if (current[k]) SpMVKeySet(&agreed->key, A);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
   MatBatchSetValues - Replaces the values of all problems of a `MATBATCH` matrix, or of one; the pattern stays the same

   Logically Collective if `problem` is `MATBATCH_ALL`, otherwise Not Collective

   Input Parameters:
+  A       - the matrix, of type `MATBATCH`
.  problem - number of the problem on this process, from 0, or `MATBATCH_ALL`
-  values  - the values of the problem, row by row; with `MATBATCH_ALL` those of all problems, one after the other

   Level: beginner

   Notes: `values` may be on the GPU if the matrix is. It is read in the current stream of PETSc.

   No new set-up is needed: the next product copies the new values to its layout. On a GPU that has multiplied,
   only the values of the problem are copied to the GPU.

   Preconditioners are set up again after values have changed. If only some processes change problems one by one and the
   set-up of the preconditioner is collective (for example `PCASM`), all processes must call `MatAssemblyBegin()` and
   `MatAssemblyEnd()` afterwards, so that all of them set it up again.

   Errors:
+  PETSC_ERR_ARG_WRONG      - the matrix is not of type `MATBATCH`, or has entries outside of the problems
.  PETSC_ERR_ARG_WRONGSTATE - it is not assembled
.  PETSC_ERR_ARG_OUTOFRANGE - this process has no problem with that number
-  PETSC_ERR_ARG_NULL       - the problem has entries, but `values` is `NULL`

.seealso: `MATBATCH`, `MATBATCH_ALL`, `MatCreateBatch()`, `MatBatchGetProblem()`
@*/
PetscErrorCode MatBatchSetValues(Mat A, PetscInt problem, const PetscScalar values[])
{
  const PetscBool all = (PetscBool)(problem == MATBATCH_ALL);
  PetscInt        first, entries;
  PetscBool       device = PETSC_FALSE;
  PetscScalar    *a;
  Mat_SpMV       *spmv;
  MatBatch       *b;
  SpMVCSR         csr;
  Mat             D;

  PetscFunctionBegin;
  PetscCall(MatBatchGet(A, &b, &D));
  PetscCall(MatSpMVGet(D, &spmv));
  if (spmv && spmv->backend && values) PetscCall((*spmv->backend->isdevicearray)(values, &device));
  PetscCheck(!device || !SpMVBoundToCPU(D), PETSC_COMM_SELF, PETSC_ERR_SUP,
             "The values are on a GPU, and the matrix is bound to the CPU: copy them to the host");
  if (!all) PetscCall(MatBatchCheckNumber(b, problem));
  PetscCall(MatSpMVGetPattern_Seq(D, &csr));
  first   = csr.i[b->first[all ? 0 : problem]];
  entries = csr.i[b->first[all ? b->problems : problem + 1]] - first;
  PetscCall(MatSpMVRestorePattern_Seq(D, &csr));
  PetscCheck(values || !entries, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL,
             "There are entries, but the array of values is NULL");
  if (!all || device)
    PetscCall(MatBatchWrite(D, first, entries, values));
  else { /* the next product copies them */
    PetscCall(MatSeqAIJGetArrayWrite(D, &a));
    if (entries) PetscCall(PetscArraymove(a, values, entries));
    PetscCall(MatSeqAIJRestoreArrayWrite(D, &a));
  }
  PetscCall(MatBatchChanged(A, D, (PetscBool)!all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- queries */

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
+  PETSC_ERR_ARG_WRONG      - the matrix is not of type `MATBATCH`, or has entries outside of the problems
.  PETSC_ERR_ARG_WRONGSTATE - it is not assembled
-  PETSC_ERR_ARG_OUTOFRANGE - this process has no problem with that number

.seealso: `MATBATCH`, `MatBatchSetValues()`, `MatBatchGetInfo()`
@*/
PetscErrorCode MatBatchGetProblem(Mat A, PetscInt problem, PetscInt *n, const PetscInt *rowoffsets[],
                                  const PetscInt *columns[], const PetscScalar *values[])
{
  MatBatch *b;
  SpMVCSR   csr;
  Mat       D;

  PetscFunctionBegin;
  PetscCall(MatBatchGet(A, &b, &D));
  PetscCall(MatBatchCheckNumber(b, problem));
  PetscCall(MatSpMVGetPattern_Seq(D, &csr));
  if (columns && !b->columns) {
    PetscCall(PetscMalloc1((size_t)PetscMax(1, csr.i[csr.m]), &b->columns));
    for (PetscInt p = 0; p < b->problems; p++) {
      for (PetscInt k = csr.i[b->first[p]]; k < csr.i[b->first[p + 1]]; k++) b->columns[k] = csr.j[k] - b->first[p];
    }
  }
  if (n) *n = b->first[problem + 1] - b->first[problem];
  if (rowoffsets) *rowoffsets = csr.i + b->first[problem];
  if (columns) *columns = b->columns;
  PetscCall(MatSpMVRestorePattern_Seq(D, &csr));
  if (values) {
    PetscCall(MatSeqAIJGetArrayRead(D, &csr.a));
    *values = csr.a;
    PetscCall(MatSeqAIJRestoreArrayRead(D, &csr.a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
   MatBatchGetInfo - Gets the number, the sizes and the entries of the calling process's problems of a `MATBATCH` matrix

   Not Collective

   Input Parameter:
.  A - the matrix, of type `MATBATCH`

   Output Parameter:
.  info - see `MatBatchInfo`

   Level: intermediate

   Note:
   `PetscSpMVGetInfo()` gets the sizes of the stored layout and the kernel of the product.

   Errors:
+  PETSC_ERR_ARG_WRONG      - the matrix is not of type `MATBATCH`, or has entries outside of the problems
-  PETSC_ERR_ARG_WRONGSTATE - the matrix is not assembled

.seealso: `MATBATCH`, `MatBatchInfo`, `MatBatchGetProblem()`, `PetscSpMVGetInfo()`
@*/
PetscErrorCode MatBatchGetInfo(Mat A, MatBatchInfo *info)
{
  MatBatch *b;
  SpMVCSR   csr;
  Mat       D;

  PetscFunctionBegin;
  PetscAssertPointer(info, 2);
  PetscCall(MatBatchGet(A, &b, &D));
  PetscCall(MatSpMVGetPattern_Seq(D, &csr));
  *info = (MatBatchInfo){.problems = b->problems, .nonzeros = csr.i[csr.m]};
  PetscCall(MatSpMVRestorePattern_Seq(D, &csr));
  for (PetscInt p = 0; p < b->problems; p++) {
    const PetscInt n = b->first[p + 1] - b->first[p];

    info->smallest = p ? PetscMin(info->smallest, n) : n;
    info->largest  = PetscMax(info->largest, n);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
