/*
  The numeric phase: the values of the product. A group of lanes has the rows of a unit, with all their sums in shared
  memory. It multiplies one entry of each row of A after the other with a row of B, whose columns are all different, so
  that each sum is changed by one lane at a time, in the order of the row of A.

  The position of each term in the row of C is searched in a table, and, if there is room for it, stored: later phases
  read it. If there are few units of many entries, several groups share one, and add their sums in the end. Rows with
  too many entries, of C or of A, are computed in parts (items.cu).
*/
#include "table.cuh"

namespace spmv {
namespace {

enum Positions { SEARCH, SEARCH_AND_STORE, READ };

constexpr int AHEAD = 4; // entries of A whose rows of B are loaded at the same time
// groups that share a unit; in launches of at most so many units; with so many entries in the mean row of A
constexpr int SHARING = 4, FEW_UNITS = 4096, MANY_ENTRIES = 64;

struct Output {
  const PetscInt *ci, *cj;
  Scalar         *c;
  unsigned char  *map;
  const int64_t  *map_start;
  const int      *list;
  int             count, lanes, bin, sharing;
};

// The shared memory of a group: the sums of all rows, then the table and the position of the column in each place
__host__ __device__ constexpr int SharedBytes(int bin, int rows, bool table)
{
  return (Capacity(bin) * rows * (int)sizeof(Scalar) + (table ? Places(bin) * (int)(sizeof(int) + 2) : 0) + 15) / 16 *
         16;
}

template <int HOW, int R> __global__ void __launch_bounds__(128) multiply(Factors f, Output out)
{
  const int       lane = threadIdx.x % out.lanes, slot = threadIdx.x / out.lanes, share = slot % out.sharing;
  const int64_t   at     = ((int64_t)blockIdx.x * (blockDim.x / out.lanes) + slot) / out.sharing;
  const int       u      = at >= out.count ? -1 : out.list ? __ldg(out.list + at) : (int)at;
  const int       places = Places(out.bin), shift = __clz(places) + 1;
  const int       bytes = SharedBytes(out.bin, R, HOW != READ);
  const bool      wide  = PositionBytes(out.bin) == 2;
  Scalar         *sum   = (Scalar *)(spmv_shared + slot * bytes);
  int            *table = (int *)(sum + Capacity(out.bin) * R);
  unsigned short *where = (unsigned short *)(table + places);
  int64_t         begin = 0, first = 0, start = 0;
  int             entries = 0, from = 0, end = 0, length = 0, term = 0;

  if (u >= 0) {
    begin   = f.Begin(u);
    entries = f.Length(u);
    from    = (int)((int64_t)entries * share / out.sharing);
    end     = (int)((int64_t)entries * (share + 1) / out.sharing);
    first   = (int64_t)out.ci[(int64_t)u * R];
    length  = (int)(out.ci[(int64_t)u * R + 1] - out.ci[(int64_t)u * R]);
    if (HOW != SEARCH) start = out.map_start[u];
  }
  if (HOW != SEARCH && out.sharing > 1) { // the group is a warp: the terms of the entries before its own
    for (int k = lane; k < from; k += WARP) {
      const int64_t column = (int64_t)__ldg(f.aj + begin + k);
      term += (int)(__ldg(f.bi + column + 1) - __ldg(f.bi + column));
    }
    term = __reduce_add_sync(ALL, term);
  }
  for (int p = lane; p < R * length; p += out.lanes) sum[p] = Num::zero();
  if (HOW != READ) {
    for (int p = lane; p < places; p += out.lanes) table[p] = EMPTY;
    __syncwarp();
    for (int p = lane; p < length; p += out.lanes) {
      unsigned place;
      Insert(table, places, shift, (int)out.cj[first + p], &place);
      where[place] = (unsigned short)p;
    }
  }
  __syncwarp();

  // The position in the row of C of term t, which has column b of B
  const auto position = [&](int64_t b, int t) {
    if (HOW == READ)
      return wide ? (int)__ldg((const unsigned short *)(out.map + start) + t) : (int)__ldg(out.map + start + t);
    return (int)__ldg(f.bj + b);
  };
  const auto find = [&](int key, int t) {
    if (HOW == READ) return key;
    const int place = Find(table, places, shift, key), p = place < 0 ? -1 : (int)where[place];
    if (HOW == SEARCH_AND_STORE) {
      if (wide)
        ((unsigned short *)(out.map + start))[t] = (unsigned short)p;
      else
        out.map[start + t] = (unsigned char)p;
    }
    return p;
  };
  const auto add = [&](int p, const Scalar(&a)[R], Scalar b) {
    if (p < 0) return; // B has another pattern than in the symbolic phase
#pragma unroll
    for (int r = 0; r < R; r++) sum[r * length + p] = Num::fma(a[r], b, sum[r * length + p]);
  };

  const int longest = __reduce_max_sync(ALL, end);
  for (int k = from; k < longest; k += AHEAD) {
    int64_t b[AHEAD];
    int     n[AHEAD], key[AHEAD], before = term;
    Scalar  a[AHEAD][R], value[AHEAD];
#pragma unroll
    for (int e = 0; e < AHEAD; e++) {
      b[e] = k + e < end ? (int64_t)__ldg(f.aj + begin + k + e) : -1;
#pragma unroll
      for (int r = 0; r < R; r++)
        a[e][r] = k + e < end ? Num::keep(f.aa + begin + (int64_t)r * entries + k + e) : Num::zero();
    }
    Issue();
#pragma unroll
    for (int e = 0; e < AHEAD; e++) {
      const int64_t column = b[e];
      b[e]                 = column < 0 ? 0 : (int64_t)__ldg(f.bi + column);
      n[e]                 = column < 0 ? 0 : (int)(__ldg(f.bi + column + 1) - b[e]);
    }
    Issue();
#pragma unroll
    for (int e = 0; e < AHEAD; e++) {
      if (lane < n[e]) {
        value[e] = Num::keep(f.ba + b[e] + lane);
        key[e]   = position(b[e] + lane, before + lane);
      }
      before += n[e];
    }
    Issue();
#pragma unroll
    for (int e = 0; e < AHEAD; e++) {
      if (lane < n[e]) add(find(key[e], term + lane), a[e], value[e]);
      for (int q = lane + out.lanes; q < n[e]; q += out.lanes) {
        const Scalar more = Num::keep(f.ba + b[e] + q);
        add(find(position(b[e] + q, term + q), term + q), a[e], more);
      }
      term += n[e];
      __syncwarp(); // the next row of B may change the same sums
    }
  }
  if (out.sharing > 1) __syncthreads();
  for (int p = share * out.lanes + lane; p < R * length; p += out.sharing * out.lanes) {
    Scalar total = ((Scalar *)(spmv_shared + (slot - share) * bytes))[p];
    for (int s = 1; s < out.sharing; s++)
      total = Num::add(total, ((Scalar *)(spmv_shared + (slot - share + s) * bytes))[p]);
    out.c[first + p] = total;
  }
}

template <int HOW, int R> cudaError_t Launch(const Factors &f, Output out, cudaStream_t stream)
{
  // bytes of shared memory of a block, of a warp, and of groups that share a unit, which any device has
  constexpr int MOST = 64 << 10, GOOD = 16 << 10, MOST_SHARED = 96 << 10;
  const int     group  = SharedBytes(out.bin, R, HOW != READ);
  const auto    kernel = multiply<HOW, R>;
  int           warps  = 4;
  static_assert(SharedBytes(BIG - 1, R, true) <= MOST, "the sums of a unit");
  // the same in all phases, which then add in the same order
  while (out.sharing > 1 && SharedBytes(out.bin, R, true) * out.sharing > MOST_SHARED) out.sharing /= 2;
  if (out.sharing > 1) out.lanes = WARP;
  while (out.lanes < WARP && group * (WARP / out.lanes) > GOOD) out.lanes *= 2;
  const int warp = group * (WARP / out.lanes);
  while (warps > 1 && warps * warp > MOST / 2) warps /= 2;
  if (out.sharing > 1) warps = out.sharing;
  if (warps * warp > 48 << 10)
    SPMV_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, warps * warp));
  ForgetErrors();
  kernel<<<Blocks((int64_t)out.count * out.lanes * out.sharing, warps * WARP), warps * WARP, warps * warp, stream>>>(
      f, out);
  return cudaGetLastError();
}

