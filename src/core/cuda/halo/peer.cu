/*
  The halo exchange with PEER: kernels that write to the memory of the other devices of the node, and that receive. See
  exchange.cuh
*/
#include "halo.cuh"
#include <algorithm>

using namespace spmv;

namespace {

constexpr int BLOCK = 256, CHUNK = Tuning::HALO_CHUNK; // entries that a thread block sends at a time

struct SendArgs {
  Exchange exchange;
  int      columns;
  int64_t  ldx, ld_source;
};

struct ReceiveArgs {
  Exchange exchange;
  int      count; // of numbers
  Patience patience;
};

// Lists of what the owner of x adds in a reverse exchange
struct AddArgs {
  Exchange   exchange;
  int        rows;
  const int *row, *start, *place;
};

__global__ void __launch_bounds__(BLOCK) send(SendArgs g, bool, const Scalar *x, const Scalar *source, Scalar * /* y */)
{
  g.exchange.Send(blockIdx.x, false, g.columns, x, g.ldx, source, g.ld_source);
}

// The end of a kernel that receives
__device__ __forceinline__ void finish(const Exchange &e, unsigned turn, const Patience &patience)
{
  if (blockIdx.x == 0) e.AwaitPeers(turn, patience);
  __syncthreads();
  if (threadIdx.x == 0) e.Arrive(gridDim.x);
}

// Fills the halo, or in reverse the buffer
__global__ void __launch_bounds__(BLOCK)
    receive(ReceiveArgs g, bool, const Scalar * /* x */, const Scalar * /* z */, Scalar *to)
{
  constexpr int BATCH    = Exchange::BATCH;
  const int     threads  = gridDim.x * BLOCK;
  Patience      patience = g.patience;
  AwaitPrevious();
  LetNextBegin();
  const unsigned turn = g.exchange.Turn();
  Scalar *const  from = g.exchange.Landing(turn);
  for (int i0 = blockIdx.x * BLOCK + threadIdx.x; i0 < g.count; i0 += BATCH * threads) {
    int    at[BATCH];
    Scalar v[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) at[b] = i0 + b * threads < g.count ? i0 + b * threads : -1;
    if (!TakeArrived(from, at, patience, v)) break;
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      if (at[b] < 0) continue;
      to[at[b]] = v[b];
      if (!g.exchange.later) Vacate(from + at[b]);
    }
  }
  finish(g.exchange, turn, patience);
}

// The end of a reverse exchange: adds the peers' contributions to each row, in the order of the peers
__global__ void __launch_bounds__(BLOCK) add(AddArgs g, bool, const Scalar * /* x */, const Scalar * /* z */, Scalar *y)
{
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  Patience  patience;
  AwaitPrevious();
  LetNextBegin();
  const unsigned turn = g.exchange.Turn();
  Scalar *const  from = g.exchange.Landing(turn);
  if (i < g.rows) {
    const int r   = g.row[i];
    Scalar    sum = Read(y + r);
    for (int k = g.start[i]; k < g.start[i + 1]; k++) {
      const int at[1] = {g.place[k]};
      Scalar    v[1];
      TakeArrived(from, at, patience, v);
      Vacate(from + at[0]);
      sum = Num::add(sum, v[0]);
    }
    Write(y + r, sum);
  }
  finish(g.exchange, turn, patience);
}

} // namespace

// One for the turns, and at least one that sends chunks and vacates `later` places
static unsigned SendBlocks(int chunks, int later)
{
  return (unsigned)std::clamp(std::max(chunks, later / CHUNK), 1, (int)Tuning::HALO_BLOCKS) + 1;
}

