/*
  Benchmark of products of sparse matrices on the device, without PETSc, against cuSPARSE's SpGEMM in the same run: A A
  and P^T A P, where P is a smoothed prolongator.

  Usage: spgemm [-csv] [-n scale] [name ...]     scale: percent of the full size of the grids; names as in Shapes below
  Build: nvcc -std=c++17 -O3 -arch=native -Itests/cuda/standalone -Isrc bench/products/spgemm.cu
         $(find src/core/cuda -name '*.cu') -lcusparse -ldl

  "symbolic" is the time of a new plan (of cuSPARSE: all until the result's first values are there, as its phases cannot
  be separated), "first" that of a plan and the first values, "numeric" that of later values: medians, with
  the wait for the device. "MB" are what a plan keeps for later values: buffers, A P, and the transpose of P, without
  the factors and the result. cuSPARSE gets P^T ready-made, and runs in a process of its own that is ended after half a
  minute. Its values are compared with ours.
*/
#include "core/cuda/spgemm/spgemm.h"
#include "../../tests/cuda/check.h"
#include "../../tests/cuda/matrices.cuh"
#include <chrono>
#include <cstring>
#include <cusparse.h>
#include <string>
#include <unistd.h>

#define CHECK_SPARSE(call) CHECK_STATUS(call, cusparseStatus_t, CUSPARSE_STATUS_SUCCESS, cusparseGetErrorString)

// ------------------------------------------------------------------------------------------------ matrices

static std::vector<int> Cubes(int N, int *count)
{
  const int        M = (N + 2) / 3;
  std::vector<int> of((size_t)N * N * N);
  for (int p = 0; p < N * N * N; p++) of[p] = p % N / 3 + M * (p / N % N / 3 + M * (p / N / N / 3));
  *count = M * M * M;
  return of;
}

// Points anywhere in a cube with about 14 neighbors each, as in a mesh of tetrahedra; numbered cell by cell
static Matrix Geometric(int cells, std::vector<int> *aggregate, int *count)
{
  struct Point {
    float x, y, z;
  };
  const int          C = cells, each = 4, M = (C + 1) / 2; // each: points of a cell
  const float        reach = 0.95f;                        // in cells
  std::vector<Point> points;
  const auto         real = [] { return (float)(Real() + 0.5); };
  for (int c = 0; c < C * C * C; c++) {
    for (int k = 0; k < each; k++) {
      points.push_back({c % C + real(), c / C % C + real(), c / C / C + real()});
      aggregate->push_back(c % C / 2 + M * (c / C % C / 2 + M * (c / C / C / 2)));
    }
  }
  *count = M * M * M;
  return Build("tetrahedra", (int)points.size(), (int)points.size(), [&](int p, Row &row) {
    const Point a = points[p];
    const int   X = p / each % C, Y = p / each / C % C, Z = p / each / C / C;
    for (int k = 0; k < 27; k++) {
      const int x = X + k % 3 - 1, y = Y + k / 3 % 3 - 1, w = Z + k / 9 - 1;
      if (x < 0 || x >= C || y < 0 || y >= C || w < 0 || w >= C) continue;
      for (int q = (x + C * (y + C * w)) * each, e = 0; e < each; e++, q++) {
        const Point b = points[q];
        const float d = (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) + (a.z - b.z) * (a.z - b.z);
        if (d < reach * reach) row.push_back(q);
      }
    }
  });
}

static const char *const Shapes[] = {"7-point", "27x3", "tetrahedra"};

// A, and Q with an entry for each entry of A, in the column of its point's aggregate
static bool Make(const std::string &name, int percent, Matrix *A, Matrix *Q)
{
  std::vector<int> aggregate;
  const int        s = name == "27x3" ? 3 : 1; // unknowns of a point
  int              count;
  seed = 88172645463325252ull; // the process that measures cuSPARSE makes one shape, this one all of them
  if (name == "tetrahedra")
    *A = Geometric(50 * percent / 100, &aggregate, &count);
  else if (name == "7-point" || name == "27x3") {
    const int N = (s > 1 ? 40 : 96) * percent / 100;
    aggregate   = Cubes(N, &count);
    *A          = Grid("grid", N, s > 1 ? 27 : 7, s, 100);
  } else
    return false;
  *Q = Build("prolongator", A->m, count * s, [&](int r, Row &row) {
    for (int q = A->i[r]; q < A->i[r + 1]; q++) row.push_back(aggregate[A->j[q] / s] * s + A->j[q] % s);
  });
  for (Matrix *M : {A, Q}) {
    for (double &v : M->a) v = Real() + 0.2;
  }
  return true;
}

