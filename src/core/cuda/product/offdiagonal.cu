/*
  The off-diagonal block in the form in which the diagonal block's product adds it: see Offdiagonal in offdiagonal.cuh.
  It is for off-diagonal blocks with few and short rows, such as those of a subdomain's faces. A separate product would
  begin after the diagonal block's product, and its launch would take longer than its work.
*/
#include "core/cuda/stores.cuh"
#include "partsums.cuh"

namespace spmv {
namespace {

struct Extent {
  unsigned long long rows; // number of rows with entries
  int                longest;
};

// The flag of each slice of 32 units of bs rows: 1 if the slice has entries
template <class I> __global__ void flag_slices(View<I> v, int slices, int rows, int64_t *flag)
{
  const int s = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (s <= slices) flag[s] = s < slices && v.i[min((int64_t)v.units, (s + 1) * (int64_t)rows)] > v.i[s * (int64_t)rows];
}

template <class I> __global__ void measure_rows(View<I> v, Extent *extent)
{
  const int r   = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  const int len = r < v.units ? v.len(r) : 0;
  if (!__syncthreads_or(len)) return;
  const int most = __reduce_max_sync(ALL, len), count = __popc(__ballot_sync(ALL, len > 0));
  if (threadIdx.x % WARP || !count) return;
  atomicAdd(&extent->rows, (unsigned long long)count);
  atomicMax(&extent->longest, most);
}

// sum: prefix sums of the flags. Slices that are left out have no entries, so each row ends where the next stored row
// begins
template <class I>
__global__ void write_starts(View<I> v, int slices, int rows, const int64_t *sum, int *slot, int *start)
{
  const int64_t t = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, s = t / rows;
  if (s >= slices) return;
  const bool kept = sum[s + 1] > sum[s];
  if (t % rows == 0) slot[s] = kept ? (int)sum[s] : -1;
  if (kept) start[sum[s] * rows + t % rows] = (int)v.i[min((int64_t)v.units, t)];
  if (t == 0) start[sum[slices] * rows] = (int)v.i[v.units];
}

template <class I> __global__ void narrow(int64_t count, const I *wide, int *to)
{
  const int64_t t = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (t < count) to[t] = (int)wide[t];
}

__global__ void round(int64_t count, Scalar *value)
{
  const int64_t t = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (t < count) value[t] = Convert<Scalar>(Convert<Single>(value[t]));
}

} // namespace

cudaError_t OffdiagonalRows::Create(const SpMVCudaCSR &csr, int bs, PetscInt64 most, cudaStream_t stream)
{
  const int        rows = WARP * bs, slices = (int)((csr.m + rows - 1) / rows);
  Scratch<int64_t> sum(stream);
  Scratch<Extent>  extent(stream);
  Extent           found;
  int64_t          kept;
  if (csr.nnz > SPMVCUDA_MAX_SIZE || csr.n > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;
  SPMV_TRY(extent.AllocZero(1));
  SPMV_TRY(sum.Alloc((size_t)slices + 1));
  return WithView(csr, 1, [&](auto v) {
    SPMV_LAUNCH(csr.m, 256, stream, measure_rows, v, extent);
    SPMV_TRY(Fetch(&found, (Extent *)extent, 1, stream));
    if ((PetscInt64)found.rows > most || found.longest > Tuning::OFFDIAGONAL_MOST) return cudaErrorNotSupported;
    SPMV_LAUNCH((int64_t)slices + 1, 256, stream, flag_slices, v, slices, rows, sum);
    SPMV_TRY(ExclusiveSum(sum, (int64_t)slices + 1, stream));
    SPMV_TRY(Fetch(&kept, (int64_t *)sum + slices, 1, stream));
    SPMV_TRY(slot.Alloc(slices, stream));
    SPMV_TRY(start.Alloc((size_t)kept * rows + 1, stream));
    SPMV_TRY(col.Alloc(csr.nnz, stream));
    SPMV_TRY(value.Alloc(csr.nnz, stream));
    SPMV_TRY(sums.Alloc((size_t)kept * rows, stream));
    SPMV_TRY(Vacate(sums, stream));
    SPMV_LAUNCH((int64_t)slices * rows, 256, stream, write_starts, v, slices, rows, sum, slot, start);
    SPMV_LAUNCH(csr.nnz, 256, stream, narrow, csr.nnz, v.j, col);
    return cudaStreamSynchronize(stream); // the scratch arrays go out of scope
  });
}

cudaError_t OffdiagonalRows::Fill(const SpMVCudaCSR &csr, bool single, cudaStream_t stream)
{
  SPMV_TRY(cudaMemcpyAsync(value, csr.a, value.Bytes(), cudaMemcpyDeviceToDevice, stream));
  if (single) SPMV_LAUNCH(csr.nnz, 256, stream, round, csr.nnz, value);
  return cudaSuccess;
}

} // namespace spmv
