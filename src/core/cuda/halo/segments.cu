/*
  PEER: the memory that other ranks write to, see segments.cuh.
*/
#include "segments.cuh"
#include <algorithm>

namespace spmv {

static constexpr size_t ALIGN = 256;
// an allocation in the same piece of 2 MiB would be accessible to other processes, too
static constexpr size_t WHOLE = 2 << 20;

cudaError_t Segments::Take(size_t bytes, Share *share)
{
  bytes          = (std::max(bytes, (size_t)1) + ALIGN - 1) / ALIGN * ALIGN;
  share->segment = roomiest.lock();
  if (!share->segment || share->segment->Room() < bytes) {
    const auto   s    = std::make_shared<Segment>();
    const size_t room = share->segment ? share->segment->Room() : 0;
    SPMV_TRY(s->memory.Alloc((bytes + WHOLE - 1) / WHOLE * WHOLE));
    SPMV_TRY(cudaIpcGetMemHandle(&s->handle, (char *)s->memory));
    s->number = count++;
    if (s->Room() - bytes >= room) roomiest = s;
    share->segment = s;
  }
  share->offset = share->segment->used;
  share->segment->used += bytes;
  return cudaSuccess;
}

cudaError_t Segments::Open(int rank, int64_t number, const cudaIpcMemHandle_t &handle, OpenSegment *segment)
{
  for (auto it = opened.begin(); it != opened.end();) it = it->second.expired() ? opened.erase(it) : std::next(it);
  std::weak_ptr<char> &known = opened[{rank, number}];
  void                *memory;
  *segment = known.lock();
  if (*segment) return cudaSuccess;
  SPMV_TRY(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
  segment->reset((char *)memory, [](char *p) { (void)cudaIpcCloseMemHandle(p); });
  known = *segment;
  return cudaSuccess;
}

} // namespace spmv
