/*
  PEER: the signals between the devices of a node.
*/
#pragma once

#include "core/cuda/base/launch.cuh"

namespace spmv {

/*
  Signals from another rank. This rank's memory has one Post per rank that it exchanges data with, written by that rank.
  Both members are exchange numbers.
*/
struct alignas(128) Post {
  unsigned open;    // the other rank has read the previous contents of its halo, so this rank may write there
  unsigned arrived; // the other rank has written its data
};

struct Link {
  const Post *here;
  Post       *there;
};

} // namespace spmv
