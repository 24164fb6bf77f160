/*
   Generators of matrices. Each generates the columns of one row, with random numbers that depend only on the row, so
   that a matrix is the same on any number of ranks or threads, and in every program. The code is C and C++ and uses
   only PetscInt from PETSc, so that programs with and without PETSc measure the same matrices; matrices.h creates PETSc
   matrices from them.

     Spec s;
     Row  r = {0};
     if (SpecRead("fem27:30:3", &s, message, sizeof(message)) == SPEC_FOUND) {
       for (k = 0; k < s.rows; k++) {
         RowGenerate(&s, k, &r);                                // r.n columns r.col[], ascending
         for (e = 0; e < r.n; e++) value = RowValue(&s, k, e, &r); // in this order
       }
     }
     RowFree(&r);
     SpecFree(&s);
*/
#pragma once

#include "rows.h"
#include "twins.h"

/* ---------------------------------------------------------------- grids: arg[0] points per side */

static inline PetscInt RowsLine(const Spec *s)
{
  return (PetscInt)s->arg[0];
}

static inline PetscInt RowsSquare(const Spec *s)
{
  return (PetscInt)s->arg[0] * (PetscInt)s->arg[0];
}

static inline PetscInt RowsCube(const Spec *s)
{
  return (PetscInt)s->arg[0] * (PetscInt)s->arg[0] * (PetscInt)s->arg[0];
}

static inline PetscInt RowsFEM(const Spec *s)
{
  return RowsCube(s) * (PetscInt)s->arg[1];
}

/* The neighbors of grid point p within one step in each of dim directions, ascending; star: only in one direction at a
   time */
static inline PetscInt Neighbors(PetscInt N, PetscInt p, int dim, int star, PetscInt q[27])
{
  const PetscInt x = p % N, y = (p / N) % N, z = p / N / N;
  const int      dy = dim > 1, dz = dim > 2;
  PetscInt       n = 0;

  for (int c = -dz; c <= dz; c++) {
    for (int b = -dy; b <= dy; b++) {
      for (int a = -1; a <= 1; a++) {
        if (star && abs(a) + abs(b) + abs(c) > 1) continue;
        if (x + a < 0 || x + a >= N || y + b < 0 || y + b >= N || z + c < 0 || z + c >= N) continue;
        q[n++] = ((z + c) * N + y + b) * N + x + a;
      }
    }
  }
  return n;
}

static inline void Stencil(const Spec *s, PetscInt k, int dim, int star, Row *r)
{
  PetscInt       q[27];
  const PetscInt n = Neighbors((PetscInt)s->arg[0], k, dim, star, q);

  for (PetscInt e = 0; e < n; e++) RowAdd(r, q[e]);
}

static inline void Tridiagonal(const Spec *s, PetscInt k, Row *r)
{
  if (k) RowAdd(r, k - 1);
  RowAdd(r, k);
  if (k < s->rows - 1) RowAdd(r, k + 1);
}

static inline void Stencil5(const Spec *s, PetscInt k, Row *r)
{
  Stencil(s, k, 2, 1, r);
}

static inline void Stencil9(const Spec *s, PetscInt k, Row *r)
{
  Stencil(s, k, 2, 0, r);
}

/* True for the given fraction of all k */
static inline int IsDrawn(double fraction, PetscInt k, uint64_t salt)
{
  uint64_t state = salt + (uint64_t)k;

  return fraction > 0. && RandomReal(&state) < fraction;
}

/* A fraction arg[1] of the rows have three more entries anywhere */
static inline void Stencil7(const Spec *s, PetscInt k, Row *r)
{
  Stencil(s, k, 3, 1, r);
  if (!IsDrawn(s->arg[1], k, 1ull << 42)) return;
  for (int e = 0; e < 3; e++) RowAddAny(r, s->rows);
  RowSort(r);
}

/* The Jacobian of SNES ex14 (and examples/bratu.c) at its initial guess, with the zeros that DMCreateMatrix() stores in
   boundary rows */
