/*
   The matrices of the benchmarks: from files, from generators (patterns.h), of meshes (meshes.py), and the levels of
   GAMG's hierarchies of all of these. Results mark the generated ones.
*/
#pragma once

#include <petscksp.h>
#include <glob.h>
#include <pthread.h>
#include <unistd.h>
#include "../../examples/mmload.h"
#include "patterns.h"

/* Rows of a generated matrix in CSR form, allocated by malloc(), because several threads write them and PETSc's
   allocation is for one thread. i is NULL if the number of entries does not fit in a PetscInt */
typedef struct {
  PetscInt     m, *i, *j;
  PetscScalar *a;
} Rows;

#define ROWS_AT_ONCE 4096 /* of a thread */

typedef struct {
  const Spec *spec;
  PetscInt    first, next;
  Rows       *rows;
} RowsJob;

/* Generates rows: only their lengths, or their entries where there is room for them */
static void *RowsWork(void *ctx)
{
  RowsJob *job = (RowsJob *)ctx;
  Rows    *R   = job->rows;
  Row      r   = {0, 0, 0, NULL};

  for (PetscInt k; (k = __atomic_fetch_add(&job->next, ROWS_AT_ONCE, __ATOMIC_RELAXED)) < R->m;) {
    for (const PetscInt end = PetscMin(R->m, k + ROWS_AT_ONCE); k < end; k++) {
      RowGenerate(job->spec, job->first + k, &r);
      if (!R->j) R->i[k + 1] = r.n;
      for (PetscInt e = 0; R->j && e < r.n; e++) {
        const PetscInt at = R->i[k] + e;

        R->j[at] = r.col[e];
        R->a[at] = RowValue(job->spec, job->first + k, e, &r);
#if defined(PETSC_USE_COMPLEX)
        if (!job->spec->generator->value) R->a[at] += PETSC_i * (RandomReal(&r.random) - 0.5);
#endif
      }
    }
  }
  RowFree(&r);
  return NULL;
}

static void RowsRun(const Spec *s, PetscInt first, int threads, Rows *R)
{
  RowsJob   job = {s, first, 0, R};
  pthread_t id[64];
  int       started = 0;

  while (started < PetscMin(threads, 64) - 1 && !pthread_create(&id[started], NULL, RowsWork, &job)) started++;
  (void)RowsWork(&job);
  for (int k = 0; k < started; k++) (void)pthread_join(id[k], NULL);
}

/* Generates m rows from `first` on, each twice: the lengths come first. The result is the same for any number of
   threads */
static void RowsCreate(const Spec *s, PetscInt first, PetscInt m, int threads, Rows *R)
{
  uint64_t nz = 0;

  memset(R, 0, sizeof(*R));
  R->m    = m;
  R->i    = (PetscInt *)PatternRealloc(NULL, ((size_t)m + 1) * sizeof(*R->i));
  R->i[0] = 0;
  RowsRun(s, first, threads, R);
  for (PetscInt k = 0; k < m; k++) {
    nz += (uint64_t)R->i[k + 1];
    R->i[k + 1] = (PetscInt)nz;
  }
  if (nz > (uint64_t)PETSC_MAX_INT) {
    free(R->i);
    R->i = NULL;
    return;
  }
  R->j = (PetscInt *)PatternRealloc(NULL, ((size_t)nz + 1) * sizeof(*R->j));
  R->a = (PetscScalar *)PatternRealloc(NULL, ((size_t)nz + 1) * sizeof(*R->a));
  RowsRun(s, first, threads, R);
}

static void RowsFree(Rows *R)
{
  free(R->i);
  free(R->j);
  free(R->a);
  memset(R, 0, sizeof(*R));
}

