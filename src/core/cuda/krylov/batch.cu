/*
  Solvers for batches on the device: which systems share a launch, and the launches.
*/
#include "batch.h"
#include "core/cuda/base/launch.cuh"
#include <algorithm>
#include <climits>
#include <memory>
#include <vector>

using namespace spmv;

namespace {

struct Summary {
  int                least, most, reason, failed;
  unsigned long long norm; // the bits of a double: those of numbers that are not negative ascend, then come NaNs
};

struct BatchArgs {
  const PetscInt  *i, *j, *first;
  const Scalar    *a, *d, *b;
  Scalar          *x, *memory; // memory: for vectors, NULL: in shared memory
  const int       *list;       // the systems of this launch
  int              count;
  int              entries, rows; // the most of a system of this launch
  size_t           words;         // of vectors
  SpMVBatchResult *results;
  Summary         *summary;
  SpMVBatchOptions o;
};

constexpr int TEAM_MOST     = 512;   // threads
constexpr int STATIC_SHARED = 12288; // bytes, more than the kernels have

__device__ void Report(const BatchArgs &g, int p, const SpMVBatchResult &result)
{
  g.results[p] = result;
  atomicMin(&g.summary->least, result.its);
  atomicMax(&g.summary->most, result.its);
  atomicMin(&g.summary->reason, (int)result.reason);
  if (result.reason < 0) atomicAdd(&g.summary->failed, 1);
  atomicMax(&g.summary->norm, (unsigned long long)__double_as_longlong((double)result.norm));
}

// The logarithm of the number of threads that multiply a row: at least four entries for each, or idle threads
__device__ __forceinline__ int RowShift(int n, int entries, int threads)
{
  int shift = 0;
  while (shift < 5 && ((long long)entries >= ((long long)n << (shift + 3)) ||
                       ((n << (shift + 1)) <= threads && entries > (n << shift))))
    shift++;
  return shift;
}

__device__ __forceinline__ Scalar MakeScalar(PetscReal re, PetscReal im)
{
  Scalar a         = Num::zero();
  *(PetscReal *)&a = re;
  if (REALS > 1) ((PetscReal *)&a)[REALS - 1] = im;
  return a;
}

} // namespace

namespace spmv {

// C's operators, for the methods. Those of real numbers are built in
using Real = PetscReal;
__device__ __forceinline__ Complex<Real> operator+(Complex<Real> a, Complex<Real> b)
{
  return {a.re + b.re, a.im + b.im};
}
__device__ __forceinline__ Complex<Real> operator-(Complex<Real> a, Complex<Real> b)
{
  return {a.re - b.re, a.im - b.im};
}
__device__ __forceinline__ Complex<Real> operator-(Complex<Real> a)
{
  return {-a.re, -a.im};
}
__device__ __forceinline__ Complex<Real> operator*(Complex<Real> a, Complex<Real> b)
{
  return Multiplied(a, b);
}
__device__ __forceinline__ Complex<Real> operator*(Real a, Complex<Real> b)
{
  return {a * b.re, a * b.im};
}
__device__ __forceinline__ Complex<Real> operator/(Complex<Real> a, Complex<Real> b)
{
  return Divided(a, b);
}
__device__ __forceinline__ Complex<Real> operator/(Complex<Real> a, Real b)
{
  return {a.re / b, a.im / b};
}

} // namespace spmv

#define FN         static __device__ __forceinline__
#define RE         RealPart
#define IM         ImagPart
#define CONJ       Num::conj
#define SCALAR     MakeScalar
#define SQUARE     Square
#define ISZERO     IsZero
#define LOAD(b, k) Read((b) + (k))
#define LEADER     (t->id == 0)
#define EACH(k, n) for (int k = t->id; k < (n); k += t->size)
#define EACH2(i, j, from, n)                                        \
  for (int j = (from) + t->id / WARP; j < (n); j += t->size / WARP) \
    for (int i = (from) + t->id % WARP; i < (n); i += WARP)

enum { BATCH_SUMS = 4 };

// Ascends with the size, 0 only for tiny numbers; NaN is the largest
__device__ __forceinline__ unsigned SizeOf(Scalar a)
{
  const PetscReal size = PetscAbsReal(RealPart(a)) + PetscAbsReal(ImagPart(a));
  return sizeof(PetscReal) == 8 ? (unsigned)__double2hiint((double)size) : __float_as_uint((float)size);
}

