/*
  A batch on the device: the paper's kernels, slices, and the choice between those and the formats' core.

  Of the paper's kernels a thread block multiplies one problem, with x (and, where rows are shared out among warps, y) in shared memory. They differ
  from the paper's in one thing: instead of atomics, which add in any order, each warp leaves its sums of its first and its last row, the only ones that
  other warps may have a part in, and one thread adds those in the order of the warps. Problems too large for shared memory run in the same kernel on x and y where they are.
*/
#include "batch.h"
#include "../../../core/cuda/device.cuh"
#include "../sellp/sellpcuda.h"

using namespace spmv;

struct _n_BatchCuda {
  BatchSharing  sharing = BATCH_SHARE_NONE;
  int64_t       values  = 0; // of A, as they come
  int           rows    = 0;
  int64_t       one     = 0;     // entries of the pattern
  bool          partial = false; // values come problem by problem: they are kept as they come
  bool          keep    = false; // they are what the kernel reads
  const char   *name    = nullptr;
  Array<Scalar> source; // values as they come
  Array<int>    from;   // of a transpose

  virtual ~_n_BatchCuda()                                                                             = default;
  virtual cudaError_t Fill(cudaStream_t)                                                              = 0; // from source
  virtual cudaError_t Mult(bool conjugate, const Scalar *x, const Scalar *z, Scalar *y, cudaStream_t) = 0;
  virtual void        Stats(BatchStats *) const                                                       = 0;
};

