/*
   Shared by the benchmarks that compare matrix types in one run: the matrices of contenders, the file of results.
*/
#pragma once

#include "device.h"
#include "names.h"
#include "results.h"

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
