/* Formats that are set up by the first product: what tests have few products of must be tested, too */
#pragma once

#include "matrices.h"

/* After PetscInitialize(); an option of the command line stays */
static inline PetscErrorCode SetUpAtOnce(void)
{
  const char *const types[] = {"sellp", "evchyb"};

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    char      option[64];
    PetscBool set;

    PetscCall(PetscSNPrintf(option, sizeof(option), "-mat_%s_setup_after", types[k]));
    PetscCall(PetscOptionsHasName(NULL, NULL, option, &set));
    if (set) continue;
    PetscCall(PetscOptionsSetValue(NULL, option, "0"));
    PetscCall(PetscOptionsHasName(NULL, NULL, option, &set)); /* used, even if no matrix reads it */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
