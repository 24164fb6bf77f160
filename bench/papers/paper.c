static char help[] =
    "Times y = A x in every format, of the papers and of this library, on the GPU if PETSc has CUDA and the machine has a GPU, otherwise on the host.\n\
  -matrices <list> : as bench's: generators, rowlen:file, twin:name, twin:all, files\n\
  -formats <list>  : baselines (coo, csr-vector, ell, ...), sellp, evchyb, sellp-paper[:b:t], evchyb-paper, evchyb-sorted (y stays in the sorted order),\n\
                     evchyb-hold-x, -hold-a, -hold-both, csr-adaptive, cusparse:csr1 (csr2, coo1, coo2, sell, bsr), mkl, petsc:<type>; default: all.\n\
                     Only by name: csr5:<sigma>, evchyb-256 (256 threads), evchyb-load-x and -l2-x (x by loads that are not read-only, or past L1)\n\
  -host            : measure the host, even if there is a GPU\n\
  -reps <7>        : repetitions, of which the median counts\n\
  -target <0.0005> : seconds that the products of one repetition take together\n\
  -max_entries <n> : matrices with more are left out\n\
  -mkl <libmkl_rt.so.3> : path of MKL's library, for double precision\n\
  -partition       : also a row 'partition' with what EVC-HYB's partition is (Table 3 of its paper)\n\
  -stream <n>      : STREAM's four kernels on arrays of n doubles, instead of matrices\n\
  -profile         : one product each, between cudaProfilerStart() and cudaProfilerStop(), for ncu --profile-from-start off\n\
  -csv <file>      : results, matrix by matrix; with -append after what is there\n\
  -list            : prints the formats and the papers they are from, and ends\n\
  -where           : prints what would be measured, 'where: h200' or 'where: host-complex', and ends\n\n";

/*
   Each product is compared with row sums computed on the host, the error scaled by |A||x|; the program fails if one is
   wrong. On a GPU, products are timed by events, in a CUDA graph of as many as take `target` seconds; on the host by
   its clock. All formats that fit in memory together take turns, repetition by repetition.

   "convert" is the time from CSR until the first product is possible. If the product runs on the device, the CSR arrays
   are already on the device. A baseline's structure is computed on the host, and its columns and values are moved on
   the device. For cuSPARSE, the CSR arrays are on the host, and the copies are included.
*/

#include "problem.h"
#include "mkl.h"
#include "names.h"
#include "results.h"
#include "cusparsespmv.h"
#if defined(PETSCSPMV_HAVE_CUDA)
  #include "held.h"
#endif
#include "stream.h"
#include "partition.h"
#include "mat/impls/sellp/sellp.h"
#include <petscspmv.h>
#include <unistd.h>
#if defined(PETSCSPMV_HAVE_CUDA)
  #include <cuda_profiler_api.h>
#endif

#define MAX_LIST 128
#define MAX_REPS 64

/* ---------------------------------------------------------------- a format of a matrix */

typedef enum { OF_BASELINE, OF_CORE, OF_CUSPARSE, OF_MKL, OF_PETSC } SubjectKind;