namespace {

constexpr int BLOCK = 256; // threads

template <class T> cudaError_t Upload(Array<T> &to, const T *from, size_t count)
{
  SPMV_TRY(to.Alloc(count));
  void       *device = (T *)to;
  const void *host   = from;
  size_t      bytes  = count * sizeof(T);
  return bytes ? SpMVCudaUpload(1, &device, &host, &bytes) : cudaSuccess;
}

template <class T> cudaError_t UploadAs(Array<T> &to, const PetscInt *from, size_t count) // as another type of integer
{
  std::vector<T> copy(from, from + count);
  return Upload(to, copy.data(), count);
}

// The value of A that is the pattern's, or its copies', k-th: of each problem in turn where the pattern alone is shared
__device__ __forceinline__ int64_t ValueOf(int64_t k, int64_t one, const int *from)
{
  return from ? k / one * one + from[k % one] : k;
}

// ------------------------------------------------------------------------------------------------ the paper's kernels

struct PaperArgs {
  const int      *first;
  const PetscInt *i;
  const int      *j;     // ELL: column-major, -1 where there is no entry
  const int      *row;   // COO: of each entry; CSR-I: of each warp's first
  const int      *width; // ELL
  const int64_t  *start; // ELL: first entry of a problem
  const Scalar   *a;
  int64_t         one;               // values of a problem of a shared pattern
  int             sharing, capacity; // rows of the largest problem that fits into shared memory
};

struct Problem {
  int             first, n, q; // q: of whose pattern
  const PetscInt *i;
  const Scalar   *a;
  bool            staged;
};

__device__ __forceinline__ Problem ProblemOf(const PaperArgs &g)
{
  Problem   p;
  const int b = (int)blockIdx.x;
  p.first     = g.first[b];
  p.n         = g.first[b + 1] - p.first;
  p.q         = g.sharing ? 0 : b;
  p.i         = g.i + (g.sharing ? 0 : p.first);
  p.a         = g.a + (g.sharing == BATCH_SHARE_PATTERN ? b * g.one : 0);
  p.staged    = p.n <= g.capacity;
  return p;
}

__device__ __forceinline__ const Scalar *StageX(const Problem &p, const Scalar *x, Scalar *shared)
{
  if (!p.staged) return x + p.first;
  for (int r = threadIdx.x; r < p.n; r += blockDim.x) shared[r] = x[p.first + r];
  __syncthreads();
  return shared;
}

__device__ __forceinline__ void Store(const Scalar *z, Scalar *y, int64_t r, Scalar sum)
{
  y[r] = z ? Num::add(z[r], sum) : sum;
}

// V lanes a row: 1 CSR-scalar, 32 CSR-vector, 0 CSR-smart: the least power of two not below the problem's mean row
template <int V> __global__ void csr(PaperArgs g, bool conjugate, const Scalar *x, const Scalar *z, Scalar *y)
{
  const Problem p  = ProblemOf(g);
  const Scalar *xs = StageX(p, x, (Scalar *)spmv_shared);
  int           v  = V;
  if (V == 0) {
    const int64_t entries = p.i[p.n] - p.i[0];
    for (v = 1; v < WARP && (int64_t)v * p.n < entries;) v *= 2;
  }
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, alone = WARP / v, warps = blockDim.x / WARP;
  for (int r0 = warp * alone; r0 < p.n; r0 += warps * alone) {
    const int r   = r0 + lane / v;
    Scalar    sum = Num::zero();
    if (r < p.n) {
      for (PetscInt k = p.i[r] + lane % v; k < p.i[r + 1]; k += v) {
        const Scalar a = p.a[k];
        sum            = Num::fma(conjugate ? Num::conj(a) : a, xs[g.j[k]], sum);
      }
    }
    for (int by = v / 2; by; by /= 2) sum = Num::add(sum, Num::down(sum, by));
    if (r < p.n && lane % v == 0) Store(z, y, (int64_t)p.first + r, sum);
  }
}

// Sums over the runs of equal rows among the lanes, into y or, of the warp's first and last row, into its two carries
__device__ __forceinline__ void Flush(int row, Scalar sum, int head, int tail, Scalar *carry, Scalar *ys)
{
  const int lane = threadIdx.x % WARP;
  for (int by = 1; by < WARP; by *= 2) {
    const Scalar other = Num::down(sum, by);
    const int    next  = __shfl_down_sync(ALL, row, by);
    if (lane + by < WARP && next == row) sum = Num::add(sum, other);
  }
  const int before = __shfl_up_sync(ALL, row, 1);
  if (row >= 0 && (lane == 0 || before != row)) {
    Scalar *to = row == head ? carry : row == tail ? carry + 1 : ys + row;
    *to        = Num::add(*to, sum);
  }
  __syncwarp();
}

// Equal shares of the nonzeros for the warps. COO reads an entry's row, CSR-I (LISTED false) finds it from where the warp starts
template <bool LISTED> __global__ void nonzeros(PaperArgs g, bool conjugate, const Scalar *x, const Scalar *z, Scalar *y)
{
  const Problem  p    = ProblemOf(g);
  const int      lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  Scalar        *carry = (Scalar *)spmv_shared, *shared = carry + 2 * warps;
  Scalar        *ys   = p.staged ? shared + p.n : y + p.first;
  const PetscInt base = p.i[0], total = p.i[p.n] - base, share = ((total + warps - 1) / warps + WARP - 1) / WARP * WARP;
  const PetscInt begin = base + min(total, warp * share), end = base + min(total, (warp + 1) * share);
  int           *mark = (int *)(shared + 2 * (size_t)g.capacity); // first and last row of each warp
  for (int r = threadIdx.x; r < p.n; r += blockDim.x) ys[r] = p.staged || !z ? Num::zero() : z[p.first + r];
  if (lane < 2) carry[2 * warp + lane] = Num::zero();
  const Scalar *xs = StageX(p, x, shared);
  __syncthreads();
  int next = LISTED ? 0 : g.row[(int64_t)p.q * warps + warp], head = -1, tail = -1;
  if (begin < end) {
    if (LISTED) {
      head = g.row[begin];
      tail = g.row[end - 1];
    } else {
      head = tail = next;
      while (p.i[tail + 1] < end) tail++;
    }
  }
  int    row = -1;
  Scalar sum = Num::zero();
  for (PetscInt k0 = begin; k0 < end; k0 += WARP) {
    const PetscInt k  = k0 + lane;
    int            at = -1;
    if (k < end) {
      if (LISTED)
        at = g.row[k];
      else {
        while (p.i[next + 1] <= k) next++;
        at = next;
      }
    }
    if (__any_sync(ALL, at != row)) { // until then each lane adds up the entries of its row
      Flush(row, sum, head, tail, carry + 2 * warp, ys);
      sum = Num::zero();
      row = at;
    }
    if (k < end) {
      const Scalar a = p.a[k];
      sum            = Num::fma(conjugate ? Num::conj(a) : a, xs[g.j[k]], sum);
    }
  }
  Flush(row, sum, head, tail, carry + 2 * warp, ys);
  if (lane == 0) {
    mark[2 * warp]     = head;
    mark[2 * warp + 1] = tail;
  }
  __syncthreads();
  if (threadIdx.x == 0) { // in the order of the warps: the same bits every time
    for (int c = 0; c < 2 * warps; c++) {
      if (mark[c] >= 0 && !(c % 2 && mark[c] == mark[c - 1])) ys[mark[c]] = Num::add(ys[mark[c]], carry[c]);
    }
  }
  if (!p.staged) return;
  __syncthreads();
  for (int r = threadIdx.x; r < p.n; r += blockDim.x) Store(z, y, (int64_t)p.first + r, ys[r]);
}

__global__ void __launch_bounds__(1024) ell(PaperArgs g, bool conjugate, const Scalar *x, const Scalar *z, Scalar *y)
{
  const Problem p     = ProblemOf(g);
  const Scalar *xs    = StageX(p, x, (Scalar *)spmv_shared);
  const int     width = g.width[p.q];
  const int    *j     = g.j + g.start[p.q];
  const Scalar *a     = p.a + g.start[p.q];
  for (int r = threadIdx.x; r < p.n; r += blockDim.x) {
    Scalar sum = Num::zero();
    for (int k = 0; k < width; k++) {
      const int64_t at  = (int64_t)k * p.n + r;
      const int     col = j[at];
      if (col < 0) continue; // reads no x: 0 times Inf would spoil the row
      sum = Num::fma(conjugate ? Num::conj(a[at]) : a[at], xs[col], sum);
    }
    Store(z, y, (int64_t)p.first + r, sum);
  }
}

__global__ void permute(int64_t count, int64_t one, const int *from, const Scalar *a, Scalar *value)
{
  const int64_t k = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (k < count) value[k] = a[ValueOf(k, one, from)];
}

// place[k]: where the k-th entry of the pattern, or of a copy of it, goes
__global__ void fill_ell(int64_t count, int64_t one, int64_t stored, const int64_t *place, const int *from, const Scalar *a, Scalar *value)
{
  const int64_t k = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (k < count) value[k / one * stored + place[k % one]] = a[ValueOf(k, one, from)];
}

struct Paper : _n_BatchCuda {
  BatchKernel     kind     = BATCH_COO;
  int             problems = 0, threads = 0, copies = 1;
  size_t          memory = 0; // shared, of a block
  int64_t         stored = 0; // of a copy of the pattern
  PaperArgs       g      = {};
  Array<int>      first, j, row, width;
  Array<PetscInt> i;
  Array<int64_t>  start, place;
  Array<Scalar>   value;
  void (*kernel)(PaperArgs, bool, const Scalar *, const Scalar *, Scalar *) = nullptr;

