/*
  Tests of the set-up of smoothed aggregation on the device, without PETSc: graphs, aggregates and smoothed prolongators
  are compared with those of simple algorithms on the host, tentative prolongators by what defines them, and everything
  is made twice and compared bitwise. Prints nothing on success. Run it as `amg full`; under compute-sanitizer as
  `amg quick`, or as `amg quick random`, which takes only the matrices with this in their names. With `count` as the last
  argument, it prints the number of checks that passed.
*/
#include "core/cuda/amg/amg.h"
#include "hostmemory.cuh"
#include <cuda.h>
#include <dlfcn.h>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

static bool         Quick = false;
static const char  *Only  = ""; // part of a matrix's name
static const double EPS   = (double)std::numeric_limits<PetscReal>::epsilon();

static Matrix Valued(Matrix A)
{
  for (Number &v : A.a) v = Value();
  return A;
}

static Matrix Read(const SpMVCudaCSR &csr)
{
  Matrix                A{"", (int)csr.m, (int)csr.n, {}, {}, {}};
  std::vector<PetscInt> i(csr.m + 1), j(csr.nnz);
  CHECK(cudaMemcpy(i.data(), csr.i, i.size() * sizeof(PetscInt), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(j.data(), csr.j, j.size() * sizeof(PetscInt), cudaMemcpyDeviceToHost));
  A.i.assign(i.begin(), i.end());
  A.j.assign(j.begin(), j.end());
  return A;
}

// ------------------------------------------------------------------------------------------------ graphs

static std::vector<PetscInt> outside; // of the test that runs, or empty

struct Options {
  int    bs;
  bool   symmetrize;
  double threshold;
};

using Edges = std::vector<std::map<int, double>>; // the weights of each vertex's edges, scaled

static Edges ReferenceEdges(const Matrix &A, const Options &o)
{
  const int n = A.m / o.bs;
  Edges     edges(n), sum(n);
  for (int r = 0; r < A.m; r++) {
    for (int q = A.i[r]; q < A.i[r + 1]; q++)
      sum[r / o.bs][A.j[q] / o.bs] += o.bs > 1 ? std::fabs(std::real(A.a[q])) : std::abs(A.a[q]);
  }
  edges = sum;
  for (int r = 0; r < n && o.symmetrize; r++) {
    for (const auto &e : sum[r]) edges[e.first][r] += e.second;
  }
  std::vector<double> scale(n);
  for (int r = 0; r < n; r++) {
    const double d = edges[r].count(r) ? edges[r][r] : 0;
    scale[r]       = d != 0 ? std::sqrt(1 / d) : 0;
  }
  for (int r = 0; r < n; r++) {
    for (auto &e : edges[r]) e.second *= scale[r] * scale[e.first];
  }
  return edges;
}

// Edges whose weight is the threshold up to rounding may be there or not
static bool SameGraph(const Matrix &G, const Edges &edges, double threshold)
{
  if (G.m != (int)edges.size()) return false;
  for (int r = 0; r < G.m; r++) {
    std::set<int> found;
    for (int q = G.i[r]; q < G.i[r + 1]; q++) {
      if (q > G.i[r] && G.j[q - 1] >= G.j[q]) return false;
      const auto e = edges[r].find(G.j[q]);
      if (e == edges[r].end() || (threshold >= 0 && !(e->second > threshold - 100 * EPS * (threshold > 0))))
        return false;
      found.insert(G.j[q]);
    }
    for (const auto &e : edges[r]) {
      if (!found.count(e.first) && (threshold < 0 || e.second > threshold + 100 * EPS)) return false;
    }
  }
  return true;
}

// ------------------------------------------------------------------------------------------------ aggregates

static unsigned Hash(int v)
{
  unsigned x = ~(unsigned)v;
  x          = (x ^ x >> 16) * 0x85ebca6bu;
  x          = (x ^ x >> 13) * 0xc2b2ae35u;
  return x ^ x >> 16;
}

// Greedy, one vertex after the other. bs = 0: of aggregates, in their order, as far as 256 parallel rounds decide
static std::vector<int> ReferenceAggregates(const Matrix &G, int bs, bool square, int *count)
{
  std::vector<int> order(G.m), root(G.m, -1), near(G.m, -1), number(G.m, -1), of(G.m, -1), decided(G.m, 0);
  const auto       alone = [&](int v) {
    if (!outside.empty() && (!bs || outside[(v + 1) * bs] > outside[v * bs])) return false;
    for (int q = G.i[v]; q < G.i[v + 1]; q++) {
      if (G.j[q] != v) return false;
    }
    return true;
  };
  std::iota(order.begin(), order.end(), 0);
  for (int v = 0; v < G.m && !bs; v++) { // in which round it is known whether v is a root
    bool is = true;
    for (int q = G.i[v]; q < G.i[v + 1]; q++) {
      if (G.j[q] < v) is = is && !near[G.j[q]], decided[v] = std::max(decided[v], decided[G.j[q]]);
    }
    for (int q = G.i[v]; q < G.i[v + 1] && !is; q++) {
      if (G.j[q] < v && near[G.j[q]]) decided[v] = std::min(decided[v], decided[G.j[q]]);
    }
    near[v] = is;
    decided[v]++;
  }
  std::fill(near.begin(), near.end(), -1);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const bool late_a = decided[a] > 256, late_b = decided[b] > 256;
    return late_a != late_b ? late_b : late_a || bs ? Hash(a) > Hash(b) : a < b;
  });
  for (int v : order) {
    if (root[v] >= 0 || alone(v)) continue;
    const auto take = [&](std::vector<int> &to, int c) {
      if (to[c] < 0) to[c] = v;
    };
    number[v] = 0;
    near[v] = root[v] = v;
    for (int q = G.i[v]; q < G.i[v + 1]; q++) {
      take(near, G.j[q]);
      take(root, G.j[q]);
      for (int p = G.i[G.j[q]]; p < G.i[G.j[q] + 1] && square; p++) take(root, G.j[p]);
    }
  }
  for (int v = 0; v < G.m && !bs; v++) { // the first root in the order of the vertices
    if (near[v] == v || near[v] < 0) continue;
    for (int q = G.i[v]; q < G.i[v + 1]; q++) {
      if (near[G.j[q]] == G.j[q]) near[v] = std::min(near[v], G.j[q]);
    }
  }
  *count = 0;
  for (int v = 0; v < G.m; v++) {
    if (number[v] == 0) number[v] = (*count)++;
  }
  for (int v = 0; v < G.m; v++) {
    if (near[v] >= 0)
      of[v] = number[near[v]];
    else if (root[v] >= 0)
      of[v] = number[root[v]];
  }
  return of;
}

