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

template <class I> __device__ __forceinline__ int64_t Position(const View<I> &v, int64_t r, int64_t c)
{
  return spmv::Position(v.i, v.j, r, c);
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

template <class I>
__global__ void count_missing(View<I> v, int64_t n, int64_t count, const PetscInt *row, unsigned long long *total)
{
  const int64_t k = Thread(), r = k < count ? (row ? (int64_t)row[k] : k) : n;
  Count(r < n && Position(v, r, r) < 0, total);
}

// ------------------------------------------------------------------------------------------------ values

template <class I> __global__ void count_zeros(View<I> v, int64_t n, const Scalar *a, unsigned long long *total)
{
  const int64_t r    = Thread();
  unsigned      zero = 0;
  if (r < v.units && r < n) {
    const int64_t p = Position(v, r, r);
    zero            = p < 0 || Magnitude(Read(a + p)) == 0 || IsBad(Read(a + p));
  }
  Count(zero, total);
}

template <class I> __global__ void shift(View<I> v, int64_t n, Scalar value, Scalar *a)
{
  const int64_t r = Thread(), p = r < v.units && r < n ? Position(v, r, r) : -1;
  if (p >= 0) a[p] = Num::add(a[p], value);
}

template <class I>
__global__ void zero_rows(View<I> v, int64_t n, int64_t count, const PetscInt *row, Scalar value, Scalar *a,
                          const Scalar *x, Scalar *b)
{
  const int64_t k    = Thread() / LANES;
  const int     lane = threadIdx.x % LANES;
  if (k >= count) return;
  const int64_t r = row[k];
  for (int64_t q = v.i[r] + lane; q < (int64_t)v.i[r + 1]; q += LANES)
    a[q] = (int64_t)v.j[q] == r ? value : Num::zero();
  if (b && lane == 0 && r < n) b[r] = Num::fma(value, x[r], Num::zero());
}

__global__ void mark(int64_t count, const PetscInt *row, char *marked)
{
  const int64_t k = Thread();
  if (k < count) marked[row[k]] = 1;
}

template <class I> __global__ void zero_columns(View<I> v, const char *marked, Scalar *a, const Scalar *x, Scalar *b)
{
  const int64_t r   = Thread() / LANES;
  const bool    use = r < v.units && !marked[r];
  Scalar        sum = Num::zero();
  for (int64_t q = use ? v.i[r] + Thread() % LANES : 0; use && q < (int64_t)v.i[r + 1]; q += LANES) {
    const int64_t c = v.j[q];
    if (c >= v.units || !marked[c]) continue;
    if (b) sum = Num::fma(a[q], x[c], sum);
    a[q] = Num::zero();
  }
  if (!b) return;
  for (int by = LANES / 2; by; by /= 2) sum = Num::add(sum, Num::down(sum, by));
  if (use && threadIdx.x % LANES == 0) b[r] = Num::sub(b[r], sum);
}

template <class I>
__global__ void transpose(View<I> v, View<I> t, const Scalar *a, Scalar *to, unsigned long long *absent)
{
  const int64_t r    = Thread() / LANES;
  unsigned      lost = 0;
  for (int64_t q = r < t.units ? t.i[r] + Thread() % LANES : 0; r < t.units && q < (int64_t)t.i[r + 1]; q += LANES) {
    const int64_t p = Position(v, t.j[q], r);
    to[q]           = p < 0 ? Num::zero() : a[p];
    lost += p < 0;
  }
  Count(lost, absent);
}

// ------------------------------------------------------------------------------------------------ norms

// position: of the entries of row r in a; NULL: they are in the order of the rows
template <class I>
__global__ void add_sums(int64_t rows, const I *i, const int *position, const Scalar *a, PetscReal *sum)
{
  const int64_t r = Thread() / LANES;
  PetscReal     d = 0;
  for (int64_t q = r < rows ? i[r] + Thread() % LANES : 0; r < rows && q < (int64_t)i[r + 1]; q += LANES)
    d += Magnitude(a[position ? position[q] : q]);
  for (int by = LANES / 2; by; by /= 2) d += __shfl_down_sync(ALL, d, by);
  if (r < rows && threadIdx.x % LANES == 0) sum[r] += d;
}

struct Squares {
  const Scalar *a;

  __device__ PetscReal Of(int64_t q) const
  {
    return Square(a[q]);
  }
  static __device__ PetscReal Combine(PetscReal x, PetscReal y)
  {
    return x + y;
  }
};
struct Sum {
  const PetscReal *a;

  __device__ PetscReal Of(int64_t q) const
  {
    return a[q];
  }
  static __device__ PetscReal Combine(PetscReal x, PetscReal y)
  {
    return x + y;
  }
};
struct Largest { // like AIJ's norms, it ignores NaN
  const PetscReal *a;

  __device__ PetscReal Of(int64_t q) const
  {
    return a[q];
  }
  static __device__ PetscReal Combine(PetscReal x, PetscReal y)
  {
    return fmax(x, y);
  }
};

template <class F> __global__ void reduce(int64_t count, F f, PetscReal *out)
{
  __shared__ PetscReal of_warp[BLOCK / WARP];
  PetscReal            d = 0;
  for (int64_t q = Thread(); q < count; q += (int64_t)gridDim.x * blockDim.x) d = F::Combine(d, f.Of(q));
  for (int by = WARP / 2; by; by /= 2) d = F::Combine(d, __shfl_down_sync(ALL, d, by));
  if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = d;
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < BLOCK / WARP; w++) d = F::Combine(d, of_warp[w]);
  out[blockIdx.x] = d;
}

