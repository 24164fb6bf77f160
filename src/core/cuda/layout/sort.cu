/*
  The sorts and scans that set-up uses, and the transposed pattern.
*/
#include "view.cuh"
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace spmv {

cudaError_t ExclusiveSum(Array<int64_t> &a, int64_t count, cudaStream_t stream)
{
  size_t        bytes = 0;
  Scratch<char> scratch(stream);
  ForgetErrors();
  SPMV_TRY(cub::DeviceScan::ExclusiveSum(nullptr, bytes, (int64_t *)a, (int64_t *)a, count, stream));
  SPMV_TRY(scratch.Alloc(bytes));
  return cub::DeviceScan::ExclusiveSum(scratch, bytes, (int64_t *)a, (int64_t *)a, count, stream);
}

template <class K, class V>
cudaError_t SortPairs(Array<K> &key, Array<V> &value, int64_t count, int bits, cudaStream_t stream)
{
  size_t        bytes = 0;
  Scratch<char> scratch(stream);
  Scratch<K>    key2(stream);
  Scratch<V>    value2(stream);
  ForgetErrors();
  SPMV_TRY(key2.Alloc(count));
  SPMV_TRY(value2.Alloc(count));
  cub::DoubleBuffer<K> k(key, key2);
  cub::DoubleBuffer<V> v(value, value2);
  SPMV_TRY(cub::DeviceRadixSort::SortPairs(nullptr, bytes, k, v, count, 0, bits, stream));
  SPMV_TRY(scratch.Alloc(bytes));
  SPMV_TRY(cub::DeviceRadixSort::SortPairs(scratch, bytes, k, v, count, 0, bits, stream));
  if (k.Current() != (K *)key) key.Swap(key2);
  if (v.Current() != (V *)value) value.Swap(value2);
  return cudaSuccess;
}

template cudaError_t SortPairs(Array<uint64_t> &, Array<int> &, int64_t, int, cudaStream_t);

static __global__ void list_flagged(int count, const int64_t *sum, int *list)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (r < count && sum[r + 1] > sum[r]) list[sum[r]] = r;
}

cudaError_t ListFlagged(int count, const int64_t *sum, int *list, cudaStream_t stream)
{
  SPMV_LAUNCH(count, 256, stream, list_flagged, count, sum, list);
  return cudaSuccess;
}

template <class I> __global__ void list_entries(View<I> v, unsigned *key, int *position, int *row)
{
  const int u = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (u >= v.units) return;
  for (int64_t q = v.i[u] + lane; q < v.i[u + 1]; q += WARP) {
    key[q]      = (unsigned)v.j[q];
    position[q] = (int)q;
    row[q]      = u;
  }
}

// Row offsets of the sorted entries: entry q sets the offsets of all rows after the previous entry's row, up to its own
// row
static __global__ void offsets_of(int64_t nnz, int rows, const unsigned *key, const int *position, const int *row,
                                  int *it, int *jt)
{
  const int64_t q = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (q > nnz) return;
  const int before = q ? (int)key[q - 1] : -1, own = q < nnz ? (int)key[q] : rows;
  for (int r = before + 1; r <= own; r++) it[r] = (int)q;
  if (q < nnz) jt[q] = row[position[q]];
}

cudaError_t TransposeCSR(const SpMVCudaCSR &csr, cudaStream_t stream, Array<int> &it, Array<int> &jt,
                         Array<int> &value_index)
{
  Scratch<unsigned> key(stream);
  Scratch<int>      row(stream);
  SPMV_TRY(key.Alloc(csr.nnz));
  SPMV_TRY(row.Alloc(csr.nnz));
  SPMV_TRY(value_index.Alloc(csr.nnz, stream));
  SPMV_TRY(jt.Alloc(csr.nnz, stream));
  SPMV_TRY(it.Alloc(csr.n + 1, stream));
  SPMV_LAUNCH_VIEW(csr, 1, (int64_t)v.units * WARP, 256, stream, list_entries, v, key, value_index, row);
  // The sort is stable, so that the rows of A ascend within each row of A^T
  if (csr.nnz) SPMV_TRY(SortPairs(key, value_index, csr.nnz, BitsFor(csr.n), stream));
  SPMV_LAUNCH(csr.nnz + 1, 256, stream, offsets_of, csr.nnz, (int)csr.n, key, value_index, row, it, jt);
  return cudaSuccess;
}

} // namespace spmv
