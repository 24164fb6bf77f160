/*
  The conjugate gradient method: what one thread decides when it has the sums of a kernel, and p'Ap as the epilogue of a product.
*/
#pragma once

#include "krylov.cuh"

namespace spmv {

// What a thread does when it has sums
enum Step { PRODUCT = 1, TEST = 2, BETA = 4, START = 8 };

__device__ __forceinline__ int Sign(PetscReal a)
{
  return (a > 0) - (a < 0);
}

// ------------------------------------------------------------------------------------------------ what one thread decides

__device__ __forceinline__ void End(State &s, int reason)
{
  s.reason = reason;
}

__device__ inline void AfterProduct(State &s, Scalar dpi)
{
  const PetscReal now = RealPart(dpi), before = RealPart(s.dpi);
  s.dpi  = dpi;
  s.step = 0;
  if (IsBad(dpi))
    End(s, SPMV_KRYLOV_NAN_DOT);
  else if (IsZero(dpi) || (s.i > 0 && Sign(now) * Sign(before) < 0))
    End(s, SPMV_KRYLOV_INDEFINITE_MAT);
  else {
    s.a    = Divided(s.beta, dpi);
    s.step = 1;
  }
}

__device__ inline void AfterUpdate(State &s, PetscReal square, Scalar beta, Progress *progress)
{
  const bool none    = s.norm == SPMV_KRYLOV_NORM_NONE;
  const bool natural = s.norm == SPMV_KRYLOV_NORM_NATURAL;
  PetscReal  norm    = 0;
  if (natural) {
    if (IsBad(beta)) return End(s, SPMV_KRYLOV_NAN_DOT);
    norm = sqrt(Magnitude(beta));
  } else if (!none && s.until.chknorm < s.i + 2)
    norm = sqrt(square);
  s.objective -= PetscReal(0.5) * RealPart(Multiplied(s.a, s.beta));
  TellNorm(s.i + 1, norm, progress);
  if (IsBad(norm)) return End(s, SPMV_KRYLOV_NAN_NORM);
  s.norms  = s.i + 1;
  s.reason = Converged(s.until, none, s.i + 1, norm);
}

__device__ inline void AfterBeta(State &s, Scalar beta, bool start)
{
  if (IsBad(beta)) return End(s, SPMV_KRYLOV_NAN_DOT);
  s.betaold = s.beta;
  s.beta    = beta;
  if (!start && ++s.i >= s.until.max_it) return End(s, SPMV_KRYLOV_ITS);
  s.its = s.i + 1;
  if (IsZero(beta)) return End(s, SPMV_KRYLOV_ZERO);
#if !defined(PETSC_USE_COMPLEX)
  if (!start && beta * s.betaold < 0) return End(s, SPMV_KRYLOV_INDEFINITE_PC);
#endif
  if (!start) s.b = Divided(beta, s.betaold);
}

// s: the state as it was when the kernel began
__device__ inline void Decide(const CGArgs &g, State &s, int step, const PetscReal v[])
{
  const Scalar dot = ScalarOf(v + 1);
  if (step & PRODUCT) AfterProduct(s, dot);
  if (step & TEST) AfterUpdate(s, v[0], dot, g.progress);
  if (step & BETA && s.reason == SPMV_KRYLOV_ITERATING) AfterBeta(s, dot, step & START);
  *g.state = s;
  if (step & BETA || s.reason != SPMV_KRYLOV_ITERATING) TellStatus(s, g.progress);
}

// ------------------------------------------------------------------------------------------------ the epilogue of a product w = A p

// Arguments of a product's kernel
struct Dot {
  bool       hermitian;
  PetscReal *part; // sums of the warps of the grid
};

// Leaves the sums of the warp, of which v are this lane's. Nothing waits: to add them here would have every thread block wait until its writes are visible
__device__ __forceinline__ void LeaveDot(const Dot &e, PetscReal (&v)[REALS])
{
  const size_t warps = (size_t)gridDim.x * (blockDim.x / WARP), warp = (size_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
#pragma unroll
  for (int k = 0; k < REALS; k++) {
#pragma unroll
    for (int by = WARP / 2; by; by >>= 1) v[k] += __shfl_xor_sync(ALL, v[k], by);
    if (threadIdx.x % WARP == 0) e.part[k * warps + warp] = v[k];
  }
}

// What a product's kernel computes in addition to the product: nothing, or the sums of x'y
struct NoEpilogue {
  static constexpr bool DOT = false;
};
struct DotEpilogue {
  static constexpr bool DOT = true;
};
template <class A> struct WithDot {
  A   args;
  Dot dot;
};
template <class A, class E> using ArgumentsOf = std::conditional_t<E::DOT, WithDot<A>, A>;

template <class A> __device__ __forceinline__ const A &ArgsOf(const A &a)
{
  return a;
}
template <class A> __device__ __forceinline__ const A &ArgsOf(const WithDot<A> &a)
{
  return a.args;
}
template <class A> __device__ __forceinline__ const Dot *DotOf(const A &)
{
  return nullptr;
}
template <class A> __device__ __forceinline__ const Dot *DotOf(const WithDot<A> &a)
{
  return &a.dot;
}

} // namespace spmv
