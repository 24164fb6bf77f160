/*
  The implementation of the Krylov methods on the device: the state of a solve, the sums, and the progress that the host
  sees.
*/
#pragma once

#include "core/cuda/product/epilogue.cuh"
#include "core/cuda/halo/halo.cuh"
#include "krylov.h"
#include <algorithm>
#include <cmath>
#include <memory>

namespace spmv {

constexpr int KRYLOV_BLOCK = Tuning::KRYLOV_BLOCK;
constexpr int BATCH        = 4;             // entries of a vector whose loads a thread issues at once
constexpr int SUMS         = 1 + 3 * REALS; // most sums of a kernel: one real number and three scalars

// The progress that the host sees, in pinned memory. Each number is written and read as a whole. norm: the bits of a
// double, or EMPTY if not written yet
struct Progress {
  unsigned long long status; // bits 0-7 reason, 8-35 its, 36-63 norms
  unsigned long long norm[SPMV_KRYLOV_NORMS];
};
constexpr unsigned long long EMPTY = 0x7ff0dead00000000ull; // a NaN that no computation returns

inline __host__ __device__ unsigned long long PackStatus(int reason, int its, int norms)
{
  return (unsigned long long)reason | (unsigned long long)its << 8 | (unsigned long long)norms << 36;
}

// PEER: the sums that a rank writes to another rank's memory. The lower half of a word is half of a number of 64 bits,
// or a number of 32 bits; the upper half is the number of the sum, as sums are counted. Words arrive as a whole, so
// that no fence is needed
constexpr int HALVES = sizeof(PetscReal) / sizeof(unsigned);
struct alignas(128) Mail {
  uint64_t word[SPMV_KRYLOV_SUMS * HALVES];
};

// The data for sums over all ranks. size 1: there is only one rank
struct Ranks {
  int  rank, size;
  bool outside; // the caller adds the sums
  // [2][size], written by the other ranks: one half for sums with even numbers, one for sums with odd numbers
  Mail        *mine;
  Mail *const *theirs; // the `mine` of each rank
  unsigned    *number; // number of the last sum
  PetscReal   *sums;   // space for the numbers of a sum, which the caller adds if `outside`
};

// The state of a solve, in device memory. Only for CG are dpi, beta and pending, only for BiCGStab rho, omega and dp
struct State {
  Scalar    a, b;               // x += a p; p = z + b p
  Scalar    dpi, beta, betaold; // p'Ap, z'r, and z'r of the previous iteration
  Scalar    rho, omega;         // (r, r0); r = s - omega t
  PetscReal dp;                 // BiCGStab's last norm
  int       i;                  // complete iterations
  int       its;                // the iteration number that the caller sees
  int       norms;              // number of reported norms
  int       reason;
  int       pending; // x += a p is still to be done
};

// The partial sums that the warps of a product's kernel have stored, `count` for each sum
struct Partials {
  const PetscReal *partial;
  unsigned         count;
};

// The arguments that the kernels of all methods have in common
struct SolveArgs : SpMVKrylovSolve {
  State     *state;
  PetscReal *partial; // partial sums of the thread blocks
  unsigned  *arrived;
  Progress  *progress;
  Ranks      ranks;
  Partials   partials; // for BeginAfterProduct()
};

// Those of a method. Decide() is what one thread does when the sums of a kernel are complete; v: the sums, s: the state
// at the beginning of the kernel
struct CGArgs : SolveArgs, SpMVCudaCG {
  __device__ void Decide(State &s, int decision, const PetscReal v[]) const;
};

struct BCGSArgs : SolveArgs, SpMVCudaBCGS {
  __device__ void Decide(State &s, int decision, const PetscReal v[]) const;
};

// Adds v over a thread block. All lanes of the first warp have the sums. All threads call it
template <int BLOCK, int N> __device__ __forceinline__ void AddBlock(PetscReal (&v)[N])
{
  constexpr int        WARPS = BLOCK / WARP;
  __shared__ PetscReal shared[N][WARPS];
  const int            warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
#pragma unroll
  for (int k = 0; k < N; k++) {
#pragma unroll
    for (int by = WARP / 2; by; by >>= 1) v[k] += __shfl_xor_sync(ALL, v[k], by);
    if (lane == 0) shared[k][warp] = v[k];
  }
  __syncthreads();
  if (warp == 0) {
#pragma unroll
    for (int k = 0; k < N; k++) {
      v[k] = lane < WARPS ? shared[k][lane] : PetscReal(0);
#pragma unroll
      for (int by = WARPS / 2; by; by >>= 1) v[k] += __shfl_xor_sync(ALL, v[k], by);
    }
  }
  __syncthreads();
}

// Whether this thread block is the last of `count` to arrive; then it sees what all threads of the others have written
// before. All threads call it
__device__ __forceinline__ bool IsLast(unsigned *arrived, unsigned count)
{
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) last = ArriveLast(arrived, count);
  __syncthreads();
  if (last) AcquireArrived(arrived);
  return last;
}

