/*
  The formats' core: sparse matrices stored for a fast product, free of PETSc objects and of formats.

  It uses PETSc's numbers (PetscInt, PetscScalar), its memory and its error codes, and nothing else of PETSc: bare
  arrays in, bare arrays out. A format gives its rules (SpMVRules: the order of its rows, the shape of its slices), from
  which and from a CSR pattern SpMVStoreCreate() makes a store. All that follows, from the choice between ways to store
  a slice to the kernels, is shared.
*/
#pragma once

#include <petscsys.h>
#include <stddef.h>

/* Debian's PETSc 3.18 lacks what newer releases name */
#if !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

/*
  PetscCall() for a function that must free memory after an error too: goes to its label `done`, where it frees and ends
  with PetscCall(ierr). It does not free what it returns to its caller, who calls the Destroy function.
*/
#define SpMVCall(...)                   \
  do {                                  \
    ierr = __VA_ARGS__;                 \
    if (PetscUnlikely(ierr)) goto done; \
  } while (0)

/* A sparse matrix in CSR form, borrowed from its owner. The columns of a row can be in any order and occur twice: each
   entry is stored */
typedef struct {
  PetscInt           m, n; /* rows, columns */
  const PetscInt    *i;    /* m + 1 row offsets, i[0] = 0 */
  const PetscInt    *j;    /* column indices */
  const PetscScalar *a;    /* values; not read by the symbolic functions */
} SpMVCSR;

/* What a store holds, for views and queries */
typedef struct {
  PetscInt64  nonzeros;               /* entries of the CSR matrix */
  PetscInt64  stored;                 /* entries stored, padding included */
  PetscInt64  slices;                 /* slices of the sliced part */
  PetscInt64  diagonal;               /* slices stored by diagonals, without column indices */
  PetscInt64  long_rows;              /* rows kept in the vector CSR part */
  PetscInt64  long_stored;            /* entries stored in that part */
  PetscInt64  distinct;               /* distinct steps of values if equal ones are stored once, else 0 */
  PetscInt64  bytes;                  /* of all arrays of the format */
  PetscInt    node;                   /* rows (and columns) of a node block, 1 if entries are stored one by one */
  PetscInt    height, threads, sigma; /* of slices: units, multiple of their width, sorting window; 0: no slices */
  const char *kernel;                 /* the product used, a static string */
} SpMVStats;

typedef struct _n_SpMVStore *SpMVStore;

/* The product to use */
typedef enum {
  SPMV_KERNEL_AUTO,   /* chosen by estimates made from the pattern */
  SPMV_KERNEL_SLICES, /* the format's own slices only; on the device, never whole diagonals */
  SPMV_KERNEL_VECTOR, /* SIMD along the rows; on the device EVC-HYB only: adaptive CSR */
  SPMV_KERNEL_PARENT, /* the caller's own, on CSR */
  SPMV_KERNEL_PAPER   /* on the device, the one printed in the format's paper */
} SpMVKernel;

enum { SPMV_REORDER_OFF, SPMV_REORDER_AUTO };

/* The parameters that every format has; the first member of a format's own */
typedef struct {
  PetscInt node;     /* node block size; 0 = detect, 1 = off */
  PetscInt compress; /* use diagonals and node blocks, which imply column indices: 1 = on, 0 = off */
  /* on the device, store values of double precision in single precision; sums stay double: 1 = on, 0 = off */
  PetscInt   single;
  PetscInt   reorder; /* on the device, the order of rows may follow the graph: SPMV_REORDER_AUTO or SPMV_REORDER_OFF */
  PetscInt   after;   /* products by AIJ before the format is set up; PETSC_DECIDE = as many as setting it up costs */
  SpMVKernel kernel;
} SpMVCommonParams;

PETSC_INTERN void SpMVCommonParamsDefault(void *params);

/* Products of AIJ that take about as long as setting a format up on the host, and as copying values to it */
PETSC_INTERN PetscInt64 SpMVSetUpProducts(PetscInt64 rows, PetscInt64 nonzeros);
PETSC_INTERN PetscInt64 SpMVRefreshProducts(void);

#define SPMV_MAX_SIZE 2147483000 /* rows or columns: indices are 32-bit integers */
#define SPMV_MAX_STORED \
  2147480000 /* the same in a store: sums of one and a slice or a padded row are 32-bit integers too */
