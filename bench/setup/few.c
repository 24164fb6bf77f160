static char help[] =
    "Measures matrices that are multiplied a few times, on the host: microseconds of the first 4, 6, ... 100 products of a new matrix together.\n\
  -matrices <a,b>  : generators or files, as in bench\n\
  -copies <9>      : new matrices of each type; the median of each product's time counts\n\n";

/*
   The types take turns, so that other programs on the machine disturb all of them, and times are the processor's time
   of this process. For example

     few -matrices stencil5:316,arrow:100000 > results.csv
*/

#include <petscspmv.h>
#include <time.h>
#include "matrices.h"
#include "names.h"
#include "results.h"
#include "timing.h"

#define TYPES     3
#define PRODUCTS  100
#define LISTED    (PetscInt) PETSC_STATIC_ARRAY_LENGTH(list)
#define LIST_MOST 64

static const char *const types[TYPES] = {MATAIJ, MATSELLP, MATEVCHYB};
static const PetscInt    list[]       = {4, 6, 7, 8, 9, 10, 12, 15, 20, 40, 100};

static double Microseconds(void)
{
  struct timespec t;

  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* Times of product k of each copy: t[k * copies + copy] */
static PetscErrorCode Products(Mat A, Vec x, Vec y, PetscInt copies, PetscInt copy, double t[])
{
  Mat B;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  for (PetscInt k = 0; k < PRODUCTS; k++) {
    const double start = Microseconds();

    PetscCall(MatMult(B, x, y));
    t[k * copies + copy] = Microseconds() - start;
  }
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(const char *name, PetscInt copies)
{
  const char *origin;
  Mat         R, A[TYPES];
  Vec         x, y;
  MatInfo     info;
  double     *t[TYPES];

  PetscFunctionBeginUser;
  PetscCall(MatrixCreate(PETSC_COMM_SELF, name, &R, &origin));
  PetscCall(MatGetInfo(R, MAT_LOCAL, &info));
  PetscCall(MatCreateVecs(R, &x, &y));
  PetscCall(VecSet(x, 1.0));
  for (int q = 0; q < TYPES; q++) {
    PetscCall(MatConvert(R, types[q], MAT_INITIAL_MATRIX, &A[q]));
    PetscCall(MatSetFromOptions(A[q]));
    PetscCall(PetscMalloc1(PRODUCTS * copies, &t[q]));
  }
  for (PetscInt copy = 0; copy < copies; copy++)
    for (int q = 0; q < TYPES; q++) PetscCall(Products(A[q], x, y, copies, copy, t[q]));
  for (int q = 0; q < TYPES; q++) {
    double sum = 0.0, median;

    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s,%.0f,%s", name, (double)info.nz_used, types[q]));
    for (PetscInt k = 0, l = 0; l < LISTED; k++) {
      PetscCall(Median(copies, t[q] + k * copies, &median));
      sum += median;
      if (k + 1 < list[l]) continue;
      PetscCall(PetscPrintf(PETSC_COMM_SELF, ",%.0f", sum));
      l++;
    }
    PetscCall(PetscPrintf(PETSC_COMM_SELF, ",%s\n", ResultsSource(NULL)));
    PetscCall(PetscFree(t[q]));
    PetscCall(MatDestroy(&A[q]));
  }
  PetscCall(MatDestroy(&R));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char    *names[LIST_MOST];
  PetscInt n = 0, copies = 9;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscSpMVInitializePackage());
  PetscCall(GetNames("-matrices", NULL, LIST_MOST, &n, names));
  PetscCheck(n, PETSC_COMM_SELF, PETSC_ERR_USER, "Give matrices: -matrices stencil5:316,arrow:100000");
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-copies", &copies, NULL));
  PetscCheck(copies > 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-copies must be positive");
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "matrix,nonzeros,type"));
  for (PetscInt l = 0; l < LISTED; l++) PetscCall(PetscPrintf(PETSC_COMM_SELF, ",us_%" PetscInt_FMT, list[l]));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "," RESULTS_SOURCE "\n"));
  for (PetscInt k = 0; k < n; k++) PetscCall(Measure(names[k], copies));
  PetscCall(FreeNames(n, names));
  PetscCall(PetscFinalize());
  return 0;
}
