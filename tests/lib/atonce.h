/* Makes the first product set up the formats: matrices that a test multiplies only a few times must be tested with
   their format, too */
#pragma once

#include "matrices.h"

/* Call it after PetscInitialize(). An option on the command line has precedence */
static inline PetscErrorCode SetUpAtOnce(void)
{
  static const char option[] = "-mat_spmv_setup_after";
  PetscBool         set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasName(NULL, NULL, option, &set));
  if (!set) PetscCall(PetscOptionsSetValue(NULL, option, "0"));
  PetscCall(PetscOptionsHasName(NULL, NULL, option, &set)); /* marks the option as used, even if no matrix reads it */
  PetscFunctionReturn(PETSC_SUCCESS);
}
