/*
  Tests of BiCGStab's kernels, without PETSc: every preconditioner on either side, and every way to end and to sum,
  compared with the method on the host, which computes its inner products like KSPBCGS. Prints nothing on success. The
  arguments are those of `krylov`.
*/
#include "krylov.cuh"
#include "mat/impls/sellp/sellp.h"

PETSC_INTERN SpMVCudaSetUp SpMVCudaSELLPSetUp;

struct Settings : SpMVKrylovSolve, SpMVCudaBCGS {};
using Problem = ProblemOf<Settings>;

// ------------------------------------------------------------------------------------------------ the method on the
// host

// B A p or A B p
static std::vector<Wide> Multiplied(const Problem &q, const std::vector<Wide> &p)
{
  const std::vector<Wide> from = q.set.left ? p : Apply(q, p);
  std::vector<Wide>       to(p.size(), Wide(0));
  for (int row = 0; row < q.A.m; row++) {
    for (int k = q.A.i[row]; k < q.A.i[row + 1]; k++) to[row] += Wide(q.A.a[k]) * from[q.A.j[k]];
  }
  return q.set.left ? Apply(q, to) : to;
}

// Like KSPSolve_BCGS(), starting from x = 0 and after its first convergence test
static Outcome Reference(const Problem &q)
{
  const Settings   &set = q.set;
  Outcome           o;
  std::vector<Wide> r(q.b.begin(), q.b.end()), x(r.size(), Wide(0)), p(x), v(x), s(x), t;
  if (set.left) r = Apply(q, r);
  const std::vector<Wide> r0 = r;
  Wide                    rho, old = 1, alpha = 1, omega = 1;
  double                  norm = (double)set.dp;
  auto                    end  = [&](SpMVKrylovReason reason) {
    o.reason = reason;
    o.x      = set.left ? x : Apply(q, x);
    return o;
  };
  for (int i = 0;;) {
    o.its           = i + 1;
    rho             = Dot(true, r, r0);
    const Wide beta = rho / old * (alpha / omega);
    for (size_t k = 0; k < r.size(); k++) p[k] = i ? r[k] + beta * (p[k] - omega * v[k]) : r[k];
    v            = Multiplied(q, p);
    const Wide d = Dot(true, v, r0);
    if (Bad(d)) return end(SPMV_KRYLOV_NAN_DOT);
    if (d == Wide(0)) return end(SPMV_KRYLOV_BREAKDOWN);
    alpha = rho / d;
    for (size_t k = 0; k < r.size(); k++) s[k] = r[k] - alpha * v[k];
    t             = Multiplied(q, s);
    const Wide tt = Dot(true, t, t);
    if (tt == Wide(0)) return end(SPMV_KRYLOV_SINGULAR);
    omega = Dot(true, s, t) / tt;
    for (size_t k = 0; k < r.size(); k++) {
      x[k] += alpha * p[k] + omega * s[k];
      r[k] = s[k] - omega * t[k];
    }
    if (set.norm != SPMV_KRYLOV_NORM_NONE && set.until.chknorm < i + 2) norm = std::sqrt(std::real(Dot(true, r, r)));
    o.norm.push_back(norm);
    o.reason = Test(set, i + 1, norm);
    if (o.reason) return end(o.reason);
    if (rho == Wide(0)) return end(SPMV_KRYLOV_BREAKDOWN);
    old = rho;
    if (++i >= set.until.max_it) return end(SPMV_KRYLOV_ITS);
  }
}

// ------------------------------------------------------------------------------------------------ on the device

static bool InKernels(const Problem &q)
{
  return q.set.pc == SPMV_KRYLOV_PC_POINTS || q.set.pc == SPMV_KRYLOV_PC_BLOCKS;
}

