/* Portable C: the only kernels if the processor is not an x86 */
#define SPMV_TARGET
#define SPMV_KERNELS SpMVKernelsPortable
#if defined(__aarch64__) && defined(__GNUC__) && defined(PETSC_USE_REAL_DOUBLE)
  #define SPMV_ISA_NAME "NEON" /* what the short vectors of simd.h are compiled to */
#else
  #define SPMV_ISA_NAME "portable"
#endif
#define SPMV_ISA_SLOWDOWN 1.7
#include "kernels.h"
