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

  /* what `auto` has chosen for a pattern, if the problems are small and dense */
  PetscObjectId    block;
  PetscObjectState nonzerostate;
  PetscBool        dense;

  /* the last solve */
  PetscBool           solved, device;
  SpMVBatchOptions    options;
  SpMVBatchSummary    summary; /* of this process */
  PetscInt            problems;
  SpMVBatchResult    *results; /* of each problem; NULL: they are still on the device */
  PetscInt           *its;     /* the same as arrays, for the user; NULL: not needed yet */
  PetscReal          *norms;
  KSPConvergedReason *reasons;
  Vec                 diagonal; /* of a preconditioner that the methods do not compute themselves, or NULL */

  struct _n_KSPDeviceBatchRun *run; /* cuda/batch.c; NULL before the first solve on the device */
} KSP_DeviceBatch;
