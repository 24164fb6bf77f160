/*
  Blocks whose rows lie on few diagonals (stencils, also of several unknowns a point): slices of 32 consecutive units, lane = unit.

  A slice refers to a pattern: the list of its steps, each an offset (column less row) and a mask of the lanes that have an entry
  there. Equal patterns are kept once, so they stay in L1, and what a product reads from memory is values, 8 to 12 bytes a slice, x
  and y: no column indices. Lanes without an entry read neither x nor anything that depends on it.

  Steps whose values are all equal are marked at each refresh: a warp then reads one value instead of 32. Lanes without an entry
  hold a copy of the others' value, so they do not spoil this.
*/
#include "stores.cuh"

namespace spmv {
namespace {

constexpr int BLOCK = Tuning::DIAGONALS_BLOCK;

struct Args {
  int             units, slices, steps, words; // steps of a slice where all have as many; words of `equal` a slice
  const int2     *head;                        // of each slice: its pattern's first entry in step, marks of its first 32 steps
  const unsigned *first;                       // of each slice and one past the last: its first step, if they differ in number
  const int2     *step;                        // offset, lanes
  const unsigned *equal;                       // marks of further steps
  const void     *value;                       // as Single or Scalar
  unsigned        turn;                        // of MultFused(): the thread block that begins; else 0
  Offdiagonal     offdiag;
};

constexpr SpMVNames ENTRIES = SPMV_NAMES("CUDA diagonals"), NODES = SPMV_NAMES("CUDA diagonals of node blocks");

/*
  STEPS > 0: all slices have so many, and all loads are issued before the first is used. UNIFORM: all slices have as many steps, so
  that no load waits for `first`. EQUAL: some steps are marked, else nothing waits for marks. FUSED: for parallel products, MultFused() and MultInterior(); by
  itself, as the warps of few steps live so short that a few instructions more, or loads in another order, show. V: what values are stored as.
*/
template <class V, int BS, int STEPS, bool UNIFORM, bool EQUAL, bool FUSED>
__global__ void __launch_bounds__(BLOCK, STEPS ? 1024 / BLOCK : 512 / BLOCK)
    diagonals(Args g, bool conjugate, const Scalar *__restrict__ x, const Scalar *z, Scalar *y)
{
  constexpr int BATCH = STEPS ? STEPS : BS == 1 ? 8 : BS == 2 ? 4 : BS == 3 ? 2 : 1;
  unsigned      block = blockIdx.x;
  if (FUSED) {
    block += g.turn;
    if (block >= gridDim.x) block -= gridDim.x;
    LetNextBegin();
  }
  const int s = (int)((block * blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  int       unit = s * WARP + lane;
  if (!FUSED || (blockIdx.x == 0 && threadIdx.x < WARP)) AwaitPrevious(); // one warp, so that when all are done, what came before is, too
  if (unit >= g.units) return;
  const int2     head  = __ldg(g.head + s);
  const int      slot  = FUSED && g.offdiag.halo ? __ldg(g.offdiag.slot + s) : -1;
  const int      total = STEPS ? STEPS : g.steps;
  const int64_t  first = UNIFORM ? (int64_t)s * total : g.first[s];
  const int      steps = UNIFORM ? total : (int)(g.first[s + 1] - (unsigned)first);
  const int2    *step  = g.step + head.x;
  const V       *value = (const V *)g.value + first * (WARP * BS * BS);
  const unsigned bit   = 1u << lane;
  Scalar         d[BS];

#pragma unroll
  for (int e = 0; e < BS; e++) d[e] = Num::zero();
  for (int k0 = 0; k0 < steps; k0 += BATCH) {
    const unsigned equal = !EQUAL ? 0 : (STEPS || k0 < WARP ? (unsigned)head.y : __ldg(g.equal + (int64_t)s * g.words + k0 / WARP)) >> (k0 % WARP);
    V              v[BATCH][BS * BS];
    Scalar         xs[BATCH][BS];
    int2           t[BATCH];
    bool           own[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const V *p = value + (k0 + b) * (WARP * BS * BS) + (EQUAL && (equal >> b & 1) ? 0 : lane);
#pragma unroll
      for (int e = 0; e < BS * BS; e++) v[b][e] = STEPS || BATCH == 1 || k0 + b < steps ? Traits<V>::stream(p + e * WARP) : Traits<V>::zero();
    }
    // Apart from what is multiplied now, or never. Not the end yet: the compiler drops Issue() where no lane can have left. That the values are thus loaded
    // once `head` has come is to the good: ahead of it, the 7-point product with 200^3 points takes 138.5 us on an H200, for 135.7
    if (head.x < 0) {
      if (FUSED) unit |= INT_MIN;
      break;
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) t[b] = STEPS || BATCH == 1 || k0 + b < steps ? __ldg(step + k0 + b) : make_int2(0, 0);
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const Scalar *q = x + (int64_t)(unit + t[b].x) * BS;
      own[b]          = (unsigned)t[b].y & bit;
#pragma unroll
      for (int f = 0; f < BS; f++) xs[b][f] = own[b] ? Num::keep(q + f) : Num::zero();
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      if (own[b]) { // what is not a lane's own may be anything, Inf times 0 too
#pragma unroll
        for (int f = 0; f < BS; f++) {
#pragma unroll
          for (int e = 0; e < BS; e++) {
            const Scalar a = Convert<Scalar>(v[b][e * BS + f]);
            d[e]           = Num::fma(conjugate ? Num::conj(a) : a, xs[b][f], d[e]);
          }
        }
      }
    }
  }
  if (FUSED) {
    if (unit < 0 || (!UNIFORM && head.x < 0)) return; // a slice without steps has not come by there
    g.offdiag.Add<BS>(slot, unit, d);
  }
#pragma unroll
  for (int e = 0; e < BS; e++) y[(int64_t)unit * BS + e] = z ? Num::add(z[(int64_t)unit * BS + e], d[e]) : d[e];
}

// ------------------------------------------------------------------------------------------------ layout

// The warp's 32 units merged by offset: f(k, offset, lanes) for each diagonal. -1: more than `limit`, or columns do not ascend
template <class I, class F> __device__ int walk(const View<I> &v, int slice, int limit, F f)
{
  const int     unit  = slice * WARP + (int)(threadIdx.x % WARP);
  const int     len   = unit < v.units ? v.len(unit) : 0;
  const int64_t start = len ? v.start(unit) : 0;
  int           q = 0, k = 0, offset = len ? v.col(start, 0) - unit : INT_MAX;
  bool          ok = true;
  while (true) {
    const int      least = __reduce_min_sync(ALL, offset);
    const unsigned lanes = __ballot_sync(ALL, offset == least);
    if (least == INT_MAX) return k;
    if (k == limit || !__all_sync(ALL, ok)) return -1;
    f(k++, least, lanes);
    if (offset == least) {
      offset = ++q < len ? v.col(start, q) - unit : INT_MAX;
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
  unsigned long long steps; // of all slices
  int                longest, failed;
};

template <class I> __global__ void find(View<I> v, int slices, int limit, uint64_t *hash, int *slice, int64_t *steps, Count *count)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP);
  if (s >= slices || __any_sync(ALL, IsRaised(&count->failed))) return; // together
  uint64_t  h = 1;
  const int k = walk(v, s, limit, [&](int, int offset, unsigned lanes) { h = mix(h, (uint64_t)(unsigned)offset << 32 | lanes); });
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

// Of sorted hashes: 1 where a new one begins
__global__ void heads(int slices, const uint64_t *hash, int64_t *head)
{
  const int t = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (t <= slices) head[t] = t < slices && (t == 0 || hash[t] != hash[t - 1]);
}

// head is summed by now: the number of each pattern. The first of its slices represents it
__global__ void number(int slices, const uint64_t *hash, const int *slice, const int64_t *head, int *pattern, int *representative)
{
  const int t = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (t >= slices) return;
  const bool begins = t == 0 || hash[t] != hash[t - 1];
  const int  id     = (int)(head[t] - (begins ? 0 : 1));
  pattern[slice[t]] = id;
  if (begins) representative[id] = slice[t];
}

template <class I> __global__ void write_patterns(View<I> v, int patterns, const int *representative, int stride, int2 *step)
{
  const int p = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP);
  if (p >= patterns) return;
  walk(v, representative[p], stride, [&](int k, int offset, unsigned lanes) {
    if (threadIdx.x % WARP == 0) step[(int64_t)p * stride + k] = make_int2(offset, (int)lanes);
  });
}

// Different patterns of equal hash would be silent errors: look
template <class I> __global__ void verify(View<I> v, int slices, int stride, const int2 *step, int *pattern, int *failed)
{
  const int s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP);
  if (s >= slices) return;
  const int2 *mine = step + (int64_t)pattern[s] * stride;
  bool        same = true;
  const int   k    = walk(v, s, stride, [&](int i, int offset, unsigned lanes) { same = same && mine[i].x == offset && mine[i].y == (int)lanes; });
  if (!same || (k < stride && mine[k].y)) *failed = 1;
}

__global__ void write_heads(int count, int stride, const int *pattern, int2 *head)
{
  const int t = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (t < count) head[t] = make_int2(pattern[t] * stride, 0);
}

__global__ void shorten(int count, const int64_t *from, unsigned *to)
{
  const int t = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (t < count) to[t] = (unsigned)from[t];
}

// The heads of what is left when some slices are taken out: those are negative
__global__ void mark_boundary(int slices, int units, const unsigned *want, unsigned *all, int2 *head)
{
  const int s = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (s >= slices || !want[s]) return;
  all[s] = units - s * WARP >= WARP ? ALL : (1u << (units - s * WARP)) - 1;
  head[s].x |= INT_MIN;
}

__global__ void copy_marks(int slices, const int2 *from, int2 *to)
{
  const int s = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (s < slices) to[s].y = from[s].y;
}

// ------------------------------------------------------------------------------------------------ values

constexpr int FILL_BATCH = Tuning::FILL_BATCH, FILL_BLOCK = Tuning::FILL_BLOCK;

size_t FillShared(int bs)
{
  return (size_t)FILL_BLOCK * (FILL_BATCH * bs + 1) * sizeof(Scalar);
}

// Steps come in the order of the columns, so a lane's entries do too, and no permutation is needed: of each row, a few steps' entries
// at a time are consecutive. PER: of Gather(), at least bs; 1: single entries, which are faster read one by one
template <int PER, class V, class I>
__global__ void fill(View<I> v, Args g, bool uniform, const int *from, const Scalar *a, V *value, int2 *head, unsigned *equal, unsigned *equals)
{
  constexpr int BATCH = FILL_BATCH;
  const int     s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP, bs = v.bs, stride = BATCH * bs + 1;
  if (s >= g.slices) return;
  const int64_t first = uniform ? (int64_t)s * g.steps : g.first[s];
  const int     steps = uniform ? g.steps : (int)(g.first[s + 1] - (unsigned)first), unit = s * WARP + lane;
  const int2   *step   = g.step + head[s].x;
  const int64_t start  = unit < v.units ? v.start(unit) : 0;
  const int     width  = unit < v.units ? v.len(unit) * bs : 0; // of a row
  Scalar       *shared = (Scalar *)spmv_shared + threadIdx.x / WARP * WARP * stride;
  int           q      = 0;
  unsigned      word = 0, total = 0;
  for (int k0 = 0; k0 < steps; k0 += BATCH) {
    int      at[BATCH], leader[BATCH], count = 0;
    unsigned same = (1u << min(BATCH, steps - k0)) - 1;
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const unsigned lanes = k0 + b < steps ? (unsigned)step[k0 + b].y : 0;
      at[b]                = lanes >> lane & 1 ? count : -1;
      leader[b]            = lanes ? __ffs(lanes) - 1 : 0;
      count += lanes >> lane & 1 ? bs : 0;
    }
    for (int e = 0; e < bs; e++) {
      const int64_t row = start + (int64_t)e * width + q;
      if (PER > 1) Gather<PER>(a, from, row, count, stride, shared);
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        if (k0 + b >= steps) break;
        for (int f = 0; f < bs; f++) {
          const Scalar own = at[b] < 0 ? Num::zero() : PER > 1 ? shared[lane * stride + at[b] + f] : a[from ? from[row + at[b]] : row + at[b]];
          V            t   = Convert<V>(own);
          const V      t0  = Traits<V>::shfl(t, leader[b]);
          if (at[b] < 0) t = t0;
          if (!__all_sync(ALL, Traits<V>::same(t, t0))) same &= ~(1u << b);
          value[((first + k0 + b) * bs * bs + e * bs + f) * WARP + lane] = t;
        }
      }
    }
    q += count;
    total += __popc(same);
    word |= same << k0 % WARP;
    if (k0 % WARP == WARP - BATCH || k0 + BATCH >= steps) {
      if (lane == 0 && k0 < WARP)
        head[s].y = (int)word;
      else if (lane == 0)
        equal[(int64_t)s * g.words + k0 / WARP] = word;
      word = 0;
    }
  }
  if (lane == 0) atomicAdd(equals, total);
}

