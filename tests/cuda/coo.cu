/*
  Tests of assembly from a coordinate array, without PETSc: pattern, map and sums are compared bitwise with those of the
  host. It also tests copies to the host. Prints nothing on success. Run it as `coo full`; under compute-sanitizer as
  `coo quick`. With `count` as the last argument, it prints the number of checks that passed.
*/
#include "core/cuda/csr/coo.h"
#include "common.cuh"
#include <map>

using Entries = std::vector<std::pair<PetscInt, PetscInt>>;

struct Block {
  const char *name;
  PetscInt    M, N, row[2], col[2];
  bool        outside;
};

// The nonzeros of a block, with the places of their entries in order
static std::map<std::pair<PetscInt, PetscInt>, std::vector<size_t>> Sorted(const Entries &e, const Block &b)
{
  std::map<std::pair<PetscInt, PetscInt>, std::vector<size_t>> nonzeros;
  for (size_t q = 0; q < e.size(); q++) {
    const PetscInt i = e[q].first, j = e[q].second;
    if (i < 0 || j < 0 || i < b.row[0] || i >= b.row[1] || (j >= b.col[0] && j < b.col[1]) == b.outside) continue;
    nonzeros[{i - b.row[0], b.outside ? j : j - b.col[0]}].push_back(q);
  }
  return nonzeros;
}

static bool Same(const std::vector<Number> &a, const std::vector<Number> &b)
{
  return a.size() == b.size() &&
         (a.empty() || !memcmp((const void *)a.data(), (const void *)b.data(), a.size() * sizeof(Number)));
}

// The two arrays of a test on the device; the second has the entries from `split` on
struct Arrays {
  Device<PetscInt> i[2], j[2];
  SpMVCudaIndices  indices;

  static std::vector<PetscInt> Part(const Entries &e, size_t split, int k, bool columns)
  {
    std::vector<PetscInt> v;
    for (size_t q = k ? split : 0; q < (k ? e.size() : split); q++) v.push_back(columns ? e[q].second : e[q].first);
    return v;
  }
  Arrays(const Entries &e, size_t split, const Block &b)
      : i{Device<PetscInt>(Part(e, split, 0, false)), Device<PetscInt>(Part(e, split, 1, false))},
        j{Device<PetscInt>(Part(e, split, 0, true)), Device<PetscInt>(Part(e, split, 1, true))},
        indices{b.M,
                b.N,
                {(PetscInt64)split, (PetscInt64)(e.size() - split)},
                {i[0].p, i[1].p},
                {j[0].p, j[1].p},
                {b.row[0], b.row[1]},
                {b.col[0], b.col[1]},
                b.outside ? PETSC_TRUE : PETSC_FALSE}
  {
  }
};

static Matrix Named(const char *name)
{
  Matrix A = Build(name, 1, 1, [](int, Row &) {});
  return A;
}

// Tests values whose arrays begin `shift` real numbers after an aligned address
static void TestValues(SpMVCudaCOO coo, const Entries &e, size_t split, const Block &b, int shift, cudaStream_t stream)
{
  const Matrix        A        = Named(b.name);
  const auto          nonzeros = Sorted(e, b);
  std::vector<Number> value(e.size()), start(nonzeros.size()), ref[2];
  for (auto &v : value) v = Value();
  for (auto &v : start) v = Value();
  size_t t = 0;
  for (const auto &z : nonzeros) {
    Number sum = 0;
    for (size_t q : z.second) sum += value[q];
    ref[1].push_back(sum);
    ref[0].push_back(start[t++] + sum);
  }
  Device<PetscReal>  v[2] = {Device<PetscReal>(split * (sizeof(Number) / sizeof(PetscReal)) + 2),
                             Device<PetscReal>((e.size() - split) * (sizeof(Number) / sizeof(PetscReal)) + 2)};
  const PetscScalar *array[2];
  for (int k = 0; k < 2; k++) {
    const size_t n = k ? e.size() - split : split;
    if (n)
      CHECK(cudaMemcpy(v[k].p + shift, (const void *)(value.data() + (k ? split : 0)), n * sizeof(Number),
                       cudaMemcpyHostToDevice));
    array[k] = (const PetscScalar *)(v[k].p + shift);
  }
  Device<Number> a(start);
  for (int insert = 0; insert < 2; insert++) {
    a.Set(start);
    CHECK(SpMVCudaCOOAdd(coo, array, insert ? PETSC_TRUE : PETSC_FALSE, (PetscScalar *)a.p, stream));
    CHECK(cudaStreamSynchronize(stream));
    Expect(Same(a.Get(), ref[insert]), A, b.name, "values", insert ? "inserted" : "added");
  }
}

