/*
  The matrix type batch: the block-diagonal matrix of many small problems. Each process owns whole problems, so a
  product needs no communication, and one type serves any communicator.

  The matrix consists of the CSR arrays of the problems on the host. The first product that needs a layout creates it.
  When values have changed, the next product refreshes only the problems that changed, if they are known. Operations
  other than products and simple operations on values (factorizations, submatrices, inverses of diagonal blocks) use a
  copy of the local part in AIJ, created when it is first needed.

    batch.c   the data, products, queries
    aij.c     the copy in AIJ and the operations that use it
    create.c  matrices from arrays, from other matrices, and from files
    values.c  access to values and operations on them
    type.c    the type: views, options, creation and destruction

  Each file calls only functions of the files above it.
*/
#pragma once

#include "mat/impls/spmv/matspmv.h"
#if defined(PETSCSPMV_HAVE_CUDA)
  #include "mat/impls/spmv/cuda/matspmvcuda.h"
  #define SpMVGetStream(stream) PetscGetCurrentCUDAStream(stream)
#endif
#include "kernels.h"

/* A range of problems, empty if first >= last */
typedef struct {
  PetscInt first, last;
} BatchRange;

typedef struct {
  BatchPattern     p; /* refers to the arrays that follow */
  PetscInt        *first, *i, *j;
  PetscScalar     *a;
  PetscBool        own_pattern, own_values; /* the arrays are freed with the matrix */
  BatchKernel      kernel;                  /* -mat_batch_kernel */
  PetscObjectState state;                   /* of the matrix, when the ranges of stale problems were last updated */
  BatchHost        host;
  BatchRange       host_stale; /* problems whose new values are not in the layout yet */
  PetscBool        device;     /* products with GPU vectors run on the GPU */
#if defined(PETSCSPMV_HAVE_CUDA)
  struct { /* the layouts of the matrix and of its transpose, each created when it is first needed */
    BatchCuda  batch;
    PetscBool  use_host; /* a layout on the device is not possible */
    BatchRange stale;
  } cuda[2];
#endif
  Mat              aij; /* the copy of the local part in AIJ */
  PetscObjectState aij_state;
  PetscInt        *columns; /* for MatGetRow() */
} Mat_Batch;

/* batch.c */
PETSC_INTERN const char *const BatchKernelTypes[];
/* an error if the matrix has another type, or no problems yet */
PETSC_INTERN PetscErrorCode MatBatchGet(Mat, Mat_Batch **);
PETSC_INTERN PetscErrorCode MatBatchCheckVec(Mat, Vec);
PETSC_INTERN PetscErrorCode MatBatchGetKernel(Mat);      /* reads -mat_batch_kernel */
PETSC_INTERN PetscErrorCode MatBatchForget(Mat_Batch *); /* destroys the layouts */
/* call it after changing the values of these problems */
PETSC_INTERN PetscErrorCode MatBatchChanged(Mat, PetscInt first, PetscInt last);
/* for A B on the host with a dense B */
PETSC_INTERN PetscErrorCode MatProductSymbolic_BatchDense(Mat);
/* call it before setting values that differ between problems */
PETSC_INTERN PetscErrorCode MatBatchUnshare(Mat, PetscScalar **old);

/* create.c */
PETSC_INTERN PetscErrorCode MatBatchCreateLike(Mat A, PetscErrorCode ierr, PetscInt *i, PetscInt *j, PetscScalar *a,
                                               Mat *B);
PETSC_INTERN PetscErrorCode MatBatchReturn(Mat A, Mat B, MatReuse, Mat *M);

/* aij.c */
PETSC_INTERN PetscErrorCode MatBatchConvertToAIJ(Mat, Mat *); /* the whole matrix, parallel if the batch is */
PETSC_INTERN PetscErrorCode MatBatchRegisterFactors(void);

/* The operations that each file implements */
PETSC_INTERN PetscErrorCode MatBatchSetOps_Products(Mat);
PETSC_INTERN PetscErrorCode MatBatchSetOps_Create(Mat);
PETSC_INTERN PetscErrorCode MatBatchSetOps_Values(Mat);
PETSC_INTERN PetscErrorCode MatBatchSetOps_AIJ(Mat);
