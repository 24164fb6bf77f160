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

inline int Log2(int power)
{
  int log = 0;
  while (1 << log < power) log++;
  return log;
}

// The smallest power of two that is at least x, from `least` to `most`
inline int PowerFor(double x, int least, int most)
{
  while (least < most && least < x) least *= 2;
  return least;
}

} // namespace spmv
