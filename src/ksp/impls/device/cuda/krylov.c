/*
  A solve on the device: functions shared by the methods.
*/
#include "krylov.h"
#include <sched.h>

PetscErrorCode KSPDeviceRunReset(KSP_Device *d)
{
  KSPDeviceRun *run   = d->run;
  cudaError_t   error = cudaSuccess, last;

  PetscFunctionBegin;
  if (d->reset) PetscCall((*d->reset)(d));
  if (run->peers) { /* no rank may free memory that another rank has open */
    error = SpMVCudaKrylovClose(run->krylov);
    PetscCallMPI(MPI_Barrier(run->comm));
  }
  last = run->krylov ? SpMVCudaKrylovDestroy(&run->krylov) : cudaSuccess;
  if (run->staged) PetscCallCUDA(cudaFreeHost(run->staged));
  PetscCall(PetscFree(d->run));
  PetscCallCUDA(error);
  PetscCallCUDA(last);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the beginning of a solve */

PetscErrorCode KSPDeviceCheckMemory(cudaError_t error, char why[], size_t len)
{
  PetscFunctionBegin;
  if (error == cudaErrorMemoryAllocation || error == cudaErrorNotSupported) {
    (void)cudaGetLastError();
    PetscCall(PetscStrncpy(why, cudaGetErrorString(error), len));
  } else
    PetscCallCUDA(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceRunCreate(KSP ksp, KSP_Device *d, char why[], size_t len)
{
  PetscFunctionBegin;
  if (!d->run) PetscCall(PetscNew(&d->run));
  d->run->comm = PetscObjectComm((PetscObject)ksp);
  if (!d->run->krylov)
    PetscCall(KSPDeviceCheckMemory(SpMVCudaKrylovCreate((PetscBool)!d->alone, &d->run->krylov), why, len));
  if (!why[0] && d->reserve) PetscCall((*d->reserve)(ksp, d, why, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void KSPDeviceRunRestart(KSP ksp, KSPDeviceRun *run)
{
  run->before = run->cycles ? ksp->its : 0;
  run->read   = 0;
  run->held   = PETSC_FALSE;
  run->status = (SpMVKrylovStatus){SPMV_KRYLOV_ITERATING, 0, 0};
}

PetscErrorCode KSPDeviceRunBegin(KSP ksp, KSP_Device *d)
{
  KSPDeviceRun *run = d->run;
  PetscInt      n;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, &run->A, NULL));
  PetscCall(PetscGetCurrentCUDAStream(&run->stream));
  if (!d->alone && !run->summing) {
    PetscCall(KSPDeviceSetUpSums(run->A, run));
    run->summing = PETSC_TRUE;
  }
  PetscCall(VecGetLocalSize(ksp->vec_sol, &n));
  PetscCall(PetscMemzero(&run->plan, sizeof(run->plan)));
  run->solve.n = (int)n;
  if (!SpMVIsMPI(run->A) || !d->alone) /* collective */
    PetscCall(MatSpMVGetPlan_CUDA(run->A, SPMV_PLAN_MULT, ksp->work[0], ksp->work[1], &run->plan));
  run->exact = (PetscBool)(ksp->converged != KSPConvergedDefault && ksp->converged != KSPConvergedSkip);
  for (PetscInt k = 0; k < ksp->numbermonitors; k++) { /* a monitor that may read more than the norm */
    if (ksp->monitor[k] != (KSPMonitorFn *)KSPMonitorResidual) run->exact = PETSC_TRUE;
  }
  run->ahead  = run->transport == SPMV_TRANSPORT_HOST ? 0 : run->sums ? 2 : KSP_DEVICE_AHEAD;
  run->length = PETSC_INT_MAX;
  run->cycles = PETSC_FALSE;
  KSPDeviceRunRestart(ksp, run);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the preconditioner */

PetscBool KSPDeviceApplies(KSP ksp, const KSPDeviceRun *run, PCSide side)
{
  const SpMVKrylovPC pc = run->solve.pc;

  return (PetscBool)(ksp->pc_side == side && (pc == SPMV_KRYLOV_PC_POINTS || pc == SPMV_KRYLOV_PC_BLOCKS));
}

static PetscErrorCode KSPDeviceGetArray(KSPDeviceRun *run)
{
  PetscScalar *d;

  PetscFunctionBegin;
  run->solve.d = NULL;
  PetscCallCUDA(SpMVCudaKrylovGetArray(run->krylov, (size_t)run->solve.n * (size_t)run->solve.bs, &d));
  run->solve.d = d;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceClassifyPC(KSP ksp, SpMVKrylovPC *kind, PetscInt *bs)
{
  MatNullSpace null;
  Mat          A, P;
  PetscBool    none, jacobi, blocks;

  PetscFunctionBegin;
  *kind = SPMV_KRYLOV_PC_APPLIED;
  *bs   = 1;
  PetscCall(PCGetOperators(ksp->pc, &A, &P));
  PetscCall(MatGetNullSpace(A, &null));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCNONE, &none));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, &jacobi));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCPBJACOBI, &blocks));
  if (blocks) PetscCall(MatGetBlockSize(P, bs));
  if (!null && *bs <= SPMV_KRYLOV_BLOCK && (none || jacobi || blocks))
    *kind = none ? SPMV_KRYLOV_PC_NONE : *bs > 1 ? SPMV_KRYLOV_PC_BLOCKS : SPMV_KRYLOV_PC_POINTS;
  else
    *bs = 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The entries are obtained by applying the preconditioner to unit vectors, one for each position in a block. This needs
  no access to the preconditioner's data, and the entries are bitwise the same, because all other terms of its sums are
  0
*/
PetscErrorCode KSPDeviceGetPC(KSP ksp, KSPDeviceRun *run, Vec u, Vec v)
{
  SpMVKrylovSolve *s = &run->solve;
  PetscInt         bs;
  PetscScalar     *a = NULL;
  KSPDevicePCKey   key;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  PetscCall(KSPDeviceClassifyPC(ksp, &s->pc, &bs));
  s->bs = (int)bs;
  if (s->pc == SPMV_KRYLOV_PC_NONE || s->pc == SPMV_KRYLOV_PC_APPLIED) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMemzero(&key, sizeof(key)));
  PetscCall(PetscObjectGetId((PetscObject)ksp->pc, &key.pc));
  PetscCall(PetscObjectStateGet((PetscObject)ksp->pc, &key.setups));
  key.matrix = ksp->pc->matstate;
  key.type   = ksp->pc->ops->setup;
  if (s->d && !memcmp(&key, &run->pckey, sizeof(key))) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = KSPDeviceGetArray(run);
  PetscCall(run->summing ? SpMVAgree(run->comm, ierr) : ierr); /* before the others wait for this rank's sums */
  for (int j = 0; j < s->bs; j++) {
    PetscCall(KSPDeviceTouch(u, &a));
    PetscCallCUDA(SpMVCudaKrylovUnit(s->n, s->bs, j, a, run->stream));
    PetscCall(PCApply(ksp->pc, u, v));
    PetscCall(KSPDeviceTouch(v, &a));
    if (s->n)
      PetscCallCUDA(cudaMemcpyAsync((PetscScalar *)s->d + (size_t)j * (size_t)s->n, a,
                                    (size_t)s->n * sizeof(PetscScalar), cudaMemcpyDeviceToDevice, run->stream));
  }
  run->pckey = key;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- iterations */

PetscErrorCode KSPDeviceTouch(Vec v, PetscScalar **array)
{
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(VecCUDAGetArray(v, &a));
  if (array) *array = a; /* the array stays at this address */
  PetscCall(VecCUDARestoreArray(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceMult(KSPDeviceRun *run, Vec p, Vec w, KSPDeviceSumsFn *sums)
{
  const SpMVMultPlan *plan  = &run->plan;
  const SpMVCudaStore fused = sums && (!plan->halo || run->exchanges) ? plan->store[0] : NULL;

  PetscFunctionBegin;
  if (!plan->block[0])
    PetscCall(MatMult(run->A, p, w));
  else {
    PetscCall(PetscLogEventBegin(MAT_Mult, run->A, p, w, 0));
    if (fused) {
      if (plan->exchange) PetscCallCUDA(SpMVCudaHaloEnter(plan->exchange, run->stream));
      PetscCallCUDA((*sums)(run->krylov, fused, run->stream));
      if (plan->exchange) PetscCallCUDA(SpMVCudaHaloLeave(plan->exchange, run->stream));
      PetscCall(PetscLogGpuFlops(2.0 * plan->nonzeros[0] - plan->rows));
    } else
      PetscCall(
          SpMVMultPlanLaunch(plan, (SpMVCudaProduct){.form = SPMVCUDA_MULT, .x = run->p, .y = run->w}, run->stream));
    PetscCall(PetscLogEventEnd(MAT_Mult, run->A, p, w, 0));
  }
  if (sums && !fused) PetscCallCUDA((*sums)(run->krylov, NULL, run->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int KSPDeviceInt(PetscInt n)
{
  const PetscInt most = 1 << 26; /* the device reports the number in 28 bits */

  return (int)PetscMin(n, most);
}

PetscErrorCode KSPDeviceGetTest(KSP ksp, KSPDeviceRun *run)
{
  SpMVKrylovTest *t = &run->solve.until;

  PetscFunctionBegin;
  run->solve.norm = (SpMVKrylovNorm)ksp->normtype;
  t->test         = (PetscBool)!run->exact;
  t->enough       = PETSC_FALSE;
  t->max_it       = KSPDeviceInt(ksp->max_it);
  t->min_it       = KSPDeviceInt(ksp->min_it);
  t->chknorm      = KSPDeviceInt(ksp->chknorm);
  t->ttol         = ksp->ttol;
  t->abstol       = ksp->abstol;
  t->dtol         = ksp->divtol * ksp->rnorm0;
  if (ksp->converged == KSPConvergedSkip) { /* only the number of iterations counts */
    t->enough = PETSC_TRUE;
    t->ttol   = -1.;
    t->dtol   = PETSC_INFINITY;
    t->min_it = t->max_it;
  } else if (ksp->converged == KSPConvergedDefault)
    t->enough = ((KSPConvergedDefaultCtx *)ksp->cnvP)->convmaxits;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lets other processes run. Returns an error if the device has failed, or has completed all its work so that the
   awaited event will not happen */
static PetscErrorCode KSPDevicePause(KSPDeviceRun *run, PetscBool *idle)
{
  cudaError_t error;

  PetscFunctionBegin;
  PetscCheck(!*idle, PETSC_COMM_SELF, PETSC_ERR_PLIB,
             "The device has completed all its work, but the solve has not ended");
  error = cudaStreamQuery(run->stream);
  if (error == cudaErrorNotReady)
    (void)cudaGetLastError();
  else
    PetscCallCUDA(error);
  /* the caller looks once more, because the device may have written in the meantime */
  *idle = (PetscBool)(error == cudaSuccess);
  (void)sched_yield();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceAwait(KSPDeviceRun *run, PetscInt iterations)
{
  PetscBool idle = PETSC_FALSE;

  PetscFunctionBegin;
  for (int turn = 1;; turn++) {
    run->status = SpMVCudaKrylovGetStatus(run->krylov);
    if (run->status.reason || run->status.its > iterations) break;
    if (turn % 1024 == 0) PetscCall(KSPDevicePause(run, &idle));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The next norm, which the status has announced. The device writes it before the status, but the host may see them in
   either order */
static PetscErrorCode KSPDeviceReadNorm(KSPDeviceRun *run, PetscReal *norm)
{
  PetscBool idle = PETSC_FALSE;

  PetscFunctionBegin;
  for (int turn = 1; !SpMVCudaKrylovReadNorm(run->krylov, (int)run->read + 1, norm); turn++) {
    if (turn % 1024 == 0) PetscCall(KSPDevicePause(run, &idle));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The number of iterations of a solve that has ended. With these two reasons, the last iteration counted has only found
   that the one before it was the last */
static PetscInt KSPDeviceLast(const SpMVKrylovStatus *s)
{
  return s->its - (s->reason == SPMV_KRYLOV_ZERO || s->reason == SPMV_KRYLOV_INDEFINITE_PC);
}

/*
  All ranks must start the same iterations, because each product exchanges values. A rank that is ahead of the others
  may have started a few iterations after the last one before it saw the end of the solve, so all ranks start the same
  number of extra iterations
*/
static PetscErrorCode KSPDeviceMayStart(KSPDeviceRun *run, PetscInt n, PetscBool *may)
{
  const PetscBool alone = (PetscBool)(!run->sums);
  const PetscInt  ahead = run->exact || run->solve.pc == SPMV_KRYLOV_PC_APPLIED ? 0 : run->ahead;

  PetscFunctionBegin;
  PetscCall(KSPDeviceAwait(run, n - 1 - ahead));
  *may = (PetscBool)(!run->status.reason || (!alone && n <= KSPDeviceLast(&run->status) + ahead));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceReport(KSP ksp, KSPDeviceRun *run)
{
  PetscFunctionBegin;
  run->held = PETSC_FALSE;
  PetscCall(KSPLogResidualHistory(ksp, ksp->rnorm));
  if (run->cycles) PetscCall(KSPLogErrorHistory(ksp));
  PetscCall(KSPMonitor(ksp, ksp->its, ksp->rnorm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceTestFirst(KSP ksp, KSPDeviceRun *run)
{
  PetscFunctionBegin;
  KSPCheckNorm(ksp, ksp->rnorm);
  PetscCall(KSPDeviceReport(ksp, run));
  PetscCall((*ksp->converged)(ksp, ksp->its, ksp->rnorm, &ksp->reason, ksp->cnvP));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceDeliver(KSP ksp, KSPDeviceRun *run)
{
  PetscFunctionBegin;
  while (run->read < run->status.norms) {
    if (run->held) PetscCall(KSPDeviceReport(ksp, run));
    PetscCall(KSPDeviceReadNorm(run, &ksp->rnorm));
    ksp->its = run->before + ++run->read;
    if (run->cycles)
      run->held = PETSC_TRUE;
    else
      PetscCall(KSPDeviceReport(ksp, run));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Processes iteration n with a user-defined test or monitor */
static PetscErrorCode KSPDeviceTestExact(KSP ksp, KSPDeviceRun *run, PetscInt n)
{
  PetscFunctionBegin;
  PetscCall(KSPDeviceAwait(run, n));
  if (run->status.norms < n) PetscFunctionReturn(PETSC_SUCCESS); /* the device has ended the solve without a norm */
  PetscCall(KSPDeviceTouch(ksp->vec_sol, NULL));
  PetscCall(KSPDeviceTouch(ksp->work[0], NULL));
  PetscCall(KSPDeviceDeliver(ksp, run));
  if (run->status.reason == SPMV_KRYLOV_NULL) PetscFunctionReturn(PETSC_SUCCESS); /* of which PETSc tests first */
  PetscCall((*ksp->converged)(ksp, ksp->its, ksp->rnorm, &ksp->reason, ksp->cnvP));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceIterations(KSP ksp, KSPDeviceRun *run, PetscErrorCode (*iterate)(KSP, KSPDeviceRun *))
{
  PetscBool go;

  PetscFunctionBegin;
  for (PetscInt n = 1; n <= run->length && !ksp->reason; n++) {
    PetscCall(KSPDeviceMayStart(run, n, &go));
    if (!go) break;
    if (run->exact && run->held) PetscCall(KSPDeviceReport(ksp, run));
    PetscCall((*iterate)(ksp, run));
    if (run->exact)
      PetscCall(KSPDeviceTestExact(ksp, run, n));
    else
      PetscCall(KSPDeviceDeliver(ksp, run));
  }
  PetscCall(KSPDeviceTouch(ksp->vec_sol, NULL));
  for (PetscInt k = 0; k < ksp->nwork; k++) PetscCall(KSPDeviceTouch(ksp->work[k], NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How a solve ends, and PETSc's error if it must converge */
static const struct {
  KSPConvergedReason reason;
  const char        *error;
} KSPDeviceEnds[SPMV_KRYLOV_REASONS] = {
    [SPMV_KRYLOV_RTOL]           = {KSP_CONVERGED_RTOL, NULL},
    [SPMV_KRYLOV_ATOL]           = {KSP_CONVERGED_ATOL, NULL},
    [SPMV_KRYLOV_ZERO]           = {KSP_CONVERGED_ATOL, NULL},
    [SPMV_KRYLOV_ENOUGH]         = {KSP_CONVERGED_ITS, NULL},
    [SPMV_KRYLOV_DTOL]           = {KSP_DIVERGED_DTOL, NULL},
    [SPMV_KRYLOV_ITS]            = {KSP_DIVERGED_ITS, NULL},
    [SPMV_KRYLOV_INDEFINITE_PC]  = {KSP_DIVERGED_INDEFINITE_PC, "Diverged due to indefinite preconditioner"},
    [SPMV_KRYLOV_INDEFINITE_MAT] = {KSP_DIVERGED_INDEFINITE_MAT, "Diverged due to indefinite matrix"},
    [SPMV_KRYLOV_BREAKDOWN]      = {KSP_DIVERGED_BREAKDOWN, "KSPSolve breakdown due to zero inner product"},
    [SPMV_KRYLOV_SINGULAR] = {KSP_DIVERGED_BREAKDOWN, "KSPSolve has failed due to singular preconditioned operator"},
    [SPMV_KRYLOV_HAPPY]    = {KSP_DIVERGED_BREAKDOWN, "GMRES has reached a happy breakdown without convergence"},
    [SPMV_KRYLOV_NULL]     = {KSP_DIVERGED_NULL, "GMRES has broken down: a column of its Hessenberg matrix is zero"},
};

PetscErrorCode KSPDeviceConclude(KSP ksp, KSPDeviceRun *run)
{
  const SpMVKrylovReason ended = run->status.reason;
  const char            *error = KSPDeviceEnds[ended].error;
  PetscReal              norm;

  PetscFunctionBegin;
  PetscCall(KSPDeviceDeliver(ksp, run));
  if (run->began) ksp->its = run->status.its;
  if (ended == SPMV_KRYLOV_NAN_NORM) {
    PetscCall(KSPDeviceReadNorm(run, &norm));
    KSPCheckNorm(ksp, norm);
  }
  if (ended == SPMV_KRYLOV_NAN_DOT) KSPCheckDot(ksp, (PetscScalar)NAN);
  ksp->reason = KSPDeviceEnds[ended].reason;
  PetscCheck(ksp->reason, PetscObjectComm((PetscObject)ksp), PETSC_ERR_PLIB, "The solve has not ended");
  if (ended == SPMV_KRYLOV_INDEFINITE_MAT && ksp->converged_neg_curve)
    ksp->reason = KSP_CONVERGED_NEG_CURVE;
  else if (ended == SPMV_KRYLOV_HAPPY && ksp->normtype == KSP_NORM_NONE)
    ksp->reason = KSP_CONVERGED_HAPPY_BREAKDOWN;
  PetscCheck(ksp->reason > 0 || !error || !ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp),
             PETSC_ERR_NOT_CONVERGED, "%s", error);
  PetscCall(PetscInfo(ksp, "Ended on the device in iteration %" PetscInt_FMT ": %s, norm %g\n", ksp->its,
                      KSPConvergedReasons[ksp->reason], (double)ksp->rnorm));
  PetscFunctionReturn(PETSC_SUCCESS);
}
