/*
  Tests of the device core, without PETSc: every layout and kernel is compared with a CSR product on the host. Prints
  nothing on success. Run it as `core full`; under compute-sanitizer as `core quick`, or, if that is very slow, as `core
  race`, with two matrices; if it was compiled for a different GPU than the machine's, as `core unsupported`. With
  `count` as the last argument, it prints the number of checks that passed. With CORE_MATRICES=TEXT in the environment,
  only the matrices whose names contain the text are tested.
*/
#include "core/cuda/stores.cuh"
#include "csr.cuh"
#include "layouts.cuh"
#include "order.cuh"
#include "products.cuh"
#include "refusals.cuh"

// One layout with both ways to store values: only the size of the values differs
static void TestSingle(Matrix &A, const char *name,
                       std::function<cudaError_t(bool, const SpMVCudaCSR *, SpMVCudaStore *)> setup)
{
  Device<int>   i(A.i), j(A.j);
  SpMVCudaCSR   csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, NULL};
  SpMVCudaStore store;
  SpMVStats     stats[2];
  for (int single = 0; single < 2; single++) {
    CHECK(setup(single != 0, &csr, &store));
    SpMVCudaGetStats(store, &stats[single]);
    CHECK(SpMVCudaDestroy(&store));
  }
  // with smaller values, an index costs more
  if (!stats[0].diagonal != !stats[1].diagonal || stats[0].node != stats[1].node) return;
  const PetscInt64 values = stats[0].stored * (PetscInt64)(sizeof(Number) - PetscMin(sizeof(Single), sizeof(Number))),
                   saved  = stats[0].bytes - stats[1].bytes;
  // Diagonals store a second copy of one value per step
  Expect(stats[0].stored == stats[1].stored && saved == values + (stats[0].diagonal ? values / 32 : 0), A, name,
         stats[1].kernel, "bytes of single values");
}

// Constrained rows and columns, as in finite elements; rows of hanging nodes, which have one unknown of each of several
// other nodes; entries left out at random
static Matrix Constrained(const char *name, const Matrix &A, int rows, int columns)
{
  return Without(name, A, [=](int r, int c) { return r != c && (r * 613 % 1000 < rows || c * 613 % 1000 < columns); });
}

static Matrix Hanging(const char *name, const Matrix &A, int s)
{
  return Without(name, A, [=](int r, int c) { return r / s % 29 == 5 && r % s != c % s; });
}
static Matrix Sparser(const char *name, const Matrix &A, int share)
{
  return Without(name, A, [=](int, int) { return !Int(share); });
}

// Columns ascend only in the one node that lacks entries
static Matrix InAnyOrder()
{
  const Matrix A = Disorder("", Grid("", 6, 27, 3, 100), 3, [](int u, Row &row) {
    if (u != 33) Shuffle(u, row);
  });
  return Without("incomplete, 3 unknowns in any order", A, [](int r, int c) { return r == 100 && c != 100; });
}

// What a layout says of A
static SpMVStats StatsOf(const Matrix &A, const Layout &L, cudaStream_t stream)
{
  SpMVCudaStore store;
  SpMVStats     stats;
  Device<int>   i(A.i), j(A.j);
  SpMVCudaCSR   csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, NULL};
  CHECK(L.setup(&csr, PETSC_FALSE, stream, &store));
  SpMVCudaGetStats(store, &stats);
  CHECK(SpMVCudaDestroy(&store));
  return stats;
}

