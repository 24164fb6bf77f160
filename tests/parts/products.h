/* The operation of tests/products.c that is in parts/products_empty.c */
#pragma once

#include "harness.h"

PetscErrorCode EmptyRows(Test *, Record *);
