/*
  Operations on the values of a matrix in CSR form.
*/
#include "csr.h"
#include "entries.cuh"
#include "core/cuda/layout/view.cuh"

namespace spmv {
namespace {

constexpr int LANES = 8, BLOCK = 256; // LANES lanes share a row

inline Scalar ValueOf(const PetscScalar *p)
{
  Scalar s;
  memcpy(&s, p, sizeof(s));
  return s;
}

// ------------------------------------------------------------------------------------------------ patterns

template <class I> __global__ void count_descents(View<I> v, unsigned long long *total)
{
  const int64_t r     = Thread() / LANES;
  unsigned      wrong = 0;
  if (r < v.units) {
    for (int64_t q = v.i[r] + 1 + Thread() % LANES; q < (int64_t)v.i[r + 1]; q += LANES) wrong += v.j[q - 1] >= v.j[q];
  }
  Count(wrong, total);
}

template <class I> __global__ void count_missing(View<I> v, int64_t n, unsigned long long *total)
{
  const int64_t r = Thread();
  Count(r < v.units && r < n && Position(v.i, v.j, r, r) < 0, total);
}

// ------------------------------------------------------------------------------------------------ values

template <class I> __global__ void count_zeros(View<I> v, int64_t n, const Scalar *a, unsigned long long *total)
{
  const int64_t r    = Thread();
  unsigned      zero = 0;
  if (r < v.units && r < n) {
    const int64_t p = Position(v.i, v.j, r, r);
    zero            = p < 0 || Magnitude(Read(a + p)) == 0 || IsBad(Read(a + p));
  }
  Count(zero, total);
}

template <class I> __global__ void shift(View<I> v, int64_t n, Scalar value, Scalar *a)
{
  const int64_t r = Thread(), p = r < v.units && r < n ? Position(v.i, v.j, r, r) : -1;
  if (p >= 0) a[p] = Num::add(a[p], value);
}

cudaError_t Check(const SpMVCudaCSR *csr)
{
  return csr->m > SPMVCUDA_MAX_SIZE ? cudaErrorNotSupported : Supported();
}

// Calls f with a counter on the device that is zero, and gets the count
template <class F> cudaError_t Counted(cudaStream_t stream, PetscInt64 *count, F f)
{
  Scratch<unsigned long long> total(stream);
  unsigned long long          host;
  SPMV_TRY(total.AllocZero(1));
  SPMV_TRY(f((unsigned long long *)total));
  SPMV_TRY(Fetch(&host, (unsigned long long *)total, 1, stream));
  *count = (PetscInt64)host;
  return cudaSuccess;
}

} // namespace
} // namespace spmv

using namespace spmv;

cudaError_t SpMVCudaCSRAscends(const SpMVCudaCSR *csr, cudaStream_t stream, PetscBool *ascends)
{
  PetscInt64 wrong = 0;
  SPMV_TRY(Check(csr));
  SPMV_TRY(Counted(stream, &wrong, [&](unsigned long long *total) {
    SPMV_LAUNCH_VIEW(*csr, 1, (int64_t)v.units * LANES, BLOCK, stream, count_descents, v, total);
    return cudaSuccess;
  }));
  *ascends = (PetscBool)!wrong;
  return cudaSuccess;
}

cudaError_t SpMVCudaCSRMissing(const SpMVCudaCSR *csr, cudaStream_t stream, PetscInt64 *missing)
{
  SPMV_TRY(Check(csr));
  return Counted(stream, missing, [&](unsigned long long *total) {
    SPMV_LAUNCH_VIEW(*csr, 1, (int64_t)v.units, BLOCK, stream, count_missing, v, csr->n, total);
    return cudaSuccess;
  });
}

cudaError_t SpMVCudaCSRZeroDiagonals(const SpMVCudaCSR *csr, cudaStream_t stream, PetscInt64 *zeros)
{
  SPMV_TRY(Check(csr));
  return Counted(stream, zeros, [&](unsigned long long *total) {
    SPMV_LAUNCH_VIEW(*csr, 1, (int64_t)v.units, BLOCK, stream, count_zeros, v, csr->n, (const Scalar *)csr->a, total);
    return cudaSuccess;
  });
}

cudaError_t SpMVCudaCSRShift(const SpMVCudaCSR *csr, const PetscScalar *value, PetscScalar *a, cudaStream_t stream)
{
  SPMV_TRY(Check(csr));
  SPMV_LAUNCH_VIEW(*csr, 1, (int64_t)v.units, BLOCK, stream, shift, v, csr->n, ValueOf(value), (Scalar *)a);
  return cudaSuccess;
}
