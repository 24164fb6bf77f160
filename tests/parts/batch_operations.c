/* Operations on batches, compared with those on AIJ */
#include "batch.h"
#include <unistd.h>

static PetscErrorCode SameMatrix(Mat A, Mat B, const char *what)
{
  Mat       C, D;
  PetscReal norm, off;
  PetscInt  n, N;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatGetSize(B, &N, NULL));
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &D));
  PetscCall(MatDuplicate(D, MAT_COPY_VALUES, &C)); /* without the block sizes, which MatAXPY() leaks */
  PetscCall(MatDestroy(&D));
  PetscCall(MatConvert(B, MATAIJ, MAT_INITIAL_MATRIX, &D));
  PetscCall(MatNorm(C, NORM_FROBENIUS, &norm));
  PetscCall(MatAXPY(C, -1.0, D, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatNorm(C, NORM_FROBENIUS, &off));
  Check(n == N && off <= 10 * PETSC_MACHINE_EPSILON * norm, what);
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameVec(Vec v, Vec w, const char *what)
{
  PetscReal norm, off;
  Vec       d;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(w, &d));
  PetscCall(VecCopy(v, d));
  PetscCall(VecNorm(w, NORM_INFINITY, &norm));
  PetscCall(VecAXPY(d, -1.0, w));
  PetscCall(VecNorm(d, NORM_INFINITY, &off));
  Check(off <= 100 * PETSC_MACHINE_EPSILON * norm, what);
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Options, prefix and name that were set before the matrix was filled must remain */
static PetscErrorCode IsKernel(Mat A, const char *kernel, const char *prefix, const char *name)
{
  MatBatchInfo info;
  const char  *p, *n;

  PetscFunctionBeginUser;
  PetscCall(MatBatchGetInfo(A, &info));
  PetscCall(MatGetOptionsPrefix(A, &p));
  PetscCall(PetscObjectGetName((PetscObject)A, &n));
  Check(!strcmp(info.kernel, kernel), "kernel set by the option");
  Check(p && !strcmp(p, prefix) && !strcmp(n, name), "prefix and name");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromAIJ(Mat B, const Arrays *a)
{
  Mat C;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(B, MATBATCH, MAT_INITIAL_MATRIX, &C));
  PetscCall(SameMatrix(C, B, "conversion from AIJ"));
  PetscCall(AllProducts(C, a, "converted from AIJ"));
  PetscCall(MatScale(B, 2.0));
  PetscCall(MatConvert(B, MATBATCH, MAT_REUSE_MATRIX, &C));
  PetscCall(SameMatrix(C, B, "conversion from AIJ again"));
  PetscCall(MatScale(B, 0.5));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix from AIJ stores the pattern once if all problems have the same pattern; A may not */
static PetscErrorCode FromAIJOtherSharing(Mat A, Mat B)
{
  Mat             C, D;
  PetscInt        nb;
  const PetscInt *bs;
  PetscBool       is;
  PetscReal       p;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, &C));
  PetscCall(MatGetVariableBlockSizes(A, &nb, &bs));
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &D));
  PetscCall(MatSetVariableBlockSizes(D, nb, (PetscInt *)bs));
  PetscCall(MatConvert(D, MATBATCH, MAT_REUSE_MATRIX, &C));
  PetscCall(SameMatrix(C, B, "conversion from AIJ with other sharing"));
  PetscCall(MatConvert(D, MATBATCH, MAT_INPLACE_MATRIX, &D));
  PetscCall(MatEqual(C, D, &is));
  Check(is, "MatEqual() of matrices with different sharing");
  PetscCall(MatAXPY(C, -1.0, D, SAME_NONZERO_PATTERN));
  PetscCall(MatNorm(C, NORM_1, &p));
  Check(p == 0.0, "MatAXPY() of matrices with different sharing");
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Conversions(Mat A, Mat B, const Arrays *a)
{
  Mat             C;
  PetscInt        nb, sum = 0;
  const PetscInt *bs;
  MatBatchInfo    info;

  PetscFunctionBeginUser;
  PetscCall(MatGetVariableBlockSizes(A, &nb, &bs));
  for (PetscInt k = 0; k < nb; k++) sum += bs[k];
  Check(sum == a->rows, "variable block sizes");
  if (nb || !a->rows) {
    PetscCall(MatSetVariableBlockSizes(B, nb, (PetscInt *)bs));
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &C));
    PetscCall(MatSetVariableBlockSizes(C, nb, (PetscInt *)bs));
    PetscCall(MatConvert(C, MATBATCH, MAT_INPLACE_MATRIX, &C));
    PetscCall(SameMatrix(C, B, "conversion in place"));
    PetscCall(MatBatchGetInfo(C, &info));
    Check(!nb || info.problems == nb, "the problems are the blocks given");
    PetscCall(MatConvert(C, MATAIJ, MAT_INPLACE_MATRIX, &C));
    PetscCall(SameMatrix(C, B, "conversion back in place"));
    PetscCall(MatDestroy(&C));
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(MatConvert(A, k ? MATSELLP : MATDENSE, MAT_INITIAL_MATRIX, &C));
    PetscCall(SameMatrix(C, B, k ? "conversion to sellp" : "conversion to dense"));
    PetscCall(MatDestroy(&C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numbers(Mat A, Mat B, const Arrays *a)
{
  const NormType norms[] = {NORM_1, NORM_FROBENIUS, NORM_INFINITY};
  PetscReal      p, q;
  MatInfo        ia, ib;
  MatBatchInfo   info;

  PetscFunctionBeginUser;
  for (int k = 0; k < 3; k++) {
    PetscCall(MatNorm(A, norms[k], &p));
    PetscCall(MatNorm(B, norms[k], &q));
    Check(PetscAbsReal(p - q) <= 100 * PETSC_MACHINE_EPSILON * q, "norm");
  }
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &ia));
  PetscCall(MatGetInfo(B, MAT_GLOBAL_SUM, &ib));
  Check(ia.nz_used == ib.nz_used, "nonzeros of MatGetInfo()");
  PetscCall(MatBatchGetInfo(A, &info));
  Check(info.problems == a->problems && info.kernel && info.kernel[0], "MatBatchGetInfo()");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Rows(Mat A, Mat B)
{
  PetscInt rs, re;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt row = rs; row < re; row += 1 + (re - rs) / 7) {
    PetscInt           n[2];
    const PetscInt    *cols[2];
    const PetscScalar *vals[2];
    PetscBool          same = PETSC_TRUE;

    PetscCall(MatGetRow(A, row, &n[0], &cols[0], &vals[0]));
    PetscCall(MatGetRow(B, row, &n[1], &cols[1], &vals[1]));
    for (PetscInt k = 0; k < n[0] && k < n[1]; k++)
      same = (PetscBool)(same && cols[0][k] == cols[1][k] && vals[0][k] == vals[1][k]);
    Check(n[0] == n[1] && same, "MatGetRow()");
    for (PetscInt k = 0; k < n[0]; k++) {
      PetscScalar v;

      PetscCall(MatGetValues(A, 1, &row, 1, cols[0] + k, &v));
      Check(v == vals[0][k], "MatGetValues()");
    }
    PetscCall(MatRestoreRow(B, row, &n[1], &cols[1], &vals[1]));
    PetscCall(MatRestoreRow(A, row, &n[0], &cols[0], &vals[0]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* l and r have the vector type of A, hl and hr that of B */
static PetscErrorCode Values(const Case *c, Mat A, Mat B, Vec l, Vec r, Vec hl, Vec hr)
{
  Mat       C, D;
  PetscBool is;
  PetscReal p;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &C));
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &D));
  PetscCall(MatEqual(A, C, &is));
  Check(is, "MatEqual()");
  PetscCall(MatDiagonalScale(C, l, r));
  PetscCall(MatDiagonalScale(D, hl, hr));
  PetscCall(SameMatrix(C, D, "MatDiagonalScale()"));
  PetscCall(MatAXPY(C, 3.0, A, SAME_NONZERO_PATTERN));
  PetscCall(MatAXPY(D, 3.0, B, SAME_NONZERO_PATTERN));
  PetscCall(SameMatrix(C, D, "MatAXPY()"));
  PetscCall(MatCopy(A, C, SAME_NONZERO_PATTERN));
  PetscCall(SameMatrix(C, B, "MatCopy()"));
  PetscCall(MatConjugate(C));
  PetscCall(MatCopy(B, D, SAME_NONZERO_PATTERN));
  PetscCall(MatConjugate(D));
  PetscCall(SameMatrix(C, D, "MatConjugate()"));
  if (!strcmp(c->kind, "dense") || !strcmp(c->kind, "band")) { /* all diagonal entries are there */
    PetscCall(MatCopy(A, C, SAME_NONZERO_PATTERN));
    PetscCall(MatCopy(B, D, SAME_NONZERO_PATTERN));
    PetscCall(MatShift(C, 0.5));
    PetscCall(MatShift(D, 0.5));
    PetscCall(SameMatrix(C, D, "MatShift()"));
    PetscCall(MatDiagonalSet(C, l, ADD_VALUES));
    PetscCall(MatDiagonalSet(D, hl, ADD_VALUES));
    PetscCall(SameMatrix(C, D, "MatDiagonalSet(), adding"));
    PetscCall(MatDiagonalSet(C, r, INSERT_VALUES));
    PetscCall(MatDiagonalSet(D, hr, INSERT_VALUES));
    PetscCall(SameMatrix(C, D, "MatDiagonalSet()"));
  }
  PetscCall(MatZeroEntries(C));
  PetscCall(MatNorm(C, NORM_1, &p));
  Check(p == 0.0, "MatZeroEntries()");
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transposes(Mat A, Mat B)
{
  Mat C, D;

  PetscFunctionBeginUser;
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &C));
  PetscCall(MatTranspose(B, MAT_INITIAL_MATRIX, &D));
  PetscCall(SameMatrix(C, D, "MatTranspose()"));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &C));
  PetscCall(MatScale(D, 2.0));
  PetscCall(SameMatrix(C, D, "MatTranspose() again"));
  PetscCall(MatScale(A, 0.5));
  PetscCall(MatScale(C, 0.5));
  PetscCall(MatTranspose(C, MAT_INPLACE_MATRIX, &C));
  PetscCall(SameMatrix(C, B, "MatTranspose() in place"));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Submatrices of the first half of the rows of each process */
