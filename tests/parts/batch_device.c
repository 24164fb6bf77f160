/* Properties of batches on a GPU */
#include "batch.h"

#if defined(PETSC_HAVE_CUDA)
/* Two batches need more shared memory than the default limit of a kernel, the second less than the first: the first
   must still run */
static PetscErrorCode SharedMemory(void)
{
  PetscFunctionBeginUser;
  now_case = "shared memory of two batches";
  for (size_t k = 3; k < PETSC_STATIC_ARRAY_LENGTH(kernels); k++) {
    Arrays a[2];
    Mat    A[2];

    now_kernel = kernels[k];
    for (int m = 0; m < 2; m++) {
      const PetscInt n = (m ? 52 : 104) * 1024 / (PetscInt)sizeof(PetscScalar); /* x takes 104 KB, then 52 */

      PetscCall(ArraysCreate("band", 2, n, n, MATBATCH_SHARE_NONE, &a[m]));
      PetscCall(MatCreateBatch(PETSC_COMM_SELF, 2, a[m].sizes, a[m].i, a[m].j, a[m].a, MATBATCH_SHARE_NONE,
                               PETSC_USE_POINTER, &A[m]));
      PetscCall(SetKernel(A[m], kernels[k]));
      PetscCall(AllProducts(A[m], &a[m], m ? "the second" : "the first"));
    }
    PetscCall(AllProducts(A[0], &a[0], "the first after the second"));
    for (int m = 0; m < 2; m++) {
      PetscCall(MatDestroy(&A[m]));
      PetscCall(ArraysDestroy(&a[m]));
    }
  }
  now_kernel = "auto";
  now_case   = "device";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  There are so many rows that some thread blocks have the largest size, with several windows, and groups have many
  problems. Without sharing, the matrix takes more bytes than the L2 cache has, so that slices are chosen.
*/
static PetscErrorCode Large(void)
{
  int          gpu, cache, processors;
  MatBatchInfo info;

  PetscFunctionBeginUser;
  PetscCallCUDA(cudaGetDevice(&gpu));
  PetscCallCUDA(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, gpu));
  PetscCallCUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu));
  for (int sharing = MATBATCH_SHARE_NONE; sharing <= MATBATCH_SHARE_VALUES; sharing++) {
    const PetscInt rows = 8 * 1024 * (PetscInt)processors, most = sharing ? 7 : 60;
    const PetscInt problems =
        /* 180 entries each */
        1 +
        PetscMax(rows / (sharing ? most : most / 2 - 1), sharing ? 0 : (PetscInt)(cache / 100 / sizeof(PetscScalar)));
    Arrays a;
    Mat    A;

    now_case =
        sharing ? (sharing == MATBATCH_SHARE_VALUES ? "large, values shared" : "large, pattern shared") : "large";
    PetscCall(
        ArraysCreate(sharing ? "holes" : "random", problems, sharing ? most : 0, most, (MatBatchSharing)sharing, &a));
    PetscCall(MatCreateBatch(PETSC_COMM_SELF, problems, a.sizes, a.i, a.j, a.a, a.sharing, PETSC_COPY_VALUES, &A));
    PetscCall(AllProducts(A, &a, "first"));
    PetscCall(MatBatchGetInfo(A, &info));
    Check(strstr(info.kernel, "-bit indices"), info.kernel);
    PetscCall(Infinite(A, &a));
    PetscCall(ChangeValues(A, &a, problems - 1));
    PetscCall(AllProducts(A, &a, "after new values of the last problem"));
    PetscCall(MatDestroy(&A));
    PetscCall(ArraysDestroy(&a));
  }
  now_case = "device";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Atomic additions are not bitwise reproducible */
static PetscErrorCode Near(Vec y, Vec ref, const char *what)
{
  PetscReal norm, error;

  PetscFunctionBeginUser;
  PetscCall(VecNorm(ref, NORM_2, &norm));
  PetscCall(VecAXPY(y, -1.0, ref));
  PetscCall(VecNorm(y, NORM_2, &error));
  Check(error <= 100 * PETSC_MACHINE_EPSILON * norm, what);
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
  PetscCall(VecFill(x));
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
    PetscCall(Near(y[0], ref,
                   one ? "a product, then new values of problems in another stream"
                       : "a product, then new values in another stream"));
    PetscCall(MatMult(A, x, ref));
    PetscCall(Near(y[1], ref, "a product with new values in another stream"));
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscDeviceContextDestroy(&of[k]));
    PetscCall(VecDestroy(&y[k]));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&ref));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arrays of complex numbers that begin between two numbers, in MatMultAdd() */
