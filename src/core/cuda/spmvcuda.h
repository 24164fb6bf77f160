/*
  The core on CUDA devices: sparse matrices laid out by the GPU for the GPU, free of PETSc objects and of formats.

  The input is bare device arrays and a stream, the result a cudaError_t. Set-up and fills run on the device. Set-up may wait for the stream; nothing else
  waits, except where it says so. A product allocates nothing and is one kernel (after a memset or a copy where most rows are empty, and before a permutation with
  the papers' sorted kernels), gives the same bits every time, and may be captured in a CUDA graph.

  A store holds partial sums of long rows while it multiplies: two products with one store never run at the same time, except those of its interior and of its
  boundary rows. Fills and products in several streams follow one another in the order of the calls. Only while a stream is captured, and where graphs are
  launched, is the order up to the caller.

  Arrays of complex numbers that begin between two numbers are copied for the duration of a product (the first time, that allocates). An error that the caller
  has left in cudaGetLastError() is cleared where kernels are launched, and not reported.
*/
#pragma once

#include "../spmvcore.h"
#include <cuda_runtime_api.h>
#include <limits.h>

typedef struct _n_SpMVCudaStore *SpMVCudaStore;

/* The most rows or columns of a matrix, and nonzeros of a transposed one: 32-bit numbers, and so are the next multiples of what they are shared out by */
#define SPMVCUDA_MAX_SIZE (INT_MAX - 65535)

/* A matrix in CSR form on the device, borrowed for the call. Row offsets are those of all rows, not of the nonempty ones. */
typedef struct {
  PetscInt64         m, n, nnz;
  const void        *i, *j;
  int                index_bytes; /* of i and j: of PetscInt, or 4 */
  const PetscScalar *a;           /* not read by set-up */
} SpMVCudaCSR;

typedef enum {
  SPMVCUDA_KERNEL_AUTO,     /* statistics decide */
  SPMVCUDA_KERNEL_SLICES,   /* the format's own slices, never whole diagonals */
  SPMVCUDA_KERNEL_PAPER,    /* as the format's paper prints it */
  SPMVCUDA_KERNEL_ADAPTIVE, /* of EVC-HYB: the adaptive CSR kernel that precedes the paper */
  SPMVCUDA_KERNEL_TUNE      /* set-up creates several layouts, times their products, and keeps the fastest */
} SpMVCudaKernel;

/*
  A format's own set-up, declared by the format, creates a store with a layout but without values:

    cudaError_t SetUp(const SpMVCudaCSR *, const its own parameters *, SpMVCudaKernel, PetscBool transpose, cudaStream_t, SpMVCudaStore *);

  With transpose, of A^T: the store then has a permutation of the nonzeros, for fills. cudaErrorNotSupported, and no store, where the matrix is larger than
  SPMVCUDA_MAX_SIZE or the library has no code for the device: the caller must use another product.
*/

/* Whether the library has code for the current device: compute capability 8.0 or later, and one that it was compiled for */
PETSC_INTERN PetscBool SpMVCudaIsSupported(void);

/* Slices a multiprocessor from which matrices with more than nine diagonals are stored by diagonals: see Tuning::DIAGONALS_MIN. Tests set it to 0 */
PETSC_INTERN int SpMVCudaDiagonalsLeast;
/* Slices whose values take more than one part in so many of the L2 cache may keep some there between products: see Tuning::L2_FIT. Tests set it to INT_MAX */
PETSC_INTERN int SpMVCudaL2Fit;

/* Stores the values of the same pattern: call it once before the first product. Of the CSR, it reads i and a. */
PETSC_INTERN cudaError_t SpMVCudaFill(SpMVCudaStore, const SpMVCudaCSR *, cudaStream_t);

typedef enum {
  SPMVCUDA_MULT,      /* y = A x (z NULL), or y = z + A x, where z may be y */
  SPMVCUDA_CONJUGATE, /* the same with conj(A): with a transposed store, A^H */
  SPMVCUDA_RESIDUAL   /* y = z - A x, where z may be y and must not be NULL */
} SpMVCudaForm;
PETSC_INTERN cudaError_t SpMVCudaMult(SpMVCudaStore, SpMVCudaForm, const PetscScalar *x, const PetscScalar *z, PetscScalar *y, cudaStream_t);

