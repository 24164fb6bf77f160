/*
  Copies of arrays from the host to the device, and back. The arrays are AIJ's own, in pageable memory. The driver
  copies such memory with one thread through a small buffer, at a fifth of the speed of the bus. Several threads with
  their own pinned buffers reach the full speed.

  What the first product of a process would wait for, these buffers and the first allocation from a memory pool, is
  prepared by a thread while the program assembles its matrix.
*/
#include "memory.cuh"
#include "tuning.cuh"
#include "core/cuda/spmvcuda.h"
#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sched.h>
#include <thread>

namespace spmv {
namespace {

constexpr size_t CHUNK = Tuning::UPLOAD_CHUNK, PIECE = CHUNK / 2;
constexpr int    THREADS = Tuning::UPLOAD_THREADS;

// The number of cores that this process may use. If MPI binds it to one core, nothing is faster than the driver's own
// copy
int Threads()
{
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
  return cores < THREADS ? cores : THREADS;
}

struct Piece {
  unsigned char *device, *host;
  size_t         bytes;
};

// The resources of a thread, kept after its first copy: a pinned buffer with two halves, and a stream of the current
// device
class Lane {
public:
  Lane()             = default;
  Lane(const Lane &) = delete;
  bool Exists() const
  {
    return buffer;
  }
  // Returns false if there is no memory
  bool Create(int device)
  {
    if (!buffer) {
      if (cudaHostAlloc((void **)&buffer, CHUNK, cudaHostAllocPortable) != cudaSuccess) {
        (void)cudaGetLastError();
        buffer = nullptr;
        return false;
      }
    }
    if (stream && gpu != device) FreeStream();
    gpu = device;
    for (cudaEvent_t &event : free) {
      if (!event && cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) event = nullptr;
    }
    if (!stream && cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) stream = nullptr;
    if (stream && free[0] && free[1]) return true;
    (void)cudaGetLastError();
    return false;
  }
  cudaError_t Free()
  {
    FreeStream();
    unsigned char *b = buffer;
    buffer           = nullptr;
    return b ? cudaFreeHost(b) : cudaSuccess;
  }
  // Copies the pieces from `next` on that no other thread has taken, alternating between the two halves
  cudaError_t Copy(bool back, const std::vector<Piece> &pieces, std::atomic<size_t> &next)
  {
    cudaError_t error = cudaSetDevice(gpu);
    Piece       last  = {nullptr, nullptr, 0}; // back: the piece that is in the other half, or being copied to it
    int         turn  = 0;
    for (size_t k; error == cudaSuccess && (k = next++) < pieces.size(); turn ^= 1) {
      error = back ? Receive(pieces[k], last, turn) : Send(pieces[k], turn);
      last  = pieces[k];
    }
    if (back && error == cudaSuccess && last.bytes) error = Receive({nullptr, nullptr, 0}, last, turn);
    const cudaError_t done = cudaStreamSynchronize(stream);
    return error == cudaSuccess ? done : error;
  }

private:
  unsigned char *Half(int turn) const
  {
    return buffer + turn * PIECE;
  }
  cudaError_t Send(const Piece &piece, int turn)
  {
    SPMV_TRY(cudaEventSynchronize(free[turn]));
    memcpy(Half(turn), piece.host, piece.bytes);
    SPMV_TRY(cudaMemcpyAsync(piece.device, Half(turn), piece.bytes, cudaMemcpyHostToDevice, stream));
    return cudaEventRecord(free[turn], stream);
  }
  // Starts the copy of a piece from the device, and meanwhile stores the previous piece in its place
  cudaError_t Receive(const Piece &piece, const Piece &last, int turn)
  {
    if (piece.bytes) {
      SPMV_TRY(cudaMemcpyAsync(Half(turn), piece.device, piece.bytes, cudaMemcpyDeviceToHost, stream));
      SPMV_TRY(cudaEventRecord(free[turn], stream));
    }
    if (!last.bytes) return cudaSuccess;
    SPMV_TRY(cudaEventSynchronize(free[turn ^ 1]));
    memcpy(last.host, Half(turn ^ 1), last.bytes);
    return cudaSuccess;
  }
  void FreeStream()
  {
    if (stream) cudaStreamDestroy(stream);
    for (cudaEvent_t &event : free) {
      if (event) cudaEventDestroy(event);
      event = nullptr;
    }
    stream = nullptr;
  }
  int            gpu     = -1;
  unsigned char *buffer  = nullptr;
  cudaStream_t   stream  = nullptr;
  cudaEvent_t    free[2] = {}; // no Event, which would be destroyed after CUDA when the program ends
};

Lane       lanes[THREADS];
std::mutex creating; // while a lane is created: by a copy, or before the first copy by SpMVCudaPrepare()'s thread

int Existing()
{
  int existing = 0;
  while (existing < THREADS && lanes[existing].Exists()) existing++;
  return existing;
}

// The number of threads that a copy uses, even if it must create their lanes first
int ThreadsFor(size_t bytes)
{
  int threads = 0;
  while (threads < THREADS && (size_t)(threads + 1) * (threads + 1) * Tuning::UPLOAD_LEAST <= bytes) threads++;
  return threads;
}

// ------------------------------------------------------------------------------------------------ preparation

std::thread      *thread;
std::atomic<bool> busy, ending, pooled; // the thread is running; it is to end; the pool has been used
size_t            largest;              // copy for which lanes have been created

// Creates the lane of one more thread, if a copy of this size would use more threads than have lanes; returns false if
// not
bool LanesCreateNext(int gpu, size_t bytes)
{
  std::lock_guard<std::mutex> lock(creating);
  const int                   existing = Existing();
  // Nothing waits for these lanes, so there are twice as many of them as a copy would create
  return existing < PetscMin(2 * ThreadsFor(bytes), Threads()) && lanes[existing].Create(gpu);
}

// The first allocation from a pool takes about 10 ms
cudaError_t PoolPrepare()
{
  cudaStream_t stream;
  SPMV_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const cudaError_t error = Scratch<char>(stream).Alloc(1);
  (void)cudaStreamDestroy(stream);
  return error;
}

// Errors are ignored: the first product will report them
void Prepare(int gpu, size_t bytes)
{
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed; // another thread may be capturing a stream
  bool right = cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess && cudaSetDevice(gpu) == cudaSuccess;
  while (right && !ending && LanesCreateNext(gpu, bytes)) continue;
  if (right && !ending && !pooled) pooled = PoolPrepare() == cudaSuccess;
  (void)cudaGetLastError();
  busy = false;
}

void Join()
{
  if (thread) thread->join();
  delete thread;
  thread = nullptr;
}

void Finalize()
{
  ending = true;
  Join();
  pooled  = false;
  largest = 0;
}

} // namespace
} // namespace spmv

