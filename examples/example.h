/*
   What the examples share: the PETSc versions' differences, and reading back from PETSc's own log what the products cost.
*/
#pragma once

#include <petscmat.h>
#include <petscspmv.h>

#if !defined(PETSC_SUCCESS) /* PETSc 3.18 */
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

/*
   What one event of one log stage cost: the largest count and the largest time over the ranks, and what PETSc counts as floating point
   operations of all ranks together. Needs PetscLogDefaultBegin(). The time is the host's: where the host only queues work for a GPU it
   says little, unless the run has -log_view_gpu_time or the event itself waits for the GPU.
*/
static inline PetscErrorCode ExampleLog(MPI_Comm comm, PetscLogStage stage, const char name[], PetscInt *count, double *seconds, double *flops)
{
  PetscEventPerfInfo info;
  PetscLogEvent      event;
  double             mine[2], all[2];

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(&info, sizeof(info))); /* a PETSc configured without logging leaves it alone */
  PetscCall(PetscLogEventGetId(name, &event));
  PetscCall(PetscLogEventGetPerfInfo(stage, event, &info));
  mine[0] = info.count;
  mine[1] = info.time;
  PetscCallMPI(MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, comm));
  *count   = (PetscInt)all[0];
  *seconds = all[1];
  mine[0]  = info.flops;
  PetscCallMPI(MPI_Allreduce(mine, flops, 1, MPI_DOUBLE, MPI_SUM, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The products, and the rate at which all ranks together did them; a format's padding never counts */
static inline PetscErrorCode ExampleMatMultLog(MPI_Comm comm, PetscLogStage stage, PetscInt *count, double *seconds, double *gflops)
{
  double flops;

  PetscFunctionBeginUser;
  PetscCall(ExampleLog(comm, stage, "MatMult", count, seconds, &flops));
  *gflops = *seconds > 0.0 ? 1e-9 * flops / *seconds : 0.0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
