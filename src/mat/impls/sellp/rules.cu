/*
  SELL-P on the device: the format's own rules for forming slices, from its parameters and the matrix.
*/
#include "paper.cuh"
#include "sellpcuda.h"

namespace spmv {
namespace {

constexpr SpMVNames ROWS = SPMV_NAMES("CUDA SELL-P slices"), NODES = SPMV_NAMES("CUDA SELL-P slices of node blocks");

} // namespace
} // namespace spmv

cudaError_t SpMVCudaSELLPSetUp(const SpMVCudaCSR *csr, const SELLPParams *p, SpMVCudaKernel kernel, PetscBool transpose, cudaStream_t stream,
                               SpMVCudaStore *store)
{
  using namespace spmv;
  return SetUp(csr, (bool)transpose, stream, store, [&](const SpMVCudaCSR &A, _n_SpMVCudaStore **b) {
    if (kernel == SPMVCUDA_KERNEL_PAPER) return SELLPPaperCreate(A, *p, stream, b);
    // A slice is a warp's work here, so of b and t only t is left to choose
    Choice c = {(int)p->common.node,
                p->common.compress && kernel != SPMVCUDA_KERNEL_SLICES && !p->t && p->sigma <= 1,
                p->common.single && sizeof(Single) < sizeof(Scalar),
                kernel == SPMVCUDA_KERNEL_TUNE,
                {},
                ROWS,
                NODES,
                nullptr};
    if (!p->sigma) c.sigmas = {1, 1024, 4096};
    c.rules = [p, &A](const Survey &s, int bs, int64_t entries) {
      SliceRules r;
      r.narrow  = p->common.compress != 0;
      r.threads = p->t ? PowerOfTwo(p->t, WARP) : 0;
      // Sorting costs a list of rows and the locality of y: only where it saves more
      if (p->sigma)
        r.sigma = (int)PetscMin(p->sigma, (PetscInt)INT_MAX);
      else if (s.natural <= (unsigned long long)(entries + entries / 20))
        r.sigma = 1;
      else
        r.sigma = s.local() || entries >= 16 * (A.m / bs) ? 1024 : 4096; // short rows anywhere: nothing to lose
      return r;
    };
    return Choose(A, c, stream, b);
  });
}
