/* Every product of every format, on every instruction set this processor has, against a plain CSR loop */
#include "common.h"

/* n scalars between two pages that must not be touched; at the front or at the back of what lies between */
typedef struct {
  char        *map;
  size_t       size;
  PetscScalar *v;
} Guarded;

static void GuardedCreate(PetscInt n, PetscBool back, Guarded *G)
{
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)n * sizeof(PetscScalar), inner = (bytes + page - 1) / page * page;

  G->size = inner + 2 * page;
  G->map  = (char *)mmap(NULL, G->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  (void)mprotect(G->map, page, PROT_NONE);
  (void)mprotect(G->map + page + inner, page, PROT_NONE);
  G->v = (PetscScalar *)(G->map + page + (back ? inner - bytes : 0));
}

static void GuardedDestroy(Guarded *G)
{
  (void)munmap(G->map, G->size);
}

/* y and the sums of absolute values, which scale the error allowed in a row */
static void Loop(const Matrix *A, PetscBool transpose, PetscBool conjugate, const PetscScalar *x, const PetscScalar *z, PetscScalar *y, PetscReal *scale,
                 PetscInt *terms)
{
  const PetscInt rows = transpose ? A->n : A->m;

  for (PetscInt r = 0; r < rows; r++) {
    y[r]     = z ? z[r] : 0;
    scale[r] = z ? PetscAbsScalar(z[r]) : 0;
    terms[r] = 1;
  }
  for (PetscInt r = 0; r < A->m; r++) {
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const PetscInt to = transpose ? A->j[k] : r, from = transpose ? r : A->j[k];

      y[to] += (conjugate ? PetscConj(A->a[k]) : A->a[k]) * x[from];
      scale[to] += PetscAbsScalar(A->a[k]) * PetscAbsScalar(x[from]);
      terms[to]++;
    }
  }
}

static void Compare(const char *what, const Matrix *A, const Format *F, PetscInt n, const PetscScalar *y, const PetscScalar *expect, const PetscReal *scale,
                    const PetscInt *terms)
{
  for (PetscInt r = 0; r < n; r++) {
    if (PetscIsInfOrNanScalar(expect[r])) {
#if defined(PETSC_USE_COMPLEX) /* which part is NaN depends on how the compiler multiplies */
      Expect(PetscIsInfOrNanScalar(y[r]), "%s, %s, %s: %s: row %d", A->name, F->text, SpMVGetISAName(), what, (int)r);
#else
      Expect(PetscIsNanScalar(expect[r]) ? PetscIsNanScalar(y[r]) : y[r] == expect[r], "%s, %s, %s: %s: row %d: %g, not %g", A->name, F->text, SpMVGetISAName(),
             what, (int)r, (double)y[r], (double)expect[r]);
#endif
    } else {
      const PetscReal allowed = terms[r] == 1 ? 0 : 4 * PETSC_MACHINE_EPSILON * (PetscReal)terms[r] * scale[r];

      Expect(PetscAbsScalar(y[r] - expect[r]) <= allowed, "%s, %s, %s: %s: row %d: off by %g, allowed %g", A->name, F->text, SpMVGetISAName(), what, (int)r,
             (double)PetscAbsScalar(y[r] - expect[r]), (double)allowed);
    }
  }
}