  cudaError_t Create(const BatchPattern *B, BatchKernel which)
  {
    const PetscInt patterns = BatchPatterns(B), entries = BatchPatternEntries(B), *bi = B->i;
    int            limit, most = 0;
    if (entries > PETSC_MAX_INT - 1024) return cudaErrorNotSupported; // the kernels count a little past the end
    kind     = which;
    problems = (int)B->problems;
    copies   = sharing == BATCH_SHARE_PATTERN ? problems : 1;
    stored   = entries;
    for (PetscInt p = 0; p < B->problems; p++) most = PetscMax(most, (int)(B->first[p + 1] - B->first[p]));
    SPMV_TRY(DeviceHas(cudaDevAttrMaxSharedMemoryPerBlockOptin, &limit));
    threads               = kind == BATCH_ELL ? PetscMin(1024, (most + WARP - 1) / WARP * WARP) : most <= 64 ? 64 : most <= 256 ? 128 : 256;
    threads               = PetscMax(threads, WARP);
    const bool   both     = kind == BATCH_COO || kind == BATCH_CSR_I; // y is staged as well
    const int    warps    = threads / WARP;
    const size_t overhead = both ? warps * 2 * (sizeof(Scalar) + sizeof(int)) : 0, each = (both ? 2 : 1) * sizeof(Scalar);
    g.capacity = 0;
    for (PetscInt p = 0; p < B->problems; p++) {
      const int n = (int)(B->first[p + 1] - B->first[p]);
      if (overhead + n * each <= (size_t)limit) g.capacity = PetscMax(g.capacity, n);
    }
    memory = overhead + g.capacity * each;
    switch (kind) {
    case BATCH_COO: kernel = nonzeros<true>, name = "COO"; break;
    case BATCH_CSR_I: kernel = nonzeros<false>, name = "CSR-I"; break;
    case BATCH_CSR_SCALAR: kernel = csr<1>, name = "CSR-scalar"; break;
    case BATCH_CSR_VECTOR: kernel = csr<WARP>, name = "CSR-vector"; break;
    case BATCH_ELL: kernel = ell, name = "ELL"; break;
    default: kernel = csr<0>, name = "CSR-smart";
    }
    // the limit, not what this batch needs: it is the kernel's, and another batch may need more
    if (memory > 48 * 1024) SPMV_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
    SPMV_TRY(UploadAs(first, B->first, (size_t)B->problems + 1));
    SPMV_TRY(Upload(i, bi, (size_t)BatchPatternRows(B) + 1));
    if (kind == BATCH_ELL)
      SPMV_TRY(CreateELL(B));
    else
      SPMV_TRY(UploadAs(j, B->j, (size_t)entries));
    if (kind == BATCH_COO) {
      std::vector<int> list((size_t)entries);
      for (PetscInt p = 0; p < patterns; p++) {
        for (PetscInt r = B->first[p]; r < B->first[p + 1]; r++) {
          for (PetscInt k = bi[r]; k < bi[r + 1]; k++) list[k] = (int)(r - B->first[p]);
        }
      }
      SPMV_TRY(Upload(row, list.data(), list.size()));
    }
    if (kind == BATCH_CSR_I) { // the shares are those of the kernel
      std::vector<int> list((size_t)patterns * warps);
      for (PetscInt p = 0; p < patterns; p++) {
        const PetscInt *b = bi + B->first[p], n = B->first[p + 1] - B->first[p], total = b[n] - b[0];
        const PetscInt  share = ((total + warps - 1) / warps + WARP - 1) / WARP * WARP;
        PetscInt        r     = 0;
        for (int w = 0; w < warps; w++) {
          while (r + 1 < n && b[r + 1] <= b[0] + PetscMin(total, w * share)) r++;
          list[(size_t)p * warps + w] = (int)r;
        }
      }
      SPMV_TRY(Upload(row, list.data(), list.size()));
    }
    keep = !from && kind != BATCH_ELL; // the values as they come
    if (!keep) {
      SPMV_TRY(value.Alloc((size_t)stored * copies));
      SPMV_TRY(value.Zero(nullptr));
    }
    g.first   = first;
    g.i       = i;
    g.j       = j;
    g.row     = row;
    g.width   = width;
    g.start   = start;
    g.one     = stored;
    g.sharing = sharing;
    return cudaDeviceSynchronize();
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
    SPMV_TRY(Upload(place, to.data(), to.size()));
    return Upload(j, col.data(), col.size());
  }

