/*
  Slices of sorted rows, for every pattern that is not stored by diagonals.

  One warp multiplies one slice. Depending on the lengths of its units (rows, or node rows of dense bs x bs blocks), a slice holds
    - 64, 128 or 256 short units, 2, 4 or 8 per lane, so that a warp still has eight vector loads to issue at once;
    - 32 / T units with T = 1, 2, ..., 32 lanes each;
    - a part of one long unit: the parts store partial sums, and the warp that arrives last adds them in order.
  Step k of a slice has 32 entries (node blocks), stored value by value, 32 lanes side by side. Units that are shorter than their slice are filled up with
  marked entries that read no x. Columns are 32-bit numbers, or 16-bit distances from the slice's smallest column. If each step of a one-unit slice is a run of
  columns, one number per step is stored; if the whole slice is one run, none. Slices with much work come first, so that they do not finish last.
*/
#include "epilogue.cuh"
#include "slices.cuh"

namespace spmv {
namespace {

constexpr int BLOCK = Tuning::SLICES_BLOCK, WINDOW = Tuning::SLICES_WINDOW;

using Args = SliceArgs;

// ------------------------------------------------------------------------------------------------ product

// Adds the lane's sums of a slice to d. V: the type of the stored values. Each mode has its own loop: with branches between the loads, dense rows take twice as
// long
template <class V, int BS, int U, int MODE>
__device__ __forceinline__ void accumulate(const Args &args, const Slice &self, int lane, SpMVCudaForm form, const Scalar *__restrict__ x, Scalar (&d)[U * BS])
{
  constexpr int BATCH = BS == 1 ? 8 : BS == 2 ? 4 : BS == 3 ? 2 : 1; // steps whose loads are issued before the first is used
  const int     steps = self.steps * U;
  const V      *value = (const V *)args.value + (int64_t)self.value * (WARP * BS * BS) + lane;
  const char   *index = args.index + (int64_t)self.index * 32;

  // FULL: all steps exist, so that there are no tests between the loads
  auto batch = [&](int k0, auto full) {
    constexpr bool FULL = decltype(full)::value;
    V              v[BATCH][BS * BS];
    Scalar         xs[BATCH][BS];
    int            col[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const int  k  = k0 + b;
      const bool in = FULL || k < steps;
      if (MODE == WIDE)
        col[b] = in ? __ldcs((const int *)index + k * WARP + lane) : -1;
      else if (MODE == NARROW)
        col[b] = in ? __ldcs((const unsigned short *)index + k * WARP + lane) : (int)NO_COLUMN;
      else
        col[b] = in && (k < steps - 1 || lane < Tail(self.shape)) ? (MODE == LINE ? self.base + k * WARP : __ldg((const int *)index + k)) + lane : -1;
#pragma unroll
      for (int i = 0; i < BS * BS; i++) v[b][i] = in ? Traits<V>::stream(value + ((int64_t)k * (BS * BS) + i) * WARP, args.policy) : Traits<V>::zero();
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const bool    own = MODE == NARROW ? col[b] != (int)NO_COLUMN : col[b] >= 0;
      const Scalar *at  = x + (int64_t)(MODE == NARROW ? self.base + col[b] : col[b]) * BS;
#pragma unroll
      for (int j = 0; j < BS; j++) xs[b][j] = own ? Num::keep(at + j) : Num::zero();
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) { // padding is 0 times 0
#pragma unroll
      for (int j = 0; j < BS; j++) {
#pragma unroll
        for (int i = 0; i < BS; i++) {
          if (BS > 1 && Traits<V>::is_absent(v[b][i * BS + j])) continue;
          const Scalar a    = Convert<Scalar>(v[b][i * BS + j]);
          d[b % U * BS + i] = Num::fma(form == SPMVCUDA_CONJUGATE ? Num::conj(a) : a, xs[b][j], d[b % U * BS + i]);
        }
      }
    }
  };
  int k0 = 0;
  for (; k0 + BATCH <= steps; k0 += BATCH) batch(k0, std::true_type{});
  if (BATCH > 1 && k0 < steps) batch(k0, std::false_type{});
}

// Adds the sums of the lanes that share a unit in the first of these lanes. For a part of a unit, the last part to arrive adds the sums of all parts in the
// lane in which it sets `unit`. Returns whether there is anything to write
template <int BS> __device__ __forceinline__ bool add_lanes(const Args &args, const Slice &self, int lane, Scalar (&d)[BS], int *unit)
{
  const int alone = WARP >> LogT(self.shape);
  for (int by = WARP / 2; by >= alone; by >>= 1) {
#pragma unroll
    for (int i = 0; i < BS; i++) d[i] = Num::add(d[i], Num::down(d[i], by));
  }
  if (!IsPart(self.shape)) return true;
  const int2 group = __ldg(args.group + self.group);
  Scalar    *parts = args.partial + (int64_t)group.x * BS;
  int        last  = 0;
  if (lane == 0) {
#pragma unroll
    for (int i = 0; i < BS; i++) parts[(int64_t)self.part * BS + i] = d[i];
    last = ArriveLast(args.arrived + self.group, (unsigned)group.y);
  }
  if (!__shfl_sync(ALL, last, 0)) return false;
  AcquireArrived();
  __syncwarp();
#pragma unroll
  for (int i = 0; i < BS; i++) {
    d[i] = Num::zero();
    for (int k = lane; k < group.y; k += WARP) d[i] = Num::add(d[i], Num::fresh(parts + (int64_t)k * BS + i));
    for (int by = WARP / 2; by; by >>= 1) d[i] = Num::add(d[i], Num::down(d[i], by));
  }
  if (lane == 0) *unit = self.first;
  return true;
}

// One loop per mode; the code that follows the loop exists only once
template <class V, int BS, bool FUSED, int U, class D>
__device__ __forceinline__ void product(const Args &args, const D *dot, PetscReal *sums, const Slice &self, int lane, SpMVCudaForm form,
                                        const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  const int  units = Units(self.shape), mode = ModeOf(self.shape);
  const bool part = U == 1 && IsPart(self.shape);
  Scalar     d[U * BS];
  int        unit[U];

#pragma unroll
  for (int u = 0; u < U; u++) {
    const int r = u * WARP + lane;
    unit[u]     = part || r >= units ? -1 : args.order ? __ldg(args.order + self.first + r) : self.first + r;
#pragma unroll
    for (int i = 0; i < BS; i++) d[u * BS + i] = Num::zero();
  }
  if (mode == WIDE)
    accumulate<V, BS, U, WIDE>(args, self, lane, form, x, d);
  else if (U > 1 || mode == NARROW)
    accumulate<V, BS, U, NARROW>(args, self, lane, form, x, d);
  else if constexpr (U == 1) {
    if (mode == LINE)
      accumulate<V, BS, U, LINE>(args, self, lane, form, x, d);
    else
      accumulate<V, BS, U, RUNS>(args, self, lane, form, x, d);
  }
  if constexpr (U == 1) {
    if (!add_lanes<BS>(args, self, lane, d, unit)) return;
  }
#pragma unroll
  for (int u = 0; u < U; u++) {
    if (unit[u] < 0) continue;
    if (FUSED && args.offdiag.halo) args.offdiag.Add<BS>(__ldg(args.offdiag.slot + unit[u] / WARP), unit[u], d + u * BS);
    const int64_t r = (int64_t)(args.unit ? __ldg(args.unit + unit[u]) : unit[u]) * BS;
    if constexpr (std::is_same_v<D, Dots>) {
#pragma unroll
      for (int i = 0; i < BS; i++) d[u * BS + i] = dot->Add(r + i, d[u * BS + i], sums);
    }
#pragma unroll
    for (int i = 0; i < BS; i++) {
      y[r + i] = Result(form, z, r + i, d[u * BS + i]);
      if constexpr (std::is_same_v<D, Dot>) {
        if (dot) AddTo(sums, Term(dot->hermitian, Num::keep(x + r + i), d[u * BS + i]));
      }
    }
  }
}

// A warp multiplies one slice, depending on its kind. MANY: some slices have several units per lane. A kernel without them has room for a third more warps: a
// twin of cage14 takes 91 us instead of 98, random:20000 29 instead of 31
template <class V, int BS, bool MANY, bool FUSED, class D>
__device__ __forceinline__ void multiply(const Args &args, const D *dot, PetscReal *sums, int s, int lane, SpMVCudaForm form, const Scalar *__restrict__ x,
                                         const Scalar *z, Scalar *y)
{
  const int4  a = __ldg((const int4 *)(args.slice + s)), b = __ldg((const int4 *)(args.slice + s) + 1);
  const Slice self = {(unsigned)a.x, (unsigned)a.y, a.z, (unsigned)a.w, b.x, b.y, b.z, b.w};
  const int   lu   = MANY ? LogU(self.shape) : 0;
  if (!FUSED && args.interior && (self.shape & BOUNDARY)) return;
  if (lu == 0)
    product<V, BS, FUSED, 1>(args, dot, sums, self, lane, form, x, z, y);
  else if constexpr (MANY) {
    if (lu == 1)
      product<V, 1, FUSED, 2>(args, dot, sums, self, lane, form, x, z, y);
    else if (lu == 2)
      product<V, 1, FUSED, 4>(args, dot, sums, self, lane, form, x, z, y);
    else
      product<V, 1, FUSED, 8>(args, dot, sums, self, lane, form, x, z, y);
  }
}

// E: with DotEpilogue or DotsEpilogue, for a square matrix without parts of units, the kernel also computes inner products, for MultDot() and MultDots(); all
// threads then take part until the end
template <class V, int BS, bool MANY, bool FUSED, class E>
__global__ void __launch_bounds__(BLOCK, 2) slices(ArgumentsOf<Args, E> arguments, SpMVCudaForm form, const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  const Args &args = ArgsOf(arguments);
  const int   s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  PetscReal   sums[E::Type::NUMBERS] = {};
  if (FUSED) LetNextBegin();
  if (!FUSED || s == 0) AwaitPrevious(); // one warp waits, so that all previous work is done when all warps are
  if (s < args.slices) multiply<V, BS, MANY, FUSED>(args, DotOf(arguments), sums, s, lane, form, x, z, y);
  if constexpr (E::DOT) DotOf(arguments)->Leave(sums);
}

template <class V, int BS, bool MANY>
__global__ void __launch_bounds__(BLOCK, 2) slices_each(EachColumn each, SpMVCudaForm form, const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  const int64_t column = blockIdx.x / each.blocks;
  const int     s      = (int)(((blockIdx.x - column * each.blocks) * BLOCK + threadIdx.x) / WARP);
  const Dot    *none   = nullptr;
  AwaitPrevious();
  if (s >= each.args.slices) return;
  multiply<V, BS, MANY, false>(each.args, none, nullptr, s, threadIdx.x % WARP, form, x + column * each.columns.ldx, z + column * each.columns.ldz,
                               y + column * each.columns.ldy);
}

// ------------------------------------------------------------------------------------------------ order

template <class I> __global__ void flag_nonempty(View<I> v, int64_t *flag)
{
  const int u = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (u <= v.units) flag[u] = u < v.units && v.len(u) > 0;
}

__global__ void list_nonempty(int units, const int64_t *sum, int *list)
{
  const int u = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (u < units && sum[u + 1] > sum[u]) list[sum[u]] = u;
}

__global__ void iota(int count, int *list)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (p < count) list[p] = p;
}

template <class I> __global__ void sort_keys(View<I> v, int places, int sigma, bool by_column, int longest, int bits, const int *order, uint64_t *key)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (p >= places) return;
  const int u = order[p], len = v.len(u);
  if (by_column)
    key[p] = (uint64_t)(p / sigma) << (bits + 32) | (uint64_t)len << 32 | (unsigned)(len ? v.col(v.start(u), 0) : 0);
  else
    key[p] = (uint64_t)(p / sigma) << bits | (unsigned)(longest - len);
}

