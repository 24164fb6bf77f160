/*
  EVC-HYB on the device.
*/
#pragma once

#include "../../../core/cuda/spmvcuda.h"
#include "evchyb.h"

/* Set-up as spmvcuda.h describes it */
PETSC_INTERN cudaError_t SpMVCudaEVCHYBSetUp(const SpMVCudaCSR *, const EVCHYBParams *, SpMVCudaKernel, PetscBool transpose, cudaStream_t, SpMVCudaStore *);
