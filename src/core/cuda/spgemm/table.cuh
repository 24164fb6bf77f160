/*
  Tables of columns in shared memory, filled by all threads of a group: up to 32 lanes, or a thread block.
*/
#pragma once

#include "gemm.cuh"

namespace spmv {

template <bool BLOCK> __device__ __forceinline__ void SyncGroup()
{
  if (BLOCK)
    __syncthreads();
  else
    __syncwarp(); // of all groups of the warp
}

__device__ __forceinline__ unsigned PlaceOf(int column, int shift)
{
  return ((unsigned)column * 0x9E3779B1u) >> shift;
}

// Inserts a column, and returns whether it is new. *place: where it is. The table must have a free place
__device__ __forceinline__ bool Insert(int *table, int places, int shift, int column, unsigned *place)
{
  unsigned at = PlaceOf(column, shift);
  for (;; at = (at + 1) & (unsigned)(places - 1)) {
    int found = LoadShared(table + at);
    if (found == EMPTY) {
      found = atomicCAS(table + at, EMPTY, column);
      if (found == EMPTY) {
        *place = at;
        return true;
      }
    }
    if (found == column) {
      *place = at;
      return false;
    }
  }
}

// The place of a column in a table that is complete, or -1
__device__ __forceinline__ int Find(const int *table, int places, int shift, int column)
{
  unsigned at = PlaceOf(column, shift);
  for (;; at = (at + 1) & (unsigned)(places - 1)) {
    const int found = table[at];
    if (found == column) return (int)at;
    if (found == EMPTY) return -1;
  }
}

// Sorts the table, a power of two; EMPTY becomes the last
template <bool BLOCK> __device__ __forceinline__ void SortTable(int *table, int places, int lane, int lanes)
{
  for (int size = 2; size <= places; size *= 2) {
    for (int by = size / 2; by; by /= 2) {
      SyncGroup<BLOCK>();
      for (int k = lane; k < places / 2; k += lanes) {
        const int  at = (k & ~(by - 1)) * 2 + (k & (by - 1));
        const int  a = table[at], b = table[at + by];
        const bool ascend = !(at & size);
        if ((a > b) == ascend) {
          table[at]      = b;
          table[at + by] = a;
        }
      }
    }
  }
  SyncGroup<BLOCK>();
}

// The same for the small tables of a warp, all lanes of which call it: the columns are moved to the beginning, and each
// lane counts how many are smaller than its own. This executes a third of the instructions, or as many at most
__device__ __forceinline__ void RankTable(int *table, int places, int lane, int lanes)
{
  constexpr int  OWN   = 6; // a lane has an eighth of the places, or a quarter of 16, or half of 8; not all are filled
  const int      first = threadIdx.x % WARP / lanes * lanes;
  const unsigned group = (lanes < WARP ? (1u << lanes) - 1 : ALL) << first, below = (1u << threadIdx.x % WARP) - 1;
  int            n = 0, column[OWN], rank[OWN];
  __syncwarp();
  for (int p = lane; p < places; p += lanes) {
    const int      found  = table[p];
    const unsigned filled = __ballot_sync(ALL, found != EMPTY) & group;
    __syncwarp();                                                  // a vote does not order accesses
    if (found != EMPTY) table[n + __popc(filled & below)] = found; // a place that has been read
    n += __popc(filled);
    __syncwarp();
  }
  if (lane < 4 && n + lane < places) table[n + lane] = EMPTY;
  __syncwarp();
#pragma unroll
  for (int k = 0; k < OWN; k++) {
    column[k] = lane + k * lanes < n ? table[lane + k * lanes] : EMPTY;
    rank[k]   = 0;
  }
  for (int p = 0; p < n; p += 4) {
    const int4 other = *(const int4 *)(table + p);
#pragma unroll
    for (int k = 0; k < OWN; k++) {
      if (k * lanes < n)
        rank[k] += (other.x < column[k]) + (other.y < column[k]) + (other.z < column[k]) + (other.w < column[k]);
    }
  }
  __syncwarp();
#pragma unroll
  for (int k = 0; k < OWN; k++) {
    if (column[k] != EMPTY) table[rank[k]] = column[k];
  }
  __syncwarp();
}

// The smallest power of two that is at least x, from `least` to `most`
inline int PowerFor(double x, int least, int most)
{
  while (least < most && least < x) least *= 2;
  return least;
}

} // namespace spmv
