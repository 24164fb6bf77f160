/*
  The statistics from which a layout is chosen, and the sorts and scans that set-up uses.
*/
#include "core/cuda/base/prepare.cuh"
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace spmv {

cudaError_t ExclusiveSum(Array<int64_t> &a, int64_t count, cudaStream_t stream)
{
  size_t        bytes = 0;
  Scratch<char> scratch(stream);
  ForgetErrors();
  SPMV_TRY(cub::DeviceScan::ExclusiveSum(nullptr, bytes, (int64_t *)a, (int64_t *)a, count, stream));
  SPMV_TRY(scratch.Alloc(bytes));
  return cub::DeviceScan::ExclusiveSum(scratch, bytes, (int64_t *)a, (int64_t *)a, count, stream);
}

template <class K, class V>
static cudaError_t Sort(Array<K> &key, Array<V> &value, int64_t count, int bits, cudaStream_t stream)
{
  size_t        bytes = 0;
  Scratch<char> scratch(stream);
  Scratch<K>    key2(stream);
  Scratch<V>    value2(stream);
  ForgetErrors();
  SPMV_TRY(key2.Alloc(count));
  SPMV_TRY(value2.Alloc(count));
  cub::DoubleBuffer<K> k(key, key2);
  cub::DoubleBuffer<V> v(value, value2);
  SPMV_TRY(cub::DeviceRadixSort::SortPairs(nullptr, bytes, k, v, count, 0, bits, stream));
  SPMV_TRY(scratch.Alloc(bytes));
  SPMV_TRY(cub::DeviceRadixSort::SortPairs(scratch, bytes, k, v, count, 0, bits, stream));
  if (k.Current() != (K *)key) key.Swap(key2);
  if (v.Current() != (V *)value) value.Swap(value2);
  return cudaSuccess;
}

cudaError_t SortPairs(Array<uint64_t> &key, Array<int> &value, int64_t count, int bits, cudaStream_t stream)
{
  return Sort(key, value, count, bits, stream);
}

cudaError_t SortPairs(Array<uint64_t> &key, Array<int64_t> &value, int64_t count, int bits, cudaStream_t stream)
{
  return Sort(key, value, count, bits, stream);
}

// ------------------------------------------------------------------------------------------------ survey

template <class I> __global__ void survey(View<I> v, double slope, Survey *out)
{
  const int         u      = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  const int         length = u < v.units ? v.len(u) : 0, longest = __reduce_max_sync(ALL, length);
  const int         empty  = __popc(__ballot_sync(ALL, u < v.units && !length));
  const unsigned    bulk   = __reduce_add_sync(ALL, (unsigned)(length > Tuning::LONG ? min(length, 1 << 26) : 0));
  unsigned          looked = 0, near = 0;
  __shared__ Survey total;
  for (int q = 0; q < length; q += length / 4 + 1) {
    looked++;
    near += fabs(v.col(v.start(u), q) - u * slope) <= Tuning::NEAR;
  }
  looked = __reduce_add_sync(ALL, looked);
  near   = __reduce_add_sync(ALL, near);
  if (threadIdx.x == 0) total = Survey{0, 0, 0, 0, 0, 0};
  __syncthreads();
  if (threadIdx.x % WARP == 0) {
    atomicAdd(&total.natural, (unsigned long long)longest * WARP);
    atomicAdd(&total.bulk, (unsigned long long)bulk);
    atomicMax(&total.longest, longest);
    atomicAdd(&total.empty, empty);
    atomicAdd(&total.looked, looked);
    atomicAdd(&total.near, near);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&out->natural, total.natural);
    atomicAdd(&out->bulk, total.bulk);
    atomicMax(&out->longest, total.longest);
    atomicAdd(&out->empty, total.empty);
    atomicAdd(&out->looked, total.looked / 4); // at most four per unit, so that the sum fits
    atomicAdd(&out->near, total.near / 4);
  }
}

cudaError_t LoadAnalysis()
{
  return Load((const void *)survey<PetscInt>);
}

cudaError_t Supported()
{
  int major;
  SPMV_TRY(DeviceHas(cudaDevAttrComputeCapabilityMajor, &major));
  const cudaError_t error = major < 8 ? cudaErrorNoKernelImageForDevice : Load((const void *)survey<int>);
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction &&
      error != cudaErrorUnsupportedPtxVersion)
    return error;
  ForgetErrors();
  return cudaErrorNotSupported;
}

// out: zeros
static cudaError_t StartSurvey(const SpMVCudaCSR &csr, const Nodes &nodes, Survey *out, cudaStream_t stream)
{
  return WithView(csr, nodes, [&](auto v) {
    SPMV_LAUNCH(v.units, 256, stream, survey, v, csr.m ? (double)csr.n / (double)csr.m : 0.0, out);
    return cudaSuccess;
  });
}

