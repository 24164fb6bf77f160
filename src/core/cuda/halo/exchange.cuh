/*
  The exchange of a halo with PEER, as kernels see it. A sender needs no permission, and there is no signal that says
  that data have arrived: each number is its own signal.

  A rank has three landings, arrays with a place for each number that others send to it. Exchanges take turns with
  them. Numbers are sent to places that are vacant, as in partsums.cuh, and the receiver looks at a place until it is
  not vacant. Each place is read in its exchange, or never. The receiver vacates a landing before its next turn: if it
  reads each number once, when it reads it, otherwise in the next exchange. In addition, in each exchange each rank
  sends its turn to each rank that it exchanges data with, in either direction, and waits for theirs.

  Why a sender finds vacant places: it begins exchange n when its exchange n - 1 has ended, in which it has received
  turn n - 1 from its peers. They had sent that when their exchanges n - 2 had ended, which vacated the landing of
  exchange n - 3 at the latest. That is the landing of exchange n.

  The turn is in device memory, so that an exchange may be captured in a graph. All who read it arrive, in the same
  word; the last to arrive sets it for the next exchange.
*/
#pragma once

#include "core/cuda/base/launch.cuh"
#include "core/cuda/product/partsums.cuh"

namespace spmv {

// This rank's memory has one Post for each rank that it exchanges data with, which writes its turns there, those of
// forward and of reverse exchanges
struct alignas(128) Post {
  unsigned turn[2];
};

struct Link {
  const Post *here;
  Post       *there;
};

// `count` entries of each column to send, from position `at` on, to a landing in another device's memory. Distances
// there: from column to column, and from landing to landing
struct Chunk {
  Scalar *to;
  int64_t column, landing;
  int     at, count;
};

// How long a thread waits for other ranks. Without a time limit this costs nothing
struct Patience {
  unsigned           timeout = 0;       // microseconds; 0: none
  unsigned          *late    = nullptr; // set when the time is up
  unsigned long long begin   = 0;

  // Pauses after a place was found vacant, because loads take bandwidth from the product. Returns false when the time
  // is up
  __device__ __forceinline__ bool Wait()
  {
    if (timeout) {
      const unsigned long long now = Nanoseconds();
      if (!begin) begin = now;
      if (now - begin > 1000ull * timeout || IsRaised(late)) {
        Raise(late);
        return false;
      }
    }
    __nanosleep(32);
    return true;
  }
};

__device__ __forceinline__ void Vacate(Scalar *place)
{
#pragma unroll
  for (int k = 0; k < REALS; k++) StoreRelaxed((PetscReal *)place + k, PartialSum<PetscReal>::vacant());
}

// Takes the numbers at COUNT places of a landing, or 0 where `place` is negative
template <int COUNT>
__device__ __forceinline__ bool TakeArrived(const Scalar *landing, const int (&place)[COUNT], Patience &patience,
                                            Scalar (&value)[COUNT])
{
  while (true) {
    bool missing = false;
#pragma unroll
    for (int b = 0; b < COUNT; b++) {
#pragma unroll
      for (int k = 0; k < REALS; k++)
        ((PetscReal *)&value[b])[k] =
            place[b] >= 0 ? LoadRelaxedSystem((const PetscReal *)(landing + place[b]) + k) : PetscReal(0);
    }
#pragma unroll
    for (int b = 0; b < COUNT; b++) missing = missing || Partial::is_vacant(value[b]);
    if (!missing) return true;
    if (!patience.Wait()) return false;
  }
}

} // namespace spmv

// A direction of an exchange
struct _n_SpMVCudaExchange {
  const spmv::Chunk *chunk;
  const spmv::Link  *link;
  const int         *run, *index; // the entries of x to send, as in Pack()
  spmv::Scalar      *landing;
  unsigned          *state;                 // upper two bits: the turn; others: how many have arrived
  int                chunks, links, places; // chunks of a column; places of a landing
  int                later;                 // places of the previous landing that are vacated in an exchange
  int                reverse;
  // at least 2 if later is positive: the first thread block sends the turns, the others send entries and vacate places
  unsigned blocks;
  // the most thread blocks that may wait for other ranks when they have sent: a device has room for all of them at once
  unsigned most;

