/*
  The paper's kernels. A thread block multiplies one problem, with x (and y, if the kernel divides rows among warps) in
  shared memory. Problems that do not fit in shared memory use the same kernel on x and y in global memory. There is one
  change: the paper's kernels add with atomics, in any order. Here each warp stores the sums of its first and its last
  row, the only rows that other warps may contribute to, and one thread adds these sums in the order of the warps.
  coo-atomic is the paper's COO without this change.
*/
#include "batched.h"
#include "core/cuda/base/launch.cuh"

using namespace spmv;

namespace {

struct Args {
  const int      *first;
  const PetscInt *i;
  const int      *j;     // ELL: column-major, -1 for padding
  const int      *row;   // COO: row of each entry; CSR-I: first row of each warp
  const int      *width; // ELL: width of each problem
  const int64_t  *start; // ELL: first entry of each problem
  const Scalar   *a;
  int             capacity; // rows of the largest problem that fits in shared memory
};

struct Problem {
  int             first, n;
  const PetscInt *i;
  const Scalar   *a;
  bool            staged;
};

__device__ __forceinline__ Problem ProblemOfBlock(const Args &args)
{
  Problem   p;
  const int b = (int)blockIdx.x;
  p.first     = args.first[b];
  p.n         = args.first[b + 1] - p.first;
  p.i         = args.i + p.first;
  p.a         = args.a;
  p.staged    = p.n <= args.capacity;
  return p;
}

__device__ __forceinline__ const Scalar *StageX(const Problem &p, const Scalar *x, Scalar *shared)
{
  if (!p.staged) return x + p.first;
  for (int r = threadIdx.x; r < p.n; r += blockDim.x) shared[r] = x[p.first + r];
  __syncthreads();
  return shared;
}

// V lanes per row: 1 for CSR-scalar, 32 for CSR-vector. V = 0 for CSR-smart, where the number of lanes is the problem's
// mean row length, rounded up to a power of two
template <int V> __global__ void csr(Args args, const Scalar *x, Scalar *y)
{
  const Problem p  = ProblemOfBlock(args);
  const Scalar *xs = StageX(p, x, (Scalar *)spmv_shared);
  int           v  = V;
  if (V == 0) {
    const int64_t entries = p.i[p.n] - p.i[0];
    for (v = 1; v < WARP && (int64_t)v * p.n < entries;) v *= 2;
  }
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, rows_at_once = WARP / v, warps = blockDim.x / WARP;
  for (int r0 = warp * rows_at_once; r0 < p.n; r0 += warps * rows_at_once) {
    const int r   = r0 + lane / v;
    Scalar    sum = Num::zero();
    if (r < p.n) {
      for (PetscInt k = p.i[r] + lane % v; k < p.i[r + 1]; k += v) {
        const Scalar a = p.a[k];
        sum            = Num::fma(a, xs[args.j[k]], sum);
      }
    }
    for (int by = v / 2; by; by /= 2) sum = Num::add(sum, Num::down(sum, by));
    if (r < p.n && lane % v == 0) y[p.first + r] = sum;
  }
}

// Adds the sums of consecutive lanes with equal rows to y, or, for the first and the last row of the warp, to its two
// carries
__device__ __forceinline__ void Flush(int row, Scalar sum, int first_row, int last_row, Scalar *carry, Scalar *ys)
{
  const int lane = threadIdx.x % WARP;
  for (int by = 1; by < WARP; by *= 2) {
    const Scalar other = Num::down(sum, by);
    const int    next  = __shfl_down_sync(ALL, row, by);
    if (lane + by < WARP && next == row) sum = Num::add(sum, other);
  }
  const int before = __shfl_up_sync(ALL, row, 1);
  if (row >= 0 && (lane == 0 || before != row)) {
    Scalar *to = row == first_row ? carry : row == last_row ? carry + 1 : ys + row;
    *to        = Num::add(*to, sum);
  }
  __syncwarp();
}

__device__ __forceinline__ void AtomicAdd(Scalar *y, Scalar v)
{
  for (size_t k = 0; k < sizeof(v) / sizeof(PetscReal); k++) atomicAdd((PetscReal *)y + k, ((PetscReal *)&v)[k]);
}

// Like Flush(), with an atomic addition for each row among the lanes
__device__ __forceinline__ void FlushAtomic(int row, Scalar sum, Scalar *y)
{
  const int lane = threadIdx.x % WARP;
  for (int by = 1; by < WARP; by *= 2) {
    const Scalar other = Num::down(sum, by);
    const int    next  = __shfl_down_sync(ALL, row, by);
    if (lane + by < WARP && next == row) sum = Num::add(sum, other);
  }
  const int before = __shfl_up_sync(ALL, row, 1);
  if (row >= 0 && (lane == 0 || before != row)) AtomicAdd(y + row, sum);
}

// The paper's COO: x is in shared memory, sums are added to y in global memory
__global__ void __launch_bounds__(1024) coo_atomic(Args args, const Scalar *x, Scalar *y)
{
  const Problem  p    = ProblemOfBlock(args);
  const int      lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  const PetscInt base = p.i[0], total = p.i[p.n] - base, share = ((total + warps - 1) / warps + WARP - 1) / WARP * WARP;
  const PetscInt begin = base + min(total, warp * share), end = base + min(total, (warp + 1) * share);
  Scalar        *ys = y + p.first;
  for (int r = threadIdx.x; r < p.n; r += blockDim.x) ys[r] = Num::zero();
  const Scalar *xs = StageX(p, x, (Scalar *)spmv_shared);
  __syncthreads();
  int    row = -1;
  Scalar sum = Num::zero();
  for (PetscInt k0 = begin; k0 < end; k0 += WARP) {
    const PetscInt k  = k0 + lane;
    const int      at = k < end ? args.row[k] : -1;
    if (__any_sync(ALL, at != row)) { // as long as no lane changes rows, each lane adds entries of one row
      FlushAtomic(row, sum, ys);
      sum = Num::zero();
      row = at;
    }
    if (k < end) {
      const Scalar a = p.a[k];
      sum            = Num::fma(a, xs[args.j[k]], sum);
    }
  }
  FlushAtomic(row, sum, ys);
}

// Each warp processes the same number of nonzeros. COO (LISTED) reads the row of each entry; CSR-I searches for it,
// starting at the first row of the warp
template <bool LISTED> __device__ __forceinline__ void nonzeros(const Args &args, const Scalar *x, Scalar *y)
{
  const Problem  p    = ProblemOfBlock(args);
  const int      lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  Scalar        *carry = (Scalar *)spmv_shared, *shared = carry + 2 * warps;
  Scalar        *ys   = p.staged ? shared + p.n : y + p.first;
  const PetscInt base = p.i[0], total = p.i[p.n] - base, share = ((total + warps - 1) / warps + WARP - 1) / WARP * WARP;
  const PetscInt begin = base + min(total, warp * share), end = base + min(total, (warp + 1) * share);
  int           *mark = (int *)(shared + 2 * (size_t)args.capacity); // first and last row of each warp
  for (int r = threadIdx.x; r < p.n; r += blockDim.x) ys[r] = Num::zero();
  if (lane < 2) carry[2 * warp + lane] = Num::zero();
  const Scalar *xs = StageX(p, x, shared);
  __syncthreads();
  int next = LISTED ? 0 : args.row[(int64_t)blockIdx.x * warps + warp], first_row = -1, last_row = -1;
  if (begin < end) {
    if (LISTED) {
      first_row = args.row[begin];
      last_row  = args.row[end - 1];
    } else {
      first_row = last_row = next;
      while (p.i[last_row + 1] < end) last_row++;
    }
  }
  int    row = -1;
  Scalar sum = Num::zero();
  for (PetscInt k0 = begin; k0 < end; k0 += WARP) {
    const PetscInt k  = k0 + lane;
    int            at = -1;
    if (k < end) {
      if (LISTED)
        at = args.row[k];
      else {
        while (p.i[next + 1] <= k) next++;
        at = next;
      }
    }
    if (__any_sync(ALL, at != row)) { // as long as no lane changes rows, each lane adds entries of one row
      Flush(row, sum, first_row, last_row, carry + 2 * warp, ys);
      sum = Num::zero();
      row = at;
    }
    if (k < end) {
      const Scalar a = p.a[k];
      sum            = Num::fma(a, xs[args.j[k]], sum);
    }
  }
  Flush(row, sum, first_row, last_row, carry + 2 * warp, ys);
  if (lane == 0) {
    mark[2 * warp]     = first_row;
    mark[2 * warp + 1] = last_row;
  }
  __syncthreads();
  if (threadIdx.x == 0) { // in the order of the warps, so the result is bitwise reproducible
    for (int c = 0; c < 2 * warps; c++) {
      if (mark[c] >= 0 && !(c % 2 && mark[c] == mark[c - 1])) ys[mark[c]] = Num::add(ys[mark[c]], carry[c]);
    }
  }
  if (!p.staged) return;
  __syncthreads();
  for (int r = threadIdx.x; r < p.n; r += blockDim.x) y[p.first + r] = ys[r];
}

// The bound makes the compiler use 27 registers instead of 40, so that more thread blocks are resident: up to 1.5 times
// as fast on batches of equal problems
__global__ void __launch_bounds__(1024) coo(Args args, const Scalar *x, Scalar *y)
{
  nonzeros<true>(args, x, y);
}

// Without a bound the compiler uses 31 registers. With the bound it uses 27, and the kernel is 6 to 8 % slower
__global__ void csr_i(Args args, const Scalar *x, Scalar *y)
{
  nonzeros<false>(args, x, y);
}

__global__ void __launch_bounds__(1024) ell(Args args, const Scalar *x, Scalar *y)
{
  const Problem p     = ProblemOfBlock(args);
  const Scalar *xs    = StageX(p, x, (Scalar *)spmv_shared);
  const int     width = args.width[blockIdx.x];
  const int    *j     = args.j + args.start[blockIdx.x];
  const Scalar *a     = p.a + args.start[blockIdx.x];
  for (int r = threadIdx.x; r < p.n; r += blockDim.x) {
    Scalar sum = Num::zero();
    for (int k = 0; k < width; k++) {
      const int64_t at  = (int64_t)k * p.n + r;
      const int     col = j[at];
      if (col < 0) continue; // padding must not read x: 0 times Inf is NaN
      sum = Num::fma(a[at], xs[col], sum);
    }
    y[p.first + r] = sum;
  }
}

template <class T> cudaError_t Upload(Array<T> &to, const T *from, size_t count)
{
  SPMV_TRY(to.Alloc(count));
  return cudaMemcpy((T *)to, from, count * sizeof(T), cudaMemcpyHostToDevice);
}

enum Kind { COO, CSR_SCALAR, CSR_VECTOR, CSR_SMART, CSR_I, ELL, COO_ATOMIC };

} // namespace

