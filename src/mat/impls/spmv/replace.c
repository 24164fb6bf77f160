/*
  The option -mat_spmv_replace, for programs that name a type of PETSc: matrices that such a program creates, sets or
  converts by that name get a format.

  The constructor of the type, and the functions that convert to it, are replaced by ones that call PETSc's. On a device
  our matrices have AIJCUSPARSE's names, so `aijcusparse` remains what the program has named, and what PETSc compares.
  There `aij` is not replaced: matrices of that type are on the host, where ours are not.
*/
#include "matspmv.h"

typedef enum { SPMV_REPLACE_NONE, SPMV_REPLACE_AIJ, SPMV_REPLACE_AIJCUSPARSE } SpMVReplaceType;
static const char *const SpMVReplaceTypes[] = {"none",          MATAIJ, MATAIJCUSPARSE, "SpMVReplaceType",
                                               "SPMV_REPLACE_", NULL};

static SpMVReplaceType   SpMVReplaced = SPMV_REPLACE_NONE;
static const SpMVFormat *SpMVReplaceFormat;
static PetscErrorCode (*MatCreate_AIJCUSPARSE_PETSc[2])(Mat); /* [MPI] */
static PetscErrorCode (*MatConvert_AIJ_AIJCUSPARSE_PETSc[2])(Mat, MatType, MatReuse, Mat *);

/* The matrix gets the format, unless the library itself needs one of PETSc's types. AIJCUSPARSE's factors are matrices
   of its type without entries */
