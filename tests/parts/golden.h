/*
  Shared by the parts of tests/golden.c.
*/
#pragma once

#include "shapes.h"
#include <petscspmv.h>

typedef struct {
  PetscErrorCode (*info)(Mat, PetscSpMVInfo *); /* the library's functions, found at run time */
  PetscErrorCode (*batchinfo)(Mat, MatBatchInfo *);
  PetscErrorCode (*createbatch)(MPI_Comm, PetscInt, const PetscInt[], const PetscInt[], const PetscInt[], PetscScalar[],
                                MatBatchSharing, PetscCopyMode, Mat *);
  PetscErrorCode (*batchset)(Mat, PetscInt, const PetscScalar[]);
  const char *only;  /* settings that contain this, or NULL */
  PetscBool   bytes; /* compare the bytes stored */
  PetscInt    lines;
} Golden;

/* Sets or clears options: "name value name value ...", where a name without - means -mat_spmv_<name> if all formats have
   it, and -mat_<type>_<name> if not */
PetscErrorCode GoldenOptions(const char *type, const char *setting, PetscBool set);
/* Eight hashes of the bits of this rank's part of eight products */
PetscErrorCode GoldenHash(Mat A, uint64_t hash[8]);
/* Collective. Prints a line: the arguments, the numbers of MatView(), and the text and hashes of each rank */
PetscErrorCode GoldenPrint(Golden *g, Mat A, const char *name, const char *type, const char *setting, const char *info,
                           const uint64_t hash[16]);

/* Collective. Random batches with all kernels: a line for each */
PetscErrorCode GoldenBatches(Golden *g, PetscInt count);
