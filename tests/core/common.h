/* Shared by the core's tests: small matrices, each with an edge case, and a CSR loop to compare with */
#pragma once

#include "mat/impls/sellp/sellp.h"
#include "mat/impls/evchyb/evchyb.h"
#include "../lib/random.h"
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
  const char  *name;
  PetscInt     m, n;
  PetscInt    *i, *j;
  PetscScalar *a;
} Matrix;

static inline uint32_t mix(uint32_t a, uint32_t b)
{
  uint64_t h = ((uint64_t)a << 32 | b) * UINT64_C(0x9E3779B97F4A7C15);

  h ^= h >> 29;
  h *= UINT64_C(0xBF58476D1CE4E5B9);
  return (uint32_t)(h >> 32);
}

/* The order of a row's columns in a user's arrays: they can be in any order, and some can occur twice. Rows with the
   same columns have them in the same order */
typedef enum { ASCENDING, DESCENDING, ANYHOW, TWICE, IN_THREES, ONE_ROW } Order;

static inline void Disorder(PetscInt row, PetscInt n, PetscInt j[], Order order)
{
  const uint32_t seed = n ? (uint32_t)(j[0] + 1000 * n) : 0;

  if (order == ASCENDING || (order == ONE_ROW && row != 40)) return;
  for (PetscInt k = n - 1; k > 0; k--) {
    const PetscInt keep  = j[k];
    PetscInt       other = (PetscInt)(mix(seed, (uint32_t)k) % (uint32_t)(k + 1));

    if (order == DESCENDING) other = PetscMin(k, n - 1 - k);
    if (order == IN_THREES) other = k % 3 == 2 ? k - 1 : k; /* of every three columns, the first stays */
    j[k]     = j[other];
    j[other] = keep;
  }
  if (order == TWICE && n > 2) j[n / 2] = j[0];
}

/* A matrix from a predicate */
typedef PetscBool (*Pattern)(PetscInt row, PetscInt col, PetscInt p);

