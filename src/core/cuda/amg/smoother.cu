/*
  The smoothed prolongator: the product A P0, whose pattern includes P0's if A has all its diagonal entries, and one
  pass over it. The diagonal entries that A does not have are inserted, as zeros, in a copy of A.
*/
#include "amg.cuh"
#include "core/cuda/csr/csr.h"
#include "core/cuda/spgemm/spgemm.h"

struct _n_SpMVCudaSmoother {
  SpMVCudaSpGEMM             product = nullptr;
  spmv::Scratch<PetscInt>    i, j; // of the copy of A, if there is one
  spmv::Scratch<PetscScalar> a;
  SpMVCudaSpGEMMStats        stats = {};

  explicit _n_SpMVCudaSmoother(cudaStream_t stream) : i(stream), j(stream), a(stream)
  {
  }
  ~_n_SpMVCudaSmoother()
  {
    SpMVCudaSpGEMMDestroy(&product);
  }
};

namespace spmv {
namespace {

struct Rows {
  int64_t         m;
  const PetscInt *i, *j;
  const Scalar   *a;

  explicit Rows(const SpMVCudaCSR &csr)
      : m(csr.m), i((const PetscInt *)csr.i), j((const PetscInt *)csr.j), a((const Scalar *)csr.a)
  {
  }
};

__global__ void complete(Rows A, int64_t *length, const PetscInt *to_i, PetscInt *to_j, Scalar *to_a)
{
  const int64_t r = Thread() / LANES;
  if (r >= A.m) return;
  const int64_t first = A.i[r], end = A.i[r + 1];
  const bool    lacks = Position(A.i, A.j, r, r) < 0;
  if (length) {
    length[r] = end - first + lacks;
    return;
  }
  for (int64_t q = first + Thread() % LANES; q < end; q += LANES) {
    const int64_t to = to_i[r] + (q - first) + (lacks && (int64_t)A.j[q] > r);
    to_j[to]         = A.j[q];
    to_a[to]         = A.a[q];
  }
  if (!lacks || Thread() % LANES) return;
  const int64_t to = to_i[r] + (LowerBound(A.j, first, end, r) - first);
  to_j[to]         = (PetscInt)r;
  to_a[to]         = Num::zero();
}

// a, with the pattern i, j: from A P0 to P0 - scale D^-1 A P0, where P0 may have no rows, and D is the diagonal of A
__global__ void smooth(Rows A, Rows P0, PetscReal scale, const PetscInt *i, const PetscInt *j, Scalar *a)
{
  const int64_t r = Thread() / LANES;
  if (r >= A.m) return;
  const int64_t p = Position(A.i, A.j, r, r);
  Scalar        d = p < 0 ? Num::zero() : A.a[p];
  if (!IsZero(d)) d = Divided(FromReal(1), d);
  for (int64_t q = i[r] + Thread() % LANES; q < (int64_t)i[r + 1]; q += LANES) {
    const int64_t at = r < P0.m ? Position(P0.i, P0.j, r, j[q]) : -1;
    a[q]             = Num::fma(FromReal(-scale), Multiplied(a[q], d), at < 0 ? Num::zero() : P0.a[at]);
  }
}

__global__ void make_noise(int64_t n, int64_t first, Scalar *x)
{
  const int64_t k = Thread();
  if (k >= n) return;
  unsigned h = (unsigned)(first + k);
  h          = (h >> 16 ^ h) * 0x45d9f3bu;
  h          = (h >> 16 ^ h) * 0x45d9f3bu;
  h          = h >> 16 ^ h;
  Write(x + k, FromReal((PetscReal)((double)((int64_t)h - 2147483648LL) * 5.e-10)));
}

} // namespace
} // namespace spmv

using namespace spmv;

