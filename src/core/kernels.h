/*
  The kernels, compiled once for each instruction set. The including file defines SPMV_TARGET, SPMV_AVX512 / SPMV_AVX2
  and SPMV_KERNELS (the table's name), SPMV_ISA_NAME and SPMV_ISA_SLOWDOWN.

  In the inner functions, the shape of a run (rbs rows and cbs columns of a block) is a compile-time constant; the
  switches at the end create one instance for each shape. Padded lanes are masked when x is read (their product is 0
  times 0), so that no Inf or NaN in x reaches a row that has no entry there.
*/
#include "spmvimpl.h"
#include "simd.h"

#if defined(__clang__)
  #define SPMV_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
  #define SPMV_UNROLL _Pragma("GCC unroll 8")
#else
  #define SPMV_UNROLL
#endif

/* OP(r) for each r < rbs. The accumulators are separate variables, which compilers keep in registers */
#define SPMV_EACH(rbs, OP) \
  do {                     \
    OP(0);                 \
    if ((rbs) > 1) OP(1);  \
    if ((rbs) > 2) OP(2);  \
    if ((rbs) > 3) OP(3);  \
    if ((rbs) > 4) OP(4);  \
    if ((rbs) > 5) OP(5);  \
    if ((rbs) > 6) OP(6);  \
    if ((rbs) > 7) OP(7);  \
  } while (0)
#define SPMV_ZERO8  V8 a0 = v8_zero(), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0
#define SPMV_FMA(r) a##r = v8_fma(v8_value(v + (r)*SPMV_VECTOR), xv, a##r)

/* Values are read once, in order, but hardware prefetchers stop at the end of a page and have to start anew in each
   product */
#if defined(__GNUC__)
  #define SPMV_AHEAD (4096 / (int)sizeof(PetscReal)) /* in reals; the best of 512 to 8192 bytes */
#else
  #define SPMV_AHEAD 0
#endif
#define SPMV_FETCHVALUE(r) SPMV_FETCH(v + (r)*SPMV_VECTOR + SPMV_AHEAD)

/* Writes the sums of a slice: sum[8 r + l] is the sum of row r of lane l's unit */
SPMV_RARE void spmv_put(PetscScalar *y, const PetscScalar *z, const int *rows, PetscInt row, int lanes, int rbs,
                        const PetscScalar *sum)
{
  for (int l = 0; l < lanes; l++) {
    const PetscInt first = rows ? rows[l] : row + l * rbs;

    if (z) {
      for (int r = 0; r < rbs; r++) y[first + r] = z[first + r] + sum[8 * r + l];
    } else {
      for (int r = 0; r < rbs; r++) y[first + r] = sum[8 * r + l];
    }
  }
}
#define SPMV_KEEP(r) v8_store(sum + 8 * (r), a##r)
#define SPMV_PUT(y, z, rows, row, lanes, rbs)                                   \
  do {                                                                          \
    if ((rbs) == 1 && !(rows) && (lanes) == 8)                                  \
      v8_store((y) + (row), (z) ? v8_add(v8_strided((z) + (row), 1), a0) : a0); \
    else {                                                                      \
      PetscScalar sum[8 * (rbs)];                                               \
                                                                                \
      SPMV_EACH(rbs, SPMV_KEEP);                                                \
      if ((rbs) == 1 && (rows) && (lanes) == 8 && !(z)) {                       \
        SPMV_UNROLL                                                             \
        for (int l = 0; l < 8; l++) (y)[(rows)[l]] = sum[l];                    \
      } else                                                                    \
        spmv_put(y, z, rows, row, lanes, rbs, sum);                             \
    }                                                                           \
  } while (0)

/* A run of a store: y = A x, or z + A x unless z is NULL; transposed: y += A^T x */
#define SPMV_ARGS \
  const struct _n_SpMVStore *B, const SpMVRun *R, const PetscScalar *x, const PetscScalar *z, PetscScalar *y
