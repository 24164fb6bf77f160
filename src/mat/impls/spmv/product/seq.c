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
  if (device && spmv->backend && !SpMVBoundToCPU(A))
    PetscCall((*spmv->backend->getready)(A, transpose, &spmv));
  else
    PetscCall(MatSpMVUpdateHost_Seq(A, spmv, PETSC_FALSE, &current));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGetStats_Seq(Mat A, PetscBool setup, SpMVStats *stats)
{
  Mat_SpMV *spmv;
  MatInfo   info;
  PetscBool current;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(PetscMemzero(stats, sizeof(*stats)));
  stats->node = 1;
  if (spmv->backend && !SpMVBoundToCPU(A) && !spmv->host.key.mat)
    PetscCall((*spmv->backend->getstats)(A, spmv, stats));
  else {
    setup = (PetscBool)(setup || SpMVKeyHasNonzeroState(&spmv->host.key, A));
    PetscCall(MatSpMVUpdateHost_Seq(A, spmv, setup, &current));
    if (current && spmv->host.store) SpMVStoreGetStats(spmv->host.store, stats);
    if (!current || spmv->host.use_parent) stats->kernel = "AIJ's own";
  }
  stats->nonzeros = (PetscInt64)info.nz_used;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* zz = yy + op(A) xx, where yy may be zz, or NULL for zero */
PetscErrorCode MatSpMVApply_Seq(Mat A, Mat_SpMV *spmv, SpMVOp op, Vec xx, Vec yy, Vec zz)
{
  PetscBool current;

  PetscFunctionBegin;
  if (spmv->backend && !SpMVBoundToCPU(A)) {
    PetscCall((*spmv->backend->applyseq)(A, spmv, op, xx, yy, zz));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  current = SpMVKeyIsCurrent(&spmv->host.key, A); /* for most products nothing has changed */
  if (!current) PetscCall(MatSpMVUpdateHost_Seq(A, spmv, PETSC_FALSE, &current));
  PetscCall(MatSpMVApplyHost_Seq(A, spmv, current, op, xx, yy, zz));
  SpMVAskedCount(&spmv->host.asked, 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}
