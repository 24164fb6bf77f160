/* The operations of tests/products.c that are in parts/products_*.c */
#pragma once

#include "harness.h"

PetscErrorCode Sparse(Test *, Record *);
PetscErrorCode SparseReplaced(Test *, Record *);
PetscErrorCode Triple(Test *, Record *);
