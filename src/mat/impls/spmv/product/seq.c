/*
  The products of a sequential matrix, on the host or on the device.
*/
#include "mat/impls/spmv/matspmv.h"

PetscErrorCode MatSpMVGetReady_Seq(Mat A, PetscBool device, PetscBool transpose)
{
  Mat_SpMV *spmv;
  PetscBool current;

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
  PetscCall(MatSpMVUpdateHost_Seq(A, spmv, PETSC_FALSE, &current));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGetStats_Seq(Mat A, PetscBool setup, SpMVStats *stats)
{
  Mat_SpMV *spmv;
  PetscBool current;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (spmv->device && !A->boundtocpu && !spmv->host.key.mat) {
    PetscCall(MatSpMVGetStats_SeqCUDA(A, spmv, stats));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(MatSpMVUpdateHost_Seq(A, spmv, (PetscBool)(setup || SpMVKeyHasNonzeroState(&spmv->host.key, A)), &current));
  if (current)
    PetscCall(MatSpMVGetStatsHost_Seq(A, spmv, stats));
  else
    PetscCall(MatSpMVGetStatsNone_Seq(A, stats));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* zz = yy + op(A) xx, where yy may be zz, or NULL for zero */
PetscErrorCode MatSpMVApply_Seq(Mat A, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  Mat_SpMV *spmv;
  PetscBool current;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (spmv->device && !A->boundtocpu) {
    PetscCall(MatSpMVApply_SeqCUDA(A, spmv, op, xx, yy, zz));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  current = SpMVKeyIsCurrent(&spmv->host.key, A); /* for most products nothing has changed */
  if (!current) PetscCall(MatSpMVUpdateHost_Seq(A, spmv, PETSC_FALSE, &current));
  PetscCall(MatSpMVApplyHost_Seq(A, spmv, op, xx, yy, zz));
  SpMVAskedCount(&spmv->host.asked, 1);
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

#if defined(PETSCSPMV_HAVE_CUDA)
static PetscErrorCode MatMultHermitianTranspose_SeqSpMVCUDA(Mat A, Vec xx, Vec yy)
{
  return MatSpMVApply_Seq(A, SPMV_HERMITIAN, xx, NULL, yy);
}

static PetscErrorCode MatMultHermitianTransposeAdd_SeqSpMVCUDA(Mat A, Vec xx, Vec yy, Vec zz)
{
  return MatSpMVApply_Seq(A, SPMV_HERMITIAN, xx, yy, zz);
}

/* rr = bb - A xx in one kernel. On the host MatResidual() calls MatMult() and VecAYPX() */
static PetscErrorCode MatResidual_SeqSpMVCUDA(Mat A, Vec bb, Vec xx, Vec rr)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (spmv->device && !A->boundtocpu) {
    PetscCall(MatSpMVApply_SeqCUDA(A, spmv, SPMV_RESIDUAL, xx, bb, rr));
  } else {
    PetscCall(MatSpMVApply_Seq(A, SPMV_NORMAL, xx, NULL, rr));
    PetscCall(VecAYPX(rr, -1.0, bb));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatSpMVSetOps_SeqCUDA(Mat A)
{
  MatSpMVSetOps_Seq(A);
  A->ops->residual                  = MatResidual_SeqSpMVCUDA;
  A->ops->multhermitiantranspose    = MatMultHermitianTranspose_SeqSpMVCUDA;
  A->ops->multhermitiantransposeadd = MatMultHermitianTransposeAdd_SeqSpMVCUDA;
}
#endif
