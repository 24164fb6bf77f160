/*
  The conjugate gradient method on the device, step by step that of KSPCG.

  An iteration reads and writes, beyond the product: p and w (p'w); r and w, r (update); r, p and x, p and x (direction). x is updated where p is read anyway.
*/
#include "cg.cuh"
#include "stores.cuh"

using namespace spmv;

namespace {

constexpr int BLOCK = KRYLOV_BLOCK;
constexpr int BATCH = 4; // entries of a vector whose loads a thread issues at once

/*
  Every kernel begins with this: waits for the previous one, and has the state copied to shared memory, where the thread that takes the next step finds it at
  once. False if the solve has ended.
*/
__device__ __forceinline__ bool Enter(const CGArgs &g, State &s)
{
  AwaitPrevious();
  if (g.early) LetNextBegin();
  static_assert(sizeof(State) % sizeof(unsigned) == 0 && sizeof(State) / sizeof(unsigned) <= BLOCK, "a thread copies a word");
  if (threadIdx.x < sizeof(State) / sizeof(unsigned)) ((unsigned *)&s)[threadIdx.x] = ((const volatile unsigned *)g.state)[threadIdx.x];
  __syncthreads();
  return s.reason == SPMV_KRYLOV_ITERATING;
}

// For all n entries of vectors, BATCH at a time: load(u, i), then use(u, i). Whole warps together, as Issue() is between the two
template <class Load, class Use> __device__ __forceinline__ void ForEach(int n, Load load, Use use)
{
  const unsigned stride = gridDim.x * BLOCK, lane = threadIdx.x % WARP;
  for (unsigned warp = blockIdx.x * BLOCK + threadIdx.x - lane; warp < (unsigned)n; warp += BATCH * stride) {
    const unsigned first = warp + lane;
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      if (first + u * stride < (unsigned)n) load(u, first + u * stride);
    }
    Issue();
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      if (first + u * stride < (unsigned)n) use(u, first + u * stride);
    }
  }
}

// ------------------------------------------------------------------------------------------------ kernels; their signature is that of Kernel

#define SPMV_CG_KERNEL __global__ void __launch_bounds__(BLOCK, Tuning::KRYLOV_BLOCKS)

struct BeginArgs {
  State *state, first;
};

__global__ void begin(BeginArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  AwaitPrevious();
  *g.state = g.first;
}

