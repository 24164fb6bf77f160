/*
  The methods of the solvers for batches, written once in what C and CUDA C++ have in common. A system is solved by a
  team: one thread on the host, the threads of a warp or of a thread block on the device. All functions are called by
  all threads of the team, with the same arguments, and return the same to all of them.

  The including file defines
    FN                  the attributes of functions
    Scalar, REALS       the number type, with the operators of C, and how many real numbers it consists of
    RE, IM, CONJ, SCALAR(re, im), SQUARE(a) = |a|^2, ISZERO
    Team, EACH(k, n)    the team; a loop over the indices that are this thread's: always the same of a vector's n
    HELD                each thread holds its entries of the vectors in registers; k then counts those. Otherwise they
                        are in memory that all threads read. CG and BiCGStab are for both
    Vector, In, Out, VECTOR(v, s, q), RHS(s, k)  a vector, as an argument; declares v, working vector q; entry k of the
                        right-hand side
    LEADER              whether this thread does what only one is to do
    Sync(team)          what the threads have written is visible to all of them
    Sums(team, count, s)     adds the threads' s[0], ..., s[count - 1], count <= BATCH_SUMS, in place
    struct Matrix, Product(team, matrix, x, y, z)  y = A x, z = |A| |x| unless z is NULL; after it the threads read only
                                                   their own entries of y, unless they call Sync()
                        with HELD instead Multiply() and MultiplySizes(), as below
    HAS_LU              whether LU is one of the methods, for which there are also
    EACH2(i, j, from, n)         a loop over pairs of indices
    Pivot(team, column, k, n)    the row from k on in which the largest entry is, or nearly so; NaN is the largest
    MatrixDense(team, matrix, n, a)  a[j * n + i] = A(i, j); ends with a Sync()
    Direct(team, system, rows)   adds the solution of A y = r to x, for up to `rows` rows. Returns why it cannot, or 0

  A cycle begins with the residual r, and ends when the recurrence of the method says that the solution is found, or
  cannot go on. The residual is then computed from x: no system counts as solved by the recurrence alone.
*/

typedef struct {
  int                     n;
  const struct Matrix    *A;
  const Scalar           *b;
  Vector                  x, d, r;  /* d: the diagonal of the preconditioner B */
  Scalar                 *work, *h; /* the method's vectors; for B x in products */
  const SpMVBatchOptions *o;
  int                     pc, left, right; /* there is B, applied on the left, on the right */
  int                     its;
  PetscReal               ttol, dtol;
  PetscReal               rounding; /* what rounding errors may contribute to the norm of the residual */
} System;

/* A cycle that has not reduced the norm to this part of it has achieved nothing */
#define ENOUGH ((PetscReal)0.9)
/* Entry k of the vector whose entry is v, preconditioned if `on` */
#define WITH(s, on, k, v) ((on) ? (s)->d[k] * (v) : (v))

#if !HELD
  #define Multiply(t, s, on, x, y)                               \
    do {                                                         \
      if (on) EACH(k_, (s)->n)(s)->h[k_] = (s)->d[k_] * (x)[k_]; \
      Product(t, (s)->A, (on) ? (s)->h : (x), y, NULL);          \
    } while (0)
  #define MultiplySizes(t, s, x, y, z) Product(t, (s)->A, x, y, z)
#endif

FN void AddDot(PetscReal s[], Scalar a, Scalar b) /* conj(a) b */
{
  const Scalar c = CONJ(a) * b;

  s[0] += RE(c);
  if (REALS > 1) s[REALS - 1] += IM(c);
}

FN int BatchIsBad(PetscReal a) /* Inf or NaN */
{
  return !(a - a == 0);
}

FN int BatchTest(const System *s, PetscReal norm)
{
  if (BatchIsBad(norm)) return SPMV_BATCH_NANORINF;
  if (norm <= s->ttol) return norm < s->o->abstol ? SPMV_BATCH_ATOL : SPMV_BATCH_RTOL;
  return norm >= s->dtol ? SPMV_BATCH_DTOL : SPMV_BATCH_ITERATING;
}

/* The same in a cycle: whether, and how, it ends */
FN int BatchEnds(const System *s, PetscReal norm)
{
  const int reason = BatchTest(s, norm);

  return reason || s->its >= s->o->max_it;
}

/* r = b - A x, preconditioned if the method is applied to B A x = B b. Returns the norm that is tested. zero: x is 0 */
FN PetscReal BatchResidual(Team *t, System *s, int zero)
{
  const int preconditioned  = s->o->method != SPMV_BATCH_CG;
  PetscReal sum[BATCH_SUMS] = {0};
  VECTOR(sizes, s, 0);

  if (!zero) MultiplySizes(t, s, s->x, s->r, sizes);
  EACH(k, s->n)
  {
    const Scalar b = RHS(s, k), r = zero ? b : b - s->r[k], z = WITH(s, s->left, k, r);

    s->r[k] = preconditioned ? z : r;
    sum[0] += SQUARE(z);
    if (!zero) sum[1] += SQUARE(WITH(s, s->left, k, sizes[k]));
  }
  Sums(t, 2, sum);
  s->rounding = PETSC_MACHINE_EPSILON * PetscSqrtReal(sum[1]);
  return PetscSqrtReal(sum[0]);
}

