/*
   The matrices of the benchmark: files, and generators where a file is not at hand. A generator writes the pattern of one row, with
   random numbers that depend on the row alone, so that a matrix is the same on any number of ranks. What is generated says so.
*/
#pragma once

#include <petscmat.h>
#include <stdint.h>
#include "../examples/mmload.h"

#define MATRIX_ARGS 5

typedef struct {
  double    arg[MATRIX_ARGS];
  PetscInt  rows;
  PetscInt *lengths; /* of the rows, for rowlen: */
} Spec;

typedef struct { /* the row being generated: columns in any order, repeated ones count once */
  uint64_t  random;
  PetscInt  n, max;
  PetscInt *col;
} Row;

typedef struct {
  const char *name, *usage;
  double      arg[MATRIX_ARGS]; /* used for what the user does not give */
  PetscInt (*rows)(const Spec *);
  PetscErrorCode (*pattern)(const Spec *, PetscInt, Row *);
  PetscScalar (*value)(const Spec *, PetscInt, PetscInt); /* NULL: random */
} Generator;

/* What bench.c runs if nothing is asked for, and a set that takes seconds */
static const char *const MatrixSet[] = {
    "stencil7:40",   "stencil7:100",    "stencil7:160", "bratu:100", "fem27:12:3", "fem27:30:3", "fem27:30:3:0.6", "fem27:40:1:0.9", "stencil5:1000",
    "stencil9:1000", "tridiag:1000000", "webbase",      "google",    "econ",       "dc1",        "random:8000",    "tsopf"};
static const char *const MatrixQuickSet[] = {"stencil7:20", "bratu:16", "fem27:6:3", "stencil9:60", "webbase:5000", "dc1:5000", "random:600", "tsopf:4000"};

/* ---------------------------------------------------------------- random numbers: splitmix64 */

