/*
  Products with several columns at once, Y = A X: the code that the kernels of all layouts share. A thread keeps the
  sums of up to eight columns in registers, so that the matrix is read once for all of them. More columns are split into
  panels. Consecutive thread blocks handle the same rows for different panels, so that only the first of them reads the
  matrix from memory, and the others find it in the L2 cache. Each column is summed in the order of a product with one
  vector.
*/
#pragma once

#include "core/cuda/stores.cuh"
#include <type_traits>

namespace spmv {

constexpr int MAX_WIDTH = 8; // columns of a panel

// Threads per block
__host__ __device__ constexpr int ColumnsBlock(int bs)
{
  return bs == 1 ? Tuning::COLUMNS_BLOCK_ONE : Tuning::COLUMNS_BLOCK;
}

// The widest panel for which a thread has enough registers
constexpr int WidestPanel(int bs)
{
  int width = MAX_WIDTH;
  while (width > 2 && width * bs * (int)sizeof(Scalar) > Tuning::COLUMNS_BYTES) width /= 2;
  return width;
}
// Returns of(number of the type of the values, node size, panel width), the last two as compile-time constants. Kernels
// are compiled for some widths only. ONE: the rows that are multiplied at a time without node blocks
template <int ONE, class F> const void *ColumnsKernel(bool single, int bs, int width, F of)
{
  return WithStored(single, [=](auto type) {
    return WithNodeSize(bs, [=](auto size) -> const void * {
      constexpr int WIDEST = WidestPanel(size > 1 ? (int)size : ONE);
      if constexpr (WIDEST >= 8) {
        if (width == 8) return of(type, size, std::integral_constant<int, 8>());
      }
      if constexpr (WIDEST >= 4) {
        if (width == 4) return of(type, size, std::integral_constant<int, 4>());
      }
      return of(type, size, std::integral_constant<int, 2>());
    });
  });
}
inline int PanelWidth(int bs, int64_t count)
{
  int width = 2;
  while (width < count && width < WidestPanel(bs)) width *= 2;
  return width;
}

// The work of one launch: panels of `width` columns each, or one panel with fewer columns
struct Panels {
  Columns columns;
  // distance in bytes from a panel's first column to each of its columns; past the last column, the distance to the
  // last
  int64_t  x[MAX_WIDTH];
  unsigned panels;
  int      width, count; // of each panel: the columns that the kernel has sums for, and those that exist
};
template <class A> struct WithPanels {
  A      args;
  Panels panels;
};

// The work of a thread block: the rows of one thread block of a product with one vector, for the columns of one panel
struct Panel {
  unsigned block, first; // first: the panel's first column

  __device__ __forceinline__ explicit Panel(const Panels &p) : block(BlockIndex()), first(0)
  {
    if (p.panels == 1) return;
    const unsigned index = block;
    block                = index / p.panels;
    first                = (index - block * p.panels) * p.width;
  }
};

/*
  d[q][i] += a x for BATCH entries (ROWS x COLS blocks) a of a row and the K columns of a panel. place: the index of
  each entry's x, in units from `x`; if the row does not have the entry, the index of any number that can be read. x of
  GROUP columns is loaded before the first is used. The distances between columns are kernel arguments, which are only
  added: 64-bit multiplications would take as long as everything else
*/
template <int ROWS, int BATCH, int K, int GROUP, int COLS = ROWS>
__device__ __forceinline__ void AddColumns(const Scalar (&a)[BATCH][ROWS * COLS], const bool (&has)[BATCH],
                                           const int (&place)[BATCH], Waited waited, const Scalar *x,
                                           const Panels &panels, Scalar (&d)[K][ROWS])
{
#pragma unroll
  for (int q0 = 0; q0 < K; q0 += GROUP) {
    Scalar xs[GROUP][BATCH][COLS];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const char *at = (const char *)(x + (int64_t)place[b] * COLS);
#pragma unroll
      for (int g = 0; g < GROUP; g++) {
#pragma unroll
        for (int j = 0; j < COLS; j++) xs[g][b][j] = LoadX(waited, (const Scalar *)(at + panels.x[q0 + g]) + j);
      }
    }
    Issue();
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      if (!has[b]) continue; // a lane without an entry may hold any value: Inf times 0 would spoil the sum
#pragma unroll
      for (int j = 0; j < COLS; j++) {
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
#pragma unroll
          for (int i = 0; i < ROWS; i++) {
            if (COLS == 1 || !Num::is_absent(a[b][i * COLS + j]))
              d[q0 + g][i] = Num::fma(a[b][i * COLS + j], xs[g][b][j], d[q0 + g][i]);
          }
        }
      }
    }
  }
}

