/*
  Tests of the device core, without PETSc: every layout and kernel against a plain CSR product on the host. Silent when right.
  Run as `core full`, under compute-sanitizer as `core quick`, or as `core race`, which takes two matrices, where it is very slow; compiled for another
  GPU than the one that is there, as `core unsupported`. `count` at the end prints how many checks passed.
*/
#include "../../src/core/cuda/paper.h"
#include "../../src/mat/impls/evchyb/evchybcuda.h"
#include "../../src/mat/impls/sellp/sellpcuda.h"
#include "check.h"
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <new>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#if defined(PETSC_USE_COMPLEX)
using Number = std::complex<PetscReal>;
using Wide   = std::complex<double>;
using Single = std::complex<float>;
#else
using Number = PetscReal;
using Wide   = double;
using Single = float;
#endif

// The host's memory runs out when so many more allocations have been made; negative: never
static int allocations = -1;
#if !defined(__CUDA_ARCH__) // not the device's own
void *operator new(size_t bytes)
{
  void *p = allocations >= 0 && allocations-- == 0 ? nullptr : malloc(bytes ? bytes : 1);
  if (!p) throw std::bad_alloc();
  return p;
}
void operator delete(void *p) noexcept
{
  free(p);
}
void operator delete(void *p, size_t) noexcept
{
  free(p);
}
#endif

static uint64_t seed = 88172645463325252ull;
static uint64_t Random()
{
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}
static int Int(int n)
{
  return (int)(Random() % (uint64_t)n);
}
static double Real()
{
  return (double)(Random() >> 11) * (1.0 / 9007199254740992.0) - 0.5;
}
static Number Value()
{
#if defined(PETSC_USE_COMPLEX)
  return Number((PetscReal)Real(), (PetscReal)Real());
#else
  return (Number)Real();
#endif
}
static Number Conj(Number a)
{
#if defined(PETSC_USE_COMPLEX)
  return std::conj(a);
#else
  return a;
#endif
}
// Not in a register: GCC 12 forgets the last of an odd number of complex values where it makes a loop of vectors from this
static Number Rounded(Number a)
{
  volatile float re = (float)std::real(a), im = (float)std::imag(a);
#if defined(PETSC_USE_COMPLEX)
  return Number(re, im);
#else
  (void)im;
  return re;
#endif
}
static bool Finite(Number a)
{
  return std::isfinite(std::abs(a));
}

struct Matrix {
  const char         *name;
  int                 m, n;
  std::vector<int>    i, j;
  std::vector<Number> a;
};

using Row = std::vector<int>;
static Matrix Build(const char *name, int m, int n, std::function<void(int, Row &)> f, bool ascend = true)
{
  Matrix A{name, m, n, {0}, {}, {}};
  for (int r = 0; r < m; r++) {
    Row row;
    f(r, row);
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    row.erase(std::remove_if(row.begin(), row.end(), [&](int c) { return c < 0 || c >= n; }), row.end());
    if (!ascend) std::reverse(row.begin(), row.end());
    A.j.insert(A.j.end(), row.begin(), row.end());
    A.i.push_back((int)A.j.size());
  }
  A.a.resize(A.j.size());
  return A;
}

// 7 or 27 points on a grid, s unknowns a point, a share of the neighbours
static Matrix Grid(const char *name, int N, int points, int s, int percent)
{
  return Build(name, N * N * N * s, N * N * N * s, [=](int r, Row &row) {
    const int p = r / s, x = p % N, y = p / N % N, z = p / N / N;
    for (int k = 0; k < 27; k++) {
      const int dx = k % 3 - 1, dy = k / 3 % 3 - 1, dz = k / 9 - 1;
      if (points == 7 && abs(dx) + abs(dy) + abs(dz) > 1) continue;
      if (x + dx < 0 || x + dx >= N || y + dy < 0 || y + dy >= N || z + dz < 0 || z + dz >= N) continue;
      const int q = p + dx + N * (dy + N * dz);
      if (q != p && (int)(((uint64_t)q * 2654435761u ^ (uint64_t)p * 40503u) >> 5) % 100 >= percent) continue;
      for (int e = 0; e < s; e++) row.push_back(q * s + e);
    }
  });
}

// A with the blocks of s columns of each node row as f leaves them: in any order, some more than once
static Matrix Disorder(const char *name, const Matrix &A, int s, std::function<void(int, Row &)> f)
{
  Matrix B{name, A.m, A.n, {0}, {}, {}};
  for (int u = 0; u < A.m / s; u++) {
    Row blocks;
    for (int q = A.i[u * s]; q < A.i[u * s + 1]; q += s) blocks.push_back(A.j[q] / s);
    f(u, blocks);
    for (int e = 0; e < s; e++) {
      for (int c : blocks) {
        for (int d = 0; d < s; d++) B.j.push_back(c * s + d);
      }
      B.i.push_back((int)B.j.size());
    }
  }
  B.a.resize(B.j.size());
  return B;
}
static void Shuffle(int, Row &row)
{
  for (size_t k = row.size(); k > 1; k--) std::swap(row[k - 1], row[Int((int)k)]);
}
static void ShuffleTwice(int unit, Row &row)
{
  for (int k = row.empty() ? 0 : Int(4); k > 0; k--) row.push_back(row[Int((int)row.size())]);
  Shuffle(unit, row);
}

static Matrix Lengths(const char *name, int m, int n, std::function<int(int)> length, bool ascend = true)
{
  return Build(
      name, m, n,
      [=](int r, Row &row) {
        for (int q = length(r); q > 0; q--) row.push_back(Int(n));
      },
      ascend);
}

template <class T> struct Device { // poisoned: what nobody writes shows
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

static int  failures = 0, checks = 0;
static void Expect(bool right, const Matrix &A, const char *layout, const char *kernel, const char *what)
{
  checks++;
  if (right) return;
  failures++;
  if (failures < 60) printf("FAILED %s, %s (%s): %s\n", A.name, layout, kernel, what);
}

// op(A) x + z with the sum of magnitudes, which rounding is measured by
static void Reference(const Matrix &A, bool transpose, bool conjugate, const std::vector<Number> &x, const Number *z, std::vector<Wide> &y,
                      std::vector<double> &size)
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

static bool Close(const std::vector<Number> &y, const std::vector<Wide> &ref, const std::vector<double> &size)
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
  bool                                                                                      single, measured;
};

struct Seen {
  std::vector<std::tuple<int, int, double, double>> entries;
};
static void See(void *ctx, PetscInt row, PetscInt col, PetscScalar value)
{
  Number a;
  memcpy((void *)&a, &value, sizeof(a));
  ((Seen *)ctx)->entries.emplace_back((int)row, (int)col, std::real(a), std::imag(a));
}

static const PetscScalar *P(const Number *p)
{
  return (const PetscScalar *)p;
}

static std::set<std::string> accepted; // layouts whose products have added ghosts

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

// A halo that takes its time, and lets the product begin with it
static __global__ void Arrive(int n, const Number *from, Number *to)
{
  LetNextBegin();
  Dawdle(20000);
  for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = from[i];
}

