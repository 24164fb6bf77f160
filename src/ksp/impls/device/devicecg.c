/*
  The type devicecg: PETSc's conjugate gradient method, KSPCG, with its iterations on the device.

  The scalars stay in the device's memory, and the device decides when the solve has ended. The device writes what the
  host needs for the history and for monitors to memory that the host can read.
*/
#include "deviceksp.h"

/* KSPCG keeps these settings in its private structure, so they are recorded here when they are set */
typedef struct {
  KSPCGType type;
  PetscBool single;
  PetscReal radius, target;
  PetscErrorCode (*setfromoptions)(KSP, SpMVOptionItems);
  PetscErrorCode (*settype)(KSP, KSPCGType);
  PetscErrorCode (*usesingle)(KSP, PetscBool);
  PetscErrorCode (*setradius)(KSP, PetscReal);
  PetscErrorCode (*settarget)(KSP, PetscReal);
  PetscErrorCode (*getobjective)(KSP, PetscReal *);
  PetscReal objective; /* at the beginning of a solve on the device */
} KSPDeviceCG;

static PetscErrorCode KSPDeviceCGGet(KSP ksp, KSPDeviceCG **cg)
{
  KSP_Device *d = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  *cg = (KSPDeviceCG *)d->method;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCGSetType_DeviceCG(KSP ksp, KSPCGType type)
{
  KSPDeviceCG *cg = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceCGGet(ksp, &cg));
  cg->type = type;
  PetscCall((*cg->settype)(ksp, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPCG's function replaces ops->solve */
static PetscErrorCode KSPCGUseSingleReduction_DeviceCG(KSP ksp, PetscBool flag)
{
  KSP_Device  *d               = NULL;
  KSPDeviceCG *cg              = NULL;
  PetscErrorCode (*solve)(KSP) = ksp->ops->solve;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  cg         = (KSPDeviceCG *)d->method;
  cg->single = flag;
  PetscCall((*cg->usesingle)(ksp, flag));
  d->petsc.solve  = ksp->ops->solve;
  ksp->ops->solve = solve;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCGSetRadius_DeviceCG(KSP ksp, PetscReal radius)
{
  KSPDeviceCG *cg = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceCGGet(ksp, &cg));
  cg->radius = radius;
  PetscCall((*cg->setradius)(ksp, radius));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCGSetObjectiveTarget_DeviceCG(KSP ksp, PetscReal target)
{
  KSPDeviceCG *cg = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceCGGet(ksp, &cg));
  cg->target = target;
  PetscCall((*cg->settarget)(ksp, target));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPCG reads -ksp_cg_type directly into its private structure, so it is read here, too */
static PetscErrorCode KSPSetFromOptions_DeviceCG(KSP ksp, SpMVOptionItems PetscOptionsObject)
{
  KSPDeviceCG *cg = NULL;
  PetscEnum    type;
  PetscBool    set;

  PetscFunctionBegin;
  PetscCall(KSPDeviceCGGet(ksp, &cg));
  if (PetscDefined(USE_COMPLEX)) {
    PetscCall(PetscOptionsGetEnum(((PetscObject)ksp)->options, ((PetscObject)ksp)->prefix, "-ksp_cg_type", KSPCGTypes,
                                  &type, &set));
    if (set) cg->type = (KSPCGType)type;
  }
  PetscCall((*cg->setfromoptions)(ksp, PetscOptionsObject));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceWhyNot_CG(KSP ksp, char why[], size_t len)
{
  KSPDeviceCG *cg = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceCGGet(ksp, &cg));
  if (cg->single)
    PetscCall(PetscStrncpy(why, "-ksp_cg_single_reduction", len));
  else if (cg->radius != 0.)
    PetscCall(PetscStrncpy(why, "KSPCGSetRadius()", len));
  else if (cg->target < 0.)
    PetscCall(PetscStrncpy(why, "KSPCGSetObjectiveTarget()", len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSCSPMV_HAVE_CUDA)

/* z'r in the sense of -ksp_cg_type */
static PetscErrorCode KSPDeviceCGDot(KSPDeviceCG *cg, Vec z, Vec r, PetscScalar *dot)
{
  PetscFunctionBegin;
  if (cg->type == KSP_CG_HERMITIAN)
    PetscCall(VecDot(z, r, dot));
  else
    PetscCall(VecTDot(z, r, dot));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Computes the initial residual and its norm, and tests it, with PETSc's functions: they set the values that later
   tests compare with */
static PetscErrorCode KSPDeviceCGStart(KSP ksp, KSPDeviceRun *run, KSPDeviceCG *cg)
{
  Vec       X = ksp->vec_sol, B = ksp->vec_rhs, R = ksp->work[0], Z = run->pc == SPMV_KRYLOV_PC_NONE ? R : ksp->work[1];
  PetscReal norm   = 0.;
  PetscScalar beta = 0., a[2] = {0., 0.};

  PetscFunctionBegin;
  ksp->its = 0;
  if (!ksp->guess_zero) {
    PetscCall(KSP_MatMult(ksp, run->A, X, R));
    PetscCall(VecAYPX(R, -1.0, B));
    PetscCall(KSPDeviceCGDot(cg, R, X, &a[0]));
    PetscCall(KSPDeviceCGDot(cg, B, X, &a[1]));
  } else
    PetscCall(VecCopy(B, R));
  cg->objective = 0.5 * PetscRealPart(a[0] - a[1]);
  /* perhaps on some ranks only; the norm is then Inf on all ranks */
  PetscCall(VecFlag(R, (PetscInt)(ksp->reason == KSP_DIVERGED_PC_FAILED)));
  ksp->reason = KSP_CONVERGED_ITERATING;
  switch (ksp->normtype) {
  case KSP_NORM_PRECONDITIONED:
    if (Z != R) PetscCall(KSP_PCApply(ksp, R, Z));
    PetscCall(VecNorm(Z, NORM_2, &norm));
    KSPCheckNorm(ksp, norm);
    break;
  case KSP_NORM_UNPRECONDITIONED:
    PetscCall(VecNorm(R, NORM_2, &norm));
    KSPCheckNorm(ksp, norm);
    break;
  case KSP_NORM_NATURAL:
    if (Z != R) PetscCall(KSP_PCApply(ksp, R, Z));
    PetscCall(KSPDeviceCGDot(cg, Z, R, &beta));
    KSPCheckDot(ksp, beta);
    norm = PetscSqrtReal(PetscAbsScalar(beta));
    break;
  default: break;
  }
  PetscCall(KSPLogResidualHistory(ksp, norm));
  PetscCall(KSPMonitor(ksp, 0, norm));
  ksp->rnorm = norm;
  PetscCall((*ksp->converged)(ksp, 0, norm, &ksp->reason, ksp->cnvP));
  if (!ksp->reason && Z != R && ksp->normtype != KSP_NORM_PRECONDITIONED && ksp->normtype != KSP_NORM_NATURAL)
    PetscCall(KSP_PCApply(ksp, R, Z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Starts an iteration on the device */
static PetscErrorCode KSPDeviceCGIterate(KSP ksp, KSPDeviceRun *run)
{
  Vec       R = ksp->work[0], Z = ksp->work[1], P = ksp->work[2];
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(KSPDeviceMult(run, P, Z, SpMVCudaCGMult, &done));
  if (!done) PetscCallCUDA(SpMVCudaCGProduct(run->krylov, run->stream));
  PetscCallCUDA(SpMVCudaCGUpdate(run->krylov, run->stream));
  if (run->pc == SPMV_KRYLOV_PC_APPLIED) {
    /* the last residual needs no preconditioner */
    if (ksp->normtype == KSP_NORM_UNPRECONDITIONED) PetscCall(KSPDeviceAwaitNorm(run));
    if (!run->status.reason) {
      PetscCall(KSPDeviceTouch(R, NULL));
      PetscCall(KSP_PCApply(ksp, R, Z));
      PetscCall(KSPDeviceTouch(Z, NULL)); /* copies Z to the device if PETSc has computed it on the host */
      PetscCallCUDA(SpMVCudaCGSums(run->krylov, run->stream));
    }
  }
  PetscCallCUDA(SpMVCudaCGDirection(run->krylov, run->stream));
  PetscCall(PetscLogGpuFlops(run->flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceCGBegin(KSP ksp, KSP_Device *d, KSPDeviceCG *cg)
{
  KSPDeviceRun *run = &d->run;
  SpMVCudaCG    what;
  PetscInt      n;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&what, sizeof(what)));
  PetscCall(VecGetLocalSize(ksp->vec_sol, &n));
  PetscCall(KSPDeviceTouch(ksp->vec_sol, &what.x));
  PetscCall(KSPDeviceTouch(ksp->work[0], &what.r));
  PetscCall(KSPDeviceTouch(ksp->work[1], &what.z));
  PetscCall(KSPDeviceTouch(ksp->work[2], &what.p));
  what.w         = what.z; /* w can use z's array, because z is not read after w is written */
  what.n         = (int)n;
  what.bs        = (int)run->bs;
  what.d         = run->d;
  what.pc        = run->pc;
  what.hermitian = (PetscBool)(cg->type == KSP_CG_HERMITIAN);
  what.early     = d->early;
  run->p         = what.p;
  run->w         = what.w;
  PetscCall(KSPDeviceGetTest(ksp, run, &what.until, &what.norm));
  PetscCallCUDA(SpMVCudaCGBegin(run->krylov, &what, run->stream));
  PetscCallCUDA(SpMVCudaCGDirection(run->krylov, run->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceCGSolve(KSP ksp, KSP_Device *d)
{
  KSPDeviceRun *run = &d->run;
  KSPDeviceCG  *cg  = (KSPDeviceCG *)d->method;

  PetscFunctionBegin;
  PetscCall(KSPDeviceRunBegin(ksp, d));
  run->began = PETSC_TRUE;
  PetscCall(KSPDeviceGetPC(ksp, run, ksp->work[2], ksp->work[1]));
  PetscCall(KSPDeviceCGStart(ksp, run, cg));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPDeviceCGBegin(ksp, d, cg));
  PetscCall(KSPDeviceIterations(ksp, run, KSPDeviceCGIterate));
  if (!ksp->reason) PetscCall(KSPDeviceConclude(ksp, run));
  PetscCall(KSPDeviceTouch(ksp->vec_sol, NULL));
  for (PetscInt k = 0; k < 3; k++) PetscCall(KSPDeviceTouch(ksp->work[k], NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPCGGetObjFcn_DeviceCG(KSP ksp, PetscReal *objective)
{
  KSP_Device  *d  = NULL;
  KSPDeviceCG *cg = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  cg = (KSPDeviceCG *)d->method;
  if (d->device && d->run.krylov) {
    *objective = 0.;
    /* otherwise the solve ended before its first iteration */
    if (ksp->its) PetscCallCUDA(SpMVCudaCGGetObjective(d->run.krylov, objective, d->run.stream));
    *objective += cg->objective;
  } else
    PetscCall((*cg->getobjective)(ksp, objective));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/*MC
   KSPDEVICECG - The preconditioned conjugate gradient method, `KSPCG`, with its iterations on the GPU; no iteration
   waits for the host

   Options Database Key:
.  -ksp_type devicecg - use this type

   Intermediate Options Database Keys:
+  -ksp_cg_type <hermitian> - with complex numbers, whether the matrix is `hermitian` or `symmetric`, see `KSPCGSetType()`
.  -ksp_cg_single_reduction - PETSc's variant with one reduction, with PETSc's iterations
-  -ksp_device <true>       - iterate on the device if possible; false for PETSc's iterations

   Advanced Options Database Keys:
+  -ksp_device_ahead <4>    - number of iterations that the host starts before it knows whether an earlier one was the last
.  -ksp_device_fuse <true>  - let the kernels of the products also compute inner products if they can
-  -ksp_device_early <true> - launch each kernel before the previous one has ended (compute capability 9.0 and later)

   Level: beginner

   Notes:
   The iterations, the convergence test, and all options and results are the same as for `KSPCG`, except for rounding
   errors, because terms are added in a different but fixed order. An iteration consists of the product and two more
   kernels if the product's kernel can also compute p'Ap, otherwise three more kernels. They need no scalar from the
   host. The default convergence test is evaluated on the GPU.

   The GPU iterations are used for matrices of type `MATSELLP` and `MATEVCHYB` on a GPU and vectors of type `VECCUDA`.
   In all other cases PETSc's `KSPCG` runs:
   for other matrices and vectors, with `KSPCGSetRadius()`, `KSPCGSetObjectiveTarget()`, `KSPCGUseSingleReduction()` or
   `KSPSetComputeEigenvalues()`, and in `KSPSolveTranspose()`. `-ksp_view` after a solve shows which of the two was
   used, and why.

   `PCNONE`, `PCJACOBI` and `PCPBJACOBI` (blocks of up to 8 rows) are applied by the kernels. Other preconditioners, and
   all preconditioners if there is a null space, are applied by `PCApply()` between the kernels; the host then waits for
   each iteration, because `PCApply()` may launch other work.

   With a user-defined convergence test (`KSPSetConvergenceTest()`) or a monitor that may read more than the norm (all
   but `-ksp_monitor`), the host waits for each iteration.

   On several processes, sums over processes are computed through the memory of the other GPUs if the halo is exchanged
   in this way (see `-mat_spmv_halo`), by NCCL, or by MPI. With the first two the host takes no part in an iteration.
   The product's kernel computes no inner product then; a kernel more does that.

   The norm of a vector is the square root of the sum of squares, without scaling: a residual with entries above 1e154
   has the norm Inf.

.seealso: `KSPCG`, `MATSELLP`, `MATEVCHYB`, `KSPSetType()`, `KSPCGSetType()`
M*/
PetscErrorCode KSPCreate_DeviceCG(KSP ksp)
{
  KSP_Device  *d  = NULL;
  KSPDeviceCG *cg = NULL;
  PetscObject  o  = (PetscObject)ksp;

  PetscFunctionBegin;
  PetscCall(KSPDeviceCreate(ksp, KSPCG, &d));
  PetscCall(PetscNew(&cg));
  d->method                = cg;
  d->whynot                = KSPDeviceWhyNot_CG;
  cg->type                 = PetscDefined(USE_COMPLEX) ? KSP_CG_HERMITIAN : KSP_CG_SYMMETRIC; /* as in KSPCG */
  cg->setfromoptions       = ksp->ops->setfromoptions;
  ksp->ops->setfromoptions = KSPSetFromOptions_DeviceCG;
  PetscCall(PetscObjectQueryFunction(o, "KSPCGSetType_C", &cg->settype));
  PetscCall(PetscObjectQueryFunction(o, "KSPCGUseSingleReduction_C", &cg->usesingle));
  PetscCall(PetscObjectQueryFunction(o, "KSPCGSetRadius_C", &cg->setradius));
  PetscCall(PetscObjectQueryFunction(o, "KSPCGSetObjectiveTarget_C", &cg->settarget));
  PetscCall(PetscObjectQueryFunction(o, "KSPCGGetObjFcn_C", &cg->getobjective));
  if (cg->settype) PetscCall(PetscObjectComposeFunction(o, "KSPCGSetType_C", KSPCGSetType_DeviceCG));
  if (cg->usesingle)
    PetscCall(PetscObjectComposeFunction(o, "KSPCGUseSingleReduction_C", KSPCGUseSingleReduction_DeviceCG));
  if (cg->setradius) PetscCall(PetscObjectComposeFunction(o, "KSPCGSetRadius_C", KSPCGSetRadius_DeviceCG));
  if (cg->settarget)
    PetscCall(PetscObjectComposeFunction(o, "KSPCGSetObjectiveTarget_C", KSPCGSetObjectiveTarget_DeviceCG));
#if defined(PETSCSPMV_HAVE_CUDA)
  d->ondevice = KSPDeviceCGSolve;
  if (cg->getobjective) PetscCall(PetscObjectComposeFunction(o, "KSPCGGetObjFcn_C", KSPCGGetObjFcn_DeviceCG));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
