/*
  The team that solves a system of a batch, and its kernel: included once for each kind of team, in a namespace of its
  own, with
    TEAM_WARP  the team is a thread block of one warp
    HELD       each thread holds its entries of the vectors in registers (HELD_ROWS), and the matrix is copied to shared
               memory in slices
    TEAM_CLUSTER  HELD, and the team is a cluster of thread blocks: each has a part of the rows. All write to the copy
               that each has of the vector that is multiplied, and of the sums
    TEAM_NEAR  the matrix is copied to shared memory as it is; unless TEAM_WARP, perhaps only a part of it: other rows
               are read where they are
  Without HELD and TEAM_NEAR the matrix is not copied, and LU is one of the methods
*/

struct Team {
  int        id, size;
  PetscReal *partial; // sums of all warps of the team: two turns of BATCH_SUMS for each
  int        turn;
#if TEAM_CLUSTER
  int rank, ranks;
#endif
#if HELD
  int row[HELD_ROWS]; // n: none
#endif
};

static __device__ __forceinline__ void Sync(Team *)
{
  if (TEAM_WARP)
    __syncwarp();
  else if (TEAM_CLUSTER)
    ClusterSync();
  else
    __syncthreads();
}

#if TEAM_CLUSTER
  #define RANK(t)     ((t)->rank)
  #define RANKS(t)    ((t)->ranks)
  #define AT(p, rank) AtRank(p, rank)
#else
  #define RANK(t)     0
  #define RANKS(t)    1
  #define AT(p, rank) (p)
#endif
#define HAS_LU (!HELD && !TEAM_NEAR)

#if HELD
  #define EACH(k, n) _Pragma("unroll") for (int k = 0; k < ((void)(n), HELD_ROWS); k++)
  #define ROW(k)     t->row[k]
  #define RHS(s, k)  (ROW(k) < (s)->n ? Read((s)->b + ROW(k)) : Num::zero())
// an entry beyond the last row stays 0
struct Vector {
  Scalar                             entry[HELD_ROWS];
  __device__ __forceinline__ Scalar &operator[](int k)
  {
    return entry[k];
  }
  __device__ __forceinline__ Scalar operator[](int k) const
  {
    return entry[k];
  }
};
using In  = const Vector &;
using Out = Vector &;
  #define VECTOR(v, s, q) Vector v

/*
  Slices: 2^shift threads multiply a row. A block of 32 rows has 2^shift slices: the first has those that are the first
  of each 2^shift rows, and so on; their lengths are about the same. A slice has the entries for its first 32 threads,
  then those for the second time, and so on; zeros fill it up. The thread blocks of a cluster take blocks in turn
*/
struct Matrix {
  int             n, shift;
  const unsigned *slices; // where each begins, in units of 32 entries, and from bit 16 on how many
  Scalar         *a;      // in shared memory
  uint16_t       *j;
  Scalar         *x;
};

// The place of entry k of a thread among the rows
static __device__ __forceinline__ int Place(const Team *t, int k)
{
  return ((k * t->size + t->id) / WARP * RANKS(t) + RANK(t)) * WARP + t->id % WARP;
}

// y = A B x if `on`; z = |A| |x|. The vector in shared memory may be overwritten after the next Sync()
template <bool SIZES>
static __device__ __forceinline__ void Product(Team *t, const Matrix *A, bool on, In d, In x, Out y, Out z)
{
  const int lanes = 1 << A->shift, lane = t->id & (lanes - 1);
  if (TEAM_WARP) Sync(t);
  EACH(k, A->n)
  for (int rank = 0; rank < RANKS(t) && ROW(k) < A->n; rank++) AT(A->x, rank)[ROW(k)] = on ? d[k] * x[k] : x[k];
  Sync(t);
  EACH(k, A->n)
  {
    const int place = Place(t, k);
    y[k]            = Num::zero();
    if (SIZES) z[k] = Num::zero();
    if ((place & ~(WARP - 1)) >= A->n) continue;
    for (int l = 0; l < lanes; l++) {
      const unsigned slice = A->slices[place / WARP * lanes + l];
      const int      begin = (int)(slice & 0xffff) * WARP + t->id % WARP, end = begin + (int)(slice >> 16) * WARP;
      Scalar         sum  = Num::zero();
      PetscReal      size = 0;
  #pragma unroll 4
      for (int e = begin; e < end; e += WARP) {
        const Scalar v = A->a[e], w = A->x[A->j[e]];
        sum = Num::fma(v, w, sum);
        if (SIZES) size += Magnitude(v) * Magnitude(w);
      }
      for (int by = lanes / 2; by; by /= 2) {
        sum = Num::add(sum, Num::exchange(sum, by));
        if (SIZES) size += Traits<PetscReal>::exchange(size, by);
      }
      if (lane != l || ROW(k) >= A->n) continue;
      y[k] = sum;
      if (SIZES) z[k] = MakeScalar(size, 0);
    }
  }
}
  #define Multiply(t, s, on, v, y)         Product<false>(t, (s)->A, on, (s)->d, v, y, y)
  #define MultiplySizes(t, s, v, y, sizes) Product<true>(t, (s)->A, false, (s)->d, v, y, sizes)
