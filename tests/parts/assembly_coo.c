/* Assembly from coordinates, in the host's memory */
#include "assembly.h"

/* The coordinates of R's entries, each twice; argument a: half of them may belong to other ranks */
PetscErrorCode COO(Test *t, Record *r)
{
  Mat          A;
  PetscInt    *ci, *cj, n, k;
  PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(CreateLike(t->R, t->type, &A));
  PetscCall(CoordinatesTwice(t->R, (PetscBool)(t->arg[0] == 'a'), &n, &ci, &cj));
  PetscCall(PetscMalloc1(n, &v));
  if (n > 3) ci[1] = -1; /* an ignored entry */
  for (int again = 0; again < 2; again++) {
    /* MatSetPreallocationCOO() may sort its arguments */
    PetscInt *i2, *j2;

    PetscCall(PetscMalloc2(n, &i2, n, &j2));
    PetscCall(PetscArraycpy(i2, ci, n));
    PetscCall(PetscArraycpy(j2, cj, n));
    PetscCall(MatSetPreallocationCOO(A, n, i2, j2));
    PetscCall(PetscFree2(i2, j2));
    for (PetscInt step = 0; step < 4; step++) {
      for (k = 0; k < n; k++) v[k] = Value(k, t->rank, 60 + step);
      PetscCall(MatSetValuesCOO(A, v, step % 2 ? ADD_VALUES : INSERT_VALUES));
      PetscCall(RecordMat(t, r, "type after MatSetValuesCOO", A));
    }
  }
  PetscCall(PetscFree(v));
  PetscCall(PetscFree2(ci, cj));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Coordinates of a pattern that the argument names, most of it on this rank:
    r: every row's entries in ascending order, once, and every row includes its diagonal entry if it has a diagonal
    c: row by row, with the columns in any order; columns outside of the matrix get a negative number
    a: in any order, most of them several times, some ignored, many rows empty
    l: all from the last rank, which does not own the rows
*/
static PetscErrorCode Coordinates(Test *t, Mat A, char pattern, PetscInt salt, PetscInt *n, PetscInt **ci,
                                  PetscInt **cj)
{
  PetscInt M, N, rs, re, k = 0;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  if (pattern == 'l' && t->rank != t->size - 1) re = rs;
  *n = 4 * (re - rs) + (pattern == 'a' ? 11 : 0);
  PetscCall(PetscMalloc2(*n, ci, *n, cj));
  if (pattern == 'a') {
    for (; k < *n; k++) { /* a few rows and columns of this rank, and, rarely, of any */
      (*ci)[k] = k % 7 == 3 || rs == re ? (k * 31 + salt) % M : rs + (k * 13 + salt) % PetscMin(re - rs, 17);
      (*cj)[k] = k % 5 ? (k * 7 + salt) % PetscMin(N, 19) : (k * 101) % N;
      if (k % 11 == 6) (*ci)[k] = -1 - k % 2;
      if (k % 13 == 2) (*cj)[k] = -1 - k % 3;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt i = rs; i < re; i++) {
    PetscInt row = pattern == 'l' ? i - rs : i, first = (row + salt) % N;

    for (PetscInt l = 0; l < 4; l++) {
      const PetscInt at = pattern == 'c' ? (3 * l + 1) % 4 : l;

      if (pattern != 'c' && first + 2 * at >= N) continue;
      (*ci)[k]   = row;
      (*cj)[k++] = first + 2 * at < N ? first + 2 * at : -2;
    }
  }
  *n = k;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Assembly from coordinates, again with another pattern after products, on a duplicate, and after other ways to change
   values */
PetscErrorCode COOPatterns(Test *t, Record *r)
{
  Mat          A;
  PetscInt     n = 0, *ci, *cj;
  PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(CreateLike(t->R, t->type, &A));
  if (t->arg[2]) PetscCall(MatSetOption(A, MAT_IGNORE_OFF_PROC_ENTRIES, PETSC_TRUE));
  for (PetscInt again = 0; again < 3; again++) {
    PetscCall(Coordinates(t, A, t->arg[again ? 1 : 0], again == 2 ? 5 : 0, &n, &ci, &cj));
    PetscCall(MatSetPreallocationCOO(A, n, ci, cj));
    PetscCall(PetscFree2(ci, cj));
    PetscCall(PetscMalloc1(n, &v));
    for (PetscInt step = 0; step < 5; step++) {
      for (PetscInt k = 0; k < n; k++) v[k] = Value(k, t->rank, 60 + step);
      /* the first values are added to zeros */
      PetscCall(MatSetValuesCOO(A, v, step % 2 || (again == 1 && step < 2) ? ADD_VALUES : INSERT_VALUES));
      PetscCall(RecordMat(t, r, "type after MatSetValuesCOO", A));
      if (step == 1) PetscCall(MatScale(A, 2.));
      if (step == 2) PetscCall(MatZeroEntries(A));
    }
#if PETSC_VERSION_GE(3, 21, 0) /* before, a duplicate had no map */
    Mat B;

    PetscCall(MatDuplicate(A, again ? MAT_DO_NOT_COPY_VALUES : MAT_COPY_VALUES, &B));
    PetscCall(MatSetValuesCOO(B, v, ADD_VALUES));
    PetscCall(RecordMat(t, r, "type of a duplicate", B));
    PetscCall(MatSetValuesCOO(B, v, INSERT_VALUES));
    PetscCall(RecordMat(t, r, "type of a duplicate, inserted", B));
    PetscCall(RecordMat(t, r, "type of the original", A));
    PetscCall(MatDestroy(&A));
    A = B;
#endif
    PetscCall(PetscFree(v));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
