/*
  The solver for batches, devicebatch: random problems of all kinds, each of which must end as its kind has to. The
  residual of each problem that counts as solved is computed here, with a product of this program, and compared with the
  problem's own tolerance. On one or several ranks, on the host and, if PETSc uses one, on the device.

  Options: -batches n (for each method), -seed, -expect host|device, -type (batch, or another type derived from AIJ),
  -errors 0 (no errors, after which PETSc leaks memory), -large 0 (no large problems, which take long with a
  sanitizer).
*/
#include "objects.h"
#include "random.h"
#include "ranks.h"
#include <petscksp.h>
#include <petscspmv.h>
#include <math.h>
#include <string.h>

static PetscInt    checks, failures, solved;
static PetscBool   device;
static char        now[256]; /* for the messages of failures */
static const char *type = MATBATCH;

#define Check(condition, what)                                                                                   \
  do {                                                                                                           \
    checks++;                                                                                                    \
    if (!(condition) && failures++ < 40) PetscCall(PetscPrintf(PETSC_COMM_SELF, "FAILED: %s: %s\n", now, what)); \
  } while (0)

/* ---------------------------------------------------------------- problems */

typedef enum { DEFINITE, DOMINANT, SINGULAR, ZEROROW, NOTANUMBER, INFINITE, ZERORHS, KINDS } Kind;
static const char *const kinds[] = {"definite", "dominant", "singular", "row of zeros", "NaN", "Inf", "b = 0"};

typedef struct {
  PetscInt     count, rows, *first, *sizes, *i, *j; /* columns are counted from 0 in each problem */
  Kind        *kind;
  PetscScalar *a, *b;
} Batch;

static PetscInt Size(void)
{
  const PetscInt how = draw(20);

  return how < 2 ? draw(3) : how < 15 ? draw(65) : how < 19 ? draw(160) : draw(301);
}

/* The values of a problem, row by row: a symmetric, definite one, or one with random entries and a large diagonal */
static void Values(const Batch *B, PetscInt p, PetscScalar *a)
{
  const PetscInt  first = B->first[p], n = B->sizes[p];
  const PetscReal scale = PetscPowReal(10, (PetscReal)(draw(7) - 3));
  const PetscInt  bad   = n ? draw(n) : 0;

  for (PetscInt r = 0; r < n; r++) {
    PetscInt  diagonal = B->i[first + r];
    PetscReal sum      = 0;

    for (PetscInt k = B->i[first + r]; k < B->i[first + r + 1]; k++) {
      const PetscInt c = B->j[k];

      a[k] = number();
      if (B->kind[p] == DEFINITE) a[k] = -1.0 / (1.0 + PetscAbsInt(r - c)); /* symmetric */
      if (c == r)
        diagonal = k;
      else
        sum += PetscAbsScalar(a[k]);
    }
    a[diagonal] = (sum + 0.1) * (B->kind[p] == DEFINITE ? 1.05 : 1.0 + (PetscReal)draw(100) / 100);
    for (PetscInt k = B->i[first + r]; k < B->i[first + r + 1]; k++) {
      a[k] *= scale;
      if (B->kind[p] == ZEROROW && r == bad) a[k] = 0;
      if (B->kind[p] == SINGULAR) a[k] = B->j[k] == r ? -1.0 : 0; /* set below */
      if (B->kind[p] == NOTANUMBER && r == bad) a[k] = (PetscReal)NAN;
      if (B->kind[p] == INFINITE && r == bad) a[k] = (PetscReal)INFINITY;
    }
    if (B->kind[p] == SINGULAR) { /* rows whose sum is 0: the ones are the null space */
      const PetscInt len = B->i[first + r + 1] - B->i[first + r];

      for (PetscInt k = B->i[first + r]; k < B->i[first + r + 1]; k++)
        a[k] = B->j[k] == r ? (PetscReal)(len - 1) : -1.0;
    }
  }
}

/* Sizes where the device changes the kernel, three neighbors alike */
static const PetscInt big[] = {1000, 1024, 1024, 1024, 1025, 1025, 1025, 3000, 4097};

/* Symmetric patterns with a full diagonal: bands, dense and random ones, some with a full row and column; often all
   problems have the same one. large: tridiagonal ones of the sizes above, two of three with a full row and column */