struct _n_Batched {
  Kind            kind     = COO;
  int             problems = 0, threads = 0;
  size_t          memory = 0; // shared memory of a thread block
  Args            args   = {};
  Array<int>      first, j, row, width;
  Array<PetscInt> i;
  Array<int64_t>  start;
  Array<Scalar>   value;
  void (*kernel)(Args, const Scalar *, Scalar *) = nullptr;

  cudaError_t Create(int count, const PetscInt sizes[], const PetscInt bi[], const PetscInt bj[], const PetscScalar a[],
                     Kind which)
  {
    std::vector<int> begin(1, 0), column;
    int              limit, most = 0;
    kind     = which;
    problems = count;
    for (int p = 0; p < count; p++) {
      begin.push_back(begin.back() + (int)sizes[p]);
      most = PetscMax(most, (int)sizes[p]);
    }
    SPMV_TRY(DeviceHas(cudaDevAttrMaxSharedMemoryPerBlockOptin, &limit));
    threads = kind == ELL ? PetscMin(1024, (most + WARP - 1) / WARP * WARP) : most <= 64 ? 64 : most <= 256 ? 128 : 256;
    threads = PetscMax(threads, WARP);
    if (kind == CSR_I) SPMV_TRY(ThreadsCSRI(most, limit));
    const bool   both     = kind == COO || kind == CSR_I; // x and y in shared memory
    const int    warps    = threads / WARP;
    const size_t overhead = both ? warps * 2 * (sizeof(Scalar) + sizeof(int)) : 0,
                 each     = (both ? 2 : 1) * sizeof(Scalar);
    for (int p = 0; p < count; p++) {
      if (overhead + sizes[p] * each <= (size_t)limit) args.capacity = PetscMax(args.capacity, (int)sizes[p]);
    }
    memory                                                  = overhead + args.capacity * each;
    void (*const kernels[])(Args, const Scalar *, Scalar *) = {coo, csr<1>, csr<WARP>, csr<0>, csr_i, ell, coo_atomic};
    kernel                                                  = kernels[kind];
    // The attribute belongs to the kernel: another batch may need more
    if (memory > 48 * 1024) SPMV_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
    const size_t rows = (size_t)begin.back(), entries = (size_t)bi[rows];
    SPMV_TRY(Upload(first, begin.data(), begin.size()));
    SPMV_TRY(Upload(i, bi, rows + 1));
    if (kind == ELL)
      SPMV_TRY(CreateELL(begin, bi, bj, a));
    else {
      column.assign(bj, bj + entries);
      SPMV_TRY(Upload(j, column.data(), entries));
      SPMV_TRY(Upload(value, (const Scalar *)a, entries));
    }
    if (kind == COO || kind == COO_ATOMIC) SPMV_TRY(CreateCOO(begin, bi));
    if (kind == CSR_I) SPMV_TRY(CreateCSRI(begin, bi));
    args.first = first;
    args.i     = i;
    args.j     = j;
    args.row   = row;
    args.width = width;
    args.start = start;
    args.a     = value;
    return cudaDeviceSynchronize();
  }

