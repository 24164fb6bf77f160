/*
  A batch on the device: the core's layout of the whole batch, and the choice between this layout and slices.
*/
#include "kernels.cuh"
#include "mat/impls/sellp/sellpcuda.h"

using namespace batch;

namespace {

struct Core : _n_BatchCuda {
  SpMVCudaStore store = nullptr;
  SpMVCudaCSR   csr   = {};
  Array<char>   offsets;

  ~Core() override
  {
    if (store) (void)SpMVCudaDestroy(&store);
  }

  // Creates the layout of the batch as one CSR matrix, whose columns must be numbered from its first row
  template <class I> cudaError_t CreateAs(const BatchPattern *B, bool transpose, cudaStream_t stream)
  {
    const size_t   m = (size_t)BatchRows(B), nz = (size_t)BatchPatternEntries(B);
    Array<I>       i, j;
    std::vector<I> column(nz);
    SELLPParams    params;
    SpMVStats      stats = {};
    for (PetscInt p = 0; p < B->problems; p++) {
      for (PetscInt k = B->i[B->first[p]]; k < B->i[B->first[p + 1]]; k++) column[k] = (I)(B->j[k] + B->first[p]);
    }
    SPMV_TRY(Upload(j, column.data(), nz));
    std::vector<I>().swap(column);
    SPMV_TRY(UploadAs(i, B->i, m + 1));
    csr = {(PetscInt64)m, (PetscInt64)m, (PetscInt64)nz, (I *)i, (I *)j, (int)sizeof(I), nullptr};
    SELLPParamsDefault(&params);
    SPMV_TRY(
        SpMVCudaSELLPSetUp(&csr, &params, SPMVCUDA_KERNEL_AUTO, transpose ? PETSC_TRUE : PETSC_FALSE, stream, &store));
    SpMVCudaGetStats(store, &stats); // reads the slices back: not in each refresh
    name = stats.kernel;
    // A refresh needs the row offsets, not the columns
    SPMV_TRY(offsets.Alloc((m + 1) * sizeof(I)));
    SPMV_TRY(cudaMemcpyAsync((char *)offsets, (I *)i, (m + 1) * sizeof(I), cudaMemcpyDeviceToDevice, stream));
    csr.i = (char *)offsets;
    csr.j = nullptr;
    return cudaStreamSynchronize(stream);
  }

  cudaError_t Create(const BatchPattern *B, bool transpose, cudaStream_t stream)
  {
    return BatchPatternEntries(B) < INT_MAX ? CreateAs<int>(B, transpose, stream)
                                            : CreateAs<int64_t>(B, transpose, stream);
  }

  cudaError_t Fill(cudaStream_t stream) override
  {
    csr.a = (const PetscScalar *)(Scalar *)source;
    return SpMVCudaFill(store, &csr, stream);
  }

  cudaError_t Mult(bool conjugate, const Scalar *x, const Scalar *z, Scalar *y, cudaStream_t stream) override
  {
    return SpMVCudaMult(store,
                        {conjugate ? SPMVCUDA_CONJUGATE : SPMVCUDA_MULT, (const PetscScalar *)x, (const PetscScalar *)z,
                         (PetscScalar *)y},
                        stream);
  }

  void Stats(BatchStats *s) const override
  {
    SpMVStats stats = {};
    SpMVCudaGetStats(store, &stats);
    s->stored = stats.stored;
    s->bytes  = stats.bytes;
    s->slices = stats.slices;
    s->index  = 0;
  }
};

cudaError_t CreateCore(Side &side, cudaStream_t stream, _n_BatchCuda **b)
{
  Core *c;
  SPMV_TRY(side.New(&c, false, b)); // the core transposes the pattern itself
  return c->Create(side.A, side.transpose, stream);
}

/*
  Only slices can store a shared pattern once. For other batches, the core's layout is faster as long as everything
  stays in the L2 cache, because its warps do not wait for each other; a quarter of the cache is reserved for other
  data. For larger batches slices are faster, since they read each x and write each y once and in order, unless the
  core's layout needs considerably fewer bytes (it stores no columns for stencils, dense blocks and runs) or x does not
  fit in shared memory.
*/
cudaError_t Choose(Side &side, cudaStream_t stream, _n_BatchCuda **b)
{
  const BatchPattern *A    = side.A;
  PetscInt            most = 0;
  for (PetscInt p = 0; p < A->problems; p++) most = PetscMax(most, A->first[p + 1] - A->first[p]);
  if (!A->sharing) {
    const cudaError_t error = CreateCore(side, stream, b);
    if (error == cudaErrorNotSupported) { // slices may be supported
      delete *b;
      *b = nullptr;
    } else {
      BatchStats stats = {};
      int        cache;
      if (error != cudaSuccess || most > BATCH_BLOCK_COLUMNS) return error;
      SPMV_TRY(DeviceHas(cudaDevAttrL2CacheSize, &cache));
      (*b)->Stats(&stats);
      if (4 * (stats.bytes + 2 * (PetscInt64)sizeof(Scalar) * BatchRows(A)) < 3 * (PetscInt64)cache) return error;
      if (BatchPatternEntries(A) * (double)(sizeof(Scalar) + (most > 255 ? 2 : 1)) >
          SLICES_MAY_TAKE * (double)stats.bytes)
        return error;
    }
  }
  return CreateSlices(side, b);
}

} // namespace