#define SPMV_ARGS_T \
  const struct _n_SpMVStore *B, const SpMVRun *R, PetscBool conjugate, const PetscScalar *x, PetscScalar *y

SPMV_INLINE void spmv_gather(SPMV_ARGS, const int rbs, const int cbs, const PetscBool narrow)
{
  const PetscReal *v    = B->val + R->val * SPMV_VECTOR;
  const int       *j    = B->idx + R->idx;
  const int       *wid  = B->width + R->slice;
  const int       *len  = B->len + R->len;
  const int       *rows = R->row < 0 ? B->rows + R->rows : NULL;
  const int        step = SPMV_INDEX_INTS(narrow);
  PetscInt         row  = R->row;

  for (int s = 0; s < R->count; s++, wid += 2) {
    const int          lanes = s == R->count - 1 ? R->lanes : 8;
    const int          w = wid[0], wf = wid[1];
    const PetscScalar *xs = narrow ? x + j[0] : x;
    int                k  = 0;
    SPMV_ZERO8;

    if (narrow) j += step;
    if (rbs == 1 && cbs == 1) {
      for (; k + 2 <= wf; k += 2, j += 2 * step, v += 2 * SPMV_VECTOR) {
        SPMV_FETCH(v + SPMV_AHEAD);
        SPMV_FETCH(v + SPMV_VECTOR + SPMV_AHEAD);
        SPMV_FETCH(j + SPMV_AHEAD);
        a0 = v8_fma(v8_value(v), v8_gather(xs, j, narrow), a0);
        a1 = v8_fma(v8_value(v + SPMV_VECTOR), v8_gather(xs, j + step, narrow), a1);
      }
    }
    for (; k < wf; k++, j += step) {
      for (int c = 0; c < cbs; c++, v += rbs * SPMV_VECTOR) {
        const V8 xv = v8_gather(xs + c, j, narrow);

        SPMV_EACH(rbs, SPMV_FETCHVALUE);
        SPMV_EACH(rbs, SPMV_FMA);
      }
    }
    if (k < w) {
      for (; k < w; k++, j += step) {
        const uint8_t m = m8_longer(len, k);

        for (int c = 0; c < cbs; c++, v += rbs * SPMV_VECTOR) {
          const V8 xv = v8_keep(m, v8_gather(xs + c, j, narrow));

          SPMV_EACH(rbs, SPMV_FMA);
        }
      }
      len += 8;
    }
    if (rbs == 1 && cbs == 1) a0 = v8_add(a0, a1);
    SPMV_PUT(y, z, rows, row, lanes, rbs);
    if (rows)
      rows += 8;
    else
      row += 8 * rbs;
  }
}

/* Slices by diagonals. The values of their steps are consecutive, or (distinct) each step has a code that locates its
   values */