static inline double BratuValue(const Spec *s, PetscInt k, PetscInt col)
{
  const PetscInt N = (PetscInt)s->arg[0], p[3] = {k % N, k / N % N, k / N / N};
  const double   h = 1.0 / (double)(N - 1), lambda = 6.0;
  PetscInt       least = N;
  double         d;

  for (int q = 0; q < 3; q++) {
    if (p[q] < least) least = p[q];
    if (N - 1 - p[q] < least) least = N - 1 - p[q];
  }
  d = (double)least * h;
  if (least == 0) return col == k ? 1.0 : 0.0;
  return col == k ? 6.0 * h - h * h * h * lambda * exp(lambda / (lambda + 1.0) * sqrt(d)) : -h;
}

/*
   27-point finite elements: arg[1] unknowns per node in dense blocks; a fraction arg[2] of the neighbors is kept,
   symmetrically. A fraction arg[3] of the rows is constrained and has only the diagonal entry. A fraction arg[4] of the
   nodes are hanging nodes, whose rows have one unknown of each neighbor
*/
static inline void FEM27(const Spec *s, PetscInt k, Row *r)
{
  const PetscInt dof = (PetscInt)s->arg[1], p = k / dof;
  PetscInt       q[27];
  const PetscInt n           = Neighbors((PetscInt)s->arg[0], p, 3, 0, q);
  const int      constrained = IsDrawn(s->arg[3], k, 1ull << 40), hanging = IsDrawn(s->arg[4], p, 1ull << 41);

  for (PetscInt e = 0; e < n; e++) {
    uint64_t edge = (uint64_t)(p < q[e] ? p : q[e]) << 32 | (uint64_t)(p < q[e] ? q[e] : p);

    if (q[e] != p && RandomReal(&edge) > s->arg[2]) continue;
    if (constrained && q[e] != p) continue;
    for (PetscInt d = 0; d < dof; d++) {
      if (!(constrained || hanging) || d == k % dof) RowAdd(r, q[e] * dof + d);
    }
  }
}

/* ---------------------------------------------------------------- irregular: arg[0] rows */

/* Row lengths by a power law: scale arg[1], exponent arg[2], at most arg[3]. If arg[4], 7 of 8 entries are near the
   diagonal, and the others prefer the first columns, as links prefer popular pages */
static inline void PowerLaw(const Spec *s, PetscInt k, Row *r)
{
  const PetscInt n   = s->rows;
  const double   len = s->arg[1] * 0.45 * pow(1.0 - RandomReal(&r->random), -1.0 / s->arg[2]),
               most  = s->arg[3] < (double)n ? s->arg[3] : (double)n;
  const PetscInt L   = len < most ? (PetscInt)len + 1 : (PetscInt)most;

  for (PetscInt q = 0; q < L; q++) {
    if (s->arg[4] != 0.0 && RandomInt(&r->random, 8))
      RowAddNear(r, k, 1000, n);
    else {
      const double v = RandomReal(&r->random);

      RowAdd(r, (PetscInt)((double)n * v * v * 0.999999));
    }
  }
}

/* A circuit, like IBM_EDA/dc1 with its 116835 rows: two of them have a fifth of all entries */
static inline void Circuit(const Spec *s, PetscInt k, Row *r)
{
  const PetscInt n = s->rows;
  PetscInt       L = 3 + RandomInt(&r->random, 5);

  if (k == 100 || k == 7000 % n) {
    const PetscInt step = k == 100 ? 1 : 2, len = (PetscInt)((int64_t)n * (k == 100 ? 114190 : 47193) / 116835);

    for (PetscInt c = 0; c < len; c++) RowAdd(r, c * step);
    return;
  }
  if (!RandomInt(&r->random, 2000)) L = 100 + RandomInt(&r->random, 180);
  RowAdd(r, k);
  for (PetscInt q = 1; q < L; q++) {
    if (RandomInt(&r->random, 8))
      RowAddNear(r, k, 200, n);
    else
      RowAddAny(r, n);
  }
}

/* Row lengths uniform up to 5 % of the columns, columns uniform */
static inline void Uniform(const Spec *s, PetscInt k, Row *r)
{
  const PetscInt n = s->rows, L = 1 + RandomInt(&r->random, n < 20 ? 1 : n / 20);

  (void)k;
  for (PetscInt q = 0; q < L; q++) RowAddAny(r, n);
}

