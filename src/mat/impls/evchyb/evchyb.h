/*
  EVC-HYB: rows sorted by length, short ones in ELL blocks of one length, long ones in vector CSR. D. Guo, W. Gropp,
  L. Olson, "A hybrid format for better performance of sparse matrix-vector multiplication on a GPU", 2015.
*/
#pragma once

#include "core/spmvcore.h"

/* The paper's parameters */
#define EVCHYB_ROW_ALIGN      32 /* the number of rows of a row block is a multiple of it */
#define EVCHYB_CSR_ALIGN      32 /* rows of the vector CSR part are padded to a multiple of it */
#define EVCHYB_NNZ_PER_THREAD 8  /* a row of up to so many entries times 2^i has 2^i threads */

typedef struct {
  SpMVCommonParams common;           /* first: the glue reads it */
  PetscInt         ell_limit;        /* longest row of the ELL part, 128 */
  PetscInt         max_threads_log2; /* of the paper's kernel: at most 2^9 threads per row */
} EVCHYBParams;

PETSC_INTERN void EVCHYBParamsDefault(void *params);
/* The rows in order of length, and rows of one length in order of their first columns; the caller frees them */
PETSC_INTERN PetscErrorCode EVCHYBOrder(const SpMVCSR *, PetscInt **order);
PETSC_INTERN PetscErrorCode EVCHYBSetUp(const SpMVCSR *, const void *params, SpMVStore *);
