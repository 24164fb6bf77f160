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

enum Decision { START, FIRST, SECOND, UPDATE };

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

__device__ void AfterUpdate(State &s, PetscReal square, Progress *progress)
{
  const bool none = s.norm == SPMV_KRYLOV_NORM_NONE;
  if (!none && s.until.chknorm < s.i + 2) s.dp = sqrt(square);
  ReportNorm(s.i + 1, s.dp, progress);
  if (IsBad(s.dp)) return End(s, SPMV_KRYLOV_NAN_NORM);
  s.norms  = s.i + 1;
  s.reason = Converged(s.until, none, s.i + 1, s.dp);
  if (s.reason != SPMV_KRYLOV_ITERATING) return;
  if (IsZero(s.betaold)) return End(s, SPMV_KRYLOV_BREAKDOWN);
  if (++s.i >= s.until.max_it) return End(s, SPMV_KRYLOV_ITS);
  s.its = s.i + 1;
}

// s: the state at the beginning of the kernel
__device__ void Decide(const BCGSArgs &g, State &s, int decision, const PetscReal v[])
{
  if (decision == START) {
    *(PetscReal *)&s.rho = v[0]; // (r, r)
    s.its                = 1;
  }
  if (decision == FIRST) AfterFirst(s, Num::conj(ScalarOf(v)));
  if (decision == SECOND) AfterSecond(s, v);
  if (decision == UPDATE) AfterUpdate(s, v[0], g.progress);
  *g.state = s;
  if (decision == START || decision == UPDATE || s.reason != SPMV_KRYLOV_ITERATING) ReportStatus(s, g.progress);
}

// ------------------------------------------------------------------------------------------------ kernels; their
// signature is that of Kernel

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
  if (AddAll(g, v)) Decide(g, s, START, v);
}

/*
  For all entries of B y, with as many threads per block of B as it has rows: calls y(i), then use(i, y(i), (B y)(i)).
  All threads of a thread block take part until the end.
*/
template <class Load, class Use> __device__ __forceinline__ void ForEachOfBlocks(const BCGSArgs &g, Load load, Use use)
{
  const unsigned rows = BLOCK / (unsigned)g.bs * (unsigned)g.bs;
  for (unsigned first = blockIdx.x * rows; first < (unsigned)g.n; first += gridDim.x * rows) {
    const unsigned i   = first + threadIdx.x;
    const bool     own = threadIdx.x < rows && i < (unsigned)g.n;
    const Scalar   y = own ? load(i) : Num::zero(), z = MultiplyBlock<BLOCK>(g.d, g.n, g.bs, i, own, y);
    if (own) use(i, y, z);
  }
}

// v = B v, and (r0, v)
template <SpMVKrylovPC PC> SPMV_KRYLOV_KERNEL first(BCGSArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        sum[Dots::ONE] = {};
  Scalar           v[BATCH], r0[BATCH], d[BATCH];
  if (!BeginKernel(g, s)) return;
  if (PC == SPMV_KRYLOV_PC_BLOCKS)
    ForEachOfBlocks(
        g, [&](unsigned i) { return g.v[i]; },
        [&](unsigned i, Scalar, Scalar z) {
          g.v[i] = z;
          AddTo(sum, Term(true, g.r0[i], z));
        });
  else
    ForEach(
        g.n,
        [&](int u, unsigned i) {
          v[u]  = g.v[i];
          r0[u] = g.r0[i];
          if (PC == SPMV_KRYLOV_PC_POINTS) d[u] = g.d[i];
        },
        [&](int u, unsigned i) {
          if (PC == SPMV_KRYLOV_PC_POINTS) g.v[i] = v[u] = Multiplied(d[u], v[u]);
          AddTo(sum, Term(true, r0[u], v[u]));
        });
  if (AddAll(g, sum)) Decide(g, s, FIRST, sum);
}

// The sums from the partial sums of the warps of a product's kernel
template <int NUMBERS, int DECISION>
SPMV_KRYLOV_KERNEL product_sums(BCGSArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        sum[NUMBERS] = {};
  if (!BeginKernel(g, s)) return;
  AddPartials(sum, g.partials, blockIdx.x * BLOCK + threadIdx.x, gridDim.x * BLOCK);
  if (AddAll(g, sum)) Decide(g, s, DECISION, sum);
}

