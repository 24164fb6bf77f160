/*
   A list of names in an option, such as -matrices. Benchmarks and tests read all such options with GetNames().
*/
#pragma once

#include <petscsys.h>

#if !defined(PETSC_SUCCESS) /* PETSc 3.18 */
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

/* The names in a text, such as "aij,sellp", at most `most`; `what` is their name in an error message */
static inline PetscErrorCode SplitNames(const char *what, const char *text, PetscInt most, PetscInt *n, char *list[])
{
  int    words;
  char **word;

  PetscFunctionBeginUser;
  *n = 0;
  PetscCall(PetscStrToArray(text, ',', &words, &word));
  PetscCheck(words <= most, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%s lists %d names, more than %" PetscInt_FMT,
             what, words, most);
  for (; *n < words; (*n)++) PetscCall(PetscStrallocpy(word[*n], &list[*n]));
  PetscCall(PetscStrToArrayDestroy(words, word));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The names in an option, otherwise those in by_default, which may be NULL. PetscOptionsGetStringArray() silently leaves
   out names if there are too many, which then would neither be measured nor tested; here that is an error */
static inline PetscErrorCode GetNames(const char *option, const char *by_default, PetscInt most, PetscInt *n,
                                      char *list[])
{
  const char *text = NULL;
  PetscBool   set;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsFindPair(NULL, NULL, option, &text, &set));
  PetscCall(SplitNames(option, set ? text : by_default, most, n, list));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode FreeNames(PetscInt n, char *list[])
{
  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < n; k++) PetscCall(PetscFree(list[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}