static void TestBlock(const Entries &e, size_t split, const Block &b, cudaStream_t stream)
{
  const Matrix          A        = Named(b.name);
  const auto            nonzeros = Sorted(e, b);
  const PetscInt        m        = b.row[1] - b.row[0];
  Arrays                arrays(e, split, b);
  SpMVCudaCOO           coo;
  const PetscInt       *i, *j;
  std::vector<PetscInt> hi(m + 1), hj(nonzeros.size()), ri(m + 1, 0), rj;
  CHECK(SpMVCudaCOOCreate(&arrays.indices, stream, &coo));
  Expect(SpMVCudaCOONonzeros(coo) == (PetscInt64)nonzeros.size(), A, b.name, "pattern", "nonzeros");
  if (SpMVCudaCOONonzeros(coo) != (PetscInt64)nonzeros.size()) return;
  for (const auto &z : nonzeros) {
    ri[z.first.first + 1]++;
    rj.push_back(z.first.second);
  }
  for (PetscInt r = 0; r < m; r++) ri[r + 1] += ri[r];
  SpMVCudaCOOPattern(coo, &i, &j);
  void        *to[2]    = {hi.data(), hj.data()};
  const void  *from[2]  = {i, j};
  const size_t bytes[2] = {hi.size() * sizeof(PetscInt), hj.size() * sizeof(PetscInt)};
  CHECK(SpMVCudaDownload(2, to, from, bytes));
  Expect(hi == ri, A, b.name, "pattern", "row offsets");
  Expect(hj == rj, A, b.name, "pattern", "columns");
  SpMVCudaCOOReleasePattern(coo);
  for (int shift = 0; shift < 2; shift++) TestValues(coo, e, split, b, shift, stream);
  CHECK(SpMVCudaCOODestroy(&coo));
  Expect(coo == NULL, A, b.name, "map", "destroyed");
}

