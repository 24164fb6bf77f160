/*
  The operations on the values of a CSR matrix, compared with loops on the host.
*/
#pragma once

#include "core/cuda/csr/csr.h"
#include "common.cuh"

static inline bool SameNumbers(const std::vector<Number> &x, const std::vector<Number> &y)
{
  return x.size() == y.size() &&
         (x.empty() || !memcmp((const void *)x.data(), (const void *)y.data(), x.size() * sizeof(Number)));
}

static inline void TestCSRNorms(const Matrix &A, const SpMVCudaCSR &csr, cudaStream_t stream)
{
  std::vector<double>    row(A.m), column(A.n);
  std::vector<PetscReal> sums(A.n);
  double                 squares = 0, right[3] = {0, 0, 0};
  for (int r = 0; r < A.m; r++) {
    for (int q = A.i[r]; q < A.i[r + 1]; q++) {
      row[r] += std::abs(A.a[q]);
      column[A.j[q]] += std::abs(A.a[q]);
      squares += std::norm(Wide(A.a[q]));
    }
  }
  right[SPMVCUDA_NORM_SQUARES] = squares;
  for (double s : row) right[SPMVCUDA_NORM_ROWS] = std::max(right[SPMVCUDA_NORM_ROWS], s);
  for (double s : column) right[SPMVCUDA_NORM_COLUMNS] = std::max(right[SPMVCUDA_NORM_COLUMNS], s);
  const double eps = sizeof(PetscReal) == 8 ? 1e-12 : 1e-4;
  for (SpMVCudaNorm kind : {SPMVCUDA_NORM_SQUARES, SPMVCUDA_NORM_ROWS, SPMVCUDA_NORM_COLUMNS}) {
    const SpMVCudaCSR twice[2] = {csr, csr};
    PetscReal         norm[3];
    CHECK(SpMVCudaCSRNorm(kind, 1, &csr, stream, &norm[0]));
    CHECK(SpMVCudaCSRNorm(kind, 1, &csr, stream, &norm[1]));
    Expect(std::abs(norm[0] - right[kind]) <= eps * right[kind], A, "CSR", "norms", "a norm");
    Expect(norm[0] == norm[1], A, "CSR", "norms", "the same bits again");
    if (kind == SPMVCUDA_NORM_COLUMNS) continue;
    CHECK(SpMVCudaCSRNorm(kind, 2, twice, stream, &norm[2]));
    Expect(std::abs(norm[2] - 2 * right[kind]) <= 2 * eps * right[kind], A, "CSR", "norms",
           "a norm of two matrices side by side");
  }
  CHECK(SpMVCudaCSRColumnSums(&csr, stream, sums.data()));
  bool same = true;
  for (int c = 0; c < A.n; c++) same = same && std::abs(sums[c] - column[c]) <= eps * column[c];
  Expect(same, A, "CSR", "norms", "the sums of the columns");
}

