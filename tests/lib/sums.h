/*
  Products compared with sums in long double, row by row.
*/
#pragma once

#include "fuzz.h"
#include "shapes.h"

typedef enum { X_RANDOM, X_ONES, X_SPARSE, X_WIDE, X_NONFINITE, X_DENORMAL, XKINDS } XKind;

/* A sum more exact than that of a product, the sum of absolute values, and the number of terms */
typedef struct {
  long double re, im, abs, terms;
} Sum;

/* Entry i of a vector, which every rank can compute */
PetscScalar    XValue(XKind kind, PetscInt i, PetscInt salt);
PetscErrorCode XFill(Vec x, XKind kind, PetscInt salt);

/* Whether y is the floating-point sum, computed in any order: its error may be half an epsilon per term, and a few
   more, times the sum of absolute values. It must be Inf or NaN if the sum is */
PetscBool SumIs(const Sum *s, PetscScalar y, PetscReal *error, PetscReal *bound);

/* The expected result of product number `which` in this rank's part; sum has as many entries as the larger dimension */
PetscErrorCode ProductReference(const LocalRows *r, PetscInt N, PetscInt ys, PetscInt ny, int which, XKind xkind,
                                PetscInt xsalt, XKind ykind, PetscInt ysalt, Sum sum[]);
/* Collective. A random product with A, whose rows are r, compared with the sums; reports the first wrong row */
PetscErrorCode ProductCheck(Mat A, const LocalRows *r, const char *what);

/* Whether B has the same row and column layouts as A, or as A's transpose */
PetscErrorCode SameLayouts(Mat A, Mat B, PetscBool transposed, PetscBool *same);
