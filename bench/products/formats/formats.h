/*
  The formats with which the papers compare their own, outside of the library: COO, CSR, ELL, HYB, SELL-C, SELL-C-sigma
  and CSR5, one row each in Baselines[].

  A format is converted in two steps. First, the format's own function computes the structure on the host from the row
  lengths: where slices and tiles begin, the order of the rows, flags. Then the columns and values are copied to the
  places that StoredPlace() returns (device.cu), by a kernel. bench.c compares each product with AIJ's, row by row
  (oracle.h).

  As in the library's core, functions use bare arrays and a stream, and padding has column -1 and reads no x. Indices
  are PetscInt, as in PETSc's own CSR.
*/
#pragma once

#include "core/cuda/spmvcuda.h"

#define STORED_LANES 32 /* rows of a slice, lanes of a tile */

typedef enum {
  STORED_ROWS,   /* CSR */
  STORED_LIST,   /* COO */
  STORED_COLUMN, /* ELL, and HYB, whose remaining entries are in COO */
  STORED_SLICES, /* SELL-C, SELL-C-sigma */
  STORED_TILES   /* CSR5, whose last, incomplete tile is in COO */
} StoredKind;

/* The arrays of a format; those from AT_PLACE on are needed only while columns and values are copied in, not by
   products */
typedef enum {
  AT_PTR,   /* CSR: first entry of each row */
  AT_COL,   /* columns, -1: padding */
  AT_VAL,   /* values */
  AT_ROW,   /* COO: row of each entry, from place Stored.list on */
  AT_SLICE, /* slices: the first place of each slice */
  AT_ORDER, /* slices: the row at each place of the sorted order */
  AT_TILE,  /* tiles: the row of each tile's first entry */
  AT_FLAGS, /* tiles: one word per lane, bit s: entry s of the lane is the first one of a row (or of the tile) */
  /* tiles: one word per lane, the number of flags in the lanes before it, and (<< 16) the number of lanes without flags
     right after it */
  AT_OFFSETS,
  AT_EMPTY, /* tiles with empty rows: the distance in rows of each segment from the tile's first row */
  /* tiles: where each tile's numbers in AT_EMPTY begin; tiles + 1 numbers, equal to the next one if a tile has no empty
     rows */
  AT_DIRTY,
  AT_SUMS,  /* tiles: the sum of each tile's first segment, which earlier tiles may share; written by products */
  AT_PLACE, /* slices: the place of each row */
  AT_REST,  /* HYB: the number of entries of the previous rows in COO */
  STORED_ARRAYS
} StoredArray;

typedef struct {
  StoredKind kind;
  PetscBool  borrowed; /* CSR: the arrays are the caller's */
  PetscInt   m, n;
  PetscInt64 nz, stored; /* entries without and with padding */
  PetscInt64 list;       /* entries from this place on are in COO */
  PetscInt64 ld;         /* ELL: places per column */
  PetscInt   width;      /* ELL */
  PetscInt   sigma, tiles;
  void      *at[STORED_ARRAYS];
  size_t     bytes[STORED_ARRAYS];
} Stored;

typedef struct _n_Baseline Baseline;
struct _n_Baseline {
  const char *name;
  /* only the structure; stored < 0: too much padding */
  PetscErrorCode (*convert)(const Baseline *, const SpMVCSR *, Stored *);
  PetscInt parameter;
  cudaError_t (*cuda)(const Stored *, const PetscScalar *x, PetscScalar *y, cudaStream_t);
};

PETSC_INTERN const Baseline Baselines[];
PETSC_INTERN const int      BaselineCount;

PETSC_INTERN PetscErrorCode StoredCreate(const Baseline *, const SpMVCSR *, Stored *);
PETSC_INTERN PetscErrorCode StoredDestroy(Stored *);
PETSC_INTERN double         StoredBytes(const Stored *); /* bytes that a product reads, without x and y */

/* Creates the device's arrays from the structure on the host and the CSR matrix on the device; the format CSR borrows
   its arrays */
PETSC_INTERN cudaError_t StoredUpload(const Stored *host, const SpMVCudaCSR *, Stored *device, cudaStream_t);
PETSC_INTERN cudaError_t StoredRelease(Stored *device);

PETSC_INTERN cudaError_t MultCOOScalar(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultCOOSegmented(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultCOOBalanced(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultCSRScalar(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultCSRVector(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultELL(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultSlices(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultTiles(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
