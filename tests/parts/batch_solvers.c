/* Solvers and preconditioners for batches */
#include "batch.h"

typedef struct {
  const char *options;
  PetscBool   seq;
  PetscInt    its; /* most iterations; exact solvers need 1 */
} Run;

static const Run runs[] = {
    {"-pc_type vpbjacobi", PETSC_FALSE, 2},
    {"-pc_type pbjacobi", PETSC_FALSE, 200},
    {"-pc_type bjacobi -sub_pc_type lu", PETSC_FALSE, 2},
    {"-pc_type bjacobi -sub_pc_type ilu", PETSC_FALSE, 200},
    {"-pc_type bjacobi -pc_bjacobi_local_blocks 3 -sub_pc_type lu", PETSC_FALSE, 200},
    {"-pc_type asm -sub_pc_type lu -pc_asm_overlap 1", PETSC_FALSE, 2},
    {"-pc_type jacobi", PETSC_FALSE, 200},
    {"-pc_type sor", PETSC_FALSE, 200},
    {"-pc_type lu", PETSC_TRUE, 2},
    {"-pc_type lu -pc_factor_mat_ordering_type natural", PETSC_TRUE, 2},
    {"-pc_type lu -pc_factor_mat_ordering_type rcm", PETSC_TRUE, 2},
    {"-pc_type ilu -pc_factor_mat_ordering_type 1wd", PETSC_TRUE, 200},
    {"-pc_type ilu", PETSC_TRUE, 200},
    {"-pc_type cholesky", PETSC_TRUE, 2},
    {"-pc_type cholesky -pc_factor_mat_ordering_type qmd", PETSC_TRUE, 2},
    {"-pc_type icc", PETSC_TRUE, 200},
    {"-ksp_type bicg -pc_type jacobi", PETSC_FALSE, 400},
    {"-ksp_type cgne -pc_type jacobi", PETSC_FALSE, 400},
    {"-ksp_type richardson -pc_type none -ksp_richardson_scale 0.1", PETSC_FALSE, 500},
    {"", PETSC_FALSE, 400},
};

#define N 12 /* the most rows of a problem */

/* Symmetric positive definite, diagonally dominant problems: tridiagonal, or dense, so that consecutive rows have the
   same columns (AIJ's inodes) */
