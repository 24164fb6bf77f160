static char help[] =
    "Times solves with batches of small systems: each problem by itself (devicebatch), in lock step (one KSP for the block-diagonal matrix), and on a\n\
GPU cuBLAS's batched LU, where all problems have the same size.\n\
  -cases <cells,dense22,dense54,dense144> : cells: the systems of examples/batch.c; denseN: N rows, nonsymmetric, 30 to 90 % dense; or names of the\n\
                     set of bench/batch, with a diagonal that dominates; set: all of these\n\
  -problems <10000>  : problems of a batch (on the host 1000)\n\
  -solvers <list>    : KSP types; devicebatch with a method: devicebatch:bcgs\n\
  -rtol <1e-10>, -reps <5>\n\n";

/*
   The preconditioner is Jacobi. "worst" is the largest relative residual of a problem, computed here. In lock step the
   tolerance holds for all problems together.
*/

#include <petscspmv.h>
#include <petscksp.h>
#include "device.h"
#include "names.h"
#include "../problems.h"
#if defined(PETSC_HAVE_CUDA) && !defined(PETSC_USE_COMPLEX) && defined(PETSC_USE_REAL_DOUBLE)
  #include <cublas_v2.h>
  #define HAVE_CUBLAS 1
#endif

typedef struct {
  PetscInt     count, rows, same; /* same: the size of all problems, or 0 */
  PetscInt    *sizes, *first, *i, *j;
  PetscScalar *a, *b;
  PetscBool    definite;
} Systems;

/* A diagonal-dominant problem with the pattern of P, other values for each problem, or the problem itself */
static void FillCopy(const Problem *P, uint64_t *random, PetscScalar *a)
{
  for (PetscInt r = 0; r < P->n; r++) {
    PetscReal sum = 0;

    for (PetscInt k = P->i[r]; k < P->i[r + 1]; k++) {
      a[k] = P->a[k] * (PetscReal)(0.5 + RandomReal(random));
      sum += PetscAbsScalar(a[k]);
    }
    for (PetscInt k = P->i[r]; k < P->i[r + 1]; k++) {
      if (P->j[k] == r) a[k] = 1.05 * (sum - PetscAbsScalar(a[k])) + (sum == 0 ? 1 : 0.05 * sum);
    }
  }
}

static PetscErrorCode AddDiagonal(Problem *P)
{
  PetscInt    *i, *j, at = 0;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc3(P->n + 1, &i, P->i[P->n] + P->n, &j, P->i[P->n] + P->n, &a));
  i[0] = 0;
  for (PetscInt r = 0, k = 0; r < P->n; r++) {
    for (PetscBool done = PETSC_FALSE; k < P->i[r + 1] || !done; at++) {
      const PetscBool is = (PetscBool)(k < P->i[r + 1] && (done || P->j[k] <= r)); /* otherwise the diagonal is next */

      j[at] = is ? P->j[k] : r;
      a[at] = is ? P->a[k++] : 1;
      done  = (PetscBool)(done || j[at] == r);
    }
    i[r + 1] = at;
  }
  PetscCall(PetscFree3(P->i, P->j, P->a));
  P->i = i;
  P->j = j;
  P->a = a;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscInt CellPoints(uint64_t *random)
{
  return 8 + RandomInt(random, 57);
}

