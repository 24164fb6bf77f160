static char help[] =
    "Times matrix-vector products by matrix type, on the GPU if PETSc has CUDA and the machine has a GPU, otherwise on the host.\n\
  -set <structured,meshes> : sets of matrices: structured grids, meshes (bench/lib/meshes.py makes them), graphs\n\
  -matrices <list> : generators instead (stencil7:100, fem27:30:3, ...; a wrong name prints them all), rowlen:file, mesh:name, levels of\n\
                     GAMG's hierarchies (coarse:1:name, interpolation:1:name), and files\n\
  -also <list>     : further matrices\n\
  -transpose       : MatMultTranspose() instead (without MKL and cusparse:...)\n\
  -quick           : a set of small matrices and few repetitions, to check that everything works\n\
  -types <aij,aijperm,sell,sellp,evchyb> : matrix types, each alone or with its own options, as in 'sellp:-mat_sellp_sigma 1'. On a GPU also\n\
                     cusparse:csr1, :csr2, :coo1, :coo2, :sell, :bsr, with cuSPARSE 12.9 :op1, :op2 (one rank), and sellcuda.\n\
                     aij, on a GPU aijcusparse, is always among them: the others are compared with it\n\
                     Also formats of other papers (a GPU, one rank): coo, coo-segmented, coo-balanced, csr-scalar, csr-vector, ell, hyb, sell-32,\n\
                     sell-32-1024, sell-32-all, csr5 or csr5:sigma\n\
  -graph           : for the papers' experiments, on one GPU: sellp and evchyb are kernels without a matrix type, and sellp-paper[:b:t], evchyb-paper,\n\
                     evchyb-sorted (y stays in the sorted order), csr-adaptive, evchyb-hold-x, -hold-a, -hold-both, evchyb-256 (threads),\n\
                     evchyb-load-x and -l2-x (x by other loads) are types. Products are timed by the device, in CUDA graphs\n\
  -profile         : with -graph, one product of each type instead, between cudaProfilerStart() and cudaProfilerStop()\n\
  -mkl <libmkl_rt.so.2> : adds MKL's CSR product (one rank, host)\n\
  -reps <11>       : repetitions, of which the median counts\n\
  -target <0.004>  : seconds that a type's products of one repetition take together (GPU: 0.02)\n\
  -warm <true>     : products one after the other, in cache if they fit\n\
  -cold <true>     : each product after the caches were filled with something else\n\
  -refresh <true>  : products after the values changed\n\
  -evict <MB>      : how much of something else, by default twice the last level, at least 64 (host)\n\
  -where           : prints where it would run, 'where: host' or 'where: h200 NVIDIA H200', and ends\n\
  -csv <file>      : results to read by program\n\n";

/*
   All types run in one process on copies of one matrix, and take turns within each repetition, so that a temporary
   slowdown of the machine affects all of them. Each type's product is compared row by row with AIJ's on the host,
   before and after timing and after the values have changed, and the program fails if one is wrong. bench/products/run runs it
   on the default set.

   Columns: time and rate of a product in cache ("warm") and out of cache ("cold") and their ratio to AIJ, larger is
   faster; "convert" is MatConvert() from AIJ, including its copy; "first" is the time of the first product minus the
   time of a later one; "refresh" is the time of a product after all values have changed minus the time of another
   product. On the host, the unit of the last three is the time of AIJ's product.

   On a GPU, x and y are CUDA vectors, and the types are compared with aijcusparse and with the best of cuSPARSE's
   products. A warm product is timed by the host's clock, in a batch that ends with a synchronization; this is the time
   that a program experiences, including launches. A cold product is timed on the device. "MB" are the bytes of the
   format's arrays, x and y, each moved once; "share" is the resulting rate as a fraction of the bandwidth of a large
   copy; "refresh" and "device" are a refresh after the values have changed in the host's array, and by MatScale() on the
   GPU; "memory" is the GPU memory of the matrix after its products, in MB.
*/

#include <petscspmv.h>
#include <petscksp.h>
#include "matrices.h"
#include "graph.h"
#include "names.h"
#include "report.h"

#define GAMG_LEVELS(name) ",coarse:1:" name ",interpolation:1:" name ",coarse:2:" name ",interpolation:2:" name
#define MESHES            "mesh:all" GAMG_LEVELS("mesh:tet1-rcm-cut") GAMG_LEVELS("mesh:elastic-tet1-rcm-cut")

