/* Operations of tests/options.c in a separate file, and functions that both files use */
#pragma once

#include "../lib/harness.h"

/* Whether the view of A with PETSC_VIEWER_ASCII_INFO contains a text; on one rank only */
PetscErrorCode ViewContains(Mat A, const char text[], PetscBool *found);

PetscErrorCode SetUpAfter(Test *, Record *);
PetscErrorCode Threads(Test *, Record *);
PetscErrorCode SmallMemory(Test *, Record *);
PetscErrorCode Replace(Test *, Record *);
