/*
  Classical Gram-Schmidt for methods whose coefficients the host needs.
*/
#include "orthog.cuh"
#include "orthog.h"
#include <sched.h>

namespace spmv {
namespace {

// What the host reads, in pinned memory: `number` is written last, and is that of the last call that is complete
struct Outcome {
  unsigned  number;
  PetscReal square;
};

struct OrthogArgs {
  Basis     basis;
  Scalar   *h, *seen; // the coefficients on the device, and in pinned memory for the host
  unsigned *arrived;
  Outcome  *outcome;
  unsigned  number;
};

SPMV_PRODUCTS_KERNEL project(OrthogArgs g, bool, const Scalar *x, const Scalar *, Scalar *)
{
  AwaitPrevious();
  LetNextBegin();
  InnerProducts(
      g.basis, [&](unsigned i) { return LoadOrdered(x + i); }, [] { return true; });
  if (!IsLast(g.arrived, gridDim.x)) return;
  AddProducts(g.basis, [&](int j, Scalar sum) { g.h[g.basis.first + j] = g.seen[g.basis.first + j] = sum; });
  if (!g.basis.last) return;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) StoreReleaseSystem(&g.outcome->number, g.number);
}

SPMV_SUBTRACT_KERNEL subtract(OrthogArgs g, bool, const Scalar *, const Scalar *h, Scalar *x)
{
  __shared__ Scalar shared[ORTHOG_CHUNK];
  AwaitPrevious();
  LetNextBegin();
  if ((int)threadIdx.x < g.basis.count) shared[threadIdx.x] = LoadOrdered(h + g.basis.first + threadIdx.x);
  __syncthreads();
  Subtract(
      g.basis, shared, [&](unsigned i) { return x[i]; },
      [&](unsigned i, bool in, Scalar a) {
        if (in) x[i] = a;
      });
  if (!g.basis.last || !IsLast(g.arrived, gridDim.x)) return;
  const PetscReal square = AddSquares(g.basis.squares, gridDim.x);
  if (threadIdx.x) return;
  g.outcome->square = square;
  FenceSystem();
  StoreRelaxedSystem(&g.outcome->number, g.number);
}

} // namespace
} // namespace spmv

using namespace spmv;

struct _n_SpMVCudaOrthog {
  Orthogonalizer  orthog;
  Array<Scalar>   h;
  Array<unsigned> arrived;
  Scalar         *seen    = nullptr; // pinned
  Outcome        *outcome = nullptr; // pinned
  size_t          room    = 0;       // for coefficients
  unsigned        number  = 0;       // of the last call
  StreamOrder     order;

  ~_n_SpMVCudaOrthog()
  {
    if (seen) cudaFreeHost(seen);
    if (outcome) cudaFreeHost(outcome);
  }
  cudaError_t Create()
  {
    SPMV_TRY(orthog.Create());
    SPMV_TRY(arrived.Alloc(1));
    SPMV_TRY(arrived.Zero(nullptr));
    SPMV_TRY(cudaHostAlloc((void **)&outcome, sizeof(*outcome), cudaHostAllocMapped));
    outcome->number = 0;
    return cudaDeviceSynchronize(); // so that work in all streams sees the counter as 0
  }
  cudaError_t Reserve(size_t count)
  {
    if (count <= room) return cudaSuccess;
    const size_t more = std::max(count, 2 * room);
    if (seen) SPMV_TRY(cudaFreeHost(seen)); // waits for the device
    seen = nullptr;
    room = 0;
    SPMV_TRY(cudaHostAlloc((void **)&seen, more * sizeof(Scalar), cudaHostAllocMapped));
    SPMV_TRY(h.Alloc(more));
    SPMV_TRY(orthog.Reserve((int)more));
    room = more;
    return cudaSuccess;
  }
};

cudaError_t SpMVCudaOrthogCreate(SpMVCudaOrthog *o)
{
  *o = nullptr;
  SPMV_TRY(Supported());
  return Guarded([=] {
    std::unique_ptr<_n_SpMVCudaOrthog> made(new _n_SpMVCudaOrthog);
    SPMV_TRY(made->Create());
    *o = made.release();
    return cudaSuccess;
  });
}

cudaError_t SpMVCudaOrthogDestroy(SpMVCudaOrthog *o)
{
  if (!*o) return cudaSuccess;
  const cudaError_t error = cudaDeviceSynchronize(); // kernels may still be writing to host memory
  delete *o;
  *o = nullptr;
  return error;
}

cudaError_t SpMVCudaOrthogReserve(SpMVCudaOrthog o, int count, cudaStream_t stream)
{
  SPMV_TRY(o->order.Enter(stream));
  SPMV_TRY(o->Reserve((size_t)count));
  return o->order.Leave(stream);
}

// Calls launch(args) for the vectors, ORTHOG_CHUNK at a time
template <class F>
static cudaError_t ForChunks(SpMVCudaOrthog o, int n, int count, const PetscScalar *const v[], cudaStream_t stream,
                             F launch)
{
  SPMV_TRY(SpMVCudaOrthogReserve(o, count, stream));
  o->number++;
  SPMV_TRY(o->orthog.ForChunks(n, count, v, [&](const Basis &g) {
    return launch(OrthogArgs{g, o->h, o->seen, o->arrived, o->outcome, o->number});
  }));
  return o->order.Leave(stream);
}

cudaError_t SpMVCudaOrthogProject(SpMVCudaOrthog o, int n, int count, const PetscScalar *const v[],
                                  const PetscScalar *x, cudaStream_t stream)
{
  return ForChunks(o, n, count, v, stream, [=](const OrthogArgs &g) {
    return Launch<project>(g.basis.blocks, ORTHOG_BLOCK, g, stream, false, {(const Scalar *)x});
  });
}

cudaError_t SpMVCudaOrthogSubtract(SpMVCudaOrthog o, int n, int count, const PetscScalar *const v[], PetscScalar *x,
                                   PetscBool summed, cudaStream_t stream)
{
  return ForChunks(o, n, count, v, stream, [=](const OrthogArgs &g) {
    const Scalar *const h = summed ? o->seen : g.h;
    return Launch<subtract>(g.basis.updates, ORTHOG_BLOCK, g, stream, false, {nullptr, h, (Scalar *)x});
  });
}

cudaError_t SpMVCudaOrthogGet(SpMVCudaOrthog o, PetscScalar **h, PetscReal *square, cudaStream_t stream)
{
  for (int turn = 1; __atomic_load_n(&o->outcome->number, __ATOMIC_ACQUIRE) != o->number; turn++) {
    if (turn % 1024) continue;
    const cudaError_t error = cudaStreamQuery(stream);
    if (error == cudaErrorNotReady) {
      ForgetErrors();
      sched_yield();
    } else {
      SPMV_TRY(error);
      if (__atomic_load_n(&o->outcome->number, __ATOMIC_ACQUIRE) != o->number) return cudaErrorUnknown;
    }
  }
  *h      = (PetscScalar *)o->seen;
  *square = o->outcome->square;
  return cudaSuccess;
}