static void Test(Matrix &A, const Layout &L, int bytes, cudaStream_t stream, cudaStream_t other, cudaEvent_t event)
{
  const int            rows = L.transpose ? A.n : A.m, cols = L.transpose ? A.m : A.n;
  std::vector<int64_t> wide_i(A.i.begin(), A.i.end()), wide_j(A.j.begin(), A.j.end());
  Device<int64_t>      i8(wide_i), j8(wide_j);
  Device<int>          i4(A.i), j4(A.j);
  Device<Number>       a(A.a.size()), x(cols), y(rows), z(rows);
  SpMVCudaCSR   csr = {A.m, A.n, (PetscInt64)A.j.size(), bytes == 8 ? (void *)i8.p : (void *)i4.p, bytes == 8 ? (void *)j8.p : (void *)j4.p, bytes, P(a.p)};
  SpMVCudaStore block;
  SpMVStats     stats;
  std::vector<Number> hx(cols), hz(rows), hy;
  std::vector<Wide>   ref;
  std::vector<double> size;

  csr.a = NULL; // set-up needs none
  CHECK(L.setup(&csr, L.transpose, stream, &block));
  SpMVCudaGetStats(block, &stats);
  std::vector<bool> apart(rows, false); // rows to be multiplied apart
  if (!L.transpose && !L.conjugate && rows) {
    std::vector<int> list;
    const int        begin = Int(rows), end = begin + Int(rows - begin + 1), density = 1 + Int(200);
    for (int r = 0; r < rows; r++) {
      if ((r < begin || r >= end) && Int(density)) continue;
      list.push_back(r);
      apart[r] = true;
    }
    const cudaError_t error = SpMVCudaSetBoundary(block, &csr, (int)list.size(), list.data(), rows, stream);
    if (error != cudaErrorNotSupported) CHECK(error);
    SpMVCudaGetStats(block, &stats);
  }
  csr.a             = P(a.p);
  const bool single = L.single && sizeof(Single) < sizeof(Number);
  auto       expect = [&](bool right, const char *what) { Expect(right, A, L.name, stats.kernel, what); };
  for (int refresh = 0; refresh < 2; refresh++) {
    for (auto &v : A.a) v = refresh == 0 && Int(4) ? Number(-1) : Value(); // many equal values, then none
    for (auto &v : hx) v = Value();
    for (auto &v : hz) v = Value();
    a.Set(A.a);
    x.Set(hx);
    CHECK(SpMVCudaFill(block, &csr, stream));
    if (single) { // from here on what is stored, to the same bounds
      for (auto &v : A.a) v = Rounded(v);
    }
    y.Poison();
    CHECK(SpMVCudaMult(block, L.conjugate, P(x.p), NULL, (PetscScalar *)y.p, stream));
    CHECK(cudaStreamSynchronize(stream));
    hy = y.Get();
    Reference(A, L.transpose, L.conjugate, hx, NULL, ref, size);
    expect(Close(hy, ref, size), "y = A x");

    y.Poison();
    CHECK(SpMVCudaMult(block, L.conjugate, P(x.p), NULL, (PetscScalar *)y.p, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::vector<Number> again = y.Get();
    expect(!rows || !memcmp(again.data(), hy.data(), rows * sizeof(Number)), "the same bits twice");

    z.Set(hz);
    y.Poison();
    Reference(A, L.transpose, L.conjugate, hx, hz.data(), ref, size);
    CHECK(SpMVCudaMult(block, L.conjugate, P(x.p), P(z.p), (PetscScalar *)y.p, stream));
    CHECK(cudaStreamSynchronize(stream));
    expect(Close(y.Get(), ref, size), "y = z + A x");
    CHECK(SpMVCudaMult(block, L.conjugate, P(x.p), P(z.p), (PetscScalar *)z.p, stream));
    CHECK(cudaStreamSynchronize(stream));
    expect(Close(z.Get(), ref, size), "z = z + A x");

    // As with a halo that comes in the same stream: beside the kernel before, with what few rows have in an off-diagonal block, if the kernel adds that
    for (int kind = 0; kind < 3 && !L.transpose && !L.conjugate; kind++) {
      const int        ghosts = 1 + Int(300), begin = Int(rows + 1), density = 1 + Int(20), most = 1 + Int(kind == 2 ? 140 : 9);
      std::vector<int> oi(1, 0), oj;
      size_t           longest = 0;
      for (int r = 0; r < rows; r++) {
        for (int g = Int(ghosts), end = kind && r >= begin && !Int(density) ? Int(most + 1) : 0; g < ghosts && end; g++, end--) oj.push_back(g);
        longest = std::max(longest, oj.size() - oi.back());
        oi.push_back((int)oj.size());
      }
      std::vector<Number> oa(oj.size()), hg(ghosts);
      for (auto &v : oa) v = Value();
      for (auto &v : hg) v = Value();
      Device<int>    di(oi), dj(oj);
      Device<Number> da(oa.size()), halo(ghosts), early(ghosts);
      da.Set(oa);
      halo.Set(hg);
      const SpMVCudaCSR off   = {A.m, ghosts, (PetscInt64)oj.size(), di.p, dj.p, 4, P(da.p)};
      const cudaError_t error = kind ? SpMVCudaFuseOffdiagonal(block, &off, rows, stream) : cudaErrorNotSupported;
      if (kind) expect((error == cudaErrorNotSupported) == !SpMVCudaHasOffdiagonal(block), "ghosts or none");
      if (error != cudaErrorNotSupported) {
        CHECK(error);
        expect(longest <= 32, "long rows are refused");
        accepted.insert(L.name);
        CHECK(SpMVCudaFillOffdiagonal(block, &off, stream));
        if (single) {
          for (auto &v : oa) v = Rounded(v);
        }
      } else if (kind)
        continue;
      for (const bool add : {false, true}) {
        Reference(A, false, false, hx, add ? hz.data() : NULL, ref, size);
        for (int r = 0; r < rows && !error; r++) {
          for (int q = oi[r]; q < oi[r + 1]; q++) {
            const Wide t = Wide(oa[q]) * Wide(hg[oj[q]]);
            ref[r] += t;
            size[r] += std::abs(t);
          }
        }
        for (int trial = 0; trial < 2 && kind == 0 && !add; trial++) { // nor is the product done before the kernel before it is
          Device<Number> late(cols), other(rows);
          y.Poison();
          Arrive<<<1, 256, 0, stream>>>(cols, x.p, late.p);
          CHECK(cudaGetLastError());
          CHECK(SpMVCudaMultFused(block, P(x.p), NULL, NULL, (PetscScalar *)other.p, PETSC_TRUE, stream));
          CHECK(SpMVCudaMult(block, PETSC_FALSE, P(late.p), NULL, (PetscScalar *)y.p, stream));
          CHECK(cudaStreamSynchronize(stream));
          expect(Close(y.Get(), ref, size), "after a product beside another kernel");
        }
        if (kind == 0 && !add) { // asked to, the product waits for all that the kernel before writes
          Device<Number> late(cols);
          y.Poison();
          Arrive<<<1, 256, 0, stream>>>(cols, x.p, late.p);
          CHECK(cudaGetLastError());
          CHECK(SpMVCudaMultFused(block, P(late.p), NULL, NULL, (PetscScalar *)y.p, PETSC_FALSE, stream));
          CHECK(cudaStreamSynchronize(stream));
          expect(Close(y.Get(), ref, size), "x from the kernel before, not early");
        }
        for (int trial = 0; trial < 3; trial++) {
          const PetscBool begin_early = trial < 2 ? PETSC_TRUE : PETSC_FALSE;
          z.Set(hz);
          y.Poison();
          early.Poison();
          // The halo is there when the kernel before is done, not earlier
          Arrive<<<1, 256, 0, stream>>>(ghosts, halo.p, early.p);
          CHECK(cudaGetLastError());
          CHECK(SpMVCudaMultFused(block, P(x.p), error ? NULL : P(early.p), add ? P(z.p) : NULL, (PetscScalar *)y.p, begin_early, stream));
          CHECK(cudaStreamSynchronize(stream));
          expect(Close(y.Get(), ref, size), error ? "beside another kernel" : "beside another kernel, with ghosts");
        }
      }
    }

    for (int kind = 0; kind < 3 && SpMVCudaHasBoundary(block); kind++) { // without z, with it, onto it
      Device<Number> &to = kind == 2 ? z : y;
      z.Set(hz);
      y.Poison();
      const std::vector<Number> before = to.Get();
      const PetscScalar        *add    = kind ? P(z.p) : NULL;
      Reference(A, false, false, hx, kind ? hz.data() : NULL, ref, size);
      CHECK(SpMVCudaMultRows(block, SPMVCUDA_ROWS_INTERIOR, P(x.p), add, (PetscScalar *)to.p, stream));
      CHECK(cudaStreamSynchronize(stream));
      hy             = to.Get();
      bool untouched = true;
      for (int r = 0; r < rows; r++) { // with the rows asked for, others of their slices
        const bool same = !memcmp((void *)&hy[r], (void *)&before[r], sizeof(Number));
        untouched       = untouched && (same || !apart[r]);
        if (same) hy[r] = (Number)ref[r];
      }
      expect(untouched, "rows apart are left alone");
      expect(Close(hy, ref, size), "the other rows");
      CHECK(SpMVCudaMultRows(block, SPMVCUDA_ROWS_BOUNDARY, P(x.p), add, (PetscScalar *)to.p, stream));
      CHECK(cudaStreamSynchronize(stream));
      expect(Close(to.Get(), ref, size), "all rows");
    }
  }

  { // what is stored is A
    Seen                                              seen;
    std::vector<std::tuple<int, int, double, double>> want;
    CHECK(SpMVCudaVisit(block, See, &seen));
    for (int r = 0; r < A.m; r++) {
      for (int q = A.i[r]; q < A.i[r + 1]; q++) want.emplace_back(L.transpose ? A.j[q] : r, L.transpose ? r : A.j[q], std::real(A.a[q]), std::imag(A.a[q]));
    }
    std::sort(want.begin(), want.end());
    std::sort(seen.entries.begin(), seen.entries.end());
    expect(want == seen.entries, "the oracle sees A");
    const PetscInt64 least = stats.stored * (PetscInt64)(single ? sizeof(Single) : sizeof(Number));
    expect(stats.nonzeros == (PetscInt64)A.j.size() && stats.stored >= stats.nonzeros && stats.bytes >= least, "statistics");
    expect(!strstr(stats.kernel, ", values in single precision") == !single && !strstr(stats.kernel, ", measured") == !L.measured, "the kernel's name");
  }

  if (cols) { // NaN and Inf stay in the rows that have the column
    for (int bad = 0; bad < 2; bad++) {
      const int         c = Int(cols);
      std::vector<bool> has(rows, false);
      for (int r = 0; r < A.m; r++) {
        for (int q = A.i[r]; q < A.i[r + 1]; q++) {
          if ((L.transpose ? r : A.j[q]) == c) has[L.transpose ? A.j[q] : r] = true;
        }
      }
      std::vector<Number> h = hx;
      h[c]                  = bad ? Number(NAN) : Number(INFINITY);
      x.Set(h);
      y.Poison();
      CHECK(SpMVCudaMult(block, L.conjugate, P(x.p), NULL, (PetscScalar *)y.p, stream));
      CHECK(cudaStreamSynchronize(stream));
      hy         = y.Get();
      bool right = true;
      for (int r = 0; r < rows; r++) right = right && Finite(hy[r]) == !has[r];
      expect(right, bad ? "NaN stays in its rows" : "Inf stays in its rows");
    }
    // and so do those of A
    if (!A.a.empty()) {
      const int           e = Int((int)A.a.size());
      std::vector<Number> h = A.a;
      h[e]                  = Number(INFINITY);
      const int own         = L.transpose ? A.j[e] : (int)(std::upper_bound(A.i.begin(), A.i.end(), e) - A.i.begin()) - 1;
      for (auto &v : hx) v = Number(1);
      x.Set(hx);
      a.Set(h);
      CHECK(SpMVCudaFill(block, &csr, stream));
      CHECK(SpMVCudaMult(block, L.conjugate, P(x.p), NULL, (PetscScalar *)y.p, stream));
      CHECK(cudaStreamSynchronize(stream));
      hy         = y.Get();
      bool right = true;
      for (int r = 0; r < rows; r++) right = right && Finite(hy[r]) == (r != own);
      expect(right, "Inf in A stays in its row");
      a.Set(A.a);
      CHECK(SpMVCudaFill(block, &csr, stream));
    }
  }

  if (rows == cols) { // products follow one another, in two streams, also in a graph: none begins before what it reads is there
    std::vector<Number> fresh(A.a.size()), apart;
    for (auto &v : fresh) v = Value();
    Device<Number> b(fresh);
    enum { BOUNDARY, CHAIN, GRAPH };
    for (int how : {BOUNDARY, CHAIN, GRAPH}) {
      auto step = [&](cudaError_t error) {
        CHECK(error);
        if (how == BOUNDARY) CHECK(cudaDeviceSynchronize());
      };
      auto wait = [&](cudaStream_t waits, cudaStream_t goes) {
        CHECK(cudaEventRecord(event, goes));
        CHECK(cudaStreamWaitEvent(waits, event, 0));
      };
      a.Set(A.a);
      x.Set(hz);
      if (how == GRAPH) CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
      for (int k = 0; k < 2; k++) {
        step(SpMVCudaFill(block, &csr, stream));
        step(SpMVCudaMult(block, L.conjugate, P(x.p), NULL, (PetscScalar *)y.p, stream));
        wait(other, stream);
        step(SpMVCudaMult(block, L.conjugate, P(y.p), P(x.p), (PetscScalar *)z.p, other));
        wait(stream, other);
        step(SpMVCudaMult(block, L.conjugate, P(z.p), P(z.p), (PetscScalar *)y.p, stream));
        step(SpMVCudaMult(block, L.conjugate, P(y.p), NULL, (PetscScalar *)x.p, stream));
        step(cudaMemcpyAsync(a.p, b.p, fresh.size() * sizeof(Number), cudaMemcpyDeviceToDevice, stream));
      }
      if (how == GRAPH) {
        cudaGraph_t     graph;
        cudaGraphExec_t exec;
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaGraphExecDestroy(exec));
        CHECK(cudaGraphDestroy(graph));
      }
      CHECK(cudaStreamSynchronize(stream));
      if (how == BOUNDARY) apart = x.Get();
      expect(!rows || !memcmp(apart.data(), x.Get().data(), rows * sizeof(Number)), how == CHAIN ? "one after the other" : "a graph of several");
    }
    a.Set(A.a);
    CHECK(SpMVCudaFill(block, &csr, stream));
  }

  { // a product is a graph
    cudaGraph_t     graph;
    cudaGraphExec_t exec;
    for (auto &v : hx) v = Value();
    x.Set(hx);
    Reference(A, L.transpose, L.conjugate, hx, hz.data(), ref, size);
    z.Set(hz);
    y.Poison();
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(SpMVCudaMult(block, L.conjugate, P(x.p), P(z.p), (PetscScalar *)y.p, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int k = 0; k < 2; k++) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    expect(Close(y.Get(), ref, size), "captured in a graph");
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
  }

  { // alpha and beta, where the kernel takes them
    Number      alpha = Number(-0.5), beta = Number(2);
    PetscScalar pa, pb, p0;
    memcpy(&pa, &alpha, sizeof(pa));
    memcpy(&pb, &beta, sizeof(pb));
    memset(&p0, 0, sizeof(p0));
    z.Set(hz);
    const cudaError_t error = SpMVCudaMultScaled(block, pa, P(x.p), pb, (PetscScalar *)z.p, stream);
    if (error != cudaErrorNotSupported) {
      CHECK(error);
      CHECK(cudaStreamSynchronize(stream));
      Reference(A, L.transpose, false, hx, NULL, ref, size);
      for (int r = 0; r < rows; r++) {
        ref[r] = Wide(alpha) * ref[r] + Wide(beta) * Wide(hz[r]);
        size[r] += 2;
      }
      expect(Close(z.Get(), ref, size), "y = alpha A x + beta y");
      y.Poison(); // NaN, which beta = 0 must not read
      Reference(A, L.transpose, false, hx, NULL, ref, size);
      for (auto &v : ref) v *= Wide(alpha);
      CHECK(SpMVCudaMultScaled(block, pa, P(x.p), p0, (PetscScalar *)y.p, stream));
      CHECK(cudaStreamSynchronize(stream));
      expect(Close(y.Get(), ref, size), "y = alpha A x");
    }
    if (SpMVCudaSetReorder(block, PETSC_FALSE) == cudaSuccess) { // rows by length, then by first column
      std::vector<int> order(rows), length(rows, 0), first(rows, 0);
      for (int r = A.m - 1; r >= 0; r--) {
        for (int q = A.i[r + 1] - 1; q >= A.i[r]; q--) {
          const int to = L.transpose ? A.j[q] : r;
          length[to]++;
          first[to] = L.transpose ? r : A.j[q];
        }
      }
      for (int r = 0; r < rows; r++) order[r] = r;
      std::stable_sort(order.begin(), order.end(), [&](int p, int q) { return length[p] != length[q] ? length[p] < length[q] : first[p] < first[q]; });
      std::vector<Wide>   ref2(rows);
      std::vector<double> size2(rows);
      Reference(A, L.transpose, L.conjugate, hx, NULL, ref, size);
      for (int p = 0; p < rows; p++) {
        ref2[p]  = ref[order[p]];
        size2[p] = size[order[p]];
      }
      y.Poison();
      CHECK(SpMVCudaMult(block, L.conjugate, P(x.p), NULL, (PetscScalar *)y.p, stream));
      CHECK(cudaStreamSynchronize(stream));
      expect(Close(y.Get(), ref2, size2), "without reordering");
    }
  }
  CHECK(SpMVCudaDestroy(&block));
}

// Every block reads all of x, then writes a part of it: what the multiprocessors' caches hold of the others' parts is old
static __global__ void Replace(int n, Number *x, const Number *next, Number *nowhere)
{
  Number sum = x[threadIdx.x % n];
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const Number a = x[i];
    if (*(const PetscReal *)&a > *(const PetscReal *)&sum) sum = a;
  }
  Dawdle(10000);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = next[i];
  if (*(const PetscReal *)&sum > 1e30) *nowhere = sum;
}

// As an exchange begins: when what came before is done, and the product with it
static __global__ void Follow()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  LetNextBegin();
  Dawdle(10000);
}

