/*
  The symbolic phase: the length of each row of the product, then its columns.

  The terms of a row are an upper bound of its length. By this bound, a row gets a table of columns in shared memory.
  The columns of a row whose bound is too large for a table are marked in a bitmap, as long as the range of its columns;
  a few rows at a time have one, so that the memory is bounded. When the lengths are known, the columns are found
  again, in tables of just the size that they need, and sorted.
*/
#include "table.cuh"
#include <algorithm>
#include <cub/block/block_scan.cuh>

namespace spmv {
namespace {

constexpr int     BLOCK = 256, MOST_NODE = 6;
constexpr int     LANES      = 8;         // that share a row where the rows of A are only read
constexpr int     RANKED     = 128;       // places of the largest table that is sorted by ranks
constexpr int     BIG_PLACES = 4096;      // of a thread block's table
constexpr int     BIG_MOST   = 3072;      // columns in it
constexpr int     WARP_TERMS = 16384;     // most columns that a group of lanes inserts in a table
constexpr int64_t BITMAPS    = 256 << 20; // most bytes of all bitmaps, if there are several
// a thread block sorts the columns of a unit in launches of at most so many units, with so many columns that the mean
// unit inserts: groups of lanes would leave most of the device idle
constexpr int FEW_UNITS = 16384, MANY_INSERTED = 512;

enum { ROWS, COLUMNS, DESCENDS, KINDS }; // what is wrong with a pattern

// broken[ROWS], [COLUMNS]: bit s is set if the rows do not come in groups of s rows with the same columns, or if the
// columns of each row do not come in runs of s neighboring columns that begin at multiples of s
__global__ void find_breaks(const PetscInt *i, const PetscInt *j, int64_t rows, unsigned *broken)
{
  const int64_t r           = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / LANES;
  const int     lane        = threadIdx.x % LANES;
  unsigned      bits[KINDS] = {};
  if (r < rows) {
    const int64_t begin = i[r], length = i[r + 1] - begin, above = r ? i[r - 1] : begin;
    bool          same = r > 0 && begin - above == length;
#pragma unroll
    for (int s = 2; s <= MOST_NODE; s++) bits[COLUMNS] |= (unsigned)(length % s != 0) << s;
    for (int64_t p = lane; p < length; p += LANES) {
      const int64_t c = j[begin + p], before = p ? j[begin + p - 1] : -1;
      if (same && j[above + p] != c) same = false;
      if (before >= c) bits[DESCENDS] = 1;
#pragma unroll
      for (int s = 2; s <= MOST_NODE; s++) bits[COLUMNS] |= (unsigned)(p % s ? before + 1 != c : c % s != 0) << s;
    }
#pragma unroll
    for (int s = 2; s <= MOST_NODE; s++) bits[ROWS] |= (unsigned)(!same && r % s != 0) << s;
  }
#pragma unroll
  for (int k = 0; k < KINDS; k++) {
    // nearly all warps find the same: atomic operations of all of them at one address would take 0.4 ms
    const unsigned all = __reduce_or_sync(ALL, bits[k]);
    if (threadIdx.x % WARP == 0 && (all & ~*(volatile unsigned *)(broken + k))) atomicOr(broken + k, all);
  }
}

// Adds up a warp's histogram
struct Histogram {
  unsigned *count; // in shared memory

