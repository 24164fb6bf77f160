/*
  Solvers for batches of small systems on the device, the diagonal blocks of a CSR matrix. A warp or a thread block
  takes a system, copies it to shared memory if it fits, and iterates to the system's own tolerance. The same batch has
  the same bits each time. In another batch the bits of a system may differ: systems of other sizes may share its launch,
  which then has more threads for each (on the host, up to eight neighbors of one pattern are solved together).
*/
#pragma once

#include "core/batch/batchsolve.h"
#include "core/cuda/spmvcuda.h"

typedef struct _n_SpMVCudaBatch *SpMVCudaBatch;

/* Plans the launches for a pattern: system p has the rows first[p] to first[p + 1] - 1; i: the row offsets. Both are on
   the host. The method, the kind of preconditioner, its side and `restart` must be those of all solves.
   cudaErrorNotSupported: the library has no code for the device, or a system has more than 2^30 entries or,
   with LU, more than 46340 rows */
PETSC_INTERN cudaError_t SpMVCudaBatchCreate(const SpMVBatchOptions *, int count, const PetscInt first[],
                                             const PetscInt i[], cudaStream_t, SpMVCudaBatch *);
/* d: for SPMV_BATCH_GIVEN. Does not wait */
PETSC_INTERN cudaError_t SpMVCudaBatchSolve(SpMVCudaBatch, const SpMVCudaCSR *, const SpMVBatchOptions *,
                                            const PetscScalar *d, const PetscScalar *b, PetscScalar *x, cudaStream_t);
/* The results of the last solve, for which it waits; the next one overwrites them */
PETSC_INTERN cudaError_t SpMVCudaBatchGetResults(SpMVCudaBatch, const SpMVBatchResult **, cudaStream_t);
PETSC_INTERN cudaError_t SpMVCudaBatchDestroy(SpMVCudaBatch *);
