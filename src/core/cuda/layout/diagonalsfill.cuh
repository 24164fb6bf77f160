/*
  The kernels that copy the values of A to the layout by diagonals and mark the steps whose values are all equal, or,
  with node blocks, almost all.
*/
#pragma once

#include "core/cuda/product/diagonals.cuh"
#include "staging.cuh"

namespace spmv {
namespace {

template <int STEPS> struct FillShape {
  static constexpr int BATCH = STEPS ? STEPS : Tuning::FILL_BATCH; // steps whose entries are loaded at once
  // distance of the lanes' values in shared memory: an odd number
  static constexpr int    STRIDE = BATCH | 1;
  static constexpr size_t SHARED = (size_t)Tuning::FILL_BLOCK * STRIDE * sizeof(Scalar);
};

// Whether these lanes, whose node blocks differ from the common one, are in so many of the four bytes of a step's mask
// that the step is not marked
__device__ __forceinline__ bool TooMany(unsigned lanes)
{
  return __popc(__vcmpne4(lanes, 0)) > 8 * Tuning::EXCEPTED_BYTES;
}

// The lane whose first row of a node block, `own`, most of the lanes with an entry have (own < 0: this lane has none).
// If too many lanes differ from the previous one, so that the step cannot be marked, it is the first lane with an
// entry. The values are compared by a hash: if two share one by chance, fewer lanes equal the value that is stored for
// all of them
template <class V, int BS> __device__ __forceinline__ int LaneOfMost(const Scalar *shared, int own)
{
  const int      lane = threadIdx.x % WARP;
  const unsigned owns = __ballot_sync(ALL, own >= 0);
  unsigned       hash = 0;
#pragma unroll
  for (int j = 0; j < BS; j++) {
    const V  v = ConvertIn<V, BS>(shared[own < 0 ? 0 : own + j]);
    unsigned word[sizeof(V) / sizeof(unsigned)];
    memcpy(word, &v, sizeof(v));
#pragma unroll
    for (const unsigned w : word) hash = (hash ^ w ^ hash >> 15) * 0x9E3779B1u;
  }
  const unsigned before = __shfl_up_sync(ALL, hash, 1);
  if (TooMany(__ballot_sync(ALL, own >= 0 && lane % 8 && owns >> (lane - 1) & 1 && hash != before)))
    return __ffs((int)owns) - 1;
  const unsigned like = __match_any_sync(ALL, hash) & owns;
  return (int)(__reduce_max_sync(ALL, own < 0 ? 0 : (unsigned)__popc(like) << 5 | (unsigned)lane) % WARP);
}

// Marks steps of node blocks, from `step` on. like: bit b says whether the lane's block of step b equals that of lane
// from[b]
template <class V, int BS, int BATCH>
__device__ __forceinline__ void MarkBlocks(int64_t step, int steps, unsigned like, const int (&from)[BATCH],
                                           const V *value, V *equal_value, unsigned *equal)
{
  const int lane = threadIdx.x % WARP;
  unsigned  mine = 0;
  __syncwarp(); // all lanes have written their values
#pragma unroll
  for (int b = 0; b < BATCH; b++) {
    if (b >= steps) break;
    const unsigned lanes = __ballot_sync(ALL, like >> b & 1);
    if (TooMany(~lanes)) continue;
    for (int e = lane; e < BS * BS; e += WARP)
      equal_value[(step + b) * (BS * BS) + e] = value[((step + b) * (BS * BS) + e) * WARP + from[b]];
    if (lane == b) mine = lanes;
  }
  if (lane < min(BATCH, steps)) equal[step + lane] = mine;
}

// Both the steps and a lane's entries are in the order of the columns. So the entries of a few steps are consecutive in
// each row, and no permutation is needed. The rows of a slice are consecutive, too: they are copied in one piece if
// they fit. STEPS > 0: all slices have this many steps
template <int STEPS, class V, class I>
__global__ void fill_entries(View<I> v, DiagonalArgs args, bool uniform, const int *value_index, const Scalar *a,
                             V *value, V *equal_value, int2 *pattern_of_slice)
{
  constexpr int BATCH = FillShape<STEPS>::BATCH, STRIDE = FillShape<STEPS>::STRIDE;
  const int     s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= args.slices) return;
  const int64_t first  = STEPS ? (int64_t)s * STEPS : uniform ? (int64_t)s * args.steps : args.first_value[s];
  const int2   *step   = args.step + pattern_of_slice[s].x;
  const int     steps  = STEPS     ? STEPS
                         : uniform ? args.steps
                                   : (int)(args.first_value[s + 1] - (unsigned)first),
            unit       = s * WARP + lane;
  const int64_t start  = unit < v.units ? v.start(unit) : 0;
  const int     width  = unit < v.units ? v.len(unit) : 0;
  V            *to     = value + first * WARP + lane;
  Scalar       *shared = (Scalar *)spmv_shared + threadIdx.x / WARP * (WARP * STRIDE);
  int           done = 0, mine = lane * STRIDE; // mine: the position in `shared` at which the lane's values begin
  unsigned      marks = 0;
  const int64_t begin = __shfl_sync(ALL, start, 0),
                end   = __shfl_sync(ALL, start + width, min(WARP, v.units - s * WARP) - 1);
  const bool whole    = end - begin <= WARP * STRIDE;
  if (whole) {
    for (int q = lane; q < (int)(end - begin); q += WARP)
      CopyAsync(shared + q, a + (value_index ? value_index[begin + q] : begin + q));
    AwaitCopies();
    __syncwarp();
    mine = (int)(start - begin);
  }
  for (int k0 = 0; k0 < steps; k0 += BATCH) {
    // positions in `shared` of the lane's own entry, and of the first lane's, with which it is compared
    int      at[BATCH], from[BATCH], count = 0;
    unsigned same = (1u << min(BATCH, steps - k0)) - 1;
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const unsigned lanes = k0 + b < steps ? Lanes(step[k0 + b]) : 0;
      const bool     own   = lanes >> lane & 1;
      at[b]                = own ? mine + count : -1;
      from[b]              = lanes ? __shfl_sync(ALL, at[b], __ffs(lanes) - 1) : -1;
      count += own;
    }
    if (!whole) Gather<(BATCH + 3) / 4>(a, value_index, start + done, count, STRIDE, shared);
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      if (k0 + b >= steps) break;
      const V t0 = from[b] < 0 ? Traits<V>::zero() : Convert<V>(shared[from[b]]),
              t  = at[b] < 0 ? t0 : Convert<V>(shared[at[b]]);
      if (!__all_sync(ALL, Traits<V>::same(t, t0)))
        same &= ~(1u << b);
      else if (lane == 0)
        equal_value[first + k0 + b] = t0;
      to[(k0 + b) * WARP] = t;
    }
    done += count;
    if (whole) mine += count;
    if (k0 < WARP) marks |= same << k0; // the other steps have none
  }
  if (lane == 0) pattern_of_slice[s].y = (int)marks;
}

