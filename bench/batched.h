/*
  The kernels of H. Anzt, G. Collins, J. Dongarra, G. Flegar and E. S. Quintana-Orti, "Flexible batched sparse
  matrix-vector product on GPUs", 2017, with which bench/batch compares the type batch. Kernels: coo, csr-scalar,
  csr-vector, csr-smart, csr-i, ell, and coo-atomic.
*/
#pragma once

#include <petscsys.h>
#include <cuda_runtime_api.h>

typedef struct _n_Batched *Batched;

/* From host arrays: row offsets that continue from problem to problem, columns from 0 in each problem */
PETSC_INTERN cudaError_t BatchedCreate(int problems, const PetscInt sizes[], const PetscInt i[], const PetscInt j[],
                                       const PetscScalar a[], const char kernel[], Batched *);
PETSC_INTERN cudaError_t BatchedMult(Batched, const PetscScalar *x, PetscScalar *y, cudaStream_t); /* on the device */
PETSC_INTERN size_t      BatchedBytes(Batched);                                                    /* of the arrays */
PETSC_INTERN cudaError_t BatchedDestroy(Batched *);
