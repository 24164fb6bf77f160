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
  int              entries, rows;  // the most of a system of this launch
  const int       *slices, *where; // of systems in slices, from where[p] on: see Slice()
  int              cluster;        // thread blocks for each system
  size_t           words;          // of vectors
  SpMVBatchResult *results;
  Summary         *summary;
  SpMVBatchOptions o;
};

// Thread blocks that a multiprocessor can have
#if !defined(__CUDA_ARCH__)
constexpr int BLOCKS = 32;
#elif __CUDA_ARCH__ > 800 && __CUDA_ARCH__ < 890
constexpr int BLOCKS = 16;
#elif __CUDA_ARCH__ == 890 || __CUDA_ARCH__ == 1010 || __CUDA_ARCH__ == 1100 || __CUDA_ARCH__ >= 1200
constexpr int BLOCKS = 24;
#else
constexpr int BLOCKS = 32;
#endif
constexpr int TEAM_MOST    = 512;   // threads
constexpr int HELD_ROWS    = 2;     // of a thread, see HELD
constexpr int LU_SHARED    = 12288; // more bytes of static shared memory than the kernels for LU have
constexpr int SUMS_SHARED  = 5120;  // and the others, for the sums of the warps
constexpr int CLUSTER_MOST = 4;     // thread blocks of a cluster
constexpr int LONGEST      = 100;   // entries of rows that a thread multiplies, see Slice()

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