  /*
    Section 3.5 of the paper: the device's threads are divided equally among the problems, with at least one warp for
    each problem. However, a thread block has enough threads that the number of thread blocks on a multiprocessor is
    limited by their threads and not by their shared memory (x and y)
  */
  cudaError_t ThreadsCSRI(int most, int limit)
  {
    int          processors, resident, shared;
    const size_t needs =
        // CUDA reserves 1 KB for itself
        PetscMin((size_t)limit, 2 * sizeof(Scalar) * (size_t)most + 32 * 2 * (sizeof(Scalar) + sizeof(int))) + 1024;
    SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
    SPMV_TRY(DeviceHas(cudaDevAttrMaxThreadsPerMultiProcessor, &resident));
    SPMV_TRY(DeviceHas(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &shared));
    const int64_t equal = (int64_t)processors * resident / PetscMax(1, problems);
    const int     least = resident / (int)PetscMax(1, shared / needs);
    threads             = (int)PetscMin(1024, PetscMax(equal, (int64_t)least));
    threads             = PetscMax(WARP, threads / WARP * WARP);
    return cudaSuccess;
  }

  cudaError_t CreateCOO(const std::vector<int> &begin, const PetscInt bi[])
  {
    std::vector<int> list((size_t)bi[begin.back()]);
    for (int p = 0; p < problems; p++) {
      for (int r = begin[p]; r < begin[p + 1]; r++) {
        for (PetscInt k = bi[r]; k < bi[r + 1]; k++) list[k] = r - begin[p];
      }
    }
    return Upload(row, list.data(), list.size());
  }