/* The operator: v = A B p or B A p */
FN void BatchApply(Team *t, System *s, In p, Out v)
{
  Multiply(t, s, s->right, p, v);
  if (s->left) EACH(k, s->n) v[k] = s->d[k] * v[k];
}

/* ---------------------------------------------------------------- the cycles: why they end, or 0 to compute r again */

FN int CycleCG(Team *t, System *s)
{
  const int n = s->n;
  PetscReal rho, sum[BATCH_SUMS] = {0};
  VECTOR(p, s, 0);
  VECTOR(w, s, 1);

  EACH(k, n)
  {
    p[k] = WITH(s, s->pc, k, s->r[k]);
    sum[0] += RE(CONJ(s->r[k]) * p[k]);
  }
  Sums(t, 1, sum);
  rho = sum[0];
  if (BatchIsBad(rho)) return SPMV_BATCH_NANORINF;
  if (rho < 0) return SPMV_BATCH_INDEFINITE_PC;
  if (rho == 0) return SPMV_BATCH_BREAKDOWN;
  for (;;) {
    PetscReal alpha, beta;

    Multiply(t, s, 0, p, w);
    sum[0] = 0;
    EACH(k, n) sum[0] += RE(CONJ(p[k]) * w[k]);
    Sums(t, 1, sum);
    if (BatchIsBad(sum[0])) return SPMV_BATCH_NANORINF;
    if (sum[0] <= 0) return SPMV_BATCH_INDEFINITE;
    alpha  = rho / sum[0];
    sum[0] = sum[1] = 0;
    EACH(k, n)
    {
      const Scalar q = s->r[k] - alpha * w[k], z = WITH(s, s->pc, k, q);

      s->x[k] = s->x[k] + alpha * p[k];
      s->r[k] = q;
      sum[0] += RE(CONJ(q) * z);
      sum[1] += s->o->left ? SQUARE(z) : SQUARE(q);
    }
    Sums(t, 2, sum);
    s->its++;
    if (BatchEnds(s, PetscSqrtReal(sum[1]))) return 0;
    if (sum[0] < 0) return SPMV_BATCH_INDEFINITE_PC;
    if (sum[0] == 0) return SPMV_BATCH_BREAKDOWN;
    beta            = sum[0] / rho;
    rho             = sum[0];
    EACH(k, n) p[k] = WITH(s, s->pc, k, s->r[k]) + beta * p[k];
  }
}

FN int CycleBCGS(Team *t, System *s)
{
  const int n = s->n;
  Scalar    rho;
  PetscReal sum[BATCH_SUMS] = {0};
  VECTOR(r0, s, 0);
  VECTOR(p, s, 1);
  VECTOR(v, s, 2);
  VECTOR(w, s, 3);

  EACH(k, n)
  {
    r0[k] = p[k] = s->r[k];
    sum[0] += SQUARE(s->r[k]);
  }
  Sums(t, 1, sum);
  rho = SCALAR(sum[0], 0);
  for (;;) {
    Scalar    alpha, omega, sigma;
    PetscReal norm;

    BatchApply(t, s, p, v);
    sum[0] = sum[1] = 0;
    EACH(k, n) AddDot(sum, r0[k], v[k]);
    Sums(t, REALS, sum);
    sigma = SCALAR(sum[0], sum[1]);
    if (ISZERO(sigma)) return SPMV_BATCH_BREAKDOWN;
    alpha = rho / sigma;
    EACH(k, n)
    {
      s->r[k] = s->r[k] - alpha * v[k];
      s->x[k] = s->x[k] + alpha * WITH(s, s->right, k, p[k]);
    }
    BatchApply(t, s, s->r, w);
    sum[0] = sum[1] = sum[2] = 0;
    EACH(k, n)
    {
      AddDot(sum, w[k], s->r[k]);
      sum[2] += SQUARE(w[k]);
    }
    Sums(t, 3, sum);
    s->its++;
    if (sum[2] == 0) return 0; /* r is 0, or A is singular */
    omega  = SCALAR(sum[0] / sum[2], sum[1] / sum[2]);
    sum[0] = sum[1] = sum[2] = 0;
    EACH(k, n)
    {
      s->x[k] = s->x[k] + omega * WITH(s, s->right, k, s->r[k]);
      s->r[k] = s->r[k] - omega * w[k];
      AddDot(sum, r0[k], s->r[k]);
      sum[2] += SQUARE(s->r[k]);
    }
    Sums(t, 3, sum);
    norm = PetscSqrtReal(sum[2]);
    if (BatchEnds(s, norm)) return 0;
    sigma = SCALAR(sum[0], sum[1]);
    if (ISZERO(sigma) || ISZERO(omega)) return SPMV_BATCH_BREAKDOWN;
    alpha           = (sigma / rho) * (alpha / omega);
    rho             = sigma;
    EACH(k, n) p[k] = s->r[k] + alpha * (p[k] - omega * v[k]);
  }
}

