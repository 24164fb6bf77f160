/*
  The matrix type batch against AIJ: every kernel on every case, on one or several ranks, on the host and, where PETSc uses one, on the device.

  Options: -kernels a,b, -cases a,b, -expect host|device, -quick (a case of each kind, for sanitizers). What fails is told with its case, kernel and row.
  -cases graph captures products, for which it needs -root_device_context_stream_type nonblocking.
*/
#include <unistd.h>
#include "batch.h"
#include "random.h"
#include "ranks.h"
#if defined(PETSC_HAVE_CUDA)
  #include <petscdevice_cuda.h>
#endif
#include <math.h>
#include <string.h>

static PetscInt    checks = 0, failures = 0;
static PetscBool   device   = PETSC_FALSE;
static const char *now_case = "", *now_kernel = "";

static PetscErrorCode Fail(const char *what)
{
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (failures++ < 40) PetscCall(PetscPrintf(PETSC_COMM_SELF, "FAILED: [%d] %s, kernel %s: %s\n", rank, now_case, now_kernel, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define Check(condition, what)               \
  do {                                       \
    checks++;                                \
    if (!(condition)) PetscCall(Fail(what)); \
  } while (0)

/* ---------------------------------------------------------------- cases */

/* How long is row r of a problem of n rows, by kind */
static PetscInt Length(const char *kind, PetscInt p, PetscInt r, PetscInt n)
{
  if (!strcmp(kind, "dense")) return n;
  if (!strcmp(kind, "band")) return PetscMin(n, 5);
  if (!strcmp(kind, "holes")) return r % 3 == 1 ? 0 : PetscMin(n, 1 + draw(9));
  if (!strcmp(kind, "skewed")) return r < n / 16 ? n : PetscMin(n, 1 + r % 2); /* nonzeros accumulate in a few rows */
  if (!strcmp(kind, "nothing")) return 0;
  if (!strcmp(kind, "mixed")) return p % 4 == 0 ? n : PetscMin(n, draw(1 + p % 37));
  return PetscMin(n, 1 + draw(12));
}

static PetscErrorCode ArraysCreate(const char *kind, PetscInt problems, PetscInt least, PetscInt most, MatBatchSharing sharing, Arrays *A)
{
  const PetscInt patterns = sharing && problems ? 1 : problems;
  PetscInt       at = 0, room = 1, row = 0, *mark;

  PetscFunctionBeginUser;
  A->problems = problems;
  A->sharing  = problems ? sharing : MATBATCH_SHARE_NONE;
  A->rows     = 0;
  A->j        = NULL;
  PetscCall(PetscMalloc1(problems, &A->sizes));
  for (PetscInt p = 0; p < problems; p++) {
    A->sizes[p] = sharing && p ? A->sizes[0] : least + draw(most - least + 1);
    A->rows += A->sizes[p];
  }
  for (PetscInt p = 0, all = 0; p < patterns; p++) {
    all += A->sizes[p];
    if (p == patterns - 1) PetscCall(PetscMalloc1(all + 1, &A->i));
  }
  if (!patterns) PetscCall(PetscMalloc1(1, &A->i));
  PetscCall(PetscCalloc1(most + 1, &mark));
  A->i[0] = 0;
  for (PetscInt p = 0, stamp = 0; p < patterns; p++) {
    const PetscInt n = A->sizes[p];

    for (PetscInt r = 0; r < n; r++, row++) {
      const PetscInt len = Length(kind, p, r, n);

      stamp++;
      if (strcmp(kind, "nothing") && (r % 5 || strcmp(kind, "holes")) && len) mark[r] = stamp;
      for (PetscInt k = 0; k < len; k++) mark[len == n ? k : (!strcmp(kind, "band") ? PetscMin(n - 1, PetscMax(0, r - 2 + k)) : draw(n))] = stamp;
      if (at + n > room || !A->j) {
        while (at + n > room) room *= 2;
        PetscCall(PetscRealloc(room * sizeof(*A->j), &A->j));
      }
      for (PetscInt c = strcmp(kind, "band") ? 0 : PetscMax(0, r - 2); c < (strcmp(kind, "band") ? n : PetscMin(n, r + 3)); c++) {
        if (mark[c] == stamp) A->j[at++] = c;
      }
      A->i[row + 1] = at;
    }
    PetscCall(PetscArrayzero(mark, most + 1));
    stamp = 0;
  }
  PetscCall(PetscFree(mark));
  A->values = (PetscInt64)at * (A->sharing == MATBATCH_SHARE_PATTERN ? problems : 1);
  PetscCall(PetscMalloc1(A->values, &A->a));
  for (PetscInt64 k = 0; k < A->values; k++) A->a[k] = number();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- products */

static PetscErrorCode VecFill(Vec x)
{
  PetscScalar *a;
  PetscInt     n;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayWrite(x, &a));
  for (PetscInt k = 0; k < n; k++) a[k] = number();
  PetscCall(VecRestoreArrayWrite(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y against ref, by the row's bound |z| + |A||x| */
static PetscErrorCode Compare(Vec y, Vec ref, Vec bound, const char *what)
{
  const PetscScalar *a, *b, *c;
  PetscInt           n;
  char               text[256];
  PetscReal          worst = 0.0;
  PetscInt           where = -1;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(y, &n));
  PetscCall(VecGetArrayRead(y, &a));
  PetscCall(VecGetArrayRead(ref, &b));
  PetscCall(VecGetArrayRead(bound, &c));
  for (PetscInt k = 0; k < n; k++) {
    const PetscReal off = PetscAbsScalar(a[k] - b[k]), may = PetscRealPart(c[k]) * 400 * PETSC_MACHINE_EPSILON; /* longest rows: 300 entries and more */

    if (!(off <= may) && (where < 0 || off - may > worst)) {
      worst = off - may;
      where = k;
    }
  }
  if (where >= 0)
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s, local row %" PetscInt_FMT " of %" PetscInt_FMT ": %g%+gi, AIJ %g%+gi, bound %g", what, where, n,
                            (double)PetscRealPart(a[where]), (double)PetscImaginaryPart(a[where]), (double)PetscRealPart(b[where]),
                            (double)PetscImaginaryPart(b[where]), (double)PetscRealPart(c[where])));
  PetscCall(VecRestoreArrayRead(bound, &c));
  PetscCall(VecRestoreArrayRead(ref, &b));
  PetscCall(VecRestoreArrayRead(y, &a));
  Check(where < 0, text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum { MULT, TRANSPOSE, HERMITIAN } Op;

static PetscErrorCode Apply(Mat A, Op op, Vec x, Vec z, Vec y)
{
  PetscFunctionBeginUser;
  if (op == MULT)
    PetscCall(z ? MatMultAdd(A, x, z, y) : MatMult(A, x, y));
  else if (op == TRANSPOSE)
    PetscCall(z ? MatMultTransposeAdd(A, x, z, y) : MatMultTranspose(A, x, y));
  else
    PetscCall(z ? MatMultHermitianTransposeAdd(A, x, z, y) : MatMultHermitianTranspose(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Same(Vec a, Vec b, const char *what) /* to the bit */
{
  const PetscScalar *x, *y;
  PetscInt           n, k = 0;
  PetscBool          same = PETSC_TRUE;
  char               text[256];

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(a, &n));
  PetscCall(VecGetArrayRead(a, &x));
  PetscCall(VecGetArrayRead(b, &y));
  for (; k < n && same; k++) PetscCall(PetscMemcmp(x + k, y + k, sizeof(*x), &same));
  PetscCall(PetscStrncpy(text, what, sizeof(text)));
  if (!same)
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s: local row %" PetscInt_FMT " of %" PetscInt_FMT ": %g and %g", what, k - 1, n,
                            (double)PetscRealPart(x[k - 1]), (double)PetscRealPart(y[k - 1])));
  PetscCall(VecRestoreArrayRead(b, &y));
  PetscCall(VecRestoreArrayRead(a, &x));
  Check(same, text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All products of A against those of B, |A| in `bound`; vectors of the type given */
static PetscErrorCode Products(Mat A, Mat B, Mat bound, VecType type, const char *when)
{
  static const char *const names[] = {"mult", "transpose", "Hermitian transpose"};
  Vec                      x, z, y, y2, ref, b, w, h[3];
  PetscInt                 n, N;
  char                     what[128];

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(MatGetSize(A, &N, NULL));
  PetscCall(VecCreate(PetscObjectComm((PetscObject)A), &x));
  PetscCall(VecSetSizes(x, n, N));
  PetscCall(VecSetType(x, type));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecDuplicate(x, &y2));
  PetscCall(VecFill(x));
  PetscCall(VecFill(z));
  PetscCall(MatCreateVecs(B, &ref, &b)); /* on the host */
  for (int k = 0; k < 3; k++) PetscCall(VecDuplicate(ref, &h[k]));
  PetscCall(VecDuplicate(ref, &w));
  PetscCall(VecCopy(x, h[0]));
  PetscCall(VecCopy(z, h[1]));
  PetscCall(VecCopy(x, w));
  PetscCall(VecAbs(w));
  for (Op op = MULT; op <= HERMITIAN; op++) {
    if (op == MULT)
      PetscCall(MatMult(bound, w, b));
    else
      PetscCall(MatMultTranspose(bound, w, b));
    for (int add = 0; add < 3; add++) { /* y = A x, y = z + A x, y += A x */
      PetscCall(PetscSNPrintf(what, sizeof(what), "%s%s, %s vectors, %s", names[op], add == 0 ? "" : (add == 1 ? " add" : " add in place"), type, when));
      PetscCall(Apply(B, op, h[0], add ? h[1] : NULL, ref));
      if (add == 1) { /* the bound of z, too */
        PetscCall(VecCopy(h[1], h[2]));
        PetscCall(VecAbs(h[2]));
        PetscCall(VecAXPY(b, 1.0, h[2]));
      }
      for (int again = 0; again < 2; again++) {
        Vec to = again ? y2 : y;

        if (add == 2)
          PetscCall(VecCopy(z, to));
        else
          PetscCall(VecSet(to, (PetscScalar)NAN));
        PetscCall(Apply(A, op, x, add == 2 ? to : (add ? z : NULL), to));
      }
      PetscCall(Compare(y, ref, b, what));
      PetscCall(PetscStrlcat(what, ", twice the same", sizeof(what)));
      PetscCall(Same(y, y2, what));
    }
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&y2));
  PetscCall(VecDestroy(&ref));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&w));
  for (int k = 0; k < 3; k++) PetscCall(VecDestroy(&h[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AllProducts(Mat A, const Arrays *a, const char *when)
{
  Mat B, bound;

  PetscFunctionBeginUser;
  PetscCall(MakeAIJ(PetscObjectComm((PetscObject)A), a, &B, &bound));
  PetscCall(Products(A, B, bound, VECSTANDARD, when));
#if defined(PETSC_HAVE_CUDA)
  if (device) PetscCall(Products(A, B, bound, VECCUDA, when));
#endif
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Infinite x must stay in the rows that have their columns: one column's, and those of every second problem */
static PetscErrorCode Infinite(Mat A, const Arrays *a)
{
  Vec                x, y;
  const PetscScalar *v;
  PetscScalar       *w;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &y));
  for (int pass = 0; pass < 3; pass++) { /* a column, even problems, odd problems */
    PetscInt wrong = 0, first = 0, row = 0;

    PetscCall(VecSet(x, 1.0));
    PetscCall(VecGetArray(x, &w));
    if (!pass && a->rows) w[a->rows / 2] = (PetscScalar)INFINITY;
    for (PetscInt p = 0; pass && p < a->problems; p++) {
      for (PetscInt r = 0; r < a->sizes[p]; r++, row++) w[row] = p % 2 == pass - 1 ? (PetscScalar)INFINITY : 1.0;
    }
    PetscCall(VecRestoreArray(x, &w));
    PetscCall(MatMult(A, x, y));
    PetscCall(VecGetArrayRead(x, (const PetscScalar **)&w));
    PetscCall(VecGetArrayRead(y, &v));
    row = 0;
    for (PetscInt p = 0; p < a->problems; p++) {
      const PetscInt *o = a->i + (a->sharing ? 0 : first);

      for (PetscInt r = 0; r < a->sizes[p]; r++, row++) {
        PetscBool has = PETSC_FALSE;

        for (PetscInt k = o[r]; k < o[r + 1]; k++) has = (PetscBool)(has || PetscIsInfOrNanScalar(w[first + a->j[k]]));
        if (!has && PetscIsInfOrNanScalar(v[row])) wrong++;
      }
      first += a->sizes[p];
    }
    PetscCall(VecRestoreArrayRead(y, &v));
    PetscCall(VecRestoreArrayRead(x, (const PetscScalar **)&w));
    Check(!wrong, "infinite x reached rows that do not have their columns");
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values for some problems, or all, in the arrays and in the matrix */
static PetscErrorCode ChangeValues(Mat A, Arrays *a, PetscInt problem)
{
  PetscInt first = 0;

  PetscFunctionBeginUser;
  if (problem < 0) {
    for (PetscInt64 k = 0; k < a->values; k++) a->a[k] = number();
    PetscCall(MatBatchSetValues(A, MATBATCH_ALL, a->a));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (a->sharing == MATBATCH_SHARE_VALUES) { /* ends the sharing */
    const PetscInt nz = a->i[a->sizes[0]];
    PetscScalar   *v;

    PetscCall(PetscMalloc1((PetscInt64)nz * a->problems, &v));
    for (PetscInt p = 0; p < a->problems; p++) PetscCall(PetscArraycpy(v + (PetscInt64)p * nz, a->a, nz));
    PetscCall(PetscFree(a->a));
    a->a       = v;
    a->values  = (PetscInt64)nz * a->problems;
    a->sharing = MATBATCH_SHARE_PATTERN;
  }
  for (PetscInt p = 0; p < problem; p++) first += a->sizes[p];
  {
    const PetscInt *o = a->i + (a->sharing ? 0 : first), nz = o[a->sizes[problem]] - o[0];
    PetscScalar    *v = a->a + (a->sharing ? (PetscInt64)problem * nz : 0) + o[0];

    for (PetscInt k = 0; k < nz; k++) v[k] = number();
    PetscCall(MatBatchSetValues(A, problem, v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  const char     *name, *kind;
  PetscInt        problems, least, most;
  MatBatchSharing sharing;
  PetscBool       quick;
} Case;

static const Case cases[] = {
    {"homogeneous", "random", 40, 30, 30, MATBATCH_SHARE_NONE, PETSC_TRUE},
    {"heterogeneous", "mixed", 60, 0, 90, MATBATCH_SHARE_NONE, PETSC_TRUE},
    {"tiny", "random", 400, 0, 3, MATBATCH_SHARE_NONE, PETSC_TRUE},
    {"1-x-1", "dense", 70, 1, 1, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"rows-without-entries", "holes", 30, 5, 60, MATBATCH_SHARE_NONE, PETSC_TRUE},
    {"nothing", "nothing", 9, 0, 20, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"empty-problems", "random", 12, 0, 0, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"no-problem", "random", 0, 0, 0, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"bands", "band", 50, 33, 65, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"dense", "dense", 12, 20, 66, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"dense-300-rows", "dense", 2, 300, 300, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"a-few-full-rows", "skewed", 12, 200, 500, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"larger-than-shared-memory", "band", 2, 31000, 31000, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"larger-than-16-bit-indices", "band", 1, 70000, 70000, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"pattern-shared", "random", 33, 30, 30, MATBATCH_SHARE_PATTERN, PETSC_TRUE},
    {"pattern-shared-tiny", "random", 301, 3, 3, MATBATCH_SHARE_PATTERN, PETSC_TRUE},
    {"pattern-shared-large", "skewed", 5, 700, 700, MATBATCH_SHARE_PATTERN, PETSC_FALSE},
    {"values-shared", "holes", 21, 29, 29, MATBATCH_SHARE_VALUES, PETSC_TRUE},
    {"values-shared-tiny", "dense", 500, 2, 2, MATBATCH_SHARE_VALUES, PETSC_FALSE},
    {"values-shared-large", "random", 3, 900, 900, MATBATCH_SHARE_VALUES, PETSC_FALSE},
};

static PetscErrorCode RunKernels(const Case *c, PetscInt nkernels, char *list[])
{
  PetscMPIInt rank, size;
  PetscInt    problems;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  problems = rank == 1 ? 0 : c->problems / (rank + 1); /* the second of several ranks has none */
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(kernels); k++) {
    const PetscCopyMode mode = (PetscCopyMode)(k % 3); /* copied, owned, used in place */
    Arrays              a;
    Mat                 A, B;
    PetscBool           in = (PetscBool)!nkernels;

    for (PetscInt l = 0; l < nkernels && !in; l++) PetscCall(PetscStrcmp(list[l], kernels[k], &in));
    if (!nkernels && size > 1) in = (PetscBool)(k < 2 || k == 3); /* kernels do not know of other ranks: some will do */
    if (!in) continue;
    now_kernel = kernels[k];
    seed       = 88172645463325252u + 77 * (uint64_t)k + (uint64_t)rank;
    PetscCall(ArraysCreate(c->kind, problems, c->least, c->most, c->sharing, &a));
    if (mode == PETSC_OWN_POINTER) {
      PetscInt    *i, *j;
      PetscScalar *v;
      PetscInt     rows = a.sharing ? a.sizes[0] : a.rows;

      PetscCall(PetscMalloc1(rows + 1, &i));
      PetscCall(PetscMalloc1(a.i[rows], &j));
      PetscCall(PetscMalloc1(a.values, &v));
      PetscCall(PetscArraycpy(i, a.i, rows + 1));
      PetscCall(PetscArraycpy(j, a.j, a.i[rows]));
      PetscCall(PetscArraycpy(v, a.a, a.values));
      PetscCall(MatCreateBatch(PETSC_COMM_WORLD, problems, a.sizes, i, j, v, c->sharing, mode, &A));
    } else if (problems)
      PetscCall(MatCreateBatch(PETSC_COMM_WORLD, problems, a.sizes, a.i, a.j, a.a, c->sharing, mode, &A));
    else /* there need not be arrays */
      PetscCall(MatCreateBatch(PETSC_COMM_WORLD, 0, NULL, NULL, NULL, NULL, c->sharing, mode, &A));
    PetscCall(SetKernel(A, kernels[k]));
    PetscCall(AllProducts(A, &a, "first"));
    PetscCall(Infinite(A, &a));
    if (c->most > 5000)
      ;                                   /* the first products tell what is different here */
    else if (mode == PETSC_USE_POINTER) { /* the owner writes */
      for (PetscInt64 e = 0; e < a.values; e++) a.a[e] = number();
      PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
      PetscCall(AllProducts(A, &a, "after its owner wrote"));
      PetscCall(MatScale(A, 0.5)); /* into the owner's array */
      PetscCall(AllProducts(A, &a, "after MatScale()"));
    } else {
      PetscCall(ChangeValues(A, &a, -1));
      PetscCall(AllProducts(A, &a, "after all values changed"));
      if (problems) PetscCall(ChangeValues(A, &a, problems / 2));
      PetscCall(AllProducts(A, &a, "after a problem changed"));
      if (problems) PetscCall(ChangeValues(A, &a, problems - 1));
      if (problems) PetscCall(ChangeValues(A, &a, problems / 3));
      PetscCall(AllProducts(A, &a, "after two more changed"));
    }
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(MatDestroy(&A));
    if (c->most <= 5000) PetscCall(AllProducts(B, &a, "of the duplicate"));
    PetscCall(MatDestroy(&B));
    PetscCall(ArraysDestroy(&a));
  }
  now_kernel = "auto";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- everything but products */

static PetscErrorCode SameMatrix(Mat A, Mat B, const char *what)
{
  Mat       C, D;
  PetscReal norm, off;
  PetscInt  n, N;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatGetSize(B, &N, NULL));
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &D));
  PetscCall(MatDuplicate(D, MAT_COPY_VALUES, &C)); /* without the block sizes, which MatAXPY() would forget to free */
  PetscCall(MatDestroy(&D));
  PetscCall(MatConvert(B, MATAIJ, MAT_INITIAL_MATRIX, &D));
  PetscCall(MatNorm(C, NORM_FROBENIUS, &norm));
  PetscCall(MatAXPY(C, -1.0, D, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatNorm(C, NORM_FROBENIUS, &off));
  Check(n == N && off <= 10 * PETSC_MACHINE_EPSILON * norm, what);
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameVec(Vec v, Vec w, const char *what)
{
  PetscReal norm, off;
  Vec       d;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(w, &d));
  PetscCall(VecCopy(v, d));
  PetscCall(VecNorm(w, NORM_INFINITY, &norm));
  PetscCall(VecAXPY(d, -1.0, w));
  PetscCall(VecNorm(d, NORM_INFINITY, &off));
  Check(off <= 100 * PETSC_MACHINE_EPSILON * norm, what);
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a matrix was told before it was filled must be left */
static PetscErrorCode IsKernel(Mat A, const char *kernel, const char *prefix, const char *name)
{
  MatBatchInfo info;
  const char  *p, *n;

  PetscFunctionBeginUser;
  PetscCall(MatBatchGetInfo(A, &info));
  PetscCall(MatGetOptionsPrefix(A, &p));
  PetscCall(PetscObjectGetName((PetscObject)A, &n));
  Check(!strcmp(info.kernel, kernel), "kernel that was asked for");
  Check(p && !strcmp(p, prefix) && !strcmp(n, name), "prefix and name");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Operations(const Case *c)
{
  MPI_Comm        comm = PETSC_COMM_WORLD;
  PetscMPIInt     rank, size;
  Arrays          a;
  Mat             A, B, C, D, bound;
  Vec             x, y, l, r, hl, hr;
  PetscReal       p, q;
  PetscBool       is;
  MatInfo         ia, ib;
  MatBatchInfo    info;
  PetscInt        rs, re, nb, sum = 0;
  const PetscInt *bs;
  const NormType  norms[] = {NORM_1, NORM_FROBENIUS, NORM_INFINITY};

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  seed += (uint64_t)rank;
  PetscCall(ArraysCreate(c->kind, rank == 1 ? 0 : c->problems, c->least, c->most, c->sharing, &a));
  PetscCall(MakeAIJ(comm, &a, &B, &bound));
  PetscCall(MatCreateBatch(comm, a.problems, a.sizes, a.i, a.j, a.a, c->sharing, PETSC_COPY_VALUES, &A));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATBATCH, &is));
  Check(is, "type");
  PetscCall(SameMatrix(A, B, "conversion to AIJ"));
  /* from AIJ: blocks found, and blocks given */
  PetscCall(MatConvert(B, MATBATCH, MAT_INITIAL_MATRIX, &C));
  PetscCall(SameMatrix(C, B, "conversion from AIJ"));
  PetscCall(AllProducts(C, &a, "converted from AIJ"));
  PetscCall(MatScale(B, 2.0));
  PetscCall(MatConvert(B, MATBATCH, MAT_REUSE_MATRIX, &C));
  PetscCall(SameMatrix(C, B, "conversion from AIJ again"));
  PetscCall(MatScale(B, 0.5));
  PetscCall(MatDestroy(&C));
  /* B's blocks may be other ones than A's; where they are not, and have one pattern, this stores it once, A may not */
  if (!strcmp(c->name, "1-x-1") || c->sharing) {
    PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, &C));
    PetscCall(MatGetVariableBlockSizes(A, &nb, &bs));
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &D));
    PetscCall(MatSetVariableBlockSizes(D, nb, (PetscInt *)bs));
    PetscCall(MatConvert(D, MATBATCH, MAT_REUSE_MATRIX, &C));
    PetscCall(SameMatrix(C, B, "conversion from AIJ to what shares more or less"));
    PetscCall(MatConvert(D, MATBATCH, MAT_INPLACE_MATRIX, &D));
    PetscCall(MatEqual(C, D, &is));
    Check(is, "MatEqual() of matrices that share more or less");
    PetscCall(MatAXPY(C, -1.0, D, SAME_NONZERO_PATTERN));
    PetscCall(MatNorm(C, NORM_1, &p));
    Check(p == 0.0, "MatAXPY() of matrices that share more or less");
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&D));
  }
  PetscCall(MatGetVariableBlockSizes(A, &nb, &bs));
  for (PetscInt k = 0; k < nb; k++) sum += bs[k];
  Check(sum == a.rows, "variable block sizes");
  if (nb || !a.rows) {
    PetscCall(MatSetVariableBlockSizes(B, nb, (PetscInt *)bs));
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &C));
    PetscCall(MatSetVariableBlockSizes(C, nb, (PetscInt *)bs));
    PetscCall(MatConvert(C, MATBATCH, MAT_INPLACE_MATRIX, &C));
    PetscCall(SameMatrix(C, B, "conversion in place"));
    PetscCall(MatBatchGetInfo(C, &info));
    Check(!nb || info.problems == nb, "the problems are the blocks given");
    PetscCall(MatConvert(C, MATAIJ, MAT_INPLACE_MATRIX, &C));
    PetscCall(SameMatrix(C, B, "conversion back in place"));
    PetscCall(MatDestroy(&C));
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(MatConvert(A, k ? MATSELLP : MATDENSE, MAT_INITIAL_MATRIX, &C));
    PetscCall(SameMatrix(C, B, k ? "conversion to sellp" : "conversion to dense"));
    PetscCall(MatDestroy(&C));
  }
  /* numbers */
  for (int k = 0; k < 3; k++) {
    PetscCall(MatNorm(A, norms[k], &p));
    PetscCall(MatNorm(B, norms[k], &q));
    Check(PetscAbsReal(p - q) <= 100 * PETSC_MACHINE_EPSILON * q, "norm");
  }
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &ia));
  PetscCall(MatGetInfo(B, MAT_GLOBAL_SUM, &ib));
  Check(ia.nz_used == ib.nz_used, "nonzeros of MatGetInfo()");
  PetscCall(MatBatchGetInfo(A, &info));
  Check(info.problems == a.problems && info.kernel && info.kernel[0], "MatBatchGetInfo()");
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(MatCreateVecs(B, &hr, &hl));
#if defined(PETSC_HAVE_CUDA)
  PetscCall(PetscObjectTypeCompareAny((PetscObject)x, &is, VECSEQCUDA, VECMPICUDA, ""));
  Check(is == device, "vectors of the device");
#endif
  PetscCall(MatGetDiagonal(A, x));
  PetscCall(MatGetDiagonal(B, hr));
  PetscCall(SameVec(x, hr, "diagonal"));
  PetscCall(VecDuplicate(x, &l));
  PetscCall(VecDuplicate(x, &r));
  PetscCall(VecFill(l));
  PetscCall(VecFill(r));
  PetscCall(VecCopy(l, hl));
  PetscCall(VecCopy(r, hr));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt row = rs; row < re; row += 1 + (re - rs) / 7) {
    PetscInt           n[2];
    const PetscInt    *cols[2];
    const PetscScalar *vals[2];
    PetscBool          same = PETSC_TRUE;

    PetscCall(MatGetRow(A, row, &n[0], &cols[0], &vals[0]));
    PetscCall(MatGetRow(B, row, &n[1], &cols[1], &vals[1]));
    for (PetscInt k = 0; k < n[0] && k < n[1]; k++) same = (PetscBool)(same && cols[0][k] == cols[1][k] && vals[0][k] == vals[1][k]);
    Check(n[0] == n[1] && same, "MatGetRow()");
    for (PetscInt k = 0; k < n[0]; k++) {
      PetscScalar v;

      PetscCall(MatGetValues(A, 1, &row, 1, cols[0] + k, &v));
      Check(v == vals[0][k], "MatGetValues()");
    }
    PetscCall(MatRestoreRow(B, row, &n[1], &cols[1], &vals[1]));
    PetscCall(MatRestoreRow(A, row, &n[0], &cols[0], &vals[0]));
  }
  /* values */
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &C));
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &D));
  PetscCall(MatEqual(A, C, &is));
  Check(is, "MatEqual()");
  PetscCall(MatDiagonalScale(C, l, r));
  PetscCall(MatDiagonalScale(D, hl, hr));
  PetscCall(SameMatrix(C, D, "MatDiagonalScale()"));
  PetscCall(MatAXPY(C, 3.0, A, SAME_NONZERO_PATTERN));
  PetscCall(MatAXPY(D, 3.0, B, SAME_NONZERO_PATTERN));
  PetscCall(SameMatrix(C, D, "MatAXPY()"));
  PetscCall(MatCopy(A, C, SAME_NONZERO_PATTERN));
  PetscCall(SameMatrix(C, B, "MatCopy()"));
  PetscCall(MatConjugate(C));
  PetscCall(MatCopy(B, D, SAME_NONZERO_PATTERN));
  PetscCall(MatConjugate(D));
  PetscCall(SameMatrix(C, D, "MatConjugate()"));
  if (!strcmp(c->kind, "dense") || !strcmp(c->kind, "band")) { /* all diagonal entries are there */
    PetscCall(MatCopy(A, C, SAME_NONZERO_PATTERN));
    PetscCall(MatCopy(B, D, SAME_NONZERO_PATTERN));
    PetscCall(MatShift(C, 0.5));
    PetscCall(MatShift(D, 0.5));
    PetscCall(SameMatrix(C, D, "MatShift()"));
    PetscCall(MatDiagonalSet(C, l, ADD_VALUES));
    PetscCall(MatDiagonalSet(D, hl, ADD_VALUES));
    PetscCall(SameMatrix(C, D, "MatDiagonalSet(), adding"));
    PetscCall(MatDiagonalSet(C, r, INSERT_VALUES));
    PetscCall(MatDiagonalSet(D, hr, INSERT_VALUES));
    PetscCall(SameMatrix(C, D, "MatDiagonalSet()"));
  }
  PetscCall(MatZeroEntries(C));
  PetscCall(MatNorm(C, NORM_1, &p));
  Check(p == 0.0, "MatZeroEntries()");
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &C));
  PetscCall(MatTranspose(B, MAT_INITIAL_MATRIX, &D));
  PetscCall(SameMatrix(C, D, "MatTranspose()"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &C));
  PetscCall(MatScale(D, 2.0));
  PetscCall(SameMatrix(C, D, "MatTranspose() again"));
  PetscCall(MatScale(A, 0.5));
  PetscCall(MatScale(C, 0.5));
  PetscCall(MatTranspose(C, MAT_INPLACE_MATRIX, &C));
  PetscCall(SameMatrix(C, B, "MatTranspose() in place"));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  { /* submatrices of the first rows */
    IS       rows;
    PetscInt n = (re - rs) / 2;

    PetscCall(ISCreateStride(comm, n, rs, 1, &rows));
    PetscCall(MatCreateSubMatrix(A, rows, rows, MAT_INITIAL_MATRIX, &C));
    PetscCall(MatCreateSubMatrix(B, rows, rows, MAT_INITIAL_MATRIX, &D));
    PetscCall(SameMatrix(C, D, "MatCreateSubMatrix()"));
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&D));
    PetscCall(ISDestroy(&rows));
  }
  { /* through a file */
    PetscViewer viewer;
    int         process = (int)getpid(); /* the first's, for all: others may run this test at the same time */
    char        name[PETSC_MAX_PATH_LEN], tmp[PETSC_MAX_PATH_LEN];

    PetscCallMPI(MPI_Bcast(&process, 1, MPI_INT, 0, comm));
    PetscCall(PetscGetTmp(comm, tmp, sizeof(tmp)));
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s/batch-test-%d", tmp, process));
    PetscCall(PetscViewerBinaryOpen(comm, name, FILE_MODE_WRITE, &viewer));
    PetscCall(MatView(A, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscCall(PetscViewerBinaryOpen(comm, name, FILE_MODE_READ, &viewer));
    PetscCall(MatCreate(comm, &C));
    if (size > 1) PetscCall(MatSetSizes(C, re - rs, re - rs, PETSC_DETERMINE, PETSC_DETERMINE)); /* whole problems on each */
    PetscCall(MatSetOptionsPrefix(C, "loaded_"));
    PetscCall(PetscObjectSetName((PetscObject)C, "loaded"));
    PetscCall(MatSetType(C, MATBATCH));
    PetscCall(SetKernel(C, "ell"));
    PetscCall(MatLoad(C, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscCall(SameMatrix(C, B, "MatView() and MatLoad()"));
    PetscCall(PetscObjectTypeCompare((PetscObject)C, MATBATCH, &is));
    Check(is, "type after MatLoad()");
    PetscCall(IsKernel(C, "ELL", "loaded_", "loaded"));
    PetscCall(MatDestroy(&C));
    /* in place: by the option of the matrix that there was */
    PetscCall(PetscOptionsSetValue(NULL, "-converted_mat_batch_kernel", "coo"));
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &C));
    PetscCall(MatSetOptionsPrefix(C, "converted_"));
    PetscCall(PetscObjectSetName((PetscObject)C, "converted"));
    PetscCall(MatConvert(C, MATBATCH, MAT_INPLACE_MATRIX, &C));
    PetscCall(IsKernel(C, "COO", "converted_", "converted"));
    PetscCall(PetscOptionsClearValue(NULL, "-converted_mat_batch_kernel"));
    PetscCall(MatDestroy(&C));
    if (!rank) (void)remove(name);
    (void)strcat(name, ".info");
    if (!rank) (void)remove(name);
  }
  PetscCall(MatScale(A, 3.0));
  PetscCall(MatScale(B, 3.0));
  PetscCall(SameMatrix(A, B, "MatScale()"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&hl));
  PetscCall(VecDestroy(&hr));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&bound));
  PetscCall(ArraysDestroy(&a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Diagonally dominant problems, solved with each preconditioner; the solution is that of AIJ's system */
static PetscErrorCode Solvers(MatBatchSharing sharing, PetscBool dense)
{
  static const struct {
    const char *options;
    PetscBool   seq;
    PetscInt    its; /* at most; exact ones take 1 */
  } runs[] = {
      {"-pc_type vpbjacobi", PETSC_FALSE, 2},
      {"-pc_type pbjacobi", PETSC_FALSE, 200},
      {"-pc_type bjacobi -sub_pc_type lu", PETSC_FALSE, 2},
      {"-pc_type bjacobi -sub_pc_type ilu", PETSC_FALSE, 200},
      {"-pc_type bjacobi -pc_bjacobi_local_blocks 3 -sub_pc_type lu", PETSC_FALSE, 200},
      {"-pc_type asm -sub_pc_type lu -pc_asm_overlap 1", PETSC_FALSE, 2},
      {"-pc_type jacobi", PETSC_FALSE, 200},
      {"-pc_type sor", PETSC_FALSE, 200},
      {"-pc_type lu", PETSC_TRUE, 2},
      {"-pc_type lu -pc_factor_mat_ordering_type natural", PETSC_TRUE, 2},
      {"-pc_type lu -pc_factor_mat_ordering_type rcm", PETSC_TRUE, 2},
      {"-pc_type ilu -pc_factor_mat_ordering_type 1wd", PETSC_TRUE, 200},
      {"-pc_type ilu", PETSC_TRUE, 200},
      {"-pc_type cholesky", PETSC_TRUE, 2},
      {"-pc_type cholesky -pc_factor_mat_ordering_type qmd", PETSC_TRUE, 2},
      {"-pc_type icc", PETSC_TRUE, 200},
      {"-ksp_type bicg -pc_type jacobi", PETSC_FALSE, 400},
      {"-ksp_type cgne -pc_type jacobi", PETSC_FALSE, 400},
      {"-ksp_type richardson -pc_type none -ksp_richardson_scale 0.1", PETSC_FALSE, 500},
      {"", PETSC_FALSE, 400},
  };
  MPI_Comm       comm = PETSC_COMM_WORLD;
  PetscMPIInt    rank, size;
  const PetscInt n = 12;
  PetscInt       problems, *i, *j, *sizes, at = 0, row = 0;
  PetscScalar   *a;
  Mat            A;
  Vec            x, b, u;

  PetscFunctionBeginUser;
  if (dense) /* consecutive rows have the same columns: AIJ's inodes */
    now_case = sharing == MATBATCH_SHARE_NONE ? "solvers, dense problems" : "solvers, dense problems, shared";
  else
    now_case = sharing == MATBATCH_SHARE_NONE ? "solvers" : "solvers, shared";
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  problems = 20 + 3 * rank;
  PetscCall(PetscMalloc1(problems, &sizes));
  PetscCall(PetscMalloc1(problems * (n + 3) + 1, &i));
  PetscCall(PetscMalloc1(problems * n * n, &j));
  PetscCall(PetscMalloc1(problems * n * n, &a));
  i[0] = 0;
  for (PetscInt p = 0; p < problems; p++) {
    const PetscInt width = dense ? n : 1; /* symmetric positive definite, tridiagonal or dense */

    sizes[p] = sharing ? n : 1 + p % n;
    for (PetscInt r = 0; r < sizes[p] && (!sharing || !p); r++) {
      for (PetscInt c = PetscMax(0, r - width); c <= PetscMin(sizes[p] - 1, r + width); c++) {
        j[at]   = c;
        a[at++] = c == r ? 4.0 + 0.1 * (PetscReal)(p % 5) : dense ? -0.25 : -1.0;
      }
      i[++row] = at;
    }
    if (sharing == MATBATCH_SHARE_PATTERN && p) PetscCall(PetscArraycpy(a + p * i[n], a, i[n]));
  }
  PetscCall(MatCreateBatch(comm, problems, sizes, i, j, a, sharing, PETSC_COPY_VALUES, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &u));
  PetscCall(VecFill(u));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(runs); k++) {
    KSP                ksp;
    PetscOptions       options;
    PetscReal          norm, off;
    PetscInt           its;
    KSPConvergedReason reason;
    char               text[256];

    if (runs[k].seq && size > 1) continue;
    PetscCall(PetscOptionsCreate(&options));
    PetscCall(PetscOptionsInsertString(options, runs[k].options));
    PetscCall(PetscOptionsInsertString(NULL, runs[k].options)); /* for solvers within solvers */
    PetscCall(KSPCreate(comm, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetTolerances(ksp, 1e3 * PETSC_MACHINE_EPSILON, PETSC_DEFAULT, PETSC_DEFAULT, 1000));
    PetscCall(KSPSetFromOptions(ksp));
    for (int again = 0; again < 2; again++) { /* the second time with other values */
      PetscCall(MatMult(A, u, b));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(KSPGetConvergedReason(ksp, &reason));
      PetscCall(KSPGetIterationNumber(ksp, &its));
      PetscCall(VecAXPY(x, -1.0, u));
      PetscCall(VecNorm(x, NORM_INFINITY, &off));
      PetscCall(VecNorm(u, NORM_INFINITY, &norm));
      PetscCall(
          PetscSNPrintf(text, sizeof(text), "%s: reason %d, %" PetscInt_FMT " iterations, error %g", runs[k].options, (int)reason, its, (double)(off / norm)));
      Check(reason > 0 && its <= runs[k].its && off <= 1e5 * PETSC_MACHINE_EPSILON * norm, text);
      PetscCall(MatScale(A, again ? 0.5 : 2.0));
      if (!strncmp(runs[k].options, "-ksp_type richardson", 20)) { /* its scale suits these values only */
        PetscCall(MatScale(A, 0.5));
        break;
      }
    }
    PetscCall(KSPDestroy(&ksp));
    PetscCall(PetscOptionsDestroy(&options));
    {
      char copy[256], *word, *rest = copy;

      PetscCall(PetscStrncpy(copy, runs[k].options, sizeof(copy)));
      while ((word = strtok(rest, " "))) {
        rest = NULL;
        if (word[0] == '-') PetscCall(PetscOptionsClearValue(NULL, word));
      }
    }
  }
  { /* one process changes a problem, and all set up a preconditioner again */
    KSP       ksp;
    PC        pc;
    PetscReal norm, off;

    PetscCall(KSPCreate(comm, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetTolerances(ksp, 1e3 * PETSC_MACHINE_EPSILON, PETSC_DEFAULT, PETSC_DEFAULT, 2));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCASM));
    PetscCall(PetscOptionsSetValue(NULL, "-sub_pc_type", "lu"));
    PetscCall(KSPSetFromOptions(ksp));
    for (int again = 0; again < 2; again++) {
      if (again) {
        for (PetscInt k = 0; k < 3 * n; k++) a[k] *= 7.0;
        if (rank == size - 1) PetscCall(MatBatchSetValues(A, 0, a));
        PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
        PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
      }
      PetscCall(MatMult(A, u, b));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(VecAXPY(x, -1.0, u));
      PetscCall(VecNorm(x, NORM_INFINITY, &off));
      PetscCall(VecNorm(u, NORM_INFINITY, &norm));
      Check(off <= 1e5 * PETSC_MACHINE_EPSILON * norm, "ASM after one process changed a problem");
    }
    PetscCall(PetscOptionsClearValue(NULL, "-sub_pc_type"));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&u));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFree(sizes));
  PetscCall(PetscFree(i));
  PetscCall(PetscFree(j));
  PetscCall(PetscFree(a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromMats(void)
{
  Mat          mats[6], A, B;
  MatBatchInfo info;

  PetscFunctionBeginUser;
  now_case = "MatCreateBatchFromMats()";
  for (int twice = 0; twice < 2; twice++) { /* sizes that differ, then one pattern */
    for (PetscInt p = 0; p < 6; p++) {
      const PetscInt n = twice ? 7 : p;

      PetscCall(MatCreate(PETSC_COMM_SELF, &mats[p]));
      PetscCall(MatSetSizes(mats[p], n, n, n, n));
      PetscCall(MatSetType(mats[p], p == 3 ? MATDENSE : MATAIJ));
      PetscCall(MatSetUp(mats[p]));
      for (PetscInt r = 0; r < n; r++) {
        for (PetscInt c = 0; c < n; c++) {
          if (p == 3 && twice ? PETSC_TRUE : (r + c) % 2 == 0 || twice) PetscCall(MatSetValue(mats[p], r, c, 5.0 + number(), INSERT_VALUES));
        }
      }
      PetscCall(MatAssemblyBegin(mats[p], MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(mats[p], MAT_FINAL_ASSEMBLY));
    }
    PetscCall(MatCreateBatchFromMats(PETSC_COMM_WORLD, 6, mats, &A));
    PetscCall(MatBatchGetInfo(A, &info));
    Check(info.problems == 6 && info.smallest == (twice ? 7 : 0) && info.largest == (twice ? 7 : 5), "sizes");
    Check(info.sharing == (twice ? MATBATCH_SHARE_PATTERN : MATBATCH_SHARE_NONE), "a common pattern is stored once");
    for (PetscInt p = 0; p < 6; p++) {
      PetscInt           n;
      const PetscInt    *i, *j;
      const PetscScalar *a;
      PetscBool          same = PETSC_TRUE;

      PetscCall(MatBatchGetProblem(A, p, &n, &i, &j, &a));
      for (PetscInt r = 0; r < n; r++) {
        for (PetscInt k = i[r]; k < i[r + 1]; k++) {
          PetscScalar v;

          PetscCall(MatGetValues(mats[p], 1, &r, 1, j + k, &v));
          same = (PetscBool)(same && v == a[k]);
        }
      }
      Check(same && n == (twice ? 7 : p), "MatBatchGetProblem()");
    }
    PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
    PetscCall(SameMatrix(A, B, "as AIJ"));
    PetscCall(MatDestroy(&A));
    if (twice) {
      PetscInt bs;

      PetscCall(MatSetBlockSize(B, 7));
      PetscCall(MatConvert(B, MATBATCH, MAT_INITIAL_MATRIX, &A));
      PetscCall(MatGetBlockSize(A, &bs));
      Check(bs == 7, "block size");
      PetscCall(MatDestroy(&A));
    }
    PetscCall(MatDestroy(&B));
    for (PetscInt p = 0; p < 6; p++) PetscCall(MatDestroy(&mats[p]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- what is refused */

static char said[2048];

static PetscErrorCode Listen(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n, PetscErrorType p, const char *message, void *ctx)
{
  if (p == PETSC_ERROR_INITIAL && message) (void)PetscStrncpy(said, message, sizeof(said));
  return n;
}

/* Collective: a call that one rank alone refuses ends the program */
#define Refused(call, code, words)                                                                                                                             \
  do {                                                                                                                                                         \
    PetscErrorCode ierr_;                                                                                                                                      \
    PetscBool      any_;                                                                                                                                       \
    char           text_[512];                                                                                                                                 \
    said[0] = 0;                                                                                                                                               \
    PetscCall(PetscPushErrorHandler(Listen, NULL));                                                                                                            \
    ierr_ = (call);                                                                                                                                            \
    PetscCall(PetscPopErrorHandler());                                                                                                                         \
    PetscCheck(RanksAgree(ierr_, &any_), PETSC_COMM_SELF, PETSC_ERR_PLIB, "error %d here, and not on all ranks: %s", (int)ierr_, words);                       \
    PetscCall(PetscSNPrintf(text_, sizeof(text_), "%s was to be refused with error %d and the words '%s', was with error %d and '%.100s'", #call, (int)(code), \
                            words, (int)ierr_, said));                                                                                                         \
    Check(ierr_ == (code) && strstr(said, words), text_);                                                                                                      \
  } while (0)

/* What MatCreateBatch() must refuse: the arrays of two problems, of 2 and 3 rows, with one fault */
static const PetscInt two[2] = {2, 3}, two_i[6] = {0, 1, 3, 4, 5, 6}, two_j[6] = {0, 0, 1, 0, 1, 2};
static PetscScalar    two_a[6] = {1, 2, 3, 4, 5, 6};

static const PetscInt negative[2] = {2, -3}, huge[2] = {2000000000, 2000000000}, beyond[2] = {PETSC_MAX_INT, PETSC_MAX_INT}, least[2] = {PETSC_MIN_INT, 2},
                      decreasing[6] = {0, 1, 3, 2, 5, 6}, falling[6] = {0, 1, -3, 2, 5, 6}, one[6] = {1, 1, 3, 4, 5, 6}, minus[6] = {-1, 1, 3, 4, 5, 6},
                      outside[6] = {0, 0, 1, 0, 1, 3}, below[6] = {0, 0, 1, 0, -1, 2}, last[6] = {0, 0, 1, 0, 1, PETSC_MAX_INT},
                      unsorted[6] = {0, 1, 0, 0, 1, 2}, twice[6] = {0, 1, 1, 0, 1, 2};

static const struct {
  const char     *words; /* of the message */
  PetscErrorCode  code;
  PetscInt        problems;
  const PetscInt *sizes, *i, *j;
  PetscScalar    *a;
  int             sharing, mode;
} creations[] = {
    {"Number of problems -1 is negative", PETSC_ERR_ARG_OUTOFRANGE, -1, two, two_i, two_j, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"is negative", PETSC_ERR_ARG_OUTOFRANGE, PETSC_MIN_INT, two, two_i, two_j, two_a, MATBATCH_SHARE_PATTERN, PETSC_COPY_VALUES},
    {"problems on this process: at most", PETSC_ERR_ARG_OUTOFRANGE, PETSC_MAX_INT, two, two_i, two_j, two_a, MATBATCH_SHARE_PATTERN, PETSC_COPY_VALUES},
    {"Problem 1: its size -3 is negative", PETSC_ERR_ARG_OUTOFRANGE, 2, negative, two_i, two_j, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"Problem 0: its size", PETSC_ERR_ARG_OUTOFRANGE, 2, least, two_i, two_j, two_a, MATBATCH_SHARE_VALUES, PETSC_COPY_VALUES},
    {"4000000000 rows", PETSC_ERR_ARG_OUTOFRANGE, 2, huge, two_i, two_j, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"4000000000 rows", PETSC_ERR_ARG_OUTOFRANGE, 2, huge, two_i, two_j, two_a, MATBATCH_SHARE_PATTERN, PETSC_COPY_VALUES},
    {"4294966000 rows", PETSC_ERR_ARG_OUTOFRANGE, 2147483000, two, two_i, two_j, two_a, MATBATCH_SHARE_VALUES, PETSC_COPY_VALUES},
    {"rows of all problems", PETSC_ERR_ARG_OUTOFRANGE, 2, beyond, two_i, two_j, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"the array of sizes is NULL", PETSC_ERR_ARG_NULL, 2, NULL, two_i, two_j, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"the array of row offsets is NULL", PETSC_ERR_ARG_NULL, 2, two, NULL, two_j, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"the array of columns is NULL", PETSC_ERR_ARG_NULL, 2, two, two_i, NULL, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"the array of columns is NULL", PETSC_ERR_ARG_NULL, 2, two, two_i, NULL, two_a, MATBATCH_SHARE_VALUES, PETSC_USE_POINTER},
    {"the array of values is NULL", PETSC_ERR_ARG_NULL, 2, two, two_i, two_j, NULL, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"the array of values is NULL", PETSC_ERR_ARG_NULL, 2, two, two_i, two_j, NULL, MATBATCH_SHARE_PATTERN, PETSC_USE_POINTER},
    {"Problem 1, row 0: row offsets decrease", PETSC_ERR_ARG_OUTOFRANGE, 2, two, decreasing, two_j, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"Problem 0, row 1: row offsets decrease from 1 to -3", PETSC_ERR_ARG_OUTOFRANGE, 2, two, falling, two_j, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"Row offsets must begin with 0, not 1", PETSC_ERR_ARG_OUTOFRANGE, 2, two, one, two_j, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"Row offsets must begin with 0, not -1", PETSC_ERR_ARG_OUTOFRANGE, 2, two, minus, two_j, two_a, MATBATCH_SHARE_VALUES, PETSC_COPY_VALUES},
    {"Problem 1, row 2: column 3", PETSC_ERR_ARG_OUTOFRANGE, 2, two, two_i, outside, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"Problem 1, row 1: column -1", PETSC_ERR_ARG_OUTOFRANGE, 2, two, two_i, below, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"Problem 1, row 2: column", PETSC_ERR_ARG_OUTOFRANGE, 2, two, two_i, last, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"columns must ascend, but 0 follows 1", PETSC_ERR_ARG_WRONG, 2, two, two_i, unsorted, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"columns must ascend, but 1 follows 1", PETSC_ERR_ARG_WRONG, 2, two, two_i, twice, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES},
    {"7 is no MatBatchSharing", PETSC_ERR_ARG_OUTOFRANGE, 2, two, two_i, two_j, two_a, 7, PETSC_COPY_VALUES},
    {"is no MatBatchSharing", PETSC_ERR_ARG_OUTOFRANGE, 2, two, two_i, two_j, two_a, -1, PETSC_COPY_VALUES},
    {"is no MatBatchSharing", PETSC_ERR_ARG_OUTOFRANGE, 0, NULL, NULL, NULL, NULL, 3, PETSC_COPY_VALUES},
    {"3 is no PetscCopyMode", PETSC_ERR_ARG_OUTOFRANGE, 2, two, two_i, two_j, two_a, MATBATCH_SHARE_NONE, 3},
    {"is no PetscCopyMode", PETSC_ERR_ARG_OUTOFRANGE, 2, two, two_i, two_j, two_a, MATBATCH_SHARE_NONE, -1},
    {"is no PetscCopyMode", PETSC_ERR_ARG_OUTOFRANGE, 0, NULL, NULL, NULL, NULL, MATBATCH_SHARE_NONE, 99},
    /* refused, these arrays, which nobody may free, remain the caller's */
    {"columns must ascend", PETSC_ERR_ARG_WRONG, 2, two, two_i, unsorted, two_a, MATBATCH_SHARE_NONE, PETSC_OWN_POINTER},
};

/* On one rank, and on all where only the last gives bad arguments */
static PetscErrorCode BadCreations(void)
{
  PetscMPIInt rank, size;
  Mat         A;

  PetscFunctionBeginUser;
  now_case = "bad arguments of MatCreateBatch()";
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(creations); k++) {
#define Create(comm)                                                                                                                                     \
  MatCreateBatch(comm, creations[k].problems, creations[k].sizes, creations[k].i, creations[k].j, creations[k].a, (MatBatchSharing)creations[k].sharing, \
                 (PetscCopyMode)creations[k].mode, &A)
    Refused(Create(PETSC_COMM_SELF), creations[k].code, creations[k].words);
    if (size == 1) continue;
    if (rank == size - 1)
      Refused(Create(PETSC_COMM_WORLD), creations[k].code, creations[k].words);
    else
      Refused(MatCreateBatch(PETSC_COMM_WORLD, 2, two, two_i, two_j, two_a, MATBATCH_SHARE_NONE, (PetscCopyMode)(k % 2 ? PETSC_COPY_VALUES : PETSC_USE_POINTER),
                             &A),
              creations[k].code, "rank ");
#undef Create
  }
  for (int k = 0; k < 6; k++) Check(two_a[k] == (PetscScalar)(k + 1), "the arrays of refused calls are intact");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two problems, of 2 and 3 rows, and what does not fit them */
typedef struct {
  Mat A, aij, other; /* other: another pattern, without a diagonal */
  Vec v, w, y, shorter, longer;
} Victim;

static PetscErrorCode VictimCreate(Victim *c)
{
  const PetscInt elsewhere[6] = {1, 0, 1, 1, 2, 0};

  PetscFunctionBeginUser;
  PetscCall(MatCreateBatch(PETSC_COMM_SELF, 2, two, two_i, two_j, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, &c->A));
  PetscCall(MatCreateBatch(PETSC_COMM_SELF, 2, two, two_i, elsewhere, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, &c->other));
  PetscCall(MatConvert(c->A, MATAIJ, MAT_INITIAL_MATRIX, &c->aij));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, 5, &c->v));
  PetscCall(VecDuplicate(c->v, &c->w));
  PetscCall(VecDuplicate(c->v, &c->y));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, 4, &c->shorter));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, 6, &c->longer));
  PetscCall(VecFill(c->v));
  PetscCall(VecSet(c->shorter, 1.0));
  PetscCall(VecSet(c->longer, 1.0));
  PetscCall(MatMult(c->A, c->v, c->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VictimDestroy(Victim *c)
{
  PetscFunctionBeginUser;
  PetscCall(MatDestroy(&c->A));
  PetscCall(MatDestroy(&c->other));
  PetscCall(MatDestroy(&c->aij));
  PetscCall(VecDestroy(&c->v));
  PetscCall(VecDestroy(&c->w));
  PetscCall(VecDestroy(&c->y));
  PetscCall(VecDestroy(&c->shorter));
  PetscCall(VecDestroy(&c->longer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After a refused call the matrix works, and has the values that it had */
static PetscErrorCode VictimIntact(Victim *c, const char *call)
{
  const PetscScalar *a;
  PetscBool          same;
  char               text[256];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(text, sizeof(text), "product after %s", call));
  PetscCall(VecSet(c->w, 77.0));
  PetscCall(MatMult(c->A, c->v, c->w));
  PetscCall(Same(c->w, c->y, text));
  PetscCall(MatBatchGetProblem(c->A, 0, NULL, NULL, NULL, &a));
  PetscCall(PetscArraycmp(a, two_a, 6, &same));
  Check(same, text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define Bad(call, code, words)         \
  do {                                 \
    Refused(call, code, words);        \
    PetscCall(VictimIntact(c, #call)); \
  } while (0)

static PetscErrorCode Through(Mat A, MatOperation op, Vec x, Vec z, Vec y)
{
  void (*f)(void);

  PetscFunctionBeginUser;
  PetscCall(MatGetOperation(A, op, &f));
  if (z)
    PetscCall((*(PetscErrorCode(*)(Mat, Vec, Vec, Vec))f)(A, x, z, y));
  else
    PetscCall((*(PetscErrorCode(*)(Mat, Vec, Vec))f)(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BadVectors(Victim *c)
{
  static const MatOperation products[] = {MATOP_MULT,     MATOP_MULT_TRANSPOSE,     MATOP_MULT_HERMITIAN_TRANSPOSE,
                                          MATOP_MULT_ADD, MATOP_MULT_TRANSPOSE_ADD, MATOP_MULT_HERMITIAN_TRANS_ADD};

  PetscFunctionBeginUser;
  now_case = "vectors of the wrong length";
  for (int k = 0; k < 2; k++) {
    const Vec bad = k ? c->longer : c->shorter;

    Bad(MatGetDiagonal(c->A, bad), PETSC_ERR_ARG_SIZ, "Nonconforming");
    Bad(MatDiagonalSet(c->A, bad, INSERT_VALUES), PETSC_ERR_ARG_INCOMP, "");
    Bad(MatDiagonalSet(c->A, bad, ADD_VALUES), PETSC_ERR_ARG_INCOMP, "");
    Bad(MatDiagonalScale(c->A, bad, NULL), PETSC_ERR_ARG_SIZ, "");
    Bad(MatDiagonalScale(c->A, NULL, bad), PETSC_ERR_ARG_SIZ, "");
    Bad(MatDiagonalScale(c->A, c->v, bad), PETSC_ERR_ARG_SIZ, "");
    Bad(MatGetRowMax(c->A, bad, NULL), PETSC_ERR_ARG_SIZ, "");
    Bad(MatGetRowMin(c->A, bad, NULL), PETSC_ERR_ARG_SIZ, "");
    Bad(MatGetRowMaxAbs(c->A, bad, NULL), PETSC_ERR_ARG_SIZ, "");
    Bad(MatGetRowMinAbs(c->A, bad, NULL), PETSC_ERR_ARG_SIZ, "");
    Bad(MatMult(c->A, bad, c->w), PETSC_ERR_ARG_SIZ, "");
    Bad(MatMult(c->A, c->v, bad), PETSC_ERR_ARG_SIZ, "");
    Bad(MatMultAdd(c->A, c->v, bad, c->w), PETSC_ERR_ARG_SIZ, "");
    Bad(MatMultTranspose(c->A, bad, c->w), PETSC_ERR_ARG_SIZ, "");
    Bad(MatMultTransposeAdd(c->A, c->v, c->w, bad), PETSC_ERR_ARG_SIZ, "");
    Bad(MatMultHermitianTranspose(c->A, c->v, bad), PETSC_ERR_ARG_SIZ, "");
    Bad(MatSOR(c->A, bad, 1.0, SOR_FORWARD_SWEEP, 0.0, 1, 1, c->w), PETSC_ERR_ARG_SIZ, "");
    Bad(MatSOR(c->A, c->v, 1.0, SOR_FORWARD_SWEEP, 0.0, 1, 1, bad), PETSC_ERR_ARG_SIZ, "");
    for (int p = 0; p < 6; p++) {
      Bad(Through(c->A, products[p], bad, p < 3 ? NULL : c->w, c->w), PETSC_ERR_ARG_SIZ, "Nonconforming");
      Bad(Through(c->A, products[p], c->v, p < 3 ? NULL : c->w, bad), PETSC_ERR_ARG_SIZ, "Nonconforming");
      if (p >= 3) Bad(Through(c->A, products[p], c->v, bad, c->w), PETSC_ERR_ARG_SIZ, "Nonconforming");
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BadCalls(Victim *c)
{
  const PetscInt zero = 0, five = 5, wrong[2] = {1, 3};
  PetscScalar    v[16];
  PetscReal      norm;
  MatBatchInfo   info;
  Mat            M, *sub = NULL;
  IS             outside;

  PetscFunctionBeginUser;
  now_case = "bad arguments";
  /* PETSc has marked the matrix as unassembled before it asks the type for these */
  Bad(MatSetValue(c->A, 0, 0, 9.0, INSERT_VALUES), PETSC_ERR_SUP, "MatBatchSetValues()");
  Bad(MatSetValue(c->A, 0, 4, 9.0, ADD_VALUES), PETSC_ERR_SUP, "MatBatchSetValues()");
  Bad(MatSetValuesBlocked(c->A, 1, &zero, 1, &zero, two_a, INSERT_VALUES), PETSC_ERR_SUP, "MatBatchSetValues()");
  Bad(MatSetValuesRow(c->A, 0, two_a), PETSC_ERR_SUP, "MatBatchSetValues()");
  Bad(MatZeroRows(c->A, 1, &zero, 1.0, NULL, NULL), PETSC_ERR_SUP, "");
  Bad(MatZeroRowsColumns(c->A, 1, &zero, 1.0, NULL, NULL), PETSC_ERR_SUP, "");
  Bad(MatGetRow(c->A, -1, NULL, NULL, NULL), PETSC_ERR_ARG_WRONGSTATE, "");
  Bad(MatGetRow(c->A, 5, NULL, NULL, NULL), PETSC_ERR_ARG_WRONGSTATE, "");
  Bad(MatGetValues(c->A, 1, &five, 1, &zero, v), PETSC_ERR_SUP, "not row 5");
  Bad(MatGetValues(c->A, 1, &zero, 1, &five, v), PETSC_ERR_ARG_OUTOFRANGE, "Column 5 of 5");
  Bad(MatInvertVariableBlockDiagonal(c->A, 2, wrong, v), PETSC_ERR_ARG_SIZ, "");
  Bad(MatNorm(c->A, NORM_2, &norm), PETSC_ERR_SUP, "");
#if PETSC_VERSION_LT(3, 19, 0) /* as PCGAMG asks, which itself would leave memory behind */
  Bad(MatCreateGraph(c->A, PETSC_TRUE, PETSC_TRUE, 0.0, &M), PETSC_ERR_SUP, "convert it to aij");
#else
  Bad(MatCreateGraph(c->A, PETSC_TRUE, PETSC_TRUE, 0.0, 0, NULL, &M), PETSC_ERR_SUP, "convert it to aij");
#endif
  Bad(MatShift(c->other, 1.0), PETSC_ERR_ARG_WRONGSTATE, "Problem 0 has no diagonal entry in row 0");
  Bad(MatDiagonalSet(c->other, c->v, INSERT_VALUES), PETSC_ERR_ARG_WRONGSTATE, "no diagonal entry");
  Bad(MatAXPY(c->A, 1.0, c->other, SAME_NONZERO_PATTERN), PETSC_ERR_ARG_WRONG, "the same pattern");
  Bad(MatAXPY(c->A, 1.0, c->aij, SAME_NONZERO_PATTERN), PETSC_ERR_SUP, "MatBatchSetValues()");
  Bad(MatCopy(c->other, c->A, SAME_NONZERO_PATTERN), PETSC_ERR_ARG_WRONG, "the same pattern");
  PetscCall(ISCreateStride(PETSC_COMM_SELF, 2, 4, 1, &outside));
  Bad(MatCreateSubMatrix(c->A, outside, outside, MAT_INITIAL_MATRIX, &M), PETSC_ERR_ARG_OUTOFRANGE, "");
  Bad(MatIncreaseOverlap(c->A, 1, &outside, 1), PETSC_ERR_ARG_OUTOFRANGE, "");
  Bad(MatCreateSubMatrices(c->A, 1, &outside, &outside, MAT_INITIAL_MATRIX, &sub), PETSC_ERR_ARG_OUTOFRANGE, "");
  PetscCall(ISDestroy(&outside));
  Bad(MatBatchSetValues(c->A, 2, two_a), PETSC_ERR_ARG_OUTOFRANGE, "Problem 2: this process has 2 problems");
  Bad(MatBatchSetValues(c->A, -2, two_a), PETSC_ERR_ARG_OUTOFRANGE, "Problem -2");
  Bad(MatBatchSetValues(c->A, PETSC_MIN_INT, two_a), PETSC_ERR_ARG_OUTOFRANGE, "which count from 0");
  Bad(MatBatchSetValues(c->A, PETSC_MAX_INT, two_a), PETSC_ERR_ARG_OUTOFRANGE, "which count from 0");
  Bad(MatBatchSetValues(c->A, 1, NULL), PETSC_ERR_ARG_NULL, "Problem 1 has entries");
  Bad(MatBatchSetValues(c->A, MATBATCH_ALL, NULL), PETSC_ERR_ARG_NULL, "array of values is NULL");
  Bad(MatBatchSetValues(c->aij, 0, two_a), PETSC_ERR_ARG_WRONG, "not batch");
  Bad(MatBatchGetProblem(c->A, -1, NULL, NULL, NULL, NULL), PETSC_ERR_ARG_OUTOFRANGE, "Problem -1");
  Bad(MatBatchGetProblem(c->A, 2, NULL, NULL, NULL, NULL), PETSC_ERR_ARG_OUTOFRANGE, "Problem 2");
  Bad(MatBatchGetProblem(c->aij, 0, NULL, NULL, NULL, NULL), PETSC_ERR_ARG_WRONG, "not batch");
  Bad(MatBatchGetInfo(c->aij, &info), PETSC_ERR_ARG_WRONG, "not batch");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix that has the type, and no problems */
static PetscErrorCode Unmade(Vec x, Vec y)
{
  PetscInt        n;
  const PetscInt *i, *j;
  PetscBool       done;
  MatInfo         minfo;
  MatBatchInfo    info;
  Mat             A, M;

  PetscFunctionBeginUser;
  now_case = "a matrix without problems";
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, 5, 5, 5, 5));
  PetscCall(MatSetType(A, MATBATCH));
  Refused(MatSetUp(A), PETSC_ERR_ARG_WRONGSTATE, "is made by MatCreateBatch()");
  Refused(MatBatchSetValues(A, 0, two_a), PETSC_ERR_ARG_WRONGSTATE, "no problems yet");
  Refused(MatBatchGetProblem(A, 0, NULL, NULL, NULL, NULL), PETSC_ERR_ARG_WRONGSTATE, "no problems yet");
  Refused(MatBatchGetInfo(A, &info), PETSC_ERR_ARG_WRONGSTATE, "no problems yet");
  Refused(MatSetValue(A, 0, 0, 1.0, INSERT_VALUES), PETSC_ERR_ARG_WRONGSTATE, "");
  Refused(MatZeroEntries(A), PETSC_ERR_ARG_WRONGSTATE, "");
  Refused(MatGetInfo(A, MAT_LOCAL, &minfo), PETSC_ERR_ARG_WRONGSTATE, "");
  Refused(MatGetDiagonalBlock(A, &M), PETSC_ERR_ARG_WRONGSTATE, "");
  Refused(MatDiagonalSet(A, x, INSERT_VALUES), PETSC_ERR_ARG_WRONGSTATE, "");
  Refused(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done), PETSC_ERR_ARG_WRONGSTATE, "");
  Refused(MatScale(A, 2.0), PETSC_ERR_ARG_WRONGSTATE, "");
  Refused(MatMult(A, x, y), PETSC_ERR_ARG_WRONGSTATE, "");
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices that are no problems of a batch */
static PetscErrorCode BadMats(void)
{
  Mat         mats[2], A;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  now_case = "bad arguments of MatCreateBatchFromMats()";
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  Refused(MatCreateBatchFromMats(PETSC_COMM_SELF, -1, mats, &A), PETSC_ERR_ARG_OUTOFRANGE, "Number of problems -1 is negative");
  Refused(MatCreateBatchFromMats(PETSC_COMM_SELF, PETSC_MAX_INT, mats, &A), PETSC_ERR_ARG_OUTOFRANGE, "problems on this process: at most");
  Refused(MatCreateBatchFromMats(PETSC_COMM_SELF, 1, NULL, &A), PETSC_ERR_ARG_NULL, "array of matrices is NULL");
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, 3, 3, 1, NULL, &mats[0]));
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, 2, 3, 1, NULL, &mats[1]));
  Refused(MatCreateBatchFromMats(PETSC_COMM_SELF, 1, mats, &A), PETSC_ERR_ARG_WRONGSTATE, "unassembled");
  for (int k = 0; k < 2; k++) {
    PetscCall(MatAssemblyBegin(mats[k], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(mats[k], MAT_FINAL_ASSEMBLY));
  }
  Refused(MatCreateBatchFromMats(PETSC_COMM_SELF, 2, mats, &A), PETSC_ERR_ARG_SIZ, "problems must be square");
  PetscCall(MatDestroy(&mats[1]));
  mats[1] = NULL;
  Refused(MatCreateBatchFromMats(PETSC_COMM_SELF, 2, mats, &A), PETSC_ERR_ARG_NULL, "Problem 1 is NULL");
  PetscCall(MatCreateBatchFromMats(PETSC_COMM_SELF, 1, mats, &A));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&mats[0]));
  if (size > 1) {
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, 1, 1, PETSC_DETERMINE, PETSC_DETERMINE, 1, NULL, 0, NULL, &mats[0]));
    Refused(MatCreateBatchFromMats(PETSC_COMM_WORLD, 1, mats, &A), PETSC_ERR_ARG_WRONG, "processes: each process owns whole problems");
    PetscCall(MatDestroy(&mats[0]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJ matrices that are no batch: blocks that do not hold the entries; rows that reach over the ranks, of all and of the last alone */
static PetscErrorCode BadConversions(Victim *c)
{
  const PetscInt wrong[2] = {1, 4};
  PetscMPIInt    rank, size;
  Mat            A, B;
  PetscInt       s, e;

  PetscFunctionBeginUser;
  now_case = "bad conversions";
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatSetVariableBlockSizes(c->aij, 2, (PetscInt *)wrong));
  Refused(MatConvert(c->aij, MATBATCH, MAT_INITIAL_MATRIX, &B), PETSC_ERR_ARG_WRONG, "outside of the diagonal blocks");
  for (int alone = 0; alone < 2 && size > 1; alone++) {
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, 2, 2, PETSC_DETERMINE, PETSC_DETERMINE, 3, NULL, 3, NULL, &A));
    PetscCall(MatGetOwnershipRange(A, &s, &e));
    for (PetscInt r = s; r < e; r++) {
      PetscCall(MatSetValue(A, r, r, 1.0, INSERT_VALUES));
      if (!alone || rank == size - 1) PetscCall(MatSetValue(A, r, (r + 2) % (2 * size), 1.0, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    Refused(MatConvert(A, MATBATCH, MAT_INITIAL_MATRIX, &B), PETSC_ERR_ARG_WRONG, !alone || rank == size - 1 ? "another process owns" : "rank ");
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Shared values that are given back to their own problem, which ends the sharing */
static PetscErrorCode OwnValues(void)
{
  const PetscInt     sizes[2] = {2, 2};
  const PetscScalar *a;
  Mat                A;
  PetscBool          same;

  PetscFunctionBeginUser;
  now_case = "values of the matrix itself";
  PetscCall(MatCreateBatch(PETSC_COMM_SELF, 2, sizes, two_i, two_j, two_a, MATBATCH_SHARE_VALUES, PETSC_COPY_VALUES, &A));
  PetscCall(MatBatchGetProblem(A, 1, NULL, NULL, NULL, &a));
  PetscCall(MatBatchSetValues(A, 1, a));
  for (PetscInt p = 0; p < 2; p++) {
    PetscCall(MatBatchGetProblem(A, p, NULL, NULL, NULL, &a));
    PetscCall(PetscArraycmp(a, two_a, 3, &same));
    Check(same, "values");
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BadInput(void)
{
  Victim victim;

  PetscFunctionBeginUser;
  PetscCall(BadCreations());
  PetscCall(BadMats());
  PetscCall(VictimCreate(&victim));
  PetscCall(BadVectors(&victim));
  PetscCall(BadCalls(&victim));
  PetscCall(BadConversions(&victim));
  PetscCall(Unmade(victim.v, victim.w));
  PetscCall(VictimDestroy(&victim));
  PetscCall(OwnValues());
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_HAVE_CUDA)
/* Of two batches that both need more shared memory than a kernel has unasked, the second less: the first must still run */
static PetscErrorCode SharedMemory(void)
{
  PetscFunctionBeginUser;
  now_case = "shared memory of two batches";
  for (size_t k = 3; k < PETSC_STATIC_ARRAY_LENGTH(kernels); k++) {
    Arrays a[2];
    Mat    A[2];

    now_kernel = kernels[k];
    for (int m = 0; m < 2; m++) {
      const PetscInt n = (m ? 52 : 104) * 1024 / (PetscInt)sizeof(PetscScalar); /* x takes 104 KB, then 52 */

      PetscCall(ArraysCreate("band", 2, n, n, MATBATCH_SHARE_NONE, &a[m]));
      PetscCall(MatCreateBatch(PETSC_COMM_SELF, 2, a[m].sizes, a[m].i, a[m].j, a[m].a, MATBATCH_SHARE_NONE, PETSC_USE_POINTER, &A[m]));
      PetscCall(SetKernel(A[m], kernels[k]));
      PetscCall(AllProducts(A[m], &a[m], m ? "the second" : "the first"));
    }
    PetscCall(AllProducts(A[0], &a[0], "the first after the second"));
    for (int m = 0; m < 2; m++) {
      PetscCall(MatDestroy(&A[m]));
      PetscCall(ArraysDestroy(&a[m]));
    }
  }
  now_kernel = "auto";
  now_case   = "device";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  As many rows as make blocks of the most rows, several windows and groups of many problems, which smaller batches have not; and more bytes than the L2 cache
  has, where the choice is another one
*/
static PetscErrorCode Large(void)
{
  int          gpu, cache, processors;
  MatBatchInfo info;

  PetscFunctionBeginUser;
  PetscCallCUDA(cudaGetDevice(&gpu));
  PetscCallCUDA(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, gpu));
  PetscCallCUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu));
  for (int sharing = MATBATCH_SHARE_NONE; sharing <= MATBATCH_SHARE_VALUES; sharing++) {
    const PetscInt rows = 8 * 1024 * (PetscInt)processors, most = sharing ? 7 : 60;
    const PetscInt problems =
        1 + PetscMax(rows / (sharing ? most : most / 2 - 1), sharing ? 0 : (PetscInt)(cache / 100 / sizeof(PetscScalar))); /* 180 entries each */
    Arrays a;
    Mat    A;

    now_case = sharing ? (sharing == MATBATCH_SHARE_VALUES ? "large, values shared" : "large, pattern shared") : "large";
    PetscCall(ArraysCreate(sharing ? "holes" : "random", problems, sharing ? most : 0, most, (MatBatchSharing)sharing, &a));
    PetscCall(MatCreateBatch(PETSC_COMM_SELF, problems, a.sizes, a.i, a.j, a.a, a.sharing, PETSC_COPY_VALUES, &A));
    PetscCall(AllProducts(A, &a, "first"));
    PetscCall(MatBatchGetInfo(A, &info));
    Check(strstr(info.kernel, "-bit indices"), info.kernel);
    PetscCall(Infinite(A, &a));
    PetscCall(ChangeValues(A, &a, problems - 1));
    PetscCall(AllProducts(A, &a, "after new values of the last problem"));
    PetscCall(MatDestroy(&A));
    PetscCall(ArraysDestroy(&a));
  }
  now_case = "device";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Bound to the host and back, and a host vector among those of the device */
static PetscErrorCode Device(void)
{
  Arrays       a;
  Mat          A, B, bound;
  Vec          x, y, hx, hy, b;
  MatBatchInfo info;

  PetscFunctionBeginUser;
  now_case = "device";
  PetscCall(ArraysCreate("mixed", 50, 0, 90, MATBATCH_SHARE_NONE, &a));
  PetscCall(MatCreateBatch(PETSC_COMM_SELF, a.problems, a.sizes, a.i, a.j, a.a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, &A));
  PetscCall(MakeAIJ(PETSC_COMM_SELF, &a, &B, &bound));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(MatCreateVecs(B, &hx, &hy));
  PetscCall(VecDuplicate(hy, &b));
  PetscCall(VecFill(hx));
  PetscCall(VecCopy(hx, x));
  PetscCall(VecCopy(hx, b));
  PetscCall(VecAbs(b));
  {
    Vec w;

    PetscCall(VecDuplicate(b, &w));
    PetscCall(VecCopy(b, w));
    PetscCall(MatMult(bound, w, b));
    PetscCall(VecDestroy(&w));
  }
  PetscCall(MatMult(A, hx, y));
  PetscCall(MatMult(B, hx, hy));
  PetscCall(Compare(y, hy, b, "x on the host, y on the device"));
  PetscCall(VecSet(y, 0.0));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(MatMult(A, x, y));
  PetscCall(Compare(y, hy, b, "bound to the host"));
  PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscCall(VecSet(y, 0.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(Compare(y, hy, b, "and back"));
  PetscCall(MatBatchGetInfo(A, &info));
  Check(!strstr(info.kernel, "-bit indices"), info.kernel); /* it fits into the L2 cache */
  PetscCall(SharedMemory());
  PetscCall(Large());
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&hx));
  PetscCall(VecDestroy(&hy));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&bound));
  PetscCall(ArraysDestroy(&a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers of a host vector, or NaN, to the device */
static PetscErrorCode Send(Vec from, Vec to)
{
  PetscScalar *a;
  PetscInt     n;

  PetscFunctionBeginUser;
  PetscCallCUDA(cudaDeviceSynchronize()); /* a new vector is set to zero in the default stream */
  if (from)
    PetscCall(VecCopy(from, to));
  else {
    PetscCall(VecGetLocalSize(to, &n));
    PetscCall(VecGetArrayWrite(to, &a));
    for (PetscInt k = 0; k < n; k++) a[k] = (PetscScalar)NAN;
    PetscCall(VecRestoreArrayWrite(to, &a));
  }
  PetscCall(VecGetArrayAndMemType(to, &a, NULL));
  PetscCall(VecRestoreArrayAndMemType(to, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Products captured in a graph, and replayed with other numbers in x: they may neither wait for the device nor take memory. CUDA's default stream cannot be
  captured, and with a stream of its own this is all that can be tested: PETSc's VecSet(), VecCopy() and more then run in the default stream all the same, out of
  order with the rest (they pass no device context to their asynchronous variants, for which these take that of the default stream; PETSc 3.26).
*/
static PetscErrorCode Graph(void)
{
  static const char *const names[] = {"mult", "transpose", "Hermitian transpose"};
  Arrays                   a;
  Mat                      A, B, bound;
  Vec                      x, y, z, hx, hz, ref, b, w;
  cudaStream_t             stream;
  cudaGraph_t              graph;
  cudaGraphExec_t          exec;
  char                     what[128];

  PetscFunctionBeginUser;
  now_case = "graph";
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCheck(stream, PETSC_COMM_WORLD, PETSC_ERR_USER, "-cases graph needs -root_device_context_stream_type nonblocking");
  PetscCall(ArraysCreate("mixed", 50, 0, 90, MATBATCH_SHARE_NONE, &a));
  PetscCall(MatCreateBatch(PETSC_COMM_SELF, a.problems, a.sizes, a.i, a.j, a.a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, &A));
  PetscCall(MakeAIJ(PETSC_COMM_SELF, &a, &B, &bound));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(MatCreateVecs(B, &hx, &ref)); /* on the host */
  PetscCall(VecDuplicate(hx, &hz));
  PetscCall(VecDuplicate(hx, &w));
  PetscCall(VecDuplicate(hx, &b));
  PetscCall(VecFill(hz));
  PetscCall(Send(hz, z));
  for (Op op = MULT; op <= HERMITIAN; op++) {
    for (int add = 0; add < 3; add++) { /* y = A x, y = z + A x, y += A x */
      const Vec from = add == 2 ? y : (add ? z : NULL);

      PetscCall(PetscSNPrintf(what, sizeof(what), "%s%s", names[op], add == 0 ? "" : (add == 1 ? " add" : " add in place")));
      PetscCall(VecFill(hx));
      PetscCall(Send(hx, x));
      PetscCall(Send(hz, y));
      PetscCall(Apply(A, op, x, from, y)); /* makes the layout */
      PetscCallCUDA(cudaStreamSynchronize(stream));
      PetscCallCUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      PetscCall(Apply(A, op, x, from, y));
      PetscCallCUDA(cudaStreamEndCapture(stream, &graph));
      PetscCallCUDA(cudaGraphInstantiate(&exec, graph, 0));
      PetscCall(VecFill(hx));
      PetscCall(Send(hx, x));
      PetscCall(Send(add == 2 ? hz : NULL, y));
      PetscCallCUDA(cudaGraphLaunch(exec, stream));
      PetscCallCUDA(cudaStreamSynchronize(stream));
      PetscCall(Apply(B, op, hx, add ? hz : NULL, ref));
      PetscCall(VecCopy(hx, w));
      PetscCall(VecAbs(w));
      if (op == MULT)
        PetscCall(MatMult(bound, w, b));
      else
        PetscCall(MatMultTranspose(bound, w, b));
      if (add) {
        PetscCall(VecCopy(hz, w));
        PetscCall(VecAbs(w));
        PetscCall(VecAXPY(b, 1.0, w));
      }
      PetscCall(Compare(y, ref, b, what));
      PetscCallCUDA(cudaGraphExecDestroy(exec));
      PetscCallCUDA(cudaGraphDestroy(graph));
    }
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&hx));
  PetscCall(VecDestroy(&hz));
  PetscCall(VecDestroy(&ref));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&w));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&bound));
  PetscCall(ArraysDestroy(&a));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

int main(int argc, char **argv)
{
  char        expect[16] = "", *list[16], *only[32];
  PetscInt    nlist = 16, nonly = 32;
  PetscBool   set, quick        = PETSC_FALSE, is;
  PetscMPIInt size, rank;
  Mat         A;
  Vec         x;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscSpMVInitializePackage());
  (void)RanksComm();
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-kernels", list, &nlist, &set));
  if (!set) nlist = 0;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-cases", only, &nonly, &set));
  if (!set) nonly = 0;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-quick", &quick, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-expect", expect, sizeof(expect), NULL));
  { /* where do its vectors live? */
    const PetscInt i[2] = {0, 1}, j[1] = {0}, n[1] = {1};
    PetscScalar    a[1] = {1.0};

    PetscCall(MatCreateBatch(PETSC_COMM_SELF, 1, n, i, j, a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, &A));
    PetscCall(MatCreateVecs(A, &x, NULL));
#if defined(PETSC_HAVE_CUDA)
    PetscCall(PetscObjectTypeCompare((PetscObject)x, VECSEQCUDA, &device));
#endif
    PetscCall(VecDestroy(&x));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscStrcmp(expect, device ? "device" : "host", &is));
  PetscCheck(is || !expect[0], PETSC_COMM_WORLD, PETSC_ERR_USER, "-expect %s, but batches compute on the %s here", expect, device ? "device" : "host");
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    PetscBool in = (PetscBool)!nonly;

    for (PetscInt l = 0; l < nonly && !in; l++) PetscCall(PetscStrcmp(only[l], cases[k].name, &in));
    if (!in || (quick && !cases[k].quick)) continue;
    now_case = cases[k].name;
    PetscCall(RunKernels(&cases[k], nlist, list));
    if (cases[k].most <= 500 && !quick) PetscCall(Operations(&cases[k]));
  }
  if (!nonly && !quick) {
    for (int dense = 0; dense < 2; dense++) {
      PetscCall(Solvers(MATBATCH_SHARE_NONE, (PetscBool)dense));
      PetscCall(Solvers(MATBATCH_SHARE_PATTERN, (PetscBool)dense));
      PetscCall(Solvers(MATBATCH_SHARE_VALUES, (PetscBool)dense));
    }
    PetscCall(FromMats());
    PetscCall(BadInput());
#if defined(PETSC_HAVE_CUDA)
    if (device) PetscCall(Device());
#endif
  }
#if defined(PETSC_HAVE_CUDA)
  for (PetscInt l = 0; l < nonly && device; l++) {
    PetscCall(PetscStrcmp(only[l], "graph", &is));
    if (is) PetscCall(Graph());
  }
#endif
  for (PetscInt l = 0; l < nlist; l++) PetscCall(PetscFree(list[l]));
  for (PetscInt l = 0; l < nonly; l++) PetscCall(PetscFree(only[l]));
  PetscCheck(checks, PETSC_COMM_SELF, PETSC_ERR_USER, "Nothing was checked: no such case or kernel, or -cases graph without a GPU");
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "batch on the %s, %d ranks: %" PetscInt_FMT " checks, %" PetscInt_FMT " failed\n", device ? "device" : "host", size,
                        checks, failures));
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
