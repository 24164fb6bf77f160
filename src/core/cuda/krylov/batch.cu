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
constexpr int TEAM_MOST    = 512;  // threads
constexpr int HELD_ROWS    = 2;    // of a thread, see HELD
constexpr int SUMS_SHARED  = 5120; // the most bytes of static shared memory, for the sums of the warps
constexpr int CLUSTER_MOST = 4;    // thread blocks of a cluster
constexpr int LONGEST      = 100;  // entries of rows that a thread multiplies, see Slice()

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
#define LEADER (t->id == 0 && RANK(t) == 0)
#define EACH2(i, j, from, n)                                        \
  for (int j = (from) + t->id / WARP; j < (n); j += t->size / WARP) \
    for (int i = (from) + t->id % WARP; i < (n); i += WARP)

enum { BATCH_SUMS = 4 };

#include "batchdirect.cuh"

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
  bool   cut;                // held, with the places of the other pieces of rows
  int    cluster;            // thread blocks of a system, or 0
  int    direct, threads;    // direct: see Direct()
  size_t words;
  int    entries, rows; // rows: pieces with `held`

  // in shared memory
  size_t Bytes() const
  {
    const size_t e = (size_t)entries, r = (size_t)rows;
    if (held) return (r + e) * sizeof(Scalar) + e * sizeof(uint16_t) + (1 + cut) * (r + WARP) * sizeof(int);
    if (near) return (words + e) * sizeof(Scalar) + (r + 1) * sizeof(int) + e * sizeof(uint16_t);
    return (global ? 0 : words * sizeof(Scalar)) + DirectBytes(direct);
  }
  // makes room for the systems of another launch of this kind
  void Include(const LaunchPlan &other)
  {
    words   = std::max(words, other.words);
    entries = std::max(entries, other.entries);
    rows    = std::max(rows, other.rows);
    cut     = cut || other.cut;
  }
};

struct ClusterLaunch : cudaLaunchConfig_t {
  cudaLaunchAttribute attribute = {};

  ClusterLaunch(int cluster, int blocks, int threads, size_t shared) : cudaLaunchConfig_t()
  {
    attribute.id             = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {(unsigned)cluster, 1, 1};
    gridDim                  = dim3((unsigned)blocks);
    blockDim                 = dim3((unsigned)threads);
    dynamicSmemBytes         = shared;
    attrs                    = &attribute;
    numAttrs                 = cluster > 1;
  }
};

struct Launch : LaunchPlan {
  int              blocks;
  std::vector<int> systems;
  const void      *kernel;
  Array<int>       list;
  Array<Scalar>    memory;
};

} // namespace

struct _n_SpMVCudaBatch {
  std::vector<std::unique_ptr<Launch>> launches;
  Array<PetscInt>                      first;
  Array<int>                           slices, where;     // see BatchArgs
  SpMVBatchResult                     *results = nullptr; // in pinned memory, which the kernels write to
  size_t                               most;              // dynamic shared memory of a thread block
  int                                  multiprocessors, perprocessor, perblock; // shared memory, too
  int                                  clusters = 1;                            // the largest one

  ~_n_SpMVCudaBatch()
  {
    if (results) cudaFreeHost(results);
  }
  cudaError_t Create(const SpMVBatchOptions &, int, const PetscInt *, const PetscInt *, cudaStream_t);
  LaunchPlan  Slice(const SpMVBatchOptions &, int n, const PetscInt *, std::vector<int> &) const;
  LaunchPlan  Plan(const SpMVBatchOptions &, int rows, int entries, LaunchPlan sliced) const;
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

// The slices of a system: its pieces, the longest ones first, and how many threads multiply each
struct Slicing {
  struct Piece {
    int row, number, length;
  };
  std::vector<Piece> pieces;
  std::vector<int>   steps; // of the slices
  int                cut, shift, blocks;
  long long          cost = -1, most = 0; // most: steps of the longest block

  // Pieces of up to `cut` entries
  Slicing(int n, const PetscInt *i, int cut_) : cut(cut_)
  {
    int longest = 0;
    for (int r = 0; r < n; r++) {
      const int length = (int)(i[r + 1] - i[r]);
      longest          = std::max(longest, length);
      for (int number = 0; !number || number * cut < length; number++)
        pieces.push_back({r, number, std::min(cut, length - number * cut)});
    }
    std::stable_sort(pieces.begin(), pieces.end(), [](const Piece &a, const Piece &b) { return a.length > b.length; });
    blocks                  = ((int)pieces.size() + WARP - 1) / WARP; // of 32 pieces
    const long long  adding = cut < INT_MAX ? 100 + 20 * (longest / cut) + (long long)pieces.size() - n : 0;
    std::vector<int> now;
    for (int s = 0; s <= 5; s++) {
      const int lanes = 1 << s;
      long long all = 0, longer = 0; // steps of all blocks, and of the longest one
      now.clear();
      for (int b = 0; b < blocks; b++) {
        const long long before = all;
        for (int l = 0; l < lanes; l++) { // the first piece of a slice is its longest one
          const size_t q = First(b, l, lanes);
          now.push_back(q < pieces.size() ? (pieces[q].length + lanes - 1) >> s : 0);
          all += now.back();
        }
        longer = std::max(longer, all - before);
      }
      // reads of shared memory, exchanges, and what the other warps wait for
      const long long c = adding + 5 * all + 4LL * s * blocks * lanes + 10 * longer + lanes * (20 + 10 * s);
      if (cost >= 0 && c >= cost) continue;
      cost  = c;
      most  = longer;
      shift = s;
      steps = now;
    }
  }
  // The first of the pieces that are in slice l of a block: each block has long ones and short ones
  size_t First(int b, int l, int lanes) const
  {
    return (size_t)((l * blocks + (l % 2 ? blocks - 1 - b : b)) * (WARP / lanes));
  }
};

} // namespace

