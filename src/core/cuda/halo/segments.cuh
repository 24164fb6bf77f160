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
#include <list>

namespace spmv {

class Segments {
public:
  struct Segment {
    Array<char>        memory;
    cudaIpcMemHandle_t handle;
    int64_t            number; // among this rank's segments
    size_t             used   = 0;
    int                shares = 0;
  };
  // A share of one of this rank's segments. It is returned when this object is destroyed
  struct Share {
    Segments *of      = nullptr;
    Segment  *segment = nullptr;
    size_t    offset  = 0;

    Share()                         = default;
    Share(const Share &)            = delete;
    Share &operator=(const Share &) = delete;
    ~Share()
    {
      if (segment) of->Return(segment);
    }
    char *Pointer() const
    {
      return segment->memory + offset;
    }
  };

  cudaError_t Take(size_t bytes, Share *);
  // The memory of another rank's segment. Each call needs a call of Close()
  cudaError_t Open(int rank, int64_t number, const cudaIpcMemHandle_t &, char **);
  cudaError_t Close(int rank, int64_t number);

private:
  struct Opened {
    int     rank;
    int64_t number;
    void   *memory;
    int     uses;
  };
  std::list<Segment> segments;
  std::list<Opened>  opened;
  int64_t            count = 0;

  std::list<Opened>::iterator Find(int rank, int64_t number);
  void                        Return(Segment *);
};

} // namespace spmv