  cudaError_t Fill(cudaStream_t stream) override
  {
    g.a = keep ? source : value;
    if (keep || !one) return cudaSuccess;
    if (kind == BATCH_ELL)
      SPMV_LAUNCH(values, BLOCK, stream, fill_ell, values, one, stored, place, from, source, value);
    else
      SPMV_LAUNCH(values, BLOCK, stream, permute, values, one, from, source, value);
    return cudaSuccess;
  }

  cudaError_t Mult(bool conjugate, const Scalar *x, const Scalar *z, Scalar *y, cudaStream_t stream) override
  {
    if (!problems) return cudaSuccess;
    ForgetErrors();
    kernel<<<problems, threads, memory, stream>>>(g, conjugate, x, z, y);
    return cudaGetLastError();
  }

  void Stats(BatchStats *s) const override
  {
    s->stored = stored * copies;
    s->bytes  = (PetscInt64)(first.Bytes() + j.Bytes() + row.Bytes() + width.Bytes() + start.Bytes() + stored * copies * sizeof(Scalar));
    if (kind != BATCH_COO && kind != BATCH_ELL) s->bytes += (PetscInt64)i.Bytes();
    s->slices = 0;
    s->index  = sizeof(int);
  }
};

// ------------------------------------------------------------------------------------------------ slices

struct SliceArgs {
  unsigned          slices, blocks, groups; // slices and blocks of a group
  const BatchSlice *slice;
  const BatchBlock *block;
  const void       *order, *index;
  const Scalar     *value;
  int64_t           stride;      // values of a group; 0: they are shared
  int               group, rows; // rows of a group, of all
};

template <class I> __device__ __forceinline__ bool Nobody(I index)
{
  return index == (I) ~(I)0;
}

constexpr int BATCH = 8; // steps whose loads are issued before the first is used

// The first BATCH steps of a slice of so many places, into the L2 cache
template <class T> __device__ __forceinline__ void Prefetch(const T *from, int places, int lane)
{
  constexpr int EACH = 128 / (int)sizeof(T); // in a line
#pragma unroll
  for (int k = 0; k < BATCH * WARP; k += WARP * EACH) {
    const int at = k + lane * EACH;
    if (at < BATCH * WARP && at < places) asm volatile("prefetch.global.L2 [%0];" ::"l"(from + at));
  }
}

// A slice's rows of y into shared memory, from x(column); both count from its base. SHARING: what other groups read, too, stays in the caches
template <class I, int SHARING, int U, class X>
__device__ __forceinline__ void product(const SliceArgs &g, const BatchSlice &c, int lane, int64_t value, bool conjugate, const X &x, int ys)
{
  const int     steps = BatchSliceSteps(c.shape) * U, lt = U == 1 ? BatchLogT(c.shape) : 0, alone = WARP >> lt;
  const Scalar *v     = g.value + value + (int64_t)c.step * WARP + lane;
  const I      *index = (const I *)g.index + (int64_t)c.step * WARP + lane;
  Scalar        d[U];
  int           row[U];

#pragma unroll
  for (int u = 0; u < U; u++) {
    const int q = U > 1 ? u * WARP + lane : lane % alone;
    row[u]      = q < BatchSliceRows(c.shape) ? (int)__ldg((const I *)g.order + c.place + q) : -1;
    d[u]        = Num::zero();
  }
  // FULL: no step is past the end, so that nothing stands between the loads
  auto batch = [&](int k0, auto full) {
    constexpr bool FULL = decltype(full)::value;
    Scalar         a[BATCH];
    I              col[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; k++) {
      const bool in = FULL || k0 + k < steps;
      col[k]        = !in ? (I) ~(I)0 : SHARING ? __ldg(index + (k0 + k) * WARP) : __ldcs(index + (k0 + k) * WARP);
      a[k]          = !in ? Num::zero() : SHARING == BATCH_SHARE_VALUES ? Num::keep(v + (int64_t)(k0 + k) * WARP) : Num::stream(v + (int64_t)(k0 + k) * WARP);
    }
    Issue();
#pragma unroll
    for (int k = 0; k < BATCH; k++) { // padding is 0 times 0
      const Scalar b = Nobody(col[k]) ? Num::zero() : x((int)col[k]);
      d[k % U]       = Num::fma(conjugate ? Num::conj(a[k]) : a[k], b, d[k % U]);
    }
  };
  int k0 = 0;
#pragma unroll 1
  for (; k0 + BATCH <= steps; k0 += BATCH) batch(k0, std::true_type{});
  if (k0 < steps) batch(k0, std::false_type{});
  if (U == 1) {
    for (int by = WARP / 2; by >= alone; by >>= 1) d[0] = Num::add(d[0], Num::down(d[0], by));
  }
#pragma unroll
  for (int u = 0; u < U; u++) {
    if (row[u] >= 0 && (U > 1 || lane < alone)) ((Scalar *)spmv_shared)[ys + row[u]] = d[u];
  }
}

/*
  A block's windows. x goes into shared memory on its way through registers: between its loads and its stores the first slice of each warp is called for, so that
  both latencies are one. (To call for all of the block's slices costs the L2 cache more than it gains.)
*/
template <class I, int SHARING>
__global__ void __launch_bounds__(BLOCK, 4) slices(SliceArgs g, bool conjugate, const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  constexpr int  WARPS = BLOCK / WARP, EACH = BATCH_BLOCK_ROWS / BLOCK;
  const unsigned group = SHARING ? blockIdx.x / g.blocks : 0, b = blockIdx.x - group * g.blocks, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int4     own = __ldg((const int4 *)g.block + b), next = __ldg((const int4 *)g.block + b + 1); // BatchBlock: slice, row, x, columns
  const int      first = (int)group * g.group, left = g.rows - first;                                 // the last group may have fewer problems
  const int      rows = next.y - own.y, columns = own.w;
  const int64_t  value = group * g.stride;
  const unsigned begin = own.x + warp, end = next.x;
  Scalar *const ys = (Scalar *)spmv_shared, *const xs = ys + rows;
  Scalar staged[EACH];
  int4   w = {};

  auto load = [&](int k) { return k < columns && own.z + k < left ? Num::keep(x + first + own.z + k) : Num::zero(); };
  if (begin < end) w = __ldg((const int4 *)g.slice + begin);
  AwaitPrevious();
#pragma unroll
  for (int k = 0; k < EACH; k++) staged[k] = load(k * BLOCK + threadIdx.x);
  if (begin < end) {
    const unsigned shape  = (unsigned)w.w;
    const int      places = (BatchSliceSteps(shape) << BatchLogU(shape)) * WARP;
    Prefetch(g.value + value + (int64_t)w.x * WARP, places, (int)lane);
    Prefetch((const I *)g.index + (int64_t)w.x * WARP, places, (int)lane);
  }
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int at = k * BLOCK + threadIdx.x;
    if (at < columns) xs[at] = staged[k];
  }
  for (int k = EACH * BLOCK + threadIdx.x; k < columns; k += BLOCK) xs[k] = load(k);
  __syncthreads();
#pragma unroll 1
  for (unsigned s = begin; s < end; s += WARPS) {
    const BatchSlice c = {(unsigned)w.x, w.y, w.z, (unsigned)w.w};

    if (s + WARPS < end) w = __ldg((const int4 *)g.slice + s + WARPS); // while this one's work goes on
    auto multiply = [&](const auto &at) {
      switch (BatchLogU(c.shape)) {
      case 0: product<I, SHARING, 1>(g, c, (int)lane, value, conjugate, at, c.base - own.y); break;
      case 1: product<I, SHARING, 2>(g, c, (int)lane, value, conjugate, at, c.base - own.y); break;
      default: product<I, SHARING, 4>(g, c, (int)lane, value, conjugate, at, c.base - own.y);
      }
    };
    if (columns) {
      const int from = rows + c.base - own.z;
      multiply([&](int col) { return ((const Scalar *)spmv_shared)[from + col]; });
    } else {
      const Scalar *from = x + first + c.base;
      multiply([&](int col) { return Num::keep(from + col); });
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < rows; k += BLOCK) {
    const int r = own.y + k;
    if (r < left) Store(z, y, first + r, ys[k]);
  }
}

// f(place, row of a group, entry of a group or -1) for every place of a value of the warp's slice
template <class I, class F> __device__ __forceinline__ void ForPlaces(const SliceArgs &g, const BatchSlice &c, const PetscInt *i, const F &f)
{
  const int lane = threadIdx.x % WARP, lt = BatchLogT(c.shape), U = 1 << BatchLogU(c.shape), alone = WARP >> lt, n = BatchSliceSteps(c.shape);
  for (int u = 0; u < U; u++) {
    const int q = U > 1 ? u * WARP + lane : lane % alone;
    int64_t   e = 0, end = 0;
    int       r = 0;
    if (q < BatchSliceRows(c.shape)) {
      r   = c.base + (int)((const I *)g.order)[c.place + q];
      e   = i[r] + (U > 1 ? 0 : lane / alone);
      end = i[r + 1];
    }
    for (int k = 0; k < n; k++, e += 1 << lt) f(((int64_t)c.step + k * U + u) * WARP + lane, r, e < end ? e : -1);
  }
}

// i: row offsets of a group. Each warp fills a slice of a group
template <class I>
__global__ void fill_slices(SliceArgs g, const PetscInt *i, int64_t entries, int64_t one, int64_t values, int sharing, const int *from, const Scalar *a,
                            Scalar *to)
{
  const int64_t s = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP;
  if (s >= (int64_t)g.groups * g.slices) return;
  const int64_t    group = s / g.slices;
  const BatchSlice c     = g.slice[s - group * g.slices];
  ForPlaces<I>(g, c, i, [&](int64_t place, int, int64_t e) {
    Scalar value = Num::zero();
    if (e >= 0) {
      const int64_t at = ValueOf(sharing == BATCH_SHARE_VALUES ? e % one : e + group * entries, one, from);
      if (at < values) value = a[at]; // the last group may have fewer problems
    }
    to[group * g.stride + place] = value;
  });
}

// j: columns of the pattern's entries, of which there are `one`; first: of each row of a group, its problem's first
template <class I> __global__ void index_slices(SliceArgs g, const PetscInt *i, const int *j, int64_t one, const int *first, I *to)
{
  const int64_t s = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP;
  if (s >= g.slices) return;
  const BatchSlice c = g.slice[s];
  ForPlaces<I>(g, c, i, [&](int64_t place, int r, int64_t e) { to[place] = e < 0 ? (I) ~(I)0 : (I)(first[r] - c.base + j[e % one]); });
}

struct Slices : _n_BatchCuda {
  SliceArgs         g       = {};
  int               width   = 0;
  int64_t           entries = 0, bytes = 0, stored = 0;
  size_t            shared = 0; // of a block
  Kernel            kernel;
  Array<BatchSlice> slice;
  Array<BatchBlock> block;
  Array<char>       order, index;
  Array<PetscInt>   i;
  Array<Scalar>     value;

