/*
  GMRES. An iteration is the product and two kernels. The new column of the triangular matrix and the norm of the
  residual are computed in the same way as in PETSc's KSPGMRES, by one more thread block of the first kernel of the next
  iteration, or by gmres_sum().

  With several ranks, gmres_sum() is a kernel between the two. It adds all inner products of an iteration and the norm
  of the iteration before at once over the ranks.
*/
#include "gmres.h"
#include "orthog.cuh"

using namespace spmv;

namespace spmv {
namespace {

// What the kernels of a cycle share. r: the triangular matrix by columns, with leading dimension most + 2; column k is
// that of the Hessenberg matrix before its rotations are applied
struct CycleArgs {
  SolveArgs          solve;
  SpMVCudaGMRESCycle in;
  int                most;
  bool       left, right; // the kernels apply a preconditioner: on the left POINTS, on the right POINTS or BLOCKS
  bool       several;     // there are several ranks
  Scalar    *r, *cosine, *sine, *g, *h; // h: what is subtracted, per vector
  PetscReal *scale;
  unsigned  *singular;
};

struct StepArgs {
  CycleArgs c;
  Basis     basis;
  int       k;
  bool      again; // the second time: v[k+1] is scaled already, and the coefficients are added to those of the first
};

__device__ __forceinline__ Scalar Scaled(PetscReal by, Scalar a)
{
#pragma unroll
  for (int k = 0; k < REALS; k++) ((PetscReal *)&a)[k] *= by;
  return a;
}

// Vector j of the method is this times v[j]
__device__ __forceinline__ PetscReal ScaleOf(const CycleArgs &c, int j)
{
  return c.in.normalized ? PetscReal(1) : c.scale[j];
}

// Entry i of B y, where `in` says that this thread has entry i of y. All threads of a thread block call it
__device__ __forceinline__ Scalar Preconditioned(const CycleArgs &c, unsigned i, bool in, Scalar y)
{
  if (c.solve.pc == SPMV_KRYLOV_PC_BLOCKS)
    return MultiplyBlock<ORTHOG_BLOCK>(c.solve.d, c.solve.n, c.solve.bs, i, in, y);
  return in ? Multiplied(c.solve.d[i], y) : y;
}

__global__ void gmres_begin(CycleArgs c, bool, const Scalar *, const Scalar *, Scalar *)
{
  State first{};
  first.its = 1;
  AwaitPrevious();
  *c.solve.state = first;
  c.scale[0]     = 1 / c.in.beta;
  c.g[0]         = FromReal(c.in.beta);
}

// The shared memory that AddColumn() needs
constexpr size_t ColumnBytes(int k)
{
  return 3 * sizeof(Scalar) * (size_t)(k + 2);
}

/*
  Adds column k, whose entry below the diagonal is the norm of v[k+1], of which thread 0 has the square: applies the
  rotations of the columns before it and determines its own, unless the solve has ended. By one thread block
*/
__device__ void AddColumn(const CycleArgs &c, int k, PetscReal square)
{
  Scalar *const shared = (Scalar *)spmv_shared;
  Scalar *const column = c.r + (size_t)k * (size_t)(c.most + 2), *const h = shared, *const cosine = h + k + 2,
                *const sine = cosine + k + 2;
  for (int j = (int)threadIdx.x; j <= k; j += (int)blockDim.x) {
    h[j] = LoadOrdered(column + j);
    if (j == k) continue;
    cosine[j] = LoadOrdered(c.cosine + j);
    sine[j]   = LoadOrdered(c.sine + j);
  }
  __syncthreads();
  const PetscReal norm = sqrt(square);
  if (threadIdx.x == 0 && c.solve.state->reason == SPMV_KRYLOV_ITERATING) {
    State s   = *c.solve.state;
    bool  bad = false;
    for (int j = 0; j <= k; j++) bad |= IsBad(h[j]);
    if (bad || IsBad(norm)) {
      End(s, bad ? SPMV_KRYLOV_NAN_DOT : SPMV_KRYLOV_NAN_NORM);
      ReportNorm(k + 1, norm, c.solve.progress);
    } else {
      const Scalar below = FromReal(norm), old = c.g[k];
      for (int j = 0; j < k; j++) {
        const Scalar t = h[j];
        h[j]           = Num::fma(Num::conj(cosine[j]), t, Multiplied(sine[j], h[j + 1]));
        h[j + 1]       = Num::fma(cosine[j], h[j + 1], Negated(Multiplied(sine[j], t)));
      }
      const PetscReal length = sqrt(Square(h[k]) + norm * norm), size = sqrt(Square(old)), ratio = norm / size;
      const PetscReal bound = ratio > c.in.haptol ? c.in.haptol : ratio; // as in PETSc, also if it is NaN
      const bool      happy = norm < bound || (c.in.flexible && norm == bound);
      PetscReal       now   = 0;
      if (!happy && length > 0) {
        const Scalar cs = Scaled(1 / length, h[k]), sn = Scaled(1 / length, below);
        c.cosine[k] = cs;
        c.sine[k]   = sn;
        c.g[k + 1]  = Negated(Multiplied(sn, old));
        c.g[k]      = Multiplied(Num::conj(cs), old);
        h[k]        = Num::fma(Num::conj(cs), h[k], Multiplied(sn, below));
        now         = sqrt(Square(c.g[k + 1]));
      } else if (!happy) { // PETSc keeps the norm of before
        now      = size;
        s.reason = SPMV_KRYLOV_NULL;
      }
      c.scale[k + 1] = norm > 0 ? 1 / norm : 0; // PETSc leaves a zero vector as it is, too
      s.norms        = k + 1;
      ReportNorm(k + 1, now, c.solve.progress);
      if (s.reason == SPMV_KRYLOV_ITERATING)
        s.reason = Converged(c.solve.until, c.solve.norm == SPMV_KRYLOV_NORM_NONE, c.in.before + k + 1, now);
      if (happy && s.reason == SPMV_KRYLOV_ITERATING) s.reason = SPMV_KRYLOV_HAPPY;
      if (s.reason == SPMV_KRYLOV_ITERATING) s.its++;
    }
    *c.solve.state = s;
    ReportStatus(s, c.solve.progress);
  }
  __syncthreads();
  for (int j = (int)threadIdx.x; j <= k; j += (int)blockDim.x) column[j] = h[j];
}

// BLOCKS: w is the preconditioner on the left, which has blocks, times `product`; otherwise the product is in w
template <bool BLOCKS>
SPMV_PRODUCTS_KERNEL gmres_project(StepArgs g, bool, const Scalar *product, const Scalar *, Scalar *w)
{
  const Scalar *d = BLOCKS || (g.c.left && !g.again) ? g.c.solve.d : nullptr;
  AwaitPrevious();
  LetNextBegin();
  if (blockIdx.x == g.basis.blocks) return AddColumn(g.c, g.k - 1, AddSquares(g.basis.squares, g.basis.updates));
  const int reason = LoadOrdered(&g.c.solve.state->reason);
  InnerProducts(
      g.basis,
      [&](unsigned i) {
        if (BLOCKS) {
          const unsigned bs = (unsigned)g.c.solve.bs, first = i / bs * bs;
          Scalar         z = Num::zero();
          for (unsigned j = 0; j < bs; j++)
            z = Num::fma(d[(size_t)j * (size_t)g.basis.n + i], LoadOrdered(product + first + j), z);
          return w[i] = z;
        }
        const Scalar a = LoadOrdered(w + i);
        return d ? Multiplied(d[i], a) : a;
      },
      [&] { return reason == SPMV_KRYLOV_ITERATING; });
}

struct SumArgs {
  CycleArgs c;
  Basis     basis;
  int       products, column; // number of inner products; the column to add, or -1
};
enum SumPart { OWN = 1, ALL_RANKS = 2 };

// Adds the sums of the thread blocks (OWN), then those of all ranks, if the caller has not done that, and the column
// (ALL_RANKS). By one thread block
__global__ void __launch_bounds__(ORTHOG_BLOCK) gmres_sum(SumArgs g, int part, const Scalar *, const Scalar *, Scalar *)
{
  const Ranks &ranks = g.c.solve.ranks;
  const int    reals = g.products * REALS;
  AwaitPrevious();
  if (LoadOrdered(&g.c.solve.state->reason) != SPMV_KRYLOV_ITERATING) return;
  if (part & OWN) {
    for (Basis b = g.basis; b.first < g.products; b.first += ORTHOG_CHUNK) {
      b.count = min(ORTHOG_CHUNK, g.products - b.first);
      AddProducts(b, [&](int j, Scalar sum) { Write((Scalar *)ranks.sums + b.first + j, sum); });
    }
    if (g.column >= 0) {
      const PetscReal square = AddSquares(g.basis.squares, g.basis.updates);
      if (threadIdx.x == 0) ranks.sums[reals] = square;
    }
    __syncthreads();
  }
  if (!(part & ALL_RANKS)) return;
  if (!ranks.outside && ranks.size > 1) AddRanks(ranks, ranks.sums, reals + (g.column >= 0));
  LetNextBegin(); // not before, so that the next kernel does not take the place of another rank's
  if (g.column >= 0) AddColumn(g.c, g.column, ranks.sums[reals]);
}

SPMV_SUBTRACT_KERNEL gmres_subtract(StepArgs g, bool, const Scalar *, const Scalar *, Scalar *w)
{
  __shared__ Scalar h[ORTHOG_CHUNK];
  const bool        start = !g.again && g.basis.first == 0; // w is still the product
  const Scalar     *d     = g.c.solve.d;
  const bool        left = start && g.c.left, right = g.basis.last && g.c.right;
  AwaitPrevious();
  LetNextBegin();
  const int       reason = LoadOrdered(&g.c.solve.state->reason);
  const PetscReal of     = g.again ? PetscReal(1) : ScaleOf(g.c, g.k);
  const auto      put    = [&](int j, Scalar sum) {
    const PetscReal scale  = ScaleOf(g.c, g.basis.first + j);
    const Scalar    mine   = Scaled(of * scale, sum);
    Scalar         *column = g.c.r + (size_t)g.k * (size_t)(g.c.most + 2) + g.basis.first + j;
    h[j]                   = Scaled(scale, mine);
    if (blockIdx.x == 0 && reason == SPMV_KRYLOV_ITERATING) *column = g.again ? Num::add(*column, mine) : mine;
  };
  if (!g.c.several)
    AddProducts(g.basis, put);
  else if ((int)threadIdx.x < g.basis.count)
    put((int)threadIdx.x, Read((const Scalar *)g.c.solve.ranks.sums + g.basis.first + threadIdx.x));
  __syncthreads();
  if (reason != SPMV_KRYLOV_ITERATING) return;
  Subtract(
      g.basis, h,
      [&](unsigned i) {
        const Scalar a = w[i];
        return start ? Scaled(of, left ? Multiplied(d[i], a) : a) : a;
      },
      [&](unsigned i, bool in, Scalar a) {
        if (in) w[i] = a;
        if (right) a = Preconditioned(g.c, i, in, a);
        if (in && right) g.c.in.next[i] = a;
      });
}

SPMV_SUBTRACT_KERNEL gmres_normalize(CycleArgs c, int k, const Scalar *, const Scalar *, Scalar *w)
{
  __shared__ State s;
  if (!BeginKernel(c.solve, s)) return;
  const PetscReal scale = c.scale[k + 1];
  for (unsigned i = blockIdx.x * ORTHOG_BLOCK + threadIdx.x; i < (unsigned)c.solve.n; i += gridDim.x * ORTHOG_BLOCK)
    w[i] = Scaled(scale, w[i]);
}

// Back substitution by one thread block, with a thread for each row. h becomes minus what is added of each vector
__global__ void __launch_bounds__(SPMV_GMRES_MOST)
    gmres_solve(CycleArgs c, int k, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ Scalar known;
  __shared__ bool   singular;
  const int         row = (int)threadIdx.x;
  AwaitPrevious();
  const auto entry = [&](int j) {
    return row <= j && j >= 0 ? LoadOrdered(c.r + (size_t)j * (size_t)(c.most + 2) + row) : Num::zero();
  };
  Scalar y = row < k ? LoadOrdered(c.g + row) : Num::zero(), mine = entry(k - 1);
  if (row == 0) singular = false;
  __syncthreads();
  for (int j = k - 1; j >= 0; j--) {
    const Scalar next = entry(j - 1);
    if (row == j) {
      const bool zero = IsZero(mine), skip = zero && c.in.flexible && j == k - 1; // a last vector without effect
      if (zero && !skip) singular = true;
      known = y = skip ? Num::zero() : Divided(y, mine);
    }
    __syncthreads();
    if (row < j) y = Num::fma(Negated(known), mine, y);
    mine = next;
    __syncthreads();
  }
  if (row < k) c.h[row] = singular ? Num::zero() : Negated(Scaled(ScaleOf(c, row), y));
  if (row == 0) *c.singular = singular;
}

SPMV_SUBTRACT_KERNEL gmres_correct(StepArgs g, bool set, const Scalar *, const Scalar *, Scalar *x)
{
  __shared__ Scalar h[ORTHOG_CHUNK];
  AwaitPrevious();
  LetNextBegin();
  if ((int)threadIdx.x < g.basis.count) h[threadIdx.x] = LoadOrdered(g.c.h + g.basis.first + threadIdx.x);
  __syncthreads();
  const bool right = g.c.right, zero = right || (set && g.basis.first == 0);
  Subtract(
      g.basis, h, [&](unsigned i) { return zero ? Num::zero() : Read(x + i); },
      [&](unsigned i, bool in, Scalar a) {
        if (right) a = Preconditioned(g.c, i, in, a);
        if (in) Write(x + i, right ? Num::add(Read(x + i), a) : a);
      });
}

} // namespace
} // namespace spmv

