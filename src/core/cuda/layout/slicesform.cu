/*
  How slices are formed: the order of the units, the extent of each slice, and its column indices. See slices.cu for the
  layout.
*/
#include "core/cuda/csr/entries.cuh"
#include "core/cuda/product/slices.cuh"

namespace spmv {
namespace {

constexpr int WINDOW = Tuning::SLICES_WINDOW;

// ------------------------------------------------------------------------------------------------ order

template <class I> __global__ void flag_nonempty(View<I> v, int64_t *flag)
{
  const int u = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (u <= v.units) flag[u] = u < v.units && v.len(u) > 0;
}

__global__ void iota(int count, int *list)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (p < count) list[p] = p;
}

// What a sort compares, the most important first: windows of places, the rows of row groups, lengths, first columns
struct Keys {
  int        sigma; // places
  bool       by_column, by_length;
  int        longest, bits; // bits of a length
  const int *first;         // of RowGroups; NULL if there are none

  static constexpr int    ROW_BITS = 3;
  __host__ __device__ int Low() const // the number of bits below the rows
  {
    return by_column ? bits + 32 : by_length ? bits : 0;
  }
  int Bits(int places) const
  {
    return PetscMin(64, Low() + (first ? ROW_BITS : 0) + BitsFor(places / sigma));
  }
};

template <class I> __global__ void sort_keys(View<I> v, int places, Keys keys, const int *order, uint64_t *key)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (p >= places) return;
  const int u = order[p], len = v.len(u);
  uint64_t  k = p / keys.sigma;
  if (keys.first) k = k << Keys::ROW_BITS | (unsigned)(keys.first[p + 1] - u - 1);
  k <<= keys.Low();
  if (keys.by_column)
    k |= (uint64_t)len << 32 | (unsigned)(len ? v.col(v.start(u), 0) : 0);
  else if (keys.by_length)
    k |= (unsigned)(keys.longest - len);
  key[p] = k;
}

__global__ void rows_of_keys(int places, int low, const uint64_t *key, int *rows)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (p < places) rows[p] = (int)(key[p] >> low & ((1u << Keys::ROW_BITS) - 1)) + 1;
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

// Calls f(first place, units, log2 U, log2 T, steps, parts), in all lanes of the warp, for the slices of places first
// to end - 1. With row groups, those of a slice have the same number of rows
template <class F>
__device__ void form(const int *length, const int *rows, int first, int end, int bs, const SliceRules &r, F f)
{
  while (first < end) {
    const int here = length[first], n = rows ? rows[first] : 1,
              per_thread = rows ? max(r.per_thread / n, 1) : r.per_thread;
    int last             = end;
    if (rows) {
      const int      p     = first + (int)(threadIdx.x % WARP);
      const unsigned other = __ballot_sync(ALL, p >= end || rows[p] != n);
      last                 = first + (other ? __ffs(other) - 1 : WARP);
    }
    const int left = last - first;
    int       lu = bs == 1 && !rows && !r.threads && !r.tile ? MAX_LU : 0, lt = 0, w = 0, units;
    for (; lu; lu--) { // as many units per lane as fit in eight vectors
      if (here > 8 >> lu || WARP << (lu - 1) >= left) continue;
      w = longest(length, first, min(left, WARP << lu));
      if (w <= 8 >> lu) break;
    }
    units = min(left, WARP << lu);
    if (!lu) {
      for (; lt < 5; lt++) {
        // other units may only be longer
        if (r.threads ? 1 << lt < r.threads : here > per_thread << lt || (r.vector && here > r.vector)) continue;
        w = longest(length, first, min(left, WARP >> lt));
        if (r.threads || w <= per_thread << lt) break;
      }
      units = min(left, WARP >> lt);
      if (lt == 5) w = here;
    }
    if (lt == 5 && (int64_t)w * n > r.whole)
      f(first, 1, 0, 5, 0, (w + r.chunk - 1) / r.chunk);
    else
      f(first, units, lu, lt, (w + (1 << lt) - 1) >> lt, 0);
    first += units;
  }
}

