/*
   Measures the twins (twins.h) and writes docs/results/twins.md to the standard output: the published statistics, those
   of the twin, and the deviation. Needs no PETSc; the script bench/papers/twins compiles and runs it.

     -fit     prints TwinShapes[] for twins.h instead
     -list    prints twin:name,twin:name,... for -matrices
     name...  only these twins
*/
#include <stdint.h>

typedef int32_t PetscInt;

#include "patterns.h"

/* ---------------------------------------------------------------- row lengths: the curves, from mean, deviation and
   skew */

#define CELLS 256

static double CellEnd(double lo, double hi, double steps, int c)
{
  const double half = 0.5 * steps,
               far  = (pow(1.0 + half, 2.0 * (c <= CELLS / 2 ? c : CELLS - c) / CELLS) - 1.0) / half * 0.5 * (hi - lo);

  return c <= CELLS / 2 ? lo + far : hi - far;
}

/* Mean, deviation and skew of the lengths that TwinLength() gives */
static void CurveMoments(const Twin *T, const TwinShape *S, double moment[3])
{
  const double nodes = (double)TwinNodes(T), alone[2] = {(double)T->len[4], (double)T->second}, unit = (double)T->unit;
  double       raw[3] = {0.0, 0.0, 0.0}, rest = 1.0;

  for (int a = 0; a < 2; a++) {
    if (alone[a] == 0.0) continue;
    for (int k = 0; k < 3; k++) raw[k] += pow(alone[a], k + 1) / nodes;
    rest -= 1.0 / nodes;
  }
  for (int q = 0; q < 4; q++) {
    double       hi, before = 0.0;
    const double lo = TwinQuarter(T, q, &hi), d = hi - lo, first = floor(lo / unit + 0.5),
                 steps = floor(hi / unit + 0.5) - first;
    /* one cell for each length, or wider cells, which are narrow at both ends */
    const int cells = steps < CELLS ? (int)steps + 1 : CELLS;

    for (int c = 0; c < cells; c++) {
      double to, length, share = 1.0;

      if (steps < CELLS) {
        length = d > 0.0 ? fmax(T->len[0], unit * (first + c)) : lo;
        to     = unit * (first + c + 0.5);
      } else {
        to     = CellEnd(lo, hi, steps, c + 1);
        length = 0.5 * (CellEnd(lo, hi, steps, c) + to);
      }
      if (c < cells - 1)
        share = to <= lo
                    ? 0.0
                    : (to < hi ? 1.0 / (1.0 + exp(-(S->middle[q] + TwinLogit((to - lo) / d) / S->steep[q]))) : 1.0);
      if (q == 3 && share > 1.0 - 4.0 / nodes) share = 1.0; /* less than one node is left */
      for (int k = 0; k < 3; k++) raw[k] += 0.25 * rest * (share - before) * pow(length, k + 1);
      before = share;
    }
  }
  moment[0] = raw[0];
  moment[1] = sqrt(fmax(1e-300, raw[1] - raw[0] * raw[0]));
  moment[2] = (raw[2] - 3 * raw[0] * raw[1] + 2 * raw[0] * raw[0] * raw[0]) / pow(moment[1], 3);
}

/* x: logarithms of the steepnesses, and the middles up to a common term, which the mean determines */
static double CurveMisfit(const Twin *T, const double x[8], TwinShape *S)
{
  double least = -40.0, greatest = 40.0, m[3], misfit;

  for (int step = 0; step < 40; step++) { /* later middles give a smaller mean */
    const double common = 0.5 * (least + greatest);

    for (int q = 0; q < 4; q++) {
      S->steep[q]  = exp(x[q]);
      S->middle[q] = x[4 + q] + common;
    }
    CurveMoments(T, S, m);
    if (m[0] > T->mean)
      least = common;
    else
      greatest = common;
  }
  misfit = 1e4 * pow(m[0] / T->mean - 1, 2) + 1e2 * pow(m[1] / T->std - 1, 2) +
           pow((m[2] - T->skew) / (1 + fabs(T->skew)), 2);
  for (int q = 0; q < 4; q++) misfit += 1e-6 * (x[q] * x[q] + S->middle[q] * S->middle[q]);
  return misfit;
}

static void FitLengths(const Twin *T, TwinShape *S)
{
  double   x[8] = {0, 0, 0, 0, 0, 0, 0, 0}, best = CurveMisfit(T, x, S), step = 2.0;
  uint64_t random = 7;

  for (int trial = 0; trial < 4000; trial++) { /* random steps, which become shorter when they no longer help */
    double    y[8], got;
    TwinShape other = *S;

    for (int k = 0; k < 8; k++) y[k] = x[k] + (RandomInt(&random, 3) ? 0.0 : step * (2.0 * RandomReal(&random) - 1.0));
    for (int q = 0; q < 4; q++) y[q] = fmin(3.0, fmax(-3.0, y[q]));
    got = CurveMisfit(T, y, &other);
    if (got < best) {
      best = got;
      memcpy(x, y, sizeof(x));
      step = fmin(4.0, step * 1.5);
    } else
      step = fmax(1e-3, step * 0.98);
    if (trial % 1000 == 999) step = 2.0;
  }
  CurveMisfit(T, x, S);
}