SPMV_INLINE void spmv_diag(SPMV_ARGS, const int rbs, const PetscBool distinct)
{
  const SpMVPattern *P    = B->patterns.list + R->pattern;
  const int         *off  = B->patterns.offset + P->offset;
  const uint8_t     *mask = B->patterns.mask + P->offset;
  const PetscReal   *dval = B->dval, *next = dval + (distinct ? 0 : R->val * SPMV_VECTOR);
  const int          w = P->width;

  for (int s = 0; s < R->count; s++) {
    const int          lanes = s == R->count - 1 ? R->lanes : 8;
    const PetscInt     row   = R->row + s * 8 * rbs;
    const PetscScalar *xr    = x + row;
    const int         *code  = distinct ? B->code + B->list[R->slice + s] : NULL;
    int                k     = 0;
    SPMV_ZERO8;

    if (rbs == 1 && P->full) {
      for (; k + 2 <= w; k += 2) {
        const PetscReal *v = distinct ? dval + (size_t)code[k] * SPMV_VECTOR : next;
        const PetscReal *u = distinct ? dval + (size_t)code[k + 1] * SPMV_VECTOR : next + SPMV_VECTOR;

        if (!distinct) {
          SPMV_FETCH(v + SPMV_AHEAD);
          SPMV_FETCH(u + SPMV_AHEAD);
        }
        a0 = v8_fma(v8_value(v), v8_strided(xr + off[k], 1), a0);
        a1 = v8_fma(v8_value(u), v8_strided(xr + off[k + 1], 1), a1);
        if (!distinct) next += 2 * SPMV_VECTOR;
      }
    } else if (rbs == 1) { /* four sums: with one, each step would wait for the one before */
#define SPMV_MASKED(r)                                                                                   \
  do {                                                                                                   \
    const PetscReal *v = distinct ? dval + (size_t)code[k + (r)] * SPMV_VECTOR : next + (r)*SPMV_VECTOR; \
                                                                                                         \
    if (!distinct) SPMV_FETCH(v + SPMV_AHEAD);                                                           \
    a##r = v8_fma(v8_value(v), v8_mstrided(mask[k + (r)], xr + off[k + (r)], 1), a##r);                  \
  } while (0)
      for (; k + 4 <= w; k += 4) {
        SPMV_EACH(4, SPMV_MASKED);
        if (!distinct) next += 4 * SPMV_VECTOR;
      }
      a0 = v8_add(a0, a2);
      a1 = v8_add(a1, a3);
    }
    for (; k < w; k++) {
      const PetscReal *v   = distinct ? dval + (size_t)code[k] * (rbs * rbs * SPMV_VECTOR) : next;
      const int        all = rbs == 1 ? P->full : mask[k] == 255;

      for (int c = 0; c < rbs; c++, v += rbs * SPMV_VECTOR) {
        const V8 xv = all ? v8_strided(xr + off[k] + c, rbs) : v8_mstrided(mask[k], xr + off[k] + c, rbs);

        if (!distinct) SPMV_EACH(rbs, SPMV_FETCHVALUE);
        SPMV_EACH(rbs, SPMV_FMA);
      }
      if (!distinct) next = v;
    }
    if (rbs == 1) a0 = v8_add(a0, a1);
    SPMV_PUT(y, z, (const int *)NULL, row, lanes, rbs);
  }
}

/* x at the eight columns of a step of a long unit */
SPMV_INLINE V8 spmv_long_x(const PetscScalar *x, const int *j)
{
  return j[0] < 0 ? v8_strided(x + ~j[0], 1) : v8_gather(x, j, PETSC_FALSE);
}

SPMV_INLINE void spmv_long(SPMV_ARGS, const int rbs)
{
  const PetscReal *v    = B->val + R->val * SPMV_VECTOR;
  const int       *j    = B->idx + R->idx;
  const int       *wid  = B->width + R->slice;
  const int       *rows = B->rows + R->rows;

  for (int u = 0; u < R->count; u++) {
    const int        len = wid[u], full = len / 8, steps = B->align * ((len + B->align - 1) / B->align) / 8;
    const PetscReal *v0  = v;
    const int       *j0  = j;
    const PetscInt   row = rows[u];
    int              k   = 0;
    SPMV_ZERO8;

    if (rbs == 1) {
      for (; k + 4 <= full; k += 4, j += 32, v += 4 * SPMV_VECTOR) {
        SPMV_FETCH(v + SPMV_AHEAD);
        SPMV_FETCH(v + SPMV_VECTOR + SPMV_AHEAD);
        SPMV_FETCH(v + 2 * SPMV_VECTOR + SPMV_AHEAD);
        SPMV_FETCH(v + 3 * SPMV_VECTOR + SPMV_AHEAD);
        SPMV_FETCH(j + SPMV_AHEAD);
        SPMV_FETCH(j + 16 + SPMV_AHEAD);
        a0 = v8_fma(v8_value(v), spmv_long_x(x, j), a0);
        a1 = v8_fma(v8_value(v + SPMV_VECTOR), spmv_long_x(x, j + 8), a1);
        a2 = v8_fma(v8_value(v + 2 * SPMV_VECTOR), spmv_long_x(x, j + 16), a2);
        a3 = v8_fma(v8_value(v + 3 * SPMV_VECTOR), spmv_long_x(x, j + 24), a3);
      }
      a0 = v8_add(v8_add(a0, a1), v8_add(a2, a3));
    }
    for (; k < full; k++, j += 8, v += rbs * SPMV_VECTOR) {
      const V8 xv = spmv_long_x(x, j);

      SPMV_EACH(rbs, SPMV_FETCHVALUE);
      SPMV_EACH(rbs, SPMV_FMA);
    }
    if (len % 8) {
      const uint8_t m  = (uint8_t)((1u << (len % 8)) - 1);
      const V8      xv = j[0] < 0 ? v8_mstrided(m, x + ~j[0], 1) : v8_keep(m, v8_gather(x, j, PETSC_FALSE));

      SPMV_EACH(rbs, SPMV_FMA);
    }
#define SPMV_PUTSUM(r) y[row + (r)] = z ? z[row + (r)] + v8_sum(a##r) : v8_sum(a##r)
    SPMV_EACH(rbs, SPMV_PUTSUM);
    v = v0 + (size_t)steps * rbs * SPMV_VECTOR;
    j = j0 + (size_t)steps * 8;
  }
}

