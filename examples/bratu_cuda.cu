/*
   Evaluates bratu.h over the grid on a GPU: all arrays are in device memory, the work is queued on PETSc's stream, and
   the host does not wait.
*/
#include <petscdevice_cuda.h>
#include "bratu.h"

template <BratuPart part>
static __global__ void BratuKernel(Bratu p, BratuBox b, const PetscScalar *__restrict__ in,
                                   PetscScalar *__restrict__ out)
{
  const PetscInt i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i >= b.m[0]) return;
  for (PetscInt k = blockIdx.z; k < b.m[2]; k += gridDim.z)
    for (PetscInt j = blockIdx.y * blockDim.y + threadIdx.y; j < b.m[1]; j += gridDim.y * blockDim.y)
      BratuEvaluateAt(part, &p, &b, in, out, b.s[0] + i, b.s[1] + j, b.s[2] + k);
}

static __global__ void BratuIndicesKernel(Bratu p, BratuBox b, const PetscInt *__restrict__ global, PetscInt none,
                                          PetscInt *rows, PetscInt *cols)
{
  const PetscInt i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i >= b.m[0]) return;
  for (PetscInt k = blockIdx.z; k < b.m[2]; k += gridDim.z)
    for (PetscInt j = blockIdx.y * blockDim.y + threadIdx.y; j < b.m[1]; j += gridDim.y * blockDim.y)
      BratuIndicesAt(&p, &b, global, none, rows, cols, b.s[0] + i, b.s[1] + j, b.s[2] + k);
}

/* A grid with threads for all points */
static void BratuGrid(const BratuBox *b, dim3 *grid, dim3 *block)
{
  *block = dim3(32, 8); /* a warp along the rows of the grid */
  *grid =
      dim3((unsigned int)((b->m[0] + block->x - 1) / block->x),
           (unsigned int)PetscMin(65535, (b->m[1] + block->y - 1) / block->y), (unsigned int)PetscMin(65535, b->m[2]));
}

/* The rows and columns of all values, in device arrays that the caller frees with BratuFreeCUDA(); global: the numbers
   of all points with ghost points, on the host */
PetscErrorCode BratuIndicesCUDA(const Bratu *p, const BratuBox *b, const PetscInt *global, PetscInt none,
                                PetscInt **rows, PetscInt **cols)
{
  const size_t ghosted = (size_t)b->gm[0] * b->gm[1] * b->gm[2],
               n       = (size_t)BRATU_STENCIL * b->m[0] * b->m[1] * b->m[2];
  PetscInt    *numbers;
  dim3         grid, block;
  cudaStream_t stream;

  PetscFunctionBeginUser;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  BratuGrid(b, &grid, &block);
  PetscCallCUDA(cudaMalloc((void **)&numbers, PetscMax(ghosted, 1) * sizeof(PetscInt)));
  PetscCallCUDA(cudaMalloc((void **)rows, PetscMax(n, 1) * sizeof(PetscInt)));
  PetscCallCUDA(cudaMalloc((void **)cols, PetscMax(n, 1) * sizeof(PetscInt)));
  PetscCallCUDA(cudaMemcpy(numbers, global, ghosted * sizeof(PetscInt), cudaMemcpyHostToDevice));
  if (n) {
    BratuIndicesKernel<<<grid, block, 0, stream>>>(*p, *b, numbers, none, *rows, *cols);
    PetscCallCUDA(cudaGetLastError());
  }
  PetscCallCUDA(cudaStreamSynchronize(stream)); /* the arrays may be read in another stream */
  PetscCallCUDA(cudaFree(numbers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BratuFreeCUDA(PetscInt *array)
{
  PetscFunctionBeginUser;
  PetscCallCUDA(cudaFree(array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BratuEvaluateCUDA(BratuPart part, const Bratu *p, const BratuBox *b, const PetscScalar *in,
                                 PetscScalar *out)
{
  dim3         grid, block;
  cudaStream_t stream;

  PetscFunctionBeginUser;
  BratuGrid(b, &grid, &block);
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
