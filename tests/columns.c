/*
  Products with dense matrices, A B and A^T B: any number of columns, longer leading dimensions, parts of dense
  matrices, Inf and NaN, new values. On a device the dense matrices are in device memory or, depending on the argument,
  in host memory.
*/
#include "dense.h"
#include "harness.h"

static PetscErrorCode CreateDense(Test *t, PetscInt m, PetscInt M, PetscInt columns, PetscInt seed, Mat *D)
{
  PetscFunctionBegin;
  /* the columns of a square matrix are distributed like its rows */
  PetscCall(MatCreateDense(t->comm, m, columns == M ? m : PETSC_DECIDE, M, columns, NULL, D));
  PetscCall(FillDense(*D, columns, seed));
#if defined(PETSC_HAVE_CUDA)
  if (t->device && t->arg[0] == 'd') PetscCall(MatConvert(*D, MATDENSECUDA, MAT_INPLACE_MATRIX, D));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Records the columns of C = A B or A^T B, each with the bounds of a product with a vector; they belong to the columns
   of B from `from` on */
static PetscErrorCode RecordColumns(Record *r, const char *what, Mat A, Mat B, PetscInt from, PetscBool transpose,
                                    Mat C)
{
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(C, NULL, &n));
  for (PetscInt q = 0; q < n; q++) {
    Vec right, left, x, y, bound;

    PetscCall(MatCreateVecs(A, &right, &left));
    x = transpose ? left : right;
    y = transpose ? right : left;
    PetscCall(VecDuplicate(y, &bound));
    PetscCall(DenseGetColumn(B, from + q, x));
    PetscCall(DenseGetColumn(C, q, y));
    PetscCall(ProductBounds(A, x, NULL, transpose, bound));
    PetscCall(RecordVec(r, what, y, bound, 0));
    PetscCall(Destroy(&bound, &left, &right));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each number of columns, then again with other values of both factors. */
static PetscErrorCode Columns(Test *t, Record *r)
{
  static const PetscInt columns[] = {1, 2, 3, 4, 5, 8, 9, 17};
  const PetscBool       transpose = (PetscBool)(t->arg[1] == 't');
  Mat                   A;
  PetscInt              m, n, M, N;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(columns); k++) {
    Mat B, C = NULL;

    PetscCall(CreateDense(t, transpose ? m : n, transpose ? M : N, columns[k], 50, &B));
    for (int again = 0; again < 2; again++) {
      const MatReuse reuse = again ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

      if (transpose)
        PetscCall(MatTransposeMatMult(A, B, reuse, PETSC_DEFAULT, &C));
      else
        PetscCall(MatMatMult(A, B, reuse, PETSC_DEFAULT, &C));
      if (!again) PetscCall(RecordType(t, r, "type", C));
      PetscCall(RecordColumns(r, transpose ? "A^T B" : "A B", A, B, 0, transpose, C));
      PetscCall(MatScale(A, -2.));
      PetscCall(FillDense(B, columns[k], 60));
    }
    PetscCall(Destroy(&C, &B));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of three matrices, which PETSc composes of two: A A B with one column or several, and A^T B A where a dense B
   is not too large */
static PetscErrorCode Three(Test *t, Record *r)
{
  const PetscBool galerkin = (PetscBool)(t->arg[1] == 'g');
  Mat             A, B, C;
  PetscInt        m, n, M, N;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  for (PetscInt columns = 1; columns <= 3 && !(galerkin && M > 700); columns += galerkin ? 3 : 2) {
    PetscCall(CreateDense(t, m, M, galerkin ? M : columns, 50, &B));
    for (int again = 0; again < 2; again++) {
      const MatReuse reuse = again ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;
      PetscInt       K;

      if (galerkin)
        PetscCall(MatPtAP(B, A, reuse, PETSC_DEFAULT, &C));
      else
        PetscCall(MatMatMatMult(A, A, B, reuse, PETSC_DEFAULT, &C));
      PetscCall(MatGetSize(C, NULL, &K));
      for (PetscInt q = 0; q < PetscMin(K, 3); q++) {
        Vec y;

        PetscCall(MatCreateVecs(A, NULL, &y));
        PetscCall(DenseGetColumn(C, q, y));
        PetscCall(RecordVec(r, galerkin ? "A^T B A" : "A A B", y, NULL, 100));
        PetscCall(VecDestroy(&y));
      }
      PetscCall(MatScale(A, -2.));
    }
    PetscCall(Destroy(&C, &B));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No columns at all */
static PetscErrorCode None(Test *t, Record *r)
{
  Mat      A, B, C = NULL;
  PetscInt n, N, columns;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, NULL, &n, NULL, &N));
  PetscCall(CreateDense(t, n, N, 0, 50, &B));
  for (int again = 0; again < 2; again++)
    PetscCall(MatMatMult(A, B, again ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatGetSize(C, NULL, &columns));
  PetscCall(RecordInt(r, "columns", columns));
  PetscCall(Destroy(&C, &B, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Multiplies columns 2 to 7 of one matrix into columns of another matrix, whose other columns must not change */
static PetscErrorCode Part(Test *t, Record *r)
{
  const PetscInt columns = 9, part = 6;
  Mat            A, B, C, b, c;
  PetscInt       m, n, M, N;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(CreateDense(t, n, N, columns, 50, &B));
  PetscCall(CreateDense(t, m, M, columns, 51, &C));
  for (int again = 0; again < 2; again++) {
    PetscCall(MatDenseGetSubMatrix(B, PETSC_DECIDE, PETSC_DECIDE, 2, 2 + part, &b));
    PetscCall(MatDenseGetSubMatrix(C, PETSC_DECIDE, PETSC_DECIDE, 2, 2 + part, &c));
    PetscCall(MatProductCreateWithMat(A, b, NULL, c));
    PetscCall(MatProductSetType(c, MATPRODUCT_AB));
    PetscCall(MatProductSetFromOptions(c));
    PetscCall(MatProductSymbolic(c));
    PetscCall(MatProductNumeric(c));
    PetscCall(RecordColumns(r, "A B of parts", A, b, 0, PETSC_FALSE, c));
    PetscCall(MatProductClear(c));
    PetscCall(MatDenseRestoreSubMatrix(C, &c));
    PetscCall(MatDenseRestoreSubMatrix(B, &b));
    PetscCall(MatScale(A, 3.));
  }
  PetscCall(RecordMat(t, r, "C", C));
  PetscCall(Destroy(&A, &B, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Longer leading dimensions; the numbers between the columns must not change */
static PetscErrorCode Leading(Test *t, Record *r)
{
  const PetscInt columns = 6, more = 3;
  Mat            A, B, C = NULL;
  PetscInt       m, n, M, N, changed = 0;
  PetscScalar   *x;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(PetscMalloc1((n + more) * columns, &x));
  for (PetscInt k = 0; k < (n + more) * columns; k++) x[k] = NAN;
  PetscCall(MatCreateDense(t->comm, n, PETSC_DECIDE, N, columns, x, &B));
  PetscCall(MatDenseSetLDA(B, n + more));
  PetscCall(FillDense(B, columns, 50));
#if defined(PETSC_HAVE_CUDA)
  if (t->device && t->arg[0] == 'd') PetscCall(MatConvert(B, MATDENSECUDA, MAT_INPLACE_MATRIX, &B));
#endif
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(RecordColumns(r, "A B", A, B, 0, PETSC_FALSE, C));
  for (PetscInt q = 0; q < columns; q++) {
    for (PetscInt k = n; k < n + more; k++) changed += !PetscIsNanScalar(x[q * (n + more) + k]);
  }
  PetscCall(RecordInt(r, "changed between columns", changed));
  PetscCall(Destroy(&B, &C, &A));
  PetscCall(PetscFree(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with two dense matrices, the second of which has a longer leading dimension, alternate with products with
   vectors: they share the halo */
static PetscErrorCode Alternate(Test *t, Record *r)
{
  const PetscInt columns[2] = {8, 11}, more = 5;
  Mat            A, B[2], C[2] = {NULL, NULL};
  Vec            u, v;
  PetscInt       m, n, M, N;
  PetscScalar   *x;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatCreateVecs(A, &u, &v));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(CreateDense(t, n, N, columns[0], 50, &B[0]));
  PetscCall(PetscCalloc1((n + more) * columns[1], &x));
  PetscCall(MatCreateDense(t->comm, n, PETSC_DECIDE, N, columns[1], x, &B[1]));
  PetscCall(MatDenseSetLDA(B[1], n + more));
  PetscCall(FillDense(B[1], columns[1], 70));
#if defined(PETSC_HAVE_CUDA)
  if (t->device) PetscCall(MatConvert(B[1], MATDENSECUDA, MAT_INPLACE_MATRIX, &B[1]));
#endif
  for (int k = 0; k < 8; k++) {
    Mat *c = &C[k % 2];

    PetscCall(MatMatMult(A, B[k % 2], *c ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, c));
    PetscCall(VecFill(u, 30 + k));
    PetscCall(RecordMult(r, "A x", A, PLAIN, u, NULL, v));
    PetscCall(RecordColumns(r, "A B", A, B[k % 2], 0, PETSC_FALSE, *c));
    if (k == 2 || k == 5) PetscCall(MatScale(A, 3.));
    if (k == 3) PetscCall(FillDense(B[0], columns[0], 80));
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(Destroy(&B[k], &C[k]));
  }
  PetscCall(Destroy(&A, &u, &v));
  PetscCall(PetscFree(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  On a device, B or the result is bound to the CPU during a product. On one rank, AIJCUSPARSE then multiplies with the
  values that B had on the device before (PETSc 3.26), so nothing is bound there
*/
static PetscErrorCode Bind(Test *t, Record *r)
{
  const PetscInt columns = 5;
  Mat            A, B, C = NULL;
  PetscInt       n, N;
  PetscMPIInt    size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(t->comm, &size));
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, NULL, &n, NULL, &N));
  PetscCall(CreateDense(t, n, N, columns, 50, &B));
  for (int k = 0; k < 4; k++) {
    PetscCall(MatMatMult(A, B, C ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(RecordColumns(r, "A B", A, B, 0, PETSC_FALSE, C));
    PetscCall(MatBindToCPU(B, PETSC_FALSE));
    /* not while B is bound: PETSc would not copy the new values to the device afterwards */
    PetscCall(FillDense(B, columns, 60 + k));
    PetscCall(MatBindToCPU(B, (PetscBool)(k == 0 && size > 1)));
    PetscCall(MatBindToCPU(C, (PetscBool)(k == 1 && size > 1)));
  }
  PetscCall(Destroy(&A, &B, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Inf and NaN stay in their column, and in the rows that have an entry there */
static PetscErrorCode NonFinite(Test *t, Record *r)
{
  const PetscInt columns = 5;
  Mat            A, B, C;
  PetscInt       m, n, M, N, s, e;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(CreateDense(t, n, N, columns, 50, &B));
  PetscCall(MatGetOwnershipRange(B, &s, &e));
  for (PetscInt i = s; i < e; i++) {
    if (i == 0) PetscCall(MatSetValue(B, i, 1, NAN, INSERT_VALUES));
    if (i == N - 1) PetscCall(MatSetValue(B, i, 2, PETSC_INFINITY, INSERT_VALUES));
    if (i % 5 == 2) PetscCall(MatSetValue(B, i, 4, NAN, INSERT_VALUES));
  }
  PetscCall(MatAssemble(B));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatGetOwnershipRange(C, &s, &e));
  for (PetscInt q = 0; q < columns; q++) {
    for (PetscInt i = s; i < e; i++) {
      PetscScalar value;

      PetscCall(MatGetValue(C, i, q, &value));
      PetscCall(RecordAdd(r, "finite at row", i, PetscIsInfOrNanScalar(value) ? 0 : 1, 0, NULL));
    }
  }
  PetscCall(Destroy(&A, &B, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The factors change their pattern and their number of columns between products */
static PetscErrorCode Replace(Test *t, Record *r)
{
  Mat      A, B, C, D;
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(CreateDense(t, n, N, 6, 50, &B));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(Touch(A));
  PetscCall(MatZeroEntries(A));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(RecordColumns(r, "zero", A, B, 0, PETSC_FALSE, C));
  PetscCall(MatDestroy(&A));
  PetscCall(Make(t, &A));
  PetscCall(CreateDense(t, n, N, 6, 70, &D));
  PetscCall(MatProductReplaceMats(A, D, NULL, C));
  PetscCall(MatProductNumeric(C));
  PetscCall(RecordColumns(r, "other factors", A, D, 0, PETSC_FALSE, C));
  PetscCall(Destroy(&A, &B, &C, &D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Operation operations[] = {{"columns", Columns, FULL, "dn"},
                                       {"columns-transposed", Columns, FULL | NOCUDA, "dt"},
                                       {"columns-host", Columns, FULL, "hn"},
                                       {"three", Three, FULL | SQUARE, "dm"},
                                       {"three-galerkin", Three, FULL | SQUARE, "hg"},
                                       {"none", None, FULL, "d"},
                                       {"part", Part, FULL, "d"},
                                       {"leading", Leading, FULL, "d"},
                                       {"alternate", Alternate, FULL, "d"},
                                       {"bind", Bind, FULL, "d"},
                                       {"nonfinite", NonFinite, FULL, "d"},
                                       {"replace", Replace, FULL | NOPERM, "d"},
                                       {NULL, NULL, 0}};

int main(int argc, char **argv)
{
  return Suite(argc, argv, "columns", operations, 0);
}
