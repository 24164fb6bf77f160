/* The operations of tests/device.c that are in parts/device_*.c, and functions that several files use */
#pragma once

#include "harness.h"

/* A vector with A's row or column layout, in host memory or in the memory of A's own vectors */
PetscErrorCode CreateVec(Mat A, PetscBool rows, PetscBool host, Vec *v);

PetscErrorCode Bind(Test *, Record *);
PetscErrorCode BindBelow(Test *, Record *);
PetscErrorCode BindSome(Test *, Record *);

PetscErrorCode COO(Test *, Record *);
PetscErrorCode COOErrors(Test *, Record *);
PetscErrorCode COOMany(Test *, Record *);

PetscErrorCode Copies(Test *, Record *);
