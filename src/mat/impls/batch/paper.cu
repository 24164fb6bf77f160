/*
  The paper's kernels on the device.

  A thread block multiplies one problem, with x (and y, if the kernel divides rows among warps) in shared memory.
  Problems that do not fit in shared memory use the same kernel on x and y in global memory. There is one change: the
  paper's kernels add with atomics, in any order. Here each warp stores the sums of its first and its last row, the only
  rows that other warps may contribute to, and one thread adds these sums in the order of the warps. coo-atomic is the
  paper's COO without this change.
*/
#include "kernels.cuh"

using namespace batch;

namespace {

struct PaperArgs {
  const int      *first;
  const PetscInt *i;
  const int      *j;     // ELL: column-major, -1 for padding
  const int      *row;   // COO: row of each entry; CSR-I: first row of each warp
  const int      *width; // ELL: width of each problem
  const int64_t  *start; // ELL: first entry of each problem
  const Scalar   *a;
  int64_t         values; // number of values of a problem if the pattern is shared
  int             sharing;
  int             capacity; // rows of the largest problem that fits in shared memory
};

struct Problem {
  int             first, n, pattern;
  const PetscInt *i;
  const Scalar   *a;
  bool            staged;
};

__device__ __forceinline__ Problem ProblemOfBlock(const PaperArgs &args)
{
  Problem   p;
  const int b = (int)blockIdx.x;
  p.first     = args.first[b];
  p.n         = args.first[b + 1] - p.first;
  p.pattern   = args.sharing ? 0 : b;
  p.i         = args.i + (args.sharing ? 0 : p.first);
  p.a         = args.a + (args.sharing == BATCH_SHARE_PATTERN ? b * args.values : 0);
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
template <int V> __global__ void csr(PaperArgs args, bool conjugate, const Scalar *x, const Scalar *z, Scalar *y)
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
        sum            = Num::fma(conjugate ? Num::conj(a) : a, xs[args.j[k]], sum);
      }
    }
    for (int by = v / 2; by; by /= 2) sum = Num::add(sum, Num::down(sum, by));
    if (r < p.n && lane % v == 0) Store(z, y, (int64_t)p.first + r, sum);
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
__global__ void __launch_bounds__(1024)
    coo_atomic(PaperArgs args, bool conjugate, const Scalar *x, const Scalar *z, Scalar *y)
{
  const Problem  p    = ProblemOfBlock(args);
  const int      lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  const PetscInt base = p.i[0], total = p.i[p.n] - base, share = ((total + warps - 1) / warps + WARP - 1) / WARP * WARP;
  const PetscInt begin = base + min(total, warp * share), end = base + min(total, (warp + 1) * share);
  Scalar        *ys = y + p.first;
  for (int r = threadIdx.x; r < p.n; r += blockDim.x) ys[r] = z ? z[p.first + r] : Num::zero();
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
      sum            = Num::fma(conjugate ? Num::conj(a) : a, xs[args.j[k]], sum);
    }
  }
  FlushAtomic(row, sum, ys);
}

// Each warp processes the same number of nonzeros. COO (LISTED) reads the row of each entry; CSR-I searches for it,
// starting at the first row of the warp
template <bool LISTED>
__device__ __forceinline__ void nonzeros(const PaperArgs &args, bool conjugate, const Scalar *x, const Scalar *z,
                                         Scalar *y)
{
  const Problem  p    = ProblemOfBlock(args);
  const int      lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  Scalar        *carry = (Scalar *)spmv_shared, *shared = carry + 2 * warps;
  Scalar        *ys   = p.staged ? shared + p.n : y + p.first;
  const PetscInt base = p.i[0], total = p.i[p.n] - base, share = ((total + warps - 1) / warps + WARP - 1) / WARP * WARP;
  const PetscInt begin = base + min(total, warp * share), end = base + min(total, (warp + 1) * share);
  int           *mark = (int *)(shared + 2 * (size_t)args.capacity); // first and last row of each warp
  for (int r = threadIdx.x; r < p.n; r += blockDim.x) ys[r] = p.staged || !z ? Num::zero() : z[p.first + r];
  if (lane < 2) carry[2 * warp + lane] = Num::zero();
  const Scalar *xs = StageX(p, x, shared);
  __syncthreads();
  int next = LISTED ? 0 : args.row[(int64_t)p.pattern * warps + warp], first_row = -1, last_row = -1;
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
      sum            = Num::fma(conjugate ? Num::conj(a) : a, xs[args.j[k]], sum);
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
  for (int r = threadIdx.x; r < p.n; r += blockDim.x) Store(z, y, (int64_t)p.first + r, ys[r]);
}

// The bound makes the compiler use 27 registers instead of 40, so that more thread blocks are resident: up to 1.5 times
// as fast on batches of equal problems
__global__ void __launch_bounds__(1024) coo(PaperArgs args, bool conjugate, const Scalar *x, const Scalar *z, Scalar *y)
{
  nonzeros<true>(args, conjugate, x, z, y);
}

