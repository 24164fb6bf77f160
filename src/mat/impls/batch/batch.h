/*
  A batch: the block-diagonal matrix of many small square problems. Its layouts and products on bare arrays, on the host and the device.

  After H. Anzt, G. Collins, J. Dongarra, G. Flegar and E. S. Quintana-Orti, "Flexible batched sparse matrix-vector product on GPUs", 2017,
  whose kernels are here by name, and a layout of our own: slices of rows that go on from one problem to the next.
*/
#pragma once

#include "../../../core/spmvcore.h"

typedef enum {
  BATCH_AUTO,
  BATCH_SLICES, /* slices of 32 lanes with indices of 1, 2 or 4 bytes */
  BATCH_SELLP,  /* the whole batch as one block in the formats' core */
  BATCH_COO,    /* the paper's */
  BATCH_CSR_SCALAR,
  BATCH_CSR_VECTOR,
  BATCH_CSR_SMART,
  BATCH_CSR_I,
  BATCH_ELL
} BatchKernel;

typedef enum { BATCH_SHARE_NONE, BATCH_SHARE_PATTERN, BATCH_SHARE_VALUES } BatchSharing;

/* Borrowed from its owner. Columns count from their problem's first row; i and j are of one problem where the pattern is shared */
typedef struct {
  PetscInt        problems;
  const PetscInt *first; /* problems + 1: first row of each */
  BatchSharing    sharing;
  const PetscInt *i, *j;
} BatchPattern;

static inline PetscInt BatchRows(const BatchPattern *B)
{
  return B->first[B->problems];
}
/* Problems, rows, pattern entries and values that are stored */
static inline PetscInt BatchPatterns(const BatchPattern *B)
{
  return B->sharing ? 1 : B->problems;
}
static inline PetscInt BatchPatternRows(const BatchPattern *B)
{
  return B->first[BatchPatterns(B)];
}
static inline PetscInt BatchPatternEntries(const BatchPattern *B)
{
  return B->i[BatchPatternRows(B)];
}
static inline PetscInt64 BatchValues(const BatchPattern *B)
{
  return (PetscInt64)BatchPatternEntries(B) * (B->sharing == BATCH_SHARE_PATTERN ? B->problems : 1);
}
static inline PetscInt64 BatchNonzeros(const BatchPattern *B)
{
  return (PetscInt64)BatchPatternEntries(B) * (B->sharing ? B->problems : 1);
}
/* Of a problem: its row offsets, and its values' place less the first of those offsets */
static inline const PetscInt *BatchOffsets(const BatchPattern *B, PetscInt p)
{
  return B->sharing ? B->i : B->i + B->first[p];
}
static inline PetscInt64 BatchValuesAt(const BatchPattern *B, PetscInt p)
{
  return B->sharing == BATCH_SHARE_PATTERN ? (PetscInt64)p * BatchPatternEntries(B) : 0;
}

/* The pattern of the transpose, and where each of its entries stands; three arrays to free */
PETSC_INTERN PetscErrorCode BatchTranspose(const BatchPattern *, PetscInt **i, PetscInt **j, PetscInt **from);

/* What is stored, for views and queries */
typedef struct {
  PetscInt64  stored, bytes, slices;
  int         index; /* bytes of a column's index; 0: several, or none */
  const char *kernel;
} BatchStats;

/*
  Slices. A group of problems is laid out once: all of the batch, or as many problems of a shared pattern as a thread block takes. Consecutive rows,
  a window, are sorted by length; a slice is 64 or 128 short rows of it, 2 or 4 a lane, or 32 / T rows with T = 1, 2, ..., 32 lanes each.
  Step k of a slice is 32 values and 32 indices side by side. Rows and columns count from the slice's base, the first row of the window's first problem; the
  largest number marks lanes without an entry.

  A thread block takes one or more windows: it reads the x of their problems into shared memory, multiplies their slices, and writes their rows of y in
  the order of the matrix. Without that, rows of three to ten entries are bound by the L2 cache, which gives 32 bytes for each 8 of x, and y comes in any order.
*/
typedef struct {
  unsigned step;  /* its first */
  int      place; /* of its first row in `order` */
  int      base;
  unsigned shape; /* bits 0-2 log2 T, 3-4 log2 rows a lane, 5-13 rows, 14-31 steps of a row */
} BatchSlice;

