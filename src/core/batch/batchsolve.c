/*
  The solvers for batches on the host: eight systems of one pattern at a time (batchlanes.h), or one system after the
  other, whose data stays in the cache.
*/
#include "core/spmvimpl.h"

#define FN     static inline
#define REALS  ((int)(sizeof(PetscScalar) / sizeof(PetscReal)))
#define RE     PetscRealPart
#define IM     PetscImaginaryPart
#define CONJ   PetscConj
#define LEADER 1
#define HELD   0
#define HAS_LU 1
#if defined(PETSC_USE_COMPLEX)
  #define SCALAR(re, im) PetscCMPLX(re, im)
#else
  #define SCALAR(re, im) (re)
#endif
#define ISZERO(a)       ((a) == (PetscScalar)0)
#define EACH(k, n)      for (int k = 0; k < (n); k++)
#define VECTOR(v, s, q) Scalar *v = (s)->work + (size_t)(q) * (size_t)(s)->n
#define RHS(s, k)       (s)->b[k]
#define EACH2(i, j, from, n)         \
  for (int j = (from); j < (n); j++) \
    for (int i = (from); i < (n); i++)
#define Sync(team)            (void)(team)
#define Sums(team, count, s)  (void)(team)
#define Direct(team, s, rows) 0

/* The fewest systems of one pattern that are solved together, and the most vectors of eight numbers they may use
   (8 MiB) */
#define BATCH_LANES_LEAST 3
#define BATCH_LANES_MOST  (1 << 17)

typedef PetscScalar   Scalar, *Vector, *Out;
typedef const Scalar *In;
typedef char          Team;

enum { BATCH_SUMS = 4 };

struct Matrix {
  int                n;
  PetscInt           first; /* row of A */
  const PetscInt    *i, *j;
  const PetscScalar *a;
};

FN PetscReal SQUARE(Scalar a)
{
  return RE(a) * RE(a) + (REALS > 1 ? IM(a) * IM(a) : 0);
}

/* z may be NULL */
FN void Product(Team *t, const struct Matrix *A, const Scalar *x, Scalar *y, Scalar *z)
{
  const PetscInt first = A->first;

  for (int r = 0; r < A->n; r++) {
    const PetscInt end = A->i[r + 1];
    Scalar         sum = 0;

    for (PetscInt k = A->i[r]; k < end; k++) sum += A->a[k] * x[A->j[k] - first];
    y[r] = sum;
    if (z) {
      PetscReal size = 0;

      for (PetscInt k = A->i[r]; k < end; k++) size += PetscAbsScalar(A->a[k]) * PetscAbsScalar(x[A->j[k] - first]);
      z[r] = SCALAR(size, 0);
    }
  }
}

FN void MatrixDense(Team *t, const struct Matrix *A, int n, Scalar *a)
{
  for (size_t k = 0; k < (size_t)n * (size_t)n; k++) a[k] = 0;
  for (int r = 0; r < n; r++) {
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) a[(size_t)(A->j[k] - A->first) * (size_t)n + (size_t)r] += A->a[k];
  }
}

FN int Pivot(Team *t, const Scalar *column, int k, int n)
{
  PetscReal most = -1;
  int       at   = k;

  for (int i = k; i < n; i++) {
    const PetscReal size = PetscAbsReal(RE(column[i])) + PetscAbsReal(IM(column[i]));

    if (size > most || (size != size && most == most)) {
      most = size;
      at   = i;
    }
  }
  return at;
}

#include "batchmethods.h"

/* The diagonals of the preconditioners of `count` systems that follow each other and have one pattern */
static void BatchGetDiagonal(const struct Matrix *A, int count, Scalar *d)
{
  const PetscInt entries = A->i[A->n] - A->i[0];

  for (int r = 0; r < A->n; r++) {
    PetscInt k = A->i[r];

    while (k < A->i[r + 1] && A->j[k] - A->first != r) k++;
    for (int l = 0; l < count; l++) {
      const Scalar v = k < A->i[r + 1] ? A->a[k + l * entries] : 0;

      d[(size_t)l * (size_t)A->n + (size_t)r] = ISZERO(v) ? 1 : 1 / v;
    }
  }
}

typedef struct {
  const SpMVCSR          *A;
  const PetscInt         *first;
  const SpMVBatchOptions *o;
  const PetscScalar      *d, *b;
  PetscScalar            *x;
  SpMVBatchResult        *results;
  PetscBool               pc;
  Scalar                 *memory;
} Batch;

static struct Matrix BatchGetMatrix(const Batch *B, PetscInt p)
{
  const PetscInt row = B->first[p];

  return (struct Matrix){(int)(B->first[p + 1] - row), row, B->A->i + row, B->A->j, B->A->a};
}

