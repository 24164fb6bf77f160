/*
  A sequential matrix' copy in the format on the host, and its products.
*/
#include "matspmv.h"

/*
  AIJ keeps columns ascending; MatCreateSeqAIJWithArrays() lets others through. The formats store any order, but the estimates that choose them do not know
  what reading x in disorder costs
*/
static PetscBool SpMVCSRIsSorted(const SpMVCSR *csr)
{
  for (PetscInt r = 0; r < csr->m; r++) {
    for (PetscInt k = csr->i[r] + 1; k < csr->i[r + 1]; k++) {
      if (csr->j[k] <= csr->j[k - 1]) return PETSC_FALSE;
    }
  }
  return PETSC_TRUE;
}

/* A new layout for a new pattern */
static PetscErrorCode MatSpMVSetUpStore(Mat A, Mat_SpMV *spmv, const SpMVCSR *csr)
{
  PetscFunctionBegin;
  PetscCall(MatSpMVForgetHost(A, spmv));
  if (!A->structure_only && SpMVCSRIsSorted(csr)) PetscCall((*spmv->format->setup)(csr, spmv->params, &spmv->host.store));
  spmv->host.use_parent = (PetscBool)(!spmv->host.store || SpMVStoreUsesParent(spmv->host.store));
  MatSpMVUseParent(A, spmv, spmv->host.use_parent);
  spmv->host.nonzerorows = 0;
  for (PetscInt r = 0; r < csr->m; r++) spmv->host.nonzerorows += csr->i[r + 1] > csr->i[r];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSpMVFillStore(Mat A, Mat_SpMV *spmv, SpMVCSR *csr)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetArrayRead(A, &csr->a));
  ierr = SpMVStoreFill(spmv->host.store, csr);
  PetscCall(MatSeqAIJRestoreArrayRead(A, &csr->a));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Brings the block on the host in line with the matrix. After an error the matrix is as before its first product: the next one tries again */
