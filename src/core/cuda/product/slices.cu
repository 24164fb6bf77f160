/*
  Slices of sorted rows, for every pattern that is not stored by diagonals.

  One warp multiplies one slice. Depending on the lengths of its units (rows, or node rows of dense bs x bs blocks), a
  slice holds
    - 64, 128 or 256 short units, 2, 4 or 8 per lane, so that a warp still has eight vector loads to issue at once;
    - 32 / T units with T = 1, 2, ..., 32 lanes each;
    - a part of one long unit: the parts store partial sums, and the warp that arrives last adds them in order.
  slicesform.cu forms the slices. Row groups, which groups.cu multiplies, are units of a different number of rows in
  each slice. Step k of a slice has 32 entries (node blocks), stored value by value, 32 lanes side by side. Units that
  are shorter than their slice are filled up with marked entries that read no x. Columns are 32-bit numbers, or 16-bit
  distances from the slice's smallest column. If a slice of one unit is one run of columns, none is stored. Slices with
  much work come first, so that they do not finish last.
*/
#include "sliceproduct.cuh"
#include "core/cuda/layout/staging.cuh"

namespace spmv {
namespace {

constexpr int BLOCK = Tuning::SLICES_BLOCK, TILE_BLOCK = Tuning::TILE_BLOCK;

using Args = SliceArgs;

// ------------------------------------------------------------------------------------------------ product

// One loop per mode
template <class V, int BS, int U, class X>
__device__ __forceinline__ void add_slice(const Args &args, const Slice &self, int lane, SpMVCudaForm form, bool wait,
                                          X x, Scalar (&d)[U * BS])
{
  constexpr int BATCH = BS == 1 ? 8 : BS == 2 ? 4 : BS == 3 ? 2 : 1;
  const int     mode  = self.mode;
  const V      *value = FirstValue((const V *)args.value, self, BS * BS) + lane;
  if constexpr (std::is_same_v<X, InTile>)
    AddEntries<V, BS, BS, U, NARROW, BATCH>(args, self, value, lane, form, wait, x, d);
  else if (mode == WIDE)
    AddEntries<V, BS, BS, U, WIDE, BATCH>(args, self, value, lane, form, wait, x, d);
  else if (U > 1 || mode == NARROW)
    AddEntries<V, BS, BS, U, NARROW, BATCH>(args, self, value, lane, form, wait, x, d);
  else if constexpr (U == 1)
    AddEntries<V, BS, BS, U, LINE, BATCH>(args, self, value, lane, form, wait, x, d);
}

// The code that follows the loops exists only once
template <class V, int BS, Use USE, int U, class X>
__device__ __forceinline__ void product(const Args &args, const EpilogueOf<USE> *epilogue, PetscReal *sums,
                                        const Slice &self, int lane, SpMVCudaForm form, X x, const Scalar *z, Scalar *y)
{
  const int  units = self.units;
  const bool part  = U == 1 && self.is_part;
  const bool wait  = args.settled;
  Scalar     d[U * BS];
  int        unit[U];

#pragma unroll
  for (int u = 0; u < U; u++) {
    const int r = u * WARP + lane;
    unit[u]     = part || r >= units ? -1 : args.order ? __ldg(args.order + self.first + r) : self.first + r;
#pragma unroll
    for (int i = 0; i < BS; i++) d[u * BS + i] = Num::zero();
  }
  add_slice<V, BS, U>(args, self, lane, form, wait, x, d);
  AwaitPrevious(); // if the slice has no steps
  if constexpr (U == 1) {
    if (!AddLanes(args, self, lane, d, unit, !HasSums(USE))) return;
  }
  if constexpr (HasExchange(USE)) {
    int slot[U];
#pragma unroll
    for (int u = 0; u < U; u++) slot[u] = epilogue->Slot(unit[u]);
    epilogue->AddOffdiagonal(slot, unit, d);
  }
#pragma unroll
  for (int u = 0; u < U; u++) {
    if (unit[u] < 0) continue;
    const int64_t r = (int64_t)unit[u] * BS;
    if constexpr (HasSums(USE)) {
#pragma unroll
      for (int i = 0; i < BS; i++) d[u * BS + i] = epilogue->Add(r + i, d[u * BS + i], sums);
    }
#pragma unroll
    for (int i = 0; i < BS; i++) y[r + i] = Result(form, z, r + i, d[u * BS + i]);
  }
}

// A warp multiplies one slice, depending on its kind. MANY: some slices have several units per lane. A kernel without
// them has room for a third more warps: a twin of cage14 takes 91 us instead of 98, random:20000 29 instead of 31
template <class V, int BS, bool MANY, Use USE>
__device__ __forceinline__ void multiply(const Args &args, const EpilogueOf<USE> *epilogue, PetscReal *sums, int s,
                                         int lane, SpMVCudaForm form, const Scalar *x, const Scalar *z, Scalar *y)
{
  const Slice self = ReadSlice(args, s);
  const int   lu   = MANY ? self.lu : 0;
  if (lu == 0)
    product<V, BS, USE, 1>(args, epilogue, sums, self, lane, form, x, z, y);
  else if constexpr (MANY) {
    if (lu == 1)
      product<V, 1, USE, 2>(args, epilogue, sums, self, lane, form, x, z, y);
    else if (lu == 2)
      product<V, 1, USE, 4>(args, epilogue, sums, self, lane, form, x, z, y);
    else
      product<V, 1, USE, 8>(args, epilogue, sums, self, lane, form, x, z, y);
  }
}

// Thread blocks per multiprocessor that the registers must suffice for: of real single entries, as many as with 80 and
// 64 registers per thread
template <int BS, bool MANY> constexpr int RESIDENT = BS > 1 || sizeof(Scalar) > 8 ? 2 : MANY ? 3 : 4;

// DOTS: for a square matrix without parts of units
template <class V, int BS, bool MANY, Use USE>
__global__ void __launch_bounds__(BLOCK, RESIDENT<BS, MANY>)
    slices(ArgumentsOf<Args, USE> arguments, SpMVCudaForm form, const Scalar *x, const Scalar *z, Scalar *y)
{
  EachSlice<USE>(arguments, x, [&](int s, int lane, PetscReal(&sums)[EpilogueOf<USE>::NUMBERS]) {
    multiply<V, BS, MANY, USE>(ArgsOf(arguments), GetEpilogue(arguments), sums, s, lane, form, x, z, y);
  });
}

// A thread block multiplies a tile
template <class V, Use USE>
__global__ void __launch_bounds__(TILE_BLOCK, sizeof(Scalar) > 8 ? 1 : Tuning::TILES)
    tiles(ArgumentsOf<Args, USE> arguments, SpMVCudaForm form, const Scalar *x, const Scalar *z, Scalar *y)
{
  EachBlock<USE>(arguments, x, [&](unsigned block, PetscReal(&sums)[EpilogueOf<USE>::NUMBERS]) {
    const Args &args = ArgsOf(arguments);
    const int   lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int4  t   = LoadOrdered((const int4 *)args.tile + block); // a Tile
    InTile      own = {x, args.list + t.z, t.w - t.z, true};
    for (int s = t.x + warp; s < t.y; s += TILE_BLOCK / WARP) {
      Slice self = ReadSlice(args, s);
      self.base  = 0; // columns are places in shared memory
      if (own.first && !self.steps) {
        own.Copy(args.settled, args.last_blocks);
        own.first = false;
      }
      product<V, 1, USE, 1>(args, GetEpilogue(arguments), sums, self, lane, form, own, z, y);
      own.first = false;
    }
    if (own.first) own.Copy(args.settled, args.last_blocks); // the warp has no slice
  });
}

// For matrices with few nonempty rows: a product with each column, one after the other in one kernel
template <class V, int BS, bool MANY>
__global__ void __launch_bounds__(BLOCK, sizeof(V) < sizeof(Scalar) ? RESIDENT<BS, MANY> : 2)
    slices_each(EachColumn each, SpMVCudaForm form, const Scalar *x, const Scalar *z, Scalar *y)
{
  const int64_t column = blockIdx.x / each.blocks;
  const int     s      = (int)(((blockIdx.x - column * each.blocks) * BLOCK + threadIdx.x) / WARP);
  AwaitPrevious();
  if (s >= each.args.slices) return;
  multiply<V, BS, MANY, MULT>(each.args, nullptr, nullptr, s, threadIdx.x % WARP, form, x + column * each.columns.ldx,
                              z + column * each.columns.ldz, y + column * each.columns.ldy);
}

// ------------------------------------------------------------------------------------------------ values

constexpr int FILL_BLOCK = Tuning::FILL_BLOCK;

// All rows of a row group have the same length and follow one another in A
template <class V, class I>
__global__ void __launch_bounds__(FILL_BLOCK, 1024 / FILL_BLOCK)
    fill_entries(View<I> v, Args args, int chunk, const int *value_index, const Scalar *a, V *value)
{
  constexpr int BATCH = Tuning::FILL_BATCH;
  const int     s = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP), lane = threadIdx.x % WARP;
  if (s >= args.slices) return;
  const Slice self = args.slice[s];
  // one row per unit, or one unit per lane
  const int lt = self.lt, rows = self.Rows(), n = rows << self.lu;
  V        *to = value + (int64_t)self.value * WARP + lane;
  for (int u = 0; u < n; u++) {
    LaneEntries e = lane_entries(v, self, args.order, chunk, rows > 1 ? 0 : u);
    if (rows > 1) e.start += (int64_t)u * e.len;
    for (int k0 = 0; k0 < self.steps; k0 += BATCH) {
      Scalar t[BATCH];
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        const int     entry = e.entry + ((k0 + b) << lt);
        const int64_t at    = e.start + entry;
        t[b] = k0 + b < self.steps && entry < e.end ? a[value_index ? value_index[at] : at] : Num::zero();
      }
      Issue();
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        if (k0 + b < self.steps) to[((int64_t)(k0 + b) * n + u) * WARP] = Convert<V>(t[b]);
      }
    }
  }
}

