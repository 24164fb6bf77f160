/*
  Products with several columns for matrices stored in slices of node blocks. See slices.cu for the layout.
*/
#include "slices.cuh"

namespace spmv {
namespace {

using Args = WithPanels<SliceArgs>;

template <int BS, int K> struct SlicesShape {
  static constexpr int BATCH = BS == 2 ? 2 : 1;                                            // steps whose values and columns are loaded before the first is used
  static constexpr int GROUP = PetscMin(K, BS == 2 ? 4 : (int)sizeof(Scalar) > 8 ? 2 : 4); // columns whose x is loaded before the first is used
};

// A warp multiplies one slice
template <class V, int BS, int K>
__device__ __forceinline__ void product(const Args &arguments, const Slice &self, int lane, SpMVCudaForm form, const Scalar *__restrict__ x, const Scalar *z,
                                        Scalar *y)
{
  constexpr int    BATCH = SlicesShape<BS, K>::BATCH, GROUP = SlicesShape<BS, K>::GROUP;
  const SliceArgs &args  = arguments.args;
  const int        steps = self.steps, mode = ModeOf(self.shape);
  const V         *value = (const V *)args.value + (int64_t)self.value * (WARP * BS * BS) + lane;
  const char      *index = args.index + (int64_t)self.index * 32;
  const int        unit  = lane >= Units(self.shape) ? -1 : args.order ? __ldg(args.order + self.first + lane) : self.first + lane;
  Scalar           d[K][BS];

#pragma unroll
  for (int q = 0; q < K; q++) {
#pragma unroll
    for (int i = 0; i < BS; i++) d[q][i] = Num::zero();
  }
  for (int k0 = 0; k0 < steps; k0 += BATCH) {
    V      v[BATCH][BS * BS];
    Scalar a[BATCH][BS * BS];
    int    col[BATCH];
    bool   has[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const int  k  = k0 + b;
      const bool in = BATCH == 1 || k < steps;
      col[b]        = in ? Column(self, mode, index, k, steps, lane) : -1;
#pragma unroll
      for (int i = 0; i < BS * BS; i++) v[b][i] = in ? Traits<V>::stream(value + ((int64_t)k * (BS * BS) + i) * WARP) : Traits<V>::zero();
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      has[b] = col[b] >= 0;
      col[b] = max(col[b], 0);
#pragma unroll
      for (int i = 0; i < BS * BS; i++) {
        a[b][i] = ConvertIn<Scalar, BS>(v[b][i]);
        if (form == SPMVCUDA_CONJUGATE) a[b][i] = Num::conj(a[b][i]);
      }
    }
    AddColumns<BS, BATCH, K, GROUP>(a, has, col, x, arguments.panels, d);
  }
#pragma unroll 1
  for (int by = WARP / 2; by >= WARP >> LogT(self.shape); by >>= 1) {
#pragma unroll
    for (int q = 0; q < K; q++) {
#pragma unroll
      for (int i = 0; i < BS; i++) d[q][i] = Num::add(d[q][i], Num::down(d[q][i], by));
    }
  }
  if (unit < 0) return;
  WriteColumns<BS, K>(form, arguments.panels, (int64_t)(args.unit ? __ldg(args.unit + unit) : unit) * BS, d, z, y);
}

template <class V, int BS, int K>
__global__ void __launch_bounds__(ColumnsBlock(BS), (BS > 4 ? 256 : 512) / ColumnsBlock(BS))
    slices_columns(Args arguments, SpMVCudaForm form, const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  const SliceArgs &args    = arguments.args;
  const Columns   &columns = arguments.panels.columns;
  const Panel      own(arguments.panels);
  const int        s = (int)((own.block * (int64_t)ColumnsBlock(BS) + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  AwaitPrevious();
  if (s >= args.slices) return;
  const int4  a = __ldg((const int4 *)(args.slice + s)), b = __ldg((const int4 *)(args.slice + s) + 1);
  const Slice self = {(unsigned)a.x, (unsigned)a.y, a.z, (unsigned)a.w, b.x, b.y, b.z, b.w};
  x += own.first * columns.ldx;
  y += own.first * columns.ldy;
  if (z) z += own.first * columns.ldz;
  product<V, BS, K>(arguments, self, lane, form, x, z, y);
}

template <class V, int BS> const void *Pick(int width)
{
  return OfWidth<BS>(width, [](auto k) { return (const void *)slices_columns<V, BS, decltype(k)::value>; });
}

} // namespace

const void *SlicesColumns(bool single, int bs, int width)
{
  return WithStored(single, [=](auto type) -> const void * {
    using V = decltype(type);
    switch (bs) {
    case 2: return Pick<V, 2>(width);
    case 3: return Pick<V, 3>(width);
    case 4: return Pick<V, 4>(width);
    case 5: return Pick<V, 5>(width);
    default: return Pick<V, 6>(width);
    }
  });
}

} // namespace spmv
