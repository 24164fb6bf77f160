/*
   Measures the twins (twins.h) and writes docs/results/twins.md to the standard output: the published statistics, those
   of the twin, and the deviation. Needs no PETSc; the script bench/papers/twins compiles and runs it.

     name...  only these twins
*/
#include <stdint.h>

typedef int32_t PetscInt;

#include "patterns.h"

/* ---------------------------------------------------------------- the table */

static const struct {
  const char *title;
  int         first, last;
} Tables[] = {{"Size and row lengths", TWIN_ROWS, TWIN_SKEW},
              {"Places of the entries", TWIN_BANDWIDTH, TWIN_SIMILARITY}};

static const char *const Names[TWIN_STATISTICS] = {
    "rows", "entries",   "shortest row", "quartile",  "median", "quartile", "longest row", "mean", "standard deviation",
    "skew", "bandwidth", "neighbors",    "similarity"};

static void PrintCell(double published, double twin)
{
  const int whole = published == floor(published) && twin == floor(twin);

  if (fabs(twin - published) <= (whole ? 0.0 : 5.1e-5)) /* published with four decimals */
    printf(" %.9g |", published);
  else if (whole)
    printf(" %.0f, %.0f (%+.2g %%) |", published, twin, 100.0 * (twin - published) / fabs(published));
  else
    printf(" %.4g, %.4g (%+.2g %%) |", published, twin, 100.0 * (twin - published) / fabs(published));
}

static void PrintTables(int n, const int twin[], double (*got)[TWIN_STATISTICS])
{
  for (size_t k = 0; k < sizeof(Tables) / sizeof(Tables[0]); k++) {
    const int place = Tables[k].first == TWIN_BANDWIDTH;

    printf("\n## %s\n| matrix |", Tables[k].title);
    for (int q = Tables[k].first; q <= Tables[k].last; q++) printf(" %s |", Names[q]);
    if (place) printf(" from | unknowns a node |");
    printf("\n|---|");
    for (int q = Tables[k].first; q <= Tables[k].last + 2 * place; q++) printf("---|");
    printf("\n");
    for (int m = 0; m < n; m++) {
      const Twin *T = &Twins[twin[m]];

      printf("| %s |", T->name);
      for (int q = Tables[k].first; q <= Tables[k].last; q++) {
        if (place && TwinPublished(T, q) < 0.0)
          printf(" -, %.4g |", got[m][q]);
        else
          PrintCell(TwinPublished(T, q), got[m][q]);
      }
      if (place) {
        printf(" %s |", T->node ? (T->like ? T->like : "the matrix") : "its own pattern");
        if (T->node)
          printf(" %d |", (int)T->node);
        else
          printf(" - |");
      }
      printf("\n");
    }
  }
}

/* The deviations over the matrices: the median and the worst */
static int CompareReal(const void *a, const void *b)
{
  const double p = *(const double *)a, q = *(const double *)b;

  return (p > q) - (p < q);
}

