/*
  Tests of the Krylov methods' kernels, without PETSc: every preconditioner, norm, way to end and way to sum, compared
  with the same method on the host. Prints nothing on success. Run it as `krylov full`; under compute-sanitizer as
  `krylov quick` or `krylov race`. With `count` as the last argument, it prints the number of checks that passed.
*/
#include "krylov.cuh"
#include "mat/impls/sellp/sellp.h"

PETSC_INTERN SpMVCudaSetUp SpMVCudaSELLPSetUp;

struct Settings : SpMVKrylovSolve, SpMVCudaCG {};
using Problem = ProblemOf<Settings>;

// ------------------------------------------------------------------------------------------------ the method on the
// host

// Like KSPSolve_CG(), starting from x = 0 and after its first convergence test
static Outcome Reference(const Problem &p)
{
  const Settings   &cg = p.set;
  Outcome           o;
  std::vector<Wide> r(p.b.begin(), p.b.end()), z = Apply(p, r), direction(r.size()), w;
  Wide              beta = Dot(cg.hermitian, z, r), betaold = 1, dpi = 0, before;
  o.x.assign(r.size(), Wide(0));
  auto end = [&](SpMVKrylovReason reason) {
    o.reason = reason;
    return o;
  };
  if (Bad(beta)) return end(SPMV_KRYLOV_NAN_DOT);
  for (int i = 0;;) {
    o.its = i + 1;
    if (beta == Wide(0)) return end(SPMV_KRYLOV_ZERO);
#if !defined(PETSC_USE_COMPLEX)
    if (i > 0 && beta * betaold < 0) return end(SPMV_KRYLOV_INDEFINITE_PC);
#endif
    for (size_t k = 0; k < r.size(); k++) direction[k] = i ? z[k] + beta / betaold * direction[k] : z[k];
    w.assign(r.size(), Wide(0));
    for (int row = 0; row < p.A.m; row++) {
      for (int q = p.A.i[row]; q < p.A.i[row + 1]; q++) w[row] += Wide(p.A.a[q]) * direction[p.A.j[q]];
    }
    before = dpi;
    dpi    = Dot(cg.hermitian, direction, w);
    if (Bad(dpi)) return end(SPMV_KRYLOV_NAN_DOT);
    if (dpi == Wide(0) || (i > 0 && std::real(dpi) * std::real(before) < 0)) return end(SPMV_KRYLOV_INDEFINITE_MAT);
    betaold      = beta;
    const Wide a = beta / dpi;
    for (size_t k = 0; k < r.size(); k++) {
      o.x[k] += a * direction[k];
      r[k] -= a * w[k];
    }
    z                  = Apply(p, r);
    beta               = Dot(cg.hermitian, z, r);
    const auto &normed = cg.norm == SPMV_KRYLOV_NORM_PRECONDITIONED ? z : r;
    double      norm   = 0;
    if (cg.norm == SPMV_KRYLOV_NORM_NATURAL)
      norm = std::sqrt(std::abs(beta));
    else if (cg.norm != SPMV_KRYLOV_NORM_NONE && cg.until.chknorm < i + 2)
      for (const Wide &v : normed) norm += std::norm(v);
    if (cg.norm != SPMV_KRYLOV_NORM_NATURAL) norm = std::sqrt(norm);
    o.norm.push_back(norm);
    o.reason = Test(cg, i + 1, norm);
    if (o.reason) return o;
    if (++i >= cg.until.max_it) return end(SPMV_KRYLOV_ITS);
  }
}

// ------------------------------------------------------------------------------------------------ on the device

static cudaError_t Start(const Problem &q, Arrays &v, SpMVCudaKrylov k, cudaStream_t stream)
{
  Settings cg = q.set;
  cg.x        = (Scalar *)v.x.p;
  cg.r        = (Scalar *)v.r.p;
  cg.z = cg.w = (Scalar *)v.z.p;
  cg.p        = (Scalar *)v.p.p;
  cg.d        = (const Scalar *)v.d.p;
  SPMV_TRY(SpMVCudaCGBegin(k, &cg, &cg, stream));
  return SpMVCudaCGDirection(k, stream);
}

static cudaError_t Iterate(const Problem &q, Arrays &v, SpMVCudaKrylov k, cudaStream_t stream)
{
  SPMV_TRY(Product(q.set.n, v.i, v.j, v.a, v.p.p, v.z.p, stream));
  SPMV_TRY(SpMVCudaCGProduct(k, NULL, stream));
  SPMV_TRY(SpMVCudaCGUpdate(k, stream));
  if (q.set.pc == SPMV_KRYLOV_PC_APPLIED) {
    SPMV_TRY(ApplyAll(q, v, v.r.p, v.z.p, stream));
    SPMV_TRY(SpMVCudaCGSums(k, stream));
  }
  return SpMVCudaCGDirection(k, stream);
}

