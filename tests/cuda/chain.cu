/*
  Long random chains of fills, of products in all layouts, and of a program's own kernels, which begin early and let the
  next kernel begin, on four vectors that take turns: in one stream without a wait, with steps in a second stream, and
  captured in a graph whose stores are filled again outside of it. The bits must be those of the same chain with a wait
  after each step. Prints nothing on success.

  Run it as `chain full`, under compute-sanitizer as `chain quick` or `chain race`, or as `chain ROUNDS [SEED]`. With
  `count` as the last argument, it prints the number of checks that passed.
*/
#include "layouts.cuh"
#include <deque>
#include <memory>

constexpr int N = 19440, VECTORS = 4, VALUES = 2, REALS = sizeof(Number) / sizeof(PetscReal);

// PLAIN is launched without the attribute. RECORD records an event without timing, which does not keep the next kernel
// from beginning early
enum Kind { FILL, MULT, RESIDUAL, ONTO, EARLY, LATE, STALE, PLAIN, RECORD, CROSS };
struct Step {
  Kind kind;
  int  store, x, y, z, values;
};

// ------------------------------------------------------------------------------------------------ a program's kernels

// to = from, with numbers that neither grow nor vanish in a long chain
static __device__ void Copy(int n, const PetscReal *from, PetscReal *to)
{
  int exponent;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    to[i] = (PetscReal)frexp((double)from[i], &exponent);
}
static __global__ void CopyEarly(int n, const PetscReal *from, PetscReal *to)
{
  LetNextBegin();
  AwaitPrevious();
  Copy(n, from, to);
}
// Writes when the next kernel has long been resident
static __global__ void CopyLate(int n, const PetscReal *from, PetscReal *to)
{
  AwaitPrevious();
  LetNextBegin();
  Dawdle(20000);
  Copy(n, from, to);
}
// Each thread block first reads all of `to`, so that its multiprocessor's cache holds old values while the next kernel
// is already resident
static __global__ void CopyStale(int n, const PetscReal *from, PetscReal *to, PetscReal *nowhere)
{
  PetscReal sum = 0;
  AwaitPrevious();
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += to[i];
  LetNextBegin();
  Dawdle(10000);
  Copy(n, from, to);
  if (sum == PetscReal(123456789)) *nowhere = sum;
}
// Relies on the launch: it does not wait for previous kernels
static __global__ void CopyPlain(int n, const PetscReal *from, PetscReal *to)
{
  Copy(n, from, to);
}

// ------------------------------------------------------------------------------------------------ stores

struct Stored {
  Matrix         A;
  Device<int>    i, j;
  Device<Number> a[VALUES];
  SpMVCudaCSR    csr[VALUES];
  SpMVCudaStore  store;

  Stored(const Matrix &matrix, const Setup &setup, cudaStream_t stream)
      : A(matrix), i(A.i), j(A.j), a{Device<Number>(A.a.size()), Device<Number>(A.a.size())}
  {
    for (int v = 0; v < VALUES; v++) {
      for (auto &value : A.a) value = Value();
      a[v].Set(A.a);
      csr[v] = {N, N, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a[v].p)};
    }
    CHECK(setup(&csr[0], PETSC_FALSE, stream, &store));
  }
  Stored(const Stored &) = delete;
  ~Stored()
  {
    CHECK(SpMVCudaDestroy(&store));
  }
};

