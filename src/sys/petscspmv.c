/*
  The package: its formats, its registration with PETSc, and the function by which PETSc loads it.
*/
#include "../mat/impls/spmv/matspmv.h"

/* A further format is one more line here */
const SpMVFormat *const SpMVFormats[] = {&SpMVFormatSELLP, &SpMVFormatEVCHYB, NULL};

PetscLogEvent MAT_SpMVSetUp, MAT_SpMVFill;

static PetscBool PetscSpMVPackageInitialized = PETSC_FALSE;

/*@C
   PetscSpMVFinalizePackage - forgets that the package was initialized; PETSc calls it from `PetscFinalize()`

   Not Collective

   Level: developer

.seealso: `PetscSpMVInitializePackage()`
@*/
PetscErrorCode PetscSpMVFinalizePackage(void)
{
  PetscFunctionBegin;
  PetscSpMVPackageInitialized = PETSC_FALSE;
#if defined(PETSCSPMV_HAVE_CUDA)
  PetscCallCUDA(SpMVCudaUploadFinalize());
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
   PetscSpMVInitializePackage - makes `MATSELLP`, `MATEVCHYB` and `MATBATCH` known to PETSc

   Not Collective

   Level: beginner

   Notes:
   Call it once after `PetscInitialize()` in a program that links the library. A program that loads the library with `-dll_append`
   needs no call: PETSc makes it.

.seealso: `MATSELLP`, `MATEVCHYB`, `MATBATCH`
@*/
PetscErrorCode PetscSpMVInitializePackage(void)
{
  PetscBool device;

  PetscFunctionBegin;
  if (PetscSpMVPackageInitialized) PetscFunctionReturn(PETSC_SUCCESS);
  PetscSpMVPackageInitialized = PETSC_TRUE;
  PetscCall(MatInitializePackage()); /* the list of matrix types must exist before it grows */
  PetscCall(PetscLogEventRegister("MatSpMVSetUp", MAT_CLASSID, &MAT_SpMVSetUp));
  PetscCall(PetscLogEventRegister("MatSpMVFill", MAT_CLASSID, &MAT_SpMVFill));
  PetscCall(SpMVUseDevice(PETSC_COMM_SELF, &device));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (device) PetscCall(SpMVDeviceCheckMPI(PETSC_COMM_WORLD));
#endif
  for (int f = 0; SpMVFormats[f]; f++) {
    const SpMVFormat *format = SpMVFormats[f];
    char              seq[64], mpi[64], alias[64];

    /*
       On a device, an instance goes by the name of AIJCUSPARSE. A type whose name begins with an assembled matrix' own is one that
       MatSetType() converts to, in place; for any other it destroys the matrix.
    */
    PetscCall(PetscSNPrintf(seq, sizeof(seq), "seqaij%s%s", device ? "cusparse" : "", format->name));
    PetscCall(PetscSNPrintf(mpi, sizeof(mpi), "mpiaij%s%s", device ? "cusparse" : "", format->name));
    PetscCall(MatRegister(format->name, format->create)); /* so that -help lists it; the root name below answers for it */
    PetscCall(MatRegister(seq, format->createseq));
    PetscCall(MatRegister(mpi, format->creatempi));
    PetscCall(MatSeqAIJRegister(seq, MatConvertFrom_SpMV));
    /*
       PETSc looks an instance's family up in this order, so the true root comes first. The aliases are roots too: under a root name,
       MatSetType() sees that an assembled matrix has the type already, and leaves it alone.
    */
    PetscCall(MatRegisterRootName(format->name, seq, mpi));
    PetscCall(PetscSNPrintf(alias, sizeof(alias), "seq%s", format->name));
    PetscCall(MatRegisterRootName(alias, seq, seq));
    PetscCall(PetscSNPrintf(alias, sizeof(alias), "mpi%s", format->name));
    PetscCall(MatRegisterRootName(alias, mpi, mpi));
    if (device) {
      PetscCall(PetscSNPrintf(alias, sizeof(alias), "seqaij%s", format->name));
      PetscCall(MatRegisterRootName(alias, seq, seq));
      PetscCall(PetscSNPrintf(alias, sizeof(alias), "mpiaij%s", format->name));
      PetscCall(MatRegisterRootName(alias, mpi, mpi));
    }
  }
#if defined(PETSCSPMV_HAVE_CUDA)
  if (device) PetscCall(SpMVRegisterFactors());
#endif
  PetscCall(MatBatchRegister());
  PetscCall(MatOrderingRegister(MATORDERINGEVCHYB, MatGetOrdering_EVCHYB));
  PetscCall(PetscRegisterFinalize(PetscSpMVFinalizePackage));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc calls when it loads libpetscspmv by -dll_append */
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_petscspmv(void);
PetscErrorCode              PetscDLLibraryRegister_petscspmv(void)
{
  PetscFunctionBegin;
  PetscCall(PetscSpMVInitializePackage());
  PetscFunctionReturn(PETSC_SUCCESS);
}
