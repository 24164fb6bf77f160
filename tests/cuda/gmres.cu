/*
  Tests of GMRES's kernels, without PETSc: every preconditioner on either side, short and long cycles, every way to end
  and to sum, compared with the method on the host. Prints nothing on success. The arguments are those of `krylov`.
*/
#include "krylov.cuh"
#include "core/cuda/krylov/gmres.h"

struct Settings : SpMVKrylovSolve, SpMVCudaGMRESCycle {
  int length;
};
using Problem = ProblemOf<Settings>;
using Vectors = std::vector<std::vector<Wide>>;

// ------------------------------------------------------------------------------------------------ the method on the
// host

static Wide Conjugate(Wide a)
{
#if defined(PETSC_USE_COMPLEX)
  return std::conj(a);
#else
  return a;
#endif
}

static double Norm(const std::vector<Wide> &x)
{
  return std::sqrt(std::real(Dot(true, x, x)));
}

static bool OnLeft(const Problem &q)
{
  return (bool)q.set.left;
}

// The first residual
static std::vector<Wide> Residual(const Problem &q)
{
  const std::vector<Wide> b(q.b.begin(), q.b.end());
  return OnLeft(q) ? Apply(q, b) : b;
}

// B A p or A B p
static std::vector<Wide> Multiplied(const Problem &q, const std::vector<Wide> &p)
{
  const std::vector<Wide> from = OnLeft(q) ? p : Apply(q, p);
  std::vector<Wide>       to(p.size(), Wide(0));
  for (int row = 0; row < q.A.m; row++) {
    for (int k = q.A.i[row]; k < q.A.i[row + 1]; k++) to[row] += Wide(q.A.a[k]) * from[q.A.j[k]];
  }
  return OnLeft(q) ? Apply(q, to) : to;
}

// Makes w orthogonal to the vectors; returns the coefficients
static std::vector<Wide> Orthogonalize(const Vectors &v, bool again, std::vector<Wide> &w)
{
  std::vector<Wide> h(v.size() + 1, Wide(0));
  for (int turn = 0; turn < 1 + again; turn++) {
    std::vector<Wide> more;
    for (const auto &u : v) more.push_back(Dot(true, w, u));
    for (size_t j = 0; j < v.size(); j++) {
      h[j] += more[j];
      for (size_t i = 0; i < w.size(); i++) w[i] -= more[j] * v[j][i];
    }
  }
  h[v.size()] = Norm(w);
  return h;
}

// The solution of the triangular system, times the vectors
static std::vector<Wide> Combine(const Problem &q, const Vectors &r, std::vector<Wide> g, const Vectors &v)
{
  std::vector<Wide> x(q.b.size(), Wide(0));
  for (size_t j = r.size(); j-- > 0;) {
    g[j] /= r[j][j];
    for (size_t i = 0; i < j; i++) g[i] -= g[j] * r[j][i];
    for (size_t i = 0; i < x.size(); i++) x[i] += g[j] * v[j][i];
  }
  return OnLeft(q) ? x : Apply(q, x);
}

// A cycle of KSPSolve_GMRES(), starting from x = 0
static Outcome Reference(const Problem &q)
{
  Outcome           o;
  Vectors           v(1, Residual(q)), r;
  std::vector<Wide> g(1, Norm(v[0])), cosine, sine;
  for (Wide &a : v[0]) a /= g[0];
  for (int k = 0; k < q.set.length && !o.reason; k++) {
    std::vector<Wide> w = Multiplied(q, v[k]), h = Orthogonalize(v, q.set.again, w);
    const double      norm = std::real(h[k + 1]);
    o.its                  = k + 1;
    if (Bad(h[0]) || Bad(h[k + 1])) {
      o.reason = Bad(h[0]) ? SPMV_KRYLOV_NAN_DOT : SPMV_KRYLOV_NAN_NORM;
      break;
    }
    for (int j = 0; j < k; j++) {
      const Wide t = h[j];
      h[j]         = Conjugate(cosine[j]) * t + sine[j] * h[j + 1];
      h[j + 1]     = cosine[j] * h[j + 1] - sine[j] * t;
    }
    const double length = std::hypot(std::abs(h[k]), norm), before = std::abs(g[k]);
    const bool   happy = norm < std::min(norm / before, (double)q.set.haptol);
    if (!happy && length == 0) {
      o.norm.push_back(before);
      o.reason = SPMV_KRYLOV_NULL;
      break;
    }
    cosine.push_back(h[k] / length);
    sine.push_back(norm / length);
    g.push_back(-sine[k] * g[k]);
    g[k] *= Conjugate(cosine[k]);
    h[k] = Conjugate(cosine[k]) * h[k] + sine[k] * h[k + 1];
    r.push_back(h);
    for (Wide &a : w) a /= norm;
    v.push_back(w);
    o.norm.push_back(happy ? 0 : std::abs(g[k + 1]));
    o.reason = Test(q.set, k + 1, o.norm[k]);
    if (happy && !o.reason) o.reason = SPMV_KRYLOV_HAPPY;
  }
  if (!o.reason) o.its++;
  o.x = Combine(q, r, g, v);
  return o;
}

