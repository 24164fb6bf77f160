/* The values of a store: filled in the places that its structure has for them, equal ones stored once */
#include "spmvimpl.h"
#include "table.h"
#include <strings.h>
#if defined(__SSE2__)
  #include <emmintrin.h>
#endif

static inline void SpMVPut(PetscReal *v, size_t distance, PetscScalar a)
{
  v[0] = PetscRealPart(a);
  if (SPMV_PARTS > 1) v[distance] = PetscImaginaryPart(a);
}

/* memcpy() past the cache, so that the processor need not read what is in this place before */
static inline void SpMVStream(PetscReal *to, const PetscReal *from, size_t bytes)
{
#if defined(__SSE2__)
  for (size_t k = 0; k < bytes / 16; k++)
    _mm_stream_si128((__m128i *)to + k, _mm_loadu_si128((const __m128i *)from + k));
#else
  memcpy(to, from, bytes);
#endif
}

/* 8 entries to a vector */
static inline void SpMVPutVector(PetscReal *v, PetscBool stream, PetscScalar a, PetscScalar b, PetscScalar c,
                                 PetscScalar d, PetscScalar e, PetscScalar f, PetscScalar g, PetscScalar h)
{
  PetscReal t[SPMV_VECTOR], *to = stream ? t : v;

  SpMVPut(to + 0, SPMV_LANES, a);
  SpMVPut(to + 1, SPMV_LANES, b);
  SpMVPut(to + 2, SPMV_LANES, c);
  SpMVPut(to + 3, SPMV_LANES, d);
  SpMVPut(to + 4, SPMV_LANES, e);
  SpMVPut(to + 5, SPMV_LANES, f);
  SpMVPut(to + 6, SPMV_LANES, g);
  SpMVPut(to + 7, SPMV_LANES, h);
  if (stream) SpMVStream(v, t, sizeof(t));
}

/* The first n entries of a slice's rows to every `step`-th vector. All rows at a time, so that each vector is written
   once, as a whole */
static inline void SpMVPutRows(int n, const PetscScalar *const at[SPMV_LANES], int step, PetscBool stream, PetscReal *v)
{
  const PetscScalar *const a = at[0], *const b = at[1], *const c = at[2], *const d = at[3], *const e = at[4],
                           *const f = at[5], *const g = at[6], *const h = at[7];

  for (int k = 0; k < n; k++, v += (size_t)step * SPMV_VECTOR)
    SpMVPutVector(v, stream, a[k], b[k], c[k], d[k], e[k], f[k], g[k], h[k]);
}

/* The steps of slice s of a run by diagonals. SpMVDiagonals() lists them in the order of each row's entries, so each
   row is walked once. A lane without an entry gets 0, or (repeat) the step's first value, which makes more steps equal;
   it must be finite, as it is multiplied by 0 */