// ------------------------------------------------------------------------------------------------ cases

// Three diagonals that are symmetric or Hermitian, with random values
static Matrix Diagonals(const char *name, int n, bool hermitian, double shift)
{
  Matrix A = Build(name, n, n, [](int r, Row &row) { row = {r - 1, r, r + 1}; });
  for (int r = 0; r < n; r++) {
    for (int q = A.i[r]; q < A.i[r + 1]; q++) {
      if (A.j[q] == r) A.a[q] = (PetscReal)(2.2 + shift + std::abs(Real()));
      if (A.j[q] <= r) continue;
      const Number v = Value();
      const int    c = A.j[q];
      A.a[q]         = v;
      for (int p = A.i[c]; p < A.i[c + 1]; p++) {
        if (A.j[p] == r) A.a[p] = hermitian ? Conj(v) : v;
      }
    }
  }
  return A;
}

static Problem Make(const char *what, int n, SpMVKrylovPC pc, SpMVKrylovNorm norm, bool hermitian, double shift = 0)
{
  Problem q{what, Diagonals(what, n, hermitian, shift), {}, {}, {}};
  for (int r = 0; r < n; r++) q.b.push_back(Value());
  SetPreconditioner(&q, n, pc, hermitian, 1);
  q.set.norm      = norm;
  q.set.hermitian = hermitian ? PETSC_TRUE : PETSC_FALSE;
  q.set.until     = {PETSC_TRUE, PETSC_FALSE, (PetscReal)1e-4, (PetscReal)1e-30, (PetscReal)1e30, 8, 0, -1};
  return q;
}

// Every preconditioner with every norm, on few and many rows
static void TestMethods(SpMVCudaKrylov k, cudaStream_t stream, bool quick)
{
  for (int n : quick ? std::vector<int>{3, 5250} : std::vector<int>{1, 3, 252, 5250, 600000}) {
    for (int pc = 0; pc < 4; pc++) {
      for (int norm = 0; norm < 4; norm++) {
        for (bool hermitian : {true, false}) {
          static char what[128];
          snprintf(what, sizeof(what), "%d rows, %s, %s%s", n, pcs[pc], norms[norm], hermitian ? "" : ", symmetric");
          if (!Selected(what)) continue;
          Problem q = Make(what, n, (SpMVKrylovPC)pc, (SpMVKrylovNorm)norm, hermitian);
          if (n <= 3) q.set.until.max_it = 1; // further iterations would divide by rounding errors
          TestProblem(q, k, stream, n < 1000 && !quick);
        }
      }
    }
  }
}

// Every way to end
static void TestEnds(SpMVCudaKrylov k, cudaStream_t stream)
{
  const auto test = [&](const char *what, SpMVKrylovReason reason, std::function<void(Problem &)> change,
                        double shift = 0, SpMVKrylovPC pc = SPMV_KRYLOV_PC_NONE) {
    if (!Selected(what)) return;
    Problem q = Make(what, 1000, pc, SPMV_KRYLOV_NORM_PRECONDITIONED, true, shift);
    change(q);
    Expect(Reference(q).reason == reason, q.A, what, "reference", "the way to end that is meant");
    TestProblem(q, k, stream, false);
  };
  test("rtol", SPMV_KRYLOV_RTOL, [](Problem &q) { q.set.until.ttol = (PetscReal)0.3; });
  test("atol", SPMV_KRYLOV_ATOL, [](Problem &q) { q.set.until.ttol = q.set.until.abstol = (PetscReal)0.3; });
  test("dtol", SPMV_KRYLOV_DTOL, [](Problem &q) {
    q.set.until.dtol    = (PetscReal)1e-3;
    q.set.until.chknorm = 1;
  });
  test("enough", SPMV_KRYLOV_ENOUGH, [](Problem &q) {
    q.set.until.enough = PETSC_TRUE;
    q.set.until.max_it = 4;
  });
  test("its", SPMV_KRYLOV_ITS, [](Problem &q) { q.set.until.max_it = 4; });
  test("one", SPMV_KRYLOV_ITS, [](Problem &q) { q.set.until.max_it = 0; });
  test("least", SPMV_KRYLOV_RTOL, [](Problem &q) {
    q.set.until.ttol   = 30;
    q.set.until.min_it = 5;
  });
  test("check", SPMV_KRYLOV_RTOL, [](Problem &q) {
    q.set.until.ttol    = 30;
    q.set.until.chknorm = 5;
  });
  test("host", SPMV_KRYLOV_ITS, [](Problem &q) { q.set.until.test = PETSC_FALSE; });
  test("zero", SPMV_KRYLOV_ZERO, [](Problem &q) { q.b.assign(q.b.size(), Number(0)); });
  test("nan", SPMV_KRYLOV_NAN_DOT, [](Problem &q) { q.b[77] = Number(NAN); });
  test("inf", SPMV_KRYLOV_NAN_DOT, [](Problem &q) { q.A.a[q.A.a.size() / 2] = Number(INFINITY); });
  test(
      "matrix", SPMV_KRYLOV_INDEFINITE_MAT, [](Problem &) {}, -2.4);
#if !defined(PETSC_USE_COMPLEX)
  test(
      "preconditioner", SPMV_KRYLOV_INDEFINITE_PC,
      [](Problem &q) {
        for (int i = 0; i < q.set.n; i += 3) q.d[i] = (Number)-0.3;
      },
      0, SPMV_KRYLOV_PC_POINTS);
#endif
  test("negative", SPMV_KRYLOV_ITS, [](Problem &q) {
    for (Number &a : q.A.a) a = -a;
    q.set.until.ttol = 0;
  });
}

