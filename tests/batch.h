/* For tests/batch.c and tests/fuzzbatch.c: the arrays of a batch, and the same matrix as AIJ */
#pragma once

#include <petscksp.h>
#include <petscspmv.h>

#if !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

static const char *const kernels[] = {"auto",       "slices",    "sellp", "coo", "csr-scalar",
                                      "csr-vector", "csr-smart", "csr-i", "ell", "coo-atomic"};

typedef struct {
  PetscInt        problems, rows, *sizes, *i, *j; /* i and j of one problem if the pattern is shared */
  PetscScalar    *a;
  MatBatchSharing sharing;
  PetscInt64      values;
} Arrays;

static inline PetscErrorCode ArraysDestroy(Arrays *A)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree(A->sizes));
  PetscCall(PetscFree(A->i));
  PetscCall(PetscFree(A->j));
  PetscCall(PetscFree(A->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix as AIJ, and the matrix of the absolute values, for bounds: from the arrays, without the type batch */
static inline PetscErrorCode MakeAIJ(MPI_Comm comm, const Arrays *A, Mat *B, Mat *bound)
{
  PetscInt    *i, *j, shift, row = 0, at = 0, first = 0;
  PetscInt64   nz = A->sharing ? (PetscInt64)A->problems * A->i[A->sizes[0]] : (PetscInt64)A->i[A->rows];
  PetscScalar *v;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Scan(&A->rows, &shift, 1, MPIU_INT, MPI_SUM, comm));
  shift -= A->rows;
  PetscCall(PetscMalloc3(A->rows + 1, &i, (PetscInt)nz + 1, &j, (PetscInt)nz + 1, &v));
  i[0] = 0;
  for (PetscInt p = 0; p < A->problems; p++) {
    const PetscInt    *o = A->i + (A->sharing ? 0 : first), n = A->sizes[p];
    const PetscScalar *a = A->a + (A->sharing == MATBATCH_SHARE_PATTERN ? (PetscInt64)p * A->i[n] : 0);

    for (PetscInt r = 0; r < n; r++) {
      for (PetscInt k = o[r]; k < o[r + 1]; k++, at++) {
        j[at] = shift + first + A->j[k];
        v[at] = a[k];
      }
      i[++row] = at;
    }
    first += n;
  }
  for (int k = 0; k < (bound ? 2 : 1); k++) {
    Mat *M = k ? bound : B;

    PetscCall(MatCreate(comm, M));
    PetscCall(MatSetSizes(*M, A->rows, A->rows, PETSC_DETERMINE, PETSC_DETERMINE));
    PetscCall(MatSetType(*M, MATAIJ));
    for (PetscInt e = 0; k && e < at; e++) v[e] = PetscAbsScalar(v[e]);
    PetscCall(MatSeqAIJSetPreallocationCSR(*M, i, j, v));
    PetscCall(MatMPIAIJSetPreallocationCSR(*M, i, j, v));
  }
  PetscCall(PetscFree3(i, j, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode SetKernel(Mat A, const char *kernel)
{
  PetscOptions options;
  const char  *prefix;
  char         option[64];

  PetscFunctionBeginUser;
  PetscCall(MatGetOptionsPrefix(A, &prefix));
  PetscCall(PetscSNPrintf(option, sizeof(option), "-%smat_batch_kernel", prefix ? prefix : ""));
  PetscCall(PetscOptionsCreate(&options));
  PetscCall(PetscOptionsSetValue(options, option, kernel));
  PetscCall(PetscObjectSetOptions((PetscObject)A, options));
  PetscCall(MatSetFromOptions(A));
  PetscCall(PetscObjectSetOptions((PetscObject)A, NULL));
  PetscCall(PetscOptionsDestroy(&options));
  PetscFunctionReturn(PETSC_SUCCESS);
}
