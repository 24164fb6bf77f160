/*
  The inside of the Krylov methods on the device: the state of a solve, sums, and what the host sees of it.
*/
#pragma once

#include "halo.cuh"
#include "krylov.h"
#include <algorithm>
#include <cmath>
#include <memory>

namespace spmv {

constexpr int KRYLOV_BLOCK = Tuning::KRYLOV_BLOCK;
constexpr int SUMS         = 1 + REALS; // numbers that a kernel sums, at most: a real one and a scalar

// What the host sees, in pinned memory. Each number is written and read whole. norm: bits of a double; EMPTY: not written yet
struct Progress {
  unsigned long long status; // bits 0-7 reason, 8-35 its, 36-63 norms
  unsigned long long norm[SPMV_KRYLOV_NORMS];
};
constexpr unsigned long long EMPTY = 0x7ff0dead00000000ull; // a NaN that no computation returns

inline __host__ __device__ unsigned long long PackStatus(int reason, int its, int norms)
{
  return (unsigned long long)reason | (unsigned long long)its << 8 | (unsigned long long)norms << 36;
}

// PEER: what a rank writes to the memory of another one
struct alignas(64) Mail {
  PetscReal sum[SUMS];
  unsigned  number; // of the sum: they count up
};

// The sums over all ranks. size 1: there is only one
struct Ranks {
  int          rank, size;
  bool         outside; // the caller adds them
  Mail        *mine;    // [2][size], written by the others: one half for the sums with even numbers
  Mail *const *theirs;  // of each rank: its `mine`
  unsigned    *number;  // of the last sum
  PetscReal   *sums;    // for the caller
};

// The state of a solve, in the device's memory
struct State {
  Scalar         dpi, beta, betaold, a, b; // p'Ap, z'r, that of the iteration before; x += a p, p = z + b p
  PetscReal      objective;
  SpMVKrylovNorm norm;
  SpMVKrylovTest until;
  int            i;     // iterations that are complete
  int            its;   // as the caller sees it
  int            norms; // reported
  int            reason;
  int            step; // x += a p is due
};

struct CGArgs {
  int            n, bs;
  bool           hermitian, early;
  SpMVKrylovPC   pc;
  SpMVKrylovNorm norm;
  const Scalar  *d;
  Scalar        *x, *r, *z, *p, *w;
  State         *state;
  PetscReal     *part; // partial sums, thread block by thread block
  unsigned      *arrived;
  Progress      *progress;
  Ranks          ranks;
};

__device__ __forceinline__ bool IsBad(PetscReal a) // Inf or NaN
{
  return !(a - a == PetscReal(0));
}
__device__ __forceinline__ PetscReal RealPart(PetscReal a)
{
  return a;
}
template <class R> __device__ __forceinline__ R RealPart(Complex<R> a)
{
  return a.re;
}
__device__ __forceinline__ PetscReal ImagPart(PetscReal)
{
  return 0;
}
template <class R> __device__ __forceinline__ R ImagPart(Complex<R> a)
{
  return a.im;
}
__device__ __forceinline__ bool IsBad(const Complex<PetscReal> &a)
{
  return IsBad(a.re) || IsBad(a.im);
}
__device__ __forceinline__ PetscReal Magnitude(PetscReal a)
{
  return fabs(a);
}
template <class R> __device__ __forceinline__ R Magnitude(Complex<R> a)
{
  return hypot(a.re, a.im);
}
__device__ __forceinline__ bool IsZero(Scalar a)
{
  return RealPart(a) == 0 && ImagPart(a) == 0;
}
__device__ __forceinline__ PetscReal Multiplied(PetscReal a, PetscReal b)
{
  return a * b;
}
template <class R> __device__ __forceinline__ Complex<R> Multiplied(Complex<R> a, Complex<R> b)
{
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ __forceinline__ PetscReal Negated(PetscReal a)
{
  return -a;
}
template <class R> __device__ __forceinline__ Complex<R> Negated(Complex<R> a)
{
  return {-a.re, -a.im};
}
__device__ __forceinline__ PetscReal Divided(PetscReal a, PetscReal b)
{
  return a / b;
}
template <class R> __device__ Complex<R> Divided(Complex<R> a, Complex<R> b) // Smith's way, which does not overflow in between
{
  if (fabs(b.re) >= fabs(b.im)) {
    const R q = b.im / b.re, d = b.re + b.im * q;
    return {(a.re + a.im * q) / d, (a.im - a.re * q) / d};
  }
  const R q = b.re / b.im, d = b.re * q + b.im;
  return {(a.re * q + a.im) / d, (a.im * q - a.re) / d};
}

// Of the sums of a kernel: [0] real, from [1] on a scalar
__device__ __forceinline__ Scalar ScalarOf(const PetscReal *v)
{
  Scalar a;
#pragma unroll
  for (int k = 0; k < REALS; k++) ((PetscReal *)&a)[k] = v[k];
  return a;
}
__device__ __forceinline__ void AddTo(PetscReal *v, Scalar a)
{
#pragma unroll
  for (int k = 0; k < REALS; k++) v[k] += ((const PetscReal *)&a)[k];
}
// conj(y) x or y x, a term of an inner product
__device__ __forceinline__ Scalar Term(bool hermitian, Scalar x, Scalar y)
{
  return Multiplied(x, hermitian ? Num::conj(y) : y);
}
__device__ __forceinline__ PetscReal Square(Scalar a)
{
  return RealPart(a) * RealPart(a) + ImagPart(a) * ImagPart(a);
}

// The sums of a thread block, in all lanes of its first warp; all threads call it
template <int BLOCK> __device__ __forceinline__ void AddBlock(PetscReal (&v)[SUMS])
{
  constexpr int        WARPS = BLOCK / WARP;
  __shared__ PetscReal shared[SUMS][WARPS];
  const int            warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
#pragma unroll
  for (int k = 0; k < SUMS; k++) {
#pragma unroll
    for (int by = WARP / 2; by; by >>= 1) v[k] += __shfl_xor_sync(ALL, v[k], by);
    if (lane == 0) shared[k][warp] = v[k];
  }
  __syncthreads();
  if (warp == 0) {
#pragma unroll
    for (int k = 0; k < SUMS; k++) {
      v[k] = lane < WARPS ? shared[k][lane] : PetscReal(0);
#pragma unroll
      for (int by = WARPS / 2; by; by >>= 1) v[k] += __shfl_xor_sync(ALL, v[k], by);
    }
  }
  __syncthreads();
}

/*
  Adds v over `count` thread blocks of which this one is number `mine`; the one that arrives last has the sums, in its first warp, and returns true. part: place
  for SUMS * count numbers. All threads call it.
*/
template <int BLOCK> __device__ __forceinline__ bool AddBlocks(PetscReal (&v)[SUMS], unsigned mine, unsigned count, PetscReal *part, unsigned *arrived)
{
  __shared__ bool last;
  AddBlock<BLOCK>(v);
  if (threadIdx.x == 0) {
#pragma unroll
    for (int k = 0; k < SUMS; k++) part[(size_t)k * count + mine] = v[k];
    last = ArriveLast(arrived, count);
  }
  __syncthreads();
  if (!last) return false;
  AcquireArrived();
#pragma unroll
  for (int k = 0; k < SUMS; k++) v[k] = 0;
  for (unsigned b = threadIdx.x; b < count; b += BLOCK) {
#pragma unroll
    for (int k = 0; k < SUMS; k++) v[k] += Fresh(part + (size_t)k * count + b);
  }
  AddBlock<BLOCK>(v);
  return true;
}

// Adds the sums of all ranks, in the order of the ranks: the same bits on all. All threads of one thread block call it; v counts in thread 0
__device__ __forceinline__ void AddRanks(const Ranks &ranks, PetscReal (&v)[SUMS])
{
  __shared__ PetscReal own[SUMS];
  const unsigned       n    = *ranks.number + 1;
  const int            half = (int)(n & 1) * ranks.size;
  if (threadIdx.x == 0) {
#pragma unroll
    for (int k = 0; k < SUMS; k++) own[k] = v[k];
  }
  __syncthreads();
  // That a rank writes sum n means that it has got sum n - 1 of all, and so that all have read sum n - 2: two halves are enough
  for (int r = threadIdx.x; r < ranks.size; r += blockDim.x) {
    Mail *to = ranks.theirs[r] + half + ranks.rank;
#pragma unroll
    for (int k = 0; k < SUMS; k++) to->sum[k] = own[k];
    FenceSystem();
    StoreReleaseSystem(&to->number, n);
  }
  for (int r = threadIdx.x; r < ranks.size; r += blockDim.x) {
    while (LoadRelaxedSystem(&ranks.mine[half + r].number) != n) __nanosleep(20);
    AcquireSystem();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
#pragma unroll
    for (int k = 0; k < SUMS; k++) v[k] = 0;
    for (int r = 0; r < ranks.size; r++) {
#pragma unroll
      for (int k = 0; k < SUMS; k++) v[k] += Fresh(&ranks.mine[half + r].sum[k]);
    }
    *ranks.number = n;
  }
}

/*
  Adds v, the sums of the grid, over all ranks. True for one thread, which holds the sums and takes the next step; for none where the caller adds over the ranks.
  All threads of one thread block call it.
*/
__device__ __forceinline__ bool AddAcross(const CGArgs &g, PetscReal (&v)[SUMS])
{
  if (g.ranks.outside) {
    if (threadIdx.x == 0) {
#pragma unroll
      for (int k = 0; k < SUMS; k++) g.ranks.sums[k] = v[k];
    }
    return false;
  }
  if (g.ranks.size > 1) AddRanks(g.ranks, v);
  return threadIdx.x == 0;
}

// Over all threads of the grid and all ranks, always in the same order
__device__ __forceinline__ bool AddAll(const CGArgs &g, PetscReal (&v)[SUMS])
{
  return AddBlocks<KRYLOV_BLOCK>(v, blockIdx.x, gridDim.x, g.part, g.arrived) && AddAcross(g, v);
}

__device__ __forceinline__ void Tell(unsigned long long *place, unsigned long long what)
{
  *(volatile unsigned long long *)place = what;
}
__device__ __forceinline__ void TellStatus(const State &s, Progress *progress)
{
  Tell(&progress->status, PackStatus(s.reason, s.its, s.norms));
}
__device__ __forceinline__ void TellNorm(int iteration, PetscReal norm, Progress *progress)
{
  Tell(&progress->norm[iteration % SPMV_KRYLOV_NORMS], (unsigned long long)__double_as_longlong((double)norm));
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

} // namespace spmv

struct _n_SpMVCudaKrylov {
  spmv::Array<spmv::State>  state;
  spmv::Array<PetscReal>    part, sums, product_part;
  spmv::Array<unsigned>     count; // arrived, number of sums
  spmv::Array<spmv::Scalar> array;
  spmv::Progress           *progress = nullptr;
  unsigned                  blocks   = 0; // the most of a grid
  spmv::StreamOrder         order;

  // PEER
  spmv::Array<char>         mail;
  spmv::Array<spmv::Mail *> theirs;
  std::vector<void *>       opened;
  spmv::Ranks               ranks = {0, 1, false, nullptr, nullptr, nullptr, nullptr};

  SpMVCudaKrylovAllReduce allreduce = nullptr;
  void                   *ctx       = nullptr;

  spmv::CGArgs cg = {};
  spmv::Kernel begin, product, product_sums, update[4], sums_of, direction[4], decide, chebyshev[3];

  ~_n_SpMVCudaKrylov()
  {
    if (progress) cudaFreeHost(progress);
  }
  cudaError_t Create();
  void        Forget() // what the host has seen of the solve before; when that ended, the device stopped writing
  {
    std::fill(progress->norm, progress->norm + SPMV_KRYLOV_NORMS, spmv::EMPTY);
    __atomic_store_n(&progress->status, 0ull, __ATOMIC_RELEASE);
  }
  cudaError_t CreateCG(); // the methods' kernels
  cudaError_t CreateChebyshev();
  unsigned    Grid(int n) const
  {
    return std::clamp(spmv::Blocks(n, spmv::KRYLOV_BLOCK), 1u, blocks);
  }
};