static cudaError_t Start(const Problem &q, Arrays &a, SpMVCudaKrylov k, cudaStream_t stream)
{
  Settings set = q.set;
  Number  *r = a.r.p, *p = a.p.p;
  if (set.left) std::swap(r, a.z.p); // B b
  set.x    = (Scalar *)a.x.p;
  set.r    = (Scalar *)(a.r.p = r);
  set.r0   = (Scalar *)a.r0.p;
  set.v    = (Scalar *)a.v.p;
  set.t    = (Scalar *)a.t.p;
  set.p    = (Scalar *)p;
  set.d    = (const Scalar *)a.d.p;
  set.hat  = (Scalar *)a.z.p;
  set.phat = (Scalar *)a.hat.p;
  if (!set.left && InKernels(q)) SPMV_TRY(ApplyAll(q, a, r, p, stream));
  return SpMVCudaBCGSBegin(k, &set, &set, stream);
}

// hat: becomes B p with a right preconditioner
static cudaError_t Multiply(const Problem &q, const Arrays &a, const Number *p, Number *hat, Number *v,
                            cudaStream_t stream)
{
  const bool applied = q.set.pc == SPMV_KRYLOV_PC_APPLIED;
  if (applied && !q.set.left) SPMV_TRY(ApplyAll(q, a, p, hat, stream));
  SPMV_TRY(
      Product(q.set.n, a.i, a.j, a.a, applied && !q.set.left ? hat : p, applied && q.set.left ? a.z.p : v, stream));
  return applied && q.set.left ? ApplyAll(q, a, a.z.p, v, stream) : cudaSuccess;
}

static cudaError_t Iterate(const Problem &q, Arrays &a, SpMVCudaKrylov k, cudaStream_t stream)
{
  SPMV_TRY(Multiply(q, a, a.p.p, a.hat.p, a.v.p, stream));
  SPMV_TRY(SpMVCudaBCGSFirst(k, NULL, stream));
  SPMV_TRY(SpMVCudaBCGSHalf(k, stream));
  SPMV_TRY(Multiply(q, a, !q.set.left && InKernels(q) ? a.z.p : a.r.p, a.z.p, a.t.p, stream));
  SPMV_TRY(SpMVCudaBCGSSecond(k, NULL, stream));
  return SpMVCudaBCGSUpdate(k, stream);
}

// ------------------------------------------------------------------------------------------------ cases

// The main diagonal is so large that some iterations are possible in single precision
static Problem Make(const char *what, int n, SpMVKrylovPC pc, bool left, SpMVKrylovNorm norm)
{
  Problem q = Unsymmetric<Problem>(what, n);
  SetPreconditioner(&q, n, pc, false, 1);
  q.set.norm  = norm;
  q.set.left  = left ? PETSC_TRUE : PETSC_FALSE;
  q.set.until = {PETSC_TRUE, PETSC_FALSE, (PetscReal)1e-30, (PetscReal)1e-35, (PetscReal)1e30, 4, 0, -1};
  return q;
}

static void TestMethods(SpMVCudaKrylov k, cudaStream_t stream, bool quick)
{
  for (int n : quick ? std::vector<int>{3, 5250} : std::vector<int>{3, 252, 5250, 600000}) {
    for (int pc = 0; pc < 4; pc++) {
      for (bool left : {true, false}) {
        for (SpMVKrylovNorm norm :
             {SPMV_KRYLOV_NORM_NONE, left ? SPMV_KRYLOV_NORM_PRECONDITIONED : SPMV_KRYLOV_NORM_UNPRECONDITIONED}) {
          static char what[128];
          snprintf(what, sizeof(what), "%d rows, %s, %s%s", n, pcs[pc], norms[norm], left ? "" : ", right");
          if (!Selected(what)) continue;
          Problem q = Make(what, n, (SpMVKrylovPC)pc, left, norm);
          if (n <= 3) q.set.until.max_it = 1; // further iterations would divide by rounding errors
          TestProblem(q, k, stream, n < 1000 && !quick);
        }
      }
    }
  }
}

