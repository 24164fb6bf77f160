/*
  The order of products and fills, in one stream and in several, and the visibility of their writes to each other.
*/
#pragma once

#include "common.cuh"
#include <thread>

// Every thread block reads all of x, then writes a part of it: the multiprocessors' caches hold old values of the other
// parts
static __global__ void Replace(int n, Number *x, const Number *next, Number *nowhere)
{
  Number sum = x[threadIdx.x % n];
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const Number a = x[i];
    if (*(const PetscReal *)&a > *(const PetscReal *)&sum) sum = a;
  }
  Dawdle(10000);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = next[i];
  if (*(const PetscReal *)&sum > 1e30) *nowhere = sum;
}

// Begins like an exchange: after all previous work is done, and together with the product
static __global__ void Follow()
{
  AwaitPrevious();
  LetNextBegin();
  Dawdle(10000);
}

// A product that does not wait reads the current x, not the x that the caches last read
static void TestFresh(Matrix &A, const Layout &L, cudaStream_t stream)
{
  Device<int>         i(A.i), j(A.j);
  Device<Number>      a(A.a.size()), x(A.n), next[2] = {Device<Number>(A.n), Device<Number>(A.n)}, y(A.m), nowhere(1);
  const SpMVCudaCSR   csr   = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  std::vector<Number> hx[2] = {std::vector<Number>(A.n), std::vector<Number>(A.n)}, good[2];
  SpMVCudaStore       store;
  SpMVStats           stats;
  bool                same = true;
  for (auto &v : A.a) v = Value();
  a.Set(A.a);
  CHECK(L.setup(&csr, PETSC_FALSE, stream, &store));
  SpMVCudaGetStats(store, &stats);
  CHECK(SpMVCudaFill(store, &csr, stream));
  for (int k = 0; k < 2; k++) {
    for (auto &v : hx[k]) v = Value();
    next[k].Set(hx[k]);
    CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(next[k].p), NULL, (PetscScalar *)y.p}, stream));
    CHECK(cudaStreamSynchronize(stream));
    good[k] = y.Get();
  }
  x.Set(hx[1]);
  for (int round = 0; round < 400; round++) {
    Replace<<<264, 256, 0, stream>>>(A.n, x.p, next[round % 2].p, nowhere.p);
    CHECK(cudaGetLastError());
    LaunchEarly(1, 1, stream, Follow);
    CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(x.p), NULL, (PetscScalar *)y.p, NULL, SPMVCUDA_BEGIN_WITH_EXCHANGE},
                       stream));
    CHECK(cudaStreamSynchronize(stream));
    const std::vector<Number> got = y.Get();
    same = same && !memcmp((void *)got.data(), (void *)good[round % 2].data(), got.size() * sizeof(Number));
  }
  Expect(same, A, L.name, stats.kernel, "x as it is");
  CHECK(SpMVCudaDestroy(&store));
}

// Lets the next kernel begin, and then writes x
static __global__ void WriteLate(int n, Number *x, const Number *next)
{
  AwaitPrevious();
  LetNextBegin();
  Dawdle(20000);
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = next[i];
}

