/*
  Batches of tests/golden: random sizes, patterns and sharing, with every kernel.
*/
#include "golden.h"

static const char *const kernels[] = {"auto",       "slices",    "sellp", "coo", "csr-scalar",
                                      "csr-vector", "csr-smart", "csr-i", "ell"};

typedef struct {
  MatBatchSharing sharing;
  PetscInt        problems, values, *sizes, *i, *j;
  PetscScalar    *a;
} Batch;

/* Problems with up to 40 rows of up to 20 entries, different on each rank. limit: rows of the largest problem */
static PetscErrorCode BatchDraw(Batch *b)
{
  const PetscInt limit = Chance(30) ? 4 : 40, longest = Chance(50) ? 5 : 20;
  PetscInt       patterns, rows = 0, nz = 0;

  PetscFunctionBegin;
  b->sharing  = (MatBatchSharing)draw(3);
  b->problems = draw(60);
  patterns    = b->sharing == MATBATCH_SHARE_NONE ? b->problems : PetscMin(b->problems, 1);
  PetscCall(PetscMalloc1(b->problems, &b->sizes));
  for (PetscInt p = 0; p < b->problems; p++) {
    b->sizes[p] = p < patterns ? draw(limit) + (b->sharing != MATBATCH_SHARE_NONE) : b->sizes[0];
    if (p < patterns) rows += b->sizes[p];
  }
  PetscCall(PetscMalloc1(rows + 1, &b->i));
  PetscCall(PetscMalloc1((size_t)rows * 40, &b->j));
  b->i[0] = 0;
  rows    = 0;
  for (PetscInt p = 0; p < patterns; p++) {
    for (PetscInt r = 0; r < b->sizes[p]; r++) {
      PetscInt n = draw(PetscMin(longest, b->sizes[p]) + 1);

      for (PetscInt k = 0; k < n; k++) b->j[nz + k] = draw(b->sizes[p]);
      PetscCall(PetscSortRemoveDupsInt(&n, b->j + nz));
      b->i[++rows] = nz += n;
    }
  }
  b->values = b->sharing == MATBATCH_SHARE_PATTERN ? nz * b->problems : nz;
  PetscCall(PetscMalloc1(b->values, &b->a));
  for (PetscInt k = 0; k < b->values; k++) b->a[k] = Value(k, 0, 41);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BatchLine(Golden *g, const char *name, const Batch *b, const char *setting)
{
  Mat          A;
  MatBatchInfo info;
  PetscScalar *a;
  uint64_t     hash[16];
  char         text[256];

  PetscFunctionBegin;
  if (g->only && !strstr(setting, g->only)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GoldenOptions(MATBATCH, setting, PETSC_TRUE));
  PetscCall(
      (*g->createbatch)(PETSC_COMM_WORLD, b->problems, b->sizes, b->i, b->j, b->a, b->sharing, PETSC_COPY_VALUES, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(GoldenHash(A, hash));
  PetscCall((*g->batchinfo)(A, &info));
  PetscCall(PetscSNPrintf(text, sizeof(text),
                          "%" PetscInt_FMT " %" PetscInt_FMT " %" PetscInt_FMT " %" PetscInt64_FMT
                          " %d %" PetscInt64_FMT " %" PetscInt64_FMT " %s",
                          info.problems, info.smallest, info.largest, info.nonzeros, (int)info.sharing, info.stored,
                          g->bytes ? info.bytes : 0, info.kernel ? info.kernel : "none"));
  PetscCall(PetscMalloc1(b->values, &a));
  for (PetscInt k = 0; k < b->values; k++) a[k] = Value(k, 0, 42);
  if (b->problems) PetscCall((*g->batchset)(A, MATBATCH_ALL, a));
  PetscCall(PetscFree(a));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(GoldenHash(A, hash + 8));
  PetscCall(GoldenPrint(g, A, name, MATBATCH, setting, text, hash));
  PetscCall(MatDestroy(&A));
  PetscCall(GoldenOptions(MATBATCH, setting, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GoldenBatches(Golden *g, PetscInt count)
{
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  for (PetscInt k = 0; k < count; k++) {
    Batch b;
    char  name[32], setting[64];

    seed = 88172645463325252u + 7919 * (uint64_t)(k + 1);
    for (int q = 0; q < 8; q++) (void)draw(2);
    b.sharing = MATBATCH_SHARE_NONE;
    seed += 104729 * (uint64_t)rank;
    PetscCall(BatchDraw(&b));
    PetscCall(PetscSNPrintf(name, sizeof(name), "batch%" PetscInt_FMT, k + 1));
    for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(kernels); q++) {
      PetscCall(PetscSNPrintf(setting, sizeof(setting), "kernel %s", kernels[q]));
      PetscCall(BatchLine(g, name, &b, setting));
    }
    PetscCall(PetscFree(b.sizes));
    PetscCall(PetscFree(b.i));
    PetscCall(PetscFree(b.j));
    PetscCall(PetscFree(b.a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
