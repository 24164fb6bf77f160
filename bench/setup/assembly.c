static char help[] =
    "Times assembly from coordinates (COO): MatSetPreallocationCOO(), MatSetValuesCOO() and the first product, by matrix type, including the device's work.\n\
  -matrices <stencil7:200> : stencil7:N, the entries of a 7-point stencil of N^3 points, row by row, those of points outside with a negative column;\n\
                             elements:N:D, the dense matrices of N^3 trilinear elements of D unknowns per node, one after the other: nodes share entries\n\
  -types <aij,sellp>       : matrix types, taking turns. aij is aijcusparse on a GPU\n\
  -places <host>           : where the program's arrays are, host or device\n\
  -reps <3>                : repetitions, of which the median counts\n\
  -csv <file>              : results to read by program\n\n";

/*
   Columns, in seconds: preallocation; the first values and the first product after it; later values; later values and a
   product; a product. Each type's product is compared with that of the first type.
*/

#include "contenders.h"
#include "timing.h"

enum { STAGES = 5, REPETITIONS = 32 };

typedef struct {
  PetscInt   rows;
  PetscCount n;
  /* copies with the length of the program's arrays, because MatSetPreallocationCOO() may change its arguments */
  PetscInt    *i, *j;
  PetscScalar *v;
} Coordinates;

typedef struct {
  char   type[64];
  double t[STAGES][REPETITIONS];
} Contender;

/* ---------------------------------------------------------------- coordinates */