// A product that waits for nobody reads x as it is, not as it was when the caches last saw it
static void TestFresh(Matrix &A, const Layout &L, cudaStream_t stream)
{
  Device<int>         i(A.i), j(A.j);
  Device<Number>      a(A.a.size()), x(A.n), next[2] = {Device<Number>(A.n), Device<Number>(A.n)}, y(A.m), nowhere(1);
  const SpMVCudaCSR   csr   = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  std::vector<Number> hx[2] = {std::vector<Number>(A.n), std::vector<Number>(A.n)}, good[2];
  SpMVCudaStore       block;
  SpMVStats           stats;
  bool                same = true;
  for (auto &v : A.a) v = Value();
  a.Set(A.a);
  CHECK(L.setup(&csr, PETSC_FALSE, stream, &block));
  SpMVCudaGetStats(block, &stats);
  CHECK(SpMVCudaFill(block, &csr, stream));
  for (int k = 0; k < 2; k++) {
    for (auto &v : hx[k]) v = Value();
    next[k].Set(hx[k]);
    CHECK(SpMVCudaMult(block, PETSC_FALSE, P(next[k].p), NULL, (PetscScalar *)y.p, stream));
    CHECK(cudaStreamSynchronize(stream));
    good[k] = y.Get();
  }
  x.Set(hx[1]);
  for (int round = 0; round < 400; round++) {
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t  config{};
    early.id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = config.blockDim = dim3(1);
    config.stream                    = stream;
    config.attrs                     = &early;
    config.numAttrs                  = 1;
    Replace<<<264, 256, 0, stream>>>(A.n, x.p, next[round % 2].p, nowhere.p);
    CHECK(cudaGetLastError());
    CHECK(cudaLaunchKernelEx(&config, Follow));
    CHECK(SpMVCudaMultFused(block, P(x.p), NULL, NULL, (PetscScalar *)y.p, PETSC_TRUE, stream));
    CHECK(cudaStreamSynchronize(stream));
    const std::vector<Number> got = y.Get();
    same                          = same && !memcmp((void *)got.data(), (void *)good[round % 2].data(), got.size() * sizeof(Number));
  }
  Expect(same, A, L.name, stats.kernel, "x as it is");
  CHECK(SpMVCudaDestroy(&block));
}

