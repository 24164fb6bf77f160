/*
  Shared by the steps of smoothed aggregation.
*/
#pragma once

#include "amg.h"
#include "core/cuda/csr/entries.cuh"
#include "core/cuda/layout/view.cuh"

// All calls with one of these use the same stream
struct _n_SpMVCudaGraph {
  spmv::Scratch<PetscInt> i, j; // empty if the arrays are A's
  SpMVCudaCSR             csr     = {};
  const PetscInt         *outside = nullptr;
  int                     bs      = 1; // rows of a vertex, in `outside`

  explicit _n_SpMVCudaGraph(cudaStream_t stream) : i(stream), j(stream)
  {
  }
};

struct _n_SpMVCudaAggregates {
  spmv::Scratch<int>      of, size;
  spmv::Scratch<int64_t>  before; // the members among the vertices before this one
  SpMVCudaAggregatesStats stats = {};

  explicit _n_SpMVCudaAggregates(cudaStream_t stream) : of(stream), size(stream), before(stream)
  {
  }
};

namespace spmv {

constexpr int BLOCK = 256, LANES = 8; // lanes that share a row

static __global__ void narrow(int64_t count, const int64_t *from, PetscInt *to)
{
  const int64_t k = Thread();
  if (k < count) to[k] = (PetscInt)from[k];
}

// Makes a pattern of so many rows. launch(length, NULL): launches a kernel that writes the length of each row;
// launch(NULL, i): one that writes the rows to j
template <class Launch>
cudaError_t MakePattern(int64_t rows, Scratch<PetscInt> &i, Scratch<PetscInt> &j, cudaStream_t stream, Launch launch)
{
  Scratch<int64_t> sum(stream);
  int64_t          nonzeros;
  SPMV_TRY(sum.Alloc(rows + 1));
  SPMV_TRY(i.Alloc(rows + 1));
  SPMV_TRY(cudaMemsetAsync((int64_t *)sum + rows, 0, sizeof(int64_t), stream));
  SPMV_TRY(launch((int64_t *)sum, (const PetscInt *)nullptr));
  SPMV_TRY(ExclusiveSum(sum, rows + 1, stream));
  SPMV_LAUNCH(rows + 1, BLOCK, stream, narrow, rows + 1, (const int64_t *)sum, (PetscInt *)i);
  SPMV_TRY(Fetch(&nonzeros, (const int64_t *)sum + rows, 1, stream));
  if (sizeof(PetscInt) == 4 && nonzeros > INT_MAX) return cudaErrorNotSupported;
  SPMV_TRY(j.Alloc(nonzeros));
  return launch((int64_t *)nullptr, (const PetscInt *)i);
}

// Makes a new object by calling make(object)
template <class T, class Make> cudaError_t Create(T **created, cudaStream_t stream, Make make)
{
  std::unique_ptr<T> object;
  *created          = nullptr;
  cudaError_t error = Guarded([&] {
    SPMV_TRY(Supported());
    SPMV_TRY(PoolKeep(true)); // until the end: the host waits several times
    object.reset(new T(stream));
    return make(*object);
  });
  if (error != cudaSuccess) object.reset();
  const cudaError_t kept = PoolKeep(); // also after an error
  if (error == cudaSuccess) error = kept;
  if (error == cudaSuccess) *created = object.release();
  return error;
}

} // namespace spmv
