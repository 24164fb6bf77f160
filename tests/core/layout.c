/* The stored arrays: every entry once, in its place; as much padding as the statistics report; slices with the user's
   parameters */
#include "common.h"
#include "reference.h"

typedef struct {
  const Matrix *A;
  const char   *text;
  PetscInt     *seen; /* how often each entry of the CSR matrix was visited */
  PetscInt64    entries, padding;
  PetscInt      diagonal; /* padding may repeat a value if it is finite */
} Census;

static void Count(void *ctx, PetscInt row, PetscInt col, PetscScalar value)
{
  Census       *C = (Census *)ctx;
  const Matrix *A = C->A;

  if (row < 0) {
    C->padding++;
    Expect(C->diagonal ? !PetscIsInfOrNanScalar(value) : value == (PetscScalar)0, "%s, %s: padding %g", A->name,
           C->text, (double)PetscRealPart(value));
    Expect(C->diagonal || (col >= 0 && col < A->n), "%s, %s: padding reads column %d", A->name, C->text, (int)col);
    return;
  }
  C->entries++;
  if (row >= A->m) {
    Expect(row < A->m, "%s, %s: row %d", A->name, C->text, (int)row);
    return;
  }
  for (PetscInt k = A->i[row]; k < A->i[row + 1]; k++) { /* a column can occur twice */
    if (A->j[k] == col && A->a[k] == value && !C->seen[k]) {
      C->seen[k]++;
      return;
    }
  }
  Expect(PETSC_FALSE, "%s, %s: no entry %g at %d, %d that was not stored before", A->name, C->text,
         (double)PetscRealPart(value), (int)row, (int)col);
}