static PetscErrorCode BatchCreate(PetscInt count, PetscBool definite, PetscBool large, Batch *B)
{
  const PetscBool alike = (PetscBool)(!large && Chance(30));
  PetscInt        room = 1, at = 0, most = 1;
  char           *mark;

  PetscFunctionBeginUser;
  B->count = count;
  PetscCall(PetscMalloc3(count + 1, &B->first, count, &B->sizes, count, &B->kind));
  B->first[0] = 0;
  for (PetscInt p = 0; p < count; p++) {
    B->sizes[p]     = large ? big[p] : alike && p ? B->sizes[0] : Size();
    B->first[p + 1] = B->first[p] + B->sizes[p];
    most            = PetscMax(most, B->sizes[p]);
    room += B->sizes[p] * (large ? 5 : B->sizes[p]);
    B->kind[p] = large || draw(8) ? (definite ? DEFINITE : DOMINANT) : (Kind)(draw(KINDS));
    if (B->kind[p] == DOMINANT && definite) B->kind[p] = DEFINITE;
    if (B->kind[p] >= SINGULAR && (B->sizes[p] < 3 || (B->kind[p] == ZERORHS && definite))) B->kind[p] = DEFINITE;
  }
  B->rows = B->first[count];
  PetscCall(PetscMalloc4(B->rows + 1, &B->i, room, &B->j, room, &B->a, B->rows, &B->b));
  PetscCall(PetscMalloc1(most * most, &mark));
  B->i[0] = 0;
  for (PetscInt p = 0; p < count; p++) {
    const PetscInt  n = B->sizes[p], density = draw(4) ? 1 + draw(30) : 100;
    const PetscInt  band = large ? 1 : draw(3) ? n : 1 + draw(3);
    const PetscInt  full = n && (large ? p % 3 > 0 : Chance(15)) ? draw(n) : -1;
    const PetscBool zero = (PetscBool)(B->kind[p] == DEFINITE && Chance(5));

    if (!alike || !p) PetscCall(PetscArrayzero(mark, n * n));
    for (PetscInt r = 0; r < n && (!alike || !p); r++) {
      mark[r * n + r] = 1;
      for (PetscInt c = full < 0 ? PetscMax(0, r - band) : 0; c < r; c++) {
        /* the next row keeps a problem in one piece */
        if (c == r - 1 || c == full || r == full || (r - c <= band && Chance(density)))
          mark[r * n + c] = mark[c * n + r] = 1;
      }
    }
    for (PetscInt r = 0; r < n; r++) {
      for (PetscInt c = 0; c < n; c++) {
        if (mark[r * n + c]) B->j[at++] = c;
      }
      B->i[B->first[p] + r + 1] = at;
    }
    Values(B, p, B->a);
    for (PetscInt r = B->first[p]; r < B->first[p + 1]; r++)
      B->b[r] = B->kind[p] == ZERORHS || zero                     ? 0
                : B->kind[p] == SINGULAR || B->kind[p] == ZEROROW ? 1
                                                                  : number() + 0.01;
  }
  PetscCall(PetscFree(mark));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BatchDestroy(Batch *B)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree3(B->first, B->sizes, B->kind));
  PetscCall(PetscFree4(B->i, B->j, B->a, B->b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BatchMat(MPI_Comm comm, const Batch *B, Mat *A)
{
  PetscBool is;

  PetscFunctionBeginUser;
  PetscCall(MatCreateBatch(comm, B->count, B->sizes, B->i, B->j, B->a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, A));
  PetscCall(PetscStrcmp(type, MATBATCH, &is));
  if (!is) PetscCall(MatConvert(*A, type, MAT_INPLACE_MATRIX, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- a solve */

/* The norm of the residual of problem p with x, or of b without, multiplied by the inverse of the diagonal if `left`,
   and a bound on what rounding errors may have changed in it */
static PetscReal Residual(const Batch *B, PetscInt p, PetscBool left, const PetscScalar *x, PetscReal *bound)
{
  PetscReal sum = 0, sizes = 0;

  for (PetscInt r = B->first[p]; r < B->first[p + 1]; r++) {
    PetscScalar y = B->b[r], d = 1;
    PetscReal   size = PetscAbsScalar(y);

    for (PetscInt k = B->i[r]; k < B->i[r + 1]; k++) {
      if (x) y -= B->a[k] * x[B->first[p] + B->j[k]];
      if (x) size += PetscAbsScalar(B->a[k]) * PetscAbsScalar(x[B->first[p] + B->j[k]]);
      if (left && B->j[k] == r - B->first[p] && B->a[k] != (PetscScalar)0) d = (PetscScalar)1 / B->a[k];
    }
    sum += PetscSqr(PetscAbsScalar(y * d));
    sizes += PetscSqr(size * PetscAbsScalar(d));
  }
  *bound = 10 * PETSC_MACHINE_EPSILON * PetscSqrtReal(sizes);
  return PetscSqrtReal(sum);
}

typedef struct {
  const char  *method, *pc;
  PetscBool    left, definite;
  PCJacobiType jacobi;
} Way;

/* Whether each problem ended as its kind has to. x0: the initial guess, or NULL */
static PetscErrorCode CheckProblems(KSP ksp, const Batch *B, const Way *way, const PetscScalar *x0, Vec X)
{
  const PetscInt           *its;
  const PetscReal          *norms;
  const KSPConvergedReason *reasons;
  KSPConvergedReason        worst = KSP_CONVERGED_ATOL, reason;
  const PetscBool           left  = (PetscBool)(way->left && strcmp(way->pc, "none") && strcmp(way->method, "lu"));
  const PetscScalar        *x;
  PetscInt                  count, most = 0, total;
  PetscReal                 rtol, abstol;
  char                      text[256];

  PetscFunctionBeginUser;
  PetscCall(KSPGetTolerances(ksp, &rtol, &abstol, NULL, NULL));
  PetscCall(KSPDeviceBatchGetSolveInfo(ksp, &count, &its, &norms, &reasons));
  Check(count == B->count, "number of problems");
  PetscCall(VecGetArrayRead(X, &x));
  for (PetscInt p = 0; p < count; p++) {
    const Kind kind = B->kind[p];
    PetscReal  bound, none, norm = Residual(B, p, left, x, &bound), base = Residual(B, p, left, NULL, &none);
    PetscBool  right = PETSC_TRUE;

    if (base == 0 && x0) base = Residual(B, p, left, x0, &none);
    most  = PetscMax(most, its[p]);
    worst = PetscMin(worst, reasons[p]);
    PetscCall(PetscSNPrintf(text, sizeof(text),
                            "problem %" PetscInt_FMT " (%s, %" PetscInt_FMT " rows): %s after %" PetscInt_FMT
                            ", norm %g, here %g, of %g",
                            p, kinds[kind], B->sizes[p], KSPConvergedReasons[reasons[p]], its[p], (double)norms[p],
                            (double)norm, (double)(rtol * base)));
    if (reasons[p] > 0) {
      right = (PetscBool)(norm <= PetscMax(rtol * base, abstol) + bound && PetscAbsReal(norm - norms[p]) <= 2 * bound);
      solved++;
    } else if (reasons[p] == 0)
      right = PETSC_FALSE;
    Check(right, text);
    if (kind == DEFINITE || kind == DOMINANT || kind == ZERORHS) right = (PetscBool)(reasons[p] > 0);
    if (kind == SINGULAR) right = (PetscBool)(reasons[p] < 0);
    /* of the row of zeros 1 is left, which may be less than the tolerance of a preconditioned norm */
    if (kind == ZEROROW) right = (PetscBool)(reasons[p] < 0 || PetscMax(rtol * base, abstol) >= 1);
    if (kind == NOTANUMBER || kind == INFINITE) right = (PetscBool)(reasons[p] < 0);
    Check(right, text);
  }
  PetscCall(VecRestoreArrayRead(X, &x));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPIU_INT, MPI_MAX, PETSC_COMM_WORLD));
  {
    int all = worst;

    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    Check(all == reason, "the worst reason of all problems");
  }
  PetscCall(KSPGetIterationNumber(ksp, &total));
  Check(total == most, "the largest number of iterations");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* batch -1: the large problems */
static PetscErrorCode RunWay(const Way *way, PetscInt batch)
{
  const PetscBool large = (PetscBool)(batch < 0);
  PetscInt        count;
  Batch           B;
  Mat             A;
  Vec             x, y, b;
  KSP             ksp;
  PC              pc;
  PetscScalar    *v, *x0 = NULL;
  PetscBool       same;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(now, sizeof(now), "%s, %s %s, batch %" PetscInt_FMT, way->method, way->pc,
                          way->left ? "left" : "right", batch));
  if (large)
    count = (PetscInt)PETSC_STATIC_ARRAY_LENGTH(big);
  else
    count = batch ? 1 + draw(40) : draw(2);
  PetscCall(BatchCreate(count, way->definite, large, &B));
  PetscCall(BatchMat(PETSC_COMM_WORLD, &B, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecGetArrayWrite(b, &v));
  PetscCall(PetscArraycpy(v, B.b, B.rows));
  PetscCall(VecRestoreArrayWrite(b, &v));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPDEVICEBATCH));
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_devicebatch_type", way->method));
  PetscCall(KSPSetTolerances(ksp, PetscMax(1e-9, 1e3 * PETSC_MACHINE_EPSILON), PETSC_DEFAULT, 1e8, 4000));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, way->pc));
  PetscCall(PCJacobiSetType(pc, way->jacobi));
  if (way->left) PetscCall(KSPSetNormType(ksp, KSP_NORM_PRECONDITIONED));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(CheckProblems(ksp, &B, way, NULL, x));
  PetscCall(KSPSolve(ksp, b, y));
  {
    const PetscScalar *xx, *yy;

    PetscCall(VecGetArrayRead(x, &xx));
    PetscCall(VecGetArrayRead(y, &yy));
    PetscCall(PetscMemcmp(xx, yy, (size_t)B.rows * sizeof(*xx), &same));
    Check(same, "the same solve again: other bits");
    PetscCall(VecRestoreArrayRead(x, &xx));
    PetscCall(VecRestoreArrayRead(y, &yy));
  }
  /* new values, and an initial guess */
  for (PetscInt p = 0; p < B.count; p++) Values(&B, p, B.a);
  if (!strcmp(type, MATBATCH))
    PetscCall(MatBatchSetValues(A, MATBATCH_ALL, B.a));
  else {
    PetscInt start;

    PetscCall(MatGetOwnershipRange(A, &start, NULL));
    for (PetscInt p = 0; p < B.count; p++) {
      for (PetscInt r = B.first[p]; r < B.first[p + 1]; r++) {
        for (PetscInt k = B.i[r]; k < B.i[r + 1]; k++)
          PetscCall(MatSetValue(A, start + r, start + B.first[p] + B.j[k], B.a[k], INSERT_VALUES));
      }
    }
    PetscCall(MatAssemble(A));
  }
  PetscCall(PetscMalloc1(B.rows, &x0));
  PetscCall(VecGetArrayWrite(y, &v));
  for (PetscInt r = 0; r < B.rows; r++) v[r] = x0[r] = number();
  PetscCall(VecRestoreArrayWrite(y, &v));
  PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
  PetscCall(KSPSolve(ksp, b, y));
  PetscCall(PetscStrlcat(now, ", new values and a guess", sizeof(now)));
  PetscCall(CheckProblems(ksp, &B, way, x0, y));
  PetscCall(PetscFree(x0));
  PetscCall(Destroy(&ksp, &x, &y, &b, &A));
  PetscCall(BatchDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- errors, and what is printed */

/* On each rank two problems, of 2 and of 3 rows; an entry of the last rank is outside of them if `outside` */
static PetscErrorCode TwoProblems(PetscBool outside, Mat *A)
{
  PetscInt    sizes[] = {2, 3}, start;
  PetscMPIInt rank, size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, 5, 5, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &start, NULL));
  for (PetscInt r = 0; r < 5; r++) PetscCall(MatSetValue(*A, start + r, start + r, 2.0, INSERT_VALUES));
  PetscCall(MatSetValue(*A, start + 3, start + 4, 1.0, INSERT_VALUES));
  if (outside && rank == size - 1) PetscCall(MatSetValue(*A, start + 3, start + 1, 1.0, INSERT_VALUES));
  PetscCall(MatAssemble(*A));
  PetscCall(MatSetVariableBlockSizes(*A, 2, sizes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Errors(void)
{
  Mat                A;
  Vec                x, b;
  KSP                ksp;
  PC                 pc;
  PetscInt           count, its, five = 5;
  PetscMPIInt        size;
  KSPConvergedReason reason;
  PetscBool          is;

  PetscFunctionBeginUser;
  PetscCall(PetscStrncpy(now, "errors", sizeof(now)));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_devicebatch_type"));
  for (int outside = 0; outside < 2; outside++) {
    PetscCall(TwoProblems((PetscBool)outside, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecSet(b, 1.0));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    MustFail(KSPDeviceBatchGetSolveInfo(ksp, &count, NULL, NULL, NULL), PETSC_ERR_ARG_WRONG, "not " KSPDEVICEBATCH);
    PetscCall(KSPSetType(ksp, KSPDEVICEBATCH));
    MustFail(KSPDeviceBatchGetSolveInfo(ksp, &count, NULL, NULL, NULL), PETSC_ERR_ARG_WRONGSTATE, "KSPSolve");
    if (outside) {
      /* with several ranks some print only that another one has an error */
      MustFail(KSPSolve(ksp, b, x), PETSC_ERR_ARG_WRONG, size > 1 ? "" : "outside of the problems");
    } else { /* AIJ with blocks; the options are read after the type has been set */
      PetscCall(KSPSetFromOptions(ksp));
      PetscCall(KSPGetPC(ksp, &pc));
      PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCJACOBI, &is));
      Check(is, "the preconditioner by default");
      PetscCall(KSPSetTolerances(ksp, 1e3 * PETSC_MACHINE_EPSILON, 0.0, PETSC_DEFAULT, 2));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(KSPGetConvergedReason(ksp, &reason));
      PetscCall(KSPGetIterationNumber(ksp, &its));
      PetscCall(KSPDeviceBatchGetSolveInfo(ksp, &count, NULL, NULL, NULL));
      Check(count == 2 && its == 1 && reason == KSP_CONVERGED_RTOL, "two dense problems are factored");
      PetscCall(MatSetVariableBlockSizes(A, 1, &five));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(KSPDeviceBatchGetSolveInfo(ksp, &count, NULL, NULL, NULL));
      Check(count == 1, "the blocks set after a solve");
#if !defined(__SANITIZE_ADDRESS__) /* which looks for leaks: PETSc loses a string after the error */
      PetscCall(PetscOptionsSetValue(NULL, "-ksp_devicebatch_restart", "31"));
      MustFail(KSPSetFromOptions(ksp), PETSC_ERR_ARG_OUTOFRANGE, "-ksp_devicebatch_restart");
      PetscCall(PetscOptionsClearValue(NULL, "-ksp_devicebatch_restart"));
#endif
    }
    PetscCall(Destroy(&ksp, &x, &b, &A));
  }
  PetscCall(TwoProblems(PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetType(ksp, KSPDEVICEBATCH));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCSOR));
  MustFail(KSPSolve(ksp, b, x), PETSC_ERR_SUP, "-ksp_devicebatch_type lu");
  PetscCall(PCSetType(pc, PCNONE));
  MustFail(KSPSolveTranspose(ksp, b, x), PETSC_ERR_SUP, size > 1 ? "" : "MatTranspose()");
  PetscCall(Destroy(&ksp, &x, &b, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- in another method */

/* Iterations of FGMRES for problems that are coupled, with a preconditioner for the problems by themselves */
static PetscErrorCode Coupled(Mat A, Mat P, const char *options, PetscInt *its)
{
  Vec       x, b, r;
  KSP       ksp;
  PetscReal norm, base;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
  PetscCall(KSPSetOperators(ksp, A, P));
  PetscCall(KSPSetOptionsPrefix(ksp, "outer_"));
  PetscCall(PetscOptionsInsertString(NULL, options));
  PetscCall(KSPSetType(ksp, KSPFGMRES));
  PetscCall(KSPSetTolerances(ksp, PetscMax(1e-8, 1e3 * PETSC_MACHINE_EPSILON), PETSC_DEFAULT, PETSC_DEFAULT, 100));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCall(VecNorm(b, NORM_2, &base));
  PetscCall(PetscSNPrintf(now, sizeof(now), "in another method: %s: %g of %g", options, (double)norm, (double)base));
  Check(norm <= 2 * PetscMax(1e-8, 1e3 * PETSC_MACHINE_EPSILON) * base, "the residual of the coupled problems");
  PetscCall(Destroy(&ksp, &x, &b, &r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InAnotherMethod(void)
{
  Batch    B;
  Mat      A, P;
  PetscInt start, all, its[2];

  PetscFunctionBeginUser;
  PetscCall(PetscStrncpy(now, "in another method", sizeof(now)));
  do {
    seed++;
    PetscCall(BatchCreate(12, PETSC_TRUE, PETSC_FALSE, &B));
    all = 0;
    for (PetscInt p = 0; p < B.count; p++) all += B.kind[p] == DEFINITE && B.sizes[p];
    if (all < B.count) PetscCall(BatchDestroy(&B));
  } while (all < B.count);
  PetscCall(BatchMat(PETSC_COMM_WORLD, &B, &P));
  PetscCall(MatConvert(P, device ? "aijcusparse" : MATAIJ, MAT_INITIAL_MATRIX, &A));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(A, &start, NULL));
  for (PetscInt p = 0; p + 1 < B.count; p++) { /* the first row of the next problem with the last column of this one */
    const PetscInt c = B.first[p + 1] - 1;

    for (PetscInt k = B.i[c]; k < B.i[c + 1]; k++) {
      if (B.first[p] + B.j[k] == c)
        PetscCall(MatSetValue(A, start + c + 1, start + c, (PetscScalar)0.1 * B.a[k], INSERT_VALUES));
    }
  }
  PetscCall(MatAssemble(A));
  PetscCall(Coupled(A, P, "-outer_pc_type vpbjacobi", &its[0]));
  PetscCall(
      Coupled(A, P, "-outer_pc_type ksp -outer_ksp_ksp_type devicebatch -outer_ksp_ksp_devicebatch_type lu", &its[1]));
  /* rounding errors may decide whether the last one is needed */
  Check(PetscAbsInt(its[0] - its[1]) <= 1 && its[0] > 1, "as many iterations as with PCVPBJACOBI");
  PetscCall(Destroy(&A, &P));
  PetscCall(BatchDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- */

int main(int argc, char **argv)
{
  static const Way ways[] = {
      {"cg", PCJACOBI, PETSC_FALSE, PETSC_TRUE},     {"cg", PCNONE, PETSC_FALSE, PETSC_TRUE},
      {"cg", PCJACOBI, PETSC_TRUE, PETSC_TRUE},      {"bcgs", PCJACOBI, PETSC_FALSE, PETSC_FALSE},
      {"bcgs", PCNONE, PETSC_FALSE, PETSC_FALSE},    {"bcgs", PCJACOBI, PETSC_TRUE, PETSC_FALSE},
      {"gmres", PCJACOBI, PETSC_FALSE, PETSC_FALSE}, {"gmres", PCNONE, PETSC_TRUE, PETSC_FALSE},
      {"gmres", PCJACOBI, PETSC_TRUE, PETSC_FALSE},  {"lu", PCNONE, PETSC_FALSE, PETSC_FALSE},
      {"auto", PCJACOBI, PETSC_FALSE, PETSC_FALSE},  {"bcgs", PCJACOBI, PETSC_FALSE, PETSC_FALSE, PC_JACOBI_ROWMAX},
  };
  char        name[64];
  PetscInt    batches = 8, first = 1;
  PetscBool   set, errors = PETSC_TRUE, large = PETSC_TRUE;
  PetscMPIInt rank, size;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscSpMVInitializePackage());
  (void)RanksComm();
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-batches", &batches, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &first, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-errors", &errors, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-large", &large, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-type", name, sizeof(name), &set));
  if (set) type = name;
  PetscCall(OnDevice(type, &device));
  for (size_t w = 0; w < PETSC_STATIC_ARRAY_LENGTH(ways); w++) {
    const PetscBool has = (PetscBool)(large && (!strcmp(ways[w].method, "cg") || !strcmp(ways[w].method, "bcgs")));

    for (PetscInt k = has ? -1 : 0; k < batches; k++) {
      seed = 88172645463325252u + 1000003 * (uint64_t)(first + k) + 101 * (uint64_t)w + (uint64_t)rank;
      PetscCall(RunWay(&ways[w], k));
    }
  }
  PetscCall(InAnotherMethod());
  if (errors) PetscCall(Errors());
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                        "batchsolve on the %s, %d ranks: %" PetscInt_FMT " checks, %" PetscInt_FMT
                        " problems solved, %" PetscInt_FMT " failed\n",
                        device ? "device" : "host", size, checks, solved, failures));
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
