/* Portable C; the only kernels where the processor is no x86 */
#define SPMV_TARGET
#define SPMV_KERNELS  SpMVKernelsPortable
#define SPMV_ISA_NAME "portable"
#include "kernels.h"
