/*
  What all device code of the formats shares: scalars, loads, device memory, and the block's base class. It needs compute capability 8.0.
*/
#pragma once

#include "spmvcuda.h"
#include <climits>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#define SPMV_TRY(call)                                  \
  do {                                                  \
    cudaError_t spmv_error_ = (call);                   \
    if (spmv_error_ != cudaSuccess) return spmv_error_; \
  } while (0)

namespace spmv {

// What the interface in C calls: no exception leaves it
template <class F> cudaError_t Guarded(F f)
{
  try {
    return f();
  } catch (const std::bad_alloc &) { // the host's memory
    return cudaErrorMemoryAllocation;
  } catch (...) {
    return cudaErrorUnknown;
  }
}

// A kernel's launch, and CUB, report what they find in cudaGetLastError(): an error that the program has left there is cleared before
inline void ForgetErrors()
{
  (void)cudaGetLastError();
}

constexpr int      WARP = 32;
constexpr unsigned ALL  = 0xffffffffu;

// ------------------------------------------------------------------------------------------------ scalars

// Binary compatible with PetscScalar of complex builds, and loaded whole
template <class R> struct alignas(2 * sizeof(R)) Complex {
  R re, im;
};

// What values may also be stored as: fewer bytes to read, for products and sums in the scalar's own precision
#if defined(PETSC_USE_COMPLEX)
using Scalar = Complex<PetscReal>;
using Single = Complex<float>;
#else
using Scalar = PetscReal;
using Single = float;
#endif
static_assert(sizeof(Scalar) == sizeof(PetscScalar), "PetscScalar must be real or complex, of float or double");

// Complex values are read and written whole; the arrays of a program may begin anywhere that suits its parts
inline bool IsAligned(const void *p)
{
  if constexpr (alignof(Scalar) == alignof(PetscReal)) return true;
  return (uintptr_t)p % alignof(Scalar) == 0;
}

template <class To, class R> __host__ __device__ __forceinline__ To Convert(R a)
{
  return (To)a;
}
template <class To, class R> __host__ __device__ __forceinline__ To Convert(Complex<R> a)
{
  return {(decltype(To::re))a.re, (decltype(To::im))a.im};
}

// Calls f with a number of the type that values are stored as
template <class F> auto WithStored(bool single, F f)
{
  if (single) return f(Single());
  return f(Scalar());
}
inline size_t StoredSize(bool single)
{
  return single ? sizeof(Single) : sizeof(Scalar);
}

/*
  Loads as assembler, which the compiler may not move: Stream(), of values, down to their use, and Fresh(), of what other blocks or devices write, up
  to before it is there
*/
#define SPMV_LOADS(name, how)                                                                   \
  __device__ __forceinline__ double name(const double *p)                                       \
  {                                                                                             \
    double v;                                                                                   \
    asm volatile("ld.global." how ".f64 %0, [%1];" : "=d"(v) : "l"(p));                         \
    return v;                                                                                   \
  }                                                                                             \
  __device__ __forceinline__ float name(const float *p)                                         \
  {                                                                                             \
    float v;                                                                                    \
    asm volatile("ld.global." how ".f32 %0, [%1];" : "=f"(v) : "l"(p));                         \
    return v;                                                                                   \
  }                                                                                             \
  __device__ __forceinline__ Complex<double> name(const Complex<double> *p)                     \
  {                                                                                             \
    Complex<double> v;                                                                          \
    asm volatile("ld.global." how ".v2.f64 {%0, %1}, [%2];" : "=d"(v.re), "=d"(v.im) : "l"(p)); \
    return v;                                                                                   \
  }                                                                                             \
  __device__ __forceinline__ Complex<float> name(const Complex<float> *p)                       \
  {                                                                                             \
    Complex<float> v;                                                                           \
    asm volatile("ld.global." how ".v2.f32 {%0, %1}, [%2];" : "=f"(v.re), "=f"(v.im) : "l"(p)); \
    return v;                                                                                   \
  }
SPMV_LOADS(Stream, "cs")
SPMV_LOADS(Fresh, "cg")
#undef SPMV_LOADS

template <class S> struct Traits { // real
  static __host__ __device__ S zero()
  {
    return S(0);
  }
  static __device__ S fma(S a, S x, S d)
  {
    return ::fma(a, x, d);
  }
  static __device__ S add(S a, S b)
  {
    return a + b;
  }
  static __device__ S conj(S a)
  {
    return a;
  }
  static __device__ S shfl(S a, int lane)
  {
    return __shfl_sync(ALL, a, lane);
  }
  static __device__ S down(S a, int by)
  {
    return __shfl_down_sync(ALL, a, by);
  }
  static __device__ S stream(const S *p) // read once
  {
    return Stream(p);
  }
  static __device__ S keep(const S *p) // read again, by others
  {
    return __ldg(p);
  }
  static __device__ S fresh(const S *p) // written by others during this launch
  {
    return Fresh(p);
  }
  static __device__ bool same(S a, S b) // to the bit: -0 is not 0
  {
    if constexpr (sizeof(S) == 8)
      return __double_as_longlong(a) == __double_as_longlong(b);
    else
      return __float_as_int(a) == __float_as_int(b);
  }
};

template <class R> struct Traits<Complex<R>> {
  using S = Complex<R>;
  using T = Traits<R>;
  static __host__ __device__ S zero()
  {
    return {R(0), R(0)};
  }
  static __device__ S fma(S a, S x, S d)
  {
    return {::fma(a.re, x.re, ::fma(-a.im, x.im, d.re)), ::fma(a.re, x.im, ::fma(a.im, x.re, d.im))};
  }
  static __device__ S add(S a, S b)
  {
    return {a.re + b.re, a.im + b.im};
  }
  static __device__ S conj(S a)
  {
    return {a.re, -a.im};
  }
  static __device__ S shfl(S a, int lane)
  {
    return {T::shfl(a.re, lane), T::shfl(a.im, lane)};
  }
  static __device__ S down(S a, int by)
  {
    return {T::down(a.re, by), T::down(a.im, by)};
  }
  static __device__ S stream(const S *p)
  {
    return Stream(p);
  }
  static __device__ S keep(const S *p)
  {
    if constexpr (sizeof(R) == 8) {
      double2 v = __ldg((const double2 *)p);
      return {v.x, v.y};
    } else {
      float2 v = __ldg((const float2 *)p);
      return {v.x, v.y};
    }
  }
  static __device__ S fresh(const S *p)
  {
    return Fresh(p);
  }
  static __device__ bool same(S a, S b)
  {
    return T::same(a.re, b.re) && T::same(a.im, b.im);
  }
};
using Num = Traits<Scalar>;

/*
  What stands before is issued before what stands after. The compiler would rather save registers than keep loads in flight: it moves
  loads down to their uses, one latency after the other. It does not move them across this, which costs one instruction and waits for none.
*/
__device__ __forceinline__ void Issue()
{
  __syncwarp();
}

/*
  Each lane wants `count` (at most 4 PER) consecutive values from a[at] on (from NULL), or from the places listed at from[at] on. Four
  lanes read each lane's, as 32 scattered reads at once keep the cache busy for 32 cycles, and leave them in `shared`, `stride` apart.
  All lanes call it.
*/
template <int PER> __device__ __forceinline__ void Gather(const Scalar *a, const int *from, int64_t at, int count, int stride, Scalar *shared)
{
  const int lane = threadIdx.x % WARP, group = lane / 4;
  Scalar    v[4][PER];
  int       n[4];
#pragma unroll
  for (int r = 0; r < 4; r++) {
    const int64_t p = __shfl_sync(ALL, at, r * 8 + group);
    n[r]            = __shfl_sync(ALL, count, r * 8 + group);
#pragma unroll
    for (int k = 0; k < PER; k++) {
      const int i = k * 4 + lane % 4;
      if (i < n[r]) v[r][k] = a[from ? from[p + i] : p + i];
    }
  }
  Issue(); // also: what was in `shared` before has been read
#pragma unroll
  for (int r = 0; r < 4; r++) {
#pragma unroll
    for (int k = 0; k < PER; k++) {
      const int i = k * 4 + lane % 4;
      if (i < n[r]) shared[(r * 8 + group) * stride + i] = v[r][k];
    }
  }
  __syncwarp();
}
extern __shared__ __align__(16) unsigned char spmv_shared[];

// ------------------------------------------------------------------------------------------------ device memory

// cudaFree waits for the device, so an array may be freed while kernels that read it are still queued
template <class T> class Array {
public:
  Array()                         = default;
  Array(const Array &)            = delete;
  Array &operator=(const Array &) = delete;
  ~Array()
  {
    Free();
  }
  cudaError_t Alloc(size_t count)
  {
    Free();
    size = count;
    return cudaMalloc((void **)&p, (count ? count : 1) * sizeof(T));
  }
  cudaError_t Zero(cudaStream_t stream)
  {
    return cudaMemsetAsync(p, 0, size * sizeof(T), stream);
  }
  cudaError_t Read(std::vector<T> &host) const // for the oracle
  {
    host.resize(size);
    return size ? cudaMemcpy(host.data(), p, size * sizeof(T), cudaMemcpyDeviceToHost) : cudaSuccess;
  }
  void Free()
  {
    if (p) cudaFree(p);
    p    = nullptr;
    size = 0;
  }
  void Swap(Array &o)
  {
    std::swap(p, o.p);
    std::swap(size, o.size);
  }
  size_t Bytes() const
  {
    return size * sizeof(T);
  }
  operator T *() const
  {
    return p;
  }

private:
  T     *p    = nullptr;
  size_t size = 0;
};

// A list made on the host, in an array of its own: set-up only
template <class T> cudaError_t Upload(Array<T> &device, const std::vector<T> &host, cudaStream_t stream)
{
  SPMV_TRY(device.Alloc(host.size()));
  return host.empty() ? cudaSuccess : cudaMemcpyAsync(device, host.data(), device.Bytes(), cudaMemcpyHostToDevice, stream);
}

// Reads a few numbers that the host needs to go on: set-up only
template <class T> cudaError_t Fetch(T *host, const T *device, size_t count, cudaStream_t stream)
{
  SPMV_TRY(cudaMemcpyAsync(host, device, count * sizeof(T), cudaMemcpyDeviceToHost, stream));
  return cudaStreamSynchronize(stream);
}

// What there is of something on this device: set-up only
inline cudaError_t DeviceHas(cudaDeviceAttr what, int *value)
{
  int device;
  SPMV_TRY(cudaGetDevice(&device));
  return cudaDeviceGetAttribute(value, what, device);
}

inline unsigned Blocks(int64_t threads, int block)
{
  return (unsigned)((threads + block - 1) / block);
}

// Loads a kernel's code now: where modules are loaded lazily, its first launch would
inline cudaError_t Load(const void *kernel)
{
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, kernel);
}