static inline PetscErrorCode MatrixGenerate(MPI_Comm comm, const Spec *s, Mat *A)
{
  MPI_Comm    machine;
  PetscMPIInt ranks;
  PetscInt    m = PETSC_DECIDE, N = s->rows, first;
  Rows        R;

  PetscFunctionBeginUser;
  PetscCall(PetscSplitOwnership(comm, &m, &N));
  PetscCallMPI(MPI_Scan(&m, &first, 1, MPIU_INT, MPI_SUM, comm));
  /* the ranks of a machine share its cores */
  PetscCallMPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine));
  PetscCallMPI(MPI_Comm_size(machine, &ranks));
  PetscCallMPI(MPI_Comm_free(&machine));
  RowsCreate(s, first - m, m, (int)PetscMax(1, sysconf(_SC_NPROCESSORS_ONLN) / ranks), &R);
  PetscCheck(R.i, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "More entries than a PetscInt counts");
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, m, m, N, N));
  PetscCall(MatSetType(*A, MATAIJ));
  /* of the two preallocations, the one for the other type has no effect */
  PetscCall(MatSeqAIJSetPreallocationCSR(*A, R.i, R.j, R.a));
  PetscCall(MatMPIAIJSetPreallocationCSR(*A, R.i, R.j, R.a));
  RowsFree(&R);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The file of the matrix of which twin:name is the twin, if it is in the folder MATRICES */
static inline PetscErrorCode MatrixTwinFile(const char *name, char file[], size_t size, PetscBool *match)
{
  const char *folder = getenv("MATRICES");

  PetscFunctionBeginUser;
  PetscCall(PetscStrncmp(name, "twin:", 5, match));
  *match = (PetscBool)(*match && folder && *folder);
  if (!*match) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(file, size, "%s/%s.mtx", folder, name + 5));
  PetscCall(PetscTestFile(file, 'r', match));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The file of mesh:name, in the folder MESHES, which bench/lib/meshes.py filled */