static uint64_t Mix(uint64_t z)
{
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

static uint64_t RowRandom(Row *r)
{
  return Mix(r->random += 0x9E3779B97F4A7C15ull);
}

static PetscInt RowRandomInt(Row *r, PetscInt n) /* 0 <= . < n */
{
  return (PetscInt)(RowRandom(r) % (uint64_t)n);
}

static double RowRandomReal(Row *r) /* 0 <= . < 1 */
{
  return (double)(RowRandom(r) >> 11) * (1.0 / 9007199254740992.0);
}

static PetscErrorCode RowAdd(Row *r, PetscInt col)
{
  PetscFunctionBeginUser;
  if (r->n == r->max) {
    r->max = PetscMax(1024, 2 * r->max);
    PetscCall(PetscRealloc(r->max * sizeof(*r->col), &r->col));
  }
  r->col[r->n++] = col;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A column within w of the diagonal */
static PetscErrorCode RowAddNear(Row *r, PetscInt k, PetscInt w, PetscInt n)
{
  const PetscInt col = k - w + RowRandomInt(r, 2 * w + 1);

  PetscFunctionBeginUser;
  PetscCall(RowAdd(r, PetscMin(n - 1, PetscMax(0, col))));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- grids: arg[0] points a side */

static PetscInt RowsLine(const Spec *s)
{
  return (PetscInt)s->arg[0];
}

static PetscInt RowsSquare(const Spec *s)
{
  return (PetscInt)s->arg[0] * (PetscInt)s->arg[0];
}

static PetscInt RowsCube(const Spec *s)
{
  return (PetscInt)s->arg[0] * (PetscInt)s->arg[0] * (PetscInt)s->arg[0];
}

static PetscInt RowsFEM(const Spec *s)
{
  return RowsCube(s) * (PetscInt)s->arg[1];
}

/* The neighbours of grid point p within one step in each of dim directions; star: in one direction at a time */
static PetscErrorCode Neighbours(PetscInt N, PetscInt p, int dim, PetscBool star, PetscInt *n, PetscInt q[27])
{
  const PetscInt x = p % N, y = (p / N) % N, z = p / N / N;
  const int      dy = dim > 1, dz = dim > 2;

  PetscFunctionBeginUser;
  *n = 0;
  for (int c = -dz; c <= dz; c++) {
    for (int b = -dy; b <= dy; b++) {
      for (int a = -1; a <= 1; a++) {
        if (star && PetscAbs(a) + PetscAbs(b) + PetscAbs(c) > 1) continue;
        if (x + a < 0 || x + a >= N || y + b < 0 || y + b >= N || z + c < 0 || z + c >= N) continue;
        q[(*n)++] = ((z + c) * N + y + b) * N + x + a;
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Stencil(const Spec *s, PetscInt k, int dim, PetscBool star, Row *r)
{
  PetscInt n, q[27];

  PetscFunctionBeginUser;
  PetscCall(Neighbours((PetscInt)s->arg[0], k, dim, star, &n, q));
  for (PetscInt e = 0; e < n; e++) PetscCall(RowAdd(r, q[e]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Tridiagonal(const Spec *s, PetscInt k, Row *r)
{
  return Stencil(s, k, 1, PETSC_TRUE, r);
}

static PetscErrorCode Stencil5(const Spec *s, PetscInt k, Row *r)
{
  return Stencil(s, k, 2, PETSC_TRUE, r);
}

static PetscErrorCode Stencil9(const Spec *s, PetscInt k, Row *r)
{
  return Stencil(s, k, 2, PETSC_FALSE, r);
}

static PetscErrorCode Stencil7(const Spec *s, PetscInt k, Row *r)
{
  return Stencil(s, k, 3, PETSC_TRUE, r);
}

/* The Jacobian of SNES ex14 (and examples/bratu.c) at its initial guess, with the zeros that DMCreateMatrix() stores in boundary rows */
static PetscScalar BratuValue(const Spec *s, PetscInt k, PetscInt col)
{
  const PetscInt  N = (PetscInt)s->arg[0], x = k % N, y = (k / N) % N, z = k / N / N;
  const PetscReal h = 1.0 / (PetscReal)(N - 1), lambda = 6.0;
  const PetscReal d = PetscMin(PetscMin(x, N - 1 - x), PetscMin(PetscMin(y, N - 1 - y), PetscMin(z, N - 1 - z))) * h;

  if (d == 0.0) return col == k ? 1.0 : 0.0;
  return col == k ? 6.0 * h - h * h * h * lambda * PetscExpReal(lambda / (lambda + 1.0) * PetscSqrtReal(d)) : -h;
}

/* 27-point finite elements: arg[1] unknowns a node in dense blocks, of whose neighbours a share arg[2] is kept, symmetrically */
static PetscErrorCode FEM27(const Spec *s, PetscInt k, Row *r)
{
  const PetscInt dof = (PetscInt)s->arg[1], p = k / dof;
  PetscInt       n, q[27];

  PetscFunctionBeginUser;
  PetscCall(Neighbours((PetscInt)s->arg[0], p, 3, PETSC_FALSE, &n, q));
  for (PetscInt e = 0; e < n; e++) {
    const uint64_t edge = Mix(((uint64_t)PetscMin(p, q[e]) << 32) + (uint64_t)PetscMax(p, q[e]));

    if (q[e] != p && (double)(edge & 0xffff) > s->arg[2] * 65536.0) continue;
    for (PetscInt d = 0; d < dof; d++) PetscCall(RowAdd(r, q[e] * dof + d));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- irregular: arg[0] rows */

/* Row lengths by a power law: scale arg[1], exponent arg[2], at most arg[3]. If arg[4], 7 of 8 entries are near the diagonal, the
   others are in favour of the first columns, as links are of popular pages */
static PetscErrorCode PowerLaw(const Spec *s, PetscInt k, Row *r)
{
  const PetscInt n   = s->rows;
  const double   len = s->arg[1] * 0.45 * PetscPowReal((PetscReal)(1.0 - RowRandomReal(r)), (PetscReal)(-1.0 / s->arg[2]));
  const PetscInt L   = PetscMin(n, (PetscInt)PetscMin(len + 1.0, s->arg[3]));

  PetscFunctionBeginUser;
  for (PetscInt q = 0; q < L; q++) {
    if (s->arg[4] != 0.0 && RowRandomInt(r, 8))
      PetscCall(RowAddNear(r, k, 1000, n));
    else {
      const double v = RowRandomReal(r);

      PetscCall(RowAdd(r, (PetscInt)((double)n * v * v * 0.999999)));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A circuit, as IBM_EDA/dc1: two rows hold a third of all entries */
static PetscErrorCode Circuit(const Spec *s, PetscInt k, Row *r)
{
  const PetscInt n = s->rows;
  PetscInt       L = 3 + RowRandomInt(r, 5);

  PetscFunctionBeginUser;
  if (k == 100 || k == 7000 % n) {
    const PetscInt step = k == 100 ? 1 : 2, len = (PetscInt)((double)n * (k == 100 ? 0.977 : 0.404));

    for (PetscInt c = 0; c < len; c++) PetscCall(RowAdd(r, c * step));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!RowRandomInt(r, 2000)) L = 100 + RowRandomInt(r, 180);
  PetscCall(RowAdd(r, k));
  for (PetscInt q = 1; q < L; q++) {
    if (RowRandomInt(r, 8))
      PetscCall(RowAddNear(r, k, 200, n));
    else
      PetscCall(RowAdd(r, RowRandomInt(r, n)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Row lengths uniform up to 5 % of the columns, columns uniform */
static PetscErrorCode Uniform(const Spec *s, PetscInt k, Row *r)
{
  const PetscInt n = s->rows, L = 1 + RowRandomInt(r, PetscMax(1, n / 20));

  PetscFunctionBeginUser;
  for (PetscInt q = 0; q < L; q++) PetscCall(RowAdd(r, RowRandomInt(r, n)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A power network, as TSOPF_RS_b2383: in every 200 rows, 110 short ones, then 90 that share a dense band */
static PetscErrorCode PowerNetwork(const Spec *s, PetscInt k, Row *r)
{
  const PetscInt n = s->rows, first = k / 200 * 200 - 400;

  PetscFunctionBeginUser;
  PetscCall(RowAdd(r, k));
  if (k % 200 < 110) {
    for (PetscInt q = 0; q < 2; q++) PetscCall(RowAdd(r, RowRandomInt(r, n)));
  } else {
    for (PetscInt c = PetscMax(0, first); c < PetscMin(n, first + 980); c++) PetscCall(RowAdd(r, c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The row lengths of a real matrix, from a file with one number a line; columns as in Circuit() */
static PetscErrorCode RowLengths(const Spec *s, PetscInt k, Row *r)
{
  const PetscInt n = s->rows, L = s->lengths[k];

  PetscFunctionBeginUser;
  if (L > n / 4 || L > 400) {
    for (PetscInt q = 0; q < L; q++) PetscCall(RowAdd(r, (PetscInt)((double)q * n / L)));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (L) PetscCall(RowAdd(r, k));
  while (r->n < L) { /* draws what was drawn twice again */
    while (r->n < L) {
      if (RowRandomInt(r, 8))
        PetscCall(RowAddNear(r, k, 200 + L, n));
      else
        PetscCall(RowAdd(r, RowRandomInt(r, n)));
    }
    PetscCall(PetscSortRemoveDupsInt(&r->n, r->col));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Generator Generators[]        = {{"stencil7", "N: 7 points on N^3, random values", {40}, RowsCube, Stencil7, NULL},
                                              {"bratu", "N: the Jacobian of SNES ex14 on N^3", {40}, RowsCube, Stencil7, BratuValue},
                                              {"fem27", "N:dof:keep: 27 nodes, dof unknowns each", {12, 3, 1.0}, RowsFEM, FEM27, NULL},
                                              {"stencil5", "N: 5 points on N^2", {1000}, RowsSquare, Stencil5, NULL},
                                              {"stencil9", "N: 9 points on N^2", {1000}, RowsSquare, Stencil9, NULL},
                                              {"tridiag", "n", {1000000}, RowsLine, Tridiagonal, NULL},
                                              {"powerlaw", "n:scale:exponent:longest:local", {200000, 3.1, 1.6, 4700, 1}, RowsLine, PowerLaw, NULL},
                                              {"webbase", "n: power law after webbase-1M", {1000005, 3.1, 1.6, 4700, 1}, RowsLine, PowerLaw, NULL},
                                              {"google", "n: power law after web-Google, columns anywhere", {916428, 5.6, 2.5, 456, 0}, RowsLine, PowerLaw, NULL},
                                              {"econ", "n: power law after mac_econ_fwd500", {206500, 6.2, 4, 44, 1}, RowsLine, PowerLaw, NULL},
                                              {"dc1", "n: after the circuit dc1, two rows hold a third of the entries", {116835}, RowsLine, Circuit, NULL},
                                              {"random", "n: up to n/20 entries a row, anywhere", {8000}, RowsLine, Uniform, NULL},
                                              {"tsopf", "n: after the power network TSOPF_RS_b2383", {38120}, RowsLine, PowerNetwork, NULL}};
static const Generator GeneratorRowLengths = {"rowlen", "file: row lengths from a file", {0}, NULL, RowLengths, NULL};

static PetscErrorCode ReadLengths(const char *file, Spec *s)
{
  FILE     *fp;
  long long len;
  PetscInt  max = 1024;

  PetscFunctionBeginUser;
  fp = fopen(file, "r");
  PetscCheck(fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot open %s", file);
  s->rows = 0;
  PetscCall(PetscMalloc1(max, &s->lengths));
  while (fscanf(fp, "%lld", &len) == 1) {
    if (s->rows == max) {
      max *= 2;
      PetscCall(PetscRealloc(max * sizeof(*s->lengths), &s->lengths));
    }
    s->lengths[s->rows++] = (PetscInt)len;
  }
  fclose(fp);
  for (PetscInt k = 0; k < s->rows; k++)
    PetscCheck(s->lengths[k] >= 0 && s->lengths[k] <= s->rows, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED,
               "%s: row %" PetscInt_FMT " has length %" PetscInt_FMT, file, k, s->lengths[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GenerateRow(const Generator *g, const Spec *s, PetscInt k, Row *r)
{
  PetscFunctionBeginUser;
  r->n      = 0;
  r->random = Mix(88172645463325252ull + (uint64_t)k);
  PetscCall((*g->pattern)(s, k, r));
  PetscCall(PetscSortRemoveDupsInt(&r->n, r->col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Generate(MPI_Comm comm, const Generator *g, const Spec *s, Mat *A)
{
  Row          r = {0, 0, 0, NULL};
  PetscInt     m = PETSC_DECIDE, N = s->rows, first, *d, *o, max = 0;
  PetscScalar *v;

  PetscFunctionBeginUser;
  PetscCall(PetscSplitOwnership(comm, &m, &N));
  PetscCallMPI(MPI_Scan(&m, &first, 1, MPIU_INT, MPI_SUM, comm));
  first -= m;
  PetscCall(PetscCalloc2(m, &d, m, &o));
  for (PetscInt k = 0; k < m; k++) {
    PetscCall(GenerateRow(g, s, first + k, &r));
    for (PetscInt e = 0; e < r.n; e++) {
      if (r.col[e] >= first && r.col[e] < first + m)
        d[k]++;
      else
        o[k]++;
    }
    max = PetscMax(max, r.n);
  }
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, m, m, N, N));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocation(*A, 0, d));
  PetscCall(MatMPIAIJSetPreallocation(*A, 0, d, 0, o));
  PetscCall(PetscFree2(d, o));
  PetscCall(PetscMalloc1(max, &v));
  for (PetscInt k = first; k < first + m; k++) {
    PetscCall(GenerateRow(g, s, k, &r));
    for (PetscInt e = 0; e < r.n; e++) {
      if (g->value)
        v[e] = (*g->value)(s, k, r.col[e]);
      else {
        v[e] = RowRandomReal(&r) + 0.1;
#if defined(PETSC_USE_COMPLEX)
        v[e] += PETSC_i * (RowRandomReal(&r) - 0.5);
#endif
      }
    }
    PetscCall(MatSetValues(*A, 1, &k, r.n, r.col, v, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(PetscFree(v));
  PetscCall(PetscFree(r.col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* name:number:number..., rowlen:file, or a file. origin says which */
static PetscErrorCode MatrixCreate(MPI_Comm comm, const char *name, Mat *A, const char **origin)
{
  const Generator *g = NULL;
  Spec             s;
  char             word[32] = "";
  const char      *rest     = strchr(name, ':');
  PetscBool        match;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(&s, sizeof(s)));
  PetscCall(PetscStrncpy(word, name, rest ? PetscMin(sizeof(word), (size_t)(rest - name) + 1) : sizeof(word)));
  PetscCall(PetscStrcmp(word, GeneratorRowLengths.name, &match));
  if (match && rest) {
    g = &GeneratorRowLengths;
    PetscCall(ReadLengths(rest + 1, &s));
    *origin = "columns generated";
  }
  for (size_t k = 0; !g && k < PETSC_STATIC_ARRAY_LENGTH(Generators); k++) {
    PetscCall(PetscStrcmp(word, Generators[k].name, &match));
    if (!match) continue;
    g = &Generators[k];
    PetscCall(PetscMemcpy(s.arg, g->arg, sizeof(s.arg)));
    for (int a = 0; rest && a < MATRIX_ARGS; a++) {
      char *end;

      s.arg[a] = strtod(rest + 1, &end);
      PetscCheck(end != rest + 1 && (!*end || *end == ':'), comm, PETSC_ERR_ARG_WRONG, "Cannot read %s; %s takes %s", name, g->name, g->usage);
      rest = *end ? end : NULL;
    }
    s.rows  = (*g->rows)(&s);
    *origin = "generated";
  }
  if (g) {
    PetscCheck(s.rows > 0, comm, PETSC_ERR_ARG_OUTOFRANGE, "%s has no rows", name);
    PetscCall(Generate(comm, g, &s, A));
    PetscCall(PetscFree(s.lengths));
  } else {
    PetscCall(PetscTestFile(name, 'r', &match));
    if (!match) {
      for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(Generators); k++) PetscCall(PetscPrintf(comm, "  %s:%s\n", Generators[k].name, Generators[k].usage));
    }
    PetscCheck(match, comm, PETSC_ERR_ARG_WRONG, "%s is neither a file nor one of these", name);
    PetscCall(MatCreate(comm, A));
    PetscCall(MatSetType(*A, MATAIJ));
    PetscCall(MatLoadFile(comm, name, *A));
    *origin = "file";
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
