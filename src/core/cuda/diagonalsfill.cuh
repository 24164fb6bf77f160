/*
  The kernels that copy the values of A to the layout by diagonals and mark the steps whose values are all equal, or, with node blocks, almost all.
*/
#pragma once

#include "diagonals.cuh"

namespace spmv {
namespace {

template <int BS, int STEPS> struct FillShape {
  static constexpr bool   MANY   = BS <= 4 && sizeof(Scalar) <= 8;                                     // there are enough registers for a full batch
  static constexpr int    BATCH  = STEPS ? STEPS : MANY ? Tuning::FILL_BATCH : Tuning::FILL_BATCH / 2; // steps whose entries are loaded at once
  static constexpr int    STRIDE = (BATCH * BS) | 1;                    // distance of the lanes' values in shared memory: an odd number
  static constexpr int    BLOCK  = BS == 1 ? Tuning::FILL_BLOCK : WARP; // threads
  static constexpr size_t SHARED = (size_t)BLOCK * STRIDE * sizeof(Scalar);
};

constexpr int EQUALS = 256; // counters of marks, because a single one would delay the slices of a large matrix

// The lane whose first row of a node block, `own`, most of the lanes with an entry have (own < 0: this lane has none). The values are compared by a hash: if two
// share one by chance, fewer lanes equal the value that is stored for all of them
template <class V, int BS> __device__ __forceinline__ int LaneOfMost(const Scalar *shared, int own)
{
  unsigned hash = 0;
#pragma unroll
  for (int j = 0; j < BS; j++) {
    const V  v = ConvertIn<V, BS>(shared[own < 0 ? 0 : own + j]);
    unsigned word[sizeof(V) / sizeof(unsigned)];
    memcpy(word, &v, sizeof(v));
#pragma unroll
    for (const unsigned w : word) hash = (hash ^ w ^ hash >> 15) * 0x9E3779B1u;
  }
  const unsigned like = __match_any_sync(ALL, hash) & __ballot_sync(ALL, own >= 0);
  return (int)(__reduce_max_sync(ALL, own < 0 ? 0 : (unsigned)__popc(like) << 5 | (unsigned)(threadIdx.x % WARP)) % WARP);
}

// Marks steps of node blocks, from `step` on. like: bit b says whether the lane's block of step b equals that of lane from[b]. Returns how many it marked
template <class V, int BS, int BATCH>
__device__ __forceinline__ int MarkBlocks(int64_t step, int steps, unsigned like, const int (&from)[BATCH], const V *value, V *equal_value, unsigned *equal)
{
  const int lane   = threadIdx.x % WARP;
  unsigned  mine   = 0;
  int       marked = 0;
  __syncwarp(); // all lanes have written their values
#pragma unroll
  for (int b = 0; b < BATCH; b++) {
    if (b >= steps) break;
    const unsigned lanes = __ballot_sync(ALL, like >> b & 1);
    if (__popc(__vcmpne4(~lanes, 0)) > 8 * Tuning::EXCEPTED_BYTES) continue;
    for (int e = lane; e < BS * BS; e += WARP) equal_value[(step + b) * (BS * BS) + e] = value[((step + b) * (BS * BS) + e) * WARP + from[b]];
    if (lane == b) mine = lanes;
    marked++;
  }
  if (lane < min(BATCH, steps)) equal[step + lane] = mine;
  return marked;
}

// Both the steps and a lane's entries are in the order of the columns. So the entries of a few steps are consecutive in each row, and no permutation is needed.
// The rows of a slice are consecutive, too: single entries of a slice are copied in one piece if they fit. STEPS > 0: all slices have this many steps
template <int BS, int STEPS, class V, class I>
__global__ void fill(View<I> v, DiagonalArgs args, bool uniform, const int *value_index, const Scalar *a, V *value, V *equal_value, int2 *pattern_of_slice,
                     unsigned *equal, unsigned *equals)
{
  constexpr int BATCH = FillShape<BS, STEPS>::BATCH, STRIDE = FillShape<BS, STEPS>::STRIDE;
  static_assert(BS == 1 || BATCH <= WARP);
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= args.slices) return;
  const int64_t first = STEPS ? (int64_t)s * STEPS : uniform ? (int64_t)s * args.steps : args.first_value[s];
  const int     more  = BS == 1 && !STEPS && args.more ? (int)(args.more[s + 1] - args.more[s]) : 0;
  const int     steps = STEPS ? STEPS : uniform ? args.steps + more : (int)(args.first_value[s + 1] - (unsigned)first), unit = s * WARP + lane;
  const int64_t beyond = more ? (int64_t)(args.slices - 1 - s) * args.steps + args.more[s] : 0; // steps between the slice's usual steps and its additional ones
  const int2   *step   = args.step + pattern_of_slice[s].x;
  const int64_t start  = unit < v.units ? v.start(unit) : 0;
  const int     width  = unit < v.units ? v.len(unit) * BS : 0; // width of a row
  V            *to     = value + first * (BS * BS * WARP) + lane;
  Scalar       *shared = (Scalar *)spmv_shared + threadIdx.x / WARP * (WARP * STRIDE);
  int           done = 0, mine = lane * STRIDE; // mine: the position in `shared` at which the lane's values begin
  const bool    listed = BS > 1 && start < 0;
  bool          whole = false, looks = BS > 1; // looks: for the value that most lanes have, until no step of a batch could be marked
  unsigned      word = 0, total = 0;
  if (BS == 1) {
    const int64_t begin = __shfl_sync(ALL, start, 0), end = __shfl_sync(ALL, start + width, min(WARP, v.units - s * WARP) - 1);
    whole = end - begin <= WARP * STRIDE;
    if (whole) {
      for (int q = lane; q < (int)(end - begin); q += WARP) Num::copy(shared + q, a + (value_index ? value_index[begin + q] : begin + q));
      AwaitCopies();
      __syncwarp();
      mine = (int)(start - begin);
    }
  }
  for (int k0 = 0; k0 < steps; k0 += BATCH) {
    // Positions in `shared` of the lane's own entry, and of the entry of a lane with which it is compared: the first one, or one with the value that most have
    int      at[BATCH], from[BATCH], most[BS > 1 ? BATCH : 1], count = 0;
    unsigned same = (1u << min(BATCH, steps - k0)) - 1; // of all lanes, or, with node blocks, of this lane
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const unsigned lanes = k0 + b < steps ? Lanes(step[k0 + b]) : 0;
      const bool     own   = lanes >> lane & 1;
      at[b]                = own ? mine + count : -1;
      from[b]              = BS == 1 && lanes ? __shfl_sync(ALL, at[b], __ffs(lanes) - 1) : -1;
      count += own ? BS : 0;
    }
    for (int i = 0; i < BS; i++) {
      if (!whole) Gather<(BATCH * BS + 3) / 4, 1, (BS > 1)>(a, value_index, start + (int64_t)i * width + done, 0, listed ? 0 : count, STRIDE, shared);
      if (BS > 1 && v.first) {
#pragma unroll 1
        for (int e = 0; e < count && listed; e += BS) ReadListed<BS>(v, start, (done + e) / BS, i, a, value_index, shared + mine + e);
        __syncwarp();
      }
      if constexpr (BS > 1) {
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
          if (i > 0 || k0 + b >= steps) break;
          most[b] = looks ? LaneOfMost<V, BS>(shared, at[b]) : __ffs((int)__ballot_sync(ALL, at[b] >= 0)) - 1;
          from[b] = __shfl_sync(ALL, at[b], most[b]);
        }
      }
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        if (k0 + b >= steps) break;
#pragma unroll
        for (int j = 0; j < BS; j++) {
          const V    t0 = from[b] < 0 ? Traits<V>::zero() : ConvertIn<V, BS>(shared[from[b] + j]), t = at[b] < 0 ? t0 : ConvertIn<V, BS>(shared[at[b] + j]);
          const bool like = Traits<V>::same(t, t0);
          if (BS > 1 ? !like : !__all_sync(ALL, like))
            same &= ~(1u << b);
          else if (BS == 1 && lane == 0 && (!more || k0 + b < args.steps))
            equal_value[first + k0 + b] = t0;
          to[((k0 + b + (more && k0 + b >= args.steps ? beyond : 0)) * (BS * BS) + i * BS + j) * WARP] = t;
        }
      }
    }
    done += count;
    if constexpr (BS > 1) {
      const int marked = MarkBlocks<V, BS>(first + k0, steps - k0, same, most, value, equal_value, equal);
      looks            = looks && marked;
      total += marked;
      continue;
    }
    if (whole) mine += count;
    if (more && k0 + BATCH > args.steps) same &= k0 < args.steps ? (1u << (args.steps - k0)) - 1 : 0; // additional steps have no marks
    total += __popc(same);
    word |= same << k0 % WARP;
    if (k0 % WARP == WARP - BATCH || k0 + BATCH >= steps) {
      if (lane == 0 && k0 < WARP)
        pattern_of_slice[s].y = (int)(word | (more ? MORE : 0));
      else if (lane == 0)
        equal[(int64_t)s * args.words + k0 / WARP] = word;
      word = 0;
    }
  }
  if (lane == 0) atomicAdd(equals + s % EQUALS, total);
}

