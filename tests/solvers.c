/*
  Solvers: every preconditioner that reads the matrix, or creates matrices from it, must take the same steps as with
  AIJ. The argument of an operation is a set of PETSc options.
*/
#include "parts/solvers.h"
#include <petscdmda.h>
#include <petscdmshell.h>
#include <petscsnes.h>

/* Whether this PETSc has the package that an option string names in its first word, as in "mumps: ..." */
static PetscErrorCode Available(const char *arg, const char **options, PetscBool *has)
{
  const char *colon = strchr(arg, ':');
  char        package[64];

  PetscFunctionBegin;
  *options = arg;
  *has     = PETSC_TRUE;
  if (colon && (size_t)(colon - arg) < sizeof(package)) {
    PetscCall(PetscStrncpy(package, arg, (size_t)(colon - arg) + 1));
    PetscCall(PetscHasExternalPackage(package, has));
    *options = colon + 1;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The test's matrix, solved twice, with new values the second time */
static PetscErrorCode Solve(Test *t, Record *r)
{
  Mat         A;
  const char *options;
  PetscBool   has, random, ml, hermitian;

  PetscFunctionBegin;
  PetscCall(Available(t->arg, &options, &has));
  if (!has) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrbeginswith(t->arg, "hypre:", &random));
  PetscCall(PetscStrbeginswith(t->arg, "ml:", &ml));
  if (ml) random = PETSC_TRUE;
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(Make(t, &A));
  /* some packages need it; with complex numbers CHOLMOD accepts only Hermitian matrices, and MUMPS no Hermitian
     matrices */
  if (t->c->has & SPD) {
    PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
    PetscCall(PetscStrbeginswith(t->arg, "suitesparse:", &hermitian));
    if (hermitian) PetscCall(MatSetOption(A, MAT_HERMITIAN, PETSC_TRUE));
    PetscCall(MatSetOption(A, MAT_SYMMETRY_ETERNAL, PETSC_TRUE));
  }
  PetscCall(SolveTwice(r, A, 100, 1., random, NULL));
  /* a preconditioner must not change the type of its operand permanently */
  PetscCall(RecordType(t, r, "type after the solves", A));
  PetscCall(MatDestroy(&A));
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Several right-hand sides at once, solved twice, with new values the second time */
static PetscErrorCode SolveColumns(Test *t, Record *r)
{
  const PetscInt columns = 5;
  Mat            A, B, X;
  Vec            v;
  KSP            ksp;
  PetscInt       m, M;

  PetscFunctionBegin;
  PetscCall(Options(t->arg, PETSC_TRUE));
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, &m, NULL, &M, NULL));
  PetscCall(MatCreateDense(t->comm, m, PETSC_DECIDE, M, columns, NULL, &B));
#if defined(PETSC_HAVE_CUDA)
  if (t->device) PetscCall(MatConvert(B, MATDENSECUDA, MAT_INPLACE_MATRIX, &B));
#endif
  for (PetscInt q = 0; q < columns; q++) {
    PetscCall(MatDenseGetColumnVecWrite(B, q, &v));
    PetscCall(VecFill(v, (int)q + 1));
    PetscCall(MatDenseRestoreColumnVecWrite(B, q, &v));
  }
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
  PetscCall(MakeSolver(t->comm, A, 100, &ksp));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPMatSolve(ksp, B, X));
    for (PetscInt q = 0; q < columns; q++) {
      PetscCall(MatDenseGetColumnVecRead(X, q, &v));
      PetscCall(RecordVec(r, "solution", v, NULL, 1e9)); /* epsilons: 2e-7 */
      PetscCall(MatDenseRestoreColumnVecRead(X, q, &v));
    }
    PetscCall(MatScale(A, 1.5));
  }
  PetscCall(Destroy(&ksp, &A, &B, &X));
  PetscCall(Options(t->arg, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two unknowns per point of a grid, with a Laplacian each and a coupling */
static PetscErrorCode Operator(KSP ksp, Mat J, Mat P, void *ctx)
{
  DM            dm;
  DMDALocalInfo info;

  PetscFunctionBegin;
  PetscCall(KSPGetDM(ksp, &dm));
  PetscCall(DMDAGetLocalInfo(dm, &info));
  for (PetscInt j = info.ys; j < info.ys + info.ym; j++) {
    for (PetscInt i = info.xs; i < info.xs + info.xm; i++) {
      for (PetscInt c = 0; c < info.dof; c++) {
        MatStencil  row = {0}, col[6];
        PetscScalar v[6];
        PetscInt    n = 0;

        row.i = i;
        row.j = j;
        row.c = c;
        for (int k = 0; k < 5; k++) {
          const PetscInt di[] = {0, -1, 1, 0, 0}, dj[] = {0, 0, 0, -1, 1};

          if (i + di[k] < 0 || i + di[k] >= info.mx || j + dj[k] < 0 || j + dj[k] >= info.my) continue;
          col[n]   = row;
          col[n].i = i + di[k];
          col[n].j = j + dj[k];
          v[n++]   = k ? -1. : 4.;
        }
        if (info.dof > 1) {
          col[n]   = row;
          col[n].c = 1 - c;
          v[n++]   = -.1;
        }
        PetscCall(MatSetValuesStencil(P, 1, &row, n, col, v, INSERT_VALUES));
      }
    }
  }
  PetscCall(MatAssemble(P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RightHandSide(KSP ksp, Vec b, void *ctx)
{
  return VecFill(b, 5);
}

/* On a device, AIJCUSPARSE accepts only device vectors. Our types also accept host vectors, and some operations use
   them (see their argument) */
static PetscErrorCode SetVectors(Test *t, DM dm, PetscBool host)
{
  PetscFunctionBegin;
  if (t->device && !host) PetscCall(DMSetVecType(dm, VECCUDA));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A grid's own matrices, on every level of multigrid; the argument begins with the number of unknowns per point, and h
   for host vectors or a for the type's name that begins with aij, with which interpolations have the format, too */
static PetscErrorCode Grid(Test *t, Record *r)
{
  DM          dm;
  KSP         ksp;
  Mat         A;
  const char *options;
  char        type[64];
  PetscBool   has, host = (PetscBool)(t->arg[1] == 'h'), named = (PetscBool)(t->arg[1] == 'a');

  PetscFunctionBegin;
  PetscCall(Available(t->arg + 1 + (host || named), &options, &has));
  if (!has) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Options(options, PETSC_TRUE));
  PetscCall(DMDACreate2d(t->comm, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 5, 6, PETSC_DECIDE,
                         PETSC_DECIDE, t->arg[0] - '0', 1, NULL, NULL, &dm));
  PetscCall(PetscSNPrintf(type, sizeof(type), "%s%s", named && strncmp(t->type, "aij", 3) ? "aij" : "", t->type));
  PetscCall(DMSetMatType(dm, type));
  PetscCall(SetVectors(t, dm, host));
  PetscCall(DMSetUp(dm));
  PetscCall(DMDASetFieldName(dm, 0, "u"));
  for (int k = 0; k < 2; k++) {
    DM fine;

    PetscCall(DMRefine(dm, t->comm, &fine));
    PetscCall(DMDestroy(&dm));
    dm = fine;
  }
  PetscCall(KSPCreate(t->comm, &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, prefix));
  PetscCall(KSPSetDM(ksp, dm));
  PetscCall(KSPSetComputeOperators(ksp, Operator, NULL));
  PetscCall(KSPSetComputeRHS(ksp, RightHandSide, NULL));
  PetscCall(KSPSetTolerances(ksp, RTOL, PETSC_DEFAULT, PETSC_DEFAULT, 100));
  PetscCall(KSPSetResidualHistory(ksp, NULL, 200, PETSC_TRUE));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, NULL, NULL));
  PetscCall(RecordHistory(r, ksp, PETSC_FALSE));
  PetscCall(KSPGetOperators(ksp, NULL, &A));
  PetscCall(RecordMat(t, r, "type of the DM's matrix", A));
  {
    PC        pc;
    PetscBool mg;
    PetscInt  levels;

    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCMG, &mg));
    if (mg) {
      PetscCall(PCMGGetLevels(pc, &levels));
      for (PetscInt l = 0; l < levels; l++) {
        KSP smoother;

        PetscCall(PCMGGetSmoother(pc, l, &smoother));
        PetscCall(KSPGetOperators(smoother, NULL, &A));
        PetscCall(RecordMat(t, r, "type of a level's matrix", A));
        if (!named || !l) continue;
        PetscCall(PCMGGetInterpolation(pc, l, &A));
        PetscCall(RecordType(t, r, "type of a level's interpolation", A));
      }
    }
  }
  PetscCall(Destroy(&ksp, &dm));
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The Bratu equation: a Jacobian that is refilled at every step, from a formula or by finite differences with coloring
   */
static PetscErrorCode Residual(DMDALocalInfo *info, PetscScalar **x, PetscScalar **f, void *ctx)
{
  const PetscReal h = 1. / (info->mx - 1);

  PetscFunctionBegin;
  for (PetscInt j = info->ys; j < info->ys + info->ym; j++) {
    for (PetscInt i = info->xs; i < info->xs + info->xm; i++) {
      const PetscBool boundary = (PetscBool)(!i || !j || i == info->mx - 1 || j == info->my - 1);

      f[j][i] = boundary ? x[j][i]
                         : 4. * x[j][i] - x[j - 1][i] - x[j + 1][i] - x[j][i - 1] - x[j][i + 1] -
                               5. * h * h * PetscExpScalar(x[j][i]);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Newton(Test *t, Record *r)
{
  DM               dm;
  SNES             snes;
  Vec              x;
  Mat              J;
  PetscInt         its, n;
  const PetscReal *norms;
  PetscReal        history[60];
  const PetscBool  host = (PetscBool)(t->arg[0] == 'h');

  PetscFunctionBegin;
  PetscCall(Options(t->arg + host, PETSC_TRUE));
  PetscCall(DMDACreate2d(t->comm, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 21, 21, PETSC_DECIDE,
                         PETSC_DECIDE, 1, 1, NULL, NULL, &dm));
  PetscCall(DMSetMatType(dm, t->type));
  PetscCall(SetVectors(t, dm, host));
  PetscCall(DMSetUp(dm));
  PetscCall(DMDASNESSetFunctionLocal(dm, INSERT_VALUES,
                                     (PetscErrorCode(*)(DMDALocalInfo *, void *, void *, void *))Residual, NULL));
  PetscCall(SNESCreate(t->comm, &snes));
  PetscCall(SNESSetOptionsPrefix(snes, prefix));
  PetscCall(SNESSetDM(snes, dm));
  PetscCall(SNESSetConvergenceHistory(snes, history, NULL, 60, PETSC_TRUE));
  PetscCall(SNESSetFromOptions(snes));
  PetscCall(DMCreateGlobalVector(dm, &x));
  PetscCall(VecSet(x, 0.));
  PetscCall(SNESSolve(snes, NULL, x));
  PetscCall(SNESGetIterationNumber(snes, &its));
  PetscCall(RecordInt(r, "Newton steps", its));
  PetscCall(SNESGetLinearSolveIterations(snes, &its));
  if (!SINGLE) PetscCall(RecordInt(r, "linear iterations", its));
  PetscCall(SNESGetConvergenceHistory(snes, (PetscReal **)&norms, NULL, &n));
  for (PetscInt k = 0; k < n && !(SINGLE && k == 2); k++)
    PetscCall(RecordAdd(r, "norm of step", k, norms[k], 1e-3 * norms[k] + 1e-9 * norms[0], NULL));
  PetscCall(SNESGetJacobian(snes, NULL, &J, NULL, NULL));
  PetscCall(RecordType(t, r, "type of the Jacobian", J));
  PetscCall(Destroy(&x, &snes, &dm));
  PetscCall(Options(t->arg + host, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define CG "-ksp_type cg -pc_type gamg -mg_levels_pc_type jacobi"

static const Operation operations[] = {
    {"none", Solve, SOLVE, "-ksp_type gmres -pc_type none"},
    {"jacobi", Solve, SOLVE, "-ksp_type cg -pc_type jacobi"},
    {"transposed", Solve, SOLVE, "-ksp_type bicg -pc_type jacobi"},
    {"ilu", Solve, SOLVE | SEQ, "-pc_type ilu -pc_factor_levels 1"},
    {"icc", Solve, SPD | SEQ, "-ksp_type cg -pc_type icc"},
    {"lu", Solve, SOLVE | SEQ, "-ksp_type preonly -pc_type lu"},
    {"cholesky", Solve, SPD | SEQ, "-ksp_type cg -pc_type cholesky"},
    /* AIJPERM requests write access to an operand of MatMultAdd(), which a debug build of PETSc rejects here */
    {"sor", Solve, SOLVE | NOPERM, "-ksp_type richardson -pc_type sor"},
    {"eisenstat", Solve, SOLVE | SEQ, "-ksp_type cg -pc_type eisenstat"},
    {"pbjacobi", Solve, SOLVE | NOCUDA, "-ksp_type cg -pc_type pbjacobi"},
    {"chebyshev", Solve, SPD, "-ksp_type chebyshev -pc_type jacobi"},
    {"bjacobi", Solve, SOLVE, "-pc_type bjacobi -pc_bjacobi_blocks 4 -sub_pc_type ilu"},
    {"asm", Solve, SOLVE, "-pc_type asm -pc_asm_overlap 2 -sub_pc_type lu"},
    {"gasm", Solve, SOLVE, "-pc_type gasm -pc_gasm_overlap 1"},
    /* the same aggregates as with AIJ; multigrid-... has those of the device */
    {"gamg", Solve, SOLVE, "-pc_type gamg -pc_gamg_device 0 -pc_gamg_threshold 0.01"},
    {"gamg-unsmoothed", Solve, SOLVE,
     "-pc_type gamg -pc_gamg_device 0 -pc_gamg_agg_nsmooths 0 -mg_levels_pc_type sor -pc_gamg_coarse_eq_limit 20"},
    {"multigrid-poisson", Multigrid, ONCE | DEVICE, "poisson " CG},
    {"multigrid-jumps", Multigrid, ONCE | DEVICE, "jumps " CG " -pc_gamg_threshold 0.02"},
    {"multigrid-anisotropic", Multigrid, ONCE | DEVICE, "anisotropic " CG " -pc_gamg_threshold 0.05,0.02"},
    {"multigrid-convection", Multigrid, ONCE | DEVICE,
     "convection -ksp_type gmres -pc_type gamg -mg_levels_pc_type jacobi"},
    {"multigrid-helmholtz", Multigrid, ONCE | DEVICE,
     "helmholtz -ksp_type gmres -pc_type gamg -mg_levels_pc_type jacobi"}, /* with complex numbers */
    {"multigrid-cube", Multigrid, ONCE | DEVICE, "cube " CG},
    {"multigrid-elasticity2", Multigrid, ONCE | DEVICE, "elasticity2 " CG},
    {"multigrid-elasticity3", Multigrid, ONCE | DEVICE, "elasticity3 " CG " -pc_gamg_threshold 0.01"},
    {"multigrid-tetrahedra", Multigrid, ONCE | DEVICE, "tetrahedra " CG},
    {"multigrid-misk", Multigrid, ONCE | DEVICE, "poisson " CG " -pc_gamg_aggressive_square_graph 0"},
    {"multigrid-plain", Multigrid, ONCE | DEVICE,
     "cube " CG " -pc_gamg_aggressive_coarsening 0 -pc_gamg_agg_nsmooths 2"},
    {"multigrid-lowmemory", Multigrid, ONCE | DEVICE,
     "jumps " CG " -pc_gamg_threshold 0.02 -pc_gamg_low_memory_threshold_filter"},
    {"multigrid-unsmoothed", Multigrid, ONCE | DEVICE,
     "poisson " CG " -pc_gamg_agg_nsmooths 0 -mg_levels_pc_type sor -pc_gamg_coarse_eq_limit 200"},
    {"multigrid-newprolongators", Multigrid, ONCE | DEVICE, "elasticity2 " CG " -pc_gamg_reuse_interpolation 0"},
    {"multigrid-hem", Multigrid, ONCE | DEVICE, "!poisson " CG " -pc_gamg_mat_coarsen_type hem"},
    {"multigrid-filtered", Multigrid, ONCE | DEVICE, "!poisson " CG " -pc_gamg_prolongator_filter 0.05"},
    {"multigrid-blocks", Multigrid, ONCE | DEVICE, "!poisson " CG " -pc_gamg_asm_use_agg -mg_levels_sub_pc_type lu"},
    {"multigrid-pattern", MultigridPattern, ONCE | DEVICE, "poisson " CG},
    {"multigrid-smoothed", MultigridSmoothed, ONCE | DEVICE, "elasticity3 " CG},
    {"multigrid-smoothed1", MultigridSmoothed, ONCE | DEVICE, "tetrahedra " CG " -pc_gamg_threshold 0.02"},
    {"multigrid-small", MultigridSmall, ONCE | DEVICE, CG " -pc_gamg_coarse_eq_limit 5"},
    {"redundant", Solve, SOLVE, "-ksp_type preonly -pc_type redundant -redundant_pc_type lu"},
    {"telescope", Solve, SOLVE | PAR, "-pc_type telescope -pc_telescope_reduction_factor 2 -telescope_pc_type bjacobi"},
    {"composite", Solve, SOLVE, "-pc_type composite -pc_composite_pcs jacobi,sor"},
    {"fieldsplit-block", Solve, BLOCKS,
     "-pc_type fieldsplit -pc_fieldsplit_type multiplicative -fieldsplit_0_pc_type bjacobi"},
    {"kaczmarz", Solve, SOLVE, "-pc_type kaczmarz"},
    {"spai", Solve, SOLVE, "spai:-pc_type spai"},
    {"mumps", Solve, SOLVE, "mumps:-ksp_type preonly -pc_type lu -pc_factor_mat_solver_type mumps"},
    {"mumps-cholesky", Solve, SPD, "mumps:-ksp_type preonly -pc_type cholesky -pc_factor_mat_solver_type mumps"},
    {"superlu", Solve, SOLVE | SEQ, "superlu:-ksp_type preonly -pc_type lu -pc_factor_mat_solver_type superlu"},
    {"superlu_dist", Solve, SOLVE,
     "superlu_dist:-ksp_type preonly -pc_type lu -pc_factor_mat_solver_type superlu_dist"},
    {"umfpack", Solve, SOLVE | SEQ, "suitesparse:-ksp_type preonly -pc_type lu -pc_factor_mat_solver_type umfpack"},
    {"cholmod", Solve, SPD | SEQ, "suitesparse:-ksp_type preonly -pc_type cholesky -pc_factor_mat_solver_type cholmod"},
    {"hypre", Solve, SOLVE, "hypre:-pc_type hypre -pc_hypre_type boomeramg"},
    {"ml", Solve, SOLVE | SEQ, "ml:-pc_type ml"},
    {"columns-lu", SolveColumns, SOLVE | SEQ, "-ksp_type preonly -pc_type lu"},
    {"columns-jacobi", SolveColumns, SOLVE, "-ksp_type gmres -pc_type jacobi"},
    {"columns-bjacobi", SolveColumns, SOLVE, "-ksp_type preonly -pc_type bjacobi -sub_pc_type ilu"},
    {"columns-gamg", SolveColumns, SPD,
     "-ksp_type preonly -pc_type gamg -pc_gamg_device 0 -pc_gamg_coarse_eq_limit 10 -mg_levels_pc_type jacobi"},
    {"mg", Grid, ONCE, "1-pc_type mg -pc_mg_levels 3"},
    {"mg-galerkin", Grid, ONCE, "1a-pc_type mg -pc_mg_levels 3 -pc_mg_galerkin both -mg_levels_pc_type sor"},
    {"mg-dof2", Grid, ONCE, "2-pc_type mg -pc_mg_levels 3"},
    {"mg-dof2-galerkin", Grid, ONCE | NOPERM,
     "2-pc_type mg -pc_mg_levels 3 -pc_mg_galerkin both -mg_levels_pc_type jacobi"},
    {"grid-gamg", Grid, ONCE, "2-pc_type gamg -pc_gamg_device 0"},
    {"grid-asm", Grid, ONCE, "2-pc_type asm -pc_asm_type basic"},
    {"fieldsplit", Grid, ONCE,
     "2-pc_type fieldsplit -pc_fieldsplit_type additive -fieldsplit_0_pc_type gamg -fieldsplit_0_pc_gamg_device 0"},
    /* AIJCUSPARSE's solves fail here: PETSc gives the solvers of the fields host vectors, because
       DMDACreateCompatibleDMDA() loses the requested type. A debug build of PETSc ends the process, because
       AIJCUSPARSE's solves, too, require device vectors */
    {"schur", Grid, ONCE | (PetscDefined(USE_DEBUG) ? ONHOST : 0),
     "2-pc_type fieldsplit -pc_fieldsplit_type schur -pc_fieldsplit_schur_precondition selfp"},
    {"mg-hostvectors", Grid, ONCE | NOCUDA | DEVICE, "1h-pc_type mg -pc_mg_levels 3 -mg_levels_pc_type jacobi"},
    {"gamg-hostvectors", Grid, ONCE | NOCUDA | DEVICE, "2h-pc_type gamg -pc_gamg_device 0 -mg_levels_pc_type jacobi"},
    {"newton-hostvectors", Newton, ONCE | NOCUDA | DEVICE, "h-pc_type bjacobi"},
    {"newton", Newton, ONCE, "-pc_type bjacobi"},
    {"newton-coloring", Newton, ONCE, "-snes_fd_color -pc_type gamg -pc_gamg_device 0"},
    {"newton-fas", Newton, ONCE, "-snes_fd_color -pc_type mg -pc_mg_levels 2"},
    {NULL, NULL, 0, NULL}};

int main(int argc, char **argv)
{
  return Suite(argc, argv, "solvers", operations, LARGE);
}
