/*
  The base class of stored matrices, the layouts derived from it, and the choice between them.
*/
#pragma once

#include "core/cuda/layout/view.cuh"
#include <climits>
#include <cstring>
#include <functional>

namespace spmv {

struct Dots; // epilogue.cuh

// What a store may have a kernel for: a product; one with an exchange; products with inner products, without and with an
// exchange
enum Use { MULT, FUSED, DOTS, FUSED_DOTS, USES };
__host__ __device__ constexpr bool HasExchange(Use use)
{
  return use == FUSED || use == FUSED_DOTS;
}
__host__ __device__ constexpr bool HasSums(Use use)
{
  return use == DOTS || use == FUSED_DOTS;
}

// A product: see SpMVCudaProduct
struct Product {
  SpMVCudaForm     form;
  Operands         v;
  SpMVCudaExchange exchange = nullptr;
  bool             receives = false;
  Dots            *dots     = nullptr; // the epilogue, or none
};

// What is launched for a product: a kernel with the first of its arguments. The others are form, x, z and y
class KernelCall {
public:
  Kernel  *kernel = nullptr;
  unsigned grid = 0, block = 0; // no thread blocks: nothing to do
  size_t   shared = 0;

  // Returns a copy of the first argument, which may be changed until it is launched
  template <class A> A &Take(const A &args)
  {
    static_assert(sizeof(A) <= sizeof(bytes) && std::is_trivially_copyable_v<A>, "an argument of a kernel");
    return *new (bytes) A(args);
  }
  cudaError_t Run(SpMVCudaForm form, const Operands &v, cudaStream_t stream) const
  {
    return grid ? kernel->LaunchWith(grid, block, bytes, form, v, stream, shared) : cudaSuccess;
  }

private:
  alignas(16) unsigned char bytes[400];
};

// The off-diagonal block of a parallel matrix, in the form in which the fused product adds it: see Offdiagonal
struct OffdiagonalRows {
  Array<int>    slot, start, col;
  Array<Scalar> value, sums; // sums: of each row of the stored slices

  // cudaErrorNotSupported: more than `most` rows, or long rows
  cudaError_t Create(const SpMVCudaCSR &, int bs, PetscInt64 most, cudaStream_t);
  cudaError_t Fill(const SpMVCudaCSR &, bool single, cudaStream_t);
  size_t      Bytes() const
  {
    return slot.Bytes() + start.Bytes() + col.Bytes() + value.Bytes() + sums.Bytes();
  }
};

} // namespace spmv

// All names that a kernel may have. They are constants because the statistics point to them
#define SPMV_NAMES(name)                      \
  {                                           \
    name, name ", values in single precision" \
  }
using SpMVNames = const char *const[2];

struct _n_SpMVCudaStore {
  int                m = 0, n = 0;
  int64_t            nnz    = 0;
  const char *const *names  = nullptr; // SpMVNames of the kernel
  bool               single = false;   // values are stored as spmv::Single
  spmv::Array<int>   it;               // for A^T: the row offsets,
  spmv::Array<int>   value_index;      // and the position of each value in A
  spmv::Nodes        nodes;            // the node blocks of the layout

  bool some_rows = false; // products write only some rows of y: the others are set before

  std::unique_ptr<spmv::OffdiagonalRows> fused; // the off-diagonal block, added by products with a halo

  spmv::StreamOrder   order;           // the order of fills and products, which share partial sums and values
  bool                settled = false; // a product has waited for the last fill: see Kernel
  spmv::AlignedArrays arrays;

  virtual ~_n_SpMVCudaStore() = default;

  // csr.a is always the array of A, even if value_index is set; csr.i is always that of this store
  virtual cudaError_t Fill(const SpMVCudaCSR &csr, cudaStream_t) = 0;
  // What to launch for a product; returns false if there is no kernel for this use
  virtual bool For(spmv::Use, const spmv::Product &, spmv::KernelCall *)
  {
    return false;
  }
  // Several columns at once, with the same result as a product with each
  virtual cudaError_t MultColumns(SpMVCudaForm, const spmv::Operands &, const spmv::Columns &, cudaStream_t);
  virtual void        Stats(SpMVStats *) const = 0; // `bytes` counts only the arrays of the derived class

  // Launches what For() says; overridden by stores whose kernels have other arguments
  virtual cudaError_t Multiply(const spmv::Product &, cudaStream_t);

  // The number of warps of the kernel for this use, each of which stores the sums of an epilogue; 0: there is none, or
  // it cannot be loaded, for example for lack of memory
  unsigned WarpsOf(spmv::Use);
  // Sets the rows of y that products do not write, to z or zero, at the speed of a copy
  cudaError_t SetRows(const spmv::Operands &, cudaStream_t) const;
  // Ends a product in `stream`
  cudaError_t Leave(cudaStream_t stream);
  // The number of the last thread blocks, of a product that reads `bytes` of the matrix, that let the next kernel begin
  unsigned LastBlocks(size_t bytes) const
  {
    return settled && bytes + ((size_t)m + n) * sizeof(spmv::Scalar) <= spmv::Tuning::NEXT_BYTES
               ? spmv::Tuning::NEXT_BLOCKS
               : 0;
  }
};

