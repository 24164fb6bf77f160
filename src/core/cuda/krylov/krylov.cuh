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

// The state of a solve, in device memory. The second line is only for CG, the third only for BiCGStab
struct State {
  Scalar         a, b;               // x += a p; p = z + b p
  Scalar         dpi, beta, betaold; // p'Ap, z'r, and z'r of the previous iteration
  Scalar         rho, omega;         // (r, r0); r = s - omega t
  PetscReal      objective, dp;      // CG's objective; BiCGStab's last norm
  SpMVKrylovNorm norm;
  SpMVKrylovTest until;
  int            i;     // complete iterations
  int            its;   // the iteration number that the caller sees
  int            norms; // number of reported norms
  int            reason;
  int            pending; // x += a p is still to be done
};

// The partial sums that the warps of a product's kernel have stored, `count` for each sum
struct Partials {
  const PetscReal *partial;
  unsigned         count;
};

// The arguments that the kernels of all methods have in common
struct SolveArgs {
  int            n, bs;
  bool           early;
  SpMVKrylovPC   pc;
  SpMVKrylovNorm norm;
  const Scalar  *d;
  State         *state;
  PetscReal     *partial; // partial sums of the thread blocks
  unsigned      *arrived;
  Progress      *progress;
  Ranks          ranks;
  Partials       partials; // for BeginAfterProduct()
};

struct CGArgs : SolveArgs {
  bool    hermitian;
  Scalar *x, *r, *z, *p, *w;
};

