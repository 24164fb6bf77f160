/*
  All inline assembly of the device code, and the few operations that make one thread's writes visible to another.
  Kernels use these functions instead of their own fences, volatile accesses and assembly.
*/
#pragma once

#include <cstdint>
#include <cuda_pipeline_primitives.h>

namespace spmv {

constexpr int      WARP = 32;
constexpr unsigned ALL  = 0xffffffffu;

/*
  All loads before this call are issued before all instructions after it. To save registers, the compiler moves each
  load down to its use, so that their latencies add up. It does not move loads across this call, which costs one
  instruction and waits for nothing.
*/
__device__ __forceinline__ void Issue()
{
  __syncwarp();
}

// blockIdx.x, read again each time, so that no register holds values computed from it
__device__ __forceinline__ unsigned BlockIndex()
{
  unsigned index;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
  return index;
}

/*
  Loads of values, in assembly: the compiler must not move them down to their use
*/
#define SPMV_LOADS(type, letter, bits)                                                                \
  __device__ __forceinline__ type Stream(const type *p)                                               \
  {                                                                                                   \
    type v;                                                                                           \
    asm volatile("ld.global.cs." bits " %0, [%1];" : "=" letter(v) : "l"(p));                         \
    return v;                                                                                         \
  }                                                                                                   \
  __device__ __forceinline__ void Stream(const type *p, type &a, type &b)                             \
  {                                                                                                   \
    asm volatile("ld.global.cs.v2." bits " {%0, %1}, [%2];" : "=" letter(a), "=" letter(b) : "l"(p)); \
  }
SPMV_LOADS(double, "d", "f64")
SPMV_LOADS(float, "f", "f32")
#undef SPMV_LOADS

/*
  Loads and stores of numbers that other thread blocks, or with System other devices, write or read at the same time.
  They imply no order. A load must not be moved up to a place before the number is written
*/
#define SPMV_RELAXED(type, letter, bits, Load, Store, scope)                                       \
  __device__ __forceinline__ type Load(const type *p)                                              \
  {                                                                                                \
    type v;                                                                                        \
    asm volatile("ld.relaxed." scope ".global." bits " %0, [%1];" : "=" letter(v) : "l"(p));       \
    return v;                                                                                      \
  }                                                                                                \
  __device__ __forceinline__ void Store(type *p, type v)                                           \
  {                                                                                                \
    asm volatile("st.relaxed." scope ".global." bits " [%0], %1;" ::"l"(p), letter(v) : "memory"); \
  }
#define SPMV_RELAXED_SCOPES(type, letter, bits)                \
  SPMV_RELAXED(type, letter, bits, Fresh, StoreRelaxed, "gpu") \
  SPMV_RELAXED(type, letter, bits, LoadRelaxedSystem, StoreRelaxedSystem, "sys")
SPMV_RELAXED_SCOPES(double, "d", "f64")
SPMV_RELAXED_SCOPES(float, "f", "f32")
SPMV_RELAXED_SCOPES(unsigned, "r", "u32")
SPMV_RELAXED_SCOPES(uint64_t, "l", "u64")
#undef SPMV_RELAXED_SCOPES
#undef SPMV_RELAXED

// Stream(marks & 1 << bit ? p : q) as two loads, one of which is not executed, where all lanes of a warp choose alike:
// choosing an address would take several instructions. Without ALWAYS, only for bits that are in `has`, otherwise 0
#define SPMV_LOADS(type, letter, bits)                                                                              \
  template <bool ALWAYS>                                                                                            \
  __device__ __forceinline__ type StreamEither(unsigned marks, unsigned has, int bit, const type *p, const type *q) \
  {                                                                                                                 \
    type v = 0;                                                                                                     \
    if (ALWAYS)                                                                                                     \
      asm volatile("{.reg .pred P; .reg .b32 m; and.b32 m, %1, %4; setp.ne.u32 P, m, 0; @P ld.global.cs." bits      \
                   " %0, [%2]; @!P ld.global.cs." bits " %0, [%3];}"                                                \
                   : "=" letter(v)                                                                                  \
                   : "r"(marks), "l"(p), "l"(q), "r"(1u << bit));                                                   \
    else                                                                                                            \
      asm volatile("{.reg .pred P, Q; .reg .b32 m; and.b32 m, %1, %5; setp.ne.u32 P, m, 0; and.b32 m, %2, %5; "     \
                   "setp.ne.u32 Q, m, 0;"                                                                           \
                   "@P ld.global.cs." bits " %0, [%3]; @Q ld.global.cs." bits " %0, [%4];}"                         \
                   : "+" letter(v)                                                                                  \
                   : "r"(marks & has), "r"(~marks & has), "l"(p), "l"(q), "r"(1u << bit));                          \
    return v;                                                                                                       \
  }
SPMV_LOADS(double, "d", "f64")
SPMV_LOADS(float, "f", "f32")
#undef SPMV_LOADS

// A load from shared memory that other threads of the block may be changing with atomic operations
__device__ __forceinline__ int LoadShared(const int *p)
{
  int v;
  asm volatile("ld.relaxed.cta.shared.s32 %0, [%1];" : "=r"(v) : "r"((unsigned)__cvta_generic_to_shared(p)) : "memory");
  return v;
}

// A load of what the previous kernel of the stream may be writing. Unlike __ldg(), the compiler never moves it to a
// place before AwaitPrevious()
template <class T> __device__ __forceinline__ T LoadOrdered(const T *p)
{
  __builtin_assume(__isGlobal(p));
  return *p;
}

// Returns p, which the compiler then treats as a single value. Otherwise it adds each offset to the index from which p
// was computed: four instructions per address instead of one
template <class T> __device__ __forceinline__ const T *AsOne(const T *p)
{
  asm("" : "+l"(p));
  return p;
}

/*
  A policy for Stream(): data at the given number of sixteenths of the addresses, always the same ones, stay in the L2
  cache while there is room for them; all other data are evicted first. A policy passed as a kernel argument costs the
  loads no additional instruction; one computed in the kernel would cost two per load
*/
__device__ __forceinline__ uint64_t L2Policy(int sixteenths)
{
  uint64_t policy;
  if (sixteenths)
    asm("createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %0, %1;"
        : "=l"(policy)
        : "f"((float)sixteenths / 16));
  else
    asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
  return policy;
}
#define SPMV_LOADS(type, letter, bits)                                                      \
  __device__ __forceinline__ type Stream(const type *p, uint64_t policy)                    \
  {                                                                                         \
    type v;                                                                                 \
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint." bits " %0, [%1], %2;"          \
                 : "=" letter(v)                                                            \
                 : "l"(p), "l"(policy));                                                    \
    return v;                                                                               \
  }                                                                                         \
  __device__ __forceinline__ void Stream(const type *p, type &a, type &b, uint64_t policy)  \
  {                                                                                         \
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v2." bits " {%0, %1}, [%2], %3;" \
                 : "=" letter(a), "=" letter(b)                                             \
                 : "l"(p), "l"(policy));                                                    \
  }
