/*
   cuSPARSE's products as baselines: CSR, COO, sliced ELL and BSR with their own arrays, and with the preprocessing that
   cuSPARSE offers; SpMVOp, whose kernels are made for a matrix. As for a matrix type, the first product includes the copies to the GPU and the analysis.
*/
#pragma once

#include "csr.h"
#include "device.h"

#if defined(PETSC_HAVE_CUDA)

typedef enum { CUSPARSE_CSR, CUSPARSE_COO, CUSPARSE_ELL, CUSPARSE_BSR, CUSPARSE_OP } CuSparseKind;

  #define CUSPARSE_HAS_OP (CUSPARSE_VERSION >= 12900)

static const struct {
  const char  *name, *viewed;
  CuSparseKind kind;
  int          alg; /* cusparseSpMVAlg_t or cusparseSpMVOpAlg_t */
} CuSparseProducts[] = {
    {"cusparse:csr1", "CSR ALG1", CUSPARSE_CSR, CUSPARSE_SPMV_CSR_ALG1},
    {"cusparse:csr2", "CSR ALG2", CUSPARSE_CSR, CUSPARSE_SPMV_CSR_ALG2},
    {"cusparse:coo1", "COO ALG1", CUSPARSE_COO, CUSPARSE_SPMV_COO_ALG1},
    {"cusparse:coo2", "COO ALG2", CUSPARSE_COO, CUSPARSE_SPMV_COO_ALG2},
  #if CUDART_VERSION >= 12010
    {"cusparse:sell", "sliced ELL", CUSPARSE_ELL, CUSPARSE_SPMV_SELL_ALG1},
  #endif
  #if CUDART_VERSION >= 13000
    {"cusparse:bsr", "BSR ALG1", CUSPARSE_BSR, CUSPARSE_SPMV_BSR_ALG1},
  #endif
  #if CUSPARSE_HAS_OP
    {"cusparse:op1", "SpMVOp ALG1", CUSPARSE_OP, CUSPARSE_SPMVOP_ALG1},
    {"cusparse:op2", "SpMVOp ALG2", CUSPARSE_OP, CUSPARSE_SPMVOP_ALG2},
  #endif
};

  #define CUSPARSE_SLICE 32 /* rows per slice */

typedef struct _n_CuSparseMatrix *CuSparseMatrix;
struct _n_CuSparseMatrix {
  int                  product; /* index in CuSparseProducts[] */
  PetscInt             block;   /* BSR: rows and columns of a block */
  Mat                  A;       /* borrowed, until the first product */
  PetscInt             m, n, nz, stored;
  double               bytes; /* of the format */
  void                *row, *col, *value, *buffer;
  cusparseSpMatDescr_t M;
  cusparseDnVecDescr_t x, y;
  #if CUSPARSE_HAS_OP
  cusparseSpMVOpDescr_t op;
  cusparseSpMVOpPlan_t  plan;
  #endif
};

/* The number of entries that sliced ELL stores for the first r rows, which is a multiple of the slice height or the
   number of all rows */
static PetscInt64 CuSparseStored(PetscInt r, const PetscInt i[])
{
  PetscInt64 stored = 0;

  for (PetscInt first = 0; first < r; first += CUSPARSE_SLICE) {
    PetscInt longest = 0;

    for (PetscInt k = first; k < PetscMin(r, first + CUSPARSE_SLICE); k++) longest = PetscMax(longest, i[k + 1] - i[k]);
    stored += (PetscInt64)CUSPARSE_SLICE * longest;
  }
  return stored;
}

