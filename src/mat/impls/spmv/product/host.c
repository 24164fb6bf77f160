/*
  The copy of a sequential matrix on the host, in its format, and the products with it.
*/
#include "mat/impls/spmv/matspmv.h"

/*
  AIJ sorts the columns of each row, but MatCreateSeqAIJWithArrays() accepts unsorted ones. The formats can store any
  order, but the cost estimates do not include the cost of reading x out of order.
*/
static PetscBool SpMVCSRIsSorted(const SpMVCSR *csr)
{
  const PetscInt *i = csr->i, *j = csr->j;
  /* places where the column index does not increase: all of them, and those where a row begins */
  PetscInt all = 0, between = 0;

  for (PetscInt k = 1; k < i[csr->m]; k++) all += j[k] <= j[k - 1];
  for (PetscInt r = 1; r < csr->m; r++)
    if (i[r] > 0 && i[r] < i[r + 1]) between += j[i[r]] <= j[i[r] - 1];
  return all == between ? PETSC_TRUE : PETSC_FALSE;
}

/* Lays out a new pattern */
static PetscErrorCode MatSpMVSetUpStore_Seq(Mat A, Mat_SpMV *spmv, const SpMVCSR *csr)
{
  PetscFunctionBegin;
  PetscCall(MatSpMVForgetHost_Seq(A, spmv));
  if (!A->structure_only && SpMVCSRIsSorted(csr))
    PetscCall((*spmv->format->setup)(csr, spmv->params, &spmv->host.store));
  spmv->host.use_parent = (PetscBool)(!spmv->host.store || SpMVStoreUsesParent(spmv->host.store));
  MatSpMVUseParent_Seq(A, spmv, spmv->host.use_parent);
  spmv->host.nonzerorows = SpMVCSRNonzeroRows(csr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The caller has the lock. After an error there is no copy, as before the first product: the next product tries again
*/
static PetscErrorCode MatSpMVUpdateHostLocked_Seq(Mat A, Mat_SpMV *spmv)
{
  SpMVCSR        csr;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (SpMVKeyIsCurrent(&spmv->host.key, A)) PetscFunctionReturn(PETSC_SUCCESS); /* another thread was first */
  PetscCall(MatSpMVGetPattern_Seq(A, &csr));
  if ((!spmv->host.store && !spmv->host.use_parent) || !SpMVKeyHasPattern(&spmv->host.key, A, &csr)) {
    PetscCall(PetscLogEventBegin(MAT_SpMVSetUp, A, 0, 0, 0));
    ierr = MatSpMVSetUpStore_Seq(A, spmv, &csr);
    PetscCall(PetscLogEventEnd(MAT_SpMVSetUp, A, 0, 0, 0));
  }
  if (!ierr && !spmv->host.use_parent) {
    PetscCall(PetscLogEventBegin(MAT_SpMVFill, A, 0, 0, 0));
    PetscCall(MatSeqAIJGetArrayRead(A, &csr.a));
    ierr = SpMVStoreFill(spmv->host.store, &csr);
    PetscCall(MatSeqAIJRestoreArrayRead(A, &csr.a));
    PetscCall(PetscLogEventEnd(MAT_SpMVFill, A, 0, 0, 0));
  }
  if (ierr)
    PetscCall(MatSpMVForgetHost_Seq(A, spmv));
  else
    SpMVKeySetPattern(&spmv->host.key, A, &csr);
  PetscCall(MatSpMVRestorePattern_Seq(A, &csr));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Begins to count the products with new values or a new pattern */
static PetscErrorCode MatSpMVCount_Seq(Mat A, Mat_SpMV *spmv)
{
  const SpMVCommonParams *params = (const SpMVCommonParams *)spmv->params;
  SpMVAsked              *asked  = &spmv->host.asked;

  PetscFunctionBegin;
  if (SpMVKeyIsCurrent(&asked->key, A)) PetscFunctionReturn(PETSC_SUCCESS);
  if (!SpMVKeyHasNonzeroState(&asked->key, A)) {
    SpMVCSR csr;

    PetscCall(MatSpMVGetPattern_Seq(A, &csr));
    asked->pattern = asked->values = 0;
    asked->needed                  = params->after;
    if (params->after < 0)
      asked->needed = params->kernel == SPMV_KERNEL_AUTO ? SpMVSetUpProducts(csr.m, csr.i[csr.m]) : 0;
    asked->most = PetscMax(asked->needed, SpMVRefreshProducts());
    PetscCall(MatSpMVRestorePattern_Seq(A, &csr));
  }
  asked->values_before = asked->values;
  asked->values        = 0;
  SpMVKeySet(&asked->key, A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Setting the format up, and copying values to it, take as long as some products by AIJ. Until as many have been asked
  for, AIJ multiplies: whatever the number of products will be, they take about twice the time of the better choice at
  most, or somewhat more where the set-up takes longer than estimated. Products are counted, not timed, so that each run
  does the same. Values are copied at once if there were enough products with those before.
*/
static PetscBool MatSpMVIsDue_Seq(Mat A, const Mat_SpMV *spmv)
{
  const SpMVAsked *asked = &spmv->host.asked;

  if (SpMVKeyHasNonzeroState(&spmv->host.key, A)) {
    const PetscInt64 values = SpMVAtomicGet(&asked->values);

    return (PetscBool)(PetscMax(values, asked->values_before) >= PetscMin(asked->needed, SpMVRefreshProducts()));
  }
  return (PetscBool)(SpMVAtomicGet(&asked->pattern) >= asked->needed);
}

/* The format waits: nothing has changed since the product before, and there have not been enough products yet */
static PetscBool MatSpMVWaits_Seq(Mat A, const Mat_SpMV *spmv)
{
  return (PetscBool)(!spmv->device && SpMVKeyIsCurrent(&spmv->host.asked.key, A) && !MatSpMVIsDue_Seq(A, spmv));
}

/*
  Several threads may compute the first products of a matrix, or the first ones after a change. They take turns here;
  later products take no lock
*/
PetscErrorCode MatSpMVUpdateHost_Seq(Mat A, Mat_SpMV *spmv, PetscBool setup, PetscBool *current)
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  *current = SpMVKeyIsCurrent(&spmv->host.key, A);
  if (*current || (!setup && MatSpMVWaits_Seq(A, spmv))) PetscFunctionReturn(PETSC_SUCCESS);
  (void)pthread_mutex_lock(&spmv->host.lock);
  if (!spmv->device) ierr = MatSpMVCount_Seq(A, spmv);
  *current = (PetscBool)(setup || spmv->device || MatSpMVIsDue_Seq(A, spmv));
  if (!ierr && *current) ierr = MatSpMVUpdateHostLocked_Seq(A, spmv);
  (void)pthread_mutex_unlock(&spmv->host.lock);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVUpdateHostOrUseParent_Seq(Mat A)
{
  Mat_SpMV      *spmv;
  SpMVCSR        csr;
  PetscBool      current;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (SpMVKeyIsCurrent(&spmv->host.key, A) || MatSpMVWaits_Seq(A, spmv)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatSpMVUpdateHost_Seq(A, spmv, PETSC_FALSE, &current);
  PetscCall(PetscPopErrorHandler());
  if (ierr) {
    PetscCall(PetscInfo(A, "Out of memory for the %s format; using AIJ's own product until the matrix changes\n",
                        spmv->format->name));
    PetscCall(MatSpMVGetPattern_Seq(A, &csr));
    spmv->host.use_parent = PETSC_TRUE;
    MatSpMVUseParent_Seq(A, spmv, PETSC_TRUE);
    SpMVKeySetPattern(&spmv->host.key, A, &csr);
    spmv->host.key.i = NULL; /* matches no pattern: the next change sets the format up */
    PetscCall(MatSpMVRestorePattern_Seq(A, &csr));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  zz = yy + op(A) xx by AIJ, where the format has no faster product; A may be an AIJCUSPARSE matrix. AIJ's transposed
  products call VecSet() and VecCopy(), which are collective, on the parallel vectors that MPIAIJ passes. One rank may
  use its format while another does not, so not all ranks would call them: zz gets its first values here.
*/
static PetscErrorCode MatSpMVApplyAIJ_Seq(Mat A, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  const SpMVParent  *aij = &SpMVParents[0][0];
  const PetscScalar *y   = NULL;
  PetscScalar       *z;

  PetscFunctionBegin;
  if (op == SPMV_NORMAL) {
    if (yy)
      PetscCall((*aij->multadd)(A, xx, yy, zz));
    else
      PetscCall((*aij->mult)(A, xx, zz));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (yy != zz) {
    if (yy) PetscCall(VecGetArrayRead(yy, &y));
    PetscCall(VecGetArrayWrite(zz, &z));
    if (yy)
      PetscCall(PetscArraycpy(z, y, A->cmap->n));
    else
      PetscCall(PetscArrayzero(z, A->cmap->n));
    PetscCall(VecRestoreArrayWrite(zz, &z));
    if (yy) PetscCall(VecRestoreArrayRead(yy, &y));
  }
  PetscCall((*aij->multtransposeadd)(A, xx, zz, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* zz = yy + op(A) xx with the format's copy */
static PetscErrorCode MatSpMVApplyStore_Seq(Mat_SpMV *spmv, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  const SpMVStore    store = spmv->host.store;
  const PetscScalar *x, *y = NULL;
  PetscScalar       *z;

  PetscFunctionBegin;
  PetscCall(VecGetArrayRead(xx, &x));
  if (yy == zz) {
    PetscCall(VecGetArray(zz, &z));
    y = z;
  } else {
    if (yy) PetscCall(VecGetArrayRead(yy, &y));
    PetscCall(VecGetArrayWrite(zz, &z));
  }
  if (op != SPMV_NORMAL)
    SpMVStoreMultTranspose(store, (PetscBool)(op == SPMV_HERMITIAN), x, y, z);
  else if (yy)
    SpMVStoreMultAdd(store, x, y, z);
  else
    SpMVStoreMult(store, x, z);
  if (yy == zz)
    PetscCall(VecRestoreArray(zz, &z));
  else {
    PetscCall(VecRestoreArrayWrite(zz, &z));
    if (yy) PetscCall(VecRestoreArrayRead(yy, &y));
  }
  PetscCall(VecRestoreArrayRead(xx, &x));
  PetscCall(PetscLogFlops(2.0 * spmv->host.key.nz - (op == SPMV_NORMAL && !yy ? spmv->host.nonzerorows : 0)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* zz = yy + op(A) xx on the host, wherever the vectors are; yy may be zz, and NULL for zero */
PetscErrorCode MatSpMVApplyHost_Seq(Mat A, Mat_SpMV *spmv, PetscBool current, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  const PetscBool ready = (PetscBool)(current && !spmv->host.use_parent);
  Vec             conj;

  PetscFunctionBegin;
  if (ready && (op == SPMV_NORMAL || !SpMVStoreTransposeUsesParent(spmv->host.store)))
    PetscCall(MatSpMVApplyStore_Seq(spmv, op, xx, yy, zz));
  else if (op == SPMV_HERMITIAN && PetscDefined(USE_COMPLEX)) { /* conj(conj(yy) + A^T conj(xx)), as PETSc for AIJ */
    PetscCall(VecDuplicate(xx, &conj));
    PetscCall(VecCopy(xx, conj));
    PetscCall(VecConjugate(conj));
    if (yy && yy != zz) PetscCall(VecCopy(yy, zz));
    if (yy) PetscCall(VecConjugate(zz));
    PetscCall(MatSpMVApplyAIJ_Seq(A, SPMV_TRANSPOSE, conj, yy ? zz : NULL, zz));
    PetscCall(VecConjugate(zz));
    PetscCall(VecDestroy(&conj));
  } else
    PetscCall(MatSpMVApplyAIJ_Seq(A, op, xx, yy, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}
