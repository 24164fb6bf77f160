/*
  The memory pools for the arrays of stores and of their set-up.
*/
#include "memory.cuh"
#include "tuning.cuh"
#include <cstdint>

namespace spmv {
namespace {

constexpr int DEVICES = 64; // devices with larger numbers have no pool

struct Pool {
  bool          tried  = false;
  cudaMemPool_t memory = nullptr;

  void Create(int device)
  {
    cudaMemPoolProps props     = {};
    uint64_t         threshold = Tuning::POOL_KEPT;
    int              supported = 0;
    tried                      = true;
    props.allocType            = cudaMemAllocationTypePinned;
    props.location.type        = cudaMemLocationTypeDevice;
    props.location.id          = device;
    if (cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device) != cudaSuccess || !supported ||
        cudaMemPoolCreate(&memory, &props) != cudaSuccess || cudaMemPoolSetAttribute(memory, cudaMemPoolAttrReleaseThreshold, &threshold) != cudaSuccess) {
      (void)cudaGetLastError();
      if (memory) cudaMemPoolDestroy(memory);
      memory = nullptr;
    }
  }
};

Pool pools[DEVICES];

} // namespace

cudaError_t PoolAlloc(void **p, size_t bytes, cudaStream_t stream, bool *pooled)
{
  int device;
  SPMV_TRY(cudaGetDevice(&device));
  if (device < DEVICES && bytes <= Tuning::POOL_LARGEST) {
    Pool &pool = pools[device];
    if (!pool.tried) pool.Create(device);
    *pooled = pool.memory && cudaMallocFromPoolAsync(p, bytes, pool.memory, stream) == cudaSuccess;
    if (*pooled) return cudaSuccess;
    (void)cudaGetLastError();
  }
  *pooled = false;
  return cudaMalloc(p, bytes);
}

cudaError_t PoolFinalize()
{
  for (Pool &pool : pools) {
    if (pool.memory) SPMV_TRY(cudaMemPoolDestroy(pool.memory));
    pool = Pool();
  }
  return cudaSuccess;
}

} // namespace spmv
