/*
  Shared by the tests of the Krylov methods' kernels: systems, a solve on the device that is observed in several ways,
  and its comparison with a solve on the host.

  A method has settings S, and for ProblemOf<S>: Reference(), the method on the host; Start() and Iterate(), on the
  device. With KRYLOV_CASES=TEXT in the environment, only the cases whose name contains TEXT run, so that a few of them
  end under racecheck.
*/
#pragma once

#include "core/cuda/krylov/krylov.cuh"
#include "core/cuda/stores.cuh"
#include "common.cuh"

using spmv::Scalar;

static int selected = 0;

static bool Selected(const char *what)
{
  const char *only = getenv("KRYLOV_CASES");
  const bool  is   = !only || strstr(what, only);
  selected += is;
  return is;
}

// ------------------------------------------------------------------------------------------------ systems

static __global__ void Multiply(int n, const int *i, const int *j, const Scalar *a, const Scalar *x, Scalar *y)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (r >= n) return;
  Scalar sum = spmv::Num::zero();
  for (int q = i[r]; q < i[r + 1]; q++) sum = spmv::Num::fma(a[q], x[j[q]], sum);
  y[r] = sum;
}
static cudaError_t Product(int n, const Device<int> &i, const Device<int> &j, const Device<Number> &a, const Number *x,
                           Number *y, cudaStream_t stream)
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

template <class S> struct ProblemOf {
  const char         *what;
  Matrix              A;
  std::vector<Number> d, b;
  S                   set;
};

// least: the rows of a block where n is a multiple of neither 7 nor 3
template <class Problem> static void SetPreconditioner(Problem *q, int n, SpMVKrylovPC pc, bool hermitian, int least)
{
  q->set.n  = n;
  q->set.bs = pc == SPMV_KRYLOV_PC_BLOCKS || pc == SPMV_KRYLOV_PC_APPLIED ? (n % 7 == 0   ? 7
                                                                             : n % 3 == 0 ? 3
                                                                                          : least)
                                                                          : 1;
  q->d      = Blocks(n, q->set.bs, hermitian);
  q->set.pc = pc;
}

// Unsymmetric diagonals with a large main diagonal, and a right-hand side
template <class Problem> static Problem Unsymmetric(const char *what, int n)
{
  Problem q{what, Build(what, n, n, [](int r, Row &row) { row = {r - 2, r - 1, r, r + 1}; }), {}, {}, {}};
  for (int r = 0; r < n; r++) {
    for (int k = q.A.i[r]; k < q.A.i[r + 1]; k++)
      q.A.a[k] = q.A.j[k] == r ? Number((PetscReal)(3 + std::abs(Real()))) : Value();
    q.b.push_back(Value());
  }
  return q;
}

// ------------------------------------------------------------------------------------------------ on the host

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

template <class S> static std::vector<Wide> Apply(const ProblemOf<S> &p, const std::vector<Wide> &r)
{
  const int         n = p.set.n, bs = p.set.bs;
  std::vector<Wide> z = r;
  if (p.set.pc == SPMV_KRYLOV_PC_NONE) return z;
  for (int i = 0; i < n; i++) {
    z[i] = 0;
    for (int j = 0; j < bs; j++) z[i] += Wide(p.d[(size_t)j * (size_t)n + (size_t)i]) * r[i / bs * bs + j];
  }
  return z;
}

template <class S> static SpMVKrylovReason Test(const S &cg, int n, double norm)
{
  const SpMVKrylovTest &t = cg.until;
  if (!t.test) return SPMV_KRYLOV_ITERATING;
  if (t.enough && n >= t.max_it) return SPMV_KRYLOV_ENOUGH;
  if (cg.norm == SPMV_KRYLOV_NORM_NONE || n <= t.chknorm || n < t.min_it) return SPMV_KRYLOV_ITERATING;
  if (norm <= t.ttol) return norm < t.abstol ? SPMV_KRYLOV_ATOL : SPMV_KRYLOV_RTOL;
  return norm >= t.dtol ? SPMV_KRYLOV_DTOL : SPMV_KRYLOV_ITERATING;
}

