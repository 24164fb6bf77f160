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

/* A function that records a setting of KSPCG */
#define KSPDeviceCGRecord(Name, Type, member)                       \
  static PetscErrorCode KSPCG##Name##_DeviceCG(KSP ksp, Type value) \
  {                                                                 \
    KSPDeviceCG *cg = NULL;                                         \
                                                                    \
    PetscFunctionBegin;                                             \
    PetscCall(KSPDeviceCGGet(ksp, &cg));                            \
    cg->member = value;                                             \
    PetscCall((*cg->set##member)(ksp, value));                      \
    PetscCall(KSPDeviceTakeSolve(ksp));                             \
    PetscFunctionReturn(PETSC_SUCCESS);                             \
  }                                                                 \
  static PetscErrorCode KSPCG##Name##_DeviceCG(KSP, Type)
KSPDeviceCGRecord(SetType, KSPCGType, type);
KSPDeviceCGRecord(SetRadius, PetscReal, radius);
KSPDeviceCGRecord(SetObjectiveTarget, PetscReal, target);
KSPDeviceCGRecord(UseSingleReduction, PetscBool, single);

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
  Vec R = ksp->work[0], Z = ksp->work[1], P = ksp->work[2];

  PetscFunctionBegin;
  PetscCall(KSPDeviceMult(run, P, Z, SpMVCudaCGProduct));
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
  KSPDeviceRun *run = d->run;
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
  KSPDeviceRun *run = d->run;
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
  if (d->device && d->run) {
    *objective = 0.;
    /* otherwise the solve ended before its first iteration */
    if (ksp->its) PetscCallCUDA(SpMVCudaCGGetObjective(d->run->krylov, objective, d->run->stream));
    *objective += cg->objective;
  } else
    PetscCall((*cg->getobjective)(ksp, objective));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceCreate_CG(KSP ksp, KSP_Device *d)
{
  KSPDeviceCG *cg = NULL;
  PetscObject  o  = (PetscObject)ksp;

  PetscFunctionBegin;
  PetscCall(PetscNew(&cg));
  d->method                = cg;
  d->whynot                = KSPDeviceWhyNot_CG;
  cg->type                 = PetscDefined(USE_COMPLEX) ? KSP_CG_HERMITIAN : KSP_CG_SYMMETRIC; /* as in KSPCG */
  cg->setfromoptions       = ksp->ops->setfromoptions;
  ksp->ops->setfromoptions = KSPSetFromOptions_DeviceCG;
  PetscCall(PetscObjectQueryFunction(o, "KSPCGSetType_C", &cg->settype));
  PetscCall(PetscObjectQueryFunction(o, "KSPCGUseSingleReduction_C", &cg->setsingle));
  PetscCall(PetscObjectQueryFunction(o, "KSPCGSetRadius_C", &cg->setradius));
  PetscCall(PetscObjectQueryFunction(o, "KSPCGSetObjectiveTarget_C", &cg->settarget));
  PetscCall(PetscObjectQueryFunction(o, "KSPCGGetObjFcn_C", &cg->getobjective));
  if (cg->settype) PetscCall(PetscObjectComposeFunction(o, "KSPCGSetType_C", KSPCGSetType_DeviceCG));
  if (cg->setsingle)
    PetscCall(PetscObjectComposeFunction(o, "KSPCGUseSingleReduction_C", KSPCGUseSingleReduction_DeviceCG));
  if (cg->setradius) PetscCall(PetscObjectComposeFunction(o, "KSPCGSetRadius_C", KSPCGSetRadius_DeviceCG));
  if (cg->settarget)
    PetscCall(PetscObjectComposeFunction(o, "KSPCGSetObjectiveTarget_C", KSPCGSetObjectiveTarget_DeviceCG));
  d->ondevice = KSPDeviceCGSolve;
  if (cg->getobjective) PetscCall(PetscObjectComposeFunction(o, "KSPCGGetObjFcn_C", KSPCGGetObjFcn_DeviceCG));
  PetscFunctionReturn(PETSC_SUCCESS);
}
