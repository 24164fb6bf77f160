/*
  Matrices of the tests: generated ones with names, Matrix Market files, and copies of a matrix in any type. Nothing
  here calls PetscSpMV.
*/
#pragma once

#include "objects.h"

/* Properties of a matrix. SEQ to ONHOST are only for operations of the harness: they determine when an operation runs
   */
enum {
  SQUARE = 1,   /* as many rows as columns, and the same layout for both */
  SOLVE  = 2,   /* diagonally dominant: factorizations and solvers work */
  SPD    = 4,   /* symmetric, positive definite */
  BLOCKS = 8,   /* block size above 1, full node blocks */
  FULL   = 16,  /* at least one row and one column */
  SEQ    = 32,  /* one rank only */
  PAR    = 64,  /* several ranks only */
  ONCE   = 128, /* builds its own matrices: runs once instead of once for each case */
  /* large enough for a solver to need several iterations; only programs that request it use such a matrix */
  LARGE  = 256,
  BYROW  = 512,   /* every rank owns rows */
  NOPERM = 1024,  /* AIJPERM cannot serve as the model, for a reason given at the operation */
  NOCUDA = 2048,  /* AIJCUSPARSE cannot serve as the model, as it does not support the operation reliably */
  STRICT = 4096,  /* on a device: must be right even if AIJCUSPARSE is not */
  DEVICE = 8192,  /* only on a device */
  ALONE  = 16384, /* runs only if named in -ops: other programs on the GPU would disturb its measurement */
  ONHOST = 32768  /* only on the host: AIJCUSPARSE does not support it */
};

/* Row i of an M x N matrix: n columns, ascending, with their values */
typedef PetscErrorCode (*RowFunction)(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                                      PetscScalar *vals);

typedef struct {
  const char *name;
  PetscInt    M, N, bs;
  int         has; /* its properties */
  RowFunction row;
  PetscBool   skew; /* rank 0 owns no rows */
  const char *file; /* a Matrix Market file instead of row() */
} Case;

extern const Case cases[]; /* the last one has no name */

/* The 5-point Laplacian with boundaries on a grid 13 wide, above 1000 rows 40 wide */
PetscErrorCode Row_Laplace(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                           PetscScalar *vals);

/* Nodes of bs unknowns, symmetric and dominant */
PetscErrorCode Row_Nodes(PetscInt i, PetscInt M, PetscInt N, PetscInt bs, PetscInt *n, PetscInt *cols,
                         PetscScalar *vals);

/* A number in [-1, 1] that depends only on the three arguments: the same on every rank and for every type */
PetscReal Hash(PetscInt i, PetscInt j, PetscInt k);
/* The same in both parts of a complex number */
PetscScalar Value(PetscInt i, PetscInt j, PetscInt k);
/* Sets entry i to Value(i, 0, seed) */
PetscErrorCode VecFill(Vec v, PetscInt seed);
/* The entries of a dense matrix, set one by one with MatSetValue() */
PetscErrorCode FillDense(Mat D, PetscInt columns, PetscInt seed);

/* Collective. A case as AIJ */
PetscErrorCode MakeRows(MPI_Comm comm, const Case *c, Mat *R);
/* Collective. c->file as AIJ; sets the sizes and properties in c */
PetscErrorCode MakeFile(MPI_Comm comm, Case *c, Mat *R);

/* The rows of this rank as compressed rows, with global columns */
typedef struct {
  MPI_Comm     comm;
  PetscInt     m, begin, *i, *j;
  PetscScalar *v;
} LocalRows;

/* The rows of a matrix of type AIJ or derived from it, read from its sequential matrices, as MatGetRow() of MPIAIJ is
   not reliable after each change (PETSc 3.18 to 3.26) */
PetscErrorCode LocalRowsOfMat(Mat A, LocalRows *r);
PetscErrorCode LocalRowsDestroy(LocalRows *r);

PetscErrorCode PreallocateLocalRows(Mat A, const LocalRows *r);
/* Fills a matrix with MatSetValues() */
PetscErrorCode SetLocalRows(Mat A, const LocalRows *r);

/* An empty matrix with R's sizes */
PetscErrorCode CreateLike(Mat R, const char *type, Mat *A);
/* Preallocates A, of any type derived from AIJ, for the pattern of R */
PetscErrorCode PreallocateLike(Mat R, Mat A);
/* Sets the entries of R in A, on each rank those of its own rows; seed >= 0 gives different values on the same pattern
   */
PetscErrorCode FillLike(Mat R, PetscInt seed, Mat A);
/* All three: R's entries in a matrix of the given type */
PetscErrorCode MakeLike(Mat R, const char *type, Mat *A);
/* The coordinates of R's entries, each twice, in a different order than R's; elsewhere: half of them are in the
   mirrored row, which may be another rank's. The caller frees the arrays with PetscFree2() */
PetscErrorCode CoordinatesTwice(Mat R, PetscBool elsewhere, PetscInt *n, PetscInt *i[], PetscInt *j[]);