// Whether the library has code for this device: cudaErrorNotSupported where not
cudaError_t Supported();

/*
  Work with something that one kernel at a time may use, in the order in which it is queued, in whatever streams. In a single stream that costs a
  comparison. Once there has been a second one, an event is recorded after each piece of work, as the stream before may be gone when another one comes
  (the first time, the host waits instead). Where a stream is captured, what other streams do is the caller's to order.
*/
class StreamOrder {
public:
  StreamOrder()                               = default;
  StreamOrder(const StreamOrder &)            = delete;
  StreamOrder &operator=(const StreamOrder &) = delete;
  ~StreamOrder()
  {
    if (event) cudaEventDestroy(event);
  }
  // thorough: behind everything on the device, not just behind the work that ended with Leave()
  cudaError_t Enter(cudaStream_t stream, bool thorough = false)
  {
    if (!used || stream != last) SPMV_TRY(Change(stream, thorough));
    return cudaSuccess;
  }
  cudaError_t Leave(cudaStream_t stream)
  {
    return several ? Record(stream) : cudaSuccess;
  }

private:
  static cudaError_t IsCaptured(cudaStream_t stream, bool *captured)
  {
    cudaStreamCaptureStatus status;
    SPMV_TRY(cudaStreamIsCapturing(stream, &status));
    *captured = status != cudaStreamCaptureStatusNone;
    return cudaSuccess;
  }
  cudaError_t Change(cudaStream_t stream, bool thorough)
  {
    bool captured = false;
    if (used) {
      SPMV_TRY(IsCaptured(stream, &captured));
      if (!captured) SPMV_TRY(recorded && !thorough ? cudaStreamWaitEvent(stream, event, 0) : cudaDeviceSynchronize());
      if (!event) SPMV_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
      several = true;
    }
    used     = true;
    recorded = false;
    last     = stream;
    return cudaSuccess;
  }
  cudaError_t Record(cudaStream_t stream)
  {
    bool captured;
    SPMV_TRY(IsCaptured(stream, &captured));
    recorded = !captured; // an event of a capture is of no use outside
    return captured ? cudaSuccess : cudaEventRecord(event, stream);
  }

