/*
  The tentative prolongator: one QR factorization for each aggregate.
*/
#include "amg.cuh"

namespace spmv {
namespace {

constexpr int MANY = 1024; // rows; a thread block of a single warp factors fewer

// The entry of R for an aggregate's column of ones, whose entries of Q are the inverse
__device__ __forceinline__ PetscReal Root(int size)
{
  return size == 1 ? 1 : -sqrt((PetscReal)size);
}

// i and j; and a, if B is the default. A thread for each row
__global__ void fill_rows(int64_t n, int bs, int k, const int *of, const int64_t *before, const int *size, bool ones,
                          PetscInt *i, PetscInt *j, Scalar *a)
{
  const int64_t row = Thread(), v = row / bs;
  const int     r = (int)(row % bs);
  if (row > n * bs) return;
  const int     own = v < n ? of[v] : -1;
  const int64_t at  = (before[v] * bs + (own < 0 ? 0 : r)) * k;
  i[row]            = (PetscInt)at;
  for (int c = 0; own >= 0 && c < k; c++) {
    j[at + c] = (PetscInt)own * k + c;
    if (ones) a[at + c] = FromReal(c == r ? 1 / Root(size[own]) : 0);
  }
}

__global__ void fill_roots(int64_t count, int k, const int *size, PetscReal *R)
{
  const int64_t t = Thread(), row = t % (count * k);
  if (t < count * k * k) R[t] = t / (count * k) == row % k ? Root(size[row / k]) : 0;
}

__global__ void list_vertices(int64_t n, int64_t count, const int *of, uint64_t *key, int *vertex)
{
  const int64_t v = Thread();
  if (v >= n) return;
  key[v]    = of[v] < 0 ? count : of[v];
  vertex[v] = (int)v;
}

__global__ void copy_sizes(int64_t count, const int *size, int64_t *first)
{
  const int64_t g = Thread();
  if (g <= count) first[g] = g < count ? size[g] : 0;
}

// The sum over all threads of the block, which is that of each of them
__device__ double BlockSum(double own)
{
  __shared__ double part[BLOCK / WARP];
  for (int by = WARP / 2; by; by /= 2) own += __shfl_xor_sync(ALL, own, by);
  if (blockDim.x == WARP) return own;
  __syncthreads();
  if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = own;
  __syncthreads();
  double sum = 0;
  for (int w = 0; w < (int)blockDim.x / WARP; w++) sum += part[w];
  return sum;
}

struct Factored {
  int              bs, k;
  int64_t          n, count;
  const int       *size, *vertex;
  const int64_t   *first, *before;
  const PetscReal *B;
  PetscReal       *work, *R;
  Scalar          *a;
};

// Applies I - tau v v^T to column c of W. v is column p below its entry p, which is 1
__device__ void Reflect(PetscReal *W, int64_t rows, int p, int c, double tau)
{
  double dot = 0;
  for (int64_t r = threadIdx.x; r < rows; r += blockDim.x) {
    if (r >= p) dot += (r == p ? 1 : (double)W[r + p * rows]) * W[r + c * rows];
  }
  dot = tau * BlockSum(dot);
  for (int64_t r = threadIdx.x; r < rows; r += blockDim.x) {
    if (r >= p) W[r + c * rows] -= dot * (r == p ? 1 : (double)W[r + p * rows]);
  }
}

// LAPACK's geqr2 and org2r. Each thread changes rows of its own; others read them after a barrier
__global__ void factor(Factored f)
{
  __shared__ double taus[WARP];
  const int64_t     g = blockIdx.x, first = f.first[g], own = (int64_t)f.size[g] * f.bs, rows = max(own, (int64_t)f.k);
  PetscReal        *W = f.work + (first * f.bs + g * f.k) * f.k;
  for (int64_t r = threadIdx.x; r < rows; r += blockDim.x) {
    const int64_t row = r < own ? f.vertex[first + r / f.bs] * (int64_t)f.bs + r % f.bs : 0;
    for (int c = 0; c < f.k; c++) W[r + c * rows] = r < own ? f.B[row + c * f.n * f.bs] : 0;
  }
  for (int p = 0; p < f.k; p++) {
    double square = 0, tau = 0;
    for (int64_t r = threadIdx.x; r < rows; r += blockDim.x) {
      if (r > p) square += (double)W[r + p * rows] * W[r + p * rows];
    }
    square = BlockSum(square);
    __syncthreads();
    const double alpha = W[p + p * rows], beta = square == 0 ? alpha : -copysign(sqrt(alpha * alpha + square), alpha);
    __syncthreads();
    if (square != 0) tau = (beta - alpha) / beta;
    for (int64_t r = threadIdx.x; r < rows && square != 0; r += blockDim.x) {
      if (r >= p) W[r + p * rows] = r == p ? beta : W[r + p * rows] / (alpha - beta);
    }
    for (int c = p + 1; c < f.k; c++) Reflect(W, rows, p, c, tau);
    if (threadIdx.x == 0) taus[p] = tau;
  }
  __syncthreads();
  for (int t = threadIdx.x; t < f.k * f.k && f.R; t += blockDim.x) {
    const int r = t % f.k, c = t / f.k;
    f.R[c * f.count * f.k + g * f.k + r] = r <= c ? W[r + c * rows] : 0;
  }
  __syncthreads();
  for (int p = f.k - 1; p >= 0; p--) {
    const double tau = taus[p];
    for (int c = p + 1; c < f.k; c++) Reflect(W, rows, p, c, tau);
    for (int64_t r = threadIdx.x; r < rows; r += blockDim.x)
      W[r + p * rows] = r < p ? 0 : r == p ? 1 - tau : -tau * W[r + p * rows];
  }
  for (int64_t r = threadIdx.x; r < own; r += blockDim.x) {
    Scalar *to = f.a + (f.before[f.vertex[first + r / f.bs]] * f.bs + r % f.bs) * f.k;
    for (int c = 0; c < f.k; c++) to[c] = FromReal(W[r + c * rows]);
  }
}

cudaError_t Factor(const _n_SpMVCudaAggregates &g, int bs, int k, const PetscReal *B, Scalar *a, PetscReal *R,
                   cudaStream_t stream)
{
  const int64_t      n = g.stats.vertices, count = g.stats.count;
  Scratch<uint64_t>  key(stream);
  Scratch<int>       vertex(stream);
  Scratch<int64_t>   first(stream);
  Scratch<PetscReal> work(stream);
  SPMV_TRY(key.Alloc(n));
  SPMV_TRY(vertex.Alloc(n));
  SPMV_TRY(first.Alloc(count + 1));
  SPMV_TRY(work.Alloc((g.stats.members * bs + count * k) * k));
  SPMV_LAUNCH(n, BLOCK, stream, list_vertices, n, count, (const int *)g.of, (uint64_t *)key, (int *)vertex);
  SPMV_TRY(SortPairs(key, vertex, n, BitsFor(count), stream));
  SPMV_LAUNCH(count + 1, BLOCK, stream, copy_sizes, count, (const int *)g.size, (int64_t *)first);
  SPMV_TRY(ExclusiveSum(first, count + 1, stream));
  const int threads = g.stats.largest * bs > MANY ? BLOCK : WARP;
  SPMV_LAUNCH(count * threads, threads, stream, factor,
              Factored{bs, k, n, count, g.size, vertex, first, g.before, B, work, R, a});
  return cudaSuccess;
}

__global__ void take_rows(int64_t m, int k, PetscInt before, const PetscInt *i, const PetscInt *j, const Scalar *a,
                          PetscInt *first, Scalar *values)
{
  const int64_t t = Thread(), r = t / k;
  if (r >= m) return;
  const PetscInt at    = i ? i[r] : 0;
  const bool     empty = !i || i[r + 1] == at;
  values[t]            = empty ? Num::zero() : a[at + t % k];
  if (t % k == 0) first[r] = empty ? -1 : before + j[at];
}

} // namespace
} // namespace spmv

