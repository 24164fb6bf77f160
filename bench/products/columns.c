static char help[] =
    "Times products with dense matrices, C = A B by MatMatMult() with reuse, by matrix type and number of columns, on the GPU where PETSc has CUDA and the\n\
  machine a GPU.\n\
  -matrices <list> : generators (stencil7:100, fem27:60:3, bratu:200, ...; a wrong name prints them all) and files; on a GPU fourteen of them by default\n\
  -columns <1,2,4,8,16,32> : of B\n\
  -types <aij:product,sellp:loop,sellp:product,evchyb:product> : matrix type, and MatMatMult() or a loop of MatMult(), taking turns in one run. aij is\n\
                     aijcusparse on a GPU\n\
  -mkl <libmkl_rt.so.3> : for mkl:product among the types, MKL's product (one rank, host)\n\
  -reps <7>        : repetitions, of which the median counts\n\
  -csv <file>      : results to read by program\n\n";

/*
   The contenders' results are compared after the first product, and the program fails if they differ. The products of a
   repetition take about 2 ms on a GPU and 20 ms on the host, where the first products have to fill the caches again
   after the other contenders.
*/

#include "matrices.h"
#include "contenders.h"
#include "mkl.h"
#include "timing.h"

/* The default on a GPU: the matrices of bench/products/bench, and four finite element matrices */
static const char DeviceMatrices[] =
    "stencil7:200,bratu:200,fem27:68:3,fem27:68:3:0.6,webbase,google,random:20000,tsopf,"
    "rowlen:tests/matrices/dc1.rowlen,stencil7:32,fem27:60:3,fem27:60:3:1:0.01,fem27:48:2,fem27:26:6";

typedef struct {
  char      type[64], method[64];
  Mat       A, C;
  MKLMatrix mkl;      /* A for MKL, otherwise NULL */
  PetscInt  products; /* products per repetition */
  double   *t, us;
} Contender;

typedef struct {
  Mat      B;
  PetscInt columns;
  Vec     *x, *y; /* the same columns as vectors */
} Operands;