/*
  Transposed products. A block's column is first multiplied and summed over its rows, so that rbs entries cost one
  addition to y. These additions are scalar, because several lanes can have the same column. Diagonals are contiguous in
  y. conj(a) x = conj(a conj(x)).
*/
#define SPMV_DOT(r)  dot = v8_fma(v8_value(v + (r)*SPMV_VECTOR), x##r, dot)
#define SPMV_CONJ(r) x##r = v8_conj(conjugate, x##r)

SPMV_INLINE void spmv_gather_t(SPMV_ARGS_T, const int rbs, const int cbs, const PetscBool narrow)
{
  const PetscReal *v    = B->val + R->val * SPMV_VECTOR;
  const int       *j    = B->idx + R->idx;
  const int       *wid  = B->width + R->slice;
  const int       *len  = B->len + R->len;
  const int       *rows = R->row < 0 ? B->rows + R->rows : NULL;
  const int        step = SPMV_INDEX_INTS(narrow);
  PetscInt         row  = R->row;

  for (int s = 0; s < R->count; s++, wid += 2) {
    const int     lanes = s == R->count - 1 ? R->lanes : 8;
    const uint8_t m     = (uint8_t)((1u << lanes) - 1);
    PetscScalar  *yj    = narrow ? y + j[0] : y;
    int           wide[8];
    V8            x0 = v8_zero(), x1 = x0, x2 = x0, x3 = x0, x4 = x0, x5 = x0, x6 = x0, x7 = x0;
    PetscScalar   add[8];

#define SPMV_XROW(r)                                  \
  x##r = rows ? v8_gather(x + (r), rows, PETSC_FALSE) \
              : (lanes == 8 ? v8_strided(x + row + (r), rbs) : v8_mstrided(m, x + row + (r), rbs))
    SPMV_EACH(rbs, SPMV_XROW);
    SPMV_EACH(rbs, SPMV_CONJ);
    if (narrow) j += step;
    for (int k = 0; k < wid[0]; k++, j += step) {
      const int *col = narrow ? wide : j;

      for (int l = 0; l < 8 && narrow; l++) wide[l] = ((const uint16_t *)j)[l];
      for (int c = 0; c < cbs; c++, v += rbs * SPMV_VECTOR) {
        V8 dot = v8_zero();

        SPMV_EACH(rbs, SPMV_FETCHVALUE);
        SPMV_EACH(rbs, SPMV_DOT);
        dot = v8_conj(conjugate, dot);
        v8_store(add, dot);
        if (k < wid[1]) {
          SPMV_UNROLL
          for (int l = 0; l < 8; l++) yj[col[l] + c] += add[l];
        } else {
          for (int l = 0; l < 8; l++)
            if (k < len[l]) yj[col[l] + c] += add[l];
        }
      }
    }
    if (wid[1] < wid[0]) len += 8;
    if (rows)
      rows += 8;
    else
      row += 8 * rbs;
  }
}

