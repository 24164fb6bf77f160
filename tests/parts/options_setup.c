/* -mat_spmv_setup_after: AIJ multiplies until enough products have been computed */
#include "options.h"
#include <pthread.h>
#if defined(__GLIBC__)
  #include <malloc.h>
#endif

/* A matrix of the type with this option; its products are counted from here on */
static PetscErrorCode MakeWaiting(Test *t, const char after[], Mat *A)
{
  static const char option[] = "-wait_mat_spmv_setup_after";

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, option, after));
  PetscCall(Make(t, A));
  PetscCall(MatSetOptionsPrefix(*A, "wait_"));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(PetscOptionsClearValue(NULL, option));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tests what a view says of A's format, on one rank of the host: the number of products that it needs (0: it is set up),
   and that there have been */
static PetscErrorCode ExpectWaiting(Test *t, Mat A, int needed, int asked, const char when[])
{
  char      text[64];
  PetscBool found;

  PetscFunctionBegin;
  if (t->aij || now.device || t->size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(
      PetscSNPrintf(text, sizeof(text), "AIJ's product until product %d (%d so far), then %s", needed, asked, t->type));
  PetscCall(ViewContains((PetscObject)A, PETSC_VIEWER_ASCII_INFO, needed ? text : "not yet set up", &found));
  PetscCheck(found == (PetscBool)(needed > 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s the view %s: %s", when,
             needed ? "lacks" : "has", needed ? text : "not yet set up");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(Test *t, Record *r, Mat A, PetscInt n)
{
  Vec x, y, z;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(x, &z));
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(VecFill(x, 3 + k));
    PetscCall(MatMult(A, x, y));
    PetscCall(RecordVec(r, "product", y, NULL, 100));
    PetscCall(MatMultTranspose(A, y, z));
    PetscCall(RecordVec(r, "transposed product", z, NULL, 400));
  }
  PetscCall(Destroy(&x, &y, &z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The products are right before the format is set up, when it is set up, and when values change after few or many
   products. Calls that need the format set it up */
PetscErrorCode SetUpAfter(Test *t, Record *r)
{
  Mat           A;
  PetscSpMVInfo info;

  PetscFunctionBegin;
  PetscCall(MakeWaiting(t, "6", &A));
  PetscCall(ExpectWaiting(t, A, 6, 0, "before the first product"));
  PetscCall(Products(t, r, A, 2));
  PetscCall(MatScale(A, 2.));
  PetscCall(ExpectWaiting(t, A, 6, 4, "after four products"));
  PetscCall(Products(t, r, A, 2));
  PetscCall(ExpectWaiting(t, A, 0, 0, "after eight products"));
  for (PetscInt n = 0; n < 3; n++) {
    PetscCall(MatScale(A, 3.));
    PetscCall(Products(t, r, A, n));
  }
  PetscCall(MatScale(A, .25));
  PetscCall(Products(t, r, A, 1));
  PetscCall(MatDestroy(&A));
  PetscCall(MakeWaiting(t, "1000000", &A));
  PetscCall(Products(t, r, A, 1));
  PetscCall(ExpectWaiting(t, A, 1000000, 2, "after few products"));
  if (!t->aij) PetscCall(PetscSpMVGetInfo(A, &info));
  PetscCall(ExpectWaiting(t, A, 0, 0, "after PetscSpMVGetInfo()"));
  PetscCall(Products(t, r, A, 1));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  One matrix is multiplied in several threads, which begin with its first product at the same time. Debug builds of
  PETSc have a global stack of functions, and so cannot
*/
#define THREADS  4
#define PRODUCTS 10
typedef struct {
  pthread_t          thread;
  pthread_barrier_t *begin;
  Mat                A;
  Vec                x, y[PRODUCTS]; /* A x, and A^T x every third time */
  PetscErrorCode     ierr;
} Worker;

static void *Work(void *ctx)
{
  Worker *w = (Worker *)ctx;

  pthread_barrier_wait(w->begin);
  for (int k = 0; k < PRODUCTS && !w->ierr; k++)
    w->ierr = (k % 3 == 2 ? MatMultTranspose : MatMult)(w->A, w->x, w->y[k]);
  return NULL;
}

static PetscErrorCode InThreads(Record *r, Mat A)
{
  pthread_barrier_t begin;
  Worker            worker[THREADS] = {{0}};

  PetscFunctionBegin;
  pthread_barrier_init(&begin, NULL, THREADS);
  for (int w = 0; w < THREADS; w++) {
    worker[w].A     = A;
    worker[w].begin = &begin;
    PetscCall(MatCreateVecs(A, &worker[w].x, NULL));
    PetscCall(VecFill(worker[w].x, w));
    for (int k = 0; k < PRODUCTS; k++) PetscCall(VecDuplicate(worker[w].x, &worker[w].y[k]));
  }
  for (int w = 0; w < THREADS; w++)
    PetscCheck(!pthread_create(&worker[w].thread, NULL, Work, &worker[w]), PETSC_COMM_SELF, PETSC_ERR_SYS, "no thread");
  for (int w = 0; w < THREADS; w++) pthread_join(worker[w].thread, NULL);
  for (int w = 0; w < THREADS; w++) {
    PetscCall(worker[w].ierr);
    for (int k = 0; k < PRODUCTS; k++) {
      PetscReal norm;

      PetscCall(VecNorm(worker[w].y[k], NORM_2, &norm));
      PetscCall(RecordReal(r, "norm of a product in a thread", norm, 1000));
      PetscCall(VecDestroy(&worker[w].y[k]));
    }
    PetscCall(VecDestroy(&worker[w].x));
  }
  pthread_barrier_destroy(&begin);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Threads(Test *t, Record *r)
{
  static const Case grid    = {"grid", 30000, 30000, 1, SQUARE | SPD, Row_Laplace};
  const char *const after[] = {"0", "-1", "12"};
  Test              own     = *t;
  Mat               A, B;

  PetscFunctionBegin;
  if (PetscDefined(USE_DEBUG) && !PetscDefined(HAVE_THREADSAFETY)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MakeRows(t->comm, &grid, &own.R));
  for (int k = 0; k < 3; k++) {
    PetscCall(MakeWaiting(&own, after[k], &A));
    for (int turn = 0; turn < 5; turn++) {
      PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
      PetscCall(InThreads(r, B));
      PetscCall(MatScale(B, 2.));
      PetscCall(InThreads(r, B));
      PetscCall(MatDestroy(&B));
    }
    PetscCall(MatDestroy(&A));
  }
  PetscCall(MatDestroy(&own.R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What a matrix that has not been multiplied takes in addition to AIJ's memory: programs keep tens of thousands of small
  matrices
*/
PetscErrorCode SmallMemory(Test *t, Record *r)
{
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(PETSC_USE_DEBUG) && !defined(PETSC_HAVE_CUDA)
  #if __GLIBC_PREREQ(2, 33)
  const size_t bytes = 2900, count = 200;
  size_t       used[2];
  Mat         *A;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(count, &A));
  for (int k = 0; k < 2; k++) {
    used[k] = mallinfo2().uordblks;
    for (size_t i = 0; i < count; i++) PetscCall(MakeLike(t->R, k ? now.under : MATAIJ, &A[i]));
    used[k] = mallinfo2().uordblks - used[k];
    for (size_t i = 0; i < count; i++) PetscCall(MatDestroy(&A[i]));
  }
  PetscCall(PetscFree(A));
  PetscCheck(used[1] < used[0] + bytes * count, PETSC_COMM_SELF, PETSC_ERR_PLIB,
             "a matrix takes %zu bytes more than AIJ", (used[1] - used[0]) / count);
  PetscFunctionReturn(PETSC_SUCCESS);
  #endif
#endif
  (void)t;
  (void)r;
  return PETSC_SUCCESS;
}
