/* Operations of tests/options.c in a separate file, and functions that both files use */
#pragma once

#include "../lib/harness.h"

PetscErrorCode SetUpAfter(Test *, Record *);
PetscErrorCode Threads(Test *, Record *);
PetscErrorCode SmallMemory(Test *, Record *);
PetscErrorCode Replace(Test *, Record *);
