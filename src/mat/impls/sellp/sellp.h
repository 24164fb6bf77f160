/*
  SELL-P: slices of b rows, each stored at the width of its longest row, rounded up to a multiple of t. H. Anzt, S.
  Tomov, J. Dongarra, "Implementing a sparse matrix vector product for the SELL-C/SELL-C-sigma formats on NVIDIA GPUs",
  2014.
*/
#pragma once

#include "core/spmvcore.h"

typedef struct {
  SpMVCommonParams common; /* first: the glue reads it */
  PetscInt         b;      /* slice height of the paper's kernel, 0 = 8; on the host SPMV_LANES */
  PetscInt         t;      /* threads per row: widths are padded to a multiple of t; 0 = choose */
  /* rows are sorted by length in windows of sigma rows; 1 = not sorted (the paper), 0 = choose */
  PetscInt sigma;
} SELLPParams;

PETSC_INTERN void           SELLPParamsDefault(void *params);
PETSC_INTERN PetscErrorCode SELLPSetUp(const SpMVCSR *, const void *params, SpMVStore *);
PETSC_INTERN PetscErrorCode SELLPDescribe(const void *params, const SpMVStats *, char text[], size_t len);
