/*
  The kernels of products with inner products for matrices stored by diagonals.
*/
#include "diagonalsproduct.cuh"

namespace spmv {

const void *DiagonalsWithSums(const DiagonalsVariant &variant)
{
  return ProductOf<Scalar, DOTS>(variant);
}

} // namespace spmv
