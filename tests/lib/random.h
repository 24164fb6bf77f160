/* Random numbers of the tests: the same in each run, and sums of a few of them are exact */
#pragma once

#include <petscsys.h>
#include <stdint.h>

extern uint64_t seed;

/* An integer from 0 to n - 1 */
PetscInt draw(PetscInt n);
/* True with the given probability in percent */
PetscBool Chance(PetscInt percent);
/* A multiple of 1/512 within [-2, 2) */
PetscScalar number(void);
