/*
  A layout of a matrix: all its products, compared with the reference, and its statistics.
*/
#pragma once

#include "common.cuh"
#include <set>

static std::set<std::string> fusing; // the layouts whose products have added an off-diagonal block

// Writes late, while the next kernel is already resident
static __global__ void Arrive(int n, const Number *source, Number *target)
{
  LetNextBegin();
  Dawdle(20000);
  for (int i = threadIdx.x; i < n; i += blockDim.x) target[i] = source[i];
}

struct Streams {
  cudaStream_t stream, other;
  cudaEvent_t  event;
};

class Products {
public:
  Products(Matrix &matrix, const Layout &layout, int bytes, const Streams &streams)
      : A(matrix), L(layout), rows(L.transpose ? A.n : A.m), cols(L.transpose ? A.m : A.n), stream(streams.stream),
        other(streams.other), event(streams.event), i8(std::vector<int64_t>(A.i.begin(), A.i.end())),
        j8(std::vector<int64_t>(A.j.begin(), A.j.end())), i4(A.i), j4(A.j), a(A.a.size()), x(cols), y(rows), z(rows),
        hx(cols), hz(rows), single(L.single && sizeof(Single) < sizeof(Number))
  {
    csr = {A.m,
           A.n,
           (PetscInt64)A.j.size(),
           bytes == 8 ? (void *)i8.p : (void *)i4.p,
           bytes == 8 ? (void *)j8.p : (void *)j4.p,
           bytes,
           NULL};
  }

  void Test()
  {
    CHECK(L.setup(&csr, L.transpose, stream, &store)); // without values
    SpMVCudaGetStats(store, &stats);
    csr.a = P(a.p);
    for (int refresh = 0; refresh < 2; refresh++) {
      Fill(refresh);
      Plain();
      ColumnsInGraph(refresh ? "columns in a graph" : "columns in a graph, before any others");
      for (int count : refresh ? std::vector<int>{2, 4, 11} : std::vector<int>{0, 1, 3, 8, 2 + Int(18)}) Columns(count);
      if (refresh && rows < 400 && !Int(4)) Columns(70); // several launches
      for (int kind = 0; kind < 3 && !L.transpose && !L.conjugate; kind++) Fused(kind);
    }
    Statistics();
    if (cols) NonFinite();
    if (rows == cols) Sequences();
    Graph();
    CHECK(SpMVCudaDestroy(&store));
  }

private:
  Matrix             &A;
  const Layout       &L;
  const int           rows, cols;
  const cudaStream_t  stream, other;
  const cudaEvent_t   event;
  Device<int64_t>     i8, j8;
  Device<int>         i4, j4;
  Device<Number>      a, x, y, z;
  std::vector<Number> hx, hz, hy;
  std::vector<Wide>   ref;
  std::vector<double> size;
  const bool          single;
  SpMVCudaCSR         csr;
  SpMVCudaStore       store;
  SpMVStats           stats;

  void Expect(bool right, const char *what)
  {
    ::Expect(right, A, L.name, stats.kernel, what);
  }

  // y = A x, or y = z + A x
  void Mult(const Number *from, const Number *add, Number *to)
  {
    CHECK(SpMVCudaMult(store, {L.Form(), P(from), P(add), (PetscScalar *)to}, stream));
    CHECK(cudaStreamSynchronize(stream));
  }

  void Fill(int refresh)
  {
    // one in so many values is different: in the second case, most node blocks are equal
    const int one = Int(2) ? 4 : 200;
    for (auto &v : A.a) v = refresh == 0 && Int(one) ? Number(-1) : Value(); // many equal values, then none
    for (auto &v : hx) v = Value();
    for (auto &v : hz) v = Value();
    a.Set(A.a);
    x.Set(hx);
    CHECK(SpMVCudaFill(store, &csr, stream));
    if (single) { // from here on, A has the stored values, so that the bounds are the same
      for (auto &v : A.a) v = Rounded(v);
    }
  }

