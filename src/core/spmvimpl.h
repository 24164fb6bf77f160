/*
  How a block is stored. Everything a kernel of the host reads is here.

  Runs are walked in order. All slices of a run are of one kind and shape, so that a kernel's inner loops know g and c
  (rows and columns of a block) as constants and no slice needs a descriptor of its own. A stored vector is one entry for each of
  eight lanes; complex ones keep the eight real parts before the eight imaginary ones, so that kernels need no shuffles.
*/
#pragma once

#include "spmvcore.h"
#include <stdint.h>

#if defined(PETSC_USE_COMPLEX)
  #define SPMV_PARTS 2 /* numbers in a scalar */
#else
  #define SPMV_PARTS 1
#endif
#define SPMV_VECTOR (SPMV_LANES * SPMV_PARTS) /* numbers in a stored vector */

typedef enum {
  SPMV_RUN_GATHER,      /* slices of eight units: step k, lane l: one column index, c x g values */
  SPMV_RUN_DIAG,        /* slices of eight consecutive units on common diagonals: no indices */
  SPMV_RUN_LONG,        /* vector CSR: eight columns of a unit at a time */
  SPMV_RUN_UNCOMPRESSED /* slices of any height, uncompressed */
} SpMVRunKind;

typedef struct {
  unsigned char kind, g, c;
  unsigned char lanes;   /* of the run's last slice; the others are full */
  int           count;   /* slices; LONG: units */
  int           row;     /* first row where the run's rows are consecutive, else -1: they are listed in rows */
  int           pattern; /* DIAG */
  PetscInt64    slice;   /* GATHER, PLAIN: first pair in width; DIAG: first entry in list; LONG: first entry in width */
  PetscInt64    val;     /* in vectors (PLAIN: in entries) */
  PetscInt64    idx;
  PetscInt64    rows;
  PetscInt64    len; /* ragged slices only: how long each lane is, in steps */
} SpMVRun;

typedef struct {
  int width, offset; /* steps; where its offsets and masks start */
  int full;          /* no lane is masked */
} SpMVPattern;

struct _n_SpMVStore {
  int          m, n;
  PetscBool    parent, transpose_parent;
  PetscBool    scattered; /* rows that are in no run exist: y is set before */
  int          height, multiple, align, block;
  int          nruns;
  SpMVRun     *runs;
  int          npatterns;
  SpMVPattern *patterns;
  int         *offset; /* of all patterns */
  uint8_t     *mask;
  int         *width; /* GATHER: width and width without padding of each slice; LONG: length of each unit */
  int         *idx;   /* LONG: first index of a step ~column where the eight columns are consecutive */
  int         *rows, *len;
  PetscReal   *val;  /* values of GATHER, LONG and PLAIN */
  PetscReal   *dval; /* values of DIAG: one step after the other, or (distinct > 0) each distinct step once */
  PetscInt     distinct;
  int         *list; /* distinct: where in code a slice's steps are listed */
  int         *code; /* distinct: which step */
  void        *raw_val, *raw_dval, *raw_idx;
  PetscInt64   nval, ndval, ndslices, nidx, nwidth, nrows, nlen, noffset, nlist, ncode, dcap, ccap;
  SpMVStats    stats;
};

typedef struct {
  const char *name;
  double      slowdown;                                                                                  /* on data in cache, over the AVX-512 kernels */
  void (*mult)(const struct _n_SpMVStore *, const PetscScalar *x, const PetscScalar *z, PetscScalar *y); /* rows of the runs only; z NULL: none */
  void (*multtransposeadd)(const struct _n_SpMVStore *, PetscBool conjugate, const PetscScalar *x, PetscScalar *y);
} SpMVKernels;

PETSC_INTERN const SpMVKernels SpMVKernelsPortable;
#if defined(__x86_64__) && defined(__GNUC__) && (defined(PETSC_USE_REAL_DOUBLE) || defined(PETSC_USE_REAL_SINGLE))
  #define SPMV_HAVE_X86 1
PETSC_INTERN const SpMVKernels SpMVKernelsAVX2;
PETSC_INTERN const SpMVKernels SpMVKernelsAVX512;
#else
  #define SPMV_HAVE_X86 0
#endif
PETSC_INTERN const SpMVKernels *SpMVKernelsGet(void);

PETSC_INTERN PetscErrorCode SpMVMallocAligned(size_t bytes, PetscBool zero, void **raw, void *aligned);
