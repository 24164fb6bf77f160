/*
   A list of names in an option, such as -matrices.
*/
#pragma once

#include <petscsys.h>

/* At most `most` names. PetscOptionsGetStringArray() silently leaves out further ones, which then would not be
   measured; here they are an error */
static inline PetscErrorCode GetNamesOption(const char *option, PetscInt most, PetscInt *n, char *list[],
                                            PetscBool *set)
{
  const char *text  = NULL;
  PetscInt    given = 1;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsFindPair(NULL, NULL, option, &text, set));
  for (; text && *text; text++) given += *text == ',';
  PetscCheck(given <= most, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "%s lists %" PetscInt_FMT " names, more than %" PetscInt_FMT, option, given, most);
  *n = most;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, option, list, n, set));
  if (!*set) *n = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
