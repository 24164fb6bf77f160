/*
  Copies, numbers in pinned memory and pools while the thread of SpMVCudaPrepare() runs: right results, everything is
  freed, and ThreadSanitizer, with which tests/cuda/run threads compiles this, finds no race. Options: a number of
  rounds (8); the program ends while the thread runs.
*/
#include "core/cuda/base/memory.cuh"
#include "runtime.h"
#include "core/cuda/spmvcuda.h"
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

static std::atomic<bool> handles(false); // the thread would run a signal handler of the program

static bool Handles()
{
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return !sigismember(&blocked, SIGALRM);
}

// The thread calls this first
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *)
{
  if (Handles()) handles = true;
  usleep(500);
  return cudaSuccess;
}

using namespace spmv;

static int failures = 0;

#define EXPECT(what)                                           \
  do {                                                         \
    if (!(what)) {                                             \
      printf("FAILED %s:%d: %s\n", __FILE__, __LINE__, #what); \
      failures++;                                              \
    }                                                          \
  } while (0)

static void Copies(size_t n)
{
  std::vector<int> a(n), device(n, -1), b(n, -1);
  for (size_t k = 0; k < n; k++) a[k] = (int)(k * 2654435761u);
  void        *to[1] = {device.data()}, *back[1] = {b.data()};
  const void  *from[1] = {a.data()}, *copy[1] = {device.data()};
  const size_t bytes[1] = {n * sizeof(int)};
  EXPECT(SpMVCudaUpload(1, to, from, bytes) == cudaSuccess);
  EXPECT(SpMVCudaDownload(1, back, copy, bytes) == cudaSuccess);
  EXPECT(device == a && b == a);

  SpMVCudaTemporary temporary;
  void             *parts[2];
  const void       *sources[2] = {a.data(), b.data() + n / 2};
  const size_t      sizes[2]   = {bytes[0], (n - n / 2) * sizeof(int)};
  EXPECT(SpMVCudaUploadTemporary(2, parts, sources, sizes, nullptr, &temporary) == cudaSuccess);
  EXPECT(!memcmp(parts[0], sources[0], sizes[0]) && !memcmp(parts[1], sources[1], sizes[1]));
  EXPECT(SpMVCudaFreeTemporary(&temporary, nullptr) == cudaSuccess);
}

static void Memory()
{
  void *p;
  bool  pooled;
  EXPECT(PoolKeep() == cudaSuccess);
  EXPECT(PoolAlloc(&p, 1000, nullptr, &pooled) == cudaSuccess && pooled);
  cudaFreeAsync(p, nullptr);
}

int main(int argc, char **argv)
{
  const int rounds = argc > 1 ? atoi(argv[1]) : 8;
  for (int round = 0; round < rounds; round++) {
    srand((unsigned)round);
    for (int k = 0; k < 6; k++) {
      if (rand() % 2) EXPECT(SpMVCudaPrepare((size_t)(rand() % 3) * (64 << 20)) == cudaSuccess);
      if (rand() % 3 == 0) usleep((useconds_t)(rand() % 4000));
      Copies((size_t)(rand() % (rand() % 2 ? 9 << 20 : 2000)));
      Memory();
    }
    if (round % 3 < 2) continue;
    EXPECT(SpMVCudaFinalize() == cudaSuccess);
    EXPECT(!RuntimeLive());
  }
  EXPECT(!handles && Handles());
  EXPECT(SpMVCudaPrepare((size_t)1 << 28) == cudaSuccess);
  if (!failures) printf("%d rounds passed\n", rounds);
  return failures != 0;
}
