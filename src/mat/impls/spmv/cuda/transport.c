/*
  The transports between the devices of a communicator, which keeps them: they are set up once for all halos.
*/
#include "halo.h"

/*
  Collective: broadcasts the lowest failing rank's error text. Timeouts count last, since they are usually caused by
  another rank's failure.
*/
PetscErrorCode SpMVHaloAgree(MPI_Comm comm, cudaError_t error, char reason[SPMV_HALO_TEXT])
{
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  if (error != cudaSuccess && !reason[0])
    PetscCall(PetscSNPrintf(reason, SPMV_HALO_TEXT, "rank %d: %s", rank, cudaGetErrorString(error)));
  if (error != cudaSuccess) (void)cudaGetLastError(); /* or the next launch would report it */
  PetscCall(SpMVAgreeOnText(comm, (PetscBool)(error != cudaErrorTimeout), reason, SPMV_HALO_TEXT));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscMPIInt  SpMVHaloKeyval = MPI_KEYVAL_INVALID;
static SpMVHaloLink SpMVHaloLinks;

void SpMVHaloLinkDereference(SpMVHaloLink link)
{
  if (--link->refct) return;
  for (int k = 0; k < SPMV_TRANSPORTS; k++) SpMVCudaCommDestroy(&link->transport[k]);
  for (SpMVHaloLink *p = &SpMVHaloLinks; *p; p = &(*p)->next) {
    if (*p == link) {
      *p = link->next;
      break;
    }
  }
  (void)PetscFree(link);
}

static PetscMPIInt MPIAPI SpMVHaloLinkDelete(MPI_Comm comm, PetscMPIInt keyval, void *attribute, void *extra)
{
  SpMVHaloLink link = (SpMVHaloLink)attribute;

  (void)comm;
  (void)keyval;
  (void)extra;
  link->comm = MPI_COMM_NULL;
  SpMVHaloLinkDereference(link);
  return MPI_SUCCESS;
}

/* Communicators may outlive PETSc, and this library may be unloaded after it */
static PetscErrorCode SpMVHaloFinalize(void)
{
  PetscFunctionBegin;
  for (SpMVHaloLink link = SpMVHaloLinks, next; link; link = next) {
    next = link->next;
    if (link->comm != MPI_COMM_NULL) PetscCallMPI(MPI_Comm_delete_attr(link->comm, SpMVHaloKeyval));
  }
  PetscCallMPI(MPI_Comm_free_keyval(&SpMVHaloKeyval));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVHaloLinkGet(MPI_Comm comm, SpMVHaloLink *link)
{
  PetscMPIInt found;

  PetscFunctionBegin;
  if (SpMVHaloKeyval == MPI_KEYVAL_INVALID) {
    PetscCallMPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, SpMVHaloLinkDelete, &SpMVHaloKeyval, NULL));
    PetscCall(PetscRegisterFinalize(SpMVHaloFinalize));
  }
  PetscCallMPI(MPI_Comm_get_attr(comm, SpMVHaloKeyval, link, &found));
  if (!found) {
    PetscCall(SpMVAgreeOnMemory(comm, sizeof(**link), link));
    (*link)->comm  = comm;
    (*link)->refct = 1;
    (*link)->next  = SpMVHaloLinks;
    SpMVHaloLinks  = *link;
    PetscCallMPI(MPI_Comm_set_attr(comm, SpMVHaloKeyval, *link));
  }
  (*link)->refct++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Properties that must differ (GPU), or be equal (NCCL's version), on all ranks */
typedef struct {
  char uuid[16];
  int  rank, version;
} SpMVHaloCard;

static int SpMVHaloCardCompare(const void *a, const void *b)
{
  const SpMVHaloCard *p = (const SpMVHaloCard *)a, *q = (const SpMVHaloCard *)b;
  const int           c = memcmp(p->uuid, q->uuid, sizeof(p->uuid));

  return c ? c : p->rank - q->rank;
}

/* Collective. All ranks get the same result, because every rank compares the cards of all ranks */
static PetscErrorCode SpMVHaloLinkCompareCards(SpMVHaloLink link, SpMVHaloCard *mine, char reason[SPMV_HALO_TEXT])
{
  SpMVHaloCard *card = NULL;
  PetscMPIInt   size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(link->comm, &size));
  PetscCall(SpMVAgreeOnMemory(link->comm, (size_t)size * sizeof(*card), &card));
  PetscCallMPI(MPI_Allgather(mine, sizeof(*mine), MPI_BYTE, card, sizeof(*mine), MPI_BYTE, link->comm));
  for (PetscMPIInt r = 1; r < size && !reason[0]; r++) {
    if (card[r].version != card[0].version)
      PetscCall(PetscSNPrintf(reason, SPMV_HALO_TEXT, "rank 0 has NCCL %d, rank %d has %d", card[0].version, r,
                              card[r].version));
  }
  qsort(card, (size_t)size, sizeof(*card), SpMVHaloCardCompare);
  for (PetscMPIInt r = 1; r < size && !reason[0]; r++) {
    if (!memcmp(card[r].uuid, card[r - 1].uuid, sizeof(card[r].uuid)))
      PetscCall(PetscSNPrintf(reason, SPMV_HALO_TEXT, "ranks %d and %d share a GPU", card[r - 1].rank, card[r].rank));
  }
  PetscCall(PetscFree(card));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. If the transport is not available, all ranks get the reason */
PetscErrorCode SpMVHaloLinkSetUp(SpMVHaloLink link, SpMVTransport transport)
{
  struct {
    SpMVNCCLId id;
    char       reason[SPMV_HALO_TEXT];
  } offer;
  char                 *reason = link->reason[transport];
  SpMVHaloCard          card;
  struct cudaDeviceProp properties;
  MPI_Comm              node;
  PetscMPIInt           rank, size, near;
  int                   device;
  cudaError_t           error;

  PetscFunctionBegin;
  if (link->tried[transport]) PetscFunctionReturn(PETSC_SUCCESS);
  link->tried[transport] = PETSC_TRUE;
  PetscCallMPI(MPI_Comm_rank(link->comm, &rank));
  PetscCallMPI(MPI_Comm_size(link->comm, &size));
  PetscCall(PetscMemzero(&card, sizeof(card)));
  PetscCall(PetscMemzero(&offer, sizeof(offer)));

  if (transport == SPMV_TRANSPORT_PEER) {
    PetscCallMPI(MPI_Comm_split_type(link->comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
    PetscCallMPI(MPI_Comm_size(node, &near));
    PetscCallMPI(MPI_Comm_free(&node));
    if (near < size) PetscCall(PetscStrncpy(reason, "the ranks are on several nodes", SPMV_HALO_TEXT));
  }
  if (transport != SPMV_TRANSPORT_HOST) {
    error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess && transport == SPMV_TRANSPORT_NCCL) card.version = link->version = SpMVNCCLLoad(reason);
    PetscCall(SpMVHaloAgree(link->comm, error, reason));
    if (reason[0]) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(PetscMemcpy(card.uuid, &properties.uuid, sizeof(card.uuid)));
    card.rank = rank;
    PetscCall(SpMVHaloLinkCompareCards(link, &card, reason));
    if (reason[0]) PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (transport == SPMV_TRANSPORT_NCCL) {
    if (rank == 0) (void)SpMVNCCLGetId(&offer.id, offer.reason);
    PetscCallMPI(MPI_Bcast(&offer, sizeof(offer), MPI_BYTE, 0, link->comm));
    PetscCall(PetscStrncpy(reason, offer.reason, SPMV_HALO_TEXT));
    if (reason[0]) PetscFunctionReturn(PETSC_SUCCESS);
  }
  error = SpMVCudaCommCreate(transport, size, rank, &offer.id, &link->transport[transport], reason);
  PetscCall(SpMVHaloAgree(link->comm, error, reason));
  if (reason[0] && link->transport[transport]) {
    SpMVCudaCommAbort(link->transport[transport], reason);
    SpMVCudaCommDestroy(&link->transport[transport]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVHaloGetComm(MPI_Comm comm, SpMVTransport transport, SpMVCudaComm *core, char reason[SPMV_HALO_TEXT])
{
  SpMVHaloLink link;

  PetscFunctionBegin;
  PetscCall(SpMVHaloLinkGet(comm, &link));
  SpMVHaloLinkDereference(link); /* the communicator holds a reference, too */
  PetscCall(SpMVHaloLinkSetUp(link, transport));
  PetscCall(PetscStrncpy(reason, link->reason[transport], SPMV_HALO_TEXT));
  *core = reason[0] ? NULL : link->transport[transport];
  PetscFunctionReturn(PETSC_SUCCESS);
}
