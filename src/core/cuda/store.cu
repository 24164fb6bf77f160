/*
  The interface in C, what all kinds of blocks have in common, and the choice between them.
*/
#include "stores.cuh"

using spmv::Scalar;

int SpMVCudaDiagonalsLeast = 12;

PetscBool SpMVCudaIsSupported(void)
{
  return spmv::Supported() == cudaErrorNotSupported ? PETSC_FALSE : PETSC_TRUE;
}

PetscBool SpMVCudaIsAligned(const PetscScalar *p)
{
  return spmv::IsAligned(p) ? PETSC_TRUE : PETSC_FALSE;
}

static cudaError_t Fill(SpMVCudaStore block, const SpMVCudaCSR *csr, cudaStream_t stream)
{
  SpMVCudaCSR use = *csr;
  if (block->from) { // the offsets, of A^T or of some rows, are the block's own, the values are looked up in A
    use   = {block->m, block->n, block->nnz, block->it, nullptr, 4, nullptr};
    use.a = csr->a;
  }
  SPMV_TRY(block->Fill(use, stream));
  return block->boundary ? Fill(block->boundary.get(), csr, stream) : cudaSuccess;
}

cudaError_t SpMVCudaFill(SpMVCudaStore block, const SpMVCudaCSR *csr, cudaStream_t stream)
{
  SPMV_TRY(block->order.Enter(stream, true));
  SPMV_TRY(Fill(block, csr, stream));
  return block->order.Leave(stream);
}

cudaError_t SpMVCudaMult(SpMVCudaStore block, PetscBool conjugate, const PetscScalar *x, const PetscScalar *z, PetscScalar *y, cudaStream_t stream)
{
  return spmv::Multiply(block, x, z, y, stream,
                        [=](const Scalar *ax, const Scalar *az, Scalar *ay) { return block->Mult((bool)conjugate, ax, az, ay, stream); });
}

cudaError_t SpMVCudaMultFused(SpMVCudaStore block, const PetscScalar *x, const PetscScalar *halo, const PetscScalar *z, PetscScalar *y, PetscBool early,
                              cudaStream_t stream)
{
  return spmv::Multiply(block, x, z, y, stream, [=](const Scalar *ax, const Scalar *az, Scalar *ay) {
    return block->MultFused(ax, (const Scalar *)halo, az, ay, early && ax == (const Scalar *)x, stream); // a copy of x has only just been made
  });
}

cudaError_t SpMVCudaFuseOffdiagonal(SpMVCudaStore block, const SpMVCudaCSR *csr, PetscInt64 most, cudaStream_t stream)
{
  SpMVStats stats = {};
  block->fused.reset();
  if (!block->CanFuseOffdiagonal() || csr->m != block->m) return cudaErrorNotSupported;
  block->Stats(&stats);
  std::unique_ptr<spmv::OffdiagonalRows> rows(new (std::nothrow) spmv::OffdiagonalRows);
  if (!rows) return cudaErrorMemoryAllocation;
  SPMV_TRY(rows->Create(*csr, (int)stats.node, most, stream));
  block->fused = std::move(rows);
  return cudaSuccess;
}

cudaError_t SpMVCudaFillOffdiagonal(SpMVCudaStore block, const SpMVCudaCSR *csr, cudaStream_t stream)
{
  SPMV_TRY(block->order.Enter(stream, true));
  SPMV_TRY(block->fused->Fill(*csr, block->single, stream));
  return block->order.Leave(stream);
}

PetscBool SpMVCudaHasOffdiagonal(SpMVCudaStore block)
{
  return block->fused ? PETSC_TRUE : PETSC_FALSE;
}

PetscBool SpMVCudaHasBoundary(SpMVCudaStore block)
{
  return block->boundary ? PETSC_TRUE : PETSC_FALSE;
}

PetscBool SpMVCudaSkipsEmptyRows(SpMVCudaStore block)
{
  return block->SkipsEmpty() ? PETSC_TRUE : PETSC_FALSE;
}

cudaError_t SpMVCudaMultRows(SpMVCudaStore block, SpMVCudaRows rows, const PetscScalar *x, const PetscScalar *z, PetscScalar *y, cudaStream_t stream)
{
  if (!spmv::IsAligned(x) || !spmv::IsAligned(z) || !spmv::IsAligned(y)) return cudaErrorMisalignedAddress;
  if (rows == SPMVCUDA_ROWS_INTERIOR) {
    SPMV_TRY(block->order.Enter(stream));
    SPMV_TRY(block->MultInterior((const Scalar *)x, (const Scalar *)z, (Scalar *)y, stream));
    return block->order.Leave(stream);
  }
  return (rows == SPMVCUDA_ROWS_BOUNDARY ? block->boundary.get() : block)->Mult(false, (const Scalar *)x, (const Scalar *)z, (Scalar *)y, stream);
}

