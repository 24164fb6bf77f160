/*
  Declarations shared by the device's layouts of a batch.
*/
#pragma once

#include "kernels.h"
#include "core/cuda/stores.cuh"

// A layout of a batch on the device, with its product
struct _n_BatchCuda {
  BatchSharing sharing = BATCH_SHARE_NONE;
  int64_t      values  = 0; // number of values of the matrix, in the order of its arrays
  int          rows    = 0;
  int64_t      entries = 0; // of the pattern
  // some problems were changed separately: `source` is kept, so that only changed values are copied
  bool                      keep_source = false;
  bool                      read_source = false; // the product reads `source` itself
  const char               *name        = nullptr;
  spmv::StreamOrder         order; // of fills and products
  spmv::AlignedArrays       arrays;
  spmv::Array<spmv::Scalar> source;      // the values in the order of the matrix
  spmv::Array<int>          value_index; // for a transpose, see BatchTranspose()

  virtual ~_n_BatchCuda() = default;
  // copies the values from `source`
  virtual cudaError_t Fill(cudaStream_t)        = 0;
  virtual cudaError_t Mult(bool conjugate, const spmv::Scalar *x, const spmv::Scalar *z, spmv::Scalar *y,
                           cudaStream_t)        = 0;
  virtual void        Stats(BatchStats *) const = 0;
};

namespace batch {

using namespace spmv;

constexpr int BLOCK = 256; // threads

template <class T> cudaError_t Upload(Array<T> &to, const T *from, size_t count)
{
  SPMV_TRY(to.Alloc(count));
  void       *device = (T *)to;
  const void *host   = from;
  size_t      bytes  = count * sizeof(T);
  return bytes ? SpMVCudaUpload(1, &device, &host, &bytes) : cudaSuccess;
}

// converts to another type of integer
template <class T> cudaError_t UploadAs(Array<T> &to, const PetscInt *from, size_t count)
{
  std::vector<T> copy(from, from + count);
  return Upload(to, copy.data(), count);
}

// The index of the value of entry k. If only the pattern is shared, k continues through the copies of the pattern, one
// for each problem
__device__ __forceinline__ int64_t ValueOf(int64_t k, int64_t entries, const int *value_index)
{
  return value_index ? k / entries * entries + value_index[k % entries] : k;
}

__device__ __forceinline__ void Store(const Scalar *z, Scalar *y, int64_t r, Scalar sum)
{
  y[r] = z ? Num::add(z[r], sum) : sum;
}

// The matrix or its transpose. The transpose's pattern is computed when it is first needed
class Side {
public:
  Side(const BatchPattern *A, bool transpose) : A(A), transpose(transpose)
  {
  }
  Side(const Side &) = delete;
  ~Side()
  {
    (void)PetscFree(i);
    (void)PetscFree(j);
    (void)PetscFree(value_index);
  }
  cudaError_t GetPattern(const BatchPattern **B)
  {
    if (transpose && !value_index) {
      if (BatchPatternEntries(A) >= INT_MAX) return cudaErrorNotSupported;
      if (BatchTranspose(A, &i, &j, &value_index)) return cudaErrorMemoryAllocation;
      own   = *A;
      own.i = i;
      own.j = j;
    }
    *B = transpose ? &own : A;
    return cudaSuccess;
  }

  // Replaces *b, which may be null, by a new T, which the caller deletes, even after an error. permuted: T uses
  // value_index
  template <class T> cudaError_t New(T **t, bool permuted, _n_BatchCuda **b)
  {
    delete *b;
    *b = *t = new (std::nothrow) T;
    if (!*t) return cudaErrorMemoryAllocation;
    (*t)->sharing = A->sharing;
    (*t)->values  = BatchValues(A);
    (*t)->rows    = (int)BatchRows(A);
    (*t)->entries = BatchPatternEntries(A);
    return transpose && permuted ? UploadAs((*t)->value_index, value_index, (size_t)BatchPatternEntries(A))
                                 : cudaSuccess;
  }

  const BatchPattern *const A;
  const bool                transpose;

private:
  BatchPattern own;
  PetscInt    *i = nullptr, *j = nullptr, *value_index = nullptr;
};

constexpr double SLICES_MAY_TAKE = 1.1; // times the bytes of the core's layout

// Replace *b, which may be null, by slices or by a kernel of the paper, without values yet. CreateSlices() keeps *b if
// slices need more than SLICES_MAY_TAKE
cudaError_t CreateSlices(Side &, _n_BatchCuda **b);
cudaError_t CreatePaper(Side &, BatchKernel, _n_BatchCuda **b);

} // namespace batch
