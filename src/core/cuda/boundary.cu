/*
  Boundary rows, stored a second time so that they can be multiplied in a different stream than the interior rows.
*/
#include "stores.cuh"

using namespace spmv;

static constexpr SpMVNames BOUNDARY_ROWS = SPMV_NAMES("CUDA slices of the boundary rows");

static cudaError_t SetBoundary(SpMVCudaStore store, const SpMVCudaCSR *csr, int count, const int row[], PetscInt64 most, cudaStream_t stream)
{
  const int bs = store->UnitSize();
  if (!bs || csr->nnz > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;

  const int             units = store->m / bs;
  std::vector<unsigned> mark;
  std::vector<int>      unit, rows;
  Array<unsigned>       marked, skipped;
  mark.resize(((size_t)units + WARP - 1) / WARP);
  for (int k = 0; k < count; k++) mark[row[k] / bs / WARP] |= 1u << row[k] / bs % WARP;
  SPMV_TRY(Upload(marked, mark, stream));
  SPMV_TRY(skipped.Alloc(mark.size(), stream));
  SPMV_TRY(skipped.Zero(stream));
  store->settled = false;
  SPMV_TRY(store->SetBoundary(marked, skipped, stream));
  SPMV_TRY(Fetch(mark.data(), (unsigned *)skipped, mark.size(), stream));
  for (int u = 0; u < units; u++) {
    if (!(mark[u / WARP] >> u % WARP & 1)) continue;
    unit.push_back(u);
    for (int e = 0; e < bs; e++) rows.push_back(u * bs + e);
  }
  if ((PetscInt64)rows.size() > most) return cudaErrorNotSupported;

  Array<int>        units_of_y, list, it, jt, value_index;
  Nodes             nodes(bs);
  Survey            survey;
  SliceRules        rules;
  _n_SpMVCudaStore *b = nullptr;
  SPMV_TRY(Upload(units_of_y, unit, stream));
  SPMV_TRY(Upload(list, rows, stream));
  SPMV_TRY(SelectRows(*csr, list, (int)rows.size(), stream, it, jt, value_index));

  const SpMVCudaCSR boundary = {(PetscInt64)rows.size(), csr->n, (PetscInt64)(value_index.Bytes() / sizeof(int)), it, jt, 4, nullptr};
  if (store->nodes.list) SPMV_TRY(ListBlocks(boundary, bs, INT64_MAX, stream, &nodes));
  SPMV_TRY(TakeSurvey(boundary, nodes, stream, &survey));
  rules.sigma      = 1;
  rules.per_thread = Tuning::PER_THREAD_FEW;
  SPMV_TRY(ShareOut(boundary, nodes, survey, &rules));
  cudaError_t error = SlicesCreate(boundary, nodes, nullptr, store->single, survey, rules, BOUNDARY_ROWS, &units_of_y, stream, &b);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream); // the arrays of the pattern are freed
  store->boundary.reset(b);
  if (error != cudaSuccess) {
    store->boundary.reset();
    return error;
  }
  b->Of(boundary);
  b->it.Swap(it);
  b->value_index.Swap(value_index);
  return cudaSuccess;
}

cudaError_t SpMVCudaSetBoundary(SpMVCudaStore store, const SpMVCudaCSR *csr, int count, const int row[], PetscInt64 most, cudaStream_t stream)
{
  return Guarded([=] { return SetBoundary(store, csr, count, row, most, stream); });
}