template <class I> __global__ void lengths(View<I> v, int places, const int *order, int *length)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (p < places) length[p] = v.len(order ? order[p] : p);
}

// ------------------------------------------------------------------------------------------------ forming slices

// The longest of `count` units; all lanes of a warp call it
__device__ int longest(const int *length, int first, int count)
{
  int w = 0;
  for (int p = first + (int)(threadIdx.x % WARP); p < first + count; p += WARP) w = max(w, length[p]);
  return __reduce_max_sync(ALL, w);
}

// Calls f(first place, units, log2 U, log2 T, steps, parts), in all lanes of the warp, for the slices of places first to last - 1
template <class F> __device__ void form(const int *length, int first, int last, int bs, const SliceRules &r, F f)
{
  while (first < last) {
    const int here = length[first], left = last - first;
    int       lu = bs == 1 && !r.threads ? MAX_LU : 0, lt = 0, w = 0, units;
    for (; lu; lu--) { // as many units per lane as fit in eight vectors
      if (here > 8 >> lu || WARP << (lu - 1) >= left) continue;
      w = longest(length, first, min(left, WARP << lu));
      if (w <= 8 >> lu) break;
    }
    units = min(left, WARP << lu);
    if (!lu) {
      for (; lt < 5; lt++) {
        if (r.threads ? 1 << lt < r.threads : r.vector && here > r.vector) continue;
        w = longest(length, first, min(left, WARP >> lt));
        if (r.threads || w <= r.per_thread << lt) break;
      }
      units = min(left, WARP >> lt);
      if (lt == 5) w = here;
    }
    if (lt == 5 && w > r.whole)
      f(first, 1, 0, 5, 0, (w + r.chunk - 1) / r.chunk);
    else
      f(first, units, lu, lt, (w + (1 << lt) - 1) >> lt, 0);
    first += units;
  }
}

