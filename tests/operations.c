/*
  The other operations of Mat: conversions, views, factorizations in place, calls that must return an error. What PETSc
  computes from AIJ's entries (norms, diagonals, orderings, relaxation, factors) and the matrices that it makes from a
  matrix (transposes, submatrices, duplicates, sums) are steps of tests/fuzz.c, solves of tests/solvers.c, and operations
  of tests/names.c and of "parameters" in tests/options.c.
*/
#include "harness.h"

/* A matrix with one entry in each row, in the columns from `first` on */
static PetscErrorCode MakeShifted(Test *t, PetscInt first, const char *type, Mat *A)
{
  PetscInt rs, re, N;

  PetscFunctionBegin;
  PetscCall(CreateLike(t->R, type, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 2, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 2, NULL, 2, NULL));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  PetscCall(MatGetSize(*A, NULL, &N));
  for (PetscInt i = rs; i < re; i++) PetscCall(MatSetValue(*A, i, (i + first) % N, Value(i, first, 5), INSERT_VALUES));
  PetscCall(MatAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Conversion to a matrix that has another pattern with as many entries in each row: both patterns remain. PETSc's
  conversion of AIJ to AIJ does not support it
*/
static PetscErrorCode ConvertOther(Test *t, Record *r)
{
  Mat A, B;

  PetscFunctionBegin;
  for (int own = 0; own < 2; own++) {
    PetscCall(MakeShifted(t, 0, own ? t->type : MATAIJ, &A));
    PetscCall(MakeShifted(t, 1, t->type, &B));
    PetscCall(Touch(B));
    if (t->aij)
      PetscCall(MatCopy(A, B, DIFFERENT_NONZERO_PATTERN));
    else
      PetscCall(MatConvert(A, t->type, MAT_REUSE_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the reused matrix", B));
    PetscCall(MatDestroy(&B));
    PetscCall(MakeShifted(t, 1, MATAIJ, &B));
    if (t->aij)
      PetscCall(MatCopy(A, B, DIFFERENT_NONZERO_PATTERN));
    else if (own)
      PetscCall(MatConvert(A, MATAIJ, MAT_REUSE_MATRIX, &B));
    else
      PetscCall(MatCopy(A, B, DIFFERENT_NONZERO_PATTERN));
    PetscCall(RecordProducts(r, B, PETSC_TRUE));
    PetscCall(Destroy(&B, &A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Records whether a conversion returned the requested type, and not just a type that works */
static PetscErrorCode RecordRequested(Record *r, Mat A, const char *type)
{
  PetscBool is, is_aij;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(type, MATAIJ, &is_aij));
  if (is_aij)
    PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &is, MATSEQAIJ, MATMPIAIJ, ""));
  else
    PetscCall(IsType(A, type, &is));
  PetscCall(RecordInt(r, "has the requested type", is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Conversion to another type (the argument) and back: new, reused, in place. AIJPERM is no model, because its conversion
  to AIJ with MAT_REUSE_MATRIX does not work, nor AIJSELL's (PETSc 3.18 to 3.26) and SBAIJ's (3.18). Of PETSc's
  conversions from a dense matrix, some keep zeros as entries and some do not.
*/
static PetscErrorCode RecordBack(Test *t, Record *r, const char *what, Mat A)
{
  PetscBool dense;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(t->arg, MATDENSE, &dense));
  if (!dense)
    PetscCall(RecordMat(t, r, what, A));
  else
    PetscCall(RecordProducts(r, A, PETSC_FALSE));
  PetscCall(RecordRequested(r, A, t->type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Convert(Test *t, Record *r)
{
  const char *other = t->arg ? t->arg : t->type;
  Mat         A, B, C;
  MatInfo     before, after;
  PetscBool   is, aij, sbaij, perm, sell, reuse;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(other, MATIS, &is));
  PetscCall(PetscStrcmp(other, MATSBAIJ, &sbaij));
  PetscCall(PetscStrcmp(other, MATAIJPERM, &perm));
  PetscCall(PetscStrcmp(other, MATAIJSELL, &sell));
  reuse = (PetscBool) !(perm || sell || (sbaij && t->c->bs > 1));
  PetscCall(Make(t, &A));
  if (sbaij) PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(Touch(A));
  PetscCall(MatConvert(A, other, MAT_INITIAL_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the new matrix", B));
  if (t->arg) PetscCall(RecordRequested(r, B, other));
  PetscCall(RecordMat(t, r, "type of the original", A));
  PetscCall(MatScale(A, 2.));
  if (reuse) {
    PetscCall(MatGetInfo(B, MAT_LOCAL, &before));
    PetscCall(MatConvert(A, other, MAT_REUSE_MATRIX, &B));
    PetscCall(MatGetInfo(B, MAT_LOCAL, &after));
    PetscCall(PetscStrcmp(other, MATAIJ, &aij));
    if (aij || !t->arg)
      PetscCall(RecordInt(r, "assemblies by copying to the same pattern",
                          (PetscInt64)(after.assemblies - before.assemblies)));
    PetscCall(RecordMat(t, r, "type of the reused matrix", B));
    if (t->arg) PetscCall(RecordRequested(r, B, other));
  }
  if (!is) PetscCall(MatScale(B, 3.)); /* B must have its own values; AIJ does not ensure this in a MATIS */
  PetscCall(RecordMat(t, r, "type of the original", A));
  PetscCall(MatConvert(B, t->type, MAT_INITIAL_MATRIX, &C));
  PetscCall(RecordBack(t, r, "type of the new matrix after the way back", C));
  if (!is) PetscCall(MatScale(B, 5.));
  if (reuse) {
    PetscCall(MatConvert(B, t->type, MAT_REUSE_MATRIX, &C));
    PetscCall(RecordBack(t, r, "type of the reused matrix after the way back", C));
  }
  PetscCall(Destroy(&C, &B));
  PetscCall(MatConvert(A, other, MAT_INPLACE_MATRIX, &A));
  PetscCall(RecordMat(t, r, "type after conversion in place", A));
  if (t->arg) PetscCall(RecordRequested(r, A, other));
  PetscCall(MatScale(A, .5));
  PetscCall(RecordMat(t, r, "type after conversion in place and scaling", A));
  PetscCall(MatConvert(A, t->type, MAT_INPLACE_MATRIX, &A));
  PetscCall(RecordBack(t, r, "type after the way back in place", A));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(FillLike(t->R, 6, A));
  PetscCall(RecordBack(t, r, "type after the way back in place and other values", A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ShellMult(Mat S, Vec x, Vec y)
{
  Mat A;

  PetscFunctionBegin;
  PetscCall(MatShellGetContext(S, &A));
  PetscCall(MatMult(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Conversion from a matrix that only has a product, as in MatComputeOperator() and MatConvert_Shell, and to such a
   matrix */
static PetscErrorCode Shell(Test *t, Record *r)
{
  Mat      A, S, B;
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(MatCreateShell(t->comm, m, n, M, N, A, &S));
  PetscCall(MatShellSetOperation(S, MATOP_MULT, (void (*)(void))ShellMult));
  PetscCall(MatConvert(S, t->type, MAT_INITIAL_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the shell's conversion", B));
  PetscCall(Destroy(&B, &S));
  PetscCall(MatConvert(A, MATSHELL, MAT_INITIAL_MATRIX, &S));
  PetscCall(RecordMat(t, r, "type of the conversion to shell", S));
  PetscCall(Destroy(&S, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Text, line by line; lines that name the type differ, and the summary formats may print more */
static PetscErrorCode Ascii(Test *t, Record *r)
{
  const PetscViewerFormat formats[] = {
      PETSC_VIEWER_DEFAULT,    PETSC_VIEWER_ASCII_MATLAB, PETSC_VIEWER_ASCII_COMMON,     PETSC_VIEWER_ASCII_DENSE,
      PETSC_VIEWER_ASCII_IMPL, PETSC_VIEWER_ASCII_INFO,   PETSC_VIEWER_ASCII_INFO_DETAIL};
  Mat   A;
  char *text;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(PetscObjectSetName((PetscObject)A, "A"));
  PetscCall(Touch(A));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(formats); k++) {
    const PetscBool summary =
        (PetscBool)(formats[k] == PETSC_VIEWER_ASCII_INFO || formats[k] == PETSC_VIEWER_ASCII_INFO_DETAIL);

    if (formats[k] == PETSC_VIEWER_ASCII_DENSE && t->size > 1) continue; /* not in PETSc */
    PetscCall(ViewText((PetscObject)A, formats[k], &text));
    if (!t->rank && summary) PetscCall(RecordInt(r, "anything in the summary", text[0] != 0));
    for (char *line = strtok(text, "\n"); line && !t->rank && !summary; line = strtok(NULL, "\n")) {
      if (!strstr(line, "type:") && !strstr(line, "aij"))
        PetscCall(RecordText(r, PetscViewerFormats[formats[k]], line));
    }
    free(text);
  }
  PetscCall(RecordMat(t, r, "type after views", A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A as its own factor: not for AIJPERM, because PETSc 3.19 requires that the two have the same type */
static PetscErrorCode FactorInPlace(Test *t, Record *r)
{
  Mat           A;
  Vec           b, x;
  IS            row, col;
  MatFactorInfo info;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecFill(b, 1));
  PetscCall(MatGetOrdering(A, MATORDERINGNATURAL, &row, &col));
  PetscCall(MatFactorInfoInitialize(&info));
  info.fill = 3;
  if (t->arg[0] == 'i')
    PetscCall(MatILUFactor(A, row, col, &info));
  else
    PetscCall(MatLUFactor(A, row, col, &info));
  PetscCall(MatSolve(A, b, x));
  PetscCall(RecordVec(r, "solution", x, NULL, 1e6));
  PetscCall(Destroy(&row, &col, &b, &x, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PAIRS: rows 2 k and 2 k + 1 have the same columns, so there are inodes. No two columns have the same rows, so the
   transpose, COLUMNS, has none */
enum { PAIRS, COLUMNS, DIAGONAL };

static PetscErrorCode SetPairs(Mat A, int kind)
{
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &n, NULL));
  for (PetscInt i = 0; i < n; i++) {
    for (PetscInt k = 0; k < 3; k++) {
      const PetscInt j = (i / 2 * 2 + k) % n;

      if (i != j && kind == DIAGONAL) continue;
      PetscCall(MatSetValue(A, kind == COLUMNS ? j : i, kind == COLUMNS ? i : j, i == j ? 9. : Value(i, j, 5),
                            INSERT_VALUES));
    }
  }
  PetscCall(MatAssemble(A));
  PetscCall(Touch(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MakePairs(Test *t, int kind, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreateSized(t->comm, t->type, 60, 60, 60, 60, 4, A));
  PetscCall(SetPairs(*A, kind));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After changes of the pattern, factors of AIJ may be wrong (docs/petsc-issues.md), so the model is factored as a dense
   matrix */
static PetscErrorCode SolveAgain(KSP ksp, Mat A, Record *r)
{
  const PetscBool model = (PetscBool)strcmp(now.run, now.under);
  Mat             S     = A;
  Vec             b, x;

  PetscFunctionBegin;
  if (model) {
    PetscCall(KSPReset(ksp));
    PetscCall(MatConvert(A, MATSEQDENSE, MAT_INITIAL_MATRIX, &S));
  }
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecFill(b, 1));
  PetscCall(KSPSetOperators(ksp, S, S));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(RecordVec(r, "solution", x, NULL, 1e6));
  if (model) PetscCall(MatDestroy(&S));
  PetscCall(Destroy(&b, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MakeLU(MPI_Comm comm, KSP *ksp)
{
  PC pc;

  PetscFunctionBegin;
  PetscCall(KSPCreate(comm, ksp));
  PetscCall(KSPSetType(*ksp, KSPPREONLY));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCLU));
  PetscCall(PCFactorSetMatSolverType(pc, MATSOLVERPETSC));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* LU of a matrix that MatTranspose() and MatAXPY() have merged with one of another pattern: in place, by a sum, and as
   the transpose of new entries */
static PetscErrorCode Refactor(Test *t, Record *r)
{
  const int kind[][2] = {{PAIRS, PAIRS}, {COLUMNS, COLUMNS}, {DIAGONAL, PAIRS}, {DIAGONAL, COLUMNS}};
  Mat       A, B;
  KSP       ksp;

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(kind); k++) {
    PetscCall(MakePairs(t, kind[k][0], &A));
    PetscCall(MakePairs(t, kind[k][1], &B));
    PetscCall(MakeLU(t->comm, &ksp));
    for (int step = 0; step < 4; step++) {
      if (step % 2) PetscCall(MatTranspose(A, MAT_INPLACE_MATRIX, &A));
      if (step == 2) PetscCall(MatAXPY(A, 0.5, B, DIFFERENT_NONZERO_PATTERN));
      PetscCall(SolveAgain(ksp, A, r));
    }
    PetscCall(Destroy(&B, &A));
    PetscCall(KSPReset(ksp));
    PetscCall(MakePairs(t, kind[k][0], &A));
    PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &B));
    PetscCall(SolveAgain(ksp, B, r));
    PetscCall(SetPairs(A, kind[k][1]));
    PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &B));
    PetscCall(SolveAgain(ksp, B, r));
    PetscCall(Destroy(&ksp, &A, &B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Zeroing rows, one of which has no diagonal entry on each rank, fails after it has changed entries: products must be
  those of the entries
*/
static PetscErrorCode ZeroRowsFails(Test *t, Record *r)
{
  Mat         A;
  PetscInt    rs, re, N, rows[2];
  PetscScalar v[3];

  PetscFunctionBegin;
  PetscCall(MatGetSize(t->R, NULL, &N));
  for (int k = 0; k < 2; k++) {
    PetscErrorCode ierr;
    PetscBool      any;

    PetscCall(CreateLike(t->R, t->type, &A));
    PetscCall(MatSeqAIJSetPreallocation(A, 3, NULL));
    PetscCall(MatMPIAIJSetPreallocation(A, 3, NULL, 3, NULL));
    PetscCall(MatGetOwnershipRange(A, &rs, &re));
    for (PetscInt i = rs; i < re; i++) {
      PetscInt cols[3] = {i == rs ? -1 : i, (i + 1) % N, (i + N / 2) % N};

      for (int l = 0; l < 3; l++) v[l] = Value(i, l, 4);
      PetscCall(MatSetValues(A, 1, &i, 3, cols, v, INSERT_VALUES));
    }
    PetscCall(MatAssemble(A));
    PetscCall(Touch(A));
    PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
    rows[0] = rs;
    rows[1] = re - 1;
    MayFail(ierr, (k ? MatZeroRowsColumns : MatZeroRows)(A, 2, rows, 2.5, NULL, NULL));
    PetscCall(Agree(ierr, &any));
    PetscCall(RecordInt(r, "zeroing rows fails", any));
    PetscCall(RecordMat(t, r, "type after zeroing rows has failed", A));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Calls that must return an error, as they do with AIJ */
static PetscErrorCode Refuse(PetscErrorCode (*f)(Mat, Vec, Vec), Mat A, Vec x, Vec y, Record *r, const char *what)
{
  PetscErrorCode ierr;
  PetscBool      any;

  PetscFunctionBegin;
  MayFail(ierr, f(A, x, y));
  PetscCall(Agree(ierr, &any));
  PetscCall(RecordInt(r, what, (PetscInt64)ierr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refused(Test *t, Record *r)
{
  Mat A;
  Vec x, y, wrong;

  PetscFunctionBegin;
  PetscCall(CreateLike(t->R, t->type, &A));
  PetscCall(PreallocateLike(t->R, A));
  PetscCall(MatCreateVecs(t->R, &x, &y));
  PetscCall(VecCreate(t->comm, &wrong));
  PetscCall(VecSetSizes(wrong, PETSC_DECIDE, t->c->N + 3));
  PetscCall(VecSetFromOptions(wrong));
  PetscCall(VecSet(wrong, 1.));
  PetscCall(VecSet(x, 1.));
  PetscCall(Refuse(MatMult, A, x, y, r, "product of an unassembled matrix"));
  PetscCall(Refuse(MatMultTranspose, A, y, x, r, "transposed product of an unassembled matrix"));
  PetscCall(FillLike(t->R, -1, A));
  PetscCall(Refuse(MatMult, A, wrong, y, r, "product with a vector too long"));
  PetscCall(Refuse(MatMult, A, x, wrong, r, "product into a vector too long"));
  PetscCall(Refuse(MatMult, A, x, x, r, "product into its operand"));
  PetscCall(RecordMat(t, r, "type after refusals", A));
  PetscCall(Destroy(&wrong, &x, &y, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From PETSc 3.20.0 to 3.25.2, the conversion of MPIAIJ loses entries of the off-diagonal block */
#define SELL_NEEDS (PETSC_VERSION_GE(3, 20, 0) && PETSC_VERSION_LT(3, 25, 3) ? SEQ : 0)

static const Operation operations[] = {{"convert-aij", Convert, NOPERM, MATAIJ},
                                       {"convert-own", Convert, NOPERM},
                                       {"convert-other", ConvertOther, FULL | NOPERM},
                                       {"convert-sellp", Convert, NOPERM, "sellp"},
                                       {"convert-evchyb", Convert, NOPERM, "evchyb"},
                                       {"convert-aijperm", Convert, FULL | NOPERM, MATAIJPERM},
                                       {"convert-aijsell", Convert, FULL | NOPERM, MATAIJSELL},
                                       {"convert-baij", Convert, FULL | NOPERM, MATBAIJ},
                                       {"convert-sbaij", Convert, SPD | NOPERM, MATSBAIJ},
                                       {"convert-dense", Convert, FULL | NOPERM, MATDENSE},
                                       {"convert-sell", Convert, FULL | NOPERM | SELL_NEEDS, MATSELL},
                                       {"convert-is", Convert, FULL | NOPERM, MATIS},
                                       {"shell", Shell, FULL},
                                       {"ascii", Ascii, FULL},
                                       {"lu-inplace", FactorInPlace, SOLVE | SEQ | NOPERM, "lu"},
                                       /* AIJCUSPARSE does not support it */
                                       {"ilu-inplace", FactorInPlace, SOLVE | SEQ | NOPERM | NOCUDA, "ilu"},
                                       {"lu-again", Refactor, SPD | SEQ | NOPERM},
                                       {"zerorows-fails", ZeroRowsFails, SQUARE | FULL | BYROW},
                                       {"refused", Refused, FULL},
                                       {NULL, NULL, 0}};

int main(int argc, char **argv)
{
  return Suite(argc, argv, "operations", operations, 0);
}