static void BatchSolveOne(const Batch *B, PetscInt p)
{
  const SpMVBatchOptions *o      = B->o;
  const struct Matrix     block  = BatchGetMatrix(B, p);
  const PetscInt          row    = B->first[p];
  const int               n      = block.n;
  System                  system = {.n = n, .A = &block, .b = B->b + row, .x = B->x + row, .r = B->memory, .o = o};
  Team                    team   = 0;

  system.h     = B->memory + n;
  system.d     = system.h + (SPMV_BATCH_NEEDS(o) ? n : 0);
  system.work  = system.d + (B->pc ? n : 0);
  system.pc    = B->pc;
  system.left  = B->pc && o->left;
  system.right = B->pc && !o->left;
  for (int k = 0; k < n && !o->guess; k++) system.x[k] = 0;
  if (B->pc && o->pc != SPMV_BATCH_GIVEN) BatchGetDiagonal(&block, 1, system.d);
  for (int k = 0; k < n && B->pc && o->pc == SPMV_BATCH_GIVEN; k++) system.d[k] = B->d[row + k];
  switch (o->method) { /* with the method as a constant, its code alone is inlined */
  case SPMV_BATCH_CG: BatchSolve(&team, &system, SPMV_BATCH_CG, 0, &B->results[p]); break;
  case SPMV_BATCH_BCGS: BatchSolve(&team, &system, SPMV_BATCH_BCGS, 0, &B->results[p]); break;
  case SPMV_BATCH_GMRES: BatchSolve(&team, &system, SPMV_BATCH_GMRES, 0, &B->results[p]); break;
  default: BatchSolve(&team, &system, SPMV_BATCH_LU, 0, &B->results[p]);
  }
}

/* Whether system p can be solved with others of its pattern: their data fit in the cache */
static PetscBool BatchInLanes(const Batch *B, PetscInt p)
{
  const struct Matrix one   = BatchGetMatrix(B, p);
  const PetscInt64    words = one.i[one.n] - one.i[0] + (PetscInt64)SPMV_BATCH_LANES * one.n;

  return (PetscBool)(!B->o->left && (B->o->method == SPMV_BATCH_CG || B->o->method == SPMV_BATCH_BCGS) &&
                     words <= BATCH_LANES_MOST);
}

/* How many systems from p on, at most eight, have the same pattern */
static int BatchCountEqual(const Batch *B, PetscInt p, PetscInt count)
{
  const struct Matrix one     = BatchGetMatrix(B, p);
  const PetscInt      entries = one.i[one.n] - one.i[0];
  int                 equal   = 1;

  if (!BatchInLanes(B, p)) return 1;
  for (; equal < 8 && p + equal < count; equal++) {
    const struct Matrix other = BatchGetMatrix(B, p + equal);

    const PetscInt *a = other.j + other.i[0], *b = one.j + one.i[0], by = other.first - one.first;
    PetscInt        differs = 0;

    if (other.n != one.n) break;
    for (int r = 0; r < one.n; r++) {
      if (other.i[r + 1] - other.i[0] != one.i[r + 1] - one.i[0]) return equal;
    }
    for (PetscInt k = 0; k < entries; k++) differs |= (a[k] - by) ^ b[k];
    if (differs) return equal;
  }
  return equal;
}

/* Solves `equal` systems from p on together; those that fail are solved again one at a time */
static void BatchSolveLanes(const Batch *B, PetscInt p, int equal)
{
  const struct Matrix one = BatchGetMatrix(B, p);
  SpMVBatchResult    *results[8];
  Scalar             *diagonals = B->memory; /* then the memory of the lanes */
  SpMVBatchLanes      L         = {.n = one.n, .count = equal, .i = one.i, .j = one.j, .first = one.first, .o = B->o};
  uint8_t             solved;

  L.vectors = (PetscReal *)(diagonals + (size_t)one.n * 8);
  L.a       = L.vectors + (size_t)one.n * SPMV_BATCH_LANES * SPMV_VECTOR;
  for (int l = 0; l < 8; l++) {
    const PetscInt      q = p + PetscMin(l, equal - 1), row = B->first[q];
    const struct Matrix block = BatchGetMatrix(B, q);

    L.values[l] = block.a + block.i[0];
    L.b[l]      = B->b + row;
    L.x[l]      = B->x + row;
    L.d[l]      = B->o->pc == SPMV_BATCH_GIVEN ? B->d + row : diagonals + (size_t)(q - p) * (size_t)one.n;
    results[l]  = &B->results[q];
  }
  if (B->o->pc == SPMV_BATCH_JACOBI) BatchGetDiagonal(&one, equal, diagonals);
  solved = SpMVKernelsGet()->batch(&L, results);
  for (int l = 0; l < equal; l++)
    if (!(solved >> l & 1)) BatchSolveOne(B, p + l);
}

PetscErrorCode SpMVBatchSolve(const SpMVCSR *A, PetscInt count, const PetscInt first[], const SpMVBatchOptions *o,
                              const PetscScalar d[], const PetscScalar b[], PetscScalar x[], SpMVBatchResult results[])
{
  Batch   B = {A, first, o, d, b, x, results, (PetscBool)(o->pc && o->method != SPMV_BATCH_LU), NULL};
  Scalar *raw;
  size_t  words = 0;
  int     equal;

  PetscFunctionBegin;
  for (PetscInt p = 0; p < count; p++) {
    const size_t n = (size_t)(first[p + 1] - first[p]), entries = (size_t)(A->i[first[p + 1]] - A->i[first[p]]);

    words = PetscMax(words, SpMVBatchWords(o, n));
    if (BatchInLanes(&B, p)) words = PetscMax(words, (n * (SPMV_BATCH_LANES + 1) + entries) * 8);
  }
  PetscCall(PetscMalloc1(words + 64 / sizeof(*raw), &raw));
  B.memory = (Scalar *)(((uintptr_t)raw + 63) / 64 * 64); /* vectors of the lanes begin with cache lines */
  for (PetscInt p = 0; p < count; p += equal) {
    equal = BatchCountEqual(&B, p, count);
    if (equal >= BATCH_LANES_LEAST)
      BatchSolveLanes(&B, p, equal);
    else
      for (int l = 0; l < equal; l++) BatchSolveOne(&B, p + l);
  }
  PetscCall(PetscFree(raw));
  PetscFunctionReturn(PETSC_SUCCESS);
}
