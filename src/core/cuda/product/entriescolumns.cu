/*
  Products with several columns for matrices stored in slices of single entries. See slices.cu for the layout.

  Each entry would read the columns of X at different places in memory. Therefore a panel of X is first copied by rows,
  which reads and writes it once. An entry then reads one or two pieces of 32 bytes, and A is read once.

  A warp multiplies a slice. It copies a few steps of values and columns to shared memory, 32 lanes side by side as they
  are stored. For the sums, the threads are assigned to lanes and columns differently: thread t handles column t % K for
  the lanes t / K, t / K + 32 / K, ..., so that K threads read a row of the panel in one piece. Each column is summed in
  the order of a product with one vector, so that it has the same bits.

  If neighbors in the order of the slices are distant rows, as in EVC-HYB's order, every single number written to Y
  costs 32 bytes. In this case Y is collected by rows, too, and copied to columns afterwards.
*/
#include "slices.cuh"

namespace spmv {
namespace {

constexpr int BLOCK = Tuning::ENTRIES_BLOCK, STEPS = Tuning::ENTRIES_STEPS, WARPS = BLOCK / WARP;
static_assert(STEPS >= 1 << MAX_LU, "a slice with several units a lane has all of its steps in shared memory at once");

// The arguments of a product with up to eight columns
struct Args {
  SliceArgs slices;
  Scalar   *partial; // for each part, one sum per column of the panel
  int       count;   // columns
  int64_t   ldz, ldy;
  int       step; // distance from a row of Y to the next
};

struct PanelArgs {
  int     rows, width, count;
  int64_t ldz, ld; // ld: leading dimension of the array that is stored by columns
};

__device__ __forceinline__ int LogWidth(const PanelArgs &p)
{
  return p.width == 8 ? 3 : p.width == 4 ? 2 : 1;
}

// numbers per row in shared memory: an odd number, so that the lanes use different banks
constexpr int TILE = MAX_WIDTH + 1;

// Copies `rows` numbers of each column to rows of `width` numbers, with zeros past the last column
__global__ void __launch_bounds__(BLOCK) by_rows(PanelArgs p, SpMVCudaForm, const Scalar *x, const Scalar *, Scalar *to)
{
  __shared__ Scalar tile[BLOCK * TILE];
  const int         lane = threadIdx.x % WARP, log = LogWidth(p);
  const int64_t     row  = (int64_t)blockIdx.x * BLOCK + (threadIdx.x - lane);
  Scalar           *mine = tile + (threadIdx.x - lane) * TILE, t[MAX_WIDTH];
  AwaitPrevious();
#pragma unroll
  for (int q = 0; q < MAX_WIDTH; q++)
    t[q] = q < p.count && row + lane < p.rows ? Stream(x + q * p.ld + row + lane) : Num::zero();
#pragma unroll
  for (int q = 0; q < MAX_WIDTH; q++) mine[lane * TILE + q] = t[q];
  __syncwarp();
#pragma unroll
  for (int q = 0; q < MAX_WIDTH; q++) {
    const int e = q * WARP + lane, r = e >> log;
    if (q < p.width && row + r < p.rows) to[(row << log) + e] = mine[r * TILE + (e & (p.width - 1))];
  }
}

// The reverse: copies the results of a product, stored as rows of `width` numbers, to the columns of y, and adds z
__global__ void __launch_bounds__(BLOCK)
    by_columns(PanelArgs p, SpMVCudaForm form, const Scalar *from, const Scalar *z, Scalar *y)
{
  __shared__ Scalar tile[BLOCK * TILE];
  const int         lane = threadIdx.x % WARP, log = LogWidth(p);
  const int64_t     row  = (int64_t)blockIdx.x * BLOCK + (threadIdx.x - lane);
  Scalar           *mine = tile + (threadIdx.x - lane) * TILE;
  AwaitPrevious();
#pragma unroll
  for (int q = 0; q < MAX_WIDTH; q++) {
    const int e = q * WARP + lane, r = e >> log;
    if (q < p.width && row + r < p.rows) mine[r * TILE + (e & (p.width - 1))] = Stream(from + (row << log) + e);
  }
  __syncwarp();
#pragma unroll
  for (int q = 0; q < MAX_WIDTH; q++) {
    if (q < p.count && row + lane < p.rows)
      y[q * p.ld + row + lane] = Sum(form, z != nullptr, z + q * p.ldz + row + lane, mine[lane * TILE + q]);
  }
}

constexpr int FAR = 1024; // rows

// Counts the places whose row is far from the row of the previous place
__global__ void count_far(int places, const int *order, int *far)
{
  const int      p  = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  const unsigned is = __ballot_sync(ALL, p > 0 && p < places && abs(order[p] - order[p - 1]) > FAR);
  if (is && p % WARP == 0) atomicAdd(far, __popc(is));
}

// A warp's data in shared memory
template <class V> struct __align__(16) Staged
{
  V   value[STEPS * WARP];
  int col[STEPS * WARP];    // -1: no entry
  int unit[WARP << MAX_LU]; // the unit at each place of the slice, if units are sorted
};

// Copies the units of a slice whose rows are sorted to shared memory
template <class V>
__device__ __forceinline__ void StageUnits(const SliceArgs &args, const Slice &self, int lane, Staged<V> &to)
{
#pragma unroll
  for (int u = 0; u < 1 << MAX_LU; u++) {
    const int place = u * WARP + lane;
    if (place < self.units) CopyAsync(to.unit + place, args.order + self.first + place);
  }
}

// Copies up to BYTES to shared memory, 16 bytes per lane at a time
template <int BYTES> __device__ __forceinline__ void CopyPieces(void *to, const void *from, int bytes, int lane)
{
#pragma unroll
  for (int at = 0; at < BYTES; at += WARP * 16) {
    const int own = at + lane * 16;
    if (own < bytes) CopyAsync((int4 *)((char *)to + own), (const int4 *)((const char *)from + own));
  }
}

// Copies the values and columns of `here` steps from k0 on
template <class V>
__device__ __forceinline__ void Stage(const SliceArgs &args, const Slice &self, int k0, int here, int lane,
                                      Staged<V> &to)
{
  const int   mode  = self.mode;
  const char *index = args.index + (int64_t)self.index * 32;
  CopyPieces<sizeof(to.value)>(to.value, FirstValue((const V *)args.value, self) + k0 * WARP,
                               here * (int)(WARP * sizeof(V)), lane);
  if (mode == WIDE)
    CopyPieces<sizeof(to.col)>(to.col, index + (int64_t)k0 * (WARP * 4), here * (WARP * 4), lane);
  else if (mode == NARROW) {
    int distance[STEPS];
#pragma unroll
    for (int b = 0; b < STEPS; b++)
      distance[b] = b < here ? __ldcs((const unsigned short *)index + (k0 + b) * WARP + lane) : 0;
#pragma unroll
    for (int b = 0; b < STEPS; b++)
      to.col[b * WARP + lane] = distance[b] == (int)NO_COLUMN ? -1 : Far(args.list, self.base + distance[b]);
  } else {
#pragma unroll
    for (int b = 0; b < STEPS; b++)
      to.col[b * WARP + lane] = Column(self, LINE, index, args.list, k0 + b, self.steps, lane);
  }
  AwaitCopies();
  __syncwarp();
}

// Adds the sums of a unit's lanes into its first lane, in the order of a product with one vector. alone: number of
// units that are side by side in the slice
template <int K> __device__ __forceinline__ void AddLanes(int alone, Scalar (&d)[K])
{
  constexpr int GROUPS = WARP / K;
#pragma unroll
  for (int by = WARP / 2; by; by >>= 1) {
    if (by < alone) break;
#pragma unroll
    for (int j = 0; j < PetscMax(by / GROUPS, 1); j++)
      d[j] = Num::add(d[j], by < GROUPS ? Num::down(d[j], by * K) : d[(j + by / GROUPS) % K]);
  }
}

// A part of a long unit stores its sums, and the last part to arrive adds all of them. Returns true if this part is the
// last
template <int K> __device__ __forceinline__ bool AddParts(const Args &args, int lane, Scalar (&d)[K])
{
  constexpr int GROUPS = WARP / K, FRESH = PetscMin(K, 4);
  // read again, so that no register holds it until here
  const Slice &self = args.slices.slice[(BlockIndex() * (int64_t)BLOCK + threadIdx.x) / WARP];
  const int    sums = __ldg(&self.sums), count = __ldg(args.slices.parts + sums);
  Scalar      *parts = args.partial + (int64_t)sums * K + lane % K;
  int          last  = 0;
  if (lane < K) Partial::hand(parts + (int64_t)__ldg(&self.part) * K, d[0]);
  if (lane == 0) last = ArriveLastRelaxed(args.slices.arrived + sums, (unsigned)count);
  if (!__shfl_sync(ALL, last, 0)) return false;
  if (lane == 0) args.slices.arrived[sums] = 0;
#pragma unroll
  for (int j = 0; j < K; j++) d[j] = Num::zero();
#pragma unroll 1
  for (int k0 = lane / K; k0 < count; k0 += WARP) {
#pragma unroll
    for (int j0 = 0; j0 < K; j0 += FRESH) {
      Scalar v[FRESH];
      TakeSums(
          [=](int j) { return k0 + (j0 + j) * GROUPS < count ? parts + (int64_t)k0 * K + (j0 + j) * WARP : nullptr; },
          v);
#pragma unroll
      for (int j = 0; j < FRESH; j++) d[j0 + j] = Num::add(d[j0 + j], v[j]);
    }
  }
  return true;
}

// Multiplies K columns. x: a panel stored by rows
template <class V, int K>
__global__ void __launch_bounds__(BLOCK, (sizeof(Scalar) > 8 ? 512 : Tuning::ENTRIES_THREADS) / BLOCK)
    entries_columns(Args arguments, SpMVCudaForm form, const Scalar *x, const Scalar *z, Scalar *y)
{
  // lanes that are multiplied at the same time; steps whose x is loaded at once
  constexpr int GROUPS = WARP / K, AHEAD = Tuning::ENTRIES_LOADS / K;
  __shared__ Staged<V> staged[WARPS];
  const SliceArgs     &args = arguments.slices;
  const int s = (int)((blockIdx.x * (int64_t)BLOCK + threadIdx.x) / WARP), lane = threadIdx.x % WARP, mine = lane / K,
            q         = lane % K;
  Staged<V>   &own    = staged[threadIdx.x / WARP];
  const Waited waited = AwaitPrevious();
  if (s >= args.slices) return;
  const Slice self = ReadSlice(args, s);
  const int   U = 1 << self.lu, steps = self.steps * U;
  const bool  part = self.is_part, sorted = args.order && !part;
  Scalar      d[K];

  x += q;
  y += q * arguments.ldy;
  const Scalar *zs = z + q * arguments.ldz;
  if (sorted) StageUnits(args, self, lane, own);
#pragma unroll
  for (int j = 0; j < K; j++) d[j] = Num::zero();
  int k0 = 0;
  do {
    const int here = min(STEPS, steps - k0);
    Stage(args, self, k0, here, lane, own);
    k0 += STEPS;
#pragma unroll 1
    for (int u = 0; u < U; u++) { // with several units per lane, the loop over k0 has one iteration
#pragma unroll 1
      for (int k = u; k < here; k += AHEAD * U) {
        Scalar xs[AHEAD][K];
        bool   has[AHEAD][K];
#pragma unroll
        for (int b = 0; b < AHEAD; b++) {
#pragma unroll
          for (int j = 0; j < K; j++) {
            const int col = k + b * U < here ? own.col[(k + b * U) * WARP + j * GROUPS + mine] : -1;
            has[b][j]     = col >= 0;
            xs[b][j]      = LoadX(waited, x + (int64_t)max(col, 0) * K);
          }
        }
        Issue();
#pragma unroll
        for (int b = 0; b < AHEAD; b++) {
#pragma unroll
          for (int j = 0; j < K; j++) {
            if (!has[b][j]) continue;
            d[j] = Num::fma(Conjugated(form, Convert<Scalar>(own.value[(k + b * U) * WARP + j * GROUPS + mine])),
                            xs[b][j], d[j]);
          }
        }
      }
      if (k0 < steps) continue;
#pragma unroll 1
      for (bool again = part;; again = false) {
        AddLanes<K>(WARP >> self.lt, d);
        if (!again) break;
        if (!AddParts<K>(arguments, lane, d)) return;
      }
#pragma unroll
      for (int j = 0; j < K; j++) {
        const int place = u * WARP + j * GROUPS + mine;
        if (place < self.units && q < arguments.count) {
          const int r                    = sorted ? own.unit[place] : self.first + place;
          y[(int64_t)r * arguments.step] = Sum(form, z != nullptr, zs + r, d[j]);
        }
        d[j] = Num::zero();
      }
    }
    __syncwarp();
  } while (k0 < steps);
}

const void *Pick(bool single, int width)
{
  return WithStored(single, [=](auto type) {
    using V = decltype(type);
    return width == 8   ? (const void *)entries_columns<V, 8>
           : width == 4 ? (const void *)entries_columns<V, 4>
                        : (const void *)entries_columns<V, 2>;
  });
}

// The smallest number of columns for which panels are used
int Least(const _n_SpMVCudaStore &store)
{
  return store.nnz > (int64_t)Tuning::ENTRIES_TWO * store.m ? 3 : 2;
}

} // namespace

bool EntriesByRows::Pays(const _n_SpMVCudaStore &store, int64_t columns)
{
  return columns >= Least(store) && store.nnz > (int64_t)Tuning::ENTRIES_SHARE * store.n;
}

cudaError_t EntriesByRows::Allocate(const _n_SpMVCudaStore &store, const int *order, size_t partial,
                                    cudaStream_t stream)
{
  int          far = 0;
  Scratch<int> count(stream);
  if (order) {
    SPMV_TRY(count.AllocZero(1));
    SPMV_LAUNCH(store.m, 256, stream, count_far, store.m, order, count);
    SPMV_TRY(Fetch(&far, (int *)count, 1, stream));
  }
  SPMV_TRY(parts.Alloc(partial * MAX_WIDTH, stream));
  SPMV_TRY(Vacate(parts, stream));
  if (far > store.m / 2) SPMV_TRY(sums.Alloc((size_t)store.m * MAX_WIDTH, stream));
  return rows.Alloc((size_t)store.n * MAX_WIDTH, stream);
}

bool EntriesByRows::Reserve(const _n_SpMVCudaStore &store, const int *order, size_t partial, cudaStream_t stream)
{
  cudaStreamCaptureStatus captured;
  if (rows || refused) return !refused;
  if (cudaStreamIsCapturing(stream, &captured) != cudaSuccess || captured != cudaStreamCaptureStatusNone) return false;
  to_rows.Choose((const void *)by_rows);
  to_columns.Choose((const void *)by_columns);
  if (Allocate(store, order, partial, stream) == cudaSuccess) return true;
  ForgetErrors();
  (void)cudaStreamSynchronize(stream); // Vacate()
  parts.Free();                        // frees the arrays that could be allocated
  sums.Free();
  rows.Free();
  refused = true;
  return false;
}

// Multiplies `count` columns, as one panel
cudaError_t EntriesByRows::MultPanel(_n_SpMVCudaStore &store, const SliceArgs &args, SpMVCudaForm form,
                                     const Operands &v, const Columns &c, int width, int count, cudaStream_t stream)
{
  const unsigned blocks = Blocks((int64_t)args.slices * WARP, BLOCK);
  Kernel        &kernel = product.Get(width, [&](int w) { return Pick(store.single, w); });
  SPMV_TRY(to_rows.Launch(Blocks(store.n, BLOCK), BLOCK, PanelArgs{store.n, width, count, 0, c.ldx}, form,
                          {v.x, nullptr, rows}, stream));
  // google in evchyb's order, 2, 4, 8 columns: 71, 232, 515 us without `sums`, 82, 97, 169 with it
  if (!sums || width == 2)
    return kernel.Launch(blocks, BLOCK, Args{args, parts, count, c.ldz, c.ldy, 1}, form, {rows, v.z, v.y}, stream);
  SPMV_TRY(kernel.Launch(blocks, BLOCK, Args{args, parts, width, 0, 1, width}, form, {rows, nullptr, sums}, stream));
  return to_columns.Launch(Blocks(store.m, BLOCK), BLOCK, PanelArgs{store.m, width, count, c.ldz, c.ldy}, form,
                           {sums, v.z, v.y}, stream);
}

// Uses panels of eight columns, and at the end one of four or two
cudaError_t EntriesByRows::Mult(_n_SpMVCudaStore &store, const SliceArgs &args, SpMVCudaForm form, const Operands &v,
                                const Columns &c, cudaStream_t stream)
{
  for (int64_t first = 0, left = c.count; left; first = c.count - left) {
    const bool     alone = left < Least(store);
    const int      width = left > 4 ? 8 : left > 2 ? 4 : 2, count = alone ? 1 : (int)PetscMin((int64_t)width, left);
    const Operands now = v.From(first, c);
    SPMV_TRY(alone ? store.Multiply({form, now}, stream) : MultPanel(store, args, form, now, c, width, count, stream));
    left -= count;
  }
  return cudaSuccess;
}

} // namespace spmv
