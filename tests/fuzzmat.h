/*
  The fuzzer's matrices: random patterns, values and layouts, the ways to assemble them, and the check of a product against sums in long double.
*/
#pragma once

#include "fuzz.h"
#include <float.h>

typedef enum {
  PATTERN_RANDOM,
  PATTERN_DIAGONALS,
  PATTERN_STENCIL,
  PATTERN_NODES,
  PATTERN_POWER,
  PATTERN_DENSEROWS,
  PATTERN_LENGTHS,
  PATTERN_HOLES,
  PATTERN_REPEATED,
  PATTERN_GROUPS,
  PATTERN_FULL,
  PATTERN_NONE,
  PATTERNS
} Pattern;

typedef enum {
  VALUES_RANDOM,
  VALUES_EQUAL,
  VALUES_FEW,
  VALUES_DIAGONALS,
  VALUES_INTEGERS,
  VALUES_WIDE,
  VALUES_DENORMAL,
  VALUES_ZEROS,
  VALUES_NONFINITE,
  VALUES
} Values_;

static const char *const PatternNames[] = {"random",  "diagonals", "stencil",  "nodes",  "power law", "dense rows",
                                           "lengths", "holes",     "repeated", "groups", "full",      "none"};
static const char *const ValuesNames[]  = {"random", "equal", "few", "by diagonals", "integers", "wide", "denormal", "zeros", "nonfinite"};

/* From this, each rank computes any row of the matrix */
typedef struct {
  PetscInt  M, N, m, n, bs; /* sizes, those of this rank, and the block size */
  Pattern   pattern;
  Values_   values;
  PetscInt  salt, longest, offset[16], noffsets, period;
  PetscReal norow, nocolumn; /* the shares of rows and columns that are empty */
  PetscBool dominant;        /* the diagonal dominates */
} Shape;

static inline PetscReal Uniform(PetscInt i, PetscInt j, PetscInt salt)
{
  return 0.5 + 0.4999999 * Hash(i, j, salt);
}

static inline PetscScalar Complex(PetscReal re, PetscReal im)
{
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(re, im);
#else
  return re;
#endif
}

/* The smallest normal number */
#if defined(PETSC_USE_REAL_SINGLE)
  #define FUZZ_REAL_MIN FLT_MIN
#else
  #define FUZZ_REAL_MIN DBL_MIN
#endif
#define FUZZ_DENORMAL (FUZZ_REAL_MIN * (PetscReal)0.01)

static inline PetscScalar ShapeValue(const Shape *s, PetscInt i, PetscInt j)
{
  const PetscReal u = Uniform(i, j, s->salt + 11);

  switch (s->values) {
  case VALUES_EQUAL: return Complex(1.0 + 0.25 * (s->salt % 7), -0.5);
  case VALUES_FEW: return Complex((PetscInt)(4 * u) - 1.7, 0.3 * (PetscInt)(3 * u));
  case VALUES_DIAGONALS: return Value(j - i, 0, s->salt);
  case VALUES_INTEGERS: return Complex((PetscInt)(19 * u) - 9, (PetscInt)(5 * u) - 2);
  case VALUES_WIDE: return PetscPowReal(10, PetscDefined(USE_REAL_SINGLE) ? 6 * u - 3 : 24 * u - 12) * Value(i, j, s->salt);
  case VALUES_DENORMAL: return u < 0.5 ? FUZZ_DENORMAL * Value(i, j, s->salt) : Value(i, j, s->salt);
  case VALUES_ZEROS: return u < 0.3 ? Complex(0., 0.) : u < 0.6 ? Complex(-0., 0.) : Value(i, j, s->salt);
  case VALUES_NONFINITE:
    if (u < 0.02) return Complex(INFINITY, 0.);
    if (u < 0.03) return Complex(-INFINITY, 0.);
    if (u < 0.05) return Complex(NAN, 0.);
    return Value(i, j, s->salt);
  default: return Value(i, j, s->salt);
  }
}

