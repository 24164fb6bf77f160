/*
  The layout of EVC-HYB's kernels as printed in the paper.
*/
#include "paper.cuh"

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

// For each bound, the first position in the sorted order after the rows that are not longer than the bound
__global__ void ends(int m, const uint64_t *key, int bounds, const int *bound, int *end)
{
  const int q = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (q >= bounds) return;
  int lo = 0, hi = m;
  while (lo < hi) {
    const int mid = lo + (hi - lo) / 2;
    if ((int)(key[mid] >> 32) <= bound[q])
      lo = mid + 1;
    else
      hi = mid;
  }
  end[q] = lo;
}

__global__ void csr_sizes(int m, int isplit, int align, const uint64_t *key, int64_t *size, const int *order,
                          int *moved)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (p < m && order[p] != p) *moved = 1;
  if (p < isplit || p > m) return;
  size[p - isplit] = p < m ? ((int64_t)(key[p] >> 32) + align - 1) / align * align : 0;
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

// The number of rows that are not longer than each bound
cudaError_t CountRows(const Array<uint64_t> &key, int rows, const std::vector<int> &bounds, std::vector<int> &ended,
                      cudaStream_t stream)
{
  Array<int> bound, end;
  SPMV_TRY(Put(bound, bounds, stream));
  SPMV_TRY(end.Alloc(bounds.size()));
  SPMV_LAUNCH((int)bounds.size(), 128, stream, ends, rows, key, (int)bounds.size(), bound, end);
  ended.resize(bounds.size());
  return Fetch(ended.data(), (int *)end, ended.size(), stream);
}

// The arrays on the host that describe both parts
struct Parts {
  std::vector<int>     mark, length, blocks{0}; // ELL: see SubELL
  std::vector<int64_t> first;
  int64_t              entries = 0;
  std::vector<int>     csr_mark{0}, csr_blocks{0};

  // ELL: forms blocks of rows of one length; the number of rows is a multiple of `align`. Remaining rows join the rows
  // of the next length, and finally the CSR part. Returns the first row of the CSR part
  int FormELL(const std::vector<int> &ended, int limit, int align, int threads)
  {
    int isplit = 0;
    for (int l = 0; l <= limit; l++) {
      const int n = (ended[l] - isplit) / align * align;
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

  // CSR: forms ranges of rows with the same number of threads per row
  void FormCSR(const int *ended, int ranges, int isplit, int threads)
  {
    for (int k = 0; k < ranges; k++) {
      const int n = PetscMax(0, ended[k] - isplit - csr_mark.back());
      csr_mark.push_back(csr_mark.back() + n);
      csr_blocks.push_back(csr_blocks.back() + (int)Blocks((int64_t)n << k, threads));
    }
  }
};

} // namespace

cudaError_t EVCHYBPaperLayout::Create(const SpMVCudaCSR &A, const EVCHYBParams &p, bool adaptive, cudaStream_t stream)
{
  const int rows = (int)A.m, logs = (int)PetscMin(p.max_threads_log2, (PetscInt)9), np = logs + 1,
            csr_align = adaptive ? 1 : EVCHYB_CSR_ALIGN;
  Array<uint64_t>  key;
  Array<int>       moved;
  Parts            parts;
  std::vector<int> bounds, ended;
  uint64_t         longest     = 0;
  int64_t          csr_entries = 0;
  int              was_moved = 0, unsorted = 0, limit;

  names   = adaptive ? ADAPTIVE : PAPER;
  threads = 1 << logs;
  SPMV_TRY(moved.Alloc(1));
  SPMV_TRY(moved.Zero(stream));
  SPMV_TRY(key.Alloc(rows));
  SPMV_TRY(order.Alloc(rows));
  SPMV_TRY(WithView(A, 1, [&](auto v) {
    SPMV_LAUNCH(rows, 256, stream, keys, v, key, order, moved);
    return cudaSuccess;
  }));
  // If the lengths of the rows are ascending already, rows are not sorted: such a matrix was permuted once, and y needs
  // no reordering
  SPMV_TRY(Fetch(&unsorted, (int *)moved, 1, stream));
  if (unsorted) SPMV_TRY(SortPairs(key, order, rows, 63, stream));
  if (rows) SPMV_TRY(Fetch(&longest, (uint64_t *)key + rows - 1, 1, stream));
  limit = adaptive ? -1 : (int)PetscMin(p.ell_limit, (PetscInt)(longest >> 32)); // no row needs a higher limit

  // Count the rows of each length, and the rows for each number of threads
  for (int l = 0; l <= limit; l++) bounds.push_back(l);
  for (int k = 0; k < np; k++) {
    const int64_t most = (int64_t)EVCHYB_NNZ_PER_THREAD << k;
    bounds.push_back(k == np - 1 || most > INT_MAX ? INT_MAX : (int)most);
  }
  SPMV_TRY(CountRows(key, rows, bounds, ended, stream));
  isplit = parts.FormELL(ended, limit, EVCHYB_ROW_ALIGN, threads);
  parts.FormCSR(ended.data() + limit + 1, np, isplit, threads);

  SPMV_TRY(moved.Zero(stream));
  SPMV_TRY(csr_i.Alloc((size_t)rows - isplit + 1));
  SPMV_LAUNCH((int64_t)rows + 1, 256, stream, csr_sizes, rows, isplit, csr_align, key, csr_i, order, moved);
  SPMV_TRY(ExclusiveSum(csr_i, rows - isplit + 1, stream));
  SPMV_TRY(Fetch(&csr_entries, (int64_t *)csr_i + (rows - isplit), 1, stream));
  SPMV_TRY(Fetch(&was_moved, (int *)moved, 1, stream));
  SPMV_TRY(Put(bnz, parts.first, stream));
  SPMV_TRY(Put(clen, parts.length, stream));
  SPMV_TRY(Put(rmark, parts.mark, stream));
  SPMV_TRY(Put(gbmark, parts.blocks, stream));
  SPMV_TRY(Put(csr_rmark, parts.csr_mark, stream));
  SPMV_TRY(Put(csr_gbmark, parts.csr_blocks, stream));
  SPMV_TRY(j.Alloc(parts.entries));
  SPMV_TRY(as.Alloc(parts.entries));
  SPMV_TRY(csr_j.Alloc(csr_entries));
  SPMV_TRY(csr_as.Alloc(csr_entries));
  sorted = was_moved != 0;
  if (sorted) SPMV_TRY(y_sorted.Alloc(rows));
  ell = {bnz, clen, rmark, gbmark, j, as, (int)parts.length.size(), parts.blocks.back()};
  csr = {csr_i, csr_rmark, csr_gbmark, csr_j, csr_as, np, parts.csr_blocks.back()};
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
