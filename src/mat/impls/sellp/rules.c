/* SELL-P on the host: the rules by which rows share a slice */
#include "sellp.h"

void SELLPParamsDefault(SELLPParams *p)
{
  SpMVCommonParamsDefault(&p->common);
  p->b     = 0;
  p->t     = 0;
  p->sigma = 0;
}

PetscErrorCode SELLPSetUp(const SpMVCSR *A, const SELLPParams *p, SpMVStore *store)
{
  const SpMVKernel kernel       = p->common.kernel;
  const PetscBool  fits         = p->b <= 0 || p->b == SPMV_LANES ? PETSC_TRUE : PETSC_FALSE; /* compressed slices have one height */
  const PetscBool  uncompressed = (!p->common.compress || !fits) && kernel != SPMV_KERNEL_VECTOR ? PETSC_TRUE : PETSC_FALSE;
  SpMVRules        R            = {.kernel     = kernel,
                                   .node       = p->common.node,
                                   .longest    = PETSC_MAX_INT,
                                   .height     = SPMV_LANES,
                                   .multiple   = p->t > 0 ? p->t : 1,
                                   .sigma      = p->sigma,
                                   .long_align = SPMV_LANES,
                                   .diagonals  = p->sigma <= 1 ? PETSC_TRUE : PETSC_FALSE, /* else all rows are to be sorted */
                                   .outliers   = kernel == SPMV_KERNEL_AUTO ? PETSC_TRUE : PETSC_FALSE};

  PetscFunctionBegin;
  if (uncompressed) {
    if (kernel != SPMV_KERNEL_PARENT) R.kernel = SPMV_KERNEL_SLICES;
    R.node         = 1;
    R.height       = p->b > 0 ? p->b : SPMV_LANES;
    R.diagonals    = PETSC_FALSE;
    R.outliers     = PETSC_FALSE;
    R.uncompressed = PETSC_TRUE;
  }
  PetscCall(SpMVStoreCreate(A, &R, store));
  PetscFunctionReturn(PETSC_SUCCESS);
}
