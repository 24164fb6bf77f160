static char help[] =
    "What values in single precision (-mat_spmv_single) cost in accuracy, and in iterations of the conjugate gradient method.\n\
  -matrices <list> : as bench/solves/krylov's, made symmetric positive definite\n\
  -types <aij,sellp,sellp:-mat_spmv_single,evchyb:-mat_spmv_single> : matrix types with their options; aij is aijcusparse on a GPU\n\
  -rtols <1e-4,1e-6,1e-8,1e-10> : relative tolerances of the residual that the method computes\n\
  -max_it <5000>   : of a solve\n\
  -csv <file>      : results to read by program\n\n";

/*
   "error": the error of a product with a random vector, relative to sums in long double with the matrix in double
   precision, as the largest over all rows in units of |A||x|. "true": ||b - A x|| / ||b|| at the end of a solve, with
   the matrix in double precision. With single precision, it cannot be smaller than the effect of the matrix's own
   rounding error, whatever the tolerance. The preconditioner is Jacobi.
*/

#include <petscksp.h>
#include "contenders.h"
#include "definite.h"
#include "timing.h"

/* -rtols, -max_it */
static PetscInt  nrtols = MAXIMUM, max_it = 5000;
static PetscReal rtols[MAXIMUM];

/* The largest error of y = A x over the rows, in units of |A||x|, computed from the host's A, x and y */
static PetscErrorCode ProductError(Mat A, Vec x, Vec y, double *error)
{
  const PetscScalar *xa, *ya;
  PetscInt           rows, n;

  PetscFunctionBeginUser;
  *error = 0.0;
  PetscCall(MatGetSize(A, &rows, NULL));
  PetscCall(VecGetArrayRead(x, &xa));
  PetscCall(VecGetArrayRead(y, &ya));
  for (PetscInt r = 0; r < rows; r++) {
    const PetscInt    *cols;
    const PetscScalar *values;
    long double        re = 0.0L, im = 0.0L, size = 0.0L;

    PetscCall(MatGetRow(A, r, &n, &cols, &values));
    for (PetscInt k = 0; k < n; k++) {
      const PetscScalar v = values[k], w = xa[cols[k]];

      re +=
          (long double)PetscRealPart(v) * PetscRealPart(w) - (long double)PetscImaginaryPart(v) * PetscImaginaryPart(w);
      im +=
          (long double)PetscRealPart(v) * PetscImaginaryPart(w) + (long double)PetscImaginaryPart(v) * PetscRealPart(w);
      size += (long double)PetscAbsScalar(v) * PetscAbsScalar(w);
    }
    PetscCall(MatRestoreRow(A, r, &n, &cols, &values));
    re -= PetscRealPart(ya[r]);
    im -= PetscImaginaryPart(ya[r]);
    if (size > 0.0L) *error = PetscMax(*error, (double)(sqrtl(re * re + im * im) / size));
  }
  PetscCall(VecRestoreArrayRead(y, &ya));
  PetscCall(VecRestoreArrayRead(x, &xa));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Converts A to a type with options, as in "sellp:-mat_spmv_single" */
static PetscErrorCode ContenderCreate(const char *what, Mat A, Mat *B)
{
  const char  *colon = strchr(what, ':');
  char         type[64];
  PetscBool    aij;
  PetscInt     unused;
  PetscOptions options;

  PetscFunctionBeginUser;
  PetscCall(PetscStrncpy(type, what, colon ? PetscMin(sizeof(type), (size_t)(colon - what) + 1) : sizeof(type)));
  PetscCall(PetscStrcmp(type, MATAIJ, &aij));
  if (aij && DeviceOn) PetscCall(PetscStrncpy(type, "aijcusparse", sizeof(type)));
  PetscCall(MatConvert(A, type, MAT_INITIAL_MATRIX, B));
  PetscCall(PetscOptionsCreate(&options));
  if (colon) PetscCall(PetscOptionsInsertString(options, colon + 1));
  PetscCall(PetscObjectSetOptions((PetscObject)*B, options));
  PetscCall(MatSetFromOptions(*B));
  PetscCall(PetscOptionsAllUsed(options, &unused));
  PetscCheck(!unused, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "-types: %s: the type knows no such option", what);
  PetscCall(PetscObjectSetOptions((PetscObject)*B, NULL));
  PetscCall(PetscOptionsDestroy(&options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The time of a product in seconds */
static PetscErrorCode ProductTime(Mat B, Vec x, Vec y, double *seconds)
{
  PetscLogDouble start = 0.0;
  double         t[5];

  PetscFunctionBeginUser;
  PetscCall(MatMult(B, x, y));
  for (int r = 0; r < 5; r++) {
    PetscCall(TimeBegin(PETSC_COMM_SELF, &start));
    for (int k = 0; k < 20; k++) PetscCall(MatMult(B, x, y));
    PetscCall(TimeEnd(PETSC_COMM_SELF, start, &t[r]));
  }
  PetscCall(Median(5, t, seconds));
  *seconds /= 20.0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunType(const char *name, const char *type, Mat A, Mat reference, FILE *csv)
{
  Mat      B;
  Vec      x, b, r;
  KSP      ksp;
  PC       pc;
  MatInfo  info;
  PetscInt rows;
  double   error, seconds = 0.0;

  PetscFunctionBeginUser;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(MatGetSize(A, &rows, NULL));
  PetscCall(ContenderCreate(type, A, &B));
  PetscCall(MatCreateVecs(B, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall(ProductTime(B, x, b, &seconds));
  PetscCall(ProductError(A, x, b, &error));
  PetscCall(VecSetRandom(b, NULL));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, B, B));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  for (PetscInt k = 0; k < nrtols; k++) {
    KSPConvergedReason reason;
    PetscReal          norm, bnorm;
    PetscInt           its;

    PetscCall(KSPSetTolerances(ksp, rtols[k], 1e-300, 1e300, max_it));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(KSPGetIterationNumber(ksp, &its));
    PetscCall(MatResidual(reference, b, x, r));
    PetscCall(VecNorm(r, NORM_2, &norm));
    PetscCall(VecNorm(b, NORM_2, &bnorm));
    PetscCall(PetscPrintf(
        PETSC_COMM_SELF,
        "%-16s %-28s %9.2f us, error %8.2g, rtol %7.0e: %5" PetscInt_FMT " iterations, true residual %8.2g, %s\n", name,
        type, 1e6 * seconds, error, (double)rtols[k], its, (double)(norm / bnorm), KSPConvergedReasons[reason]));
    if (csv)
      PetscCall(PetscFPrintf(PETSC_COMM_SELF, csv,
                             "%s,%" PetscInt_FMT ",%.0f,%s,%.9g,%.4g,%.0e,%" PetscInt_FMT ",%s,%.4g,%s\n", name, rows,
                             info.nz_used, type, seconds, error, (double)rtols[k], its, KSPConvergedReasons[reason],
                             (double)(norm / bnorm), ResultsSource(DeviceOn ? Device.name : NULL)));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Options(const Contest *contest)
{
  static const PetscReal by_default[] = {1e-4, 1e-6, 1e-8, 1e-10};
  PetscMPIInt            size;
  PetscBool              set;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCheck(size == 1, PETSC_COMM_WORLD, PETSC_ERR_WRONG_MPI_SIZE, "One process");
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-max_it", &max_it, NULL));
  PetscCall(PetscOptionsGetRealArray(NULL, NULL, "-rtols", rtols, &nrtols, &set));
  if (set) PetscFunctionReturn(PETSC_SUCCESS);
  nrtols = PETSC_STATIC_ARRAY_LENGTH(by_default);
  PetscCall(PetscArraycpy(rtols, by_default, nrtols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunMatrix(const char *name, Contest *contest)
{
  Mat A, reference;

  PetscFunctionBeginUser;
  PetscCall(DefiniteCreate(name, &A));
  PetscCall(ContenderCreate("aij", A, &reference));
  for (PetscInt t = 0; t < contest->ntypes; t++)
    PetscCall(RunType(name, contest->types[t], A, reference, contest->csv));
  PetscCall(MatDestroy(&reference));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const Benchmark single = {
      .help            = help,
      .matrices        = "bratu:20,stencil7:20,fem27:8:3",
      .device_matrices = "bratu:100,stencil7:100,fem27:40:3",
      .types           = "aij,sellp,sellp:-mat_spmv_single,evchyb:-mat_spmv_single",
      .columns         = "matrix,rows,entries,type,seconds,error,rtol,iterations,reason,true_residual," RESULTS_SOURCE,
      .reps            = 1,
      .options         = Options,
      .run             = RunMatrix,
  };

  return ContestMain(argc, argv, &single);
}
