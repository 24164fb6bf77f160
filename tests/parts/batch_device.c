/* Batches on a GPU */
#include "batch.h"

#if defined(PETSC_HAVE_CUDA)
/* Without sharing, the matrix takes more bytes than the L2 cache has */
static PetscErrorCode Large(MatBatchSharing sharing)
{
  int      gpu, cache;
  PetscInt problems, most = sharing ? 7 : 60;
  Arrays   a;
  Mat      A;

  PetscFunctionBeginUser;
  now_case = sharing == MATBATCH_SHARE_NONE ? "large" : "large, shared";
  PetscCallCUDA(cudaGetDevice(&gpu));
  PetscCallCUDA(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, gpu));
  problems = (PetscInt)(cache / 100 / sizeof(PetscScalar)); /* 180 entries each, unless they are shared */
  PetscCall(ArraysCreate(sharing ? "holes" : "random", problems, sharing ? most : 0, most, sharing, &a));
  PetscCall(BatchCreate(PETSC_COMM_SELF, &a, PETSC_COPY_VALUES, &A));
  PetscCall(Products(A, &a, "first"));
  PetscCall(ChangeValues(A, &a, problems - 1));
  PetscCall(Products(A, &a, "after new values of the last problem"));
  PetscCall(MatDestroy(&A));
  PetscCall(ArraysDestroy(&a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values of a problem are copied to the device alone, wherever the newest of all are: on both, on the host, and on
   the device */
static PetscErrorCode Refresh(void)
{
  static const char *const names[] = {"after a problem changed", "after all and then a problem changed",
                                      "after MatScale() and then a problem changed"};
  Arrays                   a;
  Mat                      A;
  Vec                      x, y;

  PetscFunctionBeginUser;
  now_case = "refresh";
  PetscCall(ArraysCreate("mixed", 500, 20, 90, MATBATCH_SHARE_NONE, &a));
  PetscCall(BatchCreate(PETSC_COMM_SELF, &a, PETSC_COPY_VALUES, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y)); /* on the device */
  PetscCall(ChangeValues(A, &a, 4));
  for (int k = 0; k < 3; k++) {
    PetscLogDouble before, most = 0;

    if (k == 1) PetscCall(ChangeValues(A, &a, -1));
    if (k == 1) most = a.values; /* all must be copied */
    if (k == 2) {
      PetscCall(MatScale(A, 2.0));
      for (PetscInt64 e = 0; e < a.values; e++) a.a[e] *= 2.0;
    }
    before = petsc_ctog_sz;
    PetscCall(ChangeValues(A, &a, 7));
    PetscCall(MatMult(A, x, y));
    Check(petsc_ctog_sz - before <= (most + 90 * 90) * sizeof(PetscScalar), "only the values of a problem are copied");
    PetscCall(Products(A, &a, names[k]));
  }
  PetscCall(Destroy(&x, &y, &A));
  PetscCall(ArraysDestroy(&a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values that are on the device, before its first product and later */
static PetscErrorCode FromDevice(MatBatchSharing sharing)
{
  Arrays          a;
  Mat             A;
  PetscScalar    *values;
  const PetscInt *i, *j;
  PetscInt        n;

  PetscFunctionBeginUser;
  now_case = "values on the device";
  PetscCall(ArraysCreate(sharing ? "holes" : "mixed", 50, sharing ? 7 : 5, sharing ? 7 : 40, sharing, &a));
  PetscCall(BatchCreate(PETSC_COMM_SELF, &a, PETSC_COPY_VALUES, &A));
  PetscCallCUDA(cudaMalloc((void **)&values, a.values * sizeof(*values)));
  for (int k = 0; k < 2; k++) {
    for (PetscInt64 e = 0; e < a.values; e++) a.a[e] *= 1.5;
    PetscCallCUDA(cudaMemcpy(values, a.a, a.values * sizeof(*values), cudaMemcpyHostToDevice));
    PetscCall(MatBatchSetValues(A, MATBATCH_ALL, values));
    PetscCallCUDA(cudaMemset(values, 0, a.values * sizeof(*values)));
    PetscCall(Products(A, &a, "after values of all problems"));
    PetscCall(MatBatchGetProblem(A, 0, &n, &i, &j, NULL));
    for (PetscInt e = 0; e < i[n]; e++) a.a[e] *= 0.5;
    PetscCallCUDA(cudaMemcpy(values, a.a, i[n] * sizeof(*values), cudaMemcpyHostToDevice));
    PetscCall(MatBatchSetValues(A, 0, values));
    PetscCall(Products(A, &a, "after values of a problem"));
  }
  PetscCallCUDA(cudaFree(values));
  PetscCall(MatDestroy(&A));
  PetscCall(ArraysDestroy(&a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void CUDART_CB Pause(void *seconds)
{
  (void)PetscSleep(*(PetscReal *)seconds);
}

/* A product in one stream that runs late, then new values and a product in another stream: the results are those of the
   order of the calls */
static PetscErrorCode Streams(Mat A, Arrays *a)
{
  PetscReal          pause = 0.02;
  PetscDeviceContext of[2], old;
  cudaStream_t       stream;
  Vec                x, y[2], ref;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, &ref));
  PetscCall(VecDraw(x));
  PetscCall(PetscDeviceContextGetCurrentContext(&old));
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDuplicate(ref, &y[k]));
    PetscCall(VecCopy(x, y[k]));
    PetscCall(PetscDeviceContextCreate(&of[k]));
    PetscCall(PetscDeviceContextSetStreamType(of[k], PETSC_STREAM_NONBLOCKING));
    PetscCall(PetscDeviceContextSetUp(of[k]));
  }
  for (int one = 0; one < 2; one++) { /* all values change, or those of some problems */
    if (one) PetscCall(ChangeValues(A, a, 0));
    PetscCall(MatMult(A, x, ref));
    PetscCallCUDA(cudaDeviceSynchronize());
    PetscCall(PetscDeviceContextSetCurrentContext(of[0]));
    PetscCall(PetscGetCurrentCUDAStream(&stream));
    PetscCallCUDA(cudaLaunchHostFunc(stream, Pause, &pause));
    PetscCall(MatMult(A, x, y[0]));
    PetscCall(PetscDeviceContextSetCurrentContext(of[1]));
    for (PetscInt p = one ? 1 : -1; p < (one ? 9 : 0); p++) PetscCall(ChangeValues(A, a, p));
    PetscCall(MatMult(A, x, y[1]));
    PetscCallCUDA(cudaDeviceSynchronize());
    PetscCall(PetscDeviceContextSetCurrentContext(old));
    PetscCall(Same(y[0], ref,
                   one ? "a product, then new values of problems in another stream"
                       : "a product, then new values in another stream"));
    PetscCall(MatMult(A, x, ref));
    PetscCall(Same(y[1], ref, "a product with new values in another stream"));
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscDeviceContextDestroy(&of[k]));
    PetscCall(VecDestroy(&y[k]));
  }
  PetscCall(Destroy(&x, &ref));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Device(void)
{
  Arrays a;
  Mat    A;

  PetscFunctionBeginUser;
  for (int sharing = MATBATCH_SHARE_NONE; sharing <= MATBATCH_SHARE_PATTERN; sharing++)
    PetscCall(Large((MatBatchSharing)sharing));
  PetscCall(Refresh());
  for (int sharing = MATBATCH_SHARE_NONE; sharing <= MATBATCH_SHARE_PATTERN; sharing++)
    PetscCall(FromDevice((MatBatchSharing)sharing));
  now_case = "streams";
  PetscCall(ArraysCreate("mixed", 50, 0, 90, MATBATCH_SHARE_NONE, &a));
  PetscCall(BatchCreate(PETSC_COMM_SELF, &a, PETSC_COPY_VALUES, &A));
  PetscCall(Streams(A, &a));
  PetscCall(MatDestroy(&A));
  PetscCall(ArraysDestroy(&a));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
