/*
  A thread that prepares the first product of the process while the program assembles its matrix.
*/
#include "prepare.cuh"
#include <atomic>
#include <cstdlib>
#include <thread>

namespace spmv {
namespace {

std::thread      *thread;
std::atomic<bool> busy, ending, pooled; // the thread is running; it is to end; the pool has been used
size_t            largest;              // copy for which lanes have been created

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

} // namespace

void PrepareEnd()
{
  ending = true;
}

void PrepareFinalize()
{
  ending = true;
  Join();
  pooled  = false;
  largest = 0;
}

} // namespace spmv

cudaError_t SpMVCudaPrepare(size_t bytes)
{
  using namespace spmv;
  int gpu;
  if ((pooled && bytes <= largest) || busy || !HasThreads()) return cudaSuccess;
  SPMV_TRY(cudaGetDevice(&gpu));
  Join();
  // A program may end without PetscFinalize(), and CUDA must outlive the thread. In dlclose(), the loader's lock, which
  // the thread may need, would be held
  static const int registered = (KeepLoaded(), std::atexit(PrepareFinalize));
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
