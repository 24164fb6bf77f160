/*
  Fills of slices of node blocks copy the values of a slice to shared memory first, one slice per thread block: all its
  steps if they fit, otherwise some of them at a time. The values of a unit are consecutive in A, so that they are read
  in long pieces. Reading a few columns of all rows at a time, as one warp per slice would, reads parts of cache lines
  twice.
*/
#pragma once

#include "view.cuh"

namespace spmv {

// How a fill of node blocks is launched
struct Staging {
  int    steps;  // of a slice that are copied at a time
  size_t shared; // bytes of shared memory per thread block
};

/*
  Chooses how many steps of a slice are copied at a time: all of `steps`, the most that the slices are expected to have,
  if two thread blocks then fit on a multiprocessor; otherwise as many as fit, a multiple of `batch`. Of two thread
  blocks, one can read values while the other writes them.
*/
template <int BS> cudaError_t ChooseStaging(const void *kernel, int64_t steps, int batch, Staging *s)
{
  constexpr size_t ALWAYS = 48 << 10; // bytes that any kernel may use
  int              all, reserved, most;
  SPMV_TRY(DeviceHas(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &all));
  SPMV_TRY(DeviceHas(cudaDevAttrReservedSharedMemoryPerBlock, &reserved));
  SPMV_TRY(DeviceHas(cudaDevAttrMaxSharedMemoryPerBlockOptin, &most));
  // fit: blocks of a lane
  const int limit = PetscMin(all / 2 - reserved, most), fit = (limit / (int)(WARP * sizeof(Scalar)) - 1) / (BS * BS);
  s->steps  = steps <= fit ? PetscMax((int)steps, 1) : PetscMax(fit / batch, 1) * batch;
  s->shared = ((size_t)s->steps * BS * BS + 1) * WARP * sizeof(Scalar);
  // The attribute belongs to the kernel: set it to the limit and not to what this matrix needs, because another matrix
  // may need more
  return s->shared > ALWAYS ? cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit)
                            : cudaSuccess;
}

/*
  Copies node blocks of units to `shared`: `count` blocks from `first` on, of the `len` blocks of the unit of each of
  the first `units` lanes (count is 0 in the other lanes). All warps of the thread block call it with the same
  arguments, and then __syncthreads(). Returns the position of the lane's first block. Each row of a unit is stored as
  in A, one after the other, and listed units as if their blocks were complete, with absent numbers. See ReadStaged().
*/
template <int BS, class I>
__device__ __forceinline__ int StageBlocks(const View<I> &v, int units, int64_t start, int len, int first, int count,
                                           const Scalar *a, const int *value_index, Scalar *shared)
{
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  const int size = count * (BS * BS) | 1; // an odd number, so that lanes which read the same entry read different banks
  int       end  = size;
  for (int by = 1; by < WARP; by <<= 1) {
    const int before = __shfl_up_sync(ALL, end, by);
    if (lane >= by) end += before;
  }
  const int position = end - size;
  for (int u = warp; u < units; u += warps) {
    const int64_t from = __shfl_sync(ALL, start, u);
    const int     all = __shfl_sync(ALL, len, u), skip = __shfl_sync(ALL, first, u), n = __shfl_sync(ALL, count, u),
              to    = __shfl_sync(ALL, position, u);
    const auto copy = [&](int64_t p, int size, Scalar *s) {
      for (int q = lane; q < size; q += WARP) CopyAsync(s + q, a + (value_index ? value_index[p + q] : p + q));
    };
    if (from < 0) continue;
    if (n == all)
      copy(from, n * (BS * BS), shared + to);
    else
      for (int r = 0; r < BS; r++) copy(from + ((int64_t)r * all + skip) * BS, n * BS, shared + to + r * n * BS);
  }
  if (v.first && start < 0) {
#pragma unroll 1
    for (int q = warp; q < count; q += warps) {
      for (int r = 0; r < BS; r++)
        ReadListed<BS>(v, start, first + q, r, a, value_index, shared + position + (r * count + q) * BS);
    }
  }
  AwaitCopies();
  return position;
}

// A value that StageBlocks() has copied. Only in listed units may it look absent
__device__ __forceinline__ Scalar ReadStaged(const Scalar *shared, int at, bool listed)
{
  return listed ? shared[at] : Num::present(shared[at]);
}

} // namespace spmv
