/*
  Walks the list of docs/types.md ("What refuses the types"): functions of PETSc that compare the whole name of a
  matrix's type with AIJ's. Each must give our types the result of AIJ, or the error that the list names. AIJPERM cannot
  serve as the model (NOPERM), because these functions do not treat it as AIJ. On a device our matrices have
  AIJCUSPARSE's name, and AIJCUSPARSE is the model.
*/
#include "solves.h"

/* Two solves; with a shift, every seventh diagonal entry is zero, so that it is needed. The shift that PCILU has
   afterwards */
static PetscErrorCode Solve(Test *t, Record *r)
{
  Mat                A;
  KSP                ksp;
  PC                 pc;
  PetscInt           rs, re;
  PetscBool          shift, ilu;
  MatFactorShiftType type;

  PetscFunctionBegin;
  if (strstr(t->arg, "tfs") && t->size & (t->size - 1)) PetscFunctionReturn(PETSC_SUCCESS); /* PCTFS needs 2^k ranks */
  PetscCall(Options(t->arg, PETSC_TRUE));
  PetscCall(Make(t, &A));
  shift = (PetscBool) !!strstr(t->arg, "shift");
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt k = rs; shift && k < re; k++) {
    if (k % 7 == 0) PetscCall(MatSetValue(A, k, k, 0., INSERT_VALUES));
  }
  PetscCall(MatAssemble(A));
  PetscCall(SolveTwice(r, A, 12, 0., PETSC_FALSE, &ksp));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCILU, &ilu));
  if (ilu) {
    PetscCall(PCFactorGetShiftType(pc, &type));
    PetscCall(RecordInt(r, "shift", (PetscInt64)type));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(RecordType(t, r, "type after the solves", A));
  PetscCall(MatDestroy(&A));
  PetscCall(Options(t->arg, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RecordIS(Record *r, const char *what, IS is)
{
  PetscMPIInt     size;
  PetscInt        n;
  const PetscInt *idx;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)is), &size));
  PetscCall(RecordInt(r, "ranks of an index set", size));
  PetscCall(ISGetLocalSize(is, &n));
  PetscCall(RecordInt(r, "length of an index set", n));
  PetscCall(ISGetIndices(is, &idx));
  for (PetscInt k = 0; k < n; k++) PetscCall(RecordAdd(r, what, k, idx[k], 0, NULL));
  PetscCall(ISRestoreIndices(is, &idx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Orderings(Test *t, Record *r)
{
  static const char *const types[] = {MATORDERINGNATURAL, MATORDERINGND,        MATORDERING1WD,   MATORDERINGRCM,
                                      MATORDERINGQMD,     MATORDERINGROWLENGTH, MATORDERINGEVCHYB};
  Mat                      A, B;
  IS                       row, col;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    PetscCall(MatGetOrdering(A, types[k], &row, &col));
    PetscCall(RecordIS(r, types[k], row));
    PetscCall(RecordIS(r, types[k], col));
    /* as direct solvers request; with columns in another order there are zeros to avoid */
    if (k == 1 && t->size == 1 && t->c->has & SOLVE) {
      IS unused, other;

      PetscCall(MatGetOrdering(A, MATORDERINGRCM, &unused, &other));
      PetscCall(MatReorderForNonzeroDiagonal(A, 1e-10, row, other));
      PetscCall(RecordIS(r, "columns with a better diagonal", other));
      PetscCall(Destroy(&unused, &other));
    }
    PetscCall(MatPermute(A, row, col, &B));
    PetscCall(RecordMat(t, r, "type of the permuted matrix", B));
    PetscCall(Destroy(&B, &row, &col));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Coloring(Test *t, Record *r)
{
  Mat         A;
  MatColoring mc;
  ISColoring  colors;
  IS         *is;
  PetscInt    n;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  for (PetscInt distance = 1; distance <= 2; distance++) {
    PetscCall(MatColoringCreate(A, &mc));
    PetscCall(MatColoringSetType(mc, t->arg));
    PetscCall(MatColoringSetDistance(mc, distance));
    PetscCall(MatColoringSetFromOptions(mc));
    PetscCall(MatColoringApply(mc, &colors));
    PetscCall(ISColoringGetIS(colors, PETSC_USE_POINTER, &n, &is));
    PetscCall(RecordInt(r, "colors", n));
    for (PetscInt k = 0; k < n; k++) PetscCall(RecordIS(r, "color", is[k]));
    PetscCall(ISColoringRestoreIS(colors, PETSC_USE_POINTER, &is));
    PetscCall(ISColoringDestroy(&colors));
    PetscCall(MatColoringDestroy(&mc));
  }
  PetscCall(RecordType(t, r, "type after coloring", A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks of the type: one twice, one transposed virtually, one missing */
static PetscErrorCode Nest(Test *t, Record *r)
{
  Mat A, block[4], N, B;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatCreateTranspose(A, &block[1]));
  block[0] = block[3] = A;
  block[2]            = NULL;
  PetscCall(MatCreateNest(t->comm, 2, NULL, 2, NULL, block, &N));
  PetscCall(MatConvert(N, MATAIJ, MAT_INITIAL_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the converted matrix", B));
  PetscCall(MatScale(A, 2.));
  PetscCall(MatConvert(N, MATAIJ, MAT_REUSE_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the converted matrix again", B));
  PetscCall(RecordType(t, r, "type of a block", A));
  PetscCall(Destroy(&B, &N, &block[1], &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The envelope of a block diagonal matrix, and the inverse of its blocks */
static PetscErrorCode Envelope(Test *t, Record *r)
{
  Mat A, C;

  PetscFunctionBegin;
  if (t->c->bs > 1) PetscFunctionReturn(PETSC_SUCCESS); /* PETSc 3.26 counts entries as blocks */
  PetscCall(Make(t, &A));
  PetscCall(MatInvertVariableBlockEnvelope(A, MAT_INITIAL_MATRIX, &C));
  PetscCall(RecordMat(t, r, "type of the inverse", C));
  PetscCall(Destroy(&C, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P^T A P by hypre, which returns an AIJ matrix */
static PetscErrorCode RAP(Test *t, Record *r)
{
  Mat       A, P, C;
  PetscBool has;

  PetscFunctionBegin;
  PetscCall(PetscHasExternalPackage("hypre", &has));
  if (!has) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Make(t, &A));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &P));
  PetscCall(MatProductCreate(A, P, NULL, &C));
  PetscCall(MatProductSetType(C, MATPRODUCT_PtAP));
  PetscCall(MatProductSetAlgorithm(C, "hypre"));
  PetscCall(MatProductSetFromOptions(C));
  PetscCall(MatProductSymbolic(C));
  PetscCall(MatProductNumeric(C));
  PetscCall(RecordMat(t, r, "type of the product", C));
  PetscCall(Destroy(&C, &P, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries and products, whatever the type */
static PetscErrorCode RecordAssembled(Record *r, Mat A)
{
  PetscBool assembled;

  PetscFunctionBegin;
  PetscCall(MatAssembled(A, &assembled));
  PetscCall(RecordInt(r, "assembled", assembled));
  PetscCall(RecordProducts(r, A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The type of an assembled matrix is set to aij, also after other types of the library, and the matrix is used further
   */
static PetscErrorCode SetType(Test *t, Record *r)
{
  /* PETSc 3.26 would convert to sellp through its own sell */
  static const char *const types[] = {MATEVCHYB, "aijsellp", MATAIJ, MATAIJ};
  Mat                      A;
  MatNullSpace             constant, null;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatNullSpaceCreate(t->comm, PETSC_TRUE, 0, NULL, &constant));
  PetscCall(MatSetNullSpace(A, constant));
  PetscCall(MatNullSpaceDestroy(&constant));
  for (size_t k = t->arg ? 0 : 2; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    PetscCall(MatSetType(A, t->aij ? MATAIJ : types[k]));
    PetscCall(RecordAssembled(r, A));
  }
  PetscCall(RecordMat(t, r, "type aij", A));
  PetscCall(MatGetNullSpace(A, &null));
  PetscCall(RecordInt(r, "has a null space", !!null));
  PetscCall(FillLike(t->R, 3, A));
  PetscCall(RecordMat(t, r, "type aij with other values", A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same where the program knows the type aij only, and the option makes it the type under test */
static PetscErrorCode SetTypeByOption(Test *t, Record *r)
{
  Mat         A;
  const char *format;

  PetscFunctionBegin;
  if (!t->aij) PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", t->type));
  PetscCall(MakeLike(t->R, MATAIJ, &A));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(MatSetType(A, MATAIJ));
    PetscCall(PetscSpMVGetFormat(A, &format));
    PetscCall(RecordInt(r, "type of the option", t->size > 1 || (format ? !t->aij : t->aij)));
    PetscCall(RecordAssembled(r, A));
    PetscCall(FillLike(t->R, k, A));
    PetscCall(RecordAssembled(r, A));
  }
  PetscCall(MatDestroy(&A));
  if (!t->aij) PetscCall(PetscOptionsClearValue(NULL, "-mat_seqaij_type"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the list's errors */

static PetscErrorCode KAIJ(Mat A, Vec x, Vec y)
{
  const PetscScalar T[] = {1., 2., 3., 4.};
  Mat               K;

  PetscFunctionBegin;
  (void)x;
  (void)y;
  PetscCall(MatCreateKAIJ(A, 2, 2, NULL, T, &K));
  PetscCall(MatDestroy(&K));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Condensed(Mat A, Vec x, Vec y)
{
  Mat B;

  PetscFunctionBegin;
  (void)x;
  (void)y;
  PetscCall(MatMPIAIJGetLocalMatCondensed(A, MAT_INITIAL_MATRIX, NULL, NULL, &B));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Classical(Mat A, Vec x, Vec y)
{
  KSP ksp;
  PC  pc;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(PCGAMGSetType(pc, PCGAMGCLASSICAL));
  PetscCall(PCGAMGClassicalSetType(pc, PCGAMGCLASSICALDIRECT));
  PetscCall(PCGAMGSetCoarseEqLim(pc, 5));
  PetscCall(KSPSolve(ksp, y, x));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Right-hand sides that are a sparse matrix, the identity of A's type on rank 0 */
static PetscErrorCode SparseColumns(Mat A, Vec x, Vec y)
{
  Mat         F, B, X;
  MatType     type;
  PetscInt    M, m;
  PetscMPIInt rank;

  PetscFunctionBegin;
  (void)x;
  (void)y;
  PetscCallMPI(MPI_Comm_rank(PetscObjectComm((PetscObject)A), &rank));
  PetscCall(MatSizes(A, &m, NULL, &M, NULL));
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), &B));
  PetscCall(MatSetSizes(B, rank ? 0 : M, m, M, M));
  PetscCall(MatGetType(A, &type));
  PetscCall(MatSetType(B, type));
  PetscCall(MatSetUp(B));
  for (PetscInt k = 0; !rank && k < M; k++) PetscCall(MatSetValue(B, k, k, 1., INSERT_VALUES));
  PetscCall(MatAssemble(B));
  PetscCall(MatGetFactor(A, MATSOLVERMUMPS, MAT_FACTOR_LU, &F));
  PetscCall(MatLUFactorSymbolic(F, A, NULL, NULL, NULL));
  PetscCall(MatLUFactorNumeric(F, A, NULL));
  PetscCall(MatCreateDense(PetscObjectComm((PetscObject)A), m, PETSC_DECIDE, M, M, NULL, &X));
  PetscCall(MatMatTransposeSolve(F, B, X));
  PetscCall(Destroy(&F, &B, &X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Our types get the error that the list names; on the device as AIJCUSPARSE does */
static PetscErrorCode Refused(Test *t, Record *r)
{
  static const struct {
    const char *name, *package; /* package: which PETSc must have, or NULL */
    PetscErrorCode (*call)(Mat, Vec, Vec);
  } calls[] = {{"kaij", NULL, KAIJ},
               {"condensed", NULL, Condensed},
               {"classical", NULL, Classical},
               {"mumps", "mumps", SparseColumns}};
  Mat            A;
  Vec            x, y;
  PetscErrorCode ierr;
  PetscBool      any = PETSC_TRUE;
  int            k   = 0;

  PetscFunctionBegin;
  while (strcmp(calls[k].name, t->arg)) k++;
  if (calls[k].package) PetscCall(PetscHasExternalPackage(calls[k].package, &any));
  if (!any) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Make(t, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecFill(y, 1));
  MayFail(ierr, (*calls[k].call)(A, x, y));
  PetscCall(Agree(ierr, &any));
  PetscCall(RecordInt(r, "refused as documented", t->aij || any));
  PetscCall(RecordMat(t, r, "type after the refusal", A));
  PetscCall(Destroy(&x, &y, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatAIJGetLocalMat() returns a parallel matrix of our types itself. MatMPIAIJGetLocalMat() merges the rows of any type
   */
static PetscErrorCode LocalMat(Test *t, Record *r)
{
  Mat A, B;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatAIJGetLocalMat(A, &B));
  PetscCall(RecordInt(r, "as documented", t->size == 1 || (t->aij ? A != B : A == B)));
  PetscCall(MatDestroy(&B));
  if (t->size > 1) {
    PetscCall(MatMPIAIJGetLocalMat(A, MAT_INITIAL_MATRIX, &B));
    PetscCall(RecordAssembled(r, B));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define SUB_SHIFT "-sub_pc_type ilu -sub_pc_factor_shift_type nonzero -sub_pc_factor_shift_amount 0.5"

static const Operation operations[] = {
    {"ilu", Solve, SPD | SEQ | NOPERM, "-pc_type ilu -pc_factor_shift_type nonzero -pc_factor_shift_amount 0.5"},
    {"ilu-small", Solve, SPD | SEQ | NOPERM, "-pc_type ilu -pc_factor_shift_type nonzero -pc_factor_shift_amount 0.01"},
    {"bjacobi", Solve, SPD | BYROW | NOPERM, "-pc_type bjacobi " SUB_SHIFT},
    {"asm", Solve, SPD | BYROW | NOPERM, "-pc_type asm " SUB_SHIFT},
    {"tfs", Solve, SPD | PAR | BYROW | NOPERM, "-pc_type tfs"},
    {"cp", Solve, SPD | SEQ | NOPERM, "-pc_type cp"},
    {"mis", Solve, SPD | NOPERM, "-pc_type gamg -pc_gamg_device 0 -mat_coarsen_type mis"},
    {"misk", Solve, SPD | NOPERM, "-pc_type gamg -pc_gamg_device 0 -mat_coarsen_type misk"},
    {"hem", Solve, SPD | NOPERM, "-pc_type gamg -pc_gamg_device 0 -mat_coarsen_type hem"},
    {"orderings", Orderings, SQUARE | FULL | BYROW | NOPERM},
    {"jp", Coloring, SPD | NOPERM, MATCOLORINGJP},
    {"greedy", Coloring, SPD | NOPERM, MATCOLORINGGREEDY},
    {"nest", Nest, SQUARE | FULL | NOPERM},
    {"envelope", Envelope, SOLVE | BYROW | NOPERM},
    {"rap", RAP, SQUARE | FULL | BYROW | NOPERM},
    {"settype", SetType, FULL | NOPERM | ONHOST},
    {"settype-others", SetType, FULL | NOPERM | ONHOST, "others"},
    {"settype-option", SetTypeByOption, FULL | NOPERM | ONHOST},
    {"kaij", Refused, SQUARE | FULL | BYROW | NOPERM, "kaij"},
    {"condensed", Refused, FULL | PAR | BYROW | NOPERM, "condensed"},
    {"classical", Refused, SPD | BYROW | NOPERM, "classical"},
    {"mumps", Refused, SPD | BYROW | NOPERM, "mumps"},
    {"localmat", LocalMat, FULL | NOPERM},
    {NULL, NULL, 0}};

int main(int argc, char **argv)
{
  return Suite(argc, argv, "names", operations, 0);
}
