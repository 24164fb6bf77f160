#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE /* dladdr() */
#endif
#include "faults.h"
#include <dlfcn.h>
#include <pthread.h>

Fault fault;

/* Called by an allocation of the library: whether it fails */
static PetscBool FaultStrikes(const char *where, int line)
{
  if (!fault.armed || fault.after-- != 0) return PETSC_FALSE;
  fault.fired++;
  fault.where = where;
  fault.line  = line;
  return PETSC_TRUE;
}

Allocation live[MOST_LIVE];
int        nlive = 0;

static void LiveAdd(void *p, const char *where, int line)
{
  if (!p || nlive == MOST_LIVE) return;
  live[nlive].p      = p;
  live[nlive].where  = where;
  live[nlive++].line = line;
}

static PetscBool LiveRemove(const void *p)
{
  for (int k = nlive - 1; k >= 0; k--) {
    if (live[k].p == p) {
      live[k] = live[--nlive];
      return PETSC_TRUE;
    }
  }
  return PETSC_FALSE;
}

static PetscErrorCode (*MallocBehind)(size_t, PetscBool, int, const char[], const char[], void **);
static PetscErrorCode (*FreeBehind)(void *, int, const char[], const char[]);
static PetscErrorCode (*ReallocBehind)(size_t, int, const char[], const char[], void **);

static PetscBool IsOurs(const char file[])
{
  static const char *const folders[] = {"src/core/",    "impls/spmv/",       "impls/sellp/",     "impls/evchyb/",
                                        "impls/batch/", "src/sys/petscspmv", "impls/gamg/cuda/", "impls/jacobi/cuda/"};

  for (size_t k = 0; file && k < PETSC_STATIC_ARRAY_LENGTH(folders); k++) {
    if (strstr(file, folders[k])) return PETSC_TRUE;
  }
  return PETSC_FALSE;
}

static PetscErrorCode NoMemory(size_t bytes, int line, const char function[], const char file[])
{
  PetscFunctionBegin; /* PetscError() pops the stack */
  return PetscError(PETSC_COMM_SELF, line, function, file, PETSC_ERR_MEM, PETSC_ERROR_INITIAL, "Memory requested %.0f",
                    (double)bytes);
}

static PetscErrorCode FaultyMalloc(size_t bytes, PetscBool clear, int line, const char function[], const char file[],
                                   void **p)
{
  const PetscBool ours = (PetscBool)(bytes && IsOurs(file));
  PetscErrorCode  ierr;

  if (ours && FaultStrikes(file, line)) return NoMemory(bytes, line, function, file);
  ierr = (*MallocBehind)(bytes, clear, line, function, file, p);
  if (!ierr && ours) LiveAdd(*p, file, line);
  return ierr;
}

static PetscErrorCode FaultyFree(void *p, int line, const char function[], const char file[])
{
  (void)LiveRemove(p);
  return (*FreeBehind)(p, line, function, file);
}

static PetscErrorCode FaultyRealloc(size_t bytes, int line, const char function[], const char file[], void **p)
{
  const PetscBool ours = (PetscBool)(bytes && IsOurs(file));
  PetscErrorCode  ierr;
  void           *old = *p;

  if (ours && FaultStrikes(file, line)) return NoMemory(bytes, line, function, file);
  ierr = (*ReallocBehind)(bytes, line, function, file, p);
  if (!ierr && (LiveRemove(old) || ours)) LiveAdd(*p, file, line);
  return ierr;
}

static pthread_t testing; /* the thread of the test */

void FaultsInstall(PetscBool install)
{
  testing = pthread_self();
  if (install) {
    MallocBehind   = PetscTrMalloc;
    FreeBehind     = PetscTrFree;
    ReallocBehind  = PetscTrRealloc;
    PetscTrMalloc  = FaultyMalloc;
    PetscTrFree    = FaultyFree;
    PetscTrRealloc = FaultyRealloc;
  } else {
    PetscTrMalloc  = MallocBehind;
    PetscTrFree    = FreeBehind;
    PetscTrRealloc = ReallocBehind;
  }
}

#if defined(PETSC_HAVE_CUDA)
/* The linker exports the following functions, because the libraries refer to them. The library's own threads only
   prepare what it can do without */
