/*
  The layout of EVC-HYB's kernels as printed in the paper.
*/
#include "paper.cuh"
#include <algorithm>

namespace spmv {
namespace {

constexpr SpMVNames PAPER = SPMV_NAMES("CUDA EVC-HYB, the paper's kernel"), ADAPTIVE = SPMV_NAMES("CUDA adaptive CSR");

__global__ void reorder(int m, const int *order, const Scalar *sorted, SpMVCudaForm form, const Scalar *z, Scalar *y)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (p < m) y[order[p]] = Result(form, z, order[p], sorted[p]);
}

template <class I> __global__ void keys(View<I> v, uint64_t *key, int *order, int *descents)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (r >= v.units) return;
  const int len = v.len(r);
  key[r]        = (uint64_t)len << 32 | (unsigned)(len ? v.col(v.start(r), 0) : 0);
  order[r]      = r;
  if (r && v.len(r - 1) > len) *descents = 1;
}

// A warp writes 32 sorted rows: the values if `a` is given, otherwise the columns
template <class I>
__global__ void evchyb_write(View<I> v, int isplit, SubELL ell, SubCSR csr, const int *order, const int *value_index,
                             const Scalar *a, int *j, int *csr_j, Scalar *as, Scalar *csr_as)
{
  const int p = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  auto      put = [&](int row, int64_t q, int64_t at, int *jj, Scalar *aa) {
    const int64_t s   = v.start(row) + q;
    const bool    own = q < v.len(row);
    if (a)
      aa[at] = own ? a[value_index ? value_index[s] : s] : Num::zero();
    else
      jj[at] = own ? (int)v.j[s] : -1;
  };
  // row blocks begin at multiples of 32 if they are aligned like that; otherwise search for each row
  if ((int64_t)p * WARP < isplit) {
    const int r = p * WARP + lane;
    if (r >= isplit) return;
    int ib = 0, hi = ell.np;
    while (hi - ib > 1) {
      const int mid = (ib + hi) / 2;
      if (ell.rmark[mid] <= r)
        ib = mid;
      else
        hi = mid;
    }
    const int rows = ell.rmark[ib + 1] - ell.rmark[ib];
    for (int q = 0; q < ell.clen[ib]; q++) put(order[r], q, ell.bnz[ib] + (int64_t)q * rows + r - ell.rmark[ib], j, as);
  } else {
    const int r = p - (isplit + WARP - 1) / WARP;
    if (r >= v.units - isplit) return;
    for (int64_t q = lane; q < csr.i[r + 1] - csr.i[r]; q += WARP)
      put(order[isplit + r], q, csr.i[r] + q, csr_j, csr_as);
  }
}

template <class T> cudaError_t Put(Array<T> &to, const std::vector<T> &values, cudaStream_t stream)
{
  SPMV_TRY(Upload(to, values, stream));
  return cudaStreamSynchronize(stream);
}

template <class V> cudaError_t Write(EVCHYBPaperLayout &l, V v, const Scalar *a, cudaStream_t stream)
{
  const int64_t warps = (l.isplit + WARP - 1) / WARP + (v.units - l.isplit);
  SPMV_LAUNCH(warps * WARP, 256, stream, evchyb_write, v, l.isplit, l.ell, l.csr, l.order, l.value_index, a, l.j,
              l.csr_j, l.as, l.csr_as);
  return cudaSuccess;
}

// The arrays on the host that describe both parts
struct Parts {
  std::vector<uint64_t> key;                     // the rows in their order: length and first column
  std::vector<int>      mark, length, blocks{0}; // ELL: see SubELL
  std::vector<int64_t>  first;
  int64_t               entries = 0;
  std::vector<int>      csr_mark{0}, csr_blocks{0};
  std::vector<int64_t>  csr_start{0};

  int LengthOf(int row) const
  {
    return (int)(key[row] >> 32);
  }
  // The number of rows that are not longer than that
  int UpTo(int64_t most) const
  {
    return (int)(std::upper_bound(key.begin(), key.end(), (uint64_t)most << 32 | UINT32_MAX) - key.begin());
  }

  // ELL: forms blocks of rows of one length; the number of rows is a multiple of `align`. Remaining rows join the rows
  // of the next length, and finally the CSR part. Returns the first row of the CSR part
  int FormELL(PetscInt limit, int align, int threads)
  {
    const int longest = key.empty() ? 0 : LengthOf((int)key.size() - 1); // no row needs a higher limit
    int       isplit  = 0;
    for (int l = 0; l <= PetscMin(limit, longest); l++) {
      const int n = (UpTo(l) - isplit) / align * align;
      if (!n) continue;
      mark.push_back(isplit);
      length.push_back(l);
      first.push_back(entries);
      entries += (int64_t)n * l;
      isplit += n;
    }
    mark.push_back(isplit);
    // lengths above half of the longest have one row per thread, those above a quarter two, ...
    for (size_t b = 0; b < length.size(); b++) {
      int per = 1;
      for (int l = length.back(); length[b] <= l / 2 && l > 1 && per < 1 << 20; l /= 2) per *= 2;
      blocks.push_back(blocks.back() + (int)Blocks(mark[b + 1] - mark[b], threads * per));
    }
    return isplit;
  }