// Slices of rank 0 come first. Those of a tile stay together
__device__ int rank_of(const SliceRules &r, int lu, int lt, int steps)
{
  return r.tile ? 1 : lt == 5 ? 0 : steps << lu > 8 ? 1 : 2;
}

struct Found {
  int     many, long_units, longest; // as in SlicedStore
  int64_t end[3];                    // the ends of the counts of slices, long units and parts in the prefix sums
};

// Copies every stride-th number, `blockDim.x` of them, beginning with the first
__global__ void pick(const int64_t *from, int64_t stride, int64_t *to)
{
  to[threadIdx.x] = from[threadIdx.x * stride];
}

// counts: for each window, the numbers of slices of rank 0, 1 and 2, of long units, and of parts
__global__ void count_slices(int places, int window, int windows, const int *length, const int *rows, int bs,
                             SliceRules r, int64_t *counts, Found *found)
{
  const int w = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP);
  if (w > windows) return;
  if (w == windows) {
    counts[5 * (int64_t)windows] = 0;
    return;
  }
  int64_t n[3] = {0, 0, 0}, units = 0, all = 0;
  int     long_units = 0, most = 0;
  bool    several = false;
  form(length, rows, w * window, min(places, (w + 1) * window), bs, r,
       [&](int first, int, int lu, int lt, int steps, int parts) {
         const int own = rows ? rows[first] : 1, rank = rank_of(r, lu, lt, steps * own), add = parts ? parts : 1;
         n[0] += rank == 0 ? add : 0;
         n[1] += rank == 1 ? add : 0;
         n[2] += rank == 2 ? add : 0;
         units += parts > 0;
         all += parts;
         long_units += parts ? own : 0;
         several = several || lu > 0;
         most    = max(most, steps);
       });
  if (threadIdx.x % WARP) return;
  atomicMax(&found->longest, most);
  if (several) Raise(&found->many);
  if (long_units) atomicAdd(&found->long_units, long_units);
  for (int rank = 0; rank < 3; rank++) counts[(int64_t)rank * windows + w] = n[rank];
  counts[(int64_t)3 * windows + w] = units;
  counts[(int64_t)4 * windows + w] = all;
}

// counts: prefix sums
__global__ void write_slices(int places, int window, int windows, const int *length, const int *rows, const int *order,
                             int bs, SliceRules r, const int64_t *counts, Slice *slice, int *parts_of)
{
  const int w = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (w >= windows) return;
  const int64_t W     = windows;
  int64_t       at[3] = {counts[w], counts[W + w], counts[2 * W + w]}, part = counts[4 * W + w] - counts[4 * W];
  form(length, rows, w * window, min(places, (w + 1) * window), bs, r,
       [&](int first, int units, int lu, int lt, int steps, int parts) {
         const int rank = rank_of(r, lu, lt, rows ? steps * rows[first] : steps);
         int64_t   s    = rank == 0 ? at[0] : rank == 1 ? at[1] : at[2];
         const int add  = parts ? parts : 1;
         at[0] += rank == 0 ? add : 0;
         at[1] += rank == 1 ? add : 0;
         at[2] += rank == 2 ? add : 0;
         Slice own      = {};
         own.steps      = steps;
         own.lt         = lt;
         own.lu         = lu;
         own.is_part    = parts > 0;
         own.units      = units;
         own.has_groups = rows != nullptr;
         own.more       = rows ? rows[first] - 1 : 0;
         own.first      = first;
         if (!parts) {
           if (lane == 0) slice[s] = own;
           return;
         }
         own.first = order ? order[first] : first;
         own.sums  = (int)part;
         for (int k = lane; k < parts; k += WARP) {
           own.steps    = (min(r.chunk, length[first] - k * r.chunk) + WARP - 1) / WARP;
           own.part     = k;
           slice[s + k] = own;
         }
         if (lane == 0) parts_of[part] = parts;
         part += parts;
       });
}

