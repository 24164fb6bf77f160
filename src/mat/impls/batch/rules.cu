/*
  The format batch on the device: the rules of SELL-P. It has no published kernel of its own
*/
#include "mat/impls/sellp/sellpcuda.h"

PETSC_INTERN cudaError_t SpMVCudaBATCHSetUp(const SpMVCudaCSR *, const void *params, SpMVCudaKernel,
                                            PetscBool transpose, cudaStream_t, SpMVCudaStore *);

cudaError_t SpMVCudaBATCHSetUp(const SpMVCudaCSR *csr, const void *params, SpMVCudaKernel kernel, PetscBool transpose,
                               cudaStream_t stream, SpMVCudaStore *store)
{
  if (kernel == SPMVCUDA_KERNEL_PAPER) kernel = SPMVCUDA_KERNEL_SLICES;
  return SpMVCudaSELLPSetUp(csr, params, kernel, transpose, stream, store);
}
