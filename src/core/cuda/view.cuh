/*
  The CSR that set-up and fills read: as blocks of any size, what set-up finds out about its pattern, and the sorts and scans that layouts are made with.
*/
#pragma once

#include "launch.cuh"
#include "spmvcuda.h"
#include "tuning.cuh"

namespace spmv {

// A CSR pattern seen bs x bs block by block (bs = 1: entry by entry). A unit is bs rows of the same blocks.
template <class I> struct View {
  const I *i, *j;
  int      units, bs;

  __host__ __device__ int64_t start(int u) const
  {
    return i[(int64_t)u * bs];
  }
  __host__ __device__ int len(int u) const
  {
    return (int)((i[(int64_t)u * bs + 1] - i[(int64_t)u * bs]) / bs);
  }
  __host__ __device__ int col(int64_t start, int q) const
  {
    return bs == 1 ? (int)j[start + q] : (int)(j[start + (int64_t)q * bs] / bs);
  }
};

// Runs f with the view of the CSR's own index type
template <class F> cudaError_t WithView(const SpMVCudaCSR &csr, int bs, F f)
{
  if (csr.index_bytes == 8) return f(View<int64_t>{(const int64_t *)csr.i, (const int64_t *)csr.j, (int)(csr.m / bs), bs});
  return f(View<int>{(const int *)csr.i, (const int *)csr.j, (int)(csr.m / bs), bs});
}

// What the choice of a layout rests on
struct Survey {
  unsigned long long natural; // entries of 32-unit slices in the natural order, padding included
  unsigned long long bulk;    // entries in units longer than Tuning::LONG
  int                longest, empty;
  unsigned           looked, near; // a few columns of each unit, and those of them within Tuning::NEAR of the unit's own place

  bool local() const // neighbouring units read neighbouring x: their order matters
  {
    return near > looked / 2;
  }
};
cudaError_t TakeSurvey(const SpMVCudaCSR &, int bs, cudaStream_t, Survey *);

constexpr int MAX_NODE = 6; // of node blocks; larger ones are stored entry by entry

// The largest s <= limit <= MAX_NODE such that all of A is dense s x s blocks on an s x s grid, 1 if none
cudaError_t FindNodeSize(const SpMVCudaCSR &, int limit, cudaStream_t, int *);
// A^T: offsets, rows of A as columns, and where each entry stands in A
cudaError_t TransposeCSR(const SpMVCudaCSR &, cudaStream_t, Array<int> &it, Array<int> &jt, Array<int> &from);

// The pattern of some rows of a block, and where their entries stand in it
cudaError_t SelectRows(const SpMVCudaCSR &, const Array<int> &row, int count, cudaStream_t, Array<int> &it, Array<int> &jt, Array<int> &from);

cudaError_t ExclusiveSum(Array<int64_t> &, int64_t count, cudaStream_t); // in place
// Stable, by the low `bits` bits of the keys
cudaError_t SortPairs(Array<uint64_t> &key, Array<int> &value, int64_t count, int bits, cudaStream_t);

inline int BitsFor(uint64_t largest)
{
  int bits = 1;
  while (bits < 64 && largest >> bits) bits++;
  return bits;
}

/*
  Each lane wants `count` (at most 4 PER) consecutive values from a[at] on (from NULL), or from the places listed at from[at] on. Four
  lanes read each lane's, as 32 scattered reads at once keep the cache busy for 32 cycles, and leave them in `shared`, `stride` apart.
  All lanes call it.
*/
template <int PER> __device__ __forceinline__ void Gather(const Scalar *a, const int *from, int64_t at, int count, int stride, Scalar *shared)
{
  const int lane = threadIdx.x % WARP, group = lane / 4;
  Scalar    v[4][PER];
  int       n[4];
#pragma unroll
  for (int r = 0; r < 4; r++) {
    const int64_t p = __shfl_sync(ALL, at, r * 8 + group);
    n[r]            = __shfl_sync(ALL, count, r * 8 + group);
#pragma unroll
    for (int k = 0; k < PER; k++) {
      const int i = k * 4 + lane % 4;
      if (i < n[r]) v[r][k] = a[from ? from[p + i] : p + i];
    }
  }
  Issue(); // also: what was in `shared` before has been read
#pragma unroll
  for (int r = 0; r < 4; r++) {
#pragma unroll
    for (int k = 0; k < PER; k++) {
      const int i = k * 4 + lane % 4;
      if (i < n[r]) shared[(r * 8 + group) * stride + i] = v[r][k];
    }
  }
  __syncwarp();
}

} // namespace spmv
