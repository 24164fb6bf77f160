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

__device__ void AfterUpdate(State &s, PetscReal square, Scalar beta, Progress *progress)
{
  const bool none    = s.norm == SPMV_KRYLOV_NORM_NONE;
  const bool natural = s.norm == SPMV_KRYLOV_NORM_NATURAL;
  PetscReal  norm    = 0;
  if (natural) {
    if (IsBad(beta)) return End(s, SPMV_KRYLOV_NAN_DOT);
    norm = sqrt(Magnitude(beta));
  } else if (!none && s.until.chknorm < s.i + 2)
    norm = sqrt(square);
  s.objective -= PetscReal(0.5) * RealPart(Multiplied(s.a, s.beta));
  ReportNorm(s.i + 1, norm, progress);
  if (IsBad(norm)) return End(s, SPMV_KRYLOV_NAN_NORM);
  s.norms  = s.i + 1;
  s.reason = Converged(s.until, none, s.i + 1, norm);
}

__device__ void AfterBeta(State &s, Scalar beta, bool start)
{
  if (IsBad(beta)) return End(s, SPMV_KRYLOV_NAN_DOT);
  s.betaold = s.beta;
  s.beta    = beta;
  if (!start && ++s.i >= s.until.max_it) return End(s, SPMV_KRYLOV_ITS);
  s.its = s.i + 1;
  if (IsZero(beta)) return End(s, SPMV_KRYLOV_ZERO);
#if !defined(PETSC_USE_COMPLEX)
  if (!start && beta * s.betaold < 0) return End(s, SPMV_KRYLOV_INDEFINITE_PC);
#endif
  if (!start) s.b = Divided(beta, s.betaold);
}

// s: the state at the beginning of the kernel
__device__ void Decide(const CGArgs &g, State &s, int decision, const PetscReal v[])
{
  const Scalar dot = ScalarOf(v + 1);
  if (decision & PRODUCT) AfterProduct(s, dot);
  if (decision & TEST) AfterUpdate(s, v[0], dot, g.progress);
  if (decision & BETA && s.reason == SPMV_KRYLOV_ITERATING) AfterBeta(s, dot, decision & START);
  *g.state = s;
  if (decision & BETA || s.reason != SPMV_KRYLOV_ITERATING) ReportStatus(s, g.progress);
}

// ------------------------------------------------------------------------------------------------ kernels; their
// signature is that of Kernel

SPMV_KRYLOV_KERNEL product(CGArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        v[NUMBERS] = {};
  Scalar           p[BATCH], w[BATCH];
  if (!BeginKernel(g, s)) {
    if (blockIdx.x == 0 && threadIdx.x == 0) g.state->pending = 0; // the previous kernel has updated x
    return;
  }
  ForEach(
      g.n,
      [&](int u, unsigned i) {
        p[u] = g.p[i];
        w[u] = g.w[i];
      },
      [&](int u, unsigned) { AddTo(v + 1, Term(g.hermitian, p[u], w[u])); });
  if (AddAll(g, v)) Decide(g, s, PRODUCT, v);
}

// The same, from the partial sums of the warps of a product's kernel
SPMV_KRYLOV_KERNEL product_sums(CGArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        v[NUMBERS] = {}, sums[REALS] = {};
  if (!BeginKernel(g, s)) {
    if (blockIdx.x == 0 && threadIdx.x == 0) g.state->pending = 0;
    return;
  }
  AddPartials(sums, g.partials, blockIdx.x * BLOCK + threadIdx.x, gridDim.x * BLOCK);
#pragma unroll
  for (int k = 0; k < REALS; k++) v[1 + k] = sums[k];
  if (AddAll(g, v)) Decide(g, s, PRODUCT, v);
}

__device__ __forceinline__ bool BeginUpdate(const CGArgs &g, State &s)
{
  return BeginAfterProduct<REALS>(g, s, [](State &s, const PetscReal *v) { AfterProduct(s, ScalarOf(v)); });
}

