/*
  Classical Gram-Schmidt on the device: x is made orthogonal to the vectors v[0] ... v[count-1], in one pass over these
  for the inner products and one for the update, which also computes the norm of the new x.

    SpMVCudaOrthogProject(o, ...);          h[j] = (v[j], x), on the device
    SpMVCudaOrthogSubtract(o, ...);         x -= sum of h[j] v[j], and the norm of x
    SpMVCudaOrthogGet(o, &h, &square);      waits for both

  If the inner products must be added over several ranks, the caller gets them after Project, writes the sums to h, and
  calls Subtract with `summed`; the square of the norm is this rank's part.
*/
#pragma once

#include "core/cuda/spmvcuda.h"

typedef struct _n_SpMVCudaOrthog *SpMVCudaOrthog;

PETSC_INTERN cudaError_t SpMVCudaOrthogCreate(SpMVCudaOrthog *);
PETSC_INTERN cudaError_t SpMVCudaOrthogDestroy(SpMVCudaOrthog *);
/* Memory for so many vectors; otherwise Project gets it */
PETSC_INTERN cudaError_t SpMVCudaOrthogReserve(SpMVCudaOrthog, int count, cudaStream_t);
/* n: number of entries of a vector */
PETSC_INTERN cudaError_t SpMVCudaOrthogProject(SpMVCudaOrthog, int n, int count, const PetscScalar *const v[],
                                               const PetscScalar *x, cudaStream_t);
PETSC_INTERN cudaError_t SpMVCudaOrthogSubtract(SpMVCudaOrthog, int n, int count, const PetscScalar *const v[],
                                                PetscScalar *x, PetscBool summed, cudaStream_t);
/* The results of the last call of either function, valid until the next call. square: the sum of the squares of x,
   after Subtract */
PETSC_INTERN cudaError_t SpMVCudaOrthogGet(SpMVCudaOrthog, PetscScalar **h, PetscReal *square, cudaStream_t);
