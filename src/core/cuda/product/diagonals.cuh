/*
  The arrays of a matrix that is stored by diagonals, as the kernels read them.
*/
#pragma once

#include "core/cuda/stores.cuh"

namespace spmv {

// The pattern that most slices have, of those with an entry in every lane of each step: that of the inner points of a
// grid. Its offsets are arguments of the kernel, so that products need not load its steps
struct FrequentPattern {
  static constexpr int MOST  = 32; // offsets
  int                  first = -1; // its first step; -1: there is no such pattern, or it has more offsets
  int                  offset[MOST];
};

struct DiagonalArgs {
  int units, slices;
  int steps; // per slice, if all have the same number; otherwise the most steps of a slice
  // for kernels whose warps multiply several slices
  int         slices_of_warp;
  const int2 *pattern_of_slice; // x: first step of its pattern; y: marks of the first 32 steps, for single entries
  // the step at which the values of each slice begin, and the end of the last; used if slices differ in length
  const unsigned *first_value;
  const int2     *step; // steps of the patterns. x: offset; y: lanes
  // node blocks: the lanes of each step that have its equal_value; 0: not marked
  const unsigned *equal;
  const void     *value; // Single or Scalar
  // the value of each marked step, in the order of the steps: adjacent marked steps share a cache line
  const void     *equal_value;
  FrequentPattern frequent;
  bool            settled;     // wait for the previous kernel only before x is read: see Kernel
  unsigned        last_blocks; // see AwaitInTurn()
  // FUSED: thread block b of those with rows works on the slices of block b + block_shift, modulo their number
  unsigned block_shift;
};

// The product accesses .x and .y directly, and compares pattern_of_slice[].x with 0 directly: functions, or a variable,
// would change its machine code
__host__ __device__ __forceinline__ int Offset(int2 step)
{
  return step.x;
}
__host__ __device__ __forceinline__ unsigned Lanes(int2 step)
{
  return (unsigned)step.y;
}

// The number of steps of the slices: any number, or the same number for all
enum Lengths { ANY_LENGTH, SAME_LENGTH };

// What a kernel is compiled for: the size of node blocks, the number of steps, 0 for any number, the lengths, and
// whether the warps of products without sums multiply several slices, if they may
struct DiagonalsVariant {
  int     bs, steps;
  Lengths lengths;
  bool    loops;
};

// What a fill reads and writes
struct FillArgs {
  DiagonalArgs  args;
  int           bs;
  bool          uniform; // all slices have args.steps steps
  const int    *value_index;
  const Scalar *a;
  char         *value, *equal_value;
  int2         *pattern_of_slice;
  unsigned     *equal;
};

// A matrix in diagonals, without values: diagonalsform.cu
struct DiagonalStore : _n_SpMVCudaStore {
  int             bs      = 1;
  bool            uniform = true;
  DiagonalArgs    args    = {};
  int64_t         steps   = 0; // stored steps
  Array<unsigned> first_value, equal;
  Array<int2>     pattern_of_slice, step;
  Array<char>     value, equal_value;

  // Finds the diagonals of all slices. *formed is false if they would store more than `limit`, or cannot be stored
  cudaError_t Form(const SpMVCudaCSR &, int64_t limit, bool *formed, cudaStream_t);

private:
  cudaError_t StorePatterns(const SpMVCudaCSR &, Array<uint64_t> &hash, Array<int> &slice, bool *stored, cudaStream_t);
  cudaError_t Allocate(Array<int64_t> &count, cudaStream_t);
};

/*
  Kernels of the product that most programs do not use. They are in files of their own, because the first use of any
  kernel loads all kernels of its file, and that takes about 25 us for each of them on an H200.
*/
const void *DiagonalsFused(const DiagonalsVariant &);
const void *DiagonalsFusedDots(const DiagonalsVariant &);
const void *DiagonalsWithSums(const DiagonalsVariant &);
const void *DiagonalsSingle(Use, const DiagonalsVariant &); // MULT or FUSED, values stored as Single
cudaError_t FillDiagonalsSingle(const SpMVCudaCSR &, const Nodes &, const FillArgs &, cudaStream_t);

} // namespace spmv
