/*
  The kernels for matrices stored by diagonals whose values are stored in single precision.
*/
#include "core/cuda/layout/diagonalsfill.cuh"
#include "diagonalsproduct.cuh"

namespace spmv {

const void *DiagonalsSingle(const DiagonalsVariant &variant, bool parallel, bool marked)
{
  return parallel ? ProductOf<Single, true>(variant, marked) : ProductOf<Single, false>(variant, marked);
}

cudaError_t FillDiagonalsSingle(const SpMVCudaCSR &csr, const Nodes &nodes, const FillArgs &f, cudaStream_t stream)
{
  return FillDiagonals<Single>(csr, nodes, f, stream);
}

} // namespace spmv