  void Plain()
  {
    y.Poison();
    Mult(x.p, NULL, y.p);
    hy = y.Get();
    Reference(A, L.transpose, L.conjugate, hx, NULL, ref, size);
    Expect(Close(hy, ref, size), "y = A x");

    y.Poison();
    Mult(x.p, NULL, y.p);
    std::vector<Number> again = y.Get();
    Expect(!rows || !memcmp(again.data(), hy.data(), rows * sizeof(Number)), "the same bits twice");

    z.Set(hz);
    y.Poison();
    Reference(A, L.transpose, L.conjugate, hx, hz.data(), ref, size);
    Mult(x.p, z.p, y.p);
    Expect(Close(y.Get(), ref, size), "y = z + A x");
    Mult(x.p, z.p, z.p);
    Expect(Close(z.Get(), ref, size), "z = z + A x");
    if (!L.conjugate) Residual();
  }

  void Residual()
  {
    std::vector<Number> minus(hx);
    for (auto &v : minus) v = -v;
    Reference(A, L.transpose, false, minus, hz.data(), ref, size);
    z.Set(hz);
    y.Poison();
    for (const bool onto : {false, true}) {
      CHECK(SpMVCudaMult(store, {SPMVCUDA_RESIDUAL, P(x.p), P(z.p), (PetscScalar *)(onto ? z.p : y.p)}, stream));
      CHECK(cudaStreamSynchronize(stream));
      Expect(Close((onto ? z : y).Get(), ref, size), onto ? "z = z - A x" : "y = z - A x");
    }
  }

  // Dense matrices of `count` columns, in longer arrays: y = A x, z + A x, z = z + A x and z - A x. Each column must be
  // that of a product with one vector. The numbers between the columns must be neither read nor written
  void Columns(int count)
  {
    const int             ldx = cols + Int(4), ldz = rows + Int(4);
    const SpMVCudaColumns columns = {ldx, ldz, ldz, count};
    std::vector<Number>   hX((size_t)ldx * count, Number(NAN)), hZ((size_t)ldz * count, Number(NAN)), one(cols);
    Device<Number>        X(hX.size()), Y(hZ.size()), Z(hZ.size());
    for (int q = 0; q < count; q++) {
      for (int c = 0; c < cols; c++) hX[(size_t)q * ldx + c] = Value();
      for (int r = 0; r < rows; r++) hZ[(size_t)q * ldz + r] = Value();
    }
    X.Set(hX);
    Y.Poison();
    const std::vector<Number> poison = Y.Get();
    for (int kind = 0; kind < (L.conjugate ? 3 : 4); kind++) {
      const SpMVCudaForm form = kind == 3 ? SPMVCUDA_RESIDUAL : L.Form();
      Number            *to   = kind == 2 ? Z.p : Y.p;
      Y.Poison();
      Z.Set(hZ);
      CHECK(SpMVCudaMult(store, {form, P(X.p), kind ? P(Z.p) : NULL, (PetscScalar *)to, &columns}, stream));
      CHECK(cudaStreamSynchronize(stream));
      const std::vector<Number> all  = (kind == 2 ? Z : Y).Get();
      bool                      same = true, between = true;
      for (int q = 0; q < count; q++) {
        Device<Number> &column = y;
        column.Poison();
        z.Set(std::vector<Number>(hZ.begin() + (size_t)q * ldz, hZ.begin() + (size_t)q * ldz + rows));
        CHECK(SpMVCudaMult(store, {form, P(X.p) + (size_t)q * ldx, kind ? P(z.p) : NULL, (PetscScalar *)column.p},
                           stream));
        CHECK(cudaStreamSynchronize(stream));
        hy = column.Get();
        for (int r = 0; r < rows; r++) same = same && SameNumber(hy[r], all[(size_t)q * ldz + r]);
        for (int r = rows; r < ldz; r++) {
          const std::vector<Number> &before = kind == 2 ? hZ : poison;
          between                           = between &&
                    !memcmp((void *)&all[(size_t)q * ldz + r], (void *)&before[(size_t)q * ldz + r], sizeof(Number));
        }
      }
      Expect(same, kind == 0 ? "Y = A X" : kind == 1 ? "Y = Z + A X" : kind == 2 ? "Z = Z + A X" : "Y = Z - A X");
      Expect(between, "what is between columns");
      if (kind || !count) continue;
      // NaN in all other columns
      const int k = Int(count);
      for (int c = 0; c < cols; c++) one[c] = hX[(size_t)k * ldx + c];
      Device<Number> alone(std::vector<Number>(hX.size(), Number(NAN)));
      CHECK(cudaMemcpy(alone.p + (size_t)k * ldx, one.data(), cols * sizeof(Number), cudaMemcpyHostToDevice));
      Y.Poison();
      CHECK(SpMVCudaMult(store, {form, P(alone.p), NULL, (PetscScalar *)Y.p, &columns}, stream));
      CHECK(cudaStreamSynchronize(stream));
      const std::vector<Number> others = Y.Get();
      Expect(!rows || !memcmp((void *)&others[(size_t)k * ldz], (void *)&all[(size_t)k * ldz], rows * sizeof(Number)),
             "a column next to NaN");
    }
  }