static __global__ void Delay(int clocks)
{
  Dawdle(clocks);
}

/*
  One block in two streams that nothing else puts in order: products share the partial sums of long rows, and a fill comes before the products that are
  called after it, and after those that were called before it
*/
static void TestStreams(const Layout &L, cudaStream_t stream, cudaStream_t other)
{
  constexpr int       COUNT = 64, ROUNDS = 10, CLOCKS = 300000;
  const Matrix        A = Build("long rows, two streams", 16, 60000, [](int r, Row &row) {
    for (int c = 0; c < 60000; c++) {
      if ((c * 31 + r * 17) % 3) row.push_back(c);
    }
  });
  Device<int>         i(A.i), j(A.j);
  std::vector<Number> ha(A.a.size()), hx(A.n), good[2][2];
  const cudaStream_t  in[2] = {stream, other};
  SpMVCudaStore       block;
  SpMVStats           stats;
  bool                same = true;
  Device<Number>      a[2] = {Device<Number>(A.a.size()), Device<Number>(A.a.size())}, x[2] = {Device<Number>(A.n), Device<Number>(A.n)},
                 y[2] = {Device<Number>((size_t)COUNT * A.m), Device<Number>((size_t)COUNT * A.m)};
  SpMVCudaCSR csr[2];
  for (int k = 0; k < 2; k++) {
    for (auto &v : ha) v = Value();
    for (auto &v : hx) v = Value();
    a[k].Set(ha);
    x[k].Set(hx);
    csr[k] = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a[k].p)};
  }
  CHECK(L.setup(&csr[0], PETSC_FALSE, stream, &block));
  SpMVCudaGetStats(block, &stats);
  auto expect = [&](const char *what) {
    Expect(same, A, L.name, stats.kernel, what);
    same = true;
  };
  auto mult = [&](int where, int k, int at) { CHECK(SpMVCudaMult(block, PETSC_FALSE, P(x[k].p), NULL, (PetscScalar *)y[k].p + at * A.m, in[where])); };
  auto look = [&](int values, int k, int at) {
    const std::vector<Number> got = y[k].Get();
    same                          = same && !memcmp((void *)(got.data() + at * A.m), (void *)good[values][k].data(), A.m * sizeof(Number));
  };
  for (int values = 1; values >= 0; values--) { // alone
    CHECK(SpMVCudaFill(block, &csr[values], stream));
    for (int k = 0; k < 2; k++) {
      mult(0, k, 0);
      CHECK(cudaDeviceSynchronize());
      good[values][k] = y[k].Get();
      good[values][k].resize(A.m);
    }
  }
  for (int round = 0; round < ROUNDS; round++) {
    for (int k = 0; k < 2; k++) y[k].Poison();
    CHECK(cudaDeviceSynchronize());
    for (int at = 0; at < COUNT; at++) {
      for (int k = 0; k < 2; k++) mult(k, k, at); // x[k] in stream k
    }
    CHECK(cudaDeviceSynchronize());
    for (int at = 0; at < COUNT; at++) {
      for (int k = 0; k < 2; k++) look(0, k, at);
    }
  }
  expect("products in two streams");
  for (int round = 0; round < ROUNDS; round++) {
    const int new_one = 1 - round % 2, old_one = round % 2; // values
    for (int k = 0; k < 2; k++) y[k].Poison();
    CHECK(cudaDeviceSynchronize());
    Delay<<<1, 1, 0, other>>>(CLOCKS);
    mult(1, 0, 0); // of the old values, late
    CHECK(SpMVCudaFill(block, &csr[new_one], stream));
    mult(0, 0, 1);
    CHECK(cudaDeviceSynchronize());
    look(old_one, 0, 0);
    look(new_one, 0, 1);
  }
  expect("a fill after a product in another stream");
  for (int round = 0; round < ROUNDS; round++) {
    const int new_one = 1 - round % 2;
    y[0].Poison();
    CHECK(cudaDeviceSynchronize());
    Delay<<<1, 1, 0, stream>>>(CLOCKS);
    CHECK(SpMVCudaFill(block, &csr[new_one], stream));
    mult(1, 0, 0);
    CHECK(cudaDeviceSynchronize());
    look(new_one, 0, 0);
  }
  expect("a product after a fill in another stream");
  for (int round = 0; round < ROUNDS; round++) { // streams come and go
    cudaStream_t brief;
    CHECK(cudaStreamCreateWithFlags(&brief, cudaStreamNonBlocking));
    y[1].Poison();
    CHECK(cudaDeviceSynchronize());
    for (int at = 0; at < COUNT; at++) {
      CHECK(SpMVCudaMult(block, PETSC_FALSE, P(x[1].p), NULL, (PetscScalar *)y[1].p + at * A.m, at % 2 ? other : brief));
      if (at == COUNT / 2) CHECK(cudaStreamDestroy(brief));
      if (at == COUNT / 2) CHECK(cudaStreamCreateWithFlags(&brief, cudaStreamNonBlocking));
    }
    CHECK(cudaStreamDestroy(brief));
    CHECK(cudaDeviceSynchronize());
    for (int at = 0; at < COUNT; at++) look(0, 1, at);
  }
  expect("streams that are destroyed");
  Expect(stats.long_rows > 0, A, L.name, stats.kernel, "rows in parts");
  CHECK(SpMVCudaDestroy(&block));
}

