/*
  The halo of a parallel matrix on the device.

  Every step of the set-up that can fail on a single rank is followed by SpMVHaloAgree(), so that either all ranks
  continue or none does: if one rank returned alone, the others would wait for it forever in MPI or in NCCL.
*/
#include "halo.h"
#include <petsc/private/petscimpl.h> /* use_gpu_aware_mpi */

/* The core's halo of one column or of several columns */
typedef struct {
  SpMVCudaHalo core; /* NULL if no rank has anything to exchange */
  SpMVHalo     of;
  MPI_Request *request; /* for host arrays, of all columns */
} SpMVHaloCore;

struct _n_SpMVHalo {
  MPI_Comm      comm;
  SpMVHaloLink  link;
  SpMVTransport transport;
  PetscBool     petsc;
  SpMVHaloCore  one, several;
  PetscBool     tried; /* to create `several`; it is tried once, at the first product with several columns */
  PetscSF       lists;
  SpMVHaloList  send, receive;
  PetscMPIInt   tag;
  char          text[3 * SPMV_HALO_TEXT];
};

PetscErrorCode SpMVHaloListsCreate(MPI_Comm comm, PetscLayout cmap, PetscInt nhalo, const PetscInt garray[],
                                   PetscSF *lists, SpMVHaloList *send, SpMVHaloList *receive,
                                   char reason[SPMV_HALO_TEXT])
{
  PetscSF         sf;
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
  PetscCall(PetscSFGetRootRanks(sf, &receive->peers, &receive->rank, &receive->start, &leaf, NULL));
  PetscCall(PetscSFGetLeafRanks(sf, &send->peers, &send->rank, &send->start, &send->index));
  receive->index = NULL;
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

/* Each column is a message; receives are posted first */
static int SpMVHaloExchange_MPI(void *ctx, PetscBool reverse, int columns, PetscScalar *sent, PetscScalar *received)
{
  const SpMVHaloCore *core     = (const SpMVHaloCore *)ctx;
  const SpMVHalo      halo     = core->of;
  const SpMVHaloList *list[2]  = {&halo->receive, &halo->send};
  PetscScalar        *array[2] = {received, sent};
  MPI_Request        *request  = core->request;
  int                 error    = MPI_SUCCESS;

  for (int part = 0; part < 2 * columns; part++) {
    const PetscBool     sends = (PetscBool)(part >= columns);
    const SpMVHaloList *l     = list[sends ^ reverse];
    PetscScalar        *a     = array[sends ^ reverse] + (size_t)(part % columns) * (size_t)l->start[l->peers];

    for (int k = 0; k < l->peers && !error; k++, request++) {
      /* SpMVCudaHaloCreate() has rejected larger ones */
      const PetscMPIInt count = (PetscMPIInt)(l->start[k + 1] - l->start[k]);

      if (sends)
        error = MPI_Isend(a + l->start[k], count, MPIU_SCALAR, l->rank[k], halo->tag, halo->comm, request);
      else
        error = MPI_Irecv(a + l->start[k], count, MPIU_SCALAR, l->rank[k], halo->tag, halo->comm, request);
    }
  }
  if (!error) error = MPI_Waitall((PetscMPIInt)(request - core->request), core->request, MPI_STATUSES_IGNORE);
  return error;
}

/* Collective, even after errors on this rank: no rank may free memory that another rank still has mapped */
static PetscErrorCode SpMVHaloDestroyCore(SpMVHalo halo, SpMVHaloCore *core, cudaError_t *error)
{
  cudaError_t last = cudaSuccess;

  PetscFunctionBegin;
  *error = cudaSuccess;
  PetscCall(PetscFree(core->request));
  if (halo->transport == SPMV_TRANSPORT_PEER) {
    if (core->core) *error = SpMVCudaHaloClose(core->core);
    PetscCallMPI(MPI_Barrier(halo->comm));
  }
  if (core->core) last = SpMVCudaHaloDestroy(&core->core);
  if (*error == cudaSuccess) *error = last;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Peer transport: exchanges the addresses of the memory that ranks write to each other */
static PetscErrorCode SpMVHaloOpen(SpMVHalo halo, SpMVCudaHalo core, cudaError_t *error, char reason[SPMV_HALO_TEXT])
{
  SpMVHaloOffer *mine = NULL, *theirs;
  PetscMPIInt    size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(halo->comm, &size));
  PetscCall(SpMVAgreeOnMemory(halo->comm, 2 * (size_t)size * sizeof(*mine), &mine));
  theirs = mine + size;
  *error = SpMVCudaHaloGetOffers(core, size, mine);
  PetscCall(SpMVHaloAgree(halo->comm, *error, reason));
  if (!reason[0]) {
    PetscCallMPI(MPI_Alltoall(mine, sizeof(*mine), MPI_BYTE, theirs, sizeof(*theirs), MPI_BYTE, halo->comm));
    *error = SpMVCudaHaloOpen(core, theirs);
    PetscCall(SpMVHaloAgree(halo->comm, *error, reason));
  }
  PetscCall(PetscFree(mine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. If the transport fails on one rank, its set-up is undone on all ranks, and all ranks get the reason */
static PetscErrorCode SpMVHaloTry(SpMVHalo halo, SpMVTransport transport, SpMVHaloCore *core,
                                  char reason[SPMV_HALO_TEXT])
{
  const int    columns = core == &halo->several ? SPMV_HALO_COLUMNS : 1;
  SpMVHaloLink link    = halo->link;
  cudaError_t  error;

  PetscFunctionBegin;
  PetscCall(SpMVHaloLinkSetUp(link, transport));
  PetscCall(PetscStrncpy(reason, link->reason[transport], SPMV_HALO_TEXT));
  if (reason[0]) PetscFunctionReturn(PETSC_SUCCESS);

  halo->transport = transport;
  error           = SpMVCudaHaloCreate(link->transport[transport], &halo->send, &halo->receive, columns, &core->core);
  PetscCall(SpMVHaloAgree(halo->comm, error, reason));
  /* with several columns, NCCL has connected the ranks already */
  if (!reason[0] && (transport == SPMV_TRANSPORT_PEER || (transport == SPMV_TRANSPORT_NCCL && columns == 1))) {
    if (transport == SPMV_TRANSPORT_PEER) PetscCall(SpMVHaloOpen(halo, core->core, &error, reason));
    if (!reason[0]) {
      error = SpMVCudaHaloConnect(core->core, reason);
      PetscCall(SpMVHaloAgree(halo->comm, error, reason));
    }
    /* the transport does not work between these ranks; with NCCL, the halos that exist share the broken connection */
    if (reason[0] && columns == 1) {
      int memory = error == cudaErrorMemoryAllocation; /* memory may be available again for the next halo */

      if (transport == SPMV_TRANSPORT_NCCL) SpMVCudaCommAbort(link->transport[transport], reason);
      PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &memory, 1, MPI_INT, MPI_MAX, halo->comm));
      if (transport == SPMV_TRANSPORT_NCCL || !memory)
        PetscCall(PetscStrncpy(link->reason[transport], reason, SPMV_HALO_TEXT));
    }
  }
  if (reason[0]) {
    PetscCall(SpMVHaloDestroyCore(halo, core, &error));
    if (error != cudaSuccess) (void)cudaGetLastError();
  } else if (transport == SPMV_TRANSPORT_HOST) {
    const size_t requests = (size_t)(halo->send.peers + halo->receive.peers) * (size_t)columns;

    PetscCall(SpMVAgreeOnMemory(halo->comm, requests * sizeof(*core->request), &core->request));
    core->of = halo;
    SpMVCudaHaloSetExchange(core->core, SpMVHaloExchange_MPI, core);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes the first transport that works of those that `type` allows. The text says why it is none before it */
static PetscErrorCode SpMVHaloSetUp(SpMVHalo halo, SpMVHaloType type)
{
  const SpMVHaloType types[SPMV_TRANSPORTS]    = {SPMV_HALO_PEER, SPMV_HALO_NCCL, SPMV_HALO_HOST};
  char               name[SPMV_TRANSPORTS][32] = {"GPU to GPU", "NCCL", "MPI on host arrays"}, amount[96];
  char               peer[SPMV_HALO_TEXT] = "", reason[SPMV_HALO_TEXT] = "", why[2 * SPMV_HALO_TEXT + 64] = "";
  PetscInt64         local, sum;
  PetscMPIInt        rank, peers, host = !use_gpu_aware_mpi;
  PetscBool          none, same;
  int                devices;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(halo->comm, &rank));
  local = halo->send.start[halo->send.peers];
  peers = PetscMax(halo->send.peers, halo->receive.peers);
  PetscCallMPI(MPI_Allreduce(&local, &sum, 1, MPIU_INT64, MPI_SUM, halo->comm));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &peers, 1, MPI_INT, MPI_MAX, halo->comm));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &host, 1, MPI_INT, MPI_MAX, halo->comm));
  PetscCall(PetscSNPrintf(amount, sizeof(amount), "at most %d peer%s, %" PetscInt64_FMT " values sent", peers,
                          peers == 1 ? "" : "s", sum));
  if (!sum) {
    PetscCall(PetscStrncpy(halo->text, "nothing to exchange", sizeof(halo->text)));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  (void)cudaGetLastError(); /* a missing device is reported below */
  if (devices)
    PetscCall(PetscDeviceInitialize(PETSC_DEVICE_CUDA)); /* selects this rank's device */
  else
    PetscCall(PetscSNPrintf(reason, sizeof(reason), "rank %d has no GPU", rank));
  PetscCall(SpMVHaloAgree(halo->comm, cudaSuccess, reason));
  none = (PetscBool) !!reason[0];
  for (int t = 0; t < SPMV_TRANSPORTS; t++) {
    if (type != types[t] && type != SPMV_HALO_AUTO) continue;
    /* PETSc's own scatter is faster than host arrays if MPI supports device arrays */
    if (type == SPMV_HALO_AUTO && t == SPMV_TRANSPORT_HOST && (none || !host)) continue;
    if (!none) PetscCall(SpMVHaloTry(halo, (SpMVTransport)t, &halo->one, reason));
    if (!reason[0]) {
      const int v = halo->link->version;

      if (t == SPMV_TRANSPORT_NCCL)
        PetscCall(PetscSNPrintf(name[t], sizeof(name[t]), "NCCL %d.%d.%d", v / 10000, v / 100 % 100, v % 100));
      PetscCall(PetscSNPrintf(halo->text, sizeof(halo->text), "%s, %s%s", name[t], amount, why));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCheck(type == SPMV_HALO_AUTO, halo->comm, PETSC_ERR_SUP_SYS, "-mat_spmv_halo %s: %s", SpMVHaloTypes[type],
               reason);
    PetscCall(PetscInfo(NULL, "No exchange by %s: %s\n", name[t], reason));
    if (t == SPMV_TRANSPORT_HOST) break;
    if (t == SPMV_TRANSPORT_PEER) PetscCall(PetscStrncpy(peer, reason, sizeof(peer)));
    PetscCall(PetscStrcmp(peer, reason, &same));
    if (same)
      PetscCall(PetscSNPrintf(why, sizeof(why), " (%s: %s)", t ? "neither peer nor NCCL" : "not peer", reason));
    else
      PetscCall(PetscSNPrintf(why, sizeof(why), " (not peer: %s; not NCCL: %s)", peer, reason));
  }
  halo->petsc = PETSC_TRUE;
  PetscCall(PetscSNPrintf(halo->text, sizeof(halo->text), "PETSc's VecScatter, %s%s", amount, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVHaloCreate(MPI_Comm comm, PetscLayout cmap, PetscInt nhalo, const PetscInt garray[],
                              SpMVHaloType type, SpMVHalo *halo)
{
  char     reason[SPMV_HALO_TEXT] = "";
  SpMVHalo h                      = NULL;

  PetscFunctionBegin;
  PetscCall(SpMVAgreeOnMemory(comm, sizeof(*h), &h));
  *halo = h;
  PetscCall(PetscCommDuplicate(comm, &h->comm, &h->tag));
  PetscCall(SpMVHaloLinkGet(h->comm, &h->link));
  if (type == SPMV_HALO_PETSC) {
    h->petsc = PETSC_TRUE;
    PetscCall(PetscStrncpy(h->text, "PETSc's VecScatter", sizeof(h->text)));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(SpMVHaloListsCreate(h->comm, cmap, nhalo, garray, &h->lists, &h->send, &h->receive, reason));
  if (reason[0]) {
    h->petsc = PETSC_TRUE;
    PetscCheck(type == SPMV_HALO_AUTO, h->comm, PETSC_ERR_SUP, "-mat_spmv_halo %s: %s", SpMVHaloTypes[type], reason);
    PetscCall(PetscSNPrintf(h->text, sizeof(h->text), "PETSc's VecScatter (%s)", reason));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(SpMVHaloSetUp(h, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVHaloDestroy(SpMVHalo *halo)
{
  SpMVHalo    h     = *halo;
  cudaError_t first = cudaSuccess;

  PetscFunctionBegin;
  if (!h) PetscFunctionReturn(PETSC_SUCCESS);
  *halo = NULL;
  for (int k = 0; k < 2; k++) {
    SpMVHaloCore *core = k ? &h->one : &h->several;
    cudaError_t   error;

    if (!core->core) continue;
    PetscCall(SpMVHaloDestroyCore(h, core, &error));
    if (first == cudaSuccess) first = error;
  }
  PetscCall(PetscSFDestroy(&h->lists));
  if (h->link) SpMVHaloLinkDereference(h->link);
  PetscCall(PetscCommDestroy(&h->comm));
  PetscCall(PetscFree(h));
  PetscCallCUDA(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After a failure on any rank, which is mostly lack of memory, columns are exchanged one by one on all ranks, until the
   halo is created again */
PetscErrorCode SpMVHaloSetUpColumns(SpMVHalo halo, PetscBool *possible)
{
  PetscFunctionBegin;
  if (!halo->tried && halo->one.core) {
    char           reason[SPMV_HALO_TEXT] = "";
    PetscErrorCode ierr;
    cudaError_t    error;

    halo->tried = PETSC_TRUE;
    ierr        = SpMVAgree(halo->comm, SpMVHaloTry(halo, halo->transport, &halo->several, reason));
    if (ierr) PetscCall(SpMVHaloDestroyCore(halo, &halo->several, &error));
    PetscCall(ierr);
    if (reason[0]) PetscCall(PetscInfo(NULL, "No exchange of several columns: %s\n", reason));
  }
  *possible = (PetscBool)(!halo->petsc && (!halo->one.core || halo->several.core));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool SpMVHaloUsesPetsc(SpMVHalo halo)
{
  return halo->petsc;
}

const char *SpMVHaloDescribe(SpMVHalo halo)
{
  return halo->text;
}

PetscErrorCode SpMVHaloGet(SpMVHalo halo, PetscBool columns, SpMVCudaHalo *core, PetscScalar **received, PetscInt *ld)
{
  PetscFunctionBegin;
  *core     = columns ? halo->several.core : halo->one.core;
  *received = *core ? SpMVCudaHaloGetArray(*core) : NULL;
  *ld       = *received ? halo->receive.start[halo->receive.peers] : 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error of the exchange, with the transport's own text if it has one */
PetscErrorCode SpMVHaloFail(SpMVHalo halo, cudaError_t error)
{
  const char *text = SpMVCudaCommGetError(halo->link->transport[halo->transport]);

  PetscFunctionBegin;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_GPU, "Halo exchange: %s", text[0] ? text : cudaGetErrorString(error));
}
