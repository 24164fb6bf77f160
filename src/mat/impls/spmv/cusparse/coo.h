/*
  Assembly from coordinates on the device: what coo.c and coosend.c share.
*/
#pragma once

#include "mat/impls/spmv/cuda/matspmvcuda.h"
#include "core/cuda/csr/coo.h"
#include <petscsf.h>

/* Entries in other ranks' rows */
typedef struct {
  PetscSF     sf; /* leaves: the entries sent; roots: the entries received. NULL if no rank sends any */
  PetscInt64  nsend, nreceive;
  PetscInt64 *place; /* on the device: the positions in the program's arrays of the entries sent */
  /* on the device, until the maps are made: row and column indices of the entries received */
  PetscInt    *received;
  PetscScalar *send, *receive; /* on the device */
} SpMVCOOExchange;

typedef struct {
  SpMVCudaCOO      map[2]; /* of a sequential matrix, or of the two blocks */
  PetscCount       n;      /* entries of the program's arrays */
  PetscObjectId    id;
  PetscObjectState nonzerostate; /* of the matrix with this id when it has the map's pattern */
  SpMVCOOExchange  exchange;
} SpMVCOO;

/* What prevents the device from sorting; AIJ reports the last one as an error, too */
typedef enum { SPMV_COO_SORTED, SPMV_COO_NO_MEMORY, SPMV_COO_NOT_SUPPORTED, SPMV_COO_WRONG_INDEX } SpMVCOOFailure;

/* coosend.c: entries in other ranks' rows */
PETSC_INTERN PetscErrorCode SpMVCOOCheck(cudaError_t, SpMVCOOFailure *);
/* Collective: either all ranks sort on the device or none does */
PETSC_INTERN PetscErrorCode MatSpMVAgreeCOO(Mat, SpMVCOOFailure *);
/* Collective. Sends the indices of entries in other ranks' rows to the owners; the indices received are appended to
   `indices` */
PETSC_INTERN PetscErrorCode MatSpMVExchangeCOO_MPICUDA(Mat, Mat_SpMV *, SpMVCudaIndices *indices, cudaStream_t,
                                                       SpMVCOOExchange *, SpMVCOOFailure *);
PETSC_INTERN PetscErrorCode SpMVCOOSend(const SpMVCOOExchange *, const PetscScalar *values); /* collective */
