/*
   Twins of the matrices of the two papers: generated matrices with the published statistics of the real ones, used if
   there is no file of the real one. docs/results/twins.md compares them with the published statistics.

   Twins[] has the published statistics: size, row lengths, and three means that describe the positions of the entries.
   These depend only on the pattern:

     bandwidth   (last column - first column) / columns, over all rows
     neighbors   number of adjacent columns of an entry, before and after it, in which its row has entries, 0 to 2, over all entries
     similarity  fraction of a row's entries for which the next nonempty row has an entry at most one column away, over nonempty rows

   TwinShapes[] are the parameters, fitted to them, that give the twins these statistics.

   The sorted row lengths follow, from each quartile to the next, a logistic curve of the logit of the rank. Such curves
   include a straight line, a step and the tail of a power law. The lengths are assigned to the rows in chunks, so that
   rows close to each other have similar lengths. The rows of a node (the unknowns of a finite element's node) are
   equal. A row consists of runs of columns. Each run follows a track, which keeps its position for 1/rate nodes, so
   that rows share it. Some tracks are at the ends of the row's width, like the neighboring planes of a grid; the others
   are near the diagonal. The runs of very long rows are spread over all columns. The pattern of a twin is not
   symmetric, even if the matrix's pattern is.
*/
#pragma once

#include "rows.h"

typedef struct {
  const char *name;
  PetscInt    rows; /* and columns */
  int64_t     entries;
  PetscInt    len[5]; /* smallest, quartiles, largest */
  double      mean, std, skew;
  double      local[3];    /* bandwidth, neighbors, similarity; negative: not needed */
  const char *like;        /* the matrix from which local is taken, if it is not published for this one */
  PetscInt    node;        /* unknowns per node, inferred from the common divisor of the lengths; 0: no tracks */
  PetscInt    unit;        /* common divisor of the row lengths */
  PetscInt    chunk;       /* nodes */
  int         diagonal;    /* whether all diagonal entries exist */
  PetscInt    second, top; /* the second longest row, if it is published, and the longest of the others */
} Twin;

typedef struct {
  double steep[4], middle[4]; /* parameters of the row lengths, per quarter */
  double run, rate;           /* nodes per run, fraction of the tracks that end at a node */
  /* width of a row as a fraction of the matrix, and the fraction of its tracks that are at the ends of this width */
  double width, far;
} TwinShape;

