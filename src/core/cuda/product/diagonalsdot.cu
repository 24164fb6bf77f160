/*
  The kernels of products with inner products for matrices stored by diagonals. DotsEpilogue and, with node blocks,
  DotEpilogue always look at marks:
  fewer kernels make a smaller library.
*/
#include "diagonalsproduct.cuh"

namespace spmv {

const void *DiagonalsDot(const DiagonalsVariant &variant, bool marked)
{
  return WithVariant(variant, [=](auto t) {
    using T = decltype(t);
    return marked ? (const void *)diagonals<Scalar, T::BS, T::STEPS, T::LENGTHS, true, false, DotEpilogue>
                  : (const void *)diagonals<Scalar, T::BS, T::STEPS, T::LENGTHS, (T::BS > 1), false, DotEpilogue>;
  });
}

const void *DiagonalsDots(const DiagonalsVariant &variant)
{
  return WithVariant(variant, [](auto t) {
    using T = decltype(t);
    return (const void *)diagonals<Scalar, T::BS, T::STEPS, T::LENGTHS, true, false, DotsEpilogue>;
  });
}

} // namespace spmv
