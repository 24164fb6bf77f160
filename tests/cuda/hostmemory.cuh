/*
  Allocations on the host that fail.
*/
#pragma once

#include "common.cuh"
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
