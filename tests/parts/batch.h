/* The parts of tests/batch.c: random batches, products compared with those of AIJ, and the count of checks */
#pragma once

#include "../batch.h"
#if defined(PETSC_HAVE_CUDA)
  #include <petscdevice_cuda.h>
#endif
#include <math.h>
#include <string.h>

typedef struct {
  const char     *name, *kind; /* kind: of the problems, see ArraysCreate() */
  PetscInt        problems, least, most;
  MatBatchSharing sharing;
  PetscBool       quick;
} Case;

typedef enum { MULT, TRANSPOSE, HERMITIAN } Op;

extern PetscInt    checks, failures;
extern PetscBool   device;                /* batches compute on the device */
extern const char *now_case, *now_kernel; /* for the messages of failures */

PetscErrorCode Fail(const char *what);
#define Check(condition, what)               \
  do {                                       \
    checks++;                                \
    if (!(condition)) PetscCall(Fail(what)); \
  } while (0)

/* batch_common.c: the numbers drawn after Reseed() depend only on k and the rank */
void           Reseed(PetscInt k);
PetscScalar    RandomNumber(void);
PetscErrorCode VecFill(Vec);
PetscErrorCode ArraysCreate(const char *kind, PetscInt problems, PetscInt least, PetscInt most, MatBatchSharing,
                            Arrays *);
/* new values of a problem, or of all (-1), in the arrays and in the matrix */
PetscErrorCode ChangeValues(Mat, Arrays *, PetscInt problem);
PetscErrorCode Compare(Vec y, Vec ref, Vec bound, const char *what);
PetscErrorCode Same(Vec, Vec, const char *what); /* bit for bit */
PetscErrorCode Apply(Mat, Op, Vec x, Vec z, Vec y);
PetscErrorCode AllProducts(Mat, const Arrays *, const char *when); /* compared with those of AIJ */
PetscErrorCode Infinite(Mat, const Arrays *);

/* The other files, by subject */
PetscErrorCode Columns(Mat, const Arrays *);
PetscErrorCode Operations(const Case *);
PetscErrorCode FromMats(void);
PetscErrorCode Solvers(MatBatchSharing, PetscBool dense);
PetscErrorCode BadInput(void);
#if defined(PETSC_HAVE_CUDA)
PetscErrorCode Device(void);
PetscErrorCode Graph(void);
#endif
