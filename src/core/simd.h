/*
  Eight lanes of numbers, for the instruction set that the including file names:

    SPMV_AVX512 or SPMV_AVX2 or neither (portable C), SPMV_TARGET (an attribute that every function carries),
    with SPMV_AVX512 also SPMV_GATHER: gathers by the gather instruction

  R8 holds eight real numbers. V8 holds eight scalars: one R8, or two if scalars are complex. A mask is a byte, with bit
  l for lane l.

  Otherwise gathers are eight scalar loads. AMD's gather instruction takes 2.5 times as long (Zen 5: 0.50 instead of
  0.20 ns per entry), and a microcode update has made Intel's slow up to Ice Lake. From Sapphire Rapids on, products of
  matrices in cache take 8 to 22 % less time with it (Emerald Rapids: Si2 5.9 and 4.6 us, cage10 54 and 45, econ 760 and
  710); strided loads of node blocks do not. The bits of the products are the same.
*/
#if defined(SPMV_AVX512) || defined(SPMV_AVX2)
  #include <immintrin.h>
#endif

#if defined(__GNUC__)
  #define SPMV_INLINE static inline __attribute__((always_inline)) SPMV_TARGET
  #define SPMV_RARE   static __attribute__((noinline, unused)) SPMV_TARGET /* inlined, it would only enlarge the code */
#else
  #define SPMV_INLINE static inline
  #define SPMV_RARE   static
#endif

/*
  An R8 consists of parts: vectors as long as the registers, or numbers. The operations of a part (RV) are those of the
  instruction set; SPMV_MASKS: also the masked ones
*/
#if defined(SPMV_AVX512) && defined(PETSC_USE_REAL_DOUBLE)
typedef __m512d RV;

  #define R8_PARTS           1
  #define SPMV_MASKS         1
  #define rv_set1            _mm512_set1_pd
  #define rv_load            _mm512_loadu_pd
  #define rv_store           _mm512_storeu_pd
  #define rv_mload(m, p)     _mm512_maskz_loadu_pd((__mmask8)(m), p)
  #define rv_mstore(m, p, a) _mm512_mask_storeu_pd(p, (__mmask8)(m), a)
  #define rv_keep(m, a)      _mm512_maskz_mov_pd((__mmask8)(m), a)
  #define rv_add             _mm512_add_pd
  #define rv_fma             _mm512_fmadd_pd
  #define rv_fnma            _mm512_fnmadd_pd

#elif defined(SPMV_AVX2) && defined(PETSC_USE_REAL_DOUBLE)
typedef __m256d RV;

SPMV_INLINE __m256i rv_mask(unsigned m)
{
  const __m256i bit = _mm256_set_epi64x(8, 4, 2, 1);

  return _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x((long long)m), bit), bit);
}
  #define R8_PARTS           2
  #define SPMV_MASKS         1
  #define rv_set1            _mm256_set1_pd
  #define rv_load            _mm256_loadu_pd
  #define rv_store           _mm256_storeu_pd
  #define rv_mload(m, p)     _mm256_maskload_pd(p, rv_mask(m))
  #define rv_mstore(m, p, a) _mm256_maskstore_pd(p, rv_mask(m), a)
  #define rv_keep(m, a)      _mm256_and_pd(a, _mm256_castsi256_pd(rv_mask(m)))
  #define rv_add             _mm256_add_pd
  #define rv_fma             _mm256_fmadd_pd
  #define rv_fnma            _mm256_fnmadd_pd

#elif (defined(SPMV_AVX512) || defined(SPMV_AVX2)) && defined(PETSC_USE_REAL_SINGLE)
typedef __m256 RV;