cudaError_t SpMVCudaSmootherCreate(const SpMVCudaCSR *A, const SpMVCudaCSR *diagonal, const SpMVCudaCSR *P0,
                                   cudaStream_t stream, PetscInt64 *nonzeros, SpMVCudaSmoother *smoother)
{
  return Create(smoother, stream, [&](_n_SpMVCudaSmoother &s) {
    const PetscBool transpose[2] = {PETSC_FALSE, PETSC_FALSE};
    SpMVCudaCSR     factor[2]    = {*A, *P0};
    PetscInt64      missing      = 0;
    if (A->m != (diagonal ? diagonal->m : A->n) || A->n != P0->m || A->index_bytes != sizeof(PetscInt))
      return cudaErrorNotSupported;
    if (!IsAligned(A->a) || !IsAligned(P0->a)) return cudaErrorMisalignedAddress;
    if (!diagonal) SPMV_TRY(SpMVCudaCSRMissing(A, stream, &missing));
    if (missing) {
      SPMV_TRY(MakePattern(A->m, s.i, s.j, stream, [&](int64_t *length, const PetscInt *i) {
        if (!length) SPMV_TRY(s.a.Alloc(s.j.Size()));
        SPMV_LAUNCH(A->m * LANES, BLOCK, stream, complete, Rows(*A), length, i, (PetscInt *)s.j,
                    (Scalar *)(PetscScalar *)s.a);
        return cudaSuccess;
      }));
      factor[0] = {A->m, A->n, (PetscInt64)s.j.Size(), (PetscInt *)s.i, (PetscInt *)s.j, sizeof(PetscInt), s.a};
    }
    SPMV_TRY(SpMVCudaSpGEMMSymbolic(2, factor, transpose, 0, stream, &s.product));
    SpMVCudaSpGEMMGetStats(s.product, &s.stats);
    *nonzeros = s.stats.nonzeros;
    return cudaSuccess;
  });
}

cudaError_t SpMVCudaSmootherFill(SpMVCudaSmoother s, const SpMVCudaCSR *A, const SpMVCudaCSR *diagonal,
                                 const SpMVCudaCSR *P0, PetscReal scale, PetscInt *i, PetscInt *j, PetscScalar *a,
                                 cudaStream_t stream)
{
  return Guarded([&]() -> cudaError_t {
    const SpMVCudaCSR none = {};
    const PetscInt   *from_i, *from_j;
    SpMVCudaCSR       factor[2] = {*A, *P0};
    if (s->j.Size())
      factor[0] = {A->m, A->n, (PetscInt64)s->j.Size(), (PetscInt *)s->i, (PetscInt *)s->j, sizeof(PetscInt), s->a};
    SpMVCudaSpGEMMPattern(s->product, &from_i, &from_j);
    SPMV_TRY(cudaMemcpyAsync(i, from_i, (A->m + 1) * sizeof(PetscInt), cudaMemcpyDeviceToDevice, stream));
    SPMV_TRY(cudaMemcpyAsync(j, from_j, s->stats.nonzeros * sizeof(PetscInt), cudaMemcpyDeviceToDevice, stream));
    SPMV_TRY(cudaStreamSynchronize(stream));
    SPMV_TRY(SpMVCudaSpGEMMNumeric(s->product, factor, i, j, a, stream));
    SPMV_LAUNCH(A->m * LANES, BLOCK, stream, smooth, Rows(diagonal ? *diagonal : factor[0]),
                Rows(diagonal ? none : *P0), scale, (const PetscInt *)i, (const PetscInt *)j, (Scalar *)a);
    return cudaSuccess;
  });
}

cudaError_t SpMVCudaSmootherDestroy(SpMVCudaSmoother *smoother)
{
  delete *smoother;
  *smoother = nullptr;
  return cudaSuccess;
}

cudaError_t SpMVCudaNoise(PetscInt64 n, PetscInt64 first, PetscScalar *x, cudaStream_t stream)
{
  SPMV_LAUNCH(n, BLOCK, stream, make_noise, n, first, (Scalar *)x);
  return cudaSuccess;
}