  cudaError_t CreateCSRI(const std::vector<int> &begin, const PetscInt all[]) // divides the entries as the kernel does
  {
    const int        warps = threads / WARP;
    std::vector<int> list((size_t)problems * warps);
    for (int p = 0; p < problems; p++) {
      const PetscInt *bi = all + begin[p], n = begin[p + 1] - begin[p], total = bi[n] - bi[0];
      const PetscInt  share = ((total + warps - 1) / warps + WARP - 1) / WARP * WARP;
      PetscInt        r     = 0;
      for (int w = 0; w < warps; w++) {
        while (r + 1 < n && bi[r + 1] <= bi[0] + PetscMin(total, w * share)) r++;
        list[(size_t)p * warps + w] = (int)r;
      }
    }
    return Upload(row, list.data(), list.size());
  }

  cudaError_t CreateELL(const std::vector<int> &begin, const PetscInt bi[], const PetscInt bj[], const PetscScalar a[])
  {
    std::vector<int>         w((size_t)problems), col;
    std::vector<int64_t>     at((size_t)problems + 1);
    std::vector<PetscScalar> v;
    for (int p = 0; p < problems; p++) {
      for (int r = begin[p]; r < begin[p + 1]; r++) w[p] = PetscMax(w[p], (int)(bi[r + 1] - bi[r]));
      at[p + 1] = at[p] + (int64_t)w[p] * (begin[p + 1] - begin[p]);
    }
    col.assign((size_t)at[problems], -1);
    v.resize(col.size());
    for (int p = 0; p < problems; p++) {
      const int n = begin[p + 1] - begin[p];
      for (int r = 0; r < n; r++) {
        for (PetscInt k = bi[begin[p] + r], c = 0; k < bi[begin[p] + r + 1]; k++, c++) {
          col[at[p] + (int64_t)c * n + r] = (int)bj[k];
          v[at[p] + (int64_t)c * n + r]   = a[k];
        }
      }
    }
    SPMV_TRY(Upload(width, w.data(), w.size()));
    SPMV_TRY(Upload(start, at.data(), at.size()));
    SPMV_TRY(Upload(value, (const Scalar *)v.data(), v.size()));
    return Upload(j, col.data(), col.size());
  }
};

