/*
  What the type batch adds to the other types: creation from arrays and matrices, access to problems, refresh of single
  problems, and their errors. On one or several ranks, on the host and, if PETSc uses one, on the device.

  Options: -cases a,b, -expect host|device, -quick (a few cases, for sanitizers). The message of a failure names the case
  and the row.
*/
#include "parts/batch.h"
#include "ranks.h"

typedef struct {
  const char     *name, *kind; /* kind: of the problems, see ArraysCreate() */
  PetscInt        problems, least, most;
  MatBatchSharing sharing;
  PetscBool       quick;
} Case;

static const Case cases[] = {
    {"homogeneous", "random", 40, 30, 30, MATBATCH_SHARE_NONE, PETSC_TRUE},
    {"heterogeneous", "mixed", 60, 0, 90, MATBATCH_SHARE_NONE, PETSC_TRUE},
    {"tiny", "random", 400, 0, 3, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"1-x-1", "dense", 70, 1, 1, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"rows-without-entries", "holes", 30, 5, 60, MATBATCH_SHARE_NONE, PETSC_TRUE},
    {"nothing", "nothing", 9, 0, 20, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"empty-problems", "random", 12, 0, 0, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"no-problem", "random", 0, 0, 0, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"bands", "band", 50, 33, 65, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"dense", "dense", 12, 20, 66, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"a-few-full-rows", "skewed", 12, 200, 500, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"large", "band", 2, 31000, 31000, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"pattern-shared", "random", 33, 30, 30, MATBATCH_SHARE_PATTERN, PETSC_TRUE},
    {"pattern-shared-large", "skewed", 5, 700, 700, MATBATCH_SHARE_PATTERN, PETSC_FALSE},
    {"pattern-shared-tiny", "dense", 500, 2, 2, MATBATCH_SHARE_PATTERN, PETSC_FALSE},
};