// Repeats a small matrix along the diagonal, and the corresponding entries of b: all numbers of the first iterations
// are exact
static void Repeat(Problem &q, int bs, const double a[], const double b[])
{
  q.A = Build(q.what, q.set.n, q.set.n, [=](int r, Row &row) {
    for (int c = 0; c < bs; c++) row.push_back(r / bs * bs + c);
  });
  for (int r = 0; r < q.set.n; r++) {
    q.b[r] = Number((PetscReal)b[r % bs]);
    for (int k = q.A.i[r]; k < q.A.i[r + 1]; k++) q.A.a[k] = Number((PetscReal)a[r % bs * bs + q.A.j[k] % bs]);
  }
}

// Every way to end
static void TestEnds(SpMVCudaKrylov k, cudaStream_t stream)
{
  const auto test = [&](const char *what, SpMVKrylovReason reason, std::function<void(Problem &)> change) {
    if (!Selected(what)) return;
    Problem q = Make(what, 1200, SPMV_KRYLOV_PC_NONE, true, SPMV_KRYLOV_NORM_PRECONDITIONED);
    change(q);
    Expect(Reference(q).reason == reason, q.A, what, "reference", "the way to end that is meant");
    TestProblem(q, k, stream, false);
  };
  test("rtol", SPMV_KRYLOV_RTOL, [](Problem &q) { q.set.until.ttol = 3; });
  test("atol", SPMV_KRYLOV_ATOL, [](Problem &q) { q.set.until.ttol = q.set.until.abstol = 3; });
  test("dtol", SPMV_KRYLOV_DTOL, [](Problem &q) {
    q.set.until.dtol    = (PetscReal)1e-3;
    q.set.until.chknorm = 1;
  });
  test("enough", SPMV_KRYLOV_ENOUGH, [](Problem &q) { q.set.until.enough = PETSC_TRUE; });
  test("its", SPMV_KRYLOV_ITS, [](Problem &q) { q.set.until.max_it = 3; });
  test("one", SPMV_KRYLOV_ITS, [](Problem &q) { q.set.until.max_it = 0; });
  test("least", SPMV_KRYLOV_RTOL, [](Problem &q) {
    q.set.until.ttol   = 30;
    q.set.until.min_it = 3;
  });
  test("check", SPMV_KRYLOV_RTOL, [](Problem &q) { // norms that are not computed equal the first one
    q.set.until.ttol    = 30;
    q.set.until.chknorm = 3;
    q.set.dp            = 17;
  });
  test("host", SPMV_KRYLOV_ITS, [](Problem &q) { q.set.until.test = PETSC_FALSE; });
  test("nan", SPMV_KRYLOV_NAN_DOT, [](Problem &q) { q.b[77] = Number(NAN); });
  test("inf", SPMV_KRYLOV_NAN_DOT, [](Problem &q) { q.A.a[q.A.a.size() / 2] = Number(INFINITY); });
  test("zero", SPMV_KRYLOV_BREAKDOWN, [](Problem &q) { q.b.assign(q.b.size(), Number(0)); });
  test("rotation", SPMV_KRYLOV_BREAKDOWN, [](Problem &q) {
    const double a[] = {0, 1, -1, 0}, b[] = {1, 1};
    Repeat(q, 2, a, b);
  });
  test("rho = 0 after an iteration", SPMV_KRYLOV_BREAKDOWN, [](Problem &q) {
    const double a[] = {1, 0, 2, 1, 1, 0, 0, 1, 1}, b[] = {1, 0, 0};
    Repeat(q, 3, a, b);
    Expect(Reference(q).norm.size() == 2, q.A, q.what, "reference", "the iteration in which rho = 0 is complete");
  });
  test("A s = 0", SPMV_KRYLOV_SINGULAR, [](Problem &q) {
    const double a[] = {1, 1, 0, 0}, b[] = {1, 1};
    Repeat(q, 2, a, b);
  });
  test("s = 0", SPMV_KRYLOV_SINGULAR, [](Problem &q) {
    const double a[] = {2}, b[] = {1};
    Repeat(q, 1, a, b);
  });
}

