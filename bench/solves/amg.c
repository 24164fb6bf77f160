static char help[] = "Times the set-up of algebraic multigrid (-pc_type gamg), and what follows it, by matrix type.\n\
  -matrices <list> : generators (stencil7:96, fem27:40:3, ...) with the values of a Laplacian for each unknown of a node, weakly coupled; elasticity:39 (n^3 elements, with its near null space); files\n\
  -types <aij:gamg,sellp:gamg> : matrix type and preconditioner, taking turns in one run. aij is aijcusparse on a GPU. sellp:petsc is sellp with PETSc's set-up\n\
  -reps <3>        : repetitions, of which the median counts; one more comes first and is not counted\n\
  -setups          : only PCSetUp() is measured, for runs of thousands of them\n\
  -csv <file>      : results to read by program\n\
With -log_view, each type and phase is a stage.\n\n";

/*
   A repetition creates a KSP: PCSetUp(), two solves, new values, PCSetUp(), a solve. The program fails if a solve does
   not converge.
*/

#include <petscksp.h>
#include "contenders.h"
#include "elasticity.h"
#include "matrices.h"

enum { SETUP, FIRST, SECOND, AGAIN, PHASES };
static const char *const phases[PHASES] = {"PCSetUp", "1st solve", "2nd solve", "again"};

typedef struct {
  char          type[64], pc[64];
  Mat           A;
  PetscInt      its;
  PetscLogStage stage[PHASES];
  double       *t[PHASES];
} Contender;

static PetscBool only = PETSC_FALSE; /* -setups */

static PetscErrorCode ContenderCreate(const char *what, const char *name, Mat A, PetscInt reps, Contender *c)
{
  MatNullSpace modes;
  char         text[128];

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(c, sizeof(*c)));
  PetscCall(ContenderRead(what, "sellp:gamg", A, c->type, c->pc, &c->A));
  PetscCall(MatGetNearNullSpace(A, &modes)); /* MatConvert() does not keep it */
  PetscCall(MatSetNearNullSpace(c->A, modes));
  for (int p = 0; p < PHASES; p++) {
    PetscCall(PetscMalloc1(reps, &c->t[p]));
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s, %s, %s", name, what, phases[p]));
    PetscCall(PetscLogStageRegister(text, &c->stage[p]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ContenderDestroy(Contender *c)
{
  PetscFunctionBeginUser;
  for (int p = 0; p < PHASES; p++) PetscCall(PetscFree(c->t[p]));
  PetscCall(MatDestroy(&c->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Phase(Contender *c, int phase, PetscInt r, KSP ksp, Vec b, Vec x)
{
  PetscLogDouble     start;
  KSPConvergedReason reason;
  double             seconds;

  PetscFunctionBeginUser;
  PetscCall(TimeBegin(PETSC_COMM_WORLD, &start));
  PetscCall(PetscLogStagePush(c->stage[phase]));
  if (b)
    PetscCall(KSPSolve(ksp, b, x));
  else
    PetscCall(KSPSetUp(ksp));
  PetscCall(PetscLogStagePop());
  PetscCall(TimeEnd(PETSC_COMM_WORLD, start, &seconds));
  if (r >= 0) c->t[phase][r] = seconds;
  if (!b) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "%s: the solver ended with %s", c->type,
             KSPConvergedReasons[reason]);
  PetscCall(KSPGetIterationNumber(ksp, &c->its));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Repetition(Contender *c, PetscInt r)
{
  KSP       ksp;
  PC        pc;
  Vec       x, b;
  PetscBool petsc;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmp(c->pc, "petsc", &petsc));
  PetscCall(MatCreateVecs(c->A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, c->A, c->A));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetTolerances(ksp, 1e-8, 1e-50, 1e5, 200));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, petsc ? PCGAMG : c->pc));
  if (petsc) PetscCall(PetscOptionsSetValue(NULL, "-pc_gamg_device", "0"));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(Phase(c, SETUP, r, ksp, NULL, NULL));
  if (!only) {
    PetscCall(Phase(c, FIRST, r, ksp, b, x));
    PetscCall(Phase(c, SECOND, r, ksp, b, x));
    PetscCall(MatScale(c->A, r % 2 ? 2.0 : 0.5)); /* new values */
    PetscCall(KSPSetOperators(ksp, c->A, c->A));
    PetscCall(Phase(c, AGAIN, r, ksp, NULL, NULL));
    PetscCall(KSPSolve(ksp, b, x));
  }
  PetscCall(KSPDestroy(&ksp));
  if (petsc) PetscCall(PetscOptionsClearValue(NULL, "-pc_gamg_device"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Options(const Contest *contest)
{
  PetscFunctionBeginUser;
  (void)contest;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-setups", &only, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunMatrix(const char *name, Contest *contest)
{
  Mat         A;
  Contender   c[MAXIMUM];
  const char *origin = NULL;
  PetscBool   elasticity;

  PetscFunctionBeginUser;
  PetscCall(PetscStrncmp(name, "elasticity:", 11, &elasticity));
  if (elasticity)
    PetscCall(ElasticityCreate(PETSC_COMM_WORLD, MATAIJ, 3, (PetscInt)atoi(name + 11), &A));
  else
    PetscCall(MatrixCreate(PETSC_COMM_WORLD, name, &A, &origin));
  if (!elasticity && strcmp(origin, "file")) PetscCall(MakeDefinite(name, PETSC_FALSE, &A));
  for (PetscInt k = 0; k < contest->ntypes; k++)
    PetscCall(ContenderCreate(contest->types[k], name, A, contest->reps, &c[k]));
  for (PetscInt r = -1; r < contest->reps; r++) {
    for (PetscInt k = 0; k < contest->ntypes; k++) PetscCall(Repetition(&c[k], r));
    if (only && r > 0 && r % 50 == 0) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%" PetscInt_FMT " set-ups\n", r));
  }
  for (PetscInt k = 0; k < contest->ntypes; k++) {
    double median[PHASES];

    for (int p = 0; p < PHASES; p++) {
      median[p] = 0;
      if (!p || !only) PetscCall(Median(contest->reps, c[k].t[p], &median[p]));
    }
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-20s %-8s %-8s %3" PetscInt_FMT " iterations", name, c[k].type, c[k].pc,
                          c[k].its));
    for (int p = 0; p < (only ? 1 : PHASES); p++)
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, ", %s %9.3f ms", phases[p], 1e3 * median[p]));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
    PetscCall(ContestRecord(contest, name, A, "%s,%s,%lld,%.4f,%.4f,%.4f,%.4f", c[k].type, c[k].pc, (long long)c[k].its,
                            1e3 * median[SETUP], 1e3 * median[FIRST], 1e3 * median[SECOND], 1e3 * median[AGAIN]));
    PetscCall(ContenderDestroy(&c[k]));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const Benchmark amg = {
      .help            = help,
      .matrices        = "stencil7:20,fem27:6:3,elasticity:6",
      .device_matrices = "stencil7:96,stencil7:128,fem27:40:3,elasticity:39",
      .types           = "aij:gamg,sellp:gamg",
      .columns         = CONTEST_MATRIX "type,pc,its,setup,first,second,again" CONTEST_SOURCE,
      .reps            = 3,
      .options         = Options,
      .run             = RunMatrix,
  };

  return ContestMain(argc, argv, &amg);
}
