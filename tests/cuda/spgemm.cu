/*
  Tests of products of sparse matrices on the device, without PETSc: the pattern is compared with the host's, the values
  with sums in double precision, and repeated products bitwise with each other. Prints nothing on success. Run it as
  `spgemm full`; under compute-sanitizer as `spgemm quick`. With `count` as the last argument, it prints the number of
  checks that passed.
*/
#include "core/cuda/spgemm/spgemm.h"
#include "common.cuh"
#include <limits>
#include <memory>

static void NewValues(Matrix &A)
{
  for (Number &v : A.a) v = Value();
}

// A matrix in double precision, with the sum of magnitudes of each entry and its number of terms
struct Exact {
  int                 m, n;
  std::vector<int>    i, j;
  std::vector<Wide>   a;
  std::vector<double> size, terms;

  explicit Exact(const Matrix &A) : m(A.m), n(A.n), i(A.i), j(A.j), a(A.a.begin(), A.a.end()), terms(A.a.size(), 1)
  {
    for (const Wide &v : a) size.push_back(std::abs(v));
  }
  Exact(const Exact &A, const Exact &B) : m(A.m), n(B.n), i{0}
  {
    std::vector<int>    position(n, -1), columns;
    std::vector<Wide>   sum(n);
    std::vector<double> magnitude(n), count(n);
    for (int r = 0; r < m; r++) {
      columns.clear();
      for (int q = A.i[r]; q < A.i[r + 1]; q++) {
        for (int k = B.i[A.j[q]]; k < B.i[A.j[q] + 1]; k++) {
          const int c = B.j[k];
          if (position[c] != r) {
            position[c]  = r;
            sum[c]       = Wide(0);
            magnitude[c] = count[c] = 0;
            columns.push_back(c);
          }
          sum[c] += A.a[q] * B.a[k];
          magnitude[c] += A.size[q] * B.size[k];
          count[c] += A.terms[q] + B.terms[k];
        }
      }
      std::sort(columns.begin(), columns.end());
      for (int c : columns) {
        j.push_back(c);
        a.push_back(sum[c]);
        size.push_back(magnitude[c]);
        terms.push_back(count[c]);
      }
      i.push_back((int)j.size());
    }
  }
};

static bool Matches(const std::vector<Number> &c, const Exact &C)
{
  const double eps = 4 * (double)std::numeric_limits<PetscReal>::epsilon();
  if (c.size() != C.a.size()) return false;
  for (size_t q = 0; q < c.size(); q++) {
    if (!(std::abs(Wide(c[q]) - C.a[q]) <= eps * (4 + C.terms[q]) * C.size[q])) return false;
  }
  return true;
}

static bool SameBits(const std::vector<Number> &x, const std::vector<Number> &y)
{
  return x.size() == y.size() &&
         (x.empty() || !memcmp((const void *)x.data(), (const void *)y.data(), x.size() * sizeof(Number)));
}

struct Factor {
  Matrix   *A;
  PetscBool transpose;
};

static Exact Product(const std::vector<Factor> &factors)
{
  std::vector<Exact> f;
  for (const Factor &x : factors) f.push_back(Exact(x.transpose ? Transposed(*x.A) : *x.A));
  return f.size() == 2 ? Exact(f[0], f[1]) : Exact(f[0], Exact(f[1], f[2]));
}

static bool Quick = false, Race = false; // Race: in a minute under racecheck