// What is too large for 32-bit numbers is refused before anything of it is read
static void TestTooLarge(const Layout &L, cudaStream_t stream)
{
  const PetscInt64 most = SPMVCUDA_MAX_SIZE, sizes[][3] = {{most + 1, 5, 5}, {5, most + 1, 5}, {INT_MAX - 1, INT_MAX - 1, 5}, {5, 5, INT_MAX - 1}};
  const Matrix     A{"too large", 0, 0, {0}, {}, {}};
  for (const auto &size : sizes) {
    const SpMVCudaCSR csr       = {size[0], size[1], size[2], NULL, NULL, 4, NULL};
    const PetscBool   transpose = L.transpose || size[2] > 5 ? PETSC_TRUE : PETSC_FALSE; // only there the number of entries counts
    SpMVCudaStore     block     = (SpMVCudaStore)&csr;
    const cudaError_t error     = L.setup(&csr, transpose, stream, &block);
    Expect(error == cudaErrorNotSupported && !block, A, L.name, "any", "is refused");
  }
  CHECK(cudaDeviceSynchronize());
  Expect(cudaPeekAtLastError() == cudaSuccess, A, L.name, "any", "no error is left");
}

// The first row all ones, the others one entry on the diagonal
static __global__ void OneLongRow(int rows, int columns, int *i, int *j, Number *a, Number *x)
{
  for (int64_t q = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; q < (int64_t)columns + rows - 1; q += (int64_t)gridDim.x * blockDim.x) {
    j[q]                = (int)(q < columns ? q : q - columns + 1);
    *(PetscReal *)&a[q] = 1;
    if (q < columns) *(PetscReal *)&x[q] = 1;
    if (q == 0) i[0] = 0;
    if (q < rows) i[q + 1] = (int)(columns + q);
  }
}

// A row of 2^29 entries, of which eight are 2^32
static void TestLongest(const Layout &L, cudaStream_t stream)
{
  constexpr int rows = 201, columns = 1 << 29;
  const Matrix  A{"a row of 2^29", rows, columns, {0}, {}, {}};
  const size_t  nnz = (size_t)columns + rows - 1;
  size_t        free, total;
  SpMVCudaStore block;
  CHECK(cudaMemGetInfo(&free, &total));
  if (sizeof(Number) > 4 || free < (size_t)20 << 30) return; // in single precision: the fewest bytes
  Device<int>       i(rows + 1), j(nnz);
  Device<Number>    a(nnz), x(columns), y(rows);
  const SpMVCudaCSR csr = {rows, columns, (PetscInt64)nnz, i.p, j.p, 4, P(a.p)};
  OneLongRow<<<1024, 256, 0, stream>>>(rows, columns, i.p, j.p, a.p, x.p);
  CHECK(cudaGetLastError());
  CHECK(L.setup(&csr, PETSC_FALSE, stream, &block));
  CHECK(SpMVCudaFill(block, &csr, stream));
  CHECK(SpMVCudaMult(block, PETSC_FALSE, P(x.p), NULL, (PetscScalar *)y.p, stream));
  CHECK(cudaStreamSynchronize(stream));
  const std::vector<Number> got   = y.Get();
  bool                      right = true;
  for (int r = 0; r < rows; r++) right = right && got[r] == Number(r ? 1 : columns); // exact: multiples of as many ones as a part has
  Expect(right, A, L.name, "any", "y = A x");
  CHECK(SpMVCudaDestroy(&block));
}

// An error that the program has not looked at is not reported as the library's
static void TestOthersError(Matrix &A, const Layout &L, cudaStream_t stream)
{
  Device<int>    i(A.i), j(A.j);
  Device<Number> a(A.a.size()), x(A.n), y(A.m);
  SpMVCudaCSR    csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  SpMVCudaStore  block;
  SpMVStats      stats;
  Seen           seen;
  const int      row[2] = {0, 1};
  void          *nothing;
  auto           step = [&](cudaError_t error, const char *what) { Expect(error == cudaSuccess || error == cudaErrorNotSupported, A, L.name, "any", what); };
  auto           fail = [&] { Expect(cudaMalloc(&nothing, (size_t)1 << 60) == cudaErrorMemoryAllocation, A, L.name, "any", "an error of one's own"); };
  fail();
  step(L.setup(&csr, L.transpose, stream, &block), "set-up after an error of another");
  if (!block) return;
  SpMVCudaGetStats(block, &stats);
  fail();
  if (!L.transpose && !L.conjugate) step(SpMVCudaSetBoundary(block, &csr, 2, row, A.m, stream), "rows apart after an error of another");
  fail();
  if (!L.transpose && !L.conjugate) step(SpMVCudaFuseOffdiagonal(block, &csr, A.m, stream), "an off-diagonal block after an error of another");
  fail();
  step(SpMVCudaFill(block, &csr, stream), "a fill after an error of another");
  fail();
  if (SpMVCudaHasOffdiagonal(block)) step(SpMVCudaFillOffdiagonal(block, &csr, stream), "a fill of an off-diagonal block after an error of another");
  fail();
  step(SpMVCudaMult(block, PETSC_FALSE, P(x.p), NULL, (PetscScalar *)y.p, stream), "a product after an error of another");
  fail();
  step(SpMVCudaVisit(block, See, &seen), "a visit after an error of another");
  fail();
  step(SpMVCudaDestroy(&block), "an end after an error of another");
  (void)cudaGetLastError();
}

// Each allocation of the host in turn fails: an error, and no exception
static void TestHostMemory(Matrix &A, const Layout &L, cudaStream_t stream)
{
  Device<int>      i(A.i), j(A.j);
  Device<Number>   a(A.a);
  SpMVCudaCSR      csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  SpMVCudaStore    block;
  Seen             seen;
  std::vector<int> list(A.m);
  for (int r = 0; r < A.m; r++) list[r] = r;
  seen.entries.reserve(A.j.size());
  auto each = [&](const char *what, std::function<cudaError_t()> f) {
    bool good = true, more = true;
    for (int n = 0; more && n < 1000; n++) {
      allocations             = n;
      const cudaError_t error = f();
      more                    = allocations < 0; // it came to that
      allocations             = -1;
      good                    = good && (error == cudaErrorMemoryAllocation || error == cudaErrorNotSupported || error == cudaSuccess) &&
             (more || error != cudaErrorMemoryAllocation);
      (void)cudaGetLastError();
    }
    Expect(good && !more, A, L.name, "any", what);
  };
  each("set-up without the host's memory", [&] {
    const cudaError_t error = L.setup(&csr, L.transpose, stream, &block);
    const int         left  = allocations;
    allocations             = -1;
    Expect((error == cudaSuccess) == (block != NULL), A, L.name, "any", "a block or an error");
    if (block) CHECK(SpMVCudaDestroy(&block));
    allocations = left;
    return error;
  });
  CHECK(L.setup(&csr, L.transpose, stream, &block));
  CHECK(SpMVCudaFill(block, &csr, stream)); // a visit reads the values
  if (!L.transpose) each("rows apart without the host's memory", [&] { return SpMVCudaSetBoundary(block, &csr, (int)list.size(), list.data(), A.m, stream); });
  if (!L.transpose) each("an off-diagonal block without the host's memory", [&] { return SpMVCudaFuseOffdiagonal(block, &csr, A.m, stream); });
  each("a visit without the host's memory", [&] {
    seen.entries.clear();
    return SpMVCudaVisit(block, See, &seen);
  });
  CHECK(SpMVCudaDestroy(&block));
  const size_t               bytes = (size_t)64 << 20; // enough for several threads
  Device<unsigned char>      to(bytes);
  std::vector<unsigned char> from(bytes, 7);
  void                      *device = to.p;
  const void                *host   = from.data();
  each("an upload without the host's memory", [&] { return SpMVCudaUpload(1, &device, &host, &bytes); });
  Expect(to.Get() == from, A, L.name, "any", "what was uploaded");
  CHECK(SpMVCudaUploadFinalize());
}

