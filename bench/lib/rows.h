/*
   The basis of the generators of matrices (patterns.h, twins.h): a matrix, a row, random numbers. The code is C and C++
   and uses only PetscInt from PETSc.
*/
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPEC_ARGS 5

typedef struct _n_Generator Generator;

typedef struct { /* a matrix */
  const Generator *generator;
  double           arg[SPEC_ARGS];
  PetscInt         rows;
  PetscInt        *table; /* row lengths from a file */
} Spec;

typedef struct { /* the row being generated: columns in any order; repeated columns count once */
  uint64_t  random;
  PetscInt  n, max;
  PetscInt *col;
} Row;

struct _n_Generator {
  const char *name, *usage;
  double      arg[SPEC_ARGS]; /* defaults */
  PetscInt (*rows)(const Spec *);
  void (*pattern)(const Spec *, PetscInt, Row *);
  double (*value)(const Spec *, PetscInt, PetscInt); /* NULL: random */
};

/* ---------------------------------------------------------------- random numbers: splitmix64 */

static inline uint64_t RandomNext(uint64_t *state)
{
  uint64_t z = *state += 0x9E3779B97F4A7C15ull;

  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

static inline double RandomReal(uint64_t *state) /* 0 <= . < 1 */
{
  return (double)(RandomNext(state) >> 11) * (1.0 / 9007199254740992.0);
}

static inline PetscInt RandomInt(uint64_t *state, PetscInt n) /* 0 <= . < n */
{
  return (PetscInt)(RandomNext(state) % (uint64_t)n);
}

/* ---------------------------------------------------------------- rows */

static inline void *PatternRealloc(void *p, size_t bytes)
{
  p = realloc(p, bytes);
  if (!p) {
    fprintf(stderr, "No memory for %zu bytes of a generated matrix\n", bytes);
    abort();
  }
  return p;
}

static inline void RowAdd(Row *r, PetscInt col)
{
  if (r->n == r->max) {
    r->max = r->max ? 2 * r->max : 1024;
    r->col = (PetscInt *)PatternRealloc(r->col, (size_t)r->max * sizeof(*r->col));
  }
  r->col[r->n++] = col;
}

/* A column within w of the diagonal */
static inline void RowAddNear(Row *r, PetscInt k, PetscInt w, PetscInt n)
{
  const PetscInt col = k + RandomInt(&r->random, 2 * w + 1) - w;

  RowAdd(r, col < 0 ? 0 : (col < n ? col : n - 1));
}

static inline void RowAddAny(Row *r, PetscInt n)
{
  RowAdd(r, RandomInt(&r->random, n));
}

static inline int RowCompare(const void *a, const void *b)
{
  const PetscInt p = *(const PetscInt *)a, q = *(const PetscInt *)b;

  return (p > q) - (p < q);
}

/* Sorts the columns and removes duplicates */
static inline void RowSort(Row *r)
{
  PetscInt n = 0;

  for (n = 1; n < r->n && r->col[n - 1] < r->col[n]; n++)
    ;
  if (n >= r->n) return;
  if (r->n <= 32) { /* most rows are short */
    for (PetscInt a = n; a < r->n; a++) {
      const PetscInt col = r->col[a];
      PetscInt       b   = a;

      for (; b > 0 && r->col[b - 1] > col; b--) r->col[b] = r->col[b - 1];
      r->col[b] = col;
    }
  } else
    qsort(r->col, (size_t)r->n, sizeof(*r->col), RowCompare);
  n = 1;
  for (PetscInt a = 1; a < r->n; a++) {
    if (r->col[a] != r->col[n - 1]) r->col[n++] = r->col[a];
  }
  r->n = n;
}

static inline void RowFree(Row *r)
{
  free(r->col);
  r->col = NULL;
  r->n = r->max = 0;
}

static inline void RowGenerate(const Spec *s, PetscInt k, Row *r)
{
  r->n      = 0;
  r->random = 0x1234567ull * (uint64_t)(k + 1);
  (*s->generator->pattern)(s, k, r);
  RowSort(r);
}

/* The value of entry e of the last generated row; random values are drawn one after the other */
static inline double RowValue(const Spec *s, PetscInt k, PetscInt e, Row *r)
{
  return s->generator->value ? (*s->generator->value)(s, k, r->col[e]) : RandomReal(&r->random) + 0.1;
}
