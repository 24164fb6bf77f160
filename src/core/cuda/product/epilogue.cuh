/*
  Inner products as the epilogue of a product y = A x, for the Krylov methods.
*/
#pragma once

#include "offdiagonal.cuh"
#include "core/cuda/stores.cuh"
#include <algorithm>

namespace spmv {

/*
  The arguments for a product's kernel that also stores inner products. The kernel computes y = A x, or D A x if d is
  not NULL. Its warps store the sums first'y and, if second is not NULL, also second'y, first'second and y'y. The first
  sum of all warps comes first, then the second sum of all warps, and so on. Nothing waits: if they were added here,
  every thread block would have to wait until its writes are visible
*/
struct Dots {
  static constexpr int ONE = REALS, NUMBERS = 3 * REALS + 1;

  bool          other;     // first is not x
  bool          hermitian; // complex numbers: y is conjugated; if false, nothing is conjugated
  PetscReal    *partial;
  const Scalar *first, *second, *d;

  // Prefetches the data that only the epilogue reads to the L2 cache, at the beginning of a warp
  __device__ __forceinline__ void Prefetch(int64_t row) const
  {
    if (other) PrefetchL2(first + row);
    if (second) PrefetchL2(second + row);
    if (d) PrefetchL2(d + row);
  }
  // Returns the new value of y[row]
  __device__ __forceinline__ Scalar Add(int64_t row, Scalar y, PetscReal *v) const
  {
    if (d) y = Multiplied(d[row], y);
    const Scalar a = Num::ordered(first + row);
    AddTo(v, Term(hermitian, a, y));
    if (second) {
      const Scalar b = second[row];
      AddTo(v + REALS, Term(true, b, y));
      AddTo(v + 2 * REALS, Term(true, a, b));
      v[3 * REALS] += Square(y);
    }
    return y;
  }
  // others: number of the first thread blocks, which have no sums
  __device__ __forceinline__ void Store(PetscReal (&v)[NUMBERS], unsigned others = 0) const
  {
    constexpr int COUNT = REALS == 1 ? 4 : 8; // a power of two
    const size_t  warps = (size_t)(gridDim.x - others) * (blockDim.x / WARP),
                 warp   = (size_t)(blockIdx.x - others) * (blockDim.x / WARP) + threadIdx.x / WARP;
    const int lane = (int)(threadIdx.x % WARP), mine = lane / (WARP / COUNT);
    if (!second) {
#pragma unroll
      for (int k = 0; k < ONE; k++) {
#pragma unroll
        for (int by = WARP / 2; by; by >>= 1) v[k] += __shfl_xor_sync(ALL, v[k], by);
        if (lane == 0) partial[k * warps + warp] = v[k];
      }
      return;
    }
    PetscReal u[COUNT] = {}; // in each step, half of the lanes continue with half of the sums, until each lane has one
#pragma unroll
    for (int k = 0; k < NUMBERS; k++) u[k] = v[k];
#pragma unroll
    for (int left = COUNT / 2, by = WARP / 2; left; left /= 2, by /= 2) {
      const bool upper = lane & by;
#pragma unroll
      for (int k = 0; k < left; k++) {
        const PetscReal theirs = __shfl_xor_sync(ALL, upper ? u[k] : u[k + left], by);
        u[k]                   = (upper ? u[k + left] : u[k]) + theirs;
      }
    }
#pragma unroll
    for (int by = WARP / COUNT / 2; by; by >>= 1) u[0] += __shfl_xor_sync(ALL, u[0], by);
    if (lane % (WARP / COUNT) == 0 && mine < NUMBERS) partial[mine * warps + warp] = u[0];
  }
};

// Dots with the exchange of a halo
struct FusedDots : WithHalo, Dots {
  static constexpr int NUMBERS = Dots::NUMBERS;

  __device__ __forceinline__ void Store(PetscReal (&v)[NUMBERS]) const
  {
    Dots::Store(v, exchange.blocks);
  }
};

// What a kernel for this use has besides the product; for MULT, the type only gives the number of sums a size
template <Use USE>
using EpilogueOf = std::conditional_t<USE == FUSED_DOTS, FusedDots, std::conditional_t<USE == DOTS, Dots, WithHalo>>;
template <class A, class D> struct WithEpilogue {
  A args;
  D epilogue;
};
template <class A, Use USE>
using ArgumentsOf = std::conditional_t<HasSums(USE) || HasExchange(USE), WithEpilogue<A, EpilogueOf<USE>>, A>;

// Puts the arguments of a store's kernel in place: with the epilogue or the exchange, and with what may be read of the
// matrix before the previous kernel has ended. Adds the thread blocks that exchange to those of the grid
template <class A>
A &Arguments(const _n_SpMVCudaStore &store, const A &args, Use use, const Product &p, KernelCall *call)
{
  WithHalo halo = {};
  if (HasExchange(use) && p.exchange) {
    // without a halo, the fused block may be an earlier one
    const OffdiagonalRows *rows = p.receives && p.exchange->places ? store.fused.get() : nullptr;
    halo.exchange               = *p.exchange;
    halo.receives               = p.receives;
    if (rows) {
      halo.offdiag = {rows->slot, rows->start, rows->col, rows->value, rows->sums, (int)rows->sums.Size()};
      halo.exchange.blocks =
          std::max(halo.exchange.blocks, std::min(Blocks(halo.offdiag.rows, (int)call->block) + 1, p.exchange->most));
    }
    call->grid += halo.exchange.blocks;
  }
  A &own      = use == DOTS         ? call->Take(WithEpilogue<A, Dots>{args, *p.dots}).args
                : use == FUSED_DOTS ? call->Take(WithEpilogue<A, FusedDots>{args, {halo, *p.dots}}).args
                : use == FUSED      ? call->Take(WithEpilogue<A, WithHalo>{args, halo}).args
                                    : call->Take(args);
  own.settled = store.settled;
  return own;
}

template <class A> __device__ __forceinline__ const A &ArgsOf(const A &a)
{
  return a;
}
template <class A, class D> __device__ __forceinline__ const A &ArgsOf(const WithEpilogue<A, D> &a)
{
  return a.args;
}
template <class A> __device__ __forceinline__ std::nullptr_t GetEpilogue(const A &)
{
  return nullptr;
}
template <class A, class D> __device__ __forceinline__ const D *GetEpilogue(const WithEpilogue<A, D> &a)
{
  return &a.epilogue;
}
} // namespace spmv