// counts: prefix sums, as in write_slices(), where a window is a tile. start: of the columns of each tile
__global__ void write_tiles(int tiles, const int64_t *counts, const int *start, Tile *tile)
{
  const int t = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (t < tiles) tile[t] = {(int)counts[tiles + t], (int)counts[tiles + t + 1], start[t], start[t + 1]};
}

// ------------------------------------------------------------------------------------------------ columns

template <class I>
__global__ void measure(View<I> v, int count, Slice *slice, const int *order, int chunk, bool narrow, bool tiled,
                        int64_t *values, int64_t *indices)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= count) {
    if (s == count && lane == 0) values[s] = indices[s] = 0;
    return;
  }
  Slice self  = slice[s];
  int   least = INT_MAX, most = -1, tail = WARP, start = 0;
  // one index serves all rows of a group anyway
  bool line = narrow && !tiled && self.lt == 5 && !self.has_groups;
  auto find = [&](int k, bool own, int entry, int64_t start_of_row) {
    const int      col   = own ? v.col(start_of_row, entry) : -1;
    const unsigned lanes = __ballot_sync(ALL, own);
    if (own) {
      least = min(least, col);
      most  = max(most, col);
    }
    if (k == 0) start = __shfl_sync(ALL, col, 0);
    line = line && __all_sync(ALL, !own || col == start + k * WARP + lane);
    tail = lanes ? WARP - __clz((int)lanes) : 1; // at the end, the lanes of the last step
  };
  if (!tiled) entries(v, self, order, chunk, find);
  least = __reduce_min_sync(ALL, least);
  most  = __reduce_max_sync(ALL, most);
  if (lane) return;
  const int steps = self.steps << self.lu;
  const int mode  = line ? LINE : tiled || (narrow && most >= 0 && most - least < (int)NO_COLUMN) ? NARROW : WIDE;
  self.base       = mode == NARROW ? least : mode == LINE ? start : 0;
  self.mode       = mode;
  self.tail       = tail;
  slice[s]        = self;
  values[s]       = (int64_t)steps * self.Rows();
  indices[s]      = mode == LINE ? 0 : (int64_t)steps * (mode == NARROW ? 2 : 4);
}

template <class I>
__global__ void write_columns(View<I> v, int count, Slice *slice, const int *order, int chunk, const int64_t *values,
                              const int64_t *indices, char *index)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= count) return;
  const Slice   self  = slice[s];
  const int     mode  = self.mode;
  const int64_t piece = indices[s] - indices[0];
  char         *p     = index + piece * 32;
  entries(v, self, order, chunk, [&](int k, bool own, int entry, int64_t start_of_row) {
    const int col = own ? v.col(start_of_row, entry) : -1;
    if (mode == WIDE)
      ((int *)p)[k * WARP + lane] = col;
    else if (mode == NARROW)
      ((unsigned short *)p)[k * WARP + lane] = (unsigned short)(own ? col - self.base : NO_COLUMN);
  });
  if (lane == 0) {
    slice[s].value = (unsigned)values[s];
    slice[s].index = (unsigned)piece;
  }
}

// Writes the columns of a tile as places in its list, which is copied to shared memory
template <class I>
__global__ void __launch_bounds__(256)
    write_places(View<I> v, const Tile *tiles, const int *list, Slice *slice, const int *order, const int64_t *values,
                 const int64_t *indices, char *index)
{
  const Tile tile = tiles[blockIdx.x];
  const int  lane = threadIdx.x % WARP, n = tile.list_end - tile.list;
  int       *column = (int *)spmv_shared;
  for (int k = (int)threadIdx.x; k < n; k += (int)blockDim.x) column[k] = list[tile.list + k];
  __syncthreads();
  for (int s = tile.slice + (int)threadIdx.x / WARP; s < tile.slice_end; s += (int)blockDim.x / WARP) {
    const Slice   self  = slice[s];
    const int64_t piece = indices[s] - indices[0];
    auto         *p     = (unsigned short *)(index + piece * 32);
    entries(v, self, order, 0, [&](int k, bool own, int entry, int64_t start_of_row) {
      const int place    = own ? LowerBound(column, 0, n, v.col(start_of_row, entry)) : (int)NO_COLUMN;
      p[k * WARP + lane] = (unsigned short)place;
    });
    if (lane) continue;
    slice[s].value = (unsigned)values[s];
    slice[s].index = (unsigned)piece;
    slice[s].base  = tile.list;
  }
}

} // namespace

