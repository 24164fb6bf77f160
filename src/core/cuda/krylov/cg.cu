/*
  The conjugate gradient method on the device, with the same steps as KSPCG.

  Besides the product, an iteration reads p and w (p'w); reads r and w, and writes r (update); reads r, p and x, and
  writes p and x (direction). x is updated in the kernel that reads p anyway.
*/
#include "krylov.cuh"
#include "core/cuda/stores.cuh"

using namespace spmv;

namespace {

constexpr int BLOCK   = KRYLOV_BLOCK;
constexpr int NUMBERS = 1 + REALS; // sums of a kernel: a square and a scalar

// What the deciding thread does when the sums are complete
enum Decision { PRODUCT = 1, TEST = 2, BETA = 4, START = 8 };

__device__ __forceinline__ int Sign(PetscReal a)
{
  return (a > 0) - (a < 0);
}

// ------------------------------------------------------------------------------------------------ what one thread
// decides

__device__ void AfterProduct(State &s, Scalar dpi)
{
  const PetscReal now = RealPart(dpi), before = RealPart(s.dpi);
  s.dpi     = dpi;
  s.pending = 0;
  if (IsBad(dpi))
    End(s, SPMV_KRYLOV_NAN_DOT);
  else if (IsZero(dpi) || (s.i > 0 && Sign(now) * Sign(before) < 0))
    End(s, SPMV_KRYLOV_INDEFINITE_MAT);
  else {
    s.a       = Divided(s.beta, dpi);
    s.pending = 1;
  }
}

__device__ void AfterUpdate(const CGArgs &g, State &s, PetscReal square, Scalar beta)
{
  const bool none = g.norm == SPMV_KRYLOV_NORM_NONE;
  PetscReal  norm = 0;
  if (g.norm == SPMV_KRYLOV_NORM_NATURAL) {
    if (IsBad(beta)) return End(s, SPMV_KRYLOV_NAN_DOT);
    norm = sqrt(Magnitude(beta));
  } else if (!none && g.until.chknorm < s.i + 2)
    norm = sqrt(square);
  ReportNorm(s.i + 1, norm, g.progress);
  if (IsBad(norm)) return End(s, SPMV_KRYLOV_NAN_NORM);
  s.norms  = s.i + 1;
  s.reason = Converged(g.until, none, s.i + 1, norm);
}

__device__ void AfterBeta(const CGArgs &g, State &s, Scalar beta, bool start)
{
  if (IsBad(beta)) return End(s, SPMV_KRYLOV_NAN_DOT);
  s.betaold = s.beta;
  s.beta    = beta;
  if (!start && ++s.i >= g.until.max_it) return End(s, SPMV_KRYLOV_ITS);
  s.its = s.i + 1;
  if (IsZero(beta)) return End(s, SPMV_KRYLOV_ZERO);
#if !defined(PETSC_USE_COMPLEX)
  if (!start && beta * s.betaold < 0) return End(s, SPMV_KRYLOV_INDEFINITE_PC);
#endif
  if (!start) s.b = Divided(beta, s.betaold);
}

} // namespace

__device__ void CGArgs::Decide(State &s, int decision, const PetscReal v[]) const
{
  if (decision & PRODUCT) AfterProduct(s, ScalarOf(v));
  if (decision & TEST) AfterUpdate(*this, s, v[0], ScalarOf(v + 1));
  if (decision & BETA && s.reason == SPMV_KRYLOV_ITERATING) AfterBeta(*this, s, ScalarOf(v + 1), decision & START);
  *state = s;
  if (decision & BETA || s.reason != SPMV_KRYLOV_ITERATING) ReportStatus(s, progress);
}

// ------------------------------------------------------------------------------------------------ kernels; their
// signature is that of Kernel

