/*
  Slices on the device. kernels.h describes the layout.
*/
#include "kernels.cuh"

using namespace batch;

namespace {

struct SliceArgs {
  unsigned          slices, blocks, groups; // number of slices of a group, of thread blocks of a group, and of groups
  const BatchSlice *slice;
  const BatchBlock *block;
  const void       *order, *index;
  const Scalar     *value;
  int64_t           stride;           // number of values of a group; 0 if they are shared
  int               group_rows, rows; // number of rows of a group, and of the matrix
};

template <class I> __device__ __forceinline__ bool IsPadding(I index)
{
  return index == (I) ~(I)0;
}

constexpr int UNROLL = 8; // steps whose values and indices are loaded before the first is used

// Prefetches the first UNROLL steps of a slice into the L2 cache. count: number of values of the slice
template <class T> __device__ __forceinline__ void Prefetch(const T *from, int count, int lane)
{
  constexpr int EACH = 128 / (int)sizeof(T); // number of elements in a cache line
#pragma unroll
  for (int k = 0; k < UNROLL * WARP; k += WARP * EACH) {
    const int at = k + lane * EACH;
    if (at < UNROLL * WARP && at < count) asm volatile("prefetch.global.L2 [%0];" ::"l"(from + at));
  }
}

// Computes the rows of y of a slice in shared memory. Columns and rows are numbered from the slice's base. U: rows per
// lane. SHARING: data that other groups also read stays in the caches
template <class I, int SHARING, int U, class X>
__device__ __forceinline__ void product(const SliceArgs &args, const BatchSlice &slice, int lane, int64_t value,
                                        SpMVCudaForm form, const X &x, int ys)
{
  const int steps        = BatchSliceSteps(slice.shape) * U,
            rows_at_once = WARP >> (U == 1 ? BatchSliceLogLanes(slice.shape) : 0);
  const Scalar *v        = args.value + value + (int64_t)slice.first_step * WARP + lane;
  const I      *index    = (const I *)args.index + (int64_t)slice.first_step * WARP + lane;
  Scalar        sum[U];
  int           row[U];

#pragma unroll
  for (int u = 0; u < U; u++) {
    const int q = U > 1 ? u * WARP + lane : lane % rows_at_once;
    row[u]      = q < BatchSliceRows(slice.shape) ? (int)__ldg((const I *)args.order + slice.first_row + q) : -1;
    sum[u]      = Num::zero();
  }
  // FULL: no step is past the end, so no branch separates the loads
  auto multiply_steps = [&](int k0, auto full) {
    constexpr bool FULL = decltype(full)::value;
    Scalar         a[UNROLL];
    I              col[UNROLL];
#pragma unroll
    for (int k = 0; k < UNROLL; k++) {
      const bool in = FULL || k0 + k < steps;
      col[k]        = !in ? (I) ~(I)0 : SHARING ? __ldg(index + (k0 + k) * WARP) : __ldcs(index + (k0 + k) * WARP);
      a[k]          = !in                             ? Num::zero()
                      : SHARING == BATCH_SHARE_VALUES ? Num::ordered(v + (int64_t)(k0 + k) * WARP)
                                                      : Num::stream(v + (int64_t)(k0 + k) * WARP);
    }
    Issue();
#pragma unroll
    for (int k = 0; k < UNROLL; k++) { // padding is 0 times 0
      const Scalar xk = IsPadding(col[k]) ? Num::zero() : x((int)col[k]);
      sum[k % U]      = Num::fma(Conjugated(form, a[k]), xk, sum[k % U]);
    }
  };
  int k0 = 0;
#pragma unroll 1
  for (; k0 + UNROLL <= steps; k0 += UNROLL) multiply_steps(k0, std::true_type{});
  if (k0 < steps) multiply_steps(k0, std::false_type{});
  if (U == 1) {
    for (int by = WARP / 2; by >= rows_at_once; by >>= 1) sum[0] = Num::add(sum[0], Num::down(sum[0], by));
  }
#pragma unroll
  for (int u = 0; u < U; u++) {
    if (row[u] >= 0 && (U > 1 || lane < rows_at_once)) ((Scalar *)spmv_shared)[ys + row[u]] = sum[u];
  }
}

/*
  Multiplies the windows of a thread block. x is loaded into registers and then stored in shared memory. In between,
  each warp prefetches its first slice, so that the two latencies overlap. (Prefetching all slices of the thread block
  costs more in the L2 cache than it gains.)
*/
template <class I, int SHARING>
__global__ void __launch_bounds__(BLOCK, 4)
    slices(SliceArgs args, SpMVCudaForm form, const Scalar *x, const Scalar *z, Scalar *y)
{
  constexpr int  WARPS = BLOCK / WARP, EACH = BATCH_BLOCK_ROWS / BLOCK;
  const unsigned group = SHARING ? blockIdx.x / args.blocks : 0, b = blockIdx.x - group * args.blocks,
                 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int4 own = __ldg((const int4 *)args.block + b),
             // BatchBlock: first_slice, first_row, first_column, columns
      next = __ldg((const int4 *)args.block + b + 1);
  // the last group may have fewer problems
  const int      first = (int)group * args.group_rows, left = args.rows - first;
  const int      rows = next.y - own.y, columns = own.w;
  const int64_t  value = group * args.stride;
  const unsigned begin = own.x + warp, end = next.x;
  Scalar *const ys = (Scalar *)spmv_shared, *const xs = ys + rows;
  Scalar staged[EACH];
  int4   w = {};

  auto load = [&](int k) {
    return k < columns && own.z + k < left ? Num::ordered(x + first + own.z + k) : Num::zero();
  };
  if (begin < end) w = __ldg((const int4 *)args.slice + begin);
  AwaitPrevious();
#pragma unroll
  for (int k = 0; k < EACH; k++) staged[k] = load(k * BLOCK + threadIdx.x);
  if (begin < end) {
    const unsigned shape = (unsigned)w.w;
    const int      count = (BatchSliceSteps(shape) << BatchSliceLogRows(shape)) * WARP;
    Prefetch(args.value + value + (int64_t)w.x * WARP, count, (int)lane);
    Prefetch((const I *)args.index + (int64_t)w.x * WARP, count, (int)lane);
  }
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int at = k * BLOCK + threadIdx.x;
    if (at < columns) xs[at] = staged[k];
  }
  for (int k = EACH * BLOCK + threadIdx.x; k < columns; k += BLOCK) xs[k] = load(k);
  __syncthreads();
#pragma unroll 1
  for (unsigned s = begin; s < end; s += WARPS) {
    const BatchSlice slice = {(unsigned)w.x, w.y, w.z, (unsigned)w.w};

    // the next slice, loaded while this one is multiplied
    if (s + WARPS < end) w = __ldg((const int4 *)args.slice + s + WARPS);
    auto multiply = [&](const auto &at) {
      switch (BatchSliceLogRows(slice.shape)) {
      case 0: product<I, SHARING, 1>(args, slice, (int)lane, value, form, at, slice.base - own.y); break;
      case 1: product<I, SHARING, 2>(args, slice, (int)lane, value, form, at, slice.base - own.y); break;
      default: product<I, SHARING, 4>(args, slice, (int)lane, value, form, at, slice.base - own.y);
      }
    };
    if (columns) {
      const int from = rows + slice.base - own.z;
      multiply([&](int col) { return ((const Scalar *)spmv_shared)[from + col]; });
    } else {
      const Scalar *from = x + first + slice.base;
      multiply([&](int col) { return Num::ordered(from + col); });
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < rows; k += BLOCK) {
    const int r = own.y + k;
    if (r < left) Store(z, y, first + r, ys[k]);
  }
}

// Calls f(position, row, entry) for each position of a value in the warp's slice; entry is -1 for padding. Rows and
// entries are numbered within a group
template <class I, class F>
__device__ __forceinline__ void ForPositions(const SliceArgs &args, const BatchSlice &slice, const PetscInt *i,
                                             const F &f)
{
  const int lane = threadIdx.x % WARP, log_lanes = BatchSliceLogLanes(slice.shape),
            U = 1 << BatchSliceLogRows(slice.shape), rows_at_once = WARP >> log_lanes;
  const int steps = BatchSliceSteps(slice.shape);
  for (int u = 0; u < U; u++) {
    const int q = U > 1 ? u * WARP + lane : lane % rows_at_once;
    int64_t   e = 0, end = 0;
    int       r = 0;
    if (q < BatchSliceRows(slice.shape)) {
      r   = slice.base + (int)((const I *)args.order)[slice.first_row + q];
      e   = i[r] + (U > 1 ? 0 : lane / rows_at_once);
      end = i[r + 1];
    }
    for (int k = 0; k < steps; k++, e += 1 << log_lanes)
      f(((int64_t)slice.first_step + k * U + u) * WARP + lane, r, e < end ? e : -1);
  }
}

// Each warp fills a slice of a group. i: row offsets of a group. Numbers: `entries` of a group, `pattern_entries` of
// the pattern, `values` of the matrix
template <class I>
__global__ void fill_slices(SliceArgs args, const PetscInt *i, int64_t entries, int64_t pattern_entries, int64_t values,
                            int sharing, const int *value_index, const Scalar *a, Scalar *to)
{
  const int64_t s = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP;
  if (s >= (int64_t)args.groups * args.slices) return;
  const int64_t    group = s / args.slices;
  const BatchSlice slice = args.slice[s - group * args.slices];
  ForPositions<I>(args, slice, i, [&](int64_t position, int, int64_t e) {
    Scalar value = Num::zero();
    if (e >= 0) {
      const int64_t at = ValueOf(sharing == BATCH_SHARE_VALUES ? e % pattern_entries : e + group * entries,
                                 pattern_entries, value_index);
      if (at < values) value = a[at]; // the last group may have fewer problems
    }
    to[group * args.stride + position] = value;
  });
}

// j: columns of the pattern; first: for each row of a group, the first row of its problem
template <class I>
__global__ void index_slices(SliceArgs args, const PetscInt *i, const int *j, int64_t pattern_entries, const int *first,
                             I *to)
{
  const int64_t s = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / WARP;
  if (s >= args.slices) return;
  const BatchSlice slice = args.slice[s];
  ForPositions<I>(args, slice, i, [&](int64_t position, int r, int64_t e) {
    to[position] = e < 0 ? (I) ~(I)0 : (I)(first[r] - slice.base + j[e % pattern_entries]);
  });
}

struct Slices : _n_BatchCuda {
  SliceArgs         args          = {};
  int               width         = 0;
  int64_t           group_entries = 0, bytes = 0, stored = 0;
  size_t            shared = 0; // shared memory of a thread block
  Kernel            kernel;
  Array<BatchSlice> slice;
  Array<BatchBlock> block;
  Array<char>       order, index;
  Array<PetscInt>   i;
  Array<Scalar>     value;