// s = r - a v, which overwrites r, and with a right preconditioner also B s
template <SpMVKrylovPC PC> SPMV_KRYLOV_KERNEL middle(BCGSArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  Scalar           r[BATCH], v[BATCH], d[BATCH];
  if (!BeginAfterProduct<Dots::ONE>(g, s, [](State &s, const PetscReal *v) { AfterFirst(s, Num::conj(ScalarOf(v))); }))
    return;
  if (g.partials.count && blockIdx.x == 0 && threadIdx.x == 0) g.state->a = s.a;
  const Scalar minus = Negated(s.a);
  if (PC == SPMV_KRYLOV_PC_BLOCKS)
    ForEachOfBlocks(
        g, [&](unsigned i) { return Num::fma(minus, g.v[i], g.r[i]); },
        [&](unsigned i, Scalar y, Scalar z) {
          g.r[i]   = y;
          g.hat[i] = z;
        });
  else
    ForEach(
        g.n,
        [&](int u, unsigned i) {
          r[u] = g.r[i];
          v[u] = g.v[i];
          if (PC == SPMV_KRYLOV_PC_POINTS) d[u] = g.d[i];
        },
        [&](int u, unsigned i) {
          const Scalar now = Num::fma(minus, v[u], r[u]);
          g.r[i]           = now;
          if (PC == SPMV_KRYLOV_PC_POINTS) g.hat[i] = Multiplied(d[u], now);
        });
}

// t = B t, and the sums of Dots
template <SpMVKrylovPC PC> SPMV_KRYLOV_KERNEL second(BCGSArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        sum[MANY] = {};
  Scalar           t[BATCH], r0[BATCH], r[BATCH], d[BATCH];
  const auto       add = [&](Scalar t, Scalar r0, Scalar r) {
    AddTo(sum, Term(true, r, t));
    AddTo(sum + REALS, Term(true, r0, t));
    AddTo(sum + 2 * REALS, Term(true, r, r0));
    sum[3 * REALS] += Square(t);
  };
  if (!BeginKernel(g, s)) return;
  if (PC == SPMV_KRYLOV_PC_BLOCKS)
    ForEachOfBlocks(
        g, [&](unsigned i) { return g.t[i]; },
        [&](unsigned i, Scalar, Scalar z) {
          g.t[i] = z;
          add(z, g.r0[i], g.r[i]);
        });
  else
    ForEach(
        g.n,
        [&](int u, unsigned i) {
          t[u]  = g.t[i];
          r0[u] = g.r0[i];
          r[u]  = g.r[i];
          if (PC == SPMV_KRYLOV_PC_POINTS) d[u] = g.d[i];
        },
        [&](int u, unsigned i) {
          if (PC == SPMV_KRYLOV_PC_POINTS) g.t[i] = t[u] = Multiplied(d[u], t[u]);
          add(t[u], r0[u], r[u]);
        });
  if (AddAll(g, sum)) Decide(g, s, SECOND, sum);
}

/*
  x += a p + omega s, r = s - omega t, the norm of r, and p = r + b (p - omega v). With a right preconditioner, p and
  hat are the method's p and s multiplied by B: x += a p + omega hat, p = B (r - b omega v) + b p
*/
template <SpMVKrylovPC PC> SPMV_KRYLOV_KERNEL update(BCGSArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  constexpr int    COUNT = BATCH / 2; // five or more vectors are read
  __shared__ State s;
  PetscReal        sum[1] = {};
  Scalar           x[COUNT], p[COUNT], r[COUNT], t[COUNT], v[COUNT], d[COUNT];
  if (!BeginAfterProduct<MANY>(g, s, [](State &s, const PetscReal *v) { AfterSecond(s, v); })) return;
  const Scalar minus = Negated(s.omega), both = Multiplied(s.b, minus);
  if (PC == SPMV_KRYLOV_PC_BLOCKS)
    ForEachOfBlocks(
        g,
        [&](unsigned i) {
          const Scalar now = Num::fma(minus, g.t[i], g.r[i]);
          g.r[i]           = now;
          sum[0] += Square(now);
          return Num::fma(both, g.v[i], now);
        },
        [&](unsigned i, Scalar, Scalar z) {
          const Scalar p = g.p[i];
          Write(g.x + i, Num::fma(s.omega, g.hat[i], Num::fma(s.a, p, Read(g.x + i))));
          g.p[i] = Num::fma(s.b, p, z);
        });
  else
    ForEach<COUNT>(
        g.n,
        [&](int u, unsigned i) {
          r[u] = g.r[i];
          t[u] = g.t[i];
          x[u] = Read(g.x + i);
          p[u] = g.p[i];
          v[u] = g.v[i];
          if (PC == SPMV_KRYLOV_PC_POINTS) d[u] = g.d[i];
        },
        [&](int u, unsigned i) {
          const Scalar now = Num::fma(minus, t[u], r[u]), next = Num::fma(both, v[u], now);
          Write(g.x + i, Num::fma(s.omega, PC == SPMV_KRYLOV_PC_POINTS ? Multiplied(d[u], r[u]) : r[u],
                                  Num::fma(s.a, p[u], x[u])));
          g.r[i] = now;
          g.p[i] = Num::fma(s.b, p[u], PC == SPMV_KRYLOV_PC_POINTS ? Multiplied(d[u], next) : next);
          sum[0] += Square(now);
        });
  if (AddAll(g, sum)) Decide(g, s, UPDATE, sum);
}

