/*
  How the diagonals of slices are found: the pattern of each slice, the steps that are stored, and the arrays. See
  diagonals.cu for the layout.
*/
#include "core/cuda/layout/diagonalsfill.cuh"

namespace spmv {

struct DiagonalCount {
  unsigned long long steps; // total of all slices
  int                longest, failed;
};

namespace {

// Merges the warp's 32 units by offset: calls f(k, offset, lanes) for each diagonal. Returns -1 if there are more than
// `limit` or columns do not ascend
template <class I, class F> __device__ int walk(const View<I> &v, int slice, int limit, F f)
{
  const int     unit  = slice * WARP + (int)(threadIdx.x % WARP);
  const int     len   = unit < v.units ? v.len(unit) : 0;
  const int64_t start = len ? v.start(unit) : 0;
  int           entry = 0, k = 0, offset = len ? v.col(start, 0) - unit : INT_MAX;
  bool          ok = true;
  while (true) {
    const int      least = __reduce_min_sync(ALL, offset);
    const unsigned lanes = __ballot_sync(ALL, offset == least);
    if (least == INT_MAX) return k;
    if (k == limit || !__all_sync(ALL, ok)) return -1;
    f(k++, least, lanes);
    if (offset == least) {
      offset = ++entry < len ? v.col(start, entry) - unit : INT_MAX;
      ok     = offset > least;
    }
  }
}

__device__ uint64_t mix(uint64_t h, uint64_t a)
{
  h = (h ^ a) * 0x9E3779B97F4A7C15ull;
  h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9ull;
  return h ^ (h >> 32);
}

template <class I>
__global__ void find(View<I> v, int slices, int limit, uint64_t *hash, int *slice, int64_t *steps, DiagonalCount *count)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP);
  if (s >= slices || __any_sync(ALL, IsRaised(&count->failed))) return; // all lanes return together
  uint64_t  h = 1;
  const int k =
      walk(v, s, limit, [&](int, int offset, unsigned lanes) { h = mix(h, (uint64_t)(unsigned)offset << 32 | lanes); });
  if (threadIdx.x % WARP == 0) {
    if (k < 0)
      Raise(&count->failed);
    else {
      hash[s]  = mix(h, k);
      slice[s] = s;
      steps[s] = k;
      atomicAdd(&count->steps, (unsigned long long)k);
      atomicMax(&count->longest, k);
    }
  }
}

// Flags of the sorted hashes: 1 where a new hash begins
__global__ void flag_new(int slices, const uint64_t *hash, int64_t *flag)
{
  const int t = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (t <= slices) flag[t] = t < slices && (t == 0 || hash[t] != hash[t - 1]);
}

// Computes the number of each slice's pattern from the prefix sums of the flags. The first slice of a pattern, at
// `begin` in the sorted order, represents it
__global__ void number(int slices, const uint64_t *hash, const int *slice, const int64_t *sum, int *pattern,
                       int *representative, int *begin)
{
  const int t = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (t >= slices) return;
  const bool begins = t == 0 || hash[t] != hash[t - 1];
  const int  id     = (int)(sum[t] - (begins ? 0 : 1));
  pattern[slice[t]] = id;
  if (begins) {
    representative[id] = slice[t];
    begin[id]          = t;
  }
}

template <class I>
__global__ void write_patterns(View<I> v, int patterns, const int *representative, int stride, int2 *step)
{
  const int p = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP);
  if (p >= patterns) return;
  walk(v, representative[p], stride, [&](int k, int offset, unsigned lanes) {
    if (threadIdx.x % WARP == 0) step[(int64_t)p * stride + k] = make_int2(offset, (int)lanes);
  });
}

