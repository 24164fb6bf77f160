/*
  Aggregates. Every vertex has a priority; no two have the same. The roots are the vertices that a
  greedy algorithm would select, which visits them in descending order: a vertex is a root as soon as all vertices near
  it with a higher priority are known not to be, and none as soon as one near it is. In each round, all vertices find
  the highest mark of their neighborhood, and with it that of distance 2. Marks only rise to ROOT or fall to NONE, and a
  mark that is not up to date delays a decision but never changes it: a decided neighborhood is not read again.

  Priorities are hashes of the vertices' numbers, so that few rounds are needed. When aggregates are aggregated again,
  PETSc visits them in their own order, which gives more even ones. So do we for some rounds, enough for grids.
*/
#include "amg.cuh"

namespace spmv {
namespace {

// Marks of vertices: their priority as long as they are not decided
constexpr unsigned NONE = 0, ROOT = 0xffffffffu;
constexpr int      ROUNDS  = 8;   // between two looks at what is left
constexpr int      ORDERED = 256; // rounds in the order of the vertices, before what is left is in the order of hashes

__device__ inline unsigned Hash(int v)
{
  unsigned x = ~(unsigned)v; // which is neither of the numbers whose hashes are NONE and ROOT
  x          = (x ^ x >> 16) * 0x85ebca6bu;
  x          = (x ^ x >> 13) * 0xc2b2ae35u;
  return x ^ x >> 16;
}

struct Graph {
  int             n, lanes; // lanes that share a vertex
  bool            ordered;  // visited in the order of the vertices
  const PetscInt *i, *j;

  __device__ unsigned Priority(int v) const
  {
    return ordered ? ROOT - 1 - (unsigned)v : Hash(v);
  }

