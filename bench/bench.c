static char help[] = "Times matrix-vector products by matrix type.\n\
  -matrices <list> : generators (stencil7:100, fem27:30:3, ...; a wrong name prints them all), rowlen:file, and files\n\
  -also <list>     : further matrices\n\
  -quick           : a set of small matrices and few repetitions, to see whether everything works\n\
  -types <aij,aijperm,sell,sellp,evchyb> : matrix types; aij, which the others are compared with, is always among them\n\
  -ours <sellp,evchyb> : those of which the better one is reported\n\
  -mkl <libmkl_rt.so.2> : adds MKL's CSR product (one rank)\n\
  -reps <11>       : repetitions, of which the median counts\n\
  -target <0.004>  : seconds that AIJ's products of one repetition take together\n\
  -warm <true>     : products one after the other, in cache if they fit\n\
  -cold <true>     : each product after the caches were filled with something else\n\
  -evict <MB>      : how much of something else, by default twice the last level, at least 64\n\
  -csv <file>      : results to read by program (bench/plot.py)\n\n";

/*
   All types run in one process on copies of one matrix, and take turns within each repetition: whatever slows the machine down for a
   while hits them alike. Each type's product is compared with AIJ's row by row, before and after timing and after the values changed,
   and the program fails if one is wrong. bench/run runs it over the default set and draws the result.

   Columns: time and rate of a product in cache ("warm") and out of cache ("cold") and their ratio to AIJ, larger is faster; "convert"
   is MatConvert() from AIJ with its copy, "first" what the first product takes beyond a later one, "refresh" what a product takes
   beyond another when all values changed before it, all of these in products of AIJ.
*/

#include <petscspmv.h>
#include <petscksp.h>
#include "matrices.h"
#include "mkl.h"
#include "timing.h"

/* ---------------------------------------------------------------- one way to multiply, with what was measured */

typedef struct {
  char      name[64], viewed[64], note[96];
  PetscBool ours;
  Mat       A; /* NULL: a baseline outside PETSc */
  MKLMatrix mkl;
  double    convert, first, refresh, warm, cold, warm_least, cold_least; /* seconds */
  double   *warm_t, *cold_t;
  double    error; /* over all checks, 1 is what rounding may do */
} Contender;

