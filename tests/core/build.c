/* A library that was built for a different PETSc than the program's reports it */
#include "common.h"
#include "sys/petscbuild.h"
#include <string.h>

static void Refused(const char *what, const SpMVPetscBuild *built, const char *word)
{
  const SpMVPetscBuild program       = SpMVPetscBuildGet();
  char                 sentence[512] = "";

  Expect(SpMVPetscBuildsDiffer(built, &program, sizeof(sentence), sentence), "another %s is not noticed", what);
  Expect(strstr(sentence, word), "another %s: '%s' lacks '%s'", what, sentence, word);
  Expect(strlen(sentence) < sizeof(sentence) - 1, "another %s: '%s' is cut", what, sentence);
}

int main(int argc, char **argv)
{
  const SpMVPetscBuild ours = SpMVPetscBuiltFor;
  SpMVPetscBuild       other, program;
  char                 sentence[512];

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  program = SpMVPetscBuildGet();
  Expect(!SpMVPetscBuildsDiffer(&ours, &program, sizeof(sentence), sentence), "the same PETSc is refused: %s",
         sentence);
  PetscCall(SpMVPetscBuildCheck());

  other = ours, other.major = 2;
  Refused("major version", &other, " (2.");
  other = ours, other.minor = 99;
  Refused("minor version", &other, ".99, ");
  other = ours, other.release = PETSC_FALSE;
  if (ours.release) Refused("kind of release", &other, "development version");
  other = ours, other.bits = 96 - ours.bits;
  Refused("size of indices", &other, ours.bits == 32 ? "64-bit" : "32-bit");
  other = ours, other.debug = ours.debug ? PETSC_FALSE : PETSC_TRUE;
  Refused("optimization", &other, ours.debug ? "(3." : "debug) than");
  other = ours, other.complex_ = ours.complex_ ? PETSC_FALSE : PETSC_TRUE;
  Refused("scalar type", &other, ours.complex_ ? ", real" : ", complex");
  other = ours, other.real_bits = 96 - ours.real_bits;
  Refused("precision", &other, ours.real_bits == 64 ? ", single" : ", ");
  other = ours, other.real_bits = 128;
  Refused("precision", &other, ", quadruple");
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
