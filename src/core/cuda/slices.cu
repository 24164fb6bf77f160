/*
  Slices of sorted rows, for every pattern that does not lie on diagonals.

  One warp multiplies one slice. By the lengths of its units (rows, or node rows of dense bs x bs blocks) a slice holds
    - 64, 128 or 256 short ones, 2, 4 or 8 of them a lane, so that a warp still has eight vector loads to issue at once;
    - 32 / T of them with T = 1, 2, ..., 32 lanes each;
    - a part of one long unit: the parts leave partial sums, and the warp that arrives last adds them, in their order.
  Step k of a slice is 32 blocks, stored value by value, 32 lanes side by side; units that are shorter than their slice have marked
  entries that read no x. Columns are 32-bit numbers, or 16-bit distances from the slice's least column, or, where each step of a
  one-unit slice is a run of columns, one number a step, or, where all of it is one run, none. Slices with much work come first, so that they do not end last.
*/
#include "stores.cuh"

namespace spmv {
namespace {

constexpr int BLOCK = Tuning::SLICES_BLOCK;

enum Mode { WIDE, NARROW, RUNS, LINE };

constexpr int      WINDOW = Tuning::SLICES_WINDOW;
constexpr int      MAX_LU = 3; // 2^3 units a lane
constexpr unsigned NOBODY = 0xffff;

struct __align__(32) Slice
{
  unsigned value; // first step
  unsigned index; // in pieces of 32 bytes
  int      steps; // of a unit
  unsigned shape; // see below
  int      first; // place of the first unit; of a part: its unit
  int      base;  // column that NARROW counts from, or the first one of LINE
  int      part;  // of a part: where its partial sum goes
  int      group; // of a part: which long unit
};
// shape: bits 0-2 log2 T, 3-4 log2 units a lane, 5-6 mode, 7 part, 8-16 units, 17-22 lanes of the last step (RUNS, LINE), 23 apart
__host__ __device__ inline unsigned Shape(int lt, int lu, bool part, int units)
{
  return (unsigned)(lt | lu << 3 | part << 7 | units << 8);
}
__host__ __device__ inline int LogT(unsigned s)
{
  return s & 7;
}
__host__ __device__ inline int LogU(unsigned s)
{
  return s >> 3 & 3;
}
__host__ __device__ inline int ModeOf(unsigned s)
{
  return s >> 5 & 3;
}
__host__ __device__ inline bool IsPart(unsigned s)
{
  return s >> 7 & 1;
}
__host__ __device__ inline int Units(unsigned s)
{
  return s >> 8 & 511;
}
__host__ __device__ inline int Tail(unsigned s)
{
  return s >> 17 & 63;
}

constexpr unsigned BOUNDARY = 1u << 23; // its rows are multiplied apart from the others, where that is asked for

struct Args {
  int          slices;
  const Slice *slice;
  const int   *order; // unit at each place, NULL: the natural order
  const int2  *group; // first partial sum of each long unit, parts
  const void  *value; // as Single or Scalar
  const char  *index;
  Scalar      *partial;
  unsigned    *arrived;
  const int   *unit;     // which of y's each unit is, NULL: the same
  bool         interior; // skips the slices of boundary rows
  Offdiagonal  offdiag;  // of MultFused()
};

// ------------------------------------------------------------------------------------------------ product

// V: what values are stored as
template <class V, int BS, bool FUSED, int U, int MODE>
__device__ __forceinline__ void product(const Args &g, const Slice &c, int lane, bool conjugate, const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  constexpr int BATCH = BS == 1 ? 8 : BS == 2 ? 4 : BS == 3 ? 2 : 1; // steps whose loads are issued before the first is used
  const int     steps = c.steps * U, units = Units(c.shape);
  const bool    part  = U == 1 && IsPart(c.shape);
  const V      *value = (const V *)g.value + (int64_t)c.value * (WARP * BS * BS) + lane;
  const char   *index = g.index + (int64_t)c.index * 32;
  Scalar        d[U * BS];
  int           unit[U];

#pragma unroll
  for (int u = 0; u < U; u++) {
    const int r = u * WARP + lane;
    unit[u]     = part || r >= units ? -1 : g.order ? __ldg(g.order + c.first + r) : c.first + r;
#pragma unroll
    for (int e = 0; e < BS; e++) d[u * BS + e] = Num::zero();
  }
  // FULL: no step is past the end, so that nothing stands between the loads
  auto batch = [&](int k0, auto full) {
    constexpr bool FULL = decltype(full)::value;
    V              v[BATCH][BS * BS];
    Scalar         xs[BATCH][BS];
    int            col[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const int  k  = k0 + b;
      const bool in = FULL || k < steps;
      if (MODE == WIDE) col[b] = in ? __ldcs((const int *)index + k * WARP + lane) : -1;
      if (MODE == NARROW) col[b] = in ? __ldcs((const unsigned short *)index + k * WARP + lane) : (int)NOBODY;
      if (MODE == LINE) col[b] = in && (k < steps - 1 || lane < Tail(c.shape)) ? c.base + k * WARP + lane : -1;
      if (MODE == RUNS) col[b] = in && (k < steps - 1 || lane < Tail(c.shape)) ? __ldg((const int *)index + k) + lane : -1;
#pragma unroll
      for (int e = 0; e < BS * BS; e++) v[b][e] = in ? Traits<V>::stream(value + ((int64_t)k * (BS * BS) + e) * WARP) : Traits<V>::zero();
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const bool    own = MODE == NARROW ? col[b] != (int)NOBODY : col[b] >= 0;
      const Scalar *q   = x + (int64_t)(MODE == NARROW ? c.base + col[b] : col[b]) * BS;
#pragma unroll
      for (int f = 0; f < BS; f++) xs[b][f] = own ? Num::keep(q + f) : Num::zero();
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) { // padding is 0 times 0
#pragma unroll
      for (int f = 0; f < BS; f++) {
#pragma unroll
        for (int e = 0; e < BS; e++) {
          const Scalar a    = Convert<Scalar>(v[b][e * BS + f]);
          d[b % U * BS + e] = Num::fma(conjugate ? Num::conj(a) : a, xs[b][f], d[b % U * BS + e]);
        }
      }
    }
  };
  int k0 = 0;
  for (; k0 + BATCH <= steps; k0 += BATCH) batch(k0, std::true_type{});
  if (BATCH > 1 && k0 < steps) batch(k0, std::false_type{});
  if (U == 1) {
    const int alone = WARP >> LogT(c.shape);
    for (int by = WARP / 2; by >= alone; by >>= 1) {
#pragma unroll
      for (int e = 0; e < BS; e++) d[e] = Num::add(d[e], Num::down(d[e], by));
    }
  }
  if (part) {
    const int2 group = __ldg(g.group + c.group);
    Scalar    *sum   = g.partial + (int64_t)group.x * BS;
    int        last  = 0;
    if (lane == 0) {
#pragma unroll
      for (int e = 0; e < BS; e++) sum[(int64_t)c.part * BS + e] = d[e];
      last = ArriveLast(g.arrived + c.group, (unsigned)group.y);
    }
    if (!__shfl_sync(ALL, last, 0)) return;
    AcquireArrived();
    __syncwarp();
#pragma unroll
    for (int e = 0; e < BS; e++) {
      d[e] = Num::zero();
      for (int k = lane; k < group.y; k += WARP) d[e] = Num::add(d[e], Num::fresh(sum + (int64_t)k * BS + e));
      for (int by = WARP / 2; by; by >>= 1) d[e] = Num::add(d[e], Num::down(d[e], by));
    }
    if (lane == 0) unit[0] = c.first;
  }
#pragma unroll
  for (int u = 0; u < U; u++) {
    if (unit[u] < 0) continue;
    if (FUSED && g.offdiag.halo) g.offdiag.Add<BS>(__ldg(g.offdiag.slot + unit[u] / WARP), unit[u], d + u * BS);
    const int64_t r = (int64_t)(g.unit ? __ldg(g.unit + unit[u]) : unit[u]) * BS;
#pragma unroll
    for (int e = 0; e < BS; e++) y[r + e] = z ? Num::add(z[r + e], d[u * BS + e]) : d[u * BS + e];
  }
}

template <class V, int BS, bool FUSED>
__global__ void __launch_bounds__(BLOCK, 2) slices(Args g, bool conjugate, const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (FUSED) LetNextBegin();
  if (!FUSED || s == 0) AwaitPrevious(); // one warp, so that when all are done, what came before is, too
  if (s >= g.slices) return;
  const int4  a = __ldg((const int4 *)(g.slice + s)), b = __ldg((const int4 *)(g.slice + s) + 1);
  const Slice c    = {(unsigned)a.x, (unsigned)a.y, a.z, (unsigned)a.w, b.x, b.y, b.z, b.w};
  const int   mode = ModeOf(c.shape), lu = LogU(c.shape);
  if (!FUSED && g.interior && (c.shape & BOUNDARY)) return;
  if (BS == 1 && lu) {
    if (mode == WIDE) {
      if (lu == 1)
        product<V, 1, FUSED, 2, WIDE>(g, c, lane, conjugate, x, z, y);
      else if (lu == 2)
        product<V, 1, FUSED, 4, WIDE>(g, c, lane, conjugate, x, z, y);
      else
        product<V, 1, FUSED, 8, WIDE>(g, c, lane, conjugate, x, z, y);
    } else {
      if (lu == 1)
        product<V, 1, FUSED, 2, NARROW>(g, c, lane, conjugate, x, z, y);
      else if (lu == 2)
        product<V, 1, FUSED, 4, NARROW>(g, c, lane, conjugate, x, z, y);
      else
        product<V, 1, FUSED, 8, NARROW>(g, c, lane, conjugate, x, z, y);
    }
  } else if (mode == WIDE)
    product<V, BS, FUSED, 1, WIDE>(g, c, lane, conjugate, x, z, y);
  else if (mode == NARROW)
    product<V, BS, FUSED, 1, NARROW>(g, c, lane, conjugate, x, z, y);
  else if (mode == LINE)
    product<V, BS, FUSED, 1, LINE>(g, c, lane, conjugate, x, z, y);
  else
    product<V, BS, FUSED, 1, RUNS>(g, c, lane, conjugate, x, z, y);
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

__device__ int longest(const int *length, int first, int count)
{
  int w = 0;
  for (int p = first; p < first + count; p++) w = max(w, length[p]);
  return w;
}

// f(first place, units, log2 U, log2 T, steps, parts) for the slices of places first to last - 1
template <class F> __device__ void form(const int *length, int first, int last, int bs, const SliceRules &r, F f)
{
  while (first < last) {
    const int here = length[first], left = last - first;
    int       lu = bs == 1 && !r.threads ? MAX_LU : 0, lt = 0, w = 0, units;
    for (; lu; lu--) { // as many units a lane as eight vectors hold
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

__device__ int rank_of(int lu, int lt, int steps) // 0: first to run
{
  return lt == 5 ? 0 : steps << lu > 8 ? 1 : 2;
}

// counts: slices of rank 0, 1 and 2, long units, parts, of each window
__global__ void count_slices(int places, int windows, const int *length, int bs, SliceRules r, int64_t *counts)
{
  const int w = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (w > windows) return;
  if (w == windows) {
    counts[5 * (int64_t)windows] = 0;
    return;
  }
  int64_t n[3] = {0, 0, 0}, groups = 0, all = 0;
  form(length, w * WINDOW, min(places, (w + 1) * WINDOW), bs, r, [&](int, int, int lu, int lt, int steps, int parts) {
    const int rank = rank_of(lu, lt, steps), add = parts ? parts : 1;
    n[0] += rank == 0 ? add : 0;
    n[1] += rank == 1 ? add : 0;
    n[2] += rank == 2 ? add : 0;
    groups += parts > 0;
    all += parts;
  });
  for (int c = 0; c < 3; c++) counts[(int64_t)c * windows + w] = n[c];
  counts[(int64_t)3 * windows + w] = groups;
  counts[(int64_t)4 * windows + w] = all;
}

// counts are summed by now
__global__ void write_slices(int places, int windows, const int *length, const int *order, int bs, SliceRules r, const int64_t *counts, Slice *slice,
                             int2 *group)
{
  const int w = (int)(blockIdx.x * blockDim.x + threadIdx.x);
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
      slice[s] = {0, 0, steps, Shape(lt, lu, false, units), first, 0, 0, 0};
      return;
    }
    for (int k = 0; k < parts; k++) {
      const int entries = min(r.chunk, length[first] - k * r.chunk);
      slice[s + k]      = {0, 0, (entries + WARP - 1) / WARP, Shape(5, 0, true, 1), order ? order[first] : first, 0, k, (int)id};
    }
    group[id] = make_int2((int)part, parts);
    id++;
    part += parts;
  });
}

// ------------------------------------------------------------------------------------------------ columns and values

// f(step, own, position in the CSR's row of blocks, unit) for a lane's entries of a slice; all lanes take the same steps
template <class I, class F> __device__ void entries(const View<I> &v, const Slice &c, const int *order, int chunk, F f)
{
  const int lane = threadIdx.x % WARP, lt = LogT(c.shape), lu = LogU(c.shape), U = 1 << lu, alone = WARP >> lt;
  for (int u = 0; u < U; u++) {
    const int  r    = lu ? u * WARP + lane : lane % alone;
    const bool mine = r < Units(c.shape);
    const int  unit = !mine ? 0 : IsPart(c.shape) ? c.first : order ? order[c.first + r] : c.first + r;
    int        end = mine ? v.len(unit) : 0, q = lu ? 0 : lane / alone;
    if (IsPart(c.shape)) {
      q += c.part * chunk;
      end = min(end, (c.part + 1) * chunk);
    }
    for (int k = 0; k < c.steps; k++, q += 1 << lt) f(k * U + u, q < end, q, unit);
  }
}

template <class I> __global__ void measure(View<I> v, int count, Slice *slice, const int *order, int chunk, bool narrow, int64_t *values, int64_t *indices)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= count) {
    if (s == count && lane == 0) values[s] = indices[s] = 0;
    return;
  }
  Slice c     = slice[s];
  int   least = INT_MAX, most = -1, tail = WARP, start = 0;
  bool  runs = narrow && LogT(c.shape) == 5, line = runs;
  entries(v, c, order, chunk, [&](int k, bool own, int q, int unit) {
    const int col = own ? v.col(v.start(unit), q) : -1;
    if (own) {
      least = min(least, col);
      most  = max(most, col);
    }
    if (runs) {
      const int first = __shfl_sync(ALL, col, 0);
      tail            = __popc(__ballot_sync(ALL, own)); // ends as that of the last step
      runs            = __all_sync(ALL, !own || col - lane == first);
      if (k == 0) start = first;
      line = line && first == start + k * WARP;
    }
  });
  least = __reduce_min_sync(ALL, least);
  most  = __reduce_max_sync(ALL, most);
  if (lane) return;
  const int steps = c.steps << LogU(c.shape);
  const int mode  = runs ? (line ? LINE : RUNS) : narrow && most >= 0 && most - least < (int)NOBODY ? NARROW : WIDE;
  slice[s].base   = mode == NARROW ? least : mode == LINE ? start : 0;
  slice[s].shape  = c.shape | mode << 5 | (runs ? tail << 17 : 0);
  values[s]       = steps;
  indices[s]      = mode == LINE ? 0 : mode == RUNS ? (steps + 7) / 8 : (int64_t)steps * (mode == NARROW ? 2 : 4);
}

template <class I>
__global__ void write_columns(View<I> v, int count, Slice *slice, const int *order, int chunk, const int64_t *values, const int64_t *indices, char *index)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= count) return;
  const Slice c    = slice[s];
  const int   mode = ModeOf(c.shape);
  char       *p    = index + indices[s] * 32;
  entries(v, c, order, chunk, [&](int k, bool own, int q, int unit) {
    const int col = own ? v.col(v.start(unit), q) : -1;
    if (mode == WIDE)
      ((int *)p)[k * WARP + lane] = col;
    else if (mode == NARROW)
      ((unsigned short *)p)[k * WARP + lane] = (unsigned short)(own ? col - c.base : NOBODY);
    else if (mode == RUNS && lane == 0)
      ((int *)p)[k] = col;
  });
  if (lane == 0) {
    slice[s].value = (unsigned)values[s];
    slice[s].index = (unsigned)indices[s];
  }
}

