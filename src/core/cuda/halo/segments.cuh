/*
  PEER: memory of this device that other ranks of the node write to.

  Another process can only open an allocation as a whole, which takes milliseconds. Therefore the halos of a
  communicator share allocations ("segments"), and a rank opens each segment of another rank once for all of them. A
  segment lives as long as a halo has a part of it. Parts are not used again, so that a new halo cannot find what
  another rank has written for an earlier one.
*/
#pragma once

#include "core/cuda/base/memory.cuh"
#include <cstdint>
#include <map>
#include <memory>

namespace spmv {

struct Segment {
  Array<char>        memory;
  cudaIpcMemHandle_t handle;
  int64_t            number; // among this rank's segments
  size_t             used = 0;

  size_t Room() const
  {
    return memory.Size() - used;
  }
};

// A part of one of this rank's segments
struct Share {
  std::shared_ptr<Segment> segment;
  size_t                   offset = 0;

  char *Pointer() const
  {
    return segment->memory + offset;
  }
};

// Another rank's segment, which is closed with its last copy
using OpenSegment = std::shared_ptr<char>;

class Segments {
public:
  cudaError_t Take(size_t bytes, Share *);
  cudaError_t Open(int rank, int64_t number, const cudaIpcMemHandle_t &, OpenSegment *);

private:
  std::weak_ptr<Segment>                                 roomiest; // the segment with the most room
  int64_t                                                count = 0;
  std::map<std::pair<int, int64_t>, std::weak_ptr<char>> opened; // by rank and number
};

} // namespace spmv