#if !HELD
FN PetscReal BatchNorm(Team *t, int n, const Scalar *v)
{
  PetscReal sum[BATCH_SUMS] = {0};

  EACH(k, n) sum[0] += SQUARE(v[k]);
  Sums(t, 1, sum);
  return PetscSqrtReal(sum[0]);
}

/* The rotation that makes b zero, applied to the Hessenberg matrix's column and the right-hand side; by one thread */
FN void GMRESRotate(int j, int m, Scalar *H, PetscReal norm)
{
  Scalar *column = H + j * (m + 1), *c = H + m * (m + 1), *s = c + m + 1, *g = s + m + 1;

  for (int i = 0; i < j; i++) {
    const Scalar a = column[i], b = column[i + 1];

    column[i]     = CONJ(c[i]) * a + CONJ(s[i]) * b;
    column[i + 1] = c[i] * b - s[i] * a;
  }
  {
    const PetscReal length = PetscSqrtReal(SQUARE(column[j]) + norm * norm);

    c[j]      = length > 0 ? column[j] / length : SCALAR(1, 0);
    s[j]      = SCALAR(length > 0 ? norm / length : 0, 0);
    column[j] = SCALAR(length, 0);
    g[j + 1]  = -s[j] * g[j];
    g[j]      = CONJ(c[j]) * g[j];
  }
}

FN int CycleGMRES(Team *t, System *s)
{
  const int n = s->n, m = s->o->restart;
  Scalar   *V = s->work, *H = V + (size_t)(m + 1) * n, *g = H + (m + 2) * (m + 1), *y = g;
  PetscReal norm = BatchNorm(t, n, s->r);
  int       j = 0, end = 0;

  EACH(k, n) V[k] = s->r[k] / norm;
  if (LEADER) g[0] = SCALAR(norm, 0);
  Sync(t);
  for (; j < m && !end; j++) {
    Scalar *w = V + (size_t)(j + 1) * n;

    BatchApply(t, s, w - n, w);
    for (int i = 0; i <= j; i++) { /* modified Gram-Schmidt */
      const Scalar *v               = V + (size_t)i * n;
      PetscReal     sum[BATCH_SUMS] = {0};

      EACH(k, n) AddDot(sum, v[k], w[k]);
      Sums(t, REALS, sum);
      EACH(k, n) w[k] = w[k] - SCALAR(sum[0], sum[1]) * v[k];
      if (LEADER) H[j * (m + 1) + i] = SCALAR(sum[0], sum[1]);
    }
    norm = BatchNorm(t, n, w);
    if (norm > 0) EACH(k, n) w[k] = w[k] / norm;
    if (LEADER) GMRESRotate(j, m, H, norm);
    Sync(t);
    s->its++;
    end = BatchEnds(s, PetscSqrtReal(SQUARE(g[j + 1]))) || norm == 0;
    Sync(t);
  }
  if (LEADER) { /* the triangular system */
    for (int i = j - 1; i >= 0; i--) {
      for (int k = i + 1; k < j; k++) y[i] = y[i] - H[k * (m + 1) + i] * y[k];
      /* a column of zeros: the matrix is singular */
      y[i] = ISZERO(H[i * (m + 1) + i]) ? SCALAR(0, 0) : y[i] / H[i * (m + 1) + i];
    }
  }
  Sync(t);
  EACH(k, n)
  {
    Scalar sum = SCALAR(0, 0);

    for (int i = 0; i < j; i++) sum = sum + y[i] * V[(size_t)i * n + k];
    s->x[k] = s->x[k] + WITH(s, s->right, k, sum);
  }
  return norm == 0 ? SPMV_BATCH_BREAKDOWN : 0;
}
#endif

