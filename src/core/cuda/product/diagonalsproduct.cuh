/*
  The kernel of products with matrices that are stored by diagonals. See diagonals.cu for the layout.
*/
#pragma once

#include "diagonals.cuh"
#include "epilogue.cuh"

namespace spmv {
namespace {

constexpr int BLOCK = Tuning::DIAGONALS_BLOCK;

using Args = DiagonalArgs;

// Whether all lanes have an entry in all of these steps, as in most slices. The product then needs no predicates, which
// are a third of its instructions
template <int COUNT> __device__ __forceinline__ bool HaveAllLanes(const int2 (&steps)[COUNT])
{
  unsigned lanes = ALL;
#pragma unroll
  for (int b = 0; b < COUNT; b++) lanes &= Lanes(steps[b]);
  return lanes == ALL;
}

// Whether the warps of a kernel may multiply several slices one after the other. With 9 steps, 64 registers would not
// suffice
constexpr bool MayLoop(int steps)
{
  return steps == 3 || steps == 5 || steps == 7;
}

// The threads that must fit on a multiprocessor, which limits the registers of a thread: 48, 56, 64 or 128. Complex
// numbers would not fit in 64
constexpr int Resident(int bs, bool loops, Use use)
{
  if (sizeof(Scalar) > 8 || bs > 1) return 512;
  if (HasSums(use)) return 1024;
  return loops ? 1280 : 1024;
}

// Whether the kernel may wait for the previous one only before x is read. Node blocks would need more registers
template <int BS> constexpr bool LATE = BS == 1;

/*
  The product of a slice's units with x, as far as its steps were added, and its next steps. STEPS > 0: the number of
  steps; all loads are issued before the first is used
*/
template <class V, int BS, int STEPS> struct SliceProduct {
  const Args     &args;
  int2            pattern;
  SpMVCudaForm    form;
  const Scalar   *x, *own_x; // own_x: of the unit
  int             unit;
  const int2     *step;
  const V        *value, *same; // same: of marked steps
  const unsigned *equal;        // of node blocks: the lanes that have the value of the step
  unsigned        marks;        // of single entries: of the next steps
  Scalar          d[BS];

  __device__ __forceinline__ SliceProduct(const Args &args_, int s, int2 pattern_, int64_t first, SpMVCudaForm form_,
                                          const Scalar *x_, int unit_)
      : args(args_), pattern(pattern_), form(form_), x(x_), own_x(AsOne(x_ + (int64_t)unit_ * BS)), unit(unit_)
  {
    step  = args.step + pattern.x;
    value = (const V *)args.value + first * (WARP * BS * BS) + threadIdx.x % WARP;
    same  = (const V *)args.equal_value + first * (BS * BS);
    equal = args.equal + first;
    marks = (unsigned)pattern.y;
    if (BS == 1 && !STEPS) { // otherwise each batch computes them again from s
      step  = AsOne(step);
      value = AsOne(value);
      same  = AsOne(same);
    }
#pragma unroll
    for (int i = 0; i < BS; i++) d[i] = Num::zero();
  }

  // Adds COUNT steps, from step k0 on; with !FULL those of them that are in `has`. Returns false if pattern.x is
  // negative, which it never is
  template <int COUNT, bool FULL> __device__ __forceinline__ bool Add(int k0, unsigned has = ALL)
  {
    const V       *a = AsOne(value + k0 * (WARP * BS * BS)), *common = AsOne(same + k0 * (BS * BS));
    const int2    *here = AsOne(step + k0);
    const unsigned bit  = 1u << threadIdx.x % WARP;
    V              v[COUNT][BS * BS];
    Scalar         xs[COUNT][BS];
    int2           now[COUNT];
    bool           own[COUNT];
    unsigned       lanes[COUNT]; // of node blocks that have the value of their step
    const auto     in = [=](int b) { return FULL || has >> b & 1; };
#pragma unroll
    for (int b = 0; b < COUNT; b++) lanes[b] = BS > 1 && in(b) ? LoadOrdered(equal + k0 + b) : 0;
#pragma unroll
    for (int b = 0; b < COUNT; b++) {
      const bool marked = BS > 1 && lanes[b] & bit;
      const V   *p      = marked ? common + b * (BS * BS) : a + b * (WARP * BS * BS);
#pragma unroll
      for (int i = 0; i < BS * BS; i++) {
        if (BS == 1)
          v[b][i] = Traits<V>::template either<FULL>(marks, has, b, common + b, a + b * WARP);
        else
          v[b][i] = in(b) ? Stream(p + i * (marked ? 1 : WARP)) : Traits<V>::zero();
      }
    }
    // Keeps the loads of the values behind that of `pattern`; before, the compiler would drop the __syncwarp() in
    // Issue(). If the values are loaded first, the 7-point product with 200^3 points takes 138.5 us on an H200 instead
    // of 135.7
    if (pattern.x < 0) return false;
    Issue();
    const Waited waited = AwaitInTurn(LATE<BS> && k0 == 0 && args.settled, args.last_blocks);
    // With double complex and 27 steps, the path without predicates took 1.10 times as long
    constexpr bool UNMASKED = BS == 1 && (STEPS || sizeof(Scalar) <= 8);
    const auto     unmasked = [&](auto offset) {
#pragma unroll
      for (int b = 0; b < COUNT; b++) xs[b][0] = in(b) ? LoadX(waited, own_x + offset(b)) : Num::zero();
      Issue();
#pragma unroll
      for (int b = 0; b < COUNT; b++) {
        if (in(b)) d[0] = Num::fma(Conjugated(form, Convert<Scalar>(v[b][0])), xs[b][0], d[0]);
      }
      return true;
    };
    if (UNMASKED && pattern.x == args.frequent.first)
      return unmasked([&](int b) { return args.frequent.offset[k0 + b]; });
#pragma unroll
    for (int b = 0; b < COUNT; b++) now[b] = in(b) ? __ldg(here + b) : make_int2(0, 0);
    if (UNMASKED && FULL && HaveAllLanes(now)) return unmasked([&](int b) { return now[b].x; });
    if (!UNMASKED || !FULL) Issue(); // otherwise all steps are here
#pragma unroll
    for (int b = 0; b < COUNT; b++) {
      const Scalar *at = BS == 1 ? own_x + now[b].x : x + (int64_t)(unit + now[b].x) * BS;
      own[b]           = (unsigned)now[b].y & bit;
#pragma unroll
      for (int j = 0; j < BS; j++) xs[b][j] = !own[b] ? Num::zero() : LoadX(waited, at + j);
    }
    Issue();
#pragma unroll
    for (int b = 0; b < COUNT; b++) {
      if (own[b]) { // a lane without an entry may hold any value, and Inf times 0 would spoil the sum
#pragma unroll
        for (int j = 0; j < BS; j++) {
#pragma unroll
          for (int i = 0; i < BS; i++) {
            if (BS > 1 && Traits<V>::is_absent(v[b][i * BS + j])) continue;
            d[i] = Num::fma(Conjugated(form, Convert<Scalar>(v[b][i * BS + j])), xs[b][j], d[i]);
          }
        }
      }
    }
    return true;
  }

  // Adds whole batches of steps from k0 on. Returns what Add() returns
  template <int BATCH> __device__ __forceinline__ bool AddBatches(int &k0, int steps)
  {
    bool here = true;
    for (; here && k0 + BATCH <= steps; k0 += BATCH) {
      here = Add<BATCH, true>(k0);
      marks >>= BATCH;
    }
    return here;
  }

  // Adds all steps. Returns what Add() returns
  __device__ __forceinline__ bool AddAll(int steps)
  {
    constexpr int BATCH = BS == 1 ? 8 : BS == 2 ? 4 : BS == 3 ? 2 : 1, REST = BATCH / 2;
    int           k0 = 0;
    if constexpr (STEPS > 0) return Add<STEPS, true>(0);
    if (BS == 1 && steps == 27) return AddBatches<9>(k0, 27); // three equal rounds of loads instead of four
    bool here = AddBatches<BATCH>(k0, steps);
    if constexpr (REST > 0) {
      if (here && k0 + REST <= steps) {
        here = Add<REST, true>(k0);
        marks >>= REST;
        k0 += REST;
      }
      if (REST > 1 && here && k0 < steps) here = Add<REST, false>(k0, (1u << (steps - k0)) - 1);
    }
    return here;
  }
};

/*
  Multiplies slice s. STEPS > 0: all slices have this many steps. Only with ANY_LENGTH do loads wait for first_value. V:
  the type of the stored values. sums: the inner products of the epilogue, to which it adds those of the unit
*/
template <class V, int BS, int STEPS, Lengths LENGTHS, bool LOOPS, Use USE>
__device__ __forceinline__ void MultiplySlice(const ArgumentsOf<Args, USE> &arguments, int s, int2 pattern,
                                              SpMVCudaForm form, const Scalar *x, const Scalar *z, Scalar *y,
                                              PetscReal (&sums)[EpilogueOf<USE>::NUMBERS])
{
  constexpr bool UNIFORM = LENGTHS != ANY_LENGTH;

  const Args &args = ArgsOf(arguments);
  const int   unit = s * WARP + (int)(threadIdx.x % WARP);
  if constexpr (HasSums(USE)) {
    if (unit < args.units) GetEpilogue(arguments)->Prefetch((int64_t)unit * BS);
  }
  int slot[1] = {-1};
  if constexpr (HasExchange(USE)) slot[0] = GetEpilogue(arguments)->Slot(unit); // in time for the end
  const int                  total = STEPS ? STEPS : args.steps;
  const int64_t              first = UNIFORM ? (int64_t)s * total : args.first_value[s];
  const int                  steps = UNIFORM ? total : (int)(args.first_value[s + 1] - (unsigned)first);
  SliceProduct<V, BS, STEPS> product(args, s, pattern, first, form, x, unit);
  Scalar(&d)[BS] = product.d;
  product.AddAll(steps);
  if (LATE<BS> && !STEPS) AwaitPrevious(); // if the slice has no steps
  // A lane past the end has no entry in any step. Without loops or inner products, it is not here
  const bool writes = (!HasSums(USE) && !LOOPS) || unit < args.units;
  if constexpr (HasExchange(USE)) {
    const int units[1] = {unit};
    if (writes) GetEpilogue(arguments)->AddOffdiagonal(slot, units, d);
  }
  if constexpr (HasSums(USE)) {
#pragma unroll
    for (int i = 0; i < BS; i++) {
      if (writes) d[i] = GetEpilogue(arguments)->Add((int64_t)unit * BS + i, d[i], sums);
    }
  }
#pragma unroll
  for (int i = 0; i < BS; i++) {
    if (!writes) break;
    y[(int64_t)unit * BS + i] = Result(form, z, (int64_t)unit * BS + i, d[i]);
  }
}

/*
  A warp multiplies one slice, or with LOOPS several, one after the other. There is a kernel for each use, because
  warps with few steps run for so short a time that a few more instructions, or loads in a different order, make a
  difference. DOTS (for a square matrix): all threads take part until the end.
*/
template <class V, int BS, int STEPS, Lengths LENGTHS, bool LOOPS, Use USE>
__global__ void __launch_bounds__(BLOCK, Resident(BS, LOOPS, USE) / BLOCK)
    diagonals(ArgumentsOf<Args, USE> arguments, SpMVCudaForm form, const Scalar *x, const Scalar *z, Scalar *y)
{
  const Args &args  = ArgsOf(arguments);
  unsigned    block = blockIdx.x;
  if constexpr (HasExchange(USE)) {
    if (GetEpilogue(arguments)->Exchanges(&block, x)) return;
    const unsigned blocks = gridDim.x - GetEpilogue(arguments)->exchange.blocks;
    block += args.block_shift;
    if (block >= blocks) block -= blocks;
  }
  const int warp                           = (int)((block * blockDim.x + threadIdx.x) / WARP);
  PetscReal sums[EpilogueOf<USE>::NUMBERS] = {};
  if (!LATE<BS> || !args.settled) AwaitPrevious();
  const auto multiply = [&](int s, int2 pattern) {
    MultiplySlice<V, BS, STEPS, LENGTHS, LOOPS, USE>(arguments, s, pattern, form, x, z, y, sums);
  };
  if constexpr (LOOPS) {
    const int begin = warp * args.slices_of_warp, end = min(begin + args.slices_of_warp, args.slices);
    int2      next = begin < end ? LoadOrdered(args.pattern_of_slice + begin) : make_int2(0, 0);
#pragma unroll 1
    for (int s = begin; s < end; s++) {
      const int2 pattern = next;
      next               = LoadOrdered(args.pattern_of_slice + min(s + 1, end - 1));
      multiply(s, pattern);
    }
  } else if (HasSums(USE) ? warp < args.slices : warp * WARP + (int)(threadIdx.x % WARP) < args.units) {
    multiply(warp, LoadOrdered(args.pattern_of_slice + warp));
  }
  if constexpr (HasSums(USE)) {
    AwaitPrevious();
    GetEpilogue(arguments)->Store(sums);
  }
}

// ------------------------------------------------------------------------------------------------ variants

template <int BS_, int STEPS_, Lengths LENGTHS_, bool LOOPS_ = false> struct Variant {
  static constexpr int     BS = BS_, STEPS = STEPS_;
  static constexpr Lengths LENGTHS = LENGTHS_;
  static constexpr bool    LOOPS   = LOOPS_;
};

// Returns f(Variant<...>()) for the variant of a matrix
template <class F> const void *WithVariant(const DiagonalsVariant &v, F f)
{
  if (v.bs == 1 && v.lengths == SAME_LENGTH) {
    switch (v.steps) { // star and box stencils in one to three dimensions
    case 3: return f(Variant<1, 3, SAME_LENGTH, true>());
    case 5: return v.loops ? f(Variant<1, 5, SAME_LENGTH, true>()) : f(Variant<1, 5, SAME_LENGTH>());
    case 7: return v.loops ? f(Variant<1, 7, SAME_LENGTH, true>()) : f(Variant<1, 7, SAME_LENGTH>());
    case 9: return f(Variant<1, 9, SAME_LENGTH>());
    }
  }
  return WithNodeSize(v.bs, [&](auto bs) {
    constexpr int BS = decltype(bs)::value;
    return v.lengths == SAME_LENGTH ? f(Variant<BS, 0, SAME_LENGTH>()) : f(Variant<BS, 0, ANY_LENGTH>());
  });
}

template <class V, Use USE> const void *ProductOf(const DiagonalsVariant &variant)
{
  return WithVariant(variant, [](auto t) {
    using T = decltype(t);
    // with sums, fewer warps leave fewer of them to add
    constexpr bool LOOPS = T::LOOPS || (HasSums(USE) && MayLoop(T::STEPS));
    return (const void *)diagonals<V, T::BS, T::STEPS, T::LENGTHS, LOOPS, USE>;
  });
}

} // namespace
} // namespace spmv