static inline PetscErrorCode MatrixBuild(const char *name, PetscInt m, PetscInt n, Pattern has, PetscInt p,
                                         PetscBool constant, Order order, Matrix *A)
{
  PetscInt nz = 0;

  PetscFunctionBegin;
  A->name = name;
  A->m    = m;
  A->n    = n;
  PetscCall(PetscMalloc3(m + 1, &A->i, m * n + 1, &A->j, m * n + 1, &A->a));
  A->i[0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt c = 0; c < n; c++) {
      if (has(r, c, p)) {
        A->j[nz]   = c;
        A->a[nz++] = constant ? (r == c ? (PetscScalar)6 : (PetscScalar)-1) : number();
      }
    }
    A->i[r + 1] = nz;
    Disorder(r, nz - A->i[r], A->j + A->i[r], order);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode MatrixDestroy(Matrix *A)
{
  PetscFunctionBegin;
  PetscCall(PetscFree3(A->i, A->j, A->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Computes y = z + op(A) x with a loop over the CSR arrays, where z = NULL means zero, and the allowed error of each
  row: the rounding errors of its terms, so zero for a row without entries
*/
static inline PetscErrorCode CSRProduct(const Matrix *A, PetscBool transpose, PetscBool conjugate, const PetscScalar *x,
                                        const PetscScalar *z, PetscScalar *y, PetscReal *allowed)
{
  const PetscInt rows = transpose ? A->n : A->m;
  PetscInt      *entries;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(rows, &entries));
  for (PetscInt r = 0; r < rows; r++) {
    y[r]       = z ? z[r] : 0;
    allowed[r] = z ? PetscAbsScalar(z[r]) : 0;
  }
  for (PetscInt r = 0; r < A->m; r++) {
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const PetscInt to = transpose ? A->j[k] : r, from = transpose ? r : A->j[k];

      y[to] += (conjugate ? PetscConj(A->a[k]) : A->a[k]) * x[from];
      allowed[to] += PetscAbsScalar(A->a[k]) * PetscAbsScalar(x[from]);
      entries[to]++;
    }
  }
  for (PetscInt r = 0; r < rows; r++)
    allowed[r] = entries[r] ? 4 * PETSC_MACHINE_EPSILON * (PetscReal)(entries[r] + (z ? 1 : 0)) * allowed[r] : 0;
  PetscCall(PetscFree(entries));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscBool never(PetscInt r, PetscInt c, PetscInt p)
{
  (void)r;
  (void)c;
  (void)p;
  return PETSC_FALSE;
}
static inline PetscBool always(PetscInt r, PetscInt c, PetscInt p)
{
  (void)r;
  (void)c;
  (void)p;
  return PETSC_TRUE;
}
static inline PetscBool sparse(PetscInt r, PetscInt c, PetscInt p)
{
  return mix((uint32_t)r, (uint32_t)c) % 1000 < (uint32_t)p ? PETSC_TRUE : PETSC_FALSE;
}
static inline PetscBool dense_row(PetscInt r, PetscInt c, PetscInt p)
{
  return r == p || sparse(r, c, 20) ? PETSC_TRUE : PETSC_FALSE;
}
static inline PetscBool banded(PetscInt r, PetscInt c, PetscInt p)
{
  return PetscAbs(r - c) <= p ? PETSC_TRUE : PETSC_FALSE;
}
static inline PetscBool lengths(PetscInt r, PetscInt c, PetscInt p)
{
  static const PetscInt length[] = {0, 1, 31, 32, 33, 127, 128, 129};
  const PetscInt        first    = 3 * (PetscInt)(mix((uint32_t)r, 5u) % 20);

  return c >= first && c < first + length[(r / p) % 8] ? PETSC_TRUE : PETSC_FALSE;
}
static inline PetscBool grid2(PetscInt r, PetscInt c, PetscInt p)
{
  return (PetscAbs(r / p - c / p) + PetscAbs(r % p - c % p)) <= 1 ? PETSC_TRUE : PETSC_FALSE;
}
static inline PetscBool grid2box(PetscInt r, PetscInt c, PetscInt p)
{
  return (PetscAbs(r / p - c / p) <= 1 && PetscAbs(r % p - c % p) <= 1) ? PETSC_TRUE : PETSC_FALSE;
}
static inline PetscBool grid3(PetscInt r, PetscInt c, PetscInt p)
{
  return (PetscAbs(r / (p * p) - c / (p * p)) + PetscAbs(r / p % p - c / p % p) + PetscAbs(r % p - c % p)) <= 1
             ? PETSC_TRUE
             : PETSC_FALSE;
}
static inline PetscBool grid3identity(PetscInt r, PetscInt c, PetscInt p)
{
  const PetscInt  x = r % p, y = r / p % p, z = r / (p * p);
  const PetscBool boundary = !x || !y || !z || x == p - 1 || y == p - 1 || z == p - 1 ? PETSC_TRUE : PETSC_FALSE;

  return boundary ? (r == c ? PETSC_TRUE : PETSC_FALSE) : grid3(r, c, p);
}
static inline PetscBool node_random(PetscInt r, PetscInt c, PetscInt p)
{
  return r / p == c / p || sparse(r / p, c / p, 150) ? PETSC_TRUE : PETSC_FALSE;
}
static inline PetscBool node_grid(PetscInt r, PetscInt c, PetscInt p)
{
  return grid2box(r / p, c / p, 7);
}
static inline PetscBool node_empty(PetscInt r, PetscInt c, PetscInt p)
{
  return (r / p) % 5 == 1 && sparse(r / p, c / p, 200) ? PETSC_TRUE : PETSC_FALSE;
}
static inline PetscBool inodes(PetscInt r, PetscInt c, PetscInt p)
{
  /* groups of 1, 2, 3, ..., p rows with the same columns, repeated */
  PetscInt g = 1, at = r % (p * (p + 1) / 2), group = r / (p * (p + 1) / 2) * p;

  while (at >= g) at -= g++;
  return sparse(group + g, c, 300);
}
static inline PetscBool mostly_empty(PetscInt r, PetscInt c, PetscInt p)
{
  return r % p == 3 && sparse(r, c, 100) ? PETSC_TRUE : PETSC_FALSE;
}
static inline PetscBool power(PetscInt r, PetscInt c, PetscInt p)
{
  const uint32_t u = 1 + mix((uint32_t)r, 77u) % 1000;

  (void)p;
  return mix((uint32_t)r, (uint32_t)c) % 1000 < 4 + 3000 / u ? PETSC_TRUE : PETSC_FALSE;
}

static const struct {
  const char *name;
  PetscInt    m, n;
  Pattern     has;
  PetscInt    p;
  PetscBool   constant;
  Order       order;
} matrices[] = {{"0 x 0", 0, 0, never, 0, PETSC_FALSE},
                {"0 x 5", 0, 5, never, 0, PETSC_FALSE},
                {"5 x 0", 5, 0, never, 0, PETSC_FALSE},
                {"all rows empty", 19, 9, never, 0, PETSC_FALSE},
                {"1 x 1", 1, 1, always, 0, PETSC_FALSE},
                {"1 x 70", 1, 70, always, 0, PETSC_FALSE},
                {"one dense row", 203, 203, dense_row, 77, PETSC_FALSE},
                {"wide", 30, 400, sparse, 50, PETSC_FALSE},
                {"tall", 400, 30, sparse, 80, PETSC_FALSE},
                {"rows around 32 and 128", 307, 200, lengths, 1, PETSC_FALSE},
                {"lengths in groups", 310, 200, lengths, 3, PETSC_FALSE},
                {"diagonal", 37, 37, banded, 0, PETSC_FALSE},
                {"tridiagonal", 101, 101, banded, 1, PETSC_FALSE},
                {"tridiagonal, constant", 101, 101, banded, 1, PETSC_TRUE},
                {"banded, rectangular", 90, 60, banded, 2, PETSC_FALSE},
                {"5 points", 143, 143, grid2, 13, PETSC_FALSE},
                {"9 points", 160, 160, grid2box, 16, PETSC_FALSE},
                {"7 points", 343, 343, grid3, 7, PETSC_FALSE},
                {"7 points, constant", 512, 512, grid3, 8, PETSC_TRUE},
                {"7 points, identity boundary", 343, 343, grid3identity, 7, PETSC_TRUE},
                {"nodes of 2", 90, 90, node_random, 2, PETSC_FALSE},
                {"nodes of 3", 99, 99, node_random, 3, PETSC_FALSE},
                {"nodes of 4", 96, 96, node_random, 4, PETSC_FALSE},
                {"nodes of 5", 105, 105, node_random, 5, PETSC_FALSE},
                {"nodes of 6", 150, 150, node_random, 6, PETSC_FALSE},
                {"nodes of 7", 105, 105, node_random, 7, PETSC_FALSE},
                {"nodes of 8", 200, 200, node_random, 8, PETSC_FALSE},
                {"nodes of 3 on a grid", 147, 147, node_grid, 3, PETSC_FALSE},
                {"nodes of 3, constant", 147, 147, node_grid, 3, PETSC_TRUE},
                {"nodes of 2 on a grid", 126, 126, node_grid, 2, PETSC_FALSE},
                {"nodes of 3, rectangular", 225, 60, node_empty, 3, PETSC_FALSE},
                {"rows of common columns", 220, 110, inodes, 10, PETSC_FALSE},
                {"few nonempty rows", 400, 80, mostly_empty, 19, PETSC_FALSE},
                {"dense", 66, 66, always, 0, PETSC_FALSE},
                {"power law", 300, 300, power, 0, PETSC_FALSE},
                {"banded, columns descend", 90, 60, banded, 2, PETSC_FALSE, DESCENDING},
                {"grid, one row out of order", 160, 160, grid2box, 16, PETSC_FALSE, ONE_ROW},
                {"grid in any order, constant", 343, 343, grid3, 7, PETSC_TRUE, ANYHOW},
                {"lengths in any order", 310, 200, lengths, 3, PETSC_FALSE, ANYHOW},
                {"blocks of 3 in any order", 147, 147, node_grid, 3, PETSC_FALSE, ANYHOW},
                {"blocks of 3 in disorder", 147, 147, node_grid, 3, PETSC_FALSE, IN_THREES},
                {"common columns, some twice", 220, 110, inodes, 10, PETSC_FALSE, TWICE},
                {"power law, some twice", 300, 300, power, 0, PETSC_FALSE, TWICE}};
#define MATRICES ((int)(sizeof(matrices) / sizeof(matrices[0])))

static inline PetscErrorCode MatrixGet(int k, Matrix *A)
{
  return MatrixBuild(matrices[k].name, matrices[k].m, matrices[k].n, matrices[k].has, matrices[k].p,
                     matrices[k].constant, matrices[k].order, A);
}

/* The parameters of either format */
typedef struct {
  PetscBool    evchyb;
  SELLPParams  sellp;
  EVCHYBParams evc;
  char         text[128];
} Format;

static inline int FormatCount(void)
{
  return 3 * 4 * 2 * 2 * 3 + 3 * 2 * 2 * 3;
}

/* Returns PETSC_FALSE if everything that this combination tests is tested by others */
static inline PetscBool FormatGet(int k, PetscInt m, Format *F)
{
  static const PetscInt   threads[] = {1, 2, 4};
  static const SpMVKernel kernels[] = {SPMV_KERNEL_AUTO, SPMV_KERNEL_SLICES, SPMV_KERNEL_VECTOR};
  const PetscInt          sigmas[]  = {0, 1, 64, PetscMax(m, 1)};
  const int               nsellp    = 3 * 4 * 2 * 2 * 3;

  SELLPParamsDefault(&F->sellp);
  EVCHYBParamsDefault(&F->evc);
  F->evchyb = k >= nsellp ? PETSC_TRUE : PETSC_FALSE;
  if (!F->evchyb) {
    SELLPParams *p = &F->sellp;

    p->t               = threads[k % 3];
    p->sigma           = sigmas[k / 3 % 4];
    p->common.node     = k / 12 % 2;
    p->common.compress = k / 24 % 2;
    p->common.kernel   = kernels[k / 48 % 3];
    (void)snprintf(F->text, sizeof(F->text), "sellp t %d sigma %d node %d compress %d kernel %d", (int)p->t,
                   (int)p->sigma, (int)p->common.node, (int)p->common.compress, (int)p->common.kernel);
    if (!p->common.compress && (p->common.node || p->common.kernel == SPMV_KERNEL_VECTOR)) return PETSC_FALSE;
  } else {
    static const PetscInt limits[] = {128, 16, 0};
    EVCHYBParams         *p        = &F->evc;

    k -= nsellp;
    p->ell_limit       = limits[k % 3];
    p->common.node     = k / 3 % 2;
    p->common.compress = k / 6 % 2;
    p->common.kernel   = kernels[k / 12 % 3];
    (void)snprintf(F->text, sizeof(F->text), "evchyb ell_limit %d node %d compress %d kernel %d", (int)p->ell_limit,
                   (int)p->common.node, (int)p->common.compress, (int)p->common.kernel);
  }
  return PETSC_TRUE;
}

static inline PetscErrorCode FormatSetUp(const Format *F, const SpMVCSR *A, SpMVStore *B)
{
  return F->evchyb ? EVCHYBSetUp(A, &F->evc, B) : SELLPSetUp(A, &F->sellp, B);
}

static int failures = 0;

#define Expect(condition, ...)                                                \
  do {                                                                        \
    if (!(condition)) {                                                       \
      failures++;                                                             \
      if (failures <= 20) {                                                   \
        (void)fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
        (void)fprintf(stderr, __VA_ARGS__);                                   \
        (void)fprintf(stderr, "\n");                                          \
      }                                                                       \
    }                                                                         \
  } while (0)
