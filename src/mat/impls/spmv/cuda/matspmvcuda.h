/*
  The part of the glue that needs CUDA, called through the table SpMVCUDA.

  Each file calls only files below it in this list:

    backend.c        the table
    cusparse.c       corrections of AIJCUSPARSE         cusparse/coo.c  assembly from coordinates
    dense.c          products with dense matrices       spgemm.c        products of sparse matrices
    mpi.c            products of MPI matrices
    seq.c            copies and products of sequential matrices
    cusparse/factor.c, values.c, pattern.c   triangular solves; AIJCUSPARSE's values and pattern
    cusparse/parent.c  AIJCUSPARSE's own products
    halo.c           exchange of the halo, over transport.c
    operands.c       arrays and copies of vectors
*/
#pragma once

#include "mat/impls/spmv/matspmv.h"
#include "mat/impls/spmv/cuda/halo.h"

/* A sequential matrix: the copy on the device of the matrix or of its transpose */
typedef struct {
  SpMVKey       key;
  SpMVCudaStore store;
  PetscBool     use_parent; /* AIJCUSPARSE's own product is used */
} SpMVCudaCopy;

/* A diagonal block on the device: the off-diagonal block fused into its kernel */
typedef struct {
  SpMVKey   key;     /* of the off-diagonal block */
  PetscBool refused; /* it cannot be fused */
} SpMVFused;

/* An MPI matrix: the exchange of its halo on the device */
typedef struct {
  SpMVHalo        halo;
  SpMVKey         key; /* of the MPI matrix */
  PetscObjectId   offdiag;
  PetscBool       bound; /* no halo has been created because a matrix or vector of some rank is bound to the CPU */
  SpMVHaloOptions options;
} SpMVExchange;

/*
  What a product on the device does, decided when a key changes. MatMult(), products with dense matrices and Krylov
  methods launch it: SpMVMultPlanLaunch()
*/
typedef struct {
  Mat              block[2]; /* the diagonal and the off-diagonal block, or a sequential matrix */
  SpMVKey          of[2];    /* their states */
  PetscInt64       epoch;    /* SpMVMultPlanEpoch when the plan was made */
  PetscBool        transpose;
  SpMVCudaStore    store[2]; /* NULL: a function of the block multiplies, or the kernel of store[0] (fused) */
  SpMVHalo         halo;     /* NULL for a sequential matrix */
  SpMVCudaHalo     exchange; /* NULL: there is none */
  PetscScalar     *received; /* the halo, with leading dimension ld; NULL: this rank has none */
  PetscInt         ld;
  SpMVCudaExchange sends;    /* the diagonal block's kernel sends; NULL: it does not */
  PetscBool        receives; /* it also receives, and adds the off-diagonal block's product (fused) */
  PetscLogDouble   nonzeros[2], rows;
} SpMVMultPlan;

/* Plans made before the latest change of this number are out of date: a store or a halo has been freed since */
PETSC_INTERN PetscInt64 SpMVMultPlanEpoch;

/* The whole product is launches of our kernels */
static inline PetscBool SpMVMultPlanIsWhole(const SpMVMultPlan *plan)
{
  return (PetscBool)(plan->store[0] && (!plan->received || plan->receives || plan->store[1]));
}

typedef enum {
  SPMV_PLAN_MULT,                          /* A x */
  SPMV_PLAN_TRANSPOSE,                     /* A^T x */
  SPMV_PLAN_COLUMNS,                       /* A X with the columns of a dense matrix */
  SPMV_PLAN_COLUMNS_TRANSPOSE,             /* A^T X, of a sequential matrix */
  SPMV_PLANS = SPMV_PLAN_COLUMNS_TRANSPOSE /* of an MPI matrix */
} SpMVMultPlanKind;

/* A matrix on a device */
typedef struct _n_Mat_SpMVCUDA {
  SpMVCudaCopy copy[2]; /* of the matrix and of its transpose */
  SpMVFused    fused;
  SpMVExchange exchange;
  SpMVMultPlan plan[SPMV_PLANS]; /* of an MPI matrix */
  SpMVAgreed   columns;          /* when all ranks prepared the plan for columns */
  PetscBool    columns_lack;     /* some rank cannot multiply several columns at once, for example for lack of memory */
  /* a block of a parallel matrix, or a product with a dense matrix: lack of memory for a copy is no error, see
     MatSpMVGetReady_MPICUDA() */
  PetscBool may_lack;
} Mat_SpMVCUDA;

/* operands.c: the arrays of zz = yy + A xx, where yy may be zz, or NULL for zero, where the values are */
typedef struct {
  Vec          v; /* NULL: no such operand */
  PetscScalar *array, *copy;
  PetscMemType memtype;
  enum { SPMV_READ, SPMV_WRITE, SPMV_UPDATE } access;
} SpMVOperand;

typedef struct {
  const PetscScalar *x, *y; /* y equals z if yy is zz, and is NULL if yy is NULL */
  PetscScalar       *z;
  SpMVOperand        operand[3];   /* zz, xx, and yy unless yy is zz */
  PetscBool          device, host; /* at least one array is on the device, on the host */
} SpMVOperands;