/* A power network, like TSOPF_RS_b2383: of every 200 rows, first 110 short ones, then 90 that share a dense band */
static inline void PowerNetwork(const Spec *s, PetscInt k, Row *r)
{
  const PetscInt n = s->rows, first = k / 200 * 200 - 400;

  RowAdd(r, k);
  if (k % 200 < 110) {
    for (PetscInt q = 0; q < 2; q++) RowAddAny(r, n);
  } else {
    for (PetscInt c = first < 0 ? 0 : first; c < n && c < first + 980; c++) RowAdd(r, c);
  }
}

/* Row lengths arg[1] + arg[2] (row modulo arg[3]), columns within arg[4] of the diagonal, or anywhere */
static inline void Lengths(const Spec *s, PetscInt k, Row *r)
{
  const PetscInt L = (PetscInt)s->arg[1] + (PetscInt)s->arg[2] * (k % (s->arg[3] < 1.0 ? 1 : (PetscInt)s->arg[3])),
                 w = (PetscInt)s->arg[4];

  for (PetscInt q = 0; q < L; q++) {
    if (w)
      RowAddNear(r, k, w, s->rows);
    else
      RowAddAny(r, s->rows);
  }
}

static inline void Arrow(const Spec *s, PetscInt k, Row *r)
{
  if (k) RowAdd(r, 0);
  for (PetscInt c = k; c < (k ? k + 1 : s->rows); c++) RowAdd(r, c);
}

/* The row lengths of a real matrix, from a file with one number per line; columns as in Circuit() */
static inline void RowLengths(const Spec *s, PetscInt k, Row *r)
{
  const PetscInt n = s->rows, L = s->table[k];

  if (L > n / 4 || L > 400) {
    for (PetscInt q = 0; q < L; q++) RowAdd(r, (PetscInt)((double)q * (double)n / (double)L));
    return;
  }
  if (L) RowAdd(r, k);
  while (r->n < L) { /* replaces columns that were drawn twice */
    while (r->n < L) {
      if (RandomInt(&r->random, 8))
        RowAddNear(r, k, 200 + L, n);
      else
        RowAddAny(r, n);
    }
    RowSort(r);
  }
}

/* ---------------------------------------------------------------- by name */

static const Generator Generators[] = {
    {"stencil7",
     "N:odd: 7 points on N^3, random values; a fraction odd of the rows has three more entries",
     {40},
     RowsCube,
     Stencil7,
     NULL},
    {"bratu", "N: the Jacobian of SNES ex14 on N^3", {40}, RowsCube, Stencil7, BratuValue},
    {"fem27", "N:dof:keep:constrained:hanging: 27 nodes, dof unknowns each", {12, 3, 1.0}, RowsFEM, FEM27, NULL},
    {"stencil5", "N: 5 points on N^2", {1000}, RowsSquare, Stencil5, NULL},
    {"stencil9", "N: 9 points on N^2", {1000}, RowsSquare, Stencil9, NULL},
    {"tridiag", "n", {1000000}, RowsLine, Tridiagonal, NULL},
    {"powerlaw", "n:scale:exponent:longest:local", {200000, 3.1, 1.6, 4700, 1}, RowsLine, PowerLaw, NULL},
    {"webbase", "n: power law after webbase-1M", {1000005, 3.1, 1.6, 4700, 1}, RowsLine, PowerLaw, NULL},
    {"google", "n: power law after web-Google, columns anywhere", {916428, 5.6, 2.5, 456, 0}, RowsLine, PowerLaw, NULL},
    {"econ", "n: power law after mac_econ_fwd500", {206500, 6.2, 4, 44, 1}, RowsLine, PowerLaw, NULL},
    {"dc1", "n: after the circuit dc1, two rows hold a fifth of the entries", {116835}, RowsLine, Circuit, NULL},
    {"random", "n: up to n/20 entries a row, anywhere", {8000}, RowsLine, Uniform, NULL},
    {"tsopf", "n: after the power network TSOPF_RS_b2383", {38120}, RowsLine, PowerNetwork, NULL},
    {"lengths",
     "n:least:step:count:width: least + step (row modulo count) entries, anywhere or within width",
     {20000, 20, 1, 50, 300},
     RowsLine,
     Lengths,
     NULL},
    {"arrow", "n: the diagonal, the first row and the first column", {200000}, RowsLine, Arrow, NULL},
};
static const Generator GeneratorRowLengths = {
    "rowlen", "file: row lengths from a file, one number a line", {0}, NULL, RowLengths, NULL};