static void SpMVDiagonalValues(SpMVStore B, const SpMVRun *R, const SpMVCSR *A, int s, PetscBool repeat,
                               PetscBool stream, PetscReal *v)
{
  const SpMVPattern *P  = B->patterns.list + R->pattern;
  const int          bs = R->rbs, lanes = s == R->count - 1 ? R->lanes : SPMV_LANES;
  const PetscInt     row  = R->row + (PetscInt)s * SPMV_LANES * bs;
  const uint8_t     *mask = B->patterns.mask + P->offset;
  const PetscScalar *at[SPMV_LANES];
  PetscScalar        pad[SPMV_MAX_NODE] = {0};

  /* here, the rows of the lane's block follow each other */
  for (int l = 0; l < SPMV_LANES; l++) at[l] = l < lanes ? A->a + A->i[row + l * bs] : NULL;
  if (P->full) {
    for (int r = 0; r < bs; r++) {
      SpMVPutRows(P->width * bs, at, bs, stream, v + r * SPMV_VECTOR);
      for (int l = 0; l < SPMV_LANES; l++) at[l] += P->width * bs;
    }
    return;
  }
  for (int r = 0; r < bs; r++) {
    PetscReal *t = v + r * SPMV_VECTOR;

    for (int k = 0; k < P->width; k++, t += bs * bs * SPMV_VECTOR) {
      const PetscScalar *from[SPMV_LANES];

      if (repeat) {
        const PetscScalar *first = at[ffs(mask[k]) - 1];

        for (int c = 0; c < bs; c++) pad[c] = PetscIsInfOrNanScalar(first[c]) ? 0 : first[c];
      }
      /* masks can be as good as random, so a branch would be mispredicted often */
      for (int l = 0; l < SPMV_LANES; l++) {
        const uintptr_t has = -(uintptr_t)(mask[k] >> l & 1);

        from[l] = (const PetscScalar *)(((uintptr_t)at[l] & has) | ((uintptr_t)pad & ~has));
        at[l] += (int)has & bs;
      }
      /* the compiler prepares SpMVPutRows() for many entries: fem27:40:1:0.9 would take 1.5 ms in place of 1.2 */
      for (int c = 0; c < bs; c++)
        SpMVPutVector(t + c * bs * SPMV_VECTOR, stream, from[0][c], from[1][c], from[2][c], from[3][c], from[4][c],
                      from[5][c], from[6][c], from[7][c]);
    }
  }
}

/*
  Equal steps are stored once. Constant coefficients, or those that are constant in part, as off the diagonal of many
  discretizations, then cost a few bytes a slice. There are two levels: a step's code is the number of a distinct step,
  and slices with equal codes share the list of these.
*/
typedef struct {
  SpMVStore  B;
  SpMVTable  steps, lists; /* numbers of steps; first codes of lists */
  size_t     size;         /* of a step, in reals */
  PetscReal *slice, *dval;
  void      *raw_slice, *raw_dval;
  int        distinct, *code, *last; /* distinct steps; codes of a slice, and of the last slice that was as wide */
  int       *list, *all;             /* as list and code of the store */
  PetscInt64 room, ncode, allocated; /* steps allocated; codes, and of these allocated */
  PetscInt64 seen, check;            /* steps seen; the number of them at which to check again */
} SpMVDistinct;

typedef struct {
  const SpMVDistinct *W;
  const PetscReal    *step;
  int                 width;
} SpMVDistinctKey;

static PetscBool SpMVDistinctStepEqual(const void *ctx, int number)
{
  const SpMVDistinctKey *key = (const SpMVDistinctKey *)ctx;
  const SpMVDistinct    *W   = key->W;

  return memcmp(W->dval + (size_t)number * W->size, key->step, W->size * sizeof(PetscReal)) ? PETSC_FALSE : PETSC_TRUE;
}

static PetscBool SpMVDistinctListEqual(const void *ctx, int first)
{
  const SpMVDistinctKey *key = (const SpMVDistinctKey *)ctx;
  const SpMVDistinct    *W   = key->W;

  if (first + (PetscInt64)key->width > W->ncode) return PETSC_FALSE;
  return memcmp(W->all + first, W->code, (size_t)key->width * sizeof(int)) ? PETSC_FALSE : PETSC_TRUE;
}