  template <class I> cudaError_t CreateAs(const BatchPattern *B, const BatchSlices *S)
  {
    const void *all[] = {(const void *)slices<I, BATCH_SHARE_NONE>, (const void *)slices<I, BATCH_SHARE_PATTERN>, (const void *)slices<I, BATCH_SHARE_VALUES>};
    int        *rows;
    Array<int>  j, first;
    SPMV_TRY(kernel.Choose(all[sharing]));
    if (BatchRowsFirst(B, S, &rows)) return cudaErrorMemoryAllocation;
    cudaError_t error = Upload(first, (const int *)rows, (size_t)S->rows);
    if (PetscFree(rows)) error = cudaErrorUnknown;
    SPMV_TRY(error);
    SPMV_TRY(UploadAs(j, B->j, (size_t)one));
    SPMV_LAUNCH((int64_t)g.slices * WARP, BLOCK, nullptr, index_slices<I>, g, i, j, one, first, (I *)(char *)index);
    return cudaSuccess;
  }

  cudaError_t Create(const BatchPattern *B, const BatchSlices *S)
  {
    const int64_t            copies  = sharing == BATCH_SHARE_PATTERN ? S->groups : 1;
    static const char *const names[] = {"slices, 8-bit indices", "slices, 16-bit indices", "slices, 32-bit indices"};
    if ((int64_t)S->blocks * S->groups >= INT_MAX) return cudaErrorNotSupported;
    width   = S->width;
    name    = names[width == 1 ? 0 : width == 2 ? 1 : 2];
    entries = S->entries;
    bytes   = BatchSlicesBytes(B, S);
    stored  = S->steps * WARP * copies;
    for (PetscInt b = 0; b < S->blocks; b++) shared = std::max(shared, (size_t)(S->block[b + 1].row - S->block[b].row + S->block[b].columns) * sizeof(Scalar));
    SPMV_TRY(Upload(slice, S->slice, (size_t)S->slices));
    SPMV_TRY(Upload(block, S->block, (size_t)S->blocks + 1));
    SPMV_TRY(Upload(order, (const char *)S->order, (size_t)S->rows * width));
    SPMV_TRY(Upload(i, S->i, (size_t)S->rows + 1));
    SPMV_TRY(index.Alloc((size_t)S->steps * WARP * width));
    SPMV_TRY(value.Alloc((size_t)stored)); // a fill writes every place, those without an entry, too
    g = {(unsigned)S->slices,
         (unsigned)S->blocks,
         (unsigned)S->groups,
         slice,
         block,
         (char *)order,
         (char *)index,
         value,
         copies > 1 ? S->steps * WARP : 0,
         S->rows,
         rows};
    SPMV_TRY(width == 1 ? CreateAs<unsigned char>(B, S) : width == 2 ? CreateAs<unsigned short>(B, S) : CreateAs<int>(B, S));
    return cudaDeviceSynchronize();
  }