#else
  #define EACH(k, n)      for (int k = t->id; k < (n); k += t->size)
  #define RHS(s, k)       Read((s)->b + (k))
  #define VECTOR(v, s, q) Scalar *v = (s)->work + (q) * (s)->n
using Vector = Scalar *;
using In     = const Scalar *;
using Out    = Scalar *;

struct Matrix {
  int                   n, shift; // 2^shift threads multiply a row
  const int            *i;
  const Scalar         *a; // in shared memory: the rows that end before entry `near`
  const uint16_t       *j;
  int                   near;
  const Scalar         *values; // where they are: all rows
  const PetscInt       *columns;
  PetscInt              first;
  mutable const Scalar *dense; // a copy of the matrix, column by column, or NULL
};
#endif

// Several sums share the exchanges: each sum ends in eight lanes
static __device__ __forceinline__ void Sums(Team *t, int count, PetscReal *s)
{
  using T = Traits<PetscReal>;
  static_assert(BATCH_SUMS == 4 && WARP == 32, "");
  const int lane = t->id % WARP, lanes = count == 1 ? WARP : WARP / BATCH_SUMS;
  PetscReal v = s[0];
  if (count > 1) {
    const bool      upper = lane & 16, odd = lane & 8;
    const PetscReal a = (upper ? s[2] : s[0]) + T::exchange(upper ? s[0] : s[2], 16),
                    b = (upper ? s[3] : s[1]) + T::exchange(upper ? s[1] : s[3], 16);
    v                 = (odd ? b : a) + T::exchange(odd ? a : b, 8);
  }
#pragma unroll
  for (int by = lanes / 2; by; by /= 2) v += T::exchange(v, by);
  if (!TEAM_WARP) {
    const int  each = t->size / WARP, warps = each * RANKS(t);
    PetscReal *p = t->partial + t->turn * BATCH_SUMS * warps; // the next sums use the other half
    t->turn ^= 1;
    if (lane % lanes < RANKS(t)) AT(p, lane % lanes)[lane / lanes * warps + RANK(t) * each + t->id / WARP] = v;
    Sync(t);
    v = 0;
    for (int w = lane % lanes; w < warps; w += lanes) v += p[lane / lanes * warps + w];
#pragma unroll
    for (int by = lanes / 2; by; by /= 2) v += T::exchange(v, by);
  }
#pragma unroll
  for (int k = 0; k < BATCH_SUMS; k++)
    if (k < count) s[k] = T::shfl(v, k * lanes);
}

#if !HELD
// Calls f(column, value) for every `step`th entry of a row
template <class F> static __device__ __forceinline__ void EachOfRow(const Matrix *A, int r, int first, int step, F f)
{
  const int end = A->i[r + 1];
  int       k   = A->i[r] + first;
  if (TEAM_NEAR && (TEAM_WARP || end <= A->near)) {
    for (; k < end; k += step) f((int)A->j[k], A->a[k]);
  } else {
  #pragma unroll 4
    for (; k < end; k += step) f((int)(A->columns[k] - A->first), Read(A->values + k));
  }
}

