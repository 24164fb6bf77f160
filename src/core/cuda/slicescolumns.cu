/*
  Products of slices with several columns: the layout is that of slices.cu.
*/
#include "columns.cuh"
#include "slices.cuh"

namespace spmv {
namespace {

using Args = WithPanels<SliceArgs>;

constexpr int BLOCK = Tuning::COLUMNS_BLOCK_SLICES;

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
  static constexpr int BATCH = BS == 1 ? 4 : BS == 2 ? 2 : 1; // steps whose values and columns are loaded before the first is used
  static constexpr int GROUP = PetscMin(K, BS == 1 ? 4 : BS == 2 ? 4 : (int)sizeof(Scalar) > 8 ? 2 : 4); // columns whose x is
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

// The sums of a unit's lanes, to the first of them
template <int BS, int K> __device__ __forceinline__ void add_lanes(const Panel &own, const Slice &self, Scalar (&d)[K][BS])
{
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
}

// unit: -1 if the lane has none
template <int BS, int K>
__device__ __forceinline__ void write(const SliceArgs &args, const Panel &own, const Columns &columns, int unit, const Scalar (&d)[K][BS], SpMVCudaForm form,
                                      const Scalar *z, Scalar *y)
{
  if (unit < 0) return;
  const int64_t r = (int64_t)(args.unit ? __ldg(args.unit + unit) : unit) * BS;
#pragma unroll
  for (int q = 0; q < K; q++) {
    if (q >= own.count) break;
#pragma unroll
    for (int i = 0; i < BS; i++) y[q * columns.ldy + r + i] = Result(form, z ? z + q * columns.ldz : nullptr, r + i, d[q][i]);
  }
}

__device__ __forceinline__ Slice LoadSlice(const SliceArgs &args, int s)
{
  const int4 a = __ldg((const int4 *)(args.slice + s)), b = __ldg((const int4 *)(args.slice + s) + 1);
  return {(unsigned)a.x, (unsigned)a.y, a.z, (unsigned)a.w, b.x, b.y, b.z, b.w};
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
  add_lanes<BS, K>(own, self, d);
  if (part)
    leave_part<BS, K>(arguments, own, self, lane, d, form, z, y);
  else
    write<BS, K>(args, own, columns, unit, d, form, z, y);
}

template <class V, int BS, int K>
__global__ void __launch_bounds__(BLOCK, (BS > 4 ? 256 : 512) / BLOCK)
    slices_columns(Args arguments, SpMVCudaForm form, const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  const SliceArgs &args    = arguments.args;
  const Columns   &columns = arguments.panels.columns;
  const Panel      own(arguments.panels);
  const int        s = (int)((own.block * (int64_t)BLOCK + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  AwaitPrevious();
  if (s >= args.slices) return;
  const Slice self = LoadSlice(args, s);
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

// ------------------------------------------------------------------------------------------------ x by rows

// COUNT numbers of a row of x, in loads of 16 bytes where it has so many
template <int COUNT> __device__ __forceinline__ void LoadRow(const Scalar *p, Scalar (&to)[COUNT])
{
  if constexpr (COUNT * sizeof(Scalar) % 16 == 0) {
    constexpr int EACH = 16 / sizeof(Scalar);
#pragma unroll
    for (int k = 0; k < COUNT / EACH; k++) {
      const int4 t = __ldg((const int4 *)p + k);
      memcpy(&to[k * EACH], &t, sizeof(t));
    }
  } else {
#pragma unroll
    for (int k = 0; k < COUNT; k++) to[k] = Num::keep(p + k);
  }
}
template <int COUNT> __device__ __forceinline__ void ZeroRow(Scalar (&to)[COUNT])
{
#pragma unroll
  for (int k = 0; k < COUNT; k++) to[k] = Num::zero();
}

// As short_units(), with x of a few columns at a time, and half of the entries
template <class V, int LU, int K>
__device__ __forceinline__ void short_units_by_rows(const Args &arguments, const Panel &own, const Slice &self, int lane, SpMVCudaForm form,
                                                    const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  constexpr int    U = 1 << LU, ENTRIES = 8, HALF = ENTRIES / 2, FEW = PetscMin(K, (int)(32 / sizeof(Scalar)));
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
  for (int q0 = 0; q0 < own.count; q0 += FEW) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      Scalar xs[HALF][FEW]; // of units half * U / 2 to (half + 1) * U / 2 - 1, their first entries first
#pragma unroll
      for (int e = 0; e < HALF; e++) {
        const int k = half * (U / 2) + e % (U / 2) + e / (U / 2) * U;
        if (col[k] >= 0)
          LoadRow<FEW>(x + (int64_t)col[k] * K + q0, xs[e]);
        else
          ZeroRow<FEW>(xs[e]);
      }
      Issue();
#pragma unroll
      for (int u = 0; u < U / 2; u++) {
        const int to = row[half * (U / 2) + u];
#pragma unroll
        for (int g = 0; g < FEW; g++) {
          Scalar d = Num::zero();
#pragma unroll
          for (int e = u; e < HALF; e += U / 2) d = Num::fma(a[half * (U / 2) + u + e / (U / 2) * U], xs[e][g], d);
          if (to >= 0 && q0 + g < own.count) y[(q0 + g) * columns.ldy + to] = Result(form, z ? z + (q0 + g) * columns.ldz : nullptr, to, d);
        }
      }
    }
  }
}

// As product()
template <class V, int K>
__device__ __forceinline__ void product_by_rows(const Args &arguments, const Panel &own, const Slice &self, int lane, SpMVCudaForm form,
                                                const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  constexpr int    BATCH   = PetscMax(1, PetscMin(8, (int)(128 / (K * sizeof(Scalar))))); // steps whose x is loaded before the first is used
  const SliceArgs &args    = arguments.args;
  const Columns   &columns = arguments.panels.columns;
  const int        steps = self.steps, mode = ModeOf(self.shape);
  const bool       part  = IsPart(self.shape);
  const V         *value = (const V *)args.value + (int64_t)self.value * WARP + lane;
  const char      *index = args.index + (int64_t)self.index * 32;
  const int        unit  = part || lane >= Units(self.shape) ? -1 : args.order ? __ldg(args.order + self.first + lane) : self.first + lane;
  Scalar           d[K][1];

#pragma unroll
  for (int q = 0; q < K; q++) d[q][0] = Num::zero();
  for (int k0 = 0; k0 < steps; k0 += BATCH) {
    V      v[BATCH];
    Scalar xs[BATCH][K];
    int    col[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const bool in = BATCH == 1 || k0 + b < steps;
      col[b]        = in ? Column(self, mode, index, k0 + b, steps, lane) : -1;
      v[b]          = in ? Traits<V>::stream(value + (int64_t)(k0 + b) * WARP) : Traits<V>::zero();
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      if (col[b] >= 0)
        LoadRow<K>(x + (int64_t)col[b] * K, xs[b]);
      else
        ZeroRow<K>(xs[b]);
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const Scalar a = form == SPMVCUDA_CONJUGATE ? Num::conj(Convert<Scalar>(v[b])) : Convert<Scalar>(v[b]);
#pragma unroll
      for (int q = 0; q < K; q++) d[q][0] = Num::fma(a, xs[b][q], d[q][0]);
    }
  }
  add_lanes<1, K>(own, self, d);
  if (part)
    leave_part<1, K>(arguments, own, self, lane, d, form, z, y);
  else
    write<1, K>(args, own, columns, unit, d, form, z, y);
}

template <class V, int K>
__global__ void __launch_bounds__(BLOCK, (sizeof(Scalar) > 8 || K > 2 ? 512 : 768) / BLOCK)
    slices_by_rows(Args arguments, SpMVCudaForm form, const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  const SliceArgs &args = arguments.args;
  const Panel      own(arguments.panels);
  const int        s = (int)((own.block * (int64_t)BLOCK + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  AwaitPrevious();
  if (s >= args.slices) return;
  const Slice self = LoadSlice(args, s);
  if (!LogU(self.shape))
    product_by_rows<V, K>(arguments, own, self, lane, form, x, z, y);
  else if (LogU(self.shape) == 1)
    short_units_by_rows<V, 1, K>(arguments, own, self, lane, form, x, z, y);
  else if (LogU(self.shape) == 2)
    short_units_by_rows<V, 2, K>(arguments, own, self, lane, form, x, z, y);
  else
    short_units_by_rows<V, 3, K>(arguments, own, self, lane, form, x, z, y);
}

template <int K> __global__ void store_by_rows(int n, const Scalar *x, int64_t ldx, int count, Scalar *to)
{
  constexpr int     STRIDE = K + 1;
  __shared__ Scalar tile[BLOCK * STRIDE];
  const int64_t     first = (int64_t)blockIdx.x * BLOCK, c = first + threadIdx.x;
#pragma unroll
  for (int q = 0; q < K; q++) {
    if (c < n) tile[threadIdx.x * STRIDE + q] = x[min(q, count - 1) * ldx + c];
  }
  __syncthreads();
  for (int e = threadIdx.x; e < BLOCK * K; e += BLOCK) {
    if (first + e / K < n) to[first * K + e] = tile[e / K * STRIDE + e % K];
  }
}

// Of one step of each slice: the lanes that have an entry, and the lines of 128 bytes of x that they read
__global__ void count_lines(SliceArgs args, unsigned long long *lanes, unsigned long long *lines)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= args.slices) return;
  const Slice self  = LoadSlice(args, s);
  const int   steps = self.steps << LogU(self.shape);
  if (!steps) return;
  const int      k     = s % steps;
  const int      col   = Column(self, ModeOf(self.shape), args.index + (int64_t)self.index * 32, k, steps, lane);
  const int      line  = col < 0 ? -1 : (int)((int64_t)col * (int64_t)sizeof(Scalar) / 128);
  const unsigned equal = __match_any_sync(ALL, line), has = __ballot_sync(ALL, col >= 0), leads = __ballot_sync(ALL, col >= 0 && __ffs(equal) - 1 == lane);
  if (lane) return;
  atomicAdd(lanes, (unsigned long long)__popc(has));
  atomicAdd(lines, (unsigned long long)__popc(leads));
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

cudaError_t AreScattered(const SliceArgs &args, cudaStream_t stream, bool *scattered)
{
  Array<unsigned long long> count;
  unsigned long long        found[2];
  SPMV_TRY(count.Alloc(2));
  SPMV_TRY(count.Zero(stream));
  SPMV_LAUNCH((int64_t)args.slices * WARP, 256, stream, count_lines, args, count, (unsigned long long *)count + 1);
  SPMV_TRY(Fetch(found, (unsigned long long *)count, 2, stream));
  *scattered = found[1] * 100 > found[0] * Tuning::COLUMNS_SCATTERED;
  return cudaSuccess;
}

cudaError_t StoreByRows(int n, int width, const Scalar *x, const Columns &columns, Scalar *to, cudaStream_t stream)
{
  if (width == 2)
    SPMV_LAUNCH(n, BLOCK, stream, store_by_rows<2>, n, x, columns.ldx, (int)columns.count, to);
  else if (width == 4)
    SPMV_LAUNCH(n, BLOCK, stream, store_by_rows<4>, n, x, columns.ldx, (int)columns.count, to);
  else
    SPMV_LAUNCH(n, BLOCK, stream, store_by_rows<8>, n, x, columns.ldx, (int)columns.count, to);
  return cudaSuccess;
}

const void *SlicesColumns(bool single, int bs, int width, bool rows)
{
  return WithStored(single, [=](auto type) -> const void * {
    using V = decltype(type);
    if (rows) return width == 2 ? (const void *)slices_by_rows<V, 2> : width == 4 ? (const void *)slices_by_rows<V, 4> : (const void *)slices_by_rows<V, 8>;
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
