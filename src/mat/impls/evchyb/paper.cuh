/*
  EVC-HYB's kernels as printed in the paper. The multiplication and the load of x are template parameters, so that the
  paper's experiments, which hold an operand constant, use the same kernels.
*/
#pragma once

#include "core/cuda/stores.cuh"
#include "evchyb.h"

namespace spmv {

// Table 1 of the paper
struct SubELL {
  const int64_t *bnz;    // first entry of each row block
  const int     *clen;   // length of each row block
  const int     *rmark;  // first row of each row block
  const int     *gbmark; // first GPU block of each row block
  const int     *j;      // -1: padding
  const Scalar  *as;
  int            np, gpublks;
};
struct SubCSR {
  const int64_t *i;
  const int     *rmark, *gbmark; // for each range of rows with the same number of threads per row
  const int     *j;
  const Scalar  *as;
  int            np, gpublks;
};

// The arithmetic of the matrix product
struct EVCHYBMultiply {
  static __device__ __forceinline__ Scalar fma(Scalar a, Scalar x, Scalar d)
  {
    return Num::fma(a, x, d);
  }
  static __device__ __forceinline__ Scalar load(int col, const Scalar *__restrict__ x)
  {
    return col < 0 ? Num::zero() : Num::keep(x + col); // 0 times Inf would spoil a row that has no such column
  }
};

template <class Arithmetic>
__device__ Scalar Term(Scalar v, int j, const Scalar *__restrict__ x, SpMVCudaForm form, Scalar sum)
{
  return Arithmetic::fma(Conjugated(form, v), Arithmetic::load(j, x), sum);
}

/*
  Both listings search for the range that this GPU block belongs to. In the listings each thread checks one range, so
  they need as many threads as ranges. Here each thread may check several ranges, because a thread block may have fewer
  threads.
*/
inline __device__ int find_range(const int *gbmark, int np, int bid)
{
  __shared__ int ib;
  for (int p = threadIdx.x; p < np; p += blockDim.x) {
    if (bid >= gbmark[p] && bid < gbmark[p + 1]) ib = p;
  }
  __syncthreads();
  return ib;
}

// Listing 1
template <class Arithmetic>
__device__ void SpMV_ELL_adaptive(const SubELL &ell, SpMVCudaForm form, const Scalar *__restrict__ x, const Scalar *z,
                                  Scalar *y)
{
  const int tid = threadIdx.x, bid = blockIdx.x, bDim = blockDim.x;
  const int ib = find_range(ell.gbmark, ell.np, bid);
  // the last row and a stride fit into 32 bits, but not into 31
  const unsigned NROWB   = ell.rmark[ib + 1] - ell.rmark[ib];
  const unsigned rstride = bDim * (ell.gbmark[ib + 1] - ell.gbmark[ib]);
  const int64_t  vlen    = (int64_t)ell.clen[ib] * NROWB;
  const int      first   = ell.rmark[ib];
  const Scalar  *vb      = ell.as + ell.bnz[ib];
  const int     *idxb    = ell.j + ell.bnz[ib];

  for (unsigned row = bDim * (bid - ell.gbmark[ib]) + tid; row < NROWB; row += rstride) {
    const Scalar *v1   = vb + row;
    const int    *idx1 = idxb + row;
    Scalar        sum1 = Num::zero();
    for (int64_t j = 0; j < vlen; j += NROWB) sum1 = Term<Arithmetic>(v1[j], idx1[j], x, form, sum1);
    y[first + row] = Result(form, z, first + row, sum1);
  }
}

// Listing 2. Its barriers are in a loop that threads leave at different times; here the whole thread block stays in the
// loop until its last row
template <class Arithmetic>
__device__ void SpMV_CSR_adaptiveTPR(const SubCSR &csr, SpMVCudaForm form, const Scalar *__restrict__ x,
                                     const Scalar *z, Scalar *y, int isplit, int EC_BOUNDARY)
{
  Scalar        *sd1 = (Scalar *)spmv_shared;
  const int      tid = threadIdx.x, bid = blockIdx.x - EC_BOUNDARY, bDim = blockDim.x;
  const int      ib    = find_range(csr.gbmark, csr.np, bid);
  const int      TPR   = bDim >> (csr.np - 1 - ib);
  const unsigned NROWB = csr.rmark[ib + 1] - csr.rmark[ib];
  // dividing first avoids the number of threads, which may be more than 2^31
  const unsigned rstride     = bDim / TPR * (csr.gbmark[ib + 1] - csr.gbmark[ib]);
  const int      irc         = csr.rmark[ib];
  const int64_t  ivstart     = csr.i[irc];
  const int64_t *iib         = csr.i + irc;
  const int     *idxb        = csr.j + ivstart;
  const Scalar  *vb          = csr.as + ivstart;
  const int64_t  first       = (int64_t)isplit + irc;
  const unsigned row_id      = bDim / TPR * (bid - csr.gbmark[ib]) + tid / TPR;
  const int      thread_lane = tid % TPR;

  for (unsigned row = row_id; row - tid / TPR < NROWB; row += rstride) {
    Scalar sum = Num::zero();
    if (row < NROWB) {
      const int64_t n = iib[row] - iib[0], len = iib[row + 1] - iib[row];
      for (int64_t j = thread_lane; j < len; j += TPR) sum = Term<Arithmetic>(vb[n + j], idxb[n + j], x, form, sum);
    }
    sd1[tid] = sum;
    __syncthreads();
    for (int i = TPR >> 1; i > 0; i >>= 1) {
      if (thread_lane < i) sd1[tid] = Num::add(sd1[tid], sd1[tid + i]);
      __syncthreads();
    }
    if (thread_lane == 0 && row < NROWB) y[first + row] = Result(form, z, first + row, sd1[tid]);
    __syncthreads();
  }
}

// Algorithm 1: one launch
template <class Arithmetic>
__global__ void SpMV_EVCHYB_adaptive(SubELL ell, SubCSR csr, SpMVCudaForm form, const Scalar *__restrict__ x,
                                     const Scalar *z, Scalar *y, int isplit)
{
  if ((int)blockIdx.x < ell.gpublks)
    SpMV_ELL_adaptive<Arithmetic>(ell, form, x, z, y);
  else
    SpMV_CSR_adaptiveTPR<Arithmetic>(csr, form, x, z, y, isplit, ell.gpublks);
}

// The layout, which does not depend on the arithmetic
struct EVCHYBPaperLayout : _n_SpMVCudaStore {
  SubELL ell    = {};
  SubCSR csr    = {};
  int    isplit = 0, threads = 0;
  // rows are not stored in their natural order; y is to be in natural order, as always but in a benchmark
  bool           sorted = false, permute = true;
  Array<int64_t> bnz, csr_i;
  Array<int>     clen, rmark, gbmark, csr_rmark, csr_gbmark, j, csr_j, order;
  Array<Scalar>  as, csr_as, y_sorted;