void _n_SpMVCudaHalo::ListPeers()
{
  for (const auto &list : {send, receive}) {
    for (const Piece &p : list) peers.push_back(p.rank);
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
}

cudaError_t _n_SpMVCudaHalo::ChoosePeer()
{
  send_kernel.Choose((const void *)::send);
  receive_kernel.Choose((const void *)::receive);
  add_kernel.Choose((const void *)::add);
  SPMV_TRY(send_kernel.Load());
  if (most == 1) SPMV_TRY(add_kernel.Load());
  return receive_kernel.Load();
}

cudaError_t _n_SpMVCudaHalo::SendPeer(bool reverse, const Scalar *x, int64_t ldx, cudaStream_t stream)
{
  SendArgs g        = {direction[reverse], columns, ldx, reverse ? 0 : sent};
  g.exchange.blocks = SendBlocks(g.exchange.chunks * columns, g.exchange.later);
  return send_kernel.Launch(g.exchange.blocks, BLOCK, g, false, {x, reverse ? halo : buffer, nullptr}, stream);
}

cudaError_t _n_SpMVCudaHalo::ReceivePeer(bool reverse, unsigned timeout, cudaStream_t stream)
{
  const ReceiveArgs g    = {direction[reverse], (reverse ? sent : received) * columns, {timeout, state + 2}};
  const unsigned    grid = std::clamp(Blocks(g.count, BLOCK), 1u, (unsigned)Tuning::HALO_BLOCKS);
  return receive_kernel.Launch(grid, BLOCK, g, false, {nullptr, nullptr, reverse ? buffer : halo}, stream);
}

cudaError_t _n_SpMVCudaHalo::AddPeer(Scalar *y, cudaStream_t stream)
{
  const AddArgs g = {direction[1], rows, row, start, place};
  if (Idle()) return cudaSuccess;
  return add_kernel.Launch(std::max(Blocks(rows, BLOCK), 1u), BLOCK, g, false, {nullptr, nullptr, y}, stream);
}

// Maps the peers' memory and lists the chunks with their destinations
cudaError_t _n_SpMVCudaHalo::Open(const SpMVHaloOffer *theirs)
{
  std::vector<Link>  links;
  std::vector<Chunk> chunks;
  int                begin[3] = {}, processors; // begin: first chunk of each direction, and the end
  const auto         place    = [&](int rank) {
    return (int)(std::lower_bound(peers.begin(), peers.end(), rank) - peers.begin());
  };
  opened.resize(peers.size());
  for (size_t k = 0; k < peers.size(); k++) {
    const SpMVHaloOffer &of = theirs[peers[k]];
    SPMV_TRY(comm->segments.Open(peers[k], of.segment, of.memory, &opened[k]));
    links.push_back({(const Post *)share.Pointer() + k, (Post *)(opened[k].get() + of.post)});
  }
  for (const bool reverse : {false, true}) {
    for (const Piece &p : reverse ? receive : send) {
      const int            k        = place(p.rank);
      const SpMVHaloOffer &of       = theirs[p.rank];
      Scalar *const        to       = (Scalar *)(opened[k].get() + (reverse ? of.sums : of.halo));
      const int64_t        distance = reverse ? of.sent : of.received;
      for (int i = 0; i < p.count; i += CHUNK)
        chunks.push_back({to + i, distance, distance * most, p.start + i, std::min(CHUNK, p.count - i)});
    }
    begin[reverse + 1] = (int)chunks.size();
  }
  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
  SPMV_TRY(Upload(link, links, nullptr));
  SPMV_TRY(Upload(chunk, chunks, nullptr));
  SPMV_TRY(state.Alloc(3));
  SPMV_TRY(state.Zero(nullptr));
  for (const bool reverse : {false, true}) {
    const int count = begin[reverse + 1] - begin[reverse], places = (reverse ? sent : received) * most;
    Exchange &e = direction[reverse];
    e           = {chunk + begin[reverse], link, run, index, landing[reverse], state + reverse};
    e.chunks    = count;
    e.links     = (int)links.size();
    e.places    = places;
    e.later     = most == 1 && !reverse ? places : 0; // several rows may read a number
    e.reverse   = reverse;
    e.most      = (unsigned)std::min(processors, (int)Tuning::HALO_BLOCKS + 1);
    e.blocks    = std::min(SendBlocks(count, e.later), std::max(e.most, 2u));
  }
  return cudaDeviceSynchronize();
}

// Tests whether data written to another device arrive. On some machines they do not, without any error
cudaError_t _n_SpMVCudaHalo::TestPeer(bool reverse, char reason[SPMV_HALO_TEXT])
{
  Scalar *const     target = reverse ? buffer : halo;
  const size_t      size   = (size_t)(reverse ? sent : received) * most * sizeof(Scalar);
  std::vector<char> found(size, (char)0xff);
  unsigned          late;
  columns = most;
  // not by cudaMemsetAsync(), which may load a kernel for milliseconds
  SPMV_TRY(cudaMemcpyAsync(target, found.data(), size, cudaMemcpyHostToDevice, comm->stream));
  SPMV_TRY(SendPeer(reverse, nullptr, 0, comm->stream));
  SPMV_TRY(ReceivePeer(reverse, SPMV_HALO_SECONDS * 1000000u / 4, comm->stream));
  SPMV_TRY(cudaStreamSynchronize(comm->stream));
  SPMV_TRY(cudaMemcpy(&late, state + 2, sizeof(late), cudaMemcpyDeviceToHost));
  SPMV_TRY(cudaMemcpy(found.data(), target, size, cudaMemcpyDeviceToHost));
  if (!late && std::count(found.begin(), found.end(), 0) == (std::ptrdiff_t)size) return cudaSuccess;
  Report(reason, "rank %d: data that other ranks wrote to its GPU's memory did not arrive", comm->rank);
  return late ? cudaErrorTimeout : cudaErrorUnknown;
}

PETSC_INTERN cudaError_t SpMVCudaHaloGetOffers(SpMVCudaHalo halo, int size, SpMVHaloOffer mine[])
{
  const Segment *segment = halo->share.segment.get();
  const auto     at      = [=](const void *p) { return (int64_t)((const char *)p - (char *)segment->memory); };
  for (int r = 0; r < size; r++) mine[r] = {segment->handle, segment->number, -1, -1, -1, halo->received, halo->sent};
  for (size_t k = 0; k < halo->peers.size(); k++)
    mine[halo->peers[k]].post = at((const Post *)halo->share.Pointer() + k);
  for (const Piece &p : halo->receive) mine[p.rank].halo = at(halo->landing[0] + p.start);
  for (const Piece &p : halo->send) mine[p.rank].sums = at(halo->landing[1] + p.start);
  return cudaSuccess;
}

PETSC_INTERN SpMVCudaExchange SpMVCudaHaloGetExchange(SpMVCudaHalo halo)
{
  return halo->comm->transport == SPMV_TRANSPORT_PEER && halo->most == 1 && !halo->Idle() ? halo->direction : nullptr;
}

PETSC_INTERN cudaError_t SpMVCudaHaloOpen(SpMVCudaHalo halo, const SpMVHaloOffer theirs[])
{
  return Guarded([=] { return halo->Open(theirs); });
}

PETSC_INTERN cudaError_t SpMVCudaHaloClose(SpMVCudaHalo halo)
{
  if (halo->comm->stuck || halo->opened.empty()) return cudaSuccess;
  const cudaError_t error = cudaDeviceSynchronize(); // the last exchange may have been in any stream
  halo->opened.clear();
  return error;
}
