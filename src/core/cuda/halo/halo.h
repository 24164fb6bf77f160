/*
  The halo exchange of parallel products on the device, free of PETSc objects and of MPI.

  The off-diagonal block of a rank's rows reads entries of x that other ranks own. They are gathered in the halo, an
  array on the device with a piece for each of these ranks ("peers"). The forward exchange fills it from the peers' x.
  The reverse exchange, for the transposed product, sends the pieces back to their owners, which add them to y. The data
  arrive during the diagonal block's product: with PEER, Begin and End are kernels on the product's stream, otherwise
  the exchange is on a stream of the halo:

    SpMVCudaHaloBegin(halo, ...);   ...the diagonal block's product on stream...   SpMVCudaHaloEnd(halo, stream);
    ...the off-diagonal block's product on stream, from SpMVCudaHaloGetArray(halo)...

  There are three transports. PEER, within a node, writes the values to the other devices' memory. NCCL moves them from
  device to device. With these two, an exchange allocates nothing, never waits for the host, and may be captured in a
  CUDA graph. The transport through the host copies the values to pinned memory, and a function of the caller exchanges
  them; End waits for the data from the device.

  With PEER, the kernel of a product may do what Begin does, or both Begin and End: see SpMVCudaHaloGetExchange(). The
  other ranks do not notice.

  A halo may be created for several columns: an exchange then moves the halos of up to that many columns of a dense
  matrix x at once. Such a halo has only the forward exchange.

  The exchanges of a halo run one after the other. If they may be in several streams, call SpMVCudaHaloEnter() before
  all work that writes or reads the halo and SpMVCudaHaloLeave() after it. All ranks must begin the same exchanges of a
  communicator in the same order.
*/
#pragma once

#include "core/cuda/spmvcuda.h"

#define SPMV_HALO_TEXT    384 /* size in bytes of the text with the reason for a failure */
#define SPMV_HALO_SECONDS 120 /* the time in seconds that set-up waits for other ranks */

typedef enum { SPMV_TRANSPORT_PEER, SPMV_TRANSPORT_NCCL, SPMV_TRANSPORT_HOST, SPMV_TRANSPORTS } SpMVTransport;

typedef struct _n_SpMVCudaComm *SpMVCudaComm; /* the transport, for all halos of a communicator, and their stream */
typedef struct _n_SpMVCudaHalo *SpMVCudaHalo;

/* ncclUniqueId: created by one rank; the caller sends it to all others */
typedef struct {
  char bytes[128];
} SpMVNCCLId;

/* One side of an exchange, on the host. Peers ascend. */
typedef struct {
  PetscMPIInt        peers;
  const PetscMPIInt *rank;
  /* peers + 1 numbers: the beginning of each peer's piece in index and in the staged array; for receives, also in the
     halo */
  const PetscInt *start;
  const PetscInt *index; /* the entries of x to send; NULL for receives */
} SpMVHaloList;

/* Opens libnccl, once. Returns its version, for example 22703, or 0 and a reason */
PETSC_INTERN int         SpMVNCCLLoad(char reason[SPMV_HALO_TEXT]);
PETSC_INTERN cudaError_t SpMVNCCLGetId(SpMVNCCLId *, char reason[SPMV_HALO_TEXT]);

/* PEER: the data that a rank sends to another: the segment of its memory with the halo, and the offsets in the segment,
   in bytes, of the other rank's post and of the pieces that the other rank fills */
typedef struct {
  cudaIpcMemHandle_t memory;
  int64_t            segment;          /* number of the segment among those of the rank */
  int64_t            post, halo, sums; /* -1: the two ranks exchange nothing */
  int64_t            received, sent;   /* entries of a column in the rank's halo, and of all that it sends */
} SpMVHaloOffer;

/*
  Collective with NCCL, which needs an id. NCCL and PEER need one device per rank. A failure is reported with a reason,
  after at most SPMV_HALO_SECONDS. The ranks must then agree whether all of them have succeeded; if not, all of them
  abort.
*/
PETSC_INTERN cudaError_t SpMVCudaCommCreate(SpMVTransport, int size, int rank, const SpMVNCCLId *, SpMVCudaComm *,
                                            char reason[SPMV_HALO_TEXT]);
