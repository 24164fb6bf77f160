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
   The products of one log stage: the largest count and the largest time over the ranks, and the rate at which all ranks together did
   what PETSc counts as floating point operations, which is never the padding of a format. Needs PetscLogDefaultBegin().
*/
static inline PetscErrorCode ExampleMatMultLog(MPI_Comm comm, PetscLogStage stage, PetscInt *count, double *seconds, double *gflops)
{
  PetscEventPerfInfo info;
  PetscLogEvent      event;
  double             mine[2], all[2], flops;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(&info, sizeof(info))); /* a PETSc configured without logging leaves it alone */
  PetscCall(PetscLogEventGetId("MatMult", &event));
  PetscCall(PetscLogEventGetPerfInfo(stage, event, &info));
  mine[0] = info.count;
  mine[1] = info.time;
  PetscCallMPI(MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, comm));
  mine[0] = info.flops;
  PetscCallMPI(MPI_Allreduce(mine, &flops, 1, MPI_DOUBLE, MPI_SUM, comm));
  *count   = (PetscInt)all[0];
  *seconds = all[1];
  *gflops  = all[1] > 0.0 ? 1e-9 * flops / all[1] : 0.0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