template <class V, class I> __global__ void fill_entries(View<I> v, Args g, int chunk, const int *from, const Scalar *a, V *value)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= g.slices) return;
  const Slice c = g.slice[s];
  V          *p = value + (int64_t)c.value * WARP + lane;
  entries(v, c, g.order, chunk, [&](int k, bool own, int q, int unit) {
    const int64_t at     = v.start(unit) + q;
    p[(int64_t)k * WARP] = Convert<V>(own ? a[from ? from[at] : at] : Num::zero());
  });
}

constexpr int FILL_BLOCK = Tuning::FILL_BLOCK;

template <class V, class I> __global__ void fill_nodes(View<I> v, Args g, int chunk, const int *from, const Scalar *a, V *value)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP, bs = v.bs, stride = bs | 1;
  if (s >= g.slices) return;
  const Slice c      = g.slice[s];
  V          *p      = value + (int64_t)c.value * bs * bs * WARP + lane;
  Scalar     *shared = (Scalar *)spmv_shared + threadIdx.x / WARP * WARP * bs * stride;
  entries(v, c, g.order, chunk, [&](int k, bool own, int q, int unit) {
    const int64_t at = v.start(unit) + (int64_t)q * bs, width = (int64_t)v.len(unit) * bs;
    for (int e = 0; e < bs; e++) Gather<2>(a, from, at + e * width, own ? bs : 0, stride, shared + e * WARP * stride);
    for (int e = 0; e < bs; e++) {
      for (int f = 0; f < bs; f++) p[((int64_t)k * bs * bs + e * bs + f) * WARP] = Convert<V>(own ? shared[(e * WARP + lane) * stride + f] : Num::zero());
    }
  });
}