typedef struct {
  unsigned slice;      /* its first */
  int      row;        /* its first */
  int      x, columns; /* the x that it reads; no columns: more than shared memory is for */
} BatchBlock;

#define BATCH_WARP          32
#define BATCH_MAX_STEPS     ((1 << 18) - 1)
#define BATCH_BLOCK_ROWS    1024                                                    /* whose y a block holds */
#define BATCH_BLOCK_COLUMNS ((int)(40960 / sizeof(PetscScalar)) - BATCH_BLOCK_ROWS) /* whose x; with both, five blocks fit into an H200's multiprocessor */
#define BatchLogT(s)        ((int)((s)&7u))
#define BatchLogU(s)        ((int)((s) >> 3 & 3u))
#define BatchSliceRows(s)   ((int)((s) >> 5 & 511u))
#define BatchSliceSteps(s)  ((int)((s) >> 14))

typedef struct {
  int             width; /* bytes of an index */
  PetscInt        problems, groups;
  int             rows;    /* of a group */
  PetscInt64      entries; /* of a group */
  const PetscInt *i;       /* row offsets of a group; owned where problems of a shared pattern are grouped */
  PetscInt       *owned;
  PetscInt        slices, blocks;
  PetscInt64      steps;
  BatchSlice     *slice;
  BatchBlock     *block; /* blocks + 1 */
  void           *order, *index;
} BatchSlices;

PETSC_INTERN PetscErrorCode BatchSlicesCreate(const BatchPattern *, int processors, BatchSlices *,
                                              PetscBool *fits); /* processors to keep busy: a small batch is cut finer for many */
PETSC_INTERN PetscErrorCode BatchSlicesDestroy(BatchSlices *);
PETSC_INTERN PetscErrorCode BatchRowsFirst(const BatchPattern *, const BatchSlices *, int **first); /* of each row of a group: its problem's first row */
PETSC_INTERN PetscInt64     BatchSlicesBytes(const BatchPattern *, const BatchSlices *);

/* The host's products. `a` holds the values in the order of the pattern; what a layout needs of them Fill() moves in */
typedef struct _n_BatchHost *BatchHost;
PETSC_INTERN PetscErrorCode  BatchHostCreate(const BatchPattern *, BatchKernel, BatchHost *);
PETSC_INTERN PetscErrorCode  BatchHostFill(BatchHost, const BatchPattern *, const PetscScalar *a, PetscInt first, PetscInt last); /* those of some problems */
PETSC_INTERN void            BatchHostMult(BatchHost, const BatchPattern *, const PetscScalar *a, const PetscScalar *x, const PetscScalar *z, PetscScalar *y);
PETSC_INTERN void            BatchHostStats(BatchHost, const BatchPattern *, BatchStats *);
PETSC_INTERN PetscErrorCode  BatchHostDestroy(BatchHost *);
PETSC_INTERN void            BatchMultTranspose(const BatchPattern *, PetscBool conjugate, const PetscScalar *a, const PetscScalar *x, const PetscScalar *z,
                                                PetscScalar *y); /* z NULL or y or another, here and above */

#if defined(PETSCSPMV_HAVE_CUDA) || defined(__CUDACC__) /* `make kernels` compiles them for any PETSc */
  #include <cuda_runtime_api.h>
/*
  The device's. Create() and Fill() take arrays of the host and may wait for the device; a product is one kernel, allocates nothing and waits for
  nothing. The transpose is an object of its own. cudaErrorNotSupported, and no object, where numbers do not fit.
*/
typedef struct _n_BatchCuda *BatchCuda;
PETSC_INTERN cudaError_t     BatchCudaCreate(const BatchPattern *, PetscBool transpose, BatchKernel, cudaStream_t, BatchCuda *);
PETSC_INTERN cudaError_t     BatchCudaFill(BatchCuda, const BatchPattern *, const PetscScalar *a, PetscInt first, PetscInt last, cudaStream_t); /* A's values */
PETSC_INTERN cudaError_t     BatchCudaMult(BatchCuda, PetscBool conjugate, const PetscScalar *x, const PetscScalar *z, PetscScalar *y, cudaStream_t);
PETSC_INTERN void            BatchCudaStats(BatchCuda, BatchStats *);
PETSC_INTERN cudaError_t     BatchCudaDestroy(BatchCuda *);
#endif