// One slice per thread block, `staged` steps at a time
template <class V, int BS, class I>
__global__ void __launch_bounds__(Tuning::FILL_NODES_WARPS *WARP, Tuning::FILL_NODES_BLOCKS)
    fill_nodes(View<I> v, Args args, int chunk, int staged, const int *value_index, const Scalar *a, V *value)
{
  const int         lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  const Slice       self = args.slice[blockIdx.x];
  const int         lt = self.lt, alone = WARP >> lt; // alone: lanes with different units
  const LaneEntries e      = lane_entries(v, self, args.order, chunk, 0);
  V                *p      = value + (int64_t)self.value * (BS * BS * WARP) + lane;
  Scalar           *shared = (Scalar *)spmv_shared;
  for (int k0 = 0; k0 < self.steps; k0 += staged) {
    // node blocks of the lane's unit
    const int first = e.entry - lane / alone + (k0 << lt), count = max(min(e.end - first, staged << lt), 0);
    if (k0) __syncthreads();
    const int position =
        StageBlocks<BS>(v, alone, e.start, e.len, first, lane < alone ? count : 0, a, value_index, shared);
    const int unit = __shfl_sync(ALL, position, lane % alone) - first * BS;
    __syncthreads();
    for (int k = k0 + warp; k < min(k0 + staged, self.steps); k += warps) {
      const int  entry = e.entry + (k << lt), block = unit + entry * BS;
      const bool own = entry < e.end;
#pragma unroll
      for (int i = 0; i < BS * BS; i++)
        p[((int64_t)k * BS * BS + i) * WARP] =
            own ? ConvertIn<V, BS>(ReadStaged(shared, block + i / BS * count * BS + i % BS, e.start < 0))
                : Traits<V>::zero();
    }
  }
}

