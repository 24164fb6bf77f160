/*
  The choice of a layout, shared by all formats, from statistics.
*/
#include "core/cuda/stores.cuh"

namespace spmv {

cudaError_t ShareOut(const SpMVCudaCSR &csr, const Nodes &nodes, const Survey &survey, SliceRules *r)
{
  const int64_t units = csr.m / nodes.bs, entries = nodes.Blocks(csr);
  const bool    bulk = survey.bulk * 4 > (unsigned long long)entries;
  int           processors;
  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
  const bool many = nodes.bs == 1 && entries >= Tuning::MANY_FROM * units &&
                    entries < (bulk ? Tuning::MANY_TO_BULK : Tuning::MANY_TO) * units;
  r->per_thread = many ? Tuning::PER_THREAD_MANY : Tuning::PER_THREAD;
  while (r->per_thread > Tuning::PER_THREAD_LEAST && entries / r->per_thread < processors * Tuning::THREADS)
    r->per_thread /= 2;
  r->chunk = bulk ? Tuning::CHUNK_BULK : Tuning::CHUNK;
  while (r->chunk > Tuning::CHUNK_LEAST && entries / r->chunk < processors * Tuning::CHUNKS) r->chunk /= 2;
  r->whole = PetscMax(r->chunk, (int)Tuning::LONG);
  return cudaSuccess;
}

cudaError_t ShareOutGroups(const SpMVCudaCSR &csr, const Survey &survey, SliceRules *r)
{
  int processors;
  SPMV_TRY(ShareOut(csr, 1, survey, r));
  r->per_thread = Tuning::GROUPS_VALUES;
  SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
  while (r->per_thread > Tuning::PER_THREAD_LEAST && csr.nnz / r->per_thread < processors * Tuning::THREADS)
    r->per_thread /= 2;
  r->chunk = PetscMax(r->chunk / RowGroups::MOST / WARP * WARP, (int)Tuning::GROUPS_CHUNK);
  r->whole = Tuning::GROUPS_LONG;
  while (r->whole > Tuning::GROUPS_LEAST && csr.nnz / r->whole < processors * Tuning::CHUNKS) r->whole /= 2;
  return cudaSuccess;
}

namespace {

// A matrix with its node blocks, its survey, and the layouts that it may be stored in
struct Layouts {
  const SpMVCudaCSR &csr;
  const Choice      &c;
  const Findings    &found;
  cudaStream_t       stream;
  Nodes              nodes   = {};
  Survey             survey  = {};
  int64_t            entries = 0;
  SliceRules         rules;
  RowGroups          groups; // count is 0: rows are stored one by one

  cudaError_t Take(const Nodes &use)
  {
    nodes   = use;
    entries = nodes.Blocks(csr);
    survey  = found.survey;
    if (nodes.bs > 1) SPMV_TRY(TakeSurvey(csr, nodes, stream, &survey));
    rules = c.rules(survey, nodes.bs, entries);
    return ShareOut(csr, nodes, survey, &rules);
  }

  // *store is NULL if diagonals are not worthwhile or would store more than `most` entries (blocks)
  cudaError_t Diagonals(_n_SpMVCudaStore **store, int64_t most = INT64_MAX) const
  {
    const int64_t value = (int64_t)nodes.bs * nodes.bs * (int64_t)StoredSize(c.single), units = csr.m / nodes.bs;
    int           processors;
    *store = nullptr;
    if (!c.diagonals || survey.empty > units / 2) return cudaSuccess;
    // With few rows, slices give each row several lanes. Even then, diagonals are faster if one round of loads is
    // enough
    SPMV_TRY(DeviceHas(cudaDevAttrMultiProcessorCount, &processors));
    if (survey.longest > Tuning::ONE_ROUND && units / WARP < limits.diagonals_least * processors) return cudaSuccess;
    // In slices, a column index takes two or four bytes per entry; the padding of diagonals may take as much
    return DiagonalsCreate(csr, nodes, c.single, PetscMin(entries * (value + 3) / value, most) + WARP, stream, store);
  }

  // After Take(). Takes row groups if there are any
  cudaError_t TakeGroups()
  {
    if (c.node || nodes.bs > 1) return cudaSuccess;
    if (entries > (int64_t)limits.groups_mean * (csr.m - survey.empty)) return cudaSuccess;
    SPMV_TRY(FindGroups(csr, found, stream, &groups));
    if (!groups.count) return cudaSuccess;
    rules = c.rules(survey, 1, entries);
    return ShareOutGroups(csr, survey, &rules);
  }

  cudaError_t Slices(SliceRules r, _n_SpMVCudaStore **store) const
  {
    Tiles tiles;
    if (c.reorder && nodes.bs == 1 && !groups.count) {
      const cudaError_t error = FindTiles(csr, survey, r, stream, &tiles);
      if (error != cudaErrorMemoryAllocation) SPMV_TRY(error);
      if (error) ForgetErrors(); // slices in the order of the rows need less memory to be made
    }
    if (tiles.count) { // rows are sorted within tiles, by length alone
      r.tile = r.sigma = tiles.size;
      r.by_column      = false;
    }
    const SpMVNames &names = groups.count ? c.groups : tiles.count ? c.tiles : nodes.bs > 1 ? c.nodes : c.entries;
    return SlicesCreate(csr, nodes, groups.count ? &groups : nullptr, &tiles, c.single, survey, r, names, stream,
                        store);
  }
};

} // namespace

cudaError_t Choose(const SpMVCudaCSR &csr, const Choice &c, cudaStream_t stream, _n_SpMVCudaStore **store)
{
  const int node = c.node <= MAX_NODE ? c.node : 1;
  Findings  found;
  Layouts   l{csr, c, found, stream};
  SPMV_TRY(Find(csr, node, stream, &found));
  Nodes nodes(NodeSize(csr, node, found)), some;
  SPMV_TRY(l.Take(nodes));
  // If most rows are empty, products must not touch the empty rows, but blocks may contain some
  if (node != 1 && nodes.bs == 1 && l.survey.empty <= csr.m / 2)
    SPMV_TRY(FindIncomplete(csr, node, found, StoredSize(c.single), stream, &some));
  // diagonals of single entries have no column indices, and are better if they store about as many values as the blocks
  if (some.bs > 1) {
    SPMV_TRY(l.Diagonals(store, (int64_t)((double)(some.Blocks(csr) * some.bs * some.bs) / Tuning::INCOMPLETE_GAIN)));
    if (*store) return cudaSuccess;
    SPMV_TRY(l.Take(some));
  }
  SPMV_TRY(l.Diagonals(store));
  if (*store) return cudaSuccess;
  SPMV_TRY(l.TakeGroups());
  return l.Slices(l.rules, store);
}

} // namespace spmv
