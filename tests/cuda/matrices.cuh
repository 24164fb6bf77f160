/*
  Numbers and matrices for the tests of the device core: the same random ones in every run.
*/
#pragma once

#include "core/cuda/spmvcuda.h"
#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
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

static uint64_t        seed = 88172645463325252ull;
static inline uint64_t Random()
{
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}
static inline int Int(int n)
{
  return (int)(Random() % (uint64_t)n);
}
static inline double Real()
{
  return (double)(Random() >> 11) * (1.0 / 9007199254740992.0) - 0.5;
}
static inline Number Value()
{
#if defined(PETSC_USE_COMPLEX)
  return Number((PetscReal)Real(), (PetscReal)Real());
#else
  return (Number)Real();
#endif
}
static inline Number Conj(Number a)
{
#if defined(PETSC_USE_COMPLEX)
  return std::conj(a);
#else
  return a;
#endif
}
// Volatile, because GCC 12 omits the last of an odd number of complex values if it vectorizes a loop with this function
static inline Number Rounded(Number a)
{
  volatile float re = (float)std::real(a), im = (float)std::imag(a);
#if defined(PETSC_USE_COMPLEX)
  return Number(re, im);
#else
  (void)im;
  return re;
#endif
}
static inline bool Finite(Number a)
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
static inline Matrix Build(const char *name, int m, int n, std::function<void(int, Row &)> f, bool ascend = true)
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

// Diagonals within `reach` of the main diagonal, and four more entries anywhere in every `every`-th row
static inline Matrix Odd(const char *name, int n, int reach, int every)
{
  return Build(name, n, n, [=](int r, Row &row) {
    for (int c = r - reach; c <= r + reach; c++) row.push_back(c);
    for (int k = 0; k < 4 && r % every == every / 2; k++) row.push_back(Int(n));
  });
}

// Node blocks of s unknowns on the diagonals within `reach` of the main diagonal, so that almost all slices have the
// same steps
static inline Matrix Band(const char *name, int nodes, int reach, int s)
{
  return Build(name, nodes * s, nodes * s, [=](int r, Row &row) {
    for (int c = (r / s - reach) * s; c < (r / s + reach + 1) * s; c++) row.push_back(c);
  });
}

// 7 or 27 points on a grid, with s unknowns per point and the given percentage of the neighbors
static inline Matrix Grid(const char *name, int N, int points, int s, int percent)
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

// P A P^T with a random permutation P, and each entry a block of s unknowns
static inline Matrix Shuffled(const char *name, const Matrix &A, int s)
{
  std::vector<int> of(A.m), to(A.m);
  for (int r = 0; r < A.m; r++) of[r] = r;
  for (int r = A.m; r > 1; r--) std::swap(of[r - 1], of[Int(r)]);
  for (int r = 0; r < A.m; r++) to[of[r]] = r;
  return Build(name, A.m * s, A.m * s, [&](int r, Row &row) {
    for (int q = A.i[of[r / s]]; q < A.i[of[r / s] + 1]; q++) {
      for (int e = 0; e < s; e++) row.push_back(to[A.j[q]] * s + e);
    }
  });
}

static inline Matrix Transposed(const Matrix &A)
{
  std::vector<std::vector<std::pair<int, Number>>> row(A.n);
  Matrix                                           T{A.name, A.n, A.m, {0}, {}, {}};
  for (int r = 0; r < A.m; r++) {
    for (int q = A.i[r]; q < A.i[r + 1]; q++) row[A.j[q]].push_back({r, A.a[q]});
  }
  for (const auto &entries : row) {
    for (const auto &e : entries) T.j.push_back(e.first), T.a.push_back(e.second);
    T.i.push_back((int)T.j.size());
  }
  return T;
}

// A without the entries for which drop(row, column) is true
static inline Matrix Without(const char *name, const Matrix &A, std::function<bool(int, int)> drop)
{
  Matrix B{name, A.m, A.n, {0}, {}, {}};
  for (int r = 0; r < A.m; r++) {
    for (int q = A.i[r]; q < A.i[r + 1]; q++) {
      if (!drop(r, A.j[q])) B.j.push_back(A.j[q]);
    }
    B.i.push_back((int)B.j.size());
  }
  B.a.resize(B.j.size());
  return B;
}

// A with the blocks of s columns of each node row changed by f: in any order, some more than once
static inline Matrix Disorder(const char *name, const Matrix &A, int s, std::function<void(int, Row &)> f)
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
static inline void Shuffle(int, Row &row)
{
  for (size_t k = row.size(); k > 1; k--) std::swap(row[k - 1], row[Int((int)k)]);
}
static inline void ShuffleTwice(int unit, Row &row)
{
  for (int k = row.empty() ? 0 : Int(4); k > 0; k--) row.push_back(row[Int((int)row.size())]);
  Shuffle(unit, row);
}

static inline Matrix Lengths(const char *name, int m, int n, std::function<int(int)> length, bool ascend = true)
{
  return Build(
      name, m, n,
      [=](int r, Row &row) {
        for (int q = length(r); q > 0; q--) row.push_back(Int(n));
      },
      ascend);
}

// Groups of rows with the same columns, in the order in which `columns` adds them: size(g) rows in group g, until there
// are m rows
static inline Matrix Grouped(const char *name, int m, int n, std::function<int(int)> size,
                             std::function<void(int, Row &)> columns)
{
  Matrix A{name, m, n, {0}, {}, {}};
  for (int g = 0, r = 0; r < m; g++) {
    Row row;
    columns(g, row);
    for (int rows = size(g); rows > 0 && r < m; rows--, r++) {
      A.j.insert(A.j.end(), row.begin(), row.end());
      A.i.push_back((int)A.j.size());
    }
  }
  A.a.resize(A.j.size());
  return A;
}
// Columns anywhere, in ascending order
static inline void Anywhere(int n, int length, Row &row)
{
  for (int q = 0; q < length; q++) row.push_back(Int(n));
  std::sort(row.begin(), row.end());
  row.erase(std::unique(row.begin(), row.end()), row.end());
}

// A without some of its unknowns, rows and columns: those of constrained unknowns in finite elements
static inline Matrix Dropped(const char *name, const Matrix &A, std::function<bool(int)> drop)
{
  std::vector<int> number(A.m, -1);
  int              m = 0;
  for (int r = 0; r < A.m; r++) {
    if (!drop(r)) number[r] = m++;
  }
  Matrix B{name, m, m, {0}, {}, {}};
  for (int r = 0; r < A.m; r++) {
    if (number[r] < 0) continue;
    for (int q = A.i[r]; q < A.i[r + 1]; q++) {
      if (number[A.j[q]] >= 0) B.j.push_back(number[A.j[q]]);
    }
    B.i.push_back((int)B.j.size());
  }
  B.a.resize(B.j.size());
  return B;
}
