/*
  The iterations of devicecg.

  The scalars stay in the device's memory, and the device decides when the solve has ended. The device writes what the
  host needs for the history and for monitors to memory that the host can read.
*/
#include "krylov.h"

/* KSPCG keeps these settings in its private structure, so they are recorded here when they are set */
typedef struct {
  KSPCGType type;
  PetscBool single;
  PetscReal radius, target;
  PetscErrorCode (*setfromoptions)(KSP, SpMVOptionItems);
  PetscErrorCode (*settype)(KSP, KSPCGType);
  PetscErrorCode (*setsingle)(KSP, PetscBool);
  PetscErrorCode (*setradius)(KSP, PetscReal);
  PetscErrorCode (*settarget)(KSP, PetscReal);
  PetscErrorCode (*getobjective)(KSP, PetscReal *);
} KSPDeviceCG;

KSPDeviceRecord(KSPCGSetType, KSPDeviceCG, KSPCGType, type, value);
KSPDeviceRecord(KSPCGSetRadius, KSPDeviceCG, PetscReal, radius, value);
KSPDeviceRecord(KSPCGSetObjectiveTarget, KSPDeviceCG, PetscReal, target, value);
KSPDeviceRecord(KSPCGUseSingleReduction, KSPDeviceCG, PetscBool, single, value);

