/*
  Chooses which values stay in the L2 cache from one product to the next.
*/
#include "core/cuda/product/slices.cuh"
#include <atomic>

namespace spmv {

constexpr int SHARES = 16;

static __global__ void write_policies(uint64_t *policy)
{
  policy[threadIdx.x] = L2Policy((int)threadIdx.x);
}

// All policies are read from each device once
cudaError_t ChoosePolicy(size_t values, size_t vectors, cudaStream_t stream, uint64_t *policy)
{
  static std::atomic<uint64_t> of_devices[DEVICES][SHARES]; // 0: not yet
  int                          device, cache;
  SPMV_TRY(cudaGetDevice(&device));
  SPMV_TRY(DeviceHas(cudaDevAttrL2CacheSize, &cache));
  std::atomic<uint64_t> *const known = of_devices[device % DEVICES];
  const size_t                 size = (size_t)cache, keep = size / Tuning::L2_KEPT;
  const bool                   pays = values > size / limits.l2_fit && vectors <= size / Tuning::L2_VECTORS;
  const int                    k    = pays ? (int)PetscMin(SHARES - 1, (SHARES * keep + values / 2) / values) : 0;
  if (!known[0]) {
    Scratch<uint64_t> all(stream);
    uint64_t          host[SHARES];
    SPMV_TRY(all.Alloc(SHARES));
    ForgetErrors();
    write_policies<<<1, SHARES, 0, stream>>>(all);
    SPMV_TRY(cudaGetLastError());
    SPMV_TRY(Fetch(host, (uint64_t *)all, SHARES, stream));
    for (int i = SHARES - 1; i >= 0; i--) known[i] = host[i]; // known[0], which is tested above, is set last
  }
  *policy = known[k];
  return cudaSuccess;
}

} // namespace spmv
