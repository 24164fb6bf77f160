/*
  Checks that the program uses the PETSc that the library was built for. PETSC_VERSION, PetscInt, ... are those of the
  PETSc that the library was compiled with, but the functions called are those of the program's PETSc, because the
  dynamic linker finds these first.

  Nothing in this file uses PetscFunctionBegin or PetscCall: in a debug build of PETSc they use a variable, petscstack,
  which an optimized build does not have. The references to it are weak (see the makefile), so that the library can be
  loaded and can report the error.
*/
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* dladdr() */
#endif
#include "petscbuild.h"
#include <dlfcn.h>
#include <stdio.h>

const SpMVPetscBuild SpMVPetscBuiltFor = {PETSC_VERSION_MAJOR,
                                          PETSC_VERSION_MINOR,
                                          PETSC_VERSION_RELEASE ? PETSC_TRUE : PETSC_FALSE,
                                          PetscDefined(USE_COMPLEX) ? PETSC_TRUE : PETSC_FALSE,
                                          8 * (PetscInt)sizeof(PetscReal),
                                          8 * (PetscInt)sizeof(PetscInt),
                                          PetscDefined(USE_DEBUG) ? PETSC_TRUE : PETSC_FALSE};

/* A debug build of PETSc has the variable petscstack, unless it is thread-safe. Only the program's PETSc is searched,
   because the PETSc that the library was linked with may be loaded, too */
static PetscBool SpMVPetscIsDebug(void)
{
#if defined(PETSC_HAVE_THREADSAFETY)
  return SpMVPetscBuiltFor.debug;
#else
  Dl_info info;
  void   *petsc = dladdr((void *)PetscGetVersionNumber, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  PetscBool debug = dlsym(petsc ? petsc : RTLD_DEFAULT, "petscstack") ? PETSC_TRUE : PETSC_FALSE;

  if (petsc) (void)dlclose(petsc);
  return debug;
#endif
}

/* Gets the properties of the program's PETSc */
SpMVPetscBuild SpMVPetscBuildGet(void)
{
  SpMVPetscBuild b    = SpMVPetscBuiltFor;
  PetscInt64     v[4] = {0, 0, 0, 0}; /* space for the program's PetscInt of either size */
  PetscDataType  type = PETSC_DATATYPE_UNKNOWN;
  PetscBool      found;
  size_t         size;

  if (PetscGetVersionNumber((PetscInt *)&v[0], (PetscInt *)&v[1], (PetscInt *)&v[2], (PetscInt *)&v[3])) return b;
  for (int k = 0; k < 4; k++)
    if (v[k] > INT32_MAX) v[k] >>= 32; /* a 32-bit PetscInt on a big-endian machine */
  b.major   = (PetscInt)v[0];
  b.minor   = (PetscInt)v[1];
  b.release = v[3] ? PETSC_TRUE : PETSC_FALSE;
  if (!PetscDataTypeGetSize(PETSC_INT, &size)) b.bits = (PetscInt)(8 * size);
  if (!PetscDataTypeFromString("scalar", &type, &found) && found && !PetscDataTypeGetSize(type, &size)) {
    b.complex_  = type == PETSC_COMPLEX ? PETSC_TRUE : PETSC_FALSE;
    b.real_bits = (PetscInt)(b.complex_ ? 4 * size : 8 * size);
  }
  b.debug = SpMVPetscIsDebug();
  return b;
}

static void SpMVPetscBuildPrint(const SpMVPetscBuild *b, size_t size, char text[])
{
  (void)snprintf(text, size, "%s%d.%d, %s%s, %d-bit indices, %s", b->release ? "" : "development version ",
                 (int)b->major, (int)b->minor,
                 b->real_bits == 32   ? "single precision "
                 : b->real_bits == 64 ? ""
                                      : "quadruple precision ",
                 b->complex_ ? "complex" : "real", (int)b->bits, b->debug ? "debug" : "optimized");
}

/* Whether a library built for one PETSc must not be used with the other; if so, also gets the text of the error. Patch
   releases are compatible */
PetscBool SpMVPetscBuildsDiffer(const SpMVPetscBuild *built, const SpMVPetscBuild *program, size_t size,
                                char sentence[])
{
  char ours[128], theirs[128];

  if (built->major == program->major && built->minor == program->minor && built->release == program->release &&
      built->bits == program->bits && built->debug == program->debug && built->complex_ == program->complex_ &&
      built->real_bits == program->real_bits)
    return PETSC_FALSE;
  SpMVPetscBuildPrint(built, sizeof(ours), ours);
  SpMVPetscBuildPrint(program, sizeof(theirs), theirs);
  (void)snprintf(sentence, size,
                 "This libpetscspmv was built for another PETSc (%s) than the program's (%s): build it with the "
                 "program's PETSC_DIR and PETSC_ARCH",
                 ours, theirs);
  return PETSC_TRUE;
}

/* Returns a PETSc error if the program's PETSc is not the one that the library was built for */
PetscErrorCode SpMVPetscBuildCheck(void)
{
  const SpMVPetscBuild program = SpMVPetscBuildGet();
  char                 sentence[512];

  if (!SpMVPetscBuildsDiffer(&SpMVPetscBuiltFor, &program, sizeof(sentence), sentence)) return (PetscErrorCode)0;
  return PetscError(PETSC_COMM_SELF, __LINE__, PETSC_FUNCTION_NAME, __FILE__, PETSC_ERR_LIB, PETSC_ERROR_INITIAL, "%s",
                    sentence);
}
