/*
  Tests of the inner products that CG and BiCGStab compute in the epilogues of their products, without PETSc: each kernel
  of a product that has an epilogue, and the separate kernels where there is none. tests/krylov.c compares the methods
  with PETSc's. Prints nothing on success. Run it as `krylov full`; under compute-sanitizer as `krylov quick`. With
  `count` as the last argument, it prints the number of checks that passed.
*/
#include "core/cuda/krylov/krylov.cuh"
#include "core/cuda/stores.cuh"
#include "mat/impls/sellp/sellp.h"
#include "common.cuh"

PETSC_INTERN SpMVCudaSetUp SpMVCudaSELLPSetUp;

using spmv::Scalar;

// A matrix with random values and a diagonal larger by `more`, stored by SELL-P
struct Stored {
  Matrix         A;
  Device<int>    i, j;
  Device<Number> a;
  SpMVCudaStore  store;

  Stored(const Matrix &pattern, SpMVKernel kernel, bool single, double more, cudaStream_t stream)
      : A(Valued(pattern, more)), i(A.i), j(A.j), a(A.a)
  {
    const SpMVCudaCSR csr    = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
    SELLPParams       params = {};
    params.common.compress   = 1;
    params.common.reorder    = SPMV_REORDER_AUTO;
    params.common.single     = single ? PETSC_TRUE : PETSC_FALSE;
    params.common.kernel     = kernel;
    CHECK(SpMVCudaSELLPSetUp(&csr, &params, PETSC_FALSE, stream, &store));
    CHECK(SpMVCudaFill(store, &csr, stream));
  }
  ~Stored()
  {
    CHECK(SpMVCudaDestroy(&store));
  }
  bool HasEpilogue() const
  {
    return store->WarpsOf(spmv::DOTS) > 0;
  }

private:
  static Matrix Valued(Matrix A, double more)
  {
    for (int r = 0; r < A.m; r++) {
      for (int q = A.i[r]; q < A.i[r + 1]; q++) A.a[q] = Value() + Number((PetscReal)(A.j[q] == r ? more : 0));
    }
    return A;
  }
};

static spmv::State StateOf(SpMVCudaKrylov k, cudaStream_t stream)
{
  spmv::State state;
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(&state, (spmv::State *)k->state, sizeof(state), cudaMemcpyDeviceToHost));
  return state;
}

static Wide WideOf(const Scalar &a)
{
  Number value;
  memcpy((void *)&value, &a, sizeof(value));
  return Wide(value);
}

static Wide Dot(bool hermitian, const std::vector<Number> &x, const std::vector<Number> &y)
{
  Wide sum = 0;
  for (size_t k = 0; k < x.size(); k++) sum += Wide(x[k]) * Wide(hermitian ? Conj(y[k]) : y[k]);
  return sum;
}

// ------------------------------------------------------------------------------------------------ CG: p'Ap

struct CG : SpMVKrylovSolve, SpMVCudaCG {};

