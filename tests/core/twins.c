/* The twins of the papers' matrices (bench/lib/twins.h): small ones have the published statistics, and the same rows in any
   order of generation */
#include "common.h"
#include "../../bench/lib/patterns.h"

/* Their largest relative deviation from the published figure; size, quartiles and mean are exact. build/twins.md
   has all of them */
static const struct {
  const char *name;
  double      std, skew, local; /* local: bandwidth, neighbors, similarity */
} Promised[] = {{"cage10", 0.01, 0.02, 0.01},   {"cant", 0.01, 0.02, 0.01},
                {"raefsky3", 0.01, 0.02, 0.01}, {"mac_econ_fwd500", 0.01, 0.02, 0.01},
                {"scircuit", 0.01, 0.25, 0.01}, {"pdb1HYS", 0.01, 0.02, 0.01},
                {"dc1", 0.01, 0.02, 0.01},      {"Trefethen_20000", 1e-4, 1e-4, 0.0}};

static void Compare(const char *name, const Twin *T, const double got[], int statistic, double share)
{
  const double published = TwinPublished(T, statistic);

  Expect(fabs(got[statistic] - published) <= share * fabs(published), "%s, statistic %d: %g, published %g", name,
         statistic, got[statistic], published);
}

int main(int argc, char **argv)
{
  char message[256];
  Spec s;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  Expect((int)(sizeof(TwinShapes) / sizeof(TwinShapes[0])) == TWINS, "%d shapes for %d twins",
         (int)(sizeof(TwinShapes) / sizeof(TwinShapes[0])), TWINS);
  Expect(SpecRead("twin:none", &s, message, sizeof(message)) == SPEC_WRONG && strstr(message, "none"),
         "an unknown twin: %s", message);
  for (size_t k = 0; k < sizeof(Promised) / sizeof(Promised[0]); k++) {
    const int   t = TwinFind(Promised[k].name);
    char        name[64];
    double      got[TWIN_STATISTICS];
    const Twin *T;
    Row         r[2];

    Expect(t >= 0, "no twin of %s", Promised[k].name);
    if (t < 0) continue;
    T = &Twins[t];
    snprintf(name, sizeof(name), "twin:%s", T->name);
    Expect(SpecRead(name, &s, message, sizeof(message)) == SPEC_FOUND, "%s: %s", name, message);
    Expect(TwinMeasure(&s, 0, got), "%s: columns do not ascend, or are not in the matrix", name);
    for (int q = TWIN_ROWS; q <= TWIN_MOST; q++) Compare(name, T, got, q, 0.0);
    Compare(name, T, got, TWIN_MEAN, 1e-5); /* the digits of the published figure */
    Compare(name, T, got, TWIN_STD, Promised[k].std);
    Compare(name, T, got, TWIN_SKEW, Promised[k].skew);
    for (int q = TWIN_BANDWIDTH; q <= TWIN_SIMILARITY && T->node; q++) Compare(name, T, got, q, Promised[k].local);

    /* a rank generates its own rows only */
    memset(r, 0, sizeof(r));
    for (PetscInt row = 0; row < T->rows; row += 997) {
      RowGenerate(&s, row, &r[0]);
      RowGenerate(&s, T->rows - 1 - row, &r[1]);
      RowGenerate(&s, row, &r[1]);
      Expect(r[0].n == r[1].n && !memcmp(r[0].col, r[1].col, (size_t)r[0].n * sizeof(PetscInt)),
             "%s, row %d: other columns the second time", name, (int)row);
    }
    RowFree(&r[0]);
    RowFree(&r[1]);
    SpecFree(&s);
  }
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
