/*
  The stabilized biconjugate gradient method on the device, equivalent to KSPBCGS in exact arithmetic.

  KSPBCGS computes rho = (r, r0) from r. Here rho is (s, r0) - omega (t, r0), and the second product's kernel computes
  these sums. All scalars of the rest of the iteration are then known, and one kernel computes x, r and the next p. The
  rounding is the same, because r = s - omega t.

  s overwrites r. Besides the matrix, an iteration reads and writes p, r0, v (first product); r, v, s (half); s, r0, t
  (second product); it reads x, p, s, t, v and writes x, r, p (update). A left diagonal preconditioner is applied to the
  results of the products when these are written, a right one to s and p.
*/
#include "krylov.cuh"
#include "core/cuda/stores.cuh"

using namespace spmv;

namespace {

constexpr int BLOCK = KRYLOV_BLOCK;
// number of sums of the second product; the first product has Dots::ONE, other kernels have one
constexpr int MANY = Dots::NUMBERS;

// ------------------------------------------------------------------------------------------------ what one thread
// decides

enum Decision { START, FIRST_PRODUCT, SECOND_PRODUCT, UPDATE };

__device__ void AfterFirst(State &s, Scalar d)
{
  if (IsBad(d))
    End(s, SPMV_KRYLOV_NAN_DOT);
  else if (IsZero(d))
    End(s, SPMV_KRYLOV_BREAKDOWN);
  else
    s.a = Divided(s.rho, d);
}

__device__ void AfterSecond(State &s, const PetscReal v[])
{
  const PetscReal tt  = v[3 * REALS];
  const Scalar    old = s.rho;
  Scalar          st  = ScalarOf(v);
  if (tt == 0) return End(s, SPMV_KRYLOV_SINGULAR);
#pragma unroll
  for (int k = 0; k < REALS; k++) ((PetscReal *)&st)[k] /= tt;
  s.omega   = st;
  s.betaold = old;
  s.rho     = Num::fma(Negated(st), Num::conj(ScalarOf(v + REALS)), ScalarOf(v + 2 * REALS));
  s.b       = Multiplied(Divided(s.rho, old), Divided(s.a, st));
}

__device__ void AfterUpdate(const BCGSArgs &g, State &s, PetscReal square)
{
  const bool none = g.norm == SPMV_KRYLOV_NORM_NONE;
  if (!none && g.until.chknorm < s.i + 2) s.dp = sqrt(square);
  ReportNorm(s.i + 1, s.dp, g.progress);
  if (IsBad(s.dp)) return End(s, SPMV_KRYLOV_NAN_NORM);
  s.norms  = s.i + 1;
  s.reason = Converged(g.until, none, s.i + 1, s.dp);
  if (s.reason != SPMV_KRYLOV_ITERATING) return;
  if (IsZero(s.betaold)) return End(s, SPMV_KRYLOV_BREAKDOWN);
  if (++s.i >= g.until.max_it) return End(s, SPMV_KRYLOV_ITS);
  s.its = s.i + 1;
}

} // namespace

__device__ void BCGSArgs::Decide(State &s, int decision, const PetscReal v[]) const
{
  if (decision == START) {
    *(PetscReal *)&s.rho = v[0]; // (r, r)
    s.its                = 1;
  }
  if (decision == FIRST_PRODUCT) AfterFirst(s, Num::conj(ScalarOf(v)));
  if (decision == SECOND_PRODUCT) AfterSecond(s, v);
  if (decision == UPDATE) AfterUpdate(*this, s, v[0]);
  *state = s;
  if (decision == START || decision == UPDATE || s.reason != SPMV_KRYLOV_ITERATING) ReportStatus(s, progress);
}

// ------------------------------------------------------------------------------------------------ kernels; their
// signature is that of Kernel

