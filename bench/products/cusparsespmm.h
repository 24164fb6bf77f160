/*
   cuSPARSE's products with dense matrices (SpMM) as baselines, with AIJCUSPARSE's CSR arrays, each algorithm with B and
   C by columns, as in PETSc, and by rows. B is copied to rows before the measurement.
*/
#pragma once

#include <petscmat.h>
#include "device.h"

#if defined(PETSC_HAVE_CUDA)

static const struct {
  const char       *name;
  cusparseSpMMAlg_t alg;
  cusparseOrder_t   order;
} SpMMProducts[] = {
    {"csr1", CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_ORDER_COL},
    {"csr2", CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_ORDER_COL},
    {"csr3", CUSPARSE_SPMM_CSR_ALG3, CUSPARSE_ORDER_COL},
    {"csr1-rows", CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_ORDER_ROW},
    {"csr2-rows", CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_ORDER_ROW},
    {"csr3-rows", CUSPARSE_SPMM_CSR_ALG3, CUSPARSE_ORDER_ROW},
};

typedef struct _n_SpMM *SpMM;
struct _n_SpMM {
  int                  product; /* index in SpMMProducts[] */
  PetscInt             m, n, columns;
  cusparseSpMatDescr_t A;
  cusparseDnMatDescr_t b, c;            /* of the current B and C; NULL before the first product with them */
  PetscScalar         *rows_b, *rows_c; /* B and C by rows */
  void                *buffer;
};

/* A is a sequential AIJCUSPARSE matrix and must outlive the result, which uses its arrays */
static PetscErrorCode SpMMCreate(Mat A, const char name[], SpMM *M)
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  MatInfo            info;
  PetscBool          same = PETSC_FALSE;
  SpMM               s;

  PetscFunctionBeginUser;
  PetscCall(CuSparseOpen());
  PetscCall(PetscNew(&s));
  for (s->product = 0; s->product < (int)PETSC_STATIC_ARRAY_LENGTH(SpMMProducts); s->product++) {
    PetscCall(PetscStrcmp(SpMMProducts[s->product].name, name, &same));
    if (same) break;
  }
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG,
             "-types: cusparse:%s is not one of cuSPARSE's products: cusparse:csr1 to csr3, and csr1-rows to csr3-rows",
             name);
  PetscCall(MatGetSize(A, &s->m, &s->n));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, &i, &j));
  PetscCall(MatSeqAIJCUSPARSEGetArrayRead(A, &a));
  PetscCallCUSPARSE(cusparseCreateCsr(&s->A, s->m, s->n, (int64_t)info.nz_used, (void *)i, (void *)j, (void *)a,
                                      CuSparseIndex, CuSparseIndex, CUSPARSE_INDEX_BASE_ZERO, CuSparseScalar));
  PetscCall(MatSeqAIJCUSPARSERestoreArrayRead(A, &a));
  PetscCall(MatSeqAIJCUSPARSERestoreIJ(A, PETSC_FALSE, &i, &j));
  *M = s;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies a dense matrix with `rows` rows from columns to rows, or back */
