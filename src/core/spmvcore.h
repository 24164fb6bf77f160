/*
  The formats' core: sparse blocks stored for a fast product, free of PETSc objects.

  It uses PETSc's numbers (PetscInt, PetscScalar), its memory and its error codes, and nothing else of PETSc: bare arrays in,
  bare arrays out. What the formats share lives here; what makes a format itself (the order of its rows, the shape of its
  slices) lives in the format's folder, which turns a CSR pattern into a SpMVPlan and hands it to SpMVStoreCreate().
*/
#pragma once

#include <petscsys.h>

/* Debian's PETSc 3.18 lacks what newer releases name */
#if !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

/*
  In a function that has something to free after an error, too: goes to its label done, where it does so and ends with PetscCall(ierr). Objects that it makes for
  its caller it leaves as they are, for their own Destroy function to free.
*/
#define SpMVCall(...)                   \
  do {                                  \
    ierr = __VA_ARGS__;                 \
    if (PetscUnlikely(ierr)) goto done; \
  } while (0)

/* A sparse block in CSR form, borrowed from its owner. The columns of a row may stand in any order, and some of them twice: each entry is stored */
typedef struct {
  PetscInt           m, n; /* rows, columns */
  const PetscInt    *i;    /* m + 1 row offsets, i[0] = 0 */
  const PetscInt    *j;    /* column indices */
  const PetscScalar *a;    /* values; not read by the symbolic functions */
} SpMVCSR;

/* What a stored block looks like, for views and queries */
typedef struct {
  PetscInt64  nonzeros;               /* entries of the CSR block */
  PetscInt64  stored;                 /* entries stored, padding included */
  PetscInt64  slices;                 /* slices of the sliced part */
  PetscInt64  diagonal;               /* slices stored by diagonals, without column indices */
  PetscInt64  long_rows;              /* rows kept in the vector CSR part */
  PetscInt64  long_stored;            /* entries stored in that part */
  PetscInt64  distinct;               /* distinct steps of values where equal ones are stored once, else 0 */
  PetscInt64  bytes;                  /* of all arrays of the format */
  PetscInt    node;                   /* rows (and columns) of a node block, 1 where entries are stored one by one */
  PetscInt    height, threads, sigma; /* of slices: units, multiple of their width, sorting window; 0: no slices */
  const char *kernel;                 /* what multiplies, a static string */
} SpMVStats;

typedef struct _n_SpMVStore *SpMVStore;

/* What a format may be told to multiply with */
typedef enum {
  SPMV_KERNEL_AUTO,   /* statistics of the pattern decide */
  SPMV_KERNEL_SLICES, /* slices only */
  SPMV_KERNEL_VECTOR, /* SIMD along the rows */
  SPMV_KERNEL_PARENT, /* plain CSR, the caller's */
  SPMV_KERNEL_PAPER   /* as the format's paper has it */
} SpMVKernel;

/* The parameters that every format has; the first member of a format's own */
typedef struct {
  PetscInt   node;     /* node block size; 0 = detect, 1 = off */
  PetscInt   compress; /* leave out what the pattern implies: 1 = on, 0 = off */
  PetscInt   single;   /* on the device, store values of double precision in single precision; sums stay double: 1 = on, 0 = off */
  PetscInt   tune;     /* on the device, time several layouts and use the fastest: 1 = on, 0 = off */
  SpMVKernel kernel;
} SpMVCommonParams;

PETSC_INTERN void SpMVCommonParamsDefault(SpMVCommonParams *);

/*
  Units: rows of one and the same columns share one list of indices. A unit is 1 to SPMV_MAX_NODE consecutive rows; where the
  whole block consists of dense s x s blocks (block = s), all units have s rows and columns are addressed s at a time.
*/
#define SPMV_MAX_SIZE   2147483000 /* rows or columns: indices are 32-bit numbers */
#define SPMV_MAX_STORED 2147480000 /* of a format: so are the sums of one and a slice or a padded row */
#define SPMV_MAX_NODE   8
#define SPMV_LANES      8 /* rows (units) of a compressed slice: a vector of doubles with AVX-512, two with AVX2 */

typedef struct {
  int            count, block;
  int           *row;   /* first row of each unit */
  unsigned char *rows;  /* how many */
  PetscInt       empty; /* empty rows */
} SpMVUnits;

PETSC_INTERN PetscErrorCode SpMVUnitsFind(const SpMVCSR *, PetscInt node, SpMVUnits *);
PETSC_INTERN PetscErrorCode SpMVUnitsDestroy(SpMVUnits *);

/* Diagonals that `lanes` consecutive units from the one of first row `row` on lie on, at most `limit` of them (else -1); fills
   the offsets (column less row, of a block's first entries) and the lanes that have an entry there, if asked to. They come in the
   order of each row's entries; where these do not ascend, one diagonal may come several times */
PETSC_INTERN int SpMVDiagonals(const SpMVCSR *, int row, int block, int lanes, int limit, int offset[], unsigned char mask[]);