// Node blocks are used if few entries are missing
static void TestNodes(const Layout &L, cudaStream_t stream)
{
  auto expect = [&](const Matrix &A, int node) {
    const SpMVStats stats = StatsOf(A, L, stream);
    Expect(stats.node == node, A, L.name, stats.kernel, "the size of node blocks");
  };
  const Matrix A   = Grid("3 unknowns", 6, 27, 3, 100);
  const int    few = strcmp(L.name, "sellp, entries") ? 3 : 1;
  expect(A, few);
  expect(Constrained("3 unknowns, constrained rows", A, 20, 0), few);
  expect(Constrained("3 unknowns, constrained rows and columns", A, 10, 10), few);
  expect(InAnyOrder(), few);
  expect(Constrained("3 unknowns, many constrained rows", A, 500, 0), 1);
  expect(Sparser("3 unknowns, many entries missing", A, 2), 1);
  expect(Without("3 unknowns, one row out of order", Disorder("", A, 3, Shuffle),
                 [](int r, int c) { return r == 100 && c % 3 == 1; }),
         1);
  expect(Grid("27 points", 12, 27, 1, 100), 1);
  expect(Lengths("anywhere", 3000, 3000, [](int) { return 20; }), 1);
}

// Row groups are used if there are enough equal rows, and no node blocks
static void TestGroups(const Layout &L, cudaStream_t stream)
{
  auto expect = [&](const Matrix &A, bool groups) {
    const SpMVStats stats = StatsOf(A, L, stream);
    Expect((strstr(stats.kernel, "groups") != NULL) == groups, A, L.name, stats.kernel, "groups of rows");
    Expect(!groups || stats.node == 1, A, L.name, stats.kernel, "the size of node blocks of row groups");
  };
  const bool   look    = strcmp(L.name, "sellp, entries") != 0;
  auto         columns = [](int n) { return [=](int, Row &row) { Anywhere(n, 20, row); }; };
  const Matrix A       = Grid("3 unknowns", 6, 27, 3, 100);
  expect(A, false); // node blocks
  expect(Dropped("3 unknowns, one dropped", A, [](int r) { return r == 1; }), look);
  expect(Dropped("3 unknowns, some dropped", A, [](int r) { return r * 613 % 1000 < 70; }), look);
  // values of 4 bytes are stored in incomplete node blocks
  if (sizeof(PetscScalar) > 4) expect(Grid("7 unknowns", 3, 7, 7, 100), look);
  expect(Grouped(
             "pairs", 3001, 3000, [](int) { return 2; }, columns(3000)),
         look);
  expect(Grouped(
             "one pair in four rows", 3000, 3000, [](int g) { return g % 3 ? 1 : 2; }, columns(3000)),
         false);
  expect(Grouped(
             "mostly empty pairs", 3000, 3000, [](int) { return 2; },
             [](int g, Row &row) { Anywhere(3000, g % 4 ? 0 : 20, row); }),
         false);
  expect(Grid("27 points", 12, 27, 1, 60), false);
}

// ------------------------------------------------------------------------------------------------ matrices

static void AddMatrices(std::vector<Matrix> &matrices)
{
  matrices.push_back(Grid("7 points", 9, 7, 1, 100));
  matrices.push_back(Grid("27 points", 6, 27, 1, 100));
  matrices.push_back(Grid("27 points, some", 7, 27, 1, 60));
  matrices.push_back(Grid("2 unknowns", 5, 7, 2, 100));
  matrices.push_back(Grid("3 unknowns", 5, 27, 3, 100));
  matrices.push_back(Grid("3 unknowns, some", 6, 27, 3, 60));
  matrices.push_back(Grid("4 unknowns, some", 4, 27, 4, 60));
  matrices.push_back(Grid("5 unknowns", 4, 7, 5, 100));
  matrices.push_back(Grid("6 unknowns, some", 4, 27, 6, 60));
  matrices.push_back(Shuffled("27 points, some, in random order", Grid("", 16, 27, 1, 60), 1));
  matrices.push_back(Lengths("square, some rows empty", 3000, 3000, [](int r) { return r % 7 ? Int(20) : 0; }));
  matrices.push_back(Grid("7 unknowns", 3, 7, 7, 100));
  matrices.push_back(Grid("8 unknowns", 3, 7, 8, 100));
  matrices.push_back(Lengths("up to 12 entries", 700, 900, [](int) { return Int(13); }));
  matrices.push_back(Lengths("one or two entries", 1500, 300, [](int) { return 1 + Int(2); }));
  matrices.push_back(Lengths("long rows", 40, 3000, [](int r) { return r % 3 ? Int(1500) : 3000; }));
  matrices.push_back(
      Lengths("two very long rows", 1200, 1200, [](int r) { return r == 7 || r == 800 ? 20000 : Int(6); }));
  matrices.push_back(Lengths("distant columns", 300, 100000, [](int) { return Int(9); }));
  matrices.push_back(Lengths("distant rows next to each other in the order of lengths", 5000, 40000,
                             [](int r) { return r == 7 ? 20000 : 3 + Int(3); }));
  matrices.push_back(Lengths("mostly empty", 3000, 60, [](int r) { return r % 50 == 3 ? 1 + Int(3) : 0; }));
  matrices.push_back(Lengths(
      "columns descend", 200, 200, [](int) { return Int(40); }, false));
}

