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

#if defined(SPMV_AVX512) && defined(PETSC_USE_REAL_DOUBLE)
typedef __m512d R8;

  #define r8_zero            _mm512_setzero_pd
  #define r8_set1            _mm512_set1_pd
  #define r8_load            _mm512_loadu_pd
  #define r8_store           _mm512_storeu_pd
  #define r8_mload           _mm512_maskz_loadu_pd
  #define r8_mstore(m, p, a) _mm512_mask_storeu_pd(p, m, a)
  #define r8_keep            _mm512_maskz_mov_pd
  #define r8_add             _mm512_add_pd
  #define r8_fma             _mm512_fmadd_pd
  #define r8_fnma            _mm512_fnmadd_pd
  #define r8_sum             _mm512_reduce_add_pd
  #define R8_SET(l0, l1, l2, l3, l4, l5, l6, l7)                                                               \
    _mm512_insertf64x4(                                                                                        \
        _mm512_castpd256_pd512(_mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadh_pd(_mm_load_sd(l0), l1)), \
                                                    _mm_loadh_pd(_mm_load_sd(l2), l3), 1)),                    \
        _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadh_pd(_mm_load_sd(l4), l5)),                        \
                             _mm_loadh_pd(_mm_load_sd(l6), l7), 1),                                            \
        1)

#elif defined(SPMV_AVX2) && defined(PETSC_USE_REAL_DOUBLE)
typedef struct {
  __m256d lo, hi;
} R8;

SPMV_INLINE __m256i r8_mask4(unsigned m)
{
  const __m256i bit = _mm256_set_epi64x(8, 4, 2, 1);

  return _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x((long long)m), bit), bit);
}
SPMV_INLINE R8 r8_zero(void)
{
  return (R8){_mm256_setzero_pd(), _mm256_setzero_pd()};
}
SPMV_INLINE R8 r8_set1(PetscReal a)
{
  return (R8){_mm256_set1_pd(a), _mm256_set1_pd(a)};
}
SPMV_INLINE R8 r8_load(const PetscReal *p)
{
  return (R8){_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)};
}
SPMV_INLINE void r8_store(PetscReal *p, R8 a)
{
  _mm256_storeu_pd(p, a.lo);
  _mm256_storeu_pd(p + 4, a.hi);
}
SPMV_INLINE R8 r8_mload(uint8_t m, const PetscReal *p)
{
  return (R8){_mm256_maskload_pd(p, r8_mask4(m)), _mm256_maskload_pd(p + 4, r8_mask4(m >> 4))};
}
SPMV_INLINE void r8_mstore(uint8_t m, PetscReal *p, R8 a)
{
  _mm256_maskstore_pd(p, r8_mask4(m), a.lo);
  _mm256_maskstore_pd(p + 4, r8_mask4(m >> 4), a.hi);
}
SPMV_INLINE R8 r8_keep(uint8_t m, R8 a)
{
  return (R8){_mm256_and_pd(a.lo, _mm256_castsi256_pd(r8_mask4(m))),
              _mm256_and_pd(a.hi, _mm256_castsi256_pd(r8_mask4(m >> 4)))};
}
SPMV_INLINE R8 r8_add(R8 a, R8 b)
{
  return (R8){_mm256_add_pd(a.lo, b.lo), _mm256_add_pd(a.hi, b.hi)};
}
SPMV_INLINE R8 r8_fma(R8 a, R8 b, R8 c)
{
  return (R8){_mm256_fmadd_pd(a.lo, b.lo, c.lo), _mm256_fmadd_pd(a.hi, b.hi, c.hi)};
}
SPMV_INLINE R8 r8_fnma(R8 a, R8 b, R8 c)
{
  return (R8){_mm256_fnmadd_pd(a.lo, b.lo, c.lo), _mm256_fnmadd_pd(a.hi, b.hi, c.hi)};
}
SPMV_INLINE PetscReal r8_sum(R8 a)
{
  const __m256d s = _mm256_add_pd(a.lo, a.hi);
  const __m128d t = _mm_add_pd(_mm256_castpd256_pd128(s), _mm256_extractf128_pd(s, 1));

  return _mm_cvtsd_f64(_mm_add_sd(t, _mm_unpackhi_pd(t, t)));
}
  #define R8_SET(l0, l1, l2, l3, l4, l5, l6, l7)                                          \
    ((R8){_mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadh_pd(_mm_load_sd(l0), l1)), \
                               _mm_loadh_pd(_mm_load_sd(l2), l3), 1),                     \
          _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadh_pd(_mm_load_sd(l4), l5)), \
                               _mm_loadh_pd(_mm_load_sd(l6), l7), 1)})