namespace {

// r0 = r and, unless the caller has computed p, p = r
SPMV_KRYLOV_KERNEL start(BCGSArgs g, bool direction, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        v[1] = {};
  Scalar           r[BATCH];
  if (!BeginKernel(g, s)) return;
  ForEach(
      g.n, [&](int u, unsigned i) { r[u] = g.r[i]; },
      [&](int u, unsigned i) {
        g.r0[i] = r[u];
        if (direction) g.p[i] = r[u];
        v[0] += Square(r[u]);
      });
  if (AddAll(g, v)) g.Decide(s, START, v);
}

// y = B y for the product y (v or, with SECOND, t), and its sums: (r0, v) or those of Dots
template <SpMVKrylovPC PC, bool SECOND>
SPMV_KRYLOV_KERNEL separate(BCGSArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        sum[SECOND ? MANY : Dots::ONE] = {};
  Scalar           y[BATCH], r0[BATCH], r[BATCH];
  Scalar *const    product = SECOND ? g.t : g.v;
  if (!BeginKernel(g, s)) return;
  ForEachOf<PC>(
      g,
      [&](int u, unsigned i) {
        y[u]  = product[i];
        r0[u] = g.r0[i];
        if (SECOND) r[u] = g.r[i];
      },
      [&](int u, unsigned) { return y[u]; },
      [&](int u, unsigned i, Scalar, Scalar z) {
        if (PC != SPMV_KRYLOV_PC_NONE) product[i] = z;
        if constexpr (SECOND) {
          AddTo(sum, Term(true, r[u], z));
          AddTo(sum + REALS, Term(true, r0[u], z));
          AddTo(sum + 2 * REALS, Term(true, r[u], r0[u]));
          sum[3 * REALS] += Square(z);
        } else
          AddTo(sum, Term(true, r0[u], z));
      });
  if (AddAll(g, sum)) g.Decide(s, SECOND ? SECOND_PRODUCT : FIRST_PRODUCT, sum);
}

// s = r - a v, which overwrites r, and with a right preconditioner also B s
template <SpMVKrylovPC PC> SPMV_KRYLOV_KERNEL middle(BCGSArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  Scalar           r[BATCH], v[BATCH];
  if (!BeginAfterProduct<Dots::ONE>(g, s, [](State &s, const PetscReal *v) { AfterFirst(s, Num::conj(ScalarOf(v))); }))
    return;
  if (g.partials.count && blockIdx.x == 0 && threadIdx.x == 0) g.state->a = s.a;
  const Scalar minus = Negated(s.a);
  ForEachOf<PC>(
      g,
      [&](int u, unsigned i) {
        r[u] = g.r[i];
        v[u] = g.v[i];
      },
      [&](int u, unsigned) { return Num::fma(minus, v[u], r[u]); },
      [&](int, unsigned i, Scalar now, Scalar z) {
        g.r[i] = now;
        if (PC != SPMV_KRYLOV_PC_NONE) g.hat[i] = z;
      });
}

/*
  x += a p + omega s, r = s - omega t, the norm of r, and p = r + b (p - omega v). With a right preconditioner, x += a B p
  + omega B s. If the kernels apply it, p is the method's p multiplied by B: p = B (r - b omega v) + b p. A diagonal B is
  applied to s once more instead of reading hat
*/
template <SpMVKrylovPC PC> SPMV_KRYLOV_KERNEL update(BCGSArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  constexpr int    COUNT = BATCH / 2; // five or more vectors are read
  __shared__ State s;
  PetscReal        sum[1] = {};
  Scalar           x[COUNT], p[COUNT], r[COUNT], t[COUNT], v[COUNT], hat[COUNT], phat[COUNT];
  if (!BeginAfterProduct<MANY>(g, s, [](State &s, const PetscReal *v) { AfterSecond(s, v); })) return;
  const Scalar minus = Negated(s.omega), both = Multiplied(s.b, minus);
  ForEachOf<PC, COUNT>(
      g,
      [&](int u, unsigned i) {
        r[u] = g.r[i];
        t[u] = g.t[i];
        x[u] = Read(g.x + i);
        p[u] = g.p[i];
        v[u] = g.v[i];
        if (PC == SPMV_KRYLOV_PC_POINTS) hat[u] = g.d[i];
        if (PC == SPMV_KRYLOV_PC_BLOCKS || PC == SPMV_KRYLOV_PC_APPLIED) hat[u] = g.hat[i];
        if (PC == SPMV_KRYLOV_PC_APPLIED) phat[u] = g.phat[i];
      },
      [&](int u, unsigned) { return Num::fma(both, v[u], Num::fma(minus, t[u], r[u])); },
      [&](int u, unsigned i, Scalar, Scalar z) {
        const Scalar now = Num::fma(minus, t[u], r[u]);
        const Scalar Bs  = PC == SPMV_KRYLOV_PC_NONE     ? r[u]
                           : PC == SPMV_KRYLOV_PC_POINTS ? Multiplied(hat[u], r[u])
                                                         : hat[u];
        const Scalar Bp  = PC == SPMV_KRYLOV_PC_APPLIED ? phat[u] : p[u];
        Write(g.x + i, Num::fma(s.omega, Bs, Num::fma(s.a, Bp, x[u])));
        g.r[i] = now;
        g.p[i] = Num::fma(s.b, p[u], z);
        sum[0] += Square(now);
      });
  if (AddAll(g, sum)) g.Decide(s, UPDATE, sum);
}

// ------------------------------------------------------------------------------------------------ launches

// The preconditioner that the kernels for one side apply
SpMVKrylovPC Of(SpMVCudaKrylov k, bool left)
{
  return (bool)k->bcgs.left == left && k->bcgs.pc != SPMV_KRYLOV_PC_APPLIED ? k->bcgs.pc : SPMV_KRYLOV_PC_NONE;
}

// Launches the kernel for the preconditioner on a side
#define SPMV_LAUNCH_FOR(k, left, kernel, stream) \
  WithPC<SPMV_KRYLOV_PC_NONE>(                   \
      Of(k, left), [=](auto pc) { return Launch<kernel<pc.value>>(k->Grid(k->bcgs.n), BLOCK, k->bcgs, stream); })

// y = A x, unless A is NULL; y = B y with a left preconditioner; and the sums with y, by a kernel of their own after a
// product without an epilogue, such as all products with a left block preconditioner
template <bool SECOND>
cudaError_t MultWithSums(SpMVCudaKrylov k, SpMVCudaStore A, const Operands &v, Dots dot, cudaStream_t stream)
{
  constexpr int NUMBERS = SECOND ? MANY : Dots::ONE, DECISION = SECOND ? SECOND_PRODUCT : FIRST_PRODUCT;
  BCGSArgs     &g = k->bcgs;
  g.partials      = {};
  dot.other       = dot.first != v.x;
  dot.d           = Of(k, true) == SPMV_KRYLOV_PC_POINTS ? g.d : nullptr;
  if (A && Of(k, true) == SPMV_KRYLOV_PC_BLOCKS)
    SPMV_TRY(SpMVCudaMult(A, {SPMVCUDA_MULT, (const PetscScalar *)v.x, nullptr, (PetscScalar *)v.y}, stream));
  else if (A)
    SPMV_TRY(k->Multiply(A, {SPMVCUDA_MULT, v, nullptr, false, &dot}, g.n, stream, &g.partials));
  return k->AddSums<NUMBERS, DECISION>(g, true, stream, [=] {
    return WithPC<SPMV_KRYLOV_PC_NONE>(Of(k, true), [=](auto pc) {
      return Launch<separate<pc.value, SECOND>>(k->Grid(k->bcgs.n), BLOCK, k->bcgs, stream);
    });
  });
}

} // namespace