  template <class I> cudaError_t FillAs(cudaStream_t stream)
  {
    SliceArgs use = g;
    if (sharing == BATCH_SHARE_VALUES) use.groups = 1; // once for all
    SPMV_LAUNCH((int64_t)use.groups * use.slices * WARP, BLOCK, stream, fill_slices<I>, use, i, entries, one, values, (int)sharing, from, source, value);
    return cudaSuccess;
  }

  cudaError_t Fill(cudaStream_t stream) override
  {
    return width == 1 ? FillAs<unsigned char>(stream) : width == 2 ? FillAs<unsigned short>(stream) : FillAs<int>(stream);
  }

  cudaError_t Mult(bool conjugate, const Scalar *x, const Scalar *z, Scalar *y, cudaStream_t stream) override
  {
    if (!g.slices) return cudaSuccess;
    return kernel.Launch(g.blocks * g.groups, BLOCK, g, conjugate, {x, z, y}, stream, shared);
  }

  void Stats(BatchStats *s) const override
  {
    s->stored = stored;
    s->bytes  = bytes;
    s->slices = g.slices;
    s->index  = width;
  }
};

// ------------------------------------------------------------------------------------------------ the formats' core

struct Core : _n_BatchCuda {
  SpMVCudaStore block = nullptr;
  SpMVCudaCSR   csr   = {};
  Array<char>   offsets;

  ~Core() override
  {
    if (block) (void)SpMVCudaDestroy(&block);
  }