// Appends the slices of a system: shift, cut, blocks, the pieces in order, the slices, and where the other pieces are.
// `held` of the plan: there are slices, without all of them it would be slower
LaunchPlan _n_SpMVCudaBatch::Slice(const SpMVBatchOptions &o, int n, const PetscInt *i, std::vector<int> &slices) const
{
  if ((o.method != SPMV_BATCH_CG && o.method != SPMV_BATCH_BCGS) || n > HELD_ROWS * TEAM_MOST * clusters) return {};
  int longest = 0;
  for (int r = 0; r < n; r++) longest = std::max(longest, (int)(i[r + 1] - i[r]));
  Slicing best(n, i, INT_MAX);
  // a few long rows, for which the others would wait, are cut
  if (n * (long long)longest > 4 * (long long)(i[n] - i[0])) {
    for (int cut = WARP; cut < longest; cut *= 2) {
      Slicing s(n, i, cut);
      if (s.cost < best.cost && (int)s.pieces.size() <= HELD_ROWS * TEAM_MOST * std::min(clusters, 2))
        best = std::move(s);
    }
    if (best.cut == INT_MAX && best.most > LONGEST) return {}; // the other kernels let all threads multiply a row
  }
  const int        lanes = 1 << best.shift, count = (int)best.pieces.size();
  std::vector<int> now, tails(n + 1); // the first of a row's other pieces
  for (int r = 0; r < n; r++) tails[r + 1] = tails[r] + std::max(0, (int)(i[r + 1] - i[r]) - 1) / best.cut;
  // the products of a larger cluster with pieces took longer than with the rows where they are
  for (int cluster = 1; cluster <= std::min(clusters, best.cut < INT_MAX ? 2 : CLUSTER_MOST); cluster *= 2) {
    long long begin[CLUSTER_MOST] = {}, most = 0;
    now.clear();
    for (size_t s = 0; s < best.steps.size(); s++) {
      const int rank = (int)(s >> best.shift) % cluster;
      now.push_back((int)(begin[rank] | (long long)best.steps[s] << 16));
      most = std::max(most, begin[rank] += best.steps[s]);
    }
    LaunchPlan l = {};
    l.held       = true;
    l.cluster    = cluster;
    l.cut        = best.cut < INT_MAX;
    l.rows       = count;
    l.entries    = (int)std::min(most * WARP, (long long)INT_MAX);
    if (count > HELD_ROWS * TEAM_MOST * cluster || l.Bytes() > this->most) continue;
    slices.insert(slices.end(), {best.shift, best.cut, best.blocks});
    std::vector<int> others;
    for (int place = 0; place < best.blocks * WARP; place++) {
      const size_t q  = best.First(place / WARP, place % lanes, lanes) + (size_t)(place % WARP / lanes);
      const bool   is = q < best.pieces.size();
      const int    r = is ? best.pieces[q].row : 0, number = is ? best.pieces[q].number : 0;
      slices.push_back(is ? r | number << 16 : -1);
      others.push_back(!is ? 0 : number ? tails[r] + number - 1 : tails[r] | (tails[r + 1] - tails[r]) << 16);
    }
    slices.insert(slices.end(), now.begin(), now.end());
    if (best.cut < INT_MAX) slices.insert(slices.end(), others.begin(), others.end());
    return l;
  }
  return {};
}

