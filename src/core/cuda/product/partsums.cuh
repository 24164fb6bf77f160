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

template <class S> struct PartialSum {
  using R = decltype(RealPart(S()));

  static __device__ R with_bits(int64_t bits)
  {
    if constexpr (sizeof(R) == 8)
      return __longlong_as_double(bits);
    else
      return __int_as_float((int)(bits >> 32));
  }
  static __device__ S vacant()
  {
    return EachReal(S(), [](R) { return with_bits(-1); });
  }
  static __device__ bool is_vacant(S a) // a part of it
  {
    if constexpr (IS_REAL<S>)
      return Traits<R>::same(a, vacant());
    else
      return PartialSum<R>::is_vacant(a.re) || PartialSum<R>::is_vacant(a.im);
  }
  // any other NaN. Sums of NaNs may have the bits of a NaN in A or x
  static __device__ S present(S sum)
  {
    return EachReal(sum, [](R a) { return PartialSum<R>::is_vacant(a) ? with_bits(INT64_MAX) : a; });
  }
  static __device__ void hand(S *place, S sum)
  {
    sum = present(sum);
#pragma unroll
    for (int k = 0; k < (int)(sizeof(S) / sizeof(R)); k++) StoreRelaxed((R *)place + k, ((const R *)&sum)[k]);
  }
  static __device__ void send(S *place, S number) // to another device
  {
    number = present(number);
#pragma unroll
    for (int k = 0; k < (int)(sizeof(S) / sizeof(R)); k++) StoreRelaxedSystem((R *)place + k, ((const R *)&number)[k]);
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