cudaError_t SpMVCudaDestroy(SpMVCudaStore *block)
{
  const cudaError_t error = cudaDeviceSynchronize(); // also: what other kernels still write to, host memory too, goes with the block
  delete *block;
  *block = nullptr;
  return error;
}

void SpMVCudaGetStats(SpMVCudaStore block, SpMVStats *stats)
{
  memset(stats, 0, sizeof(*stats));
  block->Stats(stats);
  stats->nonzeros = block->nnz;
  stats->kernel   = block->names[block->single + 2 * block->measured];
  stats->bytes += block->it.Bytes() + block->from.Bytes();
  if (block->boundary) {
    SpMVStats boundary;
    SpMVCudaGetStats(block->boundary.get(), &boundary);
    stats->bytes += boundary.bytes;
  }
  if (block->fused) stats->bytes += (PetscInt64)block->fused->Bytes();
}

cudaError_t SpMVCudaVisit(SpMVCudaStore block, SpMVVisitor entry, void *ctx)
{
  SPMV_TRY(cudaDeviceSynchronize());
  return spmv::Guarded([=] { return block->Visit(entry, ctx); });
}

namespace spmv {
namespace {

// What a format leaves open: how units are shared out among lanes and warps, for all of the device
cudaError_t ShareOut(const SpMVCudaCSR &csr, int bs, const Survey &survey, SliceRules *r)
{
  const int64_t units = csr.m / bs, entries = csr.nnz / ((int64_t)bs * bs);
  const bool    bulk = survey.bulk * 4 > (unsigned long long)entries;
  int           processors;
  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
  // The fewer lanes a row has the more of its loads a lane issues at once, until they are a warp's anyhow; but where rows are short, or many of the
  // entries are in very long ones, the others should not end last
  if (!r->per_thread) {
    r->per_thread = bs == 1 && entries >= 16 * units && entries < (bulk ? 64 : 256) * units ? 32 : 16;
    while (r->per_thread > 4 && entries / r->per_thread < processors * 256) r->per_thread /= 2;
  }
  // A few long units should not end last; where many are long, parts are an expense, and their warps read x in several places at once
  r->chunk = bulk ? 4096 : 256;
  while (r->chunk > 1024 && entries / r->chunk < processors * 12) r->chunk /= 2;
  r->whole = PetscMax(r->chunk, (int)Survey::LONG);
  return cudaSuccess;
}

// A block as it may be laid out: its pattern seen by node blocks of size bs, and what that survey says
struct Layouts {
  const SpMVCudaCSR &csr;
  const Choice      &c;
  cudaStream_t       stream;
  int                bs      = 1;
  Survey             survey  = {};
  int64_t            entries = 0;
  SliceRules         rules;

  cudaError_t Look(int size)
  {
    bs      = size;
    entries = csr.nnz / ((int64_t)bs * bs);
    SPMV_TRY(TakeSurvey(csr, bs, stream, &survey));
    rules = c.rules(survey, bs, entries);
    return ShareOut(csr, bs, survey, &rules);
  }

  // *block NULL: they do not pay
  cudaError_t Diagonals(_n_SpMVCudaStore **block) const
  {
    const int64_t value = (int64_t)bs * bs * (int64_t)StoredSize(c.single);
    int           processors;
    *block = nullptr;
    if (!c.diagonals || survey.empty > csr.m / bs / 2) return cudaSuccess;
    // Slices give a row more lanes than one where rows are few; only what takes a single round of loads is faster on diagonals even so
    SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
    if (!c.measure && survey.longest > 9 && csr.m / bs / WARP < SpMVCudaDiagonalsLeast * processors) return cudaSuccess;
    // A column index takes two or four bytes of a slice's entry; diagonals may be padded by as much
    return DiagonalsCreate(csr, bs, c.single, entries * (value + 3) / value + WARP, stream, block);
  }

