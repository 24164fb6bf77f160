/*
  The definition of a slice, the assignment of matrix entries to its lanes, and the arrays that the kernels read.
*/
#pragma once

#include "columns.cuh"
#include "partsums.cuh"

namespace spmv {

enum Mode { WIDE, NARROW, LINE };

constexpr int      MAX_LU    = 3; // 2^3 units per lane
constexpr unsigned NO_COLUMN = 0xffff;

struct __align__(32) Slice
{
  unsigned value;          // first step; for row groups, first step times rows, summed over the slices
  unsigned index;          // position of its columns, in pieces of 32 bytes
  int      steps;          // steps of each unit
  unsigned lt : 3, lu : 2; // log2 of the lanes per unit, and of the units per lane
  unsigned mode : 2;
  bool     is_part : 1;
  unsigned units : 9, tail : 6, : 1; // tail: lanes of the last step, for LINE and row groups
  unsigned more : 3;                 // rows of each row group after the first
  bool     has_groups : 1;
  int      first; // place of the first unit; for a part, its unit
  int      base;  // smallest column for NARROW, first column for LINE
  int      part;  // for a part: its number within the long unit
  int      sums;  // for a part: the first partial sum of its long unit

  __host__ __device__ int Rows() const // of each row group; 1 if there are none
  {
    return more + 1;
  }
};

// The first value of a slice in an array of values
template <class V>
__host__ __device__ __forceinline__ const V *FirstValue(const V *value, const Slice &self, int per_entry = 1)
{
  return value + (int64_t)self.value * (WARP * per_entry);
}

struct Tile {
  int slice, slice_end, list, list_end; // its slices, and its columns in the list
};

struct SliceArgs {
  int          slices;
  const Slice *slice;
  const int   *order; // unit at each place, or first row of each row group; NULL: natural order
  const int   *parts; // at the first partial sum of each long unit: its number of parts
  const void  *value; // Single or Scalar
  const char  *index;
  Scalar      *partial;
  unsigned    *arrived;
  uint64_t     policy;      // for loads of values, see L2Policy()
  bool         settled;     // wait for the previous kernel only before x is read: see Kernel
  unsigned     last_blocks; // see AwaitInTurn()
  const Tile  *tile;        // NULL: there are no tiles
  const int   *list;        // of the tiles' columns: a slice has distances from its base in the list
};

__device__ __forceinline__ Slice ReadSlice(const SliceArgs &args, int s)
{
  const int4 *from = (const int4 *)(args.slice + s), half[2] = {LoadOrdered(from), LoadOrdered(from + 1)};
  Slice       self;
  memcpy(&self, half, sizeof(self));
  return self;
}

// Products with several columns, one after the other in one kernel: `blocks` thread blocks for each column
struct EachColumn {
  SliceArgs args;
  Columns   columns;
  unsigned  blocks;
};

// The policy for the loads of values, which take `values` bytes; x and y take `vectors` bytes (cache.cu)
cudaError_t ChoosePolicy(size_t values, size_t vectors, cudaStream_t, uint64_t *policy);

// Products of single entries with several columns (entriescolumns.cu)
class EntriesByRows {
public:
  static bool Pays(const _n_SpMVCudaStore &, int64_t columns);
  // The first call allocates the memory that Mult() needs and keeps it. Returns false if that failed, or while a graph
  // is captured, when nothing can be allocated. order: the row at each place, or NULL; partial: the number of partial
  // sums of a product with a vector
  bool        Reserve(const _n_SpMVCudaStore &, const int *order, size_t partial, cudaStream_t);
  cudaError_t Mult(_n_SpMVCudaStore &, const SliceArgs &, SpMVCudaForm, const Operands &, const Columns &,
                   cudaStream_t);
  size_t      Bytes() const
  {
    return rows.Bytes() + sums.Bytes() + parts.Bytes();
  }

private:
  cudaError_t Allocate(const _n_SpMVCudaStore &, const int *order, size_t partial, cudaStream_t);
  cudaError_t MultPanel(_n_SpMVCudaStore &, const SliceArgs &, SpMVCudaForm, const Operands &, const Columns &,
                        int width, int count, cudaStream_t);