/*
  Gauss-Jordan elimination with partial pivoting in registers: thread i has row i. In each step all warps offer the row
  of their largest entry in column 0, the largest one is the pivot, and with the elimination the columns move to the
  left by one, so that no register is addressed by a variable. M: the columns that are left, rounded up
*/
template <int N> struct Elimination {
  Scalar row[N], y; // of the matrix, of the right-hand side
  Scalar pivot;
  int    step = -1; // in which this row was the pivot
  bool   candidate;

  static constexpr int WARPS = (N + WARP - 1) / WARP;

  template <int M> __device__ __forceinline__ bool Step(int k, Scalar (*offers)[N + 2], unsigned *sizes)
  {
    const unsigned mine = candidate ? SizeOf(row[0]) + 1 : 0, most = __reduce_max_sync(ALL, mine);
    const int      lane = __ffs(__ballot_sync(ALL, mine == most)) - 1, w = (int)threadIdx.x / WARP;
    const bool     offer = (int)threadIdx.x % WARP == lane;
    int            best  = 0;
    offers += k % 2 * WARPS; // the others may still read the last step's
    sizes += k % 2 * WARPS;
    if (offer) {
#pragma unroll
      for (int j = 0; j < M; j++) offers[w][j] = row[j];
      offers[w][N] = y;
      sizes[w]     = most;
    }
    if (WARPS > 1)
      __syncthreads();
    else
      __syncwarp();
#pragma unroll
    for (int v = 1; v < WARPS; v++)
      if (sizes[v] > sizes[best]) best = v;
    if (sizes[best] <= 1) return false;
    const Scalar *u      = offers[best];
    const bool    chosen = offer && w == best;
    const Scalar  factor = chosen ? Num::zero() : Negated(row[0] / u[0]);
    if (chosen) {
      candidate = false;
      step      = k;
      pivot     = row[0];
    }
    y = Num::fma(factor, u[N], y);
#pragma unroll
    for (int j = 1; j < M; j++) row[j - 1] = Num::fma(factor, u[j], row[j]);
    return true;
  }
};

/*
  The same for larger systems, by 16 x 16 threads: thread (i, j) has the entries in rows i + 16 a and columns j + 16 b,
  for a, b < T. In a step the threads of column k offer it, then those of the pivot's row; all others read both
*/
template <int T> struct TileElimination {
  static constexpr int SIDE = 16, N = SIDE * T, THREADS = SIDE * SIDE;
  struct Shared {
    Scalar   column[2][N], row[N], y, rhs[N], pivot[N];
    int      order[N];
    unsigned best[2];
  };

  Scalar   tile[T][T], y[T]; // y: the right-hand side, in the threads with j = 0
  unsigned used = 0;         // of the rows, a bit each

  template <int B> __device__ __forceinline__ bool Step(int n, int k, Shared &s)
  {
    const int i = (int)threadIdx.x % SIDE, j = (int)threadIdx.x / SIDE, turn = k % 2;
    if (j == k % SIDE) {
      unsigned best = 0;
#pragma unroll
      for (int a = 0; a < T; a++) {
        const int row        = i + SIDE * a;
        s.column[turn][row]  = tile[a][B];
        const unsigned offer = (SizeOf(tile[a][B]) & ~0xffu) | (unsigned)(0xff - row);
        if (row < n && !(used >> a & 1) && offer > best) best = offer;
      }
      best = __reduce_max_sync(0xffffu << SIDE * (j % 2), best);
      if (!i) s.best[turn] = best;
    }
    __syncthreads();
    const unsigned best = s.best[turn];
    if (best <= 0xff) return false;
    const int p = 0xff - (int)(best & 0xff), pa = p / SIDE;
    if (i == p % SIDE) {
      used |= 1u << pa;
#pragma unroll
      for (int a = 0; a < T; a++) {
        if (a != pa) continue;
#pragma unroll
        for (int b = B; b < T; b++) s.row[j + SIDE * b] = tile[a][b];
        if (!j) {
          s.y        = y[a];
          s.order[k] = p;
          s.pivot[k] = s.column[turn][p];
        }
      }
    }
    __syncthreads();
    const Scalar inverse = Divided(MakeScalar(-1, 0), s.column[turn][p]);
    Scalar       u[T];
#pragma unroll
    for (int b = B; b < T; b++) u[b] = s.row[j + SIDE * b];
#pragma unroll
    for (int a = 0; a < T; a++) {
      const int    row    = i + SIDE * a;
      const Scalar factor = row == p ? Num::zero() : Multiplied(s.column[turn][row], inverse);
#pragma unroll
      for (int b = B; b < T; b++) tile[a][b] = Num::fma(factor, u[b], tile[a][b]);
      if (!j) y[a] = Num::fma(factor, s.y, y[a]);
    }
    return true;
  }
  template <int B = 0> __device__ __forceinline__ bool Steps(int n, Shared &s)
  {
    bool ok = true;
    for (int k = SIDE * B; k < SIDE * (B + 1) && k < n && ok; k++) ok = Step<B>(n, k, s);
    if constexpr (B + 1 < T)
      if (ok) ok = Steps<B + 1>(n, s);
    return ok;
  }
};

