/*
  The kernels of products with inner products for matrices stored by diagonals.
*/
#include "diagonalsproduct.cuh"

namespace spmv {

const void *DiagonalsWithSums(Use use, const DiagonalsVariant &variant, bool marked)
{
  return use == DOT ? ProductOf<Scalar, DOT>(variant, marked) : ProductOf<Scalar, DOTS>(variant, marked);
}

} // namespace spmv
