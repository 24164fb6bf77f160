/*
  The type devicebatch: each problem of a batch is solved by itself, all of them in one launch on a GPU.
*/
#include "devicebatch.h"
#include "mat/impls/batch/batch.h"

/* `auto` factors problems of up to so many rows that have at least this part of the entries of a full matrix */
#define SMALL 64
#define DENSE 0.25

static const char *const KSPDeviceBatchTypes[] = {"cg", "bcgs", "gmres", "lu", "auto", "KSPDeviceBatchType", "", NULL};

static PetscErrorCode KSPDeviceBatchForget(KSP_DeviceBatch *k)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(k->host));
  PetscCall(PetscFree3(k->its, k->norms, k->reasons));
  k->solved = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPReset_DeviceBatch(KSP ksp)
{
  KSP_DeviceBatch *k = (KSP_DeviceBatch *)ksp->data;

  PetscFunctionBegin;
  PetscCall(KSPDeviceBatchForget(k));
  PetscCall(VecDestroy(&k->diagonal));
  PetscCall(PetscFree(k->first));
  if (k->run) PetscCall((*KSPDeviceCUDA.batchreset)(k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDestroy_DeviceBatch(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(KSPReset_DeviceBatch(ksp));
  PetscCall(KSPDestroyDefault(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- results */

/*@C
   KSPDeviceBatchGetSolveInfo - Gets how each problem of the last solve with `KSPDEVICEBATCH` ended

   Not Collective

   Input Parameter:
.  ksp - the solver, of type `KSPDEVICEBATCH`

   Output Parameters:
+  problems - number of problems on this process
.  its      - number of iterations of each problem
.  norms    - norm of the residual of each problem, which was computed from its solution
-  reasons  - why the iterations of each problem ended; negative if it was not solved

   Level: intermediate

   Notes:
   The arrays belong to the solver and are valid until the next solve. Any of the output arguments may be `NULL`.

   The problems are numbered as in `MatBatchGetProblem()`.

   Errors:
+  PETSC_ERR_ARG_WRONG      - the solver is not of type `KSPDEVICEBATCH`
-  PETSC_ERR_ARG_WRONGSTATE - there has been no solve

.seealso: `KSPDEVICEBATCH`, `MatBatchGetProblem()`, `KSPGetConvergedReason()`
@*/
PetscErrorCode KSPDeviceBatchGetSolveInfo(KSP ksp, PetscInt *problems, const PetscInt *its[], const PetscReal *norms[],
                                          const KSPConvergedReason *reasons[])
{
  KSP_DeviceBatch *k;
  PetscBool        is;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPDEVICEBATCH, &is));
  PetscCheck(is, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "KSP of type %s, not " KSPDEVICEBATCH,
             ((PetscObject)ksp)->type_name ? ((PetscObject)ksp)->type_name : "(not set)");
  k = (KSP_DeviceBatch *)ksp->data;
  PetscCheck(k->solved, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Call KSPSolve() first");
  if (!k->its) {
    PetscCall(PetscMalloc3(k->problems + 1, &k->its, k->problems + 1, &k->norms, k->problems + 1, &k->reasons));
    for (PetscInt p = 0; p < k->problems; p++) {
      k->its[p]     = k->results[p].its;
      k->norms[p]   = k->results[p].norm;
      k->reasons[p] = (KSPConvergedReason)k->results[p].reason;
    }
  }
  if (problems) *problems = k->problems;
  if (its) *its = k->its;
  if (norms) *norms = k->norms;
  if (reasons) *reasons = k->reasons;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- views */

/* The results of all processes on the first one, which frees them. Collective */
static PetscErrorCode KSPDeviceBatchGather(KSP ksp, KSP_DeviceBatch *k, PetscMPIInt *count, SpMVBatchResult **all)
{
  MPI_Comm     comm = PetscObjectComm((PetscObject)ksp);
  MPI_Datatype one;
  PetscMPIInt  size, mine = (PetscMPIInt)k->problems, *each, *begin;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(PetscCalloc2(size, &each, size + 1, &begin));
  PetscCallMPI(MPI_Type_contiguous(sizeof(**all), MPI_BYTE, &one));
  PetscCallMPI(MPI_Type_commit(&one));
  PetscCallMPI(MPI_Gather(&mine, 1, MPI_INT, each, 1, MPI_INT, 0, comm));
  for (PetscMPIInt r = 0; r < size; r++) begin[r + 1] = begin[r] + each[r];
  *count = begin[size];
  PetscCall(PetscMalloc1(*count, all));
  PetscCallMPI(MPI_Gatherv(k->results, mine, one, *all, each, begin, one, 0, comm));
  PetscCallMPI(MPI_Type_free(&one));
  PetscCall(PetscFree2(each, begin));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective */
static PetscErrorCode KSPDeviceBatchViewResults(KSP ksp, KSP_DeviceBatch *k, PetscViewer viewer)
{
  PetscMPIInt      count, failed = 0;
  SpMVBatchResult *all;
  PetscInt        *its;
  char             one[64], text[1024] = ""; /* the first failed problems */

  PetscFunctionBegin;
  PetscCall(KSPDeviceBatchGather(ksp, k, &count, &all));
  PetscCall(PetscMalloc1(count + 1, &its));
  its[0] = 0;
  for (PetscMPIInt p = 0; p < count; p++) {
    its[p] = all[p].its;
    if (all[p].reason >= 0 || ++failed > 11) continue;
    PetscCall(PetscSNPrintf(one, sizeof(one), " %d (%s)", p, KSPConvergedReasons[all[p].reason]));
    PetscCall(PetscStrlcat(text, failed > 10 ? " ..." : one, sizeof(text)));
  }
  PetscCall(PetscSortInt(count, its));
  PetscCall(PetscViewerASCIIPrintf(
      viewer, "  %d problems, iterations: least %" PetscInt_FMT ", median %" PetscInt_FMT ", most %" PetscInt_FMT "\n",
      count, its[0], its[count / 2], its[PetscMax(count, 1) - 1]));
  if (failed) PetscCall(PetscViewerASCIIPrintf(viewer, "  %d problems were not solved:%s\n", failed, text));
  PetscCall(PetscFree(its));
  PetscCall(PetscFree(all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPView_DeviceBatch(KSP ksp, PetscViewer viewer)
{
  KSP_DeviceBatch      *k      = (KSP_DeviceBatch *)ksp->data;
  const SpMVBatchMethod method = k->solved ? k->options.method : k->method;
  PetscBool             isascii;
  int                   device      = k->device;
  char                  restart[32] = "";

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &isascii));
  if (!isascii) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->solved)
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &device, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)ksp)));
  if (method == SPMV_BATCH_GMRES) PetscCall(PetscSNPrintf(restart, sizeof(restart), ", restart %d", (int)k->restart));
  PetscCall(PetscViewerASCIIPrintf(viewer, "  each problem is solved by itself, method %s%s%s\n",
                                   KSPDeviceBatchTypes[method], restart,
                                   !k->solved ? ""
                                   : device   ? ", on the device"
                                              : ", on the host"));
  if (k->solved) PetscCall(KSPDeviceBatchViewResults(ksp, k, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- options */

/* Unless the user has chosen a preconditioner, it is PCJACOBI: PETSc's default factors the matrix. */
static PetscErrorCode KSPDeviceBatchDefaultPC(PC pc)
{
  const char *prefix;
  PetscBool   set, is;

  PetscFunctionBegin;
  PetscCall(PCGetOptionsPrefix(pc, &prefix));
  PetscCall(PetscOptionsHasName(((PetscObject)pc)->options, prefix, "-pc_type", &set));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)pc, &is, PCILU, PCICC, PCBJACOBI, ""));
  if (!((PetscObject)pc)->type_name || (!set && is)) PetscCall(PCSetType(pc, PCJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetFromOptions_DeviceBatch(KSP ksp, SpMVOptionItems PetscOptionsObject)
{
  KSP_DeviceBatch *k    = (KSP_DeviceBatch *)ksp->data;
  PetscEnum        type = (PetscEnum)k->method;

  PetscFunctionBegin;
  PetscOptionsHeadBegin(PetscOptionsObject, "Options of solvers for batches");
  PetscCall(
      PetscOptionsEnum("-ksp_devicebatch_type", "Method", "KSPDEVICEBATCH", KSPDeviceBatchTypes, type, &type, NULL));
  k->method = (SpMVBatchMethod)type;
  PetscCall(PetscOptionsInt("-ksp_devicebatch_restart", "Iterations of gmres between two restarts", "KSPDEVICEBATCH",
                            k->restart, &k->restart, NULL));
  PetscCall(
      PetscOptionsBool("-ksp_device", "Solve on the device if possible", "KSPDEVICEBATCH", k->use, &k->use, NULL));
  PetscOptionsHeadEnd();
  PetscCheck(k->restart > 0 && k->restart <= SPMV_BATCH_RESTART, PetscObjectComm((PetscObject)ksp),
             PETSC_ERR_ARG_OUTOFRANGE, "-ksp_devicebatch_restart is %" PetscInt_FMT ": it must be between 1 and %d",
             k->restart, SPMV_BATCH_RESTART);
  PetscCall(KSPDeviceBatchDefaultPC(ksp->pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- a solve */

static PetscErrorCode KSPSetUp_DeviceBatch(KSP ksp)
{
  PetscBool is;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp->pc, &is, PCNONE, PCJACOBI, ""));
  PetscCheck(is, PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP,
             "KSP of type " KSPDEVICEBATCH " supports -pc_type none and jacobi, not %s. To invert the problems use "
             "-ksp_devicebatch_type lu",
             ((PetscObject)ksp->pc)->type_name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the methods can compute the preconditioner from the matrix; otherwise PCApply() shows its diagonal */
static PetscErrorCode KSPDeviceBatchGetPC(KSP ksp, KSP_DeviceBatch *k)
{
  Mat          A, P;
  PetscBool    jacobi, abs, fix;
  PCJacobiType type;
  Vec          ones;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp->pc, PCJACOBI, &jacobi));
  k->options.pc = SPMV_BATCH_NONE;
  if (!jacobi || k->options.method == SPMV_BATCH_LU) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCGetOperators(ksp->pc, &A, &P));
  PetscCall(PCJacobiGetType(ksp->pc, &type));
  PetscCall(PCJacobiGetUseAbs(ksp->pc, &abs));
  PetscCall(PCJacobiGetFixDiagonal(ksp->pc, &fix));
  k->options.pc = SPMV_BATCH_JACOBI;
  if (A == P && type == PC_JACOBI_DIAGONAL && !abs && fix) PetscFunctionReturn(PETSC_SUCCESS);
  k->options.pc = SPMV_BATCH_GIVEN;
  PetscCall(VecDuplicate(ksp->vec_sol, &ones));
  if (!k->diagonal) PetscCall(VecDuplicate(ksp->vec_sol, &k->diagonal));
  PetscCall(VecSet(ones, 1.0));
  PetscCall(PCApply(ksp->pc, ones, k->diagonal));
  PetscCall(VecDestroy(&ones));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDeviceBatchSolveHost(KSP ksp, KSP_DeviceBatch *k, Mat D)
{
  const PetscScalar *b, *d = NULL;
  PetscScalar       *x;
  SpMVCSR            csr;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(k->problems, &k->host));
  PetscCall(MatSpMVGetPattern_Seq(D, &csr));
  PetscCall(MatSeqAIJGetArrayRead(D, &csr.a));
  PetscCall(VecGetArrayRead(ksp->vec_rhs, &b));
  PetscCall(VecGetArray(ksp->vec_sol, &x));
  if (k->options.pc == SPMV_BATCH_GIVEN) PetscCall(VecGetArrayRead(k->diagonal, &d));
  ierr = SpMVBatchSolve(&csr, k->problems, k->first, &k->options, d, b, x, k->host);
  if (d) PetscCall(VecRestoreArrayRead(k->diagonal, &d));
  PetscCall(VecRestoreArray(ksp->vec_sol, &x));
  PetscCall(VecRestoreArrayRead(ksp->vec_rhs, &b));
  PetscCall(MatSeqAIJRestoreArrayRead(D, &csr.a));
  PetscCall(MatSpMVRestorePattern_Seq(D, &csr));
  PetscCall(ierr);
  k->results = k->host;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The problems of this process, and whether they are small and dense. If they are not those of the last solve, the
   device's plan goes */
static PetscErrorCode KSPDeviceBatchGetProblems(KSP_DeviceBatch *k, Mat A, Mat *D)
{
  const PetscInt *first;
  PetscInt        problems;
  PetscInt64      full = 0;
  PetscBool       same;
  PetscObjectId   block;
  SpMVCSR         csr;

  PetscFunctionBegin;
  PetscCall(MatBatchGetProblems(A, &problems, &first, D));
  block = ((PetscObject)*D)->id;
  same = (PetscBool)(k->first && k->block == block && k->nonzerostate == (*D)->nonzerostate && k->problems == problems);
  if (same) PetscCall(PetscArraycmp(k->first, first, problems + 1, &same));
  if (same) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->run) PetscCall((*KSPDeviceCUDA.batchreset)(k));
  PetscCall(PetscFree(k->first));
  PetscCall(PetscMalloc1(problems + 1, &k->first));
  PetscCall(PetscArraycpy(k->first, first, problems + 1));
  k->problems     = problems;
  k->block        = block;
  k->nonzerostate = (*D)->nonzerostate;
  k->dense        = PETSC_TRUE;
  for (PetscInt p = 0; p < problems; p++) {
    const PetscInt n = first[p + 1] - first[p];

    full += (PetscInt64)n * n;
    if (n > SMALL) k->dense = PETSC_FALSE;
  }
  PetscCall(MatSpMVGetPattern_Seq(*D, &csr));
  if ((PetscReal)csr.i[csr.m] < DENSE * (PetscReal)full) k->dense = PETSC_FALSE;
  PetscCall(MatSpMVRestorePattern_Seq(*D, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The problems of this process */
static PetscErrorCode KSPDeviceBatchSolve(KSP ksp, KSP_DeviceBatch *k, Mat A)
{
  PetscBool set, spd;
  Mat       D;

  PetscFunctionBegin;
  PetscCheck(!ksp->transpose_solve, PETSC_COMM_SELF, PETSC_ERR_SUP,
             "KSPSolveTranspose() with type " KSPDEVICEBATCH ": solve with the matrix of MatTranspose()");
  PetscCall(KSPDeviceBatchGetProblems(k, A, &D));
  if (k->method == SPMV_BATCH_METHODS) { /* auto */
    PetscCall(MatIsSPDKnown(A, &set, &spd));
    k->options.method = k->dense ? SPMV_BATCH_LU : set && spd ? SPMV_BATCH_CG : SPMV_BATCH_BCGS;
  }
  if (k->use && KSPDeviceCUDA.batch) PetscCall((*KSPDeviceCUDA.batch)(ksp, k, D, &k->device));
  if (!k->device) PetscCall(KSPDeviceBatchSolveHost(ksp, k, D));
  k->solved = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSolve_DeviceBatch(KSP ksp)
{
  KSP_DeviceBatch  *k       = (KSP_DeviceBatch *)ksp->data;
  MPI_Comm          comm    = PetscObjectComm((PetscObject)ksp);
  SpMVBatchOptions *o       = &k->options;
  PetscReal         norm    = 0;
  int               least[] = {0, SPMV_BATCH_ATOL, 0}; /* -iterations, reasons, -1 for a NaN, which MPI_MAX may drop */
  Mat               A;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, &A, NULL));
  PetscCall(KSPDeviceBatchForget(k));
  k->device  = PETSC_FALSE;
  o->method  = k->method;
  o->left    = (PetscBool)(ksp->normtype == KSP_NORM_PRECONDITIONED);
  o->guess   = (PetscBool)!ksp->guess_zero;
  o->rtol    = ksp->rtol;
  o->abstol  = ksp->abstol;
  o->divtol  = ksp->divtol;
  o->max_it  = (int)PetscMin(ksp->max_it, PETSC_MPI_INT_MAX);
  o->restart = (int)k->restart;
  PetscCall(KSPDeviceBatchGetPC(ksp, k));
  PetscCall(SpMVAgree(comm, KSPDeviceBatchSolve(ksp, k, A)));
  for (PetscInt p = 0; p < k->problems; p++) {
    const SpMVBatchResult *r = &k->results[p];

    least[0] = PetscMin(least[0], -r->its);
    least[1] = PetscMin(least[1], (int)r->reason);
    if (PetscIsNanReal(r->norm)) least[2] = -1;
    if (r->norm > norm) norm = r->norm;
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, least, 3, MPI_INT, MPI_MIN, comm));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &norm, 1, MPIU_REAL, MPI_MAX, comm));
  ksp->its    = -least[0];
  ksp->reason = (KSPConvergedReason)least[1];
  ksp->rnorm  = least[2] ? (PetscReal)NAN : norm;
  PetscCall(KSPLogResidualHistory(ksp, ksp->rnorm));
  PetscCall(KSPMonitor(ksp, ksp->its, ksp->rnorm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   KSPDEVICEBATCH - Solves each problem of a batch (`MATBATCH`) by itself, to its own tolerance, all of them in one
   launch on a GPU

   Options Database Key:
.  -ksp_type devicebatch - use this type

   Intermediate Options Database Keys:
+  -ksp_devicebatch_type <auto>  - `cg`, `bcgs`, `gmres`, or `lu`, which factors each problem, see the notes
-  -ksp_devicebatch_restart <30> - number of iterations of `gmres` between two restarts, at most 30

   Level: beginner

   Notes:
   The problems are those of a `MATBATCH` matrix. Other matrices derived from `MATAIJ` also work: their problems are the
   blocks of `MatSetVariableBlockSizes()`, or otherwise the smallest blocks of consecutive rows that contain all
   entries. An entry outside of the blocks is an error.

   The tolerances and the maximum number of iterations of `KSPSetTolerances()` hold for each problem: its iterations end
   when the norm of its residual is below the larger of rtol times the norm of its right-hand side and atol. By default
   it is the norm of b - A x, and the preconditioner is applied on the right. With `KSP_NORM_PRECONDITIONED`
   it is applied on the left, and the norm of the preconditioned residual is tested. A problem counts as solved only if
   the residual that is computed from its solution passes the test, not the one that the iterations update. If a
   tolerance is too small for the rounding errors, the reason is `KSP_DIVERGED_BREAKDOWN`, also if the residual passes
   the test although rounding errors may be a hundred times larger, as with solutions of nearly singular problems.

   A problem that is singular or has a NaN does not disturb the others. `KSPGetConvergedReason()` returns the worst
   reason of all problems, `KSPGetIterationNumber()` the largest number of iterations, `KSPGetResidualNorm()` the
   largest norm; `KSPDeviceBatchGetSolveInfo()` gets those of each problem. `-ksp_view` prints the least, the median and
   the largest number of iterations and the numbers of the problems that were not solved. Monitors are called once, at
   the end.

   By default the method is `lu` for dense problems of up to 64 rows (a quarter of the entries of full matrices or
   more), otherwise `cg` if the matrix is known to be positive definite (`MatSetOption()` with `MAT_SPD`), and `bcgs`
   if not.

   The preconditioner is `PCJACOBI`, unless another one is chosen, or `PCNONE`; `lu` uses none. There, an iteration is a
   solve with the factors, and more than one is needed only if the first solution does not pass the test. A pivot of
   zero gives `KSP_DIVERGED_PC_FAILED`.

   On several processes nothing is exchanged but the worst reason at the end. On a GPU the problems are solved there if
   the matrix and the vectors are on the GPU (`-ksp_device 0` prevents it).

.seealso: `MATBATCH`, `KSPDeviceBatchGetSolveInfo()`, `MatCreateBatch()`, `KSPDEVICECG`, `KSPSetType()`,
`KSPSetTolerances()`
M*/
PetscErrorCode KSPCreate_DeviceBatch(KSP ksp)
{
  KSP_DeviceBatch *k;
  PC               pc;

  PetscFunctionBegin;
  PetscCall(PetscNew(&k));
  k->method  = SPMV_BATCH_METHODS;
  k->restart = SPMV_BATCH_RESTART;
  k->use     = PETSC_TRUE;
  ksp->data  = k;
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_UNPRECONDITIONED, PC_RIGHT, 3));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_PRECONDITIONED, PC_LEFT, 2));
  ksp->ops->setup          = KSPSetUp_DeviceBatch;
  ksp->ops->solve          = KSPSolve_DeviceBatch;
  ksp->ops->reset          = KSPReset_DeviceBatch;
  ksp->ops->destroy        = KSPDestroy_DeviceBatch;
  ksp->ops->view           = KSPView_DeviceBatch;
  ksp->ops->setfromoptions = KSPSetFromOptions_DeviceBatch;
  ksp->ops->buildsolution  = KSPBuildSolutionDefault;
  ksp->ops->buildresidual  = KSPBuildResidualDefault;
  PetscCall(KSPGetPC(ksp, &pc));
  if (!((PetscObject)pc)->type_name) PetscCall(PCSetType(pc, PCJACOBI));
  PetscFunctionReturn(PETSC_SUCCESS);
}
