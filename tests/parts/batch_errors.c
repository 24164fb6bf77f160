/* Invalid arguments and unsupported operations: the error, its message, and a matrix that stays intact */
#include "batch.h"
#include "ranks.h"

/* Invalid arguments of MatCreateBatch(): the arrays of two problems, of 2 and 3 rows, with one error */
static const PetscInt two[2] = {2, 3}, two_i[6] = {0, 1, 3, 4, 5, 6}, two_j[6] = {0, 0, 1, 0, 1, 2};
static PetscScalar    two_a[6] = {1, 2, 3, 4, 5, 6};

static const PetscInt negative[2] = {2, -3}, huge[2] = {2000000000, 2000000000},
                      beyond[2] = {PETSC_MAX_INT, PETSC_MAX_INT}, decreasing[6] = {0, 1, 3, 2, 5, 6},
                      one[6] = {1, 1, 3, 4, 5, 6}, minus[6] = {-1, 1, 3, 4, 5, 6}, outside[6] = {0, 0, 1, 0, 1, 3},
                      below[6] = {0, 0, 1, 0, -1, 2}, unsorted[6] = {0, 1, 0, 0, 1, 2}, twice[6] = {0, 1, 1, 0, 1, 2};

static const struct {
  const char     *words; /* of the message */
  PetscErrorCode  code;
  PetscInt        problems;
  const PetscInt *sizes, *i, *j;
  PetscScalar    *a;
  int             sharing, mode; /* 0: MATBATCH_SHARE_NONE, PETSC_COPY_VALUES */
} creations[] = {
    {"Number of problems -1 is negative", PETSC_ERR_ARG_OUTOFRANGE, -1, two, two_i, two_j, two_a},
    {"problems on this process: at most", PETSC_ERR_ARG_OUTOFRANGE, PETSC_MAX_INT, two, two_i, two_j, two_a,
     MATBATCH_SHARE_PATTERN},
    {"Problem 1: its size -3 is negative", PETSC_ERR_ARG_OUTOFRANGE, 2, negative, two_i, two_j, two_a},
    {"4000000000 rows", PETSC_ERR_ARG_OUTOFRANGE, 2, huge, two_i, two_j, two_a},
    {"4294966000 rows", PETSC_ERR_ARG_OUTOFRANGE, 2147483000, two, two_i, two_j, two_a, MATBATCH_SHARE_PATTERN},
    {"rows of all problems", PETSC_ERR_ARG_OUTOFRANGE, 2, beyond, two_i, two_j, two_a},
    {"the array of sizes is NULL", PETSC_ERR_ARG_NULL, 2, NULL, two_i, two_j, two_a},
    {"the array of row offsets is NULL", PETSC_ERR_ARG_NULL, 2, two, NULL, two_j, two_a},
    {"the array of columns is NULL", PETSC_ERR_ARG_NULL, 2, two, two_i, NULL, two_a},
    {"the array of values is NULL", PETSC_ERR_ARG_NULL, 2, two, two_i, two_j, NULL},
    {"Problem 1, row 0: row offsets decrease", PETSC_ERR_ARG_OUTOFRANGE, 2, two, decreasing, two_j, two_a},
    {"Row offsets must begin with 0, not 1", PETSC_ERR_ARG_OUTOFRANGE, 2, two, one, two_j, two_a},
    {"Row offsets must begin with 0, not -1", PETSC_ERR_ARG_OUTOFRANGE, 2, two, minus, two_j, two_a,
     MATBATCH_SHARE_PATTERN},
    {"Problem 1, row 2: column 3", PETSC_ERR_ARG_OUTOFRANGE, 2, two, two_i, outside, two_a},
    {"Problem 1, row 1: column -1", PETSC_ERR_ARG_OUTOFRANGE, 2, two, two_i, below, two_a},
    {"columns must ascend, but 0 follows 1", PETSC_ERR_ARG_WRONG, 2, two, two_i, unsorted, two_a},
    {"columns must ascend, but 1 follows 1", PETSC_ERR_ARG_WRONG, 2, two, two_i, twice, two_a},
    {"7 is not a MatBatchSharing", PETSC_ERR_ARG_OUTOFRANGE, 2, two, two_i, two_j, two_a, 7},
    {"is not a MatBatchSharing", PETSC_ERR_ARG_OUTOFRANGE, 0, NULL, NULL, NULL, NULL, 2},
    {"3 is not a PetscCopyMode", PETSC_ERR_ARG_OUTOFRANGE, 2, two, two_i, two_j, two_a, MATBATCH_SHARE_NONE, 3},
    {"is not a PetscCopyMode", PETSC_ERR_ARG_OUTOFRANGE, 0, NULL, NULL, NULL, NULL, MATBATCH_SHARE_NONE, 99},
    /* the caller still owns these arrays, which are static */
    {"columns must ascend", PETSC_ERR_ARG_WRONG, 2, two, two_i, unsorted, two_a, MATBATCH_SHARE_NONE,
     PETSC_OWN_POINTER},
};