#if HAS_LU
/* LU factors with partial pivoting. Returns 0 if a pivot is 0 */
FN int BatchFactor(Team *t, const System *s)
{
  const int n     = s->n;
  Scalar   *a     = s->work + n; /* the first n are those of BatchResidual() */
  int      *pivot = (int *)(a + (size_t)n * n);

  MatrixDense(t, s->A, n, a);
  for (int k = 0; k < n; k++) {
    Scalar   *column = a + (size_t)k * n, inverse;
    const int at     = Pivot(t, column, k, n);

    if (ISZERO(column[at])) return 0;
    inverse = SCALAR(1, 0) / column[at];
    if (LEADER) pivot[k] = at;
    Sync(t);
    EACH(j, n)
    {
      const Scalar other = a[(size_t)j * n + k];

      a[(size_t)j * n + k]  = a[(size_t)j * n + at];
      a[(size_t)j * n + at] = other;
    }
    Sync(t);
    EACH(i, n)
    {
      if (i > k) column[i] = column[i] * inverse;
    }
    Sync(t);
    EACH2(i, j, k + 1, n) a[(size_t)j * n + i] = a[(size_t)j * n + i] - column[i] * a[(size_t)j * n + k];
    Sync(t);
  }
  return 1;
}

/* Adds the solution of A y = r to x; r is overwritten */
FN int CycleLU(Team *t, System *s, int rows)
{
  const int     n     = s->n;
  const Scalar *a     = s->work + n;
  const int    *pivot = (const int *)(a + (size_t)n * n);
  Scalar       *r     = s->r;

  if (s->its++ == 0 && !rows && !BatchFactor(t, s)) return SPMV_BATCH_SINGULAR;
  if (rows) return Direct(t, s, rows);
  Sync(t);
  if (LEADER) {
    for (int k = 0; k < n; k++) {
      const Scalar other = r[k];

      r[k]        = r[pivot[k]];
      r[pivot[k]] = other;
    }
  }
  Sync(t);
  for (int k = 0; k < n; k++) {
    EACH(i, n)
    {
      if (i > k) r[i] = r[i] - a[(size_t)k * n + i] * r[k];
    }
    Sync(t);
  }
  for (int k = n - 1; k >= 0; k--) {
    const Scalar y = r[k] / a[(size_t)k * n + k];

    Sync(t);
    EACH(i, n)
    {
      if (i < k) r[i] = r[i] - a[(size_t)k * n + i] * y;
      if (i == k) r[i] = y;
    }
    Sync(t);
  }
  EACH(k, n) s->x[k] = s->x[k] + r[k];
  return 0;
}
#endif

/* ---------------------------------------------------------------- a system */

/* The norm of the right-hand side that is tested */
FN PetscReal BatchNormRHS(Team *t, const System *s)
{
  PetscReal sum[BATCH_SUMS] = {0};

  EACH(k, s->n) sum[0] += SQUARE(WITH(s, s->left, k, RHS(s, k)));
  Sums(t, 1, sum);
  return PetscSqrtReal(sum[0]);
}

FN int BatchCycle(Team *t, System *s, int method, int rows)
{
  if (method == SPMV_BATCH_CG) return CycleCG(t, s);
#if !HELD
  if (method == SPMV_BATCH_GMRES) return CycleGMRES(t, s);
#endif
#if HAS_LU
  if (method == SPMV_BATCH_LU) return CycleLU(t, s, rows);
#endif
  return CycleBCGS(t, s);
}

/* x, b and d are given; rows: for Direct(), 0: it is not used */
FN void BatchSolve(Team *t, System *s, int method, int rows, SpMVBatchResult *result)
{
  const SpMVBatchOptions *o    = s->o;
  PetscReal               norm = BatchResidual(t, s, !s->o->guess), base = norm;
  int                     reason, cycle                                  = 0;

  if (o->guess) {
    base = BatchNormRHS(t, s);
    if (base == 0) base = norm;
  }
  s->its  = 0;
  s->ttol = PetscMax(o->rtol * base, o->abstol);
  s->dtol = o->divtol * base;
  /* as in KSPConvergedDefault(), the number of iterations is tested last */
  while (!(reason = BatchTest(s, norm)) && s->its < o->max_it) {
    const PetscReal before = norm;
    const int       its    = s->its;

    cycle = BatchCycle(t, s, method, rows);
    norm  = BatchResidual(t, s, 0);
    /* a cycle of GMRES that is complete may have achieved little; another one that ends may not */
    if (!cycle && !(norm <= before * ENOUGH) && !(method == SPMV_BATCH_GMRES && s->its - its == o->restart))
      cycle = SPMV_BATCH_BREAKDOWN;
    if (cycle == SPMV_BATCH_BREAKDOWN && norm <= before * ENOUGH) cycle = 0;
    if (cycle) {
      reason = BatchTest(s, norm);
      break;
    }
  }
  if (!reason) reason = s->its >= o->max_it ? SPMV_BATCH_ITS : cycle;
  if (reason > 0 && !(s->rounding <= SPMV_BATCH_TRUST * s->ttol)) reason = SPMV_BATCH_BREAKDOWN;
  if (LEADER) {
    result->its    = s->its;
    result->reason = (SpMVBatchReason)reason;
    result->norm   = norm;
  }
}
