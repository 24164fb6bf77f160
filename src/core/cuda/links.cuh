/*
  PEER: the signals between the devices of a node, and the parts of an exchange that other kernels can take over: the kernel that computes x may also send it,
  and the product that reads the halo may wait for it. Then no kernel is needed for the exchange itself.
*/
#pragma once

#include "launch.cuh"

namespace spmv {

/*
  Signals from another rank. This rank's memory has one Post per rank that it exchanges data with, written by that rank. Both members are exchange numbers.
*/
struct alignas(128) Post {
  unsigned open;    // the other rank has read the previous contents of its halo, so this rank may write there
  unsigned arrived; // the other rank has written its data
};

struct Link {
  const Post *here;
  Post       *there;
};

// The halo that a product waits for. number: the number of the exchange, in device memory
struct Arrival {
  const Link     *link;
  const unsigned *number;
  int             links; // 0: there is nothing to wait for

  // The caller then reads the halo with loads that bypass the L1 cache (Num::fresh()): a fence here would invalidate it for all warps of the multiprocessor
  __device__ __forceinline__ void Await() const
  {
    if (!links) return;
    const unsigned n = *(const volatile unsigned *)number;
    for (int k = 0; k < links; k++) {
      while ((int)(LoadRelaxedSystem(&link[k].here->arrived) - n) < 0) __nanosleep(20); // also correct when the numbers wrap around
    }
  }
};

/*
  The entries of a vector that other ranks need, for a kernel that computes the vector. Rows are in groups of 32. The receivers must have read their previous
  halo; nothing waits for that here. All warps of the grid call Complete() after their entries.
*/
struct Sends {
  const int     *slot;  // the place of each group of rows among the groups with entries to send, or -1
  const int     *start; // where the destinations of each row of these groups begin, and the end of the last
  Scalar *const *to;    // the destinations
  int            slots; // number of these groups
  const Link    *link;
  int            links;
  unsigned      *count; // number of exchanges so far, and of finished groups of the current one

  // Sends the groups of x that this warp has written in ForEach(), one of every as many groups as the grid has warps; returns their number, for Complete().
  // This is not part of the loop that computes x, which needs all registers
  __device__ __forceinline__ unsigned Send(const Scalar *x, int n) const
  {
    const unsigned lane = threadIdx.x % WARP, warps = gridDim.x * (blockDim.x / WARP), groups = ((unsigned)n + WARP - 1) / WARP;
    unsigned       sent = 0;
    for (uint64_t first = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP; first < groups; first += (uint64_t)WARP * warps) {
      const uint64_t group = first + (uint64_t)lane * warps;
      const int      mine  = group < groups ? __ldg(slot + group) : -1;
      for (unsigned found = __ballot_sync(ALL, mine >= 0); found; found &= found - 1, sent++) {
        const int      from = __ffs(found) - 1, s = __shfl_sync(ALL, mine, from);
        const unsigned i = (unsigned)(first + (uint64_t)from * warps) * WARP + lane;
        const int     *p = start + (size_t)s * WARP + lane;
        if (i >= (unsigned)n) continue;
        const Scalar value = x[i];
        for (int q = p[0]; q < p[1]; q++) *to[q] = value;
      }
    }
    return sent;
  }
  // groups: the number of groups that this warp has sent; the same in all lanes. The warp that completes the exchange signals this to all peers. none:
  // nothing is sent in this exchange, and the first warp of the grid signals at once
  __device__ __forceinline__ void Complete(unsigned groups, bool none) const
  {
    const int lane = (int)(threadIdx.x % WARP);
    int       last = 0;
    __syncwarp();
    if (lane == 0 && (none || !slots))
      last = blockIdx.x == 0 && threadIdx.x == 0;
    else if (lane == 0 && groups) {
      FenceSystem(); // for the writes of the whole warp
      last = atomicAdd(count + 1, groups) + groups == (unsigned)slots;
    }
    if (!__shfl_sync(ALL, last, 0)) return;
    FenceSystem();
    const unsigned n = count[0] + 1;
    for (int k = lane; k < links; k += WARP) StoreRelaxedSystem(&link[k].there->arrived, n);
    __syncwarp();
    if (lane == 0) {
      count[0] = n;
      count[1] = 0;
    }
  }
};

} // namespace spmv
