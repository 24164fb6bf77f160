/*
  The kernels for matrices stored by diagonals whose values are stored in single precision.
*/
#include "core/cuda/layout/diagonalsfill.cuh"
#include "diagonalsproduct.cuh"

namespace spmv {

const void *DiagonalsSingle(Use use, const DiagonalsVariant &variant)
{
  return use == FUSED ? ProductOf<Single, FUSED>(variant) : ProductOf<Single, MULT>(variant);
}

cudaError_t FillDiagonalsSingle(const SpMVCudaCSR &csr, const Nodes &nodes, const FillArgs &f, cudaStream_t stream)
{
  return FillDiagonals<Single>(csr, nodes, f, stream);
}

} // namespace spmv
