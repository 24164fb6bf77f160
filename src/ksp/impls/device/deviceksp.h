/*
  Krylov methods whose iterations run on the device, and the data and functions that their types share.

  Each type is one of PETSc's own types, created by PETSc's function, with another solve function. If the iterations can
  run on the device they do; otherwise PETSc's solve runs. Everything else (options, work vectors, norms, views) is
  PETSc's.

    types.c      the types, with their manual pages
    devicebatch.c  the type that solves the problems of a batch one by one; it is not one of PETSc's
    deviceksp.c  creation, options, views
    cuda/        solves on the device; without CUDA the makefile leaves this folder out, and the table KSPDeviceCUDA in
                 nocuda.c is empty
*/
#pragma once

#include <petsc/private/kspimpl.h>
#include "mat/impls/spmv/matspmv.h"

typedef struct _n_KSPDeviceRun KSPDeviceRun; /* a solve on the device: cuda/krylov.h */

struct _n_KSP_DeviceBatch; /* devicebatch.h */

typedef struct _n_KSP_Device KSP_Device;
struct _n_KSP_Device {
  KSPType        type;  /* PETSc's own type, from which this type is created */
  struct _KSPOps petsc; /* the operations of PETSc's type */
  PetscBool      use;   /* -ksp_device */
  /* ranks need not agree on where to run: no sums, and as many products as in PETSc's solve */
  PetscBool alone;
  PetscBool solved;                                  /* there has been a solve */
  PetscBool device;                                  /* the last solve ran on the device */
  char      why[256];                                /* why it did not */
  PetscErrorCode (*whynot)(KSP, char why[], size_t); /* gets what the method does not support on the device; or NULL */
  /* the method's solve on the device; NULL if the library has no GPU code */
  PetscErrorCode (*ondevice)(KSP, KSP_Device *);
  /* gets the method's memory on the device; sets `why` if this rank does not have it; or NULL */
  PetscErrorCode (*reserve)(KSP, KSP_Device *, char why[], size_t);
  PetscErrorCode (*reset)(KSP_Device *); /* frees the method's data in KSPReset(); or NULL */
  void         *method;                  /* the method's own data; freed with this structure */
  KSPDeviceRun *run;                     /* NULL before the first solve on the device */
};

/* What is done on a device: cuda/backend.c, or nocuda.c, where all members are NULL */
typedef struct {
  PetscErrorCode (*cg)(KSP, KSP_Device *); /* see KSPDeviceCreate() */
  PetscErrorCode (*bcgs)(KSP, KSP_Device *);
  PetscErrorCode (*gmres)(KSP, KSP_Device *);
  PetscErrorCode (*chebyshev)(KSP, KSP_Device *);
  /* gets the reason why a solve cannot run on the device, empty if it can; collective unless d->alone */
  PetscErrorCode (*whynot)(KSP, KSP_Device *, char why[], size_t);
  PetscErrorCode (*view)(const KSP_Device *, PetscViewer); /* after a solve on the device */
  PetscErrorCode (*reset)(KSP_Device *);
  PetscErrorCode (*replacetypes)(void); /* of KSPGMRES and its variants, PCGAMG and PCJACOBI */
  /* devicebatch.h: solves the problems of this process, if it can be done on the device; frees */
  PetscErrorCode (*batch)(KSP, struct _n_KSP_DeviceBatch *, Mat, PetscBool *done);
  PetscErrorCode (*batchreset)(struct _n_KSP_DeviceBatch *);
} KSPDeviceBackend;
PETSC_INTERN const KSPDeviceBackend KSPDeviceCUDA;

/* deviceksp.c: */

/* Makes `ours` the constructor of a type of PETSc, unless it is so already; *petsc becomes PETSc's, which `ours` calls */
#define KSPDeviceReplaceType(list, type, ours, petsc) \
  KSPDeviceReplaceType_Private(&(list), type, (void (*)(void))(ours), (void (**)(void))(petsc))
PETSC_INTERN PetscErrorCode KSPDeviceReplaceType_Private(PetscFunctionList *, const char[], void (*)(void),
                                                         void (**)(void));
PETSC_INTERN PetscErrorCode KSPDeviceRegister(PetscBool device);
/* Gives ksp PETSc's type and a KSP_Device; `method` (or NULL) adds the method's solve on the device */
PETSC_INTERN PetscErrorCode KSPDeviceCreate(KSP, KSPType, PetscErrorCode (*method)(KSP, KSP_Device *));
PETSC_INTERN PetscErrorCode KSPDeviceGet(KSP, KSP_Device **);
PETSC_INTERN PetscErrorCode KSPDeviceGetMethod(KSP, void *data); /* the address of a pointer to the method's own data */
/* Called after functions of PETSc that may choose another solve function */
PETSC_INTERN PetscErrorCode KSPDeviceTakeSolve(KSP);
/* The solve of all methods: runs on the device, or calls PETSc's solve */
PETSC_INTERN PetscErrorCode KSPSolve_Device(KSP);

/* types.c and devicebatch.c: the constructors of the types */
PETSC_INTERN PetscErrorCode KSPCreate_DeviceCG(KSP);
PETSC_INTERN PetscErrorCode KSPCreate_DeviceBCGS(KSP);
PETSC_INTERN PetscErrorCode KSPCreate_DeviceGMRES(KSP);
PETSC_INTERN PetscErrorCode KSPCreate_DeviceFGMRES(KSP);
PETSC_INTERN PetscErrorCode KSPCreate_DeviceChebyshev(KSP);
PETSC_INTERN PetscErrorCode KSPCreate_DeviceBatch(KSP);