// ------------------------------------------------------------------------------------------------ inner products as
// the epilogues of the products

struct Half {
  std::vector<Number> v, t, s, r0;
  spmv::State         first, second;
};

// An iteration without its last kernel, with the store's products, fused or separate
static Half Run(const Problem &q, SpMVCudaStore store, bool fused, SpMVCudaKrylov k, cudaStream_t stream)
{
  Half       h;
  Arrays     a(q);
  PetscReal *rho = (PetscReal *)&h.first.rho;

  CHECK(Start(q, a, k, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(&h.first, (spmv::State *)k->state, sizeof(h.first), cudaMemcpyDeviceToHost));
  rho[spmv::REALS - 1] += rho[0] / 2; // otherwise (s, r0) would be 0
  CHECK(cudaMemcpy((spmv::State *)k->state, &h.first, sizeof(h.first), cudaMemcpyHostToDevice));
  if (!fused) CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(a.p.p), NULL, (PetscScalar *)a.v.p}, stream));
  CHECK(SpMVCudaBCGSFirst(k, fused ? store : NULL, stream));
  CHECK(SpMVCudaBCGSHalf(k, stream)); // for a small matrix, Half adds the sums, as Update does
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(&h.first, (spmv::State *)k->state, sizeof(h.first), cudaMemcpyDeviceToHost));
  if (!fused) {
    const Number *s = !q.set.left && InKernels(q) ? a.z.p : a.r.p;
    CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(s), NULL, (PetscScalar *)a.t.p}, stream));
  }
  CHECK(SpMVCudaBCGSSecond(k, fused ? store : NULL, stream));
  if (fused) CHECK(SpMVCudaBCGSUpdate(k, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(&h.second, (spmv::State *)k->state, sizeof(h.second), cudaMemcpyDeviceToHost));
  h.v = a.v.Get();
  h.t = a.t.Get();
  if (!fused) h.s = a.r.Get(), h.r0 = a.r0.Get();
  return h;
}

static Wide WideOf(const Scalar &a)
{
  Number value;
  memcpy((void *)&value, &a, sizeof(value));
  return Wide(value);
}

static void TestEpilogue(Matrix A, bool fused, SpMVKernel kernel, SpMVKrylovPC pc, bool left, SpMVCudaKrylov k,
                         cudaStream_t stream)
{
  if (!Selected(A.name)) return;
  SELLPParams    params = {};
  SpMVCudaStore  store;
  const double   eps = sizeof(PetscReal) == 8 ? 1e-12 : 1e-3;
  const unsigned n   = (unsigned)A.n;
  Problem        q   = Make(A.name, A.n, pc, left, SPMV_KRYLOV_NORM_NONE);
  for (int r = 0; r < A.m; r++) {
    for (int p = A.i[r]; p < A.i[r + 1]; p++) A.a[p] = Value() + Number((PetscReal)(A.j[p] == r ? 8 : 0));
  }
  q.A                    = A;
  params.common.compress = 1;
  params.common.reorder  = SPMV_REORDER_AUTO;
  Device<int>    i(A.i), j(A.j);
  Device<Number> a(A.a);
  SpMVCudaCSR    csr   = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  params.common.kernel = kernel;
  CHECK(SpMVCudaSELLPSetUp(&csr, &params, PETSC_FALSE, stream, &store));
  CHECK(SpMVCudaFill(store, &csr, stream));
  Expect((store->WarpsOf(spmv::DOTS) > 0) == fused, A, q.what, "any", "the product has an epilogue");
  const Half separate = Run(q, store, false, k, stream), one = Run(q, store, true, k, stream),
             again = Run(q, store, true, k, stream);
  const auto near  = [&](const Scalar &x, const Scalar &y) {
    return std::abs(WideOf(x) - WideOf(y)) <= eps * (1 + std::abs(WideOf(y)));
  };
  const double scale = 1000 * (1 + std::abs(WideOf(separate.first.a))); // t = A (r - a v)
  bool         same  = true;
  for (unsigned r = 0; same && r < n; r++)
    same = std::abs(Wide(one.v[r]) - Wide(separate.v[r])) <= eps &&
           std::abs(Wide(one.t[r]) - Wide(separate.t[r])) <= eps * scale;
  Expect(same, A, q.what, left ? "left" : "right", "both products are the same as without epilogue");
  Expect(near(one.first.a, separate.first.a), A, q.what, left ? "left" : "right", "(v, r0)");
  const auto wide = [](const std::vector<Number> &x) { return std::vector<Wide>(x.begin(), x.end()); };
  const auto r0 = wide(separate.r0), sv = wide(separate.s), tv = wide(separate.t);
  const Wide omega = Dot(true, sv, tv) / Dot(true, tv, tv), rho = Dot(true, sv, r0) - omega * Dot(true, tv, r0);
  for (const spmv::State &state : {separate.second, one.second}) {
    Expect(std::abs(WideOf(state.omega) - omega) <= eps * (1 + std::abs(omega)), A, q.what, left ? "left" : "right",
           "(s, t), (t, t)");
    Expect(std::abs(WideOf(state.rho) - rho) <= eps * n, A, q.what, left ? "left" : "right", "(s, r0), (t, r0)");
  }
  Expect(!memcmp((void *)&one.second, (void *)&again.second, sizeof(one.second)), A, q.what, left ? "left" : "right",
         "the same bits");
  CHECK(SpMVCudaDestroy(&store));
}