PetscErrorCode MatSpMVUpdate_Host(Mat A, Mat_SpMV *spmv)
{
  SpMVCSR        csr;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (SpMVKeyIsCurrent(&spmv->host.key, A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVGetPattern(A, &csr));
  if ((!spmv->host.store && !spmv->host.use_parent) || !SpMVKeyHasPattern(&spmv->host.key, A, &csr)) {
    PetscCall(PetscLogEventBegin(MAT_SpMVSetUp, A, 0, 0, 0));
    ierr = MatSpMVSetUpStore(A, spmv, &csr);
    PetscCall(PetscLogEventEnd(MAT_SpMVSetUp, A, 0, 0, 0));
  }
  if (!ierr && !spmv->host.use_parent) {
    PetscCall(PetscLogEventBegin(MAT_SpMVFill, A, 0, 0, 0));
    ierr = MatSpMVFillStore(A, spmv, &csr);
    PetscCall(PetscLogEventEnd(MAT_SpMVFill, A, 0, 0, 0));
  }
  if (ierr)
    PetscCall(MatSpMVForgetHost(A, spmv));
  else
    SpMVKeySetPattern(&spmv->host.key, A, &csr);
  PetscCall(MatSpMVRestorePattern(A, &csr));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGetReadyAlone_Seq(Mat A)
{
  Mat_SpMV      *spmv;
  SpMVCSR        csr;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (SpMVKeyIsCurrent(&spmv->host.key, A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatSpMVUpdate_Host(A, spmv);
  PetscCall(PetscPopErrorHandler());
  if (ierr) {
    PetscCall(PetscInfo(A, "No memory for the %s format: AIJ's own product runs until the matrix changes\n", spmv->format->name));
    PetscCall(MatSpMVGetPattern(A, &csr));
    SpMVKeySetPattern(&spmv->host.key, A, &csr);
    spmv->host.key.i      = NULL; /* no pattern is this one: the next change sets the format up */
    spmv->host.use_parent = PETSC_TRUE;
    MatSpMVUseParent(A, spmv, PETSC_TRUE);
    PetscCall(MatSpMVRestorePattern(A, &csr));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGetStats_Host(Mat A, Mat_SpMV *spmv, SpMVStats *stats)
{
  PetscFunctionBegin;
  PetscCall(MatSpMVUpdate_Host(A, spmv));
  if (spmv->host.store)
    SpMVStoreGetStats(spmv->host.store, stats);
  else {
    PetscCall(PetscMemzero(stats, sizeof(*stats)));
    stats->node = 1;
  }
  if (spmv->host.use_parent) stats->kernel = "AIJ's own";
  stats->nonzeros = spmv->host.key.nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = z + A x with AIJ's arrays, or its transpose, where the format has nothing better */
static PetscErrorCode MatMultAdd_CSR(Mat A, SpMVOp op, const PetscScalar x[], const PetscScalar z[], PetscScalar y[])
{
  SpMVCSR csr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetPattern(A, &csr));
  PetscCall(MatSeqAIJGetArrayRead(A, &csr.a));
  if (op == SPMV_NORMAL) {
    for (PetscInt r = 0; r < csr.m; r++) {
      PetscScalar sum = z ? z[r] : 0.0;

      for (PetscInt k = csr.i[r]; k < csr.i[r + 1]; k++) sum += csr.a[k] * x[csr.j[k]];
      y[r] = sum;
    }
  } else {
    if (!z)
      PetscCall(PetscArrayzero(y, csr.n));
    else if (z != y)
      PetscCall(PetscArraycpy(y, z, csr.n));
    for (PetscInt r = 0; r < csr.m; r++) {
      for (PetscInt k = csr.i[r]; k < csr.i[r + 1]; k++) y[csr.j[k]] += x[r] * (op == SPMV_HERMITIAN ? PetscConj(csr.a[k]) : csr.a[k]);
    }
  }
  PetscCall(MatSeqAIJRestoreArrayRead(A, &csr.a));
  PetscCall(MatSpMVRestorePattern(A, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVApplyHost(Mat A, Mat_SpMV *spmv, SpMVOp op, const PetscScalar x[], const PetscScalar z[], PetscScalar y[])
{
  PetscFunctionBegin;
  PetscCall(MatSpMVUpdate_Host(A, spmv));
  if (spmv->host.use_parent || (op != SPMV_NORMAL && SpMVStoreTransposeUsesParent(spmv->host.store)))
    PetscCall(MatMultAdd_CSR(A, op, x, z, y));
  else if (op != SPMV_NORMAL)
    SpMVStoreMultTranspose(spmv->host.store, (PetscBool)(op == SPMV_HERMITIAN), x, z, y);
  else if (z)
    SpMVStoreMultAdd(spmv->host.store, x, z, y);
  else
    SpMVStoreMult(spmv->host.store, x, y);
  PetscCall(PetscLogFlops(2.0 * spmv->host.key.nz - (op == SPMV_NORMAL && !z ? spmv->host.nonzerorows : 0)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The parent's own product. AIJCUSPARSE's takes device vectors only. It adds what zz was to a transposed product when yy is another vector, and
  passes real numbers' Hermitian one on to a cuSPARSE that refuses it (PETSc 3.26).
*/
PetscErrorCode MatSpMVApplyParent(Mat A, Mat_SpMV *spmv, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  PetscFunctionBegin;
  if (op == SPMV_HERMITIAN && !PetscDefined(USE_COMPLEX)) op = SPMV_TRANSPOSE;
#if defined(PETSCSPMV_HAVE_CUDA)
  if (op != SPMV_NORMAL && yy && yy != zz) {
    PetscCall(SpMVVecCopyLocal(yy, zz));
    yy = zz;
  }
#endif
  if (op == SPMV_NORMAL) {
    if (yy)
      PetscCall((*spmv->parent.multadd)(A, xx, yy, zz));
    else
      PetscCall((*spmv->parent.mult)(A, xx, zz));
  } else if (op == SPMV_TRANSPOSE) {
    if (yy)
      PetscCall((*spmv->parent.multtransposeadd)(A, xx, yy, zz));
    else
      PetscCall((*spmv->parent.multtranspose)(A, xx, zz));
  } else {
    if (yy)
      PetscCall((*spmv->parent.multhermitiantransposeadd)(A, xx, yy, zz));
    else
      PetscCall((*spmv->parent.multhermitiantranspose)(A, xx, zz));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* zz = yy + op(A) xx with the host's format, wherever the vectors are; yy may be zz, and NULL for zero */
PetscErrorCode MatSpMVApplyHostVecs(Mat A, Mat_SpMV *spmv, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  SpMVOperands o;

  PetscFunctionBegin;
  PetscCall(SpMVOperandsBegin(SPMV_ON_HOST, xx, yy, zz, &o));
  PetscCall(MatSpMVApplyHost(A, spmv, op, o.x, o.y, o.z));
  PetscCall(SpMVOperandsEnd(&o));
  PetscFunctionReturn(PETSC_SUCCESS);
}
