/*
  Inner products as the epilogue of a product y = A x, for the Krylov methods, and the arithmetic that epilogues and
  methods need.
*/
#pragma once

#include "core/cuda/halo/links.cuh"

namespace spmv {

__device__ __forceinline__ bool IsBad(PetscReal a) // Inf or NaN
{
  return !(a - a == PetscReal(0));
}
__device__ __forceinline__ PetscReal RealPart(PetscReal a)
{
  return a;
}
template <class R> __device__ __forceinline__ R RealPart(Complex<R> a)
{
  return a.re;
}
__device__ __forceinline__ PetscReal ImagPart(PetscReal)
{
  return 0;
}
template <class R> __device__ __forceinline__ R ImagPart(Complex<R> a)
{
  return a.im;
}
__device__ __forceinline__ bool IsBad(const Complex<PetscReal> &a)
{
  return IsBad(a.re) || IsBad(a.im);
}
__device__ __forceinline__ PetscReal Magnitude(PetscReal a)
{
  return fabs(a);
}
template <class R> __device__ __forceinline__ R Magnitude(Complex<R> a)
{
  return hypot(a.re, a.im);
}
__device__ __forceinline__ bool IsZero(Scalar a)
{
  return RealPart(a) == 0 && ImagPart(a) == 0;
}
__device__ __forceinline__ PetscReal Multiplied(PetscReal a, PetscReal b)
{
  return a * b;
}
template <class R> __device__ __forceinline__ Complex<R> Multiplied(Complex<R> a, Complex<R> b)
{
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ __forceinline__ PetscReal Negated(PetscReal a)
{
  return -a;
}
template <class R> __device__ __forceinline__ Complex<R> Negated(Complex<R> a)
{
  return {-a.re, -a.im};
}
__device__ __forceinline__ PetscReal Divided(PetscReal a, PetscReal b)
{
  return a / b;
}
// Smith's method, which has no intermediate overflow
template <class R> __device__ Complex<R> Divided(Complex<R> a, Complex<R> b)
{
  if (fabs(b.re) >= fabs(b.im)) {
    const R q = b.im / b.re, d = b.re + b.im * q;
    return {(a.re + a.im * q) / d, (a.im - a.re * q) / d};
  }
  const R q = b.re / b.im, d = b.re * q + b.im;
  return {(a.re * q + a.im) / d, (a.im * q - a.re) / d};
}

// Reads a scalar from the sums of a kernel
__device__ __forceinline__ Scalar ScalarOf(const PetscReal *v)
{
  Scalar a;
#pragma unroll
  for (int k = 0; k < REALS; k++) ((PetscReal *)&a)[k] = v[k];
  return a;
}
__device__ __forceinline__ void AddTo(PetscReal *v, Scalar a)
{
#pragma unroll
  for (int k = 0; k < REALS; k++) v[k] += ((const PetscReal *)&a)[k];
}
// A term of an inner product: conj(y) x or y x
__device__ __forceinline__ Scalar Term(bool hermitian, Scalar x, Scalar y)
{
  return Multiplied(x, hermitian ? Num::conj(y) : y);
}
__device__ __forceinline__ PetscReal Square(Scalar a)
{
  return RealPart(a) * RealPart(a) + ImagPart(a) * ImagPart(a);
}

// ------------------------------------------------------------------------------------------------ the epilogue

// The arguments for a product's kernel that also stores the sums of x'y of its warps. It is for CG; more general code
// would cost CG time
struct Dot {
  static constexpr int NUMBERS = REALS;

  bool       hermitian; // complex numbers: conjugate; if false, nothing is conjugated
  PetscReal *part;

  // Stores the sums of the warp; v are this lane's. Nothing waits: if they were added here, every thread block would
  // have to wait until its writes are visible
  __device__ __forceinline__ void Leave(PetscReal (&v)[NUMBERS]) const
  {
    const size_t warps = (size_t)gridDim.x * (blockDim.x / WARP),
                 warp  = (size_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
#pragma unroll
    for (int k = 0; k < REALS; k++) {
#pragma unroll
      for (int by = WARP / 2; by; by >>= 1) v[k] += __shfl_xor_sync(ALL, v[k], by);
      if (threadIdx.x % WARP == 0) part[k * warps + warp] = v[k];
    }
  }
};

/*
  The same for BiCGStab. The kernel computes y = A x, or D A x if d is not NULL. Its warps store the sums first'y and,
  if second is not NULL, also second'y, first'second and y'y. The first sum of all warps comes first, then the second
  sum of all warps, and so on. The second factor is conjugated
*/
struct Dots {
  static constexpr int ONE = REALS, NUMBERS = 3 * REALS + 1;

  bool          other; // first is not x
  PetscReal    *part;
  const Scalar *first, *second, *d;

  // Prefetches the data that only the epilogue reads to the L2 cache, at the beginning of a warp
  __device__ __forceinline__ void Prefetch(int64_t row) const
  {
    if (other) PrefetchL2(first + row);
    if (second) PrefetchL2(second + row);
    if (d) PrefetchL2(d + row);
  }
  // Returns the new value of y[row]
  __device__ __forceinline__ Scalar Add(int64_t row, Scalar y, PetscReal *v) const
  {
    if (d) y = Multiplied(d[row], y);
    const Scalar a = Num::ordered(first + row);
    AddTo(v, Term(true, a, y));
    if (second) {
      const Scalar b = second[row];
      AddTo(v + REALS, Term(true, b, y));
      AddTo(v + 2 * REALS, Term(true, a, b));
      v[3 * REALS] += Square(y);
    }
    return y;
  }
  __device__ __forceinline__ void Leave(PetscReal (&v)[NUMBERS]) const
  {
    constexpr int COUNT = REALS == 1 ? 4 : 8; // a power of two
    const size_t  warps = (size_t)gridDim.x * (blockDim.x / WARP),
                 warp   = (size_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    const int lane = (int)(threadIdx.x % WARP), mine = lane / (WARP / COUNT);
    if (!second) {
#pragma unroll
      for (int k = 0; k < ONE; k++) {
#pragma unroll
        for (int by = WARP / 2; by; by >>= 1) v[k] += __shfl_xor_sync(ALL, v[k], by);
        if (lane == 0) part[k * warps + warp] = v[k];
      }
      return;
    }
    PetscReal u[COUNT] = {}; // in each step, half of the lanes continue with half of the sums, until each lane has one
#pragma unroll
    for (int k = 0; k < NUMBERS; k++) u[k] = v[k];
#pragma unroll
    for (int left = COUNT / 2, by = WARP / 2; left; left /= 2, by /= 2) {
      const bool upper = lane & by;
#pragma unroll
      for (int k = 0; k < left; k++) {
        const PetscReal others = __shfl_xor_sync(ALL, upper ? u[k] : u[k + left], by);
        u[k]                   = (upper ? u[k + left] : u[k]) + others;
      }
    }
#pragma unroll
    for (int by = WARP / COUNT / 2; by; by >>= 1) u[0] += __shfl_xor_sync(ALL, u[0], by);
    if (lane % (WARP / COUNT) == 0 && mine < NUMBERS) part[mine * warps + warp] = u[0];
  }
};

// What a product's kernel computes in addition to the product: nothing, Dot or Dots
struct NoEpilogue {
  static constexpr bool DOT = false;
  using Type                = Dot;
};
struct DotEpilogue {
  static constexpr bool DOT = true;
  using Type                = Dot;
};
struct DotsEpilogue {
  static constexpr bool DOT = true;
  using Type                = Dots;
};
template <class A, class D> struct WithDot {
  A args;
  D dot;
};
template <class A, class E> using ArgumentsOf = std::conditional_t<E::DOT, WithDot<A, typename E::Type>, A>;

template <class A> __device__ __forceinline__ const A &ArgsOf(const A &a)
{
  return a;
}
template <class A, class D> __device__ __forceinline__ const A &ArgsOf(const WithDot<A, D> &a)
{
  return a.args;
}
template <class A> __device__ __forceinline__ const Dot *DotOf(const A &)
{
  return nullptr;
}
template <class A, class D> __device__ __forceinline__ const D *DotOf(const WithDot<A, D> &a)
{
  return &a.dot;
}
} // namespace spmv
