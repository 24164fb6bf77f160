static char help[] =
    "Times an iteration of Krylov methods, by matrix type and KSP type, on the GPU if PETSc has CUDA and the machine has a GPU.\n\
  -matrices <list> : generators (stencil7:100, fem27:68:3, bratu:200, ...; a wrong name prints them all) and files. Values other than those of bratu\n\
                     and of files are replaced by random ones that make the matrix symmetric positive definite\n\
  -types <aij:cg,aij:pipecg,sellp:cg,sellp:devicecg> : matrix type and KSP type, taking turns in one run. aij is aijcusparse on a GPU. Further KSP types:\n\
                     bcgs, devicebcgs; gmres, devicegmres; chebyshev, devicechebyshev, which compute no norms, as in smoothers\n\
  -pcs <none,jacobi,pbjacobi> : preconditioners; pbjacobi only of matrices with several unknowns per node\n\
  -its <100>       : iterations of a solve; a second one does twice as many\n\
  -reps <5>        : repetitions, of which the median counts\n\
  -csv <file>      : results to read by program\n\n";

/*
   A solve does a given number of iterations; no tolerance is ever reached. "us" is the time of a solve divided by its
   iterations, including the work before the first one; "each" is the cost of one more iteration, from two solves of n
   and 2n iterations. After the first solve, residuals are compared with those of the first contender with the same
   method, and the program fails if they differ.
*/

#include <petscksp.h>
#include "contenders.h"
#include "matrices.h"
#include "timing.h"

typedef struct {
  char     type[64], ksp[64], pc[64];
  Mat      A;
  KSP      solver;
  PetscInt more;
  double   norm, *t[2]; /* norm: of the last residual; t: seconds of each repetition, for n and 2n iterations */
  double   us, each;
} Contender;

/* The first contender with the same method */
static Contender *SameMethod(Contender c[], const Contender *last)
{
  static const char *const methods[][4] = {{KSPCG, KSPPIPECG, KSPDEVICECG},
                                           {KSPBCGS, KSPDEVICEBCGS},
                                           {KSPGMRES, KSPDEVICEGMRES},
                                           {KSPCHEBYSHEV, KSPDEVICECHEBYSHEV}};

  for (; c < last; c++) {
    if (!strcmp(c->ksp, last->ksp)) return c;
    for (size_t m = 0; m < PETSC_STATIC_ARRAY_LENGTH(methods); m++) {
      int found = 0;

      for (int k = 0; methods[m][k]; k++) found += !strcmp(c->ksp, methods[m][k]) + !strcmp(last->ksp, methods[m][k]);
      if (found == 2) return c;
    }
  }
  return c;
}

