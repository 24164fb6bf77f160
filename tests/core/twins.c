/* The twins of the papers' matrices (bench/lib/twins.h): small ones have the published statistics, and the same rows in any
   order of generation */
#include "common.h"
#include "../../bench/lib/patterns.h"

/* Their largest relative deviation from the published figure; size, quartiles and mean are exact. docs/results/twins.md
   has all of them */
static const struct {
  const char *name;
  double      std, skew, local; /* local: bandwidth, neighbors, similarity */
} Promised[] = {{"cage10", 0.01, 0.02, 0.01},   {"cant", 0.01, 0.02, 0.01},
                {"raefsky3", 0.01, 0.02, 0.01}, {"mac_econ_fwd500", 0.01, 0.02, 0.01},
                {"scircuit", 0.01, 0.25, 0.01}, {"pdb1HYS", 0.01, 0.02, 0.01},
                {"dc1", 0.01, 0.02, 0.01},      {"Trefethen_20000", 1e-4, 1e-4, 0.0}};

/* Statistics of a matrix: rows, entries, quantiles of the row lengths, their mean, standard deviation and skewness, and
   the three of twins.h that describe the positions */
enum { ROWS, ENTRIES, LENGTHS, MEAN = LENGTHS + 5, STD, SKEW, LOCAL, STATISTICS = LOCAL + 3 };

/* A quantile of the row lengths, which are counted by length: interpolated between two lengths, like the published ones */
static double Quantile(const PetscInt64 count[], PetscInt rows, double share)
{
  const double   at    = share * (double)(rows - 1);
  const PetscInt k     = (PetscInt)at;
  PetscInt       below = 0, L = 0, next;

  while (below + count[L] <= k) below += (PetscInt)count[L++];
  next = L;
  if (k + 1 >= below + count[L] && k + 1 < rows) {
    do next++;
    while (!count[next]);
  }
  return (double)L + (at - (double)k) * (double)(next - L);
}

/* What row b adds to the sums of the three statistics; a: the row before that is not empty */
static void AddLocal(const Row *a, const Row *b, PetscInt n, double local[3])
{
  PetscInt same = 0;

  local[0] += (double)(b->col[b->n - 1] - b->col[0]) / (double)n;
  for (PetscInt e = 1; e < b->n; e++) local[1] += 2.0 * (b->col[e] == b->col[e - 1] + 1);
  for (PetscInt e = 0, f = 0; e < a->n; e++) {
    while (f < b->n && b->col[f] < a->col[e] - 1) f++;
    same += f < b->n && b->col[f] <= a->col[e] + 1;
  }
  if (a->n) local[2] += (double)same / (double)a->n;
}

static PetscErrorCode Measure(const char *name, const Spec *s, double got[STATISTICS])
{
  const PetscInt n = s->rows;
  PetscInt64    *count;
  PetscInt       filled = 0;
  Row            r[2];
  int            now = 0;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(n + 1, &count));
  memset(r, 0, sizeof(r));
  for (int k = 0; k < STATISTICS; k++) got[k] = 0.0;
  got[ROWS] = (double)n;
  for (PetscInt row = 0; row < n; row++) {
    Row *b = &r[now];

    RowGenerate(s, row, b);
    got[ENTRIES] += (double)b->n;
    count[PetscMin(b->n, n)]++;
    if (!b->n) continue;
    Expect(b->col[0] >= 0 && b->col[b->n - 1] < n, "%s, row %d: columns outside of the matrix", name, (int)row);
    for (PetscInt e = 1; e < b->n; e++)
      Expect(b->col[e - 1] < b->col[e], "%s, row %d: columns do not ascend", name, (int)row);
    AddLocal(&r[!now], b, n, &got[LOCAL]);
    filled++;
    now = !now;
  }
  for (int q = 0; q < 5; q++) got[LENGTHS + q] = Quantile(count, n, 0.25 * q);
  got[MEAN] = got[ENTRIES] / (double)n;
  for (PetscInt L = 0; L <= n; L++) {
    const double d = (double)L - got[MEAN];

    got[STD] += (double)count[L] * d * d / (double)n;
    got[SKEW] += (double)count[L] * d * d * d / (double)n;
  }
  got[STD] = sqrt(got[STD]);
  if (got[STD] > 0.0) got[SKEW] /= pow(got[STD], 3.0);
  got[LOCAL] /= (double)n;
  got[LOCAL + 1] /= PetscMax(got[ENTRIES], 1.0);
  got[LOCAL + 2] /= (double)PetscMax(filled, 1);
  PetscCall(PetscFree(count));
  RowFree(&r[0]);
  RowFree(&r[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
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
    double      got[STATISTICS];
    const Twin *T;
    Row         r[2];

    Expect(t >= 0, "no twin of %s", Promised[k].name);
    if (t < 0) continue;
    T = &Twins[t];
    snprintf(name, sizeof(name), "twin:%s", T->name);
    Expect(SpecRead(name, &s, message, sizeof(message)) == SPEC_FOUND, "%s: %s", name, message);
    PetscCall(Measure(name, &s, got));
    {
      const double published[STATISTICS] = {(double)T->rows,
                                            (double)T->entries,
                                            (double)T->len[0],
                                            (double)T->len[1],
                                            (double)T->len[2],
                                            (double)T->len[3],
                                            (double)T->len[4],
                                            T->mean,
                                            T->std,
                                            T->skew,
                                            T->local[0],
                                            T->local[1],
                                            T->local[2]};
      const double share[STATISTICS]     = {[MEAN]      = 1e-5, /* the digits of the published figure */
                                            [STD]       = Promised[k].std,
                                            [SKEW]      = Promised[k].skew,
                                            [LOCAL]     = Promised[k].local,
                                            [LOCAL + 1] = Promised[k].local,
                                            [LOCAL + 2] = Promised[k].local};

      for (int q = 0; q < (T->node ? STATISTICS : LOCAL); q++)
        Expect(fabs(got[q] - published[q]) <= share[q] * fabs(published[q]), "%s, statistic %d: %g, published %g", name,
               q, got[q], published[q]);
    }

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