// Tells the host, without it waiting, whether marks are worth a look
__global__ void announce(unsigned steps, const unsigned *equals, unsigned generation, volatile unsigned *host)
{
  *host = generation << 1 | (*equals > steps / Tuning::EQUAL_SHARE);
}

// Without and with a look at marks, and the same for MultFused() and MultInterior()
template <class V, int BS, int STEPS, bool UNIFORM> cudaError_t choose(Kernel kernel[2][2])
{
  SPMV_TRY(kernel[0][0].Choose((const void *)diagonals<V, BS, STEPS, UNIFORM, false, false>));
  SPMV_TRY(kernel[0][1].Choose((const void *)diagonals<V, BS, STEPS, UNIFORM, true, false>));
  SPMV_TRY(kernel[1][0].Choose((const void *)diagonals<V, BS, STEPS, UNIFORM, false, true>));
  return kernel[1][1].Choose((const void *)diagonals<V, BS, STEPS, UNIFORM, true, true>);
}

template <class V, int BS, int STEPS> cudaError_t choose(bool uniform, Kernel kernel[2][2])
{
  return uniform ? choose<V, BS, STEPS, true>(kernel) : choose<V, BS, 0, false>(kernel);
}

struct Diagonals : _n_SpMVCudaStore {
  int             bs      = 1;
  bool            uniform = true;
  bool            marked = true, waiting = true; // marks are to be looked at; the refresh has not announced whether
  Args            g = {};
  Kernel          kernel[2][2];
  int64_t         steps = 0; // stored
  Array<unsigned> first, equal, equals;
  Array<int2>     head, step, others; // others: head, but for slices whose rows are multiplied apart
  Array<char>     value;
  unsigned       *host = nullptr, generation = 0;