  __device__ int Vertex() const
  {
    return (int)min(Thread() / lanes, (int64_t)n); // n: none
  }
  // The largest f(c) over all neighbors c, or 0. All lanes of a warp call it
  template <class T, class F> __device__ T Largest(int v, bool look, F f) const
  {
    T most = 0;
    for (int64_t q = look ? i[v] + Thread() % lanes : 0; look && q < (int64_t)i[v + 1]; q += lanes) {
      const int c = (int)j[q];
      if (c != v) most = max(most, f(c));
    }
    for (int by = lanes / 2; by; by /= 2) most = max(most, __shfl_xor_sync(ALL, most, by));
    return most;
  }
};

// bs: rows of a vertex that may have entries outside; 0: they all have
__global__ void begin(Graph g, const PetscInt *outside, int bs, unsigned *mark, unsigned *top)
{
  const int v    = g.Vertex();
  unsigned  some = g.Largest<unsigned>(v, v < g.n, [](int) { return 1u; });
  if (v >= g.n || Thread() % g.lanes) return;
  if (outside && (!bs || outside[(v + 1) * (int64_t)bs] > outside[v * (int64_t)bs])) some = 1;
  mark[v] = top[v] = some ? g.Priority(v) : NONE;
}

// top[v]: the highest mark of v and its neighbors
__global__ void find_tops(Graph g, const unsigned *mark, unsigned *top)
{
  const int      v    = g.Vertex();
  const bool     open = v < g.n && top[v] != NONE && top[v] != ROOT;
  const unsigned most = g.Largest<unsigned>(v, open, [=](int c) { return mark[c]; });
  if (open && Thread() % g.lanes == 0) top[v] = max(most, mark[v]);
}

// left: counts the vertices that are still not decided; or NULL
__global__ void decide(Graph g, bool square, const unsigned *top, unsigned *mark, unsigned long long *left)
{
  const int      v    = g.Vertex();
  const unsigned own  = v < g.n ? mark[v] : NONE;
  const bool     open = own != NONE && own != ROOT;
  unsigned       most = g.Largest<unsigned>(v, open && square, [=](int c) { return top[c]; });
  bool           more = false;
  if (open && Thread() % g.lanes == 0) {
    most = max(most, top[v]);
    more = most != ROOT && most != own;
    if (!more) mark[v] = most == own ? ROOT : NONE;
  }
  if (left) Count(more, left);
}

__global__ void shuffle(int n, unsigned *mark)
{
  const int64_t v = Thread();
  if (v < n && mark[v] != NONE && mark[v] != ROOT) mark[v] = Hash((int)v);
}

__global__ void flag_roots(int n, const unsigned *mark, int64_t *number)
{
  const int64_t v = Thread();
  if (v <= n) number[v] = v < n && mark[v] == ROOT;
}

// root[v]: v itself, or the first of the roots next to it, or -1
__global__ void join_neighbors(Graph g, const unsigned *mark, int *root)
{
  const int      v    = g.Vertex();
  const bool     look = v < g.n && mark[v] != ROOT;
  const uint64_t best = g.Largest<uint64_t>(
      v, look, [=](int c) { return mark[c] == ROOT ? (uint64_t)g.Priority(c) << 32 | (unsigned)c : 0; });
  if (v < g.n && Thread() % g.lanes == 0) root[v] = !look ? v : best ? (int)(unsigned)best : -1;
}

// of[v]: the number of v's root; with square, or of the first of its neighbors' roots; or -1
__global__ void join(Graph g, bool square, const int *root, const int64_t *number, int *of)
{
  const int      v    = g.Vertex();
  const int      own  = v < g.n ? root[v] : -1;
  const uint64_t best = g.Largest<uint64_t>(v, square && v < g.n && own < 0, [=](int c) {
    return root[c] < 0 ? 0 : (uint64_t)g.Priority(root[c]) << 32 | (unsigned)root[c];
  });
  if (v >= g.n || Thread() % g.lanes) return;
  const int at = own >= 0 ? own : best ? (int)(unsigned)best : -1;
  of[v]        = at < 0 ? -1 : (int)number[at];
}

// ordered: aggregates are aggregated again
cudaError_t FindAggregates(const _n_SpMVCudaGraph &graph, const SpMVCudaCSR &csr, bool ordered, bool square,
                           cudaStream_t stream, Scratch<int> &of, int64_t *count)
{
  Scratch<unsigned>           mark(stream), top(stream);
  Scratch<int>                root(stream);
  Scratch<int64_t>            number(stream);
  Scratch<unsigned long long> total(stream);
  Graph                       g    = {(int)csr.m, 1, ordered, (const PetscInt *)csr.i, (const PetscInt *)csr.j};
  const int64_t               n    = csr.m;
  unsigned long long          left = 1;
  while (g.lanes < WARP && 4 * g.lanes * n < csr.nnz) g.lanes *= 2;
  const int64_t threads = n * g.lanes;
  SPMV_TRY(mark.Alloc(n));
  SPMV_TRY(top.Alloc(n));
  SPMV_TRY(root.Alloc(n));
  SPMV_TRY(number.Alloc(n + 1));
  SPMV_TRY(total.Alloc(1));
  SPMV_TRY(of.Alloc(n));
  SPMV_LAUNCH(threads, BLOCK, stream, begin, g, graph.outside, ordered ? 0 : graph.bs, (unsigned *)mark,
              (unsigned *)top);
  for (int round = 0; left; round += ROUNDS) {
    if (ordered && round == ORDERED) SPMV_LAUNCH(n, BLOCK, stream, shuffle, g.n, (unsigned *)mark);
    SPMV_TRY(total.Zero(stream));
    for (int k = 0; k < ROUNDS; k++) {
      SPMV_LAUNCH(threads, BLOCK, stream, find_tops, g, (const unsigned *)mark, (unsigned *)top);
      SPMV_LAUNCH(threads, BLOCK, stream, decide, g, square, (const unsigned *)top, (unsigned *)mark,
                  k == ROUNDS - 1 ? (unsigned long long *)total : nullptr);
    }
    SPMV_TRY(Fetch(&left, (const unsigned long long *)total, 1, stream));
  }
  SPMV_LAUNCH(n + 1, BLOCK, stream, flag_roots, g.n, (const unsigned *)mark, (int64_t *)number);
  SPMV_TRY(ExclusiveSum(number, n + 1, stream));
  SPMV_LAUNCH(threads, BLOCK, stream, join_neighbors, g, (const unsigned *)mark, (int *)root);
  SPMV_LAUNCH(threads, BLOCK, stream, join, g, square, (const int *)root, (const int64_t *)number, (int *)of);
  return Fetch(count, (const int64_t *)number + n, 1, stream);
}

// ------------------------------------------------------------------------------------------------ passes

__global__ void flag_members(int64_t n, const int *of, int64_t *before)
{
  const int64_t v = Thread();
  if (v <= n) before[v] = v < n && of[v] >= 0;
}

// The matrix with a 1 in the column of each vertex's aggregate
__global__ void list_members(int64_t n, const int *of, const int64_t *before, PetscInt *i, PetscInt *j)
{
  const int64_t v = Thread();
  if (v > n) return;
  i[v] = (PetscInt)before[v];
  if (v < n && of[v] >= 0) j[before[v]] = of[v];
}

__global__ void compose(int64_t n, const int *next, int *of)
{
  const int64_t v = Thread();
  if (v < n && of[v] >= 0) of[v] = next[of[v]];
}

__global__ void count_members(int64_t n, const int *of, int *size)
{
  const int64_t v = Thread();
  if (v < n && of[v] >= 0) atomicAdd(size + of[v], 1);
}

__global__ void find_largest(int64_t count, const int *size, const int64_t *members, int64_t *result)
{
  const int64_t g       = Thread();
  const int     largest = __reduce_max_sync(ALL, g < count ? size[g] : 0);
  if (threadIdx.x % WARP == 0) atomicMax((long long *)result, (long long)largest);
  if (g == 0) result[1] = *members;
}

// P^T G P, which the product keeps
class CoarseGraph {
public:
  ~CoarseGraph()
  {
    SpMVCudaSpGEMMDestroy(&product);
  }
  cudaError_t Make(const SpMVCudaCSR &graph, int64_t count, const int *of, const int64_t *before, cudaStream_t stream)
  {
    const PetscBool     transpose[3] = {PETSC_TRUE, PETSC_FALSE, PETSC_FALSE};
    const PetscInt     *i, *j;
    Scratch<PetscInt>   pi(stream), pj(stream);
    int64_t             members;
    SpMVCudaSpGEMMStats stats;
    SpMVCudaSpGEMM      next;
    SPMV_TRY(Fetch(&members, before + graph.m, 1, stream));
    SPMV_TRY(pi.Alloc(graph.m + 1));
    SPMV_TRY(pj.Alloc(members));
    SPMV_LAUNCH(graph.m + 1, BLOCK, stream, list_members, graph.m, of, before, (PetscInt *)pi, (PetscInt *)pj);
    const SpMVCudaCSR P         = {graph.m, count, members, (PetscInt *)pi, (PetscInt *)pj, sizeof(PetscInt), nullptr};
    const SpMVCudaCSR factor[3] = {P, graph, P};
    SPMV_TRY(SpMVCudaSpGEMMSymbolic(3, factor, transpose, 0, stream, &next));
    SpMVCudaSpGEMMDestroy(&product); // the graph may have been its result
    product = next;
    SpMVCudaSpGEMMGetStats(product, &stats);
    SpMVCudaSpGEMMPattern(product, &i, &j);
    csr = {count, count, stats.nonzeros, i, j, sizeof(PetscInt), nullptr};
    return cudaSuccess;
  }

