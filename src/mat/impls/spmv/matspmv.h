/*
  The glue between PETSc's matrices and the formats' core, written once for every format.

  A matrix of a format is an AIJ matrix, sequential or MPI, some of whose operations are taken over ("hooked"): AIJ keeps the
  entries and does whatever it can do, the format adds a second copy of the block, built lazily by the first product that needs it and
  refreshed when PETSc's object state says that values or pattern have changed. Where PETSc has CUDA and there is a GPU, AIJCUSPARSE
  takes AIJ's place, and the copy that products on device vectors need lives on the GPU. A format is one SpMVFormat table.
*/
#pragma once

#include <petscspmv.h>
#include <petsc/private/matimpl.h>
#include "../../../core/spmvcore.h"
#include "halo.h"
#if defined(PETSCSPMV_HAVE_CUDA)
  #include <petscdevice_cuda.h>
  #include "../../../core/cuda/spmvcuda.h"
#endif

/* What changed between the PETSc releases we build with */
#if PETSC_VERSION_LT(3, 23, 0)
typedef PetscOptionItems *SpMVOptionItems;
  #define PetscContainerSetCtxDestroy PetscContainerSetUserDestroy
  #define PetscCtxDestroyDefault      PetscContainerUserDestroyDefault
#else
typedef PetscOptionItems SpMVOptionItems;
#endif

/* The argument of a container's destructor: the pointer, or its address */
#if PETSC_VERSION_LT(3, 23, 0)
typedef void *SpMVCtx;
  #define SpMVCtxGet(ctx) (ctx)
#else
  #if PETSC_VERSION_LT(3, 25, 0)
typedef void           **SpMVCtx;
  #else
typedef PetscCtxRt SpMVCtx;
  #endif
  #define SpMVCtxGet(ctx) (*(void **)(ctx))
#endif

#if !defined(PetscAssertPointer) /* before 3.21 */
  #define PetscAssertPointer(h, arg) PetscValidPointer(h, arg)
#endif

typedef struct _n_SpMVFormat SpMVFormat;
struct _n_SpMVFormat {
  const char *name;       /* "sellp": the root name; "aij" before it makes the name of an instance */
  size_t      paramssize; /* of the format's parameters */
  PetscErrorCode (*createseq)(Mat);
  PetscErrorCode (*creatempi)(Mat);
  PetscErrorCode (*create)(Mat); /* by the size of the communicator */
  void (*defaults)(void *params);
  PetscErrorCode (*options)(Mat, void *params);                              /* reads and checks the format's options, prints them under -help */
  PetscErrorCode (*setup)(const SpMVCSR *, const void *params, SpMVStore *); /* symbolic: pattern to layout */
  PetscErrorCode (*describe)(const void *params, const SpMVStats *, char text[], size_t len); /* the format's words in a view */
#if defined(PETSCSPMV_HAVE_CUDA)
  /* the layout on the device, of A or of its transpose; cudaErrorNotSupported where the parent's product is to run */
  cudaError_t (*setupcuda)(const SpMVCudaCSR *, const void *params, PetscBool transpose, cudaStream_t, SpMVCudaStore *);
#endif
};

/* What PetscOptionsEnum() wants to know of SpMVKernel */
PETSC_INTERN const char *const SpMVKernelTypes[];

/* The formats, ended by NULL; src/sys/petscspmv.c lists them */
PETSC_INTERN const SpMVFormat *const SpMVFormats[];
PETSC_INTERN const SpMVFormat        SpMVFormatSELLP, SpMVFormatEVCHYB;

PETSC_INTERN PetscLogEvent MAT_SpMVSetUp, MAT_SpMVFill;

PETSC_INTERN PetscErrorCode MatGetOrdering_EVCHYB(Mat, MatOrderingType, IS *, IS *);
PETSC_INTERN PetscErrorCode MatBatchRegister(void);

PETSC_INTERN PetscErrorCode MatCreate_SeqSpMV(Mat, const SpMVFormat *);
PETSC_INTERN PetscErrorCode MatCreate_MPISpMV(Mat, const SpMVFormat *);
PETSC_INTERN PetscErrorCode MatCreate_SpMV(Mat, const SpMVFormat *);
PETSC_INTERN PetscErrorCode MatConvertFrom_SpMV(Mat, MatType, MatReuse, Mat *);