struct _n_SpMVCudaGMRES {
  SpMVCudaKrylov   krylov;
  Orthogonalizer   orthog;
  Array<Scalar>    r, numbers; // cosine, sine, g, h
  Array<PetscReal> scale;
  Array<unsigned>  singular;
  CycleArgs        c       = {};
  bool             pending = false; // the last column is still to be added

  cudaError_t Create(SpMVCudaKrylov with, int most)
  {
    const size_t room = (size_t)most + 2;
    krylov            = with;
    SPMV_TRY(orthog.Create());
    SPMV_TRY(orthog.Reserve(most + 1));
    SPMV_TRY(r.Alloc(room * room));
    SPMV_TRY(numbers.Alloc(4 * room));
    SPMV_TRY(scale.Alloc(room));
    SPMV_TRY(singular.Alloc(1));
    c.most     = most;
    c.r        = r;
    c.cosine   = numbers;
    c.sine     = c.cosine + room;
    c.g        = c.sine + room;
    c.h        = c.g + room;
    c.scale    = scale;
    c.singular = singular;
    return cudaSuccess;
  }
  // Calls launch(basis) for the kernels that update v[k+1] or the solution
  template <class F> cudaError_t ForUpdates(int count, PetscScalar *const v[], F launch)
  {
    const bool blocks = c.right && c.solve.pc == SPMV_KRYLOV_PC_BLOCKS;
    return orthog.ForChunks(c.solve.n, count, v, [&](Basis g) {
      if (blocks) g.rows = ORTHOG_BLOCK / c.solve.bs * c.solve.bs; // none is in two thread blocks
      return launch(g);
    });
  }
  // Adds the inner products with the first vectors over all thread blocks and ranks, and a column unless it is negative
  cudaError_t Sum(int products, int column, cudaStream_t stream)
  {
    return orthog.ForChunks(c.solve.n, 0, nullptr, [&](const Basis &g) {
      const SumArgs args   = {c, g, products, column};
      const auto    launch = [&](int part) {
        return Launch<gmres_sum>(1, ORTHOG_BLOCK, args, stream, part, {}, column < 0 ? 0 : ColumnBytes(column));
      };
      if (!krylov->allreduce) return launch(OWN | ALL_RANKS);
      SPMV_TRY(launch(OWN));
      SPMV_TRY(krylov->allreduce(krylov->ctx, krylov->sums, products * REALS + (column >= 0), stream));
      return column < 0 ? cudaSuccess : launch(ALL_RANKS);
    });
  }
  // Makes v[k+1] orthogonal to the vectors before it
  cudaError_t Orthogonalize(int k, PetscScalar *const v[], bool second, cudaStream_t stream)
  {
    const bool add    = pending && !second; // the last column
    const bool blocks = c.in.left && c.solve.pc == SPMV_KRYLOV_PC_BLOCKS && !second;
    SPMV_TRY(orthog.ForChunks(c.solve.n, k + 1, v, [&](const Basis &g) {
      const StepArgs args  = {c, g, k, second};
      const bool     block = add && !c.several && g.first == 0; // one more
      const auto     kernel =
          blocks && g.first == 0 ? Launch<gmres_project<true>, StepArgs> : Launch<gmres_project<false>, StepArgs>;
      return kernel(g.blocks + block, ORTHOG_BLOCK, args, stream, false, {c.in.product, nullptr, (Scalar *)v[k + 1]},
                    block ? ColumnBytes(k - 1) : 0);
    }));
    if (c.several) SPMV_TRY(Sum(k + 1, add ? k - 1 : -1, stream));
    pending = true;
    return ForUpdates(k + 1, v, [&](const Basis &g) {
      const StepArgs args = {c, g, k, second};
      return Launch<gmres_subtract>(g.updates, ORTHOG_BLOCK, args, stream, false,
                                    {nullptr, nullptr, (Scalar *)v[k + 1]});
    });
  }
};

