/*
  Solves in tests: options for one solver, and what is recorded of it.
*/
#pragma once

#include "harness.h"

/* With single precision the estimates of eigenvalues, and with them all later steps, depend on rounding: only whether a solver converges is compared */
#define SINGLE PetscDefined(USE_REAL_SINGLE)
#define RTOL   (SINGLE ? 1e-3 : 1e-8)

/* The prefix of the options that were set last */
extern char prefix[16];

/*
  Adds "-pc_type ilu -x y" to the options database, and removes it again. The prefix is new each time: what an operation that
  failed has left there must not reach the next.
*/
PetscErrorCode Options(const char *options, PetscBool set);

/*
  Residuals of a Krylov method: the products' rounding grows on the way, most of all through the eigenvalues that a few steps
  of GMRES estimate for a smoother, so only the first digits can agree. Packages that
  coarsen with random numbers of their own (random) take other steps at every run in a process, whatever the type.
*/
PetscErrorCode RecordHistory(Record *r, KSP ksp, PetscBool random);
