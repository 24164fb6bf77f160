#include "atonce.h"
#include "harness.h"
#include "../../bench/lib/names.h"

Now now;

PetscErrorCode Make(Test *t, Mat *A)
{
  return MakeLike(t->R, t->type, A);
}

PetscErrorCode MakeOperand(Test *t, PetscInt m, PetscInt n, PetscInt M, PetscInt N, const char *type, Mat *P)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatCreateSized(t->comm, type, m, n, M, N, 3, P));
  PetscCall(MatGetSize(*P, &M, &N));
  PetscCall(MatGetOwnershipRange(*P, &rs, &re));
  for (PetscInt i = rs; i < re; i++) {
    for (PetscInt k = 0; k < 3 && N > 0; k++)
      PetscCall(MatSetValue(*P, i, (i / 2 + k * k) % N, Value(i, k, 11), INSERT_VALUES));
  }
  PetscCall(MatAssemble(*P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode IsType(Mat A, const char *type, PetscBool *is)
{
  const char *format;
  char        seq[64], mpi[64];

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(type, MATAIJ, is));
  if (*is) {
    *is = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscSpMVGetFormat(A, &format));
  if (format)
    PetscCall(PetscStrcmp(format, type, is));
  else {
    PetscCall(PetscSNPrintf(seq, sizeof(seq), "seq%s", type));
    PetscCall(PetscSNPrintf(mpi, sizeof(mpi), "mpi%s", type));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)A, is, seq, mpi, ""));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RecordType(Test *t, Record *r, const char *what, Mat A)
{
  MatType   type;
  PetscBool kept, seq, mpi, dense;
  Mat       Ad, Ao;

  PetscFunctionBegin;
  PetscCall(MatGetType(A, &type));
  PetscCall(IsType(A, t->type, &kept));
  PetscCall(PetscStrbeginswith(type, MATSEQAIJ, &seq));
  PetscCall(PetscStrbeginswith(type, MATMPIAIJ, &mpi));
  PetscCall(PetscStrbeginswith(type, MATSEQDENSE, &dense));
  if (dense) type = MATSEQDENSE; /* on host or device */
  PetscCall(PetscStrbeginswith(type, MATMPIDENSE, &dense));
  if (dense) type = MATMPIDENSE;
  PetscCall(RecordText(r, what, kept ? "kept" : seq || mpi ? "aij" : type));
  PetscCall(MatAssembled(A, &seq));
  /* the sequential matrices may get their type only when they are assembled */
  if (!seq) PetscFunctionReturn(PETSC_SUCCESS);
  if (kept && mpi) {
    /* PETSc creates them by type name, which is AIJCUSPARSE on a device; the next product gives them the format */
    if (t->device) {
      Vec x, y;

      PetscCall(MatCreateVecs(A, &x, &y));
      PetscCall(MatMult(A, x, y));
      PetscCall(Destroy(&x, &y));
    }
    PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, &Ao, NULL));
    PetscCall(IsType(Ad, t->type, &kept));
    if (kept) PetscCall(IsType(Ao, t->type, &kept));
    /* AIJPERM's sequential matrices lose the type when nothing was preallocated; ours would lose the format */
    PetscCall(RecordText(r, "type of the blocks", kept ? "kept" : "aij"));
  } else if (mpi)
    PetscCall(RecordText(r, "type of the blocks", "aij"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RecordMat(Test *t, Record *r, const char *what, Mat A)
{
  PetscInt  M, N, m, n, rbs, cbs;
  PetscBool aij, seq, dense, baij, rows;
  MatType   type;

  PetscFunctionBegin;
  PetscCall(RecordType(t, r, what, A));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(RecordInt(r, "rows", M));
  PetscCall(RecordInt(r, "columns", N));
  PetscCall(RecordInt(r, "local rows", m));
  PetscCall(RecordInt(r, "local columns", n));
  PetscCall(MatAssembled(A, &aij));
  PetscCall(RecordInt(r, "assembled", aij));
  PetscCall(MatGetType(A, &type));
  PetscCall(PetscStrbeginswith(type, "seqaij", &seq));
  PetscCall(PetscStrbeginswith(type, "mpiaij", &aij));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &dense, MATSEQDENSE, MATMPIDENSE, MATSEQDENSECUDA,
                                      MATMPIDENSECUDA, ""));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &baij, MATSEQBAIJ, MATMPIBAIJ, ""));
  if (aij || seq) { /* whether PETSc sets block sizes for dense results depends on the algorithm */
    PetscCall(MatGetBlockSizes(A, &rbs, &cbs));
    PetscCall(RecordInt(r, "block size", rbs));
    PetscCall(RecordInt(r, "column block size", cbs));
  }
  rows = (PetscBool)(aij || seq || dense || baij);
  if (rows) PetscCall(RecordEntries(r, A));
  PetscCall(RecordProducts(r, A, rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Touch(Mat A)
{
  Vec x, y;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecFill(x, 31));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMultAdd(A, x, y, y));
  PetscCall(Destroy(&x, &y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MakeTouched(Test *t, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(Make(t, A));
  PetscCall(Touch(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void Report(const char *text)
{
  fprintf(stderr, "FAILED %s: operation %s, type %s, matrix %s, rank %d of %d: %s\n", now.program, now.operation,
          now.under, now.name, now.rank, now.size, text);
  fflush(stderr);
}

void Note(const char *text)
{
  fprintf(stderr, "note, %s: operation %s, type %s, matrix %s, rank %d of %d: %s\n", now.program, now.operation,
          now.under, now.name, now.rank, now.size, text);
  fflush(stderr);
}

static PetscBool RunsModel(void)
{
  return (PetscBool)(now.device && now.run == now.model);
}

PetscErrorCode OnError(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n, PetscErrorType p,
                       const char *mess, void *ctx)
{
  char text[1024];

  if (p == PETSC_ERROR_INITIAL) {
    (void)PetscSNPrintf(text, sizeof(text), "running on %s: error %d in %s (%s:%d): %s", now.run ? now.run : "?",
                        (int)n, fun ? fun : "?", file ? file : "?", line, mess ? mess : "");
    if (RunsModel()) {
      if (!now.error[0]) (void)PetscStrncpy(now.error, text, sizeof(now.error));
    } else
      Report(text);
  }
  return n;
}

PetscErrorCode OnSignal(int sig, void *ctx)
{
  char text[128];

  (void)PetscSNPrintf(text, sizeof(text), "turn %" PetscInt_FMT ", running on %s: signal %d", now.turn,
                      now.run ? now.run : "?", sig);
  Report(text);
  return PetscSignalHandlerDefault(sig, ctx);
}

void OnTerm(int sig)
{
  Report("ended here");
  _exit(128 + sig);
}

/* Ends all ranks if this process cannot continue; it is reported like a crash */
static void Abandon(const char *why)
{
  char text[1024];

  (void)PetscSNPrintf(text, sizeof(text), "turn %" PetscInt_FMT ", running on %s: signal 0: %s", now.turn,
                      now.run ? now.run : "?", why);
  Report(text);
  MPI_Abort(PETSC_COMM_WORLD, 60);
}

PetscErrorCode Agree(PetscErrorCode ierr, PetscBool *any)
{
  char text[900];

  PetscFunctionBegin;
  if (!RanksAgree(ierr, any)) {
    (void)PetscSNPrintf(text, sizeof(text), "error %d here, and not on all ranks. %s", (int)ierr, now.error);
    Abandon(text);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode CheckDevice(void)
{
  PetscFunctionBegin;
#if defined(PETSC_HAVE_CUDA)
  if (now.device) {
    const cudaError_t error = cudaDeviceSynchronize();
    char              text[256];

    if (error != cudaSuccess) {
      (void)PetscSNPrintf(text, sizeof(text), "the device is lost: %s", cudaGetErrorString(error));
      Abandon(text);
    }
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether two records have the same results; the bounds are those of the first record */
PetscErrorCode Compare(Record *a, Record *p, Record *u, PetscBool strict, PetscInt *bad)
{
  char            text[512];
  PetscInt        reported = 0, excused = 0;
  const PetscBool lenient = (PetscBool)(now.device && p && !strict);

  PetscFunctionBegin;
  if (a->n != u->n) {
    PetscCall(
        PetscSNPrintf(text, sizeof(text), "%" PetscInt_FMT " results where AIJ gives %" PetscInt_FMT, u->n, a->n));
    if (lenient && p->n == u->n) {
      if (!excused++) Note(text);
    } else {
      Report(text);
      reported++;
    }
  }
  for (PetscInt k = 0; k < PetscMin(a->n, u->n) && reported < 3; k++) {
    const Item *x = a->item + k, *y = u->item + k;
    PetscBool   same, model         = PETSC_FALSE;

    PetscCall(SameItem(x, y, &same));
    if (x->text && y->text && p && k < p->n && p->item[k].text) PetscCall(PetscStrcmp(p->item[k].text, "kept", &model));
    if (same && !model) continue;
    if (x->text && y->text) {
      PetscBool aij, kept;

      PetscCall(PetscStrcmp(x->text, "aij", &aij));
      PetscCall(PetscStrcmp(y->text, "kept", &kept));
      if (kept && (aij || same)) continue;
      if (model)
        PetscCall(PetscSNPrintf(text, sizeof(text), "%s: type not kept (now '%s'); %s keeps its type here", x->what,
                                y->text, now.model));
      else
        PetscCall(PetscSNPrintf(text, sizeof(text), "%s: '%s', with AIJ '%s'", x->what, y->text, x->text));
    } else {
      PetscCall(PetscStrcmp(x->what, y->what, &same));
      if (!same || x->text || y->text)
        PetscCall(
            PetscSNPrintf(text, sizeof(text), "result %" PetscInt_FMT " is '%s', with AIJ '%s'", k, y->what, x->what));
      else
        PetscCall(PetscSNPrintf(
            text, sizeof(text),
            "%s %" PetscInt_FMT ": %.17g%+.3gi, with AIJ %.17g%+.3gi, off by %g where %g is allowed", x->what, x->where,
            (double)PetscRealPart(y->value), (double)PetscImaginaryPart(y->value), (double)PetscRealPart(x->value),
            (double)PetscImaginaryPart(x->value), (double)PetscAbsScalar(x->value - y->value), (double)x->bound));
    }
    if (lenient && !model && k < p->n) {
      PetscCall(SameItem(p->item + k, y, &same));
      if (same) {
        if (!excused++) Note(text);
        continue;
      }
    }
    Report(text);
    reported++;
  }
  if (reported) (*bad)++;
  if (excused) now.excused++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the model must run to evaluate a record: a number differs from AIJ's, or a type was not kept */
static PetscErrorCode NeedsModel(MPI_Comm comm, const Record *a, const Record *u, PetscBool *needs)
{
  int any = a->n != u->n;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < PetscMin(a->n, u->n) && !any; k++) {
    PetscBool same, kept = PETSC_FALSE, aij = PETSC_FALSE;

    PetscCall(SameItem(a->item + k, u->item + k, &same));
    if (u->item[k].text) PetscCall(PetscStrcmp(u->item[k].text, "kept", &kept));
    if (u->item[k].text) PetscCall(PetscStrcmp(u->item[k].text, "aij", &aij));
    if (kept ? !a->item[k].text : (!same || aij)) any = 1;
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, comm));
  *needs = (PetscBool)any;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Listed(const char *name, PetscInt n, char *list[], PetscBool *in)
{
  PetscFunctionBegin;
  *in = PETSC_FALSE;
  for (PetscInt k = 0; k < n && !*in; k++) PetscCall(PetscStrcmp(name, list[k], in));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operations that run, from the command line */
typedef struct {
  PetscInt  nonly, nskip, part[2]; /* run part[0] of part[1] parts of the operations */
  PetscInt  from, without;         /* skip the turns up to `from`; run the turn `without` without the model */
  char     *only[64], *skip[64];
  PetscBool verbose, model;
  PetscInt  bad, count;
} Selection;

static PetscErrorCode RunCase(const Operation *ops, const Case *c, Mat R, const char *type, int want, Selection *s)
{
  Test      t;
  Record    rec[3];
  PetscBool in, itself;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(type, now.model, &itself));
  t.comm = PETSC_COMM_WORLD;
  t.size = now.size;
  t.rank = now.rank;
  t.c    = c;
  t.R    = R;
  for (const Operation *op = ops; op->name; op++) {
    const PetscBool model   = (PetscBool)(s->model && !(op->needs & (now.device ? NOCUDA : NOPERM)));
    const char     *types[] = {MATAIJ, model || itself ? now.model : NULL, itself ? NULL : type};
    const int       order[] = {0, 2, 1}; /* the model is last, because it only runs if something differs */
    int             needs = op->needs & (SQUARE | SOLVE | SPD | BLOCKS | FULL | BYROW), failed = 0;
    PetscBool       any;

    if ((needs & c->has) != needs || (op->needs & SEQ && now.size > 1) || (op->needs & PAR && now.size == 1)) continue;
    if ((op->needs & ONCE && !(want & ONCE)) || (!model && itself) || (op->needs & DEVICE && !now.device) ||
        (op->needs & ONHOST && now.device))
      continue;
    PetscCall(Listed(op->name, s->nonly, s->only, &in));
    if ((s->nonly || op->needs & ALONE) && !in) continue;
    PetscCall(Listed(op->name, s->nskip, s->skip, &in));
    if (in || now.turn++ % s->part[1] != s->part[0] || now.turn <= s->from) continue;
    if (now.turn == s->without) types[1] = NULL;
    now.operation  = op->name;
    now.name       = op->needs & ONCE ? "its own" : c->name;
    now.modelfails = PETSC_FALSE;
    now.error[0]   = 0;
    t.arg          = op->arg;
    if (s->verbose) PetscCall(PetscPrintf(t.comm, "%s %s\n", op->name, now.name));
    PetscCall(PetscMemzero(rec, sizeof(rec)));
    for (int q = 0; q < 3; q++) {
      const int k = order[q];

      if (!types[k]) continue;
      if (k == 1 && !itself && !failed) {
        PetscCall(NeedsModel(t.comm, &rec[0], &rec[2], &in));
        if (!in) {
          types[1] = NULL;
          continue;
        }
      }
      t.type = now.run = types[k];
      t.aij            = (PetscBool)(k == 0);
      t.device         = (PetscBool)(k && now.device);
      PetscCall(Agree(op->run(&t, &rec[k]), &any));
      if (any) PetscCall(CheckDevice());
      if (any && RunsModel()) {
        now.modelfails = PETSC_TRUE;
        if (now.error[0]) Note(now.error);
      } else if (any) {
        failed = 1;
        if (k == 0 || !now.device) break; /* on a device the model may excuse it */
      }
    }
    now.run = NULL;
    s->count++;
    if (failed || (now.modelfails && itself)) {
      if (now.modelfails && (itself || !(op->needs & STRICT))) {
        if (!itself) Note("fails as the model does");
        now.excused++;
      } else
        s->bad++;
    } else
      PetscCall(Compare(&rec[0], types[1] && !now.modelfails ? &rec[1] : NULL, itself ? &rec[1] : &rec[2],
                        (PetscBool)(op->needs & STRICT && !itself), &s->bad));
    for (int k = 0; k < 3; k++) PetscCall(RecordReset(&rec[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetSelection(Selection *s)
{
  PetscInt  two = 2;
  PetscBool set;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(s, sizeof(*s)));
  s->part[1] = 1;
  s->without = -1;
  s->model   = PETSC_TRUE;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-verbose", &s->verbose, NULL));
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-part", s->part, &two, &set));
  PetscCheck(!set || (two == 2 && s->part[0] >= 0 && s->part[1] > s->part[0]), PETSC_COMM_WORLD, PETSC_ERR_USER,
             "-part requires k,n with 0 <= k < n");
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-model", &s->model, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-from", &s->from, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-without", &s->without, NULL));
  PetscCall(GetNames("-ops", NULL, PETSC_STATIC_ARRAY_LENGTH(s->only), &s->nonly, s->only));
  PetscCall(GetNames("-skip", NULL, PETSC_STATIC_ARRAY_LENGTH(s->skip), &s->nskip, s->skip));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operations on the generated cases: those listed by name, or all if neither cases nor files are listed */
static PetscErrorCode RunCases(const Operation *ops, const char *type, int size, PetscInt nnames, char *names[],
                               PetscInt nfiles, Selection *s)
{
  int want = ONCE;

  PetscFunctionBegin;
  for (const Case *c = cases; c->name; c++) {
    PetscBool in;
    Mat       R;

    PetscCall(Listed(c->name, nnames, names, &in));
    if (nnames ? !in : (nfiles || (c->has & LARGE) != size)) continue;
    PetscCall(MakeRows(PETSC_COMM_WORLD, c, &R));
    PetscCall(RunCase(ops, c, R, type, want, s));
    PetscCall(MatDestroy(&R));
    want = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunFiles(const Operation *ops, const char *type, PetscInt nfiles, char *files[], Selection *s)
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < nfiles; k++) {
    const char *base = strrchr(files[k], '/');
    Case        c    = {.name = base ? base + 1 : files[k], .file = files[k]};
    Mat         R;

    PetscCall(MakeFile(PETSC_COMM_WORLD, &c, &R));
    PetscCall(RunCase(ops, &c, R, type, 0, s));
    PetscCall(MatDestroy(&R));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunAll(const char *program, const Operation *ops, int size, PetscInt *bad)
{
  char      type[64] = "sellp", *names[64], *files[64];
  PetscInt  nnames = 0, nfiles = 0;
  PetscBool device = PETSC_FALSE;
  Selection s;

  PetscFunctionBegin;
  PetscCall(PetscSpMVInitializePackage());
  now.program = program;
  now.under   = type;
  (void)RanksComm();
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &now.size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &now.rank));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-type", type, sizeof(type), NULL));
  PetscCall(GetSelection(&s));
  PetscCall(GetNames("-cases", NULL, PETSC_STATIC_ARRAY_LENGTH(names), &nnames, names));
  PetscCall(GetNames("-files", NULL, PETSC_STATIC_ARRAY_LENGTH(files), &nfiles, files));
  PetscCall(OnDevice(type, &device));
  now.device  = device;
  now.model   = device ? MATAIJCUSPARSE : MATAIJPERM;
  now.excused = now.turn = 0;
  PetscCall(PetscPushErrorHandler(OnError, NULL));
  PetscCall(PetscPushSignalHandler(OnSignal, NULL));
  signal(SIGTERM, OnTerm);
  PetscCall(RunCases(ops, type, size, nnames, names, nfiles, &s));
  PetscCall(RunFiles(ops, type, nfiles, files, &s));
  PetscCall(FreeNames(s.nonly, s.only));
  PetscCall(FreeNames(s.nskip, s.skip));
  PetscCall(FreeNames(nnames, names));
  PetscCall(FreeNames(nfiles, files));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &s.bad, 1, MPIU_INT, MPI_MAX, PETSC_COMM_WORLD));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &now.excused, 1, MPIU_INT, MPI_MAX, PETSC_COMM_WORLD));
  PetscCheck(s.count || s.from, PETSC_COMM_WORLD, PETSC_ERR_USER, "no operation ran: see -ops, -cases, -type");
  PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                        "%s: type %s on the %s, %d ranks: %" PetscInt_FMT " operations on matrices, %" PetscInt_FMT
                        " failed",
                        program, type, device ? "device" : "host", now.size, s.count, s.bad));
  if (now.excused)
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, ", %" PetscInt_FMT " as wrong as %s", now.excused, now.model));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
  *bad = s.bad;
  signal(SIGTERM, SIG_DFL);
  PetscCall(PetscPopSignalHandler());
  PetscCall(PetscPopErrorHandler());
  PetscFunctionReturn(PETSC_SUCCESS);
}

int Suite(int argc, char **argv, const char *program, const Operation *ops, int size)
{
  PetscInt       bad = 0;
  PetscErrorCode ierr;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(SetUpAtOnce());
  ierr = RunAll(program, ops, size, &bad);
  if (ierr) MPI_Abort(PETSC_COMM_WORLD, 3); /* other ranks may be waiting */
  PetscCall(PetscFinalize());
  return bad ? 1 : 0;
}