SPMV_INLINE __m256i rv_mask(unsigned m)
{
  const __m256i bit = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);

  return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)m), bit), bit);
}
  #define R8_PARTS           1
  #define SPMV_MASKS         1
  #define rv_set1            _mm256_set1_ps
  #define rv_load            _mm256_loadu_ps
  #define rv_store           _mm256_storeu_ps
  #define rv_mload(m, p)     _mm256_maskload_ps(p, rv_mask(m))
  #define rv_mstore(m, p, a) _mm256_maskstore_ps(p, rv_mask(m), a)
  #define rv_keep(m, a)      _mm256_and_ps(a, _mm256_castsi256_ps(rv_mask(m)))
  #define rv_add             _mm256_add_ps
  #define rv_fma             _mm256_fmadd_ps
  #define rv_fnma            _mm256_fnmadd_ps

#else
  #if defined(__GNUC__) && defined(PETSC_USE_REAL_DOUBLE)
/* Short vectors, which all current processors support; compilers split longer vectors badly */
typedef PetscReal RV __attribute__((vector_size(16), aligned(8), may_alias));

    #define R8_PARTS   4
    #define rv_set1(a) ((RV){a, a})
  #else
typedef PetscReal RV;

    #define R8_PARTS   8
    #define rv_set1(a) (a)
  #endif
  #define rv_load(p)       (*(const RV *)(p))
  #define rv_store(p, a)   (*(RV *)(p) = (a))
  #define rv_add(a, b)     ((a) + (b))
  #define rv_fma(a, b, c)  ((c) + (a) * (b))
  #define rv_fnma(a, b, c) ((c) - (a) * (b))
#endif

#if R8_PARTS == 1
typedef RV R8;

  #define R8_AT(a, k) (a)
  #define R8_OF(...)  (__VA_ARGS__)
#else
typedef struct {
  RV part[R8_PARTS];
} R8;

  #define R8_AT(a, k) (a).part[k]
  #define R8_OF(...)  ((R8){{__VA_ARGS__}})
#endif
#if R8_PARTS == 1
  #define R8_LIST(OP) OP(0)
#elif R8_PARTS == 2
  #define R8_LIST(OP) OP(0), OP(1)
#elif R8_PARTS == 4
  #define R8_LIST(OP) OP(0), OP(1), OP(2), OP(3)
#else
  #define R8_LIST(OP) OP(0), OP(1), OP(2), OP(3), OP(4), OP(5), OP(6), OP(7)
#endif
#define R8_LANE(k) ((k) * (8 / R8_PARTS)) /* the first one of a part */

/* A function that does OP(k) with each part, and returns the results or nothing */
#define R8_FUNCTION(name, OP, ...) \
  SPMV_INLINE R8 name(__VA_ARGS__) \
  {                                \
    return R8_OF(R8_LIST(OP));     \
  }
#define R8_ACTION(name, OP, ...)     \
  SPMV_INLINE void name(__VA_ARGS__) \
  {                                  \
    R8_LIST(OP);                     \
  }
#define R8_SET1(k)  rv_set1(a)
#define R8_LOAD(k)  rv_load(p + R8_LANE(k))
#define R8_STORE(k) rv_store(p + R8_LANE(k), R8_AT(a, k))
#define R8_ADD(k)   rv_add(R8_AT(a, k), R8_AT(b, k))
#define R8_FMA(k)   rv_fma(R8_AT(a, k), R8_AT(b, k), R8_AT(c, k))
#define R8_FNMA(k)  rv_fnma(R8_AT(a, k), R8_AT(b, k), R8_AT(c, k))
R8_FUNCTION(r8_set1, R8_SET1, PetscReal a)
R8_FUNCTION(r8_load, R8_LOAD, const PetscReal *p)
R8_ACTION(r8_store, R8_STORE, PetscReal *p, R8 a)
R8_FUNCTION(r8_add, R8_ADD, R8 a, R8 b)
R8_FUNCTION(r8_fma, R8_FMA, R8 a, R8 b, R8 c)
R8_FUNCTION(r8_fnma, R8_FNMA, R8 a, R8 b, R8 c)

SPMV_INLINE R8 r8_zero(void)
{
  return r8_set1(0);
}

