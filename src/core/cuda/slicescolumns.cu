/*
  Products of slices with several columns: the layout is that of slices.cu.
*/
#include "columns.cuh"
#include "slices.cuh"

namespace spmv {
namespace {

using Args = WithPanels<SliceArgs>;

// The column of a lane's entry of step k, -1 if it has none
__device__ __forceinline__ int Column(const Slice &self, int mode, const char *index, int k, int steps, int lane)
{
  if (mode == WIDE) return __ldcs((const int *)index + k * WARP + lane);
  if (mode == NARROW) {
    const int distance = __ldcs((const unsigned short *)index + k * WARP + lane);
    return distance == (int)NO_COLUMN ? -1 : self.base + distance;
  }
  if (k == steps - 1 && lane >= Tail(self.shape)) return -1;
  return mode == LINE ? self.base + k * WARP + lane : __ldg((const int *)index + k) + lane;
}

// Short units, 2^LU of a lane: its at most eight entries, loaded once, with x of one column after the other
template <class V, int LU>
__device__ __forceinline__ void short_units(const Args &arguments, const Panel &own, const Slice &self, int lane, SpMVCudaForm form,
                                            const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  constexpr int    U = 1 << LU, ENTRIES = 8;
  const SliceArgs &args    = arguments.args;
  const Columns   &columns = arguments.panels.columns;
  const int        total = self.steps << LU, mode = ModeOf(self.shape);
  const V         *value = (const V *)args.value + (int64_t)self.value * WARP + lane;
  const char      *index = args.index + (int64_t)self.index * 32;
  V                v[ENTRIES];
  Scalar           a[ENTRIES];
  int              col[ENTRIES], row[U];

#pragma unroll
  for (int k = 0; k < ENTRIES; k++) {
    col[k] = k < total ? Column(self, mode, index, k, total, lane) : -1;
    v[k]   = k < total ? Traits<V>::stream(value + k * WARP) : Traits<V>::zero();
  }
#pragma unroll
  for (int u = 0; u < U; u++) {
    const int r    = u * WARP + lane;
    const int unit = r >= Units(self.shape) ? -1 : args.order ? __ldg(args.order + self.first + r) : self.first + r;
    row[u]         = unit >= 0 && args.unit ? __ldg(args.unit + unit) : unit;
  }
  Issue();
#pragma unroll
  for (int k = 0; k < ENTRIES; k++) {
    a[k] = Convert<Scalar>(v[k]);
    if (form == SPMVCUDA_CONJUGATE) a[k] = Num::conj(a[k]);
  }
#pragma unroll 1
  for (int q = 0; q < own.count; q++) {
    const Scalar *from = x + q * columns.ldx;
    Scalar        xs[ENTRIES], d[U];
#pragma unroll
    for (int k = 0; k < ENTRIES; k++) xs[k] = col[k] >= 0 ? Num::keep(from + col[k]) : Num::zero();
    Issue();
#pragma unroll
    for (int u = 0; u < U; u++) d[u] = Num::zero();
#pragma unroll
    for (int k = 0; k < ENTRIES; k++) d[k % U] = Num::fma(a[k], xs[k], d[k % U]);
#pragma unroll
    for (int u = 0; u < U; u++) {
      if (row[u] >= 0) y[q * columns.ldy + row[u]] = Result(form, z ? z + q * columns.ldz : nullptr, row[u], d[u]);
    }
  }
}

template <int BS, int K> struct SlicesShape {
  static constexpr int BATCH = BS == 1 ? (K > 4 ? 4 : 8) : BS == 2 ? 2 : 1; // steps whose values and columns are loaded before the first is used
  static constexpr int GROUP = PetscMin(K, BS == 1 ? 16 / BATCH : BS == 2 ? 4 : (int)sizeof(Scalar) > 8 ? 2 : 4); // columns whose x is
};

// Leaves the sums of a part of a long unit. The warp that arrives last adds those of all parts, in their order, and writes them
template <int BS, int K>
__device__ __forceinline__ void leave_part(const Args &arguments, const Panel &own, const Slice &self, int lane, const Scalar (&d)[K][BS], SpMVCudaForm form,
                                           const Scalar *z, Scalar *y)
{
  const SliceArgs &args    = arguments.args;
  const Columns   &columns = arguments.panels.columns;
  const int2       group   = __ldg(args.group + self.group);
  Scalar          *parts   = args.partial + ((int64_t)own.panel * arguments.panels.parts + group.x) * (K * BS);
  int              last    = 0;
  if (lane == 0) {
#pragma unroll
    for (int q = 0; q < K; q++) {
#pragma unroll
      for (int i = 0; i < BS; i++) parts[(int64_t)self.part * (K * BS) + q * BS + i] = d[q][i];
    }
    last = ArriveLast(args.arrived + (int64_t)own.panel * arguments.panels.groups + self.group, (unsigned)group.y);
  }
  if (!__shfl_sync(ALL, last, 0)) return;
  AcquireArrived();
  __syncwarp();
  const int64_t r = (int64_t)(args.unit ? __ldg(args.unit + self.first) : self.first) * BS;
#pragma unroll 1
  for (int e = 0; e < own.count * BS; e++) {
    const int q = e / BS, i = e % BS;
    Scalar    sum = Num::zero();
#pragma unroll 1
    for (int k = lane; k < group.y; k += WARP) sum = Num::add(sum, Num::fresh(parts + (int64_t)k * (K * BS) + e));
#pragma unroll 1
    for (int by = WARP / 2; by; by >>= 1) sum = Num::add(sum, Num::down(sum, by));
    if (lane == 0) y[q * columns.ldy + r + i] = Result(form, z ? z + q * columns.ldz : nullptr, r + i, sum);
  }
}

// Units of one lane or several, and parts of long units
template <class V, int BS, int K>
__device__ __forceinline__ void product(const Args &arguments, const Panel &own, const Slice &self, int lane, SpMVCudaForm form, const Scalar *__restrict__ x,
                                        const Scalar *z, Scalar *y)
{
  constexpr int    BATCH = SlicesShape<BS, K>::BATCH, GROUP = SlicesShape<BS, K>::GROUP;
  const SliceArgs &args    = arguments.args;
  const Columns   &columns = arguments.panels.columns;
  const int        steps = self.steps, mode = ModeOf(self.shape);
  const bool       part  = IsPart(self.shape);
  const V         *value = (const V *)args.value + (int64_t)self.value * (WARP * BS * BS) + lane;
  const char      *index = args.index + (int64_t)self.index * 32;
  const int        unit  = part || lane >= Units(self.shape) ? -1 : args.order ? __ldg(args.order + self.first + lane) : self.first + lane;
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
#pragma unroll
      for (int i = 0; i < BS * BS; i++) {
        a[b][i] = Convert<Scalar>(v[b][i]);
        if (form == SPMVCUDA_CONJUGATE) a[b][i] = Num::conj(a[b][i]);
      }
    }
    AddColumns<BS, BATCH, K, GROUP>(a, col, x, columns.ldx, own.count, d);
  }
#pragma unroll 1
  for (int by = WARP / 2; by >= WARP >> LogT(self.shape); by >>= 1) {
#pragma unroll
    for (int q = 0; q < K; q++) {
      if (q < own.count) {
#pragma unroll
        for (int i = 0; i < BS; i++) d[q][i] = Num::add(d[q][i], Num::down(d[q][i], by));
      }
    }
  }
  if (part) {
    leave_part<BS, K>(arguments, own, self, lane, d, form, z, y);
    return;
  }
  if (unit < 0) return;
  const int64_t r = (int64_t)(args.unit ? __ldg(args.unit + unit) : unit) * BS;
#pragma unroll
  for (int q = 0; q < K; q++) {
    if (q >= own.count) break;
#pragma unroll
    for (int i = 0; i < BS; i++) y[q * columns.ldy + r + i] = Result(form, z ? z + q * columns.ldz : nullptr, r + i, d[q][i]);
  }
}

