/*
  The Krylov methods on the device: they must take the same steps as PETSc's own methods with AIJ.

  The argument of an operation is a system, letters, and options: "laplace,g:-pc_type jacobi". On the host, and on a
  device if the letter h is given, PETSc's own iterations must have run; otherwise, on a device, ours.

    h  PETSc's own iterations, on a device, too              e  an error if it does not converge
    g  an initial guess   x  the solution as initial guess   m  a monitor of the user's, which reads the solution and the residual
    z  b = 0              n  a NaN in b    i  an Inf in b    t  a convergence test of the user's
    N  a null space       p  another matrix for PC           r  KSPReset() between the two solves
    d  the same solve twice, with the same bits              s  KSPCGSetType(KSP_CG_SYMMETRIC)
    v  vectors on the host                                   k  the same matrix in the second solve
    a  only the residual of the solution, which may be three times as large as AIJ's
    o  b = 1: all numbers are exact                          P  PETSc's name for the type with our matrix, too; on a
                                                                device the methods of the GMRES family orthogonalize there
*/
#include "solves.h"

/* ---------------------------------------------------------------- systems */

static const PetscScalar One = 1.0;

#if defined(PETSC_USE_COMPLEX)
  #define Number(re, im) PetscCMPLX(re, im)
#else
  #define Number(re, im) (re)
#endif

static void Add(PetscInt j, PetscScalar v, PetscInt M, PetscInt *n, PetscInt *cols, PetscScalar *vals)
{
  if (j < 0 || j >= M) return;
  cols[*n]     = j;
  vals[(*n)++] = v;
}

#define ROW(name)                                                                                          \
  static PetscErrorCode name(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols, \
                             PetscScalar *vals)

/* Rows of three diagonals */
#define TRIDIAGONAL(name, low, diagonal, up) \
  ROW(name)                                  \
  {                                          \
    *n = 0;                                  \
    Add(i - 1, low, M, n, cols, vals);       \
    Add(i, diagonal, M, n, cols, vals);      \
    Add(i + 1, up, M, n, cols, vals);        \
    return PETSC_SUCCESS;                    \
  }
/* each the conjugate of its mirror image; equal to its mirror image; neither */
TRIDIAGONAL(Row_Hermitian, Number(-1.0, -0.7), 2.6 + 0.3 * (PetscReal)(i % 3), Number(-1.0, 0.7))
TRIDIAGONAL(Row_Symmetric, Number(-1.0, 0.4), Number(2.6 + 0.3 * (PetscReal)(i % 3), 0.5), Number(-1.0, 0.4))
TRIDIAGONAL(Row_Convection, Number(-1.3, 0.3), Number(2.5 + 0.3 * (PetscReal)(i % 3), 0.4), Number(-0.6, -0.5))

/* Rows of the entry on the diagonal and that of the row's partner, i ^ 1 */
#define PAIRED(name, diagonal, other)    \
  ROW(name)                              \
  {                                      \
    *n = 0;                              \
    Add(i, diagonal, M, n, cols, vals);  \
    Add(i ^ 1, other, M, n, cols, vals); \
    return PETSC_SUCCESS;                \
  }
/* BiCGStab breaks down: Ar is orthogonal to r. With b = 1, As = 0 and s != 0 in the first iteration */
PAIRED(Row_Rotation, 0.0, i % 2 ? -1.0 : 1.0)
PAIRED(Row_Collapse, i % 2 ? 0.0 : 1.0, i % 2 ? 0.0 : 1.0)

/* Rows of the diagonal only: some entries are negative; s = 0 in the first iteration of BiCGStab */
#define POINTWISE(name, diagonal)       \
  ROW(name)                             \
  {                                     \
    *n = 0;                             \
    Add(i, diagonal, M, n, cols, vals); \
    return PETSC_SUCCESS;               \
  }
POINTWISE(Row_Points, i % 3 ? 4.0 : -1.5)
POINTWISE(Row_Twos, 2.0)

/* The rows of another matrix, with v in place of each entry `old`; sum: of the row's other entries */
#define CHANGED(name, other, v)                                            \
  ROW(name)                                                                \
  {                                                                        \
    PetscScalar sum = 0.0;                                                 \
                                                                           \
    PetscCall(other(i, M, N, bs, n, cols, vals));                          \
    for (PetscInt k = 0; k < *n; k++) sum += cols[k] == i ? 0.0 : vals[k]; \
    for (PetscInt k = 0; k < *n; k++) {                                    \
      const PetscBool   on  = (PetscBool)(cols[k] == i);                   \
      const PetscScalar old = vals[k];                                     \
                                                                           \
      (void)on;                                                            \
      (void)sum;                                                           \
      vals[k] = (v);                                                       \
    }                                                                      \
    return PETSC_SUCCESS;                                                  \
  }
/* some eigenvalues are negative; all are; the constants are the null space; a NaN on the diagonal */
CHANGED(Row_Indefinite, Row_Laplace, on ? old - 3.0 : old)
CHANGED(Row_Negative, Row_Laplace, -old)
CHANGED(Row_Singular, Row_Laplace, on ? -sum : old)
CHANGED(Row_NaN, Row_Laplace, i == M / 2 && on ? NAN : old)

