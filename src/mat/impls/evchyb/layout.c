/* EVC-HYB: the paper's partition, and how the host stores it */
#include "evchyb.h"

void EVCHYBParamsDefault(EVCHYBParams *p)
{
  SpMVCommonParamsDefault(&p->common);
  p->ell_limit        = 128;
  p->row_align        = 32;
  p->csr_align        = 32;
  p->nnz_per_thread   = 8;
  p->max_threads_log2 = 9;
}

/*
  Rows sorted by length and, within one length, by first column. Rows of length L come in multiples of row_align; what is left
  over joins the rows of length L + 1, and in the end, with what is longer than ell_limit, the vector CSR part. A row block has
  at least two multiples: the text does not say so, but the paper's table does (Table 3: 57 rows of cage14, which has none longer
  than 41, are left to the vector CSR part, and all figures of ibm-dc1).
*/
PetscErrorCode EVCHYBPartitionCreate(PetscInt m, PetscInt n, const PetscInt length[], const PetscInt first_column[], const EVCHYBParams *p, EVCHYBPartition *E)
{
  PetscInt      *count = NULL, *by_column = NULL, longest = 0, first = 0, next = 0;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(E, sizeof(*E)));
  E->m = m;
  for (PetscInt r = 0; r < m; r++) longest = PetscMax(longest, length[r]);
  SpMVCall(PetscMalloc1(m, &E->perm));
  SpMVCall(PetscCalloc1((size_t)PetscMax(longest, first_column ? n : 0) + 2, &count));
  if (first_column) {
    SpMVCall(PetscMalloc1(m, &by_column));
    for (PetscInt r = 0; r < m; r++) count[(length[r] ? first_column[r] : 0) + 1]++;
    for (PetscInt k = 0; k < n; k++) count[k + 1] += count[k];
    for (PetscInt r = 0; r < m; r++) by_column[count[length[r] ? first_column[r] : 0]++] = r;
    PetscCall(PetscMemzero(count, (size_t)(PetscMax(longest, n) + 2) * sizeof(*count)));
  }
  for (PetscInt r = 0; r < m; r++) count[length[r] + 1]++;
  for (PetscInt k = 0; k <= longest; k++) count[k + 1] += count[k];
  for (PetscInt k = 0; k < m; k++) {
    const PetscInt r = by_column ? by_column[k] : k;

    E->perm[count[length[r]]++] = r;
  }
  /* count[L]: sorted rows no longer than L */
  SpMVCall(PetscMalloc1((size_t)PetscMin(longest, p->ell_limit) + 1, &E->blocks));
  for (PetscInt L = 0; L <= PetscMin(longest, p->ell_limit); L++) {
    const PetscInt rows = (count[L] - first) / p->row_align * p->row_align;

    if (rows < 2 * p->row_align) continue;
    E->blocks[E->nblocks++] = (EVCHYBRowBlock){first, rows, L};
    E->ell_entries += (PetscInt64)rows * L;
    first += rows;
  }
  E->isplit = first;
  for (PetscInt k = first; k < m; k++) {
    const PetscInt len = length[E->perm[k]];
    PetscInt       q   = 0;

    E->csr_entries += (len + p->csr_align - 1) / p->csr_align * (PetscInt64)p->csr_align;
    while (q < PetscMin(p->max_threads_log2, EVCHYB_MAX_RANGES - 1) && len > (p->nnz_per_thread << q)) q++;
    E->range_rows[q]++;
    next = PetscMax(next, q + 1);
  }
  E->ranges = next;
done:
  PetscCall(PetscFree(by_column));
  PetscCall(PetscFree(count));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPartitionDestroy(EVCHYBPartition *E)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(E->perm));
  PetscCall(PetscFree(E->blocks));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sorted order in slices of eight. Consecutive rows on common diagonals, which sorting leaves together in runs, form slices
   of their own; what lies between the runs is packed by order. */