// The step for the case that the caller has added the sums over the ranks
__global__ void decide(BCGSArgs g, int decision, const Scalar *, const Scalar *, Scalar *)
{
  PetscReal v[SUMS];
  AwaitPrevious();
  State s = *g.state;
  if (s.reason != SPMV_KRYLOV_ITERATING) return;
  for (int k = 0; k < SUMS; k++) v[k] = g.ranks.sums[k];
  Decide(g, s, decision, v);
}

// ------------------------------------------------------------------------------------------------ launches

// Completes the sums of a kernel, including the sum over the ranks
cudaError_t Conclude(SpMVCudaKrylov k, int decision, int numbers, cudaStream_t stream)
{
  if (!k->allreduce) return cudaSuccess;
  SPMV_TRY(k->allreduce(k->ctx, k->sums, numbers, stream));
  return k->bcgs.decide.Launch(1, 1, k->bcgs.args, decision, {}, stream);
}

cudaError_t Launch(SpMVCudaKrylov k, Kernel &kernel, bool flag, cudaStream_t stream)
{
  return kernel.Launch(k->Grid(k->bcgs.args.n), BLOCK, k->bcgs.args, flag, {}, stream);
}

// The preconditioner that the kernels for one side apply
int Of(SpMVCudaKrylov k, bool left)
{
  return k->bcgs.args.left == left && k->bcgs.args.pc != SPMV_KRYLOV_PC_APPLIED ? k->bcgs.args.pc : SPMV_KRYLOV_PC_NONE;
}

} // namespace

void BCGS::Choose()
{
#define SPMV_CHOOSE(kernel)                                                            \
  kernel[SPMV_KRYLOV_PC_NONE].Choose((const void *)::kernel<SPMV_KRYLOV_PC_NONE>);     \
  kernel[SPMV_KRYLOV_PC_POINTS].Choose((const void *)::kernel<SPMV_KRYLOV_PC_POINTS>); \
  kernel[SPMV_KRYLOV_PC_BLOCKS].Choose((const void *)::kernel<SPMV_KRYLOV_PC_BLOCKS>)
  SPMV_CHOOSE(first);
  SPMV_CHOOSE(middle);
  SPMV_CHOOSE(second);
  SPMV_CHOOSE(update);
#undef SPMV_CHOOSE
  first_sums.Choose((const void *)product_sums<Dots::ONE, FIRST>);
  second_sums.Choose((const void *)product_sums<MANY, SECOND>);
  start.Choose((const void *)::start);
  decide.Choose((const void *)::decide);
}

cudaError_t SpMVCudaBCGSBegin(SpMVCudaKrylov k, const SpMVCudaBCGS *bcgs, cudaStream_t stream)
{
  if (bcgs->n > SPMVCUDA_MAX_SIZE || bcgs->bs > SPMV_KRYLOV_BLOCK) return cudaErrorNotSupported;
  State     first{};
  BCGSArgs &g = k->bcgs.args;
  g.n         = bcgs->n;
  g.bs        = bcgs->bs;
  g.early     = bcgs->early;
  g.pc        = bcgs->pc;
  g.norm      = bcgs->norm;
  g.d         = (const Scalar *)bcgs->d;
  g.left      = bcgs->left;
  g.x         = (Scalar *)bcgs->x;
  g.r         = (Scalar *)bcgs->r;
  g.r0        = (Scalar *)bcgs->r0;
  g.v         = (Scalar *)bcgs->v;
  g.t         = (Scalar *)bcgs->t;
  g.p         = (Scalar *)bcgs->p;
  g.hat       = (Scalar *)bcgs->hat;
  first.until = bcgs->until;
  first.dp    = bcgs->dp;
  SPMV_TRY(k->Begin(g, first, stream));
  SPMV_TRY(Launch(k, k->bcgs.start, Of(k, false) == SPMV_KRYLOV_PC_NONE, stream));
  return Conclude(k, START, 1, stream);
}

