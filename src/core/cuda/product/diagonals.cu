/*
  Matrices whose entries lie on few diagonals (stencils, also with several unknowns per point): slices of 32 consecutive
  units, one unit per lane.

  A slice refers to a pattern: the list of its steps, each an offset (column minus row) and a mask of the lanes that
  have an entry there. Equal patterns are stored once, so that they stay in L1. From memory, a product reads only
  values, 8 to 12 bytes per slice, x and y. Lanes without an entry do not read x.

  Each fill marks the steps whose values are all equal: a warp then reads one value instead of 32. It reads a second
  copy of the value, in an array with one value per step, because reading 8 bytes transfers 64 from memory. Lanes
  without an entry hold another lane's value, so that they do not prevent the marking. A step of node blocks is also
  marked if only a few lanes have another block, such as those at the end of a line of finite elements; these read their
  own.
*/
#include "columns.cuh"
#include "core/cuda/layout/diagonalsfill.cuh"
#include "diagonalsproduct.cuh"

namespace spmv {
namespace {

constexpr SpMVNames ENTRIES = SPMV_NAMES("CUDA diagonals"), NODES = SPMV_NAMES("CUDA diagonals of node blocks");

// With 5 or 7 steps, the warps of products without inner products multiply several slices only if x and y take more
// than 1/LOOPS_FROM of the L2 cache. 7 points on N^3, one slice / up to four, in us on an H200: equal values N = 90 6.2
// / 7.4, 112 10.3 / 11.1, 128 19.0 / 16.9; random ones N = 90 12.3 / 13.1, 112 22.1 / 22.1, 128 36.2 / 35.6. Half of
// 100^3 on each of two GPUs: 5.4 / 8.1, 8.9 / 12.0. With 3 steps, equal values: 6.0 / 4.9
constexpr int LOOPS_FROM = 2;

// ------------------------------------------------------------------------------------------------ store

struct Diagonals : DiagonalStore {
  Kernel        kernel[USES];
  bool          loops; // warps of products without sums multiply several slices
  ColumnKernels columns;

  // The warps run in rounds of as many as fit on the multiprocessors. Takes the number of slices per warp with which
  // all rounds take the least time, where beginning a warp takes half as long as a slice
  cudaError_t ChooseSlicesOfWarp(int steps_of_kernel)
  {
    int processors, most = MayLoop(steps_of_kernel) ? Tuning::DIAGONALS_SLICES : 1, least = INT_MAX;
    SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
    const int resident  = limits.diagonals_warps * processors;
    args.slices_of_warp = most;
    for (int count = most; resident && count > 0; count--) {
      const int rounds = (args.slices - 1) / (resident * count) + 1, time = rounds * (2 * count + 1);
      if (time < least) {
        least               = time;
        args.slices_of_warp = count;
      }
    }
    return cudaSuccess;
  }

  cudaError_t ChooseKernels(const SpMVCudaCSR &csr)
  {
    const int64_t    vectors = (csr.m + csr.n) * (int64_t)sizeof(Scalar);
    DiagonalsVariant v       = {bs, bs == 1 && uniform ? args.steps : 0, uniform ? SAME_LENGTH : ANY_LENGTH, false};
    int              cache;
    SPMV_TRY(DeviceHas(cudaDevAttrL2CacheSize, &cache));
    v.loops = v.steps == 3 || vectors > cache / LOOPS_FROM || !limits.diagonals_warps;
    loops   = v.loops && MayLoop(v.steps);
    SPMV_TRY(ChooseSlicesOfWarp(v.steps));
    for (Use use : {MULT, FUSED, DOTS, FUSED_DOTS})
      kernel[use].Choose(use == FUSED_DOTS ? DiagonalsFusedDots(v)
                         : use == DOTS     ? DiagonalsWithSums(v)
                         : single          ? DiagonalsSingle(use, v)
                         : use == FUSED    ? DiagonalsFused(v)
                                           : ProductOf<Scalar, MULT>(v));
    return kernel[MULT].Load(); // the others when they are needed
  }

  cudaError_t Fill(const SpMVCudaCSR &csr, cudaStream_t stream) override
  {
    if (!args.slices) return cudaSuccess;
    const FillArgs fill = {args,  bs,          uniform,          value_index, (const Scalar *)csr.a,
                           value, equal_value, pattern_of_slice, equal};
    return single ? FillDiagonalsSingle(csr, nodes, fill, stream) : FillDiagonals<Scalar>(csr, nodes, fill, stream);
  }

  bool For(Use use, const Product &p, KernelCall *call) override
  {
    if (single && HasSums(use)) return false;
    call->kernel = &kernel[use];
    call->grid   = Blocks(args.slices, BLOCK / WARP * (loops || HasSums(use) ? args.slices_of_warp : 1));
    call->block  = BLOCK;
    // Boundary rows are often the first and the last ones: they are moved to the middle, when the halo has arrived
    const unsigned shift = HasExchange(use) ? call->grid / 2 : 0;
    Args          &own   = Arguments(*this, args, use, p, call);
    own.block_shift      = shift;
    if (!HasSums(use)) own.last_blocks = LastBlocks(value.Bytes());
    return true;
  }
  cudaError_t MultColumns(SpMVCudaForm form, const Operands &v, const Columns &c, cudaStream_t stream) override
  {
    if (!args.slices) return cudaSuccess;
    return ForPanels(*this, form, args.slices, bs, v, c, stream,
                     [&](unsigned grid, const Operands &now, const Panels &p) {
                       return columns.Get(p.width, [this](int w) { return DiagonalsColumns(single, bs, w); })
                           .Launch(grid, ColumnsBlock(bs), WithPanels<Args>{args, p}, form, now, stream);
                     });
  }
  void Stats(SpMVStats *s) const override
  {
    s->stored   = steps * WARP * bs * bs;
    s->slices   = args.slices;
    s->diagonal = args.slices;
    s->bytes    = pattern_of_slice.Bytes() + first_value.Bytes() + equal.Bytes() + step.Bytes() + value.Bytes() +
               equal_value.Bytes();
    s->node = bs;
  }
};

} // namespace

cudaError_t DiagonalsCreate(const SpMVCudaCSR &csr, const Nodes &nodes, bool single, int64_t limit, cudaStream_t stream,
                            _n_SpMVCudaStore **store)
{
  std::unique_ptr<Diagonals> d(new (std::nothrow) Diagonals);
  bool                       formed;
  *store = nullptr;
  if (!d) return cudaErrorMemoryAllocation;
  d->nodes  = nodes;
  d->bs     = nodes.bs;
  d->single = single;
  d->names  = nodes.bs > 1 ? NODES : ENTRIES;
  SPMV_TRY(d->Form(csr, limit, &formed, stream));
  if (!formed) return cudaSuccess;
  SPMV_TRY(d->ChooseKernels(csr));
  *store = d.release();
  return cudaSuccess;
}

} // namespace spmv
