/*
  The order of products and fills, in one stream and in several, and the visibility of their writes to each other.
*/
#pragma once

#include "common.cuh"
#include <thread>

// NaNs that look like places without a partial sum: a product must neither wait for such a sum forever nor lose it
static void TestNaNs(Matrix &A, const Layout &L, cudaStream_t stream)
{
  Device<int>       i(A.i), j(A.j);
  Device<Number>    a(A.a.size()), x(A.n), y(A.m);
  const SpMVCudaCSR csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  SpMVCudaStore     store;
  SpMVStats         stats;
  bool              right = true;
  x.Set(std::vector<Number>(A.n, Number(1)));
  CHECK(cudaMemset(a.p, 0xff, A.a.size() * sizeof(Number)));
  CHECK(L.setup(&csr, PETSC_FALSE, stream, &store));
  SpMVCudaGetStats(store, &stats);
  for (int ones = 0; ones < 2; ones++) {
    if (ones) a.Set(std::vector<Number>(A.a.size(), Number(1)));
    CHECK(SpMVCudaFill(store, &csr, stream));
    CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(x.p), NULL, (PetscScalar *)y.p}, stream));
    CHECK(cudaStreamSynchronize(stream));
    const std::vector<Number> got = y.Get();
    for (int r = 0; r < A.m; r++)
      right = right &&
              (ones || A.i[r] == A.i[r + 1] ? got[r] == Number((PetscReal)(A.i[r + 1] - A.i[r])) : got[r] != got[r]);
  }
  Expect(right, A, L.name, stats.kernel, "NaNs with all bits set");
  CHECK(SpMVCudaDestroy(&store));
}

static __global__ void Delay(int clocks)
{
  Dawdle(clocks);
}

/*
  One store in two streams without any other order: products share the partial sums of long rows, and a fill runs after
  the products that were called before it and before the products that are called after it
*/
struct TwoStreams {
  static constexpr int COUNT = 64, ROUNDS = 10, CLOCKS = 300000;
  const Layout        &L;
  const cudaStream_t   in[2];
  const Matrix         A = LongRows();
  Device<int>          i{A.i}, j{A.j};
  Device<Number>       a[2] = {Device<Number>(A.a.size()), Device<Number>(A.a.size())};
  Device<Number>       x[2] = {Device<Number>(A.n), Device<Number>(A.n)};
  Device<Number>       y[2] = {Device<Number>((size_t)COUNT * A.m), Device<Number>((size_t)COUNT *A.m)};
  std::vector<Number>  good[2][2]; // of the values and of x
  SpMVCudaCSR          csr[2];
  SpMVCudaStore        store;
  SpMVStats            stats;
  bool                 same = true;

  static Matrix LongRows()
  {
    return Build("long rows, two streams", 16, 60000, [](int r, Row &row) {
      for (int c = 0; c < 60000; c++) {
        if ((c * 31 + r * 17) % 3) row.push_back(c);
      }
    });
  }

