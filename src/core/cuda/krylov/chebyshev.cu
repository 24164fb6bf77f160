/*
  A step of Chebyshev's method on the device: one kernel for everything after the product.
*/
#include "krylov.cuh"

using namespace spmv;

namespace {

constexpr int BLOCK = KRYLOV_BLOCK;

struct StepArgs : SpMVKrylovSolve, SpMVCudaChebyshev {};

// next = of_before before + of_now now + of_residual B (b - w); next may be any of the others except w. A block
// preconditioner uses as many threads per block as it has rows
template <SpMVKrylovPC PC>
__global__ void __launch_bounds__(BLOCK) step(StepArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  const unsigned rows = PC == SPMV_KRYLOV_PC_BLOCKS ? BLOCK / (unsigned)g.bs * (unsigned)g.bs : BLOCK;
  const unsigned i    = blockIdx.x * rows + threadIdx.x;
  const bool     own  = threadIdx.x < rows && i < (unsigned)g.n;
  Scalar         z    = Num::zero();
  AwaitPrevious();
  LetNextBegin();
  if (own) {
    z = Read(g.b + i);
    if (g.w) z = Num::add(z, Negated(g.w[i]));
    if (PC == SPMV_KRYLOV_PC_POINTS) z = Multiplied(g.d[i], z);
  }
  if (PC == SPMV_KRYLOV_PC_BLOCKS) z = MultiplyBlock<BLOCK>(g.d, g.n, g.bs, i, own, z);
  if (!own) return;
  z = Multiplied(FromReal(g.of_residual), z);
  if (g.now) z = Num::fma(FromReal(g.of_now), Read(g.now + i), z);
  if (g.before) z = Num::fma(FromReal(g.of_before), Read(g.before + i), z);
  Write(g.next + i, z);
}

} // namespace

cudaError_t SpMVCudaChebyshevStep(const SpMVKrylovSolve *solve, const SpMVCudaChebyshev *s, cudaStream_t stream)
{
  const int rows = solve->pc == SPMV_KRYLOV_PC_BLOCKS ? BLOCK / solve->bs * solve->bs : BLOCK;
  if (!solve->n) return cudaSuccess;
  return WithPC<SPMV_KRYLOV_PC_NONE>(solve->pc, [=](auto pc) {
    return Launch<step<pc.value>>(Blocks(solve->n, rows), BLOCK, StepArgs{*solve, *s}, stream);
  });
}
