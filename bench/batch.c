static char help[] =
    "Times products with batches of small matrices (type batch) by the experiments of the batched-SpMV paper, on a GPU if PETSc has CUDA and\n\
there is one, otherwise on the host.\n\
  -figures <3,4,5,6,7> : 3 homogeneous batches of growing size, 4 balanced and unbalanced rows of growing length, 5 the test set, 6 and 7 batches of\n\
                         different matrices: those of figure 3, and the whole set\n\
  -problems <10000>    : problems of a batch in figures 5 to 7 (on the host 100)\n\
  -few <1000>          : problems of the batches that compare all kernels, in figures 4 and 5 (on the host 100)\n\
  -sizes <1,10,100,1000> : numbers of problems in figure 3\n\
  -set <names>         : only these matrices of the set\n\
  -types <list>        : of loop, aij, sellp, evchyb, batch, and the paper's kernels, on a GPU: batch:coo, ...\n\
  -reps <7>            : repetitions; the median is reported\n\
  -target <0.01>       : seconds of all products of a repetition\n\
  -quick               : few problems and repetitions, to check that everything works\n\
  -csv <file>          : results for bench/batch.py\n\
Matrices are read from tests/matrices or the folder MATRICES. If a file is missing, a twin of the same size is generated, and labeled so.\n\n";

/*
   Contenders: `loop`, a library call for each problem (cuSPARSE's CSR on the GPU, MatMult() of AIJ on the host);
   the block-diagonal matrix of the batch with aij (aijcusparse), sellp and evchyb; the type batch; and the paper's
   kernels (batched.cu). The product of each contender is compared with a plain loop, row
   by row, with a bound from |A||x|. The program fails if one is wrong.

   The vectors are PETSc's, on the GPU if there is one. `bytes` is the size of the contender's arrays, of x and of y,
   each moved once; `share` is the resulting fraction of the bandwidth of a large copy.
*/

#include <petscspmv.h>
#include "device.h"
#include "names.h"
#include "problems.h"
#include "results.h"
#if defined(PETSCSPMV_HAVE_CUDA)
  #include "batched.h"
#endif

/* ---------------------------------------------------------------- a library call for each problem */

typedef struct {
  PetscInt count;
  Mat     *mats; /* host */
  Vec      x, y;
#if defined(PETSC_HAVE_CUDA)
  cusparseHandle_t      handle;
  cudaStream_t          stream;
  cusparseSpMatDescr_t *A;
  cusparseDnVecDescr_t *dx, *dy;
  char                 *memory; /* all arrays, each aligned to 256 bytes */
  PetscScalar         **py;
  void                 *buffer;
#endif
#if defined(PETSCSPMV_HAVE_CUDA)
  Batched batched; /* a kernel of the paper instead of a loop */
#endif
} Loop;

#if defined(PETSC_HAVE_CUDA)
static size_t LoopPut(Loop *L, size_t at, const void *host, size_t bytes)
{
  if (L->memory && host) (void)cudaMemcpy(L->memory + at, host, bytes, cudaMemcpyHostToDevice);
  return at + (bytes + 255) / 256 * 256;
}