using namespace spmv;

cudaError_t SpMVCudaTentative(SpMVCudaAggregates aggregates, PetscInt bs, PetscInt k, const PetscReal *B, PetscInt *i,
                              PetscInt *j, PetscScalar *a, PetscReal *R, cudaStream_t stream)
{
  return Guarded([&]() -> cudaError_t {
    const _n_SpMVCudaAggregates &g = *aggregates;
    const int64_t                n = g.stats.vertices, count = g.stats.count;
    if (k < 1 || k > WARP || bs < 1 || (!B && k != bs) || n * bs > SPMVCUDA_MAX_SIZE || count * k > SPMVCUDA_MAX_SIZE ||
        (sizeof(PetscInt) == 4 && g.stats.members * bs * k > INT_MAX))
      return cudaErrorNotSupported;
    if (!IsAligned(a)) return cudaErrorMisalignedAddress;
    SPMV_LAUNCH(n * bs + 1, BLOCK, stream, fill_rows, n, (int)bs, (int)k, (const int *)g.of, (const int64_t *)g.before,
                (const int *)g.size, !B, i, j, (Scalar *)a);
    if (B) return count ? Factor(g, (int)bs, (int)k, B, (Scalar *)a, R, stream) : cudaSuccess;
    if (R) SPMV_LAUNCH(count * k * k, BLOCK, stream, fill_roots, count, (int)k, (const int *)g.size, R);
    return cudaSuccess;
  });
}

cudaError_t SpMVCudaTentativeRows(const SpMVCudaCSR *P0, PetscInt k, PetscInt before, PetscInt *first,
                                  PetscScalar *values, cudaStream_t stream)
{
  if (!IsAligned(P0->a) || !IsAligned(values)) return cudaErrorMisalignedAddress;
  SPMV_LAUNCH(P0->m * k, BLOCK, stream, take_rows, P0->m, (int)k, before, (const PetscInt *)P0->i,
              (const PetscInt *)P0->j, (const Scalar *)P0->a, first, (Scalar *)values);
  return cudaSuccess;
}
