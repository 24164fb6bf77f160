/*
  The stored matrix' base class, the layouts that derive from it, and the choice between them.
*/
#pragma once

#include "view.cuh"
#include <climits>
#include <cstring>
#include <functional>
#include <memory>

namespace spmv {

/*
  The off-diagonal block of a parallel matrix as a product of the diagonal block adds it, row by row, once it has summed up its own: CSR of groups of 32
  units, those without an entry left out
*/
struct Offdiagonal {
  const int    *slot;  // of each group: which of those that are kept it is, or -1
  const int    *start; // of each row of these, and the end of the last
  const int    *col;
  const Scalar *value;
  const Scalar *halo; // NULL: nothing is added

  // d += what the rows of a unit have there
  template <int BS> __device__ __forceinline__ void Add(int slot, int unit, Scalar *d) const
  {
    if (slot < 0) return;
    AwaitPrevious(); // for the halo
    constexpr int BATCH = 4;
#pragma unroll
    for (int e = 0; e < BS; e++) {
      const int *p = start + ((int64_t)slot * WARP + unit % WARP) * BS + e;
      for (int q = p[0]; q < p[1]; q += BATCH) {
        Scalar a[BATCH], h[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
          a[b] = h[b] = Num::zero();
          if (q + b >= p[1]) continue;
          a[b] = value[q + b];
          h[b] = Num::fresh(halo + col[q + b]);
        }
#pragma unroll
        for (int b = 0; b < BATCH; b++) d[e] = Num::fma(a[b], h[b], d[e]);
      }
    }
  }
};

struct OffdiagonalRows {
  Array<int>    slot, start, col;
  Array<Scalar> value;

  cudaError_t Create(const SpMVCudaCSR &, int bs, PetscInt64 most, cudaStream_t); // cudaErrorNotSupported: too many, or too long
  cudaError_t Fill(const SpMVCudaCSR &, bool single, cudaStream_t);
  Offdiagonal With(const Scalar *halo) const
  {
    return {slot, start, col, value, halo};
  }
  size_t Bytes() const
  {
    return slot.Bytes() + start.Bytes() + col.Bytes() + value.Bytes();
  }
};

} // namespace spmv

// All that a kernel may be called, as constants: whoever reads the statistics may keep the pointer
#define SPMV_NAMES(name)                                                                                        \
  {                                                                                                             \
    name, name ", values in single precision", name ", measured", name ", values in single precision, measured" \
  }
using SpMVNames = const char *const[4];

struct _n_SpMVCudaStore {
  int                m = 0, n = 0;
  int64_t            nnz      = 0;
  const char *const *names    = nullptr; // SpMVNames of the kernel
  bool               single   = false;   // values are stored as spmv::Single
  bool               measured = false;   // it was the fastest of several
  spmv::Array<int>   it;                 // transposed blocks, and those of rows apart: their row offsets,
  spmv::Array<int>   from;               // and where their values are found in A

  std::unique_ptr<_n_SpMVCudaStore>      boundary; // the rows that may be multiplied apart from the others, once more
  std::unique_ptr<spmv::OffdiagonalRows> fused;    // the off-diagonal block, where this one's product adds it

  spmv::StreamOrder         order;          // of fills and products, which share partial sums and values
  spmv::Array<spmv::Scalar> copy_x, copy_y; // of arrays that are not aligned

  virtual ~_n_SpMVCudaStore() = default;
  void Of(const SpMVCudaCSR &csr)
  {
    m   = (int)csr.m;
    n   = (int)csr.n;
    nnz = csr.nnz;
  }
  virtual cudaError_t Fill(const SpMVCudaCSR &, cudaStream_t) = 0; // a of A where `from` is set, i always of this block
  virtual cudaError_t Mult(bool conjugate, const spmv::Scalar *x, const spmv::Scalar *z, spmv::Scalar *y, cudaStream_t) = 0;
  // y = A x or z + A x beside the kernel before in the stream, which writes nothing of it but the halo: with `early` begins with that one, and lets the
  // next begin. With a halo, what `ghosts` add, where HasOffdiagonal()
  virtual cudaError_t MultFused(const spmv::Scalar *x, const spmv::Scalar *, const spmv::Scalar *z, spmv::Scalar *y, bool, cudaStream_t stream)
  {
    return Mult(false, x, z, y, stream);
  }
  virtual bool CanFuseOffdiagonal() const
  {
    return false;
  }
  virtual bool SkipsEmpty() const // onto y, z = y, rows without entries are neither read nor written
  {
    return false;
  }
  virtual int UnitSize() const // rows of a unit, where the next two work; 0 = they do not
  {
    return 0;
  }
  // MultInterior() is to leave alone the units in `want`, bit u % 32 of word u / 32, and may leave alone more: `all`, zeros before
  virtual cudaError_t SetBoundary(const unsigned *, unsigned *, cudaStream_t)
  {
    return cudaErrorNotSupported;
  }
  virtual cudaError_t MultInterior(const spmv::Scalar *, const spmv::Scalar *, spmv::Scalar *, cudaStream_t)
  {
    return cudaErrorNotSupported;
  }
  virtual void        Stats(SpMVStats *) const            = 0; // what it adds: bytes includes its own arrays only
  virtual cudaError_t Visit(SpMVVisitor, void *ctx) const = 0;
};

