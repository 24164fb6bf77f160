/*
  Products of sparse matrices, repeated with new values on the same pattern: data kept from the first product must not
  be stale. Each entry is also compared within the rounding errors of its own sum, which the same product of the
  absolute values bounds.
*/
#include "products.h"

/* The absolute values, as AIJ */
static PetscErrorCode Absolute(Mat A, Mat *B)
{
  Mat       block[2];
  PetscBool mpi;

  PetscFunctionBegin;
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, B));
  PetscCall(PetscObjectTypeCompare((PetscObject)*B, MATMPIAIJ, &mpi));
  block[0] = *B;
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(*B, &block[0], &block[1], NULL));
  for (int k = 0; k < (mpi ? 2 : 1); k++) {
    MatInfo      info;
    PetscScalar *a;

    PetscCall(MatGetInfo(block[k], MAT_LOCAL, &info));
    PetscCall(MatSeqAIJGetArray(block[k], &a));
    for (PetscInt q = 0; q < (PetscInt)info.nz_used; q++) a[q] = PetscAbsScalar(a[q]);
    PetscCall(MatSeqAIJRestoreArray(block[k], &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Records a product; `size` is the same product of the absolute values */
static PetscErrorCode RecordProduct(Test *t, Record *r, const char *what, Mat C, Mat size)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(RecordMat(t, r, what, C));
  PetscCall(MatGetOwnershipRange(C, &rs, &re));
  for (PetscInt i = rs; i < re; i++) {
    const PetscScalar *c, *s;
    PetscInt           nc, ns;

    PetscCall(MatGetRow(C, i, &nc, NULL, &c));
    PetscCall(MatGetRow(size, i, &ns, NULL, &s));
    for (PetscInt k = 0; k < nc; k++)
      PetscCall(RecordAdd(r, "entry of the product in row", i, c[k],
                          ns == nc ? 1e3 * PETSC_MACHINE_EPSILON * PetscRealPart(s[k]) : 0., NULL));
    PetscCall(MatRestoreRow(size, i, &ns, NULL, &s));
    PetscCall(MatRestoreRow(C, i, &nc, NULL, &c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A B, A^T L, L^T A and A A^T; all but A may be of another type */
static PetscErrorCode Products(Test *t, Record *r, Mat A, Mat B, Mat L)
{
  Mat absolute[3], size[4], C[4] = {NULL, NULL, NULL, NULL};

  PetscFunctionBegin;
  PetscCall(Absolute(A, &absolute[0]));
  PetscCall(Absolute(B, &absolute[1]));
  PetscCall(Absolute(L, &absolute[2]));
  PetscCall(MatMatMult(absolute[0], absolute[1], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &size[0]));
  PetscCall(MatTransposeMatMult(absolute[0], absolute[2], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &size[1]));
  PetscCall(MatTransposeMatMult(absolute[2], absolute[0], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &size[2]));
  if (t->size == 1)
    PetscCall(MatMatTransposeMult(absolute[0], absolute[0], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &size[3]));
  for (int k = 0; k < 3; k++) {
    const MatReuse reuse = k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

    PetscCall(MatMatMult(A, B, reuse, PETSC_DEFAULT, &C[0]));
    PetscCall(RecordProduct(t, r, "type of A B", C[0], size[0]));
    PetscCall(MatTransposeMatMult(A, L, reuse, PETSC_DEFAULT, &C[1]));
    PetscCall(RecordProduct(t, r, "type of A^T L", C[1], size[1]));
    PetscCall(MatTransposeMatMult(L, A, reuse, PETSC_DEFAULT, &C[2]));
    PetscCall(RecordProduct(t, r, "type of L^T A", C[2], size[2]));
    if (t->size == 1) { /* several ranks: not in PETSc */
      PetscCall(MatMatTransposeMult(A, A, reuse, PETSC_DEFAULT, &C[3]));
      PetscCall(RecordProduct(t, r, "type of A A^T", C[3], size[3]));
      PetscCall(MatScale(size[3], 2.25));
    }
    PetscCall(MatScale(A, 1.5));
    PetscCall(MatScale(B, k ? -1. : 2.));
    PetscCall(MatScale(L, .5));
    PetscCall(MatScale(size[0], k ? 1.5 : 3.));
    for (int l = 1; l < 3; l++) PetscCall(MatScale(size[l], .75));
  }
  for (int k = 0; k < 4; k++) {
    PetscCall(MatDestroy(&C[k]));
    if (k < 3 || t->size == 1) PetscCall(MatDestroy(&size[k]));
    if (k < 3) PetscCall(MatDestroy(&absolute[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The other operands are of the type under test or AIJ (the argument) */
PetscErrorCode Sparse(Test *t, Record *r)
{
  const char *other = t->arg ? t->arg : t->type;
  Mat         A, B, L;
  PetscInt    m, n, M, N;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(MakeOperand(t, n, PETSC_DECIDE, N, 6, other, &B));
  PetscCall(MakeOperand(t, m, PETSC_DECIDE, M, 4, other, &L));
  PetscCall(Touch(A));
  PetscCall(Products(t, r, A, B, L));
  PetscCall(Destroy(&B, &L, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The factors are replaced by others with the same pattern, then by one with another pattern, which our types refuse on
   a device. AIJ does not check that */
PetscErrorCode SparseReplaced(Test *t, Record *r)
{
  Mat            A, B, C, E, F, G;
  PetscInt       m, n, M, N;
  MatInfo        info;
  PetscBool      model, right = PETSC_TRUE;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(MakeOperand(t, n, PETSC_DECIDE, N, 6, t->type, &B));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &E));
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &F));
  PetscCall(MatScale(E, -2.));
  PetscCall(MatScale(F, 3.));
  PetscCall(MatProductCreate(A, B, NULL, &C));
  PetscCall(MatProductSetType(C, MATPRODUCT_AB));
  PetscCall(MatProductSetFromOptions(C));
  PetscCall(MatProductSymbolic(C));
  PetscCall(MatProductNumeric(C));
  PetscCall(RecordMat(t, r, "type of A B", C));
  PetscCall(MatProductReplaceMats(E, NULL, NULL, C));
  PetscCall(MatProductNumeric(C));
  PetscCall(RecordMat(t, r, "type with another A", C));
  PetscCall(MatProductReplaceMats(NULL, F, NULL, C));
  PetscCall(MatProductNumeric(C));
  PetscCall(RecordMat(t, r, "type with another B", C));
  PetscCall(MatScale(F, 2.));
  PetscCall(MatProductNumeric(C));
  PetscCall(RecordMat(t, r, "type with new values", C));
  PetscCall(PetscStrcmp(t->type, now.model, &model));
  if (t->device && !model) {
    PetscCall(MatCreateSized(t->comm, t->type, n, PETSC_DECIDE, N, 6, 0, &G)); /* without entries */
    PetscCall(MatAssemble(G));
    PetscCall(MatProductReplaceMats(NULL, G, NULL, C));
    MayFail(ierr, MatProductNumeric(C));
    PetscCall(MatGetInfo(C, MAT_LOCAL, &info));
    right = (PetscBool)(ierr == (info.nz_used > 0 ? PETSC_ERR_ARG_WRONGSTATE : PETSC_SUCCESS));
    PetscCall(MatDestroy(&G));
  }
  PetscCall(RecordInt(r, "whether another pattern is refused", right));
  PetscCall(Destroy(&A, &B, &C, &E, &F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On several GPUs, the product's entries are sorted on the device: AIJCUSPARSE sorts them on the host */
static PetscErrorCode CheckSortedOnDevice(const Test *t, Mat C)
{
  PetscObject map;

  PetscFunctionBegin;
  if (t->size == 1 || !t->device || !strcmp(t->type, MATAIJCUSPARSE)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectQuery((PetscObject)C, "PetscSpMV_COO", &map));
  PetscCheck(map, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The entries of P^T A P were not sorted on the device");
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Triple(Test *t, Record *r)
{
  const char *other = t->arg ? t->arg : t->type;
  Mat         A, P, Q, C[3] = {NULL, NULL, NULL}, absolute[3], size[3];
  PetscInt    m, n, M, N;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(MakeOperand(t, n, PETSC_DECIDE, N, 5, other, &P));
  PetscCall(MatTranspose(P, MAT_INITIAL_MATRIX, &Q));
  PetscCall(Absolute(A, &absolute[0]));
  PetscCall(Absolute(P, &absolute[1]));
  PetscCall(Absolute(Q, &absolute[2]));
  PetscCall(MatPtAP(absolute[0], absolute[1], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &size[0]));
  PetscCall(MatMatMatMult(absolute[2], absolute[0], absolute[1], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &size[1]));
  if (t->size == 1) PetscCall(MatRARt(absolute[0], absolute[2], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &size[2]));
  for (int k = 0; k < 3; k++) {
    const MatReuse reuse = k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

    if (!k) PetscCall(PetscOptionsSetValue(NULL, "-mat_spmv_coo", "device")); /* also a few entries */
    PetscCall(MatPtAP(A, P, reuse, PETSC_DEFAULT, &C[0]));
    if (!k) PetscCall(PetscOptionsClearValue(NULL, "-mat_spmv_coo"));
    if (!k && !t->arg) PetscCall(CheckSortedOnDevice(t, C[0]));
    PetscCall(RecordProduct(t, r, "type of P^T A P", C[0], size[0]));
    PetscCall(MatMatMatMult(Q, A, P, reuse, PETSC_DEFAULT, &C[1]));
    PetscCall(RecordProduct(t, r, "type of Q A P", C[1], size[1]));
    if (t->size == 1) { /* several ranks: not in PETSc */
      PetscCall(MatRARt(A, Q, reuse, PETSC_DEFAULT, &C[2]));
      PetscCall(RecordProduct(t, r, "type of Q A Q^T", C[2], size[2]));
      PetscCall(MatScale(size[2], .375));
    }
    PetscCall(MatScale(A, 1.5));
    PetscCall(MatScale(P, k ? -1. : 2.));
    PetscCall(MatScale(Q, .5));
    PetscCall(MatScale(size[0], k ? 1.5 : 6.));
    PetscCall(MatScale(size[1], k ? .75 : 1.5));
  }
  for (int k = 0; k < 3; k++) {
    PetscCall(Destroy(&C[k], &absolute[k]));
    if (k < 2 || t->size == 1) PetscCall(MatDestroy(&size[k]));
  }
  PetscCall(Destroy(&P, &Q, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
