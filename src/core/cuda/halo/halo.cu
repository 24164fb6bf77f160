/*
  The halo exchange on the device: packing, the transport through the host, and the interface. The two other transports
  are in nccl.cu and peer.cu.
*/
#include "halo.cuh"
#include <algorithm>
#include <memory>
#include <numeric>

using namespace spmv;

namespace {

// Packs entries of x, column by column. If 32 consecutive entries are a run of x, no index is read. sent: the distance
// between the packed columns
__global__ void __launch_bounds__(256)
    Pack(int n, const int *__restrict__ run, const int *__restrict__ index, int columns, const Scalar *__restrict__ x,
         int64_t ldx, Scalar *packed, int sent)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int first = run[i / WARP], from = first >= 0 ? first + i % WARP : index[i];
  for (int64_t q = 0; q < columns; q++) packed[q * sent + i] = Read(x + q * ldx + from);
}

// Adds the peers' contributions to each row, in the order of the peers
__global__ void __launch_bounds__(256)
    Add(int n, const int *__restrict__ row, const int *__restrict__ start, const int *__restrict__ place,
        const Scalar *__restrict__ received, Scalar *y)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int r   = row[i];
  Scalar    sum = Read(y + r);
  for (int k = start[i]; k < start[i + 1]; k++) sum = Num::add(sum, received[place[k]]);
  Write(y + r, sum);
}

} // namespace

cudaError_t _n_SpMVCudaHalo::Begin(bool reverse, int n, const Scalar *x, int64_t ldx, cudaStream_t stream)
{
  columns = n;
  if (Idle()) return cudaSuccess;
  if (comm->error[0]) return cudaErrorUnknown;
  if (n < 1 || n > most || (reverse && most > 1)) return cudaErrorInvalidValue;
  if (comm->transport == SPMV_TRANSPORT_PEER) return SendPeer(reverse, x, ldx, stream);
  SPMV_TRY(cudaEventRecord(ready, stream));
  SPMV_TRY(cudaStreamWaitEvent(comm->stream, ready, 0));
  if (x) SPMV_LAUNCH(packed, 256, comm->stream, Pack, packed, run, index, n, x, ldx, buffer, sent);
  return comm->transport == SPMV_TRANSPORT_HOST ? Stage(reverse) : ExchangeNccl(reverse, x, ldx);
}

cudaError_t _n_SpMVCudaHalo::End(bool reverse, cudaStream_t stream)
{
  if (Idle()) return cudaSuccess;
  if (comm->transport == SPMV_TRANSPORT_PEER) return ReceivePeer(reverse, 0, stream);
  if (comm->transport == SPMV_TRANSPORT_HOST) SPMV_TRY(Unstage(reverse));
  SPMV_TRY(cudaEventRecord(done, comm->stream));
  return cudaStreamWaitEvent(stream, done, 0);
}

// The transport through the host. Stage() copies the data from the device as soon as x is there; Unstage() calls the
// caller's function and copies the result back
cudaError_t _n_SpMVCudaHalo::Stage(bool reverse)
{
  const size_t n = (size_t)(reverse ? received : sent) * columns;
  if (n)
    SPMV_TRY(cudaMemcpyAsync(reverse ? host_received.p : host_sent.p, reverse ? halo : buffer, n * sizeof(Scalar),
                             cudaMemcpyDeviceToHost, comm->stream));
  return cudaEventRecord(staged, comm->stream);
}

cudaError_t _n_SpMVCudaHalo::Unstage(bool reverse)
{
  const size_t n = (size_t)(reverse ? sent : received) * columns;
  // after this, the previous exchange has also been copied from the pinned memory
  SPMV_TRY(cudaEventSynchronize(staged));
  const int error = staging(ctx, reverse ? PETSC_TRUE : PETSC_FALSE, columns, (PetscScalar *)host_sent.p,
                            (PetscScalar *)host_received.p);
  if (error) {
    Report(comm->error, "MPI error %d while exchanging the halo", error);
    return cudaErrorUnknown;
  }
  if (!n) return cudaSuccess;
  return cudaMemcpyAsync(reverse ? buffer : halo, reverse ? host_sent.p : host_received.p, n * sizeof(Scalar),
                         cudaMemcpyHostToDevice, comm->stream);
}

/*
  NCCL sends a list that is one run of x directly from x. All other lists are packed at the beginning of the buffer,
  which also has space for the runs. The other transports pack every list, in order.
*/
void _n_SpMVCudaHalo::Plan(const SpMVHaloList *s, const SpMVHaloList *r)
{
  sent     = (int)s->start[s->peers];
  received = (int)r->start[r->peers];
  for (int k = 0; k < r->peers; k++)
    receive.push_back({r->rank[k], (int)r->start[k], (int)(r->start[k + 1] - r->start[k]), -1});
  for (int k = 0; k < s->peers; k++) {
    Piece p{s->rank[k], 0, (int)(s->start[k + 1] - s->start[k]), -1};
    bool  one = comm->transport == SPMV_TRANSPORT_NCCL;
    for (PetscInt i = s->start[k] + 1; one && i < s->start[k + 1]; i++) one = s->index[i] == s->index[i - 1] + 1;
    if (one) p.first = (int)s->index[s->start[k]];
    send.push_back(p);
  }
  int at = 0;
  for (const bool is_run : {false, true}) {
    for (Piece &p : send) {
      if ((p.first >= 0) != is_run) continue;
      p.start = at;
      at += p.count;
    }
    if (!is_run) packed = at;
  }
}