// z may be NULL
static __device__ __forceinline__ void Product(Team *t, const Matrix *A, const Scalar *x, Scalar *y, Scalar *z)
{
  const bool dense = !TEAM_NEAR && A->dense; // a thread multiplies a row
  const int  shift = dense ? 0 : A->shift, lanes = 1 << shift, lane = t->id & (lanes - 1), n = A->n;
  Sync(t);
  for (int base = 0; base < n; base += t->size >> shift) {
    const int r    = base + (t->id >> shift);
    Scalar    sum  = Num::zero();
    PetscReal size = 0;
    auto      add  = [&](int c, Scalar v) {
      sum = Num::fma(v, x[c], sum);
      if (z) size += Magnitude(v) * Magnitude(x[c]);
    };
    if (r < n) {
      if (dense)
        for (int c = 0; c < n; c++) add(c, A->dense[c * n + r]);
      else
        EachOfRow(A, r, lane, lanes, add);
    }
    for (int by = lanes / 2; by; by /= 2) {
      sum = Num::add(sum, Num::exchange(sum, by));
      if (z) size += Traits<PetscReal>::exchange(size, by);
    }
    if (r < n && !lane) {
      y[r] = sum;
      if (z) z[r] = MakeScalar(size, 0);
    }
  }
  Sync(t);
}
#endif

#if HAS_LU
// NaN is larger than any number
static __device__ __forceinline__ void Larger(PetscReal v, int from, PetscReal *most, int *at)
{
  const bool nan = v != v, mine = *most != *most;
  if (nan == mine && !nan ? v > *most || (v == *most && from < *at) : nan && (!mine || from < *at)) {
    *most = v;
    *at   = from;
  }
}

static __device__ __forceinline__ void Largest(Team *t, PetscReal v, int *at)
{
  #pragma unroll
  for (int by = WARP / 2; by; by /= 2)
    Larger(Traits<PetscReal>::exchange(v, by), __shfl_xor_sync(ALL, *at, by), &v, at);
  if (TEAM_WARP) return;
  const int  warps = t->size / WARP;
  PetscReal *p     = t->partial + t->turn * BATCH_SUMS * warps;
  t->turn ^= 1;
  if (t->id % WARP == 0) {
    p[t->id / WARP]                    = v;
    ((int *)(p + warps))[t->id / WARP] = *at;
  }
  __syncthreads();
  for (int w = 0; w < warps; w++) Larger(p[w], ((int *)(p + warps))[w], &v, at);
}

// Each warp reads several rows at the same time
static __device__ __forceinline__ void MatrixDense(Team *t, const Matrix *A, int n, Scalar *a)
{
  constexpr int ROWS  = 4;
  A->dense            = nullptr;
  EACH(k, n * n) a[k] = Num::zero();
  Sync(t);
  for (int r = t->id / WARP * ROWS; r < n; r += t->size / WARP * ROWS) {
    int longest = 0;
    for (int q = r; q < min(r + ROWS, n); q++) longest = max(longest, A->i[q + 1] - A->i[q]);
    for (int k = t->id % WARP; k < longest; k += WARP) {
      Scalar v[ROWS];
      int    c[ROWS];
  #pragma unroll
      for (int q = 0; q < ROWS; q++) {
        const int at = r + q < n ? A->i[r + q] + k : 0;
        c[q]         = r + q < n && at < A->i[r + q + 1] ? (int)(A->columns[at] - A->first) : -1;
        v[q]         = c[q] < 0 ? Num::zero() : Read(A->values + at);
      }
  #pragma unroll
      for (int q = 0; q < ROWS; q++)
        if (c[q] >= 0) a[c[q] * n + r + q] = v[q];
    }
  }
  Sync(t);
}

template <int ROWS, class System> static __device__ __forceinline__ int Eliminate(Team *t, System *s)
{
  using E = Elimination<ROWS>;
  __shared__ typename E::Shared shared;
  const int                     n = s->n;
  E                             e(n, shared);
  Scalar *const                 dense = s->work + n;
  MatrixDense(t, s->A, n, dense);
  s->A->dense = dense;
  #pragma unroll
  for (int a = 0; a < E::TI; a++) {
    const int row = e.i + E::SI * a;
  #pragma unroll
    for (int b = 0; b < E::TJ; b++) {
      const int column = e.j + E::SJ * b;
      e.tile[a][b]     = row < n && column < n ? dense[column * n + row] : Num::zero();
    }
  }
  EACH(k, n) shared.y[k] = s->r[k];
  if (!e.Steps()) return SPMV_BATCH_SINGULAR;
  Sync(t);
  EACH(k, n) s->x[k] = s->x[k] + shared.y[shared.order[k]] / shared.pivot[k];
  return 0;
}

template <int K = 0, class System> static __device__ __forceinline__ int Direct(Team *t, System *s, int rows)
{
  constexpr int ROWS = DIRECT[K];
  if (rows == ROWS) return Eliminate<ROWS>(t, s);
  if constexpr (K + 1 < DIRECTS) return Direct<K + 1>(t, s, rows);
  return 0;
}
#endif

