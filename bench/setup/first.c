static char help[] =
    "Measures the time that a new process spends before its products are fast: the first product of a matrix, the second, and a refresh, each including the device's work.\n\
  -matrix <stencil7:200> : a generator or a file, as in bench; or gamg:n, the operators and interpolations that PCGAMG makes of a 7-point stencil of n^3 points\n\
  -type <sellp>          : matrix type; for comparison: aijcusparse on a GPU, aij on the host\n\
  -header                : also prints the names of the columns\n\n";

/*
   A process measures one type only, since whatever is measured first loads code and creates handles for all that
   follow. For example

     for r in 1 2 3; do for t in aijcusparse sellp evchyb; do mpiexec -n 1 first -matrix stencil7:200 -type $t; done;
     done

   On the host -mat_spmv_setup_after 0 sets the format up in the first product. On a GPU the vectors are CUDA vectors
   with values there, so that the device has been started. Columns, in seconds: the first and the second product; the
   median of later ones; minus that median, a product after MatScale(), one after all values were set on the host, and
   the first product of a copy of the matrix, whose set-up finds memory that the process has used before. Of gamg:n all
   matrices are taken together.
*/

#include <petscspmv.h>
#include <petscksp.h>
#include "matrices.h"
#include "results.h"
#include "timing.h"
#include "device.h"

#define MATRICES_MOST 64
#define PRODUCTS      21

typedef struct {
  PetscInt count;
  Mat      A[MATRICES_MOST];
  Vec      x[MATRICES_MOST], y[MATRICES_MOST];
} Group;

