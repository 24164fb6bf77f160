/*
  Assembly on the device from a coordinate array (COO): the pattern of its row and column indices, and the sums of its
  values.
*/
#pragma once

#include "core/cuda/spmvcuda.h"

/*
  The indices, on the device, in any order and possibly repeated; entries with a negative index are ignored. There is
  one array, or two if there are also entries from other ranks. A block has the rows from row[0] to row[1] - 1. Its
  columns are col[0] to col[1] - 1, numbered from zero within the block, or all other columns (`outside`), with their
  own numbers.
*/
typedef struct {
  PetscInt64      M, N;           /* a row index of at least M, or a column index of at least N, is an error */
  PetscInt64      count[2];       /* of each array */
  const PetscInt *i[2], *j[2];    /* NULL if there is none */
  PetscInt64      row[2], col[2]; /* the block */
  PetscBool       outside;
} SpMVCudaIndices;

/* The map from entries to the nonzeros of a block */
typedef struct _n_SpMVCudaCOO *SpMVCudaCOO;

/*
  Sorts the entries of the block and merges repeated ones. Returns cudaErrorInvalidValue if an index is too large,
  cudaErrorNotSupported if rows and columns together need more than 63 bits or if there are more than SPMVCUDA_MAX_SIZE
  entries, or cudaErrorMemoryAllocation; then there is no map. Waits for the stream.
*/
PETSC_INTERN cudaError_t SpMVCudaCOOCreate(const SpMVCudaIndices *, cudaStream_t, SpMVCudaCOO *);
PETSC_INTERN cudaError_t SpMVCudaCOODestroy(SpMVCudaCOO *); /* or NULL */
PETSC_INTERN PetscInt64  SpMVCudaCOONonzeros(SpMVCudaCOO);
/* Row offsets and columns, which ascend in each row, on the device. They are valid until they are released */
PETSC_INTERN void SpMVCudaCOOPattern(SpMVCudaCOO, const PetscInt **i, const PetscInt **j);
PETSC_INTERN void SpMVCudaCOOReleasePattern(SpMVCudaCOO);
/*
  With `insert`, sets a[k] to the sum of the values of nonzero k; otherwise adds the sum to a[k]. The values are always
  added in the order of the array. v: one or two arrays on the device, like the indices
*/
PETSC_INTERN cudaError_t SpMVCudaCOOAdd(SpMVCudaCOO, const PetscScalar *const v[2], PetscBool insert, PetscScalar *a,
                                        cudaStream_t);

/*
  The entries in rows of other ranks, outside of row[0] to row[1] - 1: their number (*count), their places in ascending
  order, and their row and column indices. The three arrays are one allocation. They belong to the caller, who frees
  them all with cudaFree(*place).
*/
PETSC_INTERN cudaError_t SpMVCudaCOORemote(const SpMVCudaIndices *, cudaStream_t, PetscInt64 *count, PetscInt64 **place,
                                           PetscInt **i, PetscInt **j);
/* to[k] = v[place[k]] */
PETSC_INTERN cudaError_t SpMVCudaCOOPack(PetscInt64 count, const PetscInt64 *place, const PetscScalar *v,
                                         PetscScalar *to, cudaStream_t);
