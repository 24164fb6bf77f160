/*
  The baselines on the device: copying columns and values into the format, and products. The kernels are those printed
  in the papers. The only additions are loads that are standard on current GPUs (read-only loads for x, streaming loads
  for data that are read once).
*/
#include "formats.h"
#include "mat/impls/evchyb/paper.cuh"

using namespace spmv;

namespace {

template <class T> __device__ __forceinline__ const T *Of(const Stored &S, StoredArray a)
{
  return (const T *)S.at[a];
}
__device__ __forceinline__ const Scalar *Values(const Stored &S)
{
  return (const Scalar *)S.at[AT_VAL];
}

__device__ __forceinline__ void AtomicAdd(Scalar *y, Scalar v)
{
#if defined(PETSC_USE_COMPLEX)
  atomicAdd(&y->re, v.re);
  atomicAdd(&y->im, v.im);
#else
  atomicAdd(y, v);
#endif
}

__device__ __forceinline__ int64_t Thread()
{
  return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

// One stored entry times its x
__device__ __forceinline__ Scalar Term(const Scalar *v, const PetscInt *c, const Scalar *__restrict__ x)
{
  const PetscInt col = __ldcs(c);
  const Scalar   a   = Stream(v);
  return col < 0 ? Num::zero() : Num::fma(a, Num::keep(x + col), Num::zero());
}

cudaError_t ZeroY(const Stored *S, PetscScalar *y, cudaStream_t stream)
{
  return S->m ? cudaMemsetAsync(y, 0, (size_t)S->m * sizeof(*y), stream) : cudaSuccess;
}

// ------------------------------------------------------------------------------------------------ storing

// The place of entry k of row r; start: the row's first entry in the CSR matrix
static __device__ __forceinline__ PetscInt64 StoredPlace(const Stored *S, PetscInt64 start, PetscInt r, PetscInt k)
{
  const PetscInt64 e = start + k;

  if (S->kind == STORED_COLUMN)
    return k < S->width ? k * S->ld + r : S->list + ((const PetscInt64 *)S->at[AT_REST])[r] + k - S->width;
  if (S->kind == STORED_SLICES) {
    const PetscInt p = S->at[AT_PLACE] ? ((const PetscInt *)S->at[AT_PLACE])[r] : r;

    return ((const PetscInt64 *)S->at[AT_SLICE])[p / STORED_LANES] + (PetscInt64)k * STORED_LANES + p % STORED_LANES;
  }
  if (S->kind == STORED_TILES && e < S->list) {
    const PetscInt64 in = e % ((PetscInt64)STORED_LANES * S->sigma);

    return e - in + in % S->sigma * STORED_LANES + in / S->sigma;
  }
  return e;
}

__global__ void fill(Stored S, const PetscInt *i, const PetscInt *j, const Scalar *a) // one warp per row
{
  const int64_t r = Thread() / WARP;
  if (r >= S.m) return;
  const PetscInt start = i[r], len = i[r + 1] - start;
  for (PetscInt k = threadIdx.x % WARP; k < len; k += WARP) {
    const PetscInt64 p            = StoredPlace(&S, start, (PetscInt)r, k);
    ((PetscInt *)S.at[AT_COL])[p] = j[start + k];
    ((Scalar *)S.at[AT_VAL])[p]   = a[start + k];
    if (p >= S.list) ((PetscInt *)S.at[AT_ROW])[p - S.list] = (PetscInt)r;
  }
}

// ------------------------------------------------------------------------------------------------ COO

__global__ void coo_scalar(Stored S, const Scalar *__restrict__ x, Scalar *y)
{
  const int64_t p = Thread();
  if (p < S.stored)
    AtomicAdd(y + __ldcs(Of<PetscInt>(S, AT_ROW) + p), Term(Values(S) + p, Of<PetscInt>(S, AT_COL) + p, x));
}

// The lanes' sums by row, neighbors first; the last lane of each row adds them to y. row < 0: a lane without an entry
__device__ __forceinline__ void AddSegments(PetscInt row, Scalar sum, Scalar *y)
{
  const int lane = threadIdx.x % WARP;
  for (int d = 1; d < WARP; d *= 2) {
    const PetscInt other = __shfl_up_sync(ALL, row, d);
    const Scalar   part  = Num::shfl(sum, lane >= d ? lane - d : lane);
    if (lane >= d && other == row) sum = Num::add(sum, part);
  }
  const PetscInt next = __shfl_down_sync(ALL, row, 1);
  if (row >= 0 && (lane == WARP - 1 || next != row)) AtomicAdd(y + row, sum);
}

// All entries from place S.list on
__global__ void coo_segmented(Stored S, const Scalar *__restrict__ x, Scalar *y)
{
  const int64_t stride = (int64_t)gridDim.x * blockDim.x, end = (S.stored - S.list + WARP - 1) / WARP * WARP;
  for (int64_t q = Thread(); q < end; q += stride) {
    const int64_t p     = S.list + q;
    const bool    entry = p < S.stored;
    AddSegments(entry ? __ldcs(Of<PetscInt>(S, AT_ROW) + q) : -1,
                entry ? Term(Values(S) + p, Of<PetscInt>(S, AT_COL) + p, x) : Num::zero(), y);
  }
}

// Algorithm 1 of the formats' comparison, after Tsai et al.: `steps` times 32 entries per warp. Lanes keep their sums
// while all entries belong to one row
__global__ void coo_balanced(Stored S, int64_t steps, const Scalar *__restrict__ x, Scalar *y)
{
  const int64_t   first = Thread() / WARP * steps * WARP, end = min(first + steps * WARP, (int64_t)S.stored);
  const PetscInt *rows = Of<PetscInt>(S, AT_ROW);
  int64_t         p    = first + threadIdx.x % WARP;
  if (first >= S.stored) return; // the whole warp returns
  PetscInt row = p < end ? __ldcs(rows + p) : -1;
  Scalar   sum = p < end ? Term(Values(S) + p, Of<PetscInt>(S, AT_COL) + p, x) : Num::zero();
  for (int64_t k = 0; k < steps; k++) {
    p += WARP;
    const bool     more = k + 1 < steps && p < end;
    const PetscInt next = more ? __ldcs(rows + p) : -1;
    if (__any_sync(ALL, next != row)) {
      AddSegments(row, sum, y);
      sum = Num::zero();
    }
    if (more) sum = Num::add(sum, Term(Values(S) + p, Of<PetscInt>(S, AT_COL) + p, x));
    row = next; // -1 after the last step, in which everything has been added
  }
}

cudaError_t AddList(const Stored *S, const PetscScalar *x, PetscScalar *y, cudaStream_t stream)
{
  const int64_t list = S->stored - S->list;
  if (list)
    coo_segmented<<<PetscMin(Blocks(list, 256), 132 * 8 * 4), 256, 0, stream>>>(*S, (const Scalar *)x, (Scalar *)y);
  return cudaPeekAtLastError();
}

// ------------------------------------------------------------------------------------------------ CSR

template <int TPR> __global__ void csr(Stored S, const Scalar *__restrict__ x, Scalar *y) // TPR threads per row
{
  const int64_t r = Thread() / TPR;
  if (r >= S.m) return; // whole warps return, if the lanes of a warp work together
  const PetscInt *ptr  = Of<PetscInt>(S, AT_PTR);
  const PetscInt  last = __ldg(ptr + r + 1);
  Scalar          sum  = Num::zero();
#pragma unroll 4
  for (PetscInt e = __ldg(ptr + r) + threadIdx.x % TPR; e < last; e += TPR)
    sum = Num::add(sum, Term(Values(S) + e, Of<PetscInt>(S, AT_COL) + e, x));
  for (int d = TPR / 2; d > 0; d /= 2) sum = Num::add(sum, Num::down(sum, d));
  if (threadIdx.x % TPR == 0) y[r] = sum;
}

// ------------------------------------------------------------------------------------------------ ELL, slices

__global__ void ell(Stored S, const Scalar *__restrict__ x, Scalar *y)
{
  const int64_t r = Thread();
  if (r >= S.m) return;
  Scalar sum = Num::zero();
#pragma unroll 4
  for (PetscInt k = 0; k < S.width; k++) {
    const int64_t p = k * (int64_t)S.ld + r;
    sum             = Num::add(sum, Term(Values(S) + p, Of<PetscInt>(S, AT_COL) + p, x));
  }
  y[r] = sum;
}

template <int HEIGHT> __global__ void slices(Stored S, const Scalar *__restrict__ x, Scalar *y)
{
  const int64_t at = Thread();
  if (at >= S.m) return;
  const PetscInt64 *slice = Of<PetscInt64>(S, AT_SLICE) + at / HEIGHT;
  const PetscInt   *order = Of<PetscInt>(S, AT_ORDER);
  const int64_t     end   = __ldg((const long long *)slice + 1);
  Scalar            sum   = Num::zero();
#pragma unroll 4
  for (int64_t p = __ldg((const long long *)slice) + at % HEIGHT; p < end; p += HEIGHT)
    sum = Num::add(sum, Term(Values(S) + p, Of<PetscInt>(S, AT_COL) + p, x));
  y[order ? order[at] : at] = sum;
}

// ------------------------------------------------------------------------------------------------ CSR5

/*
  Algorithm 5 of the paper, with one warp per tile and two changes. The sums of lanes without a flag are added by a
  segmented scan. (The paper subtracts two prefix sums; then an Inf, or the rounding errors of large rows, would affect
  other rows.) The first segment of a tile is always added by a second kernel, because a row may extend over any number
  of tiles.
*/
__global__ void tiles(Stored S, const Scalar *__restrict__ x, Scalar *y)
{
  const int64_t t    = Thread() / WARP;
  const int     lane = threadIdx.x % WARP;
  if (t >= S.tiles) return;
  const uint32_t flags   = __ldcs(Of<uint32_t>(S, AT_FLAGS) + t * WARP + lane),
                 offsets = __ldcs(Of<uint32_t>(S, AT_OFFSETS) + t * WARP + lane);
  const PetscInt  row = __ldg(Of<PetscInt>(S, AT_TILE) + t), dirty = __ldg(Of<PetscInt>(S, AT_DIRTY) + t);
  const PetscInt *empty =
      __ldg(Of<PetscInt>(S, AT_DIRTY) + t + 1) > dirty ? Of<PetscInt>(S, AT_EMPTY) + dirty : nullptr;
  int    segment = (int)(offsets & 0xffff) - 1;
  Scalar sum = Num::zero(), lead = Num::zero();
  auto   end = [&](Scalar v) {
    if (segment)
      y[row + (empty ? empty[segment] : segment)] = v;
    else
      ((Scalar *)S.at[AT_SUMS])[t] = v;
  };
#pragma unroll 4
  for (int s = 0; s < S.sigma; s++) {
    const int64_t p    = (t * S.sigma + s) * WARP + lane;
    const Scalar  term = Term(Values(S) + p, Of<PetscInt>(S, AT_COL) + p, x);
    if (flags >> s & 1) {
      if (flags & ((1u << s) - 1))
        end(sum);
      else
        lead = sum;
      segment++;
      sum = Num::zero();
    }
    sum = Num::add(sum, term);
  }
  if (!flags) lead = sum;
  // The contribution of the following lanes, up to and including the next lane with a flag, to this lane's last segment
  const int bare = (int)(offsets >> 16);
  Scalar    more = Num::down(lead, 1);
  if (lane == WARP - 1) more = Num::zero();
  for (int d = 1; d < WARP; d *= 2) {
    const Scalar other = Num::down(more, d);
    if (d <= bare) more = Num::add(more, other);
  }
  if (flags) end(Num::add(sum, more));
}

__global__ void tile_sums(Stored S, Scalar *y)
{
  const int64_t t = Thread();
  if (t < S.tiles) AtomicAdd(y + Of<PetscInt>(S, AT_TILE)[t], Of<Scalar>(S, AT_SUMS)[t]);
}

} // namespace

cudaError_t MultCOOScalar(const Stored *S, const PetscScalar *x, PetscScalar *y, cudaStream_t stream)
{
  SPMV_TRY(ZeroY(S, y, stream));
  SPMV_LAUNCH(S->stored, 256, stream, coo_scalar, *S, (const Scalar *)x, (Scalar *)y);
  return cudaSuccess;
}

cudaError_t MultCOOSegmented(const Stored *S, const PetscScalar *x, PetscScalar *y, cudaStream_t stream)
{
  SPMV_TRY(ZeroY(S, y, stream));
  return AddList(S, x, y, stream);
}

cudaError_t MultCOOBalanced(const Stored *S, const PetscScalar *x, PetscScalar *y, cudaStream_t stream)
{
  const int64_t chunks = (S->stored + WARP - 1) / WARP, warps = PetscMin(chunks, 132 * 64),
                steps = warps ? (chunks + warps - 1) / warps : 0;
  SPMV_TRY(ZeroY(S, y, stream));
  SPMV_LAUNCH(warps * WARP, 128, stream, coo_balanced, *S, steps, (const Scalar *)x, (Scalar *)y);
  return cudaSuccess;
}

cudaError_t MultCSRScalar(const Stored *S, const PetscScalar *x, PetscScalar *y, cudaStream_t stream)
{
  SPMV_LAUNCH((int64_t)S->m, 256, stream, csr<1>, *S, (const Scalar *)x, (Scalar *)y);
  return cudaSuccess;
}

cudaError_t MultCSRVector(const Stored *S, const PetscScalar *x, PetscScalar *y, cudaStream_t stream)
{
  SPMV_LAUNCH((int64_t)S->m * WARP, 256, stream, csr<WARP>, *S, (const Scalar *)x, (Scalar *)y);
  return cudaSuccess;
}

cudaError_t MultELL(const Stored *S, const PetscScalar *x, PetscScalar *y, cudaStream_t stream)
{
  SPMV_LAUNCH((int64_t)S->m, 256, stream, ell, *S, (const Scalar *)x, (Scalar *)y);
  return AddList(S, x, y, stream);
}

cudaError_t MultSlices(const Stored *S, const PetscScalar *x, PetscScalar *y, cudaStream_t stream)
{
  SPMV_LAUNCH((int64_t)S->m, 256, stream, slices<WARP>, *S, (const Scalar *)x, (Scalar *)y);
  return cudaSuccess;
}

cudaError_t MultTiles(const Stored *S, const PetscScalar *x, PetscScalar *y, cudaStream_t stream)
{
  SPMV_TRY(ZeroY(S, y, stream));
  SPMV_LAUNCH((int64_t)S->tiles * WARP, 256, stream, tiles, *S, (const Scalar *)x, (Scalar *)y);
  SPMV_LAUNCH((int64_t)S->tiles, 256, stream, tile_sums, *S, (Scalar *)y);
  return AddList(S, x, y, stream);
}

cudaError_t StoredUpload(const Stored *host, const SpMVCudaCSR *A, Stored *device, cudaStream_t stream)
{
  if (A->index_bytes != (int)sizeof(PetscInt)) return cudaErrorNotSupported;
  *device = *host;
  for (int k = 0; k < STORED_ARRAYS; k++) device->at[k] = nullptr;
  if (host->borrowed) {
    device->at[AT_PTR] = (void *)A->i;
    device->at[AT_COL] = (void *)A->j;
    device->at[AT_VAL] = (void *)A->a;
    return cudaSuccess;
  }
  for (int k = 0; k < STORED_ARRAYS; k++) {
    const bool bulk = k == AT_COL || k == AT_VAL || k == AT_ROW;
    if (!bulk && !host->at[k]) continue;
    SPMV_TRY(cudaMalloc(&device->at[k], device->bytes[k] + 16));
    if (!bulk) SPMV_TRY(cudaMemcpyAsync(device->at[k], host->at[k], host->bytes[k], cudaMemcpyHostToDevice, stream));
  }
  if (device->stored > device->nz) { // padding: columns -1, values 0
    SPMV_TRY(cudaMemsetAsync(device->at[AT_COL], 0xff, device->bytes[AT_COL], stream));
    SPMV_TRY(cudaMemsetAsync(device->at[AT_VAL], 0, device->bytes[AT_VAL], stream));
  }
  SPMV_LAUNCH((int64_t)host->m * WARP, 256, stream, fill, *device, (const PetscInt *)A->i, (const PetscInt *)A->j,
              (const Scalar *)A->a);
  return cudaStreamSynchronize(stream);
}

cudaError_t StoredRelease(Stored *device)
{
  for (int k = 0; k < STORED_ARRAYS; k++) {
    if (!device->borrowed && device->at[k]) SPMV_TRY(cudaFree(device->at[k]));
    device->at[k] = nullptr;
  }
  return cudaSuccess;
}
