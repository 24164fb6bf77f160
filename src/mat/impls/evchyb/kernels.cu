/*
  EVC-HYB on the device: what becomes of its parameters there, the paper's kernel, and the adaptive CSR kernel that precedes it.
*/
#include "../../../core/cuda/paper.cuh"

namespace spmv {
namespace {

constexpr SpMVNames PAPER = SPMV_NAMES("CUDA EVC-HYB, the paper's kernel"), ADAPTIVE = SPMV_NAMES("CUDA adaptive CSR"), ROWS = SPMV_NAMES("CUDA EVC-HYB rows"),
                    NODES = SPMV_NAMES("CUDA EVC-HYB rows of node blocks");

// ------------------------------------------------------------------------------------------------ the paper's kernels

// Table 1 of the paper
struct SubELL {
  const int64_t *bnz;    // first entry of each row block
  const int     *clen;   // its length
  const int     *rmark;  // its first row
  const int     *gbmark; // its first GPU block
  const int     *j;      // -1: padding
  const Scalar  *as;
  int            np, gpublks;
};
struct SubCSR {
  const int64_t *i;
  const int     *rmark, *gbmark; // of each range of rows with one number of threads a row
  const int     *j;
  const Scalar  *as;
  int            np, gpublks;
};

__device__ Scalar step(Scalar v, int j, const Scalar *__restrict__ x, bool conjugate, Scalar sum)
{
  return Num::fma(conjugate ? Num::conj(v) : v, Entry(j, x), sum);
}

/*
  The search of both listings: which range this GPU block belongs to. The listings have one thread a range, which takes as many
  threads as ranges; here each thread may look at several, as a block may be smaller.
*/
__device__ int find_range(const int *gbmark, int np, int bid)
{
  __shared__ int ib;
  for (int p = threadIdx.x; p < np; p += blockDim.x) {
    if (bid >= gbmark[p] && bid < gbmark[p + 1]) ib = p;
  }
  __syncthreads();
  return ib;
}

// Listing 1
__device__ void SpMV_ELL_adaptive(const SubELL &ell, const Scalar *__restrict__ x, Scalar alpha, Scalar *y, bool read, Scalar beta, bool conjugate)
{
  const int      tid = threadIdx.x, bid = blockIdx.x, bDim = blockDim.x;
  const int      ib      = find_range(ell.gbmark, ell.np, bid);
  const unsigned NROWB   = ell.rmark[ib + 1] - ell.rmark[ib]; // the last row and a stride fit into 32 bits, but not into 31
  const unsigned rstride = bDim * (ell.gbmark[ib + 1] - ell.gbmark[ib]);
  const int64_t  vlen    = (int64_t)ell.clen[ib] * NROWB;
  Scalar        *yb      = y + ell.rmark[ib];
  const Scalar  *vb      = ell.as + ell.bnz[ib];
  const int     *idxb    = ell.j + ell.bnz[ib];

  for (unsigned row = bDim * (bid - ell.gbmark[ib]) + tid; row < NROWB; row += rstride) {
    const Scalar *v1   = vb + row;
    const int    *idx1 = idxb + row;
    Scalar        sum1 = Num::zero();
    for (int64_t j = 0; j < vlen; j += NROWB) sum1 = step(v1[j], idx1[j], x, conjugate, sum1);
    yb[row] = Update(alpha, sum1, read, beta, yb + row);
  }
}

// Listing 2. Its barriers stand in a loop that threads leave at different times; here the whole block stays until its last row
__device__ void SpMV_CSR_adaptiveTPR(const SubCSR &csr, const Scalar *__restrict__ x, Scalar alpha, Scalar *y, bool read, Scalar beta, bool conjugate,
                                     int EC_BOUNDARY)
{
  Scalar        *sd1 = (Scalar *)spmv_shared;
  const int      tid = threadIdx.x, bid = blockIdx.x - EC_BOUNDARY, bDim = blockDim.x;
  const int      ib          = find_range(csr.gbmark, csr.np, bid);
  const int      TPR         = bDim >> (csr.np - 1 - ib);
  const unsigned NROWB       = csr.rmark[ib + 1] - csr.rmark[ib];
  const unsigned rstride     = bDim / TPR * (csr.gbmark[ib + 1] - csr.gbmark[ib]); // rows of a block first: the threads may be more than 2^31
  const int      irc         = csr.rmark[ib];
  const int64_t  ivstart     = csr.i[irc];
  const int64_t *iib         = csr.i + irc;
  const int     *idxb        = csr.j + ivstart;
  const Scalar  *vb          = csr.as + ivstart;
  Scalar        *yb          = y + irc;
  const unsigned row_id      = bDim / TPR * (bid - csr.gbmark[ib]) + tid / TPR;
  const int      thread_lane = tid % TPR;

  for (unsigned row = row_id; row - tid / TPR < NROWB; row += rstride) {
    Scalar sum = Num::zero();
    if (row < NROWB) {
      const int64_t n = iib[row] - iib[0], len = iib[row + 1] - iib[row];
      for (int64_t j = thread_lane; j < len; j += TPR) sum = step(vb[n + j], idxb[n + j], x, conjugate, sum);
    }
    sd1[tid] = sum;
    __syncthreads();
    for (int i = TPR >> 1; i > 0; i >>= 1) {
      if (thread_lane < i) sd1[tid] = Num::add(sd1[tid], sd1[tid + i]);
      __syncthreads();
    }
    if (thread_lane == 0 && row < NROWB) yb[row] = Update(alpha, sd1[tid], read, beta, yb + row);
    __syncthreads();
  }
}

// Algorithm 1: one launch
__global__ void SpMV_EVCHYB_adaptive(SubELL ell, SubCSR csr, const Scalar *__restrict__ x, Scalar alpha, Scalar *y, bool read, Scalar beta, bool conjugate,
                                     int isplit)
{
  if ((int)blockIdx.x < ell.gpublks)
    SpMV_ELL_adaptive(ell, x, alpha, y, read, beta, conjugate);
  else
    SpMV_CSR_adaptiveTPR(csr, x, alpha, y + isplit, read, beta, conjugate, ell.gpublks);
}

__global__ void reorder(int m, const int *order, const Scalar *sorted, bool read, Scalar beta, Scalar *y)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (p < m) y[order[p]] = read ? Num::fma(beta, y[order[p]], sorted[p]) : sorted[p];
}

// ------------------------------------------------------------------------------------------------ their layout

template <class I> __global__ void keys(View<I> v, uint64_t *key, int *order, int *descents)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (r >= v.units) return;
  const int len = v.len(r);
  key[r]        = (uint64_t)len << 32 | (unsigned)(len ? v.col(v.start(r), 0) : 0);
  order[r]      = r;
  if (r && v.len(r - 1) > len) *descents = 1;
}

