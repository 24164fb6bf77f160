/*
  The papers' kernels: their interface in C.
*/
#include "paper.cuh"

using namespace spmv;

cudaError_t SpMVCudaMultScaled(SpMVCudaStore store, PetscScalar alpha, const PetscScalar *x, PetscScalar beta,
                               PetscScalar *y, cudaStream_t stream)
{
  PaperStore  *paper = dynamic_cast<PaperStore *>(store);
  const Scalar zero  = Num::zero();
  Scalar       a, b;
  if (!paper) return cudaErrorNotSupported;
  memcpy(&a, &alpha, sizeof(a));
  memcpy(&b, &beta, sizeof(b));
  const bool read = memcmp(&b, &zero, sizeof(zero)) != 0;
  return Multiply(store, x, y, y, stream,
                  [=](const Operands &v) { return paper->Product(a, v.x, read, b, false, v.y, stream); });
}

cudaError_t SpMVCudaSetReorder(SpMVCudaStore store, PetscBool reorder)
{
  PaperStore *paper = dynamic_cast<PaperStore *>(store);
  return paper ? paper->SetReorder((bool)reorder) : cudaErrorNotSupported;
}
