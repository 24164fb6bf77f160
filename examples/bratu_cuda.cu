/*
   bratu.h over the grid on a GPU: all arrays are in device memory, the work is queued on PETSc's stream, the host does not wait.
*/
#include <petscdevice_cuda.h>
#include "bratu.h"

template <BratuPart part> static __global__ void BratuKernel(Bratu p, BratuBox b, const PetscScalar *__restrict__ in, PetscScalar *__restrict__ out)
{
  const PetscInt i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i >= b.m[0]) return;
  for (PetscInt k = blockIdx.z; k < b.m[2]; k += gridDim.z)
    for (PetscInt j = blockIdx.y * blockDim.y + threadIdx.y; j < b.m[1]; j += gridDim.y * blockDim.y)
      BratuEvaluateAt(part, &p, &b, in, out, b.s[0] + i, b.s[1] + j, b.s[2] + k);
}

PetscErrorCode BratuEvaluateCUDA(BratuPart part, const Bratu *p, const BratuBox *b, const PetscScalar *in, PetscScalar *out)
{
  const dim3   block(32, 8); /* a warp along the rows of the grid */
  const dim3   grid((unsigned int)((b->m[0] + block.x - 1) / block.x), (unsigned int)PetscMin(65535, (b->m[1] + block.y - 1) / block.y),
                    (unsigned int)PetscMin(65535, b->m[2]));
  cudaStream_t stream;

  PetscFunctionBeginUser;
  if (!b->m[0] || !b->m[1] || !b->m[2]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  switch (part) {
  case BRATU_GUESS: BratuKernel<BRATU_GUESS><<<grid, block, 0, stream>>>(*p, *b, in, out); break;
  case BRATU_FUNCTION: BratuKernel<BRATU_FUNCTION><<<grid, block, 0, stream>>>(*p, *b, in, out); break;
  case BRATU_JACOBIAN: BratuKernel<BRATU_JACOBIAN><<<grid, block, 0, stream>>>(*p, *b, in, out); break;
  }
  PetscCallCUDA(cudaGetLastError());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BratuSynchronizeCUDA(void)
{
  PetscFunctionBeginUser;
  PetscCallCUDA(cudaDeviceSynchronize());
  PetscFunctionReturn(PETSC_SUCCESS);
}
