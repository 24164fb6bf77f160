/*
   Shared by the examples: differences between PETSc versions, and functions that read the cost of products from PETSc's
   own log.
*/
#pragma once

#include <petscmat.h>
#include <petscspmv.h>

#if !defined(PETSC_SUCCESS) /* PETSc 3.18 */
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

/*
   The cost of one event in one log stage: the largest count and the largest time over the ranks, and the floating-point
   operations of all ranks together, as counted by PETSc. Needs PetscLogDefaultBegin(). The time is the host's: if the
   host only queues work for a GPU, the time is not meaningful, unless the run has -log_view_gpu_time or the event
   itself waits for the GPU.
*/
static inline PetscErrorCode ExampleLog(MPI_Comm comm, PetscLogStage stage, const char name[], PetscInt *count,
                                        double *seconds, double *flops)
{
  PetscEventPerfInfo info;
  PetscLogEvent      event;
  double             mine[2], all[2];

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(&info, sizeof(info))); /* a PETSc configured without logging does not set it */
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

/* The number of products, and the rate of all ranks together; a format's padding is never counted */
static inline PetscErrorCode ExampleMatMultLog(MPI_Comm comm, PetscLogStage stage, PetscInt *count, double *seconds,
                                               double *gflops)
{
  double flops;

  PetscFunctionBeginUser;
  PetscCall(ExampleLog(comm, stage, "MatMult", count, seconds, &flops));
  *gflops = *seconds > 0.0 ? 1e-9 * flops / *seconds : 0.0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
