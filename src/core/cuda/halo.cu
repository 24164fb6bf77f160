/*
  The halo exchange on the device. NCCL's library is opened when it is first wanted, so that this one needs it neither to be built nor to
  be loaded; the few of its types that the functions take have not changed since they appeared.
*/
#include "halo.h"
#include "device.cuh"
#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <dlfcn.h>
#include <future>
#include <memory>
#include <numeric>
#include <thread>

using namespace spmv;

namespace {

void Say(char text[SPMV_HALO_TEXT], const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, SPMV_HALO_TEXT, format, arguments);
  va_end(arguments);
}

// ------------------------------------------------------------------------------------------------ NCCL

using NcclComm = void *;
enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };
constexpr int NCCL_REAL = sizeof(PetscReal) == 8 ? 8 : 7; // ncclFloat64, ncclFloat32
constexpr int REALS     = sizeof(Scalar) / sizeof(PetscReal);

// Of ncclConfig_t what there was in 2.17, which later versions know by its size
struct NcclConfig {
  size_t      size;
  unsigned    magic, version;
  int         blocking, cga, min_ctas, max_ctas;
  const char *net;
};

/*
  NCCL's kernels take thread blocks of the device from the product beside them, by default so many that a halo of half a megabyte costs 3 % of a
  product, and a buffer of megabytes for each. Four move as much as a halo has in the time that it has.
*/
constexpr int HALO_BLOCKS = 4;

#define NCCL_FUNCTIONS(X)                                                \
  X(GetVersion, int, (int *))                                            \
  X(GetUniqueId, int, (SpMVNCCLId *))                                    \
  X(CommInitRank, int, (NcclComm *, int, SpMVNCCLId, int))               \
  X(CommDestroy, int, (NcclComm))                                        \
  X(CommAbort, int, (NcclComm))                                          \
  X(CommGetAsyncError, int, (NcclComm, int *))                           \
  X(GetErrorString, const char *, (int))                                 \
  X(GroupStart, int, ())                                                 \
  X(GroupEnd, int, ())                                                   \
  X(Send, int, (const void *, size_t, int, int, NcclComm, cudaStream_t)) \
  X(Recv, int, (void *, size_t, int, int, NcclComm, cudaStream_t))

struct Nccl {
#define NCCL_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  NCCL_FUNCTIONS(NCCL_MEMBER)
  const char *(*GetLastError)(NcclComm)                                   = nullptr; // only in newer ones, like the next
  int (*InitConfig)(NcclComm *, int, SpMVNCCLId, int, const NcclConfig *) = nullptr;
  int  version                                                            = 0;
  char reason[SPMV_HALO_TEXT]                                             = "";