// The whole matrix, as one array and as two; a part of the rows as the two blocks of a parallel matrix
static void Test(const char *name, PetscInt M, PetscInt N, const Entries &e, cudaStream_t stream)
{
  const PetscInt r0 = M / 3, r1 = M - M / 4, c0 = N / 4, c1 = N - N / 3;
  TestBlock(e, e.size(), {name, M, N, {0, M}, {0, N}, false}, stream);
  TestBlock(e, e.size() / 3, {name, M, N, {0, M}, {0, N}, false}, stream);
  TestBlock(e, 0, {name, M, N, {r0, r1}, {c0, c1}, false}, stream);
  TestBlock(e, e.size() / 2, {name, M, N, {r0, r1}, {c0, c1}, true}, stream);

  // The entries that belong to other ranks
  const Block  b = {name, M, N, {r0, r1}, {0, N}, false};
  const Matrix A = Named(name);
  Arrays       arrays(e, e.size(), b);
  PetscInt64   count, *place, want = 0;
  PetscInt    *i, *j;
  bool         right = true;
  CHECK(SpMVCudaCOORemote(&arrays.indices, stream, &count, &place, &i, &j));
  std::vector<PetscInt64> hp(count);
  std::vector<PetscInt>   hi(count), hj(count);
  if (count) {
    CHECK(cudaMemcpy(hp.data(), place, count * sizeof(*place), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(hi.data(), i, count * sizeof(*i), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(hj.data(), j, count * sizeof(*j), cudaMemcpyDeviceToHost));
  }
  for (size_t q = 0; q < e.size(); q++) {
    if (e[q].first < 0 || e[q].second < 0 || (e[q].first >= r0 && e[q].first < r1)) continue;
    right = right && want < count && hp[want] == (PetscInt64)q && hi[want] == e[q].first && hj[want] == e[q].second;
    want++;
  }
  Expect(right && want == count, A, name, "remote", "places and indices");
  std::vector<Number> v(e.size()), packed;
  for (auto &x : v) x = Value();
  for (PetscInt64 k = 0; k < count; k++) packed.push_back(v[hp[k]]);
  Device<Number> dv(v), to(count);
  CHECK(SpMVCudaCOOPack(count, place, P(dv.p), (PetscScalar *)to.p, stream));
  CHECK(cudaStreamSynchronize(stream));
  Expect(Same(to.Get(), packed), A, name, "remote", "values");
  CHECK(cudaFree(place));
}

static void TestRefusals(cudaStream_t stream)
{
  for (int k = 0; k < 4; k++) {
    Entries     e = {{0, 0}, {3, 4}, {-1, 9}, {9, -1}, {1, 1}};
    const Block b = {"too large", 4, 5, {0, 4}, {0, 5}, false};
    if (k == 0) e.push_back({4, 0});
    if (k == 1) e.push_back({3, 5});
    if (k == 2) e.insert(e.begin(), {1 << 30, 1 << 30});
    Arrays      arrays(e, 2, b);
    SpMVCudaCOO coo;
    PetscInt64  count, *place;
    PetscInt   *i, *j;
    Expect(SpMVCudaCOOCreate(&arrays.indices, stream, &coo) == (k < 3 ? cudaErrorInvalidValue : cudaSuccess) &&
               !coo == (k < 3),
           Named("too large"), "any", "any", "an index that is too large");
    CHECK(SpMVCudaCOODestroy(&coo));
    arrays.indices.row[0] = 1;
    Expect(SpMVCudaCOORemote(&arrays.indices, stream, &count, &place, &i, &j) ==
                   (k < 3 ? cudaErrorInvalidValue : cudaSuccess) &&
               !place == (k < 3),
           Named("too large"), "any", "any", "an index that is too large, of another rank");
    CHECK(cudaFree(place));
  }
  const Block   wide = {"many bits", INT_MAX, INT_MAX, {0, INT_MAX}, {0, INT_MAX}, false};
  const Entries e    = {{0, 0}};
  Arrays        arrays(e, 1, wide);
  SpMVCudaCOO   coo;
  arrays.indices.M = arrays.indices.row[1] = arrays.indices.N = arrays.indices.col[1] = (PetscInt64)1 << 33;
  Expect(SpMVCudaCOOCreate(&arrays.indices, stream, &coo) == cudaErrorNotSupported && !coo, Named("many bits"), "any",
         "any", "keys of more than 63 bits");
}

// To the host and back, by one thread and by several
static void TestCopies()
{
  for (size_t n : {(size_t)0, (size_t)1, (size_t)1000, ((size_t)1 << 20) + 3, ((size_t)13 << 20) + 7}) {
    std::vector<int> a(n), b(3 * n + 5, -1);
    for (auto &v : a) v = Int(INT_MAX);
    Device<int>  d(a), again(n);
    void        *to[2]    = {b.data(), b.data() + 2 * n};
    const void  *from[2]  = {d.p, d.p};
    const size_t bytes[2] = {n * sizeof(int), n * sizeof(int)};
    CHECK(SpMVCudaDownload(2, to, from, bytes));
    bool right = std::equal(a.begin(), a.end(), b.begin()) && std::equal(a.begin(), a.end(), b.begin() + 2 * n);
    for (size_t k = n; k < 2 * n; k++) right = right && b[k] == -1;
    for (size_t k = 3 * n; k < b.size(); k++) right = right && b[k] == -1;
    Expect(right, Named("copies"), "any", "any", "to the host");
    void       *up[1]   = {again.p};
    const void *down[1] = {b.data()};
    CHECK(SpMVCudaUpload(1, up, down, bytes));
    Expect(again.Get() == a, Named("copies"), "any", "any", "to the device");
  }
}

static Entries Random(PetscInt M, PetscInt N, size_t count, int ignored)
{
  Entries e;
  for (size_t q = 0; q < count; q++) {
    PetscInt i = (PetscInt)(Random() % (uint64_t)M), j = (PetscInt)(Random() % (uint64_t)N);
    if (ignored && Int(ignored) == 0) (Int(2) ? i : j) = -1 - Int(5);
    e.push_back({i, j});
  }
  return e;
}

int main(int argc, char **argv)
{
  const bool   quick = argc > 1 && !strcmp(argv[1], "quick");
  cudaStream_t stream;
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK(cudaStreamCreate(&stream));
  TestRefusals(stream);
  CHECK(SpMVCudaPrepare((size_t)128 << 20)); // runs while the copies do
  CHECK(SpMVCudaPrepare((size_t)256 << 20));
  TestCopies();
  const size_t most = quick ? 3000 : 100000;
  Entries      once, columns, twice;
  for (PetscInt i = 0; i < (PetscInt)most / 5; i++) {
    for (PetscInt j : {i - 70, i - 1, i, i + 1, i + 70}) {
      if (j >= 0 && j < (PetscInt)most / 5) once.push_back({i, j});
    }
    for (PetscInt j : {i, i - 70, i + 1, i - 1, i + 70}) columns.push_back({i, j < (PetscInt)most / 5 ? j : -1});
  }
  twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  Test("no entries", 7, 5, {}, stream);
  Test("one entry", 7, 5, {{4, 2}}, stream);
  Test("one nonzero", 7, 5, Entries(1000, {3, 2}), stream);
  Test("all ignored", 7, 5, Entries(1000, {-1, 2}), stream);
  Test("ascending", (PetscInt)most / 5, (PetscInt)most / 5, once, stream);
  Test("rows ascend", (PetscInt)most / 5, (PetscInt)most / 5, columns, stream);
  Test("all twice", (PetscInt)most / 5, (PetscInt)most / 5, twice, stream);
  Test("any order", 300, 500, Random(300, 500, most, 0), stream);
  Test("any order, few of them twice", 3000000, 500000, Random(3000000, 500000, most / 10, 9), stream);
  Test("one row", 1, 1000, Random(1, 1000, most, 5), stream);
  Test("one column", 1000, 1, Random(1000, 1, most, 5), stream);
  Test("columns of 31 bits", 50, INT_MAX, Random(50, INT_MAX, most / 10, 7), stream);
  for (size_t n : {1, 255, 256, 257, 1023, 1024, 1025, 2049})
    Test("about a tile", 40, 40, Random(40, 40, n, 3), stream);
  CHECK(cudaStreamDestroy(stream));
  CHECK(SpMVCudaFinalize());
  CHECK(SpMVCudaPrepare((size_t)32 << 20)); // again, and ended at once
  CHECK(SpMVCudaFinalize());
  return Finish(argc, argv);
}