cudaError_t SpMVCudaPrepare(size_t bytes)
{
  using namespace spmv;
  int gpu;
  if ((pooled && bytes <= largest) || busy || Threads() < 2) return cudaSuccess;
  SPMV_TRY(cudaGetDevice(&gpu));
  Join();
  // A program may end without PetscFinalize(), and CUDA must outlive the thread. In dlclose(), the loader's lock, which
  // the thread may need, would be held
  static const int registered = (KeepLoaded(), std::atexit(Finalize));
  (void)registered;
  busy    = true;
  ending  = false;
  largest = PetscMax(largest, bytes);
  try {
    SignalsBlocked blocked;
    thread = new std::thread(Prepare, gpu, bytes);
  } catch (...) { // no more threads can be started
    busy = false;
  }
  return cudaSuccess;
}

// ------------------------------------------------------------------------------------------------ copies

static cudaError_t Transfer(bool back, int count, void *const device[], void *const host[], const size_t bytes[])
{
  using namespace spmv;
  const cudaMemcpyKind direction = back ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
  std::vector<Piece>   pieces;
  size_t               total = 0;
  int                  gpu;

  for (int a = 0; a < count; a++) total += bytes[a];
  SPMV_TRY(cudaGetDevice(&gpu));
  int threads;
  {
    std::lock_guard<std::mutex> lock(creating);
    threads = total < 2 * CHUNK ? 0
                                : PetscMin(PetscMax(Existing(), ThreadsFor(total)),
                                           PetscMin(Threads(), (int)(PetscMin(total, (size_t)INT_MAX) / PIECE)));
    for (int t = 0; t < threads; t++) {
      if (!lanes[t].Create(gpu)) threads = t;
    }
  }
  if (threads < 2) {
    ending = true; // a set-up has begun, which allocates memory itself
    for (int a = 0; a < count; a++) {
      if (bytes[a]) SPMV_TRY(cudaMemcpy(back ? host[a] : device[a], back ? device[a] : host[a], bytes[a], direction));
    }
    return cudaStreamSynchronize(nullptr); // cudaMemcpy() may return as soon as the host's array has been read
  }
  SPMV_TRY(SpMVCudaPrepare(0));
  for (int a = 0; a < count; a++) {
    for (size_t at = 0; at < bytes[a]; at += PIECE)
      pieces.push_back({(unsigned char *)device[a] + at, (unsigned char *)host[a] + at,
                        bytes[a] - at < PIECE ? bytes[a] - at : PIECE});
  }
  std::atomic<size_t>      next(0);
  std::vector<std::thread> workers;
  std::vector<cudaError_t> error(threads, cudaSuccess);
  for (int t = 1; t < threads; t++) {
    try {
      SignalsBlocked blocked;
      workers.emplace_back([&, t] { error[t] = lanes[t].Copy(back, pieces, next); });
    } catch (...) { // no more threads can be started
      break;
    }
  }
  error[0] = lanes[0].Copy(back, pieces, next);
  for (auto &worker : workers) worker.join();
  for (auto e : error) SPMV_TRY(e);
  return cudaSuccess;
}