/* The operators and interpolations of all levels of PCGAMG for A, which is destroyed */
static PetscErrorCode Hierarchy(Mat A, Group *g)
{
  PC       pc;
  Vec      x, y;
  Mat     *P, *C;
  PetscInt levels, nc;

  PetscFunctionBeginUser;
  PetscCall(PCCreate(PetscObjectComm((PetscObject)A), &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(PCSetOperators(pc, A, A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(PCSetUp(pc));
  PetscCall(PCGetInterpolations(pc, &levels, &P));
  PetscCall(PCGetCoarseOperators(pc, &nc, &C));
  PetscCheck(2 * levels <= MATRICES_MOST, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " levels", levels);
  g->A[g->count++] = A;
  for (PetscInt l = 0; l < levels - 1; l++) {
    g->A[g->count++] = P[l];
    g->A[g->count++] = C[l];
  }
  PetscCall(PetscFree(P));
  PetscCall(PetscFree(C));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(PCDestroy(&pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GroupCreate(const char *name, const char *type, Group *g)
{
  const char *origin;
  char        stencil[64];
  PetscBool   gamg;
  Mat         A;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(g, sizeof(*g)));
  PetscCall(PetscStrncmp(name, "gamg:", 5, &gamg));
  PetscCall(PetscSNPrintf(stencil, sizeof(stencil), "stencil7:%s", name + 5));
  PetscCall(MatrixCreate(PETSC_COMM_WORLD, gamg ? stencil : name, &A, &origin));
  if (gamg)
    PetscCall(Hierarchy(A, g));
  else
    g->A[g->count++] = A;
  for (PetscInt k = 0; k < g->count; k++) {
    PetscCall(MatConvert(g->A[k], type, MAT_INITIAL_MATRIX, &A));
    PetscCall(MatDestroy(&g->A[k]));
    g->A[k] = A;
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatCreateVecs(A, &g->x[k], &g->y[k]));
    PetscCall(VecSet(g->x[k], 1.0));
    PetscCall(VecSet(g->y[k], 0.0));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GroupDestroy(Group *g)
{
  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < g->count; k++) {
    PetscCall(MatDestroy(&g->A[k]));
    PetscCall(VecDestroy(&g->x[k]));
    PetscCall(VecDestroy(&g->y[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(Group *g, double *seconds)
{
  PetscLogDouble t = 0.0;

  PetscFunctionBeginUser;
  PetscCall(TimeBegin(PETSC_COMM_WORLD, &t));
  for (PetscInt k = 0; k < g->count; k++) PetscCall(MatMult(g->A[k], g->x[k], g->y[k]));
  PetscCall(TimeEnd(PETSC_COMM_WORLD, t, seconds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values: by MatScale(), where the matrix is, or in the host's array */
static PetscErrorCode Change(Group *g, PetscBool host)
{
  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < g->count; k++) {
    Mat          block[2] = {g->A[k], NULL};
    PetscScalar *a;
    PetscMPIInt  size;

    if (!host) {
      PetscCall(MatScale(g->A[k], 1.0000001));
      continue;
    }
    PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)g->A[k]), &size));
    if (size > 1) PetscCall(MatMPIAIJGetSeqAIJ(g->A[k], &block[0], &block[1], NULL));
    for (int b = 0; b < 2 && block[b]; b++) {
      PetscCall(MatSeqAIJGetArray(block[b], &a));
      PetscCall(MatSeqAIJRestoreArray(block[b], &a));
    }
    PetscCall(MatAssemblyBegin(g->A[k], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(g->A[k], MAT_FINAL_ASSEMBLY));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first products of copies of all matrices */
static PetscErrorCode ProductsOfCopies(const Group *g, double *seconds)
{
  Group copy = *g;

  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < g->count; k++) PetscCall(MatDuplicate(g->A[k], MAT_COPY_VALUES, &copy.A[k]));
  PetscCall(Products(&copy, seconds));
  for (PetscInt k = 0; k < g->count; k++) PetscCall(MatDestroy(&copy.A[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char      name[PETSC_MAX_PATH_LEN] = "stencil7:200", type[64] = MATSELLP, gpu[256] = "";
  PetscBool header = PETSC_FALSE;
  Group     g;
  double    first, second, later, scaled, set, copied, t[PRODUCTS], nz = 0.0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscSpMVInitializePackage());
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "First products", NULL);
  PetscCall(PetscOptionsString("-matrix", "Generator, file or gamg:n", NULL, name, name, sizeof(name), NULL));
  PetscCall(PetscOptionsString("-type", "Matrix type", NULL, type, type, sizeof(type), NULL));
  PetscCall(PetscOptionsBool("-header", "Names of the columns", NULL, header, &header, NULL));
  PetscOptionsEnd();
  PetscCall(GroupCreate(name, type, &g));
#if defined(PETSC_HAVE_CUDA)
  TimeDrain = DeviceDrain;
#endif
  PetscCall(Products(&g, &first));
  PetscCall(Products(&g, &second));
  for (int k = 0; k < PRODUCTS; k++) PetscCall(Products(&g, &t[k]));
  PetscCall(Median(PRODUCTS, t, &later));
  for (int k = 0; k < PRODUCTS; k++) {
    PetscCall(Change(&g, PETSC_FALSE));
    PetscCall(Products(&g, &t[k]));
  }
  PetscCall(Median(PRODUCTS, t, &scaled));
  for (int k = 0; k < 3; k++) {
    PetscCall(Change(&g, PETSC_TRUE));
    PetscCall(Products(&g, &t[k]));
  }
  PetscCall(Median(3, t, &set));
  for (int k = 0; k < 5; k++) PetscCall(ProductsOfCopies(&g, &t[k]));
  PetscCall(Median(5, t, &copied));
  for (PetscInt k = 0; k < g.count; k++) {
    MatInfo info;

    PetscCall(MatGetInfo(g.A[k], MAT_GLOBAL_SUM, &info));
    nz += info.nz_used;
  }
#if defined(PETSC_HAVE_CUDA)
  {
    struct cudaDeviceProp prop;

    /* after the measurement */
    if (cudaGetDeviceProperties(&prop, 0) == cudaSuccess) PetscCall(PetscStrncpy(gpu, prop.name, sizeof(gpu)));
  }
#endif
  if (header)
    PetscCall(PetscPrintf(
        PETSC_COMM_WORLD,
        "matrix,type,matrices,nonzeros,first_s,second_s,product_s,refresh_s,refresh_host_s,copy_s," RESULTS_SOURCE
        "\n"));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s,%s,%" PetscInt_FMT ",%.0f,%.6f,%.6f,%.9f,%.6f,%.6f,%.6f,%s\n", name, type,
                        g.count, nz, first, second, later, scaled - later, set - later, copied - later,
                        ResultsSource(gpu[0] ? gpu : NULL)));
  PetscCall(GroupDestroy(&g));
  PetscCall(PetscFinalize());
  return 0;
}
