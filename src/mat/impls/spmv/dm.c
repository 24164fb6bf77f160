/*
  The name of a matrix type in a DM. DMDA and DMStag create interpolations, restrictions and injections as AIJ matrices
  on the host, unless the name of their matrix type begins with aij, seqaij or mpiaij (PETSc 3.18 to 3.26). A multigrid
  cycle on a device then spends its time in copies.
*/
#include "matspmv.h"
#include <petscdm.h>

/*
  MatSpMVNameDM - Sets the matrix type of the DM that created A, and of its coarser DMs that exist already, to aijsellp
  if it is sellp, seqsellp or mpisellp

  The operator is created and assembled before an interpolation is needed, and DMs that are refined or coarsened from
  this DM later inherit the name. This is done on a device only. On the host, setting up the format of an interpolation
  takes as long as dozens of products with it, which is more than the cycles of one solve gain.
*/
PetscErrorCode MatSpMVNameDM(Mat A, const SpMVFormat *format)
{
  DM dm;

  PetscFunctionBegin;
  PetscCall(MatGetDM(A, &dm));
  while (dm) {
    MatType type;
    char    name[64];

    PetscCall(DMGetMatType(dm, &type));
    if (!strncmp(type, "seq", 3) || !strncmp(type, "mpi", 3)) type += 3;
    PetscCall(PetscSNPrintf(name, sizeof(name), "aij%s", format->name));
    if (!strcmp(type, format->name)) PetscCall(DMSetMatType(dm, name));
    PetscCall(DMGetCoarseDM(dm, &dm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
