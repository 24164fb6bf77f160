/*
  The other operations of Mat: numbers read from a matrix, matrices made from it, conversions, factorizations, files.
*/
#include "harness.h"
#include <unistd.h>

static PetscErrorCode Diagonal(Test *t, Record *r)
{
  Mat       A;
  Vec       d;
  PetscInt  rs, re;
  IS        zero, rows;
  PetscBool missing;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  if (t->size == 1 || t->c->M == t->c->N) { /* else not in PETSc */
    PetscCall(MatCreateVecs(A, NULL, &d));
    PetscCall(MatGetDiagonal(A, d));
    PetscCall(RecordVec(r, "diagonal", d, NULL, 0));
    PetscCall(VecDestroy(&d));
  }
  if (t->arg) {
    /* PETSc's own view of what is missing, which other ranks may see otherwise */
#if PETSC_VERSION_LT(3, 24, 0)
    PetscCall(MatMissingDiagonal(A, &missing, NULL));
    PetscCall(RecordInt(r, "missing diagonal", missing));
#else
    (void)missing;
#endif
    PetscCall(MatFindZeroDiagonals(A, &zero));
    PetscCall(ISGetLocalSize(zero, &rs));
    PetscCall(RecordInt(r, "zero diagonals", rs));
    PetscCall(ISDestroy(&zero));
    if (t->size == 1) { /* several ranks: AIJ's reads past the end of its arrays (PETSc 3.18) */
      PetscCall(MatFindOffBlockDiagonalEntries(A, &rows));
      PetscCall(ISGetLocalSize(rows, &rs));
      PetscCall(RecordInt(r, "rows with entries off the block diagonal", rs));
      PetscCall(ISDestroy(&rows));
    }
  }
  PetscCall(MatFindNonzeroRows(A, &rows));
  if (rows) {
    PetscCall(ISGetLocalSize(rows, &re));
    PetscCall(RecordInt(r, "nonzero rows", re));
  }
  PetscCall(ISDestroy(&rows));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Reductions(Test *t, Record *r)
{
  const NormType norms[] = {NORM_1, NORM_INFINITY, NORM_FROBENIUS};
  Mat            A;
  Vec            v;
  PetscInt      *where, m, N;
  PetscReal      norm, *cols;
  PetscScalar   *sums;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatCreateVecs(A, NULL, &v));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetSize(A, NULL, &N));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatNorm(A, norms[k], &norm));
    PetscCall(RecordReal(r, NormTypes[norms[k]], norm, 1000));
  }
  PetscCall(PetscMalloc3(m, &where, N, &cols, N, &sums));
  for (int k = 0; k < (N > 0 ? 5 : 0); k++) {
    PetscCall(PetscArrayzero(where, m));
    if (k == 0) PetscCall(MatGetRowMaxAbs(A, v, where));
    if (k == 1) PetscCall(MatGetRowMinAbs(A, v, where));
    if (k == 2 && !PetscDefined(USE_COMPLEX)) PetscCall(MatGetRowMax(A, v, where));
    if (k == 3 && !PetscDefined(USE_COMPLEX)) PetscCall(MatGetRowMin(A, v, where));
    if (k == 4) PetscCall(MatGetRowSum(A, v));
    PetscCall(RecordVec(r, "row maximum, minimum or sum", v, NULL, 1000));
    for (PetscInt i = 0; i < m; i++) PetscCall(RecordAdd(r, "where in row", i, where[i], 0, NULL));
  }
  for (int k = 0; k < 3; k++) {
    PetscCall(MatGetColumnNorms(A, k == 2 ? NORM_2 : norms[k], cols));
    for (PetscInt j = 0; j < N; j++) PetscCall(RecordAdd(r, "column norm", j, cols[j], 1000 * PETSC_MACHINE_EPSILON * cols[j], NULL));
  }
  PetscCall(MatGetColumnSums(A, sums));
  for (PetscInt j = 0; j < N; j++) PetscCall(RecordAdd(r, "column sum", j, sums[j], 1e4 * PETSC_MACHINE_EPSILON, NULL));
  PetscCall(PetscFree3(where, cols, sums));
  PetscCall(VecDestroy(&v));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Structure as others read it */
