/*
  GMRES. An iteration is the product and two kernels. The new column of the triangular matrix and the norm of the
  residual are computed in the same way as in PETSc's KSPGMRES, by one more thread block of the first kernel of the next
  iteration, or by gmres_finish().
*/
#include "gmres.h"
#include "orthog.cuh"

using namespace spmv;

namespace spmv {
namespace {

// What the kernels of a cycle share. r: the triangular matrix by columns, with leading dimension most + 2; column k is
// that of the Hessenberg matrix before its rotations are applied
struct CycleArgs {
  SolveArgs  solve;
  int        most, before;
  bool       points, right, normalized; // normalized: the caller has the vectors normalized, by gmres_normalize()
  PetscReal  haptol;
  Scalar    *r, *cosine, *sine, *g, *h; // h: what is subtracted, per vector
  PetscReal *scale;
  Scalar    *next;
};

struct StepArgs {
  CycleArgs c;
  Basis     basis;
  int       k;
  unsigned  grid;  // of gmres_subtract()
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
  return c.normalized ? PetscReal(1) : c.scale[j];
}

/*
  Adds column k, whose entry below the diagonal is the norm of v[k+1]: applies the rotations of the columns before it
  and determines its own, unless the solve has ended. By one thread block, with shared memory for three arrays of k + 2
  numbers
*/
__device__ void AddColumn(const CycleArgs &c, int k, const PetscReal *squares, unsigned grid)
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
  const PetscReal norm = sqrt(AddSquares(squares, grid)); // its last step waits for all threads
  if (threadIdx.x == 0 && c.solve.state->reason == SPMV_KRYLOV_ITERATING) {
    State s   = *c.solve.state;
    bool  bad = false;
    for (int j = 0; j <= k; j++) bad |= IsBad(h[j]);
    if (bad || IsBad(norm)) {
      End(s, bad ? SPMV_KRYLOV_NAN_DOT : SPMV_KRYLOV_NAN_NORM);
      ReportNorm(k + 1, norm, c.solve.progress);
    } else {
      Scalar below = Num::zero(), old = c.g[k];
      for (int j = 0; j < k; j++) {
        const Scalar t = h[j];
        h[j]           = Num::fma(Num::conj(cosine[j]), t, Multiplied(sine[j], h[j + 1]));
        h[j + 1]       = Num::fma(cosine[j], h[j + 1], Negated(Multiplied(sine[j], t)));
      }
      *(PetscReal *)&below   = norm;
      const PetscReal length = sqrt(Square(h[k]) + norm * norm), size = sqrt(Square(old)), bound = norm / size;
      const bool      happy = norm < (bound > c.haptol ? c.haptol : bound); // as in PETSc, also if it is NaN
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
      s.its          = k + 2;
      ReportNorm(k + 1, now, c.solve.progress);
      if (s.reason == SPMV_KRYLOV_ITERATING)
        s.reason = Converged(s.until, s.norm == SPMV_KRYLOV_NORM_NONE, c.before + k + 1, now);
      if (happy && s.reason == SPMV_KRYLOV_ITERATING) s.reason = SPMV_KRYLOV_HAPPY;
    }
    *c.solve.state = s;
    ReportStatus(s, c.solve.progress);
  }
  __syncthreads();
  for (int j = (int)threadIdx.x; j <= k; j += (int)blockDim.x) column[j] = h[j];
}

SPMV_PRODUCTS_KERNEL gmres_project(StepArgs g, bool, const Scalar *w, const Scalar *, Scalar *)
{
  const Scalar *d = g.c.points && !g.c.right && !g.again ? g.c.solve.d : nullptr;
  AwaitPrevious();
  if (g.c.solve.early) LetNextBegin();
  if (blockIdx.x == g.basis.blocks) return AddColumn(g.c, g.k - 1, g.basis.squares, g.grid);
  const int reason = LoadOrdered(&g.c.solve.state->reason);
  InnerProducts(
      g.basis,
      [&](unsigned i) {
        const Scalar a = LoadOrdered(w + i);
        return d ? Multiplied(d[i], a) : a;
      },
      [&] { return reason == SPMV_KRYLOV_ITERATING; });
}

SPMV_SUBTRACT_KERNEL gmres_subtract(StepArgs g, bool, const Scalar *, const Scalar *, Scalar *w)
{
  __shared__ Scalar h[ORTHOG_CHUNK];
  const bool        start = !g.again && g.basis.first == 0; // w is still the product
  const Scalar     *d     = g.c.points ? g.c.solve.d : nullptr;
  const bool        left = start && d && !g.c.right, right = g.basis.last && d && g.c.right;
  AwaitPrevious();
  if (g.c.solve.early) LetNextBegin();
  const int       reason = LoadOrdered(&g.c.solve.state->reason);
  const PetscReal of     = g.again ? PetscReal(1) : ScaleOf(g.c, g.k);
  AddProducts(g.basis, [&](int j, Scalar sum) {
    const PetscReal scale  = ScaleOf(g.c, g.basis.first + j);
    const Scalar    mine   = Scaled(of * scale, sum);
    Scalar         *column = g.c.r + (size_t)g.k * (size_t)(g.c.most + 2) + g.basis.first + j;
    h[j]                   = Scaled(scale, mine);
    if (blockIdx.x == 0 && reason == SPMV_KRYLOV_ITERATING) *column = g.again ? Num::add(*column, mine) : mine;
  });
  __syncthreads();
  if (reason != SPMV_KRYLOV_ITERATING) return;
  Subtract(
      g.basis, h,
      [&](unsigned i) {
        const Scalar a = w[i];
        return start ? Scaled(of, left ? Multiplied(d[i], a) : a) : a;
      },
      [&](unsigned i, Scalar a) {
        w[i] = a;
        if (right) g.c.next[i] = Multiplied(d[i], a);
      });
}

// Adds the last column of a cycle, or each one if the host waits for it
__global__ void __launch_bounds__(ORTHOG_BLOCK) gmres_finish(StepArgs g, bool, const Scalar *, const Scalar *, Scalar *)
{
  AwaitPrevious();
  AddColumn(g.c, g.k, g.basis.squares, g.grid);
}

SPMV_SUBTRACT_KERNEL gmres_normalize(StepArgs g, bool, const Scalar *, const Scalar *, Scalar *w)
{
  __shared__ State s;
  if (!BeginKernel(g.c.solve, s)) return;
  const PetscReal scale = g.c.scale[g.k + 1];
  for (unsigned i = blockIdx.x * ORTHOG_BLOCK + threadIdx.x; i < (unsigned)g.c.solve.n; i += gridDim.x * ORTHOG_BLOCK)
    w[i] = Scaled(scale, w[i]);
}

struct SolveTriangle {
  CycleArgs c;
  int       k;
  unsigned *singular;
};

// Back substitution by one thread block, with a thread for each row. h becomes minus what is added of each vector
__global__ void __launch_bounds__(SPMV_GMRES_MOST)
    gmres_solve(SolveTriangle g, bool, const Scalar *, const Scalar *, Scalar *)
{
  __shared__ Scalar known;
  __shared__ bool   singular;
  const int         row = (int)threadIdx.x;
  AwaitPrevious();
  const auto entry = [&](int j) {
    return row <= j && j >= 0 ? LoadOrdered(g.c.r + (size_t)j * (size_t)(g.c.most + 2) + row) : Num::zero();
  };
  Scalar y = row < g.k ? LoadOrdered(g.c.g + row) : Num::zero(), mine = entry(g.k - 1);
  if (row == 0) singular = false;
  __syncthreads();
  for (int j = g.k - 1; j >= 0; j--) {
    const Scalar next = entry(j - 1);
    if (row == j) {
      if (IsZero(mine)) singular = true;
      known = y = Divided(y, mine);
    }
    __syncthreads();
    if (row < j) y = Num::fma(Negated(known), mine, y);
    mine = next;
    __syncthreads();
  }
  if (row < g.k) g.c.h[row] = singular ? Num::zero() : Negated(Scaled(ScaleOf(g.c, row), y));
  if (row == 0) *g.singular = singular;
}

struct CorrectArgs {
  CycleArgs c;
  Basis     basis;
  bool      set;
};

SPMV_SUBTRACT_KERNEL gmres_correct(CorrectArgs g, bool, const Scalar *, const Scalar *, Scalar *x)
{
  __shared__ Scalar h[ORTHOG_CHUNK];
  AwaitPrevious();
  if (g.c.solve.early) LetNextBegin();
  if ((int)threadIdx.x < g.basis.count) h[threadIdx.x] = LoadOrdered(g.c.h + g.basis.first + threadIdx.x);
  __syncthreads();
  const bool    scaled = g.c.points && g.c.right, zero = scaled || (g.set && g.basis.first == 0);
  const Scalar *d     = g.c.solve.d;
  const bool    first = g.set && g.basis.first == 0;
  Subtract(
      g.basis, h, [&](unsigned i) { return zero ? Num::zero() : x[i]; },
      [&](unsigned i, Scalar a) { x[i] = scaled ? Num::fma(d[i], a, first ? Num::zero() : x[i]) : a; });
}

} // namespace
} // namespace spmv

