/*
   Products of bench.c's contenders: checked, timed one after the other, and with -graph timed by the device in CUDA
   graphs, or profiled.
*/
#pragma once

#include "contender.h"
#include "oracle.h"
#if defined(PETSCSPMV_HAVE_CUDA)
  #include <cuda_profiler_api.h>
#endif

/* A product into a vector of NaNs, timed and checked */
static PetscErrorCode CheckedProduct(Contender *c, Oracle *o, double factor, double *seconds)
{
  PetscLogDouble t    = 0.0;
  MPI_Comm       comm = PetscObjectComm((PetscObject)o->y);

  PetscFunctionBeginUser;
  PetscCall(VecSet(o->y, (PetscScalar)NAN));
  PetscCall(TimeBegin(comm, &t));
  PetscCall(Multiply(c, o->x, o->y));
  PetscCall(TimeEnd(comm, t, seconds));
#if defined(PETSCSPMV_HAVE_CUDA)
  if (c->kernel && Kernels[KernelFind(c->name)].sorted) PetscFunctionReturn(PETSC_SUCCESS);
#endif
  PetscCall(OracleCheck(o, factor, &c->error));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSCSPMV_HAVE_CUDA)
/* The products of a repetition as a CUDA graph; none if a library's product cannot be captured. PETSc's own run in its
   default stream, which cannot */
static PetscErrorCode Capture(Contender *c, Oracle *o)
{
  PetscErrorCode ierr  = PETSC_SUCCESS;
  cudaGraph_t    graph = NULL;
  cudaError_t    status;

  PetscFunctionBeginUser;
  if (c->A) PetscFunctionReturn(PETSC_SUCCESS);
  c->its = PetscMin(c->its, 40);
  PetscCallCUDA(cudaStreamBeginCapture(Device.stream, cudaStreamCaptureModeRelaxed));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  for (PetscInt k = 0; k < c->its && !ierr; k++) ierr = Multiply(c, o->x, o->y);
  PetscCall(PetscPopErrorHandler());
  status = cudaStreamEndCapture(Device.stream, &graph);
  if (!ierr && status == cudaSuccess)
    PetscCallCUDA(cudaGraphInstantiate(&c->graph, graph, 0));
  else
    (void)cudaGetLastError();
  if (graph) PetscCallCUDA(cudaGraphDestroy(graph));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -profile: one product of each, but the reference */
static PetscErrorCode Profile(const char *matrix, PetscInt n, Contender c[], Oracle *o)
{
  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < n; k++) {
    double unused;

    if (c[k].A) continue;
    PetscCall(CheckedProduct(&c[k], o, 1.0, &unused));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "profile %s %s\n", matrix, c[k].name));
    PetscCallCUDA(cudaProfilerStart());
    PetscCall(Multiply(&c[k], o->x, o->y));
    PetscCallCUDA(cudaDeviceSynchronize());
    PetscCallCUDA(cudaProfilerStop());
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The time of a product among those of one repetition, one after the other. Another one comes first: it brings the
   matrix back into the caches, from which the other types have evicted it */
static PetscErrorCode WarmProducts(MPI_Comm comm, Contender *c, Oracle *o, PetscBool measured, double *seconds)
{
  PetscLogDouble t = 0.0;

  PetscFunctionBeginUser;
#if defined(PETSCSPMV_HAVE_CUDA)
  if (c->graph) {
    PetscCallCUDA(cudaGraphLaunch(c->graph, Device.stream));
    PetscCallCUDA(cudaEventRecord(Device.begin, Device.stream));
    PetscCallCUDA(cudaGraphLaunch(c->graph, Device.stream));
    PetscCall(DeviceColdEnd(seconds));
    *seconds /= (double)c->its;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(Multiply(c, o->x, o->y));
  PetscCall(TimeBegin(comm, &t));
  for (PetscInt i = 0; measured && i < c->its; i++) PetscCall(Multiply(c, o->x, o->y));
  PetscCall(TimeEnd(comm, t, seconds));
  *seconds /= (double)c->its;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -graph and -profile */
static PetscErrorCode GetGraph(MPI_Comm comm, PetscBool *profile)
{
  PetscBool   graph = PETSC_FALSE;
  PetscMPIInt size;

  PetscFunctionBegin;
  *profile = PETSC_FALSE;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-graph", &graph, NULL));
  if (!graph) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(DeviceOn && size == 1, comm, PETSC_ERR_SUP, "-graph is for one rank with a GPU");
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-profile", profile, NULL));
#if defined(PETSCSPMV_HAVE_CUDA)
  GraphOn = PETSC_TRUE;
  PetscCallCUDA(cudaStreamCreateWithFlags(&Device.stream, cudaStreamNonBlocking)); /* PETSc's cannot be captured */
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
