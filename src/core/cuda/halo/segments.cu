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
  bytes            = (std::max(bytes, (size_t)1) + ALIGN - 1) / ALIGN * ALIGN;
  const auto space = [=](const Segment &s) { return s.memory.Size() - s.used >= bytes; };
  auto       found = std::find_if(segments.begin(), segments.end(), space);
  if (found == segments.end()) {
    std::list<Segment> one(1);
    Segment           &s = one.front();
    SPMV_TRY(s.memory.Alloc((bytes + WHOLE - 1) / WHOLE * WHOLE));
    SPMV_TRY(cudaIpcGetMemHandle(&s.handle, (char *)s.memory));
    s.number = count++;
    segments.splice(segments.end(), one);
    found = std::prev(segments.end());
  }
  share->of      = this;
  share->segment = &*found;
  share->offset  = found->used;
  found->used += bytes;
  found->shares++;
  return cudaSuccess;
}

void Segments::Return(Segment *segment)
{
  if (--segment->shares) return;
  segments.remove_if([=](const Segment &s) { return &s == segment; });
}

std::list<Segments::Opened>::iterator Segments::Find(int rank, int64_t number)
{
  return std::find_if(opened.begin(), opened.end(),
                      [=](const Opened &o) { return o.rank == rank && o.number == number; });
}

cudaError_t Segments::Open(int rank, int64_t number, const cudaIpcMemHandle_t &handle, char **memory)
{
  auto found = Find(rank, number);
  if (found == opened.end()) {
    std::list<Opened> one(1, {rank, number, nullptr, 0});
    SPMV_TRY(cudaIpcOpenMemHandle(&one.front().memory, handle, cudaIpcMemLazyEnablePeerAccess));
    opened.splice(opened.end(), one);
    found = std::prev(opened.end());
  }
  found->uses++;
  *memory = (char *)found->memory;
  return cudaSuccess;
}

cudaError_t Segments::Close(int rank, int64_t number)
{
  auto found = Find(rank, number);
  if (found == opened.end() || --found->uses) return cudaSuccess;
  void *const memory = found->memory;
  opened.erase(found);
  return cudaIpcCloseMemHandle(memory);
}

} // namespace spmv
