/*
  The type devicebatch: what its file shares with the solve on the device (cuda/batch.c).
*/
#pragma once

#include "deviceksp.h"
#include "core/batch/batchsolve.h"

typedef struct _n_KSP_DeviceBatch {
  SpMVBatchMethod method;  /* SPMV_BATCH_METHODS: chosen in each solve */
  PetscInt        restart; /* of GMRES */
  PetscBool       use;     /* -ksp_device */

  /* the problems, as in MatBatchGetProblems(), with the pattern of the diagonal block */
  PetscInt         problems, *first;
  PetscObjectId    block;
  PetscObjectState nonzerostate;
  PetscBool        dense; /* they are small and dense: `auto` factors them */

  /* the last solve */
  PetscBool              solved, device;
  SpMVBatchOptions       options;
  const SpMVBatchResult *results; /* of each problem: `host`, or in the device's plan */
  SpMVBatchResult       *host;
  PetscInt              *its; /* the same as arrays, for the user; NULL: not needed yet */
  PetscReal             *norms;
  KSPConvergedReason    *reasons;
  Vec                    diagonal; /* of a preconditioner that the methods do not compute themselves, or NULL */

  struct _n_KSPDeviceBatchRun *run; /* cuda/batch.c; NULL before the first solve on the device */
} KSP_DeviceBatch;