struct BCGSArgs : SolveArgs {
  // the preconditioner is applied to the products; otherwise to the vectors that are multiplied, `hat` and p
  bool    left;
  Scalar *x, *r, *r0, *v, *t, *p, *hat;
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

/*
  Adds v over `count` thread blocks; this one has number `mine`. The thread block that arrives last has the sums in its
  first warp and returns true. partial: space for N * count numbers. All threads call it.
*/
template <int BLOCK, int N>
__device__ __forceinline__ bool AddBlocks(PetscReal (&v)[N], unsigned mine, unsigned count, PetscReal *partial,
                                          unsigned *arrived)
{
  __shared__ bool last;
  AddBlock<BLOCK>(v);
  if (threadIdx.x == 0) {
#pragma unroll
    for (int k = 0; k < N; k++) partial[(size_t)k * count + mine] = v[k];
    last = ArriveLast(arrived, count);
  }
  __syncthreads();
  if (!last) return false;
  AcquireArrived(arrived);
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
  Adds `count` numbers of each rank in the order of the ranks, so that all ranks get the same bits. n: the number of
  this sum. v is in shared or global memory. All threads of a thread block call it when they see v. Several thread
  blocks may do so with the same v, in different places; one of them sends it.
*/
__device__ __forceinline__ void AddRanks(const Ranks &ranks, PetscReal *v, int count, unsigned n, bool send)
{
  constexpr int   MANY = 4; // ranks whose numbers a thread loads at once
  const int       half = (int)(n & 1) * ranks.size, words = count * HALVES;
  const unsigned *own = (const unsigned *)v;
  // When a rank writes sum n, it has received sum n - 1 of all ranks, so all ranks have read sum n - 2. Therefore two
  // halves are enough
  for (int t = threadIdx.x; send && t < ranks.size * words; t += blockDim.x)
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
}

// The same for numbers that only thread 0 has
template <int N> __device__ __forceinline__ void AddRanks(const Ranks &ranks, PetscReal (&v)[N], unsigned n, bool send)
{
  __shared__ PetscReal shared[N];
  if (threadIdx.x == 0) memcpy(shared, v, sizeof(v));
  __syncthreads();
  AddRanks(ranks, shared, N, n, send);
  if (threadIdx.x == 0) memcpy(v, shared, sizeof(v));
}

/*
  Adds v, the sums of the grid, over all ranks. Returns true in one thread, which has the sums and takes the next step,
  or in none if the caller adds the sums over the ranks. before: the number of sums that this kernel has already added
  over the ranks. All threads of one thread block call it.
*/
template <int N> __device__ __forceinline__ bool AddAcross(const SolveArgs &g, PetscReal (&v)[N], unsigned before)
{
  if (g.ranks.outside) {
    if (threadIdx.x == 0) {
#pragma unroll
      for (int k = 0; k < N; k++) g.ranks.sums[k] = v[k];
    }
    return false;
  }
  if (g.ranks.size > 1) {
    const unsigned n = *g.ranks.number + before + 1;
    AddRanks(g.ranks, v, n, true);
    if (threadIdx.x == 0) *g.ranks.number = n;
  }
  return threadIdx.x == 0;
}

// Adds v over all threads of the grid and all ranks, always in the same order
template <int N> __device__ __forceinline__ bool AddAll(const SolveArgs &g, PetscReal (&v)[N], unsigned before = 0)
{
  return AddBlocks<KRYLOV_BLOCK>(v, blockIdx.x, gridDim.x, g.partial, g.arrived) && AddAcross(g, v, before);
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
  if (g.early) LetNextBegin();
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

/*
  BeginKernel() for the kernel that follows a product. If the product has few partial sums, each thread block adds all
  of them, so that no separate kernel is needed; with several ranks, one thread block sends the sums, and each adds
  those of all ranks. One thread of each thread block calls after(s, v), which takes the step that depends on the sums.
  What a thread block reads of the state and of the number of the last sum must not change before all thread blocks have
  begun.
*/
template <int N, class After>
__device__ __forceinline__ bool BeginAfterProduct(const SolveArgs &g, State &s, After after)
{
  PetscReal v[N] = {};
  if (!BeginKernel(g, s)) {
    if (g.partials.count && blockIdx.x == 0 && threadIdx.x == 0)
      g.state->pending = 0; // the previous kernel has updated x
    return false;
  }
  if (!g.partials.count) return true;
  AddPartials(v, g.partials, threadIdx.x, KRYLOV_BLOCK);
  AddBlock<KRYLOV_BLOCK>(v);
  if (g.ranks.size > 1) AddRanks(g.ranks, v, *g.ranks.number + 1, blockIdx.x == 0);
  if (threadIdx.x == 0) after(s, v);
  __syncthreads();
  if (s.reason == SPMV_KRYLOV_ITERATING) return true;
  if (threadIdx.x == 0 && ArriveLast(g.arrived, gridDim.x)) { // all thread blocks have begun
    *g.arrived = 0;
    if (g.ranks.size > 1) ++*g.ranks.number;
    g.state->pending = 0;
    g.state->reason  = s.reason;
    ReportStatus(s, g.progress);
  }
  return false;
}

// The methods: their arguments and kernels, which Choose(), in the file of the method, sets. Arrays of kernels are
// indexed by SpMVKrylovPC
struct CG {
  CGArgs args = {};
  Kernel product, product_sums, update[4], sums_of, direction[4], decide;

  void Choose();
};

struct BCGS {
  BCGSArgs args = {};
  Kernel   start, first[3], first_sums, middle[3], second[3], second_sums, update[3], decide;

  void Choose();
};

struct Chebyshev {
  Kernel step[3];

  void Choose();
};

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

  spmv::Kernel    begin;
  spmv::CG        cg;
  spmv::BCGS      bcgs;
  spmv::Chebyshev chebyshev;

  ~_n_SpMVCudaKrylov()
  {
    if (progress) cudaFreeHost(progress);
  }
  cudaError_t Create();     // what all methods need
  cudaError_t CreateSums(); // the rest, which methods with sums need: Chebyshev's has none
  // resets the progress of the previous solve; the device stopped writing when that solve ended
  void Forget()
  {
    std::fill(progress->norm, progress->norm + SPMV_KRYLOV_NORMS, spmv::EMPTY);
    __atomic_store_n(&progress->status, 0ull, __ATOMIC_RELEASE);
  }
  // Completes the arguments of a method and resets what the host sees; Begin() also sets the initial state of a solve
  cudaError_t Prepare(spmv::SolveArgs &, cudaStream_t);
  cudaError_t Begin(spmv::SolveArgs &, spmv::State, cudaStream_t);
  // Memory for the partial sums of a product
  cudaError_t ReservePartials(size_t count)
  {
    return product_partial && product_partial.Bytes() >= count * sizeof(PetscReal) ? cudaSuccess
                                                                                   : product_partial.Alloc(count);
  }
  // A product, with an epilogue if the store has such a kernel for a square matrix with n rows: its sums are then in
  // *partials, whose count is otherwise 0
  cudaError_t Multiply(SpMVCudaStore, spmv::Product, int n, cudaStream_t, spmv::Partials *);
  // Whether the kernel that follows a product adds the product's sums
  bool AddsPartials(int n, unsigned warps) const
  {
    return !allreduce && (int64_t)warps * Grid(n) <= (int64_t)spmv::limits.krylov_partials;
  }
  unsigned Grid(int n) const
  {
    return std::clamp(spmv::Blocks(n, spmv::KRYLOV_BLOCK), 1u, blocks);
  }
};