  // Five columns in a graph: their product may neither wait nor, the first time, allocate memory that is kept
  void ColumnsInGraph(const char *what)
  {
    const int             count   = 5;
    const SpMVCudaColumns columns = {cols, 0, rows, count};
    std::vector<Number>   hX((size_t)cols * count), want((size_t)rows * count);
    Device<Number>        X(hX.size()), Y(want.size());
    bool                  same = true;
    for (auto &v : hX) v = Value();
    X.Set(hX);
    for (int q = 0; q < count; q++)
      CHECK(SpMVCudaMult(store, {L.Form(), P(X.p) + (size_t)q * cols, NULL, (PetscScalar *)(Y.p + (size_t)q * rows)},
                         stream));
    CHECK(cudaStreamSynchronize(stream));
    want = Y.Get();
    Y.Poison();
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(SpMVCudaMult(store, {L.Form(), P(X.p), NULL, (PetscScalar *)Y.p, &columns}, stream));
    EndGraph(2);
    const std::vector<Number> got = Y.Get();
    for (size_t e = 0; e < want.size(); e++) same = same && SameNumber(got[e], want[e]);
    Expect(same, what);
  }

  // Bitwise equal, except that 0 equals -0: a product with several columns may add 0 where a product with a vector adds
  // nothing
  static bool SameNumber(Number a, Number b)
  {
    return !memcmp((void *)&a, (void *)&b, sizeof(a)) || (a == Number(0) && b == Number(0));
  }

  // A few rows' entries in an off-diagonal block; none if kind is 0
  struct Offdiagonal {
    int                 columns;
    size_t              longest = 0;
    std::vector<int>    i{0}, j, from; // from: the entries of x in the halo
    std::vector<Number> a;
  };
  Offdiagonal RandomOffdiagonal(int kind)
  {
    Offdiagonal o;
    o.columns       = kind && cols ? 1 + Int(300) : 0;
    const int begin = Int(rows + 1), density = 1 + Int(20), most = 1 + Int(kind == 2 ? 140 : 9);
    for (int r = 0; r < rows; r++) {
      for (int g = Int(o.columns + 1), end = r >= begin && !Int(density) ? Int(most + 1) : 0; g < o.columns && end;
           g++, end--)
        o.j.push_back(g);
      o.longest = std::max(o.longest, o.j.size() - o.i.back());
      o.i.push_back((int)o.j.size());
    }
    o.a.resize(o.j.size());
    for (auto &v : o.a) v = Value();
    for (int g = 0; g < o.columns; g++) o.from.push_back(Int(cols));
    return o;
  }

