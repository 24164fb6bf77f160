/*
  Input that the device core rejects, and errors that must not escape from it or be reported as its own.
*/
#pragma once

#include "hostmemory.cuh"

// A matrix that is too large for 32-bit numbers is rejected before any of it is read
static void TestTooLarge(const Layout &L, cudaStream_t stream)
{
  const PetscInt64 most       = SPMVCUDA_MAX_SIZE,
                   sizes[][3] = {
                       {most + 1, 5, 5}, {5, most + 1, 5}, {INT_MAX - 1, INT_MAX - 1, 5}, {5, 5, INT_MAX - 1}};
  const Matrix A{"too large", 0, 0, {0}, {}, {}};
  for (const auto &size : sizes) {
    const SpMVCudaCSR csr = {size[0], size[1], size[2], NULL, NULL, 4, NULL};
    // only with a transpose does the number of entries matter
    const PetscBool   transpose = L.transpose || size[2] > 5 ? PETSC_TRUE : PETSC_FALSE;
    SpMVCudaStore     store     = (SpMVCudaStore)&csr;
    const cudaError_t error     = L.setup(&csr, transpose, stream, &store);
    Expect(error == cudaErrorNotSupported && !store, A, L.name, "any", "is refused");
  }
  CHECK(cudaDeviceSynchronize());
  Expect(cudaPeekAtLastError() == cudaSuccess, A, L.name, "any", "no error is left");
}

// The first row is all ones, all other rows have one entry on the diagonal
static __global__ void OneLongRow(int rows, int columns, int *i, int *j, Number *a, Number *x)
{
  for (int64_t q = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; q < (int64_t)columns + rows - 1;
       q += (int64_t)gridDim.x * blockDim.x) {
    j[q]                = (int)(q < columns ? q : q - columns + 1);
    *(PetscReal *)&a[q] = 1;
    if (q < columns) *(PetscReal *)&x[q] = 1;
    if (q == 0) i[0] = 0;
    if (q < rows) i[q + 1] = (int)(columns + q);
  }
}

// A row of 2^29 entries, of which eight are 2^32
static void TestLongest(const Layout &L, cudaStream_t stream)
{
  constexpr int rows = 201, columns = 1 << 29;
  const Matrix  A{"a row of 2^29", rows, columns, {0}, {}, {}};
  const size_t  nnz = (size_t)columns + rows - 1;
  size_t        free, total;
  SpMVCudaStore store;
  CHECK(cudaMemGetInfo(&free, &total));
  if (sizeof(Number) > 4 || free < (size_t)20 << 30) return; // only in single precision, which needs the fewest bytes
  Device<int>       i(rows + 1), j(nnz);
  Device<Number>    a(nnz), x(columns), y(rows);
  const SpMVCudaCSR csr = {rows, columns, (PetscInt64)nnz, i.p, j.p, 4, P(a.p)};
  OneLongRow<<<1024, 256, 0, stream>>>(rows, columns, i.p, j.p, a.p, x.p);
  CHECK(cudaGetLastError());
  CHECK(L.setup(&csr, PETSC_FALSE, stream, &store));
  CHECK(SpMVCudaFill(store, &csr, stream));
  CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(x.p), NULL, (PetscScalar *)y.p}, stream));
  CHECK(cudaStreamSynchronize(stream));
  const std::vector<Number> got   = y.Get();
  bool                      right = true;
  // exact, because the partial sums are multiples of the length of a part
  for (int r = 0; r < rows; r++) right = right && got[r] == Number(r ? 1 : columns);
  Expect(right, A, L.name, "any", "y = A x");
  CHECK(SpMVCudaDestroy(&store));
}