// A slice with a unit that is to be apart is so as a whole
__global__ void mark_boundary(Args g, const unsigned *want, unsigned *all, Slice *slice)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= g.slices) return;
  const Slice c     = slice[s];
  const int   units = Units(c.shape);
  auto        unit  = [&](int r) { return IsPart(c.shape) || !g.order ? c.first + r : g.order[c.first + r]; };
  bool        apart = false;
  for (int r = lane; r < units; r += WARP) apart = apart || want[unit(r) / WARP] >> unit(r) % WARP & 1;
  if (!__any_sync(ALL, apart)) return;
  for (int r = lane; r < units; r += WARP) atomicOr(all + unit(r) / WARP, 1u << unit(r) % WARP);
  if (lane == 0) slice[s].shape |= BOUNDARY;
}

struct Slices : _n_SpMVCudaStore {
  int             bs = 1, chunk = 0, groups = 0;
  bool            compact = false; // empty units are in no slice
  int64_t         steps   = 0;
  Args            g       = {};
  Kernel          kernel[2]; // [1]: of MultFused()
  Array<Slice>    slice;
  Array<int>      order, unit;
  Array<int2>     group;
  Array<Scalar>   partial;
  Array<char>     value, index;
  Array<unsigned> arrived;

  template <class V> cudaError_t Pick(V)
  {
    const void *all[][2] = {
        {(const void *)slices<V, 1, false>, (const void *)slices<V, 1, true>}, {(const void *)slices<V, 2, false>, (const void *)slices<V, 2, true>},
        {(const void *)slices<V, 3, false>, (const void *)slices<V, 3, true>}, {(const void *)slices<V, 4, false>, (const void *)slices<V, 4, true>},
        {(const void *)slices<V, 5, false>, (const void *)slices<V, 5, true>}, {(const void *)slices<V, 6, false>, (const void *)slices<V, 6, true>}};
    SPMV_TRY(kernel[0].Choose(all[bs - 1][0]));
    return kernel[1].Choose(all[bs - 1][1]);
  }

