/*
  Assembly from a coordinate array. Preallocation gives every entry of the block a key made of its row and then its
  column. A radix sort orders the keys, together with the places of the entries, unless the keys already ascend. Every
  position where a new key begins is a nonzero. The sort is stable, so the places of a nonzero's entries ascend, and
  their values are always added in that order.

  Two arrays are kept: the place of each entry in this order, and the position where the entries of each nonzero begin.
  An array that would be 0, 1, 2, ... is not stored.
*/
#include "coo.h"
#include "entries.cuh"
#include "core/cuda/layout/view.cuh"
#include <cub/device/device_select.cuh>
#include <memory>
#include <thrust/iterator/counting_iterator.h>

namespace spmv {
namespace {

constexpr int BLOCK = Tuning::COO_BLOCK;

// ------------------------------------------------------------------------------------------------ selection

// Lists the numbers q < count for which pick(q) is true, in ascending order
template <class Pick> cudaError_t Select(int64_t count, const Pick &pick, cudaStream_t stream, Array<int> &list)
{
  const thrust::counting_iterator<int> all(0);
  size_t                               bytes = 0;
  int                                  total;
  Scratch<int>                         room(stream), picked(stream);
  Scratch<char>                        scratch(stream);
  SPMV_TRY(room.Alloc(count));
  SPMV_TRY(picked.AllocZero(1));
  ForgetErrors();
  SPMV_TRY(cub::DeviceSelect::If(nullptr, bytes, all, (int *)room, (int *)picked, (int)count, pick, stream));
  SPMV_TRY(scratch.Alloc(bytes));
  SPMV_TRY(cub::DeviceSelect::If((char *)scratch, bytes, all, (int *)room, (int *)picked, (int)count, pick, stream));
  SPMV_TRY(Fetch(&total, (int *)picked, 1, stream));
  SPMV_TRY(list.Alloc(total));
  return cudaMemcpyAsync(list, room, list.Bytes(), cudaMemcpyDeviceToDevice, stream);
}

// ------------------------------------------------------------------------------------------------ indices

// Both index arrays as one
struct Indices {
  SpMVCudaIndices a;

  __host__ __device__ int64_t count() const
  {
    return a.count[0] + a.count[1];
  }
  __device__ void Get(int64_t q, int64_t *i, int64_t *j) const
  {
    const int     k  = q >= a.count[0];
    const int64_t at = q - (k ? a.count[0] : 0);
    *i               = a.i[k][at];
    *j               = a.j[k][at];
  }
  // The same; returns false if the entry is to be ignored or if an index is too large, which is an error
  __device__ bool Check(int64_t q, int *failed, int64_t *i, int64_t *j) const
  {
    Get(q, i, j);
    if (*i < 0 || *j < 0) return false;
    if (*i < a.M && *j < a.N) return true;
    Raise(failed);
    return false;
  }
};

// The entries of the block, or those in rows of other ranks
template <bool REMOTE> struct Belongs {
  Indices         of;
  int            *failed;
  __device__ bool operator()(int64_t q) const
  {
    int64_t i, j;
    if (!of.Check(q, failed, &i, &j)) return false;
    if (REMOTE) return i < of.a.row[0] || i >= of.a.row[1];
    return i >= of.a.row[0] && i < of.a.row[1] && (j >= of.a.col[0] && j < of.a.col[1]) != (bool)of.a.outside;
  }
};

// bits: of a column in a key
__global__ void write_keys(int64_t count, Indices of, int bits, const int *place, uint64_t *key)
{
  const int64_t k = Thread();
  int64_t       i, j;
  if (k >= count) return;
  of.Get(place[k], &i, &j);
  key[k] = (uint64_t)(i - of.a.row[0]) << bits | (uint64_t)(of.a.outside ? j : j - of.a.col[0]);
}

__global__ void write_remote(int64_t count, Indices of, const int *from, int64_t *place, PetscInt *i, PetscInt *j)
{
  const int64_t k = Thread();
  int64_t       row, col;
  if (k >= count) return;
  of.Get(from[k], &row, &col);
  place[k] = from[k];
  i[k]     = (PetscInt)row;
  j[k]     = (PetscInt)col;
}

// ------------------------------------------------------------------------------------------------ nonzeros

__global__ void check_order(int64_t count, const uint64_t *key, int *failed)
{
  const int64_t q = Thread();
  if (q > 0 && q < count && key[q] < key[q - 1]) Raise(failed);
}

// Whether a nonzero begins at an entry, or all entries end there
struct IsFirst {
  const uint64_t *key;
  int64_t         count;
  __device__ bool operator()(int64_t q) const
  {
    return q == 0 || q == count || key[q] != key[q - 1];
  }
};

// mask: of the column's bits in the key
__global__ void write_columns(int64_t nonzeros, const uint64_t *key, uint64_t mask, const int *first, PetscInt *j)
{
  const int64_t t = Thread();
  if (t < nonzeros) j[t] = (PetscInt)(key[first[t]] & mask);
}

// Row r begins at the first nonzero whose row is at least r
__global__ void find_rows(int64_t rows, int64_t nonzeros, const uint64_t *key, int bits, const int *first, PetscInt *i)
{
  const int64_t r   = Thread();
  int64_t       low = 0, high = nonzeros;
  if (r > rows) return;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if ((int64_t)(key[first[middle]] >> bits) < r)
      low = middle + 1;
    else
      high = middle;
  }
  i[r] = (PetscInt)low;
}

// ------------------------------------------------------------------------------------------------ values

struct Values {
  const Scalar                     *v, *more;
  int64_t                           count; // number of entries of v
  __device__ __forceinline__ Scalar Get(int64_t place) const
  {
    return Read(place < count ? v + place : more + (place - count));
  }
};

// Every nonzero has one entry. Each thread adds several nonzeros, so that their loads are in flight at the same time
__global__ void add_single(int64_t nonzeros, const int *place, Values v, bool insert, Scalar *a)
{
  constexpr int EACH  = Tuning::COO_EACH;
  const int64_t first = (int64_t)blockIdx.x * (BLOCK * EACH) + threadIdx.x;
  int64_t       at[EACH];
  Scalar        sum[EACH];
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int64_t t = first + k * BLOCK;
    at[k]           = t >= nonzeros ? -1 : place ? place[t] : t;
  }
  Issue();
#pragma unroll
  for (int k = 0; k < EACH; k++) sum[k] = at[k] < 0 ? Num::zero() : v.Get(at[k]);
  Issue();
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int64_t t = first + k * BLOCK;
    if (at[k] >= 0) a[t] = insert ? sum[k] : Num::add(a[t], sum[k]);
  }
}

