/*
  A step of Chebyshev's method on the device: one kernel for everything after the product.
*/
#include "krylov.cuh"
#include "core/cuda/base/prepare.cuh"

using namespace spmv;

namespace {

constexpr int BLOCK = KRYLOV_BLOCK;

struct StepArgs {
  int           n, bs;
  bool          early;
  const Scalar *b, *w, *d, *before, *now; // NULL: zero
  Scalar       *next;
  Scalar        of_before, of_now, of_residual;
};

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
  if (g.early) LetNextBegin();
  if (own) {
    z = Read(g.b + i);
    if (g.w) z = Num::add(z, Negated(g.w[i]));
    if (PC == SPMV_KRYLOV_PC_POINTS) z = Multiplied(g.d[i], z);
  }
  if (PC == SPMV_KRYLOV_PC_BLOCKS) z = MultiplyBlock<BLOCK>(g.d, g.n, g.bs, i, own, z);
  if (!own) return;
  z = Multiplied(g.of_residual, z);
  if (g.now) z = Num::fma(g.of_now, Read(g.now + i), z);
  if (g.before) z = Num::fma(g.of_before, Read(g.before + i), z);
  Write(g.next + i, z);
}

Scalar Value(PetscReal a)
{
  Scalar v         = Num::zero();
  *(PetscReal *)&v = a;
  return v;
}

} // namespace

cudaError_t spmv::LoadChebyshev()
{
  return Load((const void *)::step<SPMV_KRYLOV_PC_POINTS>);
}

void Chebyshev::Choose()
{
  step[SPMV_KRYLOV_PC_NONE].Choose((const void *)::step<SPMV_KRYLOV_PC_NONE>);
  step[SPMV_KRYLOV_PC_POINTS].Choose((const void *)::step<SPMV_KRYLOV_PC_POINTS>);
  step[SPMV_KRYLOV_PC_BLOCKS].Choose((const void *)::step<SPMV_KRYLOV_PC_BLOCKS>);
}

cudaError_t SpMVCudaChebyshevStep(SpMVCudaKrylov k, const SpMVCudaChebyshev *s, cudaStream_t stream)
{
  const StepArgs args = {s->n,
                         s->bs,
                         (bool)s->early,
                         (const Scalar *)s->b,
                         (const Scalar *)s->w,
                         (const Scalar *)s->d,
                         (const Scalar *)s->before,
                         (const Scalar *)s->now,
                         (Scalar *)s->next,
                         Value(s->of_before),
                         Value(s->of_now),
                         Value(s->of_residual)};
  const int      rows = s->pc == SPMV_KRYLOV_PC_BLOCKS ? BLOCK / s->bs * s->bs : BLOCK;
  if (!s->n) return cudaSuccess;
  return k->chebyshev.step[s->pc].Launch(Blocks(s->n, rows), BLOCK, args, false, {}, stream);
}
