/*
  The name by which a DM knows a type. DMDA and DMStag make interpolations, restrictions and injections of type AIJ, on the
  host, unless the name of their matrix type begins with aij, seqaij or mpiaij (PETSc 3.18 to 3.26). A multigrid cycle on
  a device then spends its time in copies.
*/
#include "matspmv.h"
#include <petscdm.h>

/* Gives the DM the name aijsellp for sellp, seqsellp and mpisellp */
static PetscErrorCode DMSetMatType_SpMV(DM dm, const char format[])
{
  static const char *const prefixes[] = {"", "seq", "mpi"};
  MatType                  type;

  PetscFunctionBegin;
  PetscCall(DMGetMatType(dm, &type));
  for (int k = 0; k < 3; k++) {
    char      name[64];
    PetscBool same;

    PetscCall(PetscSNPrintf(name, sizeof(name), "%s%s", prefixes[k], format));
    PetscCall(PetscStrcmp(type, name, &same));
    if (!same) continue;
    PetscCall(PetscSNPrintf(name, sizeof(name), "aij%s", format));
    PetscCall(DMSetMatType(dm, name));
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatSpMVNameDM - Renames the matrix type of the DM that made A, and of the coarser DMs that it has already

  A DM makes its operator, and assembles it, before anyone needs an interpolation, and the DMs that it is refined or
  coarsened to later inherit the name. Only on a device: on the host setting up the format of an interpolation takes as
  long as dozens of products with it, so the cycles of one solve do not pay for it.
*/
PetscErrorCode MatSpMVNameDM(Mat A, const SpMVFormat *format)
{
  DM dm;

  PetscFunctionBegin;
  PetscCall(MatGetDM(A, &dm));
  while (dm) {
    PetscCall(DMSetMatType_SpMV(dm, format->name));
    PetscCall(DMGetCoarseDM(dm, &dm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