#define SPMV_MAX_NODE 8
#define SPMV_LANES    8 /* rows (units) of a slice: a vector of doubles with AVX-512, two with AVX2 */

/* A format's rules, as data: how its slices are made */
typedef struct {
  SpMVKernel      kernel;   /* AUTO: estimates choose between slices, the vector CSR part and the parent */
  PetscInt        node;     /* node block size; 0 = detect, 1 = rows one by one */
  const PetscInt *order;    /* of the rows; NULL: their own */
  PetscInt        longest;  /* longer rows go to the vector CSR part */
  PetscInt        multiple; /* widths of slices are padded to a multiple of it */
  PetscInt        sigma;    /* units are sorted by length in windows of this many; 1 = not sorted, 0 = choose */
  /* rows of the vector CSR part are padded to a multiple of it, if there are slices too */
  PetscInt long_align;
  /* fewest consecutive units for a slice by diagonals; 0: such slices begin at multiples of SPMV_LANES units */
  PetscInt  diagonal_run;
  PetscBool diagonals; /* try to store slices by diagonals */
  PetscBool outliers;  /* rows much longer than the rest of their slice go to the vector CSR part */
} SpMVRules;

/* for any pattern; `order` is not read then */
PETSC_INTERN PetscBool      SpMVRulesUseParent(const SpMVCSR *, const SpMVRules *);
PETSC_INTERN PetscErrorCode SpMVStoreCreate(const SpMVCSR *, const SpMVRules *, SpMVStore *);
PETSC_INTERN PetscErrorCode SpMVStoreFill(SpMVStore, const SpMVCSR *); /* copies values of the same pattern */
PETSC_INTERN PetscErrorCode SpMVStoreDestroy(SpMVStore *);

PETSC_INTERN void      SpMVStoreGetStats(SpMVStore, SpMVStats *);
PETSC_INTERN PetscBool SpMVStoreUsesParent(SpMVStore);
PETSC_INTERN PetscBool SpMVStoreTransposeUsesParent(SpMVStore);

PETSC_INTERN void SpMVStoreMult(SpMVStore, const PetscScalar *x, PetscScalar *y); /* y = A x */
/* y = z + A x, z may be y */
PETSC_INTERN void SpMVStoreMultAdd(SpMVStore, const PetscScalar *x, const PetscScalar *z, PetscScalar *y);
/*
  The same for columns of dense matrices, each ld numbers after the one before, with one pass over A. Columns() has the
  bits of Mult() in each column; z may be y where ldz is ldy. By rows, X is stored by rows first, and A is read as CSR:
  faster where slices read x by index; PETSC_ERR_MEM, and nothing is done, without memory for X.
  SpMVStoreColumnsByRows(): how many of the columns, the first ones, are fastest by rows; SPMV_COLUMNS_PARENT if AIJ's
  product is fastest
*/
PETSC_INTERN void           SpMVStoreMultColumns(SpMVStore, PetscInt count, const PetscScalar *x, PetscInt ldx,
                                                 const PetscScalar *z, PetscInt ldz, PetscScalar *y, PetscInt ldy);
PETSC_INTERN PetscErrorCode SpMVCSRMultColumns(const SpMVCSR *, PetscInt count, const PetscScalar *x, PetscInt ldx,
                                               PetscScalar *y, PetscInt ldy);
#define SPMV_COLUMNS_PARENT (-1)
PETSC_INTERN PetscInt SpMVStoreColumnsByRows(SpMVStore, PetscInt count);
/* z may be NULL, or y */
PETSC_INTERN void SpMVStoreMultTranspose(SpMVStore, PetscBool conjugate, const PetscScalar *x, const PetscScalar *z,
                                         PetscScalar *y);

/* The instruction set of the kernels: the best that this processor has, unless a test sets another */
typedef enum { SPMV_ISA_AUTO, SPMV_ISA_PORTABLE, SPMV_ISA_AVX2, SPMV_ISA_AVX512, SPMV_ISA_AVX512_GATHER } SpMVISA;
PETSC_INTERN PetscBool   SpMVSetISA(SpMVISA); /* PETSC_FALSE, and no change, if this processor or this build lacks it */
PETSC_INTERN const char *SpMVGetISAName(void);
