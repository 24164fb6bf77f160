/*
  The partial sums that the parts of a long unit hand to the part that adds them.

  A place is vacant, with a NaN in it whose bits are all set, until a sum is stored there, and again after the sum was
  taken. Each part stores its sums and counts its arrival. The part that arrives last adds the sums: all of them have
  been sent, and it waits for those that are not there yet. Thus a sum is its own signal. With a fence between the sums
  and the arrival, the last part would begin a microsecond later.

  In a fused product, thread blocks hand the sums of the off-diagonal block's rows to the warps that multiply the
  diagonal block (offdiagonal.cuh). Nobody counts arrivals: the thread blocks for which these warps wait have begun
  before them.
*/
#pragma once

#include "core/cuda/base/memory.cuh"
#include "core/cuda/base/scalar.cuh"

namespace spmv {

template <class R> struct PartialSum { // real
  static __device__ R with_bits(int64_t bits)
  {
    if constexpr (sizeof(R) == 8)
      return __longlong_as_double(bits);
    else
      return __int_as_float((int)(bits >> 32));
  }
  static __device__ R vacant()
  {
    return with_bits(-1);
  }
  static __device__ bool is_vacant(R a)
  {
    return Traits<R>::same(a, vacant());
  }
  // any other NaN. Sums of NaNs may have the bits of a NaN in A or x
  static __device__ R present(R sum)
  {
    return is_vacant(sum) ? with_bits(INT64_MAX) : sum;
  }
  static __device__ void hand(R *place, R sum)
  {
    StoreRelaxed(place, present(sum));
  }
  static __device__ void send(R *place, R number) // to another device
  {
    StoreRelaxedSystem(place, present(number));
  }
};

template <class R> struct PartialSum<Complex<R>> {
  using T = PartialSum<R>;
  static __device__ Complex<R> vacant()
  {
    return {T::vacant(), T::vacant()};
  }
  static __device__ bool is_vacant(Complex<R> a)
  {
    return T::is_vacant(a.re) || T::is_vacant(a.im);
  }
  static __device__ void hand(Complex<R> *place, Complex<R> sum)
  {
    T::hand(&place->re, sum.re);
    T::hand(&place->im, sum.im);
  }
  static __device__ void send(Complex<R> *place, Complex<R> number)
  {
    T::send(&place->re, number.re);
    T::send(&place->im, number.im);
  }
};
using Partial = PartialSum<Scalar>;

// Takes up to COUNT sums. Sum b is at place(b); if that is NULL, it is 0
template <int COUNT, class F> __device__ __forceinline__ void TakeSums(F place, Scalar (&sum)[COUNT])
{
  bool missing;
  do {
    missing = false;
#pragma unroll
    for (int b = 0; b < COUNT; b++) sum[b] = place(b) ? Fresh(place(b)) : Num::zero();
#pragma unroll
    for (int b = 0; b < COUNT; b++) missing = missing || Partial::is_vacant(sum[b]);
  } while (missing);
#pragma unroll
  for (int b = 0; b < COUNT; b++) {
    if (place(b)) *place(b) = Partial::vacant();
  }
}

// Makes all places vacant
inline cudaError_t Vacate(Array<Scalar> &sums, cudaStream_t stream)
{
  return cudaMemsetAsync(sums, 0xff, sums.Bytes(), stream);
}

} // namespace spmv
