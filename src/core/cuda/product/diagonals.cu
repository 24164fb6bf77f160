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
#include "core/cuda/base/prepare.cuh"

namespace spmv {
namespace {

constexpr SpMVNames ENTRIES = SPMV_NAMES("CUDA diagonals"), NODES = SPMV_NAMES("CUDA diagonals of node blocks");

// Reports to the host whether there are enough marks for products to look at them. The host does not wait for the
// report. Runs with EQUALS threads
__global__ void report_marks(unsigned steps, const unsigned *equals, unsigned generation, volatile unsigned *report)
{
  __shared__ unsigned total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, equals[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) *report = generation << 1 | (total > steps / Tuning::EQUAL_SHARE);
}

// ------------------------------------------------------------------------------------------------ store

struct Diagonals : DiagonalStore {
  // marked: products look at marks; unreported: the last fill has not reported yet whether they should
  bool          marked = true, unreported = true;
  Kernel        kernel[EACH][2]; // for each use before EACH; [][1]: looks at marks
  ColumnKernels columns;
  unsigned      generation = 0; // of the values, in reports

  // The warps run in rounds of as many as fit on the multiprocessors. Takes the number of slices per warp with which
  // all rounds take the least time, where beginning a warp takes half as long as a slice
  cudaError_t ChooseSlicesOfWarp(int steps_of_kernel)
  {
    int processors, most = Loops(steps_of_kernel, true, MULT) ? Tuning::DIAGONALS_SLICES : 1, least = INT_MAX;
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

  cudaError_t ChooseKernels()
  {
    const DiagonalsVariant v = {bs, bs == 1 && uniform ? args.steps : 0, uniform ? SAME_LENGTH : ANY_LENGTH};
    SPMV_TRY(ChooseSlicesOfWarp(v.steps));
    for (int marks = 0; marks < 2; marks++) {
      for (Use use : {MULT, FUSED, DOT, DOTS})
        kernel[use][marks].Choose(HasSums(use)   ? DiagonalsWithSums(use, v, marks)
                                  : single       ? DiagonalsSingle(use, v, marks)
                                  : use == FUSED ? DiagonalsFused(v, marks)
                                                 : ProductOf<Scalar, MULT>(v, marks));
      SPMV_TRY(kernel[MULT][marks].Load()); // the others when they are needed
    }
    return cudaSuccess;
  }

  cudaError_t Fill(const SpMVCudaCSR &csr, cudaStream_t stream) override
  {
    generation = (generation + 1) & 0x7fffffffu; // a late report of an earlier fill is ignored
    marked = unreported = true;
    SPMV_TRY(equals.Zero(stream));
    if (args.slices) {
      const FillArgs fill = {args,  bs,          uniform,          value_index, (const Scalar *)csr.a,
                             value, equal_value, pattern_of_slice, equal,       equals};
      SPMV_TRY(single ? FillDiagonalsSingle(csr, nodes, fill, stream)
                      : FillDiagonals<Scalar>(csr, nodes, fill, stream));
    }
    SPMV_LAUNCH(EQUALS, EQUALS, stream, report_marks, (unsigned)(steps < UINT_MAX ? steps : UINT_MAX), equals,
                generation, report);
    return cudaSuccess;
  }

  bool For(Use use, const Product &p, KernelCall *call) override
  {
    if (use == EACH || (single && HasSums(use))) return false;
    LookForReport();
    call->kernel = &kernel[use][marked];
    call->grid   = Grid(marked || HasSums(use));
    call->block  = BLOCK;
    Args &own    = Arguments(*this, args, use, p, call);
    if (use == MULT) own.last_blocks = LastBlocks(value.Bytes());
    // Boundary rows are often the first and the last ones: they are moved to the middle, when the halo has arrived
    if (own.offdiag.halo) own.block_shift = call->grid / 2;
    return true;
  }
  cudaError_t MultColumns(SpMVCudaForm form, const Operands &v, const Columns &c, cudaStream_t stream) override
  {
    LookForReport();
    if (!args.slices) return cudaSuccess;
    return ForPanels(*this, form, args.slices, bs, v, c, stream, [&](unsigned grid, const Operands &now, Panels p) {
      p.marked = marked;
      return columns.Get(p.width, [this](int w) { return DiagonalsColumns(single, bs, w); })
          .Launch(grid, ColumnsBlock(bs), WithPanels<Args>{args, p}, form, now, stream);
    });
  }
  void LookForReport()
  {
    // products look at marks until the fill reports that there are too few; the result is bitwise the same
    if (unreported) {
      const unsigned last = *(volatile unsigned *)report;
      unreported          = last >> 1 != generation;
      marked              = unreported || (last & 1);
    }
  }
  // The number of thread blocks of a product; several: by a kernel whose warps multiply several slices, if there is one
  // for this number of steps
  unsigned Grid(bool several) const
  {
    return Blocks(args.slices, BLOCK / WARP * (several ? args.slices_of_warp : 1));
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

cudaError_t LoadDiagonalProducts()
{
  return Load((const void *)report_marks);
}

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
  SPMV_TRY(d->ChooseKernels());
  *store = d.release();
  return cudaSuccess;
}

} // namespace spmv
