/*
  The code that the Krylov methods on the device share: their memory, the sums over ranks, and the progress that the
  host sees.
*/
#include "krylov.cuh"
#include "core/cuda/stores.cuh"

using namespace spmv;

namespace {

__global__ void __launch_bounds__(KRYLOV_BLOCK) Unit(int n, int bs, int j, Scalar *v)
{
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) Write(v + i, FromReal(i % bs == j));
}

} // namespace

cudaError_t _n_SpMVCudaKrylov::CreateSums()
{
  int multiprocessors;
  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &multiprocessors));
  blocks = (unsigned)multiprocessors * Tuning::KRYLOV_BLOCKS;
  SPMV_TRY(state.Alloc(1));
  SPMV_TRY(partial.Alloc((size_t)blocks * SUMS));
  SPMV_TRY(sums.Alloc(SPMV_KRYLOV_SUMS));
  SPMV_TRY(count.Alloc(2));
  SPMV_TRY(count.Zero(nullptr));
  SPMV_TRY(cudaHostAlloc((void **)&progress, sizeof(*progress), cudaHostAllocMapped));
  ranks.number = count + 1;
  ranks.sums   = sums;
  SPMV_TRY(sums.Zero(nullptr));
  return cudaDeviceSynchronize(); // so that work in all streams sees the counters as 0
}

cudaError_t _n_SpMVCudaKrylov::Prepare(SolveArgs &g, cudaStream_t stream)
{
  if (g.n > SPMVCUDA_MAX_SIZE || g.bs > SPMV_KRYLOV_BLOCK) return cudaErrorNotSupported;
  g.state    = state;
  g.partial  = partial;
  g.arrived  = count;
  g.progress = progress;
  g.ranks    = ranks;
  SPMV_TRY(order.Enter(stream, true));
  Forget();
  return cudaSuccess;
}

cudaError_t _n_SpMVCudaKrylov::Begin(SolveArgs &g, const State &first, cudaStream_t stream)
{
  SPMV_TRY(Prepare(g, stream));
  beginning = first; // CUDA may read it after the call
  return cudaMemcpyAsync((State *)state, &beginning, sizeof(beginning), cudaMemcpyHostToDevice, stream);
}

cudaError_t _n_SpMVCudaKrylov::Multiply(SpMVCudaStore A, Product p, int n, cudaStream_t stream, Partials *partials)
{
  unsigned warps = A->m == A->n && A->m == n ? A->WarpsOf(p.exchange ? FUSED_DOTS : DOTS) : 0;
  // without memory for the sums, another kernel computes them: other ranks count on the product's exchange
  if (warps && ReservePartials((size_t)warps * Dots::NUMBERS) != cudaSuccess) {
    ForgetErrors();
    warps = 0;
  }
  *partials = {product_partial, warps};
  if (!warps)
    p = {p.form, p.v, p.exchange, p.receives};
  else
    p.dots->partial = product_partial;
  SPMV_TRY(A->order.Enter(stream));
  SPMV_TRY(A->Multiply(p, stream));
  return A->Leave(stream);
}

cudaError_t SpMVCudaKrylovCreate(PetscBool sums, SpMVCudaKrylov *k)
{
  *k = nullptr;
  SPMV_TRY(Supported());
  return Guarded([=] {
    std::unique_ptr<_n_SpMVCudaKrylov> made(new _n_SpMVCudaKrylov);
    SPMV_TRY(Load((const void *)Unit));
    if (sums) SPMV_TRY(made->CreateSums());
    *k = made.release();
    return cudaSuccess;
  });
}

cudaError_t SpMVCudaKrylovDestroy(SpMVCudaKrylov *k)
{
  if (!*k) return cudaSuccess;
  // kernels may still be writing to host memory
  const cudaError_t error = (*k)->progress ? cudaDeviceSynchronize() : cudaSuccess;
  delete *k;
  *k = nullptr;
  return error;
}

void SpMVCudaKrylovSetAllReduce(SpMVCudaKrylov k, SpMVCudaKrylovAllReduce allreduce, void *ctx)
{
  k->allreduce     = allreduce;
  k->ctx           = ctx;
  k->ranks.outside = allreduce != nullptr;
}

cudaError_t SpMVCudaKrylovGetOffer(SpMVCudaKrylov k, int size, cudaIpcMemHandle_t *mine)
{
  const size_t whole = 2 << 20; // an allocation in the same piece of 2 MiB would be accessible to other processes, too
  SPMV_TRY(k->mail.Alloc((2 * (size_t)size * sizeof(Mail) + whole - 1) / whole * whole));
  SPMV_TRY(cudaMemset(k->mail, 0, k->mail.Bytes()));
  k->ranks.size = size;
  return cudaIpcGetMemHandle(mine, (char *)k->mail);
}

cudaError_t SpMVCudaKrylovOpen(SpMVCudaKrylov k, int rank, const cudaIpcMemHandle_t offers[])
{
  return Guarded([=] {
    std::vector<Mail *> theirs;
    k->opened.resize((size_t)k->ranks.size, nullptr);
    for (int r = 0; r < k->ranks.size; r++) {
      if (r != rank) SPMV_TRY(cudaIpcOpenMemHandle(&k->opened[r], offers[r], cudaIpcMemLazyEnablePeerAccess));
      theirs.push_back(r == rank ? (Mail *)(char *)k->mail : (Mail *)k->opened[r]);
    }
    SPMV_TRY(Upload(k->theirs, theirs, nullptr));
    k->ranks.rank   = rank;
    k->ranks.mine   = (Mail *)(char *)k->mail;
    k->ranks.theirs = k->theirs;
    return cudaDeviceSynchronize();
  });
}

cudaError_t SpMVCudaKrylovClose(SpMVCudaKrylov k)
{
  cudaError_t first = cudaDeviceSynchronize();
  for (void *&p : k->opened) {
    const cudaError_t error = p ? cudaIpcCloseMemHandle(p) : cudaSuccess;
    if (first == cudaSuccess) first = error;
    p = nullptr;
  }
  return first;
}

cudaError_t SpMVCudaKrylovUnit(int n, int bs, int j, PetscScalar *v, cudaStream_t stream)
{
  SPMV_LAUNCH(n, KRYLOV_BLOCK, stream, Unit, n, bs, j, (Scalar *)v);
  return cudaSuccess;
}

cudaError_t SpMVCudaKrylovGetArray(SpMVCudaKrylov k, size_t count, PetscScalar **d)
{
  if (!k->array || k->array.Bytes() < count * sizeof(Scalar)) SPMV_TRY(k->array.Alloc(count));
  *d = (PetscScalar *)(Scalar *)k->array;
  return cudaSuccess;
}

SpMVKrylovStatus SpMVCudaKrylovGetStatus(SpMVCudaKrylov k)
{
  const unsigned long long now = __atomic_load_n(&k->progress->status, __ATOMIC_ACQUIRE);
  return {(SpMVKrylovReason)(now & 0xff), (int)(now >> 8 & 0xfffffff), (int)(now >> 36)};
}

PetscBool SpMVCudaKrylovReadNorm(SpMVCudaKrylov k, int iteration, PetscReal *norm)
{
  unsigned long long      *place = &k->progress->norm[iteration % SPMV_KRYLOV_NORMS];
  const unsigned long long bits  = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  double                   value;
  if (bits == EMPTY) return PETSC_FALSE;
  __atomic_store_n(place, EMPTY, __ATOMIC_RELEASE); // before the iteration that writes it again is launched
  memcpy(&value, &bits, sizeof(value));
  *norm = (PetscReal)value;
  return PETSC_TRUE;
}
