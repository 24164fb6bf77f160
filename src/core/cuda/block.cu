/*
  The interface in C: what all kinds of blocks have in common.
*/
#include "device.cuh"

using spmv::Scalar;

cudaError_t SpMVCudaFill(SpMVCudaBlock block, const SpMVCudaCSR *csr, cudaStream_t stream)
{
  SpMVCudaCSR use = *csr;
  if (block->from) { // the offsets of A^T are the block's own, the values are looked up in A
    use   = {block->m, block->n, block->nnz, block->it, nullptr, 4, nullptr};
    use.a = csr->a;
  }
  return block->Fill(use, stream);
}

cudaError_t SpMVCudaMult(SpMVCudaBlock block, PetscBool conjugate, const PetscScalar *x, const PetscScalar *z, PetscScalar *y, cudaStream_t stream)
{
  return block->Mult((bool)conjugate, (const Scalar *)x, (const Scalar *)z, (Scalar *)y, stream);
}

cudaError_t SpMVCudaMultScaled(SpMVCudaBlock block, PetscScalar alpha, const PetscScalar *x, PetscScalar beta, PetscScalar *y, cudaStream_t stream)
{
  Scalar a, b;
  memcpy(&a, &alpha, sizeof(a));
  memcpy(&b, &beta, sizeof(b));
  return block->Scaled(a, (const Scalar *)x, b, (Scalar *)y, stream);
}

cudaError_t SpMVCudaSetReorder(SpMVCudaBlock block, PetscBool reorder)
{
  return block->SetReorder((bool)reorder);
}

cudaError_t SpMVCudaDestroy(SpMVCudaBlock *block)
{
  delete *block; // waits for the device
  *block = nullptr;
  return cudaGetLastError();
}

void SpMVCudaGetStats(SpMVCudaBlock block, SpMVStats *stats)
{
  memset(stats, 0, sizeof(*stats));
  block->Stats(stats);
  stats->nonzeros = block->nnz;
  stats->bytes += block->it.Bytes() + block->from.Bytes();
}

cudaError_t SpMVCudaVisit(SpMVCudaBlock block, SpMVVisitor entry, void *ctx)
{
  SPMV_TRY(cudaDeviceSynchronize());
  return block->Visit(entry, ctx);
}

namespace spmv {

cudaError_t Choose(const SpMVCudaCSR &csr, Choice c, cudaStream_t stream, _n_SpMVCudaBlock **block)
{
  int    bs = 1;
  Survey survey;
  SPMV_TRY(FindNodeSize(csr, c.node ? c.node : 6, stream, &bs));
  if (c.node && bs != c.node) bs = 1;
  SPMV_TRY(TakeSurvey(csr, bs, stream, &survey));

  const int64_t entries = csr.nnz / ((int64_t)bs * bs), units = csr.m / bs, value = (int64_t)bs * bs * (int64_t)sizeof(Scalar);
  if (c.diagonals && survey.empty <= units / 2) {
    // A column index takes two or four bytes of a slice's entry; diagonals may be padded by as much
    SPMV_TRY(DiagonalsCreate(csr, bs, entries * (value + 3) / value + WARP, stream, block));
    if (*block) return cudaSuccess;
  }
  return SlicesCreate(csr, bs, survey, c.rules(survey, bs, entries), bs > 1 ? c.nodes : c.entries, stream, block);
}

} // namespace spmv
