/*
  Tests of the Krylov methods' kernels, without PETSc: every preconditioner, norm, way to end and way to sum, against the same method on the host. Silent when
  right. Run as `krylov full`; under compute-sanitizer as `krylov quick` or `krylov race`; `count` at the end prints how many checks passed.
*/
#include "../../src/core/cuda/krylov.cuh"
#include "../../src/mat/impls/sellp/sellpcuda.h"
#include "common.cuh"

using spmv::Scalar;

// ------------------------------------------------------------------------------------------------ systems

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

static __global__ void Multiply(int n, const int *i, const int *j, const Scalar *a, const Scalar *x, Scalar *y)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (r >= n) return;
  Scalar sum = spmv::Num::zero();
  for (int q = i[r]; q < i[r + 1]; q++) sum = spmv::Num::fma(a[q], x[j[q]], sum);
  y[r] = sum;
}
static cudaError_t Product(int n, const Device<int> &i, const Device<int> &j, const Device<Number> &a, const Number *x, Number *y, cudaStream_t stream)
{
  SPMV_LAUNCH(n, 128, stream, Multiply, n, i.p, j.p, (const Scalar *)a.p, (const Scalar *)x, (Scalar *)y);
  return cudaSuccess;
}

// A preconditioner with blocks, as the kernels read it
static std::vector<Number> Blocks(int n, int bs, bool hermitian)
{
  std::vector<Number> d((size_t)n * (size_t)bs);
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < bs; j++) {
      const int e = i % bs;
      Number    v = e == j ? Number((PetscReal)(0.5 + 0.1 * (i % 7))) : Number((PetscReal)(0.02 * (e + j)));
#if defined(PETSC_USE_COMPLEX)
      if (e != j) v += Number(0, (PetscReal)((hermitian ? (e < j) - (e > j) : 1) * 0.05));
#endif
      d[(size_t)j * (size_t)n + (size_t)i] = v;
    }
  }
  return d;
}

struct Problem {
  const char         *what;
  Matrix              A;
  std::vector<Number> d, b;
  SpMVCudaCG          cg;
};

// ------------------------------------------------------------------------------------------------ the method on the host

struct Outcome {
  SpMVKrylovReason    reason = SPMV_KRYLOV_ITERATING;
  int                 its    = 0;
  std::vector<double> norm; // from iteration 1 on
  std::vector<Wide>   x;
};

static bool Bad(Wide a)
{
  return !std::isfinite(std::real(a)) || !std::isfinite(std::imag(a));
}

static Wide Dot(bool hermitian, const std::vector<Wide> &x, const std::vector<Wide> &y)
{
  Wide sum = 0;
  for (size_t k = 0; k < x.size(); k++) {
#if defined(PETSC_USE_COMPLEX)
    sum += x[k] * (hermitian ? std::conj(y[k]) : y[k]);
#else
    sum += x[k] * y[k];
#endif
  }
  return sum;
}

static std::vector<Wide> Apply(const Problem &p, const std::vector<Wide> &r)
{
  const int         n = p.cg.n, bs = p.cg.bs;
  std::vector<Wide> z = r;
  if (p.cg.pc == SPMV_KRYLOV_PC_NONE) return z;
  for (int i = 0; i < n; i++) {
    z[i] = 0;
    for (int j = 0; j < bs; j++) z[i] += Wide(p.d[(size_t)j * (size_t)n + (size_t)i]) * r[i / bs * bs + j];
  }
  return z;
}

static SpMVKrylovReason Test(const SpMVCudaCG &cg, int n, double norm)
{
  const SpMVKrylovTest &t = cg.until;
  if (!t.test) return SPMV_KRYLOV_ITERATING;
  if (t.enough && n >= t.max_it) return SPMV_KRYLOV_ENOUGH;
  if (cg.norm == SPMV_KRYLOV_NORM_NONE || n <= t.chknorm || n < t.min_it) return SPMV_KRYLOV_ITERATING;
  if (norm <= t.ttol) return norm < t.abstol ? SPMV_KRYLOV_ATOL : SPMV_KRYLOV_RTOL;
  return norm >= t.dtol ? SPMV_KRYLOV_DTOL : SPMV_KRYLOV_ITERATING;
}