namespace spmv {

// product(x, z, y) in its turn, on aligned arrays: those given, or copies
template <class F> cudaError_t Multiply(SpMVCudaStore block, const PetscScalar *x, const PetscScalar *z, PetscScalar *y, cudaStream_t stream, F product)
{
  SPMV_TRY(block->order.Enter(stream));
  if (IsAligned(x) && IsAligned(z) && IsAligned(y))
    SPMV_TRY(product((const Scalar *)x, (const Scalar *)z, (Scalar *)y));
  else {
    const size_t rows = (size_t)block->m * sizeof(Scalar), columns = (size_t)block->n * sizeof(Scalar);
    if (!block->copy_x) SPMV_TRY(block->copy_x.Alloc((size_t)block->n));
    if (!block->copy_y) SPMV_TRY(block->copy_y.Alloc((size_t)block->m));
    SPMV_TRY(cudaMemcpyAsync(block->copy_x, x, columns, cudaMemcpyDeviceToDevice, stream));
    if (z) SPMV_TRY(cudaMemcpyAsync(block->copy_y, z, rows, cudaMemcpyDeviceToDevice, stream));
    SPMV_TRY(product(block->copy_x, z ? (const Scalar *)block->copy_y : nullptr, block->copy_y));
    SPMV_TRY(cudaMemcpyAsync(y, block->copy_y, rows, cudaMemcpyDeviceToDevice, stream));
  }
  return block->order.Leave(stream);
}

// How slices are formed; what makes sellp and evchyb different on the device is written here
struct SliceRules {
  int  sigma      = 0;     // units are sorted by length within windows of so many; 0 = in the whole block, 1 = not at all
  bool by_column  = false; // sort ascending by length, then by first column (EVC-HYB), else descending by length
  int  per_thread = 0;     // entries a thread takes before a second one helps; 0 = by the number of entries
  int  threads    = 0;     // of each unit; 0 = by length
  int  vector     = 0;     // units longer than it get a whole warp; 0 = by per_thread alone
  int  whole      = 0;     // longer units are split
  int  chunk      = 0;     // into parts of so many entries
  bool narrow     = true;  // 16-bit columns, and none for runs of columns
};

// Values are zeros until the first refresh
cudaError_t DiagonalsCreate(const SpMVCudaCSR &, int bs, bool single, int64_t limit, cudaStream_t, _n_SpMVCudaStore **); // *block NULL: too much padding
// With `unit`, which it takes: those are the units of y that the block's are, and each of them is written
cudaError_t SlicesCreate(const SpMVCudaCSR &, int bs, bool single, const Survey &, SliceRules, const SpMVNames &, Array<int> *unit, cudaStream_t,
                         _n_SpMVCudaStore **);

// The choice both formats share: node blocks where there are, diagonals where they take fewer bytes than slices, else slices
struct Choice {
  int              node;            // 0 = look for node blocks, 1 = none, else of this size
  bool             diagonals;       // may be used
  bool             single;          // store values in single precision
  bool             measure;         // build the layouts that make sense, time each, keep the fastest
  std::vector<int> sigmas;          // windows that may be tried then
  const SpMVNames &entries, &nodes; // what slices of entries and of node blocks are called

  std::function<SliceRules(const Survey &, int bs, int64_t entries)> rules; // the format's own, should it be slices
};
cudaError_t Choose(const SpMVCudaCSR &, const Choice &, cudaStream_t, _n_SpMVCudaStore **);

// Checks sizes, transposes if asked to, and calls f(csr, &block), which lays out the block itself
template <class F> cudaError_t SetUp(const SpMVCudaCSR *csr, bool transpose, cudaStream_t stream, SpMVCudaStore *block, F f)
{
  *block = nullptr;
  // Columns, rows and positions of transposed blocks are 32-bit numbers, the next multiples of what they are shared out by, too
  if (csr->m > SPMVCUDA_MAX_SIZE || csr->n > SPMVCUDA_MAX_SIZE || (transpose && csr->nnz > SPMVCUDA_MAX_SIZE)) return cudaErrorNotSupported;
  SPMV_TRY(Supported());
  SpMVCudaCSR       use = *csr;
  Array<int>        it, jt, from;
  _n_SpMVCudaStore *b = nullptr;
  if (transpose) {
    SPMV_TRY(TransposeCSR(*csr, stream, it, jt, from));
    use = {csr->n, csr->m, csr->nnz, it, jt, 4, nullptr};
  }
  cudaError_t error = Guarded([&] { return f(use, &b); });
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream); // the scratch arrays go
  if (error != cudaSuccess) {
    delete b;
    return error;
  }
  b->Of(use);
  b->it.Swap(it);
  b->from.Swap(from);
  *block = b;
  return cudaSuccess;
}

// For the oracle
template <class V> void Show(SpMVVisitor entry, void *ctx, int64_t row, int64_t col, const V &value)
{
  const Scalar own = Convert<Scalar>(value);
  PetscScalar  a;
  memcpy((void *)&a, &own, sizeof(a));
  entry(ctx, (PetscInt)row, (PetscInt)col, a);
}

} // namespace spmv
