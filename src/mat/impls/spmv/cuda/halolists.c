/*
  The lists of a halo: what is sent to and received from each rank.
*/
#include "halo.h"
#include <petscsf.h>

/* The type of PetscSF's numbers of ranks */
#if PETSC_VERSION_LT(3, 23, 0)
typedef PetscInt SpMVRankCount;
#else
typedef PetscMPIInt SpMVRankCount;
#endif

PetscErrorCode SpMVHaloListDestroy(SpMVHaloList *list)
{
  PetscFunctionBegin;
  PetscCall(PetscFree2(list->rank, list->start));
  PetscCall(PetscFree(list->index));
  list->peers = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVHaloListCreate(PetscInt peers, const PetscMPIInt rank[], const PetscInt start[],
                                         const PetscInt index[], SpMVHaloList *list)
{
  PetscFunctionBegin;
  list->peers = (int)peers;
  list->index = NULL;
  PetscCall(PetscMalloc2(peers, &list->rank, peers + 1, &list->start));
  list->start[0] = 0;
  for (PetscInt k = 0; k < peers; k++) {
    list->rank[k]      = rank[k];
    list->start[k + 1] = start[k + 1];
  }
  if (index) {
    PetscCall(PetscMalloc1(list->start[peers], &list->index));
    PetscCall(PetscArraycpy(list->index, index, list->start[peers]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVHaloListsCreate(MPI_Comm comm, PetscLayout cmap, PetscInt nhalo, const PetscInt garray[],
                                   SpMVHaloList *send, SpMVHaloList *receive, char reason[SPMV_HALO_TEXT])
{
  PetscSF            sf;
  SpMVRankCount      owners, readers;
  const PetscMPIInt *owner, *reader;
  const PetscInt    *ostart, *rstart, *leaf, *index;
  PetscMPIInt        rank;
  PetscBool          usable = PETSC_TRUE;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  reason[0] = 0;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(PetscSFCreate(comm, &sf));
  PetscCall(PetscSFSetGraphLayout(sf, cmap, nhalo, NULL, PETSC_USE_POINTER, garray));
  PetscCall(PetscSFSetUp(sf));
  PetscCall(PetscSFGetRootRanks(sf, &owners, &owner, &ostart, &leaf, NULL));
  PetscCall(PetscSFGetLeafRanks(sf, &readers, &reader, &rstart, &index));
  /* garray is ascending, so the columns of each owner are contiguous. Only matrices made from the user's own blocks may
     be different */
  for (SpMVRankCount k = 0; k < owners; k++) {
    if (owner[k] == rank || (k && owner[k] < owner[k - 1])) usable = PETSC_FALSE;
    for (PetscInt i = ostart[k]; i < ostart[k + 1]; i++) {
      if (leaf[i] != i) usable = PETSC_FALSE;
    }
  }
  for (SpMVRankCount k = 1; k < readers; k++) {
    if (reader[k] < reader[k - 1]) usable = PETSC_FALSE;
  }
  if (!usable)
    PetscCall(PetscSNPrintf(
        reason, SPMV_HALO_TEXT,
        "on rank %d, the columns of the off-diagonal block are not ascending or include its own columns", rank));
  ierr = SpMVHaloListCreate(readers, reader, rstart, index, send);
  if (!ierr) ierr = SpMVHaloListCreate(owners, owner, ostart, NULL, receive);
  PetscCall(PetscSFDestroy(&sf));
  PetscCall(SpMVAgree(comm, ierr));
  PetscCall(SpMVHaloAgree(comm, cudaSuccess, reason));
  if (reason[0]) {
    PetscCall(SpMVHaloListDestroy(send));
    PetscCall(SpMVHaloListDestroy(receive));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
