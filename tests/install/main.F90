! The same in Fortran
#include <petsc/finclude/petscmat.h>
program main
  use petscmat
  use petscspmv
  implicit none
  Mat A
  PetscErrorCode ierr
  PetscInt, parameter :: n = 3
  character(len=80) format

  PetscCallA(PetscInitialize(ierr))
  PetscCallA(PetscSpMVInitializePackage(ierr))
  PetscCallA(MatCreate(PETSC_COMM_WORLD, A, ierr))
  PetscCallA(MatSetSizes(A, n, n, PETSC_DETERMINE, PETSC_DETERMINE, ierr))
  PetscCallA(MatSetType(A, MATSELLP, ierr))
  PetscCallA(PetscSpMVGetFormat(A, format, ierr))
  PetscCallA(PetscPrintf(PETSC_COMM_WORLD, 'Fortran: format '//trim(format)//new_line('a'), ierr))
  PetscCallA(MatDestroy(A, ierr))
  PetscCallA(PetscFinalize(ierr))
end program
