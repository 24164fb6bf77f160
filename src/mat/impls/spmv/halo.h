/*
  The halo of a parallel matrix on the device: from PETSc's column map to the lists of the core's exchange, and which transport it uses.

  Whoever multiplies does

    SpMVHaloBegin(halo, x, stream);           the diagonal block's product on stream
    SpMVHaloEnd(halo, stream);                the off-diagonal block's, on SpMVHaloGetArray(halo)

  or, where the rows that read ghosts can be multiplied apart from the others,

    SpMVHaloBegin(halo, x, stream);           the others on stream
    SpMVHaloReceive(halo, &own);              these rows on a stream of the halo's own
    SpMVHaloJoin(halo, stream);

  and for the transposed product

    the off-diagonal block's on stream, into SpMVHaloGetArray(halo)
    SpMVHaloReverseBegin(halo, stream);       the diagonal block's, into y
    SpMVHaloReverseEnd(halo, y, stream);      y += what the other ranks have for it

  All ranks must take this path, or none: where SpMVHaloUsesPetsc(), all use the matrix' own VecScatter.
*/
#pragma once

#include <petscmat.h>
#include "../../../core/spmvcore.h"

/* agree.c: what may go wrong on one rank alone, before any of them goes on. Collective */
PETSC_INTERN PetscErrorCode SpMVAgree(MPI_Comm, PetscErrorCode);
PETSC_INTERN PetscErrorCode SpMVAgreeOnText(MPI_Comm, PetscBool knows, char text[], int len);

/* What the options say, which are read everywhere */
typedef enum {
  SPMV_HALO_AUTO, /* the next two where they can be had, else PETSc's if MPI takes device arrays, else the host's */
  SPMV_HALO_PEER, /* into each other's memory, within a node */
  SPMV_HALO_NCCL,
  SPMV_HALO_HOST, /* through pinned memory: MPI sees host arrays only */
  SPMV_HALO_PETSC /* none of ours */
} SpMVHaloType;
PETSC_INTERN const char *const SpMVHaloTypes[];
typedef struct {
  SpMVHaloType type;
  PetscReal    rows;     /* the share of rows, at most, whose ghosts get a treatment of their own, which stores them or their rows twice, */
  PetscBool    rows_set; /* however small the block */
  PetscBool    early;    /* by PEER the product begins with the exchange, before the device is done with that */
} SpMVHaloOptions;

#if defined(PETSCSPMV_HAVE_CUDA)
  #include <petscdevice_cuda.h>
  #include "../../../core/cuda/halo.h"

typedef struct _n_SpMVHalo *SpMVHalo;

/* Collective, also where a rank has no ghosts or no rows. Offdiagonal are global columns that others own, ascending: garray of an MPIAIJ matrix */
PETSC_INTERN PetscErrorCode SpMVHaloCreate(MPI_Comm, PetscLayout cmap, PetscInt nghost, const PetscInt garray[], SpMVHaloType, SpMVHalo *);
PETSC_INTERN PetscErrorCode SpMVHaloDestroy(SpMVHalo *);
PETSC_INTERN PetscBool      SpMVHaloUsesPetsc(SpMVHalo);
PETSC_INTERN PetscBool      SpMVHaloUsesPeer(SpMVHalo); /* SpMVHaloBegin() is a kernel, after which the halo is there */
PETSC_INTERN const char    *SpMVHaloDescribe(SpMVHalo); /* the same words on all ranks */

PETSC_INTERN PetscScalar   *SpMVHaloGetArray(SpMVHalo);      /* nghost values on the device; NULL where there are none */
PETSC_INTERN PetscErrorCode SpMVHaloGetVec(SpMVHalo, Vec *); /* the same as a vector, not to be destroyed */
/* Around all that writes or reads the halo: programs may change streams between products */
PETSC_INTERN PetscErrorCode SpMVHaloEnter(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloLeave(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloBegin(SpMVHalo, const PetscScalar x[], cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloEnd(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloReceive(SpMVHalo, cudaStream_t *own);
PETSC_INTERN PetscErrorCode SpMVHaloJoin(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloReverseBegin(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloReverseEnd(SpMVHalo, PetscScalar y[], cudaStream_t);

/* The lists alone, which need no device. Collective; they are not usable where a reason is given, the same on all ranks */
PETSC_INTERN PetscErrorCode SpMVHaloListsCreate(MPI_Comm, PetscLayout cmap, PetscInt nghost, const PetscInt garray[], SpMVHaloList *send, SpMVHaloList *receive,
                                                char reason[SPMV_HALO_TEXT]);
PETSC_INTERN PetscErrorCode SpMVHaloListDestroy(SpMVHaloList *);

/* Tells PETSc that MPI takes no device arrays where that is so, before PETSc finds out and aborts. Not collective; before the first use of a device */
PETSC_INTERN PetscErrorCode SpMVDeviceCheckMPI(MPI_Comm);
#endif
