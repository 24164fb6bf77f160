/*
  The halo of a parallel matrix on the device: converts PETSc's column map to the lists of the core's exchange, and
  chooses the transport.

  A product does

    SpMVHaloBegin(halo, x, stream);           the diagonal block's product on stream
    SpMVHaloEnd(halo, stream);                the off-diagonal block's product, with SpMVHaloGetArray(halo)

  a transposed product

    the off-diagonal block's product on stream, into SpMVHaloGetArray(halo)
    SpMVHaloReverseBegin(halo, stream);       the diagonal block's product, into y
    SpMVHaloReverseEnd(halo, y, stream);      adds the values from the other ranks to y

  A product with several columns of a dense matrix

    SpMVHaloBeginColumns(halo, n, x, ldx, overlap, stream);   the diagonal block's product on stream
    SpMVHaloEndColumns(halo, stream);                         the off-diagonal block's product, with SpMVHaloGetColumns(halo, &array, &rows)

  for up to SPMV_HALO_COLUMNS columns, if SpMVHaloSetUpColumns() has succeeded. Without `overlap`, the peer transport
  exchanges them before the product.

  These calls must be made on all ranks or on none: if SpMVHaloUsesPetsc(), all ranks use the matrix's VecScatter
  instead.
*/
#pragma once

#include "mat/impls/spmv/matspmv.h"
#include "core/cuda/halo/halo.h"

typedef struct _n_SpMVHalo *SpMVHalo;

/* Collective; ranks without halo or rows must call it too. garray: the global columns of the off-diagonal block,
   ascending, as in MPIAIJ */
PETSC_INTERN PetscErrorCode SpMVHaloCreate(MPI_Comm, PetscLayout cmap, PetscInt nhalo, const PetscInt garray[],
                                           SpMVHaloType, SpMVHalo *);
PETSC_INTERN PetscErrorCode SpMVHaloDestroy(SpMVHalo *);
PETSC_INTERN PetscBool      SpMVHaloUsesPetsc(SpMVHalo);
/* SpMVHaloBegin() is one kernel; the halo has arrived when this kernel ends */
PETSC_INTERN PetscBool   SpMVHaloUsesPeer(SpMVHalo);
PETSC_INTERN const char *SpMVHaloDescribe(SpMVHalo); /* the same text on all ranks */

PETSC_INTERN PetscScalar   *SpMVHaloGetArray(SpMVHalo);      /* nhalo values on the device; NULL if there are none */
PETSC_INTERN PetscErrorCode SpMVHaloGetVec(SpMVHalo, Vec *); /* the same array as a vector; do not destroy it */
/* Call these before and after all kernels that write or read the halo: programs may change streams between products */
PETSC_INTERN PetscErrorCode SpMVHaloEnter(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloLeave(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloBegin(SpMVHalo, const PetscScalar x[], cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloEnd(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloReverseBegin(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloReverseEnd(SpMVHalo, PetscScalar y[], cudaStream_t);

#define SPMV_HALO_COLUMNS 8 /* as many as a kernel multiplies at once */

/* Collective. The first call allocates memory for the columns, which the halo keeps. *possible is the same on all ranks
   */
PETSC_INTERN PetscErrorCode SpMVHaloSetUpColumns(SpMVHalo, PetscBool *possible);
/* on the device, with leading dimension rows, or NULL and 0 */
PETSC_INTERN PetscErrorCode SpMVHaloGetColumns(SpMVHalo, PetscScalar **array, PetscInt *rows);
PETSC_INTERN PetscErrorCode SpMVHaloEnterColumns(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloLeaveColumns(SpMVHalo, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloBeginColumns(SpMVHalo, PetscInt columns, const PetscScalar x[], PetscInt ldx,
                                                 PetscBool overlap, cudaStream_t);
PETSC_INTERN PetscErrorCode SpMVHaloEndColumns(SpMVHalo, cudaStream_t);

/* Gets the transport of a PETSc communicator, which keeps it, or the reason why there is none. Also used for sums over
   ranks. Collective */
PETSC_INTERN PetscErrorCode SpMVHaloGetComm(MPI_Comm, SpMVTransport, SpMVCudaComm *, char reason[SPMV_HALO_TEXT]);
/* If a call has failed on one rank, all ranks get the reason. Collective */
PETSC_INTERN PetscErrorCode SpMVHaloAgree(MPI_Comm, cudaError_t, char reason[SPMV_HALO_TEXT]);

/* Creates only the lists, which needs no device. Collective. `reason` is the same on all ranks; if it is not empty, the
   lists cannot be used */
PETSC_INTERN PetscErrorCode SpMVHaloListsCreate(MPI_Comm, PetscLayout cmap, PetscInt nhalo, const PetscInt garray[],
                                                SpMVHaloList *send, SpMVHaloList *receive, char reason[SPMV_HALO_TEXT]);
PETSC_INTERN PetscErrorCode SpMVHaloListDestroy(SpMVHaloList *);

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