// Complex arrays that begin in the middle of a number, as far as whole ones go
static void TestUnaligned(Matrix &A, const Layout &L, cudaStream_t stream)
{
  const int           rows = L.transpose ? A.n : A.m, cols = L.transpose ? A.m : A.n;
  std::vector<Number> hx(cols), hz(rows);
  std::vector<Wide>   ref;
  std::vector<double> size;
  for (auto &v : A.a) v = Value();
  for (auto &v : hx) v = Value();
  for (auto &v : hz) v = Value();
  Device<int>    i(A.i), j(A.j);
  Device<Number> a(A.a), x(cols + 1), y(rows + 1), z(rows + 1);
  SpMVCudaCSR    csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  SpMVCudaStore  block;
  SpMVStats      stats;
  CHECK(L.setup(&csr, L.transpose, stream, &block));
  CHECK(SpMVCudaFill(block, &csr, stream));
  SpMVCudaGetStats(block, &stats);
  if (L.single && sizeof(Single) < sizeof(Number)) {
    for (auto &v : A.a) v = Rounded(v);
  }
  auto place = [&](Device<Number> &d, bool shifted) { return (Number *)((PetscReal *)d.p + (shifted ? 1 : 0)); };
  auto get   = [&](const Number *from) {
    std::vector<Number> v(rows);
    CHECK(cudaMemcpy(v.data(), from, rows * sizeof(Number), cudaMemcpyDeviceToHost));
    return v;
  };
  for (int which = 0; which < (sizeof(Number) > sizeof(PetscReal) ? 8 : 0); which++) {
    Number *px = place(x, which & 1), *py = place(y, which & 2), *pz = place(z, which & 4);
    CHECK(cudaMemcpy(px, hx.data(), cols * sizeof(Number), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(pz, hz.data(), rows * sizeof(Number), cudaMemcpyHostToDevice));
    y.Poison();
    Reference(A, L.transpose, L.conjugate, hx, NULL, ref, size);
    CHECK(SpMVCudaMult(block, L.conjugate, P(px), NULL, (PetscScalar *)py, stream));
    CHECK(cudaStreamSynchronize(stream));
    Expect(Close(get(py), ref, size), A, L.name, stats.kernel, "y = A x, not aligned");
    Reference(A, L.transpose, L.conjugate, hx, hz.data(), ref, size);
    CHECK(SpMVCudaMult(block, L.conjugate, P(px), P(pz), (PetscScalar *)py, stream));
    CHECK(cudaStreamSynchronize(stream));
    Expect(Close(get(py), ref, size), A, L.name, stats.kernel, "y = z + A x, not aligned");
    if (!L.transpose && !L.conjugate) {
      y.Poison();
      CHECK(SpMVCudaMultFused(block, P(px), NULL, P(pz), (PetscScalar *)py, PETSC_TRUE, stream));
      CHECK(cudaStreamSynchronize(stream));
      Expect(Close(get(py), ref, size), A, L.name, stats.kernel, "after an exchange, not aligned");
      const cudaError_t error = SpMVCudaMultRows(block, SPMVCUDA_ROWS_ALL, P(px), P(pz), (PetscScalar *)py, stream);
      Expect(error == (which ? cudaErrorMisalignedAddress : cudaSuccess), A, L.name, stats.kernel, "by rows, not aligned");
    }
    CHECK(SpMVCudaMult(block, L.conjugate, P(px), P(pz), (PetscScalar *)pz, stream));
    CHECK(cudaStreamSynchronize(stream));
    Expect(Close(get(pz), ref, size), A, L.name, stats.kernel, "z = z + A x, not aligned");
  }
  CHECK(SpMVCudaDestroy(&block));
}

// Where the library has no code for the device, every set-up leaves it to the caller's own product, and no error behind
static void TestUnsupported(Matrix &A, const Layout &L, cudaStream_t stream)
{
  Device<int>       i(A.i), j(A.j);
  const SpMVCudaCSR csr   = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, NULL};
  SpMVCudaStore     block = (SpMVCudaStore)&csr;
  const cudaError_t error = L.setup(&csr, L.transpose, stream, &block);
  Expect(error == cudaErrorNotSupported && !block, A, L.name, "any", "no code for this device");
  Expect(cudaGetLastError() == cudaSuccess, A, L.name, "any", "no error is left");
}

// One layout, both ways to store values: all that differs is their size
static void TestSingle(Matrix &A, const char *name, std::function<cudaError_t(bool, const SpMVCudaCSR *, SpMVCudaStore *)> setup)
{
  Device<int>   i(A.i), j(A.j);
  SpMVCudaCSR   csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, NULL};
  SpMVCudaStore block;
  SpMVStats     stats[2];
  for (int single = 0; single < 2; single++) {
    CHECK(setup(single != 0, &csr, &block));
    SpMVCudaGetStats(block, &stats[single]);
    CHECK(SpMVCudaDestroy(&block));
  }
  if (!stats[0].diagonal != !stats[1].diagonal) return; // the fewer bytes a value has, the more a column index costs
  const PetscInt64 saved = stats[0].stored * (PetscInt64)(sizeof(Number) - PetscMin(sizeof(Single), sizeof(Number)));
  Expect(stats[0].stored == stats[1].stored && stats[0].bytes - stats[1].bytes == saved, A, name, stats[1].kernel, "bytes of single values");
}

// What the statistics choose depends on how many multiprocessors there are: matrices to either side of each bound
static void TestChoice(const Layout &L, cudaStream_t stream)
{
  const int least = SpMVCudaDiagonalsLeast;
  int       device, p;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetAttribute(&p, cudaDevAttrMultiProcessorCount, device));
  auto expect = [&](Matrix A, const char *what, std::function<bool(const SpMVStats &)> right) {
    std::vector<Number> x(A.n);
    std::vector<Wide>   ref;
    std::vector<double> size;
    SpMVCudaStore       block;
    SpMVStats           stats;
    for (auto &v : A.a) v = Value();
    for (auto &v : x) v = Value();
    Device<int>    i(A.i), j(A.j);
    Device<Number> a(A.a), dx(x), y(A.m);
    SpMVCudaCSR    csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
    CHECK(L.setup(&csr, PETSC_FALSE, stream, &block));
    CHECK(SpMVCudaFill(block, &csr, stream));
    CHECK(SpMVCudaMult(block, PETSC_FALSE, P(dx.p), NULL, (PetscScalar *)y.p, stream));
    CHECK(cudaStreamSynchronize(stream));
    SpMVCudaGetStats(block, &stats);
    Reference(A, false, false, x, NULL, ref, size);
    Expect(Close(y.Get(), ref, size), A, L.name, stats.kernel, "y = A x");
    Expect(right(stats), A, L.name, stats.kernel, what);
    CHECK(SpMVCudaDestroy(&block));
  };
  auto diagonals = [](const SpMVStats &s) { return s.diagonal > 0; };
  auto slices    = [](const SpMVStats &s) { return !s.diagonal; };
  auto band      = [](int m) {
    return Build("11 diagonals", m, m, [](int r, Row &row) {
      for (int c = r - 5; c <= r + 5; c++) row.push_back(c);
    });
  };
  expect(Grid("7 points, few rows", 14, 7, 1, 100), "diagonals", diagonals);
  expect(Grid("27 points, few rows", 14, 27, 1, 100), "slices", slices);
  SpMVCudaDiagonalsLeast = 0;
  expect(Grid("27 points, few rows", 14, 27, 1, 100), "diagonals, if any may be", diagonals);
  SpMVCudaDiagonalsLeast = least;
  expect(band(32 * least * p), "diagonals from so many rows on", diagonals);
  expect(band(32 * least * p - 1), "slices of fewer", slices);

  // Too many diagonals, and no runs
  auto rows = [](const char *name, int m, int length, int first) {
    return Build(name, m, 7 * m + 2 * PetscMax(length, first), [=](int r, Row &row) {
      for (int q = 0; q < (r ? length : first); q++) row.push_back(7 * r + 2 * q);
    });
  };
  expect(rows("rows of 80", 128 * p, 80, 80), "four lanes a row", [&](const SpMVStats &s) { return s.slices == 16 * p; });
  expect(rows("rows of 80, fewer", 64 * p, 80, 80), "eight lanes a row", [&](const SpMVStats &s) { return s.slices == 16 * p; });
  expect(rows("rows of 4096", 12 * p, 4096, 5000), "one row in parts", [](const SpMVStats &s) { return s.long_rows == 1; });
  expect(rows("rows of 4096, fewer", 3 * p, 4096, 4096), "all rows in parts", [&](const SpMVStats &s) { return s.long_rows == 3 * p; });
}

