/*
  Products of sparse matrices in CSR form on the device: C = op(A) op(B) and C = op(A) op(B) op(C), where op() is the
  matrix or its transpose.

  The symbolic phase finds the pattern of the product, in which the columns of each row ascend, and makes a plan. The
  numeric phase computes the values for any values of the factors with the same patterns. It allocates nothing, never
  waits for the stream, and gives the same bits every time: the terms of each entry are added in an order that depends
  only on the patterns.

  All calls with a plan must use the same stream, or the caller must order them.
*/
#pragma once

#include "core/cuda/spmvcuda.h"

typedef struct _n_SpMVCudaSpGEMM *SpMVCudaSpGEMM;

/*
  count: 2 or 3 factors. The product of the last two is computed first. With transpose[k], factor k is transposed. Rows
  of at most SPMVCUDA_SPGEMM_TILE entries have one position of the result stored for each of their terms, if these
  positions take at most `most` bytes in all: the second numeric phase, and later ones, read them and do not search.

  Indices must be of PetscInt. Returns cudaErrorNotSupported if a matrix is too large, if the columns of a factor do not
  ascend strictly, or if the library has no code for the device; cudaErrorMemoryAllocation if there is no room. Then
  there is no plan. Waits for the stream.
*/
PETSC_INTERN cudaError_t SpMVCudaSpGEMMSymbolic(int count, const SpMVCudaCSR factor[], const PetscBool transpose[],
                                                PetscInt64 most, cudaStream_t, SpMVCudaSpGEMM *);
PETSC_INTERN cudaError_t SpMVCudaSpGEMMDestroy(SpMVCudaSpGEMM *); /* or NULL */

#define SPMVCUDA_SPGEMM_TILE 768

typedef struct {
  PetscInt64 m, n, nonzeros; /* of the result */
  PetscInt64 terms;          /* products of two numbers that are added in a numeric phase */
  PetscInt64 bytes;          /* of the plan, with the pattern as long as it is not released */
} SpMVCudaSpGEMMStats;
PETSC_INTERN void SpMVCudaSpGEMMGetStats(SpMVCudaSpGEMM, SpMVCudaSpGEMMStats *);

/* Row offsets and columns on the device. They are valid until they are released */
PETSC_INTERN void SpMVCudaSpGEMMPattern(SpMVCudaSpGEMM, const PetscInt **i, const PetscInt **j);
PETSC_INTERN void SpMVCudaSpGEMMReleasePattern(SpMVCudaSpGEMM);

/* factor[]: as in the symbolic phase, with values. i, j: the pattern of the result, which may be a copy of the plan's;
   c: its values, which are overwritten. The first call must not be captured in a graph: it stores positions that later
   calls read */
PETSC_INTERN cudaError_t SpMVCudaSpGEMMNumeric(SpMVCudaSpGEMM, const SpMVCudaCSR factor[], const PetscInt *i,
                                               const PetscInt *j, PetscScalar *c, cudaStream_t);
