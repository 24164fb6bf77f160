/*
  The matrix type sellp: options and views of SELL-P, and the table that makes it a type.
*/
#include "../spmv/matspmv.h"
#include "sellp.h"

static void SELLPDefaults(void *params)
{
  SELLPParamsDefault((SELLPParams *)params);
}

static PetscErrorCode SELLPOptions(Mat A, void *ctx)
{
  SELLPParams *params = (SELLPParams *)ctx;
  const char  *prefix = ((PetscObject)A)->prefix ? ((PetscObject)A)->prefix : "";

  PetscFunctionBegin;
  SpMVOptionsBegin(A, "SELL-P (sellp) matrix options", "MATSELLP");
  PetscCall(
      SpMVOptionsInt(A, PetscOptionsObject, "-mat_sellp_slice_height", "Rows of a slice (default: chosen from the matrix)", "MATSELLP", 1, 1024, &params->b));
  PetscCall(SpMVOptionsInt(A, PetscOptionsObject, "-mat_sellp_threads_per_row",
                           "Threads a row, to a multiple of which rows are padded (default: chosen from the matrix)", "MATSELLP", 1, 32, &params->t));
  PetscCheck(!(params->t & (params->t - 1)), PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_OUTOFRANGE,
             "Option -%smat_sellp_threads_per_row is %" PetscInt_FMT ": it must be 1, 2, 4, 8, 16 or 32, which divide a warp", prefix, params->t);
  PetscCall(SpMVOptionsInt(A, PetscOptionsObject, "-mat_sellp_sigma", "Rows of a window that is sorted by length, 1 for none (default: chosen from the matrix)",
                           "MATSELLP", 1, PETSC_MAX_INT, &params->sigma));
  PetscCall(SpMVOptionsLayout(A, PetscOptionsObject, "sellp", "MATSELLP", &params->common));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SELLPSetUpStore(const SpMVCSR *A, const void *params, SpMVStore *block)
{
  return SELLPSetUp(A, (const SELLPParams *)params, block);
}

#if defined(PETSCSPMV_HAVE_CUDA)
static cudaError_t SELLPSetUpCUDAStore(const SpMVCudaCSR *A, const void *ctx, PetscBool transpose, cudaStream_t stream, SpMVCudaStore *block)
{
  const SELLPParams *params = (const SELLPParams *)ctx;

  if (params->common.kernel == SPMV_KERNEL_PARENT || params->common.kernel == SPMV_KERNEL_VECTOR) return cudaErrorNotSupported;
  return SpMVCudaSELLPSetUp(A, params, SpMVKernelCUDA(params->common.kernel, params->common.tune), transpose, stream, block);
}
#endif

static PetscErrorCode SELLPDescribe(const void *params, const SpMVStats *stats, char text[], size_t len)
{
  PetscFunctionBegin;
  (void)params; /* what was chosen counts, not what was asked */
  if (stats->height) {
    PetscCall(PetscSNPrintf(text, len,
                            "%" PetscInt64_FMT " slices of height %" PetscInt_FMT " (%" PetscInt64_FMT " by diagonals), threads per row %" PetscInt_FMT
                            ", sigma %" PetscInt_FMT ", node size %" PetscInt_FMT ", %" PetscInt64_FMT " long rows apart",
                            stats->slices, stats->height, stats->diagonal, stats->threads, stats->sigma, stats->node, stats->long_rows));
  } else { /* on a device each slice has its own height and threads per row */
    PetscCall(PetscSNPrintf(text, len,
                            "%" PetscInt64_FMT " slices (%" PetscInt64_FMT " by diagonals), node size %" PetscInt_FMT ", %" PetscInt64_FMT " long rows apart",
                            stats->slices, stats->diagonal, stats->node, stats->long_rows));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATSELLP - "sellp" - A sparse matrix type derived from `MATAIJ` whose products run on the SELL-P format: slices of b rows, each padded to
   the length of its longest row and to a multiple of t threads per row, after sorting by length in windows of sigma rows

   Options Database Keys:
+  -mat_type sellp                    - sets the type in `MatSetFromOptions()`
.  -mat_sellp_slice_height <b>        - rows of a slice, 1 to 1024; on a GPU of the paper's kernel
.  -mat_sellp_threads_per_row <t>     - threads a row: 1, 2, 4, 8, 16 or 32
.  -mat_sellp_sigma <rows>            - rows of a window that is sorted by length; 1 keeps the order of the rows, as in the paper
.  -mat_sellp_node_size <s>           - rows and columns of the dense blocks that the matrix consists of, up to 8 (on a GPU 6), 1 for none, 0 (the default) finds them
.  -mat_sellp_single <bool>           - on a GPU, store values in single precision; products and sums stay double (default false)
.  -mat_sellp_tune <bool>             - on a GPU, time several layouts at set-up and take the fastest (default false)
.  -mat_sellp_compress <bool>         - leave out column indices that a diagonal or a node block implies, and values that repeat (default true)
.  -mat_sellp_kernel <auto,slices,csr,aij,paper> - force a product; auto (the default) decides by the matrix, slices is this format; on a GPU paper is the paper's own kernel (on
                                        the host slices) and csr AIJ's product (on the host the vector CSR part's)
.  -mat_spmv_halo <auto,peer,nccl,host,petsc>    - how several GPUs exchange the halo (default auto)
.  -mat_spmv_halo_rows <share>                   - up to which share of the rows what they have in the off-diagonal block is multiplied apart or along (default 0.1)
-  -mat_spmv_halo_early <bool>                   - several GPUs of a node: a product begins with the exchange of its halo, not after it (default true)

   Level: beginner

   Notes:
   Without these options b, t and sigma are chosen from the lengths of the rows. Where the format cannot win, AIJ's own product runs;
   `-mat_view ::ascii_info` and `-ksp_view` say what was chosen.

   `MatGetType()` answers `MATSEQAIJSELLP` or `MATMPIAIJSELLP`, on a GPU `MATSEQAIJCUSPARSE` or `MATMPIAIJCUSPARSE`. Every operation of `MATAIJ` works; all but the
   products with vectors are AIJ's own. A parallel matrix stores its diagonal and its off-diagonal block each in the format.

   The format and its refresh: the first product after the nonzero pattern has changed sets the format up, the first after values have changed
   moves the values.

   Options that are out of range give `PETSC_ERR_ARG_OUTOFRANGE` with the option's name, and leave the matrix as it was.

   References:
.  * - H. Anzt, S. Tomov and J. Dongarra, Implementing a Sparse Matrix Vector Product for the SELL-C/SELL-C-sigma Formats on NVIDIA GPUs, 2014

.seealso: `MATEVCHYB`, `MATAIJ`, `PetscSpMVGetFormat()`, `PetscSpMVGetInfo()`
M*/
SpMVFormatCreate(SELLP)

    const SpMVFormat SpMVFormatSELLP = {"sellp",
                                        sizeof(SELLPParams),
                                        MatCreate_SeqSELLP,
                                        MatCreate_MPISELLP,
                                        MatCreate_SELLP,
                                        SELLPDefaults,
                                        SELLPOptions,
                                        SELLPSetUpStore,
                                        SELLPDescribe,
#if defined(PETSCSPMV_HAVE_CUDA)
                                        SELLPSetUpCUDAStore
#endif
};