static void AddStores(std::deque<Stored> &stores, cudaStream_t stream)
{
  const SpMVKernel AUTO = SPMV_KERNEL_AUTO, SLICES = SPMV_KERNEL_SLICES;
  auto             add  = [&](const Matrix &A, const Setup &setup) { stores.emplace_back(A, setup, stream); };
  auto             some = [](int) { return 1 + Int(8); };
  auto             few  = [](int, Row &row) { Anywhere(N, Int(30), row); };
  auto             far  = [](int r, Row &row) {
    for (int d : {-729, -27, -1, 0, 1, 27, 729}) row.push_back(r + d);
  };
  add(Build("7 diagonals", N, N, far), SELLP(0, 0, 0, 0, 1, AUTO));
  add(Band("27 diagonals", N, 13, 1), SELLP(0, 0, 0, 0, 1, AUTO));
  add(Band("node diagonals", N / 3, 2, 3), SELLP(0, 0, 0, 0, 1, AUTO));
  add(Band("node slices", N / 4, 2, 4), SELLP(0, 0, 0, 0, 1, SLICES));
  add(Lengths("entries", N, N, [](int) { return 3 + Int(9); }), SELLP(0, 0, 0, 1, 1, SLICES));
  add(Lengths("4 lanes", N, N, [](int) { return Int(60); }), SELLP(0, 4, 0, 1, 0, SLICES));
  add(Lengths("mostly empty", N, N, [](int r) { return r / 64 % 5 ? 0 : 2 + Int(5); }), SELLP(0, 0, 0, 0, 1, AUTO));
  add(Lengths("long rows", N, N, [](int r) { return r % 5003 == 7 ? 15000 : 1 + Int(4); }), SELLP(0, 0, 0, 0, 1, AUTO));
  add(Grouped("groups", N, N, some, few), SELLP(0, 0, 0, 0, 1, AUTO));
  add(Lengths("sorted", N, N, [](int r) { return r % 6007 == 3 ? 9000 : 1 + Int(12); }), EVCHYB(128, 0, 1, SLICES));
  add(Lengths("the paper's kernel", N, N, [](int) { return 1 + Int(12); }), EVCHYB(4, 0, 1, SPMV_KERNEL_PAPER));
}

// ------------------------------------------------------------------------------------------------ chains

class Chains {
public:
  Chains() : start((size_t)VECTORS * N)
  {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    for (auto &e : event) CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    AddStores(stores, stream);
  }
  ~Chains()
  {
    stores.clear();
    for (auto &e : event) CHECK(cudaEventDestroy(e));
    CHECK(cudaStreamDestroy(other));
    CHECK(cudaStreamDestroy(stream));
  }
  void Round(int shape, int round)
  {
    for (auto &v : start) v = Value();
    const std::vector<Step> steps = Draw(20 + Int(60), round % 2);
    Begin();
    Run(steps, true, true);
    const std::vector<Number> good = all.Get();
    for (int again = 0; again < 3; again++) {
      Begin();
      Run(steps, false, true);
      Compare(good, "a chain", shape, round);
    }
    Graph(steps, shape, round);
  }

private:
  PetscReal *Reals(int vector)
  {
    return (PetscReal *)(all.p + (size_t)vector * N);
  }
  void Fill(int values)
  {
    for (Stored &S : stores) CHECK(SpMVCudaFill(S.store, &S.csr[values], stream));
  }
  void Begin() // sets vectors and values; no store is settled
  {
    all.Set(start);
    Fill(0);
    CHECK(cudaDeviceSynchronize());
  }
  void Compare(const std::vector<Number> &good, const char *what, int shape, int round)
  {
    char text[80];
    CHECK(cudaStreamSynchronize(stream));
    snprintf(text, sizeof(text), "%s, shape %d, round %d", what, shape, round);
    Expect(!memcmp((void *)good.data(), (void *)all.Get().data(), good.size() * sizeof(Number)), stores[0].A,
           "all layouts", "all kernels", text);
  }

  // Mostly, x is what the previous step has written, and y is what it has read
  std::vector<Step> Draw(int length, bool products_mostly)
  {
    std::vector<Step> steps;
    for (int k = 0; k < length; k++) {
      constexpr int percent[] = {10, 30, 10, 7, 9, 9, 8, 5, 5, 7};
      Step          s;
      int           r = Int(100), kind = 0;
      for (; r >= percent[kind]; kind++) r -= percent[kind];
      s.kind   = kind == FILL && products_mostly && Int(5) ? MULT : (Kind)kind;
      s.store  = Int((int)stores.size());
      s.values = Int(VALUES);
      s.x      = k && Int(4) ? steps.back().y : Int(VECTORS);
      do s.y = k && Int(3) == 0 ? steps.back().x : Int(VECTORS);
      while (s.y == s.x);
      do s.z = Int(VECTORS);
      while (s.z == s.x || (s.kind == CROSS && s.z == s.y));
      steps.push_back(s);
    }
    return steps;
  }