  __device__ void Begin()
  {
    if (threadIdx.x < BINS) count[threadIdx.x] = 0;
    __syncthreads();
  }
  __device__ void End(unsigned long long *total)
  {
    __syncthreads();
    if (threadIdx.x < BINS && count[threadIdx.x])
      atomicAdd(total + threadIdx.x, (unsigned long long)count[threadIdx.x]);
  }
};

// of_unit[u]: the terms of each row of unit u; total[]: the number of units in each bin, and of all terms of all units
__global__ void count_terms(Factors f, int64_t *of_unit, unsigned char *bin, unsigned long long *total)
{
  __shared__ unsigned count[BINS];
  Histogram           histogram = {count};
  const int64_t       u         = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / LANES;
  const int           lane      = threadIdx.x % LANES;
  long long           terms     = 0;
  histogram.Begin();
  if (u < f.units) {
    const int64_t begin = f.Begin((int)u);
    const int     end   = f.Length((int)u);
    for (int k = lane * f.node.entries; k < end; k += LANES * f.node.entries) {
      const int64_t c = f.aj[begin + k];
      terms += f.bi[c + 1] - f.bi[c];
    }
  }
  terms *= f.node.entries;
  for (int by = LANES / 2; by; by /= 2) terms += __shfl_xor_sync(ALL, terms, by);
  if (u < f.units && lane == 0) {
    const int64_t inserted = terms / (f.node.entries * f.node.columns), most = f.n / f.node.columns;
    const int     b = !terms ? NONE : inserted > WARP_TERMS ? BIG : BinFor(inserted < most ? inserted : most);
    of_unit[u]      = terms;
    bin[u]          = (unsigned char)b;
    atomicAdd(count + b, 1u);
  }
  terms = lane == 0 ? terms : 0;
  for (int by = WARP / 2; by; by /= 2) terms += __shfl_xor_sync(ALL, terms, by);
  if (threadIdx.x % WARP == 0 && terms) atomicAdd(total + BINS, (unsigned long long)terms);
  histogram.End(total);
}

// used[]: zeros
__global__ void list_units(int units, const unsigned char *bin, Bins::Firsts begin, int *used, int *list)
{
  __shared__ int count[BINS], first[BINS];
  const int64_t  u = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  const int      b = u < units ? bin[u] : -1, lane = threadIdx.x % WARP;
  const unsigned same   = __match_any_sync(ALL, b);
  const int      leader = __ffs((int)same) - 1;
  int            base   = 0;
  if (threadIdx.x < BINS) count[threadIdx.x] = 0;
  __syncthreads();
  if (b >= 0 && lane == leader) base = atomicAdd(count + b, __popc(same));
  base = __shfl_sync(ALL, base, leader) + __popc(same & ((1u << lane) - 1));
  __syncthreads();
  if (threadIdx.x < BINS && count[threadIdx.x])
    first[threadIdx.x] = begin.of[threadIdx.x] + atomicAdd(used + threadIdx.x, count[threadIdx.x]);
  __syncthreads();
  if (b >= 0) list[first[b] + base] = (int)u;
}

// How the threads of a group share the work: `lanes` of them have one unit (all of the block's, or 2 to 32), and
// `across` of them one row of B
struct Sharing {
  int lanes, across, places, shift;
};

/*
  A group inserts the columns of its unit in its table. Without FILL it stores their number in length[], or -1 if the
  table is full; with FILL it sorts them and stores them. `filled` is for thread blocks, whose tables may be too small
*/
template <bool BLOCK, bool FILL>
__global__ void __launch_bounds__(256)
    tabulate(Factors f, Sharing share, const int *list, int count, int *length, const PetscInt *ci, PetscInt *cj)
{
  __shared__ int filled;
  const int      lane = BLOCK ? threadIdx.x : threadIdx.x % share.lanes;
  const int      slot = BLOCK ? 0 : threadIdx.x / share.lanes;
  const int64_t  at   = BLOCK ? (int64_t)blockIdx.x : (int64_t)blockIdx.x * (blockDim.x / share.lanes) + slot;
  const int      u    = at >= count ? -1 : list ? list[at] : (int)at;
  const int      e = f.node.entries, v = f.node.columns;
  int           *table = (int *)spmv_shared + slot * share.places;
  int            own   = 0;

  for (int p = lane; p < share.places; p += share.lanes) table[p] = EMPTY;
  if (BLOCK && threadIdx.x == 0) filled = 0;
  SyncGroup<BLOCK>();
  if (u >= 0) {
    const int64_t begin = f.Begin(u);
    const int     end = f.Length(u), step = share.lanes / share.across;
    for (int k = lane / share.across * e; k < end; k += step * e) {
      const int64_t c = f.aj[begin + k], b = f.bi[c];
      const int     n = (int)(f.bi[c + 1] - b);
      for (int q = lane % share.across * v; q < n; q += share.across * v) {
        const int column = (int)f.bj[b + q];
        unsigned  place;
        // each of 256 threads adds one column more, at most
        if (BLOCK && !FILL && LoadShared(&filled) > BIG_MOST) break;
        if (!Insert(table, share.places, share.shift, v > 1 ? column / v : column, &place)) continue;
        own++;
        if (BLOCK && !FILL) atomicAdd(&filled, 1);
      }
    }
  }
  if (!FILL) {
    SyncGroup<BLOCK>();
    if (BLOCK) {
      own = filled > BIG_MOST ? -1 : filled * v;
    } else {
      for (int by = share.lanes / 2; by; by /= 2) own += __shfl_xor_sync(ALL, own, by);
      own *= v;
    }
    if (u >= 0 && lane == 0) length[u] = own;
    return;
  }
  if (!BLOCK && share.places <= RANKED)
    RankTable(table, share.places, lane, share.lanes);
  else
    SortTable<BLOCK>(table, share.places, lane, share.lanes);
  if (u < 0) return;
  const int     n     = length[u];
  const int64_t first = (int64_t)ci[(int64_t)u * f.node.rows];
  for (int q = lane; q < n; q += share.lanes) {
    const int column = v > 1 ? table[q / v] * v + q % v : table[q];
    for (int r = 0; r < f.node.rows; r++) cj[first + (int64_t)r * n + q] = (PetscInt)column;
  }
}

__global__ void list_full(const int *list, int count, const int *length, int *full, int *number)
{
  const int64_t k = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (k >= count) return;
  const int u = list ? list[k] : (int)k;
  if (length[u] < 0) full[atomicAdd(number, 1)] = u; // in any order: each row has the same columns
}

// Like tabulate(), with a bitmap in global memory; a thread block has several units, each in its turn
template <bool FILL>
__global__ void __launch_bounds__(BLOCK) mark(Factors f, int across, const int *list, int count, unsigned *bitmaps,
                                              int64_t words, int *length, const PetscInt *ci, PetscInt *cj)
{
  using Scan = cub::BlockScan<int, BLOCK>;
  __shared__ int                        range[2];
  __shared__ typename Scan::TempStorage scan;
  unsigned                             *bitmap = bitmaps + blockIdx.x * words;
  const int                             e = f.node.entries, v = f.node.columns;

  for (int64_t at = blockIdx.x; at < count; at += gridDim.x) {
    const int     u     = list ? list[at] : (int)at;
    const int64_t begin = f.Begin(u), first = FILL ? (int64_t)ci[(int64_t)u * f.node.rows] : 0;
    const int     end = f.Length(u), n = FILL ? length[u] : 0;
    int           low = EMPTY, high = -1, found = 0;

    if (threadIdx.x == 0) range[0] = EMPTY, range[1] = -1;
    __syncthreads();
    for (int k = threadIdx.x * e; k < end; k += BLOCK * e) {
      const int64_t c = f.aj[begin + k], b = f.bi[c], after = f.bi[c + 1];
      if (b == after) continue;
      low  = min(low, (int)f.bj[b] / v);
      high = max(high, (int)f.bj[after - 1] / v);
    }
    atomicMin(range, low);
    atomicMax(range + 1, high);
    __syncthreads();
    low            = range[0];
    const int last = range[1] < 0 ? -1 : (range[1] - low) / WARP; // the last word
    for (int k = threadIdx.x; k <= last; k += BLOCK) bitmap[k] = 0;
    __syncthreads();
    for (int k = (int)threadIdx.x / across * e; k < end; k += BLOCK / across * e) {
      const int64_t c = f.aj[begin + k], b = f.bi[c];
      const int     length_b = (int)(f.bi[c + 1] - b);
      for (int q = threadIdx.x % across * v; q < length_b; q += across * v) {
        const int bit = (int)f.bj[b + q] / v - low;
        atomicOr(bitmap + bit / WARP, 1u << bit % WARP);
      }
    }
    __syncthreads();
    for (int k = 0; k <= last; k += BLOCK) {
      unsigned             own = k + (int)threadIdx.x <= last ? __ldcg(bitmap + k + threadIdx.x) : 0;
      int                  total;
      [[maybe_unused]] int before;
      Scan(scan).ExclusiveSum(__popc(own), before, total);
      before += found;
      found += total;
      __syncthreads(); // the next sum uses the same memory
      if constexpr (FILL) {
        for (int p = before * v; own; own &= own - 1) {
          const int column = (low + (k + (int)threadIdx.x) * WARP + __ffs((int)own) - 1) * v;
          for (int d = 0; d < v; d++, p++) {
            for (int r = 0; r < f.node.rows; r++) cj[first + (int64_t)r * n + p] = (PetscInt)(column + d);
          }
        }
      }
    }
    if (!FILL && threadIdx.x == 0) length[u] = found * v;
    __syncthreads();
  }
}

// The bins of the second half of this phase and of the numeric phase, the entries of each unit, and the bytes of its
// positions
__global__ void sort_lengths(Factors f, const int64_t *of_unit, const int *length, unsigned char *fill,
                             unsigned char *numeric, int64_t *entries, int64_t *positions, unsigned long long *total)
{
  __shared__ unsigned count[2][BINS];
  Histogram           filled = {count[0]}, computed = {count[1]};
  const int64_t       u = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  filled.Begin();
  computed.Begin();
  if (u < f.units) {
    const int     n = length[u], columns = n / f.node.columns;
    const int64_t inserted = of_unit[u] / (f.node.entries * f.node.columns);
    int           a        = !n ? NONE : columns > BIG_MOST ? HUGE_ROW : inserted > WARP_TERMS ? BIG : BinFor(columns);
    const int     b        = !n ? NONE : f.Length((int)u) > GROUP_ENTRIES ? BIG : BinFor(n);
    fill[u]                = (unsigned char)a;
    numeric[u]             = (unsigned char)b;
    entries[u]             = (int64_t)n * f.node.rows;
    positions[u]           = b >= BIG ? 0 : (of_unit[u] * PositionBytes(b) + 1) & ~(int64_t)1;
    atomicAdd(count[0] + a, 1u);
    atomicAdd(count[1] + b, 1u);
  }
  filled.End(total);
  computed.End(total + BINS);
}

__global__ void append_sums(const int64_t *entries, const int64_t *positions, unsigned long long *total)
{
  total[0] = (unsigned long long)*entries;
  total[1] = (unsigned long long)*positions;
}

__global__ void set_offsets(int64_t m, int rows, const int64_t *entries, const int *length, PetscInt *i)
{
  const int64_t r = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (r > m) return;
  const int64_t u = r / rows;
  i[r]            = (PetscInt)(entries[u] + (r < m ? (r - u * rows) * length[u] : 0));
}

// ------------------------------------------------------------------------------------------------ launches

// rows of B are read by as many threads as their mean length
int Across(const Gemm &g, int columns, int most)
{
  return PowerFor(0.75 * (double)g.terms * g.node.rows / (double)g.entries / columns, 1, most);
}

template <bool FILL>
cudaError_t Tabulate(const Factors &f, const Gemm &g, const Bins &bins, int *length, cudaStream_t stream)
{
  // of the mean unit. With so few lanes as a short row of the product needs, long rows of A would take long
  const double inserted = (double)g.terms / (g.node.entries * g.node.columns) / (double)g.m;
  for (int bin = 0; bin <= BIG; bin++) {
    const int  count = bins.Count(bin);
    const bool block = bin == BIG || (FILL && count <= FEW_UNITS && inserted >= MANY_INSERTED);
    Sharing    share;
    share.places = bin == BIG ? BIG_PLACES : Places(bin);
    share.shift  = __builtin_clz(share.places) + 1;
    share.lanes  = block ? BLOCK : PowerFor(std::max(Places(bin) / 8., inserted / 32), 4, std::min(Places(bin), WARP));
    share.across = Across(g, g.node.columns, share.lanes < WARP ? share.lanes : WARP);
    // 48 KiB, at most: tables of 1024 places are shared by 32 lanes
    const int    threads = block ? BLOCK : 128;
    const size_t shared  = sizeof(int) * share.places * (threads / share.lanes);
    if (!count) continue;
    ForgetErrors();
    if (block)
      tabulate<true, FILL><<<count, threads, shared, stream>>>(f, share, bins.Of(bin), count, length,
                                                               (const PetscInt *)g.i, (PetscInt *)g.j);
    else
      tabulate<false, FILL><<<Blocks((int64_t)count * share.lanes, threads), threads, shared, stream>>>(
          f, share, bins.Of(bin), count, length, (const PetscInt *)g.i, (PetscInt *)g.j);
    SPMV_TRY(cudaGetLastError());
  }
  return cudaSuccess;
}

template <bool FILL>
cudaError_t Mark(const Factors &f, const Gemm &g, const int *list, int count, int *length, cudaStream_t stream)
{
  const int64_t     words = g.n / g.node.columns / WARP + 1;
  Scratch<unsigned> bitmap(stream);
  int               processors, blocks;
  if (!count) return cudaSuccess;
  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
  blocks = (int)std::min<int64_t>({count, 4 * processors, std::max<int64_t>(1, BITMAPS / (words * 4))});
  SPMV_TRY(bitmap.Alloc((size_t)blocks * words));
  SPMV_LAUNCH((int64_t)blocks * BLOCK, BLOCK, stream, mark<FILL>, f, Across(g, g.node.columns, WARP), list, count,
              (unsigned *)bitmap, words, length, (const PetscInt *)g.i, (PetscInt *)g.j);
  return cudaSuccess;
}

} // namespace

cudaError_t MakeBins(int units, const unsigned char *bin, const unsigned long long count[], cudaStream_t stream,
                     Bins *bins)
{
  Scratch<int> used(stream);
  int          bins_used = 0;
  bins->first            = {};
  for (int b = 0; b < BINS; b++) {
    bins->first.of[b + 1] = bins->first.of[b] + (int)count[b];
    bins_used += count[b] > 0;
  }
  bins->list.Free();
  if (bins_used <= 1) return cudaSuccess;
  SPMV_TRY(used.Alloc(BINS));
  SPMV_TRY(used.Zero(stream));
  SPMV_TRY(bins->list.Alloc(units, stream));
  SPMV_LAUNCH(units, BLOCK, stream, list_units, units, bin, bins->first, (int *)used, (int *)bins->list);
  return cudaSuccess;
}

// B's columns must ascend. Those of A may have any order
cudaError_t Gemm::FindNodes(const SpMVCudaCSR &A, const SpMVCudaCSR &B, cudaStream_t stream)
{
  Scratch<unsigned> broken(stream);
  unsigned          host[2][KINDS];
  const auto       &a = host[0], &b = host[1];
  node = Nodal();
  SPMV_TRY(broken.Alloc(2 * KINDS));
  SPMV_TRY(broken.Zero(stream));
  for (int k = 0; k < 2; k++) {
    const SpMVCudaCSR &csr = k ? B : A;
    SPMV_LAUNCH(csr.m * LANES, BLOCK, stream, find_breaks, (const PetscInt *)csr.i, (const PetscInt *)csr.j, csr.m,
                broken + k * KINDS);
  }
  SPMV_TRY(Fetch(&host[0][0], (unsigned *)broken, 2 * KINDS, stream));
  if (b[DESCENDS]) return cudaErrorNotSupported;
  for (int s = MOST_NODE; s > 1; s--) {
    if (node.entries == 1 && !(a[COLUMNS] >> s & 1) && !(b[ROWS] >> s & 1) && B.m % s == 0) node.entries = s;
    if (node.columns == 1 && !(b[COLUMNS] >> s & 1)) node.columns = s;
    if (node.rows == 1 && s <= MOST_ROWS && !(a[ROWS] >> s & 1) && A.m % s == 0) node.rows = s;
  }
  return cudaSuccess;
}

cudaError_t Gemm::Count(const Factors &f, Array<int64_t> &of_unit, Array<int> &length, Bins &table, cudaStream_t stream)
{
  Scratch<unsigned char>      bin(stream);
  Scratch<unsigned long long> total(stream);
  Scratch<int>                full(stream), number(stream);
  unsigned long long          host[BINS + 1];
  int                         fulls;
  SPMV_TRY(bin.Alloc(f.units));
  SPMV_TRY(total.Alloc(BINS + 1));
  SPMV_TRY(total.Zero(stream));
  SPMV_LAUNCH((int64_t)f.units * LANES, BLOCK, stream, count_terms, f, (int64_t *)of_unit, (unsigned char *)bin,
              (unsigned long long *)total);
  SPMV_TRY(Fetch(host, (unsigned long long *)total, BINS + 1, stream));
  terms = (int64_t)host[BINS] * node.rows;
  SPMV_TRY(MakeBins(f.units, bin, host, stream, &table));
  SPMV_TRY(length.Zero(stream));
  SPMV_TRY(Tabulate<false>(f, *this, table, length, stream));
  if (table.Count(BIG)) {
    const int count = table.Count(BIG);
    SPMV_TRY(full.Alloc(count));
    SPMV_TRY(number.Alloc(1));
    SPMV_TRY(number.Zero(stream));
    SPMV_LAUNCH(count, BLOCK, stream, list_full, table.Of(BIG), count, (const int *)length, (int *)full, (int *)number);
    SPMV_TRY(Fetch(&fulls, (int *)number, 1, stream));
    SPMV_TRY(Mark<false>(f, *this, full, fulls, length, stream));
  }
  return cudaSuccess;
}

cudaError_t Gemm::Fill(const Factors &f, const Array<int64_t> &of_unit, Array<int> &length, int64_t most, Bins &table,
                       cudaStream_t stream)
{
  const int                   units = f.units;
  Scratch<unsigned char>      fill(stream), numeric(stream);
  Scratch<int64_t>            entries(stream);
  Scratch<unsigned long long> total(stream);
  unsigned long long          host[2 * BINS + 2];
  SPMV_TRY(fill.Alloc(units));
  SPMV_TRY(numeric.Alloc(units));
  SPMV_TRY(entries.Alloc(units + 1));
  SPMV_TRY(entries.Zero(stream));
  SPMV_TRY(map_start.Alloc(units + 1, stream));
  SPMV_TRY(map_start.Zero(stream));
  SPMV_TRY(total.Alloc(2 * BINS + 2));
  SPMV_TRY(total.Zero(stream));
  SPMV_LAUNCH(units, BLOCK, stream, sort_lengths, f, (const int64_t *)of_unit, (const int *)length,
              (unsigned char *)fill, (unsigned char *)numeric, (int64_t *)entries, (int64_t *)map_start,
              (unsigned long long *)total);
  SPMV_TRY(ExclusiveSum(entries, units + 1, stream));
  SPMV_TRY(ExclusiveSum(map_start, units + 1, stream));
  SPMV_LAUNCH(1, 1, stream, append_sums, (const int64_t *)entries + units, (const int64_t *)map_start + units,
              (unsigned long long *)total + 2 * BINS);
  SPMV_TRY(Fetch(host, (unsigned long long *)total, 2 * BINS + 2, stream));
  nnz                     = (int64_t)host[2 * BINS];
  const int64_t positions = (int64_t)host[2 * BINS + 1];
  if (sizeof(PetscInt) == 4 && nnz > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;
  SPMV_TRY(j.Alloc(nnz, stream));
  SPMV_LAUNCH(m + 1, BLOCK, stream, set_offsets, m, node.rows, (const int64_t *)entries, (const int *)length,
              (PetscInt *)i);
  SPMV_TRY(MakeBins(units, fill, host, stream, &table));
  SPMV_TRY(Tabulate<true>(f, *this, table, length, stream));
  SPMV_TRY(Mark<true>(f, *this, table.Of(HUGE_ROW), table.Count(HUGE_ROW), length, stream));
  SPMV_TRY(MakeBins(units, numeric, host + BINS, stream, &bins));
  lanes = std::max(2, Across(*this, 1, WARP));
  if (positions > most || map.Alloc(positions, stream) != cudaSuccess) {
    ForgetErrors(); // if there is no room
    map_start.Free();
  }
  return cudaSuccess;
}

cudaError_t Gemm::Symbolic(const SpMVCudaCSR &A, const SpMVCudaCSR &B, int64_t most, cudaStream_t stream)
{
  Scratch<int64_t> of_unit(stream);
  Scratch<int>     length(stream);
  Bins             table;
  m       = A.m;
  n       = B.n;
  nnz     = 0;
  terms   = 0;
  entries = A.nnz;
  SPMV_TRY(FindNodes(A, B, stream));
  SPMV_TRY(i.Alloc(m + 1, stream));
  bins.first = {};
  if (!A.nnz || !B.nnz) {
    SPMV_TRY(i.Zero(stream));
    return j.Alloc(0, stream);
  }
  const Factors f(A, B, node);
  SPMV_TRY(of_unit.Alloc(f.units));
  SPMV_TRY(length.Alloc(f.units));
  const cudaError_t error = [&] {
    SPMV_TRY(Count(f, of_unit, length, table, stream));
    SPMV_TRY(Fill(f, of_unit, length, most, table, stream));
    return bins.Count(BIG) ? MakeItems(f, of_unit, stream) : cudaSuccess;
  }();
  const cudaError_t done = cudaStreamSynchronize(stream); // before the lists are freed
  return error ? error : done;
}

} // namespace spmv
