/* The parts of tests/batch.c: random batches, products compared with those of AIJ, and the count of checks */
#pragma once

#include <petscksp.h>
#include <petscspmv.h>
#if defined(PETSC_HAVE_CUDA)
  #include <petscdevice_cuda.h>
#endif
#include <math.h>
#include <string.h>
#include "objects.h"

/* The arrays of a batch; i and j are those of one problem if the pattern is shared */
typedef struct {
  PetscInt        problems, rows, *sizes, *i, *j;
  PetscScalar    *a;
  MatBatchSharing sharing;
  PetscInt64      values;
} Arrays;

extern PetscInt    checks, failures;
extern PetscBool   device;   /* products run on the device */
extern const char *now_case; /* for the messages of failures */

PetscErrorCode Fail(const char *what);
#define Check(condition, what)               \
  do {                                       \
    checks++;                                \
    if (!(condition)) PetscCall(Fail(what)); \
  } while (0)

/* batch_common.c: the numbers drawn after Reseed() depend only on k and the rank */
void           Reseed(PetscInt k);
PetscErrorCode VecDraw(Vec);
/* kind: of the problems, which have `least` to `most` rows */
PetscErrorCode ArraysCreate(const char *kind, PetscInt problems, PetscInt least, PetscInt most, MatBatchSharing,
                            Arrays *);
PetscErrorCode ArraysDestroy(Arrays *);
PetscErrorCode BatchCreate(MPI_Comm, const Arrays *, PetscCopyMode, Mat *);
/* the same matrix as AIJ, and the matrix of the absolute values, for bounds */
PetscErrorCode AIJCreate(MPI_Comm, const Arrays *, Mat *A, Mat *bound);
/* new values of a problem, or of all (-1), in the arrays and in the matrix */
PetscErrorCode ChangeValues(Mat, Arrays *, PetscInt problem);
PetscErrorCode Same(Vec, Vec, const char *what); /* bit for bit */
/* A x and A^T x, from vectors of each kind, compared with those of AIJ */
PetscErrorCode Products(Mat, const Arrays *, const char *when);

/* The other files, by subject */
PetscErrorCode BadInput(void);
#if defined(PETSC_HAVE_CUDA)
PetscErrorCode Device(void);
#endif
