/*
  All assembler of the device code, and the few named operations that decide what one thread sees of another's writes. Kernels use these names
  instead of fences, volatile accesses and assembler of their own.
*/
#pragma once

#include <cstdint>

namespace spmv {

constexpr int      WARP = 32;
constexpr unsigned ALL  = 0xffffffffu;

/*
  Everything before this is issued before anything after it. The compiler prefers saving registers to keeping loads in flight: it moves loads down to their
  uses, one latency after the other. It does not move them across this, which costs one instruction and waits for nothing.
*/
__device__ __forceinline__ void Issue()
{
  __syncwarp();
}

// blockIdx.x, read again each time, so that no register keeps what is computed from it
__device__ __forceinline__ unsigned BlockIndex()
{
  unsigned index;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
  return index;
}

/*
  Loads as assembler, which the compiler may not move: Stream(), for values, down to their use, and Fresh(), for what other thread blocks or devices
  write, up to before it has been written
*/
#define SPMV_LOADS(name, how)                                                             \
  __device__ __forceinline__ double name(const double *p)                                 \
  {                                                                                       \
    double v;                                                                             \
    asm volatile("ld.global." how ".f64 %0, [%1];" : "=d"(v) : "l"(p));                   \
    return v;                                                                             \
  }                                                                                       \
  __device__ __forceinline__ float name(const float *p)                                   \
  {                                                                                       \
    float v;                                                                              \
    asm volatile("ld.global." how ".f32 %0, [%1];" : "=f"(v) : "l"(p));                   \
    return v;                                                                             \
  }                                                                                       \
  __device__ __forceinline__ void name(const double *p, double &a, double &b)             \
  {                                                                                       \
    asm volatile("ld.global." how ".v2.f64 {%0, %1}, [%2];" : "=d"(a), "=d"(b) : "l"(p)); \
  }                                                                                       \
  __device__ __forceinline__ void name(const float *p, float &a, float &b)                \
  {                                                                                       \
    asm volatile("ld.global." how ".v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b) : "l"(p)); \
  }
SPMV_LOADS(Stream, "cs")
SPMV_LOADS(Fresh, "cg")
#undef SPMV_LOADS

/*
  A policy for Stream(): of `sixteenths` of the addresses, always the same ones, data stay in the L2 cache while there is room for them; the others leave it
  first. Loads take it from a kernel's argument without an instruction more; a policy computed in the kernel would cost them two each
*/
__device__ __forceinline__ uint64_t L2Policy(int sixteenths)
{
  uint64_t policy;
  if (sixteenths)
    asm("createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %0, %1;" : "=l"(policy) : "f"((float)sixteenths / 16));
  else
    asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
  return policy;
}
#define SPMV_LOADS(type, letter, bits)                                                                                                             \
  __device__ __forceinline__ type Stream(const type *p, uint64_t policy)                                                                           \
  {                                                                                                                                                \
    type v;                                                                                                                                        \
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint." bits " %0, [%1], %2;" : "=" letter(v) : "l"(p), "l"(policy));                         \
    return v;                                                                                                                                      \
  }                                                                                                                                                \
  __device__ __forceinline__ void Stream(const type *p, type &a, type &b, uint64_t policy)                                                         \
  {                                                                                                                                                \
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v2." bits " {%0, %1}, [%2], %3;" : "=" letter(a), "=" letter(b) : "l"(p), "l"(policy)); \
  }
SPMV_LOADS(double, "d", "f64")
SPMV_LOADS(float, "f", "f32")
#undef SPMV_LOADS

// Copies one number to shared memory without a register; it is there for its own thread after AwaitCopies(), for others of the warp after __syncwarp(), too
__device__ __forceinline__ void CopyAsync(double *shared, const double *p)
{
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((unsigned)__cvta_generic_to_shared(shared)), "l"(p) : "memory");
}
__device__ __forceinline__ void CopyAsync(float *shared, const float *p)
{
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(shared)), "l"(p) : "memory");
}
// 16 bytes, past the L1
__device__ __forceinline__ void CopyAsync16(void *shared, const void *p)
{
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(shared)), "l"(p) : "memory");
}
__device__ __forceinline__ void AwaitCopies()
{
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// Has a number's sector of memory brought to the L2 cache
__device__ __forceinline__ void PrefetchL2(const void *p)
{
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

// Waits until the previous kernel of the stream is done and its writes are visible (programmatic dependent launch). See Kernel in launch.cuh for the contract
__device__ __forceinline__ void AwaitPrevious()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/*
  Lets the next kernel of the stream begin once all thread blocks have called this, or have ended. That kernel waits for the end of this one only in its own
  AwaitPrevious(). What this kernel has itself awaited is in memory by then, and no multiprocessor's cache holds older data: caches are invalidated when a
  kernel begins (tests/cuda checks that).
*/
__device__ __forceinline__ void LetNextBegin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/*
  Counts a warp's arrival and returns whether it is the last of `count`; the counter is 0 again then. What the calling lanes have written before is visible to
  the last warp after AcquireArrived(). Only a release: __threadfence() would empty the multiprocessor's L1, which holds x for all other warps.
*/
__device__ __forceinline__ bool ArriveLast(unsigned *arrived, unsigned count)
{
  const unsigned before = __nv_atomic_fetch_add(arrived, 1u, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
  if (before == count - 1) *arrived = 0;
  return before == count - 1;
}
__device__ __forceinline__ void AcquireArrived()
{
  __nv_atomic_thread_fence(__NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
}

/*
  Between devices, through memory that both can reach. The writer: FenceSystem() after what the thread block has written, then StoreRelease(); the reader:
  LoadRelaxed() until the number is there, then AcquireSystem(). The load has no order of its own, as each acquire would empty the L1 of a multiprocessor
  that also multiplies.
*/
__device__ __forceinline__ void StoreReleaseSystem(unsigned *p, unsigned value)
{
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}
__device__ __forceinline__ unsigned LoadRelaxedSystem(const unsigned *p)
{
  unsigned value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}
__device__ __forceinline__ void AcquireSystem()
{
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}
__device__ __forceinline__ void FenceSystem()
{
  __threadfence_system();
}

// A flag that threads raise at any time, seen by others sooner or later: it saves work and orders nothing
template <class T> __device__ __forceinline__ bool IsRaised(const T *flag)
{
  return *(const volatile T *)flag;
}
template <class T> __device__ __forceinline__ void Raise(T *flag)
{
  *(volatile T *)flag = 1;
}

__device__ __forceinline__ unsigned long long Nanoseconds()
{
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

} // namespace spmv
