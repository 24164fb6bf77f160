/*
  The matrix type batch, as the package sees it
*/
#pragma once

#include <petscspmv.h>

PETSC_INTERN PetscErrorCode MatBatchRegister(void);