static const struct {
  const char *name, *host, *device;
} MatrixSets[] = {
    {"structured",
     "stencil7:40,stencil7:100,stencil7:160,bratu:100,fem27:12:3,fem27:30:3,fem27:30:3:0.6,fem27:40:1:0.9,"
     "stencil5:1000,stencil9:1000,tridiag:1000000",
     "stencil7:200,bratu:200,fem27:68:3,fem27:68:3:0.6,stencil7:32"},
    {"meshes", MESHES, MESHES},
    {"graphs", "webbase,google,econ,dc1,random:8000,tsopf",
     "webbase,google,random:20000,tsopf,rowlen:tests/matrices/dc1.rowlen"},
};
/* A set that takes seconds, to check that everything works */
static const char MatrixQuickSet[] =
    "stencil7:20,bratu:16,fem27:6:3,stencil9:60,webbase:5000,dc1:5000,random:600,tsopf:4000";

/* ---------------------------------------------------------------- the measurement */

#define MAX_TYPES 32

typedef struct {
  PetscInt  reps;
  PetscReal target;
  PetscBool warm, cold, refresh, profile;
  Evict     evict;
} Settings;

/* The memory of a matrix and its kernel, after a product */
static PetscErrorCode Describe(Mat A, Contender *c)
{
  MPI_Comm      comm = PetscObjectComm((PetscObject)A);
  PetscSpMVInfo info;
  const char   *format = NULL;
  double        mine[3], all[3];
  PetscInt      m, n, M, N;
  PetscBool     is;

  PetscFunctionBeginUser;
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetSize(A, &M, &N));
  if (c->A) PetscCall(PetscSpMVGetFormat(c->A, &format));
  if (format) {
    PetscCall(PetscSpMVGetInfo(c->A, &info));
    mine[0] = (double)info.nonzeros;
    mine[1] = (double)info.stored;
    mine[2] = (double)info.bytes;
    PetscCallMPI(MPI_Allreduce(mine, all, 3, MPI_DOUBLE, MPI_SUM, comm));
    c->bytes = all[2];
    PetscCall(PetscSNPrintf(
        c->note, sizeof(c->note), "%s, padding %.1f%%, %.1f B/entry", info.kernel ? info.kernel : "-",
        all[0] > 0.0 && all[1] > 0.0 ? 100.0 * (all[1] / all[0] - 1.0) : 0.0, all[0] > 0.0 ? all[2] / all[0] : 0.0));
  }
  PetscCall(PetscStrncmp(c->name, "aijcusparse", 11, &is));
  if (is || (format && c->bytes == 0.0)) { /* CSR; also our types, if they leave the product to it */
    MatInfo csr;

    PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &csr));
    c->bytes =
        csr.nz_used * (double)(sizeof(PetscScalar) + sizeof(PetscInt)) + (double)(M + 1) * (double)sizeof(PetscInt);
  }
#if defined(PETSCSPMV_HAVE_CUDA)
  if (c->cusparse) c->bytes = c->cusparse->bytes;
#endif
  if (c->bytes > 0.0) c->bytes += (double)(M + N) * (double)sizeof(PetscScalar);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One product out of cache */