static inline PetscErrorCode MatrixMeshFile(const char *name, char file[], size_t size)
{
  const char *folder = getenv("MESHES");

  PetscFunctionBeginUser;
  PetscCheck(!PetscDefined(USE_COMPLEX) && !PetscDefined(USE_64BIT_INDICES), PETSC_COMM_SELF, PETSC_ERR_SUP,
             "%s: the files of meshes are for real numbers and 32-bit indices", name);
  PetscCall(PetscSNPrintf(file, size, "%s/%s.petsc", folder && *folder ? folder : "build/meshes", name + 5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Replaces twin:all by all twins, and mesh:all by the matrices of all meshes that there are, in a list of at most max
   names */
static inline PetscErrorCode MatrixListAll(PetscInt max, PetscInt *length, char *list[])
{
  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < *length; k++) {
    const PetscBool twins = (PetscBool)!strcmp(list[k], "twin:all");
    char            file[PETSC_MAX_PATH_LEN];
    glob_t          found = {0};
    PetscInt        n     = TWINS;

    if (!twins && strcmp(list[k], "mesh:all")) continue;
    if (!twins) {
      PetscCall(MatrixMeshFile("mesh:*", file, sizeof(file)));
      PetscCheck(!glob(file, 0, NULL, &found), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN,
                 "There is no %s; bench/lib/meshes.py makes these files", file);
      n = (PetscInt)found.gl_pathc;
    }
    PetscCheck(*length - 1 + n <= max, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
               "More than %" PetscInt_FMT " matrices", max);
    PetscCall(PetscFree(list[k]));
    memmove(list + k + n, list + k + 1, (size_t)(*length - k - 1) * sizeof(*list));
    for (PetscInt t = 0; t < n; t++) {
      const char *base = twins ? Twins[t].name : strrchr(found.gl_pathv[t], '/') + 1;
      const int   most = (int)strlen(base) - (twins ? 0 : 6); /* without .petsc */

      PetscCall(PetscSNPrintf(file, sizeof(file), "%s:%.*s", twins ? "twin" : "mesh", most, base));
      PetscCall(PetscStrallocpy(file, &list[k + t]));
    }
    *length += n - 1;
    k += n - 1;
    globfree(&found);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A number between 0.5 and 1.5 that depends on two unknowns, in any order */
static inline PetscReal Coupling(PetscInt i, PetscInt j)
{
  uint64_t random = (uint64_t)PetscMin(i, j) << 32 ^ (uint64_t)PetscMax(i, j);

  return (PetscReal)(0.5 + RandomReal(&random));
}

/*
   Keeps the pattern, which is to be symmetric, and makes the values those of a positive definite matrix, negative off the
   diagonal. Random ones: the diagonal is a little larger than the sum of the others' magnitudes. Otherwise a Laplacian:
   -1 between the same unknowns of two nodes, -0.1 between different ones, and the diagonal is the largest row sum, so
   that rows at the boundary have Dirichlet values
*/
static inline PetscErrorCode MakeDefinite(const char *name, PetscBool random, Mat *A)
{
  Mat             B;
  Spec            s;
  char            message[256];
  PetscInt        first, end, n, bs;
  PetscReal       most = 0.0;
  const PetscInt *cols;
  PetscScalar    *value;

  PetscFunctionBeginUser;
  PetscCall(MatDuplicate(*A, MAT_DO_NOT_COPY_VALUES, &B));
  if (SpecRead(name, &s, message, sizeof(message)) == SPEC_FOUND) {
    if (!strcmp(s.generator->name, "fem27")) PetscCall(MatSetBlockSize(B, (PetscInt)s.arg[1]));
    SpecFree(&s);
  }
  PetscCall(MatGetBlockSize(B, &bs));
  PetscCall(MatGetOwnershipRange(B, &first, &end));
  PetscCall(MatGetSize(B, NULL, &n));
  PetscCall(PetscMalloc1(n, &value));
  for (int pass = 0; pass < 2; pass++) {
    for (PetscInt i = first; i < end; i++) {
      PetscReal sum = 0.0;

      PetscCall(MatGetRow(*A, i, &n, &cols, NULL));
      for (PetscInt k = 0; k < n; k++) {
        value[k] = random ? -Coupling(i, cols[k]) : ((cols[k] - i) % bs ? -0.1 : -1.0);
        if (cols[k] != i) sum -= PetscRealPart(value[k]);
      }
      for (PetscInt k = 0; k < n; k++) {
        if (cols[k] == i) value[k] = random ? (PetscReal)1.001 * sum : most;
      }
      if (pass) PetscCall(MatSetValues(B, 1, &i, n, cols, value, INSERT_VALUES));
      PetscCall(MatRestoreRow(*A, i, &n, &cols, NULL));
      most = PetscMax(most, sum);
    }
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPIU_REAL, MPIU_MAX, PETSC_COMM_WORLD));
  }
  PetscCall(PetscFree(value));
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatDestroy(A));
  *A = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode MatrixCreate(MPI_Comm comm, const char *name, Mat *A, const char **origin);

static KSP  MatrixHierarchy; /* the last one, because benchmarks ask for one level after the other */
static char MatrixHierarchyName[256];

static inline PetscErrorCode MatrixHierarchyDestroy(void)
{
  PetscFunctionBeginUser;
  PetscCall(KSPDestroy(&MatrixHierarchy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operator of coarse grid k of the hierarchy that GAMG makes of a matrix, or the interpolation from it. Generated
   values are replaced: they are random */
static inline PetscErrorCode MatrixCreateLevel(MPI_Comm comm, const char *name, PetscInt k, PetscBool interpolation,
                                               Mat *A)
{
  Mat         fine, level;
  PC          pc;
  KSP         smoother;
  const char *origin;
  PetscInt    levels;

  PetscFunctionBeginUser;
  if (strcmp(name, MatrixHierarchyName)) {
    PetscCall(MatrixCreate(comm, name, &fine, &origin));
    if (!strcmp(origin, "generated") && strncmp(name, "bratu", 5)) PetscCall(MakeDefinite(name, PETSC_FALSE, &fine));
    if (MatrixHierarchy)
      PetscCall(MatrixHierarchyDestroy());
    else
      PetscCall(PetscRegisterFinalize(MatrixHierarchyDestroy));
    PetscCall(KSPCreate(comm, &MatrixHierarchy));
    PetscCall(KSPSetOptionsPrefix(MatrixHierarchy, "hierarchy_"));
    PetscCall(KSPSetOperators(MatrixHierarchy, fine, fine));
    PetscCall(MatDestroy(&fine));
    PetscCall(KSPGetPC(MatrixHierarchy, &pc));
    PetscCall(PCSetType(pc, PCGAMG));
    PetscCall(KSPSetFromOptions(MatrixHierarchy));
    PetscCall(KSPSetUp(MatrixHierarchy));
    PetscCall(PetscStrncpy(MatrixHierarchyName, name, sizeof(MatrixHierarchyName)));
  }
  PetscCall(KSPGetPC(MatrixHierarchy, &pc));
  PetscCall(PCMGGetLevels(pc, &levels));
  PetscCheck(k > 0 && k < levels, comm, PETSC_ERR_ARG_OUTOFRANGE,
             "%s has no coarse grid %" PetscInt_FMT ", only %" PetscInt_FMT, name, k, levels - 1);
  if (interpolation)
    PetscCall(PCMGGetInterpolation(pc, levels - k, &level));
  else {
    PetscCall(PCMGGetSmoother(pc, levels - 1 - k, &smoother));
    PetscCall(KSPGetOperators(smoother, &level, NULL));
  }
  PetscCall(MatDuplicate(level, MAT_COPY_VALUES, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Creates a matrix from a generator's name with its numbers, from rowlen:file, twin:name, mesh:name, coarse:k:name or
   interpolation:k:name, where k is a grid of GAMG's hierarchy, or a file. origin describes which */
static inline PetscErrorCode MatrixCreate(MPI_Comm comm, const char *name, Mat *A, const char **origin)
{
  Spec       s;
  char       message[PETSC_MAX_PATH_LEN], file[PETSC_MAX_PATH_LEN];
  PetscBool  match;
  int        grid, end[2] = {0, 0};
  SpecResult result;

  PetscFunctionBeginUser;
  (void)sscanf(name, "coarse:%d:%n", &grid, &end[0]);
  if (!end[0]) (void)sscanf(name, "interpolation:%d:%n", &grid, &end[1]);
  if (end[0] || end[1]) {
    *origin = "GAMG";
    PetscCall(MatrixCreateLevel(comm, name + end[0] + end[1], grid, (PetscBool)!end[0], A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscStrbeginswith(name, "mesh:", &match));
  if (match) {
    *origin = "mesh";
    PetscCall(MatrixMeshFile(name, file, sizeof(file)));
    PetscCall(PetscTestFile(file, 'r', &match));
    PetscCheck(match, comm, PETSC_ERR_FILE_OPEN, "%s: there is no %s; bench/lib/meshes.py makes these files", name,
               file);
    PetscCall(MatCreate(comm, A));
    PetscCall(MatSetType(*A, MATAIJ));
    if (strstr(name, ":elastic-")) PetscCall(MatSetBlockSize(*A, strstr(name, "-tri") ? 2 : 3));
    PetscCall(MatLoadFile(comm, file, *A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatrixTwinFile(name, file, sizeof(file), &match));
  if (match) name = file;
  result = SpecRead(name, &s, message, sizeof(message));
  PetscCheck(result != SPEC_WRONG, comm, PETSC_ERR_ARG_WRONG, "%s", message);
  if (result == SPEC_FOUND) {
    *origin = s.generator == &GeneratorTwin ? "twin"
                                            : (s.generator == &GeneratorRowLengths ? "columns generated" : "generated");
    PetscCall(MatrixGenerate(comm, &s, A));
    SpecFree(&s);
  } else {
    PetscCall(PetscTestFile(name, 'r', &match));
    if (!match) {
      for (size_t k = 0; k < GENERATORS; k++)
        PetscCall(PetscPrintf(comm, "  %s:%s\n", Generators[k].name, Generators[k].usage));
      PetscCall(PetscPrintf(comm, "  %s:%s\n", GeneratorRowLengths.name, GeneratorRowLengths.usage));
      PetscCall(PetscPrintf(comm, "  %s:%s\n", GeneratorTwin.name, GeneratorTwin.usage));
    }
    PetscCheck(match, comm, PETSC_ERR_ARG_WRONG, "%s is neither a file nor one of these", name);
    PetscCall(MatCreate(comm, A));
    PetscCall(MatSetType(*A, MATAIJ));
    PetscCall(MatLoadFile(comm, name, *A));
    *origin = "file";
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