/*
  The same for the columns of dense matrices, each ld numbers after the one before, with one pass over A for several columns where that is faster. Each column is that
  of SpMVCudaMult(), bit by bit (except for the sign of a zero). z may be y where ldz is ldy. This takes several kernels. The first time, unless a graph is captured,
  it may allocate memory, which the store keeps, and wait for the stream.
*/
PETSC_INTERN cudaError_t SpMVCudaMultColumns(SpMVCudaStore, SpMVCudaForm, PetscInt64 count, const PetscScalar *x, PetscInt64 ldx, const PetscScalar *z,
                                             PetscInt64 ldz, PetscScalar *y, PetscInt64 ldy, cudaStream_t);

/*
  SpMVCudaMult() without conjugate, directly after the exchange of a halo by one kernel in the same stream. With `early`, begins at the same time as the exchange, which reads
  the same x; otherwise when it is done. With a halo, adds the off-diagonal block if SpMVCudaHasOffdiagonal(). The store must not be filled in between.
*/
PETSC_INTERN cudaError_t SpMVCudaMultFused(SpMVCudaStore, SpMVCudaForm, const PetscScalar *x, const PetscScalar *halo, const PetscScalar *z, PetscScalar *y,
                                           PetscBool early, cudaStream_t);
/* Stores the off-diagonal block's pattern for MultFused, then its values. cudaErrorNotSupported where more than `most` of its rows have entries, or rows are
   long, or the kernel cannot add them */
PETSC_INTERN cudaError_t SpMVCudaFuseOffdiagonal(SpMVCudaStore, const SpMVCudaCSR *offdiagonal, PetscInt64 most, cudaStream_t);
PETSC_INTERN cudaError_t SpMVCudaFillOffdiagonal(SpMVCudaStore, const SpMVCudaCSR *offdiagonal, cudaStream_t);
PETSC_INTERN PetscBool   SpMVCudaHasOffdiagonal(SpMVCudaStore);

/*
  Separates boundary rows, listed on the host in ascending order, from interior rows, so that the two can be multiplied in different streams: boundary rows of a
  parallel matrix, which have entries in the off-diagonal block, wait for the halo; interior rows do not. Whole slices become boundary rows, and these are
  stored a second time. Call it between set-up and the first fill. cudaErrorNotSupported where there would be more than `most` boundary rows, or the kernel has
  to write all rows.
*/
typedef enum { SPMVCUDA_ROWS_INTERIOR, SPMVCUDA_ROWS_BOUNDARY, SPMVCUDA_ROWS_ALL } SpMVCudaRows;
PETSC_INTERN cudaError_t SpMVCudaSetBoundary(SpMVCudaStore, const SpMVCudaCSR *, int count, const int row[], PetscInt64 most, cudaStream_t);
PETSC_INTERN PetscBool   SpMVCudaHasBoundary(SpMVCudaStore);
/* Whether y = y + A x leaves rows without entries alone; otherwise it reads and writes them, too */
PETSC_INTERN PetscBool SpMVCudaSkipsEmptyRows(SpMVCudaStore);
/* As SpMVCudaMult() without conjugate, for these rows; y of all other rows is not touched. The caller orders products in different streams. cudaErrorMisalignedAddress unless
   SpMVCudaIsAligned() for all arrays; all other products accept any */
PETSC_INTERN PetscBool   SpMVCudaIsAligned(const PetscScalar *);
PETSC_INTERN cudaError_t SpMVCudaMultRows(SpMVCudaStore, SpMVCudaForm, SpMVCudaRows, const PetscScalar *x, const PetscScalar *z, PetscScalar *y, cudaStream_t);

PETSC_INTERN cudaError_t SpMVCudaDestroy(SpMVCudaStore *);
PETSC_INTERN void        SpMVCudaGetStats(SpMVCudaStore, SpMVStats *);

/* Copies arrays from the host to the device, faster than cudaMemcpy() from pageable memory. The copy is complete on return. Threads must not call it at the
   same time. */
PETSC_INTERN cudaError_t SpMVCudaUpload(int arrays, void *const device[], const void *const host[], const size_t bytes[]);
/* The same from the device to the host, once the device has written what is copied */
PETSC_INTERN cudaError_t SpMVCudaDownload(int arrays, void *const host[], const void *const device[], const size_t bytes[]);
PETSC_INTERN cudaError_t SpMVCudaFinalize(void); /* frees the memory that is kept, pinned and on the device */

/* The oracle of the tests: copies the store to the host and decodes it one entry at a time (without padding) */
PETSC_INTERN cudaError_t SpMVCudaVisit(SpMVCudaStore, SpMVVisitor, void *ctx);