/* ends work in progress; later exchanges fail with the reason */
PETSC_INTERN void SpMVCudaCommAbort(SpMVCudaComm, const char reason[]);
PETSC_INTERN void SpMVCudaCommDestroy(SpMVCudaComm *); /* after its halos */
/* the failure, if it was not in a CUDA function */
PETSC_INTERN const char *SpMVCudaCommGetError(SpMVCudaComm);

/* NCCL: adds `count` numbers on the device over all ranks, in place, in the order of the stream */
PETSC_INTERN cudaError_t SpMVCudaCommSum(SpMVCudaComm, PetscReal *sums, int count, cudaStream_t);

/* columns: the most columns of an exchange; with more than one there is no reverse exchange. Returns
   cudaErrorNotSupported and no halo if the halo is too large for 32-bit numbers. `index` is copied. */
PETSC_INTERN cudaError_t SpMVCudaHaloCreate(SpMVCudaComm, const SpMVHaloList *send, const SpMVHaloList *receive,
                                            int columns, SpMVCudaHalo *);
/* PEER, after all ranks have created the halo: GetOffers returns the data to send to each rank; Open opens the memory
   of the other ranks from their data */
PETSC_INTERN cudaError_t SpMVCudaHaloGetOffers(SpMVCudaHalo, int size, SpMVHaloOffer mine[]);
PETSC_INTERN cudaError_t SpMVCudaHaloOpen(SpMVCudaHalo, const SpMVHaloOffer theirs[]);
/* The first exchanges in each direction that the halo has: NCCL connects the ranks, and PEER tests each landing. Fails
   like SpMVCudaCommCreate() */
PETSC_INTERN cudaError_t SpMVCudaHaloConnect(SpMVCudaHalo, char reason[SPMV_HALO_TEXT]);
/* The reverse of Open. All ranks must call it before the first of them destroys its halo */
PETSC_INTERN cudaError_t SpMVCudaHaloClose(SpMVCudaHalo);
PETSC_INTERN cudaError_t SpMVCudaHaloDestroy(SpMVCudaHalo *);
/* The transport through the host: the function that moves columns of `sent` to the peers' `received` (in reverse,
   `received` to their `sent`) and returns 0 on success. These arrays in pinned memory have one column after the other,
   each in the order of its list */
typedef int       SpMVHaloExchange(void *ctx, PetscBool reverse, int columns, PetscScalar *sent, PetscScalar *received);
PETSC_INTERN void SpMVCudaHaloSetExchange(SpMVCudaHalo, SpMVHaloExchange *, void *ctx);

/* The halo, filled by End, sent by ReverseBegin; NULL if empty. Its columns follow each other without gaps */
PETSC_INTERN PetscScalar *SpMVCudaHaloGetArray(SpMVCudaHalo);
/* PEER with one column: for a product that does what Begin does, or, if it also receives, what Begin and End do except
   that it does not fill the halo's array. Otherwise, and if this rank exchanges nothing, NULL */
PETSC_INTERN SpMVCudaExchange SpMVCudaHaloGetExchange(SpMVCudaHalo);
PETSC_INTERN cudaError_t      SpMVCudaHaloEnter(SpMVCudaHalo, cudaStream_t);
PETSC_INTERN cudaError_t      SpMVCudaHaloLeave(SpMVCudaHalo, cudaStream_t);
PETSC_INTERN cudaError_t      SpMVCudaHaloBegin(SpMVCudaHalo, int columns, const PetscScalar *x, PetscInt64 ldx,
                                                cudaStream_t);
PETSC_INTERN cudaError_t      SpMVCudaHaloEnd(SpMVCudaHalo, cudaStream_t);
PETSC_INTERN cudaError_t      SpMVCudaHaloReverseBegin(SpMVCudaHalo, cudaStream_t);
/* adds the received values to y, in the order of the peers */
PETSC_INTERN cudaError_t SpMVCudaHaloReverseEnd(SpMVCudaHalo, PetscScalar *y, cudaStream_t);
/* A whole exchange of a rank that cannot multiply: it sends NaNs, and does not use what arrives */
PETSC_INTERN cudaError_t SpMVCudaHaloForgo(SpMVCudaHalo, PetscBool reverse, int columns, cudaStream_t);
