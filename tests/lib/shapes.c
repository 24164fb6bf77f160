#include "shapes.h"

const char *const PatternNames[] = {"random",  "diagonals", "stencil",  "nodes",  "power law", "dense rows",
                                    "lengths", "holes",     "repeated", "groups", "full",      "none"};
const char *const ValuesNames[]  = {"random", "equal",    "few",   "by diagonals", "integers",
                                    "wide",   "denormal", "zeros", "nonfinite"};

PetscReal HashUnit(PetscInt i, PetscInt j, PetscInt salt)
{
  return 0.5 + 0.4999999 * Hash(i, j, salt);
}

PetscScalar ScalarOf(PetscReal re, PetscReal im)
{
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(re, im);
#else
  return re;
#endif
}

PetscScalar ShapeValue(const Shape *s, PetscInt i, PetscInt j)
{
  const PetscReal u = HashUnit(i, j, s->salt + 11);

  switch (s->values) {
  case VALUES_EQUAL: return ScalarOf(1.0 + 0.25 * (s->salt % 7), -0.5);
  case VALUES_FEW: return ScalarOf((PetscInt)(4 * u) - 1.7, 0.3 * (PetscInt)(3 * u));
  case VALUES_DIAGONALS: return Value(j - i, 0, s->salt);
  case VALUES_INTEGERS: return ScalarOf((PetscInt)(19 * u) - 9, (PetscInt)(5 * u) - 2);
  case VALUES_WIDE:
    return PetscPowReal(10, PetscDefined(USE_REAL_SINGLE) ? 6 * u - 3 : 24 * u - 12) * Value(i, j, s->salt);
  case VALUES_DENORMAL: return u < 0.5 ? FUZZ_DENORMAL * Value(i, j, s->salt) : Value(i, j, s->salt);
  case VALUES_ZEROS: return u < 0.3 ? ScalarOf(0., 0.) : u < 0.6 ? ScalarOf(-0., 0.) : Value(i, j, s->salt);
  case VALUES_NONFINITE:
    if (u < 0.02) return ScalarOf(INFINITY, 0.);
    if (u < 0.03) return ScalarOf(-INFINITY, 0.);
    if (u < 0.05) return ScalarOf(NAN, 0.);
    return Value(i, j, s->salt);
  default: return Value(i, j, s->salt);
  }
}

/* The columns of row i from the pattern alone, in any order, possibly repeated or out of range */
static PetscInt ShapeColumns(const Shape *s, PetscInt i, PetscInt cols[])
{
  const PetscInt  lengths[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129};
  PetscInt        n = 0, len = (PetscInt)(s->longest * HashUnit(i, 0, s->salt) + 0.5), row = i, base = 0;
  const PetscReal u = HashUnit(i, 1, s->salt);

  switch (s->pattern) {
  case PATTERN_NONE: return 0;
  case PATTERN_DIAGONALS:
  case PATTERN_STENCIL:
    for (PetscInt k = 0; k < s->noffsets; k++) {
      if (s->pattern == PATTERN_DIAGONALS && s->period % 2 && HashUnit(i, s->offset[k], s->salt + 1) < 0.1) continue;
      cols[n++] = i + s->offset[k];
    }
    return n;
  case PATTERN_NODES:
    len = (PetscInt)(1 + s->longest / s->bs * HashUnit(i / s->bs, 0, s->salt));
    for (PetscInt k = 0; k < len; k++) {
      const PetscInt node = (PetscInt)((s->N / s->bs) * HashUnit(i / s->bs, k, s->salt + 2));

      for (PetscInt c = 0; c < s->bs; c++) {
        if (s->period > 3 || HashUnit(i, c + k, s->salt + 3) > 0.02) cols[n++] = node * s->bs + c;
      }
    }
    return n;
  case PATTERN_POWER: len = (PetscInt)PetscMin(s->N, 1 / PetscPowReal(u, 1.5)); break;
  case PATTERN_FULL: len = s->N; break;
  case PATTERN_DENSEROWS: len = u < 0.06 ? s->N : PetscMin(3, len); break;
  case PATTERN_LENGTHS: len = lengths[(PetscInt)(21 * u)]; break;
  case PATTERN_HOLES: len = i % (3 + 4 * s->period) == 1 ? len : 0; break;
  case PATTERN_REPEATED: /* the same columns relative to the row, repeated periodically */
    row  = i % s->period;
    base = i - row;
    len  = (PetscInt)(s->longest * HashUnit(row, 0, s->salt));
    break;
  case PATTERN_GROUPS: /* the same columns for consecutive rows */
    row = i / s->period;
    len = (PetscInt)(s->longest * HashUnit(row, 0, s->salt));
    break;
  default: break;
  }
  len = PetscMin(len, s->N);
  if (len == s->N) {
    for (PetscInt j = 0; j < s->N; j++) cols[n++] = j;
  } else if (HashUnit(row, 2, s->salt) < 0.3) { /* next to each other */
    const PetscInt begin = (PetscInt)((s->N - len) * HashUnit(row, 3, s->salt));

    for (PetscInt k = 0; k < len; k++) cols[n++] = base + begin + k;
  } else
    for (PetscInt k = 0; k < len; k++) cols[n++] = base + (PetscInt)(s->N * HashUnit(row, k, s->salt + 4));
  return n;
}