static void AddDisordered(std::vector<Matrix> &matrices)
{
  matrices.push_back(Disorder("columns in any order", Grid("", 7, 7, 1, 100), 1, Shuffle));
  matrices.push_back(Disorder("columns in any order, some twice", Lengths("", 300, 250, [](int) { return Int(60); }), 1,
                              ShuffleTwice));
  matrices.push_back(Disorder("one row out of order", Grid("", 7, 7, 1, 100), 1, [](int r, Row &row) {
    if (r == 100) std::swap(row[1], row[4]);
  }));
  matrices.push_back(Disorder("one entry twice", Grid("", 7, 7, 1, 100), 1, [](int r, Row &row) {
    if (r == 100) row.insert(row.begin() + 2, row[2]);
  }));
  matrices.push_back(Disorder("last entry twice", Grid("", 7, 7, 1, 100), 1, [](int r, Row &row) {
    if (r == 342) row.push_back(row.back());
  }));
  matrices.push_back(Disorder("3 unknowns, in any order, some twice", Grid("", 5, 27, 3, 100), 3, ShuffleTwice));
  matrices.push_back(Disorder("2 unknowns, one block twice", Grid("", 5, 7, 2, 100), 2, [](int u, Row &row) {
    if (u == 77) row.push_back(row[0]);
  }));
  matrices.push_back(Disorder("runs, one entry twice",
                              Build("", 100, 2000,
                                    [](int r, Row &row) {
                                      for (int c = 0; c < 400; c++) row.push_back(r * 4 + c);
                                    }),
                              1, [](int r, Row &row) {
                                if (r % 3 == 0) row.insert(row.begin() + 40 + r, row[40 + r]);
                              }));
}

static void AddIncomplete(std::vector<Matrix> &matrices)
{
  matrices.push_back(Constrained("incomplete, 3 unknowns, constrained rows", Grid("", 6, 27, 3, 100), 30, 0));
  matrices.push_back(
      Constrained("incomplete, 3 unknowns, some, constrained rows and columns", Grid("", 6, 27, 3, 60), 20, 20));
  matrices.push_back(Hanging("incomplete, 3 unknowns, hanging nodes", Grid("", 6, 27, 3, 100), 3));
  matrices.push_back(Sparser("incomplete, 2 unknowns, some entries missing", Grid("", 6, 7, 2, 100), 60));
  matrices.push_back(Sparser("incomplete, 4 unknowns, some, some entries missing", Grid("", 4, 27, 4, 60), 60));
  matrices.push_back(Hanging("incomplete, 5 unknowns, hanging nodes", Grid("", 4, 7, 5, 100), 5));
  matrices.push_back(Sparser("incomplete, 6 unknowns, some, some entries missing", Grid("", 4, 27, 6, 60), 60));
  matrices.push_back(Sparser("incomplete, 2 unknowns, long rows, some entries missing",
                             Build("", 30, 12000,
                                   [](int r, Row &row) {
                                     for (int c = r / 2 % 5; c < (r / 2 % 3 ? 700 : 3000); c++)
                                       row.insert(row.end(), {4 * c, 4 * c + 1});
                                   }),
                             60));
  matrices.push_back(InAnyOrder());
}

