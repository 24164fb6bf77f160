/*
   PetscSpMV: two sparse matrix types for PETSc whose matrix-vector products are faster than those of AIJ, a third for
   batches of small problems, and Krylov methods whose iterations run on the GPU.

   This is the only public header. A program needs it only to link the library, to get information about a matrix, or to
   create a batch. To use the types in an existing program, load the library with -dll_append and choose -mat_type sellp
   or -mat_type evchyb.
*/
#pragma once

#include <petscksp.h>

#define PETSCSPMV_VERSION_MAJOR    1
#define PETSCSPMV_VERSION_MINOR    0
#define PETSCSPMV_VERSION_SUBMINOR 0

/* Type names for MatSetType(), MatConvert(), DMSetMatType() and -mat_type */
#define MATSELLP     "sellp"
#define MATSEQSELLP  "seqsellp"
#define MATMPISELLP  "mpisellp"
#define MATEVCHYB    "evchyb"
#define MATSEQEVCHYB "seqevchyb"
#define MATMPIEVCHYB "mpievchyb"

/* Type names returned by MatGetType(). All types are derived from AIJ, and PETSc identifies AIJ by the beginning of
   the name. If there is a GPU that PETSc uses, the name is that of the parent type, seqaijcusparse or mpiaijcusparse */
#define MATSEQAIJSELLP  "seqaijsellp"
#define MATMPIAIJSELLP  "mpiaijsellp"
#define MATSEQAIJEVCHYB "seqaijevchyb"
#define MATMPIAIJEVCHYB "mpiaijevchyb"

/* A block-diagonal matrix of many small problems */
#define MATBATCH       "batch"
#define MATSEQBATCH    "seqbatch"
#define MATMPIBATCH    "mpibatch"
#define MATSEQAIJBATCH "seqaijbatch"
#define MATMPIAIJBATCH "mpiaijbatch"

/* For KSPSetType() and -ksp_type: KSPCG, KSPBCGS and KSPCHEBYSHEV with their iterations on the GPU */
#define KSPDEVICECG        "devicecg"
#define KSPDEVICEBCGS      "devicebcgs"
#define KSPDEVICEGMRES     "devicegmres"
#define KSPDEVICEFGMRES    "devicefgmres"
#define KSPDEVICECHEBYSHEV "devicechebyshev"

/* Solves each problem of a batch by itself */
#define KSPDEVICEBATCH "devicebatch"

/* For MatGetOrdering(): rows sorted by length, then by first column */
#define MATORDERINGEVCHYB "evchyb"

/*S
   PetscSpMVInfo - Information about the calling process's part of a `MATSELLP`, `MATEVCHYB` or `MATBATCH` matrix as it
   is stored

   Level: intermediate

   Notes:
   For a parallel matrix, the numbers are sums over its diagonal and its off-diagonal block. If AIJ's own product is
   used for a block, the block is not stored in the format, and `formatted` does not count its entries. The padding is
   (`stored` - `formatted`) / `formatted`.

.seealso: `PetscSpMVGetInfo()`, `MATSELLP`, `MATEVCHYB`
S*/
typedef struct {
  PetscInt64  nonzeros;    /* entries of the matrix */
  PetscInt64  formatted;   /* entries of the matrix that the format stores */
  PetscInt64  stored;      /* entries stored by the format, padding included: at least `formatted` */
  PetscInt64  slices;      /* slices; with the paper's kernel of evchyb, row blocks */
  PetscInt64  long_rows;   /* rows kept in the vector CSR part */
  PetscInt64  long_stored; /* entries stored in that part, padding included */
  PetscInt64  bytes;       /* bytes of the format's arrays, in addition to AIJ's */
  PetscInt    node;        /* size of the node blocks of the diagonal block, 1 if there are none */
  const char *kernel;      /* kernel of the diagonal block's product, a static string */
} PetscSpMVInfo;

PETSC_EXTERN PetscErrorCode PetscSpMVInitializePackage(void);
PETSC_EXTERN PetscErrorCode PetscSpMVFinalizePackage(void);
PETSC_EXTERN PetscErrorCode PetscSpMVGetFormat(Mat, const char *[]);
PETSC_EXTERN PetscErrorCode PetscSpMVGetInfo(Mat, PetscSpMVInfo *);

/*E
   MatBatchSharing - What all problems of a `MATBATCH` matrix have in common; it is then provided only once

   Values:
+  `MATBATCH_SHARE_NONE`    - nothing: each problem has its own size and pattern
-  `MATBATCH_SHARE_PATTERN` - size and pattern

   Level: intermediate

.seealso: `MATBATCH`, `MatCreateBatch()`
E*/
typedef enum { MATBATCH_SHARE_NONE, MATBATCH_SHARE_PATTERN } MatBatchSharing;

/*MC
   MATBATCH_ALL - Used instead of the number of a problem to select all problems of the calling process

   Level: beginner

.seealso: `MATBATCH`, `MatBatchSetValues()`
M*/
#define MATBATCH_ALL -1

/*S
   MatBatchInfo - The problems of a `MATBATCH` matrix on the calling process

   Level: intermediate

.seealso: `MatBatchGetInfo()`, `MATBATCH`
S*/
typedef struct {
  PetscInt   problems;
  PetscInt   smallest, largest; /* rows of a problem; 0 if there is none */
  PetscInt64 nonzeros;          /* entries of all problems */
} MatBatchInfo;

PETSC_EXTERN PetscErrorCode MatCreateBatch(MPI_Comm, PetscInt, const PetscInt[], const PetscInt[], const PetscInt[],
                                           PetscScalar[], MatBatchSharing, PetscCopyMode, Mat *);
PETSC_EXTERN PetscErrorCode MatCreateBatchFromMats(MPI_Comm, PetscInt, const Mat[], Mat *);
PETSC_EXTERN PetscErrorCode MatBatchSetValues(Mat, PetscInt, const PetscScalar[]);
PETSC_EXTERN PetscErrorCode MatBatchGetProblem(Mat, PetscInt, PetscInt *, const PetscInt *[], const PetscInt *[],
                                               const PetscScalar *[]);
PETSC_EXTERN PetscErrorCode MatBatchGetInfo(Mat, MatBatchInfo *);
PETSC_EXTERN PetscErrorCode KSPDeviceBatchGetSolveInfo(KSP, PetscInt *, const PetscInt *[], const PetscReal *[],
                                                       const KSPConvergedReason *[]);
