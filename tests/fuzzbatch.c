/*
  The matrix type batch against AIJ on random batches, with random operations and solvers. Each operation is written once. It runs on the matrix as AIJ and then on
  the batch, with the same random numbers, and records its results; the records must agree as those of harness.h do. What AIJ itself cannot do is not compared.

  Options: those of fuzz.h, except -type. A case depends only on its seed and the number of ranks.
*/
#include "fuzz.h"
#include "batch.h"

#define MOST_ROWS 12

enum {
  DIAGONAL = 1, /* all diagonal entries are there */
  FINITE   = 2, /* no NaN and no infinite numbers */
  DOMINANT = 4, /* solvers work */
  DEFINITE = 8, /* symmetric, real and positive definite */
  ONERANK  = 16
};

typedef struct {
  int       has;
  PetscBool special; /* NaN, infinities, -0.0 and denormals among the values */
  PetscInt  blocks;  /* rows of each problem if all have the same number, else 0 */
  Arrays    a;       /* of this rank */
  char      solver[256];
} RandomBatch;

/* ---------------------------------------------------------------- batches */

typedef unsigned char Mask[MOST_ROWS][MOST_ROWS];

static void DrawMask(PetscInt kind, PetscInt n, int has, Mask m)
{
  const PetscInt wide = draw(3), dense = 1 + draw(8);

  memset(m, 0, sizeof(Mask));
  for (PetscInt r = 0; r < n; r++) {
    const PetscBool again = (PetscBool)(r && kind == 3 && draw(3)), empty = (PetscBool)(kind == 4 && draw(2));

    for (PetscInt c = 0; c < n; c++) {
      if (kind == 0) m[r][c] = 1;
      if (kind == 1) m[r][c] = PetscAbsInt(r - c) <= wide;
      if (kind == 2 || (kind == 3 && !again)) m[r][c] = draw(9) < dense;
      if (kind == 3 && again) m[r][c] = m[r - 1][c];
      if (kind == 4) m[r][c] = !empty && draw(9) < dense;
      if (kind == 6) m[r][c] = !r || !c;
      if (kind == 7) m[r][c] = c <= r;
    }
  }
  for (PetscInt r = 0; r < n; r++) {
    if (has & DIAGONAL || kind == 8) m[r][r] = 1;
    for (PetscInt c = 0; has & DEFINITE && c < r; c++) m[r][c] = m[c][r] = m[r][c] | m[c][r];
  }
  for (PetscInt r = 1; kind == 3 && r < n; r++) { /* the same columns with the diagonal, too: inodes */
    if (!draw(2)) continue;
    for (PetscInt c = 0; c < n; c++) {
      m[r][c] = m[r - 1][c] = m[r][c] | m[r - 1][c];
      if (has & DEFINITE) m[c][r] = m[c][r - 1] = m[r][c];
    }
  }
}

static PetscScalar DrawNumber(const RandomBatch *batch)
{
  static const PetscReal special[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0, PETSC_SMALL * PETSC_SMALL};
  const PetscScalar      v         = number();

  if (!batch->special || draw(8)) return batch->has & DEFINITE ? PetscRealPart(v) / 2 : v / 2.0;
  switch (draw(6)) {
  case 0: return (PetscScalar)special[0];
  case 1:
  case 2: /* complex products of infinite numbers differ by who computes them */ return PetscDefined(USE_COMPLEX) ? -0.0 : (PetscScalar)special[1 + draw(2)];
  case 3: return -0.0;
  case 4: return 0.0;
  default: return PETSC_MACHINE_EPSILON * (sizeof(PetscReal) == 4 ? 1e-36 : 1e-305); /* denormal */
  }
}

/* Values of one problem, row by row */
static void DrawProblem(const RandomBatch *batch, PetscInt n, const PetscInt i[], const PetscInt j[], PetscScalar a[])
{
  PetscScalar full[MOST_ROWS][MOST_ROWS];
  PetscReal   sum[MOST_ROWS] = {0};

  for (PetscInt r = 0; r < n; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) full[r][j[k]] = batch->has & DEFINITE && j[k] < r ? full[j[k]][r] : DrawNumber(batch);
  }
  for (PetscInt r = 0; r < n; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) sum[r] += PetscAbsScalar(full[r][j[k]]), sum[j[k]] += batch->has & DEFINITE ? 0 : PetscAbsScalar(full[r][j[k]]);
  }
  for (PetscInt r = 0; r < n; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) a[k - i[0]] = batch->has & DOMINANT && j[k] == r ? 1.0 + (PetscReal)draw(3) + sum[r] : full[r][j[k]];
  }
}