// ------------------------------------------------------------------------------------------------ p'Ap as the epilogue
// of a product

// The inner product of p and w = A p, from the epilogue of the product. expected: there is an epilogue
static void TestEpilogueOf(const Matrix &A, SpMVCudaStore store, bool expected, const std::vector<Number> &p,
                           const Settings &cg, const std::vector<Number> &separate, Device<Number> &w,
                           Device<Number> &r, SpMVCudaKrylov k, cudaStream_t stream)
{
  std::vector<Number> again;
  spmv::State         s, t;
  Wide                dot   = 0;
  double              bound = 0;
  for (int turn = 0; turn < 3; turn++) {
    w.Poison();
    r.Set(p); // each step changes it
    CHECK(SpMVCudaCGBegin(k, &cg, &cg, stream));
    CHECK(SpMVCudaCGProduct(k, store, stream));
    CHECK(SpMVCudaCGUpdate(k, stream)); // for a small matrix, Update adds the sums
    CHECK(cudaStreamSynchronize(stream));
    Expect((store->WarpsOf(spmv::DOTS) > 0) == expected, A, "epilogue", "any", "the product has one");
    if (!expected) return;
    again = w.Get();
    CHECK(cudaMemcpy(&s, (spmv::State *)k->state, sizeof(s), cudaMemcpyDeviceToHost));
    Expect(!memcmp((void *)again.data(), (void *)separate.data(), again.size() * sizeof(Number)), A, "epilogue", "any",
           "the product has the same bits");
    if (turn)
      Expect(!memcmp((void *)&s.dpi, (void *)&t.dpi, sizeof(s.dpi)), A, "epilogue", "any",
             "the inner product has the same bits");
    t = s;
  }
  for (int row = 0; row < A.m; row++) {
#if defined(PETSC_USE_COMPLEX)
    dot += Wide(p[row]) * (cg.hermitian ? std::conj(Wide(separate[row])) : Wide(separate[row]));
#else
    dot += Wide(p[row]) * Wide(separate[row]);
#endif
    bound += std::abs(Wide(p[row]) * Wide(separate[row]));
  }
  Number value;
  memcpy((void *)&value, &s.dpi, sizeof(value));
  Expect(std::abs(Wide(value) - dot) <= (sizeof(PetscReal) == 8 ? 1e-13 : 1e-5) * bound, A, "epilogue", "any",
         "the inner product");
}

static void TestEpilogue(Matrix A, bool fused, SpMVKernel kernel, bool single, bool hermitian, SpMVCudaKrylov k,
                         cudaStream_t stream)
{
  if (!Selected(A.name)) return;
  std::vector<Number> p(A.n);
  SELLPParams         params = {};
  SpMVCudaStore       store;
  Settings            cg = {};
  for (auto *values : {&A.a, &p}) {
    for (auto &v : *values) v = Value();
  }
  params.common.compress = 1;
  params.common.reorder  = SPMV_REORDER_AUTO;
  params.common.single   = single ? PETSC_TRUE : PETSC_FALSE;
  Device<int>       i(A.i), j(A.j);
  Device<Number>    a(A.a), dp(p), w(A.m), x(A.n), r(p);
  const SpMVCudaCSR csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  params.common.kernel  = kernel;
  CHECK(SpMVCudaSELLPSetUp(&csr, &params, PETSC_FALSE, stream, &store));
  CHECK(SpMVCudaFill(store, &csr, stream));
  cg.n  = A.n;
  cg.bs = 1;
  cg.x  = (Scalar *)x.p;
  cg.r  = (Scalar *)r.p;
  cg.p  = (Scalar *)dp.p;
  cg.w = cg.z  = (Scalar *)w.p;
  cg.hermitian = hermitian ? PETSC_TRUE : PETSC_FALSE;
  CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(dp.p), NULL, (PetscScalar *)w.p}, stream));
  CHECK(cudaStreamSynchronize(stream));
  const std::vector<Number> separate = w.Get();
  const int                 parts    = spmv::limits.krylov_partials;
  for (int most : {0, parts}) {
    spmv::limits.krylov_partials = most;
    TestEpilogueOf(A, store, fused, p, cg, separate, w, r, k, stream);
  }
  spmv::limits.krylov_partials = parts;
  CHECK(SpMVCudaDestroy(&store));
}