cudaError_t SlicedStore::Sort(const SpMVCudaCSR &csr, const Survey &survey, const SliceRules &rules,
                              const RowGroups *row_groups, cudaStream_t stream, Array<int> *rows)
{
  const int  units   = (int)(csr.m / bs);
  const bool sort    = row_groups || rules.by_column || rules.sigma != 1;
  const bool ordered = order; // by clusters
  if ((some_rows || sort) && !ordered) SPMV_TRY(order.Alloc(places, stream));
  if (some_rows) {
    Scratch<int64_t> flag(stream);
    SPMV_TRY(flag.Alloc((size_t)units + 1));
    SPMV_LAUNCH_VIEW(csr, nodes, (int64_t)units + 1, 256, stream, flag_nonempty, v, flag);
    SPMV_TRY(ExclusiveSum(flag, (int64_t)units + 1, stream));
    SPMV_TRY(ListFlagged(units, flag, order, stream));
  } else if (row_groups)
    SPMV_TRY(cudaMemcpyAsync(order, row_groups->first, places * sizeof(int), cudaMemcpyDeviceToDevice, stream));
  else if (sort && !ordered)
    SPMV_LAUNCH(places, 256, stream, iota, places, order);
  if (!sort || !places) return cudaSuccess;

  // Row groups of different sizes cannot share a slice, so they are sorted by size even if the rows are not sorted by
  // length
  Scratch<uint64_t> key(stream);
  Keys              keys = {rules.sigma ? rules.sigma : units, rules.by_column, rules.sigma != 1, survey.longest,
               BitsFor(survey.longest),           nullptr};
  if (row_groups) {
    keys.first = row_groups->first;
    if (rules.sigma == 1) keys.sigma = WINDOW;
  }
  SPMV_TRY(key.Alloc(places));
  SPMV_LAUNCH_VIEW(csr, nodes, places, 256, stream, sort_keys, v, places, keys, order, key);
  SPMV_TRY(SortPairs(key, order, places, keys.Bits(places), stream));
  if (!row_groups) return cudaSuccess;
  SPMV_TRY(rows->Alloc(places, stream));
  SPMV_LAUNCH(places, 256, stream, rows_of_keys, places, keys.Low(), key, *rows);
  return cudaSuccess;
}

// The number of units whose slices a warp forms, one slice after the other. With few units, more warps form fewer
// slices each: not too few, because the last slice of a window may have lanes without a unit
static cudaError_t Window(int places, int64_t entries, const SliceRules &rules, int *window)
{
  // of a slice
  const int64_t units =
      rules.threads ? WARP : (int64_t)WARP * rules.per_thread * places / PetscMax(entries, (int64_t)1) + 1;
  int processors;
  *window = WINDOW;
  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
  while (*window / 2 >= Tuning::SLICES_OF_WINDOW * units && places / *window < 2 * processors) *window /= 2;
  return cudaSuccess;
}

