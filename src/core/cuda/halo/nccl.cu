/*
  The halo exchange with NCCL, and the communicators of all transports. NCCL's library is opened when it is first
  needed, so that this library does not need it to build or load. The few NCCL types that the functions use have not
  changed since they were introduced.
*/
#include "halo.cuh"
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <dlfcn.h>
#include <map>
#include <memory>

using namespace spmv;

namespace {

enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };
constexpr int NCCL_REAL = sizeof(PetscReal) == 8 ? 8 : 7; // ncclFloat64, ncclFloat32

// The part of ncclConfig_t that NCCL 2.17 has; later versions recognize it by its size
struct NcclConfig {
  size_t      size;
  unsigned    magic, version;
  int         blocking, cga, min_ctas, max_ctas;
  const char *net;
};

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
  X(Recv, int, (void *, size_t, int, int, NcclComm, cudaStream_t))       \
  X(AllReduce, int, (const void *, void *, size_t, int, int, NcclComm, cudaStream_t))

struct Nccl {
#define NCCL_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  NCCL_FUNCTIONS(NCCL_MEMBER)
  // this function and the next one exist only in newer versions
  const char *(*GetLastError)(NcclComm)                                   = nullptr;
  int (*InitConfig)(NcclComm *, int, SpMVNCCLId, int, const NcclConfig *) = nullptr;
  int  version                                                            = 0;
  char reason[SPMV_HALO_TEXT]                                             = "";

