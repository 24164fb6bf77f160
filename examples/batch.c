static char help[] =
    "Thousands of small diffusion-reaction systems, one in each cell of a domain, solved at once: a batch (type batch), with one KSP for all, then\n\
each system by itself (-ksp_type devicebatch).\n\
  -problems <10000> : total number of systems over all processes\n\
  -pcs <jacobi,vpbjacobi,devicebatch> : preconditioners, used one after the other; any of PETSc's, with their options;\n\
                      devicebatch: each system by itself, with jacobi\n\
  -csv <file>       : residuals by iteration, and the numbers of iterations of the systems, for examples/batch.py\n\n";

/*
   Each cell has its own grid of 8 to 64 points, its own diffusion coefficient D and reaction rate k, and its own system

     - D u'' + k u = f,   u = 0 at both ends.

   The matrices differ in size and values, so they do not share a pattern: MatCreateBatch() gets the CSR arrays of all
   systems, one after the other. One KSP solves all systems. The systems are independent; in each iteration, the program
   writes the smallest, median and largest of their residuals. The KSP iterates until they are small together. With the
   type devicebatch each system is solved by itself, and most need fewer iterations than the slowest one. A second solve with new reaction rates
   (MatBatchSetValues(), as in a time step) needs no new set-up of the matrix.

   On a GPU (with a PETSc configured for CUDA) the vectors and the products are on the GPU, without any change to this
   program.
*/

#include <petscksp.h>
#include <petscspmv.h>

typedef struct {
  PetscInt    start; /* number of the first system of this process */
  PetscInt    n;     /* systems of this process */
  PetscInt   *first; /* first row of each system */
  PetscReal  *norm;  /* relative residual of each system */
  const char *pc;
  FILE       *csv;
} Cells;

static PetscReal Uniform(PetscInt cell, PetscInt what) /* in [0, 1), depends only on the arguments */
{
  unsigned long long h =
      (unsigned long long)(cell + 1) * 0x9E3779B97F4A7C15ULL + (unsigned long long)(what + 1) * 0xC2B2AE3D27D4EB4FULL;

  h ^= h >> 31;
  h *= 0xD6E8FEB86659FD93ULL;
  h ^= h >> 32;
  return (PetscReal)(h & 0xFFFFFF) / 16777216;
}

static PetscInt Points(PetscInt cell)
{
  return 8 + (PetscInt)(57 * Uniform(cell, 0));
}

/* The values of one system, row by row, scaled so that fine and coarse grids have values of similar size */
static PetscInt Values(PetscInt cell, PetscReal faster, PetscScalar a[])
{
  const PetscInt  n = Points(cell);
  const PetscReal h = (PetscReal)1 / (n + 1), D = PetscPowReal(10, -2 * Uniform(cell, 1)),
                  k = faster * PetscPowReal(10, 3 * Uniform(cell, 2));
  PetscInt at       = 0;

  for (PetscInt r = 0; r < n; r++) {
    if (r > 0) a[at++] = -D;
    a[at++] = 2 * D + k * h * h;
    if (r < n - 1) a[at++] = -D;
  }
  return at;
}

static int Ascending(const void *a, const void *b)
{
  const PetscReal x = *(const PetscReal *)a, y = *(const PetscReal *)b;

  return x < y ? -1 : x > y;
}

/* The smallest, median and largest residual relative to the right-hand side; the median is only over the systems of the
   first process */