  template <class V> cudaError_t Pick(V)
  {
    switch (bs) {
    case 1:
      switch (uniform ? g.steps : 0) { // stars and boxes of one to three dimensions
      case 3: return choose<V, 1, 3>(uniform, kernel);
      case 5: return choose<V, 1, 5>(uniform, kernel);
      case 7: return choose<V, 1, 7>(uniform, kernel);
      case 9: return choose<V, 1, 9>(uniform, kernel);
      default: return choose<V, 1, 0>(uniform, kernel);
      }
    case 2: return choose<V, 2, 0>(uniform, kernel);
    case 3: return choose<V, 3, 0>(uniform, kernel);
    case 4: return choose<V, 4, 0>(uniform, kernel);
    case 5: return choose<V, 5, 0>(uniform, kernel);
    default: return choose<V, 6, 0>(uniform, kernel);
    }
  }

  ~Diagonals() override
  {
    if (host) cudaFreeHost(host); // SpMVCudaDestroy() has waited for whoever writes to it
  }

  cudaError_t Fill(const SpMVCudaCSR &csr, cudaStream_t stream) override
  {
    generation = (generation + 1) & 0x7fffffffu; // what an earlier refresh may still announce no longer counts
    marked = waiting = true;
    SPMV_TRY(equals.Zero(stream));
    SPMV_TRY(WithView(csr, bs, [&](auto v) {
      return WithStored(single, [&](auto type) {
        using V             = decltype(type);
        const unsigned grid = Blocks((int64_t)g.slices * WARP, FILL_BLOCK);
        const Scalar  *a    = (const Scalar *)csr.a;
        V             *to   = (V *)(char *)value;
        if (!g.slices) return cudaSuccess;
        ForgetErrors();
        if (bs == 1)
          fill<1, V><<<grid, FILL_BLOCK, 0, stream>>>(v, g, uniform, value_index, a, to, head, equal, equals);
        else if (bs <= 3)
          fill<3, V><<<grid, FILL_BLOCK, FillShared(bs), stream>>>(v, g, uniform, value_index, a, to, head, equal, equals);
        else
          fill<6, V><<<grid, FILL_BLOCK, FillShared(bs), stream>>>(v, g, uniform, value_index, a, to, head, equal, equals);
        return cudaGetLastError();
      });
    }));
    if (others) SPMV_LAUNCH(g.slices, 256, stream, copy_marks, g.slices, head, others);
    SPMV_LAUNCH(1, 1, stream, announce, (unsigned)(steps < UINT_MAX ? steps : UINT_MAX), equals, generation, host);
    return cudaSuccess;
  }