/*
  The sums of the reverse exchange are listed row by row, so that one kernel adds all of them. With one kernel per peer,
  a rank with many neighbors would wait for as many launches.
*/
cudaError_t _n_SpMVCudaHalo::ListSums(const SpMVHaloList *s, const std::vector<int> &to)
{
  std::vector<int> order(sent), rowv, startv, placev(sent);
  std::iota(order.begin(), order.end(), 0); // the order of the peers, which the sort keeps within each row
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
  SPMV_TRY(Upload(row, rowv, nullptr));
  SPMV_TRY(Upload(start, startv, nullptr));
  SPMV_TRY(Upload(place, placev, nullptr));
  return cudaDeviceSynchronize(); // before the lists on the host are freed
}

cudaError_t _n_SpMVCudaHalo::Allocate()
{
  const size_t align = 256, in = (size_t)received * most, out = (size_t)sent * most;
  const auto   after = [=](size_t bytes) { return (bytes + align - 1) / align * align; };
  const size_t halos = after(in * sizeof(Scalar)), bytes = halos + out * sizeof(Scalar);
  SPMV_TRY(memory.Alloc(bytes));
  SPMV_TRY(cudaMemset(memory, 0, bytes)); // Connect() sends these zeros
  halo   = (Scalar *)(char *)memory;
  buffer = (Scalar *)(memory + halos);
  if (comm->transport == SPMV_TRANSPORT_PEER) {
    const size_t posts = after(peers.size() * sizeof(Post)), landed = after(3 * in * sizeof(Scalar)),
                 all = posts + landed + (most > 1 ? 0 : 3 * out * sizeof(Scalar));
    SPMV_TRY(comm->segments.Take(all, &share));
    SPMV_TRY(cudaMemset(share.Pointer(), 0xff, all)); // all places are vacant, and no post has a turn
    landing[0] = (Scalar *)(share.Pointer() + posts);
    landing[1] = (Scalar *)(share.Pointer() + posts + landed);
  }
  if (comm->transport != SPMV_TRANSPORT_HOST) return cudaSuccess;
  SPMV_TRY(cudaHostAlloc((void **)&host_sent.p, (out + 1) * sizeof(Scalar), cudaHostAllocDefault));
  return cudaHostAlloc((void **)&host_received.p, (in + 1) * sizeof(Scalar), cudaHostAllocDefault);
}

cudaError_t _n_SpMVCudaHalo::Create(const SpMVHaloList *s, const SpMVHaloList *r)
{
  Plan(s, r);

  std::vector<int> source(packed), to(sent), runs((packed + WARP - 1) / WARP, -1);
  for (size_t k = 0; k < send.size(); k++) {
    for (int i = 0; i < send[k].count; i++) {
      const PetscInt in = s->start[k] + i;
      to[in]            = send[k].start + i;
      if (to[in] < packed) source[to[in]] = (int)s->index[in];
    }
  }
  for (size_t w = 0; w < runs.size(); w++) {
    const int first = (int)w * WARP, last = std::min(packed, first + WARP);
    int       i = first + 1;
    while (i < last && source[i] == source[i - 1] + 1) i++;
    if (i == last) runs[w] = source[first];
  }
  if (comm->transport == SPMV_TRANSPORT_PEER) ListPeers();
  SPMV_TRY(Allocate());
  SPMV_TRY(Upload(run, runs, nullptr));
  SPMV_TRY(Upload(index, source, nullptr));
  if (most == 1) SPMV_TRY(ListSums(s, to));
  SPMV_TRY(ready.Create());
  SPMV_TRY(staged.Create());
  SPMV_TRY(done.Create());
  if (comm->transport == SPMV_TRANSPORT_PEER) SPMV_TRY(ChoosePeer());
  SPMV_TRY(Load((const void *)Pack));
  if (comm->transport != SPMV_TRANSPORT_PEER) SPMV_TRY(Load((const void *)Add));
  return cudaDeviceSynchronize(); // the copies above run in a different stream than the halo's
}

// One exchange in each direction that the halo has. For PEER, it tests that the data written to each landing arrive
cudaError_t _n_SpMVCudaHalo::Connect(char reason[SPMV_HALO_TEXT])
{
  for (const bool reverse : {false, true}) {
    if (reverse && most > 1) break;
    if (comm->transport == SPMV_TRANSPORT_PEER) {
      for (int landing = 0; landing < 3; landing++) SPMV_TRY(TestPeer(reverse, reason));
      continue;
    }
    SPMV_TRY(Begin(reverse, most, nullptr, 0, comm->stream));
    SPMV_TRY(End(reverse, comm->stream));
    SPMV_TRY(cudaStreamSynchronize(comm->stream));
  }
  return cudaSuccess;
}

