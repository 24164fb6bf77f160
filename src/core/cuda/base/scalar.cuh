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
  return {Fresh(&p->re), Fresh(&p->im)};
}

/*
  If the matrix has no entry at a place of a stored node block, that place holds a special NaN, "absent", which kernels
  skip. With 0 instead, an Inf in x would become NaN in a row that does not refer to it. This is the upper word of that
  NaN, for complex numbers the upper word of the real part
*/
constexpr uint32_t ABSENT = 0x7ff5c0de;

template <class S> constexpr bool IS_REAL = std::is_floating_point_v<S>;

template <class S> __host__ __device__ __forceinline__ auto RealPart(S a)
{
  if constexpr (IS_REAL<S>)
    return a;
  else
    return a.re;
}
template <class S> __host__ __device__ __forceinline__ auto ImagPart(S a)
{
  if constexpr (IS_REAL<S>)
    return S(0);
  else
    return a.im;
}
// f of a real number, or of both parts of a complex one
template <class S, class F> __device__ __forceinline__ S EachReal(S a, F f)
{
  if constexpr (IS_REAL<S>)
    return f(a);
  else
    return {f(a.re), f(a.im)};
}

template <class S> struct Traits {
  static __host__ __device__ S zero()
  {
    return S{};
  }
  static __device__ S fma(S a, S x, S d)
  {
    if constexpr (IS_REAL<S>)
      return ::fma(a, x, d);
    else
      return {::fma(a.re, x.re, ::fma(-a.im, x.im, d.re)), ::fma(a.re, x.im, ::fma(a.im, x.re, d.im))};
  }
  static __device__ S add(S a, S b)
  {
    if constexpr (IS_REAL<S>)
      return a + b;
    else
      return {a.re + b.re, a.im + b.im};
  }
  static __device__ S sub(S a, S b)
  {
    if constexpr (IS_REAL<S>)
      return a - b;
    else
      return {a.re - b.re, a.im - b.im};
  }
  static __device__ S conj(S a)
  {
    if constexpr (!IS_REAL<S>) a.im = -a.im;
    return a;
  }
  static __device__ S shfl(S a, int lane)
  {
    return EachReal(a, [=](auto part) { return __shfl_sync(ALL, part, lane); });
  }
  static __device__ S down(S a, int by)
  {
    return EachReal(a, [=](auto part) { return __shfl_down_sync(ALL, part, by); });
  }
  static __device__ S exchange(S a, int by)
  {
    return EachReal(a, [=](auto part) { return __shfl_xor_sync(ALL, part, by); });
  }
  // see StreamEither()
  template <bool ALWAYS> static __device__ S either(unsigned marks, unsigned has, int bit, const S *p, const S *q)
  {
    if constexpr (IS_REAL<S>)
      return StreamEither<ALWAYS>(marks, has, bit, p, q);
    else
      return ALWAYS || has >> bit & 1 ? Stream(marks >> bit & 1 ? p : q) : zero();
  }
  // a number as one vector, so that it is loaded as a whole
  using Vector = std::conditional_t<IS_REAL<S>, S, std::conditional_t<sizeof(S) == 16, double2, float2>>;
  static __device__ S from(Vector v)
  {
    if constexpr (IS_REAL<S>)
      return v;
    else
      return {v.x, v.y};
  }
  static __device__ S keep(const S *p) // for values that other threads will read again
  {
    return from(__ldg((const Vector *)p));
  }
  static __device__ S ordered(const S *p) // like LoadOrdered()
  {
    return from(LoadOrdered((const Vector *)p));
  }
  static __device__ bool same(S a, S b) // bitwise: -0 is not 0
  {
    if constexpr (!IS_REAL<S>)
      return Traits<decltype(a.re)>::same(a.re, b.re) && Traits<decltype(a.re)>::same(a.im, b.im);
    else if constexpr (sizeof(S) == 8)
      return __double_as_longlong(a) == __double_as_longlong(b);
    else
      return __float_as_int(a) == __float_as_int(b);
  }
  static __host__ __device__ S absent()
  {
    using R                                                           = decltype(RealPart(S()));
    const std::conditional_t<sizeof(R) == 8, uint64_t, uint32_t> bits = (decltype(bits))ABSENT << (8 * sizeof(R) - 32);
    S                                                            a{};
    memcpy(&a, &bits, sizeof(bits));
    return a;
  }
  static __host__ __device__ bool is_absent(S a)
  {
    const auto                                                real = RealPart(a);
    std::conditional_t<sizeof(real) == 8, uint64_t, uint32_t> bits;
    memcpy(&bits, &real, sizeof(real));
    return (uint32_t)(bits >> (8 * sizeof(real) - 32)) == ABSENT;
  }
  static __device__ S present(S a) // returns a, or a different NaN if a looks absent
  {
    if constexpr (!IS_REAL<S>)
      return {Traits<decltype(a.re)>::present(a.re), a.im};
    else if constexpr (sizeof(S) == 8)
      return __hiloint2double(__double2hiint(a) + is_absent(a), __double2loint(a));
    else
      return __int_as_float(__float_as_int(a) + is_absent(a));
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

template <class S> __device__ __forceinline__ bool IsBad(S a) // Inf or NaN
{
  const auto re = RealPart(a), im = ImagPart(a);
  return !(re - re == 0 && im - im == 0);
}
template <class S> __device__ __forceinline__ PetscReal Magnitude(S a)
{
  if constexpr (IS_REAL<S>)
    return fabs(a);
  else
    return hypot(a.re, a.im);
}
__device__ __forceinline__ bool IsZero(Scalar a)
{
  return RealPart(a) == 0 && ImagPart(a) == 0;
}
template <class S> __device__ __forceinline__ S Multiplied(S a, S b)
{
  if constexpr (IS_REAL<S>)
    return a * b;
  else
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class S> __device__ __forceinline__ S Negated(S a)
{
  return EachReal(a, [](auto part) { return -part; });
}
// Complex numbers by Smith's method, which has no intermediate overflow
template <class S> __device__ __forceinline__ S Divided(S a, S b)
{
  if constexpr (IS_REAL<S>)
    return a / b;
  else if (fabs(b.re) >= fabs(b.im)) {
    const auto q = b.im / b.re, d = b.re + b.im * q;
    return {(a.re + a.im * q) / d, (a.im - a.re * q) / d};
  } else {
    const auto q = b.re / b.im, d = b.re * q + b.im;
    return {(a.re * q + a.im) / d, (a.im * q - a.re) / d};
  }
}

__device__ __forceinline__ Scalar FromReal(PetscReal a)
{
  Scalar s = Num::zero();
  memcpy((void *)&s, &a, sizeof(a));
  return s;
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
