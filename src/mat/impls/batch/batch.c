/*
  The matrix type batch: the options, rules and views of the format, and the table that makes it a type.
*/
#include "batch.h"
#include "mat/impls/sellp/sellp.h"
#if defined(PETSCSPMV_HAVE_CUDA)
  #include "mat/impls/sellp/sellpcuda.h"
#endif

/* The rules are those of SELL-P */
static void BATCHDefaults(void *params)
{
  SELLPParamsDefault((SELLPParams *)params);
  ((SELLPParams *)params)->together = 1;
}

static PetscErrorCode BATCHOptions(Mat A, void *params)
{
  PetscFunctionBegin;
  SpMVOptionsBegin(A, "Batch matrix options", "MATBATCH");
  PetscCall(SpMVOptionsLayout(A, PetscOptionsObject, "batch", "MATBATCH", &((SELLPParams *)params)->common));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BATCHSetUp(const SpMVCSR *A, const void *params, SpMVStore *store)
{
  return SELLPSetUp(A, (const SELLPParams *)params, store);
}

#if defined(PETSCSPMV_HAVE_CUDA)
static cudaError_t BATCHSetUpCUDA(const SpMVCudaCSR *A, const void *params, PetscBool transpose, cudaStream_t stream,
                                  SpMVCudaStore *store)
{
  const SpMVKernel kernel = ((const SELLPParams *)params)->common.kernel;

  if (kernel == SPMV_KERNEL_PARENT || kernel == SPMV_KERNEL_VECTOR) return cudaErrorNotSupported;
  return SpMVCudaSELLPSetUp(A, (const SELLPParams *)params,
                            kernel == SPMV_KERNEL_SLICES ? SPMVCUDA_KERNEL_SLICES : SPMVCUDA_KERNEL_AUTO, transpose,
                            stream, store);
}
#endif

static PetscErrorCode BATCHDescribe(const void *params, const SpMVStats *stats, char text[], size_t len)
{
  PetscFunctionBegin;
  (void)params;
  PetscCall(PetscSNPrintf(text, len,
                          "%" PetscInt64_FMT " slices (%" PetscInt64_FMT " by diagonals), node size %" PetscInt_FMT
                          ", %" PetscInt64_FMT " long rows in vector CSR",
                          stats->slices, stats->diagonal, stats->node, stats->long_rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATBATCH - "batch" - The block-diagonal matrix of many small square problems, each with its own size, pattern and
   values. One product multiplies all of them

   Options Database Keys:
+  -mat_type batch                 - sets the type in `MatSetFromOptions()`
.  -mat_batch_node_size <s>        - size of the dense blocks that the problems consist of, up to 8 (up to 6 on a GPU, where some blocks may be incomplete);
                                     1 for no blocks, 0 (the default) to detect them and, on a GPU, groups of rows with
                                     equal columns
.  -mat_batch_single <bool>        - on a GPU, store values in single precision; products and sums stay double (default false)
.  -mat_batch_compress <bool>      - use diagonals and node blocks, which imply column indices (default true)
.  -mat_batch_kernel <kernel>      - kernel of the product: auto (the default) chooses depending on the matrix; slices is that of `MATSELLP`; aij is AIJ's
                                     product; csr is AIJ's product on a GPU, vector CSR on the host; paper is slices
-  -mat_batch_setup_after <n>      - on the host, number of products with `MATAIJ`'s format before this format is set up; 0 sets it up in the first product,
                                     -1 (the default) chooses the number of products that take as long as the set-up

   Level: beginner

   Notes:
   Created by `MatCreateBatch()` from the CSR arrays of all problems, by `MatCreateBatchFromMats()`, or like any other
   type derived from `MATAIJ`: by `MatSetType()`, `MatConvert()`, `MatLoad()`, ... The problems are then the blocks set
   by `MatSetVariableBlockSizes()`, or otherwise the smallest blocks of consecutive rows that contain all entries.

   Each process owns whole problems, so a product needs no communication.

   `MatGetType()` returns the name of a type derived from `MATAIJ`, `PetscSpMVGetFormat()` returns `MATBATCH`. Every
   operation of `MATAIJ` works. The options `-mat_spmv_...` of `MATSELLP` apply.

   `PCVPBJACOBI` inverts the problems.

   Errors:
+  PETSC_ERR_ARG_OUTOFRANGE - an option is out of range; the message contains its name, and the matrix is unchanged
-  PETSC_ERR_GPU_RESOURCE   - the GPU does not have enough memory for the products

.seealso: `MatCreateBatch()`, `MatCreateBatchFromMats()`, `MatBatchSetValues()`, `MatBatchGetProblem()`,
`MatBatchGetInfo()`, `MatBatchSharing`, `MATSELLP`, `PetscSpMVGetFormat()`
M*/
SpMVFormatCreate(BATCH);

const SpMVFormat SpMVFormatBATCH = {
    .name       = "batch",
    .paramssize = sizeof(SELLPParams),
    .createseq  = MatCreate_SeqBATCH,
    .creatempi  = MatCreate_MPIBATCH,
    .create     = MatCreate_BATCH,
    .defaults   = BATCHDefaults,
    .options    = BATCHOptions,
    .setup      = BATCHSetUp,
    .describe   = BATCHDescribe,
#if defined(PETSCSPMV_HAVE_CUDA)
    .setupcuda = BATCHSetUpCUDA,
#endif
};
