/*
  Benchmark of the device core, without PETSc: both formats and the papers' kernels against cuSPARSE, on generated matrices.

  Usage: cuda_core [-papers] [-sweep] [-lines count] [-csv file] [name ...]      Names as listed in Cases() below; none: all.
  Build: nvcc -std=c++17 -O3 -arch=native -Itests/cuda/standalone bench/products/cuda_core.cu
         -Isrc src/core/cuda/*.cu src/core/cuda/*/ *.cu src / mat / impls / {sellp, evchyb} / {rules, paper}.cu - lcusparse - ldl

    - lines : x is in shared memory if a step of a slice reads it from so many cache lines(Tuning::SHARED_LINES); 0: wherever it fits, 33: nowhere.

  Times are medians of 7 means of 40 or 100 products in a CUDA graph, warm. "stream" is the same for products launched one by one, where the host's launch time
  may dominate (the time of an empty kernel is printed first). Each product is checked against cuSPARSE's CSR product. "bytes" are those of the format's arrays
  and of x and y, each moved once; "share" is the resulting fraction of the bandwidth of a device copy. Set-up is the time that a caller waits for analysis,
  layout and first values; refresh is the time for later values.
*/
#include "core/cuda/product/paper.cuh"
#include "mat/impls/evchyb/evchybcuda.h"
#include "mat/impls/sellp/sellpcuda.h"
#include "../../tests/cuda/check.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cusparse.h>
#include <functional>
#include <string>
#include <thread>

#define CHECK_SPARSE(call) CHECK_STATUS(call, cusparseStatus_t, CUSPARSE_STATUS_SUCCESS, cusparseGetErrorString)

// ------------------------------------------------------------------------------------------------ matrices

