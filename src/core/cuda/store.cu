/*
  The C interface, and the code that all stores have in common.
*/
#include "stores.cuh"

using namespace spmv;

namespace spmv {
Limits limits;
}

PetscBool SpMVCudaIsSupported(void)
{
  return Supported() == cudaErrorNotSupported ? PETSC_FALSE : PETSC_TRUE;
}

static cudaError_t Fill(SpMVCudaStore store, const SpMVCudaCSR *csr, cudaStream_t stream)
{
  SpMVCudaCSR use = *csr;
  if (store->value_index) { // a store of A^T has its own row offsets; its values are read from A
    use   = {store->m, store->n, store->nnz, store->it, nullptr, 4, nullptr};
    use.a = csr->a;
  }
  store->settled = false;
  return store->Fill(use, stream);
}

cudaError_t SpMVCudaFill(SpMVCudaStore store, const SpMVCudaCSR *csr, cudaStream_t stream)
{
  SPMV_TRY(store->order.Enter(stream, true));
  SPMV_TRY(Fill(store, csr, stream));
  return store->order.Leave(stream);
}

static cudaError_t MultColumns(SpMVCudaStore store, const SpMVCudaProduct &p, cudaStream_t stream)
{
  const Columns &c = *p.columns;
  if (!store->m) return cudaSuccess;
  if (c.count < 2 || !IsAligned(p.x) || !IsAligned(p.z) || !IsAligned(p.y)) {
    for (PetscInt64 q = 0; q < c.count; q++)
      SPMV_TRY(
          SpMVCudaMult(store, {p.form, p.x + q * c.ldx, p.z ? p.z + q * c.ldz : nullptr, p.y + q * c.ldy}, stream));
    return cudaSuccess;
  }
  SPMV_TRY(store->order.Enter(stream));
  SPMV_TRY(store->MultColumns(p.form, {(const Scalar *)p.x, (const Scalar *)p.z, (Scalar *)p.y}, c, stream));
  return store->Leave(stream);
}

cudaError_t SpMVCudaMult(SpMVCudaStore store, SpMVCudaProduct p, cudaStream_t stream)
{
  if (p.columns) return MultColumns(store, p, stream);
  return Multiply(store, p.x, p.z, p.y, stream, [=](const Operands &v) {
    if (p.begin == SPMVCUDA_BEGIN_ALONE) return store->Mult(p.form, v, stream);
    // not early if x has just been copied
    return store->MultFused(p.form, v, (const Scalar *)p.halo,
                            p.begin == SPMVCUDA_BEGIN_WITH_EXCHANGE && v.x == (const Scalar *)p.x, stream);
  });
}

cudaError_t SpMVCudaFuseOffdiagonal(SpMVCudaStore store, const SpMVCudaCSR *csr, PetscInt64 most, cudaStream_t stream)
{
  SpMVStats stats = {};
  SPMV_TRY(store->order.Enter(stream, true));
  SPMV_TRY(cudaStreamSynchronize(stream)); // products may still read the lists that are freed
  store->fused.reset();
  if (!store->CanFuseOffdiagonal() || csr->m != store->m) return cudaErrorNotSupported;
  store->Stats(&stats);
  std::unique_ptr<OffdiagonalRows> rows(new (std::nothrow) OffdiagonalRows);
  if (!rows) return cudaErrorMemoryAllocation;
  SPMV_TRY(rows->Create(*csr, (int)stats.node, most, stream));
  store->fused = std::move(rows);
  return store->order.Leave(stream);
}

cudaError_t SpMVCudaFillOffdiagonal(SpMVCudaStore store, const SpMVCudaCSR *csr, cudaStream_t stream)
{
  if (!store->fused) return cudaErrorNotSupported;
  SPMV_TRY(store->order.Enter(stream, true));
  SPMV_TRY(store->fused->Fill(*csr, store->single, stream));
  return store->order.Leave(stream);
}

cudaError_t SpMVCudaDestroy(SpMVCudaStore *store)
{
  // kernels may still be writing to memory that is freed with the store, including host memory
  const cudaError_t error = cudaDeviceSynchronize();
  delete *store;
  *store = nullptr;
  return error == cudaSuccess ? PoolKeep() : error;
}

void SpMVCudaGetStats(SpMVCudaStore store, SpMVStats *stats)
{
  memset(stats, 0, sizeof(*stats));
  store->Stats(stats);
  stats->nonzeros = store->nnz;
  stats->kernel   = store->names[store->single];
  stats->bytes += store->it.Bytes() + store->value_index.Bytes() + store->nodes.Bytes();
  if (store->fused) stats->bytes += (PetscInt64)store->fused->Bytes();
}

cudaError_t SpMVCudaVisit(SpMVCudaStore store, SpMVVisitor entry, void *ctx)
{
  SPMV_TRY(cudaDeviceSynchronize());
  return Guarded([=] { return store->Visit(entry, ctx); });
}