// The sizes for which there is an elimination in registers
constexpr int DIRECT[] = {16, 32, REALS == 1 ? 64 : 96, 96, REALS == 1 ? 144 : 96};
constexpr int DirectThreads(int rows)
{
  return rows <= WARP ? WARP : rows <= 2 * WARP ? 2 * WARP : TileElimination<6>::THREADS;
}
constexpr int DirectBlocks(int rows) // on a multiprocessor
{
  return rows <= WARP ? 20 : rows <= 2 * WARP ? 6 : 1;
}

namespace warp {
#define TEAM_WARP 1
#define TEAM_NEAR 1
#define TEAM_FAR  0
#include "batchteam.cuh"
} // namespace warp
namespace near {
#define TEAM_WARP 0
#define TEAM_NEAR 1
#define TEAM_FAR  1
#include "batchteam.cuh"
} // namespace near
namespace away {
#define TEAM_WARP 0
#define TEAM_NEAR 0
#define TEAM_FAR  1
#include "batchteam.cuh"
} // namespace away

namespace {

// What a team needs in shared memory, if its matrix is there, too
size_t NearBytes(size_t words, size_t entries, size_t rows)
{
  return (words + entries) * sizeof(Scalar) + (rows + 1) * sizeof(int) + entries * sizeof(uint16_t);
}

struct LaunchPlan {
  bool   near, global;    // the matrix is in shared memory; the vectors are in global memory
  int    direct, threads; // direct: see Direct()
  size_t words;
  int    entries, rows;
};

struct Launch : LaunchPlan {
  explicit Launch(const LaunchPlan &plan) : LaunchPlan(plan)
  {
  }
  int              blocks;
  size_t           shared;
  std::vector<int> systems;
  const void      *kernel;
  Array<int>       list;
  Array<Scalar>    memory;
};

} // namespace

struct _n_SpMVCudaBatch {
  std::vector<std::unique_ptr<Launch>> launches;
  Array<PetscInt>                      first;
  Array<SpMVBatchResult>               results;
  Array<Summary>                       summary; // the second one is the beginning of the first
  int                                  count;
  size_t                               most; // dynamic shared memory of a thread block
  int                                  multiprocessors, perprocessor, perblock; // shared memory, too

  cudaError_t Create(const SpMVBatchOptions &, int, const PetscInt *, const PetscInt *, cudaStream_t);
  int         Room(const LaunchPlan &) const;
  LaunchPlan  Plan(const SpMVBatchOptions &, int rows, int entries) const;
  cudaError_t Finish(const SpMVBatchOptions &, Launch &, cudaStream_t);
};

namespace {

// The number of threads for a system that needs so many bytes of shared memory: as many systems as fit on a
// multiprocessor are to have 32 warps
int Threads(size_t bytes, size_t all, int n, int entries)
{
  int warps = 1;
  while (warps < TEAM_MOST / WARP && 32 * bytes > warps * all && warps * WARP < std::max(n, entries / 4)) warps *= 2;
  return warps * WARP;
}

} // namespace

