/*
  The halo of a parallel matrix on the device: converts PETSc's column map to the lists of the core's exchange, and
  chooses the transport.

  SpMVMultPlanLaunch() shows how products use it, with the core's functions. It exchanges SPMV_HALO_COLUMNS columns
  of a dense matrix at once if SpMVHaloSetUpColumns() has succeeded.

  An exchange must be made on all ranks or on none: if SpMVHaloUsesPetsc(), all ranks use the matrix's VecScatter.
*/
#pragma once

#include "mat/impls/spmv/matspmv.h"
#include "core/cuda/halo/halo.h"
#include <petscsf.h>

typedef struct _n_SpMVHalo *SpMVHalo;

/* Collective; ranks without halo or rows must call it too. garray: the global columns of the off-diagonal block,
   ascending, as in MPIAIJ */
PETSC_INTERN PetscErrorCode SpMVHaloCreate(MPI_Comm, PetscLayout cmap, PetscInt nhalo, const PetscInt garray[],
                                           SpMVHaloType, SpMVHalo *);
PETSC_INTERN PetscErrorCode SpMVHaloDestroy(SpMVHalo *);
PETSC_INTERN PetscBool      SpMVHaloUsesPetsc(SpMVHalo);
PETSC_INTERN const char    *SpMVHaloDescribe(SpMVHalo); /* the same text on all ranks */

/* The core's halo of one column or of several, NULL if no rank has anything to exchange; its array on the device, with
   leading dimension ld, NULL if this rank has no halo */
PETSC_INTERN PetscErrorCode SpMVHaloGet(SpMVHalo, PetscBool columns, SpMVCudaHalo *, PetscScalar **received,
                                        PetscInt *ld);
/* Turns an error of the core's exchange into PETSc's */
PETSC_INTERN PetscErrorCode  SpMVHaloFail(SpMVHalo, cudaError_t);
static inline PetscErrorCode SpMVHaloCheck(SpMVHalo halo, cudaError_t error)
{
  return PetscLikely(error == cudaSuccess) ? PETSC_SUCCESS : SpMVHaloFail(halo, error);
}

#define SPMV_HALO_COLUMNS 8 /* as many as a kernel multiplies at once */

/* Collective. The first call allocates memory for the columns, which the halo keeps. *possible is the same on all ranks
   */
PETSC_INTERN PetscErrorCode SpMVHaloSetUpColumns(SpMVHalo, PetscBool *possible);

/* Gets the transport of a PETSc communicator, which keeps it, or the reason why there is none. Also used for sums over
   ranks. Collective */
PETSC_INTERN PetscErrorCode SpMVHaloGetComm(MPI_Comm, SpMVTransport, SpMVCudaComm *, char reason[SPMV_HALO_TEXT]);
/* If a call has failed on one rank, all ranks get the reason. Collective */
PETSC_INTERN PetscErrorCode SpMVHaloAgree(MPI_Comm, cudaError_t, char reason[SPMV_HALO_TEXT]);

/* Creates only the lists, which needs no device. They are valid as long as the PetscSF. Collective. `reason` is the same
   on all ranks; if it is not empty, the lists cannot be used */
PETSC_INTERN PetscErrorCode SpMVHaloListsCreate(MPI_Comm, PetscLayout cmap, PetscInt nhalo, const PetscInt garray[],
                                                PetscSF *, SpMVHaloList *send, SpMVHaloList *receive,
                                                char reason[SPMV_HALO_TEXT]);

/* transport.c: the transports of a communicator, which holds a reference; the caller of LinkGet gets another */
typedef struct _n_SpMVHaloLink *SpMVHaloLink;
struct _n_SpMVHaloLink {
  /* the link is an attribute of this communicator; MPI_COMM_NULL after the communicator has been freed */
  MPI_Comm     comm;
  PetscInt     refct;
  SpMVCudaComm transport[SPMV_TRANSPORTS];
  PetscBool    tried[SPMV_TRANSPORTS]; /* the set-up may be expensive, so it is tried only once */
  char         reason[SPMV_TRANSPORTS][SPMV_HALO_TEXT];
  int          version; /* of NCCL */
  SpMVHaloLink next;
};

PETSC_INTERN PetscErrorCode SpMVHaloLinkGet(MPI_Comm, SpMVHaloLink *);
PETSC_INTERN void           SpMVHaloLinkDereference(SpMVHaloLink);
/* Collective. If the transport is not available, all ranks get the reason in link->reason */
PETSC_INTERN PetscErrorCode SpMVHaloLinkSetUp(SpMVHaloLink, SpMVTransport);