static void TestEpilogues(SpMVCudaKrylov k, bool quick, cudaStream_t stream)
{
  spmv::limits.diagonals_least = spmv::limits.diagonals_warps = 0; // small matrices reach all kernels
  for (bool hermitian : {true, false}) {
    for (int N : {3, quick ? 6 : 12, quick ? 7 : 40}) {
      TestEpilogue(Grid("7 points", N, 7, 1, 100), true, SPMV_KERNEL_AUTO, false, hermitian, k, stream);
      TestEpilogue(Grid("7 points, slices", N, 7, 1, 100), true, SPMV_KERNEL_SLICES, false, hermitian, k, stream);
    }
    for (int unknowns = 2; unknowns <= 6; unknowns += quick ? 2 : 1) {
      TestEpilogue(Grid("nodes", 7, 7, unknowns, 100), true, SPMV_KERNEL_AUTO, false, hermitian, k, stream);
      TestEpilogue(Grid("nodes, slices", 7, 27, unknowns, 60), true, SPMV_KERNEL_SLICES, false, hermitian, k, stream);
      for (SpMVKernel kernel : {SPMV_KERNEL_AUTO, SPMV_KERNEL_SLICES}) {
        TestEpilogue(Without("nodes, some rows constrained", Grid("", 7, 27, unknowns, 100),
                             [](int r, int c) { return r % 53 == 7 && r != c; }),
                     true, kernel, false, hermitian, k, stream);
      }
    }
    TestEpilogue(Grid("27 points", 9, 27, 1, 100), true, SPMV_KERNEL_AUTO, false, hermitian, k, stream);
    TestEpilogue(Build("9 diagonals", 5000, 5000,
                       [](int r, Row &row) {
                         for (int c = r - 4; c <= r + 4; c++) row.push_back(c);
                       }),
                 true, SPMV_KERNEL_AUTO, false, hermitian, k, stream);
    TestEpilogue(Odd("odd rows", 5001, 3, 90), true, SPMV_KERNEL_AUTO, false, hermitian, k, stream);
    TestEpilogue(Lengths("up to 12 entries", 7001, 7001, [](int) { return 1 + Int(12); }), true, SPMV_KERNEL_AUTO,
                 false, hermitian, k, stream);
    TestEpilogue(Lengths("longer rows", 3001, 3001, [](int) { return 1 + Int(300); }), true, SPMV_KERNEL_AUTO, false,
                 hermitian, k, stream);
    TestEpilogue(
        Grouped(
            "groups", 5001, 5001, [](int) { return 1 + Int(8); }, [](int, Row &row) { Anywhere(5001, 40, row); }),
        true, SPMV_KERNEL_AUTO, false, hermitian, k, stream);
    TestEpilogue(Grouped(
                     "groups in parts", 20000, 20000, [](int) { return 8; },
                     [](int g, Row &row) { Anywhere(20000, g == 7 ? 15000 : 6, row); }),
                 false, SPMV_KERNEL_AUTO, false, hermitian, k, stream);
    TestEpilogue(Lengths("rows in parts", 20000, 20000, [](int r) { return r == 7 ? 15000 : 1 + Int(6); }), false,
                 SPMV_KERNEL_AUTO, false, hermitian, k, stream);
    TestEpilogue(Lengths("mostly empty", 3000, 3000, [](int r) { return r % 50 == 3 ? 1 + Int(3) : 0; }), false,
                 SPMV_KERNEL_AUTO, false, hermitian, k, stream);
    TestEpilogue(Grid("single", 12, 7, 1, 100), sizeof(Single) == sizeof(Number), SPMV_KERNEL_AUTO, true, hermitian, k,
                 stream);
    TestEpilogue(Grid("the paper's kernel", 12, 7, 1, 100), false, SPMV_KERNEL_PAPER, false, hermitian, k, stream);
  }
}

int main(int argc, char **argv)
{
  return KrylovMain(argc, argv, TestEpilogues, [](SpMVCudaKrylov k, bool quick, cudaStream_t stream) {
    TestEnds(k, stream);
    TestMethods(k, stream, quick);
  });
}