#elif (defined(SPMV_AVX512) || defined(SPMV_AVX2)) && defined(PETSC_USE_REAL_SINGLE)
typedef __m256 R8;

SPMV_INLINE __m256i r8_mask8(unsigned m)
{
  const __m256i bit = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);

  return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)m), bit), bit);
}
  #define r8_zero                                _mm256_setzero_ps
  #define r8_set1                                _mm256_set1_ps
  #define r8_load                                _mm256_loadu_ps
  #define r8_store                               _mm256_storeu_ps
  #define r8_mload(m, p)                         _mm256_maskload_ps(p, r8_mask8(m))
  #define r8_mstore(m, p, a)                     _mm256_maskstore_ps(p, r8_mask8(m), a)
  #define r8_keep(m, a)                          _mm256_and_ps(a, _mm256_castsi256_ps(r8_mask8(m)))
  #define r8_add                                 _mm256_add_ps
  #define r8_fma                                 _mm256_fmadd_ps
  #define r8_fnma                                _mm256_fnmadd_ps
SPMV_INLINE PetscReal r8_sum(R8 a)
{
  __m128 t = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

  t = _mm_add_ps(t, _mm_movehl_ps(t, t));
  return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}
  #define R8_SET(l0, l1, l2, l3, l4, l5, l6, l7) _mm256_set_ps(*(l7), *(l6), *(l5), *(l4), *(l3), *(l2), *(l1), *(l0))

#endif

#if !defined(R8_SET)
  #if defined(__GNUC__) && defined(PETSC_USE_REAL_DOUBLE)
/* Four short vectors, which all current processors support; compilers split longer vectors badly */
typedef PetscReal R2 __attribute__((vector_size(16), aligned(8), may_alias));
typedef struct {
  R2 a, b, c, d;
} R8;

SPMV_INLINE R8 r8_set1(PetscReal a)
{
  const R2 t = {a, a};

  return (R8){t, t, t, t};
}
SPMV_INLINE R8 r8_zero(void)
{
  return r8_set1(0);
}
SPMV_INLINE R8 r8_load(const PetscReal *p)
{
  return (R8){*(const R2 *)p, *(const R2 *)(p + 2), *(const R2 *)(p + 4), *(const R2 *)(p + 6)};
}
SPMV_INLINE void r8_store(PetscReal *p, R8 a)
{
  *(R2 *)p       = a.a;
  *(R2 *)(p + 2) = a.b;
  *(R2 *)(p + 4) = a.c;
  *(R2 *)(p + 6) = a.d;
}
SPMV_INLINE R8 r8_add(R8 a, R8 b)
{
  return (R8){a.a + b.a, a.b + b.b, a.c + b.c, a.d + b.d};
}
SPMV_INLINE R8 r8_fma(R8 a, R8 b, R8 c)
{
  return (R8){c.a + a.a * b.a, c.b + a.b * b.b, c.c + a.c * b.c, c.d + a.d * b.d};
}
SPMV_INLINE R8 r8_fnma(R8 a, R8 b, R8 c)
{
  return (R8){c.a - a.a * b.a, c.b - a.b * b.b, c.c - a.c * b.c, c.d - a.d * b.d};
}
    #define R8_SET(l0, l1, l2, l3, l4, l5, l6, l7) \
      ((R8){{*(l0), *(l1)}, {*(l2), *(l3)}, {*(l4), *(l5)}, {*(l6), *(l7)}})
  #else
typedef struct {
  PetscReal v[8];
} R8;

SPMV_INLINE R8 r8_set1(PetscReal a)
{
  R8 r;

  for (int l = 0; l < 8; l++) r.v[l] = a;
  return r;
}
SPMV_INLINE R8 r8_zero(void)
{
  return r8_set1(0);
}
SPMV_INLINE R8 r8_load(const PetscReal *p)
{
  R8 r;

  for (int l = 0; l < 8; l++) r.v[l] = p[l];
  return r;
}
SPMV_INLINE void r8_store(PetscReal *p, R8 a)
{
  for (int l = 0; l < 8; l++) p[l] = a.v[l];
}
SPMV_INLINE R8 r8_add(R8 a, R8 b)
{
  for (int l = 0; l < 8; l++) a.v[l] += b.v[l];
  return a;
}
SPMV_INLINE R8 r8_fma(R8 a, R8 b, R8 c)
{
  for (int l = 0; l < 8; l++) c.v[l] += a.v[l] * b.v[l];
  return c;
}
SPMV_INLINE R8 r8_fnma(R8 a, R8 b, R8 c)
{
  for (int l = 0; l < 8; l++) c.v[l] -= a.v[l] * b.v[l];
  return c;
}
    #define R8_SET(l0, l1, l2, l3, l4, l5, l6, l7) ((R8){{*(l0), *(l1), *(l2), *(l3), *(l4), *(l5), *(l6), *(l7)}})
  #endif

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
  #if defined(__GNUC__) && defined(PETSC_USE_REAL_DOUBLE)
