/* SELL-P on the host: which rows share a slice, from the pattern alone */
#include "sellp.h"

#define SELLP_WINDOW 512 /* rows: sorting within so many leaves x and y in the first level of cache */

void SELLPParamsDefault(SELLPParams *p)
{
  SpMVCommonParamsDefault(&p->common);
  p->b     = 0;
  p->t     = 0;
  p->sigma = 0;
}

static int SELLPLength(const SpMVCSR *A, const SpMVUnits *U, int unit)
{
  return (int)(A->i[U->row[unit] + 1] - A->i[U->row[unit]]);
}

/* Entries that slices of b units in this order would store for each row of a unit */
static PetscInt64 SELLPStored(const SpMVCSR *A, const SpMVUnits *U, PetscInt n, const int unit[], PetscInt b)
{
  PetscInt64 stored = 0;

  for (PetscInt k = 0; k < n; k += b) {
    int w = 0;

    for (PetscInt l = k; l < PetscMin(n, k + b); l++) w = PetscMax(w, SELLPLength(A, U, unit[l]));
    stored += (PetscInt64)w * b;
  }
  return stored;
}

/* Sorts if that pays: the smallest of a few windows that comes close to the best. Raises *used to the window it took */
static PetscErrorCode SELLPSort(const SpMVCSR *A, const SpMVUnits *U, PetscInt n, int unit[], PetscInt b, PetscInt sigma, PetscInt *used)
{
  int           *sorted = NULL;
  PetscInt64     natural, best;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (sigma == 1 || !n) PetscFunctionReturn(PETSC_SUCCESS);
  SpMVCall(PetscMalloc1(n, &sorted));
  if (sigma)
    SpMVCall(SpMVSortByLength(A, U, n, unit, sigma, sorted));
  else {
    PetscInt64 entries   = 0;
    PetscInt   window[2] = {SELLP_WINDOW, 16 * SELLP_WINDOW};

    for (PetscInt k = 0; k < n; k++) entries += SELLPLength(A, U, unit[k]);
    natural = SELLPStored(A, U, n, unit, b);
    if (natural <= entries + entries / 16) goto done;
    for (int q = 0; q < 2; q++) {
      sigma = window[q];
      SpMVCall(SpMVSortByLength(A, U, n, unit, sigma, sorted));
      best = SELLPStored(A, U, n, sorted, b);
      if (best <= entries + entries / 16) break;
    }
    if (natural <= best + best / 20) goto done;
  }
  PetscCall(PetscMemcpy(unit, sorted, (size_t)n * sizeof(*unit)));
  *used = PetscMax(*used, sigma);
done:
  PetscCall(PetscFree(sorted));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Any height, no compression */
static PetscErrorCode SELLPPlanUncompressed(const SpMVCSR *A, const SELLPParams *p, SpMVPlan *P)
{
  const PetscInt b = p->b > 0 ? p->b : SPMV_LANES;
  SpMVUnits      U;
  int           *unit = NULL;
  PetscInt       n = 0, sigma = 1;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(SpMVUnitsFind(A, 1, &U));
  SpMVCall(PetscMalloc1(U.count, &unit));
  for (int k = 0; k < U.count; k++)
    if (U.empty <= A->m / 8 || SELLPLength(A, &U, k)) unit[n++] = k;
  SpMVCall(SELLPSort(A, &U, n, unit, b, p->sigma, &sigma));
  SpMVCall(SpMVPlanCreate(n, n / b + 1, P));
  P->sigma  = sigma;
  P->height = b;
  P->plain  = PETSC_TRUE;
  for (PetscInt k = 0; k < n; k += b) SpMVPlanSlice(P, &U, PetscMin(b, n - k), unit + k, PETSC_FALSE);
done:
  PetscCall(PetscFree(unit));
  PetscCall(SpMVUnitsDestroy(&U));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SELLPPlanCompressed(const SpMVCSR *A, const SELLPParams *p, SpMVPlan *P, PetscBool *parent)
{
  SpMVUnits      U;
  int           *unit = NULL, *pool = NULL, *outlier = NULL;
  PetscInt       npool = 0, nout = 0;
  double         slices = 0, rows = 0, csr;
  PetscBool      skip;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(SpMVUnitsFind(A, p->common.node, &U));
  csr = SpMVCostParent(A, &U);
  if (U.block == 1 && U.count < A->m) {
    double single, grouped;

    SpMVCostUnits(A, &U, &single, &grouped);
    if (single < grouped) {
      PetscCall(SpMVUnitsDestroy(&U));
      SpMVCall(SpMVUnitsFind(A, 1, &U));
    }
  }
  skip = U.empty > A->m / 8 ? PETSC_TRUE : PETSC_FALSE;
  SpMVCall(PetscMalloc3(U.count, &unit, U.count, &pool, U.count, &outlier));
  SpMVCall(SpMVPlanCreate(U.count, U.count, P));
  P->block    = U.block;
  P->multiple = p->t > 0 ? p->t : 1;
  if (p->common.kernel == SPMV_KERNEL_VECTOR) {
    for (int u = 0; u < U.count; u++)
      if (SELLPLength(A, &U, u)) SpMVPlanLong(P, &U, u);
    P->start[0] = 0;
    goto done;
  }

  /* Slices by diagonals stay where they are */
  for (int u = 0; u < U.count; u += SPMV_LANES) {
    const int  n = PetscMin(SPMV_LANES, U.count - u), g = U.rows[u];
    PetscBool  keep    = PETSC_TRUE;
    PetscInt64 entries = 0;
    int        w = 0, D = -1;

    for (int l = 0; l < n; l++) {
      unit[l] = u + l;
      w       = PetscMax(w, SELLPLength(A, &U, u + l) / U.block);
      entries += (PetscInt64)SELLPLength(A, &U, u + l) * g;
      if (U.rows[u + l] != U.block) keep = PETSC_FALSE;
    }
    if (keep && w && p->sigma <= 1) D = SpMVDiagonals(A, U.row[u], g, n, SpMVDiagonalLimit(w, g, entries), NULL, NULL);
    if (D >= 0) {
      SpMVPlanSlice(P, &U, n, unit, PETSC_TRUE);
      slices += SpMVCostDiagonals(D, g);
    } else {
      for (int l = 0; l < n; l++)
        if (!skip || SELLPLength(A, &U, u + l)) pool[npool++] = u + l;
    }
  }
  /* The others are sorted, those of one number of rows together */
  for (int g = 1; g <= SPMV_MAX_NODE && npool; g++) {
    PetscInt n = 0;

    for (PetscInt k = 0; k < npool; k++)
      if (U.rows[pool[k]] == g) unit[n++] = pool[k];
    SpMVCall(SELLPSort(A, &U, n, unit, SPMV_LANES, p->sigma, &P->sigma));
    for (PetscInt k = 0; k < n; k += SPMV_LANES) {
      PetscInt lanes = PetscMin(SPMV_LANES, n - k);
      int      len[SPMV_LANES], slice[SPMV_LANES];
      PetscInt kept = 0;
      int      w    = 0, limit;
      double   best;

      for (PetscInt l = 0; l < lanes; l++) {
        len[l] = SELLPLength(A, &U, unit[k + l]);
        w      = PetscMax(w, len[l]);
      }
      /* Rows much longer than the others of their slice leave it: one dense row must not widen seven short ones */
      limit = w;
      best  = SpMVCostSlice(w / (int)P->block, g, (int)P->block);
      if (p->common.kernel == SPMV_KERNEL_AUTO && w > SPMV_LANES) {
        double removed = 0;
        int    top     = w;

        while (top > 0) {
          int next = 0;

          for (PetscInt l = 0; l < lanes; l++) {
            if (len[l] == top)
              removed += 4.0 + 2.0 * g + ((top + SPMV_LANES - 1) / SPMV_LANES) * (1.65 + 0.45 * g);
            else if (len[l] < top)
              next = PetscMax(next, len[l]);
          }
          {
            const double cost = removed + (next ? SpMVCostSlice(next / (int)P->block, g, (int)P->block) : 0.0);

            if (cost < 0.8 * best) {
              best  = cost;
              limit = next;
            }
          }
          top = next;
        }
      }
      for (PetscInt l = 0; l < lanes; l++) {
        if (len[l] <= limit)
          slice[kept++] = unit[k + l];
        else
          outlier[nout++] = unit[k + l];
      }
      if (kept) SpMVPlanSlice(P, &U, kept, slice, PETSC_FALSE);
      slices += best;
    }
  }
  if (p->common.kernel == SPMV_KERNEL_AUTO) {
    for (int u = 0; u < U.count; u++)
      if (SELLPLength(A, &U, u)) rows += SpMVCostLong(A, U.row[u], U.rows[u]);
    *parent = PetscMin(rows, slices) > csr ? PETSC_TRUE : PETSC_FALSE;
    if (rows < 0.9 * slices) {
      P->slices = 0;
      P->units  = 0;
      for (int u = 0; u < U.count; u++)
        if (SELLPLength(A, &U, u)) SpMVPlanLong(P, &U, u);
      goto done;
    }
  }
  for (PetscInt k = 0; k < nout; k++) SpMVPlanLong(P, &U, outlier[k]);
done:
  PetscCall(PetscFree3(unit, pool, outlier));
  PetscCall(SpMVUnitsDestroy(&U));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SELLPSetUp(const SpMVCSR *A, const SELLPParams *p, SpMVStore *block)
{
  SpMVPlan       P      = {0};
  PetscBool      parent = PETSC_FALSE;
  PetscErrorCode ierr   = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (p->common.kernel == SPMV_KERNEL_PARENT || A->m > SPMV_MAX_STORED || A->n > SPMV_MAX_STORED) {
    PetscCall(SpMVStoreCreateParent(A, block));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if ((!p->common.compress || (p->b > 0 && p->b != SPMV_LANES)) && p->common.kernel != SPMV_KERNEL_VECTOR)
    SpMVCall(SELLPPlanUncompressed(A, p, &P));
  else
    SpMVCall(SELLPPlanCompressed(A, p, &P, &parent));
  if (p->t > 0) P.multiple = p->t;
  if (parent)
    SpMVCall(SpMVStoreCreateParent(A, block));
  else
    SpMVCall(SpMVStoreCreate(A, &P, block));
done:
  PetscCall(SpMVPlanDestroy(&P));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