  // Columns that count from the first row of all
  template <class I> cudaError_t CreateAs(const BatchPattern *B, bool transpose, cudaStream_t stream)
  {
    const size_t   m = (size_t)BatchRows(B), nz = (size_t)BatchPatternEntries(B);
    Array<I>       i, j;
    std::vector<I> column(nz);
    SELLPParams    params;
    for (PetscInt p = 0; p < B->problems; p++) {
      for (PetscInt k = B->i[B->first[p]]; k < B->i[B->first[p + 1]]; k++) column[k] = (I)(B->j[k] + B->first[p]);
    }
    SPMV_TRY(Upload(j, column.data(), nz));
    std::vector<I>().swap(column);
    SPMV_TRY(UploadAs(i, B->i, m + 1));
    csr = {(PetscInt64)m, (PetscInt64)m, (PetscInt64)nz, (I *)i, (I *)j, (int)sizeof(I), nullptr};
    SELLPParamsDefault(&params);
    SPMV_TRY(SpMVCudaSELLPSetUp(&csr, &params, SPMVCUDA_KERNEL_AUTO, transpose ? PETSC_TRUE : PETSC_FALSE, stream, &block));
    // what a refresh reads
    SPMV_TRY(offsets.Alloc((m + 1) * sizeof(I)));
    SPMV_TRY(cudaMemcpyAsync((char *)offsets, (I *)i, (m + 1) * sizeof(I), cudaMemcpyDeviceToDevice, stream));
    csr.i = (char *)offsets;
    csr.j = nullptr;
    return cudaStreamSynchronize(stream);
  }

  cudaError_t Create(const BatchPattern *B, bool transpose, cudaStream_t stream)
  {
    return BatchPatternEntries(B) < INT_MAX ? CreateAs<int>(B, transpose, stream) : CreateAs<int64_t>(B, transpose, stream);
  }

  cudaError_t Fill(cudaStream_t stream) override
  {
    SpMVStats stats = {};
    csr.a           = (const PetscScalar *)(Scalar *)source;
    SPMV_TRY(SpMVCudaFill(block, &csr, stream));
    SpMVCudaGetStats(block, &stats);
    name = stats.kernel;
    return cudaSuccess;
  }

  cudaError_t Mult(bool conjugate, const Scalar *x, const Scalar *z, Scalar *y, cudaStream_t stream) override
  {
    return SpMVCudaMult(block, conjugate ? PETSC_TRUE : PETSC_FALSE, (const PetscScalar *)x, (const PetscScalar *)z, (PetscScalar *)y, stream);
  }

  void Stats(BatchStats *s) const override
  {
    SpMVStats stats = {};
    SpMVCudaGetStats(block, &stats);
    s->stored = stats.stored;
    s->bytes  = stats.bytes;
    s->slices = stats.slices;
    s->index  = 0;
  }
};

// ------------------------------------------------------------------------------------------------ the choice

constexpr double SLICES_MAY_TAKE = 1.1; // of the bytes of the core's layout

// The pattern to lay out: the matrix', or that of its transpose, made when it is needed
class Side {
public:
  Side(const BatchPattern *A, bool transpose) : A(A), transpose(transpose)
  {
  }
  Side(const Side &) = delete;
  ~Side()
  {
    (void)PetscFree(i);
    (void)PetscFree(j);
    (void)PetscFree(from);
  }
  cudaError_t Get(const BatchPattern **B)
  {
    if (transpose && !from) {
      if (BatchPatternEntries(A) >= INT_MAX) return cudaErrorNotSupported;
      if (BatchTranspose(A, &i, &j, &from)) return cudaErrorMemoryAllocation;
      own   = *A;
      own.i = i;
      own.j = j;
    }
    *B = transpose ? &own : A;
    return cudaSuccess;
  }

  // Instead of *b, which may be none: an object with what all have in common. *b is it, also after an error
  template <class T> cudaError_t New(T **t, bool permuted, _n_BatchCuda **b)
  {
    delete *b;
    *b = *t = new (std::nothrow) T;
    if (!*t) return cudaErrorMemoryAllocation;
    (*t)->sharing = A->sharing;
    (*t)->values  = BatchValues(A);
    (*t)->rows    = (int)BatchRows(A);
    (*t)->one     = BatchPatternEntries(A);
    return transpose && permuted ? UploadAs((*t)->from, from, (size_t)BatchPatternEntries(A)) : cudaSuccess;
  }