// Checks that slices with equal hashes have equal patterns; otherwise products would be wrong without notice
template <class I>
__global__ void verify(View<I> v, int slices, int stride, const int2 *step, int *pattern, int *failed)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP);
  if (s >= slices) return;
  const int2 *mine = step + (int64_t)pattern[s] * stride;
  bool        same = true;
  const int   k    = walk(v, s, stride, [&](int i, int offset, unsigned lanes) {
    same = same && Offset(mine[i]) == offset && Lanes(mine[i]) == lanes;
  });
  if (!same || (k < stride && Lanes(mine[k]))) *failed = 1;
}

struct FoundPatterns {
  // the number of slices with the frequent pattern, and that of the pattern in the lower word; 0 if there is none
  unsigned long long most;
  FrequentPattern    frequent;
  int                failed;
};

// usual: the number of steps that all slices have, or 0 if it differs
__global__ void find_frequent(int patterns, int slices, int stride, int usual, const int *begin, const int2 *step,
                              FoundPatterns *found)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (p >= patterns) return;
  const int2 *mine = step + (int64_t)p * stride;
  int         k    = 0; // the first steps with an entry in every lane
  while (k < stride && Lanes(mine[k]) == ALL) k++;
  if (usual ? k < usual : k == 0 || k > FrequentPattern::MOST || (k < stride && Lanes(mine[k]))) return;
  atomicMax(&found->most,
            (unsigned long long)((p + 1 < patterns ? begin[p + 1] : slices) - begin[p]) << 32 | (unsigned)p);
}

// Runs with FrequentPattern::MOST threads
__global__ void copy_frequent(int stride, const int2 *step, FoundPatterns *found)
{
  const int first = found->most ? (int)(unsigned)found->most * stride : -1, k = (int)threadIdx.x;
  if (k == 0) found->frequent.first = first;
  found->frequent.offset[k] = first >= 0 && k < stride ? Offset(step[first + k]) : 0;
}

__global__ void write_patterns_of_slices(int count, int stride, const int *pattern, int2 *pattern_of_slice)
{
  const int t = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (t < count) pattern_of_slice[t] = make_int2(pattern[t] * stride, 0);
}

__global__ void shorten(int count, const int64_t *wide, unsigned *to)
{
  const int t = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (t < count) to[t] = (unsigned)wide[t];
}

} // namespace

// hash: that of each slice's pattern; slice: 0, 1, 2, ... *stored is false if there are too many patterns, or (which
// should never happen) if two share a hash
cudaError_t DiagonalStore::StorePatterns(const SpMVCudaCSR &csr, Array<uint64_t> &hash, Array<int> &slice, bool *stored,
                                         cudaStream_t stream)
{
  const int              slices = args.slices, stride = args.steps;
  const bool             looks = bs == 1 && (!uniform || args.steps <= FrequentPattern::MOST); // for a frequent pattern
  Scratch<int>           pattern(stream), representative(stream), begin(stream);
  Scratch<int64_t>       begins(stream);
  Scratch<FoundPatterns> found(stream);
  FoundPatterns          host;
  int64_t                patterns;
  *stored = false;
  SPMV_TRY(pattern.Alloc(slices));
  SPMV_TRY(pattern_of_slice.Alloc(slices, stream));
  SPMV_TRY(begins.Alloc(slices + 1));
  SPMV_TRY(representative.Alloc(slices));
  SPMV_TRY(begin.Alloc(slices));
  if (slices) SPMV_TRY(SortPairs(hash, slice, slices, 64, stream));
  SPMV_LAUNCH(slices + 1, 256, stream, flag_new, slices, hash, begins);
  SPMV_TRY(ExclusiveSum(begins, slices + 1, stream));
  SPMV_LAUNCH(slices, 256, stream, number, slices, hash, slice, begins, pattern, representative, begin);
  SPMV_TRY(Fetch(&patterns, (int64_t *)begins + slices, 1, stream));
  if (patterns * stride >= INT_MAX) return cudaSuccess;
  SPMV_TRY(found.AllocZero(1));
  SPMV_TRY(step.AllocZero(patterns * stride, stream));
  SPMV_LAUNCH_VIEW(csr, nodes, patterns * WARP, 256, stream, write_patterns, v, (int)patterns, representative, stride,
                   step);
  SPMV_LAUNCH_VIEW(csr, nodes, (int64_t)slices * WARP, 256, stream, verify, v, slices, stride, step, pattern,
                   &((FoundPatterns *)found)->failed);
  if (looks) {
    SPMV_LAUNCH(patterns, 256, stream, find_frequent, (int)patterns, slices, stride, uniform ? args.steps : 0, begin,
                step, found);
    SPMV_LAUNCH(FrequentPattern::MOST, FrequentPattern::MOST, stream, copy_frequent, stride, step, found);
  }
  SPMV_LAUNCH(slices, 256, stream, write_patterns_of_slices, slices, stride, pattern, pattern_of_slice);
  SPMV_TRY(Fetch(&host, (FoundPatterns *)found, 1, stream));
  if (looks) args.frequent = host.frequent;
  *stored = !host.failed;
  return cudaSuccess;
}