static PetscErrorCode CoordinatesAllocate(PetscCount n, PetscInt rows, Coordinates *c)
{
  PetscFunctionBeginUser;
  c->n    = n;
  c->rows = rows;
  PetscCall(PetscMalloc1(n, &c->i));
  PetscCall(PetscMalloc1(n, &c->j));
  PetscCall(PetscMalloc1(n, &c->v));
  for (PetscCount q = 0; q < n; q++) c->v[q] = 0.5 + (PetscReal)(q % 1021) / 1021;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Stencil(PetscInt N, Coordinates *c)
{
  PetscCount q = 0;

  PetscFunctionBeginUser;
  PetscCall(CoordinatesAllocate((PetscCount)7 * N * N * N, N * N * N, c));
  for (PetscInt k = 0; k < N; k++) {
    for (PetscInt j = 0; j < N; j++) {
      for (PetscInt i = 0; i < N; i++) {
        const PetscInt  row     = (k * N + j) * N + i;
        const PetscInt  step[7] = {0, -N * N, -N, -1, 1, N, N * N};
        const PetscBool in[7]   = {PETSC_TRUE,
                                   (PetscBool)(k > 0),
                                   (PetscBool)(j > 0),
                                   (PetscBool)(i > 0),
                                   (PetscBool)(i < N - 1),
                                   (PetscBool)(j < N - 1),
                                   (PetscBool)(k < N - 1)};

        for (int s = 0; s < 7; s++, q++) {
          c->i[q] = row;
          c->j[q] = in[s] ? row + step[s] : -1;
        }
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Elements(PetscInt N, PetscInt D, Coordinates *c)
{
  const PetscInt P = N + 1; /* nodes per side */
  PetscCount     q = 0;

  PetscFunctionBeginUser;
  PetscCall(CoordinatesAllocate((PetscCount)N * N * N * 64 * D * D, P * P * P * D, c));
  for (PetscInt e = 0; e < N * N * N; e++) {
    const PetscInt corner = (e / (N * N) * P + e / N % N) * P + e % N;

    for (int a = 0; a < 8 * D; a++) {
      const int n = a / D;

      for (int b = 0; b < 8 * D; b++, q++) {
        const int m = b / D;

        c->i[q] = (corner + ((n / 4) * P + n / 2 % 2) * P + n % 2) * D + a % D;
        c->j[q] = (corner + ((m / 4) * P + m / 2 % 2) * P + m % 2) * D + b % D;
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CoordinatesCreate(const char *name, Coordinates *c)
{
  long n, d = 1;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(c, sizeof(*c)));
  if (sscanf(name, "stencil7:%ld", &n) == 1)
    PetscCall(Stencil((PetscInt)n, c));
  else {
    PetscCheck(sscanf(name, "elements:%ld:%ld", &n, &d) >= 1, PETSC_COMM_WORLD, PETSC_ERR_ARG_WRONG,
               "-matrices: %s is neither stencil7:N nor elements:N:D", name);
    PetscCall(Elements((PetscInt)n, (PetscInt)d, c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CoordinatesDestroy(Coordinates *c)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree(c->i));
  PetscCall(PetscFree(c->j));
  PetscCall(PetscFree(c->v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A copy of an array, on the device or on the host, that the library may change */
static PetscErrorCode CopyCreate(PetscBool device, const void *from, size_t bytes, void **to)
{
  PetscFunctionBeginUser;
#if defined(PETSC_HAVE_CUDA)
  if (device) {
    PetscCallCUDA(cudaMalloc(to, bytes));
    PetscCallCUDA(cudaMemcpy(*to, from, bytes, cudaMemcpyHostToDevice));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#else
  (void)device;
#endif
  PetscCall(PetscMalloc(bytes, to));
  PetscCall(PetscMemcpy(*to, from, bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyDestroy(PetscBool device, void *copy)
{
  PetscFunctionBeginUser;
#if defined(PETSC_HAVE_CUDA)
  if (device) {
    PetscCallCUDA(cudaFree(copy));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#else
  (void)device;
#endif
  PetscCall(PetscFree(copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- measurements */

/* One assembly by a type; y is its product with ones */
static PetscErrorCode Assemble(const Coordinates *c, PetscBool device, int rep, Contender *k, double *nonzeros, Vec *y)
{
  Mat            A;
  Vec            x;
  void          *i, *j, *v;
  PetscLogDouble t = 0.0;
  MatInfo        info;
  double         once[2];
  const int      times = 5;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, c->rows, c->rows, c->rows, c->rows));
  PetscCall(MatSetType(A, k->type));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatCreateVecs(A, &x, y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(VecSet(*y, 0.0));
  PetscCall(CopyCreate(device, c->i, (size_t)c->n * sizeof(*c->i), &i));
  PetscCall(CopyCreate(device, c->j, (size_t)c->n * sizeof(*c->j), &j));
  PetscCall(CopyCreate(device, c->v, (size_t)c->n * sizeof(*c->v), &v));
  PetscCall(TimeBegin(PETSC_COMM_WORLD, &t));
  PetscCall(MatSetPreallocationCOO(A, c->n, (PetscInt *)i, (PetscInt *)j));
  PetscCall(TimeEnd(PETSC_COMM_WORLD, t, &k->t[0][rep]));
  PetscCall(TimeBegin(PETSC_COMM_WORLD, &t));
  PetscCall(MatSetValuesCOO(A, (PetscScalar *)v, INSERT_VALUES));
  PetscCall(MatMult(A, x, *y));
  PetscCall(TimeEnd(PETSC_COMM_WORLD, t, &k->t[1][rep]));
  for (int s = 2; s < STAGES; s++) k->t[s][rep] = 1e30;
  for (int n = 0; n < times; n++) {
    for (int s = 0; s < 2; s++) { /* without a product, and with one */
      PetscCall(TimeBegin(PETSC_COMM_WORLD, &t));
      PetscCall(MatSetValuesCOO(A, (PetscScalar *)v, INSERT_VALUES));
      if (s) PetscCall(MatMult(A, x, *y));
      PetscCall(TimeEnd(PETSC_COMM_WORLD, t, &once[s]));
      k->t[2 + s][rep] = PetscMin(k->t[2 + s][rep], once[s]);
    }
    PetscCall(TimeBegin(PETSC_COMM_WORLD, &t));
    PetscCall(MatMult(A, x, *y));
    PetscCall(TimeEnd(PETSC_COMM_WORLD, t, &once[0]));
    k->t[4][rep] = PetscMin(k->t[4][rep], once[0]);
  }
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  *nonzeros = info.nz_used;
  PetscCall(CopyDestroy(device, i));
  PetscCall(CopyDestroy(device, j));
  PetscCall(CopyDestroy(device, v));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(const char *type, Vec y, Vec *first)
{
  PetscReal norm, difference;

  PetscFunctionBeginUser;
  if (!*first) {
    *first = y;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecNorm(*first, NORM_INFINITY, &norm));
  PetscCall(VecAXPY(y, -1.0, *first));
  PetscCall(VecNorm(y, NORM_INFINITY, &difference));
  PetscCheck(difference <= (PetscDefined(USE_REAL_SINGLE) ? 1e-4 : 1e-12) * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB,
             "Product of %s differs by %g of %g", type, (double)difference, (double)norm);
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(const char *matrix, const char *place, Contest *contest)
{
  const PetscInt  ntypes = contest->ntypes, reps = contest->reps;
  const PetscBool device = (PetscBool)!strcmp(place, "device");
  Coordinates     c;
  Contender      *k;
  Vec             first    = NULL, y;
  double          nonzeros = 0.0, median[STAGES];

  PetscFunctionBeginUser;
  PetscCheck(!device || DeviceOn, PETSC_COMM_WORLD, PETSC_ERR_SUP, "-places device needs a GPU");
  PetscCall(PetscCalloc1(ntypes, &k));
  PetscCall(CoordinatesCreate(matrix, &c));
  for (PetscInt rep = 0; rep < reps; rep++) {
    for (PetscInt n = 0; n < ntypes; n++) {
      PetscCall(PetscSNPrintf(k[n].type, sizeof(k[n].type), "%s%s", contest->types[n],
                              DeviceOn && !strcmp(contest->types[n], MATAIJ) ? "cusparse" : ""));
      PetscCall(Assemble(&c, device, (int)rep, &k[n], &nonzeros, &y));
      PetscCall(Compare(k[n].type, y, &first));
    }
  }
  for (PetscInt n = 0; n < ntypes; n++) {
    for (int s = 0; s < STAGES; s++) PetscCall(Median(reps, k[n].t[s], &median[s]));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-16s %-6s %-12s %11.0f %11.0f %9.4f %9.4f %9.3f %9.3f %9.3f\n", matrix,
                          place, k[n].type, (double)c.n, nonzeros, median[0], median[1], 1e3 * median[2],
                          1e3 * median[3], 1e3 * median[4]));
    if (contest->csv)
      fprintf(contest->csv, "%s,%s,%s,%.0f,%.0f,%.6f,%.6f,%.6f,%.6f,%.6f,%s\n", matrix, place, k[n].type, (double)c.n,
              nonzeros, median[0], median[1], median[2], median[3], median[4],
              ResultsSource(DeviceOn ? Device.name : NULL));
  }
  PetscCall(VecDestroy(&first));
  PetscCall(CoordinatesDestroy(&c));
  PetscCall(PetscFree(k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Options(const Contest *contest)
{
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCheck(size == 1, PETSC_COMM_WORLD, PETSC_ERR_WRONG_MPI_SIZE, "This program runs on one process");
  PetscCheck(contest->reps <= REPETITIONS, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE,
             "-reps is %" PetscInt_FMT ": it must be 1 to %d", contest->reps, REPETITIONS);
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-16s %-6s %-12s %11s %11s %9s %9s %9s %9s %9s\n", "matrix", "arrays",
                        "type", "entries", "nonzeros", "prealloc/s", "first/s", "values/ms", "+product", "product"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunMatrix(const char *matrix, Contest *contest)
{
  PetscFunctionBeginUser;
  for (PetscInt p = 0; p < contest->nmore; p++) PetscCall(Measure(matrix, contest->more[p], contest));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const Benchmark assembly = {
      .help            = help,
      .matrices        = "stencil7:200",
      .device_matrices = "stencil7:200",
      .types           = "aij,sellp",
      .list            = "-places",
      .more            = "host",
      .columns = "matrix,arrays,type,entries,nonzeros,preallocation_s,first_s,values_s,values_product_s,product_"
                 "s," RESULTS_SOURCE,
      .reps    = 3,
      .options = Options,
      .run     = RunMatrix,
  };

  return ContestMain(argc, argv, &assembly);
}
