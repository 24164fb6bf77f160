/* Random batches, and products compared with those of AIJ */
#include "batch.h"
#include "random.h"

PetscInt    checks = 0, failures = 0;
PetscBool   device   = PETSC_FALSE;
const char *now_case = "", *now_kernel = "";

PetscErrorCode Fail(const char *what)
{
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (failures++ < 40)
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "FAILED: [%d] %s, kernel %s: %s\n", rank, now_case, now_kernel, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void Reseed(PetscInt k)
{
  PetscMPIInt rank;

  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  seed = 88172645463325252u + 77 * (uint64_t)k + (uint64_t)rank;
}

PetscScalar RandomNumber(void)
{
  return number();
}

/* The number of entries of row r in problem p of n rows */
static PetscInt Length(const char *kind, PetscInt p, PetscInt r, PetscInt n)
{
  if (!strcmp(kind, "dense")) return n;
  if (!strcmp(kind, "band")) return PetscMin(n, 5);
  if (!strcmp(kind, "holes")) return r % 3 == 1 ? 0 : PetscMin(n, 1 + draw(9));
  if (!strcmp(kind, "skewed")) return r < n / 16 ? n : PetscMin(n, 1 + r % 2); /* most entries are in a few rows */
  if (!strcmp(kind, "nothing")) return 0;
  if (!strcmp(kind, "mixed")) return p % 4 == 0 ? n : PetscMin(n, draw(1 + p % 37));
  return PetscMin(n, 1 + draw(12));
}

PetscErrorCode ArraysCreate(const char *kind, PetscInt problems, PetscInt least, PetscInt most, MatBatchSharing sharing,
                            Arrays *A)
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
      for (PetscInt k = 0; k < len; k++)
        mark[len == n ? k : (!strcmp(kind, "band") ? PetscMin(n - 1, PetscMax(0, r - 2 + k)) : draw(n))] = stamp;
      if (at + n > room || !A->j) {
        while (at + n > room) room *= 2;
        PetscCall(PetscRealloc(room * sizeof(*A->j), &A->j));
      }
      for (PetscInt c = strcmp(kind, "band") ? 0 : PetscMax(0, r - 2);
           c < (strcmp(kind, "band") ? n : PetscMin(n, r + 3)); c++) {
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

PetscErrorCode VecFill(Vec x)
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

PetscErrorCode ChangeValues(Mat A, Arrays *a, PetscInt problem)
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

/* ---------------------------------------------------------------- products */

/* Compares y with ref; bound is |z| + |A||x|, row by row */
PetscErrorCode Compare(Vec y, Vec ref, Vec bound, const char *what)
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
    const PetscReal off = PetscAbsScalar(a[k] - b[k]),
                    /* the longest rows have more than 300 entries */
        may = PetscRealPart(c[k]) * 400 * PETSC_MACHINE_EPSILON;

    if (!(off <= may) && (where < 0 || off - may > worst)) {
      worst = off - may;
      where = k;
    }
  }
  if (where >= 0)
    PetscCall(PetscSNPrintf(
        text, sizeof(text), "%s, local row %" PetscInt_FMT " of %" PetscInt_FMT ": %g%+gi, AIJ %g%+gi, bound %g", what,
        where, n, (double)PetscRealPart(a[where]), (double)PetscImaginaryPart(a[where]),
        (double)PetscRealPart(b[where]), (double)PetscImaginaryPart(b[where]), (double)PetscRealPart(c[where])));
  PetscCall(VecRestoreArrayRead(bound, &c));
  PetscCall(VecRestoreArrayRead(ref, &b));
  PetscCall(VecRestoreArrayRead(y, &a));
  Check(where < 0, text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Apply(Mat A, Op op, Vec x, Vec z, Vec y)
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

PetscErrorCode Same(Vec a, Vec b, const char *what)
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
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s: local row %" PetscInt_FMT " of %" PetscInt_FMT ": %g and %g", what,
                            k - 1, n, (double)PetscRealPart(x[k - 1]), (double)PetscRealPart(y[k - 1])));
  PetscCall(VecRestoreArrayRead(b, &y));
  PetscCall(VecRestoreArrayRead(a, &x));
  Check(same, text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Compares all products of A with those of B, which is AIJ; bound is |A|. The vectors have the given type */
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
      PetscCall(PetscSNPrintf(what, sizeof(what), "%s%s, %s vectors, %s", names[op],
                              add == 0 ? "" : (add == 1 ? " add" : " add in place"), type, when));
      PetscCall(Apply(B, op, h[0], add ? h[1] : NULL, ref));
      if (add == 1) { /* add |z| to the bound */
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

PetscErrorCode AllProducts(Mat A, const Arrays *a, const char *when)
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

/* Infinite values of x must not reach rows without an entry in their columns: one value, then those of every second
   problem */
PetscErrorCode Infinite(Mat A, const Arrays *a)
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
