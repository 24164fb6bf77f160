/*
  The products with vectors, and those of an MPI matrix. The latter are MPIAIJ's own products, which overlap the exchange
  of the halo with the diagonal block's product and call our products of the two blocks. For device vectors our own
  exchange replaces MPIAIJ's VecScatter if cuda/halo.c finds a faster transport.

  MPIAIJ creates, replaces and rebuilds its blocks in many places (preallocation, hash and COO assembly, disassembly,
  products), so every product checks whether the blocks have been hooked.
*/
#include "mat/impls/spmv/matspmv.h"

/* Brings the copies of the two blocks up to date, before the exchange begins */
static PetscErrorCode MatSpMVGetReady_MPI(Mat A, Mat_SpMV *spmv, PetscBool transpose)
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(MatSpMVHookBlocks_MPI(A, spmv));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) PetscCall(MatSpMVGetReady_Seq(block[k], PETSC_FALSE, transpose));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The calling rank may have changed one of its blocks without the other ranks' knowledge. Lack of memory for the block's
  copy must then not be an error on this rank: AIJ's product is used for the block, and the exchange continues.
*/
static PetscErrorCode MatSpMVGetReadyLocal_MPI(Mat A, Mat_SpMV *spmv)
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) {
    PetscObjectId id;

    PetscCall(PetscObjectGetId((PetscObject)block[k], &id));
    if (id == spmv->parallel.hooked[k]) PetscCall(MatSpMVUpdateHostOrUseParent_Seq(block[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The beginning of a product on the host: hooks the blocks, and brings them up to date on all ranks or on none. The
  ranks communicate only if the state of the parallel matrix has changed.
*/
static PetscErrorCode MatSpMVBegin_MPI(Mat A, Mat_SpMV *spmv, PetscBool transpose)
{
  SpMVAgreed *agreed = &spmv->parallel.agreed[0][0];

  PetscFunctionBegin;
  if (SpMVKeyIsCurrent(&agreed->key, A))
    PetscCall(MatSpMVGetReadyLocal_MPI(A, spmv));
  else {
    PetscCall(SpMVAgree(PetscObjectComm((PetscObject)A), MatSpMVGetReady_MPI(A, spmv, transpose)));
    SpMVKeySet(&agreed->key, A);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* zz = yy + op(A) xx by the parent's function, where yy may be zz, or NULL for zero */
PetscErrorCode SpMVParentApply(Mat A, const SpMVOps *parent, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  PetscErrorCode (*const mult[])(Mat, Vec, Vec)     = {parent->mult, NULL, parent->multtranspose,
                                                       parent->multhermitiantranspose};
  PetscErrorCode (*const add[])(Mat, Vec, Vec, Vec) = {parent->multadd, NULL, parent->multtransposeadd,
                                                       parent->multhermitiantransposeadd};

  PetscFunctionBegin;
  if (yy)
    PetscCall((*add[op])(A, xx, yy, zz));
  else
    PetscCall((*mult[op])(A, xx, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSpMVApply_MPI(Mat A, Mat_SpMV *spmv, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (spmv->backend)
    PetscCall((*spmv->backend->applympi)(A, spmv, op, xx, yy, zz, &done));
  else
    PetscCall(MatSpMVBegin_MPI(A, spmv, (PetscBool)(op == SPMV_TRANSPOSE)));
  if (!done) PetscCall(SpMVParentApply(A, &spmv->parent, op, xx, yy, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSpMVApply(Mat A, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall((SpMVIsMPI(A) ? MatSpMVApply_MPI : MatSpMVApply_Seq)(A, spmv, op, xx, yy, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMult_SpMV(Mat A, Vec xx, Vec yy)
{
  return MatSpMVApply(A, SPMV_NORMAL, xx, NULL, yy);
}

static PetscErrorCode MatMultAdd_SpMV(Mat A, Vec xx, Vec yy, Vec zz)
{
  return MatSpMVApply(A, SPMV_NORMAL, xx, yy, zz);
}

static PetscErrorCode MatMultTranspose_SpMV(Mat A, Vec xx, Vec yy)
{
  return MatSpMVApply(A, SPMV_TRANSPOSE, xx, NULL, yy);
}

static PetscErrorCode MatMultTransposeAdd_SpMV(Mat A, Vec xx, Vec yy, Vec zz)
{
  return MatSpMVApply(A, SPMV_TRANSPOSE, xx, yy, zz);
}

void MatSpMVSetOps_Mult(Mat A)
{
  A->ops->mult             = MatMult_SpMV;
  A->ops->multadd          = MatMultAdd_SpMV;
  A->ops->multtranspose    = MatMultTranspose_SpMV;
  A->ops->multtransposeadd = MatMultTransposeAdd_SpMV;
}
