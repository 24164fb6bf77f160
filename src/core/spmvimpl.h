/*
  The inside of the host's core: units and plans, from which a store is made, and the store, which is all that a kernel
  reads.
*/
#pragma once

#include "core/batch/batchsolve.h"
#include <limits.h>
#include <stdint.h>
#include <string.h>

#if defined(PETSC_USE_COMPLEX)
  #define SPMV_PARTS 2 /* numbers in a scalar */
#else
  #define SPMV_PARTS 1
#endif
#define SPMV_VECTOR (SPMV_LANES * SPMV_PARTS) /* numbers in a stored vector */

#if defined(__GNUC__)
  #define SPMV_FETCH(p) __builtin_prefetch(p)
  #define SPMV_NOINLINE __attribute__((noinline)) /* for loops that need all registers for themselves */
#else
  #define SPMV_FETCH(p)
  #define SPMV_NOINLINE
#endif

/* The tuned numbers, each with its meaning and its source in cost.c. Tests set distinct_bytes and stream_bytes */
typedef struct {
  double     slice, slice_row, gather, multiply, diagonal, diagonal_bs, scatter_unit;
  double     long_unit, long_row, long_next, parent, parent_row, parent_entry;
  PetscInt64 diagonal_mean, diagonal_width, diagonal_width_block;
  double     outlier_gain, long_gain;
  PetscInt   empty_share, sort_window[2], sort_padding, sort_gain;
  PetscInt64 distinct_bytes, distinct_steps, stream_bytes, narrow_bytes;
  PetscInt   fetch_ahead, fetch_entries;
  PetscInt64 columns_mean, columns_scattered, columns_diagonal, columns_few, columns_pieces, columns_bytes;
  PetscInt64 setup_products, setup_rows, setup_least, refresh_products;
  double     transpose_limit, transpose_full, transpose_entry, transpose_block, transpose_unit, transpose_unit_row;
} SpMVTuning;

PETSC_INTERN SpMVTuning SpMVTuned;

/*
  Units: rows with the same columns share one list of indices. A unit is 1 to SPMV_MAX_NODE consecutive rows; if the
  whole matrix consists of dense bs x bs blocks, all units have bs rows and columns are addressed bs at a time.
*/
typedef struct {
  int            count, bs;
  int           *row;   /* first row of each unit */
  unsigned char *rows;  /* number of its rows */
  PetscInt       empty; /* empty rows */
} SpMVUnits;

static inline PetscInt SpMVUnitLength(const SpMVCSR *A, const SpMVUnits *U, int unit)
{
  return A->i[U->row[unit] + 1] - A->i[U->row[unit]];
}

PETSC_INTERN void SpMVFetchRows(const SpMVCSR *, PetscInt sigma, const void *entries, size_t size, const int *list,
                                const int *end, int count);
PETSC_INTERN PetscErrorCode SpMVUnitsFind(const SpMVCSR *, PetscInt node, SpMVUnits *);
PETSC_INTERN PetscErrorCode SpMVUnitsDestroy(SpMVUnits *);

/* The diagonals of `lanes` consecutive units that begin with row `row`, or -1 if they are too many to be worth while,
   or none. Fills, unless NULL, their offsets (column less row, of a block's first entries) and the lanes that have an
   entry on each; there are less than twice as many as the longest row has entries. They come in the order of each row's
   entries; where these do not ascend, one diagonal can occur several times */
PETSC_INTERN int SpMVDiagonals(const SpMVCSR *, int row, int bs, int lanes, int offset[], uint8_t mask[]);

/* A pattern: the diagonals of a slice, and for each the lanes that have an entry on it. Equal patterns are kept once.
   The plan collects them, and the store takes them over from the plan */
typedef struct {
  int width, offset; /* in steps; first of its offsets and masks */
  int full;          /* no lane is masked */
} SpMVPattern;

typedef struct {
  int          count;
  SpMVPattern *list;
  int         *offset; /* of all patterns */
  uint8_t     *mask;
  PetscInt64   noffset; /* length of offset and of mask */
} SpMVPatterns;

PETSC_INTERN PetscErrorCode SpMVPatternsDestroy(SpMVPatterns *);

/* Sorts unit numbers by length within windows of `window` places; stable */
PETSC_INTERN PetscErrorCode SpMVSortByLength(const SpMVCSR *, const SpMVUnits *, PetscInt n, const int unit[],
                                             PetscInt window, int sorted[]);

/* Estimates of time, to choose by; rbs and cbs are the rows and columns of a block */
PETSC_INTERN double SpMVCostSlice(int width, int rbs, int cbs);
PETSC_INTERN double SpMVCostDiagonals(int width, int bs);
PETSC_INTERN double SpMVCostLong(const SpMVCSR *, int row, int rows);
PETSC_INTERN double SpMVCostLongMost(int length, int rows);
PETSC_INTERN double SpMVCostParent(const SpMVCSR *, const SpMVUnits *);
PETSC_INTERN void   SpMVCostUnits(const SpMVCSR *, const SpMVUnits *, double *single, double *grouped);

/*
  A plan: the units of each slice, in order. The slices come first, slice s holds the units start[s] to start[s + 1] - 1
  (all of one number of rows, at most SPMV_LANES units); the remaining units form the vector CSR part. Rows in no unit
  must be empty.
*/
typedef struct {
  PetscInt       multiple, long_align; /* as in SpMVRules */
  PetscInt       sigma;                /* window that the units were sorted in, for the statistics */
  PetscInt       bs;                   /* columns of a block: 1, or the rows of every unit */
  PetscBool      parent;               /* nothing else is read: the parent's product is faster */
  PetscInt       slices;
  PetscInt       units;
  int           *start;
  int           *pattern; /* of each slice: the number of its pattern if it is stored by diagonals, else -1 */
  SpMVPatterns   patterns;
  int           *row;  /* first row of each unit */
  unsigned char *rows; /* number of its rows */
} SpMVPlan;

