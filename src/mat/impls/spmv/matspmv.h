/*
  The glue between PETSc's matrices and the formats' core, written once for every format.

  A matrix of a format is an AIJ matrix, sequential or MPI, some of whose operations are taken over ("hooked"): AIJ keeps the
  entries and does whatever it can do, the format adds a second copy of the block, built lazily by the first product that needs it and
  refreshed when PETSc's object state says that values or pattern have changed. A format is one SpMVFormat table.
*/
#pragma once

#include <petscspmv.h>
#include <petsc/private/matimpl.h>
#include "../../../core/spmvcore.h"

/* What changed between the PETSc releases we build with */
#if PETSC_VERSION_LT(3, 23, 0)
typedef PetscOptionItems *SpMVOptionItems;
#else
typedef PetscOptionItems SpMVOptionItems;
#endif

#if !defined(PetscAssertPointer) /* before 3.21 */
  #define PetscAssertPointer(h, arg) PetscValidPointer(h, arg)
#endif

typedef struct _n_SpMVFormat SpMVFormat;
struct _n_SpMVFormat {
  const char *name;       /* "sellp": the root name; "aij" before it makes the name of an instance */
  size_t      paramssize; /* of the format's parameters */
  PetscErrorCode (*createseq)(Mat);
  PetscErrorCode (*creatempi)(Mat);
  PetscErrorCode (*create)(Mat); /* by the size of the communicator */
  void (*defaults)(void *params);
  PetscErrorCode (*options)(Mat, void *params);                              /* reads and checks the format's options, prints them under -help */
  PetscErrorCode (*setup)(const SpMVCSR *, const void *params, SpMVBlock *); /* symbolic: pattern to layout */
  PetscErrorCode (*describe)(const void *params, const SpMVStats *, char text[], size_t len); /* the format's words in a view */
};

/* What PetscOptionsEnum() wants to know of SpMVKernel */
PETSC_INTERN const char *const SpMVKernelTypes[];

/* The formats, ended by NULL; src/sys/petscspmv.c lists them */
PETSC_INTERN const SpMVFormat *const SpMVFormats[];
PETSC_INTERN const SpMVFormat        SpMVFormatSELLP, SpMVFormatEVCHYB;

PETSC_INTERN PetscLogEvent MAT_SpMVSetUp, MAT_SpMVFill;

PETSC_INTERN PetscErrorCode MatCreate_SeqSpMV(Mat, const SpMVFormat *);
PETSC_INTERN PetscErrorCode MatCreate_MPISpMV(Mat, const SpMVFormat *);
PETSC_INTERN PetscErrorCode MatCreate_SpMV(Mat, const SpMVFormat *);
PETSC_INTERN PetscErrorCode MatConvertFrom_SpMV(Mat, MatType, MatReuse, Mat *);

/* The three functions that MatRegister() wants of a format called NAME */
#define SpMVFormatCreate(NAME)                      \
  static PetscErrorCode MatCreate_Seq##NAME(Mat A)  \
  {                                                 \
    return MatCreate_SeqSpMV(A, &SpMVFormat##NAME); \
  }                                                 \
  static PetscErrorCode MatCreate_MPI##NAME(Mat A)  \
  {                                                 \
    return MatCreate_MPISpMV(A, &SpMVFormat##NAME); \
  }                                                 \
  static PetscErrorCode MatCreate_##NAME(Mat A)     \
  {                                                 \
    return MatCreate_SpMV(A, &SpMVFormat##NAME);    \
  }

/* PetscObjectOptionsBegin() under a title of its own: under the Mat's, -help has been printed when the type is known */
#define SpMVOptionsBegin(A, title, manual)                                                     \
  PetscOptionsBegin(PetscObjectComm((PetscObject)A), ((PetscObject)A)->prefix, title, manual); \
  PetscOptionsObject->options = ((PetscObject)A)->options

/* AIJ's operations that a format takes over; what they were is kept, both to call and to put back */
#define SpMVHooks(X)  \
  X(mult)             \
  X(multadd)          \
  X(multtranspose)    \
  X(multtransposeadd) \
  X(assemblyend)      \
  X(duplicate)        \
  X(destroy)          \
  X(view)             \
  X(convert)          \
  X(convertfrom)      \
  X(setfromoptions)   \
  X(lufactor)

typedef struct {
  const SpMVFormat *format;
  void             *params;
  struct _MatOps    parent, ours; /* the operations before and after; only those of SpMVHooks() are meant */
#define SpMVOptionsBegin(A, title, manual)                                                     \
  PetscOptionsBegin(PetscObjectComm((PetscObject)A), ((PetscObject)A)->prefix, title, manual); \
  PetscOptionsObject->options = ((PetscObject)A)->options

  /* AIJ's operations; only those of SpMVHooks() are meant */
  PetscErrorCode (*view)(Mat, PetscViewer); /* what viewed before us: AIJ, or the DM that made the matrix */

  PetscErrorCode (*retrievevalues)(Mat);

  /* a sequential matrix: the stored block and the state of the matrix that it was made from */
  SpMVBlock        block;
  PetscBool        plain; /* AIJ's own product runs: columns out of order, no values, ... */
  PetscInt         nonzerorows;
  Mat              mat;
  PetscObjectState state, nonzerostate;
  PetscInt         m, n, nz;
  const PetscInt  *i, *j;

  /* an MPI matrix: its blocks as they were hooked */
  PetscObjectId id[2];
} Mat_SpMV;

PETSC_INTERN PetscErrorCode SpMVOptionsInt(Mat, SpMVOptionItems, const char[], const char[], const char[], PetscInt, PetscInt, PetscInt *);
PETSC_INTERN PetscErrorCode MatSpMVGet(Mat, Mat_SpMV **); /* NULL where the matrix is none of ours */
PETSC_INTERN PetscErrorCode MatSpMVHook(Mat, const SpMVFormat *, const void *params);
PETSC_INTERN PetscErrorCode MatSpMVUnhook(Mat);
PETSC_INTERN PetscErrorCode MatSpMVSetParams(Mat, Mat_SpMV *, const void *params);
PETSC_INTERN void           MatSpMVUseParent(Mat, Mat_SpMV *, PetscBool);
PETSC_INTERN PetscErrorCode MatSpMVGetStats(Mat, SpMVStats *); /* of a sequential matrix, brought up to date */

/* seq.c and mpi.c: the hooked operations of either kind */
PETSC_INTERN void           MatSpMVSetOps_Seq(Mat);
PETSC_INTERN void           MatSpMVSetOps_MPI(Mat);
PETSC_INTERN PetscErrorCode MatSpMVHookBlocks_MPI(Mat, Mat_SpMV *);
PETSC_INTERN PetscErrorCode MatSpMVUnhookBlocks_MPI(Mat);
