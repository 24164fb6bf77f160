/*
  The matrix type batch against AIJ on random batches, with random operations and solvers. Each operation is written
  once. It runs on the matrix as AIJ and then on the batch, with the same random numbers, and records its results; the
  records must agree as in harness.h. Operations that AIJ itself does not support are not compared.

  Options: those of fuzz.h, except -type. A case depends only on its seed and the number of ranks.
*/
#include "parts/fuzzbatch.h"

/* ---------------------------------------------------------------- batches */

typedef unsigned char Mask[MOST_ROWS][MOST_ROWS];

static void DrawMask(PetscInt kind, PetscInt n, int has, Mask m)
{
  const PetscInt wide = draw(3), dense = 1 + draw(8);

  memset(m, 0, sizeof(Mask));
  for (PetscInt r = 0; r < n; r++) {
    const PetscBool again = (PetscBool)(r && kind == 3 && draw(3)), empty = (PetscBool)(kind == 4 && draw(2));

    for (PetscInt c = 0; c < n; c++) {
      if (kind == 0) m[r][c] = 1;
      if (kind == 1) m[r][c] = PetscAbsInt(r - c) <= wide;
      if (kind == 2 || (kind == 3 && !again)) m[r][c] = draw(9) < dense;
      if (kind == 3 && again) m[r][c] = m[r - 1][c];
      if (kind == 4) m[r][c] = !empty && draw(9) < dense;
      if (kind == 6) m[r][c] = !r || !c;
      if (kind == 7) m[r][c] = c <= r;
    }
  }
  for (PetscInt r = 0; r < n; r++) {
    if (has & DIAGONAL || kind == 8) m[r][r] = 1;
    for (PetscInt c = 0; has & DEFINITE && c < r; c++) m[r][c] = m[c][r] = m[r][c] | m[c][r];
  }
  for (PetscInt r = 1; kind == 3 && r < n; r++) { /* the same columns with the diagonal, too: inodes */
    if (!draw(2)) continue;
    for (PetscInt c = 0; c < n; c++) {
      m[r][c] = m[r - 1][c] = m[r][c] | m[r - 1][c];
      if (has & DEFINITE) m[c][r] = m[c][r - 1] = m[r][c];
    }
  }
}

static PetscScalar DrawNumber(const RandomBatch *batch)
{
  static const PetscReal special[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0, PETSC_SMALL * PETSC_SMALL};
  const PetscScalar      v         = number();

  if (!batch->special || draw(8)) return batch->has & DEFINITE ? PetscRealPart(v) / 2 : v / 2.0;
  switch (draw(6)) {
  case 0: return (PetscScalar)special[0];
  case 1:
  case 2: /* complex products of infinite numbers depend on the implementation */
    return PetscDefined(USE_COMPLEX) ? -0.0 : (PetscScalar)special[1 + draw(2)];
  case 3: return -0.0;
  case 4: return 0.0;
  default: return PETSC_MACHINE_EPSILON * (sizeof(PetscReal) == 4 ? 1e-36 : 1e-305); /* denormal */
  }
}

void DrawProblem(const RandomBatch *batch, PetscInt n, const PetscInt i[], const PetscInt j[], PetscScalar a[])
{
  PetscScalar full[MOST_ROWS][MOST_ROWS];
  PetscReal   sum[MOST_ROWS] = {0};

  for (PetscInt r = 0; r < n; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++)
      full[r][j[k]] = batch->has & DEFINITE && j[k] < r ? full[j[k]][r] : DrawNumber(batch);
  }
  for (PetscInt r = 0; r < n; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++)
      sum[r] += PetscAbsScalar(full[r][j[k]]), sum[j[k]] += batch->has & DEFINITE ? 0 : PetscAbsScalar(full[r][j[k]]);
  }
  for (PetscInt r = 0; r < n; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++)
      a[k - i[0]] = batch->has & DOMINANT && j[k] == r ? 1.0 + (PetscReal)draw(3) + sum[r] : full[r][j[k]];
  }
}

/* The problems of this rank, drawn with this rank's own random numbers. Afterwards all ranks draw the same numbers
   again */
