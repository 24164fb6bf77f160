/*
  The CSR that set-up and fills read: as node blocks of any size, statistics of its pattern, and the sorts and scans that layouts are made with.
*/
#pragma once

#include "launch.cuh"
#include "spmvcuda.h"
#include "tuning.cuh"

namespace spmv {

// A CSR pattern of bs x bs node blocks (bs = 1: of entries). A unit is bs rows with the same node blocks
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

// Calls f with the view of the CSR's own index type: PetscInt, or int of what is made here
template <class F> cudaError_t WithView(const SpMVCudaCSR &csr, int bs, F f)
{
#if defined(PETSC_USE_64BIT_INDICES)
  if (csr.index_bytes == 8) return f(View<int64_t>{(const int64_t *)csr.i, (const int64_t *)csr.j, (int)(csr.m / bs), bs});
#endif
  if (csr.index_bytes != 4) return cudaErrorNotSupported;
  return f(View<int>{(const int *)csr.i, (const int *)csr.j, (int)(csr.m / bs), bs});
}

// The statistics that choose a layout
struct Survey {
  unsigned long long natural; // entries of 32-unit slices in the natural order, padding included
  unsigned long long bulk;    // entries in units longer than Tuning::LONG
  int                longest, empty;
  unsigned           looked, near; // sampled columns of each unit, and how many of them are within Tuning::NEAR of the unit's own place

  bool local() const // neighboring units read neighboring x: their order matters
  {
    return near > looked / 2;
  }
};
cudaError_t TakeSurvey(const SpMVCudaCSR &, int bs, cudaStream_t, Survey *);

constexpr int MAX_NODE = 6; // the largest node blocks; matrices with larger ones are stored entry by entry

// The largest s <= limit <= MAX_NODE such that A consists of dense s x s blocks on an s x s grid; 1 if none
cudaError_t FindNodeSize(const SpMVCudaCSR &, int limit, cudaStream_t, int *);
// A^T: offsets, rows of A as columns, and where in A each entry is
cudaError_t TransposeCSR(const SpMVCudaCSR &, cudaStream_t, Array<int> &it, Array<int> &jt, Array<int> &value_index);

// The pattern of some rows of A, and where in A their entries are
cudaError_t SelectRows(const SpMVCudaCSR &, const Array<int> &row, int count, cudaStream_t, Array<int> &it, Array<int> &jt, Array<int> &value_index);

// Load the code of the first kernels of a set-up, and with them the modules that they are in
cudaError_t LoadAnalysis();
cudaError_t LoadDiagonals();
cudaError_t LoadSlices();

cudaError_t ExclusiveSum(Array<int64_t> &, int64_t count, cudaStream_t); // in place
// Stable, by the low `bits` bits of the keys
cudaError_t SortPairs(Array<uint64_t> &key, Array<int> &value, int64_t count, int bits, cudaStream_t);
cudaError_t SortPairs(Array<uint64_t> &key, Array<int64_t> &value, int64_t count, int bits, cudaStream_t);

inline int BitsFor(uint64_t largest)
{
  int bits = 1;
  while (bits < 64 && largest >> bits) bits++;
  return bits;
}

/*
  Gives each lane `count` (at most 4 PER) consecutive values in each of ROWS rows, the first from a[at] on, each `width` after the one before, or, if value_index
  is not NULL, from the places value_index[...] on. Four lanes at a time read a lane's values, as 32 scattered reads at once keep the cache busy for 32 cycles.
  They leave them in `shared`, `stride` values from lane to lane and WARP * stride from row to row. All lanes call it. All loads are issued before the first
  value is used; copies without registers (CopyAsync) would take a third longer here.
*/
template <int PER, int ROWS>
__device__ __forceinline__ void Gather(const Scalar *a, const int *value_index, int64_t at, int width, int count, int stride, Scalar *shared)
{
  const int lane = threadIdx.x % WARP, group = lane / 4;
  Scalar    v[ROWS][4][PER];
  int       n[4];
#pragma unroll
  for (int r = 0; r < 4; r++) {
    const int64_t first = __shfl_sync(ALL, at, r * 8 + group) + lane % 4;
    const int     w     = ROWS > 1 ? __shfl_sync(ALL, width, r * 8 + group) : 0;
    n[r]                = __shfl_sync(ALL, count, r * 8 + group) - lane % 4;
#pragma unroll
    for (int row = 0; row < ROWS; row++) {
#pragma unroll
      for (int k = 0; k < PER; k++) {
        const int64_t p = first + (int64_t)row * w + k * 4;
        if (k * 4 < n[r]) v[row][r][k] = a[value_index ? value_index[p] : p];
      }
    }
  }
  Issue(); // also: the previous contents of `shared` have been read
#pragma unroll
  for (int row = 0; row < ROWS; row++) {
#pragma unroll
    for (int r = 0; r < 4; r++) {
#pragma unroll
      for (int k = 0; k < PER; k++) {
        if (k * 4 < n[r]) shared[(row * WARP + r * 8 + group) * stride + lane % 4 + k * 4] = v[row][r][k];
      }
    }
  }
  __syncwarp();
}

} // namespace spmv
