/*
  SELL-P's kernel as printed in the paper, and the function that its rules share with those of the other kernels.
*/
#pragma once

#include "core/cuda/stores.cuh"
#include "sellp.h"

namespace spmv {

// Only the parameters b and t are used; 0 means 8
cudaError_t SELLPPaperCreate(const SpMVCudaCSR &, const SELLPParams &, cudaStream_t, _n_SpMVCudaStore **);

// The largest power of two that is at most a and at most `most`
inline int PowerOfTwo(PetscInt a, int most)
{
  int p = 1;
  while (2 * p <= a && 2 * p <= most) p *= 2;
  return p;
}

} // namespace spmv
