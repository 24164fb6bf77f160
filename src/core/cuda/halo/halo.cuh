/*
  The implementation of a halo exchange, shared by its transports: halo.cu (the interface, packing, and the transport
  through the host), nccl.cu and peer.cu, whose kernels share exchange.cuh with products.
*/
#pragma once

#include "halo.h"
#include "exchange.cuh"
#include "segments.cuh"
#include "core/cuda/base/tuning.cuh"
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <thread>

namespace spmv {

using NcclComm = void *;

// Writes the reason for a failure
void Report(char text[SPMV_HALO_TEXT], const char *format, ...);

/*
  Calls f in a thread and waits for a limited time, because a set-up that involves other ranks never ends if one of them
  has failed. A thread that does not finish in time is abandoned, and the code that it runs must stay loaded.
*/
template <class Result, class F> bool Bounded(F f, Result *result)
{
  try {
    std::packaged_task<Result()> task(std::move(f));
    std::future<Result>          future = task.get_future();
    {
      SignalsBlocked blocked;
      std::thread(std::move(task)).detach();
    }
    if (future.wait_for(std::chrono::seconds(SPMV_HALO_SECONDS)) == std::future_status::ready) {
      *result = future.get();
      return true;
    }
  } catch (const std::exception &) { // no thread could be started, so nothing has been done
    return false;
  }
  KeepLoaded();
  return false;
}

struct Pinned {
  Scalar *p = nullptr;
  ~Pinned()
  {
    if (p) cudaFreeHost(p);
  }
};

// The entries exchanged with one rank: `count` entries from `start` on. For entries to send, `first` is their first
// index in x if they are one run of x, else -1
struct Piece {
  int rank, start, count, first;
};

} // namespace spmv

struct _n_SpMVCudaComm {
  SpMVTransport  transport;
  int            rank, device = 0;
  spmv::NcclComm nccl      = nullptr;
  bool           stuck     = false; // some work on the stream may never end
  unsigned       exchanges = 0;
  cudaStream_t   stream    = nullptr;
  spmv::Segments segments; // PEER
  // Of products with all halos. With PEER it belongs to the device, so that products in several streams do not fill the
  // devices with thread blocks that wait for each other
  std::shared_ptr<spmv::StreamOrder> order;
  char                               error[SPMV_HALO_TEXT] = "";

  ~_n_SpMVCudaComm()
  {
    if (stream) cudaStreamDestroy(stream);
  }
};

struct _n_SpMVCudaHalo {
  SpMVCudaComm             comm;
  std::vector<spmv::Piece> send, receive;
  int                      sent = 0, received = 0, packed = 0, rows = 0;
  // columns: the most of an exchange, and those of the exchange in progress
  int               most, columns = 1;
  spmv::Array<char> memory; // of halo and buffer
  spmv::Share       share;  // PEER: the memory that other ranks may write to
  // the data received and the data to send; reversed in the reverse exchange
  spmv::Scalar     *halo = nullptr, *buffer = nullptr;
  spmv::Array<int>  run, index;        // the entries of x to pack
  spmv::Array<int>  row, start, place; // the sums of the reverse exchange
  spmv::Event       ready, staged, done;
  spmv::Pinned      host_sent, host_received;
  SpMVHaloExchange *staging = nullptr;
  void             *ctx     = nullptr;

  // PEER
  // the ranks that this rank exchanges data with, ascending; each has a Post at the beginning of the memory
  std::vector<int>               peers;
  std::vector<spmv::OpenSegment> opened; // the segment of each peer
  spmv::Array<spmv::Link>        link;
  spmv::Array<spmv::Chunk>       chunk;
  spmv::Array<unsigned>          state;             // of each direction, and whether a wait has timed out
  spmv::Scalar                  *landing[2]   = {}; // of each direction
  spmv::Exchange                 direction[2] = {}; // forward and reverse
  spmv::Kernel                   send_kernel, receive_kernel, add_kernel;

  _n_SpMVCudaHalo(SpMVCudaComm c, int most) : comm(c), most(most)
  {
  }
  bool Idle() const
  {
    return send.empty() && receive.empty();
  }
  // Begins an exchange, after all work queued on `stream`. Without x, the buffer is sent; in reverse, the halo
  cudaError_t Begin(bool reverse, int columns, const spmv::Scalar *x, int64_t ldx, cudaStream_t stream);
  // Puts the received data into the halo (in reverse, the buffer), for work that follows on the stream
  cudaError_t End(bool reverse, cudaStream_t stream);

  // sets the pieces, and their places in the buffer
  void Plan(const SpMVHaloList *s, const SpMVHaloList *r);
  // to: the place in the buffer of each entry of the list
  cudaError_t ListSums(const SpMVHaloList *s, const std::vector<int> &to);
  cudaError_t Allocate();
  cudaError_t Create(const SpMVHaloList *s, const SpMVHaloList *r);
  cudaError_t Connect(char reason[SPMV_HALO_TEXT]);

  // The transport through the host
  cudaError_t Stage(bool reverse);
  cudaError_t Unstage(bool reverse);
  // NCCL
  cudaError_t ExchangeNccl(bool reverse, const spmv::Scalar *x, int64_t ldx);
  // PEER
  void        ListPeers();
  cudaError_t ChoosePeer();
  cudaError_t Open(const SpMVHaloOffer *theirs);
  cudaError_t SendPeer(bool reverse, const spmv::Scalar *x, int64_t ldx, cudaStream_t stream);
  // timeout: in microseconds, or 0
  cudaError_t ReceivePeer(bool reverse, unsigned timeout, cudaStream_t stream);
  cudaError_t AddPeer(spmv::Scalar *y, cudaStream_t stream);
  cudaError_t TestPeer(bool reverse, char reason[SPMV_HALO_TEXT]);
};
