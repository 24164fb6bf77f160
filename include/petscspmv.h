/*
   PetscSpMV: two sparse matrix types for PETSc whose matrix-vector product is faster than AIJ's.

   This is the only public header. A program needs it only to link the library itself or to ask about a matrix; to use the types
   in a program that exists, load the library with -dll_append and choose -mat_type sellp or -mat_type evchyb.
*/
#pragma once

#include <petscmat.h>

#define PETSCSPMV_VERSION_MAJOR    0
#define PETSCSPMV_VERSION_MINOR    1
#define PETSCSPMV_VERSION_SUBMINOR 0

/* The names that MatSetType(), MatConvert(), DMSetMatType() and -mat_type take */
#define MATSELLP     "sellp"
#define MATSEQSELLP  "seqsellp"
#define MATMPISELLP  "mpisellp"
#define MATEVCHYB    "evchyb"
#define MATSEQEVCHYB "seqevchyb"
#define MATMPIEVCHYB "mpievchyb"

/* The names that MatGetType() answers: both types are derived from AIJ, and PETSc takes a type for AIJ by how its name begins. On a
   machine with a GPU that PETSc uses, they go by the name of the type that they are derived from there, seqaijcusparse or mpiaijcusparse */
#define MATSEQAIJSELLP  "seqaijsellp"
#define MATMPIAIJSELLP  "mpiaijsellp"
#define MATSEQAIJEVCHYB "seqaijevchyb"
#define MATMPIAIJEVCHYB "mpiaijevchyb"

/* For MatGetOrdering(): rows by length, then by first column */
#define MATORDERINGEVCHYB "evchyb"

/*S
   PetscSpMVInfo - what the calling process stores of a `MATSELLP` or `MATEVCHYB` matrix

   Level: intermediate

   Notes:
   Counts cover both the diagonal and the off-diagonal block of a parallel matrix. The padding is (`stored` - `nonzeros`) / `nonzeros`.

.seealso: `PetscSpMVGetInfo()`
S*/
typedef struct {
  PetscInt64  nonzeros;    /* entries of the matrix */
  PetscInt64  stored;      /* entries stored by the format, padding included; 0 where AIJ's own product runs */
  PetscInt64  slices;      /* slices (sellp) or row blocks (evchyb) */
  PetscInt64  long_rows;   /* rows kept in the vector CSR part */
  PetscInt64  long_stored; /* entries stored in that part, padding included */
  PetscInt64  bytes;       /* of the format's arrays, beside AIJ's own */
  PetscInt    node;        /* rows of a node block of the diagonal block, 1 if entries are stored one by one */
  const char *kernel;      /* what multiplies with the diagonal block, a static string */
} PetscSpMVInfo;

PETSC_EXTERN PetscErrorCode PetscSpMVInitializePackage(void);
PETSC_EXTERN PetscErrorCode PetscSpMVFinalizePackage(void);
PETSC_EXTERN PetscErrorCode PetscSpMVGetFormat(Mat, const char *[]);
PETSC_EXTERN PetscErrorCode PetscSpMVGetInfo(Mat, PetscSpMVInfo *);