__device__ int rank_of(int lu, int lt, int steps) // slices of rank 0 come first
{
  return lt == 5 ? 0 : steps << lu > 8 ? 1 : 2;
}

// counts: for each window, the numbers of slices of rank 0, 1 and 2, of long units, and of parts. many: whether a slice has several units per lane
__global__ void count_slices(int places, int windows, const int *length, int bs, SliceRules r, int64_t *counts, int *many)
{
  const int w = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP);
  if (w > windows) return;
  if (w == windows) {
    counts[5 * (int64_t)windows] = 0;
    return;
  }
  int64_t n[3] = {0, 0, 0}, groups = 0, all = 0;
  bool    several = false;
  form(length, w * WINDOW, min(places, (w + 1) * WINDOW), bs, r, [&](int, int, int lu, int lt, int steps, int parts) {
    const int rank = rank_of(lu, lt, steps), add = parts ? parts : 1;
    n[0] += rank == 0 ? add : 0;
    n[1] += rank == 1 ? add : 0;
    n[2] += rank == 2 ? add : 0;
    groups += parts > 0;
    all += parts;
    several = several || lu > 0;
  });
  if (threadIdx.x % WARP) return;
  if (several) Raise(many);
  for (int rank = 0; rank < 3; rank++) counts[(int64_t)rank * windows + w] = n[rank];
  counts[(int64_t)3 * windows + w] = groups;
  counts[(int64_t)4 * windows + w] = all;
}