namespace {

SPMV_KRYLOV_KERNEL product(CGArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        v[REALS] = {};
  Scalar           p[BATCH], w[BATCH];
  if (!BeginSums(g, s)) return;
  ForEach(
      g.n,
      [&](int u, unsigned i) {
        p[u] = g.p[i];
        w[u] = g.w[i];
      },
      [&](int u, unsigned) { AddTo(v, Term(g.hermitian, p[u], w[u])); });
  if (AddAll(g, v)) g.Decide(s, PRODUCT, v);
}

// Computes r, z'r, and the norm of z or r
template <SpMVKrylovPC PC> SPMV_KRYLOV_KERNEL update(CGArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        v[NUMBERS] = {};
  Scalar           r[BATCH], w[BATCH];
  if (!BeginAfterProduct<REALS>(g, s, [](State &s, const PetscReal *v) { AfterProduct(s, ScalarOf(v)); })) return;
  const Scalar minus    = Negated(s.a);
  const bool   residual = g.norm == SPMV_KRYLOV_NORM_UNPRECONDITIONED, sums = PC != SPMV_KRYLOV_PC_APPLIED;
  ForEachOf<PC>(
      g,
      [&](int u, unsigned i) {
        r[u] = g.r[i];
        w[u] = g.w[i];
      },
      [&](int u, unsigned) { return Num::fma(minus, w[u], r[u]); },
      [&](int, unsigned i, Scalar now, Scalar z) {
        g.r[i] = now;
        if (PC == SPMV_KRYLOV_PC_BLOCKS) g.z[i] = z;
        v[0] += Square(residual ? now : z);
        if (sums) AddTo(v + 1, Term(g.hermitian, z, now));
      });
  if ((sums || residual) && AddAll(g, v)) g.Decide(s, sums ? TEST | BETA : TEST, v);
}

// The norm and z'r for a given z
SPMV_KRYLOV_KERNEL sums_of(CGArgs g, bool start, const Scalar *z, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        v[NUMBERS] = {};
  Scalar           a[BATCH], r[BATCH];
  if (!BeginKernel(g, s)) return;
  ForEach(
      g.n,
      [&](int u, unsigned i) {
        a[u] = z[i];
        r[u] = g.r[i];
      },
      [&](int u, unsigned) {
        v[0] += Square(a[u]);
        AddTo(v + 1, Term(g.hermitian, a[u], r[u]));
      });
  // the norm of r has already been tested by update()
  if (AddAll(g, v))
    g.Decide(s, start ? BETA | START : g.norm == SPMV_KRYLOV_NORM_UNPRECONDITIONED ? BETA : TEST | BETA, v);
}

// x += a p, if that is still to be done, and p = z + b p, unless the solve has ended
template <SpMVKrylovPC PC> SPMV_KRYLOV_KERNEL direction(CGArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  Scalar           x[BATCH], p[BATCH], z[BATCH], d[BATCH];
  const bool       go = BeginKernel(g, s), step = s.pending;
  const bool       first = s.i == 0;
  if (go || step) {
    ForEach(
        g.n,
        [&](int u, unsigned i) {
          p[u] = first && go ? Num::zero() : g.p[i];
          if (step) x[u] = Read(g.x + i);
          if (go) z[u] = PC == SPMV_KRYLOV_PC_APPLIED ? g.z[i] : g.r[i];
          if (go && PC == SPMV_KRYLOV_PC_POINTS) d[u] = g.d[i];
        },
        [&](int u, unsigned i) {
          if (step) Write(g.x + i, Num::fma(s.a, p[u], x[u]));
          if (go) {
            const Scalar now = PC == SPMV_KRYLOV_PC_POINTS ? Multiplied(d[u], z[u]) : z[u];
            g.p[i]           = first ? now : Num::fma(s.b, p[u], now);
          }
        });
  }
}

} // namespace

cudaError_t SpMVCudaCGBegin(SpMVCudaKrylov k, const SpMVKrylovSolve *solve, const SpMVCudaCG *cg, cudaStream_t stream)
{
  CGArgs &g = k->cg = {{*solve}, *cg};
  SPMV_TRY(k->Begin(g, {}, stream));
  SPMV_TRY(Launch<sums_of>(k->Grid(g.n), BLOCK, g, stream, true, {g.pc == SPMV_KRYLOV_PC_NONE ? g.r : g.z}));
  return k->Conclude(g, BETA | START, NUMBERS, stream);
}

cudaError_t SpMVCudaCGProduct(SpMVCudaKrylov k, SpMVCudaStore A, cudaStream_t stream)
{
  CGArgs       &g    = k->cg;
  Dots          dots = {false, (bool)g.hermitian, nullptr, g.p};
  const Product p    = {SPMVCUDA_MULT, {g.p, nullptr, g.w}, g.exchange, g.exchange != nullptr, &dots};
  // Update adds the product's sums only if it has sums of its own: only the thread that adds those writes the state
  const bool next = g.pc != SPMV_KRYLOV_PC_APPLIED || g.norm == SPMV_KRYLOV_NORM_UNPRECONDITIONED;
  g.partials      = {};
  if (A) SPMV_TRY(k->Multiply(A, p, g.n, stream, &g.partials));
  return k->AddSums<REALS, PRODUCT>(g, next, stream, [&] { return Launch<product>(k->Grid(g.n), BLOCK, g, stream); });
}

cudaError_t SpMVCudaCGUpdate(SpMVCudaKrylov k, cudaStream_t stream)
{
  CGArgs    &g       = k->cg;
  const bool applied = g.pc == SPMV_KRYLOV_PC_APPLIED;
  SPMV_TRY(WithPC(g.pc, [&](auto pc) { return Launch<update<pc.value>>(k->Grid(g.n), BLOCK, g, stream); }));
  g.partials = {};
  if (applied && g.norm != SPMV_KRYLOV_NORM_UNPRECONDITIONED) return cudaSuccess;
  return k->Conclude(g, applied ? TEST : TEST | BETA, NUMBERS, stream);
}

cudaError_t SpMVCudaCGSums(SpMVCudaKrylov k, cudaStream_t stream)
{
  const CGArgs &g = k->cg;
  SPMV_TRY(Launch<sums_of>(k->Grid(g.n), BLOCK, g, stream, false, {g.z}));
  return k->Conclude(g, g.norm == SPMV_KRYLOV_NORM_UNPRECONDITIONED ? BETA : TEST | BETA, NUMBERS, stream);
}

cudaError_t SpMVCudaCGDirection(SpMVCudaKrylov k, cudaStream_t stream)
{
  return WithPC(k->cg.pc, [&](auto pc) {
    constexpr SpMVKrylovPC PC = pc.value == SPMV_KRYLOV_PC_BLOCKS ? SPMV_KRYLOV_PC_APPLIED : pc.value;
    return Launch<direction<PC>>(k->Grid(k->cg.n), BLOCK, k->cg, stream);
  });
}