static PetscBool CallerIsOurs(const void *address)
{
  Dl_info info;

  return (PetscBool)(pthread_equal(pthread_self(), testing) && dladdr(address, &info) && info.dli_fname &&
                     strstr(info.dli_fname, "libpetscspmv"));
}

  #define Faulty(name, parameters, arguments, result)                            \
    __attribute__((visibility("default"))) cudaError_t CUDARTAPI name parameters \
    {                                                                            \
      static cudaError_t(*behind) parameters;                                    \
      const PetscBool ours = CallerIsOurs(__builtin_return_address(0));          \
      cudaError_t     error;                                                     \
                                                                                 \
      if (!behind) *(void **)&behind = dlsym(RTLD_NEXT, #name);                  \
      if (ours && FaultStrikes(#name, 0)) return cudaErrorMemoryAllocation;      \
      error = (*behind)arguments;                                                \
      if (error == cudaSuccess && ours) LiveAdd(result, #name, 0);               \
      return error;                                                              \
    }
  #define Freeing(name, parameters, arguments, what)                             \
    __attribute__((visibility("default"))) cudaError_t CUDARTAPI name parameters \
    {                                                                            \
      static cudaError_t(*behind) parameters;                                    \
                                                                                 \
      if (!behind) *(void **)&behind = dlsym(RTLD_NEXT, #name);                  \
      (void)LiveRemove(what);                                                    \
      return (*behind)arguments;                                                 \
    }
/* The library then calls cudaMalloc(), which must fail, too */
__attribute__((visibility("default"))) cudaError_t CUDARTAPI cudaMallocFromPoolAsync(void **p, size_t n,
                                                                                     cudaMemPool_t pool,
                                                                                     cudaStream_t  stream)
{
  static cudaError_t (*behind)(void **, size_t, cudaMemPool_t, cudaStream_t);
  const PetscBool ours = CallerIsOurs(__builtin_return_address(0));
  cudaError_t     error;

  if (!behind) *(void **)&behind = dlsym(RTLD_NEXT, "cudaMallocFromPoolAsync");
  if (ours && fault.armed && fault.after == 0) return cudaErrorMemoryAllocation;
  error = (*behind)(p, n, pool, stream);
  if (error == cudaSuccess && ours) {
    (void)FaultStrikes("cudaMallocFromPoolAsync", 0); /* counts */
    LiveAdd(*p, "cudaMallocFromPoolAsync", 0);
  }
  return error;
}
/* clang-format off */
Faulty(cudaMalloc, (void **p, size_t n), (p, n), *p)
Faulty(cudaMallocHost, (void **p, size_t n), (p, n), *p)
Faulty(cudaHostAlloc, (void **p, size_t n, unsigned int flags), (p, n, flags), *p)
Faulty(cudaMallocAsync, (void **p, size_t n, cudaStream_t stream), (p, n, stream), *p)
Faulty(cudaHostRegister, (void *p, size_t n, unsigned int flags), (p, n, flags), NULL)
Faulty(cudaEventCreate, (cudaEvent_t *event), (event), *event)
Faulty(cudaEventCreateWithFlags, (cudaEvent_t *event, unsigned int flags), (event, flags), *event)
Faulty(cudaStreamCreate, (cudaStream_t *stream), (stream), *stream)
Faulty(cudaStreamCreateWithFlags, (cudaStream_t *stream, unsigned int flags), (stream, flags), *stream)
Faulty(cudaStreamCreateWithPriority, (cudaStream_t *stream, unsigned int flags, int priority), (stream, flags, priority), *stream)
Faulty(cudaIpcGetMemHandle, (cudaIpcMemHandle_t *handle, void *p), (handle, p), NULL)
Faulty(cudaIpcOpenMemHandle, (void **p, cudaIpcMemHandle_t handle, unsigned int flags), (p, handle, flags), *p)
Faulty(cudaFuncSetAttribute, (const void *function, enum cudaFuncAttribute attribute, int value), (function, attribute, value), NULL)
Freeing(cudaFree, (void *p), (p), p)
Freeing(cudaFreeHost, (void *p), (p), p)
Freeing(cudaFreeAsync, (void *p, cudaStream_t stream), (p, stream), p)
Freeing(cudaEventDestroy, (cudaEvent_t event), (event), event)
Freeing(cudaStreamDestroy, (cudaStream_t stream), (stream), stream)
Freeing(cudaIpcCloseMemHandle, (void *p), (p), p)
/* clang-format on */
#endif