  cudaEvent_t  event = nullptr;
  cudaStream_t last  = nullptr;
  bool         used = false, several = false, recorded = false;
};

/*
  A product's kernel, chosen at set-up, so that a product is one call. Where device and driver can, it is launched early ("programmatic
  dependent launch"): its threads are there, but wait, when the kernel before it in the stream ends. That takes a fifth off the host's
  time for a launch and hides most of the device's. A captured product keeps it.
*/
class Kernel {
public:
  cudaError_t Choose(const void *function) // and load it
  {
    cudaFuncAttributes attributes;
    int                driver;
    code = function;
    SPMV_TRY(cudaFuncGetAttributes(&attributes, code));
    SPMV_TRY(cudaDriverGetVersion(&driver));
    early = driver >= 12030 && attributes.ptxVersion >= 90; // graphs know it since 12.3; code for older devices does not wait
    return cudaSuccess;
  }

  template <class Args>
  cudaError_t Launch(unsigned grid, unsigned block, const Args &g, bool conjugate, const Scalar *x, const Scalar *z, Scalar *y, cudaStream_t stream,
                     size_t shared = 0, bool last = false) const // last: not early, but when all before it is done
  {
    void *args[] = {(void *)&g, &conjugate, &x, &z, &y};
#if CUDART_VERSION >= 12030
    if (early && !last) {
      cudaLaunchAttribute attribute                        = {};
      cudaLaunchConfig_t  config                           = {};
      attribute.id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
      config.gridDim                                       = grid;
      config.blockDim                                      = block;
      config.dynamicSmemBytes                              = shared;
      config.stream                                        = stream;
      config.attrs                                         = &attribute;
      config.numAttrs                                      = 1;
      return cudaLaunchKernelExC(&config, code, args);
    }
#endif
    return cudaLaunchKernel(code, dim3(grid), dim3(block), args, shared, stream);
  }

private:
  const void *code  = nullptr;
  bool        early = false;
};

