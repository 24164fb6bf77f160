/* The operations of tests/fuzzbatch.c, on AIJ or on a batch; some replace the matrix */
#include "fuzzbatch.h"

static PetscErrorCode IsBatch(Mat M, PetscBool *is)
{
  return PetscObjectTypeCompare((PetscObject)M, MATBATCH, is);
}

PetscErrorCode DrawVec(const RandomBatch *batch, Vec v)
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
    if (Hash(r, k, 1) < -0.85 && !PetscDefined(USE_COMPLEX))
      a[r - s] = (PetscScalar)(Hash(r, k, 2) > 0 ? INFINITY : -INFINITY);
  }
  PetscCall(VecRestoreArray(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = A x, y = z + A x, y += A x, of the matrix, its transpose and its Hermitian transpose */
PetscErrorCode Op_Products(RandomBatch *batch, Mat *M, Record *r)
{
  static const struct {
    const char *name;
    PetscErrorCode (*mult)(Mat, Vec, Vec), (*add)(Mat, Vec, Vec, Vec);
  } products[] = {{"A x", MatMult, MatMultAdd},
                  {"A^T x", MatMultTranspose, MatMultTransposeAdd},
                  {"A^H x", MatMultHermitianTranspose, MatMultHermitianTransposeAdd}};
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

PetscErrorCode Op_Scale(RandomBatch *batch, Mat *M, Record *r)
{
  return MatScale(*M, draw(2) ? 2.0 : 0.5);
}

PetscErrorCode Op_Conjugate(RandomBatch *batch, Mat *M, Record *r)
{
  return MatConjugate(*M);
}

PetscErrorCode Op_ZeroEntries(RandomBatch *batch, Mat *M, Record *r)
{
  return MatZeroEntries(*M);
}

PetscErrorCode Op_Shift(RandomBatch *batch, Mat *M, Record *r)
{
  return MatShift(*M, 0.25 * (PetscReal)draw(5));
}

PetscErrorCode Op_Diagonal(RandomBatch *batch, Mat *M, Record *r)
{
  Vec v;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(*M, &v, NULL));
  PetscCall(MatGetDiagonal(*M, v));
  PetscCall(RecordVec(r, "diagonal", v, NULL, 1));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Op_DiagonalSet(RandomBatch *batch, Mat *M, Record *r)
{
  Vec v;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(*M, &v, NULL));
  PetscCall(DrawVec(batch, v));
  PetscCall(MatDiagonalSet(*M, v, draw(2) ? ADD_VALUES : INSERT_VALUES));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Op_DiagonalScale(RandomBatch *batch, Mat *M, Record *r)
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

PetscErrorCode Op_Duplicate(RandomBatch *batch, Mat *M, Record *r)
{
  Mat D;

  PetscFunctionBegin;
  PetscCall(MatDuplicate(*M, draw(2) ? MAT_COPY_VALUES : MAT_DO_NOT_COPY_VALUES, &D));
  PetscCall(MatCopy(*M, D, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(M));
  *M = D;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Op_AXPY(RandomBatch *batch, Mat *M, Record *r)
{
  Mat D;

  PetscFunctionBegin;
  PetscCall(MatDuplicate(*M, MAT_COPY_VALUES, &D));
  PetscCall(MatAXPY(*M, (PetscReal)draw(3), D, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJ gets a new matrix, because after a transpose in place its orderings are not reliable (docs/petsc-issues.md) */
PetscErrorCode Op_Transpose(RandomBatch *batch, Mat *M, Record *r)
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
PetscErrorCode Op_Convert(RandomBatch *batch, Mat *M, Record *r)
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
PetscErrorCode Op_SetValues(RandomBatch *batch, Mat *M, Record *r)
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
  /* assembly is needed only if some ranks change nothing */
  if (is_batch && fuzz.size == 1 && !assemble) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatAssemblyBegin(*M, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*M, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Op_Norms(RandomBatch *batch, Mat *M, Record *r)
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

PetscErrorCode Op_RowMax(RandomBatch *batch, Mat *M, Record *r)
{
  PetscErrorCode (*const extreme[])(Mat, Vec, PetscInt[]) = {MatGetRowMaxAbs, MatGetRowMinAbs, MatGetRowMax,
                                                             MatGetRowMin};
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

PetscErrorCode Op_Values(RandomBatch *batch, Mat *M, Record *r)
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
    for (int c = 0; c < 3; c++)
      PetscCall(RecordAdd(r, "value", row, v[c], 1e3 * PETSC_MACHINE_EPSILON * PetscAbsScalar(v[c]), NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Op_Symmetry(RandomBatch *batch, Mat *M, Record *r)
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

PetscErrorCode Op_SubMatrix(RandomBatch *batch, Mat *M, Record *r)
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
PetscErrorCode Op_Ordering(RandomBatch *batch, Mat *M, Record *r)
{
  static const char *const types[]   = {MATORDERINGNATURAL, MATORDERINGND,  MATORDERING1WD,
                                        MATORDERINGRCM,     MATORDERINGQMD, MATORDERINGROWLENGTH};
  const PetscBool          symmetric = (PetscBool)draw(2), inode = (PetscBool)draw(2);
  /* AIJ's are not reliable otherwise */
  const PetscInt  shift = draw(2), columns = draw(2) && batch->has & DIAGONAL;
  const PetscInt *i, *j;
  PetscInt        n, N;
  PetscBool       done;
  IS              rows, cols;
  Mat             P;

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
PetscErrorCode Op_MatProducts(RandomBatch *batch, Mat *M, Record *r)
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
  for (PetscInt i = s; i < e; i++)
    PetscCall(MatSetValue(P, i, which == 5 ? i % 3 : i / 2, Value(i, 1, 7), INSERT_VALUES));
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
PetscErrorCode Op_Relax(RandomBatch *batch, Mat *M, Record *r)
{
  static const MatSORType sweeps[] = {SOR_FORWARD_SWEEP, SOR_LOCAL_FORWARD_SWEEP, SOR_LOCAL_BACKWARD_SWEEP,
                                      SOR_LOCAL_SYMMETRIC_SWEEP, SOR_BACKWARD_SWEEP};
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
  PetscCall(MatSOR(*M, b, draw(2) ? 1.0 : 1.2, (MatSORType)(sweep | (draw(2) ? SOR_ZERO_INITIAL_GUESS : 0)), 0.0,
                   1 + draw(2), lits, x));
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
  for (PetscInt k = 0; k < total; k++)
    PetscCall(RecordAdd(r, "inverse of the problems", k, inverse[k], 1e5 * PETSC_MACHINE_EPSILON, NULL));
  PetscCall(PetscFree(inverse));
  PetscCall(PetscFree(sizes));
  PetscFunctionReturn(PETSC_SUCCESS);
}