// A product that reads its matrix while the previous kernel still writes x, and fills between such products
static void TestLate(Matrix &A, const Layout &L, cudaStream_t stream)
{
  constexpr int  ROUNDS = 24, FILL = 6; // products; products between fills
  Device<int>    i(A.i), j(A.j);
  Device<Number> a[2]    = {Device<Number>(A.a.size()), Device<Number>(A.a.size())},
                 next[2] = {Device<Number>(A.n), Device<Number>(A.n)}, x(A.n), y(A.m);
  SpMVCudaCSR         csr[2];
  std::vector<Number> hx(A.n), good[2][2];
  SpMVCudaStore       store;
  SpMVStats           stats;
  bool                same = true;
  for (int k = 0; k < 2; k++) {
    for (auto &v : A.a) v = Value();
    for (auto &v : hx) v = Value();
    a[k].Set(A.a);
    next[k].Set(hx);
    csr[k] = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a[k].p)};
  }
  CHECK(L.setup(&csr[0], PETSC_FALSE, stream, &store));
  SpMVCudaGetStats(store, &stats);
  for (int values = 0; values < 2; values++) {
    CHECK(SpMVCudaFill(store, &csr[values], stream));
    for (int k = 0; k < 2; k++) {
      CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(next[k].p), NULL, (PetscScalar *)y.p}, stream));
      CHECK(cudaStreamSynchronize(stream));
      good[values][k] = y.Get();
    }
  }
  for (int round = 0; round < ROUNDS; round++) {
    const int values = round / FILL % 2;
    if (round % FILL == 0) CHECK(SpMVCudaFill(store, &csr[values], stream));
    WriteLate<<<1, 256, 0, stream>>>(A.n, x.p, next[round % 2].p);
    CHECK(cudaGetLastError());
    CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(x.p), NULL, (PetscScalar *)y.p}, stream));
    CHECK(cudaStreamSynchronize(stream));
    const std::vector<Number> got = y.Get();
    same = same && !memcmp((void *)got.data(), (void *)good[values][round % 2].data(), got.size() * sizeof(Number));
  }
  Expect(same, A, L.name, stats.kernel, "x that is written late");
  CHECK(SpMVCudaDestroy(&store));
}

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
static void TestStreams(const Layout &L, cudaStream_t stream, cudaStream_t other)
{
  constexpr int       COUNT = 64, ROUNDS = 10, CLOCKS = 300000;
  const Matrix        A = Build("long rows, two streams", 16, 60000, [](int r, Row &row) {
    for (int c = 0; c < 60000; c++) {
      if ((c * 31 + r * 17) % 3) row.push_back(c);
    }
  });
  Device<int>         i(A.i), j(A.j);
  std::vector<Number> ha(A.a.size()), hx(A.n), good[2][2];
  const cudaStream_t  in[2] = {stream, other};
  SpMVCudaStore       store;
  SpMVStats           stats;
  bool                same = true;
  Device<Number>      a[2] = {Device<Number>(A.a.size()), Device<Number>(A.a.size())},
                 x[2]      = {Device<Number>(A.n), Device<Number>(A.n)},
                 y[2]      = {Device<Number>((size_t)COUNT * A.m), Device<Number>((size_t)COUNT * A.m)};
  SpMVCudaCSR csr[2];
  for (int k = 0; k < 2; k++) {
    for (auto &v : ha) v = Value();
    for (auto &v : hx) v = Value();
    a[k].Set(ha);
    x[k].Set(hx);
    csr[k] = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a[k].p)};
  }
  CHECK(L.setup(&csr[0], PETSC_FALSE, stream, &store));
  SpMVCudaGetStats(store, &stats);
  auto expect = [&](const char *what) {
    Expect(same, A, L.name, stats.kernel, what);
    same = true;
  };
  auto mult = [&](int where, int k, int at) {
    CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(x[k].p), NULL, (PetscScalar *)y[k].p + at * A.m}, in[where]));
  };
  auto look = [&](int values, int k, int at) {
    const std::vector<Number> got = y[k].Get();
    same = same && !memcmp((void *)(got.data() + at * A.m), (void *)good[values][k].data(), A.m * sizeof(Number));
  };
  auto late = [&](cudaStream_t in, int values) { // a fill that runs late, in a stream in which the store has been used
    CHECK(SpMVCudaFill(store, &csr[1 - values], in));
    CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(x[0].p), NULL, (PetscScalar *)y[0].p}, in));
    y[0].Poison();
    CHECK(cudaDeviceSynchronize());
    Delay<<<1, 1, 0, in>>>(20 * CLOCKS);
    CHECK(SpMVCudaFill(store, &csr[values], in));
  };
  for (int values = 1; values >= 0; values--) { // alone
    CHECK(SpMVCudaFill(store, &csr[values], stream));
    for (int k = 0; k < 2; k++) {
      mult(0, k, 0);
      CHECK(cudaDeviceSynchronize());
      good[values][k] = y[k].Get();
      good[values][k].resize(A.m);
    }
  }
  for (int round = 0; round < ROUNDS; round++) {
    for (int k = 0; k < 2; k++) y[k].Poison();
    CHECK(cudaDeviceSynchronize());
    for (int at = 0; at < COUNT; at++) {
      for (int k = 0; k < 2; k++) mult(k, k, at); // x[k] in stream k
    }
    CHECK(cudaDeviceSynchronize());
    for (int at = 0; at < COUNT; at++) {
      for (int k = 0; k < 2; k++) look(0, k, at);
    }
  }
  expect("products in two streams");
  for (int round = 0; round < ROUNDS; round++) {
    const int new_one = 1 - round % 2, old_one = round % 2; // values
    for (int k = 0; k < 2; k++) y[k].Poison();
    CHECK(cudaDeviceSynchronize());
    Delay<<<1, 1, 0, other>>>(CLOCKS);
    mult(1, 0, 0); // a product with the old values that runs late
    CHECK(SpMVCudaFill(store, &csr[new_one], stream));
    mult(0, 0, 1);
    CHECK(cudaDeviceSynchronize());
    look(old_one, 0, 0);
    look(new_one, 0, 1);
  }
  expect("a fill after a product in another stream");
  for (int round = 0; round < ROUNDS; round++) {
    const int new_one = 1 - round % 2;
    y[0].Poison();
    CHECK(cudaDeviceSynchronize());
    Delay<<<1, 1, 0, stream>>>(CLOCKS);
    CHECK(SpMVCudaFill(store, &csr[new_one], stream));
    mult(1, 0, 0);
    CHECK(cudaDeviceSynchronize());
    look(new_one, 0, 0);
  }
  expect("a product after a fill in another stream");
  for (int round = 0; round < ROUNDS; round++) { // streams come and go
    cudaStream_t brief;
    CHECK(cudaStreamCreateWithFlags(&brief, cudaStreamNonBlocking));
    y[1].Poison();
    CHECK(cudaDeviceSynchronize());
    for (int at = 0; at < COUNT; at++) {
      CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(x[1].p), NULL, (PetscScalar *)y[1].p + at * A.m},
                         at % 2 ? other : brief));
      if (at == COUNT / 2) CHECK(cudaStreamDestroy(brief));
      if (at == COUNT / 2) CHECK(cudaStreamCreateWithFlags(&brief, cudaStreamNonBlocking));
    }
    CHECK(cudaStreamDestroy(brief));
    CHECK(cudaDeviceSynchronize());
    for (int at = 0; at < COUNT; at++) look(0, 1, at);
  }
  expect("streams that are destroyed");
  for (int round = 0; round < ROUNDS; round++) { // CUDA gives a new stream the handle of a destroyed one
    const int    new_one = 1 - round % 2;
    cudaStream_t brief;
    CHECK(cudaStreamCreateWithFlags(&brief, cudaStreamNonBlocking));
    late(brief, new_one);
    CHECK(cudaStreamDestroy(brief));
    CHECK(cudaStreamCreateWithFlags(&brief, cudaStreamNonBlocking));
    CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(x[0].p), NULL, (PetscScalar *)y[0].p}, brief));
    CHECK(cudaStreamDestroy(brief));
    CHECK(cudaDeviceSynchronize());
    look(new_one, 0, 0);
  }
  expect("a product in a new stream after a fill in a destroyed one");
  for (int round = 0; round < ROUNDS; round++) {
    const int new_one = 1 - round % 2;
    late(cudaStreamPerThread, new_one);
    std::thread([&] {
      CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(x[0].p), NULL, (PetscScalar *)y[0].p}, cudaStreamPerThread));
    }).join();
    CHECK(cudaDeviceSynchronize());
    look(new_one, 0, 0);
  }
  expect("a product after a fill in another thread's stream");
  Expect(stats.long_rows > 0, A, L.name, stats.kernel, "rows in parts");
  CHECK(SpMVCudaDestroy(&store));
}

// The off-diagonal block is replaced in one stream while a product in another stream has yet to add the old one, whose
// lists the pool hands out again
static void TestReplaced(const Layout &L, cudaStream_t stream, cudaStream_t other)
{
  constexpr int       HALO = 4000, ROUNDS = 10;
  Matrix              A = Band("an off-diagonal block that is replaced", 60000, 3, 1), off[2];
  Device<int>         i(A.i), j(A.j);
  Device<Number>      a(A.a.size()), x(A.n), halo(HALO), y(A.m);
  const SpMVCudaCSR   csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  std::vector<Number> hx(A.n), hh(HALO);
  SpMVCudaStore       store;
  SpMVStats           stats;
  bool                same = true;
  for (auto &v : A.a) v = Value();
  for (auto &v : hx) v = Value();
  for (auto &v : hh) v = Value();
  a.Set(A.a);
  x.Set(hx);
  halo.Set(hh);
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
      CHECK(SpMVCudaMult(
          store, {SPMVCUDA_MULT, P(x.p), NULL, (PetscScalar *)y.p, NULL, SPMVCUDA_BEGIN_AFTER_EXCHANGE, P(halo.p)},
          stream));
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
