/*
  A hash table of numbers >= 0, with open addressing. It holds hashes only: the caller knows what a number means, and
  compares.
*/
#pragma once

#include "spmvcore.h"
#include <stdint.h>

typedef struct {
  size_t    capacity; /* a power of two */
  int       count;
  int      *number; /* plus one; 0 is a free place */
  uint64_t *hash;
} SpMVTable;

typedef PetscBool (*SpMVTableEqual)(const void *ctx, int number); /* does the number stand for what is looked for? */

PETSC_INTERN PetscErrorCode SpMVTableCreate(SpMVTable *);
PETSC_INTERN PetscErrorCode SpMVTableDestroy(SpMVTable *);
PETSC_INTERN PetscErrorCode SpMVTableAdd(SpMVTable *, uint64_t hash, int number);
/* the number, or -1 */
PETSC_INTERN int SpMVTableFind(const SpMVTable *, uint64_t hash, SpMVTableEqual, const void *ctx);

PETSC_INTERN uint64_t SpMVHash(uint64_t hash, const void *data, size_t bytes); /* continues `hash` */
