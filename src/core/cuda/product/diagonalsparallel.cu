/*
  The kernels of the parallel product for matrices stored by diagonals.
*/
#include "diagonalsproduct.cuh"

namespace spmv {

const void *DiagonalsFused(const DiagonalsVariant &variant)
{
  return ProductOf<Scalar, FUSED>(variant);
}

const void *DiagonalsFusedDots(const DiagonalsVariant &variant)
{
  return ProductOf<Scalar, FUSED_DOTS>(variant);
}

} // namespace spmv