#if defined(SPMV_MASKS)
  #define R8_MLOAD(k)  rv_mload(m >> R8_LANE(k), p + R8_LANE(k))
  #define R8_MSTORE(k) rv_mstore(m >> R8_LANE(k), p + R8_LANE(k), R8_AT(a, k))
  #define R8_KEEP(k)   rv_keep(m >> R8_LANE(k), R8_AT(a, k))
R8_FUNCTION(r8_mload, R8_MLOAD, uint8_t m, const PetscReal *p)
R8_ACTION(r8_mstore, R8_MSTORE, uint8_t m, PetscReal *p, R8 a)
R8_FUNCTION(r8_keep, R8_KEEP, uint8_t m, R8 a)
#else
SPMV_RARE R8 r8_mload_some(uint8_t m, const PetscReal *p)
{
  PetscReal t[8];

  for (int l = 0; l < 8; l++) t[l] = (m >> l & 1) ? p[l] : 0;
  return r8_load(t);
}
SPMV_INLINE R8 r8_mload(uint8_t m, const PetscReal *p)
{
  return m == 255 ? r8_load(p) : r8_mload_some(m, p);
}
SPMV_RARE void r8_mstore(uint8_t m, PetscReal *p, R8 a)
{
  PetscReal t[8];

  r8_store(t, a);
  for (int l = 0; l < 8; l++)
    if (m >> l & 1) p[l] = t[l];
}
  #if R8_PARTS == 4
typedef int64_t I2 __attribute__((vector_size(16)));
static const I2 r8_pair[4] = {{0, 0}, {-1, 0}, {0, -1}, {-1, -1}};

    #define R8_KEEP(k) (RV)((I2)R8_AT(a, k) & r8_pair[m >> R8_LANE(k) & 3])
R8_FUNCTION(r8_keep, R8_KEEP, uint8_t m, R8 a)
  #else
SPMV_INLINE R8 r8_keep(uint8_t m, R8 a)
{
  for (int l = 0; l < 8; l++)
    if (!(m >> l & 1)) a.part[l] = 0;
  return a;
}
  #endif
#endif

/* Always in the order of ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)) */
SPMV_INLINE PetscReal r8_sum(R8 a)
{
#if defined(SPMV_MASKS) && defined(PETSC_USE_REAL_DOUBLE)
  #if R8_PARTS == 1
  const __m256d s = _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
  #else
  const __m256d s = _mm256_add_pd(a.part[0], a.part[1]);
  #endif
  const __m128d t = _mm_add_pd(_mm256_castpd256_pd128(s), _mm256_extractf128_pd(s, 1));

  return _mm_cvtsd_f64(_mm_add_sd(t, _mm_unpackhi_pd(t, t)));
#else
  PetscReal t[8];

  r8_store(t, a);
  return ((t[0] + t[4]) + (t[2] + t[6])) + ((t[1] + t[5]) + (t[3] + t[7]));
#endif
}

/* The numbers at eight addresses, which a compiler would collect in more instructions */
#if defined(SPMV_MASKS) && defined(PETSC_USE_REAL_DOUBLE)
  #define R8_FOUR(l0, l1, l2, l3)                                                                                      \
    _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadh_pd(_mm_load_sd(l0), l1)), _mm_loadh_pd(_mm_load_sd(l2), l3), \
                         1)
  #if R8_PARTS == 1
    #define R8_SET(l0, l1, l2, l3, l4, l5, l6, l7) \
      _mm512_insertf64x4(_mm512_castpd256_pd512(R8_FOUR(l0, l1, l2, l3)), R8_FOUR(l4, l5, l6, l7), 1)
  #else
    #define R8_SET(l0, l1, l2, l3, l4, l5, l6, l7) R8_OF(R8_FOUR(l0, l1, l2, l3), R8_FOUR(l4, l5, l6, l7))
  #endif
#elif R8_PARTS == 4
  #define R8_SET(l0, l1, l2, l3, l4, l5, l6, l7) R8_OF({*(l0), *(l1)}, {*(l2), *(l3)}, {*(l4), *(l5)}, {*(l6), *(l7)})
