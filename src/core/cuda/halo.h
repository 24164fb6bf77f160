/*
  The halo exchange of parallel products on the device, free of PETSc objects and of MPI.

  The off-diagonal block of a rank's rows reads entries of x that other ranks own. They are gathered in the halo, an array on the device with a piece for each
  of these ranks ("peers"). Forward fills it from the peers' x. Reverse, for the transposed product, sends the pieces back, where they are added to y. Both run
  at the same time as the diagonal block's product, by PEER on the product's stream, otherwise on a stream of the halo:

    SpMVCudaHaloBegin(halo, x, stream);   ...the diagonal block's product on stream...   SpMVCudaHaloEnd(halo, stream);
    ...the off-diagonal block's product on stream, from SpMVCudaHaloGetArray(halo)...

  With NCCL and the host's transport, the off-diagonal block's product can run at the same time as the diagonal block's, too, so that nothing has to begin after
  both:

    SpMVCudaHaloBegin(halo, x, stream);   ...the interior rows on stream...   SpMVCudaHaloReceive(halo, &own);
    ...the boundary rows on own...        SpMVCudaHaloJoin(halo, stream);

  Three transports move the values. PEER, within a node, writes them into the other devices' memory, by one kernel on the product's own stream. NCCL moves them
  from device to device. An exchange by one of these two allocates nothing, never waits for the host and may be captured in a CUDA graph. The host's transport
  copies them to pinned memory, where a function of the caller exchanges them; it waits in End for what the device sends.

  By PEER the halo is complete for work that follows Begin on the stream. SpMVCudaMultFused() of the diagonal block, if it follows directly, begins at the same
  time as the exchange: see Kernel in launch.cuh for the contract.

  The exchanges of a halo follow one another. Where they may be in several streams, call SpMVCudaHaloEnter() before everything that writes or reads the halo and
  SpMVCudaHaloLeave() after it. All ranks begin the same exchanges of the same communicator in the same order.
*/
#pragma once

#include <petscsys.h>
#include <cuda_runtime_api.h>

#define SPMV_HALO_TEXT    384 /* bytes of the reason for a failure */
#define SPMV_HALO_SECONDS 120 /* that set-up waits for other ranks */

typedef enum { SPMV_TRANSPORT_PEER, SPMV_TRANSPORT_NCCL, SPMV_TRANSPORT_HOST, SPMV_TRANSPORTS } SpMVTransport;

typedef struct _n_SpMVCudaComm *SpMVCudaComm; /* the transport, for all halos of a communicator, and their stream */
typedef struct _n_SpMVCudaHalo *SpMVCudaHalo;

/* ncclUniqueId: created by one rank, passed to all by other means */
typedef struct {
  char bytes[128];
} SpMVNCCLId;

/* One side of an exchange, on the host. Peers ascend. */
typedef struct {
  int       peers;
  int      *rank;
  PetscInt *start; /* peers + 1: where the peers' pieces begin, in index and in the staged array; of receives, also in the halo */
  PetscInt *index; /* the entries of x to send; NULL of receives */
} SpMVHaloList;

/* Opens libnccl, once. Returns its version, such as 22703, or 0 and a reason */
PETSC_INTERN int         SpMVNCCLLoad(char reason[SPMV_HALO_TEXT]);
PETSC_INTERN cudaError_t SpMVNCCLGetId(SpMVNCCLId *, char reason[SPMV_HALO_TEXT]);

/* PEER: what a rank sends to another: its memory, and the offsets in bytes of the other rank's post and of the pieces that the other rank fills */
typedef struct {
  cudaIpcMemHandle_t memory;
  int64_t            post, halo, sums; /* -1: they exchange nothing */
} SpMVHaloOffer;

/*
  With NCCL, and its id, this is collective. NCCL and PEER need a device for each rank. A failure has a reason, at the latest after SPMV_HALO_SECONDS. The ranks
  must then agree whether all have succeeded; if not, all abort.
*/
PETSC_INTERN cudaError_t SpMVCudaCommCreate(SpMVTransport, int size, int rank, const SpMVNCCLId *, SpMVCudaComm *, char reason[SPMV_HALO_TEXT]);
PETSC_INTERN void        SpMVCudaCommAbort(SpMVCudaComm, const char reason[]); /* ends what is in progress; later exchanges fail with the reason */
PETSC_INTERN void        SpMVCudaCommDestroy(SpMVCudaComm *);                  /* after its halos */
PETSC_INTERN const char *SpMVCudaCommGetError(SpMVCudaComm);                   /* the failure, where it was not in a CUDA function */

/* NCCL: adds `count` numbers on the device over all ranks, in place, in the order of the stream */
PETSC_INTERN cudaError_t SpMVCudaCommSum(SpMVCudaComm, PetscReal *sums, int count, cudaStream_t);

/* cudaErrorNotSupported, and no halo, if it is too large for 32-bit numbers. `index` is copied. */
PETSC_INTERN cudaError_t SpMVCudaHaloCreate(SpMVCudaComm, const SpMVHaloList *send, const SpMVHaloList *receive, SpMVCudaHalo *);
/* PEER, once all ranks have created the halo: what this rank sends to each rank; then opens their memory, from what they sent */
PETSC_INTERN cudaError_t SpMVCudaHaloGetOffers(SpMVCudaHalo, int size, SpMVHaloOffer mine[]);
PETSC_INTERN cudaError_t SpMVCudaHaloOpen(SpMVCudaHalo, const SpMVHaloOffer theirs[]);
/* An exchange each way: NCCL connects ranks in the first one, and it tests PEER. Fails like SpMVCudaCommCreate() */
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
PETSC_INTERN cudaError_t  SpMVCudaHaloReverseEnd(SpMVCudaHalo, PetscScalar *y, cudaStream_t); /* y += what was received, in the order of peers */