  Nccl()
  {
    const char *const name    = "libnccl.so.2";
    void             *library = dlopen(name, RTLD_NOW | RTLD_LOCAL); // never closed: it has threads of its own
    if (!library) {
      Say(reason, "cannot load NCCL: %s", dlerror());
      return;
    }
#define NCCL_RESOLVE(function, result, arguments)                            \
  if (!(function = (result(*) arguments)dlsym(library, "nccl" #function))) { \
    Say(reason, "%s has no function nccl" #function, name);                  \
    return;                                                                  \
  }
    NCCL_FUNCTIONS(NCCL_RESOLVE)
    GetLastError    = (const char *(*)(NcclComm))dlsym(library, "ncclGetLastError");
    int       found = 0;
    const int error = GetVersion(&found);
    if (error)
      Say(reason, "ncclGetVersion: %s", GetErrorString(error));
    else
      version = found;
    if (version >= 21700) *(void **)&InitConfig = dlsym(library, "ncclCommInitRankConfig");
  }
  int Init(NcclComm *comm, int size, const SpMVNCCLId &id, int rank) const
  {
    const NcclConfig config = {sizeof(config), 0xcafebeefu, 21700, 1, INT_MIN, INT_MIN, HALO_BLOCKS, nullptr};
    return InitConfig ? InitConfig(comm, size, id, rank, &config) : CommInitRank(comm, size, id, rank);
  }
  // What failed, with whatever NCCL has to say of it
  void Explain(char text[SPMV_HALO_TEXT], const char *what, int error) const
  {
    const char *more = GetLastError ? GetLastError(nullptr) : nullptr;
    Say(text, "%s: %s%s%s", what, GetErrorString(error), more && *more ? ": " : "", more && *more ? more : "");
  }
};

const Nccl &TheNccl()
{
  static const Nccl nccl;
  return nccl;
}

/*
  Calls f in a thread and waits for it for a while: NCCL's set-up waits for the other ranks without end, and one of them may have failed.
  A thread that does not return is left alone, and its code must then stay where it is, whoever unloads this library.
*/
template <class Result> bool Bounded(std::function<Result()> f, Result *result)
{
  try {
    std::packaged_task<Result()> task(std::move(f));
    std::future<Result>          future = task.get_future();
    std::thread(std::move(task)).detach();
    if (future.wait_for(std::chrono::seconds(SPMV_HALO_SECONDS)) == std::future_status::ready) {
      *result = future.get();
      return true;
    }
  } catch (const std::exception &) { // no thread could be started: nothing has been done
    return false;
  }
  Dl_info here;
  if (dladdr((void *)&TheNccl, &here)) (void)dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  return false;
}

// ------------------------------------------------------------------------------------------------ kernels

// Where 32 entries in turn are a run of x, no index is read
__global__ void __launch_bounds__(256) Pack(int n, const int *__restrict__ run, const int *__restrict__ index, const Scalar *__restrict__ x, Scalar *packed)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int first = run[i / WARP];
  packed[i]       = Num::keep(x + (first >= 0 ? first + i % WARP : index[i]));
}

// A row is the sum of its own value and of what the peers sent for it, in their order
__global__ void __launch_bounds__(256)
    Add(int n, const int *__restrict__ row, const int *__restrict__ start, const int *__restrict__ place, const Scalar *__restrict__ came, Scalar *y)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int r   = row[i];
  Scalar    sum = y[r];
  for (int k = start[i]; k < start[i + 1]; k++) sum = Num::add(sum, came[place[k]]);
  y[r] = sum;
}

struct Pinned {
  Scalar *p = nullptr;
  ~Pinned()
  {
    if (p) cudaFreeHost(p);
  }
};

struct Event {
  cudaEvent_t event = nullptr;
  ~Event()
  {
    if (event) cudaEventDestroy(event);
  }
  cudaError_t Create()
  {
    return cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  operator cudaEvent_t() const
  {
    return event;
  }
};

// A piece: count entries from start on; of what is sent, `first` is where they begin in x if they are one run of it, else -1
struct Piece {
  int rank, start, count, first;
};

} // namespace

struct _n_SpMVCudaComm {
  int          rank, device = 0;
  NcclComm     nccl                  = nullptr;
  bool         host                  = false;
  bool         stuck                 = false; // something on the stream may never end
  unsigned     exchanges             = 0;
  cudaStream_t stream                = nullptr;
  char         error[SPMV_HALO_TEXT] = "";

  ~_n_SpMVCudaComm()
  {
    if (stream) cudaStreamDestroy(stream);
  }
  cudaError_t Failed(const char *what, int code)
  {
    TheNccl().Explain(error, what, code);
    return cudaErrorUnknown;
  }
};

struct _n_SpMVCudaHalo {
  SpMVCudaComm       comm;
  std::vector<Piece> send, receive;
  int                sent = 0, received = 0, packed = 0, rows = 0;
  Array<Scalar>      buffer, halo;      // what is sent and what comes, in reverse the other way round
  Array<int>         run, index;        // of x: what is packed
  Array<int>         row, start, place; // the reverse's sums
  Event              ready, staged, done;
  Pinned             host_sent, host_received;
  int (*exchange)(void *, PetscBool) = nullptr;
  void *ctx                          = nullptr;

