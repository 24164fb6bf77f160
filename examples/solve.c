static char help[] = "Solves A x = b for a matrix from a file, with a matrix type chosen at run time.\n\
  -f <file>        : a Matrix Market file (coordinate) or PETSc's binary format\n\
  -rhs <file>      : the right hand side in PETSc's binary format; without it b = A u with u = 1, and the error is known\n\
  -mat_type <type> : aij, sellp, evchyb, sell, ...\n\
  and the options of KSP and PC\n\n";

/*
   Usage:
     mpiexec -n 2 ./solve -f bcsstk16.mtx -mat_type sellp -ksp_type cg -pc_type jacobi
     mpiexec -n 4 ./solve -f cage10.mtx -mat_type evchyb

   The exit status is nonzero if the solver does not converge.
*/

#include <petscksp.h>
#include "example.h"
#include "mmload.h"

int main(int argc, char **argv)
{
  char               file[PETSC_MAX_PATH_LEN], rhs[PETSC_MAX_PATH_LEN];
  PetscBool          have_file, have_rhs;
  Mat                A;
  Vec                x, b, r;
  KSP                ksp;
  KSPConvergedReason reason;
  MatType            type;
  MatInfo            info;
  PetscInt           M, N, its, products = 0;
  PetscReal          norm, rnorm, error;
  double             product_time = 0.0, gflops = 0.0;
  PetscLogStage      stage;
  PetscLogDouble     t0, t1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscSpMVInitializePackage());
  PetscCall(PetscLogDefaultBegin());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-f", file, sizeof(file), &have_file));
  PetscCheck(have_file, PETSC_COMM_WORLD, PETSC_ERR_USER, "Give a matrix: -f <file>");
  PetscCall(PetscOptionsGetString(NULL, NULL, "-rhs", rhs, sizeof(rhs), &have_rhs));

  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatLoadFile(PETSC_COMM_WORLD, file, A));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCheck(M == N, PETSC_COMM_WORLD, PETSC_ERR_SUP, "%s is not square", file);
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  if (have_rhs) {
    PetscViewer viewer;

    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, rhs, FILE_MODE_READ, &viewer));
    PetscCall(VecLoad(b, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
  } else {
    PetscCall(VecSet(x, 1.0));
    PetscCall(MatMult(A, x, b));
    PetscCall(VecSet(x, 0.0));
  }

  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetUp(ksp));
  PetscCall(KSPSetUpOnBlocks(ksp));
  PetscCall(PetscLogStageRegister("Solve", &stage));
  PetscCall(PetscLogStagePush(stage));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(&t0));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(&t1));
  PetscCall(PetscLogStagePop());
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetIterationNumber(ksp, &its));
  PetscCall(ExampleMatMultLog(PETSC_COMM_WORLD, stage, &products, &product_time, &gflops));

  PetscCall(MatMult(A, x, r));
  PetscCall(VecAXPY(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &rnorm));
  PetscCall(VecNorm(b, NORM_2, &norm));
  PetscCall(MatGetType(A, &type));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                        "matrix     %s, %" PetscInt_FMT " rows, %.0f entries as its type counts them, type %s\n", file,
                        M, info.nz_used, type));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "solver     %s after %" PetscInt_FMT " iterations, %.3f s\n",
                        KSPConvergedReasons[reason], its, (double)(t1 - t0)));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "products   %" PetscInt_FMT " in %.3f s, %.2f GF/s\n", products, product_time,
                        gflops));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "residual   |b - A x| / |b| = %.3e\n",
                        (double)(norm > 0.0 ? rnorm / norm : rnorm)));
  if (!have_rhs) {
    PetscCall(VecShift(x, -1.0));
    PetscCall(VecNorm(x, NORM_2, &error));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "error      |x - u| / |u| = %.3e\n",
                          (double)(error / PetscSqrtReal((PetscReal)M))));
  }
  PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "The solver did not converge: %s",
             KSPConvergedReasons[reason]);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}