SPMV_LOADS(double, "d", "f64")
SPMV_LOADS(float, "f", "f32")
#undef SPMV_LOADS

// Copies 4, 8 or 16 bytes to shared memory without a register; 16 bypass the L1 cache. The calling thread may read them
// after AwaitCopies(), the other threads of the warp after a __syncwarp() that follows it
template <class T> __device__ __forceinline__ void CopyAsync(T *shared, const T *p)
{
  __pipeline_memcpy_async(shared, p, sizeof(T));
}
__device__ __forceinline__ void AwaitCopies()
{
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// Prefetches the memory sector of a number to the L2 cache
__device__ __forceinline__ void PrefetchL2(const void *p)
{
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

/*
  What a thread has after it has waited for the previous kernel: loads of x require it. See Kernel in launch.cuh for the
  contract. It has no data and costs nothing
*/
class Waited {
public:
  // for a kernel that has waited when it began
  static __device__ __forceinline__ Waited Before()
  {
    return {};
  }
};

// Waits until the previous kernel of the stream is done and its writes are visible (programmatic dependent launch)
__device__ __forceinline__ Waited AwaitPrevious()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  return {};
}

/*
  Lets the next kernel of the stream begin once all thread blocks have called this function or have ended. The next
  kernel waits for the end of this one only in its own AwaitPrevious(). By then, everything that this kernel has waited
  for is in memory, and no multiprocessor's cache holds older data, because caches are invalidated when a kernel begins
  (tests/cuda checks that).
*/
__device__ __forceinline__ void LetNextBegin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// AwaitPrevious() for a product whose first loads of the matrix are under way, if `waits` is true; otherwise the kernel
// has waited before. The last thread blocks of the grid let the next kernel begin, so that its loads overlap with this
// product in turn. The other thread blocks have nearly ended by then; if each of them did it, those that are short
// would take longer
__device__ __forceinline__ Waited AwaitInTurn(bool waits, unsigned last_blocks)
{
  if (waits) {
    if (blockIdx.x + last_blocks >= gridDim.x) LetNextBegin();
    AwaitPrevious();
  }
  return Waited::Before();
}

__device__ __forceinline__ unsigned AddRelaxed(unsigned *p, unsigned count)
{
  return __nv_atomic_fetch_add(p, count, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}

// Counts a warp's arrival and returns true if it is the last of `count` warps. What they have written before need not
// be visible
__device__ __forceinline__ bool ArriveLastRelaxed(unsigned *arrived, unsigned count)
{
  return AddRelaxed(arrived, 1) == count - 1;
}

/*
  The same, but everything that the calling lanes have written before is visible to the last warp after all of its lanes
  call AcquireArrived(), which also sets the counter to 0 again. This is only a release: __threadfence() would
  invalidate the multiprocessor's L1 cache, which holds x for all other warps.
*/
__device__ __forceinline__ bool ArriveLast(unsigned *arrived, unsigned count)
{
  return __nv_atomic_fetch_add(arrived, 1u, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE) == count - 1;
}
__device__ __forceinline__ void AcquireArrived(unsigned *arrived)
{
  // An acquire would do, but is compiled to the fence for sequential consistency, which takes longer. The counter is
  // set after it, because it waits for all writes
  __nv_atomic_thread_fence(__NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_DEVICE);
  if (threadIdx.x % WARP == 0) *arrived = 0;
}

/*
  Signals between devices, through memory that both can access. The writer calls FenceSystem() after the thread block's
  writes, then StoreReleaseSystem(), or StoreRelaxedSystem() if the same thread has called FenceSystem() just before:
  each fence takes one to two microseconds if writes to another device are under way. The reader calls
  LoadRelaxedSystem() until it gets the number, then AcquireSystem(). The load is relaxed because each acquire would
  invalidate the L1 cache of a multiprocessor that is also working on the product. A number that is its own signal, or
  comes with it in one word of 64 bits, needs no fence at all.
*/
__device__ __forceinline__ void StoreReleaseSystem(unsigned *p, unsigned value)
{
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}
__device__ __forceinline__ void AcquireSystem()
{
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}
__device__ __forceinline__ void FenceSystem()
{
  AcquireSystem(); // this fence is also a release
}

// A flag that any thread may raise at any time. Other threads see it eventually: it only saves work and implies no
// memory order
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