/* The columns of row i by its pattern alone, in any order, perhaps some twice, perhaps outside */
static inline PetscInt ShapeColumns(const Shape *s, PetscInt i, PetscInt cols[])
{
  const PetscInt  lengths[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129};
  PetscInt        n = 0, len = (PetscInt)(s->longest * Uniform(i, 0, s->salt) + 0.5), row = i, base = 0;
  const PetscReal u = Uniform(i, 1, s->salt);

  switch (s->pattern) {
  case PATTERN_NONE: return 0;
  case PATTERN_DIAGONALS:
  case PATTERN_STENCIL:
    for (PetscInt k = 0; k < s->noffsets; k++) {
      if (s->pattern == PATTERN_DIAGONALS && s->period % 2 && Uniform(i, s->offset[k], s->salt + 1) < 0.1) continue;
      cols[n++] = i + s->offset[k];
    }
    return n;
  case PATTERN_NODES:
    len = (PetscInt)(1 + s->longest / s->bs * Uniform(i / s->bs, 0, s->salt));
    for (PetscInt k = 0; k < len; k++) {
      const PetscInt node = (PetscInt)((s->N / s->bs) * Uniform(i / s->bs, k, s->salt + 2));

      for (PetscInt c = 0; c < s->bs; c++) {
        if (s->period > 3 || Uniform(i, c + k, s->salt + 3) > 0.02) cols[n++] = node * s->bs + c;
      }
    }
    return n;
  case PATTERN_POWER: len = (PetscInt)PetscMin(s->N, 1 / PetscPowReal(u, 1.5)); break;
  case PATTERN_FULL: len = s->N; break;
  case PATTERN_DENSEROWS: len = u < 0.06 ? s->N : PetscMin(3, len); break;
  case PATTERN_LENGTHS: len = lengths[(PetscInt)(21 * u)]; break;
  case PATTERN_HOLES: len = i % (3 + 4 * s->period) == 1 ? len : 0; break;
  case PATTERN_REPEATED: /* the same columns relative to the row, every so many rows */
    row  = i % s->period;
    base = i - row;
    len  = (PetscInt)(s->longest * Uniform(row, 0, s->salt));
    break;
  case PATTERN_GROUPS: /* the same columns for rows that follow each other */
    row = i / s->period;
    len = (PetscInt)(s->longest * Uniform(row, 0, s->salt));
    break;
  default: break;
  }
  len = PetscMin(len, s->N);
  if (len == s->N) {
    for (PetscInt j = 0; j < s->N; j++) cols[n++] = j;
  } else if (Uniform(row, 2, s->salt) < 0.3) { /* next to each other */
    const PetscInt begin = (PetscInt)((s->N - len) * Uniform(row, 3, s->salt));

    for (PetscInt k = 0; k < len; k++) cols[n++] = base + begin + k;
  } else
    for (PetscInt k = 0; k < len; k++) cols[n++] = base + (PetscInt)(s->N * Uniform(row, k, s->salt + 4));
  return n;
}

