/* The operations of tests/assembly.c that are in parts/assembly_coo.c */
#pragma once

#include "harness.h"

PetscErrorCode COO(Test *, Record *);
PetscErrorCode COOPatterns(Test *, Record *);
