/*
  The type gamg: creation from PETSc's type, options, views, set-up.
*/
#include "gamg.h"
#include "ksp/impls/device/cuda/krylov.h"

#if PCGAMG_DEVICE

static const char PCGAMGDeviceName[] = "PetscSpMV_PCGAMG";

static PetscErrorCode (*PCCreate_PETScGAMG)(PC); /* PETSc's function for PCGAMG, before it was replaced */

PetscErrorCode PCGAMGDeviceGet(PC pc, PC_GAMGDevice **d)
{
  PetscFunctionBegin;
  PetscCall(SpMVDataGet((PetscObject)pc, PCGAMGDeviceName, d));
  PetscCheck(*d, PetscObjectComm((PetscObject)pc), PETSC_ERR_PLIB, "PC of type %s has no data of PetscSpMV",
             ((PetscObject)pc)->type_name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGAMGDeviceForget(PC_GAMGDevice *d)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(SpMVCudaFreeTemporary(&d->memory, stream));
  d->near = NULL;
  PetscCall(PCGAMGLevelFree(&d->level));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetFromOptions_GAMGDevice(PC pc, PetscOptionItems PetscOptionsObject)
{
  PC_GAMGDevice *d;

  PetscFunctionBegin;
  PetscCall(PCGAMGDeviceGet(pc, &d));
  PetscCall((*d->setfromoptions)(pc, PetscOptionsObject));
  PetscOptionsHeadBegin(PetscOptionsObject, "GAMG options on the device");
  PetscCall(PetscOptionsBool("-pc_gamg_device", "Make graphs, aggregates and prolongators on the device if possible",
                             "PCGAMG", d->use, &d->use, NULL));
  PetscOptionsHeadEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCView_GAMGDevice(PC pc, PetscViewer viewer)
{
  PC_GAMGDevice *d;
  Mat_SpMV      *spmv = NULL;

  PetscFunctionBegin;
  PetscCall(PCGAMGDeviceGet(pc, &d));
  PetscCall((*d->view)(pc, viewer));
  if (pc->pmat) PetscCall(MatSpMVGet(pc->pmat, &spmv));
  if (!spmv) PetscFunctionReturn(PETSC_SUCCESS); /* as without the library */
  if (d->levels == d->device && d->levels)
    PetscCall(PetscViewerASCIIPrintf(viewer, "      Graphs, aggregates and prolongators made on the device\n"));
  else if (d->levels)
    PetscCall(PetscViewerASCIIPrintf(viewer,
                                     "      Graphs, aggregates and prolongators of %" PetscInt_FMT " of %" PetscInt_FMT
                                     " levels made on the device, the others by PETSc: %s\n",
                                     d->device, d->levels, d->why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies, and the exchange of the halo, for products on the device */
static PetscErrorCode MatGetReady_GAMG(Mat A, SpMVMultPlanKind kind)
{
  Mat_SpMV    *spmv = NULL;
  SpMVMultPlan plan;

  PetscFunctionBegin;
  if (A) PetscCall(MatSpMVGet(A, &spmv));
  if (spmv && spmv->device) PetscCall(MatSpMVGetPlan_CUDA(A, kind, NULL, NULL, &plan));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory where the vectors will be written */
static PetscErrorCode VecGetReady_GAMG(PetscInt count, const Vec v[])
{
  PetscScalar *a;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < count; k++) {
    if (!v[k]) continue;
    PetscCall(VecGetArrayWriteAndMemType(v[k], &a, NULL));
    PetscCall(VecRestoreArrayWriteAndMemType(v[k], &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory for the vectors, and Jacobi's diagonal, which PETSc computes when it is applied */
static PetscErrorCode KSPGetReady_GAMG(KSP ksp)
{
  const PetscInt count = ksp->work ? ksp->nwork : 0; /* KSPReset() leaves the number */
  PetscBool      jacobi;
  PC             pc;

  PetscFunctionBegin;
  PetscCall(VecGetReady_GAMG(count, ksp->work));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCJACOBI, &jacobi));
  if (jacobi && count > 1) {
    PetscCall(VecSet(ksp->work[0], 0));
    PetscCall(PCApply(pc, ksp->work[0], ksp->work[1]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does what the first solve would do otherwise */
static PetscErrorCode PCGAMGGetReady(PC pc)
{
  const PC_MG *mg = (PC_MG *)pc->data;
  KSP          ksp;

  PetscFunctionBegin;
  for (PetscInt l = 0; l < mg->nlevels; l++) {
    const PC_MG_Levels *level = mg->levels[l];

    /* the right-hand side and the solution of the finest level are the program's */
    PetscCall(VecGetReady_GAMG(l < mg->nlevels - 1 ? 3 : 1, (const Vec[]){level->r, level->b, level->x}));
    if (!l) continue;
    PetscCall(MatGetReady_GAMG(level->smoothd->pc->mat, SPMV_PLAN_MULT));
    PetscCall(MatGetReady_GAMG(level->interpolate, SPMV_PLAN_MULT));
    PetscCall(MatGetReady_GAMG(level->interpolate, SPMV_PLAN_TRANSPOSE));
    PetscCall(KSPGetReady_GAMG(level->smoothd));
  }
  PetscCall(PCMGGetCoarseSolve(pc, &ksp));
  PetscCall(KSPSetUpOnBlocks(ksp)); /* the factorization */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's set-up, in which our functions make the levels */
static PetscErrorCode PCSetUp_GAMGDevice(PC pc)
{
  struct _PCGAMGOps *ops = PCGAMGGet(pc)->ops;
  PC_GAMGDevice     *d;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(PCGAMGDeviceGet(pc, &d));
  d->ops   = *ops;
  d->again = PETSC_TRUE;
  /* the types geo and classical have functions of other kinds */
  if (!strcmp(PCGAMGGet(pc)->gamg_type_name, PCGAMGAGG)) {
    ops->createdefaultdata = PCGAMGCreateDefaultData_Device;
    ops->creategraph       = PCGAMGCreateGraph_Device;
    ops->coarsen           = PCGAMGCoarsen_Device;
    ops->prolongator       = PCGAMGProlongator_Device;
    ops->optprolongator    = PCGAMGOptProlongator_Device;
  } else
    d->levels = d->device = 0;
  ierr                   = (*d->setup)(pc);
  ops->createdefaultdata = d->ops.createdefaultdata; /* even after an error */
  ops->creategraph       = d->ops.creategraph;
  ops->coarsen           = d->ops.coarsen;
  ops->prolongator       = d->ops.prolongator;
  ops->optprolongator    = d->ops.optprolongator;
  if (d->lazy) PetscCall(PetscFree(PCGAMGGet(pc)->data));
  d->lazy = PETSC_FALSE;
  PetscCall(PCGAMGDeviceForget(d));
  PetscCall(ierr);
  if (d->device) PetscCall(PCGAMGGetReady(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCDestroy_GAMGDevice(PC pc)
{
  PC_GAMGDevice *d;
  PetscErrorCode (*destroy)(PC);

  PetscFunctionBegin;
  PetscCall(PCGAMGDeviceGet(pc, &d));
  destroy = d->destroy;
  PetscCall(SpMVDataSet((PetscObject)pc, PCGAMGDeviceName, NULL, NULL));
  PetscCall((*destroy)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCCreate_GAMGDevice(PC pc)
{
  PC_GAMGDevice *d;

  PetscFunctionBegin;
  PetscCall((*PCCreate_PETScGAMG)(pc));
  PetscCall(PetscNew(&d));
  d->use                    = PETSC_TRUE;
  d->setup                  = pc->ops->setup;
  d->setfromoptions         = pc->ops->setfromoptions;
  d->destroy                = pc->ops->destroy;
  d->view                   = ((PC_MG *)pc->data)->view;
  pc->ops->setup            = PCSetUp_GAMGDevice;
  pc->ops->destroy          = PCDestroy_GAMGDevice;
  ((PC_MG *)pc->data)->view = PCView_GAMGDevice;
  pc->ops->setfromoptions   = PCSetFromOptions_GAMGDevice;
  PetscCall(SpMVDataSet((PetscObject)pc, PCGAMGDeviceName, d, PetscCtxDestroyDefault));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGAMGReplaceType(void)
{
  PetscFunctionBegin;
  PetscCall(KSPDeviceReplaceType(PCList, PCGAMG, PCCreate_GAMGDevice, &PCCreate_PETScGAMG));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#else

PetscErrorCode PCGAMGReplaceType(void)
{
  PetscFunctionBegin;
  PetscCall(PetscInfo(NULL, "PCGAMG is set up by PETSc's functions: the set-up on the device is for PETSc 3.26\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
