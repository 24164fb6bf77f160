static char help[] = "Solid fuel ignition (Bratu) in three dimensions by Newton-Krylov, once for each matrix type asked for.\n\
  -types <aij,sellp,evchyb> : matrix types to run, the first is what the others are compared with\n\
  -n <100>                  : grid points in each direction (or -da_grid_x, -da_grid_y, -da_grid_z)\n\
  -par <6>                  : strength lambda of the nonlinearity, 0 < lambda <= 6.81\n\
  and the options of SNES, KSP and PC; the defaults are -ksp_type cg -pc_type none\n\n";

/*
   Solves -Laplacian u = lambda exp(u) on the unit cube, u = 0 on its boundary, with the discretisation, the boundary rows, the
   scaling and the initial guess of PETSc's src/snes/tutorials/ex14.c: 7 points, a DMDA. The iteration counts are therefore those of
   ex14, and the only thing that changes from one run of the table to the next is the type of the Jacobian.

   Usage:
     mpiexec -n 2 ./bratu                                           # 100^3, three types
     mpiexec -n 2 ./bratu -n 200 -ksp_rtol 1e-5                     # the size of the papers on SELL-P and EVC-HYB
     mpiexec -n 2 ./bratu -types aij,aijperm,sell,sellp,evchyb -pc_type jacobi
     mpiexec -n 2 ./bratu -ksp_type gmres -pc_type bjacobi

   Is CG allowed? The matrix is not symmetric: an interior row refers to its boundary neighbours, a boundary row is a row of the
   identity. But boundary values start at zero and their residual is zero, so with no preconditioner (or any that keeps a zero on the
   boundary zero: Jacobi, ILU) every Krylov vector vanishes there, and between such vectors the matrix is symmetric, which
   CheckSymmetry() verifies on the assembled matrix, and positive definite on the lower branch of solutions. ICC is not such a
   preconditioner, it reads only one triangle: take GMRES with it.

   The exit status is not zero if a run does not converge or if two types' solutions differ by more than their residuals allow.
*/

#include <petscdm.h>
#include <petscdmda.h>
#include <petscsnes.h>
#include "example.h"

/* ---------------------------------------------------------------- the problem at one grid point, free of PETSc's objects */

typedef struct {
  PetscReal lambda;
  PetscInt  M[3];   /* grid points in each direction */
  PetscReal h[3];   /* grid spacing */
  PetscReal c[3];   /* coupling to a neighbour in each direction: volume of the cell over h^2 */
  PetscReal lamvol; /* lambda times the volume of the cell */
} Bratu;

static PetscBool OnBoundary(const Bratu *p, PetscInt i, PetscInt j, PetscInt k)
{
  return (PetscBool)(i == 0 || j == 0 || k == 0 || i == p->M[0] - 1 || j == p->M[1] - 1 || k == p->M[2] - 1);
}

static PetscReal InitialValue(const Bratu *p, PetscInt i, PetscInt j, PetscInt k)
{
  PetscReal d; /* distance to the boundary */

  if (OnBoundary(p, i, j, k)) return 0.0;
  d = PetscMin(PetscMin(i, p->M[0] - i - 1) * p->h[0], PetscMin(PetscMin(j, p->M[1] - j - 1) * p->h[1], PetscMin(k, p->M[2] - k - 1) * p->h[2]));
  return p->lambda / (p->lambda + 1.0) * PetscSqrtReal(d);
}

/* u, and its neighbours west, east, south, north, down, up */
static PetscScalar Residual(const Bratu *p, PetscScalar u, const PetscScalar nb[6])
{
  return p->c[0] * (2.0 * u - nb[0] - nb[1]) + p->c[1] * (2.0 * u - nb[2] - nb[3]) + p->c[2] * (2.0 * u - nb[4] - nb[5]) - p->lamvol * PetscExpScalar(u);
}

static PetscScalar ResidualDerivative(const Bratu *p, PetscScalar u)
{
  return 2.0 * (p->c[0] + p->c[1] + p->c[2]) - p->lamvol * PetscExpScalar(u);
}

