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

/* Whether no monitor reads anything but the norm */
static PetscErrorCode KSPDeviceMonitorsReadNorm(KSP ksp, PetscBool *only)
{
  PetscFunctionBegin;
  *only = PETSC_TRUE;
  for (PetscInt k = 0; k < ksp->numbermonitors; k++) {
    if (ksp->monitor[k] != (KSPMonitorFn *)KSPMonitorResidual) *only = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceCheckMemory(cudaError_t error, char why[], size_t len)
{
  PetscFunctionBegin;
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    PetscCall(PetscStrncpy(why, "out of GPU memory", len));
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

PetscErrorCode KSPDeviceRunBegin(KSP ksp, KSP_Device *d)
{
  KSPDeviceRun *run = d->run;
  PetscBool     norm;
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
  run->flops = 10. * n;
  if (!SpMVIsMPI(run->A) || !d->alone) /* collective */
    PetscCall(MatSpMVGetPlan_CUDA(run->A, SPMV_PLAN_MULT, ksp->work[0], ksp->work[1], &run->plan));
  PetscCall(KSPDeviceMonitorsReadNorm(ksp, &norm));
  run->exact = (PetscBool)(!norm || (ksp->converged != KSPConvergedDefault && ksp->converged != KSPConvergedSkip));
  run->ahead = run->transport == SPMV_TRANSPORT_HOST ? 0 : d->ahead;
  run->fuse  = d->fuse;
  run->read  = 0;
  run->began = PETSC_FALSE;
  PetscCall(PetscMemzero(&run->status, sizeof(run->status)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the preconditioner */

const char *KSPDeviceDescribePC(const KSPDeviceRun *run)
{
  switch (run->pc) {
  case SPMV_KRYLOV_PC_NONE: return "none";
  case SPMV_KRYLOV_PC_POINTS: return "in the kernels (a diagonal)";
  case SPMV_KRYLOV_PC_BLOCKS: return "in the kernels (blocks)";
  default: return "by PCApply()";
  }
}

/* Gets the state on which the preconditioner's entries depend: it is set up again when the state of the matrix or one
   of its own settings has changed */
static PetscErrorCode KSPDevicePCKeySet(PC pc, Mat P, KSPDevicePCKey *key)
{
  PetscBool jacobi;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(key, sizeof(*key)));
  SpMVKeySet(&key->matrix, P);
  PetscCall(PetscObjectGetId((PetscObject)pc, &key->pc));
  PetscCall(PCGetReusePreconditioner(pc, &key->reuse));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCJACOBI, &jacobi));
  if (jacobi) {
    key->type = 1;
    PetscCall(PCJacobiGetType(pc, &key->jacobi));
    PetscCall(PCJacobiGetUseAbs(pc, &key->abs));
    PetscCall(PCJacobiGetFixDiagonal(pc, &key->fix));
    PetscCall(PCJacobiGetRowl1Scale(pc, &key->scale));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceGetArray(KSPDeviceRun *run, PetscInt n)
{
  PetscFunctionBegin;
  run->d = NULL;
  PetscCallCUDA(SpMVCudaKrylovGetArray(run->krylov, (size_t)n * (size_t)run->bs, &run->d));
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
  Mat            P;
  PetscInt       n;
  PetscScalar   *a = NULL;
  KSPDevicePCKey key;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(KSPDeviceClassifyPC(ksp, &run->pc, &run->bs));
  if (run->pc == SPMV_KRYLOV_PC_NONE || run->pc == SPMV_KRYLOV_PC_APPLIED) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperators(ksp->pc, NULL, &P));
  PetscCall(KSPDevicePCKeySet(ksp->pc, P, &key));
  if (run->d && !memcmp(&key, &run->pckey, sizeof(key))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetLocalSize(u, &n));
  ierr = KSPDeviceGetArray(run, n);
  PetscCall(run->summing ? SpMVAgree(run->comm, ierr) : ierr); /* before the others wait for this rank's sums */
  for (PetscInt j = 0; j < run->bs; j++) {
    PetscCall(KSPDeviceTouch(u, &a));
    PetscCallCUDA(SpMVCudaKrylovUnit((int)n, (int)run->bs, (int)j, a, run->stream));
    PetscCall(PCApply(ksp->pc, u, v));
    PetscCall(KSPDeviceTouch(v, &a));
    if (n)
      PetscCallCUDA(
          cudaMemcpyAsync(run->d + j * n, a, (size_t)n * sizeof(PetscScalar), cudaMemcpyDeviceToDevice, run->stream));
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
  const SpMVCudaStore fused = sums && run->fuse && !plan->halo ? plan->store[0] : NULL;

  PetscFunctionBegin;
  if (!plan->block[0])
    PetscCall(MatMult(run->A, p, w));
  else if (!fused) {
    PetscCall(PetscLogEventBegin(MAT_Mult, run->A, p, w, 0));
    PetscCall(
        SpMVMultPlanLaunch(plan, (SpMVCudaProduct){.form = SPMVCUDA_MULT, .x = run->p, .y = run->w}, run->stream));
    PetscCall(PetscLogEventEnd(MAT_Mult, run->A, p, w, 0));
  }
  if (fused) PetscCall(PetscLogEventBegin(MAT_Mult, run->A, p, w, 0));
  if (sums) PetscCallCUDA((*sums)(run->krylov, fused, run->stream));
  if (fused) {
    PetscCall(PetscLogGpuFlops(2.0 * plan->nonzeros[0] - plan->rows));
    PetscCall(PetscLogEventEnd(MAT_Mult, run->A, p, w, 0));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int KSPDeviceInt(PetscInt n)
{
  const PetscInt most = 1 << 26; /* the device reports the number in 28 bits */

  return (int)PetscMin(n, most);
}

PetscErrorCode KSPDeviceGetTest(KSP ksp, KSPDeviceRun *run, SpMVKrylovTest *t, SpMVKrylovNorm *norm)
{
  PetscFunctionBegin;
  switch (ksp->normtype) {
  case KSP_NORM_PRECONDITIONED: *norm = SPMV_KRYLOV_NORM_PRECONDITIONED; break;
  case KSP_NORM_UNPRECONDITIONED: *norm = SPMV_KRYLOV_NORM_UNPRECONDITIONED; break;
  case KSP_NORM_NATURAL: *norm = SPMV_KRYLOV_NORM_NATURAL; break;
  case KSP_NORM_NONE: *norm = SPMV_KRYLOV_NORM_NONE; break;
  default: SETERRQ(PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP, "%s", KSPNormTypes[ksp->normtype]);
  }
  t->test    = (PetscBool)!run->exact;
  t->enough  = PETSC_FALSE;
  t->max_it  = KSPDeviceInt(ksp->max_it);
  t->min_it  = KSPDeviceInt(ksp->min_it);
  t->chknorm = KSPDeviceInt(ksp->chknorm);
  t->ttol    = ksp->ttol;
  t->abstol  = ksp->abstol;
  t->dtol    = ksp->divtol * ksp->rnorm0;
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
  *idle =
      (PetscBool)(error ==
                  cudaSuccess); /* the caller looks once more, because the device may have written in the meantime */
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

/* The device writes a norm before the status that announces it, but the host may see them in either order */
PetscErrorCode KSPDeviceReadNorm(KSPDeviceRun *run, PetscReal *norm)
{
  PetscBool idle = PETSC_FALSE;

  PetscFunctionBegin;
  for (int turn = 1; !SpMVCudaKrylovReadNorm(run->krylov, (int)run->read + 1, norm); turn++) {
    if (turn % 1024 == 0) PetscCall(KSPDevicePause(run, &idle));
  }
  run->read++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceAwaitNorm(KSPDeviceRun *run)
{
  PetscFunctionBegin;
  PetscCallCUDA(cudaStreamSynchronize(run->stream));
  run->status = SpMVCudaKrylovGetStatus(run->krylov);
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
PetscErrorCode KSPDeviceMayStart(KSPDeviceRun *run, PetscInt n, PetscBool *may)
{
  const PetscBool alone = (PetscBool)(!run->sums[0]);
  const PetscInt  ahead = run->pc == SPMV_KRYLOV_PC_APPLIED ? 0 : run->ahead;

  PetscFunctionBegin;
  PetscCall(KSPDeviceAwait(run, n - 1 - (alone || ahead <= 2 ? ahead : 2)));
  *may = (PetscBool)(!run->status.reason || (!alone && n <= KSPDeviceLast(&run->status) + PetscMin(ahead, 2)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceDeliver(KSP ksp, KSPDeviceRun *run)
{
  PetscReal norm;

  PetscFunctionBegin;
  while (run->read < run->status.norms) {
    PetscCall(KSPDeviceReadNorm(run, &norm));
    ksp->its   = run->read;
    ksp->rnorm = norm;
    PetscCall(KSPLogResidualHistory(ksp, norm));
    PetscCall(KSPMonitor(ksp, run->read, norm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For a user-defined test or monitor: each iteration is complete before the host processes it */
static PetscErrorCode KSPDeviceIterationsExact(KSP ksp, KSPDeviceRun *run,
                                               PetscErrorCode (*iterate)(KSP, KSPDeviceRun *))
{
  PetscFunctionBegin;
  for (PetscInt n = 1; !ksp->reason; n++) {
    PetscCall(KSPDeviceAwait(run, n - 1));
    if (run->status.reason) break;
    PetscCall((*iterate)(ksp, run));
    PetscCall(KSPDeviceAwait(run, n));
    if (run->status.norms < n) break; /* the device has ended the solve without a norm */
    PetscCall(KSPDeviceTouch(ksp->vec_sol, NULL));
    PetscCall(KSPDeviceTouch(ksp->work[0], NULL));
    PetscCall(KSPDeviceDeliver(ksp, run));
    PetscCall((*ksp->converged)(ksp, n, ksp->rnorm, &ksp->reason, ksp->cnvP));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceIterations(KSP ksp, KSPDeviceRun *run, PetscErrorCode (*iterate)(KSP, KSPDeviceRun *))
{
  PetscBool may;

  PetscFunctionBegin;
  if (run->exact) {
    PetscCall(KSPDeviceIterationsExact(ksp, run, iterate));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt n = 1;; n++) {
    PetscCall(KSPDeviceMayStart(run, n, &may));
    if (!may) break;
    PetscCall((*iterate)(ksp, run));
    PetscCall(KSPDeviceDeliver(ksp, run));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Called after a result that is Inf or NaN: if the preconditioner has failed, this is the reason */
static PetscErrorCode KSPDeviceConcludeNaN(KSP ksp, const char what[])
{
  PCFailedReason reason;

  PetscFunctionBegin;
  PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED,
             "KSPSolve has not converged due to infinity or NaN %s", what);
  PetscCall(PCReduceFailedReason(ksp->pc));
  PetscCall(PCGetFailedReason(ksp->pc, &reason));
  PetscCall(VecFlag(ksp->vec_sol, (PetscInt)reason));
  ksp->reason = reason ? KSP_DIVERGED_PC_FAILED : KSP_DIVERGED_NANORINF;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceConclude(KSP ksp, KSPDeviceRun *run)
{
  MPI_Comm comm = PetscObjectComm((PetscObject)ksp);

  PetscFunctionBegin;
  PetscCall(KSPDeviceDeliver(ksp, run));
  if (run->began) ksp->its = run->status.its;
  switch (run->status.reason) {
  case SPMV_KRYLOV_RTOL: ksp->reason = KSP_CONVERGED_RTOL; break;
  case SPMV_KRYLOV_ATOL:
  case SPMV_KRYLOV_ZERO: ksp->reason = KSP_CONVERGED_ATOL; break;
  case SPMV_KRYLOV_ENOUGH: ksp->reason = KSP_CONVERGED_ITS; break;
  case SPMV_KRYLOV_DTOL: ksp->reason = KSP_DIVERGED_DTOL; break;
  case SPMV_KRYLOV_ITS: ksp->reason = KSP_DIVERGED_ITS; break;
  case SPMV_KRYLOV_NAN_NORM:
    PetscCall(KSPDeviceReadNorm(run, &ksp->rnorm));
    PetscCall(KSPDeviceConcludeNaN(ksp, "norm"));
    break;
  case SPMV_KRYLOV_NAN_DOT: PetscCall(KSPDeviceConcludeNaN(ksp, "inner product")); break;
  case SPMV_KRYLOV_INDEFINITE_PC:
    PetscCheck(!ksp->errorifnotconverged, comm, PETSC_ERR_NOT_CONVERGED, "Diverged due to indefinite preconditioner");
    ksp->reason = KSP_DIVERGED_INDEFINITE_PC;
    break;
  case SPMV_KRYLOV_INDEFINITE_MAT:
    if (!ksp->converged_neg_curve)
      PetscCheck(!ksp->errorifnotconverged, comm, PETSC_ERR_NOT_CONVERGED, "Diverged due to indefinite matrix");
    ksp->reason = ksp->converged_neg_curve ? KSP_CONVERGED_NEG_CURVE : KSP_DIVERGED_INDEFINITE_MAT;
    break;
  case SPMV_KRYLOV_BREAKDOWN:
    PetscCheck(!ksp->errorifnotconverged, comm, PETSC_ERR_NOT_CONVERGED,
               "KSPSolve breakdown due to zero inner product");
    ksp->reason = KSP_DIVERGED_BREAKDOWN;
    break;
  default: SETERRQ(comm, PETSC_ERR_PLIB, "The solve has not ended");
  }
  PetscCall(PetscInfo(ksp, "Ended on the device in iteration %" PetscInt_FMT ": %s, norm %g\n", ksp->its,
                      KSPConvergedReasons[ksp->reason], (double)ksp->rnorm));
  PetscFunctionReturn(PETSC_SUCCESS);
}
