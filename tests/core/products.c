/* Every product of every format, with every instruction set of this processor, compared with a loop over the CSR arrays
   */
#include "common.h"
#include "core/spmvimpl.h"
#if SPMV_HAVE_X86
  #include <cpuid.h>
#endif

/* n scalars between two inaccessible pages, adjacent to the first or (back) to the second page */
typedef struct {
  char        *map;
  size_t       size;
  PetscScalar *v;
} Guarded;

static void GuardedCreate(PetscInt n, PetscBool back, Guarded *G)
{
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)n * sizeof(PetscScalar),
               inner = (bytes + page - 1) / page * page;

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

/* y = A x, A' x and conj(A)' x, each alone and added to z */
enum { MULT, MULT_ADD, TRANSPOSE, TRANSPOSE_ADD, HERMITIAN, HERMITIAN_ADD, PRODUCTS };

/* Vectors to multiply with, and the products of CSRProduct(): computed once for a matrix and its values, and used for
   all formats */
typedef struct {
  PetscScalar *x, *xt, *z; /* n, m and the larger of both */
  PetscScalar *y[PRODUCTS];
  PetscReal   *allowed[PRODUCTS]; /* allowed error of each row */
} Expected;

static void Draw(PetscInt n, PetscBool wild, PetscScalar v[])
{
  for (PetscInt k = 0; k < n; k++)
    v[k] = wild && !draw(12) ? (draw(2) ? INFINITY : (draw(2) ? -INFINITY : NAN)) : number();
}

