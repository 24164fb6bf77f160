/*
  LU of small systems of a batch: Gauss-Jordan elimination in registers, panel by panel. For batch.cu.
*/

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
  Gauss-Jordan elimination with partial pivoting, for up to ROWS rows, by SI x SJ threads: thread (i, j) has the entries
  in rows i + SI a and columns j + SJ b. A panel of SJ columns is eliminated by the first threads, of which each has a
  row of it and of the right-hand side. In the columns that are eliminated they compute by how much of each pivot row, as
  it was before the panel, a row changes; all threads then change the columns that are left.
*/
template <int ROWS> struct Elimination {
  static constexpr int THREADS = DirectThreads(ROWS), SI = DirectSide(ROWS), SJ = THREADS / SI, TI = ROWS / SI,
                       TJ = ROWS / SJ, WARPS = (ROWS + WARP - 1) / WARP; // that eliminate panels
  static_assert(ROWS % SI == 0 && ROWS % SJ == 0 && ROWS <= THREADS, "");
  struct alignas(2 * sizeof(Scalar)) Pair {
    Scalar x, y;
  };
  struct Shared {
    Pair     row[2][WARPS][SJ / 2 + 1]; // of the best pivots of each warp, and the right-hand side
    Scalar   panel[SJ][ROWS], upper[SJ][ROWS - SJ], x[ROWS];
    int      pivot[ROWS]; // which pivot of the panel a row is, or -1
    unsigned best[2][WARPS];
    bool     ok;
  };

  Scalar    tile[TI][TJ]; // the columns that are left, from the panel on
  Scalar    y, diagonal;  // of this thread's row: the right-hand side, the pivot
  int       step = -1;    // in which the row was the pivot's
  const int n, row = (int)threadIdx.x, i = row % SI, j = row / SI;
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
  // In each step the first of v is the column that is eliminated, and what is computed for it becomes the last one
  __device__ __forceinline__ void Panel(int first)
  {
    const int end = min(SJ, n - first);
    Scalar    v[SJ];
    bool      ok = true;
    // Warps without a row only wait. They may do so here, as a barrier counts warps. With a barrier of the other warps
    // alone, as fast, racecheck (CUDA 13) reports accesses that the barriers of all threads separate
    if (WARPS * WARP < THREADS && row >= WARPS * WARP) {
      for (int k = 0; k < end; k++) Sync();
      return;
    }
#pragma unroll
    for (int c = 0; c < SJ; c++) v[c] = row < ROWS ? s.panel[c][row] : Num::zero();
#pragma unroll 1
    for (int k = 0; k < end; k++) {
      const unsigned offer = row < n && step < 0 ? (SizeOf(v[0]) & ~0xffu) | (unsigned)(0xff - row) : 0;
      unsigned       best  = __reduce_max_sync(ALL, offer);
      if (offer && offer == best) {
        Pair *shown = s.row[k % 2][row / WARP];
#pragma unroll
        for (int c = 0; c < SJ / 2; c++) shown[c] = {v[2 * c], v[2 * c + 1]};
        shown[SJ / 2].x = y;
      }
      if (row % WARP == 0) s.best[k % 2][row / WARP] = best;
      Sync();
#pragma unroll
      for (int w = 0; w < WARPS; w++) best = max(best, s.best[k % 2][w]);
      ok                 = ok && best > 0xff;
      const int    p     = 0xff - (int)(best & 0xff);
      const Pair  *from  = s.row[k % 2][ok ? p / WARP : 0];
      const Scalar pivot = from[0].x, f = row == p ? Num::zero() : Multiplied(v[0], Divided(MakeScalar(-1, 0), pivot));
#pragma unroll
      for (int c = 0; c < SJ / 2; c++) {
        const Pair u = from[c];
        if (c) v[2 * c - 1] = Num::fma(f, u.x, v[2 * c]);
        v[2 * c] = Num::fma(f, u.y, v[2 * c + 1]);
      }
      v[SJ - 1] = f;
      y         = Num::fma(f, from[SJ / 2].x, y);
      if (row == p) {
        step     = first + k;
        diagonal = pivot;
      }
    }
    if (row < ROWS) {
#pragma unroll
      for (int c = 0; c < SJ; c++) s.panel[c][row] = v[c];
      s.pivot[row] = step < first ? -1 : step - first;
    }
    if (!row) s.ok = ok;
  }
  // Returns false if a pivot is 0; otherwise the solution is s.x, after a Sync()
  __device__ __forceinline__ bool Solve()
  {
    for (int first = 0; first < n; first += SJ) {
      const int left = TJ - 1 - first / SJ;
      Sync();
#pragma unroll
      for (int a = 0; a < TI; a++) s.panel[j][i + SI * a] = tile[a][0];
      Sync();
      Panel(first);
      Sync();
      if (!s.ok) return false;
      if (first + SJ >= n) break;
#pragma unroll
      for (int a = 0; a < TI; a++) {
        const int p = s.pivot[i + SI * a];
#pragma unroll
        for (int b = 0; b < TJ - 1; b++) {
          if (p >= 0) s.upper[p][j + SJ * b] = tile[a][b + 1];
          tile[a][b] = tile[a][b + 1];
        }
      }
      Sync();
#pragma unroll 2
      for (int k = 0; k < SJ; k++) {
        Scalar f[TI];
#pragma unroll
        for (int a = 0; a < TI; a++) f[a] = s.panel[k][i + SI * a];
#pragma unroll
        for (int b = 0; b < TJ - 1; b++) {
          if (b >= left) break;
          const Scalar u = s.upper[k][j + SJ * b];
#pragma unroll
          for (int a = 0; a < TI; a++) tile[a][b] = Num::fma(f[a], u, tile[a][b]);
        }
      }
    }
    if (row < n) s.x[step] = y / diagonal;
    return true;
  }
};

// Shared memory, behind the vectors; rows: one of DIRECT, or 0
template <int K = 0> size_t DirectBytes(int rows)
{
  if (rows == DIRECT[K]) return sizeof(typename Elimination<DIRECT[K]>::Shared);
  if constexpr (K + 1 < DIRECTS) return DirectBytes<K + 1>(rows);
  return 0;
}
