/* A program that uses an installed library: it links with the library and multiplies with one of its types */
#include <petscspmv.h>

#if PETSCSPMV_VERSION_MAJOR < 0
  #error "not the header of PetscSpMV"
#endif

int main(int argc, char **argv)
{
  Mat         A;
  const char *format;
  PetscInt    first, last;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscSpMVInitializePackage());
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, 3, 3, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(A, MATSELLP));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &first, &last));
  for (PetscInt i = first; i < last; i++) PetscCall(MatSetValue(A, i, i, 1.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(PetscSpMVGetFormat(A, &format));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "C: format %s\n", format));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}