static PetscErrorCode SpMMTranspose(PetscInt rows, PetscInt columns, PetscScalar *by_columns, PetscInt ld,
                                    PetscScalar *by_rows, PetscBool back)
{
  const size_t one = sizeof(PetscScalar), row = (size_t)columns * one;

  PetscFunctionBeginUser;
  for (PetscInt q = 0; q < columns; q++) {
    PetscScalar *column = by_columns + (size_t)q * (size_t)ld;

    if (back)
      PetscCallCUDA(
          cudaMemcpy2DAsync(column, one, by_rows + q, row, one, (size_t)rows, cudaMemcpyDeviceToDevice, Device.stream));
    else
      PetscCallCUDA(
          cudaMemcpy2DAsync(by_rows + q, row, column, one, one, (size_t)rows, cudaMemcpyDeviceToDevice, Device.stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMMSetUp(SpMM s, PetscScalar *b, PetscInt ldb, PetscScalar *c, PetscInt ldc)
{
  const cusparseOrder_t   order = SpMMProducts[s->product].order;
  const cusparseSpMMAlg_t alg   = SpMMProducts[s->product].alg;
  const PetscBool         rows  = (PetscBool)(order == CUSPARSE_ORDER_ROW);
  cusparseStatus_t        status;
  size_t                  bytes;

  PetscFunctionBeginUser;
  /* NaN: AIJ's product has created C */
  PetscCallCUDA(cudaMemsetAsync(c, 0xff, (size_t)ldc * (size_t)s->columns * sizeof(*c), Device.stream));
  if (rows) {
    PetscCallCUDA(cudaMalloc((void **)&s->rows_b, (size_t)s->n * (size_t)s->columns * sizeof(*b)));
    PetscCallCUDA(cudaMalloc((void **)&s->rows_c, (size_t)s->m * (size_t)s->columns * sizeof(*c)));
    PetscCall(SpMMTranspose(s->n, s->columns, b, ldb, s->rows_b, PETSC_FALSE));
  }
  PetscCallCUSPARSE(cusparseCreateDnMat(&s->b, s->n, s->columns, rows ? s->columns : ldb, rows ? s->rows_b : b,
                                        CuSparseScalar, order));
  PetscCallCUSPARSE(cusparseCreateDnMat(&s->c, s->m, s->columns, rows ? s->columns : ldc, rows ? s->rows_c : c,
                                        CuSparseScalar, order));
  PetscCallCUSPARSE(cusparseSpMM_bufferSize(CuSparseHandle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                            CUSPARSE_OPERATION_NON_TRANSPOSE, &CuSparseOne, s->A, s->b, &CuSparseZero,
                                            s->c, CuSparseScalar, alg, &bytes));
  PetscCallCUDA(cudaMalloc(&s->buffer, PetscMax(bytes, 1)));
  status = cusparseSpMM_preprocess(CuSparseHandle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                   &CuSparseOne, s->A, s->b, &CuSparseZero, s->c, CuSparseScalar, alg, s->buffer);
  if (status != CUSPARSE_STATUS_NOT_SUPPORTED) PetscCallCUSPARSE(status); /* some algorithms have no preprocessing */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C = A B in MATDENSECUDA matrices, the same ones until SpMMReset(). A product by rows leaves C as it is: see
   SpMMGetResult() */
static PetscErrorCode SpMMMultiply(SpMM s, Mat B, Mat C)
{
  PetscScalar *b, *c;
  PetscInt     ldb, ldc;

  PetscFunctionBeginUser;
  PetscCall(MatDenseGetLDA(B, &ldb));
  PetscCall(MatDenseGetLDA(C, &ldc));
  PetscCall(MatDenseCUDAGetArrayRead(B, (const PetscScalar **)&b));
  PetscCall(MatDenseCUDAGetArrayWrite(C, &c));
  if (!s->b) {
    PetscCall(MatGetSize(B, NULL, &s->columns));
    PetscCall(SpMMSetUp(s, b, ldb, c, ldc));
  }
  PetscCallCUSPARSE(cusparseSpMM(CuSparseHandle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                 &CuSparseOne, s->A, s->b, &CuSparseZero, s->c, CuSparseScalar,
                                 SpMMProducts[s->product].alg, s->buffer));
  PetscCall(MatDenseCUDARestoreArrayWrite(C, &c));
  PetscCall(MatDenseCUDARestoreArrayRead(B, (const PetscScalar **)&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies a result by rows to C */
static PetscErrorCode SpMMGetResult(SpMM s, Mat C)
{
  PetscScalar *c;
  PetscInt     ldc;

  PetscFunctionBeginUser;
  if (!s->rows_c) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatDenseGetLDA(C, &ldc));
  PetscCall(MatDenseCUDAGetArrayWrite(C, &c));
  PetscCall(SpMMTranspose(s->m, s->columns, c, ldc, s->rows_c, PETSC_TRUE));
  PetscCall(MatDenseCUDARestoreArrayWrite(C, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Forgets B and C */
static PetscErrorCode SpMMReset(SpMM s)
{
  PetscFunctionBeginUser;
  if (s->b) PetscCallCUSPARSE(cusparseDestroyDnMat(s->b));
  if (s->c) PetscCallCUSPARSE(cusparseDestroyDnMat(s->c));
  PetscCallCUDA(cudaFree(s->rows_b));
  PetscCallCUDA(cudaFree(s->rows_c));
  PetscCallCUDA(cudaFree(s->buffer));
  s->b = s->c = NULL;
  s->rows_b = s->rows_c = NULL;
  s->buffer             = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMMDestroy(SpMM *s)
{
  PetscFunctionBeginUser;
  if (!*s) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMMReset(*s));
  PetscCallCUSPARSE(cusparseDestroySpMat((*s)->A));
  PetscCall(PetscFree(*s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#else

/* Without CUDA there is no such product */
typedef void *SpMM;

static PetscErrorCode SpMMCreate(Mat A, const char name[], SpMM *M)
{
  SETERRQ(PetscObjectComm((PetscObject)A), PETSC_ERR_SUP, "-types: cusparse:%s needs a PETSc with CUDA", name);
}
static PetscErrorCode SpMMMultiply(SpMM s, Mat B, Mat C)
{
  return PETSC_SUCCESS;
}
static PetscErrorCode SpMMGetResult(SpMM s, Mat C)
{
  return PETSC_SUCCESS;
}
static PetscErrorCode SpMMReset(SpMM s)
{
  return PETSC_SUCCESS;
}
static PetscErrorCode SpMMDestroy(SpMM *s)
{
  return PETSC_SUCCESS;
}
#endif