static void PrintHead(void)
{
  printf("# Twins of the matrices of the two papers\n\n"
         "The SELL-P and EVC-HYB papers measure %d matrices of the SuiteSparse collection, most of which are not at "
         "hand. A twin is a generated matrix with the\n"
         "published statistics of a real one. It shows how a format does on such row lengths and places; it is not "
         "that matrix, and results say so:\n\n",
         TWINS);
  printf("    make bench ARGS='-matrices twin:cant,twin:webbase-1M'     # \"twin:cant (twin), 62451 x 62451, ...\"\n"
         "    make bench ARGS='-matrices twin:all'                      # all, up to 194 million entries\n\n"
         "The real matrix is used instead, and called \"(file)\", where the folder MATRICES (../shared/matrices if "
         "that is not set) has its Matrix Market file,\n"
         "`cant.mtx`.\n\n");
  printf("This page is what `bench/papers/twins` measures on the generated matrices; repeat it with that command. The "
         "same "
         "rows come out on any number of ranks, with\n"
         "32- and 64-bit indices, in C and C++. A cell with two figures is what is published, what the twin has, and "
         "how far off that is; with one, both are\n"
         "the same to the digits published.\n\n"
         "- **bandwidth**: last column less first column of a row, over the number of columns; mean over all rows\n"
         "- **neighbors**: of an entry, how many of the columns just before and after it its row holds too (0 to 2); "
         "mean over all entries\n"
         "- **similarity**: share of a row's entries with an entry at most one column away in the next row that is not "
         "empty; mean over rows not empty\n\n"
         "Where these three are not published for a matrix, they are taken from the one named under \"from\", which is "
         "an assumption; \"its file\" was measured "
         "on\n"
         "cage10.mtx, and \"a guess\" is columns almost anywhere, as the EVC-HYB paper's cache figures for web-Google "
         "suggest.\n\n");
  printf("Not published, hence assumed: unknowns a node (mostly what row lengths are multiples of); that rows close to "
         "each other have like lengths (16 nodes at\n"
         "a time; 64 for webbase-1M, 128 for TSOPF_RS_b2383, 2 for mac_econ_fwd500, 1 for web-Google and Stanford); "
         "that columns are near the diagonal or at the\n"
         "ends of the row's width; that the diagonal is full except for mac_econ_fwd500 and the directed graphs. Not "
         "matched: symmetry (the twins' patterns have "
         "none,\n"
         "the finite element matrices' do), column lengths, values (random). Trefethen_20000 has its own pattern, "
         "which is known. dc1's two longest rows and the\n"
         "limit for the others are from the EVC-HYB paper. Entries are those of the collection; the SELL-P paper's "
         "table has fewer for some, such as 47851783\n"
         "for bone010.\n\n"
         "The shapes behind the twins, in `bench/lib/twins.h`, were fitted to the published figures.\n"
         "`tests/core/twins.c` holds small twins to what is published.\n\n"
         "## How far off\n\nMedian and worst over the matrices for which the statistic is published, and for which it "
         "is worst.\n\n");
}

static void PrintSummary(int n, const int twin[], double (*got)[TWIN_STATISTICS])
{
  printf("| statistic | matrices | same | median | worst | of |\n|---|---|---|---|---|---|\n");
  for (int q = 0; q < TWIN_STATISTICS; q++) {
    double off[sizeof(Twins) / sizeof(Twins[0])], worst = -1.0;
    int    count = 0, exact = 0, which = 0;

    for (int m = 0; m < n; m++) {
      const Twin  *T = &Twins[twin[m]];
      const double p = TwinPublished(T, q), d = fabs(got[m][q] - p);

      if (q >= TWIN_BANDWIDTH && (T->like || p < 0.0)) continue; /* not published for this matrix */
      off[count] = d <= 5.1e-5 ? 0.0 : 100.0 * d / fmax(fabs(p), 1e-300);
      exact += off[count] == 0.0;
      if (off[count] > worst) {
        worst = off[count];
        which = twin[m];
      }
      count++;
    }
    if (!count) continue;
    qsort(off, (size_t)count, sizeof(off[0]), CompareReal);
    printf("| %s%s | %d | %d | %.2g %% | %.2g %% | %s |\n", Names[q],
           q == TWIN_QUARTILE1 ? ", first" : (q == TWIN_QUARTILE3 ? ", third" : ""), count, exact, off[count / 2],
           worst, worst > 0.0 ? Twins[which].name : "");
  }
}

int main(int argc, char **argv)
{
  static double got[sizeof(Twins) / sizeof(Twins[0])][TWIN_STATISTICS];
  int           twin[sizeof(Twins) / sizeof(Twins[0])], n = 0;

  for (int a = 1; a < argc; a++) {
    if (n < TWINS && (twin[n] = TwinFind(argv[a])) >= 0)
      n++;
    else {
      fprintf(stderr, "There is no twin of %s\n", argv[a]);
      return 1;
    }
  }
  if (!n) {
    for (; n < TWINS; n++) twin[n] = n;
  }
  for (int m = 0; m < n; m++) {
    char message[256], name[128];
    Spec s;

    snprintf(name, sizeof(name), "twin:%s", Twins[twin[m]].name);
    if (SpecRead(name, &s, message, sizeof(message)) != SPEC_FOUND || !TwinMeasure(&s, 0, got[m])) {
      fprintf(stderr, "%s is wrong: %s\n", name, message);
      return 1;
    }
    SpecFree(&s);
  }
  if (n == TWINS) PrintHead();
  PrintSummary(n, twin, got);
  PrintTables(n, twin, got);
  return 0;
}
