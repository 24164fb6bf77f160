static char help[] =
    "Solid fuel ignition (Bratu) in three dimensions by Newton-Krylov, once for each requested matrix type.\n\
  -types <aij,sellp,evchyb> : matrix types to run, the others are compared with the first; on a GPU <aijcusparse,sellp,evchyb,sellp:devicecg>.\n\
                              A KSP type may follow: sellp:devicecg is KSPCG with its iterations on the GPU, sellp:devicebcgs KSPBCGS\n\
  -n <100>                  : grid points in each direction (or -da_grid_x, -da_grid_y, -da_grid_z)\n\
  -par <6>                  : strength lambda of the nonlinearity, 0 < lambda <= 6.81\n\
  and the options of SNES, KSP and PC; the defaults are -ksp_type cg -pc_type none\n\n";

/*
   Solves -Laplacian u = lambda exp(u) on the unit cube, u = 0 on its boundary, with the discretisation, the boundary
   rows, the scaling and the initial guess of PETSc's src/snes/tutorials/ex14.c: 7 points, a DMDA. The iteration counts
   are therefore those of ex14, and the only thing that changes from one run of the table to the next is the type of the
   Jacobian.

   Usage:
     mpiexec -n 2 ./bratu                                           # 100^3, three types
     mpiexec -n 2 ./bratu -n 200 -ksp_rtol 1e-5                     # the size of the papers on SELL-P and EVC-HYB
     mpiexec -n 2 ./bratu -types aij,aijperm,sell,sellp,evchyb -pc_type jacobi
     mpiexec -n 2 ./bratu -ksp_type gmres -pc_type bjacobi

   The whole solve runs where the matrix is stored. With a PETSc that has CUDA and a type that stores its matrices on
   the GPU, the vectors are PETSc's CUDA vectors, kernels evaluate initial guess, residual and Jacobian (bratu_cuda.cu),
   and the values of the Jacobian go from a device array to the matrix (MatSetValuesCOO()). Only dot products and values
   for other processes reach the host. On the host, the same calls use host arrays. The formulas at a grid point are
   written once, in bratu.h.

   Is CG allowed? The matrix is not symmetric: an interior row refers to its boundary neighbors, but a boundary row is a
   row of the identity. However, boundary values start at zero and their residual is zero. So without a preconditioner
   (or with one that keeps zeros on the boundary, such as Jacobi or ILU), every Krylov vector vanishes on the boundary.
   For such vectors the matrix is symmetric, which CheckSymmetry() verifies on the assembled matrix, and positive
   definite on the lower branch of solutions. ICC is not such a preconditioner, because it reads only one triangle: use
   GMRES with it.

   The exit status is nonzero if a run does not converge or if the solutions of two types differ by more than their
   residuals allow.
*/

#include <petscdevice.h>
#include <petscdm.h>
#include <petscdmda.h>
#include <petscsnes.h>
#include "bratu.h"
#include "example.h"

/*
   The allowed difference of two approximate solutions. F(u) - F(v) = J (u - v) with J evaluated at a point between
   them, so |u - v| <= (|F(u)| + |F(v)|) / mu, where mu is the smallest eigenvalue of J: at least the Laplacian's, which
   is known, minus the largest exponential. The last term is the rounding error of F itself.
*/
static PetscReal AllowedDifference(const Bratu *p, PetscReal fu, PetscReal fv, PetscReal umax)
{
  PetscReal mu = -p->lamvol * PetscExpReal(umax), points = (PetscReal)p->M[0] * p->M[1] * p->M[2], rounding;
  PetscInt  d;

  for (d = 0; d < 3; d++) mu += p->c[d] * 4.0 * PetscSqr(PetscSinReal(0.5 * PETSC_PI * p->h[d]));
  if (mu <= 0.0) return 0.0; /* no bound: on the upper branch, or beyond the last solution */
  rounding = 4.0 * (p->c[0] + p->c[1] + p->c[2]) * umax * PETSC_MACHINE_EPSILON * PetscSqrtReal(points);
  return (fu + fv + rounding) / mu;
}