cudaError_t SpMVCudaGMRESCreate(SpMVCudaKrylov krylov, int most, SpMVCudaGMRES *gmres)
{
  *gmres = nullptr;
  if (most > SPMV_GMRES_MOST) return cudaErrorNotSupported;
  return Guarded([=] {
    std::unique_ptr<_n_SpMVCudaGMRES> made(new _n_SpMVCudaGMRES);
    SPMV_TRY(made->Create(krylov, most));
    *gmres = made.release();
    return cudaSuccess;
  });
}

cudaError_t SpMVCudaGMRESDestroy(SpMVCudaGMRES *gmres)
{
  delete *gmres;
  *gmres = nullptr;
  return cudaSuccess;
}

cudaError_t SpMVCudaGMRESBegin(SpMVCudaGMRES gmres, const SpMVKrylovSolve *solve, const SpMVCudaGMRESCycle *cycle,
                               cudaStream_t stream)
{
  const bool points = solve->pc == SPMV_KRYLOV_PC_POINTS, blocks = solve->pc == SPMV_KRYLOV_PC_BLOCKS;
  CycleArgs &c = gmres->c;
  c.solve      = {*solve};
  c.in         = *cycle;
  c.left       = points && cycle->left;
  c.right      = (points || blocks) && !cycle->left;
  SPMV_TRY(gmres->krylov->Prepare(c.solve, stream));
  c.several      = c.solve.ranks.outside || c.solve.ranks.size > 1;
  gmres->pending = false;
  __atomic_store_n(&c.solve.progress->status, PackStatus(SPMV_KRYLOV_ITERATING, 1, 0), __ATOMIC_RELEASE);
  return Launch<gmres_begin>(1, 1, c, stream);
}