cudaError_t SpMVCudaUpload(int count, void *const device[], const void *const host[], const size_t bytes[])
{
  return spmv::Guarded([=] { return Transfer(false, count, device, (void *const *)host, bytes); });
}

cudaError_t SpMVCudaDownload(int count, void *const host[], const void *const device[], const size_t bytes[])
{
  return spmv::Guarded([=] { return Transfer(true, count, (void *const *)device, host, bytes); });
}

// A large copy is made in other streams, a small one in the order of this stream
static cudaError_t TransferInOrder(int count, void *const device[], const void *const host[], const size_t bytes[],
                                   size_t total, cudaStream_t stream)
{
  using namespace spmv;
  if (total >= 2 * CHUNK) {
    SPMV_TRY(cudaStreamSynchronize(stream)); // memory from a pool may still be in use by earlier work of the stream
    return Transfer(false, count, device, (void *const *)host, bytes);
  }
  ending = true;
  for (int a = 0; a < count; a++) {
    if (bytes[a]) SPMV_TRY(cudaMemcpyAsync(device[a], host[a], bytes[a], cudaMemcpyHostToDevice, stream));
  }
  return cudaStreamSynchronize(stream); // the program may have pinned its arrays, and may change them now
}

cudaError_t SpMVCudaUploadTemporary(int count, void *device[], const void *const host[], const size_t bytes[],
                                    cudaStream_t stream, SpMVCudaTemporary *copy)
{
  using namespace spmv;
  constexpr size_t ALIGN = 256;
  size_t           total = 0, at = 0;
  bool             pooled;
  *copy = {nullptr, PETSC_FALSE};
  for (int a = 0; a < count; a++) total += (bytes[a] + ALIGN - 1) / ALIGN * ALIGN;
  SPMV_TRY(PoolAlloc(&copy->memory, total, stream, &pooled));
  copy->pooled = pooled ? PETSC_TRUE : PETSC_FALSE;
  for (int a = 0; a < count; a++) {
    device[a] = (char *)copy->memory + at;
    at += (bytes[a] + ALIGN - 1) / ALIGN * ALIGN;
  }
  if (!host) return cudaSuccess;
  const cudaError_t error = Guarded([=] { return TransferInOrder(count, device, host, bytes, total, stream); });
  if (error != cudaSuccess) (void)SpMVCudaFreeTemporary(copy, stream);
  return error;
}

cudaError_t SpMVCudaFreeTemporary(SpMVCudaTemporary *copy, cudaStream_t stream)
{
  void *const memory = copy->memory;
  copy->memory       = nullptr;
  // cudaFree() waits for the work that uses it
  return !memory ? cudaSuccess : copy->pooled ? cudaFreeAsync(memory, stream) : cudaFree(memory);
}

cudaError_t SpMVCudaFinalize(void)
{
  using namespace spmv;
  Finalize();
  for (auto &lane : lanes) SPMV_TRY(lane.Free());
  return PoolFinalize();
}
