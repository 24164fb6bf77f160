/*
  A differential fuzzer for sellp and evchyb. A case is a random matrix, random options and a random sequence of
  operations, which run on an AIJ matrix and on a matrix of the type under test. After each step the two must have the
  same entries, the same error codes and the same numbers, and the products of each must be the sums of its entries, row
  by row. The operations are in parts/fuzz_*.c.

  Whatever AIJ itself cannot do, or does wrong, is left out, with a comment in the operation. A failure while running on
  aij is PETSc's own.
*/
#include "parts/fuzz_actor.h"

FuzzCase fuzzcase;

/* Collective. The properties of a matrix that operations need: the same on all ranks */
static PetscErrorCode Properties(Mat A, int *has)
{
  PetscInt  M, N;
  PetscBool square;
  LocalRows r;
  int       bad[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(SameLayouts(A, A, PETSC_TRUE, &square));
  PetscCall(LocalRowsOfMat(A, &r));
  for (PetscInt i = 0; i < r.m; i++) {
    PetscReal sum = 0, diagonal = 0;

    for (PetscInt k = r.i[i]; k < r.i[i + 1]; k++) {
      const PetscReal v = PetscAbsScalar(r.v[k]);

      if (!(v < (PetscDefined(USE_REAL_SINGLE) ? 1e8 : 1e60))) bad[0] = 1; /* also false for NaN */
      if (r.j[k] == r.begin + i)
        diagonal = v;
      else
        sum += v;
    }
    if (!(diagonal > 1.01 * sum && diagonal > 1e-6)) bad[1] = 1;
  }
  PetscCall(LocalRowsDestroy(&r));
  if (fuzz.size > 1) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, bad, 2, MPI_INT, MPI_MAX, fuzz.comm));
  *has = (M == N && square ? F_SQUARE : 0) | (M > 0 && N > 0 ? F_FULL : 0) | (fuzz.size == 1 ? F_SEQ : 0) |
         (bad[0] ? 0 : F_FINITE) | (bad[0] || bad[1] ? 0 : F_DOMINANT) | (fuzzcase.coo ? 0 : F_NEW) |
         (fuzz.device && bad[0] ? 0 : F_BLAS);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The case
*/

/* The same number, infinity or NaN */
static PetscBool SamePart(PetscReal p, PetscReal q)
{
  return (PetscBool)(p == q || (PetscIsNanReal(p) && PetscIsNanReal(q)));
}

/* Within the bound. The parts of a computed complex number that is not finite depend on how complex products were
   computed */
static PetscBool SameNumber(const Item *p, const Item *q)
{
  const PetscScalar x = p->value, y = q->value;

  if ((PetscAbsScalar(x - y) <= p->bound && !PetscIsInfOrNanReal(p->bound)) ||
      (SamePart(PetscRealPart(x), PetscRealPart(y)) && SamePart(PetscImaginaryPart(x), PetscImaginaryPart(y))))
    return PETSC_TRUE;
  return (PetscBool)(PetscDefined(USE_COMPLEX) && p->bound != 0 && PetscIsInfOrNanScalar(x) &&
                     PetscIsInfOrNanScalar(y));
}

