/*
  The kernels of the parallel product for matrices stored by diagonals.
*/
#include "diagonalsproduct.cuh"

namespace spmv {

const void *DiagonalsFused(const DiagonalsVariant &variant, bool marked)
{
  return ProductOf<Scalar, FUSED>(variant, marked);
}

} // namespace spmv
