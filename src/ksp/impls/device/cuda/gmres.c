/*
  The iterations of devicegmres and devicefgmres. If the kernels apply the preconditioner, it cannot change between
  iterations, and the second is the first with the preconditioner on the right.
*/
#include "krylov.h"
#include "core/cuda/krylov/gmres.h"

/* Vectors, created when they are needed */
typedef struct {
  PetscInt      count;
  Vec          *V;
  PetscScalar **v; /* the arrays of those that are in use */
} KSPDeviceBasis;

typedef struct {
  PetscBool flexible;             /* devicefgmres */
  PetscBool modifies;             /* KSPFlexibleSetModifyPC() was called */
  PetscReal haptol, breakdowntol; /* KSPGMRES keeps these settings in its private structure */
  PetscErrorCode (*sethaptol)(KSP, PetscReal);
  PetscErrorCode (*setbreakdowntol)(KSP, PetscReal);
  PetscErrorCode (*setmodifypc)(KSP, KSPFlexibleModifyPCFn *, PetscCtx, PetscCtxDestroyFn *);
  PetscErrorCode (*solve)(KSP);
  PetscBool      ready; /* PETSc's set-up is done, which a solve on the device does not need */
  SpMVCudaGMRES  gmres;
  PetscInt       restart; /* for which the following have room */
  KSPDeviceBasis basis;
  KSPDeviceBasis applied; /* devicefgmres: PCApply() of each vector of the basis */
  Vec            sol;     /* for KSPBuildSolution() without a vector */
  PetscReal      rnorm0;  /* the norm of the first residual of the last cycle */
  PetscInt       next;    /* iteration of the cycle, from 0 */
} KSPDeviceGMRES;

KSPDeviceRecord(KSPGMRESSetHapTol, KSPDeviceGMRES, PetscReal, haptol, value);
KSPDeviceRecord(KSPGMRESSetBreakdownTolerance, KSPDeviceGMRES, PetscReal, breakdowntol,
                value == (PetscReal)PETSC_DEFAULT ? 0.1 : value);

