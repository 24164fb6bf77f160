static char help[] = "Times other projects' products next to ours and PETSc's, on a GPU.\n\
  -peer <libraries>  : shared libraries with other projects' products (peer.h), optional; bench/products/peers builds the one for cuSPARSE\n\
  -matrices <list>   : generators and files, as of bench; by default its ten large matrices\n\
  -types <aij,sellp,evchyb> : matrix types that take turns with them; aij is aijcusparse on a GPU\n\
  -reps <7>          : repetitions, of which the median counts\n\
  -target <0.003>    : seconds that the products of one repetition take together\n\
  -csv <file>        : results to read by program\n\n";

/*
   All products with a matrix take turns in one process. Times are warm and measured by the host's clock, for a batch
   that ends with a synchronization. Each product is compared row by row with AIJ's on the host. It is wrong if the
   error is above 1; wrong products are marked. Each row of results is written immediately, and the matrix is announced
   before, so that the script can continue after a crash.
*/

#include <petscspmv.h>
#include <dlfcn.h>
#include "contenders.h"
#include "matrices.h"
#include "oracle.h"
#include "peer.h"

typedef struct {
  const char *peer, *variant;
  Mat         A;       /* NULL: a product of another project */
  const Peer *library; /* of the other project */
  void       *product;
  PetscInt    its; /* products of one repetition */
  double     *t, error;
} Contender;