static PetscErrorCode LoopCall(Loop *L, PetscInt p)
{
  const PetscScalar one = 1.0, zero = 0.0;

  PetscFunctionBeginUser;
  PetscCallCUSPARSE(cusparseSpMV(L->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, L->A[p], L->dx[p], &zero, L->dy[p],
                                 CuSparseScalar, CUSPARSE_SPMV_CSR_ALG1, L->buffer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoopCreate_CUDA(const Batch *B, Loop *L)
{
  const PetscScalar one = 1.0, zero = 0.0;
  size_t            at = 0, most = 1;

  PetscFunctionBeginUser;
  PetscCallCUDA(cudaStreamCreateWithFlags(&L->stream, cudaStreamNonBlocking));
  PetscCallCUSPARSE(cusparseCreate(&L->handle));
  PetscCallCUSPARSE(cusparseSetStream(L->handle, L->stream));
  PetscCall(PetscMalloc4(B->count, &L->A, B->count, &L->dx, B->count, &L->dy, B->count, &L->py));
  for (int pass = 0; pass < 2; pass++) { /* count, then copy */
    if (pass) PetscCallCUDA(cudaMalloc((void **)&L->memory, at));
    at = 0;
    for (PetscInt p = 0, row = 0; p < B->count; row += B->of[p++]->n) {
      const Problem *P = B->of[p];
      const size_t   n = (size_t)P->n, nz = (size_t)P->i[n];
      char          *here[5];

      here[0] = L->memory + at;
      at      = LoopPut(L, at, P->i, (n + 1) * sizeof(*P->i));
      here[1] = L->memory + at;
      at      = LoopPut(L, at, P->j, nz * sizeof(*P->j));
      here[2] = L->memory + at;
      at      = LoopPut(L, at, P->a, nz * sizeof(*P->a));
      here[3] = L->memory + at;
      at      = LoopPut(L, at, B->x + row, n * sizeof(*B->x));
      here[4] = L->memory + at;
      at      = LoopPut(L, at, NULL, n * sizeof(*B->x));
      if (!pass) continue;
      L->py[p] = (PetscScalar *)here[4];
      PetscCallCUSPARSE(cusparseCreateCsr(&L->A[p], P->n, P->n, P->i[n], here[0], here[1], here[2], CuSparseIndex,
                                          CuSparseIndex, CUSPARSE_INDEX_BASE_ZERO, CuSparseScalar));
      PetscCallCUSPARSE(cusparseCreateDnVec(&L->dx[p], P->n, here[3], CuSparseScalar));
      PetscCallCUSPARSE(cusparseCreateDnVec(&L->dy[p], P->n, here[4], CuSparseScalar));
      if (!p || B->of[p] != B->of[p - 1]) {
        size_t bytes;

        PetscCallCUSPARSE(cusparseSpMV_bufferSize(L->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, L->A[p], L->dx[p],
                                                  &zero, L->dy[p], CuSparseScalar, CUSPARSE_SPMV_CSR_ALG1, &bytes));
        most = PetscMax(most, bytes);
      }
    }
  }
  PetscCallCUDA(cudaMalloc(&L->buffer, most));
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode LoopCreate(const Batch *B, Loop **loop)
{
  Loop *L;

  PetscFunctionBeginUser;
  PetscCall(PetscNew(&L));
  L->count = B->count;
  *loop    = L;
#if defined(PETSC_HAVE_CUDA)
  if (DeviceOn) {
    PetscCall(LoopCreate_CUDA(B, L));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(PetscMalloc1(B->count, &L->mats));
  for (PetscInt p = 0, at = 0; p < B->count; p++) {
    const Problem *P = B->of[p];

    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, P->n, P->n, P->i, B->j + at, B->a + at, &L->mats[p]));
    at += P->i[P->n];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoopMult(Loop *L, const Batch *B, const PetscScalar x[], PetscScalar y[])
{
  PetscFunctionBeginUser;
#if defined(PETSC_HAVE_CUDA)
  if (DeviceOn) {
    for (PetscInt p = 0; p < L->count; p++) PetscCall(LoopCall(L, p));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  /* consecutive problems of the same size use the same vectors */
  for (PetscInt p = 0, row = 0; p < L->count; row += B->sizes[p++]) {
    if (!p || B->sizes[p] != B->sizes[p - 1]) {
      PetscCall(VecDestroy(&L->x));
      PetscCall(VecDestroy(&L->y));
      PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, B->sizes[p], NULL, &L->x));
      PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, B->sizes[p], NULL, &L->y));
    }
    PetscCall(VecPlaceArray(L->x, x + row));
    PetscCall(VecPlaceArray(L->y, y + row));
    PetscCall(MatMult(L->mats[p], L->x, L->y));
    PetscCall(VecResetArray(L->x));
    PetscCall(VecResetArray(L->y));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LoopDestroy(Loop **loop)
{
  Loop *L = *loop;

  PetscFunctionBeginUser;
  if (!L) PetscFunctionReturn(PETSC_SUCCESS);
#if defined(PETSC_HAVE_CUDA)
  if (L->A) {
    PetscCallCUDA(cudaDeviceSynchronize());
    for (PetscInt p = 0; p < L->count; p++) {
      PetscCallCUSPARSE(cusparseDestroySpMat(L->A[p]));
      PetscCallCUSPARSE(cusparseDestroyDnVec(L->dx[p]));
      PetscCallCUSPARSE(cusparseDestroyDnVec(L->dy[p]));
    }
    PetscCall(PetscFree4(L->A, L->dx, L->dy, L->py));
    PetscCallCUDA(cudaFree(L->memory));
    PetscCallCUDA(cudaFree(L->buffer));
    PetscCallCUSPARSE(cusparseDestroy(L->handle));
    PetscCallCUDA(cudaStreamDestroy(L->stream));
  }
#endif
#if defined(PETSCSPMV_HAVE_CUDA)
  if (L->batched) PetscCallCUDA(BatchedDestroy(&L->batched));
#endif
  for (PetscInt p = 0; L->mats && p < L->count; p++) PetscCall(MatDestroy(&L->mats[p]));
  PetscCall(PetscFree(L->mats));
  PetscCall(VecDestroy(&L->x));
  PetscCall(VecDestroy(&L->y));
  PetscCall(PetscFree(*loop));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- one contender's measurement */

typedef struct {
  PetscInt  reps, wrong;
  PetscReal target;
  FILE     *csv;
  PetscInt  ntypes;
  char     *types[32];
  PetscInt  problems, few, figures[8], nfigures, sizes[16], nsizes; /* options */
  char     *only[64];
  PetscInt  nonly;
  Problem   set[PETSC_STATIC_ARRAY_LENGTH(TestSet)];
  /* the selected ones, and those with at least 800 rows */
  const Problem *all[PETSC_STATIC_ARRAY_LENGTH(TestSet)], *large[PETSC_STATIC_ARRAY_LENGTH(TestSet)];
  PetscInt       nall, nlarge;
} Bench;

typedef struct {
  char   viewed[128];
  double seconds, bytes, error;
} Result;

static PetscErrorCode Multiply(Mat A, Loop *L, const Batch *B, Vec x, Vec y)
{
  PetscFunctionBeginUser;
  if (A)
    PetscCall(MatMult(A, x, y));
  else {
    const PetscScalar *xx = NULL;
    PetscScalar       *yy = NULL;

#if defined(PETSCSPMV_HAVE_CUDA)
    if (L->batched) {
      PetscCall(VecGetArrayReadAndMemType(x, &xx, NULL));
      PetscCall(VecGetArrayWriteAndMemType(y, &yy, NULL));
      PetscCallCUDA(BatchedMult(L->batched, xx, yy, Device.stream));
      PetscCall(VecRestoreArrayWriteAndMemType(y, &yy));
      PetscCall(VecRestoreArrayReadAndMemType(x, &xx));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
#endif
    if (!DeviceOn) {
      PetscCall(VecGetArrayRead(x, &xx));
      PetscCall(VecGetArrayWrite(y, &yy));
    }
    PetscCall(LoopMult(L, B, xx, yy));
    if (!DeviceOn) {
      PetscCall(VecRestoreArrayWrite(y, &yy));
      PetscCall(VecRestoreArrayRead(x, &xx));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest error, relative to the bound on rounding errors; 1e99 for NaN */
static PetscErrorCode Verify(const Batch *B, Loop *L, Vec y, double *error)
{
  const PetscScalar *v;

  PetscFunctionBeginUser;
#if defined(PETSC_HAVE_CUDA)
  if (DeviceOn && L && L->A) { /* the loop has its own arrays */
    PetscScalar *to;

    PetscCallCUDA(cudaDeviceSynchronize());
    PetscCall(VecGetArrayWrite(y, &to));
    for (PetscInt p = 0, row = 0; p < B->count; row += B->sizes[p++])
      PetscCallCUDA(cudaMemcpy(to + row, L->py[p], (size_t)B->sizes[p] * sizeof(*to), cudaMemcpyDeviceToHost));
    PetscCall(VecRestoreArrayWrite(y, &to));
  }
#endif
  PetscCall(VecGetArrayRead(y, &v));
  for (PetscInt r = 0; r < B->rows; r++) {
    const double off = PetscAbsScalar(v[r] - B->ref[r]);

    if (!(off <= 1e300))
      *error = 1e99;
    else if (off > 0.0)
      *error = PetscMax(*error, B->ref_bound[r] > 0.0 ? off / B->ref_bound[r] : 1e99);
  }
  PetscCall(VecRestoreArrayRead(y, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(const Bench *b, Mat A, Loop *L, const Batch *B, Result *r)
{
  Vec            x, y;
  PetscLogDouble t = 0.0;
  double        *times, dt;
  PetscInt       its;

  PetscFunctionBeginUser;
  PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, B->rows, B->x, &x));
#if defined(PETSC_HAVE_CUDA)
  if (DeviceOn) {
    Vec host = x;

    PetscCall(DeviceVecCopy(host, &x));
    PetscCall(VecDestroy(&host));
  }
#endif
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecSet(y, (PetscScalar)NAN));
  PetscCall(PetscMalloc1(b->reps, &times));
  r->error = 0.0;
  PetscCall(Multiply(A, L, B, x, y)); /* sets up */
  PetscCall(Verify(B, L, y, &r->error));
  PetscCall(TimeBegin(PETSC_COMM_SELF, &t));
  PetscCall(Multiply(A, L, B, x, y));
  PetscCall(TimeEnd(PETSC_COMM_SELF, t, &dt));
  its = (PetscInt)PetscMin(1000.0, PetscMax(1.0, b->target / PetscMax(dt, 1e-7)));
  for (PetscInt k = 0; k < b->reps; k++) {
    PetscCall(TimeBegin(PETSC_COMM_SELF, &t));
    for (PetscInt q = 0; q < its; q++) PetscCall(Multiply(A, L, B, x, y));
    PetscCall(TimeEnd(PETSC_COMM_SELF, t, &times[k]));
    times[k] /= (double)its;
  }
  PetscCall(Median(b->reps, times, &r->seconds));
  PetscCall(Verify(B, L, y, &r->error));
  PetscCall(PetscFree(times));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* exists: false if the contender cannot handle this batch */
static PetscErrorCode RunType(const Bench *b, const Batch *B, const char *type, Result *r, PetscBool *exists)
{
  const double nz = (double)B->i[B->rows], vectors = 2.0 * (double)B->rows * sizeof(PetscScalar);
  const double csr = nz * (sizeof(PetscScalar) + sizeof(PetscInt)) + (double)B->rows * sizeof(PetscInt);
  Mat          A   = NULL;
  Loop        *L   = NULL;

  PetscFunctionBeginUser;
  *exists = PETSC_TRUE;
  PetscCall(PetscMemzero(r, sizeof(*r)));
  if (!strcmp(type, "loop")) {
    PetscCall(LoopCreate(B, &L));
    PetscCall(PetscStrncpy(r->viewed, DeviceOn ? "cuSPARSE CSR" : "MatMult", sizeof(r->viewed)));
    r->bytes = csr + vectors;
  } else if (!strncmp(type, "batch:", 6)) {
    /* ELL: not with too much padding */
    *exists = (PetscBool)(DeviceOn && (strcmp(type, "batch:ell") || B->ell <= 8 * (PetscInt64)B->i[B->rows]));
#if defined(PETSCSPMV_HAVE_CUDA)
    if (!*exists) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(PetscNew(&L));
    PetscCallCUDA(BatchedCreate((int)B->count, B->sizes, B->i, B->j, B->a, type + 6, &L->batched));
    r->bytes = (double)BatchedBytes(L->batched) + vectors;
    PetscCall(PetscStrncpy(r->viewed, type + 6, sizeof(r->viewed)));
#else
    *exists = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
#endif
  } else if (!strcmp(type, "batch")) {
    PetscCall(MatCreateBatch(PETSC_COMM_SELF, B->count, B->sizes, B->i, B->j, B->a, MATBATCH_SHARE_NONE,
                             PETSC_USE_POINTER, &A));
  } else {
    const char *mattype = strcmp(type, "aij") ? type : (DeviceOn ? "aijcusparse" : "aij");

    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, B->rows, B->rows, B->i, B->global, B->a, &A));
    PetscCall(MatConvert(A, mattype, MAT_INPLACE_MATRIX, &A));
    r->bytes = csr + vectors;
    PetscCall(PetscStrncpy(r->viewed, mattype, sizeof(r->viewed)));
  }
  if (A) { /* on the host, the format is set up before it is timed */
    PetscSpMVInfo info;
    const char   *format;

    PetscCall(PetscSpMVGetFormat(A, &format));
    if (format) PetscCall(PetscSpMVGetInfo(A, &info));
  }
  PetscCall(Measure(b, A, L, B, r));
  if (A) {
    PetscSpMVInfo info;
    const char   *format;

    PetscCall(PetscSpMVGetFormat(A, &format));
    if (format) {
      PetscCall(PetscSpMVGetInfo(A, &info));
      r->bytes = (double)info.bytes + vectors;
      PetscCall(PetscStrncpy(r->viewed, info.kernel ? info.kernel : "-", sizeof(r->viewed)));
    }
  }
  PetscCall(LoopDestroy(&L));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Measures all contenders, except those listed in `without`, on one batch. loop and aij, with which the others are
   compared, come first in the list */
static PetscErrorCode RunCase(Bench *b, int figure, const char *name, const char *origin, PetscInt count,
                              const Problem **of, const char *without)
{
  Batch  B;
  double loop = 0.0, aij = 0.0;

  PetscFunctionBeginUser;
  PetscCall(BatchCreate(count, of, &B));
  PetscCall(PetscPrintf(PETSC_COMM_SELF,
                        "\nfigure %d, %s (%s): %" PetscInt_FMT " problems, %" PetscInt_FMT " rows, %" PetscInt_FMT
                        " nonzeros, longest row %" PetscInt_FMT "\n",
                        figure, name, origin, count, B.rows, B.i[B.rows], B.most));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %-17s %12s %9s %9s %7s %8s %8s %8s\n", "", "us", "Gflop/s", "GB/s", "share",
                        "to loop", "to aij", "error"));
  for (PetscInt k = 0; k < b->ntypes; k++) {
    const char *type = b->types[k];
    Result      r;
    PetscBool   exists;
    double      gflops, rate;
    char        word[64];

    PetscCall(PetscSNPrintf(word, sizeof(word), " %s ", type));
    if (without && (strstr(without, word) || (!strncmp(type, "batch:", 6) && strstr(without, " batch: ")))) continue;
    PetscCall(RunType(b, &B, type, &r, &exists));
    if (!exists) continue;
    if (!strcmp(type, "loop")) loop = r.seconds;
    if (!strcmp(type, "aij")) aij = r.seconds;
    gflops = 2e-9 * (double)B.i[B.rows] / r.seconds;
    rate   = r.bytes / r.seconds;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %-17s %12.2f %9.2f %9.1f %6.1f%% %8.2f %8.2f %8.3g%s  %s\n", type,
                          1e6 * r.seconds, gflops, 1e-9 * rate, Device.copy > 0.0 ? 100.0 * rate / Device.copy : 0.0,
                          loop > 0.0 ? loop / r.seconds : 0.0, aij > 0.0 ? aij / r.seconds : 0.0, r.error,
                          r.error <= 1.0 ? "" : " WRONG", r.viewed));
    PetscCall(PetscFPrintf(PETSC_COMM_SELF, b->csv,
                           "%d,%s,%s,%" PetscInt_FMT ",%" PetscInt_FMT ",%" PetscInt_FMT
                           ",%s,\"%s\",%.9g,%.6g,%.0f,%.6g,%.4g,%.6g,%.6g,%.3g,%s,%s\n",
                           figure, name, origin, count, B.rows, B.i[B.rows], type, r.viewed, r.seconds, gflops, r.bytes,
                           rate, Device.copy > 0.0 ? rate / Device.copy : 0.0, loop > 0.0 ? loop / r.seconds : 0.0,
                           aij > 0.0 ? aij / r.seconds : 0.0, r.error, DeviceOn ? Device.name : "host",
                           ResultsSource(DeviceOn ? Device.name : NULL)));
    if (b->csv) fflush(b->csv);
    if (!(r.error <= 1.0)) b->wrong++;
  }
  PetscCall(BatchDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the experiments */

static PetscErrorCode RunSame(Bench *b, int figure, const Problem *P, const char *name, PetscInt count,
                              const char *without)
{
  const Problem **of;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(count, &of));
  for (PetscInt p = 0; p < count; p++) of[p] = P;
  PetscCall(RunCase(b, figure, name, P->origin, count, of, without));
  PetscCall(PetscFree(of));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunMixed(Bench *b, int figure, PetscInt n, const Problem *P[], const char *name, PetscInt count)
{
  const Problem **of;
  uint64_t        random = 7;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(count, &of));
  for (PetscInt p = 0; p < count; p++) of[p] = P[RandomInt(&random, n)];
  PetscCall(RunCase(b, figure, name, "files and twins", count, of, NULL));
  PetscCall(PetscFree(of));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int ByDensity(const void *x, const void *y)
{
  const Problem *p = *(const Problem *const *)x, *q = *(const Problem *const *)y;
  const double   d = (double)p->i[p->n] / p->n - (double)q->i[q->n] / q->n;

  return d < 0.0 ? -1 : d > 0.0;
}

static PetscErrorCode Figure4(Bench *b)
{
  const PetscInt n = 1024;

  PetscFunctionBeginUser;
  for (int balanced = 1; balanced >= 0; balanced--) {
    for (PetscInt mean = 1; mean <= 64; mean *= 2) {
      Problem  P;
      PetscInt len[1024];

      for (PetscInt r = 0; r < n; r++) len[r] = mean;
      for (PetscInt r = 0; r < n && !balanced; r++) len[r] = r < mean ? n : 0; /* all entries in a few full rows */
      PetscCall(ProblemGenerate(n, len, PETSC_FALSE, &P));
      P.origin = "generated";
      PetscCall(PetscSNPrintf(P.name, sizeof(P.name), "%s %" PetscInt_FMT, balanced ? "balanced" : "unbalanced", mean));
      PetscCall(RunSame(b, 4, &P, P.name, b->few, NULL));
      PetscCall(ProblemDestroy(&P));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Figure5(Bench *b)
{
  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < b->nall; k++) {
    /* the largest batch without the paper's kernels, then a smaller one with every kernel, whose set-ups take time */
    PetscCall(RunSame(b, 5, b->all[k], b->all[k]->name, b->problems, b->problems > b->few ? " batch: evchyb " : NULL));
    if (b->problems > b->few) PetscCall(RunSame(b, 5, b->all[k], b->all[k]->name, b->few, " loop aij "));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunFigure(Bench *b, PetscInt figure)
{
  PetscFunctionBeginUser;
  switch (figure) {
  case 3:
    for (PetscInt k = 0; k < b->nlarge; k++) {
      for (PetscInt s = 0; s < b->nsizes; s++)
        PetscCall(RunSame(b, 3, b->large[k], b->large[k]->name, b->sizes[s], NULL));
    }
    break;
  case 4: PetscCall(Figure4(b)); break;
  case 5: PetscCall(Figure5(b)); break;
  case 6:
  case 7:
    for (PetscInt n = 10; n <= b->problems; n *= 10) {
      if (figure == 6 && b->nlarge) PetscCall(RunMixed(b, 6, b->nlarge, b->large, "800 to 1015 rows", n));
      if (figure == 7) PetscCall(RunMixed(b, 7, b->nall, b->all, "the whole set", n));
    }
    break;
  default: SETERRQ(PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-figures has %" PetscInt_FMT ": 3 to 7", figure);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- options */

static PetscErrorCode GetOptions(Bench *b)
{
  static const char     types[]   = "loop,aij,sellp,evchyb,batch,batch:coo,batch:csr-scalar,"
                                    "batch:csr-vector,batch:csr-smart,batch:csr-i,batch:ell,batch:coo-atomic";
  static const PetscInt figures[] = {3, 4, 5, 6, 7}, sizes[] = {1, 10, 100, 1000};
  PetscBool             quick = PETSC_FALSE, set;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-quick", &quick, NULL));
  b->problems = quick ? 20 : (DeviceOn ? 10000 : 100);
  b->few      = quick ? 20 : (DeviceOn ? 1000 : 100);
  b->reps     = quick ? 3 : 7;
  b->target   = quick ? 0.001 : 0.01;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-problems", &b->problems, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-few", &b->few, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-reps", &b->reps, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-target", &b->target, NULL));
  PetscCheck(b->problems > 0 && b->few > 0 && b->reps > 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "-problems, -few and -reps must be positive");
  b->nfigures = PETSC_STATIC_ARRAY_LENGTH(b->figures);
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-figures", b->figures, &b->nfigures, &set));
  if (!set) {
    b->nfigures = PETSC_STATIC_ARRAY_LENGTH(figures);
    PetscCall(PetscArraycpy(b->figures, figures, b->nfigures));
  }
  b->nsizes = PETSC_STATIC_ARRAY_LENGTH(b->sizes);
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-sizes", b->sizes, &b->nsizes, &set));
  if (!set) {
    b->nsizes = quick ? 2 : (DeviceOn ? 4 : 3);
    PetscCall(PetscArraycpy(b->sizes, sizes, b->nsizes));
  }
  PetscCall(GetNames("-set", NULL, PETSC_STATIC_ARRAY_LENGTH(b->only), &b->nonly, b->only));
  PetscCall(GetNames("-types", types, PETSC_STATIC_ARRAY_LENGTH(b->types), &b->ntypes, b->types));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetProblems(Bench *b)
{
  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < SET; k++) {
    PetscBool in = (PetscBool)!b->nonly;

    for (PetscInt q = 0; q < b->nonly; q++) in = (PetscBool)(in || !strcmp(b->only[q], TestSet[k].name));
    if (!in) continue;
    PetscCall(ProblemFromSet(k, &b->set[k]));
    b->all[b->nall++] = &b->set[k];
    if (b->set[k].n >= 800) b->large[b->nlarge++] = &b->set[k];
  }
  PetscCheck(b->nall, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "-set names none of the set");
  qsort(b->all, (size_t)b->nall, sizeof(*b->all), ByDensity);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PrintTitle(const Bench *b)
{
  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, %s, %d bit indices, medians of %" PetscInt_FMT,
                        DeviceOn ? Device.name : "host", PetscDefined(USE_COMPLEX) ? "complex" : "real",
                        (int)(8 * sizeof(PetscInt)), b->reps));
  if (DeviceOn) PetscCall(PetscPrintf(PETSC_COMM_SELF, ", device copy %.0f GB/s", 1e-9 * Device.copy));
#if defined(PETSC_HAVE_CUDA)
  if (DeviceOn) {
    double bytes;

    PetscCall(DeviceFreeMemory(&bytes));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, ", %.0f GB free", 1e-9 * bytes));
  }
#endif
  PetscCall(
      PetscPrintf(PETSC_COMM_SELF, "; to loop, to aij: speedup; error: relative to the bound on rounding errors\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static Bench b;
  Results      csv;
  char         file[PETSC_MAX_PATH_LEN];
  PetscBool    set;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscSpMVInitializePackage());
  PetscCall(DeviceOpen());
  PetscCall(GetOptions(&b));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-csv", file, sizeof(file), &set));
  PetscCheck((b.csv = ResultsOpen(&csv, set ? file : "/dev/null", 0)), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN,
             "-csv %s: cannot write %s", file, csv.part);
  PetscCall(PetscFPrintf(PETSC_COMM_SELF, b.csv,
                         "figure,case,origin,problems,rows,nonzeros,type,viewed,seconds,gflops,bytes,bytes_per_"
                         "s,share_of_copy,over_loop,over_aij,error,"
                         "device," RESULTS_SOURCE "\n"));
  PetscCall(GetProblems(&b));
  PetscCall(PrintTitle(&b));
  for (PetscInt f = 0; f < b.nfigures; f++) PetscCall(RunFigure(&b, b.figures[f]));
  PetscCheck(!ResultsClose(&csv), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "-csv %s: not written", file);
  for (PetscInt k = 0; k < SET; k++) PetscCall(ProblemDestroy(&b.set[k]));
  for (PetscInt k = 0; k < b.ntypes; k++) PetscCall(PetscFree(b.types[k]));
  for (PetscInt k = 0; k < b.nonly; k++) PetscCall(PetscFree(b.only[k]));
  PetscCall(DeviceClose());
  PetscCheck(!b.wrong, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " products were wrong, marked WRONG above",
             b.wrong);
  PetscCall(PetscFinalize());
  return 0;
}