// Computes r, z'r, and the norm of z or r
template <SpMVKrylovPC PC> SPMV_KRYLOV_KERNEL update(CGArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        v[NUMBERS] = {};
  Scalar           r[BATCH], w[BATCH], d[BATCH];
  if (!BeginUpdate(g, s)) return;
  const Scalar minus    = Negated(s.a);
  const bool   residual = g.norm == SPMV_KRYLOV_NORM_UNPRECONDITIONED, sums = PC != SPMV_KRYLOV_PC_APPLIED;
  ForEach(
      g.n,
      [&](int u, unsigned i) {
        r[u] = g.r[i];
        w[u] = g.w[i];
        if (PC == SPMV_KRYLOV_PC_POINTS) d[u] = g.d[i];
      },
      [&](int u, unsigned i) {
        const Scalar now = Num::fma(minus, w[u], r[u]);
        const Scalar z   = PC == SPMV_KRYLOV_PC_POINTS ? Multiplied(d[u], now) : now;
        g.r[i]           = now;
        v[0] += Square(residual ? now : z);
        if (sums) AddTo(v + 1, Term(g.hermitian, z, now));
      });
  if (!sums && !residual) return;
  if (AddAll(g, v, g.partials.count > 0)) Decide(g, s, sums ? TEST | BETA : TEST, v);
}

// The same with a block preconditioner, with as many threads per block as it has rows
template <> SPMV_KRYLOV_KERNEL update<SPMV_KRYLOV_PC_BLOCKS>(CGArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        v[NUMBERS] = {};
  if (!BeginUpdate(g, s)) return;
  const Scalar   minus    = Negated(s.a);
  const bool     residual = g.norm == SPMV_KRYLOV_NORM_UNPRECONDITIONED;
  const unsigned rows     = BLOCK / (unsigned)g.bs * (unsigned)g.bs;
  for (unsigned first = blockIdx.x * rows; first < (unsigned)g.n; first += gridDim.x * rows) {
    const unsigned i   = first + threadIdx.x;
    const bool     own = threadIdx.x < rows && i < (unsigned)g.n;
    const Scalar   now = own ? Num::fma(minus, g.w[i], g.r[i]) : Num::zero();
    const Scalar   z   = MultiplyBlock<BLOCK>(g.d, g.n, g.bs, i, own, now);
    if (!own) continue;
    g.r[i] = now;
    g.z[i] = z;
    v[0] += Square(residual ? now : z);
    AddTo(v + 1, Term(g.hermitian, z, now));
  }
  if (AddAll(g, v, g.partials.count > 0)) Decide(g, s, TEST | BETA, v);
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
    Decide(g, s, start ? BETA | START : g.norm == SPMV_KRYLOV_NORM_UNPRECONDITIONED ? BETA : TEST | BETA, v);
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

// The step for the case that the caller has added the sums over the ranks
struct DecideArgs {
  CGArgs g;
  int    decision;
};

__global__ void decide(DecideArgs d, bool, const Scalar *, const Scalar *, Scalar *)
{
  PetscReal v[NUMBERS];
  AwaitPrevious();
  State s = *d.g.state;
  if (s.reason != SPMV_KRYLOV_ITERATING) return;
  for (int k = 0; k < NUMBERS; k++) v[k] = d.g.ranks.sums[k];
  Decide(d.g, s, d.decision, v);
}

cudaError_t Launch(SpMVCudaKrylov k, Kernel &kernel, bool flag, const Scalar *z, cudaStream_t stream)
{
  return kernel.Launch(k->Grid(k->cg.args.n), BLOCK, k->cg.args, flag, {z, nullptr, nullptr}, stream);
}

// Completes the sums after a kernel
cudaError_t Conclude(SpMVCudaKrylov k, int decision, cudaStream_t stream)
{
  if (!k->allreduce) return cudaSuccess;
  const DecideArgs args = {k->cg.args, decision};
  SPMV_TRY(k->allreduce(k->ctx, k->sums, NUMBERS, stream));
  return k->cg.decide.Launch(1, 1, args, false, {}, stream);
}

} // namespace

void CG::Choose()
{
  product.Choose((const void *)::product);
  product_sums.Choose((const void *)::product_sums);
  update[SPMV_KRYLOV_PC_NONE].Choose((const void *)::update<SPMV_KRYLOV_PC_NONE>);
  update[SPMV_KRYLOV_PC_POINTS].Choose((const void *)::update<SPMV_KRYLOV_PC_POINTS>);
  update[SPMV_KRYLOV_PC_BLOCKS].Choose((const void *)::update<SPMV_KRYLOV_PC_BLOCKS>);
  update[SPMV_KRYLOV_PC_APPLIED].Choose((const void *)::update<SPMV_KRYLOV_PC_APPLIED>);
  sums_of.Choose((const void *)::sums_of);
  direction[SPMV_KRYLOV_PC_NONE].Choose((const void *)::direction<SPMV_KRYLOV_PC_NONE>);
  direction[SPMV_KRYLOV_PC_POINTS].Choose((const void *)::direction<SPMV_KRYLOV_PC_POINTS>);
  direction[SPMV_KRYLOV_PC_BLOCKS].Choose((const void *)::direction<SPMV_KRYLOV_PC_APPLIED>);
  direction[SPMV_KRYLOV_PC_APPLIED].Choose((const void *)::direction<SPMV_KRYLOV_PC_APPLIED>);
  decide.Choose((const void *)::decide);
}