cudaError_t BatchCudaCreate(const BatchPattern *A, PetscBool transpose, BatchKernel kernel, cudaStream_t stream,
                            BatchCuda *batch)
{
  Side          side(A, (bool)transpose);
  _n_BatchCuda *b = nullptr;
  cudaError_t   error;

  *batch = nullptr;
  if (BatchRows(A) > SPMVCUDA_MAX_SIZE || A->problems > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;
  SPMV_TRY(Supported());
  try {
    if (kernel == BATCH_AUTO || (kernel == BATCH_SELLP && A->sharing))
      error = Choose(side, stream, &b);
    else if (kernel == BATCH_SELLP)
      error = CreateCore(side, stream, &b);
    else if (kernel == BATCH_SLICES)
      error = CreateSlices(side, &b);
    else
      error = CreatePaper(side, kernel, &b);
  } catch (const std::bad_alloc &) { // out of host memory
    error = cudaErrorMemoryAllocation;
  }
  if (error != cudaSuccess) {
    delete b;
    (void)cudaGetLastError();
    return error;
  }
  *batch = b;
  return cudaSuccess;
}

/*
  Copies values to the device in the order of the matrix, and then into the layout. After the first call for only some
  of the problems, the copy in the order of the matrix is kept, so that later calls need to copy only the values that
  changed.
*/
cudaError_t BatchCudaFill(BatchCuda b, const BatchPattern *A, const PetscScalar *a, PetscInt first, PetscInt last,
                          cudaStream_t stream)
{
  const bool all   = (first <= 0 && last >= A->problems) || A->sharing == BATCH_SHARE_VALUES;
  int64_t    begin = 0, end = b->values;
  if (!all) b->keep_source = true;
  SPMV_TRY(b->order.Enter(stream, true));
  SPMV_TRY(cudaStreamSynchronize(stream)); // wait for products and fills that read the values
  if (!b->source)
    SPMV_TRY(b->source.Alloc((size_t)b->values));
  else if (!all) {
    begin = A->sharing ? first * b->entries : A->i[A->first[first]];
    end   = A->sharing ? last * b->entries : A->i[A->first[last]];
  }
  void        *to    = (Scalar *)b->source + begin;
  const void  *from  = a + begin;
  const size_t bytes = (size_t)(end - begin) * sizeof(Scalar);
  cudaError_t  error = bytes ? SpMVCudaUpload(1, &to, &from, &bytes) : cudaSuccess;
  if (error == cudaSuccess) error = b->Fill(stream);
  if (error == cudaSuccess) error = b->order.Leave(stream);
  // synchronizes; after an error the next call copies all values
  if (error != cudaSuccess || (!b->read_source && !b->keep_source)) b->source.Free();
  return error;
}

cudaError_t BatchCudaMult(BatchCuda b, PetscBool conjugate, const PetscScalar *x, const PetscScalar *z, PetscScalar *y,
                          cudaStream_t stream)
{
  auto product = [=](const Operands &v) { return b->Mult(conjugate, v.x, v.z, v.y, stream); };
  SPMV_TRY(b->order.Enter(stream));
  SPMV_TRY(b->arrays.Call(b->rows, b->rows, x, z, y, stream, product));
  return b->order.Leave(stream);
}

void BatchCudaStats(BatchCuda b, BatchStats *s)
{
  b->Stats(s);
  s->kernel = b->name;
}

cudaError_t BatchCudaDestroy(BatchCuda *b)
{
  delete *b;
  *b = nullptr;
  return cudaSuccess;
}