static PetscErrorCode Unaligned(Mat A)
{
  Vec                v[3], ref; /* y, x, z */
  PetscScalar       *raw[3];
  const PetscScalar *from;
  PetscInt           n;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &v[0], &ref));
  for (int k = 1; k < 3; k++) {
    PetscCall(VecDuplicate(v[0], &v[k]));
    PetscCall(VecFill(v[k]));
  }
  PetscCall(MatMultAdd(A, v[1], v[2], ref));
  PetscCall(VecGetLocalSize(ref, &n));
  for (int k = 0; k < 3; k++) {
    PetscScalar *array;

    PetscCallCUDA(cudaMalloc((void **)&raw[k], (size_t)(n + 1) * sizeof(PetscScalar)));
    array = (PetscScalar *)((PetscReal *)raw[k] + 1);
    if (k) {
      PetscCall(VecCUDAGetArrayRead(v[k], &from));
      PetscCallCUDA(cudaMemcpy(array, from, (size_t)n * sizeof(PetscScalar), cudaMemcpyDeviceToDevice));
      PetscCall(VecCUDARestoreArrayRead(v[k], &from));
    }
    PetscCall(VecCUDAPlaceArray(v[k], array));
  }
  PetscCall(MatMultAdd(A, v[1], v[2], v[0]));
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscCall(VecCUDAResetArray(v[0]));
  PetscCall(VecCUDAGetArrayWrite(v[0], (PetscScalar **)&from)); /* the calculations below need aligned arrays */
  PetscCallCUDA(cudaMemcpy((PetscScalar *)from, (PetscReal *)raw[0] + 1, (size_t)n * sizeof(PetscScalar),
                           cudaMemcpyDeviceToDevice));
  PetscCall(VecCUDARestoreArrayWrite(v[0], (PetscScalar **)&from));
  PetscCall(Near(v[0], ref, "arrays that are not aligned"));
  for (int k = 0; k < 3; k++) {
    if (k) PetscCall(VecCUDAResetArray(v[k]));
    PetscCall(VecDestroy(&v[k]));
    PetscCallCUDA(cudaFree(raw[k]));
  }
  PetscCall(VecDestroy(&ref));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every kernel in several streams and with arrays of any alignment */