#include "core/batch/batchmethods.h"

#if HELD
// Copies 32 rows from `place` on to their slices; LANES threads read a row
static __device__ __forceinline__ void CopyRows(Team *t, const BatchArgs &g, PetscInt row, const int *order, int place,
                                                const Matrix *A)
{
  constexpr int LANES = 4;
  const int     lane = t->id % WARP, lanes = 1 << A->shift;
  for (int first = 0; first < WARP; first += WARP / LANES) {
    const int      at = first + lane / LANES, r = order[place + at];
    const PetscInt begin = r < A->n ? g.i[row + r] : 0, count = r < A->n ? g.i[row + r + 1] - begin : 0;
    const unsigned slice = A->slices[place / WARP * lanes + at % lanes];
    const int      to = (int)(slice & 0xffff) * WARP + (at & ~(lanes - 1)), end = (int)(slice >> 16) << A->shift;
  #pragma unroll 4
    for (int e = lane % LANES; e < end; e += LANES) {
      const bool   is = e < count;
      const Scalar v  = is ? Read(g.a + begin + e) : Num::zero();
      const int    c = is ? (int)(g.j[begin + e] - row) : 0, q = to + (e >> A->shift) * WARP + (e & (lanes - 1));
      if (is && c == r) A->x[r] = v;
      A->a[q] = v;
      A->j[q] = (uint16_t)c;
    }
  }
}

// The system in shared memory: a vector, the entries, the slices. The vector is first the diagonal
static __device__ __forceinline__ void Load(Team *t, const BatchArgs &g, int p, PetscInt row, Matrix *A, System *s)
{
  const int *from = g.slices + g.where[p], *order = from + 1, n = A->n, shift = from[0], blocks = (n + WARP - 1) / WARP;
  Scalar    *a      = (Scalar *)spmv_shared + g.rows;
  uint16_t  *j      = (uint16_t *)(a + g.entries);
  unsigned  *slices = (unsigned *)(j + g.entries);
  *A                = {n, shift, slices, a, j, (Scalar *)spmv_shared};
  for (int k = t->id; k < blocks << shift; k += t->size) slices[k] = (unsigned)order[blocks * WARP + k];
  EACH(k, n)
  {
    const int place = Place(t, k);
    ROW(k)          = place < blocks * WARP ? order[place] : n;
    if (ROW(k) < n) A->x[ROW(k)] = Num::zero();
  }
  Sync(t);
  EACH(k, n)
  {
    const int place = Place(t, k) & ~(WARP - 1);
    if (place < n) CopyRows(t, g, row, order, place, A);
  }
  Sync(t);
  EACH(k, n)
  {
    const bool   is = ROW(k) < n;
    const Scalar d  = is ? A->x[ROW(k)] : Num::zero();
    s->x[k]         = is && g.o.guess ? Read(g.x + row + ROW(k)) : Num::zero();
    s->d[k]         = IsZero(d) ? MakeScalar(1, 0) : Divided(MakeScalar(1, 0), d);
    if (is && g.d) s->d[k] = Read(g.d + row + ROW(k));
  }
  Sync(t);
}
#else
static __device__ __forceinline__ void Load(Team *t, const BatchArgs &g, int, PetscInt row, Matrix *A, System *s)
{
  const int      n       = A->n;
  const PetscInt base    = g.i[row];
  const int      entries = (int)(g.i[row + n] - base);
  #if TEAM_NEAR
  Scalar        *memory = (Scalar *)spmv_shared, *a = memory + g.words;
  int           *offsets = (int *)(a + g.entries);
  uint16_t      *columns = (uint16_t *)(offsets + g.rows + 1);
  A->near                = min(entries, g.entries);
  for (int k = t->id; k < A->near; k += t->size) {
    a[k]       = Read(g.a + base + k);
    columns[k] = (uint16_t)(g.j[base + k] - row);
  }
  A->a = a;
  A->j = columns;
  #else
  Scalar *memory  = g.memory ? g.memory + (size_t)blockIdx.x * g.words : (Scalar *)spmv_shared;
  int    *offsets = (int *)(memory + g.words) - (g.rows + 1); // g.words has room for them
  #endif
  for (int k = t->id; k <= n; k += t->size) offsets[k] = (int)(g.i[row + k] - base);
  A->i       = offsets;
  A->values  = g.a + base;
  A->columns = g.j + base;
  A->first   = row;
  A->shift   = RowShift(n, entries, t->size);
  s->x       = memory;
  s->r       = memory + n;
  s->d       = s->r + n;
  s->h       = s->d + (s->pc ? n : 0);
  s->work    = s->h + (SPMV_BATCH_NEEDS(&g.o) ? n : 0);
  Sync(t);
  EACH(k, n)
  {
    s->x[k] = g.o.guess ? Read(g.x + row + k) : Num::zero();
    if (s->pc) s->d[k] = g.d ? Read(g.d + row + k) : Num::zero();
  }
  if (s->pc && !g.d) {
    EACH(r, n)
    EachOfRow(A, r, 0, 1, [&](int c, Scalar v) {
      if (r == c) s->d[r] = v;
    });
    EACH(k, n) s->d[k] = IsZero(s->d[k]) ? MakeScalar(1, 0) : Divided(MakeScalar(1, 0), s->d[k]);
  }
}
  #define ROW(k) (k)
