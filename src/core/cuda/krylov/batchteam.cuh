/*
  The team that solves a system of a batch, and its kernel: included once for each kind of team, in a namespace of its
  own, with
    HELD       each thread holds its entries of the vectors in registers (HELD_ROWS), and the matrix is copied to shared
               memory in slices
    TEAM_WARP  HELD, and the team is a thread block of one warp
    TEAM_CLUSTER  HELD, and the team is a cluster of thread blocks: each has a part of the rows. All write to the copy
               that each has of the vector that is multiplied, and of the sums
    TEAM_NEAR  the matrix, or a part of it, is copied to shared memory as it is: other rows are read where they are
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
  int row[HELD_ROWS]; // from n on: another piece of a row, or NONE
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
  then those for the second time, and so on; zeros fill it up. The thread blocks of a cluster take blocks in turn.
  Long rows may be cut into pieces, which are then multiplied like rows: the sums of all but the first follow the vector
*/
constexpr int NONE = INT_MAX;
struct Matrix {
  int             n, shift, places;
  const unsigned *slices; // where each begins, in units of 32 entries, and from bit 16 on how many
  const unsigned *others; // of each place: where the row's other pieces begin, and from bit 16 on how many. NULL: none
  Scalar         *a;      // in shared memory
  uint16_t       *j;
  Scalar         *x;
};

// The place of entry k of a thread among the rows
static __device__ __forceinline__ int Place(const Team *t, int k)
{
  return ((k * t->size + t->id) / WARP * RANKS(t) + RANK(t)) * WARP + t->id % WARP;
}

