/*
  Functions of the papers' kernels besides products, for tests and benchmarks. With any other kernel they return
  cudaErrorNotSupported.
*/
#pragma once

#include "core/cuda/spmvcuda.h"

/* y = alpha A x + beta y. y is not read if beta is 0 */
PETSC_INTERN cudaError_t SpMVCudaMultScaled(SpMVCudaStore, PetscScalar alpha, const PetscScalar *x, PetscScalar beta,
                                            PetscScalar *y, cudaStream_t);
/* false: for kernels with sorted rows, y stays in the sorted order ("without reordering") */
PETSC_INTERN cudaError_t SpMVCudaSetReorder(SpMVCudaStore, PetscBool);
