/*
  The sums of a slice, for all kernels that multiply slices with a vector.
*/
#pragma once

#include "epilogue.cuh"
#include "slices.cuh"

namespace spmv {

constexpr int EITHER = -1; // a mode of AddEntries(): WIDE or NARROW, as the slice says

__device__ __forceinline__ Scalar LoadX(Waited waited, const Scalar *x, int64_t k)
{
  return LoadX(waited, x + k);
}

// A tile's part of x, which its thread block copies to shared memory while the first values are being loaded
struct InTile {
  const Scalar *x;
  const int    *list;
  int           columns;
  bool          first; // nothing has been copied yet

  // All threads of the block call it once
  __device__ __forceinline__ Waited Copy(bool wait, unsigned last_blocks) const
  {
    constexpr int EACH   = 4; // numbers of a thread that are loaded at once
    auto         *shared = (Scalar *)spmv_shared;
    for (int k0 = 0; k0 < columns; k0 += EACH * (int)blockDim.x) {
      int    col[EACH];
      Scalar v[EACH];
#pragma unroll
      for (int b = 0; b < EACH; b++) {
        const int k = k0 + b * (int)blockDim.x + (int)threadIdx.x;
        col[b]      = k < columns ? __ldcs(list + k) : -1;
      }
      Issue();
      const Waited waited = AwaitInTurn(wait && k0 == 0, last_blocks);
#pragma unroll
      for (int b = 0; b < EACH; b++) v[b] = col[b] >= 0 ? LoadX(waited, x + col[b]) : Num::zero();
      Issue();
#pragma unroll
      for (int b = 0; b < EACH; b++) {
        if (col[b] >= 0) shared[k0 + b * (int)blockDim.x + (int)threadIdx.x] = v[b];
      }
    }
    __syncthreads();
    return AwaitInTurn(wait, last_blocks);
  }
};
__device__ __forceinline__ Scalar LoadX(Waited, const InTile &, int64_t k)
{
  return ((const Scalar *)spmv_shared)[k];
}
// Before x is read, with the first loads of the matrix under way
template <class X>
__device__ __forceinline__ Waited AwaitX(const X &, bool first_batch, bool wait, unsigned last_blocks)
{
  return AwaitInTurn(first_batch && wait, last_blocks);
}
__device__ __forceinline__ Waited AwaitX(const InTile &x, bool first_batch, bool wait, unsigned last_blocks)
{
  return first_batch && x.first ? x.Copy(wait, last_blocks) : Waited::Before();
}

/*
  Adds the lane's sums of a slice to d. value: the lane's first value. V: the type of the stored values. An entry is a
  block of ROWS x COLS values: a node block, a single value, or a column of a row group (COLS = 1). U: units per lane.
  BATCH: steps whose loads are issued before the first is used. Each mode has its own loop: with branches between the
  loads, dense rows take twice as long. With MODE = EITHER there is one branch per batch, before the first load. wait:
  for the previous kernel, before x is read
*/
template <class V, int ROWS, int COLS, int U, int MODE, int BATCH, class X, int SUMS>
__device__ __forceinline__ void AddEntries(const SliceArgs &args, const Slice &self, const V *value, int lane,
                                           SpMVCudaForm form, bool wait, X x, Scalar (&d)[SUMS])
{
  const int   steps = self.steps * U;
  const char *index = args.index + (int64_t)self.index * 32;
  const bool  near  = MODE == NARROW || (MODE == EITHER && self.mode == NARROW);
  const int   none  = near ? (int)NO_COLUMN : -1;

  // FULL: all steps exist, so that there are no tests between the loads
  auto batch = [&](int k0, auto full) {
    constexpr bool FULL = decltype(full)::value;
    // for row groups
    auto   has = [&](int k) { return FULL || k < steps - 1 || (k == steps - 1 && lane < self.tail); };
    V      v[BATCH][ROWS * COLS];
    Scalar xs[BATCH][COLS];
    int    col[BATCH];
    if (MODE == EITHER) {
      if (near) {
#pragma unroll
        for (int b = 0; b < BATCH; b++)
          col[b] = has(k0 + b) ? __ldcs((const unsigned short *)index + (k0 + b) * WARP + lane) : none;
      } else {
#pragma unroll
        for (int b = 0; b < BATCH; b++)
          col[b] = has(k0 + b) ? __ldcs((const int *)index + (k0 + b) * WARP + lane) : none;
      }
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const int  k  = k0 + b;
      const bool in = MODE == EITHER ? has(k) : FULL || k < steps;
      if (MODE == EITHER)
        ;
      else if (MODE == WIDE)
        col[b] = in ? __ldcs((const int *)index + k * WARP + lane) : -1;
      else if (MODE == NARROW)
        col[b] = in ? __ldcs((const unsigned short *)index + k * WARP + lane) : (int)NO_COLUMN;
      else
        col[b] = in && (k < steps - 1 || lane < self.tail) ? self.base + k * WARP + lane : -1;
#pragma unroll
      for (int i = 0; i < ROWS * COLS; i++) {
        v[b][i] = in ? Stream(value + ((int64_t)k * (ROWS * COLS) + i) * WARP, args.policy) : Traits<V>::zero();
      }
    }
    Issue();
    const Waited waited = AwaitX(x, k0 == 0, wait, args.last_blocks);
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const bool own = MODE == NARROW || MODE == EITHER ? col[b] != none : col[b] >= 0;
      // base is 0 with WIDE
      const int64_t at = (int64_t)(MODE == NARROW || MODE == EITHER ? self.base + col[b] : col[b]) * COLS;
#pragma unroll
      for (int j = 0; j < COLS; j++) xs[b][j] = own ? LoadX(waited, x, at + j) : Num::zero();
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) { // padding is 0 times 0
#pragma unroll
      for (int j = 0; j < COLS; j++) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
          if (COLS > 1 && Traits<V>::is_absent(v[b][i * COLS + j])) continue;
          d[b % U * ROWS + i] =
              Num::fma(Conjugated(form, Convert<Scalar>(v[b][i * COLS + j])), xs[b][j], d[b % U * ROWS + i]);
        }
      }
    }
  };
  int k0 = 0;
  for (; k0 + BATCH <= (MODE == EITHER ? steps - 1 : steps); k0 += BATCH) batch(k0, std::true_type{});
  if ((BATCH > 1 || MODE == EITHER) && k0 < steps) batch(k0, std::false_type{});
}