SPMV_INLINE void spmv_diag_t(SPMV_ARGS_T, const int rbs)
{
  const SpMVPattern *P    = B->patterns.list + R->pattern;
  const int         *off  = B->patterns.offset + P->offset;
  const uint8_t     *mask = B->patterns.mask + P->offset;
  const int          w = P->width, step = rbs * rbs * SPMV_VECTOR;

  /* Diagonal by diagonal over a few slices. Within one slice, each diagonal would read the numbers that the previous
     diagonal has just written, at a different alignment, which stalls the processor. Blocks are added entry by entry
     anyway. */
  const int    some  = rbs > 1 ? 1 : PetscMax(2, PetscMin(32, 2048 / (w * SPMV_PARTS + 1)));
  const size_t ahead = rbs > 1 ? (size_t)SPMV_AHEAD : (size_t)some * w * step;

  for (int s0 = 0; s0 < R->count; s0 += some) {
    const int s1 = PetscMin(s0 + some, R->count);

    for (int k = 0; k < w; k++) {
      for (int s = s0; s < s1; s++) {
        const int        lanes = s == R->count - 1 ? R->lanes : 8;
        const uint8_t    m     = (uint8_t)((1u << lanes) - 1);
        const PetscInt   row   = R->row + s * 8 * rbs;
        const PetscReal *v     = B->dval + (B->distinct ? (size_t)B->code[B->list[R->slice + s] + k] * step
                                                        : (size_t)R->val * SPMV_VECTOR + ((size_t)s * w + k) * step);
        PetscScalar     *yr    = y + row + off[k];
        V8               x0 = v8_zero(), x1 = x0, x2 = x0, x3 = x0, x4 = x0, x5 = x0, x6 = x0, x7 = x0;

#define SPMV_XDIAG(r) x##r = lanes == 8 ? v8_strided(x + row + (r), rbs) : v8_mstrided(m, x + row + (r), rbs)
        SPMV_EACH(rbs, SPMV_XDIAG);
        SPMV_EACH(rbs, SPMV_CONJ);
        for (int c = 0; c < rbs; c++, v += rbs * SPMV_VECTOR) {
          V8 dot = v8_zero();

          for (int r = 0; r < rbs && !B->distinct; r++) SPMV_FETCH(v + r * SPMV_VECTOR + ahead);
          SPMV_EACH(rbs, SPMV_DOT);
          dot = v8_conj(conjugate, dot);
          if (rbs == 1) {
            if (mask[k] == 255)
              v8_store(yr, v8_add(v8_strided(yr, 1), dot));
            else
              v8_mstore(mask[k], yr, v8_add(v8_mstrided(mask[k], yr, 1), dot));
          } else {
            PetscScalar add[8];

            v8_store(add, dot);
            for (int l = 0; l < 8; l++)
              if (mask[k] >> l & 1) yr[l * rbs + c] += add[l];
          }
        }
      }
    }
  }
}

SPMV_INLINE void spmv_long_t(SPMV_ARGS_T, const int rbs)
{
  const PetscReal *v    = B->val + R->val * SPMV_VECTOR;
  const int       *j    = B->idx + R->idx;
  const int       *wid  = B->width + R->slice;
  const int       *rows = B->rows + R->rows;

  for (int u = 0; u < R->count; u++) {
    const int        len = wid[u], steps = B->align * ((len + B->align - 1) / B->align) / 8;
    const PetscReal *v0  = v;
    const int       *j0  = j;
    const PetscInt   row = rows[u];
    V8               x0 = v8_zero(), x1 = x0, x2 = x0, x3 = x0, x4 = x0, x5 = x0, x6 = x0, x7 = x0;

#define SPMV_XSET(r) x##r = v8_set1(x[row + (r)])
    SPMV_EACH(rbs, SPMV_XSET);
    SPMV_EACH(rbs, SPMV_CONJ);
    for (int k = 0; k < len; k += 8, j += 8, v += rbs * SPMV_VECTOR) {
      V8 dot = v8_zero();

      SPMV_EACH(rbs, SPMV_FETCHVALUE);
      SPMV_EACH(rbs, SPMV_DOT);
      dot = v8_conj(conjugate, dot);
      if (j[0] < 0 && k + 8 <= len) {
        PetscScalar *yr = y + ~j[0];

        v8_store(yr, v8_add(v8_strided(yr, 1), dot));
      } else {
        PetscScalar add[8];
        const int   nl = PetscMin(8, len - k);

        v8_store(add, dot);
        for (int l = 0; l < nl; l++) y[j[0] < 0 ? ~j[0] + l : j[l]] += add[l];
      }
    }
    v = v0 + (size_t)steps * rbs * SPMV_VECTOR;
    j = j0 + (size_t)steps * 8;
  }
}

