/*
  Products of two or three factors: the transposes, and the product of the last two factors, which a plan keeps.
*/
#include "gemm.cuh"

namespace spmv {
namespace {

// An explicit transpose, and where its values are in the factor
struct Transpose {
  Array<PetscInt> i, j;
  Array<int>      from;
  Array<Scalar>   a;

  cudaError_t Make(const SpMVCudaCSR &factor, cudaStream_t);
  size_t      Bytes() const
  {
    return i.Bytes() + j.Bytes() + from.Bytes() + a.Bytes();
  }
};

#if defined(PETSC_USE_64BIT_INDICES)
__global__ void widen(int64_t count, const int *from, PetscInt *to)
{
  const int64_t k = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (k < count) to[k] = from[k];
}
#endif

cudaError_t Transpose::Make(const SpMVCudaCSR &factor, cudaStream_t stream)
{
  if (factor.nnz > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;
#if defined(PETSC_USE_64BIT_INDICES)
  Scratch<int> narrow_i(stream), narrow_j(stream);
  SPMV_TRY(TransposeCSR(factor, stream, narrow_i, narrow_j, from));
  SPMV_TRY(i.Alloc(factor.n + 1, stream));
  SPMV_TRY(j.Alloc(factor.nnz, stream));
  SPMV_LAUNCH(factor.n + 1, 256, stream, widen, factor.n + 1, (const int *)narrow_i, (PetscInt *)i);
  SPMV_LAUNCH(factor.nnz, 256, stream, widen, factor.nnz, (const int *)narrow_j, (PetscInt *)j);
#else
  SPMV_TRY(TransposeCSR(factor, stream, i, j, from));
#endif
  return a.Alloc(factor.nnz, stream);
}

__global__ void permute(int64_t count, const int *from, const Scalar *a, Scalar *to)
{
  const int64_t k = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (k < count) to[k] = Num::keep(a + from[k]);
}

} // namespace
} // namespace spmv

using namespace spmv;

struct _n_SpMVCudaSpGEMM {
  int           count = 0;
  bool          transposed[3];
  Transpose     transpose[3];
  Gemm          gemm[2]; // gemm[0]: of the last two factors of three; gemm[1]: the result
  Array<Scalar> inner;   // the values of gemm[0]

  // Factor k, or its transpose, without values
  SpMVCudaCSR Pattern(int k, const SpMVCudaCSR factor[]) const
  {
    if (!transposed[k]) return factor[k];
    return {factor[k].n, factor[k].m, factor[k].nnz, transpose[k].i, transpose[k].j, sizeof(PetscInt), nullptr};
  }
  SpMVCudaCSR Inner() const
  {
    const Gemm &g = gemm[0];
    return {g.m, g.n, g.nnz, g.i, g.j, sizeof(PetscInt), (const PetscScalar *)(Scalar *)inner};
  }
  cudaError_t Symbolic(const SpMVCudaCSR factor[], int64_t most, cudaStream_t stream)
  {
    SPMV_TRY(Supported());
    SPMV_TRY(PoolKeep(true)); // until the end: the host waits several times
    for (int k = 0; k < count; k++) {
      if (factor[k].m > SPMVCUDA_MAX_SIZE || factor[k].n > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;
      if (factor[k].index_bytes != sizeof(PetscInt)) return cudaErrorNotSupported;
      if (transposed[k]) SPMV_TRY(transpose[k].Make(factor[k], stream));
    }
    if (count == 3) {
      SPMV_TRY(gemm[0].Symbolic(Pattern(1, factor), Pattern(2, factor), most, stream));
      SPMV_TRY(inner.Alloc(gemm[0].nnz, stream));
      most -= gemm[0].MapBytes();
    }
    return gemm[1].Symbolic(Pattern(0, factor), count == 3 ? Inner() : Pattern(1, factor), most, stream);
  }
  cudaError_t Numeric(const SpMVCudaCSR factor[], const PetscInt *ci, const PetscInt *cj, PetscScalar *c,
                      cudaStream_t stream)
  {
    SpMVCudaCSR f[3];
    for (int k = 0; k < count; k++) {
      f[k] = Pattern(k, factor);
      if (!IsAligned(factor[k].a)) return cudaErrorMisalignedAddress;
      if (!transposed[k]) continue;
      SPMV_LAUNCH(factor[k].nnz, 256, stream, permute, factor[k].nnz, (const int *)transpose[k].from,
                  (const Scalar *)factor[k].a, (Scalar *)transpose[k].a);
      f[k].a = (const PetscScalar *)(Scalar *)transpose[k].a;
    }
    if (!IsAligned(c)) return cudaErrorMisalignedAddress;
    if (count == 3) {
      SPMV_TRY(gemm[0].Numeric(f[1], f[2], gemm[0].i, gemm[0].j, inner, stream));
      f[1] = Inner();
    }
    return gemm[1].Numeric(f[0], f[1], ci, cj, (Scalar *)c, stream);
  }
};

cudaError_t SpMVCudaSpGEMMSymbolic(int count, const SpMVCudaCSR factor[], const PetscBool transpose[], PetscInt64 most,
                                   cudaStream_t stream, SpMVCudaSpGEMM *product)
{
  *product = nullptr;
  return Guarded([&] {
    SpMVCudaSpGEMM p = new _n_SpMVCudaSpGEMM;
    p->count         = count;
    for (int k = 0; k < count; k++) p->transposed[k] = transpose[k];
    const cudaError_t error = p->Symbolic(factor, most, stream);
    if (error == cudaSuccess) {
      *product = p;
      return PoolKeep();
    }
    (void)SpMVCudaSpGEMMDestroy(&p);
    return error;
  });
}

cudaError_t SpMVCudaSpGEMMDestroy(SpMVCudaSpGEMM *product)
{
  if (!*product) return cudaSuccess;
  const cudaError_t error = cudaDeviceSynchronize(); // kernels may still be using memory of the plan
  delete *product;
  *product = nullptr;
  return error == cudaSuccess ? PoolKeep() : error;
}

void SpMVCudaSpGEMMGetStats(SpMVCudaSpGEMM product, SpMVCudaSpGEMMStats *stats)
{
  const Gemm &g   = product->gemm[1];
  stats->m        = g.m;
  stats->n        = g.n;
  stats->nonzeros = g.nnz;
  stats->terms    = 0;
  stats->bytes    = (PetscInt64)product->inner.Bytes();
  for (int k = product->count == 3 ? 0 : 1; k < 2; k++) {
    stats->terms += product->gemm[k].terms;
    stats->bytes += (PetscInt64)product->gemm[k].Bytes();
  }
  for (int k = 0; k < product->count; k++) stats->bytes += (PetscInt64)product->transpose[k].Bytes();
}

void SpMVCudaSpGEMMPattern(SpMVCudaSpGEMM product, const PetscInt **i, const PetscInt **j)
{
  *i = product->gemm[1].i;
  *j = product->gemm[1].j;
}

void SpMVCudaSpGEMMReleasePattern(SpMVCudaSpGEMM product)
{
  (void)cudaDeviceSynchronize();
  product->gemm[1].i.Free();
  product->gemm[1].j.Free();
}

cudaError_t SpMVCudaSpGEMMNumeric(SpMVCudaSpGEMM product, const SpMVCudaCSR factor[], const PetscInt *i,
                                  const PetscInt *j, PetscScalar *c, cudaStream_t stream)
{
  return product->Numeric(factor, i, j, c, stream);
}