// Row groups: of one size and of all, more rows than fit in one, long, short and empty ones, columns in any order
static void AddGroups(std::vector<Matrix> &matrices)
{
  auto three = [](int) { return 3; };
  auto any   = [](int) { return 1 + Int(8); };
  auto some  = [](int n, int most) { return [=](int, Row &row) { Anywhere(n, Int(most + 1), row); }; };
  matrices.push_back(
      Dropped("groups, 3 unknowns, some dropped", Grid("", 6, 27, 3, 100), [](int r) { return r * 613 % 1000 < 70; }));
  matrices.push_back(Dropped("groups, 6 unknowns, one dropped", Grid("", 4, 27, 6, 60), [](int r) { return r == 7; }));
  matrices.push_back(Grouped(
      "groups of 3", 500, 500, [](int g) { return g ? 3 : 1; }, some(500, 90)));
  matrices.push_back(Grouped("groups of 1 to 8", 900, 900, any, some(900, 50)));
  matrices.push_back(Grouped(
      "groups of 1 to 8, and single rows", 1500, 1500, [](int) { return Int(2) ? 1 : 1 + Int(8); }, some(1500, 20)));
  matrices.push_back(Grouped(
      "groups, more equal rows", 700, 300, [](int) { return 5 + Int(30); }, some(300, 60)));
  matrices.push_back(Grouped(
      "groups, all rows equal", 300, 300, [](int) { return 300; }, [](int, Row &row) { Anywhere(300, 250, row); }));
  matrices.push_back(
      Grouped("groups, long", 100, 4000, any, [](int g, Row &row) { Anywhere(4000, g % 3 ? Int(1500) : 6000, row); }));
  matrices.push_back(Grouped("groups of short rows", 2000, 2000, any, some(2000, 4)));
  matrices.push_back(Grouped("groups, some empty", 800, 800, any,
                             [](int g, Row &row) { Anywhere(800, g % 4 ? 1 + Int(30) : 0, row); }));
  matrices.push_back(Grouped("groups, distant columns", 300, 100000, any, some(100000, 40)));
  matrices.push_back(Grouped("groups, few columns", 2000, 40, three, some(40, 30)));
  matrices.push_back(Grouped("groups in any order, some columns twice", 400, 300, any, [](int g, Row &row) {
    Anywhere(300, Int(40), row);
    ShuffleTwice(g, row);
  }));
}

// Entries and node blocks on diagonals, also more than 32 of them, so that in most slices each lane has all of them,
// and blocks with missing entries
static void AddBands(std::vector<Matrix> &matrices)
{
  matrices.push_back(Band("band of 3 diagonals", 1000, 1, 1));
  matrices.push_back(Band("band of 7 diagonals", 999, 3, 1));
  matrices.push_back(Band("band of 13 diagonals", 901, 6, 1));
  matrices.push_back(Band("band of 27 diagonals", 1000, 13, 1));
  matrices.push_back(Band("band of 37 diagonals", 703, 18, 1));
  matrices.push_back(Band("band of 2 unknowns", 349, 2, 2));
  matrices.push_back(Band("band of 2 unknowns, wide", 900, 17, 2));
  matrices.push_back(Band("band of 3 unknowns", 607, 3, 3));
  matrices.push_back(Band("band of 4 unknowns", 511, 2, 4));
  matrices.push_back(Band("band of 5 unknowns", 415, 1, 5));
  matrices.push_back(Band("band of 6 unknowns", 511, 1, 6));
  matrices.push_back(Band("band of 6 unknowns, wide", 511, 13, 6)); // the values of a slice do not fit in shared memory
  matrices.push_back(Constrained("incomplete, band of 3 unknowns, constrained rows", Band("", 703, 3, 3), 5, 0));
}

