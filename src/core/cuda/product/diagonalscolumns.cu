/*
  Products with several columns for matrices stored by diagonals. See diagonals.cu for the layout.
*/
#include "columns.cuh"
#include "diagonals.cuh"

namespace spmv {
namespace {

using Args = WithPanels<DiagonalArgs>;

template <int BS, int K> struct DiagonalsShape {
  // steps whose values are loaded before the first is used
  static constexpr int BATCH = BS == 1 ? Tuning::COLUMNS_LOADS / K : BS == 2 ? 2 : 1;
  // columns whose x is loaded before the first is used
  static constexpr int GROUP   = BS == 1 ? K : PetscMin(K, BS == 2 ? 4 : (int)sizeof(Scalar) > 8 ? 2 : 4);
  static constexpr int BLOCK   = ColumnsBlock(BS);
  static constexpr int THREADS = BS > 4                         ? 256
                                 : BS > 1 || sizeof(Scalar) > 8 ? 512
                                 : K > 4                        ? Tuning::COLUMNS_THREADS_EIGHT
                                                                : Tuning::COLUMNS_THREADS; // per multiprocessor
};

// Multiplies K columns
template <class V, int BS, int K>
__global__ void __launch_bounds__(DiagonalsShape<BS, K>::BLOCK,
                                  DiagonalsShape<BS, K>::THREADS / DiagonalsShape<BS, K>::BLOCK)
    diagonals_columns(Args arguments, SpMVCudaForm form, const Scalar *x, const Scalar *z, Scalar *y)
{
  constexpr int BATCH = DiagonalsShape<BS, K>::BATCH, GROUP = DiagonalsShape<BS, K>::GROUP;
  // Whether marked steps are read from equal_value. With two columns there are not enough registers: 200^3 with random
  // values would take 198 us instead of 183
  constexpr bool      ONCE   = BS > 1 || K > 2;
  const DiagonalArgs &args   = arguments.args;
  const Panels       &panels = arguments.panels;
  const Panel         own(panels);
  const int           s = (int)((own.block * ColumnsBlock(BS) + threadIdx.x) / WARP), lane = threadIdx.x % WARP,
            unit      = s * WARP + lane;
  const Waited waited = AwaitPrevious();
  if (unit >= args.units) return;
  const int2    pattern = LoadOrdered(args.pattern_of_slice + s);
  const int64_t first   = args.first_value ? (int64_t)args.first_value[s] : (int64_t)s * args.steps;
  int           left    = args.first_value ? (int)(args.first_value[s + 1] - (unsigned)first) : args.steps; // steps
  const int2   *step    = args.step + pattern.x;
  const V      *value   = (const V *)args.value + first * (WARP * BS * BS);
  const V      *same    = (const V *)args.equal_value + first * (BS * BS);
  // marks of the first 32 steps; the other steps are read in full
  unsigned equal = BS == 1 ? (unsigned)pattern.y : 0;
  // lanes of each step that have the same node block
  const unsigned *alike = BS > 1 ? args.equal + first : nullptr;
  Scalar          d[K][BS];

#pragma unroll
  for (int q = 0; q < K; q++) {
#pragma unroll
    for (int i = 0; i < BS; i++) d[q][i] = Num::zero();
  }
  x += own.first * panels.columns.ldx + (int64_t)unit * BS;
#pragma unroll 1
  for (; left > 0;
       left -= BATCH, step += BATCH, equal >>= BATCH, value += BATCH * (WARP * BS * BS), same += BATCH * (BS * BS)) {
    V        v[BATCH][BS * BS];
    unsigned lanes[BATCH];
    Scalar   a[BATCH][BS * BS];
    int      distance[BATCH];
    bool     has[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) lanes[b] = BS > 1 && (BATCH == 1 || b < left) ? LoadOrdered(alike + b) : 0;
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const bool marked = BS == 1 ? equal >> b & 1 : lanes[b] >> lane & 1;
      const V   *p      = ONCE && marked ? same + b * (BS * BS) : value + b * (WARP * BS * BS) + (marked ? 0 : lane);
#pragma unroll
      for (int i = 0; i < BS * BS; i++)
        v[b][i] = BATCH == 1 || b < left ? Stream(p + i * (ONCE && marked ? 1 : WARP)) : Traits<V>::zero();
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const int2 now = BATCH == 1 || b < left ? __ldg(step + b) : make_int2(0, 0);
      has[b]         = (unsigned)now.y >> lane & 1;
      distance[b]    = has[b] ? now.x : -unit; // column 0
#pragma unroll
      for (int i = 0; i < BS * BS; i++) {
        a[b][i] = ConvertIn<Scalar, BS>(v[b][i]);
        if (form == SPMVCUDA_CONJUGATE) a[b][i] = Num::conj(a[b][i]);
      }
    }
    AddColumns<BS, BATCH, K, GROUP>(a, has, distance, waited, x, panels, d);
    if (BS > 1) alike += BATCH;
  }
  const Panel again(panels);
  WriteColumns<BS, K>(form, panels, (int64_t)unit * BS, d, z ? z + again.first * panels.columns.ldz : nullptr,
                      y + again.first * panels.columns.ldy);
}

} // namespace

const void *DiagonalsColumns(bool single, int bs, int width)
{
  return ColumnsKernel<1>(single, bs, width, [](auto type, auto size, auto k) {
    return (const void *)diagonals_columns<decltype(type), decltype(size)::value, decltype(k)::value>;
  });
}

} // namespace spmv
