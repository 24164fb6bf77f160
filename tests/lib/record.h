/*
  Records: the observations of an operation, with the differences from another implementation that rounding allows.
*/
#pragma once

#include <petscmat.h>

typedef struct {
  const char *what;  /* description of the observation, a literal */
  PetscInt    where; /* row, column or step */
  PetscScalar value;
  PetscReal   bound; /* largest difference from another implementation's value */
  char       *text;  /* if not NULL, the observation is this text instead of a number */
} Item;

typedef struct {
  Item    *item;
  PetscInt n, max;
} Record;

PetscErrorCode RecordAdd(Record *r, const char *what, PetscInt where, PetscScalar value, PetscReal bound,
                         const char *text);
PetscErrorCode RecordReset(Record *r);
/* Numbers that every implementation must give exactly */
PetscErrorCode RecordInt(Record *r, const char *what, PetscInt64 value);
PetscErrorCode RecordText(Record *r, const char *what, const char *text);
/* Numbers that may differ by rounding, as a multiple of machine epsilon relative to their size */
PetscErrorCode RecordReal(Record *r, const char *what, PetscScalar value, PetscReal epsilons);
/* Collective. Entries of a vector, each with its own bound or, if bound is NULL, with epsilons times the vector's
   largest entry */
PetscErrorCode RecordVec(Record *r, const char *what, Vec v, Vec bound, PetscReal epsilons);
/* Entries of a matrix that has MatGetRow() */
PetscErrorCode RecordEntries(Record *r, Mat A);
/* Products with A and its transpose; entries: A has MatGetRow(), which gives the bounds */
PetscErrorCode RecordProducts(Record *r, Mat A, PetscBool entries);
/* The error bound of (add +) A x, or of the transposed product: the difference of two products computed in any order,
   bounded as in Higham's book */
PetscErrorCode ProductBounds(Mat A, Vec x, Vec add, PetscBool transpose, Vec bound);

/* z = op(A) x, or y + op(A) x unless y is NULL; y may be z. Records z within its rounding errors */
typedef enum { PLAIN, TRANSPOSE, HERMITIAN } Op;
PetscErrorCode MatOpMult(Mat A, Op op, Vec x, Vec y, Vec z);
PetscErrorCode RecordMult(Record *r, const char *what, Mat A, Op op, Vec x, Vec y, Vec z);

/* Whether two items hold the same result; the bound is that of x */
PetscErrorCode SameItem(const Item *x, const Item *y, PetscBool *same);
