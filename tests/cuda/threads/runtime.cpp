/*
  The functions of the CUDA runtime that copies, pools and the thread that prepares first products call, in host memory:
  for tests of these threads by ThreadSanitizer on a machine without a GPU.
*/
#include "runtime.h"
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

static std::atomic<int> live(0);

int RuntimeLive()
{
  return live;
}

template <class T> static cudaError_t Create(T *object, size_t bytes, int microseconds = 0)
{
  if (microseconds) usleep((useconds_t)microseconds);
  *object = (T)malloc(bytes ? bytes : 1);
  live++;
  return *object ? cudaSuccess : cudaErrorMemoryAllocation;
}

template <class T> static cudaError_t Destroy(T object)
{
  if (object) live--;
  free((void *)object);
  return cudaSuccess;
}

extern "C" {
/* clang-format off */
cudaError_t cudaMalloc(void **p, size_t n) { return Create(p, n); }
cudaError_t cudaFree(void *p) { return Destroy(p); }
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned) { return Create(p, n, 1000); }
cudaError_t cudaFreeHost(void *p) { return Destroy(p); }
cudaError_t cudaMallocFromPoolAsync(void **p, size_t n, cudaMemPool_t, cudaStream_t) { return Create(p, n, 300); }
cudaError_t cudaFreeAsync(void *p, cudaStream_t) { return Destroy(p); }
cudaError_t cudaMemPoolCreate(cudaMemPool_t *p, const cudaMemPoolProps *) { return Create(p, 1); }
cudaError_t cudaMemPoolDestroy(cudaMemPool_t p) { return Destroy(p); }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *) { return cudaSuccess; }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *value) { *(uint64_t *)value = 0; return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) { return Create(e, 1); }
cudaError_t cudaEventDestroy(cudaEvent_t e) { return Destroy(e); }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) { return Create(s, 1); }
cudaError_t cudaStreamDestroy(cudaStream_t s) { return Destroy(s); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemcpy(void *to, const void *from, size_t n, cudaMemcpyKind) { memcpy(to, from, n); return cudaSuccess; }
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind, cudaStream_t) { memcpy(to, from, n); return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int) { *value = 1; return cudaSuccess; }
cudaError_t cudaGetDevice(int *device) { *device = 0; return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetLastError(void) { return cudaSuccess; }
/* clang-format on */

// What nvcc adds to every file
void **__cudaRegisterFatBinary(void *)
{
  static void *handle;
  return &handle;
}
void __cudaInitModule(void **)
{
}
void __cudaRegisterFatBinaryEnd(void **)
{
}
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int)
{
}
void __cudaUnregisterFatBinary(void **)
{
}
}
