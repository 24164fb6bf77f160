/* From a pattern and a format's rules to a plan: the units of each slice, and the vector CSR part */
#include "spmvimpl.h"
#include "table.h"

void SpMVCommonParamsDefault(void *params)
{
  SpMVCommonParams *p = (SpMVCommonParams *)params;

  p->node     = 0;
  p->compress = 1;
  p->single   = 0;
  p->reorder  = SPMV_REORDER_AUTO;
  p->after    = PETSC_DECIDE;
  p->kernel   = SPMV_KERNEL_AUTO;
}

PetscBool SpMVRulesUseParent(const SpMVCSR *A, const SpMVRules *R)
{
  return R->kernel == SPMV_KERNEL_PARENT || A->m > SPMV_MAX_STORED || A->n > SPMV_MAX_STORED ? PETSC_TRUE : PETSC_FALSE;
}

/* What is known while a plan is made */
typedef struct {
  const SpMVCSR   *A;
  const SpMVRules *R;
  SpMVPlan        *P;
  SpMVUnits        U;
  PetscBool        drop_empty;
  int             *unit, nunit;    /* units of the slices, in the format's order */
  int             *longs, nlong;   /* units of the vector CSR part */
  int             *pool, npool;    /* units of `unit` that are in no slice by diagonals */
  int             *slice, *sorted; /* work: units of one number of rows */
  double           slices, parent; /* estimates: all slices, the parent's product */
  SpMVTable        patterns;       /* numbers of P's patterns */
  int              last;           /* the pattern of the last slice by diagonals, or -1 */
  int             *offset;         /* the diagonals of one slice */
  uint8_t         *mask;
  PetscInt64       npatterns, noffset; /* P's patterns and their offsets: number allocated */
} SpMVPlanner;

static int SpMVPlannerLength(const SpMVPlanner *W, int unit)
{
  return (int)SpMVUnitLength(W->A, &W->U, unit);
}

static void SpMVPlanUnits(SpMVPlanner *W, PetscInt n, const int unit[])
{
  SpMVPlan *P = W->P;

  for (PetscInt k = 0; k < n; k++, P->units++) {
    P->row[P->units]  = W->U.row[unit[k]];
    P->rows[P->units] = W->U.rows[unit[k]];
  }
}

static void SpMVPlanSlice(SpMVPlanner *W, PetscInt n, const int unit[], int pattern)
{
  SpMVPlan *P = W->P;

  P->pattern[P->slices] = pattern;
  SpMVPlanUnits(W, n, unit);
  P->start[++P->slices] = (int)P->units;
}

