/*
  Krylov methods whose iterations run on the device, and the data and functions that their types share.

  Each type is one of PETSc's own types, created by PETSc's function, with another solve function. If the iterations can
  run on the device they do; otherwise PETSc's solve runs. Everything else (options, work vectors, norms, views) is
  PETSc's.

    deviceksp.c  creation, the decision where a solve runs, views
    krylov.c     a solve on the device: preconditioner, product, sums over ranks, the results that the host reads
    devicecg.c, devicebcgs.c, devicechebyshev.c  the types
*/
#pragma once

#include <petsc/private/kspimpl.h>
#include "mat/impls/spmv/matspmv.h"
#if defined(PETSCSPMV_HAVE_CUDA)
  #include "core/cuda/krylov/krylov.h"
#endif

#if defined(PETSCSPMV_HAVE_CUDA)
/* The state on which the entries of a preconditioner depend */
typedef struct {
  SpMVKey       matrix;
  PetscObjectId pc;
  int           type; /* 1: PCJACOBI, whose settings follow */
  PCJacobiType  jacobi;
  PetscReal     scale;
  PetscBool     abs, fix, reuse;
} KSPDevicePCKey;

/* A solve on the device */
typedef struct {
  SpMVCudaKrylov krylov;  /* NULL before the first solve */
  PetscBool      peers;   /* the memory of other ranks is open */
  PetscBool      summing; /* sums over ranks are set up */
  KSPDevicePCKey pckey;   /* the key of d */
  SpMVTransport  transport;
  MPI_Comm       comm; /* for the sums over ranks */
  SpMVCudaComm   nccl;
  PetscReal     *staged; /* sums, in pinned memory */
  char           sums[SPMV_HALO_TEXT + 64];

  cudaStream_t     stream;
  Mat              A;
  SpMVFusedProduct product; /* store: NULL if PETSc multiplies; halo: NULL on one rank */
  PetscScalar     *x, *r, *z, *p, *w, *d;
  SpMVKrylovPC     pc;
  PetscInt         bs;
  PetscBool        fuse;  /* the product's kernel may compute the inner product, too */
  PetscBool        began; /* ksp->its counts an iteration that the device has not completed, as in KSPCG */
  PetscBool        exact; /* the host reads each iteration before the next one, for a user-defined test or monitor */
  PetscInt         ahead; /* number of iterations that the host starts before it has seen the end of an earlier one */
  PetscInt         read;  /* number of norms that the host has read */
  SpMVKrylovStatus status;
  PetscLogDouble   flops; /* of an iteration without the product */
} KSPDeviceRun;

/* A product with the sums of a method's step, such as SpMVCudaCGMult() */
typedef cudaError_t(KSPDeviceMultFn)(SpMVCudaKrylov, SpMVCudaStore, cudaStream_t, PetscBool *done);
#endif

typedef struct _n_KSP_Device KSP_Device;
struct _n_KSP_Device {
  KSPType        type;  /* PETSc's own type, from which this type is created */
  struct _KSPOps petsc; /* the operations of PETSc's type */
  PetscBool      use;   /* -ksp_device */
  /* ranks need not agree on where to run: no sums, and as many products as in PETSc's solve */
  PetscBool alone;
  PetscBool solved;   /* there has been a solve */
  PetscBool device;   /* the last solve ran on the device */
  char      why[256]; /* why it did not */
  /* fuse: see KSPDeviceRun; early: kernels let the next kernel begin */
  PetscBool fuse, early;
  PetscInt  ahead;                                   /* see KSPDeviceRun */
  PetscErrorCode (*whynot)(KSP, char why[], size_t); /* gets what the method does not support on the device; or NULL */
  /* the method's solve on the device; NULL if the library has no GPU code */
  PetscErrorCode (*ondevice)(KSP, KSP_Device *);
  PetscErrorCode (*reset)(KSP_Device *); /* frees the method's data in KSPReset(); or NULL */
  void *method;                          /* the method's own data; freed with this structure */
#if defined(PETSCSPMV_HAVE_CUDA)
  KSPDeviceRun run;
#endif
};