  explicit _n_SpMVCudaHalo(SpMVCudaComm c) : comm(c)
  {
  }
  bool Idle() const
  {
    return send.empty() && receive.empty();
  }
  // On the halo's stream, behind whatever `stream` has done. Without x, what the buffer holds is sent.
  cudaError_t Begin(bool reverse, const Scalar *x, cudaStream_t stream)
  {
    if (Idle()) return cudaSuccess;
    if (comm->error[0]) return cudaErrorUnknown;
    SPMV_TRY(cudaEventRecord(ready, stream));
    SPMV_TRY(cudaStreamWaitEvent(comm->stream, ready, 0));
    if (x) SPMV_LAUNCH(packed, 256, comm->stream, Pack, packed, run, index, x, buffer);
    return comm->host ? Stage(reverse) : Exchange(reverse, x);
  }
  // What came is there, for whatever follows on the halo's stream
  cudaError_t Receive(bool reverse)
  {
    return comm->host && !Idle() ? Unstage(reverse) : cudaSuccess;
  }
  // `stream` waits for the halo's
  cudaError_t Join(cudaStream_t stream)
  {
    if (Idle()) return cudaSuccess;
    SPMV_TRY(cudaEventRecord(done, comm->stream));
    return cudaStreamWaitEvent(stream, done, 0);
  }
  cudaError_t End(bool reverse, cudaStream_t stream)
  {
    SPMV_TRY(Receive(reverse));
    return Join(stream);
  }

  // NCCL
  cudaError_t Exchange(bool reverse, const Scalar *x)
  {
    const Nccl &nccl  = TheNccl();
    const char *what  = "ncclGroupStart";
    int         error = nccl.GroupStart();
    if (error) return comm->Failed(what, error);
    for (const Piece &p : send) {
      Scalar *const at = buffer + p.start;
      if (error) break;
      what  = reverse ? "ncclRecv" : "ncclSend";
      error = reverse ? nccl.Recv(at, (size_t)p.count * REALS, NCCL_REAL, p.rank, comm->nccl, comm->stream)
                      : nccl.Send(x && p.first >= 0 ? x + p.first : at, (size_t)p.count * REALS, NCCL_REAL, p.rank, comm->nccl, comm->stream);
    }
    for (const Piece &p : receive) {
      Scalar *const at = halo + p.start;
      if (error) break;
      what  = reverse ? "ncclSend" : "ncclRecv";
      error = reverse ? nccl.Send(at, (size_t)p.count * REALS, NCCL_REAL, p.rank, comm->nccl, comm->stream)
                      : nccl.Recv(at, (size_t)p.count * REALS, NCCL_REAL, p.rank, comm->nccl, comm->stream);
    }
    const int end = nccl.GroupEnd(); // whatever happened: it closes the group
    if (error || end) return comm->Failed(error ? what : "ncclGroupEnd", error ? error : end);
    // Errors of the network come up later; cheap, but not for nothing
    if (comm->exchanges++ % 128 == 0 && (nccl.CommGetAsyncError(comm->nccl, &error) || (error && error != NCCL_IN_PROGRESS)))
      return comm->Failed("an earlier exchange", error);
    return cudaSuccess;
  }

  // The host's transport: out of the device as soon as x is there, and, at the end, through the caller's function and back
  cudaError_t Stage(bool reverse)
  {
    const int n = reverse ? received : sent;
    if (n)
      SPMV_TRY(cudaMemcpyAsync(reverse ? host_received.p : host_sent.p, reverse ? halo : buffer, n * sizeof(Scalar), cudaMemcpyDeviceToHost, comm->stream));
    return cudaEventRecord(staged, comm->stream);
  }
  cudaError_t Unstage(bool reverse)
  {
    const int n = reverse ? sent : received;
    SPMV_TRY(cudaEventSynchronize(staged)); // also: what the last exchange brought has left the pinned memory
    const int error = exchange(ctx, reverse ? PETSC_TRUE : PETSC_FALSE);
    if (error) {
      Say(comm->error, "MPI error %d while exchanging the halo", error);
      return cudaErrorUnknown;
    }
    if (!n) return cudaSuccess;
    return cudaMemcpyAsync(reverse ? buffer : halo, reverse ? host_sent.p : host_received.p, n * sizeof(Scalar), cudaMemcpyHostToDevice, comm->stream);
  }

