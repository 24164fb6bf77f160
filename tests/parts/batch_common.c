/* Random batches, and products compared with those of AIJ */
#include "batch.h"
#include "random.h"

PetscInt    checks = 0, failures = 0;
PetscBool   device   = PETSC_FALSE;
const char *now_case = "";

PetscErrorCode Fail(const char *what)
{
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (failures++ < 40) PetscCall(PetscPrintf(PETSC_COMM_SELF, "FAILED: [%d] %s: %s\n", rank, now_case, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void Reseed(PetscInt k)
{
  PetscMPIInt rank;

  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  seed = 88172645463325252u + 77 * (uint64_t)k + (uint64_t)rank;
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
  const PetscInt patterns = sharing ? PetscMin(1, problems) : problems;
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
  A->values = (PetscInt64)at * (A->sharing ? problems : 1);
  PetscCall(PetscMalloc1(A->values, &A->a));
  for (PetscInt64 k = 0; k < A->values; k++) A->a[k] = number();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ArraysDestroy(Arrays *A)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree(A->sizes));
  PetscCall(PetscFree(A->i));
  PetscCall(PetscFree(A->j));
  PetscCall(PetscFree(A->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BatchCreate(MPI_Comm comm, const Arrays *a, PetscCopyMode mode, Mat *A)
{
  const PetscInt rows = a->sharing ? a->sizes[0] : a->rows;
  PetscInt      *i, *j;
  PetscScalar   *v;

  PetscFunctionBeginUser;
  if (mode == PETSC_OWN_POINTER) {
    PetscCall(PetscMalloc1(rows + 1, &i));
    PetscCall(PetscMalloc1(a->i[rows], &j));
    PetscCall(PetscMalloc1(a->values, &v));
    PetscCall(PetscArraycpy(i, a->i, rows + 1));
    PetscCall(PetscArraycpy(j, a->j, a->i[rows]));
    PetscCall(PetscArraycpy(v, a->a, a->values));
    PetscCall(MatCreateBatch(comm, a->problems, a->sizes, i, j, v, a->sharing, mode, A));
  } else if (a->problems)
    PetscCall(MatCreateBatch(comm, a->problems, a->sizes, a->i, a->j, a->a, a->sharing, mode, A));
  else /* the arrays may be NULL */
    PetscCall(MatCreateBatch(comm, 0, NULL, NULL, NULL, NULL, a->sharing, mode, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode AIJCreate(MPI_Comm comm, const Arrays *A, Mat *B, Mat *bound)
{
  PetscInt    *i, *j, shift, row = 0, at = 0, first = 0;
  PetscInt64   nz = A->sharing ? (PetscInt64)A->problems * A->i[A->sizes[0]] : (PetscInt64)A->i[A->rows];
  PetscScalar *v;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Scan(&A->rows, &shift, 1, MPIU_INT, MPI_SUM, comm));
  shift -= A->rows;
  PetscCall(PetscMalloc3(A->rows + 1, &i, (PetscInt)nz + 1, &j, (PetscInt)nz + 1, &v));
  i[0] = 0;
  for (PetscInt p = 0; p < A->problems; p++) {
    const PetscInt    *o = A->i + (A->sharing ? 0 : first), n = A->sizes[p];
    const PetscScalar *a = A->a + (A->sharing ? (PetscInt64)p * A->i[n] : 0);

    for (PetscInt r = 0; r < n; r++) {
      for (PetscInt k = o[r]; k < o[r + 1]; k++, at++) {
        j[at] = shift + first + A->j[k];
        v[at] = a[k];
      }
      i[++row] = at;
    }
    first += n;
  }
  for (int k = 0; k < (bound ? 2 : 1); k++) {
    Mat *M = k ? bound : B;

    PetscCall(MatCreate(comm, M));
    PetscCall(MatSetSizes(*M, A->rows, A->rows, PETSC_DETERMINE, PETSC_DETERMINE));
    PetscCall(MatSetType(*M, MATAIJ));
    for (PetscInt e = 0; k && e < at; e++) v[e] = PetscAbsScalar(v[e]);
    PetscCall(MatSeqAIJSetPreallocationCSR(*M, i, j, v));
    PetscCall(MatMPIAIJSetPreallocationCSR(*M, i, j, v));
  }
  PetscCall(PetscFree3(i, j, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecDraw(Vec x)
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

/* y = A x or A^T x from vectors of a type */
static PetscErrorCode OneProduct(Mat A, Mat B, Mat bound, PetscBool transpose, VecType type, const char *when)
{
  Vec      x, y, hx, ref, b, w;
  PetscInt n, N;
  char     what[128];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %s vectors, %s", transpose ? "transpose" : "mult", type, when));
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(MatGetSize(A, &N, NULL));
  PetscCall(VecCreate(PetscObjectComm((PetscObject)A), &x));
  PetscCall(VecSetSizes(x, n, N));
  PetscCall(VecSetType(x, type));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecDraw(x));
  PetscCall(VecSet(y, (PetscScalar)NAN));
  PetscCall(MatCreateVecs(B, &hx, &ref)); /* on the host */
  PetscCall(VecDuplicate(hx, &w));
  PetscCall(VecDuplicate(hx, &b));
  PetscCall(VecCopy(x, hx));
  PetscCall(VecCopy(x, w));
  PetscCall(VecAbs(w));
  PetscCall(transpose ? MatMultTranspose(B, hx, ref) : MatMult(B, hx, ref));
  PetscCall(transpose ? MatMultTranspose(bound, w, b) : MatMult(bound, w, b));
  PetscCall(transpose ? MatMultTranspose(A, x, y) : MatMult(A, x, y));
  PetscCall(Compare(y, ref, b, what));
  PetscCall(Destroy(&x, &y, &hx, &ref, &b, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Products(Mat A, const Arrays *a, const char *when)
{
  Mat B, bound;

  PetscFunctionBeginUser;
  PetscCall(AIJCreate(PetscObjectComm((PetscObject)A), a, &B, &bound));
  for (int transpose = 0; transpose < 2; transpose++) {
    PetscCall(OneProduct(A, B, bound, (PetscBool)transpose, VECSTANDARD, when));
#if defined(PETSC_HAVE_CUDA)
    if (device) PetscCall(OneProduct(A, B, bound, (PetscBool)transpose, VECCUDA, when));
#endif
  }
  PetscCall(Destroy(&B, &bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}
