/*
  Tiles: rows whose slices one thread block multiplies with a copy of the x that they read in its shared memory.

  Rows of a mesh read each number of x many times, from distant places if neighbors have distant numbers. A tile has
  rows that are close to one another in the graph of the matrix, so that they read few different numbers, and it has a
  list of these. Neither the rows nor the columns of the matrix are renumbered.

  Clusters are the cells of a Voronoi diagram of the graph: rows are seeds at random, and each row belongs to the seed
  from which a breadth-first search reaches it first. Some of the seeds are those of larger cells, which consist of
  these cells: a search goes from cell to cell. Still larger ones consist of the larger cells. The rows are sorted by
  their largest cell, then by the one within it, and so on. So rows that follow one another are close, wherever tiles
  begin.
*/
#include "core/cuda/stores.cuh"
#include <cub/block/block_radix_sort.cuh>

namespace spmv {
namespace {

__device__ __forceinline__ unsigned hash(unsigned h)
{
  h = (h ^ h >> 16) * 0x7feb352du;
  h = (h ^ h >> 15) * 0x846ca68bu;
  return h ^ h >> 16;
}

// ------------------------------------------------------------------------------------------------ clusters

// Each level has one seed for eight of the level before. cell: of each row, its seed or -1; NULL: each row is one.
// label: of each cell, the seed of the larger cell that it belongs to; -1: not yet found
__global__ void choose_seeds(int rows, int level, const int *cell, int *label, int *other)
{
  const int u = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (u >= rows) return;
  const bool seed = !(hash((unsigned)u + 1) >> (26 - 3 * level)) && (!cell || cell[u] == u);
  label[u] = other[u] = seed ? u : -1;
}

// One step of the searches from all seeds. Each row takes the label of its first neighbor that had one before the step,
// so that the result is the same each time
template <class I> __global__ void extend(View<I> v, const int *from, int *to)
{
  const int u = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (u >= v.units) return;
  const int64_t start = v.start(u);
  const int     len   = v.len(u);
  int           own   = from[u];
  for (int q = 0; q < len && own < 0; q++) own = __ldg(from + v.col(start, q));
  to[u] = own;
}

// The same from cell to cell. A cell takes the largest label of its neighbors
template <class I> __global__ void extend_cells(View<I> v, const int *cell, const int *from, int *to)
{
  const int u = (int)(blockIdx.x * blockDim.x + threadIdx.x), own = u < v.units ? cell[u] : -1;
  if (own < 0) return;
  const int old = from[own];
  if (old >= 0) {
    if (u == own) to[u] = old;
    return;
  }
  const int64_t start = v.start(u);
  const int     len   = v.len(u);
  int           best  = -1;
  for (int q = 0; q < len; q++) {
    const int other = __ldg(cell + v.col(start, q));
    if (other >= 0) best = max(best, __ldg(from + other));
  }
  if (best >= 0) atomicMax(to + own, best);
}

// Rows take the label of their cell, which becomes part of the key. Cells with equal bits are only mixed
__global__ void take_cells(int rows, int level, const int *label, int *cell, uint64_t *key, int *order)
{
  const int u = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (u >= rows) return;
  const int own = level ? cell[u] < 0 ? -1 : label[cell[u]] : label[u];
  cell[u]       = own;
  key[u]        = (uint64_t)(hash((unsigned)own) >> 16) << 16 * level | (level ? key[u] : 0);
  order[u]      = u;
}

cudaError_t Cluster(const SpMVCudaCSR &csr, int rows, cudaStream_t stream, Array<int> &order)
{
  constexpr int     LEVELS = 3; // one seed in 64, 512 and 4096 rows
  Scratch<int>      cell(stream), even(stream), odd(stream);
  Scratch<uint64_t> key(stream);
  SPMV_TRY(cell.Alloc(rows));
  SPMV_TRY(even.Alloc(rows));
  SPMV_TRY(odd.Alloc(rows));
  SPMV_TRY(key.Alloc(rows));
  SPMV_TRY(order.Alloc(rows, stream));
  for (int level = 0; level < LEVELS; level++) {
    static_assert(Tuning::TILE_SWEEPS % 2 == 0 && Tuning::TILE_CELL_SWEEPS % 2 == 0, "the last step writes to even");
    SPMV_LAUNCH(rows, 256, stream, choose_seeds, rows, level, level ? (int *)cell : nullptr, even, odd);
    for (int s = 0; s < (level ? Tuning::TILE_CELL_SWEEPS : Tuning::TILE_SWEEPS); s++) {
      int *from = s % 2 ? odd : even, *to = s % 2 ? even : odd;
      if (level)
        SPMV_LAUNCH_VIEW(csr, 1, rows, 256, stream, extend_cells, v, cell, from, to);
      else
        SPMV_LAUNCH_VIEW(csr, 1, rows, 256, stream, extend, v, from, to);
    }
    SPMV_LAUNCH(rows, 256, stream, take_cells, rows, level, even, cell, key, order);
  }
  return SortPairs(key, order, rows, 16 * LEVELS, stream);
}

// ------------------------------------------------------------------------------------------------ lists of columns

constexpr int BLOCK = Tuning::TILE_SETUP_BLOCK, MOST = Tuning::TILE_COLUMNS, EACH = MOST / BLOCK, SLOTS = 8192;
constexpr int LANES = 4; // that read a row together
using SortColumns   = cub::BlockRadixSort<int, BLOCK, EACH>;

// A thread block lists the columns of a tile in ascending order, and counts them
template <class I>
__global__ void __launch_bounds__(BLOCK)
    list_columns(View<I> v, int tile, int bits, const int *order, int *columns, int64_t *count, int *most)
{
  __shared__ union {
    int                               slot[SLOTS]; // a hash table
    int                               list[MOST];
    typename SortColumns::TempStorage sort;
  } shared;
  __shared__ int n;
  const int      first = (int)blockIdx.x * tile, end = min(v.units, first + tile);
  int            own[SLOTS / BLOCK], sorted[EACH];

  for (int k = (int)threadIdx.x; k < SLOTS; k += BLOCK) shared.slot[k] = -1;
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  for (int p = first + (int)threadIdx.x / LANES; p < end; p += BLOCK / LANES) {
    const int     u = order[p], len = v.len(u);
    const int64_t start = v.start(u);
    // some of the table stays empty
    for (int q = (int)threadIdx.x % LANES; q < len && LoadShared(&n) <= MOST; q += LANES) {
      const int col = v.col(start, q);
      unsigned  at  = hash((unsigned)col) % SLOTS;
      for (int old; (old = atomicCAS(shared.slot + at, -1, col)) != col; at = (at + 1) % SLOTS) {
        if (old >= 0) continue;
        atomicAdd(&n, 1);
        break;
      }
    }
  }
  __syncthreads();
  const int columns_of_tile = n;
#pragma unroll
  for (int k = 0; k < SLOTS / BLOCK; k++) own[k] = shared.slot[k * BLOCK + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) n = 0;
  for (int k = (int)threadIdx.x; k < MOST; k += BLOCK) shared.list[k] = INT_MAX;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < SLOTS / BLOCK; k++) {
    const int at = own[k] >= 0 ? atomicAdd(&n, 1) : MOST;
    if (at < MOST) shared.list[at] = own[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < EACH; k++) sorted[k] = shared.list[threadIdx.x * EACH + k];
  __syncthreads();
  SortColumns(shared.sort).Sort(sorted, 0, bits); // what fills the list up stays last
#pragma unroll
  for (int k = 0; k < EACH; k++) columns[(int64_t)blockIdx.x * MOST + threadIdx.x * EACH + k] = sorted[k];
  if (threadIdx.x) return;
  atomicMax(most, columns_of_tile);
  count[blockIdx.x] = columns_of_tile;
  if (blockIdx.x == gridDim.x - 1) count[gridDim.x] = 0;
}

__global__ void __launch_bounds__(BLOCK) join_lists(const int *columns, const int64_t *sum, int *start, int *list)
{
  const int at = (int)sum[blockIdx.x], n = (int)(sum[blockIdx.x + 1] - at);
  for (int k = (int)threadIdx.x; k < n; k += BLOCK) list[at + k] = columns[(int64_t)blockIdx.x * MOST + k];
  if (threadIdx.x == 0) start[blockIdx.x] = at;
  if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) start[gridDim.x] = at + n;
}

// Lists the columns of all tiles; leaves tiles->count at 0 if a tile has more than `most`, or if there are too many
cudaError_t List(const SpMVCudaCSR &csr, int rows, int most, cudaStream_t stream, Tiles *tiles)
{
  const int        count   = (rows + tiles->size - 1) / tiles->size;
  const int64_t    threads = (int64_t)count * BLOCK;
  int64_t          listed;
  int              found;
  Scratch<int>     columns(stream), scratch(stream);
  Scratch<int64_t> sum(stream);
  SPMV_TRY(columns.Alloc((size_t)count * MOST));
  SPMV_TRY(sum.Alloc((size_t)count + 1));
  SPMV_TRY(scratch.AllocZero(1));
  SPMV_LAUNCH_VIEW(csr, 1, threads, BLOCK, stream, list_columns, v, tiles->size, BitsFor(rows), tiles->order, columns,
                   sum, scratch);
  SPMV_TRY(ExclusiveSum(sum, (int64_t)count + 1, stream));
  SPMV_TRY(cudaMemcpyAsync(&listed, (int64_t *)sum + count, sizeof(listed), cudaMemcpyDeviceToHost, stream));
  SPMV_TRY(Fetch(&found, (int *)scratch, 1, stream));
  tiles->most = found;
  if (found > most || listed >= INT_MAX || (limits.tile_lines && (double)listed > Tuning::TILE_SHARE * (double)csr.nnz))
    return cudaSuccess;
  SPMV_TRY(tiles->start.Alloc((size_t)count + 1, stream));
  SPMV_TRY(tiles->list.Alloc((size_t)listed, stream));
  SPMV_LAUNCH(threads, BLOCK, stream, join_lists, columns, sum, tiles->start, tiles->list);
  tiles->count = count;
  return cudaSuccess;
}

// ------------------------------------------------------------------------------------------------ choice

struct Sampled {
  unsigned lines; // cache lines of each step times the length of its rows: most entries are in long rows
  unsigned steps; // the lengths of the rows that were sampled
  // entries of the neighbors of sampled rows, and the different columns among them
  unsigned long long entries, different;
};

// A warp takes 32 rows of a window that are sorted by length, if `sort`, and counts the cache lines from which they
// read the x of one of their entries
template <class I> __global__ void sample_lines(View<I> v, bool sort, int samples, Sampled *sampled)
{
  const int w = (int)((blockIdx.x * blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (w >= samples) return;
  const int first = (int)((int64_t)w * v.units / samples), len = v.len(first);
  int       own = -1, n = 0;
  for (int u0 = first; u0 < min(v.units, first + (int)Tuning::SLICES_WINDOW) && n < WARP && len; u0 += WARP) {
    const bool     fits = u0 + lane < v.units && (!sort || v.len(u0 + lane) == len) && v.len(u0 + lane);
    const unsigned all  = __ballot_sync(ALL, fits);
    const int      nth  = __fns(all, 0, lane - n + 1);
    if (lane >= n && lane - n < __popc(all)) own = u0 + nth;
    n += __popc(all);
  }
  const int64_t  line = own < 0 ? -1
                                : (int64_t)v.col(v.start(own), (int)(hash((unsigned)w) % (unsigned)v.len(own))) *
                                     (int)sizeof(Scalar) / 128;
  const unsigned same = __match_any_sync(ALL, line);
  const bool     once = own >= 0 && !(same & ((1u << lane) - 1));
  n                   = __popc(__ballot_sync(ALL, once));
  if (lane || !n) return;
  atomicAdd(&sampled->lines, (unsigned)(n * len));
  atomicAdd(&sampled->steps, (unsigned)len);
}

// A warp counts the columns of a unit's neighbors. In a mesh, neighbors have common neighbors
template <class I> __global__ void sample_neighbors(View<I> v, int samples, Sampled *sampled)
{
  constexpr int       SOME = 16, BITS = 4096, WARPS = 4; // so many neighbors and columns of each
  __shared__ unsigned bit[WARPS][BITS / 32];
  const int           w = (int)((blockIdx.x * blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  unsigned           *own = bit[threadIdx.x / WARP];
  if (w >= samples) return;
  const int     u = (int)((int64_t)w * v.units / samples), len = min(v.len(u), SOME);
  const int64_t start   = v.start(u);
  unsigned      entries = 0, different = 0;
  for (int k = lane; k < BITS / 32; k += WARP) own[k] = 0;
  __syncwarp();
  for (int k = lane; k < SOME * SOME; k += WARP) {
    if (k / SOME >= len) break;
    const int near = v.col(start, k / SOME);
    if (k % SOME >= v.len(near)) continue;
    const unsigned h = hash((unsigned)v.col(v.start(near), k % SOME)) % BITS;
    entries++;
    different += !(atomicOr(own + h / 32, 1u << h % 32) >> h % 32 & 1);
  }
  __syncwarp();
  entries   = __reduce_add_sync(ALL, entries);
  different = __reduce_add_sync(ALL, different);
  if (lane) return;
  atomicAdd(&sampled->entries, (unsigned long long)entries);
  atomicAdd(&sampled->different, (unsigned long long)different);
}

// Whether products read x from many cache lines, and tiles may avoid it
cudaError_t MayPay(const SpMVCudaCSR &csr, bool sort, cudaStream_t stream, bool *pays)
{
  const int        samples = Tuning::SAMPLE;
  Scratch<Sampled> sample(stream);
  Sampled          found;
  SPMV_TRY(sample.AllocZero(1));
  SPMV_LAUNCH_VIEW(csr, 1, samples * WARP, 128, stream, sample_lines, v, sort, samples, sample);
  SPMV_LAUNCH_VIEW(csr, 1, samples * WARP, 128, stream, sample_neighbors, v, samples, sample);
  SPMV_TRY(Fetch(&found, (Sampled *)sample, 1, stream));
  *pays = !limits.tile_lines || ((int64_t)found.lines >= (int64_t)found.steps * limits.tile_lines &&
                                 (double)found.different <= Tuning::TILE_CLOSE * (double)found.entries);
  return cudaSuccess;
}

} // namespace

cudaError_t FindTiles(const SpMVCudaCSR &csr, const Survey &survey, const SliceRules &rules, cudaStream_t stream,
                      Tiles *tiles)
{
  const int rows = (int)csr.m, most = PetscMin(MOST, (int)(Tuning::TILE_SHARED / sizeof(Scalar)));
  bool      pays;
  int       processors;

  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
  if (!rows || csr.m != csr.n || survey.empty > rows / 2 || rules.threads || survey.longest > Tuning::TILE_LONGEST ||
      rows < limits.tile_least * processors || (limits.tile_lines && survey.local()))
    return cudaSuccess;
  SPMV_TRY(MayPay(csr, rules.sigma != 1, stream, &pays));
  if (!pays) return cudaSuccess;
  SPMV_TRY(Cluster(csr, rows, stream, tiles->order));

  // as many tiles as fit on the device at a time, or a multiple; smaller ones if one of them has too many columns
  const int64_t together = limits.tile_least ? (int64_t)processors * Tuning::TILES : 1;
  for (int largest = most / Tuning::TILE_COLUMNS_PER_ROW; largest >= Tuning::TILE_SMALLEST; largest /= 2) {
    const int64_t count = (rows + largest * together - 1) / (largest * together) * together;
    tiles->size         = (int)((rows + count - 1) / count + WARP - 1) / WARP * WARP;
    SPMV_TRY(List(csr, rows, most, stream, tiles));
    if (tiles->most <= most) break;
  }
  return cudaSuccess;
}

} // namespace spmv