cudaError_t SpMVCudaBCGSBegin(SpMVCudaKrylov k, const SpMVKrylovSolve *solve, const SpMVCudaBCGS *bcgs,
                              cudaStream_t stream)
{
  BCGSArgs &g = k->bcgs = {{*solve}, *bcgs};
  State     first{};
  first.dp = g.dp;
  SPMV_TRY(k->Begin(g, first, stream));
  SPMV_TRY(Launch<start>(k->Grid(g.n), BLOCK, g, stream, Of(k, false) == SPMV_KRYLOV_PC_NONE));
  return k->Conclude(g, START, 1, stream);
}

cudaError_t SpMVCudaBCGSFirst(SpMVCudaKrylov k, SpMVCudaStore A, cudaStream_t stream)
{
  const BCGSArgs &g = k->bcgs;
  Dots            dot{false, true};
  dot.first = g.r0;
  return MultWithSums<false>(k, A, {g.p, nullptr, g.v}, dot, stream);
}

cudaError_t SpMVCudaBCGSHalf(SpMVCudaKrylov k, cudaStream_t stream)
{
  SPMV_TRY(SPMV_LAUNCH_FOR(k, false, middle, stream));
  k->bcgs.partials = {};
  return cudaSuccess;
}

cudaError_t SpMVCudaBCGSSecond(SpMVCudaKrylov k, SpMVCudaStore A, cudaStream_t stream)
{
  const BCGSArgs &g = k->bcgs;
  Dots            dot{false, true};
  dot.first       = g.r;
  dot.second      = g.r0;
  const Scalar *x = Of(k, false) == SPMV_KRYLOV_PC_NONE ? g.r : g.hat;
  return MultWithSums<true>(k, A, {x, nullptr, g.t}, dot, stream);
}

cudaError_t SpMVCudaBCGSUpdate(SpMVCudaKrylov k, cudaStream_t stream)
{
  const BCGSArgs &g = k->bcgs;
  SPMV_TRY(g.pc == SPMV_KRYLOV_PC_APPLIED && !g.left
               ? Launch<update<SPMV_KRYLOV_PC_APPLIED>>(k->Grid(g.n), BLOCK, g, stream)
               : SPMV_LAUNCH_FOR(k, false, update, stream));
  k->bcgs.partials = {};
  return k->Conclude(k->bcgs, UPDATE, 1, stream);
}

cudaError_t SpMVCudaBCGSGetStep(SpMVCudaKrylov k, PetscScalar *alpha, cudaStream_t stream)
{
  State s;
  SPMV_TRY(Fetch(&s, (State *)k->state, 1, stream));
  memcpy((void *)alpha, &s.a, sizeof(*alpha));
  return cudaSuccess;
}
