/*
  EVC-HYB's kernel with an operand held constant, or with x loaded in other ways.
*/
#include "held.h"
#include "mat/impls/evchyb/paper.cuh"

using namespace spmv;

/*
  The library's own kernels with a different arithmetic: an operand that is held constant is 1. The compiler removes the
  loads of data that are not used.
*/
template <bool A, bool X> struct Holding {
  static __device__ __forceinline__ Scalar fma(Scalar a, Scalar x, Scalar d)
  {
    return A ? Num::add(x, d) : Num::fma(a, x, d);
  }
  static __device__ __forceinline__ Scalar load(int col, const Scalar *__restrict__ x)
  {
    Scalar one             = Num::zero();
    ((PetscReal *)&one)[0] = 1;
    return X ? one : EVCHYBMultiply::load(col, x);
  }
};

// The matrix product, with x not loaded by read-only loads: through L1 or from L2
template <bool L1> struct Loading {
  static __device__ __forceinline__ Scalar fma(Scalar a, Scalar x, Scalar d)
  {
    return Num::fma(a, x, d);
  }
  static __device__ __forceinline__ Scalar load(int col, const Scalar *__restrict__ x)
  {
    Scalar           v = Num::zero();
    const PetscReal *p = (const PetscReal *)(x + col);
    if (col < 0) return v;
    for (size_t k = 0; k < sizeof(v) / sizeof(*p); k++) ((PetscReal *)&v)[k] = L1 ? __ldca(p + k) : __ldcg(p + k);
    return v;
  }
};

cudaError_t EVCHYBLeaveSorted(SpMVCudaStore store)
{
  EVCHYBPaperLayout *layout = dynamic_cast<EVCHYBPaperLayout *>(store);
  if (!layout) return cudaErrorNotSupported;
  layout->permute = false;
  return cudaSuccess;
}

cudaError_t EVCHYBHeldSetUp(Held held, const SpMVCudaCSR *csr, const EVCHYBParams *p, cudaStream_t stream,
                            SpMVCudaStore *store)
{
  auto create = held == HELD_X      ? EVCHYBPaperCreateWith<Holding<false, true>>
                : held == HELD_A    ? EVCHYBPaperCreateWith<Holding<true, false>>
                : held == HELD_BOTH ? EVCHYBPaperCreateWith<Holding<true, true>>
                : held == LOADED_L1 ? EVCHYBPaperCreateWith<Loading<true>>
                                    : EVCHYBPaperCreateWith<Loading<false>>;
  return SetUp(csr, false, stream, store,
               [&](const SpMVCudaCSR &A, _n_SpMVCudaStore **s) { return create(A, *p, false, stream, s); });
}