/* The two records must agree; their errors, too, if there were any */
static PetscErrorCode SameSeen(Actor *x, Actor *y, const char *step)
{
  const PetscInt n = PetscMin(x->seen.n, y->seen.n);

  PetscFunctionBegin;
  fuzz.running = y->type;
  for (PetscInt k = 0; k < n; k++) {
    const Item *p = x->seen.item + k, *q = y->seen.item + k;

    if (!strcmp(p->what, q->what) && SameNumber(p, q)) continue;
    FuzzReport("after %s: %s %" PetscInt_FMT ": %.17g%+.3gi (%s), with AIJ %.17g%+.3gi; off by %g where %g is allowed",
               step, q->what, q->where, (double)PetscRealPart(q->value), (double)PetscImaginaryPart(q->value), p->what,
               (double)PetscRealPart(p->value), (double)PetscImaginaryPart(p->value),
               (double)PetscAbsScalar(p->value - q->value), (double)p->bound);
    break;
  }
  if (!fuzz.bad && x->seen.n != y->seen.n)
    FuzzReport("after %s: %" PetscInt_FMT " results, with AIJ %" PetscInt_FMT, step, y->seen.n, x->seen.n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs a step on both matrices (if op is NULL, creates them) and checks the results; sets *end if the case cannot
   continue */
static PetscErrorCode Step(Actor both[2], const FuzzOp *op, PetscInt step, PetscBool *end)
{
  const Build way = fuzzcase.way;
  /* maxima over the ranks: the errors of the two matrices, the negative errors (equal on all ranks?), already wrong */
  int  state[4] = {0, 0, 0, 0};
  char message[2][sizeof(fuzz.error)];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    Actor         *a = &both[k];
    PetscErrorCode ierr;

    FuzzSeed(2 + 2 * (uint64_t)step);
    fuzz.running  = a->type;
    fuzz.logging  = (PetscBool)(k == 0);
    fuzz.error[0] = 0;
    PetscCall(RecordReset(&a->seen));
    ierr     = op ? (*op->run)(a) : ShapeBuild(&fuzzcase.shape, a->type, fuzzcase.prefix, way, &a->A);
    state[k] = (int)ierr;
    if (!ierr) {
      FuzzSeed(3 + 2 * (uint64_t)step);
      ierr = SeeMat(a, "the matrix", a->A, 1 + draw(3));
      if (!ierr && a->B && Chance(30)) ierr = SeeMat(a, "the other matrix", a->B, 1);
      state[k] = (int)ierr;
    }
    (void)snprintf(message[k], sizeof(message[k]), "%s", fuzz.error);
    if (fuzz.verbose && ierr)
      fprintf(stderr, "seed %" PetscInt_FMT ", rank %d, on %s, %s: %s\n", fuzz.number, fuzz.rank, a->type, fuzz.log,
              fuzz.error);
  }
  if (state[0] != state[1])
    FuzzReport("%s: error %d, with AIJ %d (%s)", op ? op->name : BuildNames[way], state[1], state[0],
               message[state[1] ? 1 : 0]);
  else if (!state[0])
    PetscCall(SameSeen(&both[0], &both[1], op ? op->name : BuildNames[way]));
  state[2] = fuzz.bad;
  if (fuzz.size > 1) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, state, 3, MPI_INT, MPI_MAX, fuzz.comm));
  *end = (PetscBool)(state[0] || state[1] || state[2]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An operation that the matrix allows, NULL if there is none */
static PetscErrorCode Pick(Mat A, const FuzzOp **op)
{
  const FuzzOp *subjects[] = {FuzzEntries, FuzzMatrices, FuzzNumbers, FuzzOptions};
  int           total = 0, has = 0, pick;

  PetscFunctionBegin;
  PetscCall(Properties(A, &has));
  *op = NULL;
  for (int pass = 0; pass < 2; pass++) {
    if (pass && !total) break;
    pick = pass ? (int)draw(total) : 0;
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(subjects); k++) {
      for (const FuzzOp *o = subjects[k]; o->name && (!pass || !*op); o++) {
        PetscBool in;

        if ((o->needs & has) != o->needs) continue;
        PetscCall(Listed(o->name, fuzz.nonly, fuzz.only, &in));
        if (fuzz.nonly && !in) continue;
        PetscCall(Listed(o->name, fuzz.nskip, fuzz.skip, &in));
        if (in) continue;
        if (!pass) total += o->weight;
        if (pass && (pick -= o->weight) < 0) *op = o;
      }
    }
  }
  if (!(has & F_FINITE) && Chance(50)) *op = NULL; /* a matrix that is infinite everywhere hides most errors */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OneCase(void)
{
  Actor     both[2] = {{.type = MATAIJ}, {.type = fuzz.type, .under = PETSC_TRUE}};
  PetscInt  steps;
  PetscBool end = PETSC_FALSE;
  Shape    *s   = &fuzzcase.shape;

  PetscFunctionBegin;
  FuzzSeed(0);
  PetscCall(ShapeCreate(fuzz.comm, s));
  fuzzcase.loose = fuzz.device;
  fuzzcase.coo   = PETSC_FALSE;
  fuzzcase.bound = PETSC_FALSE;
  fuzzcase.way   = (Build)draw(BUILDS);
  PetscCall(PetscStrncpy(fuzzcase.prefix, Chance(50) ? "fuzz_" : "", sizeof(fuzzcase.prefix)));
  FuzzLog("%" PetscInt_FMT " x %" PetscInt_FMT ", block size %" PetscInt_FMT ", %s%s, values %s, %s", s->M, s->N, s->bs,
          PatternNames[s->pattern], s->dominant ? " dominant" : "", ValuesNames[s->values], BuildNames[fuzzcase.way]);
  PetscCall(RandomOptions());
  steps = 1 + draw(8);
  steps = PetscMin(steps, fuzz.steps);
  if (fuzz.size > 1 && fuzzcase.way == BUILD_COO) fuzzcase.coo = PETSC_TRUE;
  PetscCall(Step(both, NULL, 0, &end));
  for (PetscInt k = 1; k <= steps && !end; k++) {
    const FuzzOp *op = NULL;

    FuzzSeed(1000000 + (uint64_t)k);
    PetscCall(Pick(both[0].A, &op));
    if (!op) break;
    fuzz.logging = PETSC_TRUE;
    FuzzLog("; %s", op->name);
    PetscCall(Step(both, op, k, &end));
  }
  for (int k = 0; k < 2; k++) {
    fuzz.running = both[k].type;
    PetscCall(RecordReset(&both[k].seen));
    PetscCall(Destroy(&both[k].A, &both[k].B));
  }
  fuzz.running = NULL;
  PetscCall(ClearOptions());
  if (fuzz.verbose) PetscCall(PetscPrintf(fuzz.comm, "%" PetscInt_FMT ": %s\n", fuzz.number, fuzz.log));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return FuzzMain(argc, argv, "fuzz", "sellp", OneCase);
}
