/*
  Operations that change or read the values of a matrix, with the newest values on the host, on the device, or on
  both. With those that are newest on the device, neither the operation nor the next product may copy the values of
  the matrix between host and device: PETSc counts the bytes that it copies. -copies_print prints them.
*/
#include "device.h"

typedef struct {
  const char *name;
  /* before A gets its newest values; NULL: nothing is prepared */
  PetscErrorCode (*prepare)(Test *, Mat A, Mat *B);
  /* the next product is with B if there is one, otherwise with A */
  PetscErrorCode (*run)(Test *, Record *, Mat *A, Mat *B);
  PetscBool holes; /* in a matrix without some of its diagonal entries */
  PetscBool stays; /* no values may be copied; PETSc's functions do the others on the host */
} Copying;

/* An operation that is one call */
#define COPYING(name, call)                                      \
  static PetscErrorCode name(Test *t, Record *r, Mat *A, Mat *B) \
  {                                                              \
    return call;                                                 \
  }

/* Nine entries per row, some of them far from the diagonal */
static PetscErrorCode MakeBand(Test *t, PetscBool holes, PetscInt seed, Mat *A)
{
  const PetscInt n = 200;
  PetscInt       rs, re;

  PetscFunctionBegin;
  PetscCall(MatCreateSized(t->comm, t->type, PETSC_DECIDE, PETSC_DECIDE, n, n, 9, A));
  PetscCall(MatSetOption(*A, MAT_KEEP_NONZERO_PATTERN, (PetscBool)!holes));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt i = rs; i < re; i++) {
    for (PetscInt k = -4; k < 5; k++) {
      const PetscInt j = (i + k * PetscAbsInt(k) + 1 + n) % n;

      if (holes && j == i && i % 5 == 0) continue;
      PetscCall(MatSetValue(*A, i, j, Value(i, j, seed), INSERT_VALUES));
    }
  }
  PetscCall(MatAssemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies the values to the arrays that AIJCUSPARSE has on the device */
static PetscErrorCode ToBoth(Test *t, Mat A)
{
  Mat             block[2] = {A, NULL};
  const PetscInt *i, *j;
  PetscScalar    *a;
  PetscMemType    memtype;

  PetscFunctionBegin;
  if (t->size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2 && block[k]; k++) PetscCall(MatSeqAIJGetCSRAndMemType(block[k], &i, &j, &a, &memtype));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Norm(Record *r, NormType type, Mat A)
{
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(MatNorm(A, type, &norm));
  PetscCall(RecordReal(r, "norm", norm, 1e3));
  PetscFunctionReturn(PETSC_SUCCESS);
}
COPYING(NormFrobenius, Norm(r, NORM_FROBENIUS, *A))
COPYING(NormColumns, Norm(r, NORM_1, *A))
COPYING(NormRows, Norm(r, NORM_INFINITY, *A))
COPYING(Shift, MatShift(*A, Value(1, 2, 3)))

static PetscErrorCode ZeroSome(Record *r, Mat A, PetscBool columns, PetscBool vecs, PetscScalar diag)
{
  Vec      x = NULL, b = NULL;
  PetscInt rs, re, rows[3];

  PetscFunctionBegin;
  if (vecs) {
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecFill(x, 4));
    PetscCall(VecFill(b, 5));
  }
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  rows[0] = rs + 1; /* has a diagonal entry even if others have not */
  rows[1] = re - 1;
  rows[2] = rs + 7;
  if (rows[1] % 5 == 0) rows[1]--;
  if (rows[0] % 5 == 0) rows[0]++;
  if (rows[2] % 5 == 0) rows[2]++;
  PetscCall((columns ? MatZeroRowsColumns : MatZeroRows)(A, 3, rows, diag, x, b));
  if (b) PetscCall(RecordVec(r, "right-hand side", b, NULL, 1e3));
  PetscCall(Destroy(&x, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}
COPYING(ZeroRows, ZeroSome(r, *A, PETSC_FALSE, PETSC_TRUE, Value(3, 3, 3)))
COPYING(ZeroRowsOnly, ZeroSome(r, *A, PETSC_FALSE, PETSC_FALSE, 0))
COPYING(ZeroRowsColumns, ZeroSome(r, *A, PETSC_TRUE, PETSC_TRUE, Value(3, 3, 3)))
COPYING(Duplicate, MatDuplicate(*A, MAT_COPY_VALUES, B))

static PetscErrorCode CopyToNew(Test *t, Record *r, Mat *A, Mat *B)
{
  PetscFunctionBegin;
  PetscCall(MatDuplicate(*A, MAT_DO_NOT_COPY_VALUES, B));
  PetscCall(MatCopy(*A, *B, SAME_NONZERO_PATTERN));
  PetscFunctionReturn(PETSC_SUCCESS);
}
/* A matrix with the pattern of A that has multiplied */
static PetscErrorCode PrepareCopy(Test *t, Mat A, Mat *B)
{
  PetscFunctionBegin;
  PetscCall(MakeBand(t, PETSC_FALSE, 8, B));
  PetscCall(Touch(*B));
  PetscCall(ToBoth(t, *B));
  PetscFunctionReturn(PETSC_SUCCESS);
}
COPYING(Copy, MatCopy(*A, *B, SAME_NONZERO_PATTERN))

/* To the other format; PETSc's types have none */
static PetscErrorCode Convert(Test *t, Record *r, Mat *A, Mat *B)
{
  PetscBool sellp, evchyb;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(t->type, MATSELLP, &sellp));
  PetscCall(PetscStrcmp(t->type, MATEVCHYB, &evchyb));
  PetscCall(MatConvert(*A, sellp ? MATEVCHYB : evchyb ? MATSELLP : MATSAME, MAT_INITIAL_MATRIX, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

COPYING(Transpose, MatTranspose(*A, MAT_INITIAL_MATRIX, B))

static PetscErrorCode PrepareTranspose(Test *t, Mat A, Mat *B)
{
  PetscFunctionBegin;
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, B));
  PetscCall(Touch(*B));
  if (t->size == 1) PetscCall(ToBoth(t, *B));
  PetscFunctionReturn(PETSC_SUCCESS);
}
COPYING(TransposeAgain, MatTranspose(*A, MAT_REUSE_MATRIX, B))
COPYING(TransposeInPlace, MatTranspose(*A, MAT_INPLACE_MATRIX, A))

/* Inserts all values after they have become zero, as a program does that assembles on the host */
static PetscErrorCode Assemble(Test *t, Record *r, Mat *A, Mat *B)
{
  PetscInt           rs, re, n;
  const PetscInt    *cols;
  const PetscScalar *vals;
  Mat                R;

  PetscFunctionBegin;
  PetscCall(MatZeroEntries(*A));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  PetscCall(MakeBand(t, PETSC_FALSE, 9, &R));
  for (PetscInt i = rs; i < re; i++) {
    PetscCall(MatGetRow(R, i, &n, &cols, &vals));
    if (i % 3) PetscCall(MatSetValues(*A, 1, &i, n, cols, vals, ADD_VALUES)); /* the other rows stay zero */
    PetscCall(MatRestoreRow(R, i, &n, &cols, &vals));
  }
  PetscCall(MatAssemble(*A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values that become zero, then change on the device, then on the host: the host must have those of the device */
static PetscErrorCode ZeroShiftAdd(Test *t, Record *r, Mat *A, Mat *B)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    PetscCall(MatZeroEntries(*A));
    if (k) PetscCall(MatShift(*A, 2.));
    if (k == 2) PetscCall(MatScale(*A, 3.));
    PetscCall(MatGetOwnershipRange(*A, &rs, &re));
    PetscCall(MatSetValue(*A, rs, rs, 1., ADD_VALUES));
    PetscCall(MatAssemble(*A));
    PetscCall(RecordEntries(r, *A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Several of these one after the other; the copies must not change with what they were made from */
static PetscErrorCode Several(Test *t, Record *r, Mat *A, Mat *B)
{
  Mat      C, D;
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatDuplicate(*A, MAT_COPY_VALUES, B));
  PetscCall(MatTranspose(*B, MAT_INITIAL_MATRIX, &C));
  PetscCall(MatShift(*A, 3.));
  PetscCall(MatDuplicate(*A, MAT_COPY_VALUES, &D));
  PetscCall(MatZeroEntries(*A));
  PetscCall(MatAXPY(*A, 2., D, SAME_NONZERO_PATTERN));
  PetscCall(MatGetOwnershipRange(D, &rs, &re));
  PetscCall(MatSetValue(D, rs, rs, 5., INSERT_VALUES));
  PetscCall(MatAssemble(D));
  PetscCall(RecordMat(t, r, "type of a duplicate", D));
  PetscCall(MatCopy(D, *A, SAME_NONZERO_PATTERN));
  PetscCall(RecordMat(t, r, "type after MatCopy()", *A));
  PetscCall(MatScale(*B, 2.));
  PetscCall(MatTranspose(*B, MAT_REUSE_MATRIX, &C));
  PetscCall(MatSetValue(C, rs, rs, 6., INSERT_VALUES));
  PetscCall(MatAssemble(C));
  PetscCall(RecordMat(t, r, "type of the transpose", C));
  PetscCall(Destroy(&C, &D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Counts(PetscLogDouble bytes[2])
{
  PetscFunctionBegin;
  bytes[0] = bytes[1] = 0;
#if defined(PETSC_HAVE_CUDA)
  bytes[0] = petsc_gtoc_sz;
  bytes[1] = petsc_ctog_sz;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal stays on the device unless it has zeros, which become ones */
static PetscErrorCode ApplyJacobi(Test *t, Record *r, Mat A, PetscBool zeros)
{
  PetscLogDouble bytes[2][2];
  PetscBool      looks;
  Vec            x, b;
  PC             pc;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecFill(b, 4));
  PetscCall(PCCreate(t->comm, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  for (int k = 0; k < 3; k++) { /* a new PC, new values, and after PCReset() */
    if (k) PetscCall(MatScale(A, 1.5));
    if (k == 2) PetscCall(PCReset(pc));
    PetscCall(PCSetOperators(pc, A, A));
    PetscCall(Counts(bytes[0]));
    PetscCall(PCSetUp(pc));
    PetscCall(PCApply(pc, b, x));
    PetscCall(Counts(bytes[1]));
    PetscCall(RecordVec(r, "inverse diagonal times a vector", x, NULL, 1e3));
    if (k && !zeros)
      PetscCall(RecordInt(r, "the diagonal is copied", bytes[1][0] > bytes[0][0] || bytes[1][1] > bytes[0][1]));
  }
  PetscCall(PCJacobiGetFixDiagonal(pc, &looks));
  PetscCall(RecordInt(r, "zeros are looked for", looks));
  PetscCall(Destroy(&pc, &x, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

COPYING(Jacobi, ApplyJacobi(t, r, *A, PETSC_FALSE))
COPYING(JacobiZeros, ApplyJacobi(t, r, *A, PETSC_TRUE))

static const Copying copyings[] = {
    {"MatNorm(), Frobenius", NULL, NormFrobenius, PETSC_FALSE, PETSC_FALSE},
    {"MatNorm(), columns", NULL, NormColumns, PETSC_FALSE, PETSC_FALSE},
    {"MatNorm(), rows", NULL, NormRows, PETSC_FALSE, PETSC_FALSE},
    {"MatShift()", NULL, Shift, PETSC_FALSE, PETSC_TRUE},
    {"MatZeroRows()", NULL, ZeroRows, PETSC_FALSE, PETSC_FALSE},
    {"MatZeroRows() without a diagonal", NULL, ZeroRowsOnly, PETSC_FALSE, PETSC_FALSE},
    {"MatZeroRowsColumns()", NULL, ZeroRowsColumns, PETSC_FALSE, PETSC_FALSE},
    {"MatDuplicate()", NULL, Duplicate, PETSC_FALSE, PETSC_FALSE},
    {"MatCopy() to a new matrix", NULL, CopyToNew, PETSC_FALSE, PETSC_FALSE},
    {"MatCopy()", PrepareCopy, Copy, PETSC_FALSE, PETSC_FALSE},
    {"MatConvert()", NULL, Convert, PETSC_FALSE, PETSC_FALSE},
    {"MatTranspose()", NULL, Transpose, PETSC_FALSE, PETSC_FALSE},
    {"MatTranspose() again", PrepareTranspose, TransposeAgain, PETSC_FALSE, PETSC_FALSE},
    {"MatTranspose() in place", NULL, TransposeInPlace, PETSC_FALSE, PETSC_FALSE},
    {"MatZeroEntries() and MatSetValues()", NULL, Assemble, PETSC_FALSE, PETSC_FALSE},
    {"MatZeroEntries(), MatShift(), MatSetValues()", NULL, ZeroShiftAdd, PETSC_FALSE, PETSC_FALSE},
    {"PCJACOBI", NULL, Jacobi, PETSC_FALSE, PETSC_FALSE},
    {"PCJACOBI, zeros", NULL, JacobiZeros, PETSC_TRUE, PETSC_FALSE},
    {"several", NULL, Several, PETSC_FALSE, PETSC_FALSE},
    {"MatShift(), new entries", NULL, Shift, PETSC_TRUE, PETSC_FALSE},
    {"MatZeroRows() that drops entries", NULL, ZeroRows, PETSC_TRUE, PETSC_FALSE},
    {"MatZeroRowsColumns(), missing entries", NULL, ZeroRowsColumns, PETSC_TRUE, PETSC_FALSE},
    {"MatDuplicate(), holes", NULL, Duplicate, PETSC_TRUE, PETSC_FALSE},
    {"MatTranspose(), holes", NULL, Transpose, PETSC_TRUE, PETSC_FALSE}};

/* Runs one operation with the newest values on the host (0), on both sides (1), or on the device (2), and gets the
   bytes copied per nonzero */
static PetscErrorCode CopyOnce(Test *t, Record *r, const Copying *c, int newest, PetscLogDouble copied[3])
{
  Mat            A, B = NULL;
  MatInfo        info;
  PetscLogDouble bytes[3][2];

  PetscFunctionBegin;
  PetscCall(MakeBand(t, c->holes, 7, &A));
  if (newest) PetscCall(Touch(A));
  if (newest == 1) PetscCall(ToBoth(t, A));
  if (c->prepare) PetscCall((*c->prepare)(t, A, &B));
  if (newest == 2) PetscCall(MatScale(A, 1.25));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(Counts(bytes[0]));
  PetscCall((*c->run)(t, r, &A, &B));
  PetscCall(Counts(bytes[1]));
  PetscCall(Touch(B ? B : A));
  PetscCall(Counts(bytes[2]));
  copied[0] = (bytes[1][0] - bytes[0][0]) / info.nz_used; /* to the host, by the operation */
  copied[1] = (bytes[1][1] - bytes[0][1]) / info.nz_used; /* to the device, by the operation */
  copied[2] = (bytes[2][1] - bytes[1][1]) / info.nz_used; /* to the device, by the next products */
  if (B) PetscCall(RecordEntries(r, B));
  if (B && newest == 2) PetscCall(RecordProducts(r, B, PETSC_TRUE));
  PetscCall(RecordType(t, r, "type afterwards", A));
  PetscCall(RecordEntries(r, A));
  if (newest == 2) PetscCall(RecordProducts(r, A, PETSC_TRUE));
  PetscCall(Destroy(&A, &B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Copies(Test *t, Record *r)
{
  PetscBool print = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasName(NULL, NULL, "-copies_print", &print));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(copyings); k++) {
    const Copying *c = &copyings[k];

    for (int newest = now.device ? 0 : 2; newest < 3; newest++) { /* on the host the three are the same */
      PetscLogDouble copied[3] = {0, 0, 0};

      PetscCall(CopyOnce(t, r, c, newest, copied));
      if (newest < 2 || !c->stays) continue;
      if (print && t->device)
        PetscCall(PetscPrintf(
            t->comm,
            "%-12s %-40s bytes per nonzero: %5.1f to the host, %5.1f to the device, %5.1f by the next product\n",
            t->type, c->name, copied[0], copied[1], copied[2]));
      PetscCall(RecordText(r, "operation", c->name));
      PetscCall(RecordInt(r, "values copied to the host", copied[0] >= sizeof(PetscScalar)));
      PetscCall(RecordInt(r, "values copied to the device", copied[1] >= sizeof(PetscScalar)));
      PetscCall(RecordInt(r, "values copied to the device by the next product", copied[2] >= sizeof(PetscScalar)));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