static PetscErrorCode Structure(Test *t, Record *r)
{
  Mat             A, Ad;
  MatInfo         info;
  PetscInt        n, rs, re, nghosts;
  const PetscInt *i, *j, *ghosts;
  PetscBool       done;
  IS              rows, cols;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatGetInfo(A, k == 0 ? MAT_LOCAL : k == 1 ? MAT_GLOBAL_MAX : MAT_GLOBAL_SUM, &info));
    PetscCall(RecordInt(r, "entries in use", (PetscInt64)info.nz_used));
    PetscCall(RecordInt(r, "entries allocated", (PetscInt64)info.nz_allocated));
    PetscCall(RecordInt(r, "assemblies", (PetscInt64)info.assemblies));
  }
  Ad = A;
  if (t->size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, NULL, NULL));
  for (int shift = 0; shift < 2; shift++) {
    PetscCall(MatGetRowIJ(Ad, shift, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
    PetscCall(RecordInt(r, "rows by MatGetRowIJ", done ? n : -1));
    for (PetscInt k = 0; done && k <= n; k++) PetscCall(RecordAdd(r, "offset", k, i[k], 0, NULL));
    for (PetscInt k = 0; done && k < i[n] - shift; k++) PetscCall(RecordAdd(r, "column", k, j[k], 0, NULL));
    PetscCall(MatRestoreRowIJ(Ad, shift, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
    PetscCall(MatGetColumnIJ(Ad, shift, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
    PetscCall(RecordInt(r, "columns by MatGetColumnIJ", done ? n : -1));
    for (PetscInt k = 0; done && k <= n; k++) PetscCall(RecordAdd(r, "column offset", k, i[k], 0, NULL));
    PetscCall(MatRestoreColumnIJ(Ad, shift, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
  }
  PetscCall(MatGetOwnershipIS(A, &rows, &cols));
  PetscCall(ISGetLocalSize(rows, &rs));
  PetscCall(ISGetLocalSize(cols, &re));
  PetscCall(RecordInt(r, "owned rows", rs));
  PetscCall(RecordInt(r, "owned columns", re));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  if (t->size > 1) {
    PetscCall(MatGetGhosts(A, &nghosts, &ghosts));
    for (PetscInt k = 0; k < nghosts; k++) PetscCall(RecordAdd(r, "ghost", k, ghosts[k], 0, NULL));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetValues(Test *t, Record *r)
{
  Mat         A;
  PetscInt    rs, re, N, cols[4], rows[2];
  PetscScalar v[8];

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetSize(A, NULL, &N));
  for (PetscInt i = rs; i + 1 < re; i += 2) {
    rows[0] = i;
    rows[1] = i + 1;
    for (int k = 0; k < 4; k++) cols[k] = (i + k * k) % N;
    PetscCall(MatGetValues(A, 2, rows, 4, cols, v));
    for (int k = 0; k < 8; k++) PetscCall(RecordAdd(r, "value in row", i + k / 4, v[k], 0, NULL));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = a y + x and its kin, between types */
static PetscErrorCode Axpy(Test *t, Record *r)
{
  Mat      A, B, C;
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  for (int own = 0; own < 2; own++) {
    PetscCall(Make(t, &A));
    PetscCall(Touch(A));
    PetscCall(MatGetLocalSize(A, &m, &n));
    PetscCall(MatGetSize(A, &M, &N));
    PetscCall(MakeOperand(t, m, n, M, N, own ? t->type : MATAIJ, &B));
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &C));
    PetscCall(MatAXPY(C, 3., A, DIFFERENT_NONZERO_PATTERN));
    PetscCall(RecordMat(t, r, "type of C + 3 A", C));
    PetscCall(MatAXPY(C, 3., B, SUBSET_NONZERO_PATTERN));
    PetscCall(RecordMat(t, r, "type of C + 3 B", C));
    PetscCall(MatDestroy(&C));
    PetscCall(MatAYPX(A, -.5, B, DIFFERENT_NONZERO_PATTERN));
    PetscCall(RecordMat(t, r, "type of B - A / 2", A));
    PetscCall(MatAYPX(A, 2., A, SAME_NONZERO_PATTERN));
    PetscCall(RecordMat(t, r, "type of 3 A", A));
    PetscCall(MatAXPY(A, 2., A, SAME_NONZERO_PATTERN));
    PetscCall(RecordMat(t, r, "type of A + 2 A", A));
    PetscCall(MatAXPY(A, 0., B, SUBSET_NONZERO_PATTERN));
    PetscCall(RecordMat(t, r, "type of A + 0 B", A));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Copy(Test *t, Record *r)
{
  Mat      A, B;
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MakeOperand(t, m, n, M, N, t->type, &B));
  PetscCall(MatSetOption(B, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(Touch(B));
  PetscCall(MatCopy(A, B, DIFFERENT_NONZERO_PATTERN));
  PetscCall(RecordMat(t, r, "type of the copy", B));
  PetscCall(MatScale(A, 2.));
  PetscCall(MatCopy(A, B, DIFFERENT_NONZERO_PATTERN));
  PetscCall(RecordMat(t, r, "type of the second copy", B));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether a conversion gave the type that was asked for, and not one that merely works */
static PetscErrorCode RecordAsked(Record *r, Mat A, const char *type)
{
  PetscBool is, plain;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(type, MATAIJ, &plain));
  if (plain)
    PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &is, MATSEQAIJ, MATMPIAIJ, ""));
  else
    PetscCall(IsType(A, type, &is));
  PetscCall(RecordInt(r, "is of the type asked for", is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  To another type (the argument) and back: new, reused, in place. AIJPERM is no model: its conversion to AIJ with
  MAT_REUSE_MATRIX copies nothing and frees what the original needs, AIJSELL's likewise (PETSc 3.18 to 3.26). From
  SBAIJ with blocks to AIJ, MAT_REUSE_MATRIX breaks the result (PETSc 3.18). On the way back from a dense matrix some of PETSc's
  ways keep zeros as entries and some do not.
*/
static PetscErrorCode RecordBack(Test *t, Record *r, const char *what, Mat A)
{
  PetscBool dense;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(t->arg, MATDENSE, &dense));
  if (!dense)
    PetscCall(RecordMat(t, r, what, A));
  else
    PetscCall(RecordProducts(r, A, PETSC_FALSE));
  PetscCall(RecordAsked(r, A, t->type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Convert(Test *t, Record *r)
{
  const char *other = t->arg ? t->arg : t->type;
  Mat         A, B, C;
  PetscBool   is, sbaij, perm, sell, reuse;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(other, MATIS, &is));
  PetscCall(PetscStrcmp(other, MATSBAIJ, &sbaij));
  PetscCall(PetscStrcmp(other, MATAIJPERM, &perm));
  PetscCall(PetscStrcmp(other, MATAIJSELL, &sell));
  reuse = (PetscBool) !(perm || sell || (sbaij && t->c->bs > 1));
  PetscCall(Make(t, &A));
  if (sbaij) PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(Touch(A));
  PetscCall(MatConvert(A, other, MAT_INITIAL_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the new matrix", B));
  if (t->arg) PetscCall(RecordAsked(r, B, other));
  PetscCall(RecordMat(t, r, "type of the original", A));
  PetscCall(MatScale(A, 2.));
  if (reuse) {
    PetscCall(MatConvert(A, other, MAT_REUSE_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the reused matrix", B));
    if (t->arg) PetscCall(RecordAsked(r, B, other));
  }
  if (!is) PetscCall(MatScale(B, 3.)); /* its values must be its own, which AIJ does not care for in a MATIS */
  PetscCall(RecordMat(t, r, "type of the original", A));
  PetscCall(MatConvert(B, t->type, MAT_INITIAL_MATRIX, &C));
  PetscCall(RecordBack(t, r, "type of the new matrix after the way back", C));
  if (!is) PetscCall(MatScale(B, 5.));
  if (reuse) {
    PetscCall(MatConvert(B, t->type, MAT_REUSE_MATRIX, &C));
    PetscCall(RecordBack(t, r, "type of the reused matrix after the way back", C));
  }
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&B));
  PetscCall(MatConvert(A, other, MAT_INPLACE_MATRIX, &A));
  PetscCall(RecordMat(t, r, "type after conversion in place", A));
  if (t->arg) PetscCall(RecordAsked(r, A, other));
  PetscCall(MatScale(A, .5));
  PetscCall(RecordMat(t, r, "type after conversion in place and scaling", A));
  PetscCall(MatConvert(A, t->type, MAT_INPLACE_MATRIX, &A));
  PetscCall(RecordBack(t, r, "type after the way back in place", A));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(FillLike(t->R, 6, A));
  PetscCall(RecordBack(t, r, "type after the way back in place and other values", A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ShellMult(Mat S, Vec x, Vec y)
{
  Mat A;

  PetscFunctionBegin;
  PetscCall(MatShellGetContext(S, &A));
  PetscCall(MatMult(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From a matrix that is nothing but a product, as MatComputeOperator() and MatConvert_Shell do it, and to it */
static PetscErrorCode Shell(Test *t, Record *r)
{
  Mat      A, S, B;
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatCreateShell(t->comm, m, n, M, N, A, &S));
  PetscCall(MatShellSetOperation(S, MATOP_MULT, (void (*)(void))ShellMult));
  PetscCall(MatConvert(S, t->type, MAT_INITIAL_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the shell's conversion", B));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&S));
  PetscCall(MatConvert(A, MATSHELL, MAT_INITIAL_MATRIX, &S));
  PetscCall(RecordMat(t, r, "type of the conversion to shell", S));
  PetscCall(MatDestroy(&S));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transpose(Test *t, Record *r)
{
  Mat       A, B, C;
  PetscBool is;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the transpose", B));
  PetscCall(Touch(B));
  PetscCall(MatScale(A, 2.));
  PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the transpose reused", B));
  if (t->c->M == t->c->N) {
    PetscCall(MatIsTranspose(A, B, 1e-10, &is));
    PetscCall(RecordInt(r, "is transpose", is));
  }
  PetscCall(MatDestroy(&B));
  PetscCall(MatHermitianTranspose(A, MAT_INITIAL_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the Hermitian transpose", B));
  PetscCall(MatDestroy(&B));
  PetscCall(MatTranspose(A, MAT_INPLACE_MATRIX, &A));
  PetscCall(RecordMat(t, r, "type of the transpose in place", A));
  PetscCall(MatScale(A, 2.));
  PetscCall(RecordMat(t, r, "type of the transpose in place, scaled", A));
  PetscCall(MatTranspose(A, MAT_INPLACE_MATRIX, &A));
  PetscCall(RecordMat(t, r, "type of the transpose's transpose in place", A));
  PetscCall(FillLike(t->R, 6, A));
  PetscCall(RecordMat(t, r, "type of that with other values", A));
  if (t->size == 1) { /* several ranks: not in PETSc */
    PetscCall(MatTransposeSymbolic(A, &C));
    PetscCall(RecordType(t, r, "type of the symbolic transpose", C));
    PetscCall(MatDestroy(&C));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Permute(Test *t, Record *r)
{
  Mat       A, B;
  IS        rows, cols;
  PetscInt *p, m, n, rs, cs;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetOwnershipRange(A, &rs, NULL));
  PetscCall(MatGetOwnershipRangeColumn(A, &cs, NULL));
  PetscCall(PetscMalloc1(m + n, &p));
  for (PetscInt i = 0; i < m; i++) p[i] = rs + m - 1 - i;
  for (PetscInt i = 0; i < n; i++) p[m + i] = cs + (i + 1) % n;
  PetscCall(ISCreateGeneral(t->comm, m, p, PETSC_COPY_VALUES, &rows));
  PetscCall(ISCreateGeneral(t->comm, n, p + m, PETSC_COPY_VALUES, &cols));
  PetscCall(ISSetPermutation(rows));
  PetscCall(ISSetPermutation(cols));
  PetscCall(MatPermute(A, rows, cols, &B));
  PetscCall(RecordMat(t, r, "type of the permuted matrix", B));
  PetscCall(MatDestroy(&B));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscCall(PetscFree(p));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubMatrix(Test *t, Record *r)
{
  Mat      A, B, *C;
  IS       rows, cols, over[2];
  PetscInt m, n, M, N, rs, cs;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetOwnershipRange(A, &rs, NULL));
  PetscCall(MatGetOwnershipRangeColumn(A, &cs, NULL));
  for (int kind = 0; kind < 3; kind++) { /* every second; a contiguous part; all columns */
    PetscCall(ISCreateStride(t->comm, kind == 0 ? (m + 1) / 2 : m / 2, rs, kind == 0 ? 2 : 1, &rows));
    PetscCall(ISCreateStride(t->comm, kind == 0 ? (n + 1) / 2 : kind == 1 ? n / 2 : n, cs, kind == 0 ? 2 : 1, &cols));
    PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_INITIAL_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the submatrix", B));
    PetscCall(MatScale(A, 2.));
    PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_REUSE_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the submatrix reused", B));
    PetscCall(MatDestroy(&B));
    PetscCall(ISDestroy(&rows));
    PetscCall(ISDestroy(&cols));
  }
  /* for every rank its own: rows of others, too */
  PetscCall(ISCreateStride(PETSC_COMM_SELF, (M + 1) / 2, 0, 2, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, (N + 2) / 3, 0, 3, &cols));
  PetscCall(MatCreateSubMatrices(A, 1, &rows, &cols, MAT_INITIAL_MATRIX, &C));
  PetscCall(RecordMat(t, r, "type of a matrix of MatCreateSubMatrices", C[0]));
  PetscCall(MatScale(A, 2.));
  PetscCall(MatCreateSubMatrices(A, 1, &rows, &cols, MAT_REUSE_MATRIX, &C));
  PetscCall(RecordMat(t, r, "type of a matrix of MatCreateSubMatrices reused", C[0]));
  PetscCall(MatDestroySubMatrices(1, &C));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  /* all of it: a special case inside PETSc */
  PetscCall(ISCreateStride(PETSC_COMM_SELF, M, 0, 1, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, N, 0, 1, &cols));
  PetscCall(MatCreateSubMatrices(A, 1, &rows, &cols, MAT_INITIAL_MATRIX, &C));
  PetscCall(RecordMat(t, r, "type of the whole by MatCreateSubMatrices", C[0]));
  PetscCall(MatDestroySubMatrices(1, &C));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  if (t->c->M == t->c->N) {
    PetscCall(ISCreateStride(PETSC_COMM_SELF, m / 2, rs, 1, &over[0]));
    PetscCall(ISCreateStride(PETSC_COMM_SELF, 1, 0, 1, &over[1]));
    PetscCall(MatIncreaseOverlap(A, 2, over, 2));
    for (int k = 0; k < 2; k++) {
      const PetscInt *idx;

      PetscCall(ISSort(over[k]));
      PetscCall(ISGetLocalSize(over[k], &m));
      PetscCall(ISGetIndices(over[k], &idx));
      for (PetscInt i = 0; i < m; i++) PetscCall(RecordAdd(r, "overlap", i, idx[i], 0, NULL));
      PetscCall(ISRestoreIndices(over[k], &idx));
      PetscCall(ISDestroy(&over[k]));
    }
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Pieces that PETSc cuts out for itself */
static PetscErrorCode Pieces(Test *t, Record *r)
{
  Mat      A, B = NULL, *S;
  PetscInt m, M, N;
  MPI_Comm sub;
  IS       is;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetSize(A, &M, &N));
  for (int k = 0; k < 2 && t->size > 1; k++) {
    PetscCall(MatMPIAIJGetLocalMat(A, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the local matrix", B));
    PetscCall(MatScale(A, 2.));
  }
  PetscCall(MatDestroy(&B));
  /* MatAIJGetLocalMat() is not here: it knows MATMPIAIJ by its exact name, and hands any type derived from it back as it is */
  if (t->size > 1) {
    PetscCall(MatMPIAIJGetLocalMatMerge(A, MAT_INITIAL_MATRIX, &is, &B));
    PetscCall(RecordMat(t, r, "type of the merged local matrix", B));
    PetscCall(MatScale(A, 2.));
    PetscCall(ISDestroy(&is)); /* it makes one each time */
    PetscCall(MatMPIAIJGetLocalMatMerge(A, MAT_REUSE_MATRIX, &is, &B));
    PetscCall(RecordMat(t, r, "type of the merged local matrix", B));
    PetscCall(ISDestroy(&is));
    PetscCall(MatDestroy(&B));
    PetscCall(MatGetSeqNonzeroStructure(A, &B));
    PetscCall(RecordType(t, r, "type of the sequential structure", B));
    PetscCall(MatDestroySeqNonzeroStructure(&B));
  }
  if (M == N) {
    PetscCallMPI(MPI_Comm_split(t->comm, t->rank % 2, t->rank, &sub));
    PetscCall(MatGetMultiProcBlock(A, sub, MAT_INITIAL_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the subcommunicator's block", B));
    PetscCall(MatScale(A, 2.));
    PetscCall(MatGetMultiProcBlock(A, sub, MAT_REUSE_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the subcommunicator's block", B));
    PetscCall(MatDestroy(&B));
    PetscCallMPI(MPI_Comm_free(&sub));
    PetscCall(MatCreateRedundantMatrix(A, t->size, MPI_COMM_NULL, MAT_INITIAL_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the redundant matrix", B));
    PetscCall(MatScale(A, 2.));
    PetscCall(MatCreateRedundantMatrix(A, t->size, MPI_COMM_NULL, MAT_REUSE_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the redundant matrix", B));
    PetscCall(MatDestroy(&B));
  }
  /* and put together again */
  PetscCall(ISCreateStride(PETSC_COMM_SELF, M, 0, 1, &is));
  PetscCall(MatCreateSubMatrices(A, 1, &is, &is, MAT_INITIAL_MATRIX, &S));
  PetscCall(MatCreateMPIMatConcatenateSeqMat(t->comm, S[0], m, MAT_INITIAL_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the concatenation", B));
  PetscCall(MatScale(S[0], 2.));
  PetscCall(MatCreateMPIMatConcatenateSeqMat(t->comm, S[0], m, MAT_REUSE_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the concatenation", B));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroySubMatrices(1, &S));
  PetscCall(ISDestroy(&is));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Tests(Test *t, Record *r)
{
  Mat       A, B;
  PetscBool is, known;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Make(t, &B));
  PetscCall(MatEqual(A, B, &is));
  PetscCall(RecordInt(r, "MatEqual", is));
  PetscCall(MatScale(B, 2.));
  PetscCall(MatEqual(A, B, &is));
  PetscCall(RecordInt(r, "MatEqual with another", is));
  if (t->c->M == t->c->N) {
    PetscCall(MatIsSymmetric(A, 1e-10, &is));
    PetscCall(RecordInt(r, "MatIsSymmetric", is));
    if (t->size == 1 && (PETSC_VERSION_LT(3, 21, 0) || PETSC_VERSION_GE(3, 24, 0))) { /* several ranks: not in PETSc 3.18. 3.21 to 3.23 refuse every matrix */
      PetscCall(MatIsHermitian(A, 1e-10, &is));
      PetscCall(RecordInt(r, "MatIsHermitian", is));
    }
    PetscCall(MatIsSymmetricKnown(A, &known, &is));
    PetscCall(RecordInt(r, "known symmetric", known));
  }
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A file name that the ranks agree on and that no other run uses */
static PetscErrorCode TempName(Test *t, char name[], size_t n)
{
  const char *dir = getenv("TMPDIR");
  int         pid = (int)getpid();

  PetscFunctionBegin;
  PetscCallMPI(MPI_Bcast(&pid, 1, MPI_INT, 0, t->comm));
  PetscCall(PetscSNPrintf(name, n, "%s/petscspmv-test-%d", dir ? dir : "/tmp", pid));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RemoveFile(Test *t, const char name[])
{
  char info[600];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Barrier(t->comm));
  PetscCall(PetscSNPrintf(info, sizeof(info), "%s.info", name));
  if (!t->rank) {
    (void)unlink(name);
    (void)unlink(info);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Binary(Test *t, Record *r)
{
  Mat         A, B;
  PetscViewer v;
  char        name[512];

  PetscFunctionBegin;
  PetscCall(TempName(t, name, sizeof(name)));
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(PetscViewerBinaryOpen(t->comm, name, FILE_MODE_WRITE, &v));
  PetscCall(MatView(A, v));
  PetscCall(MatScale(A, 2.));
  PetscCall(MatView(A, v));
  PetscCall(PetscViewerDestroy(&v));
  PetscCall(PetscViewerBinaryOpen(t->comm, name, FILE_MODE_READ, &v));
  PetscCall(MatCreate(t->comm, &B));
  PetscCall(MatSetType(B, t->type));
  PetscCall(MatLoad(B, v));
  PetscCall(RecordMat(t, r, "type of the loaded matrix", B));
  PetscCall(MatLoad(B, v)); /* the second one, into the first */
  PetscCall(RecordMat(t, r, "type of the matrix loaded anew", B));
  PetscCall(MatDestroy(&B));
  PetscCall(PetscViewerDestroy(&v));
  PetscCall(RemoveFile(t, name));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Text, line by line; lines that name the type differ, and the summary formats may say more */
static PetscErrorCode Ascii(Test *t, Record *r)
{
  const PetscViewerFormat formats[] = {PETSC_VIEWER_DEFAULT,    PETSC_VIEWER_ASCII_MATLAB, PETSC_VIEWER_ASCII_COMMON,     PETSC_VIEWER_ASCII_DENSE,
                                       PETSC_VIEWER_ASCII_IMPL, PETSC_VIEWER_ASCII_INFO,   PETSC_VIEWER_ASCII_INFO_DETAIL};
  Mat                     A;
  PetscViewer             v;
  char                    name[512], line[4096];

  PetscFunctionBegin;
  PetscCall(TempName(t, name, sizeof(name)));
  PetscCall(Make(t, &A));
  PetscCall(PetscObjectSetName((PetscObject)A, "A"));
  PetscCall(Touch(A));
  for (size_t k = 0; k < sizeof(formats) / sizeof(formats[0]); k++) {
    if (formats[k] == PETSC_VIEWER_ASCII_DENSE && t->size > 1) continue; /* not in PETSc */
    PetscCall(PetscViewerASCIIOpen(t->comm, name, &v));
    PetscCall(PetscViewerPushFormat(v, formats[k]));
    PetscCall(MatView(A, v));
    PetscCall(PetscViewerPopFormat(v));
    PetscCall(PetscViewerDestroy(&v));
    if (!t->rank) {
      FILE     *f = fopen(name, "r");
      PetscBool summary;
      PetscInt  lines = 0;
      char     *type, *named;

      PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "cannot read %s", name);
      summary = (PetscBool)(formats[k] == PETSC_VIEWER_ASCII_INFO || formats[k] == PETSC_VIEWER_ASCII_INFO_DETAIL);
      while (fgets(line, sizeof(line), f)) {
        PetscCall(PetscStrstr(line, "type:", &type));
        PetscCall(PetscStrstr(line, "aij", &named));
        lines++;
        if (!summary && !type && !named) PetscCall(RecordText(r, PetscViewerFormats[formats[k]], line));
      }
      if (summary) PetscCall(RecordInt(r, "anything in the summary", lines > 0));
      fclose(f);
    }
  }
  PetscCall(RemoveFile(t, name));
  PetscCall(RecordMat(t, r, "type after views", A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlockDiagonal(Test *t, Record *r)
{
  Mat                A, C;
  const PetscScalar *v;
  PetscInt           m, bs, *sizes;
  PetscScalar       *w;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetBlockSize(A, &bs));
  for (int k = 0; k < 2; k++) { /* kept inside the matrix, and so possibly stale the second time */
    PetscCall(MatInvertBlockDiagonal(A, &v));
    for (PetscInt i = 0; i < m * bs; i++) PetscCall(RecordAdd(r, "inverse of diagonal blocks", i, v[i], 1e6 * PETSC_MACHINE_EPSILON, NULL));
    PetscCall(MatScale(A, 2.));
  }
  PetscCall(PetscMalloc2(m / bs, &sizes, m * bs, &w));
  for (PetscInt i = 0; i < m / bs; i++) sizes[i] = bs;
  PetscCall(MatInvertVariableBlockDiagonal(A, m / bs, sizes, w));
  for (PetscInt i = 0; i < m * bs; i++) PetscCall(RecordAdd(r, "inverse of variable diagonal blocks", i, w[i], 1e6 * PETSC_MACHINE_EPSILON, NULL));
  PetscCall(PetscFree2(sizes, w));
  PetscCall(MatCreate(t->comm, &C));
  PetscCall(MatSetSizes(C, m, m, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetBlockSize(C, bs));
  PetscCall(MatSetType(C, t->type));
  PetscCall(MatSetUp(C));
  PetscCall(MatInvertBlockDiagonalMat(A, C));
  PetscCall(RecordMat(t, r, "type of the inverse", C));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* f(x) = R x, of which the coloring must find R again; PETSc's greedy coloring takes the pattern to be symmetric */
static PetscErrorCode Function(void *ctx, Vec x, Vec y, void *R)
{
  PetscFunctionBegin;
  PetscCall(MatMult((Mat)R, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Coloring(Test *t, Record *r)
{
  Mat           A;
  MatColoring   mc;
  ISColoring    ic;
  MatFDColoring fd;
  Vec           x;
  PetscInt      n;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatColoringCreate(A, &mc));
  PetscCall(MatColoringSetDistance(mc, 2));
  PetscCall(MatColoringSetType(mc, MATCOLORINGGREEDY));
  PetscCall(MatColoringSetFromOptions(mc));
  PetscCall(MatColoringApply(mc, &ic));
  PetscCall(ISColoringGetIS(ic, PETSC_USE_POINTER, &n, NULL));
  PetscCall(RecordInt(r, "colors", n));
  PetscCall(MatFDColoringCreate(A, ic, &fd));
#if PETSC_VERSION_LT(3, 24, 0)
  PetscCall(MatFDColoringSetFunction(fd, (PetscErrorCode(*)(void))(void (*)(void))Function, t->R));
#else
  PetscCall(MatFDColoringSetFunction(fd, Function, t->R));
#endif
  PetscCall(MatFDColoringSetFromOptions(fd));
  PetscCall(MatFDColoringSetUp(A, ic, fd));
  PetscCall(ISColoringDestroy(&ic));
  PetscCall(MatColoringDestroy(&mc));
  PetscCall(MatCreateVecs(A, &x, NULL));
  for (PetscInt k = 0; k < 2; k++) {
    Vec       y, z;
    PetscReal error;

    PetscCall(VecFill(x, k));
    PetscCall(MatZeroEntries(A));
    PetscCall(MatFDColoringApply(A, fd, x, NULL));
    PetscCall(RecordType(t, r, "type of the Jacobian", A));
    /* differences have errors of their own: entries are compared through a product, to half the digits */
    PetscCall(VecDuplicate(x, &y));
    PetscCall(VecDuplicate(x, &z));
    PetscCall(MatMult(A, x, y));
    PetscCall(MatMult(t->R, x, z));
    PetscCall(VecAXPY(z, -1., y));
    PetscCall(VecNorm(z, NORM_INFINITY, &error));
    PetscCall(RecordInt(r, "Jacobian is right", error < 1e3 * PETSC_SQRT_MACHINE_EPSILON));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(MatFDColoringDestroy(&fd));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factors, and solves with them; the argument says which */
static PetscErrorCode Factor(Test *t, Record *r)
{
  const char         *kind = t->arg;
  const PetscBool     chol = (PetscBool)(!strcmp(kind, "cholesky") || !strcmp(kind, "icc"));
  const MatFactorType ft   = !strcmp(kind, "lu")    ? MAT_FACTOR_LU
                             : !strcmp(kind, "ilu") ? MAT_FACTOR_ILU
                             : !strcmp(kind, "icc") ? MAT_FACTOR_ICC
                                                    : MAT_FACTOR_CHOLESKY;
  Mat                 A, F, B, X;
  Vec                 b, x;
  IS                  row, col;
  MatFactorInfo       info;
  PetscInt            m;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecFill(b, 1));
  PetscCall(MatGetFactor(A, MATSOLVERPETSC, ft, &F));
  PetscCall(MatGetOrdering(A, MATORDERINGND, &row, &col));
  PetscCall(MatFactorInfoInitialize(&info));
  info.levels = 1;
  info.fill   = 3;
  for (int k = 0; k < 2; k++) {
    if (k == 0) {
      if (ft == MAT_FACTOR_LU) PetscCall(MatLUFactorSymbolic(F, A, row, col, &info));
      if (ft == MAT_FACTOR_ILU) PetscCall(MatILUFactorSymbolic(F, A, row, col, &info));
      if (ft == MAT_FACTOR_CHOLESKY) PetscCall(MatCholeskyFactorSymbolic(F, A, row, &info));
      if (ft == MAT_FACTOR_ICC) PetscCall(MatICCFactorSymbolic(F, A, row, &info));
    }
    if (chol)
      PetscCall(MatCholeskyFactorNumeric(F, A, &info));
    else
      PetscCall(MatLUFactorNumeric(F, A, &info));
    PetscCall(MatSolve(F, b, x));
    PetscCall(RecordVec(r, "solution", x, NULL, 1e6));
    PetscCall(MatSolveTranspose(F, b, x));
    PetscCall(RecordVec(r, "solution of the transposed system", x, NULL, 1e6));
    PetscCall(MatScale(A, 2.));
  }
  if (ft == MAT_FACTOR_LU) {
    PetscCall(MatGetLocalSize(A, &m, NULL));
    PetscCall(MatCreateSeqDense(t->comm, m, 3, NULL, &B));
    for (PetscInt i = 0; i < m; i++) {
      for (PetscInt j = 0; j < 3; j++) PetscCall(MatSetValue(B, i, j, Value(i, j, 3), INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
    PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
    PetscCall(MatMatSolve(F, B, X));
    PetscCall(RecordMat(t, r, "type of the solutions", X));
    PetscCall(MatDestroy(&X));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(MatDestroy(&F));
  PetscCall(ISDestroy(&row));
  PetscCall(ISDestroy(&col));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A as its own factor: not for AIJPERM, since PETSc 3.19 wants the two to have one type */
static PetscErrorCode FactorInPlace(Test *t, Record *r)
{
  Mat           A;
  Vec           b, x;
  IS            row, col;
  MatFactorInfo info;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecFill(b, 1));
  PetscCall(MatGetOrdering(A, MATORDERINGNATURAL, &row, &col));
  PetscCall(MatFactorInfoInitialize(&info));
  info.fill = 3;
  if (t->arg[0] == 'i')
    PetscCall(MatILUFactor(A, row, col, &info));
  else
    PetscCall(MatLUFactor(A, row, col, &info));
  PetscCall(MatSolve(A, b, x));
  PetscCall(RecordVec(r, "solution", x, NULL, 1e6));
  PetscCall(ISDestroy(&row));
  PetscCall(ISDestroy(&col));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SOR(Test *t, Record *r)
{
  const MatSORType types[] = {SOR_LOCAL_FORWARD_SWEEP, SOR_LOCAL_BACKWARD_SWEEP, SOR_LOCAL_SYMMETRIC_SWEEP,
                              (MatSORType)(SOR_LOCAL_SYMMETRIC_SWEEP | SOR_ZERO_INITIAL_GUESS)};
  Mat              A;
  Vec              b, x;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecFill(b, 1));
  for (int step = 0; step < 2; step++) {
    for (int k = 0; k < 4; k++) {
      PetscCall(VecFill(x, 2));
      PetscCall(MatSOR(A, b, 1.1, types[k], 0., 2, 2, x));
      PetscCall(RecordVec(r, "relaxed", x, NULL, 1e4));
      if (t->size == 1) { /* several ranks: not in PETSc */
        PetscCall(VecFill(x, 2));
        PetscCall(MatSOR(A, b, 1., (MatSORType)(types[k] | SOR_ZERO_INITIAL_GUESS), 0., 1, 1, x));
        PetscCall(RecordVec(r, "relaxed from zero", x, NULL, 1e4));
      }
    }
    PetscCall(MatShift(A, 1.));
  }
  if (t->size == 1) {
    PetscCall(MatSOR(A, b, 1., SOR_EISENSTAT, 0., 1, 1, x));
    PetscCall(RecordVec(r, "relaxed by Eisenstat's trick", x, NULL, 1e4));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows to zero, with a right-hand side to match, in each of the ways a boundary condition is set */
static PetscErrorCode ZeroRows(Test *t, Record *r)
{
  Mat      A;
  Vec      x, b;
  PetscInt rs, re, M, rows[4], n = 0;

  PetscFunctionBegin;
  for (int k = 0; k < 4; k++) {
    PetscCall(Make(t, &A));
    PetscCall(Touch(A));
    PetscCall(MatGetOwnershipRange(A, &rs, &re));
    PetscCall(MatGetSize(A, &M, NULL));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecFill(x, 1));
    PetscCall(VecFill(b, 2));
    n = 0;
    if (re > rs) rows[n++] = rs;
    if (t->rank == 0) rows[n++] = M - 1; /* not its own */
    if (t->rank == t->size - 1 && M > 3) rows[n++] = M / 2;
    PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, k % 2 ? PETSC_TRUE : PETSC_FALSE));
    if (k < 2)
      PetscCall(MatZeroRows(A, n, rows, 2.5, x, b));
    else
      PetscCall(MatZeroRowsColumns(A, n, rows, 2.5, x, b));
    PetscCall(RecordMat(t, r, "type with rows zeroed", A));
    PetscCall(RecordVec(r, "right-hand side", b, NULL, 100));
    PetscCall(MatScale(A, 2.));
    PetscCall(RecordMat(t, r, "type with rows zeroed, scaled", A));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A better diagonal by permuting columns, as direct solvers ask for */
static PetscErrorCode Reorder(Test *t, Record *r)
{
  const char     *orders[] = {MATORDERINGNATURAL, MATORDERINGND, MATORDERING1WD, MATORDERINGRCM, MATORDERINGQMD};
  Mat             A;
  IS              row, col;
  const PetscInt *p;
  PetscInt        n;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  for (int k = 0; k < 5; k++) {
    PetscCall(MatGetOrdering(A, orders[k], &row, &col));
    PetscCall(ISGetLocalSize(row, &n));
    PetscCall(ISGetIndices(row, &p));
    for (PetscInt i = 0; i < n; i++) PetscCall(RecordAdd(r, orders[k], i, p[i], 0, NULL));
    PetscCall(ISRestoreIndices(row, &p));
    if (k == 1) PetscCall(MatReorderForNonzeroDiagonal(A, 1e-10, row, col));
    PetscCall(ISDestroy(&row));
    PetscCall(ISDestroy(&col));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The ordering that the library registers: rows by length, then by first column. A is permuted with it, and its product is the
  permuted one.
*/
static PetscErrorCode Ordering(Test *t, Record *r)
{
  Mat             A, B, D;
  IS              row, col;
  const PetscInt *p;
  PetscInt        n, rs, re, last[2] = {-1, -1}, late = 0;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatGetOrdering(A, MATORDERINGEVCHYB, &row, &col));
  PetscCall(ISGetLocalSize(row, &n));
  PetscCall(ISGetIndices(row, &p));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetDiagonalBlock(t->R, &D)); /* of a parallel matrix MatGetOrdering() orders that */
  for (PetscInt i = 0; i < n; i++) {
    PetscInt        len;
    const PetscInt *cols;

    PetscCall(MatGetRow(D, p[i] - rs, &len, &cols, NULL));
    if (len < last[0] || (len && len == last[0] && cols[0] < last[1])) late++;
    last[0] = len;
    last[1] = len ? cols[0] : -1;
    PetscCall(MatRestoreRow(D, p[i] - rs, &len, &cols, NULL));
    PetscCall(RecordAdd(r, "row in order", i, p[i], 0, NULL));
  }
  late += n != re - rs;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &late, 1, MPIU_INT, MPI_SUM, t->comm));
  PetscCheck(!late, t->comm, PETSC_ERR_PLIB, "%" PetscInt_FMT " rows come too late, or some are missing", late);
  PetscCall(ISRestoreIndices(row, &p));
  PetscCall(ISSetPermutation(row)); /* a row that came twice would show here in a PETSc for debugging, and below in any */
  PetscCall(ISSetPermutation(col));
  PetscCall(MatPermute(A, row, col, &B));
  PetscCall(RecordMat(t, r, "type of the permuted matrix", B));
  PetscCall(MatDestroy(&B));
  PetscCall(ISDestroy(&row));
  PetscCall(ISDestroy(&col));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What must be refused, as AIJ refuses it */
static PetscErrorCode Refuse(PetscErrorCode (*f)(Mat, Vec, Vec), Mat A, Vec x, Vec y, Record *r, const char *what)
{
  PetscErrorCode ierr;
  PetscBool      any;

  PetscFunctionBegin;
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = f(A, x, y);
  PetscCall(PetscPopErrorHandler());
  PetscCall(Agree(ierr, &any));
  PetscCall(RecordInt(r, what, (PetscInt64)ierr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refused(Test *t, Record *r)
{
  Mat A;
  Vec x, y, wrong;

  PetscFunctionBegin;
  PetscCall(CreateLike(t->R, t->type, &A));
  PetscCall(PreallocateLike(t->R, A));
  PetscCall(MatCreateVecs(t->R, &x, &y));
  PetscCall(VecCreate(t->comm, &wrong));
  PetscCall(VecSetSizes(wrong, PETSC_DECIDE, t->c->N + 3));
  PetscCall(VecSetFromOptions(wrong));
  PetscCall(VecSet(wrong, 1.));
  PetscCall(VecSet(x, 1.));
  PetscCall(Refuse(MatMult, A, x, y, r, "product of an unassembled matrix"));
  PetscCall(Refuse(MatMultTranspose, A, y, x, r, "transposed product of an unassembled matrix"));
  PetscCall(FillLike(t->R, -1, A));
  PetscCall(Refuse(MatMult, A, wrong, y, r, "product with a vector too long"));
  PetscCall(Refuse(MatMult, A, x, wrong, r, "product into a vector too long"));
  PetscCall(Refuse(MatMult, A, x, x, r, "product into its operand"));
  PetscCall(RecordMat(t, r, "type after refusals", A));
  PetscCall(VecDestroy(&wrong));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The conversion of MPIAIJ loses the columns of the off-diagonal block from PETSc 3.20 to 3.25 */
#define SELL_NEEDS (PETSC_VERSION_GE(3, 20, 0) && PETSC_VERSION_LT(3, 26, 0) ? SEQ : 0)

static const Operation operations[] = {{"diagonal", Diagonal, 0},
                                       {"diagonal-square", Diagonal, SQUARE | FULL | BYROW, "square"},
                                       {"reductions", Reductions, 0},
                                       {"structure", Structure, 0},
                                       {"getvalues", GetValues, FULL},
                                       {"axpy", Axpy, FULL},
                                       {"copy", Copy, FULL},
                                       {"convert-aij", Convert, NOPERM, MATAIJ},
                                       {"convert-own", Convert, NOPERM},
                                       {"convert-sellp", Convert, NOPERM, "sellp"},
                                       {"convert-evchyb", Convert, NOPERM, "evchyb"},
                                       {"convert-aijperm", Convert, FULL | NOPERM, MATAIJPERM},
                                       {"convert-aijsell", Convert, FULL | NOPERM, MATAIJSELL},
                                       {"convert-baij", Convert, FULL | NOPERM, MATBAIJ},
                                       {"convert-sbaij", Convert, SPD | NOPERM, MATSBAIJ},
                                       {"convert-dense", Convert, FULL | NOPERM, MATDENSE},
                                       {"convert-sell", Convert, FULL | NOPERM | SELL_NEEDS, MATSELL},
                                       {"convert-is", Convert, FULL | NOPERM, MATIS},
                                       {"shell", Shell, FULL},
                                       {"transpose", Transpose, 0},
                                       {"permute", Permute, FULL | BYROW},
                                       {"submatrix", SubMatrix, FULL},
                                       {"pieces", Pieces, FULL | SQUARE | ONHOST}, /* merging local matrices: signal 11 */
                                       {"tests", Tests, 0},
                                       {"binary", Binary, 0},
                                       {"ascii", Ascii, FULL},
                                       {"blockdiagonal", BlockDiagonal, SOLVE | BLOCKS | ONHOST}, /* inverts what it has not copied from the device */
                                       {"coloring", Coloring, SPD},
                                       {"lu", Factor, SOLVE | SEQ, "lu"},
                                       {"ilu", Factor, SOLVE | SEQ, "ilu"},
                                       {"cholesky", Factor, SPD | SEQ, "cholesky"},
                                       {"icc", Factor, SPD | SEQ, "icc"},
                                       {"lu-inplace", FactorInPlace, SOLVE | SEQ | NOPERM, "lu"},
                                       {"ilu-inplace", FactorInPlace, SOLVE | SEQ | NOPERM | NOCUDA, "ilu"}, /* cannot destroy the factor */
                                       {"sor", SOR, SOLVE},
                                       {"zerorows", ZeroRows, SOLVE},
                                       {"reorder", Reorder, SOLVE | SEQ},
                                       {"ordering", Ordering, SQUARE | FULL | BYROW},
                                       {"refused", Refused, FULL},
                                       {NULL, NULL, 0}};

int main(int argc, char **argv)
{
  return Suite(argc, argv, "operations", operations, 0);
}