// clang-format off
static const Twin Twins[] = {
    {"audikw_1", 943695, 77651847, {21, 57, 69, 81, 345}, 82.2849, 42.4453, 2.2678,
     {0.62315, 1.5811, 0.8197}, NULL, 3, 3, 16, 1, 0, 345},
    {"bone010", 986703, 71666325, {12, 72, 81, 81, 81}, 72.6321, 15.8104, -1.8383,
     {0.01817, 1.76984, 0.91514}, NULL, 3, 3, 16, 1, 0, 81},
    {"boneS10", 914898, 55468422, {12, 48, 66, 81, 81}, 60.628, 20.374, -0.537,
     {0.01817, 1.76984, 0.91514}, "bone010", 3, 3, 16, 1, 0, 81},
    {"bmw3_2", 227362, 11288630, {2, 45, 54, 54, 336}, 49.6505, 13.8112, 0.9411,
     {0.05932, 1.87835, 0.94981}, "pwtk", 3, 3, 16, 1, 0, 336},
    {"bmwcra_1", 148770, 10644002, {24, 54, 81, 81, 351}, 71.5467, 18.508, 5.3946,
     {0.01817, 1.76984, 0.91514}, "bone010", 3, 3, 16, 1, 0, 351},
    {"cage10", 11397, 150645, {5, 11, 13, 16, 25}, 13.218, 3.9837, 0.2971,
     {0.28543, 0.28187, 0.7175}, "its file", 1, 1, 16, 1, 0, 25},
    {"cant", 62451, 4007383, {1, 51, 74, 75, 78}, 64.1684, 14.0563, -0.9085,
     {0.0086, 1.61575, 0.91473}, NULL, 3, 1, 16, 1, 0, 78},
    {"crankseg_2", 63838, 14148858, {48, 154, 195, 282, 3423}, 221.6369, 95.8757, 2.8513,
     {0.86577, 1.7315, 0.86687}, NULL, 3, 1, 16, 1, 0, 3423},
    {"Cube_Coup_dt0", 2164760, 127206144, {24, 60, 60, 60, 68}, 58.7622, 4.4716, -3.011,
     {0.01817, 1.76984, 0.91514}, "bone010", 4, 4, 16, 1, 0, 68},
    {"dielFilterV2real", 1157456, 48538952, {6, 32, 32, 60, 110}, 41.9359, 16.1486, 0.9212,
     {0.5105, 0.8487, 0.54912}, NULL, 1, 1, 16, 1, 0, 110},
    {"F1", 343791, 26837113, {24, 57, 69, 81, 435}, 78.0623, 40.8091, 2.7617,
     {0.62315, 1.5811, 0.8197}, "audikw_1", 3, 3, 16, 1, 0, 435},
    {"Fault_639", 638802, 28614564, {15, 45, 45, 45, 318}, 44.7941, 5.1612, 2.7624,
     {0.01817, 1.76984, 0.91514}, "bone010", 3, 3, 16, 1, 0, 318},
    {"Hook_1498", 1498023, 60917445, {15, 30, 39, 54, 93}, 40.6652, 13.9538, 0.0446,
     {0.01817, 1.76984, 0.91514}, "bone010", 3, 3, 16, 1, 0, 93},
    {"inline_1", 503712, 36816342, {18, 54, 66, 81, 843}, 73.0901, 35.6321, 2.4508,
     {0.62315, 1.5811, 0.8197}, "audikw_1", 3, 3, 16, 1, 0, 843},
    {"ldoor", 952203, 46522475, {28, 35, 49, 63, 77}, 48.8577, 11.9466, 0.0203,
     {0.20421, 1.79674, 0.90605}, NULL, 7, 7, 16, 1, 0, 77},
    {"m_t1", 97578, 9753570, {48, 78, 84, 126, 237}, 99.9567, 28.5577, 1.0588,
     {0.04588, 1.71238, 0.87344}, "shipsec1", 3, 3, 16, 1, 0, 237},
    {"ML_Geer", 1504002, 110879972, {26, 74, 74, 74, 74}, 73.7233, 2.5069, -10.3106,
     {0.01817, 1.76984, 0.91514}, "bone010", 2, 2, 16, 1, 0, 74},
    {"pwtk", 217918, 11634424, {2, 54, 54, 54, 180}, 53.389, 4.7439, -1.7245,
     {0.05932, 1.87835, 0.94981}, NULL, 6, 6, 16, 1, 0, 180},
    {"shipsec1", 140874, 7813404, {24, 54, 54, 54, 102}, 55.4638, 11.0748, 0.7188,
     {0.04588, 1.71238, 0.87344}, NULL, 6, 6, 16, 1, 0, 102},
    {"Trefethen_20000", 20000, 554466, {16, 27, 28, 28, 29}, 27.7233, 1.174, -2.4542,
     {-1, -1, -1}, NULL, 0, 1, 16, 1, 0, 29},
    {"pdb1HYS", 36417, 4344765, {18, 99, 123, 144, 204}, 119.306, 31.8604, -0.4965,
     {0.12994, 1.83776, 0.93173}, NULL, 3, 3, 16, 1, 0, 204},
    {"TSOPF_RS_b2383", 38120, 16171169, {2, 4, 6, 983, 983}, 424.2174, 484.2375, 0.2873,
     {0.48326, 1.9799, 0.92741}, NULL, 1, 1, 128, 1, 0, 983},
    {"rma10", 46835, 2374001, {4, 29, 46, 70, 145}, 50.6886, 27.7806, 0.9177,
     {0.18777, 1.71972, 0.86641}, NULL, 1, 1, 16, 1, 0, 145},
    {"cage14", 1505785, 27130349, {5, 14, 18, 21, 41}, 18.0174, 5.3678, 0.412,
     {0.28543, 0.28187, 0.7175}, "cage10", 1, 1, 16, 1, 0, 41},
    {"webbase-1M", 1000005, 3105536, {1, 2, 2, 2, 4700}, 3.1055, 25.3452, 121.4943,
     {0.15246, 0.31568, 0.9361}, NULL, 1, 1, 64, 1, 0, 4700},
    {"raefsky3", 21200, 1488768, {32, 72, 72, 72, 80}, 70.2249, 6.327, -3.3013,
     {0.0662, 1.916, 0.96302}, NULL, 8, 8, 16, 1, 0, 80},
    {"cop20k_A", 121192, 2624331, {0, 18, 23, 23, 81}, 21.6543, 13.7927, 0.4289,
     {0.62306, 1.09583, 0.6334}, NULL, 1, 1, 16, 1, 0, 81},
    {"msdoor", 415863, 20240935, {28, 35, 49, 63, 77}, 48.6721, 11.71, 0.0607,
     {0.20421, 1.79674, 0.90605}, "ldoor", 7, 7, 16, 1, 0, 77},
    {"scircuit", 170998, 958936, {1, 4, 5, 6, 353}, 5.6079, 4.3922, 20.2559,
     {0.29725, 0.80336, 0.63302}, NULL, 1, 1, 16, 1, 0, 353},
    {"torso1", 116158, 8516500, {9, 9, 9, 9, 3263}, 73.3182, 419.5879, 6.5707,
     {0.18777, 1.71972, 0.86641}, "rma10", 1, 1, 16, 1, 0, 3263},
    {"Stanford", 281903, 2312497, {0, 1, 2, 4, 38606}, 8.2032, 166.3316, 116.2393,
     {0.35, 0.05, 0.08}, "web-Google", 1, 1, 1, 0, 0, 38606},
    {"pre2", 659033, 5959282, {1, 5, 6, 8, 628}, 9.0425, 22.1217, 25.6183,
     {0.29725, 0.80336, 0.63302}, "scircuit", 1, 1, 16, 1, 0, 628},
    {"mac_econ_fwd500", 206500, 1273389, {1, 3, 5, 8, 44}, 6.1665, 4.4359, 3.1702,
     {0.00191, 0.17669, 0.33051}, NULL, 1, 1, 2, 0, 0, 44},
    {"dc1", 116835, 766396, {1, 2, 5, 7, 114190}, 6.5596, 361.4981, 288.7586,
     {0.29725, 0.80336, 0.63302}, "scircuit", 1, 1, 16, 1, 47193, 288},
    {"indochina-2004", 7414866, 194109311, {0, 1, 9, 28, 6985}, 26.1784, 215.83, 30.8236,
     {0.00712, 1.3266, 0.65266}, "Stanford_Berkeley", 1, 1, 16, 0, 0, 6985},
    {"web-Google", 916428, 5105039, {0, 1, 3, 9, 456}, 5.5706, 6.5565, 4.9974,
     {0.35, 0.05, 0.08}, "a guess", 1, 1, 1, 0, 0, 456},
    {"Stanford_Berkeley", 683446, 7583376, {0, 1, 2, 5, 83448}, 11.0958, 284.8321, 144.0601,
     {0.00712, 1.3266, 0.65266}, NULL, 1, 1, 16, 0, 0, 83448},
    {"RM07R", 381689, 37464962, {1, 1, 125, 125, 295}, 98.1557, 68.685, -0.245,
     {0.0662, 1.916, 0.96302}, "raefsky3", 1, 1, 16, 1, 0, 295},
};
// clang-format on