// An error that the program has not checked is not reported as the library's
static void TestOthersError(Matrix &A, const Layout &L, cudaStream_t stream)
{
  Device<int>    i(A.i), j(A.j);
  Device<Number> a(A.a.size()), x(A.n), y(A.m);
  SpMVCudaCSR    csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  SpMVCudaStore  store;
  SpMVStats      stats;
  void          *nothing;
  auto           step = [&](cudaError_t error, const char *what) {
    Expect(error == cudaSuccess || error == cudaErrorNotSupported, A, L.name, "any", what);
  };
  auto fail = [&] {
    Expect(cudaMalloc(&nothing, (size_t)1 << 60) == cudaErrorMemoryAllocation, A, L.name, "any",
           "an error of one's own");
  };
  fail();
  step(L.setup(&csr, L.transpose, stream, &store), "set-up after an error of another");
  if (!store) return;
  SpMVCudaGetStats(store, &stats);
  fail();
  bool fused = false;
  if (!L.transpose && !L.conjugate) {
    const cudaError_t error = SpMVCudaFuseOffdiagonal(store, &csr, A.m, stream);
    fused                   = error == cudaSuccess;
    step(error, "an off-diagonal block after an error of another");
  }
  fail();
  step(SpMVCudaFill(store, &csr, stream), "a fill after an error of another");
  fail();
  if (fused)
    step(SpMVCudaFillOffdiagonal(store, &csr, stream), "a fill of an off-diagonal block after an error of another");
  fail();
  step(SpMVCudaMult(store, {SPMVCUDA_MULT, P(x.p), NULL, (PetscScalar *)y.p}, stream),
       "a product after an error of another");
  fail();
  step(SpMVCudaDestroy(&store), "an end after an error of another");
  (void)cudaGetLastError();
}

// Each allocation of the host in turn fails: an error, and no exception
static void TestHostMemory(Matrix &A, const Layout &L, cudaStream_t stream)
{
  Device<int>    i(A.i), j(A.j);
  Device<Number> a(A.a);
  SpMVCudaCSR    csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  SpMVCudaStore  store;
  auto           each = [&](const char *what, std::function<cudaError_t()> f) {
    bool good = true, more = true;
    for (int n = 0; more && n < 1000; n++) {
      allocations             = n;
      const cudaError_t error = f();
      more                    = allocations < 0; // this allocation was reached
      allocations             = -1;
      good = good && (error == cudaErrorMemoryAllocation || error == cudaErrorNotSupported || error == cudaSuccess) &&
             (more || error != cudaErrorMemoryAllocation);
      (void)cudaGetLastError();
    }
    Expect(good && !more, A, L.name, "any", what);
  };
  each("set-up without the host's memory", [&] {
    const cudaError_t error = L.setup(&csr, L.transpose, stream, &store);
    const int         left  = allocations;
    allocations             = -1;
    Expect((error == cudaSuccess) == (store != NULL), A, L.name, "any", "a store or an error");
    if (store) CHECK(SpMVCudaDestroy(&store));
    allocations = left;
    return error;
  });
  CHECK(L.setup(&csr, L.transpose, stream, &store));
  if (!L.transpose)
    each("an off-diagonal block without the host's memory",
         [&] { return SpMVCudaFuseOffdiagonal(store, &csr, A.m, stream); });
  CHECK(SpMVCudaDestroy(&store));
  const size_t               bytes = (size_t)64 << 20; // enough for several threads
  Device<unsigned char>      to(bytes);
  std::vector<unsigned char> from(bytes, 7);
  void                      *device = to.p;
  const void                *host   = from.data();
  each("an upload without the host's memory", [&] { return SpMVCudaUpload(1, &device, &host, &bytes); });
  Expect(to.Get() == from, A, L.name, "any", "what was uploaded");
  CHECK(SpMVCudaFinalize());
}