/* deviceksp.c */
PETSC_INTERN PetscErrorCode KSPDeviceRegister(PetscBool device);
/* Gives ksp PETSc's type and a KSP_Device; the caller replaces operations */
PETSC_INTERN PetscErrorCode KSPDeviceCreate(KSP, KSPType, KSP_Device **);
PETSC_INTERN PetscErrorCode KSPDeviceGet(KSP, KSP_Device **);
/* The solve of all methods: runs on the device, or calls PETSc's solve */
PETSC_INTERN PetscErrorCode KSPSolve_Device(KSP);

/* The constructors of the types, which deviceksp.c registers; it calls nothing else of their files. devicecg.c: */
PETSC_INTERN PetscErrorCode KSPCreate_DeviceCG(KSP);

/* devicebcgs.c: */
PETSC_INTERN PetscErrorCode KSPCreate_DeviceBCGS(KSP);

/* devicechebyshev.c: */
PETSC_INTERN PetscErrorCode KSPCreate_DeviceChebyshev(KSP);

#if defined(PETSCSPMV_HAVE_CUDA)
/* krylov.c */
PETSC_INTERN PetscErrorCode KSPDeviceRunReset(KSPDeviceRun *); /* collective */
/* Creates the data that is needed once for all solves; `why` is set if this rank has no memory for it */
PETSC_INTERN PetscErrorCode KSPDeviceRunCreate(KSP, KSP_Device *, char why[], size_t);
/* Prepares a solve, except for the vectors' arrays: the sums over ranks and the product */
PETSC_INTERN PetscErrorCode KSPDeviceRunBegin(KSP, KSP_Device *);
/* Determines whether the kernels apply the preconditioner, and if so gets its entries; u and v are overwritten */
PETSC_INTERN PetscErrorCode KSPDeviceGetPC(KSP, KSPDeviceRun *, Vec u, Vec v);
/* Gets the array of a vector that our kernels write, and marks the vector's values as new and on the device */
PETSC_INTERN PetscErrorCode KSPDeviceTouch(Vec, PetscScalar **);
/* Computes w = A p. If there is a kernel that also does the method's additional work, it is used and *done is true */
PETSC_INTERN PetscErrorCode KSPDeviceMult(KSPDeviceRun *, Vec p, Vec w, KSPDeviceMultFn *, PetscBool *done);
PETSC_INTERN PetscErrorCode KSPDeviceGetTest(KSP, KSPDeviceRun *, SpMVKrylovTest *, SpMVKrylovNorm *);
/* Waits until this number of iterations is complete, or the solve has ended */
PETSC_INTERN PetscErrorCode KSPDeviceAwait(KSPDeviceRun *, PetscInt iterations);
/* Waits until the norm of the next iteration has been computed, or the solve has ended */
PETSC_INTERN PetscErrorCode KSPDeviceAwaitNorm(KSPDeviceRun *);
/* Whether iteration n is to be started; the result is the same on all ranks */
PETSC_INTERN PetscErrorCode KSPDeviceMayStart(KSPDeviceRun *, PetscInt n, PetscBool *);
/* Passes the norms that have been computed to the history and the monitors */
PETSC_INTERN PetscErrorCode KSPDeviceDeliver(KSP, KSPDeviceRun *);
/* Runs all iterations, with their norms, tests and monitors; sets the reason if the host decides it. `iterate` starts
   one iteration on the device */
PETSC_INTERN PetscErrorCode KSPDeviceIterations(KSP, KSPDeviceRun *, PetscErrorCode (*iterate)(KSP, KSPDeviceRun *));
/* Sets the number of iterations and the reason from the device's status */
PETSC_INTERN PetscErrorCode KSPDeviceConclude(KSP, KSPDeviceRun *);
PETSC_INTERN const char    *KSPDeviceDescribePC(const KSPDeviceRun *);
#endif