// Entries that fit in shared memory next to the vectors
int _n_SpMVCudaBatch::Room(const LaunchPlan &l) const
{
  return (int)((most - NearBytes(l.words, 0, (size_t)l.rows)) / (sizeof(Scalar) + sizeof(uint16_t)));
}

// How a system would be solved if it were alone
LaunchPlan _n_SpMVCudaBatch::Plan(const SpMVBatchOptions &o, int rows, int entries) const
{
  LaunchPlan   l       = {};
  const size_t offsets = ((size_t)(rows + 1) * sizeof(int) + sizeof(Scalar) - 1) / sizeof(Scalar);
  l.rows               = rows;
  l.words              = SpMVBatchWords(&o, (size_t)rows);
  l.threads            = TEAM_MOST;
  if (o.method == SPMV_BATCH_LU) {
    for (int size : DIRECT)
      if (!l.direct && rows <= size) l.direct = size;
    if (l.direct) l.threads = DirectThreads(l.direct);
  } else if (rows < 65536 && NearBytes(l.words, 0, (size_t)rows) <= most / 2) {
    l.near    = true;
    l.entries = std::min(entries, Room(l));
    l.threads =
        Threads(NearBytes(l.words, (size_t)l.entries, (size_t)rows) + 1024, (size_t)perprocessor, rows, entries);
  }
  if (!l.near) l.words += offsets;
  l.global = !l.near && l.words * sizeof(Scalar) > most;
  return l;
}

// Sizes of the launch, its lists on the device
cudaError_t _n_SpMVCudaBatch::Finish(const SpMVBatchOptions &o, Launch &l, cudaStream_t stream)
{
  l.kernel = !l.near             ? away::Kernel(o.method, l.direct)
             : l.threads == WARP ? warp::Kernel(o.method, 0)
                                 : near::Kernel(o.method, 0);
  if (l.near) l.entries = std::min(l.entries, Room(l));
  l.shared = l.near ? NearBytes(l.words, (size_t)l.entries, (size_t)l.rows) : l.global ? 0 : l.words * sizeof(Scalar);
  l.blocks = (int)l.systems.size();
  if (l.global) {
    l.blocks = std::min(l.blocks, 2 * multiprocessors);
    cudaError_t error; // a thread block solves one system after another
    while ((error = l.memory.Alloc(l.words * (size_t)l.blocks, stream)) == cudaErrorMemoryAllocation && l.blocks > 1) {
      ForgetErrors();
      l.blocks = (l.blocks + 1) / 2;
    }
    SPMV_TRY(error);
  }
  SPMV_TRY(Upload(l.list, l.systems, stream));
  cudaFuncAttributes attributes;
  SPMV_TRY(cudaFuncGetAttributes(&attributes, l.kernel));
  // the same value for all plans
  return cudaFuncSetAttribute(l.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              perblock - (int)attributes.sharedSizeBytes);
}

cudaError_t _n_SpMVCudaBatch::Create(const SpMVBatchOptions &o, int n, const PetscInt *first_, const PetscInt *i,
                                     cudaStream_t stream)
{
  SPMV_TRY(DeviceHas(cudaDevAttrMaxSharedMemoryPerBlockOptin, &perblock));
  SPMV_TRY(DeviceHas(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &perprocessor));
  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &multiprocessors));
  most  = (size_t)perblock - (o.method == SPMV_BATCH_LU ? STATIC_SHARED : 2048);
  count = n;
  std::vector<size_t> cost(n);
  std::vector<int>    order(n);
  for (int p = 0; p < n; p++) {
    const PetscInt64 rows = first_[p + 1] - first_[p], entries = i[first_[p + 1]] - i[first_[p]];
    if (rows > INT_MAX / 2 || entries > INT_MAX / 2 || (o.method == SPMV_BATCH_LU && rows > 46340)) // rows^2 is an int
      return cudaErrorNotSupported;
    order[p] = p;
    cost[p]  = SpMVBatchWords(&o, (size_t)rows) + (size_t)entries;
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return cost[a] > cost[b]; });
  // the systems that need most come first, so that the last ones to end are short
  for (int p : order) {
    const LaunchPlan one = Plan(o, (int)(first_[p + 1] - first_[p]), (int)(i[first_[p + 1]] - i[first_[p]]));
    Launch          *l   = nullptr;
    for (auto &other : launches) {
      // a launch of few systems would not fill the device: smaller systems join it
      if (other->near == one.near && other->global == one.global && !other->direct == !one.direct &&
          (other->threads == one.threads
               ? other->direct >= one.direct
               : (int)other->systems.size() < 4 * multiprocessors && other->threads > one.threads))
        l = other.get();
    }
    if (!l) {
      launches.push_back(std::unique_ptr<Launch>(new Launch(one)));
      l = launches.back().get();
    }
    l->words   = std::max(l->words, one.words);
    l->entries = std::max(l->entries, one.entries);
    l->rows    = std::max(l->rows, one.rows);
    l->systems.push_back(p);
  }
  for (auto &l : launches) SPMV_TRY(Finish(o, *l, stream));
  Summary begin[2] = {};
  begin[1].least   = n ? INT_MAX : 0;
  begin[1].reason  = SPMV_BATCH_ATOL;
  SPMV_TRY(results.Alloc((size_t)n, stream));
  SPMV_TRY(Upload(summary, std::vector<Summary>(begin, begin + 2), stream));
  SPMV_TRY(Upload(first, std::vector<PetscInt>(first_, first_ + n + 1), stream));
  return cudaStreamSynchronize(stream); // the lists on the host may go
}

