/*
  The products of a sequential matrix: bring the stored block up to date, then let the core multiply.
*/
#include "matspmv.h"

/* The formats rely on ascending columns, as AIJ itself keeps them; MatCreateSeqAIJWithArrays() lets others through */
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
  puts ours back. AIJ's product is right whatever happens to the matrix in between. The transposed products stay, see below.
*/
void MatSpMVUseParent(Mat A, Mat_SpMV *spmv, PetscBool use)
{
  const struct _MatOps *from = use ? &spmv->ours : &spmv->parent, *to = use ? &spmv->parent : &spmv->ours;

  if (A->ops->mult == from->mult) A->ops->mult = to->mult;
  if (A->ops->multadd == from->multadd) A->ops->multadd = to->multadd;
}

/*
  Brings the stored block in line with the matrix. The object state changes with every documented way to change values; the Mat itself
  is part of the key because MatHeaderReplace() moves the block to another Mat, whose state counts differently.
*/
static PetscErrorCode MatSpMVUpdate(Mat A, Mat_SpMV *spmv)
{
  PetscObjectState state;
  SpMVCSR          csr;
  PetscInt         m;
  PetscBool        done;
  static PetscInt  zero = 0;

  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (spmv->mat == A && spmv->state == state && spmv->nonzerostate == A->nonzerostate) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &csr.i, &csr.j, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatGetRowIJ() failed for a matrix of type %s", ((PetscObject)A)->type_name);
  csr.m = A->rmap->n;
  csr.n = A->cmap->n;
  if (!csr.i) {
    PetscCheck(!csr.m, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Matrix of type %s has rows but no row offsets", ((PetscObject)A)->type_name);
    csr.i = &zero;
  }
  if ((!spmv->block && !spmv->plain) || spmv->mat != A || spmv->nonzerostate != A->nonzerostate || spmv->m != csr.m || spmv->n != csr.n ||
      spmv->nz != csr.i[csr.m] || spmv->i != csr.i || spmv->j != csr.j) {
    PetscCall(PetscLogEventBegin(MAT_SpMVSetUp, A, 0, 0, 0));
    PetscCall(SpMVBlockDestroy(&spmv->block));
    spmv->mat   = NULL; /* should the set-up fail, the next product tries again */
    spmv->plain = A->structure_only;
    if (!SpMVCSRIsSorted(&csr)) spmv->plain = PETSC_TRUE;
    if (!spmv->plain) {
      csr.a = NULL;
      PetscCall(spmv->format->setup(&csr, spmv->params, &spmv->block));
      spmv->plain = SpMVBlockUsesParent(spmv->block);
    }
    MatSpMVUseParent(A, spmv, spmv->plain);
    spmv->nonzerorows = 0;
    for (PetscInt r = 0; r < csr.m; r++) spmv->nonzerorows += csr.i[r + 1] > csr.i[r];
    spmv->m  = csr.m;
    spmv->n  = csr.n;
    spmv->nz = csr.i[csr.m];
    spmv->i  = csr.i;
    spmv->j  = csr.j;
    PetscCall(PetscLogEventEnd(MAT_SpMVSetUp, A, 0, 0, 0));
  }
  if (!spmv->plain) {
    PetscCall(PetscLogEventBegin(MAT_SpMVFill, A, 0, 0, 0));
    PetscCall(MatSeqAIJGetArrayRead(A, &csr.a));
    PetscCall(SpMVBlockFill(spmv->block, &csr));
    PetscCall(MatSeqAIJRestoreArrayRead(A, &csr.a));
    PetscCall(PetscLogEventEnd(MAT_SpMVFill, A, 0, 0, 0));
  }
  spmv->mat          = A;
  spmv->state        = state;
  spmv->nonzerostate = A->nonzerostate;
  if (csr.i == &zero) csr.i = NULL;
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &csr.i, &csr.j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGetStats(Mat A, SpMVStats *stats)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatSpMVUpdate(A, spmv));
  if (spmv->block)
    SpMVBlockGetStats(spmv->block, stats);
  else {
    PetscCall(PetscMemzero(stats, sizeof(*stats)));
    stats->node = 1;
  }
  if (spmv->plain) stats->kernel = "AIJ's own";
  stats->nonzeros = spmv->nz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMult_SeqSpMV(Mat A, Vec xx, Vec yy)
{
  Mat_SpMV          *spmv;
  const PetscScalar *x;
  PetscScalar       *y;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatSpMVUpdate(A, spmv));
  if (spmv->plain) {
    PetscCall((*spmv->parent.mult)(A, xx, yy));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGetArrayRead(xx, &x));
  PetscCall(VecGetArrayWrite(yy, &y));
  SpMVBlockMult(spmv->block, x, y);
  PetscCall(VecRestoreArrayWrite(yy, &y));
  PetscCall(VecRestoreArrayRead(xx, &x));
  PetscCall(PetscLogFlops(2.0 * spmv->nz - spmv->nonzerorows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arrays of z = y + (product with x), where z may be y, and y NULL for zero */
static PetscErrorCode SpMVGetArrays(Vec xx, Vec yy, Vec zz, const PetscScalar **x, const PetscScalar **y, PetscScalar **z)
{
  PetscFunctionBegin;
  PetscCall(VecGetArrayRead(xx, x));
  if (yy == zz) {
    PetscCall(VecGetArray(zz, z));
    *y = *z;
  } else {
    if (yy) PetscCall(VecGetArrayRead(yy, y));
    PetscCall(VecGetArrayWrite(zz, z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVRestoreArrays(Vec xx, Vec yy, Vec zz, const PetscScalar **x, const PetscScalar **y, PetscScalar **z)
{
  PetscFunctionBegin;
  if (yy == zz)
    PetscCall(VecRestoreArray(zz, z));
  else {
    PetscCall(VecRestoreArrayWrite(zz, z));
    if (yy) PetscCall(VecRestoreArrayRead(yy, y));
  }
  PetscCall(VecRestoreArrayRead(xx, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultAdd_SeqSpMV(Mat A, Vec xx, Vec yy, Vec zz)
{
  Mat_SpMV          *spmv;
  const PetscScalar *x, *y;
  PetscScalar       *z;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatSpMVUpdate(A, spmv));
  if (spmv->plain) {
    PetscCall((*spmv->parent.multadd)(A, xx, yy, zz));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(SpMVGetArrays(xx, yy, zz, &x, &y, &z));
  SpMVBlockMultAdd(spmv->block, x, y, z);
  PetscCall(SpMVRestoreArrays(xx, yy, zz, &x, &y, &z));
  PetscCall(PetscLogFlops(2.0 * spmv->nz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  y = z + A^T x with AIJ's arrays, where the format has nothing better. AIJ's own operations do the same, but on vectors: they call
  VecSet() and VecCopy(), which are collective, on the parallel vectors that MPIAIJ passes, and one rank may use its format and another not.
*/
static PetscErrorCode MatMultTransposeAdd_CSR(Mat A, const PetscScalar x[], const PetscScalar z[], PetscScalar y[])
{
  const PetscScalar *a;
  const PetscInt    *i, *j;
  PetscInt           m;
  PetscBool          done;

  PetscFunctionBegin;
  if (!z)
    PetscCall(PetscArrayzero(y, A->cmap->n));
  else if (z != y)
    PetscCall(PetscArraycpy(y, z, A->cmap->n));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  for (PetscInt r = 0; r < A->rmap->n; r++) {
    for (PetscInt k = i[r]; k < i[r + 1]; k++) y[j[k]] += x[r] * a[k];
  }
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTransposeAdd_SeqSpMV(Mat A, Vec xx, Vec yy, Vec zz)
{
  Mat_SpMV          *spmv;
  const PetscScalar *x, *y = NULL;
  PetscScalar       *z;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatSpMVUpdate(A, spmv));
  PetscCall(SpMVGetArrays(xx, yy, zz, &x, &y, &z));
  if (spmv->plain || SpMVBlockTransposeUsesParent(spmv->block))
    PetscCall(MatMultTransposeAdd_CSR(A, x, y, z));
  else
    SpMVBlockMultTranspose(spmv->block, PETSC_FALSE, x, y, z);
  PetscCall(SpMVRestoreArrays(xx, yy, zz, &x, &y, &z));
  PetscCall(PetscLogFlops(2.0 * spmv->nz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTranspose_SeqSpMV(Mat A, Vec xx, Vec yy)
{
  return MatMultTransposeAdd_SeqSpMV(A, xx, NULL, yy);
}

void MatSpMVSetOps_Seq(Mat A)
{
  A->ops->mult             = MatMult_SeqSpMV;
  A->ops->multadd          = MatMultAdd_SeqSpMV;
  A->ops->multtranspose    = MatMultTranspose_SeqSpMV;
  A->ops->multtransposeadd = MatMultTransposeAdd_SeqSpMV;
}
