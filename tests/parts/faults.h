/*
  Allocations of the library: failing on purpose, and not freed.
*/
#pragma once

#include "harness.h"

typedef struct {
  PetscBool   armed;
  long        after; /* allocations that succeed before it */
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

/* Can be called at any time: memory allocated before is freed by the same functions as without faults */
void FaultsInstall(PetscBool install);
