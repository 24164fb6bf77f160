/*
  The halo exchange of parallel products on the device, free of PETSc objects and of MPI.

  The off-diagonal block of a rank's rows reads entries of x that other ranks own. They are gathered in the halo, an array on the device
  with a piece for each of these ranks ("peers"). Forward fills it from everybody's x; reverse, for the transposed product, sends the
  pieces back, where they are added to y. Both run beside the product of the diagonal block, but by PEER on a stream of their own:

    SpMVCudaHaloBegin(halo, x, stream);   ...the diagonal block's product on stream...   SpMVCudaHaloEnd(halo, stream);
    ...the off-diagonal block's product on stream, from SpMVCudaHaloGetArray(halo)...

  or, but not by PEER, so that the off-diagonal block's product is beside the diagonal block's, too, and nothing starts when both have ended:

    SpMVCudaHaloBegin(halo, x, stream);   ...the rows without ghosts on stream...   SpMVCudaHaloReceive(halo, &own);
    ...the rows with ghosts on own...     SpMVCudaHaloJoin(halo, stream);

  Three transports carry the messages. PEER, within a node, writes them into the other devices' memory, by one kernel on the product's own stream;
  NCCL moves them from device to device. An exchange of these two allocates nothing, never waits for the host and may be captured in a CUDA graph.
  The host's takes them through pinned memory, where the caller's own function exchanges them; it waits in End for what the device has to send.

  By PEER the halo is there for what follows Begin on the stream, and SpMVCudaMultFused() of the diagonal block, if it follows at once, begins with it.

  The exchanges of one halo follow each other: where they may be in several streams, SpMVCudaHaloEnter() before all that writes or reads the halo and
  SpMVCudaHaloLeave() after it put them in order. All ranks begin the same exchanges of the same communicator in the same order.
*/
#pragma once

#include <petscsys.h>
#include <cuda_runtime_api.h>

#define SPMV_HALO_TEXT    384 /* bytes of a text that says why something failed */
#define SPMV_HALO_SECONDS 120 /* for which setting up waits for other ranks */

typedef enum { SPMV_TRANSPORT_PEER, SPMV_TRANSPORT_NCCL, SPMV_TRANSPORT_HOST, SPMV_TRANSPORTS } SpMVTransport;

typedef struct _n_SpMVCudaComm *SpMVCudaComm; /* the transport, for all halos of a communicator, and their stream */
typedef struct _n_SpMVCudaHalo *SpMVCudaHalo;

/* What NCCL calls ncclUniqueId: made by one rank, passed to all by other means */
typedef struct {
  char bytes[128];
} SpMVNCCLId;

/* One side of an exchange, on the host. Peers ascend. */
typedef struct {
  int       peers;
  int      *rank;
  PetscInt *start; /* peers + 1: where the peers' pieces begin, in index and in what is staged; of receives, also in the halo */
  PetscInt *index; /* the entries of x to send; NULL of receives */
} SpMVHaloList;

/* Opens libnccl, once: its version as in 22703, or 0 and why not */
PETSC_INTERN int         SpMVNCCLLoad(char reason[SPMV_HALO_TEXT]);
PETSC_INTERN cudaError_t SpMVNCCLGetId(SpMVNCCLId *, char reason[SPMV_HALO_TEXT]);

/* What a rank tells another of a halo for PEER: where its memory is, and where in there, in bytes, are the other's post and the pieces that it fills */
typedef struct {
  cudaIpcMemHandle_t memory;
  int64_t            post, halo, sums; /* -1: they exchange nothing */
} SpMVHaloOffer;

/*
  NCCL, with an id, is called by all ranks at a time; it and PEER want a device for each rank. Where it fails, it gives a reason, at the latest
  after SPMV_HALO_SECONDS. The ranks must then agree whether all have succeeded; if not, all abort.
*/
PETSC_INTERN cudaError_t SpMVCudaCommCreate(SpMVTransport, int size, int rank, const SpMVNCCLId *, SpMVCudaComm *, char reason[SPMV_HALO_TEXT]);
PETSC_INTERN void        SpMVCudaCommAbort(SpMVCudaComm, const char reason[]); /* ends what is under way: later exchanges fail with the reason */
PETSC_INTERN void        SpMVCudaCommDestroy(SpMVCudaComm *);                  /* after its halos */
PETSC_INTERN const char *SpMVCudaCommGetError(SpMVCudaComm);                   /* what went wrong, where that was no CUDA function */

/* cudaErrorNotSupported, and no halo, where it is too large for 32-bit numbers. `index` is copied. */
PETSC_INTERN cudaError_t SpMVCudaHaloCreate(SpMVCudaComm, const SpMVHaloList *send, const SpMVHaloList *receive, SpMVCudaHalo *);
/* PEER, once all ranks have created it: what this one tells each of them, and their memory, from what they tell this one */
PETSC_INTERN cudaError_t SpMVCudaHaloGetOffers(SpMVCudaHalo, int size, SpMVHaloOffer mine[]);
PETSC_INTERN cudaError_t SpMVCudaHaloOpen(SpMVCudaHalo, const SpMVHaloOffer theirs[]);
/* An exchange each way: NCCL connects ranks by their first, and whether PEER works shows. Fails like SpMVCudaCommCreate() */
PETSC_INTERN cudaError_t SpMVCudaHaloConnect(SpMVCudaHalo, char reason[SPMV_HALO_TEXT]);
/* The reverse of Open, by all ranks before the first of them destroys its halo */
PETSC_INTERN cudaError_t SpMVCudaHaloClose(SpMVCudaHalo);
PETSC_INTERN cudaError_t SpMVCudaHaloDestroy(SpMVCudaHalo *);
/* The host's transport: the arrays in pinned memory, each in the order of its list, and the function that moves `sent` to the peers'
   `received` (in reverse, `received` to their `sent`), and returns 0 when it is done */
PETSC_INTERN void SpMVCudaHaloGetStaged(SpMVCudaHalo, PetscScalar **sent, PetscScalar **received);
PETSC_INTERN void SpMVCudaHaloSetExchange(SpMVCudaHalo, int (*exchange)(void *ctx, PetscBool reverse), void *ctx);

PETSC_INTERN PetscScalar *SpMVCudaHaloGetArray(SpMVCudaHalo); /* the halo, filled by End or Receive (by PEER: Begin), sent by ReverseBegin; NULL if empty */
PETSC_INTERN cudaError_t  SpMVCudaHaloEnter(SpMVCudaHalo, cudaStream_t);
PETSC_INTERN cudaError_t  SpMVCudaHaloLeave(SpMVCudaHalo, cudaStream_t);
PETSC_INTERN cudaError_t  SpMVCudaHaloBegin(SpMVCudaHalo, const PetscScalar *x, cudaStream_t);
PETSC_INTERN cudaError_t  SpMVCudaHaloEnd(SpMVCudaHalo, cudaStream_t); /* Receive and Join */
PETSC_INTERN cudaError_t  SpMVCudaHaloReceive(SpMVCudaHalo, cudaStream_t *own);
PETSC_INTERN cudaError_t  SpMVCudaHaloJoin(SpMVCudaHalo, cudaStream_t);
PETSC_INTERN cudaError_t  SpMVCudaHaloReverseBegin(SpMVCudaHalo, cudaStream_t);
PETSC_INTERN cudaError_t  SpMVCudaHaloReverseEnd(SpMVCudaHalo, PetscScalar *y, cudaStream_t); /* y += what came, in the order of peers */