#elif R8_PARTS == 1
  #define R8_SET(l0, l1, l2, l3, l4, l5, l6, l7) _mm256_set_ps(*(l7), *(l6), *(l5), *(l4), *(l3), *(l2), *(l1), *(l0))
#else
  #define R8_SET(l0, l1, l2, l3, l4, l5, l6, l7) R8_OF(*(l0), *(l1), *(l2), *(l3), *(l4), *(l5), *(l6), *(l7))
#endif

/* Lanes whose length exceeds k */
SPMV_INLINE uint8_t m8_longer(const int *len, int k)
{
#if defined(SPMV_AVX512)
  return (uint8_t)_mm256_cmpgt_epi32_mask(_mm256_loadu_si256((const __m256i *)len), _mm256_set1_epi32(k));
#elif defined(SPMV_AVX2)
  return (uint8_t)_mm256_movemask_ps(
      _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_loadu_si256((const __m256i *)len), _mm256_set1_epi32(k))));
#else
  unsigned m = 0;

  for (int l = 0; l < 8; l++) m |= (unsigned)(len[l] > k) << l;
  return (uint8_t)m;
#endif
}

/* Lane l: p[parts * index[l]], where narrow indices are 16-bit integers; p[l * stride] */
SPMV_INLINE R8 r8_gather(const PetscReal *p, const int *index, const PetscBool narrow, const size_t parts)
{
#if defined(SPMV_GATHER)
  const __m256i i = narrow ? _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)index))
                           : _mm256_loadu_si256((const __m256i *)index);

  #if defined(PETSC_USE_REAL_SINGLE)
  return parts == 1 ? _mm256_i32gather_ps(p, i, 4) : _mm256_i32gather_ps(p, i, 8);
  #else
  return parts == 1 ? _mm512_i32gather_pd(i, p, 8)
                    : _mm512_i64gather_pd(_mm512_slli_epi64(_mm512_cvtepi32_epi64(i), 1), p, 8);
  #endif
#else
  const uint16_t *short_index = (const uint16_t *)index;

  #define R8_AT_INDEX(l) (p + parts * (narrow ? (size_t)short_index[l] : (size_t)index[l]))
  return R8_SET(R8_AT_INDEX(0), R8_AT_INDEX(1), R8_AT_INDEX(2), R8_AT_INDEX(3), R8_AT_INDEX(4), R8_AT_INDEX(5),
                R8_AT_INDEX(6), R8_AT_INDEX(7));
#endif
}
SPMV_INLINE R8 r8_strided(const PetscReal *p, const size_t s)
{
  return s == 1 ? r8_load(p) : R8_SET(p, p + s, p + 2 * s, p + 3 * s, p + 4 * s, p + 5 * s, p + 6 * s, p + 7 * s);
}
SPMV_RARE R8 r8_mstrided_any(uint8_t m, const PetscReal *p, size_t s)
{
  const PetscReal *q = p; /* masked lanes read the address of another lane */

  if (!m) return r8_zero();
  for (uint8_t b = m; !(b & 1); b >>= 1) q += s;
#define R8_ADDRESS(l) ((m >> (l)&1) ? p + (l)*s : q)
  return r8_keep(m, R8_SET(R8_ADDRESS(0), R8_ADDRESS(1), R8_ADDRESS(2), R8_ADDRESS(3), R8_ADDRESS(4), R8_ADDRESS(5),
                           R8_ADDRESS(6), R8_ADDRESS(7)));
}
SPMV_INLINE R8 r8_mstrided(uint8_t m, const PetscReal *p, const size_t s)
{
  return s == 1 ? r8_mload(m, p) : r8_mstrided_any(m, p, s);
}

/* Scalars. A stored vector has its real parts first, then its imaginary parts; x and y interleave them */
#if defined(PETSC_USE_COMPLEX)
typedef struct {
  R8 re, im;
} V8;

