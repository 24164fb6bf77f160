/*
  SELL-P on the device.
*/
#pragma once

#include "../../../core/cuda/spmvcuda.h"
#include "sellp.h"

/* Set-up as spmvcuda.h describes it */
PETSC_INTERN cudaError_t SpMVCudaSELLPSetUp(const SpMVCudaCSR *, const SELLPParams *, SpMVCudaKernel, PetscBool transpose, cudaStream_t, SpMVCudaStore *);