// Rows not longer than each bound: the first place in the sorted order after them
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

__global__ void csr_sizes(int m, int isplit, int align, const uint64_t *key, int64_t *size, const int *order, int *moved)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (p < m && order[p] != p) *moved = 1;
  if (p < isplit || p > m) return;
  size[p - isplit] = p < m ? ((int64_t)(key[p] >> 32) + align - 1) / align * align : 0;
}

// A warp writes 32 sorted rows. With a: values, else columns
template <class I>
__global__ void evchyb_write(View<I> v, int isplit, SubELL ell, SubCSR csr, const int *order, const int *from, const Scalar *a, int *j, int *csr_j, Scalar *as,
                             Scalar *csr_as)
{
  const int p = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  auto      put = [&](int row, int64_t q, int64_t at, int *jj, Scalar *aa) {
    const int64_t s   = v.start(row) + q;
    const bool    own = q < v.len(row);
    if (a)
      aa[at] = own ? a[from ? from[s] : s] : Num::zero();
    else
      jj[at] = own ? (int)v.j[s] : -1;
  };
  if ((int64_t)p * WARP < isplit) { // row blocks begin at multiples of 32 if they are aligned so; else search for each row
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
    for (int64_t q = lane; q < csr.i[r + 1] - csr.i[r]; q += WARP) put(order[isplit + r], q, csr.i[r] + q, csr_j, csr_as);
  }
}