static PetscErrorCode Multiply(Contender *c, Vec x, Vec y)
{
  PetscFunctionBeginUser;
  if (c->A)
    PetscCall(MatMult(c->A, x, y));
  else
    PetscCall(MKLMatMult(c->mkl, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ContenderCreate(Mat A, const char *name, const char *ours[], PetscInt nours, Contender *c)
{
  PetscLogDouble t = 0.0;
  MatType        type;
  PetscBool      is;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(c, sizeof(*c)));
  PetscCall(PetscStrncpy(c->name, name, sizeof(c->name)));
  for (PetscInt k = 0; k < nours; k++) {
    PetscCall(PetscStrcmp(name, ours[k], &is));
    if (is) c->ours = PETSC_TRUE;
  }
  PetscCall(TimeBegin(PetscObjectComm((PetscObject)A), &t));
  PetscCall(PetscStrcmp(name, "mkl", &is));
  if (is) {
    PetscCall(MKLMatCreate(A, &c->mkl));
    PetscCall(PetscStrncpy(c->viewed, "mkl_sparse_mv", sizeof(c->viewed)));
  } else {
    PetscCall(PetscStrcmp(name, MATAIJ, &is));
    if (is) {
      PetscCall(PetscObjectReference((PetscObject)A));
      c->A = A;
    } else
      PetscCall(MatConvert(A, name, MAT_INITIAL_MATRIX, &c->A));
    PetscCall(MatGetType(c->A, &type));
    PetscCall(PetscStrncpy(c->viewed, type, sizeof(c->viewed)));
  }
  PetscCall(TimeEnd(PetscObjectComm((PetscObject)A), t, &c->convert));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ContenderDestroy(Contender *c)
{
  PetscFunctionBeginUser;
  PetscCall(MKLMatDestroy(&c->mkl));
  PetscCall(MatDestroy(&c->A));
  PetscCall(PetscFree(c->warm_t));
  PetscCall(PetscFree(c->cold_t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All values times factor, through the arrays where there are any: a format must not get away with scaling its own copy only */
static PetscErrorCode ChangeValues(Mat A, PetscScalar factor)
{
  MatType   type;
  PetscBool seq, mpi;

  PetscFunctionBeginUser;
  PetscCall(MatGetType(A, &type));
  PetscCall(PetscStrbeginswith(type, MATSEQAIJ, &seq));
  PetscCall(PetscStrbeginswith(type, MATMPIAIJ, &mpi));
  if (seq || mpi) {
    Mat      block[2] = {A, NULL};
    PetscInt blocks   = 1;

    if (mpi) {
      PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
      blocks = 2;
    }
    for (PetscInt b = 0; b < blocks; b++) {
      PetscScalar *a;
      MatInfo      info;

      PetscCall(MatGetInfo(block[b], MAT_LOCAL, &info));
      PetscCall(MatSeqAIJGetArray(block[b], &a));
      for (PetscCount k = 0; k < (PetscCount)info.nz_used; k++) a[k] *= factor;
      PetscCall(MatSeqAIJRestoreArray(block[b], &a));
    }
  } else
    PetscCall(MatScale(A, factor));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- is a product right? */

typedef struct {
  Vec x, y, ref, bound; /* bound: (row length + 2) epsilon |A| |x|, what two orders of summation may differ by */
} Oracle;

static PetscErrorCode OracleCreate(Mat A, Oracle *o)
{
  Mat         B, block[2];
  Vec         w, len;
  PetscRandom random;
  PetscScalar corner = 1.0;
  PetscBool   seq;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &o->x, &o->y));
  PetscCall(VecDuplicate(o->y, &o->ref));
  PetscCall(VecDuplicate(o->y, &o->bound));
  PetscCall(VecDuplicate(o->y, &len));
  PetscCall(PetscRandomCreate(PetscObjectComm((PetscObject)A), &random));
#if defined(PETSC_USE_COMPLEX)
  corner += PETSC_i;
#endif
  PetscCall(PetscRandomSetInterval(random, -corner, corner));
  PetscCall(VecSetRandom(o->x, random));
  PetscCall(VecDuplicate(o->x, &w));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQAIJ, &seq));
  block[0] = B;
  block[1] = NULL;
  if (!seq) PetscCall(MatMPIAIJGetSeqAIJ(B, &block[0], &block[1], NULL));
  for (int pass = 0; pass < 2; pass++) { /* |A| |x|, then row lengths */
    for (int b = 0; b < (seq ? 1 : 2); b++) {
      PetscScalar *a;
      MatInfo      info;

      PetscCall(MatGetInfo(block[b], MAT_LOCAL, &info));
      PetscCall(MatSeqAIJGetArray(block[b], &a));
      for (PetscCount k = 0; k < (PetscCount)info.nz_used; k++) a[k] = pass ? 1.0 : PetscAbsScalar(a[k]);
      PetscCall(MatSeqAIJRestoreArray(block[b], &a));
    }
    if (!pass) {
      PetscCall(VecCopy(o->x, w));
      PetscCall(VecAbs(w));
      PetscCall(MatMult(B, w, o->bound));
    } else {
      PetscCall(VecSet(w, 1.0));
      PetscCall(MatMult(B, w, len));
    }
  }
  PetscCall(VecShift(len, 2.0));
  PetscCall(VecPointwiseMult(o->bound, o->bound, len));
  PetscCall(VecScale(o->bound, (PetscDefined(USE_COMPLEX) ? 4.0 : 1.0) * PETSC_MACHINE_EPSILON));
  PetscCall(MatDestroy(&B));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDestroy(&len));
  PetscCall(PetscRandomDestroy(&random));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OracleDestroy(Oracle *o)
{
  PetscFunctionBeginUser;
  PetscCall(VecDestroy(&o->x));
  PetscCall(VecDestroy(&o->y));
  PetscCall(VecDestroy(&o->ref));
  PetscCall(VecDestroy(&o->bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y against factor times AIJ's product, in units of what is allowed; 1e99 for a NaN */
static PetscErrorCode OracleCheck(Oracle *o, double factor, double *error)
{
  const PetscScalar *y, *ref, *bound;
  PetscInt           m;
  double             mine = 0.0, all;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(o->y, &m));
  PetscCall(VecGetArrayRead(o->y, &y));
  PetscCall(VecGetArrayRead(o->ref, &ref));
  PetscCall(VecGetArrayRead(o->bound, &bound));
  for (PetscInt k = 0; k < m; k++) {
    const PetscReal diff = PetscAbsScalar(y[k] - (PetscReal)factor * ref[k]), allowed = (PetscReal)factor * PetscRealPart(bound[k]);

    if (diff > 0.0 || diff != diff) mine = PetscMax(mine, diff <= PETSC_MAX_REAL && allowed > 0.0 ? (double)(diff / allowed) : 1e99);
  }
  PetscCall(VecRestoreArrayRead(o->y, &y));
  PetscCall(VecRestoreArrayRead(o->ref, &ref));
  PetscCall(VecRestoreArrayRead(o->bound, &bound));
  PetscCallMPI(MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, PetscObjectComm((PetscObject)o->y)));
  *error = PetscMax(*error, all);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product into a vector of NaNs, timed and checked */
static PetscErrorCode CheckedProduct(Contender *c, Oracle *o, double factor, double *seconds)
{
  PetscLogDouble t    = 0.0;
  MPI_Comm       comm = PetscObjectComm((PetscObject)o->y);

  PetscFunctionBeginUser;
  PetscCall(VecSet(o->y, (PetscScalar)NAN));
  PetscCall(TimeBegin(comm, &t));
  PetscCall(Multiply(c, o->x, o->y));
  PetscCall(TimeEnd(comm, t, seconds));
  PetscCall(OracleCheck(o, factor, &c->error));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the measurement */

typedef struct {
  PetscInt  reps;
  PetscReal target;
  PetscBool warm, cold;
  Evict     evict;
} Settings;

/* What our types say of themselves, after a product */
static PetscErrorCode Describe(Contender *c)
{
  PetscSpMVInfo info;
  double        mine[3], all[3];

  PetscFunctionBeginUser;
  if (!c->ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSpMVGetInfo(c->A, &info));
  mine[0] = (double)info.nonzeros;
  mine[1] = (double)info.stored;
  mine[2] = (double)info.bytes;
  PetscCallMPI(MPI_Allreduce(mine, all, 3, MPI_DOUBLE, MPI_SUM, PetscObjectComm((PetscObject)c->A)));
  PetscCall(PetscSNPrintf(c->note, sizeof(c->note), "%s, padding %.1f%%, %.1f B/entry", info.kernel ? info.kernel : "-",
                          all[0] > 0.0 && all[1] > 0.0 ? 100.0 * (all[1] / all[0] - 1.0) : 0.0, all[0] > 0.0 ? all[2] / all[0] : 0.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(MPI_Comm comm, PetscInt n, Contender c[], Oracle *o, const Settings *s)
{
  PetscInt       its;
  PetscLogDouble t = 0.0;
  double         dt, first[64], again[3];

  PetscFunctionBeginUser;
  PetscCall(Multiply(&c[0], o->x, o->ref));
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(CheckedProduct(&c[k], o, 1.0, &first[k]));
    PetscCall(PetscMalloc1(s->reps, &c[k].warm_t));
    PetscCall(PetscMalloc1(s->reps, &c[k].cold_t));
  }
  PetscCall(CheckedProduct(&c[0], o, 1.0, &dt));
  its = (PetscInt)PetscMin(1000.0, PetscMax(1.0, s->target / PetscMax(dt, 1e-9)));

  for (PetscInt r = 0; r < s->reps; r++) {
    for (PetscInt k = 0; k < n; k++) {
      PetscCall(Multiply(&c[k], o->x, o->y)); /* brings back what the others drove out of the caches */
      PetscCall(TimeBegin(comm, &t));
      for (PetscInt i = 0; s->warm && i < its; i++) PetscCall(Multiply(&c[k], o->x, o->y));
      PetscCall(TimeEnd(comm, t, &dt));
      c[k].warm_t[r] = dt / (double)its;
    }
    for (PetscInt k = 0; s->cold && k < n; k++) {
      PetscCall(EvictCaches((Evict *)&s->evict));
      PetscCall(TimeBegin(comm, &t));
      PetscCall(Multiply(&c[k], o->x, o->y));
      PetscCall(TimeEnd(comm, t, &dt));
      c[k].cold_t[r] = dt;
    }
  }

  for (PetscInt k = 0; k < n; k++) {
    PetscCall(Median(s->warm ? s->reps : 0, c[k].warm_t, &c[k].warm));
    PetscCall(Median(s->cold ? s->reps : 0, c[k].cold_t, &c[k].cold));
    c[k].warm_least = s->warm ? c[k].warm_t[0] : 0.0;
    c[k].cold_least = s->cold ? c[k].cold_t[0] : 0.0;
    c[k].first      = PetscMax(0.0, first[k] - (s->warm ? c[k].warm : c[k].cold));
    PetscCall(CheckedProduct(&c[k], o, 1.0, &dt));
    PetscCall(Describe(&c[k]));
    if (c[k].A && k) { /* AIJ's arrays are MKL's as well */
      double steady = 0.0;

      for (int q = 0; q < 3; q++) { /* by powers of 2, which round nothing */
        PetscCall(ChangeValues(c[k].A, 2.0));
        PetscCall(CheckedProduct(&c[k], o, 2.0, &again[q]));
        PetscCall(CheckedProduct(&c[k], o, 2.0, &dt));
        steady += dt / 3.0;
        PetscCall(ChangeValues(c[k].A, 0.5));
        PetscCall(CheckedProduct(&c[k], o, 1.0, &dt));
      }
      PetscCall(Median(3, again, &c[k].refresh));
      c[k].refresh = PetscMax(0.0, c[k].refresh - steady);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the report */

typedef struct { /* logarithms of ratios over the matrices */
  char     name[64];
  PetscInt n;
  double   sum[2], least[2];
} Mean;

static void MeanAdd(Mean *m, double warm, double cold)
{
  const double ratio[2] = {warm, cold};

  for (int q = 0; q < 2; q++) {
    m->sum[q] += ratio[q] > 0.0 ? log(ratio[q]) : 0.0;
    m->least[q] = m->n ? PetscMin(m->least[q], ratio[q]) : ratio[q];
  }
  m->n++;
}

static double Ratio(double of, double to)
{
  return to > 0.0 ? of / to : 0.0;
}

static double GFlops(double nnz, double seconds)
{
  return seconds > 0.0 ? (PetscDefined(USE_COMPLEX) ? 8e-9 : 2e-9) * nnz / seconds : 0.0;
}

static PetscErrorCode Report(MPI_Comm comm, const char *name, const char *origin, Mat A, PetscInt n, const Contender c[], FILE *csv)
{
  MatInfo     info;
  PetscInt    M, N;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCall(PetscPrintf(comm, "\n%s (%s), %" PetscInt_FMT " x %" PetscInt_FMT ", %.0f entries, %.1f a row\n", name, origin, M, N, info.nz_used,
                        info.nz_used / (double)PetscMax(1, M)));
  PetscCall(PetscPrintf(comm, "  %-10s %-15s | %10s %7s %6s | %10s %7s %6s | %8s %8s %8s | %6s\n", "type", "viewed as", "warm [us]", "GF/s", "x aij",
                        "cold [us]", "GF/s", "x aij", "convert", "first", "refresh", "error"));
  for (PetscInt k = 0; k < n; k++) {
    const double aij = c[0].warm > 0.0 ? c[0].warm : c[0].cold;

    PetscCall(PetscPrintf(comm, "  %-10s %-15s | %10.1f %7.2f %6.2f | %10.1f %7.2f %6.2f | %8.1f %8.1f %8.1f | %6.3g%s%s%s\n", c[k].name, c[k].viewed,
                          1e6 * c[k].warm, GFlops(info.nz_used, c[k].warm), Ratio(c[0].warm, c[k].warm), 1e6 * c[k].cold, GFlops(info.nz_used, c[k].cold),
                          Ratio(c[0].cold, c[k].cold), Ratio(c[k].convert, aij), Ratio(c[k].first, aij), Ratio(c[k].refresh, aij), c[k].error,
                          c[k].error <= 1.0 ? "" : "  WRONG", c[k].note[0] ? "  " : "", c[k].note));
    PetscCall(PetscFPrintf(comm, csv, "%s,%s,%" PetscInt_FMT ",%" PetscInt_FMT ",%.0f,%d,%s,%s,%d,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.3g,\"%s\"\n",
                           name, origin, M, N, info.nz_used, size, c[k].name, c[k].viewed, (int)c[k].ours, c[k].warm, c[k].warm_least,
                           Ratio(c[0].warm, c[k].warm), c[k].cold, c[k].cold_least, Ratio(c[0].cold, c[k].cold), c[k].convert, c[k].first, c[k].refresh,
                           c[k].error, c[k].note));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A list option, or a default */
static PetscErrorCode GetList(const char *option, PetscInt ndefault, const char *const defaults[], PetscInt *n, char *list[])
{
  PetscBool set;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, option, list, n, &set));
  if (!set) {
    *n = ndefault;
    for (PetscInt k = 0; k < ndefault; k++) PetscCall(PetscStrallocpy(defaults[k], &list[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const deftypes[] = {"aij", "aijperm", "sell", "sellp", "evchyb"};
  static const char *const defours[]  = {"sellp", "evchyb"};
  char                    *matrices[64], *types[32], *ours[32], file[PETSC_MAX_PATH_LEN];
  PetscInt                 nmatrices = 64, ntypes = 30, nours = 32, megabytes = 0, wrong = 0, n;
  PetscBool                set, quick = PETSC_FALSE;
  PetscMPIInt              size;
  Settings                 s;
  Contender                c[32];
  Mean                     mean[34]; /* one a type, then the better of ours against aij, and against the best of the others */
  FILE                    *csv = NULL;
  MPI_Comm                 comm;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscSpMVInitializePackage());
  comm = PETSC_COMM_WORLD;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-quick", &quick, NULL));
  if (quick)
    PetscCall(GetList("-matrices", PETSC_STATIC_ARRAY_LENGTH(MatrixQuickSet), MatrixQuickSet, &nmatrices, matrices));
  else
    PetscCall(GetList("-matrices", PETSC_STATIC_ARRAY_LENGTH(MatrixSet), MatrixSet, &nmatrices, matrices));
  n = PETSC_STATIC_ARRAY_LENGTH(matrices) - nmatrices;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-also", matrices + nmatrices, &n, &set));
  if (set) nmatrices += n;
  PetscCall(GetList("-types", PETSC_STATIC_ARRAY_LENGTH(deftypes), deftypes, &ntypes, types));
  PetscCall(GetList("-ours", PETSC_STATIC_ARRAY_LENGTH(defours), defours, &nours, ours));
  s.reps   = quick ? 3 : 11;
  s.target = quick ? 0.001 : 0.004; /* short: a repetition that the system interrupts is lost */
  s.warm   = PETSC_TRUE;
  s.cold   = PETSC_TRUE;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-reps", &s.reps, NULL));
  PetscCheck(s.reps > 0, comm, PETSC_ERR_ARG_OUTOFRANGE, "-reps must be positive");
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-target", &s.target, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-warm", &s.warm, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-cold", &s.cold, NULL));
  PetscCheck(s.warm || s.cold, comm, PETSC_ERR_USER, "Neither -warm nor -cold: nothing to measure");
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-evict", &megabytes, NULL));
  PetscCall(EvictCreate(megabytes, &s.evict));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mkl", file, sizeof(file), &set));
  if (set && size > 1)
    PetscCall(PetscPrintf(comm, "-mkl is left out: it runs on one rank\n"));
  else if (set) {
    PetscCall(MKLOpen(file));
    PetscCall(PetscStrallocpy("mkl", &types[ntypes++]));
  }
  PetscCall(PetscOptionsGetString(NULL, NULL, "-csv", file, sizeof(file), &set));
  if (set)
    PetscCall(PetscFOpen(comm, file, "w", &csv));
  else
    PetscCall(PetscFOpen(comm, "/dev/null", "w", &csv));
  PetscCall(PetscFPrintf(comm, csv,
                         "matrix,origin,rows,columns,entries,ranks,type,viewed,ours,warm_s,warm_least_s,warm_ratio,cold_s,cold_least_s,cold_ratio,convert_s,"
                         "first_s,refresh_s,error,note\n"));

  PetscCall(PetscPrintf(comm, "%d rank%s, %s, %d bit indices, median of %" PetscInt_FMT ", %.0f MB between cold products\n", size, size > 1 ? "s" : "",
                        PetscDefined(USE_COMPLEX) ? "complex" : "real", (int)(8 * sizeof(PetscInt)), s.reps, s.evict.bytes / 1048576.0));
  if (PetscDefined(USE_DEBUG)) PetscCall(PetscPrintf(comm, "this PETSc was built for debugging, not to be measured: its own types are slow\n"));
  PetscCall(PetscPrintf(comm, "convert, first and refresh are in products of aij; error is in units of what rounding may do\n"));
  PetscCall(PetscMemzero(mean, sizeof(mean)));
  n = 0;
  for (PetscInt m = 0; m < nmatrices; m++) {
    Mat         A;
    Oracle      o;
    const char *origin;
    double      best[2][2] = {{0, 0}, {0, 0}}; /* ours or not, warm and cold */

    PetscCall(MatrixCreate(comm, matrices[m], &A, &origin));
    PetscCall(OracleCreate(A, &o));
    n = 0;
    PetscCall(ContenderCreate(A, MATAIJ, (const char **)ours, nours, &c[n++]));
    for (PetscInt k = 0; k < ntypes; k++) {
      PetscCall(PetscStrcmp(types[k], MATAIJ, &set));
      if (!set) PetscCall(ContenderCreate(A, types[k], (const char **)ours, nours, &c[n++]));
    }
    PetscCall(Measure(comm, n, c, &o, &s));
    {
      char *name;

      PetscCall(PetscStrrchr(matrices[m], '/', &name)); /* what follows the last slash, or all of it */
      PetscCall(Report(comm, name, origin, A, n, c, csv));
    }
    for (PetscInt k = 0; k < n; k++) {
      const double ratio[2] = {Ratio(c[0].warm, c[k].warm), Ratio(c[0].cold, c[k].cold)};

      PetscCall(PetscStrncpy(mean[k].name, c[k].name, sizeof(mean[k].name)));
      MeanAdd(&mean[k], ratio[0], ratio[1]);
      for (int q = 0; q < 2; q++) best[c[k].ours][q] = PetscMax(best[c[k].ours][q], ratio[q]);
      if (!(c[k].error <= 1.0)) wrong++;
    }
    if (best[1][0] > 0.0 || best[1][1] > 0.0) {
      MeanAdd(&mean[32], best[1][0], best[1][1]);
      MeanAdd(&mean[33], Ratio(best[1][0], best[0][0]), Ratio(best[1][1], best[0][1]));
    }
    for (PetscInt k = n - 1; k >= 0; k--) PetscCall(ContenderDestroy(&c[k])); /* MKL's before the arrays it uses */
    PetscCall(OracleDestroy(&o));
    PetscCall(MatDestroy(&A));
  }

  PetscCall(PetscPrintf(comm, "\nspeed relative to aij over %" PetscInt_FMT " matrices\n  %-38s | %8s %8s | %8s %8s\n", nmatrices, "", "warm", "least", "cold",
                        "least"));
  PetscCall(PetscStrncpy(mean[32].name, "the better of ours", sizeof(mean[32].name)));
  PetscCall(PetscStrncpy(mean[33].name, "the same, against the best other type", sizeof(mean[33].name)));
  for (PetscInt k = 0; k < 34; k++) {
    if (mean[k].n && k != 0)
      PetscCall(PetscPrintf(comm, "  %-38s | %8.2f %8.2f | %8.2f %8.2f\n", mean[k].name, s.warm ? exp(mean[k].sum[0] / (double)mean[k].n) : 0.0,
                            mean[k].least[0], s.cold ? exp(mean[k].sum[1] / (double)mean[k].n) : 0.0, mean[k].least[1]));
  }
  PetscCall(PetscFClose(comm, csv));
  PetscCall(EvictDestroy(&s.evict));
  for (PetscInt k = 0; k < nmatrices; k++) PetscCall(PetscFree(matrices[k]));
  for (PetscInt k = 0; k < ntypes; k++) PetscCall(PetscFree(types[k]));
  for (PetscInt k = 0; k < nours; k++) PetscCall(PetscFree(ours[k]));
  PetscCheck(!wrong, comm, PETSC_ERR_PLIB, "%" PetscInt_FMT " types gave wrong products, marked WRONG above", wrong);
  PetscCall(PetscFinalize());
  return 0;
}
