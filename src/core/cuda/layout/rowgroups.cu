/*
  The search for row groups.
*/
#include "core/cuda/layout/view.cuh"

namespace spmv {

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

cudaError_t SampleRows(const SpMVCudaCSR &csr, Sample *out, cudaStream_t stream)
{
  SPMV_LAUNCH_VIEW(csr, 1, (int)Tuning::SAMPLE * TEAM, 256, stream, sample_rows, v, (int)Tuning::SAMPLE, out);
  return cudaSuccess;
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
  SPMV_LAUNCH_VIEW(csr, 1, ((int64_t)rows + 1) * TEAM, 256, stream, flag_runs, v, run);
  SPMV_TRY(ExclusiveSum(run, (int64_t)rows + 1, stream));
  SPMV_TRY(Fetch(&runs, (int64_t *)run + rows, 1, stream));
  SPMV_TRY(start.Alloc(runs));
  SPMV_TRY(ListFlagged(rows, run, start, stream));
  SPMV_TRY(group.Alloc((size_t)rows + 1));
  SPMV_TRY(entries.AllocZero(1));
  SPMV_LAUNCH_VIEW(csr, 1, (int64_t)rows + 1, 256, stream, flag_groups, v, run, start, group, entries);
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

} // namespace spmv
