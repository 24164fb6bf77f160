/* Calls that programs repeat for every matrix and every object */
#pragma once

#include <petscmat.h>
#if !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

/* Assembles a matrix for use */
PetscErrorCode MatAssemble(Mat A);
/* The local and the global numbers of rows and columns; any of them may be NULL */
PetscErrorCode MatSizes(Mat A, PetscInt *m, PetscInt *n, PetscInt *M, PetscInt *N);
/* Destroys PETSc objects of any classes: Destroy(&x, &y, &A). An ISColoring is none */
#define Destroy(...) DestroyObjects((void *[]){__VA_ARGS__, NULL})
PetscErrorCode DestroyObjects(void *objects[]);
/* Whether matrices of a type compute on a device on this machine; an error if -expect host|device says otherwise */
PetscErrorCode OnDevice(const char *type, PetscBool *device);