/* The library's own kernels and their names in this program */
static const struct {
  const char *name, *what;
  PetscBool   evchyb, host, device;
  SpMVKernel  kernel;
#if defined(PETSCSPMV_HAVE_CUDA)
  SpMVKernel cuda;
#endif
  int sorted, held; /* sorted: y stays in the sorted order; held: 1 + the Held operand or way to load x */
  int logs;         /* logarithm of the threads per thread block, if not the default */
} CoreFormats[] = {
#if defined(PETSCSPMV_HAVE_CUDA)
  #define CORE(kernel) SPMV_KERNEL_##kernel, SPMV_KERNEL_##kernel
  #define CORE_CSR     SPMV_KERNEL_AUTO, SPMV_KERNEL_VECTOR
#else
  #define CORE(kernel) SPMV_KERNEL_##kernel
  #define CORE_CSR     SPMV_KERNEL_AUTO
#endif
    {"sellp", "this library's default for SELL-P", PETSC_FALSE, PETSC_TRUE, PETSC_TRUE, CORE(AUTO), 0, 0},
    {"evchyb", "this library's default for EVC-HYB", PETSC_TRUE, PETSC_TRUE, PETSC_TRUE, CORE(AUTO), 0, 0},
    {"sellp-paper", "Anzt, Tomov, Dongarra 2014: SELL-P as printed, b = t = 8", PETSC_FALSE, PETSC_TRUE, PETSC_TRUE,
     CORE(PAPER), 0, 0},
    {"evchyb-paper", "Guo, Gropp, Olson 2015: EVC-HYB as printed", PETSC_TRUE, PETSC_TRUE, PETSC_TRUE, CORE(PAPER), 0,
     0},
    {"evchyb-sorted", "the same without reordering y", PETSC_TRUE, PETSC_FALSE, PETSC_TRUE, CORE(PAPER), 1, 0},
    {"csr-adaptive", "Guo, Gropp 2013: CSR with adaptive threads a row", PETSC_TRUE, PETSC_FALSE, PETSC_TRUE, CORE_CSR,
     0, 0},
    {"evchyb-hold-x", "EVC-HYB without reordering, x held constant", PETSC_TRUE, PETSC_FALSE, PETSC_TRUE, CORE(PAPER),
     1, 1},
    {"evchyb-hold-a", "EVC-HYB without reordering, A held constant", PETSC_TRUE, PETSC_FALSE, PETSC_TRUE, CORE(PAPER),
     1, 2},
    {"evchyb-hold-both", "EVC-HYB without reordering, both held constant", PETSC_TRUE, PETSC_FALSE, PETSC_TRUE,
     CORE(PAPER), 1, 3},
    {"evchyb-256", "EVC-HYB without reordering, thread blocks of 256", PETSC_TRUE, PETSC_FALSE, PETSC_TRUE, CORE(PAPER),
     1, 0, 8},
    {"evchyb-load-x", "EVC-HYB without reordering, no read-only loads", PETSC_TRUE, PETSC_FALSE, PETSC_TRUE,
     CORE(PAPER), 1, 1 + 3},
    {"evchyb-l2-x", "EVC-HYB without reordering, x from L2", PETSC_TRUE, PETSC_FALSE, PETSC_TRUE, CORE(PAPER), 1,
     1 + 4}};

#define CORE_DEFAULTS 9 /* the other kernels run only if named */

typedef struct {
  char        name[64];
  SubjectKind kind;
  int         which; /* index in its table */
  Baseline    form;  /* a baseline, with the parameters of the name */
  Problem    *P;
  Stored      S; /* on the device or on the host */
  SpMVStore   block;
  MKLMatrix   mkl;
  Mat         A;
#if defined(PETSCSPMV_HAVE_CUDA)
  SpMVCudaStore  cuda;
  CuSparseMatrix cusparse;
#endif
  char     kernel[80];
  PetscInt count, turns; /* products per repetition, and repetitions; 0: not measured */
#if defined(PETSCSPMV_HAVE_CUDA)
  cudaGraphExec_t graph;
#endif
  double t[MAX_REPS];
  /* time 0: not available, for the reason in kernel; error -1: not checked */
  double convert, bytes, stored, time, least, error;
} Subject;