/* In the order of Twins[] */
// clang-format off
static const TwinShape TwinShapes[] = {
    {{0.451987, 0.526849, 0.242529, 0.67034},
     {-4.57986, 6.75157, -8.08041, 2.3161}, 1.61724, 0.539307, 0.700529, 0.375},
    {{0.744102, 2.48771, 0.995076, 0.998286},
     {-0.752677, -2.48647, -0.0192394, 0.0200498}, 2.96795, 0.228321, 0.024703, 0.375},
    {{0.228362, 0.185381, 6.99111, 1.0637},
     {0.243952, -0.221873, -0.362295, 0.0307112}, 3.0244, 0.226937, 0.0276247, 0.375},
    {{19.1983, 0.257734, 0.995638, 0.792097},
     {-1.37304, 1.47161, -4.23289e-06, 6.1381}, 6.25957, 0.096772, 0.180064, 0.375},
    {{0.891661, 0.142308, 0.999795, 1.61381},
     {-3.73321, 0.599146, -0.000309688, 4.47088}, 2.98, 0.231666, 0.0239993, 0.375},
    {{0.0498086, 2.98156, 2.90293, 9.81365}, {5.09664, 0.226916, -4.05622, 1.88828}, 1.17991, 0.29983, 0.345815, 0.375},
    {{6.74937, 20.0855, 0.999493, 4.58554},
     {-3.04266, 1.44508, -3.08582, -2.10248}, 1.77906, 0.21127, 0.00933587, 0.375},
    {{0.0542041, 2.16574, 0.152889, 0.442225},
     {-3.16146, -4.57539, -0.246869, 9.44282}, 2.52043, 0.394298, 0.911402, 0.375},
    {{0.712278, 0.9998, 0.999734, 0.137601},
     {-2.71274, -0.00117193, -0.000536398, 8.53474}, 2.27401, 0.305266, 0.026963, 0.375},
    {{3.83425, 1.00736, 4.57128, 16.2582},
     {-1.90499, -0.00339555, 0.181047, 2.92872}, 1.75767, 0.477406, 0.548152, 0.375},
    {{0.25065, 2.9464, 3.13651, 0.642721}, {-2.28341, -1.20274, 4.65786, 3.39191}, 1.61888, 0.542621, 0.708202, 0.375},
    {{13.0887, 1.00065, 0.999917, 0.71208},
     {-2.41659, -7.7449e-05, -3.90745e-05, 8.18989}, 2.97061, 0.225654, 0.0324579, 0.375},
    {{0.16224, 4.54239, 3.02117, 6.52271}, {-2.07348, 2.73734, -4.08662, 4.21582}, 3.11667, 0.219577, 0.0363284, 0.375},
    {{0.0507679, 0.262021, 5.50409, 0.475032},
     {2.41154, 0.125432, -2.08682, 6.95034}, 1.6208, 0.539761, 0.727166, 0.375},
    {{1.00403, 3.54384, 3.33745, 2.8003}, {-2.49857, -0.318493, 0.451247, 3.60898}, 1.47466, 0.651349, 0.384548, 0.375},
    {{18.9111, 2.36548, 20.0855, 11.7115}, {-1.93065, 4.32909, -1.23212, 3.05764}, 2.37075, 0.371823, 0.0517429, 0.375},
    {{1.64452, 1.00001, 0.999991, 1.00004},
     {-4.25542, 1.59292e-05, 6.12912e-05, 9.00483e-05}, 4.55269, 0.154155, 0.0240515, 0.375},
    {{1.42566, 0.999988, 1.00003, 1.27306},
     {-3.36442, -0.000127239, -8.72335e-05, 6.61402}, 2.90178, 0.262554, 0.161682, 0.375},
    {{8.39395, 0.999931, 0.999583, 1.24186},
     {-1.34611, -0.000438339, 0.000119424, 1.43952}, 1.17952, 0.786834, 0.0625734, 0.375},
    {{0, 0, 0, 0}, {0, 0, 0, 0}, 0, 0, 0, 0},
    {{1.38794, 0.311476, 13.8842, 0.69653},
     {-1.45589, 0.737231, 0.614522, 2.20052}, 4.28384, 0.185098, 0.163913, 0.375},
    {{2.39968, 2.39856, 20.0855, 0.99995}, {4.54041, 4.53709, -0.937797, -6.32252e-05}, 121.786, 0.173634, 1, 1},
    {{0.0579937, 0.373824, 7.1925, 17.845},
     {-2.63585, -0.0444487, -2.30482, 1.88052}, 7.68305, 0.119567, 0.300939, 0.375},
    {{0.338803, 0.119498, 2.13851, 0.958858},
     {-2.21122, -1.08906, -3.82005, 2.52672}, 1.17686, 0.293553, 0.322631, 0.375},
    {{0.998448, 0.928022, 1.04249, 0.943536},
     {1.03226, 0.265549, 0.109094, 9.15619}, 1.26937, 0.000959853, 0.989622, 0.400267},
    {{1.07075, 0.999921, 1.00027, 1.00001},
     {-1.88369, 0.000317552, 0.000498858, 1.99856}, 3.24798, 0.267326, 0.178566, 0.375},
    {{0.735916, 1.46754, 1.00013, 0.330821},
     {2.11801, 3.14308, 0.00309372, 2.56076}, 2.28474, 0.431099, 0.93167, 0.375},
    {{0.998665, 0.580409, 1.32514, 1.93114}, {-2.61951, 0.190375, 0.215984, 5.04831}, 1.473, 0.660385, 0.384229, 0.375},
    {{0.12087, 1.34934, 0.783087, 0.749324},
     {-7.53865, -7.45176, -7.78359, 7.93838}, 1.82823, 0.453732, 0.834135, 0.375},
    {{0.999764, 1.00015, 1.00018, 6.58889},
     {0.000339685, -0.000784591, -0.000175738, 2.48744}, 7.73322, 0.222933, 0.911061, 0.375},
    {{0.9349, 1.08509, 2.62705, 0.991933}, {-2.33866, -2.40044, -2.91949, 9.68622}, 1.0293, 0.967344, 0.931081, 0.375},
    {{0.0821446, 1.01656, 2.19971, 0.984702}, {0.128021, 4.90869, 5.88273, 5.27634}, 1.76337, 0.43404, 0.725717, 0.375},
    {{0.326756, 5.27987, 2.53685, 1.33992},
     {0.223126, -0.218903, -5.33326, 3.21588}, 1.11737, 0.711549, 0.00327138, 0.375},
    {{0.999961, 0.993265, 0.993939, 1.55938},
     {-0.0865767, -0.139148, -0.0622366, 5.38388}, 1.51703, 0.549726, 0.879303, 0.375},
    {{1.1853, 2.84721, 0.868535, 2.85862},
     {-2.36129, -2.45273, -4.15172, 5.34293}, 3.10019, 0.337628, 0.0095856, 0.375},
    {{1.0158, 0.189029, 0.699907, 0.463603}, {-3.8545, -1.20121, 1.93108, 10.1302}, 1.03189, 1, 0.809736, 0.375},
    {{0.994709, 0.969097, 1.75322, 0.998334},
     {-0.840956, -1.25018, -2.40605, 10.0898}, 3.38534, 0.337491, 0.0326902, 0.375},
    {{0.999938, 1.33145, 0.99984, 0.354261},
     {0.000233768, -1.05404, -0.000360516, 2.26275}, 28.1781, 0.0206701, 0.162046, 0.375},
};
// clang-format on