// counts: prefix sums
__global__ void write_slices(int places, int windows, const int *length, const int *order, int bs, SliceRules r, const int64_t *counts, Slice *slice,
                             int2 *group)
{
  const int w = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (w >= windows) return;
  const int64_t W     = windows;
  int64_t       at[3] = {counts[w], counts[W + w], counts[2 * W + w]}, id = counts[3 * W + w] - counts[3 * W], part = counts[4 * W + w] - counts[4 * W];
  form(length, w * WINDOW, min(places, (w + 1) * WINDOW), bs, r, [&](int first, int units, int lu, int lt, int steps, int parts) {
    const int rank = rank_of(lu, lt, steps);
    int64_t   s    = rank == 0 ? at[0] : rank == 1 ? at[1] : at[2];
    const int add  = parts ? parts : 1;
    at[0] += rank == 0 ? add : 0;
    at[1] += rank == 1 ? add : 0;
    at[2] += rank == 2 ? add : 0;
    if (!parts) {
      if (lane == 0) slice[s] = {0, 0, steps, Shape(lt, lu, false, units), first, 0, 0, 0};
      return;
    }
    for (int k = lane; k < parts; k += WARP) {
      const int entries = min(r.chunk, length[first] - k * r.chunk);
      slice[s + k]      = {0, 0, (entries + WARP - 1) / WARP, Shape(5, 0, true, 1), order ? order[first] : first, 0, k, (int)id};
    }
    if (lane == 0) group[id] = make_int2((int)part, parts);
    id++;
    part += parts;
  });
}

// ------------------------------------------------------------------------------------------------ columns and values

template <class I> __global__ void measure(View<I> v, int count, Slice *slice, const int *order, int chunk, bool narrow, int64_t *values, int64_t *indices)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= count) {
    if (s == count && lane == 0) values[s] = indices[s] = 0;
    return;
  }
  Slice self  = slice[s];
  int   least = INT_MAX, most = -1, tail = WARP, start = 0;
  bool  runs = narrow && LogT(self.shape) == 5, line = runs;
  entries(v, self, order, chunk, [&](int k, bool own, int entry, int64_t start_of_row) {
    const int col = own ? v.col(start_of_row, entry) : -1;
    if (own) {
      least = min(least, col);
      most  = max(most, col);
    }
    if (runs) {
      const int first = __shfl_sync(ALL, col, 0);
      tail            = __popc(__ballot_sync(ALL, own)); // at the end, the lanes of the last step
      runs            = __all_sync(ALL, !own || col - lane == first);
      if (k == 0) start = first;
      line = line && first == start + k * WARP;
    }
  });
  least = __reduce_min_sync(ALL, least);
  most  = __reduce_max_sync(ALL, most);
  if (lane) return;
  const int steps = self.steps << LogU(self.shape);
  const int mode  = runs ? (line ? LINE : RUNS) : narrow && most >= 0 && most - least < (int)NO_COLUMN ? NARROW : WIDE;
  slice[s].base   = mode == NARROW ? least : mode == LINE ? start : 0;
  slice[s].shape  = self.shape | mode << 5 | (runs ? tail << 17 : 0);
  values[s]       = steps;
  indices[s]      = mode == LINE ? 0 : mode == RUNS ? (steps + 7) / 8 : (int64_t)steps * (mode == NARROW ? 2 : 4);
}

template <class I>
__global__ void write_columns(View<I> v, int count, Slice *slice, const int *order, int chunk, const int64_t *values, const int64_t *indices, char *index)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= count) return;
  const Slice self = slice[s];
  const int   mode = ModeOf(self.shape);
  char       *p    = index + indices[s] * 32;
  entries(v, self, order, chunk, [&](int k, bool own, int entry, int64_t start_of_row) {
    const int col = own ? v.col(start_of_row, entry) : -1;
    if (mode == WIDE)
      ((int *)p)[k * WARP + lane] = col;
    else if (mode == NARROW)
      ((unsigned short *)p)[k * WARP + lane] = (unsigned short)(own ? col - self.base : NO_COLUMN);
    else if (mode == RUNS && lane == 0)
      ((int *)p)[k] = col;
  });
  if (lane == 0) {
    slice[s].value = (unsigned)values[s];
    slice[s].index = (unsigned)indices[s];
  }
}

constexpr int FILL_BLOCK = Tuning::FILL_BLOCK;

template <class V, class I> __global__ void fill_entries(View<I> v, Args args, int chunk, const int *value_index, const Scalar *a, V *value)
{
  constexpr int BATCH = Tuning::FILL_BATCH;
  const int     s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= args.slices) return;
  const Slice self = args.slice[s];
  const int   lt = LogT(self.shape), U = 1 << LogU(self.shape);
  V          *p = value + (int64_t)self.value * WARP + lane;
  for (int u = 0; u < U; u++) {
    const LaneEntries e = lane_entries(v, self, args.order, chunk, u);
    for (int k0 = 0; k0 < self.steps; k0 += BATCH) {
      Scalar t[BATCH];
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        const int     entry = e.entry + ((k0 + b) << lt);
        const int64_t at    = e.start + entry;
        t[b]                = k0 + b < self.steps && entry < e.end ? a[value_index ? value_index[at] : at] : Num::zero();
      }
      Issue();
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        if (k0 + b < self.steps) p[((int64_t)(k0 + b) * U + u) * WARP] = Convert<V>(t[b]);
      }
    }
  }
}

