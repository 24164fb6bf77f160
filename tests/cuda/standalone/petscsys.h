/*
  Stands in for PETSc's header where the device core is built alone, for its own tests and benchmark: on a machine that
  has a GPU but no PETSc, and in every precision. -DPETSC_USE_COMPLEX -DPETSC_USE_REAL_SINGLE -DPETSC_USE_64BIT_INDICES
  choose.
*/
#pragma once

#include <stdint.h>

#if defined(PETSC_USE_REAL_SINGLE)
typedef float PetscReal;
#else
  #define PETSC_USE_REAL_DOUBLE 1
typedef double    PetscReal;
#endif
#if defined(PETSC_USE_COMPLEX)
typedef struct {
  PetscReal re, im;
} PetscScalar;
#else
typedef PetscReal PetscScalar;
#endif
#if defined(PETSC_USE_64BIT_INDICES)
typedef int64_t PetscInt;
#else
typedef int       PetscInt;
#endif
typedef int64_t PetscInt64;
typedef int     PetscErrorCode;
typedef bool    PetscBool;
#define PETSC_TRUE     true
#define PETSC_FALSE    false
#define PETSC_INTERN   extern "C"
#define PetscMin(a, b) ((a) < (b) ? (a) : (b))
#define PetscMax(a, b) ((a) > (b) ? (a) : (b))
