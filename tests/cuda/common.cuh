/*
  Shared by the tests of the device core: arrays on the device, the reference product, checks, and the layouts to test.
*/
#pragma once

#include "check.h"
#include "core/cuda/base/tuning.cuh"
#include "core/cuda/halo/exchange.cuh"
#include "matrices.cuh"
#include <cstring>
#include <string>

template <class T> struct Device { // poisoned, so that missing writes are detected
  T     *p = nullptr;
  size_t size;
  explicit Device(size_t n) : size(n)
  {
    CHECK(cudaMalloc((void **)&p, (n + 1) * sizeof(T)));
    Poison();
  }
  explicit Device(const std::vector<T> &v) : Device(v.size())
  {
    Set(v);
  }
  Device(const Device &) = delete;
  ~Device()
  {
    cudaFree(p);
  }
  void Poison()
  {
    CHECK(cudaMemset(p, 0xff, (size + 1) * sizeof(T)));
  }
  void Set(const std::vector<T> &v)
  {
    CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> Get() const
  {
    std::vector<T> v(size);
    CHECK(cudaMemcpy(v.data(), p, size * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
  }
};

static int         failures = 0, checks = 0;
static inline void Expect(bool right, const Matrix &A, const char *layout, const char *kernel, const char *what)
{
  checks++;
  if (right) return;
  failures++;
  if (failures < 60) printf("FAILED %s, %s (%s): %s\n", A.name, layout, kernel, what);
}

// What main() returns: prints how many checks failed, or with `count` as the last argument, how many passed
static inline int Finish(int argc, char **argv)
{
  if (failures)
    printf("%d of %d checks failed\n", failures, checks);
  else if (argc > 1 && !strcmp(argv[argc - 1], "count"))
    printf("%d checks passed\n", checks);
  return failures != 0;
}

// op(A) x + z, and the sum of magnitudes, by which rounding errors are bounded
static inline void Reference(const Matrix &A, bool transpose, bool conjugate, const std::vector<Number> &x,
                             const Number *z, std::vector<Wide> &y, std::vector<double> &size)
{
  const int rows = transpose ? A.n : A.m;
  y.assign(rows, Wide(0));
  size.assign(rows, 0.0);
  for (int r = 0; r < rows && z; r++) {
    y[r]    = Wide(z[r]);
    size[r] = std::abs(y[r]);
  }
  for (int r = 0; r < A.m; r++) {
    for (int q = A.i[r]; q < A.i[r + 1]; q++) {
      const int  to = transpose ? A.j[q] : r, at = transpose ? r : A.j[q];
      const Wide t = Wide(conjugate ? Conj(A.a[q]) : A.a[q]) * Wide(x[at]);
      y[to] += t;
      size[to] += std::abs(t);
    }
  }
}

static inline bool Close(const std::vector<Number> &y, const std::vector<Wide> &ref, const std::vector<double> &size)
{
  const double eps = sizeof(PetscReal) == 8 ? 1e-14 : 1e-5;
  for (size_t r = 0; r < y.size(); r++) {
    if (!(std::abs(Wide(y[r]) - ref[r]) <= eps * (8 + size[r]))) return false;
  }
  return true;
}

struct Layout {
  const char                                                                               *name;
  bool                                                                                      transpose, conjugate;
  std::function<cudaError_t(const SpMVCudaCSR *, PetscBool, cudaStream_t, SpMVCudaStore *)> setup;
  bool                                                                                      single;

  SpMVCudaForm Form() const
  {
    return conjugate ? SPMVCUDA_CONJUGATE : SPMVCUDA_MULT;
  }
};

static inline const PetscScalar *P(const Number *p)
{
  return (const PetscScalar *)p;
}

// A matrix on the device, with indices of PetscInt
struct OnDevice {
  std::vector<PetscInt> i, j;
  Device<PetscInt>      di, dj;
  Device<Number>        da;
  SpMVCudaCSR           csr;
  explicit OnDevice(const Matrix &A)
      : i(A.i.begin(), A.i.end()), j(A.j.begin(), A.j.end()), di(i), dj(j),
        da(A.a), csr{A.m, A.n, (PetscInt64)A.j.size(), di.p, dj.p, (int)sizeof(PetscInt), P(da.p)}
  {
  }
};

// An exchange of a rank with itself: sends the entries of x with these numbers
class SelfExchange {
public:
  SelfExchange(const std::vector<int> &index)
      : i(index), run(std::vector<int>(index.size() / 32 + 1, -1)), state(std::vector<unsigned>(1, 0)),
        landing(3 * index.size()), post(1), link({spmv::Link{post.p, post.p}}),
        chunk(Chunks((int)index.size())), exchange{chunk.p,
                                                   link.p,
                                                   run.p,
                                                   i.p,
                                                   (spmv::Scalar *)landing.p,
                                                   state.p,
                                                   (int)chunk.size,
                                                   1,
                                                   (int)index.size(),
                                                   (int)index.size(),
                                                   0,
                                                   (unsigned)chunk.size + 1}
  {
  }
  operator SpMVCudaExchange() const
  {
    return &exchange;
  }

private:
  static constexpr int      CHUNK = 100;
  Device<int>               i, run;
  Device<unsigned>          state;
  Device<Number>            landing; // vacant
  Device<spmv::Post>        post;
  Device<spmv::Link>        link;
  Device<spmv::Chunk>       chunk;
  const _n_SpMVCudaExchange exchange;

  std::vector<spmv::Chunk> Chunks(int count) const
  {
    std::vector<spmv::Chunk> chunks;
    for (int at = 0; at < count; at += CHUNK)
      chunks.push_back({(spmv::Scalar *)landing.p + at, count, count, at, std::min(CHUNK, count - at)});
    return chunks;
  }
};

static __device__ void AwaitPrevious()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
static __device__ void LetNextBegin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
static __device__ void Dawdle(int clocks)
{
  const long long begin = clock64();
  while (clock64() - begin < clocks) continue;
}

// Launches a kernel that may begin when the previous one has let it begin
template <class... Parameters, class... Arguments>
static void LaunchEarly(int grid, int block, cudaStream_t stream, void (*kernel)(Parameters...), Arguments... arguments)
{
  cudaLaunchAttribute early                        = {};
  cudaLaunchConfig_t  config                       = {};
  early.id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  config.gridDim                                   = dim3(grid);
  config.blockDim                                  = dim3(block);
  config.stream                                    = stream;
  config.attrs                                     = &early;
  config.numAttrs                                  = 1;
  CHECK(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}
