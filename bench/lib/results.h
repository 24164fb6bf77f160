/*
   A file of results. If the file exists, the new one is written to FILE.new and renamed when it is complete, so that an
   interrupted run does not change the older results.
*/
#pragma once

#include <petscversion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
  FILE *file;
  char  name[4096], part[4096 + 4];
} Results;

#define RESULTS_SOURCE "petsc,machine,commit" /* the last columns of each file, which ResultsSource() fills */

/* The source of the results: PETSc, the GPU, or the host's processor, and the commit, which the scripts pass in the
   environment */
static inline const char *ResultsSource(const char *gpu)
{
  static char text[512];
  char        line[256], machine[256] = "unknown";
  const char *commit = getenv("BENCH_COMMIT");
  FILE       *f      = gpu ? NULL : fopen("/proc/cpuinfo", "r");

  if (gpu) (void)snprintf(machine, sizeof(machine), "%s", gpu);
  while (f && fgets(line, sizeof(line), f)) {
    if (!strncmp(line, "model name", 10) && strchr(line, ':')) {
      (void)snprintf(machine, sizeof(machine), "%s", strchr(line, ':') + 2);
      machine[strcspn(machine, "\n")] = 0;
      break;
    }
  }
  if (f) (void)fclose(f);
  (void)snprintf(text, sizeof(text), "%d.%d.%d,\"%s\",%s", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR,
                 PETSC_VERSION_SUBMINOR, machine, commit && *commit ? commit : "unknown");
  return text;
}

/* NULL on failure, like fopen(); append continues an existing file */
static inline FILE *ResultsOpen(Results *r, const char *name, int append)
{
  struct stat old;

  (void)snprintf(r->name, sizeof(r->name), "%s", name);
  (void)snprintf(r->part, sizeof(r->part), "%s%s", r->name,
                 !append && !stat(name, &old) && S_ISREG(old.st_mode) ? ".new" : "");
  r->file = fopen(r->part, append ? "a" : "w");
  return r->file;
}

/* 0 if everything was written */
static inline int ResultsClose(Results *r)
{
  int failed = ferror(r->file);

  if (fclose(r->file)) failed = 1;
  return failed || (strcmp(r->part, r->name) && rename(r->part, r->name));
}