/*
  Adds v over `count` thread blocks; this one has number `mine`. The thread block that arrives last has the sums in its
  first warp and returns true. partial: space for N * count numbers. All threads call it.
*/
template <int BLOCK, int N>
__device__ __forceinline__ bool AddBlocks(PetscReal (&v)[N], unsigned mine, unsigned count, PetscReal *partial,
                                          unsigned *arrived)
{
  AddBlock<BLOCK>(v);
  if (threadIdx.x == 0) {
#pragma unroll
    for (int k = 0; k < N; k++) partial[(size_t)k * count + mine] = v[k];
  }
  if (!IsLast(arrived, count)) return false;
#pragma unroll
  for (int k = 0; k < N; k++) v[k] = 0;
  for (unsigned b = threadIdx.x; b < count; b += BLOCK) {
#pragma unroll
    for (int k = 0; k < N; k++) v[k] += Fresh(partial + (size_t)k * count + b);
  }
  AddBlock<BLOCK>(v);
  return true;
}

/*
  Adds `count` numbers of each rank in the order of the ranks, so that all ranks get the same bits. v is in shared or
  global memory. All threads of a thread block call it when they see v.
*/
__device__ __forceinline__ void AddRanks(const Ranks &ranks, PetscReal *v, int count)
{
  const unsigned  n    = *ranks.number + 1;
  constexpr int   MANY = 4; // ranks whose numbers a thread loads at once
  const int       half = (int)(n & 1) * ranks.size, words = count * HALVES;
  const unsigned *own = (const unsigned *)v;
  // When a rank writes sum n, it has received sum n - 1 of all ranks, so all ranks have read sum n - 2. Therefore two
  // halves are enough
  for (int t = threadIdx.x; t < ranks.size * words; t += blockDim.x)
    StoreRelaxedSystem(&ranks.theirs[t / words][half + ranks.rank].word[t % words], (uint64_t)n << 32 | own[t % words]);
  __syncthreads();
  for (int k = threadIdx.x; k < count; k += blockDim.x) {
    PetscReal total = 0;
    for (int first = 0; first < ranks.size; first += MANY) {
      unsigned bits[MANY][HALVES];
      for (bool all = false; !all;) {
        all = true;
#pragma unroll
        for (int r = 0; r < MANY; r++) {
#pragma unroll
          for (int w = 0; w < HALVES; w++) {
            if (first + r >= ranks.size) continue;
            const uint64_t word = LoadRelaxedSystem(&ranks.mine[half + first + r].word[k * HALVES + w]);
            bits[r][w]          = (unsigned)word;
            all &= word >> 32 == n;
          }
        }
        if (!all) __nanosleep(20);
      }
#pragma unroll
      for (int r = 0; r < MANY; r++) {
        PetscReal a;
        if (first + r >= ranks.size) continue;
        memcpy(&a, bits[r], sizeof(a));
        total += a;
      }
    }
    v[k] = total;
  }
  __syncthreads();
  if (threadIdx.x == 0) *ranks.number = n;
}

// Adds v over all threads of the grid and all ranks, always in the same order. Returns true in one thread, which has
// the sums and takes the next step, or in none if the caller adds the sums over the ranks
template <int N> __device__ __forceinline__ bool AddAll(const SolveArgs &g, PetscReal (&v)[N])
{
  __shared__ PetscReal shared[N];
  if (!AddBlocks<KRYLOV_BLOCK>(v, blockIdx.x, gridDim.x, g.partial, g.arrived)) return false;
  if (g.ranks.outside) {
    if (threadIdx.x == 0) memcpy(g.ranks.sums, v, sizeof(v));
    return false;
  }
  if (g.ranks.size > 1) {
    if (threadIdx.x == 0) memcpy(shared, v, sizeof(v));
    __syncthreads();
    AddRanks(g.ranks, shared, N);
    if (threadIdx.x == 0) memcpy(v, shared, sizeof(v));
  }
  return threadIdx.x == 0;
}

