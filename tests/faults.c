/*
  Each allocation of the library fails in turn, in each phase of a matrix's life: on one rank, on all ranks at the same
  time, and on a single rank of several. Then

    - every rank has a PETSc error or, in the phases that allow it, no rank has one, and no rank hangs;
    - the same phase, run again, succeeds, and products equal AIJ's;
    - all memory that the library has allocated is freed when the matrices are destroyed.

  On the host an allocation belongs to the library if PETSc's allocator is called from one of the library's source
  files. With a PETSc with CUDA, parts/faults_inject.c replaces the functions of the CUDA runtime that allocate, or
  create and share objects; they fail when the library calls them. In this case the library may also continue without
  the allocation: either all ranks have an error, or none.

  Options: -type sellp|evchyb|batch, -expect host|device, -quick (one matrix and one kernel), -phases a,b, -verbose.
*/
#include "lib/atonce.h"
#include "parts/faults.h"

/* ---------------------------------------------------------------- the phases of a life */

typedef struct {
  const char *type;
  Case        c;
  Mat         R, A, B; /* AIJ, the matrix under test, and the matrix that a phase creates from it */
  Vec         x, y, z, u, v;
  PetscViewer viewer;
} Life;

/* The state of the matrix when the phase begins */
typedef enum { SIZED, TYPED, ASSEMBLED, MULTIPLIED } Stage;

enum {
  OWN       = 1,    /* not collective: a rank without a fault must have no error */
  ABSORBS   = 2,    /* no rank has an error: AIJ multiplies instead */
  LOSES     = 4,    /* PETSc's own code loses the unfinished matrix, with all that belongs to it */
  SQUARES   = 8,    /* needs a square matrix */
  HOLDS     = 32,   /* the same, and the unfinished matrix is a product, which holds its factors */
  BATCH     = 256,  /* of batches only */
  DEVWITHIN = 4096, /* the same as WITHIN, but on a device: there the transposes of blocks are taken over, too */
  /* PETSc calls the type on single ranks inside collective code; a rank that fails leaves that code, as with aij */
  WITHIN = 64,
  BIG    = 16 /* also on the matrix that is large enough for equal values to be stored once */
};

typedef struct {
  const char *name;
  Stage       stage;
  PetscErrorCode (*prepare)(Life *); /* without faults, and once */
  PetscErrorCode (*run)(Life *);     /* can be run again after a fault */
  int flags;
} Phase;

/* A phase that is one call */
#define PHASE(name, call)             \
  static PetscErrorCode name(Life *l) \
  {                                   \
    return call;                      \
  }