// Clusters are only launched if there is code for them
__device__ __forceinline__ void ClusterSync()
{
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
#endif
}
// Where p, in shared memory, is in another thread block of the cluster
template <class T> __device__ __forceinline__ T *AtRank(T *p, int rank)
{
#if __CUDA_ARCH__ >= 900
  T *q;
  asm("mapa.u64 %0, %1, %2;" : "=l"(q) : "l"(p), "r"(rank));
  return q;
#else
  return p;
#endif
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

#define FN     static __device__ __forceinline__
#define RE     RealPart
#define IM     ImagPart
#define CONJ   Num::conj
#define SCALAR MakeScalar
#define SQUARE Square
#define ISZERO IsZero
#define LEADER (t->id == 0)
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

// The sizes for which there is an elimination in registers
constexpr int DIRECT[] = {16, 24, 32, 48, REALS == 1 ? 56 : 64, 64, 96, REALS == 1 ? 144 : 96};
constexpr int DIRECTS  = sizeof(DIRECT) / sizeof(*DIRECT);
constexpr int DirectSide(int rows) // SI; SJ equals SI, except in a warp
{
  return rows <= WARP || (rows <= 2 * WARP && REALS == 1) ? 8 : 16;
}
constexpr int DirectThreads(int rows)
{
  return rows <= WARP ? WARP : DirectSide(rows) * DirectSide(rows);
}
constexpr int DirectBlocks(int rows) // on a multiprocessor, by the registers
{
  const int warps = DirectThreads(rows) / WARP, i = rows / DirectSide(rows),
            j = rows * DirectSide(rows) / (warps * WARP), words = i * j + i + j,
            each = 16384 / WARP / (2 * REALS * words + 32), // warps of a quarter
      blocks     = 4 * each / warps;
  return blocks < 1 ? 1 : blocks > BLOCKS ? BLOCKS : blocks;
}

/*
  Gauss-Jordan elimination with partial pivoting in registers, for up to ROWS rows, by SI x SJ threads: thread (i, j)
  has the entries in rows i + SI a and columns j + SJ b. In a step the threads that have the pivot's row show it, then
  all others use it and the pivot's column. Those that have the next column update it first, show it, and find its pivot
  while the others compute.
*/
template <int ROWS> struct Elimination {
  static constexpr int THREADS = DirectThreads(ROWS), SI = DirectSide(ROWS), SJ = THREADS / SI, TI = ROWS / SI,
                       TJ = ROWS / SJ;
  struct Shared {
    Scalar   column[2][ROWS], row[ROWS], y[ROWS], pivot[ROWS]; // y: the right-hand side
    int      order[ROWS];
    unsigned best[2];
  };

  Scalar    tile[TI][TJ];
  unsigned  used = 0; // of the rows, a bit each
  const int n, i = (int)threadIdx.x % SI, j = (int)threadIdx.x / SI;
  Shared   &s;

  __device__ __forceinline__ Elimination(int n_, Shared &s_) : n(n_), s(s_)
  {
  }
  static __device__ __forceinline__ void Sync()
  {
    if (THREADS == WARP)
      __syncwarp();
    else
      __syncthreads();
  }
  // Shows column k, which is column B of the tiles, and the row of its largest entry that can be the pivot
  template <int B> __device__ __forceinline__ void Show(int k)
  {
    unsigned best = 0;
#pragma unroll
    for (int a = 0; a < TI; a++) {
      const int      row   = i + SI * a;
      const unsigned offer = (SizeOf(tile[a][B]) & ~0xffu) | (unsigned)(0xff - row);
      s.column[k % 2][row] = tile[a][B];
      if (row < n && !(used >> a & 1) && offer > best) best = offer;
    }
    best = __reduce_max_sync(((1u << SI) - 1) << SI * (j % (WARP / SI)), best);
    if (!i) s.best[k % 2] = best;
  }
  template <int B> __device__ __forceinline__ bool Step(int k)
  {
    const Scalar *column = s.column[k % 2];
    Sync();
    const unsigned best = s.best[k % 2];
    if (best <= 0xff) return false;
    const int    p = 0xff - (int)(best & 0xff), row = (int)threadIdx.x;
    const Scalar inverse = Divided(MakeScalar(-1, 0), column[p]);
    if (i == p % SI) {
      used |= 1u << p / SI;
#pragma unroll
      for (int a = 0; a < TI; a++) {
        if (a != p / SI) continue;
#pragma unroll
        for (int b = B; b < TJ; b++) s.row[j + SJ * b] = tile[a][b];
      }
      if (!j) {
        s.order[k] = p;
        s.pivot[k] = column[p];
      }
    }
    Sync();
    Scalar f[TI], u[TJ];
#pragma unroll
    for (int a = 0; a < TI; a++) f[a] = i + SI * a == p ? Num::zero() : Multiplied(column[i + SI * a], inverse);
#pragma unroll
    for (int b = B; b < TJ; b++) u[b] = s.row[j + SJ * b];
#pragma unroll
    for (int b = B; b < TJ; b++) {
#pragma unroll
      for (int a = 0; a < TI; a++) tile[a][b] = Num::fma(f[a], u[b], tile[a][b]);
      if (k + 1 < n && j == (k + 1) % SJ) { // in the next column of the tiles if that is the first thread again
        if (b == B && j) Show<B>(k + 1);
        if (b == B + 1 && !j) Show<(B + 1) % TJ>(k + 1);
      }
    }
    if (row < n && row != p) s.y[row] = Num::fma(Multiplied(column[row], inverse), s.y[p], s.y[row]);
    return true;
  }
  template <int B = 0> __device__ __forceinline__ bool Steps()
  {
    bool ok = true;
    if (B == 0 && !j) Show<0>(0);
    for (int k = SJ * B; k < SJ * (B + 1) && k < n && ok; k++) ok = Step<B>(k);
    if constexpr (B + 1 < TJ)
      if (ok) ok = Steps<B + 1>();
    return ok;
  }
};

namespace heldwarp {
#define TEAM_WARP    1
#define TEAM_CLUSTER 0
#define HELD         1
#define TEAM_NEAR    0
#include "batchteam.cuh"
} // namespace heldwarp
namespace held {
#define TEAM_WARP    0
#define TEAM_CLUSTER 0
#define HELD         1
#define TEAM_NEAR    0
#include "batchteam.cuh"
} // namespace held
namespace cluster {
#define TEAM_WARP    0
#define TEAM_CLUSTER 1
#define HELD         1
#define TEAM_NEAR    0
#include "batchteam.cuh"
} // namespace cluster
namespace warp {
#define TEAM_WARP    1
#define TEAM_CLUSTER 0
#define HELD         0
#define TEAM_NEAR    1
#include "batchteam.cuh"
} // namespace warp
namespace near {
#define TEAM_WARP    0
#define TEAM_CLUSTER 0
#define HELD         0
#define TEAM_NEAR    1
#include "batchteam.cuh"
} // namespace near
namespace away {
#define TEAM_WARP    0
#define TEAM_CLUSTER 0
#define HELD         0
#define TEAM_NEAR    0
#include "batchteam.cuh"
} // namespace away

namespace {

struct LaunchPlan {
  bool   held, near, global; // see HELD and TEAM_NEAR; the vectors are in global memory
  int    cluster;            // thread blocks of a system, or 0
  int    direct, threads;    // direct: see Direct()
  size_t words;
  int    entries, rows;

  // in shared memory
  size_t Bytes() const
  {
    const size_t e = (size_t)entries, r = (size_t)rows;
    if (held) return (r + e) * sizeof(Scalar) + e * sizeof(uint16_t) + (r + WARP) * sizeof(int);
    if (near) return (words + e) * sizeof(Scalar) + (r + 1) * sizeof(int) + e * sizeof(uint16_t);
    return global ? 0 : words * sizeof(Scalar);
  }
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

// How a system is stored in slices, see Matrix: the thread blocks that take it, 0: none, and their most entries
struct Sliced {
  int cluster, entries;
};

} // namespace

struct _n_SpMVCudaBatch {
  std::vector<std::unique_ptr<Launch>> launches;
  Array<PetscInt>                      first;
  Array<int>                           slices, where; // see BatchArgs
  Array<SpMVBatchResult>               results;
  Array<Summary>                       summary; // the second one is the beginning of the first
  int                                  count;
  size_t                               most; // dynamic shared memory of a thread block
  int                                  multiprocessors, perprocessor, perblock; // shared memory, too
  int                                  clusters = 1;                            // the largest one

  cudaError_t Create(const SpMVBatchOptions &, int, const PetscInt *, const PetscInt *, cudaStream_t);
  int         Room(LaunchPlan) const;
  Sliced      Slice(const SpMVBatchOptions &, int n, const PetscInt *, std::vector<int> &) const;
  LaunchPlan  Plan(const SpMVBatchOptions &, int rows, int entries, Sliced) const;
  cudaError_t Finish(const SpMVBatchOptions &, Launch &, cudaStream_t);
};

namespace {

// The number of threads for a system: as many systems as fit on a multiprocessor are to have 32 warps
int Threads(const LaunchPlan &l, size_t all, int entries)
{
  const int rows = l.held ? (l.rows + l.cluster * WARP - 1) / (l.cluster * WARP) * WARP : l.rows,
            most = l.held ? std::min(TEAM_MOST, rows) : TEAM_MOST;
  int warps      = l.held ? std::max(1, (rows + HELD_ROWS * WARP - 1) / (HELD_ROWS * WARP)) : 1;
  while (warps * WARP < most && 32 * (l.Bytes() + 1024) > warps * all && warps * WARP < std::max(rows, entries / 4))
    warps *= 2;
  return std::min(warps * WARP, most > WARP ? most : WARP);
}

} // namespace

// Appends the slices of a system: the shift with which threads need least time, the rows in order (n: none), and the
// slices
Sliced _n_SpMVCudaBatch::Slice(const SpMVBatchOptions &o, int n, const PetscInt *i, std::vector<int> &slices) const
{
  const size_t     at   = slices.size();
  long long        best = -1, longest = 0;
  std::vector<int> order(n), steps, now;
  if ((o.method != SPMV_BATCH_CG && o.method != SPMV_BATCH_BCGS) || n > HELD_ROWS * TEAM_MOST * clusters) return {};
  const int blocks = (n + WARP - 1) / WARP; // of 32 rows
  for (int r = 0; r < n; r++) order[r] = r;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return i[a + 1] - i[a] > i[b + 1] - i[b]; });
  slices.push_back(0);
  // the first of the sorted rows that are in slice l of a block: each block has long rows and short ones
  auto first = [&](int b, int l, int lanes) { return (l * blocks + (l % 2 ? blocks - 1 - b : b)) * (WARP / lanes); };
  for (int shift = 0; shift <= 5; shift++) {
    const int lanes = 1 << shift;
    long long all = 0, most = 0; // steps of all blocks, and of the longest one
    now.clear();
    for (int b = 0; b < blocks; b++) {
      const long long before = all;
      for (int l = 0; l < lanes; l++) { // the first row of a slice is its longest one
        const int r = first(b, l, lanes);
        now.push_back(r < n ? (int)((i[order[r] + 1] - i[order[r]] + lanes - 1) >> shift) : 0);
        all += now.back();
      }
      most = std::max(most, all - before);
    }
    // reads of shared memory, exchanges, and what the other warps wait for
    const long long cost = 5 * all + 4LL * shift * blocks * lanes + 10 * most + lanes * (20 + 10 * shift);
    if (best >= 0 && cost >= best) continue;
    best       = cost;
    longest    = most;
    slices[at] = shift;
    steps      = now;
  }
  // a few long rows: their warp would take longer than all threads of the thread block, which the other kernels let
  // multiply a row
  if (longest > LONGEST && n * (long long)(i[order[0] + 1] - i[order[0]]) > 4 * (long long)(i[n] - i[0])) {
    slices.resize(at);
    return {};
  }
  for (int place = 0; place < blocks * WARP; place++) {
    const int lanes = 1 << slices[at], r = first(place / WARP, place % lanes, lanes) + place % WARP / lanes;
    slices.push_back(r < n ? order[r] : n);
  }
  for (int cluster = 1; cluster <= clusters; cluster *= 2) {
    long long begin[CLUSTER_MOST] = {}, most = 0;
    now.clear();
    for (size_t s = 0; s < steps.size(); s++) {
      const int rank = (int)(s >> slices[at]) % cluster;
      now.push_back((int)(begin[rank] | (long long)steps[s] << 16));
      most = std::max(most, begin[rank] += steps[s]);
    }
    LaunchPlan l = {};
    l.held       = true;
    l.rows       = n;
    l.entries    = (int)std::min(most * WARP, (long long)INT_MAX);
    if (n > HELD_ROWS * TEAM_MOST * cluster || l.Bytes() > this->most) continue;
    slices.insert(slices.end(), now.begin(), now.end());
    return {cluster, l.entries};
  }
  slices.resize(at);
  return {};
}

