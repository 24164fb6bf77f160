/*
  What the first product of a process would wait for: code that is loaded, memory that is pinned, the first allocation
  from a memory pool.
*/
#pragma once

#include "core/cuda/layout/view.cuh"

namespace spmv {

// Load the code of the first kernels of a set-up and of products, and with it the modules that contain them
cudaError_t LoadSurvey();
cudaError_t LoadNodes();
cudaError_t LoadRowGroups();
cudaError_t LoadDiagonals();
cudaError_t LoadDiagonalProducts();
cudaError_t LoadSlices();
cudaError_t LoadSliceProducts();
cudaError_t LoadKrylov();
cudaError_t LoadChebyshev();

cudaError_t PoolPrepare(); // the first allocation from a pool takes about 10 ms

// Creates the pinned buffer and the stream of one more thread that copies, if a copy of this size would use more
// threads than have them; returns false if not
bool LanesCreateNext(int gpu, size_t bytes);
bool HasThreads(); // this process may use more than one core

// the thread of SpMVCudaPrepare() is to end after what it is doing, because a set-up begins that loads what it needs
// itself
void PrepareEnd();
void PrepareFinalize();

} // namespace spmv
