/*
  The matrix type sellp: the options and views of SELL-P, and the table that makes it a type.
*/
#include "mat/impls/spmv/matspmv.h"
#include "sellp.h"

static PetscErrorCode SELLPOptions(Mat A, void *ctx)
{
  SELLPParams *params = (SELLPParams *)ctx;
  const char  *prefix = ((PetscObject)A)->prefix ? ((PetscObject)A)->prefix : "";

  PetscFunctionBegin;
  SpMVOptionsBegin(A, "SELL-P (sellp) matrix options", "MATSELLP");
  PetscCall(SpMVOptionsInt(
      A, PetscOptionsObject, "-mat_sellp_threads_per_row",
      "Threads per row; row lengths are padded to a multiple of this number (default: chosen from the matrix)",
      "MATSELLP", 1, 32, &params->t));
  PetscCheck(!(params->t & (params->t - 1)), PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE,
             "Option -%smat_sellp_threads_per_row is %" PetscInt_FMT ": it must be 1, 2, 4, 8, 16 or 32", prefix,
             params->t);
  PetscCall(SpMVOptionsInt(
      A, PetscOptionsObject, "-mat_sellp_sigma",
      "Rows are sorted by length in windows of this many rows; 1: not sorted (default: chosen from the matrix)",
      "MATSELLP", 1, PETSC_MAX_INT, &params->sigma));
  PetscCall(SpMVOptionsLayout(A, PetscOptionsObject, "MATSELLP", &params->common));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SELLPDescribe(const void *params, const SpMVStats *stats, char text[], size_t len)
{
  PetscFunctionBegin;
  (void)params; /* the view shows the values that were chosen */
  if (stats->height) {
    PetscCall(PetscSNPrintf(text, len,
                            "%" PetscInt64_FMT " slices of height %" PetscInt_FMT " (%" PetscInt64_FMT
                            " by diagonals), threads per row %" PetscInt_FMT ", sigma %" PetscInt_FMT
                            ", node size %" PetscInt_FMT ", %" PetscInt64_FMT " long rows in vector CSR",
                            stats->slices, stats->height, stats->diagonal, stats->threads, stats->sigma, stats->node,
                            stats->long_rows));
  } else { /* on a device, each slice has its own height and number of threads per row */
    PetscCall(PetscSNPrintf(text, len,
                            "%" PetscInt64_FMT " slices (%" PetscInt64_FMT " by diagonals), node size %" PetscInt_FMT
                            ", %" PetscInt64_FMT " long rows in vector CSR",
                            stats->slices, stats->diagonal, stats->node, stats->long_rows));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATSELLP - "sellp" - A sparse matrix type derived from `MATAIJ` whose products run on the SELL-P format: slices of b
   rows, each padded to the length of its longest row and to a multiple of t threads per row, after sorting by length in
   windows of sigma rows

   Options Database Keys:
+  -mat_type sellp              - sets the type in `MatSetFromOptions()`
.  -mat_spmv_kernel <kernel>    - kernel of the product: auto (the default) chooses depending on the matrix; slices is this format; aij is AIJ's product;
                                  paper is the paper's kernel on a GPU, slices on the host; csr is vector CSR on the
                                  host, and on a GPU AIJ's product (`MATSELLP`) or the adaptive CSR kernel that
                                  preceded the format (`MATEVCHYB`)
-  -mat_spmv_single <bool>      - on a GPU, store values in single precision; products and sums stay double (default false)

   Intermediate Options Database Keys:
+  -mat_spmv_node_size <s>      - size of the dense blocks that the matrix consists of, up to 8 (up to 6 on a GPU, where some blocks may be incomplete);
                                  1 for no blocks, 0 (the default) to detect them and, on a GPU, groups of rows with
                                  equal columns
.  -mat_spmv_reorder <auto,off> - on a GPU, whether rows may be stored in an order that follows the graph of the matrix, where a product takes less time
                                  then (default auto)
.  -mat_spmv_replace <type>     - aijcusparse, or without a GPU aij: matrices of this type of PETSc get a format, whether
                                  the program creates them, sets the type or converts to it; the option has no prefix,
                                  and is read when the library is loaded
.  -mat_spmv_replace_format <format> - that format: sellp (the default), evchyb or batch
.  -mat_spmv_setup_after <n>    - on the host, number of products with `MATAIJ`'s format before this format is set up; 0 sets it up in the first product,
                                  -1 (the default) chooses the number of products that take as long as the set-up
.  -mat_spmv_halo <type>        - how several GPUs exchange the halo: auto (the default), peer, nccl, host or petsc
.  -mat_spmv_coo <place>        - with a GPU, where MatSetPreallocationCOO() sorts entries: auto (the default) chooses depending on their number, host uses
                                  AIJ's own function, device sorts on the GPU
.  -mat_sellp_threads_per_row <t> - threads per row: 1, 2, 4, 8, 16 or 32; the entries of a row are padded to a multiple of it (default chosen from the
                                    matrix)
-  -mat_sellp_sigma <rows>      - rows are sorted by length in windows of this many rows; 1 keeps their order, as in the paper (default chosen from the
                                  matrix)

   Advanced Options Database Keys:
+  -pc_gamg_device <bool>       - on a GPU, set `PCGAMG` up there if possible (default true), see docs/gamg.md
.  -mat_spmv_compress <bool>    - use diagonals and node blocks, which imply column indices (default true)
-  -mat_spmv_halo_rows <fraction> - largest fraction of a rank's rows that may be boundary rows (rows with off-process
                                    columns) for the product's kernel to add the off-diagonal block, too (default 0.6)

   Level: beginner

   Notes:
   On the host b is 8. Without these options, t and sigma, and b on a GPU, are chosen from the lengths of the rows. If
   AIJ's own product is estimated to be faster, it is used; `-mat_view ::ascii_info` and `-ksp_view` report the choice.

   `MatGetType()` returns `MATSEQAIJSELLP` or `MATMPIAIJSELLP`, on a GPU `MATSEQAIJCUSPARSE` or `MATMPIAIJCUSPARSE`.
   Every operation of `MATAIJ` works; all except the products with vectors are AIJ's own. A parallel matrix stores its
   diagonal block and its off-diagonal block in the format.

   After a change of the nonzero pattern, a product sets the format up; after a change of values, a product copies the
   values. On a GPU the first product does this. On the host, AIJ's product is used first, for as many products as take
   as long as the set-up or the copy (see `-mat_spmv_setup_after`). `PetscSpMVGetInfo()` sets the format up
   immediately.

   Errors:
+  PETSC_ERR_ARG_OUTOFRANGE - an option is out of range; the message contains its name, and the matrix is unchanged
-  PETSC_ERR_GPU_RESOURCE   - the GPU does not have enough memory; the message contains the size requested, and the matrix is unchanged

   References:
.  * - H. Anzt, S. Tomov and J. Dongarra, Implementing a Sparse Matrix Vector Product for the SELL-C/SELL-C-sigma Formats on NVIDIA GPUs, 2014

.seealso: `MATEVCHYB`, `MATAIJ`, `PetscSpMVGetFormat()`, `PetscSpMVGetInfo()`
M*/
SpMVFormatCreate(SELLP);

const SpMVFormat SpMVFormatSELLP = {
    .name       = "sellp",
    .paramssize = sizeof(SELLPParams),
    .createseq  = MatCreate_SeqSELLP,
    .creatempi  = MatCreate_MPISELLP,
    .create     = MatCreate_SELLP,
    .defaults   = SELLPParamsDefault,
    .options    = SELLPOptions,
    .setup      = SELLPSetUp,
    .describe   = SELLPDescribe,
    .setupcuda  = SpMVIfCUDA(SpMVCudaSELLPSetUp),
};
