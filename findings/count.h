/* Counts the bytes that a program and PETSc copy between host and GPU: its cudaMemcpy() and cudaMemcpyAsync() are called
   in place of CUDA's */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <cuda_runtime_api.h>

static double to_gpu, to_host; /* bytes */

static void Count(const void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
  if (kind == cudaMemcpyDefault) {
    struct cudaPointerAttributes t = {0}, f = {0};
    if (cudaPointerGetAttributes(&t, to) || cudaPointerGetAttributes(&f, from)) (void)cudaGetLastError();
    if (t.type == cudaMemoryTypeDevice)
      kind = f.type == cudaMemoryTypeDevice ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
    else if (f.type == cudaMemoryTypeDevice)
      kind = cudaMemcpyDeviceToHost;
  }
  if (kind == cudaMemcpyHostToDevice) to_gpu += bytes;
  if (kind == cudaMemcpyDeviceToHost) to_host += bytes;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
  static cudaError_t (*real)(void *, const void *, size_t, enum cudaMemcpyKind);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "cudaMemcpy");
  Count(to, from, bytes, kind);
  return real(to, from, bytes, kind);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
  static cudaError_t (*real)(void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "cudaMemcpyAsync");
  Count(to, from, bytes, kind);
  return real(to, from, bytes, kind, stream);
}
