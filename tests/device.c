/*
  What a matrix on a device meets and one on the host does not: vectors in either memory, values in device arrays, being bound to
  the CPU and back, CUSPARSE's factors, graphs. Where there is no device the same operations run on the host, without what needs
  one.
*/
#include "harness.h"
#include <petscdmda.h>

/* A vector of A's row or column layout, in the host's memory or wherever A's are */
static PetscErrorCode CreateVec(Mat A, PetscBool rows, PetscBool host, Vec *v)
{
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  if (!host) {
    PetscCall(MatCreateVecs(A, rows ? NULL : v, rows ? v : NULL));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(VecCreate(PetscObjectComm((PetscObject)A), v));
  PetscCall(VecSetSizes(*v, rows ? m : n, rows ? M : N));
  PetscCall(VecSetType(*v, VECSTANDARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(Mat A, int op, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  switch (op) {
  case 0: PetscCall(y ? MatMultAdd(A, x, y, z) : MatMult(A, x, z)); break;
  case 1: PetscCall(y ? MatMultTransposeAdd(A, x, y, z) : MatMultTranspose(A, x, z)); break;
  default: PetscCall(y ? MatMultHermitianTransposeAdd(A, x, y, z) : MatMultHermitianTranspose(A, x, z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All products, each operand in either memory, the result in place or not, twice. AIJCUSPARSE does not accept host vectors */
static PetscErrorCode Mixed(Test *t, Record *r)
{
  Mat A;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  for (int again = 0; again < 2; again++) {
    for (int op = 0; op < 3; op++) {
      for (int where = 0; where < 8; where++) {
        const PetscBool trans = (PetscBool)(op > 0);
        Vec             x, y, z, b;

        PetscCall(CreateVec(A, trans, (PetscBool)(where & 1), &x));
        PetscCall(CreateVec(A, (PetscBool)!trans, (PetscBool)(where >> 1 & 1), &y));
        PetscCall(CreateVec(A, (PetscBool)!trans, (PetscBool)(where >> 2 & 1), &z));
        PetscCall(CreateVec(t->R, (PetscBool)!trans, PETSC_TRUE, &b));
        PetscCall(VecFill(x, 1 + where));
        PetscCall(VecFill(y, 2 + where));
        PetscCall(VecSet(z, PETSC_MAX_REAL));
        PetscCall(ProductBounds(A, x, y, trans, b));
        PetscCall(Product(A, op, x, y, z));
        PetscCall(RecordVec(r, "z = y + op(A) x at", z, b, 0));
        PetscCall(Product(A, op, x, y, y));
        PetscCall(RecordVec(r, "y += op(A) x at", y, b, 0));
        PetscCall(ProductBounds(A, x, NULL, trans, b));
        PetscCall(Product(A, op, x, NULL, z));
        PetscCall(RecordVec(r, "z = op(A) x at", z, b, 0));
        PetscCall(VecScale(x, 2.)); /* where it is now */
        PetscCall(VecScale(b, 2.));
        PetscCall(Product(A, op, x, NULL, z));
        PetscCall(RecordVec(r, "z = op(A) 2x at", z, b, 0));
        PetscCall(VecDestroy(&x));
        PetscCall(VecDestroy(&y));
        PetscCall(VecDestroy(&z));
        PetscCall(VecDestroy(&b));
      }
    }
    PetscCall(MatScale(A, -1.5));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product of every kind with vectors that outlive the changes of A */
static PetscErrorCode Products(Test *t, Record *r, const char *what, Mat A, Vec x, Vec y)
{
  Vec b, c, d;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(x, &c));
  PetscCall(VecDuplicate(y, &d));
  PetscCall(VecFill(x, 3));
  PetscCall(CreateVec(t->R, PETSC_TRUE, PETSC_TRUE, &b));
  PetscCall(ProductBounds(A, x, NULL, PETSC_FALSE, b));
  PetscCall(MatMult(A, x, y));
  PetscCall(RecordVec(r, what, y, b, 0));
  PetscCall(VecFill(d, 4));
  PetscCall(ProductBounds(A, x, d, PETSC_FALSE, b));
  PetscCall(MatMultAdd(A, x, d, d));
  PetscCall(RecordVec(r, what, d, b, 0));
  PetscCall(VecDestroy(&b));
  PetscCall(CreateVec(t->R, PETSC_FALSE, PETSC_TRUE, &b));
  PetscCall(VecFill(y, 5));
  PetscCall(ProductBounds(A, y, NULL, PETSC_TRUE, b));
  PetscCall(MatMultTranspose(A, y, c));
  PetscCall(RecordVec(r, what, c, b, 0));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&c));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* To the CPU and back in the middle of things, with changes of values and of the pattern on either side */
static PetscErrorCode Bind(Test *t, Record *r)
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
    PetscCall(Products(t, r, "product at", A, x, y));
    if (k == 1) PetscCall(MatScale(A, 2.));
    PetscCall(MatBindToCPU(A, (PetscBool)(k % 2 == 0)));
    PetscCall(RecordType(t, r, "type when bound or unbound", A));
    if (k != 3) PetscCall(Products(t, r, "product after binding at", A, x, y));
    if (k == 2) PetscCall(MatScale(A, -.5));
    if (k == 3) PetscCall(FillLike(t->R, 33, A));
    if (k == 4 || k == 5) {
      for (PetscInt i = rs; i < re; i += 3) PetscCall(MatSetValue(A, i, (i * 5 + k) % N, 7., ADD_VALUES));
      PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    }
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(Products(t, r, "product of a duplicate at", B, x, y));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(RecordMat(t, r, "type at the end", A));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -mat_bind_below: small matrices stay on the CPU */
static PetscErrorCode BindBelow(Test *t, Record *r)
{
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    Mat A;
    Vec x, y;

    PetscCall(MatGetLocalSize(t->R, &m, &n));
    PetscCall(MatGetSize(t->R, &M, &N));
    PetscCall(PetscOptionsSetValue(NULL, "-below_mat_bind_below", k ? "0" : "100000"));
    PetscCall(MatCreate(t->comm, &A));
    PetscCall(MatSetOptionsPrefix(A, "below_"));
    PetscCall(MatSetSizes(A, m, n, M, N));
    PetscCall(MatSetType(A, t->type));
    PetscCall(MatSetFromOptions(A));
    PetscCall(PreallocateLike(t->R, A));
    PetscCall(FillLike(t->R, -1, A));
    PetscCall(RecordMat(t, r, "type", A));
    PetscCall(MatCreateVecs(t->R, &x, &y)); /* the host's, as its user would have them */
    if (!k) PetscCall(Products(t, r, "product at", A, x, y));
    PetscCall(MatScale(A, 2.));
    PetscCall(RecordMat(t, r, "type when scaled", A));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscOptionsClearValue(NULL, "-below_mat_bind_below"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sizes differ, so that -mat_bind_below binds the matrix on the first rank only; then the same of a vector, and of neither */
static PetscErrorCode BindSome(Test *t, Record *r)
{
  const PetscInt m = t->rank ? 40 : 4;
  PetscInt       rs, re, N;
  Mat            A;
  Vec            x, y;

  PetscFunctionBegin;
  if (PetscDefined(USE_DEBUG)) PetscFunctionReturn(PETSC_SUCCESS); /* where all ranks must say the same, and wait for each other until they do */
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
    for (PetscInt k = -1; k < 3; k++) PetscCall(MatSetValue(A, i, (i + k * 3 + N) % N, 1. + .1 * (i % 7) + k, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
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
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An array where the type under test wants it: PETSc frees nothing here, so the caller does */
static PetscErrorCode ToDevice(Test *t, const void *host, size_t bytes, void *address)
{
  void **array = (void **)address;

  PetscFunctionBegin;
#if defined(PETSC_HAVE_CUDA)
  if (t->device) {
    PetscCallCUDA(cudaMalloc(array, PetscMax(bytes, 1)));
    PetscCallCUDA(cudaMemcpy(*array, host, bytes, cudaMemcpyHostToDevice));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(PetscMalloc(bytes, array));
  PetscCall(PetscMemcpy(*array, host, bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FreeArray(Test *t, void *address)
{
  void **array = (void **)address;

  PetscFunctionBegin;
#if defined(PETSC_HAVE_CUDA)
  if (t->device) {
    PetscCallCUDA(cudaFree(*array));
    *array = NULL;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(PetscFree(*array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Assembly by coordinates from arrays on the device: R's entries, twice each, every fourth of them (away) for another rank's row */
static PetscErrorCode COO(Test *t, Record *r)
{
  const PetscBool away = (PetscBool)(t->arg[0] == 'a');
  Mat             A;
  Vec             x, y;
  PetscInt        rs, re, M, *ci, *cj, *di, *dj, n = 0, k = 0;
  PetscScalar    *v, *d;

  PetscFunctionBegin;
  PetscCall(CreateLike(t->R, t->type, &A));
  PetscCall(MatGetSize(A, &M, NULL));
  PetscCall(MatGetOwnershipRange(t->R, &rs, &re));
  for (PetscInt i = rs; i < re; i++) {
    PetscInt len;

    PetscCall(MatGetRow(t->R, i, &len, NULL, NULL));
    n += 2 * len;
    PetscCall(MatRestoreRow(t->R, i, &len, NULL, NULL));
  }
  PetscCall(PetscMalloc3(n, &ci, n, &cj, n, &v));
  for (PetscInt i = rs; i < re; i++) {
    PetscInt        len;
    const PetscInt *cols;

    PetscCall(MatGetRow(t->R, i, &len, &cols, NULL));
    for (PetscInt l = 0; l < 2 * len; l++) {
      ci[k]   = away && l % 4 == 3 ? M - 1 - i : i;
      cj[k++] = cols[l / 2];
    }
    PetscCall(MatRestoreRow(t->R, i, &len, &cols, NULL));
  }
  PetscCall(ToDevice(t, ci, (size_t)n * sizeof(*ci), &di));
  PetscCall(ToDevice(t, cj, (size_t)n * sizeof(*cj), &dj));
  PetscCall(MatSetPreallocationCOO(A, n, di, dj));
  PetscCall(FreeArray(t, &di));
  PetscCall(FreeArray(t, &dj));
  for (PetscInt step = 0; step < 4; step++) {
    for (k = 0; k < n; k++) v[k] = Value(k, t->rank, 60 + step);
    PetscCall(ToDevice(t, v, (size_t)n * sizeof(*v), &d));
    PetscCall(MatSetValuesCOO(A, d, step % 2 ? ADD_VALUES : INSERT_VALUES));
    PetscCall(MatCreateVecs(A, &x, &y)); /* the product before anything reads the entries on the host */
    PetscCall(VecFill(x, 3));
    PetscCall(MatMult(A, x, y));
    PetscCall(FreeArray(t, &d));
    PetscCall(RecordVec(r, "A x at row", y, NULL, 1e4));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    if (step > 1) PetscCall(RecordMat(t, r, "type after MatSetValuesCOO", A));
  }
  PetscCall(PetscFree3(ci, cj, v));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Indices that are too large, in the program's arrays on the device or on the host: AIJ's error, and the matrix as it was. Then a map that is used while bound */
static PetscErrorCode COOErrors(Test *t, Record *r)
{
  Mat          A;
  PetscInt     M, N, *di, *dj;
  PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_spmv_coo", "device"));
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatGetSize(A, &M, &N));
  for (int k = 0; k < 4; k++) {
    PetscInt       ci[] = {0, -1, k % 2 ? 0 : M, M - 1}, cj[] = {0, N + 3, k % 2 ? N : 0, -1};
    PetscErrorCode ierr;

    if (k < 2) PetscCall(ToDevice(t, ci, sizeof(ci), &di));
    if (k < 2) PetscCall(ToDevice(t, cj, sizeof(cj), &dj));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = MatSetPreallocationCOO(A, 4, k < 2 ? di : ci, k < 2 ? dj : cj);
    PetscCall(PetscPopErrorHandler());
    PetscCall(RecordInt(r, k % 2 ? "error for a column" : "error for a row", ierr));
    if (k < 2) PetscCall(FreeArray(t, &di));
    if (k < 2) PetscCall(FreeArray(t, &dj));
#if PETSC_VERSION_LT(3, 21, 0) /* AIJ has emptied it */
    PetscCall(MatDestroy(&A));
    PetscCall(Make(t, &A));
#endif
    PetscCall(RecordMat(t, r, "type after an error", A));
  }
  for (int bind = 0; bind < (strcmp(t->type, MATAIJCUSPARSE) ? 3 : 1); bind++) { /* while bound, AIJCUSPARSE has no function */
    PetscInt    ci[] = {M - 1, 0, M - 1, -1, M - 1}, cj[] = {N - 1, 0, 0, 0, N - 1};
    PetscScalar value[] = {1.5, 2.0, -3.0, 4.0, 0.25};

    if (!bind) PetscCall(MatSetPreallocationCOO(A, 5, ci, cj));
    if (bind) PetscCall(MatBindToCPU(A, bind == 1 ? PETSC_TRUE : PETSC_FALSE));
    PetscCall(ToDevice(t, value, sizeof(value), &v));
    PetscCall(MatSetValuesCOO(A, bind == 1 ? value : v, bind ? ADD_VALUES : INSERT_VALUES));
    PetscCall(FreeArray(t, &v));
    PetscCall(RecordMat(t, r, bind == 1 ? "type while bound" : "type after MatSetValuesCOO", A));
  }
  if (t->device && strcmp(t->type, MATAIJCUSPARSE) && M > 1 && N > 1) { /* AIJ would go on with the old map */
    PetscScalar    value[5] = {0};
    PetscErrorCode ierr;

    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetValue(A, 0, N - 1, 1.0, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = MatSetValuesCOO(A, value, INSERT_VALUES);
    PetscCall(PetscPopErrorHandler());
    PetscCheck(ierr == PETSC_ERR_ARG_WRONGSTATE, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The map of another pattern was used: error %d", (int)ierr);
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_spmv_coo"));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fills a block's values through its array on the device, or the host's where there is none */
static PetscErrorCode WriteBlock(Test *t, Mat A, PetscBool write, PetscInt seed)
{
  PetscScalar *a, *v;
  MatInfo      info;
  PetscInt     nz;

  PetscFunctionBegin;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  nz = (PetscInt)info.nz_used;
  PetscCall(PetscMalloc1(nz, &v));
  for (PetscInt k = 0; k < nz; k++) v[k] = Value(k, 1, seed);
#if defined(PETSC_HAVE_CUDA)
  if (t->device) {
    PetscCall((write ? MatSeqAIJCUSPARSEGetArrayWrite : MatSeqAIJCUSPARSEGetArray)(A, &a));
    if (nz) PetscCallCUDA(cudaMemcpy(a, v, nz * sizeof(PetscScalar), cudaMemcpyHostToDevice));
    PetscCall((write ? MatSeqAIJCUSPARSERestoreArrayWrite : MatSeqAIJCUSPARSERestoreArray)(A, &a));
    PetscCall(PetscFree(v));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(MatSeqAIJGetArray(A, &a));
  PetscCall(PetscArraycpy(a, v, nz));
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(PetscFree(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Values change between products, in an order in which the newest are now on the host and now on the device; the entries are
  read (which moves them) only at the end
*/
static PetscErrorCode Stale(Test *t, Record *r)
{
  Mat      A, B, Ad, Ao;
  Vec      x, y, l, d;
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Make(t, &B));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(MatCreateVecs(A, &d, &l));
  PetscCall(VecFill(l, 8));
  PetscCall(VecFill(d, 9));
  PetscCall(VecFill(x, 10));
  Ad = A;
  Ao = NULL;
  if (t->size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, &Ao, NULL));
  for (PetscInt k = 0; k < 14; k++) {
    switch (k) {
    case 1: PetscCall(MatScale(A, 1.5)); break;
    case 2: PetscCall(MatDiagonalScale(A, l, d)); break;
    case 3: PetscCall(MatAXPY(A, 2., B, SAME_NONZERO_PATTERN)); break;
    case 4: PetscCall(MatZeroEntries(A)); break;
    case 5: PetscCall(FillLike(t->R, 40, A)); break;
    case 6: PetscCall(MatScale(A, -1.)); break;
    case 7: PetscCall(WriteBlock(t, Ad, PETSC_FALSE, 41)); break;
    case 8:
      if (Ao) PetscCall(WriteBlock(t, Ao, PETSC_FALSE, 42));
      break;
    case 9: PetscCall(WriteBlock(t, Ad, PETSC_TRUE, 43)); break;
    case 10: PetscCall(MatAXPY(A, -1., B, SUBSET_NONZERO_PATTERN)); break;
    case 11: PetscCall(MatDiagonalScale(A, NULL, d)); break;
    case 12: PetscCall(MatCopy(B, A, SAME_NONZERO_PATTERN)); break;
    case 13: PetscCall(MatConjugate(A)); break;
    }
    PetscCall(MatMult(A, x, y));
    PetscCall(RecordVec(r, "A x at row", y, NULL, 1e4));
    PetscCall(VecSet(y, 1.));
    PetscCall(MatMultTransposeAdd(A, y, d, d));
    PetscCall(RecordVec(r, "d += A^T 1 at column", d, NULL, 1e5));
    PetscCall(VecFill(d, 9));
  }
  PetscCall(RecordMat(t, r, "type at the end", A));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&d));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal(Test *t, Record *r)
{
  Mat A;
  Vec d;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatCreateVecs(A, NULL, &d));
  for (int k = 0; k < 4; k++) {
    PetscCall(MatGetDiagonal(A, d));
    PetscCall(RecordVec(r, "diagonal", d, NULL, 10));
    if (k == 0) PetscCall(MatScale(A, 3.));
    if (k == 1) PetscCall(MatDiagonalSet(A, d, ADD_VALUES));
    if (k == 2) PetscCall(MatShift(A, 1.));
  }
  PetscCall(RecordMat(t, r, "type", A));
  PetscCall(VecDestroy(&d));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with dense matrices in the device's memory */
static PetscErrorCode Dense(Test *t, Record *r)
{
  Mat      A, D, E, C[2] = {NULL, NULL};
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatCreateDense(t->comm, n, PETSC_DECIDE, N, 5, NULL, &D));
  PetscCall(MatCreateDense(t->comm, m, PETSC_DECIDE, M, 5, NULL, &E));
#if defined(PETSC_HAVE_CUDA)
  if (t->device) {
    PetscCall(MatConvert(D, MATDENSECUDA, MAT_INPLACE_MATRIX, &D));
    PetscCall(MatConvert(E, MATDENSECUDA, MAT_INPLACE_MATRIX, &E));
  }
#endif
  for (PetscInt k = 0; k < 3; k++) {
    const MatReuse reuse = k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX;

    PetscCall(FillDense(D, 5, 50 + k));
    PetscCall(FillDense(E, 5, 50 + k));
    PetscCall(MatMatMult(A, D, reuse, PETSC_DEFAULT, &C[0]));
    PetscCall(RecordMat(t, r, "type of A D", C[0]));
    PetscCall(MatTransposeMatMult(A, E, reuse, PETSC_DEFAULT, &C[1]));
    PetscCall(RecordMat(t, r, "type of A^T E", C[1]));
    PetscCall(MatScale(A, -2.));
  }
  PetscCall(MatDestroy(&C[0]));
  PetscCall(MatDestroy(&C[1]));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&E));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  CUSPARSE's factors, and triangular solves with them; with AIJ PETSc's own. Transposed systems are solved from the first numeric phase on, and with another
  factor from the second one on
*/
static PetscErrorCode Factor(Test *t, Record *r)
{
  const PetscBool     chol = (PetscBool)(t->arg[0] == 'i' && t->arg[1] == 'c');
  const MatFactorType ft   = chol ? MAT_FACTOR_ICC : t->arg[0] == 'i' ? MAT_FACTOR_ILU : MAT_FACTOR_LU;
  Mat                 A, F;
  Vec                 b, x;
  IS                  row, col;
  MatFactorInfo       info;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Touch(A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecFill(b, 1));
  for (int late = 0; late < (chol ? 1 : 2); late++) {
#if defined(PETSC_HAVE_CUDA)
    PetscCall(MatGetFactor(A, t->device ? MATSOLVERCUSPARSE : MATSOLVERPETSC, ft, &F));
#else
    PetscCall(MatGetFactor(A, MATSOLVERPETSC, ft, &F));
#endif
    PetscCall(MatGetOrdering(A, late && ft == MAT_FACTOR_LU ? MATORDERINGRCM : MATORDERINGNATURAL, &row, &col));
    PetscCall(MatFactorInfoInitialize(&info));
    info.levels = 0;
    info.fill   = 3;
    if (ft == MAT_FACTOR_LU) PetscCall(MatLUFactorSymbolic(F, A, row, col, &info));
    if (ft == MAT_FACTOR_ILU) PetscCall(MatILUFactorSymbolic(F, A, row, col, &info));
    if (ft == MAT_FACTOR_ICC) PetscCall(MatICCFactorSymbolic(F, A, row, &info));
    PetscCall(ISDestroy(&row)); /* the factor keeps what it needs */
    PetscCall(ISDestroy(&col));
    for (int k = 0; k < 3; k++) {
      if (chol)
        PetscCall(MatCholeskyFactorNumeric(F, A, &info));
      else
        PetscCall(MatLUFactorNumeric(F, A, &info));
      for (int bound = 0; bound < 8; bound++) { /* to the host: either vector, the factor */
        PetscCall(VecBindToCPU(b, (PetscBool)(bound & 1)));
        PetscCall(VecBindToCPU(x, (PetscBool)(bound >> 1 & 1)));
        PetscCall(MatBindToCPU(F, (PetscBool)(bound >> 2 & 1)));
        PetscCall(VecFill(b, 1 + bound)); /* other numbers each time: what was lost would be the last solution */
        PetscCall(MatSolve(F, b, x));
        PetscCall(RecordVec(r, "solution", x, NULL, 1e6));
        if (k < late) continue;
        PetscCall(MatSolveTranspose(F, b, x));
        PetscCall(RecordVec(r, "solution of the transposed system", x, NULL, 1e6));
      }
      PetscCall(MatBindToCPU(F, PETSC_FALSE));
      PetscCall(MatScale(A, 2.));
    }
    PetscCall(MatDestroy(&F));
  }
  PetscCall(RecordMat(t, r, "type after the factorizations", A));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. Whether AIJCUSPARSE multiplies with A or a part of it: cuSPARSE's default algorithm does not promise the same bits */
static PetscErrorCode ByCusparse(Test *t, Mat A, PetscBool *by)
{
  const char   *format;
  Mat           block[2] = {A, NULL};
  PetscSpMVInfo info;
  int           any;

  PetscFunctionBegin;
  PetscCall(PetscSpMVGetFormat(A, &format));
  any = t->device && !format;
  if (t->device && format) {
    if (t->size > 1) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
    for (int k = 0; k < 2 && block[k]; k++) {
      PetscCall(PetscSpMVGetInfo(block[k], &info));
      if (info.nonzeros && !info.stored) any = 1;
    }
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, t->comm));
  *by = (PetscBool)any;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Twice the same product, twice the same bits, also when another matrix with the same entries gives it; but not where AIJCUSPARSE multiplies */
static PetscErrorCode Repeat(Test *t, Record *r)
{
  Mat       A, B;
  Vec       x, y, z;
  PetscInt  m, n;
  PetscBool same, cusparse = PETSC_FALSE;
  int       square;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Make(t, &B));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecFill(x, 1));
  PetscCall(MatMult(A, x, y));
  PetscCall(ByCusparse(t, A, &cusparse));
  for (int k = 0; k < 4; k++) {
    PetscCall(VecSet(z, 1.));
    PetscCall(MatMult(k < 3 ? A : B, x, z));
    PetscCall(VecEqual(y, z, &same));
    PetscCall(RecordInt(r, "the same bits", same || cusparse));
  }
  PetscCall(VecFill(y, 2));
  PetscCall(VecCopy(y, z));
  PetscCall(MatMultAdd(A, x, y, y));
  PetscCall(MatMultAdd(A, x, z, z));
  PetscCall(VecEqual(y, z, &same));
  PetscCall(RecordInt(r, "the same bits of a sum", same || cusparse));
  /* products of products, one after the other, are those of which each begins when all is done before it */
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetLocalSize(y, &m));
  square = m == n;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &square, 1, MPI_INT, MPI_LAND, t->comm));
  if (square) {
    Vec *chain;

    PetscCall(VecDuplicateVecs(x, 9, &chain));
    PetscCall(VecCopy(x, chain[0]));
    for (int k = 0; k < 8; k++) PetscCall(MatMult(A, chain[k], chain[k + 1]));
    for (int k = 0; k < 8; k++) {
      PetscReal norm;

      PetscCall(VecNorm(chain[k], NORM_INFINITY, &norm)); /* waits */
      PetscCall(MatMult(A, chain[k], y));
      PetscCall(VecEqual(y, chain[k + 1], &same));
      PetscCall(RecordInt(r, "the same bits in a chain", same || cusparse));
    }
    PetscCall(VecDestroyVecs(9, &chain));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Grids that take the types of their matrices and vectors from the options, as programs do; and setting them a second time */
static PetscErrorCode Grid(Test *t, Record *r)
{
  DM   dm;
  Mat  A, R;
  Vec  x, y, b;
  char option[128];

  PetscFunctionBegin;
  for (int host = 0; host < 2; host++) {
    PetscCall(PetscSNPrintf(option, sizeof(option), "-grid_dm_mat_type %s %s", t->type, t->device && !host ? "-grid_dm_vec_type cuda" : ""));
    PetscCall(PetscOptionsInsertString(NULL, option));
    PetscCall(DMDACreate3d(t->comm, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 7, 6, 5, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE,
                           2, 1, NULL, NULL, NULL, &dm));
    PetscCall(DMSetOptionsPrefix(dm, "grid_"));
    PetscCall(DMSetFromOptions(dm));
    PetscCall(DMSetUp(dm));
    PetscCall(DMCreateMatrix(dm, &A));
    PetscCall(DMCreateGlobalVector(dm, &x));
    PetscCall(VecDuplicate(x, &y));
    PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, &R)); /* for its pattern, which is the grid's */
    PetscCall(FillLike(R, 12, A));
    PetscCall(RecordType(t, r, "type of the grid's matrix", A));
    for (int k = 0; k < 2; k++) {
      PetscCall(VecFill(x, 3));
      PetscCall(CreateVec(A, PETSC_TRUE, PETSC_TRUE, &b));
      PetscCall(ProductBounds(A, x, NULL, PETSC_FALSE, b));
      PetscCall(MatMult(A, x, y));
      PetscCall(RecordVec(r, "A x at row", y, b, 0));
      PetscCall(VecDestroy(&b));
      PetscCall(PetscSNPrintf(option, sizeof(option), "-grid_mat_type %s", t->type));
      PetscCall(PetscOptionsInsertString(NULL, option));
      PetscCall(MatSetOptionsPrefix(A, "grid_"));
      PetscCall(MatSetFromOptions(A)); /* must leave it as it is */
      PetscCall(RecordType(t, r, "type after MatSetFromOptions", A));
      PetscCall(MatScale(A, 2.));
    }
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
    PetscCall(DMDestroy(&dm));
    PetscCall(PetscOptionsClearValue(NULL, "-grid_mat_type"));
    PetscCall(PetscOptionsClearValue(NULL, "-grid_dm_mat_type"));
    PetscCall(PetscOptionsClearValue(NULL, "-grid_dm_vec_type"));
    if (t->device) {
      PetscBool model;

      PetscCall(PetscStrcmp(t->type, now.model, &model));
      if (model) break; /* does not accept host vectors */
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A product inside a CUDA graph, replayed with other numbers in x: it may neither wait for the device nor take memory. CUDA's
  default stream, which PETSc uses without -root_device_context_stream_type nonblocking, cannot be captured.
*/
static PetscErrorCode Graph(Test *t, Record *r)
{
  Mat A;
  Vec x, y, z, b;
#if defined(PETSC_HAVE_CUDA) && PETSC_VERSION_GE(3, 20, 0)
  cudaStream_t stream = NULL;
#endif

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(VecDuplicate(y, &b));
  PetscCall(VecFill(x, 1));
  PetscCall(MatMult(A, x, y));
  PetscCall(MatMultAdd(A, x, y, z));
#if defined(PETSC_HAVE_CUDA) && PETSC_VERSION_GE(3, 20, 0)
  if (t->device) PetscCall(PetscGetCurrentCUDAStream(&stream));
  if (stream) {
    cudaGraph_t     graph = NULL;
    cudaGraphExec_t exec;
    PetscErrorCode  ierr;
    cudaError_t     error;

    PetscCallCUDA(cudaStreamSynchronize(stream));
    PetscCallCUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ierr = MatMult(A, x, y);
    if (!ierr) ierr = MatMultAdd(A, x, y, z);
    error = cudaStreamEndCapture(stream, &graph);
    PetscCall(ierr);
    PetscCallCUDA(error);
    PetscCallCUDA(cudaGraphInstantiate(&exec, graph, 0));
    PetscCall(VecSet(y, PETSC_MAX_REAL));
    PetscCall(VecSet(z, PETSC_MAX_REAL));
    PetscCall(VecScale(x, 3.));             /* on the device, where the graph reads it */
    PetscCallCUDA(cudaDeviceSynchronize()); /* PETSc's operations on vectors need not run in this stream */
    PetscCallCUDA(cudaGraphLaunch(exec, stream));
    PetscCallCUDA(cudaDeviceSynchronize());
    PetscCallCUDA(cudaGraphExecDestroy(exec));
    PetscCallCUDA(cudaGraphDestroy(graph));
  } else
#endif
  {
    PetscCall(VecScale(x, 3.));
    PetscCall(MatMult(A, x, y));
    PetscCall(MatMultAdd(A, x, y, z));
  }
  PetscCall(ProductBounds(t->R, x, NULL, PETSC_FALSE, b));
  PetscCall(RecordVec(r, "A x at row", y, b, 0));
  { /* on the host: PETSc's own operations do not all keep to the order of a stream that does not block */
    const PetscScalar *ya;
    PetscScalar       *za;
    PetscInt           m;

    PetscCall(VecGetLocalSize(z, &m));
    PetscCall(VecGetArrayRead(y, &ya));
    PetscCall(VecGetArray(z, &za));
    for (PetscInt i = 0; i < m; i++) za[i] -= 2. * ya[i];
    PetscCall(VecRestoreArray(z, &za));
    PetscCall(VecRestoreArrayRead(y, &ya));
  }
  PetscCall(VecScale(b, 2.));
  PetscCall(RecordVec(r, "(y + A x) - 2 y at row", z, b, 0));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The device's free memory after many products, refreshes, new patterns, and matrices made and destroyed is that of before. Each
  step moves megabytes, so a leak shows as hundreds of them. Free memory is the whole device's: to be run alone
*/
static PetscErrorCode Memory(Test *t, Record *r)
{
  PetscFunctionBegin;
#if defined(PETSC_HAVE_CUDA)
  if (t->device) {
    const PetscInt n = 200000;
    PetscInt       rs, re;
    size_t         before = 0, after, total;
    Mat            A, B;
    Vec            x, y;

    for (int step = -3; step < 30; step++) {
      if (step == 0) {
        PetscCallCUDA(cudaDeviceSynchronize());
        PetscCallCUDA(cudaMemGetInfo(&before, &total));
      }
      PetscCall(MatCreate(t->comm, &A));
      PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, n, n));
      PetscCall(MatSetType(A, t->type));
      PetscCall(MatSeqAIJSetPreallocation(A, 8, NULL));
      PetscCall(MatMPIAIJSetPreallocation(A, 8, NULL, 8, NULL));
      PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
      PetscCall(MatGetOwnershipRange(A, &rs, &re));
      PetscCall(MatCreateVecs(A, &x, &y));
      PetscCall(VecSet(x, 1.));
      for (PetscInt change = 0; change < 2; change++) {
        if (change) PetscCall(MatResetPreallocation(A)); /* assembly has given away the room for another pattern */
        for (PetscInt i = rs; i < re; i++) {
          const PetscInt    cols[] = {i, (i + 1) % n, (i + 77 + change) % n, (i + 5000) % n};
          const PetscScalar vals[] = {4, -1, .5, .25};

          PetscCall(MatSetValues(A, 1, &i, 4, cols, vals, INSERT_VALUES));
        }
        PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
        PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
        for (int k = 0; k < 4; k++) {
          PetscCall(MatMult(A, x, y));
          PetscCall(MatMultAdd(A, x, y, y));
          PetscCall(MatMultTranspose(A, y, x));
          PetscCall(VecSet(x, 1.));
          PetscCall(MatScale(A, 1.01));
        }
      }
      PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
      PetscCall(MatMult(B, x, y));
      PetscCall(MatBindToCPU(B, PETSC_TRUE));
      PetscCall(MatMult(B, x, y));
      PetscCall(MatDestroy(&B));
      PetscCall(MatDestroy(&A));
      PetscCall(VecDestroy(&x));
      PetscCall(VecDestroy(&y));
    }
    PetscCallCUDA(cudaDeviceSynchronize());
    PetscCallCUDA(cudaMemGetInfo(&after, &total));
    PetscCall(PetscPrintf(t->comm, "%s: %.1f MB of device memory before, %.1f MB after 30 steps\n", t->type, (double)(total - before) / 1e6,
                          (double)(total - after) / 1e6));
    PetscCheck(after + ((size_t)64 << 20) > before, PETSC_COMM_SELF, PETSC_ERR_MEM, "%.1f MB of device memory were not freed",
               ((double)before - (double)after) / 1e6);
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Operation operations[] = {{"mixed", Mixed, NOCUDA},
                                       {"bind", Bind, FULL},
                                       {"bindbelow", BindBelow, FULL},
                                       {"bindsome", BindSome, ONCE | PAR | NOCUDA},
                                       {"coo", COO, FULL, "own"},
                                       {"coo-away", COO, FULL, "away"},
                                       {"coo-errors", COOErrors, FULL | SEQ},
                                       {"stale", Stale, FULL},
                                       {"diagonal", Diagonal, SOLVE},
                                       {"densecuda", Dense, FULL | DEVICE},
                                       {"ilu", Factor, SOLVE | SEQ | NOCUDA, "ilu"},
                                       {"icc", Factor, SPD | SEQ | NOCUDA, "icc"},
                                       {"lu", Factor, SOLVE | SEQ | NOCUDA, "lu"},
                                       {"repeat", Repeat, STRICT},
                                       {"grid", Grid, ONCE},
                                       {"graph", Graph, SEQ | FULL | STRICT},
                                       {"memory", Memory, ONCE | DEVICE | ALONE},
                                       {NULL, NULL, 0}};

int main(int argc, char **argv)
{
  return Suite(argc, argv, "device", operations, 0);
}
