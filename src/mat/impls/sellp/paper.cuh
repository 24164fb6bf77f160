/*
  SELL-P's kernel as the paper prints it, and what its rules share with those of the other kernels.
*/
#pragma once

#include "../../../core/cuda/paper.cuh"
#include "sellp.h"

namespace spmv {

// Of the parameters, b and t count; 0 = 8
cudaError_t SELLPPaperCreate(const SpMVCudaCSR &, const SELLPParams &, cudaStream_t, _n_SpMVCudaStore **);

// The largest power of two that is neither above a nor above most
inline int PowerOfTwo(PetscInt a, int most)
{
  int p = 1;
  while (2 * p <= a && 2 * p <= most) p *= 2;
  return p;
}

} // namespace spmv