PETSC_INTERN PetscErrorCode SpMVOperandsBegin(Vec xx, Vec yy, Vec zz, SpMVOperands *);
PETSC_INTERN PetscErrorCode SpMVOperandsEnd(SpMVOperands *);
/* copies host arrays to the device */
PETSC_INTERN PetscErrorCode SpMVOperandsStage(SpMVOperands *, cudaStream_t, PetscBool *staged);
/* a device vector with the array of a host vector, or the vector itself */
PETSC_INTERN PetscErrorCode SpMVVecOnDevice(Vec, Vec *);
PETSC_INTERN PetscErrorCode SpMVVecRestore(Vec, PetscBool changed, Vec *);
/* to = scale from, which may be the same vector, on this rank alone: VecCopy() and VecScale() are collective */
PETSC_INTERN PetscErrorCode SpMVVecCopyLocal(Vec from, PetscScalar scale, Vec to);

/* mpi.c: plans, and the products of MPI matrices */
/* Computes y = A x, z + A x, or z - A x if whole, between arrays on the device: p.form, x, y, z and columns are set */
PETSC_INTERN PetscErrorCode SpMVMultPlanLaunch(const SpMVMultPlan *, SpMVCudaProduct p, cudaStream_t);
/* Instead of Launch, on a rank that has no operands because of an error: the other ranks count on its exchange */
PETSC_INTERN PetscErrorCode SpMVMultPlanForgo(const SpMVMultPlan *, PetscInt64 columns, cudaStream_t);
/* Collective for MPI matrices. Brings A up to date for products from vectors like x to vectors like y, or for device
   matrices if they are NULL, and copies the plan; block[0] is NULL if MatMult() is to be called, or AIJCUSPARSE's
   product */
PETSC_INTERN PetscErrorCode MatSpMVGetPlan_CUDA(Mat, SpMVMultPlanKind, Vec x, Vec y, SpMVMultPlan *);
/* Collective. *ours is false if there is no exchange of our own */
PETSC_INTERN PetscErrorCode MatSpMVUpdateHalo_MPICUDA(Mat, Mat_SpMV *, PetscBool bound, PetscBool *ours);
PETSC_INTERN PetscErrorCode MatSpMVApply_MPICUDA(Mat, Mat_SpMV *, SpMVOp, Vec, Vec, Vec, PetscBool *done);
PETSC_INTERN void           MatSpMVSetOps_MPICUDA(Mat);

/* seq.c: the copies on the device and their products */
PETSC_INTERN PetscErrorCode MatSpMVApply_SeqCUDA(Mat, Mat_SpMV *, SpMVOp, Vec, Vec, Vec);
/* NULL: AIJCUSPARSE multiplies */
PETSC_INTERN PetscErrorCode MatSpMVGetReady_SeqCUDA(Mat, PetscBool transpose, Mat_SpMV **);
PETSC_INTERN PetscErrorCode MatSpMVWarmUp_SeqCUDA(Mat);
PETSC_INTERN PetscErrorCode MatSpMVGetStats_SeqCUDA(Mat, Mat_SpMV *, SpMVStats *);
PETSC_INTERN PetscErrorCode MatSpMVUpdateFused_SeqCUDA(Mat_SpMV *, Mat offdiag, PetscReal fraction, PetscBool *fused);
PETSC_INTERN PetscErrorCode MatSpMVForget_CUDA(Mat_SpMV *); /* frees both copies */
PETSC_INTERN void           MatSpMVSetOps_SeqCUDA(Mat);

/* backend.c */
/* why a solver cannot work with a matrix on the device; empty if it can. off: the option that forbids it, or NULL */
PETSC_INTERN PetscErrorCode MatSpMVWhyNot_CUDA(Mat, const char off[], char why[], size_t len);

/* dense.c */
PETSC_INTERN PetscErrorCode MatSpMVCompose_DenseCUDA(Mat, PetscBool, PetscBool, PetscBool);

/* spgemm.c */
PETSC_INTERN PetscErrorCode MatProductSymbolic_SpMVCUDA(Mat C, PetscErrorCode (*petsc)(Mat));

/* cusparse/cusparse.c */
PETSC_INTERN void           MatSpMVSetOps_SeqCUSPARSE(Mat);
PETSC_INTERN void           MatSpMVSetOps_MPICUSPARSE(Mat);
PETSC_INTERN PetscErrorCode MatSpMVCompose_CUSPARSE(Mat, PetscBool, PetscBool, PetscBool);
PETSC_INTERN PetscErrorCode MatSpMVMarkEmpty_SeqCUDA(Mat);
PETSC_INTERN PetscErrorCode MatSpMVSetBlockSizes_MPICUDA(Mat);

