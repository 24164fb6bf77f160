/*
  Products that exchange their halo with peers, many of them queued before the host looks at any result. All numbers are
  small integers, so that products are exact in any order of their sums.
*/
#pragma once

#include "halo.cuh"
#include "core/cuda/product/epilogue.cuh"
#include "mat/impls/sellp/sellp.h"
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

PETSC_INTERN SpMVCudaSetUp SpMVCudaSELLPSetUp;

// Writes late, while the product that follows is already resident. Without anything to write, it only delays that
static __global__ void Write(int n, const PetscReal *from, PetscReal *to, int clocks)
{
  if (n) spmv::LetNextBegin();
  const long long begin = clock64();
  while (clock64() - begin < clocks) continue;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = from[i];
}

template <class T> static std::shared_ptr<T> Uploaded(const std::vector<T> &v)
{
  T *p;
  if (cudaMalloc((void **)&p, (v.size() + 1) * sizeof(T)) ||
      cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice))
    MPI_Abort(MPI_COMM_WORLD, 1);
  return std::shared_ptr<T>(p, cudaFree);
}

// The off-diagonal entries: in random rows, in such rows of rank 0 only, or in one row of each slice
enum Boundary { SOME, ONE_WAY, EACH };

// How a rank multiplies. Only for the last one, the ranks must agree
enum How { FUSED, SENDS, SEPARATE, WITH_DOT, TRANSPOSED };

// A matrix with n rows on each rank, in a communicator
class System {
public:
  const PetscInt n, begin, N;

  System(PetscInt rows, bool banded, Boundary where)
      : n(rows), begin(rows * rank_), N(rows * size_), salt(shared++), diagonals(banded), boundary(where)
  {
  }