template <class V, int BS, class I> __global__ void fill_nodes(View<I> v, Args args, int chunk, const int *value_index, const Scalar *a, V *value)
{
  constexpr int STRIDE = BS | 1;
  const int     s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= args.slices) return;
  const Slice       self   = args.slice[s];
  V                *p      = value + (int64_t)self.value * (BS * BS * WARP) + lane;
  Scalar           *shared = (Scalar *)spmv_shared + threadIdx.x / WARP * (WARP * BS * STRIDE);
  const LaneEntries e      = lane_entries(v, self, args.order, chunk, 0);
  for (int k = 0; k < self.steps; k++) {
    const int  entry = e.entry + (k << LogT(self.shape));
    const bool own   = entry < e.end;
    Gather<(BS + 3) / 4, BS, true>(a, value_index, e.start + (int64_t)entry * BS, e.len * BS, own && e.start >= 0 ? BS : 0, STRIDE, shared);
#pragma unroll 1
    for (int r = 0; r < BS && own && e.start < 0; r++) ReadListed<BS>(v, e.start, entry, r, a, value_index, shared + (r * WARP + lane) * STRIDE);
#pragma unroll
    for (int i = 0; i < BS * BS; i++)
      p[((int64_t)k * BS * BS + i) * WARP] = ConvertIn<V, BS>(own ? shared[(i / BS * WARP + lane) * STRIDE + i % BS] : Num::zero());
  }
}

// A slice with a boundary unit is skipped as a whole
__global__ void mark_boundary(Args args, const unsigned *boundary, unsigned *skipped, Slice *slice)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= args.slices) return;
  const Slice self  = slice[s];
  const int   units = Units(self.shape);
  auto        unit  = [&](int r) { return IsPart(self.shape) || !args.order ? self.first + r : args.order[self.first + r]; };
  bool        skip  = false;
  for (int r = lane; r < units; r += WARP) skip = skip || boundary[unit(r) / WARP] >> unit(r) % WARP & 1;
  if (!__any_sync(ALL, skip)) return;
  for (int r = lane; r < units; r += WARP) atomicOr(skipped + unit(r) / WARP, 1u << unit(r) % WARP);
  if (lane == 0) slice[s].shape |= BOUNDARY;
}

// ------------------------------------------------------------------------------------------------ store

struct Slices : _n_SpMVCudaStore {
  int             bs = 1, chunk = 0, groups = 0, places = 0; // places: units that are in slices
  bool            compact = false;                           // empty units are in no slice
  int64_t         steps   = 0;
  int             many    = 0; // some slices have several units per lane
  Args            args    = {};
  Kernel          kernel[5]; // [1]: for MultFused(), [2], [3]: for MultDot() and MultDots(), [4]: for each column; loaded when they are needed
  ColumnKernels   columns;
  EntriesByRows   by_rows;
  Array<Slice>    slice;
  Array<int>      order, unit;
  Array<int2>     group;
  Array<Scalar>   partial;
  Array<char>     value, index;
  Array<unsigned> arrived;

  cudaError_t Sort(const SpMVCudaCSR &, const Survey &, const SliceRules &, cudaStream_t);
  cudaError_t Form(const SpMVCudaCSR &, const SliceRules &, cudaStream_t);
  cudaError_t IndexColumns(const SpMVCudaCSR &, const SliceRules &, cudaStream_t);

  template <class V, int BS, bool MANY = false> cudaError_t Take()
  {
    kernel[0].Choose((const void *)slices<V, BS, MANY, false, NoEpilogue>);
    kernel[1].Choose((const void *)slices<V, BS, MANY, true, NoEpilogue>);
    kernel[4].Choose((const void *)slices_each<V, BS, MANY>);
    if constexpr (std::is_same_v<V, Scalar>) {
      kernel[2].Choose((const void *)slices<V, BS, MANY, false, DotEpilogue>);
      kernel[3].Choose((const void *)slices<V, BS, MANY, false, DotsEpilogue>);
    }
    return kernel[0].Load();
  }
  template <class V> cudaError_t Pick(V)
  {
    switch (bs) {
    case 1: return many ? Take<V, 1, true>() : Take<V, 1>();
    case 2: return Take<V, 2>();
    case 3: return Take<V, 3>();
    case 4: return Take<V, 4>();
    case 5: return Take<V, 5>();
    default: return Take<V, 6>();
    }
  }

  template <class V, int BS, class I> void FillNodes(const View<I> &v, const SpMVCudaCSR &csr, cudaStream_t stream) const
  {
    fill_nodes<V, BS><<<Blocks((int64_t)args.slices * WARP, FILL_BLOCK), FILL_BLOCK, (size_t)FILL_BLOCK * BS *(BS | 1) * sizeof(Scalar), stream>>>(
        v, args, chunk, value_index, (const Scalar *)csr.a, (V *)(char *)value);
  }