static PetscErrorCode SpMVReplace(Mat A)
{
  PetscFunctionBegin;
  if (!SpMVHiddenDepth && !A->factortype) PetscCall(MatSpMVHook(A, SpMVReplaceFormat, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's functions set the operations of a matrix that is reused again */
static PetscErrorCode MatConvert_AIJ_AIJCUSPARSE_SpMV(Mat A, MatType type, MatReuse reuse, Mat *B)
{
  Mat_SpMV *spmv = NULL;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) PetscCall(MatSpMVGet(*B, &spmv));
  if (spmv)
    PetscCall(MatConvertFrom_SpMV(A, spmv->format->name, reuse, B));
  else {
    PetscCall((*MatConvert_AIJ_AIJCUSPARSE_PETSc[SpMVIsMPI(A)])(A, type, reuse, B));
    PetscCall(SpMVReplace(*B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreate_SeqAIJCUSPARSE_SpMV(Mat A)
{
  PetscFunctionBegin;
  PetscCall((*MatCreate_AIJCUSPARSE_PETSc[0])(A));
  PetscCall(SpMVReplace(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreate_MPIAIJCUSPARSE_SpMV(Mat A)
{
  PetscFunctionBegin;
  PetscCall((*MatCreate_AIJCUSPARSE_PETSc[1])(A));
  PetscCall(SpMVReplace(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const SpMVConversion[2] = {"MatConvert_seqaij_seqaijcusparse_C",
                                              "MatConvert_mpiaij_mpiaijcusparse_C"};

/* A is a new matrix of type seqaij or mpiaij, or of the type that -mat_seqaij_type has given it, which it keeps */
PetscErrorCode MatSpMVReplace_AIJ(Mat A, PetscBool mpi)
{
  PetscBool aij;

  PetscFunctionBegin;
  if (SpMVReplaced == SPMV_REPLACE_NONE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &aij, MATSEQAIJ, MATMPIAIJ, ""));
  if (!aij) PetscFunctionReturn(PETSC_SUCCESS);
  if (SpMVReplaced == SPMV_REPLACE_AIJ)
    PetscCall(SpMVReplace(A));
  else
    PetscCall(PetscObjectComposeFunction((PetscObject)A, SpMVConversion[mpi], MatConvert_AIJ_AIJCUSPARSE_SpMV));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The format that a matrix of the type has, NULL if the type is not replaced. A matrix that has a format keeps it if it
   is converted to the type, unless the library itself converts it */
PetscErrorCode SpMVReplaceFormatGet(MatType type, const SpMVFormat **format)
{
  const char *const names[] = {MATAIJ, MATSEQAIJ, MATMPIAIJ};
  PetscBool         same;

  PetscFunctionBegin;
  *format = NULL;
  if (SpMVReplaced != SPMV_REPLACE_AIJ || SpMVHiddenDepth) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 3; k++) {
    PetscCall(PetscStrcmp(type, names[k], &same));
    if (same) *format = SpMVReplaceFormat;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's factors are AIJ matrices, which do not multiply */
static PetscErrorCode (*MatGetFactor_PETSc)(Mat, MatFactorType, Mat *);

static PetscErrorCode MatGetFactor_AIJ_SpMV(Mat A, MatFactorType type, Mat *F)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  SpMVHiddenDepth++;
  ierr = (*MatGetFactor_PETSc)(A, type, F);
  SpMVHiddenDepth--;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVRegisterAIJ(void)
{
  const MatFactorType type[] = {MAT_FACTOR_LU, MAT_FACTOR_ILU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ICC};

  PetscFunctionBegin;
  for (int k = 0; k < 4; k++) {
    PetscErrorCode (*make)(Mat, MatFactorType, Mat *);

    PetscCall(MatSolverTypeGet(MATSOLVERPETSC, MATSEQAIJ, type[k], NULL, NULL, &make));
    if (make != MatGetFactor_AIJ_SpMV) MatGetFactor_PETSc = make; /* the same for all */
    PetscCall(MatSolverTypeRegister(MATSOLVERPETSC, MATSEQAIJ, type[k], MatGetFactor_AIJ_SpMV));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVRegisterAIJCUSPARSE(void)
{
  const MatType aij[2] = {MATSEQAIJ, MATMPIAIJ}, cusparse[2] = {MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE};

  PetscFunctionBegin;
  for (int mpi = 0; mpi < 2; mpi++) {
    Mat A;

    PetscCall(PetscFunctionListFind(MatList, cusparse[mpi], &MatCreate_AIJCUSPARSE_PETSc[mpi]));
    PetscCall(MatCreate(PETSC_COMM_SELF, &A));
    PetscCall(SpMVSetParentType(A, aij[mpi]));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, SpMVConversion[mpi], &MatConvert_AIJ_AIJCUSPARSE_PETSc[mpi]));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(MatRegister(MATSEQAIJCUSPARSE, MatCreate_SeqAIJCUSPARSE_SpMV));
  PetscCall(MatRegister(MATMPIAIJCUSPARSE, MatCreate_MPIAIJCUSPARSE_SpMV));
  PetscCall(SpMVSeqAIJReplace(MATSEQAIJCUSPARSE, MatConvert_AIJ_AIJCUSPARSE_SpMV));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reads the options; the last step of the registration */
PetscErrorCode SpMVRegisterReplaced(PetscBool device)
{
  SpMVReplaceType type = SPMV_REPLACE_NONE;
  const char     *names[16];
  PetscInt        format = 0;
  int             count  = 0;
  PetscBool       set;

  PetscFunctionBegin;
  SpMVReplaced = SPMV_REPLACE_NONE;
  for (; count < (int)PETSC_STATIC_ARRAY_LENGTH(names) && SpMVFormats[count]; count++)
    names[count] = SpMVFormats[count]->name;
  PetscCall(PetscOptionsGetEnum(NULL, NULL, "-mat_spmv_replace", SpMVReplaceTypes, (PetscEnum *)&type, NULL));
  PetscCall(PetscOptionsGetEList(NULL, NULL, "-mat_spmv_replace_format", names, count, &format, &set));
  SpMVReplaceFormat = SpMVFormats[format];
  if ((type == SPMV_REPLACE_AIJCUSPARSE && !device) || (type == SPMV_REPLACE_AIJ && device))
    PetscCall(PetscInfo(NULL, "-mat_spmv_replace %s does nothing: there is %s GPU that PETSc can use\n",
                        SpMVReplaceTypes[type], device ? "a" : "no"));
  else if (type != SPMV_REPLACE_NONE) {
    PetscCall(
        PetscInfo(NULL, "Matrices of type %s get the format %s\n", SpMVReplaceTypes[type], SpMVReplaceFormat->name));
    PetscCall(type == SPMV_REPLACE_AIJ ? SpMVRegisterAIJ() : SpMVRegisterAIJCUSPARSE());
    SpMVReplaced = type;
  } else if (set)
    PetscCall(PetscInfo(NULL, "-mat_spmv_replace_format does nothing without -mat_spmv_replace\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
