/* A store: its structure from a plan, and its products */
#include "spmvimpl.h"

/* Without huge pages. With them, set-ups on an Intel Xeon took 0.87 times as long, and products the same time. But a
   virtual machine that gives free memory back to its host must get it again for huge pages: on an AMD EPYC first
   products took 40 ms longer, 4 to 15 products of AIJ */
PetscErrorCode SpMVMallocAligned(size_t bytes, void **raw, void *aligned)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc(bytes + 64, raw));
  *(void **)aligned = (void *)(((uintptr_t)*raw + 63) & ~(uintptr_t)63);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is known while a store is made */
typedef struct {
  const SpMVCSR  *A;
  const SpMVPlan *P;
  SpMVStore       B;
  int             runs;       /* allocated */
  PetscInt64      rows;       /* in units, so far */
  double          transposed; /* estimate of the transposed product, in the time of AIJ's for an entry */
} SpMVBuilder;

/* The shape of a slice */
typedef struct {
  int        kind, rbs, lanes;
  int        row; /* first row if the rows are consecutive, else -1 */
  int        pattern;
  int        width, shortest; /* in steps; without units in all lanes, the shortest is 0 */
  PetscInt64 entries;
} SpMVShape;

static inline int SpMVPlanLength(const SpMVBuilder *W, PetscInt unit)
{
  return (int)(W->A->i[W->P->row[unit] + 1] - W->A->i[W->P->row[unit]]);
}

static inline int SpMVPad(int length, int multiple)
{
  return multiple * ((length + multiple - 1) / multiple);
}

/* columns: of A if they are read next, or NULL */
static void SpMVBuilderShape(const SpMVBuilder *W, PetscInt slice, const PetscInt *columns, SpMVShape *S)
{
  const SpMVPlan *P     = W->P;
  const int       first = P->start[slice], end = P->start[slice + 1], bs = W->B->bs, row = P->row[first];

  *S = (SpMVShape){.kind     = SPMV_RUN_GATHER,
                   .rbs      = P->rows[first],
                   .lanes    = end - first,
                   .row      = row,
                   .pattern  = P->pattern[slice],
                   .shortest = end - first < SPMV_LANES ? 0 : INT_MAX};
  if (S->pattern < 0)
    SpMVFetchRows(W->A, P->sigma, columns, sizeof(*columns), P->row + first, P->row + P->units, end - first);
  for (int u = first; u < end; u++) {
    const int length = SpMVPlanLength(W, u) / bs;

    S->width    = PetscMax(S->width, length);
    S->shortest = PetscMin(S->shortest, length);
    S->entries += (PetscInt64)length * S->rbs * bs;
    if (P->row[u] != row + (u - first) * S->rbs) S->row = -1;
  }
  S->width = SpMVPad(S->width, W->B->multiple);
  if (S->pattern >= 0) {
    S->kind  = SPMV_RUN_DIAG;
    S->width = W->B->patterns.list[S->pattern].width;
  }
}

/* Does the run continue with a slice of this shape? */
static PetscBool SpMVRunContinues(const SpMVRun *R, const SpMVShape *S)
{
  if (R->kind != S->kind || R->rbs != S->rbs) return PETSC_FALSE;
  if (S->kind == SPMV_RUN_LONG) return PETSC_TRUE;
  if (R->lanes < SPMV_LANES) return PETSC_FALSE;
  /* once rows are listed, listing more of them costs less than a new run */
  if (S->kind == SPMV_RUN_GATHER && R->row < 0) return PETSC_TRUE;
  if (R->row < 0 || S->row != R->row + R->count * SPMV_LANES * S->rbs) return PETSC_FALSE;
  return S->kind == SPMV_RUN_GATHER || S->pattern == R->pattern ? PETSC_TRUE : PETSC_FALSE;
}

