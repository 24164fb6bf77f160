/*
  The MPI matrix: MPIAIJ's own products, which overlap the halo exchange with the diagonal block's product, over blocks that are hooked.

  MPIAIJ makes, replaces and rebuilds its blocks in many places (preallocation, hash and COO assembly, disassembly, products), so they
  are looked at before every product instead of in each of these places.
*/
#include "matspmv.h"

PetscErrorCode MatSpMVHookBlocks_MPI(Mat A, Mat_SpMV *spmv)
{
  Mat       block[2];
  Mat_SpMV *own;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) {
    PetscObjectId id;

    if (!block[k]) continue;
    PetscCall(PetscObjectGetId((PetscObject)block[k], &id));
    if (id == spmv->id[k]) continue;
    PetscCall(MatSpMVGet(block[k], &own));
    if (own && own->format != spmv->format) {
      PetscCall(MatSpMVUnhook(block[k]));
      own = NULL;
    }
    if (own)
      PetscCall(MatSpMVSetParams(block[k], own, spmv->params)); /* made by the type's name: it knows the format, not our options */
    else {
      PetscCall(MatConvert(block[k], MATSEQAIJ, MAT_INPLACE_MATRIX, &block[k])); /* -mat_seqaij_type may have made it something else */
      PetscCall(MatSpMVHook(block[k], spmv->format, spmv->params));
    }
    spmv->id[k] = id;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVUnhookBlocks_MPI(Mat A)
{
  Mat       block[2];
  Mat_SpMV *own;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) {
    if (!block[k]) continue;
    PetscCall(MatSpMVGet(block[k], &own));
    if (own) PetscCall(MatSpMVUnhook(block[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What every product begins with: our data, and blocks that are hooked */
static PetscErrorCode MatSpMVGetHooked_MPI(Mat A, Mat_SpMV **spmv)
{
  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, spmv));
  PetscCall(MatSpMVHookBlocks_MPI(A, *spmv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMult_MPISpMV(Mat A, Vec xx, Vec yy)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetHooked_MPI(A, &spmv));
  PetscCall((*spmv->parent.mult)(A, xx, yy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultAdd_MPISpMV(Mat A, Vec xx, Vec yy, Vec zz)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetHooked_MPI(A, &spmv));
  PetscCall((*spmv->parent.multadd)(A, xx, yy, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTranspose_MPISpMV(Mat A, Vec xx, Vec yy)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetHooked_MPI(A, &spmv));
  PetscCall((*spmv->parent.multtranspose)(A, xx, yy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTransposeAdd_MPISpMV(Mat A, Vec xx, Vec yy, Vec zz)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGetHooked_MPI(A, &spmv));
  PetscCall((*spmv->parent.multtransposeadd)(A, xx, yy, zz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatSpMVSetOps_MPI(Mat A)
{
  A->ops->mult             = MatMult_MPISpMV;
  A->ops->multadd          = MatMultAdd_MPISpMV;
  A->ops->multtranspose    = MatMultTranspose_MPISpMV;
  A->ops->multtransposeadd = MatMultTransposeAdd_MPISpMV;
}