/* Units as they are found, unless storing the rows one by one is faster */
static PetscErrorCode SpMVPlannerUnits(SpMVPlanner *W)
{
  const SpMVCSR *A = W->A;
  double         single, grouped;

  PetscFunctionBegin;
  PetscCall(SpMVUnitsFind(A, W->R->node, &W->U));
  W->parent = SpMVCostParent(A, &W->U);
  if (W->U.bs == 1 && W->U.count < A->m) {
    SpMVCostUnits(A, &W->U, &single, &grouped);
    if (single < grouped) {
      PetscCall(SpMVUnitsDestroy(&W->U));
      PetscCall(SpMVUnitsFind(A, 1, &W->U));
    }
  }
  W->drop_empty = W->R->order || W->U.empty > A->m / SpMVTuned.empty_share ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Puts the units in the format's order, those of long rows in a list of their own. All rows of a unit have the same
   length and first column, so a format's order keeps them together */
static PetscErrorCode SpMVPlannerOrder(SpMVPlanner *W)
{
  const SpMVRules *R        = W->R;
  const PetscInt   n        = R->order ? W->A->m : W->U.count;
  int             *at_row   = NULL; /* the unit that begins with a row; NULL: that of the row's number */
  const PetscBool  all_long = R->kernel == SPMV_KERNEL_VECTOR ? PETSC_TRUE : PETSC_FALSE;

  PetscFunctionBegin;
  if (!R->order && !all_long && R->longest == PETSC_MAX_INT) { /* as they are */
    for (int u = 0; u < W->U.count; u++) W->unit[u] = u;
    W->nunit = W->U.count;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (R->order && W->U.count < n) {
    PetscCall(PetscMalloc1(n, &at_row));
    for (PetscInt r = 0; r < n; r++) at_row[r] = -1;
    for (int u = 0; u < W->U.count; u++) at_row[W->U.row[u]] = u;
  }
  for (PetscInt k = 0; k < n; k++) {
    const int      u      = at_row ? at_row[R->order[k]] : (int)(R->order ? R->order[k] : k);
    const PetscInt length = u < 0 ? 0 : SpMVUnitLength(W->A, &W->U, u);

    if (u < 0 || (!length && (R->order || all_long))) continue;
    if (all_long || length > R->longest)
      W->longs[W->nlong++] = u;
    else
      W->unit[W->nunit++] = u;
  }
  PetscCall(PetscFree(at_row));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The number of units from place k on that a slice by diagonals could hold: the next eight or, with diagonal_run, those
   of consecutive rows */
static int SpMVPlannerRun(const SpMVPlanner *W, int k)
{
  const SpMVUnits *U    = &W->U;
  const int       *unit = W->unit + k, most = PetscMin(SPMV_LANES, W->nunit - k), rows = U->rows[unit[0]];
  int              n = 1;

  if (!W->R->diagonal_run) return most;
  while (rows == U->bs && n < most && U->rows[unit[n]] == rows && U->row[unit[n]] == U->row[unit[0]] + n * rows) n++;
  return n;
}

/* Finds the diagonals of n units of consecutive rows, and returns their number; -1: they are too many, or the units are
   not all of one kind */
static int SpMVPlannerDiagonals(SpMVPlanner *W, int n, const int unit[])
{
  int diagonals;

  for (int l = 0; l < n; l++)
    if (W->U.rows[unit[l]] != W->U.bs) return -1;
  diagonals = SpMVDiagonals(W->A, W->U.row[unit[0]], W->U.bs, n, W->offset, W->mask);
  return diagonals > SPMV_MAX_STORED - W->P->patterns.noffset ? -1 : diagonals;
}

typedef struct {
  const SpMVPlanner *W;
  int                width;
} SpMVPatternKey;

static PetscBool SpMVPatternEqual(const void *ctx, int number)
{
  const SpMVPatternKey *key = (const SpMVPatternKey *)ctx;
  const SpMVPlanner    *W   = key->W;
  const SpMVPatterns   *S   = &W->P->patterns;
  const SpMVPattern    *Q   = S->list + number;
  const size_t          n   = (size_t)key->width;

  if (Q->width != key->width) return PETSC_FALSE;
  return memcmp(S->offset + Q->offset, W->offset, n * sizeof(int)) || memcmp(S->mask + Q->offset, W->mask, n)
             ? PETSC_FALSE
             : PETSC_TRUE;
}

static PetscErrorCode SpMVPlannerAddPattern(SpMVPlanner *W, int width)
{
  SpMVPatterns *S = &W->P->patterns;

  PetscFunctionBegin;
  if (S->count >= W->npatterns) {
    W->npatterns = 2 * W->npatterns + 64;
    PetscCall(PetscRealloc((size_t)W->npatterns * sizeof(*S->list), &S->list));
  }
  if (S->noffset + width > W->noffset) {
    W->noffset = 2 * (S->noffset + width);
    PetscCall(PetscRealloc((size_t)W->noffset * sizeof(*S->offset), &S->offset));
    PetscCall(PetscRealloc((size_t)W->noffset * sizeof(*S->mask), &S->mask));
  }
  S->list[S->count] = (SpMVPattern){.width = width, .offset = (int)S->noffset, .full = 1};
  for (int k = 0; k < width; k++) {
    S->offset[S->noffset + k] = W->offset[k];
    S->mask[S->noffset + k]   = W->mask[k];
    if (W->mask[k] != 255) S->list[S->count].full = 0;
  }
  S->noffset += width;
  W->last = S->count++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets W->last to the number of the pattern in W->offset and W->mask, which is added if it is new. Most slices of a
   grid have the pattern of the slice before */
static PetscErrorCode SpMVPlannerPattern(SpMVPlanner *W, int width)
{
  const SpMVPatternKey key = {W, width};
  uint64_t             h;

  PetscFunctionBegin;
  if (W->last >= 0 && SpMVPatternEqual(&key, W->last)) PetscFunctionReturn(PETSC_SUCCESS);
  h       = SpMVHash(SpMVHash((uint64_t)width, W->offset, (size_t)width * sizeof(*W->offset)), W->mask, (size_t)width);
  W->last = SpMVTableFind(&W->patterns, h, SpMVPatternEqual, &key);
  if (W->last >= 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SpMVPlannerAddPattern(W, width));
  PetscCall(SpMVTableAdd(&W->patterns, h, W->last));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Slices by diagonals stay where they are in the order; all other units go to the pool */
static PetscErrorCode SpMVPlannerDiagonalSlices(SpMVPlanner *W)
{
  const SpMVRules *R = W->R;

  PetscFunctionBegin;
  for (int k = 0, n; k < W->nunit; k += n) {
    int diagonals = -1;

    n = SpMVPlannerRun(W, k);
    if (R->diagonals && n >= R->diagonal_run) diagonals = SpMVPlannerDiagonals(W, n, W->unit + k);
    if (diagonals >= 0) {
      PetscCall(SpMVPlannerPattern(W, diagonals));
      SpMVPlanSlice(W, n, W->unit + k, W->last);
      W->slices += SpMVCostDiagonals(diagonals, W->U.bs);
    } else {
      for (int l = k; l < k + n; l++)
        if (!W->drop_empty || SpMVPlannerLength(W, W->unit[l])) W->pool[W->npool++] = W->unit[l];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries that slices of these units, in this order, would store for each row of a unit */
static PetscInt64 SpMVPlannerStored(const SpMVPlanner *W, PetscInt n, const int unit[])
{
  PetscInt64 stored = 0;

  for (PetscInt k = 0; k < n; k += SPMV_LANES) {
    int width = 0;

    for (PetscInt l = k; l < PetscMin(n, k + SPMV_LANES); l++) width = PetscMax(width, SpMVPlannerLength(W, unit[l]));
    stored += (PetscInt64)width * SPMV_LANES;
  }
  return stored;
}

/* Sorts if that pays, in the smallest window that comes close to the best */
static PetscErrorCode SpMVPlannerSort(SpMVPlanner *W, PetscInt n, int unit[])
{
  const SpMVTuning *T       = &SpMVTuned;
  PetscInt          sigma   = W->R->sigma;
  PetscInt64        entries = 0, natural, sorted = 0, good;

  PetscFunctionBegin;
  if (sigma == 1 || !n) PetscFunctionReturn(PETSC_SUCCESS);
  if (sigma)
    PetscCall(SpMVSortByLength(W->A, &W->U, n, unit, sigma, W->sorted));
  else {
    for (PetscInt k = 0; k < n; k++) entries += SpMVPlannerLength(W, unit[k]);
    good    = entries + entries / T->sort_padding;
    natural = SpMVPlannerStored(W, n, unit);
    if (natural <= good) PetscFunctionReturn(PETSC_SUCCESS);
    for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(T->sort_window); q++) {
      sigma = T->sort_window[q];
      PetscCall(SpMVSortByLength(W->A, &W->U, n, unit, sigma, W->sorted));
      sorted = SpMVPlannerStored(W, n, W->sorted);
      if (sorted <= good) break;
    }
    if (natural <= sorted + sorted / T->sort_gain) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscArraycpy(unit, W->sorted, n));
  W->P->sigma = PetscMax(W->P->sigma, sigma);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows much longer than the rest of their slice leave it: one dense row must not widen seven short ones. Finds the
   longest length to keep, and returns the estimate for the slice and the rows that leave it */
static double SpMVPlannerOutliers(const SpMVPlanner *W, int rows, int lanes, const int length[], int *limit)
{
  const int bs = W->U.bs;
  double    best, removed = 0;
  int       width = 0;

  for (int l = 0; l < lanes; l++) width = PetscMax(width, length[l]);
  *limit = width;
  best   = SpMVCostSlice(width / bs, rows, bs);
  if (!W->R->outliers || width <= SPMV_LANES) return best;
  for (int next; width > 0; width = next) {
    double cost;

    next = 0;
    for (int l = 0; l < lanes; l++) {
      if (length[l] == width)
        removed += SpMVCostLongMost(width, rows);
      else if (length[l] < width)
        next = PetscMax(next, length[l]);
    }
    cost = removed + (next ? SpMVCostSlice(next / bs, rows, bs) : 0.0);
    if (cost < SpMVTuned.outlier_gain * best) {
      best   = cost;
      *limit = next;
    }
  }
  return best;
}

/* A slice of units of one number of rows, less its outliers */
static void SpMVPlannerGatherSlice(SpMVPlanner *W, int lanes, const int unit[])
{
  const int rows = W->U.rows[unit[0]];
  int       length[SPMV_LANES], kept[SPMV_LANES], nkept = 0, limit;

  for (int l = 0; l < lanes; l++) length[l] = SpMVPlannerLength(W, unit[l]);
  W->slices += SpMVPlannerOutliers(W, rows, lanes, length, &limit);
  for (int l = 0; l < lanes; l++) {
    if (length[l] <= limit)
      kept[nkept++] = unit[l];
    else
      W->longs[W->nlong++] = unit[l];
  }
  if (nkept) SpMVPlanSlice(W, nkept, kept, -1);
}

/* Slices of the pool: units of one number of rows together, sorted if the rules say so */
static PetscErrorCode SpMVPlannerPoolSlices(SpMVPlanner *W)
{
  PetscFunctionBegin;
  for (int rows = 1, left = W->npool; left; rows++) {
    PetscInt n = 0;

    for (int k = 0; k < W->npool; k++)
      if (W->U.rows[W->pool[k]] == rows) W->slice[n++] = W->pool[k];
    left -= (int)n;
    PetscCall(SpMVPlannerSort(W, n, W->slice));
    for (PetscInt k = 0; k < n; k += SPMV_LANES)
      SpMVPlannerGatherSlice(W, (int)PetscMin(SPMV_LANES, n - k), W->slice + k);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Slices, vector CSR for all rows, or the parent: the one with the least estimate. `nlong` are the units that are not
   for slices anyway */
static void SpMVPlannerChoose(SpMVPlanner *W, int nlong)
{
  SpMVPlan *P      = W->P;
  double    vector = 0, rest = 0;

  for (int k = 0; k < W->nunit && vector < W->slices; k++) /* from there on, vector CSR is not chosen */
    if (SpMVPlannerLength(W, W->unit[k])) vector += SpMVCostLong(W->A, W->U.row[W->unit[k]], W->U.rows[W->unit[k]]);
  for (int k = nlong - 1; k >= 0; k--) rest += SpMVCostLong(W->A, W->U.row[W->longs[k]], W->U.rows[W->longs[k]]);
  P->parent = rest + PetscMin(vector, W->slices) > W->parent ? PETSC_TRUE : PETSC_FALSE;
  if (vector < SpMVTuned.long_gain * W->slices) {
    P->slices           = 0;
    P->units            = 0;
    P->patterns.count   = 0;
    P->patterns.noffset = 0;
    for (int k = 0; k < W->nunit; k++)
      if (SpMVPlannerLength(W, W->unit[k])) SpMVPlanUnits(W, 1, W->unit + k);
    P->long_align = SPMV_LANES;
    W->nlong      = nlong;
  }
}

PetscErrorCode SpMVPlanCreate(const SpMVCSR *A, const SpMVRules *R, SpMVPlan *P)
{
  SpMVPlanner    W       = {.A = A, .R = R, .P = P, .last = -1};
  PetscErrorCode ierr    = PETSC_SUCCESS;
  PetscInt       longest = 0;
  int            nlong;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(P, sizeof(*P)));
  SpMVCall(SpMVPlannerUnits(&W));
  SpMVCall(PetscMalloc5(W.U.count, &W.unit, W.U.count, &W.longs, W.U.count, &W.pool, W.U.count, &W.slice, W.U.count,
                        &W.sorted));
  P->multiple   = R->multiple;
  P->long_align = R->kernel == SPMV_KERNEL_VECTOR ? SPMV_LANES : R->long_align;
  P->sigma      = 1;
  P->bs         = W.U.bs;
  SpMVCall(PetscMalloc4(W.U.count + 1, &P->start, W.U.count + 1, &P->pattern, W.U.count, &P->row, W.U.count, &P->rows));
  P->start[0] = 0;
  SpMVCall(SpMVTableCreate(&W.patterns));
  for (PetscInt r = 0; r < A->m; r++) longest = PetscMax(longest, A->i[r + 1] - A->i[r]);
  SpMVCall(PetscMalloc2(2 * (size_t)longest + 1, &W.offset, 2 * (size_t)longest + 1, &W.mask));
  SpMVCall(SpMVPlannerOrder(&W));
  nlong = W.nlong;
  SpMVCall(SpMVPlannerDiagonalSlices(&W));
  SpMVCall(SpMVPlannerPoolSlices(&W));
  if (R->kernel == SPMV_KERNEL_AUTO) SpMVPlannerChoose(&W, nlong);
  SpMVPlanUnits(&W, W.nlong, W.longs); /* after all slices */
done:
  PetscCall(PetscFree5(W.unit, W.longs, W.pool, W.slice, W.sorted));
  PetscCall(PetscFree2(W.offset, W.mask));
  PetscCall(SpMVTableDestroy(&W.patterns));
  PetscCall(SpMVUnitsDestroy(&W.U));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVPatternsDestroy(SpMVPatterns *S)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(S->list));
  PetscCall(PetscFree(S->offset));
  PetscCall(PetscFree(S->mask));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpMVPlanDestroy(SpMVPlan *P)
{
  PetscFunctionBegin;
  PetscCall(SpMVPatternsDestroy(&P->patterns));
  PetscCall(PetscFree4(P->start, P->pattern, P->row, P->rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}