// ------------------------------------------------------------------------------------------------ store

struct Slices : SlicedStore {
  Kernel        kernel[USES]; // MULT is loaded now, the others when they are needed
  Kernel        each;         // multiplies each column
  ColumnKernels columns;
  EntriesByRows by_rows;
  Array<char>   value;

  // kernel_of(use): the kernel for a use, which is a compile-time constant
  template <class V, class F> void Take(F kernel_of)
  {
    kernel[MULT].Choose(kernel_of(std::integral_constant<Use, MULT>()));
    kernel[FUSED].Choose(kernel_of(std::integral_constant<Use, FUSED>()));
    if constexpr (std::is_same_v<V, Scalar>) {
      kernel[DOTS].Choose(kernel_of(std::integral_constant<Use, DOTS>()));
      kernel[FUSED_DOTS].Choose(kernel_of(std::integral_constant<Use, FUSED_DOTS>()));
    }
  }
  template <class V, int BS, bool MANY = false> void TakeSlices()
  {
    Take<V>([](auto use) { return (const void *)slices<V, BS, MANY, use>; });
    if constexpr (BS == 1) each.Choose((const void *)slices_each<V, BS, MANY>);
  }
  template <class V> cudaError_t Pick(V)
  {
    if (grouped)
      Take<V>([this](Use use) { return GroupsProduct(single, use); });
    else if (tile)
      Take<V>([](auto use) { return (const void *)tiles<V, use>; });
    else if (many)
      TakeSlices<V, 1, true>();
    else
      WithNodeSize(bs, [this](auto size) { TakeSlices<V, size>(); });
    return kernel[MULT].Load();
  }
  template <class V, int BS, class I>
  cudaError_t FillNodes(const View<I> &v, const SpMVCudaCSR &csr, cudaStream_t stream) const
  {
    const int64_t mean = steps / args.slices;
    const int64_t warps =
        PetscMin(PetscMax(mean * (BS * BS) / Tuning::FILL_NODES_VALUES, (int64_t)2), (int64_t)Tuning::FILL_NODES_WARPS);
    const int64_t most = PetscMax((int64_t)longest, split ? chunk / WARP : 0); // steps of a slice or a part
    Staging       s;
    ForgetErrors();
    SPMV_TRY(ChooseStaging<BS>((const void *)fill_nodes<V, BS, I>, PetscMin(most, 2 * mean + 1), 1, &s));
    fill_nodes<V, BS><<<args.slices, (unsigned)warps * WARP, s.shared, stream>>>(
        v, args, chunk, s.steps, value_index, (const Scalar *)csr.a, (V *)(char *)value);
    return cudaGetLastError();
  }