  Nccl()
  {
    const char *const name    = "libnccl.so.2";
    void             *library = dlopen(name, RTLD_NOW | RTLD_LOCAL); // never closed, because it has its own threads
    if (!library) {
      Report(reason, "cannot load NCCL: %s", dlerror());
      return;
    }
#define NCCL_RESOLVE(function, result, arguments)                            \
  if (!(function = (result(*) arguments)dlsym(library, "nccl" #function))) { \
    Report(reason, "%s has no function nccl" #function, name);               \
    return;                                                                  \
  }
    NCCL_FUNCTIONS(NCCL_RESOLVE)
    GetLastError    = (const char *(*)(NcclComm))dlsym(library, "ncclGetLastError");
    int       found = 0;
    const int error = GetVersion(&found);
    if (error)
      Report(reason, "ncclGetVersion: %s", GetErrorString(error));
    else
      version = found;
    if (version >= 21700) *(void **)&InitConfig = dlsym(library, "ncclCommInitRankConfig");
  }
  int Init(NcclComm *comm, int size, const SpMVNCCLId &id, int rank) const
  {
    const NcclConfig config = {sizeof(config), 0xcafebeefu, 21700, 1, INT_MIN, INT_MIN, Tuning::NCCL_BLOCKS, nullptr};
    return InitConfig ? InitConfig(comm, size, id, rank, &config) : CommInitRank(comm, size, id, rank);
  }
  // Describes a failure, with NCCL's own explanation
  void Explain(char text[SPMV_HALO_TEXT], const char *what, int error) const
  {
    const char *more = GetLastError ? GetLastError(nullptr) : nullptr;
    Report(text, "%s: %s%s%s", what, GetErrorString(error), more && *more ? ": " : "", more && *more ? more : "");
  }
};

const Nccl &TheNccl()
{
  static const Nccl nccl;
  return nccl;
}

cudaError_t Failed(SpMVCudaComm comm, const char *what, int error)
{
  TheNccl().Explain(comm->error, what, error);
  return cudaErrorUnknown;
}

} // namespace

void spmv::Report(char text[SPMV_HALO_TEXT], const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, SPMV_HALO_TEXT, format, arguments);
  va_end(arguments);
}

// Each column is a message of its own, so that columns need not be packed if they can be sent directly from x, and are
// received where they are read
cudaError_t _n_SpMVCudaHalo::ExchangeNccl(bool reverse, const Scalar *x, int64_t ldx)
{
  const Nccl &nccl  = TheNccl();
  const char *what  = "ncclGroupStart";
  int         error = nccl.GroupStart();
  if (error) return Failed(comm, what, error);
  for (int64_t q = 0; q < columns; q++) {
    for (const Piece &p : send) {
      Scalar *const at = buffer + q * sent + p.start;
      if (error) break;
      what  = reverse ? "ncclRecv" : "ncclSend";
      error = reverse ? nccl.Recv(at, (size_t)p.count * REALS, NCCL_REAL, p.rank, comm->nccl, comm->stream)
                      : nccl.Send(x && p.first >= 0 ? x + q * ldx + p.first : at, (size_t)p.count * REALS, NCCL_REAL,
                                  p.rank, comm->nccl, comm->stream);
    }
    for (const Piece &p : receive) {
      Scalar *const at = halo + q * received + p.start;
      if (error) break;
      what  = reverse ? "ncclSend" : "ncclRecv";
      error = reverse ? nccl.Send(at, (size_t)p.count * REALS, NCCL_REAL, p.rank, comm->nccl, comm->stream)
                      : nccl.Recv(at, (size_t)p.count * REALS, NCCL_REAL, p.rank, comm->nccl, comm->stream);
    }
  }
  const int end = nccl.GroupEnd(); // also after an error, to close the group
  if (error || end) return Failed(comm, error ? what : "ncclGroupEnd", error ? error : end);
  // Network errors are reported later. The query is cheap, but not free
  if (comm->exchanges++ % 128 == 0 &&
      (nccl.CommGetAsyncError(comm->nccl, &error) || (error && error != NCCL_IN_PROGRESS)))
    return Failed(comm, "an earlier exchange", error);
  return cudaSuccess;
}

PETSC_INTERN cudaError_t SpMVCudaCommSum(SpMVCudaComm comm, PetscReal *sums, int count, cudaStream_t stream)
{
  if (comm->error[0] || !comm->nccl) return cudaErrorUnknown;
  const int error = TheNccl().AllReduce(sums, sums, (size_t)count, NCCL_REAL, 0 /* ncclSum */, comm->nccl, stream);
  return error ? Failed(comm, "ncclAllReduce", error) : cudaSuccess;
}

PETSC_INTERN int SpMVNCCLLoad(char reason[SPMV_HALO_TEXT])
{
  Report(reason, "%s", TheNccl().reason);
  return TheNccl().version;
}

PETSC_INTERN cudaError_t SpMVNCCLGetId(SpMVNCCLId *id, char reason[SPMV_HALO_TEXT])
{
  const int error = TheNccl().GetUniqueId(id);
  if (!error) return cudaSuccess;
  TheNccl().Explain(reason, "ncclGetUniqueId", error);
  return cudaErrorUnknown;
}

// Creates also its event, because a rank that fails later leaves its peers waiting
static cudaError_t GetOrder(_n_SpMVCudaComm &comm)
{
  static std::map<int, std::weak_ptr<StreamOrder>> of_device;
  if (comm.transport == SPMV_TRANSPORT_PEER) comm.order = of_device[comm.device].lock();
  if (!comm.order) comm.order = std::make_shared<StreamOrder>();
  if (comm.transport == SPMV_TRANSPORT_PEER) of_device[comm.device] = comm.order;
  return comm.order->Create();
}

PETSC_INTERN cudaError_t SpMVCudaCommCreate(SpMVTransport transport, int size, int rank, const SpMVNCCLId *id,
                                            SpMVCudaComm *result, char reason[SPMV_HALO_TEXT])
{
  std::unique_ptr<_n_SpMVCudaComm> comm(new (std::nothrow) _n_SpMVCudaComm{transport, rank});
  int                              low, high;
  cudaError_t                      error = comm ? cudaSuccess : cudaErrorMemoryAllocation;
  if (!error) error = cudaGetDevice(&comm->device);
  if (!error) error = cudaDeviceGetStreamPriorityRange(&low, &high);
  if (!error) error = cudaStreamCreateWithPriority(&comm->stream, cudaStreamNonBlocking, high);
  if (!error) error = Guarded([&] { return GetOrder(*comm); });
  if (error) {
    Report(reason, "rank %d: %s", rank, cudaGetErrorString(error));
    return error;
  }
  if (transport == SPMV_TRANSPORT_NCCL) {
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
    if (!Bounded(init, &made)) {
      Report(reason, "rank %d: ncclCommInitRank did not return within %d seconds", rank, SPMV_HALO_SECONDS);
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
  if (!comm->error[0]) Report(comm->error, "%s", reason);
  if (!comm->nccl) return;
  const NcclComm nccl = comm->nccl;
  comm->nccl          = nullptr;
  if (!Bounded([=] { return TheNccl().CommAbort(nccl); }, &ignored)) comm->stuck = true;
}

PETSC_INTERN void SpMVCudaCommDestroy(SpMVCudaComm *comm)
{
  if (!*comm) return;
  if ((*comm)->nccl) {
    if ((*comm)->error[0])
      SpMVCudaCommAbort(*comm, ""); // its peers may no longer exist
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
