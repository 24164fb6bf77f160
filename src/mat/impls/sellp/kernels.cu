/*
  SELL-P on the device: what becomes of its parameters there, and the paper's kernel.
*/
#include "../../../core/cuda/device.cuh"

namespace spmv {
namespace {

// ------------------------------------------------------------------------------------------------ the paper's kernel

struct Sliced {
  int            m, b, t, slices;
  const int64_t *offset; // of each slice, in entries
  const int     *col;    // -1: padding
  const Scalar  *value;
};

/*
  Figure 2 of the paper: b x t threads a slice, the loop unrolled by two, fan-in through shared memory, a 2-D grid. Three changes:
  any t (a power of two), barriers that all threads reach (Figure 2 has them in branches, which GPUs since Volta do not allow), and
  padding that reads no x, which must not turn an Inf or NaN there into one of a row without that column.
*/
__global__ void sellp_paper(Sliced s, Scalar alpha, const Scalar *__restrict__ x, bool read, Scalar beta, bool conjugate, Scalar *y)
{
  Scalar   *shared = (Scalar *)spmv_shared;
  const int idx    = threadIdx.x;                         // local row
  const int idy    = threadIdx.y;                         // thread in row
  const int ldx    = idy * s.b + idx;                     // first element to be accessed
  const int bdx    = blockIdx.y * gridDim.x + blockIdx.x; // slice
  const int block  = s.b * s.t;
  const int row    = bdx < s.slices ? bdx * s.b + idx : s.m; // the grid may hold more blocks than slices
  Scalar    dot    = Num::zero();

  if (row < s.m) {
    const int64_t offset = s.offset[bdx];
    const int     max_   = (int)((s.offset[bdx + 1] - offset) / block);
    const int    *colind = s.col + offset + ldx;
    const Scalar *values = s.value + offset + ldx;
    int           kk;
    for (kk = 0; kk < max_ - 1; kk += 2) {
      const int    i1 = colind[(int64_t)block * kk], i2 = colind[(int64_t)block * kk + block];
      const Scalar x1 = i1 < 0 ? Num::zero() : x[i1], x2 = i2 < 0 ? Num::zero() : x[i2];
      const Scalar v1 = values[(int64_t)block * kk], v2 = values[(int64_t)block * kk + block];
      dot = Num::fma(conjugate ? Num::conj(v1) : v1, x1, dot);
      dot = Num::fma(conjugate ? Num::conj(v2) : v2, x2, dot);
    }
    if (kk < max_) {
      const int    i1 = colind[(int64_t)block * kk];
      const Scalar x1 = i1 < 0 ? Num::zero() : x[i1], v1 = values[(int64_t)block * kk];
      dot = Num::fma(conjugate ? Num::conj(v1) : v1, x1, dot);
    }
  }
  shared[ldx] = dot;
  __syncthreads();
  for (int half = s.t / 2; half; half /= 2) {
    if (idy < half) shared[ldx] = Num::add(shared[ldx], shared[ldx + s.b * half]);
    __syncthreads();
  }
  if (idy == 0 && row < s.m) y[row] = Num::fma(alpha, shared[ldx], read ? Num::fma(beta, y[row], Num::zero()) : Num::zero());
}

template <class I> __global__ void widths(View<I> v, int b, int t, int slices, int64_t *size)
{
  const int s = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (s > slices) return;
  int w = 0;
  for (int r = s * b; s < slices && r < min(v.units, (s + 1) * b); r++) w = max(w, v.len(r));
  size[s] = (int64_t)((w + t - 1) / t) * t * b;
}

// Threads as in the product. With a: values, else columns
template <class I> __global__ void sellp_write(View<I> v, Sliced s, const int *from, const Scalar *a, int *col, Scalar *value)
{
  const int     bdx = blockIdx.x, row = bdx * s.b + threadIdx.x;
  const int64_t start = row < v.units ? v.start(row) : 0;
  const int     len   = row < v.units ? v.len(row) : 0;
  int64_t       at    = s.offset[bdx] + threadIdx.y * s.b + threadIdx.x;
  for (int64_t q = threadIdx.y; at < s.offset[bdx + 1]; q += s.t, at += s.b * s.t) {
    if (a)
      value[at] = q < len ? a[from ? from[start + q] : start + q] : Num::zero();
    else
      col[at] = q < len ? v.col(start, (int)q) : -1;
  }
}

struct Paper : _n_SpMVCudaBlock {
  Sliced         s = {};
  Array<int64_t> offset;
  Array<int>     col;
  Array<Scalar>  value;

  template <class V> cudaError_t Write(V v, const Scalar *a, cudaStream_t stream)
  {
    if (!s.slices) return cudaSuccess;
    sellp_write<<<s.slices, dim3(s.b, s.t), 0, stream>>>(v, s, from, a, col, value);
    return cudaPeekAtLastError();
  }

