/*
  Slices of row groups: one to eight consecutive rows with the same columns (PETSc's inodes), of any sizes, in a matrix
  without node blocks.

  See slices.cu for the layout. A unit is a group, and all groups of a slice have the same number of rows, R. Each
  column is stored once per group. Step k of a slice has 32 columns and 32 R values, those of the groups' first rows
  first, 32 lanes side by side. A lane loads x once for R values. Rows are not padded to a common group size, and groups
  may begin at any row. Groups of a slice have about the same length, so that the lanes that have no entry in the last
  step are the last ones. They load nothing: with 16 lanes a group, padding would be a quarter of the bytes of groups of
  49 columns.
*/
#include "core/cuda/product/sliceproduct.cuh"

namespace spmv {
namespace {

constexpr int BLOCK = Tuning::SLICES_BLOCK, MOST = RowGroups::MOST;

using Args = SliceArgs;

// The columns have one loop for both modes, because there are eight loops already
template <class V, int R>
__device__ __forceinline__ void add_group(const Args &args, const Slice &self, int lane, SpMVCudaForm form, bool wait,
                                          const Scalar *x, Scalar (&d)[MOST])
{
  constexpr int BATCH = R == 1 ? 6 : R == 2 ? 5 : R == 3 ? 4 : R == 4 ? 3 : 2;
  AddEntries<V, R, 1, 1, EITHER, BATCH>(args, self, (const V *)args.value + (int64_t)self.value * WARP + lane, lane,
                                        form, wait, x, d);
}

// A warp multiplies one slice. The code that follows the loop exists only once
template <class V, Use USE>
__device__ __forceinline__ void multiply(const Args &args, const EpilogueOf<USE> *epilogue, PetscReal *sums, int s,
                                         int lane, SpMVCudaForm form, const Scalar *x, const Scalar *z, Scalar *y)
{
  const Slice self  = ReadSlice(args, s);
  const int   rows  = self.Rows();
  const bool  wait  = args.settled;
  int         first = self.is_part || lane >= self.units ? -1 : __ldg(args.order + self.first + lane);
  Scalar      d[MOST];

#pragma unroll
  for (int i = 0; i < MOST; i++) d[i] = Num::zero();
  switch (rows) {
  case 1: add_group<V, 1>(args, self, lane, form, wait, x, d); break;
  case 2: add_group<V, 2>(args, self, lane, form, wait, x, d); break;
  case 3: add_group<V, 3>(args, self, lane, form, wait, x, d); break;
  case 4: add_group<V, 4>(args, self, lane, form, wait, x, d); break;
  case 5: add_group<V, 5>(args, self, lane, form, wait, x, d); break;
  case 6: add_group<V, 6>(args, self, lane, form, wait, x, d); break;
  case 7: add_group<V, 7>(args, self, lane, form, wait, x, d); break;
  default: add_group<V, 8>(args, self, lane, form, wait, x, d);
  }
  AwaitPrevious(); // if the slice has no steps
  if (!AddLanes(args, self, lane, d, &first, !HasSums(USE), rows) || first < 0) return;
  if constexpr (HasExchange(USE)) {
    int row[MOST], slot[MOST];
#pragma unroll
    for (int i = 0; i < MOST; i++) {
      row[i]  = i < rows ? first + i : -1;
      slot[i] = epilogue->Slot(row[i]);
    }
    epilogue->AddOffdiagonal(slot, row, d);
  }
#pragma unroll
  for (int i = 0; i < MOST; i++) {
    if (i >= rows) break;
    const int r = first + i;
    if constexpr (HasSums(USE)) d[i] = epilogue->Add(r, d[i], sums);
    y[r] = Result(form, z, r, d[i]);
  }
}

template <class V, Use USE>
__global__ void __launch_bounds__(BLOCK, sizeof(Scalar) > 8 ? 2 : 3)
    groups(ArgumentsOf<Args, USE> arguments, SpMVCudaForm form, const Scalar *x, const Scalar *z, Scalar *y)
{
  EachSlice<USE>(arguments, x, [&](int s, int lane, PetscReal(&sums)[EpilogueOf<USE>::NUMBERS]) {
    multiply<V, USE>(ArgsOf(arguments), GetEpilogue(arguments), sums, s, lane, form, x, z, y);
  });
}

} // namespace

const void *GroupsProduct(bool single, Use use)
{
  switch (use) {
  case MULT: return single ? (const void *)groups<Single, MULT> : (const void *)groups<Scalar, MULT>;
  case FUSED: return single ? (const void *)groups<Single, FUSED> : (const void *)groups<Scalar, FUSED>;
  case FUSED_DOTS: return (const void *)groups<Scalar, FUSED_DOTS>;
  default: return (const void *)groups<Scalar, DOTS>;
  }
}

} // namespace spmv