  static constexpr int BATCH = 4; // entries whose loads a thread issues at once

  static __device__ __forceinline__ unsigned Next(unsigned turn)
  {
    return turn == 2 ? 0 : turn + 1;
  }
  static __device__ __forceinline__ unsigned Previous(unsigned turn)
  {
    return turn == 0 ? 2 : turn - 1;
  }
  __device__ __forceinline__ unsigned Turn() const
  {
    return spmv::LoadRelaxedSystem(state) >> 30;
  }
  __device__ __forceinline__ spmv::Scalar *Landing(unsigned turn) const
  {
    return landing + (int64_t)turn * places;
  }
  // One of the `all` thread blocks that read the turn in this exchange arrives
  __device__ __forceinline__ void Arrive(unsigned all) const
  {
    const unsigned old = spmv::AddRelaxed(state, 1);
    if ((old & 0x3fffffffu) + 1 == all) spmv::StoreRelaxed(state, Next(old >> 30) << 30);
  }

  // Waits until each peer has begun this exchange. A peer may have begun the next one. All threads of a thread block
  // call it
  __device__ __forceinline__ void AwaitPeers(unsigned turn, spmv::Patience patience) const
  {
    for (int k = threadIdx.x; k < links; k += blockDim.x) {
      while (true) {
        const unsigned theirs = spmv::LoadRelaxedSystem(&link[k].here->turn[reverse]);
        if (theirs == turn || theirs == Next(turn)) break;
        if (!patience.Wait()) return;
      }
      spmv::AcquireSystem();
    }
  }

  // Sends the entries of x, or `source` as it is if x is NULL; ldx, lds: from column to column
  __device__ __forceinline__ void SendEntries(unsigned block, int columns, const spmv::Scalar *x, int64_t ldx,
                                              const spmv::Scalar *source, int64_t lds) const
  {
    using namespace spmv;
    unsigned turn = 0;
    bool     seen = false;
    for (int c = (int)block; c < chunks * columns; c += (int)blocks - 1) {
      const int   column = columns == 1 ? 0 : c / chunks;
      const Chunk k      = chunk[c - column * chunks];
      for (int i0 = threadIdx.x; i0 < k.count; i0 += BATCH * (int)blockDim.x) {
        int    from[BATCH];
        Scalar v[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
          const int at = k.at + i0 + b * (int)blockDim.x;
          from[b]      = -1;
          if (i0 + b * (int)blockDim.x >= k.count) continue;
          const int first = x ? run[at / WARP] : at - at % WARP;
          from[b]         = first >= 0 ? first + at % WARP : index[at];
        }
        AwaitPrevious();
        if (!seen) turn = Turn();
        seen = true;
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
          if (from[b] >= 0) v[b] = Read((x ? x + column * ldx : source + column * lds) + from[b]);
        }
        Scalar *const to = k.to + column * k.column + turn * k.landing + i0;
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
          if (from[b] >= 0) Partial::send(to + b * (int)blockDim.x, v[b]);
        }
      }
    }
    AwaitPrevious();
    if (!seen) turn = Turn();
    Scalar *const previous = Landing(Previous(turn));
    for (int i = (int)(block * blockDim.x + threadIdx.x); i < later; i += (int)((blocks - 1) * blockDim.x))
      Vacate(previous + i);
  }

  // What thread block `block` of the first `blocks` of a grid does. receives: the kernel also receives
  __device__ __forceinline__ void Send(unsigned block, bool receives, int columns, const spmv::Scalar *x, int64_t ldx,
                                       const spmv::Scalar *source, int64_t lds) const
  {
    using namespace spmv;
    if (block)
      SendEntries(block - 1, columns, x, ldx, source, lds);
    else {
      AwaitPrevious();
      const unsigned turn = Turn();
      for (int k = threadIdx.x; k < links; k += blockDim.x) StoreReleaseSystem(&link[k].there->turn[reverse], turn);
      if (receives) AwaitPeers(turn, {});
    }
    LetNextBegin();
  }
};

namespace spmv {
using Exchange = _n_SpMVCudaExchange;
} // namespace spmv
