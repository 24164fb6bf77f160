/* The instruction set of the kernels, detected by the first product */
#include "spmvimpl.h"
#if SPMV_HAVE_X86
  #include <cpuid.h>

/* Whether the gather instruction is faster than eight loads (simd.h): Intel's processors from Sapphire Rapids on, the
   first ones with AVX512-FP16 */
static PetscBool SpMVGathersAreFast(void)
{
  unsigned a, b, c, d;

  return (PetscBool)(__builtin_cpu_is("intel") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 23 & 1));
}
#endif

static const SpMVKernels *active = NULL;

static const SpMVKernels *SpMVKernelsOf(SpMVISA isa)
{
#if SPMV_HAVE_X86
  const PetscBool avx2   = (PetscBool)(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  const PetscBool avx512 = (PetscBool)(avx2 && __builtin_cpu_supports("avx512f") &&
                                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"));

  if (isa == SPMV_ISA_AUTO)
    isa = avx512 ? (SpMVGathersAreFast() ? SPMV_ISA_AVX512_GATHER : SPMV_ISA_AVX512)
                 : (avx2 ? SPMV_ISA_AVX2 : SPMV_ISA_PORTABLE);
  if (isa == SPMV_ISA_AVX512) return avx512 ? &SpMVKernelsAVX512 : NULL;
  if (isa == SPMV_ISA_AVX512_GATHER) return avx512 ? &SpMVKernelsAVX512Gather : NULL;
  if (isa == SPMV_ISA_AVX2) return avx2 ? &SpMVKernelsAVX2 : NULL;
#else
  if (isa != SPMV_ISA_AUTO && isa != SPMV_ISA_PORTABLE) return NULL;
#endif
  return &SpMVKernelsPortable;
}

const SpMVKernels *SpMVKernelsGet(void)
{
  if (!active) active = SpMVKernelsOf(SPMV_ISA_AUTO);
  return active;
}

PetscBool SpMVSetISA(SpMVISA isa)
{
  const SpMVKernels *k = SpMVKernelsOf(isa);

  if (k) active = k;
  return k ? PETSC_TRUE : PETSC_FALSE;
}

const char *SpMVGetISAName(void)
{
  return SpMVKernelsGet()->name;
}