// KSPSolve_CG(), from x = 0 and after its first convergence test
static Outcome Reference(const Problem &p)
{
  const SpMVCudaCG &cg = p.cg;
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

enum Way {
  PLAIN,
  AHEAD,   // all iterations are started before the host looks
  OUTSIDE, // the sums go through a function
  PARTS    // two ranks of one device
};
static const char *const ways[] = {"look", "ahead", "sums outside", "two ranks"};

static cudaError_t Outside(void *ctx, PetscReal *, int, cudaStream_t)
{
  ++*(int *)ctx;
  return cudaSuccess;
}

// The arrays of one solve
struct Arrays {
  Device<int>    i, j;
  Device<Number> a, d, x, r, z, p;
  explicit Arrays(const Problem &q) : i(q.A.i), j(q.A.j), a(q.A.a), d(q.d), x(std::vector<Number>(q.b.size())), r(q.b), z(q.b.size()), p(q.b.size())
  {
    std::vector<Number> z0;
    for (const Wide &v : Apply(q, std::vector<Wide>(q.b.begin(), q.b.end()))) z0.push_back(Number(v));
    z.Set(z0);
  }
  SpMVCudaCG On(SpMVCudaCG cg)
  {
    cg.x = (PetscScalar *)x.p;
    cg.r = (PetscScalar *)r.p;
    cg.z = cg.w = (PetscScalar *)z.p;
    cg.p        = (PetscScalar *)p.p;
    cg.d        = (const PetscScalar *)d.p;
    return cg;
  }
};

// z = D r, for a preconditioner that the method does not know
static __global__ void ApplyBlocks(int n, int bs, const Scalar *d, const Scalar *r, Scalar *z)
{
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  Scalar sum = spmv::Num::zero();
  for (int j = 0; j < bs; j++) sum = spmv::Num::fma(d[(size_t)j * (size_t)n + (size_t)i], r[i / bs * bs + j], sum);
  z[i] = sum;
}

static cudaError_t Iterate(const Problem &q, Arrays &v, SpMVCudaKrylov k, cudaStream_t stream)
{
  SPMV_TRY(Product(q.cg.n, v.i, v.j, v.a, v.p.p, v.z.p, stream));
  SPMV_TRY(SpMVCudaCGProduct(k, stream));
  SPMV_TRY(SpMVCudaCGUpdate(k, stream));
  if (q.cg.pc == SPMV_KRYLOV_PC_APPLIED) {
    SPMV_LAUNCH(q.cg.n, 128, stream, ApplyBlocks, q.cg.n, q.cg.bs, (const Scalar *)v.d.p, (const Scalar *)v.r.p, (Scalar *)v.z.p);
    SPMV_TRY(SpMVCudaCGSums(k, stream));
  }
  return SpMVCudaCGDirection(k, stream);
}

static SpMVKrylovStatus Wait(SpMVCudaKrylov k, cudaStream_t stream)
{
  CHECK(cudaStreamSynchronize(stream));
  return SpMVCudaKrylovGetStatus(k);
}

static Outcome Solve(const Problem &q, Way way, SpMVCudaKrylov k, cudaStream_t stream)
{
  Outcome          o;
  Arrays           v(q);
  const SpMVCudaCG cg    = v.On(q.cg);
  int              calls = 0;
  SpMVKrylovStatus s;
  if (way == OUTSIDE) SpMVCudaKrylovSetAllReduce(k, Outside, &calls);
  CHECK(SpMVCudaCGBegin(k, &cg, stream));
  CHECK(SpMVCudaCGDirection(k, stream));
  s = Wait(k, stream);
  for (int n = 1; way == AHEAD ? n <= cg.until.max_it + 3 : !s.reason; n++) {
    CHECK(Iterate(q, v, k, stream));
    if (way != AHEAD) s = Wait(k, stream);
  }
  s        = Wait(k, stream);
  o.reason = s.reason;
  o.its    = s.its;
  for (int n = 1; n <= s.norms; n++) {
    PetscReal norm = -1;
    if (!SpMVCudaKrylovReadNorm(k, n, &norm)) o.its = -1; // must be there
    o.norm.push_back((double)norm);
  }
  for (const Number &e : v.x.Get()) o.x.push_back(Wide(e));
  Expect(way != OUTSIDE || calls > 0, q.A, q.what, ways[way], "the sums went through the function");
  SpMVCudaKrylovSetAllReduce(k, nullptr, nullptr);
  return o;
}

static bool Near(double a, double b, double size)
{
  return std::abs(a - b) <= (sizeof(PetscReal) == 8 ? 1e-9 : 2e-2) * (std::abs(b) + size) || (std::isnan(a) && std::isnan(b));
}

// The residual of a single equation vanishes after one iteration, or is what rounding leaves of it, which is another way to converge
static bool SameReason(const Problem &q, int a, int b)
{
  auto converged = [](int reason) { return reason == SPMV_KRYLOV_RTOL || reason == SPMV_KRYLOV_ATOL || reason == SPMV_KRYLOV_ZERO; };
  return a == b || (q.A.m == 1 && converged(a) && converged(b));
}

static void Compare(const Problem &q, const Outcome &o, const Outcome &ref, const char *way)
{
  double size = 0;
  bool   same = o.norm.size() == ref.norm.size();
  for (const Number &e : q.b) size += std::norm(Wide(e));
  size = std::sqrt(size);
  Expect(SameReason(q, o.reason, ref.reason), q.A, q.what, way, "reason");
  Expect(o.its == ref.its, q.A, q.what, way, "iterations");
  for (size_t n = 0; same && n < ref.norm.size(); n++) same = Near(o.norm[n], ref.norm[n], 1e-3 * size);
  Expect(same, q.A, q.what, way, "norms");
  same = ref.reason != SPMV_KRYLOV_NAN_DOT;
  if (!same) return;
  for (size_t n = 0; same && n < ref.x.size(); n++) same = Near(std::abs(o.x[n] - ref.x[n]), 0, 1 + std::abs(ref.x[n]));
  Expect(same, q.A, q.what, way, "solution");
}

// The same bits in each solve, however the host looks
static void TestSame(const Problem &q, const Outcome &a, const Outcome &b)
{
  Expect(a.reason == b.reason && a.its == b.its && a.norm == b.norm && a.x == b.x, q.A, q.what, "any", "the same bits");
}

// Two ranks of this device, each with the whole system: all sums are twice as large, and nothing else changes
static void TestRanks(const Problem &q, const Outcome &ref)
{
  SpMVCudaKrylov            k[2];
  cudaStream_t              stream[2];
  std::vector<spmv::Mail *> places;
  Arrays                    first(q), second(q);
  Arrays *const             v[2] = {&first, &second};
  cudaIpcMemHandle_t        unused;
  for (int r = 0; r < 2; r++) {
    CHECK(SpMVCudaKrylovCreate(&k[r]));
    CHECK(cudaStreamCreateWithFlags(&stream[r], cudaStreamNonBlocking));
    CHECK(SpMVCudaKrylovGetOffer(k[r], 2, &unused));
    places.push_back((spmv::Mail *)(char *)k[r]->mail);
  }
  for (int r = 0; r < 2; r++) { // a process cannot open its own memory: what SpMVCudaKrylovOpen() does otherwise
    CHECK(Upload(k[r]->theirs, places, nullptr));
    k[r]->ranks.rank   = r;
    k[r]->ranks.mine   = places[r];
    k[r]->ranks.theirs = k[r]->theirs;
  }
  CHECK(cudaDeviceSynchronize());
  for (int r = 0; r < 2; r++) {
    const SpMVCudaCG cg = v[r]->On(q.cg);
    CHECK(SpMVCudaCGBegin(k[r], &cg, stream[r]));
    CHECK(SpMVCudaCGDirection(k[r], stream[r]));
  }
  for (int n = 1; n <= ref.its + 2; n++) {
    for (int r = 0; r < 2; r++) CHECK(Iterate(q, *v[r], k[r], stream[r]));
  }
  for (int r = 0; r < 2; r++) {
    Outcome                o;
    const SpMVKrylovStatus s = Wait(k[r], stream[r]);
    o.reason                 = s.reason;
    o.its                    = s.its;
    for (int n = 1; n <= s.norms; n++) {
      PetscReal norm = -1;
      (void)SpMVCudaKrylovReadNorm(k[r], n, &norm);
      o.norm.push_back((double)norm / std::sqrt(2.0));
    }
    for (const Number &e : v[r]->x.Get()) o.x.push_back(Wide(e));
    Compare(q, o, ref, ways[PARTS]);
  }
  for (int r = 0; r < 2; r++) {
    CHECK(SpMVCudaKrylovDestroy(&k[r]));
    CHECK(cudaStreamDestroy(stream[r]));
  }
}

// ------------------------------------------------------------------------------------------------ cases

static const char *const pcs[]   = {"none", "points", "blocks", "applied"};
static const char *const norms[] = {"no norm", "preconditioned", "unpreconditioned", "natural"};

static Problem Make(const char *what, int n, SpMVKrylovPC pc, SpMVKrylovNorm norm, bool hermitian, double shift = 0)
{
  Problem q{what, Diagonals(what, n, hermitian, shift), {}, {}, {}};
  for (int r = 0; r < n; r++) q.b.push_back(Value());
  q.cg.n         = n;
  q.cg.bs        = pc == SPMV_KRYLOV_PC_BLOCKS || pc == SPMV_KRYLOV_PC_APPLIED ? (n % 7 == 0 ? 7 : n % 3 == 0 ? 3 : 1) : 1;
  q.d            = Blocks(n, q.cg.bs, hermitian);
  q.cg.pc        = pc;
  q.cg.norm      = norm;
  q.cg.hermitian = hermitian ? PETSC_TRUE : PETSC_FALSE;
  q.cg.early     = PETSC_TRUE;
  q.cg.until     = {PETSC_TRUE, PETSC_FALSE, (PetscReal)1e-4, (PetscReal)1e-30, (PetscReal)1e30, 8, 0, -1};
  return q;
}

static void TestProblem(const Problem &q, SpMVCudaKrylov k, cudaStream_t stream, bool parts)
{
  const Outcome ref = Reference(q), look = Solve(q, PLAIN, k, stream);
  Compare(q, look, ref, ways[PLAIN]);
  for (Way way : {AHEAD, OUTSIDE, PLAIN}) TestSame(q, look, Solve(q, way, k, stream));
  if (parts && ref.reason == SPMV_KRYLOV_ITS) TestRanks(q, ref); // no tolerance that sums twice as large would miss
}

// Every preconditioner with every norm, on few and many rows
static void TestMethods(SpMVCudaKrylov k, cudaStream_t stream, bool quick)
{
  for (int n : {1, 3, 252, 5250, quick ? 5251 : 600000}) {
    for (int pc = 0; pc < 4; pc++) {
      for (int norm = 0; norm < 4; norm++) {
        for (bool hermitian : {true, false}) {
          static char what[128];
          snprintf(what, sizeof(what), "%d rows, %s, %s%s", n, pcs[pc], norms[norm], hermitian ? "" : ", symmetric");
          Problem q = Make(what, n, (SpMVKrylovPC)pc, (SpMVKrylovNorm)norm, hermitian);
          if (n <= 3) q.cg.until.max_it = 1; // more would divide by what is left after rounding
          TestProblem(q, k, stream, n < 1000);
          q.cg.early = PETSC_FALSE;
          TestSame(q, Solve(q, PLAIN, k, stream), Solve(q, AHEAD, k, stream));
        }
      }
    }
  }
}

// Every way to end
static void TestEnds(SpMVCudaKrylov k, cudaStream_t stream)
{
  const auto test = [&](const char *what, SpMVKrylovReason reason, std::function<void(Problem &)> change, double shift = 0,
                        SpMVKrylovPC pc = SPMV_KRYLOV_PC_NONE) {
    Problem q = Make(what, 1000, pc, SPMV_KRYLOV_NORM_PRECONDITIONED, true, shift);
    change(q);
    Expect(Reference(q).reason == reason, q.A, what, "reference", "the way to end that is meant");
    TestProblem(q, k, stream, false);
  };
  test("rtol", SPMV_KRYLOV_RTOL, [](Problem &q) { q.cg.until.ttol = (PetscReal)0.3; });
  test("atol", SPMV_KRYLOV_ATOL, [](Problem &q) { q.cg.until.ttol = q.cg.until.abstol = (PetscReal)0.3; });
  test("dtol", SPMV_KRYLOV_DTOL, [](Problem &q) {
    q.cg.until.dtol    = (PetscReal)1e-3;
    q.cg.until.chknorm = 1;
  });
  test("enough", SPMV_KRYLOV_ENOUGH, [](Problem &q) {
    q.cg.until.enough = PETSC_TRUE;
    q.cg.until.max_it = 4;
  });
  test("its", SPMV_KRYLOV_ITS, [](Problem &q) { q.cg.until.max_it = 4; });
  test("one", SPMV_KRYLOV_ITS, [](Problem &q) { q.cg.until.max_it = 0; });
  test("least", SPMV_KRYLOV_RTOL, [](Problem &q) {
    q.cg.until.ttol   = 30;
    q.cg.until.min_it = 5;
  });
  test("check", SPMV_KRYLOV_RTOL, [](Problem &q) {
    q.cg.until.ttol    = 30;
    q.cg.until.chknorm = 5;
  });
  test("host", SPMV_KRYLOV_ITS, [](Problem &q) { q.cg.until.test = PETSC_FALSE; });
  test("zero", SPMV_KRYLOV_ZERO, [](Problem &q) { q.b.assign(q.b.size(), Number(0)); });
  test("nan", SPMV_KRYLOV_NAN_DOT, [](Problem &q) { q.b[77] = Number(NAN); });
  test("inf", SPMV_KRYLOV_NAN_DOT, [](Problem &q) { q.A.a[q.A.a.size() / 2] = Number(INFINITY); });
  test(
      "matrix", SPMV_KRYLOV_INDEFINITE_MAT, [](Problem &) {}, -2.4);
#if !defined(PETSC_USE_COMPLEX)
  test(
      "preconditioner", SPMV_KRYLOV_INDEFINITE_PC,
      [](Problem &q) {
        for (int i = 0; i < q.cg.n; i += 3) q.d[i] = (Number)-0.3;
      },
      0, SPMV_KRYLOV_PC_POINTS);
#endif
  test("negative", SPMV_KRYLOV_ITS, [](Problem &q) {
    for (Number &a : q.A.a) a = -a;
    q.cg.until.ttol = 0;
  });
}

// ------------------------------------------------------------------------------------------------ p'Ap as the epilogue of a product

static void TestEpilogue(Matrix A, bool fused, SpMVCudaKernel kernel, bool single, bool hermitian, SpMVCudaKrylov k, cudaStream_t stream)
{
  std::vector<Number> p(A.n), separate, again;
  std::vector<Wide>   ref;
  std::vector<double> size;
  SELLPParams         params = {};
  SpMVCudaStore       store;
  SpMVCudaCG          cg = {};
  spmv::State         s, t;
  Wide                dot   = 0;
  double              bound = 0;
  PetscBool           done;
  for (auto &v : A.a) v = Value();
  for (auto &v : p) v = Value();
  params.common.compress = 1;
  params.common.single   = single ? PETSC_TRUE : PETSC_FALSE;
  Device<int>    i(A.i), j(A.j);
  Device<Number> a(A.a), dp(p), w(A.m), x(A.n), r(p);
  SpMVCudaCSR    csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  CHECK(SpMVCudaSELLPSetUp(&csr, &params, kernel, PETSC_FALSE, stream, &store));
  CHECK(SpMVCudaFill(store, &csr, stream));
  CHECK(SpMVCudaMult(store, SPMVCUDA_MULT, P(dp.p), NULL, (PetscScalar *)w.p, stream));
  CHECK(cudaStreamSynchronize(stream));
  separate = w.Get();
  cg.n     = A.n;
  cg.bs    = 1;
  cg.x     = (PetscScalar *)x.p;
  cg.r     = (PetscScalar *)r.p;
  cg.p     = (PetscScalar *)dp.p;
  cg.w = cg.z  = (PetscScalar *)w.p;
  cg.hermitian = hermitian ? PETSC_TRUE : PETSC_FALSE;
  cg.early     = PETSC_TRUE;
  for (int turn = 0; turn < 3; turn++) {
    w.Poison();
    CHECK(SpMVCudaCGBegin(k, &cg, stream));
    CHECK(SpMVCudaCGMult(k, store, stream, &done));
    CHECK(cudaStreamSynchronize(stream));
    Expect((bool)done == fused, A, "epilogue", "any", "the product has one");
    if (!done) break;
    again = w.Get();
    CHECK(cudaMemcpy(&s, (spmv::State *)k->state, sizeof(s), cudaMemcpyDeviceToHost));
    Expect(!memcmp((void *)again.data(), (void *)separate.data(), again.size() * sizeof(Number)), A, "epilogue", "any", "the product has the same bits");
    if (turn) Expect(!memcmp((void *)&s.dpi, (void *)&t.dpi, sizeof(s.dpi)), A, "epilogue", "any", "the inner product has the same bits");
    t = s;
  }
  CHECK(SpMVCudaDestroy(&store));
  if (!fused) return;
  for (int row = 0; row < A.m; row++) {
#if defined(PETSC_USE_COMPLEX)
    dot += Wide(p[row]) * (hermitian ? std::conj(Wide(separate[row])) : Wide(separate[row]));
#else
    dot += Wide(p[row]) * Wide(separate[row]);
#endif
    bound += std::abs(Wide(p[row]) * Wide(separate[row]));
  }
  Number value;
  memcpy((void *)&value, &s.dpi, sizeof(value));
  Expect(std::abs(Wide(value) - dot) <= (sizeof(PetscReal) == 8 ? 1e-13 : 1e-5) * bound, A, "epilogue", "any", "the inner product");
}

static void TestEpilogues(SpMVCudaKrylov k, cudaStream_t stream)
{
  SpMVCudaDiagonalsLeast = 0; // small matrices reach all kernels
  for (bool hermitian : {true, false}) {
    for (int N : {3, 12, 40}) {
      TestEpilogue(Grid("7 points", N, 7, 1, 100), true, SPMVCUDA_KERNEL_AUTO, false, hermitian, k, stream);
      TestEpilogue(Grid("7 points, slices", N, 7, 1, 100), true, SPMVCUDA_KERNEL_SLICES, false, hermitian, k, stream);
    }
    for (int unknowns = 2; unknowns <= 6; unknowns++) {
      TestEpilogue(Grid("nodes", 7, 7, unknowns, 100), true, SPMVCUDA_KERNEL_AUTO, false, hermitian, k, stream);
      TestEpilogue(Grid("nodes, slices", 7, 27, unknowns, 60), true, SPMVCUDA_KERNEL_SLICES, false, hermitian, k, stream);
    }
    TestEpilogue(Grid("27 points", 9, 27, 1, 100), true, SPMVCUDA_KERNEL_AUTO, false, hermitian, k, stream);
    TestEpilogue(Build("9 diagonals", 5000, 5000,
                       [](int r, Row &row) {
                         for (int c = r - 4; c <= r + 4; c++) row.push_back(c);
                       }),
                 true, SPMVCUDA_KERNEL_AUTO, false, hermitian, k, stream);
    TestEpilogue(Lengths("up to 12 entries", 7001, 7001, [](int) { return 1 + Int(12); }), true, SPMVCUDA_KERNEL_AUTO, false, hermitian, k, stream);
    TestEpilogue(Lengths("longer rows", 3001, 3001, [](int) { return 1 + Int(300); }), true, SPMVCUDA_KERNEL_AUTO, false, hermitian, k, stream);
    TestEpilogue(Lengths("rows in parts", 20000, 20000, [](int r) { return r == 7 ? 15000 : 1 + Int(6); }), false, SPMVCUDA_KERNEL_AUTO, false, hermitian, k,
                 stream);
    TestEpilogue(Lengths("mostly empty", 3000, 3000, [](int r) { return r % 50 == 3 ? 1 + Int(3) : 0; }), false, SPMVCUDA_KERNEL_AUTO, false, hermitian, k,
                 stream);
    TestEpilogue(Grid("single", 12, 7, 1, 100), false, SPMVCUDA_KERNEL_AUTO, true, hermitian, k, stream);
    TestEpilogue(Grid("the paper's kernel", 12, 7, 1, 100), false, SPMVCUDA_KERNEL_PAPER, false, hermitian, k, stream);
  }
}

int main(int argc, char **argv)
{
  const bool     quick = argc > 1 && strcmp(argv[1], "full");
  SpMVCudaKrylov k;
  cudaStream_t   stream;
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK(cudaStreamCreate(&stream));
  CHECK(SpMVCudaKrylovCreate(&k));
  TestEpilogues(k, stream);
  TestEnds(k, stream);
  TestMethods(k, stream, quick);
  CHECK(SpMVCudaKrylovDestroy(&k));
  CHECK(cudaStreamDestroy(stream));
  if (failures)
    printf("%d of %d checks failed\n", failures, checks);
  else if (argc > 1 && !strcmp(argv[argc - 1], "count"))
    printf("%d checks passed\n", checks);
  return failures != 0;
}
