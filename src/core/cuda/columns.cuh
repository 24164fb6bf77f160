/*
  Products with several columns at once, Y = A X: what the kernels of all layouts share. A thread keeps the sums of up to eight columns in registers, so that the
  matrix is read once for all of them. More columns are several panels, of which thread blocks next to each other have the same rows, so that only the first of
  them reads the matrix from memory and the others find it in the L2. Each column is added in the order of a product with one vector, whatever the others are.
*/
#pragma once

#include "stores.cuh"
#include <type_traits>

namespace spmv {

constexpr int COLUMNS_BLOCK = Tuning::COLUMNS_BLOCK;

// The most columns of a panel, a power of two, for which a thread has registers
template <int BS> constexpr bool HasWidth(int width)
{
  return width <= 8 && width * BS * (int)sizeof(Scalar) <= Tuning::COLUMNS_BYTES;
}
// of(k) for the width of a panel that a kernel is compiled for
template <int BS, class F> const void *OfWidth(int width, F of)
{
  if constexpr (HasWidth<BS>(8)) {
    if (width == 8) return of(std::integral_constant<int, 8>());
  }
  if constexpr (HasWidth<BS>(4)) {
    if (width == 4) return of(std::integral_constant<int, 4>());
  }
  return of(std::integral_constant<int, 2>());
}
inline int WidestPanel(int bs)
{
  int width = 8;
  while (width > 2 && width * bs * (int)sizeof(Scalar) > Tuning::COLUMNS_BYTES) width /= 2;
  return width;
}
inline int PanelWidth(int bs, int64_t count)
{
  int width = 2;
  while (width < count && width < WidestPanel(bs)) width *= 2;
  return width;
}

struct Panels {
  Columns  columns;
  unsigned panels;
  int      width;  // columns of each panel but the last
  bool     marked; // of diagonals: looks for steps of equal values
};
template <class A> struct WithPanels {
  A      args;
  Panels panels;
};

// What a thread block does: the rows of one block of a product with one vector, for the columns of one panel
struct Panel {
  unsigned block, panel;
  int64_t  first; // column
  int      count;

  __device__ __forceinline__ explicit Panel(const Panels &p)
      : block(blockIdx.x / p.panels), panel(blockIdx.x % p.panels), first((int64_t)panel * p.width), count((int)min((int64_t)p.width, p.columns.count - first))
  {
  }
};

/*
  d[q][i] += a x for BATCH entries (bs x bs blocks) a of a row, in the columns q < count of a panel; col: their columns, -1 where there is none. x of GROUP
  columns is loaded before the first is used. Columns past the last repeat it
*/
template <int BS, int BATCH, int K, int GROUP>
__device__ __forceinline__ void AddColumns(const Scalar (&a)[BATCH][BS * BS], const int (&col)[BATCH], const Scalar *__restrict__ x, int64_t ldx, int count,
                                           Scalar (&d)[K][BS])
{
#pragma unroll
  for (int q0 = 0; q0 < K; q0 += GROUP) {
    if (q0 < count) {
      Scalar xs[GROUP][BATCH][BS];
#pragma unroll
      for (int g = 0; g < GROUP; g++) {
        const Scalar *from = x + min(q0 + g, count - 1) * ldx;
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
#pragma unroll
          for (int j = 0; j < BS; j++) xs[g][b][j] = col[b] >= 0 ? Num::keep(from + (int64_t)col[b] * BS + j) : Num::zero();
        }
      }
      Issue();
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
#pragma unroll
        for (int j = 0; j < BS; j++) {
#pragma unroll
          for (int g = 0; g < GROUP; g++) {
#pragma unroll
            for (int i = 0; i < BS; i++) {
              if (BS == 1 || !Num::is_absent(a[b][i * BS + j])) d[q0 + g][i] = Num::fma(a[b][i * BS + j], xs[g][b][j], d[q0 + g][i]);
            }
          }
        }
      }
    }
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

// Calls launch(grid, operands, panels) for as many columns as one launch may have, until all are done
template <class F> cudaError_t ForPanels(int slices, int width, const Operands &v, Columns columns, F launch)
{
  const unsigned blocks = Blocks((int64_t)slices * WARP, COLUMNS_BLOCK);
  const unsigned panels = PetscMax(1u, PetscMin((unsigned)Tuning::COLUMNS_PANELS, (unsigned)INT_MAX / PetscMax(blocks, 1u)));
  for (int64_t first = 0; first < columns.count; first += (int64_t)panels * width) {
    Panels p        = {columns, panels, width, false};
    p.columns.count = PetscMin(columns.count - first, (int64_t)panels * width);
    p.panels        = (unsigned)((p.columns.count + width - 1) / width);
    SPMV_TRY(launch(blocks * p.panels, Operands{v.x + first * columns.ldx, v.z ? v.z + first * columns.ldz : nullptr, v.y + first * columns.ldy}, p));
  }
  return cudaSuccess;
}

// The kernels. steps: of all slices, or 0. Slices of node blocks only
const void *DiagonalsColumns(bool single, int bs, int steps, int width);
const void *SlicesColumns(bool single, int bs, int width);

} // namespace spmv