template <class V, int BS, int STEPS, class I> void Fill(const View<I> &v, const FillArgs &f, cudaStream_t stream)
{
  using Shape         = FillShape<BS, STEPS>;
  const unsigned grid = Blocks((int64_t)f.args.slices * WARP, Shape::BLOCK);
  fill<BS, STEPS><<<grid, Shape::BLOCK, Shape::SHARED, stream>>>(v, f.args, f.uniform, f.value_index, f.a, (V *)f.value, (V *)f.equal_value, f.pattern_of_slice,
                                                                 f.equal, f.equals);
}

template <class V, class I> void FillEntries(const View<I> &v, const FillArgs &f, cudaStream_t stream)
{
  switch (f.uniform && !f.args.more ? f.args.steps : 0) {
  case 3: Fill<V, 1, 3>(v, f, stream); break;
  case 5: Fill<V, 1, 5>(v, f, stream); break;
  case 7: Fill<V, 1, 7>(v, f, stream); break;
  case 9: Fill<V, 1, 9>(v, f, stream); break;
  default: Fill<V, 1, 0>(v, f, stream);
  }
}

template <class V> cudaError_t FillDiagonals(const SpMVCudaCSR &csr, const Nodes &nodes, const FillArgs &f, cudaStream_t stream)
{
  return WithView(csr, nodes, [&](auto v) {
    ForgetErrors();
    switch (f.bs) {
    case 1: FillEntries<V>(v, f, stream); break;
    case 2: Fill<V, 2, 0>(v, f, stream); break;
    case 3: Fill<V, 3, 0>(v, f, stream); break;
    case 4: Fill<V, 4, 0>(v, f, stream); break;
    case 5: Fill<V, 5, 0>(v, f, stream); break;
    default: Fill<V, 6, 0>(v, f, stream);
    }
    return cudaGetLastError();
  });
}

} // namespace
} // namespace spmv
