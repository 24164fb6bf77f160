/*
  Products of diagonals with several columns: the layout is that of diagonals.cu.
*/
#include "columns.cuh"
#include "diagonals.cuh"

namespace spmv {
namespace {

using Args = WithPanels<DiagonalArgs>;

constexpr int ONCE_GROUP = Tuning::COLUMNS_ONCE;

/*
  Slices of STEPS steps of single entries: a thread loads its row once, and then x of as many columns as there are, without sums to keep. The order of the sums
  is that of a product with one vector.
*/
template <class V, int STEPS>
__global__ void __launch_bounds__(COLUMNS_BLOCK, (sizeof(Scalar) > 8 ? 512 : 768) / COLUMNS_BLOCK)
    diagonals_columns_once(Args arguments, SpMVCudaForm form, const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  const DiagonalArgs &args    = arguments.args;
  const Columns      &columns = arguments.panels.columns;
  const Panel         own(arguments.panels);
  const int           s = (int)((own.block * COLUMNS_BLOCK + threadIdx.x) / WARP), lane = threadIdx.x % WARP, unit = s * WARP + lane;
  AwaitPrevious();
  if (unit >= args.units) return; // a lane past the end has no entry in any step
  const int2     pattern = __ldg(args.pattern_of_slice + s);
  const int2    *step    = args.step + pattern.x;
  const V       *value   = (const V *)args.value + (int64_t)s * (STEPS * WARP);
  const unsigned equal   = arguments.panels.marked ? (unsigned)pattern.y : 0;
  V              v[STEPS];
  Scalar         a[STEPS];
  int            col[STEPS];

#pragma unroll
  for (int b = 0; b < STEPS; b++) v[b] = Traits<V>::stream(value + b * WARP + (equal >> b & 1 ? 0 : lane));
  Issue();
#pragma unroll
  for (int b = 0; b < STEPS; b++) {
    const int2 now = __ldg(step + b);
    const bool has = (unsigned)now.y >> lane & 1;
    col[b]         = has ? unit + now.x : -1;
    a[b]           = has ? Convert<Scalar>(v[b]) : Num::zero(); // a lane without an entry may hold any value: Inf times 0 would spoil the sum
    if (form == SPMVCUDA_CONJUGATE) a[b] = Num::conj(a[b]);
  }
  x += own.first * columns.ldx;
  y += own.first * columns.ldy + unit;
  if (z) z += own.first * columns.ldz + unit;
#pragma unroll 1
  for (int q0 = 0; q0 < own.count; q0 += ONCE_GROUP) {
    Scalar xs[ONCE_GROUP][STEPS];
#pragma unroll
    for (int g = 0; g < ONCE_GROUP; g++) {
      const Scalar *from = x + min(q0 + g, own.count - 1) * columns.ldx;
#pragma unroll
      for (int b = 0; b < STEPS; b++) xs[g][b] = col[b] >= 0 ? Num::keep(from + col[b]) : Num::zero();
    }
    Issue();
#pragma unroll
    for (int g = 0; g < ONCE_GROUP; g++) {
      Scalar d = Num::zero();
#pragma unroll
      for (int b = 0; b < STEPS; b++) d = Num::fma(a[b], xs[g][b], d);
      if (q0 + g < own.count) y[(q0 + g) * columns.ldy] = Result(form, z ? z + (q0 + g) * columns.ldz : nullptr, 0, d);
    }
  }
}

template <int BS, int K> struct DiagonalsShape {
  static constexpr int BATCH = BS == 1 ? (K > 4 ? 4 : 8) : BS == 2 ? 2 : 1; // steps whose values are loaded before the first is used
  static constexpr int GROUP = PetscMin(K, BS == 1 ? 16 / BATCH : BS == 2 ? 4 : (int)sizeof(Scalar) > 8 ? 2 : 4); // columns whose x is
};

// Any number of steps, K columns
template <class V, int BS, int K>
__global__ void __launch_bounds__(COLUMNS_BLOCK, (BS > 4 ? 256 : 512) / COLUMNS_BLOCK)
    diagonals_columns(Args arguments, SpMVCudaForm form, const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  constexpr int       BATCH = DiagonalsShape<BS, K>::BATCH, GROUP = DiagonalsShape<BS, K>::GROUP;
  const DiagonalArgs &args    = arguments.args;
  const Columns      &columns = arguments.panels.columns;
  const Panel         own(arguments.panels);
  const int           s = (int)((own.block * COLUMNS_BLOCK + threadIdx.x) / WARP), lane = threadIdx.x % WARP, unit = s * WARP + lane;
  AwaitPrevious();
  if (unit >= args.units) return;
  const int2    pattern = __ldg(args.pattern_of_slice + s);
  const int64_t first   = args.first_value ? (int64_t)args.first_value[s] : (int64_t)s * args.steps;
  const int     steps   = args.first_value ? (int)(args.first_value[s + 1] - (unsigned)first) : args.steps;
  const int2   *step    = args.step + pattern.x;
  const V      *value   = (const V *)args.value + first * (WARP * BS * BS);
  Scalar        d[K][BS];

#pragma unroll
  for (int q = 0; q < K; q++) {
#pragma unroll
    for (int i = 0; i < BS; i++) d[q][i] = Num::zero();
  }
  x += own.first * columns.ldx;
  for (int k0 = 0; k0 < steps; k0 += BATCH) {
    const unsigned word  = !arguments.panels.marked ? 0 : k0 < WARP ? (unsigned)pattern.y : __ldg(args.equal + (int64_t)s * args.words + k0 / WARP);
    const unsigned equal = word >> (k0 % WARP);
    V              v[BATCH][BS * BS];
    Scalar         a[BATCH][BS * BS];
    int            col[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const V *p = value + (int64_t)(k0 + b) * (WARP * BS * BS) + (equal >> b & 1 ? 0 : lane);
#pragma unroll
      for (int i = 0; i < BS * BS; i++) v[b][i] = BATCH == 1 || k0 + b < steps ? Traits<V>::stream(p + i * WARP) : Traits<V>::zero();
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const int2 now = BATCH == 1 || k0 + b < steps ? __ldg(step + k0 + b) : make_int2(0, 0);
      const bool has = (unsigned)now.y >> lane & 1;
      col[b]         = has ? unit + now.x : -1;
#pragma unroll
      for (int i = 0; i < BS * BS; i++) {
        a[b][i] = has ? ConvertIn<Scalar, BS>(v[b][i]) : Num::zero();
        if (form == SPMVCUDA_CONJUGATE) a[b][i] = Num::conj(a[b][i]);
      }
    }
    AddColumns<BS, BATCH, K, GROUP>(a, col, x, columns.ldx, own.count, d);
  }
#pragma unroll
  for (int q = 0; q < K; q++) {
    if (q >= own.count) break;
    const Scalar *add = z ? z + (own.first + q) * columns.ldz : nullptr;
#pragma unroll
    for (int i = 0; i < BS; i++) y[(own.first + q) * columns.ldy + (int64_t)unit * BS + i] = Result(form, add, (int64_t)unit * BS + i, d[q][i]);
  }
}

template <class V, int BS> const void *Pick(int width)
{
  return OfWidth<BS>(width, [](auto k) { return (const void *)diagonals_columns<V, BS, decltype(k)::value>; });
}

} // namespace

const void *DiagonalsColumns(bool single, int bs, int steps, int width)
{
  return WithStored(single, [=](auto type) -> const void * {
    using V = decltype(type);
    if (bs == 1) {
      switch (steps) {
      case 3: return (const void *)diagonals_columns_once<V, 3>;
      case 5: return (const void *)diagonals_columns_once<V, 5>;
      case 7: return (const void *)diagonals_columns_once<V, 7>;
      case 9: return (const void *)diagonals_columns_once<V, 9>;
      }
    }
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