  cudaError_t Fill(const SpMVCudaCSR &csr, cudaStream_t stream) override
  {
    return WithView(csr, bs, [&](auto v) {
      return WithStored(single, [&](auto type) {
        using V             = decltype(type);
        const unsigned grid = Blocks((int64_t)g.slices * WARP, FILL_BLOCK);
        const size_t   size = bs > 1 ? (size_t)FILL_BLOCK * bs * (bs | 1) * sizeof(Scalar) : 0;
        V             *to   = (V *)(char *)value;
        if (!g.slices) return cudaSuccess;
        ForgetErrors();
        if (bs == 1)
          fill_entries<<<grid, FILL_BLOCK, 0, stream>>>(v, g, chunk, value_index, (const Scalar *)csr.a, to);
        else
          fill_nodes<<<grid, FILL_BLOCK, size, stream>>>(v, g, chunk, value_index, (const Scalar *)csr.a, to);
        return cudaGetLastError();
      });
    });
  }

  cudaError_t Mult(bool conjugate, const Operands &v, cudaStream_t stream) override
  {
    if (!compact) return Launch(g, conjugate, v, stream);
    // All rows of y first, at the speed of a copy, then the few that are not empty
    if (!v.z)
      SPMV_TRY(cudaMemsetAsync(v.y, 0, (size_t)m * sizeof(Scalar), stream));
    else if (v.z != v.y)
      SPMV_TRY(cudaMemcpyAsync(v.y, v.z, (size_t)m * sizeof(Scalar), cudaMemcpyDeviceToDevice, stream));
    return Launch(g, conjugate, {v.x, v.y, v.y}, stream);
  }
  cudaError_t MultFused(const Operands &v, const Scalar *halo, bool early, cudaStream_t stream) override
  {
    if (compact) return Mult(false, v, stream);
    Args args = g;
    if (halo) args.offdiag = fused->With(halo);
    return Launch(args, false, v, stream, true, early ? Begin::EARLY : Begin::AFTER);
  }
  bool CanFuseOffdiagonal() const override
  {
    return !compact;
  }
  cudaError_t MultInterior(const Operands &v, cudaStream_t stream) override
  {
    Args args     = g;
    args.interior = true;
    return Launch(args, false, v, stream);
  }
  bool SkipsEmpty() const override
  {
    return compact;
  }
  int UnitSize() const override
  {
    return compact ? 0 : bs;
  }
  cudaError_t SetBoundary(const unsigned *want, unsigned *all, cudaStream_t stream) override
  {
    SPMV_LAUNCH((int64_t)g.slices * WARP, 256, stream, mark_boundary, g, want, all, slice);
    return cudaSuccess;
  }
  cudaError_t Launch(const Args &args, bool conjugate, const Operands &v, cudaStream_t stream, bool after_exchange = false, Begin begin = Begin::EARLY) const
  {
    if (!g.slices) return cudaSuccess;
    return kernel[after_exchange].Launch(Blocks((int64_t)g.slices * WARP, BLOCK), BLOCK, args, conjugate, v, stream, 0, begin);
  }

