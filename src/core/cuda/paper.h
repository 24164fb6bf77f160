/*
  What the papers' kernels offer besides products, for tests and benchmarks. cudaErrorNotSupported from all other kernels.
*/
#pragma once

#include "spmvcuda.h"

/* y = alpha A x + beta y. y is not read where beta is 0 */
PETSC_INTERN cudaError_t SpMVCudaMultScaled(SpMVCudaStore, PetscScalar alpha, const PetscScalar *x, PetscScalar beta, PetscScalar *y, cudaStream_t);
/* false: kernels with sorted rows leave y in the sorted order ("without reordering") */
PETSC_INTERN cudaError_t SpMVCudaSetReorder(SpMVCudaStore, PetscBool);
