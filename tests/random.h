/* Random numbers of tests: the same at each run, and sums of few of them are exact */
#pragma once

#include <petscsys.h>
#include <stdint.h>

static uint64_t seed = 88172645463325252u;

static inline PetscInt draw(PetscInt n)
{
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return n > 0 ? (PetscInt)(seed % (uint64_t)n) : 0;
}

static inline PetscScalar number(void)
{
  const PetscReal re = (PetscReal)(draw(2000) - 1000) / 512, im = (PetscReal)(draw(2000) - 1000) / 512;

  (void)im;
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(re, im);
#else
  return re;
#endif
}