/* PETSC_FALSE: there is no such format, or not on this device */
static PetscErrorCode SubjectFind(const char *name, Subject *s, PetscBool *found)
{
  size_t len;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(s, sizeof(*s)));
  PetscCall(PetscStrncpy(s->name, name, sizeof(s->name)));
  *found = PETSC_TRUE;
  for (int k = 0; k < BaselineCount; k++) {
    PetscCall(PetscStrcmp(name, Baselines[k].name, found));
    s->form = Baselines[k];
    if (!*found && !strcmp(Baselines[k].name, "csr5") && !strncmp(name, "csr5:", 5)) {
      int  sigma;
      char more;

      PetscCheck(sscanf(name, "csr5:%d%c", &sigma, &more) == 1 && sigma >= 1 && sigma <= 32, PETSC_COMM_SELF,
                 PETSC_ERR_ARG_OUTOFRANGE, "-formats: %s: sigma must be 1 to 32, as in csr5:16", name);
      s->form.parameter[1] = (PetscInt)sigma;
      *found               = PETSC_TRUE;
    }
    if (!*found) continue;
    s->kind  = OF_BASELINE;
    s->which = k;
#if defined(PETSCSPMV_HAVE_CUDA)
    if (DeviceOn) *found = (PetscBool)(Baselines[k].cuda != NULL);
#endif
    if (!DeviceOn) *found = (PetscBool)(Baselines[k].mult != NULL);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(CoreFormats); k++) {
    PetscCall(PetscStrlen(CoreFormats[k].name, &len));
    if (strncmp(name, CoreFormats[k].name, len) || (name[len] && name[len] != ':')) continue;
    s->kind  = OF_CORE;
    s->which = (int)k;
    *found   = DeviceOn ? CoreFormats[k].device : CoreFormats[k].host;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#if defined(PETSCSPMV_HAVE_CUDA)
  for (size_t k = 0; DeviceOn && k < PETSC_STATIC_ARRAY_LENGTH(CuSparseProducts); k++) {
    PetscCall(PetscStrcmp(name, CuSparseProducts[k].name, found));
    if (!*found) continue;
    s->kind = OF_CUSPARSE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(PetscStrcmp(name, "mkl", found));
  if (*found) {
    s->kind = OF_MKL;
    *found  = (PetscBool)(MKL.handle && !DeviceOn);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscStrncmp(name, "cusparse:", 9, found));
  if (*found) { /* but not on this device */
    *found = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscStrncmp(name, "petsc:", 6, found));
  PetscCheck(*found, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE,
             "-formats: there is no %s; -list prints what there is", name);
  s->kind = OF_PETSC;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubjectCreateCore(Subject *s)
{
  const SpMVCSR csr   = s->P->csr;
  const char   *colon = strchr(s->name, ':');
  int           b = 8, t = 8;
  SELLPParams   p;
  EVCHYBParams  q;
  SpMVStats     stats;

  PetscFunctionBeginUser;
  SELLPParamsDefault(&p);
  EVCHYBParamsDefault(&q);
  p.common.kernel = q.common.kernel = CoreFormats[s->which].kernel;
  if (colon) {
    char more;

    PetscCheck(p.common.kernel == SPMV_KERNEL_PAPER && !CoreFormats[s->which].evchyb &&
                   sscanf(colon, ":%d:%d%c", &b, &t, &more) == 2,
               PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG,
               "-formats: %s: only sellp-paper takes b and t, as in sellp-paper:8:4", s->name);
    PetscCheck(b >= 1 && b <= 1024 && t >= 1 && t <= 32 && !(t & (t - 1)), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
               "-formats: %s: b must be 1 to 1024, and t 1, 2, 4, 8, 16 or 32", s->name);
    PetscCheck(DeviceOn || b == SPMV_LANES, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
               "-formats: %s: on the host b is 8", s->name);
  }
  if (CoreFormats[s->which].logs) q.max_threads_log2 = CoreFormats[s->which].logs;
  if (p.common.kernel == SPMV_KERNEL_PAPER) { /* the paper's own value, if the default is chosen automatically */
    p.b     = b;
    p.t     = t;
    p.sigma = 1;
  }
#if defined(PETSCSPMV_HAVE_CUDA)
  if (DeviceOn) {
    p.common.kernel = q.common.kernel = CoreFormats[s->which].cuda;
    if (CoreFormats[s->which].held)
      PetscCallCUDA(EVCHYBHeldSetUp((Held)(CoreFormats[s->which].held - 1), &s->P->cuda, &q, Device.stream, &s->cuda));
    else if (CoreFormats[s->which].evchyb)
      PetscCallCUDA(SpMVCudaEVCHYBSetUp(&s->P->cuda, &q, PETSC_FALSE, Device.stream, &s->cuda));
    else
      PetscCallCUDA(SpMVCudaSELLPSetUp(&s->P->cuda, &p, PETSC_FALSE, Device.stream, &s->cuda));
    PetscCallCUDA(SpMVCudaFill(s->cuda, &s->P->cuda, Device.stream));
    if (CoreFormats[s->which].sorted) PetscCallCUDA(EVCHYBLeaveSorted(s->cuda));
    SpMVCudaGetStats(s->cuda, &stats);
  } else
#endif
  {
    PetscCall(CoreFormats[s->which].evchyb ? EVCHYBSetUp(&csr, &q, &s->block) : SELLPSetUp(&csr, &p, &s->block));
    if (!SpMVStoreUsesParent(s->block)) PetscCall(SpMVStoreFill(s->block, &csr));
    SpMVStoreGetStats(s->block, &stats);
  }
  s->bytes  = (double)stats.bytes;
  s->stored = (double)stats.stored;
  PetscCall(PetscStrncpy(s->kernel, stats.kernel ? stats.kernel : "", sizeof(s->kernel)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The bytes that a format may take */
static PetscErrorCode Room(double *bytes)
{
  PetscFunctionBeginUser;
  *bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 3.0;
#if defined(PETSCSPMV_HAVE_CUDA)
  if (DeviceOn) {
    PetscCall(DeviceFreeMemory(bytes));
    *bytes *= 0.9;
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* exists: PETSC_FALSE if the matrix is not available in this format, for the reason in s->kernel */
static PetscErrorCode SubjectCreate(Problem *P, Subject *s, PetscBool *exists)
{
  const SpMVCSR csr = P->csr;
  double        room;

  PetscFunctionBeginUser;
  s->P    = P;
  *exists = PETSC_TRUE;
  switch (s->kind) {
  case OF_BASELINE:
    PetscCall(StoredCreate(&s->form, &csr, &s->S));
    PetscCall(Room(&room));
    *exists = (PetscBool)(s->S.stored >= 0 && StoredBytes(&s->S) < room);
    if (!*exists) {
      PetscCall(StoredDestroy(&s->S));
      break;
    }
    s->bytes  = StoredBytes(&s->S);
    s->stored = (double)s->S.stored;
#if defined(PETSCSPMV_HAVE_CUDA)
    if (DeviceOn) {
      Stored            host   = s->S;
      const cudaError_t status = StoredUpload(&host, &P->cuda, &s->S, Device.stream);

      PetscCall(StoredDestroy(&host));
      PetscCallCUDA(status);
      break;
    }
#endif
    PetscCall(StoredFill(&s->S, &csr));
    break;
  case OF_CORE: PetscCall(SubjectCreateCore(s)); break;
  case OF_CUSPARSE:
#if defined(PETSCSPMV_HAVE_CUDA)
    PetscCall(CuSparseMatCreate(P->A, s->name, &s->cusparse));
    *exists = (PetscBool)(s->cusparse != NULL);
    if (!*exists) break;
    {
      PetscErrorCode ierr;

      PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
      ierr = CuSparseMatMult(s->cusparse, P->o.x, P->o.y); /* copies and analyzes */
      PetscCall(PetscPopErrorHandler());
      if (ierr) {
        (void)cudaGetLastError();
        PetscCall(PetscStrncpy(s->kernel, "cuSPARSE refuses it", sizeof(s->kernel)));
        *exists = PETSC_FALSE;
        break;
      }
    }
    s->bytes  = s->cusparse->bytes;
    s->stored = (double)s->cusparse->stored;
#endif
    break;
  case OF_MKL:
    PetscCall(MKLMatCreate(P->A, &s->mkl));
    s->stored = (double)P->csr.i[P->csr.m];
    break;
  case OF_PETSC:
    PetscCall(MatConvert(P->A, s->name + 6, MAT_INITIAL_MATRIX, &s->A));
    PetscCall(MatMult(s->A, P->o.x, P->o.y));
    s->stored = (double)P->csr.i[P->csr.m];
    break;
  }
  if (!*exists && !s->kernel[0]) PetscCall(PetscStrncpy(s->kernel, "too much padding", sizeof(s->kernel)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubjectMult(Subject *s)
{
  Problem           *P = s->P;
  const PetscScalar *x;
  PetscScalar       *y;

  PetscFunctionBeginUser;
  if (s->kind == OF_PETSC || (s->block && SpMVStoreUsesParent(s->block))) {
    PetscCall(MatMult(s->A ? s->A : P->A, P->o.x, P->o.y));
  } else if (s->kind == OF_MKL) {
    PetscCall(MKLMatMult(s->mkl, P->o.x, P->o.y));
#if defined(PETSCSPMV_HAVE_CUDA)
  } else if (s->cusparse) {
    PetscCall(CuSparseMatMult(s->cusparse, P->o.x, P->o.y));
  } else if (DeviceOn) {
    PetscCall(VecCUDAGetArrayRead(P->o.x, &x));
    PetscCall(VecCUDAGetArrayWrite(P->o.y, &y));
    if (s->cuda)
      PetscCallCUDA(SpMVCudaMult(s->cuda, (SpMVCudaProduct){.x = x, .y = y}, Device.stream));
    else
      PetscCallCUDA((*s->form.cuda)(&s->S, x, y, Device.stream));
    PetscCall(VecCUDARestoreArrayWrite(P->o.y, &y));
    PetscCall(VecCUDARestoreArrayRead(P->o.x, &x));
#endif
  } else {
    PetscCall(VecGetArrayRead(P->o.x, &x));
    PetscCall(VecGetArrayWrite(P->o.y, &y));
    if (s->block)
      SpMVStoreMult(s->block, x, y);
    else
      (*s->form.mult)(&s->S, x, y);
    PetscCall(VecRestoreArrayWrite(P->o.y, &y));
    PetscCall(VecRestoreArrayRead(P->o.x, &x));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubjectDestroy(Subject *s)
{
  PetscFunctionBeginUser;
#if defined(PETSCSPMV_HAVE_CUDA)
  if (DeviceOn) {
    PetscCallCUDA(cudaDeviceSynchronize());
    if (s->graph) PetscCallCUDA(cudaGraphExecDestroy(s->graph));
    PetscCallCUDA(SpMVCudaDestroy(&s->cuda));
    PetscCall(CuSparseMatDestroy(&s->cusparse));
    if (s->kind == OF_BASELINE) PetscCallCUDA(StoredRelease(&s->S));
  }
#endif
  if (!DeviceOn && s->kind == OF_BASELINE) PetscCall(StoredDestroy(&s->S));
  if (s->block) PetscCall(SpMVStoreDestroy(&s->block));
  PetscCall(MKLMatDestroy(&s->mkl));
  PetscCall(MatDestroy(&s->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- measuring */

/* Multiplies into a vector of NaNs and compares with the reference */
static PetscErrorCode SubjectCheck(Subject *s)
{
  Oracle *o = &s->P->o;

  PetscFunctionBeginUser;
  s->error = -1.0;
  PetscCall(VecSet(o->y, (PetscScalar)NAN));
  if (TimeDrain) PetscCall((*TimeDrain)());
  PetscCall(SubjectMult(s));
  if (TimeDrain) PetscCall((*TimeDrain)());
  /* the order differs; tests/cuda/core.cu checks it */
  if (s->kind == OF_CORE && CoreFormats[s->which].sorted) PetscFunctionReturn(PETSC_SUCCESS);
  s->error = 0.0;
  PetscCall(OracleCheck(o, 1.0, &s->error));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSCSPMV_HAVE_CUDA)
static PetscErrorCode EventTime(PetscErrorCode (*once)(void *), void *ctx, double *seconds)
{
  float ms;

  PetscFunctionBeginUser;
  PetscCallCUDA(cudaEventRecord(Device.begin, Device.stream));
  PetscCall((*once)(ctx));
  PetscCallCUDA(cudaEventRecord(Device.end, Device.stream));
  PetscCallCUDA(cudaEventSynchronize(Device.end));
  PetscCallCUDA(cudaEventElapsedTime(&ms, Device.begin, Device.end));
  *seconds = 1e-3 * (double)ms;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OnceDirect(void *ctx)
{
  return SubjectMult((Subject *)ctx);
}

static PetscErrorCode OnceGraph(void *ctx)
{
  PetscFunctionBeginUser;
  PetscCallCUDA(cudaGraphLaunch(((Subject *)ctx)->graph, Device.stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

typedef struct {
  PetscInt  reps, wrong;
  PetscReal target;
  PetscBool profile, partition, quiet;
  FILE     *csv;
} Settings;

/* One repetition: the time of a product. The first product is not counted, because it reloads the data that other
   formats have evicted from the caches */
static PetscErrorCode SubjectTurn(Subject *s, double *seconds)
{
  PetscLogDouble begin = 0.0;
  double         dt    = 0.0;

  PetscFunctionBeginUser;
#if defined(PETSCSPMV_HAVE_CUDA)
  if (s->graph) {
    PetscCall(OnceGraph(s));
    PetscCall(EventTime(OnceGraph, s, &dt));
    *seconds = dt / (double)s->count;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(SubjectMult(s));
  PetscCall(TimeBegin(PETSC_COMM_SELF, &begin));
  for (PetscInt k = 0; k < s->count; k++) PetscCall(SubjectMult(s));
  PetscCall(TimeEnd(PETSC_COMM_SELF, begin, &dt));
  *seconds = dt / (double)s->count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Chooses the number of products per repetition and of repetitions; few for a format that takes hundreds of times as
   long as others */
static void SubjectPlan(Subject *s, double one, const Settings *settings)
{
  s->count = (PetscInt)PetscMin(DeviceOn ? 40.0 : 1000.0, PetscMax(1.0, settings->target / PetscMax(one, 1e-9)));
  s->turns = DeviceOn && one > 0.02 ? PetscMin(2, settings->reps) : settings->reps;
}

#if defined(PETSCSPMV_HAVE_CUDA)
/* A graph with the products of a repetition; there is none if a library's product cannot be captured */
static PetscErrorCode SubjectCapture(Subject *s)
{
  PetscErrorCode ierr  = PETSC_SUCCESS;
  cudaGraph_t    graph = NULL;
  cudaError_t    status;

  PetscFunctionBeginUser;
  PetscCallCUDA(cudaStreamBeginCapture(Device.stream, cudaStreamCaptureModeRelaxed));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  for (PetscInt k = 0; k < s->count && !ierr; k++) ierr = SubjectMult(s);
  PetscCall(PetscPopErrorHandler());
  status = cudaStreamEndCapture(Device.stream, &graph);
  if (!ierr && status == cudaSuccess)
    PetscCallCUDA(cudaGraphInstantiate(&s->graph, graph, 0));
  else
    (void)cudaGetLastError();
  if (graph) PetscCallCUDA(cudaGraphDestroy(graph));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* Converts, checks, and prepares for timing; with -profile, runs the product to be profiled */
static PetscErrorCode SubjectBegin(Problem *P, Subject *s, Settings *settings)
{
  PetscLogDouble begin = 0.0;
  double         one   = 0.0;
  PetscBool      exists;

  PetscFunctionBeginUser;
  PetscCall(TimeBegin(PETSC_COMM_SELF, &begin));
  PetscCall(SubjectCreate(P, s, &exists));
  PetscCall(TimeEnd(PETSC_COMM_SELF, begin, &s->convert));
  if (!exists) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SubjectCheck(s));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (settings->profile) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "profile %s %s\n", P->name, s->name));
    PetscCallCUDA(cudaProfilerStart());
    PetscCall(SubjectMult(s));
    PetscCallCUDA(cudaDeviceSynchronize());
    PetscCallCUDA(cudaProfilerStop());
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* PETSc's own products run in PETSc's stream and are timed by the host's clock */
  if (DeviceOn && s->kind != OF_PETSC) {
    PetscCall(EventTime(OnceDirect, s, &one));
    SubjectPlan(s, one, settings);
    PetscCall(SubjectCapture(s));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  s->count = 1;
  PetscCall(SubjectTurn(s, &one));
  SubjectPlan(s, one, settings);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Formats take turns, so that a temporary slowdown of the machine affects all of them; then they are destroyed */
static PetscErrorCode SubjectsRun(PetscInt n, Subject *subject, const Settings *settings)
{
  PetscFunctionBeginUser;
  for (PetscInt r = 0; r < settings->reps; r++) {
    for (PetscInt k = 0; k < n; k++) {
      if (r < subject[k].turns) PetscCall(SubjectTurn(&subject[k], &subject[k].t[r]));
    }
  }
  for (PetscInt k = 0; k < n; k++) {
    if (subject[k].turns) {
      PetscCall(Median(subject[k].turns, subject[k].t, &subject[k].time));
      subject[k].least = subject[k].t[0];
    }
    PetscCall(SubjectDestroy(&subject[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubjectPrint(const Subject *s)
{
  const double nz = (double)s->P->csr.i[s->P->csr.m];

  PetscFunctionBeginUser;
  if (s->time == 0.0)
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %-20s %s\n", s->name, s->kernel));
  else
    PetscCall(PetscPrintf(PETSC_COMM_SELF,
                          "  %-20s %10.2f us %7.1f GF/s  padding %5.1f %%  convert %9.2f ms  error %.2g%s  %s\n",
                          s->name, 1e6 * s->time, (PetscDefined(USE_COMPLEX) ? 8e-9 : 2e-9) * nz / s->time,
                          100.0 * (s->stored - nz) / PetscMax(1.0, nz), 1e3 * s->convert, s->error,
                          s->error > 1.0 ? "  WRONG" : "", s->kernel));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReportLine(const Problem *P, const Subject *s, FILE *csv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscFPrintf(PETSC_COMM_SELF, csv,
                         "%s,%s,%" PetscInt_FMT ",%" PetscInt_FMT ",%" PetscInt_FMT
                         ",%s,%.4g,%s,%.9g,%.9g,%.0f,%.0f,%.9g,%.3g,\"%s\",%s\n",
                         P->name, P->origin, P->csr.m, P->csr.n, P->csr.i[P->csr.m], DeviceOn ? Device.name : "host",
                         Device.copy, s->name, s->time, s->least, s->bytes, s->stored, s->convert, s->error, s->kernel,
                         ResultsSource(DeviceOn ? Device.name : NULL)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Table 3 of the EVC-HYB paper; "kernel" holds the numbers */
static PetscErrorCode ReportPartition(const Problem *P, FILE *csv)
{
  EVCHYBParams    p;
  EVCHYBPartition part;
  Subject         s;

  PetscFunctionBeginUser;
  EVCHYBParamsDefault(&p);
  PetscCall(EVCHYBPartitionCreate(&P->csr, p.ell_limit, &part));
  PetscCall(PetscMemzero(&s, sizeof(s)));
  PetscCall(PetscStrncpy(s.name, "partition", sizeof(s.name)));
  PetscCall(PetscSNPrintf(s.kernel, sizeof(s.kernel),
                          "isplit %" PetscInt_FMT " ell %" PetscInt64_FMT " csr %" PetscInt64_FMT, part.isplit,
                          part.ell_entries, part.csr_entries));
  PetscCall(ReportLine(P, &s, csv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProblemRun(Problem *P, PetscInt nformats, char *formats[], Settings *settings)
{
  static Subject subject[MAX_LIST];
  PetscInt       n = 0, ran = 0;
  double         held = 0.0, room;
  PetscBool      found;

  PetscFunctionBeginUser;
  if (!settings->quiet)
    PetscCall(PetscPrintf(PETSC_COMM_SELF,
                          "%s (%s), %" PetscInt_FMT " x %" PetscInt_FMT ", %" PetscInt_FMT " entries\n", P->name,
                          P->origin, P->csr.m, P->csr.n, P->csr.i[P->csr.m]));
  PetscCall(Room(&room));
  for (PetscInt f = 0; f < nformats; f++) {
    PetscCall(SubjectFind(formats[f], &subject[n], &found));
    if (!found) continue;
    PetscCall(SubjectBegin(P, &subject[n], settings));
    held += PetscMax(subject[n].bytes, (double)P->csr.i[P->csr.m] * (double)(sizeof(PetscScalar) + sizeof(PetscInt)));
    n++;
    if (held > 0.6 * room || settings->profile) { /* the next formats need memory */
      PetscCall(SubjectsRun(n - ran, subject + ran, settings));
      ran  = n;
      held = 0.0;
    }
  }
  PetscCall(SubjectsRun(n - ran, subject + ran, settings));
  for (PetscInt k = 0; k < n; k++) {
    if (!settings->profile && !settings->quiet) PetscCall(SubjectPrint(&subject[k]));
    /* all at once, so that the file contains all formats of a matrix or none */
    if (settings->csv) PetscCall(ReportLine(P, &subject[k], settings->csv));
    if (subject[k].error > 1.0) settings->wrong++;
  }
  if (settings->partition && settings->csv) PetscCall(ReportPartition(P, settings->csv));
  if (settings->csv) (void)fflush(settings->csv);
  (void)fflush(stdout);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Loads all code and initializes all libraries before anything is timed */
static PetscErrorCode WarmUp(PetscInt nformats, char *formats[])
{
  Settings once = {1, 0, 0.0, PETSC_FALSE, PETSC_FALSE, PETSC_TRUE, NULL};
  Problem  P;

  PetscFunctionBeginUser;
  PetscCall(ProblemCreate("lengths:3000:5:1:60:300", &P));
  PetscCall(ProblemRun(&P, nformats, formats, &once));
  PetscCall(ProblemDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the program */

static PetscErrorCode DefaultFormats(PetscInt *n, char *list[])
{
  PetscFunctionBeginUser;
  *n = 0;
  for (size_t k = 0; k < CORE_DEFAULTS; k++) PetscCall(PetscStrallocpy(CoreFormats[k].name, &list[(*n)++]));
  for (int k = 0; k < BaselineCount; k++) PetscCall(PetscStrallocpy(Baselines[k].name, &list[(*n)++]));
#if defined(PETSCSPMV_HAVE_CUDA)
  for (size_t k = 0; DeviceOn && k < PETSC_STATIC_ARRAY_LENGTH(CuSparseProducts); k++)
    PetscCall(PetscStrallocpy(CuSparseProducts[k].name, &list[(*n)++]));
#endif
  if (DeviceOn)
    PetscCall(PetscStrallocpy("petsc:aijcusparse", &list[(*n)++]));
  else {
    PetscCall(PetscStrallocpy("mkl", &list[(*n)++]));
    PetscCall(PetscStrallocpy("petsc:aij", &list[(*n)++]));
    PetscCall(PetscStrallocpy("petsc:aijperm", &list[(*n)++]));
    PetscCall(PetscStrallocpy("petsc:sell", &list[(*n)++]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode List(void)
{
  PetscFunctionBeginUser;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(CoreFormats); k++)
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s\t%s\n", CoreFormats[k].name, CoreFormats[k].what));
  for (int k = 0; k < BaselineCount; k++)
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s\t%s\n", Baselines[k].name, Baselines[k].paper));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetSettings(Settings *s)
{
  PetscFunctionBegin;
  if (!DeviceOn) s->target = 4e-3;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-reps", &s->reps, NULL));
  PetscCheck(s->reps > 0 && s->reps <= MAX_REPS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-reps must be 1 to %d",
             MAX_REPS);
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-target", &s->target, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-profile", &s->profile, NULL));
  PetscCheck(DeviceOn || !s->profile, PETSC_COMM_SELF, PETSC_ERR_SUP, "-profile needs a GPU");
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-partition", &s->partition, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Opens the file of -csv <file>, if given; file: PETSC_MAX_PATH_LEN characters */
static PetscErrorCode OpenCSV(Settings *s, Results *csv, char file[])
{
  PetscBool set, append = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-append", &append, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-csv", file, PETSC_MAX_PATH_LEN, &set));
  if (set) {
    PetscCheck((s->csv = ResultsOpen(csv, file, append)), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN,
               "-csv %s: cannot write %s", file, csv->part);
    (void)setvbuf(s->csv, NULL, _IOFBF, 1 << 20); /* one write per matrix */
    if (!append)
      PetscCall(PetscFPrintf(PETSC_COMM_SELF, s->csv,
                             "matrix,origin,rows,columns,entries,device,copy,format,seconds,least,bytes,stored,"
                             "convert,error,kernel," RESULTS_SOURCE "\n"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static char *matrices[MAX_LIST], *formats[MAX_LIST];
  char         file[PETSC_MAX_PATH_LEN];
  PetscInt     nmatrices, nformats, stream = 20000000;
  PetscReal    max_entries = 2147483000.0;
  PetscBool    set, streaming, host = PETSC_FALSE;
  Results      csv;
  Settings     s = {7, 0, 5e-4, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, NULL};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscSpMVInitializePackage());
  PetscCall(PetscOptionsHasName(NULL, NULL, "-list", &set));
  if (set) {
    PetscCall(List());
    PetscCall(PetscFinalize());
    return 0;
  }
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-host", &host, NULL));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (!host) PetscCall(DeviceOpen());
  if (DeviceOn) {
    /* PETSc's default stream cannot be captured */
    PetscCallCUDA(cudaStreamCreateWithFlags(&Device.stream, cudaStreamNonBlocking));
  }
#endif
  PetscCall(PetscOptionsHasName(NULL, NULL, "-where", &set));
  if (set) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "where: %s%s%s%s\n", DeviceOn ? Device.label : "host",
                          PetscDefined(USE_COMPLEX) ? "-complex" : "",
                          sizeof(PetscReal) == sizeof(double) ? "" : "-single",
                          PetscDefined(USE_64BIT_INDICES) ? "-64bit" : ""));
    nmatrices = nformats = 0;
    goto done;
  }
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mkl", file, sizeof(file), &set));
  if (set && !DeviceOn && sizeof(PetscReal) == sizeof(double)) PetscCall(MKLOpen(file));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-stream", &stream, &streaming));
  PetscCheck(stream > 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-stream must be positive");
  PetscCall(GetNames("-matrices", NULL, MAX_LIST, &nmatrices, matrices));
  PetscCheck(nmatrices || streaming, PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "-matrices: which?");
  PetscCall(MatrixListAll(MAX_LIST, &nmatrices, matrices));
  PetscCall(GetNames("-formats", NULL, MAX_LIST, &nformats, formats));
  if (!nformats) PetscCall(DefaultFormats(&nformats, formats));
  PetscCall(GetSettings(&s));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-max_entries", &max_entries, NULL));
  PetscCall(OpenCSV(&s, &csv, file));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, %s, %d bit indices, median of %" PetscInt_FMT,
                        DeviceOn ? Device.name : "host", PetscDefined(USE_COMPLEX) ? "complex" : "real",
                        (int)(8 * sizeof(PetscInt)), s.reps));
  if (DeviceOn) PetscCall(PetscPrintf(PETSC_COMM_SELF, ", device copy %.0f GB/s", 1e-9 * Device.copy));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));

  if (streaming) PetscCall(StreamRun(stream, s.reps, s.csv));
  if (!s.profile && nmatrices) PetscCall(WarmUp(nformats, formats));
  for (PetscInt k = 0; k < nmatrices; k++) {
    const int twin    = strncmp(matrices[k], "twin:", 5) ? -1 : TwinFind(matrices[k] + 5);
    double    entries = twin < 0 ? 0.0 : (double)Twins[twin].entries;
    Problem   P;

    if (entries <= max_entries) {
      PetscCall(ProblemCreate(matrices[k], &P));
      entries = (double)P.csr.i[P.csr.m];
      if (entries <= max_entries) PetscCall(ProblemRun(&P, nformats, formats, &s));
      PetscCall(ProblemDestroy(&P));
    }
    if (entries > max_entries)
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s is left out: %.0f entries\n", matrices[k], entries));
  }
  if (s.csv) PetscCheck(!ResultsClose(&csv), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "-csv %s: not written", file);
  PetscCall(FreeNames(nmatrices, matrices));
  PetscCall(FreeNames(nformats, formats));
  PetscCheck(!s.wrong, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " products are wrong, marked WRONG above",
             s.wrong);
done:
#if defined(PETSCSPMV_HAVE_CUDA)
  PetscCall(DeviceClose());
  if (DeviceOn) PetscCallCUDA(cudaStreamDestroy(Device.stream));
#endif
  PetscCall(PetscFinalize());
  return 0;
}
