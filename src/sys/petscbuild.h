/*
  The PETSc that the library was built for and the PETSc that the program uses. The library's functions and PETSc's
  macros read PETSc's private structures, so the two must agree.
*/
#pragma once

#include <petscsys.h>

typedef struct {
  PetscInt  major, minor;
  PetscBool release;
  PetscBool complex_;
  PetscInt  real_bits, bits; /* of PetscReal and PetscInt */
  PetscBool debug;
} SpMVPetscBuild;

PETSC_INTERN const SpMVPetscBuild SpMVPetscBuiltFor;
PETSC_INTERN SpMVPetscBuild       SpMVPetscBuildGet(void);
PETSC_INTERN PetscBool            SpMVPetscBuildsDiffer(const SpMVPetscBuild *, const SpMVPetscBuild *, size_t, char[]);
PETSC_INTERN PetscErrorCode       SpMVPetscBuildCheck(void);