  void Run(const std::vector<Step> &steps, bool separate, bool fills)
  {
    constexpr int n = N * REALS;
    for (const Step &s : steps) {
      Stored     &S = stores[s.store];
      const auto  x = P(all.p + s.x * N), z = P(all.p + s.z * N);
      const auto  y    = (PetscScalar *)(all.p + s.y * N);
      const auto *from = Reals(s.x);
      auto       *to   = Reals(s.y);
      switch (s.kind) {
      case FILL:
        if (fills) CHECK(SpMVCudaFill(S.store, &S.csr[s.values], stream));
        break;
      case MULT: CHECK(SpMVCudaMult(S.store, {SPMVCUDA_MULT, x, NULL, y}, stream)); break;
      case RESIDUAL: CHECK(SpMVCudaMult(S.store, {SPMVCUDA_RESIDUAL, x, z, y}, stream)); break;
      case ONTO: CHECK(SpMVCudaMult(S.store, {SPMVCUDA_MULT, x, y, y}, stream)); break;
      case EARLY: LaunchEarly(40, 256, stream, CopyEarly, n, from, to); break;
      case LATE: LaunchEarly(3, 256, stream, CopyLate, n, from, to); break;
      case STALE: LaunchEarly(132, 256, stream, CopyStale, n, from, to, (PetscReal *)nowhere.p); break;
      case PLAIN: CopyPlain<<<40, 256, 0, stream>>>(n, from, to); break;
      case RECORD: CHECK(cudaEventRecord(event[2], stream)); break;
      // a kernel of this stream has let the next begin, and the wait for the event must still hold that back
      case CROSS:
        CHECK(cudaEventRecord(event[0], stream));
        CHECK(cudaStreamWaitEvent(other, event[0], 0));
        CopyLate<<<3, 256, 0, other>>>(n, from, to);
        CHECK(cudaEventRecord(event[1], other));
        LaunchEarly(40, 256, stream, CopyEarly, n, from, Reals(s.z));
        CHECK(cudaStreamWaitEvent(stream, event[1], 0));
      }
      CHECK(cudaGetLastError());
      if (separate) CHECK(cudaDeviceSynchronize());
    }
  }

  // The chain without its fills, captured when half of the stores are settled. Between two launches of the graph, all
  // stores are filled, without a wait
  void Graph(const std::vector<Step> &steps, int shape, int round)
  {
    cudaGraph_t     graph;
    cudaGraphExec_t exec;
    Begin();
    Run(steps, true, false);
    Fill(1);
    CHECK(cudaDeviceSynchronize());
    Run(steps, true, false);
    const std::vector<Number> good = all.Get();
    Begin();
    for (Stored &S : stores) {
      if (Int(2)) CHECK(SpMVCudaMult(S.store, {SPMVCUDA_MULT, P(all.p), NULL, (PetscScalar *)(all.p + N)}, stream));
    }
    CHECK(cudaDeviceSynchronize());
    all.Set(start);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    Run(steps, false, false);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    Fill(1);
    CHECK(cudaGraphLaunch(exec, stream));
    Compare(good, "a graph that is filled outside", shape, round);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
  }

  cudaStream_t        stream, other;
  cudaEvent_t         event[3];
  std::deque<Stored>  stores;
  std::vector<Number> start;
  Device<Number>      all{(size_t)VECTORS * N}, nowhere{1};
};

int main(int argc, char **argv)
{
  const bool race = argc > 1 && !strcmp(argv[1], "race"), quick = race || (argc > 1 && !strcmp(argv[1], "quick"));
  const int  given = argc > 1 ? atoi(argv[1]) : 0, rounds = given > 0 ? given : quick ? 1 : 40;
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int k = given > 0 && argc > 2 ? atoi(argv[2]) : 1; k > 0; k--) Random();
  spmv::limits.diagonals_least = 0; // small matrices reach all kernels
  spmv::limits.groups_mean     = INT_MAX;
  spmv::limits.tile_least      = 0;
  for (int shape = 0; shape < (race ? 1 : 4); shape++) {
    spmv::limits.diagonals_warps = shape & 2 ? 0 : 1000; // several slices per warp, or one
    spmv::limits.tile_lines      = shape & 2 ? 0 : 33;   // tiles, or none
    Chains chains;
    for (int round = 0; round < rounds; round++) chains.Round(shape, round);
  }
  return Finish(argc, argv);
}
