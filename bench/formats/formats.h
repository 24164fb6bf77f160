/*
  The formats that the papers compare theirs with, outside of the library: COO, CSR, ELL, HYB, SELL-C, SELL-C-sigma and CSR5, one row each in Baselines[].

  A format is converted in two steps. Its own function works out the structure on the host, from the row lengths: where slices and tiles begin, the
  order of the rows, flags. The bulk, columns and values, then goes to the places that StoredPlace() names, on the host by a loop or on the
  device by a kernel: one function, so that what is tested on the host is what the GPU stores. The oracle, StoredVisit(), does not use it: it
  decodes the arrays as the format's paper describes them.

  As in the library's core: bare arrays and a stream, padding has column -1 and reads no x. Indices are PetscInt, as in PETSc's own CSR.
*/
#pragma once

#include "../../src/core/spmvcore.h"
#if defined(PETSCSPMV_HAVE_CUDA)
  #include "../../src/core/cuda/paper.h"
  #include "../../src/mat/impls/evchyb/evchybcuda.h"
  #include "../../src/mat/impls/sellp/sellpcuda.h"
#endif

#if defined(__CUDACC__)
  #define FORMATS_INLINE __host__ __device__ __forceinline__
#else
  #define FORMATS_INLINE inline
#endif

typedef enum {
  STORED_ROWS,   /* CSR */
  STORED_LIST,   /* COO */
  STORED_COLUMN, /* ELL, and HYB, whose rest is in COO */
  STORED_SLICES, /* SELL-C, SELL-C-sigma */
  STORED_TILES   /* CSR5, whose last, incomplete tile is in COO */
} StoredKind;

/* The arrays of a format; those from AT_PLACE on are needed while columns and values are moved in, and not by products */
typedef enum {
  AT_PTR,     /* CSR: first entry of each row */
  AT_COL,     /* columns, -1: padding */
  AT_VAL,     /* values */
  AT_ROW,     /* COO: row of each entry, from place Stored.list on */
  AT_SLICE,   /* slices: the first place of each */
  AT_ORDER,   /* slices: the row at each place of the sorted order */
  AT_TILE,    /* tiles: the row of each tile's first entry */
  AT_FLAGS,   /* tiles: a word a lane, bit s: entry s of the lane is the first of a row (or of the tile) */
  AT_OFFSETS, /* tiles: a word a lane, the number of flags in the lanes before it, and (<< 16) of lanes without flags right after it */
  AT_EMPTY,   /* tiles with empty rows: how many rows after the tile's first one each of its segments is */
  AT_DIRTY,   /* tiles: where these begin; as many as tiles + 1, equal to the next where a tile has no empty rows */
  AT_SUMS,    /* tiles: of the first segment of each, which earlier tiles may share; products write it */
  AT_PLACE,   /* slices: the place of each row */
  AT_REST,    /* HYB: the entries of the rows before, in COO */
  STORED_ARRAYS
} StoredArray;

typedef struct {
  StoredKind kind;
  PetscBool  borrowed; /* CSR: the arrays are the caller's */
  PetscInt   m, n;
  PetscInt64 nz, stored; /* entries, and with padding */
  PetscInt64 list;       /* entries from this place on are in COO */
  PetscInt64 ld;         /* ELL: places of a column */
  PetscInt   width;      /* ELL */
  PetscInt   height;     /* slices: rows of each */
  PetscInt   omega, sigma, tiles;
  void      *at[STORED_ARRAYS];
  size_t     bytes[STORED_ARRAYS];
} Stored;

typedef struct _n_Baseline Baseline;
struct _n_Baseline {
  const char *name, *paper;
  PetscErrorCode (*convert)(const Baseline *, const SpMVCSR *, Stored *); /* structure only; stored < 0: the padding is out of proportion */
  PetscInt parameter[2];
  void (*mult)(const Stored *, const PetscScalar *x, PetscScalar *y); /* y = A x on the host; NULL: the device only */
#if defined(PETSCSPMV_HAVE_CUDA)
  cudaError_t (*cuda)(const Stored *, const PetscScalar *x, PetscScalar *y, cudaStream_t);
#endif
};

PETSC_INTERN const Baseline Baselines[];
PETSC_INTERN const int      BaselineCount;

/* host: as for a host's product, which for CSR5 means narrower tiles */
PETSC_INTERN PetscErrorCode StoredCreate(const Baseline *, const SpMVCSR *, Stored *);
PETSC_INTERN PetscErrorCode StoredFill(Stored *, const SpMVCSR *);
PETSC_INTERN PetscErrorCode StoredDestroy(Stored *);
PETSC_INTERN double         StoredBytes(const Stored *); /* of what a product reads, x and y left out */
PETSC_INTERN void           StoredVisit(const Stored *, SpMVVisitor, void *ctx);
PETSC_INTERN void           StoredReference(const Stored *, const PetscScalar *x, PetscScalar *y); /* slow and plain, by StoredVisit() */

#if defined(PETSCSPMV_HAVE_CUDA)
/* The device's arrays from the structure on the host and the CSR on the device; CSR borrows its arrays */
PETSC_INTERN cudaError_t StoredUpload(const Stored *host, const SpMVCudaCSR *, Stored *device, cudaStream_t);
PETSC_INTERN cudaError_t StoredRelease(Stored *device);

/*
  EVC-HYB's kernel with one operand held constant (1), so that it need not be loaded: x and its indices, A's values, or both. Or with x loaded otherwise than
  by read-only loads: by others, through the L1 cache, or past it, from L2
*/
typedef enum { HELD_X, HELD_A, HELD_BOTH, LOADED_L1, LOADED_L2 } Held;
PETSC_INTERN cudaError_t EVCHYBHeldSetUp(Held, const SpMVCudaCSR *, const EVCHYBParams *, cudaStream_t, SpMVCudaStore *);

/* One of STREAM's kernels, see stream.h */
PETSC_INTERN cudaError_t StreamCUDA(int kernel, int64_t n, double scalar, double *a, double *b, double *c, cudaStream_t);

PETSC_INTERN cudaError_t MultCOOScalar(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultCOOSegmented(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultCOOBalanced(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultCSRScalar(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultCSRVector(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultELL(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultSlices(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
PETSC_INTERN cudaError_t MultTiles(const Stored *, const PetscScalar *, PetscScalar *, cudaStream_t);
#endif

/* Where entry k of row r goes; start: the first entry of the row in the CSR */
static FORMATS_INLINE PetscInt64 StoredPlace(const Stored *S, PetscInt64 start, PetscInt r, PetscInt k)
{
  const PetscInt64 e = start + k;

  if (S->kind == STORED_COLUMN) return k < S->width ? k * S->ld + r : S->list + ((const PetscInt64 *)S->at[AT_REST])[r] + k - S->width;
  if (S->kind == STORED_SLICES) {
    const PetscInt p = S->at[AT_PLACE] ? ((const PetscInt *)S->at[AT_PLACE])[r] : r;

    return ((const PetscInt64 *)S->at[AT_SLICE])[p / S->height] + (PetscInt64)k * S->height + p % S->height;
  }
  if (S->kind == STORED_TILES && e < S->list) {
    const PetscInt64 in = e % ((PetscInt64)S->omega * S->sigma);

    return e - in + in % S->sigma * S->omega + in / S->sigma;
  }
  return e;
}