  // adaptive: there is no ELL part; this is the adaptive CSR kernel that preceded the format
  cudaError_t Create(const SpMVCudaCSR &, const EVCHYBParams &, bool adaptive, cudaStream_t);
  cudaError_t Fill(const SpMVCudaCSR &, cudaStream_t) override;
  cudaError_t Reorder(const Product &, cudaStream_t); // computes y from y_sorted
  void        Stats(SpMVStats *) const override;
};

template <class Arithmetic> struct EVCHYBPaper : EVCHYBPaperLayout {
  cudaError_t Multiply(const Product &p, cudaStream_t stream) override
  {
    const bool     after = sorted && permute;
    const unsigned grid  = (unsigned)(ell.gpublks + csr.gpublks);
    if (!grid) return cudaSuccess;
    ForgetErrors();
    SpMV_EVCHYB_adaptive<Arithmetic><<<grid, threads, threads * sizeof(Scalar), stream>>>(
        ell, csr, p.form, p.v.x, after ? nullptr : p.v.z, after ? (Scalar *)y_sorted : p.v.y, isplit);
    SPMV_TRY(cudaGetLastError());
    return after ? Reorder(p, stream) : cudaSuccess;
  }
};

template <class Arithmetic>
cudaError_t EVCHYBPaperCreateWith(const SpMVCudaCSR &csr, const EVCHYBParams &p, bool adaptive, cudaStream_t stream,
                                  _n_SpMVCudaStore **store)
{
  auto *s = new (std::nothrow) EVCHYBPaper<Arithmetic>;
  *store  = s;
  return s ? s->Create(csr, p, adaptive, stream) : cudaErrorMemoryAllocation;
}
// The layout with EVCHYBMultiply
cudaError_t EVCHYBPaperCreate(const SpMVCudaCSR &, const EVCHYBParams &, bool adaptive, cudaStream_t,
                              _n_SpMVCudaStore **);

} // namespace spmv