/* The three functions that MatRegister() needs of a format called NAME. It ends in a declaration, so that its use ends with a semicolon */
#define SpMVFormatCreate(NAME)                      \
  static PetscErrorCode MatCreate_Seq##NAME(Mat A)  \
  {                                                 \
    return MatCreate_SeqSpMV(A, &SpMVFormat##NAME); \
  }                                                 \
  static PetscErrorCode MatCreate_MPI##NAME(Mat A)  \
  {                                                 \
    return MatCreate_MPISpMV(A, &SpMVFormat##NAME); \
  }                                                 \
  static PetscErrorCode MatCreate_##NAME(Mat A)     \
  {                                                 \
    return MatCreate_SpMV(A, &SpMVFormat##NAME);    \
  }                                                 \
  PETSC_INTERN const SpMVFormat SpMVFormat##NAME

/* PetscObjectOptionsBegin() under a title of its own: under the Mat's, -help has been printed when the type is known */
#define SpMVOptionsBegin(A, title, manual)                                                     \
  PetscOptionsBegin(PetscObjectComm((PetscObject)A), ((PetscObject)A)->prefix, title, manual); \
  PetscOptionsObject->options = ((PetscObject)A)->options

/* AIJ's operations that a format takes over; what they were is kept, both to call and to put back. Those below the line are taken over
   on the device only */
#define SpMVHooks(X)                  \
  do {                                \
    X(mult);                          \
    X(multadd);                       \
    X(multtranspose);                 \
    X(multtransposeadd);              \
    X(assemblyend);                   \
    X(duplicate);                     \
    X(destroy);                       \
    X(view);                          \
    X(convert);                       \
    X(convertfrom);                   \
    X(setfromoptions);                \
    X(lufactor);                      \
    X(transpose);                     \
    X(transposesymbolic);             \
    X(permute);                       \
    X(createsubmatrix);               \
    X(createsubmatrices);             \
    X(creatempimatconcatenateseqmat); \
    X(productsetfromoptions);         \
    /* -------------------- */        \
    X(ilufactor);                     \
    X(multhermitiantranspose);        \
    X(multhermitiantransposeadd);     \
    X(bindtocpu);                     \
    X(getdiagonal);                   \
    X(diagonalscale);                 \
    X(zeroentries);                   \
    X(axpy);                          \
  } while (0)

/* The state of a matrix when something was made from it */
typedef struct {
  Mat              mat; /* NULL: nothing has been made */
  PetscObjectId    id;
  PetscObjectState state, nonzerostate;
  PetscInt         m, n, nz; /* and its pattern, where SpMVKeySetPattern() has set it */
  const PetscInt  *i, *j;
} SpMVKey;

/* A sequential matrix: its copy on the host */
typedef struct {
  SpMVKey   key;
  SpMVStore store;
  PetscBool use_parent; /* AIJ's own product runs: columns out of order, no values, ... */
  PetscInt  nonzerorows;
} SpMVHostCopy;

/* The state of a parallel matrix when all ranks last agreed that what they store of it is up to date. It counts in step on all ranks; the states of its blocks do
   not, because a rank may change its own blocks */
typedef struct {
  SpMVKey   key;
  PetscBool bound; /* to the CPU */
} SpMVAgreed;

/* An MPI matrix */
typedef struct {
  PetscObjectId hooked[2];    /* its blocks when they were taken over */
  SpMVAgreed    agreed[2][2]; /* [device vectors][transposed] */
} SpMVParallel;

#if defined(PETSCSPMV_HAVE_CUDA)
/* A sequential matrix: its copy on the device, or that of its transpose */
typedef struct {
  SpMVKey       key;
  SpMVCudaStore store;
  PetscBool     use_parent; /* AIJCUSPARSE's product runs */
} SpMVCudaCopy;

/* A diagonal block on the device: its boundary rows, those in which the off-diagonal block has entries, which are multiplied on their own */
typedef struct {
  SpMVKey    key; /* of the off-diagonal block */
  int       *rows, count;
  PetscInt64 limit; /* the most rows that may be boundary rows */
} SpMVBoundary;

/* Or the off-diagonal block as fused into the diagonal block's kernel */
typedef struct {
  SpMVKey   key;     /* of the off-diagonal block */
  PetscBool refused; /* it cannot be fused */
} SpMVFused;

/* An MPI matrix: the exchange of its halo on the device */
typedef struct {
  SpMVHalo        halo;
  SpMVKey         key; /* of the MPI matrix */
  PetscObjectId   offdiag;
  PetscBool       bound; /* no halo has been made: a matrix or vector of some rank is bound to the CPU */
  SpMVHaloOptions options;
} SpMVExchange;
#endif

/* What our symbolic phase of a product of matrices adds to PETSc's */
typedef enum {
  SPMV_SYMBOLIC,      /* the result gets the format and the parameters */
  SPMV_SYMBOLIC_HOST, /* the same, and on the device the numeric phase is AIJ's on the host */
  SPMV_SYMBOLIC_ABT,  /* A B^T of two types: B goes by the name of A's type */
  SPMV_SYMBOLIC_AIJ   /* factors go by AIJ's name: a MATSHELL looks its function up by the name of the other factor, other types compare it */
} SpMVProductKind;

/* A factor of a product of matrices, the first of our types: the symbolic phase of the latest such product */
typedef struct {
  const Mat_Product *product;
  SpMVProductKind    kind;
  PetscErrorCode (*symbolic)(Mat); /* PETSc's */
} SpMVProductPhase;

/* Parameters of any format, within their matrix: reading options needs no memory that a rank alone could lack */
typedef PetscInt64 SpMVParams[16];

typedef struct {
  const SpMVFormat *format;
  SpMVParams        params;
  MatType           parenttype;             /* the type that Unhook restores */
  PetscBool         device;                 /* the parent is AIJCUSPARSE */
  struct _MatOps    parent, ours;           /* the operations before and after; only those of SpMVHooks() are meant */
  PetscErrorCode (*view)(Mat, PetscViewer); /* what viewed before us: AIJ, or the DM that made the matrix */
  SpMVProductPhase phase;
  SpMVHostCopy     host;
  SpMVParallel     parallel;
#if defined(PETSCSPMV_HAVE_CUDA)
  SpMVCudaCopy cuda[2]; /* of the matrix, and of its transpose */
  SpMVBoundary boundary;
  SpMVFused    fused;
  SpMVExchange exchange;
#endif
} Mat_SpMV;

typedef enum { SPMV_NORMAL, SPMV_TRANSPOSE, SPMV_HERMITIAN } SpMVOp;

/* agree.c is declared in halo.h, which does without this file */

/* matspmv.c: the state of a matrix */
PETSC_INTERN PetscErrorCode SpMVIsMPI(Mat, PetscBool *);
PETSC_INTERN PetscErrorCode MatSpMVGet(Mat, Mat_SpMV **); /* NULL where the matrix is none of ours */
PETSC_INTERN PetscErrorCode MatSpMVNew(Mat, Mat_SpMV **);
PETSC_INTERN PetscErrorCode MatSpMVSet(Mat, Mat_SpMV *);
PETSC_INTERN PetscErrorCode SpMVMergedSet(Mat, const Mat_SpMV *);
PETSC_INTERN PetscErrorCode MatSpMVSetParams(Mat, Mat_SpMV *, const void *params);
PETSC_INTERN void           MatSpMVUseParent(Mat, Mat_SpMV *, PetscBool);
PETSC_INTERN PetscErrorCode MatSpMVForget(Mat, Mat_SpMV *);     /* frees the stored copies: the next product sets them up anew */
PETSC_INTERN PetscErrorCode MatSpMVForgetHost(Mat, Mat_SpMV *); /* that of the host only */
PETSC_INTERN PetscBool      SpMVKeyIsCurrent(const SpMVKey *, Mat);
PETSC_INTERN PetscBool      SpMVKeyHasNonzeroState(const SpMVKey *, Mat);
PETSC_INTERN PetscBool      SpMVKeyHasPattern(const SpMVKey *, Mat, const SpMVCSR *);
PETSC_INTERN void           SpMVKeySet(SpMVKey *, Mat);
PETSC_INTERN void           SpMVKeySetPattern(SpMVKey *, Mat, const SpMVCSR *);
PETSC_INTERN PetscErrorCode MatSpMVGetPattern(Mat, SpMVCSR *);
PETSC_INTERN PetscErrorCode MatSpMVRestorePattern(Mat, SpMVCSR *);

/* parent.c: the types that ours are derived from */
typedef struct {
  PetscBool set; /* -mat_seqaij_type was, to this */
  char      type[128];
} SpMVHidden;

typedef struct {
  PetscErrorCode (*destroy)(Mat); /* NULL: not known yet */
  PetscErrorCode (*retrieve)(Mat);
  PetscErrorCode (*store)(Mat);
  PetscErrorCode (*productsetfromoptions)(Mat); /* of AIJCUSPARSE and AIJ */
} SpMVParent;

PETSC_INTERN SpMVParent     SpMVParents[2][2]; /* [on a device][MPI] */
PETSC_INTERN PetscErrorCode SpMVLearnParent(PetscBool device, PetscBool mpi);
PETSC_INTERN PetscErrorCode SpMVHideSeqAIJType(SpMVHidden *);
PETSC_INTERN PetscErrorCode SpMVShowSeqAIJType(const SpMVHidden *);
PETSC_INTERN PetscErrorCode SpMVComposeBefore(Mat, const char name[], PetscErrorCode (*)(Mat));

/* options.c */
PETSC_INTERN PetscErrorCode SpMVOptionsInt(Mat, SpMVOptionItems, const char[], const char[], const char[], PetscInt, PetscInt, PetscInt *);
PETSC_INTERN PetscErrorCode SpMVOptionsLayout(Mat, SpMVOptionItems, const char format[], const char manual[], SpMVCommonParams *);
PETSC_INTERN PetscErrorCode SpMVReadOptions(Mat, Mat_SpMV *);
PETSC_INTERN PetscErrorCode MatSpMVGetHaloOptions(Mat, const Mat_SpMV *, SpMVHaloOptions *);

/* device.c: whether there is one, and the arrays of zz = yy + A xx, where yy may be zz, and NULL for zero */
typedef enum {
  SPMV_ON_HOST, /* arrays on the host */
  SPMV_IN_PLACE /* arrays where the vectors' values are */
} SpMVPlace;

typedef struct {
  Vec          v; /* NULL: there is none */
  PetscScalar *array, *copy;
  PetscMemType memtype;
  enum { SPMV_READ, SPMV_WRITE, SPMV_UPDATE } access;
} SpMVOperand;

typedef struct {
  SpMVOperand        operand[3]; /* zz, xx, and yy if it is not zz */
  SpMVPlace          place;
  const PetscScalar *x, *y; /* y is z, or NULL, if yy is */
  PetscScalar       *z;
  PetscBool          device, host; /* some of the arrays are there */
} SpMVOperands;

PETSC_INTERN PetscErrorCode SpMVUseDevice(MPI_Comm, PetscBool *); /* new matrices live on a device */
PETSC_INTERN PetscErrorCode SpMVHostIsNewer(Mat);                 /* AIJ has refilled the host's values without a word to AIJCUSPARSE */
PETSC_INTERN PetscErrorCode SpMVOperandsBegin(SpMVPlace, Vec xx, Vec yy, Vec zz, SpMVOperands *);
PETSC_INTERN PetscErrorCode SpMVOperandsEnd(SpMVOperands *);

/* host.c: the copy on the host and its products, on arrays z NULL or y */
PETSC_INTERN PetscErrorCode MatSpMVUpdate_Host(Mat, Mat_SpMV *);
PETSC_INTERN PetscErrorCode MatSpMVGetReadyAlone_Seq(Mat); /* the same without an error: AIJ multiplies where memory is short */
PETSC_INTERN PetscErrorCode MatSpMVGetStats_Host(Mat, Mat_SpMV *, SpMVStats *);
PETSC_INTERN PetscErrorCode MatSpMVApplyHost(Mat, Mat_SpMV *, SpMVOp, const PetscScalar x[], const PetscScalar z[], PetscScalar y[]);
PETSC_INTERN PetscErrorCode MatSpMVApplyHostVecs(Mat, Mat_SpMV *, SpMVOp, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatSpMVApplyParent(Mat, Mat_SpMV *, SpMVOp, Vec, Vec, Vec);

/* seq.c: a sequential matrix, on either side */
PETSC_INTERN PetscErrorCode MatSpMVGetReady_Seq(Mat, PetscBool device, PetscBool transpose); /* what such a product reads, brought up to date */
PETSC_INTERN PetscErrorCode MatSpMVGetStats(Mat, SpMVStats *);                               /* of what is stored, brought up to date */
PETSC_INTERN PetscErrorCode MatSpMVApply_Seq(Mat, SpMVOp, Vec, Vec, Vec);

/* hook.c: taking a matrix over and giving it back */
PETSC_INTERN PetscErrorCode MatSpMVHook(Mat, const SpMVFormat *, const void *params);
PETSC_INTERN PetscErrorCode MatSpMVUnhook(Mat);
PETSC_INTERN PetscErrorCode MatSpMVHookBlocks_MPI(Mat, Mat_SpMV *);
PETSC_INTERN PetscErrorCode MatSpMVUnhookBlocks_MPI(Mat);
PETSC_INTERN PetscErrorCode MatSpMVComposeFunctions(Mat, PetscBool ours);

/* keep.c: what is made from a matrix has its format and its parameters */
typedef struct {
  const SpMVFormat *format;
  SpMVParams        params;
  SpMVHidden        hidden;
} SpMVKeep;

PETSC_INTERN PetscErrorCode SpMVKeepBegin(const Mat_SpMV *, SpMVKeep *);
PETSC_INTERN PetscErrorCode SpMVKeepSet(SpMVKeep *, Mat);
PETSC_INTERN PetscErrorCode SpMVKeepEnd(SpMVKeep *);

/* types.c: what a matrix of each kind takes over. setops set operations, compose functions that PETSc finds by name; ours false: give them back */
typedef struct {
  MatType parent;
  void (*setops[6])(Mat);                                                             /* called in turn, ended by NULL */
  PetscErrorCode (*compose[3])(Mat, PetscBool device, PetscBool mpi, PetscBool ours); /* ended by NULL */
} SpMVKind;

PETSC_INTERN const SpMVKind SpMVKinds[2][2]; /* [on a device][MPI] */
PETSC_INTERN void           MatSpMVSetOps_Seq(Mat);
PETSC_INTERN void           MatSpMVSetOps_MPI(Mat);
PETSC_INTERN void           MatSpMVSetOps_Keep(Mat);
PETSC_INTERN void           MatSpMVSetOps_View(Mat);
PETSC_INTERN void           MatSpMVSetOps_Product(Mat);
PETSC_INTERN PetscErrorCode MatSpMVCompose_Parent(Mat, PetscBool, PetscBool, PetscBool);
PETSC_INTERN PetscErrorCode MatSpMVCompose_Product(Mat, PetscBool, PetscBool, PetscBool);

#if defined(PETSCSPMV_HAVE_CUDA)
PETSC_INTERN void MatSpMVSetOps_SeqCUDA(Mat);
PETSC_INTERN void MatSpMVSetOps_SeqCUSPARSE(Mat);
PETSC_INTERN void MatSpMVSetOps_ProductCUDA(Mat);

/* matspmv.c */
PETSC_INTERN PetscErrorCode MatSpMVForget_CUDA(Mat_SpMV *, int k); /* frees one of the copies there */

/* options.c */
PETSC_INTERN SpMVCudaKernel SpMVKernelCUDA(SpMVKernel, PetscInt tune);

/* device.c */
PETSC_INTERN PetscErrorCode SpMVGetStream(cudaStream_t *);                                      /* that PETSc's vectors use */
PETSC_INTERN PetscErrorCode SpMVOperandsStage(SpMVOperands *, cudaStream_t, PetscBool *staged); /* copies those on the host to the device */
PETSC_INTERN PetscErrorCode SpMVVecOnDevice(Vec, PetscBool copy, Vec *); /* what stands in for a vector on the host, or the vector itself */
PETSC_INTERN PetscErrorCode SpMVVecRestore(Vec, PetscBool copy, Vec *);  /* its values back, if asked for */
PETSC_INTERN PetscErrorCode SpMVVecCopyLocal(Vec, Vec);                  /* between device vectors, of which no other rank need know */

/* cuda.c: the copies on the device and their products */
PETSC_INTERN PetscErrorCode MatSpMVApply_SeqCUDA(Mat, Mat_SpMV *, SpMVOp, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatSpMVGetReady_SeqCUDA(Mat, PetscBool transpose, Mat_SpMV **); /* up to date on the device; NULL where AIJCUSPARSE multiplies */
PETSC_INTERN PetscErrorCode MatSpMVGetStats_CUDA(Mat, Mat_SpMV *, SpMVStats *);
PETSC_INTERN PetscErrorCode MatSpMVSetBoundary_SeqCUDA(Mat, Mat offdiag, PetscReal share, PetscBool always);
PETSC_INTERN PetscErrorCode MatSpMVUpdateFused_SeqCUDA(Mat_SpMV *, Mat offdiag, PetscReal share, PetscBool *has);

/* factor.c: triangular solves between host vectors */
PETSC_INTERN PetscErrorCode SpMVRegisterFactors(void);
#endif