PETSC_INTERN PetscErrorCode SpMVPlanCreate(const SpMVCSR *, const SpMVRules *, SpMVPlan *);
PETSC_INTERN PetscErrorCode SpMVPlanDestroy(SpMVPlan *);

/*
  A store. Its runs are walked in order. All slices of a run have one kind and shape, so a kernel's inner loops know rbs
  and cbs (rows and columns of a block) as constants and no slice needs a descriptor of its own. A stored vector has one
  entry for each of eight lanes; complex ones have the eight real parts before the eight imaginary ones, so kernels need
  no shuffles. A step is what a kernel reads at a time: cbs x rbs vectors.
*/
typedef enum {
  SPMV_RUN_GATHER, /* slices of eight units: for each step and lane one column index, cbs x rbs values */
  /* the same of single rows, but indices are 16-bit distances from the slice's least column, which takes the place of a
     step's indices before them */
  SPMV_RUN_NARROW,
  SPMV_RUN_DIAG, /* slices of eight consecutive units on common diagonals: no indices */
  SPMV_RUN_LONG  /* vector CSR: eight columns of a unit at a time */
} SpMVRunKind;

typedef struct {
  unsigned char kind, rbs, cbs;
  unsigned char lanes;   /* of the run's last slice; all before it are full */
  int           count;   /* slices; LONG: units */
  int           row;     /* first row if the run's rows are consecutive, else -1: they are listed in rows */
  int           pattern; /* DIAG */
  PetscInt64    slice; /* GATHER, NARROW: first pair in width; DIAG: first entry in list; LONG: first entry in width */
  PetscInt64    val;   /* in vectors */
  PetscInt64    idx;
  PetscInt64    rows;
  PetscInt64    len; /* ragged slices only: the length of each lane, in steps */
} SpMVRun;

struct _n_SpMVStore {
  int          m, n;
  PetscBool    parent, transpose_parent;
  PetscBool    scattered; /* some rows are in no run: y is set before */
  int          multiple, align, bs;
  int          nruns;
  SpMVRun     *runs;
  SpMVPatterns patterns;
  int         *width; /* GATHER, NARROW: width and width without padding of each slice; LONG: length of each unit */
  /* LONG: first index of a step ~column where the eight columns are consecutive; NARROW: a slice's least column, then
     distances from it, of 16 bits */
  int       *idx;
  int       *rows, *len;
  PetscReal *val;  /* values of GATHER and LONG */
  PetscReal *dval; /* values of DIAG: one step after the other, or (distinct > 0) each distinct step once */
  PetscInt   distinct;
  int       *list; /* distinct: first of a slice's codes */
  int       *code; /* distinct: number of the step */
  void      *raw_val, *raw_dval, *raw_idx;
  PetscInt64 nval, ndval, ndslices, nidx, nwidth, nrows, nlen, ncode;
  SpMVStats  stats;
};

/* The indices of a step of a slice, in ints */
#define SPMV_INDEX_INTS(narrow) ((narrow) ? SPMV_LANES / 2 : SPMV_LANES)

/* Up to eight systems with one pattern for the methods CG and BiCGStab, without SpMVBatchOptions.left. Pointers beyond
   `count` are valid, too */
typedef struct {
  int                     n, count;
  const PetscInt         *i, *j; /* of one of the systems; its columns begin with `first` */
  PetscInt                first;
  const PetscScalar      *values[8], *b[8], *d[8];
  PetscScalar            *x[8];
  PetscReal              *a, *vectors; /* room for all entries, for SPMV_BATCH_LANES vectors */
  const SpMVBatchOptions *o;
} SpMVBatchLanes;

#define SPMV_BATCH_LANES 10

typedef struct {
  const char *name;
  double      slowdown; /* time over that of the AVX-512 kernels, on data in cache */
  /* rows of the runs only; z can be NULL */
  void (*mult)(const struct _n_SpMVStore *, const PetscScalar *x, const PetscScalar *z, PetscScalar *y);
  void (*multtransposeadd)(const struct _n_SpMVStore *, PetscBool conjugate, const PetscScalar *x, PetscScalar *y);
  void (*columns)(const SpMVCSR *, const PetscReal *x, int count, PetscScalar *y, PetscInt ldy);
  /* systems of one pattern; returns a bit for each that it has solved */
  uint8_t (*batch)(const SpMVBatchLanes *, SpMVBatchResult *const result[]);
} SpMVKernels;

PETSC_INTERN const SpMVKernels SpMVKernelsPortable;
#if defined(__x86_64__) && defined(__GNUC__) && (defined(PETSC_USE_REAL_DOUBLE) || defined(PETSC_USE_REAL_SINGLE))
  #define SPMV_HAVE_X86 1
PETSC_INTERN const SpMVKernels SpMVKernelsAVX2;
PETSC_INTERN const SpMVKernels SpMVKernelsAVX512;
PETSC_INTERN const SpMVKernels SpMVKernelsAVX512Gather;
#else
  #define SPMV_HAVE_X86 0
#endif
PETSC_INTERN const SpMVKernels *SpMVKernelsGet(void);

PETSC_INTERN PetscErrorCode SpMVMallocAligned(size_t bytes, void **raw, void *aligned);