static PetscErrorCode SubMatrices(Mat A, Mat B)
{
  Mat      C, D;
  IS       rows;
  PetscInt rs, re;

  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(ISCreateStride(PetscObjectComm((PetscObject)A), (re - rs) / 2, rs, 1, &rows));
  PetscCall(MatCreateSubMatrix(A, rows, rows, MAT_INITIAL_MATRIX, &C));
  PetscCall(MatCreateSubMatrix(B, rows, rows, MAT_INITIAL_MATRIX, &D));
  PetscCall(SameMatrix(C, D, "MatCreateSubMatrix()"));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscCall(ISDestroy(&rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Files(Mat A, Mat B)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  PetscMPIInt    rank, size;
  PetscInt       rs, re;
  PetscBool      is;
  Mat            C;
  PetscViewer    viewer;
  /* the first rank's process number, because this test may run several times at once */
  int  process = (int)getpid();
  char name[PETSC_MAX_PATH_LEN], tmp[PETSC_MAX_PATH_LEN];

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCallMPI(MPI_Bcast(&process, 1, MPI_INT, 0, comm));
  PetscCall(PetscGetTmp(comm, tmp, sizeof(tmp)));
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s/batch-test-%d", tmp, process));
  PetscCall(PetscViewerBinaryOpen(comm, name, FILE_MODE_WRITE, &viewer));
  PetscCall(MatView(A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(PetscViewerBinaryOpen(comm, name, FILE_MODE_READ, &viewer));
  PetscCall(MatCreate(comm, &C));
  /* whole problems on each */
  if (size > 1) PetscCall(MatSetSizes(C, re - rs, re - rs, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetOptionsPrefix(C, "loaded_"));
  PetscCall(PetscObjectSetName((PetscObject)C, "loaded"));
  PetscCall(MatSetType(C, MATBATCH));
  PetscCall(SetKernel(C, "ell"));
  PetscCall(MatLoad(C, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(SameMatrix(C, B, "MatView() and MatLoad()"));
  PetscCall(PetscViewerASCIIOpen(comm, "/dev/null", &viewer));
  /* PETSc adds the block sizes, including those of ranks without problems */
  PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO_DETAIL));
  PetscCall(MatView(A, viewer));
  PetscCall(PetscViewerPopFormat(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, MATBATCH, &is));
  Check(is, "type after MatLoad()");
  PetscCall(IsKernel(C, "ELL", "loaded_", "loaded"));
  PetscCall(MatDestroy(&C));
  if (!rank) (void)remove(name);
  (void)strcat(name, ".info");
  if (!rank) (void)remove(name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The option of the matrix that is converted in place */
static PetscErrorCode KernelOption(Mat B)
{
  Mat C;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsSetValue(NULL, "-converted_mat_batch_kernel", "coo"));
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &C));
  PetscCall(MatSetOptionsPrefix(C, "converted_"));
  PetscCall(PetscObjectSetName((PetscObject)C, "converted"));
  PetscCall(MatConvert(C, MATBATCH, MAT_INPLACE_MATRIX, &C));
  PetscCall(IsKernel(C, "COO", "converted_", "converted"));
  PetscCall(PetscOptionsClearValue(NULL, "-converted_mat_batch_kernel"));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Operations(const Case *c)
{
  MPI_Comm    comm = PETSC_COMM_WORLD;
  PetscMPIInt rank;
  Arrays      a;
  Mat         A, B;
  Vec         x, y, l, r, hl, hr;
  PetscBool   is;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  Reseed(100);
  PetscCall(ArraysCreate(c->kind, rank == 1 ? 0 : c->problems, c->least, c->most, c->sharing, &a));
  PetscCall(MakeAIJ(comm, &a, &B, NULL));
  PetscCall(MatCreateBatch(comm, a.problems, a.sizes, a.i, a.j, a.a, c->sharing, PETSC_COPY_VALUES, &A));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATBATCH, &is));
  Check(is, "type");
  PetscCall(SameMatrix(A, B, "conversion to AIJ"));
  PetscCall(FromAIJ(B, &a));
  /* only here MatConvert() finds the blocks of A */
  if (!strcmp(c->name, "1-x-1") || c->sharing) PetscCall(FromAIJOtherSharing(A, B));
  PetscCall(Conversions(A, B, &a));
  PetscCall(Numbers(A, B, &a));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(MatCreateVecs(B, &hr, &hl));
#if defined(PETSC_HAVE_CUDA)
  PetscCall(PetscObjectTypeCompareAny((PetscObject)x, &is, VECSEQCUDA, VECMPICUDA, ""));
  Check(is == device, "vectors of the device");
#endif
  PetscCall(MatGetDiagonal(A, x));
  PetscCall(MatGetDiagonal(B, hr));
  PetscCall(SameVec(x, hr, "diagonal"));
  PetscCall(VecDuplicate(x, &l));
  PetscCall(VecDuplicate(x, &r));
  PetscCall(VecFill(l));
  PetscCall(VecFill(r));
  PetscCall(VecCopy(l, hl));
  PetscCall(VecCopy(r, hr));
  PetscCall(Rows(A, B));
  PetscCall(Values(c, A, B, l, r, hl, hr));
  PetscCall(Transposes(A, B));
  PetscCall(SubMatrices(A, B));
  PetscCall(Files(A, B));
  PetscCall(KernelOption(B));
  PetscCall(MatScale(A, 3.0));
  PetscCall(MatScale(B, 3.0));
  PetscCall(SameMatrix(A, B, "MatScale()"));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&hl));
  PetscCall(VecDestroy(&hr));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(ArraysDestroy(&a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FromMats(void)
{
  Mat          mats[6], A, B;
  MatBatchInfo info;

  PetscFunctionBeginUser;
  now_case = "MatCreateBatchFromMats()";
  for (int twice = 0; twice < 2; twice++) { /* problems of different sizes, then with one pattern */
    for (PetscInt p = 0; p < 6; p++) {
      const PetscInt n = twice ? 7 : p;

      PetscCall(MatCreate(PETSC_COMM_SELF, &mats[p]));
      PetscCall(MatSetSizes(mats[p], n, n, n, n));
      PetscCall(MatSetType(mats[p], p == 3 ? MATDENSE : MATAIJ));
      PetscCall(MatSetUp(mats[p]));
      for (PetscInt r = 0; r < n; r++) {
        for (PetscInt c = 0; c < n; c++) {
          if (p == 3 && twice ? PETSC_TRUE : (r + c) % 2 == 0 || twice)
            PetscCall(MatSetValue(mats[p], r, c, 5.0 + RandomNumber(), INSERT_VALUES));
        }
      }
      PetscCall(MatAssemblyBegin(mats[p], MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(mats[p], MAT_FINAL_ASSEMBLY));
    }
    PetscCall(MatCreateBatchFromMats(PETSC_COMM_WORLD, 6, mats, &A));
    PetscCall(MatBatchGetInfo(A, &info));
    Check(info.problems == 6 && info.smallest == (twice ? 7 : 0) && info.largest == (twice ? 7 : 5), "sizes");
    Check(info.sharing == (twice ? MATBATCH_SHARE_PATTERN : MATBATCH_SHARE_NONE), "a common pattern is stored once");
    for (PetscInt p = 0; p < 6; p++) {
      PetscInt           n;
      const PetscInt    *i, *j;
      const PetscScalar *a;
      PetscBool          same = PETSC_TRUE;

      PetscCall(MatBatchGetProblem(A, p, &n, &i, &j, &a));
      for (PetscInt r = 0; r < n; r++) {
        for (PetscInt k = i[r]; k < i[r + 1]; k++) {
          PetscScalar v;

          PetscCall(MatGetValues(mats[p], 1, &r, 1, j + k, &v));
          same = (PetscBool)(same && v == a[k]);
        }
      }
      Check(same && n == (twice ? 7 : p), "MatBatchGetProblem()");
    }
    PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
    PetscCall(SameMatrix(A, B, "as AIJ"));
    PetscCall(MatDestroy(&A));
    if (twice) {
      PetscInt bs;

      PetscCall(MatSetBlockSize(B, 7));
      PetscCall(MatConvert(B, MATBATCH, MAT_INITIAL_MATRIX, &A));
      PetscCall(MatGetBlockSize(A, &bs));
      Check(bs == 7, "block size");
      PetscCall(MatDestroy(&A));
    }
    PetscCall(MatDestroy(&B));
    for (PetscInt p = 0; p < 6; p++) PetscCall(MatDestroy(&mats[p]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