  TwoStreams(const Layout &layout, cudaStream_t stream, cudaStream_t other) : L(layout), in{stream, other}
  {
    std::vector<Number> ha(A.a.size()), hx(A.n);
    for (int k = 0; k < 2; k++) {
      for (auto &v : ha) v = Value();
      for (auto &v : hx) v = Value();
      a[k].Set(ha);
      x[k].Set(hx);
      csr[k] = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a[k].p)};
    }
    CHECK(L.setup(&csr[0], PETSC_FALSE, stream, &store));
    SpMVCudaGetStats(store, &stats);
    for (int values = 1; values >= 0; values--) { // alone
      CHECK(SpMVCudaFill(store, &csr[values], stream));
      for (int k = 0; k < 2; k++) {
        Mult(stream, k, 0);
        CHECK(cudaDeviceSynchronize());
        good[values][k] = y[k].Get();
        good[values][k].resize(A.m);
      }
    }
  }

  void Say(const char *what)
  {
    Expect(same, A, L.name, stats.kernel, what);
    same = true;
  }

  void Mult(cudaStream_t stream, int k, int at)
  {
    CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(x[k].p), NULL, (PetscScalar *)y[k].p + at * A.m}, stream));
  }

  void Look(int values, int k, int at)
  {
    const std::vector<Number> got = y[k].Get();
    same = same && !memcmp((void *)(got.data() + at * A.m), (void *)good[values][k].data(), A.m * sizeof(Number));
  }

  void Clear()
  {
    for (int k = 0; k < 2; k++) y[k].Poison();
    CHECK(cudaDeviceSynchronize());
  }

  // a fill that runs late, in a stream in which the store has been used
  void LateFill(cudaStream_t stream, int values)
  {
    CHECK(SpMVCudaFill(store, &csr[1 - values], stream));
    Mult(stream, 0, 0);
    Clear();
    Delay<<<1, 1, 0, stream>>>(20 * CLOCKS);
    CHECK(SpMVCudaFill(store, &csr[values], stream));
  }

  void Products() // x[k] in stream k
  {
    Clear();
    for (int at = 0; at < COUNT; at++) {
      for (int k = 0; k < 2; k++) Mult(in[k], k, at);
    }
    CHECK(cudaDeviceSynchronize());
    for (int at = 0; at < COUNT; at++) {
      for (int k = 0; k < 2; k++) Look(0, k, at);
    }
  }

  void FillAfterProduct(int old_values)
  {
    Clear();
    Delay<<<1, 1, 0, in[1]>>>(CLOCKS);
    Mult(in[1], 0, 0); // a product with the old values that runs late
    CHECK(SpMVCudaFill(store, &csr[1 - old_values], in[0]));
    Mult(in[0], 0, 1);
    CHECK(cudaDeviceSynchronize());
    Look(old_values, 0, 0);
    Look(1 - old_values, 0, 1);
  }

  void ProductAfterFill(int values)
  {
    Clear();
    Delay<<<1, 1, 0, in[0]>>>(CLOCKS);
    CHECK(SpMVCudaFill(store, &csr[values], in[0]));
    Mult(in[1], 0, 0);
    CHECK(cudaDeviceSynchronize());
    Look(values, 0, 0);
  }

  void DestroyedStreams()
  {
    cudaStream_t brief = Brief();
    Clear();
    for (int at = 0; at < COUNT; at++) {
      Mult(at % 2 ? in[1] : brief, 1, at);
      if (at != COUNT / 2) continue;
      CHECK(cudaStreamDestroy(brief));
      brief = Brief();
    }
    CHECK(cudaStreamDestroy(brief));
    CHECK(cudaDeviceSynchronize());
    for (int at = 0; at < COUNT; at++) Look(0, 1, at);
  }

  void FillInDestroyedStream(int values) // CUDA gives a new stream the handle of a destroyed one
  {
    cudaStream_t brief = Brief();
    LateFill(brief, values);
    CHECK(cudaStreamDestroy(brief));
    brief = Brief();
    Mult(brief, 0, 0);
    CHECK(cudaStreamDestroy(brief));
    CHECK(cudaDeviceSynchronize());
    Look(values, 0, 0);
  }

  void FillInStreamOfThread(int values)
  {
    LateFill(cudaStreamPerThread, values);
    std::thread([&] { Mult(cudaStreamPerThread, 0, 0); }).join();
    CHECK(cudaDeviceSynchronize());
    Look(values, 0, 0);
  }

  static cudaStream_t Brief()
  {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }
};

