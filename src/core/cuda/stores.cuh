/*
  The stored matrix' base class, the layouts that derive from it, and the choice between them.
*/
#pragma once

#include "view.cuh"
#include <climits>
#include <cstring>
#include <functional>

namespace spmv {

struct Dot; // epilogue.cuh
struct Dots;

/*
  The off-diagonal block of a parallel matrix as the diagonal block's fused product adds it, row by row, after its own entries: CSR by groups of 32 units,
  without the groups that have no entries
*/
struct Offdiagonal {
  const int    *slot;  // of each group: its place among the stored groups, or -1
  const int    *start; // of each row of the stored groups, and the end of the last
  const int    *col;
  const Scalar *value;
  const Scalar *halo; // NULL: nothing is added

  // d += the product of a unit's rows
  template <int BS> __device__ __forceinline__ void Add(int slot, int unit, Scalar *d) const
  {
    if (slot < 0) return;
    AwaitPrevious();         // for the halo
    constexpr int BATCH = 4; // entries whose loads are issued at once
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

  cudaError_t Create(const SpMVCudaCSR &, int bs, PetscInt64 most, cudaStream_t); // cudaErrorNotSupported: more than `most` rows, or long ones
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

// All names that a kernel may have. Constants, as statistics point to them
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
  spmv::Array<int>   it;                 // of A^T, and of boundary rows: the row offsets,
  spmv::Array<int>   value_index;        // and where in A each value is
  spmv::Nodes        nodes;              // that the layout is made of

  std::unique_ptr<_n_SpMVCudaStore>      boundary; // the boundary rows, stored a second time
  std::unique_ptr<spmv::OffdiagonalRows> fused;    // the off-diagonal block, added by MultFused()

  spmv::StreamOrder         order;          // of fills and products, which share partial sums and values
  spmv::Array<spmv::Scalar> copy_x, copy_y; // of arrays that are not aligned

  virtual ~_n_SpMVCudaStore() = default;
  void Of(const SpMVCudaCSR &csr)
  {
    m   = (int)csr.m;
    n   = (int)csr.n;
    nnz = csr.nnz;
  }
  // csr.a is A's even where value_index is set; csr.i is always that of this store
  virtual cudaError_t Fill(const SpMVCudaCSR &csr, cudaStream_t)               = 0;
  virtual cudaError_t Mult(SpMVCudaForm, const spmv::Operands &, cudaStream_t) = 0;
  // The same for several columns at once, each as Mult() would be
  virtual cudaError_t MultColumns(SpMVCudaForm form, const spmv::Operands &v, const spmv::Columns &c, cudaStream_t stream)
  {
    for (int64_t q = 0; q < c.count; q++) SPMV_TRY(Mult(form, v.From(q, c), stream));
    return cudaSuccess;
  }
  // The product that follows the exchange of a halo by one kernel. early: begins with the exchange (see Kernel), and lets the next kernel begin. With a
  // halo, adds `fused`
  virtual cudaError_t MultFused(SpMVCudaForm form, const spmv::Operands &v, const spmv::Scalar * /* halo */, bool /* early */, cudaStream_t stream)
  {
    return Mult(form, v, stream);
  }
  virtual bool CanFuseOffdiagonal() const
  {
    return false;
  }
  // y = A x, and as the epilogue of the same kernel, of which so many warps each leave sums, what Dot or Dots says; 0: there is no such kernel
  virtual unsigned DotWarps() const
  {
    return 0;
  }
  virtual cudaError_t MultDot(const spmv::Operands &, const spmv::Dot &, cudaStream_t)
  {
    return cudaErrorNotSupported;
  }
  virtual cudaError_t MultDots(const spmv::Operands &, const spmv::Dots &, cudaStream_t)
  {
    return cudaErrorNotSupported;
  }
  virtual bool SkipsEmpty() const // with z = y, rows without entries are neither read nor written
  {
    return false;
  }
  virtual int UnitSize() const // rows of a unit, for the next two; 0 = they are not supported
  {
    return 0;
  }
  // MultInterior() must leave the units in `boundary` alone, bit u % 32 of word u / 32. It may leave more units alone: all of these are set in `skipped`,
  // which is zero on entry
  virtual cudaError_t SetBoundary(const unsigned * /* boundary */, unsigned * /* skipped */, cudaStream_t)
  {
    return cudaErrorNotSupported;
  }
  virtual cudaError_t MultInterior(SpMVCudaForm, const spmv::Operands &, cudaStream_t)
  {
    return cudaErrorNotSupported;
  }
  virtual void        Stats(SpMVStats *) const            = 0; // `bytes` includes only the arrays of the derived class
  virtual cudaError_t Visit(SpMVVisitor, void *ctx) const = 0;
};

namespace spmv {

// product(operands), in the order of the store's streams, on aligned arrays: the given ones, or copies
template <class F> cudaError_t Multiply(SpMVCudaStore store, const PetscScalar *x, const PetscScalar *z, PetscScalar *y, cudaStream_t stream, F product)
{
  SPMV_TRY(store->order.Enter(stream));
  if (IsAligned(x) && IsAligned(z) && IsAligned(y))
    SPMV_TRY(product(Operands{(const Scalar *)x, (const Scalar *)z, (Scalar *)y}));
  else {
    const size_t rows = (size_t)store->m * sizeof(Scalar), columns = (size_t)store->n * sizeof(Scalar);
    if (!store->copy_x) SPMV_TRY(store->copy_x.Alloc((size_t)store->n));
    if (!store->copy_y) SPMV_TRY(store->copy_y.Alloc((size_t)store->m));
    SPMV_TRY(cudaMemcpyAsync(store->copy_x, x, columns, cudaMemcpyDeviceToDevice, stream));
    if (z) SPMV_TRY(cudaMemcpyAsync(store->copy_y, z, rows, cudaMemcpyDeviceToDevice, stream));
    SPMV_TRY(product(Operands{store->copy_x, z ? (const Scalar *)store->copy_y : nullptr, store->copy_y}));
    SPMV_TRY(cudaMemcpyAsync(y, store->copy_y, rows, cudaMemcpyDeviceToDevice, stream));
  }
  return store->order.Leave(stream);
}

// How slices are formed: where the formats differ on the device
struct SliceRules {
  int  sigma      = 0;     // units are sorted by length within windows of so many; 0 = over all units, 1 = not at all
  bool by_column  = false; // sort ascending by length, then by first column (EVC-HYB); else descending by length
  int  per_thread = 0;     // entries a lane has before a second one helps; 0 = by the number of entries
  int  threads    = 0;     // lanes of each unit; 0 = by length
  int  vector     = 0;     // longer units have a whole warp; 0 = by per_thread alone
  int  whole      = 0;     // longer units are split
  int  chunk      = 0;     // into parts of so many entries
  bool narrow     = true;  // 16-bit columns, and none for runs of columns
};
// Sets what a format leaves open: how units are shared out among lanes and warps, for the whole device
cudaError_t ShareOut(const SpMVCudaCSR &, const Nodes &, const Survey &, SliceRules *);

// The layouts, with zeros for values. *store NULL: diagonals need more padding than `limit`
cudaError_t DiagonalsCreate(const SpMVCudaCSR &, const Nodes &, bool single, int64_t limit, cudaStream_t, _n_SpMVCudaStore **store);
// With `unit`, whose array is taken over: the unit of y that each unit of the matrix is. Every unit is then written
cudaError_t SlicesCreate(const SpMVCudaCSR &, const Nodes &, bool single, const Survey &, SliceRules, const SpMVNames &, Array<int> *unit, cudaStream_t,
                         _n_SpMVCudaStore **);

// The choice that the formats share: node blocks where there are any, diagonals where they take fewer bytes than slices, else slices
struct Choice {
  int              node;            // 0 = look for node blocks, 1 = none, else of this size
  bool             diagonals;       // may be used
  bool             single;          // store values in single precision
  bool             measure;         // create the plausible layouts, time each, keep the fastest
  std::vector<int> sigmas;          // windows that may be tried then
  const SpMVNames &entries, &nodes; // names of slices of entries and of node blocks

