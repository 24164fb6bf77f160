/*
  PCGAMG whose set-up runs on the device, next to PETSc's own set-up: about as many iterations, for the problems on
  which multigrid is used. The argument is the name of a problem, and options.
*/
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include "solvers.h"
#include "../../bench/lib/elasticity.h"
#if defined(PETSC_HAVE_CUDA)
  #include <cusparse.h>
  #include <dlfcn.h>
#endif

/* ---------------------------------------------------------------- products by cuSPARSE */

static int spgemms; /* products of sparse matrices that cuSPARSE has computed */

#if defined(PETSC_HAVE_CUDA)
/* The linker exports this function, because PETSc refers to it */
__attribute__((visibility("default"))) cusparseStatus_t CUSPARSEAPI cusparseSpGEMM_compute(
    cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB, const void *alpha,
    cusparseConstSpMatDescr_t A, cusparseConstSpMatDescr_t B, const void *beta, cusparseSpMatDescr_t C,
    cudaDataType type, cusparseSpGEMMAlg_t algorithm, cusparseSpGEMMDescr_t descr, size_t *size, void *buffer)
{
  static typeof(cusparseSpGEMM_compute) *behind;

  if (!behind) *(void **)&behind = dlsym(RTLD_NEXT, "cusparseSpGEMM_compute");
  spgemms++;
  return (*behind)(handle, opA, opB, alpha, A, B, beta, C, type, algorithm, descr, size, buffer);
}
#endif

/* ---------------------------------------------------------------- problems */

typedef struct {
  const char *name;
  PetscInt    dim, n, bs;
} Grid;

/* The coefficient between two neighbors of a grid, in a direction, seen from the first one */
static PetscReal Coefficient(const Grid *g, const PetscInt at[3], int direction, int step)
{
  if (!strcmp(g->name, "anisotropic")) return direction ? 1 : (PetscReal)0.01;
  if (!strcmp(g->name, "convection")) return 1 + (step < 0 ? (PetscReal)(direction ? 0.1 : 0.03) : 0);
  if (!strcmp(g->name, "jumps") && (at[0] / 5 + at[1] / 5 + at[2] / 5) % 2) return 1000;
  return 1;
}