  SpMVCudaCSR csr;

private:
  SpMVCudaSpGEMM product = nullptr;
};

cudaError_t CountMembers(_n_SpMVCudaAggregates &a, cudaStream_t stream)
{
  const int64_t    n = a.stats.vertices, count = a.stats.count;
  Scratch<int64_t> result(stream);
  int64_t          total[2];
  SPMV_TRY(a.size.Alloc(count));
  SPMV_TRY(a.size.Zero(stream));
  SPMV_TRY(result.Alloc(2));
  SPMV_TRY(result.Zero(stream));
  SPMV_LAUNCH(n, BLOCK, stream, count_members, n, (const int *)a.of, (int *)a.size);
  SPMV_LAUNCH(count + 1, BLOCK, stream, find_largest, count, (const int *)a.size, (const int64_t *)a.before + n,
              (int64_t *)result);
  SPMV_TRY(Fetch(total, (const int64_t *)result, 2, stream));
  a.stats.largest = total[0];
  a.stats.members = total[1];
  return cudaSuccess;
}

cudaError_t Aggregate(const _n_SpMVCudaGraph &graph, bool square, int k, cudaStream_t stream, _n_SpMVCudaAggregates &a)
{
  const int64_t n = a.stats.vertices = graph.csr.m;
  SpMVCudaCSR   csr                  = graph.csr;
  CoarseGraph   coarse;
  SPMV_TRY(a.before.Alloc(n + 1));
  for (int pass = 0; pass < k; pass++) {
    Scratch<int>     next(stream);
    Scratch<int64_t> before(stream);
    int64_t          count;
    SPMV_TRY(FindAggregates(graph, csr, pass > 0, square, stream, pass ? next : a.of, &count));
    a.stats.count = count;
    if (pass) SPMV_LAUNCH(n, BLOCK, stream, compose, n, (const int *)next, (int *)a.of);
    if (pass < k - 1) {
      SPMV_TRY(before.Alloc(csr.m + 1));
      SPMV_LAUNCH(csr.m + 1, BLOCK, stream, flag_members, csr.m, (const int *)(pass ? next : a.of), (int64_t *)before);
      SPMV_TRY(ExclusiveSum(before, csr.m + 1, stream));
      SPMV_TRY(coarse.Make(csr, count, pass ? next : a.of, before, stream));
      csr = coarse.csr;
    }
  }
  SPMV_LAUNCH(n + 1, BLOCK, stream, flag_members, n, (const int *)a.of, (int64_t *)a.before);
  SPMV_TRY(ExclusiveSum(a.before, n + 1, stream));
  SPMV_TRY(CountMembers(a, stream));
  a.stats.of = a.of;
  return cudaSuccess;
}

} // namespace
} // namespace spmv

using namespace spmv;

cudaError_t SpMVCudaAggregatesCreate(SpMVCudaGraph graph, PetscBool square, int k, cudaStream_t stream,
                                     SpMVCudaAggregates *aggregates)
{
  return Create(aggregates, stream, [&](_n_SpMVCudaAggregates &a) { return Aggregate(*graph, square, k, stream, a); });
}

cudaError_t SpMVCudaAggregatesDestroy(SpMVCudaAggregates *aggregates)
{
  delete *aggregates;
  *aggregates = nullptr;
  return cudaSuccess;
}

void SpMVCudaAggregatesGet(SpMVCudaAggregates aggregates, SpMVCudaAggregatesStats *stats)
{
  *stats = aggregates->stats;
}
