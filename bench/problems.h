/*
   The problems of the benchmark of batches: those of the paper's set, from files or generated like them, and batches of
   them.
*/
#pragma once

#include "../examples/mmload.h"
#include "patterns.h"

typedef struct {
  char         name[64];
  const char  *origin;
  PetscInt     n, *i, *j;
  PetscScalar *a;
} Problem;

/* The paper's set, with the rows, entries and kind of each twin */
typedef enum { BAND, GRAPH, SKEWED } Kind;
static const struct {
  const char *name;
  PetscInt    rows, entries;
  Kind        kind;
} TestSet[] = {{"pivtol", 102, 306, BAND},      {"tomography", 500, 28726, GRAPH}, {"west0989", 989, 3518, SKEWED},
               {"G45", 1000, 19980, GRAPH},     {"GD02_a", 23, 87, GRAPH},         {"Si2", 769, 17801, BAND},
               {"ck656", 656, 3884, BAND},      {"ex25", 848, 24369, BAND},        {"jgl011", 11, 76, GRAPH},
               {"lock_700", 700, 22175, BAND},  {"fs_541_1", 541, 4285, SKEWED},   {"mbeacxc", 496, 49920, SKEWED},
               {"dwt_918", 918, 7384, BAND},    {"mcfe", 765, 24382, SKEWED},      {"dwt_607", 607, 5131, BAND},
               {"rbsa480", 480, 17088, SKEWED}, {"gr_30_30", 900, 7744, BAND},     {"bcsstk34", 588, 21418, BAND},
               {"cage8", 1015, 11003, BAND},    {"ex27", 974, 37652, BAND},        {"can_838", 838, 10010, BAND},
               {"bcsstm34", 588, 24270, BAND},  {"USAir97", 332, 4252, SKEWED},    {"bp_1600", 822, 4841, SKEWED},
               {"rotor2", 791, 10685, BAND},    {"msc00726", 726, 34518, BAND},    {"nos3", 960, 15844, BAND},
               {"G2", 800, 38352, GRAPH},       {"dwt_992", 992, 16744, BAND},     {"ex2", 441, 26839, BAND},
               {"tols90", 90, 1746, SKEWED},    {"bcsstk02", 66, 4356, BAND}};

#define SET ((PetscInt)PETSC_STATIC_ARRAY_LENGTH(TestSet))

static PetscScalar BenchValue(uint64_t *random)
{
  PetscScalar v = (PetscReal)(RandomReal(random) - 0.5);

#if defined(PETSC_USE_COMPLEX)
  v += PETSC_i * (PetscReal)(RandomReal(random) - 0.5);
#endif
  return v;
}