  cudaError_t Mult(bool conjugate, const Operands &v, cudaStream_t stream) override
  {
    return Launch(g, conjugate, v, stream);
  }
  cudaError_t MultFused(const Operands &v, const Scalar *halo, bool early, cudaStream_t stream) override
  {
    Args args = g;
    if (halo) { // boundary rows tend to be the first and the last: in the middle of the product the halo has arrived
      args.offdiag = fused->With(halo);
      args.turn    = Blocks((int64_t)g.slices * WARP, BLOCK) / 2;
    }
    return Launch(args, false, v, stream, true, early ? Begin::EARLY : Begin::AFTER);
  }
  bool CanFuseOffdiagonal() const override
  {
    return true;
  }
  cudaError_t MultInterior(const Operands &v, cudaStream_t stream) override
  {
    Args args = g;
    args.head = others;
    return Launch(args, false, v, stream, true, Begin::AFTER);
  }
  int UnitSize() const override
  {
    return bs;
  }
  cudaError_t SetBoundary(const unsigned *want, unsigned *all, cudaStream_t stream) override
  {
    SPMV_TRY(others.Alloc(g.slices));
    SPMV_TRY(cudaMemcpyAsync(others, head, head.Bytes(), cudaMemcpyDeviceToDevice, stream));
    SPMV_LAUNCH(g.slices, 256, stream, mark_boundary, g.slices, g.units, want, all, others);
    return cudaSuccess;
  }
  cudaError_t Launch(const Args &args, bool conjugate, const Operands &v, cudaStream_t stream, bool parallel = false, Begin begin = Begin::EARLY)
  {
    if (waiting) { // marks are looked at unless the fill is known to have found too few; both give the same bits
      const unsigned reported = *(volatile unsigned *)host;
      waiting                 = reported >> 1 != generation;
      marked                  = waiting || (reported & 1);
    }
    if (!g.slices) return cudaSuccess;
    return kernel[parallel][marked].Launch(Blocks((int64_t)g.slices * WARP, BLOCK), BLOCK, args, conjugate, v, stream, 0, begin);
  }

