/*
  The halo exchange on the device. NCCL's library is opened when it is first wanted, so that this one needs it neither to be built nor to
  be loaded; the few of its types that the functions take have not changed since they appeared.
*/
#include "halo.h"
#include "launch.cuh"
#include "spmvcuda.h"
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
template <class Result, class F> bool Bounded(F f, Result *result)
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

// An entry of an array of the program's, which may begin between two complex numbers
__device__ __forceinline__ Scalar Read(const Scalar *p)
{
  Scalar a;
#pragma unroll
  for (int k = 0; k < REALS; k++) ((PetscReal *)&a)[k] = ((const PetscReal *)p)[k];
  return a;
}
__device__ __forceinline__ void Write(Scalar *p, Scalar a)
{
#pragma unroll
  for (int k = 0; k < REALS; k++) ((PetscReal *)p)[k] = ((const PetscReal *)&a)[k];
}

// Where 32 entries in turn are a run of x, no index is read
__global__ void __launch_bounds__(256) Pack(int n, const int *__restrict__ run, const int *__restrict__ index, const Scalar *__restrict__ x, Scalar *packed)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int first = run[i / WARP];
  packed[i]       = Read(x + (first >= 0 ? first + i % WARP : index[i]));
}

// A row is the sum of its own value and of what the peers sent for it, in their order
__global__ void __launch_bounds__(256)
    Add(int n, const int *__restrict__ row, const int *__restrict__ start, const int *__restrict__ place, const Scalar *__restrict__ came, Scalar *y)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int r   = row[i];
  Scalar    sum = Read(y + r);
  for (int k = start[i]; k < start[i + 1]; k++) sum = Num::add(sum, came[place[k]]);
  Write(y + r, sum);
}

// What two ranks tell each other by PEER: each has one for the other, in memory of its own, and the other writes to it. Numbers of exchanges
struct alignas(128) Post {
  unsigned open;    // what this one's memory held before it has been read: the other may write
  unsigned arrived; // the other has written
};

__device__ __forceinline__ void Tell(unsigned *there, unsigned n)
{
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(there), "r"(n) : "memory");
}

struct Link {
  const Post *here;
  Post       *there;
};

// Entries to send from position `at` on, to an array in another device's memory
struct Chunk {
  Scalar *to;
  int     at, count, peer;
};
constexpr int CHUNK = 1024, MOST_CHUNKS = 64; // entries; thread blocks: few, as the product beside needs them more

struct Exchange {
  const Chunk *chunk;
  const Link  *link;
  const int   *run, *index; // of x: what is sent, as in Pack()
  unsigned    *count;       // exchanges until now, blocks of this one that are done, whether waiting was in vain
  int          chunks, links;
  unsigned     patience; // microseconds; 0: for ever
};

/*
  Whatever another device has written before Tell() is seen after it. False: no more patience. The loop has no fence, as each would empty the L1 of a
  multiprocessor that also multiplies, and pauses, as the product needs what it would take.
*/
__device__ __forceinline__ bool Await(const unsigned *here, unsigned n, const Exchange &g)
{
  unsigned           told;
  unsigned long long begin = 0, now;
  while (true) {
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(told) : "l"(here) : "memory");
    if ((int)(told - n) >= 0) break; // also when the numbers begin anew
    if (g.patience) {
      asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
      if (!begin) begin = now;
      if (now - begin > 1000ull * g.patience || *(volatile unsigned *)(g.count + 2)) {
        g.count[2] = 1;
        return false;
      }
    }
    __nanosleep(64);
  }
  asm volatile("fence.acq_rel.sys;" ::: "memory");
  return true;
}