/* The run that the slice belongs to: the last one, or a new one */
static PetscErrorCode SpMVBuilderRun(SpMVBuilder *W, const SpMVShape *S, SpMVRun **run)
{
  SpMVStore B = W->B;

  PetscFunctionBegin;
  if (!B->nruns || !SpMVRunContinues(B->runs + B->nruns - 1, S)) {
    const PetscBool diag = S->kind == SPMV_RUN_DIAG ? PETSC_TRUE : PETSC_FALSE;

    if (B->nruns >= W->runs) {
      W->runs = 2 * W->runs + 64;
      PetscCall(PetscRealloc((size_t)W->runs * sizeof(*B->runs), &B->runs));
    }
    B->runs[B->nruns++] = (SpMVRun){.kind    = (unsigned char)S->kind,
                                    .rbs     = (unsigned char)S->rbs,
                                    .cbs     = (unsigned char)(S->kind == SPMV_RUN_LONG ? 1 : B->bs),
                                    .row     = S->row,
                                    .pattern = S->pattern,
                                    .slice   = diag ? B->ndslices : B->nwidth,
                                    .val     = diag ? B->ndval : B->nval,
                                    .rows    = B->nrows,
                                    .len     = B->nlen};
  }
  *run          = B->runs + B->nruns - 1;
  (*run)->lanes = (unsigned char)PetscMin(S->lanes, SPMV_LANES);
  (*run)->count++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds a slice: its run, its room, its share of the estimate */
static PetscErrorCode SpMVBuilderSlice(SpMVBuilder *W, const SpMVShape *S)
{
  const SpMVTuning *T     = &SpMVTuned;
  SpMVStore         B     = W->B;
  const double      entry = S->rbs > 1 ? T->transpose_block / S->rbs : T->transpose_entry;
  SpMVRun          *R;

  PetscFunctionBegin;
  PetscCall(SpMVBuilderRun(W, S, &R));
  switch (S->kind) {
  case SPMV_RUN_DIAG:
    B->ndslices++;
    B->ndval += (PetscInt64)S->width * S->rbs * S->rbs;
    B->stats.diagonal++;
    if (S->rbs > 1)
      W->transposed += entry * (double)S->entries;
    else
      W->transposed +=
          (B->patterns.list[S->pattern].full ? T->transpose_full : T->transpose_entry) * SPMV_LANES * S->width;
    break;
  default:
    B->nwidth += 2;
    B->nidx += (PetscInt64)PetscMax(S->width, 1) * SPMV_LANES; /* at most: see SpMVBuilderIndices() */
    B->nval += (PetscInt64)S->width * S->rbs * B->bs;
    if (R->row < 0) B->nrows += SPMV_LANES;
    if (S->width > S->shortest) B->nlen += SPMV_LANES;
    W->transposed += entry * (double)S->entries;
  }
  B->stats.stored += (PetscInt64)S->width * S->rbs * B->bs * SPMV_LANES;
  W->rows += (PetscInt64)S->lanes * S->rbs;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Adds a unit of the vector CSR part */
static PetscErrorCode SpMVBuilderLong(SpMVBuilder *W, PetscInt unit)
{
  const SpMVTuning *T      = &SpMVTuned;
  SpMVStore         B      = W->B;
  const int         length = SpMVPlanLength(W, unit), rows = W->P->rows[unit];
  const PetscInt64  padded = SpMVPad(length, B->align);
  const SpMVShape   S      = {.kind = SPMV_RUN_LONG, .rbs = rows, .lanes = SPMV_LANES, .row = -1, .pattern = -1};
  SpMVRun          *R;

  PetscFunctionBegin;
  PetscCall(SpMVBuilderRun(W, &S, &R));
  B->nwidth++;
  B->nrows++;
  B->nidx += padded;
  B->nval += padded / SPMV_LANES * rows;
  W->rows += rows;
  W->transposed += (rows > 1 ? T->transpose_unit_row * rows + T->transpose_unit : T->transpose_entry) * (double)length;
  B->stats.long_rows += rows;
  B->stats.long_stored += padded * rows;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The indices of a run of the vector CSR part, from its first unit on, and zeros for the values of padding. Returns the
   number of indices, in ints */
static PetscInt64 SpMVBuilderLongIndices(const SpMVBuilder *W, const SpMVRun *R, PetscInt unit)
{
  SpMVStore  B = W->B;
  int       *j = B->idx + R->idx;
  PetscReal *v = B->val + R->val * SPMV_VECTOR;

  for (int q = 0; q < R->count; q++, unit++) {
    const PetscInt *col    = W->A->j + W->A->i[W->P->row[unit]];
    const int       length = SpMVPlanLength(W, unit), padded = SpMVPad(length, B->align);

    B->rows[R->rows + q]   = W->P->row[unit];
    B->width[R->slice + q] = length;
    for (int k = 0; k < padded; k++) j[k] = (int)col[PetscMin(k, length - 1)];
    for (int k = 0; k < length; k += SPMV_LANES) {
      const int last = PetscMin(k + SPMV_LANES, length) - 1;
      PetscBool next = PETSC_TRUE;

      for (int l = k + 1; l <= last; l++)
        if (col[l] != col[l - 1] + 1) next = PETSC_FALSE;
      if (next) j[k] = ~j[k];
    }
    j += padded;
    if (length < padded) memset(v, 0, (size_t)padded * R->rbs * SPMV_PARTS * sizeof(*v));
    v += (size_t)padded * R->rbs * SPMV_PARTS;
  }
  return j - (B->idx + R->idx);
}

/* The least column of a slice; -1 if its columns are too far from each other for 16-bit indices */
static int SpMVBuilderLeast(const SpMVBuilder *W, PetscInt slice)
{
  const SpMVPlan *P     = W->P;
  PetscInt        least = PETSC_MAX_INT, most = 0;

  for (int u = P->start[slice]; u < P->start[slice + 1]; u++) {
    const PetscInt *col = W->A->j + W->A->i[P->row[u]], *end = col + SpMVPlanLength(W, u);

    for (; col < end; col++) {
      least = PetscMin(least, *col);
      most  = PetscMax(most, *col);
    }
  }
  return most - least > UINT16_MAX ? -1 : (int)PetscMin(least, most);
}

/* Whether the indices of a run of slices can be 16-bit integers */
static PetscBool SpMVBuilderNarrow(const SpMVBuilder *W, const SpMVRun *R, PetscInt slice)
{
  if (R->rbs > 1 || R->cbs > 1) return PETSC_FALSE; /* an index serves several values */
  for (int q = 0; q < R->count; q++)
    if (SpMVBuilderLeast(W, slice + q) < 0) return PETSC_FALSE;
  return PETSC_TRUE;
}

/* The same of a run of slices */
static PetscInt64 SpMVBuilderSliceIndices(const SpMVBuilder *W, const SpMVRun *R, PetscInt slice)
{
  const SpMVPlan *P   = W->P;
  SpMVStore       B   = W->B;
  const int       cbs = R->cbs, narrow = R->kind == SPMV_RUN_NARROW;
  int            *j = B->idx + R->idx, *width = B->width + R->slice, *list = B->rows + R->rows, *len = B->len + R->len;
  const size_t    step = (size_t)R->rbs * cbs * SPMV_VECTOR; /* values */
  PetscReal      *v    = B->val + R->val * SPMV_VECTOR;

  for (int q = 0; q < R->count; q++, slice++) {
    const int first = P->start[slice];
    const int least = narrow ? SpMVBuilderLeast(W, slice) : 0;
    SpMVShape S;

    SpMVBuilderShape(W, slice, R->row < 0 ? W->A->j : NULL, &S);
    width[0] = S.width;
    width[1] = S.shortest;
    if (width[0] > width[1])
      for (int l = 0; l < SPMV_LANES; l++) *len++ = l < S.lanes ? SpMVPlanLength(W, first + l) / cbs : 0;
    if (R->row < 0)
      for (int l = 0; l < SPMV_LANES; l++) *list++ = l < S.lanes ? P->row[first + l] : 0;
    if (narrow) {
      j[0] = least;
      j += SPMV_INDEX_INTS(narrow);
    }
    for (int l = 0; l < SPMV_LANES; l++) {
      const PetscInt *col    = l < S.lanes ? W->A->j + W->A->i[P->row[first + l]] : NULL;
      const int       length = l < S.lanes ? SpMVPlanLength(W, first + l) / cbs : 0;

      /* padding has a column that is read anyway */
      if (narrow)
        for (int k = 0; k < width[0]; k++)
          ((uint16_t *)j)[(size_t)k * SPMV_LANES + l] = (uint16_t)(length ? col[PetscMin(k, length - 1)] - least : 0);
      else
        for (int k = 0; k < width[0]; k++)
          j[(size_t)k * SPMV_LANES + l] = length ? (int)col[(size_t)PetscMin(k, length - 1) * cbs] : 0;
    }
    if (width[0] > width[1]) memset(v, 0, (size_t)width[0] * step * sizeof(*v));
    v += (size_t)width[0] * step;
    j += (size_t)width[0] * SPMV_INDEX_INTS(narrow);
    width += 2;
  }
  return j - (B->idx + R->idx);
}

static PetscErrorCode SpMVBuilderIndices(SpMVBuilder *W)
{
  SpMVStore       B     = W->B;
  const size_t    bytes = (size_t)B->nval * SPMV_VECTOR * sizeof(*B->val) + (size_t)B->nidx * sizeof(*B->idx);
  const PetscBool many  = (PetscBool)((PetscInt64)bytes > SpMVTuned.narrow_bytes);
  PetscInt        slice = 0, unit = W->P->start[W->P->slices];

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(B->nwidth, &B->width, B->nrows, &B->rows, B->nlen, &B->len));
  PetscCall(SpMVMallocAligned((size_t)B->nidx * sizeof(int), &B->raw_idx, &B->idx));
  PetscCall(SpMVMallocAligned((size_t)B->nval * SPMV_VECTOR * sizeof(PetscReal), &B->raw_val, &B->val));
  B->nidx = 0; /* narrow ones take half the place */
  for (int r = 0; r < B->nruns; r++) {
    SpMVRun *R = B->runs + r;

    R->idx = B->nidx;
    if (R->kind == SPMV_RUN_LONG) {
      B->nidx += SpMVBuilderLongIndices(W, R, unit);
      unit += R->count;
    } else {
      if (R->kind == SPMV_RUN_GATHER) {
        if (many && SpMVBuilderNarrow(W, R, slice)) R->kind = SPMV_RUN_NARROW;
        B->nidx += SpMVBuilderSliceIndices(W, R, slice);
      }
      slice += R->count;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The plan's patterns become the store's */
static PetscErrorCode SpMVStoreFromPlan(const SpMVCSR *A, SpMVPlan *P, SpMVStore B)
{
  SpMVBuilder W = {.A = A, .P = P, .B = B};

  PetscFunctionBegin;
  B->m        = (int)A->m;
  B->n        = (int)A->n;
  B->multiple = (int)P->multiple;
  B->align    = SpMVPad((int)P->long_align, SPMV_LANES);
  B->bs       = (int)P->bs;
  B->patterns = P->patterns;
  P->patterns = (SpMVPatterns){0};
  for (PetscInt s = 0; s < P->slices; s++) {
    SpMVShape S;

    SpMVBuilderShape(&W, s, NULL, &S);
    PetscCall(SpMVBuilderSlice(&W, &S));
  }
  for (PetscInt u = P->start[P->slices]; u < P->units; u++) PetscCall(SpMVBuilderLong(&W, u));
  B->stats.stored += B->stats.long_stored;
  B->scattered = W.rows < A->m ? PETSC_TRUE : PETSC_FALSE;
  PetscCall(SpMVBuilderIndices(&W));
  B->stats.nonzeros   = A->i[A->m];
  B->stats.slices     = P->slices;
  B->stats.height     = SPMV_LANES;
  B->stats.threads    = P->multiple;
  B->stats.sigma      = P->sigma;
  B->stats.node       = B->bs;
  B->stats.kernel     = P->slices ? (B->stats.long_rows ? "slices + vector CSR" : "slices")
                                  : (B->stats.long_rows ? "vector CSR" : "none");
  B->transpose_parent = W.transposed > SpMVTuned.transpose_limit * (double)A->i[A->m] ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVStoreCreate(const SpMVCSR *A, const SpMVRules *R, SpMVStore *store)
{
  SpMVPlan       P    = {0};
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  P.parent = SpMVRulesUseParent(A, R);
  if (!P.parent) SpMVCall(SpMVPlanCreate(A, R, &P));
  SpMVCall(PetscNew(store));
  if (P.parent) {
    (*store)->parent           = PETSC_TRUE;
    (*store)->transpose_parent = PETSC_TRUE;
    (*store)->stats            = (SpMVStats){.nonzeros = A->i[A->m], .node = 1, .kernel = "aij"};
  } else
    SpMVCall(SpMVStoreFromPlan(A, &P, *store));
done:
  PetscCall(SpMVPlanDestroy(&P));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVStoreDestroy(SpMVStore *store)
{
  SpMVStore B = *store;

  PetscFunctionBegin;
  if (!B) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscFree(B->runs));
  PetscCall(SpMVPatternsDestroy(&B->patterns));
  PetscCall(PetscFree3(B->width, B->rows, B->len));
  PetscCall(PetscFree(B->list));
  PetscCall(PetscFree(B->code));
  PetscCall(PetscFree(B->raw_val));
  PetscCall(PetscFree(B->raw_dval));
  PetscCall(PetscFree(B->raw_idx));
  PetscCall(PetscFree(B));
  *store = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

void SpMVStoreGetStats(SpMVStore B, SpMVStats *S)
{
  *S = B->stats;
}

PetscBool SpMVStoreUsesParent(SpMVStore B)
{
  return B->parent;
}

PetscBool SpMVStoreTransposeUsesParent(SpMVStore B)
{
  return B->transpose_parent;
}

void SpMVStoreMult(SpMVStore B, const PetscScalar *x, PetscScalar *y)
{
  if (B->scattered && B->m) memset(y, 0, (size_t)B->m * sizeof(*y));
  SpMVKernelsGet()->mult(B, x, NULL, y);
}

void SpMVStoreMultAdd(SpMVStore B, const PetscScalar *x, const PetscScalar *z, PetscScalar *y)
{
  if (B->scattered && z != y && B->m) {
    memcpy(y, z, (size_t)B->m * sizeof(*y));
    z = y;
  }
  SpMVKernelsGet()->mult(B, x, z, y);
}

void SpMVStoreMultTranspose(SpMVStore B, PetscBool conjugate, const PetscScalar *x, const PetscScalar *z,
                            PetscScalar *y)
{
  if (B->n && !z)
    memset(y, 0, (size_t)B->n * sizeof(*y));
  else if (B->n && z != y)
    memcpy(y, z, (size_t)B->n * sizeof(*y));
  SpMVKernelsGet()->multtransposeadd(B, conjugate, x, y);
}
