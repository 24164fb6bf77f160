/*
  What the first product of a process would wait for: memory that is pinned, and the first allocation from a memory pool.
*/
#pragma once

#include "core/cuda/layout/view.cuh"

namespace spmv {

cudaError_t PoolPrepare(); // the first allocation from a pool takes about 10 ms

// Creates the pinned buffer and the stream of one more thread that copies, if a copy of this size would use more
// threads than have them; returns false if not
bool LanesCreateNext(int gpu, size_t bytes);
bool HasThreads(); // this process may use more than one core

// the thread of SpMVCudaPrepare() is to end after what it is doing, because a set-up begins, which allocates itself
void PrepareEnd();
void PrepareFinalize();

} // namespace spmv
