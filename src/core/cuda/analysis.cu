/*
  The statistics that choose a layout, and the sorts and scans that layouts are made with.
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

template <class V> static cudaError_t Sort(Array<uint64_t> &key, Array<V> &value, int64_t count, int bits, cudaStream_t stream)
{
  size_t            bytes = 0;
  Scratch<char>     scratch(stream);
  Scratch<uint64_t> key2(stream);
  Scratch<V>        value2(stream);
  ForgetErrors();
  SPMV_TRY(key2.Alloc(count));
  SPMV_TRY(value2.Alloc(count));
  cub::DoubleBuffer<uint64_t> k(key, key2);
  cub::DoubleBuffer<V>        v(value, value2);
  SPMV_TRY(cub::DeviceRadixSort::SortPairs(nullptr, bytes, k, v, count, 0, bits, stream));
  SPMV_TRY(scratch.Alloc(bytes));
  SPMV_TRY(cub::DeviceRadixSort::SortPairs(scratch, bytes, k, v, count, 0, bits, stream));
  if (k.Current() != (uint64_t *)key) key.Swap(key2);
  if (v.Current() != (V *)value) value.Swap(value2);
  return cudaSuccess;
}

cudaError_t SortPairs(Array<uint64_t> &key, Array<int> &value, int64_t count, int bits, cudaStream_t stream)
{
  return Sort(key, value, count, bits, stream);
}

cudaError_t SortPairs(Array<uint64_t> &key, Array<int64_t> &value, int64_t count, int bits, cudaStream_t stream)
{
  return Sort(key, value, count, bits, stream);
}

// ------------------------------------------------------------------------------------------------ survey

template <class I> __global__ void survey(View<I> v, double slope, Survey *out)
{
  const int         u      = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  const int         length = u < v.units ? v.len(u) : 0, longest = __reduce_max_sync(ALL, length);
  const int         empty  = __popc(__ballot_sync(ALL, u < v.units && !length));
  const unsigned    bulk   = __reduce_add_sync(ALL, (unsigned)(length > Tuning::LONG ? min(length, 1 << 26) : 0));
  unsigned          looked = 0, near = 0;
  __shared__ Survey total;
  for (int q = 0; q < length; q += length / 4 + 1) {
    looked++;
    near += fabs(v.col(v.start(u), q) - u * slope) <= Tuning::NEAR;
  }
  looked = __reduce_add_sync(ALL, looked);
  near   = __reduce_add_sync(ALL, near);
  if (threadIdx.x == 0) total = Survey{0, 0, 0, 0, 0, 0};
  __syncthreads();
  if (threadIdx.x % WARP == 0) {
    atomicAdd(&total.natural, (unsigned long long)longest * WARP);
    atomicAdd(&total.bulk, (unsigned long long)bulk);
    atomicMax(&total.longest, longest);
    atomicAdd(&total.empty, empty);
    atomicAdd(&total.looked, looked);
    atomicAdd(&total.near, near);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&out->natural, total.natural);
    atomicAdd(&out->bulk, total.bulk);
    atomicMax(&out->longest, total.longest);
    atomicAdd(&out->empty, total.empty);
    atomicAdd(&out->looked, total.looked / 4); // four a unit at most: fits
    atomicAdd(&out->near, total.near / 4);
  }
}

cudaError_t LoadAnalysis()
{
  return Load((const void *)survey<PetscInt>);
}

cudaError_t Supported()
{
  int major;
  SPMV_TRY(DeviceHas(cudaDevAttrComputeCapabilityMajor, &major));
  const cudaError_t error = major < 8 ? cudaErrorNoKernelImageForDevice : Load((const void *)survey<int>);
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction && error != cudaErrorUnsupportedPtxVersion) return error;
  ForgetErrors();
  return cudaErrorNotSupported;
}

cudaError_t TakeSurvey(const SpMVCudaCSR &csr, int bs, cudaStream_t stream, Survey *host)
{
  Scratch<Survey> s(stream);
  SPMV_TRY(s.Alloc(1));
  SPMV_TRY(s.Zero(stream));
  SPMV_TRY(WithView(csr, bs, [&](auto v) {
    SPMV_LAUNCH(v.units, 256, stream, survey, v, csr.m ? (double)csr.n / (double)csr.m : 0.0, s);
    return cudaSuccess;
  }));
  return Fetch(host, (Survey *)s, 1, stream);
}

// ------------------------------------------------------------------------------------------------ node blocks

// A warp checks bs rows at a time. Most matrices fail at once, and then no other warp reads columns
template <class I> __device__ bool check_rows(const View<I> &v, int u)
{
  const int     lane = threadIdx.x % WARP, s = v.bs;
  const int64_t first = v.start(u), length = v.i[(int64_t)u * s + 1] - first;
  bool          ok = length % s == 0;
  for (int e = 1; e < s && ok; e++) ok = v.i[(int64_t)u * s + e + 1] - v.i[(int64_t)u * s + e] == length;
  for (int64_t q = lane; q < length && ok; q += WARP) {
    const int64_t c = (int64_t)v.j[first + q - q % s] + q % s;
    ok              = (c - q % s) % s == 0;
    for (int e = 0; e < s && ok; e++) ok = v.j[first + e * length + q] == c;
  }
  return ok;
}

template <class I> __global__ void check_node(View<I> v, int *failed)
{
  const int64_t warps = (int64_t)gridDim.x * (blockDim.x / WARP);
  for (int64_t u = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP; u < v.units && !IsRaised(failed); u += warps) {
    if (!check_rows(v, (int)u)) Raise(failed);
  }
}

cudaError_t FindNodeSize(const SpMVCudaCSR &csr, int limit, cudaStream_t stream, int *size)
{
  Scratch<int> failed(stream);
  int          host[MAX_NODE + 1];
  *size = 1;
  if (!csr.nnz || limit < 2) return cudaSuccess;
  SPMV_TRY(failed.Alloc(MAX_NODE + 1));
  SPMV_TRY(failed.Zero(stream));
  int processors;
  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
  const int64_t most     = (int64_t)processors * Tuning::CHECK_THREADS;
  auto          possible = [&](int s) { return csr.m % s == 0 && csr.n % s == 0 && csr.nnz % (s * s) == 0; };
  for (int s = 2; s <= limit; s++) {
    if (!possible(s)) continue;
    SPMV_TRY(WithView(csr, s, [&](auto v) {
      SPMV_LAUNCH(PetscMin((int64_t)v.units * WARP, most), 256, stream, check_node, v, (int *)failed + s);
      return cudaSuccess;
    }));
  }
  SPMV_TRY(Fetch(host, (int *)failed, MAX_NODE + 1, stream));
  for (int s = 2; s <= limit; s++) {
    if (possible(s) && !host[s]) *size = s;
  }
  return cudaSuccess;
}

// ------------------------------------------------------------------------------------------------ some rows

template <class I> __global__ void row_lengths(View<I> v, int count, const int *row, int64_t *length)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (r <= count) length[r] = r < count ? (int64_t)(v.i[row[r] + 1] - v.i[row[r]]) : 0;
}

// start: prefix sums
template <class I> __global__ void copy_rows(View<I> v, int count, const int *row, const int64_t *start, int *it, int *jt, int *value_index)
{
  const int r = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (r > count) return;
  if (lane == 0) it[r] = (int)start[r];
  if (r == count) return;
  const int64_t first = v.i[row[r]];
  for (int64_t q = lane; q < start[r + 1] - start[r]; q += WARP) {
    jt[start[r] + q]          = (int)v.j[first + q];
    value_index[start[r] + q] = (int)(first + q);
  }
}

cudaError_t SelectRows(const SpMVCudaCSR &csr, const Array<int> &row, int count, cudaStream_t stream, Array<int> &it, Array<int> &jt, Array<int> &value_index)
{
  Scratch<int64_t> start(stream);
  int64_t          nnz;
  SPMV_TRY(start.Alloc((size_t)count + 1));
  SPMV_TRY(WithView(csr, 1, [&](auto v) {
    SPMV_LAUNCH((int64_t)count + 1, 256, stream, row_lengths, v, count, row, start);
    return cudaSuccess;
  }));
  SPMV_TRY(ExclusiveSum(start, (int64_t)count + 1, stream));
  SPMV_TRY(Fetch(&nnz, (int64_t *)start + count, 1, stream));
  SPMV_TRY(it.Alloc((size_t)count + 1, stream));
  SPMV_TRY(jt.Alloc(nnz, stream));
  SPMV_TRY(value_index.Alloc(nnz, stream));
  SPMV_TRY(WithView(csr, 1, [&](auto v) {
    SPMV_LAUNCH(((int64_t)count + 1) * WARP, 256, stream, copy_rows, v, count, row, start, it, jt, value_index);
    return cudaSuccess;
  }));
  return cudaStreamSynchronize(stream);
}

// ------------------------------------------------------------------------------------------------ transpose

template <class I> __global__ void list_entries(View<I> v, uint64_t *key, int *position, int *row)
{
  const int u = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (u >= v.units) return;
  for (int64_t q = v.i[u] + lane; q < v.i[u + 1]; q += WARP) {
    key[q]      = (uint64_t)v.j[q];
    position[q] = (int)q;
    row[q]      = u;
  }
}

// Row offsets of the sorted entries: entry q begins all rows after the previous entry's, up to its own
static __global__ void offsets_of(int64_t nnz, int rows, const uint64_t *key, const int *position, const int *row, int *it, int *jt)
{
  const int64_t q = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (q > nnz) return;
  const int before = q ? (int)key[q - 1] : -1, own = q < nnz ? (int)key[q] : rows;
  for (int r = before + 1; r <= own; r++) it[r] = (int)q;
  if (q < nnz) jt[q] = row[position[q]];
}

cudaError_t TransposeCSR(const SpMVCudaCSR &csr, cudaStream_t stream, Array<int> &it, Array<int> &jt, Array<int> &value_index)
{
  Scratch<uint64_t> key(stream);
  Scratch<int>      row(stream);
  SPMV_TRY(key.Alloc(csr.nnz));
  SPMV_TRY(row.Alloc(csr.nnz));
  SPMV_TRY(value_index.Alloc(csr.nnz, stream));
  SPMV_TRY(jt.Alloc(csr.nnz, stream));
  SPMV_TRY(it.Alloc(csr.n + 1, stream));
  SPMV_TRY(WithView(csr, 1, [&](auto v) {
    SPMV_LAUNCH((int64_t)v.units * WARP, 256, stream, list_entries, v, key, value_index, row);
    return cudaSuccess;
  }));
  // Stable, so that the rows of A ascend within each row of A^T
  if (csr.nnz) SPMV_TRY(SortPairs(key, value_index, csr.nnz, BitsFor(csr.n), stream));
  SPMV_LAUNCH(csr.nnz + 1, 256, stream, offsets_of, csr.nnz, (int)csr.n, key, value_index, row, it, jt);
  return cudaStreamSynchronize(stream);
}

} // namespace spmv