static void AddSpecial(std::vector<Matrix> &matrices)
{
  matrices.push_back(Build("runs", 150, 2000, [](int r, Row &row) {
    for (int c = 0; c < (r % 3 ? 333 : 5); c++) row.push_back(r * 4 + c);
  }));
  matrices.push_back(Build("no entries", 77, 33, [](int, Row &) {}));
  matrices.push_back(Build("no rows", 0, 33, [](int, Row &) {}));
  matrices.push_back(Build("one entry", 1, 1, [](int, Row &row) { row.push_back(0); }));
  matrices.push_back(Build("one row", 1, 5000, [](int, Row &row) {
    for (int c = 0; c < 5000; c += 1 + Int(2)) row.push_back(c);
  }));
  // whole slices without entries, between diagonals whose slices differ in length
  matrices.push_back(Build("three diagonals, some rows empty", 1000, 1000, [](int r, Row &row) {
    for (int c = r - 1; c <= r + 1 && r / 96 % 4 != 1; c++) row.push_back(c);
  }));
  matrices.push_back(Odd("odd rows", 3001, 3, 400));
  matrices.push_back(Build("identity of 1000 and a bit", 1003, 1003, [](int r, Row &row) { row.push_back(r); }));
}

static void AddLarger(std::vector<Matrix> &matrices)
{
  matrices.push_back(Grid("7 points, larger", 40, 7, 1, 100));
  matrices.push_back(Lengths("power law", 40000, 40000,
                             [](int) { return std::min(3000, 1 + (int)(1.4 * std::pow(Real() + 0.50001, -0.7))); }));
  matrices.push_back(Lengths("power law, wide", 20000, 200000,
                             [](int) { return std::min(4000, 1 + (int)(2.0 * std::pow(Real() + 0.50001, -0.7))); }));
}

// ------------------------------------------------------------------------------------------------ layouts

static std::vector<Layout> Layouts()
{
  return {
      {"sellp", false, false, SELLP(0, 0, 0, 0, 1, SPMV_KERNEL_AUTO)},
      {"sellp, slices", false, true, SELLP(0, 0, 0, 0, 1, SPMV_KERNEL_SLICES)},
      {"sellp, entries", false, false, SELLP(0, 0, 0, 1, 1, SPMV_KERNEL_SLICES)},
      {"sellp, uncompressed", false, false, SELLP(0, 0, 64, 1, 0, SPMV_KERNEL_SLICES)},
      {"sellp, blocks of 8", false, false, SELLP(0, 0, 0, 8, 1, SPMV_KERNEL_AUTO)},
      {"sellp, t = 1", false, false, SELLP(0, 1, 1, 0, 1, SPMV_KERNEL_AUTO)},
      {"sellp, t = 4", false, false, SELLP(0, 4, 100, 0, 1, SPMV_KERNEL_AUTO)},
      {"sellp, t = 32", false, false, SELLP(0, 32, 0, 0, 1, SPMV_KERNEL_AUTO)},
      {"sellp, paper", false, true, SELLP(0, 0, 0, 0, 1, SPMV_KERNEL_PAPER)},
      {"sellp, paper, b = 5, t = 16", false, false, SELLP(5, 16, 0, 0, 1, SPMV_KERNEL_PAPER)},
      {"sellp, paper, b = 32, t = 1", false, false, SELLP(32, 1, 0, 0, 1, SPMV_KERNEL_PAPER)},
      {"sellp, transposed", true, false, SELLP(0, 0, 0, 0, 1, SPMV_KERNEL_AUTO)},
      {"sellp, conjugated and transposed", true, true, SELLP(0, 0, 0, 0, 1, SPMV_KERNEL_SLICES)},
      {"evchyb", false, false, EVCHYB(128, 0, 1, SPMV_KERNEL_AUTO)},
      {"evchyb, rows", false, false, EVCHYB(128, 0, 1, SPMV_KERNEL_SLICES)},
      {"evchyb, entries", false, true, EVCHYB(8, 1, 0, SPMV_KERNEL_SLICES)},
      {"evchyb, paper", false, true, EVCHYB(128, 0, 1, SPMV_KERNEL_PAPER)},
      {"evchyb, paper, limit 4", false, false, EVCHYB(4, 0, 1, SPMV_KERNEL_PAPER)},
      {"evchyb, adaptive", false, false, EVCHYB(128, 0, 1, SPMV_KERNEL_VECTOR)},
      {"evchyb, transposed", true, false, EVCHYB(128, 0, 1, SPMV_KERNEL_AUTO)},
      {"evchyb, paper, transposed", true, false, EVCHYB(128, 0, 1, SPMV_KERNEL_PAPER)},
      {"sellp, single", false, true, SELLP(0, 0, 0, 0, 1, SPMV_KERNEL_AUTO, true), true},
      {"sellp, slices, single", false, false, SELLP(0, 0, 0, 0, 1, SPMV_KERNEL_SLICES, true), true},
      {"sellp, entries, uncompressed, single", false, false, SELLP(0, 0, 0, 1, 0, SPMV_KERNEL_SLICES, true), true},
      {"sellp, paper, not single", false, false, SELLP(0, 0, 0, 0, 1, SPMV_KERNEL_PAPER, true)},
      {"evchyb, single, transposed", true, true, EVCHYB(128, 0, 1, SPMV_KERNEL_AUTO, true), true},
  };
}

