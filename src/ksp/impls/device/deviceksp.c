/*
  Functions shared by the Krylov methods on the device: creation from PETSc's own type, options, views.
*/
#include "deviceksp.h"

static const char KSPDeviceName[] = "PetscSpMV_KSPDevice";

static PetscErrorCode (*KSPCreate_PETScChebyshev)(KSP); /* PETSc's function for KSPCHEBYSHEV, before it was replaced */

static PetscErrorCode KSPDeviceFree(SpMVCtx ctx)
{
  KSP_Device *d = (KSP_Device *)SpMVCtxGet(ctx);

  PetscFunctionBegin;
  PetscCall(PetscFree(d->method));
  PetscCall(PetscFree(d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceGet(KSP ksp, KSP_Device **d)
{
  PetscFunctionBegin;
  PetscCall(SpMVDataGet((PetscObject)ksp, KSPDeviceName, d));
  PetscCheck(*d, PetscObjectComm((PetscObject)ksp), PETSC_ERR_PLIB, "KSP of type %s is not a type of PetscSpMV",
             ((PetscObject)ksp)->type_name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceGetMethod(KSP ksp, void *data)
{
  KSP_Device *d = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  *(void **)data = d->method;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPReset_Device(KSP ksp)
{
  KSP_Device *d = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  if (d->run) PetscCall((*KSPDeviceCUDA.reset)(d));
  d->solved = PETSC_FALSE;
  if (d->petsc.reset) PetscCall((*d->petsc.reset)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDestroy_Device(KSP ksp)
{
  KSP_Device *d = NULL;
  PetscErrorCode (*destroy)(KSP);

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  if (d->run) PetscCall((*KSPDeviceCUDA.reset)(d));
  destroy = d->petsc.destroy;
  PetscCall(SpMVDataSet((PetscObject)ksp, KSPDeviceName, NULL, NULL));
  PetscCall((*destroy)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPView_Device(KSP ksp, PetscViewer viewer)
{
  KSP_Device *d = NULL;
  PetscBool   isascii, replaced;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  if (d->petsc.view) PetscCall((*d->petsc.view)(ksp, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &isascii));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, d->type, &replaced));
  /* KSPCHEBYSHEV with PETSc's iterations: print nothing of this library */
  if (!isascii || (replaced && !d->device)) PetscFunctionReturn(PETSC_SUCCESS);
  if (!d->solved)
    PetscCall(PetscViewerASCIIPrintf(viewer,
                                     "  not used yet: iterates on the device if the matrix and the vectors are on the "
                                     "device, otherwise PETSc's %s\n",
                                     d->type));
  else if (!d->device)
    PetscCall(PetscViewerASCIIPrintf(viewer, "  iterations of PETSc's %s: %s\n", d->type, d->why));
  else
    PetscCall((*KSPDeviceCUDA.view)(d, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetFromOptions_Device(KSP ksp, SpMVOptionItems PetscOptionsObject)
{
  KSP_Device *d = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  if (d->petsc.setfromoptions) PetscCall((*d->petsc.setfromoptions)(ksp, PetscOptionsObject));
  PetscOptionsHeadBegin(PetscOptionsObject, "KSP options on the device");
  PetscCall(PetscOptionsBool("-ksp_device", "Iterate on the device if possible", "KSPDEVICECG", d->use, &d->use, NULL));
  PetscOptionsHeadEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceTakeSolve(KSP ksp)
{
  KSP_Device *d = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  if (ksp->ops->solve != KSPSolve_Device) d->petsc.solve = ksp->ops->solve;
  ksp->ops->solve = KSPSolve_Device;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetUp_Device(KSP ksp)
{
  KSP_Device *d = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  PetscCall((*d->petsc.setup)(ksp));
  PetscCall(KSPDeviceTakeSolve(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceCreate(KSP ksp, KSPType type, PetscErrorCode (*method)(KSP, KSP_Device *))
{
  KSP_Device *d;
  PetscErrorCode (*create)(KSP);

  PetscFunctionBegin;
  PetscCall(PetscFunctionListFind(KSPList, type, &create));
  if (create == KSPCreate_DeviceChebyshev) create = KSPCreate_PETScChebyshev;
  PetscCheck(create, PetscObjectComm((PetscObject)ksp), PETSC_ERR_ARG_UNKNOWN_TYPE, "PETSc has no KSP type %s", type);
  PetscCall((*create)(ksp));
  PetscCall(PetscNew(&d));
  d->type  = type;
  d->petsc = *ksp->ops;
  d->use   = PETSC_TRUE;
  PetscCall(SpMVDataSet((PetscObject)ksp, KSPDeviceName, d, KSPDeviceFree));
  ksp->ops->reset          = KSPReset_Device;
  ksp->ops->destroy        = KSPDestroy_Device;
  ksp->ops->view           = KSPView_Device;
  ksp->ops->setfromoptions = KSPSetFromOptions_Device;
  ksp->ops->solve          = KSPSolve_Device;
  if (ksp->ops->setup) ksp->ops->setup = KSPSetUp_Device;
  if (method) PetscCall((*method)(ksp, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- where a solve runs */

PetscErrorCode KSPSolve_Device(KSP ksp)
{
  KSP_Device *d = NULL;

  PetscFunctionBegin;
  PetscCall(KSPDeviceGet(ksp, &d));
  if (d->ondevice)
    PetscCall((*KSPDeviceCUDA.whynot)(ksp, d, d->why, sizeof(d->why)));
  else
    PetscCall(PetscStrncpy(d->why, "the library was built without GPU code", sizeof(d->why)));
  d->solved = PETSC_TRUE;
  d->device = (PetscBool)!d->why[0];
  if (!d->device) PetscCall(PetscInfo(ksp, "Iterations of PETSc's %s: %s\n", d->type, d->why));
  PetscCall(d->device ? (*d->ondevice)(ksp, d) : (*d->petsc.solve)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceReplaceType_Private(PetscFunctionList *list, const char type[], void (*ours)(void),
                                            void (**petsc)(void))
{
  void (*create)(void);

  PetscFunctionBegin;
  PetscCall(PetscFunctionListFind(*list, type, &create));
  if (!create || create == ours) PetscFunctionReturn(PETSC_SUCCESS);
  *petsc = create;
  PetscCall(PetscFunctionListAdd(list, type, ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPDeviceRegister(PetscBool device)
{
  PetscFunctionBegin;
  PetscCall(KSPInitializePackage());
  /* The smoothers of PCMG and PCGAMG have type KSPCHEBYSHEV by default, and PCGAMG passes its eigenvalue estimates to no
     other type. For other matrices and on the host, KSPCHEBYSHEV works as before */
  if (device)
    PetscCall(KSPDeviceReplaceType(KSPList, KSPCHEBYSHEV, KSPCreate_DeviceChebyshev, &KSPCreate_PETScChebyshev));
  if (device && KSPDeviceCUDA.replacetypes) PetscCall((*KSPDeviceCUDA.replacetypes)());
  PetscCall(KSPRegister(KSPDEVICECG, KSPCreate_DeviceCG));
  PetscCall(KSPRegister(KSPDEVICEBCGS, KSPCreate_DeviceBCGS));
  PetscCall(KSPRegister(KSPDEVICEGMRES, KSPCreate_DeviceGMRES));
  PetscCall(KSPRegister(KSPDEVICEFGMRES, KSPCreate_DeviceFGMRES));
  PetscCall(KSPRegister(KSPDEVICECHEBYSHEV, KSPCreate_DeviceChebyshev));
  PetscCall(KSPRegister(KSPDEVICEBATCH, KSPCreate_DeviceBatch));
  PetscFunctionReturn(PETSC_SUCCESS);
}