// Adds the sums of the other pieces of each row
static __device__ __forceinline__ void AddPieces(Team *t, const Matrix *A, Out y)
{
  EACH(k, A->n)
  {
    if (ROW(k) < A->n || ROW(k) == NONE) continue;
    for (int rank = 0; rank < RANKS(t); rank++) AT(A->x, rank)[ROW(k)] = y[k];
    y[k] = Num::zero();
  }
  Sync(t);
  EACH(k, A->n)
  {
    if (ROW(k) >= A->n) continue;
    const unsigned others = A->others[Place(t, k)], begin = (unsigned)A->n + (others & 0xffff);
  #pragma unroll 4
    for (unsigned q = begin; q < begin + (others >> 16); q++) y[k] = Num::add(y[k], A->x[q]);
  }
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
    if ((place & ~(WARP - 1)) >= A->places) continue;
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
      if (lane != l || ROW(k) == NONE) continue;
      y[k] = sum;
      if (SIZES) z[k] = MakeScalar(size, 0);
    }
  }
  if (!A->others) return;
  AddPieces(t, A, y);
  if (!SIZES) return;
  Sync(t);
  AddPieces(t, A, z);
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
  if (TEAM_NEAR && end <= A->near) {
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
static __device__ __forceinline__ int Pivot(Team *t, const Scalar *column, int k, int n)
{
  unsigned  best  = 0; // the size, and 0xffff - row: there are fewer rows, as an int counts the entries
  const int warps = t->size / WARP;
  unsigned *p     = (unsigned *)(t->partial + t->turn * BATCH_SUMS * warps); // as in Sums()
  t->turn ^= 1;
  EACH(i, n)
  if (i >= k) best = max(best, (SizeOf(column[i]) & ~0xffffu) | (unsigned)(0xffff - i));
  best = __reduce_max_sync(ALL, best);
  if (t->id % WARP == 0) p[t->id / WARP] = best;
  __syncthreads();
  for (int w = 0; w < warps; w++) best = max(best, p[w]);
  return 0xffff - (int)(best & 0xffff);
}

// Each warp reads several rows at the same time
static __device__ __forceinline__ void MatrixDense(Team *t, const Matrix *A, int n, Scalar *a)
{
  constexpr int ROWS  = 4;
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
  using E             = Elimination<ROWS>;
  const int     n     = s->n;
  Scalar *const dense = s->work + n;
  E             e(n, *(typename E::Shared *)s->h);
  if (!s->A->dense) MatrixDense(t, s->A, n, dense);
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
  e.y = e.row < n ? s->r[e.row] : Num::zero();
  if (!e.Solve()) return SPMV_BATCH_SINGULAR;
  Sync(t);
  EACH(k, n) s->x[k] = s->x[k] + e.s.x[k];
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
// Copies 32 pieces of rows from `place` on to their slices; LANES threads read a piece
static __device__ __forceinline__ void CopyRows(Team *t, const BatchArgs &g, PetscInt row, const int *order, int place,
                                                int cut, const Matrix *A)
{
  constexpr int LANES = 4;
  const int     lane = t->id % WARP, lanes = 1 << A->shift;
  for (int first = 0; first < WARP; first += WARP / LANES) {
    const int      at = first + lane / LANES, piece = order[place + at], r = piece & 0xffff;
    const PetscInt from  = piece < 0 ? 0 : g.i[row + r] + (piece >> 16) * cut,
                   count = piece < 0 ? 0 : min(g.i[row + r + 1] - from, (PetscInt)cut);
    const unsigned slice = A->slices[place / WARP * lanes + at % lanes];
    const int      to = (int)(slice & 0xffff) * WARP + (at & ~(lanes - 1)), end = (int)(slice >> 16) << A->shift;
    Scalar         diagonal = Num::zero();
    bool           has      = false;
  #pragma unroll 4
    for (int e = lane % LANES; e < end; e += LANES) {
      const bool   is = e < count;
      const Scalar v  = is ? Read(g.a + from + e) : Num::zero();
      const int    c = is ? (int)(g.j[from + e] - row) : 0, q = to + (e >> A->shift) * WARP + (e & (lanes - 1));
      if (is && c == r) {
        diagonal = v;
        has      = true;
      }
      A->a[q] = v;
      A->j[q] = (uint16_t)c;
    }
    for (int rank = 0; rank < RANKS(t) && has; rank++) AT(A->x, rank)[r] = diagonal; // another may have the first piece
  }
}

// The system in shared memory: a vector, the entries, the slices. The vector is first the diagonal
static __device__ __forceinline__ void Load(Team *t, const BatchArgs &g, int p, PetscInt row, Matrix *A, System *s,
                                            bool)
{
  const int *from = g.slices + g.where[p], *order = from + 3, n = A->n, shift = from[0], cut = from[1],
            blocks  = from[2];
  const int *others = cut < INT_MAX ? order + blocks * WARP + (blocks << shift) : NULL;
  Scalar    *a      = (Scalar *)spmv_shared + g.rows;
  uint16_t  *j      = (uint16_t *)(a + g.entries);
  unsigned  *slices = (unsigned *)(j + g.entries);
  *A = {n, shift, blocks * WARP, slices, others ? slices + (blocks << shift) : NULL, a, j, (Scalar *)spmv_shared};
  for (int k = t->id; k < (blocks << shift) + (others ? blocks * WARP : 0); k += t->size)
    slices[k] = (unsigned)order[blocks * WARP + k];
  EACH(k, n)
  {
    const int place = Place(t, k), piece = place < A->places ? order[place] : -1;
    ROW(k) = piece < 0 ? NONE : piece >> 16 ? n + (others[place] & 0xffff) : piece;
    if (ROW(k) < n) A->x[ROW(k)] = Num::zero();
  }
  Sync(t);
  EACH(k, n)
  {
    const int place = Place(t, k) & ~(WARP - 1);
    if (place < A->places) CopyRows(t, g, row, order, place, cut, A);
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
// direct: h is then for the elimination
static __device__ __forceinline__ void Load(Team *t, const BatchArgs &g, int, PetscInt row, Matrix *A, System *s,
                                            bool direct)
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
  if (direct) s->h = (Scalar *)spmv_shared + (g.memory ? 0 : g.words);
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
                                         TEAM_WARP               ? BLOCKS * 3 / 4
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
    Load(t, g, p, row, &A, &s, ROWS > 0);
    BatchSolve(t, &s, METHOD, ROWS, g.results + p);
    EACH(k, s.n)
    if (ROW(k) < s.n) Write(g.x + row + ROW(k), s.x[k]);
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