// Without a bound the compiler uses 31 registers. With the bound it uses 27, and the kernel is 6 to 8 % slower
__global__ void csr_i(PaperArgs args, bool conjugate, const Scalar *x, const Scalar *z, Scalar *y)
{
  nonzeros<false>(args, conjugate, x, z, y);
}

__global__ void __launch_bounds__(1024) ell(PaperArgs args, bool conjugate, const Scalar *x, const Scalar *z, Scalar *y)
{
  const Problem p     = ProblemOfBlock(args);
  const Scalar *xs    = StageX(p, x, (Scalar *)spmv_shared);
  const int     width = args.width[p.pattern];
  const int    *j     = args.j + args.start[p.pattern];
  const Scalar *a     = p.a + args.start[p.pattern];
  for (int r = threadIdx.x; r < p.n; r += blockDim.x) {
    Scalar sum = Num::zero();
    for (int k = 0; k < width; k++) {
      const int64_t at  = (int64_t)k * p.n + r;
      const int     col = j[at];
      if (col < 0) continue; // padding must not read x: 0 times Inf is NaN
      sum = Num::fma(conjugate ? Num::conj(a[at]) : a[at], xs[col], sum);
    }
    Store(z, y, (int64_t)p.first + r, sum);
  }
}

__global__ void permute(int64_t count, int64_t entries, const int *value_index, const Scalar *a, Scalar *value)
{
  const int64_t k = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (k < count) value[k] = a[ValueOf(k, entries, value_index)];
}

// position[k]: the position in ELL of entry k of the pattern
__global__ void fill_ell(int64_t count, int64_t entries, int64_t stored, const int64_t *position,
                         const int *value_index, const Scalar *a, Scalar *value)
{
  const int64_t k = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (k < count) value[k / entries * stored + position[k % entries]] = a[ValueOf(k, entries, value_index)];
}

struct Paper : _n_BatchCuda {
  BatchKernel     kind     = BATCH_COO;
  int             problems = 0, threads = 0, copies = 1;
  size_t          memory = 0; // shared memory of a thread block
  int64_t         stored = 0; // number of stored values of a copy of the pattern
  PaperArgs       args   = {};
  Array<int>      first, j, row, width;
  Array<PetscInt> i;
  Array<int64_t>  start, position;
  Array<Scalar>   value;
  void (*kernel)(PaperArgs, bool, const Scalar *, const Scalar *, Scalar *) = nullptr;

