/*
  The type batch: views and options, creation and destruction. This file calls functions of the other files; none of
  them calls functions of this file.
*/
#include "batch.h"

static PetscErrorCode MatView_Batch(Mat A, PetscViewer viewer)
{
  PetscBool         ascii;
  PetscViewerFormat format;
  MatBatchInfo      info;
  Mat               B;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (ascii && format == PETSC_VIEWER_ASCII_FACTOR_INFO) PetscFunctionReturn(PETSC_SUCCESS);
  if (ascii && (format == PETSC_VIEWER_ASCII_INFO || format == PETSC_VIEWER_ASCII_INFO_DETAIL)) {
    static const char *const shared[] = {"", ", pattern shared", ", pattern and values shared"};
    const MPI_Comm           comm     = PetscObjectComm((PetscObject)A);
    PetscInt64               sum[4], max[2];
    PetscInt                 M;

    PetscCall(SpMVAgree(comm, MatBatchGetInfo(A, &info)));
    PetscCall(MatGetSize(A, &M, NULL));
    sum[0] = info.problems;
    sum[1] = info.nonzeros;
    sum[2] = info.stored;
    sum[3] = info.bytes;
    max[0] = info.problems ? -(PetscInt64)info.smallest : -(PetscInt64)PETSC_MAX_INT;
    max[1] = info.largest;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, 4, MPIU_INT64, MPI_SUM, comm));
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, max, 2, MPIU_INT64, MPI_MAX, comm));
    PetscCall(PetscViewerASCIIPrintf(viewer,
                                     "  batch of %" PetscInt64_FMT " problems of %" PetscInt64_FMT
                                     " to %" PetscInt64_FMT " rows, %.1f entries per row%s\n",
                                     sum[0], sum[0] ? -max[0] : 0, max[1], (double)sum[1] / (double)PetscMax(1, M),
                                     shared[info.sharing]));
    PetscCall(PetscViewerASCIIPrintf(viewer, "  kernel: %s, %" PetscInt64_FMT " values stored, %.2f bytes per entry\n",
                                     info.kernel, sum[2], (double)sum[3] / (double)PetscMax(1, sum[1])));
  } else { /* print the entries like AIJ */
    PetscCall(MatBatchConvertToAIJ(A, &B));
    PetscCall(PetscObjectSetName((PetscObject)B, ((PetscObject)A)->name));
    PetscCall((*B->ops->view)(B, viewer));
    PetscCall(MatDestroy(&B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetFromOptions_Batch(Mat A, SpMVOptionItems PetscOptionsObject)
{
  Mat_Batch  *b      = (Mat_Batch *)A->data;
  BatchKernel kernel = b->kernel;

  PetscFunctionBegin;
  (void)PetscOptionsObject;
  { /* so that the options have their own title in the output of -help */
    SpMVOptionsBegin(A, "Batch matrix options", "MATBATCH");
    PetscCall(PetscOptionsEnum("-mat_batch_kernel", "Kernel of the product", "MATBATCH", BatchKernelTypes,
                               (PetscEnum)kernel, (PetscEnum *)&kernel, NULL));
    PetscOptionsEnd();
  }
  if (kernel != b->kernel) {
    b->kernel = kernel;
    if (b->first) PetscCall(MatBatchForget(b));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetUp_Batch(Mat A)
{
  Mat_Batch *b = NULL;

  return MatBatchGet(A, &b); /* its error message names the functions that create such a matrix */
}

/* For callers that have written to an array used in place: MatAssemblyEnd() increases the state */
static PetscErrorCode MatAssemblyEnd_Batch(Mat A, MatAssemblyType type)
{
  return MatSetUp_Batch(A);
}

#if defined(PETSCSPMV_HAVE_CUDA)
static PetscErrorCode MatBindToCPU_Batch(Mat A, PetscBool bind)
{
  Mat_Batch *b = (Mat_Batch *)A->data;

  PetscFunctionBegin;
  A->boundtocpu = bind;
  PetscCall(PetscFree(A->defaultvectype));
  PetscCall(PetscStrallocpy(b->device && !bind ? VECCUDA : VECSTANDARD, &A->defaultvectype));
  PetscCall(MatDestroy(&b->aij)); /* the next copy is AIJ or AIJCUSPARSE, depending on `bind` */
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode MatDestroy_Batch(Mat A)
{
  Mat_Batch *b = (Mat_Batch *)A->data;

  PetscFunctionBegin;
  PetscCall(MatBatchForget(b));
  PetscCall(MatDestroy(&b->aij));
  PetscCall(PetscFree(b->first));
  if (b->own_pattern) {
    PetscCall(PetscFree(b->i));
    PetscCall(PetscFree(b->j));
  }
  if (b->own_values) PetscCall(PetscFree(b->a));
  PetscCall(PetscFree(b->columns));
  PetscCall(PetscFree(A->data));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatInodeAdjustForInodes_C", NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatProductSetFromOptions_anytype_C", NULL));
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATBATCH - "batch" - The block-diagonal matrix of many small square problems, each with its own size, pattern and
   values. One product multiplies all of them

   Options Database Key:
.  -mat_type batch - sets the type in `MatSetFromOptions()`, before `MatLoad()`

   Intermediate Options Database Key:
.  -mat_batch_kernel <auto,slices,sellp,coo,csr-scalar,csr-vector,csr-smart,csr-i,ell,coo-atomic> - kernel of the product; auto (the default) chooses
                      depending on the problems

   Level: beginner

   Notes: Created by `MatCreateBatch()` from the CSR arrays of all problems, by `MatCreateBatchFromMats()`, or by
   `MatConvert()` from a block-diagonal matrix. The blocks of this matrix are those set by `MatSetVariableBlockSizes()`,
   or otherwise the smallest blocks that contain all entries. `MatConvert()` to `MATAIJ` converts back.

   Each process owns whole problems, so a product needs no communication. If PETSc is configured with CUDA and there is
   a GPU, products with GPU vectors run on the GPU, and `MatCreateVecs()` creates such vectors.

   The patterns of the problems cannot be changed. Values are changed by `MatBatchSetValues()`, and by `MatScale()`,
   `MatDiagonalScale()`, `MatShift()`, `MatAXPY()`, ...

   `PCVPBJACOBI` inverts the problems. Factorizations, `PCBJACOBI`, `PCASM`, `PCSOR` and products of matrices use a copy
   in AIJ. `PCGAMG` does not support the type: use `MatConvert()` to `MATAIJ`.

   The kernels coo to ell are those of the paper, except that they add in a fixed order. coo-atomic adds with atomics on
   a GPU, like the paper's kernel, so the last bits of its results may differ from product to product. auto chooses
   between slices and sellp, which docs/batch.md describes.

   Errors:
+  PETSC_ERR_SUP            - `MatSetValues()`: entries cannot be set one by one
.  PETSC_ERR_ARG_WRONGSTATE - the matrix has no problems yet
-  PETSC_ERR_GPU_RESOURCE   - the GPU does not have enough memory for the products

   References:
.  * - H. Anzt, G. Collins, J. Dongarra, G. Flegar and E. S. Quintana-Orti, Flexible Batched Sparse Matrix-Vector Product on GPUs, 2017

.seealso: `MatCreateBatch()`, `MatCreateBatchFromMats()`, `MatBatchSetValues()`, `MatBatchGetProblem()`,
`MatBatchGetInfo()`, `MatBatchSharing`
M*/
static PetscErrorCode MatCreate_Batch(Mat A)
{
  Mat_Batch     *b = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = PetscNew(&b);
  ierr = SpMVAgree(PetscObjectComm((PetscObject)A), ierr);
  if (ierr) PetscCall(PetscFree(b)); /* the allocation failed on another rank */
  PetscCall(ierr);
  A->data = b;
  PetscCall(SpMVUseDevice(PetscObjectComm((PetscObject)A), &b->device));
  A->ops->setup          = MatSetUp_Batch;
  A->ops->assemblyend    = MatAssemblyEnd_Batch;
  A->ops->view           = MatView_Batch;
  A->ops->setfromoptions = MatSetFromOptions_Batch;
  A->ops->destroy        = MatDestroy_Batch;
#if defined(PETSCSPMV_HAVE_CUDA)
  A->ops->bindtocpu = MatBindToCPU_Batch;
  PetscCall(MatBindToCPU_Batch(A, (PetscBool)!b->device)); /* MatCreate() sets boundtocpu */
#endif
  PetscCall(MatBatchSetOps_Products(A));
  PetscCall(MatBatchSetOps_Create(A));
  PetscCall(MatBatchSetOps_Values(A));
  PetscCall(MatBatchSetOps_AIJ(A));
  PetscCall(PetscObjectChangeTypeName((PetscObject)A, MATBATCH));
  PetscCall(MatBatchGetKernel(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatBatchRegister(void)
{
  PetscFunctionBegin;
  PetscCall(MatRegister(MATBATCH, MatCreate_Batch));
  PetscCall(MatBatchRegisterFactors());
  PetscFunctionReturn(PETSC_SUCCESS);
}
