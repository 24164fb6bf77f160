/*
  The graph of strong connections: blocks become vertices, opposite edges are added, and weak edges are left out. What
  is not asked for, or makes no difference, is skipped.
*/
#include "amg.cuh"
#include "core/cuda/csr/csr.h"

namespace spmv {
namespace {

// A graph with weights of its edges: w, or the magnitudes of a, or, if both are NULL, none
struct Edges {
  int64_t          n;
  const PetscInt  *i, *j;
  const Scalar    *a;
  const PetscReal *w;

  __device__ PetscReal Weight(int64_t q) const
  {
    return w ? w[q] : Magnitude(Read(a + q));
  }
};

// ------------------------------------------------------------------------------------------------ blocks

/*
  Each row of a block row has a lane. They pass over its blocks together, in ascending order. With length, counts the
  blocks; otherwise writes their columns and, with w, their weights
*/
__global__ void collapse(int64_t vertices, int bs, int lanes, const PetscInt *i, const PetscInt *j, const Scalar *a,
                         int64_t *length, const PetscInt *to_i, PetscInt *to_j, PetscReal *w)
{
  const int64_t u    = Thread() / lanes;
  const int     lane = (int)(Thread() % lanes);
  const bool    own  = u < vertices && lane < bs;
  const int64_t end = own ? (int64_t)i[u * bs + lane + 1] : 0, begin = to_i && u < vertices ? (int64_t)to_i[u] : 0;
  int64_t       q = own ? (int64_t)i[u * bs + lane] : 0, to = begin;
  for (;;) {
    const int mine  = q < end ? (int)j[q] / bs : INT_MAX;
    int       block = mine;
    PetscReal sum   = 0;
    for (int by = lanes / 2; by; by /= 2) block = min(block, __shfl_xor_sync(ALL, block, by));
    if (__all_sync(ALL, block == INT_MAX)) break;
    for (; mine == block && q < end && (int)j[q] - block * bs < bs; q++) {
      if (w) sum += fabs(RealPart(Read(a + q)));
    }
    for (int by = lanes / 2; by && w; by /= 2) sum += __shfl_xor_sync(ALL, sum, by);
    if (to_j && lane == 0 && block != INT_MAX) {
      to_j[to] = block;
      if (w) w[to] = sum;
    }
    to += block != INT_MAX;
  }
  if (length && lane == 0 && u < vertices) length[u] = to - begin;
}

// ------------------------------------------------------------------------------------------------ opposite edges

__global__ void count_alone(Edges e, unsigned long long *total)
{
  const int64_t r     = Thread() / LANES;
  unsigned      alone = 0;
  for (int64_t q = r < e.n ? e.i[r] + Thread() % LANES : 0; r < e.n && q < (int64_t)e.i[r + 1]; q += LANES)
    alone += Position(e.i, e.j, e.j[q], r) < 0;
  Count(alone, total);
}

// The edges of a row of the graph or of its transpose, whose entries are those from[] of the graph
__global__ void merge(Edges e, const int *it, const int *jt, const int *from, int64_t *length, const PetscInt *to_i,
                      PetscInt *to_j, PetscReal *w)
{
  const int64_t r = Thread();
  if (r >= e.n) return;
  int64_t       p = e.i[r], q = it[r], to = to_i ? (int64_t)to_i[r] : 0, begin = to;
  const int64_t end = e.i[r + 1], end_t = it[r + 1];
  for (; p < end || q < end_t; to++) {
    const int     own = p < end ? (int)e.j[p] : INT_MAX, other = q < end_t ? jt[q] : INT_MAX;
    const int64_t at = p, at_t = q;
    p += own <= other;
    q += other <= own;
    if (to_j) to_j[to] = min(own, other);
    if (w) w[to] = (own <= other ? e.Weight(at) : 0) + (other <= own ? e.Weight(from[at_t]) : 0);
  }
  if (length) length[r] = to - begin;
}

// ------------------------------------------------------------------------------------------------ weak edges

__global__ void find_scales(Edges e, bool opposite, PetscReal *scale)
{
  const int64_t r = Thread();
  if (r >= e.n) return;
  const int64_t   p = Position(e.i, e.j, r, r);
  const PetscReal d = p < 0 ? 0 : e.Weight(p) * (opposite ? 2 : 1);
  scale[r]          = d != 0 ? sqrt(1 / d) : 0;
}

__global__ void filter(Edges e, bool opposite, const PetscReal *scale, PetscReal threshold, int64_t *length,
                       const PetscInt *to_i, PetscInt *to_j)
{
  const int64_t  r    = Thread() / LANES;
  const int      lane = threadIdx.x % LANES, first = threadIdx.x % WARP / LANES * LANES;
  const bool     own = r < e.n;
  const unsigned row = ((1u << LANES) - 1) << first, below = ((1u << lane) - 1) << first;
  int64_t        q = own ? e.i[r] + lane : 0, end = own ? (int64_t)e.i[r + 1] : 0;
  int64_t        begin = own && to_i ? (int64_t)to_i[r] : 0, to = begin;
  for (; __any_sync(ALL, q < end); q += LANES) {
    bool keep = false;
    if (q < end) {
      const int64_t c = e.j[q], back = opposite ? Position(e.i, e.j, c, r) : -1;
      const auto    weight = e.Weight(q) + (back < 0 ? 0 : e.Weight(back));
      keep                 = weight * (scale[r] * scale[c]) > threshold;
    }
    const unsigned kept = __ballot_sync(ALL, keep) & row;
    if (keep && to_j) to_j[to + __popc(kept & below)] = e.j[q];
    to += __popc(kept);
  }
  if (own && length && lane == 0) length[r] = to - begin;
}

class Builder {
public:
  Builder(_n_SpMVCudaGraph &graph, const SpMVCudaCSR &A, cudaStream_t stream)
      : graph(graph), stream(stream),
        w(stream), e{A.m, (const PetscInt *)A.i, (const PetscInt *)A.j, (const Scalar *)A.a, nullptr}, nnz(A.nnz)
  {
  }