static PetscErrorCode ColdProduct(MPI_Comm comm, Contender *c, Oracle *o, const Settings *s, double *seconds)
{
  PetscLogDouble t = 0.0;

  PetscFunctionBeginUser;
#if defined(PETSC_HAVE_CUDA)
  if (DeviceOn) {
    double mine;

    PetscCallMPI(MPI_Barrier(comm));
    PetscCall(DeviceColdBegin());
    PetscCall(Multiply(c, o->x, o->y));
    PetscCall(DeviceColdEnd(&mine));
    PetscCallMPI(MPI_Allreduce(&mine, seconds, 1, MPI_DOUBLE, MPI_MAX, comm));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(EvictCaches((Evict *)&s->evict));
  PetscCall(TimeBegin(comm, &t));
  PetscCall(Multiply(c, o->x, o->y));
  PetscCall(TimeEnd(comm, t, seconds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The time of a product after all values have changed minus that of another. Values change by powers of 2, which is
   exact; device: without the host's array */
static PetscErrorCode MeasureRefresh(Contender *c, Oracle *o, int rounds, PetscBool device, double *refresh)
{
  double again[3], dt, steady = 0.0;

  PetscFunctionBeginUser;
  for (int q = 0; q < rounds; q++) {
    PetscCall(device ? MatScale(c->A, 2.0) : ChangeValues(c->A, 2.0));
    PetscCall(CheckedProduct(c, o, 2.0, &again[q]));
    PetscCall(CheckedProduct(c, o, 2.0, &dt));
    steady += dt / (double)rounds;
    PetscCall(device || DeviceOn ? MatScale(c->A, 0.5) : ChangeValues(c->A, 0.5));
    PetscCall(CheckedProduct(c, o, 1.0, &dt));
  }
  PetscCall(Median(rounds, again, refresh));
  *refresh = PetscMax(0.0, *refresh - steady);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* grown: bytes that the products allocated on the GPU after the first ones */
static PetscErrorCode Measure(Mat A, PetscInt n, Contender c[], Oracle *o, const Settings *s, double *grown)
{
  MPI_Comm comm = PetscObjectComm((PetscObject)A);
  double   dt, first[MAX_TYPES], available = 0.0;
  MatInfo  info;

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(CountMemory(NULL, &available));
    PetscCall(CheckedProduct(&c[k], o, 1.0, &first[k]));
    PetscCall(CheckedProduct(&c[k], o, 1.0, &dt));
    PetscCall(CountMemory(&c[k].memory, &available));
    PetscCall(PetscMalloc1(s->reps, &c[k].warm_t));
    PetscCall(PetscMalloc1(s->reps, &c[k].cold_t));
    c[k].its = (PetscInt)PetscMin(1000.0, PetscMax(1.0, s->target / PetscMax(dt, 1e-9)));
#if defined(PETSCSPMV_HAVE_CUDA)
    if (GraphOn) PetscCall(Capture(&c[k], o));
#endif
  }

  for (PetscInt r = 0; r < s->reps; r++) {
    for (PetscInt k = 0; k < n; k++) PetscCall(WarmProducts(comm, &c[k], o, s->warm, &c[k].warm_t[r]));
    for (PetscInt k = 0; s->cold && k < n; k++) PetscCall(ColdProduct(comm, &c[k], o, s, &c[k].cold_t[r]));
  }
  *grown = 0.0;
  PetscCall(CountMemory(grown, &available));

  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(Median(s->warm ? s->reps : 0, c[k].warm_t, &c[k].warm));
    PetscCall(Median(s->cold ? s->reps : 0, c[k].cold_t, &c[k].cold));
    c[k].warm_least = s->warm ? c[k].warm_t[0] : 0.0;
    c[k].cold_least = s->cold ? c[k].cold_t[0] : 0.0;
    c[k].first      = PetscMax(0.0, first[k] - (s->warm ? c[k].warm : c[k].cold));
    PetscCall(CheckedProduct(&c[k], o, 1.0, &dt));
    PetscCall(Describe(A, &c[k]));
    if (s->refresh && c[k].A && c[k].A != A) { /* A's arrays are MKL's as well */
      PetscCall(MeasureRefresh(&c[k], o, DeviceOn && info.nz_used > 16e6 ? 1 : 3, PETSC_FALSE, &c[k].refresh));
      if (DeviceOn) PetscCall(MeasureRefresh(&c[k], o, 3, PETSC_TRUE, &c[k].refresh_device));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- all matrices */

/* The measurements for each matrix, and the results of all matrices */
typedef struct {
  const char *reference;
  PetscInt    ntypes, wrong;
  PetscBool   transpose;
  char       *types[MAX_TYPES];
  Mean        mean[MAX_TYPES], better; /* one per type; the better of ours */
  FILE       *csv;
} Bench;

/* report: PETSC_FALSE for a first run that only loads all code and initializes all libraries */
static PetscErrorCode Run(MPI_Comm comm, const char *matrix, const Settings *s, PetscBool report, Bench *b)
{
  static Contender c[MAX_TYPES];
  Mat              A, model;
  Oracle           o;
  const char      *origin;
  char            *base, name[PETSC_MAX_PATH_LEN];
  double           grown = 0.0, library = 0.0, best[2] = {0};
  PetscInt         n = 0;
  PetscBool        exists;

  PetscFunctionBeginUser;
  PetscCall(MatrixCreate(comm, matrix, &A, &origin));
  if (b->transpose)
    PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &model));
  else
    PetscCall(PetscObjectReference((PetscObject)(model = A)));
  PetscCall(OracleCreate(model, &o));
  PetscCall(MatDestroy(&model));
  for (PetscInt k = 0; k < b->ntypes; k++) {
    PetscCall(ContenderCreate(A, b->types[k], &c[n], &exists));
    c[n].type      = k;
    c[n].transpose = b->transpose;
    n += exists;
  }
#if defined(PETSCSPMV_HAVE_CUDA)
  if (s->profile)
    PetscCall(report ? Profile(matrix, n, c, &o) : PETSC_SUCCESS);
  else
#endif
    PetscCall(Measure(A, n, c, &o, s, &grown));
  for (PetscInt k = 0; k < n; k++) {
    if (c[k].library && (library == 0.0 || c[k].warm < library)) library = c[k].warm;
  }
  if (report) {
    PetscCall(PetscStrrchr(matrix, '/', &base)); /* the part after the last slash, or all of it */
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s%s", base, b->transpose ? "^T" : ""));
    PetscCall(Report(name, origin, A, n, c, library, b->csv));
    if (grown > 1048576.0)
      PetscCall(PetscPrintf(comm, "  later products took another %.1f MB on the GPU\n", 1e-6 * grown));
    for (PetscInt k = 0; k < n; k++) {
      const double ratio[2] = {Ratio(c[0].warm, c[k].warm), Ratio(c[0].cold, c[k].cold)};
      Mean        *mean     = &b->mean[c[k].type];

      PetscCall(PetscStrncpy(mean->name, c[k].name, sizeof(mean->name)));
      MeanAdd(mean, ratio);
      for (int q = 0; q < 2 && c[k].ours && !c[k].variant; q++) best[q] = PetscMax(best[q], ratio[q]);
      if (!(c[k].error <= 1.0)) b->wrong++;
    }
    if (best[0] > 0.0 || best[1] > 0.0) MeanAdd(&b->better, best);
  }
  /* MKL's matrix before the arrays that it uses */
  for (PetscInt k = n - 1; k >= 0; k--) PetscCall(ContenderDestroy(&c[k]));
#if defined(PETSCSPMV_HAVE_CUDA)
  PetscCall(BaselineCSRDestroy());
#endif
  PetscCall(OracleDestroy(&o));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReportMeans(MPI_Comm comm, PetscInt nmatrices, Bench *b)
{
  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(comm, "\nspeed relative to %s over %" PetscInt_FMT " matrices\n  %-38s | %8s %8s | %8s %8s\n",
                        b->reference, nmatrices, "", "warm", "least", "cold", "least"));
  PetscCall(PetscStrncpy(b->better.name, "the better of ours", sizeof(b->better.name)));
  for (PetscInt k = DeviceOn ? 0 : 1; k <= b->ntypes; k++) {
    const Mean *m = k < b->ntypes ? &b->mean[k] : &b->better;

    if (!m->n) continue;
    PetscCall(PetscPrintf(comm, "  %-38s | %8.2f %8.2f | %8.2f %8.2f", m->name, MeanGet(m, 0), m->least[0],
                          MeanGet(m, 1), m->least[1]));
    if (m->n < nmatrices) PetscCall(PetscPrintf(comm, "  %" PetscInt_FMT " of them", m->n));
    PetscCall(PetscPrintf(comm, "\n"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc 3.20.0 to 3.25.2 lose entries of the off-diagonal block when they convert to sell */
#define SELL_LOSES_ENTRIES (PETSC_VERSION_GE(3, 20, 0) && PETSC_VERSION_LT(3, 25, 3))

/* The types, the reference first, without those that are not possible in this run */
static PetscErrorCode GetTypes(MPI_Comm comm, Bench *b)
{
  static const char host[]   = "aij,aijperm,sell,sellp,evchyb";
  static const char device[] = "aijcusparse,sellp,evchyb,sellp:-mat_spmv_kernel paper,evchyb:-mat_spmv_kernel paper,"
                               "evchyb:-mat_spmv_kernel csr,cusparse:csr1,cusparse:csr2,cusparse:coo1,cusparse:coo2,"
                               "cusparse:sell";
  char             *list[MAX_TYPES];
  PetscInt          n;
  PetscMPIInt       size;
  PetscBool         is;
#if defined(PETSCSPMV_HAVE_CUDA)
  Baseline unused;
#endif

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  b->reference = DeviceOn ? "aijcusparse" : MATAIJ;
  PetscCall(GetNames("-types", DeviceOn ? device : host, MAX_TYPES - 2, &n, list)); /* the reference and MKL may join */
  PetscCall(PetscStrallocpy(b->reference, &b->types[b->ntypes++]));
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(PetscStrcmp(list[k], b->reference, &is));
    if (!is && (size > 1 || b->transpose)) {
      PetscCall(PetscStrncmp(list[k], "cusparse:", 9, &is));
#if defined(PETSCSPMV_HAVE_CUDA)
      if (!is) PetscCall(BaselineFind(list[k], &unused, &is));
#endif
      if (is)
        PetscCall(PetscPrintf(comm, "%s is left out: it runs on one rank, and without -transpose\n", list[k]));
      else if (size > 1 && SELL_LOSES_ENTRIES) {
        PetscBool cuda;

        PetscCall(PetscStrcmp(list[k], MATSELL, &is));
        PetscCall(PetscStrcmp(list[k], "sellcuda", &cuda));
        is = (PetscBool)(is || cuda);
        if (is)
          PetscCall(PetscPrintf(
              comm,
              "%s is left out: on several ranks this PETSc loses entries when it converts to it (repaired in 3.25.3)\n",
              list[k]));
      }
    }
    if (is)
      PetscCall(PetscFree(list[k]));
    else
      b->types[b->ntypes++] = list[k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define MAX_MATRICES 128

/* -matrices, or the sets; then those of -also */
static PetscErrorCode GetMatrices(PetscBool quick, PetscInt *nmatrices, char *matrices[MAX_MATRICES])
{
  const PetscInt sets      = (PetscInt)(sizeof(MatrixSets) / sizeof(MatrixSets[0]));
  char           all[2048] = "", *set[8];
  PetscInt       n, s;

  PetscFunctionBegin;
  /* the files of meshes are for real numbers and 32-bit indices */
  PetscCall(GetNames("-set",
                     PetscDefined(USE_COMPLEX) || PetscDefined(USE_64BIT_INDICES) ? "structured" : "structured,meshes",
                     8, &n, set));
  for (PetscInt k = 0; k < n; k++) {
    for (s = 0; s < sets && strcmp(set[k], MatrixSets[s].name); s++)
      ;
    PetscCheck(s < sets, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "-set %s: there are structured, meshes and graphs",
               set[k]);
    PetscCall(PetscStrlcat(all, k ? "," : "", sizeof(all)));
    PetscCall(PetscStrlcat(all, DeviceOn ? MatrixSets[s].device : MatrixSets[s].host, sizeof(all)));
  }
  PetscCall(FreeNames(n, set));
  PetscCall(GetNames("-matrices", quick ? MatrixQuickSet : all, MAX_MATRICES, nmatrices, matrices));
  PetscCall(GetNames("-also", NULL, MAX_MATRICES - *nmatrices, &n, matrices + *nmatrices));
  *nmatrices += n;
  PetscCall(MatrixListAll(MAX_MATRICES, nmatrices, matrices));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetSettings(MPI_Comm comm, PetscBool quick, Settings *s)
{
  PetscInt megabytes = 0;

  PetscFunctionBegin;
  s->reps   = quick ? 3 : 11;
  s->target = DeviceOn ? 0.02 : 0.004; /* short, because a repetition that the system interrupts is lost */
  if (quick) s->target /= 4.0;
  s->warm    = PETSC_TRUE;
  s->cold    = PETSC_TRUE;
  s->refresh = PETSC_TRUE;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-reps", &s->reps, NULL));
  PetscCheck(s->reps > 0, comm, PETSC_ERR_ARG_OUTOFRANGE, "-reps must be positive");
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-target", &s->target, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-warm", &s->warm, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-cold", &s->cold, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-refresh", &s->refresh, NULL));
  PetscCheck(s->warm || s->cold, comm, PETSC_ERR_USER, "Neither -warm nor -cold: nothing to measure");
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-evict", &megabytes, NULL));
  PetscCall(EvictCreate(megabytes, &s->evict));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PrintSettings(MPI_Comm comm, const Settings *s)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(PetscPrintf(
      comm, "%d rank%s, %s, %d bit indices, median of %" PetscInt_FMT ", %.0f MB between cold products", size,
      size > 1 ? "s" : "", PetscDefined(USE_COMPLEX) ? "complex" : "real", (int)(8 * sizeof(PetscInt)), s->reps,
      (DeviceOn ? (double)Device.flush : (double)s->evict.bytes) / 1048576.0));
  if (DeviceOn) PetscCall(PetscPrintf(comm, ", device copy %.0f GB/s", 1e-9 * Device.copy));
  PetscCall(PetscPrintf(comm, "\n"));
  if (PetscDefined(USE_DEBUG))
    PetscCall(PetscPrintf(comm, "this PETSc was built for debugging, not to be measured: its own types are slow\n"));
  PetscCall(PetscPrintf(comm,
                        "warm and cold in microseconds, convert, first and refresh in %s; error is in units of what "
                        "rounding may do\n",
                        DeviceOn ? "milliseconds" : "products of aij"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char        *matrices[MAX_MATRICES], file[PETSC_MAX_PATH_LEN];
  PetscInt     nmatrices;
  PetscBool    set, quick = PETSC_FALSE;
  PetscMPIInt  size, rank;
  Settings     s;
  Results      csv;
  static Bench b; /* zero */
  MPI_Comm     comm;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscSpMVInitializePackage());
  comm = PETSC_COMM_WORLD;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
#if defined(PETSCSPMV_HAVE_CUDA) /* otherwise our types are derived from AIJ */
  PetscCall(DeviceOpen());
#endif
  PetscCall(PetscOptionsHasName(NULL, NULL, "-where", &set));
  if (set) {
    if (DeviceOn)
      PetscCall(PetscPrintf(comm, "where: %s %s\n", Device.label, Device.name));
    else
      PetscCall(PetscPrintf(comm, "where: host\n"));
    goto done;
  }
  PetscCall(GetGraph(comm, &s.profile));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-quick", &quick, NULL));
  PetscCall(GetMatrices(quick, &nmatrices, matrices));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-transpose", &b.transpose, NULL));
  PetscCall(GetTypes(comm, &b));
  PetscCall(GetSettings(comm, quick, &s));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mkl", file, sizeof(file), &set));
  if (set && (size > 1 || DeviceOn || b.transpose))
    PetscCall(PetscPrintf(comm, "-mkl is left out: it runs on one rank of the host, and without -transpose\n"));
  else if (set) {
    PetscCall(MKLOpen(file));
    PetscCall(PetscStrallocpy("mkl", &b.types[b.ntypes++]));
  }
  PetscCall(PetscOptionsGetString(NULL, NULL, "-csv", file, sizeof(file), &set));
  if (!rank)
    PetscCheck((b.csv = ResultsOpen(&csv, set ? file : "/dev/null", 0)), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN,
               "-csv %s: cannot write %s", file, csv.part);
  PetscCall(ReportHeader(comm, b.csv));

  PetscCall(PrintSettings(comm, &s));
  if (DeviceOn) { /* so that the first products below do not load code or create a library's handle */
    Settings once = s;
    char    *small[MAX_MATRICES];
    PetscInt n;

    once.reps   = 1;
    once.target = 0.0;
    PetscCall(SplitNames("the warm-up", MatrixQuickSet, MAX_MATRICES, &n, small));
    for (PetscInt k = 0; k < n; k++) PetscCall(Run(comm, small[k], &once, PETSC_FALSE, &b));
    PetscCall(FreeNames(n, small));
  }
  for (PetscInt m = 0; m < nmatrices; m++) PetscCall(Run(comm, matrices[m], &s, PETSC_TRUE, &b));
  PetscCall(ReportMeans(comm, nmatrices, &b));

  if (!rank) PetscCheck(!ResultsClose(&csv), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "-csv %s: not written", file);
  PetscCall(EvictDestroy(&s.evict));
  PetscCall(FreeNames(nmatrices, matrices));
  PetscCall(FreeNames(b.ntypes, b.types));
  PetscCheck(!b.wrong, comm, PETSC_ERR_PLIB, "%" PetscInt_FMT " types gave wrong products, marked WRONG above",
             b.wrong);
done:
#if defined(PETSCSPMV_HAVE_CUDA)
  if (GraphOn) PetscCallCUDA(cudaStreamDestroy(Device.stream));
#endif
  PetscCall(DeviceClose());
  PetscCall(PetscFinalize());
  return 0;
}