  cudaError_t Create(const SpMVHaloList *s, const SpMVHaloList *r);
};

/*
  NCCL sends a list that is one run of x from there; all others are packed into the buffer, whose first part they are. The host's transport
  packs everything, in the order of the list. The reverse's sums are listed row by row, so that one kernel does them all: with a kernel
  for each peer, in turn, a rank with many neighbours would wait for as many launches.
*/
cudaError_t _n_SpMVCudaHalo::Create(const SpMVHaloList *s, const SpMVHaloList *r)
{
  sent     = (int)s->start[s->peers];
  received = (int)r->start[r->peers];
  for (int k = 0; k < r->peers; k++) receive.push_back({r->rank[k], (int)r->start[k], (int)(r->start[k + 1] - r->start[k]), -1});
  for (int k = 0; k < s->peers; k++) {
    Piece p{s->rank[k], 0, (int)(s->start[k + 1] - s->start[k]), -1};
    bool  one = !comm->host;
    for (PetscInt i = s->start[k] + 1; one && i < s->start[k + 1]; i++) one = s->index[i] == s->index[i - 1] + 1;
    if (one) p.first = (int)s->index[s->start[k]];
    send.push_back(p);
  }
  int at = 0;
  for (const bool run : {false, true}) {
    for (Piece &p : send) {
      if ((p.first >= 0) != run) continue;
      p.start = at;
      at += p.count;
    }
    if (!run) packed = at;
  }

  std::vector<int> from(packed), to(sent), order(sent), runs((packed + WARP - 1) / WARP, -1), rowv, startv, placev(sent);
  for (size_t k = 0; k < send.size(); k++) {
    for (int i = 0; i < send[k].count; i++) {
      const PetscInt in = s->start[k] + i;
      to[in]            = send[k].start + i;
      if (to[in] < packed) from[to[in]] = (int)s->index[in];
    }
  }
  for (size_t w = 0; w < runs.size(); w++) {
    const int first = (int)w * WARP, last = std::min(packed, first + WARP);
    int       i = first + 1;
    while (i < last && from[i] == from[i - 1] + 1) i++;
    if (i == last) runs[w] = from[first];
  }
  std::iota(order.begin(), order.end(), 0); // peer by peer, and so within each row
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return s->index[a] < s->index[b]; });
  for (int i = 0; i < sent; i++) {
    const int of = (int)s->index[order[i]];
    if (rowv.empty() || rowv.back() != of) {
      rowv.push_back(of);
      startv.push_back(i);
    }
    placev[i] = to[order[i]];
  }
  startv.push_back(sent);
  rows = (int)rowv.size();

  SPMV_TRY(buffer.Alloc(sent));
  SPMV_TRY(halo.Alloc(received));
  SPMV_TRY(cudaMemset(buffer, 0, buffer.Bytes())); // what Connect() sends
  SPMV_TRY(cudaMemset(halo, 0, halo.Bytes()));
  SPMV_TRY(Upload(run, runs, nullptr));
  SPMV_TRY(Upload(index, from, nullptr));
  SPMV_TRY(Upload(row, rowv, nullptr));
  SPMV_TRY(Upload(start, startv, nullptr));
  SPMV_TRY(Upload(place, placev, nullptr));
  if (comm->host) {
    SPMV_TRY(cudaHostAlloc((void **)&host_sent.p, (sent + 1) * sizeof(Scalar), cudaHostAllocDefault));
    SPMV_TRY(cudaHostAlloc((void **)&host_received.p, (received + 1) * sizeof(Scalar), cudaHostAllocDefault));
  }
  SPMV_TRY(ready.Create());
  SPMV_TRY(staged.Create());
  SPMV_TRY(done.Create());
  SPMV_TRY(Load((const void *)Pack));
  SPMV_TRY(Load((const void *)Add));
  return cudaDeviceSynchronize(); // the copies above belong to another stream than the halo's
}

// ------------------------------------------------------------------------------------------------ the interface

