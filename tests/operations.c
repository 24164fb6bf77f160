/*
  The other operations of Mat: numbers read from a matrix, matrices made from it, conversions, factorizations, files.
*/
#include "parts/operations.h"

static PetscErrorCode Diagonal(Test *t, Record *r)
{
  Mat       A;
  Vec       d;
  PetscInt  rs, re;
  IS        zero, rows;
  PetscBool missing;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  if (t->size == 1 || t->c->M == t->c->N) { /* otherwise not supported by PETSc */
    PetscCall(MatCreateVecs(A, NULL, &d));
    PetscCall(MatGetDiagonal(A, d));
    PetscCall(RecordVec(r, "diagonal", d, NULL, 0));
    PetscCall(VecDestroy(&d));
  }
  if (t->arg) {
    /* PETSc's own test for missing diagonal entries, whose result may differ between ranks */
#if PETSC_VERSION_LT(3, 24, 0)
    PetscCall(MatMissingDiagonal(A, &missing, NULL));
    PetscCall(RecordInt(r, "missing diagonal", missing));
#else
    (void)missing;
#endif
    PetscCall(MatFindZeroDiagonals(A, &zero));
    PetscCall(ISGetLocalSize(zero, &rs));
    PetscCall(RecordInt(r, "zero diagonals", rs));
    PetscCall(ISDestroy(&zero));
    if (t->size == 1) { /* AIJ's function is not reliable on several ranks (PETSc 3.18 to 3.26) */
      PetscCall(MatFindOffBlockDiagonalEntries(A, &rows));
      PetscCall(ISGetLocalSize(rows, &rs));
      PetscCall(RecordInt(r, "rows with entries off the block diagonal", rs));
      PetscCall(ISDestroy(&rows));
    }
  }
  PetscCall(MatFindNonzeroRows(A, &rows));
  if (rows) {
    PetscCall(ISGetLocalSize(rows, &re));
    PetscCall(RecordInt(r, "nonzero rows", re));
  }
  PetscCall(Destroy(&rows, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Reductions(Test *t, Record *r)
{
  const NormType norms[] = {NORM_1, NORM_INFINITY, NORM_FROBENIUS};
  Mat            A;
  Vec            v;
  PetscInt      *where, m, N;
  PetscReal      norm, *cols;
  PetscScalar   *sums;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  PetscCall(MatCreateVecs(A, NULL, &v));
  PetscCall(MatSizes(A, &m, NULL, NULL, &N));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatNorm(A, norms[k], &norm));
    PetscCall(RecordReal(r, NormTypes[norms[k]], norm, 1000));
  }
  PetscCall(PetscMalloc3(m, &where, N, &cols, N, &sums));
  for (int k = 0; k < (N > 0 ? 5 : 0); k++) {
    PetscCall(PetscArrayzero(where, m));
    if (k == 0) PetscCall(MatGetRowMaxAbs(A, v, where));
    if (k == 1) PetscCall(MatGetRowMinAbs(A, v, where));
    if (k == 2 && !PetscDefined(USE_COMPLEX)) PetscCall(MatGetRowMax(A, v, where));
    if (k == 3 && !PetscDefined(USE_COMPLEX)) PetscCall(MatGetRowMin(A, v, where));
    if (k == 4) PetscCall(MatGetRowSum(A, v));
    PetscCall(RecordVec(r, "row maximum, minimum or sum", v, NULL, 1000));
    for (PetscInt i = 0; i < m; i++) PetscCall(RecordAdd(r, "where in row", i, where[i], 0, NULL));
  }
  for (int k = 0; k < 3; k++) {
    PetscCall(MatGetColumnNorms(A, k == 2 ? NORM_2 : norms[k], cols));
    for (PetscInt j = 0; j < N; j++)
      PetscCall(RecordAdd(r, "column norm", j, cols[j], 1000 * PETSC_MACHINE_EPSILON * cols[j], NULL));
  }
  PetscCall(MatGetColumnSums(A, sums));
  for (PetscInt j = 0; j < N; j++) PetscCall(RecordAdd(r, "column sum", j, sums[j], 1e4 * PETSC_MACHINE_EPSILON, NULL));
  PetscCall(PetscFree3(where, cols, sums));
  PetscCall(Destroy(&v, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The structure, as functions outside of Mat read it */
static PetscErrorCode Structure(Test *t, Record *r)
{
  Mat             A, Ad;
  MatInfo         info;
  PetscInt        n, rs, re, nghosts;
  const PetscInt *i, *j, *ghosts;
  PetscBool       done;
  IS              rows, cols;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  for (int k = 0; k < 3; k++) {
    PetscCall(MatGetInfo(A, k == 0 ? MAT_LOCAL : k == 1 ? MAT_GLOBAL_MAX : MAT_GLOBAL_SUM, &info));
    PetscCall(RecordInt(r, "entries in use", (PetscInt64)info.nz_used));
    PetscCall(RecordInt(r, "entries allocated", (PetscInt64)info.nz_allocated));
    PetscCall(RecordInt(r, "assemblies", (PetscInt64)info.assemblies));
  }
  Ad = A;
  if (t->size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, NULL, NULL));
  for (int shift = 0; shift < 2; shift++) {
    PetscCall(MatGetRowIJ(Ad, shift, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
    PetscCall(RecordInt(r, "rows by MatGetRowIJ", done ? n : -1));
    for (PetscInt k = 0; done && k <= n; k++) PetscCall(RecordAdd(r, "offset", k, i[k], 0, NULL));
    for (PetscInt k = 0; done && k < i[n] - shift; k++) PetscCall(RecordAdd(r, "column", k, j[k], 0, NULL));
    PetscCall(MatRestoreRowIJ(Ad, shift, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
    PetscCall(MatGetColumnIJ(Ad, shift, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
    PetscCall(RecordInt(r, "columns by MatGetColumnIJ", done ? n : -1));
    for (PetscInt k = 0; done && k <= n; k++) PetscCall(RecordAdd(r, "column offset", k, i[k], 0, NULL));
    PetscCall(MatRestoreColumnIJ(Ad, shift, PETSC_FALSE, PETSC_FALSE, &n, &i, &j, &done));
  }
  PetscCall(MatGetOwnershipIS(A, &rows, &cols));
  PetscCall(ISGetLocalSize(rows, &rs));
  PetscCall(ISGetLocalSize(cols, &re));
  PetscCall(RecordInt(r, "owned rows", rs));
  PetscCall(RecordInt(r, "owned columns", re));
  PetscCall(Destroy(&rows, &cols));
  if (t->size > 1) {
    PetscCall(MatGetGhosts(A, &nghosts, &ghosts));
    for (PetscInt k = 0; k < nghosts; k++) PetscCall(RecordAdd(r, "ghost", k, ghosts[k], 0, NULL));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetValues(Test *t, Record *r)
{
  Mat         A;
  PetscInt    rs, re, N, cols[4], rows[2];
  PetscScalar v[8];

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetSize(A, NULL, &N));
  for (PetscInt i = rs; i + 1 < re; i += 2) {
    rows[0] = i;
    rows[1] = i + 1;
    for (int k = 0; k < 4; k++) cols[k] = (i + k * k) % N;
    PetscCall(MatGetValues(A, 2, rows, 4, cols, v));
    for (int k = 0; k < 8; k++) PetscCall(RecordAdd(r, "value in row", i + k / 4, v[k], 0, NULL));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = a y + x and similar operations, between types */
static PetscErrorCode Axpy(Test *t, Record *r)
{
  Mat      A, B, C;
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  for (int own = 0; own < 2; own++) {
    PetscCall(MakeTouched(t, &A));
    PetscCall(MatSizes(A, &m, &n, &M, &N));
    PetscCall(MakeOperand(t, m, n, M, N, own ? t->type : MATAIJ, &B));
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &C));
    PetscCall(MatAXPY(C, 3., A, DIFFERENT_NONZERO_PATTERN));
    PetscCall(RecordMat(t, r, "type of C + 3 A", C));
    PetscCall(MatAXPY(C, 3., B, SUBSET_NONZERO_PATTERN));
    PetscCall(RecordMat(t, r, "type of C + 3 B", C));
    PetscCall(MatDestroy(&C));
    PetscCall(MatAYPX(A, -.5, B, DIFFERENT_NONZERO_PATTERN));
    PetscCall(RecordMat(t, r, "type of B - A / 2", A));
    PetscCall(MatAYPX(A, 2., A, SAME_NONZERO_PATTERN));
    PetscCall(RecordMat(t, r, "type of 3 A", A));
    PetscCall(MatAXPY(A, 2., A, SAME_NONZERO_PATTERN));
    PetscCall(RecordMat(t, r, "type of A + 2 A", A));
    PetscCall(MatAXPY(A, 0., B, SUBSET_NONZERO_PATTERN));
    PetscCall(RecordMat(t, r, "type of A + 0 B", A));
    PetscCall(Destroy(&B, &A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

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

/* From PETSc 3.20.0 to 3.25.2, the conversion of MPIAIJ loses entries of the off-diagonal block */
#define SELL_NEEDS (PETSC_VERSION_GE(3, 20, 0) && PETSC_VERSION_LT(3, 25, 3) ? SEQ : 0)

static const Operation operations[] = {{"diagonal", Diagonal, NOCUDA},
                                       {"diagonal-square", Diagonal, SQUARE | FULL | BYROW | NOCUDA, "square"},
                                       {"reductions", Reductions, 0},
                                       {"structure", Structure, 0},
                                       {"getvalues", GetValues, FULL},
                                       {"axpy", Axpy, FULL | NOCUDA},
                                       {"convert-aij", Convert, NOPERM, MATAIJ},
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
                                       {"transpose", Transpose, 0},
                                       {"permute", Permute, FULL | BYROW},
                                       {"submatrix", SubMatrix, FULL},
                                       /* AIJCUSPARSE does not merge local matrices reliably */
                                       {"pieces", Pieces, FULL | SQUARE | ONHOST},
                                       {"tests", Tests, 0},
                                       {"binary", Binary, 0},
                                       {"ascii", Ascii, FULL},
                                       /* inverts values that it has not copied from the device */
                                       {"blockdiagonal", BlockDiagonal, SOLVE | BLOCKS | ONHOST},
                                       {"coloring", Coloring, SPD},
                                       {"lu", Factor, SOLVE | SEQ, "lu"},
                                       {"ilu", Factor, SOLVE | SEQ, "ilu"},
                                       {"cholesky", Factor, SPD | SEQ, "cholesky"},
                                       {"icc", Factor, SPD | SEQ, "icc"},
                                       {"lu-inplace", FactorInPlace, SOLVE | SEQ | NOPERM, "lu"},
                                       /* AIJCUSPARSE does not support it */
                                       {"ilu-inplace", FactorInPlace, SOLVE | SEQ | NOPERM | NOCUDA, "ilu"},
                                       {"lu-again", Refactor, SPD | SEQ | NOPERM},
                                       {"sor", SOR, SOLVE},
                                       {"zerorows", ZeroRows, SOLVE},
                                       {"zerorows-fails", ZeroRowsFails, SQUARE | FULL | BYROW},
                                       {"ordering", Ordering, SQUARE | FULL | BYROW},
                                       {"refused", Refused, FULL},
                                       {NULL, NULL, 0}};

int main(int argc, char **argv)
{
  return Suite(argc, argv, "operations", operations, 0);
}
