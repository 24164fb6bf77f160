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

#include <petsc/private/pcimpl.h>
#include "ksp/impls/device/deviceksp.h"
#include "mat/impls/spmv/cuda/matspmvcuda.h"
#include "core/cuda/krylov/krylov.h"

/* The state on which the entries of a preconditioner depend: the matrix for which it was set up, and with PCJACOBI,
   which has settings, how often (ksp/pc/impls/jacobi) */
typedef struct {
  PetscObjectId    pc;
  PetscObjectState setups;
  MatState         matrix;
  PetscErrorCode (*type)(PC);
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
  const char    *sums;   /* how they are summed, for views; NULL: there is one rank */

  cudaStream_t    stream;
  Mat             A;
  SpMVMultPlan    plan; /* block[0]: NULL if PETSc multiplies */
  SpMVKrylovSolve solve;
  PetscScalar    *p, *w;     /* of the product */
  PetscBool       exchanges; /* the kernel that computes sums with the product also exchanges the halo */
  PetscBool       began;     /* ksp->its counts an iteration that the device has not completed, as in KSPCG */
  PetscBool       exact;     /* the host reads each iteration before the next one, for a user-defined test or monitor */
  PetscInt        ahead;  /* number of iterations that the host starts before it has seen the end of an earlier one */
  PetscInt        length; /* the most iterations */
  PetscBool       cycles; /* GMRES, where the following count from the last restart */
  PetscInt        before; /* iterations before that */
  PetscInt        read;   /* number of norms that the host has read */
  /* the last norm is not reported yet: PETSc reports that of a cycle as the first norm of the next, and that of the
     solve when the solution is there */
  PetscBool        held;
  SpMVKrylovStatus status;
};

/* Iterations that the host starts before it has seen the end of an earlier one, unless sums over ranks wait for it */
#define KSP_DEVICE_AHEAD 4

/* The sums of a method's step, and the product before them unless the store is NULL, such as SpMVCudaCGProduct() */
typedef cudaError_t(KSPDeviceSumsFn)(SpMVCudaKrylov, SpMVCudaStore, cudaStream_t);

/* sums.c: the fastest way to sum over ranks that -mat_spmv_halo allows. Collective */
PETSC_INTERN PetscErrorCode KSPDeviceSetUpSums(Mat, KSPDeviceRun *);

/* What the methods add to a new KSP of PETSc's type */
PETSC_INTERN PetscErrorCode KSPDeviceCreate_CG(KSP, KSP_Device *);
PETSC_INTERN PetscErrorCode KSPDeviceCreate_BCGS(KSP, KSP_Device *);
PETSC_INTERN PetscErrorCode KSPDeviceCreate_GMRES(KSP, KSP_Device *);
PETSC_INTERN PetscErrorCode KSPDeviceCreate_Chebyshev(KSP, KSP_Device *);

/* Replaces a function that PETSc's type has composed with the KSP, if there is one; *petsc becomes PETSc's */
#define KSPDeviceReplaceFunction(ksp, name, ours, petsc)                                 \
  do {                                                                                   \
    PetscCall(PetscObjectQueryFunction((PetscObject)(ksp), name, petsc));                \
    if (*(petsc)) PetscCall(PetscObjectComposeFunction((PetscObject)(ksp), name, ours)); \
  } while (0)

/* Defines such a function, which records a setting that PETSc's type keeps in its private structure: `value_of` in
   `member` of the method's data */
#define KSPDeviceRecord(Function, Data, Type, member, value_of) \
  static PetscErrorCode Function##_Device(KSP ksp, Type value)  \
  {                                                             \
    Data *data = NULL;                                          \
                                                                \
    PetscFunctionBegin;                                         \
    PetscCall(KSPDeviceGetMethod(ksp, &data));                  \
    PetscCall((*data->set##member)(ksp, value));                \
    data->member = value_of;                                    \
    PetscCall(KSPDeviceTakeSolve(ksp));                         \
    PetscFunctionReturn(PETSC_SUCCESS);                         \
  }                                                             \
  static PetscErrorCode Function##_Device(KSP, Type)

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
PETSC_INTERN PetscErrorCode KSPDeviceBatchSolve_CUDA(KSP, struct _n_KSP_DeviceBatch *, Mat, PetscBool *done);
PETSC_INTERN PetscErrorCode KSPDeviceBatchReset_CUDA(struct _n_KSP_DeviceBatch *);

/* krylov.c */
PETSC_INTERN PetscErrorCode KSPDeviceRunReset(KSP_Device *); /* collective */
/* If the error is that there is not enough memory, this becomes the reason for PETSc's iterations */
PETSC_INTERN PetscErrorCode KSPDeviceCheckMemory(cudaError_t, char why[], size_t);
/* Creates the data that is needed once for all solves; `why` is set if this rank has no memory for it */
PETSC_INTERN PetscErrorCode KSPDeviceRunCreate(KSP, KSP_Device *, char why[], size_t);
/* Prepares a solve, except for the vectors' arrays: the sums over ranks and the product; Restart: a cycle of GMRES */
PETSC_INTERN PetscErrorCode KSPDeviceRunBegin(KSP, KSP_Device *);
PETSC_INTERN void           KSPDeviceRunRestart(KSP, KSPDeviceRun *);
/* Determines whether the kernels can apply the preconditioner; bs: the rows of its blocks */
PETSC_INTERN PetscErrorCode KSPDeviceClassifyPC(KSP, SpMVKrylovPC *, PetscInt *bs);
/* The same for a solve, of which the kernels then have the entries; u and v are overwritten */
PETSC_INTERN PetscErrorCode KSPDeviceGetPC(KSP, KSPDeviceRun *, Vec u, Vec v);
/* Whether the kernels apply the preconditioner on a side */
PETSC_INTERN PetscBool KSPDeviceApplies(KSP, const KSPDeviceRun *, PCSide);
/* Gets the array of a vector that our kernels write, and marks the vector's values as new and on the device */
PETSC_INTERN PetscErrorCode KSPDeviceTouch(Vec, PetscScalar **);
/* Computes w = A p, and the sums of the method with it, if it has any */
PETSC_INTERN PetscErrorCode KSPDeviceMult(KSPDeviceRun *, Vec p, Vec w, KSPDeviceSumsFn *);
/* Sets the norm and the test of run->solve */
PETSC_INTERN PetscErrorCode KSPDeviceGetTest(KSP, KSPDeviceRun *);
/* Waits until this number of iterations is complete, or the solve has ended */
PETSC_INTERN PetscErrorCode KSPDeviceAwait(KSPDeviceRun *, PetscInt iterations);
/* Passes the last norm to the history and the monitors */
PETSC_INTERN PetscErrorCode KSPDeviceReport(KSP, KSPDeviceRun *);
/* Reports and tests the norm of the first residual, with PETSc's functions: they set the values that later tests
   compare with */
PETSC_INTERN PetscErrorCode KSPDeviceTestFirst(KSP, KSPDeviceRun *);
/* Reads the norms that have been computed, and reports them */
PETSC_INTERN PetscErrorCode KSPDeviceDeliver(KSP, KSPDeviceRun *);
/* Runs up to run->length iterations, with their norms, tests and monitors; sets the reason if the host decides it.
   `iterate` starts one iteration on the device */
PETSC_INTERN PetscErrorCode KSPDeviceIterations(KSP, KSPDeviceRun *, PetscErrorCode (*iterate)(KSP, KSPDeviceRun *));
/* Sets the number of iterations and the reason from the device's status */
PETSC_INTERN PetscErrorCode KSPDeviceConclude(KSP, KSPDeviceRun *);