/* Changes values in the ways that the mode allows, each followed by products */
static PetscErrorCode ChangeAndMultiply(Mat A, Arrays *a, PetscCopyMode mode)
{
  PetscMPIInt rank, size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (mode == PETSC_USE_POINTER) {
    for (PetscInt64 e = 0; e < a->values; e++) a->a[e] *= 3.0;
    PetscCall(MatAssemble(A));
    PetscCall(Products(A, a, "after the caller wrote to the array"));
    if (device) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(MatScale(A, 0.5)); /* writes to the same array */
    PetscCall(Products(A, a, "after MatScale()"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(ChangeValues(A, a, -1));
  PetscCall(Products(A, a, "after all values changed"));
  PetscCall(MatScale(A, 2.0));
  for (PetscInt64 e = 0; e < a->values; e++) a->a[e] *= 2.0;
  PetscCall(Products(A, a, "after MatScale()"));
  PetscCall(ChangeValues(A, a, -1));
  PetscCall(Products(A, a, "after all values changed again"));
  if (a->problems) PetscCall(ChangeValues(A, a, a->problems / 2));
  PetscCall(Products(A, a, "after a problem changed"));
  if (a->problems && rank == size - 1) { /* the other ranks must not be waited for */
    PetscCall(ChangeValues(A, a, a->problems - 1));
    PetscCall(ChangeValues(A, a, a->problems / 3));
  }
  PetscCall(Products(A, a, "after two more changed on the last rank"));
  if (a->problems && rank == size - 1) PetscCall(ChangeValues(A, a, 0));
  PetscCall(Products(A, a, "after the first one changed there"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The problems are those given, in the matrix and in others made from it */
static PetscErrorCode Problems(Mat A, const Arrays *a, const char *what)
{
  PetscInt        first = 0, nb, sum = 0;
  const PetscInt *bs;
  MatBatchInfo    info;
  PetscSpMVInfo   stored;
  char            text[128];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(text, sizeof(text), "MatBatchGetInfo() of %s", what));
  PetscCall(MatBatchGetInfo(A, &info));
  PetscCall(PetscSpMVGetInfo(A, &stored));
  Check(info.problems == a->problems && info.nonzeros == stored.nonzeros, text);
  PetscCall(MatGetVariableBlockSizes(A, &nb, &bs));
  for (PetscInt k = 0; k < nb; k++) sum += bs[k];
  Check(sum == a->rows, "variable block sizes");
  PetscCall(PetscSNPrintf(text, sizeof(text), "MatBatchGetProblem() of %s", what));
  for (PetscInt p = 0; p < a->problems; first += a->sizes[p++]) {
    const PetscInt    *o = a->i + (a->sharing ? 0 : first), nz = o[a->sizes[p]] - o[0], *i, *j;
    const PetscScalar *values = a->a + o[0] + (a->sharing ? p * nz : 0), *v;
    PetscInt           n;
    PetscBool          same;

    PetscCall(MatBatchGetProblem(A, p, &n, &i, &j, &v));
    same = (PetscBool)(n == a->sizes[p]);
    for (PetscInt r = 0; r <= n && same; r++) same = (PetscBool)(i[r] - i[0] == o[r] - o[0]);
    if (same) PetscCall(PetscArraycmp(j + i[0], a->j + o[0], (size_t)nz, &same));
    if (same) PetscCall(PetscArraycmp(v + i[0], values, (size_t)nz, &same));
    Check(same, text);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Conversions(Mat A, const Arrays *a)
{
  Mat             B, C;
  PetscBool       is;
  PetscInt        nb, empty = 0;
  const PetscInt *bs;
  const char     *format;
  MatBatchInfo    info;

  PetscFunctionBeginUser;
  PetscCall(PetscSpMVGetFormat(A, &format));
  Check(format && !strcmp(format, MATBATCH), "PetscSpMVGetFormat()");
  PetscCall(AIJCreate(PETSC_COMM_WORLD, a, &B, NULL));
  PetscCall(MatEqual(A, B, &is));
  Check(is, "MatEqual() with AIJ");
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &C));
  PetscCall(MatConvert(C, MATBATCH, MAT_INPLACE_MATRIX, &C));
  PetscCall(Problems(C, a, "a matrix converted to AIJ and back"));
  PetscCall(MatDestroy(&C));
  for (PetscInt p = 0; p < a->problems; p++) empty += !a->sizes[p];
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &empty, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCall(MatGetVariableBlockSizes(A, &nb, &bs));
  if (!empty) { /* the problems are the blocks of the matrix */
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &C));
    PetscCall(MatSetVariableBlockSizes(C, nb, (PetscInt *)bs));
    PetscCall(MatConvert(C, MATBATCH, MAT_INPLACE_MATRIX, &C));
    PetscCall(MatBatchGetInfo(C, &info));
    Check(info.problems == nb, "the problems are the blocks given");
    PetscCall(MatDestroy(&C));
  }
  PetscCall(MatConvert(B, MATBATCH, MAT_INITIAL_MATRIX, &C)); /* the smallest blocks */
  PetscCall(MatBatchGetInfo(C, &info));
  Check(info.problems >= nb, "the problems are the smallest blocks");
  PetscCall(Products(C, a, "converted from AIJ"));
  PetscCall(MatEqual(A, C, &is));
  Check(is, "MatEqual()");
  PetscCall(Destroy(&C, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunCase(const Case *c, PetscCopyMode mode)
{
  PetscMPIInt rank;
  Arrays      a;
  Mat         A, B;

  PetscFunctionBeginUser;
  now_case = c->name;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  Reseed((PetscInt)mode);
  /* the second of several ranks has none */
  PetscCall(ArraysCreate(c->kind, rank == 1 ? 0 : c->problems / (rank + 1), c->least, c->most, c->sharing, &a));
  PetscCall(BatchCreate(PETSC_COMM_WORLD, &a, mode, &A));
  PetscCall(Products(A, &a, "first"));
  PetscCall(Problems(A, &a, "the matrix")); /* sets the format up */
  PetscCall(Products(A, &a, "with the format"));
  if (c->most <= 5000 && mode == PETSC_COPY_VALUES) PetscCall(Conversions(A, &a));
  if (c->most <= 5000) PetscCall(ChangeAndMultiply(A, &a, mode));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatDestroy(&A));
  PetscCall(Products(B, &a, "of the duplicate"));
  PetscCall(Problems(B, &a, "a duplicate"));
  PetscCall(MatDestroy(&B));
  PetscCall(ArraysDestroy(&a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromMats(void)
{
  Mat mats[6], A;

  PetscFunctionBeginUser;
  now_case = "MatCreateBatchFromMats()";
  for (int twice = 0; twice < 2; twice++) { /* problems of different sizes, then with one pattern */
    MatBatchInfo info;

    for (PetscInt p = 0; p < 6; p++) {
      const PetscInt n = twice ? 7 : p;

      PetscCall(MatCreate(PETSC_COMM_SELF, &mats[p]));
      PetscCall(MatSetSizes(mats[p], n, n, n, n));
      PetscCall(MatSetType(mats[p], p == 3 ? MATDENSE : MATAIJ));
      PetscCall(MatSetUp(mats[p]));
      for (PetscInt r = 0; r < n; r++) {
        for (PetscInt c = r % 2 && !twice ? 1 : 0; c < n; c += 1 + !twice)
          PetscCall(MatSetValue(mats[p], r, c, (PetscScalar)(1 + p + 10 * r + 100 * c), INSERT_VALUES));
      }
      PetscCall(MatAssemble(mats[p]));
    }
    PetscCall(MatCreateBatchFromMats(PETSC_COMM_WORLD, 6, mats, &A));
    PetscCall(MatBatchGetInfo(A, &info));
    Check(info.problems == 6 && info.smallest == (twice ? 7 : 0) && info.largest == (twice ? 7 : 5), "sizes");
    for (PetscInt p = 0; p < 6; p++) {
      PetscInt           n;
      const PetscInt    *i, *j;
      const PetscScalar *a;
      PetscBool          same = PETSC_TRUE;

      PetscCall(MatBatchGetProblem(A, p, &n, &i, &j, &a));
      for (PetscInt r = 0; r < n; r++) {
        for (PetscInt k = i[r]; k < i[r + 1]; k++)
          same = (PetscBool)(same && (a[k] == (PetscScalar)(1 + p + 10 * r + 100 * j[k]) || (p == 3 && a[k] == 0.0)));
      }
      Check(same && n == (twice ? 7 : p), "MatBatchGetProblem()");
    }
    PetscCall(MatDestroy(&A));
    for (PetscInt p = 0; p < 6; p++) PetscCall(MatDestroy(&mats[p]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PCVPBJACOBI inverts the problems. Then one rank alone changes a problem, and all set up the preconditioner again */
static PetscErrorCode Inverse(MatBatchSharing sharing)
{
  PetscMPIInt rank, size;
  KSP         ksp;
  PC          pc;
  Arrays      a;
  Mat         A;
  Vec         x, b, u;
  PetscReal   norm, off;

  PetscFunctionBeginUser;
  now_case = "inverse";
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(ArraysCreate("dense", 20 + 3 * rank, sharing ? 9 : 1, 9, sharing, &a));
  for (PetscInt p = 0, row = 0; p < (sharing ? 1 : a.problems); row += a.sizes[p++]) { /* the diagonal dominates */
    for (PetscInt r = 0; r < a.sizes[p]; r++) {
      for (PetscInt k = 0; k < (sharing ? a.problems : 1); k++) a.a[a.i[row + r] + r + k * a.i[a.sizes[0]]] = 25.0;
    }
  }
  PetscCall(BatchCreate(PETSC_COMM_WORLD, &a, PETSC_COPY_VALUES, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &u));
  PetscCall(VecDraw(u));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetTolerances(ksp, 1e3 * PETSC_MACHINE_EPSILON, PETSC_DEFAULT, PETSC_DEFAULT, 2));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCVPBJACOBI));
  for (int again = 0; again < 2; again++) {
    if (again) {
      const PetscInt n = a.i[a.sizes[0]];

      for (PetscInt k = 0; k < n; k++) a.a[k] *= 7.0;
      if (rank == size - 1) PetscCall(MatBatchSetValues(A, 0, a.a));
      PetscCall(MatAssemble(A));
    }
    PetscCall(MatMult(A, u, b));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(VecAXPY(x, -1.0, u));
    PetscCall(VecNorm(x, NORM_INFINITY, &off));
    PetscCall(VecNorm(u, NORM_INFINITY, &norm));
    Check(off <= 1e5 * PETSC_MACHINE_EPSILON * norm, again ? "after one process changed a problem" : "first solve");
  }
  PetscCall(Destroy(&ksp, &x, &b, &u, &A));
  PetscCall(ArraysDestroy(&a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char       *only[32];
  PetscInt    nonly = 32;
  PetscBool   set, quick = PETSC_FALSE;
  PetscMPIInt size;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscSpMVInitializePackage());
  (void)RanksComm();
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-cases", only, &nonly, &set));
  if (!set) nonly = 0;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-quick", &quick, NULL));
  PetscCall(OnDevice(MATBATCH, &device));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    PetscBool in = (PetscBool)!nonly;

    for (PetscInt l = 0; l < nonly && !in; l++) PetscCall(PetscStrcmp(only[l], cases[k].name, &in));
    if (!in || (quick && !cases[k].quick)) continue;
    for (PetscCopyMode mode = PETSC_COPY_VALUES; mode <= PETSC_USE_POINTER; mode++) PetscCall(RunCase(&cases[k], mode));
  }
  if (!nonly && !quick) {
    for (int sharing = MATBATCH_SHARE_NONE; sharing <= MATBATCH_SHARE_PATTERN; sharing++)
      PetscCall(Inverse((MatBatchSharing)sharing));
    PetscCall(FromMats());
    PetscCall(BadInput());
#if defined(PETSC_HAVE_CUDA)
    if (device) PetscCall(Device());
#endif
  }
  for (PetscInt l = 0; l < nonly; l++) PetscCall(PetscFree(only[l]));
  PetscCheck(checks, PETSC_COMM_SELF, PETSC_ERR_USER, "Nothing was checked: no such case");
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                        "batch on the %s, %d ranks: %" PetscInt_FMT " checks, %" PetscInt_FMT " failed\n",
                        device ? "device" : "host", size, checks, failures));
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