  cudaError_t Fill(const SpMVCudaCSR &csr, cudaStream_t stream) override
  {
    if (!args.slices) return cudaSuccess;
    return WithView(csr, nodes, [&](auto v) {
      return WithStored(single, [&](auto type) {
        using V = decltype(type);
        ForgetErrors();
        switch (bs) {
        case 1:
          fill_entries<<<Blocks((int64_t)args.slices * WARP, FILL_BLOCK), FILL_BLOCK, 0, stream>>>(v, args, chunk, value_index, (const Scalar *)csr.a,
                                                                                                   (V *)(char *)value);
          break;
        case 2: FillNodes<V, 2>(v, csr, stream); break;
        case 3: FillNodes<V, 3>(v, csr, stream); break;
        case 4: FillNodes<V, 4>(v, csr, stream); break;
        case 5: FillNodes<V, 5>(v, csr, stream); break;
        default: FillNodes<V, 6>(v, csr, stream);
        }
        return cudaGetLastError();
      });
    });
  }

  cudaError_t Mult(SpMVCudaForm form, const Operands &v, cudaStream_t stream) override
  {
    if (!compact) return Launch(args, form, v, stream);
    SPMV_TRY(SetRows(v, stream));
    return Launch(args, form, {v.x, v.y, v.y}, stream);
  }
  // compact: first all rows of y are set at the speed of a copy, then the few nonempty rows are added
  cudaError_t SetRows(const Operands &v, cudaStream_t stream) const
  {
    const size_t bytes = (size_t)m * sizeof(Scalar);
    return !v.z ? cudaMemsetAsync(v.y, 0, bytes, stream) : v.z == v.y ? cudaSuccess : cudaMemcpyAsync(v.y, v.z, bytes, cudaMemcpyDeviceToDevice, stream);
  }
  // Node blocks and single entries are multiplied in one pass, see slicescolumns.cu and entriescolumns.cu. The few nonempty rows of a compact matrix, such as
  // an off-diagonal block, are multiplied by one kernel that reads them once per column; matrices with long node rows, which need partial sums, by several
  cudaError_t MultColumns(SpMVCudaForm form, const Operands &v, const Columns &c, cudaStream_t stream) override
  {
    const unsigned blocks = Blocks((int64_t)args.slices * WARP, BLOCK);
    if (args.slices && compact && !groups && c.count <= INT_MAX / blocks) {
      for (int64_t q = 0; q < c.count; q++) SPMV_TRY(SetRows(v.From(q, c), stream));
      return kernel[4].Launch(blocks * (unsigned)c.count, BLOCK, EachColumn{args, {c.ldx, c.ldy, c.ldy, c.count}, blocks}, form, {v.x, v.y, v.y}, stream);
    }
    if (!args.slices || compact ||
        (bs == 1 ? unit || !by_rows.Pays(*this, c.count) || !by_rows.Reserve(*this, args.order, partial.Size(), stream) : groups > 0))
      return _n_SpMVCudaStore::MultColumns(form, v, c, stream);
    if (bs == 1) return by_rows.Mult(*this, args, form, v, c, stream);
    return ForPanels(*this, form, args.slices, bs, v, c, stream, [&](unsigned grid, const Operands &now, const Panels &p) {
      return columns.Get(p.width, [this](int w) { return SlicesColumns(single, bs, w); })
          .Launch(grid, ColumnsBlock(bs), WithPanels<Args>{args, p}, form, now, stream);
    });
  }
  cudaError_t MultFused(SpMVCudaForm form, const Operands &v, const Scalar *halo, bool early, cudaStream_t stream) override
  {
    if (compact) return Mult(form, v, stream);
    Args use = args;
    if (halo) use.offdiag = fused->With(halo);
    return Launch(use, form, v, stream, true, early ? Begin::EARLY : Begin::AFTER);
  }
  bool CanFuseOffdiagonal() const override
  {
    return !compact;
  }
  cudaError_t MultInterior(SpMVCudaForm form, const Operands &v, cudaStream_t stream) override
  {
    Args use     = args;
    use.interior = true;
    return Launch(use, form, v, stream);
  }
  unsigned DotWarps() const override // not if the last warp to arrive adds the parts of a unit: the order of the sums would vary
  {
    return single || compact || groups || unit ? 0 : Blocks((int64_t)args.slices * WARP, BLOCK) * (BLOCK / WARP);
  }
  cudaError_t MultDot(const Operands &v, const Dot &dot, cudaStream_t stream) override
  {
    return kernel[2].Launch(DotWarps() / (BLOCK / WARP), BLOCK, WithDot<Args, Dot>{args, dot}, SPMVCUDA_MULT, v, stream);
  }
  cudaError_t MultDots(const Operands &v, const Dots &dots, cudaStream_t stream) override
  {
    return kernel[3].Launch(DotWarps() / (BLOCK / WARP), BLOCK, WithDot<Args, Dots>{args, dots}, SPMVCUDA_MULT, v, stream);
  }
  bool SkipsEmpty() const override
  {
    return compact;
  }
  int UnitSize() const override
  {
    return compact ? 0 : bs;
  }
  cudaError_t SetBoundary(const unsigned *boundary, unsigned *skipped, cudaStream_t stream) override
  {
    SPMV_LAUNCH((int64_t)args.slices * WARP, 256, stream, mark_boundary, args, boundary, skipped, slice);
    return cudaSuccess;
  }
  cudaError_t Launch(const Args &use, SpMVCudaForm form, const Operands &v, cudaStream_t stream, bool after_exchange = false, Begin begin = Begin::EARLY)
  {
    if (!args.slices) return cudaSuccess;
    return kernel[after_exchange].Launch(Blocks((int64_t)args.slices * WARP, BLOCK), BLOCK, use, form, v, stream, 0, begin);
  }

