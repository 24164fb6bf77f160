/*
  EVC-HYB on the device: the format's own rules for forming slices, from its parameters and the matrix.
*/
#include "paper.cuh"

namespace spmv {
namespace {

constexpr int WINDOW       = 1024;  // rows that are sorted together
constexpr int WINDOW_NODES = 65536; // node rows that are sorted together

constexpr SpMVNames ROWS = SPMV_NAMES("CUDA EVC-HYB rows"), NODES = SPMV_NAMES("CUDA EVC-HYB rows of node blocks"),
                    GROUPS = SPMV_NAMES("CUDA EVC-HYB rows in groups"), TILES = SPMV_NAMES("CUDA EVC-HYB tiles");

} // namespace
} // namespace spmv

PETSC_INTERN SpMVCudaSetUp SpMVCudaEVCHYBSetUp;

cudaError_t SpMVCudaEVCHYBSetUp(const SpMVCudaCSR *csr, const void *params, PetscBool transpose, cudaStream_t stream,
                                SpMVCudaStore *store)
{
  using namespace spmv;
  const auto      *p      = static_cast<const EVCHYBParams *>(params);
  const SpMVKernel kernel = p->common.kernel;
  return SetUp(csr, (bool)transpose, stream, store, [&](const SpMVCudaCSR &A, _n_SpMVCudaStore **b) {
    if (kernel == SPMV_KERNEL_PAPER || kernel == SPMV_KERNEL_VECTOR)
      return EVCHYBPaperCreate(A, *p, kernel == SPMV_KERNEL_VECTOR, stream, b);
    Choice c = {p->common.compress ? (int)p->common.node : 1,
                p->common.compress && kernel != SPMV_KERNEL_SLICES,
                p->common.single && sizeof(Single) < sizeof(Scalar),
                p->common.reorder == SPMV_REORDER_AUTO && p->common.compress,
                ROWS,
                NODES,
                GROUPS,
                TILES,
                nullptr};
    c.rules = [p](const Survey &s, int bs, int64_t) {
      SliceRules r;
      r.narrow = p->common.compress != 0;
      r.vector = (int)PetscMin(p->ell_limit, (PetscInt)INT_MAX);
      // The format's order, by length and first column over all rows, separates neighboring rows. If neighboring rows
      // read the same x, rows are sorted within windows. Without node blocks, sorting by first column is a disadvantage
      // there, too: without it, rows of equal length stay in their own order
      r.by_column = bs > 1 || !s.local();
      r.sigma     = !s.local() ? 0 : bs > 1 ? WINDOW_NODES : WINDOW;
      return r;
    };
    return Choose(A, c, stream, b);
  });
}
