/* The operations of tests/assembly.c that are in parts/assembly_*.c */
#pragma once

#include "harness.h"

PetscErrorCode COO(Test *, Record *);
PetscErrorCode COOPatterns(Test *, Record *);
PetscErrorCode MatrixMarket(Test *, Record *);
PetscErrorCode WithArrays(Test *, Record *);
PetscErrorCode WithSplitArrays(Test *, Record *);
