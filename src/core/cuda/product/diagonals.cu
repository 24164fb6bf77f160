/*
  Matrices whose entries lie on few diagonals (stencils, also with several unknowns per point): slices of 32 consecutive
  units, one unit per lane.

  A slice refers to a pattern: the list of its steps, each an offset (column minus row) and a mask of the lanes that
  have an entry there. Equal patterns are stored once, so that they stay in L1. From memory, a product reads only
  values, 8 to 12 bytes per slice, x and y. Lanes without an entry do not read x.

  Each fill marks the steps whose values are all equal: a warp then reads one value instead of 32. It reads a second
  copy of the value, in an array with one value per step, because reading 8 bytes transfers 64 from memory. Lanes
  without an entry hold another lane's value, so that they do not prevent the marking. A step of node blocks is also
  marked if only a few lanes have another block, such as those at the end of a line of finite elements; these read their
  own.
*/
#include "columns.cuh"
#include "core/cuda/layout/diagonalsfill.cuh"
#include "diagonalsproduct.cuh"
#include "core/cuda/base/prepare.cuh"

namespace spmv {
namespace {

constexpr SpMVNames ENTRIES = SPMV_NAMES("CUDA diagonals"), NODES = SPMV_NAMES("CUDA diagonals of node blocks");

// ------------------------------------------------------------------------------------------------ layout

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

struct Count {
  unsigned long long steps; // total of all slices
  int                longest, failed;
};

template <class I>
__global__ void find(View<I> v, int slices, int limit, uint64_t *hash, int *slice, int64_t *steps, Count *count)
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

constexpr int USUALS = 4;

// The k-th number of steps for which there is a kernel, k < USUALS
__host__ __device__ int Usual(int k)
{
  return 3 + 2 * k;
}

// Counts the steps of all slices beyond each of these numbers
__global__ void count_more(int slices, const int64_t *steps, unsigned long long *more)
{
  unsigned long long n[USUALS] = {};
  for (int64_t s = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; s < slices; s += (int64_t)gridDim.x * blockDim.x) {
    for (int k = 0; k < USUALS; k++) n[k] += (unsigned long long)max(steps[s] - Usual(k), (int64_t)0);
  }
  for (int k = 0; k < USUALS; k++) {
    for (int by = WARP / 2; by; by >>= 1) n[k] += __shfl_down_sync(ALL, n[k], by);
    if (threadIdx.x % WARP == 0 && n[k]) atomicAdd(more + k, n[k]);
  }
}

// Counts the entries of each slice in its steps beyond `usual`
__global__ void count_entries(int slices, int usual, int longest, const int2 *pattern_of_slice, const int2 *step,
                              int64_t *entries)
{
  const int s = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (s > slices) return;
  int n = 0;
  for (int k = usual; s < slices && k < longest; k++) n += __popc(Lanes(step[pattern_of_slice[s].x + k]));
  entries[s] = n;
}

__global__ void mark_more(int slices, const unsigned *more, int2 *pattern_of_slice)
{
  const int s = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (s < slices && more[s + 1] > more[s]) pattern_of_slice[s].y |= MORE;
}

__global__ void shorten(int count, const int64_t *wide, unsigned *to)
{
  const int t = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (t < count) to[t] = (unsigned)wide[t];
}

// Reports to the host whether there are enough marks for products to look at them. The host does not wait for the
// report. Runs with EQUALS threads
__global__ void report_marks(unsigned steps, const unsigned *equals, unsigned generation, volatile unsigned *report)
{
  __shared__ unsigned total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, equals[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) *report = generation << 1 | (total > steps / Tuning::EQUAL_SHARE);
}

// ------------------------------------------------------------------------------------------------ store

struct Diagonals : _n_SpMVCudaStore {
  int  bs      = 1;
  bool uniform = true;
  // marked: products look at marks; unreported: the last fill has not reported yet whether they should
  bool            marked = true, unreported = true;
  Args            args = {};
  Kernel          kernel[EACH][2]; // for each use before EACH; [][1]: looks at marks
  ColumnKernels   columns;
  int64_t         steps = 0, additional = 0; // stored steps; entries of additional steps
  Array<unsigned> first_value, more, equal, equals;
  Array<int2>     pattern_of_slice, step;
  Array<char>     value, equal_value;
  unsigned       *report = nullptr, generation = 0; // report: a PinnedWord()

  cudaError_t StorePatterns(const SpMVCudaCSR &, Array<uint64_t> &hash, Array<int> &slice, bool *stored, cudaStream_t);
  cudaError_t Shape(Array<int64_t> &count, const Count &found, cudaStream_t);
  cudaError_t Allocate(Array<int64_t> &count, cudaStream_t);