  const BatchPattern *const A;
  const bool                transpose;

private:
  BatchPattern own;
  PetscInt    *i = nullptr, *j = nullptr, *from = nullptr;
};

cudaError_t CreateCore(Side &side, cudaStream_t stream, _n_BatchCuda **b)
{
  Core *c;
  SPMV_TRY(side.New(&c, false, b)); // the core makes its own transpose
  return c->Create(side.A, side.transpose, stream);
}

cudaError_t CreatePaper(Side &side, BatchKernel kernel, _n_BatchCuda **b)
{
  const BatchPattern *B;
  Paper              *p;
  SPMV_TRY(side.Get(&B));
  SPMV_TRY(side.New(&p, true, b));
  return p->Create(B, kernel);
}

// Frees itself, also where something is thrown
struct Layout : BatchSlices {
  Layout() : BatchSlices()
  {
  }
  ~Layout()
  {
    (void)BatchSlicesDestroy(this);
  }
};

// Instead of *b, which may be none, unless they take a good deal more bytes
cudaError_t CreateSlices(Side &side, _n_BatchCuda **b)
{
  const BatchPattern *B;
  Layout              S;
  BatchStats          stats = {};
  PetscBool           fits;
  int                 processors;
  Slices             *s;
  SPMV_TRY(side.Get(&B));
  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
  if (BatchSlicesCreate(B, processors, &S, &fits)) return cudaErrorMemoryAllocation;
  if (*b) (*b)->Stats(&stats);
  if (!fits) return *b ? cudaSuccess : cudaErrorNotSupported;
  if (*b && BatchSlicesBytes(B, &S) >= SLICES_MAY_TAKE * stats.bytes) return cudaSuccess;
  SPMV_TRY(side.New(&s, true, b));
  return s->Create(B, &S);
}

/*
  A shared pattern is stored once, which of these only slices can. Else the core's, whose warps begin at once: they are faster while everything stays in the
  L2 cache, of which a part is always somebody else's. Of larger batches slices read each x and write each y once and in order, which is worth more, unless
  the core's layout takes a good deal fewer bytes (it leaves out the columns of stencils, dense blocks and runs) or x does not fit into shared memory.
*/
cudaError_t Choose(Side &side, cudaStream_t stream, _n_BatchCuda **b)
{
  const BatchPattern *A    = side.A;
  PetscInt            most = 0;
  for (PetscInt p = 0; p < A->problems; p++) most = PetscMax(most, A->first[p + 1] - A->first[p]);
  if (!A->sharing) {
    const cudaError_t error = CreateCore(side, stream, b);
    if (error == cudaErrorNotSupported) { // there are others
      delete *b;
      *b = nullptr;
    } else {
      BatchStats stats = {};
      int        cache;
      if (error != cudaSuccess || most > BATCH_BLOCK_COLUMNS) return error;
      SPMV_TRY(DeviceHas(cudaDevAttrL2CacheSize, &cache));
      (*b)->Stats(&stats);
      if (4 * (stats.bytes + 2 * (PetscInt64)sizeof(Scalar) * BatchRows(A)) < 3 * (PetscInt64)cache) return error;
      if (BatchPatternEntries(A) * (double)(sizeof(Scalar) + (most > 255 ? 2 : 1)) > SLICES_MAY_TAKE * (double)stats.bytes) return error;
    }
  }
  return CreateSlices(side, b);
}

} // namespace

cudaError_t BatchCudaCreate(const BatchPattern *A, PetscBool transpose, BatchKernel kernel, cudaStream_t stream, BatchCuda *batch)
{
  Side          side(A, (bool)transpose);
  _n_BatchCuda *b = nullptr;
  cudaError_t   error;

  *batch = nullptr;
  if (BatchRows(A) > SPMVCUDA_MAX_SIZE || A->problems > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;
  SPMV_TRY(Supported());
  try {
    if (kernel == BATCH_AUTO || (kernel == BATCH_SELLP && A->sharing))
      error = Choose(side, stream, &b);
    else if (kernel == BATCH_SELLP)
      error = CreateCore(side, stream, &b);
    else if (kernel == BATCH_SLICES)
      error = CreateSlices(side, &b);
    else
      error = CreatePaper(side, kernel, &b);
  } catch (const std::bad_alloc &) { // the host's memory
    error = cudaErrorMemoryAllocation;
  }
  if (error != cudaSuccess) {
    delete b;
    (void)cudaGetLastError();
    return error;
  }
  *batch = b;
  return cudaSuccess;
}

/*
  Values go up as they come and are moved into the layout there. Once some of the problems' values came alone, those of all are kept as they come, so
  that the next time only what changed goes up.
*/
cudaError_t BatchCudaFill(BatchCuda b, const BatchPattern *A, const PetscScalar *a, PetscInt first, PetscInt last, cudaStream_t stream)
{
  const bool all   = (first <= 0 && last >= A->problems) || A->sharing == BATCH_SHARE_VALUES;
  int64_t    begin = 0, end = b->values;
  if (!all) b->partial = true;
  SPMV_TRY(cudaStreamSynchronize(stream)); // products that read the values have ended
  if (!b->source)
    SPMV_TRY(b->source.Alloc((size_t)b->values));
  else if (!all) {
    begin = A->sharing ? first * b->one : A->i[A->first[first]];
    end   = A->sharing ? last * b->one : A->i[A->first[last]];
  }
  void        *to    = (Scalar *)b->source + begin;
  const void  *from  = a + begin;
  const size_t bytes = (size_t)(end - begin) * sizeof(Scalar);
  cudaError_t  error = bytes ? SpMVCudaUpload(1, &to, &from, &bytes) : cudaSuccess;
  if (error == cudaSuccess) error = b->Fill(stream);
  if (error != cudaSuccess || (!b->keep && !b->partial)) b->source.Free(); // waits; after an error, all values go up the next time
  return error;
}

cudaError_t BatchCudaMult(BatchCuda b, PetscBool conjugate, const PetscScalar *x, const PetscScalar *z, PetscScalar *y, cudaStream_t stream)
{
  return b->Mult(conjugate, (const Scalar *)x, (const Scalar *)z, (Scalar *)y, stream);
}

void BatchCudaStats(BatchCuda b, BatchStats *s)
{
  b->Stats(s);
  s->kernel = b->name;
}

cudaError_t BatchCudaDestroy(BatchCuda *b)
{
  delete *b;
  *b = nullptr;
  return cudaSuccess;
}