// Adds the first `rows` sums of the lanes that share a unit in the first of these lanes. For a part of a unit, the last
// part to arrive adds the sums of all parts in the lane in which it sets `unit`. Returns whether there is anything to
// write
template <int SUMS>
__device__ __forceinline__ bool AddLanes(const SliceArgs &args, const Slice &self, int lane, Scalar (&d)[SUMS],
                                         int *unit, bool parts, int rows = SUMS)
{
  constexpr int FRESH = sizeof(Scalar) > 8 || SUMS > 1 ? 4 : 8; // partial sums that a lane loads at once
  const int     alone = WARP >> self.lt;
  for (int by = WARP / 2; by >= alone; by >>= 1) {
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
      if (i < rows) d[i] = Num::add(d[i], Num::down(d[i], by));
    }
  }
  if (!parts || !self.is_part) return true;
  const int count = __ldg(args.parts + self.sums);
  Scalar   *place = args.partial + (int64_t)self.sums * SUMS;
  int       last  = 0;
  if (lane == 0) {
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
      if (i < rows) Partial::hand(place + (int64_t)self.part * SUMS + i, d[i]);
    }
    last = ArriveLastRelaxed(args.arrived + self.sums, (unsigned)count);
  }
  if (!__shfl_sync(ALL, last, 0)) return false;
#pragma unroll
  for (int i = 0; i < SUMS; i++) {
    if (i >= rows) break;
    d[i] = Num::zero();
    // all loads before the first sum: nothing else is left to hide their latency
    for (int k0 = lane; k0 < count; k0 += FRESH * WARP) {
      Scalar v[FRESH];
      TakeSums([=](int b) { return k0 + b * WARP < count ? place + (int64_t)(k0 + b * WARP) * SUMS + i : nullptr; }, v);
#pragma unroll
      for (int b = 0; b < FRESH; b++) d[i] = Num::add(d[i], v[b]);
    }
    for (int by = WARP / 2; by; by >>= 1) d[i] = Num::add(d[i], Num::down(d[i], by));
  }
  if (lane == 0) {
    args.arrived[self.sums] = 0;
    *unit                   = self.first;
  }
  return true;
}

// A kernel whose thread blocks multiply(block, sums) their rows. With an exchange, its first thread blocks have no
// rows. With sums, all threads take part until the end
template <Use USE, class A, class F>
__device__ __forceinline__ void EachBlock(const A &arguments, const Scalar *x, F multiply)
{
  unsigned block = blockIdx.x;
  if constexpr (HasExchange(USE)) {
    if (GetEpilogue(arguments)->Exchanges(&block, x)) return;
  }
  PetscReal sums[EpilogueOf<USE>::NUMBERS] = {};
  if (!ArgsOf(arguments).settled) AwaitPrevious();
  multiply(block, sums);
  if constexpr (HasSums(USE)) {
    AwaitPrevious();
    GetEpilogue(arguments)->Store(sums);
  }
}
// The same for warps that multiply(slice, lane, sums) a slice each
template <Use USE, class A, class F>
__device__ __forceinline__ void EachSlice(const A &arguments, const Scalar *x, F multiply)
{
  EachBlock<USE>(arguments, x, [&](unsigned block, PetscReal(&sums)[EpilogueOf<USE>::NUMBERS]) {
    const int s = (int)((block * (int64_t)blockDim.x + threadIdx.x) / WARP);
    if (s < ArgsOf(arguments).slices) multiply(s, (int)(threadIdx.x % WARP), sums);
  });
}

} // namespace spmv
