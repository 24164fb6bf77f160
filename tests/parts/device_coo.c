/* Assembly from coordinates, in the memory of a device */
#include "device.h"

#define REALS ((PetscInt)(sizeof(PetscScalar) / sizeof(PetscReal)))

/* Copies an array to the memory that the type under test needs. PETSc does not free it, so the caller must */
static PetscErrorCode ToDevice(Test *t, const void *host, size_t bytes, void *address)
{
  void **array = (void **)address;

  PetscFunctionBegin;
#if defined(PETSC_HAVE_CUDA)
  if (t->device) {
    PetscCallCUDA(cudaMalloc(array, PetscMax(bytes, 1)));
    PetscCallCUDA(cudaMemcpy(*array, host, bytes, cudaMemcpyHostToDevice));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(PetscMalloc(bytes, array));
  PetscCall(PetscMemcpy(*array, host, bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FreeArray(Test *t, void *address)
{
  void **array = (void **)address;

  PetscFunctionBegin;
#if defined(PETSC_HAVE_CUDA)
  if (t->device) {
    PetscCallCUDA(cudaFree(*array));
    *array = NULL;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(PetscFree(*array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Assembly from coordinates in arrays on the device: R's entries, each twice, half of them (away) in another rank's row
   */
PetscErrorCode COO(Test *t, Record *r)
{
  Mat          A;
  Vec          x, y;
  PetscInt    *ci, *cj, *di, *dj, n, k;
  PetscScalar *v, *d;

  PetscFunctionBegin;
  PetscCall(CreateLike(t->R, t->type, &A));
  PetscCall(CoordinatesTwice(t->R, (PetscBool)(t->arg[0] == 'a'), &n, &ci, &cj));
  PetscCall(PetscMalloc1(n, &v));
  PetscCall(ToDevice(t, ci, (size_t)n * sizeof(*ci), &di));
  PetscCall(ToDevice(t, cj, (size_t)n * sizeof(*cj), &dj));
  PetscCall(MatSetPreallocationCOO(A, n, di, dj));
  PetscCall(FreeArray(t, &di));
  PetscCall(FreeArray(t, &dj));
  for (PetscInt step = 0; step < 4; step++) {
    for (k = 0; k < n; k++) v[k] = Value(k, t->rank, 60 + step);
    PetscCall(ToDevice(t, v, (size_t)n * sizeof(*v), &d));
    PetscCall(MatSetValuesCOO(A, d, step % 2 ? ADD_VALUES : INSERT_VALUES));
    PetscCall(MatCreateVecs(A, &x, &y)); /* multiply before anything reads the entries on the host */
    PetscCall(VecFill(x, 3));
    PetscCall(MatMult(A, x, y));
    PetscCall(FreeArray(t, &d));
    PetscCall(RecordVec(r, "A x at row", y, NULL, 1e4));
    PetscCall(Destroy(&x, &y));
    if (step > 1) PetscCall(RecordMat(t, r, "type after MatSetValuesCOO", A));
  }
  PetscCall(PetscFree(v));
  PetscCall(PetscFree2(ci, cj));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entry k of many, at a random place of an M x N matrix: one in nine is ignored */
static void Anywhere(PetscInt k, PetscInt salt, PetscInt M, PetscInt N, PetscInt *i, PetscInt *j)
{
  *i = (PetscInt)((M - 1) * (0.5 + 0.5 * Hash(k, salt, 1)));
  *j = (PetscInt)((N - 1) * (0.5 + 0.5 * Hash(k, salt, 2)));
  if (k % 18 == 7) *i = -1 - k % 5;
  if (k % 18 == 9) *j = -1 - k % 3;
}

/* So many entries that they are sorted in all parts of the device, in any rank's rows: each of a few nonzeros many
   times, most of them once, and all in one row. The values are integers, so that their sums do not depend on the order.
   Every other time, an array of complex values begins between two of them */
PetscErrorCode COOMany(Test *t, Record *r)
{
  const PetscInt count = 60000, sizes[][2] = {{60, 50}, {300000, 50000}, {1, 1000}};
  PetscInt      *ci, *cj, *di, *dj;
  PetscReal     *v, *d;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(count, &ci, count, &cj, count * REALS + 1, &v));
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(sizes); s++) {
    const PetscInt M = sizes[s][0], N = sizes[s][1];
    Mat            A;

    PetscCall(MatCreate(t->comm, &A));
    PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, M, N));
    PetscCall(MatSetType(A, t->type));
    for (PetscInt k = 0; k < count; k++) Anywhere(k, t->rank, M, N, &ci[k], &cj[k]);
    PetscCall(ToDevice(t, ci, (size_t)count * sizeof(*ci), &di));
    PetscCall(ToDevice(t, cj, (size_t)count * sizeof(*cj), &dj));
    PetscCall(MatSetPreallocationCOO(A, count, di, dj));
    PetscCall(FreeArray(t, &di));
    PetscCall(FreeArray(t, &dj));
    for (int step = 0; step < 3; step++) {
      const int shift = t->device && REALS > 1 ? step % 2 : 0;

      for (PetscInt k = 0; k < count * REALS; k++)
        v[k + shift] = (PetscReal)(PetscInt)(64 * Hash(k, t->rank, 60 + step));
      PetscCall(ToDevice(t, v, (size_t)(count * REALS + 1) * sizeof(*v), &d));
      PetscCall(MatSetValuesCOO(A, (PetscScalar *)(d + shift), step == 1 ? ADD_VALUES : INSERT_VALUES));
      PetscCall(FreeArray(t, &d));
      PetscCall(RecordMat(t, r, "type after MatSetValuesCOO", A));
    }
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscFree3(ci, cj, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Indices that are too large, in the program's arrays on the device or on the host: the error must be AIJ's, and the
   matrix unchanged. Then a map that is used while the matrix is bound to the CPU */
PetscErrorCode COOErrors(Test *t, Record *r)
{
  Mat          A;
  PetscInt     M, N, *di, *dj;
  PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_spmv_coo", "device"));
  PetscCall(MakeTouched(t, &A));
  PetscCall(MatGetSize(A, &M, &N));
  for (int k = 0; k < 4; k++) {
    PetscInt       ci[] = {0, -1, k % 2 ? 0 : M, M - 1}, cj[] = {0, N + 3, k % 2 ? N : 0, -1};
    PetscErrorCode ierr;

    if (k < 2) PetscCall(ToDevice(t, ci, sizeof(ci), &di));
    if (k < 2) PetscCall(ToDevice(t, cj, sizeof(cj), &dj));
    MayFail(ierr, MatSetPreallocationCOO(A, 4, k < 2 ? di : ci, k < 2 ? dj : cj));
    PetscCall(RecordInt(r, k % 2 ? "error for a column" : "error for a row", ierr));
    if (k < 2) PetscCall(FreeArray(t, &di));
    if (k < 2) PetscCall(FreeArray(t, &dj));
#if PETSC_VERSION_LT(3, 21, 0) /* AIJ has emptied it */
    PetscCall(MatDestroy(&A));
    PetscCall(Make(t, &A));
#endif
    PetscCall(RecordMat(t, r, "type after an error", A));
  }
  /* AIJCUSPARSE has no function for this while bound */
  for (int bind = 0; bind < (strcmp(t->type, MATAIJCUSPARSE) ? 3 : 1); bind++) {
    PetscInt    ci[] = {M - 1, 0, M - 1, -1, M - 1}, cj[] = {N - 1, 0, 0, 0, N - 1};
    PetscScalar value[] = {1.5, 2.0, -3.0, 4.0, 0.25};

    if (!bind) PetscCall(MatSetPreallocationCOO(A, 5, ci, cj));
    if (bind) PetscCall(MatBindToCPU(A, bind == 1 ? PETSC_TRUE : PETSC_FALSE));
    PetscCall(ToDevice(t, value, sizeof(value), &v));
    PetscCall(MatSetValuesCOO(A, bind == 1 ? value : v, bind ? ADD_VALUES : INSERT_VALUES));
    PetscCall(FreeArray(t, &v));
    PetscCall(RecordMat(t, r, bind == 1 ? "type while bound" : "type after MatSetValuesCOO", A));
  }
  if (t->device && strcmp(t->type, MATAIJCUSPARSE) && M > 1 && N > 1) { /* AIJ would continue with the old map */
    PetscScalar    value[5] = {0};
    PetscErrorCode ierr;

    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetValue(A, 0, N - 1, 1.0, INSERT_VALUES));
    PetscCall(MatAssemble(A));
    MayFail(ierr, MatSetValuesCOO(A, value, INSERT_VALUES));
    PetscCheck(ierr == PETSC_ERR_ARG_WRONGSTATE, PETSC_COMM_SELF, PETSC_ERR_PLIB,
               "The map of another pattern was used: error %d", (int)ierr);
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_spmv_coo"));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
