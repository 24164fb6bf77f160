/*
   Shared by the benchmarks that compare matrix types in one run: the program, the matrices of contenders, the file of
   results.
*/
#pragma once

#include "device.h"
#include "names.h"
#include "results.h"
#include <petscspmv.h>
#include <stdarg.h>

enum { MAXIMUM = 64 };

/* Reads the type and the method from, for example, "sellp:cg", and converts A to this type; A keeps the result for
   further contenders. aij is aijcusparse on a GPU */
static inline PetscErrorCode ContenderRead(const char *what, const char *example, Mat A, char type[64], char method[64],
                                           Mat *B)
{
  const char *colon = strchr(what, ':');
  char        name[80];
  PetscBool   aij;

  PetscFunctionBeginUser;
  PetscCheck(colon, PETSC_COMM_WORLD, PETSC_ERR_ARG_WRONG, "-types: %s has no method; write %s", what, example);
  PetscCall(PetscStrncpy(type, what, PetscMin(64, (size_t)(colon - what) + 1)));
  PetscCall(PetscStrncpy(method, colon + 1, 64));
  PetscCall(PetscStrcmp(type, MATAIJ, &aij));
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s%s", type, aij && DeviceOn ? "cusparse" : ""));
  PetscCall(PetscObjectQuery((PetscObject)A, name, (PetscObject *)B));
  if (*B)
    PetscCall(PetscObjectReference((PetscObject)*B));
  else {
    PetscCall(MatConvert(A, name, MAT_INITIAL_MATRIX, B));
    PetscCall(PetscObjectCompose((PetscObject)A, name, (PetscObject)*B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Opens the file given by -csv on the first rank and writes its first line; NULL on other ranks and without the option
   */
static inline PetscErrorCode OpenCSV(const char *line, Results *results, FILE **csv)
{
  char        name[PETSC_MAX_PATH_LEN];
  PetscBool   set;
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  *csv = NULL;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-csv", name, sizeof(name), &set));
  if (!set || rank) PetscFunctionReturn(PETSC_SUCCESS);
  *csv = ResultsOpen(results, name, 0);
  PetscCheck(*csv, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-csv %s: cannot write %s", name, results->part);
  fprintf(*csv, "%s\n", line);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode CloseCSV(FILE *csv, Results *results)
{
  PetscFunctionBeginUser;
  PetscCheck(!csv || !ResultsClose(results), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "-csv %s: not written",
             results->name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What all of them read from options */
typedef struct {
  PetscInt nmatrices, ntypes, nmore, reps;
  char    *matrices[MAXIMUM], *types[MAXIMUM], *more[MAXIMUM];
  FILE    *csv;
  Results  results;
} Contest;

/* A benchmark: its defaults and its functions */
typedef struct {
  const char *help, *matrices, *device_matrices, *types;
  const char *list, *more; /* another option that is a list, such as "-pcs", and its default; or NULL */
  const char *columns;     /* of the file of results */
  PetscInt    reps;
  PetscErrorCode (*options)(const Contest *); /* reads further options; or NULL */
  PetscErrorCode (*run)(const char *matrix, Contest *);
} Benchmark;

static inline PetscErrorCode ContestRun(const Benchmark *b, Contest *c)
{
  PetscFunctionBeginUser;
  PetscCall(PetscSpMVInitializePackage());
  PetscCall(DeviceOpen());
  PetscCall(GetNames("-matrices", DeviceOn ? b->device_matrices : b->matrices, MAXIMUM, &c->nmatrices, c->matrices));
  PetscCall(GetNames("-types", b->types, MAXIMUM, &c->ntypes, c->types));
  if (b->list) PetscCall(GetNames(b->list, b->more, MAXIMUM, &c->nmore, c->more));
  c->reps = b->reps;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-reps", &c->reps, NULL));
  PetscCheck(c->reps > 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-reps is %" PetscInt_FMT ": it must be positive",
             c->reps);
  if (b->options) PetscCall((*b->options)(c));
  PetscCall(OpenCSV(b->columns, &c->results, &c->csv));
  for (PetscInt k = 0; k < c->nmatrices; k++) {
    PetscCall((*b->run)(c->matrices[k], c));
    if (c->csv) (void)fflush(c->csv); /* the run may be interrupted */
  }
  PetscCall(CloseCSV(c->csv, &c->results));
  PetscCall(FreeNames(c->nmatrices, c->matrices));
  PetscCall(FreeNames(c->ntypes, c->types));
  PetscCall(FreeNames(c->nmore, c->more));
  PetscCall(DeviceClose());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The main function */
static inline int ContestMain(int argc, char **argv, const Benchmark *b)
{
  static Contest c;

  PetscCall(PetscInitialize(&argc, &argv, NULL, b->help));
  PetscCall(ContestRun(b, &c));
  PetscCall(PetscFinalize());
  return 0;
}

#define CONTEST_MATRIX "matrix,rows,nonzeros,ranks," /* the first columns of the file of results */
#define CONTEST_SOURCE ",device," RESULTS_SOURCE     /* the last ones */

/* Writes a line with the given text in between */
static inline PetscErrorCode ContestRecord(const Contest *c, const char *matrix, Mat A, const char *format, ...)
{
  MatInfo     info;
  PetscInt    rows;
  PetscMPIInt size;
  va_list     list;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &rows, NULL));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (!c->csv) PetscFunctionReturn(PETSC_SUCCESS);
  fprintf(c->csv, "%s,%lld,%.0f,%d,", matrix, (long long)rows, info.nz_used, (int)size);
  va_start(list, format);
  (void)vfprintf(c->csv, format, list);
  va_end(list);
  fprintf(c->csv, ",%s,%s\n", DeviceOn ? Device.name : "host", ResultsSource(DeviceOn ? Device.name : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}
