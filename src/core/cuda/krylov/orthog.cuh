/*
  Classical Gram-Schmidt as the bodies of two kernels: inner products with the vectors of a basis, and the update with
  the squares of its entries. A launch has up to 32 vectors of the basis. Both read each vector once.
*/
#pragma once

#include "krylov.cuh"

namespace spmv {

constexpr int ORTHOG_BLOCK = 256, ORTHOG_WARPS = ORTHOG_BLOCK / WARP;
constexpr int ORTHOG_CHUNK = WARP / REALS; // vectors of a launch: a thread has their sums in registers
constexpr int ORTHOG_GROUP = 16 / REALS;   // vectors of which a thread loads an entry at once

#define SPMV_PRODUCTS_KERNEL __global__ void __launch_bounds__(ORTHOG_BLOCK, 2)
#define SPMV_SUBTRACT_KERNEL __global__ void __launch_bounds__(ORTHOG_BLOCK, 4)

// The vectors of a launch. part: the sums of each thread block, one vector after the other
struct Basis {
  const Scalar *v[ORTHOG_CHUNK];
  int           n, first, count; // n: entries of a vector; first: number of the first vector
  int           rows;            // entries that a thread block of Subtract() has at once
  bool          last;            // there are no more vectors after these
  unsigned      blocks, updates; // thread blocks of InnerProducts() and of Subtract()
  Scalar       *part;
  PetscReal    *squares; // the sums of the squares of each thread block of Subtract()
};

/*
  Adds each of the numbers over a warp: lane k has the sum of number k % ORTHOG_CHUNK in v[0]. In each step, half of the
  lanes continue with half of the numbers
*/
template <int BY = WARP / 2> __device__ __forceinline__ void AddTransposed(Scalar (&v)[ORTHOG_CHUNK])
{
  if constexpr (BY >= ORTHOG_CHUNK) {
#pragma unroll
    for (int k = 0; k < ORTHOG_CHUNK; k++) v[k] = Num::add(v[k], Num::exchange(v[k], BY));
  } else {
    const bool upper = threadIdx.x & BY;
#pragma unroll
    for (int k = 0; k < BY; k++) {
      const Scalar give = upper ? v[k] : v[k + BY], keep = upper ? v[k + BY] : v[k];
      v[k] = Num::add(keep, Num::exchange(give, BY));
    }
  }
  if constexpr (BY > 1) AddTransposed<BY / 2>(v);
}

/*
  The inner products (v[j], x), where x(i) is an entry of x: stores the sums of this thread block. A thread has an entry
  of each vector. go() is called when the first loads are under way; if it is false, nothing more is loaded, and the sums
  are of no use. go() may differ between warps of a block; all of them reach the barrier below. All threads call it
*/
template <class X, class Go> __device__ __forceinline__ void InnerProducts(const Basis &g, X x, Go go)
{
  __shared__ Scalar shared[ORTHOG_WARPS][ORTHOG_CHUNK];
  const int         warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
  const unsigned    n = (unsigned)g.n;
  Scalar            sum[ORTHOG_CHUNK], a[ORTHOG_GROUP];
#pragma unroll
  for (int k = 0; k < ORTHOG_CHUNK; k++) sum[k] = Num::zero();
  for (unsigned i = blockIdx.x * ORTHOG_BLOCK + threadIdx.x; i - (unsigned)lane < n; i += g.blocks * ORTHOG_BLOCK) {
    const bool in = i < n;
    Scalar     b  = Num::zero();
#pragma unroll
    for (int j = 0; j < ORTHOG_CHUNK; j += ORTHOG_GROUP) {
      if (j >= g.count) continue; // the same for the whole grid
#pragma unroll
      for (int k = 0; k < ORTHOG_GROUP; k++) a[k] = j + k < g.count && in ? LoadOrdered(g.v[j + k] + i) : Num::zero();
      if (j == 0 && in) b = x(i); // after the other loads, because it waits for its own
      Issue();
#pragma unroll
      for (int k = 0; k < ORTHOG_GROUP; k++) sum[j + k] = Num::fma(Num::conj(a[k]), b, sum[j + k]);
    }
    if (!go()) break;
  }
  AddTransposed(sum);
  if (lane < ORTHOG_CHUNK) shared[warp][lane] = sum[0];
  __syncthreads();
  if ((int)threadIdx.x >= g.count) return;
  Scalar total = Num::zero();
#pragma unroll
  for (int w = 0; w < ORTHOG_WARPS; w++) total = Num::add(total, shared[w][threadIdx.x]);
  g.part[(size_t)(g.first + (int)threadIdx.x) * g.blocks + blockIdx.x] = total;
}

/*
  Adds the sums of the thread blocks: calls finish(j, sum) in one thread each for the vectors of this launch, numbered
  from zero. All threads of a thread block call it
*/
template <class Finish> __device__ __forceinline__ void AddProducts(const Basis &g, Finish finish)
{
  constexpr int MINE = ORTHOG_CHUNK / ORTHOG_WARPS, MANY = 9; // loads at once: an H200 has 264 thread blocks
  const int     warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
  Scalar        sum[MINE], mine                      = Num::zero();
#pragma unroll
  for (int k = 0; k < MINE; k++) {
    const int j = warp + k * ORTHOG_WARPS;
    sum[k]      = Num::zero();
    if (j >= g.count) continue;
    const Scalar *part = g.part + (size_t)(g.first + j) * g.blocks;
    for (unsigned b = (unsigned)lane; b < g.blocks; b += MANY * WARP) {
      Scalar a[MANY];
#pragma unroll
      for (int u = 0; u < MANY; u++) a[u] = b + u * WARP < g.blocks ? LoadOrdered(part + b + u * WARP) : Num::zero();
#pragma unroll
      for (int u = 0; u < MANY; u++) sum[k] = Num::add(sum[k], a[u]);
    }
  }
#pragma unroll
  for (int k = 0; k < MINE; k++) {
#pragma unroll
    for (int by = WARP / 2; by; by >>= 1) sum[k] = Num::add(sum[k], Num::exchange(sum[k], by));
    if (lane == k) mine = sum[k];
  }
  if (lane < MINE && warp + lane * ORTHOG_WARPS < g.count) finish(warp + lane * ORTHOG_WARPS, mine);
}

/*
  x - sum of h(j) v[j], where x(i) is an entry of x, and h has a number for each vector: all threads call put(i, in,
  entry), where `in` is false if the thread has no entry. With the last vectors, stores the sum of the squares of the
  new entries of this thread block. The last entries come first: of these, InnerProducts() has left some in the L2
  cache. All threads call it
*/
template <class X, class Put>
__device__ __forceinline__ void Subtract(const Basis &g, const Scalar (&h)[ORTHOG_CHUNK], X x, Put put)
{
  const unsigned n = (unsigned)g.n, rows = (unsigned)g.rows, tiles = (n + rows - 1) / rows;
  Scalar         a[ORTHOG_GROUP];
  PetscReal      squares[1] = {};
  for (unsigned t = blockIdx.x; t < tiles; t += gridDim.x) {
    const unsigned i   = (tiles - 1 - t) * rows + threadIdx.x;
    const bool     in  = threadIdx.x < rows && i < n;
    Scalar         sum = Num::zero();
    int            j   = 0;
    do {
#pragma unroll
      for (int k = 0; k < ORTHOG_GROUP; k++) a[k] = j + k < g.count && in ? LoadOrdered(g.v[j + k] + i) : Num::zero();
      if (j == 0 && in) sum = x(i);
      Issue();
#pragma unroll
      for (int k = 0; k < ORTHOG_GROUP; k++) {
        if (j + k < g.count) sum = Num::fma(Negated(h[j + k]), a[k], sum); // the same for the whole grid
      }
    } while ((j += ORTHOG_GROUP) < g.count);
    put(i, in, sum);
    squares[0] += Square(sum);
  }
  if (!g.last) return;
  AddBlock<ORTHOG_BLOCK>(squares);
  if (threadIdx.x == 0) g.squares[blockIdx.x] = squares[0];
}

// Adds the squares of `count` thread blocks; the threads of the first warp have the sum. All threads of a block call it
__device__ __forceinline__ PetscReal AddSquares(const PetscReal *squares, unsigned count)
{
  PetscReal v[1] = {};
  for (unsigned b = threadIdx.x; b < count; b += ORTHOG_BLOCK) v[0] += LoadOrdered(squares + b);
  AddBlock<ORTHOG_BLOCK>(v);
  return v[0];
}

// The memory and the grids of both
class Orthogonalizer {
public:
  cudaError_t Create()
  {
    int multiprocessors;
    SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &multiprocessors));
    blocks = 2 * (unsigned)multiprocessors;
    return squares.Alloc(2 * blocks);
  }
  // Memory for the sums of so many vectors
  cudaError_t Reserve(int count)
  {
    const size_t need = (size_t)count * blocks;
    return part && part.Size() >= need ? cudaSuccess : part.Alloc(need);
  }
  // Calls launch(basis) for up to ORTHOG_CHUNK vectors at a time, and once if there are none
  template <class F> cudaError_t ForChunks(int n, int count, const PetscScalar *const v[], F launch)
  {
    int first = 0;
    do {
      Basis g = {{},
                 n,
                 first,
                 std::min(ORTHOG_CHUNK, count - first),
                 ORTHOG_BLOCK,
                 first + ORTHOG_CHUNK >= count,
                 std::clamp(Blocks(n, ORTHOG_BLOCK), 1u, blocks),
                 std::clamp(Blocks(n, ORTHOG_BLOCK), 1u, 2 * blocks),
                 part,
                 squares};
      for (int k = 0; k < g.count; k++) g.v[k] = (const Scalar *)v[first + k];
      SPMV_TRY(launch(g));
      first += ORTHOG_CHUNK;
    } while (first < count);
    return cudaSuccess;
  }

private:
  Array<Scalar>    part;
  Array<PetscReal> squares;
  unsigned         blocks = 0;
};

} // namespace spmv
