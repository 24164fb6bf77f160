/*
  Information about the stored format of a matrix: views, and the functions that return it to programs.
*/
#include "matspmv.h"

/* Entries stored by the format: none if the parent's product is used */
static PetscInt64 SpMVStatsFormatted(const SpMVStats *stats)
{
  return stats->stored ? stats->nonzeros : 0;
}

/* On a device the type that PETSc shows is AIJCUSPARSE's, which does not name the format */
static const char *SpMVViewType(Mat A)
{
  const char *const type = ((PetscObject)A)->type_name;

  return strstr(type, "cusparse") ? type : "";
}

/* Prints one line for a sequential matrix, or for the diagonal or off-diagonal blocks of all ranks */
static PetscErrorCode SpMVViewStats(Mat A, Mat_SpMV *spmv, const char *which, const SpMVStats *local,
                                    PetscInt64 asked[2], MPI_Comm comm, PetscViewer viewer)
{
  const int   numbers = (int)(offsetof(SpMVStats, node) / sizeof(PetscInt64)); /* the members that are sums */
  SpMVStats   all     = *local;
  char        what[256], rest[64] = "";
  PetscInt64  unformatted = local->nonzeros - SpMVStatsFormatted(local);
  const char *name = spmv->format->name, *type = SpMVViewType(A);

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, asked, 2, MPIU_INT64, MPI_MAX, comm));
  all.nonzeros -= unformatted;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, numbers, MPIU_INT64, MPI_SUM, comm));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &unformatted, 1, MPIU_INT64, MPI_SUM, comm));
  PetscCall((*spmv->format->describe)(spmv->params, &all, what, sizeof(what)));
  if (unformatted)
    PetscCall(PetscSNPrintf(rest, sizeof(rest), ", %" PetscInt64_FMT " nonzeros by AIJ's own product", unformatted));
  if (all.stored) {
    PetscCall(
        PetscViewerASCIIPrintf(viewer,
                               "%s format%s%s%s: %s, %" PetscInt64_FMT " entries stored for %" PetscInt64_FMT
                               " nonzeros (padding %.2f%%), %" PetscInt64_FMT " bytes, kernel: %s%s\n",
                               name, type[0] ? " in type " : "", type, which, what, all.stored, all.nonzeros,
                               all.nonzeros ? 100. * (double)(all.stored - all.nonzeros) / (double)all.nonzeros : 0.,
                               all.bytes, all.kernel, rest));
  } else if (asked[0] > asked[1])
    PetscCall(PetscViewerASCIIPrintf(viewer,
                                     "%s format%s: not yet set up: AIJ's product until product %" PetscInt64_FMT
                                     " (%" PetscInt64_FMT " so far), then %s\n",
                                     name, which, asked[0], asked[1], name));
  else
    PetscCall(PetscViewerASCIIPrintf(viewer, "%s format%s: nothing stored, kernel: %s\n", name, which, all.kernel));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* asked: of a format that waits for products, the number that it needs, and that there have been; otherwise zeros */
