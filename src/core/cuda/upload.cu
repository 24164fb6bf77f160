/*
  Copies of arrays from the host to the device. The arrays are AIJ's own, in pageable memory, which the driver copies with one thread through a small buffer, at
  a fifth of the speed of the bus. Several threads with their own pinned buffers use all of it.
*/
#include "memory.cuh"
#include "spmvcuda.h"
#include "tuning.cuh"
#include <sched.h>
#include <thread>

namespace spmv {
namespace {

constexpr size_t CHUNK   = Tuning::UPLOAD_CHUNK;
constexpr int    THREADS = Tuning::UPLOAD_THREADS;

// Two pinned chunks for each thread, kept from the first large copy on
unsigned char *staging[THREADS] = {};

// As many threads as this process may use cores. Where MPI binds it to one core, nothing is faster than the driver's own copy
int Threads()
{
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
  return cores < THREADS ? cores : THREADS;
}

struct Piece {
  unsigned char       *device;
  const unsigned char *host;
  size_t               bytes;
};

// Every n-th piece, the two chunks in turn
cudaError_t Send(int gpu, const std::vector<Piece> &pieces, size_t first, size_t step, unsigned char *buffer)
{
  cudaStream_t stream  = nullptr;
  cudaEvent_t  free[2] = {};
  cudaError_t  error   = cudaSetDevice(gpu);
  if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  for (auto &event : free) {
    if (error == cudaSuccess) error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  int turn = 0;
  for (size_t k = first; k < pieces.size() && error == cudaSuccess; k += step, turn ^= 1) {
    error = cudaEventSynchronize(free[turn]);
    if (error != cudaSuccess) break;
    memcpy(buffer + turn * CHUNK, pieces[k].host, pieces[k].bytes);
    error = cudaMemcpyAsync(pieces[k].device, buffer + turn * CHUNK, pieces[k].bytes, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess) error = cudaEventRecord(free[turn], stream);
  }
  if (stream) {
    const cudaError_t done = cudaStreamSynchronize(stream);
    if (error == cudaSuccess) error = done;
    cudaStreamDestroy(stream);
  }
  for (auto &event : free) {
    if (event) cudaEventDestroy(event);
  }
  return error;
}

} // namespace
} // namespace spmv

static cudaError_t Upload(int count, void *const device[], const void *const host[], const size_t bytes[])
{
  using namespace spmv;
  std::vector<Piece> pieces;
  size_t             total   = 0;
  int                threads = Threads(), gpu;

  for (int a = 0; a < count; a++) total += bytes[a];
  while (threads > 1 && total < 2 * threads * CHUNK) threads--;
  for (int t = 0; t < threads && threads > 1; t++) {
    if (!staging[t] && cudaHostAlloc((void **)&staging[t], 2 * CHUNK, cudaHostAllocDefault) != cudaSuccess) {
      (void)cudaGetLastError();
      threads = t; // as many as there is pinned memory for
    }
  }
  if (threads < 2) {
    for (int a = 0; a < count; a++) {
      if (bytes[a]) SPMV_TRY(cudaMemcpy(device[a], host[a], bytes[a], cudaMemcpyHostToDevice));
    }
    return cudaStreamSynchronize(nullptr); // cudaMemcpy() may return once the host's array has been read, which is earlier
  }
  for (int a = 0; a < count; a++) {
    for (size_t at = 0; at < bytes[a]; at += CHUNK)
      pieces.push_back({(unsigned char *)device[a] + at, (const unsigned char *)host[a] + at, bytes[a] - at < CHUNK ? bytes[a] - at : CHUNK});
  }
  SPMV_TRY(cudaGetDevice(&gpu));
  std::vector<std::thread> workers;
  std::vector<cudaError_t> error(threads, cudaSuccess);
  for (int t = 1; t < threads; t++) {
    try {
      workers.emplace_back([&, t] { error[t] = Send(gpu, pieces, t, threads, staging[t]); });
    } catch (...) { // no more threads: its share is done here
      error[t] = Send(gpu, pieces, t, threads, staging[t]);
    }
  }
  error[0] = Send(gpu, pieces, 0, threads, staging[0]);
  for (auto &worker : workers) worker.join();
  for (auto e : error) SPMV_TRY(e);
  return cudaSuccess;
}

cudaError_t SpMVCudaUpload(int count, void *const device[], const void *const host[], const size_t bytes[])
{
  return spmv::Guarded([=] { return Upload(count, device, host, bytes); });
}

cudaError_t SpMVCudaUploadFinalize(void)
{
  for (auto &buffer : spmv::staging) {
    if (buffer) SPMV_TRY(cudaFreeHost(buffer));
    buffer = nullptr;
  }
  return cudaSuccess;
}