/* Neighbors along the axes, with fixed values outside of the grid */
static PetscErrorCode FillStencil(const Grid *g, Mat A)
{
  const PetscInt stride[3] = {1, g->n, g->n * g->n};
  PetscScalar    shift     = 0; /* of the Helmholtz equation, to the complex plane */
  PetscInt       first, end;

  PetscFunctionBegin;
#if defined(PETSC_USE_COMPLEX)
  if (!strcmp(g->name, "helmholtz")) shift = PetscCMPLX(-0.15, 0.15);
#endif
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  for (PetscInt r = first; r < end; r++) {
    const PetscInt at[3] = {r % g->n, r / g->n % g->n, r / g->n / g->n};

    PetscCall(MatSetValue(A, r, r, shift, ADD_VALUES));
    for (int k = 0; k < g->dim; k++) {
      for (int step = -1; step <= 1; step += 2) {
        const PetscInt  next[3] = {at[0] + (k == 0 ? step : 0), at[1] + (k == 1 ? step : 0),
                                   at[2] + (k == 2 ? step : 0)};
        const PetscReal a = Coefficient(g, at, k, step), b = Coefficient(g, next, k, step);
        const PetscReal v = 2 * a * b / (a + b);

        PetscCall(MatSetValue(A, r, r, v, ADD_VALUES));
        if (next[k] >= 0 && next[k] < g->n) PetscCall(MatSetValue(A, r, r + step * stride[k], -v, ADD_VALUES));
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All 26 neighbors, with bs unknowns that are weakly coupled */
static PetscErrorCode FillCube(const Grid *g, Mat A)
{
  PetscInt first, end;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  for (PetscInt r = first; r < end; r++) {
    const PetscInt c = r % g->bs, v = r / g->bs, at[3] = {v % g->n, v / g->n % g->n, v / g->n / g->n};

    for (int k = 0; k < 27; k++) {
      const PetscInt x = at[0] + k % 3 - 1, y = at[1] + k / 3 % 3 - 1, z = at[2] + k / 9 - 1;

      PetscCall(MatSetValue(A, r, r, 1, ADD_VALUES));
      if (PetscMin(x, PetscMin(y, z)) < 0 || PetscMax(x, PetscMax(y, z)) >= g->n) continue;
      for (PetscInt q = 0; q < g->bs; q++)
        PetscCall(MatSetValue(A, r, (x + g->n * (y + g->n * z)) * g->bs + q, q == c ? -1. : (k == 13 ? -.1 : 0.),
                              ADD_VALUES));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A node of a grid, moved a little */
static void Node(const Grid *g, PetscInt node, PetscReal x[3])
{
  unsigned int hash = (unsigned int)node;

  for (int k = 0; k < 3; k++) {
    hash = (hash ^ hash >> 15) * 0x2c1b3c6dU + 1;
    x[k] = (PetscReal)(node % g->n) + (PetscReal)0.4 * ((PetscReal)(hash >> 8) / (PetscReal)(1 << 24) - (PetscReal)0.5);
    node /= g->n;
  }
}

/* Adds a tetrahedron's Laplacian; rows of the boundary get their diagonal entry only */
static PetscErrorCode AddTetrahedron(const Grid *g, Mat A, const PetscInt node[4], PetscInt first, PetscInt end)
{
  PetscReal x[4][3], d[4][3], volume = 0;

  PetscFunctionBegin;
  for (int a = 0; a < 4; a++) Node(g, node[a], x[a]);
  for (int a = 0; a < 4; a++) { /* the gradient of a's basis function, times six volumes: the normal of its face */
    const PetscReal *p = x[(a + 1) % 4], *q = x[(a + 2) % 4], *s = x[(a + 3) % 4];

    volume = 0;
    for (int k = 0; k < 3; k++) {
      const int i = (k + 1) % 3, j = (k + 2) % 3;

      d[a][k] = (q[i] - p[i]) * (s[j] - p[j]) - (q[j] - p[j]) * (s[i] - p[i]);
      volume += d[a][k] * (x[a][k] - p[k]);
    }
    for (int k = 0; k < 3; k++) d[a][k] *= volume < 0 ? -1 : 1;
  }
  volume = PetscAbsReal(volume);
  for (int a = 0; a < 4; a++) {
    const PetscBool fixed = (PetscBool)(node[a] % g->n == 0);

    if (node[a] < first || node[a] >= end) continue;
    for (int b = 0; b < 4; b++) {
      const PetscReal v = (d[a][0] * d[b][0] + d[a][1] * d[b][1] + d[a][2] * d[b][2]) / (6 * volume);

      if (!fixed || a == b) PetscCall(MatSetValue(A, node[a], node[b], v, ADD_VALUES));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FillTetrahedra(const Grid *g, Mat A)
{
  static const int paths[6][2] = {{1, 3}, {1, 5}, {2, 3}, {2, 6}, {4, 5}, {4, 6}};
  PetscInt         first, end;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  for (PetscInt z = 0; z + 1 < g->n; z++) {
    for (PetscInt y = 0; y + 1 < g->n; y++) {
      for (PetscInt x = 0; x + 1 < g->n; x++) {
        for (int t = 0; t < 6; t++) {
          const int corner[4] = {0, paths[t][0], paths[t][1], 7};
          PetscInt  node[4];

          for (int k = 0; k < 4; k++)
            node[k] = x + (corner[k] & 1) + g->n * (y + (corner[k] >> 1 & 1) + g->n * (z + (corner[k] >> 2)));
          PetscCall(AddTetrahedron(g, A, node, first, end));
        }
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateProblem(Test *t, const char *name, Mat *A)
{
  static const Grid grids[] = {{"poisson", 3, 18, 1},    {"jumps", 3, 20, 1}, {"anisotropic", 2, 60, 1},
                               {"convection", 2, 60, 1}, {"cube", 3, 12, 3},  {"tetrahedra", 3, 16, 1},
                               {"helmholtz", 3, 18, 1}};
  PetscBool         is;

  PetscFunctionBegin;
  for (int dim = 2; dim <= 3; dim++) {
    PetscCall(PetscStrcmp(name, dim == 2 ? "elasticity2" : "elasticity3", &is));
    if (is) PetscCall(ElasticityCreate(t->comm, t->type, dim, dim == 2 ? 40 : 10, A));
    if (is) PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(grids); k++) {
    const Grid    *g = &grids[k];
    const PetscInt m = g->n * g->n * (g->dim == 3 ? g->n : 1) * g->bs;

    if (strcmp(g->name, name)) continue;
    PetscCall(MatCreate(t->comm, A));
    PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, m, m));
    PetscCall(MatSetBlockSize(*A, g->bs));
    PetscCall(MatSetType(*A, t->type));
    PetscCall(MatSeqAIJSetPreallocation(*A, 27 * g->bs, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*A, 27 * g->bs, NULL, 27 * g->bs, NULL));
    if (g->bs > 1)
      PetscCall(FillCube(g, *A));
    else if (!strcmp(name, "tetrahedra"))
      PetscCall(FillTetrahedra(g, *A));
    else
      PetscCall(FillStencil(g, *A));
    PetscCall(MatAssemble(*A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  SETERRQ(t->comm, PETSC_ERR_PLIB, "No problem is called %s", name);
}

/* ---------------------------------------------------------------- solves */

/* What KSPView() says of the set-up */
static PetscErrorCode CheckSetUp(Test *t, KSP ksp, PetscBool on)
{
  static const char text[] = "aggregates and prolongators made on the device";
  PetscBool         found;

  PetscFunctionBegin;
  PetscCall(ViewContains((PetscObject)ksp, PETSC_VIEWER_DEFAULT, text, &found));
  PetscCheck(found == on, t->comm, PETSC_ERR_USER, "KSPView() %s '%s'", found ? "says" : "does not say", text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How often AIJCUSPARSE has transposed a matrix for a product by cuSPARSE, and copied a matrix to the host */
static PetscErrorCode CountEvents(PetscInt count[2])
{
  static const char *const names[] = {"MatCUSPARSGenT", "MatCUSPARSCopyFr"};
  PetscLogEvent            event;
  PetscEventPerfInfo       info;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    count[k] = 0;
    PetscCall(PetscLogEventGetId(names[k], &event));
    if (event < 0) continue;
    PetscCall(PetscLogEventGetPerfInfo(0, event, &info));
    count[k] = info.count;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets up. On one device, only the coarsest matrix is copied to the host, to be factored, and those of the levels between
   for SOR, with which the eigenvalues are estimated */
static PetscErrorCode SetUp(Test *t, KSP ksp, PetscBool device)
{
  static PetscBool logging  = PETSC_FALSE;
  const int        products = spgemms;
  PetscInt         before[2], after[2], levels, most = 1;
  PetscBool        sor;
  PC               pc, smoother;
  KSP              level;

  PetscFunctionBegin;
  if (!logging) PetscCall(PetscLogDefaultBegin());
  logging = PETSC_TRUE;
  PetscCall(CountEvents(before));
  PetscCall(KSPSetUp(ksp));
  PetscCall(CountEvents(after));
  PetscCheck(!device || spgemms == products, PETSC_COMM_SELF, PETSC_ERR_USER, "%d products by cuSPARSE",
             spgemms - products);
  if (device && t->size == 1) {
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCMGGetLevels(pc, &levels));
    PetscCall(PCMGGetSmoother(pc, levels - 1, &level));
    PetscCall(KSPGetPC(level, &smoother));
    PetscCall(PetscObjectTypeCompare((PetscObject)smoother, PCSOR, &sor));
    if (sor) most = PetscMax(most, levels - 1);
    PetscCheck(after[0] == before[0] && after[1] <= before[1] + most, t->comm, PETSC_ERR_USER,
               "%" PetscInt_FMT " transposes for cuSPARSE, and %" PetscInt_FMT " copies of matrices to the host",
               after[0] - before[0], after[1] - before[1]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateSolver(Test *t, Mat A, PetscBool on, KSP *ksp)
{
  char name[64];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(name, sizeof(name), "-%spc_gamg_device", prefix));
  PetscCall(PetscOptionsSetValue(NULL, name, on ? "1" : "0"));
  PetscCall(MakeSolver(t->comm, A, 300, ksp));
  PetscCall(PetscOptionsClearValue(NULL, name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the device makes the levels: it is for PETSc 3.26 and matrices of our types */
static PetscErrorCode MayRunOnDevice(Test *t, PetscBool *may)
{
  PetscFunctionBegin;
  PetscCall(PetscStrcmp(t->type, now.under, may));
  if (!t->device || PETSC_VERSION_LT(3, 26, 0) || PETSC_VERSION_GE(3, 27, 0)) *may = PETSC_FALSE;
  if (!strncmp(t->type, "aij", 3)) *may = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves, and records what does not depend on the aggregates: the solution, and whether there are more iterations than
   `before` by more than a tenth; `before` is updated if it is 0 */
static PetscErrorCode SolveOnce(Record *r, KSP ksp, Vec b, Vec x, PetscInt *before)
{
  PetscInt           its;
  PetscReal          norm;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetIterationNumber(ksp, &its));
  if (!*before) *before = its;
  PetscCall(RecordInt(r, "the solve converged", reason > 0));
  if (!SINGLE)
    PetscCall(RecordInt(r, "iterations that are too many", PetscMax(0, its - *before - PetscMax(1, *before / 10))));
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCall(RecordReal(r, "norm of the solution", norm, SINGLE ? 1e5 : 1e10));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Splits the argument into a problem and options */
static PetscErrorCode Split(Test *t, char name[], size_t len, const char **options)
{
  const char *space = strchr(t->arg, ' ');

  PetscFunctionBegin;
  PetscCheck(space && (size_t)(space - t->arg) < len, t->comm, PETSC_ERR_PLIB, "No options in %s", t->arg);
  PetscCall(PetscStrncpy(name, t->arg, (size_t)(space - t->arg) + 1));
  *options = space + 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With PETSc's set-up, and with ours; new values; a new set-up after them. The name of a problem that the device does
   not do begins with ! */
PetscErrorCode Multigrid(Test *t, Record *r)
{
  PetscInt    before[3] = {0, 0, 0};
  char        name[32];
  const char *options;
  PetscBool   may, covered;
  Mat         A;
  Vec         x, b;
  KSP         ksp;

  PetscFunctionBegin;
  PetscCall(MayRunOnDevice(t, &may));
  PetscCall(Split(t, name, sizeof(name), &options));
  covered = (PetscBool)(name[0] != '!');
  PetscCall(Options(options, PETSC_TRUE));
  for (int on = 0; on < 2; on++) {
    PetscCall(CreateProblem(t, name + !covered, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecFill(b, 1));
    PetscCall(CreateSolver(t, A, (PetscBool)on, &ksp));
    PetscCall(SetUp(t, ksp, (PetscBool)(on && may && covered)));
    PetscCall(SolveOnce(r, ksp, b, x, &before[0]));
    PetscCall(CheckSetUp(t, ksp, (PetscBool)(on && may && covered)));
    PetscCall(MatShift(A, 0.01));
    PetscCall(MatScale(A, 1.5));
    PetscCall(SolveOnce(r, ksp, b, x, &before[1])); /* with the old prolongators, unless the options say otherwise */
    PetscCall(KSPReset(ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(SolveOnce(r, ksp, b, x, &before[2]));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(RecordType(t, r, "type after the solves", A));
    PetscCall(Destroy(&A, &x, &b));
  }
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P1 = P0 - w D^-1 A P0 with a number w, on the finest level, where P0 is the prolongator without smoothing */
PetscErrorCode MultigridSmoothed(Test *t, Record *r)
{
  const char *options;
  char        name[32], text[256];
  PetscInt    levels;
  PetscReal   norm[2], w[2];
  PetscScalar dot;
  Mat         A, P[2];
  Vec         x, y[2], z, diagonal;
  KSP         ksp[2];
  PC          pc;

  PetscFunctionBegin;
  PetscCall(Split(t, name, sizeof(name), &options));
  PetscCall(CreateProblem(t, name, &A));
  PetscCall(MatCreateVecs(A, &z, &diagonal));
  PetscCall(MatGetDiagonal(A, diagonal));
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s -pc_gamg_agg_nsmooths %d", options, k));
    PetscCall(Options(text, PETSC_TRUE));
    PetscCall(CreateSolver(t, A, PETSC_TRUE, &ksp[k]));
    PetscCall(KSPSetUp(ksp[k]));
    PetscCall(KSPGetPC(ksp[k], &pc));
    PetscCall(PCMGGetLevels(pc, &levels));
    PetscCall(PCMGGetInterpolation(pc, levels - 1, &P[k]));
    PetscCall(MatCreateVecs(P[k], k ? NULL : &x, &y[k]));
    PetscCall(Options(text, PETSC_FALSE));
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(VecFill(x, k + 1));
    PetscCall(MatMult(P[0], x, y[0]));
    PetscCall(MatMult(P[1], x, y[1]));
    PetscCall(MatMult(A, y[0], z));
    PetscCall(VecPointwiseDivide(z, z, diagonal));
    PetscCall(VecAXPY(y[1], -1.0, y[0]));
    PetscCall(VecDot(y[1], z, &dot));
    PetscCall(VecNorm(z, NORM_2, &norm[0]));
    w[k] = -PetscRealPart(dot) / (norm[0] * norm[0]);
    PetscCall(VecAXPY(y[1], w[k], z));
    PetscCall(VecNorm(y[1], NORM_2, &norm[1]));
    PetscCheck(w[k] > 0.1 && norm[1] < 100 * PETSC_MACHINE_EPSILON * norm[0], t->comm, PETSC_ERR_USER,
               "P1 - P0 differs from -%g D^-1 A P0 by %g of %g", (double)w[k], (double)norm[1], (double)norm[0]);
  }
  PetscCall(RecordInt(r, "the same w", PetscAbsReal(w[1] - w[0]) < 1000 * PETSC_MACHINE_EPSILON));
  for (int k = 0; k < 2; k++) PetscCall(Destroy(&ksp[k], &y[k]));
  PetscCall(Destroy(&A, &x, &z, &diagonal));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A changed pattern: everything is set up again */
PetscErrorCode MultigridPattern(Test *t, Record *r)
{
  PetscInt    before[2] = {0, 0}, first, end;
  char        name[32];
  const char *options;
  Mat         A;
  Vec         x, b;
  KSP         ksp;

  PetscFunctionBegin;
  PetscCall(Split(t, name, sizeof(name), &options));
  PetscCall(Options(options, PETSC_TRUE));
  for (int on = 0; on < 2; on++) {
    PetscCall(CreateProblem(t, name, &A));
    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecFill(b, 1));
    PetscCall(CreateSolver(t, A, (PetscBool)on, &ksp));
    PetscCall(SolveOnce(r, ksp, b, x, &before[0]));
    PetscCall(MatGetOwnershipRange(A, &first, &end));
    for (PetscInt k = first; k + 7 < end; k += 3) {
      const PetscInt    at[2]   = {k, k + 7};
      const PetscScalar v[2][2] = {{1, -1}, {-1, 1}};

      PetscCall(MatSetValues(A, 2, at, 2, at, &v[0][0], ADD_VALUES));
    }
    PetscCall(MatAssemble(A));
    PetscCall(SolveOnce(r, ksp, b, x, &before[1]));
    PetscCall(Destroy(&ksp, &A, &x, &b));
  }
  PetscCall(Options(options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices with a few rows, diagonal ones, and ones without rows */
PetscErrorCode MultigridSmall(Test *t, Record *r)
{
  PetscFunctionBegin;
  PetscCall(Options(t->arg, PETSC_TRUE));
  for (PetscInt m = 0; m < 70; m = 2 * m + 1) {
    Mat A;
    Vec x, b;
    KSP ksp;

    for (int diagonal = 0; diagonal < 2; diagonal++) {
      PetscInt before = 1000, first, end;

      PetscCall(MatCreateSized(t->comm, t->type, PETSC_DECIDE, PETSC_DECIDE, m, m, 3, &A));
      PetscCall(MatGetOwnershipRange(A, &first, &end));
      for (PetscInt k = first; k < end; k++) {
        PetscCall(MatSetValue(A, k, k, 2.5, INSERT_VALUES));
        if (k > 0 && !diagonal) PetscCall(MatSetValue(A, k, k - 1, -1., INSERT_VALUES));
        if (k + 1 < m && !diagonal) PetscCall(MatSetValue(A, k, k + 1, -1., INSERT_VALUES));
      }
      PetscCall(MatAssemble(A));
      PetscCall(MatCreateVecs(A, &x, &b));
      PetscCall(VecFill(b, 1));
      PetscCall(CreateSolver(t, A, PETSC_TRUE, &ksp));
      PetscCall(SolveOnce(r, ksp, b, x, &before));
      PetscCall(Destroy(&ksp, &A, &x, &b));
    }
  }
  PetscCall(Options(t->arg, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
