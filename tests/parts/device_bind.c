/* Matrices that are bound to the CPU, and moved back */
#include "device.h"

/* Products of every kind, with vectors that exist longer than the changes of A */
static PetscErrorCode Products(Record *r, const char *what, Mat A, Vec x, Vec y)
{
  Vec c, d;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(x, &c));
  PetscCall(VecDuplicate(y, &d));
  PetscCall(VecFill(x, 3));
  PetscCall(RecordMult(r, what, A, PLAIN, x, NULL, y));
  PetscCall(VecFill(d, 4));
  PetscCall(RecordMult(r, what, A, PLAIN, x, d, d));
  PetscCall(VecFill(y, 5));
  PetscCall(RecordMult(r, what, A, TRANSPOSE, y, NULL, c));
  PetscCall(Destroy(&c, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Binds the matrix to the CPU and back at various points, with changes of values and of the pattern in both places */
PetscErrorCode Bind(Test *t, Record *r)
{
  Mat      A, B;
  Vec      x, y;
  PetscInt rs, re, N;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetSize(A, NULL, &N));
  PetscCall(MatCreateVecs(A, &x, &y));
  for (PetscInt k = 0; k < 7; k++) {
    PetscCall(Products(r, "product at", A, x, y));
    if (k == 1) PetscCall(MatScale(A, 2.));
    PetscCall(MatBindToCPU(A, (PetscBool)(k % 2 == 0)));
    PetscCall(RecordType(t, r, "type when bound or unbound", A));
    if (k != 3) PetscCall(Products(r, "product after binding at", A, x, y));
    if (k == 2) PetscCall(MatScale(A, -.5));
    if (k == 3) PetscCall(FillLike(t->R, 33, A));
    if (k == 4 || k == 5) {
      for (PetscInt i = rs; i < re; i += 3) PetscCall(MatSetValue(A, i, (i * 5 + k) % N, 7., ADD_VALUES));
      PetscCall(MatAssemble(A));
    }
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(Products(r, "product of a duplicate at", B, x, y));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(RecordMat(t, r, "type at the end", A));
  PetscCall(Destroy(&x, &y, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -mat_bind_below: small matrices stay on the CPU */
PetscErrorCode BindBelow(Test *t, Record *r)
{
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    Mat A;
    Vec x, y;

    PetscCall(MatSizes(t->R, &m, &n, &M, &N));
    PetscCall(PetscOptionsSetValue(NULL, "-below_mat_bind_below", k ? "0" : "100000"));
    PetscCall(MatCreate(t->comm, &A));
    PetscCall(MatSetOptionsPrefix(A, "below_"));
    PetscCall(MatSetSizes(A, m, n, M, N));
    PetscCall(MatSetType(A, t->type));
    PetscCall(MatSetFromOptions(A));
    PetscCall(PreallocateLike(t->R, A));
    PetscCall(FillLike(t->R, -1, A));
    PetscCall(RecordMat(t, r, "type", A));
    PetscCall(MatCreateVecs(t->R, &x, &y)); /* host vectors, as a user would have them */
    if (!k) PetscCall(Products(r, "product at", A, x, y));
    PetscCall(MatScale(A, 2.));
    PetscCall(RecordMat(t, r, "type when scaled", A));
    PetscCall(Destroy(&x, &y, &A));
    PetscCall(PetscOptionsClearValue(NULL, "-below_mat_bind_below"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The ranks' sizes differ, so that -mat_bind_below binds the matrix only on the first rank; then the same for a vector,
   and for neither */
PetscErrorCode BindSome(Test *t, Record *r)
{
  const PetscInt m = t->rank ? 40 : 4;
  PetscInt       rs, re, N;
  Mat            A;
  Vec            x, y;

  PetscFunctionBegin;
  if (PetscDefined(USE_DEBUG)) PetscFunctionReturn(PETSC_SUCCESS); /* debug builds require that all ranks agree */
  PetscCall(PetscOptionsSetValue(NULL, "-some_mat_bind_below", "10"));
  PetscCall(MatCreate(t->comm, &A));
  PetscCall(MatSetOptionsPrefix(A, "some_"));
  PetscCall(MatSetSizes(A, m, m, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(A, t->type));
  PetscCall(MatSetFromOptions(A));
  PetscCall(PetscOptionsClearValue(NULL, "-some_mat_bind_below"));
  PetscCall(MatMPIAIJSetPreallocation(A, 4, NULL, 4, NULL));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetSize(A, &N, NULL));
  for (PetscInt i = rs; i < re; i++) {
    for (PetscInt k = -1; k < 3; k++)
      PetscCall(MatSetValue(A, i, (i + k * 3 + N) % N, 1. + .1 * (i % 7) + k, INSERT_VALUES));
  }
  PetscCall(MatAssemble(A));
  PetscCall(MatCreateVecs(A, &x, &y));
  for (int k = 0; k < 6; k++) {
    if (k == 2) PetscCall(MatBindToCPU(A, PETSC_FALSE));
    if (t->rank == 0) {
      PetscCall(VecBindToCPU(x, (PetscBool)(k == 1 || k == 3)));
      PetscCall(VecBindToCPU(y, (PetscBool)(k == 1 || k == 4)));
    }
    PetscCall(VecFill(x, 20 + k));
    PetscCall(MatMult(A, x, y));
    PetscCall(RecordVec(r, "A x at row", y, NULL, 100));
    PetscCall(MatMultAdd(A, x, y, y));
    PetscCall(RecordVec(r, "y += A x at row", y, NULL, 100));
    PetscCall(MatMultTranspose(A, y, x));
    PetscCall(RecordVec(r, "A^T y at column", x, NULL, 1000));
    PetscCall(MatScale(A, 1.5));
  }
  PetscCall(RecordMat(t, r, "type at the end", A));
  PetscCall(Destroy(&x, &y, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