  cudaError_t Collapse(int bs, bool weigh)
  {
    const Edges   from     = e;
    const int64_t vertices = e.n / bs;
    int           lanes    = 2;
    while (lanes < bs) lanes *= 2;
    e.n = vertices;
    return Replace(weigh, [&](int64_t *length, const PetscInt *i, PetscInt *j, PetscReal *weight) {
      SPMV_LAUNCH(vertices * lanes, BLOCK, stream, collapse, vertices, bs, lanes, from.i, from.j, from.a, length, i, j,
                  weight);
      return cudaSuccess;
    });
  }
  // *opposite: each edge has an opposite, whose weight is still to be added
  cudaError_t Symmetrize(bool weigh, bool *opposite)
  {
    Scratch<unsigned long long> total(stream);
    unsigned long long          alone;
    SPMV_TRY(total.Alloc(1));
    SPMV_TRY(total.Zero(stream));
    SPMV_LAUNCH(e.n * LANES, BLOCK, stream, count_alone, e, (unsigned long long *)total);
    SPMV_TRY(Fetch(&alone, (const unsigned long long *)total, 1, stream));
    *opposite = !alone;
    if (!alone) return cudaSuccess;
    Scratch<int> it(stream), jt(stream), from(stream);
    const Edges  old = e;
    if (nnz > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;
    SPMV_TRY(TransposeCSR({e.n, e.n, nnz, e.i, e.j, sizeof(PetscInt), nullptr}, stream, it, jt, from));
    return Replace(weigh, [&](int64_t *length, const PetscInt *i, PetscInt *j, PetscReal *weight) {
      SPMV_LAUNCH(old.n, BLOCK, stream, merge, old, (const int *)it, (const int *)jt, (const int *)from, length, i, j,
                  weight);
      return cudaSuccess;
    });
  }
  cudaError_t Filter(bool opposite, PetscReal threshold)
  {
    Scratch<PetscReal> scale(stream);
    const Edges        old = e;
    SPMV_TRY(scale.Alloc(e.n));
    SPMV_LAUNCH(e.n, BLOCK, stream, find_scales, old, opposite, (PetscReal *)scale);
    return Replace(false, [&](int64_t *length, const PetscInt *i, PetscInt *j, PetscReal *) {
      SPMV_LAUNCH(old.n * LANES, BLOCK, stream, filter, old, opposite, (const PetscReal *)scale, threshold, length, i,
                  j);
      return cudaSuccess;
    });
  }
  void Finish()
  {
    graph.csr = {e.n, e.n, nnz, e.i, e.j, sizeof(PetscInt), nullptr};
  }

private:
  // Replaces the edges by those that launch(length, i, j, w) makes, with length or with i and j
  template <class Launch> cudaError_t Replace(bool weigh, Launch launch)
  {
    Scratch<PetscInt>  i(stream), j(stream);
    Scratch<PetscReal> weight(stream);
    SPMV_TRY(MakePattern(e.n, i, j, stream, [&](int64_t *length, const PetscInt *to) {
      if (length) return launch(length, nullptr, nullptr, nullptr);
      if (weigh) SPMV_TRY(weight.Alloc(j.Size()));
      return launch(nullptr, to, (PetscInt *)j, (PetscReal *)weight);
    }));
    graph.i.Swap(i);
    graph.j.Swap(j);
    w.Swap(weight);
    nnz = (int64_t)graph.j.Size();
    e   = {e.n, graph.i, graph.j, nullptr, w};
    return cudaSuccess;
  }

  _n_SpMVCudaGraph  &graph;
  cudaStream_t       stream;
  Scratch<PetscReal> w;
  Edges              e;
  int64_t            nnz;
};

} // namespace
} // namespace spmv

using namespace spmv;

cudaError_t SpMVCudaGraphCreate(const SpMVCudaCSR *A, PetscInt bs, PetscBool symmetrize, PetscReal threshold,
                                const PetscInt *outside, cudaStream_t stream, SpMVCudaGraph *graph)
{
  return Create(graph, stream, [&](_n_SpMVCudaGraph &g) {
    const bool weigh    = threshold >= 0;
    bool       opposite = false;
    PetscBool  ascends  = PETSC_TRUE;
    if (A->m != A->n || A->m > SPMVCUDA_MAX_SIZE || A->index_bytes != sizeof(PetscInt) || bs < 1 || bs > WARP ||
        A->m % bs)
      return cudaErrorNotSupported;
    g.outside = outside;
    g.bs      = (int)bs;
    SPMV_TRY(SpMVCudaCSRAscends(A, stream, &ascends)); // the smoother, too, searches rows
    if (!ascends) return cudaErrorNotSupported;
    Builder builder(g, *A, stream);
    if (bs > 1) SPMV_TRY(builder.Collapse((int)bs, weigh));
    if (symmetrize) SPMV_TRY(builder.Symmetrize(weigh, &opposite));
    if (weigh) SPMV_TRY(builder.Filter(opposite, threshold));
    builder.Finish();
    return cudaSuccess;
  });
}

cudaError_t SpMVCudaGraphDestroy(SpMVCudaGraph *graph)
{
  delete *graph;
  *graph = nullptr;
  return cudaSuccess;
}

void SpMVCudaGraphGet(SpMVCudaGraph graph, SpMVCudaCSR *csr)
{
  *csr = graph->csr;
}
