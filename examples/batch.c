static char help[] = "Thousands of small diffusion-reaction systems, one in each cell of a domain, solved at once: a batch (type batch) and one KSP on it.\n\
  -problems <10000> : systems of all processes\n\
  -pcs <jacobi,vpbjacobi> : preconditioners to solve with, one after the other; any of PETSc's, with their options\n\
  -csv <file>       : residuals by iteration, to draw with examples/batch.py\n\n";

/*
   Each cell has a grid of its own, of 8 to 64 points, a diffusion coefficient D and a reaction rate k of its own, and the system

     - D u'' + k u = f,   u = 0 at both ends.

   The matrices differ in size and values, so that no two share a pattern: MatCreateBatch() takes the concatenated CSR arrays of all. One KSP solves them
   all; that the systems are independent shows in the residual of each, of which least, median and largest are told for each iteration. A second
   solve with new reaction rates (MatBatchSetValues(), as in a time step) needs no new set-up.

   On a GPU (a PETSc with CUDA) the vectors and the products are there; nothing in this program changes.
*/

#include <petscksp.h>
#include <petscspmv.h>

typedef struct {
  PetscInt    n;     /* systems of this process */
  PetscInt   *first; /* row of each */
  PetscReal  *norm;  /* of its right-hand side, then of its residual */
  const char *pc;
  FILE       *csv;
} Cells;

static PetscReal Uniform(PetscInt cell, PetscInt what) /* 0 <= . < 1, by the cell's number alone */
{
  unsigned long long h = (unsigned long long)(cell + 1) * 0x9E3779B97F4A7C15ULL + (unsigned long long)(what + 1) * 0xC2B2AE3D27D4EB4FULL;

  h ^= h >> 31;
  h *= 0xD6E8FEB86659FD93ULL;
  h ^= h >> 32;
  return (PetscReal)(h & 0xFFFFFF) / 16777216;
}

static PetscInt Points(PetscInt cell)
{
  return 8 + (PetscInt)(57 * Uniform(cell, 0));
}

