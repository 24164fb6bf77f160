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

constexpr unsigned DOT_GROUP = 64; // thread blocks whose sums are added first: so many do not wait for the same counter

// Arguments of a product's kernel, and where its sums go
struct Dot {
  CGArgs     g;
  PetscReal *part; // of the thread blocks, then of their groups
  unsigned  *arrived;
};

// v: of this thread. In the thread block that arrives last, as the kernel product() does; if the solve has ended, that x has been updated
template <int BLOCK> __device__ __forceinline__ void AddDot(const Dot &e, PetscReal (&v)[SUMS])
{
  const unsigned group = blockIdx.x / DOT_GROUP, groups = (gridDim.x + DOT_GROUP - 1) / DOT_GROUP, first = group * DOT_GROUP;
  const unsigned members = min(DOT_GROUP, gridDim.x - first);
  if (!AddBlocks<BLOCK>(v, blockIdx.x - first, members, e.part + (size_t)first * SUMS, e.arrived + 1 + group)) return;
  if (threadIdx.x) { // the group's sums are those of the first thread
#pragma unroll
    for (int k = 0; k < SUMS; k++) v[k] = 0;
  }
  if (!AddBlocks<BLOCK>(v, group, groups, e.part + (size_t)gridDim.x * SUMS, e.arrived)) return;
  if (*(const volatile int *)&e.g.state->reason != SPMV_KRYLOV_ITERATING) {
    if (threadIdx.x == 0) e.g.state->step = 0;
    return;
  }
  if (!AddAcross(e.g, v)) return;
  State s = *e.g.state;
  Decide(e.g, s, PRODUCT, v);
}

// What a product's kernel does beside the product: nothing, or this
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