struct Paper : PaperBlock {
  SubELL         ell    = {};
  SubCSR         csr    = {};
  int            isplit = 0, threads = 0;
  bool           sorted = false, permute = true; // rows are not in their natural order; y is to be
  Array<int64_t> bnz, csr_i;
  Array<int>     clen, rmark, gbmark, csr_rmark, csr_gbmark, j, csr_j, order;
  Array<Scalar>  as, csr_as, y_sorted;

  template <class T> cudaError_t Put(Array<T> &to, const std::vector<T> &from, cudaStream_t stream)
  {
    SPMV_TRY(to.Alloc(from.size()));
    SPMV_TRY(cudaMemcpyAsync(to, from.data(), to.Bytes(), cudaMemcpyHostToDevice, stream));
    return cudaStreamSynchronize(stream);
  }

  template <class V> cudaError_t Write(V v, const Scalar *a, cudaStream_t stream)
  {
    const int64_t warps = (isplit + WARP - 1) / WARP + (v.units - isplit);
    SPMV_LAUNCH(warps * WARP, 256, stream, evchyb_write, v, isplit, ell, csr, order, from, a, j, csr_j, as, csr_as);
    return cudaSuccess;
  }

  // ell_limit < 0: no ELL part at all, which is the adaptive CSR kernel
  cudaError_t Create(const SpMVCudaCSR &A, const EVCHYBParams &p, int ell_limit, int csr_align, cudaStream_t stream)
  {
    const int       rows = (int)A.m, logs = (int)PetscMin(p.max_threads_log2, (PetscInt)9), np = logs + 1, align = (int)p.row_align;
    Array<uint64_t> key;
    Array<int>      bound, end, moved;
    int             was_moved = 0, unsorted = 0;
    threads = 1 << logs;
    SPMV_TRY(moved.Alloc(1));
    SPMV_TRY(moved.Zero(stream));
    SPMV_TRY(key.Alloc(rows));
    SPMV_TRY(order.Alloc(rows));
    SPMV_TRY(WithView(A, 1, [&](auto v) {
      SPMV_LAUNCH(rows, 256, stream, keys, v, key, order, moved);
      return cudaSuccess;
    }));
    // Rows that ascend by length stay: this is the system that was permuted once, after which y needs no reordering
    SPMV_TRY(Fetch(&unsorted, (int *)moved, 1, stream));
    if (unsorted) SPMV_TRY(SortPairs(key, order, rows, 63, stream));
    uint64_t longest = 0; // no row needs a higher limit, and no list of lengths up to it
    if (rows) SPMV_TRY(Fetch(&longest, (uint64_t *)key + rows - 1, 1, stream));
    ell_limit = PetscMin(ell_limit, (int)(longest >> 32));

    // No row is longer than the last, whatever limit was asked for
    if (rows) {
      uint64_t last;
      SPMV_TRY(Fetch(&last, (uint64_t *)key + (rows - 1), 1, stream));
      ell_limit = (int)PetscMin((int64_t)ell_limit, (int64_t)(last >> 32));
    } else
      ell_limit = PetscMin(ell_limit, 0);

    // How many rows there are of each length, and how many for each number of threads
    std::vector<int> bounds, ended;
    for (int l = 0; l <= ell_limit; l++) bounds.push_back(l);
    for (int k = 0; k < np; k++) {
      const int64_t most = (int64_t)p.nnz_per_thread << k;
      bounds.push_back(k == np - 1 || most > INT_MAX ? INT_MAX : (int)most);
    }
    SPMV_TRY(Put(bound, bounds, stream));
    SPMV_TRY(end.Alloc(bounds.size()));
    SPMV_LAUNCH((int)bounds.size(), 128, stream, ends, rows, key, (int)bounds.size(), bound, end);
    ended.resize(bounds.size());
    SPMV_TRY(Fetch(ended.data(), (int *)end, ended.size(), stream));

    // ELL: rows of a length on boundaries of 32; what is left over joins the next length, in the end the CSR part
    std::vector<int>     mark, len, blocks{0};
    std::vector<int64_t> first;
    int64_t              entries = 0;
    for (int l = 0; l <= ell_limit; l++) {
      const int n = (ended[l] - isplit) / align * align;
      if (!n) continue;
      mark.push_back(isplit);
      len.push_back(l);
      first.push_back(entries);
      entries += (int64_t)n * l;
      isplit += n;
    }
    mark.push_back(isplit);
    for (size_t b = 0; b < len.size(); b++) { // one row a thread of the longer half, two of the next quarter, ...
      int per = 1;
      for (int l = len.back(); len[b] <= l / 2 && l > 1 && per < 1 << 20; l /= 2) per *= 2;
      blocks.push_back(blocks.back() + (int)Blocks(mark[b + 1] - mark[b], threads * per));
    }
    // CSR: ranges of rows by threads a row
    std::vector<int> csr_mark{0}, csr_blocks{0};
    for (int k = 0; k < np; k++) {
      const int n = PetscMax(0, ended[ell_limit + 1 + k] - isplit - csr_mark.back());
      csr_mark.push_back(csr_mark.back() + n);
      csr_blocks.push_back(csr_blocks.back() + (int)Blocks((int64_t)n << k, threads));
    }
    int64_t csr_entries = 0;
    SPMV_TRY(moved.Zero(stream));
    SPMV_TRY(csr_i.Alloc((size_t)rows - isplit + 1));
    SPMV_LAUNCH((int64_t)rows + 1, 256, stream, csr_sizes, rows, isplit, csr_align, key, csr_i, order, moved);
    SPMV_TRY(ExclusiveSum(csr_i, rows - isplit + 1, stream));
    SPMV_TRY(Fetch(&csr_entries, (int64_t *)csr_i + (rows - isplit), 1, stream));
    SPMV_TRY(Fetch(&was_moved, (int *)moved, 1, stream));
    SPMV_TRY(Put(bnz, first, stream));
    SPMV_TRY(Put(clen, len, stream));
    SPMV_TRY(Put(rmark, mark, stream));
    SPMV_TRY(Put(gbmark, blocks, stream));
    SPMV_TRY(Put(csr_rmark, csr_mark, stream));
    SPMV_TRY(Put(csr_gbmark, csr_blocks, stream));
    SPMV_TRY(j.Alloc(entries));
    SPMV_TRY(as.Alloc(entries));
    SPMV_TRY(csr_j.Alloc(csr_entries));
    SPMV_TRY(csr_as.Alloc(csr_entries));
    sorted = was_moved != 0;
    if (sorted) SPMV_TRY(y_sorted.Alloc(rows));
    ell = {bnz, clen, rmark, gbmark, j, as, (int)len.size(), blocks.back()};
    csr = {csr_i, csr_rmark, csr_gbmark, csr_j, csr_as, np, csr_blocks.back()};
    return WithView(A, 1, [&](auto v) { return Write(v, nullptr, stream); });
  }

