/*
  The formats' core on the device: sparse blocks laid out by the GPU for the GPU, free of PETSc objects.

  Bare device arrays and a stream in, cudaError_t out. Set-up and refresh run on the device; set-up may wait for the stream, nothing
  else ever does. A product allocates nothing, waits for nothing, is one kernel (a memset or copy before it where most rows are empty,
  a permutation after the papers' sorted kernels), gives the same bits every time, and may be captured in a CUDA graph.

  A block holds partial sums of long rows while it multiplies: two products with one block do not run at the same time, except those of rows apart and
  of the others. Fills and products in several streams follow one another as they are called; only while a stream is captured, and where graphs are
  launched, the caller sees to that.

  Arrays of complex numbers that begin between two of them are copied for the length of a product (the first time, that allocates). An error that
  the caller has left in cudaGetLastError() is cleared where kernels are launched, and not reported.
*/
#pragma once

#include "../spmvcore.h"
#include <cuda_runtime_api.h>
#include <limits.h>

typedef struct _n_SpMVCudaStore *SpMVCudaStore;

/* The most rows or columns of a block, and nonzeros of a transposed one: 32-bit numbers, with room for the next multiple of whatever they are shared out by */
#define SPMVCUDA_MAX_SIZE (INT_MAX - 65535)

/* A block in CSR form on the device, borrowed for the call. Row offsets are of all rows, not of the nonempty ones. */
typedef struct {
  PetscInt64         m, n, nnz;
  const void        *i, *j;
  int                index_bytes; /* of i and j: 4 or 8 */
  const PetscScalar *a;           /* not read by set-up */
} SpMVCudaCSR;

typedef enum {
  SPMVCUDA_KERNEL_AUTO,     /* statistics decide */
  SPMVCUDA_KERNEL_SLICES,   /* the format's own slices, never whole diagonals */
  SPMVCUDA_KERNEL_PAPER,    /* as the format's paper prints it */
  SPMVCUDA_KERNEL_ADAPTIVE, /* of EVC-HYB: the adaptive CSR kernel that precedes the paper */
  SPMVCUDA_KERNEL_TUNE      /* set-up lays out the block in several ways, times their products, and keeps the fastest */
} SpMVCudaKernel;

/*
  A format's own set-up, declared by the format, makes a store with a layout but without values:

    cudaError_t SetUp(const SpMVCudaCSR *, const its own parameters *, SpMVCudaKernel, PetscBool transpose, cudaStream_t, SpMVCudaStore *);

  With transpose, of A^T: the store then has a permutation of the nonzeros, for fills. cudaErrorNotSupported, and no store, where the matrix is larger than
  SPMVCUDA_MAX_SIZE or the library has no code for the device: the caller must use another product.
*/

/* Whether the library has code for the current device, which takes compute capability 8.0 or later, and one of those that it was compiled for */
PETSC_INTERN PetscBool SpMVCudaIsSupported(void);

/* Slices a multiprocessor from which blocks of more than nine diagonals are stored by diagonals: fewer cannot hide their loads. Tests set it to 0 */
PETSC_INTERN int SpMVCudaDiagonalsLeast;

/* Moves in the values of the same pattern: call it once before the first product. Of the CSR it reads i and a. */
PETSC_INTERN cudaError_t SpMVCudaFill(SpMVCudaStore, const SpMVCudaCSR *, cudaStream_t);

/* y = A x (z NULL), or y = z + A x, where z may be y. With conjugate, conj(A) instead of A: of a transposed block, A^H */
PETSC_INTERN cudaError_t SpMVCudaMult(SpMVCudaStore, PetscBool conjugate, const PetscScalar *x, const PetscScalar *z, PetscScalar *y, cudaStream_t);

/*
  y = A x or z + A x after an exchange of the halo by one kernel in the same stream: with `early`, begins with that one, whose x it reads, else when it is
  done. With a halo, also what the off-diagonal block adds, if SpMVCudaHasOffdiagonal(). Nothing of the block is refreshed in between.
*/
PETSC_INTERN cudaError_t SpMVCudaMultFused(SpMVCudaStore, const PetscScalar *x, const PetscScalar *halo, const PetscScalar *z, PetscScalar *y, PetscBool early,
                                           cudaStream_t);
/* Stores the off-diagonal block's pattern for that, then its values; cudaErrorNotSupported where more than `most` rows have entries
   there, or long ones, or the kernel cannot add them */
PETSC_INTERN cudaError_t SpMVCudaFuseOffdiagonal(SpMVCudaStore, const SpMVCudaCSR *offdiagonal, PetscInt64 most, cudaStream_t);
PETSC_INTERN cudaError_t SpMVCudaFillOffdiagonal(SpMVCudaStore, const SpMVCudaCSR *offdiagonal, cudaStream_t);
PETSC_INTERN PetscBool   SpMVCudaHasOffdiagonal(SpMVCudaStore);

/*
  Lets some rows, listed on the host in ascending order, be multiplied apart from the others, perhaps at the same time, in another stream: those
  of a parallel matrix that also have entries in the off-diagonal block wait for the halo, and the others do not. Whole slices are taken apart, and
  their rows are stored a second time. Called between set-up and the first refresh; cudaErrorNotSupported where these would be more than `most`
  rows, or the kernel has to write all rows.
*/
typedef enum { SPMVCUDA_ROWS_INTERIOR, SPMVCUDA_ROWS_BOUNDARY, SPMVCUDA_ROWS_ALL } SpMVCudaRows;
PETSC_INTERN cudaError_t SpMVCudaSetBoundary(SpMVCudaStore, const SpMVCudaCSR *, int count, const int row[], PetscInt64 most, cudaStream_t);
PETSC_INTERN PetscBool   SpMVCudaHasBoundary(SpMVCudaStore);
/* Whether y = y + A x leaves the rows without entries alone: else it reads and writes them, too */
PETSC_INTERN PetscBool SpMVCudaSkipsEmptyRows(SpMVCudaStore);
/* As SpMVCudaMult(), of these rows: the others' y is not touched. What is multiplied in several streams the caller puts in order. cudaErrorMisalignedAddress
   if not all arrays are aligned, as SpMVCudaIsAligned() says; the other products do with any */
PETSC_INTERN PetscBool   SpMVCudaIsAligned(const PetscScalar *);
PETSC_INTERN cudaError_t SpMVCudaMultRows(SpMVCudaStore, SpMVCudaRows, const PetscScalar *x, const PetscScalar *z, PetscScalar *y, cudaStream_t);

PETSC_INTERN cudaError_t SpMVCudaDestroy(SpMVCudaStore *);
PETSC_INTERN void        SpMVCudaGetStats(SpMVCudaStore, SpMVStats *);

/* Copies arrays of the host to the device, faster than cudaMemcpy() from pageable memory; they are there when it returns. Threads must not
   call it at the same time. */
PETSC_INTERN cudaError_t SpMVCudaUpload(int arrays, void *const device[], const void *const host[], const size_t bytes[]);
PETSC_INTERN cudaError_t SpMVCudaUploadFinalize(void); /* frees what it keeps */

/* The oracle of the tests: copies the block to the host and decodes what is stored one entry at a time (padding not shown) */
PETSC_INTERN cudaError_t SpMVCudaVisit(SpMVCudaStore, SpMVVisitor, void *ctx);