static PetscErrorCode ContenderCreate(const char *what, Mat A, PetscInt reps, Contender *c)
{
  PetscBool loop, product, mkl;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(c, sizeof(*c)));
  PetscCall(PetscStrcmp(what, "mkl:product", &mkl));
  PetscCall(ContenderRead(mkl ? "aij:product" : what, "sellp:product or sellp:loop", A, c->type, c->method, &c->A));
  if (mkl) {
    PetscCheck(MKL.handle, PETSC_COMM_WORLD, PETSC_ERR_ARG_WRONG,
               "-types: mkl:product needs the library's name, -mkl <libmkl_rt.so.3>, one rank and the host");
    PetscCall(MKLMatCreate(c->A, &c->mkl));
    PetscCall(PetscStrncpy(c->type, "mkl", sizeof(c->type)));
  }
  PetscCall(PetscStrcmp(c->method, "loop", &loop));
  PetscCall(PetscStrcmp(c->method, "product", &product));
  PetscCheck(loop || product, PETSC_COMM_WORLD, PETSC_ERR_ARG_WRONG, "-types: %s is neither a loop nor a product",
             what);
  PetscCall(PetscMalloc1(reps, &c->t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ContenderDestroy(Contender *c)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree(c->t));
  PetscCall(MKLMatDestroy(&c->mkl));
  PetscCall(MatDestroy(&c->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The columns of B are multiples of one random vector: a GPU computes these faster than the host can draw random
   numbers for all of them */
static PetscErrorCode OperandsCreate(Mat A, PetscInt columns, Operands *o)
{
  PetscInt n, N;
  Vec      random;

  PetscFunctionBeginUser;
  o->columns = columns;
  PetscCall(MatGetLocalSize(A, NULL, &n));
  PetscCall(MatGetSize(A, NULL, &N));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, n, PETSC_DECIDE, N, columns, NULL, &o->B));
#if defined(PETSC_HAVE_CUDA)
  if (DeviceOn) PetscCall(MatConvert(o->B, MATDENSECUDA, MAT_INPLACE_MATRIX, &o->B));
#endif
  PetscCall(MatCreateVecs(A, &random, NULL));
  PetscCall(VecSetRandom(random, NULL));
  PetscCall(PetscMalloc2(columns, &o->x, columns, &o->y));
  for (PetscInt q = 0; q < columns; q++) {
    Vec column;

    PetscCall(MatCreateVecs(A, &o->x[q], &o->y[q]));
    PetscCall(VecAXPBY(o->x[q], 1.0 + (PetscReal)q / (PetscReal)columns, 0.0, random));
    PetscCall(MatDenseGetColumnVecWrite(o->B, q, &column));
    PetscCall(VecCopy(o->x[q], column));
    PetscCall(MatDenseRestoreColumnVecWrite(o->B, q, &column));
  }
  PetscCall(VecDestroy(&random));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OperandsDestroy(Operands *o)
{
  PetscFunctionBeginUser;
  for (PetscInt q = 0; q < o->columns; q++) {
    PetscCall(VecDestroy(&o->x[q]));
    PetscCall(VecDestroy(&o->y[q]));
  }
  PetscCall(PetscFree2(o->x, o->y));
  PetscCall(MatDestroy(&o->B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Multiply(Contender *c, const Operands *o, PetscInt products, double *seconds)
{
  PetscLogDouble start;

  PetscFunctionBeginUser;
  PetscCall(TimeBegin(PETSC_COMM_WORLD, &start));
  for (PetscInt k = 0; k < products; k++) {
    if (c->mkl && c->C) /* AIJ's product has created C */
      PetscCall(MKLMatMatMult(c->mkl, o->B, c->C));
    else if (c->method[0] == 'l') {
      for (PetscInt q = 0; q < o->columns; q++) PetscCall(MatMult(c->A, o->x[q], o->y[q]));
    } else
      PetscCall(MatMatMult(c->A, o->B, c->C ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &c->C));
  }
  PetscCall(TimeEnd(PETSC_COMM_WORLD, start, seconds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fails unless the contender's C, or the vectors y, are the columns of the first one's */
static PetscErrorCode Check(const Contender *c, const Operands *o, Mat first)
{
  PetscFunctionBeginUser;
  for (PetscInt q = 0; q < o->columns; q++) {
    Vec       want, difference;
    PetscReal norm, error;

    PetscCall(MatDenseGetColumnVecRead(first, q, &want));
    PetscCall(VecDuplicate(o->y[q], &difference));
    PetscCall(VecNorm(want, NORM_INFINITY, &norm));
    if (c->C) {
      Vec own;

      PetscCall(VecCopy(want, difference));
      PetscCall(MatDenseRestoreColumnVecRead(first, q, &want)); /* a matrix has one such vector at a time */
      PetscCall(MatDenseGetColumnVecRead(c->C, q, &own));
      PetscCall(VecAXPY(difference, -1.0, own));
      PetscCall(MatDenseRestoreColumnVecRead(c->C, q, &own));
    } else {
      PetscCall(VecWAXPY(difference, -1.0, o->y[q], want));
      PetscCall(MatDenseRestoreColumnVecRead(first, q, &want));
    }
    PetscCall(VecNorm(difference, NORM_INFINITY, &error));
    PetscCall(VecDestroy(&difference));
    PetscCheck(error <= 1e4 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB,
               "Column %" PetscInt_FMT " of %s, %s differs by %g of %g", q, c->type, c->method, (double)error,
               (double)norm);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All contenders take turns */
static PetscErrorCode Measure(PetscInt n, Contender c[], const Operands *o, PetscInt reps)
{
  double median, once;

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(Multiply(&c[k], o, 2, &once)); /* set-up */
    PetscCheck(c[0].C, PETSC_COMM_WORLD, PETSC_ERR_ARG_WRONG, "-types: the first one must be a product");
    if (k) PetscCall(Check(&c[k], o, c[0].C));
    PetscCall(Multiply(&c[k], o, 2, &once));
    c[k].products = (PetscInt)PetscMax(1.0, PetscMin(100.0, (DeviceOn ? 2e-3 : 2e-2) / (0.5 * once)));
  }
  for (PetscInt r = 0; r < reps; r++) {
    for (PetscInt k = 0; k < n; k++) PetscCall(Multiply(&c[k], o, c[k].products, &c[k].t[r]));
  }
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(Median(reps, c[k].t, &median));
    c[k].us = 1e6 * median / (double)c[k].products;
    PetscCall(MatDestroy(&c[k].C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -columns */
static PetscInt ncolumns = MAXIMUM, columns[MAXIMUM];

static PetscErrorCode Options(const Contest *contest)
{
  static const PetscInt by_default[] = {1, 2, 4, 8, 16, 32};
  char                  library[PETSC_MAX_PATH_LEN];
  PetscBool             set;
  PetscMPIInt           size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mkl", library, sizeof(library), &set));
  if (set && size == 1 && !DeviceOn) PetscCall(MKLOpen(library));
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-columns", columns, &ncolumns, &set));
  if (set) PetscFunctionReturn(PETSC_SUCCESS);
  ncolumns = PETSC_STATIC_ARRAY_LENGTH(by_default);
  PetscCall(PetscArraycpy(columns, by_default, ncolumns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunMatrix(const char *name, Contest *contest)
{
  const char *origin = NULL;
  Mat         A;
  Contender   c[MAXIMUM];
  Operands    o;

  PetscFunctionBeginUser;
  PetscCall(MatrixCreate(PETSC_COMM_WORLD, name, &A, &origin));
  for (PetscInt k = 0; k < contest->ntypes; k++) PetscCall(ContenderCreate(contest->types[k], A, contest->reps, &c[k]));
  PetscCall(MatDestroy(&A));
  for (PetscInt s = 0; s < ncolumns; s++) {
    PetscCall(OperandsCreate(c[0].A, columns[s], &o));
    PetscCall(Measure(contest->ntypes, c, &o, contest->reps));
    PetscCall(OperandsDestroy(&o));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-22s %4" PetscInt_FMT " columns:", name, columns[s]));
    for (PetscInt k = 0; k < contest->ntypes; k++) {
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  %s:%s %9.1f us", c[k].type, c[k].method, c[k].us));
      PetscCall(ContestRecord(contest, name, c[0].A, "%lld,%s,%s,%.3f", (long long)columns[s], c[k].type, c[k].method,
                              c[k].us));
    }
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
  }
  for (PetscInt k = 0; k < contest->ntypes; k++) PetscCall(ContenderDestroy(&c[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const Benchmark products = {
      .help            = help,
      .matrices        = "stencil7:20,fem27:6:3",
      .device_matrices = DeviceMatrices,
      .types           = "aij:product,sellp:loop,sellp:product,evchyb:product",
      .columns         = CONTEST_MATRIX "columns,type,method,us" CONTEST_SOURCE,
      .reps            = 7,
      .options         = Options,
      .run             = RunMatrix,
  };

  return ContestMain(argc, argv, &products);
}