/* ---------------------------------------------------------------- places: run, rate and width, from neighbors,
   similarity and bandwidth */

static void Limit(double *x, double least, double most)
{
  *x = fmin(most, fmax(least, *x));
}

static void FitPlaces(int t)
{
  const Twin    *T       = &Twins[t];
  TwinShape     *S       = &TwinShapes[t], best;
  const PetscInt windows = T->entries < 30000000 ? 0 : (PetscInt)(20000000 / T->mean / 1024);
  const double   nodes = (double)TwinNodes(T), *wanted = T->local;
  double         least = 1e99;

  S->run   = fmax(1.0, 2.0 / (2.0 - wanted[1]) / T->node);
  S->rate  = fmin(1.0, T->node * (1.0 - wanted[2]));
  S->width = fmin(1.0, wanted[0] * 1.1);
  S->far   = 0.375;
  best     = *S;
  for (int step = 0; step < 20; step++) {
    const double damp = step < 4 ? 1.0 : 0.6;
    double       got[TWIN_STATISTICS], misfit = 0.0;
    Spec         s;

    memset(&s, 0, sizeof(s));
    s.generator = &GeneratorTwin;
    TwinSpec(t, &s);
    TwinMeasure(&s, windows, got);
    SpecFree(&s);
    for (int k = 0; k < 3; k++) misfit += fabs(got[TWIN_BANDWIDTH + k] / wanted[k] - 1.0);
    if (misfit < least) {
      least = misfit;
      best  = *S;
    }
    S->run *= pow((2.0 - got[TWIN_NEIGHBORS]) / (2.0 - wanted[1]), damp);
    S->rate *= pow((1.0 - wanted[2]) / (1.0 - got[TWIN_SIMILARITY]), damp);
    S->width *= pow(wanted[0] / got[TWIN_BANDWIDTH], damp);
    if (S->width > 1.0) S->far = fmin(1.0, S->far * S->width);
    Limit(&S->run, 1.0, 1e4);
    Limit(&S->rate, 1.0 / 4096, 1.0);
    Limit(&S->width, fmin(1.0, 2.0 * T->mean / T->node / nodes), 1.0);
  }
  *S = best;
}

static void Fit(int t)
{
  TwinShape *S = &TwinShapes[t];

  memset(S, 0, sizeof(*S));
  if (Twins[t].node) {
    FitLengths(&Twins[t], S);
    FitPlaces(t);
  }
  printf("  {{%.6g, %.6g, %.6g, %.6g}, {%.6g, %.6g, %.6g, %.6g}, %.6g, %.6g, %.6g, %.6g}, /* %s */\n", S->steep[0],
         S->steep[1], S->steep[2], S->steep[3], S->middle[0], S->middle[1], S->middle[2], S->middle[3], S->run, S->rate,
         S->width, S->far, Twins[t].name);
  fflush(stdout);
}

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
         "    make bench ARGS=\"-matrices $(bench/papers/twins -list)\"         # all, up to 194 million entries\n\n"
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
         "The shapes behind the twins are in `bench/lib/twins.h`; `bench/papers/twins -fit` finds them again from the "
         "published "
         "figures, in some minutes.\n"
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
  int           twin[sizeof(Twins) / sizeof(Twins[0])], n = 0, fit = 0;

  for (int a = 1; a < argc; a++) {
    if (!strcmp(argv[a], "-fit"))
      fit = 1;
    else if (!strcmp(argv[a], "-list")) {
      for (int t = 0; t < TWINS; t++) printf("%stwin:%s", t ? "," : "", Twins[t].name);
      printf("\n");
      return 0;
    } else if (n < TWINS && (twin[n] = TwinFind(argv[a])) >= 0)
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

    if (fit) {
      Fit(twin[m]);
      continue;
    }
    snprintf(name, sizeof(name), "twin:%s", Twins[twin[m]].name);
    if (SpecRead(name, &s, message, sizeof(message)) != SPEC_FOUND || !TwinMeasure(&s, 0, got[m])) {
      fprintf(stderr, "%s is wrong: %s\n", name, message);
      return 1;
    }
    SpecFree(&s);
  }
  if (fit) return 0;
  if (n == TWINS) PrintHead();
  PrintSummary(n, twin, got);
  PrintTables(n, twin, got);
  return 0;
}
