/*
  Random matrices of the fuzzer: patterns, values and layouts, and the ways to assemble them. Nothing here calls
  PetscSpMV.
*/
#pragma once

#include "matrices.h"
#include "random.h"
#include <float.h>

typedef enum {
  PATTERN_RANDOM,
  PATTERN_DIAGONALS,
  PATTERN_STENCIL,
  PATTERN_NODES,
  PATTERN_POWER,
  PATTERN_DENSEROWS,
  PATTERN_LENGTHS,
  PATTERN_HOLES,
  PATTERN_REPEATED,
  PATTERN_GROUPS,
  PATTERN_FULL,
  PATTERN_NONE,
  PATTERNS
} Pattern;

typedef enum {
  VALUES_RANDOM,
  VALUES_EQUAL,
  VALUES_FEW,
  VALUES_DIAGONALS,
  VALUES_INTEGERS,
  VALUES_WIDE,
  VALUES_DENORMAL,
  VALUES_ZEROS,
  VALUES_NONFINITE,
  VALUES
} Values_;

typedef enum {
  BUILD_EXACT,
  BUILD_LITTLE,
  BUILD_SETUP,
  BUILD_COO,
  BUILD_CSR,
  BUILD_CONVERT,
  BUILD_INPLACE,
  BUILDS
} Build;

extern const char *const PatternNames[], *const ValuesNames[], *const BuildNames[];

/* A matrix; each rank can compute any row of it */
typedef struct {
  MPI_Comm    comm;
  PetscMPIInt rank, size;
  PetscInt    M, N, m, n, bs; /* global and local sizes, and the block size */
  Pattern     pattern;
  Values_     values;
  PetscInt    salt, longest, offset[16], noffsets, period;
  PetscReal   norow, nocolumn; /* the fractions of rows and columns that are empty */
  PetscBool   dominant;        /* the diagonal dominates */
} Shape;

/* The smallest normal number */
#if defined(PETSC_USE_REAL_SINGLE)
  #define FUZZ_REAL_MIN FLT_MIN
#else
  #define FUZZ_REAL_MIN DBL_MIN
#endif
#define FUZZ_DENORMAL (FUZZ_REAL_MIN * (PetscReal)0.01)

/* Hash() in [0, 1) */
PetscReal HashUnit(PetscInt i, PetscInt j, PetscInt salt);
/* The real part only, in real numbers */
PetscScalar ScalarOf(PetscReal re, PetscReal im);

/* Collective. A random shape, perhaps rectangular */
PetscErrorCode ShapeCreate(MPI_Comm comm, Shape *s);
/* Random pattern and values, for sizes and layouts that are set */
void        ShapeDraw(Shape *s, PetscBool small);
PetscScalar ShapeValue(const Shape *s, PetscInt i, PetscInt j);
/* Collective. A matrix of the given shape and type, assembled in the given way; with a prefix it reads the options */
PetscErrorCode ShapeBuild(const Shape *s, const char *type, const char *prefix, Build way, Mat *A);

PetscErrorCode LocalRowsOfShape(const Shape *s, PetscInt begin, LocalRows *r);
/* Fills a matrix with MatSetValuesCOO(), in a different order */
PetscErrorCode SetLocalRowsCOO(Mat A, const LocalRows *r);
