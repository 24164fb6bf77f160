/*
  The golden test of the plans: what the host's rules make of many matrices, by default and over all parameters, is what
  tests/core/plans.txt has. The file is for double precision and the portable kernels, so it holds on every machine.
  After a change of the rules that is meant, write it again:

    MATRICES_DIR=tests/matrices build/<tag>/tests/core-plans print >tests/core/plans.txt
*/
#include "common.h"
#include "reference.h"
#include <inttypes.h>
#include "files.h"

#define LINE 512

static FILE *golden = NULL; /* compare with its lines, else print */

static uint64_t Hash(uint64_t h, uint64_t word)
{
  h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
  return h ^ h >> 29;
}

static uint64_t HashReals(uint64_t h, PetscInt64 n, const PetscReal v[])
{
  for (PetscInt64 k = 0; k < n; k++) {
    const double d = (double)v[k];
    uint64_t     word;

    memcpy(&word, &d, sizeof(word));
    h = Hash(h, word);
  }
  return h;
}

static void HashEntry(void *ctx, PetscInt row, PetscInt col, PetscScalar value)
{
  uint64_t *h = (uint64_t *)ctx;

  *h = HashReals(Hash(Hash(*h, (uint64_t)(int64_t)row), (uint64_t)(int64_t)col), SPMV_PARTS, (const PetscReal *)&value);
}

/* What is stored, in its order, and what is said of it; not the size of the struct, which is no part of the plan */
static uint64_t HashStore(uint64_t h, SpMVStore B)
{
  SpMVStats S;

  SpMVStoreGetStats(B, &S);
  if (SpMVStoreUsesParent(B)) return Hash(h, 1);
  {
    const PetscInt64 count[] = {S.nonzeros,
                                S.stored,
                                S.slices,
                                S.diagonal,
                                S.long_rows,
                                S.long_stored,
                                S.distinct,
                                S.bytes - (PetscInt64)sizeof(*B),
                                S.node,
                                S.height,
                                S.threads,
                                S.sigma,
                                SpMVStoreTransposeUsesParent(B)};

    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(count); k++) h = Hash(h, (uint64_t)count[k]);
  }
  for (const char *c = S.kernel; *c; c++) h = Hash(h, (uint64_t)*c);
  SpMVStoreVisit(B, HashEntry, &h);
  return h;
}

static void Report(const char *line)
{
  char expected[LINE] = "";

  if (!golden)
    (void)puts(line);
  else {
    if (fgets(expected, sizeof(expected), golden)) expected[strcspn(expected, "\n")] = 0;
    Expect(!strcmp(line, expected), "\n  %s\n  is not what plans.txt has:\n  %s", line, expected);
  }
}

