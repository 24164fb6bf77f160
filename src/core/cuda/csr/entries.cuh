/*
  For kernels that pass over the entries of a matrix in CSR form, or search for one.
*/
#pragma once

#include "core/cuda/base/ptx.cuh"

namespace spmv {

__device__ __forceinline__ int64_t Thread()
{
  return blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
}

// The first of the ascending columns j[begin] to j[end - 1] that is at least c
template <class I, class P> __device__ __forceinline__ P LowerBound(const I *j, P begin, P end, int64_t c)
{
  while (begin < end) {
    const P middle = begin + (end - begin) / 2;
    if ((int64_t)j[middle] < c)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

// The position of the entry in row r and column c, or -1
template <class I> __device__ __forceinline__ int64_t Position(const I *i, const I *j, int64_t r, int64_t c)
{
  const int64_t end = i[r + 1], p = LowerBound(j, (int64_t)i[r], end, c);
  return p < end && (int64_t)j[p] == c ? p : -1;
}

// Adds up the numbers of a warp's lanes; all of them call it
__device__ __forceinline__ void Count(unsigned own, unsigned long long *total)
{
  const unsigned sum = __reduce_add_sync(ALL, own);
  if (threadIdx.x % WARP == 0 && sum) atomicAdd(total, (unsigned long long)sum);
}

} // namespace spmv