/* Tests each error on one rank, and on all ranks with invalid arguments only on the last one */
static PetscErrorCode BadCreations(void)
{
  PetscMPIInt rank, size;
  Mat         A;

  PetscFunctionBeginUser;
  now_case = "bad arguments of MatCreateBatch()";
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(creations); k++) {
#define Create(comm)                                                                                              \
  MatCreateBatch(comm, creations[k].problems, creations[k].sizes, creations[k].i, creations[k].j, creations[k].a, \
                 (MatBatchSharing)creations[k].sharing, (PetscCopyMode)creations[k].mode, &A)
    MustFail(Create(PETSC_COMM_SELF), creations[k].code, creations[k].words);
    if (size == 1) continue;
    if (rank == size - 1)
      MustFail(Create(PETSC_COMM_WORLD), creations[k].code, creations[k].words);
    else
      MustFail(MatCreateBatch(PETSC_COMM_WORLD, 2, two, two_i, two_j, two_a, MATBATCH_SHARE_NONE,
                              (PetscCopyMode)(k % 2 ? PETSC_COPY_VALUES : PETSC_USE_POINTER), &A),
               creations[k].code, "rank ");
#undef Create
  }
  for (int k = 0; k < 6; k++) Check(two_a[k] == (PetscScalar)(k + 1), "the arrays of refused calls are intact");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of two problems, of 2 and 3 rows, and matrices and vectors that do not match it */
typedef struct {
  Mat A, aij;
  Vec v, w, y, shorter;
} Victim;

