/*
  What sequential and MPI matrices of every format have in common: taking over an AIJ matrix and giving it back, conversion, duplication,
  options, views, and the products of matrices.
*/
#include "matspmv.h"

static const char SpMVKey[] = "PetscSpMV";

const char *const SpMVKernelTypes[] = {"auto", "slices", "csr", "aij", "paper", "SpMVKernel", "SPMV_KERNEL_", NULL};

/*
  What AIJ (and AIJCUSPARSE) do, on the host or a device, sequential and MPI, where a matrix' own data cannot tell: MatHeaderMerge() calls destroy after it has taken
  away the list that holds them, and MatDuplicate() gives what we composed with a matrix to one that is none of ours. Of a matrix as it is created, as PETSc puts
  functions of its own before AIJ's in some that it makes (submatrices).
*/
static struct {
  PetscErrorCode (*destroy)(Mat); /* NULL: not known yet */
  PetscErrorCode (*retrieve)(Mat);
  PetscErrorCode (*store)(Mat);
  PetscErrorCode (*productsetfromoptions)(Mat); /* of AIJCUSPARSE and AIJ */
} SpMVParents[2][2];

static PetscErrorCode SpMVLearnParent(PetscBool device, PetscBool mpi)
{
  const char *const type[2][2] = {{MATSEQAIJ, MATMPIAIJ}, {MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE}};
  SpMVHidden        hidden;
  Mat               A;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  if (SpMVParents[device][mpi].destroy) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(SpMVHideSeqAIJType(&hidden));
  ierr = MatSetType(A, type[device][mpi]);
  PetscCall(SpMVShowSeqAIJType(&hidden)); /* after an error, too */
  PetscCall(ierr);
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatRetrieveValues_C", &SpMVParents[device][mpi].retrieve));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatStoreValues_C", &SpMVParents[device][mpi].store));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatProductSetFromOptions_seqaijcusparse_seqaij_C", &SpMVParents[device][mpi].productsetfromoptions));
  SpMVParents[device][mpi].destroy = A->ops->destroy;
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVDestroy(Mat_SpMV *spmv)
{
  PetscFunctionBegin;
  PetscCall(SpMVStoreDestroy(&spmv->block));
#if defined(PETSCSPMV_HAVE_CUDA)
  for (int k = 0; k < 2; k++) {
    if (spmv->cuda[k].block) PetscCallCUDA(SpMVCudaDestroy(&spmv->cuda[k].block));
  }
  PetscCall(PetscFree(spmv->boundary));
  PetscCall(SpMVHaloDestroy(&spmv->halo));
#endif
  PetscCall(PetscFree(spmv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_LT(3, 23, 0)
static PetscErrorCode SpMVDestroyCtx(void *ctx)
{
  return SpMVDestroy((Mat_SpMV *)ctx);
}
#elif PETSC_VERSION_LT(3, 25, 0)
static PetscErrorCode SpMVDestroyCtx(void **ctx)
{
  return SpMVDestroy(*(Mat_SpMV **)ctx);
}
#else
static PetscErrorCode SpMVDestroyCtx(PetscCtxRt ctx)
{
  return SpMVDestroy(*(Mat_SpMV **)ctx);
}
#endif

/*
  MatHeaderMerge() replaces the data of a matrix, as MatAXPY() of another pattern does, and in older PETSc (3.18) what we have composed with it: the parameters are then
  those of the matrix that it is merged with. In between it destroys the data, which is where they are kept for the matrix to get them back.
*/
static struct {
  Mat               mat; /* NULL for none */
  const SpMVFormat *format;
  SpMVParams        params;
} SpMVMerged;

static PetscErrorCode SpMVMergedSet(Mat A, const Mat_SpMV *spmv)
{
  PetscFunctionBegin;
  PetscCall(PetscMemcpy(SpMVMerged.params, spmv->params, sizeof(SpMVMerged.params)));
  SpMVMerged.mat    = A;
  SpMVMerged.format = spmv->format;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVGet(Mat A, Mat_SpMV **spmv)
{
  PetscContainer container;

  PetscFunctionBegin;
  *spmv = NULL;
  PetscCall(PetscObjectQuery((PetscObject)A, SpMVKey, (PetscObject *)&container));
  if (container) PetscCall(PetscContainerGetPointer(container, (void **)spmv));
  if (A == SpMVMerged.mat && *spmv) {
    SpMVMerged.mat = NULL;
    if (SpMVMerged.format == (*spmv)->format) PetscCall(MatSpMVSetParams(A, *spmv, SpMVMerged.params));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVForgetHost(Mat A, Mat_SpMV *spmv)
{
  PetscFunctionBegin;
  PetscCall(SpMVStoreDestroy(&spmv->block));
  if (spmv->plain) MatSpMVUseParent(A, spmv, PETSC_FALSE);
  spmv->source.mat = NULL;
  spmv->plain      = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVForget(Mat A, Mat_SpMV *spmv)
{
  PetscFunctionBegin;
  PetscCall(MatSpMVForgetHost(A, spmv));
#if defined(PETSCSPMV_HAVE_CUDA)
  for (int k = 0; k < 2; k++) PetscCall(MatSpMVForget_CUDA(spmv, k));
#endif
  spmv->id[0] = spmv->id[1] = 0;
  PetscCall(PetscMemzero(spmv->agreed, sizeof(spmv->agreed)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSpMVSetParams(Mat A, Mat_SpMV *spmv, const void *params)
{
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(PetscMemcmp(spmv->params, params, spmv->format->paramssize, &same));
  if (!same) {
    PetscCall(PetscMemcpy(spmv->params, params, spmv->format->paramssize));
    PetscCall(MatSpMVForget(A, spmv));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An integer option within [lower, upper]. Not PetscOptionsRangeInt(): it refuses our 0, "choose", as the value so far */
PetscErrorCode SpMVOptionsInt(Mat A, SpMVOptionItems PetscOptionsObject, const char option[], const char text[], const char manual[], PetscInt lower,
                              PetscInt upper, PetscInt *value)
{
  const char *prefix = ((PetscObject)A)->prefix ? ((PetscObject)A)->prefix : "";
  PetscBool   set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInt(option, text, manual, *value, value, &set));
  if (set) {
    PetscCheck(*value >= lower && *value <= upper, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE,
               "Option -%s%s is %" PetscInt_FMT ": it must be from %" PetscInt_FMT " to %" PetscInt_FMT, prefix, option + 1, *value, lower, upper);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The options that every format has, -mat_<format>_<name>, under the names of the format and of its manual page */
PetscErrorCode SpMVOptionsLayout(Mat A, SpMVOptionItems PetscOptionsObject, const char format[], const char manual[], SpMVCommonParams *p)
{
  const struct {
    const char *name, *text;
    PetscInt   *value;
  } flags[] = {{"compress", "Leave out indices and values that repeat", &p->compress},
               {"single", "On a GPU, store values in single precision (sums stay double)", &p->single},
               {"tune", "On a GPU, time several layouts at set-up and take the fastest", &p->tune}};
  char option[64];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(option, sizeof(option), "-mat_%s_node_size", format));
  PetscCall(SpMVOptionsInt(A, PetscOptionsObject, option, "Rows and columns of a node block, 1 for none, 0 to find it", manual, 0, SPMV_MAX_NODE, &p->node));
  PetscCall(PetscSNPrintf(option, sizeof(option), "-mat_%s_kernel", format));
  PetscCall(PetscOptionsEnum(option, "Product", manual, SpMVKernelTypes, (PetscEnum)p->kernel, (PetscEnum *)&p->kernel, NULL));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(flags); k++) {
    PetscBool on = (PetscBool)*flags[k].value;

    PetscCall(PetscSNPrintf(option, sizeof(option), "-mat_%s_%s", format, flags[k].name));
    PetscCall(PetscOptionsBool(option, flags[k].text, manual, on, &on, NULL));
    *flags[k].value = on;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  How the parallel product exchanges its halo on GPUs. The product asks when it makes a halo, as what PETSc makes of a matrix (duplicates, products,
  coarse levels) has read no options; and whoever reads options does, so that a wrong value is refused there, with or without GPUs.
*/
PetscErrorCode MatSpMVGetHaloOptions(Mat A, const Mat_SpMV *spmv, SpMVHaloOptions *o)
{
  const char *prefix = ((PetscObject)A)->prefix ? ((PetscObject)A)->prefix : "";

  PetscFunctionBegin;
  o->type  = SPMV_HALO_AUTO;
  o->rows  = 0.1;
  o->early = PETSC_TRUE;
  SpMVOptionsBegin(A, "Parallel products on GPUs", spmv->format->name);
  PetscCall(PetscOptionsEnum("-mat_spmv_halo", "Exchange of the halo", spmv->format->name, SpMVHaloTypes, (PetscEnum)o->type, (PetscEnum *)&o->type, NULL));
  PetscCall(PetscOptionsReal("-mat_spmv_halo_rows", "Share of the rows, at most, whose ghosts are multiplied apart or along", spmv->format->name, o->rows,
                             &o->rows, &o->asked));
  PetscCall(
      PetscOptionsBool("-mat_spmv_halo_early", "Peers: the product begins with the exchange, not after it", spmv->format->name, o->early, &o->early, NULL));
  PetscOptionsEnd();
  PetscCheck(o->rows >= 0 && o->rows <= 1, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE,
             "Option -%smat_spmv_halo_rows is %g: it must be from 0 to 1", prefix, (double)o->rows); /* NaN is neither */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVReadOptions(Mat A, Mat_SpMV *spmv)
{
  SpMVParams      params;
  SpMVHaloOptions halo;

  PetscFunctionBegin;
  PetscCall(PetscMemcpy(params, spmv->params, sizeof(params)));
  PetscCall((*spmv->format->options)(A, params));
  PetscCall(MatSpMVGetHaloOptions(A, spmv, &halo));
  PetscCall(MatSpMVSetParams(A, spmv, params));
  PetscCall(PetscMemzero(spmv->agreed, sizeof(spmv->agreed))); /* on all ranks, whether these were their parameters before or not */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVIsMPI(Mat A, PetscBool *mpi)
{
  return PetscStrbeginswith(((PetscObject)A)->type_name, "mpi", mpi);
}

/* The format that a type's name asks for, NULL for none of ours: sellp, seqsellp, mpisellp, seqaijsellp, mpiaijsellp, seqaijcusparsesellp */
static PetscErrorCode SpMVFormatFind(MatType type, const SpMVFormat **format)
{
  const char *const prefix[] = {"", "seq", "mpi", "seqaij", "mpiaij", "aij", "seqaijcusparse", "mpiaijcusparse"};
  char              name[64];
  PetscBool         same;

  PetscFunctionBegin;
  *format = NULL;
  for (int f = 0; SpMVFormats[f]; f++) {
    for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(prefix); p++) {
      PetscCall(PetscSNPrintf(name, sizeof(name), "%s%s", prefix[p], SpMVFormats[f]->name));
      PetscCall(PetscStrcmp(type, name, &same));
      if (same) *format = SpMVFormats[f];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatView_SpMV(Mat, PetscViewer);

static PetscErrorCode MatAssemblyEnd_SpMV(Mat A, MatAssemblyType mode)
{
  Mat_SpMV *spmv;
  PetscBool mpi;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall((*spmv->parent.assemblyend)(A, mode));
  if (mode == MAT_FLUSH_ASSEMBLY) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVIsMPI(A, &mpi));
  if (mpi)
    PetscCall(SpMVAgree(PetscObjectComm((PetscObject)A), MatSpMVHookBlocks_MPI(A, spmv)));
  else if (spmv->plain)
    MatSpMVUseParent(A, spmv, PETSC_FALSE);
  if (A->ops->view != MatView_SpMV) { /* the DM that made the matrix views it in its own way, and says nothing of the format */
    spmv->view   = A->ops->view;
    A->ops->view = MatView_SpMV;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's copy, on all ranks or on none: PETSc copies the blocks of a parallel matrix one by one, and leaves if one of them fails */
static PetscErrorCode SpMVDuplicateAsParent(Mat A, const Mat_SpMV *spmv, MatDuplicateOption op, Mat *B)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *B   = NULL;
  ierr = (*spmv->parent.duplicate)(A, op, B);
  ierr = SpMVAgree(PetscObjectComm((PetscObject)A), ierr);
  if (ierr) PetscCall(MatDestroy(B));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDuplicate_SpMV(Mat A, MatDuplicateOption op, Mat *B)
{
  Mat_SpMV *spmv, *copy;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVDuplicateAsParent(A, spmv, op, B)); /* makes a matrix of A's type by its name, which is AIJCUSPARSE's own on a device */
  PetscCall(MatSpMVGet(*B, &copy));
  if (!copy) {
    PetscCall(MatSpMVComposeFunctions(*B, PETSC_FALSE)); /* it comes with what we composed with A */
    PetscCall(MatSpMVHook(*B, spmv->format, spmv->params));
  } else {
    PetscCall(MatSpMVSetParams(*B, copy, spmv->params));
    copy->view = spmv->view;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before 3.19, MatRetrieveValues() changes values without a word to the object state; in no release does it tell AIJCUSPARSE */
static PetscErrorCode MatRetrieveValues_SpMV(Mat A)
{
  Mat_SpMV *spmv;
  PetscBool mpi;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVIsMPI(A, &mpi));
  PetscCall((*SpMVParents[spmv->device][mpi].retrieve)(A));
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscCall(SpMVHostIsNewer(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On a device: MatStoreValues() takes the host's values, whether they are up to date or not */
static PetscErrorCode MatStoreValues_SpMV(Mat A)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall((*SpMVParents[1][0].store)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In place of a function that is there; a matrix that is bound to the host lacks some */
static PetscErrorCode SpMVComposeBefore(Mat A, const char name[], PetscErrorCode (*function)(Mat))
{
  PetscErrorCode (*f)(Mat);

  PetscFunctionBegin;
  PetscCall(PetscObjectQueryFunction((PetscObject)A, name, &f));
  if (f) PetscCall(PetscObjectComposeFunction((PetscObject)A, name, function));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc finds by a name that is composed with the matrix: ours, or the parent's again (of any matrix that has ours) */
PetscErrorCode MatSpMVComposeFunctions(Mat A, PetscBool ours)
{
  PetscBool mpi, device;

  PetscFunctionBegin;
  PetscCall(SpMVIsMPI(A, &mpi));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, SpMVProductAnyType, ours ? MatProductSetFromOptions_SpMV : NULL));
  for (int k = 0; SpMVFormats[k]; k++) {
    char name[128];

    PetscCall(PetscSNPrintf(name, sizeof(name), "MatProductSetFromOptions_transpose_%saij%s_%saij%s_C", mpi ? "mpi" : "seq", SpMVFormats[k]->name,
                            mpi ? "mpi" : "seq", SpMVFormats[k]->name));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, ours ? MatProductSetFromOptions_TransposeSpMV : NULL));
  }
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &device, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  PetscCall(SpMVComposeBefore(A, "MatRetrieveValues_C", ours ? MatRetrieveValues_SpMV : SpMVParents[device][mpi].retrieve));
  if (device && !mpi) {
    PetscCall(SpMVComposeBefore(A, "MatProductSetFromOptions_seqaijcusparse_seqaijcusparse_C", A->ops->productsetfromoptions));
    PetscCall(SpMVComposeBefore(A, "MatProductSetFromOptions_seqaijcusparse_seqaij_C",
                                ours ? MatProductSetFromOptions_SpMV : SpMVParents[device][mpi].productsetfromoptions));
    PetscCall(SpMVComposeBefore(A, "MatStoreValues_C", ours ? MatStoreValues_SpMV : SpMVParents[device][mpi].store));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_SpMV(Mat A, PetscErrorCode (*destroy)(Mat))
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (spmv) {
    if (!((PetscObject)A)->type_name) PetscCall(SpMVMergedSet(A, spmv)); /* MatHeaderMerge() */
    destroy                       = spmv->parent.destroy;
    A->ops->productsetfromoptions = spmv->parent.productsetfromoptions;
    PetscCall(MatSpMVComposeFunctions(A, PETSC_FALSE));
    PetscCall(PetscObjectCompose((PetscObject)A, SpMVKey, NULL));
  }
  PetscCall((*destroy)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define SpMVDestroyKind(Kind, device, mpi)                       \
  static PetscErrorCode MatDestroy_##Kind(Mat A)                 \
  {                                                              \
    return MatDestroy_SpMV(A, SpMVParents[device][mpi].destroy); \
  }
SpMVDestroyKind(SeqSpMV, 0, 0) SpMVDestroyKind(MPISpMV, 0, 1) SpMVDestroyKind(SeqSpMVCUDA, 1, 0)
    SpMVDestroyKind(MPISpMVCUDA, 1, 1) static PetscErrorCode (*const MatDestroy_Kinds[2][2])(Mat) = {{MatDestroy_SeqSpMV, MatDestroy_MPISpMV},
                                                                                                     {MatDestroy_SeqSpMVCUDA, MatDestroy_MPISpMVCUDA}};

/* The parent's operation adds the options of the parent; ours have a heading of their own */
static PetscErrorCode MatSetFromOptions_SpMV(Mat A, SpMVOptionItems PetscOptionsObject)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (spmv->parent.setfromoptions) PetscCall((*spmv->parent.setfromoptions)(A, PetscOptionsObject));
  PetscCall(SpMVReadOptions(A, spmv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries that are stored by the format: none where the parent's product runs */
static PetscInt64 SpMVStatsFormatted(const SpMVStats *stats)
{
  return stats->stored ? stats->nonzeros : 0;
}

/* One line on one block, or on the same block of every rank */
static PetscErrorCode SpMVViewStats(Mat_SpMV *spmv, const char *which, const SpMVStats *local, MPI_Comm comm, PetscViewer viewer)
{
  SpMVStats  all = *local;
  char       what[256], rest[64] = "";
  PetscInt64 sum[8] = {SpMVStatsFormatted(local), local->stored,      local->slices, local->diagonal,
                       local->long_rows,          local->long_stored, local->bytes,  local->nonzeros};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 8, MPIU_INT64, MPI_SUM, comm));
  all.nonzeros    = sum[0];
  all.stored      = sum[1];
  all.slices      = sum[2];
  all.diagonal    = sum[3];
  all.long_rows   = sum[4];
  all.long_stored = sum[5];
  all.bytes       = sum[6];
  PetscCall((*spmv->format->describe)(spmv->params, &all, what, sizeof(what)));
  if (sum[7] > sum[0]) PetscCall(PetscSNPrintf(rest, sizeof(rest), ", %" PetscInt64_FMT " nonzeros by AIJ's own product", sum[7] - sum[0]));
  if (all.stored) {
    PetscCall(PetscViewerASCIIPrintf(viewer,
                                     "%s format%s: %s, %" PetscInt64_FMT " entries stored for %" PetscInt64_FMT " nonzeros (padding %.2f%%), %" PetscInt64_FMT
                                     " bytes, kernel: %s%s\n",
                                     spmv->format->name, which, what, all.stored, all.nonzeros,
                                     all.nonzeros ? 100. * (double)(all.stored - all.nonzeros) / (double)all.nonzeros : 0., all.bytes, all.kernel, rest));
  } else
    PetscCall(PetscViewerASCIIPrintf(viewer, "%s format%s: nothing stored, kernel: %s\n", spmv->format->name, which, all.kernel));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSpMVGetStats_MPI(Mat A, Mat_SpMV *spmv, SpMVStats stats[2])
{
  Mat block[2];

  PetscFunctionBegin;
  PetscCall(MatSpMVHookBlocks_MPI(A, spmv));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int k = 0; k < 2; k++) PetscCall(MatSpMVGetStats(block[k], &stats[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatView_SpMV(Mat A, PetscViewer viewer)
{
  Mat_SpMV         *spmv;
  PetscViewerFormat format;
  PetscBool         isascii, mpi;
  SpMVStats         stats[2];

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(PetscViewerGetFormat(viewer, &format));
  /* a DM's view permutes to natural order, which the native format is there to avoid */
  if (format == PETSC_VIEWER_NATIVE || format == PETSC_VIEWER_LOAD_BALANCE)
    PetscCall((*spmv->parent.view)(A, viewer));
  else
    PetscCall((*spmv->view)(A, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &isascii));
  if (!isascii || !A->assembled || A->factortype || (format != PETSC_VIEWER_ASCII_INFO && format != PETSC_VIEWER_ASCII_INFO_DETAIL))
    PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVIsMPI(A, &mpi));
  if (mpi) {
    const char *const which[2] = {", diagonal blocks", ", off-diagonal blocks"};
    const MPI_Comm    comm     = PetscObjectComm((PetscObject)A);

    PetscCall(SpMVAgree(comm, MatSpMVGetStats_MPI(A, spmv, stats)));
    for (int k = 0; k < 2; k++) PetscCall(SpMVViewStats(spmv, which[k], &stats[k], comm, viewer));
#if defined(PETSCSPMV_HAVE_CUDA)
    if (spmv->halo) PetscCall(PetscViewerASCIIPrintf(viewer, "%s format, halo: %s\n", spmv->format->name, SpMVHaloDescribe(spmv->halo)));
#endif
  } else {
    PetscCall(MatSpMVGetStats(A, &stats[0]));
    PetscCall(SpMVViewStats(spmv, "", &stats[0], PETSC_COMM_SELF, viewer));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A copy of A that is its parent's and nothing else */
static PetscErrorCode SpMVCreateParent(Mat A, Mat *B)
{
  Mat_SpMV      *spmv;
  SpMVHidden     hidden;
  PetscBool      mpi;
  char          *name;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVIsMPI(A, &mpi));
  PetscCall(SpMVHideSeqAIJType(&hidden));
  name                        = ((PetscObject)A)->type_name;
  ((PetscObject)A)->type_name = (char *)spmv->parenttype;
  ierr                        = SpMVDuplicateAsParent(A, spmv, MAT_COPY_VALUES, B);
  ((PetscObject)A)->type_name = name; /* after an error, too */
  PetscCall(SpMVShowSeqAIJType(&hidden));
  PetscCall(ierr);
  PetscCall(MatSpMVComposeFunctions(*B, PETSC_FALSE)); /* it comes with what we composed with A */
  if (mpi) PetscCall(MatSpMVUnhookBlocks_MPI(*B));
  PetscCall(MatPropagateSymmetryOptions(A, *B)); /* to SBAIJ only what is known to be symmetric converts */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From one of our types to any other: through the plain AIJ matrix, whose converters PETSc finds by name */
static PetscErrorCode MatConvert_SpMV(Mat A, MatType newtype, MatReuse reuse, Mat *newmat)
{
  const SpMVFormat *format;
  Mat               B;

  PetscFunctionBegin;
  PetscCall(SpMVFormatFind(newtype, &format));
  if (format)
    PetscCall(MatConvertFrom_SpMV(A, newtype, reuse, newmat));
  else if (reuse == MAT_INPLACE_MATRIX) {
    PetscCall(MatSpMVUnhook(A));
    PetscCall(MatConvert(A, newtype, MAT_INPLACE_MATRIX, newmat));
  } else {
    PetscCall(SpMVCreateParent(A, &B));
    if (reuse == MAT_REUSE_MATRIX) {
      PetscCall(MatConvert(B, newtype, MAT_REUSE_MATRIX, newmat));
      PetscCall(MatDestroy(&B));
    } else {
      PetscCall(MatConvert(B, newtype, MAT_INPLACE_MATRIX, &B));
      *newmat = B;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes a matrix of any type AIJ, or AIJCUSPARSE where there is a device */
static PetscErrorCode SpMVConvertToParent(Mat *A)
{
  PetscBool      device, plain;
  SpMVHidden     hidden;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(SpMVUseDevice(PetscObjectComm((PetscObject)*A), &device));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)*A, &plain, MATSEQAIJ, MATMPIAIJ, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  PetscCall(SpMVHideSeqAIJType(&hidden));
  if (!plain) ierr = MatConvert(*A, MATAIJ, MAT_INPLACE_MATRIX, A);
  if (!ierr && device) ierr = MatConvert(*A, MATAIJCUSPARSE, MAT_INPLACE_MATRIX, A);
  PetscCall(SpMVShowSeqAIJType(&hidden)); /* after an error, too */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVConvertInPlace(Mat A, const SpMVFormat *format)
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  if (spmv && spmv->format == format) PetscFunctionReturn(PETSC_SUCCESS);
  if (spmv) PetscCall(MatSpMVUnhook(A));
  PetscCall(SpMVConvertToParent(&A));
  PetscCall(MatSpMVHook(A, format, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From any type that converts to AIJ to one of ours */
PetscErrorCode MatConvertFrom_SpMV(Mat A, MatType newtype, MatReuse reuse, Mat *newmat)
{
  const SpMVFormat *format;
  Mat_SpMV         *spmv;
  Mat               B;
  PetscBool         cusparse;

  PetscFunctionBegin;
  PetscCall(SpMVFormatFind(newtype, &format));
  PetscCheck(format, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_UNKNOWN_TYPE, "Type %s is none of PetscSpMV's", newtype);
  PetscCall(MatSpMVGet(A, &spmv));
  if (reuse == MAT_INPLACE_MATRIX)
    PetscCall(SpMVConvertInPlace(A, format));
  else {
    PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &cusparse, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
    if (spmv)
      PetscCall(SpMVCreateParent(A, &B));
    else if (cusparse)
      PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    else
      PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
    if (reuse == MAT_REUSE_MATRIX) {
      PetscCall(MatCopy(B, *newmat, DIFFERENT_NONZERO_PATTERN));
      PetscCall(MatDestroy(&B));
    } else {
      PetscCall(SpMVConvertToParent(&B));
      PetscCall(MatSpMVHook(B, format, spmv && spmv->format == format ? spmv->params : NULL));
      *newmat = B;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  LU in place merges the matrix with its factors, which are AIJ, and PETSc insists on one type; ILU in place leaves AIJCUSPARSE in a state that it
  cannot destroy. The matrix becomes AIJ first.
*/
#define SpMVFactorInPlace(Name, op)                                            \
  static PetscErrorCode Name(Mat A, IS row, IS col, const MatFactorInfo *info) \
  {                                                                            \
    PetscFunctionBegin;                                                        \
    PetscCall(MatSpMVUnhook(A));                                               \
    PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A));                  \
    PetscCall((*A->ops->op)(A, row, col, info));                               \
    PetscFunctionReturn(PETSC_SUCCESS);                                        \
  }
SpMVFactorInPlace(MatLUFactor_SpMV, lufactor) SpMVFactorInPlace(MatILUFactor_SpMV, ilufactor)

    /*
  MatSpMVHook - makes an AIJ or AIJCUSPARSE matrix one of ours, in place

  The matrix may be unassembled, but its operations must be AIJ's own: not those that AIJ has while it collects entries in a hash table.
*/
    PetscErrorCode MatSpMVHook(Mat A, const SpMVFormat *format, const void *params)
{
  Mat_SpMV      *spmv = NULL;
  PetscContainer container;
  PetscBool      plain, mpi, device;
  char           name[64];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &device, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &plain, MATSEQAIJ, MATMPIAIJ, ""));
  PetscCheck(plain || device, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP, "Cannot make a matrix of type %s from one of type %s: convert it to %s first",
             format->name, ((PetscObject)A)->type_name, MATAIJ);
  PetscCall(SpMVIsMPI(A, &mpi));
  PetscCall(SpMVLearnParent(device, mpi));
  if (A == SpMVMerged.mat) SpMVMerged.mat = NULL; /* another matrix was there */
  PetscCheck(format->paramssize <= sizeof(spmv->params), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Parameters of %s are too large", format->name);
  ierr = SpMVAgree(PetscObjectComm((PetscObject)A), PetscNew(&spmv));
  if (ierr) PetscCall(PetscFree(spmv)); /* another rank has none */
  PetscCall(ierr);
  spmv->format     = format;
  spmv->device     = device;
  spmv->parenttype = device ? (mpi ? MATMPIAIJCUSPARSE : MATSEQAIJCUSPARSE) : (mpi ? MATMPIAIJ : MATSEQAIJ);
  if (params)
    PetscCall(PetscMemcpy(spmv->params, params, format->paramssize));
  else
    (*format->defaults)(spmv->params);
  PetscCall(PetscContainerCreate(PetscObjectComm((PetscObject)A), &container));
  PetscCall(PetscContainerSetPointer(container, spmv));
  PetscCall(PetscContainerSetCtxDestroy(container, SpMVDestroyCtx));
  if (!params) {
    ierr = SpMVReadOptions(A, spmv); /* a wrong option must leave the matrix as it was */
    if (ierr) PetscCall(PetscContainerDestroy(&container));
    PetscCall(ierr);
  }
  PetscCall(PetscObjectCompose((PetscObject)A, SpMVKey, (PetscObject)container));
  PetscCall(PetscContainerDestroy(&container));

#define SpMVKeep(op) spmv->parent.op = A->ops->op;
  SpMVHooks(SpMVKeep)
#undef SpMVKeep
      spmv->view = A->ops->view;
  if (mpi)
    MatSpMVSetOps_MPI(A);
  else
    MatSpMVSetOps_Seq(A);
  MatSpMVSetOps_Keep(A);
#if defined(PETSCSPMV_HAVE_CUDA)
  if (device) MatSpMVSetOps_CUDA(A, mpi);
#endif
  A->ops->assemblyend    = MatAssemblyEnd_SpMV;
  A->ops->duplicate      = MatDuplicate_SpMV;
  A->ops->destroy        = MatDestroy_Kinds[device][mpi];
  A->ops->view           = MatView_SpMV;
  A->ops->convert        = MatConvert_SpMV;
  A->ops->setfromoptions = MatSetFromOptions_SpMV;
  if (A->ops->lufactor) A->ops->lufactor = MatLUFactor_SpMV;
  if (A->ops->ilufactor && device) A->ops->ilufactor = MatILUFactor_SpMV;
#define SpMVKeep(op) spmv->ours.op = A->ops->op;
  SpMVHooks(SpMVKeep)
#undef SpMVKeep
      spmv->ours.convertfrom = MatConvertFrom_SpMV;
  PetscCall(MatSpMVComposeFunctions(A, PETSC_TRUE));
  if (!device) { /* CUSPARSE's code wants matrices by its own name */
    PetscCall(PetscSNPrintf(name, sizeof(name), "%saij%s", mpi ? "mpi" : "seq", format->name));
    PetscCall(PetscObjectChangeTypeName((PetscObject)A, name));
  }
  if (mpi && A->assembled) PetscCall(SpMVAgree(PetscObjectComm((PetscObject)A), MatSpMVHookBlocks_MPI(A, spmv)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatSpMVUnhook - gives the matrix back to AIJ, in place */
PetscErrorCode MatSpMVUnhook(Mat A)
{
  Mat_SpMV *spmv;
  PetscErrorCode (*view)(Mat, PetscViewer);
  PetscBool mpi;

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(SpMVIsMPI(A, &mpi));
  if (mpi && A->preallocated) PetscCall(MatSpMVUnhookBlocks_MPI(A));
    /* PETSc may have put an operation of its own before ours meanwhile, as it does with the destroy of submatrices; that one stays */
#define SpMVGiveBack(op) \
  if (A->ops->op == spmv->ours.op) A->ops->op = spmv->parent.op;
  view = A->ops->view == spmv->ours.view ? spmv->view : A->ops->view;
  SpMVHooks(SpMVGiveBack)
#undef SpMVGiveBack
      A->ops->view = view;
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, spmv->parenttype));
  PetscCall(MatSpMVComposeFunctions(A, PETSC_FALSE));
  PetscCall(PetscObjectCompose((PetscObject)A, SpMVKey, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A new matrix becomes AIJ, and then ours */
static PetscErrorCode SpMVCreate(Mat A, MatType parent, const SpMVFormat *format)
{
  SpMVHidden     hidden;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(SpMVHideSeqAIJType(&hidden));
  ierr = MatSetType(A, parent);
  PetscCall(SpMVShowSeqAIJType(&hidden)); /* after an error, too */
  PetscCall(ierr);
  PetscCall(MatSpMVHook(A, format, NULL));
  /*
    MatConvert() to a type makes a matrix of that type and calls its convertfrom. Only those made here have ours: one that was to be AIJ and is of our type by
    -mat_seqaij_type must not.
  */
  A->ops->convertfrom = MatConvertFrom_SpMV;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreate_SeqSpMV(Mat A, const SpMVFormat *format)
{
  PetscBool device;

  PetscFunctionBegin;
  PetscCall(SpMVUseDevice(PetscObjectComm((PetscObject)A), &device));
  PetscCall(SpMVCreate(A, device ? MATSEQAIJCUSPARSE : MATSEQAIJ, format));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreate_MPISpMV(Mat A, const SpMVFormat *format)
{
  PetscBool device;

  PetscFunctionBegin;
  PetscCall(SpMVUseDevice(PetscObjectComm((PetscObject)A), &device));
  PetscCall(SpMVCreate(A, device ? MATMPIAIJCUSPARSE : MATMPIAIJ, format));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreate_SpMV(Mat A, const SpMVFormat *format)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  if (size == 1)
    PetscCall(MatCreate_SeqSpMV(A, format));
  else
    PetscCall(MatCreate_MPISpMV(A, format));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
   PetscSpMVGetFormat - asks which of PetscSpMV's formats a matrix has

   Not Collective

   Input Parameter:
.  A - the matrix, of any type

   Output Parameter:
.  format - `MATSELLP`, `MATEVCHYB`, or `NULL` if the matrix has neither; not to be freed

   Level: intermediate

   Note:
   `MatGetType()` answers with the name of a type derived from AIJ (`MATSEQAIJSELLP`, ...), because much of PETSc takes a matrix for AIJ by
   the first letters of that name.

.seealso: `MATSELLP`, `MATEVCHYB`, `PetscSpMVGetInfo()`
@*/
PetscErrorCode PetscSpMVGetFormat(Mat A, const char *format[])
{
  Mat_SpMV *spmv;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointer(format, 2);
  PetscCall(MatSpMVGet(A, &spmv));
  *format = spmv ? spmv->format->name : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
   PetscSpMVGetInfo - asks what the calling process stores of a matrix in its format

   Not Collective

   Input Parameter:
.  A - the assembled matrix, of type `MATSELLP` or `MATEVCHYB`

   Output Parameter:
.  info - sizes, padding and the kernel chosen, see `PetscSpMVInfo`

   Level: intermediate

   Notes:
   Sets the format up if no product has done so yet. The same figures, summed over the processes, stand in `-mat_view ::ascii_info`,
   `-ksp_view` and `-snes_view`.

   Errors `PETSC_ERR_ARG_WRONG` for a matrix of another type, `PETSC_ERR_ARG_TYPENOTSET` for one without a type, and `PETSC_ERR_ARG_WRONGSTATE` for an unassembled one.

.seealso: `PetscSpMVInfo`, `PetscSpMVGetFormat()`
@*/
PetscErrorCode PetscSpMVGetInfo(Mat A, PetscSpMVInfo *info)
{
  Mat_SpMV *spmv;
  Mat       block[2] = {A, NULL};
  PetscBool mpi;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointer(info, 2);
  PetscCheck(((PetscObject)A)->type_name, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_TYPENOTSET, "Matrix object's type is not set: Argument # 1");
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCheck(spmv, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "Matrix of type %s is none of PetscSpMV's", ((PetscObject)A)->type_name);
  PetscCheck(A->assembled, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "Not for unassembled matrix");
  PetscCall(PetscMemzero(info, sizeof(*info)));
  PetscCall(SpMVIsMPI(A, &mpi));
  if (mpi) {
    PetscCall(MatSpMVHookBlocks_MPI(A, spmv));
    PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  }
  for (int k = 0; k < 2 && block[k]; k++) {
    SpMVStats stats;

    PetscCall(MatSpMVGetStats(block[k], &stats));
    info->nonzeros += stats.nonzeros;
    info->formatted += SpMVStatsFormatted(&stats);
    info->stored += stats.stored;
    info->slices += stats.slices;
    info->long_rows += stats.long_rows;
    info->long_stored += stats.long_stored;
    info->bytes += stats.bytes;
    if (k == 0) {
      info->node   = stats.node;
      info->kernel = stats.kernel;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
