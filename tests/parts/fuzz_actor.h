/*
  Shared by the steps of the fuzzer: the two matrices, the observations of them, and operands.
*/
#pragma once

#include "sums.h"

/* One of the two matrices, a second matrix of the same or another shape, and the observations in a step */
typedef struct {
  const char *type;
  PetscBool   under; /* the type under test */
  Mat         A, B;
  Record      seen;
} Actor;

typedef struct {
  Shape shape;
  Build way;
  char  prefix[16];
  /* entries may differ by rounding from now on: the order of a sum depends on messages, or on the device */
  PetscBool loose;
  char      option[16][64];
  int       noptions;
  PetscBool coo;   /* assembled by COO on several ranks: see SetValues() */
  PetscBool bound; /* MatBindToCPU() was called: see Refill() */
} FuzzCase;

extern FuzzCase fuzzcase;

/* When an operation can run */
enum {
  F_SQUARE   = 1,  /* square, with the same row and column layouts */
  F_FULL     = 2,  /* has rows and columns */
  F_SEQ      = 4,  /* one rank only */
  F_FINITE   = 8,  /* no entry is infinite, undefined or close to overflow */
  F_DOMINANT = 16, /* the diagonal dominates */
  F_NEW      = 32, /* accepts new entries */
  F_BLAS     = 64  /* on a device, finite: there zero times NaN is NaN, and the BLAS of the host may set zeros */
};

typedef struct {
  const char *name;
  PetscErrorCode (*run)(Actor *);
  int needs, weight;
} FuzzOp;

/* Operations by subject; the last one of each has no name */
extern const FuzzOp FuzzEntries[], FuzzMatrices[], FuzzNumbers[], FuzzOptions[];

/* A call that AIJ may refuse: the error is recorded, and the case continues. failed: whether there was an error on any
   rank */
#define Try(a, what, call)                         \
  do {                                             \
    PetscErrorCode ierr_;                          \
    MayFail(ierr_, call);                          \
    PetscCall(SeeInt(a, what, (PetscInt64)ierr_)); \
    failed = ierr_ ? 1 : 0;                        \
    PetscCall(FuzzAgree(&failed));                 \
  } while (0)

PetscErrorCode SeeInt(Actor *a, const char *what, PetscInt64 value);
/* A number that both types compute with the same code */
PetscErrorCode SeeScalar(Actor *a, const char *what, PetscInt where, PetscScalar value, PetscReal epsilons);
PetscErrorCode SeeVec(Actor *a, const char *what, Vec v, PetscReal epsilons);
/* entries of v may be sums of terms as large as this */
PetscErrorCode SeeVecUpTo(Actor *a, const char *what, Vec v, PetscReal epsilons, PetscReal largest);
PetscErrorCode SeeRows(Actor *a, const LocalRows *r);
PetscErrorCode SeeLayout(Actor *a, Mat A);
/* Records everything about a matrix of AIJ's kind: sizes, entries, and some products */
PetscErrorCode SeeMat(Actor *a, const char *what, Mat A, PetscInt products);
/* The format must be kept if PETSc creates a matrix of the same type */
PetscErrorCode HasFormat(Actor *a, Mat A, const char *what);
/* *C replaces A or B. If PETSc has created it as AIJ, it is converted to the type under test again */
PetscErrorCode Adopt(Actor *a, Mat *C);
/* The same, or destroys C */
PetscErrorCode AdoptOrDestroy(Actor *a, Mat *C);
/* A matrix with the given layouts and few entries per row, of the type under test or AIJ */
PetscErrorCode Operand(Actor *a, PetscInt m, PetscInt n, PetscInt M, PetscInt N, Mat *B);
PetscErrorCode OperandLike(Actor *a, Mat A, Mat *B);
/* Multiplies, so that the type's stored data exist before something changes */
PetscErrorCode TouchSome(Mat A);

/* Sets random options of the type, which stay in the database until the case ends */
PetscErrorCode RandomOptions(void);
PetscErrorCode ClearOptions(void);