static void TestCG(const Stored &s, bool fused, bool hermitian, SpMVCudaKrylov k, cudaStream_t stream)
{
  const Matrix       &A = s.A;
  std::vector<Number> p(A.n), separate;
  spmv::State         state, before;
  double              bound = 0;
  CG                  cg    = {};
  for (auto &v : p) v = Value();
  Device<Number> dp(p), w(A.m), x(A.n), r(p);
  cg.n  = A.n;
  cg.bs = 1;
  cg.x  = (Scalar *)x.p;
  cg.r  = (Scalar *)r.p;
  cg.p  = (Scalar *)dp.p;
  cg.w = cg.z  = (Scalar *)w.p;
  cg.hermitian = hermitian ? PETSC_TRUE : PETSC_FALSE;
  CHECK(SpMVCudaMult(s.store, {SPMVCUDA_MULT, P(dp.p), NULL, (PetscScalar *)w.p}, stream));
  CHECK(cudaStreamSynchronize(stream));
  separate = w.Get();
  for (int row = 0; row < A.m; row++) bound += std::abs(Wide(p[row]) * Wide(separate[row]));
  Expect(s.HasEpilogue() == fused, A, "CG", "any", "the product has an epilogue");
  for (int turn = 0; fused && turn < 3; turn++) {
    w.Poison();
    r.Set(p); // each step changes it
    CHECK(SpMVCudaCGBegin(k, &cg, &cg, stream));
    CHECK(SpMVCudaCGProduct(k, s.store, stream));
    CHECK(SpMVCudaCGUpdate(k, stream)); // for a small matrix, Update adds the sums
    state = StateOf(k, stream);
    Expect(!memcmp((const void *)w.Get().data(), (const void *)separate.data(), separate.size() * sizeof(Number)), A,
           "CG", "any", "the product has the same bits");
    Expect(!turn || !memcmp((void *)&state.dpi, (void *)&before.dpi, sizeof(state.dpi)), A, "CG", "any",
           "the inner product has the same bits");
    Expect(std::abs(WideOf(state.dpi) - Dot(hermitian, p, separate)) <= (sizeof(PetscReal) == 8 ? 1e-13 : 1e-5) * bound,
           A, "CG", "any", "the inner product");
    before = state;
  }
}

// ------------------------------------------------------------------------------------------------ BiCGStab: (v, r0),
// (s, t), (t, t), (s, r0), (t, r0)

struct BCGS : SpMVKrylovSolve, SpMVCudaBCGS {};

// The preconditioner, as the kernels read it: blocks of bs rows, each column of all blocks together
static std::vector<Number> Blocks(int n, int bs)
{
  std::vector<Number> d((size_t)n * (size_t)bs);
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < bs; j++)
      d[(size_t)j * (size_t)n + (size_t)i] =
          Number((PetscReal)(i % bs == j ? 0.5 + 0.1 * (i % 7) : 0.02 * (i % bs + j)));
  }
  return d;
}

static std::vector<Number> Apply(const std::vector<Number> &d, int bs, const std::vector<Number> &r)
{
  std::vector<Number> z(r.size(), Number(0));
  for (size_t i = 0; i < r.size(); i++) {
    for (size_t j = 0; j < (size_t)bs; j++) z[i] += d[j * r.size() + i] * r[i / bs * bs + j];
  }
  return z;
}

// The arrays of a solve, as they are after its first residual
struct Solve {
  BCGS           set = {};
  Device<Number> d, x, r, r0, p, v, t, hat, phat;

  Solve(int n, SpMVKrylovPC pc, bool left, int bs, const std::vector<Number> &diagonal, const std::vector<Number> &b,
        const std::vector<Number> &z)
      : d(diagonal), x(std::vector<Number>(n)), r(pc != SPMV_KRYLOV_PC_NONE && left ? z : b), r0(n),
        p(pc != SPMV_KRYLOV_PC_NONE && !left ? z : std::vector<Number>(n)), v(n), t(n), hat(n), phat(n)
  {
    set.n     = n;
    set.bs    = bs;
    set.pc    = pc;
    set.norm  = SPMV_KRYLOV_NORM_NONE;
    set.left  = left ? PETSC_TRUE : PETSC_FALSE;
    set.until = {PETSC_TRUE, PETSC_FALSE, (PetscReal)1e-30, (PetscReal)1e-35, (PetscReal)1e30, 4, 0, -1};
    set.x     = (Scalar *)x.p;
    set.r     = (Scalar *)r.p;
    set.r0    = (Scalar *)r0.p;
    set.v     = (Scalar *)v.p;
    set.t     = (Scalar *)t.p;
    set.p     = (Scalar *)p.p;
    set.d     = (const Scalar *)d.p;
    set.hat   = (Scalar *)hat.p;
    set.phat  = (Scalar *)phat.p;
  }
};

struct Half {
  std::vector<Number> v, t, s, r0;
  spmv::State         first, second;
};