static PetscErrorCode VictimCreate(Victim *c)
{
  PetscFunctionBeginUser;
  PetscCall(
      MatCreateBatch(PETSC_COMM_SELF, 2, two, two_i, two_j, two_a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, &c->A));
  PetscCall(MatConvert(c->A, MATAIJ, MAT_INITIAL_MATRIX, &c->aij));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, 5, &c->v));
  PetscCall(VecDuplicate(c->v, &c->w));
  PetscCall(VecDuplicate(c->v, &c->y));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, 4, &c->shorter));
  PetscCall(VecDraw(c->v));
  PetscCall(VecSet(c->shorter, 1.0));
  PetscCall(MatMult(c->A, c->v, c->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VictimDestroy(Victim *c)
{
  PetscFunctionBeginUser;
  PetscCall(Destroy(&c->A, &c->aij, &c->v, &c->w, &c->y, &c->shorter));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After a failed call the matrix still works, and has its former values */
static PetscErrorCode VictimIntact(Victim *c, const char *call)
{
  const PetscScalar *a;
  PetscBool          same;
  char               text[256];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(text, sizeof(text), "product after %s", call));
  PetscCall(VecSet(c->w, 77.0));
  PetscCall(MatMult(c->A, c->v, c->w));
  PetscCall(Same(c->w, c->y, text));
  PetscCall(MatBatchGetProblem(c->A, 0, NULL, NULL, NULL, &a));
  PetscCall(PetscArraycmp(a, two_a, 6, &same));
  Check(same, text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define Bad(call, code, words)         \
  do {                                 \
    MustFail(call, code, words);       \
    PetscCall(VictimIntact(c, #call)); \
  } while (0)

static PetscErrorCode BadCalls(Victim *c)
{
  MatBatchInfo info;

  PetscFunctionBeginUser;
  now_case = "bad arguments";
  Bad(MatMult(c->A, c->shorter, c->w), PETSC_ERR_ARG_SIZ, "");
  Bad(MatBatchSetValues(c->A, 2, two_a), PETSC_ERR_ARG_OUTOFRANGE, "Problem 2: this process has 2 problems");
  Bad(MatBatchSetValues(c->A, -2, two_a), PETSC_ERR_ARG_OUTOFRANGE, "Problem -2");
  Bad(MatBatchSetValues(c->A, PETSC_MIN_INT, two_a), PETSC_ERR_ARG_OUTOFRANGE, "numbered from 0");
  Bad(MatBatchSetValues(c->A, PETSC_MAX_INT, two_a), PETSC_ERR_ARG_OUTOFRANGE, "numbered from 0");
  Bad(MatBatchSetValues(c->A, 1, NULL), PETSC_ERR_ARG_NULL, "array of values is NULL");
  Bad(MatBatchSetValues(c->A, MATBATCH_ALL, NULL), PETSC_ERR_ARG_NULL, "array of values is NULL");
  Bad(MatBatchSetValues(c->aij, 0, two_a), PETSC_ERR_ARG_WRONG, "not batch");
  Bad(MatBatchGetProblem(c->A, -1, NULL, NULL, NULL, NULL), PETSC_ERR_ARG_OUTOFRANGE, "Problem -1");
  Bad(MatBatchGetProblem(c->A, 2, NULL, NULL, NULL, NULL), PETSC_ERR_ARG_OUTOFRANGE, "Problem 2");
  Bad(MatBatchGetProblem(c->aij, 0, NULL, NULL, NULL, NULL), PETSC_ERR_ARG_WRONG, "not batch");
  Bad(MatBatchGetInfo(c->aij, &info), PETSC_ERR_ARG_WRONG, "not batch");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of the type that has not been assembled, and a later assembly like that of any other type */
static PetscErrorCode Unmade(void)
{
  const PetscInt sizes[2] = {2, 3};
  MatBatchInfo   info;
  Mat            A;

  PetscFunctionBeginUser;
  now_case = "a matrix without problems";
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, 5, 5, 5, 5));
  PetscCall(MatSetType(A, MATBATCH));
  PetscCall(MatSetUp(A));
  MustFail(MatBatchSetValues(A, 0, two_a), PETSC_ERR_ARG_WRONGSTATE, "no problems yet");
  MustFail(MatBatchGetProblem(A, 0, NULL, NULL, NULL, NULL), PETSC_ERR_ARG_WRONGSTATE, "no problems yet");
  MustFail(MatBatchGetInfo(A, &info), PETSC_ERR_ARG_WRONGSTATE, "no problems yet");
  for (PetscInt r = 0; r < 5; r++) PetscCall(MatSetValue(A, r, r, 1.0, INSERT_VALUES));
  PetscCall(MatAssemble(A));
  PetscCall(MatBatchGetInfo(A, &info));
  Check(info.problems == 5, "the smallest blocks");
  PetscCall(MatSetVariableBlockSizes(A, 2, (PetscInt *)sizes));
  PetscCall(MatBatchGetInfo(A, &info));
  Check(info.problems == 2, "the blocks set later");
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetValue(A, 3, 4, 1.0, INSERT_VALUES));
  PetscCall(MatAssemble(A));
  PetscCall(MatBatchGetInfo(A, &info));
  Check(info.problems == 2 && info.largest == 3, "the blocks and a new entry");
  PetscCall(MatSetValue(A, 0, 4, 1.0, INSERT_VALUES));
  PetscCall(MatAssemble(A));
  MustFail(MatBatchGetInfo(A, &info), PETSC_ERR_ARG_WRONG, "The entry in row 0, column 4 is outside of the problems");
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The caller still owns arrays after an error of an option */
static PetscErrorCode BadOption(void)
{
  PetscInt    *i, *j;
  PetscScalar *a;
  Mat          A;

  PetscFunctionBeginUser;
  now_case = "an option out of range";
  PetscCall(PetscMalloc3(6, &i, 6, &j, 6, &a));
  PetscCall(PetscArraycpy(i, two_i, 6));
  PetscCall(PetscArraycpy(j, two_j, 6));
  PetscCall(PetscArraycpy(a, two_a, 6));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_spmv_node_size", "77"));
  MustFail(MatCreateBatch(PETSC_COMM_WORLD, 2, two, i, j, a, MATBATCH_SHARE_NONE, PETSC_OWN_POINTER, &A),
           PETSC_ERR_ARG_OUTOFRANGE, "mat_spmv_node_size is 77");
  PetscCall(PetscOptionsClearValue(NULL, "-mat_spmv_node_size"));
  Check(a[5] == 6.0 && i[5] == 6, "the arrays are intact");
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices that cannot be problems of a batch */
static PetscErrorCode BadMats(void)
{
  Mat         mats[2], A;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  now_case = "bad arguments of MatCreateBatchFromMats()";
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  MustFail(MatCreateBatchFromMats(PETSC_COMM_SELF, -1, mats, &A), PETSC_ERR_ARG_OUTOFRANGE,
           "Number of problems -1 is negative");
  MustFail(MatCreateBatchFromMats(PETSC_COMM_SELF, PETSC_MAX_INT, mats, &A), PETSC_ERR_ARG_OUTOFRANGE,
           "problems on this process: at most");
  MustFail(MatCreateBatchFromMats(PETSC_COMM_SELF, 1, NULL, &A), PETSC_ERR_ARG_NULL, "array of matrices is NULL");
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, 3, 3, 1, NULL, &mats[0]));
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, 2, 3, 1, NULL, &mats[1]));
  MustFail(MatCreateBatchFromMats(PETSC_COMM_SELF, 1, mats, &A), PETSC_ERR_ARG_WRONGSTATE, "unassembled");
  for (int k = 0; k < 2; k++) {
    PetscCall(MatAssemble(mats[k]));
  }
  MustFail(MatCreateBatchFromMats(PETSC_COMM_SELF, 2, mats, &A), PETSC_ERR_ARG_SIZ, "problems must be square");
  PetscCall(MatDestroy(&mats[1]));
  mats[1] = NULL;
  MustFail(MatCreateBatchFromMats(PETSC_COMM_SELF, 2, mats, &A), PETSC_ERR_ARG_NULL, "Problem 1 is NULL");
  PetscCall(MatCreateBatchFromMats(PETSC_COMM_SELF, 1, mats, &A));
  PetscCall(Destroy(&A, &mats[0]));
  if (size > 1) {
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, 1, 1, PETSC_DETERMINE, PETSC_DETERMINE, 1, NULL, 0, NULL, &mats[0]));
    MustFail(MatCreateBatchFromMats(PETSC_COMM_WORLD, 1, mats, &A), PETSC_ERR_ARG_WRONG,
             "processes: each process owns whole problems");
    PetscCall(MatDestroy(&mats[0]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries in columns of other ranks belong to no problem */
static PetscErrorCode BadColumns(void)
{
  MatBatchInfo info;
  PetscMPIInt  size;
  Mat          A;
  PetscInt     s, e;

  PetscFunctionBeginUser;
  now_case = "columns of other ranks";
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, 2, 2, PETSC_DETERMINE, PETSC_DETERMINE, 3, NULL, 3, NULL, &A));
  PetscCall(MatGetOwnershipRange(A, &s, &e));
  for (PetscInt r = s; r < e; r++) PetscCall(MatSetValue(A, r, (r + 2) % (2 * size), 1.0, INSERT_VALUES));
  PetscCall(MatAssemble(A));
  PetscCall(MatConvert(A, MATBATCH, MAT_INPLACE_MATRIX, &A));
  MustFail(MatBatchGetInfo(A, &info), PETSC_ERR_ARG_WRONG, "another process owns");
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatBatchSetValues() of one problem with the values of another, in the matrix's own array */
static PetscErrorCode OwnValues(void)
{
  const PetscScalar *a;
  Mat                A;
  PetscBool          same;

  PetscFunctionBeginUser;
  now_case = "values of the matrix itself";
  PetscCall(
      MatCreateBatch(PETSC_COMM_SELF, 2, two, two_i, two_j, two_a, MATBATCH_SHARE_PATTERN, PETSC_COPY_VALUES, &A));
  PetscCall(MatBatchGetProblem(A, 0, NULL, NULL, NULL, &a));
  PetscCall(MatBatchSetValues(A, 1, a));
  for (PetscInt p = 0; p < 2; p++) {
    PetscCall(MatBatchGetProblem(A, p, NULL, NULL, NULL, &a));
    PetscCall(PetscArraycmp(a, two_a, 3, &same));
    Check(same, "values");
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BadInput(void)
{
  Victim    victim;
  PetscBool dump;

  PetscFunctionBeginUser;
  PetscCall(BadCreations());
  PetscCall(PetscOptionsHasName(NULL, NULL, "-malloc_dump", &dump));
#if defined(__SANITIZE_ADDRESS__) /* which looks for leaks, too */
  dump = PETSC_TRUE;
#endif
  if (!dump) PetscCall(BadOption()); /* PETSc loses a string after the error */
  PetscCall(BadMats());
  PetscCall(VictimCreate(&victim));
  PetscCall(BadCalls(&victim));
  PetscCall(Unmade());
  PetscCall(BadColumns());
  PetscCall(VictimDestroy(&victim));
  PetscCall(OwnValues());
  PetscFunctionReturn(PETSC_SUCCESS);
}