#define TWINS     ((int)(sizeof(Twins) / sizeof(Twins[0])))
#define TWIN_RUNS 512

/* -1: there is no twin of this name */
static inline int TwinFind(const char *name)
{
  int t = TWINS - 1;

  while (t >= 0 && strcmp(name, Twins[t].name)) t--;
  return t;
}

/* ---------------------------------------------------------------- row lengths */

static inline PetscInt TwinNodes(const Twin *T)
{
  return T->node ? (T->rows + T->node - 1) / T->node : T->rows;
}

static inline double TwinLogit(double t)
{
  return log(t / (1.0 - t));
}

/* Where the sorted lengths of a quarter of the nodes begin and end */
static inline double TwinQuarter(const Twin *T, int q, double *hi)
{
  *hi = (double)(q < 3 ? T->len[q + 1] : T->top);
  return (double)T->len[q];
}

/* The length of the node with number k of n, sorted by length. The longest lengths and the quartiles are reproduced
   exactly */
static inline PetscInt TwinLength(const Twin *T, const TwinShape *S, PetscInt k, PetscInt n)
{
  const double u = 4.0 * ((double)k + 0.5) / (double)n, unit = (double)T->unit;
  const int    q = u < 4.0 ? (int)u : 3;
  double       lo, hi;
  PetscInt     L;

  if (k == n - 1) return T->len[4];
  if (k == n - 2 && T->second) return T->second;
  for (int edge = 0; edge < 4; edge++) {
    const double at = 0.25 * edge * (double)(n - 1);

    if (fabs((double)k - at) <= 1.0) return T->len[edge];
  }
  lo = TwinQuarter(T, q, &hi);
  L  = (PetscInt)(unit *
                 floor((lo + (hi - lo) / (1.0 + exp(S->steep[q] * (S->middle[q] - TwinLogit(u - q))))) / unit + 0.5));
  return L < T->len[0] ? T->len[0] : (L > T->len[4] ? T->len[4] : L);
}

