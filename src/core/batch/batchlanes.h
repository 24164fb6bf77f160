/*
  Solvers for batches on the host, eight systems with the same pattern at a time: lane l of each vector belongs to
  system l. A system that has ended keeps its values, as its coefficients are 0 from then on. Systems that are not
  solved here are solved again, one at a time, by batchsolve.c. Included by kernels.h.
*/
#define AT(v, k) ((v) + (size_t)(k)*SPMV_VECTOR)

typedef struct {
  uint8_t     active, done;
  int         its[8];
  PetscReal   ttol[8], dtol[8], size[8]; /* size: the Frobenius norm of the matrix */
  PetscScalar rho[8];
} LaneState;

SPMV_INLINE V8 lanes_of(const PetscScalar *const p[8], int k)
{
#if defined(PETSC_USE_COMPLEX)
  PetscScalar t[8];

  for (int l = 0; l < 8; l++) t[l] = p[l][k];
  return v8_strided(t, 1);
#else
  return R8_SET(p[0] + k, p[1] + k, p[2] + k, p[3] + k, p[4] + k, p[5] + k, p[6] + k, p[7] + k);
#endif
}
SPMV_INLINE void lanes_put(PetscReal *p, V8 a)
{
#if defined(PETSC_USE_COMPLEX)
  r8_store(p, a.re);
  r8_store(p + 8, a.im);
#else
  r8_store(p, a);
#endif
}
SPMV_INLINE V8 lanes_dot(V8 a, V8 b, V8 sum) /* sum + conj(a) b */
{
  return v8_fma(v8_conj(PETSC_TRUE, a), b, sum);
}
SPMV_INLINE V8 lanes_mul(V8 a, V8 b)
{
  return v8_fma(a, b, v8_zero());
}
/* Row r of A x */
SPMV_INLINE V8 lanes_row(const SpMVBatchLanes *L, int r, const PetscReal *x)
{
  const PetscInt  *j = L->j + L->i[r], *end = L->j + L->i[r + 1];
  const PetscReal *a  = AT(L->a, L->i[r] - L->i[0]);
  V8               s0 = v8_zero(), s1 = s0;

  for (; j + 2 <= end; j += 2, a += 2 * SPMV_VECTOR) {
    s0 = v8_fma(v8_value(a), v8_value(AT(x, j[0] - L->first)), s0);
    s1 = v8_fma(v8_value(a + SPMV_VECTOR), v8_value(AT(x, j[1] - L->first)), s1);
  }
  if (j < end) s0 = v8_fma(v8_value(a), v8_value(AT(x, j[0] - L->first)), s0);
  return v8_add(s0, s1);
}
SPMV_INLINE PetscBool lanes_is(const LaneState *S, int l)
{
  return (PetscBool)(S->active >> l & 1);
}

/* Copies the systems: vectors b, d, x, r. S: which systems have to be solved, rho: |r|^2 */
static SPMV_NOINLINE SPMV_TARGET void lanes_begin(const SpMVBatchLanes *L, LaneState *S)
{
  const int   n = L->n, entries = (int)(L->i[n] - L->i[0]);
  PetscReal  *b = L->vectors, *d = AT(b, n), *x = AT(d, n), *r = AT(x, n);
  V8          sum = v8_zero(), rhs = sum, size = sum;
  PetscScalar base[8];

  for (int k = 0; k < entries; k++) {
    const V8 a = lanes_of(L->values, k);

    lanes_put(AT(L->a, k), a);
    size = lanes_dot(a, a, size);
  }
  v8_store(S->rho, size);
  for (int l = 0; l < 8; l++) S->size[l] = PetscSqrtReal(PetscRealPart(S->rho[l]));
  for (int k = 0; k < n; k++) {
    lanes_put(AT(b, k), lanes_of(L->b, k));
    lanes_put(AT(d, k), L->o->pc ? lanes_of(L->d, k) : v8_set1(1));
    lanes_put(AT(x, k), L->o->guess ? lanes_of((const PetscScalar *const *)L->x, k) : v8_zero());
  }
  for (int k = 0; k < n; k++) {
    V8 q = v8_value(AT(b, k));

    rhs = lanes_dot(q, q, rhs);
    if (L->o->guess) q = v8_fma(v8_set1(-1), lanes_row(L, k, x), q);
    lanes_put(AT(r, k), q);
    sum = lanes_dot(q, q, sum);
  }
  v8_store(S->rho, sum);
  v8_store(base, rhs);
  S->active = S->done = 0;
  for (int l = 0; l < L->count; l++) {
    const PetscReal norm = PetscSqrtReal(PetscRealPart(S->rho[l])), of = PetscSqrtReal(PetscRealPart(base[l]));

    S->ttol[l] = PetscMax(L->o->rtol * (of > 0 ? of : norm), L->o->abstol);
    S->dtol[l] = L->o->divtol * (of > 0 ? of : norm);
    if (norm > S->ttol[l] && norm < S->dtol[l]) S->active |= (uint8_t)(1 << l);
  }
}

