/*
  The products of a sequential matrix on the host: bring the stored block up to date, then let the core multiply.
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

/*
  Where AIJ's own product wins it is put in place of ours, so that small matrices do not even pay for the look at the state; assembly
  puts ours back. AIJ's product is right whatever happens to the matrix in between. The transposed products stay, see below; so do all
  on a machine with a GPU, where AIJCUSPARSE's products take device vectors only.
*/
void MatSpMVUseParent(Mat A, Mat_SpMV *spmv, PetscBool use)
{
  const struct _MatOps *from = use ? &spmv->ours : &spmv->parent, *to = use ? &spmv->parent : &spmv->ours;

  if (spmv->device) return;
  if (A->ops->mult == from->mult) A->ops->mult = to->mult;
  if (A->ops->multadd == from->multadd) A->ops->multadd = to->multadd;
}

/*
  The object state changes with every documented way to change values; the Mat itself is part of the key because MatHeaderReplace() moves
  the data to another Mat, whose state counts differently.
*/
PetscBool SpMVSourceIsCurrent(const SpMVSource *source, Mat A)
{
  return (PetscBool)(source->mat == A && source->state == ((PetscObject)A)->state && source->nonzerostate == A->nonzerostate);
}

PetscBool SpMVSourceHasPattern(const SpMVSource *source, Mat A, const SpMVCSR *csr)
{
  return (PetscBool)(source->mat == A && source->nonzerostate == A->nonzerostate && source->m == csr->m && source->n == csr->n &&
                     source->nz == csr->i[csr->m] && source->i == csr->i && source->j == csr->j);
}

void SpMVSourceSet(SpMVSource *source, Mat A, const SpMVCSR *csr)
{
  source->mat          = A;
  source->state        = ((PetscObject)A)->state;
  source->nonzerostate = A->nonzerostate;
  source->m            = csr->m;
  source->n            = csr->n;
  source->nz           = csr->i[csr->m];
  source->i            = csr->i;
  source->j            = csr->j;
}

static const PetscInt SpMVNoRows[1] = {0};