static PetscErrorCode MatSpMVViewGet(Mat A, Mat_SpMV *spmv, int blocks, SpMVStats stats[], PetscInt64 asked[][2])
{
  Mat       block[2] = {A, NULL};
  Mat_SpMV *own;

  PetscFunctionBegin;
  if (blocks == 2) {
    PetscCall(MatSpMVHookBlocks_MPI(A, spmv));
    PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  }
  for (int k = 0; k < blocks; k++) {
    PetscCall(MatSpMVGetStats_Seq(block[k], PETSC_FALSE, &stats[k]));
    PetscCall(MatSpMVGet(block[k], &own));
    if (own->device || own->host.key.mat) continue;
    asked[k][0] = own->host.asked.needed;
    asked[k][1] = SpMVAtomicGet(&own->host.asked.pattern);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatView_SpMV(Mat A, PetscViewer viewer)
{
  const char *const which[2] = {", diagonal blocks", ", off-diagonal blocks"};
  const MPI_Comm    comm     = PetscObjectComm((PetscObject)A);
  const int         blocks   = SpMVIsMPI(A) ? 2 : 1;
  Mat_SpMV         *spmv;
  PetscViewerFormat format;
  PetscBool         isascii;
  SpMVStats         stats[2];
  PetscInt64        asked[2][2] = {{0}};

  PetscFunctionBegin;
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCall(PetscViewerGetFormat(viewer, &format));
  /* the native format bypasses the DM's view, which permutes to the natural ordering */
  if (format == PETSC_VIEWER_NATIVE || format == PETSC_VIEWER_LOAD_BALANCE)
    PetscCall((*spmv->parent.view)(A, viewer));
  else
    PetscCall((*spmv->view)(A, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &isascii));
  if (!isascii || !A->assembled || A->factortype ||
      (format != PETSC_VIEWER_ASCII_INFO && format != PETSC_VIEWER_ASCII_INFO_DETAIL))
    PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVAgree(comm, MatSpMVViewGet(A, spmv, blocks, stats, asked)));
  for (int k = 0; k < blocks; k++)
    PetscCall(SpMVViewStats(A, spmv, blocks == 2 ? which[k] : "", &stats[k], asked[k], comm, viewer));
  if (spmv->backend) PetscCall((*spmv->backend->view)(A, spmv, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void MatSpMVSetOps_View(Mat A)
{
  A->ops->view = MatView_SpMV;
}

/*@C
   PetscSpMVGetFormat - Gets the PetscSpMV format of a matrix

   Not Collective

   Input Parameter:
.  A - the matrix, of any type

   Output Parameter:
.  format - `MATSELLP`, `MATEVCHYB`, `MATBATCH`, or `NULL` if the matrix has another type; do not free it

   Level: intermediate

   Note:
   `MatGetType()` returns the name of a type derived from AIJ (`MATSEQAIJSELLP`, ...), because much of PETSc identifies
   AIJ matrices by the beginning of that name.

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
   PetscSpMVGetInfo - Gets information about the calling process's part of a matrix as it is stored in the format

   Not Collective

   Input Parameter:
.  A - the assembled matrix, of type `MATSELLP`, `MATEVCHYB` or `MATBATCH`

   Output Parameter:
.  info - sizes, padding and the kernel chosen, see `PetscSpMVInfo`

   Level: intermediate

   Notes:
   Sets up the format if no product has done so yet. `-mat_view ::ascii_info`, `-ksp_view` and `-snes_view` print the
   same numbers, summed over the processes.

   Errors:
+  PETSC_ERR_ARG_TYPENOTSET - the matrix has no type
.  PETSC_ERR_ARG_WRONG      - the matrix has another type
-  PETSC_ERR_ARG_WRONGSTATE - the matrix is not assembled

.seealso: `PetscSpMVInfo`, `PetscSpMVGetFormat()`, `MATSELLP`, `MATEVCHYB`
@*/
PetscErrorCode PetscSpMVGetInfo(Mat A, PetscSpMVInfo *info)
{
  Mat_SpMV *spmv;
  Mat       block[2] = {A, NULL};

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointer(info, 2);
  PetscCheck(((PetscObject)A)->type_name, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_TYPENOTSET,
             "Matrix object's type is not set: Argument # 1");
  PetscCall(MatSpMVGet(A, &spmv));
  PetscCheck(spmv, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "Matrix type %s is not a type of PetscSpMV",
             ((PetscObject)A)->type_name);
  PetscCheck(A->assembled, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "Not for unassembled matrix");
  PetscCall(PetscMemzero(info, sizeof(*info)));
  if (SpMVIsMPI(A)) {
    PetscCall(MatSpMVHookBlocks_MPI(A, spmv));
    PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  }
  for (int k = 0; k < 2 && block[k]; k++) {
    SpMVStats stats;

    PetscCall(MatSpMVGetStats_Seq(block[k], PETSC_TRUE, &stats));
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
