/*
  The kernels of the parallel product for matrices stored by diagonals.
*/
#include "diagonalsproduct.cuh"

namespace spmv {

const void *DiagonalsParallel(const DiagonalsVariant &variant, bool marked)
{
  return ProductOf<Scalar, true>(variant, marked);
}

} // namespace spmv
