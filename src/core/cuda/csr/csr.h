/*
  Operations on the values of a matrix in CSR form on the device, as the program sees it, not as a store. They return
  cudaErrorNotSupported if the matrix has more than SPMVCUDA_MAX_SIZE rows, or if the library has no code for the
  device. Those that give the host a number wait for the stream.
*/
#pragma once

#include "core/cuda/spmvcuda.h"

/* Whether the columns of each row ascend strictly. The functions that search for an entry require it: they overlook
   entries otherwise */
PETSC_INTERN cudaError_t SpMVCudaCSRAscends(const SpMVCudaCSR *, cudaStream_t, PetscBool *);
/* The number of rows r < n without an entry in column r */
PETSC_INTERN cudaError_t SpMVCudaCSRMissing(const SpMVCudaCSR *, cudaStream_t, PetscInt64 *missing);
/* The number of rows r < n whose entry in column r is missing, zero, Inf or NaN */
PETSC_INTERN cudaError_t SpMVCudaCSRZeroDiagonals(const SpMVCudaCSR *, cudaStream_t, PetscInt64 *zeros);
/* a: A's values. Adds *value to all diagonal entries */
PETSC_INTERN cudaError_t SpMVCudaCSRShift(const SpMVCudaCSR *, const PetscScalar *value, PetscScalar *a, cudaStream_t);