cudaError_t TakeSurvey(const SpMVCudaCSR &csr, const Nodes &nodes, cudaStream_t stream, Survey *host)
{
  Scratch<Survey> s(stream);
  SPMV_TRY(s.Alloc(1));
  SPMV_TRY(s.Zero(stream));
  SPMV_TRY(StartSurvey(csr, nodes, s, stream));
  return Fetch(host, (Survey *)s, 1, stream);
}

// ------------------------------------------------------------------------------------------------ node blocks

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

// broken: zeros
static cudaError_t StartChecks(const SpMVCudaCSR &csr, int node, int *broken, cudaStream_t stream)
{
  int processors;
  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
  const int64_t most = (int64_t)processors * Tuning::CHECK_THREADS;
  for (int s = 2; s <= MAX_NODE; s++) {
    if (!IsPossible(csr, node, s, true)) continue;
    SPMV_TRY(WithView(csr, s, [&](auto v) {
      SPMV_LAUNCH(PetscMin((int64_t)v.units * WARP, most), 256, stream, check_node, v, broken + s);
      return cudaSuccess;
    }));
  }
  return cudaSuccess;
}

// ------------------------------------------------------------------------------------------------ incomplete node
// blocks

// The first entry of a row whose column is at least c
template <class I> __device__ int64_t find_column(const View<I> &v, int64_t row, int64_t c)
{
  int64_t low = v.i[row], high = v.i[row + 1];
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (v.j[middle] < c)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
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

// One warp per sampled unit; `groups` units for each block size 2, 3, ... MAX_NODE. v: the view with single entries
template <class I> __global__ void sample_units(View<I> v, unsigned sizes, int groups, Sample *out)
{
  const int warp = (int)((blockIdx.x * blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP,
            s = 2 + warp / groups;
  v.units /= s;
  v.bs            = s;
  const int count = min(groups, v.units), u = (int)((int64_t)(warp % groups) * v.units / max(count, 1));
  if (!(sizes >> s & 1) || warp % groups >= count) return;
  unsigned indexed = 0;
  for (int64_t row = (int64_t)u * s; row < (int64_t)(u + 1) * s; row++) {
    const int64_t begin = v.i[row], end = v.i[row + 1];
    if (end - begin > Tuning::SAMPLE_LONGEST) return; // would delay all other warps
    for (int64_t q = begin + lane; q < end; q += WARP)
      indexed += q - begin < WARP - 1 || v.j[q] - v.j[q - (WARP - 1)] != WARP - 1;
  }
  bool          listed, ascend;
  const int64_t blocks = count_blocks(v, u, &listed, &ascend);
  indexed              = __reduce_add_sync(ALL, indexed);
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
      int low = begin, high = max(begin, end[e]);
      while (low < high) {
        const int middle = (low + high) / 2;
        if (by_row[middle] < c)
          low = middle + 1;
        else
          high = middle;
      }
      to += low - begin;
      begin = max(begin, end[e]);
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
  SPMV_TRY(entries.Alloc(1));
  SPMV_TRY(entries.Zero(stream));
  SPMV_TRY(failed.Alloc(1));
  SPMV_TRY(failed.Zero(stream));
  SPMV_TRY(WithView(csr, of, [&](auto v) {
    SPMV_LAUNCH(((int64_t)units + 1) * WARP, 256, stream, count_listed, v, list->first, entries, failed);
    return cudaSuccess;
  }));
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
  SPMV_TRY(WithView(csr, of, [&](auto v) {
    SPMV_LAUNCH((int64_t)units * WARP, 256, stream, list_blocks, v, by_row, list->column, list->row);
    return cudaSuccess;
  }));
  *nodes = of;
  return cudaSuccess;
}

// out: zeros
static cudaError_t SampleUnits(const SpMVCudaCSR &csr, int node, Sample *out, cudaStream_t stream)
{
  unsigned sizes = 0;
  for (int s = 2; s <= MAX_NODE; s++) {
    if (IsPossible(csr, node, s, false)) sizes |= 1u << s;
  }
  if (!sizes) return cudaSuccess;
  return WithView(csr, 1, [&](auto v) {
    SPMV_LAUNCH((MAX_NODE - 1) * Tuning::SAMPLE * WARP, 256, stream, sample_units, v, sizes, (int)Tuning::SAMPLE, out);
    return cudaSuccess;
  });
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

// ------------------------------------------------------------------------------------------------ row groups

constexpr int TEAM = 8; // lanes that compare two rows

// Compares row r with row r - 1. Each lane of a team returns what it has found in its entries
template <class I> __device__ bool same_columns(const View<I> &v, int r)
{
  const int64_t before = v.i[r - 1], begin = v.i[r], length = v.i[r + 1] - begin;
  bool          same = begin - before == length;
  for (int64_t q = threadIdx.x % TEAM; q < length && same; q += TEAM) same = v.j[before + q] == v.j[begin + q];
  return same;
}
// Whether `is` is true in any lane of the team; all lanes of the warp call it
__device__ __forceinline__ bool any_in_team(bool is)
{
  return __ballot_sync(ALL, is) >> (threadIdx.x % WARP / TEAM * TEAM) & ((1u << TEAM) - 1);
}

// Each team compares one row with the previous one. The rows are scattered, because rows at equal distances could all
// be, for example, the first ones of their groups
template <class I> __global__ void sample_rows(View<I> v, int count, Sample *out)
{
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x, k = t / TEAM;
  const int      r      = 1 + (int)((k * 0x9e3779b97f4a7c15ull >> 32) % (unsigned)(v.units - 1));
  const int      length = v.len(r);
  const bool     use = k < count && length <= Tuning::SAMPLE_LONGEST, begins = any_in_team(use && !same_columns(v, r));
  const unsigned one     = use && t % TEAM == 0 ? length : 0;
  const unsigned entries = __reduce_add_sync(ALL, one), first = __reduce_add_sync(ALL, begins ? one : 0);
  if (t % WARP) return;
  atomicAdd(&out->entries, (unsigned long long)entries);
  atomicAdd(&out->blocks, (unsigned long long)first);
}

// flag[r]: whether row r differs from row r - 1
template <class I> __global__ void flag_runs(View<I> v, int64_t *flag)
{
  const int64_t t = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, r = t / TEAM;
  const bool    begins = any_in_team(r < v.units && (r == 0 || !same_columns(v, (int)r)));
  if (t % TEAM == 0 && r <= v.units) flag[r] = begins;
}

// Cuts runs into groups of nearly equal size. sum: prefix sums of the flags; start: first row of each run. flag[r]:
// whether row r begins a group. entries: the total of the first rows of all groups
template <class I>
__global__ void flag_groups(View<I> v, const int64_t *sum, const int *start, int64_t *flag, unsigned long long *entries)
{
  const int64_t r      = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  unsigned      length = 0;
  if (r <= v.units) {
    bool begins = false;
    if (r < v.units) {
      const int64_t run   = sum[r + 1] - 1;
      const int     first = start[run], rows = (run + 1 < sum[v.units] ? start[run + 1] : v.units) - first,
                at     = (int)r - first;
      const int groups = (rows + RowGroups::MOST - 1) / RowGroups::MOST, size = rows / groups,
                larger = rows % groups * (size + 1);
      begins           = at < larger ? at % (size + 1) == 0 : (at - larger) % size == 0;
    }
    flag[r] = begins;
    if (begins) length = (unsigned)v.len((int)r);
  }
  const unsigned all = __reduce_add_sync(ALL, length);
  if (threadIdx.x % WARP == 0 && all) atomicAdd(entries, (unsigned long long)all);
}

static __global__ void list_flagged(int count, const int64_t *sum, int *list)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (r < count && sum[r + 1] > sum[r]) list[sum[r]] = r;
}

cudaError_t ListFlagged(int count, const int64_t *sum, int *list, cudaStream_t stream)
{
  SPMV_LAUNCH(count, 256, stream, list_flagged, count, sum, list);
  return cudaSuccess;
}

// out: zeros
static cudaError_t SampleRows(const SpMVCudaCSR &csr, Sample *out, cudaStream_t stream)
{
  return WithView(csr, 1, [&](auto v) {
    SPMV_LAUNCH((int)Tuning::SAMPLE * TEAM, 256, stream, sample_rows, v, (int)Tuning::SAMPLE, out);
    return cudaSuccess;
  });
}

cudaError_t Find(const SpMVCudaCSR &csr, int node, cudaStream_t stream, Findings *host)
{
  Scratch<Findings> found(stream);
  SPMV_TRY(found.Alloc(1));
  SPMV_TRY(found.Zero(stream));
  Findings *out = found;
  SPMV_TRY(StartSurvey(csr, 1, &out->survey, stream));
  if (node != 1) {
    SPMV_TRY(StartChecks(csr, node, out->broken, stream));
    SPMV_TRY(SampleUnits(csr, node, out->units, stream));
  }
  if (!node && csr.m > 1) SPMV_TRY(SampleRows(csr, &out->rows, stream));
  return Fetch(host, out, 1, stream);
}

cudaError_t FindGroups(const SpMVCudaCSR &csr, const Findings &found, cudaStream_t stream, RowGroups *groups)
{
  const int                   rows = (int)csr.m;
  Scratch<int64_t>            run(stream), group(stream);
  Scratch<int>                start(stream);
  Scratch<unsigned long long> entries(stream);
  int64_t                     runs, count;
  unsigned long long          stored;
  // Mostly empty rows: products must not touch empty rows. Longest: a sort key also has columns and the sizes of groups
  if (rows < 2 || !csr.nnz || found.survey.empty > rows / 2 || found.survey.longest > Tuning::GROUPS_LONGEST)
    return cudaSuccess;
  if ((double)found.rows.blocks > (Tuning::GROUPS_SHARE + Tuning::GROUPS_MARGIN) * (double)found.rows.entries)
    return cudaSuccess;

  SPMV_TRY(run.Alloc((size_t)rows + 1));
  SPMV_TRY(WithView(csr, 1, [&](auto v) {
    SPMV_LAUNCH(((int64_t)rows + 1) * TEAM, 256, stream, flag_runs, v, run);
    return cudaSuccess;
  }));
  SPMV_TRY(ExclusiveSum(run, (int64_t)rows + 1, stream));
  SPMV_TRY(Fetch(&runs, (int64_t *)run + rows, 1, stream));
  SPMV_TRY(start.Alloc(runs));
  SPMV_TRY(ListFlagged(rows, run, start, stream));
  SPMV_TRY(group.Alloc((size_t)rows + 1));
  SPMV_TRY(entries.Alloc(1));
  SPMV_TRY(entries.Zero(stream));
  SPMV_TRY(WithView(csr, 1, [&](auto v) {
    SPMV_LAUNCH((int64_t)rows + 1, 256, stream, flag_groups, v, run, start, group, entries);
    return cudaSuccess;
  }));
  SPMV_TRY(ExclusiveSum(group, (int64_t)rows + 1, stream));
  SPMV_TRY(cudaMemcpyAsync(&count, (int64_t *)group + rows, sizeof(count), cudaMemcpyDeviceToHost, stream));
  SPMV_TRY(Fetch(&stored, (unsigned long long *)entries, 1, stream));
  if ((double)stored > Tuning::GROUPS_SHARE * (double)csr.nnz) return cudaSuccess;
  SPMV_TRY(groups->first.Alloc((size_t)count + 1, stream));
  SPMV_TRY(ListFlagged(rows, group, groups->first, stream));
  SPMV_TRY(cudaMemcpyAsync(groups->first + count, &rows, sizeof(rows), cudaMemcpyHostToDevice, stream));
  SPMV_TRY(cudaStreamSynchronize(stream)); // `rows` is on the stack
  groups->count = (int)count;
  return cudaSuccess;
}

// ------------------------------------------------------------------------------------------------ transpose

template <class I> __global__ void list_entries(View<I> v, unsigned *key, int *position, int *row)
{
  const int u = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (u >= v.units) return;
  for (int64_t q = v.i[u] + lane; q < v.i[u + 1]; q += WARP) {
    key[q]      = (unsigned)v.j[q];
    position[q] = (int)q;
    row[q]      = u;
  }
}

// Row offsets of the sorted entries: entry q sets the offsets of all rows after the previous entry's row, up to its own
// row
static __global__ void offsets_of(int64_t nnz, int rows, const unsigned *key, const int *position, const int *row,
                                  int *it, int *jt)
{
  const int64_t q = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (q > nnz) return;
  const int before = q ? (int)key[q - 1] : -1, own = q < nnz ? (int)key[q] : rows;
  for (int r = before + 1; r <= own; r++) it[r] = (int)q;
  if (q < nnz) jt[q] = row[position[q]];
}

cudaError_t TransposeCSR(const SpMVCudaCSR &csr, cudaStream_t stream, Array<int> &it, Array<int> &jt,
                         Array<int> &value_index)
{
  Scratch<unsigned> key(stream);
  Scratch<int>      row(stream);
  SPMV_TRY(key.Alloc(csr.nnz));
  SPMV_TRY(row.Alloc(csr.nnz));
  SPMV_TRY(value_index.Alloc(csr.nnz, stream));
  SPMV_TRY(jt.Alloc(csr.nnz, stream));
  SPMV_TRY(it.Alloc(csr.n + 1, stream));
  SPMV_TRY(WithView(csr, 1, [&](auto v) {
    SPMV_LAUNCH((int64_t)v.units * WARP, 256, stream, list_entries, v, key, value_index, row);
    return cudaSuccess;
  }));
  // The sort is stable, so that the rows of A ascend within each row of A^T
  if (csr.nnz) SPMV_TRY(Sort(key, value_index, csr.nnz, BitsFor(csr.n), stream));
  SPMV_LAUNCH(csr.nnz + 1, 256, stream, offsets_of, csr.nnz, (int)csr.n, key, value_index, row, it, jt);
  return cudaSuccess;
}

} // namespace spmv