// Nonzeros with several entries: loads in batches that are in flight at the same time, then sums in order. The lanes of
// a warp stay together
__global__ void add_repeated(int64_t nonzeros, const int *first, const int *place, Values v, bool insert, Scalar *a)
{
  constexpr int BATCH = Tuning::COO_BATCH;
  const int64_t t     = Thread();
  const int64_t end   = t < nonzeros ? first[t + 1] : 0;
  Scalar        sum   = Num::zero();
  for (int64_t q = t < nonzeros ? first[t] : 0; __any_sync(ALL, q < end); q += BATCH) {
    int    at[BATCH];
    Scalar value[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) at[b] = q + b >= end ? -1 : place ? place[q + b] : (int)(q + b);
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) value[b] = at[b] < 0 ? Num::zero() : v.Get(at[b]);
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      if (at[b] >= 0) sum = Num::add(sum, value[b]);
    }
  }
  if (t < nonzeros) a[t] = insert ? sum : Num::add(a[t], sum);
}

__global__ void pack(int64_t count, const int64_t *place, const Scalar *v, Scalar *to)
{
  const int64_t k = Thread();
  if (k < count) Write(to + k, Read(v + place[k]));
}

} // namespace
} // namespace spmv

using namespace spmv;

struct _n_SpMVCudaCOO {
  int64_t         nonzeros = 0, count = 0; // count: entries of the first array
  Array<PetscInt> i, j;
  Array<int>      first, place;

  cudaError_t Create(const Indices &of, int row_bits, int col_bits, cudaStream_t stream)
  {
    Scratch<int>    failed(stream); // flags: an index is too large; the keys do not ascend
    Array<uint64_t> key;
    int             has[2];
    SPMV_TRY(failed.AllocZero(2));
    SPMV_TRY(Select(of.count(), Belongs<false>{of, failed}, stream, place));
    SPMV_TRY(Fetch(has, (int *)failed, 1, stream));
    if (has[0]) return cudaErrorInvalidValue;
    const int64_t entries = (int64_t)place.Size();
    SPMV_TRY(key.Alloc(entries));
    SPMV_LAUNCH(entries, BLOCK, stream, write_keys, entries, of, col_bits, place, key);
    SPMV_LAUNCH(entries, BLOCK, stream, check_order, entries, key, (int *)failed + 1);
    SPMV_TRY(Fetch(has, (int *)failed, 2, stream));
    if (has[1])
      SPMV_TRY(SortPairs(key, place, entries, row_bits + col_bits, stream));
    else if (entries == of.count())
      place.Free(); // 0, 1, 2, ...

    SPMV_TRY(Select(entries + 1, IsFirst{key, entries}, stream, first));
    nonzeros = (int64_t)first.Size() - 1;
    SPMV_TRY(j.Alloc(nonzeros));
    SPMV_LAUNCH(nonzeros, BLOCK, stream, write_columns, nonzeros, key, ((uint64_t)1 << col_bits) - 1, first, j);
    SPMV_TRY(i.Alloc(of.a.row[1] - of.a.row[0] + 1));
    SPMV_LAUNCH(of.a.row[1] - of.a.row[0] + 1, BLOCK, stream, find_rows, of.a.row[1] - of.a.row[0], nonzeros, key,
                col_bits, first, i);
    SPMV_TRY(cudaStreamSynchronize(stream));
    if (nonzeros == entries) first.Free();
    return cudaSuccess;
  }
};

