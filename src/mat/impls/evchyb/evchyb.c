/*
  The matrix type evchyb: the options and views of EVC-HYB, its row order as a PETSc ordering, and the table that
  defines the type.
*/
#include "mat/impls/spmv/matspmv.h"
#include "evchyb.h"

static PetscErrorCode EVCHYBOptions(Mat A, void *ctx)
{
  EVCHYBParams *params = (EVCHYBParams *)ctx;

  PetscFunctionBegin;
  SpMVOptionsBegin(A, "EVC-HYB (evchyb) matrix options", "MATEVCHYB");
  PetscCall(SpMVOptionsInt(A, PetscOptionsObject, "-mat_evchyb_ell_limit",
                           "Nonzeros of the longest row of the ELL part", "MATEVCHYB", 0, PETSC_MAX_INT,
                           &params->ell_limit));
  PetscCall(SpMVOptionsLayout(A, PetscOptionsObject, "MATEVCHYB", &params->common));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBDescribe(const void *params, const SpMVStats *stats, char text[], size_t len)
{
  const EVCHYBParams *p = (const EVCHYBParams *)params;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(
      text, len,
      "%" PetscInt64_FMT " slices (%" PetscInt64_FMT " by diagonals) of rows up to %" PetscInt_FMT
      " nonzeros, node size %" PetscInt_FMT ", %" PetscInt64_FMT " rows of %" PetscInt64_FMT " entries in vector CSR",
      stats->slices, stats->diagonal, p->ell_limit, stats->node, stats->long_rows, stats->long_stored));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATORDERINGEVCHYB - "evchyb" - Orders the rows by length, then by first column; the columns get the same order

   Level: intermediate

   Notes:
   This is the order in which `MATEVCHYB` stores the rows, for `MatGetOrdering()`, `MatPermute()` and options whose
   value is a `MatOrderingType`. The products of `MATEVCHYB` return y in the matrix's own order. The paper's kernel
   (`-mat_spmv_kernel paper`) needs an additional pass over y for this, unless the matrix was permuted once with this
   ordering.

   It works for `MATAIJ` and all types derived from it. For a parallel matrix, the rows of each process are ordered
   separately, using its diagonal block.

   References:
.  * - D. Guo, W. Gropp and L. Olson, A Hybrid Format for Better Performance of Sparse Matrix-Vector Multiplication on a GPU, 2015

.seealso: `MATEVCHYB`, `MatGetOrdering()`, `MatPermute()`, `MATORDERINGROWLENGTH`
M*/
PetscErrorCode MatGetOrdering_EVCHYB(Mat A, MatOrderingType type, IS *irow, IS *icol)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  PetscInt       start, *order;
  SpMVCSR        csr;
  Mat            D = A;
  PetscBool      mpi;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  (void)type;
  PetscCall(MatGetOwnershipRange(A, &start, NULL));
  /* MatGetOrdering() itself uses the diagonal block, but not for all types and not in all releases */
  PetscCall(PetscStrbeginswith(((PetscObject)A)->type_name, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &D, NULL, NULL));
  PetscCall(MatSpMVGetPattern_Seq(D, &csr));
  ierr = SpMVAgree(comm, EVCHYBOrder(&csr, &order));
  for (PetscInt k = 0; k < csr.m && !ierr; k++) order[k] += start;
  if (!ierr) ierr = ISCreateGeneral(comm, csr.m, order, PETSC_COPY_VALUES, irow);
  PetscCall(PetscFree(order));
  PetscCall(MatSpMVRestorePattern_Seq(D, &csr));
  PetscCall(ierr);
  PetscCall(ISDuplicate(*irow, icol));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATEVCHYB - "evchyb" - A sparse matrix type derived from `MATAIJ` whose products run on the EVC-HYB format: rows
   sorted by length, then by first column; ELLPACK for rows of up to 128 nonzeros, vector CSR for longer ones

   Options Database Keys:
+  -mat_type evchyb - sets the type in `MatSetFromOptions()`
-  -mat_spmv_*      - the options that all formats share, of every level: see `MATSELLP`

   Intermediate Options Database Key:
.  -mat_evchyb_ell_limit <nonzeros> - longest row of the ELL part (default 128)

   Level: beginner

   Notes:
   `MatGetType()` returns `MATSEQAIJEVCHYB` or `MATMPIAIJEVCHYB`, on a GPU `MATSEQAIJCUSPARSE` or `MATMPIAIJCUSPARSE`.
   See the notes and errors of `MATSELLP`, which are the same.

   References:
.  * - D. Guo, W. Gropp and L. Olson, A Hybrid Format for Better Performance of Sparse Matrix-Vector Multiplication on a GPU, 2015

.seealso: `MATSELLP`, `MATORDERINGEVCHYB`, `MATAIJ`, `PetscSpMVGetFormat()`, `PetscSpMVGetInfo()`
M*/
SpMVFormatCreate(EVCHYB);

const SpMVFormat SpMVFormatEVCHYB = {
    .name       = "evchyb",
    .paramssize = sizeof(EVCHYBParams),
    .createseq  = MatCreate_SeqEVCHYB,
    .creatempi  = MatCreate_MPIEVCHYB,
    .create     = MatCreate_EVCHYB,
    .defaults   = EVCHYBParamsDefault,
    .options    = EVCHYBOptions,
    .setup      = EVCHYBSetUp,
    .describe   = EVCHYBDescribe,
    .setupcuda  = SpMVIfCUDA(SpMVCudaEVCHYBSetUp),
};
