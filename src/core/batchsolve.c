/*
  The solvers for batches on the host: one system after the other, whose data stays in the cache.
*/
#include "batchsolve.h"

#define FN         static inline
#define REALS      ((int)(sizeof(PetscScalar) / sizeof(PetscReal)))
#define RE         PetscRealPart
#define IM         PetscImaginaryPart
#define CONJ       PetscConj
#define LEADER     1
#define LOAD(b, k) ((b)[k])
#if defined(PETSC_USE_COMPLEX)
  #define SCALAR(re, im) PetscCMPLX(re, im)
#else
  #define SCALAR(re, im) (re)
#endif
#define ISZERO(a)  ((a) == (PetscScalar)0)
#define EACH(k, n) for (int k = 0; k < (n); k++)
#define EACH2(i, j, from, n)         \
  for (int j = (from); j < (n); j++) \
    for (int i = (from); i < (n); i++)
#define Sync(team)            (void)(team)
#define Sums(team, count, s)  (void)(team)
#define Largest(team, v, at)  (void)(team)
#define Direct(team, s, rows) 0

typedef PetscScalar Scalar;
typedef char        Team;

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

FN void Multiply(Team *t, const struct Matrix *A, const Scalar *x, Scalar *y, Scalar *z)
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

#include "batchmethods.h"

/* The diagonal of the preconditioner */
static void BatchGetDiagonal(const struct Matrix *A, Scalar *d)
{
  for (int r = 0; r < A->n; r++) {
    Scalar v = 0;

    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      if (A->j[k] - A->first == r) v = A->a[k];
    }
    d[r] = ISZERO(v) ? 1 : 1 / v;
  }
}

PetscErrorCode SpMVBatchSolve(const SpMVCSR *A, PetscInt count, const PetscInt first[], const SpMVBatchOptions *o,
                              const PetscScalar d[], const PetscScalar b[], PetscScalar x[], SpMVBatchResult results[])
{
  const PetscBool pc   = (PetscBool)(o->pc && o->method != SPMV_BATCH_LU);
  PetscInt        most = 0;
  Scalar         *memory;
  Team            team = 0;

  PetscFunctionBegin;
  for (PetscInt p = 0; p < count; p++) most = PetscMax(most, first[p + 1] - first[p]);
  PetscCall(PetscMalloc1(SpMVBatchWords(o, (size_t)most), &memory));
  for (PetscInt p = 0; p < count; p++) {
    const PetscInt      row = first[p], n = first[p + 1] - row;
    const struct Matrix block  = {(int)n, row, A->i + row, A->j, A->a};
    System              system = {.n = (int)n, .A = &block, .b = b + row, .x = x + row, .r = memory, .o = o};

    system.work = memory + n;
    if (!o->guess) PetscCall(PetscArrayzero(x + row, n));
    if (pc) {
      system.d = system.work;
      system.work += n;
      if (o->pc == SPMV_BATCH_GIVEN)
        PetscCall(PetscArraycpy(system.d, d + row, n));
      else
        BatchGetDiagonal(&block, system.d);
    }
    switch (o->method) { /* with the method as a constant, its code alone is inlined */
    case SPMV_BATCH_CG: BatchSolve(&team, &system, SPMV_BATCH_CG, 0, &results[p]); break;
    case SPMV_BATCH_BCGS: BatchSolve(&team, &system, SPMV_BATCH_BCGS, 0, &results[p]); break;
    case SPMV_BATCH_GMRES: BatchSolve(&team, &system, SPMV_BATCH_GMRES, 0, &results[p]); break;
    default: BatchSolve(&team, &system, SPMV_BATCH_LU, 0, &results[p]);
    }
  }
  PetscCall(PetscFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void SpMVBatchSummarize(PetscInt count, const SpMVBatchResult results[], SpMVBatchSummary *s)
{
  *s = (SpMVBatchSummary){.least = count ? PETSC_MPI_INT_MAX : 0, .reason = SPMV_BATCH_ATOL};
  for (PetscInt p = 0; p < count; p++) {
    s->least  = PetscMin(s->least, results[p].its);
    s->most   = PetscMax(s->most, results[p].its);
    s->reason = PetscMin(s->reason, results[p].reason);
    if (results[p].reason < 0) s->failed++;
    if (s->norm == s->norm && !(results[p].norm <= s->norm)) s->norm = results[p].norm;
  }
}
