/*
  Krylov methods whose iterations run on the device, and what their types share.

  Such a type is one of PETSc's own types, made by PETSc's function, whose solve is replaced. Where the iterations can run on
  the device they do; otherwise PETSc's solve runs. Everything else (options, work vectors, norms, views) is PETSc's.

    deviceksp.c  creation, the decision where a solve runs, views
    krylov.c     a solve on the device: preconditioner, product, sums over ranks, what the host sees of it
    devicecg.c, devicebicgstab.c, devicechebyshev.c  the types
*/
#pragma once

#include <petsc/private/kspimpl.h>
#include "../../../mat/impls/spmv/matspmv.h"
#if defined(PETSCSPMV_HAVE_CUDA)
  #include "../../../core/cuda/krylov.h"
#endif

#if defined(PETSCSPMV_HAVE_CUDA)
/* What the entries of a preconditioner depend on */
typedef struct {
  SpMVKey       matrix;
  PetscObjectId pc;
  int           type; /* 1: PCJACOBI, and then its settings, below */
  PCJacobiType  jacobi;
  PetscReal     scale;
  PetscBool     abs, fix, reuse;
} KSPDevicePCKey;

/* A solve on the device */
typedef struct {
  SpMVCudaKrylov krylov;  /* NULL before the first one */
  PetscBool      peers;   /* it has the memory of other ranks open */
  PetscBool      summing; /* sums over ranks are set up */
  KSPDevicePCKey pckey;   /* of d */
  SpMVTransport  transport;
  MPI_Comm       comm; /* of the sums over ranks */
  SpMVCudaComm   nccl;
  PetscReal     *staged; /* sums, in pinned memory */
  char           sums[SPMV_HALO_TEXT + 64];

  cudaStream_t     stream;
  Mat              A;
  SpMVCudaStore    store; /* of A, where the core multiplies without PETSc; else NULL */
  PetscScalar     *x, *r, *z, *p, *w, *d;
  SpMVKrylovPC     pc;
  PetscInt         bs;
  PetscBool        fuse;  /* the product's kernel may compute the inner product, too */
  PetscBool        began; /* ksp->its counts an iteration that the device has not completed, as in KSPCG */
  PetscBool        exact; /* the host looks at each iteration before the next one: a test or a monitor of the user's */
  PetscInt         ahead; /* iterations that the host starts before it has seen the end of an earlier one */
  PetscInt         read;  /* norms that the host has read */
  SpMVKrylovStatus status;
  PetscLogDouble   product, flops; /* of a product, where PETSc does not log them, and of the rest of an iteration */
} KSPDeviceRun;
#endif

typedef struct _n_KSP_Device KSP_Device;
struct _n_KSP_Device {
  KSPType        type;                               /* PETSc's own, that this one is made from */
  struct _KSPOps petsc;                              /* its operations */
  PetscBool      use;                                /* -ksp_device */
  PetscBool      alone;                              /* ranks need not agree where to run: nothing is summed, and PETSc's solve multiplies as often as ours */
  PetscBool      solved;                             /* there has been a solve */
  PetscBool      device;                             /* the last one ran on the device */
  char           why[256];                           /* why not */
  PetscBool      fuse, early;                        /* see KSPDeviceRun; kernels let the next one begin */
  PetscInt       ahead;                              /* see KSPDeviceRun */
  PetscErrorCode (*whynot)(KSP, char why[], size_t); /* what the method itself does not do on the device; or NULL */
  PetscErrorCode (*ondevice)(KSP, KSP_Device *);     /* the method's solve there; NULL: the library computes on the host only */
  PetscErrorCode (*reset)(KSP_Device *);             /* what the method frees in KSPReset(); or NULL */
  void *method;                                      /* what belongs to the method alone; freed with this */
#if defined(PETSCSPMV_HAVE_CUDA)
  KSPDeviceRun run;
#endif
};

/* deviceksp.c */
PETSC_INTERN PetscErrorCode KSPDeviceRegister(PetscBool device);
/* Makes ksp one of PETSc's type, with a KSP_Device; the caller replaces operations */
PETSC_INTERN PetscErrorCode KSPDeviceCreate(KSP, KSPType, KSP_Device **);
PETSC_INTERN PetscErrorCode KSPDeviceGet(KSP, KSP_Device **);
/* The solve of all methods: on the device, or PETSc's */
PETSC_INTERN PetscErrorCode KSPSolve_Device(KSP);

/* devicecg.c */
PETSC_INTERN PetscErrorCode KSPCreate_DeviceCG(KSP);

/* devicebicgstab.c */
PETSC_INTERN PetscErrorCode KSPCreate_DeviceBiCGStab(KSP);

/* devicechebyshev.c */
PETSC_INTERN PetscErrorCode KSPCreate_DeviceChebyshev(KSP);

#if defined(PETSCSPMV_HAVE_CUDA)
/* krylov.c */
PETSC_INTERN PetscErrorCode KSPDeviceRunReset(KSPDeviceRun *); /* collective */
/* What a solve needs once: why not, if there is no memory for it on this rank */
PETSC_INTERN PetscErrorCode KSPDeviceRunCreate(KSP, KSPDeviceRun *, char why[], size_t);
/* What a solve needs but the vectors' arrays: the sums over ranks, the product */
PETSC_INTERN PetscErrorCode KSPDeviceRunBegin(KSP, KSP_Device *, PetscBool sums);
/* Whether the kernels apply the preconditioner, and then its entries; u and v are overwritten */
PETSC_INTERN PetscErrorCode KSPDeviceGetPC(KSP, KSPDeviceRun *, Vec u, Vec v);
/* The array of a vector that kernels of ours write: the vector knows that its values are new and on the device */
PETSC_INTERN PetscErrorCode KSPDeviceTouch(Vec, PetscScalar **);
/* w = A p, and what a method adds to that in the same kernel where there is one; *done says so */
PETSC_INTERN PetscErrorCode KSPDeviceMult(KSPDeviceRun *, Vec p, Vec w, cudaError_t (*)(SpMVCudaKrylov, SpMVCudaStore, cudaStream_t, PetscBool *),
                                          PetscBool *done);
PETSC_INTERN PetscErrorCode KSPDeviceGetTest(KSP, KSPDeviceRun *, SpMVKrylovTest *, SpMVKrylovNorm *);
/* Waits until so many iterations are complete, or the solve has ended */
PETSC_INTERN PetscErrorCode KSPDeviceAwait(KSPDeviceRun *, PetscInt iterations);
/* Waits until the norm of the next iteration has been computed, or the solve has ended */
PETSC_INTERN PetscErrorCode KSPDeviceAwaitNorm(KSPDeviceRun *);
/* Whether iteration n is to be started; with several ranks the answer is the same on all */
PETSC_INTERN PetscErrorCode KSPDeviceMayStart(KSPDeviceRun *, PetscInt n, PetscBool *);
/* Gives the norms that are there to the history and the monitors */
PETSC_INTERN PetscErrorCode KSPDeviceDeliver(KSP, KSPDeviceRun *);
/* All iterations, and their norms, tests and monitors; the reason, if the host has decided it. iterate starts one on the device */
PETSC_INTERN PetscErrorCode KSPDeviceIterations(KSP, KSPDeviceRun *, PetscErrorCode (*iterate)(KSP, KSPDeviceRun *));
/* Sets the number of iterations and the reason from what the device says */
PETSC_INTERN PetscErrorCode KSPDeviceConclude(KSP, KSPDeviceRun *);
PETSC_INTERN const char    *KSPDeviceDescribePC(const KSPDeviceRun *);
#endif