  void Stats(SpMVStats *s) const override
  {
    s->stored    = steps * WARP * bs * bs;
    s->slices    = args.slices;
    s->long_rows = (PetscInt64)groups * bs;
    s->bytes =
        slice.Bytes() + order.Bytes() + unit.Bytes() + group.Bytes() + value.Bytes() + partial.Bytes() + index.Bytes() + arrived.Bytes() + by_rows.Bytes();
    s->node = bs;
  }

  cudaError_t Visit(SpMVVisitor entry, void *ctx) const override
  {
    std::vector<Slice> S;
    std::vector<int>   o;
    std::vector<char>  v, ix;
    SPMV_TRY(slice.Read(S));
    SPMV_TRY(order.Read(o));
    SPMV_TRY(value.Read(v));
    SPMV_TRY(index.Read(ix));
    return WithStored(single, [&](auto type) {
      const auto *stored = (const decltype(type) *)v.data();
      for (const Slice &self : S) {
        const int   U = 1 << LogU(self.shape), alone = WARP >> LogT(self.shape), mode = ModeOf(self.shape), count = self.steps * U;
        const char *p = ix.data() + (int64_t)self.index * 32;
        for (int k = 0; k < count; k++) {
          for (int l = 0; l < WARP; l++) {
            int            col;
            unsigned short near;
            if (mode == WIDE)
              memcpy(&col, p + ((int64_t)k * WARP + l) * 4, 4);
            else if (mode == NARROW) {
              memcpy(&near, p + ((int64_t)k * WARP + l) * 2, 2);
              col = near == NO_COLUMN ? -1 : self.base + near;
            } else {
              if (mode == RUNS)
                memcpy(&col, p + (int64_t)k * 4, 4);
              else
                col = self.base + k * WARP;
              col = k < count - 1 || l < Tail(self.shape) ? col + l : -1;
            }
            if (col < 0) continue;
            const int r    = U > 1 ? k % U * WARP + l : l % alone;
            const int unit = IsPart(self.shape) ? self.first : o.empty() ? self.first + r : o[self.first + r];
            for (int e = 0; e < bs * bs; e++) {
              const auto &a = stored[(((int64_t)self.value + k) * bs * bs + e) * WARP + l];
              if (bs == 1 || !Traits<decltype(type)>::is_absent(a)) Show(entry, ctx, (int64_t)unit * bs + e / bs, (int64_t)col * bs + e % bs, a);
            }
          }
        }
      }
      return cudaSuccess;
    });
  }
};

// Puts the units in the order in which they form slices, without the empty ones if `compact`
cudaError_t Slices::Sort(const SpMVCudaCSR &csr, const Survey &survey, const SliceRules &rules, cudaStream_t stream)
{
  const int  units = (int)(csr.m / bs);
  const bool sort  = rules.by_column || rules.sigma != 1;
  if (compact || sort) SPMV_TRY(order.Alloc(places, stream));
  if (compact) {
    Scratch<int64_t> flag(stream);
    SPMV_TRY(flag.Alloc((size_t)units + 1));
    SPMV_TRY(WithView(csr, nodes, [&](auto v) {
      SPMV_LAUNCH((int64_t)units + 1, 256, stream, flag_nonempty, v, flag);
      return cudaSuccess;
    }));
    SPMV_TRY(ExclusiveSum(flag, (int64_t)units + 1, stream));
    SPMV_LAUNCH(units, 256, stream, list_nonempty, units, flag, order);
  } else if (sort)
    SPMV_LAUNCH(places, 256, stream, iota, places, order);
  if (!sort || !places) return cudaSuccess;

  Scratch<uint64_t> key(stream);
  const int         sigma = rules.sigma ? rules.sigma : units, bits = BitsFor(survey.longest);
  SPMV_TRY(key.Alloc(places));
  SPMV_TRY(WithView(csr, nodes, [&](auto v) {
    SPMV_LAUNCH(places, 256, stream, sort_keys, v, places, sigma, rules.by_column, survey.longest, bits, order, key);
    return cudaSuccess;
  }));
  return SortPairs(key, order, places, PetscMin(64, (rules.by_column ? 32 : 0) + bits + BitsFor(places / sigma)), stream);
}