cudaError_t BatchedCreate(int problems, const PetscInt sizes[], const PetscInt i[], const PetscInt j[],
                          const PetscScalar a[], const char name[], Batched *batched)
{
  static const char *const names[] = {"coo", "csr-scalar", "csr-vector", "csr-smart", "csr-i", "ell", "coo-atomic"};
  int                      kind    = 0;
  *batched                         = nullptr;
  while (kind <= COO_ATOMIC && strcmp(names[kind], name)) kind++;
  if (kind > COO_ATOMIC) return cudaErrorInvalidValue;
  _n_Batched *b = new _n_Batched;
  *batched      = b;
  return b->Create(problems, sizes, i, j, a, (Kind)kind);
}

cudaError_t BatchedMult(Batched b, const PetscScalar *x, PetscScalar *y, cudaStream_t stream)
{
  ForgetErrors();
  b->kernel<<<b->problems, b->threads, b->memory, stream>>>(b->args, (const Scalar *)x, (Scalar *)y);
  return cudaGetLastError();
}

size_t BatchedBytes(Batched b)
{
  return b->first.Bytes() + b->j.Bytes() + b->row.Bytes() + b->width.Bytes() + b->start.Bytes() + b->value.Bytes() +
         (b->kind == COO || b->kind == COO_ATOMIC || b->kind == ELL ? 0 : b->i.Bytes());
}

cudaError_t BatchedDestroy(Batched *b)
{
  delete *b;
  *b = nullptr;
  return cudaGetLastError();
}
