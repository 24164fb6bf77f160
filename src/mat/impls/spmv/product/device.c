/*
  The device: whether it is used, its stream, the operands of a product, and device copies of host vectors.
*/
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "mat/impls/spmv/matspmv.h"
#if defined(PETSCSPMV_HAVE_CUDA)
  #include <petsc/private/vecimpl.h> /* offloadmask */
  #include <dlfcn.h>
#endif

/*
  Whether new matrices use AIJCUSPARSE. The names of the types depend on it, so it is determined once, when the package
  is registered. If the ranks of a communicator differ, its matrices use the host.
*/
PetscErrorCode SpMVUseDevice(MPI_Comm comm, PetscBool *use)
{
#if defined(PETSCSPMV_HAVE_CUDA)
  static int  settled = -1;
  PetscMPIInt size;

  PetscFunctionBegin;
  if (settled < 0) {
    const char *const option[] = {"-device_enable", "-device_enable_cuda"};
    int               devices  = 0;

    if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
    (void)cudaGetLastError(); /* no device is not an error */
    for (int k = 0; k < 2; k++) {
      char      value[16];
      PetscBool set, none;

      PetscCall(PetscOptionsGetString(NULL, NULL, option[k], value, sizeof(value), &set));
      PetscCall(PetscStrcasecmp(set ? value : "", "none", &none));
      if (none) devices = 0;
    }
    settled = devices > 0;
  }
  *use = (PetscBool)settled;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  if (size > 1) {
    int all;

    PetscCallMPI(MPI_Allreduce(&settled, &all, 1, MPI_INT, MPI_MIN, comm));
    *use = (PetscBool)all;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  PetscFunctionBegin;
  (void)comm;
  *use = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
#endif
}

/* Marks the host's values as newer than the device's, after AIJ has changed them without doing so */
PetscErrorCode SpMVHostIsNewer(Mat A)
{
  PetscFunctionBegin;
#if defined(PETSCSPMV_HAVE_CUDA)
  PetscBool same;

  /* an MPI matrix has no values of its own */
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJCUSPARSE, &same));
  if (same && A->offloadmask != PETSC_OFFLOAD_UNALLOCATED) A->offloadmask = PETSC_OFFLOAD_CPU;
#else
  (void)A;
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- operands of a product */