/* Whether two lengths are on the same sides of the quartiles */
static inline int TwinSameQuarter(const Twin *T, PetscInt a, PetscInt b)
{
  for (int q = 1; q < 4; q++) {
    if ((a < T->len[q]) != (b < T->len[q]) || (a > T->len[q]) != (b > T->len[q])) return 0;
  }
  return 1;
}

/* len[row]; their sum is exact */
static inline void TwinLengths(const Twin *T, const TwinShape *S, PetscInt len[])
{
  const PetscInt node = T->node, nodes = TwinNodes(T), chunks = (nodes + T->chunk - 1) / T->chunk;
  PetscInt      *chunk = (PetscInt *)PatternRealloc(NULL, (size_t)chunks * sizeof(*chunk)), row = 0;
  uint64_t       random = 5;
  int64_t        rest   = T->entries;

  for (PetscInt c = 0; c < chunks; c++) chunk[c] = c;
  for (PetscInt c = chunks - 1; c > 0; c--) {
    const PetscInt other = RandomInt(&random, c + 1), t = chunk[c];

    chunk[c]     = chunk[other];
    chunk[other] = t;
  }
  for (PetscInt c = 0; c < chunks; c++) {
    for (PetscInt k = chunk[c] * T->chunk; k < nodes && k < (chunk[c] + 1) * T->chunk; k++) {
      const PetscInt L = TwinLength(T, S, k, nodes);

      for (PetscInt d = 0; d < node && row < T->rows; d++) {
        rest -= L;
        len[row++] = L;
      }
    }
  }
  free(chunk);
  /* Corrects the sum by changing lengths all over the matrix: first in whole nodes, then in single rows, within the
     quarters if that is enough, and never of the shortest and longest rows */
  for (int pass = 0; pass < 4 && rest; pass++) {
    const PetscInt unit = pass % 2 ? 1 : T->unit, rows = pass % 2 ? 1 : node;

    for (PetscInt trial = 0; trial < 8 * nodes; trial++) {
      const PetscInt r = RandomInt(&random, T->rows / rows) * rows, sign = rest < 0 ? -1 : 1, L = len[r] + sign * unit;

      if (sign * rest < unit * rows) break;
      if (len[r] <= T->len[0] || len[r] >= T->top || L <= T->len[0] || L >= T->top ||
          (pass < 2 && !TwinSameQuarter(T, len[r], L)))
        continue;
      for (PetscInt d = 0; d < rows; d++) len[r + d] = L;
      rest -= sign * unit * rows;
    }
  }
}

