/*
   The matrices of the benchmark: files, and generators (patterns.h) where a file is not at hand. What is generated says so.
*/
#pragma once

#include <petscmat.h>
#include "../examples/mmload.h"
#include "patterns.h"

/* What bench.c runs if nothing is asked for: on the host, on a GPU, and a set that takes seconds */
static const char *const MatrixSet[] = {
    "stencil7:40",   "stencil7:100",    "stencil7:160", "bratu:100", "fem27:12:3", "fem27:30:3", "fem27:30:3:0.6", "fem27:40:1:0.9", "stencil5:1000",
    "stencil9:1000", "tridiag:1000000", "webbase",      "google",    "econ",       "dc1",        "random:8000",    "tsopf"};
static const char *const MatrixDeviceSet[] = {
    "stencil7:200", "bratu:200", "fem27:68:3", "fem27:68:3:0.6", "webbase", "google", "random:20000", "tsopf", "rowlen:tests/matrices/dc1.rowlen",
    "stencil7:32"};
static const char *const MatrixQuickSet[] = {"stencil7:20", "bratu:16", "fem27:6:3", "stencil9:60", "webbase:5000", "dc1:5000", "random:600", "tsopf:4000"};

static PetscErrorCode MatrixReserve(PetscCount n, PetscCount *max, PetscInt **j, PetscScalar **v)
{
  PetscFunctionBeginUser;
  if (n > *max) {
    *max = PetscMax(n, *max + *max / 2);
    PetscCall(PetscRealloc((size_t)*max * sizeof(**j), j));
    PetscCall(PetscRealloc((size_t)*max * sizeof(**v), v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatrixGenerate(MPI_Comm comm, const Spec *s, Mat *A)
{
  Row          r = {0, 0, 0, NULL};
  PetscInt     m = PETSC_DECIDE, N = s->rows, first, *i, *j = NULL;
  PetscCount   max = 0;
  PetscScalar *v   = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscSplitOwnership(comm, &m, &N));
  PetscCallMPI(MPI_Scan(&m, &first, 1, MPIU_INT, MPI_SUM, comm));
  first -= m;
  PetscCall(PetscMalloc1(m + 1, &i));
  i[0] = 0;
  PetscCall(MatrixReserve(8 * (PetscCount)m + 1, &max, &j, &v));
  for (PetscInt k = 0; k < m; k++) {
    RowGenerate(s, first + k, &r);
    PetscCheck((PetscCount)i[k] + r.n <= (PetscCount)PETSC_MAX_INT, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "More entries than a PetscInt counts");
    i[k + 1] = i[k] + r.n;
    PetscCall(MatrixReserve(i[k + 1], &max, &j, &v));
    PetscCall(PetscArraycpy(j + i[k], r.col, r.n));
    for (PetscInt e = 0; e < r.n; e++) {
      PetscScalar *value = v + i[k] + e;

      *value = RowValue(s, first + k, e, &r);
#if defined(PETSC_USE_COMPLEX)
      if (!s->generator->value) *value += PETSC_i * (RandomReal(&r.random) - 0.5);
#endif
    }
  }
  RowFree(&r);
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, m, m, N, N));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocationCSR(*A, i, j, v)); /* the one that does not apply does nothing */
  PetscCall(MatMPIAIJSetPreallocationCSR(*A, i, j, v));
  PetscCall(PetscFree(i));
  PetscCall(PetscFree(j));
  PetscCall(PetscFree(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The file of the matrix that twin:name stands for, if it is in the folder MATRICES */
static PetscErrorCode MatrixTwinFile(const char *name, char file[], size_t size, PetscBool *match)
{
  const char *folder = getenv("MATRICES");

  PetscFunctionBeginUser;
  PetscCall(PetscStrncmp(name, "twin:", 5, match));
  if (!*match) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(file, size, "%s/%s.mtx", folder && *folder ? folder : "../shared/matrices", name + 5));
  PetscCall(PetscTestFile(file, 'r', match));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* twin:all in a list of at most max names becomes all twins */
static inline PetscErrorCode MatrixListTwins(PetscInt max, PetscInt *n, char *list[])
{
  PetscBool all;

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < *n; k++) {
    PetscCall(PetscStrcmp(list[k], "twin:all", &all));
    if (!all) continue;
    PetscCheck(*n - 1 + TWINS <= max, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "More than %" PetscInt_FMT " matrices", max);
    PetscCall(PetscFree(list[k]));
    for (PetscInt q = *n - 1; q > k; q--) list[q + TWINS - 1] = list[q];
    for (PetscInt t = 0; t < TWINS; t++) {
      char name[64];

      PetscCall(PetscSNPrintf(name, sizeof(name), "twin:%s", Twins[t].name));
      PetscCall(PetscStrallocpy(name, &list[k + t]));
    }
    *n += TWINS - 1;
    k += TWINS - 1;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A generator's name with its numbers, rowlen:file, twin:name, or a file. origin says which */
static PetscErrorCode MatrixCreate(MPI_Comm comm, const char *name, Mat *A, const char **origin)
{
  Spec       s;
  char       message[PETSC_MAX_PATH_LEN], file[PETSC_MAX_PATH_LEN];
  PetscBool  match;
  SpecResult result;

  PetscFunctionBeginUser;
  PetscCall(MatrixTwinFile(name, file, sizeof(file), &match));
  if (match) name = file;
  result = SpecRead(name, &s, message, sizeof(message));
  PetscCheck(result != SPEC_WRONG, comm, PETSC_ERR_ARG_WRONG, "%s", message);
  if (result == SPEC_FOUND) {
    *origin = s.generator == &GeneratorTwin ? "twin" : (s.generator == &GeneratorRowLengths ? "columns generated" : "generated");
    PetscCall(MatrixGenerate(comm, &s, A));
    SpecFree(&s);
  } else {
    PetscCall(PetscTestFile(name, 'r', &match));
    if (!match) {
      for (size_t k = 0; k < GENERATORS; k++) PetscCall(PetscPrintf(comm, "  %s:%s\n", Generators[k].name, Generators[k].usage));
      PetscCall(PetscPrintf(comm, "  %s:%s\n", GeneratorRowLengths.name, GeneratorRowLengths.usage));
      PetscCall(PetscPrintf(comm, "  %s:%s\n", GeneratorTwin.name, GeneratorTwin.usage));
    }
    PetscCheck(match, comm, PETSC_ERR_ARG_WRONG, "%s is neither a file nor one of these", name);
    PetscCall(MatCreate(comm, A));
    PetscCall(MatSetType(*A, MATAIJ));
    PetscCall(MatLoadFile(comm, name, *A));
    *origin = "file";
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