/* The local rows of a block-diagonal matrix, in blocks of the case's block size, as a batch */
static PetscErrorCode CreateBatch(Life *l)
{
  const PetscInt bs = l->c.bs;
  PetscInt      *sizes;
  LocalRows      rows;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(LocalRowsOfMat(l->R, &rows));
  PetscCall(PetscMalloc1(rows.m / bs, &sizes));
  for (PetscInt b = 0; b < rows.m / bs; b++) sizes[b] = bs;
  for (PetscInt k = 0; k < rows.i[rows.m]; k++) rows.j[k] %= bs;
  ierr = MatCreateBatch(PETSC_COMM_WORLD, rows.m / bs, sizes, rows.i, rows.j, rows.v, MATBATCH_SHARE_NONE,
                        PETSC_COPY_VALUES, &l->A);
  PetscCall(PetscFree(sizes));
  PetscCall(LocalRowsDestroy(&rows));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BatchFromMats(Life *l)
{
  Mat           *D;
  PetscInt       rs, re, n;
  IS            *is;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(l->R, &rs, &re));
  n = (re - rs) / l->c.bs;
  PetscCall(PetscMalloc1(n, &is));
  for (PetscInt p = 0; p < n; p++) PetscCall(ISCreateStride(PETSC_COMM_SELF, l->c.bs, rs + p * l->c.bs, 1, &is[p]));
  PetscCall(MatCreateSubMatrices(l->R, n, is, is, MAT_INITIAL_MATRIX, &D));
  ierr = MatCreateBatchFromMats(PETSC_COMM_WORLD, n, D, &l->B);
  PetscCall(MatDestroySubMatrices(n, &D));
  for (PetscInt p = 0; p < n; p++) PetscCall(ISDestroy(&is[p]));
  PetscCall(PetscFree(is));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BatchInfo(Life *l)
{
  MatBatchInfo info;

  return MatBatchGetInfo(l->A, &info);
}

PHASE(SetType, MatSetType(l->A, l->type))
PHASE(SetFromOptions, MatSetFromOptions(l->A))

static PetscErrorCode Assemble(Life *l)
{
  PetscFunctionBegin;
  PetscCall(PreallocateLike(l->R, l->A));
  PetscCall(FillLike(l->R, -1, l->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PHASE(Mult, MatMult(l->A, l->x, l->y))
PHASE(MultAdd, MatMultAdd(l->A, l->x, l->z, l->y))
PHASE(MultTranspose, MatMultTranspose(l->A, l->u, l->v))
PHASE(MultTransposeAdd, MatMultTransposeAdd(l->A, l->u, l->x, l->v))
PHASE(MultHermitian, MatMultHermitianTranspose(l->A, l->u, l->v))
PHASE(MultHermitianAdd, MatMultHermitianTransposeAdd(l->A, l->u, l->x, l->v))

/* Products with vectors that are bound to the CPU. If one rank has no memory for a copy of its part, the other ranks
   still get what their products need from it */
static PetscErrorCode MultFromHost(Life *l)
{
  PetscErrorCode ierr[2];

  PetscFunctionBegin;
  PetscCall(VecBindToCPU(l->x, PETSC_TRUE));
  PetscCall(VecBindToCPU(l->u, PETSC_TRUE));
  ierr[0] = Mult(l);
  ierr[1] = MultTranspose(l);
  PetscCall(VecBindToCPU(l->x, PETSC_FALSE));
  PetscCall(VecBindToCPU(l->u, PETSC_FALSE));
  PetscCall(ierr[0]);
  PetscCall(ierr[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The product in another stream than the earlier ones, which must be ordered with them. If that fails on one rank, the
   other ranks still get what their products need from it */
static PetscErrorCode MultInStream(Life *l)
{
  PetscErrorCode ierr = PETSC_SUCCESS;
#if defined(PETSC_HAVE_CUDA)
  PetscDeviceContext old, own;

  PetscFunctionBegin;
  if (!PetscDeviceInitialized(PETSC_DEVICE_CUDA)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscDeviceContextGetCurrentContext(&old));
  PetscCall(PetscDeviceContextSynchronize(old));
  PetscCall(PetscDeviceContextCreate(&own));
  PetscCall(PetscDeviceContextSetStreamType(own, PETSC_STREAM_NONBLOCKING));
  PetscCall(PetscDeviceContextSetUp(own));
  PetscCall(PetscDeviceContextSetCurrentContext(own));
  ierr = Mult(l);
  PetscCall(PetscDeviceContextSynchronize(own));
  PetscCall(PetscDeviceContextSetCurrentContext(old));
  PetscCall(PetscDeviceContextDestroy(&own));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  (void)l;
  return ierr;
#endif
}

static PetscErrorCode NewValues(Life *l)
{
  PetscFunctionBegin;
  PetscCall(MatScale(l->A, 3.));
  PetscCall(MatScale(l->R, 3.));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets so many distinct values that they are stored in a different way than before */
static PetscErrorCode OtherValues(Life *l)
{
  PetscFunctionBegin;
  PetscCall(FillLike(l->R, 5, l->A));
  PetscCall(MatCopy(l->A, l->R, SAME_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewPattern(Life *l)
{
  Mat both[2] = {l->A, l->R};

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscInt rs, re, M, N;

    PetscCall(MatSetOption(both[k], MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatGetOwnershipRange(both[k], &rs, &re));
    PetscCall(MatGetSize(both[k], &M, &N));
    for (PetscInt i = rs; i < re; i += 3) {
      PetscCall(MatSetValue(both[k], i, (7 * i + 1) % N, Value(i, 1, 8), INSERT_VALUES));
      PetscCall(MatSetValue(both[k], i, N - 1 - i % N, Value(i, 2, 8), INSERT_VALUES));
    }
    PetscCall(MatAssemble(both[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A change by a single rank, which the parallel matrix does not notice */
static PetscErrorCode LocalChange(Life *l)
{
  Mat both[2] = {l->A, l->R};

  PetscFunctionBegin;
  for (int k = 0; k < 2 && now.rank == now.size - 1; k++) {
    Mat D = both[k];

    if (now.size > 1) PetscCall(MatMPIAIJGetSeqAIJ(both[k], &D, NULL, NULL));
    PetscCall(MatScale(D, 2.));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LocalPattern(Life *l)
{
  PetscFunctionBegin;
  PetscCall(NewPattern(l));
  PetscCall(Mult(l));
  PetscCall(MultTranspose(l)); /* on a device the transpose has a copy of its own, which all ranks set up together */
  PetscCall(LocalChange(l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode View(Life *l)
{
  PetscFunctionBegin;
  if (!l->viewer) {
    PetscCall(PetscViewerASCIIOpen(PETSC_COMM_WORLD, "/dev/null", &l->viewer));
    PetscCall(PetscViewerPushFormat(l->viewer, PETSC_VIEWER_ASCII_INFO));
  }
  PetscCall(MatView(l->A, l->viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Info(Life *l)
{
  PetscSpMVInfo info;

  return PetscSpMVGetInfo(l->A, &info);
}

PHASE(Duplicate, MatDuplicate(l->A, MAT_COPY_VALUES, &l->B))
PHASE(ConvertFrom, MatConvert(l->R, l->type, MAT_INITIAL_MATRIX, &l->B))
PHASE(ConvertTo, MatConvert(l->A, MATAIJ, MAT_INITIAL_MATRIX, &l->B))

static PetscErrorCode ConvertOther(Life *l)
{
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(l->type, MATSELLP, &same));
  PetscCall(MatConvert(l->A, same ? MATEVCHYB : MATSELLP, MAT_INITIAL_MATRIX, &l->B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ConvertToAndBack(Life *l)
{
  PetscFunctionBegin;
  PetscCall(MatConvert(l->A, MATAIJ, MAT_INPLACE_MATRIX, &l->A));
  PetscCall(MatConvert(l->A, l->type, MAT_INPLACE_MATRIX, &l->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubMatrix(Life *l)
{
  PetscInt       rs, re, cs, ce;
  IS             row, col;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(l->A, &rs, &re));
  PetscCall(MatGetOwnershipRangeColumn(l->A, &cs, &ce));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (re - rs) / 2, rs, 2, &row));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (ce - cs) / 2, cs, 2, &col));
  ierr = MatCreateSubMatrix(l->A, row, col, MAT_INITIAL_MATRIX, &l->B);
  PetscCall(Destroy(&row, &col));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PHASE(Transposed, MatTranspose(l->A, MAT_INITIAL_MATRIX, &l->B))
PHASE(Product, MatMatMult(l->A, l->R, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &l->B))

static PetscErrorCode Ordering(Life *l)
{
  IS row = NULL, col = NULL;

  PetscFunctionBegin;
  PetscCall(MatGetOrdering(l->A, MATORDERINGEVCHYB, &row, &col));
  PetscCall(Destroy(&row, &col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveBy(Life *l, KSPType type, PCType preconditioner)
{
  KSP            ksp;
  PC             pc;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, preconditioner));
  PetscCall(PCGAMGSetCoarseEqLim(pc, 5));
  PetscCall(KSPSetTolerances(ksp, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, 3));
  PetscCall(KSPSetOperators(ksp, l->A, l->A));
  ierr = KSPSolve(ksp, l->u, l->v);
  /* PETSc's functions that destroy a hierarchy need a complete one */
  if (!ierr || strcmp(preconditioner, PCGAMG)) PetscCall(KSPDestroy(&ksp));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PHASE(SolveCG, SolveBy(l, KSPCG, PCJACOBI))
PHASE(SolveGMRES, SolveBy(l, KSPGMRES, PCJACOBI))

/* Of several ranks, one that fails leaves PETSc's collective code */
PHASE(SolveGAMG, now.size > 1 ? PETSC_SUCCESS : SolveBy(l, KSPCG, PCGAMG))
PHASE(SolveDeviceBatch, SolveBy(l, KSPDEVICEBATCH, PCJACOBI))
PHASE(SolveDeviceCG, SolveBy(l, KSPDEVICECG, PCJACOBI))
PHASE(SolveDeviceGMRES, SolveBy(l, KSPDEVICEGMRES, PCJACOBI))

static const Phase phases[] = {
    {"batch-create", SIZED, NULL, CreateBatch, BATCH},
    {"batch-frommats", ASSEMBLED, NULL, BatchFromMats, BATCH},
    {"batch-info", ASSEMBLED, NULL, BatchInfo, BATCH | OWN},
    {"batch-mult", ASSEMBLED, NULL, Mult, BATCH},
    {"batch-duplicate", ASSEMBLED, NULL, Duplicate, BATCH | LOSES},
    {"type", SIZED, NULL, SetType, 0},
    {"options", TYPED, NULL, SetFromOptions, 0},
    {"assembly", TYPED, NULL, Assemble, 0},
    {"mult", ASSEMBLED, NULL, Mult, BIG},
    {"multadd", ASSEMBLED, NULL, MultAdd, 0},
    {"transpose", ASSEMBLED, NULL, MultTranspose, 0},
    {"transposeadd", ASSEMBLED, NULL, MultTransposeAdd, 0},
    {"hermitian", ASSEMBLED, NULL, MultHermitian, 0},
    {"hermitianadd", ASSEMBLED, NULL, MultHermitianAdd, 0},
    {"stream", MULTIPLIED, NULL, MultInStream, OWN},
    {"fromhost", MULTIPLIED, NULL, MultFromHost, OWN},
    {"options-again", MULTIPLIED, NULL, SetFromOptions, 0},
    {"refresh", MULTIPLIED, NewValues, Mult, BIG},
    {"refresh-transpose", MULTIPLIED, NewValues, MultTranspose, 0},
    {"othervalues", MULTIPLIED, OtherValues, Mult, BIG},
    {"newpattern", MULTIPLIED, NewPattern, Mult, 0},
    {"newpattern-transpose", MULTIPLIED, NewPattern, MultTranspose, 0},
    {"local", MULTIPLIED, LocalChange, Mult, ABSORBS | BIG},
    {"local-transpose", MULTIPLIED, LocalPattern, MultTranspose, ABSORBS},
    {"view", ASSEMBLED, NULL, View, 0},
    {"view-refresh", MULTIPLIED, OtherValues, View, BIG},
    {"info", ASSEMBLED, NULL, Info, OWN},
    {"duplicate", MULTIPLIED, NULL, Duplicate, LOSES},
    {"convert-from", ASSEMBLED, NULL, ConvertFrom, LOSES},
    {"convert-to", MULTIPLIED, NULL, ConvertTo, LOSES},
    {"convert-other", MULTIPLIED, NULL, ConvertOther, LOSES},
    {"convert-inplace", MULTIPLIED, NULL, ConvertToAndBack, 0},
    {"submatrix", MULTIPLIED, NULL, SubMatrix, LOSES | WITHIN},
    {"transposed", MULTIPLIED, NULL, Transposed, LOSES | DEVWITHIN},
    {"product", MULTIPLIED, NULL, Product, HOLDS | SQUARES},
    {"ordering", ASSEMBLED, NULL, Ordering, SQUARES | WITHIN},
    {"solve", ASSEMBLED, NULL, SolveCG, SQUARES},
    {"solve-gmres", ASSEMBLED, NULL, SolveGMRES, SQUARES},
    {"solve-gamg", ASSEMBLED, NULL, SolveGAMG, SQUARES | HOLDS},
    {"solve-devicecg", ASSEMBLED, NULL, SolveDeviceCG, SQUARES},
    /* PETSc's GMRES, which runs instead without memory, keeps some for the next solve */
    {"solve-devicegmres", ASSEMBLED, SolveGMRES, SolveDeviceGMRES, SQUARES},
    {"solve-devicebatch", ASSEMBLED, NULL, SolveDeviceBatch, BATCH},
};

/* ---------------------------------------------------------------- lives */

/* Full blocks along the diagonal */
static PetscErrorCode Row_Problems(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                                   PetscScalar *vals)
{
  *n = bs;
  for (PetscInt k = 0; k < bs; k++) {
    cols[k] = i / bs * bs + k;
    vals[k] = cols[k] == i ? (PetscScalar)(2. * bs) : Value(i, cols[k], 9);
  }
  return PETSC_SUCCESS;
}

/* On a device, the vectors are in device memory, except z, which products that add a vector copy to the device */
static PetscErrorCode LifeBegin(const Phase *p, const Case *c, const char *type, PetscBool device, Life *l)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(l, sizeof(*l)));
  l->type = type;
  l->c    = *c;
  PetscCall(MakeRows(PETSC_COMM_WORLD, c, &l->R));
  PetscCall(MatCreateVecs(l->R, &l->x, &l->y));
  PetscCall(VecDuplicate(l->y, &l->z));
  if (device) {
    PetscCall(VecSetType(l->x, VECCUDA));
    PetscCall(VecSetType(l->y, VECCUDA));
  }
  PetscCall(VecDuplicate(l->x, &l->v));
  PetscCall(VecDuplicate(l->y, &l->u));
  PetscCall(VecFill(l->x, 1));
  PetscCall(VecFill(l->z, 2));
  PetscCall(VecFill(l->u, 3));
  if (c->row == Row_Problems) {
    if (p->stage > SIZED) PetscCall(CreateBatch(l));
    if (p->stage >= MULTIPLIED) {
      PetscCall(Mult(l));
      PetscCall(MultTranspose(l));
    }
  } else if (p->stage == SIZED) {
    PetscInt m, n, M, N;

    PetscCall(MatSizes(l->R, &m, &n, &M, &N));
    PetscCall(MatCreate(PETSC_COMM_WORLD, &l->A));
    PetscCall(MatSetSizes(l->A, m, n, M, N));
  } else {
    PetscCall(CreateLike(l->R, type, &l->A));
    if (p->stage >= ASSEMBLED) PetscCall(Assemble(l));
    if (p->stage >= MULTIPLIED) {
      PetscCall(Mult(l));
      PetscCall(MultTranspose(l));
    }
  }
  if (p->prepare) PetscCall((*p->prepare)(l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LifeEnd(Life *l)
{
  PetscFunctionBegin;
  PetscCall(Destroy(&l->A, &l->B, &l->R, &l->x, &l->y, &l->z, &l->u, &l->v, &l->viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameVec(Vec a, Vec b, Vec bound, PetscBool *same)
{
  const PetscScalar *p, *q, *r;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(a, &n));
  PetscCall(VecGetArrayRead(a, &p));
  PetscCall(VecGetArrayRead(b, &q));
  PetscCall(VecGetArrayRead(bound, &r));
  for (PetscInt i = 0; i < n; i++) {
    if (!(PetscAbsScalar(p[i] - q[i]) <= PetscRealPart(r[i]))) *same = PETSC_FALSE;
  }
  PetscCall(VecRestoreArrayRead(a, &p));
  PetscCall(VecRestoreArrayRead(b, &q));
  PetscCall(VecRestoreArrayRead(bound, &r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Compares A x and A^T u with AIJ's */
static PetscErrorCode LifeCheck(Life *l, PetscBool *right)
{
  Vec y, v, b;

  PetscFunctionBegin;
  *right = PETSC_TRUE;
  PetscCall(VecDuplicate(l->y, &y));
  PetscCall(VecDuplicate(l->y, &b));
  PetscCall(ProductBounds(l->R, l->x, NULL, PETSC_FALSE, b));
  PetscCall(MatMult(l->R, l->x, y));
  PetscCall(VecSet(l->y, PETSC_MAX_REAL));
  PetscCall(MatMult(l->A, l->x, l->y));
  PetscCall(SameVec(y, l->y, b, right));
  PetscCall(Destroy(&y, &b));
  PetscCall(VecDuplicate(l->v, &v));
  PetscCall(VecDuplicate(l->v, &b));
  PetscCall(ProductBounds(l->R, l->u, NULL, PETSC_TRUE, b));
  PetscCall(MatMultTranspose(l->R, l->u, v));
  PetscCall(MatMultTranspose(l->A, l->u, l->v));
  PetscCall(SameVec(v, l->v, b, right));
  PetscCall(Destroy(&v, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the faults of a phase */

static struct {
  const char *phase, *options;
  int         rank; /* the only rank with the fault; -1: all ranks */
  long        k;
  PetscInt    faults, phases, bad;
  PetscBool   verbose;
} run;

static PetscErrorCode Quiet(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode n,
                            PetscErrorType p, const char *mess, void *ctx)
{
  if (run.verbose) fprintf(stderr, "  [%d] %s:%d %s %s\n", now.rank, file, line, function, mess ? mess : "");
  return n;
}

static void Bad(const char *what)
{
  run.bad++;
  fprintf(stderr,
          "FAILED faults: phase %s, type %s (%s), matrix %s, allocation %ld fails on rank %d of %d, this is rank %d "
          "(%s:%d): %s\n",
          run.phase, now.under, run.options, now.name, run.k + 1, run.rank, now.size, now.rank,
          fault.fired ? fault.where : "no fault here", fault.fired ? fault.line : 0, what);
}

static void OnAlarm(int sig)
{
  Bad("this rank hangs");
  _exit(9);
}

/* Whether the phase's errors are as expected on all ranks; any: a fault has occurred on some rank */
static PetscErrorCode CheckErrors(const Phase *p, PetscErrorCode ierr, PetscBool device, PetscBool *any)
{
  const PetscBool own     = (PetscBool) !!(p->flags & OWN);
  const PetscBool absorbs = (PetscBool)(p->flags & ABSORBS && now.size > 1);
  int             mine[3] = {fault.fired > 0, ierr != 0, ierr == 0}, all[3];
  PetscBool       must;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(mine, all, 3, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
  *any = (PetscBool)all[0];
  must = (PetscBool)(*any && !absorbs);
  if (own) {
    if (ierr && !fault.fired) Bad("an error on a rank without a fault");
    must = (PetscBool)(fault.fired > 0);
  } else if (all[1] && all[2])
    Bad(ierr ? "an error that not all ranks have" : "no error on this rank, while other ranks have one");
  if (ierr && !*any) Bad("an error without a fault");
  if (ierr && *any && absorbs) Bad("an error where AIJ could multiply");
  if (!ierr && must && !device && !(own && !fault.fired)) Bad("no error on this rank");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void CheckLeaks(const Phase *p, int before)
{
  for (int k = before; k < nlive && run.k >= 0; k++) {
    char text[256];

    if (p->flags & HOLDS) continue;
    if (p->flags & LOSES && strstr(live[k].where, "matspmv.c")) continue; /* the data of the matrix that is lost */
    snprintf(text, sizeof(text), "the allocation at %s:%d is not freed", live[k].where, live[k].line);
    Bad(text);
  }
  nlive = before;
}

/* One life in which allocation k of the phase fails; struck is false if the phase has no more */
static PetscErrorCode RunFault(const Phase *p, const Case *c, const char *type, PetscBool device, PetscBool *struck)
{
  Life           l;
  PetscErrorCode ierr;
  PetscBool      right  = PETSC_FALSE;
  const int      before = nlive;

  PetscFunctionBegin;
  alarm(60);
  fault.fired = 0;
  PetscCall(LifeBegin(p, c, type, device, &l));
  PetscCall(PetscPushErrorHandler(Quiet, NULL));
  fault.after = run.k;
  fault.armed = (PetscBool)(run.rank < 0 || run.rank == now.rank);
  /* after an error PETSc does not free its own allocations; ours are counted here */
  LeaksIgnore(PETSC_TRUE);
  ierr = (*p->run)(&l);
  LeaksIgnore(PETSC_FALSE);
  fault.armed = PETSC_FALSE;
  PetscCall(PetscPopErrorHandler());
  PetscCall(CheckErrors(p, ierr, device, struck));
  if (*struck) {
    PetscInt bad = run.bad;

    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPIU_INT, MPI_MAX, PETSC_COMM_WORLD));
    if (!ierr || p->flags & OWN) PetscCall(MatDestroy(&l.B));
    l.B  = NULL;
    ierr = (*p->run)(&l);
    if (ierr) Bad("an error when the phase is run again");
    PetscCall(ierr);
  }
  if (c->row != Row_Problems && p->stage <= TYPED && p->run != Assemble) PetscCall(Assemble(&l));
  PetscCall(LifeCheck(&l, &right));
  if (!right) Bad("the next product is wrong");
  PetscCall(LifeEnd(&l));
  CheckLeaks(p, before);
  alarm(0);
  if (*struck) run.faults++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunPhase(const Phase *p, const Case *c, const char *type, PetscBool device)
{
  const int ranks = now.size == 1 || p->flags & (WITHIN | (device ? DEVWITHIN : 0)) ? 0 : now.size;
  PetscBool struck;

  PetscFunctionBegin;
  run.phase = p->name;
  run.phases++;
  run.rank = -1;
  run.k    = -1;
  /* first a life without a fault: some objects on a device are kept for the next matrix */
  if (device) PetscCall(RunFault(p, c, type, device, &struck));
  for (run.rank = -1; run.rank < ranks; run.rank++) {
    struck = PETSC_TRUE;
    for (run.k = 0; struck; run.k++) PetscCall(RunFault(p, c, type, device, &struck));
    if (run.verbose)
      PetscCall(
          PetscPrintf(PETSC_COMM_WORLD, "%s %s, rank %d: %ld allocations\n", p->name, c->name, run.rank, run.k - 1));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Case problems = {"problems", 60, 60, 5, SQUARE, Row_Problems};
static const Case big      = {"constant", 20000, 20000, 1, SQUARE, Row_Laplace};

/* Ways to store a matrix, each with different allocations */
static const struct {
  const char *type, *options;
} kernels[] = {{"sellp", "-mat_spmv_kernel slices"},
               {"sellp", "-mat_spmv_kernel csr"},
               {"sellp", "-mat_spmv_kernel auto"},
               {"sellp", "-mat_spmv_kernel slices -mat_sellp_sigma 64"},
               {"sellp", "-mat_spmv_kernel paper"},
               {"batch", "-mat_spmv_kernel slices"},
               {"batch", "-mat_spmv_kernel auto"},
               {"evchyb", "-mat_spmv_kernel slices"},
               {"evchyb", "-mat_spmv_kernel csr"},
               {"evchyb", "-mat_spmv_kernel auto"},
               {"evchyb", "-mat_spmv_kernel paper -mat_spmv_compress 0"}};

static PetscErrorCode RunLives(const char *type, PetscBool quick, PetscInt n, char *only[], PetscBool device)
{
  const char *const names[] = {"few", "lengths", "nodes3", "dense"};
  PetscBool         batch;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(type, MATBATCH, &batch));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(kernels); k++) {
    PetscBool same;

    PetscCall(PetscStrcmp(kernels[k].type, type, &same));
    if (!same || (quick && run.options)) continue;
    run.options = kernels[k].options;
    PetscCall(PetscOptionsInsertString(NULL, run.options));
    for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(phases); q++) {
      if (n) PetscCall(Listed(phases[q].name, n, only, &same));
      if ((n && !same) || (phases[q].flags & BATCH && !batch)) continue;
      if (phases[q].flags & BATCH) {
        now.name = problems.name;
        PetscCall(RunPhase(&phases[q], &problems, type, device));
        continue;
      }
      for (size_t i = 0; cases[i].name; i++) {
        PetscCall(Listed(cases[i].name, quick ? 1 : PETSC_STATIC_ARRAY_LENGTH(names),
                         (char **)(quick ? names + 2 : names), &same));
        now.name = cases[i].name;
        if (same && (!(phases[q].flags & SQUARES) || cases[i].has & SQUARE))
          PetscCall(RunPhase(&phases[q], &cases[i], type, device));
      }
      now.name = big.name;
      if (phases[q].flags & BIG && !quick) PetscCall(RunPhase(&phases[q], &big, type, device));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Creates the transports to which a matrix falls back if one fails: each is created once per communicator and kept */
static PetscErrorCode MakeTransports(const char *type, PetscBool device)
{
#if defined(PETSC_HAVE_CUDA)
  const char *const transports[] = {"host", "nccl"};
  int               devices      = 0;
  PetscBool         struck;

  PetscFunctionBegin;
  if (!device || now.size == 1) PetscFunctionReturn(PETSC_SUCCESS);
  (void)cudaGetDeviceCount(&devices);
  for (int k = 0; k < (devices < now.size ? 1 : 2); k++) { /* NCCL needs one device per rank */
    PetscCall(PetscOptionsSetValue(NULL, "-mat_spmv_halo", transports[k]));
    for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(phases); q++) {
      if (strcmp(phases[q].name, "mult")) continue;
      run.phase = phases[q].name;
      run.rank = run.k = -1;
      PetscCall(RunFault(&phases[q], &big, type, device, &struck));
    }
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_spmv_halo"));
#else
  PetscFunctionBegin;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char      type[64] = "sellp", *only[64];
  PetscBool quick = PETSC_FALSE, device = PETSC_FALSE, set;
  PetscInt  n = 64;
  MPI_Comm  comm, self;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(SetUpAtOnce());
  PetscCall(PetscSpMVInitializePackage());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &now.size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &now.rank));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-type", type, sizeof(type), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-quick", &quick, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-verbose", &run.verbose, NULL));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-phases", only, &n, &set));
  if (!set) n = 0;
  now.under = type;
  PetscCall(OnDevice(type, &device));
  /* objects that PETSc loses after an error keep the communicators' attributes alive */
  LeaksIgnore(PETSC_TRUE);
  PetscCall(PetscCommDuplicate(PETSC_COMM_WORLD, &comm, NULL));
  PetscCall(PetscCommDuplicate(PETSC_COMM_SELF, &self, NULL));
  LeaksIgnore(PETSC_FALSE);
  signal(SIGALRM, OnAlarm);
  FaultsInstall(PETSC_TRUE);
  PetscCall(MakeTransports(type, device));
  PetscCall(RunLives(type, quick, n, only, device));
  FaultsInstall(PETSC_FALSE);
  PetscCall(PetscCommDestroy(&self));
  PetscCall(PetscCommDestroy(&comm));
  for (PetscInt k = 0; k < n; k++) PetscCall(PetscFree(only[k]));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &run.bad, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                        "faults: type %s on the %s, %d ranks: %" PetscInt_FMT " allocations failed in %" PetscInt_FMT
                        " phases, %" PetscInt_FMT " failed\n",
                        type, device ? "device" : "host", now.size, run.faults, run.phases, run.bad));
  PetscCall(PetscFinalize());
  return run.bad ? 1 : 0;
}