/* Whether an iteration has solved system l, or the system cannot go on */
SPMV_INLINE void lanes_test(LaneState *S, int l, int its, PetscReal square, PetscBool broken)
{
  const PetscReal norm = PetscSqrtReal(square);

  if (norm <= S->ttol[l]) {
    S->done |= (uint8_t)(1 << l);
    S->its[l] = its;
  } else if (norm < S->dtol[l] && !broken)
    return;
  S->active &= (uint8_t) ~(1 << l);
}

/* The residuals of the systems that are done, from x: only those that are solved remain so */
static SPMV_NOINLINE SPMV_TARGET void lanes_end(const SpMVBatchLanes *L, LaneState *S, SpMVBatchResult *const result[])
{
  const int        n = L->n;
  const PetscReal *b = L->vectors, *x = AT(b, 2 * n);
  V8               sum = v8_zero(), sizes = sum;
  PetscScalar      square[8], rounding[8], out[8];

  for (int r = 0; r < n; r++) {
    const V8 q = v8_fma(v8_set1(-1), lanes_row(L, r, x), v8_value(AT(b, r)));

    sum   = lanes_dot(q, q, sum);
    sizes = lanes_dot(v8_value(AT(x, r)), v8_value(AT(x, r)), sizes);
  }
  v8_store(square, sum);
  v8_store(rounding, sizes);
  for (int l = 0; l < 8; l++) {
    const PetscReal norm = PetscSqrtReal(PetscRealPart(square[l]));

    if (!(S->done >> l & 1)) continue;
    if (norm <= S->ttol[l] && /* the norm of |A| |x| is not larger than this product */
        PETSC_MACHINE_EPSILON * S->size[l] * PetscSqrtReal(PetscRealPart(rounding[l])) <= SPMV_BATCH_TRUST * S->ttol[l])
      *result[l] = (SpMVBatchResult){S->its[l], norm < L->o->abstol ? SPMV_BATCH_ATOL : SPMV_BATCH_RTOL, norm};
    else
      S->done &= (uint8_t) ~(1 << l);
  }
  for (int k = 0; k < n; k++) {
    v8_store(out, v8_value(AT(x, k)));
    for (int l = 0; l < 8; l++)
      if (S->done >> l & 1) L->x[l][k] = out[l];
  }
}

static SPMV_NOINLINE SPMV_TARGET void lanes_cg(const SpMVBatchLanes *L, LaneState *S)
{
  const int   n = L->n;
  PetscReal  *d = AT(L->vectors, n), *x = AT(d, n), *r = AT(x, n), *p = AT(r, n), *w = AT(p, n);
  PetscScalar alpha[8], minus[8], beta[8], sum[8], square[8];
  V8          s = v8_zero(), q;

  for (int k = 0; k < n; k++) {
    const V8 z = lanes_mul(v8_value(AT(d, k)), v8_value(AT(r, k)));

    lanes_put(AT(p, k), z);
    s = lanes_dot(v8_value(AT(r, k)), z, s);
  }
  v8_store(S->rho, s);
  for (int its = 1; S->active && its <= L->o->max_it; its++) {
    s = v8_zero();
    for (int k = 0; k < n; k++) {
      const V8 y = lanes_row(L, k, p);

      lanes_put(AT(w, k), y);
      s = lanes_dot(v8_value(AT(p, k)), y, s);
    }
    v8_store(sum, s);
    for (int l = 0; l < 8; l++) {
      if (!(PetscRealPart(sum[l]) > 0 && PetscRealPart(S->rho[l]) > 0)) S->active &= (uint8_t) ~(1 << l);
      alpha[l] = lanes_is(S, l) ? PetscRealPart(S->rho[l]) / PetscRealPart(sum[l]) : 0;
      minus[l] = -alpha[l];
    }
    s = q = v8_zero();
    for (int k = 0; k < n; k++) {
      const V8 y = v8_fma(v8_strided(minus, 1), v8_value(AT(w, k)), v8_value(AT(r, k)));

      lanes_put(AT(x, k), v8_fma(v8_strided(alpha, 1), v8_value(AT(p, k)), v8_value(AT(x, k))));
      lanes_put(AT(r, k), y);
      s = lanes_dot(y, lanes_mul(v8_value(AT(d, k)), y), s);
      q = lanes_dot(y, y, q);
    }
    v8_store(sum, s);
    v8_store(square, q);
    for (int l = 0; l < 8; l++) {
      if (lanes_is(S, l)) lanes_test(S, l, its, PetscRealPart(square[l]), PETSC_FALSE);
      beta[l]   = lanes_is(S, l) ? PetscRealPart(sum[l]) / PetscRealPart(S->rho[l]) : 0;
      S->rho[l] = PetscRealPart(sum[l]);
    }
    for (int k = 0; k < n; k++)
      lanes_put(AT(p, k),
                v8_fma(v8_strided(beta, 1), v8_value(AT(p, k)), lanes_mul(v8_value(AT(d, k)), v8_value(AT(r, k)))));
  }
}