// steps of node blocks that a warp takes at once
constexpr int NODES_BATCH = sizeof(Scalar) <= 8 ? Tuning::FILL_BATCH / 2 : Tuning::FILL_BATCH / 4;
static_assert(NODES_BATCH <= WARP);

// The same for node blocks, one slice per thread block, `staged` steps at a time
template <int BS, class V, class I>
__global__ void __launch_bounds__(Tuning::FILL_NODES_WARPS *WARP, Tuning::FILL_NODES_BLOCKS)
    fill_nodes(View<I> v, DiagonalArgs args, bool uniform, int staged, const int *value_index, const Scalar *a,
               V *value, V *equal_value, unsigned *equal)
{
  const int s = (int)blockIdx.x, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP,
            unit        = s * WARP + lane;
  const int64_t  first  = uniform ? (int64_t)s * args.steps : args.first_value[s];
  const int      steps  = uniform ? args.steps : (int)(args.first_value[s + 1] - (unsigned)first);
  const int2    *step   = args.step + args.pattern_of_slice[s].x;
  const int64_t  start  = unit < v.units ? v.start(unit) : 0;
  const int      len    = unit < v.units ? v.len(unit) : 0;
  const bool     listed = start < 0;
  const unsigned lists  = __ballot_sync(ALL, listed);
  V             *to     = value + first * (BS * BS * WARP) + lane;
  Scalar        *shared = (Scalar *)spmv_shared;
  int            done = 0, counted = 0; // the lane's blocks in the first steps; how many steps these are
  const auto     own = [&](int k) { return Lanes(step[k]) >> lane & 1; }; // whether the lane has a block in a step
  for (int staged0 = 0; staged0 < steps; staged0 += staged) {
    const int end = min(staged0 + staged, steps);
    for (; counted < staged0; counted++) done += own(counted);
    int count = end < steps ? 0 : len - done; // the lane's staged blocks
    for (int k = staged0; k < end && end < steps; k++) count += own(k);
    if (staged0) __syncthreads();
    const int mine = StageBlocks<BS>(v, WARP, start, len, done, count, a, value_index, shared) - done * BS;
    __syncthreads();
    for (int k0 = staged0 + warp * NODES_BATCH; k0 < end; k0 += warps * NODES_BATCH) {
      // at: positions in `shared` of the lane's blocks; like: the lanes with whose blocks they are compared
      int      at[NODES_BATCH], like[NODES_BATCH];
      unsigned same = (1u << min(NODES_BATCH, end - k0)) - 1; // of this lane
      for (; counted < k0; counted++) done += own(counted);
#pragma unroll
      for (int b = 0; b < NODES_BATCH; b++) {
        const bool any = k0 + b < end && own(k0 + b);
        at[b]          = any ? mine + done * BS : -1;
        done += any;
        like[b] = k0 + b < end ? LaneOfMost<V, BS>(shared, at[b]) : 0;
      }
      counted = k0 + NODES_BATCH;
      for (int i = 0; i < BS; i++) {
#pragma unroll
        for (int b = 0; b < NODES_BATCH; b++) {
          if (k0 + b >= end) break;
          const int  row = at[b] < 0 ? -1 : at[b] + i * count * BS, like_row = __shfl_sync(ALL, row, like[b]);
          const bool like_listed = lists >> (like[b] & (WARP - 1)) & 1;
#pragma unroll
          for (int j = 0; j < BS; j++) {
            const V t0 =
                like_row < 0 ? Traits<V>::zero() : ConvertIn<V, BS>(ReadStaged(shared, like_row + j, like_listed));
            const V t = row < 0 ? t0 : ConvertIn<V, BS>(ReadStaged(shared, row + j, listed));
            if (!Traits<V>::same(t, t0)) same &= ~(1u << b);
            to[((k0 + b) * (BS * BS) + i * BS + j) * WARP] = t;
          }
        }
      }
      MarkBlocks<V, BS>(first + k0, end - k0, same, like, value, equal_value, equal);
    }
  }
}