static PetscErrorCode SystemsCreate(MatBatchSharing sharing, PetscBool dense, Arrays *s)
{
  PetscMPIInt rank;
  PetscInt    at = 0, row = 0;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  s->problems = 20 + 3 * rank;
  s->sharing  = sharing;
  PetscCall(PetscMalloc1(s->problems, &s->sizes));
  PetscCall(PetscMalloc1(s->problems * (N + 3) + 1, &s->i));
  PetscCall(PetscMalloc1(s->problems * N * N, &s->j));
  PetscCall(PetscMalloc1(s->problems * N * N, &s->a));
  s->i[0] = 0;
  for (PetscInt p = 0; p < s->problems; p++) {
    const PetscInt width = dense ? N : 1;

    s->sizes[p] = sharing ? N : 1 + p % N;
    for (PetscInt r = 0; r < s->sizes[p] && (!sharing || !p); r++) {
      for (PetscInt c = PetscMax(0, r - width); c <= PetscMin(s->sizes[p] - 1, r + width); c++) {
        s->j[at]   = c;
        s->a[at++] = c == r ? 4.0 + 0.1 * (PetscReal)(p % 5) : dense ? -0.25 : -1.0;
      }
      s->i[++row] = at;
    }
    if (sharing == MATBATCH_SHARE_PATTERN && p) PetscCall(PetscArraycpy(s->a + p * s->i[N], s->a, s->i[N]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ClearOptions(const char *options)
{
  char copy[256], *word, *rest = copy;

  PetscFunctionBeginUser;
  PetscCall(PetscStrncpy(copy, options, sizeof(copy)));
  while ((word = strtok(rest, " "))) {
    rest = NULL;
    if (word[0] == '-') PetscCall(PetscOptionsClearValue(NULL, word));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves A x = A u */
static PetscErrorCode Solve(const Run *run, Mat A, Vec u, Vec b, Vec x)
{
  KSP                ksp;
  PetscOptions       options;
  PetscReal          norm, off;
  PetscInt           its;
  KSPConvergedReason reason;
  char               text[256];

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsCreate(&options));
  PetscCall(PetscOptionsInsertString(options, run->options));
  PetscCall(PetscOptionsInsertString(NULL, run->options)); /* for solvers within solvers */
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetTolerances(ksp, 1e3 * PETSC_MACHINE_EPSILON, PETSC_DEFAULT, PETSC_DEFAULT, 1000));
  PetscCall(KSPSetFromOptions(ksp));
  for (int again = 0; again < 2; again++) { /* the second time with other values */
    PetscCall(MatMult(A, u, b));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(KSPGetIterationNumber(ksp, &its));
    PetscCall(VecAXPY(x, -1.0, u));
    PetscCall(VecNorm(x, NORM_INFINITY, &off));
    PetscCall(VecNorm(u, NORM_INFINITY, &norm));
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s: reason %d, %" PetscInt_FMT " iterations, error %g", run->options,
                            (int)reason, its, (double)(off / norm)));
    Check(reason > 0 && its <= run->its && off <= 1e5 * PETSC_MACHINE_EPSILON * norm, text);
    PetscCall(MatScale(A, again ? 0.5 : 2.0));
    if (!strncmp(run->options, "-ksp_type richardson", 20)) { /* its scale is only for these values */
      PetscCall(MatScale(A, 0.5));
      break;
    }
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(PetscOptionsDestroy(&options));
  PetscCall(ClearOptions(run->options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One process changes a problem, and all of them set up the preconditioner again. a: values for it */
static PetscErrorCode OneProblemChanges(Mat A, PetscScalar a[], Vec u, Vec b, Vec x)
{
  MPI_Comm    comm = PetscObjectComm((PetscObject)A);
  PetscMPIInt rank, size;
  KSP         ksp;
  PC          pc;
  PetscReal   norm, off;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(KSPCreate(comm, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetTolerances(ksp, 1e3 * PETSC_MACHINE_EPSILON, PETSC_DEFAULT, PETSC_DEFAULT, 2));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCASM));
  PetscCall(PetscOptionsSetValue(NULL, "-sub_pc_type", "lu"));
  PetscCall(KSPSetFromOptions(ksp));
  for (int again = 0; again < 2; again++) {
    if (again) {
      for (PetscInt k = 0; k < 3 * N; k++) a[k] *= 7.0;
      if (rank == size - 1) PetscCall(MatBatchSetValues(A, 0, a));
      PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    }
    PetscCall(MatMult(A, u, b));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(VecAXPY(x, -1.0, u));
    PetscCall(VecNorm(x, NORM_INFINITY, &off));
    PetscCall(VecNorm(u, NORM_INFINITY, &norm));
    Check(off <= 1e5 * PETSC_MACHINE_EPSILON * norm, "ASM after one process changed a problem");
  }
  PetscCall(PetscOptionsClearValue(NULL, "-sub_pc_type"));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Solvers(MatBatchSharing sharing, PetscBool dense)
{
  PetscMPIInt size;
  Arrays      s;
  Mat         A;
  Vec         x, b, u;

  PetscFunctionBeginUser;
  now_case = dense ? (sharing ? "solvers, dense problems, shared" : "solvers, dense problems")
                   : (sharing ? "solvers, shared" : "solvers");
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(SystemsCreate(sharing, dense, &s));
  PetscCall(MatCreateBatch(PETSC_COMM_WORLD, s.problems, s.sizes, s.i, s.j, s.a, sharing, PETSC_COPY_VALUES, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &u));
  PetscCall(VecFill(u));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(runs); k++) {
    if (!runs[k].seq || size == 1) PetscCall(Solve(&runs[k], A, u, b, x));
  }
  PetscCall(OneProblemChanges(A, s.a, u, b, x));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&u));
  PetscCall(MatDestroy(&A));
  PetscCall(ArraysDestroy(&s));
  PetscFunctionReturn(PETSC_SUCCESS);
}
