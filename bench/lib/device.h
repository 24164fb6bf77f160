/*
   The GPU that is measured: its bandwidth, a buffer to flush its cache, and the time of one product. DeviceOn is false
   until DeviceOpen() has found a GPU; no other function of this file may be called before.
*/
#pragma once

#include <petscvec.h>
#include <ctype.h>
#include "timing.h"
#if defined(PETSC_HAVE_CUDA)
  #define CUSPARSE_ENABLE_EXPERIMENTAL_API /* SpMVOp */
  #include <petscdevice_cuda.h>
  #include <cusparse.h>

/* cuSPARSE's names for PETSc's number types */
static const cusparseIndexType_t CuSparseIndex =
    PetscDefined(USE_64BIT_INDICES) ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
  #if defined(PETSC_USE_COMPLEX)
static const cudaDataType CuSparseScalar = PetscDefined(USE_REAL_SINGLE) ? CUDA_C_32F : CUDA_C_64F;
  #else
static const cudaDataType CuSparseScalar = PetscDefined(USE_REAL_SINGLE) ? CUDA_R_32F : CUDA_R_64F;
  #endif
#endif

static PetscBool DeviceOn = PETSC_FALSE;

static PETSC_UNUSED struct {
  char   name[128], label[128]; /* "NVIDIA H200", and "h200" for file names */
  double copy;                  /* bytes per second, read and written, of a large copy */
  size_t cache, flush;          /* bytes of the L2 cache, and of the buffer that is written to flush it */
  void  *buffer;
#if defined(PETSC_HAVE_CUDA)
  cudaStream_t stream; /* PETSc's, in which all products run */
  cudaEvent_t  begin, end;
#endif
} Device;

#if defined(PETSC_HAVE_CUDA)

/* cuSPARSE, for the products that are compared with ours. DeviceClose() calls CuSparseClose() */
static PETSC_UNUSED cusparseHandle_t  CuSparseHandle = NULL;
static PETSC_UNUSED const PetscScalar CuSparseOne = 1.0, CuSparseZero = 0.0;

