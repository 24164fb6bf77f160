/*
  Entries: every way to set them in a matrix, and every way to change them in a matrix that has already been multiplied.
  The next product must see the change. A type with a second copy of the entries can violate this rule without anyone
  noticing.
*/
#include "parts/assembly.h"
#include <petsc/private/matimpl.h> /* PetscObjectStateSet(), and the nonzero state */

/* Entries set by a rank that does not own their rows, some of them twice, with a flush assembly between INSERT and ADD
   */
static PetscErrorCode OffProcess(Test *t, Record *r)
{
  Mat          A;
  PetscInt     M, N, rs, re;
  PetscScalar *y;

  PetscFunctionBegin;
  PetscCall(CreateLike(t->R, t->type, &A));
  if (t->arg[0] == 'h')
    PetscCall(MatSetUp(A));
  else {
    PetscCall(MatSeqAIJSetPreallocation(A, 2, NULL));
    PetscCall(MatMPIAIJSetPreallocation(A, 2, NULL, 2, NULL));
  }
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (int pass = 0; pass < 2; pass++) {
    /* while PETSc 3.26 collects entries in its hash table, a flush does not end the insertion */
    if (t->arg[0] != 'h') {
      for (PetscInt i = t->rank; i < M; i += t->size)
        PetscCall(MatSetValue(A, i, (i * 3) % N, Value(i, 0, 1), INSERT_VALUES));
      PetscCall(MatAssemblyBegin(A, MAT_FLUSH_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A, MAT_FLUSH_ASSEMBLY));
    }
    for (PetscInt i = t->rank; i < M; i += t->size) {
      PetscCall(MatSetValue(A, i, (i * 3) % N, Value(i, 1, 1), ADD_VALUES));
      PetscCall(MatSetValue(A, M - 1 - i, (i * 5 + pass) % N, Value(i, 2, 1), ADD_VALUES));
    }
    PetscCall(MatAssemble(A));
    PetscCall(RecordMat(t, r, "type", A));
  }
  /* whole rows and blocks of values */
  PetscCall(PetscMalloc1(9, &y));
  for (int k = 0; k < 9; k++) y[k] = k + 1;
  if (t->c->bs == 3) {
    PetscInt node = rs / 3;

    if (re > rs) PetscCall(MatSetValuesBlocked(A, 1, &node, 1, &node, y, ADD_VALUES));
    PetscCall(MatAssemble(A));
    PetscCall(RecordMat(t, r, "type after a block", A));
  }
  PetscCall(PetscFree(y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The ways to change the values of an assembled matrix with an unchanged pattern. The argument names the way.
*/
/* Sets the middle entry of every third row of R's pattern, to zero if seed < 0 */
static PetscErrorCode SomeValues(Mat R, InsertMode mode, PetscInt seed, Mat A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(R, &rs, &re));
  for (PetscInt i = rs; i < re; i += 3) {
    PetscInt        n, col;
    const PetscInt *cols;

    PetscCall(MatGetRow(R, i, &n, &cols, NULL));
    col = n ? cols[n / 2] : -1;
    PetscCall(MatRestoreRow(R, i, &n, &cols, NULL));
    PetscCall(MatSetValue(A, i, col, seed < 0 ? 0. : Value(i, 0, seed), mode));
  }
  PetscCall(MatAssemble(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Writes a sequential block through its array */
static PetscErrorCode WriteBlock(Mat A, PetscInt seed)
{
  PetscScalar *a;
  MatInfo      info;

  PetscFunctionBegin;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(MatSeqAIJGetArray(A, &a));
  for (PetscInt k = 0; k < (PetscInt)info.nz_used; k++) a[k] = Value(k, 1, seed);
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Changes values through arrays or through the sequential matrices; found is false for any other way */
static PetscErrorCode LocalValues(Test *t, const char *route, PetscInt k, Mat A, PetscBool *found)
{
  Mat Ad = A, Ao = A;

  PetscFunctionBegin;
  *found = PETSC_TRUE;
  if (t->size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, &Ao, NULL));
  if (!strcmp(route, "array")) {
    if (k != 1 || t->size == 1) PetscCall(WriteBlock(Ad, 70 + k));
    if (k != 2 && t->size > 1) PetscCall(WriteBlock(Ao, 80 + k));
  } else if (!strcmp(route, "arraywrite")) {
    PetscScalar *a;
    MatInfo      info;

    PetscCall(MatGetInfo(Ad, MAT_LOCAL, &info));
    PetscCall(MatSeqAIJGetArrayWrite(Ad, &a));
    for (PetscInt i = 0; i < (PetscInt)info.nz_used; i++) a[i] = Value(i, 1, 70 + k);
    PetscCall(MatSeqAIJRestoreArrayWrite(Ad, &a));
  } else if (!strcmp(route, "blocks")) { /* operations of the sequential matrices */
    if (k != 1) PetscCall(MatScale(Ad, 2.));
    if (k != 2 && t->size > 1) PetscCall(MatScale(Ao, 3.));
  } else
    *found = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Values(Test *t, Record *r)
{
  const char *route = t->arg;
  Mat         A, B;
  Vec         l, d;
  PetscRandom rnd;
  PetscInt    rs, re;
  PetscBool   found;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatCreateVecs(A, &d, &l));
  PetscCall(VecFill(l, 8));
  PetscCall(VecFill(d, 9));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(Touch(A));
    if (!strcmp(route, "insert"))
      PetscCall(SomeValues(t->R, INSERT_VALUES, 70 + k, A));
    else if (!strcmp(route, "add"))
      PetscCall(SomeValues(t->R, ADD_VALUES, 70 + k, A));
    else if (!strcmp(route, "all"))
      PetscCall(FillLike(t->R, 70 + k, A));
    else if (!strcmp(route, "refill")) {
      PetscCall(MatZeroEntries(A));
      PetscCall(RecordMat(t, r, "type when zeroed", A));
      PetscCall(FillLike(t->R, 70 + k, A));
    } else if (!strcmp(route, "scale"))
      PetscCall(MatScale(A, -1.25));
    else if (!strcmp(route, "scalezero"))
      PetscCall(MatScale(A, k == 1 ? 0. : 3.));
    else if (!strcmp(route, "diagonalscale"))
      PetscCall(MatDiagonalScale(A, k == 1 ? NULL : l, k == 2 ? NULL : d));
    else if (!strcmp(route, "conjugate"))
      PetscCall(MatConjugate(A));
    else if (!strcmp(route, "realpart"))
      PetscCall(MatRealPart(A));
    else if (!strcmp(route, "imaginarypart"))
      PetscCall(MatImaginaryPart(A));
    else if (!strcmp(route, "random")) {
      PetscCall(PetscRandomCreate(t->comm, &rnd));
      PetscCall(PetscRandomSetFromOptions(rnd));
      PetscCall(MatSetRandom(A, rnd));
      PetscCall(PetscRandomDestroy(&rnd));
    } else if (!strcmp(route, "copy") || !strcmp(route, "copyaij")) {
      PetscCall(MakeLike(t->R, route[4] ? MATAIJ : t->type, &B));
      PetscCall(MatScale(B, 2. + k));
      PetscCall(MatCopy(B, A, k ? SAME_NONZERO_PATTERN : DIFFERENT_NONZERO_PATTERN));
      PetscCall(MatDestroy(&B));
    } else if (!strcmp(route, "axpy") || !strcmp(route, "axpyaij")) {
      PetscCall(MakeLike(t->R, route[4] ? MATAIJ : t->type, &B));
      PetscCall(MatAXPY(A, 2. + k, B, k ? SAME_NONZERO_PATTERN : SUBSET_NONZERO_PATTERN));
      PetscCall(MatDestroy(&B));
    } else if (!strcmp(route, "storevalues")) {
      PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
      PetscCall(MatStoreValues(A));
      PetscCall(MatScale(A, 2.));
      PetscCall(Touch(A));
      PetscCall(MatRetrieveValues(A));
    } else if (!strcmp(route, "shift"))
      PetscCall(MatShift(A, 1.5));
    else if (!strcmp(route, "diagonalset"))
      PetscCall(MatDiagonalSet(A, d, k == 1 ? ADD_VALUES : INSERT_VALUES));
    else if (!strcmp(route, "zerorows")) {
      PetscInt row = rs + k;

      PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
      PetscCall(MatZeroRows(A, row < re, &row, 1.5, NULL, NULL));
    } else if (!strcmp(route, "zerorowscolumns")) {
      PetscInt row = rs + k;

      PetscCall(MatZeroRowsColumns(A, row < re, &row, 1.5, NULL, NULL));
    } else {
      PetscCall(LocalValues(t, route, k, A, &found));
      PetscCheck(found, t->comm, PETSC_ERR_PLIB, "no route %s", route);
    }
    PetscCall(RecordMat(t, r, route, A));
  }
  PetscCall(Destroy(&l, &d, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_LT(3, 26, 0)
/* Whether each block of each rank has an entry */
static PetscErrorCode BlocksHoldEntries(Mat A, PetscBool *hold)
{
  Mat       block[2] = {A, NULL};
  MatInfo   info;
  PetscBool mpi;
  int       mine = 1, all;

  PetscFunctionBeginUser;
  PetscCall(PetscStrbeginswith(((PetscObject)A)->type_name, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int b = 0; b < (mpi ? 2 : 1); b++) {
    PetscCall(MatGetInfo(block[b], MAT_LOCAL, &info));
    if (info.nz_used == 0) mine = 0;
  }
  PetscCallMPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  *hold = (PetscBool)all;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* A^T D with a dense D */
static PetscErrorCode EmptyTimesDense(Test *t, Record *r, Mat A)
{
  Mat      D, C;
  PetscInt m, M;

  PetscFunctionBegin;
  PetscCall(MatSizes(A, &m, NULL, &M, NULL));
  PetscCall(MatCreateDense(t->comm, m, PETSC_DECIDE, M, 3, NULL, &D));
  PetscCall(FillDense(D, 3, 50));
  PetscCall(MatTransposeMatMult(A, D, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(RecordMat(t, r, "type of A^T D without entries", C));
  PetscCall(Destroy(&C, &D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The ways to change the pattern
*/
static PetscErrorCode Pattern(Test *t, Record *r)
{
  const char *route = t->arg;
  Mat         A, B;
  PetscInt    rs, re, m, n, M, N;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (PetscInt k = 0; k < 2; k++) {
    PetscCall(Touch(A));
    /* oneentry: the row lengths stay the same on all ranks but one */
    if (!strcmp(route, "newentries") || !strcmp(route, "oneentry")) {
      for (PetscInt i = rs; i < re && (route[0] == 'n' || i == 0); i += 4)
        PetscCall(MatSetValue(A, i, (i * 7 + k * 3 + 1) % N, Value(i, k, 90), ADD_VALUES));
      PetscCall(MatAssemble(A));
    } else if (!strcmp(route, "zeroed")) { /* new entries, zeroed before the next product */
      for (PetscInt i = rs; i < re; i += 4)
        PetscCall(MatSetValue(A, i, (i * 7 + k * 3 + 1) % N, Value(i, k, 90), ADD_VALUES));
      PetscCall(MatAssemble(A));
      PetscCall(MatZeroEntries(A));
      PetscCall(FillLike(t->R, 90 + k, A));
    } else if (!strcmp(route, "ignored")) { /* new entries, which the matrix was set to ignore */
      PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
      for (PetscInt i = rs; i < re; i += 4)
        PetscCall(MatSetValue(A, i, (i * 7 + k * 3 + 1) % N, Value(i, k, 90), ADD_VALUES));
      PetscCall(MatAssemble(A));
    } else if (!strcmp(route, "axpydifferent")) {
      PetscCall(MakeOperand(t, m, n, M, N, k ? MATAIJ : t->type, &B));
      PetscCall(MatAXPY(A, 2., B, k ? DIFFERENT_NONZERO_PATTERN : UNKNOWN_NONZERO_PATTERN));
      PetscCall(MatDestroy(&B));
    } else if (!strcmp(route, "copydifferent")) {
      PetscCall(MakeOperand(t, m, n, M, N, t->type, &B));
      PetscCall(MatCopy(B, A, DIFFERENT_NONZERO_PATTERN));
      PetscCall(MatDestroy(&B));
    } else if (!strcmp(route, "shift"))
      PetscCall(MatShift(A, 1.5)); /* where diagonal entries are missing */
    else if (!strcmp(route, "zerorows")) {
      PetscInt row = rs + k;

      PetscCall(MatZeroRows(A, row < re, &row, 1.5, NULL, NULL));
    } else if (!strcmp(route, "resetpreallocation")) {
      PetscBool can = PETSC_TRUE;

#if PETSC_VERSION_LT(3, 26, 0) /* AIJ returns an error if a block has no entries */
      PetscCall(BlocksHoldEntries(A, &can));
#endif
      if (can) PetscCall(MatResetPreallocation(A));
      PetscCall(FillLike(t->R, 90 + k, A));
    } else if (!strcmp(route, "preallocate")) { /* as if it were new, for another pattern */
      PetscCall(MakeOperand(t, m, n, M, N, MATAIJ, &B));
      PetscCall(PreallocateLike(k ? t->R : B, A));
      PetscCall(FillLike(k ? t->R : B, -1, A));
      PetscCall(MatDestroy(&B));
    } else if (!strcmp(route, "emptied")) { /* a pattern without entries: nothing is set */
      PetscCall(MatSeqAIJSetPreallocation(A, 0, NULL));
      PetscCall(MatMPIAIJSetPreallocation(A, 0, NULL, 0, NULL));
      PetscCall(MatAssemble(A));
      PetscCall(EmptyTimesDense(t, r, A));
    } else if (!strcmp(route, "filter")) {
#if PETSC_VERSION_GE(3, 21, 0)
      PetscCall(MatFilter(A, .2 + .2 * k, PETSC_TRUE, PETSC_FALSE));
#else
      PetscCall(MatChop(A, .2 + .2 * k));
#endif
    } else if (!strcmp(route, "eliminatezeros")) { /* later, R's pattern is no longer A's */
      if (k) continue;
#if PETSC_VERSION_GE(3, 20, 0)
      PetscCall(SomeValues(t->R, INSERT_VALUES, -1, A));
      PetscCall(MatEliminateZeros(A, PETSC_TRUE));
#endif
    } else if (!strcmp(route, "replace")) { /* the same Mat, another matrix inside */
      PetscCall(MakeOperand(t, m, n, M, N, t->type, &B));
      PetscCall(Touch(B));
      PetscCall(MatHeaderReplace(A, &B));
    } else
      SETERRQ(t->comm, PETSC_ERR_PLIB, "no route %s", route);
    PetscCall(RecordMat(t, r, route, A));
    PetscCall(MatScale(A, 2.));
    PetscCall(RecordMat(t, r, "type after values changed again", A));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatHeaderReplace() moves a matrix into another Mat, whose state counters differ and may, by chance, equal those of an
  earlier product. This test makes them equal.
*/
static PetscErrorCode Coincidence(Test *t, Record *r)
{
  Mat              A, B;
  PetscObjectState s;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Make(t, &B));
  B->nonzerostate = A->nonzerostate + 1; /* as the pattern of A will change once */
  PetscCall(PetscObjectStateGet((PetscObject)B, &s));
  PetscCall(Touch(B));
  PetscCall(MatScale(B, 2.));
  PetscCall(PetscObjectStateSet((PetscObject)A, s - 1));
  PetscCall(MatHeaderReplace(A, &B));
  PetscCall(RecordMat(t, r, "type after MatHeaderReplace", A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Setting a type or the options again on an assembled matrix must leave it as it is */
static PetscErrorCode Again(Test *t, Record *r)
{
  Mat  A;
  char option[96];

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSetOptionsPrefix(A, "again_"));
  PetscCall(PetscSNPrintf(option, sizeof(option), "-again_mat_type %s", t->type));
  PetscCall(PetscOptionsInsertString(NULL, option));
  PetscCall(MatSetType(A, t->type));
  PetscCall(RecordMat(t, r, "type after MatSetType", A));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSetFromOptions(A));
    PetscCall(RecordMat(t, r, "type after MatSetFromOptions", A));
  }
  PetscCall(MatSetUp(A));
  PetscCall(RecordMat(t, r, "type after MatSetUp", A));
  PetscCall(FillLike(t->R, 9, A));
  PetscCall(RecordMat(t, r, "type after values", A));
  PetscCall(PetscOptionsClearValue(NULL, "-again_mat_type"));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Options that change how entries are inserted */
static PetscErrorCode Options(Test *t, Record *r)
{
  const MatOption opts[] = {
      MAT_ROW_ORIENTED,  MAT_IGNORE_ZERO_ENTRIES,  MAT_NO_OFF_PROC_ENTRIES,     MAT_USE_INODES,
      MAT_SYMMETRIC,     MAT_KEEP_NONZERO_PATTERN, MAT_IGNORE_OFF_PROC_ENTRIES, MAT_FORM_EXPLICIT_TRANSPOSE,
      MAT_STRUCTURE_ONLY};

  PetscFunctionBegin;
  for (size_t k = 0; k < sizeof(opts) / sizeof(opts[0]) - 1; k++) {
    for (int flag = 0; flag < 2; flag++) {
      Mat A;

      PetscCall(CreateLike(t->R, t->type, &A));
      PetscCall(PreallocateLike(t->R, A));
      PetscCall(MatSetOption(A, opts[k], flag ? PETSC_TRUE : PETSC_FALSE));
      PetscCall(FillLike(t->R, -1, A));
      PetscCall(RecordMat(t, r, MatOptions[opts[k]], A));
      PetscCall(MatScale(A, 2.));
      PetscCall(MatSetOption(A, opts[k], flag ? PETSC_FALSE : PETSC_TRUE));
      PetscCall(RecordMat(t, r, MatOptions[opts[k]], A));
      PetscCall(MatDestroy(&A));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Operation operations[] = {
    {"offprocess", OffProcess, FULL, "preallocated"},
    {"offprocess-hash", OffProcess, FULL | (PetscDefined(USE_COMPLEX) ? NOCUDA : 0), "hash"},
    {"coo", COO, FULL, "own"},
    {"coo-away", COO, FULL, "away"},
    {"coo-rows", COOPatterns, FULL, "rc"},
    {"coo-columns", COOPatterns, FULL, "ca"},
    {"coo-any", COOPatterns, FULL, "ar"},
    {"coo-last", COOPatterns, FULL, "la"},
    {"coo-ignored", COOPatterns, FULL, "ali"}, /* entries of other ranks */
    {"witharrays", WithArrays, FULL | BYROW},
    {"withsplitarrays", WithSplitArrays, FULL | BYROW | SQUARE | PAR},
    {"insert", Values, 0, "insert"},
    {"add", Values, 0, "add"},
    {"all", Values, 0, "all"},
    {"refill", Values, 0, "refill"},
    {"scale", Values, 0, "scale"},
    {"scalezero", Values, 0, "scalezero"},
    {"diagonalscale", Values, 0, "diagonalscale"},
    {"conjugate", Values, 0, "conjugate"},
    {"realpart", Values, 0, "realpart"},
    {"imaginarypart", Values, 0, "imaginarypart"},
    {"random", Values, 0, "random"},
    {"copy", Values, 0, "copy"},
    {"copyaij", Values, 0, "copyaij"},
    {"axpy", Values, NOCUDA, "axpy"},
    {"axpyaij", Values, 0, "axpyaij"},
    {"storevalues", Values, 0, "storevalues"},
    {"array", Values, 0, "array"},
    {"arraywrite", Values, 0, "arraywrite"},
    {"blocksscale", Values, 0, "blocks"},
    {"shift", Values, SOLVE, "shift"},
    {"diagonalset", Values, SOLVE, "diagonalset"},
    {"zerorows", Values, SOLVE, "zerorows"},
    {"zerorowscolumns", Values, SOLVE, "zerorowscolumns"},
    {"newentries", Pattern, FULL, "newentries"},
    {"oneentry", Pattern, FULL, "oneentry"},
    {"zeroed", Pattern, FULL | NOCUDA, "zeroed"},
    {"ignored", Pattern, FULL, "ignored"},
    {"axpydifferent", Pattern, FULL, "axpydifferent"},
    {"copydifferent", Pattern, FULL, "copydifferent"},
    {"shiftmissing", Pattern, FULL | SQUARE, "shift"},
    {"zerorowspattern", Pattern, FULL | SQUARE, "zerorows"},
    {"resetpreallocation", Pattern, FULL | BYROW, "resetpreallocation"},
    {"preallocate", Pattern, FULL, "preallocate"},
    {"emptied", Pattern, FULL | NOCUDA, "emptied"},
    {"filter", Pattern, FULL, "filter"},
    {"eliminatezeros", Pattern, FULL, "eliminatezeros"},
    {"replace", Pattern, FULL, "replace"},
    {"coincidence", Coincidence, FULL | SEQ},
    {"again", Again, 0},
    {"options", Options, FULL},
    {"matrixmarket", MatrixMarket, ONCE},
    {NULL, NULL, 0}};

int main(int argc, char **argv)
{
  return Suite(argc, argv, "assembly", operations, 0);
}