  template <class I> cudaError_t CreateAs(const BatchPattern *B, const BatchSlices *S)
  {
    const void *all[] = {(const void *)slices<I, BATCH_SHARE_NONE>, (const void *)slices<I, BATCH_SHARE_PATTERN>,
                         (const void *)slices<I, BATCH_SHARE_VALUES>};
    int        *rows;
    Array<int>  j, first;
    kernel.Choose(all[sharing]);
    SPMV_TRY(kernel.Load());
    if (BatchSlicesGetFirstRows(B, S, &rows)) return cudaErrorMemoryAllocation;
    cudaError_t error = Upload(first, (const int *)rows, (size_t)S->rows);
    if (PetscFree(rows)) error = cudaErrorUnknown;
    SPMV_TRY(error);
    SPMV_TRY(UploadAs(j, B->j, (size_t)entries));
    SPMV_LAUNCH((int64_t)args.slices * WARP, BLOCK, nullptr, index_slices<I>, args, i, j, entries, first,
                (I *)(char *)index);
    return cudaSuccess;
  }

  cudaError_t Create(const BatchPattern *B, const BatchSlices *S)
  {
    const int64_t            copies  = sharing == BATCH_SHARE_PATTERN ? S->groups : 1;
    static const char *const names[] = {"slices, 8-bit indices", "slices, 16-bit indices", "slices, 32-bit indices"};
    if ((int64_t)S->blocks * S->groups >= INT_MAX) return cudaErrorNotSupported;
    width         = S->width;
    name          = names[width == 1 ? 0 : width == 2 ? 1 : 2];
    group_entries = S->entries;
    bytes         = BatchSlicesBytes(B, S);
    stored        = S->steps * WARP * copies;
    for (PetscInt b = 0; b < S->blocks; b++)
      shared = std::max(shared, (size_t)(S->block[b + 1].first_row - S->block[b].first_row + S->block[b].columns) *
                                    sizeof(Scalar));
    SPMV_TRY(Upload(slice, S->slice, (size_t)S->slices));
    SPMV_TRY(Upload(block, S->block, (size_t)S->blocks + 1));
    SPMV_TRY(Upload(order, (const char *)S->order, (size_t)S->rows * width));
    SPMV_TRY(Upload(i, S->i, (size_t)S->rows + 1));
    SPMV_TRY(index.Alloc((size_t)S->steps * WARP * width));
    SPMV_TRY(value.Alloc((size_t)stored)); // Fill() writes every value, including the padding
    args.slices     = (unsigned)S->slices;
    args.blocks     = (unsigned)S->blocks;
    args.groups     = (unsigned)S->groups;
    args.slice      = slice;
    args.block      = block;
    args.order      = (char *)order;
    args.index      = (char *)index;
    args.value      = value;
    args.stride     = copies > 1 ? S->steps * WARP : 0;
    args.group_rows = S->rows;
    args.rows       = rows;
    SPMV_TRY(width == 1   ? CreateAs<unsigned char>(B, S)
             : width == 2 ? CreateAs<unsigned short>(B, S)
                          : CreateAs<int>(B, S));
    return cudaDeviceSynchronize();
  }