/* Row i, ascending; cols and vals hold N + 200 */
static PetscErrorCode ShapeRow(const Shape *s, PetscInt i, PetscInt *n, PetscInt cols[], PetscScalar vals[])
{
  PetscInt  k = 0, diag = -1;
  PetscReal sum = 0;

  PetscFunctionBegin;
  *n = ShapeColumns(s, i, cols);
  if (s->dominant) cols[(*n)++] = i;
  for (PetscInt q = 0; q < *n; q++) {
    if (cols[q] < 0 || cols[q] >= s->N) continue;
    if (!(s->dominant && cols[q] == i) &&
        (HashUnit(i, 5, s->salt) < s->norow || HashUnit(cols[q], 6, s->salt) < s->nocolumn))
      continue;
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
  if (s->dominant && diag >= 0) vals[diag] = sum * 1.5 + 1 + (s->values == VALUES_EQUAL ? 0 : HashUnit(i, i, s->salt));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This rank's part of n (a multiple of bs) in one of the ways to distribute it */
static PetscInt LocalSize(const Shape *s, PetscInt n, PetscInt way, PetscInt salt)
{
  const PetscInt bs = s->bs, blocks = n / bs, none = salt % s->size;
  PetscInt       begin = 0;

  if (s->size == 1) return n;
  for (PetscMPIInt r = 0; r <= s->rank; r++) {
    const PetscInt left = blocks - begin;
    PetscInt       part = blocks / s->size + (r < blocks % s->size);

    if (way == 1) part = r == none ? 0 : left / PetscMax(1, s->size - r - (none > r)); /* a rank has none */
    if (way == 2) part = (PetscInt)(left * HashUnit(r, 7, salt));
    if (way == 3) part = r == none ? left : 0; /* a rank has all */
    if (r == s->size - 1) part = left;
    if (way == 1 && r == none) part = r == s->size - 1 ? left : 0;
    if (r == s->rank) return part * bs;
    begin += part;
  }
  return 0;
}

static PetscInt RandomSize(void)
{
  const PetscInt kind = draw(100);

  if (kind < 3) return 0;
  if (kind < 55) return 1 + draw(40);
  if (kind < 92) return 1 + draw(130);
  return 1 + draw(350);
}

void ShapeDraw(Shape *s, PetscBool small)
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
  if (s->pattern != PATTERN_NODES || s->M % s->bs || s->N % s->bs)
    s->pattern = s->pattern == PATTERN_NODES ? PATTERN_GROUPS : s->pattern;
}

PetscErrorCode ShapeCreate(MPI_Comm comm, Shape *s)
{
  PetscInt way, salt;

  PetscFunctionBegin;
  s->comm = comm;
  PetscCallMPI(MPI_Comm_size(comm, &s->size));
  PetscCallMPI(MPI_Comm_rank(comm, &s->rank));
  way   = s->size > 1 && Chance(40) ? 1 + draw(3) : 0;
  salt  = draw(1000);
  s->bs = Chance(30) ? 1 + draw(8) : 1;
  s->M  = RandomSize() / s->bs * s->bs;
  s->N  = Chance(65) ? s->M : RandomSize() / s->bs * s->bs;
  s->m  = LocalSize(s, s->M, way, salt);
  s->n  = s->M == s->N ? s->m : LocalSize(s, s->N, way, salt + 1);
  ShapeDraw(s, PETSC_FALSE);
  if (s->bs > 1 && Chance(70)) s->pattern = PATTERN_NODES;
  if (s->M == s->N && Chance(40)) {
    s->dominant = PETSC_TRUE;
    if (s->values == VALUES_NONFINITE || s->values == VALUES_WIDE || s->values == VALUES_DENORMAL)
      s->values = VALUES_RANDOM;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const char *const BuildNames[] = {"preallocated", "preallocated too little", "MatSetUp", "COO", "CSR",
                                  "converted",    "converted in place"};

PetscErrorCode LocalRowsOfShape(const Shape *s, PetscInt begin, LocalRows *r)
{
  PetscInt    *cols, n;
  PetscScalar *vals;

  PetscFunctionBegin;
  r->comm  = s->comm;
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

PetscErrorCode SetLocalRowsCOO(Mat A, const LocalRows *r)
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

PetscErrorCode ShapeBuild(const Shape *s, const char *type, const char *prefix, Build way, Mat *A)
{
  LocalRows r;
  PetscInt  begin;

  PetscFunctionBegin;
  PetscCall(MatCreate(s->comm, A));
  PetscCall(MatSetSizes(*A, s->m, s->n, s->M, s->N));
  PetscCall(MatSetBlockSize(*A, s->bs));
  if (prefix) PetscCall(MatSetOptionsPrefix(*A, prefix));
  PetscCall(MatSetType(*A, way == BUILD_CONVERT || way == BUILD_INPLACE ? MATAIJ : type));
  if (prefix && way != BUILD_CONVERT && way != BUILD_INPLACE) PetscCall(MatSetFromOptions(*A));
  PetscCallMPI(MPI_Scan(&s->m, &begin, 1, MPIU_INT, MPI_SUM, s->comm));
  begin -= s->m;
  PetscCall(LocalRowsOfShape(s, begin, &r));
  switch (way) {
  case BUILD_COO: PetscCall(SetLocalRowsCOO(*A, &r)); break;
  case BUILD_CSR: {
    PetscCall(MatSeqAIJSetPreallocationCSR(*A, r.i, r.j, r.v));
    PetscCall(MatMPIAIJSetPreallocationCSR(*A, r.i, r.j, r.v));
    break;
  }
  case BUILD_LITTLE:
    PetscCall(MatSeqAIJSetPreallocation(*A, 2, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*A, 1, NULL, 1, NULL));
    PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(SetLocalRows(*A, &r));
    break;
  case BUILD_SETUP:
    PetscCall(MatSetUp(*A));
    PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(SetLocalRows(*A, &r));
    break;
  default: PetscCall(PreallocateLocalRows(*A, &r)); PetscCall(SetLocalRows(*A, &r));
  }
  PetscCall(LocalRowsDestroy(&r));
  if (way == BUILD_INPLACE) PetscCall(MatConvert(*A, type, MAT_INPLACE_MATRIX, A));
  if (way == BUILD_CONVERT) {
    Mat B;

    PetscCall(MatConvert(*A, type, MAT_INITIAL_MATRIX, &B));
    PetscCall(MatDestroy(A));
    *A = B;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
