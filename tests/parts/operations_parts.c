/*
  Operations that create other matrices from a matrix, and files.
*/
#include "operations.h"
#include <unistd.h>

static PetscErrorCode ShellMult(Mat S, Vec x, Vec y)
{
  Mat A;

  PetscFunctionBegin;
  PetscCall(MatShellGetContext(S, &A));
  PetscCall(MatMult(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Conversion from a matrix that only has a product, as in MatComputeOperator() and MatConvert_Shell, and to such a
   matrix */
PetscErrorCode Shell(Test *t, Record *r)
{
  Mat      A, S, B;
  PetscInt m, n, M, N;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(MatCreateShell(t->comm, m, n, M, N, A, &S));
  PetscCall(MatShellSetOperation(S, MATOP_MULT, (void (*)(void))ShellMult));
  PetscCall(MatConvert(S, t->type, MAT_INITIAL_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the shell's conversion", B));
  PetscCall(Destroy(&B, &S));
  PetscCall(MatConvert(A, MATSHELL, MAT_INITIAL_MATRIX, &S));
  PetscCall(RecordMat(t, r, "type of the conversion to shell", S));
  PetscCall(Destroy(&S, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Transpose(Test *t, Record *r)
{
  Mat       A, B, C;
  PetscBool is;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the transpose", B));
  PetscCall(Touch(B));
  PetscCall(MatScale(A, 2.));
  PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the transpose reused", B));
  if (t->c->M == t->c->N) {
    PetscCall(MatIsTranspose(A, B, 1e-10, &is));
    PetscCall(RecordInt(r, "is transpose", is));
  }
  PetscCall(MatDestroy(&B));
  PetscCall(MatHermitianTranspose(A, MAT_INITIAL_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the Hermitian transpose", B));
  PetscCall(MatDestroy(&B));
  PetscCall(MatTranspose(A, MAT_INPLACE_MATRIX, &A));
  PetscCall(RecordMat(t, r, "type of the transpose in place", A));
  PetscCall(MatScale(A, 2.));
  PetscCall(RecordMat(t, r, "type of the transpose in place, scaled", A));
  PetscCall(MatTranspose(A, MAT_INPLACE_MATRIX, &A));
  PetscCall(RecordMat(t, r, "type of the transpose's transpose in place", A));
  PetscCall(FillLike(t->R, 6, A));
  PetscCall(RecordMat(t, r, "type of that with other values", A));
  if (t->size == 1) { /* several ranks: not in PETSc */
    PetscCall(MatTransposeSymbolic(A, &C));
    /* on a device it is AIJ, for products */
    if (!now.device) PetscCall(RecordType(t, r, "type of the symbolic transpose", C));
    PetscCall(MatDestroy(&C));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Permute(Test *t, Record *r)
{
  Mat       A, B;
  IS        rows, cols;
  PetscInt *p, m, n, rs, cs;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetOwnershipRange(A, &rs, NULL));
  PetscCall(MatGetOwnershipRangeColumn(A, &cs, NULL));
  PetscCall(PetscMalloc1(m + n, &p));
  for (PetscInt i = 0; i < m; i++) p[i] = rs + m - 1 - i;
  for (PetscInt i = 0; i < n; i++) p[m + i] = cs + (i + 1) % n;
  PetscCall(ISCreateGeneral(t->comm, m, p, PETSC_COPY_VALUES, &rows));
  PetscCall(ISCreateGeneral(t->comm, n, p + m, PETSC_COPY_VALUES, &cols));
  PetscCall(ISSetPermutation(rows));
  PetscCall(ISSetPermutation(cols));
  PetscCall(MatPermute(A, rows, cols, &B));
  PetscCall(RecordMat(t, r, "type of the permuted matrix", B));
  PetscCall(Destroy(&B, &rows, &cols));
  PetscCall(PetscFree(p));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SubMatrix(Test *t, Record *r)
{
  Mat      A, B, *C;
  IS       rows, cols, over[2];
  PetscInt m, n, M, N, rs, cs;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  PetscCall(MatSizes(A, &m, &n, &M, &N));
  PetscCall(MatGetOwnershipRange(A, &rs, NULL));
  PetscCall(MatGetOwnershipRangeColumn(A, &cs, NULL));
  for (int kind = 0; kind < 3; kind++) { /* every second; a contiguous part; all columns */
    PetscCall(ISCreateStride(t->comm, kind == 0 ? (m + 1) / 2 : m / 2, rs, kind == 0 ? 2 : 1, &rows));
    PetscCall(ISCreateStride(t->comm, kind == 0 ? (n + 1) / 2 : kind == 1 ? n / 2 : n, cs, kind == 0 ? 2 : 1, &cols));
    PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_INITIAL_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the submatrix", B));
    PetscCall(MatScale(A, 2.));
    PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_REUSE_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the submatrix reused", B));
    PetscCall(Destroy(&B, &rows, &cols));
  }
  /* a submatrix for each rank, with rows of other ranks, too */
  PetscCall(ISCreateStride(PETSC_COMM_SELF, (M + 1) / 2, 0, 2, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, (N + 2) / 3, 0, 3, &cols));
  PetscCall(MatCreateSubMatrices(A, 1, &rows, &cols, MAT_INITIAL_MATRIX, &C));
  PetscCall(RecordMat(t, r, "type of a matrix of MatCreateSubMatrices", C[0]));
  PetscCall(MatScale(A, 2.));
  PetscCall(MatCreateSubMatrices(A, 1, &rows, &cols, MAT_REUSE_MATRIX, &C));
  PetscCall(RecordMat(t, r, "type of a matrix of MatCreateSubMatrices reused", C[0]));
  PetscCall(MatDestroySubMatrices(1, &C));
  PetscCall(Destroy(&rows, &cols));
  /* all of it: a special case inside PETSc */
  PetscCall(ISCreateStride(PETSC_COMM_SELF, M, 0, 1, &rows));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, N, 0, 1, &cols));
  PetscCall(MatCreateSubMatrices(A, 1, &rows, &cols, MAT_INITIAL_MATRIX, &C));
  PetscCall(RecordMat(t, r, "type of the whole by MatCreateSubMatrices", C[0]));
  PetscCall(MatDestroySubMatrices(1, &C));
  PetscCall(Destroy(&rows, &cols));
  if (t->c->M == t->c->N) {
    PetscCall(ISCreateStride(PETSC_COMM_SELF, m / 2, rs, 1, &over[0]));
    PetscCall(ISCreateStride(PETSC_COMM_SELF, 1, 0, 1, &over[1]));
    PetscCall(MatIncreaseOverlap(A, 2, over, 2));
    for (int k = 0; k < 2; k++) {
      const PetscInt *idx;

      PetscCall(ISSort(over[k]));
      PetscCall(ISGetLocalSize(over[k], &m));
      PetscCall(ISGetIndices(over[k], &idx));
      for (PetscInt i = 0; i < m; i++) PetscCall(RecordAdd(r, "overlap", i, idx[i], 0, NULL));
      PetscCall(ISRestoreIndices(over[k], &idx));
      PetscCall(ISDestroy(&over[k]));
    }
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Pieces of the matrix that PETSc extracts for its own use */
PetscErrorCode Pieces(Test *t, Record *r)
{
  Mat      A, B = NULL, *S;
  PetscInt m, M, N;
  MPI_Comm sub;
  IS       is;

  PetscFunctionBegin;
  PetscCall(MakeTouched(t, &A));
  PetscCall(MatSizes(A, &m, NULL, &M, &N));
  for (int k = 0; k < 2 && t->size > 1; k++) {
    PetscCall(MatMPIAIJGetLocalMat(A, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the local matrix", B));
    PetscCall(MatScale(A, 2.));
  }
  PetscCall(MatDestroy(&B));
  /* MatAIJGetLocalMat() is not tested: it compares with the exact name MATMPIAIJ, and returns a matrix of any derived
     type unchanged */
  if (t->size > 1) {
    PetscCall(MatMPIAIJGetLocalMatMerge(A, MAT_INITIAL_MATRIX, &is, &B));
    PetscCall(RecordMat(t, r, "type of the merged local matrix", B));
    PetscCall(MatScale(A, 2.));
    PetscCall(ISDestroy(&is)); /* it creates an IS each time */
    PetscCall(MatMPIAIJGetLocalMatMerge(A, MAT_REUSE_MATRIX, &is, &B));
    PetscCall(RecordMat(t, r, "type of the merged local matrix", B));
    PetscCall(Destroy(&is, &B));
    PetscCall(MatGetSeqNonzeroStructure(A, &B));
    PetscCall(RecordType(t, r, "type of the sequential structure", B));
    PetscCall(MatDestroySeqNonzeroStructure(&B));
  }
  if (M == N) {
    PetscCallMPI(MPI_Comm_split(t->comm, t->rank % 2, t->rank, &sub));
    PetscCall(MatGetMultiProcBlock(A, sub, MAT_INITIAL_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the subcommunicator's block", B));
    PetscCall(MatScale(A, 2.));
    PetscCall(MatGetMultiProcBlock(A, sub, MAT_REUSE_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the subcommunicator's block", B));
    PetscCall(MatDestroy(&B));
    PetscCallMPI(MPI_Comm_free(&sub));
    PetscCall(MatCreateRedundantMatrix(A, t->size, MPI_COMM_NULL, MAT_INITIAL_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the redundant matrix", B));
    PetscCall(MatScale(A, 2.));
    PetscCall(MatCreateRedundantMatrix(A, t->size, MPI_COMM_NULL, MAT_REUSE_MATRIX, &B));
    PetscCall(RecordMat(t, r, "type of the redundant matrix", B));
    PetscCall(MatDestroy(&B));
  }
  /* and put together again */
  PetscCall(ISCreateStride(PETSC_COMM_SELF, M, 0, 1, &is));
  PetscCall(MatCreateSubMatrices(A, 1, &is, &is, MAT_INITIAL_MATRIX, &S));
  PetscCall(MatCreateMPIMatConcatenateSeqMat(t->comm, S[0], m, MAT_INITIAL_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the concatenation", B));
  PetscCall(MatScale(S[0], 2.));
  PetscCall(MatCreateMPIMatConcatenateSeqMat(t->comm, S[0], m, MAT_REUSE_MATRIX, &B));
  PetscCall(RecordMat(t, r, "type of the concatenation", B));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroySubMatrices(1, &S));
  PetscCall(Destroy(&is, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Tests(Test *t, Record *r)
{
  Mat       A, B;
  PetscBool is, known;

  PetscFunctionBegin;
  PetscCall(Make(t, &A));
  PetscCall(Make(t, &B));
  PetscCall(MatEqual(A, B, &is));
  PetscCall(RecordInt(r, "MatEqual", is));
  PetscCall(MatScale(B, 2.));
  PetscCall(MatEqual(A, B, &is));
  PetscCall(RecordInt(r, "MatEqual with another", is));
  if (t->c->M == t->c->N) {
    PetscCall(MatIsSymmetric(A, 1e-10, &is));
    PetscCall(RecordInt(r, "MatIsSymmetric", is));
    /* several ranks: not in PETSc 3.18. 3.21 to 3.23 reject every matrix */
    if (t->size == 1 && (PETSC_VERSION_LT(3, 21, 0) || PETSC_VERSION_GE(3, 24, 0))) {
      PetscCall(MatIsHermitian(A, 1e-10, &is));
      PetscCall(RecordInt(r, "MatIsHermitian", is));
    }
    PetscCall(MatIsSymmetricKnown(A, &known, &is));
    PetscCall(RecordInt(r, "known symmetric", known));
  }
  PetscCall(Destroy(&B, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A file name that the ranks agree on and that no other run uses */
static PetscErrorCode TempName(Test *t, char name[], size_t n)
{
  const char *dir = getenv("TMPDIR");
  int         pid = (int)getpid();

  PetscFunctionBegin;
  PetscCallMPI(MPI_Bcast(&pid, 1, MPI_INT, 0, t->comm));
  PetscCall(PetscSNPrintf(name, n, "%s/petscspmv-test-%d", dir ? dir : "/tmp", pid));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RemoveFile(Test *t, const char name[])
{
  char info[600];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Barrier(t->comm));
  PetscCall(PetscSNPrintf(info, sizeof(info), "%s.info", name));
  if (!t->rank) {
    (void)unlink(name);
    (void)unlink(info);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Binary(Test *t, Record *r)
{
  Mat         A, B;
  PetscViewer v;
  char        name[512];

  PetscFunctionBegin;
  PetscCall(TempName(t, name, sizeof(name)));
  PetscCall(MakeTouched(t, &A));
  PetscCall(PetscViewerBinaryOpen(t->comm, name, FILE_MODE_WRITE, &v));
  PetscCall(MatView(A, v));
  PetscCall(MatScale(A, 2.));
  PetscCall(MatView(A, v));
  PetscCall(PetscViewerDestroy(&v));
  PetscCall(PetscViewerBinaryOpen(t->comm, name, FILE_MODE_READ, &v));
  PetscCall(MatCreate(t->comm, &B));
  PetscCall(MatSetType(B, t->type));
  PetscCall(MatLoad(B, v));
  PetscCall(RecordMat(t, r, "type of the loaded matrix", B));
  PetscCall(MatLoad(B, v)); /* loads the second matrix into the first */
  PetscCall(RecordMat(t, r, "type of the matrix loaded again", B));
  PetscCall(Destroy(&B, &v));
  PetscCall(RemoveFile(t, name));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Text, line by line; lines that name the type differ, and the summary formats may print more */
PetscErrorCode Ascii(Test *t, Record *r)
{
  const PetscViewerFormat formats[] = {
      PETSC_VIEWER_DEFAULT,    PETSC_VIEWER_ASCII_MATLAB, PETSC_VIEWER_ASCII_COMMON,     PETSC_VIEWER_ASCII_DENSE,
      PETSC_VIEWER_ASCII_IMPL, PETSC_VIEWER_ASCII_INFO,   PETSC_VIEWER_ASCII_INFO_DETAIL};
  Mat         A;
  PetscViewer v;
  char        name[512], line[4096];

  PetscFunctionBegin;
  PetscCall(TempName(t, name, sizeof(name)));
  PetscCall(Make(t, &A));
  PetscCall(PetscObjectSetName((PetscObject)A, "A"));
  PetscCall(Touch(A));
  for (size_t k = 0; k < sizeof(formats) / sizeof(formats[0]); k++) {
    if (formats[k] == PETSC_VIEWER_ASCII_DENSE && t->size > 1) continue; /* not in PETSc */
    PetscCall(PetscViewerASCIIOpen(t->comm, name, &v));
    PetscCall(PetscViewerPushFormat(v, formats[k]));
    PetscCall(MatView(A, v));
    PetscCall(PetscViewerPopFormat(v));
    PetscCall(PetscViewerDestroy(&v));
    if (!t->rank) {
      FILE     *f = fopen(name, "r");
      PetscBool summary;
      PetscInt  lines = 0;
      char     *type, *named;

      PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "cannot read %s", name);
      summary = (PetscBool)(formats[k] == PETSC_VIEWER_ASCII_INFO || formats[k] == PETSC_VIEWER_ASCII_INFO_DETAIL);
      while (fgets(line, sizeof(line), f)) {
        PetscCall(PetscStrstr(line, "type:", &type));
        PetscCall(PetscStrstr(line, "aij", &named));
        lines++;
        if (!summary && !type && !named) PetscCall(RecordText(r, PetscViewerFormats[formats[k]], line));
      }
      if (summary) PetscCall(RecordInt(r, "anything in the summary", lines > 0));
      fclose(f);
    }
  }
  PetscCall(RemoveFile(t, name));
  PetscCall(RecordMat(t, r, "type after views", A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