  cudaError_t Fill(const SpMVCudaCSR &csr, cudaStream_t stream) override
  {
    if (!args.slices) return cudaSuccess;
    return WithView(csr, nodes, [&](auto v) {
      return WithStored(single, [&](auto type) {
        using V = decltype(type);
        return WithNodeSize(bs, [&](auto size) {
          if constexpr (size > 1)
            return FillNodes<V, size>(v, csr, stream);
          else {
            SPMV_LAUNCH((int64_t)args.slices * WARP, FILL_BLOCK, stream, fill_entries, v, args, chunk, value_index,
                        (const Scalar *)csr.a, (V *)(char *)value);
            return cudaSuccess;
          }
        });
      });
    });
  }

  // Sums have no order if the last warp to arrive adds the parts of a unit
  bool For(Use use, const Product &p, KernelCall *call) override
  {
    if ((use == FUSED && some_rows) || (HasSums(use) && (single || some_rows || split))) return false;
    call->kernel = &kernel[use];
    call->grid   = !args.slices ? 0 : tile ? (unsigned)tile.Size() : Grid();
    call->block  = tile ? TILE_BLOCK : BLOCK;
    call->shared = tile ? (size_t)most * sizeof(Scalar) : 0;
    Args &own    = Arguments(*this, args, use, p, call);
    if (!HasSums(use)) own.last_blocks = LastBlocks(value.Bytes() + index.Bytes());
    return true;
  }
  unsigned Grid() const
  {
    return Blocks((int64_t)args.slices * WARP, BLOCK);
  }
  // Node blocks, row groups and single entries are multiplied in one pass, see slicescolumns.cu and entriescolumns.cu.
  // The few nonempty rows of most off-diagonal blocks are multiplied by one kernel that reads them once per column;
  // long node rows or row groups, which need partial sums, by several
  cudaError_t MultColumns(SpMVCudaForm form, const Operands &v, const Columns &c, cudaStream_t stream) override
  {
    const unsigned blocks = Grid();
    if (args.slices && some_rows && bs == 1 && !split && c.count <= INT_MAX / blocks) {
      for (int64_t q = 0; q < c.count; q++) SPMV_TRY(SetRows(v.From(q, c), stream));
      return each.Launch(blocks * (unsigned)c.count, BLOCK, EachColumn{args, {c.ldx, c.ldy, c.ldy, c.count}, blocks},
                         form, {v.x, v.y, v.y}, stream);
    }
    if (!args.slices || some_rows ||
        (bs == 1 && !grouped
             ? !by_rows.Pays(*this, c.count) || !by_rows.Reserve(*this, args.order, partial.Size(), stream)
             : split > 0))
      return _n_SpMVCudaStore::MultColumns(form, v, c, stream);
    if (bs == 1 && !grouped) return by_rows.Mult(*this, args, form, v, c, stream);
    const int rows = grouped ? GROUP_PIECE : bs;
    return ForPanels(*this, form, args.slices, rows, v, c, stream,
                     [&](unsigned grid, const Operands &now, const Panels &p) {
                       return columns.Get(p.width, [this](int w) { return SlicesColumns(single, bs, w); })
                           .Launch(grid, ColumnsBlock(rows), WithPanels<Args>{args, p}, form, now, stream);
                     });
  }
  void Stats(SpMVStats *s) const override
  {
    s->stored    = steps * WARP * bs * bs;
    s->slices    = args.slices;
    s->long_rows = (PetscInt64)long_units * bs;
    s->bytes     = slice.Bytes() + order.Bytes() + parts.Bytes() + value.Bytes() + partial.Bytes() + index.Bytes() +
               arrived.Bytes() + by_rows.Bytes() + tile.Bytes() + list.Bytes();
    s->node = bs;
  }
};

} // namespace

