/*
   Times by the host's clock: the time of the slowest rank, and medians, because outliers on a shared machine are only
   on one side.
*/
#pragma once

#include <petscsys.h>
#include <stdio.h>

#if !defined(PETSC_SUCCESS) /* PETSc 3.18 */
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

/* Waits for work that the host has started and that has not finished; NULL if there is no such work */
static PetscErrorCode (*TimeDrain)(void) = NULL;

static inline PetscErrorCode TimeBegin(MPI_Comm comm, PetscLogDouble *start)
{
  PetscFunctionBeginUser;
  if (TimeDrain) PetscCall((*TimeDrain)());
  PetscCallMPI(MPI_Barrier(comm));
  PetscCall(PetscTime(start));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode TimeEnd(MPI_Comm comm, PetscLogDouble start, double *seconds)
{
  PetscLogDouble now;
  double         mine;

  PetscFunctionBeginUser;
  if (TimeDrain) PetscCall((*TimeDrain)());
  PetscCall(PetscTime(&now));
  mine = now - start;
  PetscCallMPI(MPI_Allreduce(&mine, seconds, 1, MPI_DOUBLE, MPI_MAX, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sorts t */
static inline PetscErrorCode Median(PetscInt n, double t[], double *median)
{
  PetscInt a, b;

  PetscFunctionBeginUser;
  /* the argument of PetscSortReal() has a different type if PETSc is built for a different precision */
  for (a = 1; a < n; a++) {
    const double v = t[a];

    for (b = a; b > 0 && t[b - 1] > v; b--) t[b] = t[b - 1];
    t[b] = v;
  }
  *median = n ? (n % 2 ? t[n / 2] : 0.5 * (t[n / 2 - 1] + t[n / 2])) : 0.0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Flushes the caches: every rank reads and writes a buffer larger than the last-level cache */
typedef struct {
  size_t bytes;
  char  *buffer;
} Evict;

static inline PetscErrorCode EvictCreate(PetscInt megabytes, Evict *e)
{
  FILE *fp;
  long  kilobytes = 0;

  PetscFunctionBeginUser;
  /* sysconf() returns the size for the whole machine, of which this may be only a part */
  fp = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
  if (fp) {
    if (fscanf(fp, "%ldK", &kilobytes) != 1) kilobytes = 0;
    fclose(fp);
  }
  e->bytes = megabytes > 0 ? (size_t)megabytes << 20 : PetscMax((size_t)64 << 20, (size_t)kilobytes << 11);
  PetscCall(PetscMalloc1(e->bytes, &e->buffer));
  PetscCall(PetscMemzero(e->buffer, e->bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode EvictCaches(Evict *e)
{
  volatile char *b = e->buffer;
  size_t         k;

  PetscFunctionBeginUser;
  for (k = 0; k < e->bytes; k += 64) b[k]++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode EvictDestroy(Evict *e)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree(e->buffer));
  PetscFunctionReturn(PETSC_SUCCESS);
}