__device__ __forceinline__ void Publish(unsigned long long *place, unsigned long long what)
{
  *(volatile unsigned long long *)place = what;
}
__device__ __forceinline__ void ReportStatus(const State &s, Progress *progress)
{
  Publish(&progress->status, PackStatus(s.reason, s.its, s.norms));
}
__device__ __forceinline__ void ReportNorm(int iteration, PetscReal norm, Progress *progress)
{
  Publish(&progress->norm[iteration % SPMV_KRYLOV_NORMS], (unsigned long long)__double_as_longlong((double)norm));
}

// KSPConvergedDefault() after n iterations
__device__ inline int Converged(const SpMVKrylovTest &t, bool none, int n, PetscReal norm)
{
  if (!t.test) return SPMV_KRYLOV_ITERATING;
  if (t.enough && n >= t.max_it) return SPMV_KRYLOV_ENOUGH;
  if (none || n <= t.chknorm) return SPMV_KRYLOV_ITERATING;
  if (IsBad(norm)) return SPMV_KRYLOV_NAN_NORM;
  if (n < t.min_it) return SPMV_KRYLOV_ITERATING;
  if (norm <= t.ttol) return norm < t.abstol ? SPMV_KRYLOV_ATOL : SPMV_KRYLOV_RTOL;
  return norm >= t.dtol ? SPMV_KRYLOV_DTOL : SPMV_KRYLOV_ITERATING;
}

__device__ __forceinline__ void End(State &s, int reason)
{
  s.reason = reason;
}

// ------------------------------------------------------------------------------------------------ kernels

#define SPMV_KRYLOV_KERNEL __global__ void __launch_bounds__(KRYLOV_BLOCK, Tuning::KRYLOV_BLOCKS)

/*
  The beginning of every kernel: waits for the previous kernel and copies the state to shared memory, so that the thread
  that takes the next step need not load it. Returns false if the solve has ended.
*/
__device__ __forceinline__ bool BeginKernel(const SolveArgs &g, State &s)
{
  AwaitPrevious();
  LetNextBegin();
  static_assert(sizeof(State) % sizeof(unsigned) == 0 && sizeof(State) / sizeof(unsigned) <= KRYLOV_BLOCK,
                "a thread copies a word");
  if (threadIdx.x < sizeof(State) / sizeof(unsigned))
    ((unsigned *)&s)[threadIdx.x] = ((const volatile unsigned *)g.state)[threadIdx.x];
  __syncthreads();
  return s.reason == SPMV_KRYLOV_ITERATING;
}

// Calls load(u, i), then use(u, i), for all n entries of vectors, COUNT at a time. The lanes of a warp stay together,
// because Issue() is called between the two
template <int COUNT = BATCH, class Load, class Use> __device__ __forceinline__ void ForEach(int n, Load load, Use use)
{
  const unsigned stride = gridDim.x * KRYLOV_BLOCK, lane = threadIdx.x % WARP;
  for (unsigned warp = blockIdx.x * KRYLOV_BLOCK + threadIdx.x - lane; warp < (unsigned)n; warp += COUNT * stride) {
    const unsigned first = warp + lane;
#pragma unroll
    for (int u = 0; u < COUNT; u++) {
      if (first + u * stride < (unsigned)n) load(u, first + u * stride);
    }
    Issue();
#pragma unroll
    for (int u = 0; u < COUNT; u++) {
      if (first + u * stride < (unsigned)n) use(u, first + u * stride);
    }
  }
}

/*
  Entry i of B y for a preconditioner with blocks of bs rows, as many threads of a thread block for each as it has rows.
  y: entry i of the vector. own: this thread has an entry. All threads call it
*/
template <int BLOCK>
__device__ __forceinline__ Scalar MultiplyBlock(const Scalar *d, int n, int bs, unsigned i, bool own, Scalar y)
{
  __shared__ Scalar shared[BLOCK];
  const Scalar     *mine = shared + (int)threadIdx.x / bs * bs;
  Scalar            z    = Num::zero();
  shared[threadIdx.x]    = y;
  __syncthreads();
  for (int j = 0; own && j < bs; j++) z = Num::fma(d[(size_t)j * (size_t)n + i], mine[j], z);
  __syncthreads();
  return z;
}

