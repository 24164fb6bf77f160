/* AVX-512, with the gather instruction */
#include "spmvimpl.h"
#if SPMV_HAVE_X86
  #define SPMV_AVX512       1
  #define SPMV_GATHER       1
  #define SPMV_TARGET       __attribute__((target("avx512f,avx512vl,avx512dq,avx2,fma")))
  #define SPMV_KERNELS      SpMVKernelsAVX512Gather
  #define SPMV_ISA_NAME     "AVX-512 with gathers"
  #define SPMV_ISA_SLOWDOWN 1.0 /* plans are the same with and without gathers */
  #include "kernels.h"
#endif
