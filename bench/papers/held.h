/*
  EVC-HYB's kernel with an operand held constant, or with x loaded in other ways (held.cu): experiments of its paper.
*/
#pragma once

#include "core/cuda/spmvcuda.h"
#include "mat/impls/evchyb/evchyb.h"
#include "mat/impls/sellp/sellp.h"

/*
  EVC-HYB's kernel with one operand held constant (1), so that it need not be loaded: x and its indices, A's values, or
  both. Or with x loaded by other than read-only loads: through the L1 cache, or bypassing it, from L2
*/
typedef enum { HELD_X, HELD_A, HELD_BOTH, LOADED_L1, LOADED_L2 } Held;
PETSC_INTERN cudaError_t EVCHYBHeldSetUp(Held, const SpMVCudaCSR *, const EVCHYBParams *, cudaStream_t,
                                         SpMVCudaStore *);

PETSC_INTERN SpMVCudaSetUp SpMVCudaSELLPSetUp;
PETSC_INTERN SpMVCudaSetUp SpMVCudaEVCHYBSetUp;
/* of a store of EVC-HYB's published kernel: products leave y in the order of the sorted rows ("without reordering") */
PETSC_INTERN cudaError_t EVCHYBLeaveSorted(SpMVCudaStore);
