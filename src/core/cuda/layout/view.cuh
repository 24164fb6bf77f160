/*
  The CSR matrix that set-up and fills read: a view of it with node blocks of any size, statistics of its pattern, and
  the sorts and scans that set-up uses.
*/
#pragma once

#include "core/cuda/base/launch.cuh"
#include "core/cuda/spmvcuda.h"
#include "core/cuda/base/tuning.cuh"
#include <memory>

namespace spmv {

/*
  A CSR pattern of bs x bs node blocks (bs = 1: single entries). A unit has bs rows, and it has every block in which at
  least one of these rows has an entry. If all rows of a unit have the same complete blocks, the blocks are read from
  the CSR itself. Other units are listed: a list has their blocks in ascending order, and their start() is negative
*/
template <class I> struct View {
  const I *i, *j;
  int      units, bs;
  // where the blocks of each unit begin in the list, and the end. Units that are not listed have none. NULL: no unit is
  // listed
  const int64_t *first;
  const int     *column; // block column of each listed block
  // for each row of a listed block: the position of its first entry in A, times 256, plus a bit for each place with an
  // entry
  const uint64_t *row;

  __host__ __device__ bool listed(int u) const
  {
    return first && first[u + 1] > first[u];
  }
  __host__ __device__ int64_t start(int u) const
  {
    return listed(u) ? ~first[u] : (int64_t)i[(int64_t)u * bs];
  }
  __host__ __device__ int len(int u) const
  {
    return (int)(listed(u) ? first[u + 1] - first[u] : (i[(int64_t)u * bs + 1] - i[(int64_t)u * bs]) / bs);
  }
  __host__ __device__ int col(int64_t start, int q) const
  {
    return bs == 1 ? (int)j[start + q] : start < 0 ? column[~start + q] : (int)(j[start + (int64_t)q * bs] / bs);
  }
};

// The node blocks of a matrix, with the list for a View if some of them are incomplete
struct Nodes {
  struct List {
    Array<int64_t>  first;
    Array<int>      column;
    Array<uint64_t> row;
    int64_t         blocks; // number of blocks of all units
  };
  int                         bs;
  std::shared_ptr<const List> list; // NULL: all blocks are complete

  Nodes(int size = 1) : bs(size)
  {
  }
  int64_t Blocks(const SpMVCudaCSR &csr) const
  {
    return list ? list->blocks : csr.nnz / ((int64_t)bs * bs);
  }
  size_t Bytes() const
  {
    return list ? list->first.Bytes() + list->column.Bytes() + list->row.Bytes() : 0;
  }
  template <class I> View<I> Of(const SpMVCudaCSR &csr) const
  {
    View<I> v = {(const I *)csr.i, (const I *)csr.j, (int)(csr.m / bs), bs, nullptr, nullptr, nullptr};
    if (list) {
      v.first  = list->first;
      v.column = list->column;
      v.row    = list->row;
    }
    return v;
  }
};

// Groups of consecutive rows with the same columns in the same order
struct RowGroups {
  static constexpr int MOST  = 8; // rows
  int                  count = 0;
  Array<int>           first; // first row of each group, in ascending order, and the number of rows
};

// Rows whose slices a thread block multiplies with a copy of the x that they read: tiles.cu
struct Tiles {
  int        count = 0, size = 0, most = 0; // size: rows of each tile; most: columns of a tile
  Array<int> order;                         // of the rows
  Array<int> start, list;                   // columns start[t] to start[t + 1] - 1 of the list are tile t's
};

// Calls f with a view of the CSR's index type: PetscInt, or int for matrices that are created here
template <class F> cudaError_t WithView(const SpMVCudaCSR &csr, const Nodes &nodes, F f)
{
#if defined(PETSC_USE_64BIT_INDICES)
  if (csr.index_bytes == 8) return f(nodes.Of<int64_t>(csr));
#endif
  return csr.index_bytes == 4 ? f(nodes.Of<int>(csr)) : cudaErrorNotSupported;
}

// Launches a kernel with the view `v` as its first argument
#define SPMV_LAUNCH_VIEW(csr, nodes, ...)           \
  SPMV_TRY(spmv::WithView(csr, nodes, [&](auto v) { \
    SPMV_LAUNCH(__VA_ARGS__);                       \
    return cudaSuccess;                             \
  }))

// The statistics from which a layout is chosen
struct Survey {
  unsigned long long natural; // entries of 32-unit slices in the natural order, padding included
  unsigned long long bulk;    // entries in units longer than Tuning::LONG
  int                longest, empty;
  // number of sampled columns, and how many of them are within Tuning::NEAR of the diagonal
  unsigned looked, near;