/* Row i, ascending; cols and vals hold N + 200 */
static inline PetscErrorCode ShapeRow(const Shape *s, PetscInt i, PetscInt *n, PetscInt cols[], PetscScalar vals[])
{
  PetscInt  k = 0, diag = -1;
  PetscReal sum = 0;

  PetscFunctionBegin;
  *n = ShapeColumns(s, i, cols);
  if (s->dominant) cols[(*n)++] = i;
  for (PetscInt q = 0; q < *n; q++) {
    if (cols[q] < 0 || cols[q] >= s->N) continue;
    if (!(s->dominant && cols[q] == i) && (Uniform(i, 5, s->salt) < s->norow || Uniform(cols[q], 6, s->salt) < s->nocolumn)) continue;
    cols[k++] = cols[q];
  }
  *n = k;
  PetscCall(PetscSortRemoveDupsInt(n, cols));
  for (k = 0; k < *n; k++) {
    vals[k] = ShapeValue(s, i, cols[k]);
    if (cols[k] == i)
      diag = k;
    else
      sum += PetscAbsScalar(vals[k]);
  }
  if (s->dominant && diag >= 0) vals[diag] = sum * 1.5 + 1 + (s->values == VALUES_EQUAL ? 0 : Uniform(i, i, s->salt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This rank's part of n (a multiple of bs) in one of the ways to deal it out */
static inline PetscInt LocalSize(PetscInt n, PetscInt bs, PetscInt way, PetscInt salt)
{
  const PetscInt blocks = n / bs, none = salt % fuzz.size;
  PetscInt       begin = 0;

  if (fuzz.size == 1) return n;
  for (PetscMPIInt r = 0; r <= fuzz.rank; r++) {
    const PetscInt left = blocks - begin;
    PetscInt       part = blocks / fuzz.size + (r < blocks % fuzz.size);

    if (way == 1) part = r == none ? 0 : left / PetscMax(1, fuzz.size - r - (none > r)); /* a rank has none */
    if (way == 2) part = (PetscInt)(left * Uniform(r, 7, salt));
    if (way == 3) part = r == none ? left : 0; /* a rank has all */
    if (r == fuzz.size - 1) part = left;
    if (way == 1 && r == none) part = r == fuzz.size - 1 ? left : 0;
    if (r == fuzz.rank) return part * bs;
    begin += part;
  }
  return 0;
}

static inline PetscInt RandomSize(void)
{
  const PetscInt kind = draw(100);

  if (kind < 3) return 0;
  if (kind < 55) return 1 + draw(40);
  if (kind < 92) return 1 + draw(130);
  return 1 + draw(350);
}

/* Pattern and values at random, for sizes and layouts that are there already */
static inline void ShapeDraw(Shape *s, PetscBool small)
{
  const PetscInt w = 1 + draw(20);

  s->pattern = (Pattern)draw(small ? PATTERN_LENGTHS : PATTERNS);
  s->values  = (Values_)draw(VALUES);
  if (small && s->values == VALUES_NONFINITE) s->values = VALUES_RANDOM;
  if (s->pattern == PATTERN_FULL && s->M * s->N > 4000) s->pattern = PATTERN_DENSEROWS;
  s->salt     = 1 + draw(1000000);
  s->longest  = small ? 3 : 1 + draw(Chance(70) ? 12 : 60);
  s->period   = 1 + draw(8);
  s->noffsets = 1 + draw(small ? 4 : 16);
  if (s->pattern == PATTERN_STENCIL) {
    s->noffsets = Chance(50) ? 5 : 7;
    for (PetscInt k = 0; k < 7; k++) s->offset[k] = (const PetscInt[]){0, -1, 1, -w, w, -w * w, w * w}[k];
  } else
    for (PetscInt k = 0; k < s->noffsets; k++) s->offset[k] = draw(Chance(50) ? 9 : 61) - (Chance(50) ? 4 : 30);
  s->norow    = Chance(25) ? 0.01 * draw(80) : 0;
  s->nocolumn = Chance(15) ? 0.01 * draw(80) : 0;
  s->dominant = PETSC_FALSE;
  if (s->pattern != PATTERN_NODES || s->M % s->bs || s->N % s->bs) s->pattern = s->pattern == PATTERN_NODES ? PATTERN_GROUPS : s->pattern;
}

/* A shape at random: rectangular ones, too */
static inline void ShapeCreate(Shape *s)
{
  const PetscInt way = fuzz.size > 1 && Chance(40) ? 1 + draw(3) : 0, salt = draw(1000);

  s->bs = Chance(30) ? 1 + draw(8) : 1;
  s->M  = RandomSize() / s->bs * s->bs;
  s->N  = Chance(65) ? s->M : RandomSize() / s->bs * s->bs;
  s->m  = LocalSize(s->M, s->bs, way, salt);
  s->n  = s->M == s->N ? s->m : LocalSize(s->N, s->bs, way, salt + 1);
  ShapeDraw(s, PETSC_FALSE);
  if (s->bs > 1 && Chance(70)) s->pattern = PATTERN_NODES;
  if (s->M == s->N && Chance(40)) {
    s->dominant = PETSC_TRUE;
    if (s->values == VALUES_NONFINITE || s->values == VALUES_WIDE || s->values == VALUES_DENORMAL) s->values = VALUES_RANDOM;
  }
}

typedef enum { BUILD_EXACT, BUILD_LITTLE, BUILD_SETUP, BUILD_COO, BUILD_CSR, BUILD_CONVERT, BUILD_INPLACE, BUILDS } Build;
static const char *const BuildNames[] = {"preallocated", "preallocated too little", "MatSetUp", "COO", "CSR", "converted", "converted in place"};

/* The rows of this rank, as compressed rows */
typedef struct {
  PetscInt     m, begin, *i, *j;
  PetscScalar *v;
} Rows;

static inline PetscErrorCode RowsDestroy(Rows *r)
{
  PetscFunctionBegin;
  PetscCall(PetscFree3(r->i, r->j, r->v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode RowsOfShape(const Shape *s, PetscInt begin, Rows *r)
{
  PetscInt    *cols, n;
  PetscScalar *vals;

  PetscFunctionBegin;
  r->m     = s->m;
  r->begin = begin;
  PetscCall(PetscMalloc2(s->N + 200, &cols, s->N + 200, &vals));
  for (int pass = 0; pass < 2; pass++) {
    PetscInt nz = 0;

    for (PetscInt i = 0; i < s->m; i++) {
      PetscCall(ShapeRow(s, begin + i, &n, cols, vals));
      if (pass) {
        PetscCall(PetscArraycpy(r->j + nz, cols, n));
        PetscCall(PetscArraycpy(r->v + nz, vals, n));
      }
      nz += n;
      if (pass) r->i[i + 1] = nz;
    }
    if (!pass) {
      PetscCall(PetscMalloc3(s->m + 1, &r->i, nz, &r->j, nz, &r->v));
      r->i[0] = 0;
    }
  }
  PetscCall(PetscFree2(cols, vals));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The rows of a matrix of AIJ's kind, from its sequential blocks: after MatDiagonalSet() has made new entries, MatGetRow() of MPIAIJ writes past the end of a buffer that
  it allocated for the rows as they were (PETSc 3.18 to 3.26)
*/
static inline PetscErrorCode RowsOfMat(Mat A, Rows *r)
{
  Mat             block[2] = {A, NULL};
  const PetscInt *garray   = NULL;
  PetscInt        rs, re, cs, nz = 0;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetOwnershipRangeColumn(A, &cs, NULL));
  if (fuzz.size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], &garray));
  r->m     = re - rs;
  r->begin = rs;
  for (int pass = 0; pass < 2; pass++) {
    if (pass) {
      PetscCall(PetscMalloc3(r->m + 1, &r->i, nz, &r->j, nz, &r->v));
      r->i[0] = 0;
    }
    for (PetscInt i = 0; i < r->m; i++) {
      PetscInt at = pass ? r->i[i] : 0, begin = at;

      for (int k = 0; k < 2 && block[k]; k++) {
        PetscInt           n;
        const PetscInt    *cols;
        const PetscScalar *vals;

        PetscCall(MatGetRow(block[k], i, &n, &cols, &vals));
        for (PetscInt q = 0; pass && q < n; q++) {
          r->j[at + q] = fuzz.size == 1 ? cols[q] : k ? garray[cols[q]] : cs + cols[q];
          r->v[at + q] = vals[q];
        }
        at += n;
        nz += pass ? 0 : n;
        PetscCall(MatRestoreRow(block[k], i, &n, &cols, &vals));
      }
      if (pass) r->i[i + 1] = at;
      if (pass && fuzz.size > 1) PetscCall(PetscSortIntWithScalarArray(at - begin, r->j + begin, r->v + begin));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fills a matrix by MatSetValues() */
static inline PetscErrorCode SetRows(Mat A, const Rows *r)
{
  PetscFunctionBegin;
  for (PetscInt i = 0; i < r->m; i++) {
    const PetscInt row = r->begin + i;

    PetscCall(MatSetValues(A, 1, &row, r->i[i + 1] - r->i[i], r->j + r->i[i], r->v + r->i[i], INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode PreallocateRows(Mat A, const Rows *r)
{
  PetscInt    cs, ce, *d, *o;
  PetscLayout rows, cols;

  PetscFunctionBegin;
  PetscCall(MatGetLayouts(A, &rows, &cols));
  PetscCall(PetscLayoutSetUp(rows));
  PetscCall(PetscLayoutSetUp(cols));
  PetscCall(MatGetOwnershipRangeColumn(A, &cs, &ce));
  PetscCall(PetscCalloc2(r->m, &d, r->m, &o));
  for (PetscInt i = 0; i < r->m; i++) {
    for (PetscInt k = r->i[i]; k < r->i[i + 1]; k++) (fuzz.size == 1 || (r->j[k] >= cs && r->j[k] < ce) ? d : o)[i]++;
  }
  PetscCall(MatSeqAIJSetPreallocation(A, 0, d));
  PetscCall(MatMPIAIJSetPreallocation(A, 0, d, 0, o));
  PetscCall(PetscFree2(d, o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Coordinates in an order of their own */
static inline PetscErrorCode SetRowsCOO(Mat A, const Rows *r)
{
  const PetscInt nz = r->i[r->m];
  PetscInt      *ci, *cj, k = 0;
  PetscScalar   *v;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(nz, &ci, nz, &cj, nz, &v));
  for (PetscInt i = r->m - 1; i >= 0; i--) {
    for (PetscInt q = r->i[i]; q < r->i[i + 1]; q++, k++) {
      ci[k] = r->begin + i;
      cj[k] = r->j[q];
      v[k]  = r->v[q];
    }
  }
  PetscCall(MatSetPreallocationCOO(A, nz, ci, cj));
  PetscCall(MatSetValuesCOO(A, v, INSERT_VALUES));
  PetscCall(PetscFree3(ci, cj, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of the shape, of the type, assembled in the way asked for */
static inline PetscErrorCode ShapeBuild(const Shape *s, const char *type, const char *prefix, Build way, Mat *A)
{
  Rows     r;
  PetscInt begin;

  PetscFunctionBegin;
  PetscCall(MatCreate(fuzz.comm, A));
  PetscCall(MatSetSizes(*A, s->m, s->n, s->M, s->N));
  PetscCall(MatSetBlockSize(*A, s->bs));
  if (prefix) PetscCall(MatSetOptionsPrefix(*A, prefix));
  PetscCall(MatSetType(*A, way == BUILD_CONVERT || way == BUILD_INPLACE ? MATAIJ : type));
  if (prefix && way != BUILD_CONVERT && way != BUILD_INPLACE) PetscCall(MatSetFromOptions(*A));
  PetscCallMPI(MPI_Scan(&s->m, &begin, 1, MPIU_INT, MPI_SUM, fuzz.comm));
  begin -= s->m;
  PetscCall(RowsOfShape(s, begin, &r));
  switch (way) {
  case BUILD_COO: PetscCall(SetRowsCOO(*A, &r)); break;
  case BUILD_CSR: {
    PetscCall(MatSeqAIJSetPreallocationCSR(*A, r.i, r.j, r.v));
    PetscCall(MatMPIAIJSetPreallocationCSR(*A, r.i, r.j, r.v));
    break;
  }
  case BUILD_LITTLE:
    PetscCall(MatSeqAIJSetPreallocation(*A, 2, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*A, 1, NULL, 1, NULL));
    PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(SetRows(*A, &r));
    break;
  case BUILD_SETUP:
    PetscCall(MatSetUp(*A));
    PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(SetRows(*A, &r));
    break;
  default: PetscCall(PreallocateRows(*A, &r)); PetscCall(SetRows(*A, &r));
  }
  PetscCall(RowsDestroy(&r));
  if (way == BUILD_INPLACE) PetscCall(MatConvert(*A, type, MAT_INPLACE_MATRIX, A));
  if (way == BUILD_CONVERT) {
    Mat B;

    PetscCall(MatConvert(*A, type, MAT_INITIAL_MATRIX, &B));
    PetscCall(MatDestroy(A));
    *A = B;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Products
*/
typedef enum { X_RANDOM, X_ONES, X_SPARSE, X_WIDE, X_NONFINITE, X_DENORMAL, XKINDS } XKind;

/* Entry i of a vector, which every rank can compute */
static inline PetscScalar XValue(XKind kind, PetscInt i, PetscInt salt)
{
  const PetscReal u = Uniform(i, 8, salt);

  switch (kind) {
  case X_ONES: return 1.;
  case X_SPARSE: return u < 0.7 ? Complex(u < 0.3 ? -0. : 0., 0.) : Value(i, 9, salt);
  case X_WIDE: return PetscPowReal(10, PetscDefined(USE_REAL_SINGLE) ? 6 * u - 3 : 24 * u - 12) * Value(i, 9, salt);
  case X_NONFINITE: return u < 0.03 ? Complex(NAN, 0.) : u < 0.05 ? Complex(INFINITY, 0.) : u < 0.07 ? Complex(-INFINITY, 0.) : Value(i, 9, salt);
  case X_DENORMAL: return FUZZ_DENORMAL * Value(i, 9, salt);
  default: return Value(i, 9, salt);
  }
}

static inline PetscErrorCode XFill(Vec x, XKind kind, PetscInt salt)
{
  PetscInt     s, e;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(x, &s, &e));
  PetscCall(VecGetArrayWrite(x, &a));
  for (PetscInt i = s; i < e; i++) a[i - s] = XValue(kind, i, salt);
  PetscCall(VecRestoreArrayWrite(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A sum that is more exact than a product's: value, sum of absolute values, number of terms */
typedef struct {
  long double re, im, abs, terms;
} Sum;

static inline void SumAdd(Sum *s, PetscScalar a, PetscScalar x, PetscBool conjugate, int sign)
{
  const long double ar = PetscRealPart(a), ai = (conjugate ? -1 : 1) * PetscImaginaryPart(a), xr = PetscRealPart(x), xi = PetscImaginaryPart(x);

  s->re += sign * (PetscDefined(USE_COMPLEX) ? ar * xr - ai * xi : ar * xr);
  if (PetscDefined(USE_COMPLEX)) s->im += sign * (ar * xi + ai * xr);
  s->abs += (long double)PetscAbsScalar(a) * PetscAbsScalar(x);
  s->terms++;
}

/* Whether y is the sum in floating point, computed in any order: an error of half an epsilon a term, and of a few more, of the sum of absolute values; the same kind of
   undefined or infinite value */
static inline PetscBool SumIs(const Sum *s, PetscScalar y, PetscReal *error, PetscReal *bound)
{
  const long double re = s->re, im = s->im, factor = PetscDefined(USE_COMPLEX) ? 3 : 1;

  *error = *bound = 0;
  if (s->abs > PETSC_MAX_REAL / 8) return PETSC_TRUE; /* an overflow depends on the order of the terms; so it does where a value is infinite or undefined: */
  if (!isfinite(re) || !isfinite(im)) {
    if (PetscDefined(USE_COMPLEX)) return (PetscBool)(PetscIsInfOrNanScalar(y));
    return (PetscBool)(isnan(re) ? PetscIsNanScalar(y) : PetscRealPart(y) == (PetscReal)re);
  }
  *error = (PetscReal)hypotl(PetscRealPart(y) - re, PetscImaginaryPart(y) - im);
  *bound = (PetscReal)(factor * ((s->terms / 2 + 8) * PETSC_MACHINE_EPSILON * s->abs + 4 * (s->terms + 1) * FUZZ_REAL_MIN * PETSC_MACHINE_EPSILON));
  return (PetscBool)(*error <= *bound);
}

static const char *const ProductNames[] = {"A x",   "y + A x",   "y + A x into y",   "A^T x",   "y + A^T x", "y + A^T x into y",
                                           "A^H x", "y + A^H x", "y + A^H x into y", "b - A x", "x + A x"};

/* What product number `which` is to give, for this rank's part of the result; sum holds as many entries as the larger side */
static inline PetscErrorCode ProductReference(const Rows *r, PetscInt N, PetscInt ys, PetscInt ny, int which, XKind xkind, PetscInt xsalt, XKind ykind,
                                              PetscInt ysalt, Sum sum[])
{
  const PetscBool transpose = (PetscBool)(which >= 3 && which <= 8), conjugate = (PetscBool)(which >= 6 && which <= 8);
  const PetscBool add = (PetscBool)(which == 1 || which == 2 || which == 4 || which == 5 || which >= 7);

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(sum, transpose ? N : ny));
  for (PetscInt i = 0; i < r->m; i++) {
    for (PetscInt k = r->i[i]; k < r->i[i + 1]; k++) {
      if (transpose)
        SumAdd(&sum[r->j[k]], r->v[k], XValue(xkind, r->begin + i, xsalt), conjugate, 1);
      else
        SumAdd(&sum[i], r->v[k], XValue(xkind, r->j[k], xsalt), PETSC_FALSE, which == 9 ? -1 : 1);
    }
  }
  if (transpose && fuzz.size > 1) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 4 * (int)N, MPI_LONG_DOUBLE, MPI_SUM, fuzz.comm));
  if (transpose) PetscCall(PetscArraymove(sum, sum + ys, ny));
  for (PetscInt i = 0; add && i < ny; i++) SumAdd(&sum[i], 1., XValue(ykind, ys + i, ysalt), PETSC_FALSE, 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode ProductRun(Mat A, int which, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  switch (which) {
  case 0: PetscCall(MatMult(A, x, z)); break;
  case 1: PetscCall(MatMultAdd(A, x, y, z)); break;
  case 2: PetscCall(MatMultAdd(A, x, z, z)); break;
  case 3: PetscCall(MatMultTranspose(A, x, z)); break;
  case 4: PetscCall(MatMultTransposeAdd(A, x, y, z)); break;
  case 5: PetscCall(MatMultTransposeAdd(A, x, z, z)); break;
  case 6: PetscCall(MatMultHermitianTranspose(A, x, z)); break;
  case 7: PetscCall(MatMultHermitianTransposeAdd(A, x, y, z)); break;
  case 8: PetscCall(MatMultHermitianTransposeAdd(A, x, z, z)); break;
  case 9: PetscCall(MatResidual(A, y, x, z)); break;
  default: PetscCall(MatMultAdd(A, x, x, z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the rows of A are dealt out as those of B, or as its columns, and then the columns as well */
static inline PetscErrorCode SameLayouts(Mat A, Mat B, PetscBool transposed, PetscBool *same)
{
  PetscLayout ar, ac, br, bc;

  PetscFunctionBegin;
  PetscCall(MatGetLayouts(A, &ar, &ac));
  PetscCall(MatGetLayouts(B, &br, &bc));
  PetscCall(PetscLayoutCompare(ar, transposed ? bc : br, same));
  if (*same) PetscCall(PetscLayoutCompare(ac, transposed ? br : bc, same));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One product with A, whose rows are r, compared with the sums row by row */
static inline PetscErrorCode ProductCheck(Mat A, const Rows *r, const char *what)
{
  const XKind        xkind = (XKind)draw(XKINDS), ykind = Chance(70) ? X_RANDOM : (XKind)draw(XKINDS);
  const PetscInt     xsalt = draw(100000);
  PetscInt           which = draw(11), ysalt = draw(100000), M, N, ys, ye, wrong = -1;
  PetscBool          transpose, into, same;
  PetscReal          error, bound;
  const PetscScalar *z_;
  Sum               *sum;
  Vec                x, y, z;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(SameLayouts(A, A, PETSC_TRUE, &same));
  if (which == 10 && !same) which = 1;
  transpose = (PetscBool)(which >= 3 && which <= 8);
  into      = (PetscBool)(which == 2 || which == 5 || which == 8);
  PetscCall(transpose ? MatCreateVecs(A, &z, &x) : MatCreateVecs(A, &x, &z));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(XFill(x, xkind, xsalt));
  PetscCall(XFill(y, ykind, ysalt));
  PetscCall(XFill(z, into ? ykind : X_NONFINITE, ysalt)); /* what was there before must not matter */
  PetscCall(ProductRun(A, which, x, y, z));
  PetscCall(VecGetOwnershipRange(z, &ys, &ye));
  PetscCall(PetscMalloc1(PetscMax(PetscMax(M, N), 1), &sum));
  PetscCall(ProductReference(r, N, ys, ye - ys, which, xkind, xsalt, which == 10 ? xkind : ykind, which == 10 ? xsalt : ysalt, sum));
  PetscCall(VecGetArrayRead(z, &z_));
  for (PetscInt i = 0; i < ye - ys && wrong < 0; i++) {
    if (!SumIs(&sum[i], z_[i], &error, &bound)) wrong = i;
  }
  if (wrong >= 0)
    FuzzReport("%s, %s, row %" PetscInt_FMT ": %.17g%+.3gi, not %.17g%+.3gi; off by %g where %g is allowed", what, ProductNames[which], ys + wrong,
               (double)PetscRealPart(z_[wrong]), (double)PetscImaginaryPart(z_[wrong]), (double)sum[wrong].re, (double)sum[wrong].im, (double)error,
               (double)bound);
  fuzz.checks += ye - ys;
  PetscCall(VecRestoreArrayRead(z, &z_));
  PetscCall(PetscFree(sum));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}