template <class V, int BS, int K>
__global__ void __launch_bounds__(COLUMNS_BLOCK, (BS > 4 ? 256 : 512) / COLUMNS_BLOCK)
    slices_columns(Args arguments, SpMVCudaForm form, const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  const SliceArgs &args    = arguments.args;
  const Columns   &columns = arguments.panels.columns;
  const Panel      own(arguments.panels);
  const int        s = (int)((own.block * (int64_t)COLUMNS_BLOCK + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  AwaitPrevious();
  if (s >= args.slices) return;
  const int4  a = __ldg((const int4 *)(args.slice + s)), b = __ldg((const int4 *)(args.slice + s) + 1);
  const Slice self = {(unsigned)a.x, (unsigned)a.y, a.z, (unsigned)a.w, b.x, b.y, b.z, b.w};
  x += own.first * columns.ldx;
  y += own.first * columns.ldy;
  if (z) z += own.first * columns.ldz;
  if (BS > 1 || !LogU(self.shape))
    product<V, BS, K>(arguments, own, self, lane, form, x, z, y);
  else if (LogU(self.shape) == 1)
    short_units<V, 1>(arguments, own, self, lane, form, x, z, y);
  else if (LogU(self.shape) == 2)
    short_units<V, 2>(arguments, own, self, lane, form, x, z, y);
  else
    short_units<V, 3>(arguments, own, self, lane, form, x, z, y);
}

template <class V, int BS> const void *Pick(int width)
{
  if constexpr (HasWidth<BS>(8)) {
    if (width == 8) return (const void *)slices_columns<V, BS, 8>;
  }
  if constexpr (HasWidth<BS>(4)) {
    if (width == 4) return (const void *)slices_columns<V, BS, 4>;
  }
  return (const void *)slices_columns<V, BS, 2>;
}

} // namespace

const void *SlicesColumns(bool single, int bs, int width)
{
  return WithStored(single, [=](auto type) -> const void * {
    using V = decltype(type);
    switch (bs) {
    case 1: return Pick<V, 1>(width);
    case 2: return Pick<V, 2>(width);
    case 3: return Pick<V, 3>(width);
    case 4: return Pick<V, 4>(width);
    case 5: return Pick<V, 5>(width);
    default: return Pick<V, 6>(width);
    }
  });
}

} // namespace spmv
