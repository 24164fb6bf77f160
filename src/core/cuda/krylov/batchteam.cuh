/*
  The team that solves a system of a batch, and its kernel: included once for each kind of team, in a namespace of its
  own, with
    TEAM_WARP  the team is a thread block of one warp
    TEAM_NEAR  the matrix is copied to shared memory
    TEAM_FAR   it is not, or only a part of it: other rows are read where they are
*/

struct Team {
  int        id, size;
  PetscReal *partial; // sums of the warps: two turns of BATCH_SUMS for each warp
  int        turn;
};

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

static __device__ __forceinline__ void Sync(Team *)
{
  if (TEAM_WARP)
    __syncwarp();
  else
    __syncthreads();
}

static __device__ __forceinline__ void Sums(Team *t, int count, PetscReal *s)
{
#pragma unroll
  for (int by = WARP / 2; by; by /= 2) {
#pragma unroll
    for (int k = 0; k < BATCH_SUMS; k++)
      if (k < count) s[k] += Traits<PetscReal>::exchange(s[k], by);
  }
  if (TEAM_WARP) return;
  const int  warps = t->size / WARP;
  PetscReal *p     = t->partial + t->turn * BATCH_SUMS * warps; // the next sums use the other half
  t->turn ^= 1;
#pragma unroll
  for (int k = 0; k < BATCH_SUMS; k++)
    if (k < count && t->id % WARP == k) p[k * warps + t->id / WARP] = s[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < BATCH_SUMS; k++) {
    if (k >= count) break;
    s[k] = p[k * warps];
    for (int w = 1; w < warps; w++) s[k] += p[k * warps + w];
  }
}

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

// Calls f(column, value) for every `step`th entry of a row
template <class F> static __device__ __forceinline__ void EachOfRow(const Matrix *A, int r, int first, int step, F f)
{
  const int end = A->i[r + 1];
  int       k   = A->i[r] + first;
  if (TEAM_NEAR && (!TEAM_FAR || end <= A->near)) {
    for (; k < end; k += step) f((int)A->j[k], A->a[k]);
  } else {
#pragma unroll 4
    for (; k < end; k += step) f((int)(A->columns[k] - A->first), Read(A->values + k));
  }
}

static __device__ __forceinline__ void Multiply(Team *t, const Matrix *A, const Scalar *x, Scalar *y, Scalar *z)
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

#if !TEAM_NEAR
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
#else
static __device__ __forceinline__ void MatrixDense(Team *, const Matrix *, int, Scalar *)
{
}
#endif

#if !TEAM_NEAR
template <int N, class System> static __device__ __forceinline__ int Eliminate(Team *t, System *s)
{
  using E = Elimination<N>;
  __shared__ Scalar   offers[2 * E::WARPS][N + 2];
  __shared__ unsigned sizes[2 * E::WARPS];
  const int           n = s->n, i = t->id;
  E                   e;
  bool                ok = true;
  Scalar *const       a  = s->work + n;
  MatrixDense(t, s->A, n, a);
  s->A->dense = a;
  #pragma unroll
  for (int j = 0; j < N; j++) e.row[j] = i < n && j < n ? a[j * n + i] : Num::zero();
  e.candidate = i < n;
  e.y         = i < n ? s->r[i] : Num::zero();
  int k       = 0;
  if constexpr (N > 48)
    for (; n - k > 48 && ok; k++) ok = e.template Step<64>(k, offers, sizes);
  if constexpr (N > 32)
    for (; n - k > 32 && ok; k++) ok = e.template Step<48>(k, offers, sizes);
  if constexpr (N > 16)
    for (; n - k > 16 && ok; k++) ok = e.template Step<32>(k, offers, sizes);
  for (; n - k > 0 && ok; k++) ok = e.template Step<16>(k, offers, sizes);
  if (!ok) return SPMV_BATCH_SINGULAR;
  if (e.step >= 0) s->x[e.step] = s->x[e.step] + e.y / e.pivot;
  return 0;
}

template <int T, class System> static __device__ __forceinline__ int EliminateTiles(Team *t, System *s)
{
  using E = TileElimination<T>;
  __shared__ typename E::Shared shared;
  const int                     n = s->n, i = t->id % E::SIDE, j = t->id / E::SIDE;
  E                             e;
  Scalar *const                 dense = s->work + n;
  MatrixDense(t, s->A, n, dense);
  s->A->dense = dense;
  #pragma unroll
  for (int a = 0; a < T; a++) {
    const int row = i + E::SIDE * a;
  #pragma unroll
    for (int b = 0; b < T; b++) {
      const int column = j + E::SIDE * b;
      e.tile[a][b]     = row < n && column < n ? dense[column * n + row] : Num::zero();
    }
    e.y[a] = !j && row < n ? s->r[row] : Num::zero();
  }
  if (!e.Steps(n, shared)) return SPMV_BATCH_SINGULAR;
  #pragma unroll
  for (int a = 0; a < T; a++)
    if (!j) shared.rhs[i + E::SIDE * a] = e.y[a];
  Sync(t);
  EACH(k, n) s->x[k] = s->x[k] + shared.rhs[shared.order[k]] / shared.pivot[k];
  return 0;
}
#endif

