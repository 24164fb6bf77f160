/* -mat_spmv_replace: the program names PETSc's type, and its matrices have the format */
#include "options.h"
#include <petscdmda.h>

/* On a device PETSc's type multiplies only vectors of CUDA: these are the host's */
static PetscErrorCode MultEqualOnHost(Mat A, Mat dense, PetscBool *equal)
{
  Vec       v[3]; /* x, A x, dense x */
  PetscReal norm[2];

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(dense, &v[0], &v[1]));
  PetscCall(VecDuplicate(v[1], &v[2]));
  PetscCall(VecSetRandom(v[0], NULL));
  PetscCall(MatMult(A, v[0], v[1]));
  PetscCall(MatMult(dense, v[0], v[2]));
  PetscCall(VecAXPY(v[1], -1, v[2]));
  for (int k = 0; k < 2; k++) PetscCall(VecNorm(v[k + 1], NORM_INFINITY, &norm[k]));
  *equal = (PetscBool)(norm[0] <= PETSC_SQRT_MACHINE_EPSILON * norm[1]);
  for (int k = 0; k < 3; k++) PetscCall(VecDestroy(&v[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A has the format, and multiplies as a dense matrix does */
static PetscErrorCode IsReplaced(Mat A, Mat dense, const char *format, const char *what)
{
  const char *has;
  PetscBool   same, equal = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(PetscSpMVGetFormat(A, &has));
  PetscCall(PetscStrcmp(has, format, &same));
  if (dense) PetscCall(MatMultEqual(A, dense, 3, &equal));
  if (dense && equal) PetscCall(MultEqualOnHost(A, dense, &equal));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s has the format %s instead of %s", what, has ? has : "none",
             format);
  PetscCheck(equal, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s has other entries", what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Conversions(Mat A, Mat dense, const char *type, const char *format)
{
  const char *other, *has;
  Mat         B, C;
  PetscBool   aij;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(format, "evchyb", &aij));
  other = aij ? "sellp" : "evchyb";
  PetscCall(MatConvert(dense, type, MAT_INITIAL_MATRIX, &C));
  PetscCall(IsReplaced(C, dense, format, "a new matrix from a dense matrix"));
  PetscCall(MatConvert(A, type, MAT_INITIAL_MATRIX, &B)); /* has A's pattern, zeros included */
  PetscCall(IsReplaced(B, dense, format, "a new matrix from one with the format"));
  PetscCall(MatScale(B, 2));
  PetscCall(MatConvert(A, type, MAT_REUSE_MATRIX, &B));
  PetscCall(IsReplaced(B, dense, format, "a reused matrix"));
  PetscCall(MatConvert(B, type, MAT_INPLACE_MATRIX, &B));
  PetscCall(IsReplaced(B, dense, format, "a matrix converted in place to what it is"));
  PetscCall(MatSetType(B, type));
  PetscCall(IsReplaced(B, dense, format, "a matrix whose type is set again"));
  PetscCall(MatDestroy(&C));
  PetscCall(MatConvert(B, MATBAIJ, MAT_INITIAL_MATRIX, &C));
  PetscCall(MatConvert(C, type, MAT_INPLACE_MATRIX, &C));
  PetscCall(IsReplaced(C, dense, format, "a matrix converted in place from BAIJ"));
  PetscCall(Destroy(&C, &B));
  PetscCall(MatConvert(A, other, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &C));
  PetscCall(IsReplaced(C, dense, other, "the duplicate of a matrix with another format"));
  PetscCall(Destroy(&C, &B));
  PetscCall(PetscStrcmp(type, MATAIJ, &aij));
  if (aij) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
  PetscCall(PetscSpMVGetFormat(B, &has));
  PetscCheck(!has, PETSC_COMM_SELF, PETSC_ERR_PLIB, "AIJ has the format %s", has);
  PetscCall(MatConvert(B, type, MAT_INITIAL_MATRIX, &C));
  PetscCall(IsReplaced(C, dense, format, "a new matrix from AIJ"));
  PetscCall(MatScale(C, 2));
  PetscCall(MatConvert(B, type, MAT_REUSE_MATRIX, &C));
  PetscCall(IsReplaced(C, dense, format, "a matrix that is reused for AIJ's entries"));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &C));
  PetscCall(MatSetType(C, type));
  PetscCall(MatSetOption(C, MAT_FORM_EXPLICIT_TRANSPOSE, PETSC_TRUE)); /* as MFEM does */
  PetscCall(IsReplaced(C, dense, format, "an assembled AIJ matrix whose type is set"));
  PetscCall(MatScale(C, 2));
  PetscCall(MatCopy(B, C, SAME_NONZERO_PATTERN)); /* as Firedrake does */
  PetscCall(IsReplaced(C, dense, format, "a matrix that got AIJ's values"));
  PetscCall(MatDestroy(&C));
  PetscCall(MatConvert(B, type, MAT_INPLACE_MATRIX, &B));
  PetscCall(IsReplaced(B, dense, format, "an AIJ matrix converted in place"));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc creates from such a matrix, and with functions that contain the name of the type */
static PetscErrorCode Creations(Test *t, Mat A, Mat dense, const char *type, const char *format)
{
  const PetscInt n = 7;
  const char    *has;
  Mat            B, C;
  DM             dm;
  PetscBool      aij;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(type, MATAIJ, &aij));
  for (int k = 0; t->size == 1 && k < 4; k++) {
    const MatFactorType factor[] = {MAT_FACTOR_LU, MAT_FACTOR_ILU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ICC};

    PetscCall(MatGetFactor(A, aij ? MATSOLVERPETSC : MATSOLVERCUSPARSE, factor[k], &B));
    PetscCall(PetscSpMVGetFormat(B, &has));
    PetscCheck(!has, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a factor (%s) has the format %s", MatFactorTypes[factor[k]],
               has);
    PetscCall(MatDestroy(&B));
  }
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(IsReplaced(B, dense, format, "a duplicate"));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(IsReplaced(C, NULL, format, "a product of matrices"));
  PetscCall(MatDestroy(&C));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &C));
  PetscCall(IsReplaced(C, NULL, format, "a transpose"));
  PetscCall(Destroy(&C, &B));
  PetscCall(DMDACreate1d(t->comm, DM_BOUNDARY_NONE, n * t->size, 1, 1, NULL, &dm));
  PetscCall(DMSetMatType(dm, type));
  PetscCall(DMSetUp(dm));
  PetscCall(DMCreateMatrix(dm, &B));
  PetscCall(IsReplaced(B, NULL, format, "the matrix of a DM"));
  PetscCall(Destroy(&B, &dm));
  PetscCall(MatCreate(t->comm, &B));
  PetscCall(MatSetSizes(B, n, n, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(PetscOptionsSetValue(NULL, "-replaced_mat_type", type));
  PetscCall(MatSetOptionsPrefix(B, "replaced_"));
  PetscCall(MatSetFromOptions(B));
  PetscCall(PetscOptionsClearValue(NULL, "-replaced_mat_type"));
  PetscCall(IsReplaced(B, NULL, format, "MatSetFromOptions()"));
  PetscCall(MatDestroy(&B));
#if defined(PETSC_HAVE_CUDA)
  if (now.device) {
    PetscCall(MatCreateSeqAIJCUSPARSE(PETSC_COMM_SELF, n, n, 1, NULL, &B));
    PetscCall(IsReplaced(B, NULL, format, "MatCreateSeqAIJCUSPARSE()"));
    PetscCall(MatDestroy(&B));
    PetscCall(MatCreateAIJCUSPARSE(t->comm, n, n, PETSC_DETERMINE, PETSC_DETERMINE, 1, NULL, 1, NULL, &B));
    PetscCall(IsReplaced(B, NULL, format, "MatCreateAIJCUSPARSE()"));
    PetscCall(MatDestroy(&B));
  }
#endif
  PetscCall(MatCreateAIJ(t->comm, n, n, PETSC_DETERMINE, PETSC_DETERMINE, 1, NULL, 1, NULL, &B));
  if (aij) PetscCall(IsReplaced(B, NULL, format, "MatCreateAIJ()"));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs with the options -mat_spmv_replace and -mat_spmv_replace_format only, which are read at registration */
PetscErrorCode Replace(Test *t, Record *r)
{
  char      type[32], format[32] = "sellp";
  PetscBool set;
  Mat       A, dense;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_spmv_replace", type, sizeof(type), &set));
  if (!set) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_spmv_replace_format", format, sizeof(format), NULL));
  PetscCall(CreateLike(t->R, type, &A));
  PetscCall(PreallocateLike(t->R, A));
  PetscCall(FillLike(t->R, -1, A));
  PetscCall(MatConvert(A, MATDENSE, MAT_INITIAL_MATRIX, &dense));
  PetscCall(IsReplaced(A, dense, format, "a matrix whose type is set"));
  PetscCall(Conversions(A, dense, type, format));
  PetscCall(Creations(t, A, dense, type, format));
  PetscCall(RecordInt(r, "replaced", 1));
  PetscCall(Destroy(&dense, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
