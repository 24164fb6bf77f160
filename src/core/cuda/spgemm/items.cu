/*
  The numeric phase of long rows of C, and of rows of A with many entries. Such a row is cut into tiles of columns and
  segments of entries of A; a warp computes one tile of one segment. The terms of 32 entries of A are computed in
  batches of 32, in their order. Those of a batch that belong to one sum are added one at a time. The
  segments' sums are added in their order, too.
*/
#include "table.cuh"
#include "core/cuda/csr/entries.cuh"

namespace spmv {
namespace {

constexpr int TILE = SPMVCUDA_SPGEMM_TILE, PLACES = Places(BIG - 1);
constexpr int BLOCK = 128, ENTRIES = 128, SEGMENTS = 256, SUMS = 1 << 17;
static_assert(TILE == Capacity(BIG - 1), "a tile's table");

// How a row is cut. Several segments have few sums altogether: in comparison with the terms, too
__host__ __device__ inline void Cut(int64_t entries, int64_t length, int64_t terms, int *tiles, int *segments)
{
  int64_t s = entries / ENTRIES;
  if (s > SEGMENTS) s = SEGMENTS;
  if (s > SUMS / length) s = SUMS / length;
  if (s > terms / (4 * length)) s = terms / (4 * length);
  *tiles    = (int)((length + TILE - 1) / TILE);
  *segments = s < 1 ? 1 : (int)s;
}

// Of row k of the listed units: the number of items, of sums of several segments, and whether there are several
__global__ void count_items(Factors f, const int *list, int64_t rows, const int64_t *of_unit, const PetscInt *ci,
                            int64_t *items, int64_t *sums, int64_t *several)
{
  const int64_t k = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  int           tiles, segments;
  if (k >= rows) return;
  const int     u = list ? list[k / f.node.rows] : (int)(k / f.node.rows);
  const int64_t r = (int64_t)u * f.node.rows, length = ci[r + 1] - ci[r];
  Cut(f.Length(u), length, of_unit[u], &tiles, &segments);
  items[k]   = (int64_t)tiles * segments;
  sums[k]    = segments > 1 ? segments * length : 0;
  several[k] = segments > 1;
}

__global__ void list_items(Factors f, const int *list, int64_t rows, const int64_t *of_unit, const PetscInt *ci,
                           const int64_t *items, const int64_t *sums, const int64_t *several, Item *item,
                           Segmented *segmented)
{
  const int64_t k = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP;
  int           tiles, segments;
  if (k >= rows) return;
  const int     u = list ? list[k / f.node.rows] : (int)(k / f.node.rows);
  const int64_t r = (int64_t)u * f.node.rows, length = ci[r + 1] - ci[r];
  const int     row = (int)(r + k % f.node.rows);
  Cut(f.Length(u), length, of_unit[u], &tiles, &segments);
  for (int64_t q = threadIdx.x % WARP; q < (int64_t)tiles * segments; q += WARP)
    item[items[k] + q] = Item{row, (int)(q % tiles), (int)(q / tiles), segments, sums[k]};
  if (segments > 1 && threadIdx.x % WARP == 0) segmented[several[k]] = Segmented{row, segments, sums[k]};
}

__global__ void __launch_bounds__(BLOCK) multiply_items(Factors f, const Item *items, int64_t count, const PetscInt *ci,
                                                        const PetscInt *cj, Scalar *c, Scalar *sums)
{
  constexpr int   SHIFT = 32 - 10;
  const int64_t   k     = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP;
  const int       lane  = threadIdx.x % WARP;
  Scalar         *sum   = (Scalar *)spmv_shared + threadIdx.x / WARP * TILE;
  int            *table = (int *)((Scalar *)spmv_shared + BLOCK / WARP * TILE) + threadIdx.x / WARP * PLACES;
  unsigned short *where =
      (unsigned short *)((int *)((Scalar *)spmv_shared + BLOCK / WARP * TILE) + BLOCK / WARP * PLACES) +
      threadIdx.x / WARP * PLACES;
  static_assert(PLACES == 1 << (32 - SHIFT), "the hash function");
  if (k >= count) return;
  const Item    it    = items[k];
  const int64_t row_c = ci[it.row], length = ci[it.row + 1] - row_c, first = row_c + (int64_t)it.tile * TILE;
  const int     own = (int)(length - (int64_t)it.tile * TILE < TILE ? length - (int64_t)it.tile * TILE : TILE);
  const int64_t low = cj[first], high = cj[first + own - 1];
  const int64_t row_a = f.ai[it.row], entries = f.ai[it.row + 1] - row_a;
  const int64_t begin = row_a + entries * it.segment / it.segments;
  const int64_t end   = row_a + entries * (it.segment + 1) / it.segments;

  for (int p = lane; p < own; p += WARP) sum[p] = Num::zero();
  for (int p = lane; p < PLACES; p += WARP) table[p] = EMPTY;
  __syncwarp();
  for (int p = lane; p < own; p += WARP) {
    unsigned place;
    Insert(table, PLACES, SHIFT, (int)cj[first + p], &place);
    where[place] = (unsigned short)p;
  }
  __syncwarp();
  for (int64_t batch = begin; batch < end; batch += WARP) {
    const int64_t q = batch + lane;
    int64_t       b = 0;
    int           n = 0, upto;
    Scalar        a = Num::zero();
    if (q < end) {
      const int64_t column = f.aj[q];
      int64_t       after  = f.bi[column + 1];
      a                    = f.aa[q];
      b                    = f.bi[column];
      if (length > own) {
        b     = LowerBound(f.bj, b, after, low);
        after = LowerBound(f.bj, b, after, high + 1);
      }
      n = (int)(after - b < TILE ? after - b : TILE); // no more, unless the pattern has changed
    }
    upto = n;
    for (int by = 1; by < WARP; by *= 2) {
      const int below = __shfl_up_sync(ALL, upto, by);
      if (lane >= by) upto += below;
    }
    const int total = __shfl_sync(ALL, upto, WARP - 1);
    for (int t = lane; t - lane < total; t += WARP) {
      // term t is of the first entry whose terms end after it
      int owner = 0;
#pragma unroll
      for (int by = WARP / 2; by; by /= 2) {
        const int ends = __shfl_sync(ALL, upto, owner + by - 1);
        if (ends <= t) owner += by;
      }
      const int      at    = t - __shfl_sync(ALL, upto - n, owner);
      const int64_t  from  = __shfl_sync(ALL, (long long)b, owner);
      const Scalar   value = Num::shfl(a, owner);
      const int      place = t < total ? Find(table, PLACES, SHIFT, (int)f.bj[from + at]) : -1;
      const int      p     = place < 0 ? -1 - lane : (int)where[place];
      const Scalar   other = place < 0 ? Num::zero() : f.ba[from + at];
      const unsigned same  = __match_any_sync(ALL, p);
      const int      turn = __popc(same & ((1u << lane) - 1)), turns = __reduce_max_sync(ALL, __popc(same));
      for (int d = 0; d < turns; d++) {
        if (d == turn && p >= 0) sum[p] = Num::fma(value, other, sum[p]);
        __syncwarp();
      }
    }
  }
  __syncwarp();
  Scalar *to = it.segments > 1 ? sums + it.sums + it.segment * length + (first - row_c) : c + first;
  for (int p = lane; p < own; p += WARP) to[p] = sum[p];
}

__global__ void add_segments(const Segmented *segmented, int64_t count, const PetscInt *ci, Scalar *c,
                             const Scalar *sums)
{
  const Segmented self   = segmented[blockIdx.x];
  const int64_t   first  = ci[self.row];
  const int64_t   length = ci[self.row + 1] - first;
  for (int64_t p = threadIdx.x; p < length; p += blockDim.x) {
    Scalar d = Num::zero();
    for (int s = 0; s < self.segments; s++) d = Num::add(d, sums[self.sums + s * length + p]);
    c[first + p] = d;
  }
}

} // namespace

cudaError_t Gemm::MakeItems(const Factors &f, const Array<int64_t> &of_unit, cudaStream_t stream)
{
  const int64_t    rows    = (int64_t)bins.Count(BIG) * node.rows;
  Scratch<int64_t> part[3] = {Scratch<int64_t>(stream), Scratch<int64_t>(stream), Scratch<int64_t>(stream)};
  int64_t          total[3];
  for (auto &p : part) {
    SPMV_TRY(p.Alloc(rows + 1));
    SPMV_TRY(p.Zero(stream));
  }
  SPMV_LAUNCH(rows, BLOCK, stream, count_items, f, bins.Of(BIG), rows, (const int64_t *)of_unit, (const PetscInt *)i,
              (int64_t *)part[0], (int64_t *)part[1], (int64_t *)part[2]);
  for (int k = 0; k < 3; k++) {
    SPMV_TRY(ExclusiveSum(part[k], rows + 1, stream));
    SPMV_TRY(cudaMemcpyAsync(total + k, (int64_t *)part[k] + rows, sizeof(*total), cudaMemcpyDeviceToHost, stream));
  }
  SPMV_TRY(cudaStreamSynchronize(stream));
  if (total[0] >= INT_MAX) return cudaErrorNotSupported;
  SPMV_TRY(item.Alloc(total[0], stream));
  SPMV_TRY(sums.Alloc(total[1], stream));
  SPMV_TRY(segmented.Alloc(total[2], stream));
  SPMV_LAUNCH(rows * WARP, BLOCK, stream, list_items, f, bins.Of(BIG), rows, (const int64_t *)of_unit,
              (const PetscInt *)i, (const int64_t *)part[0], (const int64_t *)part[1], (const int64_t *)part[2],
              (Item *)item, (Segmented *)segmented);
  return cudaSuccess;
}

cudaError_t Gemm::NumericItems(const Factors &f, const PetscInt *ci, const PetscInt *cj, Scalar *c, cudaStream_t stream)
{
  constexpr size_t SHARED = (size_t)BLOCK / WARP * (TILE * sizeof(Scalar) + PLACES * (sizeof(int) + 2));
  SPMV_TRY(cudaFuncSetAttribute(multiply_items, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)SHARED));
  ForgetErrors();
  multiply_items<<<Blocks((int64_t)item.Size() * WARP, BLOCK), BLOCK, SHARED, stream>>>(f, item, (int64_t)item.Size(),
                                                                                        ci, cj, c, sums);
  SPMV_TRY(cudaGetLastError());
  SPMV_LAUNCH((int64_t)segmented.Size() * BLOCK, BLOCK, stream, add_segments, (const Segmented *)segmented,
              (int64_t)segmented.Size(), ci, c, (const Scalar *)sums);
  return cudaSuccess;
}

} // namespace spmv
