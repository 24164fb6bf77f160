/*
  The format batch: the block-diagonal matrix of many small problems. Each process owns whole problems. The matrix is an
  AIJ matrix that is stored as SELL-P stores it; what this folder adds is the problems: matrices created from the arrays
  of problems, and access to single problems.

    batch.c   the format: options, rules, views
    values.c  the problems of a matrix, and their values
    create.c  matrices from arrays and from other matrices
*/
#pragma once

#include "mat/impls/spmv/matspmv.h"

/* The problems of a matrix on this process, composed with it. Without them, they are found in the matrix */
typedef struct {
  PetscInt         problems, *first; /* first row of each problem, then the number of rows */
  PetscBool        found;            /* the problems were not given but found in the matrix */
  PetscObjectId    block;            /* the diagonal block and its pattern when the rest was last compared with it */
  PetscObjectState nonzerostate;
  PetscInt        *columns; /* numbered from 0 in each problem, for MatBatchGetProblem(); NULL: not needed yet */
} MatBatch;

PETSC_INTERN const SpMVFormat SpMVFormatBATCH;

/* values.c */
PETSC_INTERN PetscErrorCode MatBatchNew(PetscInt problems, MatBatch **);
PETSC_INTERN PetscErrorCode MatBatchFree(MatBatch **);
PETSC_INTERN PetscErrorCode MatBatchSet(Mat, MatBatch *); /* the matrix then owns them */
/* The problems on this process of any matrix that is derived from AIJ: problem p has the rows first[p] to
   first[p + 1] - 1 of the diagonal block D, counted from 0. An error if there are entries outside of the problems */
PETSC_INTERN PetscErrorCode MatBatchGetProblems(Mat, PetscInt *problems, const PetscInt *first[], Mat *D);