template <class V, int STEPS, class I> cudaError_t Fill(const View<I> &v, const FillArgs &f, cudaStream_t stream)
{
  const unsigned grid = Blocks((int64_t)f.args.slices * WARP, Tuning::FILL_BLOCK);
  fill_entries<STEPS><<<grid, Tuning::FILL_BLOCK, FillShape<STEPS>::SHARED, stream>>>(
      v, f.args, f.uniform, f.value_index, f.a, (V *)f.value, (V *)f.equal_value, f.pattern_of_slice);
  return cudaGetLastError();
}

template <class V, int BS, class I> cudaError_t FillNodes(const View<I> &v, const FillArgs &f, cudaStream_t stream)
{
  const int warps = PetscMin((f.args.steps + NODES_BATCH - 1) / NODES_BATCH, Tuning::FILL_NODES_WARPS);
  Staging   s;
  SPMV_TRY(ChooseStaging<BS>((const void *)fill_nodes<BS, V, I>, f.args.steps, NODES_BATCH, &s));
  fill_nodes<BS><<<f.args.slices, PetscMax(warps, 1) * WARP, s.shared, stream>>>(
      v, f.args, f.uniform, s.steps, f.value_index, f.a, (V *)f.value, (V *)f.equal_value, f.equal);
  return cudaGetLastError();
}

template <class V, class I> cudaError_t FillEntries(const View<I> &v, const FillArgs &f, cudaStream_t stream)
{
  switch (f.uniform ? f.args.steps : 0) {
  case 3: return Fill<V, 3>(v, f, stream);
  case 5: return Fill<V, 5>(v, f, stream);
  case 7: return Fill<V, 7>(v, f, stream);
  case 9: return Fill<V, 9>(v, f, stream);
  default: return Fill<V, 0>(v, f, stream);
  }
}

template <class V>
cudaError_t FillDiagonals(const SpMVCudaCSR &csr, const Nodes &nodes, const FillArgs &f, cudaStream_t stream)
{
  return WithView(csr, nodes, [&](auto v) {
    ForgetErrors();
    return WithNodeSize(f.bs, [&](auto bs) {
      if constexpr (bs == 1)
        return FillEntries<V>(v, f, stream);
      else
        return FillNodes<V, bs>(v, f, stream);
    });
  });
}

} // namespace
} // namespace spmv