static inline PetscErrorCode CuSparseOpen(void)
{
  PetscFunctionBeginUser;
  if (CuSparseHandle) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallCUSPARSE(cusparseCreate(&CuSparseHandle));
  PetscCallCUSPARSE(cusparseSetStream(CuSparseHandle, Device.stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode CuSparseClose(void)
{
  PetscFunctionBeginUser;
  if (CuSparseHandle) PetscCallCUSPARSE(cusparseDestroy(CuSparseHandle));
  CuSparseHandle = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode DeviceDrain(void)
{
  PetscFunctionBeginUser;
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode DeviceMeasureCopy(void)
{
  const int      copies = 20;
  size_t         available, total, half;
  char          *p;
  PetscLogDouble t = 0.0;
  double         dt, best = 1e30;

  PetscFunctionBeginUser;
  PetscCallCUDA(cudaMemGetInfo(&available, &total));
  half = PetscMin((size_t)1 << 30, available / 4);
  PetscCallCUDA(cudaMalloc((void **)&p, 2 * half));
  PetscCallCUDA(cudaMemset(p, 1, 2 * half));
  for (int r = 0; r < 10; r++) {
    PetscCall(TimeBegin(PETSC_COMM_SELF, &t));
    for (int k = 0; k < copies; k++)
      PetscCallCUDA(cudaMemcpyAsync(p, p + half, half, cudaMemcpyDeviceToDevice, Device.stream));
    PetscCall(TimeEnd(PETSC_COMM_SELF, t, &dt));
    best = PetscMin(best, dt);
  }
  Device.copy = 2.0 * copies * (double)half / best;
  PetscCallCUDA(cudaFree(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif

/* Initializes the GPU that PETSc assigns to this process, if there is one, and fills in Device */
static inline PetscErrorCode DeviceOpen(void)
{
#if defined(PETSC_HAVE_CUDA)
  struct cudaDeviceProp prop;
  int                   id, devices = 0;
  size_t                len;
  const char           *word;
#endif

  PetscFunctionBeginUser;
#if defined(PETSC_HAVE_CUDA)
  if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) {
    (void)cudaGetLastError(); /* it is not an error if there is no device */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscDeviceInitialize(PETSC_DEVICE_CUDA));
  DeviceOn  = PETSC_TRUE;
  TimeDrain = DeviceDrain;
  PetscCallCUDA(cudaGetDevice(&id));
  PetscCallCUDA(cudaGetDeviceProperties(&prop, id));
  PetscCall(PetscStrncpy(Device.name, prop.name, sizeof(Device.name)));
  word = strncmp(prop.name, "NVIDIA ", 7) ? prop.name : prop.name + 7;
  for (len = 0; word[len] && len + 1 < sizeof(Device.label); len++)
    Device.label[len] = (char)(isalnum((unsigned char)word[len]) ? tolower((unsigned char)word[len]) : '-');
  if (!len) PetscCall(PetscStrncpy(Device.label, "gpu", sizeof(Device.label)));
  PetscCall(PetscGetCurrentCUDAStream(&Device.stream));
  PetscCallCUDA(cudaEventCreate(&Device.begin));
  PetscCallCUDA(cudaEventCreate(&Device.end));
  Device.cache = (size_t)prop.l2CacheSize;
  /* so large that the host can launch a product while it is written */
  Device.flush = PetscMax((size_t)256 << 20, 3 * Device.cache);
  PetscCallCUDA(cudaMalloc(&Device.buffer, Device.flush));
  PetscCall(DeviceMeasureCopy());
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After DeviceOpen() */
static inline PetscErrorCode DeviceClose(void)
{
  PetscFunctionBeginUser;
  if (!DeviceOn) PetscFunctionReturn(PETSC_SUCCESS);
#if defined(PETSC_HAVE_CUDA)
  PetscCallCUDA(cudaFree(Device.buffer));
  PetscCallCUDA(cudaEventDestroy(Device.begin));
  PetscCallCUDA(cudaEventDestroy(Device.end));
  PetscCall(CuSparseClose());
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_HAVE_CUDA)

/* Free memory in bytes */
static inline PetscErrorCode DeviceFreeMemory(double *bytes)
{
  size_t available, total;

  PetscFunctionBeginUser;
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscCallCUDA(cudaMemGetInfo(&available, &total));
  *bytes = (double)available;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   These two calls measure the time of the work queued between them, with the L2 cache full of other data. The write
   that fills the cache takes longer than the host needs to launch a product, so the events measure only the device's
   time.
*/
static inline PetscErrorCode DeviceColdBegin(void)
{
  static int value = 0;

  PetscFunctionBeginUser;
  PetscCallCUDA(cudaMemsetAsync(Device.buffer, ++value & 0xff, Device.flush, Device.stream));
  PetscCallCUDA(cudaEventRecord(Device.begin, Device.stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode DeviceColdEnd(double *seconds)
{
  float ms;

  PetscFunctionBeginUser;
  PetscCallCUDA(cudaEventRecord(Device.end, Device.stream));
  PetscCallCUDA(cudaEventSynchronize(Device.end));
  PetscCallCUDA(cudaEventElapsedTime(&ms, Device.begin, Device.end));
  *seconds = 1e-3 * (double)ms;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A copy, on the GPU, of a host vector with its values */
static inline PetscErrorCode DeviceVecCopy(Vec x, Vec *y)
{
  const PetscScalar *array;
  PetscInt           n, N;

  PetscFunctionBeginUser;
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetSize(x, &N));
  PetscCall(VecCreate(PetscObjectComm((PetscObject)x), y));
  PetscCall(VecSetSizes(*y, n, N));
  PetscCall(VecSetType(*y, VECCUDA));
  PetscCall(VecCopy(x, *y));
  PetscCall(VecCUDAGetArrayRead(*y, &array)); /* moves the values now, and not in a timed product */
  PetscCall(VecCUDARestoreArrayRead(*y, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
