/*
  The smoothed prolongator: the product A P0, whose pattern includes P0's because A has all its diagonal entries, and one
  pass over it.
*/
#include "amg.cuh"

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

cudaError_t SpMVCudaSmooth(SpMVCudaSpGEMM product, const SpMVCudaCSR *A, const SpMVCudaCSR *diagonal,
                           const SpMVCudaCSR *P0, PetscReal scale, PetscInt *i, PetscInt *j, PetscScalar *a,
                           cudaStream_t stream)
{
  const SpMVCudaCSR   none = {}, factor[2] = {*A, *P0};
  const PetscInt     *from_i, *from_j;
  SpMVCudaSpGEMMStats stats;
  SpMVCudaSpGEMMGetStats(product, &stats);
  SpMVCudaSpGEMMPattern(product, &from_i, &from_j);
  SPMV_TRY(cudaMemcpyAsync(i, from_i, (A->m + 1) * sizeof(PetscInt), cudaMemcpyDeviceToDevice, stream));
  SPMV_TRY(cudaMemcpyAsync(j, from_j, stats.nonzeros * sizeof(PetscInt), cudaMemcpyDeviceToDevice, stream));
  SPMV_TRY(cudaStreamSynchronize(stream));
  SPMV_TRY(SpMVCudaSpGEMMNumeric(product, factor, i, j, a, stream));
  SPMV_LAUNCH(A->m * LANES, BLOCK, stream, smooth, Rows(diagonal ? *diagonal : *A), Rows(diagonal ? none : *P0), scale,
              (const PetscInt *)i, (const PetscInt *)j, (Scalar *)a);
  return cudaSuccess;
}

cudaError_t SpMVCudaNoise(PetscInt64 n, PetscInt64 first, PetscScalar *x, cudaStream_t stream)
{
  SPMV_LAUNCH(n, BLOCK, stream, make_noise, n, first, (Scalar *)x);
  return cudaSuccess;
}
