/*
  Graph and aggregates of a level of PCGAMGAGG on the device, and the decision whether the device makes the level. On
  several ranks, the graph is that of the diagonal block: no aggregate has nodes of two ranks.
*/
#include "gamg.h"
#include "core/cuda/csr/csr.h"

#if PCGAMG_DEVICE

PetscErrorCode PCGAMGLevelFree(PCGAMGLevel *level)
{
  cudaStream_t stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCallCUDA(SpMVCudaAggregatesDestroy(&level->aggregates));
  for (int k = 0; k < 2; k++) {
    PetscCallCUDA(SpMVCudaSpGEMMDestroy(&level->product[k]));
    PetscCallCUDA(SpMVCudaFreeTemporary(&level->memory[k], stream));
  }
  PetscCall(PetscFree(level->garray));
  PetscCall(PetscMemzero(level, sizeof(*level)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A sequential matrix, or the blocks of a parallel one, the second of which is NULL without entries */
static PetscErrorCode MatGetBlocks_GAMG(Mat A, Mat block[2])
{
  MatInfo info;

  PetscFunctionBegin;
  block[0] = A;
  block[1] = NULL;
  if (!SpMVIsMPI(A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(MatGetInfo(block[1], MAT_LOCAL, &info));
  if (!info.nz_used) block[1] = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- graph and aggregates */

/* Why the device cannot make the level of A; empty if it can, as far as the options and the matrix are concerned */
static PetscErrorCode PCGAMGDeviceWhyNot(PC pc, const PC_GAMGDevice *d, Mat A, char why[], size_t len)
{
  const PC_GAMG     *gamg = PCGAMGGet(pc);
  const PC_GAMG_AGG *agg  = (const PC_GAMG_AGG *)gamg->subctx;
  PetscInt           bs;

  PetscFunctionBegin;
  PetscCall(MatGetBlockSize(A, &bs));
  PetscCall(MatSpMVWhyNot_CUDA(A, d->use ? NULL : "-pc_gamg_device 0", why, len));
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (A->structure_only || A->rmap->N == 0 || A->rmap->n % bs)
    PetscCall(PetscStrncpy(why, "the matrix has no rows or values, or incomplete blocks", len));
  else if (bs > 32 || gamg->data_cell_cols > 32)
    PetscCall(PetscStrncpy(why, "more than 32 unknowns per node, or vectors of the near null space", len));
  else if (gamg->use_aggs_in_asm || gamg->asm_hem_aggs)
    PetscCall(PetscStrncpy(why, "aggregates are the blocks of smoothers", len));
  else if (gamg->prolongator_filter > 0)
    PetscCall(PetscStrncpy(why, "-pc_gamg_prolongator_filter", len));
  else if (agg->use_minimum_degree_ordering)
    PetscCall(PetscStrncpy(why, "-pc_gamg_mis_k_minimum_degree_ordering", len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Creates the MatCoarsen as PETSc does, for its options and views, and gets from it what the device does: aggregates of
  the squared graph, or k passes on the graph
*/
static PetscErrorCode PCGAMGDeviceGetCoarsen(PC pc, PetscBool *square, PetscInt *k, char why[], size_t len)
{
  const PC_GAMG  *gamg = PCGAMGGet(pc);
  PC_GAMG_AGG    *agg  = (PC_GAMG_AGG *)gamg->subctx;
  const PetscBool many = (PetscBool)(gamg->current_level < agg->aggressive_coarsening_levels);
  const char     *prefix;
  PetscBool       mis, misk;

  PetscFunctionBegin;
  PetscCall(MatCoarsenDestroy(&agg->crs));
  PetscCall(MatCoarsenCreate(PetscObjectComm((PetscObject)pc), &agg->crs));
  PetscCall(PetscObjectGetOptionsPrefix((PetscObject)pc, &prefix));
  PetscCall(PetscObjectSetOptionsPrefix((PetscObject)agg->crs, prefix));
  PetscCall(PetscObjectAppendOptionsPrefix((PetscObject)agg->crs, "pc_gamg_"));
  PetscCall(MatCoarsenSetFromOptions(agg->crs));
  PetscCall(PetscObjectTypeCompare((PetscObject)agg->crs, MATCOARSENMIS, &mis));
  PetscCall(PetscObjectTypeCompare((PetscObject)agg->crs, MATCOARSENMISK, &misk));
  if (mis && agg->aggressive_coarsening_levels) agg->use_aggressive_square_graph = PETSC_TRUE;
  *square = (PetscBool)(many && agg->use_aggressive_square_graph);
  *k      = 1;
  if (!mis && !misk) {
    PetscCall(PetscSNPrintf(why, len, "-mat_coarsen_type %s", ((PetscObject)agg->crs)->type_name));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (agg->crs->strength_index_size > 0) PetscCall(PetscStrncpy(why, "-mat_coarsen_strength_index", len));
  if (*square)
    PetscCall(MatCoarsenSetType(agg->crs, MATCOARSENMIS));
  else if (many)
    PetscCall(MatCoarsenMISKSetDistance(agg->crs, agg->aggressive_mis_k));
  else if (agg->use_aggressive_square_graph && agg->aggressive_coarsening_levels > 0) {
    PetscCall(PetscObjectSetOptionsPrefix((PetscObject)agg->crs, prefix));
    PetscCall(MatCoarsenSetFromOptions(agg->crs));
  }
  PetscCall(PetscObjectTypeCompareAny((PetscObject)agg->crs, &misk, MATCOARSENMIS, MATCOARSENMISK, ""));
  if (!misk) PetscCall(PetscSNPrintf(why, len, "-mat_coarsen_type %s", ((PetscObject)agg->crs)->type_name));
  PetscCall(PetscObjectTypeCompare((PetscObject)agg->crs, MATCOARSENMISK, &misk));
  if (misk) PetscCall(MatCoarsenMISKGetDistance(agg->crs, k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* block: this rank's rows. *done is false if the device cannot do it. Without entries there are no aggregates */
static PetscErrorCode PCGAMGLevelCreate(PC pc, const Mat block[2], PetscBool symmetric, PetscInt bs, PetscBool square,
                                        PetscInt k, PCGAMGLevel *level, PetscBool *done)
{
  const PC_GAMG     *gamg    = PCGAMGGet(pc);
  const PC_GAMG_AGG *agg     = (const PC_GAMG_AGG *)gamg->subctx;
  const PetscInt    *outside = NULL;
  PetscInt64         missing = 0;
  SpMVCudaGraph      graph   = NULL;
  SpMVValues         v, w;
  MatInfo            info;

  PetscFunctionBegin;
  *done = PETSC_TRUE;
  PetscCall(MatGetInfo(block[0], MAT_LOCAL, &info));
  if (!info.nz_used) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLogEventBegin(petsc_gamg_setup_events[GAMG_GRAPH], 0, 0, 0, 0));
  PetscCall(SpMVValuesGet(block[0], PETSC_FALSE, &v));
  if (block[1]) {
    PetscCall(SpMVValuesGet(block[1], PETSC_FALSE, &w));
    outside = (const PetscInt *)w.csr.i;
  }
  if (agg->nsmooths > 0) PetscCall(SpMVValuesTried(SpMVCudaCSRMissing(&v.csr, v.stream, &missing), done));
  if (missing) *done = PETSC_FALSE;
  if (*done)
    PetscCall(SpMVValuesTried(SpMVCudaGraphCreate(&v.csr, bs, (PetscBool)(agg->graph_symmetrize && !symmetric),
                                                  gamg->threshold[gamg->current_level], outside, v.stream, &graph),
                              done));
  PetscCall(PetscLogEventEnd(petsc_gamg_setup_events[GAMG_GRAPH], 0, 0, 0, 0));
  PetscCall(PetscLogEventBegin(petsc_gamg_setup_events[GAMG_COARSEN], 0, 0, 0, 0));
  PetscCall(PetscLogEventBegin(petsc_gamg_setup_events[GAMG_MIS], 0, 0, 0, 0));
  if (*done)
    PetscCall(SpMVValuesTried(SpMVCudaAggregatesCreate(graph, square, (int)k, v.stream, &level->aggregates), done));
  PetscCall(PetscLogEventEnd(petsc_gamg_setup_events[GAMG_MIS], 0, 0, 0, 0));
  PetscCall(PetscLogEventEnd(petsc_gamg_setup_events[GAMG_COARSEN], 0, 0, 0, 0));
  PetscCallCUDA(SpMVCudaGraphDestroy(&graph));
  if (block[1]) PetscCall(SpMVValuesRestore(block[1], &w));
  PetscCall(SpMVValuesRestore(block[0], &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* d->level.made: whether the device makes the level; if not, PETSc does. Collective */
static PetscErrorCode PCGAMGDeviceTry(PC pc, PC_GAMGDevice *d, Mat A)
{
  const MPI_Comm comm   = PetscObjectComm((PetscObject)A);
  PetscBool      square = PETSC_FALSE, done = PETSC_TRUE, set, symmetric;
  PetscInt       k = 1, bs;
  char           why[sizeof(d->why)];
  Mat            block[2];

  PetscFunctionBegin;
  PetscCall(PCGAMGLevelFree(&d->level));
  PetscCall(PCGAMGDeviceWhyNot(pc, d, A, why, sizeof(why)));
  PetscCall(SpMVAgreeOnText(comm, PETSC_TRUE, why, sizeof(why))); /* the GPUs of two ranks may differ */
  PetscCall(MatGetBlockSize(A, &bs));
  if (!why[0]) PetscCall(PCGAMGDeviceGetCoarsen(pc, &square, &k, why, sizeof(why)));
  if (!why[0]) {
    PetscCall(MatGetBlocks_GAMG(A, block));
    PetscCall(MatIsSymmetricKnown(A, &set, &symmetric));
    PetscCall(
        SpMVAgree(comm, PCGAMGLevelCreate(pc, block, (PetscBool)(set && symmetric), bs, square, k, &d->level, &done)));
    if (!done)
      PetscCall(
          PetscStrncpy(why, "too little memory, columns that do not ascend, or missing diagonal entries", sizeof(why)));
    PetscCall(SpMVAgreeOnText(comm, PETSC_TRUE, why, sizeof(why)));
  }
  d->level.made = (PetscBool)!why[0];
  if (d->level.made) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrncpy(d->why, why, sizeof(d->why)));
  PetscCall(PetscInfo(pc, "Level %" PetscInt_FMT " is made by PETSc: %s\n", PCGAMGGet(pc)->current_level, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device takes a near null space from its vectors, and needs no array of the default one, in which each unknown of a
   node is constant. PETSc's array is made if its functions make the first level, or keep the array */
PetscErrorCode PCGAMGCreateDefaultData_Device(PC pc, Mat A)
{
  PC_GAMG       *gamg   = PCGAMGGet(pc);
  PetscInt       fields = 0, n, count = 0;
  PetscBool      petsc = (PetscBool)(!gamg->reuse_prol || gamg->injection_index_size > 0), constant = PETSC_FALSE;
  const Vec     *vecs;
  PC_GAMGDevice *d;
  MatNullSpace   modes;
  DM             dm;

  PetscFunctionBegin;
  PetscCall(PCGAMGDeviceGet(pc, &d));
  PetscCall(MatGetBlockSize(A, &gamg->data_cell_rows));
  PetscCall(MatGetNearNullSpace(A, &modes));
  if (modes) PetscCall(MatNullSpaceGetVecs(modes, &constant, &count, &vecs));
  if (constant || (modes && (!count || PetscDefined(USE_COMPLEX)))) petsc = PETSC_TRUE;
  for (PetscInt k = 0; k < count; k++) {
    PetscCall(VecGetLocalSize(vecs[k], &n));
    if (n != A->rmap->n) petsc = PETSC_TRUE; /* an error */
  }
  PetscCall(PCGetDM(pc, &dm));
  if (!dm) PetscCall(MatGetDM(A, &dm));
  if (dm && !modes) PetscCall(DMGetNumFields(dm, &fields));
  if (petsc || fields) {
    PetscCall((*d->ops.createdefaultdata)(pc, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  d->lazy              = PETSC_TRUE;
  gamg->data_cell_cols = modes ? count : gamg->data_cell_rows;
  gamg->data_sz        = 0;
  PetscCall(PetscMalloc1(1, &gamg->data)); /* PETSc asks whether there is an array */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGAMGCreateGraph_Device(PC pc, Mat A, Mat *G)
{
  PC_GAMGDevice *d;

  PetscFunctionBegin;
  PetscCall(PCGAMGDeviceGet(pc, &d));
  if (d->again) d->levels = d->device = 0;
  d->again = PETSC_FALSE;
  PetscCall(PCGAMGDeviceTry(pc, d, A));
  d->levels++;
  if (d->level.made) {
    d->device++;
    PetscCall(MatCreate(PetscObjectComm((PetscObject)A), G));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (d->lazy) {
    PetscCall(PetscFree(PCGAMGGet(pc)->data));
    PetscCall((*d->ops.createdefaultdata)(pc, A));
  }
  d->lazy = PETSC_FALSE;
  PetscCall(PCGAMGDeviceForget(d)); /* the next level's will be PETSc's */
  PetscCall((*d->ops.creategraph)(pc, A, G));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* There are aggregates already: the lists stay empty */
PetscErrorCode PCGAMGCoarsen_Device(PC pc, Mat *G, PetscCoarsenData **lists)
{
  PC_GAMGDevice *d;

  PetscFunctionBegin;
  PetscCall(PCGAMGDeviceGet(pc, &d));
  if (d->level.made)
    PetscCall(PetscCDCreate(0, lists));
  else
    PetscCall((*d->ops.coarsen)(pc, G, lists));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