/* The number of a step, added if it is new */
static PetscErrorCode SpMVDistinctStep(SpMVDistinct *W, const PetscReal *step, int *number)
{
  const SpMVDistinctKey key   = {.W = W, .step = step};
  const size_t          bytes = W->size * sizeof(PetscReal);
  const uint64_t        h     = SpMVHash(0, step, bytes);

  PetscFunctionBegin;
  *number = SpMVTableFind(&W->steps, h, SpMVDistinctStepEqual, &key);
  if (*number >= 0) PetscFunctionReturn(PETSC_SUCCESS);
  if (W->distinct >= W->room) {
    void      *raw;
    PetscReal *dval;

    W->room = 2 * W->room + 1024;
    PetscCall(SpMVMallocAligned((size_t)W->room * bytes, &raw, &dval));
    if (W->distinct) PetscCall(PetscMemcpy(dval, W->dval, (size_t)W->distinct * bytes));
    PetscCall(PetscFree(W->raw_dval));
    W->raw_dval = raw;
    W->dval     = dval;
  }
  PetscCall(PetscMemcpy(W->dval + (size_t)W->distinct * W->size, step, bytes));
  PetscCall(SpMVTableAdd(&W->steps, h, W->distinct));
  *number = W->distinct++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first code of the list of W->code, added if it is new */
static PetscErrorCode SpMVDistinctList(SpMVDistinct *W, int width, int *first)
{
  const SpMVDistinctKey key = {.W = W, .width = width};
  const uint64_t        h   = SpMVHash((uint64_t)width, W->code, (size_t)width * sizeof(int));

  PetscFunctionBegin;
  *first = SpMVTableFind(&W->lists, h, SpMVDistinctListEqual, &key);
  if (*first >= 0) PetscFunctionReturn(PETSC_SUCCESS);
  if (W->ncode + width > W->allocated) {
    W->allocated = 2 * (W->ncode + width) + 1024;
    PetscCall(PetscRealloc((size_t)W->allocated * sizeof(int), &W->all));
  }
  *first = (int)W->ncode;
  PetscCall(PetscMemcpy(W->all + W->ncode, W->code, (size_t)width * sizeof(int)));
  W->ncode += width;
  PetscCall(SpMVTableAdd(&W->lists, h, *first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The slices of a run, until more than half of all steps seen are distinct (few: PETSC_FALSE) */
static PetscErrorCode SpMVDistinctRun(SpMVDistinct *W, const SpMVRun *R, const SpMVCSR *A, PetscBool *few)
{
  const int width = W->B->patterns.list[R->pattern].width;
  int      *list  = W->list + R->slice;

  PetscFunctionBegin;
  for (int s = 0; s < R->count; s++) {
    PetscBool same = PETSC_TRUE; /* as the slice before */

    SpMVDiagonalValues(W->B, R, A, s, PETSC_TRUE, PETSC_FALSE, W->slice);
    for (int k = 0; k < width; k++) {
      const PetscReal      *step = W->slice + (size_t)k * W->size;
      const SpMVDistinctKey key  = {.W = W, .step = step};

      if (W->last[k] >= W->distinct || !SpMVDistinctStepEqual(&key, W->last[k])) {
        PetscCall(SpMVDistinctStep(W, step, &W->last[k]));
        same = PETSC_FALSE;
      }
      W->code[k] = W->last[k];
    }
    W->seen += width;
    if (W->seen >= W->check) {
      W->check *= 2;
      if (2 * (PetscInt64)W->distinct > W->seen) {
        *few = PETSC_FALSE;
        break;
      }
    }
    if (same && s)
      list[s] = list[s - 1];
    else
      PetscCall(SpMVDistinctList(W, width, &list[s]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpMVStoreFreeDiagonals(SpMVStore B)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(B->raw_dval));
  PetscCall(PetscFree(B->list));
  PetscCall(PetscFree(B->code));
  B->distinct = 0;
  B->ncode    = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Stores the values of the diagonals with equal steps once, unless (few: PETSC_FALSE) more than half of the steps are
   distinct: the store is unchanged then */
static PetscErrorCode SpMVStoreFillDistinct(SpMVStore B, const SpMVCSR *A, PetscBool *few)
{
  SpMVDistinct   W     = {.B = B, .size = (size_t)(B->bs * B->bs * SPMV_VECTOR), .check = SpMVTuned.distinct_steps};
  int            width = 0;
  PetscErrorCode ierr  = PETSC_SUCCESS;

  PetscFunctionBegin;
  *few = PETSC_FALSE;
  if (B->ndval / (B->bs * B->bs) > INT_MAX - 65536) PetscFunctionReturn(PETSC_SUCCESS); /* codes are 32-bit integers */
  for (int p = 0; p < B->patterns.count; p++) width = PetscMax(width, B->patterns.list[p].width);
  SpMVCall(SpMVTableCreate(&W.steps));
  SpMVCall(SpMVTableCreate(&W.lists));
  SpMVCall(PetscMalloc1(B->ndslices, &W.list));
  SpMVCall(PetscCalloc1((size_t)width, &W.last));
  SpMVCall(PetscMalloc1((size_t)width, &W.code));
  SpMVCall(SpMVMallocAligned((size_t)width * W.size * sizeof(PetscReal), &W.raw_slice, &W.slice));
  *few = PETSC_TRUE;
  for (int r = 0; r < B->nruns && *few; r++)
    if (B->runs[r].kind == SPMV_RUN_DIAG) SpMVCall(SpMVDistinctRun(&W, B->runs + r, A, few));
  if (2 * (PetscInt64)W.distinct > W.seen) *few = PETSC_FALSE;
  if (*few) {
    PetscCall(SpMVStoreFreeDiagonals(B));
    B->raw_dval = W.raw_dval;
    B->dval     = W.dval;
    B->list     = W.list;
    B->code     = W.all;
    B->ncode    = W.ncode;
    B->distinct = W.distinct;
    W.raw_dval = W.list = W.all = NULL; /* the store's now */
  }
done:
  PetscCall(SpMVTableDestroy(&W.steps));
  PetscCall(SpMVTableDestroy(&W.lists));
  PetscCall(PetscFree(W.last));
  PetscCall(PetscFree(W.code));
  PetscCall(PetscFree(W.raw_slice));
  PetscCall(PetscFree(W.raw_dval));
  PetscCall(PetscFree(W.list));
  PetscCall(PetscFree(W.all));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void SpMVFillDiagonals(SpMVStore B, const SpMVRun *R, const SpMVCSR *A, PetscBool stream)
{
  const size_t slice = (size_t)B->patterns.list[R->pattern].width * R->rbs * R->rbs * SPMV_VECTOR;

  for (int s = 0; s < R->count; s++)
    SpMVDiagonalValues(B, R, A, s, PETSC_FALSE, stream, B->dval + R->val * SPMV_VECTOR + s * slice);
}

static SPMV_NOINLINE void SpMVFillGather(SpMVStore B, const SpMVRun *R, const SpMVCSR *A, PetscBool stream)
{
  PetscReal *v    = B->val + R->val * SPMV_VECTOR;
  const int *list = B->rows + R->rows, *width = B->width + R->slice, *len = B->len + R->len;
  const int  rbs = R->rbs, cbs = R->cbs;

  for (int s = 0; s < R->count; s++, width += 2) {
    const int lanes = s == R->count - 1 ? R->lanes : SPMV_LANES, ragged = width[1] < width[0];

    if (R->row < 0) SpMVFetchRows(A, B->stats.sigma, A->a, sizeof(*A->a), list, B->rows + B->nrows, lanes);
    for (int r = 0; r < rbs; r++) {
      const int          common         = width[1] * cbs; /* entries that all rows have */
      const PetscScalar *at[SPMV_LANES] = {NULL};

      for (int l = 0; l < lanes; l++)
        at[l] = A->a + A->i[(R->row < 0 ? list[l] : R->row + (PetscInt)(s * SPMV_LANES + l) * rbs) + r];
      if (common) SpMVPutRows(common, at, rbs, stream, v + r * SPMV_VECTOR);
      for (int l = 0; ragged && l < lanes; l++) {
        PetscReal *to = v + ((size_t)common * rbs + r) * SPMV_VECTOR + l;

        for (int k = common; k < len[l] * cbs; k++, to += rbs * SPMV_VECTOR) SpMVPut(to, SPMV_LANES, at[l][k]);
      }
    }
    v += (size_t)width[0] * rbs * cbs * SPMV_VECTOR;
    if (ragged) len += SPMV_LANES;
    if (R->row < 0) list += SPMV_LANES;
  }
}

static void SpMVFillLong(SpMVStore B, const SpMVRun *R, const SpMVCSR *A, PetscBool stream)
{
  PetscReal *v    = B->val + R->val * SPMV_VECTOR;
  const int *list = B->rows + R->rows, *width = B->width + R->slice;
  const int  rows = R->rbs;

  for (int u = 0; u < R->count; u++) {
    const int padded = B->align * ((width[u] + B->align - 1) / B->align);

    for (int r = 0; r < rows; r++) {
      const PetscScalar *a  = A->a + A->i[list[u] + r];
      PetscReal         *to = v + r * SPMV_VECTOR;
      int                k  = 0;

      for (; k + SPMV_LANES <= width[u]; k += SPMV_LANES, a += SPMV_LANES, to += rows * SPMV_VECTOR)
        SpMVPutVector(to, stream, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
      for (int l = 0; k + l < width[u]; l++) SpMVPut(to + l, SPMV_LANES, a[l]);
    }
    v += (size_t)padded / SPMV_LANES * rows * SPMV_VECTOR;
  }
}

static void SpMVStoreCount(SpMVStore B)
{
  const PetscInt64 vectors = B->nval + (B->distinct ? (PetscInt64)B->distinct * B->bs * B->bs : B->ndval);
  PetscInt64       ints    = B->nwidth + B->nidx + B->nrows + B->nlen;

  if (B->distinct) ints += B->ncode + B->ndslices;
  B->stats.distinct = B->distinct;
  B->stats.bytes    = (PetscInt64)sizeof(*B) + B->nruns * (PetscInt64)sizeof(SpMVRun) +
                   B->patterns.count * (PetscInt64)sizeof(SpMVPattern) + B->patterns.noffset * 5 /* offset, mask */ +
                   ints * (PetscInt64)sizeof(int) + vectors * SPMV_VECTOR * (PetscInt64)sizeof(PetscReal);
}

PetscErrorCode SpMVStoreFill(SpMVStore B, const SpMVCSR *A)
{
  const PetscInt64 bytes  = (B->nval + B->ndval) * SPMV_VECTOR * (PetscInt64)sizeof(PetscReal);
  const PetscBool  stream = (PetscBool)(bytes > SpMVTuned.stream_bytes);
  PetscBool        few    = PETSC_FALSE;

  PetscFunctionBegin;
  if (B->parent) PetscFunctionReturn(PETSC_SUCCESS);
  if (B->ndval * SPMV_VECTOR * (PetscInt64)sizeof(PetscReal) > SpMVTuned.distinct_bytes)
    PetscCall(SpMVStoreFillDistinct(B, A, &few));
  if (B->ndslices && !few && (B->distinct || !B->raw_dval)) {
    PetscCall(SpMVStoreFreeDiagonals(B));
    PetscCall(SpMVMallocAligned((size_t)B->ndval * SPMV_VECTOR * sizeof(PetscReal), &B->raw_dval, &B->dval));
  }
  for (int r = 0; r < B->nruns; r++) {
    const SpMVRun *R = B->runs + r;

    switch (R->kind) {
    case SPMV_RUN_DIAG:
      if (!few) SpMVFillDiagonals(B, R, A, stream);
      break;
    case SPMV_RUN_GATHER:
    case SPMV_RUN_NARROW: SpMVFillGather(B, R, A, stream); break;
    default: SpMVFillLong(B, R, A, stream); break;
    }
  }
#if defined(__SSE2__)
  if (stream) _mm_sfence(); /* other threads may multiply */
#endif
  SpMVStoreCount(B);
  PetscFunctionReturn(PETSC_SUCCESS);
}
