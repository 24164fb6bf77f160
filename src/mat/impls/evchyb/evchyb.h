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

PETSC_INTERN void EVCHYBParamsDefault(EVCHYBParams *);

/* The paper's partition. It depends only on the lengths of the rows; the order of rows of equal length depends on their
   first columns */
#define EVCHYB_MAX_RANGES 32
typedef struct {
  PetscInt first, rows, length; /* in sorted order; all rows of the block are padded to `length` */
} EVCHYBRowBlock;

typedef struct {
  PetscInt        m;
  PetscInt       *perm; /* perm[k]: row at position k of the sorted order */
  PetscInt        nblocks;
  EVCHYBRowBlock *blocks;
  PetscInt        isplit;                   /* sorted rows before isplit are in the ELL part */
  PetscInt64      ell_entries, csr_entries; /* stored, padding included */
  PetscInt        ranges;
  PetscInt        range_rows[EVCHYB_MAX_RANGES]; /* rows of the vector CSR part that have 2^k threads each */
} EVCHYBPartition;

PETSC_INTERN PetscErrorCode EVCHYBPartitionCreate(PetscInt m, PetscInt n, const PetscInt length[],
                                                  const PetscInt first_column[] /* can be NULL */, const EVCHYBParams *,
                                                  EVCHYBPartition *);
PETSC_INTERN PetscErrorCode EVCHYBPartitionDestroy(EVCHYBPartition *);
PETSC_INTERN PetscErrorCode EVCHYBSetUp(const SpMVCSR *, const EVCHYBParams *, SpMVStore *);
