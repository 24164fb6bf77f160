/*
  The off-diagonal block and the exchange of the halo in the kernels of fused products.
*/
#pragma once

#include "core/cuda/halo/exchange.cuh"

namespace spmv {

/*
  The off-diagonal block of a parallel matrix, in the form in which the diagonal block's fused product adds it: in each
  row, after the row's own entries. It is a CSR matrix of slices of 32 units, without the slices that have no entries
*/
struct Offdiagonal {
  const int    *slot;  // the place of each slice among the stored slices, or -1; NULL: nothing is added
  const int    *start; // beginning of each row of the stored slices, and the end of the last
  const int    *col;
  const Scalar *value;
};

// What a product with an exchange needs. It sends with its first thread blocks, so that those that wait for other ranks
// never keep them from running: all NVIDIA GPUs begin thread blocks in the order of blockIdx, although CUDA does not
// promise it. If it also receives, those units that belong to stored slices of the off-diagonal block wait for the
// numbers that they read
struct WithHalo {
  static constexpr int NUMBERS = 1; // as in an epilogue

  Exchange    exchange;
  Offdiagonal offdiag;
  unsigned    all; // who arrive: see Exchange. 0: the product does not receive

  // Returns true in a thread block that has sent and has no rows. Otherwise sets its number among the others
  __device__ __forceinline__ bool Sends(unsigned *block, const Scalar *x) const
  {
    if (*block < exchange.blocks) {
      exchange.Send(*block, all, 1, x, 0, nullptr, 0);
      return true;
    }
    *block -= exchange.blocks;
    return false;
  }
  // The place of a unit's slice among the stored slices, or -1
  __device__ __forceinline__ int Slot(int unit) const
  {
    return offdiag.slot ? __ldg(offdiag.slot + (unsigned)unit / WARP) : -1;
  }
  // Adds the product with a unit's rows to d; the kernel has waited. Called for each unit once. BATCH: entries that are
  // loaded at once
  template <int BS, int BATCH> __device__ __forceinline__ void AddOffdiagonal(int slot, int unit, Scalar *d) const
  {
    if (slot < 0) return;
    const Scalar  *halo  = exchange.Landing(exchange.Turn());
    const unsigned lanes = __activemask();
    __syncwarp(lanes); // all of them have read the turn
    const unsigned count = (int)(threadIdx.x % WARP) == __ffs(lanes) - 1 ? __popc(lanes) : 0;
    Patience       patience;
#pragma unroll
    for (int e = 0; e < BS; e++) {
      const int *p = offdiag.start + ((int64_t)slot * WARP + (unsigned)unit % WARP) * BS + e;
      for (int q = p[0]; q < p[1]; q += BATCH) {
        Scalar a[BATCH], h[BATCH];
        int    at[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
          a[b]  = Num::zero();
          at[b] = -1;
          if (q + b >= p[1]) continue;
          a[b]  = offdiag.value[q + b];
          at[b] = offdiag.col[q + b];
        }
        TakeArrived(halo, at, patience, h);
#pragma unroll
        for (int b = 0; b < BATCH; b++) d[e] = Num::fma(a[b], h[b], d[e]);
      }
    }
    if (count) exchange.Arrive(count, all);
  }
};

} // namespace spmv
