/* The twins of the papers' matrices (bench/lib/twins.h): small ones have the published row lengths, bandwidth and
   neighbors (docs/results/twins.md says what these are), and the same rows in any order of generation */
#include "common.h"
#include "../../bench/lib/patterns.h"

static const struct {
  const char *name;
  double      bandwidth, neighbors;
} Promised[] = {{"cage10", 0.28543, 0.28187},   {"cant", 0.0086, 1.61575},
                {"raefsky3", 0.0662, 1.916},    {"mac_econ_fwd500", 0.00191, 0.17669},
                {"scircuit", 0.29725, 0.80336}, {"pdb1HYS", 0.12994, 1.83776},
                {"dc1", 0.29725, 0.80336},      {"Trefethen_20000", 0.7436, 0.2885}};

static int ByLength(const void *a, const void *b)
{
  return *(const PetscInt *)a - *(const PetscInt *)b;
}

static void Check(const char *name, const Twin *T, double bandwidth, double neighbors)
{
  Spec    s;
  Row     r[2];
  char    message[256];
  int64_t entries = 0, pairs = 0;
  double  span = 0.0;

  memset(r, 0, sizeof(r));
  Expect(SpecRead(name, &s, message, sizeof(message)) == SPEC_FOUND && s.rows == T->rows, "%s: %s", name, message);
  for (PetscInt row = 0; row < T->rows; row++) {
    RowGenerate(&s, row, &r[0]);
    Expect(!s.table || r[0].n == s.table[row], "%s, row %d: %d entries", name, (int)row, (int)r[0].n);
    Expect(!r[0].n || (r[0].col[0] >= 0 && r[0].col[r[0].n - 1] < T->rows), "%s, row %d: outside", name, (int)row);
    for (PetscInt e = 1; e < r[0].n; e++) {
      Expect(r[0].col[e - 1] < r[0].col[e], "%s, row %d: columns do not ascend", name, (int)row);
      pairs += r[0].col[e] == r[0].col[e - 1] + 1;
    }
    entries += r[0].n;
    span += r[0].n ? (double)(r[0].col[r[0].n - 1] - r[0].col[0]) : 0.0;
    if (row % 997) continue;
    RowGenerate(&s, T->rows - 1 - row, &r[1]); /* a rank generates its own rows only */
    RowGenerate(&s, row, &r[1]);
    Expect(r[0].n == r[1].n && !memcmp(r[0].col, r[1].col, (size_t)r[0].n * sizeof(PetscInt)),
           "%s, row %d: other columns the second time", name, (int)row);
  }
  Expect(entries == T->entries, "%s: %lld entries, published %lld", name, (long long)entries, (long long)T->entries);
  if (s.table) qsort(s.table, (size_t)T->rows, sizeof(*s.table), ByLength);
  for (int q = 0; q < 5 && s.table; q++) {
    const PetscInt length = s.table[(int64_t)q * (T->rows - 1) / 4];

    Expect(length == T->len[q], "%s: quartile %d is %d, published %d", name, q, (int)length, (int)T->len[q]);
  }
  span /= (double)T->rows * (double)T->rows;
  Expect(fabs(span - bandwidth) <= 0.01 * bandwidth, "%s: bandwidth %g, published %g", name, span, bandwidth);
  Expect(fabs(2.0 * (double)pairs / (double)entries - neighbors) <= 0.01 * neighbors, "%s: neighbors %g, published %g",
         name, 2.0 * (double)pairs / (double)entries, neighbors);
  RowFree(&r[0]);
  RowFree(&r[1]);
  SpecFree(&s);
}

int main(int argc, char **argv)
{
  char message[256], name[64];
  Spec s;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  Expect((int)(sizeof(TwinShapes) / sizeof(TwinShapes[0])) == TWINS, "%d shapes for %d twins",
         (int)(sizeof(TwinShapes) / sizeof(TwinShapes[0])), TWINS);
  Expect(SpecRead("twin:none", &s, message, sizeof(message)) == SPEC_WRONG && strstr(message, "none"),
         "an unknown twin: %s", message);
  for (size_t k = 0; k < sizeof(Promised) / sizeof(Promised[0]); k++) {
    const int t = TwinFind(Promised[k].name);

    Expect(t >= 0, "no twin of %s", Promised[k].name);
    snprintf(name, sizeof(name), "twin:%s", Promised[k].name);
    if (t >= 0) Check(name, &Twins[t], Promised[k].bandwidth, Promised[k].neighbors);
  }
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
