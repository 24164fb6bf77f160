/*
  The memory pools for the arrays of stores and of their set-up.
*/
#include "memory.cuh"
#include "tuning.cuh"
#include <cstdint>
#include <dlfcn.h>
#include <mutex>

namespace spmv {
namespace {

struct Pool {
  bool          tried  = false;
  cudaMemPool_t memory = nullptr;

  // CUDA's threshold counts the memory in use, too. Beyond it, each synchronization unmaps what is unused, and mapping
  // it again takes 0.1 ms
  cudaError_t Keep(bool all = false) const
  {
    uint64_t used;
    SPMV_TRY(cudaMemPoolGetAttribute(memory, cudaMemPoolAttrUsedMemCurrent, &used));
    used = all ? UINT64_MAX : used + Tuning::POOL_KEPT;
    return cudaMemPoolSetAttribute(memory, cudaMemPoolAttrReleaseThreshold, &used);
  }
  void Create(int device)
  {
    cudaMemPoolProps props     = {};
    int              supported = 0;
    tried                      = true;
    props.allocType            = cudaMemAllocationTypePinned;
    props.location.type        = cudaMemLocationTypeDevice;
    props.location.id          = device;
    if (cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device) != cudaSuccess || !supported ||
        cudaMemPoolCreate(&memory, &props) != cudaSuccess || Keep() != cudaSuccess) {
      (void)cudaGetLastError();
      if (memory) cudaMemPoolDestroy(memory);
      memory = nullptr;
    }
  }
};

Pool       pools[DEVICES];
std::mutex creating;

cudaMemPool_t PoolOf(int device) // NULL: there is none
{
  if (device >= DEVICES) return nullptr;
  std::lock_guard<std::mutex> lock(creating);
  if (!pools[device].tried) pools[device].Create(device);
  return pools[device].memory;
}

} // namespace

void KeepLoaded()
{
  Dl_info here;
  if (dladdr((void *)&pools, &here)) (void)dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

cudaError_t PoolAlloc(void **p, size_t bytes, cudaStream_t stream, bool *pooled)
{
  int device;
  SPMV_TRY(cudaGetDevice(&device));
  const cudaMemPool_t pool = bytes <= Tuning::POOL_LARGEST ? PoolOf(device) : nullptr;
  if (pool) {
    *pooled = cudaMallocFromPoolAsync(p, bytes, pool, stream) == cudaSuccess;
    if (*pooled) return cudaSuccess;
    (void)cudaGetLastError();
  }
  *pooled = false;
  return cudaMalloc(p, bytes);
}

cudaError_t PoolKeep(bool all)
{
  int device;
  SPMV_TRY(cudaGetDevice(&device));
  if (device >= DEVICES) return cudaSuccess;
  std::lock_guard<std::mutex> lock(creating);
  return pools[device].memory ? pools[device].Keep(all) : cudaSuccess;
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