  // The warps run in rounds of as many as fit on the multiprocessors. Takes the number of slices per warp with which
  // all rounds take the least time, where beginning a warp takes half as long as a slice
  cudaError_t ChooseSlicesOfWarp(int steps_of_kernel)
  {
    int processors, most = Loops(steps_of_kernel, true, MULT) ? Tuning::DIAGONALS_SLICES : 1, least = INT_MAX;
    SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
    const int resident  = limits.diagonals_warps * processors;
    args.slices_of_warp = most;
    for (int count = most; resident && count > 0; count--) {
      const int rounds = (args.slices - 1) / (resident * count) + 1, time = rounds * (2 * count + 1);
      if (time < least) {
        least               = time;
        args.slices_of_warp = count;
      }
    }
    return cudaSuccess;
  }

  cudaError_t ChooseKernels()
  {
    const DiagonalsVariant v = {bs, bs == 1 && uniform ? args.steps : 0,
                                args.more ? SOME_LONGER
                                : uniform ? SAME_LENGTH
                                          : ANY_LENGTH};
    SPMV_TRY(ChooseSlicesOfWarp(v.steps));
    for (int marks = 0; marks < 2; marks++) {
      for (Use use : {MULT, FUSED, DOT, DOTS})
        kernel[use][marks].Choose(HasSums(use)   ? DiagonalsWithSums(use, v, marks)
                                  : single       ? DiagonalsSingle(use, v, marks)
                                  : use == FUSED ? DiagonalsFused(v, marks)
                                                 : ProductOf<Scalar, MULT>(v, marks));
      SPMV_TRY(kernel[MULT][marks].Load()); // the others when they are needed
    }
    return cudaSuccess;
  }

  ~Diagonals() override
  {
    PinnedWordFree(report); // SpMVCudaDestroy() has waited for the kernels that write to it
  }

  cudaError_t Fill(const SpMVCudaCSR &csr, cudaStream_t stream) override
  {
    generation = (generation + 1) & 0x7fffffffu; // a late report of an earlier fill is ignored
    marked = unreported = true;
    SPMV_TRY(equals.Zero(stream));
    if (args.slices) {
      const FillArgs fill = {args,
                             bs,
                             uniform,
                             value_index,
                             (const Scalar *)csr.a,
                             (char *)value,
                             (char *)equal_value,
                             pattern_of_slice,
                             equal,
                             equals};
      SPMV_TRY(single ? FillDiagonalsSingle(csr, nodes, fill, stream)
                      : FillDiagonals<Scalar>(csr, nodes, fill, stream));
    }
    SPMV_LAUNCH(EQUALS, EQUALS, stream, report_marks, (unsigned)(steps < UINT_MAX ? steps : UINT_MAX), equals,
                generation, report);
    return cudaSuccess;
  }

  bool For(Use use, const Product &p, KernelCall *call) override
  {
    if (use == EACH || (single && HasSums(use))) return false;
    LookForReport();
    call->kernel = &kernel[use][marked];
    call->grid   = Grid(marked || HasSums(use));
    call->block  = Block();
    Args &own    = Arguments(*this, args, use, p, call);
    if (use == MULT) own.last_blocks = LastBlocks(value.Bytes());
    // Boundary rows are often the first and the last ones: they are moved to the middle, when the halo has arrived
    if (own.offdiag.halo) own.block_shift = call->grid / 2;
    return true;
  }
  cudaError_t MultColumns(SpMVCudaForm form, const Operands &v, const Columns &c, cudaStream_t stream) override
  {
    LookForReport();
    if (!args.slices) return cudaSuccess;
    return ForPanels(*this, form, args.slices, bs, v, c, stream, [&](unsigned grid, const Operands &now, Panels p) {
      p.marked = marked;
      return columns.Get(p.width, [this](int w) { return DiagonalsColumns(single, bs, w); })
          .Launch(grid, ColumnsBlock(bs), WithPanels<Args>{args, p}, form, now, stream);
    });
  }
  void LookForReport()
  {
    // products look at marks until the fill reports that there are too few; the result is bitwise the same
    if (unreported) {
      const unsigned last = *(volatile unsigned *)report;
      unreported          = last >> 1 != generation;
      marked              = unreported || (last & 1);
    }
  }
  // Threads per thread block. A thread block ends with the last of its warps: if many slices have additional steps,
  // half as many warps wait for those
  unsigned Block() const
  {
    return additional > args.slices / 4 ? BLOCK / 2 : BLOCK;
  }
  // The number of thread blocks of a product; several: by a kernel whose warps multiply several slices, if there is one
  // for this number of steps
  unsigned Grid(bool several) const
  {
    return Blocks(args.slices, Block() / WARP * (several ? args.slices_of_warp : 1));
  }
  void Stats(SpMVStats *s) const override
  {
    s->stored   = steps * WARP * bs * bs + additional;
    s->slices   = args.slices;
    s->diagonal = args.slices;
    s->bytes    = pattern_of_slice.Bytes() + first_value.Bytes() + more.Bytes() + equal.Bytes() + step.Bytes() +
               value.Bytes() + equal_value.Bytes();
    s->node = bs;
  }

