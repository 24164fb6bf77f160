/*
  The layouts and the products of a batch (the block-diagonal matrix of many small square problems), on bare arrays, on
  the host and on the device.

  The kernels coo to ell are those of H. Anzt, G. Collins, J. Dongarra, G. Flegar and E. S. Quintana-Orti, "Flexible
  batched sparse matrix-vector product on GPUs", 2017, under the paper's names. Slices are our own layout, in which a
  slice of rows may span several problems.
*/
#pragma once

#include "core/spmvcore.h"

typedef enum {
  BATCH_AUTO,
  BATCH_SLICES, /* slices of 32 lanes with indices of 1, 2 or 4 bytes */
  BATCH_SELLP,  /* the whole batch as one stored matrix of the core */
  BATCH_COO,    /* this kernel and the next five are the paper's */
  BATCH_CSR_SCALAR,
  BATCH_CSR_VECTOR,
  BATCH_CSR_SMART,
  BATCH_CSR_I,
  BATCH_ELL,
  BATCH_COO_ATOMIC /* COO as in the paper, which adds its sums in any order; on the host the same as COO */
} BatchKernel;

typedef enum { BATCH_SHARE_NONE, BATCH_SHARE_PATTERN, BATCH_SHARE_VALUES } BatchSharing;

/* The arrays belong to the matrix. Columns are numbered from 0 in each problem. If the pattern is shared, i and j
   describe one problem */
typedef struct {
  PetscInt        problems;
  const PetscInt *first; /* first row of each problem, followed by the number of rows: problems + 1 entries */
  BatchSharing    sharing;
  const PetscInt *i, *j;
} BatchPattern;

static inline PetscInt BatchRows(const BatchPattern *B)
{
  return B->first[B->problems];
}
/* The numbers of patterns, rows, entries and values that are stored */
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
/* The row offsets of problem p, and the number to add to them to find its values */
static inline const PetscInt *BatchOffsets(const BatchPattern *B, PetscInt p)
{
  return B->sharing ? B->i : B->i + B->first[p];
}
static inline PetscInt64 BatchValueShift(const BatchPattern *B, PetscInt p)
{
  return B->sharing == BATCH_SHARE_PATTERN ? (PetscInt64)p * BatchPatternEntries(B) : 0;
}

/* The pattern of the transpose; the k-th entry of the transpose is entry value_index[k] of the pattern. The caller
   frees the three arrays */
PETSC_INTERN PetscErrorCode BatchTranspose(const BatchPattern *, PetscInt **i, PetscInt **j, PetscInt **value_index);

/* Sizes of the stored layout, for MatView() and MatBatchGetInfo() */
typedef struct {
  PetscInt64  stored, bytes, slices;
  int         index; /* bytes of a column index; 0: there are no indices, or they have several sizes */
  const char *kernel;
} BatchStats;

/*
  Slices. The layout is computed once for a group of problems: the whole batch, or, if the pattern is shared, as many
  problems as fit in a thread block. A window is a range of consecutive rows, sorted by length. A slice of a window has
  either 64 or 128 short rows, 2 or 4 per lane, or 32 / T rows with T = 1, 2,
  ..., 32 lanes each. Step k of a slice has 32 adjacent values and 32 adjacent indices. Rows and columns are numbered
  from the slice's base, which is the first row of the first problem in its window. The largest index marks lanes
  without an entry.

  A thread block processes one or more windows: it reads the x of their problems into shared memory, multiplies their
  slices, and writes their rows of y in matrix order. Without shared memory, rows of three to ten entries are limited by
  the L2 cache, which transfers 32 bytes for each 8 bytes of x, and y is written out of order.
*/
typedef struct {
  unsigned first_step;
  int      first_row; /* position in `order` of the slice's first row */
  int      base;
  unsigned shape; /* bits 0-2: log2 T; 3-4: log2 of the rows per lane; 5-13: rows; 14-31: steps of a row */
} BatchSlice;

typedef struct {
  unsigned first_slice;
  int      first_row;
  /* the entries of x that the block reads; columns is 0 if they do not fit in shared memory */
  int first_column, columns;
} BatchBlock;

#define BATCH_WARP       32
#define BATCH_MAX_STEPS  ((1 << 18) - 1)
#define BATCH_BLOCK_ROWS 1024 /* of y in shared memory */
#define BATCH_BLOCK_COLUMNS             \
  ((int)(40960 / sizeof(PetscScalar)) - \
   BATCH_BLOCK_ROWS) /* of x; with y, five thread blocks fit on a multiprocessor of an H200 */
#define BatchSliceLogLanes(s) ((int)((s)&7u))
#define BatchSliceLogRows(s)  ((int)((s) >> 3 & 3u))
#define BatchSliceRows(s)     ((int)((s) >> 5 & 511u))
#define BatchSliceSteps(s)    ((int)((s) >> 14))