  cudaError_t Slices(const SliceRules &r, _n_SpMVCudaStore **block) const
  {
    return SlicesCreate(csr, bs, c.single, survey, r, bs > 1 ? c.nodes : c.entries, nullptr, stream, block);
  }
};

/*
  Keeps the fastest of the blocks it is shown, one after the other, so that no more than two exist at a time. Values are not there yet,
  and those of a new block are zeros, which cost as much time as others. Only diagonals could be faster with the values to come, as
  steps of equal ones are not marked yet: they are judged as if there will be none.
*/
class Contest {
public:
  Contest(const SpMVCudaCSR &csr, cudaStream_t stream) : csr(csr), stream(stream)
  {
  }
  Contest(const Contest &) = delete;
  ~Contest()
  {
    delete best;
    for (cudaEvent_t e : event) {
      if (e) cudaEventDestroy(e);
    }
  }

  cudaError_t Begin()
  {
    for (cudaEvent_t &e : event) SPMV_TRY(cudaEventCreate(&e));
    SPMV_TRY(x.Alloc(csr.n));
    SPMV_TRY(y.Alloc(csr.m));
    return x.Zero(stream);
  }

  // create(&block) makes the next one, or none. *won: it is the fastest so far
  template <class F> cudaError_t Enter(F create, bool *won)
  {
    _n_SpMVCudaStore *b     = nullptr;
    float             t     = 0;
    cudaError_t       error = create(&b);
    *won                    = false;
    if (error == cudaSuccess && b) error = Time(b, &t);
    if (error == cudaSuccess && b && (!best || t < 0.97f * time - 3e-4f)) { // no change for what may be chance: launches vary by 0.3 us
      std::swap(b, best);
      time = t;
      *won = true;
    }
    delete b;
    if (error == cudaErrorNotSupported || error == cudaErrorMemoryAllocation) { // there are others
      failed = error;
      (void)cudaGetLastError();
      return cudaSuccess;
    }
    return error;
  }

  cudaError_t End(_n_SpMVCudaStore **block)
  {
    if (!best) return failed;
    best->measured = true;
    *block         = best;
    best           = nullptr;
    return cudaSuccess;
  }

private:
  cudaError_t Products(_n_SpMVCudaStore *b, int count, float *each)
  {
    SPMV_TRY(cudaEventRecord(event[0], stream));
    for (int k = 0; k < count; k++) SPMV_TRY(b->Mult(false, x, nullptr, y, stream));
    SPMV_TRY(cudaEventRecord(event[1], stream));
    SPMV_TRY(cudaEventSynchronize(event[1]));
    SPMV_TRY(cudaEventElapsedTime(each, event[0], event[1]));
    *each /= (float)count;
    return cudaSuccess;
  }

  // The least of four means, of two products and three times of more
  cudaError_t Time(_n_SpMVCudaStore *b, float *least)
  {
    float t;
    b->Of(csr);
    SPMV_TRY(Products(b, 2, &t)); // warm
    SPMV_TRY(Products(b, 2, least));
    const int count = (int)PetscMax(3.f, PetscMin(20.f, 0.3f / (*least + 1e-6f))); // 0.3 ms or more
    for (int k = 0; k < 3; k++) {
      SPMV_TRY(Products(b, count, &t));
      *least = PetscMin(t, *least);
    }
    return cudaSuccess;
  }

