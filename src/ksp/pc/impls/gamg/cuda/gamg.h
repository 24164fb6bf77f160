/*
  PCGAMG of type PCGAMGAGG whose set-up runs on the device.

  The type gamg is PETSc's own, created by PETSc's function. During its set-up, the functions that make the graph, the
  aggregates and the prolongator of a level are replaced. Everything else (levels, coarse matrices, smoothers, options,
  views) is PETSc's, whose products of matrices run on the device, too. A level that the device cannot do is done by
  PETSc's functions.

    gamg.c         the type: creation, options, views, set-up
    levels.c       graph and aggregates of a level
    prolongator.c  its prolongator, tentative and smoothed
*/
#pragma once

#include <petscpc.h>

/* This code knows internals of this PETSc; with another one, PETSc's set-up runs */
#define PCGAMG_DEVICE (PETSC_VERSION_GE(3, 26, 0) && PETSC_VERSION_LT(3, 27, 0))

#include <petsc/private/pcgamgimpl.h>
#include <petsc/private/kspimpl.h>
#include "mat/impls/spmv/cuda/matspmvcuda.h"
#include "core/cuda/amg/amg.h"

/* The data of PCGAMGAGG, as in PETSc 3.26's agg.c; PETSc has no header for it */
typedef struct {
  PetscInt   nsmooths;
  PetscInt   aggressive_coarsening_levels;
  PetscInt   aggressive_mis_k;
  PetscBool  use_aggressive_square_graph;
  PetscBool  use_minimum_degree_ordering;
  PetscBool  use_low_mem_filter;
  PetscBool  graph_symmetrize;
  MatCoarsen crs;
} PC_GAMG_AGG;

/* What a level has on the device until its prolongator is a matrix. Until then PETSc has matrices without entries */
typedef struct {
  PetscBool          made; /* by the device; if not, PETSc makes the level */
  SpMVCudaAggregates aggregates;
  /* this rank's rows of the prolongator: the diagonal block, and the off-diagonal one, whose columns are garray[] */
  SpMVCudaTemporary memory[2];
  SpMVCudaCSR       P[2];
  PetscInt         *garray;
  SpMVCudaSpGEMM    product[2]; /* of the last smoothing, by which the device may still be computing P's values */
} PCGAMGLevel;

typedef struct {
  PetscErrorCode (*setup)(PC); /* PETSc's functions of the type */
  PetscErrorCode (*setfromoptions)(PC, PetscOptionItems);
  PetscErrorCode (*destroy)(PC);
  PetscErrorCode (*view)(PC, PetscViewer);
  struct _PCGAMGOps ops; /* PETSc's functions of a level, during a set-up */
  PetscBool         use; /* -pc_gamg_device */
  /* since the prolongators were last made */
  PetscInt  levels, device; /* levels with a prolongator; those of them that the device has done */
  PetscBool again;          /* the next level is the first of new ones */
  char      why[128];       /* why it has not done the others */
  /* the near null space on the device, between two levels */
  SpMVCudaTemporary memory;
  PetscReal        *near;
  PetscBool         lazy;  /* gamg->data is not filled: the near null space is the matrix's own, or PETSc's default */
  PCGAMGLevel       level; /* the one that is being made */
} PC_GAMGDevice;

static inline PC_GAMG *PCGAMGGet(PC pc)
{
  return (PC_GAMG *)((PC_MG *)pc->data)->innerctx;
}

/* gamg.c */
PETSC_INTERN PetscErrorCode PCGAMGDeviceGet(PC, PC_GAMGDevice **);
PETSC_INTERN PetscErrorCode PCGAMGDeviceForget(PC_GAMGDevice *); /* frees the near null space and the level */

/* levels.c */
PETSC_INTERN PetscErrorCode PCGAMGCreateDefaultData_Device(PC, Mat);
PETSC_INTERN PetscErrorCode PCGAMGCreateGraph_Device(PC, Mat, Mat *);
PETSC_INTERN PetscErrorCode PCGAMGCoarsen_Device(PC, Mat *, PetscCoarsenData **);
PETSC_INTERN PetscErrorCode PCGAMGLevelFree(PCGAMGLevel *);

/* prolongator.c */
PETSC_INTERN PetscErrorCode PCGAMGProlongator_Device(PC, Mat, PetscCoarsenData *, Mat *);
PETSC_INTERN PetscErrorCode PCGAMGOptProlongator_Device(PC, Mat, Mat *);