SPMV_CG_KERNEL product(CGArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        v[SUMS] = {};
  Scalar           p[BATCH], w[BATCH];
  if (!Enter(g, s)) {
    if (blockIdx.x == 0 && threadIdx.x == 0) g.state->step = 0; // the kernel before has updated x
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

// The same from the sums that the warps of a product's kernel have left
struct ProductSumsArgs {
  CGArgs           g;
  const PetscReal *part;
  unsigned         count;
};

SPMV_CG_KERNEL product_sums(ProductSumsArgs a, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        v[SUMS] = {};
  if (!Enter(a.g, s)) {
    if (blockIdx.x == 0 && threadIdx.x == 0) a.g.state->step = 0;
    return;
  }
  for (unsigned w = blockIdx.x * BLOCK + threadIdx.x; w < a.count; w += gridDim.x * BLOCK) {
#pragma unroll
    for (int k = 0; k < REALS; k++) v[1 + k] += a.part[(size_t)k * a.count + w];
  }
  if (AddAll(a.g, v)) Decide(a.g, s, PRODUCT, v);
}

// r, and z'r and the norm of z or r
template <SpMVKrylovPC PC> SPMV_CG_KERNEL update(CGArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        v[SUMS] = {};
  Scalar           r[BATCH], w[BATCH], d[BATCH];
  if (!Enter(g, s)) return;
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
  if (AddAll(g, v)) Decide(g, s, sums ? TEST | BETA : TEST, v);
}

// The same with blocks, each by as many threads as it has rows
template <> SPMV_CG_KERNEL update<SPMV_KRYLOV_PC_BLOCKS>(CGArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State  s;
  __shared__ Scalar shared[BLOCK];
  PetscReal         v[SUMS] = {};
  if (!Enter(g, s)) return;
  const Scalar minus    = Negated(s.a);
  const bool   residual = g.norm == SPMV_KRYLOV_NORM_UNPRECONDITIONED;
  const int    rows = BLOCK / g.bs * g.bs, mine = (int)threadIdx.x, head = mine / g.bs * g.bs;
  for (unsigned first = blockIdx.x * (unsigned)rows; first < (unsigned)g.n; first += gridDim.x * (unsigned)rows) {
    const unsigned i   = first + (unsigned)mine;
    const bool     own = mine < rows && i < (unsigned)g.n;
    Scalar         now = Num::zero(), z = Num::zero();
    if (own) {
      now    = Num::fma(minus, g.w[i], g.r[i]);
      g.r[i] = now;
    }
    shared[mine] = now;
    __syncthreads();
    if (own) {
      for (int j = 0; j < g.bs; j++) z = Num::fma(g.d[(size_t)j * (size_t)g.n + i], shared[head + j], z);
      g.z[i] = z;
      v[0] += Square(residual ? now : z);
      AddTo(v + 1, Term(g.hermitian, z, now));
    }
    __syncthreads();
  }
  if (AddAll(g, v)) Decide(g, s, TEST | BETA, v);
}

// The norm and z'r, of a z that is there
SPMV_CG_KERNEL sums_of(CGArgs g, bool start, const Scalar *z, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        v[SUMS] = {};
  Scalar           a[BATCH], r[BATCH];
  if (!Enter(g, s)) return;
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
  // if the norm is that of r, update() has tested it
  if (AddAll(g, v)) Decide(g, s, start ? BETA | START : g.norm == SPMV_KRYLOV_NORM_UNPRECONDITIONED ? BETA : TEST | BETA, v);
}

// x += a p, where that is due, and p = z + b p, unless the solve has ended
template <SpMVKrylovPC PC> SPMV_CG_KERNEL direction(CGArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  Scalar           x[BATCH], p[BATCH], z[BATCH], d[BATCH];
  const bool       go = Enter(g, s), step = s.step;
  const bool       first = s.i == 0;
  if (!go && !step) return;
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

// Where the caller has added the sums over the ranks
struct DecideArgs {
  CGArgs g;
  int    step;
};

__global__ void decide(DecideArgs d, bool, const Scalar *, const Scalar *, Scalar *)
{
  PetscReal v[SUMS];
  AwaitPrevious();
  State s = *d.g.state;
  if (s.reason != SPMV_KRYLOV_ITERATING) return;
  for (int k = 0; k < SUMS; k++) v[k] = d.g.ranks.sums[k];
  Decide(d.g, s, d.step, v);
}

cudaError_t Launch(SpMVCudaKrylov k, Kernel &kernel, bool flag, const Scalar *z, cudaStream_t stream)
{
  return kernel.Launch(k->Grid(k->cg.n), BLOCK, k->cg, flag, {z, nullptr, nullptr}, stream);
}

// After a kernel that sums
cudaError_t Conclude(SpMVCudaKrylov k, int step, cudaStream_t stream)
{
  if (!k->allreduce) return cudaSuccess;
  const DecideArgs args = {k->cg, step};
  SPMV_TRY(k->allreduce(k->ctx, k->sums, SUMS, stream));
  return k->decide.Launch(1, 1, args, false, {}, stream);
}

} // namespace

cudaError_t _n_SpMVCudaKrylov::CreateCG()
{
  begin.Choose((const void *)::begin);
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
  return cudaSuccess;
}

cudaError_t SpMVCudaCGBegin(SpMVCudaKrylov k, const SpMVCudaCG *cg, cudaStream_t stream)
{
  if (cg->n > SPMVCUDA_MAX_SIZE || cg->bs > SPMV_KRYLOV_BLOCK) return cudaErrorNotSupported;
  BeginArgs args{};
  k->cg = {cg->n,           cg->bs,          (bool)cg->hermitian, (bool)cg->early, cg->pc,  cg->norm, (const Scalar *)cg->d, (Scalar *)cg->x, (Scalar *)cg->r,
           (Scalar *)cg->z, (Scalar *)cg->p, (Scalar *)cg->w,     k->state,        k->part, k->count, k->progress,           k->ranks};
  args.state       = k->state;
  args.first.norm  = cg->norm;
  args.first.until = cg->until;
  SPMV_TRY(k->order.Enter(stream, true));
  k->Forget();
  SPMV_TRY(k->begin.Launch(1, 1, args, false, {}, stream));
  SPMV_TRY(Launch(k, k->sums_of, true, cg->pc == SPMV_KRYLOV_PC_NONE ? k->cg.r : k->cg.z, stream));
  return Conclude(k, BETA | START, stream);
}

cudaError_t SpMVCudaCGProduct(SpMVCudaKrylov k, cudaStream_t stream)
{
  SPMV_TRY(Launch(k, k->product, false, nullptr, stream));
  return Conclude(k, PRODUCT, stream);
}

cudaError_t SpMVCudaCGMult(SpMVCudaKrylov k, SpMVCudaStore store, cudaStream_t stream, PetscBool *done)
{
  const unsigned warps = store->DotWarps();
  *done                = PETSC_FALSE;
  if (!warps || store->m != store->n || store->m != k->cg.n) return cudaSuccess;
  if (k->product_part.Bytes() < (size_t)warps * REALS * sizeof(PetscReal)) SPMV_TRY(k->product_part.Alloc((size_t)warps * REALS));
  SPMV_TRY(store->order.Enter(stream));
  SPMV_TRY(store->MultDot({k->cg.p, nullptr, k->cg.w}, {k->cg.hermitian, k->product_part}, stream));
  SPMV_TRY(store->order.Leave(stream));
  *done                      = PETSC_TRUE;
  const ProductSumsArgs args = {k->cg, k->product_part, warps};
  SPMV_TRY(k->product_sums.Launch(k->Grid((int)(warps / BATCH)), BLOCK, args, false, {}, stream));
  return Conclude(k, PRODUCT, stream);
}

cudaError_t SpMVCudaCGUpdate(SpMVCudaKrylov k, cudaStream_t stream)
{
  const bool applied = k->cg.pc == SPMV_KRYLOV_PC_APPLIED;
  SPMV_TRY(Launch(k, k->update[k->cg.pc], false, nullptr, stream));
  if (applied && k->cg.norm != SPMV_KRYLOV_NORM_UNPRECONDITIONED) return cudaSuccess;
  return Conclude(k, applied ? TEST : TEST | BETA, stream);
}

cudaError_t SpMVCudaCGSums(SpMVCudaKrylov k, cudaStream_t stream)
{
  SPMV_TRY(Launch(k, k->sums_of, false, k->cg.z, stream));
  return Conclude(k, k->cg.norm == SPMV_KRYLOV_NORM_UNPRECONDITIONED ? BETA : TEST | BETA, stream);
}

cudaError_t SpMVCudaCGDirection(SpMVCudaKrylov k, cudaStream_t stream)
{
  return Launch(k, k->direction[k->cg.pc], false, nullptr, stream);
}

cudaError_t SpMVCudaCGGetObjective(SpMVCudaKrylov k, PetscReal *objective, cudaStream_t stream)
{
  State s;
  SPMV_TRY(Fetch(&s, (State *)k->state, 1, stream));
  *objective = s.objective;
  return cudaSuccess;
}
