/*
  The formats of bench/products/formats, and EVC-HYB's kernel with an operand held (bench/papers/held.cu), on the matrices
  of common.h and of tests/matrices. It checks the stored entries, and the products on the host and on a GPU. Run it as
  `core-formats`; under compute-sanitizer as `core-formats quick`, or as `core-formats race` with few matrices, because
  racecheck is slow.
*/
#include "common.h"
#include "../../bench/products/formats/formats.h"
#if defined(PETSCSPMV_HAVE_CUDA)
  #include <petscdevice_cuda.h>
  #include "../../bench/papers/held.h"
#endif
#include "files.h"

/* The baselines, with parameters for which small matrices reach all branches */
static const struct {
  const char *name;
  PetscInt    parameter[2];
} Variants[] = {{"hyb", {0, 0}},       {"sell-32", {32, 5}},  {"sell-8-64", {5, 12}}, {"sell-8-64", {1, 1}},
                {"csr5", {32, 1}},     {"csr5", {32, 3}},     {"csr5", {32, 32}},     {"csr5-8-16", {1, 1}},
                {"csr5-8-16", {4, 3}}, {"csr5-8-16", {8, 32}}};

static PetscBool device   = PETSC_FALSE;
static int       products = 0;
#if defined(PETSCSPMV_HAVE_CUDA)
static cudaStream_t stream;
#endif

typedef struct {
  const Matrix *A;
  PetscScalar  *x, *y, *ref;
  PetscReal    *allowed; /* allowed error of each row */
#if defined(PETSCSPMV_HAVE_CUDA)
  SpMVCudaCSR  csr;
  PetscScalar *dx, *dy;
#endif
} Problem;

static void Poison(Problem *P)
{
  for (PetscInt r = 0; r <= P->A->m; r++) P->y[r] = (PetscScalar)NAN;
}

static void Compare(Problem *P, const char *format, const char *what)
{
  const Matrix *A = P->A;

  products++;
  for (PetscInt r = 0; r < A->m; r++) {
    if (PetscIsInfOrNanScalar(P->ref[r]))
      Expect(PetscIsInfOrNanScalar(P->y[r]), "%s, %s, %s: row %d is finite", A->name, format, what, (int)r);
    else
      Expect(PetscAbsScalar(P->y[r] - P->ref[r]) <= P->allowed[r], "%s, %s, %s: row %d: off by %g, allowed %g", A->name,
             format, what, (int)r, (double)PetscAbsScalar(P->y[r] - P->ref[r]), (double)P->allowed[r]);
  }
  Expect(PetscIsNanScalar(P->y[A->m]), "%s, %s, %s: wrote beyond y", A->name, format, what);
}

static void Count(void *ctx, PetscInt row, PetscInt col, PetscScalar value)
{
  Expect(row >= 0 || (col == -1 && value == (PetscScalar)0.0), "padding of column %d", (int)col);
  if (row >= 0) ++*(PetscInt64 *)ctx;
}