/*
  Every kernel launched by Kernel begins with it, but for MultFused() and diagonals' MultInterior(): what the kernels before have written is there
  afterwards, not earlier. CUDA promises that to the threads that call it; most warps of MultFused() do not, and read an x that was there before the
  exchange they begin with: it has awaited that itself. Seen to hold on Hopper (tests/cuda/core.cu); SpMVCudaMultFused() does without if asked to.
*/
__device__ __forceinline__ void AwaitPrevious()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/*
  The next kernel of the stream may begin when all blocks have said so, or are done, and waits for this one's end at its own AwaitPrevious() only. What this one has itself
  awaited is then in memory, and no cache of a multiprocessor holds what was there before: they are emptied when a kernel begins (tests/cuda/core.cu looks).
*/
__device__ __forceinline__ void LetNextBegin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/*
  Counts a warp in and says whether it is the last of `count`, after which the counter is 0 again. What its lane has written before, the last one sees
  after AcquireArrived(). A release alone: __threadfence() would empty the multiprocessor's L1, which holds x for all other warps.
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

// Zero threads are no launch at all: an empty grid is an error
#define SPMV_LAUNCH(threads, block, stream, kernel, ...)                       \
  do {                                                                         \
    if ((threads) > 0) {                                                       \
      spmv::ForgetErrors();                                                    \
      kernel<<<spmv::Blocks(threads, block), block, 0, stream>>>(__VA_ARGS__); \
      SPMV_TRY(cudaGetLastError());                                            \
    }                                                                          \
  } while (0)

cudaError_t ExclusiveSum(Array<int64_t> &, int64_t count, cudaStream_t); // in place
// Stable, by the low `bits` bits of the keys
cudaError_t SortPairs(Array<uint64_t> &key, Array<int> &value, int64_t count, int bits, cudaStream_t);

inline int BitsFor(uint64_t largest)
{
  int bits = 1;
  while (bits < 64 && largest >> bits) bits++;
  return bits;
}

// ------------------------------------------------------------------------------------------------ the pattern that set-up reads

// A CSR pattern seen bs x bs block by block (bs = 1: entry by entry). A unit is bs rows of the same blocks.
template <class I> struct View {
  const I *i, *j;
  int      units, bs;

  __host__ __device__ int64_t start(int u) const
  {
    return i[(int64_t)u * bs];
  }
  __host__ __device__ int len(int u) const
  {
    return (int)((i[(int64_t)u * bs + 1] - i[(int64_t)u * bs]) / bs);
  }
  __host__ __device__ int col(int64_t start, int q) const
  {
    return bs == 1 ? (int)j[start + q] : (int)(j[start + (int64_t)q * bs] / bs);
  }
};

// Runs f with the view of the CSR's own index type
template <class F> cudaError_t WithView(const SpMVCudaCSR &csr, int bs, F f)
{
  if (csr.index_bytes == 8) return f(View<int64_t>{(const int64_t *)csr.i, (const int64_t *)csr.j, (int)(csr.m / bs), bs});
  return f(View<int>{(const int *)csr.i, (const int *)csr.j, (int)(csr.m / bs), bs});
}

// What the choice of a layout rests on
struct Survey {
  unsigned long long   natural; // entries of 32-unit slices in the natural order, padding included
  unsigned long long   bulk;    // entries in units longer than LONG
  int                  longest, empty;
  unsigned             looked, near; // a few columns of each unit, and those of them within NEAR of the unit's own place
  static constexpr int LONG = 1024, NEAR = 8192;

  bool local() const // neighbouring units read neighbouring x: their order matters
  {
    return near > looked / 2;
  }
};
cudaError_t TakeSurvey(const SpMVCudaCSR &, int bs, cudaStream_t, Survey *);

constexpr int MAX_NODE = 6; // of node blocks; larger ones are stored entry by entry

// The largest s <= limit <= MAX_NODE such that all of A is dense s x s blocks on an s x s grid, 1 if none
cudaError_t FindNodeSize(const SpMVCudaCSR &, int limit, cudaStream_t, int *);
// A^T: offsets, rows of A as columns, and where each entry stands in A
cudaError_t TransposeCSR(const SpMVCudaCSR &, cudaStream_t, Array<int> &it, Array<int> &jt, Array<int> &from);

} // namespace spmv

// ------------------------------------------------------------------------------------------------ blocks

namespace spmv {

/*
  The off-diagonal block of a parallel matrix as a product of the diagonal block adds it, row by row, once it has summed up its own: CSR of groups of 32
  units, those without an entry left out
*/
struct Offdiagonal {
  const int    *slot;  // of each group: which of those that are kept it is, or -1
  const int    *start; // of each row of these, and the end of the last
  const int    *col;
  const Scalar *value;
  const Scalar *halo; // NULL: nothing is added

