/*
  SELL-P's kernel as printed in the paper.
*/
#include "paper.cuh"

namespace spmv {
namespace {

struct Sliced {
  int            m, b, t, slices;
  const int64_t *offset; // offset of each slice, in steps of b x t entries
  const int     *col;    // -1: padding
  const Scalar  *value;
};

constexpr SpMVNames PAPER = SPMV_NAMES("CUDA SELL-P, the paper's kernel");

// Padding has column -1 and reads no x: 0 times Inf would spoil a row that has no such column
__device__ __forceinline__ Scalar Entry(int col, const Scalar *__restrict__ x)
{
  return col < 0 ? Num::zero() : Num::keep(x + col);
}

/*
  Figure 2 of the paper: b x t threads per slice, the loop unrolled by two, reduction through shared memory, a 2-D grid.
  There are five changes:
    - t may be any power of two;
    - all threads reach the barriers (Figure 2 has them in branches, which GPUs since Volta do not allow), and once no
    more than a warp works, only the warp synchronizes;
    - the offsets give the number of steps without a division;
    - padding does not read x;
    - a thread block processes several slices if they are small, because a GPU starts about one thread block per cycle,
      and blocks of 64 threads do not keep it busy at that rate.
*/
__global__ void sellp_paper(Sliced s, SpMVCudaForm form, const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  const int idx   = threadIdx.x;     // local row
  const int idy   = threadIdx.y;     // thread in row
  const int ldx   = idy * s.b + idx; // first element to be accessed
  const int block = s.b * s.t;
  const int bdx   = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.z + threadIdx.z; // slice
  // the grid may hold more blocks than slices
  const int row    = bdx < s.slices ? bdx * s.b + idx : s.m;
  Scalar   *shared = (Scalar *)spmv_shared + threadIdx.z * block;
  Scalar    dot    = Num::zero();

  if (row < s.m) {
    const int64_t offset = __ldg(s.offset + bdx);
    const int     max_   = (int)(__ldg(s.offset + bdx + 1) - offset);
    const int    *colind = s.col + offset * block + ldx;
    const Scalar *values = s.value + offset * block + ldx;
    int           kk;
    for (kk = 0; kk < max_ - 1; kk += 2, colind += 2 * block, values += 2 * block) {
      const int    i1 = __ldcs(colind), i2 = __ldcs(colind + block);
      const Scalar v1 = Stream(values), v2 = Stream(values + block), x1 = Entry(i1, x), x2 = Entry(i2, x);
      dot = Num::fma(Conjugated(form, v1), x1, dot);
      dot = Num::fma(Conjugated(form, v2), x2, dot);
    }
    if (kk < max_) {
      const int    i1 = __ldcs(colind);
      const Scalar v1 = Stream(values);
      dot             = Num::fma(Conjugated(form, v1), Entry(i1, x), dot);
    }
  }
  if (s.t > 1) {
    shared[ldx] = dot;
    __syncthreads();
    for (int half = s.t / 2; half > 1; half /= 2) {
      if (idy < half) shared[ldx] = Num::add(shared[ldx], shared[ldx + s.b * half]);
      if (s.b * half > WARP)
        __syncthreads();
      else
        __syncwarp();
    }
    if (idy == 0) dot = Num::add(shared[ldx], shared[ldx + s.b]);
  }
  if (idy == 0 && row < s.m) y[row] = Result(form, z, row, dot);
}

template <class I> __global__ void widths(View<I> v, int b, int t, int slices, int64_t *size)
{
  const int s = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (s > slices) return;
  int w = 0;
  for (int r = s * b; s < slices && r < min(v.units, (s + 1) * b); r++) w = max(w, v.len(r));
  size[s] = (w + t - 1) / t;
}

// The threads are assigned as in the product. Writes the values if `a` is given, otherwise the columns
template <class I>
__global__ void sellp_write(View<I> v, Sliced s, const int *value_index, const Scalar *a, int *col, Scalar *value)
{
  const int     bdx = blockIdx.x, row = bdx * s.b + threadIdx.x, block = s.b * s.t;
  const int64_t start = row < v.units ? v.start(row) : 0, end = s.offset[bdx + 1] * block;
  const int     len = row < v.units ? v.len(row) : 0;
  int64_t       at  = s.offset[bdx] * block + threadIdx.y * s.b + threadIdx.x;
  for (int64_t q = threadIdx.y; at < end; q += s.t, at += block) {
    if (a)
      value[at] = q < len ? a[value_index ? value_index[start + q] : start + q] : Num::zero();
    else
      col[at] = q < len ? v.col(start, (int)q) : -1;
  }
}

struct Paper : _n_SpMVCudaStore {
  Sliced         s = {};
  Array<int64_t> offset;
  Array<int>     col;
  Array<Scalar>  value;

  template <class V> cudaError_t Write(V v, const Scalar *a, cudaStream_t stream)
  {
    if (!s.slices) return cudaSuccess;
    ForgetErrors();
    sellp_write<<<s.slices, dim3(s.b, s.t), 0, stream>>>(v, s, value_index, a, col, value);
    return cudaGetLastError();
  }

  cudaError_t Create(const SpMVCudaCSR &csr, int b, int t, cudaStream_t stream)
  {
    int64_t rounds;
    names = PAPER;
    s     = {(int)csr.m, b, t, (int)((csr.m + b - 1) / b), nullptr, nullptr, nullptr};
    SPMV_TRY(offset.Alloc((size_t)s.slices + 1));
    return WithView(csr, 1, [&](auto v) {
      SPMV_LAUNCH(s.slices + 1, 256, stream, widths, v, b, t, s.slices, offset);
      SPMV_TRY(ExclusiveSum(offset, (int64_t)s.slices + 1, stream));
      SPMV_TRY(Fetch(&rounds, (int64_t *)offset + s.slices, 1, stream));
      SPMV_TRY(col.Alloc(rounds * b * t));
      SPMV_TRY(value.Alloc(rounds * b * t));
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

  cudaError_t Multiply(const Product &p, cudaStream_t stream) override
  {
    if (!s.slices) return cudaSuccess;
    const int      block = s.b * s.t, several = block % WARP ? 1 : PetscMax(1, 256 / block);
    const unsigned blocks = Blocks(s.slices, several);
    unsigned       side   = 1;
    while ((int64_t)side * side < blocks) side++;
    ForgetErrors();
    sellp_paper<<<dim3(side, Blocks(blocks, side)), dim3(s.b, s.t, several), (size_t)block * several * sizeof(Scalar),
                  stream>>>(s, p.form, p.v.x, p.v.z, p.v.y);
    return cudaGetLastError();
  }

  void Stats(SpMVStats *o) const override
  {
    o->stored = (PetscInt64)(value.Bytes() / sizeof(Scalar));
    o->slices = s.slices;
    o->bytes  = offset.Bytes() + col.Bytes() + value.Bytes();
    o->node   = 1;
  }
};

} // namespace

cudaError_t SELLPPaperCreate(const SpMVCudaCSR &csr, const SELLPParams &p, cudaStream_t stream,
                             _n_SpMVCudaStore **store)
{
  Paper    *s = new (std::nothrow) Paper;
  const int t = p.t ? PowerOfTwo(p.t, 128) : 8;
  *store      = s;
  return s ? s->Create(csr, (int)(p.b ? PetscMin(p.b, 1024 / t) : 8), t, stream) : cudaErrorMemoryAllocation;
}

} // namespace spmv