/*
   How far apart two approximate solutions may be. F(u) - F(v) = J (u - v) with J taken at a point between them, so |u - v| <=
   (|F(u)| + |F(v)|) / mu with mu the least eigenvalue of J: at least the Laplacian's, which is known, less the largest exponential.
   The last term is the rounding of F itself.
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

static PetscErrorCode FormInitialGuess(DM da, const Bratu *p, Vec X)
{
  PetscScalar ***x;
  PetscInt       i, j, k, xs, ys, zs, xm, ym, zm;

  PetscFunctionBeginUser;
  PetscCall(DMDAGetCorners(da, &xs, &ys, &zs, &xm, &ym, &zm));
  PetscCall(DMDAVecGetArrayWrite(da, X, &x));
  for (k = zs; k < zs + zm; k++) {
    for (j = ys; j < ys + ym; j++) {
      for (i = xs; i < xs + xm; i++) x[k][j][i] = InitialValue(p, i, j, k);
    }
  }
  PetscCall(DMDAVecRestoreArrayWrite(da, X, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FormFunction(SNES snes, Vec X, Vec F, void *ctx)
{
  const Bratu   *p = (const Bratu *)ctx;
  DM             da;
  Vec            L;
  PetscScalar ***x, ***f;
  PetscInt       i, j, k, xs, ys, zs, xm, ym, zm;

  PetscFunctionBeginUser;
  PetscCall(SNESGetDM(snes, &da));
  PetscCall(DMGetLocalVector(da, &L));
  PetscCall(DMGlobalToLocalBegin(da, X, INSERT_VALUES, L));
  PetscCall(DMGlobalToLocalEnd(da, X, INSERT_VALUES, L));
  PetscCall(DMDAGetCorners(da, &xs, &ys, &zs, &xm, &ym, &zm));
  PetscCall(DMDAVecGetArrayRead(da, L, &x));
  PetscCall(DMDAVecGetArrayWrite(da, F, &f));
  for (k = zs; k < zs + zm; k++) {
    for (j = ys; j < ys + ym; j++) {
      for (i = xs; i < xs + xm; i++) {
        if (OnBoundary(p, i, j, k))
          f[k][j][i] = x[k][j][i];
        else {
          const PetscScalar nb[6] = {x[k][j][i - 1], x[k][j][i + 1], x[k][j - 1][i], x[k][j + 1][i], x[k - 1][j][i], x[k + 1][j][i]};

          f[k][j][i] = Residual(p, x[k][j][i], nb);
        }
      }
    }
  }
  PetscCall(DMDAVecRestoreArrayWrite(da, F, &f));
  PetscCall(DMDAVecRestoreArrayRead(da, L, &x));
  PetscCall(DMRestoreLocalVector(da, &L));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FormJacobian(SNES snes, Vec X, Mat J, Mat P, void *ctx)
{
  const Bratu   *p = (const Bratu *)ctx;
  DM             da;
  PetscScalar ***x;
  PetscInt       i, j, k, xs, ys, zs, xm, ym, zm;

  PetscFunctionBeginUser;
  PetscCall(SNESGetDM(snes, &da));
  PetscCall(DMDAGetCorners(da, &xs, &ys, &zs, &xm, &ym, &zm));
  PetscCall(DMDAVecGetArrayRead(da, X, &x)); /* the derivative needs the point itself only, no ghosts */
  for (k = zs; k < zs + zm; k++) {
    for (j = ys; j < ys + ym; j++) {
      for (i = xs; i < xs + xm; i++) {
        MatStencil row = {k, j, i, 0};

        if (OnBoundary(p, i, j, k)) {
          const PetscScalar one = 1.0;

          PetscCall(MatSetValuesStencil(P, 1, &row, 1, &row, &one, INSERT_VALUES));
        } else {
          const MatStencil  col[7] = {{k - 1, j, i, 0}, {k, j - 1, i, 0}, {k, j, i - 1, 0}, {k, j, i, 0}, {k, j, i + 1, 0}, {k, j + 1, i, 0}, {k + 1, j, i, 0}};
          const PetscScalar v[7]   = {-p->c[2], -p->c[1], -p->c[0], ResidualDerivative(p, x[k][j][i]), -p->c[0], -p->c[1], -p->c[2]};

          PetscCall(MatSetValuesStencil(P, 1, &row, 7, col, v, INSERT_VALUES));
        }
      }
    }
  }
  PetscCall(DMDAVecRestoreArrayRead(da, X, &x));
  PetscCall(MatAssemblyBegin(P, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(P, MAT_FINAL_ASSEMBLY));
  if (J != P) { /* -snes_mf_operator */
    PetscCall(MatAssemblyBegin(J, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(J, MAT_FINAL_ASSEMBLY));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a.(J b) against b.(J a) for two vectors that vanish on the boundary, all that CG ever sees; see the top of the file */
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
        for (i = xs; i < xs + xm; i++) a[k][j][i] = OnBoundary(p, i, j, k) ? 0.0 : PetscRealPart(a[k][j][i]);
      }
    }
    PetscCall(DMDAVecRestoreArray(da, v[q], &a));
  }
  for (q = 0; q < 2; q++) {
    PetscCall(MatMult(J, v[q], w));
    PetscCall(VecDot(w, v[1 - q], &dot[q]));
    PetscCall(VecNorm(v[q], NORM_2, &norm[q]));
  }
  /* 12 max(c) bounds the norm of J; the sums of a random vector err by far less than the square root allowed here */
  PetscCheck(PetscAbsScalar(dot[0] - dot[1]) <= PETSC_SQRT_MACHINE_EPSILON * 12.0 * PetscMax(p->c[0], PetscMax(p->c[1], p->c[2])) * norm[0] * norm[1],
             PetscObjectComm((PetscObject)da), PETSC_ERR_PLIB, "The Jacobian is not symmetric on vectors that vanish on the boundary: CG is not valid");
  for (q = 0; q < 2; q++) PetscCall(VecDestroy(&v[q]));
  PetscCall(VecDestroy(&w));
  PetscCall(PetscRandomDestroy(&random));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- one run with one matrix type */