  std::function<SliceRules(const Survey &, int bs, int64_t entries)> rules; // the format's own, for slices
};
cudaError_t Choose(const SpMVCudaCSR &, const Choice &, cudaStream_t, _n_SpMVCudaStore **);

// Checks sizes, transposes if required, and calls f(csr, &store), which creates the layout
template <class F> cudaError_t SetUp(const SpMVCudaCSR *csr, bool transpose, cudaStream_t stream, SpMVCudaStore *store, F f)
{
  *store = nullptr;
  // Columns, rows and positions of transposed matrices are 32-bit numbers, and so are the next multiples of what they are shared out by
  if (csr->m > SPMVCUDA_MAX_SIZE || csr->n > SPMVCUDA_MAX_SIZE || (transpose && csr->nnz > SPMVCUDA_MAX_SIZE)) return cudaErrorNotSupported;
  SPMV_TRY(Supported());
  SpMVCudaCSR       use = *csr;
  Array<int>        it, jt, value_index;
  _n_SpMVCudaStore *s = nullptr;
  if (transpose) {
    SPMV_TRY(TransposeCSR(*csr, stream, it, jt, value_index));
    use = {csr->n, csr->m, csr->nnz, it, jt, 4, nullptr};
  }
  cudaError_t error = Guarded([&] { return f(use, &s); });
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream); // the scratch arrays are freed
  if (error != cudaSuccess) {
    delete s;
    return error;
  }
  s->Of(use);
  s->it.Swap(it);
  s->value_index.Swap(value_index);
  *store = s;
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
