/*
  SELL-P: slices of b rows, each stored at the width of its longest row, rounded up to a multiple of t. H. Anzt, S. Tomov,
  J. Dongarra, "Implementing a sparse matrix vector product for the SELL-C/SELL-C-sigma formats on NVIDIA GPUs", 2014.
*/
#pragma once

#include "../../../core/spmvcore.h"

typedef struct {
  PetscInt   b;        /* slice height, 0 = choose */
  PetscInt   t;        /* threads per row: widths are padded to a multiple of it, 0 = choose */
  PetscInt   sigma;    /* rows are sorted by length within windows of so many; 1 = none (the paper), 0 = choose */
  PetscInt   node;     /* node block size; 0 = detect, 1 = off */
  PetscInt   compress; /* leave out what the pattern implies: 1 = on, 0 = off */
  PetscInt   single;   /* on the device, store values of double precision in single precision; sums stay double: 1 = on, 0 = off */
  PetscInt   tune;     /* on the device, time several layouts and take the fastest: 1 = on, 0 = off */
  SpMVKernel kernel;
} SELLPParams;

PETSC_INTERN void           SELLPParamsDefault(SELLPParams *);
PETSC_INTERN PetscErrorCode SELLPSetUp(const SpMVCSR *, const SELLPParams *, SpMVStore *);