cudaError_t SlicesCreate(const SpMVCudaCSR &csr, const Nodes &nodes, const RowGroups *groups, Tiles *tiles, bool single,
                         const Survey &survey, SliceRules rules, const SpMVNames &names, cudaStream_t stream,
                         _n_SpMVCudaStore **store)
{
  const int bs = nodes.bs, units = (int)(csr.m / bs);
  // entries of a slice are counted in 32 bits
  if (rules.threads && survey.longest / rules.threads >= INT_MAX / WARP) return cudaErrorNotSupported;
  Slices *s = new (std::nothrow) Slices;
  if (!s) return cudaErrorMemoryAllocation;
  *store       = s;
  s->nodes     = nodes;
  s->bs        = bs;
  s->single    = single;
  s->names     = names;
  s->chunk     = rules.chunk; // a multiple of WARP
  s->some_rows = !groups && survey.empty > units / 2;
  s->grouped   = groups != nullptr;
  s->places    = groups ? groups->count : s->some_rows ? units - survey.empty : units;
  if (tiles->count) {
    s->most = tiles->most;
    s->order.Swap(tiles->order);
    s->list.Swap(tiles->list);
  }
  Scratch<int> rows(stream);
  SPMV_TRY(s->Sort(csr, survey, rules, groups, stream, &rows));
  SPMV_TRY(s->Form(csr, rules, rows, tiles->start, stream));
  SPMV_TRY(s->IndexColumns(csr, rules, stream));
  SPMV_TRY(s->value.AllocZero((size_t)s->steps * WARP * bs * bs * StoredSize(single), stream));
  uint64_t policy;
  SPMV_TRY(ChoosePolicy(s->value.Bytes(), (size_t)(csr.m + csr.n) * sizeof(Scalar), stream, &policy));
  s->args = {s->args.slices, s->slice, s->order, s->parts, (char *)s->value, s->index, s->partial,
             s->arrived,     policy,   false,    0,        s->tile,          s->list};
  return WithStored(single, [&](auto type) { return s->Pick(type); });
}

} // namespace spmv
