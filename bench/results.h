/*
   A file of results. If the file exists, the new one is written to FILE.new and renamed when it is complete: an interrupted run leaves the older results as
   they were.
*/
#pragma once

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
  FILE *file;
  char  name[4096], part[4096 + 4];
} Results;

/* NULL on failure, like fopen(); append continues an existing file */
static inline FILE *ResultsOpen(Results *r, const char *name, int append)
{
  struct stat old;

  (void)snprintf(r->name, sizeof(r->name), "%s", name);
  (void)snprintf(r->part, sizeof(r->part), "%s%s", r->name, !append && !stat(name, &old) && S_ISREG(old.st_mode) ? ".new" : "");
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