static void TestEpilogues(SpMVCudaKrylov k, bool quick, cudaStream_t stream)
{
  spmv::limits.diagonals_least = spmv::limits.diagonals_warps = 0; // small matrices reach all kernels
  for (bool left : {true, false}) {
    for (SpMVKrylovPC pc : {SPMV_KRYLOV_PC_NONE, SPMV_KRYLOV_PC_POINTS, SPMV_KRYLOV_PC_BLOCKS}) {
      const auto test = [&](Matrix A, bool fused, SpMVKernel kernel) {
        TestEpilogue(A, fused, kernel, pc, left, k, stream);
      };
      for (int N : {3, quick ? 6 : 12, quick ? 7 : 40}) {
        test(Grid("7 points", N, 7, 1, 100), true, SPMV_KERNEL_AUTO);
        test(Grid("7 points, slices", N, 7, 1, 100), true, SPMV_KERNEL_SLICES);
      }
      for (int unknowns = 2; unknowns <= 6; unknowns += quick ? 2 : 1) {
        test(Grid("nodes", 7, 7, unknowns, 100), true, SPMV_KERNEL_AUTO);
        test(Grid("nodes, slices", 7, 27, unknowns, 60), true, SPMV_KERNEL_SLICES);
      }
      test(Odd("odd rows", 5001, 3, 90), true, SPMV_KERNEL_AUTO);
      test(Lengths("up to 12 entries", 7001, 7001, [](int) { return 1 + Int(12); }), true, SPMV_KERNEL_AUTO);
      test(Grouped(
               "groups", 5001, 5001, [](int) { return 1 + Int(8); }, [](int, Row &row) { Anywhere(5001, 40, row); }),
           true, SPMV_KERNEL_AUTO);
      test(Lengths("mostly empty", 3000, 3000, [](int r) { return r % 50 == 3 ? 1 + Int(3) : 0; }), false,
           SPMV_KERNEL_AUTO);
      test(Grid("the paper's kernel", 12, 7, 1, 100), false, SPMV_KERNEL_PAPER);
    }
  }
}

int main(int argc, char **argv)
{
  return KrylovMain(argc, argv, TestEpilogues, [](SpMVCudaKrylov k, bool quick, cudaStream_t stream) {
    TestEnds(k, stream);
    TestMethods(k, stream, quick);
  });
}