  cudaError_t Visit(SpMVVisitor entry, void *ctx) const override
  {
    std::vector<unsigned> o, beyond;
    std::vector<int2>     h, t;
    std::vector<char>     v;
    SPMV_TRY(pattern_of_slice.Read(h));
    SPMV_TRY(first_value.Read(o));
    SPMV_TRY(more.Read(beyond));
    SPMV_TRY(step.Read(t));
    SPMV_TRY(value.Read(v));
    return WithStored(single, [&](auto type) {
      const auto *stored = (const decltype(type) *)v.data();
      for (int s = 0; s < args.slices; s++) {
        const int64_t begin = uniform ? (int64_t)s * args.steps : o[s];
        const int     usual = uniform ? args.steps : (int)(o[s + 1] - o[s]);
        int64_t       next  = args.more ? (int64_t)args.slices * usual * WARP + beyond[s] : 0;
        for (int k = 0; k < (args.more ? args.longest : usual); k++) {
          const int2 d = t[h[s].x + k];
          for (int l = 0; l < WARP; l++) {
            if (!(Lanes(d) >> l & 1)) continue;
            for (int e = 0; e < bs * bs; e++) {
              const auto &a = stored[k < usual ? ((begin + k) * bs * bs + e) * WARP + l : next++];
              if (bs == 1 || !Traits<decltype(type)>::is_absent(a))
                Show(entry, ctx, ((int64_t)s * WARP + l) * bs + e / bs,
                     ((int64_t)s * WARP + l + Offset(d)) * bs + e % bs, a);
            }
          }
        }
      }
      return cudaSuccess;
    });
  }
};

// hash: that of each slice's pattern; slice: 0, 1, 2, ... *stored is false if there are too many patterns, or (which
// should never happen) if two share a hash
cudaError_t Diagonals::StorePatterns(const SpMVCudaCSR &csr, Array<uint64_t> &hash, Array<int> &slice, bool *stored,
                                     cudaStream_t stream)
{
  const int              slices = args.slices, stride = args.longest;
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
  SPMV_TRY(found.Alloc(1));
  SPMV_TRY(found.Zero(stream));
  SPMV_TRY(step.Alloc(patterns * stride, stream));
  SPMV_TRY(step.Zero(stream));
  SPMV_TRY(WithView(csr, nodes, [&](auto v) {
    SPMV_LAUNCH(patterns * WARP, 256, stream, write_patterns, v, (int)patterns, representative, stride, step);
    SPMV_LAUNCH((int64_t)slices * WARP, 256, stream, verify, v, slices, stride, step, pattern,
                &((FoundPatterns *)found)->failed);
    return cudaSuccess;
  }));
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

// Chooses how many steps are stored per slice: the same number for all if that needs little padding, or the number of a
// star or box stencil, and more for a few
cudaError_t Diagonals::Shape(Array<int64_t> &count, const Count &found, cudaStream_t stream)
{
  const int64_t slices = args.slices, all = (int64_t)found.steps;
  const int     longest = found.longest;
  args.steps = args.longest = longest;
  args.words                = (longest + WARP - 1) / WARP;
  uniform                   = slices * longest <= all + all / Tuning::UNIFORM_SHARE;
  steps                     = uniform ? slices * longest : all;
  if (uniform || bs > 1 || longest >= WARP) return cudaSuccess;

  Scratch<unsigned long long> beyond(stream);
  unsigned long long          host[USUALS];
  int64_t                     least = all;
  SPMV_TRY(beyond.Alloc(USUALS));
  SPMV_TRY(beyond.Zero(stream));
  SPMV_LAUNCH(PetscMin(slices, (int64_t)1 << 16), 256, stream, count_more, (int)slices, count, beyond);
  SPMV_TRY(Fetch(host, (unsigned long long *)beyond, USUALS, stream));
  for (int k = 0; k < USUALS; k++) {
    const int64_t stored = slices * Usual(k) + (int64_t)host[k];
    if ((int64_t)host[k] * Tuning::MORE_SHARE > all || host[k] > UINT_MAX / WARP ||
        stored > all + all / Tuning::UNIFORM_SHARE || (uniform && stored >= least))
      continue;
    uniform    = true;
    args.steps = Usual(k);
    steps      = slices * Usual(k);
    least      = stored;
  }
  return cudaSuccess;
}

// Allocates the arrays that fills write. count: the number of steps of each slice
cudaError_t Diagonals::Allocate(Array<int64_t> &count, cudaStream_t stream)
{
  const int slices = args.slices;
  if (!uniform || args.longest > args.steps) {
    Array<unsigned> &first = uniform ? more : first_value;
    if (uniform)
      SPMV_LAUNCH(slices + 1, 256, stream, count_entries, slices, args.steps, args.longest, pattern_of_slice, step,
                  count);
    SPMV_TRY(ExclusiveSum(count, slices + 1, stream));
    if (uniform) SPMV_TRY(Fetch(&additional, (int64_t *)count + slices, 1, stream));
    SPMV_TRY(first.Alloc(slices + 1, stream));
    SPMV_LAUNCH(slices + 1, 256, stream, shorten, slices + 1, count, first);
    if (uniform) SPMV_LAUNCH(slices, 256, stream, mark_more, slices, first, pattern_of_slice);
  }
  if (bs > 1 || args.words > 1) {
    SPMV_TRY(equal.Alloc(bs > 1 ? (size_t)steps : (size_t)slices * args.words, stream));
    SPMV_TRY(equal.Zero(stream));
  }
  SPMV_TRY(equals.Alloc(EQUALS, stream));
  SPMV_TRY(value.Alloc((size_t)(steps * WARP * bs * bs + additional) * StoredSize(single), stream));
  SPMV_TRY(value.Zero(stream));
  SPMV_TRY(equal_value.Alloc((size_t)steps * bs * bs * StoredSize(single), stream));
  SPMV_TRY(PinnedWord(&report));
  *report               = UINT_MAX;
  args.pattern_of_slice = pattern_of_slice;
  args.first_value      = first_value;
  args.more             = more;
  args.step             = step;
  args.equal            = equal;
  args.value            = (char *)value;
  args.equal_value      = (char *)equal_value;
  return ChooseKernels();
}

} // namespace

cudaError_t LoadDiagonals()
{
  return Load((const void *)find<PetscInt>);
}

cudaError_t DiagonalsCreate(const SpMVCudaCSR &csr, const Nodes &nodes, bool single, int64_t limit, cudaStream_t stream,
                            _n_SpMVCudaStore **store)
{
  const int         bs = nodes.bs, units = (int)(csr.m / bs), slices = (units + WARP - 1) / WARP;
  Scratch<uint64_t> hash(stream);
  Scratch<int>      slice(stream);
  Scratch<int64_t>  steps(stream);
  Scratch<Count>    count(stream);
  Count             found;
  bool              stored;
  *store = nullptr;
  SPMV_TRY(hash.Alloc(slices));
  SPMV_TRY(slice.Alloc(slices));
  SPMV_TRY(steps.Alloc(slices + 1));
  SPMV_TRY(count.Alloc(1));
  SPMV_TRY(count.Zero(stream));
  SPMV_TRY(steps.Zero(stream));
  SPMV_TRY(WithView(csr, nodes, [&](auto v) {
    SPMV_LAUNCH((int64_t)slices * WARP, 256, stream, find, v, slices, (int)Tuning::DIAGONALS_MOST, hash, slice, steps,
                count);
    return cudaSuccess;
  }));
  SPMV_TRY(Fetch(&found, (Count *)count, 1, stream));
  if (found.failed || (int64_t)found.steps * WARP > limit || found.steps >= UINT_MAX) return cudaSuccess;

  std::unique_ptr<Diagonals> d(new (std::nothrow) Diagonals);
  if (!d) return cudaErrorMemoryAllocation;
  d->nodes       = nodes;
  d->bs          = bs;
  d->single      = single;
  d->names       = bs > 1 ? NODES : ENTRIES;
  d->args.units  = units;
  d->args.slices = slices;
  SPMV_TRY(d->Shape(steps, found, stream));
  SPMV_TRY(d->StorePatterns(csr, hash, slice, &stored, stream));
  if (!stored) return cudaSuccess;
  SPMV_TRY(d->Allocate(steps, stream));
  *store = d.release();
  return cudaSuccess;
}

} // namespace spmv