// ------------------------------------------------------------------------------------------------ measuring

struct OnDevice {
  int    *i, *j;
  double *a;
  int     m, n, nnz;
  explicit OnDevice(const Matrix &A) : m(A.m), n(A.n), nnz((int)A.j.size())
  {
    CHECK(cudaMalloc((void **)&i, A.i.size() * sizeof(int)));
    CHECK(cudaMalloc((void **)&j, A.j.size() * sizeof(int) + 1));
    CHECK(cudaMalloc((void **)&a, A.a.size() * sizeof(double) + 1));
    CHECK(cudaMemcpy(i, A.i.data(), A.i.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(j, A.j.data(), A.j.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(a, A.a.data(), A.a.size() * sizeof(double), cudaMemcpyHostToDevice));
  }
  SpMVCudaCSR CSR() const
  {
    return {m, n, nnz, i, j, sizeof(int), a};
  }
};

struct Times {
  double symbolic, first, numeric, megabytes; // milliseconds
  double nnz, terms, sum, size;
};

static double Now()
{
  return 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
static double Median(std::vector<double> t)
{
  std::sort(t.begin(), t.end());
  return t[t.size() / 2];
}

constexpr int TIMES = 7, EACH = 5;

// The sum of the values, and of their magnitudes
static void SumUp(const double *c, size_t nnz, Times *t)
{
  std::vector<double> host(nnz);
  CHECK(cudaMemcpy(host.data(), c, nnz * sizeof(double), cudaMemcpyDeviceToHost));
  t->sum = t->size = 0;
  for (double v : host) t->sum += v, t->size += std::abs(v);
}

static Times Ours(const OnDevice &A, const OnDevice *Q, cudaStream_t stream)
{
  const SpMVCudaCSR   galerkin[3]  = {Q ? Q->CSR() : A.CSR(), A.CSR(), Q ? Q->CSR() : A.CSR()};
  const PetscBool     transpose[3] = {Q != nullptr, false, false};
  const int           count        = Q ? 3 : 2;
  SpMVCudaSpGEMM      product      = nullptr;
  SpMVCudaSpGEMMStats stats;
  const PetscInt     *i, *j;
  std::vector<double> symbolic, first, numeric;
  double             *c    = nullptr;
  PetscInt64          most = 0; // as in src/mat/impls/spmv/cuda/spgemm.c
  Times               t;
  for (int k = 0; k < count; k++) most += 3 * galerkin[k].nnz * (PetscInt64)(sizeof(PetscInt) + sizeof(PetscScalar));
  for (int k = 0; k < TIMES; k++) {
    CHECK(SpMVCudaSpGEMMDestroy(&product));
    CHECK(cudaDeviceSynchronize());
    const double begin = Now();
    CHECK(SpMVCudaSpGEMMSymbolic(count, galerkin, transpose, most, stream, &product));
    CHECK(cudaStreamSynchronize(stream));
    symbolic.push_back(Now() - begin);
    SpMVCudaSpGEMMGetStats(product, &stats);
    SpMVCudaSpGEMMPattern(product, &i, &j);
    if (!c) CHECK(cudaMalloc((void **)&c, stats.nonzeros * sizeof(double)));
    CHECK(SpMVCudaSpGEMMNumeric(product, galerkin, i, j, c, stream));
    CHECK(cudaStreamSynchronize(stream));
    first.push_back(Now() - begin);
  }
  for (int k = 0; k < TIMES; k++) {
    const double begin = Now();
    for (int e = 0; e < EACH; e++) CHECK(SpMVCudaSpGEMMNumeric(product, galerkin, i, j, c, stream));
    CHECK(cudaStreamSynchronize(stream));
    numeric.push_back((Now() - begin) / EACH);
  }
  SumUp(c, stats.nonzeros, &t);
  t.nnz       = (double)stats.nonzeros;
  t.terms     = (double)stats.terms;
  t.megabytes = 1e-6 * ((double)stats.bytes - 4.0 * (stats.nonzeros + stats.m + 1));
  t.symbolic  = Median(symbolic);
  t.first     = Median(first);
  t.numeric   = Median(numeric);
  CHECK(SpMVCudaSpGEMMDestroy(&product));
  CHECK(cudaFree(c));
  return t;
}

// One product of cuSPARSE as PETSc computes it, with its buffers kept for later values
struct CuProduct {
  cusparseHandle_t      handle;
  cusparseSpMatDescr_t  A, B, C;
  cusparseSpGEMMDescr_t descr;
  void                 *buffer[2] = {nullptr, nullptr};
  size_t                bytes[2]  = {0, 0};
  int                  *i         = nullptr, *j;
  double               *a;
  int64_t               m, n, nnz;
  const double          one = 1, zero = 0;

  cusparseSpMatDescr_t Describe(int64_t rows, int64_t columns, int64_t count, int *ri, int *cj, double *v)
  {
    cusparseSpMatDescr_t d;
    CHECK_SPARSE(cusparseCreateCsr(&d, rows, columns, count, ri, cj, v, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                   CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    return d;
  }
  cusparseStatus_t Estimate(size_t *size, void *p)
  {
    return cusparseSpGEMM_workEstimation(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                         &one, A, B, &zero, C, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT, descr, size, p);
  }
  cusparseStatus_t Compute(size_t *size, void *p)
  {
    return cusparseSpGEMM_compute(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, A,
                                  B, &zero, C, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT, descr, size, p);
  }
  void Copy()
  {
    CHECK_SPARSE(cusparseSpGEMM_copy(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                     A, B, &zero, C, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT, descr));
  }
  void Symbolic(cusparseHandle_t h, int64_t ma, int64_t na, int64_t za, int *ai, int *aj, double *aa, int64_t nb,
                int64_t zb, int *bi, int *bj, double *ba)
  {
    handle = h;
    m      = ma;
    n      = nb;
    CHECK(cudaMalloc((void **)&i, (m + 1) * sizeof(int)));
    A = Describe(ma, na, za, ai, aj, aa);
    B = Describe(na, nb, zb, bi, bj, ba);
    C = Describe(m, n, 0, i, nullptr, nullptr);
    CHECK_SPARSE(cusparseSpGEMM_createDescr(&descr));
    CHECK_SPARSE(Estimate(&bytes[0], nullptr));
    CHECK(cudaMalloc(&buffer[0], bytes[0]));
    CHECK_SPARSE(Estimate(&bytes[0], buffer[0]));
    CHECK_SPARSE(Compute(&bytes[1], nullptr));
    CHECK(cudaMalloc(&buffer[1], bytes[1]));
    CHECK_SPARSE(Compute(&bytes[1], buffer[1]));
    int64_t rows, columns;
    CHECK_SPARSE(cusparseSpMatGetSize(C, &rows, &columns, &nnz));
    CHECK(cudaMalloc((void **)&j, nnz * sizeof(int)));
    CHECK(cudaMalloc((void **)&a, nnz * sizeof(double)));
    CHECK_SPARSE(cusparseCsrSetPointers(C, i, j, a));
    Copy();
  }
  void Numeric()
  {
    CHECK_SPARSE(Compute(&bytes[1], buffer[1]));
    Copy();
  }
  void Destroy()
  {
    if (!i) return;
    CHECK_SPARSE(cusparseSpGEMM_destroyDescr(descr));
    for (cusparseSpMatDescr_t d : {A, B, C}) CHECK_SPARSE(cusparseDestroySpMat(d));
    for (void *p : {buffer[0], buffer[1], (void *)i, (void *)j, (void *)a}) CHECK(cudaFree(p));
    i = nullptr;
  }
};

static Times CuSparse(const OnDevice &A, const OnDevice *Q, const OnDevice *T, cudaStream_t stream)
{
  cusparseHandle_t    handle;
  CuProduct           inner, outer;
  std::vector<double> symbolic, numeric;
  Times               t = {};
  CHECK_SPARSE(cusparseCreate(&handle));
  CHECK_SPARSE(cusparseSetStream(handle, stream));
  for (int k = 0; k < TIMES; k++) {
    inner.Destroy();
    outer.Destroy();
    CHECK(cudaDeviceSynchronize());
    const double begin = Now();
    if (Q) {
      inner.Symbolic(handle, A.m, A.n, A.nnz, A.i, A.j, A.a, Q->n, Q->nnz, Q->i, Q->j, Q->a);
      outer.Symbolic(handle, T->m, T->n, T->nnz, T->i, T->j, T->a, inner.n, inner.nnz, inner.i, inner.j, inner.a);
    } else
      outer.Symbolic(handle, A.m, A.n, A.nnz, A.i, A.j, A.a, A.n, A.nnz, A.i, A.j, A.a);
    CHECK(cudaStreamSynchronize(stream));
    symbolic.push_back(Now() - begin);
  }
  for (int k = 0; k < TIMES; k++) {
    const double begin = Now();
    for (int e = 0; e < EACH; e++) {
      if (Q) inner.Numeric();
      outer.Numeric();
    }
    CHECK(cudaStreamSynchronize(stream));
    numeric.push_back((Now() - begin) / EACH);
  }
  SumUp(outer.a, outer.nnz, &t);
  t.nnz      = (double)outer.nnz;
  t.symbolic = t.first = Median(symbolic);
  t.numeric            = Median(numeric);
  t.megabytes          = 1e-6 * (double)(outer.bytes[0] + outer.bytes[1]);
  if (Q)
    t.megabytes +=
        1e-6 * (double)(inner.bytes[0] + inner.bytes[1] + 12 * inner.nnz + 4 * inner.m + 12ull * T->nnz + 4ull * T->m);
  return t;
}

// ------------------------------------------------------------------------------------------------ program

static const char Format[] = "%lf %lf %lf %lf %lf %lf %lf";

// In the process for cuSPARSE: one shape, one product
static int Child(const std::string &name, int percent, bool galerkin)
{
  Matrix       A, Q;
  cudaStream_t stream;
  if (!Make(name, percent, &A, &Q)) return 1;
  CHECK(cudaStreamCreate(&stream));
  OnDevice    a(A), q(Q), t(Transposed(Q));
  const Times x = CuSparse(a, galerkin ? &q : nullptr, galerkin ? &t : nullptr, stream);
  printf("%.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", x.symbolic, x.first, x.numeric, x.megabytes, x.nnz, x.sum,
         x.size);
  return 0;
}

static bool RunChild(const char *program, const char *name, int percent, bool galerkin, Times *t)
{
  const std::string command = std::string("timeout -s KILL 30 '") + program + "' -child " + name + " " +
                              std::to_string(percent) + (galerkin ? " 1" : " 0");
  FILE *pipe = popen(command.c_str(), "r");
  if (!pipe) return false;
  const bool done =
      fscanf(pipe, Format, &t->symbolic, &t->first, &t->numeric, &t->megabytes, &t->nnz, &t->sum, &t->size) == 7;
  return pclose(pipe) == 0 && done;
}

static void Report(const char *program, const char *name, int percent, bool csv, cudaStream_t stream)
{
  Matrix A, Q;
  Make(name, percent, &A, &Q);
  OnDevice a(A), q(Q);
  for (int galerkin = 0; galerkin < 2; galerkin++) {
    const Times x = Ours(a, galerkin ? &q : nullptr, stream);
    Times       y = {};
    printf(csv ? "%s,%s,%.0f,%.0f,%.4f,%.4f,%.4f,%.1f," : "%-11s %-4s %11.0f %10.0f | %8.3f %8.3f %8.3f %7.0f | ", name,
           galerkin ? "PtAP" : "A A", x.terms, x.nnz, x.symbolic, x.first, x.numeric, x.megabytes);
    if (!RunChild(program, name, percent, galerkin, &y)) {
      printf(csv ? ",,\n" : "cuSPARSE did not end or failed\n");
      continue;
    }
    printf(csv ? "%.4f,%.4f,%.1f" : "%8.3f %8.3f %7.0f", y.first, y.numeric, y.megabytes);
    if (!csv) printf(" | %5.1f %5.1f", y.first / x.first, y.numeric / x.numeric);
    printf("%s\n", x.nnz == y.nnz && std::abs(x.sum - y.sum) < 1e-10 * x.size ? "" : " DIFFERENT VALUES");
  }
  for (const OnDevice &m : {a, q}) {
    for (void *p : {(void *)m.i, (void *)m.j, (void *)m.a}) CHECK(cudaFree(p));
  }
}

int main(int argc, char **argv)
{
  cudaStream_t              stream;
  int                       percent = 100, arg = 1;
  bool                      csv = false;
  std::vector<const char *> names;
  if (argc == 5 && !strcmp(argv[1], "-child")) return Child(argv[2], atoi(argv[3]), atoi(argv[4]));
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (arg < argc && !strcmp(argv[arg], "-csv")) csv = true, arg++;
  if (arg + 1 < argc && !strcmp(argv[arg], "-n")) percent = atoi(argv[arg + 1]), arg += 2;
  for (const char *name : Shapes) {
    bool wanted = arg == argc;
    for (int k = arg; k < argc; k++) wanted = wanted || !strcmp(argv[k], name);
    if (wanted) names.push_back(name);
  }
  CHECK(cudaStreamCreate(&stream));
  printf(csv ? "matrix,product,terms,nonzeros,symbolic_ms,first_ms,numeric_ms,mb,cusparse_first_ms,cusparse_numeric_ms,"
               "cusparse_mb\n"
             : "times in ms            terms   nonzeros | symbolic    first  numeric      MB | cuSPARSE  numeric      "
               "MB | "
               "times as fast\n");
  for (const char *name : names) Report(argv[0], name, percent, csv, stream);
  CHECK(cudaStreamDestroy(stream));
  return 0;
}
