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
/* A matrix of a type with these sizes and room for so many entries in each row of each block; more are no error */
PetscErrorCode MatCreateSized(MPI_Comm comm, const char *type, PetscInt m, PetscInt n, PetscInt M, PetscInt N,
                              PetscInt entries, Mat *A);
/* Collective. What PetscObjectView() prints in a format, on the first rank; the caller frees it with free() */
PetscErrorCode ViewText(PetscObject object, PetscViewerFormat format, char **text);
/* Collective. Whether that contains a text; the same on all ranks */
PetscErrorCode ViewContains(PetscObject object, PetscViewerFormat format, const char text[], PetscBool *found);
/* Destroys PETSc objects of any classes: Destroy(&x, &y, &A). An ISColoring is none */
#define Destroy(...) DestroyObjects((void *[]){__VA_ARGS__, NULL})
PetscErrorCode DestroyObjects(void *objects[]);
/* Whether matrices of a type compute on a device on this machine; an error if -expect host|device says otherwise */
PetscErrorCode OnDevice(const char *type, PetscBool *device);
