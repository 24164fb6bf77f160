/*
  Solves in tests: options for one solver, and the records of its results.
*/
#pragma once

#include "harness.h"

/* In single precision, the estimates of eigenvalues, and therefore all later steps, depend on rounding. Only the
   convergence of a solver is compared */
#define SINGLE PetscDefined(USE_REAL_SINGLE)
#define RTOL   (SINGLE ? 1e-3 : 1e-8)

/* The prefix of the options that were set last */
extern char prefix[16];

/*
  Adds options such as "-pc_type ilu -x y" to the options database, or removes them again. The prefix is new each time,
  so that options left there by a failed operation do not affect the next one.
*/
PetscErrorCode Options(const char *options, PetscBool set);

/* A solver for A, with the options of the prefix and at most so many iterations, which keeps its residuals */
PetscErrorCode MakeSolver(MPI_Comm comm, Mat A, PetscInt most, KSP *ksp);

/* Two solves, recorded as RecordHistory() does it; in between the diagonal is shifted and all values change. ksp may be
   NULL */
PetscErrorCode SolveTwice(Record *r, Mat A, PetscInt most, PetscScalar shift, PetscBool random, KSP *ksp);

/*
  Records the residuals of a Krylov method. The rounding errors of the products grow during the iterations, most of all
  through the eigenvalues that a few steps of GMRES estimate for a smoother, so only the first digits can agree.
  Packages that coarsen with their own random numbers (random) take different steps in every solve of a process, with
  any type.
*/
PetscErrorCode RecordHistory(Record *r, KSP ksp, PetscBool random);