  void Stats(SpMVStats *s) const override
  {
    s->stored    = steps * WARP * bs * bs;
    s->slices    = g.slices;
    s->long_rows = (PetscInt64)groups * bs;
    s->bytes     = slice.Bytes() + order.Bytes() + unit.Bytes() + group.Bytes() + value.Bytes() + partial.Bytes() + index.Bytes() + arrived.Bytes();
    s->node      = bs;
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
      for (const Slice &c : S) {
        const int   U = 1 << LogU(c.shape), alone = WARP >> LogT(c.shape), mode = ModeOf(c.shape), count = c.steps * U;
        const char *p = ix.data() + (int64_t)c.index * 32;
        for (int k = 0; k < count; k++) {
          for (int l = 0; l < WARP; l++) {
            int            col;
            unsigned short near;
            if (mode == WIDE)
              memcpy(&col, p + ((int64_t)k * WARP + l) * 4, 4);
            else if (mode == NARROW) {
              memcpy(&near, p + ((int64_t)k * WARP + l) * 2, 2);
              col = near == NOBODY ? -1 : c.base + near;
            } else {
              if (mode == RUNS)
                memcpy(&col, p + (int64_t)k * 4, 4);
              else
                col = c.base + k * WARP;
              col = k < count - 1 || l < Tail(c.shape) ? col + l : -1;
            }
            if (col < 0) continue;
            const int r    = U > 1 ? k % U * WARP + l : l % alone;
            const int unit = IsPart(c.shape) ? c.first : o.empty() ? c.first + r : o[c.first + r];
            for (int e = 0; e < bs * bs; e++)
              Show(entry, ctx, (int64_t)unit * bs + e / bs, (int64_t)col * bs + e % bs, stored[(((int64_t)c.value + k) * bs * bs + e) * WARP + l]);
          }
        }
      }
      return cudaSuccess;
    });
  }
};

} // namespace

