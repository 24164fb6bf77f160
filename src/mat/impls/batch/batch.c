/*
  The matrix type batch: its options, and the table that makes it a type. Rules, kernels and views are those of SELL-P.
*/
#include "batch.h"
#include "mat/impls/sellp/sellp.h"

static PetscErrorCode BATCHOptions(Mat A, void *params)
{
  PetscFunctionBegin;
  SpMVOptionsBegin(A, "Batch matrix options", "MATBATCH");
  PetscCall(SpMVOptionsLayout(A, PetscOptionsObject, "MATBATCH", &((SELLPParams *)params)->common));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATBATCH - "batch" - The block-diagonal matrix of many small square problems, each with its own size, pattern and
   values. One product multiplies all of them

   Options Database Keys:
+  -mat_type batch - sets the type in `MatSetFromOptions()`
-  -mat_spmv_*     - the options that all formats share, of every level: see `MATSELLP`

   Level: beginner

   Notes:
   Created by `MatCreateBatch()` from the CSR arrays of all problems, by `MatCreateBatchFromMats()`, or like any other
   type derived from `MATAIJ`: by `MatSetType()`, `MatConvert()`, `MatLoad()`, ... The problems are then the blocks set
   by `MatSetVariableBlockSizes()`, or otherwise the smallest blocks of consecutive rows that contain all entries.

   Each process owns whole problems, so a product needs no communication.

   `MatGetType()` returns the name of a type derived from `MATAIJ`, `PetscSpMVGetFormat()` returns `MATBATCH`. Every
   operation of `MATAIJ` works.

   `PCVPBJACOBI` inverts the problems.

   Errors:
+  PETSC_ERR_ARG_OUTOFRANGE - an option is out of range; the message contains its name, and the matrix is unchanged
-  PETSC_ERR_GPU_RESOURCE   - the GPU does not have enough memory for the products

.seealso: `MatCreateBatch()`, `MatCreateBatchFromMats()`, `MatBatchSetValues()`, `MatBatchGetProblem()`,
`MatBatchGetInfo()`, `MatBatchSharing`, `MATSELLP`, `PetscSpMVGetFormat()`
M*/
SpMVFormatCreate(BATCH);
PETSC_INTERN SpMVCudaSetUp SpMVCudaSELLPSetUp;

const SpMVFormat SpMVFormatBATCH = {
    .name       = "batch",
    .paramssize = sizeof(SELLPParams),
    .createseq  = MatCreate_SeqBATCH,
    .creatempi  = MatCreate_MPIBATCH,
    .create     = MatCreate_BATCH,
    .defaults   = SELLPParamsDefault,
    .options    = BATCHOptions,
    .setup      = SELLPSetUp,
    .describe   = SELLPDescribe,
    .setupcuda  = SpMVIfCUDA(SpMVCudaSELLPSetUp),
};