/*
  A whole exchange by PEER. Whoever begins has read what came before, as the stream's earlier kernels are done, and tells so; each piece is sent when
  its receiver has told; the last block to be done tells that all is there, and waits until the others have. What follows on the stream may begin
  with this kernel, if it has nothing to do with it: nothing here waits for it. x NULL: what is at `source` is sent, in its order.
*/
__global__ void __launch_bounds__(256) exchange(Exchange g, bool /* conjugate */, const Scalar *x, const Scalar *source, Scalar * /* y */)
{
  __shared__ bool last;
  AwaitPrevious();
  LetNextBegin();
  const unsigned n = g.count[0] + 1;
  if (blockIdx.x == 0) {
    for (int k = threadIdx.x; k < g.links; k += blockDim.x) Tell(&g.link[k].there->open, n);
  }
  for (int c = blockIdx.x; c < g.chunks; c += gridDim.x) {
    const Chunk k = g.chunk[c];
    if (!__syncthreads_and(threadIdx.x || Await(&g.link[k.peer].here->open, n, g))) continue;
    for (int i = threadIdx.x; i < k.count; i += blockDim.x) {
      const int at    = k.at + i;
      const int first = x ? g.run[at / WARP] : 0;
      k.to[i]         = !x ? source[at] : Read(x + (first >= 0 ? first + at % WARP : g.index[at]));
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system(); // of what the whole block has written
    last = atomicAdd(g.count + 1, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence_system();
  for (int k = threadIdx.x; k < g.links; k += blockDim.x) Tell(&g.link[k].there->arrived, n);
  for (int k = threadIdx.x; k < g.links; k += blockDim.x) (void)Await(&g.link[k].here->arrived, n, g);
  if (threadIdx.x == 0) {
    g.count[0] = n;
    g.count[1] = 0;
  }
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
  SpMVTransport transport;
  int           rank, device = 0;
  NcclComm      nccl                  = nullptr;
  bool          stuck                 = false; // something on the stream may never end
  unsigned      exchanges             = 0;
  cudaStream_t  stream                = nullptr;
  char          error[SPMV_HALO_TEXT] = "";

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
  Array<char>        memory;                            // all of it that other ranks may write to, and its parts:
  Scalar            *halo = nullptr, *buffer = nullptr; // what comes and what is sent, in reverse the other way round
  Array<int>         run, index;                        // of x: what is packed
  Array<int>         row, start, place;                 // the reverse's sums
  Event              ready, staged, done;
  Pinned             host_sent, host_received;
  int (*staging)(void *, PetscBool) = nullptr;
  void *ctx                         = nullptr;

  // PEER
  std::vector<int>    peers; // whoever is sent or sends something, ascending; each has a post, the first of what the memory holds
  std::vector<void *> opened;
  Array<Link>         link;
  Array<Chunk>        chunk;
  Array<unsigned>     count;
  Exchange            direction[2] = {}; // forward and reverse
  Kernel              kernel;
  StreamOrder         order;

  explicit _n_SpMVCudaHalo(SpMVCudaComm c) : comm(c)
  {
  }
  bool Idle() const
  {
    return send.empty() && receive.empty();
  }
  // By PEER on `stream`, else on the halo's stream behind whatever `stream` has done. Without x, what the buffer holds is sent; in reverse the halo.
  cudaError_t Begin(bool reverse, const Scalar *x, cudaStream_t stream)
  {
    if (Idle()) return cudaSuccess;
    if (comm->error[0]) return cudaErrorUnknown;
    if (comm->transport == SPMV_TRANSPORT_PEER) {
      const Exchange &g = direction[reverse];
      return kernel.Launch((unsigned)std::clamp(g.chunks, 1, MOST_CHUNKS), 256, g, false, x, reverse ? halo : buffer, nullptr, stream);
    }
    SPMV_TRY(cudaEventRecord(ready, stream));
    SPMV_TRY(cudaStreamWaitEvent(comm->stream, ready, 0));
    if (x) SPMV_LAUNCH(packed, 256, comm->stream, Pack, packed, run, index, x, buffer);
    return comm->transport == SPMV_TRANSPORT_HOST ? Stage(reverse) : ByNccl(reverse, x);
  }
  // What came is there, for whatever follows on the halo's stream
  cudaError_t Receive(bool reverse)
  {
    return comm->transport == SPMV_TRANSPORT_HOST && !Idle() ? Unstage(reverse) : cudaSuccess;
  }
  // `stream` waits for the halo's
  cudaError_t Join(cudaStream_t stream)
  {
    if (Idle() || comm->transport == SPMV_TRANSPORT_PEER) return cudaSuccess;
    SPMV_TRY(cudaEventRecord(done, comm->stream));
    return cudaStreamWaitEvent(stream, done, 0);
  }
  cudaError_t End(bool reverse, cudaStream_t stream)
  {
    SPMV_TRY(Receive(reverse));
    return Join(stream);
  }

  cudaError_t ByNccl(bool reverse, const Scalar *x)
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
    const int error = staging(ctx, reverse ? PETSC_TRUE : PETSC_FALSE);
    if (error) {
      Say(comm->error, "MPI error %d while exchanging the halo", error);
      return cudaErrorUnknown;
    }
    if (!n) return cudaSuccess;
    return cudaMemcpyAsync(reverse ? buffer : halo, reverse ? host_sent.p : host_received.p, n * sizeof(Scalar), cudaMemcpyHostToDevice, comm->stream);
  }

  cudaError_t Create(const SpMVHaloList *s, const SpMVHaloList *r);
  cudaError_t Open(const SpMVHaloOffer *theirs);
  cudaError_t Try(char reason[SPMV_HALO_TEXT]);
};

/*
  NCCL sends a list that is one run of x from there; all others are packed into the buffer, whose first part they are. The other transports
  pack everything, in the order of the list. The reverse's sums are listed row by row, so that one kernel does them all: with a kernel
  for each peer, in turn, a rank with many neighbours would wait for as many launches.
*/
cudaError_t _n_SpMVCudaHalo::Create(const SpMVHaloList *s, const SpMVHaloList *r)
{
  sent     = (int)s->start[s->peers];
  received = (int)r->start[r->peers];
  for (int k = 0; k < r->peers; k++) receive.push_back({r->rank[k], (int)r->start[k], (int)(r->start[k + 1] - r->start[k]), -1});
  for (int k = 0; k < s->peers; k++) {
    Piece p{s->rank[k], 0, (int)(s->start[k + 1] - s->start[k]), -1};
    bool  one = comm->transport == SPMV_TRANSPORT_NCCL;
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

  const bool   peer  = comm->transport == SPMV_TRANSPORT_PEER;
  const size_t align = 256, whole = peer ? 2 << 20 : 1; // what else is in a piece of 2 MiB would be open to others
  const auto   after = [=](size_t bytes) { return (bytes + align - 1) / align * align; };
  if (peer) {
    for (const auto &list : {send, receive}) {
      for (const Piece &p : list) peers.push_back(p.rank);
    }
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  }
  const size_t posts = after(peers.size() * sizeof(Post)), halos = after(received * sizeof(Scalar)), bytes = posts + halos + sent * sizeof(Scalar);
  SPMV_TRY(memory.Alloc((bytes + whole - 1) / whole * whole));
  SPMV_TRY(cudaMemset(memory, 0, memory.Bytes())); // also: what Connect() sends
  halo   = (Scalar *)(memory + posts);
  buffer = (Scalar *)(memory + posts + halos);
  SPMV_TRY(Upload(run, runs, nullptr));
  SPMV_TRY(Upload(index, from, nullptr));
  SPMV_TRY(Upload(row, rowv, nullptr));
  SPMV_TRY(Upload(start, startv, nullptr));
  SPMV_TRY(Upload(place, placev, nullptr));
  if (comm->transport == SPMV_TRANSPORT_HOST) {
    SPMV_TRY(cudaHostAlloc((void **)&host_sent.p, (sent + 1) * sizeof(Scalar), cudaHostAllocDefault));
    SPMV_TRY(cudaHostAlloc((void **)&host_received.p, (received + 1) * sizeof(Scalar), cudaHostAllocDefault));
  }
  SPMV_TRY(ready.Create());
  SPMV_TRY(staged.Create());
  SPMV_TRY(done.Create());
  if (peer) SPMV_TRY(kernel.Choose((const void *)exchange));
  SPMV_TRY(Load((const void *)Pack));
  SPMV_TRY(Load((const void *)Add));
  return cudaDeviceSynchronize(); // the copies above belong to another stream than the halo's
}

// PEER: the others' memory, and the lists of what goes where in it
cudaError_t _n_SpMVCudaHalo::Open(const SpMVHaloOffer *theirs)
{
  std::vector<Link>  links;
  std::vector<Chunk> chunks;
  int                begin[3] = {}; // of either direction's chunks, and the end
  const auto         place    = [&](int rank) { return (int)(std::lower_bound(peers.begin(), peers.end(), rank) - peers.begin()); };
  opened.resize(peers.size(), nullptr);
  for (size_t k = 0; k < peers.size(); k++) {
    const SpMVHaloOffer &of = theirs[peers[k]];
    SPMV_TRY(cudaIpcOpenMemHandle(&opened[k], of.memory, cudaIpcMemLazyEnablePeerAccess));
    links.push_back({(const Post *)(char *)memory + k, (Post *)((char *)opened[k] + of.post)});
  }
  for (const bool reverse : {false, true}) {
    for (const Piece &p : reverse ? receive : send) {
      const int            k  = place(p.rank);
      const SpMVHaloOffer &of = theirs[p.rank];
      Scalar *const        to = (Scalar *)((char *)opened[k] + (reverse ? of.sums : of.halo));
      for (int i = 0; i < p.count; i += CHUNK) chunks.push_back({to + i, p.start + i, std::min(CHUNK, p.count - i), k});
    }
    begin[reverse + 1] = (int)chunks.size();
  }
  SPMV_TRY(Upload(link, links, nullptr));
  SPMV_TRY(Upload(chunk, chunks, nullptr));
  SPMV_TRY(count.Alloc(3));
  SPMV_TRY(count.Zero(nullptr));
  for (const bool reverse : {false, true})
    direction[reverse] = {chunk + begin[reverse], link, run, index, count, begin[reverse + 1] - begin[reverse], (int)links.size(), 0};
  return cudaDeviceSynchronize();
}

// An exchange each way. PEER: does what is written there arrive? On some machines it does not, and nobody says so
cudaError_t _n_SpMVCudaHalo::Try(char reason[SPMV_HALO_TEXT])
{
  const bool peer = comm->transport == SPMV_TRANSPORT_PEER;
  for (const bool reverse : {false, true}) {
    Scalar *const     come = reverse ? buffer : halo;
    const size_t      size = (size_t)(reverse ? sent : received) * sizeof(Scalar);
    std::vector<char> there(size);
    if (peer) {
      direction[reverse].patience = SPMV_HALO_SECONDS * 1000000u / 4;
      SPMV_TRY(cudaMemsetAsync(come, 0xff, size, comm->stream)); // before this rank tells that it may be written
    }
    SPMV_TRY(Begin(reverse, nullptr, comm->stream));
    SPMV_TRY(End(reverse, comm->stream));
    SPMV_TRY(cudaStreamSynchronize(comm->stream));
    if (!peer) continue;
    unsigned late;
    direction[reverse].patience = 0;
    SPMV_TRY(cudaMemcpy(&late, count + 2, sizeof(late), cudaMemcpyDeviceToHost));
    SPMV_TRY(cudaMemcpy(there.data(), come, size, cudaMemcpyDeviceToHost));
    if (late || std::count(there.begin(), there.end(), 0) != (std::ptrdiff_t)size) {
      Say(reason, "rank %d: what other ranks wrote into its GPU's memory has not arrived", comm->rank);
      return late ? cudaErrorTimeout : cudaErrorUnknown;
    }
  }
  return cudaSuccess;
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

PETSC_INTERN cudaError_t SpMVCudaCommCreate(SpMVTransport transport, int size, int rank, const SpMVNCCLId *id, SpMVCudaComm *result,
                                            char reason[SPMV_HALO_TEXT])
{
  std::unique_ptr<_n_SpMVCudaComm> comm(new (std::nothrow) _n_SpMVCudaComm{transport, rank});
  int                              low, high;
  cudaError_t                      error = comm ? cudaSuccess : cudaErrorMemoryAllocation;
  if (!error) error = cudaGetDevice(&comm->device);
  if (!error) error = cudaDeviceGetStreamPriorityRange(&low, &high);
  if (!error) error = cudaStreamCreateWithPriority(&comm->stream, cudaStreamNonBlocking, high);
  if (error) {
    Say(reason, "rank %d: %s", rank, cudaGetErrorString(error));
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
  if (!Bounded([=] { return TheNccl().CommAbort(nccl); }, &ignored)) comm->stuck = true;
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
  if (send->start[send->peers] > SPMVCUDA_MAX_SIZE || receive->start[receive->peers] > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;
  for (PetscInt i = 0; i < send->start[send->peers]; i++) {
    if (send->index[i] > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;
  }
  return Guarded([=] {
    std::unique_ptr<_n_SpMVCudaHalo> h(new _n_SpMVCudaHalo(comm));
    SPMV_TRY(h->Create(send, receive));
    *halo = h.release();
    return cudaSuccess;
  });
}

PETSC_INTERN cudaError_t SpMVCudaHaloGetOffers(SpMVCudaHalo halo, int size, SpMVHaloOffer mine[])
{
  const auto at = [=](const void *p) { return (int64_t)((const char *)p - (char *)halo->memory); };
  mine[0]       = {{}, -1, -1, -1};
  SPMV_TRY(cudaIpcGetMemHandle(&mine[0].memory, (char *)halo->memory));
  for (int r = 1; r < size; r++) mine[r] = mine[0];
  for (size_t k = 0; k < halo->peers.size(); k++) mine[halo->peers[k]].post = (int64_t)(k * sizeof(Post));
  for (const Piece &p : halo->receive) mine[p.rank].halo = at(halo->halo + p.start);
  for (const Piece &p : halo->send) mine[p.rank].sums = at(halo->buffer + p.start);
  return cudaSuccess;
}

PETSC_INTERN cudaError_t SpMVCudaHaloOpen(SpMVCudaHalo halo, const SpMVHaloOffer theirs[])
{
  return Guarded([=] { return halo->Open(theirs); });
}

PETSC_INTERN cudaError_t SpMVCudaHaloConnect(SpMVCudaHalo halo, char reason[SPMV_HALO_TEXT])
{
  struct Outcome {
    cudaError_t error;
    char        text[SPMV_HALO_TEXT];
  } outcome{};
  SpMVCudaComm comm = halo->comm;
  if (comm->transport == SPMV_TRANSPORT_HOST || halo->Idle()) return cudaSuccess;
  const auto both = [=] {
    Outcome o{cudaSetDevice(comm->device), ""};
    if (!o.error) o.error = halo->Try(o.text);
    return o;
  };
  if (!Bounded(both, &outcome)) {
    comm->stuck   = true;
    outcome.error = cudaErrorTimeout;
    Say(reason, "rank %d: the first exchange has not come to an end after %d seconds", comm->rank, SPMV_HALO_SECONDS);
  } else if (outcome.error && outcome.text[0])
    Say(reason, "%s", outcome.text);
  else if (outcome.error)
    Say(reason, "rank %d: %s", comm->rank, comm->error[0] ? comm->error : cudaGetErrorString(outcome.error));
  return outcome.error;
}

PETSC_INTERN cudaError_t SpMVCudaHaloClose(SpMVCudaHalo halo)
{
  if (halo->comm->stuck || halo->opened.empty()) return cudaSuccess;
  cudaError_t first = cudaDeviceSynchronize(); // in whatever stream the last exchange was
  for (void *&p : halo->opened) {
    const cudaError_t error = p ? cudaIpcCloseMemHandle(p) : cudaSuccess;
    if (first == cudaSuccess) first = error;
    p = nullptr;
  }
  return first;
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

PETSC_INTERN cudaError_t SpMVCudaHaloEnter(SpMVCudaHalo halo, cudaStream_t stream)
{
  return halo->order.Enter(stream);
}

PETSC_INTERN cudaError_t SpMVCudaHaloLeave(SpMVCudaHalo halo, cudaStream_t stream)
{
  return halo->order.Leave(stream);
}

PETSC_INTERN void SpMVCudaHaloGetStaged(SpMVCudaHalo halo, PetscScalar **sent, PetscScalar **received)
{
  *sent     = (PetscScalar *)halo->host_sent.p;
  *received = (PetscScalar *)halo->host_received.p;
}

PETSC_INTERN void SpMVCudaHaloSetExchange(SpMVCudaHalo halo, int (*exchange)(void *, PetscBool), void *ctx)
{
  halo->staging = exchange;
  halo->ctx     = ctx;
}

PETSC_INTERN PetscScalar *SpMVCudaHaloGetArray(SpMVCudaHalo halo)
{
  return halo->received ? (PetscScalar *)halo->halo : nullptr;
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