PETSC_INTERN int SpMVNCCLLoad(char reason[SPMV_HALO_TEXT])
{
  Say(reason, "%s", TheNccl().reason);
  return TheNccl().version;
}

PETSC_INTERN cudaError_t SpMVNCCLGetId(SpMVNCCLId *id, char reason[SPMV_HALO_TEXT])
{
  const int error = TheNccl().GetUniqueId(id);
  if (!error) return cudaSuccess;
  TheNccl().Explain(reason, "ncclGetUniqueId", error);
  return cudaErrorUnknown;
}

PETSC_INTERN cudaError_t SpMVCudaCommCreate(int size, int rank, const SpMVNCCLId *id, SpMVCudaComm *result, char reason[SPMV_HALO_TEXT])
{
  std::unique_ptr<_n_SpMVCudaComm> comm(new (std::nothrow) _n_SpMVCudaComm{rank});
  int                              low, high;
  cudaError_t                      error = comm ? cudaSuccess : cudaErrorMemoryAllocation;
  if (!error) error = cudaGetDevice(&comm->device);
  if (!error) error = cudaDeviceGetStreamPriorityRange(&low, &high);
  if (!error) error = cudaStreamCreateWithPriority(&comm->stream, cudaStreamNonBlocking, high);
  if (error) {
    Say(reason, "rank %d: %s", rank, cudaGetErrorString(error));
    return error;
  }
  comm->host = !id;
  if (id) {
    struct Made {
      NcclComm nccl;
      int      error;
    } made{};
    const int        device = comm->device;
    const SpMVNCCLId copy   = *id;
    const auto       init   = [=] {
      Made m{};
      m.error = cudaSetDevice(device) ? 1 /* ncclUnhandledCudaError */ : TheNccl().Init(&m.nccl, size, copy, rank);
      return m;
    };
    if (!Bounded<Made>(init, &made)) {
      Say(reason, "rank %d: ncclCommInitRank has not come back after %d seconds", rank, SPMV_HALO_SECONDS);
      return cudaErrorTimeout;
    }
    if (made.error) {
      char what[64];
      snprintf(what, sizeof(what), "rank %d: ncclCommInitRank", rank);
      TheNccl().Explain(reason, what, made.error);
      return cudaErrorUnknown;
    }
    comm->nccl = made.nccl;
  }
  *result = comm.release();
  return cudaSuccess;
}

PETSC_INTERN void SpMVCudaCommAbort(SpMVCudaComm comm, const char reason[])
{
  int ignored;
  if (!comm->error[0]) Say(comm->error, "%s", reason);
  if (!comm->nccl) return;
  const NcclComm nccl = comm->nccl;
  comm->nccl          = nullptr;
  if (!Bounded<int>([=] { return TheNccl().CommAbort(nccl); }, &ignored)) comm->stuck = true;
}

PETSC_INTERN void SpMVCudaCommDestroy(SpMVCudaComm *comm)
{
  if (!*comm) return;
  if ((*comm)->nccl) {
    if ((*comm)->error[0])
      SpMVCudaCommAbort(*comm, ""); // its peers may be gone
    else
      (void)TheNccl().CommDestroy((*comm)->nccl);
  }
  if (!(*comm)->stuck) delete *comm;
  *comm = nullptr;
}

PETSC_INTERN const char *SpMVCudaCommGetError(SpMVCudaComm comm)
{
  return comm->error;
}

PETSC_INTERN cudaError_t SpMVCudaHaloCreate(SpMVCudaComm comm, const SpMVHaloList *send, const SpMVHaloList *receive, SpMVCudaHalo *halo)
{
  int device;
  SPMV_TRY(cudaGetDevice(&device));
  if (device != comm->device) return cudaErrorInvalidDevice;
  if (send->start[send->peers] >= INT_MAX - 256 || receive->start[receive->peers] >= INT_MAX - 256) return cudaErrorNotSupported;
  for (PetscInt i = 0; i < send->start[send->peers]; i++) {
    if (send->index[i] >= INT_MAX - WARP) return cudaErrorNotSupported;
  }
  try {
    std::unique_ptr<_n_SpMVCudaHalo> h(new _n_SpMVCudaHalo(comm));
    SPMV_TRY(h->Create(send, receive));
    *halo = h.release();
  } catch (const std::bad_alloc &) {
    return cudaErrorMemoryAllocation;
  }
  return cudaSuccess;
}