static PetscErrorCode Monitor(KSP ksp, PetscInt it, PetscReal total, void *ctx)
{
  Cells             *c = (Cells *)ctx;
  Vec                r, b;
  const PetscScalar *v, *w;
  PetscReal          mine[2] = {PETSC_MAX_REAL, 0}, least, most;

  PetscFunctionBeginUser;
  PetscCall(KSPGetRhs(ksp, &b));
  PetscCall(KSPBuildResidual(ksp, NULL, NULL, &r));
  PetscCall(VecGetArrayRead(r, &v));
  PetscCall(VecGetArrayRead(b, &w));
  for (PetscInt p = 0; p < c->n; p++) {
    PetscReal sum = 0, rhs = 0;

    for (PetscInt k = c->first[p]; k < c->first[p + 1]; k++) {
      sum += PetscSqr(PetscAbsScalar(v[k]));
      rhs += PetscSqr(PetscAbsScalar(w[k]));
    }
    c->norm[p] = PetscSqrtReal(sum / rhs);
    mine[0]    = PetscMin(mine[0], c->norm[p]);
    mine[1]    = PetscMax(mine[1], c->norm[p]);
  }
  PetscCall(VecRestoreArrayRead(b, &w));
  PetscCall(VecRestoreArrayRead(r, &v));
  PetscCall(VecDestroy(&r));
  qsort(c->norm, (size_t)c->n, sizeof(*c->norm), Ascending);
  PetscCallMPI(MPI_Allreduce(&mine[0], &least, 1, MPIU_REAL, MPIU_MIN, PETSC_COMM_WORLD));
  PetscCallMPI(MPI_Allreduce(&mine[1], &most, 1, MPIU_REAL, MPIU_MAX, PETSC_COMM_WORLD));
  PetscCall(PetscFPrintf(PETSC_COMM_WORLD, c->csv, "%s,%" PetscInt_FMT ",%g,%g,%g,%g\n", c->pc, it, (double)total,
                         (double)least, c->n ? (double)c->norm[c->n / 2] : 0.0, (double)most));
  PetscFunctionReturn(0);
}