/* One instance for each shape; inlining them into their callers would only cost compile time */
#define SPMV_SHAPES(OP) OP(1) OP(2) OP(3) OP(4) OP(5) OP(6) OP(7) OP(8)

#define SPMV_INSTANCE(rbs)                                             \
  static SPMV_NOINLINE SPMV_TARGET void spmv_gather_1_##rbs(SPMV_ARGS) \
  {                                                                    \
    spmv_gather(B, R, x, z, y, rbs, 1, PETSC_FALSE);                   \
  }                                                                    \
  static SPMV_NOINLINE SPMV_TARGET void spmv_gather_n_##rbs(SPMV_ARGS) \
  {                                                                    \
    spmv_gather(B, R, x, z, y, rbs, rbs, PETSC_FALSE);                 \
  }                                                                    \
  static SPMV_NOINLINE SPMV_TARGET void spmv_diag_##rbs(SPMV_ARGS)     \
  {                                                                    \
    if (B->distinct)                                                   \
      spmv_diag(B, R, x, z, y, rbs, PETSC_TRUE);                       \
    else                                                               \
      spmv_diag(B, R, x, z, y, rbs, PETSC_FALSE);                      \
  }                                                                    \
  static SPMV_NOINLINE SPMV_TARGET void spmv_long_##rbs(SPMV_ARGS)     \
  {                                                                    \
    spmv_long(B, R, x, z, y, rbs);                                     \
  }                                                                    \
  static SPMV_NOINLINE SPMV_TARGET void spmv_t_##rbs(SPMV_ARGS_T)      \
  {                                                                    \
    if (R->kind == SPMV_RUN_DIAG)                                      \
      spmv_diag_t(B, R, conjugate, x, y, rbs);                         \
    else if (R->kind == SPMV_RUN_LONG)                                 \
      spmv_long_t(B, R, conjugate, x, y, rbs);                         \
    else if (rbs == 1 && R->kind == SPMV_RUN_NARROW)                   \
      spmv_gather_t(B, R, conjugate, x, y, 1, 1, PETSC_TRUE);          \
    else                                                               \
      spmv_gather_t(B, R, conjugate, x, y, rbs, R->cbs, PETSC_FALSE);  \
  }
SPMV_SHAPES(SPMV_INSTANCE)

static SPMV_NOINLINE SPMV_TARGET void spmv_gather_narrow(SPMV_ARGS)
{
  spmv_gather(B, R, x, z, y, 1, 1, PETSC_TRUE);
}

/*
  Clears the upper halves of the AVX registers (vzeroupper). Until then, code for SSE, such as PETSc and BLAS without
  AVX, runs several times slower. GCC 12.2 omits the instruction in functions that call one without AVX, such as
  spmv_put(): GMRES took 2.5 s instead of 0.6 s (SNES ex19, -da_refine 5, AMD EPYC)
*/
static SPMV_NOINLINE SPMV_TARGET void spmv_clear_upper(void)
{
#if defined(SPMV_AVX2) || defined(SPMV_AVX512)
  _mm256_zeroupper();
#endif
}

