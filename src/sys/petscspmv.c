/*
  The package: the list of formats, registration with PETSc, and the function that PETSc calls when it loads the
  library.
*/
#include "mat/impls/spmv/matspmv.h"
#include "ksp/impls/device/deviceksp.h"
#include "petscbuild.h"

/* Add a format here */
#define SpMVFormatList(X) X(SELLP) X(EVCHYB) X(BATCH)

#define SpMVDeclare(NAME) PETSC_INTERN const SpMVFormat SpMVFormat##NAME;
#define SpMVAddress(NAME) &SpMVFormat##NAME,
/* clang-format off */
SpMVFormatList(SpMVDeclare)
const SpMVFormat *const SpMVFormats[] = {SpMVFormatList(SpMVAddress) NULL};
/* clang-format on */

PetscLogEvent MAT_SpMVSetUp, MAT_SpMVFill;

static PetscBool PetscSpMVPackageInitialized = PETSC_FALSE;

/*@C
   PetscSpMVFinalizePackage - Finalizes the package

   Not Collective

   Level: developer

   Note:
   `PetscFinalize()` calls this function; programs need not call it.

.seealso: `PetscSpMVInitializePackage()`, `PetscFinalize()`
@*/
PetscErrorCode PetscSpMVFinalizePackage(void)
{
  PetscFunctionBegin;
  PetscSpMVPackageInitialized = PETSC_FALSE;
  PetscCall(SpMVFinalizeNames());
  if (SpMVCUDA.end) PetscCall((*SpMVCUDA.end)());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
   PetscSpMVInitializePackage - Registers the types `MATSELLP`, `MATEVCHYB`, `MATBATCH`, `KSPDEVICECG`,
   `KSPDEVICEBCGS`, `KSPDEVICEGMRES`, `KSPDEVICEFGMRES`, `KSPDEVICECHEBYSHEV` and `KSPDEVICEBATCH` and the ordering
   `MATORDERINGEVCHYB` with PETSc

   Not Collective

   Level: beginner

   Notes:
   Call this function after `PetscInitialize()` in a program that links the library. If the library is loaded with
   `-dll_append`, PETSc calls it. Further calls do nothing.

   If there is a GPU that PETSc uses, products of the types run on it; this is decided here, for the whole run. Then
   `KSPCHEBYSHEV`, `KSPGMRES`, `KSPFGMRES`, `KSPLGMRES`, `KSPDGMRES`, `PCGAMG` and `PCJACOBI` are created by functions
   of the library, which call those of PETSc; they change nothing for matrices of other types.

   The error is `PETSC_ERR_LIB` if the program's PETSc differs from the one that the library was built for, in version,
   scalar type, precision, size of `PetscInt`, or debug or optimized build.

.seealso: `MATSELLP`, `MATEVCHYB`, `MATBATCH`, `KSPDEVICECG`, `KSPDEVICEBCGS`, `KSPDEVICECHEBYSHEV`,
`KSPDEVICEBATCH`, `MATORDERINGEVCHYB`, `PetscSpMVFinalizePackage()`, `PetscInitialize()`
@*/
PetscErrorCode PetscSpMVInitializePackage(void)
{
  /* prefixes of the names for -mat_seqaij_type, which does not resolve root names */
  const char *const prefix[] = {"", "seq", "seqaij", "seqaijcusparse"};
  /* prefixes of root names: aij for the name in DMs, see MatSpMVNameDM() */
  const char *const root[] = {"", "seq", "mpi", "aij", "seqaij", "mpiaij"};
  PetscBool         device;

  /* must precede PetscFunctionBegin, which requires the PETSc that the library was built for */
  if (!PetscSpMVPackageInitialized) {
    const PetscErrorCode ierr = SpMVPetscBuildCheck();

    if (ierr) return ierr;
  }
  PetscFunctionBegin;
  if (PetscSpMVPackageInitialized) PetscFunctionReturn(PETSC_SUCCESS);
  PetscSpMVPackageInitialized = PETSC_TRUE;
  PetscCall(MatInitializePackage()); /* registers the types of PETSc first */
  PetscCall(PetscLogEventRegister("MatSpMVSetUp", MAT_CLASSID, &MAT_SpMVSetUp));
  PetscCall(PetscLogEventRegister("MatSpMVFill", MAT_CLASSID, &MAT_SpMVFill));
  PetscCall(SpMVUseDevice(PETSC_COMM_SELF, &device));
  if (device) PetscCall((*SpMVCUDA.begin)());
  for (int f = 0; SpMVFormats[f]; f++) {
    const SpMVFormat *format = SpMVFormats[f];
    char              seq[64], mpi[64], alias[64];

    /*
       On a device, an instance has the name of AIJCUSPARSE. MatSetType() converts an assembled matrix in place if the
       new name begins with its current name, and destroys its data otherwise. So the names begin with AIJCUSPARSE's
       name.
    */
    PetscCall(PetscSNPrintf(seq, sizeof(seq), "seqaij%s%s", device ? "cusparse" : "", format->name));
    PetscCall(PetscSNPrintf(mpi, sizeof(mpi), "mpiaij%s%s", device ? "cusparse" : "", format->name));
    /* for the list in -help; MatSetType() finds the root name below first */
    PetscCall(MatRegister(format->name, format->create));
    PetscCall(MatRegister(seq, format->createseq));
    PetscCall(MatRegister(mpi, format->creatempi));
    for (int p = 0; p < (device ? 4 : 3); p++) {
      PetscCall(PetscSNPrintf(alias, sizeof(alias), "%s%s", prefix[p], format->name));
      PetscCall(MatSeqAIJRegister(alias, MatConvertFrom_SpMV));
    }
    /*
       PETSc searches for an instance's root name in this order, so the true root name comes first. The aliases are root
       names, too, so that MatSetType() recognizes that an assembled matrix already has the type and leaves it
       unchanged.
    */
    for (int r = 0; r < (device ? 6 : 4); r++) {
      PetscCall(PetscSNPrintf(alias, sizeof(alias), "%s%s", root[r], format->name));
      PetscCall(MatRegisterRootName(alias, root[r][0] == 'm' ? mpi : seq, root[r][0] == 's' ? seq : mpi));
    }
  }
  PetscCall(KSPInitializePackage());
  PetscCall(KSPDeviceRegister(device));
  PetscCall(MatOrderingRegister(MATORDERINGEVCHYB, MatGetOrdering_EVCHYB));
  PetscCall(SpMVRegisterNames());
  PetscCall(SpMVRegisterReplaced(device));
  PetscCall(PetscRegisterFinalize(PetscSpMVFinalizePackage));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Called by PETSc when it loads libpetscspmv with -dll_append */
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_petscspmv(void);
PetscErrorCode              PetscDLLibraryRegister_petscspmv(void)
{
  return PetscSpMVInitializePackage();
}