static PetscErrorCode ContenderCreate(const char *what, const char *pc, Mat A, PetscInt its, PetscInt reps,
                                      Contender *c)
{
  PC preconditioner;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(c, sizeof(*c)));
  PetscCall(ContenderRead(what, "sellp:cg", A, c->type, c->ksp, &c->A));
  PetscCall(PetscStrncpy(c->pc, pc, sizeof(c->pc)));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &c->solver));
  PetscCall(KSPSetOperators(c->solver, c->A, c->A));
  PetscCall(KSPSetType(c->solver, c->ksp));
  PetscCall(KSPGetPC(c->solver, &preconditioner));
  PetscCall(PCSetType(preconditioner, pc));
  PetscCall(KSPSetTolerances(c->solver, 1e-300, 1e-300, 1e300, its));
  if (strstr(c->ksp, KSPCHEBYSHEV)) PetscCall(KSPSetNormType(c->solver, KSP_NORM_NONE));
  PetscCall(KSPSetFromOptions(c->solver));
  for (int k = 0; k < 2; k++) PetscCall(PetscMalloc1(reps, &c->t[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ContenderDestroy(Contender *c)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(c->t[k]));
  PetscCall(KSPDestroy(&c->solver));
  PetscCall(MatDestroy(&c->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Times one solve with the given number of iterations, in seconds */
static PetscErrorCode Solve(Contender *c, PetscInt its, Vec b, Vec x, double *seconds)
{
  PetscLogDouble     start;
  KSPConvergedReason reason;
  PetscReal          norm;
  PetscInt           done;

  PetscFunctionBeginUser;
  PetscCall(KSPSetTolerances(c->solver, 1e-300, 1e-300, 1e300, its));
  PetscCall(TimeBegin(PETSC_COMM_WORLD, &start));
  PetscCall(KSPSolve(c->solver, b, x));
  PetscCall(TimeEnd(PETSC_COMM_WORLD, start, seconds));
  PetscCall(KSPGetConvergedReason(c->solver, &reason));
  PetscCall(KSPGetIterationNumber(c->solver, &done));
  PetscCheck(done == its || done == its + 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB,
             "%s with %s, %s ended after %" PetscInt_FMT " iterations: %s", c->ksp, c->type, c->pc, done,
             KSPConvergedReasons[reason]);
  PetscCall(KSPGetResidualNorm(c->solver, &norm));
  c->norm = (double)norm;
  c->more = done - its; /* pipelined methods do one more */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All contenders take turns */
static PetscErrorCode Measure(PetscInt n, Contender c[], PetscInt its, PetscInt reps, Vec b, Vec x)
{
  double unused, median[2];

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < n; k++) { /* for the set-up, and to raise the clock rate of a GPU */
    const Contender *first = SameMethod(c, &c[k]);

    PetscCall(Solve(&c[k], 5, b, x, &unused)); /* after more steps of BiCGStab, rounding errors become visible */
    PetscCheck(fabs(c[k].norm - first->norm) <= 1e-3 * first->norm || c[k].more, PETSC_COMM_WORLD, PETSC_ERR_PLIB,
               "%s with %s, %s: norm %g after 5 iterations, that of %s with %s is %g", c[k].ksp, c[k].type, c[k].pc,
               c[k].norm, first->ksp, first->type, first->norm);
  }
  for (PetscInt r = 0; r < reps; r++) {
    for (PetscInt k = 0; k < n; k++) {
      for (int length = 0; length < 2; length++) PetscCall(Solve(&c[k], its << length, b, x, &c[k].t[length][r]));
    }
  }
  for (PetscInt k = 0; k < n; k++) {
    for (int length = 0; length < 2; length++) PetscCall(Median(reps, c[k].t[length], &median[length]));
    c[k].us   = 1e6 * median[0] / (double)(its + c[k].more);
    c[k].each = 1e6 * (median[1] - median[0]) / (double)its;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -its */
static PetscInt its = 100;

static PetscErrorCode Options(const Contest *contest)
{
  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-its", &its, NULL));
  PetscCheck(its > 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-its is %" PetscInt_FMT ": it must be positive",
             its);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunMatrix(const char *name, Contest *contest)
{
  const PetscInt n = contest->ntypes;
  Mat            A;
  const char    *origin = NULL;
  Vec            x, b;
  PetscInt       bs;
  Contender      c[MAXIMUM];
  PetscRandom    random;

  PetscFunctionBeginUser;
  PetscCall(MatrixCreate(PETSC_COMM_WORLD, name, &A, &origin));
  if (strcmp(origin, "file") && strncmp(name, "bratu", 5)) PetscCall(MakeDefinite(name, PETSC_TRUE, &A));
  PetscCall(MatGetBlockSize(A, &bs));
  for (PetscInt p = 0; p < contest->nmore; p++) {
    if (bs == 1 && !strcmp(contest->more[p], PCPBJACOBI)) continue;
    for (PetscInt k = 0; k < n; k++)
      PetscCall(ContenderCreate(contest->types[k], contest->more[p], A, its, contest->reps, &c[k]));
    PetscCall(MatCreateVecs(c[0].A, &x, &b));
    PetscCall(PetscRandomCreate(PETSC_COMM_WORLD, &random));
    PetscCall(VecSetRandom(b, random));
    PetscCall(PetscRandomDestroy(&random));
    PetscCall(Measure(n, c, its, contest->reps, b, x));
    for (PetscInt k = 0; k < n; k++) {
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-20s %9s %-8s %-10s %9.1f us, each %9.1f us\n", name, c[k].pc,
                            c[k].type, c[k].ksp, c[k].us, c[k].each));
      PetscCall(ContestRecord(contest, name, A, "%s,%s,%s,%lld,%.3f,%.3f", c[k].pc, c[k].type, c[k].ksp, (long long)its,
                              c[k].us, c[k].each));
      PetscCall(ContenderDestroy(&c[k]));
    }
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const Benchmark krylov = {
      .help            = help,
      .matrices        = "stencil7:20,fem27:6:3",
      .device_matrices = "bratu:32,bratu:100,bratu:200,stencil7:32,stencil7:100,stencil7:200,fem27:68:3",
      .types           = "aij:cg,aij:pipecg,sellp:cg,sellp:devicecg",
      .list            = "-pcs",
      .more            = "none,jacobi,pbjacobi",
      .columns         = CONTEST_MATRIX "pc,type,ksp,its,us,each" CONTEST_SOURCE,
      .reps            = 5,
      .options         = Options,
      .run             = RunMatrix,
  };

  return ContestMain(argc, argv, &krylov);
}