static void spmv_mult(const struct _n_SpMVStore *B, const PetscScalar *x, const PetscScalar *z, PetscScalar *y)
{
  typedef void (*Kernel)(SPMV_ARGS);
#define SPMV_NAME_1(rbs) spmv_gather_1_##rbs,
#define SPMV_NAME_N(rbs) spmv_gather_n_##rbs,
#define SPMV_NAME_D(rbs) spmv_diag_##rbs,
#define SPMV_NAME_L(rbs) spmv_long_##rbs,
  static const Kernel kernel[4][8] = {
      {SPMV_SHAPES(SPMV_NAME_1)}, {SPMV_SHAPES(SPMV_NAME_N)}, {SPMV_SHAPES(SPMV_NAME_D)}, {SPMV_SHAPES(SPMV_NAME_L)}};

  for (int r = 0; r < B->nruns; r++) {
    const SpMVRun *R = B->runs + r;

    switch (R->kind) {
    case SPMV_RUN_GATHER: kernel[R->cbs > 1 ? 1 : 0][R->rbs - 1](B, R, x, z, y); break;
    case SPMV_RUN_NARROW: spmv_gather_narrow(B, R, x, z, y); break;
    case SPMV_RUN_DIAG: kernel[2][R->rbs - 1](B, R, x, z, y); break;
    default: kernel[3][R->rbs - 1](B, R, x, z, y); break;
    }
  }
  spmv_clear_upper();
}

static void spmv_multtransposeadd(const struct _n_SpMVStore *B, PetscBool conjugate, const PetscScalar *x,
                                  PetscScalar *y)
{
  typedef void (*Kernel)(SPMV_ARGS_T);
#define SPMV_NAME_T(rbs) spmv_t_##rbs,
  static const Kernel kernel[8] = {SPMV_SHAPES(SPMV_NAME_T)};

  for (int r = 0; r < B->nruns; r++) kernel[B->runs[r].rbs - 1](B, B->runs + r, conjugate, x, y);
  spmv_clear_upper();
}

/*
  Y = A X for at most eight columns, one column per lane: each entry of A is multiplied with a row of X. x: the rows of
  X as stored vectors. Rows of Y are collected before they are written column by column
*/
static SPMV_NOINLINE SPMV_TARGET void spmv_columns(const SpMVCSR *A, const PetscReal *x, int count, PetscScalar *y,
                                                   PetscInt ldy)
{
  PetscScalar sum[8 * 8];

  for (PetscInt r0 = 0; r0 < A->m; r0 += 8) {
    const int rows = (int)PetscMin(8, A->m - r0);

    for (int r = 0; r < rows; r++) {
      const PetscInt    *j = A->j + A->i[r0 + r], *end = A->j + A->i[r0 + r + 1];
      const PetscScalar *a  = A->a + A->i[r0 + r];
      V8                 a0 = v8_zero(), a1 = a0;

      for (; j + 2 <= end; j += 2, a += 2) {
        SPMV_FETCH(a + 64);
        a0 = v8_fma(v8_set1(a[0]), v8_value(x + (size_t)j[0] * SPMV_VECTOR), a0);
        a1 = v8_fma(v8_set1(a[1]), v8_value(x + (size_t)j[1] * SPMV_VECTOR), a1);
      }
      if (j < end) a0 = v8_fma(v8_set1(a[0]), v8_value(x + (size_t)j[0] * SPMV_VECTOR), a0);
      v8_store(sum + 8 * r, v8_add(a0, a1));
    }
    for (int q = 0; q < count; q++) {
      PetscScalar *to = y + (size_t)q * (size_t)ldy + r0;

      for (int r = 0; r < rows; r++) to[r] = sum[8 * r + q];
    }
  }
  spmv_clear_upper();
}

#include "core/batch/batchlanes.h"

const SpMVKernels SPMV_KERNELS = {.name             = SPMV_ISA_NAME,
                                  .slowdown         = SPMV_ISA_SLOWDOWN,
                                  .mult             = spmv_mult,
                                  .multtransposeadd = spmv_multtransposeadd,
                                  .columns          = spmv_columns,
                                  .batch            = spmv_batch};