struct Generator { // the random numbers of a row depend only on the row
  uint64_t state;
  uint64_t next()
  {
    uint64_t z = state += 0x9E3779B97F4A7C15ull;
    z          = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z          = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  int integer(int n)
  {
    return (int)(next() % (uint64_t)n);
  }
  double real()
  {
    return (double)(next() >> 11) * (1.0 / 9007199254740992.0);
  }
};

using Row     = std::vector<int>;
using Pattern = std::function<void(int, Generator &, Row &)>;
using Values  = std::function<double(int, int, Generator &)>;

struct Matrix {
  int                 n;
  std::vector<int>    i, j;
  std::vector<double> a;
};

static Matrix Build(int n, Pattern pattern, Values value = nullptr)
{
  const int                        parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::vector<int>>    j(parts);
  std::vector<std::vector<double>> a(parts);
  std::vector<std::thread>         threads;
  Matrix                           A{n, std::vector<int>(n + 1, 0), {}, {}};
  for (int p = 0; p < parts; p++) {
    threads.emplace_back([&, p] {
      Row row;
      for (int r = (int)((int64_t)n * p / parts); r < (int)((int64_t)n * (p + 1) / parts); r++) {
        Generator g{0x1234567ull * (uint64_t)(r + 1)};
        row.clear();
        pattern(r, g, row);
        std::sort(row.begin(), row.end());
        row.erase(std::unique(row.begin(), row.end()), row.end());
        for (int c : row) {
          j[p].push_back(c);
          a[p].push_back(value ? value(r, c, g) : g.real() + 0.1);
        }
        A.i[r + 1] = (int)row.size();
      }
    });
  }
  for (auto &t : threads) t.join();
  for (int r = 0; r < n; r++) A.i[r + 1] += A.i[r];
  A.j.reserve(A.i[n]);
  A.a.reserve(A.i[n]);
  for (int p = 0; p < parts; p++) {
    A.j.insert(A.j.end(), j[p].begin(), j[p].end());
    A.a.insert(A.a.end(), a[p].begin(), a[p].end());
    std::vector<int>().swap(j[p]);
    std::vector<double>().swap(a[p]);
  }
  return A;
}

static Matrix Stencil7(int N, Values value = nullptr, int odd = 0) // odd: one row of this many has three more entries
{
  return Build(
      N * N * N,
      [=](int k, Generator &g, Row &r) {
        const int x = k % N, y = k / N % N, z = k / N / N;
        r.push_back(k);
        if (x) r.push_back(k - 1);
        if (x < N - 1) r.push_back(k + 1);
        if (y) r.push_back(k - N);
        if (y < N - 1) r.push_back(k + N);
        if (z) r.push_back(k - N * N);
        if (z < N - 1) r.push_back(k + N * N);
        if (odd && !g.integer(odd)) {
          for (int far = 0; far < 3; far++) r.push_back(g.integer(N * N * N));
        }
      },
      value);
}

// The Jacobian of SNES ex14 at its initial guess: identity rows, with explicit zeros, on the boundary
static Matrix Bratu(int N)
{
  return Stencil7(N, [=](int k, int c, Generator &) {
    const int    x = k % N, y = k / N % N, z = k / N / N;
    const double h = 1.0 / (N - 1), lambda = 6.0, d = std::min({x, N - 1 - x, y, N - 1 - y, z, N - 1 - z}) * h;
    if (d == 0) return c == k ? 1.0 : 0.0;
    return c == k ? 6 * h - h * h * h * lambda * exp(lambda / (lambda + 1) * sqrt(d)) : -h;
  });
}

static Matrix Poisson5(int N)
{
  return Build(
      N * N,
      [=](int k, Generator &, Row &r) {
        const int x = k % N, y = k / N;
        r.push_back(k);
        if (x) r.push_back(k - 1);
        if (x < N - 1) r.push_back(k + 1);
        if (y) r.push_back(k - N);
        if (y < N - 1) r.push_back(k + N);
      },
      [](int k, int c, Generator &) { return c == k ? 4.0 : -1.0; });
}

static Matrix FEM27(int N, int dof, double keep, Values value = nullptr)
{
  const Pattern pattern = [=](int k, Generator &, Row &r) {
    const int p = k / dof, x = p % N, y = p / N % N, z = p / N / N;
    for (int e = 0; e < 27; e++) {
      const int X = x + e % 3 - 1, Y = y + e / 3 % 3 - 1, Z = z + e / 9 - 1, q = (Z * N + Y) * N + X;
      if (X < 0 || Y < 0 || Z < 0 || X >= N || Y >= N || Z >= N) continue;
      Generator edge{(uint64_t)std::min(p, q) << 32 | (uint64_t)std::max(p, q)};
      if (q != p && edge.real() > keep) continue;
      for (int d = 0; d < dof; d++) r.push_back(q * dof + d);
    }
  };
  return Build(N * N * N * dof, pattern, value);
}

static int Near(int k, int w, int n, Generator &g)
{
  return std::min(n - 1, std::max(0, k + g.integer(2 * w + 1) - w));
}

static Matrix PowerLaw(int n, double scale, double exponent, int longest, bool local)
{
  return Build(n, [=](int k, Generator &g, Row &r) {
    const int L = std::min((int)(scale * 0.45 * pow(1 - g.real(), -1.0 / exponent)) + 1, longest);
    for (int q = 0; q < L; q++) {
      if (local && g.integer(8))
        r.push_back(Near(k, 1000, n, g));
      else {
        const double v = g.real();
        r.push_back((int)(n * v * v * 0.999999));
      }
    }
  });
}

static Matrix Circuit()
{
  const int n = 116835;
  return Build(n, [=](int k, Generator &g, Row &r) {
    int L = 3 + g.integer(5);
    if (k == 100 || k == 7000) {
      for (int c = 0; c < (k == 100 ? 114190 : 47193); c++) r.push_back(k == 100 ? c : 2 * c);
      return;
    }
    if (!g.integer(2000)) L = 100 + g.integer(180);
    r.push_back(k);
    for (int q = 1; q < L; q++) r.push_back(g.integer(8) ? Near(k, 200, n, g) : g.integer(n));
  });
}

static Matrix Uniform(int n)
{
  return Build(n, [=](int, Generator &g, Row &r) {
    for (int q = 1 + g.integer(n / 20); q > 0; q--) r.push_back(g.integer(n));
  });
}

static Matrix Dense(int n)
{
  return Build(n, [=](int, Generator &, Row &r) {
    for (int c = 0; c < n; c++) r.push_back(c);
  });
}

static Matrix PowerNetwork()
{
  const int n = 38120;
  return Build(n, [=](int k, Generator &g, Row &r) {
    const int first = k / 200 * 200 - 400;
    r.push_back(k);
    if (k % 200 < 110) {
      for (int q = 0; q < 2; q++) r.push_back(g.integer(n));
    } else {
      for (int c = std::max(0, first); c < std::min(n, first + 980); c++) r.push_back(c);
    }
  });
}

// 7 points in a random order of the unknowns
static Matrix Permuted(int N)
{
  const int        n = N * N * N;
  std::vector<int> to(n), from(n);
  Generator        g{3};
  for (int k = 0; k < n; k++) to[k] = k;
  for (int k = n - 1; k > 0; k--) std::swap(to[k], to[g.integer(k + 1)]);
  for (int k = 0; k < n; k++) from[to[k]] = k;
  return Build(n, [&](int row, Generator &, Row &r) {
    const int k = from[row], x = k % N, y = k / N % N, z = k / N / N;
    r.push_back(row);
    if (x) r.push_back(to[k - 1]);
    if (x < N - 1) r.push_back(to[k + 1]);
    if (y) r.push_back(to[k - N]);
    if (y < N - 1) r.push_back(to[k + N]);
    if (z) r.push_back(to[k - N * N]);
    if (z < N - 1) r.push_back(to[k + N * N]);
  });
}

static Matrix Lengths(int n, std::function<int(int)> length, int width) // columns anywhere, or within width
{
  return Build(n, [=](int k, Generator &g, Row &r) {
    for (int q = length(k); q > 0; q--) r.push_back(width ? Near(k, width, n, g) : g.integer(n));
  });
}

struct Case {
  const char             *name;
  double                  target; // microseconds
  std::function<Matrix()> make;
};

static std::vector<Case> UsualCases()
{
  return {{"stencil7:200", 140, [] { return Stencil7(200); }},
          {"bratu:200", 98, [] { return Bratu(200); }},
          {"bratu:100", 0, [] { return Bratu(100); }},
          {"odd7:160", 0, [] { return Stencil7(160, nullptr, 50); }},
          {"poisson5:3000", 0, [] { return Poisson5(3000); }},
          {"poisson27:150", 0,
           [] { return FEM27(150, 1, 1.0, [](int k, int c, Generator &) { return c == k ? 26.0 : -1.0; }); }},
          {"fem27:68:3", 152, [] { return FEM27(68, 3, 1.0); }},
          {"fem27:68:3:0.6", 103, [] { return FEM27(68, 3, 0.6); }},
          {"webbase", 28, [] { return PowerLaw(1000005, 3.1, 1.6, 4700, true); }},
          {"google", 40, [] { return PowerLaw(916428, 5.6, 2.5, 456, false); }},
          {"dc1", 7.8, [] { return Circuit(); }},
          {"random:20000", 34, [] { return Uniform(20000); }},
          {"random:4000", 0, [] { return Uniform(4000); }},
          {"random:8000", 0, [] { return Uniform(8000); }},
          {"random:12000", 0, [] { return Uniform(12000); }},
          {"random:27000", 0, [] { return Uniform(27000); }},
          {"tsopf", 36, [] { return PowerNetwork(); }},
          {"stencil7:32", 3.4, [] { return Stencil7(32); }},
          {"fem27:40:1:0.9", 5.5, [] { return FEM27(40, 1, 0.9); }},
          {"econ", 7.6, [] { return PowerLaw(206500, 6.2, 4, 44, true); }},
          {"fem27:20:3", 0, [] { return FEM27(20, 3, 1.0); }},
          {"fem27:30:2", 0, [] { return FEM27(30, 2, 1.0); }},
          {"fem27:80:2", 0, [] { return FEM27(80, 2, 1.0); }},
          {"fem27:80:2:0.2", 0, [] { return FEM27(80, 2, 0.2); }},
          {"fem27:40:5:0.6", 0, [] { return FEM27(40, 5, 0.6); }},
          {"tridiag:1000000", 0,
           [] {
             return Build(1000000, [](int k, Generator &, Row &r) {
               for (int c = std::max(0, k - 1); c <= std::min(999999, k + 1); c++) r.push_back(c);
             });
           }},
          {"stencil27:100", 0, [] { return FEM27(100, 1, 1.0); }},
          {"fem27:30:4", 0, [] { return FEM27(30, 4, 1.0); }},
          {"fem27:30:6:0.6", 0, [] { return FEM27(30, 6, 0.6); }},
          {"fem27:32:6", 0, [] { return FEM27(32, 6, 1.0); }},
          {"permuted7:100", 0, [] { return Permuted(100); }},
          {"uniform32:400000", 0,
           [] {
             return Lengths(
                 400000, [](int) { return 32; }, 5000);
           }},
          {"uniform8:1000000", 0,
           [] {
             return Lengths(
                 1000000, [](int) { return 8; }, 0);
           }},
          {"small:1000", 0,
           [] {
             return Lengths(
                 1000, [](int k) { return 5 + k % 11; }, 0);
           }},
          {"small:20000", 0,
           [] {
             return Lengths(
                 20000, [](int k) { return 20 + k % 50; }, 300);
           }},
          {"long:4000", 0,
           [] {
             return Lengths(
                 4000, [](int k) { return 2000 + k % 7 * 200; }, 0);
           }},
          {"long:100000", 0,
           [] {
             return Lengths(
                 100000, [](int k) { return 150 + k % 300; }, 2000);
           }},
          {"dense:3000", 0, [] { return Dense(3000); }},
          {"dense:7200", 0, [] { return Dense(7200); }}, // its rows are cut into parts
          {"arrow:200000", 0, [] {
             return Build(200000, [](int k, Generator &, Row &r) {
               r.push_back(k);
               r.push_back(0);
               for (int c = 1; k == 0 && c < 200000; c++) r.push_back(c);
             });
           }}};
}

// Rows of `length` entries within `width` of the diagonal, or anywhere
static std::vector<Case> LengthCases()
{
  static const struct {
    const char *name;
    int         n, length, width;
  } kinds[] = {
      {"near20:27000:250", 27000, 20, 250},     {"near60:27000:250", 27000, 60, 250},
      {"near60:27000:1000", 27000, 60, 1000},   {"near120:27000:500", 27000, 120, 500},
      {"near240:27000:1000", 27000, 240, 1000}, {"near480:27000:1000", 27000, 480, 1000},
      {"near40:27000:4000", 27000, 40, 4000},   {"near120:27000:4000", 27000, 120, 4000},
      {"near240:27000:4000", 27000, 240, 4000}, {"uniform20:1000", 1000, 20, 0},
      {"uniform60:2000", 2000, 60, 0},          {"uniform60:4000", 4000, 60, 0},
      {"uniform20:8000", 8000, 20, 0},          {"uniform120:8000", 8000, 120, 0},
      {"uniform240:8000", 8000, 240, 0},        {"uniform500:8000", 8000, 500, 0},
      {"uniform60:14000", 14000, 60, 0},        {"uniform120:14000", 14000, 120, 0},
      {"uniform1000:20000", 20000, 1000, 0},    {"uniform20:27000", 27000, 20, 0},
      {"uniform60:27000", 27000, 60, 0},        {"uniform120:27000", 27000, 120, 0},
      {"uniform240:27000", 27000, 240, 0},
  };
  std::vector<Case> cases;
  for (const auto &k : kinds) {
    auto make = [=] {
      return Lengths(
          k.n, [=](int) { return k.length; }, k.width);
    };
    cases.push_back({k.name, 0, make});
  }
  return cases;
}

static std::vector<Case> Cases()
{
  std::vector<Case> cases = UsualCases();
  for (const Case &c : LengthCases()) cases.push_back(c);
  return cases;
}

// ------------------------------------------------------------------------------------------------ measuring

template <class T> static T *Upload(const std::vector<T> &h)
{
  T *d;
  CHECK(cudaMalloc((void **)&d, (h.size() + 1) * sizeof(T)));
  CHECK(cudaMemcpy(d, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice));
  return d;
}

// The times of f in us: in a graph, which gives the device's time, and launched one by one, as most callers do
struct Times {
  double graph, stream;
};
static Times Time(std::function<void(cudaStream_t)> f)
{
  static cudaStream_t stream = nullptr;
  cudaEvent_t         e0, e1;
  cudaGraph_t         graph;
  cudaGraphExec_t     exec;
  constexpr int       COUNT = 20;
  if (!stream) CHECK(cudaStreamCreate(&stream));
  f(stream);
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaEventCreate(&e0));
  CHECK(cudaEventCreate(&e1));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  for (int k = 0; k < COUNT; k++) f(stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  auto median = [&](auto once) { // of COUNT each
    auto mean = [&](int count) {
      float ms;
      CHECK(cudaEventRecord(e0, stream));
      for (int k = 0; k < count; k++) once();
      CHECK(cudaEventRecord(e1, stream));
      CHECK(cudaEventSynchronize(e1));
      CHECK(cudaEventElapsedTime(&ms, e0, e1));
      return ms * 1e3 / count / COUNT;
    };
    mean(1);
    const int           count = mean(1) > 50 ? 2 : 5;
    std::vector<double> t;
    for (int k = 0; k < 7; k++) t.push_back(mean(count));
    std::sort(t.begin(), t.end());
    return t[3];
  };
  Times t;
  t.graph  = median([&] { CHECK(cudaGraphLaunch(exec, stream)); });
  t.stream = median([&] {
    for (int k = 0; k < COUNT; k++) f(stream);
  });
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaEventDestroy(e0));
  CHECK(cudaEventDestroy(e1));
  return t;
}