// How a system would be solved if it were alone
LaunchPlan _n_SpMVCudaBatch::Plan(const SpMVBatchOptions &o, int rows, int entries, LaunchPlan l) const
{
  l.words   = SpMVBatchWords(&o, (size_t)rows);
  l.threads = TEAM_MOST;
  if (!l.held) {
    l.rows = rows;
    if (o.method == SPMV_BATCH_GMRES) { // more vectors than entries: others share the multiprocessor
      l.near    = (size_t)entries * (sizeof(Scalar) + sizeof(uint16_t)) <= l.words * sizeof(Scalar);
      l.entries = entries;
      if (l.Bytes() > most / 2) l.near = false;
    } else if (o.method != SPMV_BATCH_LU && rows < 65536) { // as many entries as have room
      l.near = true;
      if (l.Bytes() > most / 2)
        l.near = false;
      else
        l.entries = std::min(entries, (int)((most - l.Bytes()) / (sizeof(Scalar) + sizeof(uint16_t))) & ~(WARP - 1));
    }
  }
  if (!l.held && !l.near) {
    l.entries = 0;
    l.words += ((size_t)(rows + 1) * sizeof(int) + sizeof(Scalar) - 1) / sizeof(Scalar);
    for (int size : DIRECT)
      if (o.method == SPMV_BATCH_LU && !l.direct && rows <= size) l.direct = size;
    l.words += l.words % 2; // pairs follow
    l.global = l.Bytes() > most;
  }
  if (l.direct)
    l.threads = DirectThreads(l.direct);
  else if (o.method != SPMV_BATCH_LU && !l.global)
    l.threads = Threads(l, (size_t)perprocessor, entries);
  return l;
}

// Sizes of the launch, its lists on the device
cudaError_t _n_SpMVCudaBatch::Finish(const SpMVBatchOptions &o, Launch &l, cudaStream_t stream)
{
  const bool one = l.threads == WARP;
  l.kernel       = l.cluster > 1 ? cluster::Kernel(o.method)
                   : l.held      ? one ? heldwarp::Kernel(o.method) : held::Kernel(o.method)
                        : l.near ? near::Kernel(o.method)
                                 : away::Kernel(o.method, l.direct);
  l.blocks       = (int)l.systems.size() * std::max(1, l.cluster);
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
    const void        *kernel = cluster::Kernel(o.method);
    SPMV_TRY(cudaFuncGetAttributes(&attributes, kernel));
    const int room = perblock - (int)attributes.sharedSizeBytes;
    SPMV_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, room));
    if (attributes.ptxVersion >= 90) clusters = CLUSTER_MOST;                   // the code that is used
    for (int active = 0; clusters > 1 && !active; clusters /= active ? 1 : 2) { // a part of a GPU may have no room
      ClusterLaunch config(clusters, clusters, TEAM_MOST, (size_t)room);
      if (cudaOccupancyMaxActiveClusters(&active, kernel, &config) != cudaSuccess) active = 0;
      ForgetErrors();
    }
  }
  most = (size_t)perblock - SUMS_SHARED;
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
  std::vector<int>        begins(n), lists;
  std::vector<LaunchPlan> sliced(n);
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
      both.Include(one);
      // a launch of few systems would not fill the device: smaller systems join it
      if (other->held == one.held && other->near == one.near && other->global == one.global &&
          !other->direct == !one.direct && other->cluster == one.cluster &&
          ((!one.held && !one.near) || both.Bytes() <= most) &&
          (other->threads == one.threads
               ? other->direct >= one.direct
               : (int)other->systems.size() < 4 * multiprocessors && other->threads > one.threads))
        l = other.get();
    }
    if (!l) {
      launches.push_back(std::unique_ptr<Launch>(new Launch{one}));
      l = launches.back().get();
    }
    l->Include(one);
    l->systems.push_back(p);
  }
  for (auto &l : launches) SPMV_TRY(Finish(o, *l, stream));
  const std::vector<PetscInt> firsts(first_, first_ + n + 1);
  SPMV_TRY(cudaHostAlloc((void **)&results, ((size_t)n + 1) * sizeof(*results), cudaHostAllocDefault));
  SPMV_TRY(Upload(slices, lists, stream));
  SPMV_TRY(Upload(where, begins, stream));
  SPMV_TRY(Upload(first, firsts, stream));
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
  for (auto &l : b->launches) {
    BatchArgs g               = {};
    g.i                       = (const PetscInt *)A->i;
    g.j                       = (const PetscInt *)A->j;
    g.first                   = b->first;
    g.a                       = (const Scalar *)A->a;
    g.d                       = (const Scalar *)d;
    g.b                       = (const Scalar *)rhs;
    g.x                       = (Scalar *)x;
    g.memory                  = l->global ? (Scalar *)l->memory : nullptr;
    g.list                    = l->list;
    g.slices                  = b->slices;
    g.where                   = b->where;
    g.count                   = (int)l->systems.size();
    g.cluster                 = l->cluster;
    g.entries                 = l->entries;
    g.rows                    = l->rows;
    g.words                   = l->words;
    g.results                 = b->results;
    g.o                       = *o;
    void         *arguments[] = {&g};
    ClusterLaunch config(std::max(1, l->cluster), l->blocks, l->threads, l->Bytes());
    config.stream = stream;
    ForgetErrors();
    SPMV_TRY(cudaLaunchKernelExC(&config, l->kernel, arguments));
  }
  return cudaSuccess;
}

cudaError_t SpMVCudaBatchGetResults(SpMVCudaBatch b, const SpMVBatchResult **results, cudaStream_t stream)
{
  *results = b->results;
  return cudaStreamSynchronize(stream);
}

cudaError_t SpMVCudaBatchDestroy(SpMVCudaBatch *b)
{
  delete *b;
  *b = nullptr;
  return cudaSuccess;
}