/* Stores the matrix with the portable kernels, and adds it to the hash */
static PetscErrorCode AddStore(const Matrix *A, const Format *F, SpMVStats *S, uint64_t *h)
{
  const SpMVCSR csr = {A->m, A->n, A->i, A->j, A->a};
  SpMVStore     B;

  PetscFunctionBegin;
  (void)SpMVSetISA(SPMV_ISA_PORTABLE);
  PetscCall(FormatSetUp(F, &csr, &B));
  PetscCall(SpMVStoreFill(B, &csr));
  SpMVStoreGetStats(B, S);
  *h = HashStore(*h, B);
  PetscCall(SpMVStoreDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One line for each format: its store by default, and a hash of this one and those of all parameters */
static PetscErrorCode CheckMatrix(const Matrix *A)
{
  const int step = A->i[A->m] > 20000 ? 11 : 1; /* prime to the number of values of each parameter */

  PetscFunctionBegin;
  for (int evchyb = 0; evchyb < 2; evchyb++) {
    Format    F;
    SpMVStats by_default, S;
    uint64_t  h = 0;
    char      line[LINE];

    SELLPParamsDefault(&F.sellp);
    EVCHYBParamsDefault(&F.evc);
    F.evchyb                 = (PetscBool)evchyb;
    SpMVTuned.distinct_bytes = 0;
    (void)snprintf(F.text, sizeof(F.text), "%s by default", evchyb ? "evchyb" : "sellp");
    PetscCall(AddStore(A, &F, &by_default, &h));
    for (int f = 0; f < FormatCount(); f++) {
      if (f % step || !FormatGet(f, A->m, &F) || F.evchyb != (PetscBool)evchyb) continue;
      SpMVTuned.distinct_bytes = f % 2 ? 0 : 512 * 1024;
      PetscCall(AddStore(A, &F, &S, &h));
    }
    S = by_default;
    (void)snprintf(
        line, sizeof(line),
        "%s; %s; %s, stored %ld, slices %ld, diagonal %ld, long %ld, distinct %ld, node %d, sigma %d; %016" PRIx64,
        A->name, evchyb ? "evchyb" : "sellp", S.kernel, (long)S.stored, (long)S.slices, (long)S.diagonal,
        (long)S.long_rows, (long)S.distinct, (int)S.node, (int)S.sigma, h);
    Report(line);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Larger ones, a row at a time: the columns ascend */
typedef int (*Row)(int row, int n, int columns[]);

static int Ascending(int count, int columns[])
{
  int kept = 0;

  for (int k = 1; k < count; k++) {
    const int column = columns[k];
    int       l      = k;

    for (; l > 0 && columns[l - 1] > column; l--) columns[l] = columns[l - 1];
    columns[l] = column;
  }
  for (int k = 0; k < count; k++)
    if (!k || columns[k] != columns[kept - 1]) columns[kept++] = columns[k];
  return kept;
}

static int Grid3(int side, int cell, int columns[])
{
  const int x = cell % side, y = cell / side % side, z = cell / (side * side);
  int       count = 0;

  if (z > 0) columns[count++] = cell - side * side;
  if (y > 0) columns[count++] = cell - side;
  if (x > 0) columns[count++] = cell - 1;
  columns[count++] = cell;
  if (x < side - 1) columns[count++] = cell + 1;
  if (y < side - 1) columns[count++] = cell + side;
  if (z < side - 1) columns[count++] = cell + side * side;
  return count;
}

static int RowGrid(int row, int n, int columns[])
{
  (void)n;
  return Grid3(24, row, columns);
}

static int RowNodes(int row, int n, int columns[])
{
  int cells[7], count = Grid3(11, row / 3, cells);

  (void)n;
  for (int k = 0; k < 3 * count; k++) columns[k] = 3 * cells[k / 3] + k % 3;
  return 3 * count;
}

/* Rows of 1 to 4 unknowns a cell share their columns; every ninth row has a column more */
static int RowInodes(int row, int n, int columns[])
{
  const int cell = row / 4, size = 1 + cell % 4;
  int       count = 0;

  for (int k = 0; k < 5 + cell % 7; k++)
    columns[count++] = (int)(mix((uint32_t)cell + 7u * (uint32_t)(row % 4 / size), (uint32_t)k) % (uint32_t)n);
  if (row % 9 == 0) columns[count++] = row;
  return Ascending(count, columns);
}

static int RowRandom(int row, int n, int columns[])
{
  int count = 2 + (int)(mix((uint32_t)row, 1u) % 17);

  for (int k = 0; k < count; k++) columns[k] = (int)(mix((uint32_t)row, 100u + (uint32_t)k) % (uint32_t)n);
  return Ascending(count, columns);
}

static int RowPower(int row, int n, int columns[])
{
  const int count = PetscMin(400, 1 + 1000 / (1 + (int)(mix((uint32_t)row, 3u) % 1000)));

  for (int k = 0; k < count; k++) columns[k] = (int)(mix((uint32_t)row, 100u + (uint32_t)k) % (uint32_t)n);
  return Ascending(count, columns);
}

static int RowBand(int row, int n, int columns[])
{
  int count = 0;

  for (int c = PetscMax(0, row - 20); c <= PetscMin(n - 1, row + 20 + row % 5); c++) columns[count++] = c;
  return count;
}

static int RowMostlyEmpty(int row, int n, int columns[])
{
  return row % 5 ? 0 : RowRandom(row, n, columns);
}

static const struct {
  const char *name;
  int         m, n;
  Row         row;
  int         distinct; /* values, 0: all differ */
} Larger[] = {
    {"24^3 points", 13824, 13824, RowGrid, 0},          {"24^3 points, two values", 13824, 13824, RowGrid, 2},
    {"11^3 nodes of 3", 3993, 3993, RowNodes, 0},       {"11^3 nodes of 3, constant", 3993, 3993, RowNodes, 1},
    {"inodes of 1 to 4", 4000, 4000, RowInodes, 0},     {"2 to 18 a row", 5000, 5000, RowRandom, 0},
    {"2 to 18 a row, wide", 1500, 90000, RowRandom, 0}, {"power law, larger", 6000, 6000, RowPower, 0},
    {"band of 41 to 45", 1200, 1200, RowBand, 0},       {"4 of 5 rows empty", 6000, 900, RowMostlyEmpty, 0}};

static PetscErrorCode CheckLarger(size_t k)
{
  Matrix A = {Larger[k].name, Larger[k].m, Larger[k].n, NULL, NULL, NULL};
  int    columns[512];

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(A.m + 1, &A.i, 512 * A.m, &A.j, 512 * A.m, &A.a));
  A.i[0] = 0;
  for (int r = 0; r < A.m; r++) {
    const int count = Larger[k].row(r, Larger[k].n, columns);

    for (int q = 0; q < count; q++) {
      A.j[A.i[r] + q] = columns[q];
      A.a[A.i[r] + q] = Larger[k].distinct ? (PetscScalar)(1 + (columns[q] * 31 + q) % Larger[k].distinct) : number();
    }
    A.i[r + 1] = A.i[r] + count;
  }
  PetscCall(CheckMatrix(&A));
  PetscCall(MatrixDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A set-up takes more products the fewer entries a row has, and the smaller the matrix is */
static void CheckSetUpProducts(void)
{
  static const PetscInt64 nonzeros[] = {0, 200000, 300000, 500000, 2700000, 100000000};

  for (size_t k = 1; k < PETSC_STATIC_ARRAY_LENGTH(nonzeros); k++)
    Expect(SpMVSetUpProducts(100000, nonzeros[k]) < SpMVSetUpProducts(100000, nonzeros[k - 1]),
           "%g entries wait for as many products as fewer entries", (double)nonzeros[k]);
  Expect(SpMVSetUpProducts(100, 500) > 10 * SpMVSetUpProducts(100000, 500000), "a small matrix does not wait longer");
  Expect(SpMVSetUpProducts(SPMV_MAX_SIZE, 0) < 100 && SpMVSetUpProducts(0, 0) > 0,
         "matrices without entries wait for %g and %g products", (double)SpMVSetUpProducts(SPMV_MAX_SIZE, 0),
         (double)SpMVSetUpProducts(0, 0));
}

int main(int argc, char **argv)
{
  const char     *folder = getenv("MATRICES_DIR");
  const PetscBool print  = (PetscBool)(argc > 1 && !strcmp(argv[1], "print"));
  char            file[PETSC_MAX_PATH_LEN], line[LINE];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  if (!folder || PetscDefined(USE_COMPLEX) || sizeof(PetscReal) != sizeof(double)) {
    (void)puts("plans.txt is for real numbers of double precision, and MATRICES_DIR must name tests/matrices");
    PetscCall(PetscFinalize());
    return 0;
  }
  if (!print) {
    PetscCall(PetscSNPrintf(file, sizeof(file), "%s/../core/plans.txt", folder));
    golden = fopen(file, "r");
    PetscCheck(golden, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot read %s", file);
    CheckSetUpProducts();
  }
  for (int k = 0; k < MATRICES; k++) {
    Matrix A;

    PetscCall(MatrixGet(k, &A));
    PetscCall(CheckMatrix(&A));
    PetscCall(MatrixDestroy(&A));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(Larger); k++) PetscCall(CheckLarger(k));
  PetscCall(CheckFiles(folder, CheckMatrix));
  if (golden) {
    Expect(!fgets(line, sizeof(line), golden), "plans.txt has more lines, from %s", line);
    (void)fclose(golden);
  }
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
