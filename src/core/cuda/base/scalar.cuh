/*
  The number types of the device code: PETSc's scalar, real or complex, and the types in which values may be stored.
*/
#pragma once

#include "ptx.cuh"
#include <cstring>
#include <petscsys.h>
#include <type_traits>

namespace spmv {

// Binary compatible with PetscScalar of complex builds, and loaded as a whole
template <class R> struct alignas(2 * sizeof(R)) Complex {
  R re, im;
};

// Values may be stored as Single, so that fewer bytes are read. Products and sums are computed in the precision of the
// scalar
#if defined(PETSC_USE_COMPLEX)
using Scalar = Complex<PetscReal>;
using Single = Complex<float>;
#else
using Scalar = PetscReal;
using Single = float;
#endif
constexpr int REALS = sizeof(Scalar) / sizeof(PetscReal);
static_assert(sizeof(Scalar) == sizeof(PetscScalar), "PetscScalar must be real or complex, of float or double");

// Complex values are read and written as a whole, but a program's array may be aligned only to the real part
inline bool IsAligned(const void *p)
{
  if constexpr (alignof(Scalar) == alignof(PetscReal)) return true;
  return (uintptr_t)p % alignof(Scalar) == 0;
}

template <class To, class R> __host__ __device__ __forceinline__ To Convert(R a)
{
  return (To)a;
}
template <class To, class R> __host__ __device__ __forceinline__ To Convert(Complex<R> a)
{
  return {(decltype(To::re))a.re, (decltype(To::im))a.im};
}

// Calls f with a number of the type in which values are stored
template <class F> auto WithStored(bool single, F f)
{
  if (single) return f(Single());
  return f(Scalar());
}
inline size_t StoredSize(bool single)
{
  return single ? sizeof(Single) : sizeof(Scalar);
}

template <class R, class... Policy> __device__ __forceinline__ Complex<R> Stream(const Complex<R> *p, Policy... policy)
{
  Complex<R> v;
  Stream((const R *)p, v.re, v.im, policy...);
  return v;
}
template <class R> __device__ __forceinline__ Complex<R> Fresh(const Complex<R> *p)
{
  Complex<R> v;
  Fresh((const R *)p, v.re, v.im);
  return v;
}

template <class R> __device__ __forceinline__ void CopyAsync(Complex<R> *shared, const Complex<R> *p)
{
  CopyAsync(&shared->re, &p->re);
  CopyAsync(&shared->im, &p->im);
}

/*
  If the matrix has no entry at a place of a stored node block, that place holds a special NaN, "absent", which kernels
  skip. With 0 instead, an Inf in x would become NaN in a row that does not refer to it. This is the upper word of that
  NaN, for complex numbers the upper word of the real part
*/
constexpr uint32_t ABSENT = 0x7ff5c0de;

template <class S> struct Traits { // real
  static __host__ __device__ S zero()
  {
    return S(0);
  }
  static __device__ S fma(S a, S x, S d)
  {
    return ::fma(a, x, d);
  }
  static __device__ S add(S a, S b)
  {
    return a + b;
  }
  static __device__ S sub(S a, S b)
  {
    return a - b;
  }
  static __device__ S conj(S a)
  {
    return a;
  }
  static __device__ S shfl(S a, int lane)
  {
    return __shfl_sync(ALL, a, lane);
  }
  static __device__ S down(S a, int by)
  {
    return __shfl_down_sync(ALL, a, by);
  }
  static __device__ S exchange(S a, int by)
  {
    return __shfl_xor_sync(ALL, a, by);
  }
  // see StreamEither()
  template <bool ALWAYS> static __device__ S either(unsigned marks, unsigned has, int bit, const S *p, const S *q)
  {
    return StreamEither<ALWAYS>(marks, has, bit, p, q);
  }
  static __device__ S keep(const S *p) // for values that other threads will read again
  {
    return __ldg(p);
  }
  static __device__ S ordered(const S *p) // like LoadOrdered()
  {
    return LoadOrdered(p);
  }
  static __device__ bool same(S a, S b) // bitwise: -0 is not 0
  {
    if constexpr (sizeof(S) == 8)
      return __double_as_longlong(a) == __double_as_longlong(b);
    else
      return __float_as_int(a) == __float_as_int(b);
  }
  static __host__ __device__ S absent()
  {
    const std::conditional_t<sizeof(S) == 8, uint64_t, uint32_t> bits = (decltype(bits))ABSENT << (8 * sizeof(S) - 32);
    S                                                            a;
    memcpy(&a, &bits, sizeof(a));
    return a;
  }
  static __host__ __device__ bool is_absent(S a)
  {
    std::conditional_t<sizeof(S) == 8, uint64_t, uint32_t> bits;
    memcpy(&bits, &a, sizeof(a));
    return (uint32_t)(bits >> (8 * sizeof(S) - 32)) == ABSENT;
  }
  static __device__ S present(S a) // returns a, or a different NaN if a looks absent
  {
    if constexpr (sizeof(S) == 8)
      return __hiloint2double(__double2hiint(a) + is_absent(a), __double2loint(a));
    else
      return __int_as_float(__float_as_int(a) + is_absent(a));
  }
};

template <class R> struct Traits<Complex<R>> {
  using S = Complex<R>;
  using T = Traits<R>;
  static __host__ __device__ S zero()
  {
    return {R(0), R(0)};
  }
  static __device__ S fma(S a, S x, S d)
  {
    return {::fma(a.re, x.re, ::fma(-a.im, x.im, d.re)), ::fma(a.re, x.im, ::fma(a.im, x.re, d.im))};
  }
  static __device__ S add(S a, S b)
  {
    return {a.re + b.re, a.im + b.im};
  }
  static __device__ S sub(S a, S b)
  {
    return {a.re - b.re, a.im - b.im};
  }
  static __device__ S conj(S a)
  {
    return {a.re, -a.im};
  }
  static __device__ S shfl(S a, int lane)
  {
    return {T::shfl(a.re, lane), T::shfl(a.im, lane)};
  }
  static __device__ S down(S a, int by)
  {
    return {T::down(a.re, by), T::down(a.im, by)};
  }
  static __device__ S exchange(S a, int by)
  {
    return {T::exchange(a.re, by), T::exchange(a.im, by)};
  }
  template <bool ALWAYS> static __device__ S either(unsigned marks, unsigned has, int bit, const S *p, const S *q)
  {
    return ALWAYS || has >> bit & 1 ? Stream(marks >> bit & 1 ? p : q) : zero();
  }
  using Pair = std::conditional_t<sizeof(R) == 8, double2, float2>;
  static __device__ S keep(const S *p)
  {
    const Pair v = __ldg((const Pair *)p);
    return {v.x, v.y};
  }
  static __device__ S ordered(const S *p)
  {
    const Pair v = LoadOrdered((const Pair *)p);
    return {v.x, v.y};
  }
  static __device__ bool same(S a, S b)
  {
    return T::same(a.re, b.re) && T::same(a.im, b.im);
  }
  static __host__ __device__ S absent()
  {
    return {T::absent(), R(0)};
  }
  static __host__ __device__ bool is_absent(S a)
  {
    return T::is_absent(a.re);
  }
  static __device__ S present(S a)
  {
    return {T::present(a.re), a.im};
  }
};
using Num = Traits<Scalar>;

// Convert() for a number of a BS x BS block: absent numbers stay absent, and other NaNs become NaNs that do not look
// absent
template <class To, int BS, class V> __device__ __forceinline__ To ConvertIn(V a)
{
  if constexpr (BS > 1 && !std::is_same_v<To, V>)
    return Traits<V>::is_absent(a) ? Traits<To>::absent() : Convert<To>(a);
  return Convert<To>(a);
}

// Reads an entry of one of the program's arrays, which may begin between two complex numbers
__device__ __forceinline__ Scalar Read(const Scalar *p)
{
  Scalar a;
#pragma unroll
  for (int k = 0; k < REALS; k++) ((PetscReal *)&a)[k] = ((const PetscReal *)p)[k];
  return a;
}
__device__ __forceinline__ void Write(Scalar *p, Scalar a)
{
#pragma unroll
  for (int k = 0; k < REALS; k++) ((PetscReal *)p)[k] = ((const PetscReal *)&a)[k];
}

// ------------------------------------------------------------------------------------------------ arithmetic of
// epilogues and Krylov methods

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

} // namespace spmv