static PetscErrorCode ExpectedCreate(const Matrix *A, PetscBool wild, Expected *E)
{
  const PetscInt big = PetscMax(A->m, A->n);

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(A->n, &E->x, A->m, &E->xt, big, &E->z));
  Draw(A->n, wild, E->x);
  Draw(A->m, wild, E->xt);
  Draw(big, PETSC_FALSE, E->z);
  for (int p = 0; p < PRODUCTS; p++) {
    const PetscBool transpose = p >= TRANSPOSE ? PETSC_TRUE : PETSC_FALSE;

    PetscCall(PetscMalloc2(big, &E->y[p], big, &E->allowed[p]));
    PetscCall(CSRProduct(A, transpose, p >= HERMITIAN ? PETSC_TRUE : PETSC_FALSE, transpose ? E->xt : E->x,
                         p % 2 ? E->z : NULL, E->y[p], E->allowed[p]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ExpectedDestroy(Expected *E)
{
  PetscFunctionBegin;
  for (int p = 0; p < PRODUCTS; p++) PetscCall(PetscFree2(E->y[p], E->allowed[p]));
  PetscCall(PetscFree3(E->x, E->xt, E->z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Compare(const char *what, const Matrix *A, const Format *F, PetscInt n, const PetscScalar *y,
                    const PetscScalar *expect, const PetscReal *allowed)
{
  for (PetscInt r = 0; r < n; r++) {
    if (PetscIsInfOrNanScalar(expect[r])) {
#if defined(PETSC_USE_COMPLEX) /* which part is NaN depends on the compiler's multiplication */
      Expect(PetscIsInfOrNanScalar(y[r]), "%s, %s, %s: %s: row %d", A->name, F->text, SpMVGetISAName(), what, (int)r);
#else
      Expect(PetscIsNanScalar(expect[r]) ? PetscIsNanScalar(y[r]) : y[r] == expect[r],
             "%s, %s, %s: %s: row %d: %g, not %g", A->name, F->text, SpMVGetISAName(), what, (int)r, (double)y[r],
             (double)expect[r]);
#endif
    } else {
      Expect(PetscAbsScalar(y[r] - expect[r]) <= allowed[r], "%s, %s, %s: %s: row %d: off by %g, allowed %g", A->name,
             F->text, SpMVGetISAName(), what, (int)r, (double)PetscAbsScalar(y[r] - expect[r]), (double)allowed[r]);
    }
  }
}

/* Whether the upper halves of AVX registers are in use, which makes code for SSE slow; PETSC_FALSE if the processor
   cannot report it */
static PetscBool UpperHalvesInUse(void)
{
#if SPMV_HAVE_X86
  static PetscBool asked = PETSC_FALSE, reports = PETSC_FALSE;
  unsigned         a, b, c, d;

  if (!asked) {
    const PetscBool xgetbv = (__get_cpuid(1, &a, &b, &c, &d) && (c >> 27 & 1)) ? PETSC_TRUE : PETSC_FALSE;

    /* what is in use, with ECX = 1 */
    reports = (xgetbv && __get_cpuid_count(13, 1, &a, &b, &c, &d) && (a >> 2 & 1)) ? PETSC_TRUE : PETSC_FALSE;
    asked   = PETSC_TRUE;
  }
  if (reports) {
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
    return (a & 0x44) ? PETSC_TRUE : PETSC_FALSE; /* upper halves of 256 bits, and of 512 */
  }
#endif
  return PETSC_FALSE;
}

#define CheckRegisters(what)                                                                                      \
  Expect(!UpperHalvesInUse(), "%s, %s, %s: %s leaves the upper halves of AVX registers in use", A->name, F->text, \
         SpMVGetISAName(), what)

static void Check(const Matrix *A, const Format *F, SpMVStore B, PetscBool back, const Expected *E)
{
  const PetscInt m = A->m, n = A->n;
  Guarded        x, y, xt, yt;

  GuardedCreate(n, back, &x);
  GuardedCreate(m, back, &y);
  GuardedCreate(m, back, &xt);
  GuardedCreate(n, back, &yt);
#define Fill(to, from, n) \
  for (PetscInt k = 0; k < (n); k++) (to)[k] = (from)
  Fill(x.v, E->x[k], n);
  Fill(xt.v, E->xt[k], m);

  Fill(y.v, (PetscScalar)1e30, m);
  SpMVStoreMult(B, x.v, y.v);
  CheckRegisters("y = A x");
  Compare("y = A x", A, F, m, y.v, E->y[MULT], E->allowed[MULT]);

  Fill(y.v, (PetscScalar)1e30, m);
  SpMVStoreMultAdd(B, x.v, E->z, y.v);
  CheckRegisters("y = z + A x");
  Compare("y = z + A x", A, F, m, y.v, E->y[MULT_ADD], E->allowed[MULT_ADD]);
  Fill(y.v, E->z[k], m);
  SpMVStoreMultAdd(B, x.v, y.v, y.v);
  Compare("y = y + A x", A, F, m, y.v, E->y[MULT_ADD], E->allowed[MULT_ADD]);

  for (int conjugate = 0; conjugate < 2; conjugate++) {
    const int p = conjugate ? HERMITIAN : TRANSPOSE, add = p + 1;

    Fill(yt.v, (PetscScalar)1e30, n);
    SpMVStoreMultTranspose(B, (PetscBool)conjugate, xt.v, NULL, yt.v);
    CheckRegisters("y = A' x");
    Compare("y = A' x", A, F, n, yt.v, E->y[p], E->allowed[p]);
    Fill(yt.v, (PetscScalar)1e30, n);
    SpMVStoreMultTranspose(B, (PetscBool)conjugate, xt.v, E->z, yt.v);
    Compare("y = z + A' x", A, F, n, yt.v, E->y[add], E->allowed[add]);
    Fill(yt.v, E->z[k], n);
    SpMVStoreMultTranspose(B, (PetscBool)conjugate, xt.v, yt.v, yt.v);
    Compare("y = y + A' x", A, F, n, yt.v, E->y[add], E->allowed[add]);
  }
  GuardedDestroy(&x);
  GuardedDestroy(&y);
  GuardedDestroy(&xt);
  GuardedDestroy(&yt);
}

/* The same x in the first and the last of `count` columns, with Inf and NaN in between */
static void CheckByRows(const Matrix *A, const Format *F, PetscInt count, const Expected *E)
{
  const PetscInt m = A->m, n = A->n, ldx = n + 3, ldy = m + 2;
  const SpMVCSR  csr = {A->m, A->n, A->i, A->j, A->a};
  PetscScalar   *x, *y;

  (void)PetscMalloc2(count * ldx, &x, count * ldy, &y);
  for (PetscInt k = 0; k < count * ldx; k++) x[k] = k % 3 ? NAN : INFINITY;
  for (PetscInt k = 0; k < n; k++) x[k] = x[(count - 1) * ldx + k] = E->x[k];
  for (PetscInt k = 0; k < count * ldy; k++) y[k] = (PetscScalar)1e30;
  Expect(!SpMVCSRMultColumns(&csr, count, x, ldx, y, ldy), "%s, %s: by rows", A->name, F->text);
  CheckRegisters("columns by rows");
  Compare("first column by rows", A, F, m, y, E->y[MULT], E->allowed[MULT]);
  Compare("last column by rows", A, F, m, y + (count - 1) * ldy, E->y[MULT], E->allowed[MULT]);
  for (PetscInt q = 0; q < count; q++) {
    for (PetscInt k = m; k < ldy; k++)
      Expect(y[q * ldy + k] == (PetscScalar)1e30, "%s, %s: after column %d by rows", A->name, F->text, (int)q);
  }
  (void)PetscFree2(x, y);
}

/* Dense matrices in longer arrays, in pieces of any size: each column has the bits of a product with that column alone
   */
static void CheckColumns(const Matrix *A, const Format *F, SpMVStore B, const Expected *E)
{
  enum { COLUMNS = 3, MORE = 5 };
  const PetscInt   m = A->m, n = A->n, ldx = n + MORE, ldy = m + MORE;
  const PetscInt64 bytes = SpMVTuned.columns_bytes;
  PetscScalar     *x, *y, *z, *alone;

  (void)PetscMalloc4(COLUMNS * ldx, &x, COLUMNS * ldy, &y, COLUMNS * ldy, &z, m + 1, &alone);
  for (PetscInt q = 0; q < COLUMNS; q++) {
    for (PetscInt k = 0; k < ldx; k++)
      x[q * ldx + k] = k < n && !q ? E->x[k] : (PetscScalar)(PetscReal)(k < n ? (k * 7 + q) % 13 - 6 : NAN);
    for (PetscInt k = 0; k < ldy; k++) z[q * ldy + k] = (PetscScalar)(PetscReal)((k * 5 + q) % 11 - 5);
  }
  SpMVTuned.columns_bytes = 1 + (PetscInt64)draw(5000);
  for (int how = 0; how < 3; how++) { /* A x, z + A x, z = z + A x */
    for (PetscInt k = 0; k < COLUMNS * ldy; k++) y[k] = how == 2 ? z[k] : (PetscScalar)1e30;
    SpMVStoreMultColumns(B, COLUMNS, x, ldx, how == 0 ? NULL : how == 1 ? z : y, ldy, y, ldy);
    CheckRegisters("several columns");
    for (PetscInt q = 0; q < COLUMNS; q++) {
      for (PetscInt k = 0; k <= m; k++) alone[k] = (PetscScalar)1e30;
      if (how)
        SpMVStoreMultAdd(B, x + q * ldx, z + q * ldy, alone);
      else
        SpMVStoreMult(B, x + q * ldx, alone);
      Expect(!m || !memcmp(alone, y + q * ldy, (size_t)m * sizeof(*y)), "%s, %s, %s: column %d of several", A->name,
             F->text, SpMVGetISAName(), (int)q);
      for (PetscInt k = m; k < ldy; k++)
        Expect(y[q * ldy + k] == (how == 2 ? z[q * ldy + k] : (PetscScalar)1e30), "%s, %s, %s: after column %d",
               A->name, F->text, SpMVGetISAName(), (int)q);
    }
  }
  for (PetscInt count = 1; count <= 2 * SPMV_LANES + 1; count += SPMV_LANES - 1) CheckByRows(A, F, count, E);
  SpMVTuned.columns_bytes = bytes;
  (void)PetscFree4(x, y, z, alone);
}

/* A matrix is tested with its own values, with random ones, and with partly constant and infinite ones */
enum { OWN, RANDOM, INFINITE, VALUES };

int main(int argc, char **argv)
{
  static const SpMVISA isas[]    = {SPMV_ISA_PORTABLE, SPMV_ISA_AVX2, SPMV_ISA_AVX512, SPMV_ISA_AVX512_GATHER};
  static const int     refills[] = {OWN, RANDOM, INFINITE, OWN};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (int k = 0; k < MATRICES; k++) {
    Matrix   A, as[VALUES];
    Expected expected[VALUES], wild;

    PetscCall(MatrixGet(k, &A));
    for (int v = 0; v < VALUES; v++) {
      as[v] = A;
      if (v != OWN) {
        PetscCall(PetscMalloc1(A.i[A.m] + 1, &as[v].a));
        for (PetscInt q = 0; q < A.i[A.m]; q++) {
          as[v].a[q] = v == RANDOM ? number() : (PetscScalar)(2 + A.j[q] % 2);
          if (v == INFINITE && A.i[A.m] > 10 && q % 61 == 7) as[v].a[q] = INFINITY;
        }
      }
      PetscCall(ExpectedCreate(&as[v], PETSC_FALSE, &expected[v]));
    }
    PetscCall(ExpectedCreate(&A, PETSC_TRUE, &wild));
    for (int f = 0; f < FormatCount(); f++) {
      const SpMVCSR csr = {A.m, A.n, A.i, A.j, A.a};
      Format        F;
      SpMVStore     B;

      if (!FormatGet(f, A.m, &F)) continue;
      SpMVTuned.narrow_bytes = f % 5 ? 0 : 2 << 20;
      PetscCall(FormatSetUp(&F, &csr, &B));
      SpMVTuned.distinct_bytes = f % 7 ? 0 : 512 * 1024;
      SpMVTuned.stream_bytes   = f % 3 ? 0 : 8 << 20;
      for (int refill = 0; refill < 4; refill++) {
        const int     v   = refills[refill];
        const SpMVCSR now = {A.m, A.n, A.i, A.j, as[v].a};

        PetscCall(SpMVStoreFill(B, &now));
        Expect(!SpMVStoreUsesParent(B) || (F.evchyb ? F.evc.common.kernel : F.sellp.common.kernel) == SPMV_KERNEL_AUTO,
               "%s, %s", A.name, F.text);
        if (SpMVStoreUsesParent(B)) continue;
        for (int s = 0; s < 4; s++) {
          if (refill && s != (f + refill) % 4) continue; /* one instruction set for each refill is enough */
          if (!SpMVSetISA(isas[s])) continue;
          Check(&as[v], &F, B, (PetscBool)(refill % 2), &expected[v]);
          if (refill == 0) Check(&as[v], &F, B, PETSC_FALSE, &wild);
          CheckColumns(&as[v], &F, B, &expected[v]);
        }
      }
      PetscCall(SpMVStoreDestroy(&B));
      Expect(!B, "%s, %s", A.name, F.text);
    }
    for (int v = 0; v < VALUES; v++) {
      PetscCall(ExpectedDestroy(&expected[v]));
      if (v != OWN) PetscCall(PetscFree(as[v].a));
    }
    PetscCall(ExpectedDestroy(&wild));
    PetscCall(MatrixDestroy(&A));
  }
  PetscCall(PetscFinalize());
  if (failures) (void)fprintf(stderr, "%d failures\n", failures);
  return failures ? 1 : 0;
}
