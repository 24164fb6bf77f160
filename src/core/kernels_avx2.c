/* AVX2 and FMA */
#include "spmvimpl.h"
#if SPMV_HAVE_X86
  #define SPMV_AVX2         1
  #define SPMV_TARGET       __attribute__((target("avx2,fma")))
  #define SPMV_KERNELS      SpMVKernelsAVX2
  #define SPMV_ISA_NAME     "AVX2"
  #define SPMV_ISA_SLOWDOWN 1.1
  #include "kernels.h"
#endif
