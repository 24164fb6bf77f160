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
  Matrix            shifted = A;
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
  if (sorted) {
    CHECK(SpMVCudaCSRMissing(&csr, A.m, NULL, stream, &count));
    Expect(count == missing, A, "CSR", "pattern", "missing diagonal entries");
    CHECK(SpMVCudaCSRShift(&csr, P(&value), (PetscScalar *)a.p, stream));
    CHECK(cudaStreamSynchronize(stream));
    Expect(!finite || SameNumbers(a.Get(), shifted.a), A, "CSR", "shift", "the diagonal");
    a.Set(A.a);
  }
  if (finite) TestCSRZeros(A, csr, a, stream);
}