// Result() without a branch per form. With many sums, the branches would double the code. z is read if `add` is true
__device__ __forceinline__ Scalar Sum(SpMVCudaForm form, bool add, const Scalar *z, Scalar d)
{
  return add ? Num::add(*z, form == SPMVCUDA_RESIDUAL ? Negated(d) : d) : d;
}

// Writes a unit's sums, starting at its first row; z and y: the panel's first columns
template <int BS, int K>
__device__ __forceinline__ void WriteColumns(SpMVCudaForm form, const Panels &p, int64_t row, const Scalar (&d)[K][BS],
                                             const Scalar *z, Scalar *y)
{
  const bool add = z != nullptr;
  y += row;
  z += row;
#pragma unroll
  for (int q = 0; q < K; q++) {
    if (q >= p.count) break;
#pragma unroll
    for (int i = 0; i < BS; i++) y[i] = Sum(form, add, z + i, d[q][i]);
    y += p.columns.ldy;
    z += p.columns.ldz;
  }
}

// The kernels of a store, for panels of 2, 4 and 8 columns, loaded when they are needed
class ColumnKernels {
public:
  // code(width): the kernel
  template <class F> Kernel &Get(int width, F code)
  {
    const int k = width == 2 ? 0 : width == 4 ? 1 : 2;
    if (!chosen[k]) kernel[k].Choose(code(width));
    chosen[k] = true;
    return kernel[k];
  }

private:
  Kernel kernel[3];
  bool   chosen[3] = {};
};

// Calls launch(grid, operands, panels) repeatedly, each time for as many columns as one launch may have. A single
// remaining column is a product with a vector
template <class F>
cudaError_t ForPanels(_n_SpMVCudaStore &store, SpMVCudaForm form, int slices, int bs, const Operands &v,
                      const Columns &columns, cudaStream_t stream, F launch)
{
  const unsigned blocks = Blocks((int64_t)slices * WARP, ColumnsBlock(bs));
  const int64_t  most =
      PetscMax(1u, PetscMin((unsigned)Tuning::COLUMNS_PANELS, (unsigned)INT_MAX / PetscMax(blocks, 1u)));
  for (int64_t first = 0, left = columns.count; left; first = columns.count - left) {
    const Operands now   = v.From(first, columns);
    const int      width = PanelWidth(bs, left), count = (int)PetscMin((int64_t)width, left);
    Panels         p = {columns, {}, (unsigned)PetscMax((int64_t)1, PetscMin(most, left / width)), width, count};
    for (int q = 0; q < width; q++) p.x[q] = PetscMin(q, count - 1) * columns.ldx * (int64_t)sizeof(Scalar);
    SPMV_TRY(left == 1 ? store.Multiply({form, now}, stream) : launch(blocks * p.panels, now, p));
    left -= (int64_t)p.panels * count;
  }
  return cudaSuccess;
}

// The kernels. For slices, those of node blocks and, with bs = 1, of row groups
const void *DiagonalsColumns(bool single, int bs, int width);
const void *SlicesColumns(bool single, int bs, int width);

constexpr int GROUP_PIECE = 3; // rows of a row group that are multiplied at a time, with the panels of 3 x 3 blocks

} // namespace spmv
