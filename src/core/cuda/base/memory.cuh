/*
  Error handling, arrays on the device, and the order of work in several streams.
*/
#pragma once

#include <csignal>
#include <cuda_runtime_api.h>
#include <new>
#include <utility>
#include <vector>

#define SPMV_TRY(call)                                  \
  do {                                                  \
    cudaError_t spmv_error_ = (call);                   \
    if (spmv_error_ != cudaSuccess) return spmv_error_; \
  } while (0)

namespace spmv {

// Threads that are started during the life of an object do not run the program's signal handlers
class SignalsBlocked {
public:
  SignalsBlocked()
  {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  SignalsBlocked(const SignalsBlocked &) = delete;
  ~SignalsBlocked()
  {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

private:
  sigset_t before;
};

// Keeps this library's code in memory when the program unloads it
void KeepLoaded();

// Wraps code that the C interface calls, so that no exception leaves it
template <class F> cudaError_t Guarded(F f)
{
  try {
    return f();
  } catch (const std::bad_alloc &) { // out of host memory
    return cudaErrorMemoryAllocation;
  } catch (...) {
    return cudaErrorUnknown;
  }
}

// Called before launches and CUB calls, which report any error in cudaGetLastError(), including one that the program
// has left there
inline void ForgetErrors()
{
  (void)cudaGetLastError();
}

constexpr int DEVICES = 64; // devices with larger numbers have no pool

// Allocates from the pool of the current device, for use in this stream, and in other streams after they have waited
// for it. *pooled is false if the memory is from cudaMalloc(), because the device has no pools or the array is too
// large for them
cudaError_t PoolAlloc(void **, size_t bytes, cudaStream_t, bool *pooled);
// before a set-up and after a store was freed: the pool of the current device keeps Tuning::POOL_KEPT bytes beyond what
// is used now, or all bytes
cudaError_t PoolKeep(bool all = false);
cudaError_t PoolFinalize(); // all memory of the pools must have been freed

/*
  An array on the device. An array of cudaMalloc() may be freed while kernels that use it are still queued, because
  cudaFree() then waits for the device. For memory of a pool it does not wait: an array with a stream may be freed, or
  allocated again, only when the work that uses it has ended
*/
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
    SPMV_TRY(cudaMalloc((void **)&p, (count ? count : 1) * sizeof(T)));
    size = count;
    return cudaSuccess;
  }
  // cudaMalloc and cudaFree take 50 us each, and a set-up would need dozens of them. Therefore stores and their set-up
  // use a pool
  cudaError_t Alloc(size_t count, cudaStream_t stream)
  {
    Free();
    SPMV_TRY(PoolAlloc((void **)&p, (count ? count : 1) * sizeof(T), stream, &pooled));
    size = count;
    return cudaSuccess;
  }
  cudaError_t Zero(cudaStream_t stream)
  {
    return cudaMemsetAsync(p, 0, size * sizeof(T), stream);
  }
  cudaError_t AllocZero(size_t count, cudaStream_t stream)
  {
    SPMV_TRY(Alloc(count, stream));
    return Zero(stream);
  }
  void Free()
  {
    if (p) cudaFree(p);
    p      = nullptr;
    size   = 0;
    pooled = false;
  }
  void Swap(Array &o)
  {
    std::swap(p, o.p);
    std::swap(size, o.size);
    std::swap(pooled, o.pooled);
  }
  size_t Size() const
  {
    return size;
  }
  size_t Bytes() const
  {
    return size * sizeof(T);
  }
  operator T *() const
  {
    return p;
  }

protected:
  T     *p      = nullptr;
  size_t size   = 0;
  bool   pooled = false;
};

// A temporary array of a set-up, used in one stream. It is freed in the order of that stream, and the host does not
// wait for it
template <class T> class Scratch : public Array<T> {
public:
  explicit Scratch(cudaStream_t stream) : stream(stream)
  {
  }
  ~Scratch()
  {
    if (!this->pooled) return;
    cudaFreeAsync(this->p, stream);
    this->p = nullptr;
  }
  cudaError_t Alloc(size_t count)
  {
    return Array<T>::Alloc(count, stream);
  }
  cudaError_t AllocZero(size_t count)
  {
    return Array<T>::AllocZero(count, stream);
  }

private:
  cudaStream_t stream;
};

// Copies a list from the host to an array of its size; for set-up only
template <class T> cudaError_t Upload(Array<T> &device, const std::vector<T> &host, cudaStream_t stream)
{
  SPMV_TRY(device.Alloc(host.size(), stream));
  return host.empty() ? cudaSuccess
                      : cudaMemcpyAsync(device, host.data(), device.Bytes(), cudaMemcpyHostToDevice, stream);
}

// Reads a few numbers that the host needs in order to continue; for set-up only
template <class T> cudaError_t Fetch(T *host, const T *device, size_t count, cudaStream_t stream)
{
  SPMV_TRY(cudaMemcpyAsync(host, device, count * sizeof(T), cudaMemcpyDeviceToHost, stream));
  return cudaStreamSynchronize(stream);
}

// An attribute of the current device; for set-up only
inline cudaError_t DeviceHas(cudaDeviceAttr what, int *value)
{
  int device;
  SPMV_TRY(cudaGetDevice(&device));
  return cudaDeviceGetAttribute(value, what, device);
}

// An event without timing
class Event {
public:
  Event()              = default;
  Event(const Event &) = delete;
  ~Event()
  {
    if (event) cudaEventDestroy(event);
  }
  // does nothing if it exists
  cudaError_t Create()
  {
    return event ? cudaSuccess : cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  operator cudaEvent_t() const
  {
    return event;
  }

private:
  cudaEvent_t event = nullptr;
};

/*
  For a resource that only one kernel at a time may use: runs the work that uses it in the order in which it is queued,
  in any streams. With a single stream, this costs a comparison, and two calls of the driver, about 0.1 us, unless it is
  the default stream. Once a second stream has been used, an event is recorded after each piece of work, because the
  previous stream may have been destroyed when another one is used (the first time, the host waits instead). While a
  stream is captured, the caller must order it with other streams.
*/
class StreamOrder {
public:
  // Enter() creates what it needs if this has not been called
  cudaError_t Create()
  {
    return event.Create();
  }
  // thorough: wait for everything on the device, not just for the work that ended with Leave()
  cudaError_t Enter(cudaStream_t stream, bool thorough = false)
  {
    unsigned long long id;
    SPMV_TRY(GetId(stream, &id));
    if (!used || stream != last || id != last_id) SPMV_TRY(Change(stream, thorough));
    last_id = id;
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
  // The handle of a destroyed stream may be that of a new one, and cudaStreamPerThread is a different stream in each
  // thread
  cudaError_t GetId(cudaStream_t stream, unsigned long long *id) const
  {
    *id = 0;
    if (stream && stream != cudaStreamLegacy) {
      bool captured;
      SPMV_TRY(IsCaptured(stream, &captured));
      if (!captured) return cudaStreamGetId(stream, id);
      if (stream == last) *id = last_id; // the call is not permitted, and the caller orders a captured stream
    }
    return cudaSuccess;
  }
  cudaError_t Change(cudaStream_t stream, bool thorough)
  {
    bool captured = false;
    if (used) {
      SPMV_TRY(IsCaptured(stream, &captured));
      if (!captured) SPMV_TRY(recorded && !thorough ? cudaStreamWaitEvent(stream, event, 0) : cudaDeviceSynchronize());
      SPMV_TRY(event.Create());
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
    recorded = !captured; // an event of a capture cannot be used outside of it
    return captured ? cudaSuccess : cudaEventRecord(event, stream);
  }

  Event              event;
  cudaStream_t       last    = nullptr;
  unsigned long long last_id = 0;
  bool               used = false, several = false, recorded = false;
};

} // namespace spmv