// ------------------------------------------------------------------------------------------------ runs

static void TestNoCode(Matrix &A, const std::vector<Layout> &layouts, const Streams &streams)
{
  int device, major, minor;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  if (major == 8 && minor >= 6)
    printf("skipped: this GPU runs what is compiled for 8.6\n");
  else {
    for (const Layout &L : layouts) TestUnsupported(A, L, streams.stream);
    Expect(!SpMVCudaIsSupported(), A, "none", "any", "the device is not supported");
  }
}

// Tests that concern a layout on its own
static void TestLayouts(const std::vector<Layout> &layouts, bool quick, bool race, const Streams &streams)
{
  for (const Layout &L : layouts) {
    if (!quick && (!strcmp(L.name, "sellp") || !strcmp(L.name, "sellp, single")))
      TestStreams(L, streams.stream, streams.other);
    if (!quick && !strcmp(L.name, "sellp")) TestReplaced(L, streams.stream, streams.other);
    if (!quick && !strcmp(L.name, "sellp")) TestLongest(L, streams.stream);
    TestTooLarge(L, streams.stream);
  }
  spmv::limits.diagonals_least = 0; // small matrices reach all kernels
  for (const Layout &L : layouts) {
    for (Matrix few : {Grid("7 points, few", 5, 7, 1, 100), Grid("3 unknowns, few", 4, 27, 3, 60),
                       Lengths("a long row, few others", 60, 3000, [](int r) { return r ? Int(9) : 8000; })}) {
      if (race) continue;
      TestUnaligned(few, L, streams.stream);
      TestHostMemory(few, L, streams.stream);
      TestNaNs(few, L, streams.stream);
      if (!quick) TestOthersError(few, L, streams.stream); // a sanitizer would report this error
    }
  }
}

constexpr int WIDEST = sizeof(PetscInt); // bytes of an index: a CSR has PetscInt, or int