template <int HOW> cudaError_t LaunchRows(const Factors &f, const Output &out, cudaStream_t stream)
{
  switch (f.node.rows) {
  case 1: return Launch<HOW, 1>(f, out, stream);
  case 2: return Launch<HOW, 2>(f, out, stream);
  case 3: return Launch<HOW, 3>(f, out, stream);
  default: return Launch<HOW, 4>(f, out, stream);
  }
}

} // namespace

cudaError_t Gemm::Numeric(const SpMVCudaCSR &A, const SpMVCudaCSR &B, const PetscInt *ci, const PetscInt *cj, Scalar *c,
                          cudaStream_t stream)
{
  const Factors f(A, B, node);
  for (int bin = 0; bin < BIG; bin++) {
    const int    count   = bins.Count(bin);
    const bool   several = count <= FEW_UNITS && A.nnz >= MANY_ENTRIES * A.m;
    const Output out     = {ci, cj, c, map, map_start, bins.Of(bin), count, lanes, bin, several ? SHARING : 1};
    if (!count) continue;
    if (!map.Size())
      SPMV_TRY(LaunchRows<SEARCH>(f, out, stream));
    else if (mapped)
      SPMV_TRY(LaunchRows<READ>(f, out, stream));
    else
      SPMV_TRY(LaunchRows<SEARCH_AND_STORE>(f, out, stream));
  }
  mapped = true;
  return item.Size() ? NumericItems(f, ci, cj, c, stream) : cudaSuccess;
}

} // namespace spmv
