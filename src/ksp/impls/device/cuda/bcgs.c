/*
  The iterations of devicebcgs.
*/
#include "krylov.h"

/* The work vectors, in KSPBCGS's order. R also holds s; HAT is B s, or a work vector for PCApplyBAorAB(). PHAT is B p,
   only with a right preconditioner that PETSc applies */
enum { R, R0, V, T, HAT, P, PHAT };

/* Whether PETSc applies the preconditioner, on the right */
static PetscBool KSPDeviceBCGSOutside(KSP ksp, const KSPDeviceRun *run)
{
  return (PetscBool)(run->solve.pc == SPMV_KRYLOV_PC_APPLIED && ksp->pc_side == PC_RIGHT);
}

/* Computes w = A p with our kernels, or the product with the preconditioned matrix with PETSc's functions, then the
   sums. hat: becomes B p with a right preconditioner */
static PetscErrorCode KSPDeviceBCGSMult(KSP ksp, KSPDeviceRun *run, Vec p, Vec hat, Vec w, KSPDeviceSumsFn *sums)
{
  PetscFunctionBegin;
  if (run->solve.pc == SPMV_KRYLOV_PC_APPLIED) {
    PetscCall(KSPDeviceTouch(p, NULL));
    if (KSPDeviceBCGSOutside(ksp, run)) {
      PetscCall(KSP_PCApply(ksp, p, hat));
      PetscCall(KSP_MatMult(ksp, run->A, hat, w));
      PetscCall(KSPDeviceTouch(hat, NULL)); /* copies it to the device if PETSc has computed it on the host */
    } else
      PetscCall(KSP_PCApplyBAorAB(ksp, p, w, hat));
    PetscCall(KSPDeviceTouch(w, NULL));
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
  const Vec s = ksp->work[KSPDeviceApplies(ksp, run, PC_RIGHT) ? HAT : R], hat = ksp->work[HAT];

  PetscFunctionBegin;
  PetscCall(KSPDeviceBCGSMult(ksp, run, ksp->work[P], KSPDeviceBCGSOutside(ksp, run) ? ksp->work[PHAT] : hat,
                              ksp->work[V], SpMVCudaBCGSFirst));
  PetscCallCUDA(SpMVCudaBCGSHalf(run->krylov, run->stream));
  PetscCall(KSPDeviceBCGSMult(ksp, run, s, hat, ksp->work[T], SpMVCudaBCGSSecond));
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
  if (KSPDeviceBCGSOutside(ksp, run)) PetscCall(KSPDeviceTouch(ksp->work[PHAT], &what.phat));
  PetscCall(KSPDeviceGetTest(ksp, run));
  PetscCallCUDA(SpMVCudaBCGSBegin(run->krylov, &run->solve, &what, run->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Called if t = B A s (or t = A B s) is zero: if s = 0, the solution is x + alpha p (or x + alpha B p) */
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
  PetscCall(VecAXPY(ksp->vec_sol, alpha, ksp->work[KSPDeviceBCGSOutside(ksp, run) ? PHAT : P]));
  ksp->its++;
  ksp->rnorm  = 0.;
  ksp->reason = KSP_CONVERGED_RTOL;
  PetscCall(KSPLogResidualHistory(ksp, norm)); /* the same norm as in PETSc */
  PetscCall(KSPMonitor(ksp, ksp->its, 0.));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceBCGSSolve(KSP ksp, KSP_Device *d)
{
  KSPDeviceRun *run = d->run;

  PetscFunctionBegin;
  PetscCall(KSPDeviceRunBegin(ksp, d));
  PetscCall(KSPDeviceGetPC(ksp, run, ksp->work[P], ksp->work[T]));
  if (KSPDeviceBCGSOutside(ksp, run) && ksp->nwork <= PHAT)
    PetscCall(SpMVAgree(run->comm, KSPSetWorkVecs(ksp, PHAT + 1)));
  PetscCall(KSPInitialResidual(ksp, ksp->vec_sol, ksp->work[V], ksp->work[T], ksp->work[R], ksp->vec_rhs));
  ksp->its   = 0;
  ksp->rnorm = 0.;
  if (ksp->normtype != KSP_NORM_NONE) PetscCall(VecNorm(ksp->work[R], NORM_2, &ksp->rnorm));
  PetscCall(KSPDeviceTestFirst(ksp, run));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPDeviceBCGSBegin(ksp, run));
  PetscCall(KSPDeviceIterations(ksp, run, KSPDeviceBCGSIterate));
  if (!ksp->reason) PetscCall(KSPDeviceBCGSConclude(ksp, run));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPBuildSolution_BCGS() would apply the right preconditioner, but the vector is the solution */
static PetscErrorCode KSPBuildSolution_DeviceBCGS(KSP ksp, Vec v, Vec *V)
{
  KSP_Device *d = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  if (!d->device) {
    PetscCall((*d->petsc.buildsolution)(ksp, v, V));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (v) PetscCall(VecCopy(ksp->vec_sol, v));
  *V = v ? v : ksp->vec_sol;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceCreate_BCGS(KSP ksp, KSP_Device *d)
{
  PetscFunctionBegin;
  d->ondevice             = KSPDeviceBCGSSolve;
  ksp->ops->buildsolution = KSPBuildSolution_DeviceBCGS;
  PetscFunctionReturn(PETSC_SUCCESS);
}