// Each layout with each matrix. If quick, a quarter of the layouts, a different quarter for the next matrix, but all
// layouts for two matrices
static void TestMatrices(std::vector<Matrix> &matrices, const std::vector<Layout> &layouts, bool quick, bool race,
                         const Streams &streams)
{
  const char *only   = getenv("CORE_MATRICES");
  int         tested = 0;
  for (Matrix &A : matrices) {
    const bool few = !strcmp(A.name, "3 unknowns, some") || !strcmp(A.name, "long rows");
    if ((race && !few) || (only && !strstr(A.name, only))) continue;
    tested++;
    TestCSR(A, streams.stream);
    for (SpMVKernel k : {SPMV_KERNEL_AUTO, SPMV_KERNEL_SLICES}) {
      TestSingle(A, "sellp", [&](bool single, const SpMVCudaCSR *csr, SpMVCudaStore *b) {
        return SELLP(0, 0, 0, 0, 1, k, single)(csr, PETSC_FALSE, streams.stream, b);
      });
      TestSingle(A, "evchyb", [&](bool single, const SpMVCudaCSR *csr, SpMVCudaStore *b) {
        return EVCHYB(9, 0, 1, k, single)(csr, PETSC_FALSE, streams.stream, b);
      });
    }
    for (size_t l = 0; l < layouts.size(); l++) {
      if (quick && !few && (l + tested) % 4) continue;
      if (race) printf("%s, %s\n", A.name, layouts[l].name);
      const int turn               = (int)(l + tested) / (quick && !few ? 4 : 1);
      spmv::limits.diagonals_warps = turn / 2 % 2 ? 0 : 1000; // several slices per warp, or one
      spmv::limits.tile_lines      = turn / 2 % 2 ? 0 : 33;   // tiles, or none
      Products(A, layouts[l], (l & 1) ? WIDEST : 4, streams).Test();
      if (!quick && WIDEST > 4) Products(A, layouts[l], (l & 1) ? 4 : WIDEST, streams).Test();
    }
  }
  Expect(tested > 0, matrices[0], "all layouts", "any", "a matrix has the name of CORE_MATRICES");
  for (const Layout &L : layouts) {
    const bool adds = !L.transpose && !L.conjugate && !strstr(L.name, "paper") && !strstr(L.name, "adaptive");
    Expect(adds == (fusing.count(L.name) > 0), matrices[0], L.name, "any", "its products add an off-diagonal block");
  }
}

int main(int argc, char **argv)
{
  const bool unsupported = argc > 1 && !strcmp(argv[1], "unsupported");
  const bool race = argc > 1 && !strcmp(argv[1], "race"), quick = race || (argc > 1 && !strcmp(argv[1], "quick"));
  Streams    streams;
  std::vector<Matrix> matrices;
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK(cudaStreamCreate(&streams.stream));
  CHECK(cudaStreamCreate(&streams.other));
  CHECK(cudaEventCreateWithFlags(&streams.event, cudaEventDisableTiming));
  AddMatrices(matrices);
  AddDisordered(matrices);
  AddIncomplete(matrices);
  AddGroups(matrices);
  AddBands(matrices);
  AddSpecial(matrices);
  if (!quick) AddLarger(matrices);
  const std::vector<Layout> layouts = Layouts();
  if (unsupported) {
    TestNoCode(matrices[0], layouts, streams);
    if (!failures) printf("%d checks passed\n", checks);
    return failures != 0;
  }
  for (const Layout &L : layouts) {
    if (std::set<std::string>{"sellp", "sellp, slices", "sellp, entries"}.count(L.name)) {
      TestNodes(L, streams.stream);
      TestGroups(L, streams.stream);
    }
  }
  if (!getenv("CORE_MATRICES")) TestLayouts(layouts, quick, race, streams);
  spmv::limits.diagonals_least = 0; // small matrices reach all kernels, with all ways to load
  spmv::limits.groups_mean     = INT_MAX;
  spmv::limits.l2_fit          = INT_MAX;
  spmv::limits.tile_least      = 0;
  TestMatrices(matrices, layouts, quick, race, streams);
  CHECK(cudaEventDestroy(streams.event));
  CHECK(cudaStreamDestroy(streams.other));
  CHECK(cudaStreamDestroy(streams.stream));
  return Finish(argc, argv);
}