// Allocates the arrays that fills write. count: the number of steps of each slice
cudaError_t DiagonalStore::Allocate(Array<int64_t> &count, cudaStream_t stream)
{
  const int slices = args.slices;
  if (!uniform) {
    SPMV_TRY(ExclusiveSum(count, slices + 1, stream));
    SPMV_TRY(first_value.Alloc(slices + 1, stream));
    SPMV_LAUNCH(slices + 1, 256, stream, shorten, slices + 1, count, first_value);
  }
  if (bs > 1) SPMV_TRY(equal.AllocZero(steps, stream));
  SPMV_TRY(value.AllocZero((size_t)(steps * WARP * bs * bs) * StoredSize(single), stream));
  SPMV_TRY(equal_value.Alloc((size_t)steps * bs * bs * StoredSize(single), stream));
  args.pattern_of_slice = pattern_of_slice;
  args.first_value      = first_value;
  args.step             = step;
  args.equal            = equal;
  args.value            = (char *)value;
  args.equal_value      = (char *)equal_value;
  return cudaSuccess;
}

cudaError_t DiagonalStore::Form(const SpMVCudaCSR &csr, int64_t limit, bool *formed, cudaStream_t stream)
{
  const int              units = (int)(csr.m / bs), slices = (units + WARP - 1) / WARP;
  Scratch<uint64_t>      hash(stream);
  Scratch<int>           slice(stream);
  Scratch<int64_t>       count(stream); // steps of each slice
  Scratch<DiagonalCount> scratch(stream);
  DiagonalCount          found;
  *formed     = false;
  args.units  = units;
  args.slices = slices;
  SPMV_TRY(hash.Alloc(slices));
  SPMV_TRY(slice.Alloc(slices));
  SPMV_TRY(count.Alloc(slices + 1));
  SPMV_TRY(scratch.AllocZero(1));
  SPMV_TRY(count.Zero(stream));
  SPMV_LAUNCH_VIEW(csr, nodes, (int64_t)slices * WARP, 256, stream, find, v, slices, (int)Tuning::DIAGONALS_MOST, hash,
                   slice, count, scratch);
  SPMV_TRY(Fetch(&found, (DiagonalCount *)scratch, 1, stream));
  if (found.failed || (int64_t)found.steps * WARP > limit || found.steps >= UINT_MAX) return cudaSuccess;
  // the same number for all slices if that needs little padding
  args.steps = found.longest;
  steps      = (int64_t)slices * found.longest;
  uniform    = steps <= (int64_t)found.steps + (int64_t)found.steps / Tuning::UNIFORM_SHARE;
  if (!uniform) steps = (int64_t)found.steps;
  SPMV_TRY(StorePatterns(csr, hash, slice, formed, stream));
  return *formed ? Allocate(count, stream) : cudaSuccess;
}

} // namespace spmv
