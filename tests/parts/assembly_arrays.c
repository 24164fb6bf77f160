/* Matrices that use the program's own arrays */
#include "assembly.h"

/*
  Two columns a row, from `first` on: ascending or, in some rows, descending. Rows that have the same columns for one
  `first` have them for all, so that AIJ's inodes remain right
*/
static void Columns(PetscInt m, PetscInt n, PetscInt first, PetscBool ascending, PetscInt j[], PetscScalar v[])
{
  for (PetscInt k = 0; k < m; k++) {
    const PetscInt c = (k + first) % (n - 1), last = !ascending && k % 3 == 1;

    j[2 * k]     = c + last;
    j[2 * k + 1] = c + !last;
    v[2 * k]     = Value(k, 2 * first, 7);
    v[2 * k + 1] = Value(k, 2 * first + 1, 7);
  }
}

/*
  An AIJ matrix with the program's arrays is converted in place. Then the program writes other values and other columns.
  Only debug builds of PETSc reject columns that are not in ascending order
*/
static PetscErrorCode OwnColumns(Test *t, Record *r, PetscBool ascending)
{
  Mat          A;
  PetscInt     m, N, *i, *j;
  PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(MatSizes(t->R, &m, NULL, NULL, &N));
  PetscCall(PetscMalloc3(m + 1, &i, 2 * m, &j, 2 * m, &v));
  for (PetscInt k = 0; k <= m; k++) i[k] = 2 * k;
  Columns(m, N, 0, ascending, j, v);
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, m, N, i, j, v, &A));
  PetscCall(MatConvert(A, t->type, MAT_INPLACE_MATRIX, &A));
  PetscCall(RecordMat(t, r, "type", A));
  for (PetscInt k = 0; k < 3; k++) {
    if (k == 0) { /* values only */
      for (PetscInt l = 0; l < 2 * m; l++) v[l] = Value(l, 2, 7);
    } else
      Columns(m, N, 3 * k, ascending, j, v);
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY)); /* marks the arrays as changed */
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(RecordMat(t, r, "type after the arrays changed", A));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFree3(i, j, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode WithArrays(Test *t, Record *r)
{
  PetscFunctionBegin;
  for (int ascending = PetscDefined(USE_DEBUG); ascending < 2; ascending++)
    PetscCall(OwnColumns(t, r, (PetscBool)ascending));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A parallel matrix: the program writes other columns of the diagonal block, and other values of both blocks */
PetscErrorCode WithSplitArrays(Test *t, Record *r)
{
  Mat          A;
  PetscInt     m, n, N, cs, *i, *j, *oi, *oj;
  PetscScalar *v, *ov;

  PetscFunctionBegin;
  PetscCall(MatSizes(t->R, &m, &n, NULL, &N));
  PetscCall(MatGetOwnershipRangeColumn(t->R, &cs, NULL));
  PetscCall(PetscMalloc6(m + 1, &i, 2 * m, &j, 2 * m, &v, m + 1, &oi, m, &oj, m, &ov));
  for (PetscInt k = 0; k <= m; k++) i[k] = 2 * k;
  Columns(m, n, 0, PETSC_TRUE, j, v);
  oi[0] = 0;
  for (PetscInt k = 0; k < m; k++) { /* every second row has an entry in a column of another rank */
    oi[k + 1] = oi[k] + k % 2;
    if (k % 2) oj[oi[k]] = (cs + n + k % (N - n)) % N;
    if (k % 2) ov[oi[k]] = Value(k, 3, 7);
  }
  PetscCall(MatCreateMPIAIJWithSplitArrays(t->comm, m, n, PETSC_DETERMINE, N, i, j, v, oi, oj, ov, &A));
  PetscCall(MatConvert(A, t->type, MAT_INPLACE_MATRIX, &A));
  PetscCall(RecordMat(t, r, "type", A));
  for (PetscInt k = 1; k < 3; k++) {
    Columns(m, n, 3 * k, PETSC_TRUE, j, v);
    for (PetscInt l = 0; l < oi[m]; l++) ov[l] = Value(l, k, 8);
    PetscCall(MatAssemble(A));
    PetscCall(RecordMat(t, r, "type after the arrays changed", A));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFree6(i, j, v, oi, oj, ov));
  PetscFunctionReturn(PETSC_SUCCESS);
}