// Combines f of all numbers below count; Last combines the results of the blocks
template <class F, class Last> cudaError_t Reduce(int64_t count, F f, cudaStream_t stream, PetscReal *result)
{
  constexpr int      MOST   = 1024;
  const int          blocks = (int)(count < (int64_t)MOST * BLOCK ? (count + BLOCK - 1) / BLOCK : MOST);
  Scratch<PetscReal> part(stream), all(stream);
  *result = 0;
  if (!count) return cudaSuccess;
  SPMV_TRY(part.Alloc(blocks));
  SPMV_TRY(all.Alloc(1));
  SPMV_LAUNCH((int64_t)blocks * BLOCK, BLOCK, stream, reduce, count, f, (PetscReal *)part);
  SPMV_LAUNCH(BLOCK, BLOCK, stream, reduce, (int64_t)blocks, Last{part}, (PetscReal *)all);
  return Fetch(result, (PetscReal *)all, 1, stream);
}

cudaError_t AddRowSums(const SpMVCudaCSR &csr, PetscReal *sum, cudaStream_t stream)
{
  return WithView(csr, 1, [&](auto v) {
    SPMV_LAUNCH((int64_t)v.units * LANES, BLOCK, stream, add_sums, (int64_t)v.units, v.i, nullptr,
                (const Scalar *)csr.a, sum);
    return cudaSuccess;
  });
}

// Sorted by columns, so that the sums are the same each time
cudaError_t AddColumnSums(const SpMVCudaCSR &csr, PetscReal *sum, cudaStream_t stream)
{
  Array<int> it, jt, position;
  if (csr.n > SPMVCUDA_MAX_SIZE || csr.nnz > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;
  SPMV_TRY(TransposeCSR(csr, stream, it, jt, position));
  SPMV_LAUNCH(csr.n * LANES, BLOCK, stream, add_sums, csr.n, (const int *)it, (const int *)position,
              (const Scalar *)csr.a, sum);
  return cudaStreamSynchronize(stream); // before the arrays are freed
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
  SPMV_TRY(total.Alloc(1));
  SPMV_TRY(total.Zero(stream));
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
    return WithView(*csr, 1, [&](auto v) {
      SPMV_LAUNCH((int64_t)v.units * LANES, BLOCK, stream, count_descents, v, total);
      return cudaSuccess;
    });
  }));
  *ascends = (PetscBool)!wrong;
  return cudaSuccess;
}

cudaError_t SpMVCudaCSRMissing(const SpMVCudaCSR *csr, PetscInt64 count, const PetscInt *row, cudaStream_t stream,
                               PetscInt64 *missing)
{
  SPMV_TRY(Check(csr));
  return Counted(stream, missing, [&](unsigned long long *total) {
    return WithView(*csr, 1, [&](auto v) {
      SPMV_LAUNCH(count, BLOCK, stream, count_missing, v, csr->n, count, row, total);
      return cudaSuccess;
    });
  });
}

cudaError_t SpMVCudaCSRZeroDiagonals(const SpMVCudaCSR *csr, cudaStream_t stream, PetscInt64 *zeros)
{
  SPMV_TRY(Check(csr));
  return Counted(stream, zeros, [&](unsigned long long *total) {
    return WithView(*csr, 1, [&](auto v) {
      SPMV_LAUNCH((int64_t)v.units, BLOCK, stream, count_zeros, v, csr->n, (const Scalar *)csr->a, total);
      return cudaSuccess;
    });
  });
}

