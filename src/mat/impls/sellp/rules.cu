/*
  SELL-P on the device: the format's own rules for forming slices, from its parameters and the matrix.
*/
#include "paper.cuh"

namespace spmv {
namespace {

// rows are not sorted if slices of unsorted rows have at most one padding entry per this many entries
constexpr int UNSORTED_SHARE = 20;
constexpr int WINDOW         = 1024; // rows that are sorted together
// the same for short rows whose columns are scattered: they have no locality to lose
constexpr int WINDOW_SHORT = 4096;
constexpr int SHORT        = 16; // entries

constexpr SpMVNames ROWS = SPMV_NAMES("CUDA SELL-P slices"), NODES = SPMV_NAMES("CUDA SELL-P slices of node blocks"),
                    GROUPS = SPMV_NAMES("CUDA SELL-P slices of row groups"), TILES = SPMV_NAMES("CUDA SELL-P tiles");

} // namespace
} // namespace spmv

PETSC_INTERN SpMVCudaSetUp SpMVCudaSELLPSetUp;

cudaError_t SpMVCudaSELLPSetUp(const SpMVCudaCSR *csr, const void *params, PetscBool transpose, cudaStream_t stream,
                               SpMVCudaStore *store)
{
  using namespace spmv;
  const auto      *p      = static_cast<const SELLPParams *>(params);
  const SpMVKernel kernel = p->common.kernel;
  if (kernel == SPMV_KERNEL_VECTOR) return cudaErrorNotSupported;
  return SetUp(csr, (bool)transpose, stream, store, [&](const SpMVCudaCSR &A, _n_SpMVCudaStore **b) {
    if (kernel == SPMV_KERNEL_PAPER) return SELLPPaperCreate(A, *p, stream, b);
    // On the device one warp processes a slice, so t determines b
    Choice c = {p->common.compress ? (int)p->common.node : 1,
                p->common.compress && kernel != SPMV_KERNEL_SLICES && !p->t && p->sigma <= 1,
                p->common.single && sizeof(Single) < sizeof(Scalar),
                p->common.reorder == SPMV_REORDER_AUTO && p->common.compress && !p->sigma && !p->t,
                ROWS,
                NODES,
                GROUPS,
                TILES,
                nullptr};
    c.rules = [p, &A](const Survey &s, int bs, int64_t entries) {
      SliceRules r;
      r.narrow  = p->common.compress != 0;
      r.threads = p->t ? PowerOfTwo(p->t, WARP) : 0;
      // Sorting requires a list of rows and loses the locality of y, so rows are sorted only if that saves more
      if (p->sigma)
        r.sigma = (int)PetscMin(p->sigma, (PetscInt)INT_MAX);
      else if (s.natural <= (unsigned long long)(entries + entries / UNSORTED_SHARE))
        r.sigma = 1;
      else
        r.sigma = s.local() || entries >= SHORT * (A.m / bs) ? WINDOW : WINDOW_SHORT;
      return r;
    };
    return Choose(A, c, stream, b);
  });
}