  cudaError_t Fill(const SpMVCudaCSR &A, cudaStream_t stream) override
  {
    return WithView(A, 1, [&](auto v) { return Write(v, (const Scalar *)A.a, stream); });
  }

  cudaError_t Product(Scalar alpha, const Scalar *x, bool read, Scalar beta, bool conjugate, Scalar *y, cudaStream_t stream) override
  {
    const bool     after = sorted && permute;
    const unsigned grid  = (unsigned)(ell.gpublks + csr.gpublks);
    if (!grid) return cudaSuccess;
    ForgetErrors();
    SpMV_EVCHYB_adaptive<<<grid, threads, threads * sizeof(Scalar), stream>>>(ell, csr, x, alpha, after ? (Scalar *)y_sorted : y, read && !after, beta,
                                                                              conjugate, isplit);
    SPMV_TRY(cudaGetLastError());
    if (after) SPMV_LAUNCH(m, 256, stream, reorder, m, order, y_sorted, read, beta, y);
    return cudaSuccess;
  }

  cudaError_t SetReorder(bool reorder) override
  {
    permute = reorder;
    return cudaSuccess;
  }

  void Stats(SpMVStats *o) const override
  {
    o->long_stored = (PetscInt64)(csr_as.Bytes() / sizeof(Scalar));
    o->stored      = (PetscInt64)(as.Bytes() / sizeof(Scalar)) + o->long_stored;
    o->slices      = ell.np;
    o->long_rows   = m - isplit;
    o->bytes       = bnz.Bytes() + csr_i.Bytes() + clen.Bytes() + rmark.Bytes() + gbmark.Bytes() + csr_rmark.Bytes() + csr_gbmark.Bytes() + j.Bytes() +
               csr_j.Bytes() + order.Bytes() + as.Bytes() + csr_as.Bytes() + y_sorted.Bytes();
    o->node = 1;
  }