static const Generator GeneratorTwin = {
    "twin", "name: with the published statistics of that matrix of the two papers (twins.h)", {0}, NULL, TwinRow, NULL};

#define GENERATORS (sizeof(Generators) / sizeof(Generators[0]))

static inline void SpecFree(Spec *s)
{
  free(s->table);
  s->table = NULL;
}

/* On an error, message describes the problem with the file */
static inline int SpecReadLengths(const char *file, Spec *s, char message[], size_t size)
{
  FILE     *fp = fopen(file, "r");
  long long len;
  PetscInt  max = 0;

  if (!fp) {
    snprintf(message, size, "Cannot open %s", file);
    return 0;
  }
  s->rows = 0;
  while (fscanf(fp, "%lld", &len) == 1) {
    if (s->rows == max) {
      max      = max ? 2 * max : 1024;
      s->table = (PetscInt *)PatternRealloc(s->table, (size_t)max * sizeof(*s->table));
    }
    s->table[s->rows++] = (PetscInt)len;
  }
  fclose(fp);
  for (PetscInt k = 0; k < s->rows; k++) {
    if (s->table[k] >= 0 && s->table[k] <= s->rows) continue;
    snprintf(message, size, "%s: row %lld has length %lld", file, (long long)k, (long long)s->table[k]);
    return 0;
  }
  return 1;
}

typedef enum {
  SPEC_FOUND,
  SPEC_UNKNOWN, /* there is no generator with that name */
  SPEC_WRONG    /* the reason is in message */
} SpecResult;

/* name:number:number..., rowlen:file or twin:name */
static inline SpecResult SpecRead(const char *name, Spec *s, char message[], size_t size)
{
  const char  *rest = strchr(name, ':');
  const size_t len  = rest ? (size_t)(rest - name) : strlen(name);

  memset(s, 0, sizeof(*s));
  message[0] = 0;
  if (rest && len == strlen(GeneratorRowLengths.name) && !strncmp(name, GeneratorRowLengths.name, len)) {
    s->generator = &GeneratorRowLengths;
    if (!SpecReadLengths(rest + 1, s, message, size)) return SPEC_WRONG;
  }
  if (rest && len == strlen(GeneratorTwin.name) && !strncmp(name, GeneratorTwin.name, len)) {
    const int t = TwinFind(rest + 1);

    if (t < 0) {
      snprintf(message, size, "There is no twin of %s; twin:all has all", rest + 1);
      return SPEC_WRONG;
    }
    s->generator = &GeneratorTwin;
    TwinSpec(t, s);
  }
  for (size_t k = 0; !s->generator && k < GENERATORS; k++) {
    const Generator *g = &Generators[k];

    if (len != strlen(g->name) || strncmp(name, g->name, len)) continue;
    s->generator = g;
    memcpy(s->arg, g->arg, sizeof(s->arg));
    for (int a = 0; rest && a < SPEC_ARGS; a++) {
      char *end;

      s->arg[a] = strtod(rest + 1, &end);
      if (end == rest + 1 || (*end && *end != ':')) {
        snprintf(message, size, "Cannot read %s; %s takes %s", name, g->name, g->usage);
        return SPEC_WRONG;
      }
      rest = *end ? end : NULL;
    }
    s->rows = (*g->rows)(s);
  }
  if (!s->generator) return SPEC_UNKNOWN;
  if (s->rows <= 0) {
    snprintf(message, size, "%s has no rows", name);
    return SPEC_WRONG;
  }
  return SPEC_FOUND;
}
