/*
  The matrix type evchyb: options and views of EVC-HYB, and the table that makes it a type.
*/
#include "../spmv/matspmv.h"
#include "evchyb.h"

static void EVCHYBDefaults(void *params)
{
  EVCHYBParamsDefault((EVCHYBParams *)params);
}

static PetscErrorCode EVCHYBOptions(Mat A, void *ctx)
{
  EVCHYBParams *params = (EVCHYBParams *)ctx;

  PetscFunctionBegin;
  SpMVOptionsBegin(A, "EVC-HYB (evchyb) matrix options", "MATEVCHYB");
  PetscCall(SpMVOptionsInt(A, PetscOptionsObject, "-mat_evchyb_ell_limit", "Nonzeros of the longest row of the ELL part", "MATEVCHYB", 0, PETSC_MAX_INT,
                           &params->ell_limit));
  PetscCall(SpMVOptionsInt(A, PetscOptionsObject, "-mat_evchyb_row_align", "Rows to a multiple of which a row block of the ELL part is cut", "MATEVCHYB", 1,
                           1024, &params->row_align));
  PetscCall(SpMVOptionsInt(A, PetscOptionsObject, "-mat_evchyb_csr_align", "Entries to a multiple of which a row of the vector CSR part is padded", "MATEVCHYB",
                           1, 1024, &params->csr_align));
  PetscCall(SpMVOptionsInt(A, PetscOptionsObject, "-mat_evchyb_nonzeros_per_thread", "Nonzeros of a row that one thread takes before a second one helps",
                           "MATEVCHYB", 1, 65536, &params->nnz_per_thread));
  PetscCall(SpMVOptionsLayout(A, PetscOptionsObject, "evchyb", "MATEVCHYB", &params->common));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBSetUpStore(const SpMVCSR *A, const void *params, SpMVStore *block)
{
  return EVCHYBSetUp(A, (const EVCHYBParams *)params, block);
}

#if defined(PETSCSPMV_HAVE_CUDA)
static cudaError_t EVCHYBSetUpCUDAStore(const SpMVCudaCSR *A, const void *ctx, PetscBool transpose, cudaStream_t stream, SpMVCudaStore *block)
{
  const EVCHYBParams *params = (const EVCHYBParams *)ctx;

  if (params->common.kernel == SPMV_KERNEL_PARENT) return cudaErrorNotSupported;
  return SpMVCudaEVCHYBSetUp(A, params, SpMVKernelCUDA(params->common.kernel, params->common.tune), transpose, stream, block);
}
#endif

static PetscErrorCode EVCHYBDescribe(const void *params, const SpMVStats *stats, char text[], size_t len)
{
  const EVCHYBParams *p = (const EVCHYBParams *)params;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(text, len,
                          "%" PetscInt64_FMT " slices (%" PetscInt64_FMT " by diagonals) of rows up to %" PetscInt_FMT " nonzeros, node size %" PetscInt_FMT
                          ", %" PetscInt64_FMT " rows of %" PetscInt64_FMT " entries in vector CSR",
                          stats->slices, stats->diagonal, p->ell_limit, stats->node, stats->long_rows, stats->long_stored));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATEVCHYB - "evchyb" - A sparse matrix type derived from `MATAIJ` whose products run on the EVC-HYB format: rows sorted by length, then by
   first column; ELLPACK for rows of up to 128 nonzeros, vector CSR for longer ones

   Options Database Keys:
+  -mat_type evchyb                        - sets the type in `MatSetFromOptions()`
.  -mat_evchyb_ell_limit <nonzeros>        - longest row of the ELL part (default 128)
.  -mat_evchyb_row_align <rows>            - on a GPU, the paper's kernel: a row block ends at a multiple of so many rows; what is left joins the next length (default 32)
.  -mat_evchyb_csr_align <entries>         - rows of the vector CSR part are padded to a multiple of so many entries; on a GPU of the paper's kernel (default 32)
.  -mat_evchyb_nonzeros_per_thread <n>     - on a GPU, kernels paper and csr: rows of up to n 2^i nonzeros have 2^i threads (default 8)
.  -mat_evchyb_node_size <s>               - rows and columns of the dense blocks that the matrix consists of, up to 8 (on a GPU 6), 1 for none, 0 (the default) finds them
.  -mat_evchyb_single <bool>               - on a GPU, store values in single precision; products and sums stay double (default false)
.  -mat_evchyb_tune <bool>                 - on a GPU, time several layouts at set-up and take the fastest (default false)
.  -mat_evchyb_compress <bool>             - leave out column indices that a diagonal or a node block implies, and values that repeat (default true)
.  -mat_evchyb_kernel <auto,slices,csr,aij,paper> - force a product; auto (the default) decides by the matrix, slices is this format; on a GPU paper is the paper's own kernel (on
                                             the host slices) and csr the adaptive CSR kernel that precedes it (on the host the vector CSR part's)
.  -mat_spmv_halo <auto,peer,nccl,host,petsc>     - how several GPUs exchange the halo (default auto)
.  -mat_spmv_halo_rows <share>                    - up to which share of the rows what they have in the off-diagonal block is multiplied apart or along (default 0.1)
-  -mat_spmv_halo_early <bool>                    - several GPUs of a node: a product begins with the exchange of its halo, not after it (default true)

   Level: beginner

   Notes:
   Where the format cannot win, AIJ's own product runs; `-mat_view ::ascii_info` and `-ksp_view` say what was chosen.

   `MatGetType()` answers `MATSEQAIJEVCHYB` or `MATMPIAIJEVCHYB`, on a GPU `MATSEQAIJCUSPARSE` or `MATMPIAIJCUSPARSE`. Every operation of `MATAIJ` works; all but the
   products with vectors are AIJ's own. A parallel matrix stores its diagonal and its off-diagonal block each in the format.

   Options that are out of range give `PETSC_ERR_ARG_OUTOFRANGE` with the option's name, and leave the matrix as it was.

   References:
.  * - D. Guo, W. Gropp and L. Olson, A Hybrid Format for Better Performance of Sparse Matrix-Vector Multiplication on a GPU, 2015

.seealso: `MATSELLP`, `MATAIJ`, `PetscSpMVGetFormat()`, `PetscSpMVGetInfo()`
M*/
SpMVFormatCreate(EVCHYB)

    const SpMVFormat SpMVFormatEVCHYB = {"evchyb",
                                         sizeof(EVCHYBParams),
                                         MatCreate_SeqEVCHYB,
                                         MatCreate_MPIEVCHYB,
                                         MatCreate_EVCHYB,
                                         EVCHYBDefaults,
                                         EVCHYBOptions,
                                         EVCHYBSetUpStore,
                                         EVCHYBDescribe,
#if defined(PETSCSPMV_HAVE_CUDA)
                                         EVCHYBSetUpCUDAStore
#endif
};