  template <class I> cudaError_t FillAs(cudaStream_t stream)
  {
    SliceArgs use = args;
    if (sharing == BATCH_SHARE_VALUES) use.groups = 1; // the values are stored once
    SPMV_LAUNCH((int64_t)use.groups * use.slices * WARP, BLOCK, stream, fill_slices<I>, use, i, group_entries, entries,
                values, (int)sharing, value_index, source, value);
    return cudaSuccess;
  }

  cudaError_t Fill(cudaStream_t stream) override
  {
    return width == 1   ? FillAs<unsigned char>(stream)
           : width == 2 ? FillAs<unsigned short>(stream)
                        : FillAs<int>(stream);
  }

  cudaError_t Mult(bool conjugate, const Scalar *x, const Scalar *z, Scalar *y, cudaStream_t stream) override
  {
    if (!args.slices) return cudaSuccess;
    return kernel.Launch(args.blocks * args.groups, BLOCK, args, conjugate ? SPMVCUDA_CONJUGATE : SPMVCUDA_MULT,
                         {x, z, y}, stream, shared);
  }

  void Stats(BatchStats *s) const override
  {
    s->stored = stored;
    s->bytes  = bytes;
    s->slices = args.slices;
    s->index  = width;
  }
};

// Frees its arrays, even if an exception is thrown
struct Layout : BatchSlices {
  Layout() : BatchSlices()
  {
  }
  ~Layout()
  {
    (void)BatchSlicesDestroy(this);
  }
};

} // namespace

cudaError_t batch::CreateSlices(Side &side, _n_BatchCuda **b)
{
  const BatchPattern *B;
  Layout              S;
  BatchStats          stats = {};
  PetscBool           fits;
  int                 processors;
  Slices             *s;
  SPMV_TRY(side.GetPattern(&B));
  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
  if (BatchSlicesCreate(B, processors, &S, &fits)) return cudaErrorMemoryAllocation;
  if (*b) (*b)->Stats(&stats);
  if (!fits) return *b ? cudaSuccess : cudaErrorNotSupported;
  if (*b && BatchSlicesBytes(B, &S) >= SLICES_MAY_TAKE * stats.bytes) return cudaSuccess;
  SPMV_TRY(side.New(&s, true, b));
  return s->Create(B, &S);
}
