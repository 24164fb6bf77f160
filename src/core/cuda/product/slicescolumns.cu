/*
  Products with several columns for matrices stored in slices of node blocks or of row groups. See slices.cu and
  groups.cu for the layouts.
*/
#include "slices.cuh"

namespace spmv {
namespace {

using Args = WithPanels<SliceArgs>;

// Blocks of ROWS x COLS values, K columns of X
template <int ROWS, int COLS, int K> struct SlicesShape {
  // steps whose values and columns are loaded before the first is used
  static constexpr int BATCH = COLS == 1 ? (ROWS == 1 ? 4 : 2) : ROWS == 2 ? 2 : 1;
  // columns whose x is loaded before the first is used
  static constexpr int GROUP = PetscMin(K, ROWS == 2 && COLS == 2 ? 4 : (int)sizeof(Scalar) > 8 ? 2 : 4);
};

// A warp multiplies one slice, whose values begin at `value` for this lane and are `stride` values per step. row(unit):
// the first row to write, unless the lane's unit is negative
template <class V, int ROWS, int COLS, int K, class F>
__device__ __forceinline__ void product(const Args &arguments, const Slice &self, const V *value, int stride, int unit,
                                        F row, int lane, SpMVCudaForm form, Waited waited, const Scalar *x,
                                        const Scalar *z, Scalar *y)
{
  constexpr int BATCH = SlicesShape<ROWS, COLS, K>::BATCH, GROUP = SlicesShape<ROWS, COLS, K>::GROUP;
  const int     steps = self.steps, mode = self.mode;
  const char   *index = arguments.args.index + (int64_t)self.index * 32;
  Scalar        d[K][ROWS];

#pragma unroll
  for (int q = 0; q < K; q++) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) d[q][i] = Num::zero();
  }
  for (int k0 = 0; k0 < steps; k0 += BATCH) {
    V      v[BATCH][ROWS * COLS];
    Scalar a[BATCH][ROWS * COLS];
    int    col[BATCH];
    bool   has[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const int  k  = k0 + b;
      const bool in = COLS == 1 ? k < steps - 1 || (k == steps - 1 && lane < self.tail) : BATCH == 1 || k < steps;
      col[b]        = in ? Column(self, mode, index, arguments.args.list, k, steps, lane) : -1;
#pragma unroll
      for (int i = 0; i < ROWS * COLS; i++)
        v[b][i] = in ? Stream(value + ((int64_t)k * stride + i) * WARP) : Traits<V>::zero();
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      has[b] = col[b] >= 0;
      col[b] = max(col[b], 0);
#pragma unroll
      for (int i = 0; i < ROWS * COLS; i++) a[b][i] = Conjugated(form, ConvertIn<Scalar, COLS>(v[b][i]));
    }
    AddColumns<ROWS, BATCH, K, GROUP, COLS>(a, has, col, waited, x, arguments.panels, d);
  }
#pragma unroll 1
  for (int by = WARP / 2; by >= WARP >> self.lt; by >>= 1) {
#pragma unroll
    for (int q = 0; q < K; q++) {
#pragma unroll
      for (int i = 0; i < ROWS; i++) d[q][i] = Num::add(d[q][i], Num::down(d[q][i], by));
    }
  }
  if (unit >= 0) WriteColumns<ROWS, K>(form, arguments.panels, row(unit), d, z, y);
}

// Node blocks
template <class V, int BS, int K>
__device__ __forceinline__ void nodes(const Args &arguments, const Slice &self, int lane, SpMVCudaForm form,
                                      Waited waited, const Scalar *x, const Scalar *z, Scalar *y)
{
  const SliceArgs &args  = arguments.args;
  const V         *value = (const V *)args.value + (int64_t)self.value * (WARP * BS * BS) + lane;
  const int unit = lane >= self.units ? -1 : args.order ? __ldg(args.order + self.first + lane) : self.first + lane;
  auto      row  = [&](int u) { return (int64_t)u * BS; };
  product<V, BS, BS, K>(arguments, self, value, BS * BS, unit, row, lane, form, waited, x, z, y);
}

// Row groups. As many rows at a time as a thread has registers for; columns and x are loaded again for the next ones,
// but not values
template <class V, int K>
__device__ __forceinline__ void groups(const Args &arguments, const Slice &self, int lane, SpMVCudaForm form,
                                       Waited waited, const Scalar *x, const Scalar *z, Scalar *y)
{
  const int rows  = self.Rows();
  const V  *value = (const V *)arguments.args.value + (int64_t)self.value * WARP + lane;
  const int first = lane >= self.units ? -1 : __ldg(arguments.args.order + self.first + lane);
  for (int i = 0, n; i < rows; i += n) { // n: pieces of nearly equal size
    const int pieces = (rows - i + GROUP_PIECE - 1) / GROUP_PIECE;
    n                = (rows - i + pieces - 1) / pieces;
    const V *own     = value + i * WARP;
    auto     row     = [=](int u) { return (int64_t)u + i; };
    if (n == 1)
      product<V, 1, 1, K>(arguments, self, own, rows, first, row, lane, form, waited, x, z, y);
    else if (n == 2)
      product<V, 2, 1, K>(arguments, self, own, rows, first, row, lane, form, waited, x, z, y);
    else
      product<V, 3, 1, K>(arguments, self, own, rows, first, row, lane, form, waited, x, z, y);
  }
}

// BS = 1: row groups
template <class V, int BS, int K>
__global__ void __launch_bounds__(ColumnsBlock(BS > 1 ? BS : GROUP_PIECE),
                                  (BS > 4 ? 256 : 512) / ColumnsBlock(BS > 1 ? BS : GROUP_PIECE))
    slices_columns(Args arguments, SpMVCudaForm form, const Scalar *x, const Scalar *z, Scalar *y)
{
  constexpr int    BLOCK   = ColumnsBlock(BS > 1 ? BS : GROUP_PIECE);
  const SliceArgs &args    = arguments.args;
  const Columns   &columns = arguments.panels.columns;
  const Panel      own(arguments.panels);
  const int        s = (int)((own.block * (int64_t)BLOCK + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  const Waited     waited = AwaitPrevious();
  if (s >= args.slices) return;
  const Slice self = ReadSlice(args, s);
  x += own.first * columns.ldx;
  y += own.first * columns.ldy;
  if (z) z += own.first * columns.ldz;
  if constexpr (BS > 1)
    nodes<V, BS, K>(arguments, self, lane, form, waited, x, z, y);
  else
    groups<V, K>(arguments, self, lane, form, waited, x, z, y);
}

} // namespace

const void *SlicesColumns(bool single, int bs, int width)
{
  return ColumnsKernel<GROUP_PIECE>(single, bs, width, [](auto type, auto size, auto k) {
    return (const void *)slices_columns<decltype(type), decltype(size)::value, decltype(k)::value>;
  });
}

} // namespace spmv
