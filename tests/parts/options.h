/* Operations of tests/options.c in a file of their own, and what both use */
#pragma once

#include "../lib/harness.h"

/* Whether the view of A by PETSC_VIEWER_ASCII_INFO contains a text; on one rank */
PetscErrorCode ViewContains(Mat A, const char text[], PetscBool *found);

PetscErrorCode SetUpAfter(Test *, Record *);