/* Creates the systems of this process as a batch; the caller must free the values `a`, c->first and c->norm */
static PetscErrorCode CreateSystems(PetscInt total, Cells *c, PetscScalar **a, Mat *A)
{
  PetscInt *sizes, *i, *j, at = 0, row = 0, nz = 0;

  PetscFunctionBeginUser;
  c->n = PETSC_DECIDE;
  PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &c->n, &total));
  PetscCallMPI(MPI_Scan(&c->n, &c->start, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  c->start -= c->n;
  PetscCall(PetscMalloc1(c->n, &sizes));
  PetscCall(PetscMalloc2(c->n + 1, &c->first, c->n, &c->norm));
  c->first[0] = 0;
  for (PetscInt p = 0; p < c->n; p++) {
    sizes[p]        = Points(c->start + p);
    c->first[p + 1] = c->first[p] + sizes[p];
    nz += 3 * sizes[p] - 2;
  }
  PetscCall(PetscMalloc2(c->first[c->n] + 1, &i, nz, &j));
  PetscCall(PetscMalloc1(nz, a));
  i[0] = 0;
  for (PetscInt p = 0; p < c->n; p++) {
    (void)Values(c->start + p, 1, *a + at);
    for (PetscInt q = 0; q < sizes[p]; q++) {
      for (PetscInt col = PetscMax(0, q - 1); col <= PetscMin(sizes[p] - 1, q + 1); col++) j[at++] = col;
      i[++row] = at;
    }
  }
  PetscCall(MatCreateBatch(PETSC_COMM_WORLD, c->n, sizes, i, j, *a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, A));
  PetscCall(PetscFree2(i, j));
  PetscCall(PetscFree(sizes));
  PetscFunctionReturn(0);
}

/* New reaction rates */
static PetscErrorCode SetRates(const Cells *c, PetscReal faster, PetscScalar a[], Mat A)
{
  PetscFunctionBeginUser;
  for (PetscInt p = 0, to = 0; p < c->n; p++) to += Values(c->start + p, faster, a + to);
  PetscCall(MatBatchSetValues(A, MATBATCH_ALL, a));
  PetscFunctionReturn(0);
}

/* How many systems took how many iterations, in the column of the total */
static PetscErrorCode WriteIterations(KSP ksp, Cells *c)
{
  const PetscInt *its;
  PetscInt        n, most, *count;

  PetscFunctionBeginUser;
  PetscCall(KSPDeviceBatchGetSolveInfo(ksp, &n, &its, NULL, NULL));
  PetscCall(KSPGetIterationNumber(ksp, &most));
  PetscCall(PetscCalloc1(most + 1, &count));
  for (PetscInt p = 0; p < n; p++) count[its[p]]++;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, count, (PetscMPIInt)most + 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  for (PetscInt k = 0; k <= most; k++)
    PetscCall(
        PetscFPrintf(PETSC_COMM_WORLD, c->csv, "%s,%" PetscInt_FMT ",%" PetscInt_FMT ",,,\n", c->pc, k, count[k]));
  PetscCall(PetscFree(count));
  PetscFunctionReturn(0);
}

/* With PCJACOBI and the type devicebatch if c->pc is the name of that type */
static PetscErrorCode Solve(Cells *c, PetscBool write, PetscScalar a[], Mat A, Vec b, Vec x, PetscBool *solved)
{
  KSP            ksp;
  PC             pc;
  Vec            r;
  PetscInt       its;
  PetscReal      norm, rhs;
  PetscLogDouble t[2];
  PetscBool      alone;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmp(c->pc, KSPDEVICEBATCH, &alone));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(
      KSPSetType(ksp, alone ? KSPDEVICEBATCH : KSPCG)); /* the systems are symmetric positive definite, see main() */
  PetscCall(
      KSPSetTolerances(ksp, PetscMax(1e-10, 100 * PETSC_MACHINE_EPSILON), PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, alone ? PCJACOBI : c->pc));
  PetscCall(KSPSetFromOptions(ksp));
  if (write && !alone) PetscCall(KSPMonitorSet(ksp, Monitor, c, NULL));
  for (int again = 0; again < 2; again++) { /* the second time with faster reactions */
    if (again) {
      PetscCall(SetRates(c, 2, a, A));
      PetscCall(KSPMonitorCancel(ksp));
    }
    PetscCall(PetscTime(&t[again]));
    t[again] = -t[again];
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(VecNorm(x, NORM_2, &norm)); /* waits for the GPU */
    PetscCall(PetscTimeAdd(&t[again]));
    if (write && alone && !again) PetscCall(WriteIterations(ksp, c));
  }
  PetscCall(KSPGetIterationNumber(ksp, &its));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCall(VecNorm(b, NORM_2, &rhs));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-12s %10" PetscInt_FMT " %12.4f %12.4f %14.3e\n", c->pc, its, t[0], t[1],
                        (double)(norm / rhs)));
  *solved = (PetscBool)(norm <= PetscSqrtReal(PETSC_MACHINE_EPSILON) * rhs);
  PetscCall(SetRates(c, 1, a, A));
  PetscCall(VecDestroy(&r));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  PetscInt     total = 10000, npcs = 8, wrong = 0;
  PetscScalar *a;
  char        *pcs[8], file[PETSC_MAX_PATH_LEN];
  PetscBool    set, solved = PETSC_FALSE;
  Cells        c = {0};
  Mat          A;
  Vec          x, b;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscSpMVInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-problems", &total, NULL));
  PetscCheck(total > 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-problems must be positive");
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-pcs", pcs, &npcs, &set));
  if (!set) {
    npcs = 3;
    PetscCall(PetscStrallocpy(PCJACOBI, &pcs[0]));
    PetscCall(PetscStrallocpy(PCVPBJACOBI, &pcs[1]));
    PetscCall(PetscStrallocpy(KSPDEVICEBATCH, &pcs[2]));
  }
  PetscCall(PetscOptionsGetString(NULL, NULL, "-csv", file, sizeof(file), &set));
  if (set) {
    PetscCall(PetscFOpen(PETSC_COMM_WORLD, file, "w", &c.csv));
    PetscCall(PetscFPrintf(PETSC_COMM_WORLD, c.csv, "pc,iteration,total,least,median,largest\n"));
  }

  PetscCall(CreateSystems(total, &c, &a, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE)); /* devicebatch then uses CG */
  PetscCall(MatViewFromOptions(A, NULL, "-mat_view"));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));

  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-12s %10s %12s %12s %14s\n", "pc", "iterations", "seconds", "again",
                        "|b-Ax|/|b|"));
  for (PetscInt k = 0; k < npcs; k++) {
    c.pc = pcs[k];
    PetscCall(Solve(&c, set, a, A, b, x, &solved));
    if (!solved) wrong++;
  }
  if (set) PetscCall(PetscFClose(PETSC_COMM_WORLD, c.csv));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFree(a));
  PetscCall(PetscFree2(c.first, c.norm));
  for (PetscInt k = 0; k < npcs; k++) PetscCall(PetscFree(pcs[k]));
  PetscCheck(!wrong, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED,
             "%" PetscInt_FMT " of the solves above did not reach the solution", wrong);
  PetscCall(PetscFinalize());
  return 0;
}