namespace spmv {

// Calls product(operands) in the order of the store's work, with aligned arrays
template <class F>
cudaError_t Multiply(SpMVCudaStore store, const PetscScalar *x, const PetscScalar *z, PetscScalar *y,
                     cudaStream_t stream, F product)
{
  SPMV_TRY(store->order.Enter(stream));
  SPMV_TRY(store->arrays.Call(store->m, store->n, x, z, y, stream, product));
  return store->Leave(stream);
}

// The rules for forming slices, in which the formats differ on the device
struct SliceRules {
  int  sigma      = 0;     // units are sorted by length within windows of this size; 0 = over all units, 1 = not at all
  bool by_column  = false; // sort ascending by length, then by first column (EVC-HYB); else descending by length
  int  threads    = 0;     // lanes per unit; 0 = by length
  int  vector     = 0;     // longer units get a whole warp; 0 = decided by per_thread alone
  int  whole      = 0;     // longer units are split
  int  chunk      = 0;     // into parts with this many entries
  bool narrow     = true;  // 16-bit columns, and none for runs of columns
  int  tile       = 0; // rows of a tile, whose slices follow one another, with one row per lane at most; 0: no tiles
  int  per_thread = 0; // set by ShareOut(): most entries per lane before a second lane shares the unit
};
// Sets the rules that a format leaves open: how units are distributed over lanes and warps, so that the whole device is
// used
cudaError_t ShareOut(const SpMVCudaCSR &, const Nodes &, const Survey &, SliceRules *);
// The same for row groups: `per_thread` and `whole` count values, `chunk` counts entries of a row
cudaError_t ShareOutGroups(const SpMVCudaCSR &, const Survey &, SliceRules *);

// Create the layouts, with zeros as values. *store is NULL if diagonals would store more than `limit`
cudaError_t DiagonalsCreate(const SpMVCudaCSR &, const Nodes &, bool single, int64_t limit, cudaStream_t,
                            _n_SpMVCudaStore **store);
// groups: NULL, or the row groups of a matrix without node blocks. Takes the arrays of tiles, if there are any
cudaError_t SlicesCreate(const SpMVCudaCSR &, const Nodes &, const RowGroups *groups, Tiles *tiles, bool single,
                         const Survey &, SliceRules, const SpMVNames &, cudaStream_t, _n_SpMVCudaStore **);
// Finds tiles if products with them take clearly less time; otherwise tiles->count stays 0
cudaError_t FindTiles(const SpMVCudaCSR &, const Survey &, const SliceRules &, cudaStream_t, Tiles *tiles);

// The choice that the formats share: node blocks if there are any; diagonals if they take fewer bytes than slices; row
// groups if there are enough of them; otherwise slices of single entries
struct Choice {
  // 0 = look for node blocks or row groups, 1 = none, otherwise the size of node blocks
  int  node;
  bool diagonals; // diagonals may be used
  bool single;    // store values in single precision
  bool reorder;   // tiles may be used
  // names of the kernels for slices of entries, of node blocks and of row groups, and for tiles
  const SpMVNames &entries, &nodes, &groups, &tiles;

  std::function<SliceRules(const Survey &, int bs, int64_t entries)> rules; // the format's own rules for slices
};
cudaError_t Choose(const SpMVCudaCSR &, const Choice &, cudaStream_t, _n_SpMVCudaStore **);

// Checks sizes, transposes if required, and calls f(csr, &store), which creates the layout
template <class F>
cudaError_t SetUp(const SpMVCudaCSR *csr, bool transpose, cudaStream_t stream, SpMVCudaStore *store, F f)
{
  *store = nullptr;
  // Columns, rows, and positions in transposed matrices are 32-bit numbers. So are these numbers rounded up to a
  // multiple of what a thread block handles
  if (csr->m > SPMVCUDA_MAX_SIZE || csr->n > SPMVCUDA_MAX_SIZE || (transpose && csr->nnz > SPMVCUDA_MAX_SIZE))
    return cudaErrorNotSupported;
  SPMV_TRY(Supported());
  SPMV_TRY(PoolKeep());
  SpMVCudaCSR       use = *csr;
  Array<int>        it, jt, value_index;
  _n_SpMVCudaStore *s = nullptr;
  if (transpose) {
    SPMV_TRY(TransposeCSR(*csr, stream, it, jt, value_index));
    use = {csr->n, csr->m, csr->nnz, it, jt, 4, nullptr};
  }
  cudaError_t error = Guarded([&] { return f(use, &s); });
  // arrays of the set-up, or after an error the store, are freed
  const cudaError_t done = cudaStreamSynchronize(stream);
  if (error == cudaSuccess) error = done;
  if (error != cudaSuccess) {
    delete s;
    return error;
  }
  s->m   = (int)use.m;
  s->n   = (int)use.n;
  s->nnz = use.nnz;
  s->it.Swap(it);
  s->value_index.Swap(value_index);
  *store = s;
  return cudaSuccess;
}

} // namespace spmv