/* AIJ's row offsets and columns on the host */
PetscErrorCode MatSpMVGetPattern(Mat A, SpMVCSR *csr)
{
  PetscInt  m;
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &csr->i, &csr->j, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatGetRowIJ() failed for a matrix of type %s", ((PetscObject)A)->type_name);
  csr->m = A->rmap->n;
  csr->n = A->cmap->n;
  csr->a = NULL;
  if (!csr->i) {
    PetscCheck(!csr->m, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix of type %s has rows but no row offsets", ((PetscObject)A)->type_name);
    csr->i = SpMVNoRows;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVRestorePattern(Mat A, SpMVCSR *csr)
{
  PetscInt  m;
  PetscBool done;

  PetscFunctionBegin;
  if (csr->i == SpMVNoRows) csr->i = NULL;
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &csr->i, &csr->j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A new layout for a new pattern */
static PetscErrorCode MatSpMVSetUpStore(Mat A, Mat_SpMV *spmv, const SpMVCSR *csr)
{
  PetscFunctionBegin;
  PetscCall(MatSpMVForgetHost(A, spmv));
  if (!A->structure_only && SpMVCSRIsSorted(csr)) PetscCall((*spmv->format->setup)(csr, spmv->params, &spmv->block));
  spmv->plain = (PetscBool)(!spmv->block || SpMVStoreUsesParent(spmv->block));
  MatSpMVUseParent(A, spmv, spmv->plain);
  spmv->nonzerorows = 0;
  for (PetscInt r = 0; r < csr->m; r++) spmv->nonzerorows += csr->i[r + 1] > csr->i[r];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSpMVFillStore(Mat A, Mat_SpMV *spmv, SpMVCSR *csr)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetArrayRead(A, &csr->a));
  ierr = SpMVStoreFill(spmv->block, csr);
  PetscCall(MatSeqAIJRestoreArrayRead(A, &csr->a));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Brings the block on the host in line with the matrix. After an error the matrix is as before its first product: the next one tries again */
static PetscErrorCode MatSpMVUpdate(Mat A, Mat_SpMV *spmv)
{
  SpMVCSR        csr;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (SpMVSourceIsCurrent(&spmv->source, A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSpMVGetPattern(A, &csr));
  if ((!spmv->block && !spmv->plain) || !SpMVSourceHasPattern(&spmv->source, A, &csr)) {
    PetscCall(PetscLogEventBegin(MAT_SpMVSetUp, A, 0, 0, 0));
    ierr = MatSpMVSetUpStore(A, spmv, &csr);
    PetscCall(PetscLogEventEnd(MAT_SpMVSetUp, A, 0, 0, 0));
  }
  if (!ierr && !spmv->plain) {
    PetscCall(PetscLogEventBegin(MAT_SpMVFill, A, 0, 0, 0));
    ierr = MatSpMVFillStore(A, spmv, &csr);
    PetscCall(PetscLogEventEnd(MAT_SpMVFill, A, 0, 0, 0));
  }
  if (ierr)
    PetscCall(MatSpMVForgetHost(A, spmv));
  else
    SpMVSourceSet(&spmv->source, A, &csr);
  PetscCall(MatSpMVRestorePattern(A, &csr));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGetReady_Seq(Mat A, PetscBool device, PetscBool transpose)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (device && spmv->device && !A->boundtocpu) {
    PetscCall(MatSpMVGetReady_SeqCUDA(A, transpose, &spmv));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#else
  (void)device;
  (void)transpose;
#endif
  PetscCall(MatSpMVUpdate(A, spmv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGetReadyAlone_Seq(Mat A)
{
  Mat_SpMV      *spmv;
  SpMVCSR        csr;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (SpMVSourceIsCurrent(&spmv->source, A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatSpMVUpdate(A, spmv);
  PetscCall(PetscPopErrorHandler());
  if (ierr) {
    PetscCall(PetscInfo(A, "No memory for the %s format: AIJ's own product runs until the matrix changes\n", spmv->format->name));
    PetscCall(MatSpMVGetPattern(A, &csr));
    SpMVSourceSet(&spmv->source, A, &csr);
    spmv->source.i = NULL; /* no pattern is this one: the next change sets the format up */
    spmv->plain    = PETSC_TRUE;
    MatSpMVUseParent(A, spmv, PETSC_TRUE);
    PetscCall(MatSpMVRestorePattern(A, &csr));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGetStats(Mat A, SpMVStats *stats)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (spmv->device && !A->boundtocpu && !spmv->source.mat) {
    PetscCall(MatSpMVGetStats_CUDA(A, spmv, stats));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(MatSpMVUpdate(A, spmv));
  if (spmv->block)
    SpMVStoreGetStats(spmv->block, stats);
  else {
    PetscCall(PetscMemzero(stats, sizeof(*stats)));
    stats->node = 1;
  }
  if (spmv->plain) stats->kernel = "AIJ's own";
  stats->nonzeros = spmv->source.nz;
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
  PetscCall(MatSpMVUpdate(A, spmv));
  if (spmv->plain || (op != SPMV_NORMAL && SpMVStoreTransposeUsesParent(spmv->block)))
    PetscCall(MatMultAdd_CSR(A, op, x, z, y));
  else if (op != SPMV_NORMAL)
    SpMVStoreMultTranspose(spmv->block, (PetscBool)(op == SPMV_HERMITIAN), x, z, y);
  else if (z)
    SpMVStoreMultAdd(spmv->block, x, z, y);
  else
    SpMVStoreMult(spmv->block, x, y);
  PetscCall(PetscLogFlops(2.0 * spmv->source.nz - (op == SPMV_NORMAL && !z ? spmv->nonzerorows : 0)));
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
  PetscCall(MatSpMVApplyHost(A, spmv, op, x, y, z));
  if (yy == zz)
    PetscCall(VecRestoreArray(zz, &z));
  else {
    PetscCall(VecRestoreArrayWrite(zz, &z));
    if (yy) PetscCall(VecRestoreArrayRead(yy, &y));
  }
  PetscCall(VecRestoreArrayRead(xx, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  zz = yy + op(A) xx, where yy may be zz, and NULL for zero.

  AIJ's own transposed products are never used: they call VecSet() and VecCopy(), which are collective, on the parallel vectors that
  MPIAIJ passes, and one rank may use its format and another not.
*/
PetscErrorCode MatSpMVApply_Seq(Mat A, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (spmv->device && !A->boundtocpu) {
    PetscCall(MatSpMVApply_SeqCUDA(A, spmv, op, xx, yy, zz));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  if (op == SPMV_NORMAL) PetscCall(MatSpMVUpdate(A, spmv));
  if (op == SPMV_NORMAL && spmv->plain)
    PetscCall(MatSpMVApplyParent(A, spmv, op, xx, yy, zz));
  else
    PetscCall(MatSpMVApplyHostVecs(A, spmv, op, xx, yy, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMult_SeqSpMV(Mat A, Vec xx, Vec yy)
{
  return MatSpMVApply_Seq(A, SPMV_NORMAL, xx, NULL, yy);
}

static PetscErrorCode MatMultAdd_SeqSpMV(Mat A, Vec xx, Vec yy, Vec zz)
{
  return MatSpMVApply_Seq(A, SPMV_NORMAL, xx, yy, zz);
}

static PetscErrorCode MatMultTranspose_SeqSpMV(Mat A, Vec xx, Vec yy)
{
  return MatSpMVApply_Seq(A, SPMV_TRANSPOSE, xx, NULL, yy);
}

static PetscErrorCode MatMultTransposeAdd_SeqSpMV(Mat A, Vec xx, Vec yy, Vec zz)
{
  return MatSpMVApply_Seq(A, SPMV_TRANSPOSE, xx, yy, zz);
}

void MatSpMVSetOps_Seq(Mat A)
{
  A->ops->mult             = MatMult_SeqSpMV;
  A->ops->multadd          = MatMultAdd_SeqSpMV;
  A->ops->multtranspose    = MatMultTranspose_SeqSpMV;
  A->ops->multtransposeadd = MatMultTransposeAdd_SeqSpMV;
}