static PetscErrorCode Draw(Problem *P, PetscBool wild)
{
  PetscFunctionBegin;
  for (PetscInt c = 0; c < P->A->n; c++)
    P->x[c] = wild && !draw(12) ? (PetscScalar)(draw(2) ? INFINITY : NAN) : number();
  PetscCall(CSRProduct(P->A, PETSC_FALSE, PETSC_FALSE, P->x, NULL, P->ref, P->allowed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSCSPMV_HAVE_CUDA)
static PetscErrorCode ToDevice(Problem *P)
{
  PetscFunctionBegin;
  Poison(P);
  PetscCallCUDA(cudaMemcpy(P->dx, P->x, (size_t)P->A->n * sizeof(*P->x), cudaMemcpyHostToDevice));
  PetscCallCUDA(cudaMemcpy(P->dy, P->y, ((size_t)P->A->m + 1) * sizeof(*P->y), cudaMemcpyHostToDevice));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromDevice(Problem *P, const char *format, const char *what)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscCallCUDA(cudaMemcpy(P->y, P->dy, ((size_t)P->A->m + 1) * sizeof(*P->y), cudaMemcpyDeviceToHost));
  Compare(P, format, what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckDevice(Problem *P, const Baseline *B, const Stored *host)
{
  Stored S;

  PetscFunctionBegin;
  PetscCallCUDA(StoredUpload(host, &P->csr, &S, stream));
  for (int k = 0; k < 3; k++) { /* two products with the same x: nothing may be left over from the first one */
    if (k != 1) PetscCall(Draw(P, k == 2));
    PetscCall(ToDevice(P));
    PetscCallCUDA((*B->cuda)(&S, P->dx, P->dy, stream));
    PetscCall(FromDevice(P, B->name, k == 2 ? "device, Inf and NaN" : "device"));
  }
  PetscCallCUDA(StoredRelease(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a held operand, the kernel computes the product of a different matrix or vector; with x loaded in a different
   way, it computes the same product */
static PetscErrorCode CheckHeld(Problem *P)
{
  const Matrix *A = P->A;
  EVCHYBParams  p;

  PetscFunctionBegin;
  EVCHYBParamsDefault(&p);
  for (Held held = HELD_X; held <= LOADED_L2; held++) {
    SpMVCudaStore store;

    PetscCallCUDA(EVCHYBHeldSetUp(held, &P->csr, &p, stream, &store));
    PetscCallCUDA(SpMVCudaFill(store, &P->csr, stream));
    PetscCall(Draw(P, PETSC_FALSE));
    for (PetscInt r = 0; r < A->m; r++) {
      P->ref[r]     = 0.0;
      P->allowed[r] = 0.0;
      for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
        const PetscScalar term =
            held == HELD_X ? A->a[k] : (held <= HELD_BOTH ? P->x[A->j[k]] : A->a[k] * P->x[A->j[k]]);

        P->ref[r] += term;
        P->allowed[r] += PetscAbsScalar(term);
      }
      P->allowed[r] *= 4 * PETSC_MACHINE_EPSILON * (PetscReal)(A->i[r + 1] - A->i[r]);
    }
    PetscCall(ToDevice(P));
    PetscCallCUDA(SpMVCudaMult(store, (SpMVCudaProduct){.x = P->dx, .y = P->dy}, stream));
    PetscCallCUDA(cudaStreamSynchronize(stream));
    if (held != HELD_BOTH)
      PetscCall(FromDevice(P, "EVC-HYB",
                           held == HELD_X
                               ? "x held"
                               : (held == HELD_A ? "A held" : (held == LOADED_L1 ? "x through L1" : "x from L2"))));
    else { /* the number of stored entries of each row */
      PetscCallCUDA(cudaMemcpy(P->y, P->dy, (size_t)A->m * sizeof(*P->y), cudaMemcpyDeviceToHost));
      for (PetscInt r = 0; r < A->m; r++)
        Expect(PetscRealPart(P->y[r]) >= (PetscReal)(A->i[r + 1] - A->i[r]), "%s, both held: row %d: %g", A->name,
               (int)r, (double)PetscRealPart(P->y[r]));
    }
    PetscCallCUDA(SpMVCudaDestroy(&store));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode CheckBaseline(Problem *P, const Baseline *B)
{
  const Matrix *A   = P->A;
  const SpMVCSR csr = {A->m, A->n, A->i, A->j, A->a};
  Stored        S;
  PetscInt64    entries = 0;

  PetscFunctionBegin;
  PetscCall(StoredCreate(B, &csr, &S));
  if (S.stored >= 0) {
    PetscCall(StoredFill(&S, &csr));
    StoredVisit(&S, Count, &entries);
    Expect(entries == A->i[A->m], "%s, %s: %d entries of %d", A->name, B->name, (int)entries, (int)A->i[A->m]);
    Expect(StoredBytes(&S) >= (double)S.stored * (double)(sizeof(PetscScalar) + sizeof(PetscInt)), "%s, %s: bytes",
           A->name, B->name);
    for (int wild = 0; wild < 2; wild++) {
      PetscCall(Draw(P, (PetscBool)wild));
      Poison(P);
      StoredReference(&S, P->x, P->y);
      Compare(P, B->name, "what is stored");
      for (int again = 0; again < 2 && B->mult; again++) {
        Poison(P);
        (*B->mult)(&S, P->x, P->y);
        Compare(P, B->name, wild ? "host, Inf and NaN" : "host");
      }
    }
#if defined(PETSCSPMV_HAVE_CUDA)
    if (device && B->cuda) PetscCall(CheckDevice(P, B, &S));
#endif
  }
  PetscCall(StoredDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckMatrix(const Matrix *A)
{
  Problem P;

  PetscFunctionBegin;
  P.A = A;
  PetscCall(PetscMalloc4(A->n, &P.x, A->m + 1, &P.y, A->m, &P.ref, A->m, &P.allowed));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (device) {
    const void  *host[3]  = {A->i, A->j, A->a};
    const size_t bytes[3] = {((size_t)A->m + 1) * sizeof(PetscInt), (size_t)A->i[A->m] * sizeof(PetscInt),
                             (size_t)A->i[A->m] * sizeof(PetscScalar)};
    void        *on[3];

    for (int k = 0; k < 3; k++) {
      PetscCallCUDA(cudaMalloc(&on[k], bytes[k] + 16));
      PetscCallCUDA(cudaMemcpy(on[k], host[k], bytes[k], cudaMemcpyHostToDevice));
    }
    P.csr.m           = A->m;
    P.csr.n           = A->n;
    P.csr.nnz         = A->i[A->m];
    P.csr.i           = on[0];
    P.csr.j           = on[1];
    P.csr.a           = (const PetscScalar *)on[2];
    P.csr.index_bytes = (int)sizeof(PetscInt);
    PetscCallCUDA(cudaMalloc((void **)&P.dx, ((size_t)A->n + 1) * sizeof(PetscScalar)));
    PetscCallCUDA(cudaMalloc((void **)&P.dy, ((size_t)A->m + 1) * sizeof(PetscScalar)));
  }
#endif
  for (int k = 0; k < BaselineCount; k++) PetscCall(CheckBaseline(&P, &Baselines[k]));
  for (size_t v = 0; v < PETSC_STATIC_ARRAY_LENGTH(Variants); v++) {
    for (int k = 0; k < BaselineCount; k++) {
      Baseline B = Baselines[k];

      if (strcmp(B.name, Variants[v].name)) continue;
      B.parameter[0] = Variants[v].parameter[0];
      B.parameter[1] = Variants[v].parameter[1];
      PetscCall(CheckBaseline(&P, &B));
    }
  }
#if defined(PETSCSPMV_HAVE_CUDA)
  if (device) {
    PetscCall(CheckHeld(&P));
    PetscCallCUDA(cudaFree((void *)P.csr.i));
    PetscCallCUDA(cudaFree((void *)P.csr.j));
    PetscCallCUDA(cudaFree((void *)P.csr.a));
    PetscCallCUDA(cudaFree(P.dx));
    PetscCallCUDA(cudaFree(P.dy));
  }
#endif
  PetscCall(PetscFree4(P.x, P.y, P.ref, P.allowed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscBool gaps(PetscInt r, PetscInt c, PetscInt p)
{
  return mix((uint32_t)r, 3u) % 3 && (!(r % p) || c < 3 || sparse(r, c, 20)) ? PETSC_TRUE : PETSC_FALSE;
}

/* Many tiles and slices, rows in several tiles, empty rows between and after them */
static const struct {
  const char *name;
  PetscInt    m, n;
  Pattern     has;
  PetscInt    p;
} Larger[] = {{"power law, larger", 2100, 1900, power, 0},
              {"long and empty rows", 1500, 1300, gaps, 401},
              {"mostly empty, larger", 9000, 300, mostly_empty, 19},
              {"lengths, larger", 2100, 200, lengths, 40},
              {"one row", 1, 6000, always, 0},
              {"nodes of 4, larger", 800, 800, node_random, 4}};

int main(int argc, char **argv)
{
  const PetscBool quick = (PetscBool)(argc > 1 && !strcmp(argv[1], "quick")),
                  race  = (PetscBool)(argc > 1 && !strcmp(argv[1], "race"));
  const char *folder    = getenv("MATRICES_DIR");
  Matrix      A;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
#if defined(PETSCSPMV_HAVE_CUDA)
  {
    int devices = 0;

    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices) {
      PetscCallCUDA(cudaStreamCreate(&stream));
      device = PETSC_TRUE;
    }
  }
#endif
  for (int k = 0; k < MATRICES; k++) {
    if (race && strcmp(matrices[k].name, "power law") && strcmp(matrices[k].name, "rows around 32 and 128")) continue;
    if (quick && k % 3) continue;
    PetscCall(MatrixGet(k, &A));
    PetscCall(CheckMatrix(&A));
    PetscCall(MatrixDestroy(&A));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(Larger) && !race; k++) {
    PetscCall(
        MatrixBuild(Larger[k].name, Larger[k].m, Larger[k].n, Larger[k].has, Larger[k].p, PETSC_FALSE, ASCENDING, &A));
    PetscCall(CheckMatrix(&A));
    PetscCall(MatrixDestroy(&A));
  }
  if (folder && !quick && !race) PetscCall(CheckFiles(folder, CheckMatrix));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (device) PetscCallCUDA(cudaStreamDestroy(stream));
#endif
  if (!failures)
    PetscCall(
        PetscPrintf(PETSC_COMM_SELF, "%d checks passed, on the host%s\n", products, device ? " and the device" : ""));
  PetscCall(PetscFinalize());
  if (failures) (void)fprintf(stderr, "%d failures\n", failures);
  return failures ? 1 : 0;
}