static PetscErrorCode DrawBatch(RandomBatch *batch, PetscMPIInt rank, PetscMPIInt size)
{
  Arrays *a = &batch->a;
  /* kinds from 9 on: each problem has its own */
  const PetscInt kind = draw(12), same = draw(2) ? 1 + draw(MOST_ROWS) : 0;
  uint64_t       common;
  PetscInt       at = 0, row = 0, patterns;

  PetscFunctionBegin;
  batch->has = draw(3) ? DIAGONAL | DOMINANT | (draw(2) ? DEFINITE : 0) : (draw(3) ? 0 : DIAGONAL);
  batch->has |= size == 1 ? ONERANK : 0;
  batch->special = (PetscBool)(!(batch->has & DOMINANT) && draw(2));
  batch->has |= batch->special ? 0 : FINITE;
  a->sharing    = (MatBatchSharing)(draw(2) ? draw(3) : 0);
  batch->blocks = same || a->sharing ? (same ? same : 1 + draw(MOST_ROWS)) : 0;
  common        = seed;
  seed += 0x9E3779B97F4A7C15u * (uint64_t)(rank + 1);
  a->problems = draw(10) ? 1 + draw(60 / size) : 0;
  if (!a->problems) a->sharing = MATBATCH_SHARE_NONE;
  patterns = a->sharing ? 1 : a->problems;
  PetscCall(PetscMalloc1(a->problems, &a->sizes));
  PetscCall(PetscMalloc1(patterns * MOST_ROWS + 1, &a->i));
  PetscCall(PetscMalloc1(patterns * MOST_ROWS * MOST_ROWS, &a->j));
  PetscCall(PetscMalloc1(a->problems * MOST_ROWS * MOST_ROWS, &a->a));
  a->i[0] = 0;
  a->rows = 0;
  for (PetscInt p = 0; p < a->problems; p++) {
    Mask           mask;
    const PetscInt n = batch->blocks ? batch->blocks : (draw(9) ? 1 + draw(MOST_ROWS) : 0);

    a->sizes[p] = n;
    a->rows += n;
    if (p >= patterns) continue;
    DrawMask(kind < 9 ? kind : draw(9), n, batch->has, mask);
    for (PetscInt r = 0; r < n; r++) {
      for (PetscInt c = 0; c < n; c++) {
        if (mask[r][c]) a->j[at++] = c;
      }
      a->i[++row] = at;
    }
  }
  a->values = (PetscInt64)at * (a->sharing == MATBATCH_SHARE_PATTERN ? a->problems : 1);
  row       = 0;
  for (PetscInt p = 0; p < (a->sharing == MATBATCH_SHARE_VALUES ? 1 : a->problems); p++) {
    const PetscInt *i = a->i + (a->sharing ? 0 : row);

    DrawProblem(batch, a->sizes[p], i, a->j, a->a + i[0] + (a->sharing == MATBATCH_SHARE_PATTERN ? p * at : 0));
    row += a->sizes[p];
  }
  seed = common;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The problems as blocks of the diagonal */
static PetscErrorCode SetBlocks(const RandomBatch *batch, Mat M)
{
  PetscInt *sizes, n = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(batch->a.problems, &sizes));
  for (PetscInt p = 0; p < batch->a.problems; p++) {
    if (batch->a.sizes[p]) sizes[n++] = batch->a.sizes[p];
  }
  PetscCall(MatSetVariableBlockSizes(M, n, sizes));
  PetscCall(PetscFree(sizes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The batch, created in one of several ways */
static PetscErrorCode MakeBatch(MPI_Comm comm, RandomBatch *batch, Mat B, Mat *A)
{
  const Arrays  *a   = &batch->a;
  const PetscInt way = draw(5), rows = a->sharing ? a->sizes[0] : a->rows;
  const char    *kern = draw(2) ? "auto" : kernels[draw((PetscInt)PETSC_STATIC_ARRAY_LENGTH(kernels))];

  PetscFunctionBegin;
  if (way == 0) { /* MatConvert() finds the blocks itself, and may find other blocks than these */
    PetscCall(SetBlocks(batch, B));
    PetscCall(MatConvert(B, MATBATCH, MAT_INITIAL_MATRIX, A));
  } else if (way == 1) {
    PetscInt    *i, *j;
    PetscScalar *v;

    PetscCall(PetscMalloc1(rows + 1, &i));
    PetscCall(PetscMalloc1(a->i[rows], &j));
    PetscCall(PetscMalloc1(a->values, &v));
    PetscCall(PetscArraycpy(i, a->i, rows + 1));
    PetscCall(PetscArraycpy(j, a->j, a->i[rows]));
    PetscCall(PetscArraycpy(v, a->a, a->values));
    PetscCall(MatCreateBatch(comm, a->problems, a->sizes, i, j, v, a->sharing, PETSC_OWN_POINTER, A));
  } else
    PetscCall(MatCreateBatch(comm, a->problems, a->sizes, a->i, a->j, a->a, a->sharing,
                             way == 2 ? PETSC_USE_POINTER : PETSC_COPY_VALUES, A));
  if (batch->blocks && draw(2)) {
    PetscCall(MatSetBlockSize(*A, batch->blocks));
    PetscCall(MatSetBlockSize(B, batch->blocks));
  }
  PetscCall(SetKernel(*A, kern));
  FuzzLog("kernel %s, sharing %d, way %d%s%s%s", kern, (int)a->sharing, (int)way,
          batch->special ? ", special values" : "", batch->has & DOMINANT ? ", dominant" : "",
          batch->has & DEFINITE ? ", definite" : "");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- solvers */

/* Without PCGAMG and PCCP, which PETSc has only for matrices of AIJ's types, by name */
static const struct {
  const char *options;
  int         needs;
} solvers[] = {
    {"none", 0},
    {"jacobi", 0},
    {"jacobi -pc_jacobi_type rowmax", 0},
    {"jacobi -pc_jacobi_type rowsum", 0},
    {"jacobi -pc_jacobi_abs", 0},
    {"bjacobi", 0},
    {"bjacobi -sub_pc_type lu", 0},
    {"bjacobi -sub_pc_type ilu -sub_pc_factor_levels 1", 0},
    {"bjacobi -sub_pc_type cholesky", DEFINITE},
    {"bjacobi -sub_pc_type icc", DEFINITE},
    {"bjacobi -sub_pc_type sor", 0},
    {"bjacobi -pc_bjacobi_local_blocks 2 -sub_pc_type lu", 0},
    {"pbjacobi", 0},
    {"vpbjacobi", 0},
    {"sor", 0},
    {"sor -pc_sor_local_backward -pc_sor_its 2", 0},
    {"sor -pc_sor_local_symmetric -pc_sor_omega 1.3", 0},
    {"eisenstat", ONERANK}, /* AIJ does not support it reliably on several */
    {"asm", 0},
    {"asm -pc_asm_overlap 0 -sub_pc_type lu", 0},
    {"asm -pc_asm_overlap 2 -pc_asm_type basic -sub_pc_type lu", 0},
#if !defined(PETSC_HAVE_PTSCOTCH) || \
    !defined(PETSC_USE_64BIT_INDICES) /* PTScotch 7.0 with 64-bit integers does not divide all graphs */
    {"asm -pc_asm_local_blocks 2 -sub_pc_type ilu", 0},
#endif
    {"gasm", 0},
    {"redundant", 0},
    {"telescope -telescope_pc_type jacobi", 0},
    {"ksp -ksp_ksp_type gmres -ksp_pc_type jacobi", 0},
    {"composite -pc_composite_pcs jacobi,sor", 0},
    {"mg -pc_mg_levels 1 -mg_levels_0_ksp_type gmres -mg_levels_0_pc_type jacobi", 0},
    {"kaczmarz", 0},
    {"svd", ONERANK},
    {"lu", ONERANK},
    {"lu -pc_factor_mat_ordering_type natural", ONERANK},
    {"lu -pc_factor_mat_ordering_type rcm", ONERANK},
    {"lu -pc_factor_mat_ordering_type 1wd", ONERANK},
    {"lu -pc_factor_mat_ordering_type qmd", ONERANK},
    {"lu -pc_factor_mat_ordering_type rowlength", ONERANK},
    {"lu -pc_factor_mat_ordering_type evchyb", ONERANK},
    {"lu -pc_factor_nonzeros_along_diagonal", ONERANK},
    {"lu -pc_factor_reuse_ordering -pc_factor_reuse_fill -pc_factor_shift_type nonzero", ONERANK},
    {"ilu", ONERANK},
    {"ilu -pc_factor_levels 2", ONERANK},
    {"ilu -pc_factor_mat_ordering_type rcm", ONERANK},
    {"ilu -pc_factor_mat_ordering_type nd -pc_factor_levels 1", ONERANK},
    {"ilu -pc_factor_diagonal_fill -pc_factor_shift_type inblocks", ONERANK},
    {"cholesky", ONERANK | DEFINITE},
    {"cholesky -pc_factor_mat_ordering_type nd", ONERANK | DEFINITE},
    {"cholesky -pc_factor_mat_ordering_type rcm", ONERANK | DEFINITE},
    {"cholesky -pc_factor_mat_ordering_type qmd", ONERANK | DEFINITE},
    {"icc", ONERANK | DEFINITE},
    {"icc -pc_factor_levels 1", ONERANK | DEFINITE},
    {"icc -pc_factor_mat_ordering_type rcm -pc_factor_shift_type positive_definite", ONERANK | DEFINITE},
};

static PetscErrorCode DrawSolver(RandomBatch *batch)
{
  size_t      k;
  const char *ksp;

  PetscFunctionBegin;
  do k = (size_t)draw((PetscInt)PETSC_STATIC_ARRAY_LENGTH(solvers));
  while ((solvers[k].needs & batch->has) != solvers[k].needs);
  ksp = batch->has & DEFINITE && !draw(4) ? "gcr" : (draw(3) ? "gmres" : "fgmres");
  PetscCall(PetscSNPrintf(batch->solver, sizeof(batch->solver), "-ksp_type %s -pc_type %s", ksp, solvers[k].options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves twice: the second time with new values, for which everything is set up again */
static PetscErrorCode Solve(RandomBatch *batch, Mat *M, Record *r)
{
  KSP                ksp;
  Vec                x, b;
  PetscInt           its;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(SetBlocks(batch, *M));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)*M), &ksp));
  PetscCall(KSPSetOperators(ksp, *M, *M));
  PetscCall(KSPSetTolerances(ksp, 1e3 * PETSC_MACHINE_EPSILON, PETSC_DEFAULT, PETSC_DEFAULT, 1000));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(MatCreateVecs(*M, &x, &b));
  for (int again = 0; again < 2; again++) {
    PetscCall(DrawVec(batch, b));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(KSPGetIterationNumber(ksp, &its));
    PetscCall(RecordAdd(r, "iterations", again, its, 2 + its / 4, NULL));
    PetscCheck(reason > 0, PetscObjectComm((PetscObject)*M), PETSC_ERR_NOT_CONVERGED, "not solved: reason %d",
               (int)reason);
    PetscCall(RecordVec(r, "solution", x, NULL, 1e6));
    if (!again) PetscCall(MatScale(*M, 2.0));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Op_Solve(RandomBatch *batch, Mat *M, Record *r)
{
  PetscOptions   options;
  PetscBool      set;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscOptionsCreate(&options));
  PetscCall(PetscOptionsInsertString(options, batch->solver));
  /* for the AIJ copies that the batch creates from now on */
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_no_inode", &set));
  if (set) PetscCall(PetscOptionsSetValue(options, "-mat_no_inode", NULL));
  PetscCall(PetscOptionsPush(options));
  ierr = Solve(batch, M, r);
  PetscCall(PetscOptionsPop());
  PetscCall(PetscOptionsDestroy(&options));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- running */

static const struct {
  const char *name;
  PetscErrorCode (*run)(RandomBatch *, Mat *, Record *);
  int needs, loses; /* loses: properties that the matrix no longer has afterwards */
} operations[] = {
    {"products", Op_Products, 0, 0},
    {"MatScale()", Op_Scale, 0, 0},
    {"MatConjugate()", Op_Conjugate, 0, 0},
    {"MatZeroEntries()", Op_ZeroEntries, 0, DOMINANT | DEFINITE},
    {"MatShift()", Op_Shift, DIAGONAL, 0},
    {"MatGetDiagonal()", Op_Diagonal, 0, 0},
    {"MatDiagonalSet()", Op_DiagonalSet, DIAGONAL, DOMINANT | DEFINITE},
    {"MatDiagonalScale()", Op_DiagonalScale, 0, DOMINANT | DEFINITE},
    {"MatDuplicate()", Op_Duplicate, 0, 0},
    {"MatAXPY()", Op_AXPY, 0, 0},
    {"MatTranspose()", Op_Transpose, 0, 0},
    {"MatConvert()", Op_Convert, 0, 0},
    {"MatBatchSetValues()", Op_SetValues, 0, 0},
    {"norms", Op_Norms, FINITE, 0},
    {"MatGetRowMax()", Op_RowMax, FINITE, 0},
    {"MatGetValues()", Op_Values, 0, 0},
    {"MatIsSymmetric()", Op_Symmetry, FINITE, 0},
    {"MatCreateSubMatrix()", Op_SubMatrix, FINITE, 0},
    {"MatGetOrdering()", Op_Ordering, ONERANK, 0},
    {"MatMatMult()", Op_MatProducts, FINITE, 0},
    {"MatSOR()", Op_Relax, DOMINANT, 0},
    {"solver", Op_Solve, DOMINANT, 0},
};
#define NOPERATIONS ((PetscInt)PETSC_STATIC_ARRAY_LENGTH(operations))

/* Collective. An operation on AIJ or on the batch, then the entries and products of the matrix; failed on all ranks if
   on any */
static PetscErrorCode Run(RandomBatch *batch, PetscInt op, const char *type, Mat *M, Record *r, PetscBool *failed)
{
  PetscErrorCode ierr;
  int            any;

  PetscFunctionBegin;
  fuzz.error[0] = 0;
  fuzz.running  = type;
  now.run       = type;
  ierr          = operations[op].run(batch, M, r);
  if (!ierr && operations[op].run != Op_Products) ierr = RecordEntries(r, *M);
  if (!ierr && operations[op].run != Op_Products) ierr = Op_Products(batch, M, r);
  any = ierr ? 1 : 0;
  PetscCall(FuzzAgree(&any));
  *failed = (PetscBool)any;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs one operation on both; *end: the matrices can no longer be used */
static PetscErrorCode Both(RandomBatch *batch, PetscInt op, Mat *A, Mat *B, PetscBool *end)
{
  Record    rec[2];
  char      what[400];
  uint64_t  drawn;
  PetscInt  bad = 0;
  PetscBool failed;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(rec, sizeof(rec)));
  if (operations[op].run == Op_Solve) PetscCall(DrawSolver(batch));
  PetscCall(PetscSNPrintf(what, sizeof(what), "%s%s%s", operations[op].name, operations[op].run == Op_Solve ? " " : "",
                          operations[op].run == Op_Solve ? batch->solver : ""));
  FuzzLog("; %s", what);
  now.operation = what;
  drawn         = seed;
  PetscCall(Run(batch, op, MATAIJ, B, &rec[0], &failed));
  *end = failed;
  if (failed) FuzzLog(" (AIJ itself fails: %.200s)", fuzz.error);
  if (!failed) {
    seed = drawn;
    PetscCall(Run(batch, op, MATBATCH, A, &rec[1], end));
    if (*end)
      FuzzReport("%s", fuzz.error[0] ? fuzz.error : "another rank has failed");
    else {
      PetscCall(Compare(&rec[0], NULL, &rec[1], PETSC_TRUE, &bad));
      if (bad) FuzzReport("results of %s differ, see above", what);
    }
  }
  {
    int any = fuzz.bad > 0;

    PetscCall(FuzzAgree(&any));
    if (any) *end = PETSC_TRUE;
  }
  fuzz.checks += rec[1].n;
  batch->has &= ~operations[op].loses;
  for (int k = 0; k < 2; k++) PetscCall(RecordReset(&rec[k]));
  fuzz.running = now.run = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the options of the command line select an operation */
static PetscErrorCode Selected(PetscInt op, PetscBool *in)
{
  PetscBool skip;

  PetscFunctionBegin;
  PetscCall(Listed(operations[op].name, fuzz.nonly, fuzz.only, in));
  PetscCall(Listed(operations[op].name, fuzz.nskip, fuzz.skip, &skip));
  *in = (PetscBool)((*in || !fuzz.nonly) && !skip);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OneCase(void)
{
  static char name[64];
  RandomBatch batch;
  Mat         A, B;
  Vec         x;
  PetscBool   end = PETSC_FALSE, in;
  PetscInt    steps, op;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&batch, sizeof(batch)));
  now.program   = fuzz.program;
  now.under     = MATBATCH;
  now.name      = name;
  now.operation = "creation";
  now.rank      = fuzz.rank;
  now.size      = fuzz.size;
  now.turn      = fuzz.number;
  PetscCall(PetscSNPrintf(name, sizeof(name), "of seed %" PetscInt_FMT, fuzz.number));
  seed = 88172645463325252u ^ (0x9E3779B97F4A7C15u * (uint64_t)(fuzz.number + 1));
  for (int k = 0; k < 8; k++) (void)draw(2);
  PetscCall(DrawBatch(&batch, fuzz.rank, fuzz.size));
  PetscCall(MakeAIJ(fuzz.comm, &batch.a, &B, NULL));
  PetscCall(MakeBatch(fuzz.comm, &batch, B, &A));
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)x, &fuzz.device, VECSEQCUDA, VECMPICUDA, ""));
  PetscCall(VecDestroy(&x));
  steps = 2 + draw(5);
  steps = PetscMin(steps, fuzz.steps);
  PetscCall(Both(&batch, 0, &A, &B, &end));
  for (PetscInt k = 0; k < steps && !end; k++) {
    do op = batch.has & DOMINANT && draw(2) ? NOPERATIONS - 1 : draw(NOPERATIONS);
    while ((operations[op].needs & batch.has) != operations[op].needs);
    PetscCall(Selected(op, &in));
    if (in) PetscCall(Both(&batch, op, &A, &B, &end));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(ArraysDestroy(&batch.a));
  if (fuzz.verbose) PetscCall(PetscPrintf(fuzz.comm, "%" PetscInt_FMT ": %s\n", fuzz.number, fuzz.log));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  return FuzzMain(argc, argv, "fuzzbatch", MATBATCH, OneCase);
}
