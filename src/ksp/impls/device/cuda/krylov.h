/*
  A solve on the device, and the functions that the methods share.

    backend.c    the table KSPDeviceCUDA, the decision where a solve runs
    cg.c, bcgs.c, gmres.c, chebyshev.c  the methods
    krylov.c     preconditioner, product, iterations, the results that the host reads
    sums.c       sums over ranks
    orthog.c     Gram-Schmidt of PETSc's GMRES and its variants
    batch.c      the solves of devicebatch
*/
#pragma once

#include "ksp/impls/device/deviceksp.h"
#include "mat/impls/spmv/cuda/matspmvcuda.h"
#include "core/cuda/krylov/krylov.h"

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
struct _n_KSPDeviceRun {
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
  SpMVMultPlan     plan; /* block[0]: NULL if PETSc multiplies */
  PetscScalar     *p, *w, *d;
  SpMVKrylovPC     pc;
  PetscInt         bs;
  PetscBool        fuse;  /* the product's kernel may compute the inner product, too */
  PetscBool        began; /* ksp->its counts an iteration that the device has not completed, as in KSPCG */
  PetscBool        exact; /* the host reads each iteration before the next one, for a user-defined test or monitor */
  PetscInt         ahead; /* number of iterations that the host starts before it has seen the end of an earlier one */
  PetscInt         read;  /* number of norms that the host has read */
  SpMVKrylovStatus status;
  PetscLogDouble   flops; /* of an iteration without the product */
};

/* The sums of a method's step, and the product before them unless the store is NULL, such as SpMVCudaCGProduct() */
typedef cudaError_t(KSPDeviceSumsFn)(SpMVCudaKrylov, SpMVCudaStore, cudaStream_t);

/* sums.c: the fastest way to sum over ranks that -mat_spmv_halo allows. Collective */
PETSC_INTERN PetscErrorCode KSPDeviceSetUpSums(Mat, KSPDeviceRun *);

/* What the methods add to a new KSP of PETSc's type */
PETSC_INTERN PetscErrorCode KSPDeviceCreate_CG(KSP, KSP_Device *);
PETSC_INTERN PetscErrorCode KSPDeviceCreate_BCGS(KSP, KSP_Device *);
PETSC_INTERN PetscErrorCode KSPDeviceCreate_GMRES(KSP, KSP_Device *);
PETSC_INTERN PetscErrorCode KSPDeviceCreate_Chebyshev(KSP, KSP_Device *);

/* Replace types of PETSc. orthog.c: KSPGMRES, KSPFGMRES, KSPLGMRES and KSPDGMRES; ksp/pc/impls: PCGAMG and PCJACOBI */
PETSC_INTERN PetscErrorCode KSPOrthogReplaceTypes(void);
PETSC_INTERN PetscErrorCode PCGAMGReplaceType(void);
PETSC_INTERN PetscErrorCode PCJacobiReplaceType(void);

/* chebyshev.c: the noise from which PETSc estimates eigenvalues */
PETSC_INTERN PetscErrorCode KSPDeviceSetNoise(Mat, Vec);
/* Collective. VecDuplicateVecs() then makes one allocation on the device: an estimate needs 12 vectors, and cudaMalloc()
   takes as long as one of its iterations */
PETSC_INTERN PetscErrorCode KSPDeviceAllocateAtOnce(Vec);

/* backend.c: adds to `why`, if it is empty, why the kernels cannot use a vector */
PETSC_INTERN PetscErrorCode KSPDeviceWhyNotVec(Vec, char why[], size_t);

/* batch.c: see KSPDeviceBackend */
PETSC_INTERN PetscErrorCode KSPDeviceBatchSolve_CUDA(KSP, struct _n_KSP_DeviceBatch *, Mat, const PetscInt first[],
                                                     PetscBool *done);
PETSC_INTERN PetscErrorCode KSPDeviceBatchFetch_CUDA(struct _n_KSP_DeviceBatch *);
PETSC_INTERN PetscErrorCode KSPDeviceBatchReset_CUDA(struct _n_KSP_DeviceBatch *);

/* krylov.c */
PETSC_INTERN PetscErrorCode KSPDeviceRunReset(KSP_Device *); /* collective */
/* If the error is that there is not enough memory, this becomes the reason for PETSc's iterations */
PETSC_INTERN PetscErrorCode KSPDeviceCheckMemory(cudaError_t, char why[], size_t);
/* Creates the data that is needed once for all solves; `why` is set if this rank has no memory for it */
PETSC_INTERN PetscErrorCode KSPDeviceRunCreate(KSP, KSP_Device *, char why[], size_t);
/* Prepares a solve, except for the vectors' arrays: the sums over ranks and the product */
PETSC_INTERN PetscErrorCode KSPDeviceRunBegin(KSP, KSP_Device *);
/* Determines whether the kernels can apply the preconditioner; bs: the rows of its blocks */
PETSC_INTERN PetscErrorCode KSPDeviceClassifyPC(KSP, SpMVKrylovPC *, PetscInt *bs);
/* The same for a solve, of which the kernels then have the entries; u and v are overwritten */
PETSC_INTERN PetscErrorCode KSPDeviceGetPC(KSP, KSPDeviceRun *, Vec u, Vec v);
/* Gets the array of a vector that our kernels write, and marks the vector's values as new and on the device */
PETSC_INTERN PetscErrorCode KSPDeviceTouch(Vec, PetscScalar **);
/* Computes w = A p, and the sums of the method with it, if it has any */
PETSC_INTERN PetscErrorCode KSPDeviceMult(KSPDeviceRun *, Vec p, Vec w, KSPDeviceSumsFn *);
PETSC_INTERN PetscErrorCode KSPDeviceGetTest(KSP, KSPDeviceRun *, SpMVKrylovTest *, SpMVKrylovNorm *);
/* Waits until this number of iterations is complete, or the solve has ended */
PETSC_INTERN PetscErrorCode KSPDeviceAwait(KSPDeviceRun *, PetscInt iterations);
/* The next norm, which the status has announced */
PETSC_INTERN PetscErrorCode KSPDeviceReadNorm(KSPDeviceRun *, PetscReal *);
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