  void Stats(SpMVStats *s) const override
  {
    s->stored   = steps * WARP * bs * bs;
    s->slices   = g.slices;
    s->diagonal = g.slices;
    s->bytes    = head.Bytes() + others.Bytes() + first.Bytes() + equal.Bytes() + step.Bytes() + value.Bytes();
    s->node     = bs;
  }

  cudaError_t Visit(SpMVVisitor entry, void *ctx) const override
  {
    std::vector<unsigned> o;
    std::vector<int2>     h, t;
    std::vector<char>     v;
    SPMV_TRY(head.Read(h));
    SPMV_TRY(first.Read(o));
    SPMV_TRY(step.Read(t));
    SPMV_TRY(value.Read(v));
    return WithStored(single, [&](auto type) {
      const auto *stored = (const decltype(type) *)v.data();
      for (int s = 0; s < g.slices; s++) {
        const int64_t begin = uniform ? (int64_t)s * g.steps : o[s];
        const int     count = uniform ? g.steps : (int)(o[s + 1] - o[s]);
        for (int k = 0; k < count; k++) {
          const int2 d = t[h[s].x + k];
          for (int l = 0; l < WARP; l++) {
            if (!((unsigned)d.y >> l & 1)) continue;
            for (int e = 0; e < bs * bs; e++)
              Show(entry, ctx, ((int64_t)s * WARP + l) * bs + e / bs, ((int64_t)s * WARP + l + d.x) * bs + e % bs,
                   stored[((begin + k) * bs * bs + e) * WARP + l]);
          }
        }
      }
      return cudaSuccess;
    });
  }
};

} // namespace