static SPMV_NOINLINE SPMV_TARGET void lanes_bcgs(const SpMVBatchLanes *L, LaneState *S)
{
  const int  n = L->n;
  PetscReal *d = AT(L->vectors, n), *x = AT(d, n), *r = AT(x, n), *r0 = AT(r, n), *p = AT(r0, n), *v = AT(p, n),
            *w = AT(v, n), *h = AT(w, n), *g = AT(h, n); /* h = B p, g = B r */
  PetscScalar alpha[8], omega[8], beta[8], minus[8], sum[8], square[8];
  V8          s, q;

  for (int k = 0; k < n; k++) {
    const V8 y = v8_value(AT(r, k));

    lanes_put(AT(r0, k), y);
    lanes_put(AT(p, k), y);
    lanes_put(AT(h, k), lanes_mul(v8_value(AT(d, k)), y));
  }
  for (int its = 1; S->active && its <= L->o->max_it; its++) {
    s = v8_zero();
    for (int k = 0; k < n; k++) {
      const V8 y = lanes_row(L, k, h);

      lanes_put(AT(v, k), y);
      s = lanes_dot(v8_value(AT(r0, k)), y, s);
    }
    v8_store(sum, s);
    for (int l = 0; l < 8; l++) {
      if (sum[l] == (PetscScalar)0) S->active &= (uint8_t) ~(1 << l);
      alpha[l] = lanes_is(S, l) ? S->rho[l] / sum[l] : 0;
      minus[l] = -alpha[l];
    }
    for (int k = 0; k < n; k++) {
      const V8 y = v8_fma(v8_strided(minus, 1), v8_value(AT(v, k)), v8_value(AT(r, k)));

      lanes_put(AT(r, k), y);
      lanes_put(AT(g, k), lanes_mul(v8_value(AT(d, k)), y));
    }
    s = q = v8_zero();
    for (int k = 0; k < n; k++) {
      const V8 y = lanes_row(L, k, g);

      lanes_put(AT(w, k), y);
      s = lanes_dot(y, v8_value(AT(r, k)), s);
      q = lanes_dot(y, y, q);
    }
    v8_store(sum, s);
    v8_store(square, q);
    for (int l = 0; l < 8; l++) {
      if (!(PetscRealPart(square[l]) > 0)) S->active &= (uint8_t) ~(1 << l);
      omega[l] = lanes_is(S, l) ? sum[l] / PetscRealPart(square[l]) : 0;
      minus[l] = -omega[l];
    }
    s = q = v8_zero();
    for (int k = 0; k < n; k++) {
      const V8 y = v8_fma(v8_strided(minus, 1), v8_value(AT(w, k)), v8_value(AT(r, k)));

      lanes_put(AT(x, k), v8_fma(v8_strided(omega, 1), v8_value(AT(g, k)),
                                 v8_fma(v8_strided(alpha, 1), v8_value(AT(h, k)), v8_value(AT(x, k)))));
      lanes_put(AT(r, k), y);
      s = lanes_dot(v8_value(AT(r0, k)), y, s);
      q = lanes_dot(y, y, q);
    }
    v8_store(sum, s);
    v8_store(square, q);
    for (int l = 0; l < 8; l++) {
      const PetscBool broken = (PetscBool)(sum[l] == (PetscScalar)0 || omega[l] == (PetscScalar)0);

      if (lanes_is(S, l)) lanes_test(S, l, its, PetscRealPart(square[l]), broken);
      beta[l]   = lanes_is(S, l) ? (sum[l] / S->rho[l]) * (alpha[l] / omega[l]) : 0;
      S->rho[l] = sum[l];
    }
    for (int k = 0; k < n; k++) {
      const V8 y = v8_fma(v8_strided(beta, 1), v8_fma(v8_strided(minus, 1), v8_value(AT(v, k)), v8_value(AT(p, k))),
                          v8_value(AT(r, k)));

      lanes_put(AT(p, k), y);
      lanes_put(AT(h, k), lanes_mul(v8_value(AT(d, k)), y));
    }
  }
}

static uint8_t spmv_batch(const SpMVBatchLanes *L, SpMVBatchResult *const result[])
{
  LaneState S;

  lanes_begin(L, &S);
  if (L->o->method == SPMV_BATCH_CG)
    lanes_cg(L, &S);
  else
    lanes_bcgs(L, &S);
  lanes_end(L, &S, result);
  spmv_clear_upper();
  return S.done;
}
#undef AT
