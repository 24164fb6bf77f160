/*
  GMRES on the device: the Arnoldi process by classical Gram-Schmidt, the Hessenberg matrix with its plane rotations,
  and the test for convergence. The vectors of the basis are not normalized: vector j of the method is scale[j] v[j].

  The caller sets v[0] to the first residual, whose norm it knows, and then calls

    Begin;   then in each iteration k = 0, 1, ...:   v[k+1] = A v[k], Step(k);   and at last   Finish, Solve(k), Correct

  for a correction with the first k vectors. With POINTS on the left, the kernels apply the preconditioner to v[k+1];
  with BLOCKS on the left, to `product`, to which the caller multiplies instead. With either on the right, Step also
  writes `next`, the vector that A multiplies in the next iteration, and Correct applies the preconditioner.
*/
#pragma once

#include "krylov.h"

typedef struct _n_SpMVCudaGMRES *SpMVCudaGMRES;

typedef struct {
  SpMVKrylovScalar *next;    /* POINTS or BLOCKS on the right: B v[k+1] */
  SpMVKrylovScalar *product; /* BLOCKS on the left: A v[k] */
  PetscBool         left;
  PetscBool         again;      /* each vector is made orthogonal twice */
  PetscBool         flexible;   /* breakdowns as in FGMRES */
  PetscBool         normalized; /* for preconditioners that are no linear functions; the caller normalizes v[0] */
  PetscReal         beta;       /* the norm of the first residual of this cycle */
  PetscReal         haptol;
  int               before; /* iterations before this cycle */
} SpMVCudaGMRESCycle;

/* most: the length of a cycle, at most SPMV_GMRES_MOST */
PETSC_INTERN cudaError_t SpMVCudaGMRESCreate(SpMVCudaKrylov, int most, SpMVCudaGMRES *);
PETSC_INTERN cudaError_t SpMVCudaGMRESDestroy(SpMVCudaGMRES *);
PETSC_INTERN cudaError_t SpMVCudaGMRESBegin(SpMVCudaGMRES, const SpMVKrylovSolve *, const SpMVCudaGMRESCycle *,
                                            cudaStream_t);
/* v: k + 2 vectors */
PETSC_INTERN cudaError_t SpMVCudaGMRESStep(SpMVCudaGMRES, int k, PetscScalar *const v[], cudaStream_t);
/* Ends iteration k, with v[k+1] normalized if the cycle is: after the last one of a cycle, and whenever the host waits
   for its result. Otherwise the next iteration ends it */
PETSC_INTERN cudaError_t SpMVCudaGMRESFinish(SpMVCudaGMRES, int k, PetscScalar *const v[], cudaStream_t);
/* The coefficients of the first k vectors. If the triangular matrix is singular, they are 0. Waits for the stream,
   unless `singular` is NULL */
PETSC_INTERN cudaError_t SpMVCudaGMRESSolve(SpMVCudaGMRES, int k, cudaStream_t, PetscBool *singular);
/* x += the sum of the coefficients times v[j] (times B with POINTS or BLOCKS on the right), or x = the sum if `set` */
PETSC_INTERN cudaError_t SpMVCudaGMRESCorrect(SpMVCudaGMRES, int k, PetscScalar *const v[], PetscBool set,
                                              PetscScalar *x, cudaStream_t);
