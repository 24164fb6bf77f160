/*
  Allocations on the host that fail.
*/
#pragma once

#include "common.cuh"
#include <cuda.h>
#include <dlfcn.h>
#include <functional>
#include <new>

// The number of allocations after which host memory runs out; negative: never
static int allocations = -1;
#if !defined(__CUDA_ARCH__) // not in device code
void *operator new(size_t bytes)
{
  void *p = allocations >= 0 && allocations-- == 0 ? nullptr : malloc(bytes ? bytes : 1);
  if (!p) throw std::bad_alloc();
  return p;
}
void operator delete(void *p) noexcept
{
  free(p);
}
void operator delete(void *p, size_t) noexcept
{
  free(p);
}
#endif

// The bytes that the library's memory pool keeps when they are free, or 0 without a pool
static unsigned long long PoolKeeps(cudaStream_t stream)
{
  const size_t                     bytes = 1 << 20;
  void                            *array, *driver = dlopen("libcuda.so.1", RTLD_NOW);
  CUmemoryPool                     pool = nullptr;
  unsigned long long               kept = 0;
  SpMVCudaTemporary                copy;
  decltype(&cuPointerGetAttribute) get =
      driver ? (decltype(&cuPointerGetAttribute))dlsym(driver, "cuPointerGetAttribute") : nullptr;
  CHECK(SpMVCudaUploadTemporary(1, &array, nullptr, &bytes, stream, &copy));
  if (get && copy.pooled) (void)get(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, (CUdeviceptr)array);
  if (pool) CHECK(cudaMemPoolGetAttribute((cudaMemPool_t)pool, cudaMemPoolAttrReleaseThreshold, &kept));
  CHECK(SpMVCudaFreeTemporary(&copy, stream));
  return kept;
}

// Each allocation of the host in turn fails while make() creates an object, which it then destroys, and says whether
// there was one: an error, no object, and the pool keeps no more than before
static void TestCreation(const Matrix &A, const char *what, cudaStream_t stream,
                         std::function<cudaError_t(bool *created)> make)
{
  const unsigned long long before = PoolKeeps(stream);
  bool                     good = true, more = true, kept = true, created;
  for (int n = 0; more && n < 1000; n++) {
    allocations             = n;
    const cudaError_t error = make(&created);
    more                    = allocations < 0; // this allocation was reached
    allocations             = -1;
    good = good && created == (error == cudaSuccess) && (error == cudaSuccess || error == cudaErrorMemoryAllocation) &&
           (more || created);
    kept = kept && PoolKeeps(stream) <= before + (64 << 20); // some is in use
  }
  Expect(good && !more, A, what, "host memory", "an object or an error");
  Expect(kept, A, what, "host memory", "the pool frees memory again");
}