// Every third row, and its column
static inline void TestCSRZeros(Matrix A, SpMVCudaCSR csr, Device<Number> &a, cudaStream_t stream)
{
  std::vector<PetscInt> rows;
  std::vector<Number>   x(std::max(A.m, A.n)), b(A.m);
  std::vector<char>     zero(A.m);
  const Number          value = Value();
  for (int r = 0; r < A.m; r += 3) rows.push_back(A.m - 1 - r), zero[A.m - 1 - r] = 1;
  for (Number &v : x) v = Value();
  for (Number &v : b) v = Value();
  Device<PetscInt>    list(rows);
  Device<Number>      dx(x), db(b);
  std::vector<Wide>   right(A.m);
  std::vector<double> size(A.m);
  for (int r = 0; r < A.m; r++) {
    right[r] = zero[r] && r < A.n ? Wide(value) * Wide(x[r]) : Wide(b[r]);
    size[r]  = std::abs(right[r]);
    for (int q = A.i[r]; q < A.i[r + 1]; q++) {
      const int c = A.j[q];
      if (zero[r]) {
        A.a[q] = c == r ? value : Number(0);
      } else if (c < A.m && zero[c]) {
        right[r] -= Wide(A.a[q]) * Wide(x[c]);
        size[r] += std::abs(Wide(A.a[q]) * Wide(x[c]));
        A.a[q] = Number(0);
      }
    }
  }
  CHECK(SpMVCudaCSRZeroColumns(&csr, (PetscInt64)rows.size(), list.p, (PetscScalar *)a.p, P(dx.p), (PetscScalar *)db.p,
                               stream));
  CHECK(SpMVCudaCSRZeroRows(&csr, (PetscInt64)rows.size(), list.p, P(&value), (PetscScalar *)a.p, P(dx.p),
                            (PetscScalar *)db.p, stream));
  CHECK(cudaStreamSynchronize(stream));
  Expect(SameNumbers(a.Get(), A.a), A, "CSR", "zeros", "rows and columns of zeros");
  Expect(Close(db.Get(), right, size), A, "CSR", "zeros", "the right-hand side");
}

static inline void TestCSR(const Matrix &A, cudaStream_t stream)
{
  Device<int>       i(A.i), j(A.j);
  Device<Number>    a(A.a);
  const SpMVCudaCSR csr     = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  const Number      value   = Value();
  Matrix            shifted = A, T = {A.name, A.n, A.m, {0}, {}, {}};
  PetscInt64        missing = 0, count;
  PetscBool         ascends;
  bool              sorted = true, finite = true;
  for (Number v : A.a) finite = finite && Finite(v);
  for (int r = 0; r < A.m; r++) {
    const auto p = std::find(A.j.begin() + A.i[r], A.j.begin() + A.i[r + 1], r);
    if (r < A.n && p == A.j.begin() + A.i[r + 1]) missing++;
    if (p != A.j.begin() + A.i[r + 1]) shifted.a[p - A.j.begin()] += value;
    for (int q = A.i[r] + 1; q < A.i[r + 1]; q++) sorted = sorted && A.j[q - 1] < A.j[q];
  }
  CHECK(SpMVCudaCSRAscends(&csr, stream, &ascends));
  Expect(ascends == sorted, A, "CSR", "pattern", "whether columns ascend");
  if (finite) TestCSRNorms(A, csr, stream);
  if (sorted) {
    CHECK(SpMVCudaCSRMissing(&csr, A.m, NULL, stream, &count));
    Expect(count == missing, A, "CSR", "pattern", "missing diagonal entries");
    std::vector<std::vector<std::pair<int, Number>>> column(A.n);
    for (int r = 0; r < A.m; r++) {
      for (int q = A.i[r]; q < A.i[r + 1]; q++) column[A.j[q]].push_back({r, A.a[q]});
    }
    for (auto &c : column) {
      for (auto &e : c) T.j.push_back(e.first), T.a.push_back(e.second);
      T.i.push_back((int)T.j.size());
    }
    Device<int>       ti(T.i), tj(T.j);
    Device<Number>    t(T.a.size());
    const SpMVCudaCSR transpose = {T.m, T.n, (PetscInt64)T.j.size(), ti.p, tj.p, 4, NULL};
    CHECK(SpMVCudaCSRTranspose(&csr, &transpose, (PetscScalar *)t.p, stream, &count));
    Expect(!count && SameNumbers(t.Get(), T.a), A, "CSR", "transpose", "its values");
    CHECK(SpMVCudaCSRShift(&csr, P(&value), (PetscScalar *)a.p, stream));
    CHECK(cudaStreamSynchronize(stream));
    Expect(!finite || SameNumbers(a.Get(), shifted.a), A, "CSR", "shift", "the diagonal");
    a.Set(A.a);
  }
  if (finite) TestCSRZeros(A, csr, a, stream);
}
