/* Formats that are set up by the first product: what tests have few products of must be tested, too */
#pragma once

#include "matrices.h"

/* After PetscInitialize(): the type under test, and those that it is combined with. An option of the command line stays */
static inline PetscErrorCode SetUpAtOnce(void)
{
  char              under[64] = "sellp";
  const char *const types[]   = {under, "sellp", "evchyb"};

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-type", under, sizeof(under), NULL));
  for (int k = 0; k < 3; k++) {
    char      option[128];
    PetscBool set;

    PetscCall(PetscSNPrintf(option, sizeof(option), "-mat_%s_setup_after", types[k]));
    PetscCall(PetscOptionsHasName(NULL, NULL, option, &set));
    if (set) continue;
    PetscCall(PetscOptionsSetValue(NULL, option, "0"));
    PetscCall(PetscOptionsHasName(NULL, NULL, option, &set)); /* used, even if no matrix reads it */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
