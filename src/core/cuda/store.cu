/*
  The C interface, and the code that all stores have in common.
*/
#include "stores.cuh"

using namespace spmv;

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

cudaError_t SpMVCudaMult(SpMVCudaStore store, SpMVCudaForm form, const PetscScalar *x, const PetscScalar *z,
                         PetscScalar *y, cudaStream_t stream)
{
  return Multiply(store, x, z, y, stream, [=](const Operands &v) { return store->Mult(form, v, stream); });
}

cudaError_t SpMVCudaMultColumns(SpMVCudaStore store, SpMVCudaForm form, PetscInt64 count, const PetscScalar *x,
                                PetscInt64 ldx, const PetscScalar *z, PetscInt64 ldz, PetscScalar *y, PetscInt64 ldy,
                                cudaStream_t stream)
{
  if (!store->m) return cudaSuccess;
  if (count < 2 || !IsAligned(x) || !IsAligned(z) || !IsAligned(y)) {
    for (PetscInt64 q = 0; q < count; q++)
      SPMV_TRY(SpMVCudaMult(store, form, x + q * ldx, z ? z + q * ldz : nullptr, y + q * ldy, stream));
    return cudaSuccess;
  }
  SPMV_TRY(store->order.Enter(stream));
  SPMV_TRY(
      store->MultColumns(form, {(const Scalar *)x, (const Scalar *)z, (Scalar *)y}, {ldx, ldz, ldy, count}, stream));
  return store->Leave(stream);
}

cudaError_t SpMVCudaMultFused(SpMVCudaStore store, SpMVCudaForm form, const PetscScalar *x, const PetscScalar *halo,
                              const PetscScalar *z, PetscScalar *y, PetscBool early, cudaStream_t stream)
{
  return Multiply(store, x, z, y, stream, [=](const Operands &v) {
    // not early if x has just been copied
    return store->MultFused(form, v, (const Scalar *)halo, early && v.x == (const Scalar *)x, stream);
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
  SPMV_TRY(store->order.Enter(stream, true));
  SPMV_TRY(store->fused->Fill(*csr, store->single, stream));
  return store->order.Leave(stream);
}

PetscBool SpMVCudaHasOffdiagonal(SpMVCudaStore store)
{
  return store->fused ? PETSC_TRUE : PETSC_FALSE;
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