/* ---------------------------------------------------------------- the problem on the grid */

typedef struct {
  Bratu    bratu;
  BratuBox box;
  /* of the Jacobian, BRATU_STENCIL per row; a vector, so that PETSc stores them where it stores the matrix */
  Vec       values;
  PetscBool coo; /* the matrix is filled by MatSetValuesCOO() */
} Problem;

static PetscErrorCode OnDevice(Vec v, PetscBool *device)
{
  PetscBool bound;

  PetscFunctionBeginUser;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v, device, VECSEQCUDA, VECMPICUDA, ""));
  PetscCall(VecBoundToCPU(v, &bound));
  if (bound) *device = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Waits for the GPU, if one works on v, so that the following work is timed separately: once for each function and each
   Jacobian */
static PetscErrorCode Synchronize(Vec v)
{
  PetscBool device;

  PetscFunctionBeginUser;
  PetscCall(OnDevice(v, &device));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (device) PetscCall(BratuSynchronizeCUDA());
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void EvaluateHost(BratuPart part, const Bratu *p, const BratuBox *b, const PetscScalar *in, PetscScalar *out)
{
  PetscInt i, j, k;

  for (k = b->s[2]; k < b->s[2] + b->m[2]; k++) {
    for (j = b->s[1]; j < b->s[1] + b->m[1]; j++) {
      for (i = b->s[0]; i < b->s[0] + b->m[0]; i++) BratuEvaluateAt(part, p, b, in, out, i, j, k);
    }
  }
}

/* Evaluates one part of the problem at all points of this process, on the GPU if both vectors are there */
static PetscErrorCode Evaluate(BratuPart part, const Problem *problem, Vec in, Vec out)
{
  const PetscScalar *x = NULL;
  PetscScalar       *f;
  PetscBool          device, also = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(OnDevice(out, &device));
  if (in) PetscCall(OnDevice(in, &also));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (device && also) {
    if (in) PetscCall(VecGetArrayReadAndMemType(in, &x, NULL));
    PetscCall(VecGetArrayWriteAndMemType(out, &f, NULL));
    PetscCall(BratuEvaluateCUDA(part, &problem->bratu, &problem->box, x, f));
    PetscCall(VecRestoreArrayWriteAndMemType(out, &f));
    if (in) PetscCall(VecRestoreArrayReadAndMemType(in, &x));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  if (in) PetscCall(VecGetArrayRead(in, &x));
  PetscCall(VecGetArrayWrite(out, &f));
  switch (part) { /* a constant in each call, so that there is no branch in the loops */
  case BRATU_GUESS: EvaluateHost(BRATU_GUESS, &problem->bratu, &problem->box, x, f); break;
  case BRATU_FUNCTION: EvaluateHost(BRATU_FUNCTION, &problem->bratu, &problem->box, x, f); break;
  case BRATU_JACOBIAN: EvaluateHost(BRATU_JACOBIAN, &problem->bratu, &problem->box, x, f); break;
  }
  PetscCall(VecRestoreArrayWrite(out, &f));
  if (in) PetscCall(VecRestoreArrayRead(in, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FormFunction(SNES snes, Vec X, Vec F, void *ctx)
{
  DM  da;
  Vec L;

  PetscFunctionBeginUser;
  PetscCall(SNESGetDM(snes, &da));
  PetscCall(DMGetLocalVector(da, &L));
  PetscCall(DMGlobalToLocalBegin(da, X, INSERT_VALUES, L));
  PetscCall(DMGlobalToLocalEnd(da, X, INSERT_VALUES, L));
  PetscCall(Evaluate(BRATU_FUNCTION, (const Problem *)ctx, L, F));
  PetscCall(DMRestoreLocalVector(da, &L));
  PetscCall(Synchronize(F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Row and column of each value, on the GPU if the matrix is there */
typedef struct {
  PetscBool device;
  PetscInt *rows, *cols;
} Indices;

static PetscErrorCode IndicesCreate(const Problem *problem, Mat J, Indices *indices)
{
  const BratuBox        *b = &problem->box;
  ISLocalToGlobalMapping mapping;
  const PetscInt        *global;
  PetscInt               i, j, k;
  const size_t           n = (size_t)BRATU_STENCIL * b->m[0] * b->m[1] * b->m[2];

  PetscFunctionBeginUser;
  indices->device = PETSC_FALSE;
  PetscCall(MatGetLocalToGlobalMapping(J, &mapping, NULL));
  PetscCall(ISLocalToGlobalMappingGetIndices(mapping, &global));
#if defined(PETSCSPMV_HAVE_CUDA)
  {
    const char *format;
    VecType     vectype;

    PetscCall(PetscSpMVGetFormat(J, &format));
    PetscCall(MatGetVecType(J, &vectype));
    PetscCall(PetscStrcmp(vectype, VECCUDA, &indices->device));
    if (indices->device)
      PetscCall(BratuIndicesCUDA(&problem->bratu, b, global, format ? -1 : 0, &indices->rows, &indices->cols));
  }
#endif
  if (!indices->device) {
    PetscCall(PetscMalloc2(n, &indices->rows, n, &indices->cols));
    for (k = b->s[2]; k < b->s[2] + b->m[2]; k++) {
      for (j = b->s[1]; j < b->s[1] + b->m[1]; j++) {
        for (i = b->s[0]; i < b->s[0] + b->m[0]; i++)
          BratuIndicesAt(&problem->bratu, b, global, 0, indices->rows, indices->cols, i, j, k);
      }
    }
  }
  PetscCall(ISLocalToGlobalMappingRestoreIndices(mapping, &global));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode IndicesDestroy(Indices *indices)
{
  PetscFunctionBeginUser;
#if defined(PETSCSPMV_HAVE_CUDA)
  if (indices->device) {
    PetscCall(BratuFreeCUDA(indices->rows));
    PetscCall(BratuFreeCUDA(indices->cols));
  }
#endif
  if (!indices->device) PetscCall(PetscFree2(indices->rows, indices->cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   Creates the matrix. Its pattern is given by the rows and columns of the values that FormJacobian() computes. It is
   created here because DMCreateMatrix() would first preallocate it in its own way. The pattern is the same, so boundary
   rows have zeros for the neighbors that exist. A neighbor that does not exist becomes a second entry on the diagonal
   with value zero, because values at the same position are summed. So every row has the same number of values, and rows
   ascend, which is best for AIJ's MatSetPreallocationCOO(); it would have to sort out entries with negative indices.
   Our types on a GPU skip such entries at no cost. Types that PETSc cannot fill this way (sell) get their values row by
   row. seconds: the time until the indices are ready, and the time after that.
*/
static PetscErrorCode CreateJacobian(DM da, MatType type, Problem *problem, Mat *J, double seconds[2])
{
  const BratuBox        *b = &problem->box;
  ISLocalToGlobalMapping mapping;
  const PetscInt         points                                  = b->m[0] * b->m[1] * b->m[2];
  PetscErrorCode (*coo)(Mat, PetscCount, PetscInt[], PetscInt[]) = NULL;
  Indices        indices;
  PetscLogDouble t[3];

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&t[0]));
  t[1] = t[0];
  PetscCall(MatCreate(PetscObjectComm((PetscObject)da), J));
  PetscCall(MatSetSizes(*J, points, points, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(*J, type));
  PetscCall(PetscObjectQueryFunction((PetscObject)*J, "MatSetPreallocationCOO_C", &coo));
  problem->coo = coo ? PETSC_TRUE : PETSC_FALSE;
  if (!coo) {
    PetscCall(MatDestroy(J));
    PetscCall(DMCreateMatrix(da, J));
  } else {
    PetscCall(MatSetFromOptions(*J));
    PetscCall(DMGetLocalToGlobalMapping(da, &mapping));
    PetscCall(MatSetLocalToGlobalMapping(*J, mapping, mapping));
    PetscCall(IndicesCreate(problem, *J, &indices));
    PetscCall(PetscTime(&t[1]));
    PetscCall(MatSetPreallocationCOO(*J, BRATU_STENCIL * (PetscCount)points, indices.rows, indices.cols));
    PetscCall(IndicesDestroy(&indices));
  }
  PetscCall(PetscTime(&t[2]));
  for (int k = 0; k < 2; k++) seconds[k] = t[k + 1] - t[k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FormJacobian(SNES snes, Vec X, Mat J, Mat P, void *ctx)
{
  const Problem     *problem = (const Problem *)ctx;
  const BratuBox    *b       = &problem->box;
  const PetscScalar *v, *row;
  PetscInt           cols[BRATU_STENCIL], i, j, k;

  PetscFunctionBeginUser;
  /* the derivative needs only the point itself, and no ghost points */
  PetscCall(Evaluate(BRATU_JACOBIAN, problem, X, problem->values));
  if (problem->coo) {
    PetscCall(VecGetArrayReadAndMemType(problem->values, &v, NULL));
    PetscCall(MatSetValuesCOO(P, v, INSERT_VALUES));
    PetscCall(VecRestoreArrayReadAndMemType(problem->values, &v));
  } else {
    PetscCall(VecGetArrayRead(problem->values, &v));
    for (row = v, k = b->s[2]; k < b->s[2] + b->m[2]; k++) {
      for (j = b->s[1]; j < b->s[1] + b->m[1]; j++) {
        for (i = b->s[0]; i < b->s[0] + b->m[0]; i++, row += BRATU_STENCIL) {
          BratuColumns(&problem->bratu, b, i, j, k, cols);
          PetscCall(MatSetValuesLocal(P, 1, &cols[BRATU_SELF], BRATU_STENCIL, cols, row, INSERT_VALUES));
        }
      }
    }
    PetscCall(VecRestoreArrayRead(problem->values, &v));
    PetscCall(MatAssemblyBegin(P, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(P, MAT_FINAL_ASSEMBLY));
  }
  if (J != P) { /* -snes_mf_operator */
    PetscCall(MatAssemblyBegin(J, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(J, MAT_FINAL_ASSEMBLY));
  }
  PetscCall(Synchronize(problem->values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Compares a.(J b) with b.(J a) for two vectors that vanish on the boundary, like all vectors in CG; see the top of the
   file */
static PetscErrorCode CheckSymmetry(DM da, const Bratu *p, Mat J)
{
  Vec         v[2], w;
  PetscScalar dot[2], ***a;
  PetscReal   norm[2];
  PetscInt    q, i, j, k, xs, ys, zs, xm, ym, zm;
  PetscRandom random;

  PetscFunctionBeginUser;
  PetscCall(PetscRandomCreate(PetscObjectComm((PetscObject)da), &random));
  PetscCall(DMDAGetCorners(da, &xs, &ys, &zs, &xm, &ym, &zm));
  PetscCall(DMCreateGlobalVector(da, &w));
  for (q = 0; q < 2; q++) {
    PetscCall(VecDuplicate(w, &v[q]));
    PetscCall(VecSetRandom(v[q], random));
    PetscCall(DMDAVecGetArray(da, v[q], &a));
    for (k = zs; k < zs + zm; k++) {
      for (j = ys; j < ys + ym; j++) {
        for (i = xs; i < xs + xm; i++) a[k][j][i] = BratuOnBoundary(p, i, j, k) ? 0.0 : PetscRealPart(a[k][j][i]);
      }
    }
    PetscCall(DMDAVecRestoreArray(da, v[q], &a));
  }
  for (q = 0; q < 2; q++) {
    PetscCall(MatMult(J, v[q], w));
    PetscCall(VecDot(w, v[1 - q], &dot[q]));
    PetscCall(VecNorm(v[q], NORM_2, &norm[q]));
  }
  /* 12 max(c) bounds the norm of J; the errors of the sums of a random vector are far smaller than the square root that
     is allowed here */
  PetscCheck(PetscAbsScalar(dot[0] - dot[1]) <=
                 PETSC_SQRT_MACHINE_EPSILON * 12.0 * PetscMax(p->c[0], PetscMax(p->c[1], p->c[2])) * norm[0] * norm[1],
             PetscObjectComm((PetscObject)da), PETSC_ERR_PLIB,
             "The Jacobian is not symmetric on vectors that vanish on the boundary: CG is not valid");
  for (q = 0; q < 2; q++) PetscCall(VecDestroy(&v[q]));
  PetscCall(VecDestroy(&w));
  PetscCall(PetscRandomDestroy(&random));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- one run with one matrix type */

/* Parts of the set-up */
enum { SETUP_INDICES, SETUP_PREALLOCATION, SETUP_VECTORS, SETUP_FIRST, SETUPS };

typedef struct {
  char                viewed[64]; /* the type name that the matrix reports */
  PetscInt            newton, krylov, products;
  PetscReal           fnorm, umax;
  double              start, setups[SETUPS]; /* start: of the GPU, before the set-up; 0: none is used */
  double              nnz, setup, function, jacobian, ksp, solve, products_time, product, block, gflops; /* seconds */
  SNESConvergedReason reason;
  Vec                 x;
} Run;

/* Waits for all processes and their GPUs, and returns the time t */
static PetscErrorCode Clock(Vec v, double *t)
{
  PetscLogDouble now;

  PetscFunctionBeginUser;
  PetscCall(Synchronize(v));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(&now));
  *t = now;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The time of one product in seconds, from a series of products that takes at least a tenth of a second */
static PetscErrorCode TimeProduct(Mat A, Vec x, Vec y, double *seconds)
{
  double   t[2];
  PetscInt q, n = 5;

  PetscFunctionBeginUser;
  do {
    PetscCall(Clock(y, &t[0]));
    for (q = 0; q < n; q++) PetscCall(MatMult(A, x, y));
    PetscCall(Clock(y, &t[1]));
    *seconds = t[1] - t[0];
    PetscCallMPI(MPI_Bcast(seconds, 1, MPI_DOUBLE, 0, PETSC_COMM_WORLD)); /* all processes continue, or none */
    *seconds /= n;
    n *= 4;
  } while (*seconds * n < 0.4);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Creates the grid and the data that depend on it */
static PetscErrorCode CreateGrid(const char type[], PetscInt n, PetscReal lambda, Problem *problem, DM *grid)
{
  Bratu    *p = &problem->bratu;
  BratuBox *b = &problem->box;
  DM        da;
  PetscInt  d;

  PetscFunctionBeginUser;
  PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, n,
                         n, n, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL, &da));
  PetscCall(DMSetFromOptions(da));
  PetscCall(DMSetUp(da));
  PetscCall(DMSetMatType(da, type)); /* for users of the DM's matrices, such as multigrid */
  PetscCall(DMDAGetInfo(da, NULL, &p->M[0], &p->M[1], &p->M[2], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  PetscCall(DMDAGetCorners(da, &b->s[0], &b->s[1], &b->s[2], &b->m[0], &b->m[1], &b->m[2]));
  PetscCall(DMDAGetGhostCorners(da, &b->gs[0], &b->gs[1], &b->gs[2], &b->gm[0], &b->gm[1], &b->gm[2]));
  p->lambda = lambda;
  for (d = 0; d < 3; d++) p->h[d] = 1.0 / (PetscReal)(p->M[d] - 1);
  for (d = 0; d < 3; d++) p->c[d] = p->h[0] * p->h[1] * p->h[2] / PetscSqr(p->h[d]);
  p->lamvol = p->lambda * p->h[0] * p->h[1] * p->h[2];
  *grid     = da;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collects the results of the solve and the times of products */
static PetscErrorCode Collect(SNES snes, Mat J, Vec r, PetscLogStage stage, Problem *problem, Run *run)
{
  Mat         block;
  Vec         xb, yb;
  MatInfo     info;
  MatType     viewed;
  const char *format;
  PetscBool   device, named = PETSC_TRUE;
  double      flops;
  PetscInt    count;

  PetscFunctionBeginUser;
  PetscCall(SNESGetConvergedReason(snes, &run->reason));
  PetscCall(SNESGetIterationNumber(snes, &run->newton));
  PetscCall(SNESGetLinearSolveIterations(snes, &run->krylov));
  PetscCall(FormFunction(snes, run->x, r, problem)); /* computed again, not taken from SNES */
  PetscCall(VecNorm(r, NORM_2, &run->fnorm));
  PetscCall(VecMax(run->x, NULL, &run->umax));
  PetscCall(MatGetType(J, &viewed));
  PetscCall(PetscSpMVGetFormat(J, &format));
  /* the matrix may report the name of our type's parent */
  if (format) PetscCall(PetscStrendswith(viewed, format, &named));
  PetscCall(PetscSNPrintf(run->viewed, sizeof(run->viewed), "%s%s%s", viewed, named ? "" : "/", named ? "" : format));
  PetscCall(MatGetInfo(J, MAT_GLOBAL_SUM, &info));
  run->nnz = info.nz_used;
  PetscCall(ExampleLog(PETSC_COMM_WORLD, stage, "SNESFunctionEval", &count, &run->function, &flops));
  PetscCall(ExampleLog(PETSC_COMM_WORLD, stage, "SNESJacobianEval", &count, &run->jacobian, &flops));
  PetscCall(ExampleLog(PETSC_COMM_WORLD, stage, "KSPSolve", &count, &run->ksp, &flops));
  PetscCall(ExampleLog(PETSC_COMM_WORLD, stage, "MatMult", &run->products, &run->products_time, &flops));
  PetscCall(TimeProduct(J, run->x, r, &run->product));
  /* the matrix itself on one process; otherwise the part that needs no data from other processes */
  PetscCall(MatGetDiagonalBlock(J, &block));
  PetscCall(MatCreateVecs(block, &xb, &yb));
  PetscCall(VecSet(xb, 1.0));
  PetscCall(TimeProduct(block, xb, yb, &run->block));
  PetscCall(VecDestroy(&xb));
  PetscCall(VecDestroy(&yb));
  PetscCall(OnDevice(run->x, &device));
  /* on a GPU, the log has only the time to queue the products */
  if (device) run->products_time = run->products * run->product;
  run->gflops = run->products ? 1e-9 * flops / run->products / run->product : 0.0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode IsOfDevice(MatType type, PetscBool *device)
{
  Mat     A;
  VecType vectype;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetType(A, type));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatGetVecType(A, &vectype));
  PetscCall(PetscStrcmp(vectype, VECCUDA, device));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Starts the GPU for a type that uses it: this takes some tenths of a second, once for a process, and would otherwise
   be part of the first type's set-up. seconds: 0 for a type of the host */
static PetscErrorCode StartDevice(MatType type, double *seconds)
{
  PetscLogDouble t0, t1;
  PetscBool      device;

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&t0));
  PetscCall(IsOfDevice(type, &device));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (device) PetscCall(PetscDeviceInitialize(PETSC_DEVICE_CUDA));
#endif
  PetscCall(PetscTime(&t1));
  *seconds = device ? t1 - t0 : 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(const char *what, PetscInt index, PetscInt n, PetscReal lambda, Problem *problem, Run *run)
{
  const BratuBox *b = &problem->box;
  DM              da;
  SNES            snes;
  KSP             ksp;
  PC              pc;
  Mat             J;
  Vec             r;
  VecType         vectype;
  PetscBool       iscg, set;
  PetscLogStage   stage;
  double          t0, t1;
  char            name[96], type[64];
  const char     *method = strchr(what, ':');
  PetscInt        d;

  PetscFunctionBeginUser;
  PetscCall(PetscStrncpy(type, what, method ? PetscMin((size_t)(method - what) + 1, sizeof(type)) : sizeof(type)));
  PetscCall(StartDevice(type, &run->start));
  PetscCall(CreateGrid(type, n, lambda, problem, &da));
  PetscCall(PetscTime(&t0));
  PetscCall(CreateJacobian(da, type, problem, &J, &run->setups[SETUP_INDICES]));
  PetscCall(MatGetVecType(J, &vectype)); /* cuda for a type that stores its matrices on the GPU */
  PetscCall(PetscOptionsHasName(NULL, NULL, "-dm_vec_type", &set));
  if (!set) PetscCall(DMSetVecType(da, vectype));
  PetscCall(DMCreateGlobalVector(da, &run->x));
  PetscCall(VecDuplicate(run->x, &r));
  PetscCall(VecCreate(PETSC_COMM_SELF, &problem->values));
  PetscCall(VecSetSizes(problem->values, BRATU_STENCIL * b->m[0] * b->m[1] * b->m[2], PETSC_DECIDE));
  PetscCall(VecSetType(problem->values, vectype));
  PetscCall(SNESCreate(PETSC_COMM_WORLD, &snes));
  PetscCall(SNESSetDM(snes, da));
  PetscCall(SNESSetFunction(snes, r, FormFunction, problem));
  PetscCall(SNESSetJacobian(snes, J, J, FormJacobian, problem));
  PetscCall(SNESGetKSP(snes, &ksp));
  PetscCall(KSPSetType(ksp, method ? method + 1 : KSPCG));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(SNESSetFromOptions(snes));
  PetscCall(Evaluate(BRATU_GUESS, problem, NULL, run->x));
  PetscCall(Clock(r, &t1));
  run->setups[SETUP_VECTORS] = t1 - t0 - run->setups[SETUP_INDICES] - run->setups[SETUP_PREALLOCATION];
  /* run everything once: the first product sets up the format, and libraries and kernels are loaded by their first use
     */
  PetscCall(FormFunction(snes, run->x, r, problem));
  PetscCall(FormJacobian(snes, run->x, J, J, problem));
  PetscCall(MatMult(J, run->x, r));
  PetscCall(Clock(r, &t1));
  run->setup               = t1 - t0;
  run->setups[SETUP_FIRST] = run->setup;
  for (d = 0; d < SETUP_FIRST; d++) run->setups[SETUP_FIRST] -= run->setups[d];
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp, &iscg, KSPCG, KSPDEVICECG, ""));
  if (iscg) PetscCall(CheckSymmetry(da, &problem->bratu, J));

  PetscCall(PetscSNPrintf(name, sizeof(name), "%" PetscInt_FMT ": %s", index, what)); /* one type may be listed twice */
  PetscCall(PetscLogStageRegister(name, &stage));
  PetscCall(PetscLogStagePush(stage));
  PetscCall(Clock(run->x, &t0));
  PetscCall(SNESSolve(snes, NULL, run->x));
  PetscCall(Clock(run->x, &t1));
  PetscCall(PetscLogStagePop());
  run->solve = t1 - t0;

  PetscCall(Collect(snes, J, r, stage, problem, run));
  PetscCall(VecDestroy(&problem->values));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&J));
  PetscCall(SNESDestroy(&snes));
  PetscCall(DMDestroy(&da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The default of -types: ours, after the type of PETSc's that stores its matrices in the same memory */
static PetscErrorCode DefaultTypes(PetscInt *n, char *types[])
{
  const char *defaults[] = {"aij", "sellp", "evchyb", "sellp:devicecg"};
  PetscBool   device;

  PetscFunctionBeginUser;
  PetscCall(IsOfDevice(MATSELLP, &device));
  if (device) defaults[0] = "aijcusparse";
  for (*n = 0; *n < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(defaults) - !device; (*n)++)
    PetscCall(PetscStrallocpy(defaults[*n], &types[*n]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char       *types[16];
  PetscInt    ntypes = PETSC_STATIC_ARRAY_LENGTH(types), n = 100, t, failed = 0;
  PetscMPIInt size;
  PetscBool   set;
  PetscReal   lambda = 6.0;
  Problem     problem;
  Run         first, run;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscSpMVInitializePackage());
  PetscCall(PetscLogDefaultBegin());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscMemzero(&problem, sizeof(problem)));
  PetscCall(PetscMemzero(&first, sizeof(first)));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-par", &lambda, NULL));
  PetscCheck(lambda > 0.0 && lambda <= 6.81, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-par %g is not in (0, 6.81]",
             (double)lambda);
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCheck(n > 2, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-n %" PetscInt_FMT " leaves no interior point", n);
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_type", &set));
  PetscCheck(!set, PETSC_COMM_WORLD, PETSC_ERR_USER, "-mat_type would make every run the same: use -types");
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-types", types, &ntypes, &set));
  if (!set) PetscCall(DefaultTypes(&ntypes, types));

  for (t = 0; t < ntypes; t++) {
    PetscReal diff = 0.0, allowed;
    PetscBool ok;

    PetscCall(Solve(types[t], t, n, lambda, &problem, t ? &run : &first));
    if (!t) {
      run = first;
      PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                            "Bratu %" PetscInt_FMT " x %" PetscInt_FMT " x %" PetscInt_FMT
                            ", lambda %g, %d rank%s, %.0f stored entries, times in seconds\n",
                            problem.bratu.M[0], problem.bratu.M[1], problem.bratu.M[2], (double)lambda, size,
                            size > 1 ? "s" : "", first.nnz));
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-14s %-21s %6s %6s %10s %8s %8s %8s %8s %8s %8s %8s %10s %8s %8s  %s\n",
                            "type", "viewed as", "Newton", "Krylov", "|F|", "set-up", "solve", "function", "Jacobian",
                            "KSPSolve", "products", "MatMult", "us/product", "us/block", "GF/s",
                            "difference (allowed)"));
    } else {
      Vec d;

      PetscCall(VecDuplicate(run.x, &d)); /* the first solution may be on the host, and this one on the GPU */
      PetscCall(VecCopy(first.x, d));
      PetscCall(VecAXPY(d, -1.0, run.x));
      PetscCall(VecNorm(d, NORM_INFINITY, &diff));
      PetscCall(VecDestroy(&d));
    }
    allowed = AllowedDifference(&problem.bratu, first.fnorm, run.fnorm, PetscMax(first.umax, run.umax));
    ok      = (PetscBool)(run.reason > 0 && diff <= allowed); /* false for a NaN too */
    if (!ok) failed++;
    PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                          "%-14s %-21s %6" PetscInt_FMT " %6" PetscInt_FMT
                          " %10.3e %8.3f %8.3f %8.3f %8.3f %8.3f %8" PetscInt_FMT " %8.3f %10.1f %8.1f %8.2f  ",
                          types[t], run.viewed, run.newton, run.krylov, (double)run.fnorm, run.setup, run.solve,
                          run.function, run.jacobian, run.ksp, run.products, run.products_time, 1e6 * run.product,
                          1e6 * run.block, run.gflops));
    if (t)
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%.1e (%.1e)%s\n", (double)diff, (double)allowed, ok ? "" : "  FAILED"));
    else
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "-%s\n", ok ? "" : "  FAILED"));
    if (run.start > 0) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  before: start of the GPU %.3f;", run.start));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                          "%s set-up: indices %.3f, MatSetPreallocationCOO() %.3f, vectors and solver %.3f, first "
                          "residual, Jacobian and product %.3f\n",
                          run.start > 0 ? "" : " ", run.setups[SETUP_INDICES], run.setups[SETUP_PREALLOCATION],
                          run.setups[SETUP_VECTORS], run.setups[SETUP_FIRST]));
    if (run.reason <= 0)
      PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                            "  %s did not converge: %s (-snes_converged_reason -ksp_converged_reason say more)\n",
                            types[t], SNESConvergedReasons[run.reason]));
    if (t) PetscCall(VecDestroy(&run.x));
  }
  PetscCall(VecDestroy(&first.x));
  for (t = 0; t < ntypes; t++) PetscCall(PetscFree(types[t]));
  PetscCheck(!failed, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED,
             "%" PetscInt_FMT " of %" PetscInt_FMT
             " types failed: no convergence, or a solution further from the first type's than the residuals allow",
             failed, ntypes);
  PetscCall(PetscFinalize());
  return 0;
}
