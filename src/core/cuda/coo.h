/*
  Assembly on the device from a coordinate array (COO): the pattern that its row and column indices give, and the sums of its values.
*/
#pragma once

#include "spmvcuda.h"

/*
  The indices, on the device, in any order, some of them repeated; entries with a negative index are ignored. They are one array or, where entries come from
  other ranks too, two. A block consists of the rows from row[0] to row[1] - 1 and of the columns from col[0] to col[1] - 1, which it numbers from zero, or of
  all other columns (`outside`), with the numbers that they have.
*/
typedef struct {
  PetscInt64      M, N;           /* a row index of M or more is an error, so is a column index of N or more */
  PetscInt64      count[2];       /* of each array */
  const PetscInt *i[2], *j[2];    /* NULL if there is none */
  PetscInt64      row[2], col[2]; /* the block */
  PetscBool       outside;
} SpMVCudaIndices;

/* Entries that places are stored for in 32 bits. Tests set it to 0 */
PETSC_INTERN PetscInt64 SpMVCudaCOOMost;

/* The map from entries to the nonzeros of a block */
typedef struct _n_SpMVCudaCOO *SpMVCudaCOO;

/*
  Sorts the entries of the block and merges repeated ones. cudaErrorInvalidValue for an index that is too large, cudaErrorNotSupported where rows and columns
  together need more than 63 bits or the block has more nonzeros than PetscInt counts, cudaErrorMemoryAllocation; then there is no map. Waits for the stream.
*/
PETSC_INTERN cudaError_t SpMVCudaCOOCreate(const SpMVCudaIndices *, cudaStream_t, SpMVCudaCOO *);
PETSC_INTERN cudaError_t SpMVCudaCOODestroy(SpMVCudaCOO *); /* or NULL */
PETSC_INTERN PetscInt64  SpMVCudaCOONonzeros(SpMVCudaCOO);
PETSC_INTERN PetscInt64  SpMVCudaCOOBytes(SpMVCudaCOO);
/* Row offsets and columns, ascending in each row, on the device, until they are released */
PETSC_INTERN void SpMVCudaCOOPattern(SpMVCudaCOO, const PetscInt **i, const PetscInt **j);
PETSC_INTERN void SpMVCudaCOOReleasePattern(SpMVCudaCOO);
/*
  a[k] = the sum of nonzero k's values, or a[k] + it without `insert`. The values of an entry are added in the order of the array, the same each time. v: as the
  indices, on the device
*/
PETSC_INTERN cudaError_t SpMVCudaCOOAdd(SpMVCudaCOO, const PetscScalar *const v[2], PetscBool insert, PetscScalar *a, cudaStream_t);

/*
  The entries of other ranks, which own the rows outside row[0] to row[1] - 1: how many there are (*count), and where, in ascending order, with their indices.
  The arrays, one allocation, are the caller's, who frees *place by cudaFree(): `count` places, then row and column indices.
*/
PETSC_INTERN cudaError_t SpMVCudaCOORemote(const SpMVCudaIndices *, cudaStream_t, PetscInt64 *count, PetscInt64 **place, PetscInt **i, PetscInt **j);
/* to[k] = v[place[k]] */
PETSC_INTERN cudaError_t SpMVCudaCOOPack(PetscInt64 count, const PetscInt64 *place, const PetscScalar *v, PetscScalar *to, cudaStream_t);