// An iteration without its last kernel, with the store's products, fused or separate
static Half Run(Solve &&a, SpMVCudaStore store, bool fused, SpMVCudaKrylov k, cudaStream_t stream)
{
  Half       h;
  PetscReal *rho = (PetscReal *)&h.first.rho;

  CHECK(SpMVCudaBCGSBegin(k, &a.set, &a.set, stream));
  h.first = StateOf(k, stream);
  rho[spmv::REALS - 1] += rho[0] / 2; // otherwise (s, r0) would be 0
  CHECK(cudaMemcpy((spmv::State *)k->state, &h.first, sizeof(h.first), cudaMemcpyHostToDevice));
  if (!fused) CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(a.p.p), NULL, (PetscScalar *)a.v.p}, stream));
  CHECK(SpMVCudaBCGSFirst(k, fused ? store : NULL, stream));
  CHECK(SpMVCudaBCGSHalf(k, stream)); // for a small matrix, Half adds the sums, as Update does
  h.first = StateOf(k, stream);
  if (!fused) {
    const Number *s = !a.set.left && a.set.pc != SPMV_KRYLOV_PC_NONE ? a.hat.p : a.r.p;
    CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(s), NULL, (PetscScalar *)a.t.p}, stream));
  }
  CHECK(SpMVCudaBCGSSecond(k, fused ? store : NULL, stream));
  if (fused) CHECK(SpMVCudaBCGSUpdate(k, stream));
  h.second = StateOf(k, stream);
  h.v      = a.v.Get();
  h.t      = a.t.Get();
  if (!fused) h.s = a.r.Get(), h.r0 = a.r0.Get();
  return h;
}

static void TestBCGS(const Stored &stored, bool fused, SpMVKrylovPC pc, bool left, SpMVCudaKrylov k,
                     cudaStream_t stream)
{
  const Matrix             &A   = stored.A;
  const char               *on  = left ? "left" : "right";
  const double              eps = sizeof(PetscReal) == 8 ? 1e-12 : 1e-3;
  const unsigned            n   = (unsigned)A.n;
  const int                 bs  = pc != SPMV_KRYLOV_PC_BLOCKS ? 1 : n % 7 == 0 ? 7 : n % 3 == 0 ? 3 : 1;
  const std::vector<Number> d   = Blocks(A.n, bs);
  std::vector<Number>       b(n);
  for (auto &v : b) v = Value();
  const std::vector<Number> z = Apply(d, bs, b);
  const auto run  = [&](bool as) { return Run(Solve(A.n, pc, left, bs, d, b, z), stored.store, as, k, stream); };
  const auto near = [&](const Scalar &x, const Scalar &y) {
    return std::abs(WideOf(x) - WideOf(y)) <= eps * (1 + std::abs(WideOf(y)));
  };
  Expect(stored.HasEpilogue() == fused, A, "BiCGStab", "any", "the product has an epilogue");
  const Half   separate = run(false), one = run(true), again = run(true);
  const double scale = 1000 * (1 + std::abs(WideOf(separate.first.a))); // t = A (r - a v)
  bool         same  = true;
  for (unsigned r = 0; same && r < n; r++)
    same = std::abs(Wide(one.v[r]) - Wide(separate.v[r])) <= eps &&
           std::abs(Wide(one.t[r]) - Wide(separate.t[r])) <= eps * scale;
  Expect(same, A, "BiCGStab", on, "both products are the same as without epilogue");
  Expect(near(one.first.a, separate.first.a), A, "BiCGStab", on, "(v, r0)");
  const Wide omega = Dot(true, separate.s, separate.t) / Dot(true, separate.t, separate.t),
             rho   = Dot(true, separate.s, separate.r0) - omega * Dot(true, separate.t, separate.r0);
  for (const spmv::State &state : {separate.second, one.second}) {
    Expect(std::abs(WideOf(state.omega) - omega) <= eps * (1 + std::abs(omega)), A, "BiCGStab", on, "(s, t), (t, t)");
    Expect(std::abs(WideOf(state.rho) - rho) <= eps * n, A, "BiCGStab", on, "(s, r0), (t, r0)");
  }
  Expect(!memcmp((void *)&one.second, (void *)&again.second, sizeof(one.second)), A, "BiCGStab", on, "the same bits");
}