cudaError_t SlicesCreate(const SpMVCudaCSR &csr, int bs, bool single, const Survey &survey, SliceRules r, const SpMVNames &names, Array<int> *unit,
                         cudaStream_t stream, _n_SpMVCudaStore **block)
{
  const int units = (int)(csr.m / bs);
  if (r.threads && survey.longest / r.threads >= INT_MAX / WARP) return cudaErrorNotSupported; // entries of a slice are counted in 32 bits
  Slices *b = new (std::nothrow) Slices;
  if (!b) return cudaErrorMemoryAllocation;
  *block     = b;
  b->bs      = bs;
  b->single  = single;
  b->names   = names;
  b->chunk   = r.chunk; // a multiple of WARP
  b->compact = !unit && survey.empty > units / 2;
  if (unit) b->unit.Swap(*unit);

  const int  places = b->compact ? units - survey.empty : units, windows = (places + WINDOW - 1) / WINDOW;
  const bool sort = r.by_column || r.sigma != 1;
  if (b->compact || sort) SPMV_TRY(b->order.Alloc(places));
  if (b->compact) {
    Array<int64_t> flag;
    SPMV_TRY(flag.Alloc((size_t)units + 1));
    SPMV_TRY(WithView(csr, bs, [&](auto v) {
      SPMV_LAUNCH((int64_t)units + 1, 256, stream, flag_nonempty, v, flag);
      return cudaSuccess;
    }));
    SPMV_TRY(ExclusiveSum(flag, (int64_t)units + 1, stream));
    SPMV_LAUNCH(units, 256, stream, list_nonempty, units, flag, b->order);
  } else if (sort)
    SPMV_LAUNCH(places, 256, stream, iota, places, b->order);
  if (sort && places) {
    Array<uint64_t> key;
    const int       sigma = r.sigma ? r.sigma : units, bits = BitsFor(survey.longest);
    SPMV_TRY(key.Alloc(places));
    SPMV_TRY(WithView(csr, bs, [&](auto v) {
      SPMV_LAUNCH(places, 256, stream, sort_keys, v, places, sigma, r.by_column, survey.longest, bits, b->order, key);
      return cudaSuccess;
    }));
    SPMV_TRY(SortPairs(key, b->order, places, PetscMin(64, (r.by_column ? 32 : 0) + bits + BitsFor(places / sigma)), stream));
  }

  Array<int>     length;
  Array<int64_t> counts, values, indices;
  SPMV_TRY(length.Alloc(places));
  SPMV_TRY(counts.Alloc(5 * (size_t)windows + 1));
  SPMV_TRY(WithView(csr, bs, [&](auto v) {
    SPMV_LAUNCH(places, 256, stream, lengths, v, places, b->order, length);
    return cudaSuccess;
  }));
  SPMV_LAUNCH(windows + 1, 64, stream, count_slices, places, windows, length, bs, r, counts);
  SPMV_TRY(ExclusiveSum(counts, 5 * (int64_t)windows + 1, stream));
  int64_t end[3];
  for (int c = 0; c < 3; c++)
    SPMV_TRY(cudaMemcpyAsync(end + c, (int64_t *)counts + (c + 3) * (int64_t)windows, sizeof(int64_t), cudaMemcpyDeviceToHost, stream));
  SPMV_TRY(cudaStreamSynchronize(stream));
  const int64_t parts = end[2] - end[1];
  b->groups           = (int)(end[1] - end[0]);
  if (end[0] >= INT_MAX || parts >= INT_MAX) return cudaErrorNotSupported;
  b->g.slices = (int)end[0];
  SPMV_TRY(b->slice.Alloc(end[0]));
  if (b->groups) {
    SPMV_TRY(b->group.Alloc(b->groups));
    SPMV_TRY(b->arrived.Alloc(b->groups));
    SPMV_TRY(b->arrived.Zero(stream));
    SPMV_TRY(b->partial.Alloc((size_t)parts * bs));
  }
  SPMV_LAUNCH(windows, 64, stream, write_slices, places, windows, length, b->order, bs, r, counts, b->slice, b->group);

  SPMV_TRY(values.Alloc(end[0] + 1));
  SPMV_TRY(indices.Alloc(end[0] + 1));
  SPMV_TRY(WithView(csr, bs, [&](auto v) {
    SPMV_LAUNCH((end[0] + 1) * WARP, 256, stream, measure, v, b->g.slices, b->slice, b->order, r.chunk, r.narrow, values, indices);
    return cudaSuccess;
  }));
  SPMV_TRY(ExclusiveSum(values, end[0] + 1, stream));
  SPMV_TRY(ExclusiveSum(indices, end[0] + 1, stream));
  int64_t pieces;
  SPMV_TRY(Fetch(&b->steps, (int64_t *)values + end[0], 1, stream));
  SPMV_TRY(Fetch(&pieces, (int64_t *)indices + end[0], 1, stream));
  if (b->steps >= UINT_MAX || pieces >= UINT_MAX) return cudaErrorNotSupported;
  SPMV_TRY(b->index.Alloc(pieces * 32));
  SPMV_TRY(b->index.Zero(stream)); // slices begin at multiples of 32 bytes
  SPMV_TRY(WithView(csr, bs, [&](auto v) {
    SPMV_LAUNCH(end[0] * WARP, 256, stream, write_columns, v, b->g.slices, b->slice, b->order, r.chunk, values, indices, b->index);
    return cudaSuccess;
  }));
  SPMV_TRY(b->value.Alloc((size_t)b->steps * WARP * bs * bs * StoredSize(single)));
  SPMV_TRY(b->value.Zero(stream));
  SPMV_TRY(WithStored(single, [&](auto type) { return b->Pick(type); }));
  b->g = {b->g.slices, b->slice, b->order, b->group, (char *)b->value, b->index, b->partial, b->arrived, b->unit, false, {}};
  return cudaStreamSynchronize(stream);
}

} // namespace spmv
