/*
  An MPI that does not support device arrays.
*/
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "matspmvcuda.h"
#include <petsc/private/petscimpl.h> /* use_gpu_aware_mpi */
#include <dlfcn.h>

/*
  When PETSc first uses a device, each process, even a single one, sends a device array to itself. PETSc aborts if that
  fails, unless -use_gpu_aware_mpi 0 was given. The option sets the variable use_gpu_aware_mpi, which PETSc reads at
  that point, when it creates a PetscSF, for hypre, and for -log_view. So if MPI reports that it does not support device
  arrays, set the variable to false as the option would.

  Nothing is done if MPI has no function that reports this, or if the device shares the host's page tables: any MPI may
  be able to read the memory of such a device.
*/
PetscErrorCode SpMVDeviceCheckMPI(MPI_Comm comm)
{
  int (*openmpi)(void)       = (int (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
  int (*mpich)(int, int *)   = (int (*)(int, int *))dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support");
  const char *const option[] = {"-use_gpu_aware_mpi", "-sf_use_gpu_aware_mpi"};
  int               devices = 0, aware = 1, shared = 0;
  PetscMPIInt       size;

  PetscFunctionBegin;
  if (!use_gpu_aware_mpi || PetscDeviceInitialized(PETSC_DEVICE_CUDA)) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) {
    PetscBool set;

    PetscCall(PetscOptionsHasName(NULL, NULL, option[k], &set));
    if (set) PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (openmpi)
    aware = openmpi();
  else if (mpich)
    PetscCallMPI(mpich(0 /* MPIX_GPU_SUPPORT_CUDA */, &aware));
  if (aware) PetscFunctionReturn(PETSC_SUCCESS);
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  if (!devices || cudaDeviceGetAttribute(&shared, cudaDevAttrPageableMemoryAccessUsesHostPageTables, 0) != cudaSuccess)
    shared = 1;
  (void)cudaGetLastError(); /* no device is not an error */
  if (shared) PetscFunctionReturn(PETSC_SUCCESS);

  use_gpu_aware_mpi = PETSC_FALSE;
  PetscCall(PetscInfo(NULL, "MPI reports no support for device arrays; continuing as with -use_gpu_aware_mpi 0\n"));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  if (size > 1)
    PetscCall(PetscFPrintf(comm, PETSC_STDERR,
                           "PetscSpMV: this MPI does not support device arrays, so PETSc communicates through host "
                           "memory (-use_gpu_aware_mpi 0 "
                           "silences this)\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
