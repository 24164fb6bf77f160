/*
  The operations of tests/operations.c that are in parts/operations_*.c
*/
#pragma once

#include "harness.h"

PetscErrorCode Shell(Test *, Record *);
PetscErrorCode Transpose(Test *, Record *);
PetscErrorCode Permute(Test *, Record *);
PetscErrorCode SubMatrix(Test *, Record *);
PetscErrorCode Pieces(Test *, Record *);
PetscErrorCode Tests(Test *, Record *);
PetscErrorCode Binary(Test *, Record *);
PetscErrorCode Ascii(Test *, Record *);

PetscErrorCode BlockDiagonal(Test *, Record *);
PetscErrorCode Coloring(Test *, Record *);
PetscErrorCode Factor(Test *, Record *);
PetscErrorCode FactorInPlace(Test *, Record *);
PetscErrorCode Refactor(Test *, Record *);
PetscErrorCode SOR(Test *, Record *);
PetscErrorCode ZeroRows(Test *, Record *);
PetscErrorCode ZeroRowsFails(Test *, Record *);
PetscErrorCode Ordering(Test *, Record *);
PetscErrorCode Refused(Test *, Record *);