cudaError_t Slices::Form(const SpMVCudaCSR &csr, const SliceRules &rules, cudaStream_t stream)
{
  const int        windows = (places + WINDOW - 1) / WINDOW;
  Scratch<int>     length(stream);
  Scratch<int>     several(stream);
  Scratch<int64_t> counts(stream);
  int64_t          end[3]; // the ends of the counts of slices, long units and parts in the prefix sums
  SPMV_TRY(length.Alloc(places));
  SPMV_TRY(counts.Alloc(5 * (size_t)windows + 1));
  SPMV_TRY(several.Alloc(1));
  SPMV_TRY(cudaMemsetAsync(several, 0, sizeof(int), stream));
  SPMV_TRY(WithView(csr, nodes, [&](auto v) {
    SPMV_LAUNCH(places, 256, stream, lengths, v, places, order, length);
    return cudaSuccess;
  }));
  SPMV_LAUNCH((int64_t)(windows + 1) * WARP, 64, stream, count_slices, places, windows, length, bs, rules, counts, several);
  SPMV_TRY(ExclusiveSum(counts, 5 * (int64_t)windows + 1, stream));
  for (int k = 0; k < 3; k++)
    SPMV_TRY(cudaMemcpyAsync(end + k, (int64_t *)counts + (k + 3) * (int64_t)windows, sizeof(int64_t), cudaMemcpyDeviceToHost, stream));
  SPMV_TRY(Fetch(&many, (int *)several, 1, stream));
  const int64_t parts = end[2] - end[1];
  groups              = (int)(end[1] - end[0]);
  if (end[0] >= INT_MAX || parts >= INT_MAX) return cudaErrorNotSupported;
  args.slices = (int)end[0];
  SPMV_TRY(slice.Alloc(end[0], stream));
  if (groups) {
    SPMV_TRY(group.Alloc(groups, stream));
    SPMV_TRY(arrived.Alloc(groups, stream));
    SPMV_TRY(arrived.Zero(stream));
    SPMV_TRY(partial.Alloc((size_t)parts * bs, stream));
  }
  SPMV_LAUNCH((int64_t)windows * WARP, 64, stream, write_slices, places, windows, length, order, bs, rules, counts, slice, group);
  return cudaSuccess;
}

cudaError_t Slices::IndexColumns(const SpMVCudaCSR &csr, const SliceRules &rules, cudaStream_t stream)
{
  const int64_t    count = args.slices;
  Scratch<int64_t> values(stream), indices(stream);
  int64_t          pieces;
  SPMV_TRY(values.Alloc(count + 1));
  SPMV_TRY(indices.Alloc(count + 1));
  SPMV_TRY(WithView(csr, nodes, [&](auto v) {
    SPMV_LAUNCH((count + 1) * WARP, 256, stream, measure, v, args.slices, slice, order, rules.chunk, rules.narrow, values, indices);
    return cudaSuccess;
  }));
  SPMV_TRY(ExclusiveSum(values, count + 1, stream));
  SPMV_TRY(ExclusiveSum(indices, count + 1, stream));
  SPMV_TRY(Fetch(&steps, (int64_t *)values + count, 1, stream));
  SPMV_TRY(Fetch(&pieces, (int64_t *)indices + count, 1, stream));
  if (steps >= UINT_MAX || pieces >= UINT_MAX) return cudaErrorNotSupported;
  SPMV_TRY(index.Alloc(pieces * 32, stream));
  SPMV_TRY(index.Zero(stream)); // slices begin at multiples of 32 bytes
  return WithView(csr, nodes, [&](auto v) {
    SPMV_LAUNCH(count * WARP, 256, stream, write_columns, v, args.slices, slice, order, rules.chunk, values, indices, index);
    return cudaSuccess;
  });
}

} // namespace

cudaError_t LoadSlices()
{
  return Load((const void *)measure<PetscInt>);
}

cudaError_t SlicesCreate(const SpMVCudaCSR &csr, const Nodes &nodes, bool single, const Survey &survey, SliceRules rules, const SpMVNames &names,
                         Array<int> *unit, cudaStream_t stream, _n_SpMVCudaStore **store)
{
  const int bs = nodes.bs, units = (int)(csr.m / bs);
  if (rules.threads && survey.longest / rules.threads >= INT_MAX / WARP) return cudaErrorNotSupported; // entries of a slice are counted in 32 bits
  Slices *s = new (std::nothrow) Slices;
  if (!s) return cudaErrorMemoryAllocation;
  *store     = s;
  s->nodes   = nodes;
  s->bs      = bs;
  s->single  = single;
  s->names   = names;
  s->chunk   = rules.chunk; // a multiple of WARP
  s->compact = !unit && survey.empty > units / 2;
  s->places  = s->compact ? units - survey.empty : units;
  if (unit) s->unit.Swap(*unit);
  SPMV_TRY(s->Sort(csr, survey, rules, stream));
  SPMV_TRY(s->Form(csr, rules, stream));
  SPMV_TRY(s->IndexColumns(csr, rules, stream));
  SPMV_TRY(s->value.Alloc((size_t)s->steps * WARP * bs * bs * StoredSize(single), stream));
  SPMV_TRY(s->value.Zero(stream));
  SPMV_TRY(WithStored(single, [&](auto type) { return s->Pick(type); }));
  uint64_t policy;
  SPMV_TRY(ChoosePolicy(s->value.Bytes(), (size_t)(csr.m + csr.n) * sizeof(Scalar), stream, &policy));
  s->args = {s->args.slices, s->slice, s->order, s->group, (char *)s->value, s->index, s->partial, s->arrived, s->unit, policy, false, {}};
  return cudaStreamSynchronize(stream);
}

} // namespace spmv