/* ---------------------------------------------------------------- columns */

static inline uint64_t TwinHash(uint64_t a, uint64_t b)
{
  uint64_t state = a * 0xD1342543DE82EF95ull + b * 0xAF251AF3B0F025B5ull;

  return RandomNext(&state);
}

typedef struct { /* the runs of a row, ascending, with at least one column between them */
  PetscInt n, left, columns, start[TWIN_RUNS], end[TWIN_RUNS];
} TwinRuns;

/* Adds a run, or as much of it as the row still lacks; nothing if it would touch another run */
static inline void TwinRunAdd(TwinRuns *R, PetscInt start, PetscInt len)
{
  PetscInt k = R->n, end;

  if (len > R->left) len = R->left;
  if (start + len > R->columns) start = R->columns - len;
  if (start < 0 || len <= 0 || R->n == TWIN_RUNS) return;
  end = start + len;
  while (k > 0 && R->start[k - 1] > start) k--;
  if ((k > 0 && R->end[k - 1] >= start) || (k < R->n && R->start[k] <= end)) return;
  memmove(R->start + k + 1, R->start + k, (size_t)(R->n - k) * sizeof(R->start[0]));
  memmove(R->end + k + 1, R->end + k, (size_t)(R->n - k) * sizeof(R->end[0]));
  R->start[k] = start;
  R->end[k]   = end;
  R->n++;
  R->left -= len;
}