typedef struct {
  char                viewed[64]; /* the type as the matrix names itself */
  PetscInt            newton, krylov, products;
  PetscReal           fnorm, umax, time;
  double              nnz, product_time, gflops;
  SNESConvergedReason reason;
  Vec                 x;
} Run;

static PetscErrorCode Solve(const char *type, PetscInt index, PetscInt n, Bratu *p, Run *run)
{
  DM             da;
  SNES           snes;
  KSP            ksp;
  PC             pc;
  Mat            J;
  Vec            r;
  MatInfo        info;
  MatType        viewed;
  PetscBool      iscg;
  PetscLogStage  stage;
  PetscLogDouble t0, t1;
  char           name[96];
  PetscInt       d;

  PetscFunctionBeginUser;
  PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, n, n, n, PETSC_DECIDE, PETSC_DECIDE,
                         PETSC_DECIDE, 1, 1, NULL, NULL, NULL, &da));
  PetscCall(DMSetFromOptions(da));
  PetscCall(DMSetUp(da));
  PetscCall(DMSetMatType(da, type));
  PetscCall(DMDAGetInfo(da, NULL, &p->M[0], &p->M[1], &p->M[2], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  for (d = 0; d < 3; d++) p->h[d] = 1.0 / (PetscReal)(p->M[d] - 1);
  for (d = 0; d < 3; d++) p->c[d] = p->h[0] * p->h[1] * p->h[2] / PetscSqr(p->h[d]);
  p->lamvol = p->lambda * p->h[0] * p->h[1] * p->h[2];

  PetscCall(DMCreateGlobalVector(da, &run->x));
  PetscCall(VecDuplicate(run->x, &r));
  PetscCall(DMCreateMatrix(da, &J));
  PetscCall(SNESCreate(PETSC_COMM_WORLD, &snes));
  PetscCall(SNESSetDM(snes, da));
  PetscCall(SNESSetFunction(snes, r, FormFunction, p));
  PetscCall(SNESSetJacobian(snes, J, J, FormJacobian, p));
  PetscCall(SNESGetKSP(snes, &ksp));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(SNESSetFromOptions(snes));
  PetscCall(FormInitialGuess(da, p, run->x));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPCG, &iscg));
  if (iscg) {
    PetscCall(FormJacobian(snes, run->x, J, J, p));
    PetscCall(CheckSymmetry(da, p, J));
  }

  PetscCall(PetscSNPrintf(name, sizeof(name), "%" PetscInt_FMT ": %s", index, type)); /* one type may be listed twice */
  PetscCall(PetscLogStageRegister(name, &stage));
  PetscCall(PetscLogStagePush(stage));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(&t0));
  PetscCall(SNESSolve(snes, NULL, run->x));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(&t1));
  PetscCall(PetscLogStagePop());

  run->time = (PetscReal)(t1 - t0);
  PetscCall(SNESGetConvergedReason(snes, &run->reason));
  PetscCall(SNESGetIterationNumber(snes, &run->newton));
  PetscCall(SNESGetLinearSolveIterations(snes, &run->krylov));
  PetscCall(FormFunction(snes, run->x, r, p)); /* not what SNES remembers */
  PetscCall(VecNorm(r, NORM_2, &run->fnorm));
  PetscCall(VecMax(run->x, NULL, &run->umax));
  PetscCall(MatGetType(J, &viewed));
  PetscCall(PetscStrncpy(run->viewed, viewed, sizeof(run->viewed)));
  PetscCall(MatGetInfo(J, MAT_GLOBAL_SUM, &info));
  run->nnz = info.nz_used;
  PetscCall(ExampleMatMultLog(PETSC_COMM_WORLD, stage, &run->products, &run->product_time, &run->gflops));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&J));
  PetscCall(SNESDestroy(&snes));
  PetscCall(DMDestroy(&da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char       *types[16];
  PetscInt    ntypes = PETSC_STATIC_ARRAY_LENGTH(types), n = 100, t, failed = 0;
  PetscMPIInt size;
  PetscBool   set;
  Bratu       problem;
  Run         first, run;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscSpMVInitializePackage());
  PetscCall(PetscLogDefaultBegin());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscMemzero(&problem, sizeof(problem)));
  PetscCall(PetscMemzero(&first, sizeof(first)));
  problem.lambda = 6.0;
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-par", &problem.lambda, NULL));
  PetscCheck(problem.lambda > 0.0 && problem.lambda <= 6.81, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-par %g is not in (0, 6.81]", (double)problem.lambda);
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCheck(n > 2, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-n %" PetscInt_FMT " leaves no interior point", n);
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_type", &set));
  PetscCheck(!set, PETSC_COMM_WORLD, PETSC_ERR_USER, "-mat_type would make every run the same: use -types");
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-types", types, &ntypes, &set));
  if (!set) {
    const char *defaults[] = {"aij", "sellp", "evchyb"};

    ntypes = PETSC_STATIC_ARRAY_LENGTH(defaults);
    for (t = 0; t < ntypes; t++) PetscCall(PetscStrallocpy(defaults[t], &types[t]));
  }

  for (t = 0; t < ntypes; t++) {
    PetscReal diff = 0.0, allowed;
    PetscBool ok;

    PetscCall(Solve(types[t], t, n, &problem, t ? &run : &first));
    if (!t) {
      run = first;
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "Bratu %" PetscInt_FMT " x %" PetscInt_FMT " x %" PetscInt_FMT ", lambda %g, %d rank%s, %.0f stored entries\n",
                            problem.M[0], problem.M[1], problem.M[2], (double)problem.lambda, size, size > 1 ? "s" : "", first.nnz));
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-14s %-18s %6s %6s %10s %8s %11s %7s %10s  %s\n", "type", "viewed as", "Newton", "Krylov", "|F|", "MatMult",
                            "MatMult [s]", "GF/s", "solve [s]", "difference (allowed)"));
    } else {
      Vec d;

      PetscCall(VecDuplicate(first.x, &d));
      PetscCall(VecCopy(first.x, d));
      PetscCall(VecAXPY(d, -1.0, run.x));
      PetscCall(VecNorm(d, NORM_INFINITY, &diff));
      PetscCall(VecDestroy(&d));
    }
    allowed = AllowedDifference(&problem, first.fnorm, run.fnorm, PetscMax(first.umax, run.umax));
    ok      = (PetscBool)(run.reason > 0 && diff <= allowed); /* false for a NaN too */
    if (!ok) failed++;
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-14s %-18s %6" PetscInt_FMT " %6" PetscInt_FMT " %10.3e %8" PetscInt_FMT " %11.3f %7.2f %10.3f  ", types[t],
                          run.viewed, run.newton, run.krylov, (double)run.fnorm, run.products, run.product_time, run.gflops, (double)run.time));
    if (t)
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%.1e (%.1e)%s\n", (double)diff, (double)allowed, ok ? "" : "  FAILED"));
    else
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "-%s\n", ok ? "" : "  FAILED"));
    if (run.reason <= 0)
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  %s did not converge: %s (-snes_converged_reason -ksp_converged_reason say more)\n", types[t],
                            SNESConvergedReasons[run.reason]));
    if (t) PetscCall(VecDestroy(&run.x));
  }
  PetscCall(VecDestroy(&first.x));
  for (t = 0; t < ntypes; t++) PetscCall(PetscFree(types[t]));
  PetscCheck(!failed, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED,
             "%" PetscInt_FMT " of %" PetscInt_FMT " types failed: no convergence, or a solution further from the first type's than the residuals allow",
             failed, ntypes);
  PetscCall(PetscFinalize());
  return 0;
}
