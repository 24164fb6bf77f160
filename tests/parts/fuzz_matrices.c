/*
  Steps of the fuzzer that create matrices: transposes, submatrices, conversions, products.
*/
#include "fuzz_actor.h"

static PetscErrorCode Transpose(Actor *a)
{
  const PetscInt kind = draw(4);
  Mat            T    = NULL;

  PetscFunctionBegin;
  FuzzLog(" %s", ((const char *[]){"new", "reused", "in place", "Hermitian"})[kind]);
  PetscCall(TouchSome(a->A));
  if (kind == 2)
    PetscCall(MatTranspose(a->A, MAT_INPLACE_MATRIX, &a->A));
  else if (kind == 3)
    PetscCall(MatHermitianTranspose(a->A, MAT_INITIAL_MATRIX, &T));
  else
    PetscCall(MatTranspose(a->A, MAT_INITIAL_MATRIX, &T));
  if (kind == 1) {
    PetscCall(TouchSome(T));
    PetscCall(MatScale(a->A, -2.));
    PetscCall(MatTranspose(a->A, MAT_REUSE_MATRIX, &T));
  }
  PetscCall(HasFormat(a, kind == 2 ? a->A : T, "the transpose"));
  PetscCall(SeeMat(a, "the transpose", kind == 2 ? a->A : T, 1));
  if (T) PetscCall(AdoptOrDestroy(a, &T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This rank's share of a random subset of n indices, from `begin` on, ascending */
static PetscErrorCode SomeOf(PetscInt begin, PetscInt n, PetscInt salt, IS *is)
{
  const PetscReal share = 0.1 * draw(11);
  PetscInt       *p, k = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(n, &p));
  for (PetscInt i = 0; i < n; i++) {
    if (HashUnit(begin + i, 0, salt) < share) p[k++] = begin + i;
  }
  PetscCall(ISCreateGeneral(fuzz.comm, k, p, PETSC_COPY_VALUES, is));
  PetscCall(PetscFree(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubMatrix(Actor *a)
{
  PetscInt m, n, rs, cs;
  IS       rows, cols;
  Mat      S;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(a->A, &m, &n));
  PetscCall(MatGetOwnershipRange(a->A, &rs, NULL));
  PetscCall(MatGetOwnershipRangeColumn(a->A, &cs, NULL));
  PetscCall(SomeOf(rs, m, draw(1000), &rows));
  PetscCall(SomeOf(cs, n, draw(1000), &cols));
  PetscCall(TouchSome(a->A));
  PetscCall(MatCreateSubMatrix(a->A, rows, cols, MAT_INITIAL_MATRIX, &S));
  PetscCall(HasFormat(a, S, "the submatrix"));
  PetscCall(SeeMat(a, "the submatrix", S, 1));
  if (Chance(50)) {
    PetscCall(MatScale(a->A, -2.));
    PetscCall(MatCreateSubMatrix(a->A, rows, cols, MAT_REUSE_MATRIX, &S));
    PetscCall(SeeMat(a, "the submatrix reused", S, 1));
  }
  PetscCall(Destroy(&rows, &cols));
  PetscCall(AdoptOrDestroy(a, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows and columns of all ranks as a sequential matrix */
static PetscErrorCode SubMatrices(Actor *a)
{
  const PetscInt step = 1 + draw(3), salt = draw(1000);
  PetscInt       M, N;
  IS             rows, cols;
  Mat           *S;
  LocalRows      r;

  PetscFunctionBegin;
  PetscCall(MatGetSize(a->A, &M, &N));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, (M + step - 1) / step, 0, step, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, N, 0, 1, &cols));
  PetscCall(TouchSome(a->A));
  PetscCall(MatCreateSubMatrices(a->A, 1, &rows, &cols, MAT_INITIAL_MATRIX, &S));
  for (int k = 0; k < 2; k++) {
    PetscCall(LocalRowsOfMat(S[0], &r));
    PetscCall(SeeRows(a, &r));
    PetscCall(LocalRowsDestroy(&r));
    if (k || salt % 2) break;
    PetscCall(MatScale(a->A, 2.));
    PetscCall(MatCreateSubMatrices(a->A, 1, &rows, &cols, MAT_REUSE_MATRIX, &S));
  }
  PetscCall(MatDestroySubMatrices(1, &S));
  PetscCall(Destroy(&rows, &cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Permute(Actor *a)
{
  PetscInt m, n, rs, cs, *p;
  IS       rows, cols;
  Mat      S;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(a->A, &m, &n));
  PetscCall(MatGetOwnershipRange(a->A, &rs, NULL));
  PetscCall(MatGetOwnershipRangeColumn(a->A, &cs, NULL));
  PetscCall(PetscMalloc1(PetscMax(m, n), &p));
  for (PetscInt i = 0; i < m; i++) p[i] = rs + m - 1 - i;
  PetscCall(ISCreateGeneral(fuzz.comm, m, p, PETSC_COPY_VALUES, &rows));
  for (PetscInt i = 0; i < n; i++) p[i] = cs + (i + 1) % n;
  PetscCall(ISCreateGeneral(fuzz.comm, n, p, PETSC_COPY_VALUES, &cols));
  PetscCall(PetscFree(p));
  PetscCall(ISSetPermutation(rows));
  PetscCall(ISSetPermutation(cols));
  PetscCall(TouchSome(a->A));
  PetscCall(MatPermute(a->A, rows, cols, &S));
  if (fuzz.size == 1) PetscCall(HasFormat(a, S, "the permuted matrix")); /* on several ranks, PETSc creates it as AIJ */
  PetscCall(SeeMat(a, "the permuted matrix", S, 1));
  PetscCall(Destroy(&rows, &cols));
  PetscCall(AdoptOrDestroy(a, &S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Converts to another type and back. AIJPERM and AIJSELL are not reused (see tests/operations.c), and on several ranks
  BAIJ is only for square matrices
*/
static PetscErrorCode Convert(Actor *a)
{
  const char *const types[] = {MATAIJ, MATSELLP, MATEVCHYB, MATAIJPERM, MATAIJSELL, MATBAIJ, MATDENSE};
  const PetscInt    way     = draw(3);
  PetscInt          kind    = draw(fuzzcase.coo ? 5 : 7);
  PetscBool         square;
  const char       *own = a->under ? a->type : MATAIJ, *other;
  Mat               S, T;

  PetscFunctionBegin;
  PetscCall(SameLayouts(a->A, a->A, PETSC_TRUE, &square));
  if (fuzz.size > 1 && kind == 5 && !square) kind = 0;
  other = types[kind];
  FuzzLog(" %s %s", other, ((const char *[]){"new", "reused", "in place"})[way]);
  PetscCall(TouchSome(a->A));
  if (way == 2) {
    PetscCall(MatConvert(a->A, other, MAT_INPLACE_MATRIX, &a->A));
    PetscCall(TouchSome(a->A));
    PetscCall(MatScale(a->A, 0.5));
    PetscCall(MatConvert(a->A, own, MAT_INPLACE_MATRIX, &a->A));
  } else {
    PetscCall(MatConvert(a->A, other, MAT_INITIAL_MATRIX, &S));
    PetscCall(MatScale(S, 3.));
    PetscCall(TouchSome(S));
    if (way == 1 && kind != 3 && kind != 4) {
      PetscCall(MatScale(a->A, -1.));
      PetscCall(MatConvert(a->A, other, MAT_REUSE_MATRIX, &S));
    }
    PetscCall(MatConvert(S, own, MAT_INITIAL_MATRIX, &T));
    PetscCall(HasFormat(a, T, "the conversion"));
    PetscCall(SeeMat(a, "the conversion", T, 1));
    PetscCall(MatDestroy(&S));
    PetscCall(AdoptOrDestroy(a, &T));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The other matrix becomes the main one */
static PetscErrorCode Swap(Actor *a)
{
  Mat T = a->A;

  PetscFunctionBegin;
  if (a->B) {
    a->A = a->B;
    a->B = T;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(Actor *a)
{
  const PetscInt kinds[] = {0, 1, 5, 3, 2, 4}, reuse = draw(2);
  PetscInt       m, n, M, N, kind;
  PetscBool      square;
  Mat            A = a->A, P, C = NULL;

  PetscFunctionBegin;
  PetscCall(SameLayouts(A, A, PETSC_TRUE, &square));
  /* PETSc does not support the last two on several ranks */
  kind = kinds[draw(fuzz.size > 1 ? (square ? 4 : 3) : square ? 6 : 5)];
  if (kind == 3 && !square) kind = 0;
  if (kind == 4 && !square) kind = 1;
  FuzzLog(" %s%s", ((const char *[]){"A B", "A^T B", "A B^T", "P^T A P", "R A R^T", "B^T A"})[kind],
          reuse ? " twice" : "");
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  if (kind == 0)
    PetscCall(Operand(a, n, PETSC_DECIDE, N, 7, &P));
  else if (kind == 1 || kind == 5)
    PetscCall(Operand(a, m, PETSC_DECIDE, M, 7, &P));
  else if (kind == 2)
    PetscCall(Operand(a, 9, n, 9, N, &P));
  else if (kind == 3)
    PetscCall(Operand(a, n, PETSC_DECIDE, N, 6, &P));
  else
    PetscCall(Operand(a, 6, n, 6, N, &P));
  /* contributions of other ranks are added in the order in which they arrive */
  if (fuzz.size > 1) fuzzcase.loose = PETSC_TRUE;
  for (int k = 0; k <= reuse; k++) {
    const MatReuse r = k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

    if (kind == 0) PetscCall(MatMatMult(A, P, r, PETSC_DEFAULT, &C));
    if (kind == 1) PetscCall(MatTransposeMatMult(A, P, r, PETSC_DEFAULT, &C));
    if (kind == 2) PetscCall(MatMatTransposeMult(A, P, r, PETSC_DEFAULT, &C));
    if (kind == 3) PetscCall(MatPtAP(A, P, r, PETSC_DEFAULT, &C));
    if (kind == 4) PetscCall(MatRARt(A, P, r, PETSC_DEFAULT, &C));
    if (kind == 5) PetscCall(MatTransposeMatMult(P, A, r, PETSC_DEFAULT, &C));
    PetscCall(SeeMat(a, "the product", C, 1));
    PetscCall(MatScale(A, -1.5));
  }
  PetscCall(MatDestroy(&P));
  /* AIJ's parallel product rejects new values in other ranks' rows, AIJCUSPARSE's accepts them */
  if (fuzz.device && fuzz.size > 1)
    PetscCall(MatDestroy(&C));
  else
    PetscCall(AdoptOrDestroy(a, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a dense matrix from the right, or its transpose; each column is a product with a vector */
static PetscErrorCode DenseProducts(Actor *a)
{
  const PetscInt kind = draw(2), columns = 1 + draw(9), salt = draw(1000);
  PetscInt       m, n, M, N, rs, re, lda;
  PetscReal      error, bound;
  LocalRows      r;
  Sum           *sum;
  Mat            D, C = NULL;

  PetscFunctionBegin;
  FuzzLog(" %s %" PetscInt_FMT " columns", kind ? "A^T D" : "A D", columns);
  PetscCall(MatSizes(a->A, &m, &n, &M, &N));
  PetscCall(MatCreateDense(fuzz.comm, kind ? m : n, PETSC_DECIDE, kind ? M : N, columns, NULL, &D));
  PetscCall(MatGetOwnershipRange(D, &rs, &re));
  for (PetscInt i = rs; i < re; i++) {
    for (PetscInt j = 0; j < columns; j++)
      PetscCall(MatSetValue(D, i, j, XValue(X_RANDOM, i, salt + j), INSERT_VALUES));
  }
  PetscCall(MatAssemble(D));
  PetscCall(PetscMalloc1(PetscMax(M, N), &sum));
  /* PETSc 3.26 computes A^T D again with A's earlier values on a device */
  for (int k = 0; k < (kind && fuzz.device ? 1 : 2); k++) {
    const PetscScalar *v;

    if (kind)
      PetscCall(MatTransposeMatMult(a->A, D, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    else
      PetscCall(MatMatMult(a->A, D, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(MatGetOwnershipRange(C, &rs, &re));
    PetscCall(MatDenseGetLDA(C, &lda));
    PetscCall(LocalRowsOfMat(a->A, &r));
    PetscCall(MatDenseGetArrayRead(C, &v));
    for (PetscInt j = 0; j < columns; j++) {
      PetscCall(ProductReference(&r, N, rs, re - rs, kind ? 3 : 0, X_RANDOM, salt + j, X_RANDOM, 0, sum));
      for (PetscInt i = 0; i < re - rs; i++) {
        if (SumIs(&sum[i], v[i + j * lda], &error, &bound)) continue;
        FuzzReport("dense product, row %" PetscInt_FMT ", column %" PetscInt_FMT ": off by %g where %g is allowed",
                   rs + i, j, (double)error, (double)bound);
        break;
      }
    }
    PetscCall(MatDenseRestoreArrayRead(C, &v));
    PetscCall(LocalRowsDestroy(&r));
    PetscCall(MatScale(a->A, 0.5));
  }
  PetscCall(PetscFree(sum));
  PetscCall(Destroy(&C, &D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const FuzzOp FuzzMatrices[] = {{"MatTranspose", Transpose, 0, 4},
                               {"MatCreateSubMatrix", SubMatrix, F_FULL, 4},
                               {"MatCreateSubMatrices", SubMatrices, F_FULL, 1},
                               {"MatPermute", Permute, F_FULL, 2},
                               {"MatConvert", Convert, F_FULL, 5},
                               {"swap", Swap, 0, 3},
                               {"products of matrices", Products, F_FULL, 5},
                               {"dense products", DenseProducts, F_FULL, 2},
                               {NULL}};