/* The number of entries that BSR stores with s x s blocks, for all block rows or for every step-th */
static PetscErrorCode CuSparseBlocks(PetscInt m, PetscInt n, const PetscInt i[], const PetscInt j[], PetscInt s,
                                     PetscInt step, PetscInt64 *stored, PetscInt64 *entries)
{
  PetscInt *seen;

  PetscFunctionBeginUser;
  PetscCall(PetscCalloc1(n / s + 1, &seen));
  *stored = *entries = 0;
  for (PetscInt u = 0; u < m / s; u += step) {
    for (PetscInt k = i[u * s]; k < i[(u + 1) * s]; k++) {
      if (seen[j[k] / s] == u + 1) continue;
      seen[j[k] / s] = u + 1;
      *stored += s * s;
    }
    *entries += i[(u + 1) * s] - i[u * s];
  }
  PetscCall(PetscFree(seen));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest blocks, 8 x 8 at most, that store at most 1.3 times A's entries; 1: none */
static PetscErrorCode CuSparseBlockSize(PetscInt m, PetscInt n, const PetscInt i[], const PetscInt j[], PetscInt *block,
                                        PetscInt64 *stored)
{
  PetscInt64 entries = 0;

  PetscFunctionBeginUser;
  for (*block = 8; *block > 1; --*block) {
    if (m % *block || n % *block) continue;
    for (PetscInt step = m / *block / 1000 + 1;; step = 1) { /* a sample, then all */
      PetscCall(CuSparseBlocks(m, n, i, j, *block, step, stored, &entries));
      if (10 * *stored > 13 * entries) break;
      if (step == 1) PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A is a sequential AIJ matrix and must exist until the first product. Returns no matrix if the padding of sliced ELL
   or BSR is too large */
static PetscErrorCode CuSparseMatCreate(Mat A, const char *name, CuSparseMatrix *B)
{
  SpMVCSR        csr;
  PetscInt64     stored;
  PetscBool      is, fits = PETSC_TRUE;
  CuSparseMatrix b;

  PetscFunctionBeginUser;
  PetscCall(CuSparseOpen());
  PetscCall(PetscNew(&b));
  b->A       = A;
  b->product = -1;
  for (int k = 0; k < (int)PETSC_STATIC_ARRAY_LENGTH(CuSparseProducts); k++) {
    PetscCall(PetscStrcmp(name, CuSparseProducts[k].name, &is));
    if (is) b->product = k;
  }
  PetscCheck(b->product >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE,
             "%s is none of cuSPARSE's products here: csr1, csr2, coo1, coo2, sell, bsr, op1, op2", name);
  PetscCall(MatGetCSR(A, &csr));
  b->m   = csr.m;
  b->n   = csr.n;
  b->nz  = csr.i[csr.m];
  stored = CuSparseProducts[b->product].kind == CUSPARSE_ELL ? CuSparseStored(b->m, csr.i) : b->nz;
  if (CuSparseProducts[b->product].kind == CUSPARSE_BSR) {
    PetscCall(CuSparseBlockSize(b->m, b->n, csr.i, csr.j, &b->block, &stored));
    fits = (PetscBool)(b->block > 1);
  }
  PetscCall(MatRestoreCSR(A, &csr));
  if (!fits || stored > 5 * (PetscInt64)b->nz || stored > PETSC_MAX_INT) {
    PetscCall(PetscFree(b));
    b = NULL;
  } else
    b->stored = (PetscInt)stored;
  *B = b;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CuSparseCopy(const void *host, size_t bytes, void **device)
{
  PetscFunctionBeginUser;
  PetscCallCUDA(cudaMalloc(device, PetscMax(bytes, 1)));
  /* from pageable memory, which may be freed after this call */
  PetscCallCUDA(cudaMemcpyAsync(*device, host, bytes, cudaMemcpyHostToDevice, Device.stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CuSparseSetUpCSR(CuSparseMatrix b, const PetscInt i[], const PetscInt j[], const PetscScalar a[])
{
  PetscFunctionBeginUser;
  PetscCall(CuSparseCopy(i, ((size_t)b->m + 1) * sizeof(*i), &b->row));
  PetscCall(CuSparseCopy(j, (size_t)b->nz * sizeof(*j), &b->col));
  PetscCall(CuSparseCopy(a, (size_t)b->nz * sizeof(*a), &b->value));
  b->bytes = (double)b->nz * (sizeof(*a) + sizeof(*j)) + ((double)b->m + 1.0) * sizeof(*i);
  PetscCallCUSPARSE(cusparseCreateCsr(&b->M, b->m, b->n, b->nz, b->row, b->col, b->value, CuSparseIndex, CuSparseIndex,
                                      CUSPARSE_INDEX_BASE_ZERO, CuSparseScalar));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CuSparseSetUpCOO(CuSparseMatrix b, const PetscInt i[], const PetscInt j[], const PetscScalar a[])
{
  PetscInt *row;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(b->nz, &row));
  for (PetscInt r = 0; r < b->m; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) row[k] = r;
  }
  PetscCall(CuSparseCopy(row, (size_t)b->nz * sizeof(*row), &b->row));
  PetscCall(PetscFree(row));
  PetscCall(CuSparseCopy(j, (size_t)b->nz * sizeof(*j), &b->col));
  PetscCall(CuSparseCopy(a, (size_t)b->nz * sizeof(*a), &b->value));
  b->bytes = (double)b->nz * (sizeof(*a) + 2 * sizeof(*j));
  PetscCallCUSPARSE(cusparseCreateCoo(&b->M, b->m, b->n, b->nz, b->row, b->col, b->value, CuSparseIndex,
                                      CUSPARSE_INDEX_BASE_ZERO, CuSparseScalar));
  PetscFunctionReturn(PETSC_SUCCESS);
}

  #if CUDART_VERSION >= 12010
static PetscErrorCode CuSparseSetUpELL(CuSparseMatrix b, const PetscInt i[], const PetscInt j[], const PetscScalar a[])
{
  const PetscInt slices = (b->m + CUSPARSE_SLICE - 1) / CUSPARSE_SLICE;
  PetscInt      *offset, *col;
  PetscScalar   *value;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc3(slices + 1, &offset, b->stored, &col, b->stored, &value));
  offset[0] = 0;
  for (PetscInt s = 0; s < slices; s++) {
    const PetscInt first = s * CUSPARSE_SLICE, rows = PetscMin(b->m - first, CUSPARSE_SLICE);

    offset[s + 1] = offset[s] + (PetscInt)CuSparseStored(rows, i + first);
    for (PetscInt at = offset[s]; at < offset[s + 1]; at++) {
      const PetscInt lane   = (at - offset[s]) % CUSPARSE_SLICE,
                     k      = lane < rows ? i[first + lane] + (at - offset[s]) / CUSPARSE_SLICE : 0;
      const PetscBool entry = (PetscBool)(lane < rows && k < i[first + lane + 1]);

      col[at]   = entry ? j[k] : -1;
      value[at] = entry ? a[k] : 0.0;
    }
  }
  PetscCall(CuSparseCopy(offset, ((size_t)slices + 1) * sizeof(*offset), &b->row));
  PetscCall(CuSparseCopy(col, (size_t)b->stored * sizeof(*col), &b->col));
  PetscCall(CuSparseCopy(value, (size_t)b->stored * sizeof(*value), &b->value));
  PetscCall(PetscFree3(offset, col, value));
  b->bytes = (double)b->stored * (sizeof(*a) + sizeof(*j)) + ((double)slices + 1.0) * sizeof(*i);
  PetscCallCUSPARSE(cusparseCreateSlicedEll(&b->M, b->m, b->n, b->nz, b->stored, CUSPARSE_SLICE, b->row, b->col,
                                            b->value, CuSparseIndex, CuSparseIndex, CUSPARSE_INDEX_BASE_ZERO,
                                            CuSparseScalar));
  PetscFunctionReturn(PETSC_SUCCESS);
}
  #endif

  #if CUDART_VERSION >= 13000
static PetscErrorCode CuSparseSetUpBSR(CuSparseMatrix b, const PetscInt i[], const PetscInt j[], const PetscScalar a[])
{
  const PetscInt s = b->block, units = b->m / s;
  PetscInt      *row, *col, *place, blocks = 0;
  PetscScalar   *value;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc4(units + 1, &row, b->stored / (s * s), &col, b->n / s, &place, b->stored, &value));
  PetscCall(PetscArrayzero(value, b->stored));
  for (PetscInt c = 0; c < b->n / s; c++) place[c] = -1;
  row[0] = 0;
  for (PetscInt u = 0; u < units; u++) {
    for (PetscInt k = i[u * s]; k < i[(u + 1) * s]; k++) {
      if (place[j[k] / s] >= row[u]) continue;
      place[j[k] / s] = row[u];
      col[blocks++]   = j[k] / s;
    }
    PetscCall(PetscSortInt(blocks - row[u], col + row[u]));
    for (PetscInt q = row[u]; q < blocks; q++) place[col[q]] = q;
    for (PetscInt r = 0; r < s; r++) {
      for (PetscInt k = i[u * s + r]; k < i[u * s + r + 1]; k++)
        value[((size_t)place[j[k] / s] * s + r) * s + j[k] % s] += a[k];
    }
    row[u + 1] = blocks;
  }
  PetscCall(CuSparseCopy(row, ((size_t)units + 1) * sizeof(*row), &b->row));
  PetscCall(CuSparseCopy(col, (size_t)blocks * sizeof(*col), &b->col));
  PetscCall(CuSparseCopy(value, (size_t)b->stored * sizeof(*value), &b->value));
  PetscCall(PetscFree4(row, col, place, value));
  b->bytes = (double)b->stored * sizeof(*a) + ((double)blocks + (double)units + 1.0) * sizeof(*i);
  PetscCallCUSPARSE(cusparseCreateBsr(&b->M, units, b->n / s, blocks, s, s, b->row, b->col, b->value, CuSparseIndex,
                                      CuSparseIndex, CUSPARSE_INDEX_BASE_ZERO, CuSparseScalar, CUSPARSE_ORDER_ROW));
  PetscFunctionReturn(PETSC_SUCCESS);
}
  #endif

  #if CUSPARSE_HAS_OP
/* z = A x + y, with y and z the same vector */
static PetscErrorCode CuSparseSetUpOp(CuSparseMatrix b)
{
  const cusparseSpMVOpAlg_t alg = (cusparseSpMVOpAlg_t)CuSparseProducts[b->product].alg;
  size_t                    bytes;

  PetscFunctionBeginUser;
  PetscCallCUSPARSE(cusparseSpMVOp_bufferSize(CuSparseHandle, CUSPARSE_OPERATION_NON_TRANSPOSE, b->M, b->x, b->y, b->y,
                                              CuSparseScalar, alg, &bytes));
  PetscCallCUDA(cudaMalloc(&b->buffer, PetscMax(bytes, 1)));
  PetscCallCUSPARSE(cusparseSpMVOp_createDescr(CuSparseHandle, &b->op, CUSPARSE_OPERATION_NON_TRANSPOSE, b->M, b->x,
                                               b->y, b->y, CuSparseScalar, alg, b->buffer));
  PetscCallCUSPARSE(cusparseSpMVOp_createPlan(CuSparseHandle, b->op, &b->plan, NULL, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}
  #endif

static PetscErrorCode CuSparseSetUp(CuSparseMatrix b, void *x, void *y)
{
  const CuSparseKind      kind = CuSparseProducts[b->product].kind;
  const cusparseSpMVAlg_t alg  = (cusparseSpMVAlg_t)CuSparseProducts[b->product].alg;
  SpMVCSR                 csr;
  size_t                  bytes;

  PetscFunctionBeginUser;
  PetscCall(MatGetCSR(b->A, &csr));
  switch (kind) {
  case CUSPARSE_CSR:
  case CUSPARSE_OP: PetscCall(CuSparseSetUpCSR(b, csr.i, csr.j, csr.a)); break;
  case CUSPARSE_COO: PetscCall(CuSparseSetUpCOO(b, csr.i, csr.j, csr.a)); break;
  case CUSPARSE_ELL:
  #if CUDART_VERSION >= 12010
    PetscCall(CuSparseSetUpELL(b, csr.i, csr.j, csr.a));
  #endif
    break;
  case CUSPARSE_BSR:
  #if CUDART_VERSION >= 13000
    PetscCall(CuSparseSetUpBSR(b, csr.i, csr.j, csr.a));
  #endif
    break;
  }
  PetscCall(MatRestoreCSR(b->A, &csr));
  b->A = NULL;
  PetscCallCUSPARSE(cusparseCreateDnVec(&b->x, b->n, x, CuSparseScalar));
  PetscCallCUSPARSE(cusparseCreateDnVec(&b->y, b->m, y, CuSparseScalar));
  #if CUSPARSE_HAS_OP
  if (kind == CUSPARSE_OP) {
    PetscCall(CuSparseSetUpOp(b));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  #endif
  PetscCallCUSPARSE(cusparseSpMV_bufferSize(CuSparseHandle, CUSPARSE_OPERATION_NON_TRANSPOSE, &CuSparseOne, b->M, b->x,
                                            &CuSparseZero, b->y, CuSparseScalar, alg, &bytes));
  PetscCallCUDA(cudaMalloc(&b->buffer, PetscMax(bytes, 1)));
  #if CUDART_VERSION >= 12040
  {
    const cusparseStatus_t status =
        cusparseSpMV_preprocess(CuSparseHandle, CUSPARSE_OPERATION_NON_TRANSPOSE, &CuSparseOne, b->M, b->x,
                                &CuSparseZero, b->y, CuSparseScalar, alg, b->buffer);

    if (status != CUSPARSE_STATUS_NOT_SUPPORTED) PetscCallCUSPARSE(status); /* some formats have no preprocessing */
  }
  #endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CuSparseMatMult(CuSparseMatrix b, Vec xx, Vec yy)
{
  const PetscScalar *x;
  PetscScalar       *y;

  PetscFunctionBeginUser;
  PetscCall(VecCUDAGetArrayRead(xx, &x));
  PetscCall(VecCUDAGetArrayWrite(yy, &y));
  if (b->A) PetscCall(CuSparseSetUp(b, (void *)x, y));
  PetscCallCUSPARSE(cusparseDnVecSetValues(b->x, (void *)x));
  PetscCallCUSPARSE(cusparseDnVecSetValues(b->y, y));
  #if CUSPARSE_HAS_OP
  if (b->plan)
    PetscCallCUSPARSE(cusparseSpMVOp(CuSparseHandle, b->plan, &CuSparseOne, &CuSparseZero, b->x, b->y, b->y));
  else
  #endif
    PetscCallCUSPARSE(cusparseSpMV(CuSparseHandle, CUSPARSE_OPERATION_NON_TRANSPOSE, &CuSparseOne, b->M, b->x,
                                   &CuSparseZero, b->y, CuSparseScalar,
                                   (cusparseSpMVAlg_t)CuSparseProducts[b->product].alg, b->buffer));
  PetscCall(VecCUDARestoreArrayWrite(yy, &y));
  PetscCall(VecCUDARestoreArrayRead(xx, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CuSparseMatDestroy(CuSparseMatrix *B)
{
  CuSparseMatrix b = *B;

  PetscFunctionBeginUser;
  if (!b) PetscFunctionReturn(PETSC_SUCCESS);
  #if CUSPARSE_HAS_OP
  if (b->plan) PetscCallCUSPARSE(cusparseSpMVOp_destroyPlan(b->plan));
  if (b->op) PetscCallCUSPARSE(cusparseSpMVOp_destroyDescr(b->op));
  #endif
  if (b->M) PetscCallCUSPARSE(cusparseDestroySpMat(b->M));
  if (b->x) PetscCallCUSPARSE(cusparseDestroyDnVec(b->x));
  if (b->y) PetscCallCUSPARSE(cusparseDestroyDnVec(b->y));
  PetscCallCUDA(cudaFree(b->row));
  PetscCallCUDA(cudaFree(b->col));
  PetscCallCUDA(cudaFree(b->value));
  PetscCallCUDA(cudaFree(b->buffer));
  PetscCall(PetscFree(*B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