cudaError_t SpMVCudaGMRESStep(SpMVCudaGMRES gmres, int k, PetscScalar *const v[], cudaStream_t stream)
{
  SPMV_TRY(gmres->Orthogonalize(k, v, false, stream));
  return gmres->c.in.again ? gmres->Orthogonalize(k, v, true, stream) : cudaSuccess;
}

cudaError_t SpMVCudaGMRESFinish(SpMVCudaGMRES gmres, int k, PetscScalar *const v[], cudaStream_t stream)
{
  gmres->pending = false;
  SPMV_TRY(gmres->Sum(0, k, stream));
  if (!gmres->c.in.normalized) return cudaSuccess;
  return gmres->orthog.ForChunks(gmres->c.solve.n, 0, nullptr, [&](const Basis &g) {
    return Launch<gmres_normalize>(g.updates, ORTHOG_BLOCK, gmres->c, stream, k,
                                   {nullptr, nullptr, (Scalar *)v[k + 1]});
  });
}

cudaError_t SpMVCudaGMRESSolve(SpMVCudaGMRES gmres, int k, cudaStream_t stream, PetscBool *singular)
{
  unsigned is = 0;
  SPMV_TRY(Launch<gmres_solve>(1, SPMV_GMRES_MOST, gmres->c, stream, k));
  if (!singular) return cudaSuccess;
  SPMV_TRY(Fetch(&is, (const unsigned *)gmres->singular, 1, stream));
  *singular = is ? PETSC_TRUE : PETSC_FALSE;
  return cudaSuccess;
}

cudaError_t SpMVCudaGMRESCorrect(SpMVCudaGMRES gmres, int k, PetscScalar *const v[], PetscBool set, PetscScalar *x,
                                 cudaStream_t stream)
{
  return gmres->ForUpdates(k, v, [&](const Basis &g) {
    return Launch<gmres_correct>(g.updates, ORTHOG_BLOCK, StepArgs{gmres->c, g}, stream, (bool)set,
                                 {nullptr, nullptr, (Scalar *)x});
  });
}