// Complex arrays that begin in the middle of a complex number, up to the last complete number
static void TestUnaligned(Matrix &A, const Layout &L, cudaStream_t stream)
{
  const int           rows = L.transpose ? A.n : A.m, cols = L.transpose ? A.m : A.n;
  std::vector<Number> hx(cols), hz(rows);
  std::vector<Wide>   ref;
  std::vector<double> size;
  for (auto &v : A.a) v = Value();
  for (auto &v : hx) v = Value();
  for (auto &v : hz) v = Value();
  Device<int>    i(A.i), j(A.j);
  Device<Number> a(A.a), x(cols + 1), y(rows + 1), z(rows + 1);
  SpMVCudaCSR    csr = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, P(a.p)};
  SpMVCudaStore  store;
  SpMVStats      stats;
  CHECK(L.setup(&csr, L.transpose, stream, &store));
  CHECK(SpMVCudaFill(store, &csr, stream));
  SpMVCudaGetStats(store, &stats);
  if (L.single && sizeof(Single) < sizeof(Number)) {
    for (auto &v : A.a) v = Rounded(v);
  }
  SelfExchange self({});
  auto place = [&](Device<Number> &d, bool shifted) { return (Number *)((PetscReal *)d.p + (shifted ? 1 : 0)); };
  auto get   = [&](const Number *from) {
    std::vector<Number> v(rows);
    CHECK(cudaMemcpy(v.data(), from, rows * sizeof(Number), cudaMemcpyDeviceToHost));
    return v;
  };
  for (int which = 0; which < (sizeof(Number) > sizeof(PetscReal) ? 8 : 0); which++) {
    Number *px = place(x, which & 1), *py = place(y, which & 2), *pz = place(z, which & 4);
    CHECK(cudaMemcpy(px, hx.data(), cols * sizeof(Number), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(pz, hz.data(), rows * sizeof(Number), cudaMemcpyHostToDevice));
    y.Poison();
    Reference(A, L.transpose, L.conjugate, hx, NULL, ref, size);
    CHECK(SpMVCudaMult(store, {L.Form(), P(px), NULL, (PetscScalar *)py}, stream));
    CHECK(cudaStreamSynchronize(stream));
    Expect(Close(get(py), ref, size), A, L.name, stats.kernel, "y = A x, not aligned");
    Reference(A, L.transpose, L.conjugate, hx, hz.data(), ref, size);
    CHECK(SpMVCudaMult(store, {L.Form(), P(px), P(pz), (PetscScalar *)py}, stream));
    CHECK(cudaStreamSynchronize(stream));
    Expect(Close(get(py), ref, size), A, L.name, stats.kernel, "y = z + A x, not aligned");
    if (!L.transpose && !L.conjugate && SpMVCudaSends(store)) {
      y.Poison();
      CHECK(SpMVCudaMult(store, {SPMVCUDA_MULT, P(px), P(pz), (PetscScalar *)py, NULL, self, PETSC_TRUE}, stream));
      CHECK(cudaStreamSynchronize(stream));
      Expect(Close(get(py), ref, size), A, L.name, stats.kernel, "with an exchange, not aligned");
    }
    CHECK(SpMVCudaMult(store, {L.Form(), P(px), P(pz), (PetscScalar *)pz}, stream));
    CHECK(cudaStreamSynchronize(stream));
    Expect(Close(get(pz), ref, size), A, L.name, stats.kernel, "z = z + A x, not aligned");
  }
  CHECK(SpMVCudaDestroy(&store));
}

// If the library has no code for the device, every set-up returns cudaErrorNotSupported, so that the caller uses its
// own product, and no error remains
static void TestUnsupported(Matrix &A, const Layout &L, cudaStream_t stream)
{
  Device<int>       i(A.i), j(A.j);
  const SpMVCudaCSR csr   = {A.m, A.n, (PetscInt64)A.j.size(), i.p, j.p, 4, NULL};
  SpMVCudaStore     store = (SpMVCudaStore)&csr;
  const cudaError_t error = L.setup(&csr, L.transpose, stream, &store);
  Expect(error == cudaErrorNotSupported && !store, A, L.name, "any", "no code for this device");
  Expect(cudaGetLastError() == cudaSuccess, A, L.name, "any", "no error is left");
}
