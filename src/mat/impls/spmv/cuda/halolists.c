/*
  The lists of a halo: what is sent to and received from each rank.
*/
#include "halo.h"

/* The type of PetscSF's numbers of ranks */
#if PETSC_VERSION_LT(3, 23, 0)
typedef PetscInt SpMVRankCount;
#else
typedef PetscMPIInt SpMVRankCount;
#endif

PetscErrorCode SpMVHaloListsCreate(MPI_Comm comm, PetscLayout cmap, PetscInt nhalo, const PetscInt garray[],
                                   PetscSF *lists, SpMVHaloList *send, SpMVHaloList *receive,
                                   char reason[SPMV_HALO_TEXT])
{
  PetscSF         sf;
  SpMVRankCount   owners, readers;
  const PetscInt *leaf;
  PetscMPIInt     rank;
  PetscBool       usable = PETSC_TRUE;

  PetscFunctionBegin;
  reason[0] = 0;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(PetscSFCreate(comm, &sf));
  *lists = sf;
  PetscCall(PetscSFSetGraphLayout(sf, cmap, nhalo, NULL, PETSC_USE_POINTER, garray));
  PetscCall(PetscSFSetUp(sf));
  PetscCall(PetscSFGetRootRanks(sf, &owners, &receive->rank, &receive->start, &leaf, NULL));
  PetscCall(PetscSFGetLeafRanks(sf, &readers, &send->rank, &send->start, &send->index));
  receive->peers = (int)owners;
  receive->index = NULL;
  send->peers    = (int)readers;
  /* garray is ascending, so the columns of each owner are contiguous. Only matrices made from the user's own blocks may
     be different */
  for (int k = 0; k < receive->peers; k++) {
    if (receive->rank[k] == rank || (k && receive->rank[k] < receive->rank[k - 1])) usable = PETSC_FALSE;
    for (PetscInt i = receive->start[k]; i < receive->start[k + 1]; i++) {
      if (leaf[i] != i) usable = PETSC_FALSE;
    }
  }
  for (int k = 1; k < send->peers; k++) {
    if (send->rank[k] < send->rank[k - 1]) usable = PETSC_FALSE;
  }
  if (!usable)
    PetscCall(PetscSNPrintf(
        reason, SPMV_HALO_TEXT,
        "on rank %d, the columns of the off-diagonal block are not ascending or include its own columns", rank));
  PetscCall(SpMVHaloAgree(comm, cudaSuccess, reason));
  PetscFunctionReturn(PETSC_SUCCESS);
}