/*
  Calls load(u, i), then use(u, i, y, z) with y = value(u, i), entry i of a vector, and z = B y for the preconditioner
  that the kernel applies. All threads of a thread block take part until the end: BLOCKS have as many threads per block
  of B as it has rows.
*/
template <SpMVKrylovPC PC, int COUNT = BATCH, class Load, class Value, class Use>
__device__ __forceinline__ void ForEachOf(const SolveArgs &g, Load load, Value value, Use use)
{
  constexpr int BLOCK = KRYLOV_BLOCK;
  if constexpr (PC == SPMV_KRYLOV_PC_BLOCKS) {
    const unsigned rows = BLOCK / (unsigned)g.bs * (unsigned)g.bs;
    for (unsigned first = blockIdx.x * rows; first < (unsigned)g.n; first += gridDim.x * rows) {
      const unsigned i   = first + threadIdx.x;
      const bool     own = threadIdx.x < rows && i < (unsigned)g.n;
      if (own) load(0, i);
      const Scalar y = own ? value(0, i) : Num::zero(), z = MultiplyBlock<BLOCK>(g.d, g.n, g.bs, i, own, y);
      if (own) use(0, i, y, z);
    }
  } else {
    Scalar d[COUNT];
    ForEach<COUNT>(
        g.n,
        [&](int u, unsigned i) {
          load(u, i);
          if (PC == SPMV_KRYLOV_PC_POINTS) d[u] = g.d[i];
        },
        [&](int u, unsigned i) {
          const Scalar y = value(u, i);
          use(u, i, y, PC == SPMV_KRYLOV_PC_POINTS ? Multiplied(d[u], y) : y);
        });
  }
}

// Adds thread `first`'s share of the partial sums to v; `threads` threads share them
template <int N>
__device__ __forceinline__ void AddPartials(PetscReal (&v)[N], const Partials &partials, unsigned first,
                                            unsigned threads)
{
  for (unsigned w = first; w < partials.count; w += threads) {
#pragma unroll
    for (int k = 0; k < N; k++) v[k] += partials.partial[(size_t)k * partials.count + w];
  }
}

// BeginKernel() for the kernel that adds the sums of a product. The kernel before the product has updated x
__device__ __forceinline__ bool BeginSums(const SolveArgs &g, State &s)
{
  if (BeginKernel(g, s)) return true;
  if (blockIdx.x == 0 && threadIdx.x == 0) g.state->pending = 0;
  return false;
}

// Adds the partial sums of the warps of a product's kernel
template <int N, int DECISION, class Args>
SPMV_KRYLOV_KERNEL product_sums(Args g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ State s;
  PetscReal        v[N] = {};
  if (!BeginSums(g, s)) return;
  AddPartials(v, g.partials, blockIdx.x * KRYLOV_BLOCK + threadIdx.x, gridDim.x * KRYLOV_BLOCK);
  if (AddAll(g, v)) g.Decide(s, DECISION, v);
}

// The step for the case that the caller has added the sums over the ranks
template <class Args> __global__ void decide(Args g, int decision, const Scalar *, const Scalar *, Scalar *)
{
  PetscReal v[SUMS];
  AwaitPrevious();
  State s = *g.state;
  if (s.reason != SPMV_KRYLOV_ITERATING) return;
  for (int k = 0; k < SUMS; k++) v[k] = g.ranks.sums[k];
  g.Decide(s, decision, v);
}

/*
  BeginKernel() for the kernel that follows a product. If the product has few partial sums, each thread block adds all
  of them, so that no separate kernel is needed. One thread of each thread block calls after(s, v), which takes the step
  that depends on the sums. What a thread block reads of the state must not change before all thread blocks have begun.
*/
template <int N, class After>
__device__ __forceinline__ bool BeginAfterProduct(const SolveArgs &g, State &s, After after)
{
  PetscReal v[N] = {};
  if (!g.partials.count) return BeginKernel(g, s);
  if (!BeginSums(g, s)) return false;
  AddPartials(v, g.partials, threadIdx.x, KRYLOV_BLOCK);
  AddBlock<KRYLOV_BLOCK>(v);
  if (threadIdx.x == 0) after(s, v);
  __syncthreads();
  if (s.reason == SPMV_KRYLOV_ITERATING) return true;
  if (threadIdx.x == 0 && ArriveLast(g.arrived, gridDim.x)) { // all thread blocks have begun
    *g.arrived       = 0;
    g.state->pending = 0;
    g.state->reason  = s.reason;
    ReportStatus(s, g.progress);
  }
  return false;
}

// Launches a kernel with the arguments of Kernel
template <auto FUNCTION, class Args, class Form = bool>
cudaError_t Launch(unsigned grid, unsigned block, const Args &args, cudaStream_t stream, Form form = {},
                   Operands v = {}, size_t shared = 0)
{
  static Kernel kernel = [] {
    Kernel made;
    made.Choose((const void *)FUNCTION);
    return made;
  }();
  return kernel.LaunchWith(grid, block, &args, form, v, stream, shared);
}