static PetscErrorCode SystemsCreate(const char *name, PetscInt count, Systems *S)
{
  const PetscInt  dense  = !strncmp(name, "dense", 5) ? (PetscInt)atoi(name + 5) : 0;
  const PetscBool cells  = (PetscBool)!strcmp(name, "cells");
  uint64_t        random = 4711, again;
  Problem         P      = {0};
  PetscInt64      nz     = 0;

  PetscFunctionBeginUser;
  if (!dense && !cells) {
    PetscInt k = 0;

    while (k < SET && strcmp(name, TestSet[k].name)) k++;
    PetscCheck(k < SET, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "-cases: no case %s", name);
    PetscCall(ProblemFromSet(k, &P));
    PetscCall(AddDiagonal(&P));
  }
  S->count    = count;
  S->definite = cells;
  S->same     = cells ? 0 : dense ? dense : P.n;
  PetscCall(PetscMalloc2(count, &S->sizes, count + 1, &S->first));
  S->first[0] = 0;
  again       = random;
  for (PetscInt p = 0; p < count; p++) {
    S->sizes[p]     = cells ? CellPoints(&again) : S->same;
    S->first[p + 1] = S->first[p] + S->sizes[p];
    nz += cells ? 3 * S->sizes[p] - 2 : dense ? dense * dense : P.i[P.n];
  }
  S->rows = S->first[count];
  PetscCheck(nz <= PETSC_MAX_INT, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%s: use fewer -problems", name);
  PetscCall(PetscMalloc4(S->rows + 1, &S->i, nz, &S->j, nz, &S->a, S->rows, &S->b));
  S->i[0] = 0;
  for (PetscInt p = 0, at = 0; p < count; p++) {
    const PetscInt n = S->sizes[p], row = S->first[p];

    if (cells) (void)CellPoints(&random);
    if (cells || dense) {
      const double D = pow(10, -2 * RandomReal(&random)), k = pow(10, 3 * RandomReal(&random)),
                   h = 1.0 / (double)(n + 1), density = 0.3 + 0.6 * RandomReal(&random);

      for (PetscInt r = 0; r < n; r++) {
        PetscInt  diagonal = at;
        PetscReal sum      = 0;

        for (PetscInt c = cells ? PetscMax(0, r - 1) : 0; c < (cells ? PetscMin(n, r + 2) : n); c++) {
          if (!cells && c != r && RandomReal(&random) > density) continue;
          if (c == r) diagonal = at;
          S->j[at]   = c;
          S->a[at++] = cells ? (PetscScalar)(-D) : BenchValue(&random);
          if (c != r) sum += PetscAbsScalar(S->a[at - 1]);
        }
        /* of dense problems the diagonal is about as large as a quarter of the others together */
        S->a[diagonal]    = cells ? 2 * D + k * h * h : 0.5 + 0.25 * sum;
        S->i[row + r + 1] = at;
      }
    } else {
      FillCopy(&P, &random, S->a + at);
      PetscCall(PetscArraycpy(S->j + at, P.j, P.i[n]));
      for (PetscInt r = 0; r < n; r++) S->i[row + r + 1] = at + P.i[r + 1];
      at += P.i[n];
    }
  }
  for (PetscInt r = 0; r < S->rows; r++) S->b[r] = BenchValue(&random);
  if (P.i) PetscCall(ProblemDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SystemsDestroy(Systems *S)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFree2(S->sizes, S->first));
  PetscCall(PetscFree4(S->i, S->j, S->a, S->b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static double Worst(const Systems *S, const PetscScalar *x)
{
  double worst = 0;

  for (PetscInt p = 0; p < S->count; p++) {
    double sum = 0, base = 0;

    for (PetscInt r = S->first[p]; r < S->first[p + 1]; r++) {
      PetscScalar y = S->b[r];

      for (PetscInt k = S->i[r]; k < S->i[r + 1]; k++) y -= S->a[k] * x[S->first[p] + S->j[k]];
      sum += PetscSqr((double)PetscAbsScalar(y));
      base += PetscSqr((double)PetscAbsScalar(S->b[r]));
    }
    if (!(sum <= worst * worst * base)) worst = sqrt(sum / base);
  }
  return worst;
}

#if defined(HAVE_CUBLAS)
/* LU with partial pivoting of dense copies; the time of the copies does not count */
static PetscErrorCode CuBLAS(const Systems *S, PetscInt reps, double t[], PetscScalar *x)
{
  const size_t   n = (size_t)S->same, count = (size_t)S->count;
  cublasHandle_t handle;
  double        *host, *A, *work, *b, **pointers, **list;
  int           *pivots, *infos, info;

  PetscFunctionBeginUser;
  PetscCheck(!cublasCreate(&handle), PETSC_COMM_SELF, PETSC_ERR_LIB, "cublasCreate()");
  PetscCheck(!cublasSetStream(handle, Device.stream), PETSC_COMM_SELF, PETSC_ERR_LIB, "cublasSetStream()");
  PetscCall(PetscCalloc1(n * n * count, &host));
  PetscCall(PetscMalloc1(2 * count, &pointers));
  PetscCallCUDA(cudaMalloc((void **)&A, n * n * count * sizeof(double)));
  PetscCallCUDA(cudaMalloc((void **)&work, n * n * count * sizeof(double)));
  PetscCallCUDA(cudaMalloc((void **)&b, n * count * sizeof(double)));
  PetscCallCUDA(cudaMalloc((void **)&list, 2 * count * sizeof(*list)));
  PetscCallCUDA(cudaMalloc((void **)&pivots, n * count * sizeof(int)));
  PetscCallCUDA(cudaMalloc((void **)&infos, count * sizeof(int)));
  for (size_t p = 0; p < count; p++) {
    for (size_t r = 0; r < n; r++) {
      for (PetscInt k = S->i[p * n + r]; k < S->i[p * n + r + 1]; k++)
        host[p * n * n + (size_t)S->j[k] * n + r] = S->a[k];
    }
    pointers[p]         = work + p * n * n;
    pointers[count + p] = b + p * n;
  }
  PetscCallCUDA(cudaMemcpy(A, host, n * n * count * sizeof(double), cudaMemcpyHostToDevice));
  PetscCallCUDA(cudaMemcpy(list, pointers, 2 * count * sizeof(*list), cudaMemcpyHostToDevice));
  for (PetscInt r = -1; r < reps; r++) {
    PetscLogDouble begin = 0;
    double         seconds;

    PetscCallCUDA(cudaMemcpy(work, A, n * n * count * sizeof(double), cudaMemcpyDeviceToDevice));
    PetscCallCUDA(cudaMemcpy(b, S->b, n * count * sizeof(double), cudaMemcpyHostToDevice));
    PetscCall(TimeBegin(PETSC_COMM_SELF, &begin));
    PetscCheck(!cublasDgetrfBatched(handle, (int)n, list, (int)n, pivots, infos, (int)count), PETSC_COMM_SELF,
               PETSC_ERR_LIB, "cublasDgetrfBatched()");
    PetscCheck(!cublasDgetrsBatched(handle, CUBLAS_OP_N, (int)n, 1, (const double *const *)list, (int)n, pivots,
                                    list + count, (int)n, &info, (int)count),
               PETSC_COMM_SELF, PETSC_ERR_LIB, "cublasDgetrsBatched()");
    PetscCall(TimeEnd(PETSC_COMM_SELF, begin, &seconds));
    if (r >= 0) t[r] = seconds;
  }
  PetscCallCUDA(cudaMemcpy(x, b, n * count * sizeof(double), cudaMemcpyDeviceToHost));
  PetscCallCUDA(cudaFree(A));
  PetscCallCUDA(cudaFree(work));
  PetscCallCUDA(cudaFree(b));
  PetscCallCUDA(cudaFree(list));
  PetscCallCUDA(cudaFree(pivots));
  PetscCallCUDA(cudaFree(infos));
  PetscCall(PetscFree(host));
  PetscCall(PetscFree(pointers));
  PetscCheck(!cublasDestroy(handle), PETSC_COMM_SELF, PETSC_ERR_LIB, "cublasDestroy()");
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* name: a KSP type, with a method of devicebatch after a colon */
static PetscErrorCode Solve(const char *name, Mat A, Vec b, Vec x, PetscReal rtol, PetscInt reps, double t[],
                            PetscInt *its, KSPConvergedReason *reason)
{
  char type[64], *method;
  KSP  ksp;
  PC   pc;

  PetscFunctionBeginUser;
  PetscCall(PetscStrncpy(type, name, sizeof(type)));
  if ((method = strchr(type, ':'))) *method++ = 0;
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  if (method) PetscCall(PetscOptionsSetValue(NULL, "-ksp_devicebatch_type", method));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, rtol, PETSC_DEFAULT, 1e10, 2000));
  PetscCall(KSPSetFromOptions(ksp));
  for (PetscInt r = -1; r < reps; r++) {
    PetscLogDouble begin = 0;
    double         seconds;

    PetscCall(TimeBegin(PETSC_COMM_SELF, &begin));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(TimeEnd(PETSC_COMM_SELF, begin, &seconds));
    if (r >= 0) t[r] = seconds;
  }
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(KSPGetConvergedReason(ksp, reason));
  PetscCall(KSPViewFromOptions(ksp, NULL, "-view"));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunCase(const char *name, PetscInt count, PetscInt reps, PetscReal rtol, PetscInt nsolvers,
                              char *const solvers[])
{
  Systems S;
  Mat     A;
  Vec     b, x;
  double *t, base = 0;

  PetscFunctionBeginUser;
  PetscCall(SystemsCreate(name, count, &S));
  PetscCall(MatCreateBatch(PETSC_COMM_SELF, count, S.sizes, S.i, S.j, S.a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  {
    PetscScalar *v;

    PetscCall(VecGetArrayWrite(b, &v));
    PetscCall(PetscArraycpy(v, S.b, S.rows));
    PetscCall(VecRestoreArrayWrite(b, &v));
  }
  PetscCall(PetscMalloc1(reps, &t));
  PetscCall(PetscPrintf(PETSC_COMM_SELF,
                        "%s: %" PetscInt_FMT " problems, %" PetscInt_FMT " rows, %" PetscInt_FMT " nonzeros\n", name,
                        count, S.rows, S.i[S.rows]));
  for (PetscInt s = 0; s < nsolvers; s++) {
    PetscInt           its    = 0;
    KSPConvergedReason reason = KSP_CONVERGED_ITS;
    double             median, worst = 0;

    if (!S.definite &&
        (!strcmp(solvers[s], "cg") || !strcmp(solvers[s], "devicecg") || !strcmp(solvers[s], "devicebatch:cg")))
      continue;
    if (!strcmp(solvers[s], "cublas")) {
#if defined(HAVE_CUBLAS)
      PetscScalar *v;

      if (!DeviceOn || !S.same || S.same > 200) continue;
      PetscCall(VecGetArrayWrite(x, &v));
      PetscCall(CuBLAS(&S, reps, t, v));
      PetscCall(VecRestoreArrayWrite(x, &v));
#else
      continue;
#endif
    } else
      PetscCall(Solve(solvers[s], A, b, x, rtol, reps, t, &its, &reason));
    {
      const PetscScalar *v;

      PetscCall(VecGetArrayRead(x, &v));
      worst = Worst(&S, v);
      PetscCall(VecRestoreArrayRead(x, &v));
    }
    PetscCall(Median(reps, t, &median));
    if (base == 0) base = median;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %-18s %10.1f us  %7.2f x  %4" PetscInt_FMT " its  worst %.1e  %s\n",
                          solvers[s], 1e6 * median, base / median, its, worst, KSPConvergedReasons[reason]));
  }
  PetscCall(PetscFree(t));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(SystemsDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static char *cases[64], *solvers[64];
  PetscInt     ncases, nsolvers, problems, reps = 5;
  PetscReal    rtol = PetscMax(1e-10, 100 * PETSC_MACHINE_EPSILON);

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscSpMVInitializePackage());
  PetscCall(DeviceOpen());
  problems = DeviceOn ? 10000 : 1000;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-problems", &problems, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-reps", &reps, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-rtol", &rtol, NULL));
  PetscCheck(problems > 0 && reps > 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "-problems and -reps must be positive");
  PetscCall(GetNames("-cases", "cells,dense22,dense54,dense144", PETSC_STATIC_ARRAY_LENGTH(cases), &ncases, cases));
  PetscCall(GetNames(
      "-solvers", "cg,devicecg,bcgs,devicebcgs,devicebatch:cg,devicebatch:bcgs,devicebatch:gmres,devicebatch:lu,cublas",
      PETSC_STATIC_ARRAY_LENGTH(solvers), &nsolvers, solvers));
  for (PetscInt c = 0; c < ncases; c++) {
    if (!strcmp(cases[c], "set")) {
      for (PetscInt k = 0; k < SET; k++) PetscCall(RunCase(TestSet[k].name, problems, reps, rtol, nsolvers, solvers));
    } else
      PetscCall(RunCase(cases[c], problems, reps, rtol, nsolvers, solvers));
  }
  for (PetscInt c = 0; c < ncases; c++) PetscCall(PetscFree(cases[c]));
  for (PetscInt s = 0; s < nsolvers; s++) PetscCall(PetscFree(solvers[s]));
  PetscCall(DeviceClose());
  PetscCall(PetscFinalize());
  return 0;
}
