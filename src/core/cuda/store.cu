/*
  The C interface, and the code that all stores have in common.
*/
#include "product/epilogue.cuh"

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

// ------------------------------------------------------------------------------------------------ products

static Use UseOf(const Product &p)
{
  return p.dots ? p.exchange ? FUSED_DOTS : DOTS : p.exchange ? FUSED : MULT;
}

cudaError_t _n_SpMVCudaStore::Multiply(const Product &p, cudaStream_t stream)
{
  Operands   v = p.v;
  KernelCall call;
  if (!For(UseOf(p), p, &call)) return cudaErrorNotSupported;
  if (some_rows) {
    SPMV_TRY(SetRows(v, stream));
    v.z = v.y;
  }
  return call.Run(p.form, v, stream);
}

cudaError_t _n_SpMVCudaStore::SetRows(const Operands &v, cudaStream_t stream) const
{
  const size_t bytes = (size_t)m * sizeof(Scalar);
  return !v.z         ? cudaMemsetAsync(v.y, 0, bytes, stream)
         : v.z == v.y ? cudaSuccess
                      : cudaMemcpyAsync(v.y, v.z, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t _n_SpMVCudaStore::MultColumns(SpMVCudaForm form, const Operands &v, const Columns &c, cudaStream_t stream)
{
  for (int64_t q = 0; q < c.count; q++) SPMV_TRY(Multiply({form, v.From(q, c)}, stream));
  return cudaSuccess;
}

unsigned _n_SpMVCudaStore::WarpsOf(Use use)
{
  Dots          dots{};
  const Product p = {SPMVCUDA_MULT, {}, nullptr, false, &dots};
  KernelCall    call;
  if (!For(use, p, &call) || !call.grid) return 0;
  if (call.kernel->Load() == cudaSuccess) return call.grid * (call.block / WARP);
  ForgetErrors();
  return 0;
}

cudaError_t _n_SpMVCudaStore::Leave(cudaStream_t stream)
{
  cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
  if (!settled) {
    SPMV_TRY(cudaStreamIsCapturing(stream, &captured));
    settled = captured == cudaStreamCaptureStatusNone; // a captured product has not run
  }
  return order.Leave(stream);
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
    return store->Multiply({p.form, v, p.exchange, (bool)p.receives}, stream);
  });
}

PetscBool SpMVCudaSends(SpMVCudaStore store)
{
  return store->WarpsOf(FUSED) ? PETSC_TRUE : PETSC_FALSE;
}

// ------------------------------------------------------------------------------------------------ the rest

cudaError_t SpMVCudaFuseOffdiagonal(SpMVCudaStore store, const SpMVCudaCSR *csr, PetscInt64 most, cudaStream_t stream)
{
  SpMVStats stats = {};
  SPMV_TRY(store->order.Enter(stream, true));
  SPMV_TRY(cudaStreamSynchronize(stream)); // products may still read the lists that are freed
  store->fused.reset();
  if (!store->WarpsOf(FUSED) || csr->m != store->m) return cudaErrorNotSupported;
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
