/*
  Operations on the diagonal, colorings, factors, orderings, and calls that must return an error.
*/
#include "operations.h"

PetscErrorCode BlockDiagonal(Test *t, Record *r)
{
  Mat                A, C;
  const PetscScalar *v;
  PetscInt           m, bs, *sizes;
  PetscScalar       *w;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetBlockSize(A, &bs));
  for (int k = 0; k < 2; k++) { /* the result is kept inside the matrix, so it may be stale the second time */
    PetscCall(MatInvertBlockDiagonal(A, &v));
    for (PetscInt i = 0; i < m * bs; i++)
      PetscCall(RecordAdd(r, "inverse of diagonal blocks", i, v[i], 1e6 * PETSC_MACHINE_EPSILON, NULL));
    PetscCall(MatScale(A, 2.));
  }
  PetscCall(PetscMalloc2(m / bs, &sizes, m * bs, &w));
  for (PetscInt i = 0; i < m / bs; i++) sizes[i] = bs;
  PetscCall(MatInvertVariableBlockDiagonal(A, m / bs, sizes, w));
  for (PetscInt i = 0; i < m * bs; i++)
    PetscCall(RecordAdd(r, "inverse of variable diagonal blocks", i, w[i], 1e6 * PETSC_MACHINE_EPSILON, NULL));
  PetscCall(PetscFree2(sizes, w));
  PetscCall(MatCreate(t->comm, &C));
  PetscCall(MatSetSizes(C, m, m, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetBlockSize(C, bs));
  PetscCall(MatSetType(C, t->type));
  PetscCall(MatSetUp(C));
  PetscCall(MatInvertBlockDiagonalMat(A, C));
  PetscCall(RecordMat(t, r, "type of the inverse", C));
  PetscCall(Destroy(&C, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* f(x) = R x. The coloring must recover R from it; PETSc's greedy coloring assumes a symmetric pattern */
static PetscErrorCode Function(void *ctx, Vec x, Vec y, void *R)
{
  PetscFunctionBegin;
  PetscCall(MatMult((Mat)R, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Coloring(Test *t, Record *r)
{
  Mat           A;
  MatColoring   mc;
  ISColoring    ic;
  MatFDColoring fd;
  Vec           x;
  PetscInt      n;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  PetscCall(MatColoringCreate(A, &mc));
  PetscCall(MatColoringSetDistance(mc, 2));
  PetscCall(MatColoringSetType(mc, MATCOLORINGGREEDY));
  PetscCall(MatColoringSetFromOptions(mc));
  PetscCall(MatColoringApply(mc, &ic));
  PetscCall(ISColoringGetIS(ic, PETSC_USE_POINTER, &n, NULL));
  PetscCall(RecordInt(r, "colors", n));
  PetscCall(MatFDColoringCreate(A, ic, &fd));
#if PETSC_VERSION_LT(3, 24, 0)
  PetscCall(MatFDColoringSetFunction(fd, (PetscErrorCode(*)(void))(void (*)(void))Function, t->R));
#else
  PetscCall(MatFDColoringSetFunction(fd, Function, t->R));
#endif
  PetscCall(MatFDColoringSetFromOptions(fd));
  PetscCall(MatFDColoringSetUp(A, ic, fd));
  PetscCall(ISColoringDestroy(&ic));
  PetscCall(MatColoringDestroy(&mc));
  PetscCall(MatCreateVecs(A, &x, NULL));
  for (PetscInt k = 0; k < 2; k++) {
    Vec       y, z;
    PetscReal error;

    PetscCall(VecFill(x, k));
    PetscCall(MatZeroEntries(A));
    PetscCall(MatFDColoringApply(A, fd, x, NULL));
    PetscCall(RecordType(t, r, "type of the Jacobian", A));
    /* finite differences have their own errors, so entries are compared through a product, to half the digits */
    PetscCall(VecDuplicate(x, &y));
    PetscCall(VecDuplicate(x, &z));
    PetscCall(MatMult(A, x, y));
    PetscCall(MatMult(t->R, x, z));
    PetscCall(VecAXPY(z, -1., y));
    PetscCall(VecNorm(z, NORM_INFINITY, &error));
    PetscCall(RecordInt(r, "Jacobian is right", error < 1e3 * PETSC_SQRT_MACHINE_EPSILON));
    PetscCall(Destroy(&y, &z));
  }
  PetscCall(Destroy(&x, &fd, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factors, and solves with them; the argument names the factorization */
PetscErrorCode Factor(Test *t, Record *r)
{
  const char         *kind = t->arg;
  const PetscBool     chol = (PetscBool)(!strcmp(kind, "cholesky") || !strcmp(kind, "icc"));
  const MatFactorType ft   = !strcmp(kind, "lu")    ? MAT_FACTOR_LU
                             : !strcmp(kind, "ilu") ? MAT_FACTOR_ILU
                             : !strcmp(kind, "icc") ? MAT_FACTOR_ICC
                                                    : MAT_FACTOR_CHOLESKY;
  Mat                 A, F, B, X;
  Vec                 b, x;
  IS                  row, col;
  MatFactorInfo       info;
  PetscInt            m;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecFill(b, 1));
  PetscCall(MatGetFactor(A, MATSOLVERPETSC, ft, &F));
  PetscCall(MatGetOrdering(A, MATORDERINGND, &row, &col));
  PetscCall(MatFactorInfoInitialize(&info));
  info.levels = 1;
  info.fill   = 3;
  for (int k = 0; k < 2; k++) {
    if (k == 0) {
      if (ft == MAT_FACTOR_LU) PetscCall(MatLUFactorSymbolic(F, A, row, col, &info));
      if (ft == MAT_FACTOR_ILU) PetscCall(MatILUFactorSymbolic(F, A, row, col, &info));
      if (ft == MAT_FACTOR_CHOLESKY) PetscCall(MatCholeskyFactorSymbolic(F, A, row, &info));
      if (ft == MAT_FACTOR_ICC) PetscCall(MatICCFactorSymbolic(F, A, row, &info));
    }
    if (chol)
      PetscCall(MatCholeskyFactorNumeric(F, A, &info));
    else
      PetscCall(MatLUFactorNumeric(F, A, &info));
    PetscCall(MatSolve(F, b, x));
    PetscCall(RecordVec(r, "solution", x, NULL, 1e6));
    PetscCall(MatSolveTranspose(F, b, x));
    PetscCall(RecordVec(r, "solution of the transposed system", x, NULL, 1e6));
    PetscCall(MatScale(A, 2.));
  }
  if (ft == MAT_FACTOR_LU) {
    PetscCall(MatGetLocalSize(A, &m, NULL));
    PetscCall(MatCreateSeqDense(t->comm, m, 3, NULL, &B));
    for (PetscInt i = 0; i < m; i++) {
      for (PetscInt j = 0; j < 3; j++) PetscCall(MatSetValue(B, i, j, Value(i, j, 3), INSERT_VALUES));
    }
    PetscCall(MatAssemble(B));
    PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
    PetscCall(MatMatSolve(F, B, X));
    PetscCall(RecordMat(t, r, "type of the solutions", X));
    PetscCall(Destroy(&X, &B));
  }
  PetscCall(Destroy(&F, &row, &col, &b, &x, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A as its own factor: not for AIJPERM, because PETSc 3.19 requires that the two have the same type */
PetscErrorCode FactorInPlace(Test *t, Record *r)
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
PetscErrorCode Refactor(Test *t, Record *r)
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

PetscErrorCode SOR(Test *t, Record *r)
{
  const MatSORType types[] = {SOR_LOCAL_FORWARD_SWEEP, SOR_LOCAL_BACKWARD_SWEEP, SOR_LOCAL_SYMMETRIC_SWEEP,
                              (MatSORType)(SOR_LOCAL_SYMMETRIC_SWEEP | SOR_ZERO_INITIAL_GUESS)};
  Mat              A;
  Vec              b, x;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecFill(b, 1));
  for (int step = 0; step < 2; step++) {
    for (int k = 0; k < 4; k++) {
      PetscCall(VecFill(x, 2));
      PetscCall(MatSOR(A, b, 1.1, types[k], 0., 2, 2, x));
      PetscCall(RecordVec(r, "relaxed", x, NULL, 1e4));
      if (t->size == 1) { /* several ranks: not in PETSc */
        PetscCall(VecFill(x, 2));
        PetscCall(MatSOR(A, b, 1., (MatSORType)(types[k] | SOR_ZERO_INITIAL_GUESS), 0., 1, 1, x));
        PetscCall(RecordVec(r, "relaxed from zero", x, NULL, 1e4));
      }
    }
    PetscCall(MatShift(A, 1.));
  }
  if (t->size == 1) {
    PetscCall(MatSOR(A, b, 1., SOR_EISENSTAT, 0., 1, 1, x));
    PetscCall(RecordVec(r, "relaxed by Eisenstat's trick", x, NULL, 1e4));
  }
  PetscCall(Destroy(&x, &b, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Zeros rows, with a matching right-hand side, in each of the ways to set a boundary condition */
PetscErrorCode ZeroRows(Test *t, Record *r)
{
  Mat      A;
  Vec      x, b;
  PetscInt rs, re, M, rows[4], n = 0;

  PetscFunctionBegin;
  for (int k = 0; k < 4; k++) {
    PetscCall(MakeTouched(t, &A));
    PetscCall(MatGetOwnershipRange(A, &rs, &re));
    PetscCall(MatGetSize(A, &M, NULL));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecFill(x, 1));
    PetscCall(VecFill(b, 2));
    n = 0;
    if (re > rs) rows[n++] = rs;
    if (t->rank == 0) rows[n++] = M - 1; /* a row of another rank */
    if (t->rank == t->size - 1 && M > 3) rows[n++] = M / 2;
    PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, k % 2 ? PETSC_TRUE : PETSC_FALSE));
    if (k < 2)
      PetscCall(MatZeroRows(A, n, rows, 2.5, x, b));
    else
      PetscCall(MatZeroRowsColumns(A, n, rows, 2.5, x, b));
    PetscCall(RecordMat(t, r, "type with rows zeroed", A));
    PetscCall(RecordVec(r, "right-hand side", b, NULL, 100));
    PetscCall(MatScale(A, 2.));
    PetscCall(RecordMat(t, r, "type with rows zeroed, scaled", A));
    PetscCall(Destroy(&x, &b, &A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Zeroing rows, one of which has no diagonal entry on each rank, fails after it has changed entries: products must be
  those of the entries
*/
PetscErrorCode ZeroRowsFails(Test *t, Record *r)
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

/*
  The ordering that the library registers: rows by length, then by first column. A is permuted with it, and the product
  with the permuted matrix must be the permuted product.
*/
PetscErrorCode Ordering(Test *t, Record *r)
{
  Mat             A, B, D;
  IS              row, col;
  const PetscInt *p;
  PetscInt        n, rs, re, last[2] = {-1, -1}, late = 0;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  PetscCall(MatGetOrdering(A, MATORDERINGEVCHYB, &row, &col));
  PetscCall(ISGetLocalSize(row, &n));
  PetscCall(ISGetIndices(row, &p));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetDiagonalBlock(t->R, &D)); /* for a parallel matrix, MatGetOrdering() orders the diagonal block */
  for (PetscInt i = 0; i < n; i++) {
    PetscInt        len;
    const PetscInt *cols;

    PetscCall(MatGetRow(D, p[i] - rs, &len, &cols, NULL));
    if (len < last[0] || (len && len == last[0] && cols[0] < last[1])) late++;
    last[0] = len;
    last[1] = len ? cols[0] : -1;
    PetscCall(MatRestoreRow(D, p[i] - rs, &len, &cols, NULL));
    PetscCall(RecordAdd(r, "row in order", i, p[i], 0, NULL));
  }
  late += n != re - rs;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &late, 1, MPIU_INT, MPI_SUM, t->comm));
  PetscCheck(!late, t->comm, PETSC_ERR_PLIB, "%" PetscInt_FMT " rows come too late, or some are missing", late);
  PetscCall(ISRestoreIndices(row, &p));
  /* a repeated row would be detected here in a debug build of PETSc, and below in any build */
  PetscCall(ISSetPermutation(row));
  PetscCall(ISSetPermutation(col));
  PetscCall(MatPermute(A, row, col, &B));
  PetscCall(RecordMat(t, r, "type of the permuted matrix", B));
  PetscCall(Destroy(&B, &row, &col, &A));
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

PetscErrorCode Refused(Test *t, Record *r)
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