int main(int argc, char **argv)
{
  const bool   unsupported = argc > 1 && !strcmp(argv[1], "unsupported");
  const bool   race = argc > 1 && !strcmp(argv[1], "race"), quick = race || (argc > 1 && !strcmp(argv[1], "quick"));
  cudaStream_t stream, other;
  cudaEvent_t  event;
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreate(&other));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));

  std::vector<Matrix> matrices;
  matrices.push_back(Grid("7 points", 9, 7, 1, 100));
  matrices.push_back(Grid("27 points", 6, 27, 1, 100));
  matrices.push_back(Grid("27 points, some", 7, 27, 1, 60));
  matrices.push_back(Grid("2 unknowns", 5, 7, 2, 100));
  matrices.push_back(Grid("3 unknowns", 5, 27, 3, 100));
  matrices.push_back(Grid("3 unknowns, some", 6, 27, 3, 60));
  matrices.push_back(Grid("4 unknowns, some", 4, 27, 4, 60));
  matrices.push_back(Grid("5 unknowns", 4, 7, 5, 100));
  matrices.push_back(Grid("6 unknowns, some", 4, 27, 6, 60));
  matrices.push_back(Grid("7 unknowns", 3, 7, 7, 100));
  matrices.push_back(Grid("8 unknowns", 3, 7, 8, 100));
  matrices.push_back(Lengths("up to 12 entries", 700, 900, [](int) { return Int(13); }));
  matrices.push_back(Lengths("one or two entries", 1500, 300, [](int) { return 1 + Int(2); }));
  matrices.push_back(Lengths("long rows", 40, 3000, [](int r) { return r % 3 ? Int(1500) : 3000; }));
  matrices.push_back(Lengths("two very long rows", 1200, 1200, [](int r) { return r == 7 || r == 800 ? 20000 : Int(6); }));
  matrices.push_back(Lengths("columns far apart", 300, 100000, [](int) { return Int(9); }));
  matrices.push_back(Lengths("mostly empty", 3000, 60, [](int r) { return r % 50 == 3 ? 1 + Int(3) : 0; }));
  matrices.push_back(Lengths(
      "columns descend", 200, 200, [](int) { return Int(40); }, false));
  matrices.push_back(Disorder("columns in any order", Grid("", 7, 7, 1, 100), 1, Shuffle));
  matrices.push_back(Disorder("columns in any order, some twice", Lengths("", 300, 250, [](int) { return Int(60); }), 1, ShuffleTwice));
  matrices.push_back(Disorder("one row out of order", Grid("", 7, 7, 1, 100), 1, [](int r, Row &row) {
    if (r == 100) std::swap(row[1], row[4]);
  }));
  matrices.push_back(Disorder("one entry twice", Grid("", 7, 7, 1, 100), 1, [](int r, Row &row) {
    if (r == 100) row.insert(row.begin() + 2, row[2]);
  }));
  matrices.push_back(Disorder("last entry twice", Grid("", 7, 7, 1, 100), 1, [](int r, Row &row) {
    if (r == 342) row.push_back(row.back());
  }));
  matrices.push_back(Disorder("3 unknowns, in any order, some twice", Grid("", 5, 27, 3, 100), 3, ShuffleTwice));
  matrices.push_back(Disorder("2 unknowns, one block twice", Grid("", 5, 7, 2, 100), 2, [](int u, Row &row) {
    if (u == 77) row.push_back(row[0]);
  }));
  matrices.push_back(Disorder("runs, one entry twice",
                              Build("", 100, 2000,
                                    [](int r, Row &row) {
                                      for (int c = 0; c < 400; c++) row.push_back(r * 4 + c);
                                    }),
                              1, [](int r, Row &row) {
                                if (r % 3 == 0) row.insert(row.begin() + 40 + r, row[40 + r]);
                              }));
  matrices.push_back(Build("runs", 150, 2000, [](int r, Row &row) {
    for (int c = 0; c < (r % 3 ? 333 : 5); c++) row.push_back(r * 4 + c);
  }));
  matrices.push_back(Build("no entries", 77, 33, [](int, Row &) {}));
  matrices.push_back(Build("no rows", 0, 33, [](int, Row &) {}));
  matrices.push_back(Build("one entry", 1, 1, [](int, Row &row) { row.push_back(0); }));
  matrices.push_back(Build("one row", 1, 5000, [](int, Row &row) {
    for (int c = 0; c < 5000; c += 1 + Int(2)) row.push_back(c);
  }));
  // whole slices without entries, between diagonals whose slices differ in length
  matrices.push_back(Build("three diagonals, some rows empty", 1000, 1000, [](int r, Row &row) {
    for (int c = r - 1; c <= r + 1 && r / 96 % 4 != 1; c++) row.push_back(c);
  }));
  matrices.push_back(Build("identity of 1000 and a bit", 1003, 1003, [](int r, Row &row) { row.push_back(r); }));
  if (!quick) {
    matrices.push_back(Grid("7 points, larger", 40, 7, 1, 100));
    matrices.push_back(Lengths("power law", 40000, 40000, [](int) { return std::min(3000, 1 + (int)(1.4 * std::pow(Real() + 0.50001, -0.7))); }));
    matrices.push_back(Lengths("power law, wide", 20000, 200000, [](int) { return std::min(4000, 1 + (int)(2.0 * std::pow(Real() + 0.50001, -0.7))); }));
  }

  using Setup = decltype(Layout::setup);
  auto sellp  = [](PetscInt b, PetscInt t, PetscInt sigma, PetscInt node, PetscInt compress, SpMVCudaKernel k, bool single = false) -> Setup {
    return [=](const SpMVCudaCSR *csr, PetscBool transpose, cudaStream_t s, SpMVCudaStore *block) {
      SELLPParams p     = {};
      p.b               = b;
      p.t               = t;
      p.sigma           = sigma;
      p.common.node     = node;
      p.common.compress = compress;
      p.common.single   = single;
      return SpMVCudaSELLPSetUp(csr, &p, k, transpose, s, block);
    };
  };
  auto evchyb = [](PetscInt limit, PetscInt node, PetscInt compress, SpMVCudaKernel k, bool single = false) -> Setup {
    return [=](const SpMVCudaCSR *csr, PetscBool transpose, cudaStream_t s, SpMVCudaStore *block) {
      EVCHYBParams p     = {};
      p.ell_limit        = limit;
      p.row_align        = 32;
      p.csr_align        = 32;
      p.nnz_per_thread   = 8;
      p.max_threads_log2 = 9;
      p.common.node      = node;
      p.common.compress  = compress;
      p.common.single    = single;
      return SpMVCudaEVCHYBSetUp(csr, &p, k, transpose, s, block);
    };
  };
  std::vector<Layout> layouts = {
      {"sellp", false, false, sellp(0, 0, 0, 0, 1, SPMVCUDA_KERNEL_AUTO)},
      {"sellp, slices", false, true, sellp(0, 0, 0, 0, 1, SPMVCUDA_KERNEL_SLICES)},
      {"sellp, entries", false, false, sellp(0, 0, 0, 1, 1, SPMVCUDA_KERNEL_SLICES)},
      {"sellp, plain", false, false, sellp(0, 0, 64, 1, 0, SPMVCUDA_KERNEL_SLICES)},
      {"sellp, blocks of 8", false, false, sellp(0, 0, 0, 8, 1, SPMVCUDA_KERNEL_AUTO)},
      {"sellp, t = 1", false, false, sellp(0, 1, 1, 0, 1, SPMVCUDA_KERNEL_AUTO)},
      {"sellp, t = 4", false, false, sellp(0, 4, 100, 0, 1, SPMVCUDA_KERNEL_AUTO)},
      {"sellp, t = 32", false, false, sellp(0, 32, 0, 0, 1, SPMVCUDA_KERNEL_AUTO)},
      {"sellp, paper", false, true, sellp(0, 0, 0, 0, 1, SPMVCUDA_KERNEL_PAPER)},
      {"sellp, paper, b = 5, t = 16", false, false, sellp(5, 16, 0, 0, 1, SPMVCUDA_KERNEL_PAPER)},
      {"sellp, paper, b = 32, t = 1", false, false, sellp(32, 1, 0, 0, 1, SPMVCUDA_KERNEL_PAPER)},
      {"sellp, transposed", true, false, sellp(0, 0, 0, 0, 1, SPMVCUDA_KERNEL_AUTO)},
      {"sellp, conjugated and transposed", true, true, sellp(0, 0, 0, 0, 1, SPMVCUDA_KERNEL_SLICES)},
      {"evchyb", false, false, evchyb(128, 0, 1, SPMVCUDA_KERNEL_AUTO)},
      {"evchyb, rows", false, false, evchyb(128, 0, 1, SPMVCUDA_KERNEL_SLICES)},
      {"evchyb, entries", false, true, evchyb(8, 1, 0, SPMVCUDA_KERNEL_SLICES)},
      {"evchyb, paper", false, true, evchyb(128, 0, 1, SPMVCUDA_KERNEL_PAPER)},
      {"evchyb, paper, limit 4", false, false, evchyb(4, 0, 1, SPMVCUDA_KERNEL_PAPER)},
      {"evchyb, adaptive", false, false, evchyb(128, 0, 1, SPMVCUDA_KERNEL_ADAPTIVE)},
      {"evchyb, transposed", true, false, evchyb(128, 0, 1, SPMVCUDA_KERNEL_AUTO)},
      {"evchyb, paper, transposed", true, false, evchyb(128, 0, 1, SPMVCUDA_KERNEL_PAPER)},
      {"sellp, single", false, true, sellp(0, 0, 0, 0, 1, SPMVCUDA_KERNEL_AUTO, true), true},
      {"sellp, slices, single", false, false, sellp(0, 0, 0, 0, 1, SPMVCUDA_KERNEL_SLICES, true), true},
      {"sellp, entries, plain, single", false, false, sellp(0, 0, 0, 1, 0, SPMVCUDA_KERNEL_SLICES, true), true},
      {"sellp, paper, not single", false, false, sellp(0, 0, 0, 0, 1, SPMVCUDA_KERNEL_PAPER, true)},
      {"evchyb, single, transposed", true, true, evchyb(128, 0, 1, SPMVCUDA_KERNEL_AUTO, true), true},
      {"sellp, measured", false, false, sellp(0, 0, 0, 0, 1, SPMVCUDA_KERNEL_TUNE), false, true},
      {"sellp, t = 2, sigma = 64, measured", false, true, sellp(0, 2, 64, 0, 1, SPMVCUDA_KERNEL_TUNE), false, true},
      {"evchyb, measured", false, false, evchyb(128, 0, 1, SPMVCUDA_KERNEL_TUNE), false, true},
      {"evchyb, single, measured, transposed", true, false, evchyb(128, 0, 1, SPMVCUDA_KERNEL_TUNE, true), true, true},
  };
  if (unsupported) {
    int device, major, minor;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    if (major == 8 && minor >= 6)
      printf("skipped: this GPU runs what is compiled for 8.6\n");
    else {
      for (const Layout &L : layouts) TestUnsupported(matrices[0], L, stream);
      Expect(!SpMVCudaIsSupported(), matrices[0], "none", "any", "the device is not supported");
    }
    if (!failures) printf("%d checks passed\n", checks);
    return failures != 0;
  }
  for (const Layout &L : layouts) {
    if (!quick && (!strcmp(L.name, "sellp") || !strcmp(L.name, "evchyb"))) TestChoice(L, stream);
    if (!quick && (!strcmp(L.name, "sellp") || !strcmp(L.name, "sellp, single"))) TestStreams(L, stream, other);
    if (!quick && !strcmp(L.name, "sellp")) TestLongest(L, stream);
    if (!L.measured) TestTooLarge(L, stream);
  }
  SpMVCudaDiagonalsLeast = 0; // small matrices reach all kernels
  for (const Layout &L : layouts) {
    for (Matrix few : {Grid("7 points, few", 5, 7, 1, 100), Grid("3 unknowns, few", 4, 27, 3, 60),
                       Lengths("a long row, few others", 60, 3000, [](int r) { return r ? Int(9) : 8000; })}) {
      if (race || L.measured) continue;
      TestUnaligned(few, L, stream);
      TestHostMemory(few, L, stream);
      if (!quick) TestOthersError(few, L, stream); // under a sanitizer, its error is one
    }
    Matrix small = Grid("7 points, read anew", 20, 7, 1, 100);
    if (!quick && (!strcmp(L.name, "sellp") || !strcmp(L.name, "sellp, entries"))) TestFresh(small, L, stream);
  }
  for (Matrix &A : matrices) {
    const bool few = !strcmp(A.name, "3 unknowns, some") || !strcmp(A.name, "long rows");
    if (race && !few) continue;
    for (SpMVCudaKernel k : {SPMVCUDA_KERNEL_AUTO, SPMVCUDA_KERNEL_SLICES}) {
      TestSingle(A, "sellp",
                 [&](bool single, const SpMVCudaCSR *csr, SpMVCudaStore *b) { return sellp(0, 0, 0, 0, 1, k, single)(csr, PETSC_FALSE, stream, b); });
      TestSingle(A, "evchyb", [&](bool single, const SpMVCudaCSR *csr, SpMVCudaStore *b) { return evchyb(9, 0, 1, k, single)(csr, PETSC_FALSE, stream, b); });
    }
    for (size_t l = 0; l < layouts.size(); l++) {
      if (layouts[l].measured && (race || (quick && !few))) continue; // the same kernels, many times
      if (race) printf("%s, %s\n", A.name, layouts[l].name);
      Test(A, layouts[l], (l & 1) ? 8 : 4, stream, other, event);
      if (!quick && !layouts[l].measured) Test(A, layouts[l], (l & 1) ? 4 : 8, stream, other, event);
    }
  }
  for (const Layout &L : layouts) {
    const bool adds = !L.transpose && !L.conjugate && !strstr(L.name, "paper") && !strstr(L.name, "adaptive") && !(race && L.measured);
    Expect(adds == (accepted.count(L.name) > 0), matrices[0], L.name, "any", "its products add ghosts");
  }
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(other));
  CHECK(cudaStreamDestroy(stream));
  if (failures)
    printf("%d of %d checks failed\n", failures, checks);
  else if (argc > 1 && !strcmp(argv[argc - 1], "count"))
    printf("%d checks passed\n", checks);
  return failures != 0;
}