static Matrix CoarseGraph(const Matrix &G, const std::vector<int> &of, int count)
{
  std::vector<std::set<int>> row(count);
  for (int v = 0; v < G.m; v++) {
    for (int q = G.i[v]; q < G.i[v + 1]; q++) {
      if (of[v] >= 0 && of[G.j[q]] >= 0) row[of[v]].insert(of[G.j[q]]);
    }
  }
  return Build("", count, count, [&](int r, Row &to) { to.assign(row[r].begin(), row[r].end()); });
}

static void TestAggregates(const Matrix &A, SpMVCudaGraph graph, const Matrix &G, int bs, bool square, int k,
                           cudaStream_t stream)
{
  const char             *what = square ? "square" : k > 1 ? "several passes" : "neighbors";
  SpMVCudaAggregates      a;
  SpMVCudaAggregatesStats stats;
  std::vector<int>        first;
  int                     count;
  std::vector<int>        right = ReferenceAggregates(G, bs, square, &count);
  Matrix                  H     = G;
  for (int pass = 1; pass < k; pass++) {
    H     = CoarseGraph(H, pass > 1 ? first : right, count);
    first = ReferenceAggregates(H, 0, square, &count);
    for (int &v : right) v = v < 0 ? -1 : first[v];
  }
  for (int again = 0; again < 2; again++) {
    CHECK(SpMVCudaAggregatesCreate(graph, square, k, stream, &a));
    SpMVCudaAggregatesGet(a, &stats);
    std::vector<int> of(G.m), size(count + 1);
    CHECK(cudaMemcpy(of.data(), stats.of, of.size() * sizeof(int), cudaMemcpyDeviceToHost));
    Expect(stats.vertices == G.m && stats.count == count, A, what, "aggregates", "their number");
    Expect(of == right, A, what, "aggregates", "the aggregate of each vertex");
    PetscInt64 members = 0;
    for (int v : right) members += v >= 0, size[v < 0 ? count : v]++;
    size[count] = 0;
    Expect(stats.members == members, A, what, "aggregates", "the number of members");
    Expect(stats.largest == *std::max_element(size.begin(), size.end()), A, what, "aggregates", "the largest one");
    CHECK(SpMVCudaAggregatesDestroy(&a));
  }
}