  cudaError_t Visit(SpMVVisitor entry, void *ctx) const override
  {
    std::vector<int64_t> b, i;
    std::vector<int>     l, r, c, cc, o;
    std::vector<Scalar>  v, vv;
    SPMV_TRY(bnz.Read(b));
    SPMV_TRY(csr_i.Read(i));
    SPMV_TRY(clen.Read(l));
    SPMV_TRY(rmark.Read(r));
    SPMV_TRY(j.Read(c));
    SPMV_TRY(csr_j.Read(cc));
    SPMV_TRY(order.Read(o));
    SPMV_TRY(as.Read(v));
    SPMV_TRY(csr_as.Read(vv));
    auto show = [&](int place, int col, const Scalar &value) {
      if (col >= 0) Show(entry, ctx, o[place], col, value);
    };
    for (size_t k = 0; k < l.size(); k++) {
      const int n = r[k + 1] - r[k];
      for (int64_t q = 0; q < (int64_t)n * l[k]; q++) show(r[k] + (int)(q % n), c[b[k] + q], v[b[k] + q]);
    }
    for (int p = isplit; p < m; p++) {
      for (int64_t q = i[p - isplit]; q < i[p - isplit + 1]; q++) show(p, cc[q], vv[q]);
    }
    return cudaSuccess;
  }
};

} // namespace
} // namespace spmv

cudaError_t SpMVCudaEVCHYBSetUp(const SpMVCudaCSR *csr, const EVCHYBParams *p, SpMVCudaKernel kernel, PetscBool transpose, cudaStream_t stream,
                                SpMVCudaStore *block)
{
  using namespace spmv;
  return SetUp(csr, (bool)transpose, stream, block, [&](const SpMVCudaCSR &A, _n_SpMVCudaStore **b) {
    if (kernel == SPMVCUDA_KERNEL_PAPER || kernel == SPMVCUDA_KERNEL_ADAPTIVE) {
      const bool adaptive = kernel == SPMVCUDA_KERNEL_ADAPTIVE;
      Paper     *s        = new (std::nothrow) Paper;
      *b                  = s;
      if (!s) return cudaErrorMemoryAllocation;
      s->names = adaptive ? ADAPTIVE : PAPER;
      return s->Create(A, *p, adaptive ? -1 : (int)PetscMin(p->ell_limit, (PetscInt)INT_MAX), adaptive ? 1 : (int)p->csr_align, stream);
    }
    Choice c = {(int)p->common.node,
                p->common.compress && kernel != SPMVCUDA_KERNEL_SLICES,
                p->common.single && sizeof(Single) < sizeof(Scalar),
                kernel == SPMVCUDA_KERNEL_TUNE,
                {1024, 65536, 0},
                ROWS,
                NODES,
                nullptr};
    c.rules  = [p](const Survey &s, int bs, int64_t) {
      SliceRules r;
      r.narrow = p->common.compress != 0;
      r.vector = (int)PetscMin(p->ell_limit, (PetscInt)INT_MAX);
      // The format's order, by length and first column, over all rows takes apart what neighbouring rows share. Where they share x, rows
      // keep to windows; single entries also lose to the second key there, as equal rows come in their own order otherwise
      r.by_column = bs > 1 || !s.local();
      r.sigma     = !s.local() ? 0 : bs > 1 ? 65536 : 1024;
      return r;
    };
    return Choose(A, c, stream, b);
  });
}