typedef int64_t I2 __attribute__((vector_size(16)));
static const I2 r8_pair[4] = {{0, 0}, {-1, 0}, {0, -1}, {-1, -1}};

SPMV_INLINE R8 r8_keep(uint8_t m, R8 a)
{
  a.a = (R2)((I2)a.a & r8_pair[m & 3]);
  a.b = (R2)((I2)a.b & r8_pair[m >> 2 & 3]);
  a.c = (R2)((I2)a.c & r8_pair[m >> 4 & 3]);
  a.d = (R2)((I2)a.d & r8_pair[m >> 6]);
  return a;
}
  #else
SPMV_RARE R8 r8_keep(uint8_t m, R8 a)
{
  PetscReal t[8];

  r8_store(t, a);
  for (int l = 0; l < 8; l++)
    if (!(m >> l & 1)) t[l] = 0;
  return r8_load(t);
}
  #endif
SPMV_INLINE PetscReal r8_sum(R8 a)
{
  PetscReal t[8];

  r8_store(t, a);
  return ((t[0] + t[4]) + (t[2] + t[6])) + ((t[1] + t[5]) + (t[3] + t[7]));
}
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

/* Lane l: p[parts * index[l]]; p[l * stride] */
SPMV_INLINE R8 r8_gather(const PetscReal *p, const int *index, const size_t parts)
{
#if defined(SPMV_GATHER)
  const __m256i i = _mm256_loadu_si256((const __m256i *)index);

  #if defined(PETSC_USE_REAL_SINGLE)
  return parts == 1 ? _mm256_i32gather_ps(p, i, 4) : _mm256_i32gather_ps(p, i, 8);
  #else
  return parts == 1 ? _mm512_i32gather_pd(i, p, 8)
                    : _mm512_i64gather_pd(_mm512_slli_epi64(_mm512_cvtepi32_epi64(i), 1), p, 8);
  #endif
#else
  return R8_SET(p + (size_t)index[0] * parts, p + (size_t)index[1] * parts, p + (size_t)index[2] * parts,
                p + (size_t)index[3] * parts, p + (size_t)index[4] * parts, p + (size_t)index[5] * parts,
                p + (size_t)index[6] * parts, p + (size_t)index[7] * parts);
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
#define R8_LANE(l) ((m >> (l)&1) ? p + (l)*s : q)
  return r8_keep(
      m, R8_SET(R8_LANE(0), R8_LANE(1), R8_LANE(2), R8_LANE(3), R8_LANE(4), R8_LANE(5), R8_LANE(6), R8_LANE(7)));
#undef R8_LANE
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
SPMV_INLINE V8 v8_gather(const PetscScalar *x, const int *index)
{
  const PetscReal *p = (const PetscReal *)x;

  return (V8){r8_gather(p, index, 2), r8_gather(p + 1, index, 2)};
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
  PetscReal *p = (PetscReal *)y, re[8], im[8];

  #if defined(SPMV_AVX512) && defined(PETSC_USE_REAL_DOUBLE)
  (void)re;
  (void)im;
  r8_store(p, _mm512_permutex2var_pd(a.re, _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0), a.im));
  r8_store(p + 8, _mm512_permutex2var_pd(a.re, _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4), a.im));
  #else
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

  #define v8_zero             r8_zero
  #define v8_set1             r8_set1
  #define v8_value            r8_load
  #define v8_add              r8_add
  #define v8_fma              r8_fma
  #define v8_keep             r8_keep
  #define v8_gather(x, index) r8_gather(x, index, 1)
  #define v8_strided          r8_strided
  #define v8_mstrided         r8_mstrided
  #define v8_store            r8_store
  #define v8_mstore           r8_mstore
  #define v8_sum              r8_sum

SPMV_INLINE V8 v8_conj(PetscBool conjugate, V8 a)
{
  (void)conjugate;
  return a;
}
#endif