struct _n_SpMVCudaGMRES {
  SpMVCudaKrylov   krylov;
  Orthogonalizer   orthog;
  Array<Scalar>    r, numbers; // cosine, sine, g, h
  Array<PetscReal> scale;
  Array<unsigned>  singular;
  CycleArgs        c     = {};
  bool             again = false, pending = false; // pending: the last column is still to be added
  Kernel           project, subtract, finish, normalize, solve, correct;

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
    c.most   = most;
    c.r      = r;
    c.cosine = numbers;
    c.sine   = c.cosine + room;
    c.g      = c.sine + room;
    c.h      = c.g + room;
    c.scale  = scale;
    project.Choose((const void *)gmres_project);
    finish.Choose((const void *)gmres_finish);
    subtract.Choose((const void *)gmres_subtract);
    normalize.Choose((const void *)gmres_normalize);
    solve.Choose((const void *)gmres_solve);
    correct.Choose((const void *)gmres_correct);
    return cudaSuccess;
  }
  // Makes v[k+1] orthogonal to the vectors before it
  cudaError_t Orthogonalize(int k, PetscScalar *const v[], bool second, cudaStream_t stream)
  {
    const int      n    = c.solve.n;
    const unsigned grid = orthog.SubtractGrid(n);
    SPMV_TRY(orthog.ForChunks(n, k + 1, v, [&](const Basis &g) {
      const StepArgs args = {c, g, k, grid, second};
      const bool     add  = pending && !second && g.first == 0; // by one more thread block
      return project.LaunchWith(g.blocks + add, ORTHOG_BLOCK, &args, false,
                                {(const Scalar *)v[k + 1], nullptr, nullptr}, stream,
                                add ? 3 * sizeof(Scalar) * (size_t)(k + 1) : 0, true);
    }));
    pending = true;
    return orthog.ForChunks(n, k + 1, v, [&](const Basis &g) {
      const StepArgs args = {c, g, k, grid, second};
      return subtract.Launch(grid, ORTHOG_BLOCK, args, false, {nullptr, nullptr, (Scalar *)v[k + 1]}, stream);
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

cudaError_t SpMVCudaGMRESBegin(SpMVCudaGMRES gmres, const SpMVCudaGMRESCycle *cycle, cudaStream_t stream)
{
  if (cycle->n > SPMVCUDA_MAX_SIZE || cycle->pc == SPMV_KRYLOV_PC_BLOCKS) return cudaErrorNotSupported;
  CycleArgs      &c = gmres->c;
  State           first{};
  const PetscReal one[2] = {1 / cycle->beta, cycle->beta};
  Scalar          beta   = {};
  c.solve.n              = cycle->n;
  c.solve.early          = cycle->early;
  c.solve.pc             = cycle->pc;
  c.solve.norm           = cycle->norm;
  c.solve.d              = (const Scalar *)cycle->d;
  c.points               = cycle->pc == SPMV_KRYLOV_PC_POINTS;
  c.right                = !cycle->left;
  c.normalized           = cycle->normalized;
  c.haptol               = cycle->haptol;
  c.before               = cycle->before;
  c.next                 = (Scalar *)cycle->next;
  gmres->again           = cycle->again;
  first.until            = cycle->until;
  first.its              = 1;
  memcpy(&beta, &one[1], sizeof(PetscReal));
  SPMV_TRY(gmres->krylov->Begin(c.solve, first, stream));
  gmres->pending = false;
  __atomic_store_n(&c.solve.progress->status, PackStatus(SPMV_KRYLOV_ITERATING, 1, 0), __ATOMIC_RELEASE);
  SPMV_TRY(cudaMemcpyAsync(c.scale, one, sizeof(PetscReal), cudaMemcpyHostToDevice, stream));
  return cudaMemcpyAsync(c.g, &beta, sizeof(beta), cudaMemcpyHostToDevice, stream);
}

cudaError_t SpMVCudaGMRESStep(SpMVCudaGMRES gmres, int k, PetscScalar *const v[], cudaStream_t stream)
{
  SPMV_TRY(gmres->Orthogonalize(k, v, false, stream));
  return gmres->again ? gmres->Orthogonalize(k, v, true, stream) : cudaSuccess;
}

cudaError_t SpMVCudaGMRESFinish(SpMVCudaGMRES gmres, int k, PetscScalar *const v[], cudaStream_t stream)
{
  const int n    = gmres->c.solve.n;
  gmres->pending = false;
  return gmres->orthog.ForChunks(n, 0, v, [&](const Basis &g) {
    const StepArgs args = {gmres->c, g, k, gmres->orthog.SubtractGrid(n), false};
    SPMV_TRY(gmres->finish.LaunchWith(1, ORTHOG_BLOCK, &args, false, {}, stream, 3 * sizeof(Scalar) * (size_t)(k + 2),
                                      true));
    if (!gmres->c.normalized) return cudaSuccess;
    return gmres->normalize.Launch(args.grid, ORTHOG_BLOCK, args, false, {nullptr, nullptr, (Scalar *)v[k + 1]},
                                   stream);
  });
}

cudaError_t SpMVCudaGMRESSolve(SpMVCudaGMRES gmres, int k, cudaStream_t stream, PetscBool *singular)
{
  const SolveTriangle args = {gmres->c, k, gmres->singular};
  unsigned            is   = 0;
  SPMV_TRY(gmres->solve.Launch(1, SPMV_GMRES_MOST, args, false, {}, stream));
  SPMV_TRY(Fetch(&is, (const unsigned *)gmres->singular, 1, stream));
  *singular = is ? PETSC_TRUE : PETSC_FALSE;
  return cudaSuccess;
}

cudaError_t SpMVCudaGMRESCorrect(SpMVCudaGMRES gmres, int k, PetscScalar *const v[], PetscBool set, PetscScalar *x,
                                 cudaStream_t stream)
{
  return gmres->orthog.ForChunks(gmres->c.solve.n, k, v, [&](const Basis &g) {
    const CorrectArgs args = {gmres->c, g, (bool)set};
    return gmres->correct.Launch(gmres->orthog.SubtractGrid(g.n), ORTHOG_BLOCK, args, false,
                                 {nullptr, nullptr, (Scalar *)x}, stream);
  });
}
