/*
  EVC-HYB on the device.
*/
#pragma once

#include "core/cuda/spmvcuda.h"
#include "evchyb.h"

/* spmvcuda.h describes the set-up functions */
PETSC_INTERN cudaError_t SpMVCudaEVCHYBSetUp(const SpMVCudaCSR *, const void *params, SpMVCudaKernel,
                                             PetscBool transpose, cudaStream_t, SpMVCudaStore *);