// ------------------------------------------------------------------------------------------------ on the device

enum Way {
  PLAIN,
  AHEAD,   // all iterations are started before the host looks
  OUTSIDE, // a function adds the sums over the ranks
  PARTS    // two ranks of one device
};
static const char *const ways[] = {"look", "ahead", "sums outside", "two ranks"};

static cudaError_t Outside(void *ctx, PetscReal *, int, cudaStream_t)
{
  ++*(int *)ctx;
  return cudaSuccess;
}

// The arrays of one solve; the preconditioned right-hand side is in z
struct Arrays {
  Device<int>    i, j;
  Device<Number> a, d, x, r, z, p, r0, v, t, hat;
  template <class S>
  explicit Arrays(const ProblemOf<S> &q)
      : i(q.A.i), j(q.A.j), a(q.A.a), d(q.d), x(std::vector<Number>(q.b.size())), r(q.b), z(q.b.size()), p(q.b.size()),
        r0(q.b.size()), v(q.b.size()), t(q.b.size()), hat(q.b.size())
  {
    std::vector<Number> z0;
    for (const Wide &w : Apply(q, std::vector<Wide>(q.b.begin(), q.b.end()))) z0.push_back(Number(w));
    z.Set(z0);
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
template <class S>
static cudaError_t ApplyAll(const ProblemOf<S> &q, const Arrays &v, const Number *r, Number *z, cudaStream_t stream)
{
  SPMV_LAUNCH(q.set.n, 128, stream, ApplyBlocks, q.set.n, q.set.bs, (const Scalar *)v.d.p, (const Scalar *)r,
              (Scalar *)z);
  return cudaSuccess;
}

static SpMVKrylovStatus Wait(SpMVCudaKrylov k, cudaStream_t stream)
{
  CHECK(cudaStreamSynchronize(stream));
  return SpMVCudaKrylovGetStatus(k);
}

template <class S> static Outcome Solve(const ProblemOf<S> &q, Way way, SpMVCudaKrylov k, cudaStream_t stream)
{
  Outcome          o;
  Arrays           v(q);
  int              calls = 0;
  SpMVKrylovStatus s;
  if (way == OUTSIDE) SpMVCudaKrylovSetAllReduce(k, Outside, &calls);
  CHECK(Start(q, v, k, stream));
  s = Wait(k, stream);
  for (int n = 1; way == AHEAD ? n <= q.set.until.max_it + 3 : !s.reason; n++) {
    CHECK(Iterate(q, v, k, stream));
    if (way != AHEAD) s = Wait(k, stream);
  }
  s        = Wait(k, stream);
  o.reason = s.reason;
  o.its    = s.its;
  for (int n = 1; n <= s.norms; n++) {
    PetscReal norm = -1;
    if (!SpMVCudaKrylovReadNorm(k, n, &norm)) o.its = -1; // the norm must be available
    o.norm.push_back((double)norm);
  }
  for (const Number &e : v.x.Get()) o.x.push_back(Wide(e));
  Expect(way != OUTSIDE || calls > 0, q.A, q.what, ways[way], "the sums went through the function");
  SpMVCudaKrylovSetAllReduce(k, nullptr, nullptr);
  return o;
}

static bool Near(double a, double b, double size)
{
  return std::abs(a - b) <= (sizeof(PetscReal) == 8 ? 1e-9 : 2e-2) * (std::abs(b) + size) ||
         (std::isnan(a) && std::isnan(b));
}

// The residual of a single equation is zero after one iteration, or it is a rounding error, and then the reason for
// convergence differs
template <class S> static bool SameReason(const ProblemOf<S> &q, int a, int b)
{
  auto converged = [](int reason) {
    return reason == SPMV_KRYLOV_RTOL || reason == SPMV_KRYLOV_ATOL || reason == SPMV_KRYLOV_ZERO;
  };
  return a == b || (q.A.m == 1 && converged(a) && converged(b));
}

template <class S> static void Compare(const ProblemOf<S> &q, const Outcome &o, const Outcome &ref, const char *way)
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

// Each solve gives the same bits, in whatever way the host observes it
template <class S> static void TestSame(const ProblemOf<S> &q, const Outcome &a, const Outcome &b)
{
  Expect(a.reason == b.reason && a.its == b.its && a.norm == b.norm && a.x == b.x, q.A, q.what, "any", "the same bits");
}

// Two ranks on this device
static void CreateRanks(SpMVCudaKrylov k[2], cudaStream_t stream[2])
{
  std::vector<spmv::Mail *> places;
  cudaIpcMemHandle_t        unused;
  for (int r = 0; r < 2; r++) {
    CHECK(SpMVCudaKrylovCreate(PETSC_TRUE, &k[r]));
    CHECK(cudaStreamCreateWithFlags(&stream[r], cudaStreamNonBlocking));
    CHECK(SpMVCudaKrylovGetOffer(k[r], 2, &unused));
    places.push_back((spmv::Mail *)(char *)k[r]->mail);
  }
  for (int r = 0; r < 2; r++) { // a process cannot open its own memory, so this replaces SpMVCudaKrylovOpen()
    CHECK(Upload(k[r]->theirs, places, nullptr));
    k[r]->ranks.rank   = r;
    k[r]->ranks.mine   = places[r];
    k[r]->ranks.theirs = k[r]->theirs;
  }
  CHECK(cudaDeviceSynchronize());
}
static void DestroyRanks(SpMVCudaKrylov k[2], cudaStream_t stream[2])
{
  for (int r = 0; r < 2; r++) {
    CHECK(SpMVCudaKrylovDestroy(&k[r]));
    CHECK(cudaStreamDestroy(stream[r]));
  }
}

// Each of two ranks has the whole system: all sums are twice as large, and nothing else changes
template <class S> static void TestRanks(const ProblemOf<S> &q, const Outcome &ref)
{
  SpMVCudaKrylov k[2];
  cudaStream_t   stream[2];
  Arrays         first(q), second(q);
  Arrays *const  v[2] = {&first, &second};
  CreateRanks(k, stream);
  for (int r = 0; r < 2; r++) CHECK(Start(q, *v[r], k[r], stream[r]));
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
  DestroyRanks(k, stream);
}

// ranks: also test the sums of two ranks, whose kernels wait for each other. This is not possible under a sanitizer,
// which may run them one after the other
template <class S> static void TestProblem(const ProblemOf<S> &q, SpMVCudaKrylov k, cudaStream_t stream, bool ranks)
{
  const Outcome ref = Reference(q), look = Solve(q, PLAIN, k, stream);
  Compare(q, look, ref, ways[PLAIN]);
  for (Way way : {AHEAD, OUTSIDE, PLAIN}) TestSame(q, look, Solve(q, way, k, stream));
  // without tolerances, which would have a different effect with sums twice as large
  if (ranks && ref.reason == SPMV_KRYLOV_ITS) TestRanks(q, ref);
}

// ------------------------------------------------------------------------------------------------ cases

static const char *const pcs[]   = {"none", "points", "blocks", "applied"};
static const char *const norms[] = {"no norm", "preconditioned", "unpreconditioned", "natural"};

// ------------------------------------------------------------------------------------------------ the program

template <class Epilogues, class Solves>
static int KrylovMain(int argc, char **argv, Epilogues epilogues, Solves solves)
{
  const bool     quick = argc > 1 && strcmp(argv[1], "full");
  SpMVCudaKrylov k;
  cudaStream_t   stream;
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK(cudaStreamCreate(&stream));
  CHECK(SpMVCudaKrylovCreate(PETSC_TRUE, &k));
  for (int parts : {0, 1 << 30}) { // both ways to add the sums of a product
    spmv::limits.krylov_partials = parts;
    spmv::limits.tile_least      = 0;
    spmv::limits.tile_lines      = parts ? 0 : 33; // tiles, or none
    epilogues(k, quick, stream);
  }
  solves(k, quick, stream);
  if (!selected) {
    printf("no case has the name of KRYLOV_CASES\n");
    failures++;
  }
  CHECK(SpMVCudaKrylovDestroy(&k));
  CHECK(cudaStreamDestroy(stream));
  return Finish(argc, argv);
}
