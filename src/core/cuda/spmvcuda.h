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

/*
  A format's own set-up creates a store with a layout but without values; params: its own parameters, which begin with
  SpMVCommonParams. With transpose, the store is for A^T and has a permutation of the nonzeros, for fills. Returns
  cudaErrorNotSupported and no store if the matrix is larger than SPMVCUDA_MAX_SIZE or the library has no code for the
  device. The caller must then use another product
*/
typedef cudaError_t SpMVCudaSetUp(const SpMVCudaCSR *, const void *params, PetscBool transpose, cudaStream_t,
                                  SpMVCudaStore *);

/* Whether the library has code for the current device: compute capability 8.0 or later, and one that it was compiled
   for */
PETSC_INTERN PetscBool SpMVCudaIsSupported(void);

/* Stores the values; the pattern must be the same. Call it at least once before the first product. It reads only i and
   a of the CSR. */
PETSC_INTERN cudaError_t SpMVCudaFill(SpMVCudaStore, const SpMVCudaCSR *, cudaStream_t);

typedef enum {
  SPMVCUDA_MULT,      /* y = A x (z NULL), or y = z + A x, where z may be y */
  SPMVCUDA_CONJUGATE, /* the same with conj(A); with a transposed store, A^H */
  SPMVCUDA_RESIDUAL   /* y = z - A x, where z may be y and must not be NULL */
} SpMVCudaForm;

/* Columns of dense matrices: their leading dimensions and their number. z may be y if ldz equals ldy */
typedef struct {
  PetscInt64 ldx, ldz, ldy, count;
} SpMVCudaColumns;

/* The exchange of a halo with PEER: SpMVCudaHaloGetExchange() */
typedef const struct _n_SpMVCudaExchange *SpMVCudaExchange;

/* A product. The members after y are zero for a product of vectors without an exchange */
typedef struct {
  SpMVCudaForm           form;
  const PetscScalar     *x, *z;
  PetscScalar           *y;
  const SpMVCudaColumns *columns;  /* NULL: x, y and z are vectors; otherwise matrices, and the rest is zero */
  SpMVCudaExchange       exchange; /* NULL, or sends the entries of x that other ranks need, if SpMVCudaSends() */
  PetscBool receives; /* also ends the exchange, and adds the fused off-diagonal block if this rank has a halo */
} SpMVCudaProduct;

/*
  With columns, it passes over A once for several columns if that is faster. Each column is bitwise that of a product of
  vectors (except for the sign of a zero). It launches several kernels. The first call, unless a graph is captured, may
  allocate memory, which the store keeps, and wait for the stream. With an exchange, the form is not CONJUGATE.
*/
PETSC_INTERN cudaError_t SpMVCudaMult(SpMVCudaStore, SpMVCudaProduct, cudaStream_t);
/* Whether its products may send. Loads their kernel, for which the peers would wait in the first product */
PETSC_INTERN PetscBool SpMVCudaSends(SpMVCudaStore);

/* Fuse stores the off-diagonal block's pattern for products with a halo, Fill its values. They return
   cudaErrorNotSupported if more than `most` rows have entries, if rows are long, or if the kernel cannot add them */
PETSC_INTERN cudaError_t SpMVCudaFuseOffdiagonal(SpMVCudaStore, const SpMVCudaCSR *offdiagonal, PetscInt64 most,
                                                 cudaStream_t);
PETSC_INTERN cudaError_t SpMVCudaFillOffdiagonal(SpMVCudaStore, const SpMVCudaCSR *offdiagonal, cudaStream_t);

PETSC_INTERN cudaError_t SpMVCudaDestroy(SpMVCudaStore *);
PETSC_INTERN void        SpMVCudaGetStats(SpMVCudaStore, SpMVStats *);

/* Prepares, in a thread of its own, what the first product of the process would wait for: creates the
   memory pool and pins memory for a copy of this size from the host. Returns at once; does nothing if all this was
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
   multiples of 256 bytes. The host's arrays may be changed after the return; host: NULL only allocates.
   SpMVCudaFreeTemporary() frees the allocation when the work that was queued in the stream is done; it does nothing
   for a copy of zeros */
typedef struct {
  void     *memory;
  PetscBool pooled;
} SpMVCudaTemporary;
PETSC_INTERN cudaError_t SpMVCudaUploadTemporary(int arrays, void *device[], const void *const host[],
                                                 const size_t bytes[], cudaStream_t, SpMVCudaTemporary *);
PETSC_INTERN cudaError_t SpMVCudaFreeTemporary(SpMVCudaTemporary *, cudaStream_t);
PETSC_INTERN cudaError_t SpMVCudaFinalize(void); /* frees the memory that is kept, both pinned and device memory */
