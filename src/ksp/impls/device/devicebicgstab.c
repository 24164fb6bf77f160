/*
  The type devicebicgstab: PETSc's stabilized biconjugate gradient method, KSPBCGS, with its iterations on the device.
*/
#include "deviceksp.h"

#if defined(PETSCSPMV_HAVE_CUDA)

typedef struct {
  PetscBool inside; /* an iteration is in progress, and the solution is that of A B y = b */
  Vec       guess;  /* then: to be added to B y; or NULL */
} KSPDeviceBCGS;

/* The vectors in the order in which KSPBCGS has them; s has the place of r. hat is B s, or a vector for PCApplyBAorAB() */
enum { R, R0, V, T, HAT, P };

/* The first residual and its norm, by PETSc's functions, and the test of that: they set what later tests compare with */
static PetscErrorCode KSPDeviceBCGSStart(KSP ksp)
{
  Vec       r    = ksp->work[R];
  PetscReal norm = 0.;

  PetscFunctionBegin;
  ksp->its = 0;
  PetscCall(KSPInitialResidual(ksp, ksp->vec_sol, ksp->work[V], ksp->work[T], r, ksp->vec_rhs));
  if (ksp->normtype != KSP_NORM_NONE) {
    PetscCall(VecNorm(r, NORM_2, &norm));
    KSPCheckNorm(ksp, norm);
  }
  ksp->rnorm = norm;
  PetscCall(KSPLogResidualHistory(ksp, norm));
  PetscCall(KSPMonitor(ksp, 0, norm));
  PetscCall((*ksp->converged)(ksp, 0, norm, &ksp->reason, ksp->cnvP));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* w = A p, by our kernels or by PETSc, then the sums */
static PetscErrorCode KSPDeviceBCGSMult(KSP ksp, KSPDeviceRun *run, Vec p, Vec w,
                                        cudaError_t (*fused)(SpMVCudaKrylov, SpMVCudaStore, cudaStream_t, PetscBool *),
                                        cudaError_t (*sums)(SpMVCudaKrylov, cudaStream_t))
{
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (run->pc == SPMV_KRYLOV_PC_APPLIED) {
    PetscCall(KSPDeviceTouch(p, NULL));
    PetscCall(KSP_PCApplyBAorAB(ksp, p, w, ksp->work[HAT]));
    PetscCall(KSPDeviceTouch(w, NULL)); /* to the device, where PETSc has computed it on the host */
  } else {
    PetscCall(KSPDeviceTouch(p, &run->p));
    PetscCall(KSPDeviceTouch(w, &run->w));
    PetscCall(KSPDeviceMult(run, p, w, fused, &done));
  }
  if (!done) PetscCallCUDA((*sums)(run->krylov, run->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceBCGSIterate(KSP ksp, KSPDeviceRun *run)
{
  const PetscBool right = (PetscBool)(ksp->pc_side == PC_RIGHT && (run->pc == SPMV_KRYLOV_PC_POINTS || run->pc == SPMV_KRYLOV_PC_BLOCKS));

  PetscFunctionBegin;
  PetscCall(KSPDeviceBCGSMult(ksp, run, ksp->work[P], ksp->work[V], SpMVCudaBCGSMultFirst, SpMVCudaBCGSFirst));
  PetscCallCUDA(SpMVCudaBCGSHalf(run->krylov, run->stream));
  PetscCall(KSPDeviceBCGSMult(ksp, run, ksp->work[right ? HAT : R], ksp->work[T], SpMVCudaBCGSMultSecond, SpMVCudaBCGSSecond));
  PetscCallCUDA(SpMVCudaBCGSUpdate(run->krylov, run->stream));
  PetscCall(PetscLogGpuFlops(run->flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceBCGSBegin(KSP ksp, KSP_Device *d)
{
  KSPDeviceRun *run = &d->run;
  SpMVCudaBCGS  what;
  PetscInt      n;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&what, sizeof(what)));
  PetscCall(VecGetLocalSize(ksp->vec_sol, &n));
  what.left = (PetscBool)(ksp->pc_side == PC_LEFT);
  if (!what.left && (run->pc == SPMV_KRYLOV_PC_POINTS || run->pc == SPMV_KRYLOV_PC_BLOCKS)) PetscCall(PCApply(ksp->pc, ksp->work[R], ksp->work[P]));
  PetscCall(KSPDeviceTouch(ksp->vec_sol, &what.x));
  PetscCall(KSPDeviceTouch(ksp->work[R], &what.r));
  PetscCall(KSPDeviceTouch(ksp->work[R0], &what.r0));
  PetscCall(KSPDeviceTouch(ksp->work[V], &what.v));
  PetscCall(KSPDeviceTouch(ksp->work[T], &what.t));
  PetscCall(KSPDeviceTouch(ksp->work[P], &what.p));
  PetscCall(KSPDeviceTouch(ksp->work[HAT], &what.hat));
  what.n     = (int)n;
  what.bs    = (int)run->bs;
  what.d     = run->d;
  what.pc    = run->pc;
  what.early = d->early;
  what.dp    = ksp->rnorm;
  PetscCall(KSPDeviceGetTest(ksp, run, &what.until, &what.norm));
  PetscCallCUDA(SpMVCudaBCGSBegin(run->krylov, &what, run->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* t = B A s = 0, or A B s: x + alpha p is the solution if s = 0 */
static PetscErrorCode KSPDeviceBCGSConcludeSingular(KSP ksp, KSPDeviceRun *run)
{
  PetscScalar alpha = 0., ss = 0.;
  PetscReal   norm;

  PetscFunctionBegin;
  PetscCall(KSPDeviceDeliver(ksp, run));
  norm = ksp->rnorm;
  PetscCallCUDA(SpMVCudaBCGSGetStep(run->krylov, &alpha, run->stream));
  PetscCall(VecDot(ksp->work[R], ksp->work[R], &ss));
  if (ss != (PetscScalar)0.0) {
    PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED,
               "KSPSolve has failed due to singular preconditioned operator");
    ksp->reason = KSP_DIVERGED_BREAKDOWN;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecAXPY(ksp->vec_sol, alpha, ksp->work[P]));
  ksp->its++;
  ksp->rnorm  = 0.;
  ksp->reason = KSP_CONVERGED_RTOL;
  PetscCall(KSPLogResidualHistory(ksp, norm)); /* as PETSc has it */
  PetscCall(KSPMonitor(ksp, ksp->its, 0.));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On the right, and not by our kernels: the solution of A B y = b is computed, from zero */
static PetscErrorCode KSPDeviceBCGSEnterInside(KSP ksp, KSPDeviceBCGS *bcgs)
{
  PetscFunctionBegin;
  bcgs->inside = PETSC_TRUE;
  if (ksp->guess_zero) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecDuplicate(ksp->vec_sol, &bcgs->guess));
  PetscCall(VecCopy(ksp->vec_sol, bcgs->guess));
  PetscCall(VecSet(ksp->vec_sol, 0.));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceBCGSLeaveInside(KSP ksp, KSPDeviceBCGS *bcgs)
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
  KSPDeviceRun  *run  = &d->run;
  KSPDeviceBCGS *bcgs = (KSPDeviceBCGS *)d->method;

  PetscFunctionBegin;
  bcgs->inside = PETSC_FALSE; /* after an error */
  PetscCall(VecDestroy(&bcgs->guess));
  PetscCall(KSPDeviceRunBegin(ksp, d, PETSC_TRUE));
  run->flops *= 2.4; /* 24 n */
  PetscCall(KSPDeviceGetPC(ksp, run, ksp->work[P], ksp->work[T]));
  PetscCall(KSPDeviceBCGSStart(ksp));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  if (ksp->pc_side == PC_RIGHT && run->pc == SPMV_KRYLOV_PC_APPLIED) PetscCall(KSPDeviceBCGSEnterInside(ksp, bcgs));
  PetscCall(KSPDeviceBCGSBegin(ksp, d));
  PetscCall(KSPDeviceIterations(ksp, run, KSPDeviceBCGSIterate));
  for (PetscInt k = 0; k < ksp->nwork; k++) PetscCall(KSPDeviceTouch(ksp->work[k], NULL));
  PetscCall(KSPDeviceTouch(ksp->vec_sol, NULL));
  if (!ksp->reason && run->status.reason == SPMV_KRYLOV_SINGULAR)
    PetscCall(KSPDeviceBCGSConcludeSingular(ksp, run));
  else if (!ksp->reason)
    PetscCall(KSPDeviceConclude(ksp, run));
  PetscCall(KSPDeviceBCGSLeaveInside(ksp, bcgs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPBuildSolution_BCGS() would apply the preconditioner to what is the solution */
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
  PetscCheck(v || !bcgs->inside, PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP, "Not working with right preconditioner");
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
#endif

/*MC
   KSPDEVICEBICGSTAB - The stabilized biconjugate gradient method, `KSPBCGS`, for nonsymmetric systems, with its iterations on the GPU: no iteration
   waits for the host

   Options Database Keys:
+  -ksp_type devicebicgstab   - use it
.  -ksp_pc_side <left>        - `left` or `right`, see `KSPSetPCSide()`
.  -ksp_device <true>         - iterate on the device where it applies; false for PETSc's iterations
.  -ksp_device_ahead <4>      - iterations that the host starts before it knows whether an earlier one was the last
.  -ksp_device_fuse <true>    - let the kernels of the products compute inner products, too, where they can
-  -ksp_device_early <true>   - let each kernel be launched before the previous one has ended (compute capability 9.0 and later)

   Level: beginner

   Notes:
   The iterations, the convergence test, and all options and results are those of `KSPBCGS`, except for rounding: sums are added in another order, always the
   same, and (r, r0) is computed before r, from the vectors that r consists of.

   An iteration is two products, which also apply a diagonal preconditioner on the left and compute the inner products where their kernels can, and four
   kernels more. It needs no scalar from the host.

   It applies to matrices of type `MATSELLP` and `MATEVCHYB` on a GPU, and vectors of type `VECCUDA`. In all other cases PETSc's `KSPBCGS` runs: for
   other matrices and vectors, with `KSPSetComputeSingularValues()`, and in `KSPSolveTranspose()`. `-ksp_view` after a solve shows which of the two was used, and why.

   `PCNONE`, `PCJACOBI` and `PCPBJACOBI` (blocks of up to 8 rows) are part of the kernels, on either side. Other preconditioners, and all with a null
   space, are applied by `PCApplyBAorAB()` in between; the host then waits for each iteration. What is said of the host, of several processes and of
   norms in `KSPDEVICECG` holds here, too.

.seealso: `KSPBCGS`, `KSPDEVICECG`, `MATSELLP`, `MATEVCHYB`, `KSPSetType()`, `KSPSetPCSide()`
M*/
PetscErrorCode KSPCreate_DeviceBiCGStab(KSP ksp)
{
  KSP_Device *d = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceCreate(ksp, KSPBCGS, &d));
#if defined(PETSCSPMV_HAVE_CUDA)
  PetscCall(PetscCalloc1(1, (KSPDeviceBCGS **)&d->method));
  d->ondevice             = KSPDeviceBCGSSolve;
  d->reset                = KSPDeviceReset_BCGS;
  ksp->ops->buildsolution = KSPBuildSolution_DeviceBCGS;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
