/*
  The core on CUDA devices: sparse matrices laid out by the GPU for the GPU, free of PETSc objects and of formats.

  The input consists of bare device arrays and a stream; the result is a cudaError_t. Set-up and fills run on the
  device. Set-up may wait for the stream. No other function waits, unless its description says so. A product allocates
  nothing, gives the same bits every time, and may be captured in a CUDA graph. It is one kernel (after a memset or a
  copy if most rows are empty, and followed by a permutation with the papers' sorted kernels).

  A store holds partial sums of long rows during a product. Therefore two products with one store never run at the same
  time. Fills and products in several streams run one after the other in the order of the calls. The caller has to order
  them only while a stream is captured and when graphs are launched.

  Arrays of complex numbers that begin between two numbers are copied for a product (the first time, this allocates
  memory). An error that the caller has left in cudaGetLastError() is cleared when kernels are launched, and is not
  reported.
*/
#pragma once

#include "core/spmvcore.h"
#include <cuda_runtime_api.h>
#include <limits.h>

typedef struct _n_SpMVCudaStore *SpMVCudaStore;

/* The most rows or columns of a matrix, and nonzeros of a transposed one. These numbers must fit in 32 bits even if
   rounded up to a multiple of what a thread block handles */
#define SPMVCUDA_MAX_SIZE (INT_MAX - 65535)

/* A matrix in CSR form on the device, borrowed for the call. There are row offsets for all rows, not only for the
   nonempty ones. */
typedef struct {
  PetscInt64         m, n, nnz;
  const void        *i, *j;
  int                index_bytes; /* bytes of an index in i and j: the size of PetscInt, or 4 */
  const PetscScalar *a;           /* not read by set-up */
} SpMVCudaCSR;

typedef enum {
  SPMVCUDA_KERNEL_AUTO,    /* statistics decide */
  SPMVCUDA_KERNEL_SLICES,  /* the format's own slices, never whole diagonals */
  SPMVCUDA_KERNEL_PAPER,   /* the kernel as printed in the format's paper */
  SPMVCUDA_KERNEL_ADAPTIVE /* EVC-HYB only: the adaptive CSR kernel that preceded the paper */
} SpMVCudaKernel;

/*
  A format's own set-up, declared by the format, creates a store with a layout but without values:

    cudaError_t SetUp(const SpMVCudaCSR *, const its own parameters *, SpMVCudaKernel, PetscBool transpose,
    cudaStream_t, SpMVCudaStore *);

  With transpose, the store is for A^T and has a permutation of the nonzeros, for fills. Returns cudaErrorNotSupported
  and no store if the matrix is larger than SPMVCUDA_MAX_SIZE or the library has no code for the device. The caller must
  then use another product.
*/

/* Whether the library has code for the current device: compute capability 8.0 or later, and one that it was compiled
   for */
PETSC_INTERN PetscBool SpMVCudaIsSupported(void);

/* The fewest slices per multiprocessor with which more than nine diagonals are stored by diagonals: see
   Tuning::DIAGONALS_MIN. Tests set it to 0 */
PETSC_INTERN int SpMVCudaDiagonalsLeast;
/* The warps per multiprocessor from which the number of slices of diagonals per warp is chosen: see
   Tuning::DIAGONALS_SLICES. Tests set it to 0: always the most, and to 1000: one for small matrices */
PETSC_INTERN int SpMVCudaDiagonalsWarps;
/* The most entries per row with which rows are stored in groups: see Tuning::GROUPS_MEAN. Tests set it to INT_MAX */
PETSC_INTERN int SpMVCudaGroupsMean;
/* A matrix in slices may keep some of its values in the L2 cache between products if the values take more than
   1/SpMVCudaL2Fit of it: see Tuning::L2_FIT. Tests set it to INT_MAX */
PETSC_INTERN int SpMVCudaL2Fit;
/* From how many cache lines, at least, a step of a slice reads x if products copy x to shared memory: see
   Tuning::SHARED_LINES. Tests set it to 0: wherever x fits, and to more than 32: nowhere */
PETSC_INTERN int SpMVCudaSharedLines;

/* Stores the values; the pattern must be the same. Call it at least once before the first product. It reads only i and
   a of the CSR. */
PETSC_INTERN cudaError_t SpMVCudaFill(SpMVCudaStore, const SpMVCudaCSR *, cudaStream_t);

