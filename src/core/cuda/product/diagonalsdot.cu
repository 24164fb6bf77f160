/*
  The kernels of products with inner products for matrices stored by diagonals.
*/
#include "diagonalsproduct.cuh"

namespace spmv {

const void *DiagonalsWithSums(Use use, const DiagonalsVariant &variant)
{
  return use == DOT ? ProductOf<Scalar, DOT>(variant) : ProductOf<Scalar, DOTS>(variant);
}

} // namespace spmv
