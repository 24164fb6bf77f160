/*
  What diagonals store, as their kernels read it.
*/
#pragma once

#include "stores.cuh"

namespace spmv {

struct DiagonalArgs {
  int             units, slices, steps, words; // steps of a slice where all have the same number; words of `equal` a slice
  const int2     *pattern_of_slice;            // x: its pattern's first step, negative if MultInterior() skips the slice; y: marks of its own first 32 steps
  const unsigned *first_value;                 // of each slice, and the end of the last: the step at which its values begin, if slices differ in length
  const unsigned *more;                        // the same of the steps that few slices have beyond `steps`, after those of all slices; NULL: none has
  const int2     *step;                        // of patterns. x: offset; y: lanes
  const unsigned *equal;                       // marks of further steps
  const void     *value;                       // as Single or Scalar
  unsigned        block_shift;                 // of MultFused(): the thread block that works on the first slices is the one so many places later; else 0
  Offdiagonal     offdiag;
};

// Among the marks of a slice, of which a uniform one has at most 9 steps: it has some beyond DiagonalArgs::steps
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