#endif

// ROWS: see Direct()
template <int METHOD, int ROWS = 0>
static __global__ void __launch_bounds__(TEAM_WARP ? WARP
                                         : ROWS    ? DirectThreads(ROWS)
                                                   : TEAM_MOST,
                                         TEAM_WARP               ? HELD ? BLOCKS * 3 / 4 : BLOCKS
                                         : ROWS                  ? DirectBlocks(ROWS)
                                         : HELD && !TEAM_CLUSTER ? 2
                                                                 : 1) Solve(const __grid_constant__ BatchArgs g)
{
  __shared__ PetscReal partial[TEAM_WARP ? 1 : (TEAM_CLUSTER ? CLUSTER_MOST : 1) * 2 * BATCH_SUMS * TEAM_MOST / WARP];
  Team                 team = {(int)threadIdx.x, TEAM_WARP ? WARP : (int)blockDim.x, partial, 0}, *t = &team;
#if TEAM_CLUSTER
  team.ranks = g.cluster;
  team.rank  = (int)blockIdx.x % g.cluster;
#endif
  for (int q = (int)blockIdx.x / RANKS(t); q < g.count; q += (int)gridDim.x / RANKS(t)) {
    const int      p   = g.list[q];
    const PetscInt row = g.first[p];
    Matrix         A   = {};
    System         s   = {};
    A.n = s.n = (int)(g.first[p + 1] - row);
    s.A       = &A;
    s.b       = g.b + row;
    s.o       = &g.o;
    s.pc      = g.o.pc != SPMV_BATCH_NONE && METHOD != SPMV_BATCH_LU;
    s.left    = s.pc && g.o.left;
    s.right   = s.pc && !g.o.left;
    Load(t, g, p, row, &A, &s);
    SpMVBatchResult result;
    BatchSolve(t, &s, METHOD, ROWS, &result);
    EACH(k, s.n)
    if (ROW(k) < s.n) Write(g.x + row + ROW(k), s.x[k]);
    if (LEADER && !RANK(t)) Report(g, p, result);
    Sync(t);
  }
}

#if HAS_LU
template <int K = 0> static const void *Factor(int rows)
{
  if (rows == DIRECT[K]) return (const void *)Solve<SPMV_BATCH_LU, DIRECT[K]>;
  if constexpr (K + 1 < DIRECTS) return Factor<K + 1>(rows);
  return (const void *)Solve<SPMV_BATCH_LU>;
}
#endif

// rows: for Direct()
static const void *Kernel(SpMVBatchMethod method, int rows = 0)
{
  switch (method) {
  case SPMV_BATCH_CG: return (const void *)Solve<SPMV_BATCH_CG>;
  case SPMV_BATCH_BCGS: return (const void *)Solve<SPMV_BATCH_BCGS>;
#if !HELD
  case SPMV_BATCH_GMRES: return (const void *)Solve<SPMV_BATCH_GMRES>;
#endif
#if HAS_LU
  default: return Factor(rows);
#else
  default: return nullptr;
#endif
  }
}

#undef TEAM_WARP
#undef TEAM_CLUSTER
#undef RANK
#undef RANKS
#undef AT
#undef TEAM_NEAR
#undef HELD
#undef HAS_LU
#undef EACH
#undef ROW
#undef RHS
#undef VECTOR
#undef Multiply
#undef MultiplySizes