typedef enum {
  SPMVCUDA_MULT,      /* y = A x (z NULL), or y = z + A x, where z may be y */
  SPMVCUDA_CONJUGATE, /* the same with conj(A); with a transposed store, A^H */
  SPMVCUDA_RESIDUAL   /* y = z - A x, where z may be y and must not be NULL */
} SpMVCudaForm;
PETSC_INTERN cudaError_t SpMVCudaMult(SpMVCudaStore, SpMVCudaForm, const PetscScalar *x, const PetscScalar *z,
                                      PetscScalar *y, cudaStream_t);

/*
  The same for the columns of dense matrices with leading dimensions ldx, ldz and ldy, with one pass over A for several
  columns if that is faster. Each column is bitwise that of SpMVCudaMult() (except for the sign of a zero). z may be y
  if ldz equals ldy. It launches several kernels. The first call, unless a graph is captured, may allocate memory, which
  the store keeps, and wait for the stream.
*/
PETSC_INTERN cudaError_t SpMVCudaMultColumns(SpMVCudaStore, SpMVCudaForm, PetscInt64 count, const PetscScalar *x,
                                             PetscInt64 ldx, const PetscScalar *z, PetscInt64 ldz, PetscScalar *y,
                                             PetscInt64 ldy, cudaStream_t);

/*
  SpMVCudaMult() without conjugate, directly after a halo exchange that is one kernel in the same stream. With `early`,
  it begins at the same time as the exchange, which reads the same x; otherwise it begins after the exchange. With a
  halo, it adds the off-diagonal block if SpMVCudaHasOffdiagonal(). The store must not be filled between the exchange
  and the product.
*/
PETSC_INTERN cudaError_t SpMVCudaMultFused(SpMVCudaStore, SpMVCudaForm, const PetscScalar *x, const PetscScalar *halo,
                                           const PetscScalar *z, PetscScalar *y, PetscBool early, cudaStream_t);
/* Fuse stores the off-diagonal block's pattern for MultFused, Fill its values. Fuse returns cudaErrorNotSupported if
   more than `most` rows have entries, if rows are long, or if the kernel cannot add them */
PETSC_INTERN cudaError_t SpMVCudaFuseOffdiagonal(SpMVCudaStore, const SpMVCudaCSR *offdiagonal, PetscInt64 most,
                                                 cudaStream_t);
PETSC_INTERN cudaError_t SpMVCudaFillOffdiagonal(SpMVCudaStore, const SpMVCudaCSR *offdiagonal, cudaStream_t);
PETSC_INTERN PetscBool   SpMVCudaHasOffdiagonal(SpMVCudaStore);

PETSC_INTERN cudaError_t SpMVCudaDestroy(SpMVCudaStore *);
PETSC_INTERN void        SpMVCudaGetStats(SpMVCudaStore, SpMVStats *);

/* Prepares, in a thread of its own, what the first product of the process would wait for: loads code, creates the
   memory pool, and pins memory for a copy of this size from the host. Returns at once; does nothing if all this was
   begun before, or if the process may use one core only */
PETSC_INTERN cudaError_t SpMVCudaPrepare(size_t bytes);
/* Copies arrays from the host to the device, faster than cudaMemcpy() from pageable memory. The copy is complete on
   return. Two threads must not call it at the same time. */
PETSC_INTERN cudaError_t SpMVCudaUpload(int arrays, void *const device[], const void *const host[],
                                        const size_t bytes[]);
/* The same from the device to the host. The device must have finished writing the arrays */
PETSC_INTERN cudaError_t SpMVCudaDownload(int arrays, void *const host[], const void *const device[],
                                          const size_t bytes[]);
/* Copies arrays from the host to the device in one allocation, for use in one stream; device[]: the copies, at
   multiples of 256 bytes. The host's arrays may be changed after the return. SpMVCudaFreeTemporary() frees the
   allocation when the work that was queued in the stream is done; it does nothing for a copy of zeros */
typedef struct {
  void     *memory;
  PetscBool pooled;
} SpMVCudaTemporary;
PETSC_INTERN cudaError_t SpMVCudaUploadTemporary(int arrays, void *device[], const void *const host[],
                                                 const size_t bytes[], cudaStream_t, SpMVCudaTemporary *);
PETSC_INTERN cudaError_t SpMVCudaFreeTemporary(SpMVCudaTemporary *, cudaStream_t);
PETSC_INTERN cudaError_t SpMVCudaFinalize(void); /* frees the memory that is kept, both pinned and device memory */

/* The oracle of the tests: copies the store to the host and decodes it one entry at a time (without padding) */
PETSC_INTERN cudaError_t SpMVCudaVisit(SpMVCudaStore, SpMVVisitor, void *ctx);