PETSC_INTERN cudaError_t SpMVCudaHaloConnect(SpMVCudaHalo halo, char reason[SPMV_HALO_TEXT])
{
  SpMVCudaComm comm  = halo->comm;
  cudaError_t  error = cudaSuccess;
  if (comm->host || halo->Idle()) return cudaSuccess;
  const auto both = [=]() -> cudaError_t {
    SPMV_TRY(cudaSetDevice(comm->device));
    for (const bool reverse : {false, true}) {
      SPMV_TRY(halo->Begin(reverse, nullptr, comm->stream));
      SPMV_TRY(halo->End(reverse, comm->stream));
    }
    return cudaStreamSynchronize(comm->stream);
  };
  if (!Bounded<cudaError_t>(both, &error)) {
    comm->stuck = true;
    error       = cudaErrorTimeout;
    Say(reason, "rank %d: NCCL's first exchange has not come to an end after %d seconds", comm->rank, SPMV_HALO_SECONDS);
  } else if (error)
    Say(reason, "rank %d: %s", comm->rank, comm->error[0] ? comm->error : cudaGetErrorString(error));
  return error;
}

PETSC_INTERN cudaError_t SpMVCudaHaloDestroy(SpMVCudaHalo *halo)
{
  SpMVCudaHalo h = *halo;
  *halo          = nullptr;
  if (!h || h->comm->stuck) return cudaSuccess; // freeing would wait for what does not end
  const cudaError_t error = h->Idle() ? cudaSuccess : cudaStreamSynchronize(h->comm->stream);
  delete h;
  return error;
}

PETSC_INTERN void SpMVCudaHaloGetStaged(SpMVCudaHalo halo, PetscScalar **sent, PetscScalar **received)
{
  *sent     = (PetscScalar *)halo->host_sent.p;
  *received = (PetscScalar *)halo->host_received.p;
}

PETSC_INTERN void SpMVCudaHaloSetExchange(SpMVCudaHalo halo, int (*exchange)(void *, PetscBool), void *ctx)
{
  halo->exchange = exchange;
  halo->ctx      = ctx;
}

PETSC_INTERN PetscScalar *SpMVCudaHaloGetArray(SpMVCudaHalo halo)
{
  return halo->received ? (PetscScalar *)(Scalar *)halo->halo : nullptr;
}

PETSC_INTERN cudaError_t SpMVCudaHaloBegin(SpMVCudaHalo halo, const PetscScalar *x, cudaStream_t stream)
{
  return halo->Begin(false, (const Scalar *)x, stream);
}

PETSC_INTERN cudaError_t SpMVCudaHaloEnd(SpMVCudaHalo halo, cudaStream_t stream)
{
  return halo->End(false, stream);
}

PETSC_INTERN cudaError_t SpMVCudaHaloReceive(SpMVCudaHalo halo, cudaStream_t *stream)
{
  *stream = halo->comm->stream;
  return halo->Receive(false);
}

PETSC_INTERN cudaError_t SpMVCudaHaloJoin(SpMVCudaHalo halo, cudaStream_t stream)
{
  return halo->Join(stream);
}

PETSC_INTERN cudaError_t SpMVCudaHaloReverseBegin(SpMVCudaHalo halo, cudaStream_t stream)
{
  return halo->Begin(true, nullptr, stream);
}

PETSC_INTERN cudaError_t SpMVCudaHaloReverseEnd(SpMVCudaHalo halo, PetscScalar *y, cudaStream_t stream)
{
  SPMV_TRY(halo->End(true, stream));
  SPMV_LAUNCH(halo->rows, 256, stream, Add, halo->rows, halo->row, halo->start, halo->place, halo->buffer, (Scalar *)y);
  return cudaSuccess;
}
