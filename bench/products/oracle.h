/*
   Checks products of a matrix: AIJ's product with a random vector, and the allowed difference of another product, row
   by row.
*/
#pragma once

#include "device.h"

typedef struct {
  /* bound: (row length + 2) epsilon |A| |x|, the allowed difference of two orders of summation; x and y are where
     products run */
  Vec x, y, ref, bound;
} Oracle;

static PetscErrorCode OracleCreate(Mat A, Oracle *o)
{
  Mat         B, block[2];
  Vec         w, len;
  PetscRandom random;
  PetscScalar corner = 1.0;
  PetscBool   seq;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &o->x, &o->y));
  PetscCall(VecDuplicate(o->y, &o->ref));
  PetscCall(VecDuplicate(o->y, &o->bound));
  PetscCall(VecDuplicate(o->y, &len));
  PetscCall(PetscRandomCreate(PetscObjectComm((PetscObject)A), &random));
#if defined(PETSC_USE_COMPLEX)
  corner += PETSC_i;
#endif
  PetscCall(PetscRandomSetInterval(random, -corner, corner));
  PetscCall(VecSetRandom(o->x, random));
  PetscCall(VecDuplicate(o->x, &w));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQAIJ, &seq));
  block[0] = B;
  block[1] = NULL;
  if (!seq) PetscCall(MatMPIAIJGetSeqAIJ(B, &block[0], &block[1], NULL));
  for (int pass = 0; pass < 2; pass++) { /* |A| |x|, then row lengths */
    for (int b = 0; b < (seq ? 1 : 2); b++) {
      PetscScalar *a;
      MatInfo      info;

      PetscCall(MatGetInfo(block[b], MAT_LOCAL, &info));
      PetscCall(MatSeqAIJGetArray(block[b], &a));
      for (PetscCount k = 0; k < (PetscCount)info.nz_used; k++) a[k] = pass ? 1.0 : PetscAbsScalar(a[k]);
      PetscCall(MatSeqAIJRestoreArray(block[b], &a));
    }
    if (!pass) {
      PetscCall(VecCopy(o->x, w));
      PetscCall(VecAbs(w));
      PetscCall(MatMult(B, w, o->bound));
    } else {
      PetscCall(VecSet(w, 1.0));
      PetscCall(MatMult(B, w, len));
    }
  }
  PetscCall(VecShift(len, 2.0));
  PetscCall(VecPointwiseMult(o->bound, o->bound, len));
  PetscCall(VecScale(o->bound, (PetscDefined(USE_COMPLEX) ? 4.0 : 1.0) * PETSC_MACHINE_EPSILON));
  PetscCall(MatMult(A, o->x, o->ref));
  PetscCall(MatDestroy(&B));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDestroy(&len));
  PetscCall(PetscRandomDestroy(&random));
#if defined(PETSC_HAVE_CUDA)
  if (DeviceOn) {
    Vec host[2] = {o->x, o->y};

    PetscCall(DeviceVecCopy(host[0], &o->x));
    PetscCall(DeviceVecCopy(host[1], &o->y));
    PetscCall(VecDestroy(&host[0]));
    PetscCall(VecDestroy(&host[1]));
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OracleDestroy(Oracle *o)
{
  PetscFunctionBeginUser;
  PetscCall(VecDestroy(&o->x));
  PetscCall(VecDestroy(&o->y));
  PetscCall(VecDestroy(&o->ref));
  PetscCall(VecDestroy(&o->bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The error of y relative to factor times AIJ's product, in units of the allowed error; 1e99 for a NaN */
static PetscErrorCode OracleCheck(Oracle *o, double factor, double *error)
{
  const PetscScalar *y, *ref, *bound;
  PetscInt           m;
  double             mine = 0.0, all;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(o->y, &m));
  PetscCall(VecGetArrayRead(o->y, &y));
  PetscCall(VecGetArrayRead(o->ref, &ref));
  PetscCall(VecGetArrayRead(o->bound, &bound));
  for (PetscInt k = 0; k < m; k++) {
    const PetscReal diff    = PetscAbsScalar(y[k] - (PetscReal)factor * ref[k]),
                    allowed = (PetscReal)factor * PetscRealPart(bound[k]);

    if (diff > 0.0 || diff != diff)
      mine = PetscMax(mine, diff <= PETSC_MAX_REAL && allowed > 0.0 ? (double)(diff / allowed) : 1e99);
  }
  PetscCall(VecRestoreArrayRead(o->y, &y));
  PetscCall(VecRestoreArrayRead(o->ref, &ref));
  PetscCall(VecRestoreArrayRead(o->bound, &bound));
  PetscCallMPI(MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, PetscObjectComm((PetscObject)o->y)));
  *error = PetscMax(*error, all);
  PetscFunctionReturn(PETSC_SUCCESS);
}