// Entries that fit in shared memory next to the vectors
int _n_SpMVCudaBatch::Room(LaunchPlan l) const
{
  l.entries = 0;
  return (int)((most - l.Bytes()) / (sizeof(Scalar) + sizeof(uint16_t))) & ~(WARP - 1);
}

// How a system would be solved if it were alone
LaunchPlan _n_SpMVCudaBatch::Plan(const SpMVBatchOptions &o, int rows, int entries, Sliced sliced) const
{
  LaunchPlan l = {};
  l.rows       = rows;
  l.words      = SpMVBatchWords(&o, (size_t)rows);
  l.threads    = TEAM_MOST;
  l.cluster    = sliced.cluster;
  l.held       = l.cluster > 0; // without all slices it would be slower
  l.entries    = sliced.entries;
  l.near       = !l.held && o.method != SPMV_BATCH_LU && rows < 65536;
  if (l.near && l.Bytes() > most / 2) l.near = false;
  if (o.method == SPMV_BATCH_LU) {
    for (int size : DIRECT)
      if (!l.direct && rows <= size) l.direct = size;
    if (l.direct) l.threads = DirectThreads(l.direct);
  } else if (l.held || l.near) {
    if (l.near) l.entries = std::min(entries, Room(l));
    l.threads = Threads(l, (size_t)perprocessor, entries);
  }
  if (!l.held && !l.near) l.words += ((size_t)(rows + 1) * sizeof(int) + sizeof(Scalar) - 1) / sizeof(Scalar);
  l.global = !l.held && !l.near && l.words * sizeof(Scalar) > most;
  return l;
}

