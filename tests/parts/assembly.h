/* The operations of tests/assembly.c that are in parts/assembly_coo.c and parts/assembly_file.c */
#pragma once

#include "harness.h"

PetscErrorCode COO(Test *, Record *);
PetscErrorCode COOPatterns(Test *, Record *);
PetscErrorCode MatrixMarket(Test *, Record *);