__global__ void Nothing()
{
}

static double Wall(std::function<void()> f)
{
  CHECK(cudaDeviceSynchronize());
  auto begin = std::chrono::steady_clock::now();
  f();
  CHECK(cudaDeviceSynchronize());
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

// cuSPARSE's sliced ELL with slices of 32 rows
__global__ void SlicedEll(int n, const int *i, const int *j, const double *a, const int64_t *first, int *col,
                          double *value)
{
  const int r = blockIdx.x * blockDim.x + threadIdx.x, s = r / 32;
  if (r >= (n + 31) / 32 * 32) return;
  const int len = r < n ? i[r + 1] - i[r] : 0;
  for (int64_t at = first[s] + r % 32, q = 0; at < first[s + 1]; at += 32, q++) {
    col[at]   = q < len ? j[i[r] + q] : -1;
    value[at] = q < len ? a[i[r] + q] : 0.0;
  }
}

struct Settings {
  std::vector<std::string> names; // of cases; none: all
  bool                     sweep = false, papers = false;
  FILE                    *csv  = nullptr;
  double                   copy = 0; // GB/s of a device copy
  cusparseHandle_t         sparse;
};

// A matrix and its vectors, also on the device, and the times and result of cuSPARSE's products
struct Problem {
  const Settings     &settings;
  const char         *name;
  Matrix              A;
  std::vector<double> product = {};              // by cuSPARSE's CSR
  double              largest = 0;               // largest magnitude of its numbers
  double              alg1 = 0, best = INFINITY; // microseconds
  int                *i, *j;
  double             *a, *x, *y;

  Problem(const Settings &s, const Case &c) : settings(s), name(c.name), A(c.make())
  {
    std::vector<double> numbers(A.n);
    Generator           g{7};
    for (auto &v : numbers) v = g.real();
    i = Upload(A.i);
    j = Upload(A.j);
    a = Upload(A.a);
    x = Upload(numbers);
    y = Upload(numbers);
  }
  Problem(const Problem &) = delete;
  ~Problem()
  {
    for (void *p : {(void *)i, (void *)j, (void *)a, (void *)x, (void *)y}) CHECK(cudaFree(p));
  }
  int64_t nonzeros() const
  {
    return A.i[A.n];
  }
  SpMVCudaCSR csr() const
  {
    return {A.n, A.n, nonzeros(), i, j, 4, a};
  }
};

// GB/s
static double CopyBandwidth()
{
  char  *p;
  double best = 1e30; // in the stream, because copies are slower as nodes of a graph
  CHECK(cudaMalloc((void **)&p, (size_t)2 << 30));
  CHECK(cudaMemset(p, 1, (size_t)2 << 30));
  for (int k = 0; k < 10; k++)
    best = std::min(best, Wall([&] {
                      for (int q = 0; q < 20; q++)
                        CHECK(cudaMemcpyAsync(p, p + (1 << 30), 1 << 30, cudaMemcpyDeviceToDevice));
                    }));
  CHECK(cudaFree(p));
  return 20 * 2.0 * (1 << 30) / best * 1e-6;
}

// Prints a result and checks the product. The first product is the reference for the others; bound 0: not checked
static void Report(Problem &P, const char *name, Times times, double bytes, double setup, double refresh,
                   double bound = 1e-11)
{
  const int           n = P.A.n;
  const double        t = times.graph, flops = 2e-3 * P.nonzeros() / t, share = bytes / t * 1e-3 / P.settings.copy;
  const double        alg1  = P.alg1 == 0 ? 1.0 : P.alg1 / t;
  double              error = 0;
  std::vector<double> y(n);
  CHECK(cudaMemcpy(y.data(), P.y, n * sizeof(double), cudaMemcpyDeviceToHost));
  CHECK(cudaMemset(P.y, 0xff, n * sizeof(double)));
  if (P.product.empty()) {
    P.product = y;
    for (double v : y) P.largest = std::max(P.largest, std::fabs(v));
  }
  for (int r = 0; r < n && bound > 0; r++)
    error = std::isfinite(y[r]) ? std::max(error, std::fabs(y[r] - P.product[r]) / P.largest) : INFINITY;
  printf(
      "  %-60s %9.2f us  stream %9.2f %7.1f GF/s %5.1f %% of copy  x%.2f ALG1  set-up %7.2f ms  refresh %7.1f us%s\n",
      name, t, times.stream, flops, 100 * share, alg1, setup, refresh, bound > 0 && error > bound ? "  WRONG" : "");
  if (P.settings.csv)
    fprintf(P.settings.csv, "%s,%d,%lld,\"%s\",%.3f,%.3f,%.1f,%.0f,%.3f,%.3f,%.3f,%.3f,%.1f,%.1e\n", P.name, n,
            (long long)P.nonzeros(), name, t, times.stream, flops, bytes, share, std::isinf(P.best) ? 1.0 : P.best / t,
            alg1, setup, refresh, error);
  fflush(stdout);
}

// ------------------------------------------------------------------------------------------------ cuSPARSE

// Destroys M
static void CusparseProduct(Problem &P, const char *name, cusparseSpMatDescr_t M, cusparseSpMVAlg_t alg, double bytes)
{
  constexpr cusparseOperation_t OP  = CUSPARSE_OPERATION_NON_TRANSPOSE;
  const cusparseHandle_t        H   = P.settings.sparse;
  double                        one = 1, zero = 0;
  size_t                        size;
  void                         *buffer;
  cusparseDnVecDescr_t          X, Y;
  CHECK_SPARSE(cusparseCreateDnVec(&X, P.A.n, P.x, CUDA_R_64F));
  CHECK_SPARSE(cusparseCreateDnVec(&Y, P.A.n, P.y, CUDA_R_64F));
  CHECK_SPARSE(cusparseSpMV_bufferSize(H, OP, &one, M, X, &zero, Y, CUDA_R_64F, alg, &size));
  CHECK(cudaMalloc(&buffer, size + 8));
  const double setup =
      Wall([&] { (void)cusparseSpMV_preprocess(H, OP, &one, M, X, &zero, Y, CUDA_R_64F, alg, buffer); });
  const Times t = Time([&](cudaStream_t s) {
    CHECK_SPARSE(cusparseSetStream(H, s));
    CHECK_SPARSE(cusparseSpMV(H, OP, &one, M, X, &zero, Y, CUDA_R_64F, alg, buffer));
  });
  Report(P, name, t, bytes, setup, 0);
  P.best = std::min(P.best, t.graph);
  if (P.alg1 == 0) P.alg1 = t.graph;
  CHECK(cudaFree(buffer));
  CHECK_SPARSE(cusparseDestroySpMat(M));
  CHECK_SPARSE(cusparseDestroyDnVec(X));
  CHECK_SPARSE(cusparseDestroyDnVec(Y));
}

static void CusparseCSR(Problem &P)
{
  const int64_t        nnz = P.nonzeros();
  cusparseSpMatDescr_t M;
  for (auto alg : {CUSPARSE_SPMV_CSR_ALG1, CUSPARSE_SPMV_CSR_ALG2}) {
    CHECK_SPARSE(cusparseCreateCsr(&M, P.A.n, P.A.n, nnz, P.i, P.j, P.a, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                   CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    CusparseProduct(P, alg == CUSPARSE_SPMV_CSR_ALG1 ? "cuSPARSE CSR ALG1" : "cuSPARSE CSR ALG2", M, alg,
                    nnz * 12.0 + P.A.n * 20.0);
  }
}

static void CusparseCOO(Problem &P)
{
  const int64_t        nnz = P.nonzeros();
  std::vector<int>     rows(nnz);
  cusparseSpMatDescr_t M;
  for (int r = 0; r < P.A.n; r++) std::fill(rows.begin() + P.A.i[r], rows.begin() + P.A.i[r + 1], r);
  int *i = Upload(rows);
  CHECK_SPARSE(
      cusparseCreateCoo(&M, P.A.n, P.A.n, nnz, i, P.j, P.a, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  CusparseProduct(P, "cuSPARSE COO", M, CUSPARSE_SPMV_COO_ALG1, nnz * 16.0 + P.A.n * 16.0);
  CHECK(cudaFree(i));
}

// Slices of 32 rows, unless most of them would be padding
static void CusparseSlicedEll(Problem &P)
{
  const int            n   = P.A.n;
  const int64_t        nnz = P.nonzeros();
  std::vector<int64_t> first{0};
  cusparseSpMatDescr_t M;
  for (int s = 0; s < (n + 31) / 32; s++) {
    int w = 0;
    for (int r = s * 32; r < std::min(n, s * 32 + 32); r++) w = std::max(w, P.A.i[r + 1] - P.A.i[r]);
    first.push_back(first.back() + 32 * w);
  }
  if (first.back() >= 5 * nnz || first.back() >= INT_MAX) return;
  std::vector<int> first32(first.begin(), first.end());
  int64_t         *df   = Upload(first);
  int             *df32 = Upload(first32), *col;
  double          *value;
  CHECK(cudaMalloc((void **)&col, first.back() * 4));
  CHECK(cudaMalloc((void **)&value, first.back() * 8));
  SlicedEll<<<(n + 255) / 256, 256>>>(n, P.i, P.j, P.a, df, col, value);
  CHECK_SPARSE(cusparseCreateSlicedEll(&M, n, n, nnz, first.back(), 32, df32, col, value, CUSPARSE_INDEX_32I,
                                       CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  CusparseProduct(P, "cuSPARSE sliced ELL", M, CUSPARSE_SPMV_SELL_ALG1, first.back() * 12.0 + n * 16.0);
  CHECK(cudaFree(df));
  CHECK(cudaFree(df32));
  CHECK(cudaFree(col));
  CHECK(cudaFree(value));
}

// ------------------------------------------------------------------------------------------------ our formats

using SetUpStore = std::function<cudaError_t(const SpMVCudaCSR &, SpMVCudaStore *)>;

// Microseconds of a product; bound 0: not checked
static double Run(Problem &P, const char *name, const SetUpStore &setup, double bound = 1e-11, bool reorder = true)
{
  const SpMVCudaCSR csr   = P.csr();
  SpMVCudaStore     store = nullptr;
  SpMVStats         stats;
  char              full[128];
  const double      first = Wall([&] {
    CHECK(setup(csr, &store));
    CHECK(SpMVCudaFill(store, &csr, 0));
  });
  if (!reorder) (void)SpMVCudaSetReorder(store, PETSC_FALSE);
  SpMVCudaGetStats(store, &stats);
  const double refresh = Time([&](cudaStream_t s) { CHECK(SpMVCudaFill(store, &csr, s)); }).graph;
  CHECK(cudaDeviceSynchronize());
  const Times t = Time([&](cudaStream_t s) { CHECK(SpMVCudaMult(store, SPMVCUDA_MULT, P.x, NULL, P.y, s)); });
  snprintf(full, sizeof(full), "%s%s%s", name, strncmp(stats.kernel, "CUDA ", 5) || !reorder ? "" : ": ",
           reorder ? stats.kernel + 5 : "");
  Report(P, full, t, (double)stats.bytes + 16.0 * P.A.n, first, refresh, bound);
  CHECK(SpMVCudaDestroy(&store));
  return t.graph;
}

static SetUpStore SELLP(SpMVCudaKernel kernel, bool single = false)
{
  return [=](const SpMVCudaCSR &csr, SpMVCudaStore *store) {
    SELLPParams p     = {};
    p.common.compress = 1;
    p.common.single   = single;
    return SpMVCudaSELLPSetUp(&csr, &p, kernel, PETSC_FALSE, 0, store);
  };
}

static SetUpStore EVCHYB(SpMVCudaKernel kernel, bool single = false, int threads_log2 = 9)
{
  return [=](const SpMVCudaCSR &csr, SpMVCudaStore *store) {
    EVCHYBParams p     = {};
    p.ell_limit        = 128;
    p.max_threads_log2 = threads_log2;
    p.common.compress  = 1;
    p.common.single    = single;
    return SpMVCudaEVCHYBSetUp(&csr, &p, kernel, PETSC_FALSE, 0, store);
  };
}

static void RunPapersKernels(Problem &P)
{
  Run(P, "paper", SELLP(SPMVCUDA_KERNEL_PAPER));
  Run(P, "paper", EVCHYB(SPMVCUDA_KERNEL_PAPER));
  Run(P, "paper, 256 threads", EVCHYB(SPMVCUDA_KERNEL_PAPER, false, 8));
  Run(P, "EVC-HYB paper without reordering", EVCHYB(SPMVCUDA_KERNEL_PAPER), 0, false);
  Run(P, "paper", EVCHYB(SPMVCUDA_KERNEL_ADAPTIVE));
}

// Slices with all rules that may be the best
static void Sweep(Problem &P)
{
  static constexpr SpMVNames NAMES = SPMV_NAMES("CUDA slices");
  const SpMVCudaCSR          csr   = P.csr();
  spmv::Findings             found;
  spmv::Survey               v;
  CHECK(spmv::Find(csr, 0, 0, &found));
  const int bs = spmv::NodeSize(csr, 0, found);
  CHECK(spmv::TakeSurvey(csr, bs, 0, &v));
  for (int by : {0, 1}) {
    for (int sigma : {1, 1024, 4096, 16384, 65536, 1 << 30}) {
      if ((by && sigma == 1) || (!by && sigma > 4096) ||
          (sigma == 1 && v.natural > 5 * (unsigned long long)P.nonzeros()))
        continue;
      for (int per : {8, 16, 32, 64}) {
        spmv::SliceRules r;
        char             name[80];
        if (per == 64 && v.longest < 100) continue;
        r.sigma      = sigma;
        r.by_column  = by;
        r.per_thread = per;
        r.vector     = by ? 128 : 0;
        r.whole      = spmv::Tuning::LONG;
        r.chunk      = 256;
        snprintf(name, sizeof(name), "%s %d, %d a thread", by ? "by column" : "sigma", sigma, per);
        Run(P, name, [&](const SpMVCudaCSR &A, SpMVCudaStore *store) {
          return spmv::SetUp(&A, false, 0, store, [&](const SpMVCudaCSR &B, _n_SpMVCudaStore **b) {
            return spmv::SlicesCreate(B, bs, nullptr, false, v, r, NAMES, 0, b);
          });
        });
      }
    }
  }
}

// A line of the summary
static std::string RunCase(const Settings &s, const Case &c)
{
  const auto begin = std::chrono::steady_clock::now();
  Problem    P(s, c);
  char       line[200];
  printf("\n%s: %d rows, %lld nonzeros, generated in %.1f s\n", c.name, P.A.n, (long long)P.nonzeros(),
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  CusparseCSR(P);
  CusparseCOO(P);
  CusparseSlicedEll(P);
  const double sellp  = Run(P, "sellp", SELLP(SPMVCUDA_KERNEL_AUTO)),
               evchyb = Run(P, "evchyb", EVCHYB(SPMVCUDA_KERNEL_AUTO));
  const double ours   = std::min(sellp, evchyb);
  Run(P, "sellp slices", SELLP(SPMVCUDA_KERNEL_SLICES));
  Run(P, "evchyb slices", EVCHYB(SPMVCUDA_KERNEL_SLICES));
  Run(P, "sellp", SELLP(SPMVCUDA_KERNEL_AUTO, true), 1e-6);
  Run(P, "evchyb", EVCHYB(SPMVCUDA_KERNEL_AUTO, true), 1e-6);
  if (s.papers) RunPapersKernels(P);
  if (s.sweep) Sweep(P);
  snprintf(line, sizeof(line), "%-18s ALG1 %8.2f  best %8.2f  sellp %8.2f  evchyb %8.2f  target %6.1f  %s  x%.2f%s",
           c.name, P.alg1, P.best, sellp, evchyb, c.target, c.target == 0 || ours <= c.target ? "ok" : "MISSED",
           P.best / ours, std::max(sellp, evchyb) > P.alg1 ? "  SLOWER" : "");
  return line;
}

static Settings ReadArguments(int argc, char **argv)
{
  Settings s;
  for (int k = 1; k < argc; k++) {
    if (!strcmp(argv[k], "-sweep"))
      s.sweep = true;
    else if (!strcmp(argv[k], "-papers"))
      s.papers = true;
    else if (!strcmp(argv[k], "-lines") && k + 1 < argc)
      SpMVCudaSharedLines = atoi(argv[++k]);
    else if (!strcmp(argv[k], "-csv") && k + 1 < argc)
      s.csv = fopen(argv[++k], "w");
    else
      s.names.push_back(argv[k]);
  }
  return s;
}

int main(int argc, char **argv)
{
  Settings                 s = ReadArguments(argc, argv);
  cudaDeviceProp           prop;
  std::vector<std::string> summary;
  CHECK(cudaGetDeviceProperties(&prop, 0));
  CHECK_SPARSE(cusparseCreate(&s.sparse));
  s.copy = CopyBandwidth();
  printf("%s, copy bandwidth %.0f GB/s, CUDA %d.%d\n", prop.name, s.copy, CUDART_VERSION / 1000,
         CUDART_VERSION / 10 % 100);
  const Times empty = Time([](cudaStream_t stream) { Nothing<<<1, 32, 0, stream>>>(); });
  printf("an empty kernel: %.2f us in a graph, %.2f us launched one by one\n", empty.graph, empty.stream);
  if (s.csv)
    fprintf(s.csv, "matrix,rows,nonzeros,kernel,us,stream_us,gflops,bytes,share_of_copy,ratio_to_best_cusparse,ratio_"
                   "to_alg1,setup_ms,refresh_us,error\n");
  for (const Case &c : Cases()) {
    if (s.names.empty() || std::find(s.names.begin(), s.names.end(), c.name) != s.names.end())
      summary.push_back(RunCase(s, c));
  }
  printf("\n");
  for (auto &line : summary) printf("%s\n", line.c_str());
  if (s.csv) fclose(s.csv);
  return 0;
}
