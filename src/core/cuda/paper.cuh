/*
  What the papers' kernels of all formats share.
*/
#pragma once

#include "stores.cuh"

namespace spmv {

// y = alpha A x + beta y, in which y is not read where it is not to be
__device__ __forceinline__ Scalar Update(Scalar alpha, Scalar sum, bool read, Scalar beta, const Scalar *y)
{
  return Num::fma(alpha, sum, read ? Num::fma(beta, *y, Num::zero()) : Num::zero());
}

// Padding, of column -1, reads no x: 0 times Inf would spoil a row that has no such column
__device__ __forceinline__ Scalar Entry(int col, const Scalar *__restrict__ x)
{
  return col < 0 ? Num::zero() : Num::keep(x + col);
}

struct PaperBlock : _n_SpMVCudaStore {
  virtual cudaError_t Product(Scalar alpha, const Scalar *x, bool read, Scalar beta, bool conjugate, Scalar *y, cudaStream_t) = 0;

  cudaError_t Mult(bool conjugate, const Scalar *x, const Scalar *z, Scalar *y, cudaStream_t stream) override
  {
    Scalar one             = Num::zero();
    ((PetscReal *)&one)[0] = 1;
    if (z && z != y) SPMV_TRY(cudaMemcpyAsync(y, z, (size_t)m * sizeof(Scalar), cudaMemcpyDeviceToDevice, stream));
    return Product(one, x, z != nullptr, one, conjugate, y, stream);
  }

  cudaError_t Scaled(Scalar alpha, const Scalar *x, Scalar beta, Scalar *y, cudaStream_t stream) override
  {
    const Scalar zero = Num::zero();
    return Product(alpha, x, memcmp(&beta, &zero, sizeof(zero)) != 0, beta, false, y, stream);
  }
};

} // namespace spmv