  cudaError_t Create(const BatchPattern *B, BatchKernel which)
  {
    const PetscInt entries = BatchPatternEntries(B);
    int            limit, most = 0;
    if (entries > PETSC_MAX_INT - 1024) return cudaErrorNotSupported; // the kernels step past the end
    kind     = which;
    problems = (int)B->problems;
    copies   = sharing == BATCH_SHARE_PATTERN ? problems : 1;
    stored   = entries;
    for (PetscInt p = 0; p < B->problems; p++) most = PetscMax(most, (int)(B->first[p + 1] - B->first[p]));
    SPMV_TRY(DeviceHas(cudaDevAttrMaxSharedMemoryPerBlockOptin, &limit));
    threads = kind == BATCH_ELL ? PetscMin(1024, (most + WARP - 1) / WARP * WARP)
              : most <= 64      ? 64
              : most <= 256     ? 128
                                : 256;
    threads = PetscMax(threads, WARP);
    if (kind == BATCH_CSR_I) SPMV_TRY(ThreadsCSRI(most, limit));
    const bool   both     = kind == BATCH_COO || kind == BATCH_CSR_I; // x and y in shared memory
    const int    warps    = threads / WARP;
    const size_t overhead = both ? warps * 2 * (sizeof(Scalar) + sizeof(int)) : 0,
                 each     = (both ? 2 : 1) * sizeof(Scalar);
    args.capacity         = 0;
    for (PetscInt p = 0; p < B->problems; p++) {
      const int n = (int)(B->first[p + 1] - B->first[p]);
      if (overhead + n * each <= (size_t)limit) args.capacity = PetscMax(args.capacity, n);
    }
    memory = overhead + args.capacity * each;
    switch (kind) {
    case BATCH_COO: kernel = coo, name = "COO"; break;
    case BATCH_CSR_I: kernel = csr_i, name = "CSR-I"; break;
    case BATCH_COO_ATOMIC: kernel = coo_atomic, name = "COO, atomic"; break;
    case BATCH_CSR_SCALAR: kernel = csr<1>, name = "CSR-scalar"; break;
    case BATCH_CSR_VECTOR: kernel = csr<WARP>, name = "CSR-vector"; break;
    case BATCH_ELL: kernel = ell, name = "ELL"; break;
    default: kernel = csr<0>, name = "CSR-smart";
    }
    // The attribute belongs to the kernel: set it to the limit and not to what this batch needs, because another batch
    // may need more
    if (memory > 48 * 1024) SPMV_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
    SPMV_TRY(UploadAs(first, B->first, (size_t)B->problems + 1));
    SPMV_TRY(Upload(i, B->i, (size_t)BatchPatternRows(B) + 1));
    if (kind == BATCH_ELL)
      SPMV_TRY(CreateELL(B));
    else
      SPMV_TRY(UploadAs(j, B->j, (size_t)entries));
    if (kind == BATCH_COO || kind == BATCH_COO_ATOMIC) SPMV_TRY(CreateCOO(B));
    if (kind == BATCH_CSR_I) SPMV_TRY(CreateCSRI(B));
    read_source = !value_index && kind != BATCH_ELL;
    if (!read_source) {
      SPMV_TRY(value.Alloc((size_t)stored * copies));
      SPMV_TRY(value.Zero(nullptr));
    }
    args.first   = first;
    args.i       = i;
    args.j       = j;
    args.row     = row;
    args.width   = width;
    args.start   = start;
    args.values  = stored;
    args.sharing = sharing;
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

  cudaError_t CreateCOO(const BatchPattern *B)
  {
    std::vector<int> list((size_t)BatchPatternEntries(B));
    for (PetscInt p = 0; p < BatchPatterns(B); p++) {
      for (PetscInt r = B->first[p]; r < B->first[p + 1]; r++) {
        for (PetscInt k = B->i[r]; k < B->i[r + 1]; k++) list[k] = (int)(r - B->first[p]);
      }
    }
    return Upload(row, list.data(), list.size());
  }

  cudaError_t CreateCSRI(const BatchPattern *B) // divides the entries among the warps as the kernel does
  {
    const int        warps = threads / WARP;
    std::vector<int> list((size_t)BatchPatterns(B) * warps);
    for (PetscInt p = 0; p < BatchPatterns(B); p++) {
      const PetscInt *bi = B->i + B->first[p], n = B->first[p + 1] - B->first[p], total = bi[n] - bi[0];
      const PetscInt  share = ((total + warps - 1) / warps + WARP - 1) / WARP * WARP;
      PetscInt        r     = 0;
      for (int w = 0; w < warps; w++) {
        while (r + 1 < n && bi[r + 1] <= bi[0] + PetscMin(total, w * share)) r++;
        list[(size_t)p * warps + w] = (int)r;
      }
    }
    return Upload(row, list.data(), list.size());
  }

  cudaError_t CreateELL(const BatchPattern *B)
  {
    const PetscInt       patterns = BatchPatterns(B), *bi = B->i;
    std::vector<int>     w((size_t)patterns), col;
    std::vector<int64_t> at((size_t)patterns), to((size_t)BatchPatternEntries(B));
    stored = 0;
    for (PetscInt p = 0; p < patterns; p++) {
      const PetscInt n = B->first[p + 1] - B->first[p];
      for (PetscInt r = B->first[p]; r < B->first[p + 1]; r++) w[p] = PetscMax(w[p], (int)(bi[r + 1] - bi[r]));
      at[p] = stored;
      stored += (int64_t)w[p] * n;
    }
    col.assign((size_t)stored, -1);
    for (PetscInt p = 0; p < patterns; p++) {
      const PetscInt n = B->first[p + 1] - B->first[p];
      for (PetscInt r = 0; r < n; r++) {
        for (PetscInt k = bi[B->first[p] + r], c = 0; k < bi[B->first[p] + r + 1]; k++, c++) {
          to[k]      = at[p] + (int64_t)c * n + r;
          col[to[k]] = (int)B->j[k];
        }
      }
    }
    SPMV_TRY(Upload(width, w.data(), w.size()));
    SPMV_TRY(Upload(start, at.data(), at.size()));
    SPMV_TRY(Upload(position, to.data(), to.size()));
    return Upload(j, col.data(), col.size());
  }

  cudaError_t Fill(cudaStream_t stream) override
  {
    args.a = read_source ? source : value;
    if (read_source || !entries) return cudaSuccess;
    if (kind == BATCH_ELL)
      SPMV_LAUNCH(values, BLOCK, stream, fill_ell, values, entries, stored, position, value_index, source, value);
    else
      SPMV_LAUNCH(values, BLOCK, stream, permute, values, entries, value_index, source, value);
    return cudaSuccess;
  }

  cudaError_t Mult(bool conjugate, const Scalar *x, const Scalar *z, Scalar *y, cudaStream_t stream) override
  {
    if (!problems) return cudaSuccess;
    ForgetErrors();
    kernel<<<problems, threads, memory, stream>>>(args, conjugate, x, z, y);
    return cudaGetLastError();
  }

  void Stats(BatchStats *s) const override
  {
    s->stored = stored * copies;
    s->bytes  = (PetscInt64)(first.Bytes() + j.Bytes() + row.Bytes() + width.Bytes() + start.Bytes() +
                            stored * copies * sizeof(Scalar));
    if (kind != BATCH_COO && kind != BATCH_COO_ATOMIC && kind != BATCH_ELL) s->bytes += (PetscInt64)i.Bytes();
    s->slices = 0;
    s->index  = sizeof(int);
  }
};

} // namespace

cudaError_t batch::CreatePaper(Side &side, BatchKernel kernel, _n_BatchCuda **b)
{
  const BatchPattern *B;
  Paper              *p;
  SPMV_TRY(side.GetPattern(&B));
  SPMV_TRY(side.New(&p, true, b));
  return p->Create(B, kernel);
}
