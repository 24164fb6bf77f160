/*
  SELL-P on the device.
*/
#pragma once

#include "core/cuda/spmvcuda.h"
#include "sellp.h"

/* spmvcuda.h describes the set-up functions */
PETSC_INTERN cudaError_t SpMVCudaSELLPSetUp(const SpMVCudaCSR *, const void *params, SpMVCudaKernel,
                                            PetscBool transpose, cudaStream_t, SpMVCudaStore *);