/* Rows with the given lengths; band: columns near the diagonal, otherwise anywhere */
static PetscErrorCode ProblemGenerate(PetscInt n, const PetscInt len[], PetscBool band, Problem *P)
{
  uint64_t  random = 12345 + (uint64_t)n;
  PetscInt *mark, nz = 0;

  PetscFunctionBeginUser;
  P->n = n;
  for (PetscInt r = 0; r < n; r++) nz += len[r];
  PetscCall(PetscMalloc3(n + 1, &P->i, nz, &P->j, nz, &P->a));
  PetscCall(PetscCalloc1(n, &mark));
  P->i[0] = 0;
  for (PetscInt r = 0, at = 0; r < n; r++) {
    const PetscInt width = band ? PetscMin(n, 2 * len[r] + 8) : n,
                   first = PetscMin(n - width, PetscMax(0, r - width / 2));

    /* in a band, columns come in runs of three, like the nodes of finite elements */
    for (PetscInt k = 0, start; k < len[r];) {
      start = first + RandomInt(&random, width);
      for (PetscInt c = start; c < PetscMin(first + width, start + (band ? 3 : 1)) && k < len[r]; c++) {
        if (mark[c] != r + 1) k++;
        mark[c] = r + 1;
      }
    }
    for (PetscInt c = 0; c < n; c++) {
      if (mark[c] == r + 1) P->j[at++] = c;
    }
    P->i[r + 1] = at;
  }
  for (PetscInt k = 0; k < nz; k++) P->a[k] = BenchValue(&random);
  PetscCall(PetscFree(mark));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A problem with the given number of entries, in rows of nearly equal length, or (SKEWED) of lengths that decrease as 1
   / rank */
static PetscErrorCode ProblemTwin(PetscInt n, PetscInt entries, Kind kind, Problem *P)
{
  PetscInt *len, sum = 0;
  double    weight = 0.0;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(n, &len));
  for (PetscInt r = 0; r < n; r++) weight += kind == SKEWED ? 1.0 / (r + 8.0) : 1.0;
  for (PetscInt r = 0; r < n; r++) {
    /* scatters the long rows; 7919 is prime */
    const PetscInt at = kind == SKEWED ? (PetscInt)((int64_t)r * 7919 % n) : r;

    len[r] = PetscMin(n, PetscMax(1, (PetscInt)((double)entries * (kind == SKEWED ? 1.0 / (at + 8.0) : 1.0) / weight)));
    sum += len[r];
  }
  for (PetscInt r = 0; sum != entries; r = (r + 1) % n) {
    const PetscInt by = sum < entries ? 1 : -1;

    if (len[r] + by < 1 || len[r] + by > n) continue;
    len[r] += by;
    sum += by;
  }
  PetscCall(ProblemGenerate(n, len, (PetscBool)(kind == BAND), P));
  PetscCall(PetscFree(len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProblemFromSet(PetscInt k, Problem *P)
{
  const char *folders[] = {"tests/matrices", getenv("MATRICES")};
  char        file[PETSC_MAX_PATH_LEN];
  PetscBool   there = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscStrncpy(P->name, TestSet[k].name, sizeof(P->name)));
  for (int f = 0; f < 2 && !there; f++) {
    if (!folders[f]) continue;
    PetscCall(PetscSNPrintf(file, sizeof(file), "%s/%s.mtx", folders[f], P->name));
    PetscCall(PetscTestFile(file, 'r', &there));
  }
  P->origin = there ? "file" : "twin";
  if (there) {
    Mat                A;
    PetscInt           m;
    const PetscInt    *i, *j;
    const PetscScalar *a;
    PetscBool          done;

    PetscCall(MatCreate(PETSC_COMM_SELF, &A));
    PetscCall(MatSetType(A, MATSEQAIJ));
    PetscCall(MatLoadMatrixMarket(PETSC_COMM_SELF, file, A));
    PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
    PetscCall(MatSeqAIJGetArrayRead(A, &a));
    P->n = m;
    PetscCall(PetscMalloc3(m + 1, &P->i, i[m], &P->j, i[m], &P->a));
    PetscCall(PetscArraycpy(P->i, i, m + 1));
    PetscCall(PetscArraycpy(P->j, j, i[m]));
    PetscCall(PetscArraycpy(P->a, a, i[m]));
    PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
    PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
    PetscCall(MatDestroy(&A));
  } else
    PetscCall(ProblemTwin(TestSet[k].rows, TestSet[k].entries, TestSet[k].kind, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProblemDestroy(Problem *P)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree3(P->i, P->j, P->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- a batch */

typedef struct {
  PetscInt        count, rows, most; /* problems, rows, longest row */
  const Problem **of;                /* the original of each problem, which is a copy */
  PetscInt       *sizes, *i, *j, *global;
  PetscScalar    *a;
  PetscReal      *ref_bound;
  PetscScalar    *x, *ref;
  PetscInt64      ell; /* entries that ELL would store */
} Batch;

static inline PetscErrorCode BatchCreate(PetscInt count, const Problem **of, Batch *B)
{
  PetscInt64 nz     = 0;
  uint64_t   random = 99;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(B, sizeof(*B)));
  B->count = count;
  B->of    = of;
  for (PetscInt p = 0; p < count; p++) {
    PetscInt longest = 0;

    B->rows += of[p]->n;
    nz += of[p]->i[of[p]->n];
    for (PetscInt r = 0; r < of[p]->n; r++) longest = PetscMax(longest, of[p]->i[r + 1] - of[p]->i[r]);
    B->ell += (PetscInt64)longest * of[p]->n;
    B->most = PetscMax(B->most, longest);
  }
  PetscCheck(nz <= PETSC_MAX_INT, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "%" PetscInt64_FMT " nonzeros do not fit in a PetscInt: use fewer -problems", nz);
  PetscCall(PetscMalloc4(count, &B->sizes, B->rows + 1, &B->i, (size_t)nz, &B->j, (size_t)nz, &B->global));
  PetscCall(PetscMalloc4((size_t)nz, &B->a, B->rows, &B->x, B->rows, &B->ref, B->rows, &B->ref_bound));
  B->i[0] = 0;
  for (PetscInt r = 0; r < B->rows; r++) B->x[r] = BenchValue(&random);
  for (PetscInt p = 0, row = 0, at = 0; p < count; p++) {
    const Problem *P = of[p];

    B->sizes[p] = P->n;
    PetscCall(PetscArraycpy(B->j + at, P->j, P->i[P->n]));
    PetscCall(PetscArraycpy(B->a + at, P->a, P->i[P->n]));
    for (PetscInt k = 0; k < P->i[P->n]; k++) B->global[at + k] = row + P->j[k];
    for (PetscInt r = 0; r < P->n; r++) { /* the reference result and a bound on rounding errors */
      PetscScalar sum = 0.0;
      PetscReal   abs = 0.0;

      for (PetscInt k = P->i[r]; k < P->i[r + 1]; k++) {
        sum += P->a[k] * B->x[row + P->j[k]];
        abs += PetscAbsScalar(P->a[k]) * PetscAbsScalar(B->x[row + P->j[k]]);
      }
      B->ref[row + r] = sum;
      B->ref_bound[row + r] =
          (P->i[r + 1] - P->i[r] + 2) * abs * PETSC_MACHINE_EPSILON * (PetscDefined(USE_COMPLEX) ? 4 : 1);
      B->i[row + r + 1] = at + P->i[r + 1];
    }
    at += P->i[P->n];
    row += P->n;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode BatchDestroy(Batch *B)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree4(B->sizes, B->i, B->j, B->global));
  PetscCall(PetscFree4(B->a, B->x, B->ref, B->ref_bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}