cudaError_t SpMVCudaCSRShift(const SpMVCudaCSR *csr, const PetscScalar *value, PetscScalar *a, cudaStream_t stream)
{
  SPMV_TRY(Check(csr));
  return WithView(*csr, 1, [&](auto v) {
    SPMV_LAUNCH((int64_t)v.units, BLOCK, stream, shift, v, csr->n, ValueOf(value), (Scalar *)a);
    return cudaSuccess;
  });
}

cudaError_t SpMVCudaCSRZeroRows(const SpMVCudaCSR *csr, PetscInt64 count, const PetscInt *row, const PetscScalar *value,
                                PetscScalar *a, const PetscScalar *x, PetscScalar *b, cudaStream_t stream)
{
  SPMV_TRY(Check(csr));
  return WithView(*csr, 1, [&](auto v) {
    SPMV_LAUNCH(count * LANES, BLOCK, stream, zero_rows, v, csr->n, count, row, ValueOf(value), (Scalar *)a,
                (const Scalar *)x, (Scalar *)b);
    return cudaSuccess;
  });
}

cudaError_t SpMVCudaCSRZeroColumns(const SpMVCudaCSR *csr, PetscInt64 count, const PetscInt *row, PetscScalar *a,
                                   const PetscScalar *x, PetscScalar *b, cudaStream_t stream)
{
  Scratch<char> marked(stream);
  SPMV_TRY(Check(csr));
  SPMV_TRY(marked.Alloc(csr->m));
  SPMV_TRY(marked.Zero(stream));
  SPMV_LAUNCH(count, BLOCK, stream, mark, count, row, (char *)marked);
  return WithView(*csr, 1, [&](auto v) {
    SPMV_LAUNCH((int64_t)v.units * LANES, BLOCK, stream, zero_columns, v, (const char *)marked, (Scalar *)a,
                (const Scalar *)x, (Scalar *)b);
    return cudaSuccess;
  });
}

cudaError_t SpMVCudaCSRTranspose(const SpMVCudaCSR *A, const SpMVCudaCSR *T, PetscScalar *t, cudaStream_t stream,
                                 PetscInt64 *absent)
{
  SPMV_TRY(Check(A));
  SPMV_TRY(Check(T));
  return Counted(stream, absent, [&](unsigned long long *total) {
    return WithView(*A, 1, [&](auto v) {
      const decltype(v) w = {(decltype(v.i))T->i, (decltype(v.i))T->j, (int)T->m, 1, nullptr, nullptr, nullptr};
      SPMV_LAUNCH((int64_t)w.units * LANES, BLOCK, stream, transpose, v, w, (const Scalar *)A->a, (Scalar *)t, total);
      return cudaSuccess;
    });
  });
}

cudaError_t SpMVCudaCSRNorm(SpMVCudaNorm kind, int count, const SpMVCudaCSR csr[], cudaStream_t stream, PetscReal *norm)
{
  Scratch<PetscReal> sum(stream);
  const int64_t      sums = !count ? 0 : kind == SPMVCUDA_NORM_COLUMNS ? csr[0].n : csr[0].m;
  PetscReal          one;
  *norm = 0;
  for (int k = 0; k < count; k++) SPMV_TRY(Check(&csr[k]));
  for (int k = 0; k < count && kind == SPMVCUDA_NORM_SQUARES; k++) {
    SPMV_TRY((Reduce<Squares, Sum>(csr[k].nnz, {(const Scalar *)csr[k].a}, stream, &one)));
    *norm += one;
  }
  if (kind == SPMVCUDA_NORM_SQUARES) return cudaSuccess;
  SPMV_TRY(sum.Alloc(sums));
  SPMV_TRY(sum.Zero(stream));
  for (int k = 0; k < count; k++)
    SPMV_TRY((kind == SPMVCUDA_NORM_COLUMNS ? AddColumnSums : AddRowSums)(csr[k], sum, stream));
  return Reduce<Largest, Largest>(sums, {sum}, stream, norm);
}

cudaError_t SpMVCudaCSRColumnSums(const SpMVCudaCSR *csr, cudaStream_t stream, PetscReal host[])
{
  Scratch<PetscReal> sum(stream);
  SPMV_TRY(Check(csr));
  SPMV_TRY(sum.Alloc(csr->n));
  SPMV_TRY(sum.Zero(stream));
  SPMV_TRY(AddColumnSums(*csr, sum, stream));
  return Fetch(host, (PetscReal *)sum, csr->n, stream);
}