  PetscErrorCode Create(MPI_Comm c, cudaStream_t stream)
  {
    std::map<PetscInt, int>  place;
    std::vector<PetscInt>    columns;
    std::vector<int>         i[2] = {{0}, {0}}, j[2];
    std::vector<PetscScalar> a[2];
    PetscLayout              layout;
    SpMVStats                stats;

    PetscFunctionBeginUser;
    for (PetscInt row = 0; row < N; row++) {
      if (boundary != EACH || IsMine(row)) AddRow(row); // all rows are for the transposed product
    }
    for (const Entry &e : entries) {
      if (IsMine(e.row) && !IsMine(e.col)) place[e.col] = 0;
    }
    for (auto &p : place) {
      p.second = (int)columns.size();
      columns.push_back(p.first);
    }
    for (size_t e = 0, row = begin; row < (size_t)(begin + n); row++) {
      while (entries[e].row < (PetscInt)row) e++;
      for (; e < entries.size() && entries[e].row == (PetscInt)row; e++) {
        const int k = !IsMine(entries[e].col);
        j[k].push_back(k ? place[entries[e].col] : (int)(entries[e].col - begin));
        a[k].push_back((PetscReal)entries[e].a);
      }
      for (int k = 0; k < 2; k++) i[k].push_back((int)j[k].size());
    }
    PetscCall(PetscLayoutCreate(c, &layout));
    PetscCall(PetscLayoutSetLocalSize(layout, n));
    PetscCall(PetscLayoutSetUp(layout));
    PetscCall(SpMVHaloCreate(c, layout, (PetscInt)columns.size(), columns.data(), SPMV_HALO_PEER, &halo));
    PetscCall(PetscLayoutDestroy(&layout));
    for (int k = 0; k < 2 && (!k || columns.size()); k++) {
      const auto        di = Uploaded(i[k]), dj = Uploaded(j[k]);
      const auto        da  = Uploaded(a[k]);
      const SpMVCudaCSR csr = {
          n, k ? (PetscInt64)columns.size() : n, (PetscInt64)j[k].size(), di.get(), dj.get(), 4, da.get()};
      SELLPParams params     = {};
      params.common.compress = 1;
      for (const bool transpose : {false, true}) {
        PetscCallCUDA(SpMVCudaSELLPSetUp(&csr, &params, (PetscBool)transpose, stream, &block[k][transpose]));
        PetscCallCUDA(SpMVCudaFill(block[k][transpose], &csr, stream));
      }
      if (k) PetscCallCUDA(SpMVCudaFuseOffdiagonal(block[0][0], &csr, n, stream));
      if (k) PetscCallCUDA(SpMVCudaFillOffdiagonal(block[0][0], &csr, stream));
      PetscCallCUDA(cudaDeviceSynchronize());
    }
    SpMVCudaGetStats(block[0][0], &stats);
    Check((stats.diagonal > 0) == diagonals && SpMVCudaSends(block[0][0]), stats.kernel, "the product's kernel");
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscErrorCode Destroy()
  {
    PetscFunctionBeginUser;
    for (auto &stores : block) {
      for (SpMVCudaStore &store : stores) {
        if (store) PetscCallCUDA(SpMVCudaDestroy(&store));
      }
    }
    PetscCall(SpMVHaloDestroy(&halo));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  // In some rounds, some entries of x are the NaN that marks vacant places, or one part of a complex entry is
  PetscScalar X(PetscInt i, int round) const
  {
    const uint64_t h     = Hash(i, salt + 1000 * round);
    const size_t   parts = sizeof(PetscScalar) / sizeof(PetscReal);
    PetscScalar    v     = (PetscReal)(h % 100);
#if defined(PETSC_USE_COMPLEX)
    v = PetscCMPLX((PetscReal)(h % 100), (PetscReal)(h / 100 % 100));
#endif
    for (size_t part = 0; part < parts; part++) {
      // of three such complex entries, one has both parts, one the first, and one the second
      const bool vacant = parts == 1 || h / 61 % 3 != part;
      if (round % 5 == 1 && h % 61 == 0 && vacant) memset((PetscReal *)&v + part, 0xff, sizeof(PetscReal));
    }
    return v;
  }
  Values LocalX(int round) const
  {
    Values x;
    for (PetscInt i = 0; i < n; i++) x.push_back(X(begin + i, round));
    return x;
  }
  static bool IsNaN(PetscScalar v)
  {
    return std::isnan(PetscRealPart(v)) || std::isnan(PetscImaginaryPart(v));
  }
  bool IsRight(const PetscScalar *y, int round, bool transpose) const
  {
    Values x, want(n, 0.);
    for (PetscInt i = 0; i < N; i++) x.push_back(X(i, round));
    for (const Entry &e : entries) {
      const PetscInt row = transpose ? e.col : e.row;
      if (IsMine(row)) want[row - begin] += (PetscReal)e.a * x[transpose ? e.row : e.col];
    }
    for (PetscInt i = 0; i < n; i++) {
      if (IsNaN(want[i]) ? !IsNaN(y[i]) : y[i] != want[i]) return false;
    }
    return true;
  }

  // The number of partial sums of x'y that a product stores
  size_t Sums() const
  {
    return (size_t)block[0][0]->WarpsOf(spmv::FUSED_DOTS) * spmv::REALS;
  }
  bool IsRightDot(const Values &x, const PetscScalar *y, const PetscReal *sums) const
  {
    PetscScalar want             = 0.;
    PetscReal   got[spmv::REALS] = {};
    for (PetscInt i = 0; i < n; i++) want += x[i] * y[i];
    for (size_t k = 0; k < Sums(); k++) got[k * spmv::REALS / Sums()] += sums[k];
    return Sums() && got[0] == PetscRealPart(want) &&
           got[spmv::REALS - 1] == ((const PetscReal *)&want)[spmv::REALS - 1];
  }

  // sums: for WITH_DOT
  PetscErrorCode Multiply(How how, const PetscScalar *x, PetscScalar *y, cudaStream_t stream,
                          PetscReal *sums = NULL) const
  {
    const Exchange         e(halo);
    const SpMVCudaExchange sends = how == SEPARATE ? NULL : SpMVCudaHaloGetExchange(e.core);

    PetscFunctionBeginUser;
    PetscCall(e.Enter(stream));
    if (how == TRANSPOSED) {
      if (e.array) PetscCallCUDA(SpMVCudaMult(block[1][1], {SPMVCUDA_MULT, x, NULL, e.array}, stream));
      PetscCall(e.ReverseBegin(stream));
      PetscCallCUDA(SpMVCudaMult(block[0][1], {SPMVCUDA_MULT, x, NULL, y}, stream));
      PetscCall(e.ReverseEnd(y, stream));
    } else if (how == WITH_DOT) {
      spmv::Dots           dots = {false, false, sums, (const spmv::Scalar *)x};
      const spmv::Operands v    = {(const spmv::Scalar *)x, NULL, (spmv::Scalar *)y};
      PetscCallCUDA(block[0][0]->order.Enter(stream));
      PetscCallCUDA(block[0][0]->Multiply({SPMVCUDA_MULT, v, sends, true, &dots}, stream));
      PetscCallCUDA(block[0][0]->Leave(stream));
    } else {
      if (how == SEPARATE) PetscCall(e.Begin(x, stream));
      PetscCallCUDA(
          SpMVCudaMult(block[0][0], {SPMVCUDA_MULT, x, NULL, y, NULL, sends, (PetscBool)(how == FUSED)}, stream));
      if (how != FUSED) {
        PetscCall(e.End(stream));
        if (e.array) PetscCallCUDA(SpMVCudaMult(block[1][0], {SPMVCUDA_MULT, e.array, y, y}, stream));
      }
    }
    PetscCall(e.Leave(stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

private:
  struct Entry {
    PetscInt row, col;
    int      a;
  };
  const uint64_t     salt;
  const bool         diagonals; // the diagonal block has few of them
  const Boundary     boundary;
  std::vector<Entry> entries; // in rows or columns of this rank, row by row
  SpMVHalo           halo        = NULL;
  SpMVCudaStore      block[2][2] = {}; // the diagonal and the off-diagonal block, and their transposes

  bool IsMine(PetscInt i) const
  {
    return i >= begin && i < begin + n;
  }
  void AddRow(PetscInt row)
  {
    const PetscInt          rank = row / n, first = rank * n, r = row - first;
    const bool              few = boundary == EACH ? r % 32 == 5 : Hash(row, salt + 1) % 7 == 0;
    std::map<PetscInt, int> a;
    a[row] = 1;
    if (r + 1 < n) a[row + 1] = 2;
    if (diagonals && r + 50 < n) a[row + 50] = 3;
    if (!diagonals) a[first + (PetscInt)(Hash(row, salt + 2) % n)] = 3;
    for (int k = 0; k < 2 && few && (boundary != ONE_WAY || rank == 0); k++) {
      const PetscInt other = (rank + 1 + (PetscInt)(Hash(row, salt + 3 + k) % (size_ - 1))) % size_;
      a[other * n + (PetscInt)(Hash(row, salt + 5 + k) % n)] = 1 + k;
    }
    for (const auto &e : a) {
      if (IsMine(row) || IsMine(e.first)) entries.push_back({row, e.first, e.second});
    }
  }
};

// One rank at a time is late. A graph of four exchanges in one direction and two in the other is launched between
// products, so that each of its products uses all landings
static PetscErrorCode TestQueued(const System &s, cudaStream_t stream, const char *name)
{
  constexpr int                    STEPS = 1000, REALS = sizeof(PetscScalar) / sizeof(PetscReal);
  const std::vector<How>           graph = {FUSED, SEPARATE, TRANSPOSED, SENDS, FUSED, TRANSPOSED};
  const uint64_t                   salt  = shared++;
  const size_t                     n     = (size_t)s.n;
  Values                           all;
  std::vector<std::pair<int, How>> done; // the round of each product

  PetscFunctionBeginUser;
  for (int round = 0; round < STEPS; round++) {
    const Values own = s.LocalX(round);
    all.insert(all.end(), own.begin(), own.end());
  }
  const size_t    most = STEPS + (STEPS / 37 + 1) * graph.size();
  Device          x(all), work(n), again(graph.size() * n), y(most * n);
  const auto      sums = Uploaded(std::vector<PetscReal>(most * s.Sums()));
  cudaGraph_t     g;
  cudaGraphExec_t exec;
  const auto      multiply = [&](int round, How how, int clocks, PetscScalar *to) -> PetscErrorCode {
    Write<<<8, 256, 0, stream>>>((int)n * REALS, (const PetscReal *)(x.p + round * n), (PetscReal *)work.p, clocks);
    PetscCallCUDA(cudaGetLastError());
    return s.Multiply(how, work.p, to, stream, sums.get() + done.size() * s.Sums());
  };
  PetscCallCUDA(cudaDeviceSynchronize()); // arrays were poisoned in another stream
  for (int round = 0; round < STEPS; round++) {
    const uint64_t own  = Hash(round, salt + rank_);
    const bool     slow = rank_ == (int)(Hash(round / 20, salt) % size_);
    const How      how  = round < 5                           ? (How)round // now all kernels are loaded
                          : Hash(round, salt + 1000) % 4 == 0 ? TRANSPOSED
                                                              : (How)(own % 4);
    if (round == 5) {
      PetscCallCUDA(cudaStreamSynchronize(stream));
      PetscCallCUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      for (size_t k = 0; k < graph.size(); k++) PetscCall(multiply((int)k, graph[k], 0, again.p + k * n));
      PetscCallCUDA(cudaStreamEndCapture(stream, &g));
      PetscCallCUDA(cudaGraphInstantiate(&exec, g, 0));
    }
    if (round % 37 == 36) {
      PetscCallCUDA(cudaMemsetAsync(again.p, 0xff, again.n * sizeof(PetscScalar), stream));
      PetscCallCUDA(cudaGraphLaunch(exec, stream));
      PetscCall(Copy(y.p + done.size() * n, again.p, again.n, stream));
      for (size_t k = 0; k < graph.size(); k++) done.push_back({(int)k, graph[k]});
    }
    PetscCall(multiply(round, how, slow && own / 4 % 4 == 0 ? (int)(own % 200000) : 0, y.p + done.size() * n));
    done.push_back({round, how});
  }
  PetscCallCUDA(cudaDeviceSynchronize());
  const Values got   = y.Get();
  size_t       right = 0;
  while (right < done.size() && s.IsRight(got.data() + right * n, done[right].first, done[right].second == TRANSPOSED))
    right++;
  if (right < done.size())
    printf("[%d] %s: product %d, round %d, how %d\n", rank_, name, (int)right, done[right].first, done[right].second);
  Check(right == done.size(), "queued products", name);
  std::vector<PetscReal> partial(most * s.Sums());
  bool                   dots = true;
  PetscCallCUDA(cudaMemcpy(partial.data(), sums.get(), partial.size() * sizeof(PetscReal), cudaMemcpyDeviceToHost));
  for (size_t k = 0; k < done.size(); k++) {
    if (done[k].second == WITH_DOT && done[k].first % 5 != 1) // without NaN
      dots = dots && s.IsRightDot(s.LocalX(done[k].first), got.data() + k * n, partial.data() + k * s.Sums());
  }
  Check(dots, "inner products", name);
  PetscCallCUDA(cudaGraphExecDestroy(exec));
  PetscCallCUDA(cudaGraphDestroy(g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Products of two communicators in two streams. Each of them fills a GPU with thread blocks that wait for the other
  ranks. If nothing ordered them, one rank would run the first product and the other ranks the second one, and none
  would end
*/
static PetscErrorCode TestTwo(const System *two, const cudaStream_t *streams)
{
  constexpr int                    ROUNDS = 4;
  std::vector<std::vector<Device>> x(2), y(2);
  bool                             right = true;

  PetscFunctionBeginUser;
  for (int round = 0; round < ROUNDS; round++) {
    for (int k = 0; k < 2; k++) {
      x[k].emplace_back(two[k].LocalX(round));
      y[k].emplace_back((size_t)two[k].n);
    }
  }
  PetscCallCUDA(cudaDeviceSynchronize());
  for (int round = 0; round < ROUNDS; round++) {
    Write<<<1, 1, 0, streams[rank_ > 0]>>>(0, NULL, NULL, 2000000);
    PetscCallCUDA(cudaGetLastError());
    for (int k = 0; k < 2; k++) PetscCall(two[k].Multiply(FUSED, x[k][round].p, y[k][round].p, streams[k]));
  }
  PetscCallCUDA(cudaDeviceSynchronize());
  for (int round = 0; round < ROUNDS; round++) {
    for (int k = 0; k < 2; k++) right = right && two[k].IsRight(y[k][round].Get().data(), round, false);
  }
  Check(right, "in two streams", "products of two communicators");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestPeers(cudaStream_t stream, cudaStream_t other)
{
  struct {
    const char *name;
    bool        diagonals;
    Boundary    boundary;
  } const queued[]              = {{"diagonals", true, SOME},
                                   {"slices", false, SOME},
                                   {"diagonals, one way", true, ONE_WAY},
                                   {"slices, one way", false, ONE_WAY}};
  const cudaStream_t streams[2] = {stream, other};
  MPI_Comm           held[2], again;

  PetscFunctionBeginUser;
  spmv::limits.diagonals_least = 0;
  spmv::limits.diagonals_warps = 1000; // one slice per warp
  PetscCallMPI(MPI_Comm_dup(comm, &again));
  PetscCall(PetscCommDuplicate(comm, &held[0], NULL)); // as in main()
  PetscCall(PetscCommDuplicate(again, &held[1], NULL));
  for (const auto &q : queued) {
    System s(3000, q.diagonals, q.boundary);
    PetscCall(s.Create(held[0], stream));
    PetscCall(TestQueued(s, stream, q.name));
    PetscCall(s.Destroy());
  }
  System two[2] = {System(600000, true, EACH), System(600000, true, EACH)};
  for (int k = 0; k < 2; k++) PetscCall(two[k].Create(held[k], streams[k]));
  PetscCall(TestTwo(two, streams));
  for (System &s : two) PetscCall(s.Destroy());
  for (MPI_Comm &c : held) PetscCall(PetscCommDestroy(&c));
  PetscCallMPI(MPI_Comm_free(&again));
  PetscFunctionReturn(PETSC_SUCCESS);
}
