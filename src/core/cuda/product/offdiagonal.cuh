/*
  The off-diagonal block and the exchange of the halo in the kernels of fused products.
*/
#pragma once

#include "core/cuda/halo/exchange.cuh"

namespace spmv {

/*
  The off-diagonal block of a parallel matrix, in the form in which the diagonal block's fused product adds it: a CSR
  matrix of slices of 32 units, without the slices that have no entries
*/
struct Offdiagonal {
  const int    *slot;  // the place of each slice among the stored slices, or -1; NULL: nothing is added
  const int    *start; // beginning of each row of the stored slices, and the end of the last
  const int    *col;
  const Scalar *value;
  Scalar       *sums; // of each row of the stored slices, as in partsums.cuh
  int           rows; // of the stored slices
};

/*
  What a product with an exchange needs. Its first thread blocks send. If it also receives, they then wait for the
  numbers that the rows of the off-diagonal block read, and add these rows up. The warps that multiply the diagonal
  block, which follow, take the sums: if they added up these rows themselves, the last ones would begin with it when the
  others have ended.

  Thread blocks thus wait only for those before them, and for other ranks' first ones, of which there are so few that
  all of them run at the same time: all NVIDIA GPUs begin thread blocks in the order of blockIdx, although CUDA does not
  promise it
*/
struct WithHalo {
  static constexpr int NUMBERS = 1; // as in an epilogue

  Exchange    exchange;
  Offdiagonal offdiag;
  bool        receives;

  // Returns true in a thread block without rows, when it is done. Otherwise sets its number among the others
  __device__ __forceinline__ bool Exchanges(unsigned *block, const Scalar *x) const
  {
    if (*block >= exchange.blocks) {
      *block -= exchange.blocks;
      return false;
    }
    exchange.Send(*block, receives, 1, x, 0, nullptr, 0);
    if (!receives) return true;
    if (*block) AddRows((int)((*block - 1) * blockDim.x + threadIdx.x), (int)((exchange.blocks - 1) * blockDim.x));
    __syncthreads();
    if (threadIdx.x == 0) exchange.Arrive(exchange.blocks);
    return true;
  }
  // Adds up rows `first`, first + step, ... of the off-diagonal block, and hands the sums over
  __device__ __forceinline__ void AddRows(int first, int step) const
  {
    constexpr int BATCH = Exchange::BATCH;
    const Scalar *halo  = exchange.Landing(exchange.Turn());
    Patience      patience;
    for (int r = first; r < offdiag.rows; r += step) {
      const int end = offdiag.start[r + 1];
      Scalar    d   = Num::zero();
      for (int q = offdiag.start[r]; q < end; q += BATCH) {
        Scalar a[BATCH], h[BATCH];
        int    at[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
          a[b]  = Num::zero();
          at[b] = -1;
          if (q + b >= end) continue;
          a[b]  = offdiag.value[q + b];
          at[b] = offdiag.col[q + b];
        }
        TakeArrived(halo, at, patience, h);
#pragma unroll
        for (int b = 0; b < BATCH; b++) d = Num::fma(a[b], h[b], d);
      }
      Partial::hand(offdiag.sums + r, d);
    }
  }
  // The place of a unit's slice among the stored slices, or -1
  __device__ __forceinline__ int Slot(int unit) const
  {
    return offdiag.slot && unit >= 0 ? __ldg(offdiag.slot + (unsigned)unit / WARP) : -1;
  }
  // Adds the sums of the rows of UNITS units, each of which takes them once; the kernel has waited
  template <int UNITS, int COUNT>
  __device__ __forceinline__ void AddOffdiagonal(const int (&slot)[UNITS], const int (&unit)[UNITS],
                                                 Scalar (&d)[COUNT]) const
  {
    constexpr int BS  = COUNT / UNITS;
    bool          any = false;
    Scalar        sum[COUNT];
#pragma unroll
    for (int u = 0; u < UNITS; u++) any = any || slot[u] >= 0;
    if (!any) return; // as most warps: the following would take as long as a quarter of a 7-point stencil
    TakeSums(
        [&](int k) {
          const int u = k / BS;
          return slot[u] < 0 ? nullptr
                             : offdiag.sums + ((int64_t)slot[u] * WARP + (unsigned)unit[u] % WARP) * BS + k % BS;
        },
        sum);
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
      if (slot[k / BS] >= 0) d[k] = Num::add(d[k], sum[k]);
    }
  }
};

} // namespace spmv
