/*
  The matrix type batch against AIJ: every kernel on every case, on one or several ranks, on the host and, if PETSc uses
  one, on the device.

  Options: -kernels a,b, -cases a,b, -expect host|device, -quick (a few cases, for sanitizers). The message of a failure
  names the case, the kernel and the row.
  -cases graph captures products in CUDA graphs, which needs -root_device_context_stream_type nonblocking.
*/
#include "parts/batch.h"
#include "ranks.h"

static const Case cases[] = {
    {"homogeneous", "random", 40, 30, 30, MATBATCH_SHARE_NONE, PETSC_TRUE},
    {"heterogeneous", "mixed", 60, 0, 90, MATBATCH_SHARE_NONE, PETSC_TRUE},
    {"tiny", "random", 400, 0, 3, MATBATCH_SHARE_NONE, PETSC_TRUE},
    {"1-x-1", "dense", 70, 1, 1, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"rows-without-entries", "holes", 30, 5, 60, MATBATCH_SHARE_NONE, PETSC_TRUE},
    {"nothing", "nothing", 9, 0, 20, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"empty-problems", "random", 12, 0, 0, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"no-problem", "random", 0, 0, 0, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"bands", "band", 50, 33, 65, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"dense", "dense", 12, 20, 66, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"dense-300-rows", "dense", 2, 300, 300, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"a-few-full-rows", "skewed", 12, 200, 500, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"larger-than-shared-memory", "band", 2, 31000, 31000, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"larger-than-16-bit-indices", "band", 1, 70000, 70000, MATBATCH_SHARE_NONE, PETSC_FALSE},
    {"pattern-shared", "random", 33, 30, 30, MATBATCH_SHARE_PATTERN, PETSC_TRUE},
    {"pattern-shared-tiny", "random", 301, 3, 3, MATBATCH_SHARE_PATTERN, PETSC_TRUE},
    {"pattern-shared-large", "skewed", 5, 700, 700, MATBATCH_SHARE_PATTERN, PETSC_FALSE},
    {"values-shared", "holes", 21, 29, 29, MATBATCH_SHARE_VALUES, PETSC_TRUE},
    {"values-shared-tiny", "dense", 500, 2, 2, MATBATCH_SHARE_VALUES, PETSC_FALSE},
    {"values-shared-large", "random", 3, 900, 900, MATBATCH_SHARE_VALUES, PETSC_FALSE},
};

