/*
  Transposed products of matrices most or all of whose rows are empty.
*/
#include "products.h"

/* 90 x 40, or 1 x 40: `every` is the distance of the rows that have entries, beginning with row `first` */
static PetscErrorCode MakeSparseRows(Test *t, PetscInt M, PetscInt first, PetscInt every, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatCreate(t->comm, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, M, 40));
  PetscCall(MatSetType(*A, t->type));
  PetscCall(MatSeqAIJSetPreallocation(*A, 3, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 3, NULL, 3, NULL));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt i = rs; i < re; i++)
    for (PetscInt k = 0; k < 3 && i >= first && (i - first) % every == 0; k++)
      PetscCall(MatSetValue(*A, i, (i + 17 * k) % 40, Value(i, k, 21), INSERT_VALUES));
  PetscCall(MatAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A^T x and A^H x, alone, added to another vector, and added in place */
static PetscErrorCode Transposes(Record *r, Mat A)
{
  Vec x, y, z, b;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &z, &x));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecDuplicate(z, &b));
  PetscCall(VecFill(x, 1));
  for (int hermitian = 0; hermitian < 2; hermitian++) {
    PetscCall(VecFill(y, 2));
    PetscCall(ProductBounds(A, x, y, PETSC_TRUE, b));
    PetscCall(VecSet(z, PETSC_MAX_REAL));
    PetscCall((hermitian ? MatMultHermitianTranspose : MatMultTranspose)(A, x, z));
    PetscCall(RecordVec(r, "A' x at row", z, b, 0));
    PetscCall(VecSet(z, PETSC_MAX_REAL));
    PetscCall((hermitian ? MatMultHermitianTransposeAdd : MatMultTransposeAdd)(A, x, y, z));
    PetscCall(RecordVec(r, "y + A' x at row", z, b, 0));
    PetscCall((hermitian ? MatMultHermitianTransposeAdd : MatMultTransposeAdd)(A, x, y, y));
    PetscCall(RecordVec(r, "y += A' x at row", y, b, 0));
  }
  PetscCall(Destroy(&x, &y, &z, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EmptyRows(Test *t, Record *r)
{
  /* rows, first, every */
  static const PetscInt shapes[][3] = {{90, 90, 1}, {90, 44, 90}, {90, 2, 9}, {1, 0, 1}, {1, 1, 1}};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(shapes); k++) {
    Mat A;

    PetscCall(MakeSparseRows(t, shapes[k][0], shapes[k][1], shapes[k][2], &A));
    PetscCall(Touch(A));
    PetscCall(Transposes(r, A));
    PetscCall(MatScale(A, 3.)); /* while the copy waits to be refreshed */
    PetscCall(Transposes(r, A));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