  bool local() const // neighboring units read neighboring x, so their order matters
  {
    return near > looked / 2;
  }
};
cudaError_t TakeSurvey(const SpMVCudaCSR &, const Nodes &, cudaStream_t, Survey *);

constexpr int MAX_NODE = 6; // the largest node blocks; matrices with larger ones are stored entry by entry

// Calls f with the size of node blocks as a compile-time constant
template <class F> auto WithNodeSize(int bs, F f)
{
  switch (bs) {
  case 1: return f(std::integral_constant<int, 1>());
  case 2: return f(std::integral_constant<int, 2>());
  case 3: return f(std::integral_constant<int, 3>());
  case 4: return f(std::integral_constant<int, 4>());
  case 5: return f(std::integral_constant<int, 5>());
  default: return f(std::integral_constant<int, MAX_NODE>());
  }
}

// Counts over a sample of rows, or of units of several rows
struct Sample {
  unsigned long long entries;
  // entries with a stored column in slices: all but those of long rows that are one run of columns
  unsigned long long indexed;
  // node blocks of the units, or entries of the rows that begin a run of rows with equal columns
  unsigned long long blocks;
};

// What is known of a pattern before its layout is chosen. The host waits for the device once for all of it
struct Findings {
  Survey survey;               // of single entries
  int    broken[MAX_NODE + 1]; // [s]: A does not consist of dense s x s blocks on an s x s grid
  Sample units[MAX_NODE + 1];  // [s]: units of s rows
  Sample rows;
};
// Its parts, which write to zeros: the checks for complete blocks, and the samples
cudaError_t StartChecks(const SpMVCudaCSR &, int node, int *broken, cudaStream_t);
cudaError_t SampleUnits(const SpMVCudaCSR &, int node, Sample *, cudaStream_t);
cudaError_t SampleRows(const SpMVCudaCSR &, Sample *, cudaStream_t);
// node: the size of node blocks to look for; 0: all sizes, and row groups; 1: none
cudaError_t Find(const SpMVCudaCSR &, int node, cudaStream_t, Findings *);

// The largest s such that A consists of dense s x s blocks on an s x s grid; 1 if none
int NodeSize(const SpMVCudaCSR &, int node, const Findings &);
// Finds node blocks, some of them incomplete, if they take clearly fewer bytes than single entries; otherwise *nodes is
// unchanged. value: bytes per value
cudaError_t FindIncomplete(const SpMVCudaCSR &, int node, const Findings &, size_t value, cudaStream_t, Nodes *nodes);
// Lists the s x s blocks of any matrix; *nodes is unchanged if there are more than `most` blocks, or if the columns of
// an incomplete unit do not ascend
cudaError_t ListBlocks(const SpMVCudaCSR &, int s, int64_t most, cudaStream_t, Nodes *nodes);
// Finds row groups if they save enough loads of columns and of x; otherwise groups->count stays 0
cudaError_t FindGroups(const SpMVCudaCSR &, const Findings &, cudaStream_t, RowGroups *groups);
// Lists the numbers r below count with sum[r + 1] > sum[r], where sum[] are prefix sums of flags
cudaError_t ListFlagged(int count, const int64_t *sum, int *list, cudaStream_t);
// A^T: its row offsets, its columns (rows of A), and the position of each entry in A
cudaError_t TransposeCSR(const SpMVCudaCSR &, cudaStream_t, Array<int> &it, Array<int> &jt, Array<int> &value_index);

cudaError_t ExclusiveSum(Array<int64_t> &, int64_t count, cudaStream_t); // in place
// Stable, by the low `bits` bits of the keys
template <class K, class V>
cudaError_t SortPairs(Array<K> &key, Array<V> &value, int64_t count, int bits, cudaStream_t);

inline int BitsFor(uint64_t largest)
{
  int bits = 1;
  while (bits < 64 && largest >> bits) bits++;
  return bits;
}

/*
  Loads, for each lane, `count` (at most 4 PER) consecutive values, the first one from a[at]; if value_index is not
  NULL, a value is read from a[value_index[...]] instead. Four lanes together read the values of one lane, because 32
  scattered reads at once would keep the cache busy for 32 cycles. The values are stored in `shared`, with a distance of
  `stride` between lanes. All lanes call it. All loads are issued before the first value is used; copies without
  registers (CopyAsync) would take a third longer here.
*/
template <int PER>
__device__ __forceinline__ void Gather(const Scalar *a, const int *value_index, int64_t at, int count, int stride,
                                       Scalar *shared)
{
  const int lane = threadIdx.x % WARP, group = lane / 4;
  Scalar    v[4][PER];
  int       n[4];
#pragma unroll
  for (int r = 0; r < 4; r++) {
    const int64_t first = __shfl_sync(ALL, at, r * 8 + group) + lane % 4;
    n[r]                = __shfl_sync(ALL, count, r * 8 + group) - lane % 4;
#pragma unroll
    for (int k = 0; k < PER; k++) {
      const int64_t p = first + k * 4;
      if (k * 4 < n[r]) v[r][k] = a[value_index ? value_index[p] : p];
    }
  }
  Issue(); // after this, the previous contents of `shared` have also been read
#pragma unroll
  for (int r = 0; r < 4; r++) {
#pragma unroll
    for (int k = 0; k < PER; k++) {
      if (k * 4 < n[r]) shared[(r * 8 + group) * stride + lane % 4 + k * 4] = v[r][k];
    }
  }
  __syncwarp();
}

// Reads row r of block q of the listed unit that begins at start
template <int BS, class I>
__device__ __forceinline__ void ReadListed(const View<I> &v, int64_t start, int q, int r, const Scalar *a,
                                           const int *value_index, Scalar *to)
{
  const uint64_t row    = v.row[(~start + q) * BS + r];
  const unsigned places = (unsigned)row;
#pragma unroll
  for (int c = 0; c < BS; c++) {
    const int64_t p = (int64_t)(row >> 8) + __popc(places & ((1u << c) - 1));
    to[c]           = places >> c & 1 ? Num::present(a[value_index ? value_index[p] : p]) : Num::absent();
  }
}

} // namespace spmv
