/* Portable C; the only kernels where the processor is no x86 */
#define SPMV_TARGET
#define SPMV_KERNELS      SpMVKernelsPortable
#define SPMV_ISA_NAME     "portable"
#define SPMV_ISA_SLOWDOWN 1.7
#include "kernels.h"
