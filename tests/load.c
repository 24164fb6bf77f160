/*
  A program that does not refer to PetscSpMV: the options decide which product it uses. tests/run loads the library and
  sets the type in each of the ways that PETSc supports. With -solve, it also solves. With -lose <rank>, that
  rank loses its GPU at the end.
*/
#include <petscksp.h>
#include "objects.h"

static PetscErrorCode Solve(Mat A, Vec b, Vec x)
{
  KSP ksp;
  PC  pc;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat         A;
  Vec         x, y;
  MatType     type;
  PetscInt    n = 200, rs, re, lose = -1;
  PetscBool   solve = PETSC_FALSE;
  PetscScalar v[]   = {-1, 3, -1}, sum;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt i = rs; i < re; i++) {
    const PetscInt cols[] = {i - 1, i, i + 1 < n ? i + 1 : -1};

    PetscCall(MatSetValues(A, 1, &i, 3, cols, v, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetFromOptions(A)); /* like a program that reads the options late; the matrix must survive it */
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecSum(y, &sum));
  PetscCall(MatGetType(A, &type));
  PetscCheck(PetscAbsScalar(sum - (PetscReal)(n + 2)) < 1e-4, PETSC_COMM_WORLD, PETSC_ERR_PLIB,
             "the product is wrong: %g", (double)PetscRealPart(sum));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-lose", &lose, NULL));
  if (lose >= 0) {
#if defined(PETSC_HAVE_CUDA)
    PetscMPIInt rank;

    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    /* A process loses its GPU with the first access to an invalid address. The other ranks wait for data from it, and
       must not hang */
    if (rank == lose) PetscCall(VecCUDAPlaceArray(x, (PetscScalar *)4096));
    for (int k = 0; k < 3; k++) PetscCall(MatMult(A, x, y));
    PetscCall(VecSum(y, &sum));
#endif
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB, "no GPU was lost");
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  /* and with vectors that -vec_type chooses, whatever the matrix prefers */
  PetscCall(VecCreate(PETSC_COMM_WORLD, &x));
  PetscCall(VecSetSizes(x, PETSC_DECIDE, n));
  PetscCall(VecSetFromOptions(x));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecSet(x, 1.));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecSum(y, &sum));
  PetscCheck(PetscAbsScalar(sum - (PetscReal)(n + 2)) < 1e-4, PETSC_COMM_WORLD, PETSC_ERR_PLIB,
             "the product with other vectors is wrong: %g", (double)PetscRealPart(sum));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-solve", &solve, NULL));
  if (solve) PetscCall(Solve(A, y, x));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "product is right, type: %s\n", type));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}