  // d += what the rows of a unit have there
  template <int BS> __device__ __forceinline__ void Add(int slot, int unit, Scalar *d) const
  {
    if (slot < 0) return;
    AwaitPrevious(); // for the halo
    constexpr int BATCH = 4;
#pragma unroll
    for (int e = 0; e < BS; e++) {
      const int *p = start + ((int64_t)slot * WARP + unit % WARP) * BS + e;
      for (int q = p[0]; q < p[1]; q += BATCH) {
        Scalar a[BATCH], h[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
          a[b] = h[b] = Num::zero();
          if (q + b >= p[1]) continue;
          a[b] = value[q + b];
          h[b] = Num::fresh(halo + col[q + b]);
        }
#pragma unroll
        for (int b = 0; b < BATCH; b++) d[e] = Num::fma(a[b], h[b], d[e]);
      }
    }
  }
};

struct OffdiagonalRows {
  Array<int>    slot, start, col;
  Array<Scalar> value;

  cudaError_t Create(const SpMVCudaCSR &, int bs, PetscInt64 most, cudaStream_t); // cudaErrorNotSupported: too many, or too long
  cudaError_t Fill(const SpMVCudaCSR &, bool single, cudaStream_t);
  Offdiagonal With(const Scalar *halo) const
  {
    return {slot, start, col, value, halo};
  }
  size_t Bytes() const
  {
    return slot.Bytes() + start.Bytes() + col.Bytes() + value.Bytes();
  }
};

} // namespace spmv

// All that a kernel may be called, as constants: whoever reads the statistics may keep the pointer
#define SPMV_NAMES(name)                                                                                        \
  {                                                                                                             \
    name, name ", values in single precision", name ", measured", name ", values in single precision, measured" \
  }
using SpMVNames = const char *const[4];