template <class System> static __device__ __forceinline__ int Direct(Team *t, System *s, int rows)
{
#if !TEAM_NEAR
  if (rows == 16) return Eliminate<16>(t, s);
  if (rows == 32) return Eliminate<32>(t, s);
  if (rows == 64) return Eliminate < REALS == 1 ? 64 : 32 > (t, s);
  if (rows == 96) return EliminateTiles<6>(t, s);
  if (rows == 144) return EliminateTiles < REALS == 1 ? 9 : 6 > (t, s);
#endif
  return 0;
}

#include "core/batchmethods.h"

// ROWS: see Direct()
template <int METHOD, int ROWS = 0>
static __global__ void __launch_bounds__(TEAM_WARP ? WARP
                                         : ROWS    ? DirectThreads(ROWS)
                                                   : TEAM_MOST,
                                         TEAM_WARP ? 32
                                         : ROWS    ? DirectBlocks(ROWS)
                                                   : 1) Solve(const __grid_constant__ BatchArgs g)
{
  __shared__ PetscReal partial[TEAM_WARP ? 1 : 2 * BATCH_SUMS * TEAM_MOST / WARP];
  Team                 team = {(int)threadIdx.x, TEAM_WARP ? WARP : (int)blockDim.x, partial, 0}, *t = &team;
  for (int q = (int)blockIdx.x; q < g.count; q += (int)gridDim.x) {
    const int      p   = g.list[q];
    const PetscInt row = g.first[p], base = g.i[row];
    const int      n = (int)(g.first[p + 1] - row), entries = (int)(g.i[row + n] - base);
    Matrix         A = {};
    System         s;
#if TEAM_NEAR
    Scalar   *memory = (Scalar *)spmv_shared, *a = memory + g.words;
    int      *offsets = (int *)(a + g.entries);
    uint16_t *columns = (uint16_t *)(offsets + g.rows + 1);
    A.near            = min(entries, g.entries);
    for (int k = t->id; k < A.near; k += t->size) {
      a[k]       = Read(g.a + base + k);
      columns[k] = (uint16_t)(g.j[base + k] - row);
    }
    A.a = a;
    A.j = columns;
#else
    Scalar *memory  = g.memory ? g.memory + (size_t)blockIdx.x * g.words : (Scalar *)spmv_shared;
    int    *offsets = (int *)(memory + g.words) - (g.rows + 1); // g.words has room for them
#endif
    for (int k = t->id; k <= n; k += t->size) offsets[k] = (int)(g.i[row + k] - base);
    A.i       = offsets;
    A.values  = g.a + base;
    A.columns = g.j + base;
    A.first   = row;
    A.n       = n;
    A.shift   = RowShift(n, entries, t->size);
    s.n       = n;
    s.A       = &A;
    s.b       = g.b + row;
    s.x       = memory;
    s.r       = memory + n;
    s.d       = g.o.pc != SPMV_BATCH_NONE && METHOD != SPMV_BATCH_LU ? s.r + n : nullptr;
    s.work    = s.r + (s.d ? 2 : 1) * n;
    s.o       = &g.o;
    Sync(t);
    EACH(k, n)
    {
      s.x[k] = g.o.guess ? Read(g.x + row + k) : Num::zero();
      if (s.d) s.d[k] = g.d ? Read(g.d + row + k) : Num::zero();
    }
    if (s.d && !g.d) {
      EACH(r, n)
      EachOfRow(&A, r, 0, 1, [&](int c, Scalar v) {
        if (r == c) s.d[r] = v;
      });
      EACH(k, n) s.d[k] = IsZero(s.d[k]) ? MakeScalar(1, 0) : Divided(MakeScalar(1, 0), s.d[k]);
    }
    SpMVBatchResult result;
    BatchSolve(t, &s, METHOD, ROWS, &result);
    EACH(k, n) Write(g.x + row + k, s.x[k]);
    if (LEADER) Report(g, p, result);
    Sync(t);
  }
}

// rows: for Direct()
static const void *Kernel(SpMVBatchMethod method, int rows)
{
  switch (method) {
  case SPMV_BATCH_CG: return (const void *)Solve<SPMV_BATCH_CG>;
  case SPMV_BATCH_BCGS: return (const void *)Solve<SPMV_BATCH_BCGS>;
  case SPMV_BATCH_GMRES: return (const void *)Solve<SPMV_BATCH_GMRES>;
#if TEAM_NEAR
  default: return nullptr;
#else
  default:
    return rows == 16          ? (const void *)Solve<SPMV_BATCH_LU, 16>
           : rows == 32        ? (const void *)Solve<SPMV_BATCH_LU, 32>
           : rows == DIRECT[2] ? (const void *)Solve<SPMV_BATCH_LU, DIRECT[2]>
           : rows == DIRECT[3] ? (const void *)Solve<SPMV_BATCH_LU, DIRECT[3]>
           : rows == DIRECT[4] ? (const void *)Solve<SPMV_BATCH_LU, DIRECT[4]>
                               : (const void *)Solve<SPMV_BATCH_LU>;
#endif
  }
}

#undef TEAM_WARP
#undef TEAM_NEAR
#undef TEAM_FAR