// ------------------------------------------------------------------------------------------------ on the device

// A rank's data
struct Rank {
  const Problem             &q;
  SpMVCudaKrylov             krylov;
  cudaStream_t               stream;
  SpMVCudaGMRES              gmres;
  Device<int>                i, j;
  Device<Number>             a, d, basis, next, product, x;
  std::vector<PetscScalar *> v;

  bool Is(SpMVKrylovPC pc, bool left) const
  {
    return q.set.pc == pc && OnLeft(q) == left;
  }
  Rank(const Problem &q, SpMVCudaKrylov krylov, cudaStream_t stream)
      : q(q), krylov(krylov), stream(stream), i(q.A.i), j(q.A.j), a(q.A.a), d(q.d),
        basis(q.b.size() * (size_t)(q.set.length + 1)), next(q.b.size()), product(q.b.size()),
        x(std::vector<Number>(q.b.size() + 1))
  {
    for (int k = 0; k <= q.set.length; k++) v.push_back((PetscScalar *)(basis.p + (size_t)k * q.b.size()));
    CHECK(SpMVCudaGMRESCreate(krylov, q.set.length, &gmres));
  }
  // more: by which the norm of the first residual is larger, because of the other ranks
  void Begin(double more)
  {
    Settings            cycle = q.set;
    std::vector<Number> first;
    const double        norm = Norm(Residual(q)) * more;
    for (const Wide &e : Residual(q)) first.push_back(Number(q.set.normalized ? e / norm : e));
    CHECK(cudaMemcpy(basis.p, first.data(), first.size() * sizeof(Number), cudaMemcpyHostToDevice));
    cycle.beta    = (PetscReal)norm;
    cycle.d       = (const Scalar *)d.p;
    cycle.next    = (Scalar *)next.p;
    cycle.product = (Scalar *)product.p;
    CHECK(cudaDeviceSynchronize());
    if (!OnLeft(q)) CHECK(Precondition((Number *)v[0], next.p));
    CHECK(SpMVCudaGMRESBegin(gmres, &cycle, &cycle, stream));
  }
  cudaError_t Precondition(const Number *from, Number *to)
  {
    SPMV_LAUNCH(q.set.n, 128, stream, ApplyBlocks, q.set.n, q.set.bs, (const Scalar *)d.p, (const Scalar *)from,
                (Scalar *)to);
    return cudaSuccess;
  }
  void Step(int k)
  {
    Number    *from = (Number *)v[k], *to = (Number *)v[k + 1];
    const bool applied = q.set.pc == SPMV_KRYLOV_PC_APPLIED, none = q.set.pc == SPMV_KRYLOV_PC_NONE;
    if (applied && !OnLeft(q)) CHECK(Precondition(from, next.p));
    if (!OnLeft(q) && !none) from = next.p;
    if (Is(SPMV_KRYLOV_PC_BLOCKS, true) || Is(SPMV_KRYLOV_PC_APPLIED, true)) to = product.p;
    CHECK(Product(q.set.n, i, j, a, from, to, stream));
    if (Is(SPMV_KRYLOV_PC_APPLIED, true)) CHECK(Precondition(to, (Number *)v[k + 1]));
    CHECK(SpMVCudaGMRESStep(gmres, k, v.data(), stream));
  }
  Outcome End(double more)
  {
    const SpMVKrylovStatus s = Wait(krylov, stream);
    Outcome                o;
    PetscBool              singular;
    // an array of the program's, which may begin between two complex numbers
    PetscScalar *const solution = (PetscScalar *)((PetscReal *)x.p + 1);
    o.reason                    = s.reason;
    o.its                       = s.its;
    for (int n = 1; n <= s.norms; n++) {
      PetscReal norm = -1;
      if (!SpMVCudaKrylovReadNorm(krylov, n, &norm)) o.its = -1; // the norm must be available
      o.norm.push_back((double)norm / more);
    }
    const int complete = s.norms - (s.reason == SPMV_KRYLOV_NULL);
    if (complete) {
      CHECK(SpMVCudaGMRESSolve(gmres, complete, stream, &singular));
      Expect(!singular, q.A, q.what, "any", "the triangular matrix is regular");
      CHECK(SpMVCudaGMRESCorrect(gmres, complete, v.data(), PETSC_FALSE, solution, stream));
    }
    std::vector<Number> is(q.b.size());
    CHECK(cudaMemcpyAsync(is.data(), solution, is.size() * sizeof(Number), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (const Number &e : is) o.x.push_back(Wide(e));
    if (q.set.pc == SPMV_KRYLOV_PC_APPLIED && !OnLeft(q)) o.x = Apply(q, o.x);
    CHECK(SpMVCudaGMRESDestroy(&gmres));
    return o;
  }
};

static Outcome Solve(const Problem &q, Way way, SpMVCudaKrylov k, cudaStream_t stream)
{
  int  calls = 0;
  Rank r(q, k, stream);
  if (way == OUTSIDE) SpMVCudaKrylovSetAllReduce(k, Outside, &calls);
  r.Begin(1);
  for (int n = 0; n < q.set.length; n++) {
    r.Step(n);
    if (way == PLAIN || q.set.normalized || n == q.set.length - 1)
      CHECK(SpMVCudaGMRESFinish(r.gmres, n, r.v.data(), stream));
    if (way == PLAIN && Wait(k, stream).reason) break;
  }
  Outcome o = r.End(1);
  Expect(way != OUTSIDE || calls > 0, q.A, q.what, ways[way], "the sums went through the function");
  SpMVCudaKrylovSetAllReduce(k, nullptr, nullptr);
  return o;
}

// Each of two ranks has the whole system: the norm of the first residual is larger, and nothing else changes
static void TestBoth(const Problem &q, const Outcome &ref)
{
  const double   more = std::sqrt(2.0);
  SpMVCudaKrylov k[2];
  cudaStream_t   stream[2];
  CreateRanks(k, stream);
  {
    Rank        first(q, k[0], stream[0]), second(q, k[1], stream[1]);
    Rank *const both[2] = {&first, &second};
    for (Rank *r : both) r->Begin(more);
    for (int n = 0; n < q.set.length; n++) {
      for (Rank *r : both) r->Step(n);
      if (q.set.normalized || n == q.set.length - 1) {
        for (Rank *r : both) CHECK(SpMVCudaGMRESFinish(r->gmres, n, r->v.data(), r->stream));
      }
    }
    for (Rank *r : both) Compare(q, r->End(more), ref, ways[PARTS]);
  }
  DestroyRanks(k, stream);
}

static void TestCycle(const Problem &q, SpMVCudaKrylov k, cudaStream_t stream, bool ranks)
{
  const Outcome ref = Reference(q), look = Solve(q, PLAIN, k, stream);
  Compare(q, look, ref, ways[PLAIN]);
  for (Way way : {AHEAD, OUTSIDE, PLAIN}) TestSame(q, look, Solve(q, way, k, stream));
  if (ranks && !ref.reason) TestBoth(q, ref);
}

// ------------------------------------------------------------------------------------------------ cases

static Problem Make(const char *what, int n, int length, SpMVKrylovPC pc, bool left)
{
  Problem q = Unsymmetric<Problem>(what, n);
  SetPreconditioner(&q, n, pc, false, 2);
  q.set.norm       = SPMV_KRYLOV_NORM_PRECONDITIONED;
  q.set.left       = left ? PETSC_TRUE : PETSC_FALSE;
  q.set.normalized = pc == SPMV_KRYLOV_PC_APPLIED ? PETSC_TRUE : PETSC_FALSE;
  q.set.haptol     = (PetscReal)1e-30;
  q.set.until      = {PETSC_TRUE, PETSC_FALSE, (PetscReal)1e-30, (PetscReal)1e-35, (PetscReal)1e30, 1000, 0, -1};
  q.set.length     = length;
  return q;
}

// Few and many rows; cycles with more vectors than a launch has
static void TestMethods(SpMVCudaKrylov k, cudaStream_t stream, bool quick)
{
  const int longest = sizeof(PetscReal) == 8 ? 37 : 5;
  for (int n : quick ? std::vector<int>{4, 5250} : std::vector<int>{4, 252, 513, 5250, 600000}) {
    for (int pc = 0; pc < 4; pc++) {
      for (bool left : {true, false}) {
        for (int length : {1, n == 4 ? 2 : 5, n == 4 || n == 600000 ? 2 : longest}) {
          static char what[128];
          snprintf(what, sizeof(what), "%d rows, %s%s, %d iterations", n, pcs[pc], left ? "" : ", right", length);
          if (!Selected(what)) continue;
          Problem q = Make(what, n, length, (SpMVKrylovPC)pc, left);
          TestCycle(q, k, stream, n < 1000 && !quick);
          q.set.again = PETSC_TRUE;
          TestCycle(q, k, stream, n < 1000 && !quick);
        }
      }
    }
  }
}

// The most numbers of a sum over ranks
static void TestLongest(SpMVCudaKrylov k, cudaStream_t stream)
{
  if (!Selected("the longest cycle")) return;
  Problem q = Make("the longest cycle", 700, SPMV_GMRES_MOST, SPMV_KRYLOV_PC_POINTS, true);
  for (int r = 0; r < q.set.n; r++) {
    for (int p = q.A.i[r]; p < q.A.i[r + 1]; p++)
      q.A.a[p] = Number((PetscReal)(q.A.j[p] == r - 1 ? 1 : q.A.j[p] == r ? 1e-3 : 0));
    q.b[r] = Number((PetscReal)(r == 0));
    q.d[r] = Number((PetscReal)1);
  }
  TestCycle(q, k, stream, true);
}

// Every way to end
static void TestEnds(SpMVCudaKrylov k, cudaStream_t stream)
{
  const auto test = [&](const char *what, SpMVKrylovReason reason, std::function<void(Problem &)> change) {
    if (!Selected(what)) return;
    Problem q = Make(what, 1200, 4, SPMV_KRYLOV_PC_NONE, true);
    change(q);
    Expect(Reference(q).reason == reason, q.A, what, "reference", "the way to end that is meant");
    TestCycle(q, k, stream, false);
  };
  const auto all = [](Problem &q, double a) {
    for (int r = 0; r < q.set.n; r++) {
      for (int p = q.A.i[r]; p < q.A.i[r + 1]; p++) q.A.a[p] = Number((PetscReal)(q.A.j[p] == r ? a : 0));
      q.b[r] = Number((PetscReal)(r == 5 ? 4 : 0));
    }
  };
  test("rtol", SPMV_KRYLOV_RTOL, [](Problem &q) { q.set.until.ttol = 3; });
  test("atol", SPMV_KRYLOV_ATOL, [](Problem &q) { q.set.until.ttol = q.set.until.abstol = 3; });
  test("dtol", SPMV_KRYLOV_DTOL, [](Problem &q) { q.set.until.dtol = (PetscReal)1e-3; });
  test("enough", SPMV_KRYLOV_ENOUGH, [](Problem &q) {
    q.set.until.enough = PETSC_TRUE;
    q.set.until.max_it = 3;
  });
  test("least", SPMV_KRYLOV_RTOL, [](Problem &q) {
    q.set.until.ttol   = 30;
    q.set.until.min_it = 3;
  });
  test("check", SPMV_KRYLOV_RTOL, [](Problem &q) {
    q.set.until.ttol    = 30;
    q.set.until.chknorm = 2;
  });
  test("the cycle", SPMV_KRYLOV_ITERATING, [](Problem &q) { q.set.until.test = PETSC_FALSE; });
  test("inf", SPMV_KRYLOV_NAN_DOT, [](Problem &q) { q.A.a[q.A.a.size() / 2] = Number(INFINITY); });
  test("exact", SPMV_KRYLOV_ATOL, [&](Problem &q) { all(q, 2); });
  test("zero", SPMV_KRYLOV_NULL, [&](Problem &q) { all(q, 0); });
}

int main(int argc, char **argv)
{
  return KrylovMain(
      argc, argv, [](SpMVCudaKrylov, bool, cudaStream_t) {},
      [](SpMVCudaKrylov k, bool quick, cudaStream_t stream) {
        TestEnds(k, stream);
        TestMethods(k, stream, quick);
        if (!quick && sizeof(PetscReal) == 8) TestLongest(k, stream);
      });
}