SPMV_INLINE V8 v8_zero(void)
{
  return (V8){r8_zero(), r8_zero()};
}
SPMV_INLINE V8 v8_set1(PetscScalar a)
{
  return (V8){r8_set1(PetscRealPart(a)), r8_set1(PetscImaginaryPart(a))};
}
SPMV_INLINE V8 v8_value(const PetscReal *p)
{
  return (V8){r8_load(p), r8_load(p + 8)};
}
SPMV_INLINE V8 v8_add(V8 a, V8 b)
{
  return (V8){r8_add(a.re, b.re), r8_add(a.im, b.im)};
}
SPMV_INLINE V8 v8_fma(V8 a, V8 b, V8 c)
{
  return (V8){r8_fnma(a.im, b.im, r8_fma(a.re, b.re, c.re)), r8_fma(a.im, b.re, r8_fma(a.re, b.im, c.im))};
}
SPMV_INLINE V8 v8_conj(PetscBool conjugate, V8 a)
{
  if (conjugate) a.im = r8_fnma(r8_set1(1), a.im, r8_zero());
  return a;
}
SPMV_INLINE V8 v8_keep(uint8_t m, V8 a)
{
  return (V8){r8_keep(m, a.re), r8_keep(m, a.im)};
}
SPMV_INLINE V8 v8_gather(const PetscScalar *x, const int *index, const PetscBool narrow)
{
  const PetscReal *p = (const PetscReal *)x;

  return (V8){r8_gather(p, index, narrow, 2), r8_gather(p + 1, index, narrow, 2)};
}
SPMV_INLINE V8 v8_strided(const PetscScalar *x, const size_t s)
{
  const PetscReal *p = (const PetscReal *)x;

  #if defined(SPMV_AVX512) && defined(PETSC_USE_REAL_DOUBLE)
  if (s == 1) {
    const R8 a = r8_load(p), b = r8_load(p + 8);

    return (V8){_mm512_permutex2var_pd(a, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), b),
                _mm512_permutex2var_pd(a, _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1), b)};
  }
  #endif
  return (V8){r8_strided(p, 2 * s), r8_strided(p + 1, 2 * s)};
}
SPMV_INLINE V8 v8_mstrided(uint8_t m, const PetscScalar *x, const size_t s)
{
  const PetscReal *p = (const PetscReal *)x;

  return (V8){r8_mstrided(m, p, 2 * s), r8_mstrided(m, p + 1, 2 * s)};
}
SPMV_INLINE void v8_store(PetscScalar *y, V8 a)
{
  PetscReal *p = (PetscReal *)y;

  #if defined(SPMV_AVX512) && defined(PETSC_USE_REAL_DOUBLE)
  r8_store(p, _mm512_permutex2var_pd(a.re, _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0), a.im));
  r8_store(p + 8, _mm512_permutex2var_pd(a.re, _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4), a.im));
  #else
  PetscReal re[8], im[8];

  r8_store(re, a.re);
  r8_store(im, a.im);
  for (int l = 0; l < 8; l++) {
    p[2 * l]     = re[l];
    p[2 * l + 1] = im[l];
  }
  #endif
}
SPMV_RARE void v8_mstore(uint8_t m, PetscScalar *y, V8 a)
{
  PetscScalar t[8];

  v8_store(t, a);
  for (int l = 0; l < 8; l++)
    if (m >> l & 1) y[l] = t[l];
}
SPMV_INLINE PetscScalar v8_sum(V8 a)
{
  return PetscCMPLX(r8_sum(a.re), r8_sum(a.im));
}
#else
typedef R8 V8;

  #define v8_zero                     r8_zero
  #define v8_set1                     r8_set1
  #define v8_value                    r8_load
  #define v8_add                      r8_add
  #define v8_fma                      r8_fma
  #define v8_keep                     r8_keep
  #define v8_gather(x, index, narrow) r8_gather(x, index, narrow, 1)
  #define v8_strided                  r8_strided
  #define v8_mstrided                 r8_mstrided
  #define v8_store                    r8_store
  #define v8_mstore                   r8_mstore
  #define v8_sum                      r8_sum

SPMV_INLINE V8 v8_conj(PetscBool conjugate, V8 a)
{
  (void)conjugate;
  return a;
}
#endif