// Sizes of the launch, its lists on the device
cudaError_t _n_SpMVCudaBatch::Finish(const SpMVBatchOptions &o, Launch &l, cudaStream_t stream)
{
  const bool one = l.threads == WARP;
  l.kernel       = l.cluster > 1 ? cluster::Kernel(o.method)
                   : l.held      ? one ? heldwarp::Kernel(o.method) : held::Kernel(o.method)
                        : l.near ? one ? warp::Kernel(o.method) : near::Kernel(o.method)
                                 : away::Kernel(o.method, l.direct);
  if (l.near) l.entries = std::min(l.entries, Room(l));
  l.shared = l.Bytes();
  l.blocks = (int)l.systems.size() * std::max(1, l.cluster);
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
  if (o.method == SPMV_BATCH_CG || o.method == SPMV_BATCH_BCGS) { // the query loads the kernel
    cudaFuncAttributes attributes;
    SPMV_TRY(cudaFuncGetAttributes(&attributes, cluster::Kernel(o.method)));
    clusters = attributes.ptxVersion >= 90 ? CLUSTER_MOST : 1; // the code that is used
  }
  most  = (size_t)perblock - (o.method == SPMV_BATCH_LU ? LU_SHARED : SUMS_SHARED);
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
  std::vector<int>    begins(n), lists;
  std::vector<Sliced> sliced(n);
  for (int p = 0; p < n; p++) {
    const PetscInt *now = i + first_[p], rows = first_[p + 1] - first_[p];
    begins[p] = (int)lists.size();
    if (p && rows == first_[p] - first_[p - 1]) { // the lengths of the rows are often those of the last system
      const PetscInt *last = i + first_[p - 1], by = now[0] - last[0];
      PetscInt        r = 0;
      while (r < rows && now[r + 1] - last[r + 1] == by) r++;
      if (r == rows) {
        begins[p] = begins[p - 1];
        sliced[p] = sliced[p - 1];
        continue;
      }
    }
    sliced[p] = Slice(o, (int)rows, now, lists);
    if (lists.size() > INT_MAX / 2) return cudaErrorNotSupported;
  }
  // the systems that need most come first, so that the last ones to end are short
  for (int p : order) {
    const int        rows = (int)(first_[p + 1] - first_[p]), entries = (int)(i[first_[p + 1]] - i[first_[p]]);
    const LaunchPlan one = Plan(o, rows, entries, sliced[p]);
    Launch          *l   = nullptr;
    for (auto &other : launches) {
      LaunchPlan both = *other;
      both.entries    = std::max(both.entries, one.entries);
      both.rows       = std::max(both.rows, one.rows);
      // a launch of few systems would not fill the device: smaller systems join it
      if (other->held == one.held && other->near == one.near && other->global == one.global &&
          !other->direct == !one.direct && other->cluster == one.cluster && (!one.held || both.Bytes() <= most) &&
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
  SPMV_TRY(Upload(slices, lists, stream));
  SPMV_TRY(Upload(where, begins, stream));
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
    const cudaError_t error = b->Create(*o, count, first, i, stream);
    if (error != cudaSuccess) (void)cudaStreamSynchronize(stream); // uploads; cudaFree() does not wait for a pool's
    SPMV_TRY(error);
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
    BatchArgs g                     = {};
    g.i                             = (const PetscInt *)A->i;
    g.j                             = (const PetscInt *)A->j;
    g.first                         = b->first;
    g.a                             = (const Scalar *)A->a;
    g.d                             = (const Scalar *)d;
    g.b                             = (const Scalar *)rhs;
    g.x                             = (Scalar *)x;
    g.memory                        = l->global ? (Scalar *)l->memory : nullptr;
    g.list                          = l->list;
    g.slices                        = b->slices;
    g.where                         = b->where;
    g.count                         = (int)l->systems.size();
    g.cluster                       = l->cluster;
    g.entries                       = l->entries;
    g.rows                          = l->rows;
    g.words                         = l->words;
    g.results                       = b->results;
    g.summary                       = b->summary;
    g.o                             = *o;
    void               *arguments[] = {&g};
    cudaLaunchAttribute attribute;
    cudaLaunchConfig_t  config = {};
    attribute.id               = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim   = {(unsigned)std::max(1, l->cluster), 1, 1};
    config.gridDim             = dim3((unsigned)l->blocks);
    config.blockDim            = dim3((unsigned)l->threads);
    config.dynamicSmemBytes    = l->shared;
    config.stream              = stream;
    config.attrs               = &attribute;
    config.numAttrs            = l->cluster > 1;
    ForgetErrors();
    SPMV_TRY(cudaLaunchKernelExC(&config, l->kernel, arguments));
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