PETSC_INTERN cudaError_t SpMVCudaHaloCreate(SpMVCudaComm comm, const SpMVHaloList *send, const SpMVHaloList *receive,
                                            int columns, SpMVCudaHalo *halo)
{
  int device;
  SPMV_TRY(cudaGetDevice(&device));
  if (device != comm->device) return cudaErrorInvalidDevice;
  if (PetscMax(send->start[send->peers], receive->start[receive->peers]) > SPMVCUDA_MAX_SIZE / columns)
    return cudaErrorNotSupported;
  for (PetscInt i = 0; i < send->start[send->peers]; i++) {
    if (send->index[i] > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;
  }
  return Guarded([=] {
    std::unique_ptr<_n_SpMVCudaHalo> h(new _n_SpMVCudaHalo(comm, columns));
    SPMV_TRY(h->Create(send, receive));
    *halo = h.release();
    return cudaSuccess;
  });
}

PETSC_INTERN cudaError_t SpMVCudaHaloConnect(SpMVCudaHalo halo, char reason[SPMV_HALO_TEXT])
{
  struct Outcome {
    cudaError_t error;
    char        text[SPMV_HALO_TEXT];
  } outcome{};
  SpMVCudaComm comm = halo->comm;
  if (comm->transport == SPMV_TRANSPORT_HOST || halo->Idle()) return cudaSuccess;
  const auto connect = [=] {
    Outcome o{cudaSetDevice(comm->device), ""};
    if (!o.error) o.error = halo->Connect(o.text);
    return o;
  };
  if (!Bounded(connect, &outcome)) {
    comm->stuck   = true;
    outcome.error = cudaErrorTimeout;
    Report(reason, "rank %d: the first exchange did not finish within %d seconds", comm->rank, SPMV_HALO_SECONDS);
  } else if (outcome.error && outcome.text[0])
    Report(reason, "%s", outcome.text);
  else if (outcome.error)
    Report(reason, "rank %d: %s", comm->rank, comm->error[0] ? comm->error : cudaGetErrorString(outcome.error));
  return outcome.error;
}

PETSC_INTERN cudaError_t SpMVCudaHaloDestroy(SpMVCudaHalo *halo)
{
  SpMVCudaHalo h = *halo;
  *halo          = nullptr;
  if (!h || h->comm->stuck) return cudaSuccess; // freeing would wait for work that never ends
  const cudaError_t error = h->Idle() ? cudaSuccess : cudaStreamSynchronize(h->comm->stream);
  delete h;
  return error;
}

PETSC_INTERN cudaError_t SpMVCudaHaloEnter(SpMVCudaHalo halo, cudaStream_t stream)
{
  return halo->comm->order->Enter(stream);
}

PETSC_INTERN cudaError_t SpMVCudaHaloLeave(SpMVCudaHalo halo, cudaStream_t stream)
{
  return halo->comm->order->Leave(stream);
}

PETSC_INTERN void SpMVCudaHaloSetExchange(SpMVCudaHalo halo, SpMVHaloExchange *exchange, void *ctx)
{
  halo->staging = exchange;
  halo->ctx     = ctx;
}

PETSC_INTERN PetscScalar *SpMVCudaHaloGetArray(SpMVCudaHalo halo)
{
  return halo->received ? (PetscScalar *)halo->halo : nullptr;
}

PETSC_INTERN cudaError_t SpMVCudaHaloBegin(SpMVCudaHalo halo, int columns, const PetscScalar *x, PetscInt64 ldx,
                                           cudaStream_t stream)
{
  return halo->Begin(false, columns, (const Scalar *)x, ldx, stream);
}

PETSC_INTERN cudaError_t SpMVCudaHaloEnd(SpMVCudaHalo halo, cudaStream_t stream)
{
  return halo->End(false, stream);
}

PETSC_INTERN cudaError_t SpMVCudaHaloReverseBegin(SpMVCudaHalo halo, cudaStream_t stream)
{
  return halo->Begin(true, 1, nullptr, 0, stream);
}

PETSC_INTERN cudaError_t SpMVCudaHaloReverseEnd(SpMVCudaHalo halo, PetscScalar *y, cudaStream_t stream)
{
  if (halo->comm->transport == SPMV_TRANSPORT_PEER) return halo->AddPeer((Scalar *)y, stream);
  SPMV_TRY(halo->End(true, stream));
  SPMV_LAUNCH(halo->rows, 256, stream, Add, halo->rows, halo->row, halo->start, halo->place, halo->buffer, (Scalar *)y);
  return cudaSuccess;
}

PETSC_INTERN cudaError_t SpMVCudaHaloForgo(SpMVCudaHalo halo, PetscBool reverse, int columns, cudaStream_t stream)
{
  const size_t n = (size_t)(reverse ? halo->received : halo->sent) * columns;
  // an error is no reason to let the other ranks wait
  if (n && cudaMemsetAsync(reverse ? halo->halo : halo->buffer, 0xff, n * sizeof(Scalar), stream)) ForgetErrors();
  SPMV_TRY(halo->Begin((bool)reverse, columns, nullptr, 0, stream));
  return halo->End((bool)reverse, stream);
}
