/*
  The halo of a parallel matrix on the device: from PETSc's column map to the lists of the core's exchange, and the
  choice of the transport.

  A product does

    SpMVHaloBegin(halo, x, stream);           the diagonal block's product on stream
    SpMVHaloEnd(halo, stream);                the off-diagonal block's product, with SpMVHaloGetArray(halo)

  or, if the boundary rows can be multiplied separately,

    SpMVHaloBegin(halo, x, stream);           the interior rows on stream
    SpMVHaloReceive(halo, &own);              the boundary rows on the halo's own stream
    SpMVHaloJoin(halo, stream);

  and a transposed product

    the off-diagonal block's product on stream, into SpMVHaloGetArray(halo)
    SpMVHaloReverseBegin(halo, stream);       the diagonal block's product, into y
    SpMVHaloReverseEnd(halo, y, stream);      adds the values from the other ranks to y

  These calls must be made on all ranks or on none: if SpMVHaloUsesPetsc(), all ranks use the matrix' VecScatter.
*/
#pragma once

#include <petscmat.h>
#include "../../../core/spmvcore.h"

/* agree.c: if an operation has failed on one rank, it fails on all. Collective */
PETSC_INTERN PetscErrorCode SpMVAgree(MPI_Comm, PetscErrorCode);
PETSC_INTERN PetscErrorCode SpMVAgreeOnText(MPI_Comm, PetscBool knows, char text[], int len);

/* The options -mat_spmv_halo*, which are read with and without CUDA */
typedef enum {
  SPMV_HALO_AUTO, /* peer or NCCL if possible, else PETSc if MPI supports device arrays, else host */
  SPMV_HALO_PEER, /* direct access to each other's memory, within a node */
  SPMV_HALO_NCCL,
  SPMV_HALO_HOST, /* MPI, through pinned host memory */
  SPMV_HALO_PETSC /* PETSc's VecScatter */
} SpMVHaloType;
PETSC_INTERN const char *const SpMVHaloTypes[];
typedef struct {
  SpMVHaloType type;
  PetscReal    rows;     /* maximum fraction of boundary rows; their off-diagonal entries, or they themselves, are stored twice */
  PetscBool    rows_set; /* set by the user: apply it to small blocks too */
  PetscBool    early;    /* with peer exchange, start the product together with the exchange */
} SpMVHaloOptions;

#if defined(PETSCSPMV_HAVE_CUDA)
  #include <petscdevice_cuda.h>
  #include "../../../core/cuda/halo.h"

typedef struct _n_SpMVHalo *SpMVHalo;

/* Collective, also for ranks without halo or rows. garray: the global columns of the off-diagonal block, ascending, as in MPIAIJ */
PETSC_INTERN PetscErrorCode SpMVHaloCreate(MPI_Comm, PetscLayout cmap, PetscInt nhalo, const PetscInt garray[], SpMVHaloType, SpMVHalo *);
PETSC_INTERN PetscErrorCode SpMVHaloDestroy(SpMVHalo *);
PETSC_INTERN PetscBool      SpMVHaloUsesPetsc(SpMVHalo);
PETSC_INTERN PetscBool      SpMVHaloUsesPeer(SpMVHalo); /* SpMVHaloBegin() is one kernel; when it is done the halo has arrived */
PETSC_INTERN const char    *SpMVHaloDescribe(SpMVHalo); /* the same text on all ranks */

PETSC_INTERN PetscScalar   *SpMVHaloGetArray(SpMVHalo);      /* nhalo values on the device; NULL if there are none */
PETSC_INTERN PetscErrorCode SpMVHaloGetVec(SpMVHalo, Vec *); /* the same as a vector; do not destroy it */
/* Enclose all kernels that write or read the halo: programs may change streams between products */
PETSC_INTERN PetscErrorCode SpMVHaloEnter(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloLeave(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloBegin(SpMVHalo, const PetscScalar x[], cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloEnd(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloReceive(SpMVHalo, cudaStream_t *own);
PETSC_INTERN PetscErrorCode SpMVHaloJoin(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloReverseBegin(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloReverseEnd(SpMVHalo, PetscScalar y[], cudaStream_t);

/* For sums over ranks, too: the transport of a communicator of PETSc's, which keeps it, or a reason. Collective */
PETSC_INTERN PetscErrorCode SpMVHaloGetComm(MPI_Comm, SpMVTransport, SpMVCudaComm *, char reason[SPMV_HALO_TEXT]);
/* If a call has failed on one rank, all get the reason. Collective */
PETSC_INTERN PetscErrorCode SpMVHaloAgree(MPI_Comm, cudaError_t, char reason[SPMV_HALO_TEXT]);

/* The lists alone, which need no device. Collective. If `reason`, the same on all ranks, is not empty, they cannot be used */
PETSC_INTERN PetscErrorCode SpMVHaloListsCreate(MPI_Comm, PetscLayout cmap, PetscInt nhalo, const PetscInt garray[], SpMVHaloList *send, SpMVHaloList *receive,
                                                char reason[SPMV_HALO_TEXT]);
PETSC_INTERN PetscErrorCode SpMVHaloListDestroy(SpMVHaloList *);

/*
  device.c: if MPI does not support device arrays, sets PETSc's variable for that, before PETSc aborts. Not collective;
  before the first use of a device
*/
PETSC_INTERN PetscErrorCode SpMVDeviceCheckMPI(MPI_Comm);
#endif