typedef struct {
  int             width;            /* bytes of an index */
  PetscInt        problems, groups; /* number of problems in a group, and number of groups */
  int             rows;             /* number of rows of a group */
  PetscInt64      entries;          /* number of entries of a group */
  const PetscInt *i;                /* row offsets of a group */
  /* the same array, if it must be freed: for groups of problems that share a pattern */
  PetscInt   *owned;
  PetscInt    slices, blocks;
  PetscInt64  steps;
  BatchSlice *slice;
  BatchBlock *block; /* blocks + 1 entries */
  void       *order, *index;
} BatchSlices;

/* processors: number of multiprocessors to keep busy; with more of them a small batch is divided more finely. fits: no
   row is too long */
PETSC_INTERN PetscErrorCode BatchSlicesCreate(const BatchPattern *, int processors, BatchSlices *, PetscBool *fits);
PETSC_INTERN PetscErrorCode BatchSlicesDestroy(BatchSlices *);
PETSC_INTERN PetscErrorCode BatchSlicesGetFirstRows(const BatchPattern *, const BatchSlices *,
                                                    /* for each row of a group, the first row of its problem */
                                                    int **first);
/* fills `index` for the host's product; the device computes its own */
PETSC_INTERN PetscErrorCode BatchSlicesSetIndices(const BatchPattern *, BatchSlices *);
PETSC_INTERN PetscInt64     BatchSlicesBytes(const BatchPattern *, const BatchSlices *);
PETSC_INTERN void BatchSlicesFill(const BatchPattern *, const BatchSlices *, const PetscScalar *a, PetscScalar *value);
PETSC_INTERN void BatchSlicesMult(const BatchPattern *, const BatchSlices *, const PetscScalar *value,
                                  const PetscScalar *x, const PetscScalar *z, PetscScalar *y);

/*
  The host's products. `a` holds the values in the order of the pattern. If a layout keeps a copy of the values, Fill()
  copies those of problems first to last -
  1 into it. Here and below z may be NULL, y, or another array.
*/
typedef struct _n_BatchHost *BatchHost;
PETSC_INTERN PetscErrorCode  BatchHostCreate(const BatchPattern *, BatchKernel, BatchHost *);
PETSC_INTERN PetscErrorCode  BatchHostFill(BatchHost, const BatchPattern *, const PetscScalar *a, PetscInt first,
                                           PetscInt last);
PETSC_INTERN void            BatchHostMult(BatchHost, const BatchPattern *, const PetscScalar *a, const PetscScalar *x,
                                           const PetscScalar *z, PetscScalar *y);
PETSC_INTERN void            BatchHostMultColumns(BatchHost, const BatchPattern *, const PetscScalar *a, PetscInt count,
                                                  const PetscScalar *x, PetscInt ldx, PetscScalar *y,
                                                  PetscInt ldy); /* x and y are dense matrices */
PETSC_INTERN void            BatchHostStats(BatchHost, BatchStats *);
PETSC_INTERN PetscErrorCode  BatchHostDestroy(BatchHost *);
PETSC_INTERN void            BatchMultTranspose(const BatchPattern *, PetscBool conjugate, const PetscScalar *a,
                                                const PetscScalar *x, const PetscScalar *z, PetscScalar *y);

#if defined(PETSCSPMV_HAVE_CUDA) || defined(__CUDACC__) /* `make kernels` compiles them for any PETSc */
  #include <cuda_runtime_api.h>
/*
  The device's products. Create() and Fill() read host arrays and may synchronize. A product is one kernel: it neither
  allocates nor synchronizes. The transpose is a separate object. If the batch is too large for the index types,
  Create() returns cudaErrorNotSupported and no object.
*/
typedef struct _n_BatchCuda *BatchCuda;
PETSC_INTERN cudaError_t     BatchCudaCreate(const BatchPattern *, PetscBool transpose, BatchKernel, cudaStream_t,
                                             BatchCuda *);
PETSC_INTERN cudaError_t     BatchCudaFill(BatchCuda, const BatchPattern *, const PetscScalar *a, PetscInt first,
                                           PetscInt last,
                                           /* `a` are the values of the matrix itself, even for the transpose */
                                           cudaStream_t);
PETSC_INTERN cudaError_t     BatchCudaMult(BatchCuda, PetscBool conjugate, const PetscScalar *x, const PetscScalar *z,
                                           PetscScalar *y, cudaStream_t);
PETSC_INTERN void            BatchCudaStats(BatchCuda, BatchStats *);
PETSC_INTERN cudaError_t     BatchCudaDestroy(BatchCuda *);
#endif
