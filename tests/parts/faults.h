/*
  Allocations of the library: those that fail on purpose, and those that are not freed.
*/
#pragma once

#include "harness.h"

typedef struct {
  PetscBool   armed;
  long        after; /* number of allocations that succeed before the fault */
  long        fired;
  const char *where; /* file or function, and line, of the allocation that failed */
  int         line;
} Fault;

typedef struct {
  void       *p;
  const char *where;
  int         line;
} Allocation;

#define MOST_LIVE 65536

extern Fault      fault;
extern Allocation live[MOST_LIVE]; /* allocated by the library and not freed */
extern int        nlive;

/* Can be called at any time: memory allocated earlier is freed by the same functions as without faults */
void FaultsInstall(PetscBool install);