cudaError_t SpMVCudaBatchCreate(const SpMVBatchOptions *o, int count, const PetscInt first[], const PetscInt i[],
                                cudaStream_t stream, SpMVCudaBatch *batch)
{
  return Guarded([&]() -> cudaError_t {
    std::unique_ptr<_n_SpMVCudaBatch> b(new _n_SpMVCudaBatch());
    *batch = nullptr;
    SPMV_TRY(Supported());
    SPMV_TRY(b->Create(*o, count, first, i, stream));
    *batch = b.release();
    return cudaSuccess;
  });
}

cudaError_t SpMVCudaBatchSolve(SpMVCudaBatch b, const SpMVCudaCSR *A, const SpMVBatchOptions *o, const PetscScalar *d,
                               const PetscScalar *rhs, PetscScalar *x, cudaStream_t stream)
{
  Summary *summary = b->summary;
  SPMV_TRY(cudaMemcpyAsync(summary, summary + 1, sizeof(Summary), cudaMemcpyDeviceToDevice, stream));
  for (auto &l : b->launches) {
    BatchArgs g       = {};
    g.i               = (const PetscInt *)A->i;
    g.j               = (const PetscInt *)A->j;
    g.first           = b->first;
    g.a               = (const Scalar *)A->a;
    g.d               = (const Scalar *)d;
    g.b               = (const Scalar *)rhs;
    g.x               = (Scalar *)x;
    g.memory          = l->global ? (Scalar *)l->memory : nullptr;
    g.list            = l->list;
    g.count           = (int)l->systems.size();
    g.entries         = l->entries;
    g.rows            = l->rows;
    g.words           = l->words;
    g.results         = b->results;
    g.summary         = b->summary;
    g.o               = *o;
    void *arguments[] = {&g};
    ForgetErrors();
    SPMV_TRY(cudaLaunchKernel(l->kernel, dim3((unsigned)l->blocks), dim3((unsigned)l->threads), arguments, l->shared,
                              stream));
  }
  return cudaSuccess;
}

cudaError_t SpMVCudaBatchGetSummary(SpMVCudaBatch b, SpMVBatchSummary *summary, cudaStream_t stream)
{
  Summary s;
  double  norm;
  SPMV_TRY(Fetch(&s, (const Summary *)b->summary, 1, stream));
  memcpy(&norm, &s.norm, sizeof(norm));
  *summary = {s.least, s.most, (SpMVBatchReason)s.reason, s.failed, (PetscReal)norm};
  return cudaSuccess;
}

cudaError_t SpMVCudaBatchGetResults(SpMVCudaBatch b, SpMVBatchResult results[], cudaStream_t stream)
{
  return b->count ? Fetch(results, (const SpMVBatchResult *)b->results, (size_t)b->count, stream) : cudaSuccess;
}

cudaError_t SpMVCudaBatchDestroy(SpMVCudaBatch *b)
{
  delete *b;
  *b = nullptr;
  return cudaSuccess;
}
