/*
  The halo exchange with PEER: one kernel that writes to the memory of the other devices of the node.
*/
#include "halo.cuh"
#include <algorithm>

using namespace spmv;

namespace {

constexpr int CHUNK = Tuning::HALO_CHUNK; // entries that a thread block sends at a time

/*
  Waits until another device has signaled exchange n. Everything that the device wrote before is then visible. Returns
  false after a timeout. The loop pauses between loads, because they take bandwidth from the product.
*/
__device__ __forceinline__ bool Await(const unsigned *here, unsigned n, const Exchange &g)
{
  unsigned           signaled;
  unsigned long long begin = 0, now;
  while (true) {
    signaled = LoadRelaxedSystem(here);
    if ((int)(signaled - n) >= 0) break; // also correct when the numbers wrap around
    if (g.timeout) {
      now = Nanoseconds();
      if (!begin) begin = now;
      if (now - begin > 1000ull * g.timeout || IsRaised(g.count + 2)) {
        g.count[2] = 1;
        return false;
      }
    }
    __nanosleep(64);
  }
  AcquireSystem();
  return true;
}

/*
  A complete exchange. At the beginning, the stream's earlier kernels are done and have read the previous halo, so
  `open` is sent to every peer. A chunk is written once its receiver has sent `open`. The last thread block to finish
  sends `arrived` to all peers and waits for theirs. The stream's next kernel may begin at the same time, provided that
  it does not read the halo before AwaitPrevious() and does not write x, because nothing here waits for that kernel. If
  x is NULL, `source` is sent as it is.
*/
__global__ void __launch_bounds__(256)
    exchange(Exchange g, SpMVCudaForm /* form */, const Scalar *x, const Scalar *source, Scalar * /* y */)
{
  __shared__ bool last;
  AwaitPrevious();
  LetNextBegin();
  const unsigned n = g.count[0] + 1;
  if (blockIdx.x == 0) {
    for (int k = threadIdx.x; k < g.links; k += blockDim.x) StoreReleaseSystem(&g.link[k].there->open, n);
  }
  for (int c = blockIdx.x; c < g.chunks * g.columns; c += gridDim.x) {
    const int     column = g.columns == 1 ? 0 : c / g.chunks;
    const Chunk   k      = g.chunk[c - column * g.chunks];
    Scalar *const to     = k.to + column * k.distance;
    if (!__syncthreads_and(threadIdx.x || Await(&g.link[k.peer].here->open, n, g))) continue;
    for (int i = threadIdx.x; i < k.count; i += blockDim.x) {
      const int at    = k.at + i;
      const int first = x ? g.run[at / WARP] : 0;
      to[i]           = !x ? source[column * g.ld_source + at]
                           : Read(x + column * g.ldx + (first >= 0 ? first + at % WARP : g.index[at]));
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    FenceSystem(); // for the writes of the whole thread block
    last = atomicAdd(g.count + 1, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  FenceSystem();
  for (int k = threadIdx.x; k < g.links; k += blockDim.x) StoreRelaxedSystem(&g.link[k].there->arrived, n);
  for (int k = threadIdx.x; k < g.links; k += blockDim.x) (void)Await(&g.link[k].here->arrived, n, g);
  if (threadIdx.x == 0) {
    g.count[0] = n;
    g.count[1] = 0;
  }
}

} // namespace

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
  kernel.Choose((const void *)exchange);
  return kernel.Load();
}

cudaError_t _n_SpMVCudaHalo::ExchangePeer(bool reverse, const Scalar *x, int64_t ldx, cudaStream_t stream)
{
  Exchange g     = direction[reverse];
  g.columns      = columns;
  g.ldx          = ldx;
  const int grid = std::clamp(g.chunks * columns, 1, (int)Tuning::HALO_BLOCKS);
  return kernel.Launch((unsigned)grid, 256, g, SPMVCUDA_MULT, {x, reverse ? halo : buffer, nullptr}, stream);
}

// Maps the peers' memory and lists the chunks with their destinations
cudaError_t _n_SpMVCudaHalo::Open(const SpMVHaloOffer *theirs)
{
  std::vector<Link>   links;
  std::vector<Chunk>  chunks;
  std::vector<char *> base(peers.size());
  int                 begin[3] = {}; // first chunk of each direction, and the end
  const auto          place    = [&](int rank) {
    return (int)(std::lower_bound(peers.begin(), peers.end(), rank) - peers.begin());
  };
  opened.resize(peers.size(), -1);
  for (size_t k = 0; k < peers.size(); k++) {
    const SpMVHaloOffer &of = theirs[peers[k]];
    SPMV_TRY(comm->segments.Open(peers[k], of.segment, of.memory, &base[k]));
    opened[k] = of.segment;
    links.push_back({(const Post *)share.Pointer() + k, (Post *)(base[k] + of.post)});
  }
  for (const bool reverse : {false, true}) {
    for (const Piece &p : reverse ? receive : send) {
      const int            k  = place(p.rank);
      const SpMVHaloOffer &of = theirs[p.rank];
      Scalar *const        to = (Scalar *)(base[k] + (reverse ? of.sums : of.halo));
      for (int i = 0; i < p.count; i += CHUNK)
        chunks.push_back({to + i, of.received, p.start + i, std::min(CHUNK, p.count - i), k});
    }
    begin[reverse + 1] = (int)chunks.size();
  }
  SPMV_TRY(Upload(link, links, nullptr));
  SPMV_TRY(Upload(chunk, chunks, nullptr));
  SPMV_TRY(count.Alloc(3));
  SPMV_TRY(count.Zero(nullptr));
  for (const bool reverse : {false, true})
    direction[reverse] = {chunk + begin[reverse], link, run, index, count, begin[reverse + 1] - begin[reverse],
                          (int)links.size(),      0,    1,   0,     sent};
  return cudaDeviceSynchronize();
}

// Tests whether data written to another device arrive. On some machines they do not, without any error
cudaError_t _n_SpMVCudaHalo::TestPeer(bool reverse, char reason[SPMV_HALO_TEXT])
{
  Scalar *const     target = reverse ? buffer : halo;
  const size_t      size   = (size_t)(reverse ? sent : received) * most * sizeof(Scalar);
  std::vector<char> found(size, (char)0xff);
  unsigned          late;
  columns                    = most;
  direction[reverse].timeout = SPMV_HALO_SECONDS * 1000000u / 4;
  // Before this rank signals that others may write to its memory; not by cudaMemsetAsync(), which may load a kernel for
  // milliseconds
  SPMV_TRY(cudaMemcpyAsync(target, found.data(), size, cudaMemcpyHostToDevice, comm->stream));
  SPMV_TRY(ExchangePeer(reverse, nullptr, 0, comm->stream));
  SPMV_TRY(cudaStreamSynchronize(comm->stream));
  direction[reverse].timeout = 0;
  SPMV_TRY(cudaMemcpy(&late, count + 2, sizeof(late), cudaMemcpyDeviceToHost));
  SPMV_TRY(cudaMemcpy(found.data(), target, size, cudaMemcpyDeviceToHost));
  if (!late && std::count(found.begin(), found.end(), 0) == (std::ptrdiff_t)size) return cudaSuccess;
  Report(reason, "rank %d: data that other ranks wrote to its GPU's memory did not arrive", comm->rank);
  return late ? cudaErrorTimeout : cudaErrorUnknown;
}

PETSC_INTERN cudaError_t SpMVCudaHaloGetOffers(SpMVCudaHalo halo, int size, SpMVHaloOffer mine[])
{
  const Segments::Segment *segment = halo->share.segment;
  const auto               at = [=](const void *p) { return (int64_t)((const char *)p - (char *)segment->memory); };
  for (int r = 0; r < size; r++) mine[r] = {segment->handle, segment->number, -1, -1, -1, halo->received};
  for (size_t k = 0; k < halo->peers.size(); k++)
    mine[halo->peers[k]].post = at((const Post *)halo->share.Pointer() + k);
  for (const Piece &p : halo->receive) mine[p.rank].halo = at(halo->halo + p.start);
  for (const Piece &p : halo->send) mine[p.rank].sums = at(halo->buffer + p.start);
  return cudaSuccess;
}

PETSC_INTERN cudaError_t SpMVCudaHaloOpen(SpMVCudaHalo halo, const SpMVHaloOffer theirs[])
{
  return Guarded([=] { return halo->Open(theirs); });
}

PETSC_INTERN cudaError_t SpMVCudaHaloClose(SpMVCudaHalo halo)
{
  if (halo->comm->stuck || halo->opened.empty()) return cudaSuccess;
  cudaError_t first = cudaDeviceSynchronize(); // the last exchange may have been in any stream
  for (size_t k = 0; k < halo->opened.size(); k++) {
    const cudaError_t error =
        halo->opened[k] < 0 ? cudaSuccess : halo->comm->segments.Close(halo->peers[k], halo->opened[k]);
    if (first == cudaSuccess) first = error;
    halo->opened[k] = -1;
  }
  return first;
}