static PetscErrorCode KSPFlexibleSetModifyPC_DeviceGMRES(KSP ksp, KSPFlexibleModifyPCFn *f, PetscCtx ctx,
                                                         PetscCtxDestroyFn *destroy)
{
  KSPDeviceGMRES *gm = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGetMethod(ksp, &gm));
  PetscCall((*gm->setmodifypc)(ksp, f, ctx, destroy));
  gm->modifies = (PetscBool)(f != KSPFlexibleModifyPCNoChange);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetUp_DeviceGMRES(KSP ksp)
{
  KSPDeviceGMRES *gm = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGetMethod(ksp, &gm));
  gm->ready = PETSC_FALSE;
  PetscCall(KSPSetWorkVecs(ksp, 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's iterations, with its set-up if that has not been done */
static PetscErrorCode KSPDeviceGMRESSolve_PETSc(KSP ksp)
{
  KSP_Device     *d = NULL;
  KSPDeviceGMRES *gm;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  gm = (KSPDeviceGMRES *)d->method;
  if (!gm->ready) PetscCall((*d->petsc.setup)(ksp));
  gm->ready = PETSC_TRUE;
  PetscCall((*gm->solve)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceWhyNot_GMRES(KSP ksp, char why[], size_t len)
{
  KSPDeviceGMRES *gm = NULL;
  PetscInt        restart;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGetMethod(ksp, &gm));
  PetscCall(KSPGMRESGetRestart(ksp, &restart));
  if (gm->modifies)
    PetscCall(PetscStrncpy(why, "KSPFlexibleSetModifyPC()", len));
  else if (restart > SPMV_GMRES_MOST)
    PetscCall(PetscSNPrintf(why, len, "-ksp_gmres_restart is above %d", SPMV_GMRES_MOST));
  else if (ksp->orthog != KSPOrthogonalizationClassicalGramSchmidt)
    PetscCall(PetscStrncpy(why, "-ksp_orthogonalization is not cgs", len));
  else if (ksp->cgstype == KSP_ORTHOGONALIZATION_CGS_REFINE_IFNEEDED)
    PetscCall(PetscStrncpy(why, "-ksp_orthogonalization_cgs_refinement_type is refine_ifneeded", len));
  else if (ksp->calc_ritz)
    PetscCall(PetscStrncpy(why, "Ritz pairs are computed", len));
  for (PetscInt k = 0; k < ksp->numbermonitors; k++) {
    if (ksp->monitor[k] == (KSPMonitorFn *)KSPGMRESMonitorKrylov)
      PetscCall(PetscStrncpy(why, "-ksp_gmres_krylov_monitor", len));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceBasisReset(KSPDeviceBasis *b)
{
  PetscFunctionBegin;
  while (b->count) PetscCall(VecDestroy(&b->V[--b->count]));
  PetscCall(PetscFree2(b->V, b->v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceReset_GMRES(KSP_Device *d)
{
  KSPDeviceGMRES *gm = (KSPDeviceGMRES *)d->method;

  PetscFunctionBegin;
  PetscCall(KSPDeviceBasisReset(&gm->basis));
  PetscCall(KSPDeviceBasisReset(&gm->applied));
  PetscCall(VecDestroy(&gm->sol));
  PetscCallCUDA(SpMVCudaGMRESDestroy(&gm->gmres));
  gm->restart = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Room for a cycle */
static PetscErrorCode KSPDeviceReserve_GMRES(KSP ksp, KSP_Device *d, char why[], size_t len)
{
  KSPDeviceGMRES *gm = (KSPDeviceGMRES *)d->method;
  PetscInt        restart;

  PetscFunctionBegin;
  PetscCall(KSPGMRESGetRestart(ksp, &restart));
  if (gm->restart == restart) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPDeviceReset_GMRES(d));
  PetscCall(KSPDeviceCheckMemory(SpMVCudaGMRESCreate(d->run->krylov, (int)restart, &gm->gmres), why, len));
  if (!why[0]) gm->restart = restart;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Creates vectors until there are `count` of at most `most` */
static PetscErrorCode KSPDeviceBasisGet(KSP ksp, KSPDeviceBasis *b, PetscInt count, PetscInt most)
{
  PetscFunctionBegin;
  if (!b->V) PetscCall(PetscMalloc2(most, &b->V, most, &b->v));
  for (; b->count < count; b->count++) PetscCall(VecDuplicate(ksp->work[0], &b->V[b->count]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* If the kernels apply the preconditioner on the right, A multiplies work[1] instead of the last vector of the basis;
   with blocks on the left, the product is in work[0] */
static PetscErrorCode KSPDeviceGMRESIterate(KSP ksp, KSPDeviceRun *run)
{
  KSPDeviceGMRES *gm = NULL;
  PetscInt        k;
  Vec             p, w, *V;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGetMethod(ksp, &gm));
  k = gm->next++;
  PetscCall(KSPDeviceBasisGet(ksp, &gm->basis, k + 2, gm->restart + 1));
  V = gm->basis.V;
  p = KSPDeviceApplies(ksp, run, PC_RIGHT) ? ksp->work[1] : V[k];
  w = KSPDeviceApplies(ksp, run, PC_LEFT) && run->solve.pc == SPMV_KRYLOV_PC_BLOCKS ? ksp->work[0] : V[k + 1];
  PetscCall(KSPDeviceTouch(p, &run->p));
  if (run->solve.pc == SPMV_KRYLOV_PC_APPLIED && gm->flexible) {
    PetscCall(KSPDeviceBasisGet(ksp, &gm->applied, k + 1, gm->restart + 1));
    PetscCall(KSP_PCApply(ksp, p, gm->applied.V[k]));
    PetscCall(KSP_MatMult(ksp, run->A, gm->applied.V[k], w));
    PetscCall(KSPDeviceTouch(gm->applied.V[k], &gm->applied.v[k]));
  } else if (run->solve.pc == SPMV_KRYLOV_PC_APPLIED)
    PetscCall(KSP_PCApplyBAorAB(ksp, p, w, ksp->work[1]));
  else {
    PetscCall(KSPDeviceTouch(w, &run->w));
    PetscCall(KSPDeviceMult(run, p, w, NULL));
  }
  PetscCall(KSPDeviceTouch(w, NULL)); /* copies it to the device if PETSc has computed it on the host */
  PetscCall(KSPDeviceTouch(V[k + 1], &gm->basis.v[k + 1]));
  PetscCallCUDA(SpMVCudaGMRESStep(gm->gmres, (int)k, gm->basis.v, run->stream));
  if (gm->next == run->length || run->exact || run->solve.pc == SPMV_KRYLOV_PC_APPLIED)
    PetscCallCUDA(SpMVCudaGMRESFinish(gm->gmres, (int)k, gm->basis.v, run->stream));
  PetscCall(PetscLogGpuFlops((4. * (k + 1) + 4.) * run->solve.n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The beginning of a cycle on the device, from the residual in V[0] with norm ksp->rnorm */
static PetscErrorCode KSPDeviceGMRESBegin(KSP ksp, KSPDeviceRun *run, KSPDeviceGMRES *gm)
{
  SpMVCudaGMRESCycle cycle = {.left       = (PetscBool)!KSPDeviceApplies(ksp, run, PC_RIGHT),
                              .again      = (PetscBool)(ksp->cgstype == KSP_ORTHOGONALIZATION_CGS_REFINE_ALWAYS),
                              .flexible   = gm->flexible,
                              .normalized = (PetscBool)(run->solve.pc == SPMV_KRYLOV_PC_APPLIED),
                              .beta       = ksp->rnorm,
                              .haptol     = gm->haptol,
                              .before     = (int)ksp->its};

  PetscFunctionBegin;
  if (cycle.normalized) PetscCall(VecScale(gm->basis.V[0], 1. / ksp->rnorm));
  if (!cycle.left) PetscCall(PCApply(ksp->pc, gm->basis.V[0], ksp->work[1]));
  PetscCall(KSPDeviceTouch(gm->basis.V[0], &gm->basis.v[0]));
  PetscCall(KSPDeviceTouch(ksp->work[0], &cycle.product));
  PetscCall(KSPDeviceTouch(ksp->work[1], &cycle.next));
  PetscCall(KSPDeviceGetTest(ksp, run));
  PetscCallCUDA(SpMVCudaGMRESBegin(gm->gmres, &run->solve, &cycle, run->stream));
  gm->next = 0;
  KSPDeviceRunRestart(ksp, run);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets `to`, which may be the solution, to the solution with the correction from the first k iterations of the cycle */
static PetscErrorCode KSPDeviceGMRESBuild(KSP ksp, KSP_Device *d, PetscInt k, Vec to)
{
  KSPDeviceRun   *run = d->run;
  KSPDeviceGMRES *gm  = (KSPDeviceGMRES *)d->method;
  const PetscBool in = (PetscBool)(run->solve.pc == SPMV_KRYLOV_PC_APPLIED && ksp->pc_side != PC_LEFT && !gm->flexible);
  PetscScalar    *x;
  PetscBool       singular = PETSC_FALSE;

  PetscFunctionBegin;
  if (to != ksp->vec_sol) PetscCall(VecCopy(ksp->vec_sol, to));
  if (!k) PetscFunctionReturn(PETSC_SUCCESS);
  /* while the iterations go on, no entry of the diagonal is zero: the host need not wait */
  PetscCallCUDA(SpMVCudaGMRESSolve(gm->gmres, (int)k, run->stream, run->status.reason ? &singular : NULL));
  if (singular) {
    PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED,
               "GMRES has broken down: the matrix or the preconditioner is singular");
    ksp->reason = KSP_DIVERGED_BREAKDOWN;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(KSPDeviceTouch(in ? ksp->work[0] : to, &x));
  PetscCallCUDA(SpMVCudaGMRESCorrect(
      gm->gmres, (int)k, gm->flexible && run->solve.pc == SPMV_KRYLOV_PC_APPLIED ? gm->applied.v : gm->basis.v, in, x,
      run->stream));
  if (in) {
    PetscCall(KSPUnwindPreconditioner(ksp, ksp->work[0], ksp->work[1]));
    PetscCall(VecAXPY(to, 1., ksp->work[0]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the residual at a restart is that of the recursion */
static PetscErrorCode KSPDeviceGMRESCheckRestart(KSP ksp, const KSPDeviceGMRES *gm, PetscReal norm)
{
  PetscFunctionBegin;
  if (gm->flexible || ksp->rnorm <= 0. || PetscAbsReal(norm - ksp->rnorm) <= gm->breakdowntol * gm->rnorm0)
    PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_CONV_FAILED,
             "At a restart of GMRES the residual norm is %g, and that of the recursion %g", (double)norm,
             (double)ksp->rnorm);
  ksp->reason = KSP_DIVERGED_BREAKDOWN;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A cycle, from the residual in V[0] */
static PetscErrorCode KSPDeviceGMRESCycle(KSP ksp, KSP_Device *d)
{
  KSPDeviceRun   *run = d->run;
  KSPDeviceGMRES *gm  = (KSPDeviceGMRES *)d->method;
  PetscReal       norm;
  PetscInt        k;

  PetscFunctionBegin;
  PetscCall(VecNorm(gm->basis.V[0], NORM_2, &norm));
  KSPCheckNorm(ksp, norm);
  PetscCall(KSPDeviceGMRESCheckRestart(ksp, gm, norm));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  gm->rnorm0 = norm;
  ksp->rnorm = norm;
  if (norm == 0.) {
    PetscCall(KSPDeviceReport(ksp, run));
    ksp->reason = KSP_CONVERGED_ATOL;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(KSPDeviceTestFirst(ksp, run));
  run->length = PetscMin(gm->restart, ksp->max_it - ksp->its);
  if (!ksp->reason && run->length > 0) {
    PetscCall(KSPDeviceGMRESBegin(ksp, run, gm));
    PetscCall(KSPDeviceIterations(ksp, run, KSPDeviceGMRESIterate));
    if (!ksp->reason) PetscCall(KSPDeviceAwait(run, run->length));
    PetscCall(KSPDeviceDeliver(ksp, run));
    /* PETSc reports the norm of an iteration before it computes the next one */
    if (run->held && (run->status.reason == SPMV_KRYLOV_NAN_NORM || run->status.reason == SPMV_KRYLOV_NAN_DOT))
      PetscCall(KSPDeviceReport(ksp, run));
    if (!ksp->reason && run->status.reason) PetscCall(KSPDeviceConclude(ksp, run));
    if (run->status.reason == SPMV_KRYLOV_NAN_NORM) PetscFunctionReturn(PETSC_SUCCESS);
    k         = run->read;
    run->read = 0;
    PetscCall(KSPDeviceGMRESBuild(ksp, d, k, ksp->vec_sol));
    if (!ksp->reason && ksp->its >= ksp->max_it) ksp->reason = KSP_DIVERGED_ITS;
    if (k && ksp->reason) PetscCall(KSPDeviceReport(ksp, run));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceGMRESSolve(KSP ksp, KSP_Device *d)
{
  KSPDeviceRun   *run        = d->run;
  KSPDeviceGMRES *gm         = (KSPDeviceGMRES *)d->method;
  const PetscBool guess_zero = ksp->guess_zero;

  PetscFunctionBegin;
  PetscCall(KSPDeviceRunBegin(ksp, d));
  /* the sums over ranks of the next iteration contain the norm of the one before */
  if (run->transport == SPMV_TRANSPORT_HOST) run->ahead = 1;
  if (ksp->err_hist) run->exact = PETSC_TRUE; /* the error of each iteration is computed from its solution */
  run->cycles = PETSC_TRUE;
  PetscCall(KSPDeviceBasisGet(ksp, &gm->basis, 2, gm->restart + 1));
  PetscCall(KSPDeviceGetPC(ksp, run, ksp->work[0], ksp->work[1]));
  if (run->solve.pc != SPMV_KRYLOV_PC_NONE && ksp->pc_side == PC_SYMMETRIC) run->solve.pc = SPMV_KRYLOV_PC_APPLIED;
  ksp->its   = 0;
  ksp->rnorm = -1.; /* the first cycle has no residual to compare with */
  while (!ksp->reason || (ksp->rnorm == -1. && ksp->reason == KSP_DIVERGED_PC_FAILED)) {
    PetscCall(KSPInitialResidual(ksp, ksp->vec_sol, ksp->work[0], ksp->work[1], gm->basis.V[0], ksp->vec_rhs));
    PetscCall(KSPDeviceGMRESCycle(ksp, d));
    if (ksp->its >= ksp->max_it) {
      if (!ksp->reason) ksp->reason = KSP_DIVERGED_ITS;
      break;
    }
    ksp->guess_zero = PETSC_FALSE;
  }
  ksp->guess_zero = guess_zero;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPBuildSolution_DeviceGMRES(KSP ksp, Vec v, Vec *V)
{
  KSP_Device     *d = NULL;
  KSPDeviceGMRES *gm;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  if (!d->device) {
    PetscCall((*d->petsc.buildsolution)(ksp, v, V));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  gm = (KSPDeviceGMRES *)d->method;
  if (!v) {
    if (!gm->sol) PetscCall(VecDuplicate(ksp->vec_sol, &gm->sol));
    v = gm->sol;
  }
  PetscCall(KSPDeviceGMRESBuild(ksp, d, d->run->read, v));
  if (V) *V = v;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceCreate_GMRES(KSP ksp, KSP_Device *d)
{
  KSPDeviceGMRES *gm;

  PetscFunctionBegin;
  PetscCall(PetscNew(&gm));
  d->method               = gm;
  d->whynot               = KSPDeviceWhyNot_GMRES;
  d->ondevice             = KSPDeviceGMRESSolve;
  d->reserve              = KSPDeviceReserve_GMRES;
  d->reset                = KSPDeviceReset_GMRES;
  gm->haptol              = 1e-30; /* KSPGMRES's defaults */
  gm->breakdowntol        = 0.1;
  gm->solve               = d->petsc.solve;
  d->petsc.solve          = KSPDeviceGMRESSolve_PETSc;
  ksp->ops->setup         = KSPSetUp_DeviceGMRES;
  ksp->ops->buildsolution = KSPBuildSolution_DeviceGMRES;
  PetscCall(PetscStrcmp(d->type, KSPFGMRES, &gm->flexible));
  KSPDeviceReplaceFunction(ksp, "KSPGMRESSetHapTol_C", KSPGMRESSetHapTol_Device, &gm->sethaptol);
  KSPDeviceReplaceFunction(ksp, "KSPGMRESSetBreakdownTolerance_C", KSPGMRESSetBreakdownTolerance_Device,
                           &gm->setbreakdowntol);
  KSPDeviceReplaceFunction(ksp, "KSPFlexibleSetModifyPC_C", KSPFlexibleSetModifyPC_DeviceGMRES, &gm->setmodifypc);
  PetscFunctionReturn(PETSC_SUCCESS);
}
