/*
  Transposed products of matrices most or all of whose rows are empty.
*/
#include "products.h"

/* 90 x 40, or 1 x 40: `every` is the distance of the rows that have entries, beginning with row `first` */
static PetscErrorCode MakeSparseRows(Test *t, PetscInt M, PetscInt first, PetscInt every, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatCreateSized(t->comm, t->type, PETSC_DECIDE, PETSC_DECIDE, M, 40, 3, A));
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
  Vec x, y, z;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &z, &x));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecFill(x, 1));
  for (int op = TRANSPOSE; op <= HERMITIAN; op++) {
    PetscCall(VecFill(y, 2));
    PetscCall(VecSet(z, PETSC_MAX_REAL));
    PetscCall(RecordMult(r, "A' x at row", A, (Op)op, x, NULL, z));
    PetscCall(VecSet(z, PETSC_MAX_REAL));
    PetscCall(RecordMult(r, "y + A' x at row", A, (Op)op, x, y, z));
    PetscCall(RecordMult(r, "y += A' x at row", A, (Op)op, x, y, y));
  }
  PetscCall(Destroy(&x, &y, &z));
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
