/* The parts of tests/fuzzbatch.c: random batches, and the operations on them */
#pragma once

#include "fuzz.h"
#include "../batch.h"

#define MOST_ROWS 12

enum {
  DIAGONAL = 1, /* all diagonal entries are there */
  FINITE   = 2, /* no NaN and no infinite numbers */
  DOMINANT = 4, /* solvers work */
  DEFINITE = 8, /* symmetric, real and positive definite */
  ONERANK  = 16
};

typedef struct {
  int       has;
  PetscBool special; /* NaN, infinities, -0.0 and denormals among the values */
  PetscInt  blocks;  /* rows of each problem if all have the same number, else 0 */
  Arrays    a;       /* of this rank */
  char      solver[256];
} RandomBatch;

/* Values of one problem of n rows, row by row */
void DrawProblem(const RandomBatch *, PetscInt n, const PetscInt i[], const PetscInt j[], PetscScalar a[]);
/* Numbers like those of the batch */
PetscErrorCode DrawVec(const RandomBatch *, Vec);

PetscErrorCode Op_Products(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_Scale(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_Conjugate(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_ZeroEntries(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_Shift(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_Diagonal(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_DiagonalSet(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_DiagonalScale(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_Duplicate(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_AXPY(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_Transpose(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_Convert(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_SetValues(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_Norms(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_RowMax(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_Values(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_Symmetry(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_SubMatrix(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_Ordering(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_MatProducts(RandomBatch *, Mat *, Record *);
PetscErrorCode Op_Relax(RandomBatch *, Mat *, Record *);
