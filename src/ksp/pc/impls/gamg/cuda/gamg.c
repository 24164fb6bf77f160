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

/* What the first solve would do otherwise: makes the copies, and the exchange of the halo, that products on the device
   need */
static PetscErrorCode MatGetReady_GAMG(Mat A, SpMVMultPlanKind kind)
{
  Mat_SpMV    *spmv = NULL;
  SpMVMultPlan plan;

  PetscFunctionBegin;
  if (A) PetscCall(MatSpMVGet(A, &spmv));
  if (spmv && spmv->device) PetscCall(MatSpMVGetPlan_CUDA(A, kind, NULL, NULL, &plan));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGGetReady(PC pc)
{
  PetscInt levels;
  KSP      ksp;
  Mat      A, P;

  PetscFunctionBegin;
  PetscCall(PCMGGetLevels(pc, &levels));
  for (PetscInt l = 1; l < levels; l++) {
    PetscCall(PCMGGetSmoother(pc, l, &ksp));
    PetscCall(KSPGetOperators(ksp, &A, NULL));
    PetscCall(PCMGGetInterpolation(pc, l, &P));
    PetscCall(MatGetReady_GAMG(A, SPMV_PLAN_MULT));
    PetscCall(MatGetReady_GAMG(P, SPMV_PLAN_MULT));
    PetscCall(MatGetReady_GAMG(P, SPMV_PLAN_TRANSPOSE));
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