cudaError_t SpMVCudaCGBegin(SpMVCudaKrylov k, const SpMVCudaCG *cg, cudaStream_t stream)
{
  if (cg->n > SPMVCUDA_MAX_SIZE || cg->bs > SPMV_KRYLOV_BLOCK) return cudaErrorNotSupported;
  CGArgs &g = k->cg.args;
  State   first{};
  g.n         = cg->n;
  g.bs        = cg->bs;
  g.early     = cg->early;
  g.pc        = cg->pc;
  g.norm      = cg->norm;
  g.d         = (const Scalar *)cg->d;
  g.hermitian = cg->hermitian;
  g.x         = (Scalar *)cg->x;
  g.r         = (Scalar *)cg->r;
  g.z         = (Scalar *)cg->z;
  g.p         = (Scalar *)cg->p;
  g.w         = (Scalar *)cg->w;
  first.until = cg->until;
  SPMV_TRY(k->Begin(g, first, stream));
  SPMV_TRY(Launch(k, k->cg.sums_of, true, cg->pc == SPMV_KRYLOV_PC_NONE ? g.r : g.z, stream));
  return Conclude(k, BETA | START, stream);
}

// Whether Update adds the product's partial sums. It must have sums of its own, because only the thread that adds those
// writes the state
static bool UpdateAddsPartials(SpMVCudaKrylov k)
{
  return (k->cg.args.pc != SPMV_KRYLOV_PC_APPLIED || k->cg.args.norm == SPMV_KRYLOV_NORM_UNPRECONDITIONED) &&
         k->AddsPartials(k->cg.args.n, k->cg.args.partials.count);
}

cudaError_t SpMVCudaCGProduct(SpMVCudaKrylov k, SpMVCudaStore A, cudaStream_t stream)
{
  CGArgs       &g   = k->cg.args;
  Dot           dot = {g.hermitian, nullptr};
  const Product p   = {SPMVCUDA_MULT, {g.p, nullptr, g.w}, SPMVCUDA_BEGIN_ALONE, nullptr, &dot};
  g.partials        = {};
  if (A) SPMV_TRY(k->Multiply(A, p, g.n, stream, &g.partials));
  if (!g.partials.count)
    SPMV_TRY(Launch(k, k->cg.product, false, nullptr, stream));
  else if (UpdateAddsPartials(k))
    return cudaSuccess;
  else
    SPMV_TRY(k->cg.product_sums.Launch(k->Grid((int)(g.partials.count / BATCH)), BLOCK, g, false, {}, stream));
  g.partials = {};
  return Conclude(k, PRODUCT, stream);
}

cudaError_t SpMVCudaCGUpdate(SpMVCudaKrylov k, cudaStream_t stream)
{
  const bool applied = k->cg.args.pc == SPMV_KRYLOV_PC_APPLIED;
  SPMV_TRY(Launch(k, k->cg.update[k->cg.args.pc], false, nullptr, stream));
  k->cg.args.partials = {};
  if (applied && k->cg.args.norm != SPMV_KRYLOV_NORM_UNPRECONDITIONED) return cudaSuccess;
  return Conclude(k, applied ? TEST : TEST | BETA, stream);
}

cudaError_t SpMVCudaCGSums(SpMVCudaKrylov k, cudaStream_t stream)
{
  SPMV_TRY(Launch(k, k->cg.sums_of, false, k->cg.args.z, stream));
  return Conclude(k, k->cg.args.norm == SPMV_KRYLOV_NORM_UNPRECONDITIONED ? BETA : TEST | BETA, stream);
}

cudaError_t SpMVCudaCGDirection(SpMVCudaKrylov k, cudaStream_t stream)
{
  return Launch(k, k->cg.direction[k->cg.args.pc], false, nullptr, stream);
}

cudaError_t SpMVCudaCGGetObjective(SpMVCudaKrylov k, PetscReal *objective, cudaStream_t stream)
{
  State s;
  SPMV_TRY(Fetch(&s, (State *)k->state, 1, stream));
  *objective = s.objective;
  return cudaSuccess;
}