/* The values of one system, row by row; scaled so that those of fine and coarse grids compare */
static PetscInt Values(PetscInt cell, PetscReal faster, PetscScalar a[])
{
  const PetscInt  n = Points(cell);
  const PetscReal h = (PetscReal)1 / (n + 1), D = PetscPowReal(10, -2 * Uniform(cell, 1)), k = faster * PetscPowReal(10, 3 * Uniform(cell, 2));
  PetscInt        at = 0;

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

/* Of the residuals relative to the right-hand sides, over the systems of this process, which for a picture will do: least, median, largest of all */
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
  PetscCall(PetscFPrintf(PETSC_COMM_WORLD, c->csv, "%s,%" PetscInt_FMT ",%g,%g,%g,%g\n", c->pc, it, (double)total, (double)least,
                         c->n ? (double)c->norm[c->n / 2] : 0.0, (double)most));
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  PetscInt       total = 10000, mine = PETSC_DECIDE, start, *sizes, *i, *j, at = 0, row = 0, npcs = 8, nz = 0, wrong = 0;
  PetscScalar   *a;
  char          *pcs[8], file[PETSC_MAX_PATH_LEN];
  PetscBool      set;
  PetscLogDouble t[2];
  Cells          c = {0};
  Mat            A;
  Vec            x, b, r;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscSpMVInitializePackage());
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-problems", &total, NULL));
  PetscCheck(total > 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-problems must be positive");
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-pcs", pcs, &npcs, &set));
  if (!set) {
    npcs = 2;
    PetscCall(PetscStrallocpy(PCJACOBI, &pcs[0]));
    PetscCall(PetscStrallocpy(PCVPBJACOBI, &pcs[1]));
  }
  PetscCall(PetscOptionsGetString(NULL, NULL, "-csv", file, sizeof(file), &set));
  if (set) {
    PetscCall(PetscFOpen(PETSC_COMM_WORLD, file, "w", &c.csv));
    PetscCall(PetscFPrintf(PETSC_COMM_WORLD, c.csv, "pc,iteration,total,least,median,largest\n"));
  }

  /* the arrays of this process's systems, one after the other */
  PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &mine, &total));
  PetscCallMPI(MPI_Scan(&mine, &start, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  start -= mine;
  c.n = mine;
  PetscCall(PetscMalloc3(mine, &sizes, mine + 1, &c.first, mine, &c.norm));
  c.first[0] = 0;
  for (PetscInt p = 0; p < mine; p++) {
    sizes[p]       = Points(start + p);
    c.first[p + 1] = c.first[p] + sizes[p];
    nz += 3 * sizes[p] - 2;
  }
  PetscCall(PetscMalloc3(c.first[mine] + 1, &i, nz, &j, nz, &a));
  i[0] = 0;
  for (PetscInt p = 0; p < mine; p++) {
    (void)Values(start + p, 1, a + at);
    for (PetscInt q = 0; q < sizes[p]; q++) {
      for (PetscInt col = PetscMax(0, q - 1); col <= PetscMin(sizes[p] - 1, q + 1); col++) j[at++] = col;
      i[++row] = at;
    }
  }
  PetscCall(MatCreateBatch(PETSC_COMM_WORLD, mine, sizes, i, j, a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatViewFromOptions(A, NULL, "-mat_view"));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSet(b, 1.0));

  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-12s %10s %12s %12s %14s\n", "pc", "iterations", "seconds", "again", "|b-Ax|/|b|"));
  for (PetscInt k = 0; k < npcs; k++) {
    KSP       ksp;
    PC        pc;
    PetscInt  its;
    PetscReal norm, rhs;

    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetType(ksp, KSPCG)); /* they are symmetric positive definite */
    PetscCall(KSPSetTolerances(ksp, PetscMax(1e-10, 100 * PETSC_MACHINE_EPSILON), PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, pcs[k]));
    PetscCall(KSPSetFromOptions(ksp));
    c.pc = pcs[k];
    for (int again = 0; again < 2; again++) { /* the second time with faster reactions */
      if (again) {
        for (PetscInt p = 0, to = 0; p < mine; p++) to += Values(start + p, 2, a + to);
        PetscCall(MatBatchSetValues(A, MATBATCH_ALL, a));
        PetscCall(KSPMonitorCancel(ksp));
      } else if (set) /* the file is open on the first process only */
        PetscCall(KSPMonitorSet(ksp, Monitor, &c, NULL));
      PetscCall(PetscTime(&t[again]));
      t[again] = -t[again];
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(VecNorm(x, NORM_2, &norm)); /* waits */
      PetscCall(PetscTimeAdd(&t[again]));
    }
    PetscCall(KSPGetIterationNumber(ksp, &its));
    PetscCall(MatMult(A, x, r));
    PetscCall(VecAYPX(r, -1.0, b));
    PetscCall(VecNorm(r, NORM_2, &norm));
    PetscCall(VecNorm(b, NORM_2, &rhs));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-12s %10" PetscInt_FMT " %12.4f %12.4f %14.3e\n", pcs[k], its, t[0], t[1], (double)(norm / rhs)));
    if (!(norm <= PetscSqrtReal(PETSC_MACHINE_EPSILON) * rhs)) wrong++;
    for (PetscInt p = 0, to = 0; p < mine; p++) to += Values(start + p, 1, a + to);
    PetscCall(MatBatchSetValues(A, MATBATCH_ALL, a));
    PetscCall(KSPDestroy(&ksp));
  }
  if (set) PetscCall(PetscFClose(PETSC_COMM_WORLD, c.csv));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFree3(i, j, a));
  PetscCall(PetscFree3(sizes, c.first, c.norm));
  for (PetscInt k = 0; k < npcs; k++) PetscCall(PetscFree(pcs[k]));
  PetscCheck(!wrong, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "%" PetscInt_FMT " of the solves above did not reach the solution", wrong);
  PetscCall(PetscFinalize());
  return 0;
}
