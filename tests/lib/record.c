/*
  Records: the observations of an operation, with the differences that rounding allows.
*/
#include "record.h"
#include "matrices.h"

PetscErrorCode RecordAdd(Record *r, const char *what, PetscInt where, PetscScalar value, PetscReal bound,
                         const char *text)
{
  Item *it;

  PetscFunctionBegin;
  if (r->n == r->max) {
    Item          *more;
    const PetscInt max = 2 * r->max + 64;

    PetscCall(PetscMalloc1(max, &more));
    PetscCall(PetscArraycpy(more, r->item, r->n));
    PetscCall(PetscFree(r->item));
    r->item = more;
    r->max  = max;
  }
  it        = r->item + r->n++;
  it->what  = what;
  it->where = where;
  it->value = value;
  it->bound = bound;
  it->text  = NULL;
  if (text) PetscCall(PetscStrallocpy(text, &it->text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RecordReset(Record *r)
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < r->n; k++) PetscCall(PetscFree(r->item[k].text));
  PetscCall(PetscFree(r->item));
  r->n = r->max = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RecordInt(Record *r, const char *what, PetscInt64 value)
{
  return RecordAdd(r, what, 0, (PetscScalar)(PetscReal)value, 0, NULL);
}

PetscErrorCode RecordText(Record *r, const char *what, const char *text)
{
  return RecordAdd(r, what, 0, 0, 0, text);
}

PetscErrorCode RecordReal(Record *r, const char *what, PetscScalar value, PetscReal epsilons)
{
  return RecordAdd(r, what, 0, value, epsilons * PETSC_MACHINE_EPSILON * PetscAbsScalar(value), NULL);
}

PetscErrorCode RecordVec(Record *r, const char *what, Vec v, Vec bound, PetscReal epsilons)
{
  const PetscScalar *a, *b = NULL;
  PetscInt           s, e, N;
  PetscReal          norm = 0;

  PetscFunctionBegin;
  PetscCall(VecGetSize(v, &N));
  if (N && !bound) PetscCall(VecNorm(v, NORM_INFINITY, &norm));
  PetscCall(VecGetOwnershipRange(v, &s, &e));
  PetscCall(VecGetArrayRead(v, &a));
  if (bound) PetscCall(VecGetArrayRead(bound, &b));
  for (PetscInt i = s; i < e; i++)
    PetscCall(
        RecordAdd(r, what, i, a[i - s], b ? PetscRealPart(b[i - s]) : epsilons * PETSC_MACHINE_EPSILON * norm, NULL));
  if (bound) PetscCall(VecRestoreArrayRead(bound, &b));
  PetscCall(VecRestoreArrayRead(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RecordEntries(Record *r, Mat A)
{
  PetscInt  rs, re;
  PetscReal largest = 0;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (int pass = 0; pass < 2; pass++) {
    for (PetscInt i = rs; i < re; i++) {
      PetscInt           n;
      const PetscInt    *cols;
      const PetscScalar *vals;

      PetscCall(MatGetRow(A, i, &n, &cols, &vals));
      if (pass) PetscCall(RecordAdd(r, "length of row", i, n, 0, NULL));
      for (PetscInt k = 0; k < n; k++) {
        if (!pass)
          largest = PetscMax(largest, PetscAbsScalar(vals[k]));
        else {
          PetscCall(RecordAdd(r, "column in row", i, cols[k], 0, NULL));
          PetscCall(RecordAdd(r, "entry in row", i, vals[k], 1e3 * PETSC_MACHINE_EPSILON * largest, NULL));
        }
      }
      PetscCall(MatRestoreRow(A, i, &n, &cols, &vals));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ProductBounds(Mat A, Vec x, Vec add, PetscBool transpose, Vec bound)
{
  PetscInt           rs, re, M;
  const PetscScalar *xa, *aa = NULL;
  PetscScalar       *ba;
  PetscInt           xs;

  PetscFunctionBegin;
  PetscCall(VecSet(bound, 0.));
  PetscCall(MatGetSize(A, &M, NULL));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  if (transpose) {
    PetscCall(VecGetArrayRead(x, &xa));
    for (PetscInt i = rs; i < re; i++) {
      PetscInt           n;
      const PetscInt    *cols;
      const PetscScalar *vals;

      PetscCall(MatGetRow(A, i, &n, &cols, &vals));
      for (PetscInt k = 0; k < n; k++)
        PetscCall(VecSetValue(bound, cols[k],
                              4 * PETSC_MACHINE_EPSILON * (PetscMin(M, 1000) + 4) * PetscAbsScalar(vals[k]) *
                                  PetscAbsScalar(xa[i - rs]),
                              ADD_VALUES));
      PetscCall(MatRestoreRow(A, i, &n, &cols, &vals));
    }
    PetscCall(VecRestoreArrayRead(x, &xa));
    PetscCall(VecAssemblyBegin(bound));
    PetscCall(VecAssemblyEnd(bound));
  } else {
    Vec        all;
    VecScatter sc;

    /* all of x on every rank: this is simple, and the matrices are small */
    PetscCall(VecScatterCreateToAll(x, &sc, &all));
    PetscCall(VecScatterBegin(sc, x, all, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(sc, x, all, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterDestroy(&sc));
    PetscCall(VecGetArrayRead(all, &xa));
    PetscCall(VecGetArray(bound, &ba));
    for (PetscInt i = rs; i < re; i++) {
      PetscInt           n;
      const PetscInt    *cols;
      const PetscScalar *vals;

      PetscCall(MatGetRow(A, i, &n, &cols, &vals));
      for (PetscInt k = 0; k < n; k++)
        ba[i - rs] += 4 * PETSC_MACHINE_EPSILON * (n + 4) * PetscAbsScalar(vals[k]) * PetscAbsScalar(xa[cols[k]]);
      PetscCall(MatRestoreRow(A, i, &n, &cols, &vals));
    }
    PetscCall(VecRestoreArray(bound, &ba));
    PetscCall(VecRestoreArrayRead(all, &xa));
    PetscCall(VecDestroy(&all));
  }
  if (add) {
    PetscCall(VecGetOwnershipRange(add, &xs, &re));
    PetscCall(VecGetArrayRead(add, &aa));
    PetscCall(VecGetArray(bound, &ba));
    for (PetscInt i = 0; i < re - xs; i++) ba[i] += 64 * PETSC_MACHINE_EPSILON * PetscAbsScalar(aa[i]);
    PetscCall(VecRestoreArray(bound, &ba));
    PetscCall(VecRestoreArrayRead(add, &aa));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatOpMult(Mat A, Op op, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  switch (op) {
  case PLAIN: PetscCall(y ? MatMultAdd(A, x, y, z) : MatMult(A, x, z)); break;
  case TRANSPOSE: PetscCall(y ? MatMultTransposeAdd(A, x, y, z) : MatMultTranspose(A, x, z)); break;
  default: PetscCall(y ? MatMultHermitianTransposeAdd(A, x, y, z) : MatMultHermitianTranspose(A, x, z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RecordMult(Record *r, const char *what, Mat A, Op op, Vec x, Vec y, Vec z)
{
  Vec bound;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(z, &bound));
  PetscCall(ProductBounds(A, x, y, (PetscBool)(op != PLAIN), bound));
  PetscCall(MatOpMult(A, op, x, y, z));
  PetscCall(RecordVec(r, what, z, bound, 0));
  PetscCall(VecDestroy(&bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode RecordProducts(Record *r, Mat A, PetscBool entries)
{
  Vec       x, y, b = NULL;
  PetscBool has;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecFill(x, 21));
  PetscCall(VecSet(y, PETSC_MAX_REAL)); /* the previous contents must not matter */
  PetscCall(MatMult(A, x, y));
  if (entries) {
    PetscCall(VecDuplicate(y, &b));
    PetscCall(ProductBounds(A, x, NULL, PETSC_FALSE, b));
  }
  PetscCall(RecordVec(r, "A x at row", y, b, 1e4));
  PetscCall(VecDestroy(&b));
  PetscCall(MatHasOperation(A, MATOP_MULT_TRANSPOSE, &has));
  /* PETSc 3.26 reports that the Hermitian transpose of a matrix has this operation, but then does not find it */
  if (PetscDefined(USE_COMPLEX) && has) {
    PetscCall(PetscObjectTypeCompare((PetscObject)A, "hermitiantranspose", &has));
    has = (PetscBool)!has;
  }
  if (has) { /* all matrices except for a few of PETSc's composed types */
    PetscCall(VecFill(y, 22));
    PetscCall(MatMultTranspose(A, y, x));
    if (entries) {
      PetscCall(VecDuplicate(x, &b));
      PetscCall(ProductBounds(A, y, NULL, PETSC_TRUE, b));
    }
    PetscCall(RecordVec(r, "A^T x at column", x, b, 1e4));
    PetscCall(VecDestroy(&b));
  }
  PetscCall(Destroy(&x, &y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SameItem(const Item *x, const Item *y, PetscBool *same)
{
  PetscFunctionBegin;
  PetscCall(PetscStrcmp(x->what, y->what, same));
  if (!*same) PetscFunctionReturn(PETSC_SUCCESS);
  if (x->text || y->text)
    PetscCall(PetscStrcmp(x->text, y->text, same));
  else /* infinities equal themselves, and NaN is NaN */
    *same = (PetscBool)(PetscAbsScalar(x->value - y->value) <= x->bound || x->value == y->value ||
                        (PetscIsNanScalar(x->value) && PetscIsNanScalar(y->value)));
  PetscFunctionReturn(PETSC_SUCCESS);
}