static PetscErrorCode EachKernel(void)
{
  PetscFunctionBeginUser;
  now_case = "streams and alignment";
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(kernels); k++) {
    Arrays a;
    Mat    A;

    now_kernel = kernels[k];
    PetscCall(ArraysCreate("mixed", 50, 0, 90, MATBATCH_SHARE_NONE, &a));
    PetscCall(MatCreateBatch(PETSC_COMM_SELF, a.problems, a.sizes, a.i, a.j, a.a, a.sharing, PETSC_COPY_VALUES, &A));
    PetscCall(SetKernel(A, kernels[k]));
    PetscCall(Streams(A, &a));
    PetscCall(Unaligned(A));
    PetscCall(MatDestroy(&A));
    PetscCall(ArraysDestroy(&a));
  }
  now_kernel = "auto";
  now_case   = "device";
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Binds the matrix to the host and back, and mixes vectors on the host and on the device */
PetscErrorCode Device(void)
{
  Arrays       a;
  Mat          A, B, bound;
  Vec          x, y, hx, hy, b;
  MatBatchInfo info;

  PetscFunctionBeginUser;
  now_case = "device";
  PetscCall(ArraysCreate("mixed", 50, 0, 90, MATBATCH_SHARE_NONE, &a));
  PetscCall(
      MatCreateBatch(PETSC_COMM_SELF, a.problems, a.sizes, a.i, a.j, a.a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, &A));
  PetscCall(MakeAIJ(PETSC_COMM_SELF, &a, &B, &bound));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(MatCreateVecs(B, &hx, &hy));
  PetscCall(VecDuplicate(hy, &b));
  PetscCall(VecFill(hx));
  PetscCall(VecCopy(hx, x));
  PetscCall(VecCopy(hx, b));
  PetscCall(VecAbs(b));
  {
    Vec w;

    PetscCall(VecDuplicate(b, &w));
    PetscCall(VecCopy(b, w));
    PetscCall(MatMult(bound, w, b));
    PetscCall(VecDestroy(&w));
  }
  PetscCall(MatMult(A, hx, y));
  PetscCall(MatMult(B, hx, hy));
  PetscCall(Compare(y, hy, b, "x on the host, y on the device"));
  PetscCall(VecSet(y, 0.0));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(MatMult(A, x, y));
  PetscCall(Compare(y, hy, b, "bound to the host"));
  PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscCall(VecSet(y, 0.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(Compare(y, hy, b, "and back"));
  PetscCall(MatBatchGetInfo(A, &info));
  Check(!strstr(info.kernel, "-bit indices"), info.kernel); /* it fits into the L2 cache */
  PetscCall(SharedMemory());
  PetscCall(Large());
  PetscCall(EachKernel());
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&hx));
  PetscCall(VecDestroy(&hy));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&bound));
  PetscCall(ArraysDestroy(&a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies the values of a host vector, or NaN, to the device */
static PetscErrorCode Send(Vec from, Vec to)
{
  PetscScalar *a;
  PetscInt     n;

  PetscFunctionBeginUser;
  PetscCallCUDA(cudaDeviceSynchronize()); /* a new vector is set to zero in the default stream */
  if (from)
    PetscCall(VecCopy(from, to));
  else {
    PetscCall(VecGetLocalSize(to, &n));
    PetscCall(VecGetArrayWrite(to, &a));
    for (PetscInt k = 0; k < n; k++) a[k] = (PetscScalar)NAN;
    PetscCall(VecRestoreArrayWrite(to, &a));
  }
  PetscCall(VecGetArrayAndMemType(to, &a, NULL));
  PetscCall(VecRestoreArrayAndMemType(to, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Products captured in a graph, and replayed with other values of x: they must neither synchronize nor allocate. CUDA's
  default stream cannot be captured, and with another stream nothing else can be tested: VecSet(), VecCopy() and other
  PETSc functions still use the default stream, regardless of the order of the other operations (they pass no device
  context to their asynchronous variants, which then use the context of the default stream; PETSc 3.26).
*/
PetscErrorCode Graph(void)
{
  static const char *const names[] = {"mult", "transpose", "Hermitian transpose"};
  Arrays                   a;
  Mat                      A, B, bound;
  Vec                      x, y, z, hx, hz, ref, b, w;
  cudaStream_t             stream;
  cudaGraph_t              graph;
  cudaGraphExec_t          exec;
  char                     what[128];

  PetscFunctionBeginUser;
  now_case = "graph";
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCheck(stream, PETSC_COMM_WORLD, PETSC_ERR_USER,
             "-cases graph needs -root_device_context_stream_type nonblocking");
  PetscCall(ArraysCreate("mixed", 50, 0, 90, MATBATCH_SHARE_NONE, &a));
  PetscCall(
      MatCreateBatch(PETSC_COMM_SELF, a.problems, a.sizes, a.i, a.j, a.a, MATBATCH_SHARE_NONE, PETSC_COPY_VALUES, &A));
  PetscCall(MakeAIJ(PETSC_COMM_SELF, &a, &B, &bound));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(MatCreateVecs(B, &hx, &ref)); /* on the host */
  PetscCall(VecDuplicate(hx, &hz));
  PetscCall(VecDuplicate(hx, &w));
  PetscCall(VecDuplicate(hx, &b));
  PetscCall(VecFill(hz));
  PetscCall(Send(hz, z));
  for (Op op = MULT; op <= HERMITIAN; op++) {
    for (int add = 0; add < 3; add++) { /* y = A x, y = z + A x, y += A x */
      const Vec from = add == 2 ? y : (add ? z : NULL);

      PetscCall(
          PetscSNPrintf(what, sizeof(what), "%s%s", names[op], add == 0 ? "" : (add == 1 ? " add" : " add in place")));
      PetscCall(VecFill(hx));
      PetscCall(Send(hx, x));
      PetscCall(Send(hz, y));
      PetscCall(Apply(A, op, x, from, y)); /* creates the layout */
      PetscCallCUDA(cudaStreamSynchronize(stream));
      PetscCallCUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      PetscCall(Apply(A, op, x, from, y));
      PetscCallCUDA(cudaStreamEndCapture(stream, &graph));
      PetscCallCUDA(cudaGraphInstantiate(&exec, graph, 0));
      PetscCall(VecFill(hx));
      PetscCall(Send(hx, x));
      PetscCall(Send(add == 2 ? hz : NULL, y));
      PetscCallCUDA(cudaGraphLaunch(exec, stream));
      PetscCallCUDA(cudaStreamSynchronize(stream));
      PetscCall(Apply(B, op, hx, add ? hz : NULL, ref));
      PetscCall(VecCopy(hx, w));
      PetscCall(VecAbs(w));
      if (op == MULT)
        PetscCall(MatMult(bound, w, b));
      else
        PetscCall(MatMultTranspose(bound, w, b));
      if (add) {
        PetscCall(VecCopy(hz, w));
        PetscCall(VecAbs(w));
        PetscCall(VecAXPY(b, 1.0, w));
      }
      PetscCall(Compare(y, ref, b, what));
      PetscCallCUDA(cudaGraphExecDestroy(exec));
      PetscCallCUDA(cudaGraphDestroy(graph));
    }
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&hx));
  PetscCall(VecDestroy(&hz));
  PetscCall(VecDestroy(&ref));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&w));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&bound));
  PetscCall(ArraysDestroy(&a));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