// y = A x, unless A is NULL; y = B y with a left preconditioner; and the sums with y. kernel: after a product without
// an epilogue, such as all products with a left block preconditioner. sums: adds the partial sums of an epilogue
static cudaError_t MultWithSums(SpMVCudaKrylov k, SpMVCudaStore A, const Operands &v, Dots dot, Kernel &kernel,
                                Kernel &sums, int decision, cudaStream_t stream)
{
  BCGSArgs &g = k->bcgs.args;
  g.partials  = {};
  dot.other   = dot.first != v.x;
  dot.d       = Of(k, true) == SPMV_KRYLOV_PC_POINTS ? g.d : nullptr;
  if (A && Of(k, true) == SPMV_KRYLOV_PC_BLOCKS)
    SPMV_TRY(SpMVCudaMult(A, {SPMVCUDA_MULT, (const PetscScalar *)v.x, nullptr, (PetscScalar *)v.y}, stream));
  else if (A)
    SPMV_TRY(
        k->Multiply(A, {SPMVCUDA_MULT, v, SPMVCUDA_BEGIN_ALONE, nullptr, nullptr, &dot}, g.n, stream, &g.partials));
  if (!g.partials.count)
    SPMV_TRY(Launch(k, kernel, false, stream));
  else if (k->ranks.size == 1 && k->AddsPartials(g.n, g.partials.count))
    return cudaSuccess; // the next kernel adds them, but not over ranks
  else
    SPMV_TRY(sums.Launch(k->Grid((int)(g.partials.count / BATCH)), BLOCK, g, false, {}, stream));
  g.partials = {};
  return Conclude(k, decision, decision == FIRST ? Dots::ONE : MANY, stream);
}

cudaError_t SpMVCudaBCGSFirst(SpMVCudaKrylov k, SpMVCudaStore A, cudaStream_t stream)
{
  Dots dot{};
  dot.first = k->bcgs.args.r0;
  return MultWithSums(k, A, {k->bcgs.args.p, nullptr, k->bcgs.args.v}, dot, k->bcgs.first[Of(k, true)],
                      k->bcgs.first_sums, FIRST, stream);
}

cudaError_t SpMVCudaBCGSHalf(SpMVCudaKrylov k, cudaStream_t stream)
{
  SPMV_TRY(Launch(k, k->bcgs.middle[Of(k, false)], false, stream));
  k->bcgs.args.partials = {};
  return cudaSuccess;
}

cudaError_t SpMVCudaBCGSSecond(SpMVCudaKrylov k, SpMVCudaStore A, cudaStream_t stream)
{
  Dots dot{};
  dot.first  = k->bcgs.args.r;
  dot.second = k->bcgs.args.r0;
  return MultWithSums(
      k, A, {Of(k, false) == SPMV_KRYLOV_PC_NONE ? k->bcgs.args.r : k->bcgs.args.hat, nullptr, k->bcgs.args.t}, dot,
      k->bcgs.second[Of(k, true)], k->bcgs.second_sums, SECOND, stream);
}

cudaError_t SpMVCudaBCGSUpdate(SpMVCudaKrylov k, cudaStream_t stream)
{
  SPMV_TRY(Launch(k, k->bcgs.update[Of(k, false)], false, stream));
  k->bcgs.args.partials = {};
  return Conclude(k, UPDATE, 1, stream);
}

cudaError_t SpMVCudaBCGSGetStep(SpMVCudaKrylov k, PetscScalar *alpha, cudaStream_t stream)
{
  State s;
  SPMV_TRY(Fetch(&s, (State *)k->state, 1, stream));
  memcpy((void *)alpha, &s.a, sizeof(*alpha));
  return cudaSuccess;
}
