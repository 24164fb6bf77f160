/* The operations of tests/solvers.c that are in parts/solvers_*.c */
#pragma once

#include "solves.h"

PetscErrorCode Multigrid(Test *, Record *);
PetscErrorCode MultigridPattern(Test *, Record *);
PetscErrorCode MultigridSmall(Test *, Record *);
PetscErrorCode MultigridSmoothed(Test *, Record *);
