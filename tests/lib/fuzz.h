/*
  The driver of a fuzzer. One random number, the seed, determines a case on all ranks. The message of a failure, a crash
  or a hang names the seed, the options and the steps so far, and the command line that repeats the case.

  Options: -type T, -seed S (of the first case; each further case has the next number), -first K (begin with seed S +
  K), -count N and -seconds T (whichever comes first), -steps N (at most N steps per case, to shorten a failing case),
  -ops a,b, -skip a,b, -failures N (stop after N failures), -limit T (seconds that a case may take), -expect
  host|device, -verbose.
*/
#pragma once

#include "harness.h"
#include "random.h"

typedef struct {
  MPI_Comm    comm;
  PetscMPIInt rank, size;
  const char *program;
  char        type[64];
  PetscBool   device;     /* the type under test computes on a device */
  PetscInt    number;     /* the seed of the case */
  const char *running;    /* the type that an operation runs on now */
  PetscBool   logging;    /* the steps are logged only when they run on the first type */
  char        log[3000];  /* options and steps */
  char        error[400]; /* the first error of a step */
  PetscInt    bad;        /* failures of this case on this rank */
  PetscInt    steps, nonly, nskip;
  PetscInt64  checks; /* rows compared */
  char       *only[64], *skip[64];
  PetscBool   verbose;
  PetscInt    limit;
} Fuzz;

extern Fuzz fuzz;

/* The program: runs the cases */
int FuzzMain(int argc, char **argv, const char *program, const char *type, PetscErrorCode (*one)(void));

/* The random numbers that follow depend only on the case and the stream: the same on every rank and for both types */
void FuzzSeed(uint64_t stream);
/* Adds to the description of the case in the message of a failure */
PETSC_ATTRIBUTE_FORMAT(1, 2) void FuzzLog(const char *format, ...);
/* Prints a failure of the case */
PETSC_ATTRIBUTE_FORMAT(1, 2) void FuzzReport(const char *format, ...);
/* Collective. Sets `any` to the largest value among the ranks: whether something is wrong on any rank */
PetscErrorCode FuzzAgree(int *any);
