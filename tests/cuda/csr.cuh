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
    CHECK(SpMVCudaCSRMissing(&csr, stream, &count));
    Expect(count == missing, A, "CSR", "pattern", "missing diagonal entries");
    CHECK(SpMVCudaCSRShift(&csr, P(&value), (PetscScalar *)a.p, stream));
    CHECK(cudaStreamSynchronize(stream));
    Expect(!finite || SameNumbers(a.Get(), shifted.a), A, "CSR", "shift", "the diagonal");
  }
}