/* The last row is scaled by 10^-decades: condition numbers of about 10^decades */
#define GRADED(decades) \
  CHANGED(Row_Graded##decades, Row_Convection, PetscPowReal(10.0, (PetscReal)i * -decades / (PetscReal)M) * old)
GRADED(8)
GRADED(9)
GRADED(11)
GRADED(12)
GRADED(14)

static const Case systems[] = {{"laplace", 320, 320, 1, 0, Row_Laplace},
                               {"larger", 12000, 12000, 1, 0, Row_Laplace},
                               {"many", 400000, 400000, 1, 0, Row_Laplace}, /* more rows than threads of a launch */
                               {"nodes2", 64, 64, 2, 0, Row_Nodes},
                               {"nodes3", 603, 603, 3, 0, Row_Nodes},
                               {"nodes7", 140, 140, 7, 0, Row_Nodes},
                               {"nodes9", 90, 90, 9, 0, Row_Nodes},
                               {"hermitian", 300, 300, 1, 0, Row_Hermitian},
                               {"symmetric", 300, 300, 1, 0, Row_Symmetric},
                               {"indefinite", 320, 320, 1, 0, Row_Indefinite},
                               {"negative", 320, 320, 1, 0, Row_Negative},
                               {"singular", 143, 143, 1, 0, Row_Singular},
                               {"points", 320, 320, 1, 0, Row_Points},
                               {"nan", 320, 320, 1, 0, Row_NaN},
                               {"skew", 143, 143, 1, 0, Row_Laplace, PETSC_TRUE},
                               {"one", 1, 1, 1, 0, Row_Laplace},
                               {"convection", 600, 600, 1, 0, Row_Convection},
                               {"convected", 12000, 12000, 1, 0, Row_Convection},
                               {"rotation", 320, 320, 1, 0, Row_Rotation},
                               {"collapse", 320, 320, 1, 0, Row_Collapse},
                               {"twos", 320, 320, 1, 0, Row_Twos},
                               {"graded8", 400, 400, 1, 0, Row_Graded8},
                               {"graded9", 400, 400, 1, 0, Row_Graded9},
                               {"graded11", 400, 400, 1, 0, Row_Graded11},
                               {"graded12", 400, 400, 1, 0, Row_Graded12},
                               {"graded14", 400, 400, 1, 0, Row_Graded14},
                               {NULL}};

static PetscErrorCode MakeSystem(Test *t, const char *name, const char *type, Mat *A)
{
  Mat         R;
  const Case *c = systems;
  PetscBool   same;

  PetscFunctionBegin;
  for (; c->name; c++) {
    PetscCall(PetscStrcmp(c->name, name, &same));
    if (same) break;
  }
  PetscCheck(c->name, t->comm, PETSC_ERR_USER, "no system %s", name);
  PetscCall(MakeRows(t->comm, c, &R));
  PetscCall(MakeLike(R, type, A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- what the user adds */

static PetscErrorCode CheckView(KSP ksp, const char *text)
{
  PetscBool found;

  PetscFunctionBegin;
  PetscCall(ViewContains((PetscObject)ksp, PETSC_VIEWER_DEFAULT, text, &found));
  PetscCheck(found, PetscObjectComm((PetscObject)ksp), PETSC_ERR_USER, "KSPView() does not say '%s'", text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Monitor(KSP ksp, PetscInt n, PetscReal norm, void *ctx)
{
  Record   *r = (Record *)ctx;
  Vec       x, v, w, residual;
  Mat       A;
  PetscReal size[2];
  PCSide    side;
  PetscBool gmres;

  PetscFunctionBegin;
  PetscCall(RecordInt(r, "monitored iteration", n));
  PetscCall(
      PetscObjectTypeCompareAny((PetscObject)ksp, &gmres, KSPGMRES, KSPDEVICEGMRES, KSPFGMRES, KSPDEVICEFGMRES, ""));
  if (gmres) PetscCall(CheckView(ksp, "Gram-Schmidt"));
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(KSPGetPCSide(ksp, &side));
  PetscCall(MatCreateVecs(A, &v, &w));
  /* with a vector, PETSc does not set a result of the last iteration */
  x = v;
  if (side == PC_RIGHT)
    PetscCall(KSPBuildSolution(ksp, v, NULL));
  else
    PetscCall(KSPBuildSolution(ksp, NULL, &x));
  PetscCall(VecNorm(x, NORM_2, &size[0]));
  PetscCall(KSPBuildResidual(ksp, v, w, &residual));
  PetscCall(VecNorm(residual, NORM_2, &size[1]));
  PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&w));
  if (SINGLE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(RecordAdd(r, "monitored norm", n, norm, 1e-5 * norm + 1e-9, NULL));
  PetscCall(RecordAdd(r, "monitored solution", n, size[0], 1e-5 * size[0] + 1e-9, NULL));
  PetscCall(RecordAdd(r, "monitored residual", n, size[1], 1e-5 * size[1] + 1e-9, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Converges after seven iterations, whatever the norm; reads the solution */
static PetscErrorCode Converged(KSP ksp, PetscInt n, PetscReal norm, KSPConvergedReason *reason, void *ctx)
{
  Record *r = (Record *)ctx;

  PetscFunctionBegin;
  PetscCall(RecordInt(r, "tested iteration", n));
  *reason = n < 7 ? KSP_CONVERGED_ITERATING : KSP_CONVERGED_ATOL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- a solve */

typedef struct {
  char        system[16], letters[16];
  const char *options;
} Problem;

static PetscErrorCode ReadProblem(const char *arg, Problem *p)
{
  const char *colon = strchr(arg, ':'), *comma = strchr(arg, ',');
  size_t      name;

  PetscFunctionBegin;
  PetscCheck(colon, PETSC_COMM_SELF, PETSC_ERR_USER, "no system in %s", arg);
  name = (size_t)((comma && comma < colon ? comma : colon) - arg);
  PetscCall(PetscStrncpy(p->system, arg, name + 1));
  p->letters[0] = 0;
  if (arg[name] == ',') PetscCall(PetscStrncpy(p->letters, arg + name + 1, (size_t)(colon - arg) - name));
  p->options = colon + 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool Has(const Problem *p, char letter)
{
  return (PetscBool) !!strchr(p->letters, letter);
}

/* Creates the method with PETSc's name for AIJ, and with our name for the type under test */
static PetscErrorCode CreateKSP(Test *t, const Problem *p, const char *method, Mat A, Mat P, Record *r, KSP *ksp)
{
  PetscBool ours;
  char      name[64];

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(t->type, now.under, &ours));
  if (Has(p, 'P')) ours = PETSC_FALSE;
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s%s", ours ? "device" : "", method));
  PetscCall(KSPCreate(t->comm, ksp));
  PetscCall(KSPSetOptionsPrefix(*ksp, prefix));
  PetscCall(KSPSetOperators(*ksp, A, P));
  PetscCall(KSPSetType(*ksp, name));
  PetscCall(KSPSetTolerances(*ksp, RTOL, PETSC_DEFAULT, PETSC_DEFAULT, 200));
  PetscCall(KSPSetResidualHistory(*ksp, NULL, 400, PETSC_TRUE));
  PetscCall(KSPSetInitialGuessNonzero(*ksp, (PetscBool)(Has(p, 'g') || Has(p, 'x'))));
  PetscCall(KSPSetErrorIfNotConverged(*ksp, Has(p, 'e')));
  if (Has(p, 's')) PetscCall(KSPCGSetType(*ksp, KSP_CG_SYMMETRIC));
  if (Has(p, 'm')) PetscCall(KSPMonitorSet(*ksp, Monitor, r, NULL));
  if (Has(p, 't')) PetscCall(KSPSetConvergenceTest(*ksp, Converged, r, NULL));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FillVectors(const Problem *p, Mat A, Vec x, Vec b)
{
  PetscInt first, end;

  PetscFunctionBegin;
  PetscCall(VecFill(b, 1));
  PetscCall(VecFill(x, 2));
  if (Has(p, 'z') || Has(p, 'o')) PetscCall(VecSet(b, Has(p, 'z') ? 0.0 : 1.0));
  if (Has(p, 'x')) PetscCall(MatMult(A, x, b));
  if (Has(p, 'n') || Has(p, 'i')) {
    PetscCall(VecGetOwnershipRange(b, &first, &end));
    if (first == 0 && end > 0) PetscCall(VecSetValue(b, 0, Has(p, 'n') ? NAN : PETSC_INFINITY, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(b));
    PetscCall(VecAssemblyEnd(b));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The residual of the solution, relative to b */
static PetscErrorCode RecordAttained(KSP ksp, Record *r)
{
  Mat       A;
  Vec       x, b, w;
  PetscReal residual, norm;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(KSPGetSolution(ksp, &x));
  PetscCall(KSPGetRhs(ksp, &b));
  PetscCall(VecDuplicate(b, &w));
  PetscCall(MatResidual(A, b, x, w));
  PetscCall(VecNorm(w, NORM_2, &residual));
  PetscCall(VecNorm(b, NORM_2, &norm));
  PetscCall(VecDestroy(&w));
  PetscCall(RecordAdd(r, "attained residual", 0, residual / norm, 2 * residual / norm, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RecordSolve(Test *t, const Problem *p, KSP ksp, PetscErrorCode error, Record *r)
{
  KSPConvergedReason reason;
  PetscReal          norm;
  PetscInt           its;
  PetscBool          guess;
  Vec                x;
  PetscErrorCode (*objective)(KSP, PetscReal *); /* in PETSc 3.26 */

  PetscFunctionBegin;
  PetscCall(RecordInt(r, "error", (PetscInt64)error));
  if (error) PetscFunctionReturn(PETSC_SUCCESS);
  if (Has(p, 'a')) {
    PetscCall(RecordAttained(ksp, r));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  /* with Inf in b, cuBLAS's norm of the first residual may be finite on one rank, and is then recorded in the history
     */
  PetscCall(RecordHistory(r, ksp, Has(p, 'i')));
  if (SINGLE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGetTotalIterations(ksp, &its));
  PetscCall(RecordInt(r, "all iterations", its));
  PetscCall(KSPGetResidualNorm(ksp, &norm));
  if (!Has(p, 'i')) PetscCall(RecordAdd(r, "last norm", 0, norm, 1e-3 * norm + 1e-9, NULL));
  PetscCall(KSPGetSolution(ksp, &x));
  /* 1e9 epsilons: 2e-7 */
  if (reason != KSP_DIVERGED_NANORINF && reason != KSP_DIVERGED_DTOL) PetscCall(RecordVec(r, "solution", x, NULL, 1e9));
  PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPCGGetObjFcn_C", &objective));
  PetscCall(KSPGetInitialGuessNonzero(ksp, &guess));
  if (objective && reason > 0 && !guess) { /* with a guess, PETSc begins with another number */
    PetscCall((*objective)(ksp, &norm));
    PetscCall(RecordAdd(r, "objective", 0, norm, 1e-5 * PetscAbsReal(norm) + 1e-9, NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same solve again, bit for bit */
static PetscErrorCode CheckAgain(Test *t, const Problem *p, KSP ksp, Mat A, Vec x, Vec b)
{
  Vec              before;
  const PetscReal *history;
  PetscReal        kept[400];
  PetscInt         n, again;
  PetscBool        same;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(x, &before));
  PetscCall(VecCopy(x, before));
  PetscCall(KSPGetResidualHistory(ksp, &history, &n));
  PetscCall(PetscArraycpy(kept, history, n));
  PetscCall(FillVectors(p, A, x, b));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetResidualHistory(ksp, &history, &again));
  PetscCall(VecEqual(x, before, &same));
  PetscCheck(same && n == again && !memcmp(kept, history, (size_t)n * sizeof(*kept)), t->comm, PETSC_ERR_USER,
             "the same solve gives other numbers");
  PetscCall(VecDestroy(&before));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On a device, the vectors are in device memory, unless a letter requests the host */
static PetscErrorCode MakeVectors(const Problem *p, Mat A, Vec *x, Vec *b)
{
  PetscInt m, M;

  PetscFunctionBegin;
  if (!Has(p, 'v')) {
    PetscCall(MatCreateVecs(A, x, b));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetSize(A, &M, NULL));
  PetscCall(VecCreate(PetscObjectComm((PetscObject)A), b));
  PetscCall(VecSetSizes(*b, m, M));
  PetscCall(VecSetType(*b, VECSTANDARD));
  PetscCall(VecDuplicate(*b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  PETSc counts nested solves, and after an error the count stays too high for the rest of the process: all later solves
  are treated as inner solves, in which too many iterations are no error. So the first error is made here, even if only
  some of the operations run: our solve must return it, and all later solves have the same count
*/
static PetscErrorCode FirstError(Test *t)
{
  static PetscBool done    = PETSC_FALSE;
  const Problem    problem = {"laplace", "e", ""};
  Test             ours    = *t;
  Mat              A;
  Vec              x, b;
  KSP              ksp;
  PetscErrorCode   error;

  PetscFunctionBegin;
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  done      = PETSC_TRUE;
  ours.type = now.under;
  PetscCall(Options(problem.options, PETSC_TRUE)); /* remove the options of another solver */
  PetscCall(MakeSystem(&ours, problem.system, ours.type, &A));
  PetscCall(MakeVectors(&problem, A, &x, &b));
  PetscCall(CreateKSP(&ours, &problem, KSPCG, A, A, NULL, &ksp));
  PetscCall(KSPSetTolerances(ksp, RTOL, PETSC_DEFAULT, PETSC_DEFAULT, 1));
  PetscCall(FillVectors(&problem, A, x, b));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  error = KSPSolve(ksp, b, x);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(error == PETSC_ERR_NOT_CONVERGED, t->comm, PETSC_ERR_PLIB,
             "error %d of a solve that ends after one iteration", (int)error);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A system, solved twice, with new values the second time */
static PetscErrorCode Solve(Test *t, Record *r, const char *method)
{
  Problem        p;
  Mat            A, P = NULL;
  Vec            x, b;
  KSP            ksp;
  MatNullSpace   null;
  PetscBool      ours;
  char           view[64];
  const char    *device;
  PetscBool      host; /* PETSc's iterations must have run, on a device, too */
  PetscErrorCode error;

  PetscFunctionBegin;
  PetscCall(ReadProblem(t->arg, &p));
  device = Has(&p, 'P') && strstr(method, "gmres") ? "orthogonalization on the device" : "iterations on the device";
  host   = (PetscBool)(Has(&p, 'h') || Has(&p, 'v'));
  if (Has(&p, 'e')) PetscCall(FirstError(t));
  PetscCall(Options(p.options, PETSC_TRUE));
  PetscCall(MakeSystem(t, p.system, t->type, &A));
  if (Has(&p, 'p')) PetscCall(MakeSystem(t, "points", t->type, &P));
  if (Has(&p, 'N')) {
    PetscCall(MatNullSpaceCreate(t->comm, PETSC_TRUE, 0, NULL, &null));
    PetscCall(MatSetNullSpace(A, null));
    PetscCall(MatSetTransposeNullSpace(A, null));
    PetscCall(MatNullSpaceDestroy(&null));
  }
  PetscCall(MakeVectors(&p, A, &x, &b));
  PetscCall(CreateKSP(t, &p, method, A, P ? P : A, r, &ksp));
  PetscCall(PetscStrcmp(t->type, now.under, &ours));
  for (int k = 0; k < 2; k++) {
    PetscCall(FillVectors(&p, A, x, b));
    if (Has(&p, 'e')) PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    error = KSPSolve(ksp, b, x);
    if (Has(&p, 'e')) PetscCall(PetscPopErrorHandler());
    PetscCall(Has(&p, 'e') ? PETSC_SUCCESS : error);
    PetscCall(RecordSolve(t, &p, ksp, error, r));
    if (Has(&p, 'd') && k == 0) PetscCall(CheckAgain(t, &p, ksp, A, x, b));
    PetscCall(PetscSNPrintf(view, sizeof(view), Has(&p, 'P') ? "type: %s" : "iterations of PETSc's %s: ", method));
    if (ours && !error) PetscCall(CheckView(ksp, t->device && !host ? device : view));
    if (error) break; /* PETSc guarantees nothing after an error */
    if (Has(&p, 'r')) PetscCall(KSPReset(ksp));
    if (Has(&p, 'r')) PetscCall(KSPSetOperators(ksp, A, P ? P : A));
    if (Has(&p, 'k')) continue;
    if (!Has(&p, 'N')) PetscCall(MatShift(A, p.system[0] == 'n' && p.system[1] == 'e' ? -One : One));
    PetscCall(MatScale(A, 1.5));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&P));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(Options(p.options, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define METHOD(name, method)                     \
  static PetscErrorCode name(Test *t, Record *r) \
  {                                              \
    return Solve(t, r, method);                  \
  }
METHOD(CG, "cg")
METHOD(Chebyshev, "chebyshev")
METHOD(BCGS, "bcgs")
METHOD(GMRES, "gmres")
METHOD(FGMRES, "fgmres")
METHOD(LGMRES, "lgmres")
#if !defined(PETSC_USE_COMPLEX)
METHOD(DGMRES, "dgmres")
#endif

/* Only AIJ is a reference: PETSc's other types have nothing to do with the methods */
#define WHEN (ONCE | STRICT | NOPERM | NOCUDA)

/* Ill-conditioned systems, until nothing more is gained */
#define GRADED_OPERATION(name, decades, letters, refine)                                                      \
  {                                                                                                           \
    name, GMRES, WHEN,                                                                                        \
        "graded" decades "," letters ":-pc_type none -ksp_rtol 1e-15 -ksp_gmres_restart 100 -ksp_max_it 200 " \
        "-ksp_orthogonalization_cgs_refinement_type " refine                                                  \
  }
#define GRADED_OPERATIONS(decades)                                                              \
  GRADED_OPERATION("devicegmres-graded" decades, decades, "a", "refine_never"),                 \
      GRADED_OPERATION("gmres-graded" decades, decades, "Pa", "refine_never"),                  \
      GRADED_OPERATION("devicegmres-graded" decades "-refined", decades, "a", "refine_always"), \
      GRADED_OPERATION("gmres-graded" decades "-refined", decades, "Pa", "refine_always")

static const Operation operations[] = {
    {"none", CG, WHEN, "laplace,d:-pc_type none"},
    {"none-unpreconditioned", CG, WHEN, "laplace:-pc_type none -ksp_norm_type unpreconditioned"},
    {"none-natural", CG, WHEN, "laplace,d:-pc_type none -ksp_norm_type natural"},
    {"none-nonorm", CG, WHEN, "laplace:-pc_type none -ksp_norm_type none -ksp_max_it 20"},
    {"jacobi", CG, WHEN, "hermitian,d:-pc_type jacobi"},
    {"jacobi-unpreconditioned", CG, WHEN, "hermitian:-pc_type jacobi -ksp_norm_type unpreconditioned"},
    {"jacobi-natural", CG, WHEN, "hermitian:-pc_type jacobi -ksp_norm_type natural"},
    {"jacobi-nonorm", CG, WHEN, "hermitian:-pc_type jacobi -ksp_norm_type none -ksp_max_it 20"},
    {"jacobi-abs", CG, WHEN, "negative:-pc_type jacobi -pc_jacobi_abs"},
    {"jacobi-rowmax", CG, WHEN | (PetscDefined(HAVE_CUDA) ? ONHOST : 0),
     "laplace:-pc_type jacobi -pc_jacobi_type rowmax"},
    {"pbjacobi", CG, WHEN, "nodes3,d:-pc_type pbjacobi"},
    {"pbjacobi-unpreconditioned", CG, WHEN, "nodes3:-pc_type pbjacobi -ksp_norm_type unpreconditioned"},
    {"pbjacobi-natural", CG, WHEN, "nodes7:-pc_type pbjacobi -ksp_norm_type natural"},
    {"pbjacobi-two", CG, WHEN, "nodes2:-pc_type pbjacobi"},
    {"pbjacobi-nine", CG, WHEN, "nodes9:-pc_type pbjacobi"},
    {"pbjacobi-one", CG, WHEN, "laplace:-pc_type pbjacobi"},
    {"ilu", CG, WHEN, "laplace,d:-pc_type bjacobi -sub_pc_type ilu"},
    {"ilu-unpreconditioned", CG, WHEN, "laplace:-pc_type bjacobi -sub_pc_type ilu -ksp_norm_type unpreconditioned"},
    {"ilu-natural", CG, WHEN, "laplace:-pc_type bjacobi -sub_pc_type icc -ksp_norm_type natural"},
    {"ilu-nonorm", CG, WHEN, "laplace:-pc_type bjacobi -sub_pc_type ilu -ksp_norm_type none -ksp_max_it 9"},
    {"gamg", CG, WHEN, "larger:-pc_type gamg -pc_gamg_device 0 -mg_levels_pc_type jacobi"},
    {"larger", CG, WHEN, "larger,d:-pc_type jacobi -ksp_max_it 150"},
    {"symmetric", CG, WHEN, "symmetric,d:-pc_type jacobi -ksp_cg_type symmetric"},
    {"symmetric-set", CG, WHEN, "symmetric,s:-pc_type none"},
    {"symmetric-natural", CG, WHEN, "symmetric,s:-pc_type none -ksp_norm_type natural"},
    {"hermitian", CG, WHEN, "hermitian:-pc_type none -ksp_cg_type hermitian"},
    {"guess", CG, WHEN, "laplace,gd:-pc_type jacobi"},
    {"guess-unpreconditioned", CG, WHEN, "laplace,g:-pc_type none -ksp_norm_type unpreconditioned"},
    {"guess-ilu", CG, WHEN, "laplace,g:-pc_type bjacobi -ksp_norm_type natural"},
    {"guess-initial", CG, WHEN, "laplace,g:-pc_type none -ksp_converged_use_initial_residual_norm"},
    {"guess-min", CG, WHEN, "laplace,g:-pc_type none -ksp_converged_use_min_initial_residual_norm"},
    {"guess-knoll", CG, WHEN, "laplace:-pc_type jacobi -ksp_knoll"},
    {"guess-exact", CG, WHEN, "laplace,x:-pc_type jacobi"},
    {"zero", CG, WHEN, "laplace,z:-pc_type jacobi"},
    {"zero-guess", CG, WHEN, "laplace,zg:-pc_type none"},
    {"zero-nonorm", CG, WHEN, "laplace,z:-pc_type none -ksp_norm_type none"},
    {"its", CG, WHEN, "laplace:-pc_type none -ksp_max_it 5"},
    {"its-one", CG, WHEN, "laplace:-pc_type none -ksp_max_it 1"},
    {"its-zero", CG, WHEN, "laplace:-pc_type none -ksp_max_it 0"},
    {"its-converged", CG, WHEN, "laplace:-pc_type jacobi -ksp_max_it 5 -ksp_converged_maxits"},
    {"its-least", CG, WHEN, "laplace:-pc_type none -ksp_min_it 12 -ksp_rtol 0.5"},
    {"check-norm", CG, WHEN, "laplace:-pc_type none -ksp_check_norm_iteration 6 -ksp_rtol 0.5"},
    {"check-norm-natural", CG, WHEN,
     "laplace:-pc_type jacobi -ksp_norm_type natural -ksp_check_norm_iteration 6 -ksp_rtol 0.5"},
    {"atol", CG, WHEN, "laplace:-pc_type none -ksp_rtol 0 -ksp_atol 1e-2"},
    {"dtol", CG, WHEN, "laplace:-pc_type none -ksp_divtol 0.5 -ksp_rtol 1e-4"},
    {"indefinite-mat", CG, WHEN, "indefinite:-pc_type none"},
    {"indefinite-mat-jacobi", CG, WHEN, "indefinite:-pc_type jacobi"},
    {"indefinite-error", CG, WHEN, "indefinite,e:-pc_type none"},
    {"indefinite-pc", CG, WHEN, "laplace,p:-pc_type jacobi"},
    {"indefinite-pc-error", CG, WHEN, "laplace,pe:-pc_type jacobi"},
    {"negative", CG, WHEN, "negative:-pc_type none"},
    {"negative-jacobi", CG, WHEN, "negative:-pc_type jacobi -ksp_norm_type natural"},
    {"its-error", CG, WHEN, "laplace,e:-pc_type none -ksp_max_it 5"},
    {"nan", CG, WHEN, "laplace,n:-pc_type jacobi"},
    {"nan-nonorm", CG, WHEN, "laplace,n:-pc_type none -ksp_norm_type none"},
    {"inf", CG, WHEN, "laplace,i:-pc_type jacobi"},
    /* In a debug build PETSc does not support NaN on some of the ranks */
    {"nan-error", CG, WHEN | (PetscDefined(USE_DEBUG) ? SEQ : 0), "laplace,ne:-pc_type jacobi"},
    {"nullspace", CG, WHEN, "singular,N:-pc_type none -ksp_rtol 1e-6"},
    {"nullspace-jacobi", CG, WHEN, "singular,N:-pc_type jacobi -ksp_rtol 1e-6"},
    {"monitor", CG, WHEN, "laplace,m:-pc_type jacobi"},
    {"monitor-ilu", CG, WHEN, "laplace,m:-pc_type bjacobi -ksp_norm_type unpreconditioned"},
    {"monitor-guess", CG, WHEN, "laplace,mg:-pc_type none"},
    {"test", CG, WHEN, "laplace,t:-pc_type jacobi"},
    {"test-monitor", CG, WHEN, "laplace,tm:-pc_type none -ksp_norm_type natural"},
    {"many", CG, WHEN | DEVICE, "many,d:-pc_type none -ksp_max_it 9"},
    {"many-bcgs", BCGS, WHEN | DEVICE, "many,d:-pc_type jacobi -ksp_max_it 9 -ksp_pc_side right"},
    {"many-gmres", GMRES, WHEN | DEVICE, "many,d:-pc_type jacobi -ksp_max_it 9 -ksp_gmres_restart 5"},
    {"reset", CG, WHEN, "laplace,rd:-pc_type jacobi"},
    {"skew", CG, WHEN, "skew,d:-pc_type jacobi"},
    {"one", CG, WHEN, "one:-pc_type none"},
    {"single-reduction", CG, WHEN, "laplace,h:-pc_type jacobi -ksp_cg_single_reduction"},
    {"eigenvalues", CG, WHEN, "laplace,h:-pc_type jacobi -ksp_view_eigenvalues ascii:/dev/null"},
    {"hostvectors", CG, WHEN, "laplace,v:-pc_type jacobi"},
    {"dtol-later", CG, WHEN, "laplace:-pc_type none -ksp_divtol 1e-3 -ksp_rtol 1e-12 -ksp_check_norm_iteration 3"},
    {"nan-product", CG, WHEN, "nan:-pc_type none"},
    {"nan-product-jacobi", CG, WHEN, "nan:-pc_type bjacobi -sub_pc_type none -ksp_norm_type natural"},
    {"bcgs", BCGS, WHEN, "convection,d:-pc_type none"},
    {"bcgs-right", BCGS, WHEN, "convection,d:-pc_type none -ksp_pc_side right"},
    {"bcgs-nonorm", BCGS, WHEN, "convection:-pc_type none -ksp_norm_type none -ksp_max_it 9"},
    {"bcgs-right-nonorm", BCGS, WHEN, "convection:-pc_type none -ksp_norm_type none -ksp_max_it 9 -ksp_pc_side right"},
    {"bcgs-jacobi", BCGS, WHEN, "convection,d:-pc_type jacobi"},
    {"bcgs-jacobi-right", BCGS, WHEN, "convection,d:-pc_type jacobi -ksp_pc_side right"},
    {"bcgs-jacobi-nonorm", BCGS, WHEN, "convection,d:-pc_type jacobi -ksp_norm_type none -ksp_max_it 9"},
    {"bcgs-jacobi-right-nonorm", BCGS, WHEN,
     "convection:-pc_type jacobi -ksp_norm_type none -ksp_max_it 9 -ksp_pc_side right"},
    {"bcgs-jacobi-rowmax", BCGS, WHEN | (PetscDefined(HAVE_CUDA) ? ONHOST : 0),
     "convection:-pc_type jacobi -pc_jacobi_type rowmax"},
    {"bcgs-pbjacobi-2", BCGS, WHEN, "nodes2,d:-pc_type pbjacobi -ksp_rtol 1e-4"},
    {"bcgs-pbjacobi-2-right", BCGS, WHEN, "nodes2,d:-pc_type pbjacobi -ksp_rtol 1e-4 -ksp_pc_side right"},
    {"bcgs-pbjacobi-3", BCGS, WHEN, "nodes3,d:-pc_type pbjacobi -ksp_rtol 1e-4"},
    {"bcgs-pbjacobi-3-right", BCGS, WHEN, "nodes3,d:-pc_type pbjacobi -ksp_rtol 1e-4 -ksp_pc_side right"},
    {"bcgs-pbjacobi-7", BCGS, WHEN, "nodes7,d:-pc_type pbjacobi -ksp_rtol 1e-4"},
    {"bcgs-pbjacobi-7-right", BCGS, WHEN, "nodes7,d:-pc_type pbjacobi -ksp_rtol 1e-4 -ksp_pc_side right"},
    {"bcgs-pbjacobi-9", BCGS, WHEN, "nodes9,d:-pc_type pbjacobi -ksp_rtol 1e-4"},
    {"bcgs-pbjacobi-9-right", BCGS, WHEN, "nodes9,d:-pc_type pbjacobi -ksp_rtol 1e-4 -ksp_pc_side right"},
    {"bcgs-ilu", BCGS, WHEN, "convection,d:-pc_type bjacobi -sub_pc_type ilu"},
    {"bcgs-ilu-right", BCGS, WHEN, "convection,d:-pc_type bjacobi -sub_pc_type ilu -ksp_pc_side right"},
    {"bcgs-ilu-right-guess", BCGS, WHEN, "convection,gd:-pc_type bjacobi -sub_pc_type ilu -ksp_pc_side right"},
    {"bcgs-ilu-nonorm", BCGS, WHEN, "convection:-pc_type bjacobi -ksp_norm_type none -ksp_max_it 1"},
    {"bcgs-gamg", BCGS, WHEN, "larger:-pc_type gamg -pc_gamg_device 0 -mg_levels_pc_type jacobi -ksp_rtol 1e-3"},
    {"bcgs-larger", BCGS, WHEN, "convected,d:-pc_type jacobi"},
    {"bcgs-hermitian", BCGS, WHEN, "hermitian,d:-pc_type jacobi"},
    {"bcgs-guess", BCGS, WHEN, "convection,gd:-pc_type jacobi"},
    {"bcgs-guess-right", BCGS, WHEN, "convection,gd:-pc_type jacobi -ksp_pc_side right"},
    {"bcgs-guess-blocks", BCGS, WHEN, "nodes3,gd:-pc_type pbjacobi -ksp_rtol 1e-4 -ksp_pc_side right"},
    {"bcgs-guess-none", BCGS, WHEN, "convection,g:-pc_type none -ksp_converged_use_initial_residual_norm"},
    {"bcgs-guess-min", BCGS, WHEN,
     "convection,g:-pc_type none -ksp_converged_use_min_initial_residual_norm -ksp_pc_side right"},
    {"bcgs-guess-knoll", BCGS, WHEN, "convection:-pc_type jacobi -ksp_knoll"},
    {"bcgs-guess-exact", BCGS, WHEN, "convection,x:-pc_type jacobi -ksp_pc_side right"},
    {"bcgs-guess-exact-ilu", BCGS, WHEN, "convection,x:-pc_type bjacobi -ksp_pc_side right"},
    {"bcgs-zero", BCGS, WHEN, "convection,z:-pc_type jacobi"},
    {"bcgs-zero-guess", BCGS, WHEN, "convection,zg:-pc_type none -ksp_pc_side right -ksp_rtol 1e-2"},
    {"bcgs-its", BCGS, WHEN, "convection:-pc_type none -ksp_max_it 5"},
    {"bcgs-its-one", BCGS, WHEN, "convection:-pc_type jacobi -ksp_max_it 1 -ksp_pc_side right"},
    {"bcgs-its-zero", BCGS, WHEN, "convection:-pc_type none -ksp_max_it 0"},
    {"bcgs-its-converged", BCGS, WHEN, "convection:-pc_type jacobi -ksp_max_it 5 -ksp_converged_maxits"},
    {"bcgs-its-least", BCGS, WHEN, "convection:-pc_type none -ksp_min_it 9 -ksp_rtol 0.5"},
    {"bcgs-check-norm", BCGS, WHEN, "convection:-pc_type none -ksp_check_norm_iteration 6 -ksp_rtol 0.5"},
    {"bcgs-atol", BCGS, WHEN, "convection:-pc_type none -ksp_rtol 0 -ksp_atol 1e-2"},
    {"bcgs-dtol", BCGS, WHEN, "convection:-pc_type none -ksp_divtol 1e-3 -ksp_rtol 1e-12 -ksp_check_norm_iteration 3"},
    {"bcgs-indefinite-pc", BCGS, WHEN, "laplace,p:-pc_type jacobi -ksp_max_it 6"},
    {"bcgs-breakdown", BCGS, WHEN, "rotation,ok:-pc_type none"},
    {"bcgs-breakdown-right", BCGS, WHEN, "rotation,ok:-pc_type none -ksp_pc_side right"},
    {"bcgs-breakdown-error", BCGS, WHEN, "rotation,oe:-pc_type none"},
    {"bcgs-breakdown-ilu", BCGS, WHEN, "rotation,ok:-pc_type bjacobi -sub_pc_type none -ksp_pc_side right"},
    {"bcgs-singular", BCGS, WHEN, "collapse,ok:-pc_type none"},
    {"bcgs-singular-error", BCGS, WHEN, "collapse,oe:-pc_type none -ksp_pc_side right"},
    {"bcgs-singular-ilu", BCGS, WHEN, "collapse,ok:-pc_type bjacobi -sub_pc_type none"},
    {"bcgs-lucky", BCGS, WHEN, "twos,ok:-pc_type none"},
    {"bcgs-lucky-jacobi", BCGS, WHEN, "twos,ok:-pc_type jacobi -ksp_pc_side right"},
    /* on a device complex scalar products are rounded, so that s is not exactly zero */
    {"bcgs-lucky-jacobi-left", BCGS, WHEN | (PetscDefined(USE_COMPLEX) ? ONHOST : 0), "twos,okg:-pc_type jacobi"},
    {"bcgs-lucky-ilu", BCGS, WHEN, "twos,ok:-pc_type bjacobi -ksp_pc_side right"},
    {"bcgs-nan", BCGS, WHEN, "convection,n:-pc_type jacobi"},
    {"bcgs-nan-right", BCGS, WHEN, "convection,n:-pc_type jacobi -ksp_pc_side right"},
    {"bcgs-nan-nonorm", BCGS, WHEN, "convection,n:-pc_type none -ksp_norm_type none"},
    {"bcgs-nan-product", BCGS, WHEN, "nan:-pc_type none"},
    {"bcgs-nan-product-right", BCGS, WHEN, "nan:-pc_type bjacobi -sub_pc_type none -ksp_pc_side right"},
    {"bcgs-inf", BCGS, WHEN, "convection,i:-pc_type jacobi"},
    {"bcgs-nan-error", BCGS, WHEN | (PetscDefined(USE_DEBUG) ? SEQ : 0), "convection,ne:-pc_type jacobi"},
    {"bcgs-nullspace", BCGS, WHEN, "singular,N:-pc_type none -ksp_rtol 1e-2"},
    {"bcgs-nullspace-jacobi", BCGS, WHEN, "singular,N:-pc_type jacobi -ksp_rtol 1e-2 -ksp_pc_side right"},
    {"bcgs-monitor", BCGS, WHEN, "convection,m:-pc_type jacobi"},
    {"bcgs-monitor-right", BCGS, WHEN, "convection,mg:-pc_type jacobi -ksp_pc_side right"},
    {"bcgs-monitor-ilu", BCGS, WHEN, "convection,mg:-pc_type bjacobi -ksp_pc_side right"},
    {"bcgs-test", BCGS, WHEN, "convection,t:-pc_type jacobi"},
    {"bcgs-test-monitor", BCGS, WHEN, "convection,tm:-pc_type none -ksp_pc_side right"},
    {"bcgs-reset", BCGS, WHEN, "convection,rd:-pc_type jacobi -ksp_pc_side right"},
    {"bcgs-reset-ilu", BCGS, WHEN, "convection,rgd:-pc_type bjacobi -ksp_pc_side right"},
    {"bcgs-skew", BCGS, WHEN, "skew,d:-pc_type jacobi -ksp_rtol 1e-2"},
    /* without -ksp_atol, rounding would decide whether the residual is zero */
    {"bcgs-one", BCGS, WHEN, "one:-pc_type none -ksp_atol 1e-10"},
    {"bcgs-eigenvalues", BCGS, WHEN, "convection,h:-pc_type jacobi -ksp_view_eigenvalues ascii:/dev/null"},
    {"bcgs-hostvectors", BCGS, WHEN, "convection,v:-pc_type jacobi -ksp_pc_side right"},
    {"chebyshev", Chebyshev, WHEN,
     "laplace,d:-pc_type none -ksp_norm_type none -ksp_chebyshev_eigenvalues 0.1,8 -ksp_max_it 12"},
    {"chebyshev-one", Chebyshev, WHEN,
     "laplace:-pc_type jacobi -ksp_norm_type none -ksp_chebyshev_eigenvalues 0.1,8 -ksp_max_it 1"},
    {"chebyshev-two", Chebyshev, WHEN,
     "laplace,g:-pc_type jacobi -ksp_norm_type none -ksp_chebyshev_eigenvalues 0.1,8 -ksp_max_it 2"},
    {"chebyshev-three", Chebyshev, WHEN,
     "hermitian,g:-pc_type jacobi -ksp_norm_type none -ksp_chebyshev_eigenvalues 0.1,8 -ksp_max_it 3"},
    {"chebyshev-jacobi", Chebyshev, WHEN,
     "hermitian,d:-pc_type jacobi -ksp_norm_type none -ksp_chebyshev_eigenvalues 0.2,2 -ksp_max_it 9"},
    {"chebyshev-blocks", Chebyshev, WHEN,
     "nodes3,gd:-pc_type pbjacobi -ksp_norm_type none -ksp_chebyshev_eigenvalues 0.2,2 -ksp_max_it 6"},
    {"chebyshev-estimate", Chebyshev, WHEN, "laplace,r:-pc_type jacobi -ksp_norm_type none -ksp_max_it 4"},
    {"chebyshev-replaced", Chebyshev, WHEN,
     "laplace,Pd:-pc_type jacobi -ksp_norm_type none -ksp_chebyshev_eigenvalues 0.1,2 -ksp_max_it 5"},
    {"chebyshev-off", Chebyshev, WHEN,
     "laplace,h:-pc_type jacobi -ksp_norm_type none -ksp_chebyshev_eigenvalues 0.1,2 -ksp_max_it 5 -ksp_device 0"},
    {"chebyshev-replaced-off", Chebyshev, WHEN,
     "laplace,Ph:-pc_type jacobi -ksp_norm_type none -ksp_chebyshev_eigenvalues 0.1,2 -ksp_max_it 5 -ksp_device 0"},
    {"off", CG, WHEN, "laplace,h:-pc_type jacobi -ksp_device 0"},
    {"smoothers", CG, WHEN,
     "laplace,P:-pc_type gamg -pc_gamg_device 0 -pc_gamg_coarse_eq_limit 10 -mg_levels_ksp_type chebyshev "
     "-mg_levels_pc_type jacobi"},
    {"chebyshev-norms", Chebyshev, WHEN, "laplace,h:-pc_type jacobi -ksp_max_it 20 -ksp_chebyshev_eigenvalues 0.1,2"},
    {"chebyshev-ilu", Chebyshev, WHEN,
     "laplace,h:-pc_type bjacobi -ksp_norm_type none -ksp_max_it 4 -ksp_chebyshev_eigenvalues 0.1,2"},
    {"gmres", GMRES, WHEN, "convection,Pd:-pc_type jacobi"},
    {"gmres-right", GMRES, WHEN, "convection,Pg:-pc_type jacobi -ksp_pc_side right"},
    {"gmres-restart", GMRES, WHEN, "laplace,Pd:-pc_type none -ksp_gmres_restart 7 -ksp_max_it 60"},
    {"gmres-one", GMRES, WHEN, "convection,P:-pc_type jacobi -ksp_gmres_restart 1 -ksp_max_it 20"},
    {"gmres-many", GMRES, WHEN, "larger,Pd:-pc_type none -ksp_gmres_restart 100 -ksp_max_it 120"},
    {"gmres-ilu", GMRES, WHEN, "convected,P:-pc_type bjacobi -sub_pc_type ilu"},
    {"gmres-refined", GMRES, WHEN,
     "laplace,Pd:-pc_type jacobi -ksp_orthogonalization_cgs_refinement_type refine_always"},
    {"gmres-refined-ifneeded", GMRES, WHEN,
     "laplace,Pd:-pc_type jacobi -ksp_orthogonalization_cgs_refinement_type refine_ifneeded"},
    {"gmres-modified", GMRES, WHEN, "laplace,Ph:-pc_type jacobi -ksp_orthogonalization mgs"},
    {"gmres-off", GMRES, WHEN, "laplace,Ph:-pc_type jacobi -ksp_device_orthogonalization 0"},
    {"gmres-hostvectors", GMRES, WHEN, "laplace,Pv:-pc_type jacobi"},
    {"gmres-monitor", GMRES, WHEN, "laplace,Pm:-pc_type jacobi -ksp_gmres_restart 9"},
    {"gmres-zero", GMRES, WHEN, "laplace,Pz:-pc_type jacobi"},
    {"gmres-exact", GMRES, WHEN, "twos,Pok:-pc_type none -ksp_atol 1e-10"},
    {"gmres-nan", GMRES, WHEN, "convection,Pn:-pc_type jacobi"},
    {"gmres-nan-product", GMRES, WHEN, "nan,P:-pc_type none"},
    {"gmres-nullspace", GMRES, WHEN, "singular,PN:-pc_type jacobi -ksp_rtol 1e-4"},
    {"gmres-reset", GMRES, WHEN, "convection,Prd:-pc_type jacobi"},
    {"gmres-blocks", GMRES, WHEN, "nodes3,P:-pc_type pbjacobi"},
    {"devicegmres", GMRES, WHEN, "convection,d:-pc_type none"},
    {"devicegmres-jacobi", GMRES, WHEN, "convection,d:-pc_type jacobi"},
    {"devicegmres-jacobi-right", GMRES, WHEN, "convection,dg:-pc_type jacobi -ksp_pc_side right"},
    {"devicegmres-right", GMRES, WHEN, "convection,dg:-pc_type none -ksp_pc_side right"},
    {"devicegmres-symmetric", GMRES, WHEN, "hermitian:-pc_type jacobi -ksp_pc_side symmetric"},
    {"devicegmres-restart", GMRES, WHEN, "laplace,d:-pc_type none -ksp_gmres_restart 7 -ksp_max_it 60"},
    {"devicegmres-restart-right", GMRES, WHEN, "laplace,dg:-pc_type jacobi -ksp_gmres_restart 5 -ksp_pc_side right"},
    {"devicegmres-one", GMRES, WHEN, "convection:-pc_type jacobi -ksp_gmres_restart 1 -ksp_max_it 20"},
    {"devicegmres-many", GMRES, WHEN, "larger,d:-pc_type none -ksp_gmres_restart 100 -ksp_max_it 120"},
    {"devicegmres-many-right", GMRES, WHEN,
     "larger,dg:-pc_type jacobi -ksp_gmres_restart 70 -ksp_max_it 120 -ksp_pc_side right"},
    {"devicegmres-ilu", GMRES, WHEN, "convected,d:-pc_type bjacobi -sub_pc_type ilu"},
    {"devicegmres-ilu-right", GMRES, WHEN, "convected,dg:-pc_type bjacobi -sub_pc_type ilu -ksp_pc_side right"},
    {"devicegmres-gamg", GMRES, WHEN,
     "larger:-pc_type gamg -pc_gamg_device 0 -mg_levels_pc_type jacobi -ksp_rtol 1e-3"},
    {"devicegmres-longest", GMRES, WHEN, "larger:-pc_type jacobi -ksp_gmres_restart 200"},
    {"devicegmres-blocks", GMRES, WHEN, "nodes3,d:-pc_type pbjacobi"},
    {"devicegmres-blocks-right", GMRES, WHEN, "nodes3,dg:-pc_type pbjacobi -ksp_pc_side right"},
    {"devicegmres-blocks-restart", GMRES, WHEN, "nodes7,dg:-pc_type pbjacobi -ksp_gmres_restart 4"},
    {"devicegmres-blocks-restart-right", GMRES, WHEN,
     "nodes2,dg:-pc_type pbjacobi -ksp_gmres_restart 4 -ksp_pc_side right"},
    {"devicegmres-blocks-many", GMRES, WHEN,
     "nodes3:-pc_type pbjacobi -ksp_norm_type none -ksp_max_it 40 -ksp_gmres_restart 40"},
    {"devicegmres-blocks-nine", GMRES, WHEN, "nodes9,d:-pc_type pbjacobi"},
    {"devicegmres-blocks-refined", GMRES, WHEN,
     "nodes3:-pc_type pbjacobi -ksp_pc_side right -ksp_orthogonalization_cgs_refinement_type refine_always"},
    {"devicegmres-refined", GMRES, WHEN,
     "laplace,d:-pc_type jacobi -ksp_orthogonalization_cgs_refinement_type refine_always"},
    {"devicegmres-refined-ifneeded", GMRES, WHEN,
     "laplace,h:-pc_type jacobi -ksp_orthogonalization_cgs_refinement_type refine_ifneeded"},
    {"devicegmres-modified", GMRES, WHEN, "laplace,h:-pc_type jacobi -ksp_orthogonalization mgs"},
    {"devicegmres-eigenvalues", GMRES, WHEN, "laplace,h:-pc_type jacobi -ksp_view_eigenvalues ascii:/dev/null"},
    {"devicegmres-hostvectors", GMRES, WHEN, "laplace,v:-pc_type jacobi"},
    {"devicegmres-test", GMRES, WHEN, "convection,t:-pc_type jacobi -ksp_gmres_restart 4"},
    {"devicegmres-monitor", GMRES, WHEN, "laplace,m:-pc_type jacobi -ksp_gmres_restart 9"},
    {"devicegmres-monitor-ilu", GMRES, WHEN, "laplace,m:-pc_type bjacobi -sub_pc_type ilu -ksp_pc_side right"},
    {"devicegmres-zero", GMRES, WHEN, "laplace,z:-pc_type jacobi"},
    {"devicegmres-guess-exact", GMRES, WHEN, "convection,x:-pc_type jacobi"},
    {"devicegmres-nonorm", GMRES, WHEN, "convection:-pc_type jacobi -ksp_norm_type none -ksp_max_it 9"},
    {"devicegmres-its", GMRES, WHEN, "laplace:-pc_type none -ksp_max_it 5"},
    {"devicegmres-its-zero", GMRES, WHEN, "laplace:-pc_type none -ksp_max_it 0"},
    {"devicegmres-its-converged", GMRES, WHEN, "laplace:-pc_type jacobi -ksp_max_it 5 -ksp_converged_maxits"},
    {"devicegmres-its-least", GMRES, WHEN, "laplace:-pc_type none -ksp_min_it 12 -ksp_rtol 0.5"},
    {"devicegmres-its-error", GMRES, WHEN, "laplace,e:-pc_type none -ksp_max_it 5"},
    {"devicegmres-atol", GMRES, WHEN, "laplace:-pc_type none -ksp_rtol 0 -ksp_atol 1e-2"},
    {"devicegmres-exact", GMRES, WHEN, "twos,ok:-pc_type none -ksp_atol 1e-10"},
    {"devicegmres-rotation", GMRES, WHEN, "rotation,k:-pc_type none"},
    {"devicegmres-nan", GMRES, WHEN, "convection,n:-pc_type jacobi"},
    {"devicegmres-nan-product", GMRES, WHEN, "nan:-pc_type none"},
    {"devicegmres-nullspace", GMRES, WHEN, "singular,N:-pc_type jacobi -ksp_rtol 1e-4"},
    {"devicegmres-reset", GMRES, WHEN, "convection,rd:-pc_type jacobi"},
    {"devicegmres-off", GMRES, WHEN, "laplace,h:-pc_type jacobi -ksp_device 0"},
    GRADED_OPERATIONS("8"),
    GRADED_OPERATIONS("9"),
    GRADED_OPERATIONS("11"),
    GRADED_OPERATIONS("12"),
    GRADED_OPERATIONS("14"),
    {"devicefgmres", FGMRES, WHEN, "convection,d:-pc_type none"},
    {"devicefgmres-jacobi", FGMRES, WHEN, "convection,dg:-pc_type jacobi -ksp_gmres_restart 6"},
    {"devicefgmres-blocks", FGMRES, WHEN, "nodes3,d:-pc_type pbjacobi -ksp_gmres_restart 6"},
    {"devicefgmres-ilu", FGMRES, WHEN, "convected,dg:-pc_type bjacobi -sub_pc_type ilu -ksp_gmres_restart 5"},
    {"devicefgmres-many", FGMRES, WHEN, "larger,d:-pc_type sor -ksp_gmres_restart 50 -ksp_max_it 60"},
    {"devicefgmres-inner", FGMRES, WHEN,
     "laplace:-pc_type ksp -ksp_ksp_max_it 4 -ksp_ksp_type gmres -ksp_pc_type none"},
    {"devicefgmres-monitor", FGMRES, WHEN, "laplace,m:-pc_type bjacobi -sub_pc_type ilu -ksp_gmres_restart 4"},
    {"devicefgmres-refined", FGMRES, WHEN,
     "laplace,d:-pc_type bjacobi -ksp_orthogonalization_cgs_refinement_type refine_always"},
    {"devicefgmres-zero", FGMRES, WHEN, "laplace,z:-pc_type bjacobi"},
    {"devicefgmres-exact", FGMRES, WHEN, "twos,ok:-pc_type bjacobi -sub_pc_type none -ksp_atol 1e-10"},
    {"devicefgmres-nan", FGMRES, WHEN, "convection,n:-pc_type bjacobi"},
    {"devicefgmres-nullspace", FGMRES, WHEN, "singular,N:-pc_type jacobi -ksp_rtol 1e-4"},
    {"devicefgmres-reset", FGMRES, WHEN, "convection,rd:-pc_type bjacobi"},
    {"devicefgmres-off", FGMRES, WHEN, "laplace,h:-pc_type jacobi -ksp_device 0"},
    {"fgmres", FGMRES, WHEN, "convection,Pd:-pc_type jacobi -ksp_gmres_restart 6"},
    {"lgmres", LGMRES, WHEN, "laplace,P:-pc_type jacobi -ksp_gmres_restart 8"},
#if !defined(PETSC_USE_COMPLEX) /* PETSc has DGMRES for real numbers only */
    {"dgmres", DGMRES, WHEN, "laplace,P:-pc_type jacobi -ksp_gmres_restart 8"},
#endif
    {NULL, NULL, 0, NULL}};

int main(int argc, char **argv)
{
  return Suite(argc, argv, "krylov", operations, 0);
}
