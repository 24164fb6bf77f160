/*
  Solvers for batches of small systems, the diagonal blocks of a CSR matrix. Each system is solved by itself, to its own
  tolerance: batchsolve.c on the host, cuda/krylov/batch.cu on the device, both with the methods of batchmethods.h.
*/
#pragma once

#include "core/spmvcore.h"

typedef enum { SPMV_BATCH_CG, SPMV_BATCH_BCGS, SPMV_BATCH_GMRES, SPMV_BATCH_LU, SPMV_BATCH_METHODS } SpMVBatchMethod;

/* The preconditioner B */
typedef enum {
  SPMV_BATCH_NONE,
  SPMV_BATCH_JACOBI, /* the inverse of the diagonal of the matrix, with 1 instead of the inverse of 0 */
  SPMV_BATCH_GIVEN   /* a diagonal of the caller's */
} SpMVBatchPC;

/* The values of KSPConvergedReason that a system can end with */
typedef enum {
  SPMV_BATCH_ITERATING     = 0,
  SPMV_BATCH_RTOL          = 2,
  SPMV_BATCH_ATOL          = 3,
  SPMV_BATCH_ITS           = -3, /* the maximum number of iterations */
  SPMV_BATCH_DTOL          = -4,
  SPMV_BATCH_BREAKDOWN     = -5, /* or the tolerance cannot be reached because of rounding errors */
  SPMV_BATCH_INDEFINITE_PC = -8,
  SPMV_BATCH_NANORINF      = -9,
  SPMV_BATCH_INDEFINITE    = -10, /* the matrix */
  SPMV_BATCH_SINGULAR      = -11  /* the factorization has a pivot of 0 */
} SpMVBatchReason;

typedef struct {
  SpMVBatchMethod method;
  SpMVBatchPC     pc;
  PetscBool       left;  /* the norm of B (b - A x) is tested, and B is applied on the left; otherwise b - A x */
  PetscBool       guess; /* x is an initial guess; otherwise it is 0 */
  PetscReal       rtol, abstol, divtol;
  int             max_it, restart; /* restart: of GMRES */
} SpMVBatchOptions;

#define SPMV_BATCH_RESTART 30 /* the largest `restart` */
/* If rounding errors may be so many times as large as the tolerance, a residual passes the test by chance */
#define SPMV_BATCH_TRUST ((PetscReal)100)

/* Whether products need a vector for B x */
#define SPMV_BATCH_NEEDS(o) \
  ((o)->pc && !(o)->left && ((o)->method == SPMV_BATCH_BCGS || (o)->method == SPMV_BATCH_GMRES))

/* Scalars that solving a system of n rows needs: x, r, the preconditioner, and the method's vectors */
static inline size_t SpMVBatchWords(const SpMVBatchOptions *o, size_t n)
{
  const size_t m = (size_t)o->restart, vectors = o->pc && o->method != SPMV_BATCH_LU ? 3 : 2;
  const size_t one = SPMV_BATCH_NEEDS(o);

  switch (o->method) {
  case SPMV_BATCH_CG: return (vectors + 2) * n;
  case SPMV_BATCH_BCGS: return (vectors + 4 + one) * n;
  case SPMV_BATCH_GMRES: return (vectors + m + 1 + one) * n + (m + 1) * (m + 3);
  default: return (vectors + 1 + n) * n + (n * sizeof(int) + sizeof(PetscScalar) - 1) / sizeof(PetscScalar);
  }
}

typedef struct {
  int             its;
  SpMVBatchReason reason;
  PetscReal       norm; /* of the residual that was computed last from x, with a new product */
} SpMVBatchResult;

/* System p has the rows first[p] to first[p + 1] - 1 of A, and the same columns. d: for SPMV_BATCH_GIVEN. Fails only
   for lack of memory */
PETSC_INTERN PetscErrorCode SpMVBatchSolve(const SpMVCSR *A, PetscInt count, const PetscInt first[],
                                           const SpMVBatchOptions *, const PetscScalar d[], const PetscScalar b[],
                                           PetscScalar x[], SpMVBatchResult[]);
