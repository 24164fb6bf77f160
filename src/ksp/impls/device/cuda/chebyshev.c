/*
  The iterations of devicechebyshev: an iteration is the product and one kernel. PETSc's set-up estimates the
  eigenvalues.
*/
#include "krylov.h"
#include <petsc/private/vecimpl.h>
#include "core/cuda/amg/amg.h"

/* The beginning of KSPCHEBYSHEV's private data in PETSc 3.26; no public function returns the bounds that it uses */
typedef struct {
  PetscReal        emin, emax, emin_computed, emax_computed, emin_provided, emax_provided;
  PetscReal       *betas;
  PetscInt         num_betas_alloc;
  KSP              kspest;
  PetscReal        tform[4];
  PetscInt         eststeps;
  PetscBool        usenoisy;
  KSPChebyshevKind kind;
} KSPDeviceChebyshevData;

/* Checks that the private data have this layout: the members that public functions return must be the same as those
   read here */
static PetscErrorCode KSPDeviceChebyshevCheck(KSP ksp, PetscBool *right)
{
  const KSPDeviceChebyshevData *data = (const KSPDeviceChebyshevData *)ksp->data;
  KSPChebyshevKind              kind;
  KSP                           kspest = NULL;

  PetscFunctionBegin;
  PetscCall(KSPChebyshevGetKind(ksp, &kind));
  *right = (PetscBool)(PETSC_VERSION_LT(3, 27, 0) && kind == data->kind);
  if (*right && data->kspest) PetscCall(KSPChebyshevEstEigGetKSP(ksp, &kspest));
  *right = (PetscBool)(*right && kspest == data->kspest);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same as PETSc's KSPChebyshevGetEigenvalues_Chebyshev() */
static void KSPDeviceChebyshevGetBounds(KSP ksp, PetscReal *emax, PetscReal *emin)
{
  const KSPDeviceChebyshevData *data = (const KSPDeviceChebyshevData *)ksp->data;
  const PetscReal              *t    = data->tform;

  *emax = data->emax;
  *emin = data->emin;
  if (*emax == 0. && data->emax_computed != 0.)
    *emax = t[2] * data->emin_computed + t[3] * data->emax_computed;
  else if (*emax == 0. && data->emax_provided != 0.)
    *emax = t[2] * data->emin_provided + t[3] * data->emax_provided;
  if (*emin == 0. && data->emin_computed != 0.)
    *emin = t[0] * data->emin_computed + t[1] * data->emax_computed;
  else if (*emin == 0. && data->emin_provided != 0.)
    *emin = t[0] * data->emin_provided + t[1] * data->emax_provided;
}

/* The iterations of KSPSolve_Chebyshev_FirstKind() without norms, as kernels. The last one writes into the solution */
static PetscErrorCode KSPDeviceChebyshevSolve(KSP ksp, KSP_Device *d)
{
  KSPDeviceRun     *run  = d->run;
  const PetscInt    last = ksp->max_it - 1;
  Vec               v[3] = {ksp->vec_sol, ksp->work[0], ksp->work[1]}, W = ksp->work[2];
  PetscScalar      *a[3];
  PetscReal         emax, emin, scale, mu, c[3];
  int               before = 0, now = 1, next = 2;
  SpMVCudaChebyshev step = {NULL};

  PetscFunctionBegin;
  PetscCall(KSPDeviceRunBegin(ksp, d));
  PetscCall(KSPDeviceGetPC(ksp, run, v[1], v[2]));
  KSPDeviceChebyshevGetBounds(ksp, &emax, &emin);
  scale     = 2. / (emax + emin);
  mu        = 1. / (1. - scale * emin);
  c[before] = 1.;
  c[now]    = mu;
  for (int k = 0; k < 3; k++) PetscCall(KSPDeviceTouch(v[k], &a[k]));
  PetscCall(KSPDeviceTouch(W, &run->w));
  PetscCall(VecCUDAGetArrayRead(ksp->vec_rhs, &step.b));
  /* x + scale B (b - A x) */
  step.now         = ksp->guess_zero ? NULL : a[before];
  step.w           = ksp->guess_zero ? NULL : run->w;
  step.of_now      = 1.;
  step.of_residual = scale;
  step.next        = a[last ? now : before];
  run->p           = a[before];
  if (step.w) PetscCall(KSPDeviceMult(run, v[before], W, NULL));
  PetscCallCUDA(SpMVCudaChebyshevStep(&run->solve, &step, run->stream));
  step.w = run->w;
  for (PetscInt i = 1; i <= last; i++) {
    PetscReal omega;
    const int t = before;

    c[next]          = 2. * mu * c[now] - c[before];
    omega            = 2. * mu * c[now] / c[next];
    step.before      = a[before];
    step.now         = a[now];
    step.of_before   = 1. - omega;
    step.of_now      = omega;
    step.of_residual = omega * scale;
    step.next        = a[i == last ? 0 : next];
    run->p           = a[now];
    PetscCall(KSPDeviceMult(run, v[now], W, NULL));
    PetscCallCUDA(SpMVCudaChebyshevStep(&run->solve, &step, run->stream));
    before = now;
    now    = next;
    next   = t;
  }
  ksp->its = last + 1;
  PetscCall(VecCUDARestoreArrayRead(ksp->vec_rhs, &step.b));
  PetscCall(PetscLogGpuFlops(7. * run->solve.n * (last + 1)));
  PetscCall(KSPDeviceTouch(W, NULL));
  for (int k = 0; k < 3; k++) PetscCall(KSPDeviceTouch(v[k], NULL));
  ksp->reason = KSP_CONVERGED_ITS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceWhyNot_Chebyshev(KSP ksp, char why[], size_t len)
{
  const KSPDeviceChebyshevData *data = (const KSPDeviceChebyshevData *)ksp->data;
  SpMVKrylovPC                  kind;
  PetscBool                     right;
  PetscInt                      bs;

  PetscFunctionBegin;
  PetscCall(KSPDeviceChebyshevCheck(ksp, &right));
  PetscCall(KSPDeviceClassifyPC(ksp, &kind, &bs));
  if (ksp->normtype != KSP_NORM_NONE)
    PetscCall(PetscStrncpy(why, "norms are computed (-ksp_norm_type none for a smoother)", len));
  else if (ksp->max_it < 1 || ksp->err_hist || ksp->pc_side != PC_LEFT || ksp->reason)
    PetscCall(PetscStrncpy(why, "zero iterations, an error history, a right preconditioner, or a failed preconditioner",
                           len));
  else if (!right)
    PetscCall(PetscStrncpy(why, "KSPCHEBYSHEV's private data have another layout in this PETSc", len));
  else if (data->kind != KSP_CHEBYSHEV_FIRST)
    PetscCall(PetscStrncpy(why, "polynomials of the fourth kind", len));
  else if (kind == SPMV_KRYLOV_PC_APPLIED)
    PetscCall(PetscStrncpy(
        why, "a null space, or a preconditioner that is not none, jacobi, or pbjacobi with blocks of up to 8 rows",
        len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same as KSPSetNoisy_Private(), which makes the noise on the host, if the vector is on the device */
PetscErrorCode KSPDeviceSetNoise(Mat A, Vec b)
{
  MatNullSpace space = NULL;
  PetscInt     first, n;
  PetscScalar *x;
  cudaStream_t stream;
  char         why[256] = "";

  PetscFunctionBegin;
  PetscCall(KSPDeviceWhyNotVec(b, why, sizeof(why)));
  if (why[0] || !SpMVCudaIsSupported()) {
    PetscCall(KSPSetNoisy_Private(A, b));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(VecGetOwnershipRange(b, &first, NULL));
  PetscCall(VecGetLocalSize(b, &n));
  PetscCall(VecCUDAGetArrayWrite(b, &x));
  PetscCallCUDA(SpMVCudaNoise(n, first, x, stream));
  PetscCall(VecCUDARestoreArrayWrite(b, &x));
  if (A) PetscCall(MatGetNullSpace(A, &space));
  if (space) PetscCall(MatNullSpaceRemove(space, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char KSPDeviceVecsName[] = "PetscSpMV_KSPDeviceVecs";

static PetscErrorCode KSPDeviceVecsFree(SpMVCtx ctx)
{
  SpMVCudaTemporary *memory = (SpMVCudaTemporary *)SpMVCtxGet(ctx);
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(SpMVCudaFreeTemporary(memory, stream));
  PetscCall(PetscFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceVecsAllocate(size_t bytes, cudaStream_t stream, SpMVCudaTemporary **memory)
{
  void *array;

  PetscFunctionBegin;
  PetscCall(PetscNew(memory));
  PetscCallCUDA(SpMVCudaUploadTemporary(1, &array, NULL, &bytes, stream, *memory));
  PetscCallCUDA(cudaMemsetAsync(array, 0, bytes, stream)); /* as PETSc's new vectors */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All vectors in one allocation, which belongs to a container that is composed with each of them. Collective, unlike
   PETSc's function: VecCreateMPICUDAWithArrays() is */
static PetscErrorCode VecDuplicateVecs_KSPDevice(Vec x, PetscInt n, Vec *vecs[])
{
  const MPI_Comm     comm = PetscObjectComm((PetscObject)x);
  PetscInt           bs, m, N;
  PetscBool          mpi;
  SpMVCudaTemporary *memory = NULL;
  PetscObject        owner;
  cudaStream_t       stream;
  PetscErrorCode     ierr;
  size_t             bytes; /* of a vector */

  PetscFunctionBegin;
  PetscCall(VecGetBlockSize(x, &bs));
  PetscCall(VecGetLocalSize(x, &m));
  PetscCall(VecGetSize(x, &N));
  PetscCall(PetscObjectTypeCompare((PetscObject)x, VECMPICUDA, &mpi));
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  bytes = ((size_t)m * sizeof(PetscScalar) / 256 + 1) * 256; /* aligned as cudaMalloc() aligns */
  ierr  = SpMVAgree(comm, KSPDeviceVecsAllocate((size_t)n * bytes, stream, &memory));
  if (ierr && memory) {
    PetscCallCUDA(SpMVCudaFreeTemporary(memory, stream));
    PetscCall(PetscFree(memory));
  }
  PetscCall(ierr);
  PetscCall(PetscMalloc1(n, vecs));
  for (PetscInt k = 0; k < n; k++) {
    Vec         *v     = &(*vecs)[k];
    PetscScalar *array = (PetscScalar *)((char *)memory->memory + (size_t)k * bytes);

    if (mpi)
      PetscCall(VecCreateMPICUDAWithArrays(comm, bs, m, N, NULL, array, v));
    else
      PetscCall(VecCreateSeqCUDAWithArrays(comm, bs, m, NULL, array, v));
    if (k) {
      PetscCall(PetscObjectQuery((PetscObject)(*vecs)[0], KSPDeviceVecsName, &owner));
      PetscCall(PetscObjectCompose((PetscObject)*v, KSPDeviceVecsName, owner));
    } else
      PetscCall(SpMVDataSet((PetscObject)*v, KSPDeviceVecsName, memory, KSPDeviceVecsFree));
    (*v)->ops->duplicatevecs = VecDuplicateVecs_KSPDevice;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceAllocateAtOnce(Vec x)
{
  char why[256] = "";

  PetscFunctionBegin;
  PetscCall(KSPDeviceWhyNotVec(x, why, sizeof(why)));
  if (!why[0] && !SpMVCudaIsSupported()) PetscCall(PetscStrncpy(why, "no kernels for this GPU", sizeof(why)));
  /* ranks may differ in what is bound to the CPU, and in their GPUs */
  PetscCall(SpMVAgreeOnText(PetscObjectComm((PetscObject)x), PETSC_TRUE, why, sizeof(why)));
  if (!why[0]) x->ops->duplicatevecs = VecDuplicateVecs_KSPDevice;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode (*KSPSetUp_PETScChebyshev)(KSP);

/* PETSc's set-up, to which the noise is passed as the right-hand side that it may use instead */
static PetscErrorCode KSPSetUp_DeviceChebyshev(KSP ksp)
{
  KSPDeviceChebyshevData *data = (KSPDeviceChebyshevData *)ksp->data;
  Vec                     b = ksp->vec_rhs, x = ksp->vec_sol, noise;
  char                    why[256];
  PetscBool               right, estimates;
  PetscErrorCode          ierr;
  Mat                     A;

  PetscFunctionBegin;
  PetscCall(KSPDeviceChebyshevCheck(ksp, &right));
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(MatSpMVWhyNot_CUDA(A, NULL, why, sizeof(why)));
  /* PCGAMG takes its estimates back when the matrix has new values, and PETSc's set-up then creates the estimator */
  estimates = (PetscBool)(right && data->usenoisy && ksp->work && ksp->nwork >= 2 &&
                          (data->kspest || data->emin_provided == 0. || data->emax_provided == 0.));
  if (estimates) PetscCall(SpMVAgreeOnText(PetscObjectComm((PetscObject)ksp), PETSC_TRUE, why, sizeof(why)));
  if (!estimates || why[0]) {
    PetscCall((*KSPSetUp_PETScChebyshev)(ksp));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  noise = ksp->work[1];
  PetscCall(PetscObjectReference((PetscObject)noise)); /* PETSc replaces the work vectors */
  PetscCall(KSPDeviceSetNoise(A, noise));
  PetscCall(KSPDeviceAllocateAtOnce(noise));
  ksp->vec_rhs   = noise;
  ksp->vec_sol   = noise; /* of which the work vectors are duplicates */
  data->usenoisy = PETSC_FALSE;
  ierr           = (*KSPSetUp_PETScChebyshev)(ksp);
  ksp->vec_rhs   = b; /* even after an error */
  ksp->vec_sol   = x;
  data->usenoisy = PETSC_TRUE;
  PetscCall(VecDestroy(&noise));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceCreate_Chebyshev(KSP ksp, KSP_Device *d)
{
  PetscFunctionBegin;
  (void)ksp;
  KSPSetUp_PETScChebyshev = d->petsc.setup;
  d->petsc.setup          = KSPSetUp_DeviceChebyshev;
  d->whynot               = KSPDeviceWhyNot_Chebyshev;
  d->ondevice             = KSPDeviceChebyshevSolve;
  d->alone                = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