/* Extends the runs until the row has all of its entries */
static inline void TwinRunsGrow(TwinRuns *R)
{
  for (PetscInt k = 0; k < R->n && R->left; k++) {
    const PetscInt room = (k + 1 < R->n ? R->start[k + 1] : R->columns) - R->end[k],
                   add  = room < R->left ? room : R->left;

    R->end[k] += add;
    R->left -= add;
  }
  if (R->left) R->start[0] -= R->left;
}

static inline PetscInt TwinClamp(double at, PetscInt most)
{
  return at < 0.0 ? 0 : (at > (double)most ? most : (PetscInt)at);
}

/* 0 <= . < 1 from some bits of a hash */
static inline double TwinPart(uint64_t hash, int shift)
{
  return (double)((hash >> shift) & 0xFFFFF) * (1.0 / 1048576.0);
}

static inline void TwinRowTracks(const Twin *T, const TwinShape *S, PetscInt row, PetscInt len, Row *r)
{
  const PetscInt b = T->node, nodes = TwinNodes(T), node = row / b;
  const double   runs = (double)len / ((double)b * S->run), width = S->width * (double)nodes;
  double         near = 8.0 * T->mean / (double)b;
  TwinRuns       R;

  R.n       = 0;
  R.left    = len;
  R.columns = T->rows;
  while (near * (double)b < 4.0 * (double)len) near *= 2.0;
  if (near > width) near = width;
  if (T->diagonal) { /* a run that keeps its position for as many nodes as it has */
    const PetscInt most = (PetscInt)ceil(S->run), first = node / most * most,
                   n = (PetscInt)(S->run + TwinPart(TwinHash((uint64_t)first, 0), 0));

    TwinRunAdd(&R, (node < first + n && len >= n * b ? first : node) * b, n * b);
  }
  for (PetscInt t = 1; R.left && (double)t < 4.0 * runs + 64.0; t++) {
    const double   phase = TwinPart(TwinHash((uint64_t)t, 1), 0);
    const PetscInt epoch = (PetscInt)((double)node * S->rate + phase);
    const double   at    = ((double)epoch + 0.5 - phase) / S->rate; /* the node in the middle of the epoch */
    const uint64_t h     = TwinHash((uint64_t)t + 2, (uint64_t)epoch);
    const PetscInt n     = (PetscInt)(S->run + TwinPart(h, 0));
    const double   part = TwinPart(h, 20), kind = TwinPart(h, 40) / S->far; /* kind < 1: at an end */
    const double   w = kind < 1.0 ? width : near, x = kind < 0.5 ? 0.1 * part : (kind < 1.0 ? 1.0 - 0.1 * part : part);

    TwinRunAdd(&R, TwinClamp((double)TwinClamp(at - 0.5 * w, nodes - (PetscInt)w) + x * w, nodes - n) * b, n * b);
  }
  if (R.left) TwinRunsGrow(&R);
  for (PetscInt k = 0; k < R.n; k++) {
    for (PetscInt c = R.start[k]; c < R.end[k]; c++) RowAdd(r, c);
  }
}