// ------------------------------------------------------------------------------------------------ matrices

static void TestAll(SpMVCudaKrylov k, bool quick, cudaStream_t stream)
{
  const auto cg = [&](const Matrix &A, bool fused, SpMVKernel kernel = SPMV_KERNEL_AUTO, bool single = false) {
    const Stored s(A, kernel, single, 0, stream);
    for (bool hermitian : {true, false}) TestCG(s, fused, hermitian, k, stream);
  };
  const auto both = [&](const Matrix &A, bool fused, SpMVKernel kernel = SPMV_KERNEL_AUTO) {
    const Stored s(A, kernel, false, 8, stream);
    cg(A, fused, kernel);
    for (bool left : {true, false}) {
      for (SpMVKrylovPC pc : {SPMV_KRYLOV_PC_NONE, SPMV_KRYLOV_PC_POINTS, SPMV_KRYLOV_PC_BLOCKS})
        TestBCGS(s, fused, pc, left, k, stream);
    }
  };
  for (SpMVKernel kernel : {SPMV_KERNEL_AUTO, SPMV_KERNEL_SLICES}) {
    for (int N : {3, quick ? 6 : 12, quick ? 7 : 40}) both(Grid("7 points", N, 7, 1, 100), true, kernel);
    for (int unknowns = 2; unknowns <= 6; unknowns += quick ? 2 : 1) {
      both(kernel == SPMV_KERNEL_AUTO ? Grid("nodes", 7, 7, unknowns, 100) : Grid("nodes", 7, 27, unknowns, 60), true,
           kernel);
      cg(Without("nodes, some rows constrained", Grid("", 7, 27, unknowns, 100),
                 [](int r, int c) { return r % 53 == 7 && r != c; }),
         true, kernel);
    }
  }
  cg(Grid("27 points", 9, 27, 1, 100), true);
  cg(Band("9 diagonals", 5000, 4, 1), true);
  both(Odd("odd rows", 5001, 3, 90), true);
  both(Lengths("up to 12 entries", 7001, 7001, [](int) { return 1 + Int(12); }), true);
  cg(Lengths("longer rows", 3001, 3001, [](int) { return 1 + Int(300); }), true);
  both(Grouped(
           "groups", 5001, 5001, [](int) { return 1 + Int(8); }, [](int, Row &row) { Anywhere(5001, 40, row); }),
       true);
  cg(Grouped(
         "groups in parts", 20000, 20000, [](int) { return 8; },
         [](int g, Row &row) { Anywhere(20000, g == 7 ? 15000 : 6, row); }),
     false);
  cg(Lengths("rows in parts", 20000, 20000, [](int r) { return r == 7 ? 15000 : 1 + Int(6); }), false);
  both(Lengths("mostly empty", 3000, 3000, [](int r) { return r % 50 == 3 ? 1 + Int(3) : 0; }), false);
  cg(Grid("single", 12, 7, 1, 100), sizeof(Single) == sizeof(Number), SPMV_KERNEL_AUTO, true);
  both(Grid("the paper's kernel", 12, 7, 1, 100), false, SPMV_KERNEL_PAPER);
}

int main(int argc, char **argv)
{
  SpMVCudaKrylov k;
  cudaStream_t   stream;
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK(cudaStreamCreate(&stream));
  CHECK(SpMVCudaKrylovCreate(PETSC_TRUE, &k));
  spmv::limits.diagonals_least = spmv::limits.diagonals_warps = 0; // small matrices reach all kernels
  for (int parts : {0, 1 << 30}) {                                 // both ways to add the sums of a product
    spmv::limits.krylov_partials = parts;
    spmv::limits.tile_least      = 0;
    spmv::limits.tile_lines      = parts ? 0 : 33; // tiles, or none
    TestAll(k, argc > 1 && strcmp(argv[1], "full"), stream);
  }
  CHECK(SpMVCudaKrylovDestroy(&k));
  CHECK(cudaStreamDestroy(stream));
  return Finish(argc, argv);
}