// ------------------------------------------------------------------------------------------------ prolongators

struct Prolongator {
  Device<PetscInt> i, j;
  Device<Number>   a;
  Prolongator(int64_t rows, int64_t nnz) : i(rows + 1), j(nnz), a(nnz)
  {
  }
  SpMVCudaCSR CSR(int64_t columns) const
  {
    return {(PetscInt64)i.size - 1, columns, (PetscInt64)j.size, i.p, j.p, (int)sizeof(PetscInt), P(a.p)};
  }
};

template <class T> static bool SameBits(const std::vector<T> &x, const std::vector<T> &y)
{
  return x.size() == y.size() &&
         (x.empty() || !memcmp((const void *)x.data(), (const void *)y.data(), x.size() * sizeof(T)));
}

// P0 and R must be right: orthonormal columns of each aggregate, R upper triangular, P0 R = B
static void TestTentative(const Matrix &A, const SpMVCudaAggregatesStats &s, int bs, int k,
                          const std::vector<PetscReal> &B, const Prolongator &P0, const std::vector<PetscReal> &R)
{
  const int64_t               n = s.vertices;
  const std::vector<PetscInt> i = P0.i.Get(), j = P0.j.Get();
  const std::vector<Number>   a = P0.a.Get();
  std::vector<int>            of(n), size(s.count);
  CHECK(cudaMemcpy(of.data(), s.of, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::vector<double> gram(s.count * k * k), scale(k);
  bool                pattern = i[0] == 0, product = true, orthogonal = true, triangle = true;
  for (size_t t = 0; t < B.size(); t++) scale[t / (n * bs)] = std::max(scale[t / (n * bs)], std::fabs((double)B[t]));
  for (int64_t row = 0; row < n * bs && pattern; row++) {
    const int64_t g = of[row / bs];
    pattern         = i[row + 1] - i[row] == (g < 0 ? 0 : k);
    for (int c = 0; c < k && g >= 0 && pattern; c++) pattern = j[i[row] + c] == (PetscInt)(g * k + c);
    if (g < 0 || !pattern) continue;
    size[g]++;
    for (int c = 0; c < k; c++) {
      double b = 0;
      for (int e = 0; e < k; e++) {
        b += std::real(a[i[row] + e]) * R[c * s.count * k + g * k + e];
        gram[(g * k + e) * k + c] += std::real(a[i[row] + e]) * std::real(a[i[row] + c]);
      }
      product = product && std::fabs(b - B[row + c * n * bs]) <= 1000 * EPS * scale[c] && !std::imag(a[i[row] + c]);
    }
  }
  for (int64_t t = 0; t < s.count * k * k; t++) {
    const int64_t g = t / k / k, e = t / k % k, c = t % k;
    if (size[g] >= k) orthogonal = orthogonal && std::fabs(gram[t] - (e == c)) <= 1000 * EPS;
    if (e > c) triangle = triangle && R[c * s.count * k + g * k + e] == 0;
  }
  Expect(pattern, A, "tentative", "pattern", "one aggregate in each row");
  Expect(product, A, "tentative", "values", "P0 R = B");
  Expect(orthogonal, A, "tentative", "values", "orthonormal columns");
  Expect(triangle, A, "tentative", "values", "R is a triangle");
}

// With all diagonal entries, and other values
static Matrix Completed(const Matrix &A)
{
  return Valued(Build(A.name, A.m, A.m, [&](int r, Row &row) {
    row.assign(A.j.begin() + A.i[r], A.j.begin() + A.i[r + 1]);
    row.push_back(r);
  }));
}

// diagonal: the diagonal block, if A is an off-diagonal one
static void TestSmoother(const Matrix &A, const Matrix *diagonal, const SpMVCudaCSR &P0, cudaStream_t stream)
{
  const Matrix                      &D = diagonal ? *diagonal : A;
  OnDevice                           on(A), on_diagonal(D);
  const SpMVCudaCSR                 *block = diagonal ? &on_diagonal.csr : nullptr;
  Matrix                             p     = Read(P0);
  std::vector<Number>                pa(P0.nnz), first;
  std::vector<std::map<int, Wide>>   right(A.m);
  std::vector<std::map<int, double>> size(A.m);
  const PetscReal                    scale = (PetscReal)0.7;
  CHECK(cudaMemcpy((void *)pa.data(), P0.a, pa.size() * sizeof(Number), cudaMemcpyDeviceToHost));
  for (int r = 0; r < A.m; r++) {
    Wide d = 0;
    for (int q = D.i[r]; q < D.i[r + 1]; q++) d += D.j[q] == r ? Wide(D.a[q]) : Wide(0);
    if (d != Wide(0)) d = Wide(1) / d;
    for (int q = A.i[r]; q < A.i[r + 1]; q++) {
      for (int e = p.i[A.j[q]]; e < p.i[A.j[q] + 1]; e++) {
        const Wide t = (double)scale * d * Wide(A.a[q]) * Wide(pa[e]);
        right[r][p.j[e]] -= t;
        size[r][p.j[e]] += std::abs(t);
      }
    }
    for (int e = p.i[r]; !diagonal && e < p.i[r + 1]; e++) {
      right[r][p.j[e]] += Wide(pa[e]);
      size[r][p.j[e]] += std::abs(pa[e]);
    }
  }
  for (int again = 0; again < 2; again++) {
    const SpMVCudaCSR   factor[]    = {on.csr, P0};
    const PetscBool     transpose[] = {PETSC_FALSE, PETSC_FALSE};
    SpMVCudaSpGEMM      product;
    SpMVCudaSpGEMMStats stats;
    CHECK(SpMVCudaSpGEMMSymbolic(2, factor, transpose, 0, stream, &product));
    SpMVCudaSpGEMMGetStats(product, &stats);
    Prolongator out(A.m, stats.nonzeros);
    CHECK(SpMVCudaSmooth(product, &on.csr, block, &P0, scale, out.i.p, out.j.p, (PetscScalar *)out.a.p, stream));
    CHECK(SpMVCudaSpGEMMDestroy(&product));
    const std::vector<PetscInt> i = out.i.Get(), j = out.j.Get();
    const std::vector<Number>   a       = out.a.Get();
    bool                        pattern = true, values = true;
    for (int r = 0; r < A.m; r++) {
      PetscInt q = i[r];
      pattern    = pattern && i[r + 1] - q == (PetscInt)right[r].size();
      for (const auto &e : right[r]) {
        if (!pattern) break;
        pattern = j[q] == e.first;
        values  = values && std::abs(Wide(a[q]) - e.second) <= 30 * EPS * (right[r].size() + 30) * size[r][e.first];
        q++;
      }
    }
    Expect(pattern, A, "smoother", "pattern", "that of A P0 with P0's");
    Expect(values, A, "smoother", "values", "P0 - scale D^-1 A P0");
    if (again) Expect(SameBits(a, first), A, "smoother", "values", "the same bits again");
    first = a;
  }
}

// Every third row, and the last one again
static void TestTentativeRows(const Matrix &A, int k, const SpMVCudaCSR &P0, cudaStream_t stream)
{
  const Matrix           p = Read(P0);
  const Device<PetscInt> columns(A.m);
  const Device<Number>   taken((size_t)A.m * k);
  std::vector<Number>    from(P0.nnz);
  bool                   right = true;
  CHECK(SpMVCudaTentativeRows(&P0, k, 1000, columns.p, (PetscScalar *)taken.p, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy((void *)from.data(), P0.a, from.size() * sizeof(Number), cudaMemcpyDeviceToHost));
  const std::vector<PetscInt> first  = columns.Get();
  const std::vector<Number>   values = taken.Get();
  for (int r = 0; r < A.m; r++) {
    const int  at    = p.i[r];
    const bool empty = at == p.i[r + 1];
    right            = right && first[r] == (empty ? -1 : 1000 + p.j[at]);
    for (int c = 0; c < k; c++) right = right && values[(size_t)r * k + c] == (empty ? Number(0) : from[at + c]);
  }
  Expect(right, A, "tentative", "rows", "first columns and values");
}

static void TestProlongator(const Matrix &A, SpMVCudaGraph graph, bool square, int bs, int k,
                            const std::vector<PetscReal> *B, cudaStream_t stream)
{
  SpMVCudaAggregates      a;
  SpMVCudaAggregatesStats s;
  CHECK(SpMVCudaAggregatesCreate(graph, square, 1, stream, &a));
  SpMVCudaAggregatesGet(a, &s);
  std::vector<PetscReal> ones((size_t)A.m * bs), R;
  for (size_t t = 0; t < ones.size(); t++) ones[t] = t % A.m % bs == t / A.m;
  Device<PetscReal>   b(B ? *B : std::vector<PetscReal>()), r((size_t)(s.count * k * k));
  Prolongator         P0(A.m, s.members * bs * k);
  std::vector<Number> first;
  for (int again = 0; again < 2; again++) {
    CHECK(SpMVCudaTentative(a, bs, k, B ? b.p : nullptr, P0.i.p, P0.j.p, (PetscScalar *)P0.a.p, r.p, stream));
    CHECK(cudaStreamSynchronize(stream));
    if (again) Expect(SameBits(P0.a.Get(), first) && SameBits(r.Get(), R), A, "tentative", "values", "the same bits");
    first = P0.a.Get();
    R     = r.Get();
  }
  TestTentative(A, s, bs, k, B ? *B : ones, P0, R);
  TestTentativeRows(A, k, P0.CSR(s.count * k), stream);
  TestSmoother(Completed(A), nullptr, P0.CSR(s.count * k), stream);
  TestSmoother(Valued(Lengths("off-diagonal", A.m, A.m, [](int r) { return r % 3 ? 0 : Int(4); })), &A,
               P0.CSR(s.count * k), stream);
  CHECK(SpMVCudaAggregatesDestroy(&a));
}

// ------------------------------------------------------------------------------------------------ all steps

static bool IsSymmetric(const Matrix &A, bool values)
{
  std::map<std::pair<int, int>, Number> entry;
  for (int r = 0; r < A.m; r++) {
    for (int q = A.i[r]; q < A.i[r + 1]; q++) entry[{r, A.j[q]}] = A.a[q];
  }
  for (const auto &e : entry) {
    const auto other = entry.find({e.first.second, e.first.first});
    if (other == entry.end() || (values && other->second != e.second)) return false;
  }
  return true;
}

static void TestGraph(const Matrix &A, const Options &o, bool further, cudaStream_t stream)
{
  OnDevice         on(A);
  SpMVCudaGraph    graph;
  SpMVCudaCSR      csr;
  Device<PetscInt> out(outside);
  CHECK(SpMVCudaGraphCreate(&on.csr, o.bs, o.symmetrize, (PetscReal)o.threshold, outside.empty() ? nullptr : out.p,
                            stream, &graph));
  SpMVCudaGraphGet(graph, &csr);
  CHECK(cudaStreamSynchronize(stream));
  const Matrix G = Read(csr);
  Expect(SameGraph(G, ReferenceEdges(A, o), o.threshold), A, "graph", o.symmetrize ? "symmetrized" : "as it is",
         "its edges");
  if (o.symmetrize || IsSymmetric(A, o.threshold >= 0)) {
    TestAggregates(A, graph, G, o.bs, false, 1, stream);
    TestAggregates(A, graph, G, o.bs, true, 1, stream);
    if (further) TestAggregates(A, graph, G, o.bs, false, 2, stream);
    if (further) TestAggregates(A, graph, G, o.bs, false, 3, stream);
  }
  for (int k = 1; further && k <= 6; k++) {
    if ((Quick || o.bs > 2) && k != 1 && k != o.bs && k != 6) continue;
    std::vector<PetscReal> B((size_t)A.m * k);
    for (size_t t = 0; t < B.size(); t++) B[t] = t < (size_t)A.m ? 1 : (PetscReal)Real();
    TestProlongator(A, graph, k % 2, o.bs, k, &B, stream);
    if (k == o.bs) TestProlongator(A, graph, true, o.bs, k, nullptr, stream);
    if (k < 3) continue;
    for (int r = 0; r < A.m; r++) { // columns that depend on others, and one of zeros
      B[r + (size_t)A.m]           = 3 * B[r];
      B[r + (size_t)A.m * (k - 1)] = 0;
    }
    TestProlongator(A, graph, true, o.bs, k, &B, stream);
  }
  CHECK(SpMVCudaGraphDestroy(&graph));
}

static void TestAll(const Matrix &pattern, int bs, bool further, cudaStream_t stream)
{
  if (!strstr(pattern.name, Only)) return;
  const Matrix A = Valued(pattern);
  for (double threshold : {-1.0, 0.0, 0.05, 0.6}) {
    TestGraph(A, {bs, true, threshold},
              further && (threshold < 0 || (threshold > 0.5 && bs < 3) || (Quick && threshold == 0)), stream);
    TestGraph(A, {bs, false, threshold}, false, stream);
  }
}

static void TestRefusals(cudaStream_t stream)
{
  Matrix A = Lengths(
      "descending", 50, 50, [](int) { return 5; }, false);
  OnDevice      a(A);
  SpMVCudaGraph graph;
  SpMVCudaCSR   csr = a.csr;
  Expect(SpMVCudaGraphCreate(&csr, 1, PETSC_TRUE, 0, nullptr, stream, &graph) == cudaErrorNotSupported && !graph, A,
         "graph", "refusals", "columns that descend");
  Expect(SpMVCudaGraphCreate(&csr, 3, PETSC_TRUE, 0, nullptr, stream, &graph) == cudaErrorNotSupported && !graph, A,
         "graph", "refusals", "blocks that do not divide the matrix");
  csr.n = csr.m = (PetscInt64)1 << 31;
  Expect(SpMVCudaGraphCreate(&csr, 1, PETSC_TRUE, 0, nullptr, stream, &graph) == cudaErrorNotSupported && !graph, A,
         "graph", "refusals", "too many rows");
  CHECK(SpMVCudaGraphDestroy(&graph));
}

// The bytes that the library's memory pool keeps when they are free, or 0 without a pool
static unsigned long long PoolKeeps(cudaStream_t stream)
{
  const size_t                     bytes = 1 << 20;
  void                            *array, *driver = dlopen("libcuda.so.1", RTLD_NOW);
  CUmemoryPool                     pool = nullptr;
  unsigned long long               kept = 0;
  SpMVCudaTemporary                copy;
  decltype(&cuPointerGetAttribute) get =
      driver ? (decltype(&cuPointerGetAttribute))dlsym(driver, "cuPointerGetAttribute") : nullptr;
  CHECK(SpMVCudaUploadTemporary(1, &array, nullptr, &bytes, stream, &copy));
  if (get && copy.pooled) (void)get(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, (CUdeviceptr)array);
  if (pool) CHECK(cudaMemPoolGetAttribute((cudaMemPool_t)pool, cudaMemPoolAttrReleaseThreshold, &kept));
  CHECK(SpMVCudaFreeTemporary(&copy, stream));
  return kept;
}

// Each allocation of the host in turn fails while make() creates an object, which it then destroys, and says whether
// there was one: an error, no object, and the pool keeps no more than before
static void TestCreation(const Matrix &A, const char *what, cudaStream_t stream,
                         std::function<cudaError_t(bool *created)> make)
{
  const unsigned long long before = PoolKeeps(stream);
  bool                     good = true, more = true, kept = true, created;
  for (int n = 0; more && n < 1000; n++) {
    allocations             = n;
    const cudaError_t error = make(&created);
    more                    = allocations < 0; // this allocation was reached
    allocations             = -1;
    good = good && created == (error == cudaSuccess) && (error == cudaSuccess || error == cudaErrorMemoryAllocation) &&
           (more || created);
    kept = kept && PoolKeeps(stream) <= before + (64 << 20); // some is in use
  }
  Expect(good && !more, A, what, "host memory", "an object or an error");
  Expect(kept, A, what, "host memory", "the pool frees memory again");
}

static void TestHostMemory(cudaStream_t stream)
{
  const Matrix       A = Grid("7 points", 8, 7, 1, 100);
  OnDevice           a(A);
  SpMVCudaGraph      graph, other;
  SpMVCudaAggregates aggregates;
  TestCreation(A, "graph", stream, [&](bool *created) {
    const cudaError_t error = SpMVCudaGraphCreate(&a.csr, 1, PETSC_TRUE, 0, nullptr, stream, &other);
    *created                = other;
    CHECK(SpMVCudaGraphDestroy(&other));
    return error;
  });
  CHECK(SpMVCudaGraphCreate(&a.csr, 1, PETSC_TRUE, 0, nullptr, stream, &graph));
  TestCreation(A, "aggregates", stream, [&](bool *created) {
    const cudaError_t error = SpMVCudaAggregatesCreate(graph, PETSC_TRUE, 1, stream, &aggregates);
    *created                = aggregates;
    CHECK(SpMVCudaAggregatesDestroy(&aggregates));
    return error;
  });
  CHECK(SpMVCudaGraphDestroy(&graph));
}

static void TestNoise(cudaStream_t stream)
{
  const Matrix   none = Lengths("noise", 0, 0, [](int) { return 0; });
  Device<Number> x(1000);
  bool           right = true;
  CHECK(SpMVCudaNoise(1000, 12345, (PetscScalar *)x.p, stream));
  CHECK(cudaStreamSynchronize(stream));
  const std::vector<Number> got = x.Get();
  for (int k = 0; k < 1000; k++) {
    unsigned h = (unsigned)(12345 + k);
    h          = ((h >> 16) ^ h) * 0x45d9f3b;
    h          = ((h >> 16) ^ h) * 0x45d9f3b;
    h          = (h >> 16) ^ h;
    right      = right && got[k] == Number((PetscReal)(((int64_t)h - 2147483648LL) * 5.e-10));
  }
  Expect(right, none, "noise", "values", "those of PETSc");
}

int main(int argc, char **argv)
{
  cudaStream_t stream;
  Quick = argc > 1 && !strcmp(argv[1], "quick");
  if (argc > 2 && strcmp(argv[2], "count")) Only = argv[2];
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK(cudaStreamCreate(&stream));
  const int  n = Quick ? 300 : 1500, N = Quick ? 4 : 5;
  const auto none = [](int) { return 0; };
  TestRefusals(stream);
  TestHostMemory(stream);
  TestNoise(stream);
  TestAll(Lengths("no rows", 0, 0, none), 1, true, stream);
  TestAll(Lengths("one entry", 1, 1, [](int) { return 1; }), 1, true, stream);
  TestAll(Lengths("no entries", 70, 70, none), 1, true, stream);
  TestAll(Lengths("no entries", 60, 60, none), 3, true, stream);
  TestAll(Build("diagonal", 70, 70, [](int r, Row &row) { row.push_back(r); }), 1, true, stream);
  TestAll(Build("pairs", 70, 70,
                [](int r, Row &row) {
                  row.push_back(r);
                  row.push_back(r ^ 1);
                }),
          1, true, stream);
  TestAll(Build("a line", n, n,
                [](int r, Row &row) {
                  for (int c = r - 1; c <= r + 1; c++) row.push_back(c);
                }),
          1, true, stream);
  TestAll(Build("a star", n, n,
                [=](int r, Row &row) {
                  for (int c = 0; c < n && r == 7; c++) row.push_back(c);
                  row.push_back(7);
                  row.push_back(r);
                }),
          1, true, stream);
  TestAll(Without("no diagonal", Grid("", N, 7, 1, 100), [](int r, int c) { return r == c; }), 1, true, stream);
  TestAll(Without("half a diagonal", Grid("", N, 7, 1, 70), [](int r, int c) { return r == c && r % 2; }), 1, true,
          stream);
  TestAll(Without("Dirichlet rows", Grid("", N, 27, 1, 100), [](int r, int c) { return r != c && r % 9 == 0; }), 1,
          true, stream);
  TestAll(
      Without("Dirichlet", Grid("", N, 27, 1, 100), [](int r, int c) { return r != c && (r % 9 == 0 || c % 9 == 0); }),
      1, true, stream);
  for (int bs = 1; bs <= 6; bs++) {
    if (Quick && bs != 1 && bs != 3) continue;
    TestAll(Grid("7 points", N, 7, bs, 100), bs, true, stream);
    TestAll(Grid("7 points, some", N, 7, bs, 50), bs, true, stream);
    TestAll(Grid("27 points", N / 2 + 1, 27, bs, 100), bs, bs < 4, stream);
    TestAll(Without("blocks with holes", Grid("", N / 2 + 1, 7, bs, 60),
                    [](int r, int c) { return (r * 7 + c * 3) % 11 == 0; }),
            bs, bs < 4, stream);
  }
  for (int k = 0; k < (Quick ? 3 : 15); k++) { // anything
    const int bs = 1 + Int(6), m = bs * (1 + Int(200)), length = 1 + Int(12);
    outside.assign(k % 2 ? m + 1 : 0, 0);
    for (int r = 0; r < m && k % 2; r++) outside[r + 1] = outside[r] + (Int(3 * bs) ? 0 : Int(4));
    TestAll(Lengths("random", m, m, [=](int) { return Int(3) ? Int(length) : 0; }), bs, true, stream);
  }
  CHECK(cudaStreamDestroy(stream));
  CHECK(SpMVCudaFinalize());
  return Finish(argc, argv);
}
