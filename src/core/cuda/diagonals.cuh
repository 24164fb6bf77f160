/*
  The arrays of a matrix that is stored by diagonals, as the kernels read them.
*/
#pragma once

#include "stores.cuh"

namespace spmv {

struct DiagonalArgs {
  int             units, slices, steps, words; // steps: per slice, if all have the same number; words: of `equal`, per slice
  const int2     *pattern_of_slice;            // x: first step of its pattern, negative if MultInterior() skips the slice; y: marks of the first 32 steps, MORE
  const unsigned *first_value;                 // the step at which the values of each slice begin, and the end of the last; used if slices differ in length
  const unsigned *more;                        // where each slice's steps beyond `steps` begin, counted after those of all slices. NULL: no slice has any
  const int2     *step;                        // steps of the patterns. x: offset; y: lanes
  const unsigned *equal;                       // marks of the steps after the first 32
  const void     *value;                       // Single or Scalar
  const void     *equal_value;                 // the value of each marked step, in the order of the steps: adjacent marked steps share a cache line
  unsigned        block_shift;                 // for MultFused(): thread block b works on the slices of block b + block_shift, modulo the grid; otherwise 0
  Offdiagonal     offdiag;
};

// A bit among the marks of a slice: it has more than DiagonalArgs::steps steps. No mark uses this bit, because these kernels exist only for a few numbers of
// steps
constexpr int MORE = 1 << 30;

// The product accesses .x and .y directly, and compares pattern_of_slice[].x with 0 directly: functions, or a variable, would change its machine code
__host__ __device__ __forceinline__ int Offset(int2 step)
{
  return step.x;
}
__host__ __device__ __forceinline__ unsigned Lanes(int2 step)
{
  return (unsigned)step.y;
}

} // namespace spmv