  cudaError_t Create(const SpMVCudaCSR &csr, int b, int t, cudaStream_t stream)
  {
    int64_t total;
    s = {(int)csr.m, b, t, (int)((csr.m + b - 1) / b), nullptr, nullptr, nullptr};
    SPMV_TRY(offset.Alloc((size_t)s.slices + 1));
    return WithView(csr, 1, [&](auto v) {
      SPMV_LAUNCH(s.slices + 1, 256, stream, widths, v, b, t, s.slices, offset);
      SPMV_TRY(ExclusiveSum(offset, (int64_t)s.slices + 1, stream));
      SPMV_TRY(Fetch(&total, (int64_t *)offset + s.slices, 1, stream));
      SPMV_TRY(col.Alloc(total));
      SPMV_TRY(value.Alloc(total));
      s.offset = offset;
      s.col    = col;
      s.value  = value;
      return Write(v, nullptr, stream);
    });
  }

  cudaError_t Fill(const SpMVCudaCSR &csr, cudaStream_t stream) override
  {
    return WithView(csr, 1, [&](auto v) { return Write(v, (const Scalar *)csr.a, stream); });
  }

  cudaError_t Product(Scalar alpha, const Scalar *x, bool read, Scalar beta, bool conjugate, Scalar *y, cudaStream_t stream)
  {
    if (!s.slices) return cudaSuccess;
    unsigned side = 1;
    while ((int64_t)side * side < s.slices) side++;
    sellp_paper<<<dim3(side, (s.slices + side - 1) / side), dim3(s.b, s.t), (size_t)s.b * s.t * sizeof(Scalar), stream>>>(s, alpha, x, read, beta, conjugate,
                                                                                                                          y);
    return cudaPeekAtLastError();
  }

  cudaError_t Mult(bool conjugate, const Scalar *x, const Scalar *z, Scalar *y, cudaStream_t stream) override
  {
    Scalar one             = Num::zero();
    ((PetscReal *)&one)[0] = 1;
    if (z && z != y) SPMV_TRY(cudaMemcpyAsync(y, z, (size_t)m * sizeof(Scalar), cudaMemcpyDeviceToDevice, stream));
    return Product(one, x, z != nullptr, one, conjugate, y, stream);
  }

  cudaError_t Scaled(Scalar alpha, const Scalar *x, Scalar beta, Scalar *y, cudaStream_t stream) override
  {
    const Scalar zero = Num::zero();
    return Product(alpha, x, memcmp(&beta, &zero, sizeof(zero)) != 0, beta, false, y, stream);
  }

  void Stats(SpMVStats *o) const override
  {
    o->stored = (PetscInt64)(value.Bytes() / sizeof(Scalar));
    o->slices = s.slices;
    o->bytes  = offset.Bytes() + col.Bytes() + value.Bytes();
    o->node   = 1;
    o->kernel = "CUDA SELL-P, the paper's kernel";
  }

  cudaError_t Visit(SpMVVisitor entry, void *ctx) const override
  {
    std::vector<int64_t> o;
    std::vector<int>     c;
    std::vector<Scalar>  v;
    SPMV_TRY(offset.Read(o));
    SPMV_TRY(col.Read(c));
    SPMV_TRY(value.Read(v));
    for (int k = 0; k < s.slices; k++) {
      for (int64_t q = o[k]; q < o[k + 1]; q++) {
        PetscScalar a;
        memcpy(&a, &v[q], sizeof(a));
        if (c[q] >= 0) entry(ctx, (PetscInt)k * s.b + (PetscInt)((q - o[k]) % s.b), c[q], a);
      }
    }
    return cudaSuccess;
  }
};

int PowerOfTwo(PetscInt a, int most)
{
  int p = 1;
  while (2 * p <= a && 2 * p <= most) p *= 2;
  return p;
}

} // namespace
} // namespace spmv

cudaError_t SpMVCudaSELLPSetUp(const SpMVCudaCSR *csr, const SELLPParams *p, SpMVCudaKernel kernel, PetscBool transpose, cudaStream_t stream,
                               SpMVCudaBlock *block)
{
  using namespace spmv;
  return SetUp(csr, (bool)transpose, stream, block, [&](const SpMVCudaCSR &A, _n_SpMVCudaBlock **b) {
    if (kernel == SPMVCUDA_KERNEL_PAPER) {
      Paper    *s = new (std::nothrow) Paper;
      const int t = p->t ? PowerOfTwo(p->t, 128) : 8;
      *b          = s;
      return s ? s->Create(A, (int)(p->b ? PetscMin(p->b, 1024 / t) : 8), t, stream) : cudaErrorMemoryAllocation;
    }
    // A slice is a warp's work here, so of b and t only t is left to choose
    Choice c;
    c.node      = (int)p->node;
    c.diagonals = p->compress && kernel == SPMVCUDA_KERNEL_AUTO && !p->t && p->sigma <= 1;
    c.entries   = "CUDA SELL-P slices";
    c.nodes     = "CUDA SELL-P slices of node blocks";
    c.rules     = [p, &A](const Survey &s, int bs, int64_t entries) {
      SliceRules r;
      r.narrow  = p->compress != 0;
      r.threads = p->t ? PowerOfTwo(p->t, WARP) : 0;
      // Sorting costs a list of rows and the locality of y: only where it saves more
      if (p->sigma)
        r.sigma = (int)PetscMin(p->sigma, (PetscInt)INT_MAX);
      else if (s.natural <= (unsigned long long)(entries + entries / 20))
        r.sigma = 1;
      else
        r.sigma = s.local() || entries >= 16 * (A.m / bs) ? 1024 : 4096; // short rows anywhere: nothing to lose
      return r;
    };
    return Choose(A, c, stream, b);
  });
}