/* The product with positions stored and without, three times each, and with other values */
static void Test(const char *what, const std::vector<Factor> &factors, cudaStream_t stream)
{
  const int                              count = (int)factors.size();
  std::vector<std::unique_ptr<OnDevice>> on(count);
  std::vector<Number>                    first;
  SpMVCudaCSR                            csr[3];
  PetscBool                              transpose[3];
  const Matrix                          &A = *factors[0].A;
  for (const Factor &f : factors) NewValues(*f.A);
  for (int k = 0; k < count; k++) {
    on[k].reset(new OnDevice(*factors[k].A));
    csr[k]       = on[k]->csr;
    transpose[k] = factors[k].transpose;
  }
  Exact C = Product(factors);
  for (PetscInt64 most : {(PetscInt64)1 << 40, (PetscInt64)0}) {
    const char         *kernel = most ? "stored" : "searched";
    SpMVCudaSpGEMM      product;
    SpMVCudaSpGEMMStats stats;
    const PetscInt     *i, *j;
    CHECK(SpMVCudaSpGEMMSymbolic(count, csr, transpose, most, stream, &product));
    SpMVCudaSpGEMMGetStats(product, &stats);
    Expect(stats.m == C.m && stats.n == C.n, A, what, kernel, "the sizes");
    Expect(stats.nonzeros == (PetscInt64)C.j.size(), A, what, kernel, "the number of nonzeros");
    if (stats.nonzeros != (PetscInt64)C.j.size()) {
      CHECK(SpMVCudaSpGEMMDestroy(&product));
      continue;
    }
    SpMVCudaSpGEMMPattern(product, &i, &j);
    Device<PetscInt>      ci((size_t)C.m + 1), cj(C.j.size());
    Device<Number>        c(C.j.size());
    std::vector<PetscInt> right_i(C.i.begin(), C.i.end()), right_j(C.j.begin(), C.j.end());
    CHECK(cudaMemcpy(ci.p, i, ((size_t)C.m + 1) * sizeof(PetscInt), cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy(cj.p, j, C.j.size() * sizeof(PetscInt), cudaMemcpyDeviceToDevice));
    Expect(ci.Get() == right_i, A, what, kernel, "the row offsets");
    Expect(cj.Get() == right_j, A, what, kernel, "the columns");
    SpMVCudaSpGEMMReleasePattern(product);
    for (int again = 0; again < 3; again++) {
      c.Poison();
      CHECK(SpMVCudaSpGEMMNumeric(product, csr, ci.p, cj.p, (PetscScalar *)c.p, stream));
      CHECK(cudaStreamSynchronize(stream));
      if (first.empty()) {
        first = c.Get();
        Expect(Matches(first, C), A, what, kernel, "the values");
      } else
        Expect(SameBits(c.Get(), first), A, what, kernel, "the same bits again");
    }
    if (most) { // other values
      std::vector<Matrix> kept;
      for (const Factor &f : factors) kept.push_back(*f.A);
      for (const Factor &f : factors) NewValues(*f.A);
      for (int k = 0; k < count; k++) on[k]->da.Set(factors[k].A->a);
      CHECK(SpMVCudaSpGEMMNumeric(product, csr, ci.p, cj.p, (PetscScalar *)c.p, stream));
      CHECK(cudaStreamSynchronize(stream));
      Expect(Matches(c.Get(), Product(factors)), A, what, kernel, "other values");
      for (int k = 0; k < count; k++) *factors[k].A = kept[k];
      for (int k = 0; k < count; k++) on[k]->da.Set(factors[k].A->a);
    }
    CHECK(SpMVCudaSpGEMMDestroy(&product));
  }
}

static void TestAB(const char *what, Matrix A, Matrix B, cudaStream_t stream)
{
  Test(what, {{&A, PETSC_FALSE}, {&B, PETSC_FALSE}}, stream);
}

static void TestGalerkin(const char *what, Matrix A, Matrix Q, cudaStream_t stream)
{
  Test(what, {{&Q, PETSC_TRUE}, {&A, PETSC_FALSE}, {&Q, PETSC_FALSE}}, stream);
  if (Quick) return;
  Matrix R = Transposed(Q);
  Test(what, {{&R, PETSC_FALSE}, {&A, PETSC_FALSE}, {&R, PETSC_TRUE}}, stream);
  Test(what, {{&R, PETSC_FALSE}, {&A, PETSC_FALSE}, {&Q, PETSC_FALSE}}, stream);
  Test(what, {{&Q, PETSC_TRUE}, {&A, PETSC_FALSE}}, stream);
  Test(what, {{&A, PETSC_FALSE}, {&R, PETSC_TRUE}}, stream);
}

// The prolongator of aggregates of `size`^3 points of a grid, s unknowns per point and `t` per aggregate; `smooth`:
// each point also has the aggregates of its neighbors
static Matrix Aggregates(const char *name, int N, int size, int s, int t, bool smooth)
{
  const int M = (N + size - 1) / size;
  return Build(name, N * N * N * s, M * M * M * t, [=](int r, Row &row) {
    const int p = r / s, x = p % N, y = p / N % N, z = p / N / N;
    for (int k = 0; k < 27; k++) {
      const int dx = k % 3 - 1, dy = k / 3 % 3 - 1, dz = k / 9 - 1;
      if (abs(dx) + abs(dy) + abs(dz) > (smooth ? 1 : 0)) continue;
      if (x + dx < 0 || x + dx >= N || y + dy < 0 || y + dy >= N || z + dz < 0 || z + dz >= N) continue;
      for (int e = 0; e < t; e++)
        row.push_back(((x + dx) / size + M * ((y + dy) / size + M * ((z + dz) / size))) * t + e);
    }
  });
}

static void TestRefusals(cudaStream_t stream)
{
  Matrix A = Lengths(
      "descending", 50, 50, [](int) { return 5; }, false);
  OnDevice       a(A);
  SpMVCudaCSR    csr[2]       = {a.csr, a.csr};
  PetscBool      transpose[2] = {PETSC_FALSE, PETSC_FALSE};
  SpMVCudaSpGEMM product;
  Expect(SpMVCudaSpGEMMSymbolic(2, csr, transpose, 0, stream, &product) == cudaErrorNotSupported && !product, A, "AB",
         "refusals", "columns that descend");
  csr[0].m = (PetscInt64)1 << 31;
  Expect(SpMVCudaSpGEMMSymbolic(2, csr, transpose, 0, stream, &product) == cudaErrorNotSupported && !product, A, "AB",
         "refusals", "too many rows");
  CHECK(SpMVCudaSpGEMMDestroy(&product));
}

int main(int argc, char **argv)
{
  cudaStream_t stream;
  Race  = argc > 1 && !strcmp(argv[1], "race");
  Quick = Race || (argc > 1 && !strcmp(argv[1], "quick"));
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK(cudaStreamCreate(&stream));
  const int n = Race ? 60 : Quick ? 300 : 5000, N = Race ? 3 : Quick ? 5 : 12;
  TestRefusals(stream);
  const auto none = [](int) { return 0; };
  TestAB("empty", Lengths("no rows", 0, 5, none), Lengths("", 5, 4, none), stream);
  TestAB("empty", Lengths("no columns", 5, 0, none), Lengths("", 0, 4, none), stream);
  TestAB("empty", Lengths("no columns of B", 5, 3, [](int) { return 2; }), Lengths("", 3, 0, none), stream);
  TestAB("empty", Lengths("no entries", 70, 50, none), Lengths("", 50, 40, [](int) { return 3; }), stream);
  TestAB("empty", Lengths("no entries of B", 70, 50, [](int) { return 3; }), Lengths("", 50, 40, none), stream);
  TestAB("empty", Build("entries that do not meet", 70, 50, [](int r, Row &row) { row.push_back(r % 2); }),
         Build("", 50, 40,
               [](int r, Row &row) {
                 if (r > 1) row.push_back(r % 40);
               }),
         stream);
  TestAB("AB", Lengths("one entry", 1, 1, [](int) { return 1; }), Lengths("", 1, 1, [](int) { return 1; }), stream);
  TestAB("AB", Lengths("rectangular", n, n / 3, [](int r) { return r % 7 ? Int(9) : 0; }),
         Lengths("", n / 3, 2 * n, [](int r) { return r % 3 ? Int(12) : 0; }), stream);
  TestAB("AB", Lengths("a row in ten", n, n, [](int r) { return r % 10 ? 0 : Int(30); }),
         Lengths("", n, n, [](int r) { return r % 4 ? 0 : Int(30); }), stream);
  for (int length : {1, 2, 3, 6, 12, 25, 50, 90}) { // tables of all sizes
    if (Quick && length != 1 && length != 25) continue;
    TestAB("AB", Lengths("rows of a length", n / 4, n, [=](int) { return length; }),
           Lengths("", n, n, [=](int) { return length; }), stream);
    TestAB("AB", Lengths("long rows of A", n / 4, n, [=](int) { return length; }),
           Lengths("", n, n, [=](int) { return 1; }), stream);
  }
  // rows of more columns than a table has, and of more than a thread block's table has
  for (int most : {800, 2000, 7000}) {
    if (Quick && most == 2000) continue;
    const int rows = Race ? 1 : Quick ? 6 : 40;
    TestAB("AB", Lengths("long rows of C", rows, 2000, [](int) { return 60; }),
           Lengths("", 2000, 30000, [=](int) { return most / 40; }), stream);
    TestAB("AB", Lengths("long rows of both", rows, 100, [](int) { return 3; }),
           Lengths("", 100, 60000, [=](int r) { return r % 5 ? 2 : most; }), stream);
  }
  // rows of A of many entries: in segments, with few and with many columns
  const int many = Race ? 1500 : Quick ? 4000 : 100000;
  for (int columns : {1, 3, 40, 600, 3000}) {
    if (Quick && columns != 3 && columns != 600) continue;
    TestAB("AB", Lengths("rows of many entries", 5, many, [=](int r) { return r == 3   ? 0
                                                                              : r == 4 ? 10
                                                                                       : many; }),
           Lengths("", many, columns, [=](int) { return columns < 3 ? 1 : 3; }), stream);
  }
  TestAB("AB",
         Build("an arrow", n, n,
               [=](int r, Row &row) {
                 for (int c = 0; c < n && !r; c++) row.push_back(c);
                 row.push_back(0);
                 row.push_back(r);
               }),
         Build("", n, n,
               [=](int r, Row &row) {
                 row.push_back(r);
                 row.push_back(r * 7 % n);
               }),
         stream);
  for (int s : {1, 2, 3, 4, 5, 6, 8}) { // node blocks
    if (Quick && s != 1 && s != 3 && (s != 6 || Race)) continue;
    const Matrix A = Grid("7 points", N, 7, s, 100), B = Grid("27 points", N, 27, s, s > 4 ? 30 : 100);
    TestAB("A A", A, A, stream);
    TestGalerkin("Galerkin", A, Aggregates("", N, 3, s, s, false), stream);
    TestGalerkin("Galerkin", A, Aggregates("", N, 2, s, s, true), stream);
    if (Quick || s > 4) continue;
    TestAB("A A", B, B, stream);
    TestGalerkin("Galerkin", B, Aggregates("", N, 3, s, s == 3 ? 6 : s, true), stream);
    TestGalerkin("Galerkin", B, Aggregates("", N, N, s, s, false), stream); // one aggregate
  }
  // blocks that are not complete everywhere
  TestAB("A A", Without("blocks with a hole", Grid("", N, 7, 3, 100), [](int r, int c) { return r == 31 && c == 30; }),
         Grid("", N, 7, 3, 100), stream);
  TestAB("A B", Grid("", N, 7, 3, 100),
         Without("blocks with a hole", Grid("", N, 7, 3, 100), [](int r, int c) { return r == 31 && c == 30; }),
         stream);
  for (int k = 0; k < (Race ? 1 : Quick ? 4 : 60); k++) { // anything
    const int m = 1 + Int(200), p = 1 + Int(200), q = 1 + Int(400), a = 1 + Int(40), b = 1 + Int(40);
    Matrix    A  = Lengths("random", m, p, [=](int) { return Int(3) ? Int(a) : 0; });
    Matrix    B  = Lengths("random", p, q, [=](int) { return Int(3) ? Int(b) : 0; });
    Matrix    At = Transposed(A), Bt = Transposed(B);
    TestAB("AB", A, B, stream);
    Test("AtB", {{&At, PETSC_TRUE}, {&B, PETSC_FALSE}}, stream);
    Test("ABt", {{&A, PETSC_FALSE}, {&Bt, PETSC_TRUE}}, stream);
    Test("AtBt", {{&At, PETSC_TRUE}, {&Bt, PETSC_TRUE}}, stream);
    Test("ABC", {{&A, PETSC_FALSE}, {&B, PETSC_FALSE}, {&Bt, PETSC_FALSE}}, stream);
  }
  CHECK(cudaStreamDestroy(stream));
  CHECK(SpMVCudaFinalize());
  return Finish(argc, argv);
}
