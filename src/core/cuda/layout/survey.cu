/*
  The statistics from which a layout is chosen.
*/
#include "core/cuda/layout/view.cuh"

namespace spmv {

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
    atomicAdd(&out->looked, total.looked / 4); // at most four per unit, so that the sum fits
    atomicAdd(&out->near, total.near / 4);
  }
}

cudaError_t Supported()
{
  int major;
  SPMV_TRY(DeviceHas(cudaDevAttrComputeCapabilityMajor, &major));
  const cudaError_t error = major < 8 ? cudaErrorNoKernelImageForDevice : Load((const void *)survey<int>);
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction &&
      error != cudaErrorUnsupportedPtxVersion)
    return error;
  ForgetErrors();
  return cudaErrorNotSupported;
}

// out: zeros
static cudaError_t StartSurvey(const SpMVCudaCSR &csr, const Nodes &nodes, Survey *out, cudaStream_t stream)
{
  SPMV_LAUNCH_VIEW(csr, nodes, v.units, 256, stream, survey, v, csr.m ? (double)csr.n / (double)csr.m : 0.0, out);
  return cudaSuccess;
}

cudaError_t TakeSurvey(const SpMVCudaCSR &csr, const Nodes &nodes, cudaStream_t stream, Survey *host)
{
  Scratch<Survey> s(stream);
  SPMV_TRY(s.AllocZero(1));
  SPMV_TRY(StartSurvey(csr, nodes, s, stream));
  return Fetch(host, (Survey *)s, 1, stream);
}

cudaError_t Find(const SpMVCudaCSR &csr, int node, cudaStream_t stream, Findings *host)
{
  Scratch<Findings> found(stream);
  SPMV_TRY(found.AllocZero(1));
  Findings *out = found;
  SPMV_TRY(StartSurvey(csr, 1, &out->survey, stream));
  if (node != 1) {
    SPMV_TRY(StartChecks(csr, node, out->broken, stream));
    SPMV_TRY(SampleUnits(csr, node, out->units, stream));
  }
  if (!node && csr.m > 1) SPMV_TRY(SampleRows(csr, &out->rows, stream));
  return Fetch(host, out, 1, stream);
}

} // namespace spmv