static PetscErrorCode CreateByMode(const Arrays *a, MatBatchSharing sharing, PetscCopyMode mode, Mat *A)
{
  PetscFunctionBeginUser;
  if (mode == PETSC_OWN_POINTER) {
    PetscInt    *i, *j;
    PetscScalar *v;
    PetscInt     rows = a->sharing ? a->sizes[0] : a->rows;

    PetscCall(PetscMalloc1(rows + 1, &i));
    PetscCall(PetscMalloc1(a->i[rows], &j));
    PetscCall(PetscMalloc1(a->values, &v));
    PetscCall(PetscArraycpy(i, a->i, rows + 1));
    PetscCall(PetscArraycpy(j, a->j, a->i[rows]));
    PetscCall(PetscArraycpy(v, a->a, a->values));
    PetscCall(MatCreateBatch(PETSC_COMM_WORLD, a->problems, a->sizes, i, j, v, sharing, mode, A));
  } else if (a->problems)
    PetscCall(MatCreateBatch(PETSC_COMM_WORLD, a->problems, a->sizes, a->i, a->j, a->a, sharing, mode, A));
  else /* the arrays may be NULL */
    PetscCall(MatCreateBatch(PETSC_COMM_WORLD, 0, NULL, NULL, NULL, NULL, sharing, mode, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Changes values in the ways that the mode allows, each followed by products */
static PetscErrorCode ChangeAndMultiply(Mat A, Arrays *a, PetscCopyMode mode)
{
  PetscFunctionBeginUser;
  if (mode == PETSC_USE_POINTER) {
    for (PetscInt64 e = 0; e < a->values; e++) a->a[e] = RandomNumber();
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(AllProducts(A, a, "after the caller wrote to the array"));
    PetscCall(MatScale(A, 0.5)); /* writes to the same array */
    PetscCall(AllProducts(A, a, "after MatScale()"));
  } else {
    PetscCall(ChangeValues(A, a, -1));
    PetscCall(AllProducts(A, a, "after all values changed"));
    if (a->problems) PetscCall(ChangeValues(A, a, a->problems / 2));
    PetscCall(AllProducts(A, a, "after a problem changed"));
    if (a->problems) PetscCall(ChangeValues(A, a, a->problems - 1));
    if (a->problems) PetscCall(ChangeValues(A, a, a->problems / 3));
    PetscCall(AllProducts(A, a, "after two more changed"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RunKernels(const Case *c, PetscInt nkernels, char *list[])
{
  PetscMPIInt rank, size;
  PetscInt    problems;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  problems = rank == 1 ? 0 : c->problems / (rank + 1); /* the second of several ranks has none */
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(kernels); k++) {
    const PetscCopyMode mode = (PetscCopyMode)(k % 3); /* PETSC_COPY_VALUES, PETSC_OWN_POINTER, PETSC_USE_POINTER */
    Arrays              a;
    Mat                 A, B;
    PetscBool           in = (PetscBool)!nkernels;

    for (PetscInt l = 0; l < nkernels && !in; l++) PetscCall(PetscStrcmp(list[l], kernels[k], &in));
    /* products do not involve other ranks: three kernels suffice */
    if (!nkernels && size > 1) in = (PetscBool)(k < 2 || k == 3);
    if (!in) continue;
    now_kernel = kernels[k];
    Reseed((PetscInt)k);
    PetscCall(ArraysCreate(c->kind, problems, c->least, c->most, c->sharing, &a));
    PetscCall(CreateByMode(&a, c->sharing, mode, &A));
    PetscCall(SetKernel(A, kernels[k]));
    PetscCall(AllProducts(A, &a, "first"));
    PetscCall(Infinite(A, &a));
    if (c->most <= 5000) PetscCall(Columns(A, &a));
    /* larger problems only matter for the first products */
    if (c->most <= 5000) PetscCall(ChangeAndMultiply(A, &a, mode));
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(MatDestroy(&A));
    if (c->most <= 5000) PetscCall(AllProducts(B, &a, "of the duplicate"));
    PetscCall(MatDestroy(&B));
    PetscCall(ArraysDestroy(&a));
  }
  now_kernel = "auto";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether batches compute on the device */
static PetscErrorCode FindDevice(void)
{
  const PetscInt i[2] = {0, 1}, j[1] = {0}, n[1] = {1};
  PetscScalar    a[1] = {1.0};
  Mat            A;
  Vec            x;

  PetscFunctionBeginUser;
  PetscCall(MatCreateBatch(PETSC_COMM_SELF, 1, n, i, j, a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, &A));
  PetscCall(MatCreateVecs(A, &x, NULL));
#if defined(PETSC_HAVE_CUDA)
  PetscCall(PetscObjectTypeCompare((PetscObject)x, VECSEQCUDA, &device));
#endif
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char        expect[16] = "", *list[16], *only[32];
  PetscInt    nlist = 16, nonly = 32;
  PetscBool   set, quick        = PETSC_FALSE, is;
  PetscMPIInt size;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscSpMVInitializePackage());
  (void)RanksComm();
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-kernels", list, &nlist, &set));
  if (!set) nlist = 0;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-cases", only, &nonly, &set));
  if (!set) nonly = 0;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-quick", &quick, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-expect", expect, sizeof(expect), NULL));
  PetscCall(FindDevice());
  PetscCall(PetscStrcmp(expect, device ? "device" : "host", &is));
  PetscCheck(is || !expect[0], PETSC_COMM_WORLD, PETSC_ERR_USER, "-expect %s, but batches compute on the %s here",
             expect, device ? "device" : "host");
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    PetscBool in = (PetscBool)!nonly;

    for (PetscInt l = 0; l < nonly && !in; l++) PetscCall(PetscStrcmp(only[l], cases[k].name, &in));
    if (!in || (quick && !cases[k].quick)) continue;
    now_case = cases[k].name;
    PetscCall(RunKernels(&cases[k], nlist, list));
    if (cases[k].most <= 500 && !quick) PetscCall(Operations(&cases[k]));
  }
  if (!nonly && !quick) {
    for (int dense = 0; dense < 2; dense++) {
      PetscCall(Solvers(MATBATCH_SHARE_NONE, (PetscBool)dense));
      PetscCall(Solvers(MATBATCH_SHARE_PATTERN, (PetscBool)dense));
      PetscCall(Solvers(MATBATCH_SHARE_VALUES, (PetscBool)dense));
    }
    PetscCall(FromMats());
    PetscCall(BadInput());
#if defined(PETSC_HAVE_CUDA)
    if (device) PetscCall(Device());
#endif
  }
#if defined(PETSC_HAVE_CUDA)
  for (PetscInt l = 0; l < nonly && device; l++) {
    PetscCall(PetscStrcmp(only[l], "graph", &is));
    if (is) PetscCall(Graph());
  }
#endif
  for (PetscInt l = 0; l < nlist; l++) PetscCall(PetscFree(list[l]));
  for (PetscInt l = 0; l < nonly; l++) PetscCall(PetscFree(only[l]));
  PetscCheck(checks, PETSC_COMM_SELF, PETSC_ERR_USER,
             "Nothing was checked: no such case or kernel, or -cases graph without a GPU");
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                        "batch on the %s, %d ranks: %" PetscInt_FMT " checks, %" PetscInt_FMT " failed\n",
                        device ? "device" : "host", size, checks, failures));
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}