  Kernel        to_rows, to_columns;
  ColumnKernels product;
  Array<Scalar> rows, sums, parts; // X by rows; Y, if it is collected by rows; partial sums
  bool          refused = false;   // the memory could not be allocated
};

// A matrix in slices, without values: slicesform.cu
struct SlicedStore : _n_SpMVCudaStore {
  int             bs = 1, chunk = 0, split = 0, places = 0; // split: long units, in parts; places: units in slices
  bool            grouped    = false;                       // units are row groups
  int64_t         steps      = 0;                           // of all slices; of row groups, times rows
  int             longest    = 0;                           // most steps of a slice that is no part
  int             many       = 0;                           // some slices have several units per lane
  int             long_units = 0;                           // long units, or rows in long row groups
  SliceArgs       args       = {};
  Array<Slice>    slice;
  Array<int>      order;
  Array<int>      parts;
  Array<Scalar>   partial;
  Array<char>     index;
  Array<unsigned> arrived;
  int             most = 0; // columns of a tile
  Array<Tile>     tile;
  Array<int>      list;

  // Puts the units in the order in which they form slices, without the empty ones if products write only some rows.
  // rows: of the row group at each place
  cudaError_t Sort(const SpMVCudaCSR &, const Survey &, const SliceRules &, const RowGroups *, cudaStream_t,
                   Array<int> *rows);
  // rows: NULL if there are no row groups. start: of the columns of tiles
  cudaError_t Form(const SpMVCudaCSR &, const SliceRules &, const int *rows, const int *start, cudaStream_t);
  cudaError_t IndexColumns(const SpMVCudaCSR &, const SliceRules &, cudaStream_t);
};

// The kernels for row groups (groups.cu); with sums, only for values that are not stored as Single
const void *GroupsProduct(bool single, Use);

// The column of an entry of a slice with 16-bit distances
__device__ __forceinline__ int Far(const int *list, int at)
{
  return list ? __ldg(list + at) : at;
}
// The column of a lane's entry in step k, or -1 if it has none
__device__ __forceinline__ int Column(const Slice &self, int mode, const char *index, const int *list, int k, int steps,
                                      int lane)
{
  if (mode == WIDE) return __ldcs((const int *)index + k * WARP + lane);
  if (mode == NARROW) {
    const int distance = __ldcs((const unsigned short *)index + k * WARP + lane);
    return distance == (int)NO_COLUMN ? -1 : Far(list, self.base + distance);
  }
  return k == steps - 1 && lane >= self.tail ? -1 : self.base + k * WARP + lane;
}

// A lane's entries in one of its units of a slice: entry, entry + 2^lt, ... below end. They are counted in the CSR row
// (the unit's first row) that begins at start and has len entries
struct LaneEntries {
  int64_t start;
  int     entry, end, len;
};

template <class I>
__device__ LaneEntries lane_entries(const View<I> &v, const Slice &self, const int *order, int chunk, int u)
{
  const int   lane = threadIdx.x % WARP, lu = self.lu, alone = WARP >> self.lt, r = lu ? u * WARP + lane : lane % alone;
  LaneEntries e = {0, lu ? 0 : lane / alone, 0, 0};
  if (r < self.units) {
    const int unit = self.is_part ? self.first : order ? order[self.first + r] : self.first + r;
    e.start        = v.start(unit);
    e.end = e.len = v.len(unit);
  }
  if (self.is_part) {
    e.entry += self.part * chunk;
    e.end = min(e.end, (self.part + 1) * chunk);
  }
  return e;
}

// Calls f(step, own, entry within the CSR row, beginning of the row) for a lane's entries of a slice; all lanes have
// the same steps
template <class I, class F>
__device__ void entries(const View<I> &v, const Slice &self, const int *order, int chunk, F f)
{
  const int lt = self.lt, U = 1 << self.lu;
  for (int u = 0; u < U; u++) {
    LaneEntries e = lane_entries(v, self, order, chunk, u);
    for (int k = 0; k < self.steps; k++, e.entry += 1 << lt) f(k * U + u, e.entry < e.end, e.entry, e.start);
  }
}

} // namespace spmv
