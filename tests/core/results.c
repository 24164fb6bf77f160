/* Files of results (bench/lib/results.h): the old one remains until the new one is complete */
#include "common.h"
#include "../../bench/lib/results.h"
#include <unistd.h>

static void Holds(const char *name, const char *text)
{
  char  got[64] = "";
  FILE *f       = fopen(name, "r");

  if (f) {
    got[fread(got, 1, sizeof(got) - 1, f)] = 0;
    fclose(f);
  }
  Expect(!strcmp(got, text), "%s holds '%s', not '%s'", name, got, text);
}

static void Write(const char *name, int append, const char *text, const char *meanwhile)
{
  Results r;

  Expect(ResultsOpen(&r, name, append) != NULL, "cannot write %s", name);
  if (!r.file) return;
  fputs(text, r.file);
  fflush(r.file);
  if (meanwhile) Holds(name, meanwhile);
  Expect(!ResultsClose(&r), "%s was not written", name);
}

int main(int argc, char **argv)
{
  char    folder[] = "/tmp/results-XXXXXX", name[64], part[64];
  Results r;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCheck(mkdtemp(folder), PETSC_COMM_SELF, PETSC_ERR_SYS, "No folder %s", folder);
  snprintf(name, sizeof(name), "%s/a.csv", folder);
  snprintf(part, sizeof(part), "%s/a.csv.new", folder);
  Write(name, 0, "first", "first"); /* if no results would be lost, the file can be read at any time */
  Holds(name, "first");
  Write(name, 0, "second", "first");
  Holds(name, "second");
  Expect(access(part, F_OK), "%s is left", part);
  Write(name, 1, "+third", "second+third");
  Expect(ResultsOpen(&r, name, 0) != NULL, "cannot write %s", part); /* interrupted */
  fputs("fourth", r.file);
  fclose(r.file);
  Holds(name, "second+third");
  Holds(part, "fourth");
  Write("/dev/null", 0, "nothing", NULL);
  Expect(access("/dev/null.new", F_OK), "/dev/null was to be replaced");
  snprintf(part, sizeof(part), "%s/none/a.csv", folder);
  Expect(!ResultsOpen(&r, part, 0), "%s was opened", part);
  snprintf(part, sizeof(part), "%s/a.csv.new", folder);
  Expect(!unlink(name) && !unlink(part) && !rmdir(folder), "%s is left", folder);
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