  // CSR: forms ranges of rows with the same number of threads per row; rows are padded to a multiple of `align`
  void FormCSR(int ranges, int isplit, int align, int threads)
  {
    const int rows = (int)key.size();
    for (int k = 0; k < ranges; k++) {
      const int end = k == ranges - 1 ? rows : UpTo((int64_t)EVCHYB_NNZ_PER_THREAD << k);
      const int n   = PetscMax(0, end - isplit - csr_mark.back());
      csr_mark.push_back(csr_mark.back() + n);
      csr_blocks.push_back(csr_blocks.back() + (int)Blocks((int64_t)n << k, threads));
    }
    for (int r = isplit; r < rows; r++)
      csr_start.push_back(csr_start.back() + (int64_t)(LengthOf(r) + align - 1) / align * align);
  }
};

} // namespace

cudaError_t EVCHYBPaperLayout::Create(const SpMVCudaCSR &A, const EVCHYBParams &p, bool adaptive, cudaStream_t stream)
{
  const int       rows = (int)A.m, logs = (int)PetscMin(p.max_threads_log2, (PetscInt)9);
  Array<uint64_t> key;
  Array<int>      descents;
  Parts           parts;
  int             unsorted = 0;

  names   = adaptive ? ADAPTIVE : PAPER;
  threads = 1 << logs;
  SPMV_TRY(descents.Alloc(1));
  SPMV_TRY(descents.Zero(stream));
  SPMV_TRY(key.Alloc(rows));
  SPMV_TRY(order.Alloc(rows));
  SPMV_TRY(WithView(A, 1, [&](auto v) {
    SPMV_LAUNCH(rows, 256, stream, keys, v, key, order, descents);
    return cudaSuccess;
  }));
  // If the lengths of the rows are ascending already, rows are not sorted: such a matrix was permuted once, and y needs
  // no reordering
  SPMV_TRY(Fetch(&unsorted, (int *)descents, 1, stream));
  sorted = unsorted != 0;
  if (sorted) SPMV_TRY(SortPairs(key, order, rows, 63, stream));
  if (sorted) SPMV_TRY(y_sorted.Alloc(rows));
  parts.key.resize(rows);
  if (rows) SPMV_TRY(Fetch(parts.key.data(), (uint64_t *)key, rows, stream));
  isplit = parts.FormELL(adaptive ? -1 : p.ell_limit, EVCHYB_ROW_ALIGN, threads);
  parts.FormCSR(logs + 1, isplit, adaptive ? 1 : EVCHYB_CSR_ALIGN, threads);
  SPMV_TRY(Put(bnz, parts.first, stream));
  SPMV_TRY(Put(clen, parts.length, stream));
  SPMV_TRY(Put(rmark, parts.mark, stream));
  SPMV_TRY(Put(gbmark, parts.blocks, stream));
  SPMV_TRY(Put(csr_rmark, parts.csr_mark, stream));
  SPMV_TRY(Put(csr_gbmark, parts.csr_blocks, stream));
  SPMV_TRY(Put(csr_i, parts.csr_start, stream));
  SPMV_TRY(j.Alloc(parts.entries));
  SPMV_TRY(as.Alloc(parts.entries));
  SPMV_TRY(csr_j.Alloc(parts.csr_start.back()));
  SPMV_TRY(csr_as.Alloc(parts.csr_start.back()));
  ell = {bnz, clen, rmark, gbmark, j, as, (int)parts.length.size(), parts.blocks.back()};
  csr = {csr_i, csr_rmark, csr_gbmark, csr_j, csr_as, logs + 1, parts.csr_blocks.back()};
  return WithView(A, 1, [&](auto v) { return Write(*this, v, nullptr, stream); });
}

cudaError_t EVCHYBPaperLayout::Fill(const SpMVCudaCSR &A, cudaStream_t stream)
{
  return WithView(A, 1, [&](auto v) { return Write(*this, v, (const Scalar *)A.a, stream); });
}

cudaError_t EVCHYBPaperLayout::Reorder(const Product &p, cudaStream_t stream)
{
  SPMV_LAUNCH(m, 256, stream, reorder, m, order, y_sorted, p.form, p.v.z, p.v.y);
  return cudaSuccess;
}

void EVCHYBPaperLayout::Stats(SpMVStats *o) const
{
  o->long_stored = (PetscInt64)(csr_as.Bytes() / sizeof(Scalar));
  o->stored      = (PetscInt64)(as.Bytes() / sizeof(Scalar)) + o->long_stored;
  o->slices      = ell.np;
  o->long_rows   = m - isplit;
  o->bytes       = bnz.Bytes() + csr_i.Bytes() + clen.Bytes() + rmark.Bytes() + gbmark.Bytes() + csr_rmark.Bytes() +
             csr_gbmark.Bytes() + j.Bytes() + csr_j.Bytes() + order.Bytes() + as.Bytes() + csr_as.Bytes() +
             y_sorted.Bytes();
  o->node = 1;
}

cudaError_t EVCHYBPaperCreate(const SpMVCudaCSR &csr, const EVCHYBParams &p, bool adaptive, cudaStream_t stream,
                              _n_SpMVCudaStore **store)
{
  return EVCHYBPaperCreateWith<EVCHYBMultiply>(csr, p, adaptive, stream, store);
}

} // namespace spmv