/* A long row: the columns are divided into equal parts, with one run in each part */
static inline void TwinRowSpread(const Twin *T, const TwinShape *S, PetscInt row, PetscInt len, Row *r)
{
  const PetscInt b = T->node, node = row / b, room = (T->rows - len) / 2;
  PetscInt       n = (PetscInt)((double)len / ((double)b * S->run));

  if (n > room) n = room; /* one column between the runs */
  if (n < 1) n = 1;
  for (PetscInt k = 0; k < n; k++) {
    const PetscInt first = (PetscInt)((int64_t)T->rows * k / n),
                   part  = (PetscInt)((int64_t)T->rows * (k + 1) / n) - first;
    const PetscInt count = (PetscInt)((int64_t)len * (k + 1) / n) - (PetscInt)((int64_t)len * k / n);
    const PetscInt epoch = (PetscInt)((double)node * S->rate + TwinPart(TwinHash((uint64_t)k, 1), 0));
    const PetscInt start =
        first + (PetscInt)(TwinPart(TwinHash((uint64_t)k + 2, (uint64_t)epoch), 20) * (double)(part - count));

    for (PetscInt c = 0; c < count; c++) RowAdd(r, start + c);
  }
}

/* JGD_Trefethen: the diagonal, and all entries at a distance of a power of two from it. This is the pattern of the real
   matrix */
static inline void TwinRowTrefethen(PetscInt rows, PetscInt row, Row *r)
{
  RowAdd(r, row);
  for (PetscInt step = 1; step < rows; step *= 2) {
    if (row >= step) RowAdd(r, row - step);
    if (row + step < rows) RowAdd(r, row + step);
  }
}

static inline void TwinRow(const Spec *s, PetscInt row, Row *r)
{
  const Twin      *T = &Twins[(int)s->arg[0]];
  const TwinShape *S = &TwinShapes[(int)s->arg[0]];

  if (!T->node)
    TwinRowTrefethen(T->rows, row, r);
  else if (s->table[row] > T->rows / 3 || (double)s->table[row] > 0.5 * TWIN_RUNS * (double)T->node * S->run)
    TwinRowSpread(T, S, row, s->table[row], r);
  else if (s->table[row])
    TwinRowTracks(T, S, row, s->table[row], r);
}

/* A matrix from a twin; SpecRead() and SpecFree() do the rest */
static inline void TwinSpec(int t, Spec *s)
{
  s->arg[0] = (double)t;
  s->rows   = Twins[t].rows;
  if (!Twins[t].node) return;
  s->table = (PetscInt *)PatternRealloc(NULL, (size_t)s->rows * sizeof(*s->table));
  TwinLengths(&Twins[t], &TwinShapes[t], s->table);
}