static PetscErrorCode SpMVOperandGet(SpMVOperand *o)
{
  PetscFunctionBegin;
  if (o->access == SPMV_READ)
    PetscCall(VecGetArrayReadAndMemType(o->v, (const PetscScalar **)&o->array, &o->memtype));
  else if (o->access == SPMV_WRITE)
    PetscCall(VecGetArrayWriteAndMemType(o->v, &o->array, &o->memtype));
  else
    PetscCall(VecGetArrayAndMemType(o->v, &o->array, &o->memtype));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVOperandRestore(SpMVOperand *o)
{
  PetscFunctionBegin;
  if (o->access == SPMV_READ)
    PetscCall(VecRestoreArrayReadAndMemType(o->v, (const PetscScalar **)&o->array));
  else if (o->access == SPMV_WRITE)
    PetscCall(VecRestoreArrayWriteAndMemType(o->v, &o->array));
  else
    PetscCall(VecRestoreArrayAndMemType(o->v, &o->array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets x, y and z to the operands' arrays or their copies */
static void SpMVOperandsPoint(SpMVOperands *o)
{
  PetscScalar *array[3];

  for (int v = 0; v < 3; v++) array[v] = o->operand[v].copy ? o->operand[v].copy : o->operand[v].array;
  o->z = array[0];
  o->x = array[1];
  o->y = o->operand[0].access == SPMV_UPDATE ? array[0] : array[2];
}

/* Handles each vector separately: a loop over the operands costs 15 ns more, a fifth of the time of a small product */
static PetscErrorCode SpMVOperandsBeginHost(Vec xx, Vec yy, Vec zz, SpMVOperands *o)
{
  PetscFunctionBegin;
  PetscCall(VecGetArrayRead(xx, &o->x));
  if (yy == zz) {
    PetscCall(VecGetArray(zz, &o->z));
    o->y = o->z;
  } else {
    o->y = NULL;
    if (yy) PetscCall(VecGetArrayRead(yy, &o->y));
    PetscCall(VecGetArrayWrite(zz, &o->z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVOperandsEndHost(SpMVOperands *o)
{
  PetscFunctionBegin;
  if (o->yy == o->zz)
    PetscCall(VecRestoreArray(o->zz, &o->z));
  else {
    PetscCall(VecRestoreArrayWrite(o->zz, &o->z));
    if (o->yy) PetscCall(VecRestoreArrayRead(o->yy, &o->y));
  }
  PetscCall(VecRestoreArrayRead(o->xx, &o->x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVOperandsBeginInPlace(Vec xx, Vec yy, Vec zz, SpMVOperands *o)
{
  const Vec v[3] = {zz, xx, yy == zz ? NULL : yy};

  PetscFunctionBegin;
  PetscCall(PetscMemzero(o->operand, sizeof(o->operand)));
  o->device = o->host = PETSC_FALSE;
  for (int k = 0; k < 3; k++) {
    o->operand[k].v      = v[k];
    o->operand[k].access = k ? SPMV_READ : yy == zz ? SPMV_UPDATE : SPMV_WRITE;
    if (!v[k]) continue;
    PetscCall(SpMVOperandGet(&o->operand[k]));
    if (PetscMemTypeDevice(o->operand[k].memtype))
      o->device = PETSC_TRUE;
    else
      o->host = PETSC_TRUE;
  }
  SpMVOperandsPoint(o);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVOperandsBegin(SpMVPlace place, Vec xx, Vec yy, Vec zz, SpMVOperands *o)
{
  PetscFunctionBegin;
  o->place = place;
  o->xx    = xx;
  o->yy    = yy;
  o->zz    = zz;
  if (place == SPMV_ON_HOST)
    PetscCall(SpMVOperandsBeginHost(xx, yy, zz, o));
  else
    PetscCall(SpMVOperandsBeginInPlace(xx, yy, zz, o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSCSPMV_HAVE_CUDA)
PetscErrorCode SpMVGetStream(cudaStream_t *stream)
{
  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees a copy; if `back`, the result is copied back first */
static PetscErrorCode SpMVOperandUnstage(SpMVOperand *o, PetscBool back)
{
  cudaStream_t stream;
  PetscInt     n;

  PetscFunctionBegin;
  if (!o->copy) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetLocalSize(o->v, &n));
  if (back && o->access != SPMV_READ && n) {
    const size_t bytes = (size_t)n * sizeof(PetscScalar);

    PetscCall(SpMVGetStream(&stream));
    PetscCallCUDA(cudaMemcpyAsync(o->array, o->copy, bytes, cudaMemcpyDeviceToHost, stream));
    PetscCallCUDA(cudaStreamSynchronize(stream));
    PetscCall(PetscLogGpuToCpu((PetscLogDouble)bytes));
  }
  PetscCallCUDA(cudaFree(o->copy));
  o->copy = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

PetscErrorCode SpMVOperandsEnd(SpMVOperands *o)
{
  PetscFunctionBegin;
  if (o->place == SPMV_ON_HOST) {
    PetscCall(SpMVOperandsEndHost(o));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 2; k >= 0; k--) {
    if (!o->operand[k].v) continue;
#if defined(PETSCSPMV_HAVE_CUDA)
    PetscCall(SpMVOperandUnstage(&o->operand[k], PETSC_TRUE));
#endif
    PetscCall(SpMVOperandRestore(&o->operand[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSCSPMV_HAVE_CUDA)

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

/* *staged becomes false if the device has no memory for the copy */
static PetscErrorCode SpMVOperandStage(SpMVOperand *o, cudaStream_t stream, PetscBool *staged)
{
  PetscInt    n;
  size_t      bytes;
  cudaError_t error;

  PetscFunctionBegin;
  if (!o->v || PetscMemTypeDevice(o->memtype) || !*staged) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetLocalSize(o->v, &n));
  bytes = (size_t)n * sizeof(PetscScalar);
  error = cudaMalloc((void **)&o->copy, PetscMax(bytes, 1));
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    o->copy = NULL;
    *staged = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallCUDA(error);
  if (o->access != SPMV_WRITE && bytes) {
    PetscCallCUDA(cudaMemcpyAsync(o->copy, o->array, bytes, cudaMemcpyHostToDevice, stream));
    PetscCall(PetscLogCpuToGpu((PetscLogDouble)bytes));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Copies the operands that are on the host to the device for one product: all of them or none. SpMVVecOnDevice() is not
  suitable: to find out where a vector is, it gets the values, even of a vector that the product overwrites, and it
  copies through a second array on the host.
*/
PetscErrorCode SpMVOperandsStage(SpMVOperands *o, cudaStream_t stream, PetscBool *staged)
{
  PetscFunctionBegin;
  *staged = PETSC_TRUE;
  for (int k = 0; k < 3; k++) PetscCall(SpMVOperandStage(&o->operand[k], stream, staged));
  for (int k = 0; k < 3 && !*staged; k++) PetscCall(SpMVOperandUnstage(&o->operand[k], PETSC_FALSE));
  SpMVOperandsPoint(o);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- vectors */

/* Gets a device vector to use instead of the host vector v, with v's values if `copy`; if v is a device vector, gets v
   itself */
PetscErrorCode SpMVVecOnDevice(Vec v, PetscBool copy, Vec *d)
{
  const PetscScalar *a;
  PetscMemType       memtype;
  PetscInt           n;

  PetscFunctionBegin;
  *d = v;
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetArrayReadAndMemType(v, &a, &memtype));
  if (PetscMemTypeHost(memtype)) {
    PetscScalar *b;

    PetscCall(VecGetLocalSize(v, &n));
    PetscCall(VecCreate(PETSC_COMM_SELF, d));
    PetscCall(VecSetSizes(*d, n, n));
    PetscCall(VecSetType(*d, VECSEQCUDA));
    if (copy) {
      PetscCall(VecGetArrayWrite(*d, &b));
      PetscCall(PetscArraycpy(b, a, n));
      PetscCall(VecRestoreArrayWrite(*d, &b));
    }
  }
  PetscCall(VecRestoreArrayReadAndMemType(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVVecRestore(Vec v, PetscBool copy, Vec *d)
{
  PetscFunctionBegin;
  if (*d == v) {
    *d = NULL;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (copy) {
    const PetscScalar *a;
    PetscScalar       *b;
    PetscInt           n;

    PetscCall(VecGetLocalSize(v, &n));
    PetscCall(VecGetArrayRead(*d, &a));
    PetscCall(VecGetArrayWrite(v, &b));
    PetscCall(PetscArraycpy(b, a, n));
    PetscCall(VecRestoreArrayWrite(v, &b));
    PetscCall(VecRestoreArrayRead(*d, &a));
    /*
      VecMDot() of a device vector with v copies v to the device and considers that copy up to date from then on,
      because nothing marks v as changed (PETSc 3.26). A basis of GMRES may contain both kinds of vectors:
      KSPCreateVecs() creates the first vectors with the DM (for a field of a DMDA these are host vectors) and later
      ones like the solution.
    */
    v->offloadmask = PETSC_OFFLOAD_CPU;
  }
  PetscCall(VecDestroy(d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVVecCopyLocal(Vec from, PetscScalar scale, Vec to)
{
  Vec local[2];

  PetscFunctionBegin;
  PetscCall(VecCreateLocalVector(to, &local[1]));
  PetscCall(VecGetLocalVector(to, local[1]));
  if (from != to) {
    PetscCall(VecCreateLocalVector(from, &local[0]));
    PetscCall(VecGetLocalVectorRead(from, local[0]));
    PetscCall(VecCopy(local[0], local[1]));
    PetscCall(VecRestoreLocalVectorRead(from, local[0]));
    PetscCall(VecDestroy(&local[0]));
  }
  if (scale != (PetscScalar)1.0) PetscCall(VecScale(local[1], scale));
  PetscCall(VecRestoreLocalVector(to, local[1]));
  PetscCall(VecDestroy(&local[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
