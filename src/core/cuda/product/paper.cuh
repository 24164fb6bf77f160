/*
  The code that the papers' kernels of all formats share.
*/
#pragma once

#include "paper.h"
#include "core/cuda/stores.cuh"

namespace spmv {

// y = alpha A x + beta y; y is read only if `read` is true
__device__ __forceinline__ Scalar Update(Scalar alpha, Scalar sum, bool read, Scalar beta, const Scalar *y)
{
  return Num::fma(alpha, sum, read ? Num::fma(beta, *y, Num::zero()) : Num::zero());
}

// Padding has column -1 and reads no x: 0 times Inf would spoil a row that has no such column
__device__ __forceinline__ Scalar Entry(int col, const Scalar *__restrict__ x)
{
  return col < 0 ? Num::zero() : Num::keep(x + col);
}

struct PaperStore : _n_SpMVCudaStore {
  // y = alpha A x + beta y; read: beta is not 0
  virtual cudaError_t Product(Scalar alpha, const Scalar *x, bool read, Scalar beta, bool conjugate, Scalar *y,
                              cudaStream_t) = 0;
  // false: y stays in the order of the sorted rows
  virtual cudaError_t SetReorder(bool)
  {
    return cudaErrorNotSupported;
  }

  cudaError_t Multiply(const spmv::Product &p, cudaStream_t stream) override
  {
    const Operands &v   = p.v;
    Scalar          one = Num::zero(), sign = Num::zero();
    ((PetscReal *)&one)[0]  = 1;
    ((PetscReal *)&sign)[0] = p.form == SPMVCUDA_RESIDUAL ? -1 : 1;
    if (v.z && v.z != v.y)
      SPMV_TRY(cudaMemcpyAsync(v.y, v.z, (size_t)m * sizeof(Scalar), cudaMemcpyDeviceToDevice, stream));
    return Product(sign, v.x, v.z != nullptr, one, p.form == SPMVCUDA_CONJUGATE, v.y, stream);
  }
};

} // namespace spmv