/* KSPCG reads -ksp_cg_type directly into its private structure, so it is read here, too */
static PetscErrorCode KSPSetFromOptions_DeviceCG(KSP ksp, SpMVOptionItems PetscOptionsObject)
{
  KSPDeviceCG *cg = NULL;
  PetscEnum    type;
  PetscBool    set;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGetMethod(ksp, &cg));
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
  PetscCall(KSPDeviceGetMethod(ksp, &cg));
  if (cg->single)
    PetscCall(PetscStrncpy(why, "-ksp_cg_single_reduction", len));
  else if (cg->radius != 0.)
    PetscCall(PetscStrncpy(why, "KSPCGSetRadius()", len));
  else if (cg->target < 0.)
    PetscCall(PetscStrncpy(why, "KSPCGSetObjectiveTarget()", len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z'r in the sense of -ksp_cg_type */
static PetscErrorCode KSPDeviceCGDot(KSPDeviceCG *cg, Vec z, Vec r, PetscScalar *dot)
{
  return cg->type == KSP_CG_HERMITIAN ? VecDot(z, r, dot) : VecTDot(z, r, dot);
}

/* Computes the initial residual and its norm, and tests it, with PETSc's functions: they set the values that later
   tests compare with */
static PetscErrorCode KSPDeviceCGStart(KSP ksp, KSPDeviceRun *run, KSPDeviceCG *cg)
{
  const PetscBool natural = (PetscBool)(ksp->normtype == KSP_NORM_NATURAL);
  const PetscBool early   = (PetscBool)(natural || ksp->normtype == KSP_NORM_PRECONDITIONED); /* Z before the norm */
  const PetscBool none    = (PetscBool)(run->solve.pc == SPMV_KRYLOV_PC_NONE);
  Vec             X = ksp->vec_sol, B = ksp->vec_rhs, R = ksp->work[0], Z = none ? R : ksp->work[1];
  PetscScalar     beta = 0.;

  PetscFunctionBegin;
  ksp->its   = 0;
  ksp->rnorm = 0.;
  if (!ksp->guess_zero) {
    PetscCall(KSP_MatMult(ksp, run->A, X, R));
    PetscCall(VecAYPX(R, -1.0, B));
  } else
    PetscCall(VecCopy(B, R));
  /* perhaps on some ranks only; the norm is then Inf on all ranks */
  PetscCall(VecFlag(R, (PetscInt)(ksp->reason == KSP_DIVERGED_PC_FAILED)));
  ksp->reason = KSP_CONVERGED_ITERATING;
  if (early && !none) PetscCall(KSP_PCApply(ksp, R, Z));
  if (natural) {
    PetscCall(KSPDeviceCGDot(cg, Z, R, &beta));
    KSPCheckDot(ksp, beta);
    ksp->rnorm = PetscSqrtReal(PetscAbsScalar(beta));
  } else if (ksp->normtype != KSP_NORM_NONE)
    PetscCall(VecNorm(early ? Z : R, NORM_2, &ksp->rnorm));
  PetscCall(KSPDeviceTestFirst(ksp, run));
  if (!ksp->reason && !early && !none) PetscCall(KSP_PCApply(ksp, R, Z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Starts an iteration on the device */
static PetscErrorCode KSPDeviceCGIterate(KSP ksp, KSPDeviceRun *run)
{
  Vec R = ksp->work[0], Z = ksp->work[1], P = ksp->work[2];

  PetscFunctionBegin;
  PetscCall(KSPDeviceMult(run, P, Z, SpMVCudaCGProduct));
  PetscCallCUDA(SpMVCudaCGUpdate(run->krylov, run->stream));
  if (run->solve.pc == SPMV_KRYLOV_PC_APPLIED) {
    if (ksp->normtype == KSP_NORM_UNPRECONDITIONED) { /* the last residual needs no preconditioner */
      PetscCallCUDA(cudaStreamSynchronize(run->stream));
      run->status = SpMVCudaKrylovGetStatus(run->krylov);
    }
    if (!run->status.reason) {
      PetscCall(KSPDeviceTouch(R, NULL));
      PetscCall(KSP_PCApply(ksp, R, Z));
      PetscCall(KSPDeviceTouch(Z, NULL)); /* copies Z to the device if PETSc has computed it on the host */
      PetscCallCUDA(SpMVCudaCGSums(run->krylov, run->stream));
    }
  }
  PetscCallCUDA(SpMVCudaCGDirection(run->krylov, run->stream));
  PetscCall(PetscLogGpuFlops(10. * run->solve.n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceCGBegin(KSP ksp, KSPDeviceRun *run, KSPDeviceCG *cg)
{
  SpMVCudaCG what = {.hermitian = (PetscBool)(cg->type == KSP_CG_HERMITIAN),
                     .exchange  = run->plan.receives ? run->plan.sends : NULL};

  PetscFunctionBegin;
  PetscCall(KSPDeviceTouch(ksp->vec_sol, &what.x));
  PetscCall(KSPDeviceTouch(ksp->work[0], &what.r));
  PetscCall(KSPDeviceTouch(ksp->work[1], &what.z));
  PetscCall(KSPDeviceTouch(ksp->work[2], &what.p));
  what.w         = what.z; /* w can use z's array, because z is not read after w is written */
  run->p         = what.p;
  run->w         = what.w;
  run->exchanges = (PetscBool) !!what.exchange;
  PetscCall(KSPDeviceGetTest(ksp, run));
  PetscCallCUDA(SpMVCudaCGBegin(run->krylov, &run->solve, &what, run->stream));
  PetscCallCUDA(SpMVCudaCGDirection(run->krylov, run->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceCGSolve(KSP ksp, KSP_Device *d)
{
  KSPDeviceRun *run = d->run;
  KSPDeviceCG  *cg  = (KSPDeviceCG *)d->method;

  PetscFunctionBegin;
  PetscCall(KSPDeviceRunBegin(ksp, d));
  run->began = PETSC_TRUE;
  PetscCall(KSPDeviceGetPC(ksp, run, ksp->work[2], ksp->work[1]));
  PetscCall(KSPDeviceCGStart(ksp, run, cg));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPDeviceCGBegin(ksp, run, cg));
  PetscCall(KSPDeviceIterations(ksp, run, KSPDeviceCGIterate));
  if (!ksp->reason) PetscCall(KSPDeviceConclude(ksp, run));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x'Ax/2 - x'b */
static PetscErrorCode KSPCGGetObjFcn_DeviceCG(KSP ksp, PetscReal *objective)
{
  KSP_Device  *d = NULL;
  KSPDeviceCG *cg;
  PetscScalar  dot;
  Mat          A;
  Vec          w;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  cg = (KSPDeviceCG *)d->method;
  if (!d->device || !d->run) {
    PetscCall((*cg->getobjective)(ksp, objective));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(KSPGetOperators(ksp, &A, NULL)); /* the matrix of the last solve may be gone */
  PetscCall(VecDuplicate(ksp->vec_sol, &w));
  PetscCall(KSP_MatMult(ksp, A, ksp->vec_sol, w));
  PetscCall(VecAXPBY(w, -1., 0.5, ksp->vec_rhs));
  PetscCall(KSPDeviceCGDot(cg, w, ksp->vec_sol, &dot));
  PetscCall(VecDestroy(&w));
  *objective = PetscRealPart(dot);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceCreate_CG(KSP ksp, KSP_Device *d)
{
  KSPDeviceCG *cg = NULL;

  PetscFunctionBegin;
  PetscCall(PetscNew(&cg));
  d->method                = cg;
  d->whynot                = KSPDeviceWhyNot_CG;
  d->ondevice              = KSPDeviceCGSolve;
  cg->type                 = PetscDefined(USE_COMPLEX) ? KSP_CG_HERMITIAN : KSP_CG_SYMMETRIC; /* as in KSPCG */
  cg->setfromoptions       = ksp->ops->setfromoptions;
  ksp->ops->setfromoptions = KSPSetFromOptions_DeviceCG;
  KSPDeviceReplaceFunction(ksp, "KSPCGSetType_C", KSPCGSetType_Device, &cg->settype);
  KSPDeviceReplaceFunction(ksp, "KSPCGUseSingleReduction_C", KSPCGUseSingleReduction_Device, &cg->setsingle);
  KSPDeviceReplaceFunction(ksp, "KSPCGSetRadius_C", KSPCGSetRadius_Device, &cg->setradius);
  KSPDeviceReplaceFunction(ksp, "KSPCGSetObjectiveTarget_C", KSPCGSetObjectiveTarget_Device, &cg->settarget);
  KSPDeviceReplaceFunction(ksp, "KSPCGGetObjFcn_C", KSPCGGetObjFcn_DeviceCG, &cg->getobjective);
  PetscFunctionReturn(PETSC_SUCCESS);
}