  // A product that exchanges a halo, here with itself, with an off-diagonal block if the kernel adds it. Exchanges of
  // x that is written late follow one another
  void Fused(int kind)
  {
    Offdiagonal    o = RandomOffdiagonal(kind);
    Device<int>    di(o.i), dj(o.j);
    Device<Number> da(o.a), late(cols);
    SelfExchange   self(o.from);
    if (!SpMVCudaSends(store)) return;
    if (kind) {
      const SpMVCudaCSR off   = {A.m, o.columns, (PetscInt64)o.j.size(), di.p, dj.p, 4, P(da.p)};
      const cudaError_t error = SpMVCudaFuseOffdiagonal(store, &off, rows, stream);
      if (error == cudaErrorNotSupported) return;
      CHECK(error);
      Expect(o.longest <= (size_t)spmv::Tuning::OFFDIAGONAL_MOST, "long rows are refused");
      fusing.insert(L.name);
      CHECK(SpMVCudaFillOffdiagonal(store, &off, stream));
      if (single) {
        for (auto &v : o.a) v = Rounded(v);
      }
    }
    for (int add = 0; add < 3; add++) { // y = A x, z + A x, z - A x
      const SpMVCudaForm form = add == 2 ? SPMVCUDA_RESIDUAL : SPMVCUDA_MULT;
      for (int trial = 0; trial < 3; trial++) {
        for (auto &v : hx) v = Value();
        std::vector<Number> minus(hx);
        for (auto &v : minus) v = -v;
        Reference(A, false, false, add == 2 ? minus : hx, add ? hz.data() : NULL, ref, size);
        for (int r = 0; r < rows; r++) {
          for (int q = o.i[r]; q < o.i[r + 1]; q++) {
            const Wide t = Wide(o.a[q]) * Wide(hx[o.from[o.j[q]]]);
            ref[r] += add == 2 ? -t : t;
            size[r] += std::abs(t);
          }
        }
        x.Set(hx);
        z.Set(hz);
        y.Poison();
        late.Poison();
        Arrive<<<1, 256, 0, stream>>>(cols, x.p, late.p);
        CHECK(cudaGetLastError());
        CHECK(SpMVCudaMult(store, {form, P(late.p), add ? P(z.p) : NULL, (PetscScalar *)y.p, NULL, self, PETSC_TRUE},
                           stream));
        CHECK(cudaStreamSynchronize(stream));
        Expect(Close(y.Get(), ref, size), kind ? "with an exchange and an off-diagonal block" : "with an exchange");
      }
    }
    y.Poison();
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int twice = 0; twice < 2; twice++)
      CHECK(
          SpMVCudaMult(store, {SPMVCUDA_RESIDUAL, P(x.p), P(z.p), (PetscScalar *)y.p, NULL, self, PETSC_TRUE}, stream));
    EndGraph(4);
    Expect(Close(y.Get(), ref, size), "with an exchange, captured in a graph");
  }

  void Statistics()
  {
    const PetscInt64 least = stats.stored * (PetscInt64)(single ? sizeof(Single) : sizeof(Number));
    Expect(stats.nonzeros == (PetscInt64)A.j.size() && stats.stored >= stats.nonzeros && stats.bytes >= least,
           "statistics");
    Expect(!strstr(stats.kernel, ", values in single precision") == !single, "the kernel's name");
  }

  // NaN and Inf stay in the rows that have the column, and Inf in A in its row
  void NonFinite()
  {
    for (int bad = 0; bad < 2; bad++) {
      const int         c = Int(cols);
      std::vector<bool> has(rows, false);
      for (int r = 0; r < A.m; r++) {
        for (int q = A.i[r]; q < A.i[r + 1]; q++) {
          if ((L.transpose ? r : A.j[q]) == c) has[L.transpose ? A.j[q] : r] = true;
        }
      }
      std::vector<Number> h = hx;
      h[c]                  = bad ? Number(NAN) : Number(INFINITY);
      x.Set(h);
      y.Poison();
      Mult(x.p, NULL, y.p);
      hy         = y.Get();
      bool right = true;
      for (int r = 0; r < rows; r++) right = right && Finite(hy[r]) == !has[r];
      Expect(right, bad ? "NaN stays in its rows" : "Inf stays in its rows");
    }
    if (A.a.empty()) return;
    for (auto &v : hx) v = Number(1);
    x.Set(hx);
    for (int absent = 0; absent < 2; absent++) { // Inf, and the NaN that marks absent entries
      const int           e    = Int((int)A.a.size());
      const uint64_t      bits = (uint64_t)0x7ff5c0de << (8 * sizeof(PetscReal) - 32);
      std::vector<Number> h    = A.a;
      h[e]                     = Number(INFINITY);
      if (absent) memcpy((void *)&h[e], &bits, sizeof(PetscReal));
      const int own = L.transpose ? A.j[e] : (int)(std::upper_bound(A.i.begin(), A.i.end(), e) - A.i.begin()) - 1;
      a.Set(h);
      CHECK(SpMVCudaFill(store, &csr, stream));
      Mult(x.p, NULL, y.p);
      hy         = y.Get();
      bool right = true;
      for (int r = 0; r < rows; r++) right = right && Finite(hy[r]) == (r != own);
      Expect(right, absent ? "NaN in A stays in its row" : "Inf in A stays in its row");
    }
    a.Set(A.a);
    CHECK(SpMVCudaFill(store, &csr, stream));
  }

  // Fills and products one after the other, in two streams, also in a graph: none begins before its input is complete
  void Sequences()
  {
    std::vector<Number> fresh(A.a.size()), separate;
    for (auto &v : fresh) v = Value();
    Device<Number> b(fresh);
    enum { SEPARATE, CHAIN, GRAPH };
    for (int how : {SEPARATE, CHAIN, GRAPH}) {
      auto step = [&](cudaError_t error) {
        CHECK(error);
        if (how == SEPARATE) CHECK(cudaDeviceSynchronize());
      };
      auto wait = [&](cudaStream_t waits, cudaStream_t goes) {
        CHECK(cudaEventRecord(event, goes));
        CHECK(cudaStreamWaitEvent(waits, event, 0));
      };
      a.Set(A.a);
      x.Set(hz);
      if (how == GRAPH) CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
      for (int k = 0; k < 2; k++) {
        step(SpMVCudaFill(store, &csr, stream));
        step(SpMVCudaMult(store, {L.Form(), P(x.p), NULL, (PetscScalar *)y.p}, stream));
        wait(other, stream);
        step(SpMVCudaMult(store, {L.Form(), P(y.p), P(x.p), (PetscScalar *)z.p}, other));
        wait(stream, other);
        step(SpMVCudaMult(store, {L.Form(), P(z.p), P(z.p), (PetscScalar *)y.p}, stream));
        step(SpMVCudaMult(store, {L.Form(), P(y.p), NULL, (PetscScalar *)x.p}, stream));
        step(cudaMemcpyAsync(a.p, b.p, fresh.size() * sizeof(Number), cudaMemcpyDeviceToDevice, stream));
      }
      if (how == GRAPH) EndGraph(1);
      CHECK(cudaStreamSynchronize(stream));
      if (how == SEPARATE) separate = x.Get();
      Expect(!rows || !memcmp(separate.data(), x.Get().data(), rows * sizeof(Number)),
             how == CHAIN ? "one after the other" : "a graph of several");
    }
    a.Set(A.a);
    CHECK(SpMVCudaFill(store, &csr, stream));
  }

  // Launches the captured graph the given number of times
  void EndGraph(int launches)
  {
    cudaGraph_t     graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int k = 0; k < launches; k++) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
  }

  // A product can be captured in a graph
  void Graph()
  {
    for (auto &v : hx) v = Value();
    x.Set(hx);
    Reference(A, L.transpose, L.conjugate, hx, hz.data(), ref, size);
    z.Set(hz);
    y.Poison();
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(SpMVCudaMult(store, {L.Form(), P(x.p), P(z.p), (PetscScalar *)y.p}, stream));
    EndGraph(2);
    Expect(Close(y.Get(), ref, size), "captured in a graph");
  }
};