/* Runs `its` products and measures their time */
static PetscErrorCode Batch(Contender *c, const Oracle *o, PetscInt its, double *seconds)
{
  const PetscScalar *x = NULL;
  PetscScalar       *y = NULL;
  PetscMemType       unused;
  PetscLogDouble     t = 0.0;

  PetscFunctionBeginUser;
  if (!c->A) {
    PetscCall(VecGetArrayReadAndMemType(o->x, &x, &unused));
    PetscCall(VecGetArrayWriteAndMemType(o->y, &y, &unused));
  }
  PetscCall(TimeBegin(PETSC_COMM_SELF, &t));
  for (PetscInt k = 0; k < its; k++) {
    if (c->A)
      PetscCall(MatMult(c->A, o->x, o->y));
    else
      PetscCheck(!c->library->mult(c->product, (const double *)x, (double *)y), PETSC_COMM_SELF, PETSC_ERR_LIB,
                 "%s %s: the product failed", c->peer, c->variant);
  }
  PetscCall(TimeEnd(PETSC_COMM_SELF, t, seconds));
  if (!c->A) {
    PetscCall(VecRestoreArrayWriteAndMemType(o->y, &y));
    PetscCall(VecRestoreArrayReadAndMemType(o->x, &x));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sorts y if the product has its own order */
static PetscErrorCode Unpermute(const Contender *c, Vec yy)
{
  const int   *order = c->library && c->library->order ? c->library->order(c->product) : NULL;
  PetscScalar *y, *copy;
  PetscInt     m;

  PetscFunctionBeginUser;
  if (!order) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetSize(yy, &m));
  PetscCall(PetscMalloc1(m, &copy));
  PetscCall(VecGetArray(yy, &y));
  PetscCall(PetscArraycpy(copy, y, m));
  for (PetscInt k = 0; k < m; k++) y[order[k]] = copy[k];
  PetscCall(VecRestoreArray(yy, &y));
  PetscCall(PetscFree(copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckedProduct(Contender *c, Oracle *o)
{
  double unused;

  PetscFunctionBeginUser;
  PetscCall(VecSet(o->y, c->A ? (PetscScalar)NAN : 0.0));
  PetscCall(Batch(c, o, 1, &unused));
  PetscCall(Unpermute(c, o->y));
  PetscCall(OracleCheck(o, 1.0, &c->error));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(PetscInt n, Contender c[], Oracle *o, PetscInt reps, PetscReal target)
{
  double dt;

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(PetscMalloc1(reps, &c[k].t));
    PetscCall(CheckedProduct(&c[k], o));
    PetscCall(Batch(&c[k], o, 5, &dt));
    PetscCall(Batch(&c[k], o, 5, &dt));
    c[k].its = (PetscInt)PetscMin(10000.0, PetscMax(2.0, ceil((double)target / (dt / 5.0))));
  }
  for (PetscInt r = -1; r < reps; r++) { /* the first turn does not count */
    for (PetscInt k = 0; k < n; k++) {
      PetscCall(Batch(&c[k], o, c[k].its, &dt));
      if (r >= 0) c[k].t[r] = dt / (double)c[k].its;
    }
  }
  for (PetscInt k = 0; k < n; k++) PetscCall(CheckedProduct(&c[k], o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds the products of a library for a sequential AIJ matrix */
static PetscErrorCode AddPeer(const Peer *library, Mat A, PetscInt *n, Contender c[])
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m, N;
  PetscBool          done;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &m, &N));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  for (int v = 0; v < 8 && library->variants[v] && *n < MAXIMUM; v++) {
    char message[256] = "";

    c[*n]         = (Contender){library->name, library->variants[v], NULL, library, NULL, 0, NULL, 0.0};
    c[*n].product = library->create(v, (int)m, (int)N, (const int *)i, (const int *)j, (const double *)a, message);
    if (c[*n].product)
      (*n)++;
    else
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %-16s %-12s none: %s\n", library->name, library->variants[v], message));
  }
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds one of PETSc's types or ours; aij is aijcusparse on a GPU */
static PetscErrorCode AddType(const char *type, Mat A, Contender *c)
{
  const char *format;

  PetscFunctionBeginUser;
  *c = (Contender){"petsc", !strcmp(type, MATAIJ) && DeviceOn ? MATAIJCUSPARSE : type, NULL, NULL, NULL, 0, NULL, 0.0};
  PetscCall(MatConvert(A, c->variant, MAT_INITIAL_MATRIX, &c->A));
  PetscCall(PetscSpMVGetFormat(c->A, &format));
  if (!format) PetscFunctionReturn(PETSC_SUCCESS);
  c->peer = "petscspmv";
  PetscCall(PetscOptionsSetValue(NULL, "-mat_spmv_setup_after", "0")); /* set up by the first product */
  PetscCall(MatSetFromOptions(c->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunMatrix(const char *name, PetscInt npeers, const Peer *peer[], PetscInt ntypes, char *types[],
                                PetscInt reps, PetscReal target, FILE *csv)
{
  Mat         A;
  Oracle      o;
  MatInfo     info;
  const char *origin;
  PetscInt    m, n = 0;
  Contender   c[MAXIMUM];

  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "matrix %s\n", name));
  (void)fflush(stdout);
  PetscCall(MatrixCreate(PETSC_COMM_SELF, name, &A, &origin));
  PetscCall(MatGetSize(A, &m, NULL));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(OracleCreate(A, &o));
  for (PetscInt k = 0; k < ntypes && n < MAXIMUM; k++) PetscCall(AddType(types[k], A, &c[n++]));
  for (PetscInt k = 0; k < npeers; k++) PetscCall(AddPeer(peer[k], A, &n, c));
  PetscCall(Measure(n, c, &o, reps, target));
  for (PetscInt k = 0; k < n; k++) {
    double us;

    PetscCall(Median(reps, c[k].t, &us));
    us *= 1e6;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %-16s %-12s %9.2f us, error %.2g%s\n", c[k].peer, c[k].variant, us,
                          c[k].error, c[k].error <= 1.0 ? "" : ": WRONG"));
    if (csv)
      fprintf(csv, "%s,%" PetscInt_FMT ",%.0f,%s,%s,%.6g,%.3g,%s,%s\n", name, m, (double)info.nz_used, c[k].peer,
              c[k].variant, us, c[k].error, DeviceOn ? Device.name : "host",
              ResultsSource(DeviceOn ? Device.name : NULL));
    PetscCall(PetscFree(c[k].t));
    PetscCall(MatDestroy(&c[k].A));
    if (c[k].product) c[k].library->destroy(c[k].product);
  }
  if (csv) fflush(csv);
  PetscCall(OracleDestroy(&o));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The libraries stay open, because their code on the GPU may be needed until the end */
static PetscErrorCode OpenPeers(PetscInt n, char *names[], const Peer *peer[])
{
  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < n; k++) {
    const Peer *(*get)(void) = NULL;
    void *so                 = dlopen(names[k], RTLD_NOW | RTLD_LOCAL);

    PetscCheck(so, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s", dlerror());
    *(void **)&get = dlsym(so, PEER_GET);
    PetscCheck(get, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s", dlerror());
    peer[k] = get();
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Run(void)
{
  char       *matrices[MAXIMUM], *types[MAXIMUM], *names[MAXIMUM];
  const Peer *peer[MAXIMUM];
  PetscInt    nmatrices, ntypes, npeers, reps = 7;
  PetscReal   target = 0.003;
  Results     results;
  FILE       *csv;

  PetscFunctionBeginUser;
  PetscCheck(sizeof(PetscInt) == sizeof(int) && sizeof(PetscScalar) == sizeof(double), PETSC_COMM_SELF, PETSC_ERR_SUP,
             "Real numbers in double precision and 32-bit indices only");
  PetscCall(GetNames("-matrices",
                     "stencil7:200,bratu:200,fem27:68:3,fem27:68:3:0.6,webbase,google,random:20000,tsopf,rowlen:tests/"
                     "matrices/dc1.rowlen,stencil7:32",
                     MAXIMUM, &nmatrices, matrices));
  PetscCall(GetNames("-types", "aij,sellp,evchyb", MAXIMUM, &ntypes, types));
  PetscCall(GetNames("-peer", NULL, MAXIMUM, &npeers, names));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-reps", &reps, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-target", &target, NULL));
  PetscCheck(reps > 0 && nmatrices > 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
             "-reps and the number of -matrices must be positive");
  PetscCall(DeviceOpen());
  PetscCall(OpenPeers(npeers, names, peer));
  PetscCall(OpenCSV("matrix,rows,nonzeros,peer,variant,us,error,device," RESULTS_SOURCE, &results, &csv));
  for (PetscInt k = 0; k < nmatrices; k++)
    PetscCall(RunMatrix(matrices[k], npeers, peer, ntypes, types, reps, target, csv));
  PetscCall(CloseCSV(csv, &results));
  PetscCall(DeviceClose());
  PetscCall(FreeNames(nmatrices, matrices));
  PetscCall(FreeNames(ntypes, types));
  PetscCall(FreeNames(npeers, names));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscSpMVInitializePackage());
  PetscCall(Run());
  PetscCall(PetscFinalize());
  return 0;
}
