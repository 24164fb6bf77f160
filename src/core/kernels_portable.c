/* Portable C: the only kernels if the processor is not an x86 */
#define SPMV_TARGET
#define SPMV_KERNELS      SpMVKernelsPortable
#define SPMV_ISA_NAME     "portable"
#define SPMV_ISA_SLOWDOWN 1.7
#include "kernels.h"
