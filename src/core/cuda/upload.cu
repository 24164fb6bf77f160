/*
  Copies of arrays from the host to the device. The arrays are AIJ's own, in pageable memory, which the driver copies with one thread through a small buffer, at
  a fifth of the speed of the bus. Several threads with their own pinned buffers use all of it.
*/
#include "memory.cuh"
#include "spmvcuda.h"
#include "tuning.cuh"
#include <memory>
#include <sched.h>
#include <thread>

namespace spmv {
namespace {

constexpr size_t CHUNK   = Tuning::UPLOAD_CHUNK;
constexpr int    THREADS = Tuning::UPLOAD_THREADS;

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

// What the threads need, kept from the first large copy on: two pinned chunks each, a stream, and an event for each chunk
class Staging {
public:
  Staging()                = default;
  Staging(const Staging &) = delete;
  ~Staging()
  {
    if (buffer) cudaFreeHost(buffer);
    for (Lane &lane : lanes) {
      if (lane.stream) cudaStreamDestroy(lane.stream);
      for (cudaEvent_t event : lane.free) {
        if (event) cudaEventDestroy(event);
      }
    }
  }
  cudaError_t Create(int device)
  {
    gpu = device;
    SPMV_TRY(cudaHostAlloc((void **)&buffer, THREADS * 2 * CHUNK, cudaHostAllocDefault));
    for (Lane &lane : lanes) {
      SPMV_TRY(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
      for (cudaEvent_t &event : lane.free) SPMV_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
    return cudaSuccess;
  }
  bool IsOf(int device) const
  {
    return gpu == device;
  }

  // Every step-th piece, by thread t, the two chunks in turn
  cudaError_t Send(const std::vector<Piece> &pieces, size_t t, size_t step)
  {
    cudaError_t error = cudaSetDevice(gpu);
    int         turn  = 0;
    for (size_t k = t; k < pieces.size() && error == cudaSuccess; k += step, turn ^= 1) {
      unsigned char *chunk = buffer + (2 * t + turn) * CHUNK;
      error                = cudaEventSynchronize(lanes[t].free[turn]);
      if (error != cudaSuccess) break;
      memcpy(chunk, pieces[k].host, pieces[k].bytes);
      error = cudaMemcpyAsync(pieces[k].device, chunk, pieces[k].bytes, cudaMemcpyHostToDevice, lanes[t].stream);
      if (error == cudaSuccess) error = cudaEventRecord(lanes[t].free[turn], lanes[t].stream);
    }
    const cudaError_t done = cudaStreamSynchronize(lanes[t].stream);
    return error == cudaSuccess ? done : error;
  }

private:
  struct Lane {
    cudaStream_t stream  = nullptr;
    cudaEvent_t  free[2] = {};
  };
  int            gpu    = -1;
  unsigned char *buffer = nullptr;
  Lane           lanes[THREADS];
};

std::unique_ptr<Staging> staging;

// *usable: there is a Staging for this device. Not where `total` bytes are not worth one, or there is no memory for it
cudaError_t Stage(size_t total, bool *usable)
{
  int gpu;
  SPMV_TRY(cudaGetDevice(&gpu));
  *usable = staging && staging->IsOf(gpu);
  if (*usable || total < (size_t)Tuning::UPLOAD_FIRST) return cudaSuccess;
  staging.reset(new Staging);
  if (staging->Create(gpu) == cudaSuccess)
    *usable = true;
  else {
    (void)cudaGetLastError();
    staging.reset();
  }
  return cudaSuccess;
}

// One number for each store of diagonals
constexpr size_t PAGE = 4096 / sizeof(unsigned);

struct WordPage {
  unsigned *word        = nullptr;
  size_t    used        = 0;
  bool      taken[PAGE] = {};
};
std::vector<std::unique_ptr<WordPage>> pages;

cudaError_t TakeWord(unsigned **word)
{
  if (pages.empty() || pages.back()->used == PAGE) {
    std::unique_ptr<WordPage> page(new WordPage);
    pages.reserve(pages.size() + 1);
    SPMV_TRY(cudaHostAlloc((void **)&page->word, PAGE * sizeof(unsigned), cudaHostAllocPortable));
    pages.push_back(std::move(page));
  }
  WordPage &page = *pages.back();
  size_t    k    = 0;
  while (page.taken[k]) k++;
  page.taken[k] = true;
  page.used++;
  *word = page.word + k;
  return cudaSuccess;
}

} // namespace

cudaError_t PinnedWord(unsigned **word)
{
  return Guarded([=] { return TakeWord(word); });
}

void PinnedWordFree(unsigned *word)
{
  for (auto &page : pages) {
    if (word < page->word || word >= page->word + PAGE) continue;
    page->taken[word - page->word] = false;
    page->used--;
    if (page != pages.back()) std::swap(page, pages.back()); // the last one has room
    return;
  }
}

} // namespace spmv

static cudaError_t Upload(int count, void *const device[], const void *const host[], const size_t bytes[])
{
  using namespace spmv;
  std::vector<Piece> pieces;
  size_t             total   = 0;
  int                threads = Threads();
  bool               usable  = false;

  for (int a = 0; a < count; a++) total += bytes[a];
  while (threads > 1 && total < 2 * threads * CHUNK) threads--;
  if (threads > 1) SPMV_TRY(Stage(total, &usable));
  if (!usable) {
    for (int a = 0; a < count; a++) {
      if (bytes[a]) SPMV_TRY(cudaMemcpy(device[a], host[a], bytes[a], cudaMemcpyHostToDevice));
    }
    return cudaStreamSynchronize(nullptr); // cudaMemcpy() may return once the host's array has been read, which is earlier
  }
  for (int a = 0; a < count; a++) {
    for (size_t at = 0; at < bytes[a]; at += CHUNK)
      pieces.push_back({(unsigned char *)device[a] + at, (const unsigned char *)host[a] + at, bytes[a] - at < CHUNK ? bytes[a] - at : CHUNK});
  }
  std::vector<std::thread> workers;
  std::vector<cudaError_t> error(threads, cudaSuccess);
  for (int t = 1; t < threads; t++) {
    try {
      workers.emplace_back([&, t] { error[t] = staging->Send(pieces, t, threads); });
    } catch (...) { // no more threads: its share is done here
      error[t] = staging->Send(pieces, t, threads);
    }
  }
  error[0] = staging->Send(pieces, 0, threads);
  for (auto &worker : workers) worker.join();
  for (auto e : error) SPMV_TRY(e);
  return cudaSuccess;
}

cudaError_t SpMVCudaUpload(int count, void *const device[], const void *const host[], const size_t bytes[])
{
  return spmv::Guarded([=] { return Upload(count, device, host, bytes); });
}

cudaError_t SpMVCudaFinalize(void)
{
  spmv::staging.reset();
  for (auto &page : spmv::pages) {
    if (!page->used) SPMV_TRY(cudaFreeHost(page->word));
  }
  spmv::pages.clear();
  return cudaSuccess;
}
