/*
  What diagonals store, as their kernels read it.
*/
#pragma once

#include "stores.cuh"

namespace spmv {

struct DiagonalArgs {
  int             units, slices, steps, words; // steps of a slice where all have the same number; words of `equal` a slice
  const int2     *pattern_of_slice;            // x: its pattern's first step, negative if MultInterior() skips the slice; y: marks of its first 32 steps, MORE
  const unsigned *first_value;                 // of each slice, and the end of the last: the step at which its values begin, if slices differ in length
  const unsigned *more;                        // where the steps of a slice beyond `steps` begin, counted after those of all slices; NULL: no slice has any
  const int2     *step;                        // of patterns. x: offset; y: lanes
  const unsigned *equal;                       // marks of further steps
  const void     *value;                       // as Single or Scalar
  const void     *equal_value;                 // of each marked step, in the order of the steps: marked steps next to each other share a cache line
  unsigned        block_shift;                 // of MultFused(): the thread block that works on the first slices is the one so many places later; else 0
  Offdiagonal     offdiag;
};

// A bit among the marks of a slice: it has steps beyond DiagonalArgs::steps. No mark needs the bit, as there are kernels for at most 9 steps then
constexpr int MORE = 1 << 30;

// The product reads .x and .y itself, and compares pattern_of_slice[].x with 0 itself: with functions, or a variable, its machine code is another
__host__ __device__ __forceinline__ int Offset(int2 step)
{
  return step.x;
}
__host__ __device__ __forceinline__ unsigned Lanes(int2 step)
{
  return (unsigned)step.y;
}

} // namespace spmv