struct _n_SpMVCudaStore {
  int                m = 0, n = 0;
  int64_t            nnz      = 0;
  const char *const *names    = nullptr; // SpMVNames of the kernel
  bool               single   = false;   // values are stored as spmv::Single
  bool               measured = false;   // it was the fastest of several
  spmv::Array<int>   it;                 // transposed blocks, and those of rows apart: their row offsets,
  spmv::Array<int>   from;               // and where their values are found in A

  std::unique_ptr<_n_SpMVCudaStore>      boundary; // the rows that may be multiplied apart from the others, once more
  std::unique_ptr<spmv::OffdiagonalRows> fused;    // the off-diagonal block, where this one's product adds it

  spmv::StreamOrder         order;          // of fills and products, which share partial sums and values
  spmv::Array<spmv::Scalar> copy_x, copy_y; // of arrays that are not aligned

  virtual ~_n_SpMVCudaStore() = default;
  void Of(const SpMVCudaCSR &csr)
  {
    m   = (int)csr.m;
    n   = (int)csr.n;
    nnz = csr.nnz;
  }
  virtual cudaError_t Fill(const SpMVCudaCSR &, cudaStream_t) = 0; // a of A where `from` is set, i always of this block
  virtual cudaError_t Mult(bool conjugate, const spmv::Scalar *x, const spmv::Scalar *z, spmv::Scalar *y, cudaStream_t) = 0;
  // y = A x or z + A x beside the kernel before in the stream, which writes nothing of it but the halo: with `early` begins with that one, and lets the
  // next begin. With a halo, what `ghosts` add, where HasOffdiagonal()
  virtual cudaError_t MultFused(const spmv::Scalar *x, const spmv::Scalar *, const spmv::Scalar *z, spmv::Scalar *y, bool, cudaStream_t stream)
  {
    return Mult(false, x, z, y, stream);
  }
  virtual bool CanFuseOffdiagonal() const
  {
    return false;
  }
  virtual cudaError_t Scaled(spmv::Scalar, const spmv::Scalar *, spmv::Scalar, spmv::Scalar *, cudaStream_t)
  {
    return cudaErrorNotSupported;
  }
  virtual bool SkipsEmpty() const // onto y, z = y, rows without entries are neither read nor written
  {
    return false;
  }
  virtual int UnitSize() const // rows of a unit, where the next two work; 0 = they do not
  {
    return 0;
  }
  // MultInterior() is to leave alone the units in `want`, bit u % 32 of word u / 32, and may leave alone more: `all`, zeros before
  virtual cudaError_t SetBoundary(const unsigned *, unsigned *, cudaStream_t)
  {
    return cudaErrorNotSupported;
  }
  virtual cudaError_t MultInterior(const spmv::Scalar *, const spmv::Scalar *, spmv::Scalar *, cudaStream_t)
  {
    return cudaErrorNotSupported;
  }
  virtual cudaError_t SetReorder(bool)
  {
    return cudaErrorNotSupported;
  }
  virtual void        Stats(SpMVStats *) const            = 0; // what it adds: bytes includes its own arrays only
  virtual cudaError_t Visit(SpMVVisitor, void *ctx) const = 0;
};

namespace spmv {

// How slices are formed; what makes sellp and evchyb different on the device is written here
struct SliceRules {
  int  sigma      = 0;     // units are sorted by length within windows of so many; 0 = in the whole block, 1 = not at all
  bool by_column  = false; // sort ascending by length, then by first column (EVC-HYB), else descending by length
  int  per_thread = 0;     // entries a thread takes before a second one helps; 0 = by the number of entries
  int  threads    = 0;     // of each unit; 0 = by length
  int  vector     = 0;     // units longer than it get a whole warp; 0 = by per_thread alone
  int  whole      = 0;     // longer units are split
  int  chunk      = 0;     // into parts of so many entries
  bool narrow     = true;  // 16-bit columns, and none for runs of columns
};

// Values are zeros until the first refresh
cudaError_t DiagonalsCreate(const SpMVCudaCSR &, int bs, bool single, int64_t limit, cudaStream_t, _n_SpMVCudaStore **); // *block NULL: too much padding
// With `unit`, which it takes: those are the units of y that the block's are, and each of them is written
cudaError_t SlicesCreate(const SpMVCudaCSR &, int bs, bool single, const Survey &, SliceRules, const SpMVNames &, Array<int> *unit, cudaStream_t,
                         _n_SpMVCudaStore **);
// The pattern of some rows of a block, and where their entries stand in it
cudaError_t SelectRows(const SpMVCudaCSR &, const Array<int> &row, int count, cudaStream_t, Array<int> &it, Array<int> &jt, Array<int> &from);

// The choice both formats share: node blocks where there are, diagonals where they take fewer bytes than slices, else slices
struct Choice {
  int              node;            // 0 = look for node blocks, 1 = none, else of this size
  bool             diagonals;       // may be used
  bool             single;          // store values in single precision
  bool             measure;         // build the layouts that make sense, time each, keep the fastest
  std::vector<int> sigmas;          // windows that may be tried then
  const SpMVNames &entries, &nodes; // what slices of entries and of node blocks are called

