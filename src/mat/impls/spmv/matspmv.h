/*
  The glue between PETSc's matrices and the core, written once for all formats.

  A matrix of a format is an AIJ matrix, sequential or MPI, some of whose operations are replaced ("hooked"). AIJ
  keeps the entries and does everything else. The format adds a second copy of each sequential block ("store"). The
  first product that needs the copy creates it, and later products refresh it when PETSc's object state shows that the
  values or the pattern have changed. If PETSc has CUDA and there is a GPU, the parent type is AIJCUSPARSE instead of
  AIJ, and the copy for products with device vectors is on the GPU. A format is defined by one SpMVFormat table.

  Each file calls only files below it in this list; MatSpMVHook() calls functions above it through the table in types.c:

    types.c     the operations that are replaced in each kind of matrix
    view.c      views, PetscSpMVGetInfo()
    product.c   products of matrices
    mpi.c       products, and those of MPI matrices dense.c     products with dense matrices
    keep.c      transposes, submatrices, ...: the result keeps format and parameters
    hook.c      hooking, unhooking, creation, conversion, duplication
    seq.c       products of sequential matrices: host or device
    host.c      copy and products on the host
    names.c     PETSc's comparisons of whole names  replace.c   -mat_spmv_replace
    parent.c    AIJ's and AIJCUSPARSE's functions   options.c
    matspmv.c   state, keys, pattern                agree.c     agreement of the ranks on errors

  What needs CUDA is in the folders cuda (copies and products on the device) and cusparse (what AIJCUSPARSE does not do,
  or does wrong). The files above call it through one table, SpMVCUDA. Without CUDA the makefile leaves these folders
  out, and the table in nocuda.c is empty.
*/
#pragma once

#include <petscspmv.h>
#include <petsc/private/matimpl.h>
#include "core/spmvcore.h"
#include <pthread.h>
#include <string.h>
#if defined(PETSCSPMV_HAVE_CUDA)
  #include <petscdevice_cuda.h>
  #include "core/cuda/spmvcuda.h"
  #define SpMVIfCUDA(f)     f
  #define SpMVBoundToCPU(A) (A)->boundtocpu
#else
typedef int              SpMVCudaSetUp(void);
  #define SpMVIfCUDA(f)     NULL
  #define SpMVBoundToCPU(A) PETSC_TRUE
#endif

/* Differences between the PETSc releases we support */
#if PETSC_VERSION_LT(3, 23, 0)
typedef PetscOptionItems *SpMVOptionItems;
  #define PetscContainerSetCtxDestroy PetscContainerSetUserDestroy
  #define PetscCtxDestroyDefault      PetscContainerUserDestroyDefault
#else
typedef PetscOptionItems SpMVOptionItems;
#endif

/* The argument of a container's destructor: the pointer itself, or the address of the pointer */
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
  const char *name;       /* "sellp": the root name; instances are named seqaijsellp, mpiaijsellp */
  size_t      paramssize; /* of the format's parameters */
  PetscErrorCode (*createseq)(Mat);
  PetscErrorCode (*creatempi)(Mat);
  PetscErrorCode (*create)(Mat); /* by the size of the communicator */
  void (*defaults)(void *params);
  /* reads and checks the format's options, prints them under -help */
  PetscErrorCode (*options)(Mat, void *params);
  PetscErrorCode (*setup)(const SpMVCSR *, const void *params, SpMVStore *); /* creates the layout from the pattern */
  /* the format's part of a view */
  PetscErrorCode (*describe)(const void *params, const SpMVStats *, char text[], size_t len);
  SpMVCudaSetUp *setupcuda; /* the same on the device; NULL, or cudaErrorNotSupported: the parent's product is used */
};

/* The names of SpMVKernel, for PetscOptionsEnum() */
PETSC_INTERN const char *const SpMVKernelTypes[];

/* The formats, ending with NULL; defined in src/sys/petscspmv.c */
PETSC_INTERN const SpMVFormat *const SpMVFormats[];