static PetscErrorCode EVCHYBPlan(const SpMVCSR *A, const EVCHYBParams *p, const EVCHYBPartition *E, SpMVPlan *P, PetscBool *parent)
{
  SpMVUnits      U;
  int           *unit = NULL, *pool = NULL, *first = NULL, *slice = NULL, nunit = 0, npool = 0, nlong;
  double         slices = 0, rows = 0, over = 0, csr;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  SpMVCall(SpMVUnitsFind(A, p->common.compress ? p->common.node : 1, &U));
  csr = SpMVCostParent(A, &U);
  if (U.block == 1 && U.count < A->m) {
    double single, grouped;

    SpMVCostUnits(A, &U, &single, &grouped);
    if (single < grouped) {
      PetscCall(SpMVUnitsDestroy(&U));
      SpMVCall(SpMVUnitsFind(A, 1, &U));
    }
  }
  SpMVCall(PetscMalloc4(U.count, &unit, U.count, &pool, A->m, &first, U.count, &slice));
  SpMVCall(SpMVPlanCreate(U.count, U.count, P));
  P->block      = U.block;
  P->plain      = p->common.compress ? PETSC_FALSE : PETSC_TRUE;
  P->long_align = p->csr_align;

  /* Rows of one unit have one length and one first column, so they are neighbours in the sorted order. Short rows that the
     partition leaves to the vector CSR part for want of row_align are better off in slices of eight. */
  for (PetscInt r = 0; r < A->m; r++) first[r] = -1;
  for (int u = 0; u < U.count; u++) first[U.row[u]] = u;
  nlong = U.count;
  for (PetscInt k = 0; k < A->m; k++) {
    const int u = first[E->perm[k]];

    if (u < 0 || A->i[U.row[u] + 1] == A->i[U.row[u]]) continue;
    if (p->common.kernel != SPMV_KERNEL_VECTOR && (A->i[U.row[u] + 1] - A->i[U.row[u]] <= p->ell_limit || p->common.kernel == SPMV_KERNEL_SLICES))
      unit[nunit++] = u;
    else
      unit[--nlong] = u; /* from the back */
  }
  for (int k = 0; k < nunit;) {
    const int  g   = U.rows[unit[k]];
    int        run = 1, n, w = 0, D = -1;
    PetscInt64 entries = 0;

    while (g == U.block && run < SPMV_LANES && k + run < nunit && U.rows[unit[k + run]] == g && U.row[unit[k + run]] == U.row[unit[k]] + run * g) run++;
    n = run;
    if (!P->plain && run >= SPMV_LANES - 2) {
      for (int l = 0; l < n; l++) {
        const int len = (int)(A->i[U.row[unit[k + l]] + 1] - A->i[U.row[unit[k + l]]]);

        w = PetscMax(w, len / U.block);
        entries += (PetscInt64)len * g;
      }
      D = SpMVDiagonals(A, U.row[unit[k]], g, n, SpMVDiagonalLimit(w, g, entries), NULL, NULL);
    }
    if (D >= 0) {
      SpMVPlanSlice(P, &U, n, unit + k, PETSC_TRUE);
      slices += SpMVCostDiagonals(D, g);
    } else
      for (int l = 0; l < n; l++) pool[npool++] = unit[k + l];
    k += n;
  }
  for (int g = 1; g <= SPMV_MAX_NODE; g++) {
    int n = 0;

    for (int k = 0; k < npool; k++)
      if (U.rows[pool[k]] == g) slice[n++] = pool[k];
    for (int k = 0; k < n; k += SPMV_LANES) {
      const int lanes = PetscMin(SPMV_LANES, n - k), last = slice[k + lanes - 1];

      SpMVPlanSlice(P, &U, lanes, slice + k, PETSC_FALSE);
      slices += SpMVCostSlice((int)((A->i[U.row[last] + 1] - A->i[U.row[last]]) / U.block), g, U.block);
    }
  }
  if (p->common.kernel == SPMV_KERNEL_AUTO) {
    for (int k = 0; k < nunit; k++) rows += SpMVCostLong(A, U.row[unit[k]], U.rows[unit[k]]);
    for (int k = nlong; k < U.count; k++) over += SpMVCostLong(A, U.row[unit[k]], U.rows[unit[k]]);
    *parent = over + PetscMin(rows, slices) > csr ? PETSC_TRUE : PETSC_FALSE;
    if (rows < 0.9 * slices) {
      P->slices = 0;
      P->units  = 0;
      for (int k = 0; k < nunit; k++) SpMVPlanLong(P, &U, unit[k]);
      P->long_align = SPMV_LANES;
    }
  } else if (p->common.kernel == SPMV_KERNEL_VECTOR)
    P->long_align = SPMV_LANES;
  for (int k = U.count - 1; k >= nlong; k--) SpMVPlanLong(P, &U, unit[k]);
done:
  PetscCall(PetscFree4(unit, pool, first, slice));
  PetscCall(SpMVUnitsDestroy(&U));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBSetUp(const SpMVCSR *A, const EVCHYBParams *p, SpMVStore *block)
{
  EVCHYBPartition E      = {0};
  SpMVPlan        P      = {0};
  PetscInt       *length = NULL, *column = NULL;
  PetscBool       parent = PETSC_FALSE;
  PetscErrorCode  ierr   = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (p->common.kernel == SPMV_KERNEL_PARENT || A->m > SPMV_MAX_STORED || A->n > SPMV_MAX_STORED) {
    PetscCall(SpMVStoreCreateParent(A, block));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  SpMVCall(PetscMalloc2(A->m, &length, A->m, &column));
  for (PetscInt r = 0; r < A->m; r++) {
    length[r] = A->i[r + 1] - A->i[r];
    column[r] = length[r] ? A->j[A->i[r]] : 0;
  }
  SpMVCall(EVCHYBPartitionCreate(A->m, A->n, length, column, p, &E));
  PetscCall(PetscFree2(length, column));
  SpMVCall(EVCHYBPlan(A, p, &E, &P, &parent));
  PetscCall(EVCHYBPartitionDestroy(&E));
  if (parent)
    SpMVCall(SpMVStoreCreateParent(A, block));
  else
    SpMVCall(SpMVStoreCreate(A, &P, block));
done:
  PetscCall(PetscFree2(length, column));
  PetscCall(EVCHYBPartitionDestroy(&E));
  PetscCall(SpMVPlanDestroy(&P));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}
