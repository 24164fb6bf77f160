#include "random.h"

uint64_t seed = 88172645463325252u;

PetscInt draw(PetscInt n)
{
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return n > 0 ? (PetscInt)(seed % (uint64_t)n) : 0;
}

PetscBool Chance(PetscInt percent)
{
  return (PetscBool)(draw(100) < percent);
}

PetscScalar number(void)
{
  const PetscReal re = (PetscReal)(draw(2000) - 1000) / 512, im = (PetscReal)(draw(2000) - 1000) / 512;

  (void)im;
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(re, im);
#else
  return re;
#endif
}