cudaError_t DiagonalsCreate(const SpMVCudaCSR &csr, int bs, bool single, int64_t limit, cudaStream_t stream, _n_SpMVCudaStore **block)
{
  const int       units = (int)(csr.m / bs), slices = (units + WARP - 1) / WARP;
  Array<uint64_t> hash;
  Array<int>      slice, pattern, representative, failed;
  Array<int64_t>  steps, begins;
  Array<Count>    count;
  Count           found;
  *block = nullptr;
  SPMV_TRY(hash.Alloc(slices));
  SPMV_TRY(slice.Alloc(slices));
  SPMV_TRY(steps.Alloc(slices + 1));
  SPMV_TRY(count.Alloc(1));
  SPMV_TRY(count.Zero(stream));
  SPMV_TRY(steps.Zero(stream));
  SPMV_TRY(WithView(csr, bs, [&](auto v) {
    SPMV_LAUNCH((int64_t)slices * WARP, 256, stream, find, v, slices, (int)Tuning::DIAGONALS_MOST, hash, slice, steps, count);
    return cudaSuccess;
  }));
  SPMV_TRY(Fetch(&found, (Count *)count, 1, stream));
  if (found.failed || (int64_t)found.steps * WARP > limit || found.steps >= UINT_MAX) return cudaSuccess;

  Diagonals *d = new (std::nothrow) Diagonals;
  if (!d) return cudaErrorMemoryAllocation;
  *block      = d;
  d->bs       = bs;
  d->single   = single;
  d->names    = bs > 1 ? NODES : ENTRIES;
  d->uniform  = (int64_t)slices * found.longest <= (int64_t)found.steps + (int64_t)found.steps / Tuning::UNIFORM_SHARE;
  d->steps    = d->uniform ? (int64_t)slices * found.longest : (int64_t)found.steps;
  d->g.units  = units;
  d->g.slices = slices;
  d->g.steps  = found.longest;
  d->g.words  = (found.longest + WARP - 1) / WARP;

  const int stride = found.longest;
  int64_t   patterns;
  SPMV_TRY(pattern.Alloc(slices));
  SPMV_TRY(d->head.Alloc(slices));
  SPMV_TRY(begins.Alloc(slices + 1));
  SPMV_TRY(representative.Alloc(slices));
  if (slices) SPMV_TRY(SortPairs(hash, slice, slices, 64, stream));
  SPMV_LAUNCH(slices + 1, 256, stream, heads, slices, hash, begins);
  SPMV_TRY(ExclusiveSum(begins, slices + 1, stream));
  SPMV_LAUNCH(slices, 256, stream, number, slices, hash, slice, begins, pattern, representative);
  SPMV_TRY(Fetch(&patterns, (int64_t *)begins + slices, 1, stream));
  if (patterns * stride >= INT_MAX) {
    delete d;
    *block = nullptr;
    return cudaSuccess;
  }
  int bad = 0;
  SPMV_TRY(failed.Alloc(1));
  SPMV_TRY(failed.Zero(stream));
  SPMV_TRY(d->step.Alloc(patterns * stride));
  SPMV_TRY(d->step.Zero(stream));
  SPMV_TRY(WithView(csr, bs, [&](auto v) {
    SPMV_LAUNCH(patterns * WARP, 256, stream, write_patterns, v, (int)patterns, representative, stride, d->step);
    SPMV_LAUNCH((int64_t)slices * WARP, 256, stream, verify, v, slices, stride, d->step, pattern, failed);
    return cudaSuccess;
  }));
  SPMV_LAUNCH(slices, 256, stream, write_heads, slices, stride, pattern, d->head);
  if (!d->uniform) {
    SPMV_TRY(ExclusiveSum(steps, slices + 1, stream));
    SPMV_TRY(d->first.Alloc(slices + 1));
    SPMV_LAUNCH(slices + 1, 256, stream, shorten, slices + 1, steps, d->first);
  }
  if (d->g.words > 1) {
    SPMV_TRY(d->equal.Alloc((size_t)slices * d->g.words));
    SPMV_TRY(d->equal.Zero(stream));
  }
  SPMV_TRY(d->equals.Alloc(1));
  SPMV_TRY(d->value.Alloc((size_t)d->steps * WARP * bs * bs * StoredSize(single)));
  SPMV_TRY(d->value.Zero(stream));
  SPMV_TRY(cudaHostAlloc((void **)&d->host, sizeof(unsigned), cudaHostAllocMapped));
  *d->host   = UINT_MAX;
  d->g.head  = d->head;
  d->g.first = d->first;
  d->g.step  = d->step;
  d->g.equal = d->equal;
  d->g.value = (char *)d->value;
  SPMV_TRY(WithStored(single, [&](auto type) { return d->Pick(type); }));
  SPMV_TRY(Fetch(&bad, (int *)failed, 1, stream));
  if (bad) { // two patterns share a hash, which no one will ever see: slices it is
    delete d;
    *block = nullptr;
  }
  return cudaSuccess;
}

} // namespace spmv