// Calls f with the preconditioner as a type whose `value` is a constant. OTHER: the value for APPLIED, such as NONE
template <SpMVKrylovPC OTHER = SPMV_KRYLOV_PC_APPLIED, class F> cudaError_t WithPC(SpMVKrylovPC pc, F f)
{
  switch (pc) {
  case SPMV_KRYLOV_PC_NONE: return f(std::integral_constant<SpMVKrylovPC, SPMV_KRYLOV_PC_NONE>());
  case SPMV_KRYLOV_PC_POINTS: return f(std::integral_constant<SpMVKrylovPC, SPMV_KRYLOV_PC_POINTS>());
  case SPMV_KRYLOV_PC_BLOCKS: return f(std::integral_constant<SpMVKrylovPC, SPMV_KRYLOV_PC_BLOCKS>());
  default: return f(std::integral_constant<SpMVKrylovPC, OTHER>());
  }
}

} // namespace spmv

struct _n_SpMVCudaKrylov {
  spmv::Array<spmv::State>  state;
  spmv::Array<PetscReal>    partial, sums, product_partial;
  spmv::Array<unsigned>     count; // number of arrived thread blocks, number of sums
  spmv::Array<spmv::Scalar> array;
  spmv::Progress           *progress = nullptr;
  unsigned                  blocks   = 0; // most thread blocks of a grid
  spmv::StreamOrder         order;

  // PEER
  spmv::Array<char>         mail;
  spmv::Array<spmv::Mail *> theirs;
  std::vector<void *>       opened;
  spmv::Ranks               ranks = {0, 1, false, nullptr, nullptr, nullptr, nullptr};

  SpMVCudaKrylovAllReduce allreduce = nullptr;
  void                   *ctx       = nullptr;

  spmv::CGArgs   cg        = {};
  spmv::BCGSArgs bcgs      = {};
  spmv::State    beginning = {}; // the initial state of the solve

  ~_n_SpMVCudaKrylov()
  {
    if (progress) cudaFreeHost(progress);
  }
  cudaError_t CreateSums(); // what methods with sums need: Chebyshev's has none
  // resets the progress of the previous solve; the device stopped writing when that solve ended
  void Forget()
  {
    std::fill(progress->norm, progress->norm + SPMV_KRYLOV_NORMS, spmv::EMPTY);
    __atomic_store_n(&progress->status, 0ull, __ATOMIC_RELEASE);
  }
  // Completes the arguments of a method and resets what the host sees; Begin() also sets the initial state of a solve
  cudaError_t Prepare(spmv::SolveArgs &, cudaStream_t);
  cudaError_t Begin(spmv::SolveArgs &, const spmv::State &, cudaStream_t);
  // Memory for the partial sums of a product
  cudaError_t ReservePartials(size_t count)
  {
    return product_partial && product_partial.Bytes() >= count * sizeof(PetscReal) ? cudaSuccess
                                                                                   : product_partial.Alloc(count);
  }
  // A product, with an epilogue if the store has such a kernel for a square matrix with n rows: its sums are then in
  // *partials, whose count is otherwise 0
  cudaError_t Multiply(SpMVCudaStore, spmv::Product, int n, cudaStream_t, spmv::Partials *);
  // The rest of a product with sums: those of its epilogue are added, or if it has none, separate() launches a kernel
  // that computes them. next: the next kernel can add the sums, unless they are many
  template <int N, int DECISION, class Args, class F>
  cudaError_t AddSums(Args &g, bool next, cudaStream_t stream, F separate)
  {
    const unsigned warps = g.partials.count;
    if (warps && next && !allreduce && ranks.size == 1 &&
        (int64_t)warps * Grid(g.n) <= (int64_t)spmv::limits.krylov_partials)
      return cudaSuccess;
    if (warps)
      SPMV_TRY((spmv::Launch<spmv::product_sums<N, DECISION, Args>>(Grid((int)(warps / spmv::BATCH)),
                                                                    spmv::KRYLOV_BLOCK, g, stream)));
    else
      SPMV_TRY(separate());
    g.partials = {};
    return Conclude(g, DECISION, N, stream);
  }
  // Completes the sums of a kernel, if the caller adds them over the ranks
  template <class Args> cudaError_t Conclude(const Args &g, int decision, int numbers, cudaStream_t stream)
  {
    if (!allreduce) return cudaSuccess;
    SPMV_TRY(allreduce(ctx, sums, numbers, stream));
    return spmv::Launch<spmv::decide<Args>>(1, 1, g, stream, decision);
  }
  unsigned Grid(int n) const
  {
    return std::clamp(spmv::Blocks(n, spmv::KRYLOV_BLOCK), 1u, blocks);
  }
};
