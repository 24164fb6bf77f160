/* Makes the first product set up the formats: matrices that a test multiplies only a few times must be tested with
   their format, too */
#pragma once

#include "matrices.h"

/* Call it after PetscInitialize(), for the type under test and the types combined with it. An option on the command
   line has precedence */
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
    PetscCall(PetscOptionsHasName(NULL, NULL, option, &set)); /* marks the option as used, even if no matrix reads it */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