PETSC_INTERN PetscLogEvent MAT_SpMVSetUp, MAT_SpMVFill;

PETSC_INTERN PetscErrorCode MatGetOrdering_EVCHYB(Mat, MatOrderingType, IS *, IS *);
/* gives a matrix that was created from A the problems of A */
PETSC_INTERN PetscErrorCode MatBatchKeep(Mat A, Mat B);

/* mpi: PETSC_DECIDE for the size of the communicator to decide */
PETSC_INTERN PetscErrorCode MatCreate_SpMV(Mat, const SpMVFormat *, int mpi);
PETSC_INTERN PetscErrorCode MatConvertFrom_SpMV(Mat, MatType, MatReuse, Mat *);

/* Defines the three functions that MatRegister() needs for a format called NAME. The macro ends with a declaration, so
   a semicolon follows its use */
#define SpMVFormatCreate(NAME)                                 \
  PETSC_INTERN const SpMVFormat SpMVFormat##NAME;              \
  static PetscErrorCode         MatCreate_Seq##NAME(Mat A)     \
  {                                                            \
    return MatCreate_SpMV(A, &SpMVFormat##NAME, PETSC_FALSE);  \
  }                                                            \
  static PetscErrorCode MatCreate_MPI##NAME(Mat A)             \
  {                                                            \
    return MatCreate_SpMV(A, &SpMVFormat##NAME, PETSC_TRUE);   \
  }                                                            \
  static PetscErrorCode MatCreate_##NAME(Mat A)                \
  {                                                            \
    return MatCreate_SpMV(A, &SpMVFormat##NAME, PETSC_DECIDE); \
  }                                                            \
  PETSC_INTERN SpMVCudaSetUp    SpMVCuda##NAME##SetUp;         \
  PETSC_INTERN const SpMVFormat SpMVFormat##NAME

/* PetscObjectOptionsBegin() with a title: -help has already printed the Mat's options when the type is set */
#define SpMVOptionsBegin(A, title, manual)                                                     \
  PetscOptionsBegin(PetscObjectComm((PetscObject)A), ((PetscObject)A)->prefix, title, manual); \
  PetscOptionsObject->options = ((PetscObject)A)->options

/*
  AIJ's operations that a format may replace. The parent's operations are saved, so that they can be called and
  restored. The operations below the line are replaced on the device only
*/
#define SpMVHooks(X)                \
  X(mult);                          \
  X(multadd);                       \
  X(multtranspose);                 \
  X(multtransposeadd);              \
  X(residual);                      \
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
  X(zerorows);                      \
  X(zerorowscolumns);               \
  /* -------------------- */        \
  X(ilufactor);                     \
  X(multhermitiantranspose);        \
  X(multhermitiantransposeadd);     \
  X(bindtocpu);                     \
  X(getdiagonal);                   \
  X(diagonalscale);                 \
  X(zeroentries);                   \
  X(norm);                          \
  X(shift);                         \
  X(axpy);                          \
  X(setoption);                     \
  X(setup)

/* Replaces an operation if there is one */
#define SpMVReplaceOp(A, op, f) \
  if ((A)->ops->op) (A)->ops->op = f

/* Only the operations that may be replaced: struct _MatOps has more than four times as many */
typedef struct {
#define SpMVMember(op) __typeof__(((struct _MatOps *)NULL)->op) op
  SpMVHooks(SpMVMember);
#undef SpMVMember
} SpMVOps;

/* Numbers set by one thread while others read them: who reads the new one also sees what was written before it */
#define SpMVAtomicGet(p)        __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define SpMVAtomicSet(p, value) __atomic_store_n(p, value, __ATOMIC_RELEASE)

/* The state of a matrix when something was made from it */
typedef struct {
  Mat              mat; /* NULL: nothing has been made */
  PetscObjectId    id;
  PetscObjectState state, nonzerostate;
  PetscInt         m, n, nz; /* the pattern, if set by SpMVKeySetPattern() */
  const PetscInt  *i, *j;
} SpMVKey;

/*
  Every documented way to change values increases the object state, and every change of the pattern increases the
  nonzero state. The key contains the Mat itself because MatHeaderReplace() moves the data to another Mat, which counts
  its states independently, and the Mat's id because another Mat may be allocated at the same address. The function is
  inline because every product calls it. It takes no lock: a thread that finds the key current also sees the copy that
  another thread has finished before it set the key.
*/
static inline PetscBool SpMVKeyIsCurrent(const SpMVKey *key, Mat A)
{
  const PetscObjectState state = SpMVAtomicGet(&key->state), nonzerostate = SpMVAtomicGet(&key->nonzerostate);

  return (PetscBool)(SpMVAtomicGet(&key->mat) == A && SpMVAtomicGet(&key->id) == ((PetscObject)A)->id &&
                     state == ((PetscObject)A)->state && nonzerostate == A->nonzerostate);
}

/* A sequential matrix on the host: counts of the products requested. They determine when the format is set up and when
   it is refreshed */
typedef struct {
  SpMVKey    key;           /* the state of the matrix for which `values` is counted */
  PetscInt64 pattern;       /* products with the current pattern */
  PetscInt64 values;        /* products with the current values */
  PetscInt64 values_before; /* products with the previous values */
  PetscInt64 needed;        /* products required before the format is set up */
  PetscInt64 most;          /* products are counted up to here: later ones write nothing that other threads read */
} SpMVAsked;

/* Products in several threads may be counted as one */
static inline void SpMVAskedCount(SpMVAsked *asked, PetscInt64 products)
{
  const PetscInt64 values = SpMVAtomicGet(&asked->values);

  if (values >= asked->most) return;
  SpMVAtomicSet(&asked->pattern, SpMVAtomicGet(&asked->pattern) + products);
  SpMVAtomicSet(&asked->values, values + products);
}

/* A sequential matrix: its copy on the host. Threads that multiply take the lock to change it, but not to read it */
typedef struct {
  pthread_mutex_t lock;
  SpMVKey         key;
  SpMVStore       store;
  /* AIJ's own product is used: columns are unsorted, there are no values, AIJ is cheaper, ... */
  PetscBool use_parent;
  PetscInt  nonzerorows;
  SpMVAsked asked;
} SpMVHostCopy;

/* The state of a parallel matrix when its copies were last up to date on all ranks. This state is the same on all
   ranks; the states of the blocks may differ, because a rank may change its own blocks */
typedef struct {
  SpMVKey   key;
  PetscBool bound; /* to the CPU */
} SpMVAgreed;

/* An MPI matrix */
typedef struct {
  PetscObjectId hooked[2];    /* ids of the two blocks when they were hooked */
  SpMVAgreed    agreed[2][2]; /* [device vectors][transposed] */
} SpMVParallel;

/* The options -mat_spmv_halo*, which are read with and without CUDA */
typedef enum {
  SPMV_HALO_AUTO, /* peer or NCCL if possible, otherwise PETSc if MPI supports device arrays, otherwise host */
  SPMV_HALO_PEER, /* direct access to each other's memory, within a node */
  SPMV_HALO_NCCL,
  SPMV_HALO_HOST, /* MPI, through pinned host memory */
  SPMV_HALO_PETSC /* PETSc's VecScatter */
} SpMVHaloType;
PETSC_INTERN const char *const SpMVHaloTypes[];
typedef struct {
  SpMVHaloType type;
  PetscReal    rows; /* maximum fraction of boundary rows, whose off-diagonal entries the fused product adds */
} SpMVHaloOptions;

/* What our symbolic phase of a product of matrices does in addition to PETSc's */
typedef enum {
  SPMV_SYMBOLIC,      /* the result gets the format and the parameters */
  SPMV_SYMBOLIC_HOST, /* the same, and the numeric phase of a product on the device is AIJ's on the host */
  /* the factors have AIJ's type name during the call: MATSHELL and other types look at the names of the factors' types
     */
  SPMV_SYMBOLIC_AIJ
} SpMVProductKind;

/* Stored with the first factor of our types in a product of matrices: the symbolic phase of the latest such product */
typedef struct {
  const Mat_Product *product;
  SpMVProductKind    kind;
  PetscErrorCode (*symbolic)(Mat); /* PETSc's */
} SpMVProductPhase;

/* Parameters of any format, stored in Mat_SpMV, so that reading options cannot run out of memory on one rank alone */
typedef PetscInt64 SpMVParams[16];

typedef struct {
  const SpMVFormat *format;
  SpMVParams        params;
  MatType           parenttype;   /* restored by MatSpMVUnhook() */
  PetscBool         device;       /* the parent is AIJCUSPARSE */
  SpMVOps           parent, ours; /* the operations before and after MatSpMVHook() */
  /* the previous view: AIJ's, or the view set by the DM that created the matrix */
  PetscErrorCode (*view)(Mat, PetscViewer);
  SpMVProductPhase           phase;
  PetscInt64                 pattern; /* a hash of row offsets and columns that PETSc has not allocated, 0 otherwise */
  SpMVHostCopy               host;
  SpMVParallel               parallel;
  const struct _SpMVBackend *backend; /* multiplies unless the matrix is bound to the CPU; NULL: the host multiplies */
  PetscBool                  ignores_offproc; /* MAT_IGNORE_OFF_PROC_ENTRIES was set; recorded on a device */
  /* the backend's data, in memory behind this structure */
  struct _n_Mat_SpMVCUDA *cuda;
} Mat_SpMV;

/* RESIDUAL: zz = yy - A xx, on the device only */
typedef enum { SPMV_NORMAL, SPMV_RESIDUAL, SPMV_TRANSPOSE, SPMV_HERMITIAN } SpMVOp;

static inline PetscBool SpMVIsMPI(Mat A)
{
  const char *type = ((PetscObject)A)->type_name; /* NULL while the type changes */

  return (PetscBool)(type && !strncmp(type, "mpi", 3));
}

/* matspmv.c: the state of a matrix */
/* composes data with an object, which then owns them if there is a destructor; NULL removes them */
PETSC_INTERN PetscErrorCode SpMVDataSet(PetscObject, const char name[], void *data, PetscErrorCode (*destroy)(SpMVCtx));
PETSC_INTERN PetscErrorCode SpMVDataGet(PetscObject, const char name[],
                                        void *data);      /* data: a pointer, NULL if there are none */
PETSC_INTERN PetscErrorCode MatSpMVGet(Mat, Mat_SpMV **); /* NULL if the type is not ours */
PETSC_INTERN PetscErrorCode MatSpMVNew(Mat, PetscBool device, Mat_SpMV **);
PETSC_INTERN PetscErrorCode MatSpMVSet(Mat, Mat_SpMV *);
PETSC_INTERN PetscErrorCode MatSpMVSetParams(Mat, Mat_SpMV *, const void *params);
PETSC_INTERN void           MatSpMVUseParent_Seq(Mat, Mat_SpMV *, PetscBool);
/* frees all copies; the next product sets them up again */
PETSC_INTERN PetscErrorCode MatSpMVForget(Mat, Mat_SpMV *);
PETSC_INTERN PetscErrorCode MatSpMVForgetHost_Seq(Mat, Mat_SpMV *); /* frees the host's copy */
PETSC_INTERN PetscBool      SpMVKeyHasNonzeroState(const SpMVKey *, Mat);
PETSC_INTERN PetscBool      SpMVKeyHasPattern(const SpMVKey *, Mat, const SpMVCSR *);
PETSC_INTERN void           SpMVKeySet(SpMVKey *, Mat);
PETSC_INTERN void           SpMVKeySetPattern(SpMVKey *, Mat, const SpMVCSR *);
PETSC_INTERN PetscErrorCode MatSpMVGetPattern_Seq(Mat, SpMVCSR *);
PETSC_INTERN PetscErrorCode MatSpMVRestorePattern_Seq(Mat, SpMVCSR *);
PETSC_INTERN PetscInt       SpMVCSRNonzeroRows(const SpMVCSR *);
PETSC_INTERN PetscErrorCode MatSpMVHashPattern_Seq(Mat, Mat_SpMV *, PetscBool *changed); /* since the last call */

/* parent.c: the types that ours are derived from */
typedef struct {
  PetscErrorCode (*destroy)(Mat); /* NULL: not set up yet */
  PetscErrorCode (*retrieve)(Mat);
  PetscErrorCode (*store)(Mat);
  PetscErrorCode (*productsetfromoptions)(Mat); /* for AIJCUSPARSE times AIJ */
  PetscErrorCode (*productdense)(Mat);          /* for AIJCUSPARSE times a dense matrix */
  PetscErrorCode (*preallocatecoo)(Mat, PetscCount, PetscInt[], PetscInt[]);
  PetscErrorCode (*setvaluescoo)(Mat, const PetscScalar[], InsertMode);
  PetscErrorCode (*mult)(Mat, Vec, Vec);
  PetscErrorCode (*multadd)(Mat, Vec, Vec, Vec);
  PetscErrorCode (*multtransposeadd)(Mat, Vec, Vec, Vec);
} SpMVParent;

PETSC_INTERN SpMVParent     SpMVParents[2][2]; /* [on a device][MPI] */
PETSC_INTERN PetscErrorCode SpMVParentsSetUp(PetscBool device, PetscBool mpi);
PETSC_INTERN int            SpMVHiddenDepth; /* more than 0: -mat_seqaij_type and -mat_spmv_replace have no effect */
PETSC_INTERN PetscErrorCode SpMVSetParentType(Mat, MatType); /* MatSetType() without these options */
PETSC_INTERN PetscErrorCode SpMVReplaceFunction(Mat, const char name[], PetscErrorCode (*)(Mat));
PETSC_INTERN PetscErrorCode MatSpMVComposeFunctions(Mat, PetscBool ours);

/* names.c: functions of PETSc that compare the whole name of a type */
typedef struct {
  Mat   mat; /* NULL: its name has not been replaced */
  char *own;
} SpMVName;

PETSC_INTERN PetscErrorCode SpMVNameReplace(Mat, MatType, SpMVName *);
PETSC_INTERN PetscErrorCode SpMVNameRestore(SpMVName *);
PETSC_INTERN PetscErrorCode SpMVFormerSet(Mat);
PETSC_INTERN PetscErrorCode SpMVSeqAIJReplace(MatType, PetscErrorCode (*)(Mat, MatType, MatReuse, Mat *));
PETSC_INTERN PetscErrorCode SpMVRegisterNames(void);
PETSC_INTERN PetscErrorCode SpMVFinalizeNames(void);

/* replace.c: -mat_spmv_replace */
PETSC_INTERN PetscErrorCode MatSpMVReplace_AIJ(Mat, PetscBool mpi);
PETSC_INTERN PetscErrorCode SpMVReplaceFormatGet(MatType, const SpMVFormat **);
PETSC_INTERN PetscErrorCode SpMVRegisterReplaced(PetscBool device);

/* options.c */
PETSC_INTERN PetscErrorCode SpMVOptionsInt(Mat, SpMVOptionItems, const char[], const char[], const char[], PetscInt,
                                           PetscInt, PetscInt *);
PETSC_INTERN PetscErrorCode SpMVOptionsLayout(Mat, SpMVOptionItems, const char manual[], SpMVCommonParams *);
PETSC_INTERN PetscErrorCode SpMVReadOptions(Mat, Mat_SpMV *);
PETSC_INTERN PetscErrorCode MatSpMVGetHaloOptions_MPI(Mat, const Mat_SpMV *, SpMVHaloOptions *);

typedef enum { SPMV_COO_AUTO, SPMV_COO_HOST, SPMV_COO_DEVICE } SpMVCOOPlace; /* where MatSetPreallocationCOO() sorts */

PETSC_INTERN PetscErrorCode MatSpMVGetCOOPlace(Mat, const Mat_SpMV *, SpMVCOOPlace *);

PETSC_INTERN const char *const SpMVCOOPlaces[]; /* the names of SpMVCOOPlace */
#define SpMVCOOContainer "PetscSpMV_COO"        /* the maps from coordinates are composed under this name */

/* agree.c: if an operation has failed on one rank, all ranks get an error. Collective */
PETSC_INTERN PetscErrorCode SpMVAgree(MPI_Comm, PetscErrorCode);
PETSC_INTERN PetscErrorCode SpMVAgreeOnMemory(MPI_Comm, size_t bytes, void *memory); /* zeros; memory: a pointer */
PETSC_INTERN PetscErrorCode SpMVAgreeOnText(MPI_Comm, PetscBool knows, char text[], int len);

/*
  What is done on a device: cuda/backend.c, or nocuda.c, where all members are NULL
*/
typedef struct _SpMVBackend {
  size_t bytes; /* of its data in Mat_SpMV */
  /* of the package */
  int (*devices)(void); /* how many devices PETSc may use */
  PetscErrorCode (*begin)(void);
  PetscErrorCode (*end)(void);
  /* of any matrix: operations, and composed functions, that replace those of AIJ's types; both lists end with NULL */
  void (*setops[2][6])(Mat); /* [MPI] */
  PetscErrorCode (*compose[4])(Mat, PetscBool device, PetscBool mpi, PetscBool ours);
  PetscErrorCode (*assembled)(Mat, PetscBool mpi); /* after an assembly, and when an assembled matrix is hooked */
  PetscErrorCode (*forget)(Mat_SpMV *);            /* frees the copies */
  PetscErrorCode (*destroy)(Mat_SpMV *);           /* frees the exchange, too */
  PetscErrorCode (*view)(Mat, Mat_SpMV *, PetscViewer);
  PetscErrorCode (*hostisnewer)(Mat); /* see SpMVHostIsNewer() */
  PetscErrorCode (*takenumeric)(Mat); /* replaces the function that computes a product of matrices on the host */
  /* the symbolic phase of a product of matrices, on the device or by PETSc's function */
  PetscErrorCode (*symbolic)(Mat C, PetscErrorCode (*petsc)(Mat));
  /* of a matrix that is not bound to the CPU: products, and bringing copies up to date for them */
  PetscErrorCode (*applyseq)(Mat, Mat_SpMV *, SpMVOp, Vec, Vec, Vec);
  /* brings the copies up to date first; *done is false if MPIAIJ's own product is to be used */
  PetscErrorCode (*applympi)(Mat, Mat_SpMV *, SpMVOp, Vec, Vec, Vec, PetscBool *done);
  PetscErrorCode (*getready)(Mat, PetscBool transpose, Mat_SpMV **);
  PetscErrorCode (*getstats)(Mat, Mat_SpMV *, SpMVStats *);
  /* sets `entries` values from `first` on, in both arrays if the host's has the newest; not done if the device has not
     multiplied */
  PetscErrorCode (*writevalues)(Mat, PetscInt first, PetscInt entries, const PetscScalar[], PetscBool *done);
  PetscErrorCode (*isdevicearray)(const void *array, PetscBool *); /* writevalues() of such an array is always done */
} SpMVBackend;

PETSC_INTERN const SpMVBackend SpMVCUDA;

PETSC_INTERN PetscErrorCode SpMVUseDevice(MPI_Comm, PetscBool *); /* whether new matrices use AIJCUSPARSE */
/* marks the host's values as newer, after AIJ has changed them without doing so */
PETSC_INTERN PetscErrorCode SpMVHostIsNewer(Mat);

/* host.c: the copy on the host and its products */
/* brings the copy up to date if there have been enough products, or with `setup`; current: whether it is up to date */
PETSC_INTERN PetscErrorCode MatSpMVUpdateHost_Seq(Mat, Mat_SpMV *, PetscBool setup, PetscBool *current);
/* uses AIJ's product if out of memory, which is not an error */
PETSC_INTERN PetscErrorCode MatSpMVUpdateHostOrUseParent_Seq(Mat);
/* current: whether the copy is up to date; otherwise AIJ multiplies */
PETSC_INTERN PetscErrorCode MatSpMVApplyHost_Seq(Mat, Mat_SpMV *, PetscBool current, SpMVOp, Vec, Vec, Vec);

/* seq.c: a sequential matrix, on the host or on the device */
/* brings the copy that such a product reads up to date */
PETSC_INTERN PetscErrorCode MatSpMVGetReady_Seq(Mat, PetscBool device, PetscBool transpose);
/* brings the copy up to date first; without `setup` only if due */
PETSC_INTERN PetscErrorCode MatSpMVGetStats_Seq(Mat, PetscBool setup, SpMVStats *);
PETSC_INTERN PetscErrorCode MatSpMVApply_Seq(Mat, Mat_SpMV *, SpMVOp, Vec, Vec, Vec);

/* hook.c: hooking a matrix and unhooking it */
PETSC_INTERN PetscErrorCode MatSpMVHook(Mat, const SpMVFormat *, const void *params);
PETSC_INTERN PetscErrorCode MatSpMVHookBlocks_MPI(Mat, Mat_SpMV *);

/* dense.c: products with dense matrices */
PETSC_INTERN PetscErrorCode SpMVDenseTakeNumeric(Mat);

/* keep.c: matrices created from a matrix keep its format and parameters */
typedef struct {
  const SpMVFormat *format;
  SpMVParams        params;
} SpMVKeep;

PETSC_INTERN void           SpMVKeepBegin(const Mat_SpMV *, SpMVKeep *);
PETSC_INTERN PetscErrorCode SpMVKeepSet(const SpMVKeep *, Mat);
PETSC_INTERN void           SpMVKeepEnd(void);

/* types.c: the types that ours are derived from [on a device][MPI], and what is replaced in all of them; both lists end
   with NULL. SetOps functions set operations; Compose functions compose functions that PETSc looks up by name, or restore
   the parent's if `ours` is false. The table SpMVCUDA has what a device replaces in addition */
PETSC_INTERN const MatType SpMVParentTypes[2][2];
PETSC_INTERN void (*const SpMVSetOps[])(Mat);
PETSC_INTERN                PetscErrorCode (*const SpMVCompose[])(Mat, PetscBool device, PetscBool mpi, PetscBool ours);
PETSC_INTERN void           MatSpMVSetOps_Mult(Mat);
PETSC_INTERN PetscErrorCode SpMVParentApply(Mat, const SpMVOps *, SpMVOp, Vec, Vec, Vec);
PETSC_INTERN void           MatSpMVSetOps_Keep(Mat);
PETSC_INTERN void           MatSpMVSetOps_Parent(Mat);
PETSC_INTERN void           MatSpMVSetOps_View(Mat);
PETSC_INTERN void           MatSpMVSetOps_Product(Mat);
PETSC_INTERN PetscErrorCode MatSpMVCompose_Parent(Mat, PetscBool, PetscBool, PetscBool);
PETSC_INTERN PetscErrorCode MatSpMVCompose_Product(Mat, PetscBool, PetscBool, PetscBool);
PETSC_INTERN void           MatSpMVSetOps_ProductCUDA(Mat);

/* product.c: factor k of a product of matrices, or NULL; the first factor of our types */
PETSC_INTERN Mat            SpMVProductFactor(Mat C, int k);
PETSC_INTERN PetscErrorCode SpMVProductGet(Mat C, Mat_SpMV **);