/* Indices are 16-bit integers if they fit */
static PetscErrorCode CheckNarrow(PetscInt distance)
{
  enum { ROWS = 21, LENGTH = 4 };
  PetscInt      i[ROWS + 1] = {0}, j[ROWS * LENGTH];
  PetscScalar   a[ROWS * LENGTH], *x, y[ROWS];
  const SpMVCSR csr = {ROWS, distance + 200, i, j, a};
  SELLPParams   p;
  SpMVStore     B;

  PetscFunctionBegin;
  for (int r = 0; r < ROWS; r++) {
    const PetscInt columns[LENGTH] = {100, 120 + 3 * r, 100 + distance - r - 1, 100 + distance};

    i[r + 1] = i[r] + LENGTH;
    for (int k = 0; k < LENGTH; k++) {
      j[i[r] + k] = columns[k];
      a[i[r] + k] = (PetscScalar)(PetscReal)(r + 2 * k + 1);
    }
  }
  SELLPParamsDefault(&p);
  p.common.compress = 0;
  p.common.kernel   = SPMV_KERNEL_SLICES;
  PetscCall(SELLPSetUp(&csr, &p, &B));
  PetscCall(SpMVStoreFill(B, &csr));
  Expect(B->nruns == 1 && B->runs[0].kind == (distance < 65536 ? SPMV_RUN_NARROW : SPMV_RUN_GATHER), "distance %d",
         (int)distance);
  PetscCall(PetscCalloc1(csr.n, &x));
  for (int q = 0; q < ROWS * LENGTH; q++) x[j[q]] = (PetscScalar)(PetscReal)(j[q] % 64);
  SpMVStoreMult(B, x, y);
  for (int r = 0; r < ROWS; r++) {
    PetscScalar sum = 0;

    for (PetscInt k = i[r]; k < i[r + 1]; k++) sum += a[k] * x[j[k]];
    Expect(y[r] == sum, "distance %d: row %d", (int)distance, r);
  }
  PetscCall(PetscFree(x));
  PetscCall(SpMVStoreDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  SpMVTuned.distinct_bytes = 0;
  SpMVTuned.narrow_bytes   = 0;
  PetscCall(CheckNarrow(65535));
  PetscCall(CheckNarrow(65536));
  for (int k = 0; k < MATRICES; k++) {
    Matrix A;

    PetscCall(MatrixGet(k, &A));
    for (int f = 0; f < FormatCount(); f++) {
      const SpMVCSR csr = {A.m, A.n, A.i, A.j, A.a};
      Format        F;
      SpMVStore     B;
      SpMVStats     S;
      Census        C;

      if (!FormatGet(f, A.m, &F)) continue;
      PetscCall(FormatSetUp(&F, &csr, &B));
      PetscCall(SpMVStoreFill(B, &csr));
      SpMVStoreGetStats(B, &S);
      if (SpMVStoreUsesParent(B)) {
        Expect(!strcmp(S.kernel, "aij") && S.stored == 0 && S.bytes == 0, "%s, %s", A.name, F.text);
        PetscCall(SpMVStoreDestroy(&B));
        continue;
      }
      C = (Census){&A, F.text, NULL, 0, 0, S.diagonal > 0};
      PetscCall(PetscCalloc1(A.i[A.m] + 1, &C.seen));
      SpMVStoreVisit(B, Count, &C);
      for (PetscInt r = 0; r < A.m; r++)
        for (PetscInt q = A.i[r]; q < A.i[r + 1]; q++)
          Expect(C.seen[q] == 1, "%s, %s: entry %d, %d is stored %d times", A.name, F.text, (int)r, (int)A.j[q],
                 (int)C.seen[q]);
      Expect(C.entries == A.i[A.m] && S.nonzeros == A.i[A.m], "%s, %s: %ld entries", A.name, F.text, (long)C.entries);
      Expect(C.entries + C.padding == S.stored, "%s, %s: %ld + %ld stored, not %ld", A.name, F.text, (long)C.entries,
             (long)C.padding, (long)S.stored);
      Expect(S.long_stored <= S.stored && S.bytes > 0 && S.kernel, "%s, %s", A.name, F.text);
      if (!F.evchyb && F.sellp.common.kernel == SPMV_KERNEL_SLICES) Expect(S.long_rows == 0, "%s, %s", A.name, F.text);
      if (F.evchyb && F.evc.common.node == 1) Expect(S.node == 1, "%s, %s", A.name, F.text);
      /* slices in the order of the rows: the paper's SELL-P exactly */
      if (!F.evchyb && !F.sellp.common.compress && F.sellp.sigma == 1 && F.sellp.common.kernel == SPMV_KERNEL_SLICES) {
        PetscInt64 stored = 0, empty = 0;

        for (PetscInt r = 0; r < A.m; r++) empty += A.i[r] == A.i[r + 1];
        for (PetscInt r = 0; r < A.m; r += SPMV_LANES) {
          PetscInt w = 0;

          for (PetscInt q = r; q < PetscMin(A.m, r + SPMV_LANES); q++) w = PetscMax(w, A.i[q + 1] - A.i[q]);
          stored += (w + F.sellp.t - 1) / F.sellp.t * F.sellp.t * SPMV_LANES;
        }
        if (empty <= A.m / 8)
          Expect(stored == S.stored, "%s, %s: %ld stored, not %ld", A.name, F.text, (long)S.stored, (long)stored);
      }
      PetscCall(PetscFree(C.seen));
      PetscCall(SpMVStoreDestroy(&B));
    }
    PetscCall(MatrixDestroy(&A));
  }

  /* the feature of each pattern is detected */
  for (int k = 0; k < MATRICES; k++) {
    Matrix       A;
    SELLPParams  s;
    EVCHYBParams e;
    SpMVStore    B[2];

    PetscCall(MatrixGet(k, &A));
    SELLPParamsDefault(&s);
    EVCHYBParamsDefault(&e);
    {
      const SpMVCSR csr = {A.m, A.n, A.i, A.j, A.a};
      SpMVStats     S;

      PetscCall(SELLPSetUp(&csr, &s, &B[0]));
      PetscCall(EVCHYBSetUp(&csr, &e, &B[1]));
      for (int f = 0; f < 2; f++) {
        PetscCall(SpMVStoreFill(B[f], &csr));
        SpMVStoreGetStats(B[f], &S);
        if (A.name[0] == 'n' && A.name[1] == 'o' && S.stored)
          Expect(S.node == A.name[9] - '0', "%s, format %d: nodes of %d", A.name, f, (int)S.node);
        if (strstr(A.name, "points") && f == 0)
          Expect(S.diagonal == S.slices || S.diagonal >= S.slices / 2, "%s: %ld of %ld slices by diagonals", A.name,
                 (long)S.diagonal, (long)S.slices);
        if (strstr(A.name, "points, constant") || strstr(A.name, "tridiagonal, constant"))
          Expect(S.distinct > 0 && S.distinct <= 16, "%s: %ld distinct steps", A.name, (long)S.distinct);
        if (!strcmp(A.name, "one dense row"))
          Expect(S.long_rows >= 1 && S.stored < S.nonzeros + S.nonzeros / 2 + 512, "%s, format %d: %ld stored of %ld",
                 A.name, f, (long)S.stored, (long)S.nonzeros);
        PetscCall(SpMVStoreDestroy(&B[f]));
      }
    }
    PetscCall(MatrixDestroy(&A));
  }
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
