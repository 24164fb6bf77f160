/* A hash table of numbers, to store equal things once */
#include "table.h"

static PetscErrorCode SpMVTableAllocate(SpMVTable *T, size_t capacity)
{
  PetscFunctionBegin;
  T->capacity = capacity;
  T->number   = NULL;
  T->hash     = NULL;
  PetscCall(PetscCalloc1(capacity, &T->number));
  PetscCall(PetscMalloc1(capacity, &T->hash));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVTableCreate(SpMVTable *T)
{
  T->count = 0;
  return SpMVTableAllocate(T, 256);
}

PetscErrorCode SpMVTableDestroy(SpMVTable *T)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(T->number));
  PetscCall(PetscFree(T->hash));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void SpMVTablePut(SpMVTable *T, uint64_t hash, int number)
{
  size_t place = hash & (T->capacity - 1);

  while (T->number[place]) place = (place + 1) & (T->capacity - 1);
  T->number[place] = number + 1;
  T->hash[place]   = hash;
}

/* Four times the room */
static PetscErrorCode SpMVTableGrow(SpMVTable *T)
{
  SpMVTable      old  = *T;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(SpMVTableAllocate(T, 4 * old.capacity));
  for (size_t place = 0; place < old.capacity; place++)
    if (old.number[place]) SpMVTablePut(T, old.hash[place], old.number[place] - 1);
done:
  PetscCall(SpMVTableDestroy(&old));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVTableAdd(SpMVTable *T, uint64_t hash, int number)
{
  PetscFunctionBegin;
  if (2 * (size_t)T->count >= T->capacity) PetscCall(SpMVTableGrow(T));
  SpMVTablePut(T, hash, number);
  T->count++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

int SpMVTableFind(const SpMVTable *T, uint64_t hash, SpMVTableEqual equal, const void *ctx)
{
  for (size_t place = hash & (T->capacity - 1); T->number[place]; place = (place + 1) & (T->capacity - 1))
    if (T->hash[place] == hash && equal(ctx, T->number[place] - 1)) return T->number[place] - 1;
  return -1;
}

uint64_t SpMVHash(uint64_t hash, const void *data, size_t bytes)
{
  const unsigned char *d = (const unsigned char *)data;

  for (; bytes >= 8; bytes -= 8, d += 8) {
    uint64_t w;

    memcpy(&w, d, 8);
    hash = (hash ^ w) * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 29;
  }
  for (; bytes; bytes--, d++) hash = (hash ^ *d) * UINT64_C(0x100000001B3);
  return hash ^ (hash >> 32);
}
