/*
  The search for node blocks: dense s x s blocks on an s x s grid, complete or not.
*/
#include "core/cuda/csr/entries.cuh"
#include "core/cuda/layout/view.cuh"

namespace spmv {

// A warp checks bs rows at a time. Most matrices fail at once; then no other warp reads columns
template <class I> __device__ bool check_rows(const View<I> &v, int u)
{
  const int     lane = threadIdx.x % WARP, s = v.bs;
  const int64_t first = v.start(u), length = v.i[(int64_t)u * s + 1] - first;
  bool          ok = length % s == 0;
  for (int e = 1; e < s && ok; e++) ok = v.i[(int64_t)u * s + e + 1] - v.i[(int64_t)u * s + e] == length;
  for (int64_t q = lane; q < length && ok; q += WARP) {
    const int64_t c = (int64_t)v.j[first + q - q % s] + q % s;
    ok              = (c - q % s) % s == 0;
    for (int e = 0; e < s && ok; e++) ok = v.j[first + e * length + q] == c;
  }
  return ok;
}

template <class I> __global__ void check_node(View<I> v, int *failed)
{
  const int64_t warps = (int64_t)gridDim.x * (blockDim.x / WARP);
  for (int64_t u = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP; u < v.units && !IsRaised(failed);
       u += warps) {
    if (!check_rows(v, (int)u)) Raise(failed);
  }
}

// Whether node blocks of size s are looked for; without incomplete ones: whether A may consist of complete ones
static bool IsPossible(const SpMVCudaCSR &csr, int node, int s, bool complete)
{
  return csr.nnz && (!node || s == node) && csr.m % s == 0 && csr.n % s == 0 && (!complete || csr.nnz % (s * s) == 0);
}

int NodeSize(const SpMVCudaCSR &csr, int node, const Findings &found)
{
  int s = MAX_NODE;
  while (s > 1 && (!IsPossible(csr, node, s, true) || found.broken[s])) s--;
  return s;
}

cudaError_t StartChecks(const SpMVCudaCSR &csr, int node, int *broken, cudaStream_t stream)
{
  int processors;
  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
  const int64_t most = (int64_t)processors * Tuning::CHECK_THREADS;
  for (int s = 2; s <= MAX_NODE; s++) {
    if (!IsPossible(csr, node, s, true)) continue;
    SPMV_LAUNCH_VIEW(csr, s, PetscMin((int64_t)v.units * WARP, most), 256, stream, check_node, v, broken + s);
  }
  return cudaSuccess;
}

// ------------------------------------------------------------------------------------------------ incomplete blocks

// The first entry of a row whose column is at least c
template <class I> __device__ int64_t find_column(const View<I> &v, int64_t row, int64_t c)
{
  return LowerBound(v.j, (int64_t)v.i[row], (int64_t)v.i[row + 1], c);
}

// Calls f(row of the unit, new, block column), in all lanes of the warp, for each entry of a unit. new: no earlier
// entry is in the same block. Returns false in at least one lane if columns do not ascend
template <class I, class F> __device__ bool each_entry(const View<I> &v, int u, F f)
{
  const int lane = threadIdx.x % WARP, s = v.bs;
  bool      ascend = true;
  for (int e = 0; e < s; e++) {
    const int64_t row = (int64_t)u * s + e, begin = v.i[row], end = v.i[row + 1];
    for (int64_t q0 = begin; q0 < end; q0 += WARP) {
      const int64_t q = q0 + lane, c = q < end ? v.j[q] / s : 0;
      bool          is_new = q < end;
      if (is_new && q > begin) {
        ascend = ascend && v.j[q - 1] < v.j[q];
        is_new = v.j[q - 1] / s != c;
      }
      for (int before = 1; before <= e && is_new; before++) {
        const int64_t p = find_column(v, row - before, c * s);
        is_new          = p >= v.i[row - before + 1] || v.j[p] / s != c;
      }
      f(e, is_new, (int)c);
    }
  }
  return ascend;
}

// Returns the number of a unit's blocks in all lanes. *listed: the rows do not all have the same complete blocks
template <class I> __device__ int64_t count_blocks(const View<I> &v, int u, bool *listed, bool *ascend)
{
  int64_t blocks = 0;
  *listed        = !__all_sync(ALL, check_rows(v, u));
  *ascend        = true;
  if (!*listed) return v.len(u);
  const bool ok = each_entry(v, u, [&](int, bool is_new, int) { blocks += __popc(__ballot_sync(ALL, is_new)); });
  *ascend       = __all_sync(ALL, ok);
  return blocks;
}

// One warp per sampled unit; at most `most` units for each block size 2, 3, ... MAX_NODE. v: the view with single
// entries
template <class I> __global__ void sample_units(View<I> v, unsigned sizes, int most, Sample *out)
{
  const int warp = (int)((blockIdx.x * blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP,
            s = 2 + warp / most;
  v.units /= s;
  v.bs            = s;
  const int count = min(most, v.units), u = (int)((int64_t)(warp % most) * v.units / max(count, 1));
  if (!(sizes >> s & 1) || warp % most >= count) return;
  unsigned indexed = 0;
  for (int64_t row = (int64_t)u * s; row < (int64_t)(u + 1) * s; row++) {
    const int64_t begin = v.i[row], end = v.i[row + 1];
    if (end - begin > Tuning::SAMPLE_LONGEST) return; // would delay all other warps
    if (end - begin < WARP || v.j[end - 1] - v.j[begin] != end - begin - 1) indexed += (unsigned)(end - begin);
  }
  bool          listed, ascend;
  const int64_t blocks = count_blocks(v, u, &listed, &ascend);
  if (lane) return;
  atomicAdd(&out[s].entries, (unsigned long long)(v.i[(int64_t)(u + 1) * s] - v.i[(int64_t)u * s]));
  atomicAdd(&out[s].indexed, (unsigned long long)indexed);
  atomicAdd(&out[s].blocks, (unsigned long long)blocks);
}

// count: the listed blocks of each unit; entries: the total of all units that are not listed
template <class I> __global__ void count_listed(View<I> v, int64_t *count, unsigned long long *entries, int *failed)
{
  const int                     u = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP);
  __shared__ unsigned long long total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  if (u <= v.units && !__any_sync(ALL, IsRaised(failed))) {
    bool          listed = false, ascend = true;
    const int64_t blocks = u < v.units ? count_blocks(v, u, &listed, &ascend) : 0;
    if (threadIdx.x % WARP == 0) {
      count[u] = listed ? blocks : 0;
      if (!ascend) Raise(failed);
      if (!listed && u < v.units) atomicAdd(&total, (unsigned long long)(blocks * v.bs * v.bs));
    }
  }
  __syncthreads();
  if (threadIdx.x == 0 && total) atomicAdd(entries, total);
}

// A warp lists the new blocks of a unit row by row, those of each row in ascending order, and then merges the rows.
// v.first: prefix sums
template <class I> __global__ void list_blocks(View<I> v, int *by_row, int *column, uint64_t *row)
{
  const int u = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP, s = v.bs;
  if (u >= v.units || !v.listed(u)) return;
  const int64_t first = v.first[u];
  int           count = 0, end[MAX_NODE] = {};
  by_row += first;
  each_entry(v, u, [&](int e, bool is_new, int c) {
    const unsigned mask = __ballot_sync(ALL, is_new);
    if (is_new) by_row[count + __popc(mask & ((1u << lane) - 1))] = c;
    count += __popc(mask);
    end[e] = count;
  });
  __syncwarp();
  for (int t = lane; t < count; t += WARP) {
    const int64_t c  = by_row[t];
    int64_t       to = first;
    for (int e = 0, begin = 0; e < s; e++) { // blocks before c
      const int behind = max(begin, end[e]);
      to += LowerBound(by_row, begin, behind, c) - begin;
      begin = behind;
    }
    column[to] = (int)c;
    for (int e = 0; e < s; e++) {
      const int64_t r = (int64_t)u * s + e, at = find_column(v, r, c * s);
      uint64_t      places = 0;
      for (int64_t q = at; q < v.i[r + 1] && v.j[q] / s == c; q++) places |= 1ull << (v.j[q] - c * s);
      row[to * s + e] = (uint64_t)at << 8 | places;
    }
  }
}

cudaError_t ListBlocks(const SpMVCudaCSR &csr, int s, int64_t most, cudaStream_t stream, Nodes *nodes)
{
  const int                    units = (int)(csr.m / s);
  std::shared_ptr<Nodes::List> list  = std::make_shared<Nodes::List>();
  Scratch<unsigned long long>  entries(stream);
  Scratch<int>                 failed(stream), by_row(stream);
  Nodes                        of(s);
  unsigned long long           complete;
  int64_t                      listed;
  int                          bad;
  SPMV_TRY(list->first.Alloc((size_t)units + 1, stream));
  SPMV_TRY(entries.AllocZero(1));
  SPMV_TRY(failed.AllocZero(1));
  SPMV_LAUNCH_VIEW(csr, of, ((int64_t)units + 1) * WARP, 256, stream, count_listed, v, list->first, entries, failed);
  SPMV_TRY(Fetch(&bad, (int *)failed, 1, stream));
  if (bad) return cudaSuccess;
  SPMV_TRY(ExclusiveSum(list->first, (int64_t)units + 1, stream));
  SPMV_TRY(Fetch(&listed, (int64_t *)list->first + units, 1, stream));
  SPMV_TRY(Fetch(&complete, (unsigned long long *)entries, 1, stream));
  list->blocks = (int64_t)complete / (s * s) + listed;
  if (list->blocks > most) return cudaSuccess;
  SPMV_TRY(by_row.Alloc(listed));
  SPMV_TRY(list->column.Alloc(listed, stream));
  SPMV_TRY(list->row.Alloc((size_t)listed * s, stream));
  if (listed) of.list = list;
  SPMV_LAUNCH_VIEW(csr, of, (int64_t)units * WARP, 256, stream, list_blocks, v, by_row, list->column, list->row);
  *nodes = of;
  return cudaSuccess;
}

cudaError_t SampleUnits(const SpMVCudaCSR &csr, int node, Sample *out, cudaStream_t stream)
{
  unsigned sizes = 0;
  for (int s = 2; s <= MAX_NODE; s++) {
    if (IsPossible(csr, node, s, false)) sizes |= 1u << s;
  }
  if (!sizes) return cudaSuccess;
  SPMV_LAUNCH_VIEW(csr, 1, (MAX_NODE - 1) * Tuning::SAMPLE * WARP, 256, stream, sample_units, v, sizes,
                   (int)Tuning::SAMPLE, out);
  return cudaSuccess;
}

cudaError_t FindIncomplete(const SpMVCudaCSR &csr, int node, const Findings &found, size_t value, cudaStream_t stream,
                           Nodes *nodes)
{
  int    best  = 1;
  double least = Tuning::INCOMPLETE_GAIN;
  // bytes per entry, with 16-bit columns
  auto entry = [&](const Sample &of) { return (double)value + 2.0 * (double)of.indexed / (double)of.entries; };
  auto block = [&](int s) { return (double)(s * s) * (double)value + 2.0; };
  for (int s = 2; s <= MAX_NODE; s++) {
    const Sample &of    = found.units[s];
    const double  share = IsPossible(csr, node, s, false) && of.entries
                              ? (double)of.blocks * block(s) / ((double)of.entries * entry(of))
                              : 1.0;
    if (share >= least) continue;
    least = share;
    best  = s;
  }
  if (best == 1) return cudaSuccess;
  return ListBlocks(csr, best,
                    (int64_t)(Tuning::INCOMPLETE_GAIN * (double)csr.nnz * entry(found.units[best]) / block(best)),
                    stream, nodes);
}

} // namespace spmv