cudaError_t SpMVCudaCOOCreate(const SpMVCudaIndices *indices, cudaStream_t stream, SpMVCudaCOO *coo)
{
  const int64_t rows    = indices->row[1] - indices->row[0],
                columns = indices->outside ? indices->N : indices->col[1] - indices->col[0];
  const int row_bits = BitsFor((uint64_t)PetscMax(rows - 1, 0)), col_bits = BitsFor((uint64_t)PetscMax(columns - 1, 0));
  *coo = nullptr;
  if (row_bits + col_bits > 63 || indices->count[0] + indices->count[1] > SPMVCUDA_MAX_SIZE)
    return cudaErrorNotSupported;
  SPMV_TRY(Supported());
  std::unique_ptr<_n_SpMVCudaCOO> map(new (std::nothrow) _n_SpMVCudaCOO);
  if (!map) return cudaErrorMemoryAllocation;
  map->count              = indices->count[0];
  const cudaError_t error = map->Create({*indices}, row_bits, col_bits, stream);
  if (error == cudaSuccess)
    *coo = map.release();
  else
    ForgetErrors();
  return error;
}

cudaError_t SpMVCudaCOODestroy(SpMVCudaCOO *coo)
{
  const cudaError_t error = cudaDeviceSynchronize(); // kernels may still read arrays that are freed
  delete *coo;
  *coo = nullptr;
  return error;
}

PetscInt64 SpMVCudaCOONonzeros(SpMVCudaCOO coo)
{
  return coo->nonzeros;
}

void SpMVCudaCOOPattern(SpMVCudaCOO coo, const PetscInt **i, const PetscInt **j)
{
  *i = coo->i;
  *j = coo->j;
}

void SpMVCudaCOOReleasePattern(SpMVCudaCOO coo)
{
  coo->i.Free();
  coo->j.Free();
}

cudaError_t SpMVCudaCOOAdd(SpMVCudaCOO coo, const PetscScalar *const v[2], PetscBool insert, PetscScalar *a,
                           cudaStream_t stream)
{
  const Values  of       = {(const Scalar *)v[0], (const Scalar *)v[1], coo->count};
  const int64_t nonzeros = coo->nonzeros;
  if (coo->first)
    SPMV_LAUNCH(nonzeros, BLOCK, stream, add_repeated, nonzeros, coo->first, coo->place, of, (bool)insert, (Scalar *)a);
  else
    SPMV_LAUNCH((nonzeros + Tuning::COO_EACH - 1) / Tuning::COO_EACH, BLOCK, stream, add_single, nonzeros, coo->place,
                of, (bool)insert, (Scalar *)a);
  return cudaSuccess;
}

cudaError_t SpMVCudaCOORemote(const SpMVCudaIndices *indices, cudaStream_t stream, PetscInt64 *count,
                              PetscInt64 **place, PetscInt **i, PetscInt **j)
{
  const Indices of = {*indices};
  Scratch<int>  failed(stream);
  Array<int>    remote;
  int           has;
  *place = nullptr;
  *i = *j = nullptr;
  *count  = 0;
  if (of.count() > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;
  SPMV_TRY(failed.AllocZero(1));
  SPMV_TRY(Select(of.count(), Belongs<true>{of, failed}, stream, remote));
  SPMV_TRY(Fetch(&has, (int *)failed, 1, stream));
  if (has) return cudaErrorInvalidValue;
  const size_t total = remote.Size();
  if (!total) return cudaSuccess;
  SPMV_TRY(cudaMalloc((void **)place, total * (sizeof(PetscInt64) + 2 * sizeof(PetscInt))));
  *i     = (PetscInt *)(*place + total);
  *j     = *i + total;
  *count = (PetscInt64)total;
  SPMV_LAUNCH(total, BLOCK, stream, write_remote, total, of, remote, (int64_t *)*place, *i, *j);
  return cudaStreamSynchronize(stream);
}

cudaError_t SpMVCudaCOOPack(PetscInt64 count, const PetscInt64 *place, const PetscScalar *v, PetscScalar *to,
                            cudaStream_t stream)
{
  SPMV_LAUNCH(count, BLOCK, stream, pack, count, (const int64_t *)place, (const Scalar *)v, (Scalar *)to);
  return cudaSuccess;
}