  const SpMVCudaCSR &csr;
  cudaStream_t       stream;
  cudaEvent_t        event[2] = {};
  Array<Scalar>      x, y;
  _n_SpMVCudaStore  *best   = nullptr;
  float              time   = 0;
  cudaError_t        failed = cudaErrorNotSupported;
};

// In the order of what the statistics would have chosen
cudaError_t Measure(Layouts l, int node, _n_SpMVCudaStore **block)
{
  Contest contest(l.csr, l.stream);
  bool    won;
  SPMV_TRY(contest.Begin());
  for (int bs = node; bs; bs = bs > 1 ? 1 : 0) {
    SPMV_TRY(l.Look(bs));
    SPMV_TRY(contest.Enter([&](_n_SpMVCudaStore **b) { return l.Diagonals(b); }, &won));
    SliceRules r = l.rules;
    SPMV_TRY(contest.Enter([&](_n_SpMVCudaStore **b) { return l.Slices(r, b); }, &won));
    bool slices = won; // the fastest so far
    for (int sigma : l.c.sigmas) {
      SliceRules other = r;
      other.sigma      = sigma;
      // The natural order may be far too much padding to try
      if (sigma == l.rules.sigma || (sigma == 1 && l.survey.natural > 4 * (unsigned long long)l.entries)) continue;
      SPMV_TRY(contest.Enter([&](_n_SpMVCudaStore **b) { return l.Slices(other, b); }, &won));
      if (won) r = other;
      slices = slices || won;
    }
    for (int per : {l.rules.per_thread / 2, l.rules.per_thread * 2}) {
      SliceRules other = r;
      other.per_thread = per;
      if (!slices || r.threads || !per) continue;
      SPMV_TRY(contest.Enter([&](_n_SpMVCudaStore **b) { return l.Slices(other, b); }, &won));
    }
  }
  return contest.End(block);
}

constexpr SpMVNames BOUNDARY_ROWS = SPMV_NAMES("CUDA slices of the rows boundary");

} // namespace

cudaError_t Choose(const SpMVCudaCSR &csr, const Choice &c, cudaStream_t stream, _n_SpMVCudaStore **block)
{
  int     bs = 1;
  Layouts l{csr, c, stream};
  if (c.node <= MAX_NODE) SPMV_TRY(FindNodeSize(csr, c.node ? c.node : MAX_NODE, stream, &bs));
  if (c.node && bs != c.node) bs = 1;
  if (c.measure) return Measure(l, bs, block);
  SPMV_TRY(l.Look(bs));
  SPMV_TRY(l.Diagonals(block));
  return *block ? cudaSuccess : l.Slices(l.rules, block);
}

} // namespace spmv

static cudaError_t SetBoundary(SpMVCudaStore block, const SpMVCudaCSR *csr, int count, const int row[], PetscInt64 most, cudaStream_t stream)
{
  const int bs = block->UnitSize();
  if (!bs || csr->nnz > SPMVCUDA_MAX_SIZE) return cudaErrorNotSupported;

  const int             units = block->m / bs;
  std::vector<unsigned> mark;
  std::vector<int>      unit, rows;
  spmv::Array<unsigned> want, all;
  mark.resize(((size_t)units + spmv::WARP - 1) / spmv::WARP);
  for (int k = 0; k < count; k++) mark[row[k] / bs / spmv::WARP] |= 1u << row[k] / bs % spmv::WARP;
  SPMV_TRY(spmv::Upload(want, mark, stream));
  SPMV_TRY(all.Alloc(mark.size()));
  SPMV_TRY(all.Zero(stream));
  SPMV_TRY(block->SetBoundary(want, all, stream));
  SPMV_TRY(spmv::Fetch(mark.data(), (unsigned *)all, mark.size(), stream));
  for (int u = 0; u < units; u++) {
    if (!(mark[u / spmv::WARP] >> u % spmv::WARP & 1)) continue;
    unit.push_back(u);
    for (int e = 0; e < bs; e++) rows.push_back(u * bs + e);
  }
  if ((PetscInt64)rows.size() > most) return cudaErrorNotSupported;

  spmv::Array<int>  of, list, it, jt, from;
  spmv::Survey      survey;
  spmv::SliceRules  rules;
  _n_SpMVCudaStore *b = nullptr;
  SPMV_TRY(spmv::Upload(of, unit, stream));
  SPMV_TRY(spmv::Upload(list, rows, stream));
  SPMV_TRY(spmv::SelectRows(*csr, list, (int)rows.size(), stream, it, jt, from));

  const SpMVCudaCSR boundary = {(PetscInt64)rows.size(), csr->n, (PetscInt64)(from.Bytes() / sizeof(int)), it, jt, 4, nullptr};
  SPMV_TRY(spmv::TakeSurvey(boundary, bs, stream, &survey));
  rules.sigma      = 1;
  rules.per_thread = 8; // few rows: what counts is how soon the last of them ends
  SPMV_TRY(spmv::ShareOut(boundary, bs, survey, &rules));
  const cudaError_t error = spmv::SlicesCreate(boundary, bs, block->single, survey, rules, spmv::BOUNDARY_ROWS, &of, stream, &b);
  block->boundary.reset(b);
  if (error != cudaSuccess) {
    block->boundary.reset();
    return error;
  }
  b->Of(boundary);
  b->it.Swap(it);
  b->from.Swap(from);
  return cudaSuccess;
}

cudaError_t SpMVCudaSetBoundary(SpMVCudaStore block, const SpMVCudaCSR *csr, int count, const int row[], PetscInt64 most, cudaStream_t stream)
{
  return spmv::Guarded([=] { return SetBoundary(block, csr, count, row, most, stream); });
}
