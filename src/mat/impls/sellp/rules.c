/* SELL-P on the host: the rules by which rows share a slice */
#include "sellp.h"

void SELLPParamsDefault(void *params)
{
  SELLPParams *p = (SELLPParams *)params;

  SpMVCommonParamsDefault(&p->common);
  p->b     = 0;
  p->t     = 0;
  p->sigma = 0;
}

PetscErrorCode SELLPSetUp(const SpMVCSR *A, const void *params, SpMVStore *store)
{
  const SELLPParams *p      = (const SELLPParams *)params;
  const SpMVKernel   kernel = p->common.kernel;
  /* with sigma, all rows are to be sorted */
  const PetscBool diagonals = p->common.compress && p->sigma <= 1 ? PETSC_TRUE : PETSC_FALSE;
  const SpMVRules R         = {.kernel     = kernel,
                               .node       = p->common.compress ? p->common.node : 1,
                               .longest    = PETSC_MAX_INT,
                               .multiple   = p->t > 0 ? p->t : 1,
                               .sigma      = p->sigma,
                               .long_align = SPMV_LANES,
                               .diagonals  = diagonals,
                               .outliers   = kernel == SPMV_KERNEL_AUTO ? PETSC_TRUE : PETSC_FALSE};

  PetscFunctionBegin;
  PetscCall(SpMVStoreCreate(A, &R, store));
  PetscFunctionReturn(PETSC_SUCCESS);
}
