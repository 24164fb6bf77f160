/*
  The iterations of devicebcgs.
*/
#include "krylov.h"

typedef struct {
  PetscBool inside; /* iterations are in progress, and the solution vector holds y of A B y = b */
  Vec       guess;  /* if inside: the initial guess, to be added to B y; NULL if it is zero */
} KSPDeviceBCGS;

/* The work vectors, in KSPBCGS's order. R also holds s; HAT is B s, or a work vector for PCApplyBAorAB() */
enum { R, R0, V, T, HAT, P };

/* Computes w = A p with our kernels or with PETSc's functions, then the sums */
static PetscErrorCode KSPDeviceBCGSMult(KSP ksp, KSPDeviceRun *run, Vec p, Vec w, KSPDeviceSumsFn *sums)
{
  PetscFunctionBegin;
  if (run->solve.pc == SPMV_KRYLOV_PC_APPLIED) {
    PetscCall(KSPDeviceTouch(p, NULL));
    PetscCall(KSP_PCApplyBAorAB(ksp, p, w, ksp->work[HAT]));
    PetscCall(KSPDeviceTouch(w, NULL)); /* copies w to the device if PETSc has computed it on the host */
    PetscCallCUDA((*sums)(run->krylov, NULL, run->stream));
  } else {
    PetscCall(KSPDeviceTouch(p, &run->p));
    PetscCall(KSPDeviceTouch(w, &run->w));
    PetscCall(KSPDeviceMult(run, p, w, sums));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceBCGSIterate(KSP ksp, KSPDeviceRun *run)
{
  const Vec s = ksp->work[KSPDeviceApplies(ksp, run, PC_RIGHT) ? HAT : R];

  PetscFunctionBegin;
  PetscCall(KSPDeviceBCGSMult(ksp, run, ksp->work[P], ksp->work[V], SpMVCudaBCGSFirst));
  PetscCallCUDA(SpMVCudaBCGSHalf(run->krylov, run->stream));
  PetscCall(KSPDeviceBCGSMult(ksp, run, s, ksp->work[T], SpMVCudaBCGSSecond));
  PetscCallCUDA(SpMVCudaBCGSUpdate(run->krylov, run->stream));
  PetscCall(PetscLogGpuFlops(24. * run->solve.n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceBCGSBegin(KSP ksp, KSPDeviceRun *run)
{
  SpMVCudaBCGS what = {.left = (PetscBool)(ksp->pc_side == PC_LEFT), .dp = ksp->rnorm};

  PetscFunctionBegin;
  if (KSPDeviceApplies(ksp, run, PC_RIGHT)) PetscCall(PCApply(ksp->pc, ksp->work[R], ksp->work[P]));
  PetscCall(KSPDeviceTouch(ksp->vec_sol, &what.x));
  PetscCall(KSPDeviceTouch(ksp->work[R], &what.r));
  PetscCall(KSPDeviceTouch(ksp->work[R0], &what.r0));
  PetscCall(KSPDeviceTouch(ksp->work[V], &what.v));
  PetscCall(KSPDeviceTouch(ksp->work[T], &what.t));
  PetscCall(KSPDeviceTouch(ksp->work[P], &what.p));
  PetscCall(KSPDeviceTouch(ksp->work[HAT], &what.hat));
  PetscCall(KSPDeviceGetTest(ksp, run));
  PetscCallCUDA(SpMVCudaBCGSBegin(run->krylov, &run->solve, &what, run->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Called if t = B A s (or t = A B s) is zero: if s = 0, the solution is x + alpha p */
static PetscErrorCode KSPDeviceBCGSConclude(KSP ksp, KSPDeviceRun *run)
{
  PetscScalar alpha = 0., ss = 1.;
  PetscReal   norm;

  PetscFunctionBegin;
  if (run->status.reason == SPMV_KRYLOV_SINGULAR) PetscCall(VecDot(ksp->work[R], ksp->work[R], &ss));
  if (ss != (PetscScalar)0.0) {
    PetscCall(KSPDeviceConclude(ksp, run));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(KSPDeviceDeliver(ksp, run));
  norm = ksp->rnorm;
  PetscCallCUDA(SpMVCudaBCGSGetStep(run->krylov, &alpha, run->stream));
  PetscCall(VecAXPY(ksp->vec_sol, alpha, ksp->work[P]));
  ksp->its++;
  ksp->rnorm  = 0.;
  ksp->reason = KSP_CONVERGED_RTOL;
  PetscCall(KSPLogResidualHistory(ksp, norm)); /* the same norm as in PETSc */
  PetscCall(KSPMonitor(ksp, ksp->its, 0.));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a right preconditioner that our kernels do not apply, the iterations solve A B y = b, starting from zero */
static PetscErrorCode KSPDeviceBCGSBeginInside(KSP ksp, KSPDeviceBCGS *bcgs)
{
  PetscFunctionBegin;
  bcgs->inside = PETSC_TRUE;
  if (ksp->guess_zero) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecDuplicate(ksp->vec_sol, &bcgs->guess));
  PetscCall(VecCopy(ksp->vec_sol, bcgs->guess));
  PetscCall(VecSet(ksp->vec_sol, 0.));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceBCGSEndInside(KSP ksp, KSPDeviceBCGS *bcgs)
{
  PetscFunctionBegin;
  if (!bcgs->inside) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPUnwindPreconditioner(ksp, ksp->vec_sol, ksp->work[T]));
  if (bcgs->guess) PetscCall(VecAXPY(ksp->vec_sol, 1., bcgs->guess));
  PetscCall(VecDestroy(&bcgs->guess));
  bcgs->inside = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceBCGSSolve(KSP ksp, KSP_Device *d)
{
  KSPDeviceRun  *run  = d->run;
  KSPDeviceBCGS *bcgs = (KSPDeviceBCGS *)d->method;

  PetscFunctionBegin;
  bcgs->inside = PETSC_FALSE; /* may still be true after an error in an earlier solve */
  PetscCall(VecDestroy(&bcgs->guess));
  PetscCall(KSPDeviceRunBegin(ksp, d));
  PetscCall(KSPDeviceGetPC(ksp, run, ksp->work[P], ksp->work[T]));
  PetscCall(KSPInitialResidual(ksp, ksp->vec_sol, ksp->work[V], ksp->work[T], ksp->work[R], ksp->vec_rhs));
  ksp->its   = 0;
  ksp->rnorm = 0.;
  if (ksp->normtype != KSP_NORM_NONE) PetscCall(VecNorm(ksp->work[R], NORM_2, &ksp->rnorm));
  PetscCall(KSPDeviceTestFirst(ksp, run));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  if (ksp->pc_side == PC_RIGHT && run->solve.pc == SPMV_KRYLOV_PC_APPLIED)
    PetscCall(KSPDeviceBCGSBeginInside(ksp, bcgs));
  PetscCall(KSPDeviceBCGSBegin(ksp, run));
  PetscCall(KSPDeviceIterations(ksp, run, KSPDeviceBCGSIterate));
  if (!ksp->reason) PetscCall(KSPDeviceBCGSConclude(ksp, run));
  PetscCall(KSPDeviceBCGSEndInside(ksp, bcgs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPBuildSolution_BCGS() would apply the preconditioner even if the vector already is the solution */
static PetscErrorCode KSPBuildSolution_DeviceBCGS(KSP ksp, Vec v, Vec *V)
{
  KSP_Device    *d = NULL;
  KSPDeviceBCGS *bcgs;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  bcgs = (KSPDeviceBCGS *)d->method;
  if (!d->device) {
    PetscCall((*d->petsc.buildsolution)(ksp, v, V));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCheck(v || !bcgs->inside, PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP,
             "Not working with right preconditioner");
  if (bcgs->inside) {
    PetscCall(KSP_PCApply(ksp, ksp->vec_sol, v));
    if (bcgs->guess) PetscCall(VecAXPY(v, 1., bcgs->guess));
  } else if (v)
    PetscCall(VecCopy(ksp->vec_sol, v));
  *V = v ? v : ksp->vec_sol;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceReset_BCGS(KSP_Device *d)
{
  KSPDeviceBCGS *bcgs = (KSPDeviceBCGS *)d->method;

  PetscFunctionBegin;
  bcgs->inside = PETSC_FALSE;
  PetscCall(VecDestroy(&bcgs->guess));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceCreate_BCGS(KSP ksp, KSP_Device *d)
{
  PetscFunctionBegin;
  PetscCall(PetscCalloc1(1, (KSPDeviceBCGS **)&d->method));
  d->ondevice             = KSPDeviceBCGSSolve;
  d->reset                = KSPDeviceReset_BCGS;
  ksp->ops->buildsolution = KSPBuildSolution_DeviceBCGS;
  PetscFunctionReturn(PETSC_SUCCESS);
}