static void TestStreams(const Layout &L, cudaStream_t stream, cudaStream_t other)
{
  constexpr int ROUNDS = TwoStreams::ROUNDS;
  TwoStreams    s(L, stream, other);

  for (int round = 0; round < ROUNDS; round++) s.Products();
  s.Say("products in two streams");
  for (int round = 0; round < ROUNDS; round++) s.FillAfterProduct(round % 2);
  s.Say("a fill after a product in another stream");
  for (int round = 0; round < ROUNDS; round++) s.ProductAfterFill(1 - round % 2);
  s.Say("a product after a fill in another stream");
  for (int round = 0; round < ROUNDS; round++) s.DestroyedStreams();
  s.Say("streams that are destroyed");
  for (int round = 0; round < ROUNDS; round++) s.FillInDestroyedStream(1 - round % 2);
  s.Say("a product in a new stream after a fill in a destroyed one");
  for (int round = 0; round < ROUNDS; round++) s.FillInStreamOfThread(1 - round % 2);
  s.Say("a product after a fill in another thread's stream");
  Expect(s.stats.long_rows > 0, s.A, L.name, s.stats.kernel, "rows in parts");
  CHECK(SpMVCudaDestroy(&s.store));
}

// The off-diagonal block is replaced in one stream while a product in another stream has yet to add the old one, whose
// lists the pool hands out again
static void TestReplaced(const Layout &L, cudaStream_t stream, cudaStream_t other)
{
  constexpr int       HALO = 4000, ROUNDS = 10;
  Matrix              A = Band("an off-diagonal block that is replaced", 60000, 3, 1), off[2];
  Device<int>         i(A.i), j(A.j);
  Device<Number>      a(A.a.size()), x(A.n), y(A.m);
  const SpMVCudaCSR   csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  std::vector<Number> hx(A.n);
  std::vector<int>    from(HALO);
  SpMVCudaStore       store;
  SpMVStats           stats;
  bool                same = true;
  for (auto &v : A.a) v = Value();
  for (auto &v : hx) v = Value();
  for (auto &g : from) g = Int(A.n);
  a.Set(A.a);
  x.Set(hx);
  SelfExchange self(from);
  for (int k = 0; k < 2; k++) // as many entries in the same rows
    off[k] = Build("", A.m, HALO, [=](int r, Row &row) {
      if (r % 16 == 0) row.push_back((r / 16 + 1777 * k) % HALO);
    });
  for (auto &v : off[0].a) v = Value();
  Device<int>       oi(off[0].i), oj[2] = {Device<int>(off[0].j), Device<int>(off[1].j)};
  Device<Number>    oa(off[0].a);
  const SpMVCudaCSR new_one = {A.m, HALO, (PetscInt64)off[1].j.size(), oi.p, oj[1].p, 4, P(oa.p)};
  SpMVCudaCSR       old_one = new_one;
  old_one.j                 = oj[0].p;
  CHECK(L.setup(&csr, PETSC_FALSE, stream, &store));
  SpMVCudaGetStats(store, &stats);
  CHECK(SpMVCudaFill(store, &csr, stream));
  for (int round = 0; round < ROUNDS; round++) {
    auto mult = [&] {
      CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(x.p), NULL, (PetscScalar *)y.p, NULL, self, PETSC_TRUE}, stream));
    };
    CHECK(SpMVCudaFuseOffdiagonal(store, &old_one, A.m, stream));
    CHECK(SpMVCudaFillOffdiagonal(store, &old_one, stream));
    mult();
    CHECK(cudaDeviceSynchronize());
    const std::vector<Number> good = y.Get();
    y.Poison();
    CHECK(cudaDeviceSynchronize());
    Delay<<<1, 1, 0, stream>>>(6000000);
    mult();
    CHECK(SpMVCudaFuseOffdiagonal(store, &new_one, A.m, other));
    CHECK(cudaDeviceSynchronize());
    const std::vector<Number> got = y.Get();
    same = same && !memcmp((void *)got.data(), (void *)good.data(), got.size() * sizeof(Number));
  }
  Expect(same, A, L.name, stats.kernel, "a product before another off-diagonal block");
  CHECK(SpMVCudaDestroy(&store));
}