/* cusparse/parent.c: products of AIJCUSPARSE */
PETSC_INTERN PetscErrorCode MatSpMVApplyParent_Seq(Mat, Mat_SpMV *, SpMVOp, Vec, Vec, Vec);
/* C = A B or A^T B with a dense B by PETSc's function */
PETSC_INTERN PetscErrorCode SpMVDenseApplyParent_SeqCUDA(Mat C, PetscErrorCode (*numeric)(Mat));
PETSC_INTERN PetscErrorCode SpMVProductTakeNumeric(Mat);

/* PETSc 3.26's Mat_SeqAIJ up to its values; PETSc installs no header with it */
typedef struct {
  PetscBool         roworiented;
  PetscInt          nonew, nounused, maxnz, *imax, *ilen, *ipre;
  PetscBool         free_imax_ilen;
  PetscInt          reallocs, rmax;
  PetscBool         keepnonzeropattern, ignorezeroentries, free_ij, free_a;
  Mat_CompressedRow compressedrow;
  PetscInt          nz, *i, *j, *diag;
  PetscObjectState  diagNonzeroState;
  PetscBool         diagDense;
  PetscInt          nonzerorowcnt;
  PetscScalar      *a;
} SpMVSeqAIJ;

#define SPMV_KNOWS_SEQAIJ (PETSC_VERSION_GE(3, 26, 0) && PETSC_VERSION_LT(3, 27, 0))
/* NULL with another PETSc */
static inline SpMVSeqAIJ *SpMVSeqAIJGet(Mat A)
{
  return SPMV_KNOWS_SEQAIJ ? (SpMVSeqAIJ *)A->data : NULL;
}

/* AIJCUSPARSE has the row offsets of the nonempty rows only, which some of its functions do not handle: if six tenths of
   the rows are empty. With another PETSc it may have */
static inline PetscBool MatSpMVIsCompressed_Seq(Mat A)
{
  const SpMVSeqAIJ *const aij = SpMVSeqAIJGet(A);

  return (PetscBool)(A->rmap->n && (!aij || aij->compressedrow.use));
}

/* cusparse/values.c: AIJCUSPARSE's arrays on the device */
typedef struct {
  SpMVCudaCSR  csr;
  PetscScalar *a; /* if they will be changed */
  cudaStream_t stream;
} SpMVValues;

/* whether the newest values are there and can be used */
PETSC_INTERN PetscErrorCode MatSpMVOnDevice_Seq(Mat, PetscBool *device);
PETSC_INTERN PetscErrorCode SpMVValuesGet(Mat, PetscBool write, SpMVValues *);
PETSC_INTERN PetscErrorCode SpMVValuesRestore(Mat, SpMVValues *);
PETSC_INTERN PetscErrorCode SpMVIsDeviceArray(const void *, PetscBool *);
/* as SpMVBackend::writevalues */
PETSC_INTERN PetscErrorCode MatSpMVWriteValues_SeqCUDA(Mat, PetscInt first, PetscInt entries, const PetscScalar[],
                                                       PetscBool *done);
PETSC_INTERN PetscErrorCode SpMVValuesTried(cudaError_t, PetscBool *done);
PETSC_INTERN void           MatSpMVSetOps_Values(Mat);

/* cusparse/pattern.c: the pattern of a sequential matrix from arrays on the device */
PETSC_INTERN PetscErrorCode SpMVDownloadIndices(PetscInt64 count, const PetscInt *from, PetscInt *to);
PETSC_INTERN PetscErrorCode SpMVPinnedFree(void); /* memory that is kept until PetscFinalize() */
/* the number of nonzeros in each row; the caller frees them */
PETSC_INTERN PetscErrorCode SpMVGetLengths(PetscInt m, const PetscInt *i, PetscInt **length);
/* copies the columns into a matrix with room for them */
PETSC_INTERN PetscErrorCode MatSpMVSetColumns_SeqCUDA(Mat, PetscInt64 nonzeros, const PetscInt *j);
/* sets AIJ's new values to zero, on the device; i and j: its pattern there, or NULL */
PETSC_INTERN PetscErrorCode MatSpMVSetZeros_SeqCUDA(Mat, PetscInt64 nonzeros, const PetscInt *i, const PetscInt *j);
/* both for a new matrix; without nonzeros the arrays may be NULL */
PETSC_INTERN PetscErrorCode MatSpMVSetPattern_SeqCUDA(Mat, PetscInt64 nonzeros, const PetscInt *i, const PetscInt *j);
/* an AIJCUSPARSE matrix with copies of the arrays, and these block sizes; without nonzeros the arrays may be NULL */
PETSC_INTERN PetscErrorCode MatSpMVCreateFrom_SeqCUDA(const SpMVCudaCSR *, PetscInt rbs, PetscInt cbs, Mat *);

/* cusparse/factor.c: triangular solves between host vectors */
PETSC_INTERN PetscErrorCode SpMVRegisterFactors(void);

/* cusparse/coo.c: assembly from coordinates */
PETSC_INTERN void           MatSpMVSetOps_MPICOO(Mat);
PETSC_INTERN PetscErrorCode MatSpMVCompose_COO(Mat, PetscBool, PetscBool, PetscBool);