cudaError_t SlicedStore::Form(const SpMVCudaCSR &csr, const SliceRules &rules, const int *rows, const int *start,
                              cudaStream_t stream)
{
  const int        sums = rows ? RowGroups::MOST : bs; // of each part of a long unit
  int              window;
  Scratch<int>     length(stream);
  Scratch<Found>   scratch(stream);
  Found            found;
  Scratch<int64_t> counts(stream);
  SPMV_TRY(Window(places, nodes.Blocks(csr), rules, &window));
  if (rules.tile) window = rules.tile;
  const int windows = (places + window - 1) / window;
  SPMV_TRY(length.Alloc(places));
  SPMV_TRY(counts.Alloc(5 * (size_t)windows + 1));
  SPMV_TRY(scratch.AllocZero(1));
  SPMV_LAUNCH_VIEW(csr, nodes, places, 256, stream, lengths, v, places, order, length);
  SPMV_LAUNCH((int64_t)(windows + 1) * WARP, 64, stream, count_slices, places, window, windows, length, rows, bs, rules,
              counts, scratch);
  SPMV_TRY(ExclusiveSum(counts, 5 * (int64_t)windows + 1, stream));
  SPMV_LAUNCH(3, 3, stream, pick, (int64_t *)counts + 3 * (int64_t)windows, windows, ((Found *)scratch)->end);
  SPMV_TRY(Fetch(&found, (Found *)scratch, 1, stream));
  many                    = found.many;
  long_units              = found.long_units;
  longest                 = found.longest;
  const int64_t all_parts = found.end[2] - found.end[1];
  split                   = (int)(found.end[1] - found.end[0]);
  if (found.end[0] >= INT_MAX || all_parts >= INT_MAX) return cudaErrorNotSupported;
  args.slices = (int)found.end[0];
  SPMV_TRY(slice.Alloc(args.slices, stream));
  if (split) {
    SPMV_TRY(parts.Alloc(all_parts, stream));
    SPMV_TRY(arrived.AllocZero(all_parts, stream));
    SPMV_TRY(partial.Alloc((size_t)all_parts * sums, stream));
    SPMV_TRY(Vacate(partial, stream));
  }
  SPMV_LAUNCH((int64_t)windows * WARP, 64, stream, write_slices, places, window, windows, length, rows, order, bs,
              rules, counts, slice, parts);
  if (!rules.tile) return cudaSuccess;
  SPMV_TRY(tile.Alloc(windows, stream));
  SPMV_LAUNCH(windows, 256, stream, write_tiles, windows, counts, start, tile);
  return cudaSuccess;
}

cudaError_t SlicedStore::IndexColumns(const SpMVCudaCSR &csr, const SliceRules &rules, cudaStream_t stream)
{
  const int64_t    count = args.slices, sums = count + 1;
  Scratch<int64_t> sizes(stream); // of each slice's values, and then of its indices; their ends
  int64_t          end[2];
  SPMV_TRY(sizes.Alloc(2 * sums + 2));
  int64_t *values = sizes, *indices = sizes + sums;
  SPMV_LAUNCH_VIEW(csr, nodes, (count + 1) * WARP, 256, stream, measure, v, args.slices, slice, order, rules.chunk,
                   rules.narrow, tile != nullptr, values, indices);
  SPMV_TRY(ExclusiveSum(sizes, 2 * sums, stream));
  SPMV_LAUNCH(2, 2, stream, pick, values + count, sums, sizes + 2 * sums);
  SPMV_TRY(Fetch(end, sizes + 2 * sums, 2, stream));
  const int64_t pieces = end[1] - end[0];
  steps                = end[0];
  if (steps >= UINT_MAX || pieces >= UINT_MAX) return cudaErrorNotSupported;
  SPMV_TRY(index.AllocZero(pieces * 32, stream)); // slices begin at multiples of 32 bytes
  if (tile) {
    return WithView(csr, nodes, [&](auto v) {
      ForgetErrors();
      write_places<<<(unsigned)tile.Size(), 256, (size_t)most * sizeof(int), stream>>>(v, tile, list, slice, order,
                                                                                       values, indices, index);
      return cudaGetLastError();
    });
  }
  SPMV_LAUNCH_VIEW(csr, nodes, count * WARP, 256, stream, write_columns, v, args.slices, slice, order, rules.chunk,
                   values, indices, index);
  return cudaSuccess;
}

} // namespace spmv