/* The problems of this rank, drawn with random numbers of its own. Afterwards all ranks draw the same numbers again */
static PetscErrorCode DrawBatch(RandomBatch *batch, PetscMPIInt rank, PetscMPIInt size)
{
  Arrays        *a    = &batch->a;
  const PetscInt kind = draw(12), same = draw(2) ? 1 + draw(MOST_ROWS) : 0; /* kinds from 9 on: each problem has its own */
  uint64_t       common;
  PetscInt       at = 0, row = 0, patterns;

  PetscFunctionBegin;
  batch->has = draw(3) ? DIAGONAL | DOMINANT | (draw(2) ? DEFINITE : 0) : (draw(3) ? 0 : DIAGONAL);
  batch->has |= size == 1 ? ONERANK : 0;
  batch->special = (PetscBool)(!(batch->has & DOMINANT) && draw(2));
  batch->has |= batch->special ? 0 : FINITE;
  a->sharing    = (MatBatchSharing)(draw(2) ? draw(3) : 0);
  batch->blocks = same || a->sharing ? (same ? same : 1 + draw(MOST_ROWS)) : 0;
  common        = seed;
  seed += 0x9E3779B97F4A7C15u * (uint64_t)(rank + 1);
  a->problems = draw(10) ? 1 + draw(60 / size) : 0;
  if (!a->problems) a->sharing = MATBATCH_SHARE_NONE;
  patterns = a->sharing ? 1 : a->problems;
  PetscCall(PetscMalloc1(a->problems, &a->sizes));
  PetscCall(PetscMalloc1(patterns * MOST_ROWS + 1, &a->i));
  PetscCall(PetscMalloc1(patterns * MOST_ROWS * MOST_ROWS, &a->j));
  PetscCall(PetscMalloc1(a->problems * MOST_ROWS * MOST_ROWS, &a->a));
  a->i[0] = 0;
  a->rows = 0;
  for (PetscInt p = 0; p < a->problems; p++) {
    Mask           mask;
    const PetscInt n = batch->blocks ? batch->blocks : (draw(9) ? 1 + draw(MOST_ROWS) : 0);

    a->sizes[p] = n;
    a->rows += n;
    if (p >= patterns) continue;
    DrawMask(kind < 9 ? kind : draw(9), n, batch->has, mask);
    for (PetscInt r = 0; r < n; r++) {
      for (PetscInt c = 0; c < n; c++) {
        if (mask[r][c]) a->j[at++] = c;
      }
      a->i[++row] = at;
    }
  }
  a->values = (PetscInt64)at * (a->sharing == MATBATCH_SHARE_PATTERN ? a->problems : 1);
  row       = 0;
  for (PetscInt p = 0; p < (a->sharing == MATBATCH_SHARE_VALUES ? 1 : a->problems); p++) {
    const PetscInt *i = a->i + (a->sharing ? 0 : row);

    DrawProblem(batch, a->sizes[p], i, a->j, a->a + i[0] + (a->sharing == MATBATCH_SHARE_PATTERN ? p * at : 0));
    row += a->sizes[p];
  }
  seed = common;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The problems as blocks of the diagonal */
static PetscErrorCode SetBlocks(const RandomBatch *batch, Mat M)
{
  PetscInt *sizes, n = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(batch->a.problems, &sizes));
  for (PetscInt p = 0; p < batch->a.problems; p++) {
    if (batch->a.sizes[p]) sizes[n++] = batch->a.sizes[p];
  }
  PetscCall(MatSetVariableBlockSizes(M, n, sizes));
  PetscCall(PetscFree(sizes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The batch, created in one of several ways */
static PetscErrorCode MakeBatch(MPI_Comm comm, RandomBatch *batch, Mat B, Mat *A)
{
  const Arrays  *a   = &batch->a;
  const PetscInt way = draw(5), rows = a->sharing ? a->sizes[0] : a->rows;
  const char    *kern = draw(2) ? "auto" : kernels[draw((PetscInt)PETSC_STATIC_ARRAY_LENGTH(kernels))];

  PetscFunctionBegin;
  if (way == 0) { /* the blocks that MatConvert() finds: it may not find these */
    PetscCall(SetBlocks(batch, B));
    PetscCall(MatConvert(B, MATBATCH, MAT_INITIAL_MATRIX, A));
  } else if (way == 1) {
    PetscInt    *i, *j;
    PetscScalar *v;

    PetscCall(PetscMalloc1(rows + 1, &i));
    PetscCall(PetscMalloc1(a->i[rows], &j));
    PetscCall(PetscMalloc1(a->values, &v));
    PetscCall(PetscArraycpy(i, a->i, rows + 1));
    PetscCall(PetscArraycpy(j, a->j, a->i[rows]));
    PetscCall(PetscArraycpy(v, a->a, a->values));
    PetscCall(MatCreateBatch(comm, a->problems, a->sizes, i, j, v, a->sharing, PETSC_OWN_POINTER, A));
  } else
    PetscCall(MatCreateBatch(comm, a->problems, a->sizes, a->i, a->j, a->a, a->sharing, way == 2 ? PETSC_USE_POINTER : PETSC_COPY_VALUES, A));
  if (batch->blocks && draw(2)) {
    PetscCall(MatSetBlockSize(*A, batch->blocks));
    PetscCall(MatSetBlockSize(B, batch->blocks));
  }
  PetscCall(SetKernel(*A, kern));
  FuzzLog("kernel %s, sharing %d, way %d%s%s%s", kern, (int)a->sharing, (int)way, batch->special ? ", special values" : "",
          batch->has & DOMINANT ? ", dominant" : "", batch->has & DEFINITE ? ", definite" : "");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- operations on AIJ or on a batch; some replace the matrix */

static PetscErrorCode IsBatch(Mat M, PetscBool *is)
{
  return PetscObjectTypeCompare((PetscObject)M, MATBATCH, is);
}

static PetscErrorCode DrawVec(const RandomBatch *batch, Vec v)
{
  PetscScalar   *a;
  PetscInt       s, e;
  const PetscInt k = draw(1000);

  PetscFunctionBegin;
  PetscCall(VecFill(v, k));
  if (!batch->special) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetOwnershipRange(v, &s, &e));
  PetscCall(VecGetArray(v, &a));
  for (PetscInt r = s; r < e; r++) {
    if (Hash(r, k, 1) > 0.85) a[r - s] = (PetscScalar)(Hash(r, k, 2) > 0 ? NAN : -0.0);
    if (Hash(r, k, 1) < -0.85 && !PetscDefined(USE_COMPLEX)) a[r - s] = (PetscScalar)(Hash(r, k, 2) > 0 ? INFINITY : -INFINITY);
  }
  PetscCall(VecRestoreArray(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = A x, y = z + A x, y += A x, of the matrix, its transpose and its Hermitian transpose */
static PetscErrorCode Op_Products(RandomBatch *batch, Mat *M, Record *r)
{
  static const struct {
    const char *name;
    PetscErrorCode (*mult)(Mat, Vec, Vec), (*add)(Mat, Vec, Vec, Vec);
  } products[] = {
      {"A x", MatMult, MatMultAdd}, {"A^T x", MatMultTranspose, MatMultTransposeAdd}, {"A^H x", MatMultHermitianTranspose, MatMultHermitianTransposeAdd}};
  Vec x, y, z, b;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(*M, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecDuplicate(y, &b));
  PetscCall(DrawVec(batch, x));
  PetscCall(DrawVec(batch, z));
  for (int k = 0; k < 3; k++) {
    for (int add = 0; add < 3; add++) {
      if (add == 2)
        PetscCall(VecCopy(z, y));
      else
        PetscCall(VecSet(y, (PetscScalar)NAN));
      PetscCall(add ? products[k].add(*M, x, add == 2 ? y : z, y) : products[k].mult(*M, x, y));
      PetscCall(ProductBounds(*M, x, add ? z : NULL, (PetscBool)(k > 0), b));
      PetscCall(RecordVec(r, products[k].name, y, b, 0));
    }
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_Scale(RandomBatch *batch, Mat *M, Record *r)
{
  return MatScale(*M, draw(2) ? 2.0 : 0.5);
}

static PetscErrorCode Op_Conjugate(RandomBatch *batch, Mat *M, Record *r)
{
  return MatConjugate(*M);
}

static PetscErrorCode Op_ZeroEntries(RandomBatch *batch, Mat *M, Record *r)
{
  return MatZeroEntries(*M);
}

static PetscErrorCode Op_Shift(RandomBatch *batch, Mat *M, Record *r)
{
  return MatShift(*M, 0.25 * (PetscReal)draw(5));
}

static PetscErrorCode Op_Diagonal(RandomBatch *batch, Mat *M, Record *r)
{
  Vec v;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(*M, &v, NULL));
  PetscCall(MatGetDiagonal(*M, v));
  PetscCall(RecordVec(r, "diagonal", v, NULL, 1));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_DiagonalSet(RandomBatch *batch, Mat *M, Record *r)
{
  Vec v;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(*M, &v, NULL));
  PetscCall(DrawVec(batch, v));
  PetscCall(MatDiagonalSet(*M, v, draw(2) ? ADD_VALUES : INSERT_VALUES));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_DiagonalScale(RandomBatch *batch, Mat *M, Record *r)
{
  Vec            v, w;
  const PetscInt which = draw(3);

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(*M, &v, &w));
  PetscCall(DrawVec(batch, v));
  PetscCall(DrawVec(batch, w));
  PetscCall(MatDiagonalScale(*M, which == 1 ? NULL : v, which == 2 ? NULL : w));
  PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_Duplicate(RandomBatch *batch, Mat *M, Record *r)
{
  Mat D;

  PetscFunctionBegin;
  PetscCall(MatDuplicate(*M, draw(2) ? MAT_COPY_VALUES : MAT_DO_NOT_COPY_VALUES, &D));
  PetscCall(MatCopy(*M, D, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(M));
  *M = D;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_AXPY(RandomBatch *batch, Mat *M, Record *r)
{
  Mat D;

  PetscFunctionBegin;
  PetscCall(MatDuplicate(*M, MAT_COPY_VALUES, &D));
  PetscCall(MatAXPY(*M, (PetscReal)draw(3), D, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A new matrix for AIJ: transposed in place it may keep functions for inodes that it no longer has, and the next ordering crashes */
static PetscErrorCode Op_Transpose(RandomBatch *batch, Mat *M, Record *r)
{
  const PetscInt how = draw(3);
  PetscBool      is_batch;
  Mat            T = NULL;

  PetscFunctionBegin;
  PetscCall(IsBatch(*M, &is_batch));
  if (is_batch && how == 2) {
    PetscCall(MatTranspose(*M, MAT_INPLACE_MATRIX, M));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (is_batch && how) PetscCall(MatTranspose(*M, MAT_INITIAL_MATRIX, &T));
  if (how == 1) PetscCall(MatScale(*M, 2.0));
  PetscCall(MatTranspose(*M, T ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &T));
  PetscCall(MatDestroy(M));
  *M = T;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A batch to AIJ and back */
static PetscErrorCode Op_Convert(RandomBatch *batch, Mat *M, Record *r)
{
  PetscBool is_batch;

  PetscFunctionBegin;
  PetscCall(IsBatch(*M, &is_batch));
  if (is_batch) {
    PetscCall(MatConvert(*M, MATAIJ, MAT_INPLACE_MATRIX, M));
    PetscCall(MatConvert(*M, MATBATCH, MAT_INPLACE_MATRIX, M));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values of some problems or of all; AIJ gets them row by row */
static PetscErrorCode Op_SetValues(RandomBatch *batch, Mat *M, Record *r)
{
  const PetscInt all = draw(2), few = draw(3), assemble = draw(2);
  const uint64_t common = seed;
  PetscScalar    v[MOST_ROWS * MOST_ROWS];
  PetscBool      is_batch, dropped = PETSC_FALSE;
  PetscInt       first, before     = 0;
  MatBatchInfo   info;
  Mat            D; /* AIJ has no MatGetRow() while it is filled */

  PetscFunctionBegin;
  PetscCall(IsBatch(*M, &is_batch));
  PetscCall(MatDuplicate(*M, MAT_DO_NOT_COPY_VALUES, &D));
  if (is_batch) { /* MatConvert() drops the problems without rows */
    PetscCall(MatBatchGetInfo(*M, &info));
    dropped = (PetscBool)(info.problems < batch->a.problems);
  }
  PetscCall(MatGetOwnershipRange(*M, &first, NULL));
  seed += 0x9E3779B97F4A7C15u * (uint64_t)(fuzz.rank + 1);
  for (PetscInt p = 0; p < batch->a.problems; p++) {
    const PetscInt  n = batch->a.sizes[p];
    PetscInt        i[MOST_ROWS + 1], j[MOST_ROWS * MOST_ROWS], at = 0;
    const PetscInt  write = all || p % 3 == few;
    const PetscInt *cols;

    i[0] = 0;
    for (PetscInt q = 0; q < n; q++) {
      PetscInt len;

      PetscCall(MatGetRow(D, first + q, &len, &cols, NULL));
      for (PetscInt k = 0; k < len; k++) j[at++] = cols[k] - first;
      i[q + 1] = at;
      PetscCall(MatRestoreRow(D, first + q, &len, &cols, NULL));
    }
    DrawProblem(batch, n, i, j, v);
    if (is_batch && write && (n || !dropped)) PetscCall(MatBatchSetValues(*M, p - before, v));
    before += dropped && !n;
    for (PetscInt q = 0; !is_batch && write && q < n; q++) {
      const PetscInt row = first + q;

      for (PetscInt k = i[q]; k < i[q + 1]; k++) PetscCall(MatSetValue(*M, row, first + j[k], v[k], INSERT_VALUES));
    }
    first += n;
  }
  PetscCall(MatDestroy(&D));
  seed = common + 1;
  if (is_batch && fuzz.size == 1 && !assemble) PetscFunctionReturn(PETSC_SUCCESS); /* needed if some ranks change nothing */
  PetscCall(MatAssemblyBegin(*M, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*M, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_Norms(RandomBatch *batch, Mat *M, Record *r)
{
  static const NormType norms[] = {NORM_1, NORM_FROBENIUS, NORM_INFINITY};
  PetscReal             norm, *columns;
  MatInfo               info;
  PetscInt              N;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    PetscCall(MatNorm(*M, norms[k], &norm));
    PetscCall(RecordReal(r, "norm", norm, 1e3));
  }
  PetscCall(MatGetSize(*M, NULL, &N));
  PetscCall(PetscMalloc1(N, &columns));
  PetscCall(MatGetColumnNorms(*M, (const NormType[]){NORM_1, NORM_2, NORM_INFINITY}[draw(3)], columns));
  for (PetscInt k = 0; k < N; k++) PetscCall(RecordReal(r, "norm of a column", columns[k], 1e3));
  PetscCall(PetscFree(columns));
  PetscCall(MatGetInfo(*M, MAT_GLOBAL_SUM, &info));
  PetscCall(RecordInt(r, "nonzeros", (PetscInt64)info.nz_used));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_RowMax(RandomBatch *batch, Mat *M, Record *r)
{
  PetscErrorCode (*const extreme[])(Mat, Vec, PetscInt[]) = {MatGetRowMaxAbs, MatGetRowMinAbs, MatGetRowMax, MatGetRowMin};
  PetscInt *where, n;
  Vec       v;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(*M, NULL, &v));
  PetscCall(MatGetLocalSize(*M, &n, NULL));
  PetscCall(PetscMalloc1(n, &where));
  PetscCall(extreme[draw(PetscDefined(USE_COMPLEX) ? 2 : 4)](*M, v, where));
  PetscCall(RecordVec(r, "extreme of a row", v, NULL, 1));
  for (PetscInt k = 0; k < n; k++) PetscCall(RecordInt(r, "place of the extreme", where[k]));
  PetscCall(PetscFree(where));
  PetscCall(MatGetRowSum(*M, v));
  PetscCall(RecordVec(r, "sum of a row", v, NULL, 1e3));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_Values(RandomBatch *batch, Mat *M, Record *r)
{
  PetscInt s, e, N;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(*M, &s, &e));
  PetscCall(MatGetSize(*M, NULL, &N));
  for (PetscInt k = 0; k < 20 && s < e; k++) {
    const PetscInt row     = s + (PetscInt)((e - s - 1) * (0.5 + 0.5 * Hash(k, s, 5)));
    const PetscInt cols[3] = {row, k % 2 ? PetscMin(N - 1, row + k / 2) : PetscMax(0, row - k / 2), (row * 7 + k) % N};
    PetscScalar    v[3];

    PetscCall(MatGetValues(*M, 1, &row, 3, cols, v));
    for (int c = 0; c < 3; c++) PetscCall(RecordAdd(r, "value", row, v[c], 1e3 * PETSC_MACHINE_EPSILON * PetscAbsScalar(v[c]), NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_Symmetry(RandomBatch *batch, Mat *M, Record *r)
{
  PetscBool is;
  Mat       D;

  PetscFunctionBegin;
  PetscCall(MatDuplicate(*M, MAT_COPY_VALUES, &D)); /* PETSc caches the answer */
  PetscCall(MatIsSymmetric(D, 0.0, &is));
  PetscCall(RecordInt(r, "is symmetric", is));
  PetscCall(MatEqual(D, *M, &is));
  if (batch->has & FINITE) PetscCall(RecordInt(r, "is equal", is));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_SubMatrix(RandomBatch *batch, Mat *M, Record *r)
{
  PetscInt s, e, n;
  IS       rows, other;
  Mat      S, *many;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(*M, &s, &e));
  n = e > s ? (e - s - 1) / 2 + 1 : 0;
  PetscCall(ISCreateStride(PetscObjectComm((PetscObject)*M), n, s, 1 + draw(2), &rows));
  PetscCall(MatCreateSubMatrix(*M, rows, rows, MAT_INITIAL_MATRIX, &S));
  PetscCall(RecordEntries(r, S));
  PetscCall(MatScale(*M, 2.0));
  PetscCall(MatCreateSubMatrix(*M, rows, rows, MAT_REUSE_MATRIX, &S));
  PetscCall(RecordEntries(r, S));
  PetscCall(MatDestroy(&S));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, n, s, 1, &rows));
  PetscCall(ISDuplicate(rows, &other));
  PetscCall(MatIncreaseOverlap(*M, 1, &rows, 1 + draw(2)));
  PetscCall(ISSort(rows));
  PetscCall(ISGetLocalSize(rows, &n));
  PetscCall(RecordInt(r, "rows with overlap", n));
  PetscCall(MatCreateSubMatrices(*M, 1, &other, &rows, MAT_INITIAL_MATRIX, &many));
  PetscCall(RecordEntries(r, many[0]));
  PetscCall(MatDestroySubMatrices(1, &many));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RecordIS(Record *r, const char *what, IS is)
{
  const PetscInt *i;
  PetscInt        n;

  PetscFunctionBegin;
  PetscCall(ISGetLocalSize(is, &n));
  PetscCall(ISGetIndices(is, &i));
  PetscCall(RecordInt(r, what, n));
  for (PetscInt k = 0; k < n; k++) PetscCall(RecordInt(r, what, i[k]));
  PetscCall(ISRestoreIndices(is, &i));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern that orderings use, an ordering, and a permutation by it */
static PetscErrorCode Op_Ordering(RandomBatch *batch, Mat *M, Record *r)
{
  static const char *const types[]   = {MATORDERINGNATURAL, MATORDERINGND, MATORDERING1WD, MATORDERINGRCM, MATORDERINGQMD, MATORDERINGROWLENGTH};
  const PetscBool          symmetric = (PetscBool)draw(2), inode = (PetscBool)draw(2);
  const PetscInt           shift = draw(2), columns = draw(2) && batch->has & DIAGONAL; /* AIJ crashes on the columns of empty rows */
  const PetscInt          *i, *j;
  PetscInt                 n, N;
  PetscBool                done;
  IS                       rows, cols;
  Mat                      P;

  PetscFunctionBegin;
  PetscCall(MatGetSize(*M, &N, NULL));
  PetscCall((columns ? MatGetColumnIJ : MatGetRowIJ)(*M, shift, symmetric, inode, &n, &i, &j, &done));
  PetscCall(RecordInt(r, "pattern is shown", done));
  if (done && N) {
    PetscCall(RecordInt(r, "rows of the pattern", n));
    for (PetscInt k = 0; k <= n; k++) PetscCall(RecordInt(r, "offset of the pattern", i[k]));
    for (PetscInt k = i[0]; k < i[n]; k++) PetscCall(RecordInt(r, "column of the pattern", j[k - i[0]]));
  }
  PetscCall((columns ? MatRestoreColumnIJ : MatRestoreRowIJ)(*M, shift, symmetric, inode, &n, &i, &j, &done));
  PetscCall(MatGetOrdering(*M, types[draw((PetscInt)PETSC_STATIC_ARRAY_LENGTH(types))], &rows, &cols));
  PetscCall(RecordIS(r, "ordering of rows", rows));
  PetscCall(RecordIS(r, "ordering of columns", cols));
  PetscCall(MatPermute(*M, rows, cols, &P));
  PetscCall(RecordEntries(r, P));
  PetscCall(MatDestroy(&P));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with a sparse matrix, with itself and with a dense one, and again with new values */
static PetscErrorCode Op_MatProducts(RandomBatch *batch, Mat *M, Record *r)
{
  const PetscInt which = draw(6);
  Mat            P, C;
  PetscInt       m, s, e, N;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(*M, &m, NULL));
  PetscCall(MatGetSize(*M, &N, NULL));
  PetscCall(MatGetOwnershipRange(*M, &s, &e));
  if (which == 5)
    PetscCall(MatCreateDense(PetscObjectComm((PetscObject)*M), m, PETSC_DECIDE, N, 3, NULL, &P));
  else
    PetscCall(MatCreateAIJ(PetscObjectComm((PetscObject)*M), m, PETSC_DECIDE, N, N / 2 + 1, 1, NULL, 1, NULL, &P));
  for (PetscInt i = s; i < e; i++) PetscCall(MatSetValue(P, i, which == 5 ? i % 3 : i / 2, Value(i, 1, 7), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(P, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(P, MAT_FINAL_ASSEMBLY));
  for (int again = 0; again < 2; again++) {
    const MatReuse reuse = again ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

    if (again) PetscCall(MatScale(*M, 2.0));
    if (which == 0) PetscCall(MatPtAP(*M, P, reuse, 3.0, &C));
    if (which == 1) PetscCall(MatTransposeMatMult(P, *M, reuse, 3.0, &C));
    if (which == 2) PetscCall(MatTransposeMatMult(*M, P, reuse, 3.0, &C));
    if (which == 3) PetscCall(MatMatMult(*M, *M, reuse, 3.0, &C));
    if (which >= 4) PetscCall(MatMatMult(*M, P, reuse, 3.0, &C));
    PetscCall(RecordEntries(r, C));
  }
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks of the diagonal, and sweeps with them */
static PetscErrorCode Op_Relax(RandomBatch *batch, Mat *M, Record *r)
{
  static const MatSORType sweeps[] = {SOR_FORWARD_SWEEP, SOR_LOCAL_FORWARD_SWEEP, SOR_LOCAL_BACKWARD_SWEEP, SOR_LOCAL_SYMMETRIC_SWEEP, SOR_BACKWARD_SWEEP};
  const MatSORType        sweep    = sweeps[fuzz.size > 1 ? 1 + draw(3) : draw(5)];
  const PetscInt          lits     = fuzz.size > 1 ? 1 + draw(2) : 1; /* SeqAIJ with inodes ignores it */
  Mat                     D;
  Vec                     x, b;
  PetscScalar            *inverse;
  PetscInt                total = 0, blocks = 0, *sizes;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(*M, &x, &b));
  PetscCall(DrawVec(batch, b));
  PetscCall(VecSet(x, 0.5));
  PetscCall(MatSOR(*M, b, draw(2) ? 1.0 : 1.2, (MatSORType)(sweep | (draw(2) ? SOR_ZERO_INITIAL_GUESS : 0)), 0.0, 1 + draw(2), lits, x));
  PetscCall(RecordVec(r, "relaxed", x, NULL, 1e5));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatGetDiagonalBlock(*M, &D));
  PetscCall(RecordEntries(r, D));
  PetscCall(PetscMalloc1(batch->a.problems, &sizes));
  for (PetscInt p = 0; p < batch->a.problems; p++) {
    total += batch->a.sizes[p] * batch->a.sizes[p];
    if (batch->a.sizes[p]) sizes[blocks++] = batch->a.sizes[p];
  }
  PetscCall(PetscMalloc1(total, &inverse));
  PetscCall(MatInvertVariableBlockDiagonal(D, blocks, sizes, inverse));
  for (PetscInt k = 0; k < total; k++) PetscCall(RecordAdd(r, "inverse of the problems", k, inverse[k], 1e5 * PETSC_MACHINE_EPSILON, NULL));
  PetscCall(PetscFree(inverse));
  PetscCall(PetscFree(sizes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- solvers */

/* Without PCGAMG and PCCP, which PETSc has only for matrices of AIJ's types, by name */
static const struct {
  const char *options;
  int         needs;
} solvers[] = {
    {"none", 0},
    {"jacobi", 0},
    {"jacobi -pc_jacobi_type rowmax", 0},
    {"jacobi -pc_jacobi_type rowsum", 0},
    {"jacobi -pc_jacobi_abs", 0},
    {"bjacobi", 0},
    {"bjacobi -sub_pc_type lu", 0},
    {"bjacobi -sub_pc_type ilu -sub_pc_factor_levels 1", 0},
    {"bjacobi -sub_pc_type cholesky", DEFINITE},
    {"bjacobi -sub_pc_type icc", DEFINITE},
    {"bjacobi -sub_pc_type sor", 0},
    {"bjacobi -pc_bjacobi_local_blocks 2 -sub_pc_type lu", 0},
    {"pbjacobi", 0},
    {"vpbjacobi", 0},
    {"sor", 0},
    {"sor -pc_sor_local_backward -pc_sor_its 2", 0},
    {"sor -pc_sor_local_symmetric -pc_sor_omega 1.3", 0},
    {"eisenstat", ONERANK}, /* AIJ hangs if some ranks have no inodes */
    {"asm", 0},
    {"asm -pc_asm_overlap 0 -sub_pc_type lu", 0},
    {"asm -pc_asm_overlap 2 -pc_asm_type basic -sub_pc_type lu", 0},
#if !defined(PETSC_HAVE_PTSCOTCH) || !defined(PETSC_USE_64BIT_INDICES) /* PTScotch 7.0 with 64-bit integers does not terminate on some graphs without edges */
    {"asm -pc_asm_local_blocks 2 -sub_pc_type ilu", 0},
#endif
    {"gasm", 0},
    {"redundant", 0},
    {"telescope -telescope_pc_type jacobi", 0},
    {"ksp -ksp_ksp_type gmres -ksp_pc_type jacobi", 0},
    {"composite -pc_composite_pcs jacobi,sor", 0},
    {"mg -pc_mg_levels 1 -mg_levels_0_ksp_type gmres -mg_levels_0_pc_type jacobi", 0},
    {"kaczmarz", 0},
    {"svd", ONERANK},
    {"lu", ONERANK},
    {"lu -pc_factor_mat_ordering_type natural", ONERANK},
    {"lu -pc_factor_mat_ordering_type rcm", ONERANK},
    {"lu -pc_factor_mat_ordering_type 1wd", ONERANK},
    {"lu -pc_factor_mat_ordering_type qmd", ONERANK},
    {"lu -pc_factor_mat_ordering_type rowlength", ONERANK},
    {"lu -pc_factor_mat_ordering_type evchyb", ONERANK},
    {"lu -pc_factor_nonzeros_along_diagonal", ONERANK},
    {"lu -pc_factor_reuse_ordering -pc_factor_reuse_fill -pc_factor_shift_type nonzero", ONERANK},
    {"ilu", ONERANK},
    {"ilu -pc_factor_levels 2", ONERANK},
    {"ilu -pc_factor_mat_ordering_type rcm", ONERANK},
    {"ilu -pc_factor_mat_ordering_type nd -pc_factor_levels 1", ONERANK},
    {"ilu -pc_factor_diagonal_fill -pc_factor_shift_type inblocks", ONERANK},
    {"cholesky", ONERANK | DEFINITE},
    {"cholesky -pc_factor_mat_ordering_type nd", ONERANK | DEFINITE},
    {"cholesky -pc_factor_mat_ordering_type rcm", ONERANK | DEFINITE},
    {"cholesky -pc_factor_mat_ordering_type qmd", ONERANK | DEFINITE},
    {"icc", ONERANK | DEFINITE},
    {"icc -pc_factor_levels 1", ONERANK | DEFINITE},
    {"icc -pc_factor_mat_ordering_type rcm -pc_factor_shift_type positive_definite", ONERANK | DEFINITE},
};

static PetscErrorCode DrawSolver(RandomBatch *batch)
{
  size_t      k;
  const char *ksp;

  PetscFunctionBegin;
  do k = (size_t)draw((PetscInt)PETSC_STATIC_ARRAY_LENGTH(solvers));
  while ((solvers[k].needs & batch->has) != solvers[k].needs);
  ksp = batch->has & DEFINITE && !draw(4) ? "gcr" : (draw(3) ? "gmres" : "fgmres");
  PetscCall(PetscSNPrintf(batch->solver, sizeof(batch->solver), "-ksp_type %s -pc_type %s", ksp, solvers[k].options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Twice: the second time with new values, for which everything is set up again */
static PetscErrorCode Solve(RandomBatch *batch, Mat *M, Record *r)
{
  KSP                ksp;
  Vec                x, b;
  PetscInt           its;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(SetBlocks(batch, *M));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)*M), &ksp));
  PetscCall(KSPSetOperators(ksp, *M, *M));
  PetscCall(KSPSetTolerances(ksp, 1e3 * PETSC_MACHINE_EPSILON, PETSC_DEFAULT, PETSC_DEFAULT, 1000));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(MatCreateVecs(*M, &x, &b));
  for (int again = 0; again < 2; again++) {
    PetscCall(DrawVec(batch, b));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(KSPGetIterationNumber(ksp, &its));
    PetscCall(RecordAdd(r, "iterations", again, its, 2 + its / 4, NULL));
    PetscCheck(reason > 0, PetscObjectComm((PetscObject)*M), PETSC_ERR_NOT_CONVERGED, "not solved: reason %d", (int)reason);
    PetscCall(RecordVec(r, "solution", x, NULL, 1e6));
    if (!again) PetscCall(MatScale(*M, 2.0));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_Solve(RandomBatch *batch, Mat *M, Record *r)
{
  PetscOptions   options;
  PetscBool      set;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscOptionsCreate(&options));
  PetscCall(PetscOptionsInsertString(options, batch->solver));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_no_inode", &set)); /* for the copies in AIJ that the batch creates now */
  if (set) PetscCall(PetscOptionsSetValue(options, "-mat_no_inode", NULL));
  PetscCall(PetscOptionsPush(options));
  ierr = Solve(batch, M, r);
  PetscCall(PetscOptionsPop());
  PetscCall(PetscOptionsDestroy(&options));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- running */

static const struct {
  const char *name;
  PetscErrorCode (*run)(RandomBatch *, Mat *, Record *);
  int needs, loses; /* loses: properties that the matrix no longer has afterwards */
} operations[] = {
    {"products", Op_Products, 0, 0},
    {"MatScale()", Op_Scale, 0, 0},
    {"MatConjugate()", Op_Conjugate, 0, 0},
    {"MatZeroEntries()", Op_ZeroEntries, 0, DOMINANT | DEFINITE},
    {"MatShift()", Op_Shift, DIAGONAL, 0},
    {"MatGetDiagonal()", Op_Diagonal, 0, 0},
    {"MatDiagonalSet()", Op_DiagonalSet, DIAGONAL, DOMINANT | DEFINITE},
    {"MatDiagonalScale()", Op_DiagonalScale, 0, DOMINANT | DEFINITE},
    {"MatDuplicate()", Op_Duplicate, 0, 0},
    {"MatAXPY()", Op_AXPY, 0, 0},
    {"MatTranspose()", Op_Transpose, 0, 0},
    {"MatConvert()", Op_Convert, 0, 0},
    {"MatBatchSetValues()", Op_SetValues, 0, 0},
    {"norms", Op_Norms, FINITE, 0},
    {"MatGetRowMax()", Op_RowMax, FINITE, 0},
    {"MatGetValues()", Op_Values, 0, 0},
    {"MatIsSymmetric()", Op_Symmetry, FINITE, 0},
    {"MatCreateSubMatrix()", Op_SubMatrix, FINITE, 0},
    {"MatGetOrdering()", Op_Ordering, ONERANK, 0},
    {"MatMatMult()", Op_MatProducts, FINITE, 0},
    {"MatSOR()", Op_Relax, DOMINANT, 0},
    {"solver", Op_Solve, DOMINANT, 0},
};
#define NOPERATIONS ((PetscInt)PETSC_STATIC_ARRAY_LENGTH(operations))

/* Collective. An operation on AIJ or on the batch, then the entries and products of the matrix; failed on all ranks if on any */
static PetscErrorCode Run(RandomBatch *batch, PetscInt op, const char *type, Mat *M, Record *r, PetscBool *failed)
{
  PetscErrorCode ierr;
  int            any;

  PetscFunctionBegin;
  fuzz.error[0] = 0;
  fuzz.running  = type;
  now.run       = type;
  ierr          = operations[op].run(batch, M, r);
  if (!ierr && operations[op].run != Op_Products) ierr = RecordEntries(r, *M);
  if (!ierr && operations[op].run != Op_Products) ierr = Op_Products(batch, M, r);
  any = ierr ? 1 : 0;
  PetscCall(FuzzAgree(&any));
  *failed = (PetscBool)any;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One operation on both; `end`: the matrices are of no more use */
static PetscErrorCode Both(RandomBatch *batch, PetscInt op, Mat *A, Mat *B, PetscBool *end)
{
  Record    rec[2];
  char      what[400];
  uint64_t  drawn;
  PetscInt  bad = 0;
  PetscBool failed;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(rec, sizeof(rec)));
  if (operations[op].run == Op_Solve) PetscCall(DrawSolver(batch));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s%s%s", operations[op].name, operations[op].run == Op_Solve ? " " : "",
                          operations[op].run == Op_Solve ? batch->solver : ""));
  FuzzLog("; %s", what);
  now.operation = what;
  drawn         = seed;
  PetscCall(Run(batch, op, MATAIJ, B, &rec[0], &failed));
  *end = failed;
  if (failed) FuzzLog(" (AIJ itself fails: %.200s)", fuzz.error);
  if (!failed) {
    seed = drawn;
    PetscCall(Run(batch, op, MATBATCH, A, &rec[1], end));
    if (*end)
      FuzzReport("%s", fuzz.error[0] ? fuzz.error : "another rank has failed");
    else {
      PetscCall(Compare(&rec[0], NULL, &rec[1], PETSC_TRUE, &bad));
      if (bad) FuzzReport("results of %s differ, see above", what);
    }
  }
  {
    int any = fuzz.bad > 0;

    PetscCall(FuzzAgree(&any));
    if (any) *end = PETSC_TRUE;
  }
  fuzz.checks += rec[1].n;
  batch->has &= ~operations[op].loses;
  for (int k = 0; k < 2; k++) PetscCall(RecordReset(&rec[k]));
  fuzz.running = now.run = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the options of the command line select an operation */
static PetscErrorCode Selected(PetscInt op, PetscBool *in)
{
  PetscBool skip;

  PetscFunctionBegin;
  PetscCall(Listed(operations[op].name, fuzz.nonly, fuzz.only, in));
  PetscCall(Listed(operations[op].name, fuzz.nskip, fuzz.skip, &skip));
  *in = (PetscBool)((*in || !fuzz.nonly) && !skip);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OneCase(void)
{
  static char name[64];
  RandomBatch batch;
  Mat         A, B;
  Vec         x;
  PetscBool   end = PETSC_FALSE, in;
  PetscInt    steps, op;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&batch, sizeof(batch)));
  now.program   = fuzz.program;
  now.under     = MATBATCH;
  now.name      = name;
  now.operation = "creation";
  now.rank      = fuzz.rank;
  now.size      = fuzz.size;
  now.turn      = fuzz.number;
  PetscCall(PetscSNPrintf(name, sizeof(name), "of seed %" PetscInt_FMT, fuzz.number));
  seed = 88172645463325252u ^ (0x9E3779B97F4A7C15u * (uint64_t)(fuzz.number + 1));
  for (int k = 0; k < 8; k++) (void)draw(2);
  PetscCall(DrawBatch(&batch, fuzz.rank, fuzz.size));
  PetscCall(MakeAIJ(fuzz.comm, &batch.a, &B, NULL));
  PetscCall(MakeBatch(fuzz.comm, &batch, B, &A));
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)x, &fuzz.device, VECSEQCUDA, VECMPICUDA, ""));
  PetscCall(VecDestroy(&x));
  steps = 2 + draw(5);
  steps = PetscMin(steps, fuzz.steps);
  PetscCall(Both(&batch, 0, &A, &B, &end));
  for (PetscInt k = 0; k < steps && !end; k++) {
    do op = batch.has & DOMINANT && draw(2) ? NOPERATIONS - 1 : draw(NOPERATIONS);
    while ((operations[op].needs & batch.has) != operations[op].needs);
    PetscCall(Selected(op, &in));
    if (in) PetscCall(Both(&batch, op, &A, &B, &end));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(ArraysDestroy(&batch.a));
  if (fuzz.verbose) PetscCall(PetscPrintf(fuzz.comm, "%" PetscInt_FMT ": %s\n", fuzz.number, fuzz.log));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return FuzzMain(argc, argv, "fuzzbatch", MATBATCH, OneCase);
}