PETSC_INTERN int SpMVDiagonalLimit(int width, int block, PetscInt64 entries); /* the most that are worth while */

/* Unit numbers, stable: by window of `window` places, within it by length */
PETSC_INTERN PetscErrorCode SpMVSortByLength(const SpMVCSR *, const SpMVUnits *, PetscInt n, const int unit[], PetscInt window, int sorted[]);

/* Estimates of time, to choose by */
PETSC_INTERN double SpMVCostSlice(int width, int rows, int columns);
PETSC_INTERN double SpMVCostDiagonals(int width, int block);
PETSC_INTERN double SpMVCostLong(const SpMVCSR *, int row, int rows);
PETSC_INTERN double SpMVCostParent(const SpMVCSR *, const SpMVUnits *);
PETSC_INTERN void   SpMVCostUnits(const SpMVCSR *, const SpMVUnits *, double *single, double *grouped);

/*
  A plan: which units a slice holds, in which order. The slices come first, slice s holds the units start[s] to
  start[s + 1] - 1 (all of one number of rows, at most `height` of them); the remaining units form the vector CSR part.
  Rows in no unit must be empty.
*/
typedef struct {
  PetscInt       height;     /* lanes of a slice; SPMV_LANES for what is compressed */
  PetscInt       multiple;   /* widths are padded to a multiple of it */
  PetscInt       sigma;      /* window that the units were sorted in, for the statistics */
  PetscInt       long_align; /* rows of the vector CSR part are padded to a multiple of it */
  PetscInt       block;      /* columns of a block: 1, or the rows of every unit */
  PetscBool      plain;      /* any height, one row a unit, nothing left out */
  PetscInt       slices;
  PetscInt       units;
  int           *start;
  unsigned char *diagonal; /* this slice is stored by diagonals if they are few enough */
  int           *row;
  unsigned char *rows;
} SpMVPlan;

PETSC_INTERN PetscErrorCode SpMVPlanCreate(PetscInt units, PetscInt slices, SpMVPlan *);
PETSC_INTERN void           SpMVPlanSlice(SpMVPlan *, const SpMVUnits *, PetscInt n, const int unit[], PetscBool diagonal); /* slices first, */
PETSC_INTERN void           SpMVPlanLong(SpMVPlan *, const SpMVUnits *, PetscInt unit);                                     /* then long units */
PETSC_INTERN PetscErrorCode SpMVPlanDestroy(SpMVPlan *);

PETSC_INTERN PetscErrorCode SpMVStoreCreate(const SpMVCSR *, const SpMVPlan *, SpMVStore *);
PETSC_INTERN PetscErrorCode SpMVStoreCreateParent(const SpMVCSR *, SpMVStore *); /* holds nothing: the caller's CSR multiplies */
PETSC_INTERN PetscErrorCode SpMVStoreFill(SpMVStore, const SpMVCSR *);           /* moves in the values of the same pattern */
PETSC_INTERN PetscErrorCode SpMVStoreDestroy(SpMVStore *);
PETSC_INTERN void           SpMVStoreGetStats(SpMVStore, SpMVStats *);
PETSC_INTERN PetscBool      SpMVStoreUsesParent(SpMVStore);
PETSC_INTERN PetscBool      SpMVStoreTransposeUsesParent(SpMVStore);

PETSC_INTERN void SpMVStoreMult(SpMVStore, const PetscScalar *x, PetscScalar *y);                          /* y = A x */
PETSC_INTERN void SpMVStoreMultAdd(SpMVStore, const PetscScalar *x, const PetscScalar *z, PetscScalar *y); /* y = z + A x, z may be y */
PETSC_INTERN void SpMVStoreMultTranspose(SpMVStore, PetscBool conjugate, const PetscScalar *x, const PetscScalar *z, PetscScalar *y); /* z may be NULL, or y */

/* Bytes of values by diagonals from which equal steps are looked for; tests set it to 0 */
PETSC_INTERN PetscInt64 SpMVDistinctLeast;

/* The oracle: decodes what is stored one entry at a time, in the plainest way. `entry` sees padding too (row -1). */
typedef void (*SpMVVisitor)(void *ctx, PetscInt row, PetscInt col, PetscScalar value);
PETSC_INTERN void SpMVStoreVisit(SpMVStore, SpMVVisitor entry, void *ctx);
PETSC_INTERN void SpMVStoreMultReference(SpMVStore, const PetscScalar *x, const PetscScalar *z, PetscScalar *y);
PETSC_INTERN void SpMVStoreMultTransposeReference(SpMVStore, PetscBool conjugate, const PetscScalar *x, const PetscScalar *z, PetscScalar *y);

/* The instruction set the kernels use: the best this processor has, unless a test says otherwise */
typedef enum { SPMV_ISA_AUTO, SPMV_ISA_PORTABLE, SPMV_ISA_AVX2, SPMV_ISA_AVX512 } SpMVISA;
PETSC_INTERN PetscBool   SpMVSetISA(SpMVISA); /* PETSC_FALSE, and no change: this processor or this build lacks it */
PETSC_INTERN const char *SpMVGetISAName(void);