static PetscErrorCode Check(const Matrix *A, const Format *F, SpMVBlock B, PetscBool back, PetscBool wild)
{
  const PetscInt m = A->m, n = A->n, big = PetscMax(m, n);
  Guarded        x, y, xt, yt;
  PetscScalar   *z, *expect;
  PetscReal     *scale;
  PetscInt      *terms;

  PetscFunctionBegin;
  GuardedCreate(n, back, &x);
  GuardedCreate(m, back, &y);
  GuardedCreate(m, back, &xt);
  GuardedCreate(n, back, &yt);
  PetscCall(PetscMalloc4(big, &z, big, &expect, big, &scale, big, &terms));
  for (PetscInt k = 0; k < n; k++) x.v[k] = number();
  for (PetscInt k = 0; k < m; k++) xt.v[k] = number();
  for (PetscInt k = 0; k < big; k++) z[k] = number();
  if (wild) {
    for (PetscInt k = 0; k < n; k++)
      if (!draw(12)) x.v[k] = draw(2) ? INFINITY : (draw(2) ? -INFINITY : NAN);
    for (PetscInt k = 0; k < m; k++)
      if (!draw(12)) xt.v[k] = draw(2) ? INFINITY : (draw(2) ? -INFINITY : NAN);
  }
#define Poison(v, n) \
  for (PetscInt k = 0; k < (n); k++) (v)[k] = (PetscScalar)1e30
  Loop(A, PETSC_FALSE, PETSC_FALSE, x.v, NULL, expect, scale, terms);
  Poison(y.v, m);
  SpMVBlockMult(B, x.v, y.v);
  Compare("y = A x", A, F, m, y.v, expect, scale, terms);
  Poison(y.v, m);
  SpMVBlockMultReference(B, x.v, NULL, y.v);
  Compare("reference", A, F, m, y.v, expect, scale, terms);

  Loop(A, PETSC_FALSE, PETSC_FALSE, x.v, z, expect, scale, terms);
  Poison(y.v, m);
  SpMVBlockMultAdd(B, x.v, z, y.v);
  Compare("y = z + A x", A, F, m, y.v, expect, scale, terms);
  for (PetscInt k = 0; k < m; k++) y.v[k] = z[k];
  SpMVBlockMultAdd(B, x.v, y.v, y.v);
  Compare("y = y + A x", A, F, m, y.v, expect, scale, terms);

  for (int conjugate = 0; conjugate < 2; conjugate++) {
    Loop(A, PETSC_TRUE, (PetscBool)conjugate, xt.v, NULL, expect, scale, terms);
    Poison(yt.v, n);
    SpMVBlockMultTranspose(B, (PetscBool)conjugate, xt.v, NULL, yt.v);
    Compare("y = A' x", A, F, n, yt.v, expect, scale, terms);
    Poison(yt.v, n);
    SpMVBlockMultTransposeReference(B, (PetscBool)conjugate, xt.v, NULL, yt.v);
    Compare("reference'", A, F, n, yt.v, expect, scale, terms);
    Loop(A, PETSC_TRUE, (PetscBool)conjugate, xt.v, z, expect, scale, terms);
    Poison(yt.v, n);
    SpMVBlockMultTranspose(B, (PetscBool)conjugate, xt.v, z, yt.v);
    Compare("y = z + A' x", A, F, n, yt.v, expect, scale, terms);
    for (PetscInt k = 0; k < n; k++) yt.v[k] = z[k];
    SpMVBlockMultTranspose(B, (PetscBool)conjugate, xt.v, yt.v, yt.v);
    Compare("y = y + A' x", A, F, n, yt.v, expect, scale, terms);
  }
  PetscCall(PetscFree4(z, expect, scale, terms));
  GuardedDestroy(&x);
  GuardedDestroy(&y);
  GuardedDestroy(&xt);
  GuardedDestroy(&yt);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const SpMVISA isas[] = {SPMV_ISA_PORTABLE, SPMV_ISA_AVX2, SPMV_ISA_AVX512};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int k = 0; k < MATRICES; k++) {
    Matrix A;

    PetscCall(MatrixGet(k, &A));
    for (int f = 0; f < FormatCount(); f++) {
      const SpMVCSR csr = {A.m, A.n, A.i, A.j, A.a};
      Format        F;
      SpMVBlock     B;

      if (!FormatGet(f, A.m, &F)) continue;
      PetscCall(FormatSetUp(&F, &csr, &B));
      SpMVDistinctLeast = f % 7 ? 0 : 512 * 1024;
      for (int refresh = 0; refresh < 4; refresh++) {
        PetscScalar *keep = A.a, *other;

        /* the same pattern with random, partly constant and infinite values; last the first ones again */
        PetscCall(PetscMalloc1(A.i[A.m] + 1, &other));
        for (PetscInt q = 0; q < A.i[A.m]; q++) {
          other[q] = refresh == 1 ? number() : (PetscScalar)(2 + A.j[q] % 2);
          if (refresh == 2 && A.i[A.m] > 10 && q % 61 == 7) other[q] = INFINITY;
        }
        if (refresh == 1 || refresh == 2) A.a = other;
        {
          const SpMVCSR now = {A.m, A.n, A.i, A.j, A.a};

          PetscCall(SpMVBlockFill(B, &now));
        }
        Expect(!SpMVBlockUsesParent(B) || (F.evchyb ? F.evc.kernel : F.sellp.kernel) == SPMV_KERNEL_AUTO, "%s, %s", A.name, F.text);
        for (int s = 0; s < 3; s++) {
          if (refresh && s != (f + refresh) % 3) continue; /* one after the other will do */
          if (!SpMVSetISA(isas[s])) continue;
          if (!SpMVBlockUsesParent(B)) {
            PetscCall(Check(&A, &F, B, (PetscBool)(refresh % 2), PETSC_FALSE));
            if (refresh == 0) PetscCall(Check(&A, &F, B, PETSC_FALSE, PETSC_TRUE));
          }
        }
        A.a = keep;
        PetscCall(PetscFree(other));
      }
      PetscCall(SpMVBlockDestroy(&B));
      Expect(!B, "%s, %s", A.name, F.text);
    }
    PetscCall(MatrixDestroy(&A));
  }
  PetscCall(PetscFinalize());
  if (failures) (void)fprintf(stderr, "%d failures\n", failures);
  return failures ? 1 : 0;
}