  std::function<SliceRules(const Survey &, int bs, int64_t entries)> rules; // the format's own, should it be slices
};
cudaError_t Choose(const SpMVCudaCSR &, const Choice &, cudaStream_t, _n_SpMVCudaStore **);

// Checks sizes, transposes if asked to, and calls f(csr, &block), which lays out the block itself
template <class F> cudaError_t SetUp(const SpMVCudaCSR *csr, bool transpose, cudaStream_t stream, SpMVCudaStore *block, F f)
{
  *block = nullptr;
  // Columns, rows and positions of transposed blocks are 32-bit numbers, the next multiples of what they are shared out by, too
  if (csr->m > SPMVCUDA_MAX_SIZE || csr->n > SPMVCUDA_MAX_SIZE || (transpose && csr->nnz > SPMVCUDA_MAX_SIZE)) return cudaErrorNotSupported;
  SPMV_TRY(Supported());
  SpMVCudaCSR       use = *csr;
  Array<int>        it, jt, from;
  _n_SpMVCudaStore *b = nullptr;
  if (transpose) {
    SPMV_TRY(TransposeCSR(*csr, stream, it, jt, from));
    use = {csr->n, csr->m, csr->nnz, it, jt, 4, nullptr};
  }
  cudaError_t error = Guarded([&] { return f(use, &b); });
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream); // the scratch arrays go
  if (error != cudaSuccess) {
    delete b;
    return error;
  }
  b->Of(use);
  b->it.Swap(it);
  b->from.Swap(from);
  *block = b;
  return cudaSuccess;
}

// ------------------------------------------------------------------------------------------------ the papers' kernels

// y = alpha A x + beta y, in which y is not read where it is not to be
__device__ __forceinline__ Scalar Update(Scalar alpha, Scalar sum, bool read, Scalar beta, const Scalar *y)
{
  return Num::fma(alpha, sum, read ? Num::fma(beta, *y, Num::zero()) : Num::zero());
}

// Padding, of column -1, reads no x: 0 times Inf would spoil a row that has no such column
__device__ __forceinline__ Scalar Entry(int col, const Scalar *__restrict__ x)
{
  return col < 0 ? Num::zero() : Num::keep(x + col);
}

struct PaperBlock : _n_SpMVCudaStore {
  virtual cudaError_t Product(Scalar alpha, const Scalar *x, bool read, Scalar beta, bool conjugate, Scalar *y, cudaStream_t) = 0;

  cudaError_t Mult(bool conjugate, const Scalar *x, const Scalar *z, Scalar *y, cudaStream_t stream) override
  {
    Scalar one             = Num::zero();
    ((PetscReal *)&one)[0] = 1;
    if (z && z != y) SPMV_TRY(cudaMemcpyAsync(y, z, (size_t)m * sizeof(Scalar), cudaMemcpyDeviceToDevice, stream));
    return Product(one, x, z != nullptr, one, conjugate, y, stream);
  }

  cudaError_t Scaled(Scalar alpha, const Scalar *x, Scalar beta, Scalar *y, cudaStream_t stream) override
  {
    const Scalar zero = Num::zero();
    return Product(alpha, x, memcmp(&beta, &zero, sizeof(zero)) != 0, beta, false, y, stream);
  }
};

// For the oracle
template <class V> void Show(SpMVVisitor entry, void *ctx, int64_t row, int64_t col, const V &value)
{
  const Scalar own = Convert<Scalar>(value);
  PetscScalar  a;
  memcpy((void *)&a, &own, sizeof(a));
  entry(ctx, (PetscInt)row, (PetscInt)col, a);
}

} // namespace spmv
